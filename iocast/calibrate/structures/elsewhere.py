# SPDX-License-Identifier: Apache-2.0
"""Time elsewhere: a part of an operation's time is not the common server's. It is a delay, as of a commit that many
wait for at once, or a further server's, which those operations alone wait for. A lone rank's times stay as they were
measured: either the time elsewhere is always the same and the rest varies, or the other way round."""

from __future__ import annotations

from collections.abc import Callable

from iocast.calibrate.recipe import Option, Parameter
from iocast.calibrate.structures.seen import Seen, seconds
from iocast.platforms.documents import Document

SECOND: Document = {"law": "empirical", "probabilities": [0.0, 1.0], "values": ["1s", "1s"]}
"""Always the same time, which is its `scale`."""
SHORTEST = 1e-6
"""Seconds elsewhere, at least: the least that is fitted."""
STATION = "further"
SERVERS = (1, 2, 4, 8, 16)
"""Of the common server, where time is a delay."""
FURTHER = (1, 4)
"""Of a further server."""
LONGEST = 0.97
"""Share of operations' time that may be elsewhere."""
MODIFYING = frozenset(("create", "unlink", "mkdir", "rmdir", "append", "pwrite", "rename"))


def options(found: Seen) -> list[Option]:
    """Delays and further servers, of the operations that modify and of all. They begin with the time that makes the
    server, or the further one, just as busy as it can be at the most ranks."""
    modify = [demand for demand in found.laws if found.operation(demand) in MODIFYING]
    result = []
    for demands, whose in ((list(found.laws), "all"), (modify, "modifying")):
        own = sum(found.alone[demand] for demand in demands) / sum(found.alone.values())
        if not demands or whose == "modifying" and len(demands) == len(found.laws):
            continue
        for servers in SERVERS:
            share = (1 - servers / found.busy) / own if found.busy > servers else 0.0
            if 0 < share < LONGEST:
                result += [_delayed(found, demands, whose, servers, share, steady) for steady in (False, True)]
        for servers in FURTHER:
            share = servers / (found.busy * own) if found.busy > 0 else 0.0
            if 0 < share < LONGEST:
                result += [_served(found, demands, whose, servers, share, steady) for steady in (False, True)]
    return result


def _delayed(found: Seen, demands: list[str], whose: str, servers: int, share: float, steady: bool) -> Option:
    name = f"{whose}: a delay beside {servers} server{'s' if servers > 1 else ''}"
    edit: Document = {"stations": {found.station: {"servers": servers}}}
    return _option(found, demands, name, edit, share, steady, lambda beyond: {"delay": beyond})


def _served(found: Seen, demands: list[str], whose: str, servers: int, share: float, steady: bool) -> Option:
    name = f"{whose}: {servers} further server{'s' if servers > 1 else ''}"
    edit: Document = {"stations": {STATION: {"servers": servers}}}
    return _option(found, demands, name, edit, share, steady, lambda beyond: {"station": STATION, "demand": beyond})


def _option(
    found: Seen,
    demands: list[str],
    name: str,
    edit: Document,
    share: float,
    steady: bool,
    step: Callable[[str], Document],
) -> Option:
    """share: of a lone rank's time that is elsewhere, to begin with. steady: the common server's part is always as
    long, and not what is elsewhere."""
    laws: Document = {}
    then: Document = {}
    parameters = []
    for demand in demands:
        law, beyond = found.laws[demand], f"{demand}_elsewhere"
        constant, varying = (demand, beyond) if steady else (beyond, demand)
        laws |= {varying: law, constant: SECOND}
        then[found.routes[demand]] = [step(beyond)]
        parameters.append(
            Parameter(
                beyond,
                f"demands.{constant}.scale",
                low=SHORTEST,
                high=max(seconds(law)[-1], 2 * SHORTEST),
                start=max((1 - share if steady else share) * found.alone[demand], 1.5 * SHORTEST),
                also=((f"demands.{varying}.shift", -1.0),),
            )
        )
    name = f"{name}, steady service" if steady else name
    return Option(name, edit=edit | {"demands": laws}, then=then, parameters=tuple(parameters))

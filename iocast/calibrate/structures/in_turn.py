# SPDX-License-Identifier: Apache-2.0
"""Requests in turn: an operation is several requests to the server, one after the other, each behind those of all
others. So an operation's wait is a multiple of a single request's, and grows as the operation's own time does. With one
request an operation all wait for as long."""

from __future__ import annotations

from iocast.calibrate.recipe import Option
from iocast.calibrate.structures.seen import Seen, Steps, rewrite_visits
from iocast.platforms.documents import Document

NAME = "requests in turn"
ALIKE = 1.15
"""Largest growth of an operation's mean over the smallest, up to which all grow as a lone rank's own time."""
UNLIKE = 1.4
"""Largest wait over the smallest, from which on operations don't wait alike."""
WAITS = 2.0
"""Growth from which on waits say something."""
NEAR = 0.12
"""How far a number of requests may be off a whole one, as a share of it."""
MOST = 4
"""Requests of the operation with the fewest."""


def options(found: Seen) -> list[Option]:
    """One, if operations wait in proportion to their own times."""
    counts = requests(found)
    if counts is None:
        return []

    return [Option(NAME, edit={}, rewrite=lambda document: repeat(document, found, counts))]


def repeat(document: Document, found: Seen, counts: dict[str, int]) -> None:
    """Has these demands visit the server several times, each for a share of a lone rank's time, by the law of the one
    with the fewest."""
    shortest = fewest(found, counts)
    base = found.laws[shortest]
    for demand, count in counts.items():
        moved = {"shift": own["shift"]} if "shift" in (own := document["demands"][demand]) else {}
        document["demands"][demand] = {**base, "scale": found.alone[demand] / count / found.alone[shortest], **moved}

    def repeated(steps: Steps, number: int, visit: Document) -> Steps:
        around = (
            number > 0 and number + 1 < len(steps) and "delay" in steps[number - 1] and "delay" in steps[number + 1]
        )
        first, last = (number - 1, number + 2) if around else (number, number + 1)
        one: Steps = steps[first:last]
        return [*steps[:first], *one * counts[visit["demand"]], *steps[last:]]

    rewrite_visits(document, found, repeated, iter(counts))


def fewest(found: Seen, counts: dict[str, int]) -> str:
    """The demand of the fewest requests, of equals the shortest one: its law is that of a request."""
    return min(counts, key=lambda demand: (counts[demand], found.alone[demand]))


def requests(found: Seen) -> dict[str, int] | None:
    """By demand, of how many requests it is; None where operations don't wait so."""
    growth, waits = found.growth.values(), found.waits
    if min(growth) < WAITS or max(growth) > ALIKE * min(growth) or max(waits.values()) < UNLIKE * min(waits.values()):
        return None
    least = min(waits.values())
    for fewest in range(1, MOST + 1):
        exact = {demand: fewest * wait / least for demand, wait in waits.items()}
        whole = {demand: round(value) for demand, value in exact.items()}
        if all(abs(exact[demand] - whole[demand]) <= NEAR * exact[demand] for demand in exact):
            return whole
    return None

# SPDX-License-Identifier: Apache-2.0
"""Objects of others: what a client has made or changed it answers itself, by a capability, token or lock of its own.
A request of another one makes the server call that back first, and then several have it. A lone client sees none of
this; two and more do, and an operation takes far longer there than waiting for each other explains. Clients are nodes,
as where a kernel mounts a file system, or ranks, each with a library of its own."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Collection

from iocast.calibrate import reading
from iocast.calibrate.recipe import Option, Parameter
from iocast.calibrate.structures import in_turn
from iocast.calibrate.structures.seen import Seen, Steps, leave_out_unused_locks, rewrite_visits
from iocast.platforms.documents import Document, get_path
from iocast.runs.run_directory import Point

HELD, KNOWN = "held", "known"
"""Caches: of the objects that a client has alone, and of those that it answers for, as perhaps others do."""
CALL, AWAITED = "recall", "recalled"
"""The server's work for who doesn't know an object, and the time until it has come back from who has it alone."""
OBJECTS = 1_000_000_000
"""Of a client: more than any workload makes."""
CLIENT = 0.05
"""Share of the longest operation's time, up to which a lone client's answer is not the server's."""
LONGER = 2.0
"""Wait over the longest one of other operations, from which on it is tried where all else leaves a misfit."""
MOST = 0.5
"""Share of the operations that are called back."""
QUARTILE = "q75"
"""Of two clients, each may look at own objects half of the time; the rest is above the median."""
CHANGES = ("create", "append", "pwrite", "mkdir")
REMOVALS = ("unlink", "rmdir")
MAKE = ("create", "mkdir")
"""What they make nobody has had before."""
SHORTEST = 1e-6
MOUNTED = ("posix", "mpiio")
"""Backends that a kernel's client is behind."""
THREADS = (1, 2, 4, 8, 16)


def shown(found: Seen) -> list[Option]:
    """Of nodes and of ranks, if operations take longer than behind the longest one of every other rank."""
    longest = max(found.alone.values())

    def which(waits: dict[str, float], ranks: int) -> set[str]:
        return {one for one in waits if waits[one] > (ranks - 1) * longest}

    return _options(found, which, len(found.closed))


def unseen(found: Seen) -> list[Option]:
    """The same, if some operations wait for far longer than the others, and that does not show by itself."""
    return [] if shown(found) else _options(found, lambda waits, _: _apart(waits), 1)


def _apart(waits: dict[str, float]) -> set[str]:
    """Those that wait longest, down to the first that waits far longer than the next one; none where none does."""
    ordered = sorted(waits, key=lambda one: waits[one], reverse=True)
    for number, (one, following) in enumerate(itertools.pairwise(ordered), 1):
        if waits[one] > LONGER * max(waits[following], SHORTEST):
            return set(ordered[:number])
    return set()


def _options(found: Seen, which: Callable[[dict[str, float], int], set[str]], scales: int) -> list[Option]:
    """which: of the waits by demand and the ranks at a point, those that are called back. Points of several nodes tell
    it, where nodes or ranks may be the clients; those of one node, where only ranks may. Of each the first `scales` are
    looked at, the fewest ranks first: with more, operations wait for many things."""
    several = [point for point in found.closed if (point.first.record.placement.nodes or 1) > 1]
    one_node = [point for point in found.closed if point not in several]
    clients = _clients([found.single, *found.closed])
    for points, owners in ((several[:scales], clients), (one_node[:scales], {"rank"} & {*clients})):
        for point in points if owners else ():
            called = which(waits := _waits(found, point), point.ranks)
            called = {demand for demand in called if found.operation(demand) not in MAKE}
            own = {demand: wait for demand, wait in waits.items() if demand in called}
            if options := [one for owner in owners for one in _of_owner(found, own, owner)]:
                return options
    return []


def _clients(points: list[Point]) -> tuple[str, ...]:
    """Whose the memory of a client may be: a kernel's, of its node; a backend's that speaks to servers itself, of its
    rank; either where runs don't tell, or differ."""
    backends = {(point.first.json.get("backend") or {}).get("name") for point in points} - {None}
    owners = {"node" if backend in MOUNTED else "rank" for backend in backends}
    return tuple(owners) if len(owners) == 1 else ("node", "rank")


def _waits(found: Seen, point: Point) -> dict[str, float]:
    """By demand, seconds from a lone rank's mean to the upper quartile."""
    return {
        demand: point.value(f"{tag}.{QUARTILE}") - found.alone[demand]
        for demand, tag in found.tags.items()
        if point.has(f"{tag}.{QUARTILE}")
    }


def _turns(found: Seen, called: Collection[str]) -> tuple[dict[str, int], int]:
    """Number of requests by demand of the server, if the shortest one is one request, and of a call: as many as a full
    server of the fewest possible threads has time for. Nothing, and 1, where all have one or are no multiples, or where
    no server shows that it is full."""
    longest, most = max(found.alone.values()), found.closed[-1]
    if not reading.levels_off([found.single, *found.closed]):
        return {}, 1
    own = {d: mean for d, mean in found.alone.items() if mean >= CLIENT * longest and d not in called}
    if not own:
        return {}, 1
    least = min(own.values())
    exact = {demand: mean / least for demand, mean in own.items()}
    counts = {demand: round(value) for demand, value in exact.items()}
    if max(counts.values()) < 2 or any(abs(exact[one] - counts[one]) > in_turn.NEAR * exact[one] for one in exact):
        return {}, 1
    done = {demand: most.first.count(found.operation(demand)) for demand in found.alone}
    calls = sum(done[demand] for demand in called)
    service = sum(done[demand] * mean for demand, mean in own.items())
    total = sum(most.first.count(op) for op in most.first.operations)
    for threads in THREADS:
        left = threads * total / most.value("rate") - service
        if left > calls * least:
            # With more, the server is not full, and something else takes the time.
            share = left / calls / least if calls else math.inf
            return (counts, round(share)) if share <= 4 * max(counts.values()) else ({}, 1)
    return {}, 1


def _of_owner(found: Seen, waits: dict[str, float], owner: str) -> list[Option]:
    """Each call by itself, and where operations look so, all as requests in turn; none without such operations."""
    if not waits:
        return []
    plain, (turns, calls) = _option(found, waits, owner, {}, 1), _turns(found, waits.keys())
    return [*plain, *_option(found, waits, owner, turns, calls)] if turns else plain


def _option(found: Seen, waits: dict[str, float], owner: str, turns: dict[str, int], calls: int) -> list[Option]:
    """One, of `node` or `rank`. waits: seconds by demand, of the operations whose objects are called back; none where
    most are: then what waits less is rather no server's. turns: number of requests by demand, calls: of a call."""
    makes = next((path for op in CHANGES if (path := _end_of(found, op))), None)
    called, every = ({found.operation(demand) for demand in some} for some in (waits, found.alone))
    if len(called) > MOST * len(every) or makes is None:
        return []
    longest = max(found.alone.values())
    answered = {demand for demand in waits if found.alone[demand] < CLIENT * longest}

    def rewrite(document: Document) -> None:
        def looking(steps: Steps, number: int, visit: Document) -> Steps:
            request = [{"station": found.station, "demand": CALL}] * calls
            back: Document = {"forget": HELD, "of": "elsewhere", "recall": [{"delay": AWAITED}]}
            if visit["demand"] in answered:
                now = [{"delay": visit["demand"]}, {"cache": KNOWN, "miss": [*request, back]}]
            else:  # the server has a request of it anyway
                now = [visit, back | {"recall": [*request, {"delay": AWAITED}]}]
            return [*steps[:number], *now, *steps[number + 1 :]]

        rewrite_visits(document, found, looking, iter(waits))
        if turns:
            in_turn.repeat(document, found, turns)
            # All requests are alike: a call's were found to cost nothing where the fit was free to say so.
            document["demands"][CALL] = copy.deepcopy(document["demands"][in_turn.fewest(found, turns)])
        leave_out_unused_locks(document)

    caches = (HELD, KNOWN) if answered else (HELD,)
    changed = [step for name in caches for step in ({"forget": name, "of": "elsewhere"}, {"cache": name})]
    removed = [{"forget": name, "of": "everywhere"} for name in caches]
    then: Document = {path: changed for op in CHANGES if (path := _end_of(found, op))}
    then |= {path: removed for op in REMOVALS if (path := _end_of(found, op))}
    memory = {name: {"per": owner, "objects": OBJECTS} for name in caches}
    edit: Document = {"caches": memory, "demands": {CALL: "1ms", AWAITED: "1ms"}}
    half = max(waits.values()) / 2
    parameters = tuple(
        Parameter(name, f"demands.{name}", low=SHORTEST, high=max(10 * half, 1.0), start=half, unit="s")
        for name in ((AWAITED,) if turns else (CALL, AWAITED))
    )
    named = " and ".join(dict.fromkeys(found.operation(demand) for demand in waits))
    name = f"{named} recalled from other {owner}s{', requests in turn' if turns else ''}"
    return [Option(name, edit=edit, then=then, parameters=parameters, rewrite=rewrite)]


def _end_of(found: Seen, op: str) -> str | None:
    """The path of the steps with which an operation ends, or the open of a file, which directories and files without
    bytes have as well; None where the family has no such operation."""
    route = get_path(found.family, f"operations.{op}")
    if isinstance(route, dict) and route:
        return f"operations.{op}.open"
    return f"operations.{op}" if isinstance(route, list) else None

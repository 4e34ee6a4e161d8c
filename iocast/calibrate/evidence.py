# SPDX-License-Identifier: Apache-2.0
"""What must be seen in the measurements before an option of a choice is tried (`needs:` in a platform's `calibration`
section). Without it the option could explain nothing, and would only make the search longer."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from iocast.calibrate.reading import NO_REQUEST, find_stall
from iocast.runs.operations import READS, WRITES
from iocast.runs.run_directory import Point, Run

CLEARLY = math.log(2)
"""By how much, as a logarithm, some operations must slow down beyond all others."""
BEHIND = 1.5
"""How many times as long as behind all other ranks with the same request a part must take to wait behind longer ones:
one and chance."""
DATA = (("create", "write"), ("append", "write"), ("read", "read"))
"""Operations of which runs tell the part that moves the data."""
AS_LONG = 0.25
"""Share of the shortest wait of operations without data that data wait for at least, and the other way around, where
they wait as these do."""


def _stall(points: list[Point]) -> bool:
    """The slowest operations show periodic stalls."""
    return find_stall([run for point in points for run in point.runs]) is not None


def _shared_nodes(points: list[Point]) -> bool:
    """Ranks share a node."""
    return any(point.first.placement[1] > 1 for point in points)


def _slow_reads(points: list[Point]) -> bool:
    """At some scale reads take longer than a lone rank's by at least twice the factor of all other operations."""
    return _slower_than_alone(points, READS)


def _slow_writes(points: list[Point]) -> bool:
    """The same of writes; or they slow down so from the first third of a phase to the last, in most runs of some
    scale."""
    return _slower_than_alone(points, WRITES) or any(
        sum(_fills(run) for run in point.runs) > len(point.runs) / 2 for point in points
    )


def _slow_closes(points: list[Point]) -> bool:
    """At some scale the median close takes at least twice as long as a lone rank's, and a twentieth of its
    operation."""
    closed = [point for point in points if point.waiting_factor == 0]
    lone = next((point for point in closed if point.ranks == 1), None)
    if lone is None:
        return False

    def slow(point: Point, op: str) -> bool:
        part, whole = f"{op}.close.q50", f"{op}.q50"
        known = point.has(part) and lone.has(part) and point.has(whole)
        return known and point.value(part) > max(2 * lone.value(part), point.value(whole) / 20)

    return any(slow(point, op) for point in closed for op in point.first.operations)


def _data_behind_others(points: list[Point]) -> bool:
    """At some scale reading and writing, or the one that is measured, wait behind requests that are longer than their
    own, and about as long as operations without data: where all ranks wait for one server with the same request, none
    takes longer than all of theirs together. A full buffer has writes wait alone, a cold cache reads."""
    closed = [point for point in points if point.waiting_factor == 0]
    lone = next((point for point in closed if point.ranks == 1), None)
    if lone is None:
        return False

    def alone(name: str) -> float:
        return lone.value(f"{name}.mean") if lone.has(f"{name}.mean") else math.inf

    def behind(point: Point) -> bool:
        parts = [f"{op}.{part}" for op, part in DATA if op in point.first.operations]
        moving = [name for name in parts if point.has(f"{name}.mean") and alone(name) > NO_REQUEST]
        known = {name: point.value(f"{name}.mean") for name in moving}
        longer = [took - alone(name) for name, took in known.items() if took > BEHIND * point.ranks * alone(name)]
        waits = [
            point.value(f"{op}.mean") - alone(op)
            for op in point.first.operations
            if op not in (*READS, *WRITES) and point.has(f"{op}.mean")
        ]
        least = min(waits, default=0.0)
        alike = least > 0 and AS_LONG * least < min(longer, default=0.0) and AS_LONG * max(longer, default=0.0) < least
        return 0 < len(longer) == len(known) and alike

    return any(behind(point) for point in closed if point.ranks > 1)


def _slower_than_alone(points: list[Point], which: tuple[str, ...]) -> bool:
    closed = [point for point in points if point.waiting_factor == 0]
    lone = next((point for point in closed if point.ranks == 1), None)

    def slower(point: Point, op: str) -> float | None:
        name = f"{op}.q75"
        known = lone is not None and point.has(name) and lone.has(name) and lone.value(name) > 0
        return math.log(point.value(name) / lone.value(name)) if known else None  # type: ignore[union-attr]

    return any(_stands_out({op: slower(point, op) for op in point.first.operations}, which) for point in closed)


def _fills(run: Run) -> bool:
    timeline = run.phases[0].series
    return _stands_out({op: _slowing(line) for op, line in timeline.items() if isinstance(line, dict)}, WRITES)


def _slowing(line: dict[str, list[float | None]]) -> float | None:
    """Logarithm of an operation's mean in the last third of the phase over that in the first."""
    counts, means = (np.array([value or 0 for value in line[key]], dtype=float) for key in ("count", "mean"))
    third = len(counts) // 3
    if third == 0:
        return None
    first, last = (
        float((counts[part] * means[part]).sum() / max(counts[part].sum(), 1))
        for part in (slice(third), slice(-third, None))
    )
    return math.log(last / first) if first > 0 and last > 0 else None


def _stands_out(slower: dict[str, float | None], which: tuple[str, ...]) -> bool:
    known = {op: log for op, log in slower.items() if log is not None}
    those = [log for op, log in known.items() if op in which]
    others = [log for op, log in known.items() if op not in which]
    return bool(those) and max(those) - max([0.0, *others]) > CLEARLY


EVIDENCE: dict[str, Callable[[list[Point]], bool]] = {
    "stall": _stall,
    "shared nodes": _shared_nodes,
    "slow reads": _slow_reads,
    "slow writes": _slow_writes,
    "slow closes": _slow_closes,
    "data behind others": _data_behind_others,
}

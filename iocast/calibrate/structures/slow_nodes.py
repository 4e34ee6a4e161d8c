# SPDX-License-Identifier: Apache-2.0
"""Nodes that differ: every second, third ... client node takes longer for each operation, by time of its own that no
server spends. Ranks' times tell it: those of slow nodes end later than all others, in every run. Where runs don't tell
ranks' times, latencies of a few nodes spread wider than a lone rank's."""

from __future__ import annotations

import numpy as np

from iocast.calibrate.recipe import NO_LIMIT, Option, Parameter
from iocast.calibrate.structures.seen import Seen
from iocast.platforms.documents import Document
from iocast.runs.run_directory import Point, Run

OWN = "own"
"""Station and demand of a node's own time."""
SIGMA = 0.3
"""Of its lognormal law: a round number, about what operations of one kind vary by."""
EVERY = (2, 3, 4, 8)
LONGER = 1.1
"""Mean time of slow nodes' ranks over that of the others, at least, at one scale and more."""
WIDER = 0.3
"""Of a lone rank's mean, by which quartiles must be further apart where nothing else tells nodes apart."""
UNIT = 1e-6
"""Seconds of a fast node's own time; a slow one's is `factor` times that."""


def shown(found: Seen) -> list[Option]:
    """One, if ranks' times tell every second, third ... node from the others."""
    for every in EVERY:
        extra = [gap for point in found.closed if (gap := _gap(point, every)) is not None]
        if extra and min(extra) >= 0 and max(extra) > 0:
            return [_option(found, every, next(gap for gap in extra if gap > 0))]
    return []


def unseen(found: Seen) -> list[Option]:
    """Every second node slower, if runs tell no ranks' times and their latencies at two nodes and more are wide."""
    several = [point for point in found.closed if (point.first.placement[0] or 1) > 1]
    if not several or any(phase.rank_seconds for point in several for run in point.runs for phase in run.phases):
        return []
    fewest = min(several, key=lambda point: point.ranks)
    widths = [
        _width(fewest, tag) - _width(found.single, tag)
        for tag in (found.routes[demand].removeprefix("operations.") for demand in found.laws)
        if all(point.has(f"{tag}.{q}") for point in (fewest, found.single) for q in ("q25", "q75"))
    ]
    mean = float(np.mean(list(found.alone.values())))
    if not widths or np.mean(widths) < WIDER * mean:
        return []
    return [_option(found, 2, float(np.mean(widths)))]


def _width(point: Point, tag: str) -> float:
    """Seconds between the quartiles."""
    return point.value(f"{tag}.q75") - point.value(f"{tag}.q25")


def _gap(point: Point, every: int) -> float | None:
    """Seconds by which an operation is longer on slow nodes, of the run where it is least; 0 where they are slower by
    too little, as where all wait for the server; below it where they are not; None where a run tells nothing of it."""
    gaps = [_gap_of(run, every) for run in point.runs]
    known = [gap for gap in gaps if gap is not None]
    return min(known) if known and len(known) == len(gaps) else None


def _gap_of(run: Run, every: int) -> float | None:
    nodes, per_node = run.placement
    seconds = [phase.rank_seconds for phase in run.phases]
    if nodes < max(every, 2) or any(not one or len(one) != nodes * per_node for one in seconds):
        return None
    times = np.mean(np.array(seconds, dtype=float), axis=0).reshape(nodes, int(per_node)).mean(axis=1)
    slow = (np.arange(nodes) + 1) % every == 0
    if times[slow].mean() < times[~slow].mean():
        return -1.0
    apart = times[slow].min() > times[~slow].max() and times[slow].mean() >= LONGER * times[~slow].mean()
    if not apart or np.sum(slow) < 2:
        return 0.0
    operations = sum(phase.operations or 0 for phase in run.phases) / len(run.phases) / (nodes * per_node)
    return float((times[slow].mean() - times[~slow].mean()) / operations) if operations else 0.0


def _option(found: Seen, every: int, extra: float) -> Option:
    edit: Document = {
        "clients": {"slow_nodes": {"share": 1 / every, "factor": 1.0, "station": OWN}},
        "stations": {OWN: {"per": "node", "servers": NO_LIMIT}},
        "demands": {OWN: {"law": "lognormal", "mean": f"{UNIT:g}s", "sigma": SIGMA}},
    }
    then: Document = {found.routes[demand]: [{"station": OWN, "demand": OWN}] for demand in found.laws}
    factor = Parameter(
        "slow_nodes", "clients.slow_nodes.factor", low=1.0, high=1e6, start=min(max(extra / UNIT, 2.0), 9e5)
    )
    ordinal = {2: "second", 3: "third"}.get(every, f"{every}th")
    return Option(f"every {ordinal} node slower", edit=edit, then=then, parameters=(factor,))

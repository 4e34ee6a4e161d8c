# SPDX-License-Identifier: Apache-2.0
"""A lone rank's mean times on the fitted platform beside the measured ones: what was measured there is service, so that
a difference is time that the model lost or invented."""

from __future__ import annotations

import math

from iocast.records.note_of_measurements import LoneRankOff
from iocast.records.simulated import SimulatedRun
from iocast.runs.run_directory import Point, Run

OFF = 0.1
"""Share of an operation's measured mean, from which on a difference is named."""
SURE = 2.58
"""Standard errors of the difference of two means that it must exceed as well (1 %)."""


def notes(single: Point, simulated: SimulatedRun) -> list[LoneRankOff]:
    """One for each operation whose simulated mean is off, with the part that is off most.

    simulated: run.json of the same question; seconds, arithmetic means over repeats of the phase"""
    found = []
    run = single.first
    for op in run.operations:
        times = _times(single, simulated, op)
        if times is None:
            continue
        measured, model = times
        if abs(model - measured) <= max(OFF * measured, SURE * _error(run, op)):
            continue
        parts = {
            tag: both[1] - both[0]
            for tag in run.tags()
            if tag.startswith(f"{op}.") and (both := _times(single, simulated, tag)) is not None
        }
        part = max(parts, key=lambda tag: abs(parts[tag]), default="")
        most = bool(part) and abs(parts[part]) > abs(model - measured) / 2
        found.append(LoneRankOff(op, measured, model, part if most else ""))
    return found


def _times(single: Point, simulated: SimulatedRun, tag: str) -> tuple[float, float] | None:
    """Mean seconds of an operation or part, measured and simulated; None where one of them is not known."""
    known = [
        p["latency"][tag]
        for p in simulated["phases"]
        if p["name"] == single.first.phase and p["latency"].get(tag, {}).get("count")
    ]
    if not known or not single.has(f"{tag}.mean"):
        return None
    count = sum(one["count"] for one in known)
    return single.value(f"{tag}.mean"), sum(one["count"] * one["mean"] for one in known) / count


def _error(run: Run, op: str) -> float:
    """Standard error of the difference between two means of as many operations, in seconds; 0 where the run has no
    distribution."""
    if op not in run.tags():
        return 0.0
    latencies = run.latencies(op)
    mean, deviation = latencies.moments()
    return math.sqrt(2 / latencies.count) * deviation

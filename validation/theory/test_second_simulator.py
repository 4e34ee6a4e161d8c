# SPDX-License-Identifier: Apache-2.0
"""A second simulator, written apart (second_simulator.py), against iocast-sim where both know the same system, and
against closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sharpness
from intervals import FALSE_ALARM
from scipy.stats import ttest_ind
from second_simulator import OPERATIONS, System, run

PLATFORM = """schema_version: 1
stations:
  mds: {{servers: 4, contention: {contention}}}
{locks}
demands:
  half_trip: {{law: lognormal, mean: 100us, sigma: 0.058}}
  storage: {{law: lognormal, mean: 600us, sigma: 0.4}}
  stat: {{law: lognormal, mean: 400us, sigma: 0.5}}
  read: {{law: lognormal, mean: 500us, sigma: 0.5}}
  unlink: {{law: lognormal, mean: 900us, sigma: 0.5}}
  create: {{law: lognormal, mean: 1ms, sigma: 0.5}}
operations:
  stat: [{{delay: half_trip}}, {{station: mds, demand: stat}}, {{delay: half_trip}}]
  read:
    open: [{{delay: half_trip}}, {{station: mds, demand: read}}, {{delay: half_trip}}, {{delay: storage}}]
    read: []
    close: []
  unlink: [{{delay: half_trip}}, {{station: mds, demand: unlink{lock}}}, {{delay: half_trip}}]
  create:
    open: [{{delay: half_trip}}, {{station: mds, demand: create{lock}}}, {{delay: half_trip}}]
    write: []
    close: []
"""
SEEDS = range(1, 11)


@pytest.mark.parametrize(("name", "factor"), [("plain", 0.0), ("plain", 1.0), ("contention", 0.0), ("journal", 0.0)])
def test_both_simulators_see_the_same(simulate: Callable[..., list[dict[str, Any]]], name: str, factor: float) -> None:
    """Twelve clients at four threads; Welch's test of ten replications each, and 1 % for what the two leave different
    (the first moments of a run)."""
    system = System(
        threads=4, contention=0.05 if name == "contention" else 0.0, journal=0.5 if name == "journal" else 0.0
    )
    platform = PLATFORM.format(
        contention=system.contention,
        locks="locks: {journal: {per: system}}" if system.journal else "",
        lock=f", lock: journal, lock_share: {system.journal}" if system.journal else "",
    )
    theirs = [run(system, 12, 300, factor, seed) for seed in SEEDS]
    ours = simulate(platform, 12, 300, SEEDS, read_only="false", waiting_factor=factor)
    pairs = {"rate": ([o.rate for o in theirs], [p["rate"] for p in ours])}
    for op in OPERATIONS:
        pairs[op] = ([float(np.mean(o.latencies[op])) for o in theirs], [p["latency"][op]["mean"] for p in ours])
    for what, (a, b) in pairs.items():
        interval = ttest_ind(a, b, equal_var=False).confidence_interval(1 - FALSE_ALARM / len(pairs))
        slack = 0.01 * np.mean(b)
        error = float(np.sqrt(np.var(a, ddof=1) / len(a) + np.var(b, ddof=1) / len(b)))
        mean = float(np.mean(b))
        sharpness.shift(
            f"relative difference of {what}", ((interval.high - interval.low) / 2 + slack) / mean, error / mean
        )
        assert interval.low - slack <= 0 <= interval.high + slack, (what, np.mean(a), np.mean(b))


def test_a_lone_client_takes_the_sum() -> None:
    seen = run(System(sigma=0.0), 1, 2000, 0.0, 1)
    assert np.mean(seen.latencies["stat"]) == pytest.approx(4e-4 + 2e-4, rel=0.005)
    assert np.mean(seen.latencies["read"]) == pytest.approx(5e-4 + 2e-4 + 6e-4, rel=0.03)


def test_full_threads_serve_at_their_rate() -> None:
    assert run(System(threads=3), 64, 200, 0.0, 1).rate == pytest.approx(3 / 7e-4, rel=0.03)


def test_a_stall_takes_its_share() -> None:
    """Four clients and more threads: what begins in a stall waits for its end (queueing theory: stall law, share of the
    time lost at most s / P)."""
    quiet = run(System(), 4, 3000, 0.0, 1).rate
    stalled = run(System(stall_every=2.0, stall_length=0.2), 4, 3000, 0.0, 1).rate
    assert 0.87 < stalled / quiet < 0.93

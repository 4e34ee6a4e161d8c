# SPDX-License-Identifier: Apache-2.0
"""Latencies without a lone rank: stretched by Little's law from the nearest measured scale."""

import math
from typing import Any

import pytest

from iocast.rules import growth
from iocast.forecasts import stretched


def _point(ranks: int, rate: float, q50: float, waiting_factor: float = 0.0) -> dict[str, Any]:
    known = {"mean": 1.2 * q50, "q50": q50, "q75": 1.5 * q50, "q95": 3 * q50, "q99": 5 * q50}
    return {
        "ranks": ranks,
        "nodes": ranks,
        "rate": rate,
        "waiting_factor": waiting_factor,
        "latency": {"create": known},
    }


def _grown(points: list[dict[str, Any]], ranks: int) -> growth.Forecast:
    measured = [growth.Measured(p["ranks"], 1, math.log(p["rate"])) for p in points]
    return growth.forecast(measured, growth.Placement(ranks, 1))


TARGET = growth.Placement(128, 1)
SATURATED = [_point(8, 1000.0, 0.008), _point(16, 1000.0, 0.016), _point(32, 1000.0, 0.032)]


def test_latencies_keep_littles_law_beside_the_forecast_rate() -> None:
    found = _grown(SATURATED, 128)
    for which, quantile in (("q50", 0.032), ("q99", 0.160)):
        own = stretched.latencies(SATURATED, TARGET, found, [0.0], 0.9)[f"create.{which}"]
        assert own["value"] == pytest.approx(quantile * 4 * 1000 / math.exp(found.value))
        assert own["low"] < own["value"] < own["high"]


def test_think_times_count_as_ranks_outside() -> None:
    """Half of the ranks think: the question is that of half as many."""
    thinking = [
        _point(2 * p["ranks"], p["rate"], p["latency"]["create"]["q50"], 1.0) | {"nodes": p["nodes"]} for p in SATURATED
    ]
    found = _grown(SATURATED, 128)
    here = stretched.latencies(SATURATED, TARGET, found, [0.0], 0.9)
    there = stretched.latencies(thinking, TARGET, found, [0.0], 0.9)
    assert here["create.q75"] == pytest.approx(there["create.q75"])


def test_an_edit_that_doubles_the_rate_halves_latencies() -> None:
    found = _grown(SATURATED, 128)
    plain, edited = (stretched.latencies(SATURATED, TARGET, found, [c], 0.9)["create.q95"] for c in (0.0, math.log(2)))
    for key in ("value", "low", "high"):
        assert edited[key] == pytest.approx(plain[key] / 2)


def test_intervals_widen_with_what_measured_scales_missed_of_each_other() -> None:
    found = _grown(SATURATED, 128)
    odd = [_point(p["ranks"], p["rate"], q50) for p, q50 in zip(SATURATED, (0.002, 0.03, 0.032))]
    steady, spread = (
        stretched.latencies(points, TARGET, found, [0.0], 0.9)["create.q50"] for points in (SATURATED, odd)
    )
    assert spread["value"] == pytest.approx(steady["value"])
    assert spread["high"] / spread["low"] > 1.3 * steady["high"] / steady["low"]


def test_rates_without_latencies_have_none() -> None:
    bare = [{**p, "latency": {}} for p in SATURATED]
    assert stretched.latencies(bare, TARGET, _grown(bare, 128), [0.0], 0.9) == {}


def _served(nodes: int, ranks_per_node: int) -> dict[str, Any]:
    """Half of the operations wait for as many others as there are nodes, one in a hundred for all ranks."""
    known = {"q50": 1e-3 + 2e-4 * nodes, "q99": 5e-4 * nodes * ranks_per_node}
    return {
        "ranks": nodes * ranks_per_node, "nodes": nodes, "rate": 4000.0, "waiting_factor": 0.0,
        "latency": {"create": known},
    }  # fmt: skip


def test_medians_follow_nodes_and_tails_follow_ranks_where_both_were_measured() -> None:
    """The nearest number of ranks, 10 x 30, has the tail of 25 x 10 and not its median."""
    points = [_served(*place) for place in ((5, 10), (10, 10), (10, 20), (10, 30))]
    target, truth = growth.Placement(25, 10), _served(25, 10)["latency"]["create"]
    measured = [growth.Measured(p["nodes"], p["ranks"] / p["nodes"], math.log(p["rate"])) for p in points]
    own = stretched.latencies(points, target, growth.forecast(measured, target), [0.0], 0.9)
    assert own["create.q50"]["value"] == pytest.approx(truth["q50"], rel=0.3)
    assert own["create.q99"]["value"] == pytest.approx(truth["q99"], rel=0.15)
    by_ranks = [point for point in points if point["ranks"] == 300]
    far = stretched.latencies(by_ranks, target, growth.forecast(measured, target), [0.0], 0.9)["create.q50"]["value"]
    assert abs(math.log(far / truth["q50"])) > 2 * abs(math.log(own["create.q50"]["value"] / truth["q50"]))


@pytest.mark.parametrize("nodes", [3, 5, 9])
def test_quantiles_of_different_scales_do_not_cross(nodes: int) -> None:
    """The tail of many ranks is short, that of few nodes long; each quantile has a scale of its own."""
    few = _point(20, 1000.0, 0.01) | {"nodes": 2}
    many = _point(40, 4000.0, 0.004) | {"nodes": 10}
    for point, tail in ((few, (0.015, 0.05, 0.06)), (many, (0.006, 0.009, 0.010))):
        point["latency"] = {
            "create": dict(zip(("q50", "q75", "q95", "q99"), (point["latency"]["create"]["q50"], *tail)))
        }
    measured = [growth.Measured(2, 10, math.log(1000)), growth.Measured(10, 4, math.log(4000))]
    target = growth.Placement(nodes, 10)
    own = stretched.latencies([few, many], target, growth.forecast(measured, target), [0.0], 0.9)
    for end in ("low", "value", "high"):
        rising = [own[f"create.{which}"][end] for which in ("q50", "q75", "q95", "q99")]
        assert rising == sorted(rising), end


def test_an_edit_changes_latencies_by_the_law_as_much_as_stretched_ones() -> None:
    points = [_served(*place) for place in ((5, 10), (10, 10), (10, 20))]
    target = growth.Placement(20, 10)
    measured = [growth.Measured(p["nodes"], p["ranks"] / p["nodes"], math.log(p["rate"])) for p in points]
    found = growth.forecast(measured, target)
    plain, edited = (stretched.latencies(points, target, found, [c], 0.9)["create.q50"] for c in (0.0, math.log(2)))
    assert edited["value"] == pytest.approx(plain["value"] / 2)
    assert plain["low"] < plain["value"] < plain["high"]

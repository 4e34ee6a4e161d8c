# SPDX-License-Identifier: Apache-2.0
"""The simple forecasts on data whose answer is known."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import systems

from iocast.rules.baselines import BASELINES, Point, _least, closed_queue, forecast, universal_scalability_law
from iocast.errors import InputError

SCALES = (1, 2, 4, 8, 16)


def queue_point(ranks: int, service: float = 1e-3, count: int = 4, delay: float = 2e-3) -> Point:
    """What M/M/c//N would have measured: the delay is inside the operation."""
    rates = np.minimum(np.arange(1, ranks + 1), count) / service
    rate = systems.repairman_throughput(ranks, rates, delay)
    spread = {"q50": 0.9, "q75": 1.2, "q95": 2.0, "q99": 3.0, "max": 5.0}
    stat = {name: factor * ranks / rate for name, factor in spread.items()} | {
        "mean": ranks / rate,
        "count": 1000.0 * ranks,
    }
    return Point(ranks, 0.0, rate, {"stat": stat})


POINTS = [queue_point(n) for n in SCALES]


def test_all_answer_in_the_same_keys() -> None:
    keys = {"rate", *(f"stat.{q}" for q in ("q50", "q75", "q95", "q99", "max"))}
    for factor in (0.0, 4.0):
        for name, printed in forecast(POINTS, 256, factor).items():
            assert printed.keys() == keys, name


def test_closed_queue_finds_the_queue() -> None:
    """16 times the ranks, with and without thinking: the rate is that of the queue that made the points."""
    for factor in (0.0, 4.0):
        truth = queue_point(256).rate if factor == 0 else None
        printed = closed_queue(POINTS, 256, factor)
        if truth is not None:
            assert printed["rate"] == pytest.approx(truth, rel=1e-4)
        high, low = printed["stat.q95"], printed["stat.q50"]
        assert isinstance(high, float) and isinstance(low, float) and high > low
    assert closed_queue(POINTS, 16)["stat.q95"] == pytest.approx(POINTS[-1].operations["stat"]["q95"], rel=1e-6)
    grown = closed_queue(POINTS, 256)["stat.q50"]
    assert isinstance(grown, float)
    # Saturated, the response is N/X whatever its law; the medians' ratio is that of the means but for their shapes.
    assert grown / POINTS[-1].operations["stat"]["q50"] == pytest.approx(
        (256 / 4000) / (16 / POINTS[-1].rate), rel=0.25
    )


@pytest.mark.parametrize("count", [3, 6, 24])
def test_closed_queue_finds_any_number_of_servers(count: int) -> None:
    points = [queue_point(n, count=count) for n in (*SCALES, *((32, 64, 128) if count > 7 else ()))]
    assert closed_queue(points, 512)["rate"] == pytest.approx(queue_point(512, count=count).rate, rel=1e-4)


@pytest.mark.parametrize("most", [1, 2, 3, 16, 17, 100, 1000])
def test_no_number_of_servers_is_left_out(most: int) -> None:
    for best in {1, min(2, most), most // 2 or 1, most - 1 or 1, most}:
        assert _least(lambda c, best=best: (math.log(c / best)) ** 2, most) == best  # type: ignore[misc]
    assert _least(lambda c: 0.0, most) == 1, "of those that tie the smallest"


THINK = 5e-3


def thinking_point(ranks: int) -> Point:
    """M/M/4//N whose ranks think outside of the operation: Little's law gives the response."""
    rate = systems.repairman_throughput(ranks, np.minimum(np.arange(1, ranks + 1), 4) / 1e-3, 2e-3 + THINK)
    response = ranks / rate - THINK
    return Point(ranks, 0.0, rate, {"stat": {"q50": 0.7 * response, "mean": response, "count": 1000.0 * ranks}}, THINK)


def test_think_time_is_outside_of_the_operations() -> None:
    """On a queue whose ranks think, where it is saturated: rates and response times of the truth, not those of ranks
    that never think."""
    points, truth = [thinking_point(n) for n in (1, 2, 4, 8, 16, 32, 64)], thinking_point(256)
    printed = forecast(points, 256, 0.0, THINK)
    for name, rate in (("closed M/M/c", 1e-4), ("last value", 0.02)):
        assert printed[name]["rate"] == pytest.approx(truth.rate, rel=rate), name
        assert printed[name]["stat.q50"] == pytest.approx(truth.operations["stat"]["q50"], rel=0.05), name
    # The curve is one over concurrency: as many ranks inside an operation as here, that never think, have the same
    # rate.
    rate = printed["universal scalability law"]["rate"]
    assert isinstance(rate, float)
    same = universal_scalability_law(points, 1, 1 / (256 - rate * THINK) - 1)["rate"]
    assert same == pytest.approx(rate, rel=1e-6)
    low, high = printed["asymptotic bounds"]["rate"]  # type: ignore[misc]
    assert low <= truth.rate * (1 + 1e-9) and truth.rate <= high
    # Where nobody is in anybody's way, all rules say that ranks go on as one.
    few = [thinking_point(n) for n in (1, 2)]
    for name, answer in forecast(few, 3, 0.0, THINK).items():
        if name not in ("last value", "asymptotic bounds"):
            assert answer["rate"] == pytest.approx(thinking_point(3).rate, rel=0.02), name
    with pytest.raises(InputError, match="think all the time"):
        forecast([Point(1, 0.0, 300.0, {}, THINK), points[1]], 64)


def test_scalability_law_finds_its_own_curve() -> None:
    def law(n: float) -> float:
        return 500 * n / (1 + 0.05 * (n - 1) + 1e-3 * n * (n - 1))

    points = [Point(n, 0.0, law(n), POINTS[0].operations) for n in SCALES]
    assert universal_scalability_law(points, 128)["rate"] == pytest.approx(law(128), rel=0.01)


def test_bounds_contain_the_truth() -> None:
    low, high = forecast(POINTS, 256)["asymptotic bounds"]["rate"]  # type: ignore[misc]
    assert low <= queue_point(256).rate * (1 + 1e-9) and queue_point(256).rate <= high


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7, 16, 31, 32, 64, 1000])
def test_bounds_contain_the_truth_at_and_between_measured_scales(ranks: int) -> None:
    """Also where the requested ranks are fewer than those of the highest measured rate; of other waiting factors than
    were measured there are none."""
    low, high = forecast(POINTS, ranks)["asymptotic bounds"]["rate"]  # type: ignore[misc]
    assert low <= queue_point(ranks).rate * (1 + 1e-9) and queue_point(ranks).rate <= high * (1 + 1e-9)
    assert low <= high
    measured = [p.rate for p in POINTS if p.ranks == ranks]
    if measured:
        assert low >= measured[0] * (1 - 1e-9)
    assert "asymptotic bounds" not in forecast(POINTS, ranks, 4.0)


def test_bounds_that_a_measurement_breaks_are_none() -> None:
    """A rate that falls, or grows faster than its ranks, is that of no system the bounds are of."""
    rates = {1: 1000.0, 2: 1900.0, 4: 3000.0}
    for more, bounded in (({8: 3500.0}, True), ({8: 2900.0}, True), ({8: 2500.0}, False), ({8: 9000.0}, False)):
        points = [Point(n, 0.0, rate, {}) for n, rate in (rates | more).items()]
        assert ("asymptotic bounds" in forecast(points, 64)) is bounded, more


def test_thinking_is_concurrency() -> None:
    """N ranks that think T times their response are N/(1+T) that don't, for the curves."""
    for name in ("universal scalability law", "straight line", "last value"):
        assert BASELINES[name](POINTS, 160, 4.0)["rate"] == pytest.approx(BASELINES[name](POINTS, 32, 0.0)["rate"])


@pytest.mark.parametrize("count", [2, 3])
def test_few_points_are_enough(count: int) -> None:
    for printed in forecast(POINTS[:count], 64).values():
        assert all(np.all(np.isfinite(value)) for value in printed.values())


@pytest.mark.parametrize("name", [name for name in BASELINES if name != "closed M/M/c"])
def test_a_rule_answers_whatever_was_measured(name: str) -> None:
    """Rates of a system that grows, collapses or is disturbed, of ranks that think or not. A rule may fall to
    nothing."""
    draws = np.random.default_rng(4)
    for _ in range(200):
        ranks = np.sort(draws.choice([1, 2, 4, 8, 16, 64, 400], draws.integers(2, 5), replace=False))
        rates = 10 ** draws.uniform(-2, 5) * 10 ** draws.normal(0, draws.choice([0.05, 0.5, 2]), len(ranks))
        points = [
            Point(int(n), factor, rate, {"stat": {"mean": n / rate, "q99": 3 * n / rate}}, think)
            for n, rate in zip(ranks, rates.tolist(), strict=True)
            for factor, think in [(draws.choice([0.0, 4.0]), draws.choice([0.0, 0.3 * n / rate]))]
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of fits to what no curve fits
            answer = BASELINES[name](points, 100_000, draws.choice([0.0, 1.0]), draws.choice([0.0, 1e-6, 10.0]))
        if name == "asymptotic bounds" and not answer:
            continue  # of points with other waiting factors, or that break them
        assert np.all(np.asarray(answer["rate"]) >= 0), (points, answer)
        if name == "universal scalability law":  # its curve is above zero everywhere
            assert answer["rate"] > 0, (points, answer)


def test_one_scale_has_its_value_and_bounds() -> None:
    printed = forecast([POINTS[0], POINTS[0]], 64)
    assert set(printed) == {"last value", "asymptotic bounds"}
    assert printed["last value"]["rate"] == pytest.approx(POINTS[0].rate)
    with pytest.raises(InputError, match="two or more"):
        closed_queue(POINTS[:1], 64)

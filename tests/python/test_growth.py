# SPDX-License-Identifier: Apache-2.0
"""Curves of growth: forecasts of rates from rates alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from iocast.rules import growth
from iocast.rules.growth import Measured, Placement

Table = list[tuple[int, int, float]]


def measured(table: Table) -> list[Measured]:
    return [Measured(nodes, ranks, math.log(rate)) for nodes, ranks, rate in table]


PROPORTIONAL: Table = [(1, 36, 5e3), (2, 36, 10e3), (4, 36, 20e3), (8, 36, 40e3)]
SCATTERED: Table = [(1, 36, 5e3), (2, 36, 9e3), (4, 36, 22e3), (8, 36, 36e3)]
SATURATING: Table = [(1, 36, 5e3), (2, 36, 9e3), (4, 36, 14e3), (8, 36, 18e3)]


@pytest.mark.parametrize(
    ("table", "target", "low", "value", "high"),
    [
        ([(10, 16, 50e3)], (40, 16), 40210, 83340, 199500),
        ([(10, 16, 50e3)], (100, 8), 26640, 90490, 391300),
        (PROPORTIONAL, (16, 36), 48300, 74150, 130200),
        (PROPORTIONAL, (64, 36), 85500, 209100, 462400),
        (SATURATING, (16, 36), 14350, 21790, 39290),
        (SATURATING, (64, 36), 15410, 28040, 66130),
        ([(1, 1, 1e3), (2, 1, 2e3)], (8, 1), 4395, 7491, 14050),
        ([(1, 1, 1e3), (2, 1, 2e3)], (8, 16), 10220, 53060, 171300),
        ([(1, 1, 10e3), (1, 2, 19e3)], (1, 4), 17820, 29530, 54420),
        ([(1, 1, 10e3), (1, 2, 19e3)], (1, 8), 16760, 36640, 82920),
    ],
)
def test_the_rule_has_the_values_of_an_independent_implementation(
    table: Table, target: tuple[int, int], low: float, value: float, high: float
) -> None:
    """Rates a second, to the four digits that are given."""
    found = growth.forecast(measured(table), Placement(*target))
    assert np.exp([*found.interval(0.9), found.value]) == pytest.approx([low, high, value], rel=6e-4)


def test_the_unit_of_the_rates_scales_the_answer_and_nothing_else() -> None:
    """Several scales: curves know of no unit. One scale: the exponent follows from the time of an operation, which
    bytes don't have."""
    for table in (PROPORTIONAL, SATURATING):
        thousand = [(nodes, ranks, 1000 * rate) for nodes, ranks, rate in table]
        one, other = (growth.forecast(measured(t), Placement(64, 36)) for t in (table, thousand))
        assert other.value - one.value == pytest.approx(math.log(1000)) and one.falls == pytest.approx(other.falls)
    one, other = (
        growth.forecast(measured([(10, 16, rate)]), Placement(40, 16), operations=False) for rate in (5e3, 5e9)
    )
    assert other.value - one.value == pytest.approx(math.log(1e6))


def test_order_of_the_measurements_changes_nothing() -> None:
    one, other = (growth.forecast(measured(table), Placement(64, 36)) for table in (SATURATING, SATURATING[::-1]))
    assert one.value == pytest.approx(other.value) and one.interval(0.9) == pytest.approx(other.interval(0.9))


def test_every_measurement_and_the_target_change_the_answer() -> None:
    base = growth.forecast(measured(SATURATING), Placement(64, 36)).value
    for number, (nodes, ranks, rate) in enumerate(SATURATING):
        changed = [*SATURATING[:number], (nodes, ranks, 1.3 * rate), *SATURATING[number + 1 :]]
        assert abs(growth.forecast(measured(changed), Placement(64, 36)).value - base) > 0.005
    assert growth.forecast(measured(SATURATING), Placement(128, 36)).value != base
    assert growth.forecast(measured(SATURATING), Placement(64, 18)).value != base


def test_repeats_narrow_the_interval_and_a_wider_level_widens_it() -> None:
    once = measured(SCATTERED)
    often = [Measured(m.nodes, m.ranks_per_node, m.log_rate, 5, 0.01**2) for m in once]

    def width(fitted: list[Measured], level: float) -> float:
        low, high = growth.forecast(fitted, Placement(16, 36)).interval(level)
        return high - low

    assert width(often, 0.9) < width(once, 0.9) < width(once, 0.99)


def test_rates_without_scatter_are_followed_closely_and_others_are_not() -> None:
    """Proportional growth is forecast as that, and surer than growth with scatter about it."""

    def at_four_times(table: Table) -> growth.Forecast:
        return growth.forecast(measured(table), Placement(4 * table[-1][0], table[-1][1]))

    exact = at_four_times([(nodes, 1, 1e3 * nodes) for nodes in (1, 2, 4, 8, 16)])
    assert abs(math.expm1(exact.value - math.log(64e3))) < 0.15
    low, high = exact.interval(0.9)
    assert low < math.log(64e3) < high
    widths = [high - low for low, high in (at_four_times(t).interval(0.9) for t in (PROPORTIONAL, SCATTERED))]
    assert widths[0] < 0.9 * widths[1]


@pytest.mark.parametrize("servers", [1, 2, 4])
@pytest.mark.parametrize("clients", [64, 256])
def test_quiet_rates_that_level_off_are_continued_level(servers: int, clients: int) -> None:
    """Rates of a full server of 1, 2 and 4 threads at up to 16 ranks, without scatter: the asymptote is 1,000/s each.
    The value is nearer than 15 %, whatever a thinking rank adds, and the interval holds the truth."""

    def rate(ranks: float) -> float:
        return 1000 * servers * ranks / (ranks**3 + servers**3) ** (1 / 3)

    fitted = measured([(n, 1, rate(n)) for n in (1, 2, 4, 8, 16)])
    thinking = [Measured(n, 0.5, math.log(rate(n / 2))) for n in (4, 16)]
    for points in (fitted, fitted + thinking):
        found = growth.forecast(points, Placement(clients, 1))
        low, high = found.interval(0.9)
        assert abs(math.expm1(found.value - math.log(rate(clients)))) < 0.15
        assert low < math.log(rate(clients)) < high


def test_a_thinking_rank_counts_for_less() -> None:
    """The rate at waiting factor T is that of N / (1 + T) ranks that never think."""
    thinking = [Measured(nodes, ranks / 4, math.log(rate)) for nodes, ranks, rate in PROPORTIONAL]
    fewer = [Measured(nodes, ranks // 4, math.log(rate)) for nodes, ranks, rate in PROPORTIONAL]
    assert growth.forecast(thinking, Placement(16, 9)).value == pytest.approx(
        growth.forecast(fewer, Placement(16, 9)).value
    )


def test_the_alarm_is_of_residuals_that_noise_does_not_explain() -> None:
    """Curves of the population itself, with the noise that one run is taken to have: at most one table in twenty raises
    it."""
    generator = np.random.default_rng(3)
    places = [Placement(n, 16) for n in (1, 2, 4, 8, 16)]
    truths = growth.curves(places, single=False)[generator.choice(growth.CURVES, 200, replace=False)]
    alarms = 0
    for truth in truths:
        noisy = truth + growth.NOISE * generator.standard_normal(len(places))
        fitted = [Measured(p.nodes, p.ranks_per_node, float(log)) for p, log in zip(places, noisy, strict=True)]
        alarms += any(alarm for _, alarm in growth.residuals(fitted))
    assert alarms <= 10
    collapse = measured([(1, 1, 1000), (2, 1, 2000), (4, 1, 4000), (8, 1, 8000), (16, 1, 800)])
    assert [alarm for _, alarm in growth.residuals(collapse)] == [False, False, False, True, True]

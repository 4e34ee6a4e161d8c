# SPDX-License-Identifier: Apache-2.0
"""A forecast is blended with simple rules where these were better at the held-out scale, and only there; no forecast is
above what concave growth allows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom

import sharpness
from iocast.records.note import RulesSilent
from iocast.wording.notes import sentence
from iocast.rules import blend
from iocast.rules.baselines import Point, _throughput
from iocast.rules.blend import CALIBRATED, HALF, LAST, POPULATION, QUEUE, Backtest, Question
from iocast.calibrate.reading import NOISE_KINDS
from iocast.rules.applied import Rules, changed

QUIET = dict.fromkeys(NOISE_KINDS, 0.01)


def queue(ranks: int, servers: int = 4, scale: float = 1.0) -> tuple[Point, int]:
    """Exact rates of a closed M/M/c queue with 1 ms of service and 0.2 ms of delay; a rank a node."""
    rate = scale * _throughput(ranks, 1e-3, 2e-4, servers)
    mean = ranks / rate
    return Point(ranks, 0.0, rate, {"stat": {"mean": mean, "q50": 0.8 * mean, "q95": 2 * mean, "count": 1000}}), ranks


def backtest(off: float, latency_off: float = 0.0, noise: dict[str, float] = QUIET, scale: float = 1.0) -> Backtest:
    """A platform fitted to 1, 2, 4 and 8 ranks that is off at 16 by these logarithms."""
    held, nodes = queue(16, scale=scale)
    rows = [
        {"point": "n16", "quantity": "rate", "measured": held.rate, "forecast": held.rate * math.exp(off), "runs": 1}
    ]
    rows += [
        {
            "point": "n16",
            "quantity": f"stat.{q}",
            "measured": held.operations["stat"][q],
            "forecast": held.operations["stat"][q] * math.exp(latency_off),
            "runs": 1,
        }
        for q in ("q50", "q95")
    ]
    return Backtest.of([queue(n, scale=scale) for n in (1, 2, 4, 8)], [("n16", Question(16, nodes))], rows, noise)


def test_a_platform_that_no_rule_beats_is_left_as_it_is() -> None:
    known = backtest(0.02, 0.02).document(stranger=False)
    assert [known[group]["weights"] for group in blend.GROUPS] == [{CALIBRATED: 1.0}] * 2
    assert blend.note_of(known) is None
    # Within the noise of a measurement a rule is not better.
    assert backtest(0.15, noise=dict.fromkeys(NOISE_KINDS, 0.15)).favoured("rate") is None


@pytest.mark.parametrize("off", [0.3, -0.3])
def test_the_rule_that_was_right_gets_weight(off: float) -> None:
    test = backtest(off)
    weights = test.weights("rate", stranger=False)
    assert test.favoured("rate") == QUEUE and sum(weights.values()) == pytest.approx(1)
    assert weights[QUEUE] == max(weights.values()) and weights[CALIBRATED] < 0.5
    worse = backtest(2 * off).weights("rate", stranger=False)
    assert worse[CALIBRATED] < weights[CALIBRATED] and worse[QUEUE] > weights[QUEUE]
    note = blend.note_of(test.document(stranger=False))
    assert note is not None
    reported = sentence(note)
    assert QUEUE in reported and f"{100 * weights[QUEUE]:.0f} %" in reported
    assert "mostly that of simple rules" in reported


@pytest.mark.parametrize(("noise", "least", "most"), [(0.01, 4.0, math.inf), (0.2, 1.0, 1.5)])
def test_a_rule_that_was_right_has_weight_over_one_that_was_off(noise: float, least: float, most: float) -> None:
    """Rules off by 0.3 and 10 % at twice the measured scale, alike beforehand: the first has several times the weight
    of the second, unless the noise of a measurement explains both."""
    test = backtest(0.3, noise=dict.fromkeys(NOISE_KINDS, noise))
    test.errors["rate"] |= {QUEUE: [0.003], LAST: [0.1]}
    weights = test.weights("rate", stranger=True)
    assert least < weights[QUEUE] / weights[LAST] < most


def test_curves_of_single_machines_are_silent_of_a_single_client_of_servers() -> None:
    """They fall, since a machine's processes compete for its cores; a client's servers have cores of their own."""
    on_one_node = [(queue(n)[0], 1) for n in (1, 2, 4, 8)]
    for target, points in ((Question(64, 1), on_one_node), (Question(64, 64), [queue(n) for n in (1, 2, 4, 8)])):
        found = [blend.candidates(points, target, own_storage) for own_storage in (True, False)]
        assert (POPULATION in found[0]) and (POPULATION in found[1]) == (target.nodes > 1)
        assert found[0][LAST] == found[1][LAST]


def test_the_unit_of_time_does_not_matter() -> None:
    """Rates ten times as high, latencies a tenth: the same weights."""
    assert backtest(0.3).weights("rate", stranger=False)[LAST] == pytest.approx(
        backtest(0.3, scale=10).weights("rate", stranger=False)[LAST], rel=0.02
    )


QUANTITIES, NOISE, DRAWS, FALSE_ALARM = 32, 0.1, 300, 1e-4


def favoured_in(platform: float, rule: float, signs: str) -> int:
    """Number of draws in which a rule is favoured, of platforms and rules that are off by these logarithms in many
    quantities, each measured with noise of its own. signs: of the errors, "alike", "opposite" or "random"; or "normal",
    errors of these deviations."""
    generator = np.random.default_rng(3)
    names = [f"op{i}.q50" for i in range(QUANTITIES)]

    def off(size: float, other: bool) -> np.ndarray:
        if signs == "normal":
            return size * generator.standard_normal(QUANTITIES)
        if signs == "random":
            return size * generator.choice([-1, 1], QUANTITIES)
        return np.full(QUANTITIES, -size if other and signs == "opposite" else size)

    found = 0
    for _ in range(DRAWS):
        measured = np.exp(NOISE * generator.standard_normal(QUANTITIES))
        forecast, its = np.exp(off(platform, False)), np.exp(off(rule, True))
        rows = [
            {"point": "n16", "quantity": name, "measured": m, "forecast": f}
            for name, m, f in zip(names, measured, forecast, strict=True)
        ]
        rows.append({"point": "n16", "quantity": "rate", "measured": 1.0, "forecast": 1.0})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(blend, "candidates", lambda *_, its=its: {LAST: dict(zip(names, its.tolist(), strict=True))})
            test = Backtest.of(
                [queue(1), queue(8)], [("n16", Question(16, 16))], rows, dict.fromkeys(NOISE_KINDS, NOISE)
            )
        favoured = test.favoured("latency") is not None
        assert favoured == (test.weights("latency", stranger=False).get(LAST, 0.0) > 0.5)
        found += favoured
    return found


@pytest.mark.parametrize("signs", ["alike", "opposite", "random", "normal"])
def test_a_rule_that_is_twice_as_good_is_favoured_and_no_other(signs: str) -> None:
    """Means of many errors are compared with the noise of such means; a safeguard that can fire."""
    least, most = (int(binom.ppf(p, DRAWS, share)) for p, share in ((FALSE_ALARM, 0.9), (1 - FALSE_ALARM, 0.05)))
    sharpness.fewer_than("a better rule is favoured", least, DRAWS)
    sharpness.more_than("a rule that is no better is favoured", most, DRAWS)
    assert favoured_in(0.2, 0.08, signs) >= least
    assert favoured_in(0.08, 0.2, signs) <= most
    assert favoured_in(0.08, 0.08, signs) <= most


def test_what_smaller_scales_left_open_is_no_error_unless_something_else_is_wrong() -> None:
    """What was held out settles it. A stranger's platform has no such excuse."""
    test = backtest(0.3)
    assert test.favoured("rate") == QUEUE
    test.open["rate"][:] = [0.3]
    assert test.favoured("rate") is None and test.because("rate", stranger=False) is None
    assert test.favoured("rate", stranger=True) == QUEUE


def test_a_missed_scale_or_an_alarm_makes_a_blend_though_no_rule_was_better() -> None:
    """Of a platform that stays the best candidate most of the forecast is its own."""
    test = backtest(0.06)
    test.errors["rate"] = {name: [0.1] for name in test.errors["rate"]} | {CALIBRATED: [0.06]}
    assert test.favoured("rate") is None and test.because("rate", False) == blend.MISSED
    test.errors["rate"][CALIBRATED] = [0.005]
    assert test.because("rate", False) is None and test.because("rate", True) == blend.ALARM
    for stranger in (False, True):
        note = blend.note_of({"rate": {"weights": {CALIBRATED: 0.7, LAST: 0.3}, "because": blend.ALARM}})
        assert note is not None
        assert "a blend with simple rules" in sentence(note) and blend.ALARM in sentence(note), stranger


def quantities(rate: float, q50: float) -> dict[str, Any]:
    return {
        "rate": {"value": rate, "low": rate / 1.1, "high": rate * 1.1},
        "stat.q50": {"value": q50, "low": q50 / 1.2, "high": q50 * 1.2},
    }


def mixed(rate_off: float, level: float = 0.9) -> tuple[dict[str, blend.Blended], dict[str, blend.Values], float]:
    points = [queue(n) for n in (1, 2, 4, 8, 16)]
    requested = Question(64, 64)
    truth = queue(64)[0]
    printed = blend.candidates(points, requested)
    known = backtest(rate_off).document(stranger=False)
    return (
        blend.blended(
            known,
            quantities(truth.rate * math.exp(rate_off), 0.8 * 64 / truth.rate),
            printed,
            requested,
            16,
            QUIET,
            level,
        ),
        printed,
        truth.rate,
    )


def test_a_blend_lies_between_its_parts_and_nearer_the_truth() -> None:
    found, printed, truth = mixed(0.5)
    rate = found["rate"]
    assert abs(math.log(rate.value / truth)) < 0.5
    parts = [math.exp(0.5) * truth, *(values["rate"] for values in printed.values())]
    assert min(parts) < rate.value < max(parts)
    assert (
        rate.low is not None
        and rate.high is not None
        and rate.low < rate.value < rate.high
        and rate.low < truth < rate.high
    )
    narrow = mixed(0.5, level=0.5)[0]["rate"]
    assert narrow.low is not None and narrow.high is not None and rate.low < narrow.low < narrow.high < rate.high


def test_latencies_follow_the_blended_rate() -> None:
    """No rule was better in latencies, so that they change with the mean response alone (Little)."""
    found, _, truth = mixed(0.5)
    assert found["stat.q50"].value == pytest.approx(0.8 * 64 / truth * math.exp(0.5) * truth / found["rate"].value)


def test_the_quantile_of_a_mixture() -> None:
    assert blend._quantile([(1.0, 2.0, 0.3, 0.3)], 0.95) == pytest.approx(2 + 0.3 * float(ndtri(0.95)), abs=1e-4)
    two = [(0.5, 0.0, 0.1, 0.1), (0.5, 5.0, 0.1, 0.1)]
    assert blend._quantile(two, 0.25) == pytest.approx(0.0, abs=1e-3) and blend._quantile(two, 0.75) == pytest.approx(
        5.0, abs=1e-3
    )


@pytest.mark.parametrize("servers", [1, 3, 8, 16, 64])
def test_closed_queues_never_exceed_the_ceiling(servers: int) -> None:
    points = [queue(n, servers) for n in (1, 2, 4, 8, 16)]
    for ranks in (16, 32, 64, 256):
        assert _throughput(ranks, 1e-3, 2e-4, servers) <= blend.ceiling(points, Question(ranks, ranks), 0.0) * (
            1 + 1e-9
        )
    assert blend.ceiling(points, Question(64, 64), 0.05) > blend.ceiling(points, Question(64, 64), 0.0)


@pytest.mark.parametrize("low", [0.3, 1.2, 3.0])
def test_a_rate_above_the_ceiling_keeps_its_doubt(low: float) -> None:
    """Also where its whole interval lies above. Latencies are longer by as much as the rate is lower (Little)."""
    rules = Rules({}, [queue(8), queue(16)], Question(64, 64), QUIET, 1000.0)
    rate = {"value": 4000.0, "low": 4000.0 * low / 4, "high": 8000.0}
    found, sentence = rules.apply({"rate": rate, "stat.q50": {"value": 1e-3, "low": 5e-4, "high": 2e-3}}, 0.9)
    assert sentence and found["rate"]["value"] == found["rate"]["high"] == 1000.0
    assert found["rate"]["low"] == pytest.approx(1000.0 * low / 4)
    assert found["stat.q50"]["value"] / 1e-3 == pytest.approx(4.0)


def test_nodes_that_bring_something_of_their_own_have_no_ceiling() -> None:
    shared = [(point, 1) for point, _ in (queue(n) for n in (1, 2, 4, 8))]
    assert blend.ceiling(shared, Question(64, 8), 0.0) == math.inf
    assert math.isfinite(blend.ceiling(shared, Question(64, 1), 0.0))
    assert blend.ceiling([(point, 0) for point, _ in shared], Question(64, 0), 0.0) == math.inf


def test_rules_are_silent_where_they_know_nothing() -> None:
    """Without nodes there are no curves of growth; they and a think time don't go together."""
    without = [(point, 0) for point, _ in (queue(n) for n in (1, 2, 4))]
    assert set(blend.candidates(without, Question(16, 0))) == {QUEUE, LAST, HALF}
    assert POPULATION in blend.candidates([queue(n) for n in (1, 2, 4)], Question(16, 16))


@pytest.mark.parametrize(
    ("places", "target", "speak"),
    [
        (((1, 1), (2, 1), (4, 1), (4, 4)), (1, 32), False),  # ranks of one node: one placement
        (((1, 1), (2, 1), (4, 1), (4, 4)), (8, 4), False),  # four ranks a node: one placement
        (((1, 1), (2, 1), (4, 1), (4, 4)), (8, 2), False),  # neither
        (((1, 1), (2, 1), (4, 1), (4, 4)), (8, 1), True),
        (((1, 1), (2, 1), (4, 1), (4, 4)), (4, 16), True),
    ],
)
def test_rules_without_a_measured_line_have_no_weight(
    places: tuple[tuple[int, int], ...], target: tuple[int, int], speak: bool
) -> None:
    """A placement with and without think times is no line, however often it was measured."""
    weights = backtest(0.3).document(stranger=False)
    points = [
        (replace(queue(nodes * each)[0], waiting_factor=factor), nodes) for nodes, each in places for factor in (0, 1)
    ]
    requested = Question(target[0] * target[1], target[0])
    platform = quantities(500.0, 1e-3)
    most = blend.ceiling(points, requested, 0.01)
    found, _ = Rules(weights, points, requested, QUIET, math.inf).apply(platform, 0.9)
    assert bool(blend.candidates(points, requested)) == speak and math.isfinite(most) == speak
    assert (found["rate"]["value"] == platform["rate"]["value"]) != speak
    note = Rules(weights, points, requested, QUIET, most).note
    assert note is not None and isinstance(note, RulesSilent) != speak
    assert speak or found == platform


def test_factors_of_an_edited_system_turn_no_quantiles_around() -> None:
    """Each quantile has a factor of its own; whatever they are, values and ends of intervals rise."""
    generator = np.random.default_rng(3)
    names = [f"create.{q}" for q in ("q50", "q75", "q95", "q99", "max")]
    for _ in range(200):
        middle = np.sort(generator.lognormal(0, 1, 5))
        low, high = middle * np.exp(-generator.uniform(0, 1)), middle * np.exp(generator.uniform(0, 1))
        quantities = {
            name: {"value": v, "low": a, "high": b} for name, v, a, b in zip(names, middle, low, high, strict=True)
        }
        found = changed(quantities, dict(zip(names[:-1], generator.lognormal(0, 1, 4), strict=True)))
        for end in ("value", "low", "high"):
            row = [found[name][end] for name in names]
            assert row == sorted(row), end
        assert [one["value"] for one in quantities.values()] == list(middle), "what is given stays"

# SPDX-License-Identifier: Apache-2.0
"""What a fitted platform misses of its own measurements is carried on to other scales, chance is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from iocast.platforms.fitted import discrepancy_at
from iocast.forecasts.phase import shifted_distribution, with_intervals
from iocast.runs.question import Question
from iocast.rules.noise import moderated
from iocast.rules.residuals import Residuals


def at(ranks: int, waiting_factor: float = 0.0, nodes: int = 1) -> Question:
    place = {"ranks": ranks, "nodes": nodes, "ranks_per_node": ranks // nodes}
    return Question.of({"pattern": "", "parameters": {"waiting_factor": waiting_factor}}, place, "benchmark")


PLACES = {"N=1": at(1), "N=4": at(4), "N=16": at(16), "N=16 T=1": at(16, 1.0)}
NOISE = {"rate": 0.0, "q50": 0.05}


def row(point: str, quantity: str, log: float) -> dict[str, object]:
    return {"point": point, "quantity": quantity, "error": math.expm1(log)}


def test_beyond_the_largest_scale_it_stays_as_it_was() -> None:
    missed = Residuals.of(
        [row("N=1", "rate", 0.0), row("N=4", "rate", 0.1), row("N=16", "rate", -0.3), row("N=16 T=1", "rate", 0.2)],
        PLACES,
        NOISE,
    )
    assert missed.at("rate", at(256)) == pytest.approx(-0.3)
    assert missed.at("rate", at(4)) == pytest.approx(0.1)
    assert missed.at("rate", at(2)) == pytest.approx(0.05)
    assert missed.at("rate", at(64, 4.0)) == pytest.approx(0.2), "the nearest waiting factor that was measured"
    assert missed.at("create.q50", at(64)) == 0
    known = Residuals.of([row("N=16", "create.q50", 0.4)], PLACES, {"q50": 0.0})
    assert known.at("create.open.q50", at(64)) == known.at("create.q50", at(64)) == pytest.approx(0.4)


def test_a_packed_placement_says_nothing_of_a_spread_one() -> None:
    """Eight ranks on eight nodes, and on one: each is off by its own, and goes on along its own line."""
    places = {"spread": at(8, nodes=8), "packed": at(8), "one": at(1)}
    rows = [row("spread", "rate", 0.03), row("packed", "rate", -1.4), row("one", "rate", 0.0)]
    missed = Residuals.of(rows, places, NOISE)
    assert missed.at("rate", at(8, nodes=8)) == missed.at("rate", at(64, nodes=64)) == pytest.approx(0.03)
    assert missed.at("rate", at(8)) == missed.at("rate", at(64)) == pytest.approx(-1.4)
    assert missed.at("rate", at(40, nodes=5)) == pytest.approx(-1.4), "as many ranks on each node"
    assert missed.at("rate", at(14, nodes=2)) == pytest.approx(-1.4), "the nearest placement, off all lines"


def test_chance_is_not_carried_on() -> None:
    """200 quantities of a platform that is right but for noise, and of one that is off by four times the noise."""
    noises = np.random.default_rng(1).normal(0, math.sqrt(2) * NOISE["q50"], 200)

    def shares(off: float) -> list[float]:
        found = Residuals.of([row("N=16", f"op{i}.q50", off + noise) for i, noise in enumerate(noises)], PLACES, NOISE)
        return [found.at(f"op{i}.q50", at(64)) / (off + noise) for i, noise in enumerate(noises)]

    # The mean square of 200 normal numbers is more than 1.43 times their variance once in 10,000 tries (chi-square).
    assert max(shares(0.0)) < 1 - 1 / 1.43
    # Beside 0.2 squared a variance of 0.005 within that, and a mean within 0.02, leave the share that is not chance
    # between these.
    assert 0.86 < min(shares(0.2)) <= max(shares(0.2)) < 0.91


def test_what_a_quiet_point_misses_is_carried_on_whole() -> None:
    """A saturated server repeats its rate within a thousandth, where a lone client is 2 % off: 2.5 % at the former are
    the platform's error, and the same at the latter may be chance."""
    rows = [row("N=1", "rate", 0.025), row("N=4", "rate", -0.02), row("N=16", "rate", -0.025)]
    places = {one["point"]: at(ranks) for one, ranks in zip(rows, (1, 4, 16), strict=True)}
    pooled = Residuals.of(rows, places, {"rate": 0.02})
    for one, own in zip(rows, (0.02, 0.02, 0.001), strict=True):
        one["noise"] = own
    missed = Residuals.of(rows, places, {"rate": 0.02})
    assert pooled.at("rate", at(64)) == pytest.approx(0, abs=0.001)
    assert missed.at("rate", at(64)) == pytest.approx(-0.025, rel=0.05)
    assert abs(missed.at("rate", at(1))) < 0.6 * 0.025
    for one in rows:
        one["noise"] = 0.02
    alike = Residuals.of(rows, places, {"rate": 7.0})
    assert [alike.at("rate", at(n)) for n in (1, 4, 16)] == pytest.approx(
        [pooled.at("rate", at(n)) for n in (1, 4, 16)]
    )


def test_places_keep_their_own_noise_as_far_as_it_differs() -> None:
    """Of 2000 places with three runs each. Alike: the estimates are nearer to the one variance than each own is, by a
    factor of ten at least. A thousand times apart: each within a factor of its own that three runs leave open."""
    generator = np.random.default_rng(3)
    own = 0.02**2 * generator.chisquare(2, 2000) / 2
    alike = np.array(moderated([(one, 2) for one in own]))
    assert np.mean((alike / 0.02**2 - 1) ** 2) < np.mean((own / 0.02**2 - 1) ** 2) / 10
    true = np.where(np.arange(2000) % 2, 0.02, 0.02e-3) ** 2
    found = np.array(moderated([(one, 2) for one in true * generator.chisquare(2, 2000) / 2]))
    assert np.mean(found[true < 1e-8]) < 1e-3 * np.mean(found[true > 1e-8])
    assert moderated([(0.1, 2)]) == [0.1]
    assert moderated([(0.1, 2), (0.1, 4), (0.1, 2)]) == pytest.approx([0.1] * 3)


def test_shifted_quantiles_do_not_cross() -> None:
    fitted = {
        "discrepancy": {"q50": 0.1, "q75": 0.1},
        "noise": {"q50": 0.01, "q75": 0.01},
        "campaign": {"ranks": [1, 4, 16]},
        "holdout": {},
    }
    samples = {
        "value": {"create.q50": 1.0, "create.q75": 1.1},
        "ensemble": {"create.q50": [0.9, 1.0, 1.1], "create.q75": [1.0, 1.1, 1.2]},
    }
    found = with_intervals(fitted, samples, {"create.q50": -0.5, "create.q75": 0.0}, 64, 0.9)
    assert found["create.q50"]["value"] == pytest.approx(math.exp(0.5))
    assert found["create.q50"]["model"] == 1.0
    for end in ("low", "value", "high"):
        assert found["create.q50"][end] <= found["create.q75"][end]


def test_a_distribution_goes_through_the_printed_quantiles() -> None:
    seconds = [1.0, 2.0, 3.0, 3.5, 4.0, 5.0, 6.0]
    distribution = {"probability": [0.0, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0], "seconds": seconds}
    printed = {"q50": 2.0, "q75": 3.3, "q95": 4.4, "q99": 4.6}
    quantities = {f"create.{q}": {"value": value} for q, value in printed.items()} | {"rate": {"value": 9.0}}
    shifted = shifted_distribution(distribution, quantities, "create")["seconds"]
    assert shifted == pytest.approx([1.0, 2.0, 3.3, 3.5 * 1.1, 4.4, 4.6, 6 * 4.6 / 5])
    assert shifted_distribution(distribution, {"rate": {"value": 9.0}}, "create") == distribution


@pytest.mark.parametrize(("degrees", "expected"), [({"q50": 12}, 12), ({"q99": 12}, 3), (None, 3), ({"q50": 1}, 1)])
def test_what_a_discrepancy_rests_on_is_what_is_written_or_else_what_was_held_out(
    degrees: dict[str, int] | None, expected: int
) -> None:
    rows = [{"quantity": f"{op}.q50"} for op in ("create", "stat", "read")]
    fitted = {"discrepancy": {"q50": 0.1}, "campaign": {"ranks": [1, 4, 16]}, "holdout": {"rows": rows}} | (
        {"discrepancy_degrees": degrees} if degrees else {}
    )
    assert discrepancy_at(fitted, "q50", 64) == (pytest.approx(0.1), expected)

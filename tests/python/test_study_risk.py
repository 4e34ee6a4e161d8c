# SPDX-License-Identifier: Apache-2.0
"""Stated rates of a study, tested by simulation: its confidence after choosing, and what a measurement is worth."""

import types
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm

from iocast.study import risk, worth
from iocast.study.spec import MODEL, Measurement

REQUIRED = 0.9
REPLICATIONS = 16
TOLERANCE = 0.035
"""What a stated confidence may be too high by on average (docs/studies.md)."""
Truths = Callable[[np.random.Generator], np.ndarray]


def studies(truths: Truths, count: int, shared: float, pool: bool = True) -> np.ndarray:
    """[studies that decide, 2]: the stated confidence of the cheapest design that passes, and the true one. Margins
    have unit spread, of which replications share a part."""
    generator, found = np.random.default_rng(1), []
    for _ in range(count):
        means = truths(generator)
        common = np.sqrt(shared) * generator.standard_normal(REPLICATIONS)
        tables = [
            (mean + common + np.sqrt(1 - shared) * generator.standard_normal(REPLICATIONS))[:, None] for mean in means
        ]
        for mean, table in zip(means, risk.pooled(tables) if pool else tables, strict=True):
            stated = risk.probabilities(risk.predictive(table, risk.ModelError.none(1)))[0]
            if stated >= REQUIRED:
                found.append((stated, norm.cdf(mean)))
                break
    return np.array(found).reshape(-1, 2)


@pytest.mark.parametrize(
    ("truths", "shared"),
    [
        (lambda g: norm.ppf(0.85) + 0.3 * g.standard_normal(20), 0.0),
        (lambda g: norm.ppf(0.85) + g.standard_normal(5), 0.0),
        (lambda g: norm.ppf(0.8) + g.standard_normal(20), 0.5),
        (lambda g: np.linspace(-1, 3, 20) + 0.2 * g.standard_normal(20), 0.0),
        (lambda g: np.linspace(-1, 3, 12) + 0.2 * g.standard_normal(12), 0.8),
    ],
    ids=["alike", "few", "many", "dearer is better", "shared draws"],
)
def test_the_stated_confidence_is_the_true_one_after_choosing(truths: Truths, shared: float) -> None:
    found = studies(truths, 120, shared)
    assert len(found) > 40
    too_high = found[:, 0] - found[:, 1]
    half = 3 * too_high.std(ddof=1) / np.sqrt(len(found))
    assert -half - TOLERANCE < too_high.mean() < half + TOLERANCE, (too_high.mean(), half)


def test_many_designs_that_miss_alike_seldom_make_a_decision() -> None:
    """Twenty designs that keep the levels with 80 %: by estimates alone nearly every study finds one that seems to keep
    90 %."""
    naive = len(studies(lambda g: np.full(20, norm.ppf(0.8)), 60, 0.0, pool=False)) / 60
    pooled = len(studies(lambda g: np.full(20, norm.ppf(0.8)), 60, 0.0)) / 60
    assert naive > 0.6 and pooled < 0.2, (naive, pooled)


def test_pooling_keeps_designs_that_differ_clearly_and_any_order() -> None:
    generator = np.random.default_rng(0)
    tables = [mean + 0.1 * generator.standard_normal((REPLICATIONS, 2)) for mean in (-2.0, -1.0, 1.0, 2.0, 4.0)]
    found = risk.pooled(tables)
    assert all(
        np.abs(one.mean(axis=0) - table.mean(axis=0)).max() < 0.01 for one, table in zip(found, tables, strict=True)
    )
    turned = risk.pooled(tables[::-1])[::-1]
    assert all(np.allclose(a, b) for a, b in zip(found, turned, strict=True))
    down = [np.full((REPLICATIONS, 2), risk.DOWN), *tables]
    assert (risk.pooled(down)[0] == risk.DOWN).all(), "a system that is down stays down"
    assert all((a == b).all() for a, b in zip(risk.pooled(tables[:3]), tables, strict=False)), (
        "three designs tell nothing of all"
    )


def test_a_line_over_the_screening_explains_what_designs_differ_by() -> None:
    generator = np.random.default_rng(0)
    known = [np.array([x]) for x in np.linspace(-1, 3, 12)]
    tables = [x + 0.5 + generator.standard_normal((REPLICATIONS, 1)) for x in known]
    off = [abs(one.mean() - x[0] - 0.5) for one, x in zip(risk.pooled(tables, known), known, strict=True)]
    before = [abs(one.mean() - x[0] - 0.5) for one, x in zip(tables, known, strict=True)]
    assert np.mean(off) < 0.7 * np.mean(before)


def search_of(first: int = 1) -> tuple[types.SimpleNamespace, worth.Value, list[Measurement]]:
    """A cheap and a dear design, of which only the dear one has a disk. `first`: the number of the first contender."""
    generator = np.random.default_rng(0)
    tables = {1: generator.normal(0.05, 0.05, (16, 1)), 2: generator.normal(0.5, 0.05, (16, 1))}
    error = risk.ModelError(np.array([0.3]), np.array([np.inf]), np.array([0.0]), ("rate",))
    deviations = {1: {"cpu speed": 0.2}, 2: {"cpu speed": 0.2, "disk speed": 0.8}}
    entries = [
        Measurement(f"{name} {leaves:g}", (name,), 10.0, leaves)
        for name in (MODEL, "disk speed")
        for leaves in (1, 1.5, 3, 1000)
    ]
    chosen = [
        types.SimpleNamespace(design=types.SimpleNamespace(number=n, cost=100.0 * n), replications=[0] * 16)
        for n in (first, 3 - first)
    ]
    search = types.SimpleNamespace(
        study=types.SimpleNamespace(falling_short=1000.0, measurements=entries), decision=lambda: None,
        judged_table=lambda c: tables[c.design.number],
        model_error=lambda c: error,
        desk=types.SimpleNamespace(variants=types.SimpleNamespace(uncertain=lambda d: deviations[d.number])),
    )  # fmt: skip
    slopes = {
        1: worth.Slopes(("cpu speed",), np.array([[0.1]])),
        2: worth.Slopes(("cpu speed", "disk speed"), np.array([[0.1], [0.5]])),
    }
    return search, worth.Value(search, chosen, slopes), entries


@pytest.mark.parametrize("name", [MODEL, "disk speed"])
def test_a_measurement_that_leaves_more_is_worth_less(name: str) -> None:
    """For an error of the model and one of a single design. A measurement that leaves all of it is worth nothing."""
    search, value, _ = search_of()
    worths = {m["name"]: m["value"] for m in worth.measurements(search, value)}
    ordered = [worths[f"{name} {leaves:g}"] for leaves in (1, 1.5, 3, 1000)]
    assert ordered == sorted(ordered, reverse=True) and ordered[0] > ordered[1] > ordered[2], ordered
    assert ordered[-1] < 0.02 * ordered[0]
    exact = next(m["value"] for m in worth.measurements(search, value) if m["price"] is None and m["tells"] == [name])
    assert ordered[0] == pytest.approx(exact)


def test_what_a_measurement_is_worth_does_not_depend_on_who_comes_first() -> None:
    """The first contender's platform need not have what is measured."""
    values = [{m["name"]: m["value"] for m in worth.measurements(*search_of(first)[:2])} for first in (1, 2)]
    assert values[0] == pytest.approx(values[1])

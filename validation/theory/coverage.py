# SPDX-License-Identifier: Apache-2.0
"""Stated rates by simulation of the statistics: how often 90 % intervals hold, their interval score, and false alarms
of `iocast compare`.

    python validation/theory/coverage.py [--tries 4000]

A made-up population of systems is forecast once over the held-out step and once over the target one; the model's errors
are normal, of a size that differs between systems, and correlated between the operations of a point. Nothing is
simulated but these numbers. The interval score (Gneiting & Raftery 2007, section 6.2) is of logarithms, over that of
the best fixed width for the population: 1 is as good as knowing the population. "Every row a value" is the same rule
with as many degrees of freedom as rows."""

from __future__ import annotations

import argparse
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from iocast.calibrate.discrepancy import discrepancies, independent_values
from iocast.changes import Side
from iocast.records.run import Phase, Summary
from iocast.rules.significance import choose

LEVEL, ALPHA = 0.9, 0.05
NOISE = dict.fromkeys(("rate", "q50", "q75", "q95", "q99", "max"), 0.03)
POPULATIONS = {
    "strangers, 8 %": (True, 0.08, 0.7),
    "strangers, 8 %, all alike": (True, 0.08, 0.0),
    "strangers, 20 %": (True, 0.2, 0.7),
    "family's own, 1 %": (False, 0.01, 0.3),
    "family's own, 3 %": (False, 0.03, 0.5),
}
"""By name: whether the calibration knows that it is none of the family, median size of the model's error, and the
standard deviation of its logarithm."""


def score(low: float, high: float, seen: float) -> float:
    return high - low + 2 / (1 - LEVEL) * (max(low - seen, 0) + max(seen - high, 0))


def intervals(
    stranger: bool, median: float, spread: float, correlation: float, operations: int, runs: int, tries: int
) -> dict[str, tuple[float, float]]:
    """By rule, share of forecasts inside and the relative interval score."""
    generator = np.random.default_rng(1)
    widths: dict[str, list[float]] = {"as calibrated": [], "every row a value": []}
    seen = []
    for _ in range(tries):
        true = median * math.exp(spread * generator.standard_normal())
        errors = true * (
            math.sqrt(correlation) * generator.standard_normal()
            + math.sqrt(1 - correlation) * generator.standard_normal(operations)
        )
        errors = errors + NOISE["q50"] / math.sqrt(runs) * generator.standard_normal(operations)
        rows = [
            {"point": "N=8", "runs": runs, "quantity": f"op{i}.q50", "error": math.expm1(x), "spread": 0.0}
            for i, x in enumerate(errors)
        ]
        deviation, degrees = discrepancies({"rows": rows}, NOISE, stranger, 0.0)["q50"]
        others = degrees - independent_values(rows) + operations
        for name, freedom in (("as calibrated", degrees), ("every row a value", others)):
            widen = float(stdtrit(freedom, (1 + LEVEL) / 2)) / 1.6449
            widths[name].append(1.6449 * math.hypot(widen * deviation, NOISE["q50"]))
        seen.append(true * generator.standard_normal() + NOISE["q50"] * generator.standard_normal())
    reference = min(
        np.mean([score(-w, w, x) for x in seen]) for w in np.quantile(np.abs(seen), np.linspace(0.5, 0.99, 50))
    )
    return {
        name: (
            float(np.mean(np.abs(seen) <= half)),
            float(np.mean([score(-w, w, x) for w, x in zip(half, seen, strict=True)]) / reference),
        )
        for name, half in widths.items()
    }


def false_alarms(runs: int, repeats: int, between: float, within: float, tries: int) -> tuple[str, float]:
    """How comparisons of an unchanged system are made, and the share with an alarm."""
    generator, alarms, method = np.random.default_rng(2), 0, ""

    def side(name: str) -> Side:
        made: list[Any] = []
        for _ in range(runs):
            level = between * generator.standard_normal()
            values = np.exp(
                np.r_[7 + level, np.full(5, -7 - level)][None] + within * generator.standard_normal((repeats, 6))
            )
            quantities = ("mean", "q50", "q75", "q95", "q99")
            phases = [
                Phase(
                    "benchmark",
                    0,
                    None,
                    None,
                    None,
                    v[0],
                    {"stat": Summary(count=9, **dict(zip(quantities, v[1:], strict=True)))},
                )  # fmt: skip
                for v in values.tolist()
            ]
            made.append(SimpleNamespace(phases=phases, record=SimpleNamespace(source="bench")))
        return Side(name, made)

    for _ in range(tries):
        found = choose(side("a"), side("b"), ALPHA, 0)
        method = found.name
        alarms += any(change.adjusted is not None and change.adjusted < ALPHA for change in found.changes)
    return method, alarms / tries


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=4000)
    tries = parser.parse_args().tries
    print(
        "| population | correlation | operations | runs | inside 90 % | score | every row a value: inside | score"
        " |\n|---|---|---|---|---|---|---|---|"
    )
    for name, (stranger, median, spread) in POPULATIONS.items():
        for correlation, operations, runs in ((0.8, 8, 2), (0.8, 4, 2), (0.5, 4, 1), (0.8, 1, 2)):
            found = intervals(stranger, median, spread, correlation, operations, runs, tries)
            cells = " | ".join(f"{100 * inside:.0f} % | {relative:.2f}" for inside, relative in found.values())
            print(f"| {name} | {correlation} | {operations} | {runs} | {cells} |")
    print("\n| runs a side | repeats | between runs | within | method | false alarms |\n|---|---|---|---|---|---|")
    for runs, repeats in ((1, 4), (2, 3), (3, 3), (4, 3), (8, 1)):
        for between in (0.0, 0.02, 0.05, 0.1):
            method, share = false_alarms(runs, repeats, between, 0.01, max(100, tries // 10))
            print(f"| {runs} | {repeats} | {100 * between:.0f} % | 1 % | {method} | {100 * share:.0f} % |")


if __name__ == "__main__":
    main()

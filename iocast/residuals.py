# SPDX-License-Identifier: Apache-2.0
"""What a fitted platform still misses of its own measurements, carried on to where nothing was measured. A random walk
over the logarithm of scale is the simplest error of a model that is not known to end anywhere (Kennedy & O'Hagan 2001,
section 4.2: discrepancy as a Gaussian process); its mean between two scales is a straight line, and beyond the largest
one what it was there."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import mode
from typing import Any

import numpy as np

from iocast.question import Setting

Line = tuple[list[float], list[float]]
"""Logarithms of ranks, and of forecast over measured there."""


@dataclass(frozen=True)
class Residuals:
    lines: dict[str, dict[float, Line]]
    """By quantity and waiting factor."""

    @classmethod
    def of(
        cls, rows: Iterable[dict[str, Any]], places: dict[str, tuple[int, float]], noise: dict[str, float]
    ) -> Residuals:
        """From rows that say what a platform was off by: {point, quantity, error, runs}, error as a factor less 1, of a
        measured mean of `runs` runs (1).

        @param places ranks and waiting factor of each point, by name; rows of others are left out
        @param noise standard deviation of the logarithm of a measurement, by kind of quantity ("rate", "q50", ...)"""
        known: dict[str, dict[float, dict[int, list[float]]]] = {}
        runs: dict[str, list[float]] = {}
        for row in rows:
            if row["error"] > -1 and row["point"] in places:
                ranks, factor = places[row["point"]]
                known.setdefault(row["quantity"], {}).setdefault(factor, {}).setdefault(ranks, []).append(
                    math.log1p(row["error"])
                )
                runs.setdefault(kind_of(row["quantity"]), []).append(1 / row.get("runs", 1))
        squares: dict[str, list[float]] = {}
        for quantity, by_factor in known.items():
            squares.setdefault(kind_of(quantity), []).extend(
                log**2 for by_ranks in by_factor.values() for logs in by_ranks.values() for log in logs
            )
        # Of the mean of the measurement's runs, and of the one simulation beside it.
        chance = {kind: noise.get(kind, 0.0) ** 2 * (float(np.mean(shares)) + 1) for kind, shares in runs.items()}
        kept = {kind: _beyond_noise(float(np.mean(logs)), chance[kind]) for kind, logs in squares.items()}
        return cls(
            {
                quantity: {
                    factor: (
                        [math.log(n) for n in sorted(by_ranks)],
                        [kept[kind_of(quantity)] * float(np.mean(by_ranks[n])) for n in sorted(by_ranks)],
                    )
                    for factor, by_ranks in by_factor.items()
                }
                for quantity, by_factor in known.items()
            }
        )

    @classmethod
    def of_fitted(cls, fitted: dict[str, Any], settings: dict[str, str] | None = None) -> Residuals:
        """Of the section `fitted` of a platform file (docs/answers.md), at the points that are like these settings;
        none of a platform that was never calibrated."""
        places = {p["name"]: (p["ranks"], p["waiting_factor"]) for p in points_like(fitted, settings or {})}
        return cls.of(fitted.get("fit", []), places, fitted.get("noise", {}))

    def at(self, quantity: str, ranks: int, waiting_factor: float) -> float:
        """The logarithm by which the platform is taken to be too high: that of the measured waiting factor nearest to
        this one. A part of an operation ("create.open.q50") is off as the whole is."""
        op, _, which = quantity.rpartition(".")
        lines = self.lines.get(quantity) or self.lines.get(f"{op.partition('.')[0]}.{which}")
        if not lines:
            return 0.0
        nearest = min(lines, key=lambda factor: (abs(math.log1p(factor) - math.log1p(waiting_factor)), factor))
        return float(np.interp(math.log(ranks), *lines[nearest]))

    def largest(self, quantity: str, kind: str) -> float:
        """By how much the platform is off, either way, at the largest scale, as a logarithm: in the quantity, or if it
        was not fitted in any of its kind."""
        about = [quantity] if quantity in self.lines else [name for name in self.lines if kind_of(name) == kind]
        return max((abs(logs[-1]) for name in about for _, logs in self.lines[name].values()), default=0.0)


def points_like(fitted: dict[str, Any], settings: dict[str, str]) -> list[dict[str, Any]]:
    """The measured points; where they differ in switches of the workload (such as read-only runs) those that agree with
    the settings, a switch that is not set being as it mostly was; all where none does."""
    points: list[dict[str, Any]] = fitted.get("campaign", {}).get("points", [])
    reported = {name for point in points for name in point.get("switches", {})}
    wanted = {
        name: Setting.read(
            settings[name] if name in settings else mode(p["switches"][name] for p in points if name in p["switches"])
        )
        for name in reported
    }
    return [
        p for p in points if {name: Setting.read(value) for name, value in p.get("switches", {}).items()} == wanted
    ] or points


def kind_of(quantity: str) -> str:
    """ "create.q50" -> "q50"."""
    return quantity.rpartition(".")[2]


def _beyond_noise(square: float, chance: float) -> float:
    """The share of residuals of this mean square that is not chance, of that variance: shrinking by it makes their mean
    square error least, of all that shrink them all alike (James & Stein 1961)."""
    return max(0.0, 1 - chance / square) if square > 0 else 0.0

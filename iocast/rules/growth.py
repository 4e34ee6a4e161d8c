# SPDX-License-Identifier: Apache-2.0
"""How a rate grows with nodes and ranks, when nothing but a few rates is known (docs/calibration.md, "Rates alone").

Several scales: a fixed population of curves with two knees, each weighted by how well it explains the rates. One scale:
a power of the ranks, whose exponent follows from the time of an operation. The constants are round numbers, chosen by
hand on published systems; how forecasts with them fared, there and on others, stands on docs/scoreboard.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtri, stdtrit

from iocast.records.fitted import FittedCampaign

Array = NDArray[np.float64]

CURVES = 1024
DEGREES = 4
"""Degrees of freedom of Student's t: of residuals, and of forecast errors."""

# Prior of the curves, means and standard deviations.
NODE_KNEE, NODE_KNEE_SD = math.log(24), 1.0  # logarithm of ranks per node
KNEE, KNEE_SD = math.log(70), 2.5  # logarithm of ranks, on several nodes
SINGLE_KNEE, SINGLE_KNEE_SD = math.log(3), 0.7  # the same on a single machine
BEYOND, BEYOND_SD = 0.15, 0.25  # slope beyond the knee
SINGLE_BEYOND, SINGLE_BEYOND_SD = -0.4, 0.5
BEYOND_RANGE = (-1.5, 0.95)
SLOPE_SD, SLOPE_RANGE = 0.1, (0.7, 1.2)  # slope before the knee, about 1
SHARPNESS, SHARPNESS_SD = 2.0, 0.3  # of knees; sd of its logarithm

NOISE = 0.15
"""Standard deviation of the logarithm of a rate that was not repeated; worth two degrees of freedom beside repeats."""
CURVE_ERROR = 0.12
"""What curves miss at a measured placement, likewise."""
QUIET = (0.25, 0.5, 1.0)
"""Shares of NOISE and CURVE_ERROR that a system may have. Each weighs as much as it is large before any measurement,
and then as its rates say: those of a quiet one follow few curves, and these closely."""
CARRIED, CARRIED_LIMIT = 0.5, 0.3
"""Share of the residual at the largest placement that a forecast carries on, and its bound in the logarithm."""
ERROR, ERROR_BY_DISTANCE = 0.25, 0.05
"""Standard deviation of forecast errors: at a measured placement, and per logarithm of the distance to the nearest
one."""
ONE_SCALE_ERROR, BY_NODES, BY_RANKS_PER_NODE = 0.2, 0.2, 0.4
EXPONENT, EXPONENT_BY_TIME, EXPONENT_RANGE = 0.45, 0.07, (0.0, 0.9)
"""One scale: exponent at 1 ms an operation, and by how much it falls with the logarithm of the time."""
BYTES_EXPONENT = 0.3
"""The same where rates are no operations but bytes a second."""
TAILS, ONE_SCALE_TAILS = (0.7, 1.0), (1.0, 1.2)
"""Powers of 1 - level whose halves are left out below and above. Curves fall more often than systems did, so that more
of them is left out below."""
FALL = 0.9
"""A rate below this share of the largest placement's counts as a fall."""
ALARM_FACTOR, ALARM_ERRORS = 1.6, 2.5
"""A residual raises the alarm when it is larger than this factor and than this many standard deviations."""


@dataclass(frozen=True)
class Placement:
    """`ranks_per_node` counts ranks inside an operation: with waiting factor T, a rank is inside 1/(1+T) of its
    time."""

    nodes: int
    ranks_per_node: float

    @property
    def ranks(self) -> float:
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True)
class Measured(Placement):
    """Mean logarithm of the rates of `repeats` runs, and its variance over them (0 for one run)."""

    log_rate: float
    repeats: int = 1
    variance: float = 0.0


def measured_in(campaign: FittedCampaign) -> list[Measured]:
    """The points of a fitted platform's `campaign`."""
    return [
        Measured(
            p["nodes"],
            p["ranks"] / p["nodes"] / (1 + p["waiting_factor"]),
            math.log(p["rate"]),
            p.get("repeats", 1),
            p.get("log_variance", 0.0),
        )
        for p in campaign["points"]
    ]


@dataclass(frozen=True)
class Forecast:
    """`quantile(p)` is the rate's logarithm; `falls` the weight of curves below FALL of the largest measured
    placement's rate (None at one scale, where growth was not measured); `powers` one of TAILS."""

    quantile: Callable[[float], float]
    falls: float | None
    powers: tuple[float, float]

    @property
    def value(self) -> float:
        return self.quantile(0.5)

    def interval(self, level: float) -> tuple[float, float]:
        low, high = self.tails(level)
        return self.quantile(low), self.quantile(high)

    def tails(self, level: float) -> tuple[float, float]:
        """Probabilities at the ends of an interval."""
        low, high = ((1 - level) ** power / 2 for power in self.powers)
        return low, 1 - high


def curves(places: Sequence[Placement], single: bool) -> Array:
    """Logarithm of the rate of each curve at each placement, up to a constant of the curve (CURVES, placements).

    Load u = s ln n + softmin(ln p, node's knee), or ln p on a single machine; ln rate = u - (1 - e) softplus(u - K):
    slope s up to the knee K, in ranks, and e beyond it."""
    z = _population()
    n, p = (
        np.log(np.array(x, dtype=float))[None, :]
        for x in ([o.nodes for o in places], [o.ranks_per_node for o in places])
    )
    node_knee = (NODE_KNEE + NODE_KNEE_SD * z[:, 0])[:, None]
    knee = (SINGLE_KNEE + SINGLE_KNEE_SD * z[:, 1] if single else KNEE + KNEE_SD * z[:, 1])[:, None]
    beyond = np.clip(
        SINGLE_BEYOND + SINGLE_BEYOND_SD * z[:, 2] if single else BEYOND + BEYOND_SD * z[:, 2], *BEYOND_RANGE
    )[:, None]
    slope = np.clip(1 + SLOPE_SD * z[:, 3], *SLOPE_RANGE)[:, None]
    sharpness = (SHARPNESS * np.exp(SHARPNESS_SD * z[:, 4]))[:, None]
    load = p if single else slope * n - np.logaddexp(-sharpness * p, -sharpness * node_knee) / sharpness
    return np.asarray(load - (1 - beyond) * np.logaddexp(0, sharpness * (load - knee)) / sharpness)


@lru_cache(maxsize=1)
def _population() -> Array:
    """Normal scores of the curves' five numbers (CURVES, 5)."""
    from scipy.stats import qmc  # half a second to import, and only rates alone need it

    return np.asarray(ndtri(qmc.Sobol(5, seed=2).random(CURVES).clip(1e-5, 1 - 1e-5)))


def largest(fitted: Sequence[Measured]) -> int:
    """Index of the placement of most ranks, and of those the one of most nodes."""
    return max(range(len(fitted)), key=lambda i: (fitted[i].ranks, fitted[i].nodes))


def one_scale(fitted: Sequence[Measured]) -> bool:
    """Whether all placements have one number of ranks, so that growth was not measured."""
    return len({round(one.ranks, 9) for one in fitted}) == 1


def forecast(fitted: Sequence[Measured], target: Placement, *, operations: bool = True) -> Forecast:
    """The rate at `target` from those measured; `operations` is False for rates in bytes a second."""
    if one_scale(fitted):
        return _of_one_scale(fitted[largest(fitted)], target, operations, _alarming(fitted))
    found = _Weighted.of(fitted, QUIET, target)
    at_target = np.tile(curves([target], found.single)[:, 0], len(QUIET))
    distance = min(
        abs(math.log(target.nodes / o.nodes)) + abs(math.log(target.ranks_per_node / o.ranks_per_node)) for o in fitted
    )
    error = np.sqrt(ERROR**2 + (ERROR_BY_DISTANCE * distance) ** 2 + found.level_variance + _alarming(fitted) ** 2)
    errors = _Errors(at_target + found.level + found.carried, error, found.weights)
    return Forecast(errors.quantile, errors.below(fitted[largest(fitted)].log_rate + math.log(FALL)), TAILS)


def _of_one_scale(reference: Measured, target: Placement, operations: bool, alarming: float) -> Forecast:
    by_nodes, by_ranks = (
        math.log(target.nodes / reference.nodes),
        math.log(target.ranks_per_node / reference.ranks_per_node),
    )
    milliseconds = 1e3 * reference.ranks / math.exp(reference.log_rate)
    exponent = (
        float(np.clip(EXPONENT - EXPONENT_BY_TIME * math.log(milliseconds), *EXPONENT_RANGE))
        if operations
        else BYTES_EXPONENT
    )
    middle = reference.log_rate + exponent * (by_nodes + by_ranks)
    error = math.sqrt(
        ONE_SCALE_ERROR**2 + (BY_NODES * by_nodes) ** 2 + (BY_RANKS_PER_NODE * by_ranks) ** 2 + alarming**2
    )
    return Forecast(lambda p: middle + float(stdtrit(DEGREES, p)) * error, None, ONE_SCALE_TAILS)


@dataclass(frozen=True)
class _Weighted:
    """Curves weighted by measured rates, all of them with each share of the noise (n = shares x CURVES). level,
    level_variance, carried, weights (n,); residuals (n, placements), errors (placements,) with the largest share."""

    single: bool
    level: Array
    level_variance: Array
    residuals: Array
    errors: Array
    weights: Array
    carried: Array

    @classmethod
    def of(cls, fitted: Sequence[Measured], shares: Sequence[float], target: Placement | None = None) -> _Weighted:
        single = all(one.nodes == 1 for one in fitted) and (target is None or target.nodes == 1)
        at_fitted = curves(fitted, single)
        repeats = np.array([one.repeats for one in fitted], dtype=float)
        log_rates = np.array([one.log_rate for one in fitted])
        variances = np.array([one.variance for one in fitted])
        share = np.array(shares)[:, None, None]  # of shares, curves and placements
        noise = (np.sum(variances * (repeats - 1)) + 2 * (share * NOISE) ** 2) / (np.sum(repeats - 1) + 2)
        variance = noise / repeats + (share * CURVE_ERROR) ** 2
        level_variance = 1 / (1 / variance).sum(axis=2)
        level = ((log_rates - at_fitted) / variance).sum(axis=2) * level_variance
        residuals = log_rates - at_fitted - level[:, :, None]
        likely = -(DEGREES + 1) / 2 * np.log1p(residuals**2 / variance / DEGREES) - np.log(variance) / 2
        logs = likely.sum(axis=2) + np.log(share[:, :, 0])
        weights = np.exp(logs - np.max(logs))
        carried = np.clip(CARRIED * residuals[:, :, largest(fitted)], -CARRIED_LIMIT, CARRIED_LIMIT)
        return cls(
            single,
            level.ravel(),
            np.repeat(level_variance.ravel(), CURVES),
            residuals.reshape(-1, len(fitted)),
            np.sqrt(variance[-1, 0]),
            (weights / np.sum(weights)).ravel(),
            carried.ravel(),
        )


@dataclass(frozen=True)
class _Errors:
    """Mixture of Student's t, one about each curve's forecast: logarithms `middles`, `spreads`, and weights (n,). The
    whole law, not a draw for each curve: a few curves may have all the weight."""

    middles: Array
    spreads: Array
    weights: Array

    def below(self, value: float) -> float:
        """Probability below it; Student's t has this closed form with four degrees of freedom."""
        t = (value - self.middles) / self.spreads
        u = t / np.sqrt(t**2 + DEGREES)
        return float((0.5 + u * (3 - u**2) / 4) @ self.weights)

    def quantile(self, probability: float) -> float:
        reach = 100 * np.max(self.spreads)
        least, most = float(np.min(self.middles) - reach), float(np.max(self.middles) + reach)
        return float(brentq(lambda value: self.below(value) - probability, least, most, xtol=1e-6))


def _quantiles(draws: Array, weights: Array) -> Callable[[float], float]:
    order = np.argsort(draws)
    at = np.cumsum(weights[order]) - weights[order] / 2
    return lambda p: float(np.interp(p, at, draws[order]))


def residuals(fitted: Sequence[Measured]) -> list[tuple[float, bool]]:
    """For each placement the weighted median of ln measured / curve, and whether it raises the alarm: the curves can't
    follow the rates there, because the system changed, the rates are of different things, or a collapse is steeper than
    any curve. One scale: how far repeats of it and placements of as many ranks lie from their median."""
    if one_scale(fitted):
        middle = float(np.median([one.log_rate for one in fitted]))
        found = [(one.log_rate - middle, NOISE + CURVE_ERROR) for one in fitted]
    else:
        weighted = _Weighted.of(fitted, [1.0])
        found = [
            (_quantiles(weighted.residuals[:, i], weighted.weights)(0.5), float(weighted.errors[i]))
            for i in range(len(fitted))
        ]
    return [(miss, abs(miss) > max(math.log(ALARM_FACTOR), ALARM_ERRORS * error)) for miss, error in found]


def _alarming(fitted: Sequence[Measured]) -> float:
    """Root mean square of the residuals where any of them raises the alarm, else 0: what else the curves may miss."""
    found = residuals(fitted)
    return math.sqrt(sum(miss**2 for miss, _ in found) / len(found)) if any(alarm for _, alarm in found) else 0.0

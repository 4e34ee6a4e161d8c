# SPDX-License-Identifier: Apache-2.0
"""Noise of mean errors: what blends, the verdict of `iocast validate` and the alarm of a calibration take errors of
many quantities to be uncertain by."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, polygamma

DEVIATIONS = 2.2
"""Standard deviations of a mean error by noise alone, by which one error must be larger than another to be called so.
Of two candidates that are 8 % off in 32 quantities with 10 % of noise either is then called better in at most one case
of twenty, whatever the signs of their errors (tests/python/test_blend.py)."""


def of_mean(deviations: Sequence[float], runs: int, together: float = 0.0) -> float:
    """Standard deviation of the mean error of quantities of one point, by the noise of its measured means.

    @param deviations of the logarithm of one measurement of each quantity
    @param runs number of runs whose mean was measured
    @param together the same of the mean of all these quantities in one run, where it is known: a slow run is slow in
    all of them. Else, or if it is less, their noises are independent."""
    if not len(deviations):
        return 0.0
    independent = math.sqrt(float(np.sum(np.square(deviations)))) / len(deviations)
    return max(independent, together) / math.sqrt(max(1, runs))


ALIKE = 1e3
"""Half the degrees of freedom of the common variance, from which on places have none of their own."""
LEAST = 1e-7
"""Variance of a logarithm below which repeats are alike: latencies are known to a thousandth (LatencyLog)."""


def moderated(measured: Sequence[tuple[float, int]]) -> list[float]:
    """Variances of places of which each was measured a few times, as they are most likely: each one's own, drawn to
    what all have in common, and by as much as they are alike. Where they differ by more than so few repeats explain,
    each keeps its own. (Smyth 2004, "Linear models and empirical Bayes methods for assessing differential expression",
    sections 6.1 and 6.2.)

    @param measured variance of a logarithm with its degrees of freedom, of each place"""
    if len(measured) < 2:
        return [variance for variance, _ in measured]
    variances = np.maximum([variance for variance, _ in measured], LEAST)
    halves = np.array([degrees / 2 for _, degrees in measured])
    logs = np.log(variances) - digamma(halves) + np.log(halves)
    apart = float(np.var(logs, ddof=1) - np.mean(polygamma(1, halves)))
    if apart <= float(polygamma(1, ALIKE)):
        return [float(np.average(variances, weights=halves))] * len(measured)
    prior = float(brentq(lambda half: float(polygamma(1, half)) - apart, 1e-3, ALIKE))
    alike = math.exp(float(np.mean(logs)) + float(digamma(prior)) - math.log(prior))
    return [float(one) for one in (prior * alike + halves * variances) / (prior + halves)]


def of_points(points: Sequence[tuple[int, float]]) -> float:
    """Standard deviation of the mean error over several points: of each the number of its quantities, and that of
    their mean."""
    count = sum(quantities for quantities, _ in points)
    return math.sqrt(sum((quantities * deviation) ** 2 for quantities, deviation in points)) / count

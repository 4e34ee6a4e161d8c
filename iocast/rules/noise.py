# SPDX-License-Identifier: Apache-2.0
"""Noise of mean errors: what blends, the verdict of `iocast validate` and the alarm of a calibration take errors of
many quantities to be uncertain by."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

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


def of_points(points: Sequence[tuple[int, float]]) -> float:
    """Standard deviation of the mean error over several points: of each the number of its quantities, and that of
    their mean."""
    count = sum(quantities for quantities, _ in points)
    return math.sqrt(sum((quantities * deviation) ** 2 for quantities, deviation in points)) / count

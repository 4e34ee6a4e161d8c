# SPDX-License-Identifier: Apache-2.0
"""Intervals of forecasts and of studies, by one rule."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtrit

WIDEST = math.log(30)
"""An interval of a factor 30 either way says that nothing is known; an error that is wider would say no more. Draws
that are further off lie inside nevertheless."""


def interval(
    value: float, draws: Sequence[float], error: float, degrees: float, noise: float, level: float
) -> tuple[float, float]:
    """Ends of the interval about a value above 0, over that value.

    @param draws what platforms that the data would also allow forecast, by the model as `value` is
    @param error, degrees standard deviation of the logarithm of the model's own error, and how many values it rests on
    (Student's t)
    @param noise standard deviation of the logarithm of a measurement"""
    widen = 1.0 if math.isinf(degrees) else float(stdtrit(degrees, (1 + level) / 2) / ndtri((1 + level) / 2))
    low, high = _ends(draws, value, math.hypot(widen * error, noise), level)
    logs = _logs(draws, value)
    lowest = float(np.quantile(logs, (1 - level) / 2, method="inverted_cdf"))
    highest = float(np.quantile(logs, (1 + level) / 2, method="higher"))
    return math.exp(max(low, min(-WIDEST, lowest))), math.exp(min(high, max(WIDEST, highest)))


def _logs(draws: Sequence[float], value: float) -> NDArray[np.float64]:
    """Logarithms of the draws over the value; of the value alone where there is none."""
    return np.log(np.maximum(draws if len(draws) else [value], 1e-9)) - math.log(max(value, 1e-9))


def _ends(draws: Sequence[float], value: float, sd: float, level: float) -> tuple[float, float]:
    """Ends of the interval that holds `level` of the draws, and `level` of the value's distribution, when the logarithm
    of each is blurred by `sd`. As logarithms of the ends over the value."""
    sd = max(sd, 1e-9)
    logs = _logs(draws, value)
    reach = 10 * sd + float(np.abs(logs).max()) + 1e-9

    def end(probability: float) -> float:
        of_value = sd * float(ndtri(probability))
        if not logs.any():
            return of_value
        of_draws = float(
            brentq(lambda x: float(np.mean(ndtr((x - logs) / sd))) - probability, -reach, reach, xtol=1e-6)
        )
        return min(of_draws, of_value) if probability < 0.5 else max(of_draws, of_value)

    return end((1 - level) / 2), end((1 + level) / 2)

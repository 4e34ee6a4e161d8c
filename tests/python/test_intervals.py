# SPDX-License-Identifier: Apache-2.0
"""Intervals hold the share of the draws that they state, and an error of the model adds no more than a factor 30."""

import math

import numpy as np
import pytest

from iocast.rules.intervals import interval

FAR = {
    "below": [1e-3] * 16,
    "above": [4e2] * 16,
    "both": [1e-3, 1e3] * 8,
    "a few": [1.0] * 12 + [2e-3] * 4,
    "spread": list(np.exp(np.linspace(-7, 9, 16))),
}


@pytest.mark.parametrize("draws", FAR.values(), ids=FAR)
@pytest.mark.parametrize("error", [0.0, 0.1, 2.0])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_draws_that_are_far_off_lie_inside(draws: list[float], error: float, level: float) -> None:
    """By a factor of hundreds: an interval that held none of them would contradict its own reason."""
    low, high = interval(1.0, draws, error, 8, 0.02, level)
    inside = np.mean([low * math.exp(-0.1) <= one <= high * math.exp(0.1) for one in draws])
    assert inside >= level, (low, high)


def test_an_error_alone_adds_no_more_than_a_factor_30() -> None:
    assert interval(1.0, [1.0, 1.1, 0.9], 40.0, 3, 0.0, 0.9) == pytest.approx((1 / 30, 30))
    low, high = interval(1.0, [1.0, 1.0, 200.0], 40.0, 3, 0.0, 0.9)
    assert (low, high) == pytest.approx((1 / 30, 200.0)), "as far as the draws, and no farther"

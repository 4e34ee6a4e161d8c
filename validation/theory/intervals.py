# SPDX-License-Identifier: Apache-2.0
"""Intervals of independent replications, with a stated probability of a false alarm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sharpness
from scipy.stats import t as student

FALSE_ALARM = 1e-4  # probability that one comparison fails although both sides agree


def contains(replications: Sequence[float], truth: float, slack: float = 0.0) -> None:
    """Asserts that Student's interval of independent replications covers `truth`; `slack` is a relative resolution."""
    values = np.asarray(replications, dtype=float)
    error = float(values.std(ddof=1) / np.sqrt(len(values)))
    half = float(student.ppf(1 - FALSE_ALARM / 2, len(values) - 1)) * error + slack * abs(truth)
    sharpness.shift(f"relative error of {truth:.4g}", half / abs(truth), error / abs(truth))
    assert abs(values.mean() - truth) <= half, f"{values.mean():.6g} +- {half:.2g} does not cover {truth:.6g}"

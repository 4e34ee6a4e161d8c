# SPDX-License-Identifier: Apache-2.0
"""Which of the fitted numbers the measurements don't tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from iocast.records.note_of_measurements import ParametersTied

TIED = 0.95
"""Minimum correlation that is reported in words."""


def correlations(names: Sequence[str], covariance: NDArray[np.float64]) -> dict[str, dict[str, float]]:
    """Of the parameters' logarithms, by two names, each pair once; none for a parameter that doesn't vary.

    @param covariance of the logarithms, (n, n) in the order of the names"""
    sd = np.sqrt(np.clip(np.diag(covariance), 0, None)) if len(names) else np.zeros(0)
    found: dict[str, dict[str, float]] = {}
    for i, j in combinations(range(len(names)), 2):
        if sd[i] > 0 and sd[j] > 0:
            found.setdefault(names[i], {})[names[j]] = float(np.clip(covariance[i, j] / (sd[i] * sd[j]), -1, 1))
    return found


def tied(found: dict[str, dict[str, float]]) -> list[ParametersTied]:
    """The pairs of which the measurements tell little more than one number."""
    return [
        ParametersTied(one, other, r) for one, others in found.items() for other, r in others.items() if abs(r) >= TIED
    ]

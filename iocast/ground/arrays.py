# SPDX-License-Identifier: Apache-2.0
"""Arrays of numbers, their logarithms, and what is taken over one of their axes: NumPy's own say no types there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Table = Array | NDArray[np.bool_] | Sequence[Array] | Sequence[float] | Sequence[Sequence[float]]


def numbers(values: Iterable[float]) -> Array:
    return np.fromiter(values, np.float64)


def means(values: Table, axis: int = 0) -> Array:
    return np.asarray(np.mean(values, axis=axis), np.float64)


def sums(values: Table, axis: int = 0) -> Array:
    return np.asarray(np.sum(values, axis=axis), np.float64)


def variances(values: Table, axis: int = 0, ddof: int = 0) -> Array:
    return np.asarray(np.var(values, axis=axis, ddof=ddof), np.float64)


def log(values: Table | np.floating) -> Array:
    return np.asarray(np.log(values), np.float64)


def rows(table: Array) -> list[Array]:
    """Of a table of two dimensions."""
    return [table[i, :] for i in range(len(table))]

# SPDX-License-Identifier: Apache-2.0
"""Service laws of a resolved platform: mean, variance and quantile function."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from iocast.records.platform import LawDocument

Array = NDArray[np.float64]


def look_up(table: Array, u: Array) -> Array:
    """Linear interpolation in a quantile table at (i + 0.5)/len; its first and last values beyond its ends."""
    place = np.clip(u * len(table) - 0.5, 0, len(table) - 1)
    below = np.minimum(place.astype(np.int64), len(table) - 2)
    return np.asarray(table[below] + (place - below) * (table[below + 1] - table[below]))


@dataclass(frozen=True, eq=False)
class Law:
    """A non-negative random time (seconds): `factor` times the tabulated law plus `extra`."""

    kind: str
    mean: float
    variance: float
    table: Array  # values at probabilities (i + 0.5)/len
    factor: float = 1.0
    extra: float = 0.0

    def plus(self, extra: float) -> Law:
        return Law(self.kind, self.mean + extra, self.variance, self.table, self.factor, self.extra + extra)

    def times(self, factor: float) -> Law:
        return Law(
            self.kind,
            self.mean * factor,
            self.variance * factor**2,
            self.table,
            self.factor * factor,
            self.extra * factor,
        )

    @property
    def variation(self) -> float:
        """Squared coefficient of variation."""
        return self.variance / self.mean**2 if self.mean > 0 else 0.0

    def mean_of_largest(self, number: int) -> float:
        """Mean of the largest of `number` independent draws."""
        if number == 1:
            return self.mean
        if self.kind == "exponential" and self.extra == 0:
            return self.mean * sum(1 / k for k in range(1, number + 1))
        u = (np.arange(2**13) + 0.5) / 2**13
        return float(self.quantile(u ** (1 / number)).mean())

    def quantile(self, u: Array) -> Array:
        """Values at probabilities u: by the table, and beyond its upper end by the tail that the law's kind has."""
        size = len(self.table)
        if self.kind == "constant" or size == 1:
            return np.full_like(u, self.table[size // 2] * self.factor + self.extra)
        values = look_up(self.table, u)
        tail = u > 1 - 1 / size
        if tail.any():
            values[tail] = np.maximum(values[tail], self._tail(u[tail]))
        return values * self.factor + self.extra

    def _tail(self, u: Array) -> Array:
        """Beyond the table: exponential or lognormal through two of its points, for the kinds that have such a tail."""
        size = len(self.table)
        edge, inner = size - 1, size - 1 - size // 20
        if self.kind == "exponential":
            x, y, at = -math.log(0.5 / size), -math.log((size - inner - 0.5) / size), -np.log1p(-u)
            return np.asarray(self.table[inner] + (self.table[edge] - self.table[inner]) * (at - y) / (x - y))
        if self.kind == "lognormal" and self.table[inner] > 0:
            p, q = ndtri((edge + 0.5) / size), ndtri((inner + 0.5) / size)
            slope = math.log(self.table[edge] / self.table[inner]) / (p - q)
            return np.asarray(self.table[edge] * np.exp(slope * (ndtri(u) - p)))
        return np.full_like(u, self.table[edge])


def read_law(resolved: LawDocument) -> Law:
    """A law of the resolved platform (docs/platforms.md)."""
    table = np.asarray(resolved["quantiles"], dtype=np.float64)
    return Law(str(resolved.get("law", "")), float(resolved["mean"]), float(resolved["variance"]), table)


def constant(seconds: float) -> Law:
    return Law("constant", seconds, 0.0, np.array([seconds]))

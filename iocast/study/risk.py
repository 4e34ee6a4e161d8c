# SPDX-License-Identifier: Apache-2.0
"""How likely a design keeps its levels, and how sure that likelihood is.

A margin is the logarithm of the factor by which a level is kept; it is negative when the level is missed. Replications,
each with its own draw of the uncertain numbers and its own random numbers, give margins; between and beyond them the
distribution is smoothed (smoothed bootstrap: Silverman & Young 1987). On top comes the error of the model itself,
common to all designs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from iocast.ground.arrays import Array, log, means, numbers

SAMPLES = 4000
RESAMPLES = 200
DOWN = -7.0
"""Margin of a system that does not serve at all."""
PLAUSIBLE = 0.02
"""A design that screening leaves less chance than this is not simulated; such chances are next to nothing."""
FEWEST_POOLED = 4
"""Designs from which on what they have in common is estimated."""


@dataclass(frozen=True)
class ModelError:
    """Of each condition: the scale of the model's error on the logarithmic scale, its degrees of freedom (few held-out
    measurements know it badly: Student's t), the noise of a measurement, and the kind of quantity, within which errors
    are common."""

    scale: Array
    degrees: Array
    noise: Array
    kinds: tuple[str, ...]

    @classmethod
    def none(cls, conditions: int) -> ModelError:
        return cls(np.zeros(conditions), np.full(conditions, np.inf), np.zeros(conditions), ("rate",) * conditions)

    def samples(self, number: int = SAMPLES, seed: int = 0) -> Array:
        """[number, conditions]"""
        result = np.zeros((number, len(self.kinds)))
        for index, kind in enumerate(sorted(set(self.kinds))):
            generator = np.random.Generator(np.random.Philox(key=[seed, index]))
            where = [i for i, k in enumerate(self.kinds) if k == kind]
            degrees = self.degrees.item(where[0])
            common = (
                generator.standard_t(degrees, number) if np.isfinite(degrees) else generator.standard_normal(number)
            )
            own = generator.standard_normal((number, len(where)))
            result[:, where] = common[:, None] * self.scale[where] + own * self.noise[where]
        return result


def predictive(margins: Array, error: ModelError, number: int = SAMPLES, seed: int = 0) -> Array:
    """Samples [number, conditions] of the margins as they may turn out, from replications [replications,
    conditions]."""
    return _weights_of_samples(margins.shape[0], number, seed) @ margins + error.samples(number, seed)


def probabilities(samples: Array) -> tuple[float, Array]:
    """That all conditions hold, and that each one does."""
    kept = samples >= 0
    return float(np.mean(np.logical_and.reduce(kept, axis=1))), means(kept)


def pooled(tables: Sequence[Array], screened: Sequence[Array] | None = None) -> list[Array]:
    """Replications [replications, conditions] of several designs, corrected for choosing among them: each condition's
    mean is drawn towards what the designs have in common, and its spread towards theirs, as far as chance explains the
    differences.

    The cheapest of many designs that pass by estimate is one whose estimate came out well. Its margin is therefore
    estimated together with the others' (empirical Bayes: Efron & Morris 1975; James-Stein with as many degrees of
    freedom as designs leave). Noise that replications share can't favour one design and doesn't count. `screened`:
    margins by condition of each design from the analytic solver; where all designs have one, means are drawn towards a
    straight line over it. Fewer than four designs, and conditions under which one is down, stay as they are."""
    result = [np.array(table, dtype=float) for table in tables]
    if len(tables) < FEWEST_POOLED:
        return result
    shared = min(len(table) for table in tables)
    for j in range(tables[0].shape[1]):
        columns = {d: table[:, j] for d, table in enumerate(tables) if np.all(table[:, j] > DOWN)}
        if len(columns) < FEWEST_POOLED or shared < 2:
            continue
        middle = numbers(float(np.mean(one)) for one in columns.values())
        deviations: Array = np.array([one[:shared] - np.mean(one[:shared]) for one in columns.values()])
        own = deviations - means(deviations)  # without what all designs have in common
        noise = np.sum(np.square(own)) / (shared - 1) / (len(columns) - 1) / numbers(map(len, columns.values()))
        known = None if screened is None else numbers(screened[d].item(j) for d in columns)
        centre, fitted = _line(known, middle)
        left = len(columns) - fitted
        between = max(0.0, float(np.sum(np.square(middle - centre))) / left - float(np.mean(noise)))
        weight = noise / np.maximum(between + noise, 1e-300) * max(left - 2, 0) / left
        spreads = _common_spread(numbers(float(np.std(one, ddof=1)) for one in columns.values()), shared)
        drawn = middle + weight * (centre - middle)
        for (d, column), own_mean, to, spread in zip(columns.items(), middle, drawn, spreads, strict=True):
            result[d][:, j] = to + (column - own_mean) * spread
    return result


def _line(known: Array | None, means: Array) -> tuple[Array, int]:
    """The means as a straight line over what is known, or their mean; and how many numbers were fitted."""
    if known is None or len(means) < FEWEST_POOLED + 2 or not np.all(np.isfinite(known)) or np.ptp(known) < 1e-9:
        return np.full(len(means), np.mean(means)), 1
    return np.asarray(np.polyval(np.polyfit(known, means, 1), known)), 2


def _common_spread(deviations: Array, count: int) -> Array:
    """Factors on standard deviations that draw them towards their root mean square, as far as `count` values leave them
    uncertain."""
    if np.any(deviations < 1e-9):
        return np.ones(len(deviations))
    logs, chance = 2 * log(deviations), 2 / (count - 1)
    beyond = max(0.0, float(np.var(logs, ddof=1)) - chance)
    weight = chance / (chance + beyond)
    return np.asarray(np.exp(weight * (log(np.mean(np.square(deviations))) - logs) / 2))


def resampled(margins: Array, error: ModelError, resamples: int = RESAMPLES, number: int = 400) -> Array:
    """Probabilities that all conditions hold, had the replications fallen otherwise: bootstrap over replications, with
    the same choice of replications for every design."""
    count, conditions = margins.shape
    own: Array = margins.T @ _weights_of_resamples(count, resamples, number)
    samples = own.reshape(conditions, resamples, number)
    samples += error.samples(number, seed=1).T[:, None, :]
    return means(np.logical_and.reduce(samples >= 0), axis=1)


# Samples of a smoothed bootstrap are sums of the replications with weights that are the same for every design. They
# take longer to draw than to use.


def _weights(picked: NDArray[np.int64], mixing: Array, stretch: float = 1.0) -> Array:
    """[samples, replications]: a replication for each sample, and a kernel with the replications' own covariance that
    `mixing` draws from, shrunk towards their mean so that their variance is kept, but for the factor `stretch`."""
    count = mixing.shape[1]
    width = 1.06 * count**-0.2
    own = (picked[:, None] == np.arange(count)) - 1 / count
    kernel = (mixing - means(mixing, 1)[:, None]) / math.sqrt(max(count - 1, 1))
    return np.asarray(1 / count + stretch * (own + width * kernel) / math.sqrt(1 + width**2))


@lru_cache(maxsize=4)
def _weights_of_samples(count: int, number: int, seed: int) -> Array:
    """[number, count]"""
    generator = np.random.Generator(np.random.Philox(key=[seed, 2**20]))
    picked, mixing = generator.integers(count, size=number), generator.standard_normal((number, count))
    # Few replications: their mean is uncertain too.
    return _weights(picked, mixing, math.sqrt(count / (count - 1) + 1 / count) if count > 1 else 1.0)


@lru_cache(maxsize=4)
def _weights_of_resamples(count: int, resamples: int, number: int) -> Array:
    """[count, resamples * number]"""
    generator = np.random.Generator(np.random.Philox(key=[0, 2**21]))
    chosen, picked = (
        generator.integers(count, size=(resamples, count)),
        generator.integers(count, size=resamples * number),
    )
    weights = _weights(picked, generator.standard_normal((resamples * number, count))).reshape(resamples, number, count)
    weights = weights @ (chosen[:, :, None] == np.arange(count))
    return np.ascontiguousarray(weights.reshape(-1, count).T)

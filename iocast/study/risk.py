# SPDX-License-Identifier: Apache-2.0
"""How likely a design keeps its levels, and how sure that likelihood is.

A margin is the logarithm of the factor by which a level is kept; it is negative when the level is missed. Replications, each with
its own draw of what is uncertain and its own random numbers, give margins; between and beyond them the distribution is smoothed
(smoothed bootstrap: Silverman & Young 1987). On top comes the error of the model itself, common to all designs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SAMPLES = 4000
RESAMPLES = 200
DOWN = -7.0
"""Margin of a system that does not serve at all."""


@dataclass(frozen=True)
class ModelError:
    """Of each condition: the scale of the model's error on the logarithmic scale, its degrees of freedom (few held-out
    measurements know it badly: Student's t), the noise of a measurement, and the kind of quantity, within which errors are common."""

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
            degrees = float(self.degrees[where[0]])
            common = generator.standard_t(degrees, number) if np.isfinite(degrees) else generator.standard_normal(number)
            own = generator.standard_normal((number, len(where)))
            result[:, where] = common[:, None] * self.scale[where] + own * self.noise[where]
        return result


def predictive(margins: Array, error: ModelError, number: int = SAMPLES, seed: int = 0) -> Array:
    """Samples [number, conditions] of what the margins will turn out to be, from replications [replications, conditions]."""
    count, conditions = margins.shape
    generator = np.random.Generator(np.random.Philox(key=[seed, 2**20]))
    picked = generator.integers(count, size=number)
    mixing = generator.standard_normal((number, count))
    centre = margins.mean(axis=0)
    residual = margins - centre
    if count > 1:
        # A kernel with the replications' own covariance, and a shrinkage that keeps their variance.
        width = 1.06 * count**-0.2
        kernel = mixing @ residual / np.sqrt(count - 1)
        stretch = np.sqrt(count / (count - 1) + 1 / count)  # few replications: their mean is uncertain too
        smooth = centre + stretch * (residual[picked] + width * kernel) / np.sqrt(1 + width**2)
    else:
        smooth = np.broadcast_to(centre, (number, conditions)).copy()
    return smooth + error.samples(number, seed)


def probabilities(samples: Array) -> tuple[float, Array]:
    """That all conditions hold, and that each one does."""
    kept = samples >= 0
    return float(kept.all(axis=1).mean()), kept.mean(axis=0)


@lru_cache(maxsize=4)
def _choices(count: int, resamples: int, number: int) -> list[tuple[Array, Array, Array]]:
    """The random numbers of resampled(), which takes longer to draw than to use: they are the same for every design."""
    generators = [np.random.Generator(np.random.Philox(key=[i, 2**21])) for i in range(resamples)]
    return [(g.integers(count, size=count), g.integers(count, size=number), g.standard_normal((number, count))) for g in generators]


def resampled(margins: Array, error: ModelError, resamples: int = RESAMPLES, number: int = 400) -> Array:
    """Probabilities that all conditions hold, had the replications fallen otherwise: bootstrap over replications, with the same
    choice of replications for every design."""
    count = margins.shape[0]
    result = np.empty(resamples)
    noise = error.samples(number, seed=1)
    width = 1.06 * count**-0.2
    for i, (replications, picked, mixing) in enumerate(_choices(count, resamples, number)):
        chosen = margins[replications]
        centre = chosen.mean(axis=0)
        kernel = mixing @ (chosen - centre) / np.sqrt(max(count - 1, 1))
        samples = centre + (chosen[picked] - centre + width * kernel) / np.sqrt(1 + width**2) + noise
        result[i] = (samples >= 0).all(axis=1).mean()
    return result

# SPDX-License-Identifier: Apache-2.0
"""How much a run of a knee search does, and how long that takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

FAST = 10_000.0
"""Operations a second of a rank that few storage systems exceed: a run that would take far longer than planned even
there is refused before anything is made."""
FAST_BYTES = 1e9  # a second and rank, likewise


@dataclass(frozen=True)
class Extent:
    """What a run, or making the data set, does by the benchmark's own count. Operations, bytes: a rank's; files: of all
    ranks, at a time. most_seconds: time limit of the phase that is searched, 0 for none; phases: how many there are."""

    operations: float
    bytes: float
    files: int
    most_seconds: float
    phases: int

    @property
    def fast(self) -> float:
        """Seconds on storage of FAST and FAST_BYTES."""
        return max(self.operations / FAST, self.bytes / FAST_BYTES)

    def fits(self, seconds: float) -> bool:
        return 0 < self.most_seconds <= seconds or self.fast <= seconds

    def seconds(self, rate: float) -> float:
        """When a rank does `rate` operations a second."""
        bounded = self.most_seconds * self.phases if self.most_seconds > 0 else math.inf
        return min(self.operations / rate, bounded)

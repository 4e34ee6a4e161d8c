# SPDX-License-Identifier: Apache-2.0
"""Questions of a study to its workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from iocast.study.spec import Scale


@dataclass(frozen=True)
class Point:
    """Where a design is looked at."""

    scenario: str
    workload: str
    scale: str


@dataclass(frozen=True)
class Ask:
    """One evaluation. `factors`, when given, are the factors on what is uncertain, in place of the replication's
    draw."""

    what: Literal["simulate", "analytic"]
    design: int
    point: Point
    replication: int = 0
    factors: tuple[tuple[str, float], ...] | None = None
    at: Scale | None = None  # in place of the point's scale
    again: int = 0
    """Counts simulations of the best estimate, which differ in their random numbers alone."""

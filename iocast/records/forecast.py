# SPDX-License-Identifier: Apache-2.0
"""Forecasts as files and JSON have them (docs/answers.md, `kind: forecast`)."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from iocast.records.quantities import Interval


class Numbers(Enum):
    """Where a platform's numbers come from (`platform.numbers` of a forecast)."""

    FITTED = "fitted"
    BY_HAND = "by hand"
    """Set by its author to published measurements."""
    OWN = "own"
    """Its author's: it was never calibrated."""


class PhaseForecast(Struct, frozen=True):
    """A phase of a forecast."""

    phase: str
    quantities: dict[str, Interval]
    bottleneck: str
    parts: dict[str, Interval] = {}
    seconds: Interval | None = None
    """Length of the phase."""

    @property
    def rate(self) -> Interval:
        """Operations a second, or bytes a second where its `unit` says so."""
        return self.quantities["rate"]

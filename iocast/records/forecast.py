# SPDX-License-Identifier: Apache-2.0
"""Forecasts as files and JSON have them (docs/answers.md, `kind: forecast`)."""

from __future__ import annotations

from msgspec import Struct

from iocast.records.quantities import Interval


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

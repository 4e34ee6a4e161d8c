# SPDX-License-Identifier: Apache-2.0
"""Measurements that `iocast plan` proposes, and where they would be made."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iocast.errors import InputError
from iocast.records.note import TellingRun

WORTH_IT = 0.02
"""A measurement that narrows the interval by less, on the logarithmic scale, is not proposed."""
MAX_UNCERTAINTY_FACTOR = 30.0
"""An interval of so much either way says that nothing is known."""


@dataclass(frozen=True)
class Place:
    nodes: int
    ranks_per_node: int
    waiting_factor: float = 0.0
    settings: tuple[tuple[str, str], ...] = ()  # what of the workload is other than in most runs

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    @property
    def text(self) -> str:
        ranks = f"{self.ranks} rank{'s' if self.ranks > 1 else ''}"
        own = "".join(f", {name}={value}" for name, value in self.settings)
        return ranks + (f" on {self.nodes} nodes" if self.nodes > 1 else "") + f", T = {self.waiting_factor:g}{own}"

    def document(self) -> dict[str, Any]:
        """As in a campaign's point."""
        own = {"settings": dict(self.settings)} if self.settings else {}
        return {"nodes": self.nodes, "ranks_per_node": self.ranks_per_node, "waiting_factor": self.waiting_factor} | own


ALONE = Place(1, 1)


@dataclass(frozen=True)
class Proposed:
    """A measurement, and the factor either way of a 90 % interval of the target's throughput before it and after it.

    `between`: least and largest such factor over the rates that it may measure, where the forecast was made again with
    them (iocast/planning/plan_rates.py). None where `before` and `after` are the spread of candidate platforms, which
    orders measurements and is narrower than the interval of the next forecast."""

    place: Place
    seconds: float | None
    """Of one run; None where another tool makes it."""
    before: float
    after: float
    purpose: str = (
        "narrows"  # or "needed" by a calibration, or "checks" whether the model has a place for what the system does
    )
    between: tuple[float, float] | None = None

    @property
    def worth_it(self) -> bool:
        return math.log(self.before / self.after) >= WORTH_IT

    @property
    def width_before(self) -> str:
        return either_way(self.before)

    @property
    def width(self) -> str:
        """The interval of the forecast with this measurement, in words."""
        if self.between is None:
            return ""
        low, high = self.between
        if high >= MAX_UNCERTAINTY_FACTOR:
            return f"a factor {low:.1f} or more either way" if low < MAX_UNCERTAINTY_FACTOR else either_way(low)
        return f"a factor {low:.1f} to {high:.1f} either way"

    @property
    def text(self) -> str:
        takes = f" (a run takes some {self.seconds:.0f} s)" if self.seconds is not None else ""
        then = f"; throughput would then hold within {self.width} instead of {self.width_before}"
        return f"{self.place.text}{takes}{then if self.between else ''}"

    @property
    def note(self) -> TellingRun:
        at = self.place
        where = at.nodes, at.ranks_per_node, at.waiting_factor
        return TellingRun(*where, self.before, self.after, self.seconds, self.between, dict(at.settings))

    def document(self) -> dict[str, Any]:
        seconds = None if self.seconds is None else round(self.seconds, 1)
        return self.place.document() | {
            "seconds": seconds,
            "before": self.before,
            "after": self.after,
            "between": None if self.between is None else list(self.between),
        }


def either_way(factor: float) -> str:
    return (
        f"a factor {factor:.1f} either way"
        if factor < MAX_UNCERTAINTY_FACTOR
        else f"more than a factor {MAX_UNCERTAINTY_FACTOR:g} either way"
    )


def telling(proposed: Sequence[Proposed], most: int = 3) -> list[Proposed]:
    """Those that are worth their while."""
    return [one for one in proposed if one.worth_it][:most]


def read_place(text: str) -> Place:
    """ "1000x10" or "1000": nodes and ranks of each.

    @raises InputError for anything else"""
    found = re.fullmatch(r"([1-9]\d{0,8})(?:x([1-9]\d{0,8}))?", text)
    if not found:
        raise InputError(f"'{text}' is no placement; write NODES or NODESxRANKS, such as 1000x10.")
    return Place(int(found[1]), int(found[2] or 1))

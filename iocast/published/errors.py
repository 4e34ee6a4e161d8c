# SPDX-License-Identifier: Apache-2.0
"""How far platforms of the catalogue are off published numbers that they were not set to, and what follows for their
forecasts.

`platforms/facts/errors.csv` holds such numbers beside their simulation; `validation/published/errors.py` writes it. The
logarithm of simulated over published is taken for normal about zero. Its variance is estimated from the platform's own
rows, and from the other platforms' as if they were FOREIGN rows more; a further row then lies in Student's t of as many
degrees of freedom. `tests/python/test_catalogue_errors.py` leaves out each row in turn: 90 % intervals hold 90 %.
Beyond the largest scale of a platform's facts the variance grows (growth())."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np
from scipy.optimize import nnls
from scipy.special import stdtrit

from iocast.platforms.fitted import Fitted
from iocast.platforms.documents import PLATFORMS
from iocast.published.facts import BOUNDS, BUDGET, FACTS, Fact
from iocast.records.forecast import Ends
from iocast.records.note import PublishedOff, RestsOnPublished

COLUMNS = ("source", "platform", "run", "nodes", "ppn", "phase", "operation", "quantity", "value", "simulated")
FOREIGN = 4
"""Rows that the other platforms' mean square counts for."""
PATTERN = "md-workbench"
"""The workload of all rows: what a platform misses of another is not known."""
KINDS = {"rate": "rate", "virtual_rate": "rate", "max": "max"}
"""By quantity of a row or forecast, the rows that say how far it is off; all others are latencies, of which third
quartiles were published."""


def tells(fact: Fact) -> bool:
    """Whether a row of platforms/facts is a number that its platform was not set to, and is simulated at its length."""
    return (
        fact.role == "forecast"
        and fact.quantity in {*KINDS, "q75"}
        and fact.tolerance not in BOUNDS
        and (fact.quantity != "max" or fact.iterations <= BUDGET)
    )


def kind_of(quantity: str) -> str:
    return KINDS.get(quantity.rpartition(".")[2], "latency")


@dataclass(frozen=True)
class Row:
    """A published number that the platform was not set to, and its simulation, in SI units."""

    platform: str
    nodes: int
    ranks: int
    kind: str
    value: float
    simulated: float
    what: str = ""
    """Phase, operation and quantity."""

    @property
    def error(self) -> float:
        """As a logarithm."""
        return math.log(self.simulated / self.value)


@cache
def rows() -> tuple[Row, ...]:
    with (FACTS / "errors.csv").open(newline="", encoding="utf-8") as file:
        return tuple(
            Row(
                one["platform"], int(one["nodes"]), int(one["nodes"]) * int(one["ppn"]), kind_of(one["quantity"]),
                float(one["value"]), float(one["simulated"]),
                " ".join((one["phase"], one["operation"], one["quantity"])),
            )
            for one in csv.DictReader(file)
        )  # fmt: skip


def of_several_nodes() -> tuple[Row, ...]:
    """Rows of platforms that have some on more than one node. Runs of one machine differ in its free memory, which says
    nothing of scales or of other systems."""
    several = {one.platform for one in rows() if one.nodes > 1}
    return tuple(one for one in rows() if one.platform in several)


@cache
def growth() -> float:
    """Variance by which errors of one quantity of a platform differ between two scales, for each unit of the logarithm
    of their ratio in ranks: the slope of squared differences, beside what they differ by at one scale."""
    alike: dict[tuple[str, str], list[Row]] = {}
    for one in of_several_nodes():
        alike.setdefault((one.platform, one.what), []).append(one)
    pairs = [pair for those in alike.values() for pair in combinations(those, 2)]
    distances = np.array([[1.0, abs(math.log(a.ranks / b.ranks))] for a, b in pairs])
    return float(nnls(distances, np.array([(a.error - b.error) ** 2 for a, b in pairs]))[0][1])


def of_catalogue(platform: str) -> tuple[Row, ...]:
    return tuple(one for one in rows() if one.platform == platform)


def _of_facts(platform: str, facts: Mapping[str, Any]) -> tuple[Row, ...]:
    """What a file of `iocast calibrate FACTS.csv` says of its platform: facts that were left out, or not fitted to."""
    found = []
    for one in facts["rows"]:
        value = one["fitted"] if one["left_out"] is None else one["left_out"]
        if one["role"] != "given" and one["quantity"] != "balance":
            ranks = one["nodes"] * one["ppn"]
            found.append(Row(platform, one["nodes"], ranks, kind_of(one["quantity"]), one["published"], value))
    return tuple(found)


@dataclass(frozen=True)
class Spread:
    """Of the logarithm of a platform's error: standard deviation, and degrees of freedom of Student's t."""

    deviation: float
    degrees: float

    def factor(self, level: float) -> float:
        """Of the ends of an interval that holds `level`."""
        return math.exp(self.deviation * float(stdtrit(self.degrees, (1 + level) / 2)))


def spread(own: Sequence[float], others: Sequence[Sequence[float]]) -> Spread:
    """From a platform's errors of one kind, and from those of each other platform."""
    foreign = [_mean_square(one) for one in others if one]
    squares = sum(error * error for error in own) + FOREIGN * sum(foreign) / len(foreign)
    return Spread(math.sqrt(squares / (FOREIGN + len(own))), FOREIGN + len(own))


def _mean_square(errors: Sequence[float]) -> float:
    return sum(error * error for error in errors) / len(errors)


@dataclass(frozen=True)
class Errors:
    """What published numbers say of a platform of the catalogue or one that was fitted to facts, or of one that extends
    either."""

    platform: str
    edited: bool
    """Whether another file or edits stand upon it."""
    rows: tuple[Row, ...]
    patterns: tuple[str, ...] = (PATTERN,)
    """Of the workloads that the rows are of; what it misses of another one is not known."""
    left_out: bool = False
    """Whether it was fitted to rows, each of which was left out once."""

    @classmethod
    def of(cls, platform: Fitted) -> Errors | None:
        """None without published numbers that it was not set to, and for a calibrated platform, whose measurements say
        more."""
        if platform.fitted:
            return None
        for depth, (file, document) in enumerate(platform.chain()):
            edited = bool(depth or platform.edits)
            if facts := (document.get("calibration") or {}).get("facts"):
                return cls(file.stem, edited, _of_facts(file.stem, facts), tuple(facts["patterns"]), left_out=True)
            if file.parent.resolve() == PLATFORMS.resolve() and (own := of_catalogue(file.stem)):
                return cls(file.stem, edited, own)
        return None

    def speaks_of(self, pattern: str) -> bool:
        return pattern in self.patterns

    def own(self, kind: str | None = None) -> list[Row]:
        return [one for one in self.rows if kind in (None, one.kind)]

    def spread(self, quantity: str, beyond: float = 1.0) -> Spread:
        """beyond: times the largest scale of a published number (serves.py), with which the error grows"""
        kind = kind_of(quantity)
        others: dict[str, list[float]] = {}
        for one in of_several_nodes():
            if one.kind == kind and one not in self.rows:
                others.setdefault(one.platform, []).append(one.error)
        near = spread([one.error for one in self.own(kind)], list(others.values()))
        return Spread(math.sqrt(near.deviation**2 + growth() * math.log(max(1.0, beyond))), near.degrees)

    def around(self, values: Mapping[str, float], level: float, beyond: float) -> dict[str, Ends]:
        """Value, low and high of each quantity of a forecast; `beyond` as in spread()."""
        found: dict[str, Ends] = {}
        for name, value in values.items():
            factor = self.spread(name, beyond).factor(level)
            found[name] = {"value": value, "low": value / factor, "high": value * factor}
        return found

    @property
    def note(self) -> RestsOnPublished:
        """What the intervals rest on."""
        known = []
        for kind, name in (("rate", "rates"), ("latency", "third quartiles of latencies"), ("max", "maxima")):
            if errors := [abs(one.error) for one in self.own(kind)]:
                known.append(PublishedOff(name, len(errors), math.exp(median(errors))))
        return RestsOnPublished(self.platform, known, self.edited, bool(self.left_out))

# SPDX-License-Identifier: Apache-2.0
"""The designs of a study: what each is made of, what it costs, and the platform document that says how it behaves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from iocast.platforms.content import content_hash, whole
from iocast.platforms.family import MeasuredSystem, family_of, others_of_family, set_by_hand_to
from iocast.platforms.fitted import Fitted
from iocast.platforms.documents import Document, get_path, merge
from iocast.forecasts.links import edits_links
from iocast.published.errors import Errors
from iocast.published.serves import Serves
from iocast.runs.question import Question
from iocast.study.documents import Down, Edit, edited, is_count, number
from iocast.study.spec import NORMAL, Study, Value
from iocast.platforms.unmeasured import in_place, leaves, unmeasured

HOURS_A_YEAR = 8766
STRATA = 4
"""Replications in a block; each block is a Latin hypercube over what is uncertain (McKay, Beckman & Conover 1979)."""


@dataclass(frozen=True, eq=False)
class Design:
    """One value on every axis. `number` counts designs from 1 in the order of the full factorial and names it for
    good."""

    number: int
    values: tuple[Value, ...]
    name: str
    parts: tuple[tuple[str, float], ...]
    price: float
    cost: float  # price and electricity
    watts: float
    rack_units: float
    beyond: tuple[str, ...]  # sentences on the limits it breaks

    @property
    def id(self) -> str:
        return f"d{self.number}"


def _set_by(value: Value) -> set[str]:
    found = {edit.path for edit in value.edits if edit.how == "set"}
    return found.union(*(leaves(edit.value) for edit in value.edits if edit.how == "lay"))


class Designs:
    """All designs, or the requested ones."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._known: dict[int, Design] = {}

    def at(self, number: int) -> Design:
        if number not in self._known:
            self._known[number] = self._make(number)
        return self._known[number]

    def of(self, choice: tuple[int, ...]) -> Design:
        """By the index of the value on every axis."""
        number = 0
        for axis, index in zip(self.study.axes, choice, strict=True):
            number = number * len(axis.values) + index
        return self.at(number + 1)

    def choice(self, number: int) -> tuple[int, ...]:
        rest, result = number - 1, []
        for axis in reversed(self.study.axes):
            rest, index = divmod(rest, len(axis.values))
            result.append(index)
        return tuple(reversed(result))

    def excluded(self, design: Design) -> bool:
        named = {axis.name: value.name for axis, value in zip(self.study.axes, design.values, strict=True)}
        return any(all(named[axis] in names for axis, names in one.items()) for one in self.study.exclude)

    def all(self) -> Iterator[Design]:
        """The full factorial without what is excluded."""
        for choice in itertools.product(*(range(len(axis.values)) for axis in self.study.axes)):
            design = self.of(choice)
            if not self.excluded(design):
                yield design

    @cached_property
    def settled(self) -> set[str]:
        """Paths of numbers that each design sets, whichever value it has of an axis."""
        found: set[str] = set()
        for axis in self.study.axes:
            found |= set.intersection(*(_set_by(value) for value in axis.values))
        return found

    def _make(self, number: int) -> Design:
        study = self.study
        values = tuple(axis.values[i] for axis, i in zip(study.axes, self.choice(number), strict=True))
        parts = dict(study.base)
        for value in values:
            for name, count in value.parts.items():
                parts[name] = parts.get(name, 0) + count
        price, watts, units = (
            sum(count * getattr(study.parts[n], what) for n, count in parts.items())
            for what in ("price", "watts", "rack_units")
        )
        cost = price + watts / 1000 * HOURS_A_YEAR * study.years * study.price_per_kwh
        beyond = []
        for have, limit, what, unit in (
            (cost, study.limits.budget, "budget", study.currency),
            (watts, study.limits.watts, "electrical power", "W"),
            (units, study.limits.rack_units, "rack", "units"),
        ):
            if have > limit:
                beyond.append(f"{what}: {have:,.0f} of {limit:,.0f} {unit}".rstrip())
        chosen = [(axis, v) for axis, v in zip(study.axes, values, strict=True) if len(axis.values) > 1] or [
            (study.axes[0], values[0])
        ]
        name = ", ".join(f"{axis.name} {v.name}" if axis.numbers else v.name for axis, v in chosen)
        return Design(number, values, name, tuple(parts.items()), price, cost, watts, units, tuple(beyond))


class Platform:
    """One platform that designs start from: the best one and what the data would also allow."""

    def __init__(self, reference: str, fitted: Fitted, defaults: list[Edit]) -> None:
        self.reference = reference
        self.fitted = fitted.fitted
        self.edited, self.undecided = fitted.edited, bool(fitted.fitted) and fitted.undecided
        self.other_links = edits_links(fitted)
        self.phases = fitted.phases
        own = fitted.chain()[0][1]
        self.description, self.source = str(own.get("description") or ""), str(own.get("source") or "")
        self.set_by_hand_to = set_by_hand_to(fitted)
        self.errors = Errors.of(fitted)
        self.serves = Serves.of(fitted)
        self._source = fitted
        self._defaults = defaults

    @cached_property
    def best(self) -> tuple[Document, str]:
        """The document and its hash."""
        return self._ready(self._source.best())

    @cached_property
    def measured_systems(self) -> tuple[str, list[MeasuredSystem]]:
        """Its family, and the catalogue's measured systems of it but itself; none beside a calibrated platform."""
        return family_of(self._source), [] if self.fitted else others_of_family(self._source)

    def unmeasured(
        self,
        operations: Iterable[str],
        question: Question,
        settled: Iterable[str],
        bytes_each: Mapping[str, float] | None = None,
    ) -> dict[str, list[str]]:
        """Of a question's operations the numbers that nothing measured (iocast/platforms/unmeasured.py)."""
        return unmeasured(self._source, operations, question, settled, bytes_each)

    def in_place(self, rests: dict[str, list[str]]) -> dict[str, str]:
        return in_place(self._source, rests)

    @cached_property
    def draws(self) -> list[tuple[Document, str]]:
        return [self._ready(document) for document in self._source.draws()]

    def moved_with(self, path: str) -> tuple[str, ...]:
        """A fitted parameter's path and those that its calibration sets in proportion to it (docs/calibration.md,
        `also`)."""
        return (path, *self._also.get(path, ()))

    @cached_property
    def _also(self) -> dict[str, list[str]]:
        merged: dict[str, Any] = {}
        for _, document in reversed(self._source.chain()):
            merged = merge(merged, {"calibration": document["calibration"]} if "calibration" in document else {})
        calibration: dict[str, Any] = merged.get("calibration") or {}
        groups = [calibration.get("parameters", {})]
        groups += [
            option.get("parameters", {})
            for choice in calibration.get("choices", {}).values()
            for option in choice.values()
        ]
        found: dict[str, list[str]] = {}
        for one in (one for group in groups for one in group.values()):
            found.setdefault(one["path"], []).extend(one.get("also", {}))
        return found

    def for_phase(self, phase: str) -> Platform:
        """The calibration of one of `phases`."""
        return Platform(self.reference, self._source.for_phase(phase), self._defaults)

    def with_defaults(self, defaults: list[Edit]) -> Platform:
        return Platform(self.reference, self._source, defaults)

    def _ready(self, document: Document) -> tuple[Document, str]:
        full = edited(whole(document), self._defaults)
        return full, content_hash(full)


def _plain(value: Any) -> float:
    """A number with or without a unit of time; 0 for anything else."""
    found = number(value)
    return 0.0 if found is None else found[0] * {"us": 1e-6, "ms": 1e-3, "ns": 1e-9}.get(found[1], 1.0)


class Variants:
    """Platform documents of designs, by scenario and replication. Replication 0 is the best estimate; the others draw
    what is uncertain."""

    def __init__(self, study: Study, platforms: dict[str, Platform]) -> None:
        self.study = study
        self.platforms = platforms

    def platform_of(self, design: Design) -> Platform:
        return self.platforms[next((v.platform for v in design.values if v.platform), self.study.platform)]

    def edits(
        self, design: Design, scenario: str, replication: int, factors: dict[str, float] | None = None
    ) -> list[Edit]:
        """All edits of the platform: pieces laid over it first, then single values, then what goes wrong, then the
        unknown factors."""
        given = [edit for value in design.values for edit in value.edits]
        edits = [e for e in given if e.how == "lay"] + [e for e in given if e.how != "lay"]
        if scenario != NORMAL:
            edits += self.study.scenarios[scenario].edits
        if factors is None:
            factors = {
                name: math.exp(self.study.uncertainty[name].sd * z)
                for name, z in self.normal_scores(replication).items()
            }
        for name, factor in factors.items():
            paths = (
                self.study.uncertainty[name].paths
                if name in self.study.uncertainty
                else self.platform_of(design).moved_with(name)
            )
            edits += [
                Edit(path, "times", float(f"{factor:.9g}")) for path in paths if factor != 1 and not is_count(path)
            ]
        return edits

    def uncertain(self, design: Design) -> dict[str, float]:
        """What is uncertain about a design, with the standard deviation of its logarithm: the study's own and the
        fitted parameters."""
        found = {name: one.sd for name, one in self.study.uncertainty.items()}
        best = self.platform_of(design).best[0]
        for path, known in self.platform_of(design).fitted.get("parameters", {}).items():
            low, high = _plain(known["low"]), _plain(known["high"])
            if high > low > 0 and get_path(best, path) is not None:
                found[path] = math.log(high / low) / 2 / NormalDist().inv_cdf(0.95)
        return found

    def base(self, design: Design, replication: int) -> tuple[Document, str]:
        platform = self.platform_of(design)
        if replication == 0 or not platform.draws:
            return platform.best
        return platform.draws[self.draw_of(replication, len(platform.draws))]

    @staticmethod
    def draw_of(replication: int, count: int) -> int:
        """Each choice is permuted over the draws by itself, so that any of them are a sample; few replications are
        spread over them all (van der Corput 1935)."""
        order = sorted(range(count), key=lambda i: int(f"{i:08b}"[::-1], 2))
        return order[(replication - 1) % count]

    def seed_of(self, design: Design, replication: int) -> int:
        """What is added to the study's seed: for a draw of the calibration as much as a forecast adds for it, so that
        the two say the same."""
        count = len(self.platform_of(design).draws)
        return self.draw_of(replication, count) if 0 < replication <= count else replication

    def normal_scores(self, replication: int) -> dict[str, float]:
        """Standard normal numbers for what is uncertain, stratified over each block of replications."""
        if replication == 0:
            return {}
        block, place = divmod(replication - 1, STRATA)
        result = {}
        for index, name in enumerate(self.study.uncertainty):
            generator = np.random.Generator(np.random.Philox(key=[block, index]))
            stratum = generator.permutation(STRATA)[place]
            inside = generator.random(STRATA)[place]
            result[name] = NormalDist().inv_cdf((stratum + 0.05 + 0.9 * inside) / STRATA)
        return result

    def scores(self, design: Design, replication: int) -> dict[str, float]:
        """How far this replication's draw lies from the best estimate, in standard deviations of each uncertain thing's
        logarithm."""
        found = self.normal_scores(replication)
        best, drawn = self.platform_of(design).best[0], self.base(design, replication)[0]
        for path, sd in self.uncertain(design).items():
            if path not in self.study.uncertainty:
                a, b = _plain(get_path(drawn, path)), _plain(get_path(best, path))
                found[path] = math.log(a / b) / sd if a > 0 and b > 0 else 0.0
        return found

    def key(self, design: Design, scenario: str, replication: int, factors: dict[str, float] | None = None) -> str:
        """What the document is made of, as a hash: cheaper than the document itself."""
        edits = [e.as_json() for e in self.edits(design, scenario, replication, factors)]
        return content_hash([self.base(design, replication)[1], edits])

    def document(
        self, design: Design, scenario: str, replication: int, factors: dict[str, float] | None = None
    ) -> Document:
        """@raises Down when nothing is left of a part"""
        return edited(self.base(design, replication)[0], self.edits(design, scenario, replication, factors))

    def is_down(self, design: Design, scenario: str) -> bool:
        try:
            self.document(design, scenario, 0)
        except Down:
            return True
        return False

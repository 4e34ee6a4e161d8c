# SPDX-License-Identifier: Apache-2.0
"""What a forecast answers and a measurement measured, as one record that both are matched by (docs/answers.md,
`question`)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from iocast.platforms.content import content_hash
from iocast.errors import InputError
from iocast.ground.strict import NUMBER, Json

NO_PART = ("repeats", "phases", "start_index", "start", "done", "items_made", "seed")
"""Parameters for the length of a run, its start in its data and its random numbers; they are no part of the
question."""
LENGTHS = (
    "iterations", "objects", "items", "transactions", "operations",
    "most_seconds", "stonewalling_time", "runtime", "ramp_time",
)  # fmt: skip
"""Parameters for how much a run does, or how long; of two runs that differ in these alone one is a longer one of the
same."""
SCALES = {
    "": 1.0,
    "B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
    "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40,
    "k": 2.0**10, "K": 2.0**10, "m": 2.0**20, "M": 2.0**20, "g": 2.0**30, "G": 2.0**30,
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0,
    "/s": 1.0, "/ms": 1e3, "/us": 1e6, "/min": 1 / 60,
}  # fmt: skip
"""Factors from a setting's unit, as the programs take it, to bytes, seconds and per second."""
BASE_UNITS = {"bytes": "B", "seconds": "s", "per second": "/s"}
"""Units of SI by the name that a pattern's parameter has for its own."""
_NUMBER = re.compile(rf"({NUMBER})\s*([A-Za-z/]*)")


@dataclass(frozen=True)
class Setting:
    """A workload parameter's value: a number in bytes, seconds, per second or without unit, or a text. Two are equal by
    meaning: 5s and 5000ms, 4KiB and 4096. `unit` is for those who read it; a number of a run directory has none."""

    number: float | None
    text: str = ""
    unit: str = field(default="", compare=False)

    @classmethod
    def read(cls, value: object) -> Setting:
        """A value of JSON or YAML, or as --set takes it."""
        if isinstance(value, bool):
            return cls(None, str(value).lower())
        if isinstance(value, int | float):
            return cls(_rounded(value))
        text = str(value).strip()
        found = _NUMBER.fullmatch(text)
        if found and found[2] in SCALES:
            return cls(_rounded(float(found[1]) * SCALES[found[2]]), unit=_base(found[2]))
        return cls(None, {"yes": "true", "no": "false"}.get(text, text))

    def document(self) -> str | float:
        """As JSON: a number without unit, "3901B" with one, or the text."""
        if self.number is None:
            return self.text
        number = int(self.number) if self.number == int(self.number) and abs(self.number) < 1e15 else self.number
        return f"{number}{self.unit}" if self.unit else number

    def __str__(self) -> str:
        return f"{self.number:.9g}{self.unit}" if self.number is not None else self.text


def meaning(value: object) -> Setting:
    """A setting as other tools' results have it, to compare: without the unit, and true or false as 1 or 0, which some
    tools write for them."""
    read = Setting.read(value)
    if read.number is None and read.text in ("true", "false"):
        return Setting(float(read.text == "true"))
    return Setting(read.number, read.text)


def _rounded(value: float) -> float:
    """To 9 digits: sums of units differ in the last ones."""
    return float(f"{value:.9g}")


def _base(unit: str) -> str:
    if unit.startswith("/"):
        return "/s"
    return "s" if unit in ("ns", "us", "ms", "s", "min", "h") else "B" if unit else ""


@dataclass(frozen=True)
class Placement:
    """`nodes` is None where an imported run doesn't say."""

    nodes: int | None
    ranks_per_node: float | None
    ranks: int

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Placement:
        return cls(document.get("nodes"), document.get("ranks_per_node"), int(document["ranks"]))

    def document(self) -> dict[str, Any]:
        return {"ranks": self.ranks, "nodes": self.nodes, "ranks_per_node": self.ranks_per_node}

    def is_at(self, other: Placement) -> bool:
        """Whether the two are one place; without a number of nodes the ranks decide."""
        return self.ranks == other.ranks and (None in (self.nodes, other.nodes) or self.nodes == other.nodes)

    def distance(self, other: Placement) -> float:
        """Logarithm of the steps from one to the other, over nodes and over ranks on each; over ranks alone where the
        nodes of either are not known."""
        if self.nodes and other.nodes and self.ranks_per_node and other.ranks_per_node:
            return abs(math.log(self.nodes / other.nodes)) + abs(math.log(self.ranks_per_node / other.ranks_per_node))
        return abs(math.log(self.ranks / other.ranks))

    def line(self, places: Sequence[Placement]) -> list[int]:
        """Indices of the places from which this one is reached in one direction: those with as many ranks on each
        node, or those on as many nodes, whichever have more different numbers of ranks, or as many and come nearer to
        this one's. Places without a number of nodes are on each line; without one of this placement all are."""
        if self.nodes is None:
            return list(range(len(places)))
        of_nodes, of_ranks = (
            [i for i, one in enumerate(places) if one.nodes is None or getattr(one, which) == getattr(self, which)]
            for which in ("ranks_per_node", "nodes")
        )

        def worth(line: list[int]) -> tuple[int, float]:
            ranks = {places[i].ranks for i in line}
            return len(ranks), -min((abs(math.log(n / self.ranks)) for n in ranks), default=math.inf)

        return max(of_nodes, of_ranks, key=worth)

    def __str__(self) -> str:
        return f"{self.nodes} x {self.ranks_per_node}" if self.nodes is not None else f"{self.ranks} ranks"


@dataclass(frozen=True)
class Question:
    """A workload with its settings, where it runs, and the phase that is looked at. Whether a measurement speaks of a
    forecast's system at all is `is_of_workload`, whether at its very place is `answers`; nothing else decides it.

    `definition` is a hash of a workload file without its parameters, such as the phases of an application; "" where
    that is nothing. `settings` is None for a platform that was fitted to rates alone, which knows nothing of them."""

    pattern: str
    definition: str
    settings: tuple[tuple[str, Setting], ...] | None
    placement: Placement
    waiting_factor: float
    phase: str
    name: str = field(default="", compare=False)
    think_time: float = 0.0
    """Seconds after each operation, beside the waiting factor's."""
    mounts: int = 1
    """Mount points that ranks are spread over: a node has as many connections."""

    @classmethod
    def of(
        cls,
        workload: Mapping[str, Any],
        placement: Mapping[str, Any],
        phase: str,
        *,
        settings_known: bool = True,
        mounts: int = 1,
    ) -> Question:
        """Of the `workload` and `placement` of a run.json."""
        parameters = workload["parameters"]
        return cls(
            str(workload["pattern"]),
            definition_of(workload),
            tuple(sorted((name, Setting.read(value)) for name, value in _flat(parameters) if _is_part(name)))
            if settings_known
            else None,
            Placement.read(placement),
            Setting.read(parameters.get("waiting_factor") or 0).number or 0.0,
            phase,
            str(workload.get("name", "")),
            Setting.read(parameters.get("think_time") or 0).number or 0.0,
            mounts,
        )

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Question:
        """As document() writes it. @raises InputError when something is missing or is of another kind"""
        try:
            workload, settings = document["workload"], document["settings"]
            think_time = document.get("think_time") or (settings or {}).get("think_time")  # of versions before
            return cls(
                str(workload["pattern"]),
                str(workload["definition"]),
                None
                if settings is None
                else tuple(sorted((n, Setting.read(value)) for n, value in settings.items() if _is_part(n))),
                Placement.read(document["placement"]),
                float(document["waiting_factor"]),
                str(document["phase"]),
                str(workload.get("name", "")),
                Setting.read(think_time or 0).number or 0.0,
                int(document.get("mounts", 1)),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"its question can't be read ({type(error).__name__}: {error})") from error

    def document(self) -> dict[str, Any]:
        return {
            "workload": {"name": self.name, "pattern": self.pattern, "definition": self.definition},
            "settings": None
            if self.settings is None
            else {name: setting.document() for name, setting in self.settings},
            "placement": self.placement.document(),
            "waiting_factor": self.waiting_factor,
            "think_time": self.think_time,
            "phase": self.phase,
        } | ({"mounts": self.mounts} if self.mounts > 1 else {})

    @property
    def kind(self) -> tuple[str, str, str]:
        """Pattern, definition and phase: the question without its settings and place."""
        return self.pattern, self.definition, self.phase

    def differences(self, other: Question) -> list[str]:
        """What the two differ in, one phrase each, own value first; empty when they are one question."""
        found = self.differences_of_workload(other)
        if not self.placement.is_at(other.placement):
            found.append(f"placement {self.placement} (nodes x ranks a node), not {other.placement}")
        if _rounded(self.waiting_factor) != _rounded(other.waiting_factor):
            found.append(f"waiting factor {self.waiting_factor:g}, not {other.waiting_factor:g}")
        if _rounded(self.think_time) != _rounded(other.think_time):
            found.append(f"think_time {self.think_time:g} s, not {other.think_time:g} s")
        return found

    def differences_of_workload(self, other: Question) -> list[str]:
        """In definition, phase, mount points, and settings but think times and LENGTHS; settings count only where both
        know them."""
        found = []
        if (self.pattern, self.definition) != (other.pattern, other.definition):
            own, theirs = self.name or self.pattern, other.name or other.pattern
            found.append(
                f"workload {own}, not {theirs}" if own != theirs else f"another definition of the workload {own}"
            )
        if self.phase != other.phase:
            found.append(f"phase {self.phase}, not {other.phase}")
        if self.mounts != other.mounts:
            found.append(f"{self.mounts} mount point{'s' * (self.mounts > 1)}, not {other.mounts}")
        for name, (own_value, other_value) in self.settings_apart(other).items():
            found.append(
                f"{name} {'not set' if own_value is None else own_value}, not "
                f"{'unset' if other_value is None else other_value}"
            )
        return found

    def settings_apart(self, other: Question) -> dict[str, tuple[Setting | None, Setting | None]]:
        """Own and other value of each setting that the two differ in, None where it is not set. Think times and LENGTHS
        don't count, and no setting does where either knows none or is of another pattern."""
        if self.settings is None or other.settings is None or self.pattern != other.pattern:
            return {}
        own, others = dict(self.settings), dict(other.settings)
        return {
            name: (own.get(name), others.get(name))
            for name in sorted(own.keys() | others.keys())
            if own.get(name) != others.get(name) and not _is_length(name)
        }

    def is_of_workload(self, other: Question) -> bool:
        """Whether what is measured of the one speaks of the other: one workload with the same settings but for its
        length, wherever it runs and however long ranks think."""
        return not self.differences_of_workload(other)

    def answers(self, other: Question) -> bool:
        """Whether the two are one question, but for the length of the run."""
        return not self.differences(other)


def mounts_of(environment: Mapping[str, Any] | None) -> int:
    """Mount points that the ranks of a run with this `environment` were spread over."""
    return len((environment or {}).get("mounts") or [None])


def definition_of(workload: Mapping[str, Any]) -> str:
    """Hash of the `workload` of a run.json without name, pattern and parameters."""
    rest = {
        key: value
        for key, value in workload.items()
        if key not in ("name", "pattern", "parameters", "source", "description")
    }
    return content_hash(rest) if rest else ""


def _flat(parameters: Mapping[str, Json], prefix: str = "") -> list[tuple[str, Json]]:
    """Nested parameters, as a mix of workloads has them, by dotted names."""
    found: list[tuple[str, Json]] = []
    for name, value in parameters.items():
        found += _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(f"{prefix}{name}", value)]
    return found


def _is_part(name: str) -> bool:
    return name not in ("waiting_factor", "think_time") and name.rpartition(".")[2] not in NO_PART


def _is_length(name: str) -> bool:
    return name.rpartition(".")[2] in LENGTHS

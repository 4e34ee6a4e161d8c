# SPDX-License-Identifier: Apache-2.0
"""What a forecast answers and a measurement measured, as one record that both are matched by (docs/answers.md,
`question`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from iocast.content import content_hash
from iocast.errors import InputError
from iocast.strict import NUMBER

NO_PART = ("repeats", "phases", "start_index", "start", "done", "items_made", "seed")
"""Parameters for the length of a run, its start in its data and its random numbers; they are no part of the
question."""
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
    def read(cls, value: Any) -> Setting:
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

    def document(self) -> Any:
        """As JSON: a number without unit, "3901B" with one, or the text."""
        if self.number is None:
            return self.text
        number = int(self.number) if self.number == int(self.number) and abs(self.number) < 1e15 else self.number
        return f"{number}{self.unit}" if self.unit else number

    def __str__(self) -> str:
        return f"{self.number:.9g}{self.unit}" if self.number is not None else self.text


def meaning(value: Any) -> Setting:
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
    ranks_per_node: int | None
    ranks: int

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Placement:
        return cls(document.get("nodes"), document.get("ranks_per_node"), int(document["ranks"]))

    def document(self) -> dict[str, Any]:
        return {"ranks": self.ranks, "nodes": self.nodes, "ranks_per_node": self.ranks_per_node}

    def __str__(self) -> str:
        return f"{self.nodes} x {self.ranks_per_node}" if self.nodes is not None else f"{self.ranks} ranks"


@dataclass(frozen=True)
class Question:
    """A workload with its settings, where it runs, and the phase that is looked at. Hashable: forecasts and
    measurements are matched by it.

    `definition` is a hash of a workload file without its parameters, such as the phases of an application; "" where
    that is nothing. `settings` is None for a platform that was fitted to rates alone, which knows nothing of them."""

    pattern: str
    definition: str
    settings: tuple[tuple[str, Setting], ...] | None
    placement: Placement
    waiting_factor: float
    phase: str
    name: str = field(default="", compare=False)

    @classmethod
    def of(
        cls, workload: Mapping[str, Any], placement: Mapping[str, Any], phase: str, *, settings_known: bool = True
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
        )

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Question:
        """As document() writes it. @raises InputError when something is missing or is of another kind"""
        try:
            workload, settings = document["workload"], document["settings"]
            return cls(
                str(workload["pattern"]),
                str(workload["definition"]),
                None
                if settings is None
                else tuple(sorted((str(name), Setting.read(value)) for name, value in settings.items())),
                Placement.read(document["placement"]),
                float(document["waiting_factor"]),
                str(document["phase"]),
                str(workload.get("name", "")),
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
            "phase": self.phase,
        }

    def differences(self, other: Question) -> list[str]:
        """What the two differ in, one phrase each, own value first; empty when they are one question. Settings count
        only where both know them."""
        found = []
        if (self.pattern, self.definition) != (other.pattern, other.definition):
            own, theirs = self.name or self.pattern, other.name or other.pattern
            found.append(
                f"workload {own}, not {theirs}" if own != theirs else f"another definition of the workload {own}"
            )
        if self.phase != other.phase:
            found.append(f"phase {self.phase}, not {other.phase}")
        if self.placement != other.placement:
            found.append(f"placement {self.placement} (nodes x ranks a node), not {other.placement}")
        if _rounded(self.waiting_factor) != _rounded(other.waiting_factor):
            found.append(f"waiting factor {self.waiting_factor:g}, not {other.waiting_factor:g}")
        if self.settings is not None and other.settings is not None and self.pattern == other.pattern:
            own_settings, other_settings = dict(self.settings), dict(other.settings)
            for name in sorted(own_settings.keys() | other_settings.keys()):
                own_value, other_value = own_settings.get(name), other_settings.get(name)
                if own_value != other_value:
                    found.append(
                        f"{name} {'not set' if own_value is None else own_value}, not "
                        f"{'unset' if other_value is None else other_value}"
                    )
        return found

    def answers(self, other: Question) -> bool:
        return not self.differences(other)


def definition_of(workload: Mapping[str, Any]) -> str:
    """Hash of the `workload` of a run.json without name, pattern and parameters."""
    rest = {
        key: value
        for key, value in workload.items()
        if key not in ("name", "pattern", "parameters", "source", "description")
    }
    return content_hash(rest) if rest else ""


def _flat(parameters: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Nested parameters, as a mix of workloads has them, by dotted names."""
    found = []
    for name, value in parameters.items():
        found += _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else [(f"{prefix}{name}", value)]
    return found


def _is_part(name: str) -> bool:
    return name != "waiting_factor" and name.rpartition(".")[2] not in NO_PART

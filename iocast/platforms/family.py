# SPDX-License-Identifier: Apache-2.0
"""Measured systems of the catalogue beside a platform that was never calibrated. A platform of the catalogue names
itself one in its section `calibration`: `measured_system: {family: lustre, by: md-workbench}`, the family that it
belongs to and the workload that it was set to measurements of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from iocast.calibrate.recipe import MEASURED_SYSTEM
from iocast.errors import InputError, RunError
from iocast.ground.files import read_yaml
from iocast.platforms.fitted import Fitted
from iocast.platforms.documents import PLATFORMS, Document
from iocast.records.forecast import Ends, FamilyRange, FamilySystem, Range

LABEL = "range, not an interval"
"""Of the ends that stand beside a forecast without measurements: they have no probability."""
Values = dict[tuple[str, str], float]
"""Quantities by phase and name."""


@dataclass(frozen=True)
class MeasuredSystem:
    name: str
    description: str
    by: str

    @property
    def document(self) -> Document:
        return {"schema_version": 1, "extends": self.name}


def family_of(platform: Fitted) -> str:
    """The platform at the bottom of all that it extends."""
    return platform.chain()[-1][0].stem


def set_by_hand_to(platform: Fitted) -> str | None:
    """The workload to whose published measurements the author set this very platform; None where there is none, or for
    a platform that only extends one."""
    return ((platform.chain()[0][1].get("calibration") or {}).get(MEASURED_SYSTEM) or {}).get("by")


def measured_systems(family: str) -> list[MeasuredSystem]:
    """Those of the catalogue, by name."""
    found = []
    for file in sorted(PLATFORMS.glob("*.yaml")):
        document = read_yaml(file)
        reported = (document.get("calibration") or {}).get(MEASURED_SYSTEM)
        if reported and reported["family"] == family:
            found.append(MeasuredSystem(file.stem, str(document.get("description", "")), str(reported["by"])))
    return found


def others_of_family(platform: Fitted) -> list[MeasuredSystem]:
    """The catalogue's measured systems of a platform's family, itself left out."""
    itself = platform.file.stem if platform.file.parent.resolve() == PLATFORMS.resolve() else None
    return [one for one in measured_systems(family_of(platform)) if one.name != itself]


@dataclass
class Beside:
    """What measured systems of the family forecast for the same question, the platform itself left out."""

    family: str
    systems: list[tuple[MeasuredSystem, Values]]
    refused: list[str]

    @classmethod
    def of(cls, platform: Fitted, ask: Callable[[Document], Values]) -> Beside:
        family = family_of(platform)
        systems, refused = [], []
        for one in others_of_family(platform):
            try:
                systems.append((one, ask(one.document)))
            except (InputError, RunError) as error:
                refused.append(f"{one.name} has no answer to this question: {error}")
        return cls(family, systems, refused)

    def document(self, phase: str, quantities: Mapping[str, Ends]) -> FamilyRange:
        """As a forecast has it (docs/answers.md, `family`). A range is from the least favourable measured system, the
        lowest rate or the longest latency, to the platform's own value."""
        entries: list[FamilySystem] = [
            {
                "name": one.name,
                "description": one.description,
                "by": one.by,
                "quantities": {n: v for (p, n), v in values.items() if p == phase},
            }
            for one, values in self.systems
        ]
        ranges: dict[str, Range] = {}
        for name, printed in quantities.items():
            known = [one["quantities"][name] for one in entries if name in one["quantities"]]
            if known:
                worst = min(known) if name == "rate" else max(known)
                ranges[name] = {"low": min(worst, printed["value"]), "high": max(worst, printed["value"])}
        return {"family": self.family, "systems": entries, "range": ranges, "label": LABEL}

    def sentences(self, workload: str) -> list[str]:
        """What a reader must know of the comparison."""
        if not self.systems and self.refused:
            return [
                f"No measured system of this family ({self.family}) answers this question: nothing tells how far the "
                "value may be off.",
                *self.refused,
            ]
        if not self.systems:
            return [
                f"The catalogue has no measured system of this family ({self.family}): nothing tells how far the value "
                "may be off.",
                *self.refused,
            ]
        others = sorted({one.by for one, _ in self.systems} - {workload})
        entries = [
            f"Beside it stand the catalogue's measured systems of the family {self.family}, as models that were set to "
            f"their measurements: {', '.join(one.name for one, _ in self.systems)}. The range from the least "
            f"favourable of them to this platform's value is a {LABEL}."
        ]
        if others:
            entries.append(f"They were set to measurements of {' and '.join(others)}, not of {workload}.")
        return entries + self.refused

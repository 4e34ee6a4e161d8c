# SPDX-License-Identifier: Apache-2.0
"""A fitted platform: the best one, those that the data would also allow, and edits upon them all."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iocast.platforms.content import content_hash, whole
from iocast.runs.agreement import check_fitted
from iocast.errors import InputError
from iocast.platforms.documents import (
    Document,
    chain,
    make_room,
    set_path,
    find_platform,
    has_part,
    merge,
    reference,
    with_whole_paths,
)
from iocast.rules.residuals import kind_of
from iocast.records.fitted import FittedSection
from iocast.runs.question import mounts_of


WORDS = {"schema_version", "extends", "name", "description", "source", "serves", "calibration"}
"""Sections of a platform file that say nothing of the system."""


@dataclass
class Fitted:
    """A platform file with what a calibration found, and perhaps edits upon it."""

    file: Path
    fitted: FittedSection  # empty for a platform that was never calibrated
    documents: list[Document]  # from the fitted file (or the family's name) up to the requested file
    edits: list[tuple[str, Any]]
    whole_file: Fitted | None = None
    """The calibration of all phases that this one's phase is of."""

    @classmethod
    def open(cls, name_or_file: str, edits: list[tuple[str, Any]] | None = None) -> Fitted:
        file = find_platform(name_or_file)
        found = chain(file)
        depth = next((i for i, (_, document) in enumerate(found) if document.get("fitted", {}) != {}), None)
        if depth is None:
            return cls(file, {}, [{"schema_version": 1, "extends": reference(name_or_file)}], edits or [])
        base = dict(found[depth][1])
        _require_fitted(base, found[depth][0])
        check_fitted(base, found[depth][0])
        base["extends"] = reference(str(base["extends"]), found[depth][0].parent)
        fitted = base.pop("fitted")
        overlays = [document for _, document in reversed(found[:depth])]
        return cls(file, fitted, [base, *overlays], edits or [])

    @property
    def phase(self) -> str:
        """The phase of the measured runs that was fitted."""
        return str(self.fitted.get("campaign", {}).get("phase", "benchmark"))

    @property
    def mounts(self) -> int:
        """Mount points that the measured runs went through."""
        return mounts_of((self.fitted.get("campaign") or {}).get("environment"))

    @property
    def phases(self) -> list[str]:
        """The phases that were fitted, the one that stands for the workload first."""
        return [self.phase, *self.fitted.get("further_phases", {})]

    def for_phase(self, phase: str) -> Fitted:
        """The calibration of one of `phases`, with the same edits."""
        own = self.fitted["further_phases"][phase] if phase != self.phase else None
        base = (
            {**self.documents[0]}
            if own is None
            else {"schema_version": 1, "extends": self.documents[0]["extends"], **own["platform"]}
        )
        fitted = self.fitted.copy() if own is None else own["fitted"]
        if own is None:
            fitted.pop("further_phases", None)
        return Fitted(self.file, fitted, [base, *self.documents[1:]], self.edits, self)

    def require_nodes(self, nodes: int) -> None:
        """@raises InputError where the family is a default, and what a further node brings was not measured"""
        if known := self.fitted.get("by_default"):
            measured = {int(point["nodes"]) for point in self.fitted["campaign"]["points"]}
            refuse_more_nodes(measured, nodes, known["because"])

    @property
    def rates_alone(self) -> bool:
        """Whether nothing but rates was fitted."""
        return self.fitted.get("method") == "rates"

    @property
    def edited(self) -> bool:
        """Whether it is another system than the one that was measured: by edits, or by files that extend it."""
        return bool(self.edits) or any(set(overlay) - WORDS for overlay in self.documents[1:])

    @property
    def undecided(self) -> bool:
        """Whether several structures fit about equally well, none of them better than all others together."""
        alternatives = self.fitted.get("alternatives") or []
        return any(one["weight"] < 0.5 for one in alternatives[:1])

    def as_measured(self) -> Fitted:
        """The same calibration without any edit."""
        return Fitted(self.file, self.fitted, self.documents[:1], [])

    def chain(self) -> list[tuple[Path, Document]]:
        """The file and all that it extends, itself first."""
        if self.file.is_file():
            return chain(self.file)
        own: list[tuple[Path, Document]] = [(self.file, one) for one in reversed(self.documents)]  # not yet written
        return [*own, *chain(find_platform(str(self.documents[0]["extends"])))]

    def best(self) -> Document:
        """The fitted platform with all edits, as one document."""
        return self._edited(self.documents[0])

    def draws(self) -> list[Document]:
        """Platforms that the data would also allow, with the same edits."""
        laws = {
            name: {key: value for key, value in law.items() if key not in ("shift", "scale")}
            for name, law in self.documents[0].get("demands", {}).items()
            if isinstance(law, dict) and law.get("law") == "empirical"
        }
        result = []
        for draw in self.fitted.get("draws", []):
            document: Document = {"schema_version": 1, "extends": self.documents[0]["extends"]}
            document |= copy.deepcopy({key: value for key, value in draw.items() if key != "demands"})
            document["demands"] = copy.deepcopy(laws)
            for name, law in draw.get("demands", {}).items():
                document["demands"][name] = (
                    document["demands"][name] | law if name in laws and isinstance(law, dict) else law
                )
            document["demands"] = {name: law for name, law in document["demands"].items() if law is not None}
            result.append(self._edited(document))
        return result

    def content_hash(self) -> str:
        """Hash of all that a forecast by this platform depends on: the platform with all that it extends and all edits,
        and what was fitted. Comments, descriptions, the order of keys and the names of files don't count."""
        return (
            self.whole_file.content_hash()
            if self.whole_file
            else content_hash({"platform": whole(self.best()), "fitted": self.fitted})
        )

    def _edited(self, base: Document) -> Document:
        document = copy.deepcopy(base)
        if self.documents[1:] or self.edits:
            document = whole(document)  # what they take away, or change in part, may be in what it extends
        for overlay in self.documents[1:]:
            own = {
                key: value
                for key, value in overlay.items()
                if key not in ("extends", "calibration", "description", "source", "fitted")
            }
            document = merge(document, own)
        for path, value in self.edits:
            make_room(document, path, value)
        for path, value in self.edits:
            if has_part(document, path):  # draws of another structure may lack it
                set_path(document, path, copy.deepcopy(value))
        return with_whole_paths(document, Path())


def _require_fitted(document: Document, file: Path) -> None:
    """@raises InputError for a fitted platform without what every forecast reads of it"""
    fitted = document["fitted"]
    draws = fitted.get("draws", []) if isinstance(fitted, dict) else None
    for part, wrong in (
        ("extends", not isinstance(document.get("extends"), str)),
        ("demands", not isinstance(document.get("demands", {}), dict)),
        ("fitted", not isinstance(fitted, dict)),
        ("fitted.campaign", isinstance(fitted, dict) and not isinstance(fitted.get("campaign", {}), dict)),
        (
            "fitted.draws",
            not isinstance(draws, list)
            or not all(isinstance(draw, dict) and isinstance(draw.get("demands", {}), dict) for draw in draws),
        ),
    ):
        if wrong:
            raise InputError(
                f"The fitted platform '{file}' has no {part} as iocast calibrate writes it; the file is damaged, or "
                "was edited."
            )


FEWEST_DEGREES = 1
"""Of Student's t, for a discrepancy that rests on one value."""


def discrepancy_at(fitted: FittedSection, kind: str, ranks: int, largest: int = 0) -> tuple[float, float]:
    """The model's own error of a kind of quantity ("rate", "q50", ...) at a scale, as standard deviation of the
    logarithm: what the held-out scale showed, and perhaps what is known of the family, grown with the distance beyond
    the fitted scales, or beyond `largest` if that is more. And its degrees of freedom: Student's t.

    @raises InputError for a kind that was not fitted"""
    if kind not in fitted["discrepancy"]:
        raise InputError(
            f"The platform was fitted to rates alone and says nothing of a {kind}; judge rates, or calibrate a "
            "platform with measured latencies."
        )
    scales = fitted["campaign"]["ranks"]
    growth = fitted.get("discrepancy_growth") or {"step": scales[-1] / scales[-2] if len(scales) > 1 else 2, "power": 1}
    distance = (
        max(0.5, math.log(max(ranks / max(scales[-1], largest), 1)) / math.log(growth["step"])) ** growth["power"]
    )
    held_out = sum(
        kind_of(row["quantity"]) == kind for row in fitted["holdout"].get("rows", [])
    )  # all that it rests on where that is not written
    return fitted["discrepancy"][kind] * distance, max(
        FEWEST_DEGREES, fitted.get("discrepancy_degrees", {}).get(kind, held_out)
    )


def refuse_more_nodes(measured: set[int], nodes: int, unknown: str) -> None:
    """@raises InputError that names the run which would tell what a further node brings"""
    if len(measured) == 1 and nodes > max(measured):
        (one,) = measured
        raise InputError(
            f"There is no value for {nodes} nodes: all measurements ran on {one} node{'s' * (one > 1)}, and {unknown}. "
            "Whether further nodes share this storage or bring their own was not measured. A run on "
            f"{2 * one} nodes settles it; or name the family with --platform (iocast list platforms)."
        )

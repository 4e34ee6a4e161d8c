# SPDX-License-Identifier: Apache-2.0
"""Forecasts that were made before: what they answer, of which platform they are, and when they were made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from iocast.runs.agreement import check_forecast
from iocast.errors import InputError
from iocast.ground.files import moment, read_json, sha256
from iocast.runs.question import Question
from iocast.records.forecast import ForecastDocument
from iocast.records.validation import Made
from iocast.runs.run_directory import Point
from iocast.runs.settings import whole_workload


@dataclass(frozen=True)
class Earlier:
    """A forecast's content, its file ("" where it is in memory only) and the hash of that."""

    document: ForecastDocument
    file: str
    sha256: str

    @classmethod
    def open(cls, path: Path) -> Earlier:
        """@raises InputError for what is no forecast, or one of a version that wrote no question"""
        return cls._checked(read_json(path, "forecast"), str(path), sha256(path))

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Earlier:
        """A forecast in memory; the hash is of its JSON with sorted keys."""
        return cls._checked(document, "", hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest())

    @classmethod
    def _checked(cls, document: Mapping[str, Any], file: str, digest: str) -> Earlier:
        found = cls(cast(ForecastDocument, document), file, digest)
        if (
            "question" not in document
            or "content_hash" not in document.get("platform", {})
            or "made_at" not in document
        ):
            raise InputError(
                f"{found.name} was written by an earlier version of iocast: it carries no question, platform hash or "
                "time, so that nothing can be checked. Forecast again with iocast predict."
            )
        check_forecast(document, found.name)
        try:
            found.question  # noqa: B018
        except InputError as error:
            raise InputError(f"{found.name} is damaged: {error}.") from error
        return found

    @property
    def name(self) -> str:
        return f"The forecast '{self.file or self.document.get('label', '')}'"

    @cached_property
    def question(self) -> Question:
        return Question.read(self.document["question"])

    def check(self, platform_hash: str, level: float) -> None:
        """@raises InputError unless it is of this platform and level"""
        if self.document["platform"]["content_hash"] != platform_hash:
            edits = self.document["platform"].get("edits")
            because = f" with the edits {', '.join(edits)}" if edits else ""
            raise InputError(
                f"{self.name} is of another platform than the one to validate: "
                f"{self.document['platform'].get('file', '')}{because}, content "
                f"{self.document['platform']['content_hash'][:16]}, not {platform_hash[:16]}. Name the platform that "
                "it was made with."
            )
        if abs(self.document["level"] - level) > 1e-9:
            raise InputError(
                f"{self.name} has intervals of level {self.document['level']:g}, not {level:g}; validate with --level "
                f"{self.document['level']:g}."
            )

    def phases(self) -> list[tuple[Question, ForecastDocument]]:
        """Each phase's question, and the forecast as if it were of that phase alone."""
        further = self.document.get("further_phases", [])
        return [
            (self.question, self.document),
            *((Question.read(one["question"]), cast(ForecastDocument, {**self.document, **one})) for one in further),
        ]

    def of(self, points: list[Point]) -> list[tuple[Point, ForecastDocument]]:
        """The measured points that it is the forecast of, each with the forecast of its phase.

        @raises InputError that names the differences from the nearest point when there is none"""
        measured = [(point, _as_fitted(point)) for point in points]
        found = [
            (point, document)
            for question, document in self.phases()
            for point, own in measured
            if question.answers(own)
        ]
        if not found:
            nearest, own = min(measured, key=lambda one: len(self.question.differences(one[1])))
            raise InputError(
                f"{self.name} answers another question than any measurement given. It differs from the nearest, "
                f"{nearest.name}, in: {'; '.join(self.question.differences(own))}."
            )
        return found

    def made(self, point: Point) -> Made:
        """Where it comes from, and whether it was made before the point's measurements began: None where these don't
        say when that was."""
        starts = [run.record.started for run in point.runs]
        before = None
        if all(starts):
            try:
                before = moment(self.document["made_at"]) < min(moment(str(start)) for start in starts)
            except (ValueError, TypeError):
                before = None
        return {
            "when": "earlier",
            "file": self.file,
            "sha256": self.sha256,
            "made_at": self.document["made_at"],
            "before_measurement": before,
        }


def _as_fitted(point: Point) -> Question:
    """What was measured, of another tool's result with the settings that it doesn't state."""
    run = point.first
    if not run.imported:
        return point.question
    workload = whole_workload(run.json["workload"] | {"parameters": run.parameters})
    return Question.of(workload, run.json["placement"], run.phase)

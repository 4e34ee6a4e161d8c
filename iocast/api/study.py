# SPDX-License-Identifier: Apache-2.0
"""`iocast.study`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from iocast.api.answer import Found, Place, Progress, Row, quietly
from iocast.api.chart import Axes
from iocast.study import run_study
from iocast.wording.study import as_text
from iocast.jobs.workers import Workers
from iocast.records.study import StudyDocument


class Study(Found[StudyDocument]):
    """The cheapest design that keeps service levels, and how sure that is."""

    axes = Axes("price", "rate", colour="name")

    @property
    def decision(self) -> str | None:
        """The design's name; None where none keeps the levels."""
        decision = self._document["decision"]
        return None if decision is None else str(decision)

    def text(self) -> str:
        return as_text(self._document)

    def rows(self) -> list[Row]:
        return [
            {key: value for key, value in one.items() if value is None or isinstance(value, str | float | int)}
            for one in self._document["designs"]
        ]


def study(
    file: Place,
    *,
    out: Place,
    seed: int = 0,
    progress: Progress = quietly,
    tell: Callable[[str], None] = quietly,
    workers: Workers | None = None,
    command: Sequence[str] = ("iocast.study",),
    beyond: bool = False,
) -> Study:
    """Chooses the cheapest design that meets service levels (docs/studies.md).

    @param out directory for the answer; results of an earlier run in it are used again
    @param tell hears what earlier runs say, before anything is computed
    @param command that the answer names as the one that made it
    @param beyond also far beyond the published numbers of a platform of the catalogue
    @raises InputError with file and line"""
    crew = workers or Workers()
    return Study(run_study(Path(file), Path(out), crew, progress, list(command), seed, tell, beyond=beyond))

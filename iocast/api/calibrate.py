# SPDX-License-Identifier: Apache-2.0
"""`iocast.calibrate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iocast.api.answer import Answer, Place, Progress, Row, quietly, unit_in_row
from iocast.api.chart import Axes
from iocast.api.runs import Runs, sources_of
from iocast.calibrate.known import Known
from iocast.calibrate.phases import calibrate_phases, chosen_phases
from iocast.ground.files import write_text
from iocast.platforms.fitted import Fitted
from iocast.records.codes import each_once, notes_of
from iocast.records.note import Note
from iocast.planning.plan import next_runs
from iocast.platforms.documents import Document, dump
from iocast.planning.proposed import telling
from iocast.wording.calibration import calibration_text, next_text
from iocast.jobs.workers import Workers


class Calibration(Answer, Fitted):
    """A platform that was fitted to measurements, with what the fit shows of itself."""

    axes = Axes("measured", "fitted", colour="quantity", facet="unit")

    def __init__(self, document: Document, file: Path, seed: int, workers: Workers | None) -> None:
        fitted = document["fitted"]
        Fitted.__init__(self, file, fitted, [{key: value for key, value in document.items() if key != "fitted"}], [])
        self._target, self._proposed = next_runs(self, seed=seed, workers=workers)
        runs = [one.document() for one in self._proposed]
        fitted["next"] = {"target": self._target.document(), "runs": runs}
        self._document = document

    def document(self) -> dict[str, Any]:
        return self._document

    def save(self, file: Place) -> Path:
        """Writes the platform file, which commands and other calls take."""
        self.file = Path(file)
        write_text(self.file, "# SPDX-License-Identifier: Apache-2.0\n" + dump(self._document))
        return self.file

    def text(self) -> str:
        further = self.fitted.get("further_phases", {})
        return "\n".join(
            [
                *([f"Phase {self.phase}"] if further else []),
                calibration_text(self.fitted),
                *(f"\nPhase {name}\n{calibration_text(one['fitted'])}" for name, one in further.items()),
                next_text(self.fitted.get("open", {}), self._target, telling(self._proposed)),
            ]
        )

    @property
    def cautions(self) -> list[Note]:
        """What must be known before it is believed, of all phases, as codes with numbers (docs/cautions.md)."""
        return each_once(one for name in self.phases for one in notes_of(self.for_phase(name).fitted))

    def rows(self) -> list[Row]:
        every = [(name, self.for_phase(name).fitted) for name in self.phases]
        return [
            {
                "phase": name,
                "point": row["point"],
                "quantity": row["quantity"],
                "unit": unit_in_row(row["quantity"], row),
                "measured": row["measured"],
                "fitted": row["forecast"],
                "error": row["error"],
            }
            for name, fitted in every
            for row in fitted["fit"]
        ]


def calibrate(
    sources: Runs | Place | Sequence[Place],
    platform: str | None = None,
    *,
    phases: Sequence[str] = (),
    seed: int = 0,
    progress: Progress = quietly,
    workers: Workers | None = None,
    file: Place = "fitted.yaml",
    trace: Place | None = None,
    known: Sequence[str] = (),
) -> Calibration:
    """Fits a platform to measurements, and tests it on their largest scale.

    >>> import iocast
    >>> runs = iocast.import_results("examples/first-forecast/cirrus.csv")
    >>> fitted = iocast.calibrate(runs)
    >>> fitted.phases, fitted.rates_alone
    (['file-create'], True)

    @param platform whose numbers are fitted; by default the family that the results tell
    @param phases by default all but set-up and clean-up
    @param file that `save` writes by default; nothing is written before
    @param trace file for the search's state, from which an interrupted call goes on
    @param known numbers of the system that the fit holds, such as mds.servers=512, or begins with (network=20us~1.5)
    @raises InputError when the measurements are too few, or nothing has such a number"""
    places = sources_of(sources)
    kept = None if trace is None else Path(trace)
    facts = [Known.of(text) for text in known]
    document = calibrate_phases(
        places, chosen_phases(places, list(phases)), platform, seed, progress, workers, kept, facts
    )
    progress("what a further measurement would tell", 1, 1)
    return Calibration(document, Path(file), seed, workers)

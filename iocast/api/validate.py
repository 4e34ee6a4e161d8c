# SPDX-License-Identifier: Apache-2.0
"""`iocast.validate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iocast.api.answer import Found, Place, Progress, Row, cells, platform_of, quietly, unit_in_row
from iocast.api.chart import Axes
from iocast.api.runs import Runs, sources_of
from iocast.runs.earlier import Earlier
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.records.validation import ValidationDocument
from iocast.runs.run_directory import Point, Run, find_runs, group, measured_phases, run_directories
from iocast.ground.strict_yaml import allowed_sentence
from iocast.validate import LEAST_COVERAGE, MAX_RATE_ERROR
from iocast.validate import validate as judged
from iocast.wording.checked import validation_text
from iocast.jobs.workers import Workers


class Validation(Found[ValidationDocument]):
    """Forecasts beside measurements and simple rules."""

    axes = Axes("measured", "forecast", "low", "high", "quantity", "unit")

    @property
    def passed(self) -> bool:
        return bool(self._document["passed"])

    def text(self) -> str:
        return validation_text(self._document)

    def rows(self) -> list[Row]:
        keys = ("quantity", "measured", "forecast", "low", "high", "error", "inside")
        return [
            {
                "point": point["name"],
                "role": point["role"],
                "unit": unit_in_row(row["quantity"], row),
                **{key: cell for key, cell in cells(row) if key in keys},
            }
            for point in self._document["points"]
            for row in point["rows"]
        ]


def validate(
    platform: Place | Fitted,
    sources: Runs | Place | Sequence[Place],
    *,
    role: str | None = None,
    phases: Sequence[str] = (),
    forecasts: Sequence[Place] = (),
    level: float = 0.9,
    most_rate_error: float = MAX_RATE_ERROR,
    least_coverage: float = LEAST_COVERAGE,
    seed: int = 0,
    progress: Progress = quietly,
    workers: Workers | None = None,
) -> Validation:
    """Compares forecasts of a fitted platform with measurements, and with simple rules.

    @param role only a campaign's points of this role
    @param phases by default those of the runs that the platform was fitted to; where they have none of them, as those
    of another workload, all but set-up and clean-up
    @param forecasts files that `predict` wrote earlier, judged instead of new ones
    @raises InputError where nothing was measured of the phases or the role"""
    fitted, places = platform_of(platform), sources_of(sources)
    points: list[Point] = []
    for name in _chosen(phases, fitted, places):
        points += [point for point in group(find_runs(places, name)[0]) if role is None or point.role == role]
    if not points:
        raise InputError(f"There is no measured point of the role '{role}' in {', '.join(map(str, places))}.")
    progress(f"forecasting {len(points)} measured points", 0, 1)
    return Validation(
        judged(
            fitted, points, level=level, seed=seed, most_rate_error=most_rate_error, least_coverage=least_coverage,
            forecasts=[Earlier.open(Path(path)) for path in forecasts], workers=workers,
        )
    )  # fmt: skip


def _chosen(named: Sequence[str], fitted: Fitted, places: list[Path]) -> Sequence[str]:
    """The phases to judge. @raises InputError for one that was neither fitted nor measured"""
    measured = {phase.name for path, _, _ in run_directories(places) for phase in Run.read(path)[1].phases}
    for name in named:
        if name not in fitted.phases and name not in measured:
            allowed = allowed_sentence(name, list(dict.fromkeys([*fitted.phases, *sorted(measured)])))
            raise InputError(
                f"The platform '{fitted.file}' was not fitted to the phase '{name}', and no run has it. {allowed}"
            )
    return named or [name for name in fitted.phases if name in measured] or list(measured_phases(places))

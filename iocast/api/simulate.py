# SPDX-License-Identifier: Apache-2.0
"""`iocast.simulate`."""

from __future__ import annotations

from collections.abc import Mapping

from iocast.ground.binaries import as_settings
from iocast.api.answer import Place, Progress, platform_of, quietly
from iocast.api.predict import Forecast
from iocast.records.forecast import CourseRow
from iocast.simulate import moment_of, phase_at, simulation_text
from iocast.simulate import simulate as simulated
from iocast.jobs.workers import Workers


class Simulation(Forecast):
    """A forecast from hardware data: without intervals, beside measured systems of its family."""

    def text(self) -> str:
        return simulation_text(self._document)

    def at(self, moment: str) -> Simulation:
        """With the phase of a moment, such as "30min" after the first phase began."""
        seconds = moment_of(moment)
        found: CourseRow = {"moment": seconds, **phase_at(self._document["course"], seconds)}
        return Simulation({**self._document, "at": found})


def simulate(
    platform: Place,
    workload: str,
    nodes: int = 1,
    ranks_per_node: int = 1,
    *,
    settings: Mapping[str, object] | None = None,
    phase: str | None = None,
    edits: Mapping[str, object] | None = None,
    seed: int = 0,
    beyond: bool = False,
    progress: Progress = quietly,
    workers: Workers | None = None,
) -> Simulation:
    """A workload on a platform from hardware data.

    >>> import iocast
    >>> small = {"datasets": 1, "iterations": 10, "objects": 10}
    >>> answer = iocast.simulate("queue", "md-workbench", 1, 2, settings=small)
    >>> answer.document()["placement"]["ranks"], sorted(answer.phases)
    (2, ['benchmark'])

    @param beyond also far beyond the published numbers of a platform of the catalogue
    @raises InputError for a fitted platform, whose forecasts `predict` makes"""
    return Simulation(
        simulated(
            platform_of(platform, edits), workload, as_settings(settings or {}), nodes, ranks_per_node,
            phase=phase, seed=seed, beyond=beyond, report=progress, workers=workers,
        )
    )  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""`iocast.forecast`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from iocast.api.answer import Answer, Found, Place, Progress, Row, as_paths, quantity_rows, quietly, unit_in_row
from iocast.api.chart import Axes
from iocast.api.predict import Forecast
from iocast.api.runs import Runs, sources_of
from iocast.calibrate.known import Known
from iocast.forecast import Answer as Results
from iocast.forecast import forecast as whole_way
from iocast.wording.forecasts import forecasts_text
from iocast.forecasts.training import forecast_training, training_text
from iocast.jobs.workers import Workers
from iocast.records.feeding import AcceleratorsDocument


class Forecasts(Answer):
    """Forecasts of each phase of some results at each target; `out` holds runs, fitted platforms and the report."""

    axes = Axes("nodes", "value", "low", "high", "phase", "quantity")

    def __init__(self, found: Results) -> None:
        self._found = found
        self.out = found.out

    @property
    def forecasts(self) -> list[Forecast]:
        return [Forecast(made) for one in self._found.phases for made in one.forecasts]

    def text(self) -> str:
        return forecasts_text(self._found)

    def document(self) -> dict[str, Any]:
        return self._found.document()

    def rows(self) -> list[Row]:
        made = [made for one in self._found.phases for made in one.forecasts]
        return [{"nodes": one["placement"]["nodes"]} | row for one in made for row in quantity_rows(one)]


def forecast(
    sources: Runs | Place | Sequence[Place],
    nodes: int | Sequence[int],
    *,
    out: Place,
    ranks_per_node: int | None = None,
    phase: str | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    platform: str | None = None,
    ranks_measured: int | None = None,
    nodes_measured: int | None = None,
    level: float = 0.9,
    seed: int = 0,
    progress: Progress = quietly,
    workers: Workers | None = None,
    command: str = "iocast.forecast",
    known: Sequence[str] = (),
) -> Forecasts:
    """Larger scales from results of any tool, or from runs and campaigns, with a report in `out`.

    @param only settings of the runs to forecast from, each with the values that it may have
    @param ranks_measured, nodes_measured of results that don't say it
    @param command that the report names as the one that made it
    @param known numbers of the system that the fit holds, such as mds.servers=512, or begins with (network=20us~1.5)
    @raises InputError when nothing can be read or forecast; `out` is not left behind then"""
    return Forecasts(
        whole_way(
            sources_of(sources), [nodes] if isinstance(nodes, int) else [int(one) for one in nodes], Path(out),
            ranks_per_node=ranks_per_node, platform=platform, phase=phase, only=only,
            stated={"ranks": ranks_measured, "nodes": nodes_measured},
            level=level, seed=seed, report=progress, workers=workers, command=command,
            known=[Known.of(text) for text in known],
        )
    )  # fmt: skip


class Accelerators(Found[AcceleratorsDocument]):
    """Utilisation and throughput of more accelerators, and how many keep a utilisation."""

    axes = Axes("accelerators", "value", "low", "high", facet="quantity")

    def text(self) -> str:
        return training_text(self._document)

    def rows(self) -> list[Row]:
        return [
            {
                "accelerators": one["count"],
                "quantity": name,
                "unit": unit_in_row(name, self._document),
                "value": ends["value"],
                "low": ends["low"],
                "high": ends["high"],
                "fed": one["fed"],
            }
            for one in self._document["forecasts"]
            for name, ends in (("utilisation", one["utilisation"]), ("rate", one["rate"]))
        ]


def forecast_accelerators(
    sources: Place | Sequence[Place],
    accelerators: int | Sequence[int] = (),
    *,
    out: Place,
    hosts: int | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    limit: float | None = None,
    hosts_measured: int | None = None,
    level: float = 0.9,
) -> Accelerators:
    """More accelerators from results of trainings: DLIO, MLPerf Storage, tables, or runs of `training`.

    @param accelerators counts to forecast; how many keep `limit` is answered in any case
    @param hosts among which the accelerators are spread; those of the largest measurement unless given
    @param only settings of the runs to forecast from, each with the values that it may have
    @param limit utilisation to keep, 0 to 1; that of MLPerf Storage for the workload unless given
    @raises InputError when nothing can be read or forecast; `out` is not left behind then"""
    counts = [accelerators] if isinstance(accelerators, int) else list(accelerators)
    return Accelerators(
        forecast_training(
            as_paths(sources), counts, Path(out), hosts=hosts, only=only, limit=limit,
            stated={"nodes": hosts_measured}, level=level,
        )
    )  # fmt: skip

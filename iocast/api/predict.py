# SPDX-License-Identifier: Apache-2.0
"""`iocast.predict`."""

from __future__ import annotations

from collections.abc import Mapping

from iocast.ground.binaries import as_settings
from iocast.api.answer import Found, Place, Row, platform_of, quantity_rows
from iocast.api.chart import Axes
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict as forecast_of
from iocast.records.declared import record_of
from iocast.records.forecast import ForecastDocument, PhaseForecast
from iocast.wording.forecast import forecast_text, ranks_text
from iocast.jobs.workers import Workers


class Forecast(Found[ForecastDocument]):
    """A forecast of one placement. `phases`: by name, the one that stands for the workload first."""

    axes = Axes("quantity", "value", "low", "high", "phase", "unit")

    def __init__(self, document: ForecastDocument) -> None:
        super().__init__(document)
        rows = [document, *document["further_phases"]]
        ends = document["quantities"]["rate"]["low"] is not None
        place = document["placement"]
        self.caption = (
            f"{document['workload']['name']} on {document['label']}, {ranks_text(place['ranks'])} "
            f"({place['nodes']} x {place['ranks_per_node']}): forecast"
            + (f" with its {100 * document['level']:.0f} % interval" if ends else ", no interval")
        )
        self.phases = {str(one["phase"]): record_of(one, PhaseForecast) for one in rows}

    @property
    def warnings(self) -> list[str]:
        """What must be known before it is believed."""
        return list(self._document["warnings"])

    def text(self) -> str:
        return forecast_text(self._document)

    def rows(self) -> list[Row]:
        return [row for one in [self._document, *self._document["further_phases"]] for row in quantity_rows(one)]


def predict(
    platform: Place | Fitted,
    nodes: int = 1,
    ranks_per_node: int | None = None,
    *,
    workload: str | None = None,
    settings: Mapping[str, object] | None = None,
    phase: str | None = None,
    edits: Mapping[str, object] | None = None,
    solver: str | None = None,
    level: float = 0.9,
    seed: int = 0,
    beyond: bool = False,
    label: str = "",
    workers: Workers | None = None,
) -> Forecast:
    """The rates and latencies of a workload at a scale, of a fitted platform or one of the catalogue.

    >>> import iocast
    >>> small = {"datasets": 2, "iterations": 20, "objects": 20}
    >>> forecast = iocast.predict("queue", 2, 4, workload="md-workbench", settings=small, solver="analytic")
    >>> rate = forecast.phases["benchmark"].rate
    >>> more = iocast.predict(
    ...     "queue", 2, 4, workload="md-workbench", settings=small, solver="analytic",
    ...     edits={"stations.server.servers": 4},
    ... )
    >>> more.phases["benchmark"].rate.value > rate.value
    True
    >>> rate.low is None  # nothing was measured, so no interval is known
    True

    @param settings of the workload; those that are not given are the calibration's
    @param edits of the platform, by path: {"stations.mds.servers": 32}
    @param beyond also far beyond the published numbers of a platform of the catalogue
    @raises InputError, RunError with what is wrong and what is allowed"""
    return Forecast(
        forecast_of(
            platform_of(platform, edits), workload, as_settings(settings or {}), nodes, ranks_per_node, phase=phase,
            solver=solver, level=level, seed=seed, beyond=beyond, label=label, workers=workers,
        )
    )  # fmt: skip

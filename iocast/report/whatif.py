# SPDX-License-Identifier: Apache-2.0
"""What a report needs to simulate its fitted platform: the calibration's draws, and what was measured and forecast."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from iocast.ground import binaries
from iocast.platforms.content import whole
from iocast.errors import InputError, RunError
from iocast.platforms.fitted import Fitted
from iocast.forecasts.request import resolved
from iocast.platforms.documents import Document, find_platform
from iocast.records.forecast import ForecastDocument
from iocast.report import answers, evidence, units
from iocast.report.sources import Sources
from iocast.whatif.panel import OWN, Beside, Panel, Setting, file_in_module, panel, platform_files

MAX_DRAWS = 16
"""Draws of a calibration that a page simulates, the first ones."""
NOTE = (
    "The page corrects a simulation as its forecasts do at the nearest scales, and widens their interval by how "
    "differently the calibration's draws answer to the change, with the same random numbers."
)


def report_panel(sources: Sources, rows: list[dict[str, Any]]) -> Panel | None:
    """The panel of a report with one fitted platform and forecasts of it; None without these, for what was fitted to
    rates alone, and where the module was not built. `rows`: of the figure of throughput."""
    forecasts = [one for one in answers.answered(sources) if "model" in one["quantities"].get("rate", {})]
    if len(sources.fitted_files) != 1 or not forecasts:
        return None
    platform = Fitted.open(str(sources.fitted_files[0]))
    if platform.rates_alone or len(platform.phases) > 1:
        return None
    try:
        return panel(_setting(platform, forecasts[0]), _beside(platform, forecasts, rows))
    except (InputError, RunError):
        return None  # a workload that is no longer there


def _setting(platform: Fitted, forecast: ForecastDocument) -> Setting:
    best, place = platform.best(), forecast["placement"]
    family = find_platform(str(platform.documents[0]["extends"]))
    files = platform_files(family) | {f"{OWN}/platform.yaml": _file(best)}
    files |= {f"{OWN}/draw-{i}.yaml": _file(draw) for i, draw in enumerate(platform.draws()[:MAX_DRAWS])}
    return Setting(
        platform=f"{OWN}/platform.yaml",
        files=files,
        document=whole(best),
        resolved=resolved(best, platform.file),
        workload=forecast["workload"]["pattern"],
        settings=binaries.as_settings(forecast["workload"]["parameters"]),
        nodes=int(place["nodes"]),
        ranks_per_node=int(place["ranks_per_node"]),
        phase=evidence.phase_of(forecast),
    )


def _file(document: Document) -> str:
    """As the module reads it: what a document without files upon it extends is a file of the module, too."""
    base = {"extends": file_in_module(find_platform(str(document["extends"])))} if "extends" in document else {}
    return json.dumps(document | base)


def _beside(platform: Fitted, forecasts: list[ForecastDocument], rows: list[dict[str, Any]]) -> Beside:
    phase = evidence.phase_of(forecasts[0])
    same = [one for one in forecasts if evidence.phase_of(one) == phase]
    points = [row for row in rows if row["phase"] == phase and row["value"]]
    targets = {evidence.ranks_of(one["placement"]) for one in same}
    rules = {name for one in same for name in one.get("baselines") or {}}
    return Beside(
        as_it_is="As measured",
        measured=[{"ranks": row["ranks"], "rate": row["value"]} for row in points if row["series"] == "measured"],
        forecasts=list(_forecasts(same)),
        rules=[
            {"ranks": row["ranks"], "rate": row["value"], "name": row["series"]}
            for row in points
            if row["series"] in rules and row["ranks"] in targets
        ],
        draws=min(MAX_DRAWS, len(platform.draws())),
        level=units.share(same[0]["level"]),
        notes=[NOTE],
    )


def _forecasts(forecasts: list[ForecastDocument]) -> Iterator[dict[str, float]]:
    for one in forecasts:
        rate = one["quantities"]["rate"]
        found = {"ranks": evidence.ranks_of(one["placement"]), "rate": rate["value"], "model": rate["model"]}
        ends = {"low": rate["low"], "high": rate["high"]} if rate["low"] and rate["high"] else {}
        yield found | ends

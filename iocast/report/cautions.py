# SPDX-License-Identifier: Apache-2.0
"""What a reader must know before believing a report."""

from __future__ import annotations

import re

from iocast.watching import busy
from iocast.forecasts.cautions import FAR_BEYOND, of_all
from iocast.records.forecast import ForecastDocument, Numbers, forecast_rate
from iocast.records.validation import Verdict
from iocast.wording.notes import sentences
from iocast.report import evidence, feeding, units
from iocast.report.sources import Run, Sources

SERVER_IN_MEMORY = "fuse.iocast"  # file system type of iocast-queuefs
FAR = 4.0  # times the largest fitted scale, from which an extrapolation is called far


def warnings(sources: Sources) -> list[str]:
    """Everything that a reader must know before believing the report, each once; alarms come first."""
    found = list(sources.alarms)
    if SERVER_IN_MEMORY in file_systems(sources):
        found.append(
            "What was measured is no disk: iocast-queuefs, a server in memory whose service times are drawn, "
            "on the same machine as its clients. The report shows how forecasts fare, not what a storage system does."
        )
    for forecast in sources.forecasts:
        found += basis(forecast)[0]
    found += sentences(of_all(sources.forecasts))
    entries = [
        (float(times), evidence.ranks_of(f["placement"]))
        for f in sources.forecasts
        if (times := f.get("extrapolation"))
    ]
    if entries and FAR < max(entries)[0] <= FAR_BEYOND:  # beyond it the forecast itself warns
        times, ranks = max(entries)
        found.append(
            f"Forecasts reach up to {units.ranks(ranks)}, {units.factor(times)} times the largest scale that was "
            "fitted: "
            "they rest on the model and not on measurements."
        )
    for document in sources.feedings:
        found += feeding.notes(document)
    for validation in sources.validations:
        if validation.get("verdict") == Verdict.NOTHING_HELD_OUT.value:
            found.append(
                "The validation judged nothing: the platform was fitted to every measurement that it was given."
            )
        elif validation.get("passed") is False:
            criterion = str(validation.get("criterion", "it is not stated")).rstrip(".")
            found.append(f"The validation fell short of its criterion: {criterion}.")
    for platform in sources.fitted:
        found += platform["fitted"].get("notes") or []
    for run in [*sources.runs, *sources.servers]:
        if run.document.get("status") != "complete":
            found.append(f"The run {run.name} is {run.document.get('status', 'of unknown status')} and not complete.")
        errors = sum(p.get("errors") or 0 for p in run.phases)
        if errors:
            found.append(
                f"In the run {run.name} {units.count(errors)} operations failed; their times are in no figure here."
            )
    found += sources.notes
    found += _of_runs([*sources.runs, *sources.servers])
    for campaign in sources.campaigns:
        failed = [str(p.get("name")) for p in campaign.get("points") or [] if p.get("status") == "failed"]
        if failed:
            found.append(
                f"Of the campaign {campaign['name']} {len(failed)} planned runs failed: {', '.join(failed[:5])}."
            )
        found += sentences(busy.notes(campaign, str(campaign["name"])))
    return list(dict.fromkeys(str(w) for w in found))


def basis(forecast: ForecastDocument) -> tuple[list[str], list[str]]:
    """What a forecast rests on where nothing was measured: a warning where its platform's numbers are nobody's
    measurements or no interval is known, and the rest."""
    sentences = list(forecast.get("basis") or [])
    numbers = (forecast.get("platform") or {}).get("numbers")
    by_hand = numbers == Numbers.BY_HAND.value and ((rate := forecast_rate(forecast)) is None or rate["low"] is None)
    warned = int(numbers == Numbers.OWN.value or by_hand)
    return sentences[:warned], sentences[warned:]


def file_systems(sources: Sources) -> list[str]:
    """Types of the file systems that real runs and campaigns say they measured."""
    environments = [r.document.get("environment") or {} for r in sources.runs if not r.simulated] + sources.campaigns
    found = []
    for environment in environments:
        value = environment.get("filesystem")
        if isinstance(value, dict):
            value = value.get("type") or value.get("name")
        if value:
            found.append(str(value))
    return list(dict.fromkeys(found))


def _of_runs(runs: list[Run]) -> list[str]:
    """Warnings of runs; of those that differ only in numbers one is kept, that of the largest run."""
    alike: dict[str, list[str]] = {}
    for run in reversed(runs):
        for warning in run.document.get("warnings") or []:
            alike.setdefault(re.sub(r"\d+(\.\d+)?", "#", warning), []).append(warning)
    return [w[0] + (f" {len(w)} runs say so or alike." if len(w) > 1 else "") for w in alike.values()]

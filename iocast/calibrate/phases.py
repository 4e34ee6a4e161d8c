# SPDX-License-Identifier: Apache-2.0
"""Calibration of several phases of one workload: each by itself, all in one platform file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from iocast.watching import busy
from iocast.calibrate.fit import calibrate
from iocast.calibrate.known import Known, families_with
from iocast.calibrate.storage import Storage, best_family, storage_of
from iocast.ground.files import read_campaign
from iocast.platforms.fitted import Fitted
from iocast.ground.names import as_file_name
from iocast.runs.phases import first_phase
from iocast.platforms.documents import Document
from iocast.platforms.platform_names import check_file
from iocast.wording.notes import add
from iocast.runs.run_directory import Point, find_runs, group, measured_phases
from iocast.jobs.workers import Workers

Report = Callable[[str, int, int], None]


def chosen_phases(sources: list[Path], named: list[str]) -> list[str]:
    """The phases to fit, the one that stands for the workload first: those that are named, or all but set-up and
    clean-up that all runs have."""
    if named:
        return list(dict.fromkeys(named))
    operations = measured_phases(sources)
    first = first_phase(operations)
    return [first, *(name for name in operations if name != first)]


def calibrate_phases(
    sources: list[Path],
    phases: list[str],
    platform: str | None,
    seed: int,
    report: Report,
    workers: Workers | None = None,
    trace: Path | None = None,
    known: Sequence[Known] = (),
) -> Document:
    """Fits `platform` to each of the phases of these runs. Without one it is the family that the runs tell; where they
    don't, the one of several that fits the first phase best (`storage_of`).

    @return the document of the first phase's platform; the others are in its `fitted.further_phases` (docs/answers.md)
    @raises InputError when the measurements of a phase are too few"""
    points = {phase: group(find_runs(sources, phase)[0]) for phase in phases}  # all are read before the first is fitted
    storage = Storage((platform,)) if platform else storage_of([point for own in points.values() for point in own])
    if known:
        storage = replace(storage, families=families_with(known, storage.families))
    for family in storage.families:
        check_file(Fitted.open(family))
    documents: dict[str, Document] = {}
    for number, (phase, own) in enumerate(points.items()):

        def report_phase(text: str, done: int, total: int, phase: str = phase, number: int = number) -> None:
            report(f"{phase}: {text}" if len(phases) > 1 else text, number * total + done, len(phases) * total)

        kept = (
            trace
            if trace is None or number == 0
            else trace.with_name(f"{trace.name.removesuffix('.jsonl')}.{as_file_name(phase)}.jsonl")
        )

        def fit(
            family: str, own: list[Point] = own, report: Report = report_phase, kept: Path | None = kept
        ) -> Document:
            return calibrate(own, family, seed, report, workers, kept, known)

        documents[phase] = best_family(storage, fit)
        storage = replace(storage, families=(documents[phase]["fitted"].get("family", storage.families[0]),))
    document = documents[phases[0]]
    if len(phases) > 1:
        prose = ("fitted", "schema_version", "extends", "description", "source")
        document["fitted"]["further_phases"] = {
            phase: {
                "platform": {key: value for key, value in documents[phase].items() if key not in prose},
                "fitted": documents[phase]["fitted"],
            }
            for phase in phases[1:]
        }
    campaigns = [path for path in sources if (path / "campaign.json").is_file()]
    busier = [one for path in campaigns for one in busy.notes(read_campaign(path), path.name)]
    add(document["fitted"], busier)
    return document

# SPDX-License-Identifier: Apache-2.0
"""Calibration of several phases of one workload: each by itself, all in one platform file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from iocast import busy
from iocast.calibrate.fit import calibrate
from iocast.files import read_campaign
from iocast.fitted import Fitted
from iocast.names import as_file_name
from iocast.phases import first_phase
from iocast.platform import Document
from iocast.platform_names import check_file
from iocast.run_directory import Point, find_runs, group, measured_phases
from iocast.workers import Workers

Report = Callable[[str, int, int], None]
RATES_ALONE = "queue"
"""The platform for runs that have no latencies."""
FAMILIES = {"lustre": "lustre", "beegfs": "beegfs", "ceph": "cephfs", "fuse": "fuse"}
"""The platform family by a file system's type; any other is `local`."""


def family_for(points: Sequence[Point]) -> str:
    """`queue` where some point has no quantiles of latency, else the family of the file system that was measured."""
    if any(len(point.quantities()) == 1 for point in points):
        return RATES_ALONE
    environment = points[0].first.json.get("environment") or {}
    kind = str((environment.get("filesystem") or {}).get("type", "")).lower()
    if environment.get("service"):
        return "service"
    return next((family for name, family in FAMILIES.items() if name in kind), "local")


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
) -> Document:
    """Fits `platform` to each of the phases of these runs; without one the family that the runs tell (`family_for`).

    @return the document of the first phase's platform; the others are in its `fitted.further_phases` (docs/answers.md)
    @raises InputError when the measurements of a phase are too few"""
    points = {phase: group(find_runs(sources, phase)[0]) for phase in phases}  # all are read before the first is fitted
    platform = platform or family_for([point for own in points.values() for point in own])
    check_file(Fitted.open(platform))
    documents = {}
    for number, (phase, own) in enumerate(points.items()):

        def report_phase(text: str, done: int, total: int, phase: str = phase, number: int = number) -> None:
            report(f"{phase}: {text}" if len(phases) > 1 else text, number * total + done, len(phases) * total)

        kept = (
            trace
            if trace is None or number == 0
            else trace.with_name(f"{trace.name.removesuffix('.jsonl')}.{as_file_name(phase)}.jsonl")
        )
        documents[phase] = calibrate(own, platform, seed, report_phase, workers, kept)
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
    document["fitted"]["notes"] += [note for path in campaigns for note in busy.notes(read_campaign(path), path.name)]
    return document

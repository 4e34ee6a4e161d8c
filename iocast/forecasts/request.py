# SPDX-License-Identifier: Apache-2.0
"""The workload that a forecast is of, its settings and phases; and the platform as the solver takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypedDict

import yaml

from iocast.ground import binaries
from iocast.calibrate.search import Simulations, only
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.runs.measured import measured_workload
from iocast.runs.operations import Shares, phase_operations
from iocast.runs.phases import check_phase, first_phase, main_phases, phase_sentences
from iocast.runs.question import meaning
from iocast.runs.run_directory import LENGTHS
from iocast.runs.settings import name_for_programs
from iocast.platforms.documents import Document, dump
from iocast.platforms.platform_names import idle_edit, of_edit
from iocast.records.platform import ResolvedPlatform
from iocast.records.fitted import FitRow
from iocast.records.note import LengthNotMeasured, Note, NoTime
from iocast.records.forecast import Ends, CourseRow, DrawsDocument, Distribution, Growth, WorkloadDocument
from iocast.platforms.family import Beside
from iocast.published.errors import Errors
from iocast.forecasts.one_system import Model
from iocast.wording.notes import sentence


def refuse_idle_edits(platform: Fitted, operations: Iterable[str]) -> None:
    """@raises InputError for an edit of a part that none of a workload's operations uses"""
    used = dict.fromkeys(operations)
    for path, value in platform.edits:
        if why := idle_edit(path, dict(resolved(platform.best(), platform.file)), used):
            raise InputError(f"{of_edit(path, value)} {why}")


@dataclass
class Request:
    """A workload as it is simulated or solved: pattern or workload file, settings, and the phases that the forecast is
    of. `wanted`: the phase that was named."""

    pattern: str
    settings: dict[str, str]
    phases: list[str]
    wanted: str | None = None
    notes: list[Note] = field(default_factory=list)
    unshared: bool = False
    """Whether some operations visit nothing that client nodes share, so that their rates grow with the nodes."""

    def main(self, found: Mapping[str, tuple[Samples, Shown]]) -> str:
        """The phase that stands for the workload. `found` holds those with operations."""
        return first_phase({name: shown["shares"].operations for name, (_, shown) in found.items()})

    def present(self, operations: Mapping[str, float]) -> list[str]:
        """Those of its phases that have operations. @raises InputError when none has"""
        present = [name for name in self.phases if operations.get(name)]
        if not present:
            raise InputError(
                f"The phase{'s' if len(self.phases) > 1 else ''} {', '.join(self.phases)} of the workload "
                f"{self.pattern} {'have' if len(self.phases) > 1 else 'has'} no operations with these settings."
            )
        return present


def workload_of(
    platform: Fitted,
    workload: str | None,
    settings: dict[str, str],
    phase: str | None = None,
    nodes: int = 1,
    ranks_per_node: int = 1,
    whole: bool = False,
) -> Request:
    """The workload that a forecast is of, its settings and phases: those that were fitted, or another workload's but
    set-up and clean-up. `whole`: the calibration sets none of its settings.

    @raises InputError for settings or a phase that the workload doesn't have; nothing is simulated for that"""
    known = measured_workload(platform.fitted, workload)
    pattern, own = known or (workload or "md-workbench", {})
    full, default = settings if whole else own | settings, platform.phase if known else None
    names = names_of_phases(platform, workload, settings, nodes, ranks_per_node, whole)
    if phase or default:
        check_phase(
            str(phase or default), names, pattern, lambda: phase_operations(pattern, full, nodes, ranks_per_node)
        )
    phases = [str(phase or default)] if phase or default else main_phases(names)
    documents = (platform.best(), *platform.draws())
    return Request(pattern, only(phases, pattern, documents) | full, phases, phase)


def names_of_phases(
    platform: Fitted, workload: str | None, settings: dict[str, str], nodes: int, ranks_per_node: int, whole: bool
) -> list[str]:
    """Those that the workload has with these settings. @raises InputError for settings that it doesn't have"""
    pattern, own = measured_workload(platform.fitted, workload) or (workload or "md-workbench", {})
    full = settings if whole else own | settings
    resolved = binaries.resolve_workload(pattern, full, nodes, ranks_per_node)
    return list(dict.fromkeys(phase["name"] for phase in resolved["phases"]))


def measured_request(platform: Fitted, settings: dict[str, str], solver: str, phase: str | None) -> Request:
    """What was measured, for a platform that was fitted to its rates alone, of which no more is known."""
    if solver == "simulate":
        raise InputError(
            "The platform was fitted to rates alone, so that there is nothing to simulate; use --solver analytic, or "
            "calibrate a family with latencies."
        )
    if phase not in (None, platform.phase):
        raise InputError(
            f"The platform was fitted to rates of the phase {platform.phase} alone, and not of '{phase}'. "
            f"{phase_sentences(phase, {platform.phase: ()})} Other phases need a calibration of their own."
        )
    measured = platform.fitted["campaign"]["workload"]
    lengths = [name for name in LENGTHS if name in measured["parameters"]]
    allowed = ("waiting_factor", "working_set", *lengths)
    unknown = [name for name in settings if name not in allowed]
    if unknown:
        raise InputError(
            f"The platform was fitted to rates alone; what {unknown[0]} does to them is not known. "
            f"Allowed: {', '.join(allowed)}."
        )
    found = Request(name_for_programs(measured), settings, [platform.phase], phase)
    for name in lengths:
        if name in settings and meaning(settings[name]) != meaning(measured["parameters"][name]):
            found.notes.append(LengthNotMeasured(name, settings[name], str(measured["parameters"][name])))
    return found


def ranks_per_node_of(platform: Fitted) -> int:
    """Ranks a node of the largest measurement that the platform was fitted to, whole ones also where nodes had unlike
    numbers; 1 for one that was never calibrated."""
    points = platform.fitted.get("campaign", {}).get("points", [])
    return max(((p["ranks"], max(1, int(p["ranks"] / p["nodes"]))) for p in points if p.get("nodes")), default=(1, 1))[
        1
    ]


@lru_cache(maxsize=64)
def _resolved(text: str, about: str) -> ResolvedPlatform:
    with Simulations(about=about) as simulations:
        return binaries.resolve_platform(simulations.write(yaml.safe_load(text)))


def resolved(document: Document, about: str | Path = "") -> ResolvedPlatform:
    """The platform as the analytic solver takes it; whoever asks for several placements asks for the same ones again.
    `about`: its name in errors."""
    return _resolved(dump(document), str(about))


class Samples(TypedDict, total=False):
    """What a solver has of a phase: by quantity its value and those of the draws. `quantities`: intervals, where they
    come from no draws; `fit_rows`: what the analytic solver misses, None where the simulator answers; `settles`:
    whether the best structure has room for the work of others; `course`: rows at these factors of the phases' rates."""

    value: dict[str, float]
    ensemble: dict[str, list[float]]
    quantities: dict[str, Ends]
    fit_rows: list[FitRow] | None
    settles: bool
    structures: Sequence[Mapping[str, str]]
    peak_objects: float
    total: float | None
    course: Callable[[Mapping[str, float]], list[CourseRow]]
    draws: DrawsDocument
    beside: Beside | None
    errors: Errors | None


class Shown(TypedDict, total=False):
    """What a forecast shows of a phase beside its quantities. `lasting`: whether its length is known."""

    workload: WorkloadDocument
    shares: Shares
    distributions: dict[str, Distribution]
    model: Model
    lasting: bool
    unmeasured: list[Note]
    growth: Growth


Found = dict[str, tuple[Samples, Shown]]
"""By phase: log quantities of the best platform and of the draws (`value`, `ensemble`, ...), and what else is shown of
it."""


def leave_out(instant: list[str], others: bool, wanted: Request, platform: Path) -> None:
    """Phases whose operations take no time. @raises InputError when there are no others"""
    if not instant:
        return
    name = Path(binaries.known_as.get(str(platform), platform)).stem
    left_out = NoTime(name, instant)
    if not others:
        raise InputError(sentence(left_out))
    wanted.notes.append(left_out)

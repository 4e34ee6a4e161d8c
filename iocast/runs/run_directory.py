# SPDX-License-Identifier: Apache-2.0
"""The one reader of run directories, real, simulated or imported (docs/run-directory.md)."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast


from iocast.records import run as records
from iocast.rules.accuracy import QUANTILES
from iocast.runs.agreement import check_agreement
from iocast.errors import InputError
from iocast.ground.binaries import as_setting
from iocast.ground.files import read_campaign, read_json
from iocast.runs.phases import BYTES, is_beside, main_phases, operations_in, phase_sentences
from iocast.runs.question import Question, mounts_of
from iocast.records.simulated import RunDocument
from iocast.records.forecast import WorkloadDocument
from iocast.runs.latency_log import NS, Histogram, Latencies, read_log

QUANTITIES = (*QUANTILES, "max")
UNTOLD = ("repeats", "start_index", "phases", "seed")
"""Parameters that change how long a point was watched and which random numbers it drew, and not what it is."""
LENGTHS = ("iterations", "objects")
"""And those of one run, by which a campaign sizes it."""


class Run:
    """A complete run. `phase` names the phase that questions are about; its repeats are pooled. `role`: "fit" or
    "check"."""

    json: RunDocument
    record: records.Run
    phases: list[records.Phase]

    def __init__(self, path: Path, phase: str = "benchmark", role: str = "fit") -> None:
        self.path = path
        self.role = role
        self.json, self.record = self.read(path)
        self.phase = phase
        self.phases = [p for p in self.record.phases if p.name == phase]
        if not self.phases:
            raise InputError(
                f"The run '{path}' has no phase '{phase}'; name one with --phase. "
                f"{phase_sentences(phase, operations_in(self.json['phases']))}"
            )

    @staticmethod
    def read(path: Path) -> tuple[RunDocument, records.Run]:
        """The run.json of a complete run, and its record. @raises InputError for anything else"""
        require_run_directory(path)
        content: dict[str, Any] = read_json(path / "run.json", "run")
        record = records.read_run(content)
        if record.status != "complete":
            raise InputError(
                f"The run '{path}' is "
                f"{'interrupted' if record.status == 'interrupted' else 'unfinished (still running, or killed)'}; "
                "only complete runs can be used. Measure it again."
            )
        check_agreement(record, path)
        return cast(RunDocument, content), record

    @cached_property
    def question(self) -> Question:
        """What was measured, as forecasts are matched by it."""
        workload: WorkloadDocument = {**self.json["workload"], "parameters": self.parameters}
        placement = {**self.json["placement"], "ranks": self.ranks}
        return Question.of(workload, placement, self.phase, mounts=self.mounts)

    @property
    def mounts(self) -> int:
        """Mount points that its ranks were spread over."""
        return mounts_of(self.record.environment)

    @cached_property
    def content(self) -> tuple[int, str]:
        """An order of runs that doesn't hang on their names: seed, and hash of run.json."""
        return self.record.seed or 0, hashlib.sha256((self.path / "run.json").read_bytes()).hexdigest()

    @property
    def ranks(self) -> int:
        """@raises InputError for a load that a server observed, where nobody stated how many made it"""
        found = self.record.placement.ranks
        if found is None:
            raise InputError(
                f"The run '{self.path}' is a load that was observed, of any program: how many ranks made it is not "
                "known. 'iocast report' shows it; compare and forecast with runs of a benchmark."
            )
        return found

    @property
    def max_rate(self) -> float:
        """Limit of --max-rate, or of an option of another tool, in operations a second of all clients; 0 for none."""
        return (self.record.brake.max_rate if self.record.brake else None) or 0.0

    @property
    def limited_by(self) -> str:
        return "a limit of its tool" if self.imported else "--max-rate"

    def require_no_max_rate(self, remedy: str) -> None:
        """@raises InputError for a run that a limit held back: its rate and its concurrency are not the storage's"""
        if self.max_rate:
            raise InputError(
                f"The run '{self.path}' was held back by {self.limited_by} ({self.max_rate:g}/s); the limit set its "
                f"rate and its concurrency, not the storage. {remedy}"
            )

    def require_no_training(self) -> None:
        """@raises InputError for another tool's training: computation bounds its rate, which no platform knows"""
        counts = [phase.accelerators.count for phase in self.phases if phase.accelerators is not None]
        if self.imported and self.phase == "train" and counts:
            raise InputError(
                "These are trainings: the rate is what their accelerators ask for, and nodes alone don't change it. "
                f"Forecast accelerators: iocast forecast --accelerators {2 * max(counts)}, with --nodes for their "
                "hosts."
            )

    @property
    def placement(self) -> tuple[int, int]:
        """Nodes, ranks per node; of an imported run with unlike nodes their mean, which is no whole number."""
        where = self.record.placement
        if where.nodes is None or where.ranks_per_node is None:
            raise InputError(
                f"The imported run '{self.path}' does not say on how many nodes it ran; import it again with --nodes."
            )
        each = float(where.ranks_per_node)
        return where.nodes, int(each) if each.is_integer() else each  # type: ignore[return-value]

    @property
    def imported(self) -> bool:
        return self.record.source == "imported"

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of the workload; of an imported run that has phases with several transfer sizes also the phase's
        own."""
        own = {"transfer_size": self.phases[0].transfer_size} if self.phases[0].transfer_size else {}
        return own | self.record.workload.parameters

    @property
    def waiting_factor(self) -> float:
        return float(self.parameters.get("waiting_factor", 0))

    @property
    def think_time(self) -> float:
        """Seconds after each operation, beside the waiting factor's; a mean."""
        return float(self.parameters.get("think_time") or 0)

    @property
    def operations(self) -> list[str]:
        return self.phases[0].operation_names

    @property
    def rate(self) -> float:
        """Operations a second over all repeats of the phase; bytes a second where an imported run has that
        `rate_unit`."""
        counted = [(p.operations, p.seconds) for p in self.phases if p.operations is not None and p.seconds]
        if len(counted) == len(self.phases) and not all(p.rate_unit == BYTES for p in self.phases):
            return sum(operations for operations, _ in counted) / sum(seconds for _, seconds in counted)
        rates = [rate for p in self.phases if (rate := p.own_rate) is not None]
        if not rates:
            raise InputError(f"The imported run '{self.path}' has no rate of operations in the phase '{self.phase}'.")
        return float(sum(rates) / len(rates))

    @property
    def errors(self) -> int:
        """Failed operations; those that a tool did not count are none."""
        return sum(p.errors or 0 for p in self.phases)

    def mean(self, tag: str) -> float:
        value = self.quantity(tag, "mean")
        if value is None:
            raise InputError(f"The run '{self.path}' has no mean latency of '{tag}' in the phase '{self.phase}'.")
        return value

    def quantity(self, tag: str, which: str) -> float | None:
        """ "q50", "q99", "max", "mean" ... of an operation over all repeats, in seconds: from the histogram, or for an
        imported run that has none from the summaries of its repeats; the maximum always from these (QUANTITIES). None
        when neither says it."""
        known = [p.latencies(tag) for p in self.phases]
        values = [value for one in known if (value := one.value(which)) is not None]
        if which == "max" and len(values) == len(known) and all(values):
            return math.exp(sum(map(math.log, values)) / len(values))
        if which != "mean" and f"{self.phase}.{tag}" in self._latencies:
            found = self.latencies(tag)
            return (
                found.minimum
                if which == "min"
                else found.quantity(which)
                if which in QUANTITIES
                else found.quantile(float(f"0.{which[1:]}"))
            )
        if len(values) < len(known):
            return None
        if which == "min":
            return min(values)
        if which == "mean":
            counts = [one.count or 1 for one in known]
            return sum(n * v for n, v in zip(counts, values, strict=True)) / sum(counts)
        return math.exp(sum(math.log(max(v, NS)) for v in values) / len(values))

    def count(self, tag: str) -> int:
        """Operations whose latencies are known, or that were counted."""
        return sum(p.latencies(tag).count or 0 for p in self.phases)

    def latencies(self, tag: str, phase: str | None = None) -> Latencies:
        """The pooled distribution of an operation ("create") or part ("create.open")."""
        found: Latencies | None = self._latencies.get(f"{phase or self.phase}.{tag}")
        if found is None:
            raise InputError(f"The run '{self.path}' has no latencies of '{tag}' in the phase '{phase or self.phase}'.")
        return found

    def tags(self, phase: str | None = None) -> list[str]:
        start = (phase or self.phase) + "."
        return [tag[len(start) :] for tag in self._latencies if tag.startswith(start)]

    @cached_property
    def _latencies(self) -> dict[str, Latencies]:
        pooled: dict[str, Histogram] = {}
        for tag, _, histogram in read_log(self.path / "latency.hlog"):
            if tag in pooled:
                pooled[tag].add(histogram)
            else:
                pooled[tag] = histogram
        return {tag: Latencies(histogram) for tag, histogram in pooled.items()}


@dataclass
class Point:
    """All runs of one question in one role: repeats of the same measurement."""

    runs: list[Run] = field(default_factory=list)
    role: str = "fit"
    """"fit", or "check" for a measurement that no fit may see."""
    apart: dict[str, str] = field(default_factory=dict)
    """Workload parameters that tell it from others of its placement and waiting factor, as settings."""

    @property
    def first(self) -> Run:
        return self.runs[0]

    @property
    def question(self) -> Question:
        return self.first.question

    @property
    def ranks(self) -> int:
        return self.first.ranks

    @property
    def waiting_factor(self) -> float:
        return self.first.waiting_factor

    @property
    def think_time(self) -> float:
        return self.first.think_time

    def in_role(self, role: str, runs: list[Run]) -> Point:
        """The same point with these of its runs."""
        return replace(self, runs=runs, role=role)

    @property
    def name(self) -> str:
        nodes, ranks_per_node = self.first.placement
        where = f"N={self.ranks}" if nodes == 1 else f"N={nodes}x{ranks_per_node:.4g}"
        return " ".join(
            [f"{where} T={self.waiting_factor:g}", *(f"{name}={value}" for name, value in self.apart.items())]
        )

    def observations(self, quantity: str) -> list[float]:
        """The quantity ("rate", "create.q99", "create.mean") in every run."""
        if quantity == "rate":
            return [run.rate for run in self.runs]
        tag, _, which = quantity.rpartition(".")
        values = [run.quantity(tag, which) for run in self.runs]
        if any(v is None for v in values):
            raise InputError(f"The runs of {self.name} do not all tell {quantity}.")
        return [v for v in values if v is not None]

    def value(self, quantity: str) -> float:
        """Geometric mean over the runs."""
        seen = self.observations(quantity)
        return math.exp(sum(math.log(max(x, 1e-9)) for x in seen) / len(seen))

    def has(self, quantity: str) -> bool:
        """Whether every run tells this quantity; imported ones may not."""
        tag, _, which = quantity.rpartition(".")
        return quantity == "rate" or all(run.quantity(tag, which) is not None for run in self.runs)

    def quantities(self) -> list[str]:
        return [
            "rate",
            *(name for op in self.first.operations for which in QUANTITIES if self.has(name := f"{op}.{which}")),
        ]


def is_table(run: Run) -> bool:
    """Whether the run is of a CSV table that has the latencies of one operation at most of each phase."""
    of_a_table = run.record.imported is not None and run.record.imported.format == "table"
    return of_a_table and all(len(phase.operation_names) < 2 for phase in run.phases)


def group(runs: list[Run]) -> list[Point]:
    """Groups runs by question and role, smallest first; refuses a mixture of workloads or file systems. The order of
    runs of a point hangs on their content, neither on the order in which they are given nor on their names."""
    points: dict[tuple[Any, ...], Point] = {}
    for run in sorted(runs, key=lambda run: run.content):
        settings = tuple((name, repr(value.number), value.text) for name, value in run.question.settings or ())
        key = (
            run.ranks,
            run.waiting_factor,
            *run.placement,
            run.question.definition,
            settings,
            run.question.phase,
            run.mounts,
            run.role != "fit",
        )
        points.setdefault(key, Point(role=run.role)).runs.append(run)
    kinds = {run.record.workload.pattern for run in runs}
    if len(kinds) > 1:
        raise InputError(f"These runs mix the workloads {', '.join(sorted(kinds))}; calibrate each by itself.")
    systems = {system for run in runs if (system := _system(run))}
    if len(systems) > 1:
        raise InputError(
            f"These runs come from different file systems or services ({', '.join(sorted(systems))}); calibrate each "
            "by itself."
        )
    found = [points[key] for key in sorted(points)]
    _tell_apart(found)
    return found


def _tell_apart(points: list[Point]) -> None:
    """Says of points of one placement and waiting factor in what else they differ."""
    alike: dict[str, list[Point]] = defaultdict(list)
    for point in points:
        alike[point.name].append(point)
    for those in alike.values():
        settings = [
            {name: as_setting(value) for name, value in point.first.parameters.items() if name not in UNTOLD}
            for point in those
        ]
        differ = [name for name in settings[0] if len({one.get(name) for one in settings}) > 1]
        for point, own in zip(those, settings, strict=True):
            point.apart = {name: own[name] for name in differ if name in own}


def switches(points: list[Point]) -> list[dict[str, str]]:
    """Of each point the workload parameters that are not the same in all points, such as whether it only reads; of
    those that are numbers the ones that tell points of one placement apart."""
    own = {name for point in points for name in point.apart if name not in LENGTHS}
    settings = [
        {
            k: as_setting(v)
            for k, v in point.first.parameters.items()
            if k not in UNTOLD and (k in own or isinstance(v, bool) or not isinstance(v, int | float))
        }
        for point in points
    ]
    differ = sorted({k for one in settings for k in one if len({other.get(k) for other in settings}) > 1})
    return [{k: one[k] for k in differ if k in one} for one in settings]


def _system(run: Run) -> str:
    """The type of the file system or service, where the run says it."""
    environment = run.record.environment or {}
    return str((environment.get("filesystem") or environment.get("service") or {}).get("type", ""))


def run_directories(paths: list[Path]) -> list[tuple[Path, str, Path | None]]:
    """Run directories, also those of complete points of campaigns and of directories of runs: each with its role, "fit"
    or "check", and the directory that it is from where that holds runs and no campaign."""
    found: list[tuple[Path, str, Path | None]] = []
    for path in paths:
        if (path / "campaign.json").is_file():
            points = read_campaign(path)["points"]
            found += [
                (path / "runs" / p["name"], p["role"], None)
                for p in points
                if p["status"] == "complete" and p["role"] != "beside"
            ]
        elif not (path / "run.json").is_file() and (inside := runs_in(path)):
            found += [(one, "fit", path) for one in inside]
        else:
            found.append((path, "fit", None))
    if not found:
        raise InputError(f"There is no complete run in {', '.join(str(p) for p in paths)}; measure first.")
    return found


def find_runs(paths: list[Path], phase: str = "benchmark") -> tuple[list[Run], dict[str, str]]:
    """Runs of run directories, directories of runs, and campaigns, and the role ("fit" or "check") of each by its
    directory. Of a directory of runs those that have the phase."""
    found = run_directories(paths)
    of_series: dict[Path, list[Path]] = {}
    for path, _, series in found:
        if series is not None:
            of_series.setdefault(series, []).append(path)
    having = {path for series, members in of_series.items() for path in _with_phase(series, members, phase)}
    kept = [(path, role) for path, role, series in found if series is None or path in having]
    return [Run(path, phase, role) for path, role in kept], {str(path): role for path, role in kept}


def measured_phases(paths: list[Path]) -> dict[str, float]:
    """The phases but set-up and clean-up that all of these runs have, with their operations in all of them (1 where a
    tool doesn't count them), in the order of the first run. Where runs of a series have none in common, as those of a
    table with a line for each phase, all phases of the series.

    @raises InputError when there is none, or none but set-up and clean-up where runs have others"""
    by_run: list[dict[str, float]] = []
    found = run_directories(paths)
    for path, _, _ in found:
        _, run = Run.read(path)
        did = [p for p in run.phases if p.operations or p.rate]
        by_run.append({})
        for phase in did or run.phases:
            by_run[-1][phase.name] = by_run[-1].get(phase.name, 0) + (phase.operations or 1)
    common = [name for name in by_run[0] if all(name in one for one in by_run)]
    if not common and all(series is not None for _, _, series in found):
        common = list(dict.fromkeys(name for one in by_run for name in one))
    if not common:
        names = sorted({name for one in by_run for name in one})
        raise InputError(
            "No phase is in all of these runs; give runs of one workload, or name a phase with --phase. They have "
            f"{', '.join(names)}."
        )
    mains = {
        path.name: own for (path, _, _), one in zip(found, by_run) if (own := [p for p in one if not is_beside(p)])
    }
    if mains and all(is_beside(name) for name in common):
        apart = {", ".join(own): name for name, own in mains.items()}
        have = "; ".join(f"'{name}' has {own}" for own, name in sorted(apart.items()))
        raise InputError(
            f"No phase but set-up and clean-up is in all of these runs: {have}. Give runs with the same phases, or "
            "name one with --phase. A mix with fewer ranks than members runs some of them alone, with other phases."
        )
    return {name: sum(one.get(name, 0) for one in by_run) for name in main_phases(common)}


def require_run_directory(path: Path) -> None:
    """@raises InputError where this is none, which names what may have been meant"""
    if path.is_file() and path.suffix in (".yaml", ".yml"):
        raise InputError(
            f"'{path}' is a YAML file, as platforms are, and no run directory. Name one platform, and then the runs; "
            "for further platforms call the command again."
        )
    if path.is_file() and path.name == "run.json":
        raise InputError(f"'{path}' is a file of a run directory; name the directory, '{path.parent}'.")
    if path.is_file():
        raise InputError(
            f"'{path}' is a file, and no run directory. Results of another tool become one with: iocast import {path} "
            "--out DIRECTORY."
        )
    if not path.is_dir():
        raise InputError(f"There is no run directory '{path}'.")
    if not (path / "run.json").is_file():
        raise InputError(f"The directory '{path}' holds no run.json; it is not a run directory.{runs_below(path)}")


def runs_below(path: Path) -> str:
    """A sentence that names the directory with runs in one that isn't such itself; empty where there is none."""
    below = next((one for one in (path / "runs", path) if runs_in(one)), None)
    return f" Runs lie in '{below}'." if below else ""


def runs_in(path: Path) -> list[Path]:
    """Run directories right inside a directory, as iocast import writes a series."""
    return sorted(file.parent for file in path.glob("*/run.json"))


def _with_phase(directory: Path, paths: list[Path], phase: str) -> list[Path]:
    """Those runs of a directory that have the phase.

    @raises InputError that names the phases there are when none has it"""
    phases = {path: operations_in(read_json(path / "run.json", "run")["phases"]) for path in paths}
    found = [path for path in paths if phase in phases[path]]
    if not found:
        known: dict[str, dict[str, Any]] = {}
        for one in phases.values():
            for name, operations in one.items():
                known.setdefault(name, {}).update(operations)
        raise InputError(
            f"No run in '{directory}' has a phase '{phase}'; name one with --phase. {phase_sentences(phase, known)}"
        )
    return found

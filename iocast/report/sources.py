# SPDX-License-Identifier: Apache-2.0
"""Reading what a report is made of: run and campaign directories, forecasts, validations, fitted platforms.

Each source is recognised by its content, never by its name. All times are in seconds, rates in operations a second.
"""

from __future__ import annotations

import hashlib
import shlex
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

from iocast.errors import InputError
from iocast.ground import strict
from iocast.ground.files import require_whole
from iocast.importers import all_importers, matching
from iocast.importers.source import Source
from iocast.importers.statistics import Server
from iocast.importers.series import series_alarms, series_notes
from iocast.records.fitted import FittedPlatform
from iocast.records.forecast import ForecastDocument, WorkloadDocument
from iocast.records.knee import KneeDocument
from iocast.records.run import is_observed, read_run, with_every_part
from iocast.records.simulated import ObservedDocument, PhaseOfRun, RunDocument
from iocast.records.study import StudyDocument
from iocast.records.validation import ValidationDocument
from iocast.runs.agreement import check_agreement, check_fitted, check_forecast
from iocast.runs.phases import first_phase
from iocast.runs.question import Question, mounts_of
from iocast.runs.latency_log import Latencies, read_log
from iocast.runs.run_directory import runs_below, runs_in
from iocast.runs.settings import whole_workload
from iocast.records.feeding import Feeding
from iocast.records.campaign import CampaignDocument

SCHEMA_VERSION = 1
ALLOWED = (
    "A report is made of run directories (with run.json), directories of them, campaign directories (with "
    "campaign.json), forecasts and validations (JSON with that kind), fitted platforms (YAML with a part fitted), "
    "forecasts of accelerators and searches over them (directories with accelerators.json or fed.json) and one study "
    "(a directory or JSON that iocast study wrote)."
)
FEEDINGS = {"accelerators.json": "accelerators", "fed.json": "fed"}
"""Files on the feeding of accelerators, and their kinds."""
LONGEST = 3600 * 10**9  # ns, the largest latency that a histogram here can hold


@dataclass
class Distribution:
    """How many operations took how long: counts by latency in nanoseconds."""

    counts: Counter[int] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def quantiles(self, probabilities: list[float]) -> list[float]:
        """Seconds below which these ascending shares of the operations stayed."""
        values = sorted(self.counts)
        sums = list(accumulate(self.counts[v] for v in values))
        places = [bisect_left(sums, p * sums[-1] - 1e-9) for p in probabilities]
        return [values[min(place, len(values) - 1)] * 1e-9 for place in places]


@dataclass
class Run:
    """One run directory, or a load that a server observed. `role` and `point` are known when it belongs to a campaign;
    `about` are those of its phases that the report is about."""

    path: Path
    document: RunDocument
    role: str = ""
    point: str = ""
    about: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return str(self.document.get("label") or self.point or self.path.name)

    @property
    def simulated(self) -> bool:
        return self.document.get("source") == "simulated"

    @property
    def ranks(self) -> int:
        """0 of an observed load."""
        return self.document["placement"]["ranks"] or 0

    @property
    def nodes(self) -> int | None:
        """None of an imported run that does not say."""
        nodes = self.document["placement"].get("nodes")
        return None if nodes is None else int(nodes)

    @property
    def placement(self) -> tuple[int, int | None]:
        """Ranks and nodes: what two runs must share to be repeats of each other."""
        return self.ranks, self.nodes

    @property
    def observed(self) -> ObservedDocument | None:
        """Who counted it, of an observed load; of those imported before that was recorded only that it was."""
        pattern = self.document.get("workload", {}).get("pattern")
        if not is_observed(str(self.document.get("source")), str(pattern)):
            return None
        unknown: ObservedDocument = {"who": "", "holds": "", "part": None, "threads": {}, "since_counting_began": None}
        known = (self.document.get("imported") or {}).get("observed")
        return {**unknown, **known} if known else unknown

    @property
    def server(self) -> Server | None:
        """What holds of all counters of its format, of an observed load."""
        importer = all_importers().get(str((self.document.get("imported") or {}).get("format")))
        return importer.server if importer else None

    @property
    def workload(self) -> str:
        return str(self.document.get("workload", {}).get("name", "unnamed workload"))

    @property
    def subject(self) -> str:
        """What was measured, for a reader: the workload, or of a table, which names none, its phase or its file."""
        if self.workload != "table":
            return self.workload
        files = (self.document.get("imported") or {}).get("files") or []
        name = self.phase_names[0] if self.phase_names else "benchmark"
        return Path(files[0]["name"]).stem if name == "benchmark" and files else name

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.document.get("workload", {}).get("parameters") or {})

    @property
    def waiting_factor(self) -> float:
        return float(self.parameters.get("waiting_factor") or 0)

    @property
    def phases(self) -> list[PhaseOfRun]:
        return list(self.document.get("phases") or [])

    def question(self, phase: str) -> Question:
        """What was measured; of another tool's result with the settings that it doesn't state."""
        workload: WorkloadDocument = {"name": "", "pattern": self.workload, "parameters": {}}
        workload = {**workload, **self.document.get("workload", {})}
        whole = whole_workload(workload) if self.document.get("source") == "imported" else workload
        mounts = mounts_of(self.document.get("environment"))
        return Question.of(whole, self.document["placement"], phase, mounts=mounts)

    @property
    def phase_names(self) -> list[str]:
        """Names of phases, each once, in order."""
        return list(dict.fromkeys(p["name"] for p in self.phases))

    def repeats(self, name: str | None = None) -> list[PhaseOfRun]:
        """All repeats of a phase; without a name of the first that the report is about."""
        wanted = name or next(iter(self.about), None)
        return [p for p in self.phases if p["name"] == wanted]

    def phase(self, name: str | None = None) -> PhaseOfRun | None:
        """The last repeat of a phase, chosen as in `repeats`."""
        found = self.repeats(name)
        return found[-1] if found else None

    @cached_property
    def distributions(self) -> dict[tuple[str, str], Distribution]:
        """Latency distributions by (phase, operation); repeats of a phase are added up.

        Parts of operations (`create.open`) are left out. Empty when the run has no latency.hlog.
        """
        file = self.path / "latency.hlog"
        if not file.is_file():
            return {}
        found: dict[tuple[str, str], Distribution] = {}
        try:
            for tag, _, histogram in read_log(file):
                phase, _, operation = tag.partition(".")
                if not operation or "." in operation:
                    continue
                _, highest, counts = Latencies(histogram).recorded()
                counted = dict(zip(highest.tolist(), counts.tolist(), strict=True))
                found.setdefault((phase, operation), Distribution()).counts.update(counted)
        except InputError as error:
            raise InputError(
                f"{file} is damaged: {error} Remove it to report the run without distributions."
            ) from error
        return found


@dataclass
class Sources:
    """Everything that a report was given, sorted by kind."""

    runs: list[Run] = field(default_factory=list)
    servers: list[Run] = field(default_factory=list)
    """Loads that servers and mounts observed: they are none of `runs`, since nobody measured what was possible."""
    given_runs: list[Run] = field(default_factory=list)  # those of `runs` that were named themselves
    campaigns: list[CampaignDocument] = field(default_factory=list)
    knees: list[KneeDocument] = field(
        default_factory=list
    )  # of campaigns that are knee searches, each with the campaign's name
    forecasts: list[ForecastDocument] = field(default_factory=list)
    validations: list[ValidationDocument] = field(default_factory=list)
    fitted: list[FittedPlatform] = field(default_factory=list)  # whole platforms, each with "fitted"
    fitted_files: list[Path] = field(default_factory=list)
    feedings: list[Feeding] = field(default_factory=list)  # of accelerators, each with its `name`
    study: StudyDocument | None = None
    files: list[dict[str, str]] = field(default_factory=list)  # what, name, sha256 of each source
    series: list[tuple[Path, dict[str, Any]]] = field(default_factory=list)  # directories of imported runs
    missing: list[str] = field(default_factory=list)  # sentences: phases that were not forecast, and why
    alarms: list[str] = field(default_factory=list)  # contradictions of imported results
    notes: list[str] = field(default_factory=list)  # of imported results: these, and what was left out

    @property
    def are_of_servers(self) -> bool:
        """Whether there is nothing else."""
        others = (self.runs, self.forecasts, self.validations, self.fitted, self.feedings, self.study)
        return bool(self.servers) and not any(others)

    @property
    def named_phases(self) -> list[str]:
        """Phases that forecasts, validations and fitted platforms name, each once."""
        found = [str(f.get("phase") or "benchmark") for f in self.forecasts]
        found += [phase_of_point(p, v) for v in self.validations for p in v["points"]]
        found += [phase for platform in self.fitted for phase in phases_of_platform(platform)]
        return list(dict.fromkeys(found))

    @property
    def workloads(self) -> list[str]:
        """Workloads that the report is about: those of forecasts, or else the one of most runs."""
        named = [w["name"] for f in self.forecasts if isinstance(w := f.get("workload"), dict) and "name" in w]
        return list(dict.fromkeys(named)) or [name for name, _ in Counter(r.workload for r in self.runs).most_common(1)]

    @property
    def phases(self) -> list[str]:
        """Phases that the report is about: the named ones, then those that runs are looked at in."""
        return list(dict.fromkeys([*self.named_phases, *(phase for run in self.runs for phase in run.about)]))


def phases_of_platform(platform: FittedPlatform) -> list[str]:
    """Phases that a platform was fitted to."""
    campaign = platform["fitted"].get("campaign") or {}
    return [str(phase) for phase in campaign.get("phases") or [campaign.get("phase") or "benchmark"]]


def phase_of_point(point: Mapping[str, Any], validation: Mapping[str, Any]) -> str:
    """The phase that a point of a validation is of."""
    return str(
        (point.get("question") or {}).get("phase") or point.get("phase") or validation.get("phase") or "benchmark"
    )


def _choose_phases(sources: Sources) -> None:
    """What each run is looked at in: the phases that forecasts and calibrations name, as far as it has them. Where
    nothing is named, or it has none of them, one phase for all runs of its workload, which all of them have as far as
    there is one."""
    named = sources.named_phases
    others: dict[str, list[Run]] = {}
    for run in sources.runs:
        run.about = tuple(phase for phase in named if phase in run.phase_names)
        if not run.about and run.phases:
            others.setdefault(run.workload, []).append(run)
    for runs in others.values():
        common = [name for name in runs[0].phase_names if all(name in run.phase_names for run in runs)]
        for run in runs:
            operations: dict[str, float] = {}
            for phase in (p for one in (runs if common else [run]) for p in one.phases):
                if not common or phase["name"] in common:
                    operations[phase["name"]] = operations.get(phase["name"], 0) + (phase.get("operations") or 0)
            run.about = (first_phase(operations),)


def read_sources(paths: list[Path]) -> Sources:
    """Read every path; raises InputError that names the first one that can't be used."""
    if not paths:
        raise InputError(f"No source was given. {ALLOWED}")
    sources = Sources()
    for path in paths:
        _read(Path(path), sources)
    seen: dict[Path, Run] = {}
    for run in sources.runs:
        known = seen.setdefault(run.path.resolve(), run)
        known.role, known.point = known.role or run.role, known.point or run.point
    sources.runs = sorted(seen.values(), key=lambda r: (r.placement, r.waiting_factor, r.path.name))
    named = {run.path.resolve() for run in sources.given_runs}
    sources.given_runs = [
        run for run in sources.runs if run.path.resolve() in named
    ]  # in an order that isn't the command line's
    _choose_phases(sources)
    notes = [note for directory, one in sources.series for note in series_notes(one, sources.named_phases, directory)]
    sources.notes = list(dict.fromkeys(notes))
    alarms = [note for _, one in sources.series for note in series_alarms(one, sources.named_phases)]
    sources.alarms = list(dict.fromkeys(alarms))
    return sources


def _read(path: Path, sources: Sources) -> None:
    if not path.exists():
        raise InputError(f"{path} does not exist. {ALLOWED}")
    if path.is_file() and path.name in ("run.json", "campaign.json"):
        path = path.parent
    if path.is_dir():
        if (path / "campaign.json").is_file():
            _read_campaign(path, sources)
        elif (path / "study.json").is_file():
            _read(path / "study.json", sources)
        elif feeding := next((path / name for name in FEEDINGS if (path / name).is_file()), None):
            _read(feeding, sources)
            for beside in (*sorted(path.glob("accelerators-*")), path / "runs"):
                if beside.is_dir():
                    _read(beside, sources)
        elif (path / "run.json").is_file():
            run = _run(path)
            if run.observed is None:
                sources.runs.append(run)
                sources.given_runs.append(run)
            elif run.path.resolve() not in {one.path.resolve() for one in sources.servers}:
                sources.servers.append(run)
            _note(sources, "run", path / "run.json", path.name)
        elif inside := runs_in(path):
            for directory in inside:
                _read(directory, sources)
            if (path / "series.json").is_file():
                _read(path / "series.json", sources)
        else:
            raise InputError(
                f"{path} is a directory without run.json or campaign.json or study.json.{runs_below(path)} {ALLOWED}"
            )
        return
    document = _document(path)
    kind = document.get("kind")
    if kind == "forecast":
        if not isinstance(document.get("quantities"), dict) or not isinstance(document.get("placement"), dict):
            raise InputError(
                f"{path} is a forecast without quantities or placement; write it again with iocast predict."
            )
        check_forecast(document, f"The forecast '{path}'")
        further = document.pop("further_phases", None) or []
        sources.forecasts += cast(list[ForecastDocument], [document, *(document | one for one in further)])
    elif kind == "validation":
        if not isinstance(document.get("points"), list):
            raise InputError(f"{path} is a validation without points; write it again with iocast validate.")
        sources.validations.append(cast(ValidationDocument, document))
    elif kind == "study":
        if not isinstance(document.get("designs"), list) or "headline" not in document:
            raise InputError(f"{path} is a study without designs or headline; write it again with iocast study.")
        if sources.study is not None:
            raise InputError(
                f"{path} is a second study, and a report tells of one; iocast compare sets designs of two beside each "
                "other."
            )
        sources.study = cast(StudyDocument, document)
    elif kind in FEEDINGS.values():
        name = path.parent.name if path.name in FEEDINGS else path.stem
        sources.feedings.append(cast(Feeding, document | {"name": name}))
    elif kind == "series":
        sources.series.append((path.parent, document))  # of the runs beside it, which come by themselves
        return
    elif isinstance(document.get("fitted"), dict):
        kind = "fitted platform"
        check_fitted(document, path)
        document.setdefault("name", path.stem)
        sources.fitted_files.append(path)
        further = document["fitted"].get("further_phases") or {}
        sources.fitted += [
            cast(FittedPlatform, one)
            for one in (document, *(document | one["platform"] | {"fitted": one["fitted"]} for one in further.values()))
        ]
    else:
        _refuse_output(path)
        what = f"has the kind {strict.shown(kind)}" if kind else "has neither a kind nor a part fitted"
        raise InputError(f"{path} {what}, which no report can show. {ALLOWED}")
    _note(sources, str(kind), path, path.name)


def _read_campaign(path: Path, sources: Sources) -> None:
    campaign = _document(path / "campaign.json")
    campaign["name"] = path.name
    listed = campaign.get("points") or []
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise InputError(f"{path / 'campaign.json'} is damaged: its points are no list of maps. Measure again.")
    points = {str(one.get("name")): one for one in listed}
    found = sorted(p for p in (path / "runs").glob("*") if (p / "run.json").is_file())
    if not found:
        raise InputError(
            f"{path} is a campaign without any run in {path.name}/runs; measure it first with iocast measure."
        )
    for directory in found:
        if points and directory.name not in points:
            continue  # a pilot that only sized the others
        run = _run(directory)
        run.point = directory.name
        run.role = str(points.get(directory.name, {}).get("role", ""))
        sources.runs.append(run)
    sources.campaigns.append(cast(CampaignDocument, campaign))
    _note(sources, "campaign", path / "campaign.json", path.name)
    if (path / "knee.json").is_file():
        knee = _document(path / "knee.json")
        if knee.get("kind") != "knee" or not isinstance(knee.get("loads"), list):
            raise InputError(f"{path / 'knee.json'} is no knee search; write it again with iocast knee.")
        sources.knees.append(cast(KneeDocument, knee | {"name": path.name}))
        _note(sources, "knee search", path / "knee.json", path.name)


def _run(path: Path) -> Run:
    file = path / "run.json"
    document = _document(file)
    if document.get("kind") != "run":
        raise InputError(f"{file} has the kind {strict.shown(document.get('kind'))} instead of 'run'. {ALLOWED}")
    placement = document.get("placement")
    if not isinstance(placement, dict) or "ranks" not in placement:
        raise InputError(f"{file} does not say on how many ranks it ran (placement.ranks); the run can't be reported.")
    check_agreement(read_run(with_every_part(document)), path)
    return Run(path, cast(RunDocument, document))


def _document(path: Path) -> dict[str, Any]:
    """A JSON or YAML file as a map, its schema version checked."""
    text = strict.read_text(path)
    if not text.strip():
        raise InputError(f"{path} is empty. {ALLOWED}")
    if text.lstrip()[:1] == "<":
        raise InputError(f"{path} is a page or another file with tags, perhaps a report itself. {ALLOWED}")
    try:
        document = strict.parse_json(text, path) if text.lstrip().startswith("{") else strict.parse_yaml(text, path)
    except InputError:
        _refuse_output(path)
        raise
    if not isinstance(document, dict):
        _refuse_output(path)
        raise InputError(f"{path} holds a {type(document).__name__} where a map is needed. {ALLOWED}")
    version = document.get("schema_version", SCHEMA_VERSION)
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise InputError(
            f"{path} has schema version {strict.shown(version)}, but this iocast reads up to {SCHEMA_VERSION}; use the "
            "iocast that wrote it."
        )
    require_whole(document, path, partial=True)
    return document


def _refuse_output(path: Path) -> None:
    """@raises InputError for what a benchmark or a server wrote, which is to be imported"""
    if known := [one.name for one in matching(Source(path), all_importers())]:
        raise InputError(
            f"{path} is output of {' or '.join(known)}, and no run yet: import it first (iocast import "
            f"{shlex.quote(str(path))} --out RUN; iocast report RUN)."
        )


def _note(sources: Sources, what: str, file: Path, name: str) -> None:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    sources.files.append({"what": what, "name": name, "sha256": digest})

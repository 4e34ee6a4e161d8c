# SPDX-License-Identifier: Apache-2.0
"""From results to forecasts in one go: import, calibration with its held-out test, a forecast of every phase but
set-up and clean-up at every target, and the report (`iocast forecast`). Each step is that of a verb of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from iocast.ground import binaries
from iocast.calibrate.fit import calibrate
from iocast.calibrate.known import Known, families_with
from iocast.calibrate.reading import check_enough
from iocast.calibrate.search import whole_settings
from iocast.calibrate.storage import RATES_ALONE, Storage, best_family, storage_of
from iocast.errors import InputError, RunError
from iocast.ground.files import read_json, write_json, write_text
from iocast.platforms.fitted import Fitted
from iocast.importers.record import Stated
from iocast.importers.series import series_notes
from iocast.ground.names import as_file_name, shortened
from iocast.runs.phases import is_beside, main_phases, phase_sentences
from iocast.platforms.documents import dump, find_platform
from iocast.forecasts.answer import predict, require_a_place
from iocast.forecasts.request import ranks_per_node_of
from iocast.forecasts.sources import chosen, import_warnings, phases_of, runs_of, with_settings, without, without_nodes
from iocast.runs.question import Placement, meaning
from iocast.records.forecast import ForecastDocument, PlaceDocument, Total
from iocast.records.codes import notes_of
from iocast.records.note import LeftOutRun, NearerLeftOut, Note
from iocast.runs.run_directory import Point, Run, find_runs, group, is_table
from iocast.runs.settings import is_of_a_file, name_for_programs
from iocast.ground.scratch import whole_directory
from iocast.wording.notes import put
from iocast.runs.total import of_one_workload, total
from iocast.jobs.workers import Workers
from iocast.records.fitted import HoldOut

Report = Callable[[str, int, int], None]
PROGRESS = 100
"""Steps of the whole work: progress is reported in percent."""
CALIBRATING = 0.8
"""Share of a phase's work that its calibration takes, roughly."""


@dataclass
class PhaseForecast:
    """A phase of the results: what was fitted, the forecasts by target, or why there are none."""

    phase: str
    fitted: Path | None = None
    holdout: HoldOut = field(default_factory=HoldOut)
    largest: Point | None = None
    forecasts: list[ForecastDocument] = field(default_factory=list)
    refusal: str = ""
    left_out: list[Path] = field(default_factory=list)
    """Runs of the phase that don't say on how many nodes they ran, where others do."""
    used: list[Path] = field(default_factory=list)
    others: list[Path] = field(default_factory=list)
    """Runs of the phase that have the settings of `only`, and those that have others."""


@dataclass
class Answer:
    out: Path
    imported: list[Path]
    phases: list[PhaseForecast]
    report: Path | None
    series: list[str] = field(default_factory=list)
    """What a reader of the imported results must know: contradictions, and files that were left out."""
    beside: list[str] = field(default_factory=list)
    """Phases of set-up and clean-up that were not forecast, since no phase was named."""

    def not_forecast(self) -> list[str]:
        """A sentence for each reason that phases have no forecast, with those phases; the same on terminal and page."""
        found = [f"Not forecast: {sentence}" for sentence in _refusals(self.phases)]
        if self.beside:
            found.append(
                f"Left out: {', '.join(self.beside)} (set-up and clean-up; --phase NAME forecasts one of them)."
            )
        return found

    def totals(self) -> list[tuple[PlaceDocument, Total]]:
        """For each target whose phases all have a length: the placement, and what they take together."""
        groups = of_one_workload([made for one in self.phases for made in one.forecasts])
        found = [(group[0]["placement"], total(group)) for group in groups]
        return [(where, one) for where, one in found if one is not None and not one["unknown"]]

    def document(self) -> dict[str, Any]:
        rows = []
        for one in self.phases:
            row: dict[str, Any] = {"phase": one.phase}
            if one.refusal:
                row["refusal"] = one.refusal
            else:
                row |= {"fitted": str(one.fitted), "holdout": one.holdout, "forecasts": one.forecasts}
            rows.append(row)
        return {
            "kind": "forecasts",
            "runs": [str(path) for path in self.imported],
            "series": self.series,
            "phases": rows,
            "totals": [{"placement": where} | found for where, found in self.totals()],
            "set_up_and_clean_up": self.beside,
            "not_forecast": self.not_forecast(),
            "report": str(self.report) if self.report else None,
        }


def forecast(
    sources: Sequence[Path],
    targets: Sequence[int],
    out: Path,
    *,
    ranks_per_node: int | None = None,
    platform: str | None = None,
    phase: str | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    stated: Stated | None = None,
    level: float = 0.9,
    seed: int = 0,
    report: Report,
    workers: Workers | None = None,
    command: str = "",
    known: Sequence[Known] = (),
) -> Answer:
    """Writes OUT/runs (what was imported), OUT/fitted/PHASE.yaml, OUT/forecasts/PHASE-NODESxRANKS.json and
    OUT/report.html.

    @param targets numbers of nodes; ranks_per_node defaults to that of each phase's largest measurement
    @param only settings of the workload, by name, of the runs to forecast from, each with the values that it may have;
        the other runs are left out. A phase whose runs don't state a setting keeps them all
    @param stated ranks and nodes of the results, for files that don't have them
    @param out must not exist
    @param command that the page names as the one that made it
    @raises InputError when nothing can be read, or no phase can be forecast; OUT is not left behind then, nor
        by an interruption, a signal or a full disk"""
    with whole_directory(out) as made:
        answer = _whole_way(
            sources,
            targets,
            made,
            ranks_per_node,
            platform,
            phase,
            only or {},
            stated or {},
            level,
            seed,
            report,
            workers,
            command,
            known,
        )
    renamed: Answer = _renamed(answer, made, out)
    return renamed


def _renamed(content: Any, made: Path, out: Path) -> Any:
    """The same with paths below `made`, and texts that name it, below `out`."""
    if isinstance(content, Path):
        return out / content.relative_to(made) if content.is_relative_to(made) else content
    if isinstance(content, str):
        return content.replace(str(made), str(out))
    if isinstance(content, list):
        return [_renamed(one, made, out) for one in content]
    if isinstance(content, dict):
        return {key: _renamed(value, made, out) for key, value in content.items()}
    if isinstance(content, Answer | PhaseForecast):
        return replace(content, **{f.name: _renamed(getattr(content, f.name), made, out) for f in fields(content)})
    return content


def _whole_way(
    sources: Sequence[Path],
    targets: Sequence[int],
    out: Path,
    ranks_per_node: int | None,
    platform: str | None,
    phase: str | None,
    only: Mapping[str, Sequence[str]],
    stated: Stated,
    level: float,
    seed: int,
    report: Report,
    workers: Workers | None,
    command: str,
    known: Sequence[Known],
) -> Answer:
    # Before anything is imported, and once for all phases.
    for nodes in targets:
        require_a_place(nodes, ranks_per_node or 1)
    if platform is not None:
        find_platform(platform)
    runs = runs_of(sources, out, stated)
    every = phases_of(runs)
    if not every:
        raise InputError(
            "No phase of these results has operations a second, of which forecasts for more nodes are. Checkpoints of "
            "DLIO have bytes a second alone, of which none is made; iocast simulate PLATFORM llama3-8b tells how long "
            "a platform needs for one."
        )
    if phase is not None and phase not in every:
        raise InputError(f"No run of these results has the phase '{phase}'. {phase_sentences(phase, every)}")
    names = [phase] if phase else main_phases(every)
    together = [run for path in runs for name in names for run in _with_phase(path, name)] if only else []
    for name, values in only.items():
        for value in values:
            with_settings(together, {name: [value]})  # refuses what no phase has
    found: list[PhaseForecast] = []
    for number, name in enumerate(names):
        within = _part(report, f"{name}: ", number / len(names), (number + 1) / len(names))
        one = _of_phase(
            runs, name, only, targets, out, ranks_per_node, platform, level, seed, workers, within, known
        )  # fmt: skip
        found.append(one)
    if all(one.refusal for one in found):
        raise InputError(f"No phase of these results can be forecast: {' '.join(_refusals(found))}")
    report("the report", PROGRESS, PROGRESS)
    left_out = list(dict.fromkeys(path for one in found for path in one.left_out))
    notes = [
        note
        for directory in dict.fromkeys([out / "runs", *sources])
        if (directory / "series.json").is_file()
        for note in series_notes(read_json(directory / "series.json", "series"), [phase] if phase else [], directory)
    ]
    notes += [
        f"left out: '{path.name}' does not say on how many nodes it ran; import it by itself with "
        "iocast import --nodes."
        for path in left_out
    ]
    if (out / "runs").is_dir():
        notes += import_warnings(runs)
    used = {run for one in found for run in one.used}
    others = [path for one in found for path in one.others if path not in used]
    beside = [] if phase else [name for name in every if name not in names and is_beside(name)]
    answer = Answer(out, runs, found, None, notes, beside)
    answer.report = _write_report(without(runs, [*left_out, *others]), answer, _title(sources), command)
    return answer


def _refusals(phases: Sequence[PhaseForecast]) -> list[str]:
    """Each reason that phases were not forecast, once, after their names."""
    found: dict[str, list[str]] = {}
    for one in phases:
        if one.refusal:
            found.setdefault(one.refusal, []).append(one.phase)
    return [f"{', '.join(names)}: {refusal}" for refusal, names in found.items()]


def _of_phase(
    sources: Sequence[Path],
    phase: str,
    only: Mapping[str, Sequence[str]],
    targets: Sequence[int],
    out: Path,
    ranks_per_node: int | None,
    platform: str | None,
    level: float,
    seed: int,
    workers: Workers | None,
    report: Report,
    known: Sequence[Known],
) -> PhaseForecast:
    answer = PhaseForecast(phase)
    try:
        every = [run for path in sources for run in _with_phase(path, phase)]
        runs = chosen(every, only)
        answer.others = [run.path for run in every if run not in runs]
        answer.left_out = without_nodes(runs)
        answer.used = [run.path for run in runs]
        points = group([run for run in runs if run.path not in answer.left_out])
        answer.largest = max(points, key=lambda p: p.ranks)
        storage = (
            Storage((platform,))
            if platform
            else storage_of(points)
            if _can_be_simulated(points)
            else Storage((RATES_ALONE,))
        )
        if known:
            storage = replace(storage, families=families_with(known, storage.families))
        storage.require_nodes(points, max(targets))
        name = as_file_name(phase)
        answer.fitted = out / "fitted" / f"{name}.yaml"
        fitting = _part(report, "", 0, CALIBRATING)
        kept = out / "fitted" / f"{name}.search.jsonl"
        document = best_family(storage, lambda family: calibrate(points, family, seed, fitting, workers, kept, known))
        write_text(answer.fitted, "# SPDX-License-Identifier: Apache-2.0\n" + dump(document))
        fitted = Fitted.open(str(answer.fitted))
        answer.holdout = fitted.fitted.get("holdout") or {}
        ppn = ranks_per_node or ranks_per_node_of(fitted)
        forecasting = _part(report, "", CALIBRATING, 1.0)
        for number, nodes in enumerate(targets):
            forecasting(f"forecast of {nodes} x {ppn:g}", number, len(targets))
            one = predict(
                fitted,
                None,
                {},
                nodes,
                ppn,
                phase=phase,
                level=level,
                seed=seed,
                label=f"{phase} {nodes} x {ppn:g}",
                workers=workers,
            )
            put(one, [*_left_out_nearer(one, runs, [run for run in every if run not in runs]), *notes_of(one)])
            write_json(out / "forecasts" / f"{name}-{nodes}x{ppn:g}.json", one)
            answer.forecasts.append(one)
    except (InputError, RunError) as error:
        answer.refusal, answer.fitted = str(error), None
    return answer


def _left_out_nearer(made: ForecastDocument, used: Sequence[Run], others: Sequence[Run]) -> list[Note]:
    """The runs that --only leaves out, measured nearer to a forecast's scale than any that it rests on."""
    target = Placement.read(made["placement"])
    least = min(target.distance(run.question.placement) for run in used)
    nearer = [one for one in others if one.record.placement.nodes and target.distance(one.question.placement) < least]

    def left_out(run: Run) -> LeftOutRun:
        values = {name: meaning(value) for name, value in run.parameters.items()}
        apart = [n for n, v in values.items() if all(meaning(one.parameters.get(n)) != v for one in used)]
        return LeftOutRun(run.rate, [*run.placement], [f"{name}={values[name]}" for name in apart])

    unit = made["quantities"]["rate"].get("unit", "")
    return [NearerLeftOut([left_out(run) for run in nearer], unit)] if nearer else []


def _part(report: Report, about: str, begin: float, end: float) -> Report:
    """The progress of a part of the work, that from the share `begin` of it to `end`, as progress of the whole."""

    def of_part(text: str, done: int, total: int) -> None:
        share = begin + (end - begin) * min(1.0, done / max(total, 1))
        report(f"{about}{text}", round(share * PROGRESS), PROGRESS)

    return of_part


def _with_phase(path: Path, phase: str) -> list[Any]:
    """Runs of a source that have the phase; none where it has another one only."""
    document = path / "run.json"
    if document.is_file() and all(p["name"] != phase for p in read_json(document, "run")["phases"]):
        return []
    return find_runs([path], phase)[0]


def _can_be_simulated(points: Sequence[Point]) -> bool:
    """Whether a family with latencies can be fitted: there are enough scales, and a workload of iocast does what was
    measured, as none does what fio did. A line of a table has one operation of a workload alone."""
    run = points[0].first
    if is_table(run) or is_of_a_file(run.json["workload"]):
        return False
    try:
        check_enough([point for point in points if point.role == "fit"])
        binaries.resolve_workload(name_for_programs(run.json["workload"]), whole_settings(run), 1, 1)
    except InputError:
        return False
    return True


def _title(sources: Sequence[Path]) -> str:
    return f"Forecast from {shortened([path.name or str(path) for path in sources])}"


def _write_report(runs: Sequence[Path], answer: Answer, title: str, command: str) -> Path:
    from iocast.report import write_report

    out, done = answer.out, [one for one in answer.phases if one.forecasts]
    fitted = list(dict.fromkeys(one.fitted for one in done if one.fitted is not None))
    forecasts = [
        out
        / "forecasts"
        / f"{as_file_name(one.phase)}-{f['placement']['nodes']}x{f['placement']['ranks_per_node']:g}.json"
        for one in done
        for f in one.forecasts
    ]
    page = out / "report.html"
    write_report([*runs, *fitted, *forecasts], page, title, command, answer.not_forecast(), answer.series)
    return page

# SPDX-License-Identifier: Apache-2.0
"""Changed values of the files that iocast writes: a run directory, a forecast, a fitted platform. Each value is changed
by itself; what some verb answers must change, or a reader must refuse the file.

Verbs answer in turn until one notices. What an answer only repeats of a file does not count (ECHOES)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from changed import ROOT, Change, Path_, farthest_of, replaced

from iocast.ground import binaries
from iocast.calibrate.findings import findings
from iocast.compare import compare
from iocast.runs.earlier import Earlier
from iocast.errors import InputError
from iocast.export import rows_of
from iocast.ground.files import write_json
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict
from iocast.report.figures import all_figures
from iocast.report.provenance import collect
from iocast.report.sources import read_sources
from iocast.report.story import tell
from iocast.report.tables import all_tables
from iocast.runs.run_directory import find_runs, group
from iocast.study import run_study
from iocast.validate import validate
from iocast.jobs.workers import Workers

SETTINGS = {"datasets": "2", "objects": "100", "iterations": "100", "repeats": "4"}
TRUTH = "schema_version: 1\nextends: local\nstations: {cpu: {quantum: 5ms, contention: 0.1}}\n"
LARGEST = 8
"""Ranks of the runs that no fit saw."""
ECHOES = {"sha256", "content_hash", "made_at", "file", "command", "search", "programs", "study"}
"""Keys of answers that repeat the question, or hash it."""
FEW = 4
"""Records of a list, up to which each is changed; of more the first and the last."""


@dataclass(frozen=True)
class Written:
    """A file, what reads and writes its format, and the verbs that read it."""

    what: str
    file: Path
    read: Callable[[str], Any]
    write: Callable[[Any], str]
    verbs: dict[str, Callable[[], Any]]


@dataclass(frozen=True)
class Inputs:
    """A platform, fitted to runs of 1, 2 and 4 ranks; further runs of LARGEST ranks, and the forecast of these."""

    directory: Path
    platform: Path
    runs: list[Path]
    held_out: list[Path]
    forecast: Path


def make(directory: Path) -> Inputs:
    """Simulates runs, calibrates briefly (tests/brief), forecasts."""
    truth = directory / "truth.yaml"
    truth.write_text(TRUTH)
    runs = {}
    for ranks in (1, 2, 4, LARGEST):
        for seed in (1, 2):
            runs[ranks, seed] = directory / f"n{ranks}-{seed}"
            command = [binaries.find("iocast-sim"), "--platform", str(truth), "--ppn", str(ranks), "--seed", str(seed)]
            command += [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
            subprocess.run([*command, "--out", runs[ranks, seed]], check=True, capture_output=True)
    few = [run for (ranks, _), run in runs.items() if ranks < LARGEST]
    brief = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "brief"), str(ROOT)])}
    platform = directory / "fitted.yaml"
    command = [sys.executable, "-m", "iocast", "calibrate", *few, "--platform", "local", "--out", platform]
    subprocess.run([*command, "--workers", "1"], check=True, capture_output=True, env=brief)
    return inputs(directory, platform, few, [run for (ranks, _), run in runs.items() if ranks == LARGEST])


def inputs(directory: Path, platform: Path, runs: list[Path], held_out: list[Path]) -> Inputs:
    """The same of runs that are there already."""
    forecast = directory / "forecast.json"
    settings = {key: str(value) for key, value in find_runs(held_out)[0][0].parameters.items() if key in SETTINGS}
    write_json(forecast, predict(Fitted.open(str(platform)), None, settings, 1, LARGEST))
    return Inputs(directory, platform, runs, held_out, forecast)


def without_echoes(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {key: without_echoes(value) for key, value in answer.items() if key not in ECHOES}
    return [without_echoes(value) for value in answer] if isinstance(answer, list | tuple) else answer


def judged(given: Inputs) -> Any:
    """`iocast validate --forecast`"""
    points = group(find_runs(given.held_out)[0])
    return validate(Fitted.open(str(given.platform)), points, forecasts=[Earlier.open(given.forecast)])


def reported(sources: list[Path]) -> Any:
    """What a report shows: words, tables, data of figures."""
    read = read_sources(sources)
    shown = tell(read)
    tables = {table.name: table.rows for table in all_tables(read)}
    figures = {figure.name: figure.data(read) for figure in all_figures()}
    words = [shown.headline, shown.paragraphs, shown.cards, shown.warnings, shown.summary, collect(read).parts]
    return [words, tables, figures]


def of_run(given: Inputs) -> Written:
    run, other = given.held_out
    verbs = {
        "validate": lambda: judged(given),
        "export": lambda: list(rows_of(run)),
        "calibrate --look": lambda: [one.document() for one in findings(group(find_runs(given.held_out)[0]))],
        "compare": lambda: compare(run, other),
        "report": lambda: reported([run]),
        "report of all": lambda: reported([*given.runs, *given.held_out, given.forecast, given.platform]),
    }
    return Written("run", run / "run.json", json.loads, json.dumps, verbs)


def of_forecast(given: Inputs) -> Written:
    verbs = {
        "validate": lambda: judged(given),
        "report": lambda: reported([given.forecast]),
        "report of all": lambda: reported([*given.held_out, given.forecast, given.platform]),
    }
    return Written("forecast", given.forecast, json.loads, json.dumps, verbs)


def of_fitted(given: Inputs) -> Written:
    def forecast(ranks: int, solver: str, **settings: str) -> Any:
        platform = Fitted.open(str(given.platform))
        return predict(platform, None, {"objects": "20", "iterations": "20", **settings}, 1, ranks, solver=solver)

    def studied() -> Any:
        study = {
            "schema_version": 1,
            "title": "t",
            "platform": str(given.platform),
            "scales": {"s": {"nodes": 1, "ranks_per_node": 8}},
            "workloads": {"own": {"workload": "md-workbench", "settings": {"objects": "20", "iterations": "20"}}},
            "axes": {"speed": {"as it is": {}, "fast": {"edit": {"stations.cpu.speed": 2}}}},
            "levels": ["p99(create) < 40 us", "rate(all) >= 200k/s"],
            "search": {"replications": 4},
        }
        (given.directory / "study.yaml").write_text(yaml.safe_dump(study))
        with Workers(1) as workers:
            return run_study(given.directory / "study.yaml", given.directory / "store", workers, lambda *_: None, [])

    verbs = {
        "predict --solver analytic": lambda: forecast(16, "analytic"),
        "report": lambda: reported([given.platform]),
        "predict as measured": lambda: predict(Fitted.open(str(given.platform)), None, {}, 1, 4, solver="analytic"),
        "predict": lambda: forecast(16, "simulate"),
        "predict of a fitted scale": lambda: forecast(4, "simulate"),
        "predict of another waiting factor": lambda: forecast(4, "analytic", waiting_factor="3"),
        "study": studied,
        "validate": lambda: validate(
            Fitted.open(str(given.platform)), group(find_runs([*given.runs, *given.held_out])[0])
        ),
    }
    return Written(
        "fitted", given.platform, yaml.safe_load, lambda content: yaml.safe_dump(content, sort_keys=False), verbs
    )


FILES = {"runs": of_run, "forecasts": of_forecast, "fitted": of_fitted}
DESCRIPTIVE: dict[str, dict[str, str]] = {
    "run": {
        "tool.version": "who wrote it",
        "command": "how it was made; a report prints it",
        "platform": "what was simulated, whole; a report draws its routes",
        "slowest.dataset": "which file was slow",
        "slowest.object": "which file was slow",
        "peak_objects": "calibrate keeps it, and predict warns beyond it (tests/python/test_forecast.py)",
        "rate_half_width": "iocast-sim prints it; verbs work it out from the repeats",
    },
    "forecast": {
        "label": "a name",
        "platform.name": "a name",
        "platform.file": "a name",
        "ranks_per_node_assumed": "what the text says of the question",
        "quantities.model": "the value before the residual's shift, for whoever asks how far that went",
        "parts.model": "the value before the residual's shift",
        "parts.max.high": "of the largest latency, above which there is nothing to agree with",
        "asymptotic bounds.high": "a bound, which predict prints",
        "question.workload.name": "a name; the pattern and its settings count",
        "alternatives.structure": "names of structures that fit nearly as well, for readers",
        "draws": "how much was computed",
    },
    "fitted": {
        "description": "prose",
        "source": "prose",
        "family": "a name",
        "campaign.runs.name": "a name",
        "campaign.workload.name": "a name, by which --workload may ask",
        "campaign.workload.parameters.waiting_factor": "each point has its own",
        "campaign.workload.parameters.repeats": "how often it was measured",
        "campaign.workload.parameters.phases": "which phases ran; campaign.phase counts",
        "campaign.points.latency.count": "weights of operations in a mean response, which the rate knows better",
        "parameters.name": "a name",
        "correlations": "for readers; draws have them",
        "alternatives.misfit": "of structures that were not chosen; their weights come of it, and these count",
        "alternatives.parameters": "of structures that were not chosen; their draws are in the file",
        "campaign.workload.parameters.start_index": "where the names of files began",
        "simulations": "how much was computed",
        "score": "by which families were compared",
        "drawn_from": "weights that the draws come of, which are in the file",
        "stand_ins": "of operations that other workloads have (tests/python/test_stand_ins.py)",
        "next": "an answer by itself: what to measure next",
        "blend.errors": "what the weights come of, and these count",
        "fit.runs": "what its noise came of",
        "fitted_up_to": "in words of a report that has no point of that scale",
        "peak_objects": "predict warns beyond it (tests/python/test_forecast.py)",
    },
}
"""By file, keys without effect, as some of the keys on the way to them, with the reason."""


def values(content: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every value with the way to it; a list of plain values is one, and long lists of records have two."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from values(value, (*path, key))
    elif isinstance(content, list) and any(isinstance(value, dict | list) for value in content):
        for place, value in enumerate(content):
            if len(content) <= FEW or place in (0, len(content) - 1):
                yield from values(value, (*path, place))
    elif content not in (None, [], {}, ""):
        yield path, content


def others(value: Any) -> list[Any]:
    """A hundred times a number; otherwise another value of the kind."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [100 * value] if value else [1]
    if isinstance(value, list):
        return [[(100 * one or 1) if isinstance(one, int | float) else f"{one}-else" for one in value]]
    return [f"{value}-else"]


def changed_file(
    written: Written, sample: slice = slice(None), verbs: int | None = None, only: list[str] | None = None
) -> list[Change]:
    """Every value of a file, changed one at a time; `verbs`: how many read it; `only` below ways that begin so."""
    text = written.file.read_text()
    chosen = list(written.verbs.values())[:verbs]
    before = [without_echoes(verb()) for verb in chosen]

    def outcome(path: Path_, other: Any) -> float | str:
        written.file.write_text(written.write(replaced(written.read(text), path, other)))
        try:
            return (
                float("inf")
                if any(without_echoes(verb()) != was for verb, was in zip(chosen, before, strict=True))
                else 0.0
            )
        except InputError as error:
            return str(error)
        finally:
            written.file.write_text(text)

    found = []
    for path, value in list(values(written.read(text)))[sample]:
        dotted = ".".join(map(str, path))
        if not descriptive(written.what, path) and (not only or any(dotted.startswith(one) for one in only)):
            tried = ((other, outcome(path, other)) for other in others(value))
            found.append(farthest_of(written.what, dotted, value, tried))
    return found


def descriptive(what: str, path: Path_) -> bool:
    """Whether an entry of the list names keys on the way, in that order, others between them."""
    keys = [str(key) for key in path if not isinstance(key, int)]

    def is_on_the_way(entry: str) -> bool:
        rest = iter(".".join(keys).split("."))
        return all(key in rest for key in entry.split("."))

    return any(is_on_the_way(entry) for entry in DESCRIPTIVE[what])

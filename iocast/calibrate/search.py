# SPDX-License-Identifier: Apache-2.0
"""Simulated quantile matching: least squares between the logarithms of measured and simulated values."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import trapezoid
from scipy.optimize import least_squares

from iocast.ground import binaries
from iocast.calibrate.reading import seconds_of
from iocast.calibrate.recipe import Option, Parameter, family_document
from iocast.calibrate.trace import Trace
from iocast.errors import InputError, RunError
from iocast.runs.operations import phase_operations
from iocast.platforms.documents import Document, mechanisms_in, merge, steps_of
from iocast.records.simulated import SimulatedRun
from iocast.runs.run_directory import Point, Run
from iocast.ground.scratch import scratch_directory
from iocast.runs.settings import name_for_programs, parameters_of, settings_of, units_of
from iocast.jobs.workers import Workers

SUMMARIES = {"mean": 0.08, "q25": 0.02, "q50": 0.015, "q75": 0.02, "q95": 0.04, "q99": 0.08, "max": 0.2}
"""Per operation, with the log standard deviation that model and simulation deserve even without measurement noise."""
RATE_FLOOR = 0.015
STARTS = 8
STEPS = 12
"""Of one structure's search from the best start; each also takes one simulation a parameter and point for its slope."""
OVERLOADED = "work-piles-up"
"""Code of iocast-sim's error about work of others that a station can't cope with."""
NOTHING_LEFT = "no-demand-left"
"""Code of its error about work of others whose whole time the candidate has put elsewhere."""
NOTHING_SHARED = "nothing-shared"
"""Code of its error about operations whose whole time the candidate has put elsewhere."""
HARDLY_ANYTHING = 0.05
"""Of the mean demand of others' work, below which a candidate has put it elsewhere: to keep servers as busy with what
is left, such requests would have to come by the million."""
COME_BY_THE_MILLION = (
    "Next to nothing is left of the demand of others' work, so that their requests would come by the million; leave "
    "them more, or give them a rate instead of a share."
)
FAR = 5.0
"""Logarithms that such candidates are off."""
Job = tuple[Path, str, dict[str, str], int, int, int] | tuple[Path, str, dict[str, str], int, int, int, float]
"""Platform, workload, settings, nodes, ranks per node, seed; and a limit as of binaries.simulate."""
SLOPE_STEP = 0.3
"""In the logarithm of a parameter, or twice or four times that for one that moves the residuals by less than CLEAR."""
CLEAR = 1.0
"""Root mean square of the change of standardised residuals by which a slope stands out of the noise that common random
numbers leave. From a change that is lost in it, a search would take the parameter for settled."""
MAX_OPERATIONS = 250_000
"""Of one simulation during the search; a point that had more is simulated with fewer iterations."""
ENOUGH_OPERATIONS = 20_000
"""Of one simulation; a run that had fewer is simulated several times ..."""
MAX_REPEATS = 8
"""... but not more often."""
APART = 10_007
"""Between seeds of simulations whose logarithms' mean is taken."""
MEMORY = ("caches", "buffers")
"""Sections of a platform by which what was done before a phase matters in it; mechanisms remember as well."""


def only(phases: str | list[str], pattern: str, documents: Iterable[Document] = ()) -> dict[str, str]:
    """The setting by which a workload runs these phases alone, where it has a choice of them; with those before them
    where one of the platforms (`documents`) remembers. Whoever simulates a phase takes it from here, so that all
    simulate the same."""
    wanted = [phases] if isinstance(phases, str) else phases
    parts = next((p["default"].split(",") for p in parameters_of(pattern) if p["name"] == "phases"), [])
    if not wanted or any(phase not in parts for phase in wanted):
        return {}  # the pattern's parts are not its phases: it runs them all
    last = max(parts.index(phase) for phase in wanted)
    remembering = any(remembers(document, pattern, phases) for document in documents)
    return {"phases": ",".join(part for part in parts[: last + 1] if remembering or part in wanted)}


def remembers(document: Document, pattern: str, phases: str | list[str]) -> bool:
    """Whether it has memory that what was done before these phases of a workload leaves full or empty, so that it
    matters in them: where operations look for what those before have left."""
    remembering = (*MEMORY, *mechanisms_in(document), "operations")
    own = {section: document[section] for section in remembering if section in document}
    looked_at = _looks(str(document.get("extends", "")), as_json(own))
    if looked_at is None:
        return True
    if not looked_at:
        return False
    try:
        known = _operations_by_phase(pattern)
    except InputError:
        return True
    wanted = [phases] if isinstance(phases, str) else phases
    names = list(known)
    if not wanted or any(phase not in known for phase in wanted):
        return True
    before = {op for name in names[: max(map(names.index, wanted))] for op in known[name]}
    now = {op for name in wanted for op in known[name]}
    return any(asking & now and touching & before for asking, touching in looked_at.values())


Looks = dict[str, tuple[set[str], set[str]]]
"""By cache or buffer: operations whose time hangs on what is there, and those that leave something there."""


@lru_cache(maxsize=256)
def _looks(extends: str, own: str) -> Looks | None:
    """Caches and buffers of a platform that extends another (empty: none), with `own` sections, as JSON; those that are
    behind others among them. None where it has mechanisms. A search needs it for each simulation of each candidate."""
    document: Document = json.loads(own)
    family = _family(extends) if extends else {}
    sections = (*MEMORY, *mechanisms_in(family | document), "operations")
    whole = merge(
        {key: family[key] for key in sections if key in family}, {k: document[k] for k in sections if k in document}
    )
    if any(whole[section] for section in mechanisms_in(whole)):
        return None
    caches, buffers = (whole.get(section) or {} for section in ("caches", "buffers"))
    operations = whole.get("operations", {})
    found: Looks = {}

    def follow(operation: str, route: Any) -> None:
        for step in steps_of(route):
            recalled = step.get("forget") if "recall" in step else None
            name = str(step.get("cache") or step.get("buffer") or step.get("flush") or recalled or "")
            behind = (caches.get(name) or buffers.get(name) or {}) if name else {}
            if not behind:
                continue
            asking, touching = found.setdefault(name, (set(), set()))
            touching.add(operation)
            if "buffer" in step:
                asking.update(operations)  # while it drains it is in the way of all
            elif "flush" in step or recalled or {"hit", "miss", "evict"} & set(step) or "ahead" in behind:
                asking.add(operation)
            follow(operation, [behind.get("drain"), behind.get("fetch")])

    for operation, route in operations.items():
        follow(operation, route)
    return {name: looks for name, looks in found.items() if looks[0]}


@lru_cache(maxsize=None)
def _family(platform: str) -> Document:
    return family_document(platform)


@lru_cache(maxsize=None)
def _operations_by_phase(pattern: str) -> dict[str, dict[str, float]]:
    return phase_operations(pattern, {}, 2, 1)


def as_json(document: Document) -> str:
    """It is YAML too, and written fifty times as fast. YAML's dates become text, as the simulator reads them; it knows
    no characters in two halves."""
    return json.dumps(document, ensure_ascii=False, default=str)


def hardly_anything_left(document: Document) -> bool:
    """Whether work of others that takes a share of servers has a demand of which next to nothing is left after its
    shift."""
    for work in (document.get("background") or {}).values():
        if "share" not in work:
            continue
        law = (document.get("demands") or {}).get(str(work.get("demand")))
        if isinstance(law, dict) and "values" in law and "shift" in law:
            values = [seconds for value in law["values"] if (seconds := seconds_of(value)) is not None]
            shift = seconds_of(law["shift"])
            if shift is None or len(values) < len(law["values"]):
                continue  # the simulator says what is wrong with it
            left = np.maximum(np.array(values) + shift, 0.0)
            if trapezoid(left, law["probabilities"]) < HARDLY_ANYTHING * trapezoid(values, law["probabilities"]):
                return True
    return False


def whole_settings(run: Run, document: Document | None = None) -> dict[str, str]:
    """The run's workload parameters as settings for a simulation of its phase, with all repeats; on a platform
    (`document`) that remembers of the phases before it as well, and of all phases when the pattern has no choice of
    them."""
    pattern = name_for_programs(run.json["workload"])
    return (
        settings_of({**run.json["workload"], "parameters": run.parameters})
        | ({"start_index": "0"} if "start_index" in units_of(pattern) else {})
        | only(run.phase, pattern, [] if document is None else [document])
    )


def for_the_search(run: Run) -> dict[str, str]:
    """The same for the search: not too many operations, and of short runs several, whose logarithms' mean is less
    random than one's."""
    settings = whole_settings(run)
    operations = run.phases[0].operations
    if operations is None:
        raise InputError(
            f"The run '{run.path}' has no number of operations, which a fit to latencies needs; let the rates alone "
            "speak: --platform queue."
        )
    if "repeats" in units_of(name_for_programs(run.json["workload"])):
        settings["repeats"] = str(min(MAX_REPEATS, max(1, ENOUGH_OPERATIONS // operations)))
    if operations <= MAX_OPERATIONS or "iterations" not in settings:
        return settings
    return settings | {"iterations": str(max(1, round(int(settings["iterations"]) * MAX_OPERATIONS / operations)))}


@dataclass
class Target:
    """One measured point as the search sees it."""

    point: Point
    names: list[str]
    logs: NDArray[np.float64]
    sigmas: NDArray[np.float64]
    settings: dict[str, str]

    @classmethod
    def of(cls, point: Point, noise: dict[str, float]) -> Target:
        names, logs, sigmas = ["rate"], [math.log(point.value("rate"))], [math.hypot(RATE_FLOOR, noise["rate"])]
        settings = for_the_search(point.first)
        for op in point.first.operations:
            for which, floor in SUMMARIES.items():
                if not point.has(f"{op}.{which}"):
                    continue
                if which == "max" and settings.get("iterations") != whole_settings(point.first).get("iterations"):
                    continue  # the largest of a shorter run is another quantity
                values = point.observations(f"{op}.{which}")
                names.append(f"{op}.{which}")
                logs.append(float(np.mean(np.log(values))))
                sigmas.append(math.hypot(floor, noise.get(which, noise["q50"] if which == "q25" else noise["q95"])))
        return cls(point, names, np.array(logs), np.array(sigmas), settings)

    def simulation(self, document: Document) -> tuple[str, dict[str, str], int, int]:
        """Workload, settings, nodes and ranks per node. On a platform that remembers a further repeat is another
        question, so that there are as many as were measured."""
        run = self.point.first
        pattern, phase = name_for_programs(run.json["workload"]), run.phase
        settings = self.settings | only(phase, pattern, [document])
        if "repeats" in settings and remembers(document, pattern, phase):
            measured = whole_settings(self.point.first).get("repeats", len(self.point.first.phases))
            settings["repeats"] = str(min(MAX_REPEATS, int(measured)))
        return pattern, settings, *self.point.first.placement

    def simulations(self, document: Document, seed: int) -> list[tuple[str, dict[str, str], int, int, int]]:
        """The same with seeds: one, or as many as make up for the repeats that such a platform lacks."""
        question = self.simulation(document)
        times = int(self.settings.get("repeats", 1)) // int(question[1].get("repeats", 1))
        return [(*question, seed + number * APART) for number in range(max(1, times))]


def summaries(simulated: SimulatedRun, target: Target, otherwise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms of the target's quantities of a simulated run; the mean of them, where its phase has several repeats.
    Of an operation of a random mix that the run lacks, `otherwise`, with which the caller compares."""
    phases = [phase for phase in simulated["phases"] if phase["name"] == target.point.first.phase]

    def log(name: str, unknown: float) -> float:
        op, _, which = name.rpartition(".")
        known = [p["rate"] for p in phases] if name == "rate" else [p["latency"].get(op, {}).get(which) for p in phases]
        logs = [math.log(max(value, 1e-9)) for value in known if value is not None]
        return sum(logs) / len(logs) if logs else unknown

    return np.array([log(*one) for one in zip(target.names, otherwise, strict=True)])


Outcome = SimulatedRun | RunError
"""What iocast-sim printed, or the error that work of others piles up, or can't be."""


def _outcome(job: Job) -> Outcome:
    """What iocast-sim printed, or the error that work of others piles up, or can't be."""
    try:
        return binaries.simulate(*job)
    except InputError as error:
        if error.code in (NOTHING_LEFT, NOTHING_SHARED):
            return RunError(str(error))
        raise
    except RunError as error:
        if error.code == OVERLOADED:
            return error
        raise


def _simulate_text(task: tuple[Any, ...]) -> Outcome:
    """The same of a Job, on a worker that has no file of the platform, but its text."""
    text, name, about, *question = task
    with scratch_directory("simulation") as scratch:
        platform = scratch / name
        platform.write_text(text, encoding="utf-8")
        if about:
            binaries.known_as[str(platform)] = about
        try:
            return _outcome((platform, *question))
        finally:
            binaries.known_as.pop(str(platform), None)


def _in_order(numbered: Iterator[tuple[int, Outcome]]) -> Iterator[Outcome]:
    """Results that come with their numbers, from 0 on, each as soon as those before it are there."""
    early: dict[int, Outcome] = {}
    following = 0
    for number, result in numbered:
        early[number] = result
        while following in early:
            yield early.pop(following)
            following += 1


class Simulations:
    """Runs simulations of platform documents on all cores, or by `workers`. Use as a context manager. `about`: the
    platform that the user named, by which errors call all of them."""

    def __init__(self, workers: Workers | None = None, about: str | Path = "") -> None:
        self._workers = workers
        self._about = str(about)
        self._named: list[str] = []

    def __enter__(self) -> Simulations:
        self._opened = ExitStack()
        self._directory = self._opened.enter_context(scratch_directory("calibration"))
        self._pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
        self._written = 0
        self._hopeless: set[Path] = set()
        self.count = 0
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._opened.close()
        for path in self._named:
            del binaries.known_as[path]

    def write(self, document: Document) -> Path:
        self._written += 1
        path = self._directory / f"candidate-{self._written}.yaml"
        path.write_text(as_json(document), encoding="utf-8")
        if self._about:
            self._named.append(str(path))
            binaries.known_as[str(path)] = self._about
        if hardly_anything_left(document):
            self._hopeless.add(path)
        return path

    def run(self, jobs: Sequence[Job]) -> list[SimulatedRun]:
        """(platform, workload, settings, nodes, ranks per node, seed) -> what iocast-sim printed, in order."""
        results = []
        for one in list(self._outcomes(jobs)):
            if isinstance(one, RunError):
                raise one
            results.append(one)
        return results

    def run_those_that_settle(self, jobs: Sequence[Job]) -> list[SimulatedRun | None]:
        """The same, with None for those in which work of others piles up without end, or can't be."""
        return [None if isinstance(one, RunError) else one for one in self._outcomes(jobs)]

    def _outcomes(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        tried = [job for job in jobs if job[0] not in self._hopeless]
        self.count += len(tried)
        if self._workers is None:
            found = self._pool.map(_outcome, tried)
        else:
            texts = [(job[0].read_text(encoding="utf-8"), job[0].name, self._about, *job[1:]) for job in tried]
            found = _in_order(self._workers.map(_simulate_text, texts))
        return (RunError(COME_BY_THE_MILLION) if job[0] in self._hopeless else next(found) for job in jobs)

    def at_targets(
        self, documents: list[Document], targets: list[Target], seed: int
    ) -> Iterator[list[NDArray[np.float64]]]:
        """Logarithms of each candidate's values, one candidate after the other as they are done; far from all
        measurements where background work piles up without end, or can't be."""
        return self.at([(document, targets) for document in documents], seed)

    def at(self, requests: Sequence[tuple[Document, list[Target]]], seed: int) -> Iterator[list[NDArray[np.float64]]]:
        """The same of each candidate at targets of its own."""
        platforms = [self.write(document) for document, _ in requests]
        questions = [[t.simulations(document, seed) for t in targets] for document, targets in requests]
        found = self._outcomes(
            [
                (platform, *one)
                for platform, of_targets in zip(platforms, questions, strict=True)
                for of_target in of_targets
                for one in of_target
            ]
        )
        for platform, (_, targets), of_targets in zip(platforms, requests, questions, strict=True):
            entries = []
            for t, of_target in zip(targets, of_targets, strict=True):
                several = [next(found) for _ in of_target]
                logs = [t.logs + FAR if isinstance(one, RunError) else summaries(one, t, t.logs) for one in several]
                entries.append(np.asarray(np.mean(logs, axis=0), np.float64))
            platform.unlink()
            yield entries


def cost_of(standardised: NDArray[np.float64]) -> float:
    """Mean of the squares of residuals after soft L1."""
    return float(np.mean(2 * (np.sqrt(1 + standardised**2) - 1)))


@dataclass
class Fit:
    structure: dict[str, str]
    options: list[Option]
    parameters: list[Parameter]
    values: dict[str, float]
    cost: float  # see cost_of
    covariance: NDArray[np.float64]  # of the logarithms of the parameters
    evaluations: int
    trace: list[tuple[float, dict[str, float]]] = field(default_factory=list)


def fit_structure(
    simulations: Simulations,
    build: Callable[[list[Option], dict[str, float]], Document],
    structure: dict[str, str],
    options: list[Option],
    parameters: list[Parameter],
    start: dict[str, float],
    targets: list[Target],
    seed: int,
    kept: Trace,
) -> Fit:
    """Levenberg-Marquardt-like search (soft L1) over the logarithms of the parameters with common random numbers: the
    same seed in every simulation, so that a small step changes the summaries smoothly. A prior, weak unless more is
    known, keeps what the data can't tell near its start. What `kept` holds is not simulated again."""
    prior_sd = np.array([p.spread for p in parameters])
    low = np.log([p.low for p in parameters])
    high = np.log([p.high for p in parameters])
    centre = np.clip(np.log([start.get(p.name, p.start) for p in parameters]), low + 1e-6, high - 1e-6)
    prior = np.clip(np.log([p.start for p in parameters]), low, high)
    trace: list[tuple[float, dict[str, float]]] = []

    def values(x: NDArray[np.float64]) -> dict[str, float]:
        return {p.name: float(math.exp(v)) for p, v in zip(parameters, x, strict=True)}

    latest: dict[bytes, NDArray[np.float64]] = {}  # where a step has ended, its slope begins

    def residuals_at(points: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """Of all of them at once, so that no core waits for another's simulation."""
        documents = [build(options, values(x)) for x in points]
        keys = [
            kept.keys(document, [(*t.simulation(document), t.point.first.phase, t.names) for t in targets], seed)
            for document in documents
        ]
        lacking: list[list[Target]] = []
        coming: set[str] = set()
        for of_one in keys:
            fresh = [t for t, key in zip(targets, of_one, strict=True) if key not in coming and kept.get(key) is None]
            lacking.append(fresh)
            coming.update(of_one)
        simulated = simulations.at(list(zip(documents, lacking, strict=True)), seed)
        found = []
        for x, of_one, answers in zip(points, keys, simulated, strict=True):
            new = iter(answers)
            printed = [known if (known := kept.get(key)) is not None else next(new) for key in of_one]
            parts = [(s - t.logs) / t.sigmas for s, t in zip(printed, targets, strict=True)]
            found.append(np.concatenate([*parts, (x - prior) / prior_sd]))
            trace.append((cost_of(found[-1]), values(x)))
            if answers:
                kept.put(of_one, structure, values(x), trace[-1][0], printed)
        return found

    def residuals(x: NDArray[np.float64]) -> NDArray[np.float64]:
        if x.tobytes() not in latest:
            found = residuals_at([x])
            latest.clear()
            latest[x.tobytes()] = found[0]
        return np.array(latest[x.tobytes()])  # some versions of SciPy scale what they get

    if not parameters:
        residuals(centre)
        return Fit(structure, options, parameters, {}, trace[-1][0], np.zeros((0, 0)), 1, trace)

    def slopes(x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Differences over steps that are wide enough to see something."""
        here = residuals(x)
        columns = np.zeros((len(x), len(here)))
        unclear = list(range(len(x)))
        for wider in (1, 2, 4):
            steps = {
                i: wider * SLOPE_STEP if x[i] + wider * SLOPE_STEP < high[i] else -wider * SLOPE_STEP for i in unclear
            }
            for (i, step), there in zip(
                steps.items(),
                residuals_at([x + step * (np.arange(len(x)) == i) for i, step in steps.items()]),
                strict=True,
            ):
                columns[i] = (there - here) / step
            unclear = [i for i, step in steps.items() if np.sqrt(np.mean((columns[i] * step) ** 2)) < CLEAR]
            if not unclear:
                break
        return np.transpose(columns)

    from scipy.stats import qmc  # half a second to import, and only this needs it

    # The search is local and the landscape is not: begin where the best of a few scattered starts is, or where another
    # structure was best.
    scattered = qmc.scale(qmc.Sobol(len(parameters), seed=seed).random(STARTS), -math.log(10), math.log(10))
    candidates = [centre, *np.clip(np.vstack([prior, prior + scattered]), low + 1e-6, high - 1e-6)]
    seen = residuals_at(candidates)
    nearest = int(np.argmin([cost_of(r) for r in seen]))
    first = candidates[nearest]
    latest[first.tobytes()] = seen[nearest]
    found = least_squares(
        residuals,
        first,
        jac=slopes,
        bounds=(low, high),
        loss="soft_l1",
        x_scale=1.0,
        max_nfev=STEPS,
        ftol=2e-3,
        xtol=2e-3,
    )
    cost, _ = min(trace, key=lambda entry: entry[0])
    best = next(v for c, v in trace if c == cost)
    # Misfit beyond the stated errors widens the parameters' uncertainty in proportion.
    jacobian = np.asarray(found.jac, np.float64)
    curvature = jacobian.T @ jacobian
    covariance = np.asarray(np.linalg.pinv(curvature), np.float64) * max(
        1.0, 2 * found.cost / max(1, found.fun.size - len(parameters))
    )
    return Fit(structure, options, parameters, best, cost, covariance, len(trace), trace)

# SPDX-License-Identifier: Apache-2.0
"""Forecasts: throughput and latency quantiles at a scale that was not measured, with intervals (docs/answers.md, `kind:
forecast`)."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.special import ndtri

from iocast import unmeasured, analytic, arrivals, baselines, binaries, draws, growth, limits_of, rules
from iocast.accuracy import QUANTILES
from iocast.calibrate.search import OVERLOADED, Simulations, only, remembers
from iocast.errors import InputError, RunError
from iocast.family import Beside, set_by_hand_to
from iocast.files import SCHEMA_VERSION, read_campaign, utc_now, write_json
from iocast.fitted import Fitted, discrepancy_at, one_of_several
from iocast.intervals import interval
from iocast.measured import about, is_called, measured, other_settings, speaks_of
from iocast.operations import MOVES_DATA, UNSOLVED, Shares, is_solved, iteration, phase_operations, profile
from iocast.phases import check_phase, first_phase, main_phases, operations_by_phase, phase_sentences, unit_entry
from iocast.platform import Document, dump
from iocast.platform_names import check_edits, check_file, idle_edit, speed_sentences, steps_of
from iocast.question import Question, Setting
from iocast.residuals import Residuals, kind_of
from iocast.run_directory import QUANTITIES, Run
from iocast.scratch import scratch_directory
from iocast.settings import settings_of
from iocast.text import quantity, rate_kind, too_wide
from iocast.total import total
from iocast.workers import Workers

SEEDS = 3
"""Replications of the best platform; their geometric mean is the forecast's value."""
PILED_UP = (
    "The work of others, which was fitted at smaller scales, is at this one more than the server of the best structure "
    "can do; the forecast is of those structures whose server can."
)
MORE_OBJECTS = 3.0
"""Times as many as at any fitted point, from which on a forecast says that what they fill may not be in it. Chosen by
hand: eight times as many take more than a third of ext4's rate (validation/real/waits.py)."""
PROBABILITIES = (
    0.0,
    *(n / 100 for n in range(1, 100)),
    *(round(1 - 10 ** (-2 - k / 20), 9) for k in range(1, 81)),
    1.0,
)
"""Probabilities at which a forecast states a distribution. The tail has many of them: where waits are rare but long,
most of the mean is in it."""
NEVER_CALIBRATED = "This platform was never calibrated: there are no intervals, and its numbers are its author's."
SET_BY_HAND = (
    "This platform's author set its numbers by hand to published measurements of {}; iocast did not fit them, so there "
    "are no intervals."
)
RATES_SHOW_NO_BOTTLENECK = f"{limits_of.NOT_KNOWN}rates alone do not show it."
NOTHING_SHARED = "visit nothing that client nodes share"
"""In iocast-sim's sentence about operations whose rates grow with the nodes without bound."""
SUM_OF_MACHINES = (
    "This is the sum of {} machines, each with storage of its own like that which was measured. Storage that these "
    "nodes share was not measured, and is not forecast here."
)
KEEPS_UP = 0.9
"""Share of the due operations below which an open loop falls behind."""
LONG = 10_000_000
"""Simulated operations from which on one replication of the best platform is enough."""


def predict(
    platform: Fitted,
    workload: str | None,
    settings: dict[str, str],
    nodes: int,
    ranks_per_node: int | None = None,
    *,
    phase: str | None = None,
    solver: str | None = None,
    level: float = 0.9,
    seed: int = 0,
    label: str = "",
    workers: Workers | None = None,
) -> dict[str, Any]:
    """A forecast. Settings that are not given are those of the calibration; so is the workload when it is None, and the
    ranks a node are those of the largest measurement. Without `phase` it is of the phases that were fitted, or of
    another workload's phases but set-up and clean-up: the one that stands for the workload, and the others under
    `further_phases`. Without `solver` a platform is simulated, but one that was fitted to rates alone, which is simple
    enough, solved. `workers` simulate all but the first run, by default all cores of this machine.

    @raises InputError from the programs, with their sentences; a phase that the workload lacks is refused before
    anything is simulated"""
    names = [phase] if phase else platform.phases
    if (
        len(platform.phases) > 1
        and is_called(platform.fitted, workload)
        and all(name in platform.phases for name in names)
    ):
        more: dict[str, Any] = {"solver": solver, "level": level, "seed": seed, "label": label, "workers": workers}
        return _joined(
            [
                predict(platform.for_phase(name), workload, settings, nodes, ranks_per_node, phase=name, **more)
                for name in names
            ]
        )
    solver = solver or ("analytic" if platform.rates_alone else "simulate")
    if solver not in ("simulate", "analytic"):
        raise InputError(f"There is no solver '{solver}'. Allowed: simulate, analytic.")
    if not 0 < level < 1:
        raise InputError(f"The level {level:g} is no probability between 0 and 1.")
    assumed_ranks = ranks_per_node is None
    ranks_per_node = ranks_per_node_of(platform) if ranks_per_node is None else ranks_per_node
    if nodes < 1 or ranks_per_node < 1:
        raise InputError(f"{nodes} nodes with {ranks_per_node} ranks each are no place to run; both are at least 1.")
    platform.require_nodes(nodes)
    check_file(platform)
    check_edits(platform)
    as_measured = platform.rates_alone and is_called(platform.fitted, workload)
    if platform.rates_alone and not as_measured:
        raise InputError(
            f"The platform was fitted to rates of the phase {platform.phase} alone; what operations of {workload} take "
            f"is not known. Calibrate with results of {workload}, or a family with latencies (iocast list platforms)."
        )
    if as_measured:
        requested = _measured(platform, settings, solver, phase)
    else:
        requested = workload_of(platform, workload, settings, phase, nodes, ranks_per_node)
    if solver == "analytic":
        arrivals.refuse_in_analytic(requested.settings)
    place = (nodes, ranks_per_node)
    with Simulations(workers, platform.file) as simulations:
        if as_measured:
            found = _grown_rates(platform, requested, *place, level)
        elif solver == "simulate":
            found = _simulated(simulations, platform, requested, *place, seed)
        else:
            found = _solved(simulations, platform, requested, *place)
    ranks = round(nodes * ranks_per_node)  # unlike nodes have a mean that is no whole number
    factor = float(requested.settings.get("waiting_factor", 0))
    answer: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "kind": "forecast",
        "label": label or platform.file.stem,
    }
    answer["platform"] = {
        "name": platform.file.stem,
        "file": str(platform.file),
        "content_hash": platform.content_hash(),
        "edits": {**_overlay_edits(platform), **{path: value for path, value in platform.edits}},
    }
    answer["made_at"] = utc_now()
    answer["workload"] = {
        "name": workload or requested.pattern,
        "pattern": next(iter(found.values()))[1]["workload"]["pattern"],
        "parameters": requested.settings,
    }
    answer["placement"] = {"ranks": ranks, "nodes": nodes, "ranks_per_node": ranks_per_node}
    answer |= {"ranks_per_node_assumed": assumed_ranks, "solver": solver, "level": level, "waiting_factor": factor}
    largest = max(platform.fitted.get("campaign", {}).get("ranks", [ranks]))
    answer["extrapolation"] = ranks / largest
    main = requested.main(found)
    closed = not arrivals.is_open(requested.settings)  # the baselines know nothing else
    document = {}
    questions: dict[str, Question] = {}
    for name, (samples, shown) in found.items():
        question = Question.of(shown.pop("workload"), answer["placement"], name, settings_known=not as_measured)
        questions[name] = question
        missed = _missed(platform, question, samples["value"])
        doubt = _doubt(platform, question, samples["value"])
        shares = shown.pop("shares")
        rests = unmeasured.unmeasured(platform, shares.share, question)
        known = {} if rests else platform.fitted
        quantities = samples.get("quantities") or _intervals(known, samples, missed, ranks, level, doubt)
        blend_sentence = bounded = None
        applied = None
        if closed and not rests and not platform.rates_alone:
            applied = rules.Rules.of(platform.fitted, question)
        if applied is not None and platform.edited:
            plain = predict(
                platform.as_measured(), workload, settings, nodes, ranks_per_node, phase=name, solver=solver,
                level=level, seed=seed, workers=workers,
            )  # fmt: skip
            changes = rules.changes_of(plain["quantities"] | plain["parts"])
            quantities = rules.changed(quantities, changes)
            blend_sentence = applied.text
            bounded = EDITED_BELOW.format(100 * (1 - changes["rate"])) if plain["bounded"] else None
        elif applied is not None:
            quantities, bounded = applied.apply(quantities, level)
            blend_sentence = applied.text
        missed = {
            key: math.log(samples["value"][key] / printed["value"]) if "calibrated" in printed else missed.get(key, 0.0)
            for key, printed in quantities.items()
        }
        one: dict[str, Any] = {"phase": name, "blend": blend_sentence, "bounded": bounded}
        one["question"] = question.document()
        one["quantities"] = {key: printed for key, printed in quantities.items() if not _is_part(key)}
        one["parts"] = {key: printed for key, printed in quantities.items() if _is_part(key)}
        one["rests_on"] = rests
        one["operations"] = _operations(shares, quantities["rate"])
        one["seconds"] = _phase_seconds(shares, quantities["rate"]) if shown.pop("lasting", True) else None
        one["repeats"] = shares.repeats
        line = rules.line_of(platform.fitted, question) if closed else []
        one["baselines"] = _baselines(line, question, list(samples["value"]))
        one["rule"] = _best_rule(line)
        document[name] = (
            one
            | shown
            | {"distributions": {op: _shifted(printed, missed, op) for op, printed in shown["distributions"].items()}}
        )
    answer |= document.pop(main)
    answer["further_phases"] = list(document.values())
    samples = found[main][0]
    answer["total_operations"] = samples.get("total")
    answer["course"] = samples.get("course", [])
    beside = samples.get("beside")
    if beside is not None:
        for one in (answer, *answer["further_phases"]):
            one["family"] = beside.document(one["phase"], one["quantities"])
    answer["total"] = total([answer, *answer["further_phases"]])
    answer["draws"] = samples.get("draws") or {"used": 0, "of": 0, "how": ""}
    answer["alternatives"] = [
        {"structure": a["structure"], "weight": a["weight"]}
        for a in platform.fitted.get("alternatives", [])
        if a["weight"] > 0.01
    ]
    rests = {op: paths for one in (answer, *answer["further_phases"]) for op, paths in one["rests_on"].items()}
    answer["parting"] = [] if answer["rests_on"] else _parting(samples, platform.fitted)
    if answer["rests_on"]:
        answer["draws"] |= {"used": 0}
    unsettled = _falls_behind(requested.settings, ranks, [answer, *answer["further_phases"]])
    unsettled += answer.pop("unmeasured", []) + ([] if samples.get("settles", True) else [PILED_UP])
    unsettled += [unmeasured.sentence(rests)] if rests else []
    unsettled += [_parted(one) for one in answer["parting"]]
    if answer["parting"]:
        from iocast.plan import Place, next_runs, telling  # which asks forecasts, too

        best = telling(next_runs(platform, Place(nodes, ranks_per_node, factor), seed=seed, workers=workers)[1])
        answer["next"] = [one.document() for one in best]
        unsettled += [f"The measurement that would tell most: {best[0].text}."] if best else []
    unsettled += [
        text
        for key in ("blend", "bounded")
        for text in dict.fromkeys(one.get(key) for one in (answer, *answer["further_phases"]))
        if text
    ]
    answer["warnings"] = (
        unsettled
        + requested.warnings
        + _warnings(platform, ranks, largest, factor)
        + _other_placement(platform, nodes, ranks_per_node)
        + list(filter(None, (other_settings(platform.fitted, question) for question in questions.values())))
    )
    if platform.fitted and nodes > 1 and any(NOTHING_SHARED in text for text in answer["warnings"]):
        answer["warnings"].insert(0, SUM_OF_MACHINES.format(nodes))
    answer["warnings"] += _one_of_several(platform, workload, phase) + _other_phases(platform, workload, found)
    answer["warnings"] += _outside_bounds([answer, *answer["further_phases"]])
    answer["warnings"] += _more_objects(platform, samples.get("peak_objects"))
    answer["basis"] = [] if platform.fitted else [_without_calibration(platform)]
    rows = [answer, *answer["further_phases"]]
    answer["basis"] += dict.fromkeys(text for one in rows for text in one.get("left_out", []))
    moved = dict.fromkeys(op for one in rows for op, row in one["operations"].items() if "bytes_each" in row)
    if moved:
        answer["basis"] += speed_sentences(resolved(platform.best(), platform.file), moved)
    answer["basis"] += beside.sentences(answer["workload"]["name"]) if beside is not None else []
    if speaks_of(platform.fitted, questions[main]):
        if closed:
            answer["warnings"] += _measured_there(platform, answer, questions[main])
        answer["warnings"] += _far_off_where_checked(about(platform.fitted, questions[main]), answer["rule"])
        answer["warnings"] += _beyond_observed(platform, answer["quantities"]["rate"], nodes)
    return answer


def _refuse_idle_edits(platform: Fitted, operations: Iterable[str]) -> None:
    """@raises InputError for an edit of a part that none of a workload's operations uses"""
    used = dict.fromkeys(operations)
    for path, value in platform.edits:
        if why := idle_edit(path, resolved(platform.best(), platform.file), used):
            raise InputError(f"--edit {path}={value}: {why}")


def _without_calibration(platform: Fitted) -> str:
    """Whose numbers those of a platform are that iocast did not fit."""
    by = None if platform.edited else set_by_hand_to(platform)
    return SET_BY_HAND.format(by) if by else NEVER_CALIBRATED


EDITED_BELOW = (
    "The forecast of the measured system is {:.0f} % below the calibrated platform's, at what a closed system's "
    "concave growth allows; this one of an edited system is changed by the same factor, and its latencies by Little's "
    "law."
)
OF_A_PHASE = (
    "phase",
    "question",
    "quantities",
    "parts",
    "operations",
    "seconds",
    "repeats",
    "baselines",
    "rule",
    "distributions",
    "stations",
    "bottleneck",
    "links",
    "left_out",
    "timeline",
    "balance",
    "growth",
    "blend",
    "bounded",
)
"""Keys of a forecast that are of its phase."""


def _joined(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Forecasts of several phases as the first one with the others under `further_phases`; warnings and sentences of
    the basis that not all of them have name their phase."""
    joined = answers[0] | {
        "further_phases": [{key: one[key] for key in OF_A_PHASE if key in one} for one in answers[1:]],
        "total": total(answers),
    }
    for key in ("warnings", "basis"):
        having: dict[str, list[str]] = {}
        for one in answers:
            for text in one[key]:
                having.setdefault(text, []).append(one["phase"])
        joined[key] = [
            text if len(phases) == len(answers) else f"{', '.join(phases)}: {text}" for text, phases in having.items()
        ]
    return joined


def predict_planned(
    platform: Fitted,
    campaign: Path,
    out: Path,
    *,
    phase: str | None = None,
    solver: str | None = None,
    level: float = 0.9,
    seed: int = 0,
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A forecast of each point of a campaign that is planned and not measured yet, written to `out` before anybody can
    measure it.

    @raises InputError when there is none"""
    planned = {
        (run["nodes"], run["ranks_per_node"], json.dumps(run["settings"])): run
        for run in read_campaign(campaign, planned=True)["points"]
        if run["status"] == "planned"
    }
    if not planned:
        raise InputError(f"Every point of the campaign '{campaign}' is measured already; iocast validate compares.")
    for run in planned.values():
        settings = {name: str(value) for name, value in run["settings"].items()}
        label = run["name"].rsplit("-r", 1)[0]
        answer = predict(
            platform,
            None,
            settings,
            run["nodes"],
            run["ranks_per_node"],
            phase=phase,
            solver=solver,
            level=level,
            seed=seed,
            label=label,
        )
        path = out / f"{answer['label']}.json"
        write_json(path, answer)
        yield path, answer


def _overlay_edits(platform: Fitted) -> dict[str, Any]:
    """The overlays' settings by dotted path."""

    def flatten(prefix: str, node: Any) -> dict[str, Any]:
        if isinstance(node, dict) and "law" not in node:
            return {
                k: v
                for key, value in node.items()
                for k, v in flatten(f"{prefix}.{key}" if prefix else key, value).items()
            }
        return {prefix: node}

    skipped = ("extends", "schema_version", "description", "source")
    return {
        k: v
        for overlay in platform.documents[1:]
        for k, v in flatten("", {a: b for a, b in overlay.items() if a not in skipped}).items()
    }


@dataclass
class Request:
    """A workload as it is simulated or solved: pattern or workload file, settings, and the phases that the forecast is
    of. `wanted`: the phase that was named."""

    pattern: str
    settings: dict[str, str]
    phases: list[str]
    wanted: str | None = None
    warnings: list[str] = field(default_factory=list)

    def main(self, found: Mapping[str, tuple[dict[str, Any], dict[str, Any]]]) -> str:
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
) -> Request:
    """The workload that a forecast is of, its settings and phases: those that were fitted, or another workload's but
    set-up and clean-up.

    @raises InputError for settings or a phase that the workload doesn't have; nothing is simulated for that"""
    measured = platform.fitted.get("campaign", {}).get("workload")
    if not is_called(platform.fitted, workload):
        pattern, full, default = workload or "md-workbench", dict(settings), None
    else:
        skipped = ("waiting_factor", "repeats", "start_index", "phases")
        full = {name: value for name, value in settings_of(measured).items() if name not in skipped}
        pattern, full, default = measured["pattern"], full | settings, platform.phase
    names = list(
        dict.fromkeys(p["name"] for p in binaries.resolve_workload(pattern, full, nodes, ranks_per_node)["phases"])
    )
    if phase or default:
        check_phase(
            str(phase or default), names, pattern, lambda: phase_operations(pattern, full, nodes, ranks_per_node)
        )
    phases = [str(phase or default)] if phase or default else main_phases(names)
    remembering = any(remembers(document) for document in (platform.best(), *platform.draws()))
    return Request(pattern, only(phases, pattern, remembering) | full, phases, phase)


def _measured(platform: Fitted, settings: dict[str, str], solver: str, phase: str | None) -> Request:
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
    unknown = [name for name in settings if name not in ("waiting_factor", "working_set")]
    if unknown:
        raise InputError(
            f"The platform was fitted to rates alone; what {unknown[0]} does to them is not known. "
            "Allowed: waiting_factor, working_set."
        )
    return Request(platform.fitted["campaign"]["workload"]["pattern"], settings, [platform.phase], phase)


def ranks_per_node_of(platform: Fitted) -> int:
    """Ranks a node of the largest measurement that the platform was fitted to, whole ones also where nodes had unlike
    numbers; 1 for one that was never calibrated."""
    points = platform.fitted.get("campaign", {}).get("points", [])
    return max(((p["ranks"], max(1, int(p["ranks"] / p["nodes"]))) for p in points if p.get("nodes")), default=(1, 1))[
        1
    ]


@lru_cache(maxsize=64)
def _resolved(text: str, about: str) -> Any:
    with Simulations(about=about) as simulations:
        return binaries.resolve_platform(simulations.write(yaml.safe_load(text)))


def resolved(document: Document, about: str | Path = "") -> Any:
    """The platform as the analytic solver takes it; whoever asks for several placements asks for the same ones again.
    `about`: its name in errors."""
    return _resolved(dump(document), str(about))


Found = dict[str, tuple[dict[str, Any], dict[str, Any]]]
"""By phase: log quantities of the best platform and of the draws (`value`, `ensemble`, ...), and what else is shown of
it."""


def _grown_rates(platform: Fitted, request: Request, nodes: int, ranks_per_node: int, level: float) -> Found:
    """The rate by the curves of growth (iocast/growth.py), for a platform fitted to rates alone. An edit multiplies it
    by what it changes in each of the fitted networks, which one solver solves with and without the edit."""
    factor, working_set = float(request.settings.get("waiting_factor", 0)), request.settings.get("working_set")
    campaign = platform.fitted["campaign"]
    measured = growth.measured_in(campaign)
    target = growth.Placement(nodes, ranks_per_node / (1 + factor))
    found = growth.forecast(measured, target, operations=campaign.get("unit", "operations") == "operations")
    changes, stations = [0.0], {}
    if platform.edited:
        edited, plain = (
            [
                analytic.solve(
                    resolved(document, platform.file), {"stat": 1.0}, nodes, ranks_per_node, factor, 1, points=64
                )
                for document in one.draws()
            ]
            for one in (platform, platform.as_measured())
        )
        changes = [math.log(new.rate / old.rate) for new, old in zip(edited, plain, strict=True)]
        stations = {
            name: {"utilisation": u}
            for name, u in edited[int(np.argsort(changes)[len(changes) // 2])].utilisation.items()
        }
    value = found.value + float(np.median(changes))
    low, high = _shifted_interval(found, changes, level)
    quantities: dict[str, Any] = {
        "rate": {"value": math.exp(value), "low": math.exp(low), "high": math.exp(high), "model": math.exp(value)}
        | unit_entry(campaign.get("unit"))
    }
    unmeasured, unknown = _beyond_the_machine(campaign, nodes, ranks_per_node, working_set)
    if unmeasured:
        quantities["rate"] |= {"low": None, "high": None}
    workload = campaign["workload"] | {"parameters": campaign["workload"]["parameters"] | {"waiting_factor": factor}}
    shown: dict[str, Any] = {"workload": workload, "shares": Shares(1.0, {}, {})}
    shown |= {
        "distributions": {},
        "stations": stations,
        "bottleneck": limits_of.sentences(stations, RATES_SHOW_NO_BOTTLENECK) if stations else RATES_SHOW_NO_BOTTLENECK,
    }
    shown["unmeasured"] = unmeasured + unknown
    shown["growth"] = {"falls": found.falls, "text": _growth_text(found, measured, nodes * ranks_per_node)}
    samples = {"value": {"rate": math.exp(value)}, "ensemble": {"rate": [math.exp(value)]}, "quantities": quantities}
    return {platform.phase: (samples, shown)}


def _shifted_interval(found: growth.Forecast, changes: list[float], level: float) -> tuple[float, float]:
    """The interval of growth's forecast plus one of `changes`, each as likely as the others; logarithms."""
    if len(set(changes)) == 1:
        low, high = found.interval(level)
        return low + changes[0], high + changes[0]
    grid = np.array([found.quantile(p) for p in (np.arange(500) + 0.5) / 500])
    low, high = np.quantile(np.add.outer(grid, changes), growth.tails(level))
    return float(low), float(high)


def _beyond_the_machine(
    campaign: dict[str, Any], nodes: int, ranks_per_node: int, working_set: str | None
) -> tuple[list[str], list[str]]:
    """Of a single machine: sentences on what the question has and no measurement had, more ranks than cores or a
    working set beyond the memory, for which no interval is known; and on what can't be judged because cores or memory
    are not known."""
    points = campaign["points"]
    if nodes > 1 or any(p["nodes"] > 1 for p in points):
        return [], []
    machine = campaign.get("environment") or {}
    unmeasured, unknown = [], []
    cores, most = machine.get("cpus_per_node"), max(p["ranks"] for p in points)
    if cores is None and ranks_per_node > most:
        unknown.append(
            "How many cores the machine has is not known (column cores of a table). Beyond them, this interval holds "
            "less often than it says."
        )
    elif cores is not None and ranks_per_node > cores >= most:
        unmeasured.append(
            f"{ranks_per_node} ranks on {cores} cores: no measurement had more ranks than cores, so that no interval "
            "is known."
        )
    memory = machine.get("memory_bytes")
    sets = [(p["working_set"], p["ranks"]) for p in points if p.get("working_set")]
    target = (
        _bytes_of(working_set)
        if working_set
        else max((size / ranks * ranks_per_node for size, ranks in sets), default=None)
    )
    if memory is not None and target is not None and target > memory and all(size <= memory for size, _ in sets):
        unmeasured.append(
            f"A working set of {target / 2**30:.3g} GiB with {memory / 2**30:.3g} GiB of memory: no measurement had "
            "more than the memory holds, so that no interval is known."
        )
    return unmeasured, unknown


def _bytes_of(setting: str) -> float:
    number = Setting.read(setting).number
    if number is None or number <= 0:
        raise InputError(f"The working set is '{setting}'; it must be a number of bytes, such as 64GiB.")
    return number


def _growth_text(found: growth.Forecast, measured: list[growth.Measured], ranks: int) -> str:
    if found.falls is None:
        return "Growth was not measured: the forecast follows other systems whose operations take as long."
    most = measured[growth.largest(measured)]
    return (
        f"{100 * found.falls:.0f} % of the curves that explain the measurements fall below {100 * growth.FALL:.0f} % "
        f"of the rate at {most.nodes} nodes until {ranks} ranks."
    )


def _operations(shares: Shares, rate: dict[str, Any]) -> dict[str, Any]:
    """Of each operation its share, rate, and where it moves data bytes of one and bytes a second; intervals are the
    whole rate's, times its share."""

    def scaled(factor: float) -> dict[str, Any]:
        return {end: None if rate[end] is None else factor * rate[end] for end in ("value", "low", "high")}

    answer: dict[str, Any] = {}
    for op, share in shares.share.items():
        answer[op] = {"share": share, "rate": scaled(share)}
        if each := shares.bytes_each.get(op):
            answer[op] |= {"bytes_each": each, "bytes_per_second": scaled(share * each)}
    return answer


def _phase_seconds(shares: Shares, rate: dict[str, Any]) -> dict[str, Any] | None:
    """How long the phase lasts at this rate; None where its number of operations isn't known."""
    if not shares.share:
        return None
    ends = {"value": "value", "low": "high", "high": "low"}
    return {end: shares.operations / rate[other] if rate[other] else None for end, other in ends.items()}


def _simulated(
    simulations: Simulations, platform: Fitted, request: Request, nodes: int, ranks_per_node: int, seed: int
) -> Found:
    """Log quantities of the best platform and of the draws; and what else the first simulation shows."""
    documents = [platform.best(), *platform.draws()]
    best, first, distributions, settles = _first_that_settles(
        simulations, documents, request, nodes, ranks_per_node, seed
    )
    _refuse_idle_edits(platform, [op for p in first["phases"] for op in p["by_operation"]])
    seeds = 1 if sum(p["operations"] for p in first["phases"]) > LONG else SEEDS
    question = (request.pattern, request.settings, nodes, ranks_per_node)
    centre = [first, *simulations.run([(best, *question, seed + s) for s in range(1, seeds)])]
    all_repeats = {phase: [p for p in first["phases"] if p["name"] == phase] for phase in distributions}
    names = {phase: _names_of(centre, phase) for phase in all_repeats}
    every = [(p, n) for p, of in names.items() for n in of]
    known = [draws.known_quantities(run, every) for run in centre]
    values = {key: math.exp(np.mean([math.log(one[key]) for one in known if key in one])) for key in every}

    def solver() -> draws.Solve:
        solution = _Solver(simulations, best, request, nodes, ranks_per_node)
        if set(solution.phases) != set(names):
            raise InputError(f"Some phases of the workload {request.pattern} have no solution.")
        return lambda document: {
            (phase, n): v
            for phase in names
            for n, v in solution.quantities(phase, solution.solve(phase, document)).items()
        }

    document = documents[0] if settles else yaml.safe_load(best.read_text())

    def ask(system: Document) -> draws.Values:
        """One simulation, which may be shorter."""
        settings = draws.shorter(request.settings, first) or request.settings
        file = simulations.write(system)
        (run,) = simulations.run([(file, request.pattern, settings, nodes, ranks_per_node, seed)])
        return draws.known_quantities(run, [(p, n) for p, n in every if not _is_part(n)])

    beside = Beside.of(platform, ask) if not platform.fitted else None
    reported = draws.ask(simulations, documents[1:], best, document, values, first, question, seed, solver)
    settled = [one for one in reported.values if one is not None]
    request.warnings += _too_rare([*known, *settled], every)
    structures = platform.fitted.get("draw_structures") or [{}] * len(reported.values)
    settled_structures = [
        structure for structure, one in zip(structures, reported.values, strict=True) if one is not None
    ]
    found: Found = {}
    for phase, repeats in all_repeats.items():
        ensemble = {n: [one[phase, n] for one in settled if (phase, n) in one] for n in names[phase]}
        value = middle_of(
            platform.fitted,
            platform.undecided,
            {n: values[phase, n] for n in names[phase]},
            ensemble,
            settled_structures,
            settles,
        )
        shown = {"workload": first["workload"], "shares": Shares.of(repeats), "distributions": distributions[phase]}
        system = resolved(document, platform.file)
        stations = _stations(repeats[-1], system)
        limiting = limits_of.text(repeats[-1], stations, system, nodes, nodes * ranks_per_node)
        shown |= {"stations": stations, "bottleneck": limits_of.sentences(stations, limiting)}
        shown["links"] = limits_of.capacity_text(repeats[-1], system, nodes)
        shown["timeline"] = _timeline(repeats[-1])
        shown["balance"] = _balance(
            [p["balance"] for run in (reported.runs or centre) for p in run["phases"] if p["name"] == phase]
        )
        samples = {
            "value": value,
            "ensemble": ensemble,
            "settles": settles,
            "structures": settled_structures,
            "peak_objects": first["peak_objects"],
            "total": sum(p["operations"] for p in first["phases"]),
            "course": _course(first["phases"], request.phases),
            "draws": reported.document(),
            "beside": beside,
        }
        found[phase] = (samples, shown)
    return found


def calibrated_values(
    simulations: Simulations, platform: Fitted, settings: dict[str, str], nodes: int, ranks_per_node: int, seed: int
) -> dict[str, tuple[float, list[float]]]:
    """The forecast of a calibrated platform alone, of the phase that it was fitted to, before simple rules and ceiling:
    by quantity its value, and that of each draw.

    @raises RunError where work of others piles up in all draws"""
    requested = workload_of(platform, None, settings, None, nodes, ranks_per_node)
    samples, shown = _simulated(simulations, platform, requested, nodes, ranks_per_node, seed)[platform.phase]
    place = {"ranks": round(nodes * ranks_per_node), "nodes": nodes, "ranks_per_node": ranks_per_node}
    missed = _missed(platform, Question.of(shown["workload"], place, platform.phase), samples["value"])
    return {
        name: (value * math.exp(-missed[name]), samples["ensemble"][name]) for name, value in samples["value"].items()
    }


def _names_of(runs: Sequence[Any], phase: str) -> list[str]:
    """The quantities of a phase that some of these runs have: of a random mix one alone may lack the rarest
    operations."""
    rows = [p["latency"] for run in runs for p in run["phases"] if p["name"] == phase]
    operations = dict.fromkeys(op for latency in rows for op, printed in latency.items() if printed["count"])
    return ["rate", *(f"{op}.{q}" for op in operations for q in QUANTITIES)]


def _too_rare(known: Sequence[draws.Values], every: Sequence[tuple[str, str]]) -> list[str]:
    """Of operations of a random mix that some simulated runs lack. known: what each has, first the one whose operations
    are counted."""
    unknown = ", and its share and distribution are not known"
    lacking = {(p, n.partition(".")[0]): sum((p, n) not in one for one in known) for p, n in every}
    return [
        f"{op} is so rare in the phase '{phase}' that {runs} of {len(known)} simulated runs lack it: its latencies "
        "rest on the others"
        + unknown * (not known[0].keys() & {(phase, f"{op}.q50")})
        + ". A longer run has more of them."
        for (phase, op), runs in lacking.items()
        if runs
    ]


TIE = 0.75
"""Share of the draws from which on one option of a choice is the answer."""


def middle_of(
    fitted: dict[str, Any],
    undecided: bool,
    value: dict[str, float],
    ensemble: dict[str, list[float]],
    structures: Sequence[Mapping[str, str]],
    settles: bool = True,
) -> dict[str, float]:
    """The forecast's values: those of the best platform. Where options tie that answer differently, their geometric
    mean by the draws, so that which of them is the best doesn't decide. Where structures tie otherwise, or work of
    others piles up in the best platform, the median of the draws."""
    if not any(ensemble.values()):
        return value
    middle: Callable[[np.ndarray], Any]
    if _tied(ensemble, structures, fitted):
        middle = np.mean
    elif not settles or undecided:
        middle = np.median
    else:
        return value
    return {
        name: float(np.exp(middle(np.log(np.maximum(printed, 1e-9))))) if printed else value[name]
        for name, printed in ensemble.items()
    }


def _tied(ensemble: dict[str, list[float]], structures: Sequence[Mapping[str, str]], fitted: dict[str, Any]) -> bool:
    """Whether of a choice whose options say different throughputs none has most of the draws (TIE)."""
    parting = {one["choice"] for one in _parting({"ensemble": ensemble, "structures": structures}, fitted)}
    return bool(parting & tied_choices(structures))


def tied_choices(structures: Sequence[Mapping[str, str]]) -> set[str]:
    """Choices of which no option has most of the draws (TIE)."""
    return {
        choice
        for choice in (structures[0] if structures else ())
        if max(Counter(one[choice] for one in structures).values()) < TIE * len(structures)
    }


def _is_part(name: str) -> bool:
    """ "create.open.q50", and not "create.q50" or "create.response.q50"."""
    op = name.rpartition(".")[0]
    return "." in op and not op.endswith(".response")


def _timeline(phase: dict[str, Any]) -> dict[str, Any]:
    """Throughput over the phase's time: operations a second that ended within each bin."""
    bins = phase["timeline"]
    counts = [one["count"] for name, one in bins.items() if name != "bin_seconds"]
    width = bins["bin_seconds"]
    return {"bin_seconds": width, "rate": [sum(column) / width for column in zip_longest(*counts, fillvalue=0)]}


def _course(phases: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """Every repeat of the forecast's phases in order: when it begins, in seconds since the first one began, how long it
    lasts, and its operations and bytes a second. In the first simulated run."""
    rows = [p for p in phases if p["name"] in names]
    return [
        {
            "phase": p["name"],
            "repeat": p["repeat"],
            "start": p["start_seconds"] - rows[0]["start_seconds"],
            "seconds": p["seconds"],
            "rate": p["rate"],
            "bytes_per_second": sum(one.get("bytes_per_second", 0.0) for one in p["by_operation"].values()),
        }
        for p in rows
    ]


def _balance(rows: list[float]) -> dict[str, float]:
    """First rank's end over the last one's (docs/run-directory.md): median and the middle nine tenths of the simulated
    runs. No error of the model's is in it."""
    low, value, high = np.quantile(rows, [0.05, 0.5, 0.95])
    return {"value": float(value), "low": float(low), "high": float(high)}


def _first_that_settles(
    simulations: Simulations, documents: list[Document], request: Request, nodes: int, ranks_per_node: int, seed: int
) -> tuple[Path, Any, dict[str, Any], bool]:
    """The first run of the best platform, or where work of others piles up in it without end, of the first draw in
    which it doesn't: its file, the run, its distributions by phase, and whether it is the best one's.

    @raises RunError when it piles up in all of them"""
    for number, document in enumerate(documents):
        file = simulations.write(document)
        try:
            return file, *_first_run(file, request, nodes, ranks_per_node, seed), number == 0
        except RunError as error:
            if error.code != OVERLOADED or number + 1 == len(documents):
                raise
    raise AssertionError("there is always a best platform")


def _first_run(
    platform: Path, request: Request, nodes: int, ranks_per_node: int, seed: int
) -> tuple[Any, dict[str, Any]]:
    with scratch_directory("forecast") as scratch:
        out = scratch / "run"
        command = [
            binaries.find("iocast-sim"),
            "--json",
            "--platform",
            str(platform),
            "--workload",
            request.pattern,
            "--seed",
            str(seed),
        ]
        command += ["--nodes", str(nodes), "--ppn", str(round(ranks_per_node)), "--out", str(out)]
        for name, value in request.settings.items():
            command += ["--set", f"{name}={value}"]
        first = binaries.run_json(command)
        timed = _timed(first["phases"], request, platform)
        present = request.present(timed)
        request.warnings += _limits(first, present, platform)
        distributions = {}
        for phase in present:
            run = Run(out, phase)
            distributions[phase] = {
                op: {
                    "probability": list(PROBABILITIES),
                    "seconds": [run.latencies(op).quantile(p) for p in PROBABILITIES],
                }
                for op in run.operations
            }
    return first, distributions


def _timed(phases: list[dict[str, Any]], wanted: Request, platform: Path) -> dict[str, float]:
    """Operations by phase of a run, of those that take time. @raises InputError when no phase of the forecast does"""
    operations = operations_by_phase(phases)
    seconds = {name: sum(p["seconds"] for p in phases if p["name"] == name) for name in operations}
    present = [name for name in wanted.phases if operations.get(name)]
    instant = [name for name in present if not seconds[name]]
    _leave_out(instant, len(instant) < len(present), wanted, platform)
    return {name: count if seconds[name] else 0 for name, count in operations.items()}


def _leave_out(instant: list[str], others: bool, wanted: Request, platform: Path) -> None:
    """Phases whose operations take no time. @raises InputError when there are no others"""
    if not instant:
        return
    name = Path(binaries.known_as.get(str(platform), platform)).stem
    sentence = (
        f"On the platform '{name}' no operation of {' and '.join(instant)} takes any time, so that there is no rate to "
        "forecast; give their routes a station or a delay."
    )
    if not others:
        raise InputError(sentence)
    wanted.warnings.append(sentence)


def _limits(run: Any, phases: list[str], platform: Path) -> list[str]:
    """Limits of the platform's model in these phases (docs/run-directory.md, `model_limits`), under its name."""
    limits = run.get("model_limits") or {"sentences": [], "findings": []}
    others = {one["phase"] for one in limits["findings"] if "phase" in one} - set(phases)
    here = {one["kind"] for one in limits["findings"] if one.get("phase") not in others}
    found = [one for one in limits["sentences"] if not any(f"n the phase '{name}'" in one for name in others)]
    if "no-server" not in here:
        found = [one for one in found if NOTHING_SHARED not in one]
    name = Path(binaries.known_as.get(str(platform), platform)).stem
    return [one.replace(f"'{platform.stem}'", f"'{name}'") for one in found]


class _Solver:
    """The analytic solver for the phases of a workload that it has a model for: `phases`; `unsolved` are the others."""

    def __init__(
        self, simulations: Simulations, platform: Path, request: Request, nodes: int, ranks_per_node: int
    ) -> None:
        """@raises InputError when it has a model for no phase"""
        self.simulations = simulations
        known = profile(request.pattern, request.settings, nodes, ranks_per_node)
        self.workload, self.given, self.known = known["workload"], known["given"], known["phases"]
        present = request.present({name: sum(of["operations"].values()) for name, of in self.known.items()})
        self.unsolved = [name for name in present if not is_solved(self.known[name])]
        self.phases = [name for name in present if name not in self.unsolved]
        if not self.phases:
            raise InputError(
                f"The workload {request.pattern} has ranks that {UNSOLVED}; of such the analytic "
                "solver knows nothing. Use --solver simulate."
            )

    def solve(self, phase: str, document: Document) -> Any:
        of = self.known[phase]
        nodes, ranks_per_node = of["place"]
        return analytic.solve(
            resolved(document), iteration(of["operations"]), nodes, ranks_per_node,
            float(self.given.get("waiting_factor", 0)), round(sum(of["operations"].values())),
            size=of["bytes"], blocks=of["blocks"], datasets=of["datasets"], objects=of["objects"],
            think_time=float(self.given.get("think_time", 0)), unlike_ranks=of["unlike"],
        )  # fmt: skip

    def quantities(self, phase: str, solution: Any) -> dict[str, float]:
        return {"rate": solution.rate} | {
            f"{op}.{q}": values[q] for op, values in solution.quantiles.items() for q in QUANTITIES
        }

    def first_cut(self, rates: Mapping[str, float]) -> str | None:
        """The first phase that its time limit may end: it lasts longer at its rate, or that is not known."""
        for name in self.known:
            rate, limit = rates.get(name), self.known[name]["most_seconds"]
            if limit > 0 and (rate is None or sum(self.known[name]["operations"].values()) > limit * rate):
                return str(name)
        return None

    def is_cut(self, phase: str, cut: str | None) -> bool:
        """Whether the phase is `cut`, the first that a time limit ends, or comes after it."""
        names = list(self.known)
        return cut is not None and names.index(phase) >= names.index(cut)

    def shares(self, phase: str) -> Shares:
        of = self.known[phase]
        count = {op: of["repeats"] * n for op, n in of["operations"].items()}
        moved = {op: of["bytes"][op] * count[op] for op in MOVES_DATA if op in count}
        return Shares.of_counts(count, moved, of["repeats"])


def _solved(simulations: Simulations, platform: Fitted, request: Request, nodes: int, ranks_per_node: int) -> Found:
    """The same by the analytic solver. Phases that it has no model for are left out with a warning, or refused when no
    other is there."""
    file = simulations.write(platform.best())
    solver = _Solver(simulations, file, request, nodes, ranks_per_node)
    _refuse_idle_edits(platform, [op for one in solver.known.values() for op in one["operations"]])
    if solver.unsolved:
        request.warnings.append(
            f"In {', '.join(solver.unsolved)} ranks {UNSOLVED}; of such the analytic solver knows nothing. "
            "--solver simulate forecasts that, too."
        )

    def ask(system: Document) -> draws.Values:
        return {(p, n): v for p in solver.phases for n, v in solver.quantities(p, solver.solve(p, system)).items()}

    best = {}
    for phase in solver.phases:
        with suppress(analytic.NoTime):
            best[phase] = solver.solve(phase, platform.best())
    untimed = [phase for phase in solver.phases if phase not in best]
    _leave_out(untimed, bool(best), request, file)
    solver.phases = list(best)
    beside = Beside.of(platform, ask) if not platform.fitted else None
    cut = solver.first_cut({phase: solution.rate for phase, solution in best.items()})
    if cut is not None:
        request.warnings.append(
            f"The time limit of {cut} may end it before all is done: how many operations it and later phases have, and "
            "how long they last, only --solver simulate knows."
        )
    found: Found = {}
    for phase in solver.phases:
        solutions = [best[phase], *(solver.solve(phase, document) for document in platform.draws())]
        value, *reported = [solver.quantities(phase, one) for one in solutions]
        stations = {name: {"utilisation": u} for name, u in solutions[0].utilisation.items()}
        shown = {
            "workload": solver.workload,
            "shares": solver.shares(phase),
            "lasting": not solver.is_cut(phase, cut),
            "distributions": {},
            "stations": stations,
            "bottleneck": limits_of.sentences(
                stations, limits_of.solved_text(solutions[0].waiting, solutions[0].limits)
            ),
            "left_out": solutions[0].left_out,
        }
        ensemble = {n: [one[n] for one in reported] for n in value}
        count = {"used": len(reported), "of": len(reported), "how": "solved"}
        found[phase] = (
            {
                "value": middle_of(
                    platform.fitted, platform.undecided, value, ensemble, platform.fitted.get("draw_structures") or []
                ),
                "ensemble": ensemble,
                "draws": count,
                "beside": beside,
                "total": None
                if cut is not None
                else round(sum(of["repeats"] * sum(of["operations"].values()) for of in solver.known.values())),
            },
            shown,
        )
    return found


def _missed(platform: Fitted, question: Question, names: Iterable[str]) -> dict[str, float]:
    """What the platform misses of the workload and phase that it was fitted to, as a logarithm by quantity, also where
    it is edited: what-ifs are compared with the system as it is. Of another phase or workload that is not known. What
    few rates are missed by is left to the belief about storage: carried on, it made forecasts of published systems
    worse."""
    if platform.rates_alone:
        return dict.fromkeys(names, 0.0)
    residuals = Residuals.of_fitted(platform.fitted, question)
    return {name: residuals.at(name, question) for name in names}


def _doubt(platform: Fitted, question: Question, names: Iterable[str]) -> dict[str, float]:
    """How far what the platform misses may be something else here, as the standard deviation of a logarithm: nothing
    for the system, workload and phase that were measured; for an edited system or another workload as much as is missed
    at the largest scale."""
    if not platform.fitted or platform.rates_alone:
        return {}
    known = speaks_of(platform.fitted, question)
    if known and not platform.edited:
        return {}
    residuals = Residuals.of_fitted(platform.fitted, question if known else None)
    return {name: residuals.largest(name, kind_of(name)) for name in names}


def _shifted(distribution: dict[str, list[float]], missed: dict[str, float], op: str) -> dict[str, list[float]]:
    """A distribution as its quantiles are shifted, those between by straight lines over the normal scores."""
    known = {p: missed[f"{op}.{name}"] for name, p in QUANTILES.items() if f"{op}.{name}" in missed}
    if not known:
        return distribution
    shift = np.interp(ndtri(distribution["probability"]), ndtri(list(known)), list(known.values()))
    return {
        "probability": distribution["probability"],
        "seconds": np.maximum.accumulate(distribution["seconds"] * np.exp(-shift)).tolist(),
    }


def _intervals(
    fitted: dict[str, Any],
    samples: dict[str, Any],
    missed: dict[str, float],
    ranks: int,
    level: float,
    doubt: dict[str, float] | None = None,
) -> dict[str, Any]:
    """Value, low and high by quantity. On the logarithmic scale each draw is blurred by the discrepancy that the
    held-out scale showed, grown with the distance beyond the fitted scales, and by what two measurements of one thing
    differ by; the value is blurred likewise, and the interval holds `level` of either. The held-out rows are few, hence
    Student's t. All is shifted by what the platform misses of its own measurements, `missed`; where it is not known to
    miss the same here, that is an error more, `doubt`. Without a calibration there is no interval."""
    if not fitted:
        return {name: {"value": value, "low": None, "high": None} for name, value in samples["value"].items()}
    result: dict[str, dict[str, float]] = {}
    for name, model in samples["value"].items():
        kind = kind_of(name)
        if kind not in fitted["discrepancy"]:
            continue  # nothing of the kind was fitted
        error, degrees = discrepancy_at(fitted, kind, ranks)
        error = math.hypot(error, (doubt or {}).get(name, 0.0))
        low, high = interval(model, samples["ensemble"][name], error, degrees, fitted["noise"][kind], level)
        value = model * math.exp(-missed[name])
        result[name] = {"value": value, "low": value * low, "high": value * high, "model": model}
    return rules.rising(result)


def _baselines(line: Sequence[baselines.Point], question: Question, names: list[str]) -> dict[str, Any]:
    """What simple rules say of a question from the measurements on its line."""
    printed = baselines.forecast(line, question.placement.ranks, question.waiting_factor, question.think_time)
    return {
        model: {
            name: ({"low": value[0], "high": value[1]} if isinstance(value, tuple) else value)
            for name, value in answers.items()
            if name in names
        }
        for model, answers in printed.items()
    }


def _best_rule(line: Sequence[baselines.Point]) -> dict[str, Any] | None:
    best = baselines.best_rule(line)
    return None if best is None else {"name": best.name, "error": best.error}


def _stations(phase: dict[str, Any], system: Document) -> dict[str, Any]:
    """Where an operation's time goes, station by station, in seconds an operation of the benchmark. Stripes are served
    side by side: of them it is the mean. Drains are left out, since no operation waits for them."""
    operations = phase["operations"]
    result = {}
    for name, station in phase["stations"].items():
        sums = {key: 0.0 for key in ("wait", "service", "lock_wait", "stall", "lost")}
        for op, visit in station["operations"].items():
            if op in ("others", "drain"):
                continue
            steps = [step for step in steps_of(system["operations"].get(op, [])) if step.get("station") == name]
            visits = visit["visits"]
            if any(step.get("stripes", 1) != 1 for step in steps):
                visits = min(visits, len(steps) * phase["latency"][op]["count"])
            for key in sums:
                sums[key] += visits * visit.get(key, 0.0) / operations
        result[name] = {"utilisation": station["utilisation"], **sums}
    return result


def _parting(samples: dict[str, Any], fitted: dict[str, Any]) -> list[dict[str, Any]]:
    """Choices of structure whose options fit about equally well and say different throughputs here: by more than a
    tenth, than two measurements of one thing differ by, and than chance among the draws explains (Welch's t above
    2)."""
    found = []
    structures = samples.get("structures") or []
    logs = np.log(np.maximum(samples["ensemble"].get("rate", []), 1e-9))
    for choice in structures[0] if structures else ():
        by_option: dict[str, list[float]] = {}
        for structure, log in zip(structures, logs, strict=True):
            by_option.setdefault(structure[choice], []).append(float(log))
        reported = sorted(
            (float(np.mean(printed)), option) for option, printed in by_option.items() if len(printed) > 1
        )
        if len(reported) < 2:
            continue
        (least, slow), (most, fast) = reported[0], reported[-1]
        chance = math.sqrt(
            sum(float(np.var(by_option[option], ddof=1)) / len(by_option[option]) for option in (slow, fast))
        )
        if most - least > max(math.log(1.1), 2 * fitted["noise"]["rate"], 2 * chance):
            found.append({"choice": choice, "rates": {option: math.exp(mean) for mean, option in reported}})
    return found


def _parted(parting: dict[str, Any]) -> str:
    printed = ", ".join(f"{option} {rate:.3g}/s" for option, rate in parting["rates"].items())
    return f"The measurements leave open which {parting['choice']} it is, and here that matters: {printed}."


def _other_placement(platform: Fitted, nodes: int, ranks_per_node: int) -> list[str]:
    """Whether the target has several nodes, or ranks on each, that were never measured."""
    points = [p for p in platform.fitted.get("campaign", {}).get("points", []) if p.get("nodes")]
    if not points:
        return []
    if nodes > 1 and all(p["nodes"] == 1 for p in points):
        return [
            f"All measurements ran on one node, and the forecast is of {nodes}: what nodes have in common and what "
            "each has of its own was not measured apart. Measure on two nodes."
        ]
    each = sorted({p["ranks"] // p["nodes"] for p in points})
    if len(each) > 1 and all(p["nodes"] > 1 for p in points) and len({p["nodes"] for p in points}) == len(each):
        places = ", ".join(dict.fromkeys(f"{p['nodes']}x{p['ranks'] / p['nodes']:g}" for p in points))
        return [
            f"The measurements ({places}) differ in nodes and in ranks a node at once: what more nodes bring, and what "
            f"more ranks on each, they don't tell apart. Measure two numbers of nodes with {ranks_per_node} ranks each."
        ]
    if any(p["nodes"] > 1 for p in points) and not each[0] <= ranks_per_node <= each[-1]:
        return [
            f"{ranks_per_node} rank{'s' if ranks_per_node > 1 else ''} a node "
            f"{'were' if ranks_per_node > 1 else 'was'} not measured; {', '.join(map(str, each))} "
            f"{'were' if len(each) > 1 or each[0] > 1 else 'was'}."
        ]
    return []


def _other_phases(platform: Fitted, workload: str | None, phases: Iterable[str]) -> list[str]:
    """Which of these phases the platform was not fitted to, of the workload that it was fitted to."""
    other = [name for name in phases if name != platform.phase]
    if not other or not is_called(platform.fitted, workload):
        return []
    return [
        f"The platform was fitted to the phase {platform.phase}, not to {', '.join(other)}: no error of such a "
        "forecast is known."
    ]


def _one_of_several(platform: Fitted, workload: str | None, phase: str | None) -> list[str]:
    """Whether the forecast rests on one fitted phase where several were fitted, each with parameters of its own."""
    others = [name for name in platform.phases if name != platform.phase]
    if not others or (is_called(platform.fitted, workload) and phase in (None, *platform.phases)):
        return []
    return [one_of_several(platform.phase, others)]


def _falls_behind(settings: Mapping[str, Any], ranks: int, phases: Sequence[Mapping[str, Any]]) -> list[str]:
    """That an open loop intends more than is done, so that it waits ever longer; one sentence, or none."""
    due = arrivals.number(settings, "rate") * ranks
    behind = [
        f"{quantity('rate', one['quantities']['rate']['value'])} in the phase {one['phase']}"
        for one in phases
        if one["quantities"]["rate"]["value"] < KEEPS_UP * due
        and any(name.endswith(".response.q99") for name in one["quantities"])
    ]
    if not behind:
        return []
    return [
        f"The load is more than is served: {quantity('rate', due)} are due, {' and '.join(behind)} are done. "
        "Operations wait ever longer for their turn. Response times, counted from when an operation is due, are those "
        "of this length of the phase, and grow with it."
    ]


def _outside_bounds(rows: list[dict[str, Any]]) -> list[str]:
    """One sentence on the forecast rates outside the bounds that are printed beside them, or none."""
    entries = []
    for one in rows:
        bounds, rate = one["baselines"].get("asymptotic bounds", {}).get("rate"), one["quantities"]["rate"]["value"]
        if (
            isinstance(bounds, dict)
            and not bounds["low"] / baselines.BEYOND <= rate <= baselines.BEYOND * bounds["high"]
        ):
            kind = rate_kind(one["quantities"]["rate"])
            low, high = quantity(kind, bounds["low"]), quantity(kind, bounds["high"])
            value = "the middle of a wide interval" if too_wide(one["quantities"]["rate"]) else quantity(kind, rate)
            entries.append(
                f"{one['phase']} {value}, {'below' if rate < bounds['low'] else 'above'} "
                f"{low if low == high else f'{low} to {high}'}"
            )
    if not entries:
        return []
    return [
        f"Forecast rates outside the asymptotic bounds of the measurements: {'; '.join(entries)}. In a "
        "closed system more ranks do no less than fewer, and each does no more than one of the fewest."
    ]


def _measured_there(platform: Fitted, answer: dict[str, Any], question: Question) -> list[str]:
    """Rates that were measured at the very question of a forecast, unless its system differs."""
    there = [one for one in measured(platform.fitted) if question.answers(one.question)]
    if platform.edited or not there:
        return []
    rates = [quantity(rate_kind(answer["quantities"]["rate"]), one.entry["rate"]) for one in there]
    if any(one.nodes == 0 and one.question.placement.ranks > 1 for one in there):  # of an imported run
        where = f"with {question.placement.ranks} ranks"
        advice = "if it was on as many nodes, take the measurement"
    else:
        where, advice = f"at {answer['placement']['nodes']}x{answer['placement']['ranks_per_node']}", ""
    advice = advice or "take the measurement"
    return [f"This scale was measured: {answer['phase']} did {' and '.join(rates)} {where}; {advice}."]


def _beyond_observed(platform: Fitted, rate: Mapping[str, Any], nodes: int) -> list[str]:
    """Forecast rates that an observed resource can't serve if an operation goes on taking as much of it (utilisation
    law). A client node's resources come with each node; an edited platform may have others than were observed."""
    if platform.edits or len(platform.documents) > 1:
        return []
    entries = []
    for name, known in platform.fitted.get("observed", {}).items():
        most = known["servers"] / known["demand"] * (nodes / known["nodes"] if known["per_node"] else 1)
        if rate["value"] > 1.05 * most:
            value = "the middle of a wide interval" if too_wide(rate) else f"{rate['value']:.3g}/s"
            entries.append(
                f"The forecast rate, {value}, is above the {most:.3g}/s that {name} allows: it was "
                f"{100 * known['utilisation']:.0f} % in use at {known['ranks']} ranks, {known['demand'] * 1e6:.3g} us "
                "an operation."
            )
    return entries


def _more_objects(platform: Fitted, objects: float | None) -> list[str]:
    """Whether the workload keeps many more objects than any that was fitted; where it is simulated, which counts
    them."""
    measured = [
        point["peak_objects"]
        for point in platform.fitted.get("campaign", {}).get("points", [])
        if point.get("peak_objects")
    ]
    if objects is None or not measured or objects <= MORE_OBJECTS * max(measured):
        return []
    return [
        f"The workload keeps {objects:.0f} objects, {objects / max(measured):.0f} times as many as any that was fitted "
        f"({max(measured)}). What they fill, such as a journal or a cache of inodes, may have had room in those "
        "measurements; measure few ranks with as many in all (in a campaign: 'scaling: strong', and 'seconds' so long "
        "that one rank makes as many)."
    ]


FAR_OFF = 0.25
"""Error of the rate at the held-out scale above which a forecast should not be extrapolated
(docs/reading-a-forecast.md)."""


def _far_off_where_checked(fitted: Mapping[str, Any], rule: dict[str, Any] | None) -> list[str]:
    errors = [row["error"] for row in fitted.get("holdout", {}).get("rows", []) if row["quantity"] == "rate"]
    if not errors or abs(errors[0]) <= FAR_OFF:
        return []
    phase = (fitted.get("campaign") or {}).get("phase")
    of = f" of {phase}" if phase else ""
    closer = ", and a simple rule was closer" if rule and abs(rule["error"]) < abs(errors[0]) else ""
    return [
        f"At the held-out scale the forecast{of} was more than {100 * FAR_OFF:.0f} % too "
        f"{'high' if errors[0] > 0 else 'low'}{closer}: plan with the interval, not with its middle, and measure one "
        "more scale."
    ]


def _warnings(platform: Fitted, ranks: int, largest: int, factor: float) -> list[str]:
    fitted = platform.fitted
    if not fitted:
        return []
    warnings = list(fitted.get("notes", []))
    if ranks > 8 * largest:
        warnings.append(
            f"{ranks:,} ranks are {ranks / largest:.0f} times what was measured ({largest:,g}). The intervals assume "
            "that nothing new happens in between, such as throughput that falls with more clients; a measurement at a "
            "larger scale would narrow them most."
        )
    if factor > 0 and factor not in fitted["campaign"]["waiting_factors"]:
        warnings.append(
            f"The waiting factor {factor:g} was not measured; T = "
            f"{', '.join(f'{x:g}' for x in fitted['campaign']['waiting_factors'])} were."
        )
    return warnings

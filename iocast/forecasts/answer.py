# SPDX-License-Identifier: Apache-2.0
"""Forecasts: throughput and latency quantiles at a scale that was not measured, with intervals (docs/answers.md, `kind:
forecast`)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from iocast.platforms import unmeasured
from iocast.rules import applied as rules
from iocast.runs import arrivals
from iocast.calibrate.search import Simulations, only
from iocast.errors import InputError
from iocast.platforms.family import set_by_hand_to
from iocast.ground import binaries
from iocast.ground.files import SCHEMA_VERSION, read_campaign, utc_now, write_json
from iocast.platforms.fitted import Fitted
from iocast.forecasts.cautions import (
    beyond_measured,
    beyond_observed,
    falls_behind,
    far_beyond_published,
    far_off_where_checked,
    measured_there,
    more_objects,
    other_phases,
    other_placement,
    other_settings,
    outside_bounds,
    resting_on_one,
)
from iocast.forecasts import links
from iocast.forecasts.grown import grown_rates
from iocast.forecasts.one_system import Correction, full_link
from iocast.forecasts.phase import (
    best_rule,
    by_operation,
    doubt_of,
    missed_by,
    phase_seconds,
    shifted_distribution,
    simple_rules,
    with_intervals,
)
from iocast.forecasts.request import measured_request, names_of_phases, ranks_per_node_of, resolved, workload_of
from iocast.forecasts.simulated import simulated
from iocast.forecasts.solved import solved
from iocast.forecasts.structures import parting_choices
from iocast.runs.measured import about, is_called, speaks_of
from iocast.planning.plan import next_runs
from iocast.platforms.platform_names import check_edits, check_file, speed_sentences
from iocast.planning.proposed import Place, telling
from iocast.published.errors import Errors
from iocast.published.serves import Serves
from iocast.runs.operations import MOVES_DATA
from iocast.runs.question import Question
from iocast.runs.settings import name_for_programs, settings_of
from iocast.records import note
from iocast.records.forecast import ForecastDocument, Numbers, PhaseDocument
from iocast.records.codes import each_once, notes_of
from iocast.records.note import Note, OutsideBounds
from iocast.records.quantities import Quantity
from iocast.runs.total import total
from iocast.wording.notes import put, sentence
from iocast.jobs.workers import Workers
from iocast.records.fitted import FittedSection

MAX_RANKS = 100_000_000
"""Of a forecast; the analytic solver takes seconds for as many. The largest machines have some ten million cores."""
NEVER_CALIBRATED = "This platform was never calibrated: there are no intervals, and its numbers are its author's."
SET_BY_HAND = (
    "This platform's author set its numbers by hand to published measurements of {}; iocast did not fit them, so there "
    "are no intervals."
)
WITHOUT_ORDER = (
    "The analytic solver takes no account of which ranks share a node; --solver simulate does, with --placement cyclic."
)


def require_a_place(nodes: int, ranks_per_node: float) -> None:
    """@raises InputError where there is no rank, or more than there are forecasts of"""
    place = (
        f"{nodes} node{'' if nodes == 1 else 's'} with {ranks_per_node} rank{'' if ranks_per_node == 1 else 's'} each"
    )
    if nodes < 1 or ranks_per_node < 1:
        raise InputError(f"{place} are no place to run; both are at least 1.")
    if nodes * ranks_per_node > MAX_RANKS:
        raise InputError(f"{place} are more than the {MAX_RANKS:,} ranks of which there are forecasts.")


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
    beyond: bool = False,
    label: str = "",
    whole: bool = False,
    workers: Workers | None = None,
) -> ForecastDocument:
    """A forecast. Settings that are not given are those of the calibration, or the workload's own where these are the
    `whole`; so is the workload when it is None, and the ranks a node are those of the largest measurement. Without
    `phase` it is of those of the fitted phases that it has, or of another workload's phases but set-up and clean-up:
    the one that stands for the workload, and the others under `further_phases`. Without `solver` a platform is
    simulated, but one that was fitted to rates alone, which is simple enough, solved. `workers` simulate all but the
    first run, by default all cores of this machine.

    @raises InputError from the programs, with their sentences; a phase that the workload lacks is refused before
    anything is simulated"""
    names = [phase] if phase else platform.phases
    if (
        len(platform.phases) > 1
        and is_called(platform.fitted, workload)
        and all(name in platform.phases for name in names)
    ):
        if not phase and not platform.rates_alone:
            require_a_place(nodes, ranks_per_node or 1)
            there = names_of_phases(platform, workload, settings, nodes, ranks_per_node or 1, whole)
            names = [name for name in names if name in there] or names
        more: dict[str, Any] = {"solver": solver, "level": level, "seed": seed, "label": label, "workers": workers}
        more["whole"] = whole
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
    require_a_place(nodes, ranks_per_node)
    platform.require_nodes(nodes)
    serves = Serves.of(platform)
    if not beyond:
        serves.refuse_beyond(nodes, nodes * ranks_per_node)
    check_file(platform)
    check_edits(platform)
    as_measured = platform.rates_alone and is_called(platform.fitted, workload)
    if platform.rates_alone and not as_measured:
        raise InputError(
            f"The platform was fitted to rates of the phase {platform.phase} alone; what operations of {workload} take "
            f"is not known. Calibrate with results of {workload}, or a family with latencies (iocast list platforms)."
        )
    if as_measured:
        requested = measured_request(platform, settings, solver, phase)
    else:
        requested = workload_of(platform, workload, settings, phase, nodes, ranks_per_node, whole)
    if solver == "analytic":
        arrivals.refuse_in_analytic(requested.settings)
    place = (nodes, ranks_per_node)
    with Simulations(workers, platform.file) as simulations:
        if as_measured:
            found = grown_rates(platform, requested, *place, level)
        elif solver == "simulate":
            found = simulated(simulations, platform, requested, *place, seed)
        else:
            found = solved(simulations, platform, requested, *place)
    ranks = round(nodes * ranks_per_node)  # unlike nodes have a mean that is no whole number
    factor = float(requested.settings.get("waiting_factor", 0))
    numbers, basis = _numbers_of(platform, next(iter(found.values()))[0].get("errors"))
    answer = cast(ForecastDocument, {"schema_version": SCHEMA_VERSION, "kind": "forecast"})
    answer["label"] = label or platform.file.stem
    answer["platform"] = {
        "name": platform.file.stem,
        "file": str(platform.file),
        "content_hash": platform.content_hash(),
        "edits": {**_overlay_edits(platform), **{path: value for path, value in platform.edits}},
        "numbers": numbers.value,
    }
    answer["made_at"] = utc_now()
    answer["workload"] = {
        "name": workload or requested.pattern,
        "pattern": next(iter(found.values()))[1]["workload"]["pattern"],
        "parameters": requested.settings,
    }
    answer["placement"] = {"ranks": ranks, "nodes": nodes, "ranks_per_node": ranks_per_node}
    if requested.settings.get("placement") == "cyclic":
        answer["placement"]["order"] = "cyclic"
    answer["ranks_per_node_assumed"], answer["solver"] = assumed_ranks, solver
    answer["level"], answer["waiting_factor"] = level, factor
    largest = max(platform.fitted.get("campaign", {}).get("ranks", [ranks]))
    answer["extrapolation"] = ranks / largest if platform.fitted else None
    main = requested.main(found)
    closed = not arrivals.is_open(requested.settings)  # the baselines know nothing else
    phases: dict[str, PhaseDocument] = {}
    questions: dict[str, Question] = {}
    factors = dict.fromkeys(requested.phases, 1.0)
    limited: list[Note] = []
    blends: dict[str, Note] = {}
    bounds: dict[str, Note] = {}
    for name, (samples, shown) in found.items():
        question = Question.of(
            shown["workload"], answer["placement"], name, settings_known=not as_measured, mounts=platform.mounts
        )
        questions[name] = question
        rows = samples.get("fit_rows")
        missed = missed_by(platform, question, samples["value"], rows)
        doubt = doubt_of(platform, question, samples["value"], rows)
        shares = shown["shares"]
        rests = unmeasured.unmeasured(platform, shares.share, question, bytes_each=shares.bytes_each)
        applied = None
        if closed and not rests and not platform.rates_alone:
            applied = rules.Rules.of(platform.fitted, question)
        blended = None if applied is None else applied.note
        changes: dict[str, float] = {}
        bounded: Note | None = None
        if applied is not None and platform.edited:
            plain = predict(
                platform.as_measured(), workload, settings, nodes, ranks_per_node, phase=name, solver=solver,
                level=level, seed=seed, workers=workers,
            )  # fmt: skip
            changes = rules.changes_of(plain["quantities"] | plain["parts"])
            doubt = {key: rules.doubted(doubt.get(key, 0.0), changes.get(key, 1.0)) for key in samples["value"]}
            bounded = note.HeldAsMeasured(changes["rate"]) if plain["bounded"] else None
        known = FittedSection() if rests or rows == [] else platform.fitted
        quantities = samples.get("quantities") or with_intervals(known, samples, missed, ranks, level, doubt)
        if errors := samples.get("errors"):
            quantities = rules.rising(errors.around(samples["value"], level, serves.beyond(nodes, ranks)))
        if changes:
            quantities = rules.changed(quantities, changes)
        elif applied is not None and not platform.edited:
            quantities, bounded = applied.apply(quantities, level)
        of_links: list[Note] = []
        if not platform.rates_alone:
            system = resolved(platform.best(), platform.file)
            load = rules.target(question) if closed else None
            seen = links.observed_bytes(platform, question)
            content = {op: shares.bytes_each.get(op, 0.0) for op in shares.share if op in MOVES_DATA}
            quantities, of_links = links.with_requests(
                platform, system, shares.share, nodes, quantities, load, seen, content
            )
            limited += of_links
        full = next((one for one in of_links if isinstance(one, note.LinkFull)), None)
        one = cast(PhaseDocument, {"phase": name, "blend": None, "bounded": None})
        if blended is not None:
            blends[name], one["blend"] = blended, sentence(blended)
        if bounded is not None:
            bounds[name], one["bounded"] = bounded, sentence(bounded)
        one["question"] = question.document()
        one["quantities"] = {key: printed for key, printed in quantities.items() if not Quantity.of(key).is_part}
        one["parts"] = {key: printed for key, printed in quantities.items() if Quantity.of(key).is_part}
        one["rests_on"] = rests
        one["operations"] = by_operation(shares, quantities["rate"])
        if solver == "analytic" and nodes > 1 and not platform.rates_alone:
            serves.refuse_alone(shares.share, resolved(platform.best(), platform.file)["serves"].get("alone", ()))
        for op, row in one["operations"].items():
            serves.refuse_unbounded(op, name, row["rate"]["value"], row.get("bytes_each", 0.0))
        one["seconds"] = phase_seconds(shares, quantities["rate"]) if shown.get("lasting", True) else None
        one["repeats"] = shares.repeats
        line = rules.line_of(platform.fitted, question) if closed else []
        one["baselines"] = simple_rules(line, question, list(samples["value"]))
        one["rule"] = best_rule(line)
        model = shown["model"]
        load = rules.target(question) if closed else None
        correction = Correction(model.rate, quantities["rate"]["value"], load, model.mean_rate)
        factors[name] = correction.factor
        shifted = {op: shifted_distribution(printed, quantities, op) for op, printed in shown["distributions"].items()}
        one["distributions"] = shifted
        if "growth" in shown:
            one["growth"] = shown["growth"]
        phases[name] = {**one, **model.at(correction)}
        if full is not None:
            phases[name] = {**phases[name], **full_link(full, quantities["rate"]["value"])}
    answer = {**answer, **phases.pop(main)}
    answer["further_phases"] = list(phases.values())
    samples, of_main = found[main]
    answer["total_operations"] = samples.get("total")
    answer["course"] = samples["course"](factors) if "course" in samples else []
    every: list[PhaseDocument] = [answer, *answer["further_phases"]]
    beside = samples.get("beside")
    if beside is not None:
        for one in every:
            one["family"] = beside.document(one["phase"], one["quantities"])
    answer["total"] = total(every)
    answer["draws"] = samples.get("draws") or {"used": 0, "of": 0, "how": ""}
    answer["alternatives"] = [
        {"structure": a["structure"], "weight": a["weight"]}
        for a in platform.fitted.get("alternatives", [])
        if a["weight"] > 0.01
    ]
    rests = {op: paths for one in every for op, paths in one["rests_on"].items()}
    answer["parting"] = [] if answer["rests_on"] else parting_choices(samples, platform.fitted)
    if answer["rests_on"]:
        answer["draws"] = {**answer["draws"], "used": 0}
    notes: list[Note] = [note.SumOfMachines(nodes)] if platform.fitted and nodes > 1 and requested.unshared else []
    notes += falls_behind(requested.settings, ranks, every)
    notes += of_main.get("unmeasured", []) + ([] if samples.get("settles", True) else [note.OthersPileUp()])
    notes += [note.RestsOnFamily(rests, unmeasured.in_place(platform, rests))] if rests else []
    notes += [note.SolverUnchecked()] if samples.get("fit_rows") == [] else []
    notes += [note.StructureOpen(one["choice"], one["rates"]) for one in answer["parting"]]
    if answer["parting"]:
        best = telling(next_runs(platform, Place(nodes, ranks_per_node, factor), seed=seed, workers=workers)[1])
        answer["next"] = [one.document() for one in best]
        notes += [best[0].note] if best else []
    notes += [held[one["phase"]] for held in (blends, bounds) for one in every if one["phase"] in held] + limited
    notes += requested.notes + beyond_measured(platform, ranks, largest, factor)
    notes += other_placement(platform, nodes, ranks_per_node)
    notes += [one for question in questions.values() for one in other_settings(platform.fitted, question)]
    notes += resting_on_one(platform, workload, phase) + other_phases(platform, workload, found)
    notes += far_beyond_published(serves, nodes, ranks) + outside_bounds(every, answer["placement"])
    notes += more_objects(platform, samples.get("peak_objects"))
    answer["basis"] = basis + ([sentence(serves.template)] if serves.template else [])
    answer["basis"] += dict.fromkeys(text for one in every for text in one.get("left_out", []))
    if "order" in answer["placement"] and solver == "analytic":
        answer["basis"].append(WITHOUT_ORDER)
    moved = dict.fromkeys(op for one in every for op, row in one["operations"].items() if "bytes_each" in row)
    if moved:
        answer["basis"] += speed_sentences(resolved(platform.best(), platform.file), moved)
    answer["basis"] += beside.sentences(answer["workload"]["name"]) if beside is not None else []
    if speaks_of(platform.fitted, questions[main]):
        if closed:
            notes += measured_there(platform, answer, questions[main])
        notes += far_off_where_checked(about(platform.fitted, questions[main]), answer["rule"])
        notes += beyond_observed(platform, answer["quantities"]["rate"], nodes)
    put(answer, notes)
    return answer


def _numbers_of(platform: Fitted, errors: Errors | None) -> tuple[Numbers, list[str]]:
    """Where a platform's numbers come from, with a sentence where iocast did not fit them."""
    if platform.fitted:
        return Numbers.FITTED, []
    if errors is not None:
        return Numbers.BY_HAND, [sentence(errors.note)]
    by = None if platform.edited else set_by_hand_to(platform)
    return (Numbers.BY_HAND, [SET_BY_HAND.format(by)]) if by else (Numbers.OWN, [NEVER_CALIBRATED])


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
    "rests_on",
    "stations",
    "bottleneck",
    "limited_by",
    "links",
    "left_out",
    "timeline",
    "balance",
    "growth",
    "blend",
    "bounded",
)
"""Keys of a forecast that are of its phase."""


def _joined(answers: list[ForecastDocument]) -> ForecastDocument:
    """Forecasts of several phases as the first one with the others under `further_phases`; notes and sentences of the
    basis that not all of them have name their phase."""
    joined = cast(
        ForecastDocument,
        answers[0]
        | {
            "further_phases": [{key: value for key, value in one.items() if key in OF_A_PHASE} for one in answers[1:]],
            "total": total(answers),
        },
    )
    names, every = [one["phase"] for one in answers], [list(notes_of(one)) for one in answers]
    notes = [one for one in each_once([one for own in every for one in own]) if not isinstance(one, OutsideBounds)]
    having = [tuple(name for name, own in zip(names, every, strict=True) if one in own) for one in notes]
    joined["basis"] = [
        text if len(phases) == len(answers) else f"{', '.join(phases)}: {text}"
        for text in dict.fromkeys(text for one in answers for text in one["basis"])
        for phases in [[one["phase"] for one in answers if text in one["basis"]]]
    ]
    named = [
        one if len(phases) == len(answers) else replace(one, about=phases)
        for one, phases in zip(notes, having, strict=True)
    ]
    put(joined, named + outside_bounds(answers, joined["placement"]))
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
) -> Iterator[tuple[Path, ForecastDocument]]:
    """A forecast of each point of a campaign that is planned and not measured yet, written to `out` before anybody can
    measure it: of the campaign's workload, whichever the platform was fitted to.

    @raises InputError when there is none"""
    document = read_campaign(campaign, planned=True)
    planned = {
        (run["nodes"], run["ranks_per_node"], run.get("mounts", 1), json.dumps(run["settings"])): run
        for run in document["points"]
        if run["status"] == "planned"
    }
    if not planned:
        raise InputError(f"Every point of the campaign '{campaign}' is measured already; iocast validate compares.")
    planned = {key: run for key, run in planned.items() if run.get("mounts", 1) == platform.mounts}
    if not planned:
        raise InputError(
            f"No point of the campaign '{campaign}' goes through {platform.mounts} mount "
            f"point{'s' * (platform.mounts > 1)}, as the platform's measurements did."
        )
    for run in planned.values():
        workload, settings = _as_planned(platform, document.get("workload"), run)
        answer = predict(
            platform,
            workload,
            settings,
            run["nodes"],
            run["ranks_per_node"],
            phase=phase,
            solver=solver,
            level=level,
            seed=seed,
            label=_point_of(run),
            whole=not platform.rates_alone,
        )
        path = out / f"{answer['label']}.json"
        write_json(path, answer)
        yield path, answer


def _as_planned(platform: Fitted, called: str | None, run: Mapping[str, Any]) -> tuple[str | None, dict[str, str]]:
    """Workload and settings of a planned run: with all its parameters where the platform was fitted to its pattern,
    whose calibration sets none of them."""
    settings = binaries.as_settings(run["settings"])
    if called is None or platform.rates_alone:
        return None if is_called(platform.fitted, called) else called, settings
    own = platform.fitted.get("campaign", {}).get("workload")
    resolved = binaries.resolve_workload(called, settings, run["nodes"], run["ranks_per_node"])["workload"]
    if own is None or name_for_programs(own) != name_for_programs(resolved):
        return called, settings
    every = settings_of(resolved)
    if "phases" not in settings and only(platform.phases, name_for_programs(resolved)):
        del every["phases"]  # the forecast chooses those that it needs
    return None, every


def _point_of(run: Mapping[str, Any]) -> str:
    """What the repeats of a planned point, or of a step at it, have in common in their names."""
    step = f"-{run['step']}" if run.get("step") else ""
    return str(run["name"].removesuffix(step).rsplit("-r", 1)[0] + step)


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


def calibrated_values(
    simulations: Simulations, platform: Fitted, settings: dict[str, str], nodes: int, ranks_per_node: int, seed: int
) -> dict[str, tuple[float, list[float]]]:
    """The forecast of a calibrated platform alone, of the phase that it was fitted to, before simple rules and ceiling:
    by quantity its value, and that of each draw.

    @raises RunError where work of others piles up in all draws"""
    requested = workload_of(platform, None, settings, None, nodes, ranks_per_node)
    samples, shown = simulated(simulations, platform, requested, nodes, ranks_per_node, seed)[platform.phase]
    place = {"ranks": round(nodes * ranks_per_node), "nodes": nodes, "ranks_per_node": ranks_per_node}
    missed = missed_by(
        platform, Question.of(shown["workload"], place, platform.phase, mounts=platform.mounts), samples["value"]
    )
    return {
        name: (value * math.exp(-missed[name]), samples["ensemble"][name]) for name, value in samples["value"].items()
    }

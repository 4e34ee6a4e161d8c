# SPDX-License-Identifier: Apache-2.0
"""The section `fitted` of a calibrated platform's file (docs/answers.md), and what it notes."""

from __future__ import annotations

import math
from typing import NamedTuple
from collections.abc import Mapping

import numpy as np

from iocast.rules import blend
from iocast.calibrate import parts, reading, structures
from iocast.calibrate.correlation import correlations, tied
from iocast.calibrate.discrepancy import DOUBLING, GROWTH_POWER, MISFIT_GROWTH_POWER, discrepancies, missed_by_far
from iocast.calibrate.draws import drawn_from, draws
from iocast.calibrate.findings import Finding
from iocast.calibrate.recipe import PLAIN
from iocast.calibrate.search import Fit
from iocast.calibrate.structure_search import Search
from iocast.calibrate.structures import recalled
from iocast.ground.files import sha256
from iocast.runs.run_directory import QUANTITIES, Point, switches
from iocast.records import note_of_measurements as note
from iocast.records.note import Note
from iocast.wording.notes import add
from iocast.records.fitted import (
    HoldOut,
    FitRow,
    FittedSection,
    FittedParameter,
    FittedCampaign,
    FittedPoint,
    Latencies,
)

NEARLY_AS_WELL = 0.2
"""Weight of another structure from which on a note names it."""
NORMAL_90 = 1.645
"""Standard deviations from the middle of a normal distribution to the ends of its inner 90 %."""
MAX_SPREAD = 5.0
"""Standard deviations of a parameter's logarithm: what is not known at all."""


class HeldOut(NamedTuple):
    """What a calibration of the smaller scales forecasts of the largest ones; empty where none could be held out."""

    document: HoldOut
    backtest: blend.Backtest | None = None
    """Of simple rules at the same points."""


def fitted_section(
    search: Search, fits: list[Fit], held_out: HeldOut, rows: list[FitRow], usual: float
) -> FittedSection:
    """Of a search with these fits, the best one first. rows: the best platform beside what was measured. usual: the
    misfit up to which measurements are explained."""
    best, forecast = fits[0], held_out.document
    misfit = best.cost > usual
    likely = search.with_unseen(fits, search.choices)
    weights = search.weights(likely)
    rest = list(zip(likely[1:], weights[1:], strict=True))
    missed = missed_by_far(forecast.get("rows", []), search.noise["rate"])
    power = MISFIT_GROWTH_POWER if misfit else GROWTH_POWER
    step = max(DOUBLING, forecast["ranks"] / forecast["fitted_up_to"]) if forecast else DOUBLING
    # A structure to which nothing but a misfit has led may be one of several that explain as much.
    stranger = misfit or missed > 0 or best.structure.get(structures.CHOICE, PLAIN) in search.nearest
    discrepancy = discrepancies(forecast, search.noise, stranger, _aged(search.found), step, power)
    few = len({point.ranks for point in search.points}) < 3
    drawn = draws(search, fits)
    fitted: FittedSection = {
        "campaign": _campaign(search),
        "family": search.recipe.family,
        "structure": best.structure,
        "parameters": _parameters(best),
        "correlations": correlations([p.name for p in best.parameters], best.covariance),
        "alternatives": [
            {"structure": f.structure, "weight": float(w), "misfit": f.cost, "parameters": f.values}
            for f, w in [(likely[0], weights[0]), *sorted(rest, key=lambda one: -one[1])]
        ],
        "open": search.open_choices(),
        "misfit": best.cost,
        "score": search.score(best),
        "usual_misfit": usual,
        "noise": search.noise,
        "noise_together": search.together,
        "noise_basis": reading.noise_basis(search.points),
        "fit": rows,
        "holdout": forecast,
        "discrepancy": {kind: error for kind, (error, _) in discrepancy.items()},
        "discrepancy_degrees": {kind: degrees for kind, (_, degrees) in discrepancy.items()},
        "discrepancy_growth": {"step": step, "power": power},
        "blend": held_out.backtest.document(misfit or missed > 0, few) if held_out.backtest else {},
        "simulations": sum(f.evaluations * search.simulations_of(f) for f in fits),
        "findings": [one.document() for one in search.found],
        "notes": [],
        "cautions": [],
    }
    if search.stand_ins:
        document = search.build(best.options, best.values)
        fitted["stand_ins"] = {one.path(document): one.like for one in search.stand_ins}
    if search.nearest:
        fitted["nearest"] = search.nearest
    fitted["draws"] = [document for _, document in drawn]
    fitted["draw_structures"] = [structure for structure, _ in drawn]
    fitted["drawn_from"] = drawn_from(search, fitted["draw_structures"])
    if observed := reading.observed_demands(search.points):
        fitted["observed"] = observed
    if search.counted and search.threads is not None:
        threads = search.threads
        fitted["counted"] = {
            "station": search.counted,
            "service": threads.service,
            "network": threads.network,
            "busy": threads.busy,
            "threads": {str(number): weight for number, weight in threads.weights.items()},
        }
    caches = search.build(best.options, best.values).get("caches") or {}
    if moved := reading.link_bytes(search.points, (caches.get(recalled.HELD) or {}).get("per", "")):
        fitted["link_bytes"] = moved
    if search.stall is not None:
        fitted["stall"] = {
            "every": search.stall.every,
            "length": search.stall.length,
            "operations": list(search.stall.operations),
        }
    notes: list[Note] = [*search.notes, *parts.notes(search.wholes, best.structure.get(parts.CHOICE, ""))]
    notes += tied(fitted["correlations"])
    notes += [note.FitsNearlyAsWell(fit.structure) for fit, weight in rest if weight > NEARLY_AS_WELL]
    if missed > 0:
        notes.append(note.HeldOutMissed(math.exp(missed)))
    if misfit:
        notes.append(note.Misfit(best.cost, usual, *_worst(rows)))
    add(fitted, notes)
    return fitted


def _parameters(fit: Fit) -> dict[str, FittedParameter]:
    """By path, with the range that holds 90 % of all that the measurements leave open."""
    spread: list[float] = np.sqrt(np.clip(np.diag(fit.covariance), 0, None)).tolist() if fit.parameters else []
    found: dict[str, FittedParameter] = {}
    for p, sd in zip(fit.parameters, spread, strict=True):
        value, factor = fit.values[p.name], math.exp(NORMAL_90 * min(sd, MAX_SPREAD))
        found[p.path] = {
            "name": p.name,
            "value": value,
            "low": max(p.low, value / factor),
            "high": min(p.high, value * factor),
            "unit": p.unit,
        }
    return found


def _campaign(search: Search) -> FittedCampaign:
    """What was measured."""
    points = search.points
    return {
        "runs": [
            {"name": run.path.name, "sha256": sha256(run.path / "run.json")} for point in points for run in point.runs
        ],
        "ranks": sorted({point.ranks for point in points}),
        "waiting_factors": sorted({point.waiting_factor for point in points}),
        # At the largest scale: where ranks share what one alone does, a rank's part there is the nearest to its part
        # beyond.
        "workload": max(points, key=lambda p: (p.ranks, -p.waiting_factor)).first.json["workload"],
        "phase": points[0].first.phase,
        "environment": points[0].first.record.environment or {},
        "points": [measured_point(point, reported) for point, reported in zip(points, switches(points), strict=True)],
    }


def measured_point(point: Point, reported: Mapping[str, str] | None = None) -> FittedPoint:
    """What baselines need of a point, and how many objects its workload kept. reported: its switches."""
    latency: Latencies = {
        op: {"count": point.first.count(op) / len(point.first.phases)}
        | {q: point.value(f"{op}.{q}") for q in ("mean", *QUANTITIES) if point.has(f"{op}.{q}")}
        for op in point.first.operations
    }
    measured: FittedPoint = {
        "name": point.name,
        "ranks": point.ranks,
        "nodes": point.first.placement[0],
        "waiting_factor": point.waiting_factor,
        "think_time": point.think_time,
        "rate": point.value("rate"),
        "latency": latency,
    }
    objects = [known for run in point.runs if (known := run.record.peak_objects) is not None]
    if reported:
        measured["switches"] = dict(reported)
    if objects:
        measured["peak_objects"] = max(objects)
    return measured


def too_rare(points: list[Point], rows: list[FitRow]) -> list[note.TooRareToCheck]:
    """Of measured operations whose errors are not known, since a simulated run lacks them. rows: none where no run
    ended."""
    known = {(row["point"], row["quantity"]) for row in rows}
    lacking: dict[str, dict[str, None]] = {}
    for point in points if rows else []:
        for name in point.quantities():
            if (point.name, name) not in known:
                lacking.setdefault(name.rpartition(".")[0], {})[point.name] = None
    return [note.TooRareToCheck(op, list(places)) for op, places in lacking.items()]


def _worst(rows: list[FitRow]) -> tuple[str, str, float] | tuple[()]:
    """In which quantity a platform is furthest from what was measured, but for maxima, which are random; the point,
    and the error."""
    steady = [row for row in rows if not row["quantity"].endswith(".max")]
    if not steady:
        return ()
    worst = max(steady, key=lambda row: abs(math.log(max(1 + row["error"], 1e-9))))
    return worst["quantity"], worst["point"], worst["error"]


def _aged(found: list[Finding]) -> float:
    """By how much the system changed within a run as it was used, as a logarithm; 0 where that was not seen."""
    return max((abs(float(one.numbers["log_ratio"])) for one in found if one.kind == "ageing"), default=0.0)

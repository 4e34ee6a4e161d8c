# SPDX-License-Identifier: Apache-2.0
"""What a study answers, as plain data (docs/studies.md, `kind: study`)."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from typing import cast

from iocast.wording.notes import entries
from iocast.wording.notes import sentences as printed
from iocast.errors import InputError, RunError
from iocast.ground.files import SCHEMA_VERSION
from iocast.runs.limits_of import Kind, Limit, sentences
from iocast.runs.measured import about
from iocast.study import risk, worth
from iocast.study.amounts import nearness, tightest
from iocast.study.breaking import breaking_scales, knee
from iocast.study.carried import UTILISATION
from iocast.study.cautions import cautions
from iocast.study.curves import curves, interval, other_confidences, seconds_spent, stations
from iocast.study.questions import Point
from iocast.study.evaluate import Elsewhere, Result, programs, versions
from iocast.study.levels import Level
from iocast.study.search import Candidate, Search
from iocast.study.spec import NORMAL, document_of
from iocast.study.words import conclusions, sentence
from iocast.records.study import (
    Breaks,
    Costing,
    DesignDocument,
    Failing,
    FamilyOfStudy,
    LevelDocument,
    LevelOfFamily,
    LevelRow,
    NearestMiss,
    Needed,
    PlatformOfStudy,
    Relaxation,
    StatedError,
    StudyDocument,
    Why,
    WorkloadOfStudy,
)
from iocast.records.fitted import HoldOut

COSTING = ("id", "name", "values", "parts", "cost", "price", "watts", "rack_units", "rate", "tail")
"""What is repeated of the design that is chosen."""
SHOWN = 12
"""Number of designs whose curves and stations are reported."""
POSSIBLE, POSSIBLE_IN_ALL = 400, 60_000
"""Number of samples of the margins that are reported of a design, and of numbers in all of them."""


def answer(search: Search, command: list[str]) -> StudyDocument:
    """The whole answer. What it says in words, it says of the numbers beside them."""
    study, desk = search.study, search.desk
    best = search.decision()
    front = search.front()
    chosen = worth.contenders(search)
    known = worth.slopes(search, chosen)
    breaks = breaking_scales(search)
    shown = _shown(search, best, front)
    designs = [
        _design(search, c, breaks, c in front)
        for c in sorted(search.candidates.values(), key=lambda c: (c.design.cost, c.design.number))
    ]
    by_id = {d["id"]: d for d in designs}
    result: StudyDocument = {
        "schema_version": SCHEMA_VERSION,
        "kind": "study",
        "title": study.title,
        "question": study.question,
    }
    result["platform"] = {"name": _platform_name(study.platform), **_platform(search)}
    result["confidence_asked"] = study.confidence
    result["decision"] = (
        None
        if best is None
        else cast(Costing, {key: value for key, value in by_id[best.design.id].items() if key in COSTING})
    )
    result["confidence"] = None if best is None else best.probability
    result["stability"] = search.stability
    result["currency"] = study.currency
    result["years"] = study.years
    result["designs"] = designs
    nearest = max(search.tried, key=lambda c: nearness(by_id[c.design.id]), default=None)
    reference = best or nearest
    result["axes"] = [
        {
            "name": axis.name,
            "values": [
                {
                    "name": v.name,
                    "platform": _platform_name(v.platform) or None,
                    "calibrated": bool(search.desk.platforms[v.platform].fitted) if v.platform else None,
                    "note": v.note or None,
                }
                for v in axis.values
            ],
        }
        for axis in study.axes
    ]
    result["model_error"] = _stated_error(search)
    result["levels"] = _levels(search)
    result["family"] = None if reference is None else _family(search, by_id[reference.design.id])
    result["front"] = [c.design.id for c in front]
    result["nearest_miss"] = None if best is not None or nearest is None else _nearest_miss(search, nearest, by_id)
    result["relaxations"] = _relaxations(search, best, by_id)
    result["other_confidences"] = other_confidences(search)
    result["sensitivity"] = {
        "axes": worth.axes(search),
        "uncertain": worth.uncertain(search, reference, known[reference.design.number])
        if reference in chosen and reference is not None
        else [],
        "design": None if reference is None else reference.design.id,
    }
    value = worth.Value(search, chosen, known) if chosen else None
    result["falling_short"] = None if value is None else value.falling_short
    result["measurements"] = [] if value is None else worth.measurements(search, value)
    result["scales"] = [
        {"name": s.name, "nodes": s.nodes, "ranks_per_node": s.ranks_per_node, "ranks": s.ranks}
        for s in study.scales.values()
    ]
    result["workloads"] = [_workload(search, w) for w in study.workloads]
    result["curves"] = [row for c in shown for row in curves(search, c)]
    result["stations"] = [row for c in shown for row in stations(search, c)]
    result["knee"] = [] if reference is None else knee(search, reference)
    result["routes"] = (
        None if reference is None else {"design": reference.design.name, "operations": desk.routes(reference.design)}
    )
    result["shown"] = [c.design.id for c in shown]
    result["search"] = {
        "explored": search.explored,
        "designs": study.size,
        "excluded": study.size - len(search.candidates) if search.explored == "full factorial" else None,
        "looked_at": len(search.candidates),
        "within_limits": len(search.allowed),
        "simulated": len(search.tried),
        "replications": max((len(c.replications) for c in search.tried), default=0),
    }
    result["extrapolation"] = _extrapolation(search)
    result["programs"] = {"version": versions(), **programs()}
    result["study"] = document_of(study)
    result["file"] = str(study.file)
    result["command"] = command
    result["headline"] = sentence(result)
    result["conclusions"] = conclusions(result)
    found = cautions(search, result)
    result["cautions"], result["warnings"] = entries(found), printed(found)
    return result


def _platform_name(reference: str) -> str:
    return reference.rpartition("/")[2].removesuffix(".yaml").removesuffix(".yml")


def _stated_error(search: Search) -> StatedError | None:
    """The model's error as the study states it, where some platform has none of its own: 90 % factors by kind of
    quantity, and their source."""
    study = search.study
    if not study.model_error or all(platform.fitted for platform in search.desk.platforms.values()):
        return None
    widest = NormalDist().inv_cdf(0.95)
    return {
        "factors": {kind: math.exp(sd * widest) for kind, sd in study.model_error.items()},
        "source": study.model_error_source,
    }


def _family(search: Search, design: DesignDocument) -> FamilyOfStudy | None:
    """Measured systems of the catalogue beside the levels of a design on a platform that was never calibrated: their
    values of each level where the design keeps it tightest; null where there are none."""
    family, systems = search.desk.platforms[search.study.platform].measured_systems
    rows = [row for row in tightest(design["levels"]) if not row["under"]]
    values: list[LevelOfFamily] = []
    refused: list[str] = []
    for row in rows if systems else []:
        point = Point(NORMAL, row["workload"], row["scale"])
        found: dict[str, float | None] = {}
        for one in systems:
            try:
                result = search.desk.measured(one.name, point.workload, search.study.scales[point.scale])
                found[one.name] = search.read(result, point, row["quantity"])
            except (InputError, RunError) as error:
                refused.append(f"{one.name} has no answer to this question: {error}")
        values.append({"level": row["level"], "workload": row["workload"], "scale": row["scale"], "values": found})
    if not values:
        return None
    return {
        "family": family,
        "systems": [{"name": one.name, "by": one.by} for one in systems],
        "levels": values,
        "refused": list(dict.fromkeys(refused)),
    }


def _platform(search: Search) -> PlatformOfStudy:
    platform = search.desk.platforms[search.study.platform]
    fitted = platform.fitted
    known: PlatformOfStudy = {
        "calibrated": bool(fitted),
        "unmeasured": search.desk.unmeasured(platform),
        "set_by_hand_to": platform.set_by_hand_to,
        "published": search.desk.published_errors(platform) is not None,
        "description": platform.description,
        "source": platform.source,
    }
    if fitted:
        known |= {
            "fitted_ranks": fitted["campaign"]["ranks"],
            "holdout": _held_out(search),
            "discrepancy": fitted.get("discrepancy") or {},
        }
    return known


def _held_out(search: Search) -> HoldOut:
    """What the platform's calibration held out, of the study's workloads: the rows that speak of one of them."""
    fitted = search.desk.platforms[search.study.platform].fitted
    for name in search.study.workloads:
        found = about(fitted, search.desk.question(name, search.study.largest, fitted))["holdout"]
        if found["rows"]:
            return found
    return {}


def _extrapolation(search: Search) -> float | None:
    fitted = search.desk.platforms[search.study.platform].fitted
    return search.study.largest.ranks / max(fitted["campaign"]["ranks"]) if fitted else None


def _workload(search: Search, name: str) -> WorkloadOfStudy:
    workload, profile = search.study.workloads[name], search.desk.profiles[name]
    return {
        "name": name,
        "workload": workload.reference.rpartition("/")[2],
        "weight": workload.weight,
        "phase": profile["phase"],
        "settings": workload.settings,
        "operations": profile["operations"],
        "scales": list(workload.scales),
        "screened": search.desk.can_screen(name),
        "simulated_share": min(search.desk.share(name, search.study.scales[s]) for s in workload.scales),
    }


def _shown(search: Search, best: Candidate | None, front: list[Candidate]) -> list[Candidate]:
    """The decision, the front and the likeliest, simulated ones only."""
    likely = sorted(search.tried, key=lambda c: (-c.probability, c.design.cost, c.design.number))
    cheapest = search.tried[:1]
    found = dict.fromkeys([*([best] if best else []), *cheapest, *(c for c in front if c.simulated), *likely])
    return list(found)[:SHOWN]


def _design(search: Search, c: Candidate, breaks: dict[int, Breaks | None], in_front: bool) -> DesignDocument:
    design, study = c.design, search.study
    values = {axis.name: value.name for axis, value in zip(study.axes, design.values, strict=True)}
    document: DesignDocument = {
        "id": design.id,
        "name": design.name,
        "values": values,
        "parts": dict(design.parts),
        "price": design.price,
        "cost": design.cost,
    }
    document |= {"watts": design.watts, "rack_units": design.rack_units, "beyond_limits": list(design.beyond)}
    document["basis"] = "simulated" if c.simulated else "beyond limits" if design.beyond else "screened"
    if design.beyond:
        document |= {"meets": None, "probability": None, "levels": [], "possible_margins": [], "front": False}
        document |= {"rate": None, "tail": None, "first_failing": None, "breaks_at": None, "replications": 0}
        return document
    objectives = search.objectives(c)
    document |= {"rate": objectives and objectives[1], "tail": objectives and objectives[2], "front": in_front}
    document |= {
        "replications": len(c.replications),
        "probability": c.probability,
        "meets": bool(c.simulated and c.probability >= study.confidence),
    }
    document["levels"] = [_condition(search, c, i) for i in range(len(search.conditions))]
    document["possible_margins"] = _possible_margins(search, c) if c.simulated else []
    document["first_failing"] = _first_failing(search, c, document["levels"])
    document["breaks_at"] = breaks.get(design.number)
    return document


def _possible_margins(search: Search, c: Candidate) -> list[list[int]]:
    """Samples of the margins that a design may turn out to have, as thousandths of their logarithms; a number for each
    row of `levels`. As large a share of them keeps all levels as of all samples that its probability was taken from."""
    samples = risk.predictive(search.judged_table(c), search.model_error(c))
    numbers = max(1, len(search.tried) * samples.shape[1])
    count = min(POSSIBLE, max(POSSIBLE // 4, POSSIBLE_IN_ALL // numbers))
    kept = (samples >= 0).all(axis=1)
    keeping = round(count * float(kept.mean()))
    picked: list[int] = []
    for places, share in ((np.flatnonzero(kept), keeping), (np.flatnonzero(~kept), count - keeping)):
        if len(places):
            picked += places[np.linspace(0, len(places) - 1, share).astype(int)].tolist()
    logs = np.floor(1000 * np.clip(samples[picked], risk.DOWN, -risk.DOWN))  # a margin below 0 stays below it
    return [[int(one) for one in row] for row in logs]


def _condition(search: Search, c: Candidate, index: int) -> LevelRow:
    level, point = search.conditions[index]
    document: LevelRow = {
        "level": level.name,
        "quantity": level.quantity,
        "limit": level.limit,
        "upper": level.upper,
        "workload": point.workload,
        "scale": point.scale,
    }
    document["under"] = point.scenario or None
    document["probability"] = float(c.level_probabilities[index]) if c.level_probabilities is not None else None
    document = {**document, **interval(search, c, point, level.quantity)}
    document["margin"] = None if document["value"] is None else math.exp(level.margin(document["value"]))
    return document


def _first_failing(search: Search, c: Candidate, rows: list[LevelRow]) -> Failing | None:
    """The level that fails at the smallest scale, there the least likely one; and the station that is why. Where only
    all levels together are too much, the least likely one."""
    order = list(search.study.scales)
    known = [(chance, r) for r in rows if (chance := r["probability"]) is not None]
    failing = [one for one in known if one[0] < search.study.confidence]
    if not failing and c.probability < search.study.confidence:
        failing = sorted(known, key=lambda one: one[0])[:1]
    if not failing:
        return None
    _, first = min(failing, key=lambda one: (order.index(one[1]["scale"]), one[0]))
    document = cast(Failing, {key: value for key, value in first.items() if key not in ("low", "high", "margin")})
    document["ranks"] = search.study.scales[first["scale"]].ranks
    document["why"] = _why(search, c, *search.conditions[rows.index(first)])
    return document


def _why(search: Search, c: Candidate, level: Level, point: Point) -> Why | None:
    """For a response time the station where its operation spends most; for a rate, a length or what accelerators do
    what limits the rate."""
    result = c.best.get(point) or c.screened.get(point)
    if result is None or "down" in result:
        return {"station": None, "part": "down", "share": 1.0}
    if level.quantity.endswith(UTILISATION):
        used = result["stations"].get(level.subject, {}).get("utilisation", 0.0)
        return {"station": level.subject, "part": "utilisation", "share": used}
    spent = seconds_spent(result, level.subject, search.study.tasks)
    if level.kind == "rate" or not spent:
        return _limit(result)
    total = sum(spent.values())
    tail = level.quantity.rpartition(".")[2] in ("q95", "q99", "q999", "max")
    waits = {k: v for k, v in spent.items() if k[1] != "service"}
    # In the tail it is waiting that differs from operation to operation, unless there is next to none.
    pool = waits if tail and sum(waits.values()) > 0.1 * total else spent
    (station, part), seconds = max(pool.items(), key=lambda item: item[1])
    inside = {k: v for k, v in spent.items() if k[0] != Elsewhere.CLIENTS.value}
    behind = {k: v for k, v in inside.items() if k[1] != "service"}
    if level.upper and station == Elsewhere.CLIENTS.value and 2 * sum(behind.values()) > sum(inside.values()):
        # The queue for a slot of a limit is as long as those who hold one are slow; when these mostly wait too, it is
        # for the cause.
        (station, part), seconds = max(behind.items(), key=lambda item: item[1])
        total = sum(inside.values())
    limited = _limit(result)
    if station == Elsewhere.CLIENTS.value and limited["limited_by"] == Kind.LINKS.value:
        return limited  # the wait outside of stations is for these
    return {"station": station, "part": part, "share": seconds / total if total else 0.0}


def _limit(result: Result) -> Why:
    """What limits the rate of a result, as a forecast finds it."""
    otherwise = Limit.read(result["otherwise"])
    found = sentences(result["stations"], otherwise, known=otherwise.kind is not None)
    busiest = max(result["stations"], key=lambda s: result["stations"][s]["utilisation"], default=None)
    full = busiest is not None and found.kind is Kind.STATION
    return {
        "station": busiest if full else None,
        "part": "limit",
        "share": result["stations"][busiest]["utilisation"] if full else None,
        "limited_by": found.word,
        "text": found.text,
    }


def _levels(search: Search) -> list[LevelDocument]:
    """Each level with the share of designs that it rules out, and that it alone rules out."""
    allowed = search.allowed
    rows: list[LevelDocument] = []
    fails: dict[str, NDArray[np.float64]] = {}
    for level in search.desk.levels:
        places = [i for i, (other, _) in enumerate(search.conditions) if other is level]
        fails[level.name] = np.array(
            [
                c.level_probabilities is not None
                and any(c.level_probabilities[i] < search.study.confidence for i in places)
                for c in allowed
            ],
            bool,
        )
    together = np.sum([v.astype(int) for v in fails.values()], axis=0) if fails else np.zeros(0, int)
    for level in search.desk.levels:
        failing = fails[level.name]
        rows.append(
            {
                "level": level.name,
                "quantity": level.quantity,
                "limit": level.limit,
                "upper": level.upper,
                "at": list(level.at),
                "workloads": list(level.workloads),
                "under": level.under or None,
                "why": level.why or None,
                "rules_out": float(failing.mean()) if len(failing) else None,
                "alone": float((failing & (together == 1)).mean()) if len(failing) else None,
            }
        )
    return rows


def _nearest_miss(search: Search, c: Candidate, by_id: dict[str, DesignDocument]) -> NearestMiss:
    """The design that comes nearest, and by how much its levels would have to give."""
    return {
        "design": c.design.id,
        "name": c.design.name,
        "cost": c.design.cost,
        "probability": c.probability,
        "first_failing": by_id[c.design.id]["first_failing"],
        "needed": _needed(search, c),
    }


def _needed(search: Search, c: Candidate) -> list[Needed]:
    """New limits with which a design would keep every level with the required confidence: each level alone gives its
    share."""
    samples = risk.predictive(search.judged_table(c), search.model_error(c))
    kept = (samples >= 0).mean(axis=0)
    failing = [i for i in range(samples.shape[1]) if kept[i] < search.study.confidence] or [int(np.argmin(kept))]
    level_confidence = 1 - (1 - search.study.confidence) / len(failing)
    needed: dict[str, Needed] = {}
    for i in failing:
        level, point = search.conditions[i]
        short = -float(np.quantile(samples[:, i], 1 - level_confidence))
        if short <= 0:
            continue
        limit = level.moved(level.limit, -short)
        before = needed.get(level.name)
        if before is None or (limit > before["needed"]) == level.upper:
            needed[level.name] = {
                "level": level.name,
                "quantity": level.quantity,
                "limit": level.limit,
                "needed": limit,
                "workload": point.workload,
                "scale": point.scale,
                "down": short > 6,
            }
    return list(needed.values())


def _relaxations(search: Search, best: Candidate | None, by_id: dict[str, DesignDocument]) -> list[Relaxation]:
    """Of the cheaper designs the nearest, and the limits with which they would do."""
    if best is None:
        return []
    cheaper = [c for c in search.tried if c.design.cost < best.design.cost]
    entries: list[Relaxation] = []
    for c in sorted(cheaper, key=lambda c: nearness(by_id[c.design.id]), reverse=True)[:3]:
        needed = _needed(search, c)
        if needed and not any(n["down"] for n in needed):
            entries.append(
                {
                    "design": c.design.id,
                    "name": c.design.name,
                    "saves": best.design.cost - c.design.cost,
                    "probability": c.probability,
                    "needed": needed,
                }
            )
    return entries

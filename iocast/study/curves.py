# SPDX-License-Identifier: Apache-2.0
"""What a study's answer shows beside its designs: confidences, curves of uncertain inputs, stations, and samples."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from iocast.rules import intervals
from iocast.ground.files import SCHEMA_VERSION
from iocast.records.forecast import ENDS, Ends, scaled
from iocast.records.quantities import ACCELERATORS, SHARES_OF_TIME, odds, share_of
from iocast.runs.run_directory import QUANTITIES
from iocast.study.carried import fitted_name
from iocast.study.questions import Point
from iocast.study.evaluate import Result
from iocast.study.levels import ANY
from iocast.study.search import Candidate, Search
from iocast.study.spec import NORMAL
from iocast.records.study import Spread, OtherConfidence, CurvePoint, StationTime

LEVEL = 0.9
"""Probability that intervals are meant to cover."""
Json = dict[str, Any]


def interval(search: Search, c: Candidate, point: Point, quantity: str) -> Spread:
    """Best estimate and the interval meant to cover with probability LEVEL; None where nothing is known or served."""
    known = search.value(c, point, quantity)
    if known is None or known[0] <= 0:
        return {"value": None if known is None else known[0], "low": None, "high": None}
    document = _rising_ends(search, c, point, quantity, *known)
    if search.desk.is_as_measured(c.design, point):
        document = _ruled(search, c, point, quantity, document)
    return {"value": document["value"], "low": document["low"], "high": document["high"]}


def _ruled(search: Search, c: Candidate, point: Point, quantity: str, document: Ends) -> Ends:
    """Of the measured system the ends that a forecast has: those of the blend, and below the ceiling. An edited one's
    are changed by the same factor as its value, as they are already."""
    scale, name = search.study.scales[point.scale], fitted_name(quantity)
    rules = search.desk.rules(c.design, point.workload, scale)
    changes = search.desk.changes(c.design, point.workload, scale)
    rate = search.value(c, point, "rate")
    if rules is None or rate is None or (name != "rate" and name not in changes):
        return document
    known = {"rate": _rising_ends(search, c, point, "rate", *rate)}
    known |= {} if name == "rate" else {name: document}
    before = {one: scaled(ends, 1 / changes.get(one, 1.0)) for one, ends in known.items()}
    after = rules.apply(before, LEVEL)[0][name]
    found: Ends = {"value": document["value"], "low": None, "high": None}
    low, high = (ratio / after["value"] for ratio in (after["low"] or 0.0, after["high"] or 0.0))
    if quantity == "seconds":
        low, high = 1 / high, 1 / low
    found["low"], found["high"] = document["value"] * low, document["value"] * high
    return found


def _rising_ends(search: Search, c: Candidate, point: Point, quantity: str, value: float, sd: float) -> Ends:
    document = _ends(search, c, point, quantity, value, sd)
    # Quantiles that were shifted apart from each other must not cross.
    subject, _, which = quantity.rpartition(".")
    for lower in QUANTITIES[: QUANTITIES.index(which)] if subject and which in QUANTITIES else ():
        other = search.value(c, point, f"{subject}.{lower}")
        if other is not None and other[0] > 0:
            ends = _ends(search, c, point, f"{subject}.{lower}", *other)
            document = cast(Ends, {key: max(document[key] or 0.0, ends[key] or 0.0) for key in ENDS})
    return document


def _ends(search: Search, c: Candidate, point: Point, quantity: str, value: float, sd: float) -> Ends:
    """By the rule of forecasts; of a share of time its odds. `sd`: of the logarithm, as far as it comes from not having
    been simulated."""
    of_time = quantity in SHARES_OF_TIME
    error = search.error_of(c, [(quantity, point)])
    drawn = search.drawn(c, point, quantity) if c.replications else []
    middle = odds(value) if of_time else value
    if drawn:
        drawn = [odds(one) for one in drawn] if of_time else drawn
        logs = np.log(drawn)
        count = (
            math.inf if search.study.uncertainty else len(search.desk.variants.platform_of(c.design).draws) or math.inf
        )
        # Few of all draws, without replacement, know their spread less well.
        wider = math.sqrt(max(1.0, 1 + 1 / len(drawn) - 1 / count))
        drawn = np.exp(logs.mean() + (logs - logs.mean()) * wider).tolist()
    low, high = intervals.interval(
        middle, drawn, math.hypot(float(error.scale[0]), sd), float(error.degrees[0]), float(error.noise[0]), LEVEL
    )
    low, high = (share_of(end) if of_time else end for end in (middle * low, middle * high))
    return {"value": value, "low": low, "high": high}


def seconds_spent(result: Result, subject: str, tasks: dict[str, dict[str, float]]) -> dict[tuple[str, str], float]:
    """Seconds by station and part of an operation, a task, or (any, rates) of all operations alike."""
    known = result["operations"]
    weights = tasks.get(subject) or (
        {subject: 1.0} if subject in known else {op: result["quantities"][f"{op}.rate"] for op in known}
    )
    found: dict[tuple[str, str], float] = {}
    for op, weight in weights.items():
        for station, parts in known.get(op, {}).items():
            for part, seconds in parts.items():
                found[station, part] = found.get((station, part), 0.0) + weight * seconds
    return found


def other_confidences(search: Search) -> list[OtherConfidence]:
    entries: list[OtherConfidence] = []
    for requested in (0.5, 0.8, 0.9, 0.95, 0.99):
        holds = sorted(
            (c for c in search.tried if c.probability >= requested),
            key=lambda c: (c.design.cost, -c.probability, c.design.number),
        )
        entries.append(
            {
                "confidence": requested,
                "design": holds[0].design.id if holds else None,
                "name": holds[0].design.name if holds else None,
                "cost": holds[0].design.cost if holds else None,
            }
        )
    return entries


def curves(search: Search, c: Candidate) -> list[CurvePoint]:
    """Rate and the levels' quantities against scale, with intervals."""
    rows: list[CurvePoint] = []
    for workload in search.study.workloads.values():
        quantities = dict.fromkeys(
            [
                "rate",
                f"{ANY}.q99",
                *(
                    level.quantity
                    for level in search.desk.levels
                    if workload.name in level.workloads and level.under == NORMAL
                ),
            ]
        )
        for scale in (s for s in search.study.scales if s in workload.scales):
            point = Point(NORMAL, workload.name, scale)
            for quantity in quantities:
                rows.append(
                    {
                        "design": c.design.id,
                        "name": c.design.name,
                        "workload": workload.name,
                        "scale": scale,
                        "ranks": search.study.scales[scale].ranks,
                        "quantity": quantity,
                        **interval(search, c, point, quantity),
                    }
                )
    return rows


def stations(search: Search, c: Candidate) -> list[StationTime]:
    """Where an operation's time goes at the largest scale of every workload."""
    rows: list[StationTime] = []
    for workload in search.study.workloads.values():
        point = Point(NORMAL, workload.name, [s for s in search.study.scales if s in workload.scales][-1])
        result = c.best[point]
        total = sum(result["quantities"][f"{op}.rate"] for op in result["operations"])
        spent = seconds_spent(result, "", {})
        for (station, part), seconds in spent.items():
            used = result["stations"].get(station, {}).get("utilisation")
            rows.append(
                {
                    "design": c.design.id,
                    "name": c.design.name,
                    "workload": workload.name,
                    "scale": point.scale,
                    "station": station,
                    "part": part,
                    "seconds": seconds / total,
                    "utilisation": used,
                }
            )
    return rows


def samples(search: Search) -> Json:
    """What the replications of every simulated design gave, for comparisons: replication k of two designs shares its
    draw of the uncertain numbers and its random numbers. By design, workload and scale, and quantity; null where a
    design did not serve."""
    study = search.study
    document: Json = {"schema_version": SCHEMA_VERSION, "kind": "samples", "designs": {}}
    for c in search.tried:
        rows = []
        for point in search.points:
            result = c.best[point]
            names = (
                []
                if "down" in result
                else [
                    q
                    for q in result["quantities"]
                    if q.rpartition(".")[2] in ("rate", "mean", "q50", "q95", "q99", "max", "bandwidth", *ACCELERATORS)
                ]
            )
            names += [level.quantity for level, p in search.conditions if p == point and level.quantity not in names]
            for name in dict.fromkeys(names):
                values = [search.read(one[point], point, name) for one in (c.best, *c.replications)]
                rows.append(
                    {
                        "scenario": point.scenario,
                        "workload": point.workload,
                        "scale": point.scale,
                        "ranks": study.scales[point.scale].ranks,
                        "quantity": name,
                        "values": values,
                    }
                )
        document["designs"][c.design.id] = {"name": c.design.name, "cost": c.design.cost, "rows": rows}
    return document

# SPDX-License-Identifier: Apache-2.0
"""The scale at which each design breaks: the number of clients from which on a level is missed, best estimate."""

from __future__ import annotations

import math
from typing import Any

from iocast.study import quantities
from iocast.study.desk import Ask, Point
from iocast.study.levels import Level
from iocast.study.search import Candidate, Search
from iocast.study.spec import NORMAL

BEYOND = 16
"""Times the largest scale, up to which is looked."""
MAX_RANKS = 1_000_000
"""Maximum number of clients that is tried, unless the largest scale is beyond it: with many servers the analytic solver
takes minutes there."""


def ladder(search: Search) -> list[int]:
    """Numbers of nodes, doubling from the smallest scale to far beyond the largest."""
    scales = list(search.study.scales.values())
    per_node = scales[-1].ranks_per_node
    first, last = (
        max(1, scales[0].ranks // per_node),
        max(scales[-1].nodes, min(BEYOND * scales[-1].nodes, MAX_RANKS // per_node)),
    )
    steps = [first * 2**i for i in range(math.ceil(math.log2(last / first)) + 1)]
    return sorted({*(min(s, last) for s in steps), *(max(1, s.ranks // per_node) for s in scales)})


def breaking_scales(search: Search) -> dict[int, dict[str, Any]]:
    """By design that was simulated: {ranks, already, level, workload, beyond, unsolved}: `ranks` at which the first
    level is missed, None when none is up to `beyond` ranks; `already` when that is where the level was looked at first,
    so that it may be missed at fewer, too. By the analytic solver, set right at the simulated scales and
    between them in proportion. `unsolved`: levels that the solver doesn't know, on a time or of a
    workload that it can't solve; they are looked at in simulations of the study's scales alone, and so is what lies
    within `beyond` then."""
    nodes = ladder(search)
    per_node = search.study.largest.ranks_per_node
    last = search.study.largest.name
    judged = [(level, w) for level in search.desk.levels for w in level.workloads]
    wanted = [(level, w) for level, w in judged if search.desk.can_screen(w) and not level.quantity.endswith("seconds")]
    unsolved = [one for one in judged if one not in wanted]
    simulated = [search.study.scales[s].ranks for level, w in unsolved for of, s in level.places if of == w]
    beyond = min([nodes[-1] * per_node, *([max(simulated)] if simulated else [])])
    asks = {}
    for c in search.tried:
        for level, w in wanted:
            for n in nodes:
                ask = Ask("analytic", c.design.number, Point(level.under, w, last), nodes=n)
                asks[c.design.number, level.under, w, n] = ask
    found = search.desk.gather(asks.values(), "looking for the scale at which designs break")
    result: dict[int, dict[str, Any]] = {}
    for c in search.tried:
        breaks = []
        for level, w in wanted:
            # Few clients can't ask for much: a rate is only looked at from where it is due.
            least = min(search.study.scales[s].ranks for of, s in level.places if of == w)
            curve = []
            for n in nodes:
                ranks = n * per_node
                one = found[asks[c.design.number, level.under, w, n]]
                value = quantities.value(one, level.quantity, search.study.tasks)
                if ranks >= least and "unsolved" not in one:
                    margin = (
                        -7.0
                        if value is None
                        else level.margin(value * math.exp(_correction(search, c, level, w, ranks)))
                    )
                    curve.append((ranks, margin))
            breaks.append((_crossing(_with_simulated(search, c, level, w, curve)), level, w))
        breaks += [(_crossing(_with_simulated(search, c, level, w, [])), level, w) for level, w in unsolved]
        known = [(*crossing, level, w) for crossing, level, w in breaks if crossing is not None]
        answer: dict[str, Any] = {"ranks": None, "already": False, "level": None, "workload": None, "beyond": beyond}
        answer["unsolved"] = list(dict.fromkeys(level.name for level, _ in unsolved))
        if known:
            first, already, level, w = min(known, key=lambda b: b[0])
            answer |= {"ranks": first, "already": already, "level": level.name, "workload": w}
        result[c.design.number] = answer
    return result


def _with_simulated(
    search: Search, c: Candidate, level: Level, workload: str, curve: list[tuple[int, float]]
) -> list[tuple[int, float]]:
    """The curve of margins with the simulated ones at the study's scales, from the largest scale on at which the level
    is kept: a design doesn't break before a scale at which it keeps the level."""
    known = {}
    for name, scale in search.study.scales.items():
        result = c.best.get(Point(level.under, workload, name))
        value = None if result is None else search.read(result, Point(level.under, workload, name), level.quantity)
        if value is not None and (workload, name) in level.places:
            known[scale.ranks] = level.margin(value)
    kept = max((ranks for ranks, margin in known.items() if margin >= 0), default=0)
    merged = dict(curve) | known
    return [(ranks, merged[ranks]) for ranks in sorted(merged) if ranks >= kept]


def knee(search: Search, c: Candidate) -> list[dict[str, Any]]:
    """Rate and mean response time of one design against the number of clients, solved and simulated, with asymptotic
    bounds and the number of clients at which they meet."""
    nodes, per_node, rows = ladder(search), search.study.largest.ranks_per_node, []
    for workload in search.study.workloads:
        if not search.desk.can_screen(workload):
            continue
        asks = {
            n: Ask("analytic", c.design.number, Point(NORMAL, workload, search.study.largest.name), nodes=n)
            for n in nodes
        }
        found = search.desk.gather(asks.values(), "looking for the knee")
        solved = [(n * per_node, found[a]) for n, a in asks.items() if "bounds" in found[a]]
        if not solved:
            continue
        given = search.desk.profiles[workload]["given"]
        thinks = float(given.get("waiting_factor", 0)) > 0 or float(given.get("think_time", 0)) > 0
        each, capacity = solved[0][1]["bounds"]["upper"] / solved[0][0], solved[-1][1]["bounds"]["upper"]
        at = capacity / each if len(solved) > 1 and solved[-2][1]["bounds"]["upper"] >= 0.999 * capacity else None
        for ranks, one in solved:
            low, high = one["bounds"]["lower"] or None, one["bounds"]["upper"]
            rows.append(
                {
                    "workload": workload,
                    "series": "analytic solver",
                    "ranks": ranks,
                    "rate": one["quantities"]["rate"],
                    "mean": _mean(one),
                    "rate_low": low,
                    "rate_high": high,
                    "mean_low": None if thinks else ranks / high,
                    "mean_high": None if thinks or not low else ranks / low,
                    "knee": at,
                }
            )
        for name in search.study.workloads[workload].scales:
            one = c.best.get(Point(NORMAL, workload, name), {})
            if "quantities" in one:
                none = dict.fromkeys(("rate_low", "rate_high", "mean_low", "mean_high", "knee"))
                rows.append(
                    {
                        "workload": workload,
                        "series": "simulated",
                        "ranks": search.study.scales[name].ranks,
                        "rate": one["quantities"]["rate"],
                        "mean": _mean(one),
                        **none,
                    }
                )
    return rows


def _mean(result: dict[str, Any]) -> float:
    """Of the response times of all operations."""
    known = result["quantities"]
    weighted = sum(known[f"{op}.rate"] * known[f"{op}.mean"] for op in quantities.operations_of(result))
    return float(weighted / known["rate"])


def _crossing(curve: list[tuple[int, float]]) -> tuple[int, bool] | None:
    """The first number of ranks with a negative margin, straight lines between logarithms; and whether the curve begins
    there."""
    before: tuple[int, float] | None = None
    for ranks, margin in curve:
        if margin < 0:
            if before is None:
                return ranks, True
            part = before[1] / (before[1] - margin)
            return round(math.exp(math.log(before[0]) + part * math.log(ranks / before[0]))), False
        before = (ranks, margin)
    return None


def _correction(search: Search, c: Candidate, level: Level, workload: str, ranks: int) -> float:
    """log(simulated / analytic) of this design between its simulated scales; beyond them as at the nearest."""
    places = []
    for name, scale in search.study.scales.items():
        point = Point(level.under, workload, name)
        if "quantities" not in c.best.get(point, {}) or "bounds" not in c.screened.get(point, {}):
            continue
        a, b = (
            search.read(c.best[point], point, level.quantity),
            quantities.value(c.screened[point], level.quantity, search.study.tasks),
        )
        if a and b:
            places.append((math.log(scale.ranks), math.log(a / b)))
    if not places:
        return 0.0
    x = math.log(ranks)
    if x <= places[0][0]:
        return places[0][1]
    for (x0, y0), (x1, y1) in zip(places, places[1:], strict=False):
        if x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0) if x1 > x0 else y1
    return places[-1][1]

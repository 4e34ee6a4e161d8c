# SPDX-License-Identifier: Apache-2.0
"""The scale at which each design breaks: the number of clients from which on a level is missed, best estimate."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from iocast.study import quantities
from iocast.study.questions import Ask, Point
from iocast.study.levels import Level
from iocast.study.search import Candidate, Search
from iocast.study.spec import NORMAL, Scale
from iocast.records.study import Breaks, KneePoint

BEYOND = 16
"""Times the largest scale, up to which is looked."""
MAX_RANKS = 1_000_000
"""Maximum number of clients that is tried, unless the largest scale is beyond it: with many servers the analytic solver
takes minutes there."""


def way(search: Search) -> list[Scale]:
    """Placements from the smallest scale to far beyond the largest, by number of ranks: the study's scales, and
    doublings of nodes or of ranks a node between and beyond them. Beyond, it goes as grows_in_ranks() says."""
    scales = list(search.study.scales.values())
    found = [scales[0]]
    for scale in scales[1:]:
        found += _between(found[-1], scale)
    last = found[-1]
    room = min(BEYOND, MAX_RANKS // last.ranks)
    doubled = [2**i for i in range(1, BEYOND) if 2**i < room]
    return found + [_grown(last, factor, grows_in_ranks(search)) for factor in (*doubled, room) if factor > 1]


def grows_in_ranks(search: Search) -> bool:
    """Whether further clients share the nodes of the largest scale: where the scales differ in ranks a node; where all
    stations are a node's own, so that a further node is a machine that no design has; and where the family is a
    default, which says nothing of nodes."""
    scales = search.study.scales.values()
    platforms = search.desk.platforms.values()
    stations = [list((platform.best[0].get("stations") or {}).values()) for platform in platforms]
    own = any(each and all(one.get("per") == "node" for one in each) for each in stations)
    return (
        own
        or any("by_default" in platform.fitted for platform in platforms)
        or len({scale.ranks_per_node for scale in scales}) > 1
    )


def _grown(scale: Scale, factor: int, in_ranks: bool) -> Scale:
    return (
        replace(scale, ranks_per_node=scale.ranks_per_node * factor)
        if in_ranks
        else replace(scale, nodes=scale.nodes * factor)
    )


def _between(first: Scale, last: Scale) -> list[Scale]:
    """Doublings of the first up to the last and this itself, where they differ in nodes alone or in ranks a node
    alone; else the last."""
    in_ranks = first.nodes == last.nodes
    if not in_ranks and first.ranks_per_node != last.ranks_per_node:
        return [last]
    doubled, found = _grown(first, 2, in_ranks), []
    while doubled.ranks < last.ranks:
        found.append(replace(doubled, name=last.name))
        doubled = _grown(doubled, 2, in_ranks)
    return [*found, last]


def breaking_scales(search: Search) -> dict[int, Breaks | None]:
    """By design that was simulated: {ranks, already, level, workload, beyond, nodes, ranks_per_node, unsolved}: `ranks`
    at which the first level is missed, None when none is up to `beyond` ranks; `already` when that is where the level
    was looked at first, so that it may be missed at fewer, too. By the analytic solver, set right at the simulated
    scales and between them in proportion. One of `nodes` and `ranks_per_node` is null: that which grows beyond the
    study's scales. `unsolved`: levels that the solver doesn't know, on a time or of a workload that it can't solve;
    they are looked at in simulations of the study's scales alone, and so is what lies within `beyond` then. None
    instead where what is missed first is a rate, at the fewest clients that have to make it: fewer make less."""
    scales = way(search)
    last = search.study.largest
    judged = [(level, w) for level in search.desk.levels for w in level.workloads]
    wanted = [(level, w) for level, w in judged if search.desk.can_screen(w) and not level.quantity.endswith("seconds")]
    unsolved = [one for one in judged if one not in wanted]
    simulated = [search.study.scales[s].ranks for level, w in unsolved for of, s in level.places if of == w]
    beyond = min([scales[-1].ranks, *([max(simulated)] if simulated else [])])
    grows: Breaks = {"nodes": last.nodes, "ranks_per_node": last.ranks_per_node}
    grows["ranks_per_node" if grows_in_ranks(search) else "nodes"] = None
    asks = {}
    for c in search.tried:
        for level, w in wanted:
            for scale in scales:
                asks[c.design.number, level.under, w, scale] = Ask(
                    "analytic", c.design.number, Point(level.under, w, last.name), at=scale
                )
    found = search.desk.gather(asks.values(), "looking for the scale at which designs break")
    result: dict[int, Breaks | None] = {}
    for c in search.tried:
        breaks = []
        for level, w in wanted:
            # Few clients can't ask for much: a rate is only looked at from where it is due.
            least = min(search.study.scales[s].ranks for of, s in level.places if of == w)
            curve = []
            for scale in scales:
                one = found[asks[c.design.number, level.under, w, scale]]
                value = quantities.value(one, level.quantity, search.study.tasks)
                if scale.ranks >= least and "unsolved" not in one:
                    margin = (
                        -7.0
                        if value is None
                        else level.margin(value * math.exp(_correction(search, c, level, w, scale.ranks)))
                    )
                    curve.append((scale.ranks, margin))
            breaks.append((_crossing(_with_simulated(search, c, level, w, curve)), level, w))
        breaks += [(_crossing(_with_simulated(search, c, level, w, [])), level, w) for level, w in unsolved]
        known = [(*crossing, level, w) for crossing, level, w in breaks if crossing is not None]
        answer: Breaks = {"ranks": None, "already": False, "level": None, "workload": None, "beyond": beyond}
        answer |= grows | {"unsolved": list(dict.fromkeys(level.name for level, _ in unsolved))}
        if known:
            first, already, level, w = min(known, key=lambda b: b[0])
            answer |= {"ranks": first, "already": already, "level": level.name, "workload": w}
            if already and not level.upper:
                result[c.design.number] = None
                continue
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


def knee(search: Search, c: Candidate) -> list[KneePoint]:
    """Rate and mean response time of one design against the number of clients, solved and simulated, with asymptotic
    bounds and the number of clients at which they meet."""
    rows: list[KneePoint] = []
    for workload in search.study.workloads:
        if not search.desk.can_screen(workload):
            continue
        asks = {
            scale: Ask("analytic", c.design.number, Point(NORMAL, workload, search.study.largest.name), at=scale)
            for scale in way(search)
        }
        found = search.desk.gather(asks.values(), "looking for the knee")
        solved = [(scale, found[a]) for scale, a in asks.items() if "bounds" in found[a]]
        if not solved:
            continue
        given = search.desk.profiles[workload]["given"]
        thinks = float(given.get("waiting_factor", 0)) > 0 or float(given.get("think_time", 0)) > 0
        each, capacity = solved[0][1]["bounds"]["upper"] / solved[0][0].ranks, solved[-1][1]["bounds"]["upper"]
        at = capacity / each if len(solved) > 1 and solved[-2][1]["bounds"]["upper"] >= 0.999 * capacity else None
        for scale, one in solved:
            ranks = scale.ranks
            low, high = one["bounds"]["lower"] or None, one["bounds"]["upper"]
            rows.append(
                {
                    "workload": workload,
                    "series": "analytic solver",
                    "ranks": ranks,
                    "nodes": scale.nodes,
                    "ranks_per_node": scale.ranks_per_node,
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
                rows.append(
                    {
                        "workload": workload,
                        "series": "simulated",
                        "ranks": search.study.scales[name].ranks,
                        "nodes": search.study.scales[name].nodes,
                        "ranks_per_node": search.study.scales[name].ranks_per_node,
                        "rate": one["quantities"]["rate"],
                        "mean": _mean(one),
                        "rate_low": None,
                        "rate_high": None,
                        "mean_low": None,
                        "mean_high": None,
                        "knee": None,
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

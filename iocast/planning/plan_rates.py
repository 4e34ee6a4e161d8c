# SPDX-License-Identifier: Apache-2.0
"""Measurements that narrow a forecast from rates alone most. Each is judged by the forecast that would be made with it:
the same curves of growth (iocast/rules/growth.py), with a rate at the candidate's placement as those curves forecast
it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from iocast.planning import candidate_places
from iocast.rules import growth
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.planning.proposed import Place, Proposed, WORTH_IT

LEVEL = 0.9
OUTCOMES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles of the candidate's rate, as forecast from the present measurements."""
MAX_RUNS = 3


def half_width(fitted: Sequence[growth.Measured], target: Place, *, operations: bool) -> float:
    """Half of the interval's logarithmic width of a forecast at `target`."""
    low, high = growth.forecast(fitted, growth_place(target), operations=operations).interval(LEVEL)
    return (high - low) / 2


def growth_place(place: Place) -> growth.Placement:
    return growth.Placement(place.nodes, place.ranks_per_node / (1 + place.waiting_factor))


def judged(platform: Fitted, target: Place, places: Sequence[Place], more: Place) -> Proposed:
    """The target's interval with measurements at `places`, and with `more` beside them, over the OUTCOMES of `more`.

    Rates at `places` are taken at the median of their forecast."""
    operations = platform.fitted["campaign"].get("unit", "operations") == "operations"
    known = growth.measured_in(platform.fitted["campaign"])

    def with_rate(fitted: list[growth.Measured], place: Place, probability: float) -> list[growth.Measured]:
        at = growth_place(place)
        rate = growth.forecast(fitted, at, operations=operations).quantile(probability)
        return [*fitted, growth.Measured(at.nodes, at.ranks_per_node, rate)]

    for place in places:
        known = with_rate(known, place, 0.5)
    widths = [half_width(with_rate(known, more, p), target, operations=operations) for p in OUTCOMES]
    before = half_width(known, target, operations=operations)
    middle = sum(widths) / len(widths)
    return Proposed(
        more, None, math.exp(before), math.exp(middle), between=(math.exp(min(widths)), math.exp(max(widths)))
    )


def proposals(platform: Fitted, target: Place, candidates: Sequence[Place]) -> list[Proposed]:
    """What each candidate alone would add, the one that narrows the interval most first."""
    found = [judged(platform, target, [], place) for place in unmeasured(platform, candidates)]
    return sorted(found, key=lambda one: one.after)


def chosen(platform: Fitted, target: Place, candidates: Sequence[Place]) -> list[Proposed]:
    """Up to MAX_RUNS measurements one after the other, each the one that narrows the interval most beside those before
    it, until none does by WORTH_IT."""
    rows: list[Proposed] = []
    left = unmeasured(platform, candidates)
    while left and len(rows) < MAX_RUNS:
        places = [row.place for row in rows]
        best = min((judged(platform, target, places, place) for place in left), key=lambda one: one.after)
        if math.log(best.before / best.after) < WORTH_IT:
            break
        rows.append(best)
        left.remove(best.place)
    return rows


def candidates(nodes: int, ranks_per_node: int) -> list[Place]:
    """Placements up to these by twos: numbers of nodes with all ranks each, or on one node numbers of ranks."""
    places = candidate_places.candidates(nodes, ranks_per_node, factors=[0.0])
    if nodes == 1:
        return places
    return [Place(n, ranks_per_node) for n in dict.fromkeys(place.nodes for place in places)]


def unmeasured(platform: Fitted, candidates: Sequence[Place]) -> list[Place]:
    """Candidates without think time at placements that were not measured yet. Think times narrow nothing that fewer
    ranks would not, and most tools have none."""
    seen = {(p["nodes"], p["ranks"] // p["nodes"]) for p in platform.fitted["campaign"]["points"]}
    return [
        place
        for place in candidates
        if place.waiting_factor == 0 and not place.settings and (place.nodes, place.ranks_per_node) not in seen
    ]


def can_be_measured(pattern: str) -> bool:
    """Whether `iocast measure` sizes runs of this workload; another tool's results have a workload that it lacks."""
    try:
        return candidate_places.has_sizes(pattern)
    except InputError:
        return False

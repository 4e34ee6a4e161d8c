# SPDX-License-Identifier: Apache-2.0
"""Parts of operations that need no server. A client of a database or an object store opens and closes what it names
without a request, and a file system's may answer from its own memory. A family lets each part visit its server. There
such a part would wait behind all others' requests, which it doesn't."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from statistics import fmean
from typing import Any

from iocast.calibrate import parts
from iocast.calibrate.reading import NO_REQUEST
from iocast.calibrate.recipe import Recipe
from iocast.platforms.documents import Document, get_path
from iocast.runs.run_directory import Point

WAITS = 2.0
"""Growth of a part's mean from a lone rank to the most, from which on the server's requests wait."""
WITHOUT_WAITING = 0.05
"""Of the server's mean time for a part, up to which another one doesn't wait there: who is served before all others
waits for those that are in service already, which is more."""
MOSTLY = 0.5
"""Share of a station's service that must have waited before the rest is judged. Chosen by hand."""

Steps = list[Any]


def routes(points: list[Point], single: Point, recipe: Recipe, family: Document) -> dict[str, Steps]:
    """Routes of the parts that need no server, by path: each takes its time as a delay. Measurements decide: a part's
    mean and upper quartile, of a lone rank and of most ranks without think times."""
    closed = [point for point in points if point.waiting_factor == 0 and point.ranks > 1]
    most = max(closed, key=lambda point: point.ranks, default=single)
    alone: dict[str, dict[str, float]] = defaultdict(dict)  # by station and demand
    waits: dict[str, dict[str, float]] = defaultdict(dict)
    mostly: dict[str, float] = {}  # by demand, the smaller one of its mean wait and that of three in four
    without: dict[str, Steps] = {}
    for demand, tag in recipe.laws.items():
        station = parts.station_of(family, tag, demand)
        if not station or family["stations"][station].get("discipline", "fcfs") != "fcfs":
            continue
        if not single.has(f"{tag}.mean"):
            continue
        route = _without(get_path(family, f"operations.{tag}"), station, demand)
        if route is not None:
            without[demand] = route
        alone[station][demand] = single.value(f"{tag}.mean")
        if most.has(f"{tag}.mean"):
            waits[station][demand] = mostly[demand] = most.value(f"{tag}.mean") - alone[station][demand]
            if most.has(quartile := f"{tag}.q75") and single.has(quartile):
                # Single slow requests raise the mean, such as those that request a capability; at a crowded server most
                # requests would wait.
                mostly[demand] = min(mostly[demand], most.value(quartile) - single.value(quartile))
    found = {}
    for station, means in alone.items():
        waiting = [demand for demand in waits[station] if mostly[demand] > (WAITS - 1) * means[demand]]
        # A wait that may be for a lock or a limit tells nothing of the server; the lack of one, that nobody waits.
        known = means.keys() - (set(waiting) - without.keys())
        waiting = [demand for demand in waiting if demand in without]
        # Where next to nothing waits, small parts of clients grow by chance, and what shrank by chance isn't elsewhere.
        crowded = sum(means[demand] for demand in waiting) > MOSTLY * sum(means[demand] for demand in known)
        least = WITHOUT_WAITING * fmean(means[demand] for demand in waiting) if crowded else -math.inf
        for demand, mean in means.items():
            if demand in without and (mean < NO_REQUEST or mostly.get(demand, math.inf) < least):
                found[f"operations.{recipe.laws[demand]}"] = without[demand]
    return found


def by_nodes(found: dict[str, Steps], points: list[Point], family: Document) -> Document:
    """By path, the declaration of operations that take delays alone, with these routes in `family`. Without it several
    nodes are refused, since each further one does as much as the first: several were measured, and did."""
    declared = get_path(family, "serves.node_local") or []
    if declared == "all" or all(point.first.placement[0] == 1 for point in points):
        return {}
    own = []
    for op in dict.fromkeys(path.split(".")[1] for path in found):
        route = family["operations"][op]
        steps = [step for part in (route.values() if isinstance(route, dict) else [route]) for step in part]
        if all(step.keys() == {"delay"} for step in steps):
            own.append(op)
    return {"serves.node_local": [*declared, *own]} if own else {}


def _without(route: Any, station: str, demand: str) -> Steps | None:
    """The route with the demand as a delay; None where more than a server may be waited for: a lock, or a limit."""
    visit = {"station": station, "demand": demand}
    if visit not in route:
        return None
    changed: Steps = copy.deepcopy(route)
    changed[changed.index(visit)] = {"delay": demand}
    return changed

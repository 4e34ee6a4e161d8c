# SPDX-License-Identifier: Apache-2.0
"""Mechanisms of a platform that the simulator has and the analytic solver leaves out, as sentences of its answer."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from iocast.analytic.network import Network, Used
from iocast.analytic.routes import Route, named_by
from iocast.records.platform import ResolvedPlatform

EVEN = 0.25
"""Excess of the busiest instance over the mean below which a load counts as evenly spread, by hand."""


def excess(instances: int, items: float) -> float:
    """Of the fullest of `instances` over the mean where many items fall on them at random, relative: sqrt(2 ln c / m)
    with m items for each of c (Raab & Steger 1998, Balls into bins, theorem 1)."""
    return math.sqrt(2 * math.log(instances) * instances / items) if instances > 1 else 0.0


def left_out(
    platform: ResolvedPlatform,
    routes: Sequence[Route],
    network: Network,
    used: Used,
    thinks: bool,
    unlike_ranks: bool,
    before: Collection[str] = (),
) -> list[str]:
    """A sentence each. thinks: whether ranks pause between operations; unlike_ranks: whether they do unlike work;
    before: operations of earlier phases."""
    found = [*_uneven(platform, routes, used), *_nested_limits(routes, network), *_turns(platform, network)]
    found += _warm(platform, routes, before)
    if thinks and any(part["steps"] for part in platform["operations"].get("wake", [])):
        found.append("the route 'wake' of ranks that come from a think time")
    if any(spec.get("waiting") == "newest-first" for spec in platform["stations"].values()):
        found.append("that the newest of those who wait are served first, which changes latencies, not the rate")
    if platform["clients"].get("slow_nodes") and any(served.per_node for served in network.served.values()):
        found.append("nodes that are slower than others (slow_nodes)")
    if float(platform["clients"]["speed_sigma"]) > 0 and any(served.per_node for served in network.served.values()):
        found.append("nodes of unlike speed (speed_sigma), which count in its latencies only")
    if unlike_ranks:
        found.append("that ranks do unlike work: each has the mean of all")
    return [f"The analytic solver leaves out {text}." for text in found]


def _uneven(platform: ResolvedPlatform, routes: Sequence[Route], used: Used) -> list[str]:
    """Stations whose instances get unlike shares, because few datasets or objects are spread over them."""
    found = []
    visited = {visit.station for route in routes for visit in route.visits}
    visited |= {flow.station for route in routes for flow in route.flows}
    for name in sorted(visited):
        spec = platform["stations"][name]
        if spec["per"] == "node" or excess(int(spec["count"]), used.places(spec)) < EVEN:
            continue
        if (working := used.instances(spec)) == 1:
            continue  # which the network has
        by_dataset = spec["spread"] == "dataset"
        number, what = (used.datasets, "directories") if by_dataset else (used.objects, "files")
        found.append(
            f"which of the {spec['count']} instances of '{name}' hold the {number:.0f} {what}: it takes "
            f"{working} of them as evenly used"
        )
    return found


def _warm(platform: ResolvedPlatform, routes: Sequence[Route], before: Collection[str]) -> list[str]:
    """Caches that may have been filled by other operations, or in earlier phases, than those that look there now."""
    found = []
    for route in routes:
        others = {other.operation for other in routes} - {route.operation} | set(before)
        for name in sorted(route.missed):
            filled_by = sorted(op for op in others if name in named_by(platform, op, "cache"))
            if filled_by:
                found.append(
                    f"what {', '.join(filled_by)} may have brought into the cache '{name}': each {route.operation} "
                    "looks there in vain"
                )
        found += [
            f"who has the objects of the cache '{name}': each {route.operation} calls its own back from others"
            for name in sorted(route.called_back)
        ]
    return found


def _turns(platform: ResolvedPlatform, network: Network) -> list[str]:
    """Limits whose slots are an instance's own, or go to last comers."""
    found = []
    for held in network.limits:
        spec = platform["limits"][held.name]
        if "of" in spec:
            found.append(f"whose of the instances of '{spec['of']}' a slot of the limit '{held.name}' is")
        if "barging" in spec:
            found.append(
                f"that slots of the limit '{held.name}' go to last comers, so that medians are shorter and tails longer"
            )
    return found


def _nested_limits(routes: Sequence[Route], network: Network) -> list[str]:
    """Limits held within others, of which only the one with the fewest slots has a queue."""
    known = {held.name for held in network.limits}
    held_together = [known & set(step.limits) for route in routes for step in route.steps]
    names = sorted({name for limits in held_together if len(limits) > 1 for name in limits})
    return (
        [f"queues for all but the tightest of the limits that are held at once ({', '.join(names)})"] if names else []
    )

# SPDX-License-Identifier: Apache-2.0
"""The analytic twin: a platform solved as a closed queueing network, in milliseconds.

It reads the same resolved platform as the simulator (docs/platforms.md) and answers for means exactly where the
network has product form. What it always leaves out: the order of operations and the start barrier (ranks are out of
step), think times' feedback (T x the last response makes concurrency swing more than product form has it), unlike
sizes of one operation. What else it leaves out it says with the answer (left_out.py).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from iocast.analytic import network as assembly
from iocast.analytic import response
from iocast.analytic.bounds import Bounds
from iocast.analytic.left_out import left_out
from iocast.analytic.network import Network, Used
from iocast.analytic.routes import Visit, read_routes, small_flows_wait
from iocast.analytic.throughput import Flow, after_stalls, bounds_of, find_flow, stall_effects
from iocast.errors import InputError, RunError
from iocast.records.platform import ResolvedPlatform

__all__ = ["Bounds", "Solution", "solve"]


ROUNDING = 1e-3
"""Relative, of numbers of operations and objects where not all ranks were counted."""


@dataclass(frozen=True)
class Solution:
    """What the network does in its steady state.

    rate: operations per second of all ranks and kinds. quantiles: by operation, seconds: mean, q25, q50, q75, q95, q99,
    q999 and max (the median of the maximum). utilisation: share of its servers (a lock: of its time) in use.
    bottleneck: the station or lock with the highest. bounds: on `rate`, before stalls. mean_in_operation: ranks inside
    an operation, N/(1+T) without overshoot. left_out: a sentence for each mechanism that the simulator has and this
    rate has not. waiting: share of an operation's time that is neither service nor delay. limits: those that have
    fewer slots than ranks.
    """

    rate: float
    quantiles: dict[str, dict[str, float]]
    utilisation: dict[str, float]
    bottleneck: str
    bounds: Bounds
    mean_in_operation: float
    left_out: list[str]
    waiting: float
    limits: list[str]


class NoTime(InputError):
    """No operation takes any time on this platform."""


def solve(
    platform: ResolvedPlatform,
    mix: Mapping[str, float],
    nodes: int,
    ranks_per_node: int,
    waiting_factor: float,
    operations_total: int,
    *,
    size: float | Mapping[str, float] = 0.0,
    blocks: Mapping[str, float] | None = None,
    datasets: float | None = None,
    objects: float = math.inf,
    think_time: float = 0.0,
    unlike_ranks: bool = False,
    before: Collection[str] = (),
    points: int = response.POINTS,
) -> Solution:
    """Forecast a closed-loop workload on a platform.

    platform: resolved (JSON) platform. mix: operations of each kind per iteration. waiting_factor: T, think time over
    response time. operations_total: of all kinds and ranks, for the maxima. size: bytes of a read or write (entries of
    a readdir), for all or by operation. blocks: of one access, by operation; by default one. datasets, objects: that
    all ranks use together, for locks that belong to a dataset and for stations that are spread; by default a dataset
    for each rank, and objects without number. think_time: seconds of thinking after each operation beside T.
    unlike_ranks: whether ranks do unlike work, which is left out. before: operations of earlier phases, which may have
    left something in caches. points: of the response time distributions, a power
    of 2; fewer are faster
    and rougher in the tail. Raises InputError for an operation without a route and for values out of range.
    """
    if nodes < 1 or ranks_per_node < 1:
        raise InputError(f"A placement needs at least one node and one rank a node, not {nodes} x {ranks_per_node}.")
    if not waiting_factor >= 0:
        raise InputError(f"The waiting factor is {waiting_factor}; it must be zero or more.")
    if not think_time >= 0:
        raise InputError(f"The think time is {think_time} s; it must be zero or more.")
    if platform.get("failures"):
        raise InputError(
            f"The platform {platform.get('name', '')} has failures ({', '.join(platform['failures'])}), which happen "
            "at times of their own; the analytic solver knows only what settles; use the simulator."
        )
    thinks = waiting_factor > 0 or think_time > 0
    slowdown = float(platform["clients"].get("wake_slowdown", 1)) if thinks else 1.0
    whole = sum(mix.values())
    each = operations_total / whole if whole > 0 else 0.0
    there = objects - each * mix.get("create", 0.0)
    once = [kind for kind, count in mix.items() if each * count <= (1 + ROUNDING) * there]
    owners = {"node": nodes, "rank": nodes * ranks_per_node}
    lone = [name for name, cache in platform.get("caches", {}).items() if owners.get(cache.get("per", "")) == 1]
    routes = read_routes(platform, mix, size, slowdown, blocks or {}, once, lone)
    used = Used(nodes * ranks_per_node if datasets is None else datasets, objects)
    network = assembly.build(platform, routes, nodes, ranks_per_node, used)
    kinds = sum(r.count for r in routes)
    overshoot = kinds * (float(platform["clients"]["think_overshoot"]) + think_time) if thinks else 0.0
    if network.delays + sum(s.demand for s in network.served.values() if s.waits) <= 0:
        raise NoTime("The platform's routes take no time at all, so there is no rate to forecast.")

    flow = find_flow(network, waiting_factor, overshoot)
    if small_flows_wait(platform, routes, flow.cycles, nodes):
        shared: ResolvedPlatform = {**platform, "network": {**platform["network"], "never_limited": 1.0}}
        return solve(
            shared, mix, nodes, ranks_per_node, waiting_factor, operations_total, size=size, blocks=blocks,
            datasets=datasets, objects=objects, think_time=think_time, unlike_ranks=unlike_ranks, before=before,
            points=points,
        )  # fmt: skip
    bounds = bounds_of(network, waiting_factor, overshoot)
    if not bounds.contain(flow.cycles):
        raise RunError(
            f"Internal error: the solver's {flow.cycles:.6g} iterations a second lie outside the asymptotic bounds "
            f"{bounds.lower:.6g} to {bounds.upper:.6g}. Please report the platform and the placement."
        )
    effects = stall_effects(platform, routes, flow, network.ranks, waiting_factor, kinds * think_time)
    floor = min(
        [1 / (float(platform["stalls"][e.name]["every"]) + e.length * (1 + waiting_factor)) for e in effects],
        default=0.0,
    )
    cycles = after_stalls(flow.cycles, effects, floor * network.ranks / kinds)

    crowds, waits = _crowds(network, flow, points), response.slot_waits(network, flow, routes, points)
    ends = [r.steps[i] for r in routes for i in (0, -1) if r.visits and r.steps[i] in r.visits]
    stations = {visit.station for visit in ends if isinstance(visit, Visit)}
    continuous = waiting_factor == 0 and len(stations) == 1 and all(len(r.visits) == len(r.steps) for r in routes)
    stalls = [
        (e, set(platform["stalls"][e.name]["operations"]), platform["stalls"][e.name]["station"]) for e in effects
    ]
    sigma = float(platform["clients"]["speed_sigma"])
    quantiles = {
        r.operation: response.summarise(
            response.parts_of(r, network, crowds, waits, stalls, continuous, sigma),
            operations_total * r.count / kinds,
            points,
        )
        for r in routes
    }
    utilisation = _utilisation(network, cycles)
    alone = network.delays + sum(s.demand for s in network.served.values() if s.waits)
    bottleneck = max(utilisation, key=lambda name: utilisation[name], default="")
    return Solution(
        rate=cycles * kinds,
        quantiles=quantiles,
        utilisation=utilisation,
        bottleneck=bottleneck,
        bounds=Bounds(bounds.lower * kinds, bounds.upper * kinds),
        mean_in_operation=network.ranks - flow.cycles * flow.think,
        waiting=1 - min(1.0, flow.cycles * alone / (network.ranks - flow.cycles * flow.think)),
        limits=[held.name for held in network.limits],
        left_out=left_out(platform, routes, network, used, thinks, unlike_ranks, before),
    )


def _crowds(network: Network, flow: Flow, points: int) -> dict[str, response.Crowd]:
    crowds = {}
    for name, served in network.served.items():
        if not served.waits:
            net = None
        elif served in network.local:
            net = flow.group
        else:
            net = flow.shared
        crowds[name] = response.Crowd(served, net, points)
    return crowds


def _utilisation(network: Network, cycles: float) -> dict[str, float]:
    """By the utilisation law (Denning & Buzen 1978), slower servers included, lock waits not."""
    result = {}
    for name, served in network.served.items():
        c = min(served.servers, len(served.speed)) if served.waits else served.servers
        slow = c / float(served.speed[c - 1]) if served.waits else 1.0
        busy = cycles * served.demand * slow / served.instances
        if served.background is not None:
            busy += served.background.rate * served.background.demand
        result[name] = min(busy / (served.servers if served.discipline != "ps" else c), 1.0)
        for lock, use in zip(served.lock_names, served.locks, strict=True):
            result[lock] = (
                result.get(lock, 0.0)
                + cycles * served.visits * use.visits * use.hold / use.instances / served.instances
            )
    return result

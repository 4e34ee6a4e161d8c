# SPDX-License-Identifier: Apache-2.0
"""Throughput of a platform's network: think times that follow the response, queues at nodes and limits, stalls."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.optimize import brentq

from iocast.analytic.bounds import Bounds, asymptotic
from iocast.analytic.network import Held, Network
from iocast.analytic.product_form import ClosedNetwork, Station, servers
from iocast.analytic.routes import Route
from iocast.records.platform import ResolvedPlatform, StallDocument


@dataclass(eq=False)
class Flow:
    """The network in equilibrium, stalls aside: cycles per second, think seconds per cycle, and who queues where."""

    cycles: float
    think: float
    shared: ClosedNetwork | None  # of all ranks, or of all slots
    group: (
        ClosedNetwork | None
    )  # of one node's ranks (or, for a limit of the system, all): their own stations and the limit


def find_flow(network: Network, waiting_factor: float, overshoot: float) -> Flow:
    """The equilibrium. `overshoot` is what the sleeps of a cycle last beyond T x response, seconds.

    Without queues at nodes and limits it is exact product form. With them, groups (nodes) and the stations they share
    are two closed networks, each of which sees the other as a delay; the delays are found by bisection. That is exact
    for one group without a limit, for groups that share no queue, for a limit that is always or never full, and as
    groups -> infinity. Between, it misses that customers who wait in one network are missing in the other: 6 % too
    fast for 2 nodes, 2 % for 16, where a node's station and the shared one are equally loaded, and next to nothing
    elsewhere (validation/theory/test_solver.py).
    """
    shared = [s.station() for s in network.shared]
    local = [s.station(network.groups) for s in network.local]
    n, t = network.ranks, waiting_factor
    extra = overshoot

    def think_for(cycles: float) -> float:
        """T x response + overshoot, as cycle = response + think."""
        return t * (n / cycles - extra) / (1 + t) + extra

    if not local and not network.limits:
        return _with_think(shared, network.delays, n, 1, think_for)
    if not shared and not network.limits:
        flow = _with_think(local, network.delays, network.ranks_per_group, network.groups, think_for)
        return Flow(flow.cycles, flow.think, None, flow.shared)

    population = network.population
    inner = network.delays - network.outer_delays
    if not shared and inner <= 0:
        inner = 1e-12 * (network.delays + sum(s.demand for s in local))  # a limit that is held for no time

    def at(absence: float) -> tuple[Flow, float]:
        """Equilibrium if a place at the shared stations is empty `absence` seconds a cycle; its excess."""
        inside = ClosedNetwork(shared, inner + absence, population)
        residence = population / inside.throughput - absence
        think = think_for(inside.throughput)
        waits = {
            s.name: s.instances * inside.mean_queue(s.name) / inside.throughput - s.demand
            for s in shared
            if any(s.name in held.visits for held in network.limits)
        }
        stations = list(local)
        unlimited = residence
        for held in network.limits:
            time = _time_held(held, network, waits)
            unlimited -= time
            if time > 0:
                stations.append(Station(slot_queue(held.name), time, servers(held.slots)))
        group = ClosedNetwork(stations, network.outer_delays + think + max(unlimited, 0.0), network.ranks_per_group)
        gap = n / inside.throughput - network.ranks_per_group / group.throughput
        return Flow(inside.throughput, think, inside, group), gap

    flow, gap = at(0.0)
    if gap >= 0:
        return flow  # places never stay empty
    most = flow.think + network.delays + sum(s.demand for s in local) or n / flow.cycles
    while at(most)[1] < 0:
        most *= 4
    return at(float(brentq(lambda z: at(z)[1], 0.0, most, rtol=1e-8, xtol=1e-300)))[0]


def slot_queue(limit: str) -> str:
    return f"(slots of {limit})"


def _time_held(held: Held, network: Network, waits: Mapping[str, float]) -> float:
    """Seconds a cycle that a slot is held: delays, demands, and all visits' equal share of each station's wait."""
    time = held.delays
    for name, (visits, demand) in held.visits.items():
        time += demand + waits.get(name, 0.0) * visits / network.served[name].visits
    return time


def _with_think(stations: list[Station], delay: float, population: int, groups: int, think_for: Any) -> Flow:
    """Equal groups that share nothing; think time by bisection: damped iteration diverges for T >= 1 in saturation."""

    def at(think: float) -> ClosedNetwork:
        return ClosedNetwork(stations, delay + think, population)

    def gap(think: float) -> float:
        return think - float(think_for(groups * at(think).throughput))

    alone = delay + sum(s.demand / max(1.0, s.best_speed) for s in stations)
    least = float(think_for(groups * population / alone))  # nobody waits
    if least <= 0:
        found = at(0.0)
        return Flow(groups * found.throughput, 0.0, found, None)
    most = least
    while gap(most) < 0:
        most *= 4
    think = least if most == least else float(brentq(gap, least, most, rtol=1e-12))
    found = at(think)
    return Flow(groups * found.throughput, think, found, None)


def bounds_of(network: Network, waiting_factor: float, overshoot: float) -> Bounds:
    """Asymptotic bounds on cycles per second, for any think time that the overshoot allows."""
    stations = [s.station() for s in (*network.shared, *network.local)]
    bounds = asymptotic(stations, network.delays, network.ranks, waiting_factor)
    upper = bounds.upper
    for held in network.limits:
        at_least = held.delays + sum(
            d / network.served[name].station().best_speed for name, (_, d) in held.visits.items()
        )
        if at_least > 0:
            upper = min(upper, held.slots * network.groups / at_least)
    lower = 1 / (1 / bounds.lower + overshoot / network.ranks)
    if network.limits or network.local:
        # A slot is held while its request waits, and a rank waits for a slot behind all others: worst cases multiply.
        lower = 0.0
    return Bounds(lower, upper)


@dataclass(frozen=True)
class StallEffect:
    """What one stall does to the ranks."""

    name: str
    loss: float  # share of the throughput
    hit: float  # probability that a visit of an affected operation meets it
    length: float
    sigma: float
    free: float  # seconds of a cycle in which a rank can't meet it
    free_share: float


def stall_effects(
    platform: ResolvedPlatform,
    routes: Sequence[Route],
    flow: Flow,
    ranks: int,
    waiting_factor: float,
    pause: float = 0.0,
) -> list[StallEffect]:
    """The stall law: a stall of s seconds every P costs (1+T) s/P of the throughput, as each rank then thinks T times
    what it waited.

    A rank loses less when it is busy with other operations as the stall begins; those count as one stretch of the
    cycle, with a share of it by their number. A rank is assumed to meet each stall once, which holds while cycles are
    shorter than periods. `pause`: seconds a cycle of thinking that does not depend on the response; a rank can't meet a
    stall in them either.
    """
    cycle = ranks / flow.cycles
    total = sum(r.count for r in routes)
    effects = []
    for name, stall in platform.get("stalls", {}).items():
        kinds, station = set(stall["operations"]), stall["station"]
        affected = [r for r in routes if r.operation in kinds and any(v.station == station for v in r.visits)]
        length, period = float(stall["length"]), float(stall["every"])
        if not affected:
            continue
        share = 1 - sum(r.count for r in affected) / total * (1 - pause / cycle)
        free = share * cycle
        visits = sum(r.count * sum(v.station == station for v in r.visits) for r in affected) * flow.cycles

        def loss_of(length: float, free: float = free, share: float = share, period: float = period) -> float:
            missed = length - free / 2 if length >= free else length * length / (2 * free)
            return min((1 + waiting_factor) * ((1 - share) * length + share * missed) / period, 1.0)

        length = _settled(stall, length, visits * period, loss_of)
        if length <= 0:
            continue
        loss = loss_of(length)
        met = (1 - share) + share * (1.0 if length > free else length / free)
        hit = min(1.0, ranks * met / (visits * max(1 - loss, 1e-3) * period))
        effects.append(StallEffect(name, loss, hit, length, float(stall["sigma"]), free, share))
    return effects


def _settled(stall: StallDocument, length: float, changes: float, loss_of: Callable[[float], float]) -> float:
    """Mean length of a stall that grows with the changes in a period: `changes` if it stopped nobody."""
    growth, absorbed = float(stall.get("per_change", 0)), float(stall.get("absorbed", 0))

    def excess(seconds: float) -> float:
        return length + growth * max(0.0, changes * (1 - loss_of(seconds)) - absorbed) - seconds

    longest = length + growth * max(0.0, changes - absorbed)
    return float(brentq(excess, 0, longest)) if longest > length else length


def after_stalls(cycles: float, effects: Sequence[StallEffect], floor: float) -> float:
    """Cycles per second with the stalls; at worst (`floor`) each rank gets through one operation a stall."""
    return max(cycles * math.prod(1 - e.loss for e in effects), min(floor, cycles))

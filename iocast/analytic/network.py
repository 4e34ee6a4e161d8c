# SPDX-License-Identifier: Apache-2.0
"""The closed queueing network behind a platform and a mix: customers are ranks, a cycle is one iteration of the mix."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from iocast.analytic import rates as law_of
from iocast.analytic.laws import read_law
from iocast.analytic.product_form import Station, servers
from iocast.analytic.rates import Background, LockUse
from iocast.analytic.routes import Delay, Flow, Route, Visit, at_speed
from iocast.errors import InputError
from iocast.records.platform import ResolvedPlatform, StationDocument

Array = NDArray[np.float64]

LONGEST_HEAD = 2048  # rates kept where their number costs its square: background work at a station of very many servers


@dataclass(eq=False)
class Served:
    """A station of the platform as the mix uses it."""

    name: str
    per_node: bool
    discipline: str
    quantum: float
    instances: int
    servers: int  # of an instance
    service: float  # mean seconds of a visit at full speed
    variation: float  # squared coefficient of variation of that, over the visits of the mix
    visits: float  # per cycle
    speed: Array  # rates without locks and background
    rates: Array  # rates with them
    locks: list[LockUse] = field(default_factory=list)
    lock_names: list[str] = field(default_factory=list)
    found_at_lock: Array = field(default_factory=lambda: np.zeros((1, 0)))
    background: Background | None = None
    waits: bool = True  # False: a server for everyone, so that it is a delay
    forks: bool = False  # some visits have stripes

    @property
    def demand(self) -> float:
        return self.visits * self.service

    def station(self, groups: int = 1) -> Station:
        """As one of `groups` equal parts of the system sees it."""
        return Station(self.name, self.demand, self.rates, max(1, self.instances // groups))


@dataclass(frozen=True)
class Used:
    """What all ranks use together: `datasets` (directories), and `objects` (files)."""

    datasets: float
    objects: float

    def places(self, spec: StationDocument) -> float:
        """At most as many instances of a station can work at once: its requests go by dataset, object or stripe."""
        if spec["per"] == "node":
            return math.inf
        if spec["spread"] == "dataset":
            return self.datasets
        return self.objects * (int(spec["stripe_count"]) if spec["spread"] == "stripe" else 1)

    def instances(self, spec: StationDocument) -> int:
        """Of a station of the system, those that can work at once."""
        return max(1, round(min(float(spec["count"]), self.places(spec))))


@dataclass(eq=False)
class Held:
    """A limit on the requests of a group that some ranks may have to wait for."""

    name: str
    slots: float  # of a group
    delays: float  # seconds of delay a cycle while a slot is held
    visits: dict[str, tuple[float, float]]  # by shared station: visits and demand a cycle while a slot is held


@dataclass(eq=False)
class Network:
    """All that the throughput of a closed network depends on. Delays are seconds per cycle."""

    ranks: int
    groups: int  # nodes, where ranks queue at their own; 1 otherwise
    shared: list[Served]  # stations whose customers come from all groups
    local: list[Served]  # stations of a group: of a node beside others, or before a limit
    delays: float
    outer_delays: float  # part of `delays` outside the limits
    served: dict[str, Served]  # all stations by name
    limits: list[Held]
    population: int  # most customers that all groups can have at the shared stations

    @property
    def ranks_per_group(self) -> int:
        return self.ranks // self.groups


def build(platform: ResolvedPlatform, routes: Sequence[Route], nodes: int, ranks_per_node: int, used: Used) -> Network:
    """The network of a placement. Raises InputError for background work that leaves a station no capacity, and for
    priorities that matter."""
    ranks = nodes * ranks_per_node
    _join_at_shared_links(platform, routes, nodes, used)
    served = {}
    for name, spec in platform["stations"].items():
        visits = [(r.count, v) for r in routes for v in r.visits if v.station == name]
        if visits and sum(w * v.demand.mean for w, v in visits) > 0:
            served[name] = _station(platform, name, spec, visits, nodes, ranks_per_node, used)
            if served[name].waits:
                _check_one_class(
                    platform, name, spec, [r.operation for r in routes if any(v.station == name for v in r.visits)]
                )
    for name, flow in _flows(platform, routes, nodes, used):
        served[name] = flow
    waiting = {n: s for n, s in served.items() if s.waits}
    groups = nodes if any(s.per_node for s in waiting.values()) else 1
    names = _limits(platform, routes, nodes, ranks_per_node)
    if any(platform["limits"][n]["per"] == "node" for n in names):
        groups = nodes
    slots = {n: slots_of(platform, n) / (1 if platform["limits"][n]["per"] == "node" else groups) for n in names}

    limits = {n: Held(n, slots[n], 0.0, {}) for n in names}
    delays = outer = 0.0
    free: set[str] = set()  # stations visited without any limit, and
    held: set[str] = set()  # with one
    for route in routes:
        for step in route.steps:
            holding = holder(step.limits, limits)
            if isinstance(step, Delay):
                name, seconds = "", step.time.mean
            elif isinstance(step, Flow):
                name, seconds = step.queue, step.latency
            else:
                name, seconds = step.station, 0.0 if step.station in waiting else step.demand.mean
            delays += route.count * seconds
            if holding is None:
                outer += route.count * seconds if limits else 0.0
                free.add(name)
                continue
            held.add(name)
            holding.delays += route.count * seconds
            if name in waiting:
                number, seconds = holding.visits.get(name, (0.0, 0.0))
                work = step.demand.mean if isinstance(step, Visit) else waiting[name].service
                holding.visits[name] = (number + route.count, seconds + route.count * work)

    local = [
        s for s in waiting.values() if (s.per_node and groups > 1) or (limits and groups == 1 and s.name not in held)
    ]
    shared = [s for s in waiting.values() if s not in local]
    most = ranks // groups
    if limits and not any(s.name in free for s in shared):
        most = min(most, max(1, round(sum(slots.values()))))
    return Network(ranks, groups, shared, local, delays, outer, served, list(limits.values()), most * groups)


def _check_one_class(platform: ResolvedPlatform, name: str, spec: StationDocument, operations: Sequence[str]) -> None:
    """Raises InputError where some wait for others that came after them: the queue has no product form."""
    if "priority" not in spec:
        return
    place = {work: i for i, works in enumerate(spec["priority"]) for work in works}
    coming = [*operations, *(["background"] if _background(platform, name, 1) else [])]
    if len({place.get(work, place["rest"]) for work in coming}) > 1:
        raise InputError(
            f"The station {name} serves some of its work ({', '.join(dict.fromkeys(coming))}) before other; the "
            "analytic solver knows only one queue a station; use the simulator."
        )


def holder(names: Sequence[str], limits: Mapping[str, Held]) -> Held | None:
    """Of the limits held at once the one with the fewest slots; queues for the others are left out."""
    return min((limits[n] for n in names if n in limits), key=lambda held: held.slots, default=None)


def _station(
    platform: ResolvedPlatform,
    name: str,
    spec: StationDocument,
    visits: list[tuple[float, Visit]],
    nodes: int,
    ranks_per_node: int,
    used: Used,
) -> Served:
    per_node = spec["per"] == "node"
    instances, count = (nodes if per_node else used.instances(spec)), int(spec["servers"])
    total = sum(w for w, _ in visits)
    stripes = max(v.stripes for _, v in visits)
    if stripes > 1:  # the instances act as one, which a visit with fewer stripes keeps busy in part
        instances = max(1, instances // stripes)
        largest = sum(w * v.demand.mean_of_largest(v.stripes) for w, v in visits)
        largest /= sum(w * v.demand.mean for w, v in visits)
        visits = [(w, replace(v, demand=v.demand.times(v.stripes / stripes))) for w, v in visits]
    elif in_turn(spec):
        count, instances = count * instances, 1
    service = sum(w * v.demand.mean for w, v in visits) / total
    second = sum(w * (v.demand.variance + v.demand.mean**2) for w, v in visits) / total
    background = _background(platform, name, instances)

    uses: dict[str, list[tuple[float, Visit]]] = {}
    for w, v in visits:
        if v.lock:
            uses.setdefault(v.lock, []).append((w, v))
    owners = {"system": 1.0, "node": float(nodes), "dataset": used.datasets}
    numbers = {lock: owners[platform["locks"][lock]["per"]] for lock in uses}
    if numbers and min(numbers.values()) < instances:
        # A lock that several instances share makes them one queue for it.
        count, instances, per_node, background = count * instances, 1, False, _background(platform, name, 1)
    locks = [
        LockUse(
            sum(w for w, _ in of) / total,
            sum(w * v.demand.mean * v.lock_share for w, v in of) / sum(w for w, _ in of),
            max(1, round(numbers[lock] / instances)),
        )
        for lock, of in uses.items()
    ]

    most = ranks_per_node if per_node and nodes > 1 else nodes * ranks_per_node
    contention, coherency = spec.get("contention", 0.0), spec.get("coherency", 0.0)
    crowding = spec.get("crowding", 0.0)
    speeds = [float(speed) for speed in spec.get("speeds", ())]
    endless = count >= most and not (contention or coherency or speeds or locks or background or stripes > 1)
    extra = 0 if background is None else round(4 * background.rate * background.demand + 100)
    kept = 1 if endless else min(count, most + extra)
    if background is not None:
        kept = min(kept, LONGEST_HEAD)
    speed = law_of.measured(kept, speeds) if speeds else law_of.scalability_law(kept, contention, coherency)
    if crowding and spec["discipline"] != "ps" and most > count:
        waiting = np.arange(1.0, (most if background is None else min(most, LONGEST_HEAD)) - count + 1.0)
        speed = np.concatenate((speed, speed[-1] / (1 + crowding * np.log1p(waiting / count))))
    full, found = law_of.with_locks(speed, service, locks)
    if stripes > 1:
        full = law_of.forked(full, largest, most if background is None else min(most, LONGEST_HEAD))
    if background is not None:
        if (load := background.load(full)) >= 1:
            raise InputError(
                f"The background work at station {name} asks for {100 * load:.0f} % of it, which leaves nothing."
            )
        full = law_of.with_background(full, service, background)
    return Served(
        name, per_node, str(spec["discipline"]), float(spec.get("quantum", 0)), instances, count, service,
        max(second / service**2 - 1, 0.0), total, speed, full, locks, list(uses), found, background, not endless,
        stripes > 1,
    )  # fmt: skip


def _background(platform: ResolvedPlatform, station: str, instances: int) -> Background | None:
    """All background work of a station, as one instance has it."""
    rate = first = second = 0.0
    for work in platform.get("background", {}).values():
        if work["station"] == station and float(work["rate"]) > 0:
            law = at_speed(platform, station, read_law(work["demand"]))
            rate += float(work["rate"])
            first += float(work["rate"]) * law.mean
            second += float(work["rate"]) * (law.variance + law.mean**2)
    if first <= 0:
        return None
    return Background(rate / instances, first / rate, max(second * rate / first**2 - 1, 0.0))


def _number(spec: StationDocument, nodes: int, used: Used) -> dict[str, int]:
    """Of the resources of each kind that flows to this station use."""
    instances = nodes if spec["per"] == "node" else used.instances(spec)
    return {"node": nodes, "server": instances, "disk": instances, "backbone": 1, "window": nodes * instances}


def _join_at_shared_links(platform: ResolvedPlatform, routes: Sequence[Route], nodes: int, used: Used) -> None:
    """Makes queues of flows one where a link that they share is busier than all else of each: the backbone of both
    directions and all stations, cards of nodes of several stations."""
    shares: dict[str, dict[tuple[str, str], float]] = {}  # by queue and resource, of each of these
    for route in routes:
        for flow in route.flows:
            number, own = _number(platform["stations"][flow.station], nodes, used), shares.setdefault(flow.queue, {})
            for kind, seconds in flow.uses.items():
                own[kind] = own.get(kind, 0.0) + route.count * seconds / number[kind[0]]
    of_all = {kind: sum(own.get(kind, 0.0) for own in shares.values()) for own in shares.values() for kind in own}
    for link in sorted(of_all, key=lambda kind: of_all[kind], reverse=True):
        queues = [name for name, own in shares.items() if link in own]
        if link[0] not in ("backbone", "node") or len(queues) < 2:
            continue
        if of_all[link] <= max(share for name in queues for share in shares[name].values()):
            continue
        name = f"network ({' '.join(filter(None, reversed(link)))})"
        for route in routes:
            route.steps = [
                replace(step, queue=name, uses={link: step.uses[link]})
                if isinstance(step, Flow) and step.queue in queues and link in step.uses
                else step
                for step in route.steps
            ]
        for joined in queues:
            del shares[joined]


def _flows(platform: ResolvedPlatform, routes: Sequence[Route], nodes: int, used: Used) -> list[tuple[str, Served]]:
    """Bulk transfers: those of a queue share it as processors are shared.

    A lone flow runs as if nobody else were there, n flows together until the resource is used up that is the busiest.
    Of nodes that takes an even spread for granted; instances that flows choose by chance have queues of their own.
    """
    queues: dict[str, list[tuple[float, Flow]]] = {}
    for route in routes:
        for flow in route.flows:
            queues.setdefault(flow.queue, []).append((route.count, flow))
    result = []
    for name, flows in queues.items():
        spec = platform["stations"][flows[0][1].station]
        number = _number(spec, nodes, used)
        instances = number["server"]
        sums: dict[tuple[str, str], float] = {}
        for count, flow in flows:
            for resource, seconds in flow.uses.items():
                sums[resource] = sums.get(resource, 0.0) + count * seconds
        alone = sum(count * flow.seconds for count, flow in flows)
        kind = max(sums, key=lambda resource: sums[resource] / number[resource[0]], default=("", ""))
        if not sums.get(kind):
            continue
        by_chance = kind[0] in ("server", "disk") and spec["per"] != "node" and not in_turn(spec)
        at_once = max(flow.instances for _, flow in flows)
        queues_apart = max(instances // at_once, 1) if by_chance else 1
        work = servers(max(1.0, alone / sums[kind] * number[kind[0]] / queues_apart))
        visits = sum(count for count, _ in flows)
        served = Served(name, False, "ps", 0.0, queues_apart, len(work), alone / visits, 0.0, visits, work, work)
        result.append((name, served))
    return result


def in_turn(spec: StationDocument) -> bool:
    """Whether objects go to one instance after the other, so that these are taken as one with the servers of all."""
    return spec.get("allocation") == "round-robin"


def slots_of(platform: ResolvedPlatform, limit: str) -> int:
    """Of each owner; those of a station's instances together."""
    spec = platform["limits"][limit]
    return int(spec["slots"]) * (int(platform["stations"][spec["of"]]["count"]) if "of" in spec else 1)


def _limits(platform: ResolvedPlatform, routes: Sequence[Route], nodes: int, ranks_per_node: int) -> list[str]:
    """Limits in use that have fewer slots than there are ranks to fill them."""
    used: set[str] = set().union(*(r.limits for r in routes))
    result = []
    for name in sorted(used):
        spec = platform["limits"][name]
        if slots_of(platform, name) < ranks_per_node * (1 if spec["per"] == "node" else nodes):
            result.append(name)
    return result

# SPDX-License-Identifier: Apache-2.0
"""From a resolved platform and an operation mix to what a queueing network needs: visits and delays per iteration."""

from __future__ import annotations

import difflib
import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from iocast.analytic.laws import Law, constant, read_law
from iocast.errors import InputError
from iocast.records.platform import (
    BELOW,
    Direction,
    DiskDocument,
    NetworkDocument,
    ResolvedPlatform,
    StationDocument,
    Step,
)

FALLBACKS = {"mkdir": "create", "rmdir": "unlink"}
FROM_THE_START = ("create", "read")
"""Operations on an object's bytes from the first one on."""
CONTENT = ("write", "read")
"""Parts of operations that move content."""
ACCESSES = (*FROM_THE_START, "append", "pwrite", "pread")
HALF = 0.5
"""Of a link's bandwidth, beyond which the simulator has small transfers share it as well."""


@dataclass(frozen=True, eq=False)
class Visit:
    """One visit to a station."""

    station: str
    demand: Law
    lock: str = ""
    lock_share: float = 0.0
    shares_lock: bool = False  # with others that do
    limits: tuple[str, ...] = ()
    stripes: int = 1  # parts at instances of their own, `demand` each


@dataclass(frozen=True, eq=False)
class Delay:
    time: Law
    limits: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Flow:
    """Bytes that move over the network, at a station's disk, or at both at the same time, beside others of the `queue`.

    Alone they take `seconds` after the `latency`. uses: seconds of each resource, by its kind ("node", "server" and
    "disk", one a client node or instance; "backbone", one for all; "window", one a pair of node and instance) and the
    direction where that matters.
    """

    station: str
    queue: str
    seconds: float
    uses: Mapping[tuple[str, str], float]
    limits: tuple[str, ...] = ()
    latency: float = 0.0
    instances: int = 1  # of the station where it is at the same time


@dataclass(eq=False)
class Route:
    """One operation kind: how many of it an iteration has, and its steps in order (parts one after another)."""

    operation: str
    count: float
    steps: list[Visit | Delay | Flow] = field(default_factory=list)
    once: bool = False  # no object sees it twice
    missed: set[str] = field(default_factory=set)  # caches whose look-ups are taken as misses
    called_back: set[str] = field(default_factory=set)  # caches of which others are taken to have its objects
    filled: Collection[str] = ()  # buffers, by some operation of the mix
    lone: Collection[str] = ()  # caches of a single client
    small: list[Flow] = field(default_factory=list)  # that are among the steps as delays

    @property
    def visits(self) -> list[Visit]:
        return [s for s in self.steps if isinstance(s, Visit)]

    @property
    def delays(self) -> list[Delay]:
        return [s for s in self.steps if isinstance(s, Delay)]

    @property
    def flows(self) -> list[Flow]:
        return [s for s in self.steps if isinstance(s, Flow)]

    @property
    def limits(self) -> set[str]:
        return {name for s in self.steps for name in s.limits}


def read_routes(
    platform: ResolvedPlatform,
    mix: Mapping[str, float],
    size: float | Mapping[str, float],
    slowdown: float = 1.0,
    blocks: Mapping[str, float] = MappingProxyType({}),
    once: Collection[str] = (),
    lone: Collection[str] = (),
) -> list[Route]:
    """The route of each operation of `mix` that occurs.

    `size` is the bytes of one read or write; by operation, or one for all. Only by operation can it say how many
    entries are listed (of `readdir`), and that objects are empty. `blocks`: of a strided access, by operation; one
    where it has none. `slowdown` is a factor on demands at stations of a node. `once`: operations that no object sees
    twice, whose look-ups in caches of objects are misses, as those of whole objects in caches of pages are. `lone`:
    caches that only one node or rank has, from whom nothing is called back.

    Raises InputError for an operation without a route or with demands by entry, buffers, caches or mechanisms, for
    locks that some share and some don't, and for a mix with nothing in it.
    """
    known = platform["operations"]
    routes = []
    filled = {name for operation, count in mix.items() if count > 0 for name in named_by(platform, operation, "buffer")}
    for operation, count in mix.items():
        if not count >= 0:
            raise InputError(f"The mix asks for {count} {operation} an iteration; it must be zero or more.")
        if count == 0:
            continue
        borrowed = operation not in known
        name = FALLBACKS.get(operation, operation) if borrowed else operation
        if name not in known:
            near = difflib.get_close_matches(operation, list(known), 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise InputError(
                f"The platform {platform.get('name', '')} has no route for {operation}; "
                f"it has {', '.join(sorted(known))}.{hint}"
            )
        route = Route(operation, float(count), once=operation in once, filled=filled, lone=lone)
        for part in known[name]:
            each = size.get(operation, 0.0) if isinstance(size, Mapping) else size
            number = blocks.get(operation, 1.0)
            if part["part"] in CONTENT and isinstance(size, Mapping) and each == 0:
                continue  # an empty object has no content that a request would move
            _read_steps(platform, part["steps"], each, number, (), not borrowed, route, isinstance(size, Mapping))
        routes.append(route)
    _drop_shared_locks(routes)
    for route in routes:
        for i, step in enumerate(route.steps):
            if isinstance(step, Visit) and platform["stations"][step.station]["per"] == "node" and slowdown != 1:
                route.steps[i] = replace(step, demand=step.demand.times(slowdown))
    if not routes:
        raise InputError("The mix has no operations: give at least one with a count above zero.")
    return routes


def named_by(platform: ResolvedPlatform, operation: str, key: Literal["cache", "buffer"]) -> set[str]:
    """What steps of the operation's route name under this key: caches that it looks into (`cache`), buffers that it
    fills (`buffer`)."""

    def of(steps: list[Step]) -> Iterator[str]:
        for step in steps:
            if key in step:
                yield str(step[key])
            for inner in BELOW:
                yield from of(step.get(inner, []))

    return {name for part in platform["operations"].get(operation, []) for name in of(part["steps"])}


def _drop_shared_locks(routes: list[Route]) -> None:
    """Locks that all share make nobody wait. Raises InputError for those that some take shared and some alone."""
    alone = {
        visit.lock: route.operation
        for route in routes
        for visit in route.visits
        if visit.lock and not visit.shares_lock
    }
    for route in routes:
        for i, step in enumerate(route.steps):
            if not isinstance(step, Visit) or not step.shares_lock:
                continue
            if step.lock in alone:
                raise InputError(
                    f"The route of {route.operation} shares the lock '{step.lock}', which {alone[step.lock]} takes "
                    "alone; how long readers and writers wait for each other the analytic solver can't know; use the "
                    "simulator."
                )
            route.steps[i] = replace(step, lock="", lock_share=0.0)


def _read_steps(
    platform: ResolvedPlatform,
    steps: list[Step],
    size: float,
    blocks: float,
    limits: tuple[str, ...],
    transfers: bool,
    route: Route,
    knows_entries: bool,
) -> None:
    for step in steps:
        if step.get("stripes") == "spanned" and "station" in step:
            step = {**step, "stripes": _spanned(platform["stations"][step["station"]], step, size, route.operation)}
        if "limit" in step:
            inner = (*limits, step["limit"])
            _read_steps(platform, step["steps"], size, blocks, inner, transfers, route, knows_entries)
        elif "buffer" in step or "flush" in step:
            if not transfers:
                continue
            name = step.get("buffer") or step["flush"]
            if name not in route.filled:
                continue  # there is nothing to wait for
            raise InputError(
                f"The route of {route.operation} waits for the buffer '{name}', whose filling and draining the "
                "analytic solver can't know; use the simulator."
            )
        elif "forget" in step:
            if not step.get("recall") or step["forget"] in route.lone:
                continue  # it takes no time
            if not route.once or "objects" not in platform["caches"][step["forget"]]:
                raise InputError(
                    f"The route of {route.operation} calls back what others have in the cache '{step['forget']}'; who "
                    "has it hangs on what was used before, which the analytic solver can't know; use the simulator "
                    "(--solver simulate)."
                )
            route.called_back.add(step["forget"])
            _read_steps(platform, step["recall"], size, blocks, limits, transfers, route, knows_entries)
        elif "cache" in step:
            waits = "ahead" in platform["caches"][step["cache"]] and route.operation in ("read", "pread")
            if not {"hit", "miss", "evict"} & set(step) and not waits:
                continue  # it takes no time
            whole = "objects" in platform["caches"][step["cache"]] or route.operation == "read"
            if route.once and whole and "evict" not in step:
                route.missed.add(step["cache"])
                missed = step.get("miss", [])
                _read_steps(platform, missed, size, blocks, limits, transfers, route, knows_entries)
                continue
            raise InputError(
                f"The route of {route.operation} looks into the cache '{step['cache']}'; how often it hits hangs on "
                "what was used before, which the analytic solver can't know; use the simulator (--solver simulate)."
            )
        elif "delay" in step:
            route.steps.append(Delay(read_law(step["delay"]), limits))
        elif "transfer" in step:
            if not transfers:
                continue
            _read_transfer(platform, step, size, limits, route)
        elif "disk" in step:
            if transfers:
                _read_disk(platform, step["station"], step["disk"], size, limits, route)
        elif "station" not in step:
            kind, named = next(iter(step.items()))
            raise InputError(
                f"The route of {route.operation} has the step '{kind}: {named}' of a mechanism, whose state hangs on "
                "what was done before, which the analytic solver can't know; use the simulator."
            )
        else:
            demand, bandwidth = (
                at_speed(platform, step["station"], read_law(step["demand"])),
                float(step.get("bandwidth", 0)),
            )
            stripes = int(step.get("stripes", 1))
            if step.get("per") == "entry":
                if not knows_entries:
                    raise InputError(
                        f"The route of {route.operation} has a demand for each entry that is listed, which the "
                        "analytic solver can't know; use the simulator."
                    )
                demand = demand.times(size)
            elif step.get("per") == "block":
                demand = demand.times(blocks)
            if bandwidth > 0:
                demand = demand.plus(size / stripes / bandwidth)
            lock, share = step.get("lock") or "", float(step.get("lock_share", 0))
            shares = bool(lock) and share > 0 and step.get("lock_mode") == "shared"
            if lock and "extent" in platform["locks"][lock]:
                raise InputError(
                    f"The route of {route.operation} takes the lock '{lock}' on ranges of an object; which of them "
                    "nodes keep depends on the order of earlier requests, which the analytic solver can't know; use "
                    "the simulator."
                )
            if lock and (
                (platform["locks"][lock]["per"] == "object" and not shares) or "hand_over" in platform["locks"][lock]
            ):
                raise InputError(
                    f"The route of {route.operation} takes the lock '{lock}', which is an object's or is kept by "
                    "nodes; the analytic solver can't know who has it in turn; use the simulator."
                )
            route.steps.append(
                Visit(step["station"], demand, lock if share > 0 else "", share, shares, limits, stripes)
            )


def _read_transfer(platform: ResolvedPlatform, step: Step, size: float, limits: tuple[str, ...], route: Route) -> None:
    """With a demand requests that are answered: one, at a server, over the network and at the disk, or a train of them.
    Else a stream over the network and at the disk at the same time.

    Raises InputError where links differ.
    """
    network, name, direction = platform.get("network", {}), step["station"], step["transfer"]
    station = platform["stations"][name]
    if {"topology", "servers", "routers"} & set(network):
        raise InputError(
            f"The route of {route.operation} moves bytes over a network whose links differ "
            f"({network.get('topology', 'star with servers of several bandwidths')}); which of them are busy depends "
            "on where both ends are, which the analytic solver can't know; use the simulator."
        )
    kept = station.get("redundancy", {})
    if "data" in kept:
        raise InputError(
            f"The route of {route.operation} moves shards of '{name}' between its instances, which the analytic solver "
            "doesn't know; use the simulator."
        )
    disk = _disk(platform, name, route) if "disk" in station else {}
    wire, latency = _wire(network, direction, size), float(network.get("latency", 0))
    if "copies" in kept and direction == "write":
        _read_copies(platform, step, size, disk, wire, limits, route)
        return
    if "demand" not in step:
        streams = bool(disk) and float(disk["overhead"]) == 0
        uses = wire | ({("disk", ""): size / float(disk[direction])} if streams else {})
        queue = _queue(name, direction, disk if streams else {})
        _add_flow(platform, Flow(name, queue, max(uses.values(), default=0.0), uses, limits, latency), size, route)
        if disk and not streams:
            _read_disk(platform, name, direction, size, limits, route)
        return
    demand, rpc = at_speed(platform, name, read_law(step["demand"])), station["rpc"]
    if size > float(rpc["size"]):
        route.steps.append(_train(station, disk, wire, direction, size, demand.mean, latency, name, limits))
        return
    route.steps.append(Visit(name, demand, limits=limits))
    queue = _queue(name, direction, {})
    _add_flow(platform, Flow(name, queue, max(wire.values(), default=0.0), wire, limits, 2 * latency), size, route)
    if disk:
        _read_disk(platform, name, direction, size, limits, route)


def _read_copies(
    platform: ResolvedPlatform,
    step: Step,
    size: float,
    disk: DiskDocument,
    wire: Mapping[tuple[str, str], float],
    limits: tuple[str, ...],
    route: Route,
) -> None:
    """A write to an instance that then has it on its disk and on those of others, to which it sends it; in a train of
    requests both at the same time."""
    name, latency = step["station"], float(platform.get("network", {}).get("latency", 0))
    station = platform["stations"][name]
    copies = int(station["redundancy"]["copies"])
    queue, card = _queue(name, "write", disk), wire.get(("server", "write"), 0.0)
    uses = {
        ("server", "write"): (copies - 1) * card,
        ("server", "copies"): (copies - 1) * card,
        ("disk", ""): copies * size / float(disk["write"]) + copies * float(disk["overhead"]) if disk else 0.0,
    }
    demand = at_speed(platform, name, read_law(step["demand"])) if "demand" in step else None
    if demand and size > float(station["rpc"]["size"]):
        train = _train(station, {}, wire, "write", size, demand.mean, latency, name, limits)
        both = {kind: train.uses.get(kind, 0.0) + uses.get(kind, 0.0) for kind in {**train.uses, **uses}}
        route.steps.append(replace(train, queue=queue, uses=both, instances=copies))
        return
    if demand:
        route.steps.append(Visit(name, demand, limits=limits))
    ways = 2 if demand else 1
    sent = Flow(name, queue, max(wire.values(), default=0.0), wire, limits, ways * latency)
    alone = max(card, uses["disk", ""] / copies)
    _add_flow(platform, sent, size, route)
    _add_flow(platform, Flow(name, queue, alone, uses, limits, latency, copies), size, route)


def _train(
    station: StationDocument,
    disk: DiskDocument,
    wire: Mapping[tuple[str, str], float],
    direction: Direction,
    size: float,
    demand: float,
    latency: float,
    name: str,
    limits: tuple[str, ...],
) -> Flow:
    """Requests, several on their way at a time: the first one passes all stages, behind it come the others as fast as
    the slowest stage (docs/platforms.md, "Trains of requests")."""
    each, window = float(station["rpc"]["size"]), int(station["rpc"]["in_flight"])
    on_wire = max(wire.values(), default=0.0) * each / size
    at_disk = each / float(disk[direction]) + float(disk["overhead"]) if disk else 0.0
    whole, held = 2 * latency + on_wire + demand + at_disk, demand + at_disk
    crew = int(station["servers"])
    pace = max(on_wire, at_disk)
    fill = whole - pace
    if demand > 0 and held / crew > pace:
        fill, pace = whole - held + (crew - 1) * pace, held / crew
    fill = min(fill, (window - 1) * pace)
    requests = size / each
    uses = dict(wire) | {("window", ""): requests * whole / window}
    if disk:
        uses[("disk", "")] = requests * at_disk
    if demand > 0:
        uses[("server", "threads")] = requests * held / crew
    return Flow(name, _queue(name, direction, disk), fill + max(uses.values()), uses, limits)


def _queue(name: str, direction: Direction, disk: DiskDocument) -> str:
    """Of those that wait for each other: reads and writes do at a disk."""
    return f"disk ({name})" if disk else f"network ({direction} {name})"


def _wire(network: NetworkDocument, direction: Direction, size: float) -> dict[tuple[str, str], float]:
    """Seconds that these bytes take of each kind of links."""
    bandwidths = {
        ("node", direction): network.get("node_bandwidth", 0.0),
        ("server", direction): network.get("server_bandwidth", 0.0),
        ("backbone", ""): network.get("backbone_bandwidth", 0.0),
    }
    return {kind: size / bandwidth for kind, bandwidth in bandwidths.items() if bandwidth > 0}


def _add_flow(platform: ResolvedPlatform, flow: Flow, size: float, route: Route) -> None:
    """As a delay where it is too small to make others wait."""
    if size >= float(platform.get("network", {}).get("never_limited", 0)):
        route.steps.append(flow)
    elif flow.latency + flow.seconds > 0:
        route.steps.append(Delay(constant(flow.latency + flow.seconds), flow.limits))
        route.small.append(flow)


def small_flows_wait(platform: ResolvedPlatform, routes: Sequence[Route], cycles: float, nodes: int) -> bool:
    """Whether flows that are too small to make others wait use more than HALF of a link or disk, at this number of
    iterations a second; then they do (docs/platforms.md, "Network")."""
    used: dict[tuple[str, str, str], float] = defaultdict(float)  # kind, direction and station: share of each
    small = {(flow.station, kind) for route in routes for flow in route.small for kind in flow.uses}
    for route in routes:
        for flow in (*route.small, *route.flows):
            for kind, seconds in flow.uses.items():
                own, spec = kind[0] in ("server", "disk"), platform["stations"][flow.station]
                of_nodes = kind[0] == "node" or (own and spec["per"] == "node")
                count = nodes if of_nodes else spec["count"] if own else 1
                if (flow.station, kind) in small and kind[0] != "window":
                    used[(*kind, flow.station if own else "")] += cycles * route.count * seconds / count
    return max(used.values(), default=0.0) > HALF


def _disk(platform: ResolvedPlatform, name: str, route: Route) -> DiskDocument:
    """Raises InputError for a disk that is no processor-sharing queue of its own."""
    disk: DiskDocument = platform["stations"][name]["disk"]
    own = next((key for key in ("together", "slowdown") if key in disk), None)
    if own or disk["discipline"] == "fifo":
        raise InputError(
            f"The route of {route.operation} is at the disk of '{name}', whose {own or 'order (fifo)'} the analytic "
            "solver doesn't know; use the simulator."
        )
    return disk


def _read_disk(
    platform: ResolvedPlatform, name: str, direction: Direction, size: float, limits: tuple[str, ...], route: Route
) -> None:
    disk = _disk(platform, name, route)
    seconds = size / float(disk[direction]) + float(disk["overhead"])
    flow = Flow(name, f"disk ({name})", seconds, {("disk", ""): seconds}, limits)
    if float(disk["overhead"]) > 0:
        route.steps.append(flow)
    else:
        _add_flow(platform, flow, size, route)


def at_speed(platform: ResolvedPlatform, station: str, demand: Law) -> Law:
    """The demand at a station whose servers have another speed than 1: seconds of service, without time by
    bandwidth."""
    return demand.times(1 / float(platform["stations"][station].get("speed", 1)))


def _spanned(station: StationDocument, step: Step, size: float, operation: str) -> int:
    """How many equal parts an access is cut into at the boundaries of stripes.

    Raises InputError where that depends on more than its size, and for a transfer in several parts.
    """
    stripe = float(station["stripe_size"])
    if size == 0 or operation not in ACCESSES or int(station["stripe_count"]) == 1:
        return 1
    parts = min(math.ceil(size / stripe), int(station["stripe_count"]))
    if parts > 1 and station.get("allocation") == "by-stripe":
        raise InputError(
            f"The route of {operation} goes to {parts} stripes or more, which lie by chance (allocation: by-stripe), "
            "some of them together; use the simulator."
        )
    if operation in FROM_THE_START and (parts == 1 or (size % (stripe * parts) == 0 and "transfer" not in step)):
        return parts
    raise InputError(
        f"The route of {operation} goes to the stripes that an access of {size:g} bytes spans, which are not equal "
        "parts for the analytic solver; use the simulator."
    )

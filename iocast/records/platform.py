# SPDX-License-Identifier: Apache-2.0
"""A platform as iocast-sim resolves it (docs/platforms.md, 'The resolved platform'): every default and law filled in.
Sections and keys that a platform does without are left out."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


Direction = Literal["read", "write"]


class LawDocument(TypedDict, total=False):
    """A non-negative random time in seconds; `quantiles` at probabilities (i + 0.5)/len. `name`: of a demand."""

    law: str
    mean: float
    variance: float
    quantiles: list[float]
    name: str


class Step(TypedDict, total=False):
    """A step of a route (docs/platforms.md, 'Routes'). What kind it is, follows from which keys it has."""

    station: str
    demand: LawDocument
    bandwidth: float
    per: str
    stripes: int | str
    lock: str
    lock_mode: str
    lock_share: float
    recall: list[Step]
    limit: str
    steps: list[Step]
    delay: LawDocument
    transfer: Direction
    disk: Direction
    buffer: str
    flush: str
    of: str
    cache: str
    hit: list[Step]
    miss: list[Step]
    evict: list[Step]
    forget: str


BELOW: tuple[Literal["steps", "hit", "miss", "recall", "evict"], ...] = ("steps", "hit", "miss", "recall", "evict")
"""Keys of a step with steps below it."""


class RoutePart(TypedDict):
    """Steps of an operation; `part` is empty for those of no named part."""

    part: str
    steps: list[Step]


class DiskDocument(TypedDict, total=False):
    """`read`, `write`: bytes a second."""

    read: float
    write: float
    overhead: float
    discipline: str
    slowdown: list[float]
    together: float


class Redundancy(TypedDict, total=False):
    copies: int
    data: int
    parity: int


class Rpc(TypedDict):
    size: int
    in_flight: int


class StationDocument(TypedDict, total=False):
    per: str
    count: int
    servers: int
    discipline: Literal["fcfs", "ps", "timeslice"]
    quantum: float
    wakeup: str
    waiting: str
    spread: str
    allocation: str
    stripe_size: int
    stripe_count: int
    contention: float
    coherency: float
    crowding: float
    speed: float
    speeds: list[float]
    priority: list[list[str]]
    disk: DiskDocument
    redundancy: Redundancy
    rpc: Rpc


class LimitDocument(TypedDict, total=False):
    per: str
    slots: int
    of: str
    barging: float


class LockDocument(TypedDict, total=False):
    per: str
    station: str
    extent: int
    hand_over: LawDocument
    message: LawDocument
    hot: float


class StallDocument(TypedDict, total=False):
    station: str
    operations: list[str]
    every: float
    length: float
    sigma: float
    absorbed: float
    per_change: float


class BackgroundDocument(TypedDict):
    station: str
    rate: float
    demand: LawDocument


class CacheDocument(TypedDict, total=False):
    per: str
    station: str
    capacity: int
    objects: int
    page: int
    unit: int
    ahead: int
    at_once: int
    fetch: list[Step]
    follows: str
    valid: float
    valid_at_most: float


class BufferDocument(TypedDict, total=False):
    per: str
    station: str
    capacity: int
    unit: int
    at_once: int
    above: float
    resume: float
    linger: float
    drain: list[Step]


class ClientsDocument(TypedDict, total=False):
    speed_sigma: float
    slow_nodes: dict[str, float | str]
    wake_slowdown: float
    think_overshoot: float
    collective: dict[str, int]


class NetworkDocument(TypedDict, total=False):
    """`never_limited`: bytes of a transfer that never shares a link."""

    latency: float
    hop_latency: float
    node_bandwidth: float
    server_bandwidth: float
    backbone_bandwidth: float
    never_limited: float
    topology: str
    servers: dict[str, dict[str, Any]]
    routers: dict[str, Any]


class LevelDocument(TypedDict, total=False):
    level: str
    count: int
    each: int
    of: str
    links: int
    bandwidth: float
    tapering: float


class SwitchesOfServers(TypedDict):
    count: int
    switches: int
    among_nodes: bool


class TopologyDocument(TypedDict, total=False):
    """Of iocast-sim --describe: the levels of a network's switches, bytes a second between and out of two halves."""

    topology: str
    nodes: int
    levels: list[LevelDocument]
    bisection: float
    half: float
    servers: dict[str, SwitchesOfServers]


class MechanismDocument(TypedDict, total=False):
    """Of a section that a mechanism has: what its file declares (docs/extend.md, 'Mechanism'). `says`: words for its
    step, {} for the name; `pieces`: key of steps in the background; `units`, `defaults`: of its numbers."""

    word: str
    step: str
    says: str
    pieces: str
    units: dict[str, str]
    defaults: dict[str, float]


class ResolvedPlatform(TypedDict, total=False):
    name: str
    file: str
    description: str
    source: str
    serves: dict[str, Any]
    clients: ClientsDocument
    stations: dict[str, StationDocument]
    limits: dict[str, LimitDocument]
    locks: dict[str, LockDocument]
    stalls: dict[str, StallDocument]
    failures: dict[str, dict[str, Any]]
    background: dict[str, BackgroundDocument]
    caches: dict[str, CacheDocument]
    buffers: dict[str, BufferDocument]
    network: NetworkDocument
    topology: TopologyDocument
    operations: dict[str, list[RoutePart]]
    mechanisms: dict[str, MechanismDocument]

# SPDX-License-Identifier: Apache-2.0
"""Links that a platform limits, and operations that move no bytes over them. Requests and answers have bytes; a
platform whose routes leave them out can't know when a link is full of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

from iocast.platforms.documents import steps_of
from iocast.platforms.fitted import Fitted
from iocast.platforms.platform_names import route_name
from iocast.records.fitted import LinkBytes, MovedAtMost
from iocast.records.forecast import Ends
from iocast.records.platform import NetworkDocument, ResolvedPlatform, Step
from iocast.runs.limits_of import route_of, transfers
from iocast.rules import blend
from iocast.runs.measured import speaks_of
from iocast.runs.question import Question
from iocast.records.note import LinkFull, LinkPerhapsFull, LinkUnknown, Note

REQUEST_BYTES = 4096
"""Bytes of an operation's requests, or of their answers, that its forecast allows for where the platform moves none.
Chosen by hand: a page is more than most metadata requests take."""
LINKS: tuple[Literal["node_bandwidth", "server_bandwidth", "backbone_bandwidth"], ...] = (
    "node_bandwidth",
    "server_bandwidth",
    "backbone_bandwidth",
)


class Full(NamedTuple):
    """A link full of requests: the rate of all operations, the link and whose it is, those operations that have no
    transfer, and the bytes of one over it."""

    rate: float
    link: str
    nodes: int
    station: str
    operations: list[str]
    each: float


def with_requests(
    platform: Fitted,
    system: ResolvedPlatform,
    shares: Mapping[str, float],
    nodes: int,
    quantities: dict[str, Ends],
    load: blend.Question | None,
    moved: LinkBytes | None = None,
    bytes_each: Mapping[str, float] | None = None,
) -> tuple[dict[str, Ends], list[Note]]:
    """The quantities of a platform with other links than the measured ones, and sentences, as over_links() has them.

    @param shares of operations, by name
    @param load of closed ranks, whose mean response time follows the rate by Little's law
    @param moved bytes of the workload's operations, as observed
    @param bytes_each of the objects of an operation, where known: empty ones move none, whatever its route has"""
    if platform.fitted and not edits_links(platform):
        return quantities, []
    return over_links(system, shares, nodes, quantities, load, moved, bytes_each or {})


def over_links(
    system: ResolvedPlatform,
    shares: Mapping[str, float],
    nodes: int,
    quantities: dict[str, Ends],
    load: blend.Question | None,
    moved: LinkBytes | None,
    bytes_each: Mapping[str, float] = MappingProxyType({}),
) -> tuple[dict[str, Ends], list[Note]]:
    """With observed bytes of operations the rate is at most what the links carry; where more bytes crossed them than
    those of operations may be, the interval goes down to what they carry of all. Without bytes it begins where requests
    of REQUEST_BYTES would fill a link. Unchanged where the forecast is below these rates."""
    rate = quantities["rate"]
    full = min(_full_at(system, shares, nodes, moved, bytes_each), default=None)
    if full is None:
        return quantities, []

    def longer(most: float) -> float:
        """Times of operations, of those that the platform has at its own rate."""
        if load is None or most >= rate["value"]:
            return 1.0
        # Pauses leave a small part of the time to operations, of which a correction of the rate takes too much or all.
        own = max(blend.mean_response(load, rate["value"]), middle)
        return max(1.0, blend.mean_response(load, most) / own)

    middle = _median_time(quantities, shares)
    most = full.rate
    if moved is not None:
        return _carried(full, moved, (system, shares, nodes), quantities, longer)
    if max(rate["value"], rate["high"] or 0.0) <= most:
        return quantities, []
    reached = rate["low"] is not None
    unknown = LinkUnknown(full.link, full.operations, REQUEST_BYTES, most, reached, full.nodes, full.station)

    def reaching(name: str, one: Ends) -> Ends:
        low, high = one["low"], one["high"]
        if low is None or high is None:
            return one
        if name == "rate":
            return {**one, "low": min(low, most)}
        return {**one, "high": max(high, one["value"] * longer(most))}

    return {name: reaching(name, one) for name, one in quantities.items()}, [unknown]


def _carried(
    full: Full,
    moved: LinkBytes,
    question: tuple[ResolvedPlatform, Mapping[str, float], int],
    quantities: dict[str, Ends],
    longer: Callable[[float], float],
) -> tuple[dict[str, Ends], list[Note]]:
    """Of the system, shares and nodes of a question, with bytes that were observed."""
    rate, most, everything = quantities["rate"], full.rate, moved.get("at_most")
    seen_on = moved.get("nodes", 1)
    worst = full if everything is None else min(_full_at(*question, everything), default=full)
    found = {
        name: _between(name, one, (most, longer(most)), (worst.rate, longer(worst.rate)), rate["value"], seen_on > 1)
        for name, one in quantities.items()
    }
    notes: list[Note] = []
    if most < rate["value"]:
        where, reached = (full.nodes, full.station), rate["high"] is not None
        notes.append(LinkFull(full.link, full.each, moved["ranks"], rate["value"], *where, seen_on, reached))
    if everything is not None and worst.rate < min(most, rate["value"]):
        reached = rate["low"] is not None
        where = worst.nodes, worst.station
        notes.append(LinkPerhapsFull(worst.link, worst.each, everything["ranks"], worst.rate, reached, *where))
    return found, notes


def _between(
    name: str, one: Ends, here: tuple[float, float], worst: tuple[float, float], own: float, perhaps_fewer: bool
) -> Ends:
    """A quantity with what links carry of the bytes of operations, and of all that crossed them (`worst`): of both the
    rate, and how much longer operations take. `own`: the platform's rate. `perhaps_fewer`: operations may have moved
    fewer bytes, and then the end of the interval is the platform's."""
    if name == "rate":
        factor, farthest = min(1.0, here[0] / own), min(1.0, worst[0] / own)
        low, high = one["low"], one["high"]
        return {
            **one,
            "value": factor * one["value"],
            "low": None if low is None else farthest * low,
            "high": None if high is None else high if perhaps_fewer else factor * high,
        }
    low, high = one["low"], one["high"]
    return {
        **one,
        "value": here[1] * one["value"],
        "low": None if low is None else low if perhaps_fewer else here[1] * low,
        "high": None if high is None else max(here[1], worst[1]) * high,
    }


def edits_links(platform: Fitted) -> bool:
    """Whether it has other links than those that were measured."""
    edited = {path for path, _ in platform.edits}
    overlays = {f"network.{key}" for overlay in platform.documents[1:] for key in overlay.get("network") or {}}
    return any(path == "network" or path.removeprefix("network.") in LINKS for path in edited | overlays)


def _full_at(
    system: ResolvedPlatform,
    shares: Mapping[str, float],
    nodes: int,
    moved: LinkBytes | MovedAtMost | None,
    bytes_each: Mapping[str, float] = MappingProxyType({}),
) -> Iterator[Full]:
    """Of each link that operations without transfers cross; with observed bytes, which are those of the mean operation
    and what it transfers among them, that all operations cross."""
    network = system.get("network") or NetworkDocument()
    bandwidth: dict[str, float] = {key: network.get(key, 0.0) for key in LINKS}
    crossing: dict[str, list[str]] = {}  # operations by the station that all nodes share
    for op, share in shares.items():
        route = route_of(system, route_name(op, system))
        moves = bytes_each.get(op) != 0 and any("transfer" in step for step, _ in transfers(route, system))
        if share > 0 and (moved is not None or not moves):
            for station in dict.fromkeys(_shared(route, system)):
                crossing.setdefault(station, []).append(op)
    every = list(dict.fromkeys(op for ops in crossing.values() for op in ops))
    one_way, both_ways = float(REQUEST_BYTES), 2.0 * REQUEST_BYTES
    if moved is not None and every:
        every = [op for op, share in shares.items() if share > 0]
        one_way, both_ways = max(moved["sent"], moved["received"]), moved["sent"] + moved["received"]
    links = [
        ("node_bandwidth", nodes, "", nodes, every, one_way),
        ("backbone_bandwidth", 0, "", 1, every, both_ways),
        *(
            ("server_bandwidth", 0, name, int(system["stations"][name]["count"]), ops, one_way)
            for name, ops in crossing.items()
        ),
    ]
    for key, own, station, count, operations, each in links:
        if bandwidth[key] > 0 and operations:
            whole = sum(shares[op] for op in operations)
            yield Full(bandwidth[key] * count / (each * whole), key, own, station, operations, each)


def _median_time(quantities: Mapping[str, Ends], shares: Mapping[str, float]) -> float:
    """Of an operation, in seconds; 0 where a median of one of them is not known."""
    medians = [(share, quantities.get(f"{op}.q50")) for op, share in shares.items() if share > 0]
    whole = sum(share for share, _ in medians)
    return sum(share * one["value"] for share, one in medians if one) / whole if all(one for _, one in medians) else 0.0


def observed_bytes(platform: Fitted, question: Question) -> LinkBytes | None:
    """Bytes of the measured workload's operations over links, where they were observed."""
    return platform.fitted.get("link_bytes") if speaks_of(platform.fitted, question) else None


def _shared(route: Sequence[Step], system: ResolvedPlatform) -> Iterator[str]:
    """The stations that a route visits and that nodes don't have each of its own."""
    for step in steps_of(route):
        name = step.get("station")
        if name in system["stations"] and system["stations"][name].get("per") != "node":
            yield str(name)

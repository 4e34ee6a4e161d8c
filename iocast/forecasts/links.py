# SPDX-License-Identifier: Apache-2.0
"""Links that a platform limits, and operations that move no bytes over them. Requests and answers have bytes; a
platform whose routes leave them out can't know when a link is full of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from iocast.platforms.documents import steps_of
from iocast.platforms.fitted import Fitted
from iocast.platforms.platform_names import route_name
from iocast.records.forecast import Ends
from iocast.records.platform import NetworkDocument, ResolvedPlatform, Step
from iocast.runs.limits_of import route_of, transfers
from iocast.rules import blend
from iocast.wording.text import quantity

REQUEST_BYTES = 4096
"""Bytes of an operation's requests, or of their answers, that its forecast allows for where the platform moves none.
Chosen by hand: a page is more than most metadata requests take."""
LINKS: tuple[Literal["node_bandwidth", "server_bandwidth", "backbone_bandwidth"], ...] = (
    "node_bandwidth",
    "server_bandwidth",
    "backbone_bandwidth",
)


def doubted(
    platform: Fitted,
    system: ResolvedPlatform,
    shares: Mapping[str, float],
    nodes: int,
    quantities: dict[str, Ends],
    load: blend.Question | None,
) -> tuple[dict[str, Ends], list[str]]:
    """The quantities with intervals that begin where requests of REQUEST_BYTES would fill a link, and a sentence that
    says so. Unchanged where the forecast is below that rate, or the platform's links are those that were measured.

    @param shares of operations, by name
    @param load of closed ranks, whose mean response time follows the rate by Little's law"""
    rate = quantities["rate"]
    if platform.fitted and not _edits_links(platform):
        return quantities, []
    full = sorted(_full_at(system, shares, nodes))
    if not full or max(rate["value"], rate["high"] or 0.0) <= full[0][0]:
        return quantities, []
    most, link, operations = full[0]
    reach = "" if rate["low"] is None else ", down to which the interval reaches"
    sentence = (
        f"The platform moves no bytes of requests over links: what {operations} send{'s' * (', ' not in operations)} "
        f"over {link} is not known, so that their limit changes no value here. With {REQUEST_BYTES // 1024} KiB each "
        f"way an operation they are full at {quantity('rate', most)}{reach}."
    )
    longer = 1.0
    if load is not None and rate["value"] > most:
        longer = blend.mean_response(load, most) / blend.mean_response(load, rate["value"])

    def reaching(name: str, one: Ends) -> Ends:
        low, high = one["low"], one["high"]
        if low is None or high is None:
            return one
        if name == "rate":
            return {**one, "low": min(low, most)}
        return {**one, "high": max(high, one["value"] * longer)}

    return {name: reaching(name, one) for name, one in quantities.items()}, [sentence]


def _edits_links(platform: Fitted) -> bool:
    edited = {path for path, _ in platform.edits}
    overlays = {f"network.{key}" for overlay in platform.documents[1:] for key in overlay.get("network") or {}}
    return any(path == "network" or path.removeprefix("network.") in LINKS for path in edited | overlays)


def _full_at(system: ResolvedPlatform, shares: Mapping[str, float], nodes: int) -> Iterator[tuple[float, str, str]]:
    """For each link that operations without transfers cross: the rate of all operations at which requests would fill
    it, its name, and those operations."""
    network = system.get("network") or NetworkDocument()
    bandwidth: dict[str, float] = {key: network.get(key, 0.0) for key in LINKS}
    crossing: dict[str, list[str]] = {}  # operations by the station that all nodes share
    for op, share in shares.items():
        route = route_of(system, route_name(op, system))
        if share > 0 and not any("transfer" in step for step, _ in transfers(route, system)):
            for station in dict.fromkeys(_shared(route, system)):
                crossing.setdefault(station, []).append(op)
    every = list(dict.fromkeys(op for ops in crossing.values() for op in ops))
    links = [
        ("node_bandwidth", f"the network cards of {nodes} client node{'s' * (nodes != 1)}", nodes, every),
        ("backbone_bandwidth", "the backbone", 1, every),
        *(
            ("server_bandwidth", f"the network cards of '{name}'", int(system["stations"][name].get("count", 1)), ops)
            for name, ops in crossing.items()
        ),
    ]
    for key, link, count, operations in links:
        if bandwidth[key] > 0 and operations:
            whole = sum(shares[op] for op in operations)
            yield bandwidth[key] * count / (REQUEST_BYTES * whole), link, ", ".join(operations)


def _shared(route: Sequence[Step], system: ResolvedPlatform) -> Iterator[str]:
    """The stations that a route visits and that nodes don't have each of its own."""
    for step in steps_of(route):
        name = step.get("station")
        if name in system["stations"] and system["stations"][name].get("per") != "node":
            yield str(name)

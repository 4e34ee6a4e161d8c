# SPDX-License-Identifier: Apache-2.0
"""What limits a rate where no station is in use most of the time: the network, limits, locks, stalls, few instances, or
the ranks themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iocast.operations import MOVES_DATA
from iocast.platform_names import steps_of
from iocast.text import quantity

FULL = 0.7
"""Share of links' capacity in use from which on they are the limit; a station is called the bottleneck from it on."""
PAUSING = 0.3
"""Share of their time in operations below which the ranks themselves are the limit."""
_PARTS = {
    "wait": "waiting for a server of",
    "service": "being served at",
    "lock_wait": "waiting for a lock at",
    "stall": "standing still in stalls of",
    "lost": "being lost in failures of",
}


def text(
    phase: Mapping[str, Any], stations: Mapping[str, Any], system: Mapping[str, Any], nodes: int, ranks: float
) -> str:
    """Sentences on where a mean operation's time goes. phase: of a run.json; stations: seconds an operation by station
    and part; system: the resolved platform."""
    links = _full_link(phase, system, nodes)
    if links:
        return links
    whole = sum(
        one["count"] * one["mean"] for name, one in phase["latency"].items() if "." not in name and one["count"]
    )
    mean = whole / phase["operations"] if phase["operations"] else 0.0
    spent = {(name, part): one[part] for name, one in stations.items() for part in _PARTS if one.get(part)}
    outside = mean - sum(spent.values())
    if mean <= 0:
        return ""
    if (busy := whole / (ranks * phase["seconds"])) < PAUSING:
        why = "their pauses, or waits for each other, limit the rate"
        return f"Ranks are in an operation {100 * busy:.2g} % of the time: {why}."
    (name, part), seconds = max(spent.items(), key=lambda item: item[1], default=(("", ""), 0.0))
    if outside > seconds:
        where = "slots of limits, the network and delays" if system.get("limits") else "the network and delays"
        return f"Of an operation's time {100 * outside / mean:.0f} % goes to {where}."
    sentence = f"Of an operation's time {100 * seconds / mean:.0f} % is {_PARTS[part]} {name}."
    station = system["stations"].get(name, {})
    count = int(station.get("count", 1))
    shared = "directories" if station.get("spread") == "dataset" else "files"
    if part == "wait" and count > 1:
        sentence += f" The {count} instances of {name} are used unevenly, in place or in time."
    if part == "wait" and stations[name]["lock_wait"] > stations[name]["service"]:
        longer = stations[name]["lock_wait"] / max(stations[name]["service"], 1e-12)
        sentence += f" Who has a server waits for a lock there, {longer:.2g} times as long as it is served."
    elif part == "service" and seconds >= FULL * mean:
        elsewhere = f", where their {shared} lie on instances of {name} with free servers" if count > 1 else ""
        sentence += f" Ranks hardly wait for each other: more of them do more{elsewhere}."
    return sentence


def solved_text(waiting: float, limits: Sequence[str]) -> str:
    """The same of an analytic solution: the share of an operation's time that it waits, and limits with fewer slots
    than ranks."""
    if waiting < 1 - FULL:
        return f"An operation waits {100 * waiting:.0f} % of its time: more ranks do more."
    behind = f", for slots of {', '.join(limits)} or" if limits else ""
    return f"An operation waits {100 * waiting:.0f} % of its time{behind} at stations."


def _full_link(phase: Mapping[str, Any], system: Mapping[str, Any], nodes: int) -> str:
    """A sentence on the links that the phase's transfers fill; empty where they fill none."""
    for moved, links in _links(phase, system, nodes):
        most, name = min((each * count, name) for name, each, count in links)
        if moved >= FULL * most:
            return f"The network is: {name} are used at {100 * moved / most:.0f} % of their capacity."
    return ""


def capacity_text(phase: Mapping[str, Any], system: Mapping[str, Any], nodes: int) -> str:
    """What each class of links can carry of the phase's transfers; empty where nothing is transferred."""
    found: dict[str, None] = {}
    for _, links in _links(phase, system, nodes):
        for name, each, count in links:
            apiece = f" ({quantity('bandwidth', each)} each)" if count > 1 else ""
            found[f"{name} {quantity('bandwidth', each * count)}{apiece}"] = None
    return f"Links carry at most: {', '.join(found)}." if found else ""


def _links(
    phase: Mapping[str, Any], system: Mapping[str, Any], nodes: int
) -> Iterator[tuple[float, list[tuple[str, float, int]]]]:
    """For each direction to each station: bytes a second that the phase's transfers move, and the links on their way,
    each with its name, the bandwidth of one, and their number."""
    network = system.get("network", {})
    ends: dict[tuple[str, str], float] = {}
    for name, row in phase.get("by_operation", {}).items():
        if name in MOVES_DATA and row.get("bytes"):
            for step in steps_of(system["operations"].get(name, [])):
                if "transfer" not in step:
                    continue
                key = (step["transfer"], step["station"])
                ends[key] = ends.get(key, 0.0) + row["bytes"] / phase["seconds"]
    for (_, station), moved in ends.items():
        count = int(system["stations"][station]["count"])
        links = [
            (f"the network cards of {nodes} client node{'s' * (nodes != 1)}", network.get("node_bandwidth", 0), nodes),
            (
                f"the network cards of {count} instance{'s' * (count != 1)} of '{station}'",
                network.get("server_bandwidth", 0),
                count,
            ),
            ("the backbone", network.get("backbone_bandwidth", 0), 1),
        ]
        if limited := [(name, float(each), number) for name, each, number in links if each > 0]:
            yield moved, limited

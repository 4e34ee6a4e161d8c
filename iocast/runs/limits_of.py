# SPDX-License-Identifier: Apache-2.0
"""What limits a rate where no station is in use most of the time: the network, limits, locks, stalls, few instances, or
the ranks themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, cast

from iocast.runs.operations import MOVES_DATA, WRITES
from iocast.platforms.documents import mechanisms_in, steps_of
from iocast.records.simulated import SimulatedPhase
from iocast.wording.text import quantity
from iocast.records.platform import BELOW, Direction, ResolvedPlatform, Step

LEAD = "What limits the rate: "
"""Begin of each answer to that question."""
NOT_KNOWN = "What limits the rate is not known: "


class Kind(Enum):
    """What limits a rate (`limited_by` of a forecast)."""

    STATION = "station"
    LINKS = "links"
    RANKS = "ranks"
    """Their own pauses, or waits for each other."""
    OUTSIDE = "outside stations"
    """Slots of limits, the network and delays."""
    SERVICE = "service"
    """The time that an operation takes by itself."""
    WAITS = "waits"


class Limit(NamedTuple):
    """What limits a rate, None where that is not known; and the same in finished sentences."""

    kind: Kind | None
    text: str

    @property
    def word(self) -> str | None:
        """Of its kind, as a forecast has it."""
        return self.kind.value if self.kind else None

    def document(self) -> list[str | None]:
        """As JSON: its word and text."""
        return [self.word, self.text]

    @classmethod
    def read(cls, document: Sequence[Any]) -> Limit:
        """As document() writes it."""
        word, text = document
        return cls(None if word is None else Kind(word), text)


def limit(kind: Kind, what: str) -> Limit:
    """@param what follows LEAD"""
    return Limit(kind, f"{LEAD}{what}")


def unknown(why: str) -> Limit:
    """@param why follows NOT_KNOWN"""
    return Limit(None, f"{NOT_KNOWN}{why}")


FULL = 0.7
"""Share of links' capacity or of a station's time in use from which on they are the limit."""
NAMED = 0.1
"""Share of a link's time in use from which on it is named where nothing else is known to be the limit."""
LEAST_WAIT = 0.1
"""Share of the operations' time that writes waited for room in a buffer at least, from which on it is the limit. Chosen
by hand."""
PAUSING = 0.3
"""Share of their time in operations below which the ranks themselves are the limit."""
UNEVEN = 0.7
"""First rank's end over the last one's, below which the last ranks decide the length of the phase."""
_PARTS = {
    "wait": "waiting for a server of",
    "service": "being served at",
    "lock_wait": "waiting for a lock at",
    "stall": "standing still in stalls of",
    "lost": "being lost in failures of",
}


def sentences(stations: Mapping[str, Mapping[str, float]], otherwise: Limit, *, known: bool = True) -> Limit:
    """What limits the rate: a station that is in use most of the time, else `otherwise`, of text() or solved_text().
    stations: their `utilisation` by name. known: whether the model that their use is of does the rate; else how full
    they are is not known either."""
    if not stations:
        return otherwise._replace(text=f"{otherwise.text} No station is used.")
    name = max(stations, key=lambda s: stations[s]["utilisation"])
    used = f"{100 * stations[name]['utilisation']:.0f} %"
    if stations[name]["utilisation"] >= FULL:
        return limit(Kind.STATION, f"{name}, {used} of its servers' time is in use.")
    if not known:
        return otherwise
    busiest = "" if used == "0 %" else f": the busiest, {name}, is used {used}"
    return otherwise._replace(text=f"{otherwise.text} No station is full{busiest}.")


def text(
    phase: SimulatedPhase,
    stations: Mapping[str, Mapping[str, float]],
    system: ResolvedPlatform,
    nodes: int,
    ranks: float,
) -> Limit:
    """Sentences on the network, or where a mean operation's time goes. phase: of a run.json; stations: seconds an
    operation by station and part; system: the resolved platform."""
    whole = sum(
        one["count"] * one["mean"] for name, one in phase["latency"].items() if "." not in name and one["count"]
    )
    if not whole or not phase["operations"]:
        return unknown("no operation takes any time.")
    if full := of_links(phase, system, nodes):
        return full
    if share := share_if_pausing(whole, ranks * phase["seconds"]):
        return limit(
            Kind.RANKS,
            f"the ranks themselves. They are in an operation {share} of the time; the rest are their pauses, or waits "
            "for each other.",
        )
    mean = whole / phase["operations"]
    found = full_buffer(whole, phase, stations, system)
    found = found or _waiting(mean, phase, stations, system) or _where_time_goes(mean, stations, system)
    of_link = _busiest_link(phase) if found.kind is Kind.OUTSIDE else ""
    return found._replace(text=found.text + of_link + _uneven_end(phase))


def share_if_pausing(responding: float, whole: float) -> str:
    """The share of their time that ranks are in an operation, where it is so small that they themselves are the limit,
    as while an application computes; else "". responding: seconds in operations, of all ranks together; whole: seconds
    of all ranks"""
    return f"{100 * responding / whole:.2g} %" if 0 < responding < PAUSING * whole else ""


def _waiting(
    mean: float, phase: SimulatedPhase, stations: Mapping[str, Mapping[str, float]], system: ResolvedPlatform
) -> Limit | None:
    """The mechanism for which a mean operation waits, where that takes longer than any part of a station, and than all
    that is counted together."""
    waits = {
        f"the {section.removesuffix('s')} '{name}'": one["wait"] / phase["operations"]
        for section in mechanisms_in(system)
        for name, one in cast(Mapping[str, Mapping[str, Mapping[str, float]]], phase).get(section, {}).items()
    }
    what, seconds = max(waits.items(), key=lambda item: item[1], default=("", 0.0))
    parts = [one.get(part, 0.0) for one in stations.values() for part in _PARTS]
    if not seconds or seconds <= max([mean - sum(parts) - sum(waits.values()), *parts]):
        return None
    return limit(Kind.WAITS, f"waiting for {what}, {100 * seconds / mean:.0f} % of an operation's time.")


def full_buffer(
    whole: float, phase: SimulatedPhase, stations: Mapping[str, Mapping[str, float]], system: ResolvedPlatform
) -> Limit | None:
    """The buffer that ran full, where writes waited for room in it for longer than for all else.

    Pieces of a write wait side by side: the time that it waits is between the longest share that one piece can have
    and all their seconds. `whole`: seconds of all operations"""
    parts = sum(one.get(part, 0.0) for one in stations.values() for part in _PARTS)
    for name, one in (phase.get("buffers") or {}).items():
        unit = system.get("buffers", {}).get(name, {}).get("unit", 0)
        writes = sum(
            row["count"] for op, row in phase.get("by_operation", {}).items() if op in WRITES and row.get("bytes")
        )
        pieces = max(1.0, one["entered"] / (unit * writes)) if unit and writes else 1.0
        waited = one["wait"] / whole
        entered, drained = (one[way] / phase["seconds"] for way in ("entered", "drained"))
        if waited / pieces < LEAST_WAIT or waited < parts / (whole / phase["operations"]):
            continue
        return limit(
            Kind.WAITS,
            f"the buffer '{name}' ran full, and writes waited for room {one['stopped']:,.0f} times, "
            f"{quantity('seconds', one['wait'] / one['stopped'])} each on average. It took in "
            f"{quantity('bandwidth', entered)} while it drained {quantity('bandwidth', drained)}: more capacity, or a "
            "faster drain, does more.",
        )
    return None


def _where_time_goes(mean: float, stations: Mapping[str, Mapping[str, float]], system: ResolvedPlatform) -> Limit:
    """The largest part of a mean operation's time."""
    spent = {(name, part): one[part] for name, one in stations.items() for part in _PARTS if one.get(part)}
    outside = mean - sum(spent.values())
    (name, part), seconds = max(spent.items(), key=lambda item: item[1], default=(("", ""), 0.0))
    if outside > seconds:
        limits = "slots of limits, " if system.get("limits") else ""
        return limit(
            Kind.OUTSIDE,
            f"{limits}the network and delays, {100 * outside / mean:.0f} % of an operation's time. Which of them is "
            "not known: the simulator counts them together.",
        )
    what, share = f"{_PARTS[part]} {name}", f"{100 * seconds / mean:.0f} %"
    station = system["stations"].get(name, {})
    count = int(station.get("count", 1))
    shared = "directories" if station.get("spread") == "dataset" else "files"
    if part == "service":
        found = f"the time that an operation takes by itself, {share} of it {what}."
        if seconds >= FULL * mean:
            elsewhere = f", where their {shared} lie on instances of {name} with free servers" if count > 1 else ""
            found += f" Ranks hardly wait for each other: more of them do more{elsewhere}."
        return limit(Kind.SERVICE, found)
    found = f"{what}, {share} of an operation's time."
    if part == "wait" and count > 1:
        found += f" The {count} instances of {name} are used unevenly, in place or in time."
    if part == "wait" and stations[name]["lock_wait"] > stations[name]["service"]:
        longer = stations[name]["lock_wait"] / max(stations[name]["service"], 1e-12)
        found += f" Who has a server waits for a lock there, {longer:.2g} times as long as it is served."
    return limit(Kind.WAITS, found)


def _busiest_link(phase: SimulatedPhase) -> str:
    one = max(phase.get("network", {}).get("busiest", []), key=lambda link: link["busy"], default=None)
    if one is None or one["busy"] < NAMED:
        return ""
    return f" The busiest link, {one['name']}, is in use {100 * one['busy']:.0f} % of the time."


def _uneven_end(phase: SimulatedPhase) -> str:
    balance = phase.get("balance")
    if balance is None or balance >= UNEVEN:
        return ""
    return f" The first rank ends after {100 * balance:.0f} % of the phase, and the last one decides its length."


def solved_text(waiting: float, limits: Sequence[str]) -> Limit:
    """The same of an analytic solution: the share of an operation's time that it waits, and limits with fewer slots
    than ranks."""
    if waiting < 1 - FULL:
        return limit(
            Kind.SERVICE,
            f"the time that an operation takes by itself. It waits {100 * waiting:.0f} % of it: more ranks do more.",
        )
    behind = f"for slots of {', '.join(limits)} or " if limits else ""
    return limit(Kind.WAITS, f"waits {behind}at stations, {100 * waiting:.0f} % of an operation's time.")


def of_links(phase: SimulatedPhase, system: ResolvedPlatform, nodes: int) -> Limit | None:
    """Links that the phase's transfers fill; None where they fill none."""
    remembered = False
    for moved, links, crossing in _links(phase, system, nodes):
        most, name = min((each * count, name) for name, each, count in links)
        remembered |= crossing is Crossing.UNLESS_CACHED
        if crossing is Crossing.UNLESS_CACHED or (crossing is Crossing.PERHAPS_LATER and moved > most):
            continue
        if moved >= FULL * most:
            return limit(Kind.LINKS, f"{name}, used at {min(100.0, 100 * moved / most):.0f} % of capacity.")
    counted = remembered or "topology" in system.get("network", {})
    busiest = phase["network"]["busiest"] if "network" in phase and counted else []
    if busiest and busiest[0]["busy"] >= FULL:
        name, used = busiest[0]["name"], 100 * busiest[0]["busy"]
        of = "links between switches"
        if name.endswith((" in", " out")):
            of = "network cards"
        elif name.endswith(" disk"):
            of = "disks"
        return limit(Kind.LINKS, f"{of}, the busiest, {name.removesuffix(' disk')}, used at {used:.0f} % of capacity.")
    return None


def capacity_text(phase: SimulatedPhase, system: ResolvedPlatform, nodes: int) -> str:
    """What each class of links can carry of the phase's transfers, or that nothing is known to limit them; empty where
    no data move."""
    found: dict[str, None] = {}
    for _, links, _ in _links(phase, system, nodes):
        for name, each, count in links:
            apiece = f" ({quantity('bandwidth', each)} each)" if count > 1 else ""
            found[f"{name} {quantity('bandwidth', each * count)}{apiece}"] = None
    if found:
        return f"Links carry at most: {', '.join(found)}."
    moving = [name for name, row in phase.get("by_operation", {}).items() if name in MOVES_DATA and row.get("bytes")]
    if not moving:
        return ""
    if any(True for name in moving for _ in transfers(route_of(system, name), system)):
        return "What links carry is not known: the platform states no bandwidth of those that these data cross."
    return "Data cross no link on this platform: no route of these operations has a transfer."


class Crossing(Enum):
    """Whether the bytes of an operation cross a link."""

    ALL = "all, while the operation lasts"
    PERHAPS_LATER = "all, but perhaps after the phase: what drains from buffers"
    UNLESS_CACHED = "those that no cache answers, or that are called back"


def transfers(
    steps: Iterable[Step], system: ResolvedPlatform, crossing: Crossing = Crossing.ALL
) -> Iterator[tuple[Step, Crossing]]:
    """The transfers of these steps, those with which drain the buffers that they fill, and those behind."""
    for step in steps:
        if "transfer" in step or "disk" in step:
            yield step, crossing
        if "buffer" in step:
            later = Crossing.PERHAPS_LATER if crossing is Crossing.ALL else crossing
            yield from transfers(system.get("buffers", {}).get(step["buffer"], {}).get("drain", []), system, later)
        for key in BELOW:
            behind = Crossing.UNLESS_CACHED if key in ("hit", "miss", "evict", "recall") else crossing
            yield from transfers(step.get(key, []), system, behind)


def route_of(system: ResolvedPlatform, operation: str) -> list[Step]:
    """The steps of all parts of an operation."""
    return [step for part in system["operations"].get(operation, []) for step in part["steps"]]


def _links(
    phase: SimulatedPhase, system: ResolvedPlatform, nodes: int
) -> Iterator[tuple[float, list[tuple[str, float, int]], Crossing]]:
    """For each direction to each station: bytes a second that the phase's transfers move; the links on their way, each
    with its name, the bandwidth of one, and their number; and whether the bytes cross them."""
    network = system.get("network", {})
    ends: dict[tuple[bool, Direction, str], float] = {}
    crossings: dict[tuple[bool, Direction, str], Crossing] = {}
    for name, row in phase.get("by_operation", {}).items():
        if name in MOVES_DATA and row.get("bytes"):
            for step, crossing in transfers(route_of(system, name), system):
                key = ("transfer" in step, step.get("transfer") or step["disk"], step["station"])
                ends[key] = ends.get(key, 0.0) + row["bytes"] / phase["seconds"]
                if crossings.get(key, Crossing.ALL) is Crossing.ALL:
                    crossings[key] = crossing
    for (sent, way, station), moved in ends.items():
        spec = system["stations"][station]
        count = nodes if spec.get("per") == "node" else int(spec["count"])
        links = [
            (f"the network cards of {nodes} client node{'s' * (nodes != 1)}", network.get("node_bandwidth", 0), nodes),
            (
                f"the network cards of {count} instance{'s' * (count != 1)} of '{station}'",
                network.get("server_bandwidth", 0),
                count,
            ),
            ("the backbone", network.get("backbone_bandwidth", 0), 1),
        ][: None if sent else 0]
        disks = f"the disk{'s' * (count != 1)} of {count} instance{'s' * (count != 1)} of '{station}'"
        links.append((disks, spec.get("disk", {}).get(way, 0), count))
        if limited := [(name, float(each), number) for name, each, number in links if each > 0]:
            yield moved, limited, crossings[sent, way, station]


def stations_of(phase: SimulatedPhase, system: ResolvedPlatform) -> dict[str, dict[str, float]]:
    """Where an operation's time goes, station by station, in seconds an operation of the benchmark. Stripes are served
    side by side: of them it is the mean. Drains are left out, since no operation waits for them."""
    operations = phase["operations"]
    result = {}
    for name, station in phase["stations"].items():
        sums = {key: 0.0 for key in ("wait", "service", "lock_wait", "stall", "lost")}
        for op, visit in station["operations"].items():
            if op in ("others", "drain"):
                continue
            steps = [step for step in steps_of(route_of(system, op)) if step.get("station") == name]
            visits = visit["visits"]
            if any(step.get("stripes", 1) != 1 for step in steps):
                visits = min(visits, len(steps) * phase["latency"][op]["count"])
            for key in sums:
                sums[key] += visits * visit.get(key, 0.0) / operations
        result[name] = {"utilisation": station["utilisation"], **sums}
    return result

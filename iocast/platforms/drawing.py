# SPDX-License-Identifier: Apache-2.0
"""A platform drawn as text: its stations, what else it has, and the route of every operation, step by step."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import Literal, cast

from iocast.wording.text import quantity, table
from iocast.records.platform import ResolvedPlatform, TopologyDocument, StationDocument, Step, LawDocument
from iocast.ground.strict import Json

WIDTH = 100
"""Columns of prose."""
MEMBERS: dict[str, tuple[str, dict[str, float]]] = {
    "limits": ("limit", {}),
    "locks": ("lock", {}),
    "stalls": ("stall", {}),
    "failures": ("failure", {"sigma": 0.0, "every": 0.0, "timeout": 0.0, "takeover": 0.0}),
    "background": ("background", {}),
    "caches": ("cache", {}),
    "buffers": ("buffer", {"linger": 0.0, "resume": 1.0, "at_once": 1, "unit": 0}),
}
"""Sections: the word for a member, and the values that are left out in its description. What mechanisms have of this
comes with the platform (`mechanisms`)."""
SIZES = ("capacity", "staged", "unit", "page", "ahead", "extent", "grow", "stripe_size", "never_limited")
TIMES = ("every", "length", "at", "takeover", "timeout", "linger", "latency", "hop_latency")
CURVE: tuple[Literal["contention", "coherency", "crowding"], ...] = ("contention", "coherency", "crowding")
LATENCIES = ("latency", "hop_latency")
STEPS = ("stage_in", "drain", "fetch")


def platform_text(platform: ResolvedPlatform) -> str:
    """@param platform what iocast-sim --describe NAME --json says of one"""
    lines = [platform["name"]]
    for key in ("description", "source"):
        if platform.get(key):
            lines += textwrap.wrap(f"{key}: {platform[key]}", WIDTH, subsequent_indent="  ")
    lines += ["", "Stations", _indented(_stations(platform["stations"]))]
    lines += [""]
    mechanisms = platform.get("mechanisms", {})
    says = {one["step"]: one["says"] for one in mechanisms.values()}
    sections = MEMBERS | {section: (one["word"], one["defaults"]) for section, one in mechanisms.items()}
    whole = cast(dict[str, dict[str, dict[str, Json]]], platform)
    for section, (called, unstated) in sections.items():
        units = mechanisms[section]["units"] if section in mechanisms else {}
        inner = [*STEPS, mechanisms[section].get("pieces", "")] if section in mechanisms else STEPS
        for name, member in (whole.get(section) or {}).items():
            entries = [
                _described(key, value, units.get(key, ""))
                for key, value in member.items()
                if key not in inner and value is not None and unstated.get(key, ...) != value
            ]
            lines += [f"{called} {name}: {', '.join(entries)}"]
            for key in inner:
                if steps := member.get(key):
                    lines += [f"  {key}", *_route(cast(list[Step], steps), 4, says)]
    network = {
        key: value
        for key, value in cast(dict[str, Json], platform["network"]).items()
        if value and (key != "never_limited" or platform["network"].get("latency"))
    }
    if "topology" in platform:
        lines += [_links(platform["topology"], network)]
    elif network:
        lines += [f"network: {_all_described(network)}"]
    lines += [
        *([""] if lines[-1] else []),
        "Routes (mean times; what is indented happens with the slot of a limit, or after a hit or a miss)",
    ]
    for operation, parts in platform["operations"].items():
        lines += ["", f"  {operation}"]
        for part in parts:
            named = bool(part["part"])
            lines += [f"    {part['part']}"] if named else []
            lines += _route(part["steps"], 6 if named else 4, says) or [f"{' ' * (6 if named else 4)}nothing"]
    return "\n".join(lines)


def _links(topology: TopologyDocument, network: Mapping[str, Json]) -> str:
    """The levels of a network's switches, and what two halves of its client nodes can send to each other."""
    ends = {key: network[key] for key in (*LATENCIES, "node_bandwidth", "server_bandwidth") if key in network}
    lines = [f"network: {topology['topology']} of {topology['nodes']} client nodes, {_all_described(ends)}"]
    rows = [
        [
            level["level"],
            f"{level['count']}",
            f"{level['each']} {level['of']}",
            f"{level['links']} x {quantity_of_bytes(level['bandwidth'])}/s" if "links" in level else "-",
            f"{level['tapering']:.3g}:1" if "tapering" in level else "-",
        ]
        for level in topology["levels"]
    ]
    lines += [_indented(table(["level", "number", "below each", "links of each", "tapering"], rows))]
    if topology.get("bisection"):
        half = topology["half"]
        share = f", {100 * topology['bisection'] / half:.3g} % of the cards of half of the client nodes" if half else ""
        lines += [f"  bisection {quantity_of_bytes(topology['bisection'])}/s one way{share}"]
    for name, at in topology["servers"].items():
        where = "among the client nodes" if at["among_nodes"] else "of their own"
        lines += [f"  {name}: {at['count']} at {at['switches']} switch{'es' * (at['switches'] != 1)} {where}"]
    return "\n".join(lines)


def _all_described(entries: Mapping[str, Json]) -> str:
    return ", ".join(_described(key, value) for key, value in entries.items())


def _stations(stations: dict[str, StationDocument]) -> str:
    header = ["station", "instances", "servers", "order", "and"]
    return table(
        header,
        [[name, _instances(one), f"{one['servers']}", _order(one), _more(one)] for name, one in stations.items()],
    )


def _instances(station: StationDocument) -> str:
    if station["per"] == "node":
        return "one a node"
    return "1" if station["count"] == 1 else f"{station['count']}, by {station['spread']}"


def _order(station: StationDocument) -> str:
    return {"fcfs": "first come", "ps": "all at a time", "timeslice": f"slices of {quantity('', station['quantum'])}"}[
        station["discipline"]
    ]


def _more(station: StationDocument) -> str:
    curve = {key: station.get(key) for key in CURVE}
    entries = [f"{key} {value:g}" for key, value in curve.items() if value]
    entries += [f"speed {station['speed']:g}"] if station["speed"] != 1 else []
    entries += [f"speeds {' '.join(f'{speed:g}' for speed in station['speeds'])}"] if station.get("speeds") else []
    if station.get("priority"):
        entries.append(f"first {', then '.join(' '.join(one) for one in station['priority'])}")
    if disk := station.get("disk"):
        entries.append(
            f"a disk each, reads {quantity_of_bytes(disk['read'])}/s, writes {quantity_of_bytes(disk['write'])}/s"
        )
    if kept := station.get("redundancy"):
        coded = f"{kept['data']} + {kept['parity']} shards of stripes" if "data" in kept else ""
        entries.append(coded or f"{kept['copies']} copies")
    if rpc := station.get("rpc"):
        entries.append(f"{rpc['in_flight']} requests of {size(rpc['size'])} in flight")
    entries += (
        [f"stripes of {size(station['stripe_size'])} over {station['stripe_count']}"]
        if station.get("stripe_size")
        else []
    )
    return ", ".join(entries) or "-"


def _route(steps: list[Step], indent: int, says: Mapping[str, str]) -> list[str]:
    """@param says words for the steps of mechanisms, by their key"""
    lines = []
    for step in steps:
        lines.append(" " * indent + _step(step, says))
        lines += _route([*step.get("steps", []), *step.get("recall", [])], indent + 2, says)
        for branch, below in (("hit", step.get("hit")), ("miss", step.get("miss"))):
            if below:
                lines += [f"{' ' * (indent + 2)}{branch}:", *_route(below, indent + 4, says)]
    return lines


OTHER_STEPS: dict[str, Callable[[Step], str]] = {
    "limit": lambda step: f"with a slot of {step['limit']}:",
    "delay": lambda step: f"delay  {_law(step['delay'])}",
    "transfer": lambda step: (
        f"bytes {'to' if step['transfer'] == 'write' else 'from'} {step['station']}{_parts(step)}"
        + (f", for each request {_law(step['demand'])} there" if "demand" in step else "")
    ),
    "disk": lambda step: f"bytes {step['disk']} at the disk of {step['station']}{_parts(step)}",
    "buffer": lambda step: f"bytes into buffer {step['buffer']}",
    "flush": lambda step: f"wait until buffer {step['flush']} has drained ({step['of']})",
    "cache": lambda step: f"look into cache {step['cache']}",
    "forget": lambda step: (
        f"cache {step['forget']} forgets it"
        + (f" ({step['of']})" if "of" in step else "")
        + (", and if others had it:" if step.get("recall") else "")
    ),
}
"""Words for all steps but visits and those of mechanisms, by the key that tells them."""


def _step(step: Step, says: Mapping[str, str]) -> str:
    for kind, words in says.items():
        if kind in step:
            return words.format(cast(Mapping[str, str], step)[kind])
    for kind, say in OTHER_STEPS.items():
        if kind in step:
            return say(step)
    text = f"{step['station']}  {_law(step['demand'])}"
    text += f" for each {step['per']}" if step.get("per") else ""
    text += f" + bytes at {quantity_of_bytes(step['bandwidth'])}/s" if step.get("bandwidth") else ""
    text += _parts(step)
    if step.get("lock"):
        share = step.get("lock_share", 1)
        text += f", {'all' if share == 1 else f'{100 * share:.0f} %'} of it with lock {step['lock']}" + (
            " (shared)" if step.get("lock_mode") == "shared" else ""
        )
    return text + (", and if that was called back:" if step.get("recall") else "")


def _parts(step: Step) -> str:
    stripes = step.get("stripes", 1)
    return (
        ""
        if stripes == 1
        else ", a part at each instance that has bytes of it"
        if stripes == "spanned"
        else f", in {stripes} parts at a time"
    )


def _law(law: LawDocument) -> str:
    return quantity("", law["mean"]) + (f" {law['name']}" if law.get("name") else "")


def _described(key: str, value: Json, unit: str = "") -> str:
    name = key.replace("_", " ")
    if key == "servers":
        servers = cast(dict[str, dict[str, float]], value)
        return ", ".join(_all_described({f"{of} bandwidth": one["bandwidth"]}) for of, one in servers.items())
    if isinstance(value, dict):
        return f"{name} {_law(cast(LawDocument, value))}"
    if isinstance(value, list):
        return f"{name} {', '.join(map(str, value))}"
    if not isinstance(value, int | float):
        return f"{name} {value}"
    if key in SIZES or unit == "bytes":
        return f"{name} {size(value)}"
    if key.endswith("bandwidth"):
        return f"{name} {quantity_of_bytes(value)}/s"
    if unit == "per second":
        return f"{name} {value:g}/s"
    if key in TIMES or unit == "seconds":
        return f"{name} {quantity('', value)}"
    return f"{name} {f'{value:g}' if isinstance(value, float) else value}"


def size(count: float) -> str:
    """1048576 -> "1 MiB"."""
    return _scaled(count, (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)))


def quantity_of_bytes(count: float) -> str:
    """5e9 -> "5 GB"."""
    return _scaled(count, (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)))


def _scaled(count: float, units: tuple[tuple[str, int], ...]) -> str:
    unit, scale = next(((u, s) for u, s in units if count >= s), ("B", 1))
    return f"{count / scale:.4g} {unit}"


def _indented(text: str) -> str:
    return textwrap.indent(text, "  ")

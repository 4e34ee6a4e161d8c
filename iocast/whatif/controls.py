# SPDX-License-Identifier: Apache-2.0
"""What a reader may change on a page: keys of the platform and of the workload, with the meaning that their own tables
give them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from iocast import listing
from iocast.platforms.documents import Document, get_path, mechanisms_in, steps_of
from iocast.platforms.platform_names import idle_edit, reached, texts_in

COUNT, FACTOR, SECONDS, BYTES, BANDWIDTH = "", "factor", "s", "B", "B/s"
KEYS: dict[str, dict[str, str]] = {
    "stations": {"servers": COUNT, "count": COUNT, "speed": FACTOR, "disk.read": BANDWIDTH, "disk.write": BANDWIDTH}
}
"""Keys of a part that a reader may change, by section, with their unit."""
DECLARED = {"limits": ("slots",), "caches": ("capacity",), "buffers": ("capacity",), "stalls": ("every", "length")}
"""Likewise, of sections whose units the simulator declares; of other mechanisms all numbers may be changed."""
NETWORK = {"latency": SECONDS, "node_bandwidth": BANDWIDTH, "server_bandwidth": BANDWIDTH}
FIRST = ("servers", "count", "slots")
"""Keys that are shown at once, where the part is of the system; all others are folded."""
SETTINGS = ("object_size", "waiting_factor", "datasets", "objects", "iterations", "working_set", "think_time")
UNITS = {"bytes": BYTES, "seconds": SECONDS, "count": COUNT, "factor": FACTOR, "per second": "/s",
         "bytes per second": BANDWIDTH}  # fmt: skip
"""Of a parameter of the workload or a key of a mechanism, as the simulator names them."""
SPAN = 64.0
"""A slider reaches from the value over this to the value times this; numbers beyond can be typed."""
SCALES = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10,
          "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}  # fmt: skip


@dataclass(frozen=True)
class Control:
    """One number that may be changed. `path`: of the platform, or the parameter of the workload, or nodes and
    ranks_per_node. `idle`: why a change would change no answer."""

    kind: str  # "place", "setting", "platform"
    path: str
    keys: tuple[str, ...]  # of the platform: the same path, key by key
    label: str
    meaning: str
    unit: str
    value: float
    least: float
    most: float
    first: bool
    idle: str = ""


def number(written: Any) -> float | None:
    """A value with its unit, as platforms and workloads write it, in SI units; None for what is no such number."""
    if isinstance(written, bool):
        return None
    if isinstance(written, int | float):
        return float(written)
    found = re.fullmatch(r"\s*([-+0-9.eE]+?)\s*([a-zA-Z]*?)(s|B|B/s|/s|)\s*", str(written))
    if not found or found[2] not in SCALES:
        return None
    try:
        return float(found[1]) * SCALES[found[2]]
    except ValueError:
        return None


def controls(
    document: Document,
    resolved: Mapping[str, Any],
    workload: str,
    settings: Mapping[str, str],
    operations: Iterable[str],
    nodes: int,
    ranks_per_node: int,
) -> list[dict[str, Any]]:
    """All controls of a platform under a workload, as the page has them.

    @param document the platform with all that it extends
    @param resolved the same as iocast-sim understands it
    @param operations kinds of operations that the workload issues"""
    used = list(operations)
    found = [
        _control("place", ("nodes",), "client nodes", "nodes on which ranks run", COUNT, nodes, True),
        _control("place", ("ranks_per_node",), "ranks on each", "processes", COUNT, ranks_per_node, True),
        *_of_workload(workload, settings),
        *_of_platform(resolved, used),
        *_of_demands(document, used),
    ]  # fmt: skip
    return [asdict(one) for one in found if one is not None]


def _control(
    kind: str, keys: tuple[str, ...], label: str, meaning: str, unit: str, value: float, first: bool, idle: str = ""
) -> Control:
    whole = unit == COUNT
    least, most = (value / SPAN, value * SPAN) if value > 0 else (0.0, 4.0 if unit in (COUNT, FACTOR) else 1.0)
    if whole:
        least, most = float(max(1, round(least))), float(max(16, round(most)))
    return Control(kind, ".".join(keys), keys, label, meaning, unit, float(value), least, most, first, idle)


def _of_workload(workload: str, settings: Mapping[str, str]) -> Iterator[Control]:
    described = listing.described("workloads", workload)
    for parameter in described.get("parameters", []):
        name, unit = parameter["name"], UNITS.get(parameter["unit"])
        value = number(settings.get(name, parameter["default"]))
        if name in SETTINGS and unit is not None and value is not None:
            yield _control("setting", (name,), name.replace("_", " "), parameter["meaning"], unit, value,
                           name in ("object_size", "waiting_factor"))  # fmt: skip


def _of_platform(resolved: Mapping[str, Any], operations: list[str]) -> Iterator[Control]:
    for section in (*KEYS, *DECLARED, *mechanisms_in(resolved)):
        declared = listing.described("primitives", "station" if section == "stations" else section).get("keys", [])
        meanings = {one["name"]: one["meaning"] for one in declared}
        keys = KEYS.get(section) or {
            one["name"]: UNITS[one["unit"]]
            for one in declared
            if "unit" in one and one["name"] in DECLARED.get(section, meanings)
        }
        for name, part in (resolved.get(section) or {}).items():
            for key, unit in keys.items():
                value = get_path(dict(part), key)
                if not isinstance(value, int | float) or (key == "count" and part.get("per") == "node"):
                    continue
                path = f"{section}.{name}.{key}"
                idle = idle_edit(path, dict(resolved), operations) or ""
                first = key in FIRST and part.get("per") != "node" and not idle
                label = f"{name}: {key.replace('.', ' ').replace('disk', 'device')}"
                yield _control(
                    "platform", (section, name, *key.split(".")), label, meanings.get(key, ""), unit, value, first, idle
                )
    for key, unit in NETWORK.items():
        if value := (resolved.get("network") or {}).get(key):
            label, idle = f"network: {key.replace('_', ' ')}", _idle_links(resolved, operations)
            yield _control("platform", ("network", key), label, "", unit, value, False, idle)


def _idle_links(resolved: Mapping[str, Any], operations: list[str]) -> str:
    """Why links change no answer to a workload with these operations; "" where they may."""
    routes, names = reached(resolved, operations)
    sections = ("caches", "buffers", *mechanisms_in(resolved))
    parts = [part for kind in sections for name, part in (resolved.get(kind) or {}).items() if name in names]
    steps = steps_of([*(resolved["operations"].get(name, []) for name in routes), *parts])
    if not operations or any("transfer" in step for step in steps):
        return ""
    return (
        f"No operation of this workload ({', '.join(sorted(operations))}) moves bytes over links of this platform, so "
        "that no value here changes the answer. A forecast (iocast predict --edit) knows those that were observed."
    )


def _of_demands(document: Document, operations: list[str]) -> Iterator[Control]:
    """Times that these operations take, where a law has a mean or a median in one number."""
    routes = document.get("operations") or {}
    reached = set(texts_in([routes.get(op) or routes for op in operations]))
    for name, law in (document.get("demands") or {}).items():
        if name not in reached:
            continue
        keys = [key for key in ("mean", "median", "scale") if isinstance(law, dict) and key in law]
        value = number(law[keys[0]] if keys else law) if keys or not isinstance(law, dict) else None
        if value:
            meaning = f"time of the demand '{name}'" + (f", {keys[0]}" if keys else "")
            yield _control("platform", ("demands", name, *keys[:1]), f"demand: {name}", meaning, SECONDS, value, False)

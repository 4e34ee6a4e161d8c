# SPDX-License-Identifier: Apache-2.0
"""Which numbers of a fitted platform nothing measured: those that its family brought, and no calibration, edit or file
upon it replaced, and those of another operation (iocast/calibrate/stand_ins.py). A forecast that rests on them is its
author's guess there, however well the rest was fitted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from iocast.analytic.routes import CONTENT, FALLBACKS
from iocast.errors import InputError, RunError
from iocast.ground.binaries import count_operations
from iocast.platforms.content import whole
from iocast.platforms.fitted import Fitted
from iocast.records.forecast import WorkloadDocument
from iocast.runs.measured import speaks_of
from iocast.runs.operations import FEW, MOVES_DATA
from iocast.runs.question import Question, Setting
from iocast.runs.settings import name_for_programs, settings_of
from iocast.ground.strict import Json

SMALLER_OBJECTS = "smaller objects"
LARGER, FAR_LARGER = 1, 2
GROWTH_LIMIT = 2.0
"""Times the bytes that were measured, up to which what moves them is taken to last as long but for bandwidths. Chosen
by hand."""
RANDOM_SIZES = 0.1
"""By which means of drawn sizes may differ by chance. Chosen by hand."""
BANDWIDTHS = ("network.node_bandwidth", "network.server_bandwidth")


def unmeasured(
    platform: Fitted,
    operations: Iterable[str],
    question: Question | None = None,
    settled: Iterable[str] = (),
    bytes_each: Mapping[str, float] | None = None,
) -> dict[str, list[str]]:
    """Of each of these operations that rests on numbers which nothing measured, their paths in the platform, such as
    `demands.ost_pwrite`; empty for a platform that was never calibrated, where that is so of all.

    What the measurements speak of rests on them. In another workload an operation that was measured does, too, but for
    the bandwidths that its bytes meet where the question has larger objects than the measurements, and for what moves
    content where only empty ones were measured, or far smaller ones. `settled`: paths that a study's designs set.
    `bytes_each`: what one of each of the question's operations moves in the mean."""
    if not platform.fitted or platform.rates_alone or (question and speaks_of(platform.fitted, question)):
        return {}
    document = whole(platform.best())
    chosen = [*(path for path, _ in platform.edits), *settled]
    own = [*_own_paths(platform), *settled]
    measured = {op for point in platform.fitted["campaign"]["points"] for op in point.get("latency") or ()}
    grown = [] if question is None else [_grown(*sizes) for sizes in _sizes(platform, question)]
    before = {} if not bytes_each else _bytes_measured(json.dumps(_measured_workload(platform)), platform.phase)
    found = {}
    for operation in dict.fromkeys(operations):
        route, known = _route(document, operation), operation in measured
        by_size = list(grown)
        if before and bytes_each and operation in MOVES_DATA:
            by_size.append(_grown(before.get(operation, 0.0), bytes_each.get(operation, 0.0), RANDOM_SIZES))
        larger, unlike = any(by_size), FAR_LARGER in by_size
        if known and not larger:
            continue
        content = _content(route, operation, document) if known and unlike else []
        content = [path for path in content if not _is_own(path, chosen)]
        paths = content + _routes_as_others(platform, operation, chosen)
        paths += [
            path
            for path in dict.fromkeys(_numbers(route, f"operations.{operation}", document))
            if path not in content
            and not _is_own(path, own)
            and (not known or path in BANDWIDTHS or path.endswith(".bandwidth"))
        ]
        if paths:
            found[operation] = paths
    return found


def _own_paths(platform: Fitted) -> list[str]:
    """Paths of the numbers that the calibration, files upon it, and edits set."""
    found = [path for path, _ in platform.edits]
    standing = platform.fitted.get("stand_ins") or {}
    for number, document in enumerate(platform.documents):
        own = leaves({key: value for key, value in document.items() if key not in ("extends", "calibration")})
        found += [path for path in own if number > 0 or path not in standing]
    return found


def in_place(platform: Fitted, rests: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Of the paths that unmeasured() found, those that have no number of the family: what was measured in their place,
    an operation or part, or smaller objects."""
    standing = platform.fitted.get("stand_ins") or {}
    own = _own_paths(platform)
    return {
        path: standing.get(path, SMALLER_OBJECTS)
        for paths in rests.values()
        for path in paths
        if path in standing or (path not in BANDWIDTHS and not path.endswith(".bandwidth") and _is_own(path, own))
    }


def _routes_as_others(platform: Fitted, operation: str, chosen: Iterable[str]) -> list[str]:
    """Paths of routes of this operation that are another one's."""
    routes = [path for path in platform.fitted.get("stand_ins") or {} if path.startswith("operations.")]
    return [path for path in routes if path.split(".")[1] == operation and not _is_own(path, chosen)]


def leaves(node: dict[str, Json], prefix: str = "") -> Iterator[str]:
    """Dotted paths down to single values, laws and lists."""
    for key, value in node.items():
        path = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(value, dict) and "law" not in value:
            yield from leaves(value, path)
        else:
            yield path


def _is_own(path: str, own: Iterable[str]) -> bool:
    return any(one == path or one.startswith(path + ".") or path.startswith(one + ".") for one in own)


def demands_of(document: Mapping[str, Any], operation: str) -> list[str]:
    """Paths of the named demands on an operation's route, in order."""
    found = _numbers(_route(document, operation), f"operations.{operation}", document)
    return [path for path in dict.fromkeys(found) if path.startswith("demands.")]


def _route(document: Mapping[str, Any], operation: str) -> Json:
    routes: dict[str, Json] = document.get("operations", {})
    return routes.get(operation, routes.get(FALLBACKS.get(operation, ""), []))


def _numbers(node: Json, path: str, document: Mapping[str, Any]) -> Iterator[str]:
    """Paths of the demands, delays and bandwidths that a route's steps take, in order."""
    if isinstance(node, list):
        for number, step in enumerate(node):
            yield from _numbers(step, f"{path}.{number}", document)
        return
    if not isinstance(node, dict):
        return
    for key in ("demand", "delay"):
        if isinstance(node.get(key), str) and node[key] in document.get("demands", {}):
            yield f"demands.{node[key]}"
        elif key in node:
            yield f"{path}.{key}"
    if "bandwidth" in node:
        yield f"{path}.bandwidth"
    if "transfer" in node:
        network = document.get("network") or {}
        yield from (one for one in BANDWIDTHS if network.get(one.partition(".")[2]))
    for key, value in node.items():
        if isinstance(value, list | dict) and "law" not in value:
            yield from _numbers(value, f"{path}.{key}", document)


def _content(route: Json, operation: str, document: Mapping[str, Any]) -> list[str]:
    """Paths of the numbers that the parts of an operation take which an empty object passes over; of one without parts
    all, where it moves content."""
    parts = route if isinstance(route, dict) else {}
    found = [_numbers(parts[part], f"operations.{operation}.{part}", document) for part in CONTENT if part in parts]
    if not parts and operation in MOVES_DATA:
        found.append(_numbers(route, f"operations.{operation}", document))
    return list(dict.fromkeys(path for paths in found for path in paths))


def _grown(before: float, now: float, chance: float = 1e-9) -> int:
    """0 for sizes that are no larger than when the platform was measured, by more than this share of chance."""
    if now <= before * (1 + chance):
        return 0
    return FAR_LARGER if now > GROWTH_LIMIT * before else LARGER


def _sizes(platform: Fitted, question: Question) -> Iterator[tuple[float, float]]:
    """Of each setting in bytes what it was when the platform was measured, and what it is now."""
    measured = platform.fitted["campaign"]["workload"]["parameters"]
    for name, value in question.settings or ():
        if value.unit == "B" or name.endswith("size"):
            before = Setting.read(measured.get(name)).number if name in measured else None
            if before is not None and value.number is not None:
                yield before, value.number


def _measured_workload(platform: Fitted) -> WorkloadDocument:
    return platform.fitted["campaign"]["workload"]


@lru_cache(maxsize=256)
def _bytes_measured(workload: str, phase: str) -> dict[str, float]:
    """By operation the bytes that one moved in the mean in a measured workload, which is JSON; empty where it is none
    that iocast knows."""
    document: WorkloadDocument = json.loads(workload)
    try:
        counted = count_operations(name_for_programs(document), settings_of(document), 1, 2, FEW)["counted"]
    except (InputError, RunError):
        return {}
    found = [one for one in counted["phases"] if one["name"] == phase]
    return {op: one["bytes"].get(op, 0) / count for one in found for op, count in one["operations"].items() if count}

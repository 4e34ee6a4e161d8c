# SPDX-License-Identifier: Apache-2.0
"""What the phases of one workload take together: time, bytes, and the mean bandwidth over that time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from iocast.content import content_hash


def total(phases: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The key `total` of a forecast (docs/answers.md) from its phases; None for a single one.

    `seconds` has the sums over all repeats of the phases, of their values and of their ends, as if all erred the same
    way; `range` likewise at the ends of the family's ranges. Without the length of some phase there are no sums."""
    if len(phases) < 2:
        return None
    found: dict[str, Any] = {
        "phases": [one["phase"] for one in phases],
        "repeats": [one.get("repeats", 1) for one in phases],
        "unknown": [one["phase"] for one in phases if (one.get("seconds") or {}).get("value") is None],
    }
    if found["unknown"]:
        return found
    weighted = list(zip(found["repeats"], phases, strict=True))
    seconds = {end: _sum((n, one["seconds"].get(end)) for n, one in weighted) for end in ("value", "low", "high")}
    ranges = [(n, range_of_seconds(one)) for n, one in weighted]
    around = {end: _sum((n, one[end] if one else None) for n, one in ranges) for end in ("low", "high")}
    lengths = [(n * one["seconds"]["value"], one) for n, one in weighted]
    operations = sum(length * one["quantities"]["rate"]["value"] for length, one in lengths)
    moved = sum(length * bytes_per_second(one) for length, one in lengths)
    return found | {
        "seconds": seconds,
        "range": None if None in around.values() else around,
        "operations": operations,
        "rate": operations / seconds["value"] if seconds["value"] else None,
        "bytes": moved,
        "bytes_per_second": moved / seconds["value"] if seconds["value"] else None,
    }


BULK = 32 * 1024
"""Bytes of a mean operation that moves data, from which on bandwidth and time are the question, and not operations a
second. Above pages of databases and small files, below the records of parallel programs (47,008 bytes in IO500)."""


def moves_bulk(phase: Mapping[str, Any]) -> bool:
    """Whether the phase of a forecast moves bytes in bulk: then its answer begins with time and bytes a second."""
    moved = [one for one in (phase.get("operations") or {}).values() if "bytes_per_second" in one]
    return are_bulk(bytes_per_second(phase), sum(one["bytes_per_second"]["value"] / one["bytes_each"] for one in moved))


def are_bulk(moved: float, operations: float) -> bool:
    """Whether bytes are moved in bulk; operations: how many moved them, in the same time."""
    return operations > 0 and moved >= BULK * operations


def of_one_workload(forecasts: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Forecasts of the phases of one workload with one placement and the same settings, in groups. Where several
    systems are among them there is no group: nothing says which phases are of one."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for one in forecasts:
        question = one.get("question") or {}
        keys = ("workload", "settings", "placement", "waiting_factor")
        groups.setdefault(content_hash([question.get(key) for key in keys]), []).append(one)
    return [group for group in groups.values() if len({one["phase"] for one in group}) == len(group)]


def bytes_per_second(phase: Mapping[str, Any]) -> float:
    """Of all operations that move data."""
    operations = (phase.get("operations") or {}).values()
    return float(sum(one["bytes_per_second"]["value"] for one in operations if "bytes_per_second" in one))


def range_of_seconds(phase: Mapping[str, Any]) -> dict[str, float] | None:
    """The length of a phase at the ends of its family's range; None where there is none."""
    ends = (phase.get("family") or {"range": {}})["range"].get("rate")
    if not ends or not ends["low"] or not phase.get("seconds"):
        return None
    work = phase["seconds"]["value"] * phase["quantities"]["rate"]["value"]
    return {"low": work / ends["high"], "high": work / ends["low"]}


def _sum(weighted: Iterable[tuple[int, float | None]]) -> float | None:
    """Of weight times value; None where a value isn't known."""
    found = 0.0
    for weight, value in weighted:
        if value is None:
            return None
        found += weight * value
    return found

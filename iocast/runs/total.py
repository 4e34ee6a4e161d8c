# SPDX-License-Identifier: Apache-2.0
"""What the phases of one workload take together: time, bytes, and the mean bandwidth over that time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iocast.platforms.content import content_hash
from iocast.records.forecast import ENDS, RANGE, Ends, ForecastDocument, PhaseDocument, Range, Total


def total(phases: Sequence[PhaseDocument]) -> Total | None:
    """The key `total` of a forecast (docs/answers.md) from its phases; None for a single one.

    `seconds` has the sums over all repeats of the phases, of their values and of their ends, as if all erred the same
    way; `range` likewise at the ends of the family's ranges. Without the length of some phase there are no sums."""
    if len(phases) < 2:
        return None
    found: Total = {
        "phases": [one["phase"] for one in phases],
        "repeats": [one.get("repeats", 1) for one in phases],
        "unknown": [one["phase"] for one in phases if _length_of(one) is None],
    }
    known = [
        (repeats, length, one)
        for repeats, one in zip(found["repeats"], phases, strict=True)
        if (length := _length_of(one)) is not None
    ]
    if len(known) < len(phases):
        return found
    value, low, high = (_sum((n, length.get(end)) for n, length, _ in known) for end in ENDS)
    seconds = value or 0.0
    ranges = [(n, range_of_seconds(one)) for n, _, one in known]
    shortest, longest = (_sum((n, one[end] if one else None) for n, one in ranges) for end in RANGE)
    lengths = [(n * length["value"], one) for n, length, one in known]
    operations = sum(length * one["quantities"]["rate"]["value"] for length, one in lengths)
    moved = sum(length * bytes_per_second(one) for length, one in lengths)
    found["seconds"] = {"value": seconds, "low": low, "high": high}
    found["range"] = None if shortest is None or longest is None else {"low": shortest, "high": longest}
    found["operations"], found["rate"] = operations, operations / seconds if seconds else None
    found["bytes"], found["bytes_per_second"] = moved, moved / seconds if seconds else None
    return found


def _length_of(phase: PhaseDocument) -> Ends | None:
    """`seconds` of a phase, where their value is known."""
    seconds = phase.get("seconds")
    return seconds if seconds and seconds.get("value") is not None else None


BULK = 32 * 1024
"""Bytes of a mean operation that moves data, from which on bandwidth and time are the question, and not operations a
second. Above pages of databases and small files, below the records of parallel programs (47,008 bytes in IO500)."""


def moves_bulk(phase: PhaseDocument) -> bool:
    """Whether the phase of a forecast moves bytes in bulk: then its answer begins with time and bytes a second."""
    moved = [one for one in (phase.get("operations") or {}).values() if "bytes_per_second" in one]
    return are_bulk(bytes_per_second(phase), sum(one["bytes_per_second"]["value"] / one["bytes_each"] for one in moved))


def are_bulk(moved: float, operations: float) -> bool:
    """Whether bytes are moved in bulk; operations: how many moved them, in the same time."""
    return operations > 0 and moved >= BULK * operations


def of_one_workload(forecasts: Sequence[ForecastDocument]) -> list[list[ForecastDocument]]:
    """Forecasts of the phases of one workload with one placement and the same settings, in groups. Where several
    systems are among them there is no group: nothing says which phases are of one."""
    groups: dict[str, list[ForecastDocument]] = {}
    for one in forecasts:
        question = one.get("question") or {}
        keys = ("workload", "settings", "placement", "waiting_factor")
        groups.setdefault(content_hash([question.get(key) for key in keys]), []).append(one)
    return [group for group in groups.values() if len({one["phase"] for one in group}) == len(group)]


def bytes_per_second(phase: PhaseDocument) -> float:
    """Of all operations that move data."""
    operations = (phase.get("operations") or {}).values()
    return float(sum(one["bytes_per_second"]["value"] for one in operations if "bytes_per_second" in one))


def range_of_seconds(phase: PhaseDocument) -> Range | None:
    """The length of a phase at the ends of its family's range; None where there is none."""
    family, seconds = phase.get("family"), phase.get("seconds")
    ends = family["range"].get("rate") if family else None
    if not ends or not ends["low"] or not seconds:
        return None
    work = seconds["value"] * phase["quantities"]["rate"]["value"]
    return {"low": work / ends["high"], "high": work / ends["low"]}


def _sum(weighted: Iterable[tuple[int, float | None]]) -> float | None:
    """Of weight times value; None where a value isn't known."""
    found = 0.0
    for weight, value in weighted:
        if value is None:
            return None
        found += weight * value
    return found

# SPDX-License-Identifier: Apache-2.0
"""Whether the numbers of a run.json agree with each other, so that a changed one does not pass unnoticed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from iocast import strict
from iocast.errors import InputError

RISING = ("min", "q25", "q50", "q75", "q95", "q99", "q999", "max")


def check_agreement(run: dict[str, Any], path: Path) -> None:
    """Of a run that iocast's own programs wrote with `by_operation`; of others nothing is known twice.

    @raises InputError that names the phase and the two numbers that contradict each other"""
    if run.get("source") not in ("bench", "simulated"):
        return
    logged = _maxima(path / "latency.hlog")
    for phase in run.get("phases") or []:
        if "by_operation" not in phase or "latency" not in phase:
            continue  # of a part that is not there nothing is known twice
        try:
            pairs = [*_pairs(phase, int(run["placement"]["ranks"])), *_of_log(phase, logged)]
            finite = all(math.isfinite(reported) and math.isfinite(known) for _, reported, _, known in pairs)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(
                f"The run '{path}' lacks a number in its phase {phase['name']}, or has something else in its place ({strict.shown(str(error))}); measure it again."
            ) from error
        if not finite:
            raise InputError(
                f"The run '{path}' has numbers in its phase {phase['name']} that are beyond all measuring; measure it again."
            )
        for name, reported, other, known in pairs:
            if not math.isclose(reported, known, rel_tol=1e-5, abs_tol=1e-12):
                raise InputError(
                    f"The run '{path}' contradicts itself: in its phase {phase['name']}, {name} is {reported:.6g}, and {other} is {known:.6g}. "
                    "It was changed since it was written, or is damaged; measure it again."
                )


def _maxima(log: Path) -> dict[str, list[float]]:
    """The largest latency of every interval of a latency.hlog in seconds, by tag; as the log has it, to a
    microsecond."""
    found: dict[str, list[float]] = {}
    for line in strict.read_text(log).splitlines() if log.is_file() else []:
        if line.startswith("Tag="):
            tag, _, _, milliseconds, _ = line[4:].split(",", 4) if line.count(",") >= 4 else (line, "", "", "nan", "")
            try:
                found.setdefault(tag, []).append(float(milliseconds) * 1e-3)
            except ValueError:
                continue  # who reads the log says what is wrong with it
    return found


def _of_log(phase: dict[str, Any], logged: dict[str, list[float]]) -> Iterator[tuple[str, float, str, float]]:
    for tag, row in phase["latency"].items():
        maxima = logged.get(f"{phase['name']}.{tag}")
        if maxima:
            nearest = min(maxima, key=lambda one: abs(one - row["max"]))
            yield (
                f"latency.{tag}.max",
                row["max"],
                "the log's",
                row["max"] if abs(nearest - row["max"]) < 1e-6 else nearest,
            )


def _pairs(phase: dict[str, Any], ranks: int) -> Iterator[tuple[str, float, str, float]]:
    """A number's name and value, and the name and value that it must equal."""
    seconds, by_operation = phase["seconds"], phase["by_operation"]
    latency = {tag: row for tag, row in phase["latency"].items() if "." not in tag}
    yield (
        "operations",
        phase["operations"],
        "the sum over operations",
        sum(row["count"] for row in by_operation.values()),
    )
    if seconds > 0:
        yield "rate", phase["rate"], "operations / seconds", phase["operations"] / seconds
    for op, row in by_operation.items():
        yield f"latency.{op}.count", latency.get(op, {}).get("count", 0), f"by_operation.{op}.count", row["count"]
        if seconds > 0:
            yield f"by_operation.{op}.rate", row["rate"], "count / seconds", row["count"] / seconds
            if "bytes" in row:
                yield (
                    f"by_operation.{op}.bytes_per_second",
                    row["bytes_per_second"],
                    "bytes / seconds",
                    row["bytes"] / seconds,
                )
    yield (
        "responding_seconds",
        phase["responding_seconds"],
        "the sum of count x mean",
        sum(row["count"] * row["mean"] for row in latency.values()),
    )
    most = ranks * seconds
    if phase["responding_seconds"] > 1.01 * most:
        yield "responding_seconds", phase["responding_seconds"], "at most ranks x seconds, which", most
    for tag, row in phase["latency"].items():
        values = [row[key] for key in RISING]
        if values != sorted(values) or not row["min"] <= row["mean"] <= row["max"] * 1.001:
            yield (
                f"latency.{tag}.max",
                row["max"],
                "the largest of its quantiles and mean",
                max(*values, row["mean"]) * (1 + 1e-3),
            )

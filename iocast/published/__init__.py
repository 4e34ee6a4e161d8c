# SPDX-License-Identifier: Apache-2.0
"""Published statements about systems that `platforms/` knows, simulated and judged (docs/evidence.md).

`claims/` holds the statements, a file a source. A statement that the simulation does not show may say why (`why_not`).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from typing import Any

from iocast.errors import InputError
from iocast.files import SCHEMA_VERSION
from iocast.published.experiment import Claim
from iocast.strict_yaml import allowed_sentence

SOURCES = sorted(file.stem for file in (Path(__file__).parent / "claims").glob("[!_]*.py"))
"""Names of the sources."""


class Unexpected(Enum):
    """How the outcome of a statement differs from what its file states."""

    MISSED = "missed without a stated reason"
    STALE = "met although a reason for a miss is stated"


Report = Callable[[str, int, int], None]


def source_of(name: str) -> tuple[str, list[Claim]]:
    """Full name of a source, and its statements.

    @raises InputError for an unknown name"""
    if name not in SOURCES:
        raise InputError(f"There is no published source '{name}'. {allowed_sentence(name, SOURCES)}")
    module = importlib.import_module(f"iocast.published.claims.{name}")
    return module.SOURCE, module.CLAIMS


def judged(claim: Claim) -> dict[str, Any]:
    """One statement simulated: `{claim, place, low, high, unit, simulated, met, why_not, unexpected}`.

    `unexpected` is a value of Unexpected, or null where the outcome is as the statement's file has it."""
    value = claim.simulated()
    met = claim.low <= value <= claim.high
    unexpected = None
    if met == bool(claim.why_not):
        unexpected = (Unexpected.STALE if met else Unexpected.MISSED).value
    return {
        "claim": claim.text, "place": claim.place, "low": claim.low, "high": claim.high, "unit": claim.unit,
        "simulated": value, "met": met, "why_not": claim.why_not, "unexpected": unexpected,
    }  # fmt: skip


def validate_published(names: Sequence[str], report: Report = lambda *_: None) -> dict[str, Any]:
    """Simulates and judges the statements of these sources, of all without one (docs/answers.md, `kind: published`).

    @raises InputError for an unknown name, before anything is simulated"""
    sources = {name: source_of(name) for name in names or SOURCES}
    total = sum(len(claims) for _, claims in sources.values())
    found: dict[str, Any] = {}
    done = 0
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for name, (source, claims) in sources.items():
            rows = []
            for row in pool.map(judged, claims):
                done += 1
                report(f"simulating {name}", done, total)
                rows.append(row)
            found[name] = {"source": source, "claims": rows}
    rows = [row for one in found.values() for row in one["claims"]]
    summary = {
        "claims": len(rows), "met": sum(row["met"] for row in rows),
        "missed_with_reason": sum(not row["met"] and not row["unexpected"] for row in rows),
        "missed": sum(row["unexpected"] == Unexpected.MISSED.value for row in rows),
        "stale": sum(row["unexpected"] == Unexpected.STALE.value for row in rows),
    }  # fmt: skip
    passed = not summary["missed"] and not summary["stale"]
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "published",
        "sources": found,
        "summary": summary,
        "passed": passed,
    }


def wanted_range(low: float, high: float) -> str:
    """The range that a statement wants, in words."""
    if high == float("inf"):
        return f"at least {three_digits(low)}"
    return f"at most {three_digits(high)}" if low == float("-inf") else f"{three_digits(low)} to {three_digits(high)}"


def three_digits(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def as_text(answer: dict[str, Any]) -> str:
    """The outcome for a terminal: counts by source, then every statement that is not met or not as its file has it."""
    lines = []
    for name, one in answer["sources"].items():
        rows = one["claims"]
        lines.append(f"{name}: {sum(row['met'] for row in rows)} of {len(rows)} met ({one['source']})")
        for row in rows:
            if row["met"] and not row["unexpected"]:
                continue
            unit = f" {row['unit']}" if row["unit"] else ""
            value, wanted = three_digits(row["simulated"]), wanted_range(row["low"], row["high"])
            verdict = row["unexpected"] or "missed, with a reason"
            lines.append(
                f"  {verdict}: {row['claim']} ({row['place']}) Wanted: {wanted}{unit}; simulated: {value}{unit}."
            )
            lines += [f"    Reason: {row['why_not']}"] if row["why_not"] else []
    counts = answer["summary"]
    lines.append(
        f"{counts['claims']} claims: {counts['met']} met, {counts['missed_with_reason']} missed with a stated reason, "
        f"{counts['missed']} {Unexpected.MISSED.value}, {counts['stale']} "
        f"{Unexpected.STALE.value}."
    )
    return "\n".join(lines)

# SPDX-License-Identifier: Apache-2.0
"""Published statements about systems that `platforms/` knows, simulated and judged (docs/evidence.md).

`claims/` holds the statements, a file a source; numbers of tables are rows of `platforms/facts/` (facts.py). A
statement that the simulation does not show may say why (`why_not`). Only forecasts are evidence, not given and fitted
numbers.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from statistics import quantiles
from typing import TypedDict

from iocast.errors import InputError
from iocast.ground.files import SCHEMA_VERSION
from iocast.published.experiment import Claim
from iocast.published.facts import ROLES
from iocast.ground.strict_yaml import allowed_sentence

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


class JudgedClaim(TypedDict):
    """A statement beside its simulation; `unexpected` is a value of Unexpected, or null where the outcome is as the
    statement's file has it."""

    claim: str
    place: str
    role: str
    quantity: str
    low: float
    high: float
    unit: str
    simulated: float
    met: bool
    why_not: str
    unexpected: str | None


class JudgedSource(TypedDict):
    source: str
    claims: list[JudgedClaim]


class Met(TypedDict):
    claims: int
    met: int


class MetForecasts(Met):
    """Errors are factors minus 1 either way between a number and its simulation; null where there are fewer than
    two."""

    median_error: float | None
    nine_in_ten: float | None


class PublishedSummary(Met):
    missed_with_reason: int
    missed: int
    stale: int
    roles: dict[str, Met]
    forecasts: dict[str, MetForecasts]


class PublishedDocument(TypedDict):
    """docs/answers.md, `kind: published`."""

    schema_version: int
    kind: str
    sources: dict[str, JudgedSource]
    summary: PublishedSummary
    passed: bool


def judged(claim: Claim) -> JudgedClaim:
    """One statement simulated."""
    value = claim.simulated()
    met = claim.low <= value <= claim.high
    unexpected = None
    if met == bool(claim.why_not):
        unexpected = (Unexpected.STALE if met else Unexpected.MISSED).value
    return {
        "claim": claim.text, "place": claim.place, "role": claim.role, "quantity": claim.quantity,
        "low": claim.low, "high": claim.high, "unit": claim.unit,
        "simulated": value, "met": met, "why_not": claim.why_not, "unexpected": unexpected,
    }  # fmt: skip


def validate_published(names: Sequence[str], report: Report = lambda *_: None) -> PublishedDocument:
    """Simulates and judges the statements of these sources, of all without one.

    @raises InputError for an unknown name, before anything is simulated"""
    sources = {name: source_of(name) for name in names or SOURCES}
    total = sum(len(claims) for _, claims in sources.values())
    found: dict[str, JudgedSource] = {}
    done = 0
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for name, (source, claims) in sources.items():
            judgements = []
            for row in pool.map(judged, claims):
                done += 1
                report(f"simulating {name}", done, total)
                judgements.append(row)
            found[name] = {"source": source, "claims": judgements}
    rows = [row for one in found.values() for row in one["claims"]]
    summary: PublishedSummary = {
        "claims": len(rows), "met": sum(row["met"] for row in rows),
        "missed_with_reason": sum(not row["met"] and not row["unexpected"] for row in rows),
        "missed": sum(row["unexpected"] == Unexpected.MISSED.value for row in rows),
        "stale": sum(row["unexpected"] == Unexpected.STALE.value for row in rows),
        "roles": {role: met_of([row for row in rows if row["role"] == role]) for role in ROLES},
        "forecasts": forecasts_by_quantity(rows),
    }  # fmt: skip
    passed = not summary["missed"] and not summary["stale"]
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "published",
        "sources": found,
        "summary": summary,
        "passed": passed,
    }


def met_of(rows: Sequence[JudgedClaim]) -> Met:
    return {"claims": len(rows), "met": sum(row["met"] for row in rows)}


def forecasts_by_quantity(rows: Sequence[JudgedClaim]) -> dict[str, MetForecasts]:
    """By quantity of tables, of forecasts alone."""
    found: dict[str, MetForecasts] = {}
    for quantity in dict.fromkeys(row["quantity"] for row in rows if row["quantity"]):
        mine = [row for row in rows if row["quantity"] == quantity and row["role"] == "forecast"]
        errors = [error for row in mine if (error := error_of(row)) is not None]
        cuts: Sequence[float | None]
        cuts = quantiles(errors, n=10, method="inclusive") if len(errors) > 1 else [None] * 9
        found[quantity] = {**met_of(mine), "median_error": cuts[4], "nine_in_ten": cuts[8]}
    return found


def error_of(row: JudgedClaim) -> float | None:
    """Factor minus 1 between a published number, the geometric middle of its range, and its simulation; None for a
    bound."""
    if not 0 < row["low"] <= row["high"] < float("inf") or row["simulated"] <= 0:
        return None
    return math.exp(abs(math.log(row["simulated"] / math.sqrt(row["low"] * row["high"])))) - 1


def wanted_range(low: float, high: float) -> str:
    """The range that a statement wants, in words."""
    if high == float("inf"):
        return f"at least {three_digits(low)}"
    return f"at most {three_digits(high)}" if low == float("-inf") else f"{three_digits(low)} to {three_digits(high)}"


def three_digits(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def as_text(answer: PublishedDocument) -> str:
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
    for role, known in counts["roles"].items():
        if known["claims"]:
            lines.append(f"{role}: {known['met']} of {known['claims']} met.")
    for quantity, of in counts["forecasts"].items():
        if of["claims"]:
            middle, most = of["median_error"], of["nine_in_ten"]
            errors = (
                f"; median error {middle:.0%}, nine in ten within {most:.0%}"
                if middle is not None and most is not None
                else ""
            )
            lines.append(f"  forecasts of {quantity}: {of['met']} of {of['claims']} met{errors}.")
    lines.append(
        f"{counts['claims']} claims: {counts['met']} met, {counts['missed_with_reason']} missed with a stated reason, "
        f"{counts['missed']} {Unexpected.MISSED.value}, {counts['stale']} "
        f"{Unexpected.STALE.value}."
    )
    return "\n".join(lines)

# SPDX-License-Identifier: Apache-2.0
"""Comparisons as files and JSON have them (docs/compare.md, `kind: comparison`)."""

from __future__ import annotations

from typing import TypedDict

from typing_extensions import NotRequired

from iocast.records.note import Cautious


class ChangedRow(TypedDict):
    """A quantity on both sides; `ratio` of `b` to `a` with its interval. `verdict`: worse, better, open or unknown.
    `judged`: against its threshold, worse, within or undecided; None without one."""

    quantity: str
    a: float | None
    b: float | None
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None
    cliffs_delta: float | None
    verdict: str
    threshold: float | None
    judged: str | None
    why_not: str | None
    unit: NotRequired[str]


class ComparedPoint(Cautious):
    """A measurement that both sides have. `runs`, `repeats`: of each side."""

    name: str
    phase: str
    ranks: int
    waiting_factor: float
    runs: list[int]
    repeats: list[int]
    method: str
    assumed_between_runs: float | None
    how: str
    tests: int
    rows: list[ChangedRow]
    failed: list[str]
    undecided: list[str]


class FailOn(TypedDict):
    quantity: str | None
    loss: float


class ComparisonDocument(Cautious):
    schema_version: int
    kind: str
    a: str
    b: str
    alpha: float
    fail_on: list[FailOn]
    points: list[ComparedPoint]
    failed: bool
    undecided: bool

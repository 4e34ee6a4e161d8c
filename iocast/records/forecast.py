# SPDX-License-Identifier: Apache-2.0
"""Forecasts as files and JSON have them (docs/answers.md, `kind: forecast`)."""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal, TypedDict

from msgspec import Struct
from typing_extensions import NotRequired

from iocast.records.note import Cautious
from iocast.records.quantities import Interval


class Numbers(Enum):
    """Where a platform's numbers come from (`platform.numbers` of a forecast)."""

    FITTED = "fitted"
    BY_HAND = "by hand"
    """Set by its author to published measurements."""
    OWN = "own"
    """Its author's: it was never calibrated."""


class PhaseForecast(Struct, frozen=True):
    """A phase of a forecast."""

    phase: str
    quantities: dict[str, Interval]
    bottleneck: str
    parts: dict[str, Interval] = {}
    seconds: Interval | None = None
    """Length of the phase."""

    @property
    def rate(self) -> Interval:
        """Operations a second, or bytes a second where its `unit` says so."""
        return self.quantities["rate"]


End = Literal["value", "low", "high"]
ENDS: tuple[End, ...] = ("value", "low", "high")


class Ends(TypedDict):
    """A value with its interval, None where that is not known. `model`, `calibrated`: the value before shifts and
    before simple rules."""

    value: float
    low: float | None
    high: float | None
    model: NotRequired[float]
    calibrated: NotRequired[float]
    unit: NotRequired[str]


def scaled(ends: Ends, factor: float) -> Ends:
    """Value and interval times a factor."""
    low, high = ends["low"], ends["high"]
    return {
        "value": factor * ends["value"],
        "low": None if low is None else factor * low,
        "high": None if high is None else factor * high,
    }


def shown(ends: Ends) -> Interval:
    """What is printed of a value."""
    return Interval(ends["value"], ends["low"], ends["high"], unit="bytes" if ends.get("unit") == "bytes" else None)


class Range(TypedDict):
    low: float
    high: float


RANGE: tuple[Literal["low", "high"], ...] = ("low", "high")


class OperationForecast(TypedDict):
    """`share` of the phase's operations. Bytes only where it moves data."""

    share: float
    rate: Ends
    bytes_each: NotRequired[float]
    bytes_per_second: NotRequired[Ends]


class FamilySystem(TypedDict):
    """A measured system of a family, and what its model answers."""

    name: str
    description: str
    by: str
    quantities: dict[str, float]


class FamilyRange(TypedDict):
    """What stands beside a forecast without measurements."""

    family: str
    systems: list[FamilySystem]
    range: dict[str, Range]
    label: str


class Total(TypedDict):
    """All phases of a workload together; without the length of some phase, which is `unknown`, no sums."""

    phases: list[str]
    repeats: list[int]
    unknown: list[str]
    seconds: NotRequired[Ends]
    range: NotRequired[Range | None]
    operations: NotRequired[float]
    rate: NotRequired[float | None]
    bytes: NotRequired[float]
    bytes_per_second: NotRequired[float | None]


class BestRule(TypedDict):
    """The simple rule with the smallest held-out error, a share of the measured rate."""

    name: str
    error: float


class Growth(TypedDict):
    falls: float | None
    text: str


class Distribution(TypedDict):
    probability: list[float]
    seconds: list[float]


class Timeline(TypedDict):
    bin_seconds: float
    rate: list[float]


class PlaceDocument(TypedDict):
    ranks: int
    nodes: int
    ranks_per_node: float
    order: NotRequired[str]


class PhaseDocument(TypedDict):
    """What a forecast says of one phase."""

    phase: str
    question: dict[str, Any]
    quantities: dict[str, Ends]
    parts: dict[str, Ends]
    operations: dict[str, OperationForecast]
    seconds: Ends | None
    repeats: int
    baselines: dict[str, dict[str, float | Range]]
    rule: BestRule | None
    distributions: dict[str, Distribution]
    rests_on: dict[str, list[str]]
    stations: dict[str, dict[str, float]]
    bottleneck: str
    limited_by: NotRequired[str | None]
    blend: str | None
    bounded: str | None
    links: NotRequired[str]
    left_out: NotRequired[list[str]]
    timeline: NotRequired[Timeline]
    balance: NotRequired[Ends]
    growth: NotRequired[Growth]
    family: NotRequired[FamilyRange]


class PlatformReference(TypedDict):
    name: str
    file: str
    content_hash: str
    edits: dict[str, Any]
    numbers: str


class WorkloadDocument(TypedDict):
    name: str
    pattern: str
    parameters: dict[str, Any]


class CourseRow(TypedDict):
    """A repeat of a phase; `start` in seconds since the first one began. `moment`: the requested one."""

    phase: str
    repeat: int
    start: float
    seconds: float
    rate: float
    bytes_per_second: float
    moment: NotRequired[float]


class DrawsDocument(TypedDict):
    used: int
    of: int
    how: str


class Weight(TypedDict):
    structure: dict[str, str]
    weight: float


class Parting(TypedDict):
    choice: str
    rates: dict[str, float]


class AnalyticRates(TypedDict):
    """Rates of the analytic solver by phase, or why it has none."""

    rates: dict[str, float]
    refusal: str
    left_out: list[str]


class ForecastDocument(PhaseDocument, Cautious):
    """A forecast as a whole; its own keys of a phase are of the one that stands for the workload."""

    schema_version: int
    kind: str
    label: str
    platform: PlatformReference
    made_at: str
    workload: WorkloadDocument
    placement: PlaceDocument
    ranks_per_node_assumed: bool
    solver: str
    level: float
    waiting_factor: float
    extrapolation: float | None
    further_phases: list[PhaseDocument]
    total_operations: float | None
    course: list[CourseRow]
    total: Total | None
    draws: DrawsDocument
    alternatives: list[Weight]
    parting: list[Parting]
    next: NotRequired[list[dict[str, Any]]]
    basis: list[str]
    analytic: NotRequired[AnalyticRates]
    at: NotRequired[CourseRow]


def forecast_rate(forecast: PhaseDocument) -> Ends | None:
    """None in files of before that forecast no rate."""
    return forecast["quantities"].get("rate")


def value_of(ends: Ends | None) -> float | None:
    return ends["value"] if ends else None

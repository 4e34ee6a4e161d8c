# SPDX-License-Identifier: Apache-2.0
"""Answers of studies as files and JSON have them (docs/studies.md, `kind: study`). Earlier versions wrote fewer keys;
what is not known or does not apply is null."""

from __future__ import annotations

from typing import Any, TypedDict

from iocast.records.note import Coded
from iocast.records.fitted import HoldOut


class Spread(TypedDict, total=False):
    """A best estimate with its interval; null where nothing is served, or no interval known."""

    value: float | None
    low: float | None
    high: float | None


class Why(TypedDict, total=False):
    """The station that is why a level fails, and the part of the time there: of `part` "limit" with the sentence on
    what limits the rate, and without `share` and perhaps `station`."""

    station: str | None
    part: str
    share: float | None
    limited_by: str | None
    text: str


class LevelRow(Spread, total=False):
    """A level at one of the places where it must hold, of one design. `margin`: over 1 where it is kept; null where
    nothing is served. `probability`: null of a design that was not simulated."""

    level: str
    quantity: str
    limit: float
    upper: bool
    workload: str
    scale: str
    under: str | None
    probability: float | None
    margin: float | None


class Failing(LevelRow, total=False):
    ranks: int
    why: Why | None


class Breaks(TypedDict, total=False):
    """Ranks at which a level is first missed, None where none is up to `beyond`."""

    ranks: int | None
    already: bool
    level: str | None
    workload: str | None
    beyond: int
    nodes: int | None
    ranks_per_node: int | None
    unsolved: list[str]


class Costing(TypedDict, total=False):
    """Of a design what it is and costs."""

    id: str
    name: str
    values: dict[str, str]
    parts: dict[str, float]
    cost: float
    price: float
    watts: float
    rack_units: float
    rate: float | None
    tail: float | None


class DesignDocument(Costing, total=False):
    beyond_limits: list[str]
    basis: str
    front: bool
    replications: int
    probability: float | None
    meets: bool | None
    levels: list[LevelRow]
    possible_margins: list[list[int]]
    first_failing: Failing | None
    breaks_at: Breaks | None


class PlatformOfStudy(TypedDict, total=False):
    name: str
    phase: str
    calibrated: bool
    unmeasured: dict[str, list[str]]
    set_by_hand_to: str | None
    published: bool
    description: str
    source: str
    fitted_ranks: list[int]
    holdout: HoldOut
    discrepancy: dict[str, float]


class AxisValue(TypedDict, total=False):
    """`platform`, and whether it is `calibrated`: of a value that is another system; null of others."""

    name: str
    platform: str | None
    calibrated: bool | None
    note: str | None


class AxisDocument(TypedDict):
    name: str
    values: list[AxisValue]


class StatedError(TypedDict):
    factors: dict[str, float]
    source: str


class LevelDocument(TypedDict, total=False):
    """A level, and the shares of designs that it rules out, and that it alone rules out; null without designs."""

    level: str
    quantity: str
    limit: float
    upper: bool
    at: list[str]
    workloads: list[str]
    under: str | None
    why: str | None
    rules_out: float | None
    alone: float | None


class MeasuredSystem(TypedDict):
    name: str
    by: str


class LevelOfFamily(TypedDict, total=False):
    level: str
    workload: str
    scale: str
    values: dict[str, float | None]


class FamilyOfStudy(TypedDict, total=False):
    family: str
    systems: list[MeasuredSystem]
    levels: list[LevelOfFamily]
    refused: list[str]


class Needed(TypedDict, total=False):
    """A limit with which a design would keep a level; `down`: where it does not serve."""

    level: str
    quantity: str
    limit: float
    needed: float
    workload: str
    scale: str
    down: bool


class Relaxation(TypedDict, total=False):
    design: str
    name: str
    saves: float
    probability: float
    needed: list[Needed]


class NearestMiss(TypedDict, total=False):
    design: str
    name: str
    cost: float
    probability: float
    first_failing: Failing | None
    needed: list[Needed]


class OtherConfidence(TypedDict):
    """The cheapest design that keeps all levels with a confidence; null where there is none."""

    confidence: float
    design: str | None
    name: str | None
    cost: float | None


class AxisEffect(TypedDict, total=False):
    value: str
    cost: float
    rate: float
    tail: float
    worst_margin: float


class AxisSensitivity(TypedDict):
    axis: str
    shares: dict[str, float]
    values: list[AxisEffect]


class Uncertain(TypedDict, total=False):
    """An uncertain number: what a standard deviation of it changes a level by, and where it turns the decision; null
    where it doesn't."""

    name: str
    factor: float
    effect: float
    level: str
    workload: str
    scale: str
    turns_at: float | None


class Sensitivity(TypedDict):
    axes: list[AxisSensitivity]
    uncertain: list[Uncertain]
    design: str | None


class Worth(TypedDict):
    """A measurement and what knowing its result is worth; without a price `price` and `net` are null."""

    name: str
    tells: list[str]
    price: float | None
    value: float
    net: float | None
    exact: bool


class ScaleDocument(TypedDict):
    name: str
    nodes: int
    ranks_per_node: int
    ranks: int


class WorkloadOfStudy(TypedDict, total=False):
    name: str
    workload: str
    weight: float
    phase: str
    settings: dict[str, str]
    operations: dict[str, float]
    scales: list[str]
    screened: bool
    simulated_share: float


class CurvePoint(Spread, total=False):
    design: str
    name: str
    workload: str
    scale: str
    ranks: int
    quantity: str


class StationTime(TypedDict):
    """Seconds of a mean operation at a part of a station."""

    design: str
    name: str
    workload: str
    scale: str
    station: str
    part: str
    seconds: float
    utilisation: float | None


class KneePoint(TypedDict, total=False):
    workload: str
    series: str
    ranks: int
    nodes: int
    ranks_per_node: int
    rate: float
    mean: float
    rate_low: float | None
    rate_high: float | None
    mean_low: float | None
    mean_high: float | None
    knee: float | None


class SearchDocument(TypedDict, total=False):
    explored: str
    designs: int
    excluded: int | None
    looked_at: int
    within_limits: int
    simulated: int
    replications: int
    computed: int
    found: int


class Conclusion(TypedDict):
    about: str
    text: str


class RoutesOfDesign(TypedDict):
    design: str
    operations: dict[str, Any]


class PricedPart(TypedDict, total=False):
    price: float
    watts: float
    rack_units: float
    source: str


class UnsureNumber(TypedDict, total=False):
    factor: float
    paths: list[str] | str
    source: str


class StudyFile(TypedDict, total=False):
    """The question, as its author wrote it."""

    platform: str
    parts: dict[str, PricedPart]
    running: dict[str, object]
    limits: dict[str, float]
    base: dict[str, object]
    uncertainty: dict[str, UnsureNumber]
    model_error: dict[str, float]
    axes: dict[str, dict[str, object]]
    scenarios: dict[str, object]
    tasks: dict[str, dict[str, float]]
    falling_short: float


class StudyDocument(Coded, total=False):
    schema_version: int
    kind: str
    title: str
    question: str
    platform: PlatformOfStudy
    confidence_asked: float
    decision: Costing | None
    confidence: float | None
    stability: float
    currency: str
    years: float
    designs: list[DesignDocument]
    axes: list[AxisDocument]
    model_error: StatedError | None
    levels: list[LevelDocument]
    family: FamilyOfStudy | None
    front: list[str]
    nearest_miss: NearestMiss | None
    relaxations: list[Relaxation]
    other_confidences: list[OtherConfidence]
    sensitivity: Sensitivity
    falling_short: float | None
    measurements: list[Worth]
    scales: list[ScaleDocument]
    workloads: list[WorkloadOfStudy]
    curves: list[CurvePoint]
    stations: list[StationTime]
    knee: list[KneePoint]
    routes: RoutesOfDesign | None
    shown: list[str]
    search: SearchDocument
    extrapolation: float | None
    programs: dict[str, str]
    study: StudyFile
    file: str
    command: list[str]
    headline: str
    conclusions: list[Conclusion]
    warnings: list[str]


class PairedRow(TypedDict, total=False):
    """A quantity of two designs: best estimates, the ratio with its interval, and from how many pairs it is."""

    scenario: str
    workload: str
    scale: str
    ranks: int
    quantity: str
    first: float | None
    second: float | None
    ratio: float | None
    low: float | None
    high: float | None
    mean_low: float
    mean_high: float
    pairs: int
    without: int
    clear: bool


class Rival(TypedDict):
    """A design beside the decision, and why it lost."""

    name: str
    cost: float
    difference: float
    probability: float | None
    why: str

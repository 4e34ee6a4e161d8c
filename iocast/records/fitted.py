# SPDX-License-Identifier: Apache-2.0
"""The section `fitted` of a calibrated platform's file (docs/answers.md). Earlier states wrote fewer keys."""

from __future__ import annotations

from typing import Any, TypedDict

from typing_extensions import NotRequired

from iocast.records.forecast import WorkloadDocument

Latencies = dict[str, dict[str, float]]
"""By operation `count`, `mean`, quantiles and `max`, in seconds."""


class RunReference(TypedDict):
    name: str
    sha256: str


class FittedPoint(TypedDict):
    """A measured point. `switches`: settings that differ between points; `repeats` and `log_variance` of a fit to
    rates."""

    name: str
    ranks: int
    nodes: int
    waiting_factor: float
    think_time: float
    rate: float
    latency: Latencies
    peak_objects: NotRequired[float]
    switches: NotRequired[dict[str, str]]
    repeats: NotRequired[int]
    log_variance: NotRequired[float]
    working_set: NotRequired[float | None]


class FittedCampaign(TypedDict, total=False):
    """What was measured. `unit`: of the rate, "operations" or "bytes"."""

    runs: list[RunReference]
    ranks: list[int]
    waiting_factors: list[float]
    workload: WorkloadDocument
    phase: str
    phases: list[str]
    environment: dict[str, Any]
    unit: str
    points: list[FittedPoint]


class FittedParameter(TypedDict):
    """`low`, `high`: the range that holds 90 %."""

    name: str
    value: float
    low: float
    high: float
    unit: str


class Alternative(TypedDict):
    structure: dict[str, str]
    weight: float
    misfit: float
    parameters: dict[str, float]


class FitRow(TypedDict):
    """A measured quantity beside what the platform gives. `spread`: standard deviation of the logarithm over draws;
    `noise`: that between repeats of this point."""

    point: str
    quantity: str
    measured: NotRequired[float]
    forecast: NotRequired[float]
    error: float
    runs: NotRequired[int]
    noise: NotRequired[float]
    spread: NotRequired[float]
    phase: NotRequired[str]
    unit: NotRequired[str]


class HoldOut(TypedDict, total=False):
    """Rows of the largest scales, forecast by a fit to the smaller ones; empty where none could be held out."""

    ranks: int
    nodes: int
    scales: list[int]
    fitted_up_to: int
    structure: dict[str, str]
    waiting_factor: float
    rows: list[FitRow]


class Growing(TypedDict):
    step: float
    power: float


class BlendOfGroup(TypedDict, total=False):
    """Of rates or latencies: which simple rule was better, why there is a blend, and by candidate weight and error."""

    favoured: str | None
    because: str | None
    weights: dict[str, float]
    errors: dict[str, float]


WARNED_OF = ("ageing", "drift")
"""Kinds of findings that a reader of a forecast must know of: their texts are notes, too."""


class FindingDocument(TypedDict):
    kind: str
    text: str
    numbers: dict[str, Any]


class Observed(TypedDict):
    """What operations took of a resource, at the largest scale where it was observed; `demand` in seconds each."""

    servers: float
    demand: float
    utilisation: float
    ranks: int
    nodes: int
    per_node: bool


class Counted(TypedDict):
    """What a server's own counters say of a station: seconds of an operation that hold a thread, threads in use at
    most, and by number of threads its weight (of the largest, that there are no fewer). `network`: these seconds hold
    the way there and back."""

    station: str
    service: float
    network: bool
    busy: float
    threads: dict[str, float]


class MovedAtMost(TypedDict):
    """Bytes over a node's links by operation, among them what ranks of several nodes sent each other."""

    sent: float
    received: float
    ranks: int


class LinkBytes(TypedDict):
    """Bytes that an operation moved over the links of its own node: at the largest scale on one node, whose ranks send
    each other nothing over links, or else at the largest that was observed. `nodes`: of the latter; they may have sent
    each other a part. `at_most`: bytes at the largest scale, where they are more."""

    sent: float
    received: float
    ranks: int
    nodes: NotRequired[int]
    at_most: NotRequired[MovedAtMost]


class StallFound(TypedDict):
    every: float
    length: float
    operations: list[str]


class ResidualRow(TypedDict):
    point: str
    residual: float
    alarm: bool


class ByDefault(TypedDict):
    """Why nobody chose the family, and the scores of those that were tried."""

    because: str
    family: str
    scores: dict[str, float]


class FittedPlatform(TypedDict, total=False):
    """A platform file as a whole."""

    name: str
    extends: str
    description: str
    source: str
    fitted: FittedSection


class FurtherPhase(TypedDict):
    platform: dict[str, Any]
    fitted: FittedSection


class FittedSection(TypedDict, total=False):
    """`stand_ins`: by path of a demand or route that nothing measured, the operation or part that stands in."""

    method: str
    campaign: FittedCampaign
    family: str
    structure: dict[str, str]
    parameters: dict[str, FittedParameter]
    correlations: dict[str, dict[str, float]]
    alternatives: list[Alternative]
    open: dict[str, dict[str, float]]
    misfit: float
    score: float
    usual_misfit: float
    noise: dict[str, float]
    noise_together: dict[str, float]
    noise_basis: dict[str, str]
    fit: list[FitRow]
    residuals: list[ResidualRow]
    holdout: HoldOut
    discrepancy: dict[str, float]
    discrepancy_degrees: dict[str, float]
    discrepancy_growth: Growing
    blend: dict[str, BlendOfGroup]
    simulations: int
    findings: list[FindingDocument]
    notes: list[str]
    cautions: list[dict[str, object]]
    known: list[dict[str, Any]]
    nearest: dict[str, float]
    stand_ins: dict[str, str]
    draws: list[dict[str, Any]]
    draw_structures: list[dict[str, str]]
    drawn_from: dict[str, dict[str, float]]
    observed: dict[str, Observed]
    counted: Counted
    link_bytes: LinkBytes
    stall: StallFound
    by_default: ByDefault
    next: dict[str, Any]
    further_phases: dict[str, FurtherPhase]
    level: float

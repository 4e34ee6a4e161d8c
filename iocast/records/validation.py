# SPDX-License-Identifier: Apache-2.0
"""Validations as files and JSON have them (docs/answers.md, `kind: validation`)."""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal, TypedDict

from typing_extensions import NotRequired

from iocast.records.forecast import PlaceDocument
from iocast.records.note import Noted


class Verdict(Enum):
    """How a validation ended."""

    PASSED = "passed"
    FELL_SHORT = "fell short"
    NOTHING_HELD_OUT = "nothing held out"
    """Every measurement was fitted, so that nothing was judged."""


class RuleValue(TypedDict):
    """What a simple rule says of a quantity, and its relative error."""

    value: float
    error: float


class ScoredRow(TypedDict):
    """A quantity as it was forecast and measured. `error`: forecast / measured - 1."""

    quantity: str
    measured: float
    measured_low: float
    measured_high: float
    forecast: float
    low: float | None
    high: float | None
    error: float
    inside: bool | None
    crps: NotRequired[float | None]
    baselines: dict[str, RuleValue]
    unit: NotRequired[str]
    truth: NotRequired[float | None]
    """Of a server whose truth is known."""


class Made(TypedDict):
    """Where a forecast comes from: `now`, or a file of `earlier`."""

    when: str
    file: NotRequired[str]
    sha256: NotRequired[str]
    made_at: NotRequired[str]
    before_measurement: NotRequired[bool | None]


class ScoredPoint(TypedDict):
    name: str
    phase: str
    role: str
    question: dict[str, Any]
    placement: PlaceDocument
    waiting_factor: float
    runs: list[str]
    rows: list[ScoredRow]
    wasserstein: dict[str, float]
    made: Made


class MedianErrors(TypedDict):
    rate_error_median: float | None
    quantile_error_median: float | None


Kind = Literal["rate", "quantiles"]
KINDS: tuple[Kind, ...] = ("rate", "quantiles")


class NoiseOfKinds(TypedDict):
    rate: float
    quantiles: float


class NoiseBasis(TypedDict):
    rate: str
    quantiles: str


class Beaten(TypedDict):
    """A simple rule that is better by more than noise; median sizes of errors."""

    what: str
    rule: str
    forecast_error: float
    rule_error: float


class ValidationSummary(MedianErrors):
    coverage: float | None
    crps: dict[str, float]
    wasserstein_median: float | None
    baselines: dict[str, MedianErrors]
    beaten_by: list[Beaten]
    noise: NoiseOfKinds
    noise_basis: NoiseBasis


class PlatformFile(TypedDict):
    name: str
    file: str


class ValidationDocument(TypedDict):
    schema_version: int
    kind: str
    platform: PlatformFile
    level: float
    points: list[ScoredPoint]
    error: str
    summary: ValidationSummary
    criterion: str
    passed: bool
    verdict: str


class ServedDocument(TypedDict):
    """Of an operation: mean seconds as the file system's log has them and as its truth says, and how many standard
    errors lie between."""

    count: int
    mean: float
    truth: float
    deviation: float


class AllowedError(TypedDict):
    error: float
    allowed: float


class SelftestDocument(Noted):
    """What `iocast selftest` found (docs/answers.md, `kind: selftest`)."""

    schema_version: int
    kind: str
    truth: str
    family: str
    forecasts_sha256: dict[str, str]
    structure: dict[str, str]
    services: dict[str, ServedDocument]
    errors: dict[str, AllowedError]
    coverage: float | None
    passed: bool

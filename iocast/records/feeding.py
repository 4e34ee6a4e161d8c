# SPDX-License-Identifier: Apache-2.0
"""Accelerators that are fed: forecasts (docs/answers.md, `kind: accelerators`), and what numbers of them do, measured
or simulated (`kind: fed`)."""

from __future__ import annotations

from typing import TypedDict, cast

from typing_extensions import NotRequired

from iocast.records.forecast import Range


class ValueRange(Range):
    value: float


class FedDocumentCount(TypedDict):
    """A measured count; `utilisation` after the first step, `rate` of all accelerators."""

    count: int
    hosts: int | None
    utilisation: float
    rate: float
    start: float


class IfFedDocument(TypedDict):
    utilisation: ValueRange
    rate: ValueRange


class FeedingForecast(IfFedDocument):
    """`fed`: probability that the count keeps the limit; `if_fed`: the same forecast on that condition."""

    count: int
    fed: float
    if_fed: IfFedDocument | None


class MostFed(TypedDict):
    value: int | None
    low: int | None
    high: int | None


class AcceleratorsDocument(TypedDict):
    """A forecast. `limit`: utilisation that counts as fed; `unit` of the rates: samples or bytes, a second."""

    kind: str
    name: NotRequired[str]
    level: float
    of: dict[str, str]
    limit: float
    unit: str
    bytes_per_sample: float | None
    measured: list[FedDocumentCount]
    growth: float | None
    forecasts: list[FeedingForecast]
    most: MostFed
    limits: str
    notes: list[str]


class BusyDevice(TypedDict):
    name: str
    busy: float


class FedRow(TypedDict, total=False):
    """What a number of accelerators does, in the last epoch; `met` of `runs` kept the limit in a search."""

    accelerators: int
    nodes: int
    readers: int
    utilisation: float
    utilisation_after_first_step: float
    samples_per_second: float
    bytes_per_second: float
    stall_share: float
    busiest: list[BusyDevice]
    met: int
    runs: int
    levels: dict[str, float]


class FedDocument(TypedDict, total=False):
    schema_version: int
    kind: str
    name: str
    source: str
    workload: str
    settings: dict[str, str]
    rows: list[FedRow]
    platform: dict[str, str]
    seed: int
    notes: list[str]
    answer: int | None
    missed: int | None
    confirmed: int
    reason: str
    reason_text: str
    levels: list[str]


Feeding = AcceleratorsDocument | FedDocument


def forecast_in(document: Feeding) -> AcceleratorsDocument | None:
    """The same document; None for one that counts."""
    return cast(AcceleratorsDocument, document) if document["kind"] == "accelerators" else None

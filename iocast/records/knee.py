# SPDX-License-Identifier: Apache-2.0
"""Knee searches as knee.json has them (docs/answers.md, `kind: knee`)."""

from __future__ import annotations

from typing import TypedDict

from typing_extensions import NotRequired

from iocast.records.note import Noted


class MeanOfRuns(TypedDict):
    """Mean over runs with Student's interval; None where it is not known."""

    value: float | None
    low: float | None
    high: float | None


class Level(TypedDict):
    text: str
    quantity: str
    limit: float


class Load(TypedDict):
    """As a rate of a rank with what all are offered, or as a waiting factor with how many ranks ask."""

    load: float
    rate_of_a_rank: NotRequired[float]
    offered: NotRequired[float]
    waiting_factor: NotRequired[float]
    asking: NotRequired[float]


class Judged(TypedDict, total=False):
    """How many runs met the levels; "met", "mixed" or "missed"."""

    met: int
    missed: int
    verdict: str


class TriedLoad(Load, Judged):
    """All runs at one load; None where none was complete. Judged where there are levels."""

    runs: list[str]
    cut_off: int
    kept_up: int
    rate: float | None
    response: float | None
    service: float | None
    busy: float | None
    power: float | None
    seconds: float | None
    values: dict[str, float | None]
    rates: dict[str, float | None]
    few: list[str]


class AnsweredLoad(Load):
    """The answer, and by how many fresh runs it was confirmed."""

    runs: list[str]
    confirmed: int
    rate: MeanOfRuns
    response: MeanOfRuns
    rates: dict[str, MeanOfRuns]
    values: dict[str, MeanOfRuns]


class KneePlace(TypedDict):
    ranks: int
    nodes: int
    ranks_per_node: int
    threads_per_rank: int


class KneeAt(TypedDict):
    """In the unit of the load; a `high` of None is open."""

    estimate: float | None
    low: float | None
    high: float | None


class KneeBounds(TypedDict):
    """D, the most operations a second, D_max, and N* (Denning & Buzen 1978)."""

    demand: float
    saturated_rate: float
    largest_demand: float
    ranks: float


class KneeDocument(Noted):
    schema_version: int
    kind: str
    workload: str
    phase: str
    backend: str
    over: str
    operations: list[str]
    placement: KneePlace
    levels: list[Level]
    confidence: float
    precision: float
    length_seconds: float
    budget_seconds: float
    reason: str
    answer: AnsweredLoad | None
    knee: KneeAt
    limited_by: str | None
    unloaded: TriedLoad | None
    bounds: KneeBounds | None
    loads: list[TriedLoad]
    runs: int
    seconds: float
    name: NotRequired[str]

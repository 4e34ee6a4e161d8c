# SPDX-License-Identifier: Apache-2.0
"""What iocast-sim prints (docs/run-directory.md): a run with --json, and a workload with --print-workload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from iocast.records.forecast import WorkloadDocument

if TYPE_CHECKING:  # of Python 3.11
    from typing import NotRequired

Latency = dict[str, float]
"""`count`, `mean`, `min`, quantiles and `max` of response times, in seconds."""


class StationDocument(TypedDict):
    """`operations`: by operation `visits`, and of a visit the seconds of each part."""

    utilisation: float
    requests: float
    visits: float
    operations: dict[str, dict[str, float]]


class BusyLink(TypedDict):
    name: str
    bytes: float
    busy: float


class NetworkDocument(TypedDict):
    busiest: list[BusyLink]


class SimulatedPhase(TypedDict):
    """One repeat of a phase."""

    name: str
    repeat: int
    start_seconds: float
    seconds: float
    operations: int
    errors: int
    rate: float
    by_operation: dict[str, dict[str, float]]
    balance: float
    responding_seconds: float
    latency: dict[str, Latency]
    stations: dict[str, StationDocument]
    network: NotRequired[NetworkDocument]
    timeline: NotRequired[dict[str, Any]]
    accelerators: NotRequired[dict[str, Any]]


class Finding(TypedDict):
    """A limit of the platform's model; `sentence`: its position among the sentences."""

    kind: str
    sentence: NotRequired[int]
    phase: NotRequired[str]


class ModelLimits(TypedDict):
    sentences: list[str]
    findings: list[Finding]


class SimulatedRun(TypedDict):
    workload: WorkloadDocument
    basis: list[str]
    warnings: list[str]
    peak_objects: int
    phases: list[SimulatedPhase]
    model_limits: NotRequired[ModelLimits]


class NamedPhase(TypedDict):
    name: str
    repeat: int
    most_seconds: float


class CountedPhase(TypedDict):
    """What ranks ask for in all repeats of a phase, by kind of operation. `together`, `pauses`, `unlike`: whether ranks
    act together, pause by themselves, or do unlike work."""

    name: str
    repeats: int
    most_seconds: float
    workers: int
    worker_nodes: int
    operations: dict[str, float]
    bytes: dict[str, float]
    blocks: dict[str, float]
    together: bool
    pauses: bool
    unlike: bool
    datasets: int
    objects: int


class Counted(TypedDict):
    """`whole`: whether all ranks were counted. `expected`: operations that the pattern foresees."""

    whole: bool
    expected: dict[str, float]
    bytes_written: float
    bytes_read: float
    phases: list[CountedPhase]


class ResolvedWorkload(TypedDict):
    workload: WorkloadDocument
    phases: list[NamedPhase]


class CountedWorkload(ResolvedWorkload):
    counted: Counted

# SPDX-License-Identifier: Apache-2.0
"""What iocast-sim prints (docs/run-directory.md): a run with --json, and a workload with --print-workload."""

from __future__ import annotations

from typing import Any, TypedDict

from typing_extensions import NotRequired

from iocast.records.forecast import WorkloadDocument

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


class BufferUse(TypedDict):
    """Bytes in and out of a buffer; writes that `stopped` to `wait` for room in it, and their seconds together."""

    entered: float
    drained: float
    stopped: int
    wait: float


class NetworkDocument(TypedDict, total=False):
    busiest: list[BusyLink]


TimelineDocument = dict[str, float | dict[str, list[float]]]
"""`bin_seconds`, and by operation `count`, `mean` and `max` of each bin."""


class SimulatedPhase(TypedDict, total=False):
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
    network: NetworkDocument
    buffers: dict[str, BufferUse]
    timeline: TimelineDocument
    accelerators: dict[str, Any]


def time_line(phase: SimulatedPhase) -> tuple[float, dict[str, dict[str, list[float]]]]:
    """Seconds of a bin, and by operation `count`, `mean` and `max` of each bin; nothing where there is none."""
    known = phase.get("timeline") or {}
    width = known.get("bin_seconds")
    series = {name: one for name, one in known.items() if isinstance(one, dict)}
    return float(width) if isinstance(width, float | int) else 0.0, series


class Finding(TypedDict):
    """A limit of the platform's model; `sentence`: its position among the sentences."""

    kind: str
    sentence: NotRequired[int]
    phase: NotRequired[str]


class ModelLimits(TypedDict):
    sentences: list[str]
    findings: list[Finding]


def kinds_of(limits: ModelLimits) -> list[str]:
    """The kind of each sentence; "" where no finding has it."""
    kinds = {one.get("sentence"): one["kind"] for one in reversed(limits["findings"])}
    return [kinds.get(number, "") for number in range(len(limits["sentences"]))]


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


class SlowDocument(TypedDict):
    """One of the slowest operations; `start` since the start of the phase."""

    op: str
    rank: int | None
    start: float
    seconds: float
    dataset: NotRequired[int | None]
    object: NotRequired[int | None]


class PhaseOfRun(SimulatedPhase, total=False):
    """One repeat of a phase of any run.json, as its readers for pages and tables have it (iocast.records.run.Phase)."""

    bytes: float | None
    bytes_per_second: float | None
    rate_unit: str | None
    transfer_size: float | None
    waiting_factor: float | None
    read_only: bool
    rank_seconds: list[float]
    node_seconds: list[float]
    slowest: list[SlowDocument]
    node_balance: float | None
    errors_by_operation: dict[str, float]


class FileOfTool(TypedDict):
    name: str
    sha256: str


class ThreadsOfServer(TypedDict, total=False):
    """Threads that a server may have at `most`, and how many of them it has `started`."""

    most: int
    started: int


class ObservedDocument(TypedDict):
    """Who counted the requests of a load, what their seconds hold (iocast.importers.statistics), and whether they are a
    part of the server's, such as one job's."""

    who: str
    holds: str
    part: bool | None
    threads: ThreadsOfServer
    since_counting_began: bool | None


class ImportedDocument(TypedDict, total=False):
    format: str
    files: list[FileOfTool]
    missing: dict[str, str]
    origin: dict[str, str]
    notes: list[str]
    facts: dict[str, Any]
    observed: ObservedDocument


class RunDocument(TypedDict, total=False):
    """Any run.json, read for pages and tables (iocast.records.run.Run)."""

    status: str
    source: str
    label: str | None
    workload: WorkloadDocument
    placement: PlaceOfRun
    phases: list[PhaseOfRun]
    seed: int | None
    started: str | None
    command: list[str]
    warnings: list[str]
    environment: dict[str, Any] | None
    imported: ImportedDocument
    backend: dict[str, Any] | None
    platform: dict[str, Any]
    tool: dict[str, str]
    brake: dict[str, float]
    repeats: dict[str, Any]
    peak_objects: float | None


class PlaceOfRun(TypedDict):
    """`ranks`: None of a load that a server observed, where nobody stated them."""

    ranks: int | None
    nodes: int | None
    ranks_per_node: float | None

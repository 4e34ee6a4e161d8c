# SPDX-License-Identifier: Apache-2.0
"""What a campaign would take (docs/answers.md, `kind: campaign-dry-run`), and what the benchmark says of a run."""

from __future__ import annotations

from typing import TypedDict

from typing_extensions import NotRequired

from iocast.records.forecast import WorkloadDocument


class Footprint(TypedDict):
    """Operations by kind, and bytes of one run of all ranks."""

    operations: dict[str, int]
    peak_objects: int
    peak_bytes: int
    bytes_written: int
    bytes_read: int


class TimedPhase(TypedDict):
    name: str
    most_seconds: float


class RunLimits(TypedDict, total=False):
    max_rate: float
    min_free: float


class BenchmarkDryRun(TypedDict):
    """What `iocast-bench --dry-run --json` prints."""

    workload: WorkloadDocument
    footprint: Footprint
    phases: list[TimedPhase]
    brake: NotRequired[RunLimits]


class ExtentDocument(TypedDict):
    """Of one run of a point or step; see iocast.campaign.dry_run.Extent."""

    name: str
    nodes: int
    ranks_per_node: int
    runs: int
    operations: int
    files: int
    bytes_written: int
    peak_bytes: int
    most_seconds: float
    refusal: str


class Peak(TypedDict):
    """Largest of each over the runs."""

    nodes: int
    ranks: int
    processes: int
    files: int
    inodes: int
    bytes: int


class Moved(TypedDict):
    operations: int
    bytes_written: int
    bytes_read: int


class Rate(TypedDict):
    """Operations a second that minutes rest on; `at_most`: the limit of --max-rate."""

    value: float
    source: str
    at_most: NotRequired[float]


class Minutes(TypedDict):
    ranks_as_fast_as_alone: float
    ranks_share_the_rate: float


class Free(TypedDict):
    bytes: int
    inodes: int | None


class Sizes(TypedDict):
    files: int
    bytes: int


class LargestSizes(Sizes):
    inodes: int


class PilotSizes(TypedDict):
    """Of the pilot run, and the largest that it may choose."""

    own: Sizes
    at_most: LargestSizes
    max_objects: NotRequired[int]


class DryRunDocument(TypedDict):
    schema_version: int
    kind: str
    workload: str
    plan: str
    place: str
    runs: int
    steps: list[str]
    complete: int
    points: list[ExtentDocument]
    peak: Peak
    total: Moved
    rate: Rate
    minutes: Minutes
    drop_caches: NotRequired[bool]
    free: NotRequired[Free]
    stops: NotRequired[list[str]]
    pilot: NotRequired[PilotSizes]

# SPDX-License-Identifier: Apache-2.0
"""A run: what `iocast-bench`, `iocast-sim` and `iocast import` write as run.json (docs/run-directory.md).

All times are in seconds, rates in operations a second. None is what a tool doesn't print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from iocast.ground.names import ALLOWED, PATTERN
from iocast.records.declared import Amount, Count, Impossible, record_of
from iocast.ground.strict import shown

Word = Annotated[str, Meta(description="a word such as complete")]
Origin = Annotated[str, Meta(description="a word such as bench")]
Name = Annotated[str, Meta(description="a name")]
FileName = Annotated[str, Meta(pattern=PATTERN, description=f"a name, which has {ALLOWED}")]
Whole = Annotated[int, Meta(ge=1, le=2**53 - 1, description="a number from 1 on")]
Mean = Whole | Annotated[float, Meta(ge=1, le=2**53 - 1, description="a number from 1 on")]


class Workload(Struct, frozen=True):
    """What was carried out. `parameters`: in SI units, by the names of its pattern."""

    name: Name
    pattern: Name
    parameters: dict[str, Any]


class Allocation(Struct, frozen=True):
    """Where it ran; `ranks_per_node` is a mean where nodes have unlike numbers of ranks."""

    ranks: Whole | None
    """None of a load that a server observed, where nobody stated them."""
    nodes: Whole | None
    ranks_per_node: Mean | None
    threads_per_rank: Whole | None = None
    order: str | None = None
    """ "cyclic" where rank r is on node r mod nodes."""


class Counted(Struct, frozen=True):
    """What was done of an operation; the bytes where it moves data."""

    count: Amount | None = None
    rate: Amount | None = None
    bytes: Amount | None = None
    bytes_per_second: Amount | None = None


class Summary(Struct, frozen=True):
    """Response times of an operation, or a part of one."""

    count: Count | None = None
    mean: Amount | None = None
    min: Amount | None = None
    q25: Amount | None = None
    q50: Amount | None = None
    q75: Amount | None = None
    q90: Amount | None = None
    q95: Amount | None = None
    q99: Amount | None = None
    q999: Amount | None = None
    max: Amount | None = None
    beyond_a_day: Count | None = None

    def value(self, name: str) -> float | None:
        """The field of this name; None for a quantile that no tool prints."""
        found: float | None = getattr(self, name, None)
        return found


NOTHING = Summary()


class Slow(Struct, frozen=True):
    """One of the slowest operations; `start` since the start of the phase."""

    op: str
    rank: Count | None
    start: Amount
    seconds: Amount
    dataset: int | None = None
    object: int | None = None


class StationUse(Struct, frozen=True):
    """A simulated station: share of busy servers, mean number of requests, and by operation visits and seconds of
    each."""

    utilisation: float | None = None
    requests: float | None = None
    visits: float | None = None
    lost: float | None = None
    replays: float | None = None
    operations: dict[str, dict[str, float | None]] = {}


class SteadyState(Struct, frozen=True):
    """The part of a phase between its ramps."""

    begin: Amount
    rate: Amount


class OverRepeats(Struct, frozen=True):
    """Rates of several repeats of which a tool prints only these."""

    repeats: Amount | None = None
    mean: Amount | None = None
    min: Amount | None = None
    max: Amount | None = None
    standard_deviation: Amount | None = None


Timeline = dict[str, Amount | dict[str, list[Amount | None]]]
"""`bin_seconds`, and by operation `count`, `mean` and `max` of each bin."""


class Accelerators(Struct, frozen=True):
    """What accelerators did in a phase that reads or writes for them. `compute_seconds`: sum over them; `utilisation`:
    their computation over the time of the phase; `stall_share`: the rest of it, where checkpoints are written."""

    count: Count
    compute_seconds: Amount | None = None
    utilisation: Amount | None = None
    samples_per_second: Amount | None = None
    bytes_per_second: Amount | None = None
    utilisation_after_first_step: Amount | None = None
    stall_share: Amount | None = None

    def quantity(self, name: str) -> float | None:
        """One of records.quantities.ACCELERATORS; None where it was not recorded."""
        after = self.utilisation_after_first_step
        moved = self.bytes_per_second
        found = {
            "au": self.utilisation if after is None else after,
            "samples": self.samples_per_second,
            "accelerator_bandwidth": None if moved is None or not self.count else moved / self.count,
            "stall_share": self.stall_share,
        }
        return found[name]


class Phase(Struct, frozen=True):
    """One repeat of a phase."""

    name: FileName
    repeat: Count
    seconds: Amount | None
    operations: Count | None
    errors: Count | None
    rate: Amount | None
    latency: dict[str, Summary]
    start_seconds: float | None = None
    by_operation: dict[str, Counted] | None = None
    balance: Amount | None = None
    node_balance: Amount | None = None
    responding_seconds: Amount | None = None
    think_asked_seconds: Amount | None = None
    think_actual_seconds: Amount | None = None
    errors_by_operation: dict[str, Amount] | None = None
    timeline: Timeline | None = None
    slowest: list[Slow] | None = None
    rank_seconds: list[Amount] | None = None
    node_seconds: list[Amount] | None = None
    rank_seconds_quantiles: list[Amount] | None = None
    node_seconds_quantiles: list[Amount] | None = None
    stations: dict[str, StationUse] | None = None
    bytes: Amount | None = None
    bytes_per_second: Amount | None = None
    rate_unit: Literal["bytes"] | None = None
    transfer_size: Count | Amount | None = None
    most_seconds: Amount | None = None
    cut_ranks: Count | None = None
    interrupted: bool | None = None
    steady_state: SteadyState | None = None
    rate_over_repeats: OverRepeats | None = None
    accelerators: Accelerators | None = None

    @property
    def own_rate(self) -> float | None:
        """What the phase is judged by: bytes a second where its `rate_unit` is that, else operations a second."""
        return self.bytes_per_second if self.rate_unit and self.bytes_per_second is not None else self.rate

    def latencies(self, tag: str) -> Summary:
        """Of an operation ("create") or a part ("create.open"); without any value where it has none."""
        return self.latency.get(tag, NOTHING)

    @property
    def bin_seconds(self) -> float | None:
        """Width of a bin of the time line."""
        width = (self.timeline or {}).get("bin_seconds")
        return width if isinstance(width, float) else None

    @property
    def series(self) -> dict[str, dict[str, list[float | None]]]:
        """The time line by operation: `count`, `mean` and `max` of each bin."""
        return {op: line for op, line in (self.timeline or {}).items() if isinstance(line, dict)}

    @property
    def operation_names(self) -> list[str]:
        return [tag for tag in self.latency if "." not in tag]


class Observed(Struct, frozen=True):
    """Who counted the requests of an observed load, and what their seconds hold: a word of statistics.py. `threads`:
    of a server, the `most` that it may have, and how many are `started`; `part`: they are some of the server's
    requests, such as those of one job. Earlier files don't say that."""

    who: str
    holds: str
    threads: dict[str, Count]
    since_counting_began: bool
    part: bool | None = None


class Imported(Struct, frozen=True):
    """Where an imported run comes from, and why values are null, by key."""

    format: str | None = None
    missing: dict[str, str] = {}
    origin: dict[str, str] = {}
    observed: Observed | None = None


class Repeats(Struct, frozen=True):
    """Of a phase that was repeated."""

    count: Amount | None = None
    rate: Amount | None = None
    """Mean over the repeats."""


class Brake(Struct, frozen=True):
    """Limits on what a run may do; 0 or None for none."""

    max_rate: Amount | None = None
    max_objects: Amount | None = None
    min_free: Amount | None = None


class Run(Struct, frozen=True):
    """A run as a whole."""

    status: Word
    source: Origin
    workload: Workload
    placement: Allocation
    phases: list[Phase]
    seed: Annotated[int, Meta(description="a whole number")] | None = None
    label: str | None = None
    started: str | None = None
    warnings: list[str] = []
    environment: dict[str, Any] | None = None
    imported: Imported | None = None
    brake: Brake | None = None
    repeats: dict[str, Repeats] = {}
    peak_objects: Count | Amount | None = None

    @property
    def is_observed(self) -> bool:
        """Whether a server or a mount counted it, whoever did it."""
        return is_observed(self.source, self.workload.pattern)


OBSERVED = "-observed"
"""End of the pattern of operations that were counted at a server or a mount, whoever did them."""


def is_observed(source: str, pattern: str) -> bool:
    return source == "imported" and pattern.endswith(OBSERVED)


NUMBERS = ("waiting_factor", "think_time")
"""Parameters that every verb counts with."""


def read_run(document: Mapping[str, Any]) -> Run:
    """Of the content of a run.json. @raises Impossible with the first part that is missing or can't be"""
    run = record_of(document, Run)
    if run.placement.ranks is None and not run.is_observed:
        raise Impossible("placement.ranks", ": null is not a number from 1 on")
    for name in NUMBERS:
        value = run.workload.parameters.get(name, 0)
        if not _is_amount(value) and not (value is None and name == "think_time"):
            raise Impossible(f"workload.parameters.{name}", f": {shown(value)} is not a number from 0 on")
    for number, phase in enumerate(run.phases):
        _check_timeline(phase.timeline or {}, f"phases[{number}].timeline")
    return run


def _is_amount(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and 0 <= float(value) <= 1e300
    except (TypeError, ValueError, OverflowError):
        return False


def _check_timeline(timeline: Timeline, where: str) -> None:
    width = timeline.get("bin_seconds")
    if timeline and width is None:
        raise Impossible(where, f": {shown(timeline)} is not a map with bin_seconds")
    for operation, series in timeline.items():
        if operation == "bin_seconds":
            # A phase in which nothing took any time has no bins, of no width.
            if not isinstance(series, float) or (not series and len(timeline) > 1):
                raise Impossible(f"{where}.bin_seconds", f": {shown(series)} is not a number above 0")
        elif not isinstance(series, dict):
            raise Impossible(f"{where}.{operation}", f": {shown(series)} is not a map of lists of numbers")
        elif "count" not in series or len({len(values) for values in series.values()}) != 1:
            raise Impossible(f"{where}.{operation}", f": {shown(series)} is not lists of one length, with a count")


def with_every_part(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a run that was not written to its end, or by an earlier version, with what it lacks as not
    known."""
    workload, placement = document.get("workload"), document.get("placement")
    phases = document.get("phases")
    return {
        **_with({"status": "", "source": "", "workload": {}, "placement": {}, "phases": []}, document),
        "workload": _with({"name": "", "pattern": "", "parameters": {}}, {} if workload is None else workload),
        "placement": _with({"nodes": None, "ranks_per_node": None}, {} if placement is None else placement),
        "phases": [
            _with({"repeat": 0, "seconds": None, "operations": None, "errors": None, "rate": None, "latency": {}}, one)
            for one in phases
        ]
        if isinstance(phases, list)
        else []
        if phases is None
        else phases,
    }


def _with(known: dict[str, Any], document: Any) -> Any:
    """A map with further keys; what is no map is left to be refused."""
    if not isinstance(document, dict):
        return document
    return known | {key: value for key, value in document.items() if value is not None or key not in known}

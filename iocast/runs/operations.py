# SPDX-License-Identifier: Apache-2.0
"""What a workload does at a placement: the numbers that the analytic solver needs, counted in the workload's own
operations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from iocast.ground import binaries
from iocast.errors import InputError
from iocast.records.forecast import WorkloadDocument
from iocast.records.simulated import Counted, CountedPhase, SimulatedPhase, SimulatedRun

WRITES, READS = ("create", "append", "pwrite"), ("read", "pread")
MOVES_DATA = (*WRITES, *READS)
"""Operations whose size is bytes of content; that of others counts entries or nothing."""
MOST = 2_000_000
"""Operations that are counted; where a placement's ranks have more together, some of them stand for all."""
FEW = 10_000
"""The same where only the kinds of operations matter."""
SMALL = ((2, 2), (3, 2), (2, 4))
"""Placements that show how what is used grows with nodes and with ranks on each."""
USED: tuple[Literal["datasets", "objects"], ...] = ("datasets", "objects")
FORESEEN = 0.05
"""Share of its operations by which what some ranks do may miss what the pattern foresees for all."""
UNSOLVED = (
    "act together, pause by themselves, are of a fixed number beside others, "
    "or are too unlike to be counted in some of them"
)
"""Of ranks that the analytic solver knows nothing of."""


def phase_operations(
    workload: str, settings: Mapping[str, str], nodes: int, ranks_per_node: int
) -> dict[str, dict[str, float]]:
    """By phase how many operations of each kind the ranks that were counted ask for; phases without any too. A message
    needs the kinds alone, and its reader does not wait: few ranks are counted."""
    counted = binaries.count_operations(workload, settings, nodes, ranks_per_node, FEW)["counted"]
    return {one["name"]: one["operations"] for one in counted["phases"]}


def profile(workload: str, settings: Mapping[str, str], nodes: int, ranks_per_node: int) -> Profile:
    """What the ranks of this placement ask for in one of the `repeats` of each phase: `operations` of each kind of all
    ranks, `bytes` and `blocks` of one in the mean; the `place` of those that work, as nodes and ranks on each; how many
    `datasets` and `objects` they use; whether ranks act `together`, pause on their own (`pauses`) or do `unlike` work.
    `mixed`: whether only some of its ranks are of a fixed number. `unknown`: whether the ranks that were counted do not
    stand for all. `most_seconds`: of the phase's time limit, which ends no counting. Beside the phases the pattern's
    `parameters`, and those `given`.

    @raises InputError with the simulator's sentences"""
    described = binaries.run_json([binaries.find("iocast-sim"), "--describe", workload, "--json"])
    resolved = binaries.count_operations(workload, settings, nodes, ranks_per_node, MOST)
    run, counted = resolved["workload"], resolved["counted"]
    used = None if counted["whole"] else _used(workload, settings, nodes, ranks_per_node)
    fixed = sum(
        float(value)
        for name, value in run["parameters"].items()
        if run["pattern"] == "mix" and name.endswith(".ranks") and value
    )
    phases: dict[str, ProfiledPhase] = {}
    for one in counted["phases"]:
        name, count = one["name"], one["operations"]
        if not count:
            continue
        users: Mapping[str, Any] | None = one if used is None else used.get(name)
        phases[name] = {
            "repeats": one["repeats"],
            "most_seconds": one["most_seconds"],
            "place": _place(one["workers"], one["worker_nodes"]),
            "operations": {kind: n / one["repeats"] for kind, n in count.items()},
            "bytes": {kind: n / count[kind] for kind, n in one["bytes"].items()},
            "blocks": {kind: n / count[kind] for kind, n in one["blocks"].items()},
            "datasets": max(1.0, users["datasets"]) if users else 1.0,
            "objects": max(1.0, users["objects"]) if users else 1.0,
            "together": one["together"],
            "pauses": one["pauses"],
            "unlike": one["unlike"],
            "mixed": 0 < fixed < one["workers"],
            "unknown": users is None or not _are_known(counted, one, nodes * ranks_per_node),
        }
    parameters: dict[str, ParameterDocument] = {
        p["name"]: {"default": p["default"], "unit": p["unit"]} for p in described["parameters"]
    }
    return {
        "pattern": run["pattern"],
        "workload": run,
        "parameters": parameters,
        "given": run["parameters"],
        "phases": phases,
    }


def _place(workers: int, nodes: int) -> list[int]:
    """Nodes, and ranks on each as many, that come closest to `workers` on `nodes`; a wrong number of workers
    counts for more."""

    def missed(n: int) -> float:
        return 4 * abs(math.log(n * _round(workers / n) / workers)) + math.log(nodes / n)

    chosen = min(range(nodes, 0, -1), key=missed)
    return [chosen, _round(workers / chosen)]


def _round(number: float) -> int:
    return max(1, math.floor(number + 0.5))


def _used(workload: str, settings: Mapping[str, str], nodes: int, ranks_per_node: int) -> dict[str, dict[str, float]]:
    """By phase how many `datasets` and `objects` all ranks use, where they are too many to be counted: some of each
    rank, some of each node, and some of all, as small placements have them. Empty where the workload has no such
    placements."""
    try:
        small = [
            {
                one["name"]: one
                for one in binaries.count_operations(workload, settings, *place, MOST)["counted"]["phases"]
            }
            for place in SMALL
        ]
    except InputError:
        return {}
    found: dict[str, dict[str, float]] = {}
    for name in small[0].keys() & small[1].keys() & small[2].keys():
        found[name] = {}
        for what in USED:
            first, more_nodes, more_ranks = (one[name][what] for one in small)
            rank = max(0.0, (more_ranks - first) / 4)
            node = max(0.0, more_nodes - first - 2 * rank)
            common = max(0.0, first - 4 * rank - 2 * node)
            found[name][what] = rank * nodes * ranks_per_node + node * nodes + common
    return found


def _are_known(counted: Counted, phase: CountedPhase, ranks: int) -> bool:
    """Whether the counted ranks stand for all in a phase: all do their part of it, or the first alone; and all phases
    together have about as many operations of its kinds, and bytes, as the pattern foresees."""
    if counted["whole"]:
        return True
    if phase["workers"] not in (1, ranks):
        return False  # who works was not seen of each

    def has(kinds: Iterable[str], what: Literal["operations", "bytes"], foreseen: float, most: float) -> bool:
        found: float = sum(one[what].get(kind, 0.0) for one in counted["phases"] for kind in kinds)
        return abs(found - foreseen) <= most * foreseen

    most = FORESEEN if phase["workers"] == ranks else 0.0
    return all(
        has([kind], "operations", counted["expected"].get(kind, 0), most) for kind in phase["operations"]
    ) and all(
        has(kinds, "bytes", foreseen, FORESEEN)
        for kinds, foreseen in ((WRITES, counted["bytes_written"]), (READS, counted["bytes_read"]))
        if any(kind in phase["operations"] for kind in kinds)
    )


def is_solved(phase: ProfiledPhase) -> bool:
    """Whether the analytic solver knows what the ranks of a phase of `profile()` do."""
    return not (phase["together"] or phase["pauses"] or phase["mixed"] or phase["unknown"])


@dataclass(frozen=True)
class Shares:
    """Of a phase's operations: how many, each kind's share of them, and the bytes that one of a kind moves where it
    moves any; and how often the phase runs."""

    operations: float  # of all ranks in one repeat of the phase
    share: dict[str, float]
    bytes_each: dict[str, float]
    repeats: int = 1

    @classmethod
    def of(cls, phases: list[SimulatedPhase]) -> Shares:
        """Of all repeats of a phase of a run.json."""
        count: dict[str, float] = {}
        moved: dict[str, float] = {}
        for phase in phases:
            for op, row in phase.get("by_operation", {}).items():
                count[op] = count.get(op, 0) + row["count"]
                moved[op] = moved.get(op, 0) + row.get("bytes", 0)
        return cls.of_counts(count, moved, len(phases))

    @classmethod
    def of_counts(cls, count: Mapping[str, float], moved: Mapping[str, float], repeats: int = 1) -> Shares:
        """count, moved: over all repeats."""
        total = sum(count.values())
        return cls(
            total / repeats,
            {op: n / total for op, n in count.items() if n},
            {op: moved[op] / n for op, n in count.items() if n and moved.get(op)},
            repeats,
        )


def iteration(operations: Mapping[str, float]) -> dict[str, float]:
    """The mix of one iteration, which has as many operations as there are kinds: short enough for a cycle of the
    analytic solver."""
    share = len(operations) / sum(operations.values())
    return {kind: n * share for kind, n in operations.items()}


class ProfiledPhase(TypedDict):
    """What the ranks ask for in one repeat of a phase; see profile()."""

    repeats: int
    most_seconds: float
    place: list[int]
    operations: dict[str, float]
    bytes: dict[str, float]
    blocks: dict[str, float]
    datasets: float
    objects: float
    together: bool
    pauses: bool
    unlike: bool
    mixed: bool
    unknown: bool


class ParameterDocument(TypedDict):
    default: Any
    unit: str


class Profile(TypedDict):
    """What a workload does at a placement; see profile()."""

    pattern: str
    workload: WorkloadDocument
    parameters: dict[str, ParameterDocument]
    given: dict[str, Any]
    phases: dict[str, ProfiledPhase]


class TooRare(InputError):
    """An operation of a random mix that a run of this seed lacks."""


def pooled_quantity(run: SimulatedRun, quantity: str, phase: str = "benchmark") -> float:
    """ "rate" or "create.q99" of a run.json's content, over all repeats of the phase: the rate of all together, the
    geometric mean of a quantile and of the maximum. Good for simulated runs, where only summaries are at hand.

    @raises TooRare where no repeat has the operation, or any: what a time limit left may be nothing in a shorter run"""
    phases = [p for p in run["phases"] if p["name"] == phase]
    if quantity == "rate":
        if not (seconds := sum(p["seconds"] for p in phases)):
            raise TooRare(f"A simulated run has nothing to do in its phase '{phase}', where another has.")
        return float(sum(p["operations"] for p in phases) / seconds)
    op, _, which = quantity.rpartition(".")
    values = [p["latency"][op][which] for p in phases if op in p["latency"]]
    if not values:
        raise TooRare(
            f"A simulated run has no operation '{op}' in its phase '{phase}', where another has: it is too rare in a "
            "run of this length. Make the run longer."
        )
    return math.exp(sum(math.log(max(v, 1e-9)) for v in values) / len(values))

# SPDX-License-Identifier: Apache-2.0
"""What a workload asks for, rank by rank: the numbers that the analytic solver needs, counted in the workload's own
operations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iocast import binaries
from iocast.scratch import scratch_directory

MOVES_DATA = ("create", "append", "read", "pwrite", "pread")
"""Operations whose size is bytes of content; that of others counts entries or nothing."""
USED = ("datasets", "objects")
RANKS_PER_NODE = 2
"""Of the placements whose operations are counted."""
SEVERAL = 10
"""Operations of a kind from which on ranks' numbers of them are compared: fewer differ by chance."""
SHARED, COLLECTIVE = 4, 8  # flags of an operation that ranks do together


def profile(platform: Path, workload: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """What one rank asks for in one of the `repeats` of each phase: `operations` of each kind, `bytes` and `blocks` of
    one; whether ranks act `together`, pause on their own (`pauses`) or do `unlike` work. `datasets` and `objects` are
    what ranks use: of a rank alone, of a node alone, and of all (`total()` has their number at a placement). `workers`:
    the ranks that work, where they are as many however many there are; else None. `fixed`: whether the phase has as
    many operations in all, of which each rank then does fewer (`of_a_rank()`). `mixed`: whether only some of its ranks
    are of a fixed number. Beside the phases the pattern's `parameters`, and those `given`.

    Taken from the operation streams of four ranks on two nodes, and of six on three.
    @raises InputError with the simulator's sentences"""
    simulator = binaries.find("iocast-sim")
    described = binaries.run_json([simulator, "--describe", workload, "--json"])
    run, phases = _streams(platform, workload, settings, 2)
    larger = _streams(platform, workload, settings, 3)[1]
    some_fixed = run["workload"]["pattern"] == "mix" and any(
        name.endswith(".ranks") and value for name, value in run["workload"]["parameters"].items()
    )
    open_loop = float(run["workload"]["parameters"].get("rate", 0)) > 0
    for name, one in phases.items():
        repeats = one["repeats"] = len(one["repeats"])
        by_rank = one.pop("by_rank")
        more = larger.get(name, {key: {} for key in ("operations", "by_rank", *USED)})
        as_many = len(by_rank) == len(more["by_rank"]) < 2 * RANKS_PER_NODE
        one["workers"] = len(by_rank) if as_many else None
        one["fixed"] = one["operations"] == more["operations"]
        one["mixed"] = some_fixed and not one["fixed"]
        one["unlike"] = _are_unlike(by_rank, by_rank if as_many else range(2 * RANKS_PER_NODE))
        for kind in USED:
            common = one["fixed"] and len(one[kind]) == len(more[kind])
            one[kind] = [0.0, 0.0, float(len(one[kind]))] if common else _owners(one[kind], more[kind])
        one["bytes"] = {kind: n / one["operations"][kind] for kind, n in one["bytes"].items()}
        one["blocks"] = {kind: n / one["operations"][kind] for kind, n in one["blocks"].items()}
        one["operations"] = {
            kind: n / math.prod(working(one, 2, RANKS_PER_NODE)) / repeats for kind, n in one["operations"].items()
        }
        one["pauses"] = one["pauses"] or open_loop
    parameters = {p["name"]: {"default": p["default"], "unit": p["unit"]} for p in described["parameters"]}
    return {
        "pattern": run["workload"]["pattern"],
        "workload": run["workload"],
        "parameters": parameters,
        "given": run["workload"]["parameters"],
        "phases": phases,
    }


def _streams(platform: Path, workload: str, settings: Mapping[str, str], nodes: int) -> tuple[Any, dict[str, Any]]:
    """The run of two ranks on each node, and what its ranks' operations count by phase."""
    command = [binaries.find("iocast-sim"), "--json", "--platform", str(platform), "--workload", workload]
    command += ["--nodes", str(nodes), "--ppn", str(RANKS_PER_NODE)]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    phases: dict[str, Any] = {}
    with scratch_directory("streams") as scratch:
        streams = scratch / "streams"
        run = binaries.run_json([*command, "--dump-ops", str(streams)])
        names = [(p["name"], p.get("repeat", 0)) for p in run["phases"]]
        for rank in range(RANKS_PER_NODE * nodes):
            _count(streams / f"ops.{rank}", rank, names, phases)
    return run, phases


def _owners(users: Mapping[Any, set[int]], larger: Mapping[Any, set[int]]) -> list[float]:
    """How many of these each rank uses alone, each node alone, and all ranks together. users: by name the ranks that
    use it, with two nodes; larger: the same with three, where ranks share any."""

    def alone(used: Mapping[Any, set[int]]) -> tuple[int, int, int]:
        nodes = [({rank // RANKS_PER_NODE for rank in ranks}, len(ranks)) for ranks in used.values()]
        own = sum(count == 1 for _, count in nodes)
        local = sum(len(on) == 1 and count > 1 for on, count in nodes)
        return own, local, len(nodes) - own - local

    (own, local, common), (_, _, more) = alone(users), alone(larger)
    # Ranks may go round each other's: what all of them use then grows with their number.
    grown = min(max(0.0, (more - common) / RANKS_PER_NODE), common / (2 * RANKS_PER_NODE))
    return [own / (2 * RANKS_PER_NODE) + grown, local / 2, common - 2 * RANKS_PER_NODE * grown]


def working(phase: Mapping[str, Any], nodes: int, ranks_per_node: int) -> tuple[int, int]:
    """Nodes, and ranks on each, that work in a phase of `profile()` at a placement. Of a fixed number they are together
    on a node, where they fit on one."""
    if phase["workers"] is None or phase["workers"] >= nodes * ranks_per_node:
        return nodes, ranks_per_node
    return (1, phase["workers"]) if phase["workers"] <= ranks_per_node else (phase["workers"], 1)


def of_a_rank(phase: Mapping[str, Any], nodes: int, ranks_per_node: int) -> dict[str, float]:
    """Operations of each kind that each working rank does in one repeat of a phase of `profile()` at a placement."""
    if not phase["fixed"]:
        return dict(phase["operations"])
    ranks, counted = (math.prod(working(phase, *place)) for place in ((nodes, ranks_per_node), (2, RANKS_PER_NODE)))
    return {kind: n * counted / ranks for kind, n in phase["operations"].items()}


def is_solved(phase: Mapping[str, Any]) -> bool:
    """Whether the analytic solver knows what the ranks of a phase of `profile()` do."""
    return not (phase["together"] or phase["pauses"] or phase["mixed"])


def total(owners: Sequence[float], nodes: int, ranks_per_node: int) -> float:
    """Datasets or objects that all ranks of a placement use, at least one. owners: as `profile()` counts them."""
    rank, node, common = owners
    return max(1.0, rank * nodes * ranks_per_node + node * nodes + common)


def _are_unlike(by_rank: Mapping[int, Mapping[str, int]], ranks: Iterable[int]) -> bool:
    """Whether some of these ranks has less than half as many operations of a kind as another."""
    kinds = {kind for counts in by_rank.values() for kind in counts}
    numbers = [[by_rank.get(rank, {}).get(kind, 0) for rank in ranks] for kind in kinds]
    return any(2 * min(found) < max(found) for found in numbers if max(found) >= SEVERAL)


@dataclass(frozen=True)
class Shares:
    """Of a phase's operations: how many, each kind's share of them, and the bytes that one of a kind moves where it
    moves any."""

    operations: float  # of all ranks in one repeat of the phase
    share: dict[str, float]
    bytes_each: dict[str, float]

    @classmethod
    def of(cls, phases: list[dict[str, Any]]) -> Shares:
        """Of all repeats of a phase of a run.json."""
        count: dict[str, float] = {}
        moved: dict[str, float] = {}
        for phase in phases:
            for op, row in phase.get("by_operation", {}).items():
                count[op] = count.get(op, 0) + row["count"]
                moved[op] = moved.get(op, 0) + row.get("bytes", 0)
        return cls.of_counts(count, moved, len(phases))

    @classmethod
    def of_counts(cls, count: Mapping[str, float], moved: Mapping[str, float], repeats: float = 1) -> Shares:
        total = sum(count.values())
        return cls(
            total / repeats,
            {op: n / total for op, n in count.items() if n},
            {op: moved[op] / n for op, n in count.items() if n and moved.get(op)},
        )


def iteration(operations: Mapping[str, float]) -> dict[str, float]:
    """The mix of one iteration, which has as many operations as there are kinds: short enough for a cycle of the
    analytic solver."""
    share = len(operations) / sum(operations.values())
    return {kind: n * share for kind, n in operations.items()}


def _count(stream: Path, rank: int, names: list[tuple[str, int]], phases: dict[str, Any]) -> None:
    number = -1
    for line in stream.open():
        kind, dataset, item, size, _, count, _, flags = line.split()
        if kind == "phase":
            number += 1
            continue
        empty: dict[str, Any] = {
            "repeats": set(), "operations": {}, "bytes": {}, "blocks": {}, "datasets": {}, "objects": {}, "by_rank": {},
            "together": False, "pauses": False,
        }  # fmt: skip
        one = phases.setdefault(names[number][0], empty)
        one["repeats"].add(names[number][1])
        one["together"] = one["together"] or bool(int(flags) & (SHARED | COLLECTIVE))
        if kind == "think":
            one["pauses"] = True
            continue
        one["operations"][kind] = one["operations"].get(kind, 0) + 1
        one["bytes"][kind] = one["bytes"].get(kind, 0) + int(size) * max(int(count), 1)
        one["blocks"][kind] = one["blocks"].get(kind, 0) + max(int(count), 1)
        counts = one["by_rank"].setdefault(rank, {})
        counts[kind] = counts.get(kind, 0) + 1
        one["datasets"].setdefault(dataset, set()).add(rank)
        one["objects"].setdefault((dataset, item), set()).add(rank)

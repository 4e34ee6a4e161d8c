# SPDX-License-Identifier: Apache-2.0
"""What a workload asks for, rank by rank: the numbers that the analytic solver needs, counted in the workload's own
operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iocast import binaries
from iocast.scratch import scratch_directory

MOVES_DATA = ("create", "append", "read", "pwrite", "pread")
"""Operations whose size is bytes of content; that of others counts entries or nothing."""
SHARED, COLLECTIVE = 4, 8  # flags of an operation that ranks do together


def profile(platform: Path, workload: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """What one rank asks for in one repeat of each phase: `operations` of each kind, `bytes` of one, `datasets`;
    whether ranks act `together` or pause on their own (`pauses`). Beside the phases the pattern's `parameters`, and
    those `given`.

    Taken from the operation streams of four ranks on two nodes. @raises InputError with the simulator's sentences"""
    simulator = binaries.find("iocast-sim")
    described = binaries.run_json([simulator, "--describe", workload, "--json"])
    command = [simulator, "--json", "--platform", str(platform), "--workload", workload, "--nodes", "2", "--ppn", "2"]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    with scratch_directory("streams") as scratch:
        streams = scratch / "streams"
        run = binaries.run_json([*command, "--dump-ops", str(streams)])
        names = [(p["name"], p.get("repeat", 0)) for p in run["phases"]]
        phases: dict[str, Any] = {}
        for rank in range(4):
            _count(streams / f"ops.{rank}", rank, names, phases)
    open_loop = float(run["workload"]["parameters"].get("rate", 0)) > 0
    for one in phases.values():
        repeats = len(one.pop("repeats"))
        one["datasets"] = max(1.0, len(one["datasets"]) / 4)
        one["bytes"] = {kind: n / one["operations"][kind] for kind, n in one["bytes"].items()}
        one["operations"] = {kind: n / 4 / repeats for kind, n in one["operations"].items()}
        one["pauses"] = one["pauses"] or open_loop
    parameters = {p["name"]: {"default": p["default"], "unit": p["unit"]} for p in described["parameters"]}
    return {
        "pattern": run["workload"]["pattern"],
        "workload": run["workload"],
        "parameters": parameters,
        "given": run["workload"]["parameters"],
        "phases": phases,
    }


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
        kind, dataset, _, size, _, count, _, flags = line.split()
        if kind == "phase":
            number += 1
            continue
        empty = {"repeats": set(), "operations": {}, "bytes": {}, "datasets": set(), "together": False, "pauses": False}
        one = phases.setdefault(names[number][0], empty)
        one["repeats"].add(names[number][1])
        one["together"] = one["together"] or bool(int(flags) & (SHARED | COLLECTIVE))
        if kind == "think":
            one["pauses"] = True
            continue
        one["operations"][kind] = one["operations"].get(kind, 0) + 1
        one["bytes"][kind] = one["bytes"].get(kind, 0) + int(size) * max(int(count), 1)
        one["datasets"].add((rank, dataset))

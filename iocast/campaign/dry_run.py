# SPDX-License-Identifier: Apache-2.0
"""What a campaign would do, computed from its plan before it touches the storage (`iocast measure --dry-run`).

Every figure is the benchmark's own: `iocast-bench --dry-run` of each point. Two things depend on the storage: the
time, and sizes that a pilot run decides. They are computed for a rate: that of a pilot run, or else REFERENCE_RATE."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, cast

from iocast.ground import binaries
from iocast.campaign.bench import Backend, DROP_CACHES, can_drop_caches, check_root, failure
from iocast.campaign.directory import check_same
from iocast.campaign.places import SCRATCH, check_out
from iocast.campaign.plan import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    PILOT_ITERATIONS,
    Plan,
    PlannedRun,
    missing_of,
    pilot_run,
    planned_runs,
    repeats_of_benchmark,
    settings_arguments,
    sized_by_a_pilot,
)
from iocast.ground.claim import live_owner
from iocast.errors import InputError, RunError
from iocast.ground.own_directory import require_own_directory
from iocast.ground.files import SCHEMA_VERSION, read_campaign
from iocast.records.extent import (
    BenchmarkDryRun,
    DryRunDocument,
    ExtentDocument,
    LargestSizes,
    Peak,
    PilotSizes,
    Rate,
    RunLimits,
)
from iocast.wording.text import quantity, table

REFERENCE_RATE = 1000.0
"""Operations a second of a rank alone, where no pilot run has measured them."""
OBJECT_LIMIT = "--max-objects"
OWN_INODES = 8
"""DIR/iocast-campaign, the run's directory, and for each a claim and a manifest, twice while they are rewritten."""


CACHES_DROPPED = (
    "before each run the kernels of all nodes drop their caches of files; other programs are slower for a while"
)
CACHES_STAY = f"stay, though the campaign drops them: {DROP_CACHES} can't be written to here (root alone may)"


MOVED: tuple[Literal["bytes_written", "bytes_read"], ...] = ("bytes_written", "bytes_read")
ROOM: tuple[Literal["bytes", "inodes"], ...] = ("bytes", "inodes")


@dataclass(frozen=True)
class Extent:
    """One run of a point (with steps: of a step), all ranks together."""

    name: str
    nodes: int
    ranks_per_node: int
    threads_per_rank: int
    runs: int
    operations: int
    files: int
    """Objects at a time, at most."""
    inodes: int
    bytes_written: int
    bytes_read: int
    peak_bytes: int
    waiting_factor: float
    most_seconds: float
    """Longest time limit of a phase; 0 for none."""
    max_rate: float = 0.0
    """Limit of operations a second, all ranks together; 0 for none."""
    min_free: float = 0.0
    """Bytes that --min-free keeps free; 0 for none."""
    mounts: int = 1
    """Mount points that ranks are spread over."""
    refusal: str = ""
    """Why the benchmark would refuse the run, by --max-objects."""

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    def seconds(self, rate: float, *, shared: bool) -> float:
        """Time of one run, think times included, when each rank does `rate` operations a second, or all together do.

        No run is faster than --max-rate allows."""
        free = self.operations * (1 + self.waiting_factor) / (rate if shared else rate * self.ranks)
        return max(free, self.operations / self.max_rate) if self.max_rate > 0 else free


def dry_run(
    root: Path | None,
    plan: Plan,
    out: Path,
    seed: int,
    *,
    backend: Backend,
    role: str | None = None,
    limits: Sequence[str] = (),
    take_over: bool = False,
) -> DryRunDocument:
    """Runs that `iocast measure` would make now, with place, files, bytes, inodes, ranks and minutes.

    Nothing is touched. `limits`: arguments of iocast-bench (`SharedUse.limits`). Runs that --max-objects would refuse
    are in the answer, with their refusal.

    @raises InputError for whatever else would stop the campaign before its first run"""
    mounts = check_root(backend, root)
    place = mounts[0] if mounts else None
    check_out(out, place and place / SCRATCH)
    rate, source = REFERENCE_RATE, "reference"
    pilot: PilotSizes | None = None
    runs: list[PlannedRun] = []  # none where a campaign ended in its pilot run
    if (out / "campaign.json").is_file():
        campaign = read_campaign(out, planned=True)
        check_same(campaign, plan, out, mounts, backend, seed)
        runs = [PlannedRun(**point) for point in campaign["points"]]
        if "pilot" in campaign:
            rate, source = float(campaign["pilot"]["rate"]), "pilot run"
    if not runs and sized_by_a_pilot(plan):
        runs = planned_runs(plan, seed, _alone(plan, backend, rate))
        pilot = _pilot(plan, backend, planned_runs(plan, seed, MAX_ITERATIONS))
        if object_limit := set(limits) - set(without_object_limit(limits)):
            pilot["max_objects"] = int(object_limit.pop().partition("=")[2])
    elif not runs:
        runs = planned_runs(plan, seed, 0)
    missing = missing_of(runs, role)
    extents = _extents(missing, plan.workload, backend, limits)
    max_rate = max((one.max_rate for one in extents), default=0.0)
    stated: Rate = {"value": rate, "source": source}
    if max_rate:
        stated["at_most"] = max_rate
    answer: DryRunDocument = {
        "schema_version": SCHEMA_VERSION,
        "kind": "campaign-dry-run",
        "workload": plan.workload,
        "plan": str(plan.file),
        "place": str(place / SCRATCH) if place else f"{backend.name} {' '.join(backend.options)}".strip(),
        "runs": len(missing),
        "steps": [step.name for step in plan.steps],
        "complete": sum(run.status == "complete" for run in runs),
        "points": [cast(ExtentDocument, asdict(one)) for one in extents],
        "peak": _peak(extents),
        "total": {
            "operations": sum(one.runs * one.operations for one in extents),
            "bytes_written": sum(one.runs * one.bytes_written for one in extents),
            "bytes_read": sum(one.runs * one.bytes_read for one in extents),
        },
        "rate": stated,
        "minutes": {
            "ranks_as_fast_as_alone": sum(one.runs * one.seconds(rate, shared=False) for one in extents) / 60,
            "ranks_share_the_rate": sum(one.runs * one.seconds(rate, shared=True) for one in extents) / 60,
        },
    }
    if plan.drop_caches:
        answer["drop_caches"] = can_drop_caches()
    if place is not None:
        room = os.statvfs(place)
        answer["free"] = {"bytes": room.f_bavail * room.f_frsize, "inodes": room.f_favail if room.f_files else None}
        answer["stops"] = _stops(place, out, extents, answer["free"]["bytes"], take_over) if extents else []
    elif owner := live_owner(out, take_over):
        answer["stops"] = [owner]
    if pilot:
        answer["pilot"] = pilot
    return answer


def _peak(extents: Sequence[Extent]) -> Peak:
    """Largest of each over the runs, which follow one another."""
    return {
        "nodes": max((one.nodes for one in extents), default=0),
        "ranks": max((one.ranks for one in extents), default=0),
        "files": max((one.files for one in extents), default=0),
        "inodes": max((one.inodes for one in extents), default=0),
        "processes": max((one.ranks // one.threads_per_rank for one in extents), default=0),
        "bytes": max((one.peak_bytes for one in extents), default=0),
    }


def _pilot(plan: Plan, backend: Backend, largest: Sequence[PlannedRun]) -> PilotSizes:
    """Peaks where a pilot run decides the sizes: its own, and the campaign's with the largest that it may choose."""
    own = pilot_run(plan, PILOT_ITERATIONS[1])
    biggest: dict[tuple[int, int], PlannedRun] = {}
    for run in largest:  # of each placement, the one that has most to do
        key = (run.nodes, run.ranks_per_node)
        if key not in biggest or run.settings.get("waiting_factor", 0) < biggest[key].settings.get("waiting_factor", 0):
            biggest[key] = run
    limits = _peak(_extents(list(biggest.values()), plan.workload, backend))
    pilot = _peak(_extents([own], plan.workload, backend))
    return {
        "own": {"files": pilot["files"], "bytes": pilot["bytes"]},
        "at_most": {"files": limits["files"], "inodes": limits["inodes"], "bytes": limits["bytes"]},
    }


def _alone(plan: Plan, backend: Backend, rate: float) -> int:
    """Iterations that a pilot run would decide if a rank alone did `rate` operations a second."""

    def operations(iterations: int) -> int:
        once = {name: value for name, value in plan.settings.items() if name != "repeats"}
        settings = {**once, "objects": 2 * MIN_ITERATIONS, "iterations": iterations}
        found = _benchmark_dry_run(PlannedRun("", 1, 1, settings, "fit"), plan.workload, backend)
        return int(sum(found["footprint"]["operations"].values()))

    an_iteration = (operations(2 * MIN_ITERATIONS) - operations(MIN_ITERATIONS)) / MIN_ITERATIONS
    wanted = plan.seconds / repeats_of_benchmark(plan)
    return max(MIN_ITERATIONS, min(MAX_ITERATIONS, round(wanted * rate / an_iteration)))


def _extents(runs: Sequence[PlannedRun], workload: str, backend: Backend, limits: Sequence[str] = ()) -> list[Extent]:
    """An extent for each point or step, in the order of nodes and ranks; repeats are counted."""
    alike: dict[str, list[PlannedRun]] = {}
    for run in runs:
        key = json.dumps(
            [run.nodes, run.ranks_per_node, run.threads_per_rank, run.mounts, run.settings, run.step], default=str
        )
        alike.setdefault(key, []).append(run)
    found = []
    for same in alike.values():
        run = same[0]
        others, refusal = without_object_limit(limits), ""
        found_by_bench = _benchmark_dry_run(run, workload, backend, others)
        if len(others) < len(limits):
            try:
                _benchmark_dry_run(run, workload, backend, limits)
            except InputError as error:
                refusal = str(error)
        footprint, brake = found_by_bench["footprint"], found_by_bench.get("brake") or RunLimits()
        operations = footprint["operations"]
        found.append(
            Extent(
                name=_without_repeat(run),
                nodes=run.nodes,
                ranks_per_node=run.ranks_per_node,
                threads_per_rank=run.threads_per_rank,
                mounts=run.mounts,
                runs=len(same),
                operations=sum(operations.values()),
                files=footprint["peak_objects"],
                inodes=footprint["peak_objects"] + operations.get("mkdir", 0) + OWN_INODES,
                bytes_written=footprint["bytes_written"],
                bytes_read=footprint["bytes_read"],
                peak_bytes=footprint["peak_bytes"],
                waiting_factor=float(run.settings.get("waiting_factor", 0)),
                most_seconds=max((phase["most_seconds"] for phase in found_by_bench["phases"]), default=0.0),
                max_rate=float(brake.get("max_rate", 0)),
                min_free=float(brake.get("min_free", 0)),
                refusal=refusal,
            )
        )
    return sorted(found, key=lambda one: (one.nodes, one.ranks, one.waiting_factor))


def without_object_limit(limits: Sequence[str]) -> list[str]:
    """The limits but for --max-objects, with which runs are refused whose sizes a user wants to see. One that is no
    number stays, for the benchmark to refuse."""
    return [one for one in limits if not re.fullmatch(rf"{OBJECT_LIMIT}=0*[1-9]\d*", one)]


def _stops(place: Path, out: Path, extents: Sequence[Extent], free: float, take_over: bool) -> list[str]:
    """Why the campaign would be stopped now, a sentence each: somebody else works in the place or into `out`, or
    --min-free."""
    scratch, found = place / SCRATCH, []
    for directory in (out, scratch):
        if os.path.lexists(directory):
            try:
                require_own_directory(directory)
            except InputError as error:
                found.append(str(error))
    if not found and (owner := live_owner(out, take_over) or live_owner(scratch, take_over)):
        found.append(owner)
    least = max((one.min_free for one in extents), default=0.0)
    needed = max((one.peak_bytes for one in extents), default=0)
    if free < least:
        found.append(
            f"'{place}' has {quantity('bytes', free)} free, less than the {quantity('bytes', least)} of --min-free."
        )
    elif least and free - needed < least:  # without --min-free the table has a warning
        found.append(
            f"'{place}' has {quantity('bytes', free)} free, of which a run takes {quantity('bytes', needed)}; that "
            f"leaves less than the {quantity('bytes', least)} of --min-free, which would end the run."
        )
    return found


def refusal_of(answer: DryRunDocument) -> str:
    """What would stop the campaign now: runs that --max-objects refuses, and `stops`; "" for nothing."""
    refused = [one for one in answer["points"] if one["refusal"]]
    found = []
    if refused:
        found = [f"{', '.join(one['name'] for one in refused)} would be refused. {refused[-1]['refusal']}"]
    if stops := answer.get("stops"):
        found.append(f"The campaign would be stopped now. {' '.join(stops)}")
    return " ".join(found)


def _without_repeat(run: PlannedRun) -> str:
    """ "n8-t0-r2-benchmark" is "n8-t0-benchmark"."""
    point = (run.group or run.name).rpartition("-r")[0] or run.name
    return f"{point}-{run.step}" if run.step else point


def _benchmark_dry_run(run: PlannedRun, workload: str, backend: Backend, limits: Sequence[str] = ()) -> BenchmarkDryRun:
    """The answer of `iocast-bench --dry-run`: phases and the footprint of a run.

    @raises InputError or RunError with the benchmark's own sentence"""
    threads = run.threads_per_rank
    command = [
        binaries.find("iocast-bench"),
        "--workload",
        workload,
        "--backend",
        backend.name,
        *backend.options,
        "--dry-run",
        "--json",
    ]
    command += [f"--{backend.name}.root", "/"] if backend.has_root else []
    command += ["--ranks", str(run.ranks // threads), "--ranks-per-node", str(run.ranks_per_node // threads)]
    command += ["--threads-per-rank", str(threads)] if threads > 1 else []
    done = subprocess.run(
        [*command, *limits, *settings_arguments(run.settings)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise (InputError if done.returncode == 2 else RunError)(failure(command, done.returncode, done.stderr))
    return cast(BenchmarkDryRun, json.loads(done.stdout))


def dry_run_text(answer: DryRunDocument) -> str:
    """A row for each point, then peaks, what is free, and minutes."""
    if not answer["points"]:
        return f"No run is missing of this campaign's {answer['complete']}."
    rows = [
        [
            one["name"],
            f"{one['nodes']} x {one['ranks_per_node']}",
            str(one["runs"]),
            f"{one['operations']:,}",
            f"{one['files']:,}",
            quantity("bytes", one["bytes_written"]),
            quantity("bytes", one["peak_bytes"]),
        ]
        for one in answer["points"]
    ]
    peak, rate, minutes = answer["peak"], answer["rate"], answer["minutes"]
    most: LargestSizes = {"files": peak["files"], "inodes": peak["inodes"], "bytes": peak["bytes"]}
    in_table = in_all = ""
    if pilot := answer.get("pilot"):
        own, largest = pilot["own"], pilot["at_most"]
        most = {
            "files": max(peak["files"], largest["files"], own["files"]),
            "inodes": max(peak["inodes"], largest["inodes"]),
            "bytes": max(peak["bytes"], largest["bytes"], own["bytes"]),
        }
        in_table, in_all = f" ({peak['files']:,} in the table)", " by the table"
    processes = f" in {peak['processes']} processes" if peak["processes"] < peak["ranks"] else ""
    written, read = (quantity("bytes", answer["total"][key]) for key in MOVED)
    steps = (
        "the steps of a point share one data set" if answer["steps"] else "a run's files are removed before the next"
    )
    lines = [
        f"{answer['runs']} runs of {answer['workload']}, one after the other; {steps}.",
        "",
        table(
            ["point", "nodes x ranks", "runs", "operations a run", "files at once", "written a run", "bytes at once"],
            rows,
        ),
        "",
        f"place:   {answer['place']}",
        f"ranks:   at most {peak['ranks']}{processes} on {peak['nodes']} node{'s' * (peak['nodes'] != 1)}",
        f"files:   at most {most['files']:,} at a time, {most['inodes']:,} inodes{in_table}",
        f"bytes:   at most {quantity('bytes', most['bytes'])} at a time; {written} written and {read} read in "
        f"all{in_all}",
    ]
    if "drop_caches" in answer:
        lines.append(f"caches:  {CACHES_DROPPED if answer['drop_caches'] else CACHES_STAY}")
    if free := answer.get("free"):
        inodes = f", {free['inodes']:,} inodes" if free["inodes"] is not None else ""
        lines.append(f"free:    {quantity('bytes', free['bytes'])}{inodes}")
        for what in ROOM:
            if (left := free[what]) is not None and most[what] > left:
                needed = f"more {what} are needed than are free; the run will"
                if peak[what] <= left:
                    needed = f"more {what} than are free are needed if the pilot run decides so; that run would"
                lines.append(f"WARNING: {needed} be refused. Choose fewer objects.")
    rate_text = f"{rate['value']:,.0f} operations a second"
    source = " (measured by the pilot run)" if rate["source"] == "pilot run" else ""
    limits = {one["most_seconds"] for one in answer["points"]} - {0}
    limit = f"; less where a phase ends at its time limit of {max(limits):g} s" if limits else ""
    if "at_most" in rate:
        limit += f"; --max-rate allows {rate['at_most']:,.0f} in all"
    lines.append(
        f"minutes: {_minutes(minutes['ranks_as_fast_as_alone'])} when each rank does {rate_text}{source}, "
        f"{_minutes(minutes['ranks_share_the_rate'])} when all ranks together do{limit}"
    )
    if pilot:
        own = pilot["own"]
        lines += [
            f"sizes:   a pilot run decides them; the table is for a rank that does {rate_text} alone",
            f"         pilot run: at most {own['files']:,} files, {quantity('bytes', own['bytes'])}",
            "         largest sizes that it may choose: those of files and bytes above, on faster storage",
            "         --set iterations=N --set objects=N fixes them",
        ]
        if pilot.get("max_objects", math.inf) < pilot["at_most"]["files"]:
            lines.append(
                f"WARNING: {OBJECT_LIMIT} allows {pilot['max_objects']:,} objects; larger runs would be refused if the "
                "pilot run decides so."
            )
    begin = "" if refusal_of(answer) else " Leave out --dry-run to measure."
    return "\n".join([*lines, f"Nothing was touched.{begin}"])


def _minutes(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"

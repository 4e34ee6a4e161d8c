#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does iocast-bench cost where there is much of it: many ranks, many operations?

Four figures, each beside its bar:

start      share that an MPI program without work (it is compiled with mpicxx) has of the seconds that
           `iocast-bench --dry-run` takes with --ranks ranks; medians of --runs runs of either, in turns, so that
           whatever else the machine does hits both alike. At least half: the start is mostly mpirun's and MPI's own.
end        seconds from the answer of the last operation to the end of mpirun, after --operations operations of all
           ranks together. At most 1 % of the whole, or 2 s.
memory     largest resident memory of a rank that did --memory-operations operations: at most 64 MiB.
trace      bytes an operation in ops.h5, of two ranks that did --trace-operations operations on files under --root:
           at most 8.

All but the last use the backend `dummy`, which takes no time. The exit status is 4 when a bar is missed.

    validation/speed/bench_scale.py [--ranks 64] [--runs 5] [--operations 1e7] [--memory-operations 1e8]
                                    [--trace-operations 1e6] [--root /dev/shm] [--json]
"""

import argparse
import dataclasses
import datetime
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from programs import find_program

NOTHING = "#include <mpi.h>\nint main(int argc, char** argv) { MPI_Init(&argc, &argv); return MPI_Finalize(); }\n"
MIB = 1 << 20


@dataclasses.dataclass
class Figure:
    name: str
    what: str
    """A finished line, with all that belongs to the value."""
    value: float
    bar: float
    met: bool
    more: dict[str, float]


def run_mpi(ranks: int, *command: str | Path) -> float:
    """@returns the seconds that it took"""
    flags: list[str] = []
    if "Open MPI" in subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout:
        # More ranks than cores; those that wait yield.
        flags = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
    begin = time.monotonic()
    done = subprocess.run(
        ["mpirun", *flags, "-n", str(ranks), *command], capture_output=True, text=True, env=os.environ | as_root
    )
    seconds = time.monotonic() - begin
    if done.returncode:
        sys.exit(done.stderr)
    return seconds


def md_workbench(operations: float, ranks: int) -> list[str]:
    """Settings for at least `operations` in all: a rank makes n objects, then reads, looks at, removes and makes as
    many, then removes them."""
    objects = math.ceil(operations / (6 * ranks))
    return [
        word for setting in ("datasets=1", f"objects={objects}", f"iterations={objects}") for word in ("--set", setting)
    ]


def run_of(directory: Path) -> dict:
    return json.loads((directory / "run.json").read_text())


def operations_of(run: dict) -> int:
    return sum(phase["operations"] for phase in run["phases"])


def start(bench: Path, scratch: Path, given: argparse.Namespace) -> Figure:
    nothing = scratch / "nothing"
    source = nothing.with_suffix(".cpp")
    source.write_text(NOTHING)
    subprocess.run(["mpicxx", "-O1", "-o", nothing, source], check=True)
    commands = [(nothing,), (bench, "--backend", "dummy", "--dry-run")]
    seconds: list[list[float]] = [[], []]
    for turn in range(given.runs):
        # Which goes first alternates: the second of a pair may profit from the first.
        for which in (0, 1) if turn % 2 else (1, 0):
            seconds[which].append(run_mpi(given.ranks, *commands[which]))
    floor, own = map(statistics.median, seconds)
    share = floor / own
    what = (
        f"start of {given.ranks} ranks: {own:.2f} s, of a program that does nothing {floor:.2f} s, {100 * share:.0f} %"
        " of it (at least 50 %)"
    )
    return Figure("start", what, share, 0.5, share >= 0.5, {"ranks": given.ranks, "bench": own, "nothing": floor})


def end(bench: Path, scratch: Path, given: argparse.Namespace) -> Figure:
    out = scratch / "end"
    whole = run_mpi(
        given.ranks, bench, "--backend", "dummy", "--quiet", *md_workbench(given.operations, given.ranks), "--out", out
    )
    ended = time.time()
    run = run_of(out)
    last = run["phases"][-1]
    answered = (
        datetime.datetime.fromisoformat(run["started"].replace("Z", "+00:00")).timestamp()
        + last["start_seconds"]
        + last["seconds"]
    )
    after, operations = ended - answered, operations_of(run)
    bar = max(2, 0.01 * whole)
    what = (
        f"end of {given.ranks} ranks after {operations:.3g} operations: {after:.2f} s of {whole:.1f} s (at most"
        f" {bar:.2g} s)"
    )
    return Figure(
        "end", what, after, bar, after <= bar, {"ranks": given.ranks, "operations": operations, "seconds": whole}
    )


def memory(bench: Path, scratch: Path, given: argparse.Namespace) -> Figure:
    out = scratch / "memory"
    run_mpi(1, bench, "--backend", "dummy", "--quiet", *md_workbench(given.memory_operations, 1), "--out", out)
    run = run_of(out)
    peak, operations = run["peak_rss_bytes"], operations_of(run)
    what = f"memory of a rank that did {operations:.3g} operations: {peak / MIB:.1f} MiB (at most 64 MiB)"
    return Figure("memory", what, peak, 64 * MIB, peak <= 64 * MIB, {"operations": operations})


def trace(bench: Path, scratch: Path, given: argparse.Namespace) -> Figure:
    out = scratch / "trace"
    with tempfile.TemporaryDirectory(prefix="iocast-scale-", dir=given.root) as root:
        settings = md_workbench(given.trace_operations, 2)
        run_mpi(2, bench, "--posix.root", root, "--quiet", *settings, "--trace", "--out", out)
    operations = operations_of(run_of(out))
    size = (out / "ops.h5").stat().st_size / operations
    what = f"trace of {operations:.3g} operations: {size:.2f} bytes each (at most 8)"
    return Figure("trace", what, size, 8, size <= 8, {"operations": operations})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--operations", type=float, default=1e7)
    parser.add_argument("--memory-operations", type=float, default=1e8)
    parser.add_argument("--trace-operations", type=float, default=1e6)
    parser.add_argument("--root", default="/dev/shm", help="a directory for the files of the traced run")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    bench = find_program("iocast-bench")
    figures: list[Figure] = []
    measure: list[Callable[[Path, Path, argparse.Namespace], Figure]] = [start, end, memory, trace]
    with tempfile.TemporaryDirectory(prefix="iocast-scale-") as scratch:
        for take in measure:
            figures.append(take(bench, Path(scratch), given))
            if not given.json:
                print(figures[-1].what + ("" if figures[-1].met else ": MISSED"), flush=True)
    if given.json:
        print(json.dumps([dataclasses.asdict(figure) for figure in figures], indent=1))
    sys.exit(0 if all(figure.met for figure in figures) else 4)


if __name__ == "__main__":
    main()

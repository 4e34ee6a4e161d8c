#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does measuring cost? iocast-bench against bare-loop, which makes the same system calls without timing each.

Both run one rank on a memory file system, in turns, so that whatever else the machine does hits both alike. The benchmark
phase is repeated within each run and the fastest repeat counts: what else runs on the machine only ever adds time. Two
ratios are printed: of the medians, and the median of the ratios of neighbouring runs (a slow drift cancels in it); and the
ratio of the minima, the least disturbed of all. On a busy machine bare-loop differs from itself by 2 to 3 %.

    validation/speed/bench_overhead.py [--pairs 7] [--root /dev/shm] [--json]
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PHASES = ("precreate", "benchmark", "cleanup")


def find_programs() -> Path:
    """The bin directory of $IOCAST_BUILD, else of the newest build directory in the repository."""
    if "IOCAST_BUILD" in os.environ:
        return Path(os.environ["IOCAST_BUILD"]) / "bin"
    builds = [program.parent for program in REPOSITORY.glob("build*/bin/bare-loop")]
    if not builds:
        sys.exit("bare-loop is not built; build the tree or set IOCAST_BUILD to its build directory.")
    return max(builds, key=lambda directory: (directory / "bare-loop").stat().st_mtime)


def run_bare(programs: Path, root: str, shape: dict) -> dict[str, float]:
    values = [str(shape[key]) for key in ("datasets", "objects", "iterations", "object_size", "repeats")]
    done = subprocess.run([programs / "bare-loop", root, *values], check=True, capture_output=True, text=True)
    return {phase: min(seconds) for phase, seconds in json.loads(done.stdout).items()}


def run_bench(programs: Path, root: str, shape: dict) -> dict[str, float]:
    command = [programs / "iocast-bench", "--posix.root", root, "--json"]
    for key, value in shape.items():
        command += ["--set", f"{key}={value}B" if key == "object_size" else f"{key}={value}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    phases = json.loads(done.stdout)["phases"]
    return {name: min(phase["seconds"] for phase in phases if phase["name"] == name) for name in PHASES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--root", default="/dev/shm", help="a directory on the file system to use, best a memory one")
    parser.add_argument("--datasets", type=int, default=4)
    parser.add_argument("--objects", type=int, default=2000)
    parser.add_argument("--object-size", type=int, default=3901)
    parser.add_argument("--repeats", type=int, default=5, help="of the benchmark phase within a run")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    shape = {
        "datasets": given.datasets,
        "objects": given.objects,
        "iterations": given.objects,
        "object_size": given.object_size,
        "repeats": given.repeats,
    }
    programs = find_programs()
    bare: dict[str, list[float]] = {phase: [] for phase in PHASES}
    bench: dict[str, list[float]] = {phase: [] for phase in PHASES}
    root = tempfile.mkdtemp(prefix="iocast-overhead-", dir=given.root)
    try:
        for pair in range(-1, given.pairs):  # the first pair warms up
            # Which goes first alternates: the second of a pair may profit from the first.
            runs = [(run_bare, bare), (run_bench, bench)]
            for run, results in runs if pair % 2 else reversed(runs):
                seconds = run(programs, root, shape)
                if pair >= 0:
                    for phase in PHASES:
                        results[phase].append(seconds[phase])
    finally:
        shutil.rmtree(root)

    report = {}
    for phase in PHASES:
        pairs = [with_timing / without for with_timing, without in zip(bench[phase], bare[phase])]
        report[phase] = {
            "bare_min": min(bare[phase]),
            "bare_median": statistics.median(bare[phase]),
            "bench_min": min(bench[phase]),
            "bench_median": statistics.median(bench[phase]),
            "ratio_of_minima": min(bench[phase]) / min(bare[phase]),
            "ratio_of_medians": statistics.median(bench[phase]) / statistics.median(bare[phase]),
            "median_ratio_of_pairs": statistics.median(pairs),
        }
    if given.json:
        print(json.dumps({"shape": shape, "pairs": given.pairs, "phases": report}, indent=1))
        return
    print(f"{given.pairs} pairs, 1 rank, {root.rsplit('/', 1)[0]}, {shape}; seconds, then bench / bare")
    print(f"{'phase':<11}{'bare min':>10}{'median':>10}{'bench min':>11}{'median':>10}{'minima':>9}{'medians':>9}{'pairs':>9}")
    for phase, row in report.items():
        values = list(row.values())
        print(
            f"{phase:<11}{values[0]:>10.4f}{values[1]:>10.4f}{values[2]:>11.4f}{values[3]:>10.4f}"
            + "".join(f"{ratio:>9.3f}" for ratio in values[4:])
        )


if __name__ == "__main__":
    main()

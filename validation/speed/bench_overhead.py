#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does measuring cost? iocast-bench against bare-loop, which makes the same system calls and times nothing but
phases.

Both run one rank on a memory file system, in turns, so that whatever else the machine does hits both alike. Two ratios
are printed of each workload's time and of its slowest phase's: of the minima, which is the least disturbed of all (what
else runs on the machine only ever adds time), and the median of the ratios of neighbouring runs (a slow drift cancels
in it). On a busy machine bare-loop differs from itself by 2 to 3 %.

PostMark itself (Debian's postmark) runs in the same turns, on files of the same sizes and as many transactions, in two
ways: as it comes, through stdio, which moves 4 KiB at a time and besides asks for each file's attributes; and
unbuffered in blocks of 4 KiB, which is system call for system call what iocast-bench does. It counts from its start to
its end; bench / postmark is the median of the ratios in one turn.

fs_mark (Debian's fsmark) does, too, beside workloads with a phase in which files are created in one directory: as many
files of the same size, each opened, written in one call and closed, none synchronised. Both report the time of
their loop, without start and end, and the part of it that is in these calls; in the rest fs_mark also asks for its
directory again before each file (mkdir), which iocast-bench does not. bare-loop is an MPI program, too; with
--without-mpi it isn't, and what MPI's presence costs counts as the benchmark's.

iozone, whose file is larger than what processors cache, runs on a memory file system of the script's own with huge
pages, where it may mount one (as root). With pages of 4 KiB the time to copy a megabyte hangs by 5 % and more on which
pages of the machine's memory a process got, and bare-loop, which keeps all its operations in memory, gets others than
iocast-bench: records of 1 MiB then took 1.03 to 1.07 times as long with it, on huge pages 0.99 to 1.01.

With --time-stamps bare-loop also runs with two readings of the time stamp counter around each operation, in the same
turns.

    validation/speed/bench_overhead.py [WORKLOAD...] [--pairs 7] [--root /dev/shm] [--without-mpi] [--time-stamps]
    [--json]
"""

import argparse
import contextlib
import dataclasses
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from programs import find_program

WORKLOADS = {
    "md-workbench": "datasets=4 objects=2000 iterations=2000 repeats=3",
    "mdtest-easy": "items=20000 most_seconds=0s",
    "mdtest-hard": "items=10000 most_seconds=0s",
    "mdtest-shared": "items=10000",
    "postmark": "number=2000 transactions=20000 size_low=500B size_high=10000B read=4KiB write=4KiB",
    "file-server": "files=2000 operations=5000",
    "nfs-server": "files=2000 operations=20000",
    "ls-lR": "directories=300 files=10000",
    "compile": "directories=100 files=2000 sources=300",
    "ior-easy": "transfer_size=2MiB per_process=256MiB",
    "ior-hard": "segments=4000",
    "iozone": "file_size=512MiB",  # beyond what processors cache: with less, it hangs on which pages each process got
    "pio-simple-strided": "per_process=64MiB",
    "tile-io": "",
    "hpcs-04": "files=10000",
    "hpcs-05": "memory=256MiB",
    "hpcs-14": "memory=64MiB reads=20000",
}
"""A run of each takes some tenths of a second; what they do not reach are thinking and more than one rank."""

ON_HUGE_PAGES = {"iozone"}


@contextlib.contextmanager
def huge_pages(root: str) -> Iterator[str]:
    """A memory file system with huge pages within the directory, or the directory itself where none can be mounted."""
    place = Path(root) / "huge"
    place.mkdir()
    mounted = (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "huge=always", "none", str(place)], check=False, capture_output=True
        ).returncode
        == 0
    )
    try:
        yield str(place) if mounted else root
    finally:
        if mounted:
            subprocess.run(["umount", str(place)], check=True)
        place.rmdir()


POSTMARK = "set number 2000\nset transactions 20000\nset size 500 10000\n{more}set location {root}\nrun\nquit\n"
POSTMARK_WAYS = {"as it comes": "", "unbuffered": "set read 4096\nset write 4096\nset buffering false\n"}


FS_MARK = {"mdtest-hard": ("file-create", 3901), "hpcs-04": ("create", 32768)}
"""The phase that does what fs_mark does, and the size of its files."""

Phases = list[float]


def run_bare(program: list[str | Path], root: str, workload: str, settings: list[str]) -> Phases:
    done = subprocess.run([*program, root, workload, *settings], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return [phase["seconds"] for phase in json.loads(done.stdout)]


def run_bench(program: list[str | Path], root: str, workload: str, settings: list[str]) -> list[dict]:
    chosen = [argument for setting in settings for argument in ("--set", setting)]
    done = subprocess.run(
        [*program, "--workload", workload, *chosen, "--posix.root", root, "--json"], capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["phases"]


def run_postmark(root: str, way: str) -> float:
    begin = time.monotonic()
    subprocess.run(
        ["postmark"],
        input=POSTMARK.format(root=root, more=POSTMARK_WAYS[way]),
        check=True,
        capture_output=True,
        text=True,
    )
    return time.monotonic() - begin


@dataclasses.dataclass
class Creation:
    """Of files: what the loop took, and the calls in it."""

    files: int
    seconds: float
    calls: float


def creation_in(phase: dict) -> Creation:
    """Of iocast-bench."""
    create = phase["latency"]["create"]
    return Creation(create["count"], phase["seconds"], create["count"] * create["mean"])


def run_fs_mark(root: str, files: int, size: int) -> Creation:
    command = [
        "fs_mark",
        "-k",
        "-S",
        "0",
        "-d",
        "fs_mark",
        "-n",
        str(files),
        "-s",
        str(size),
        "-w",
        str(size),
        "-l",
        "fs_mark.log",
    ]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    shutil.rmtree(Path(root) / "fs_mark")
    (Path(root) / "fs_mark.log").unlink()
    _, count, _, rate, overhead = done.stdout.splitlines()[
        -1
    ].split()  # FSUse% Count Size Files/sec App-Overhead, in microseconds
    seconds = int(count) / float(rate)
    return Creation(int(count), seconds, seconds - int(overhead) * 1e-6)


def in_pairs(ours: list[float], theirs: list[float]) -> dict:
    """The median of the ratios of neighbouring runs, and its interval of 95 %, from six pairs on."""
    neighbours = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    pairs = len(neighbours)
    # How many of n ratios lie below their true median is binomial.
    beyond = next(
        (k for k in range(pairs // 2, -1, -1) if 2 * sum(math.comb(pairs, i) for i in range(k + 1)) / 2**pairs <= 0.05),
        None,
    )
    interval = [None, None] if beyond is None else [neighbours[beyond], neighbours[-1 - beyond]]
    return {"pairs": statistics.median(neighbours), "interval": interval}


def compare(
    floor: list[str | Path], benchmark: Path, root: str, workload: str, pairs: int, stamps: bool, more: list[str]
) -> dict:
    named = dict(setting.split("=", 1) for setting in [*WORKLOADS[workload].split(), *more])
    settings = [f"{name}={value}" for name, value in named.items()]
    bare: list[Phases] = []
    bench: list[Phases] = []
    stamped: list[Phases] = []
    postmark: dict[str, list[float]] = {}
    created: list[Creation] = []
    fs_mark: list[Creation] = []
    for pair in range(-1, pairs):  # the first pair warms up
        # Which goes first alternates: the second of a pair may profit from the first.
        runs = [(run_bare, floor, bare), (run_bench, [benchmark], bench)]
        for run, program, results in runs if pair % 2 else reversed(runs):
            phases = run(program, root, workload, settings)
            if pair < 0:
                continue
            if results is bench:
                if workload in FS_MARK:
                    created += [creation_in(phase) for phase in phases if phase["name"] == FS_MARK[workload][0]]
                phases = [phase["seconds"] for phase in phases]
            results.append(phases)
        if stamps and pair >= 0:
            stamped.append(run_bare([*floor, "--time-stamps"], root, workload, settings))
        if workload == "postmark" and pair >= 0 and shutil.which("postmark"):
            for way in POSTMARK_WAYS:
                postmark.setdefault(way, []).append(run_postmark(root, way))
        if pair >= 0 and created and shutil.which("fs_mark"):
            fs_mark.append(run_fs_mark(root, created[-1].files, FS_MARK[workload][1]))
    slowest = max(range(len(bare[0])), key=lambda phase: bare[0][phase])

    def ratios(of) -> dict:
        without, with_timing = [of(phases) for phases in bare], [of(phases) for phases in bench]
        return {"bare": min(without), "bench": min(with_timing), "minima": min(with_timing) / min(without)} | in_pairs(
            with_timing, without
        )

    result = {
        "settings": " ".join(settings),
        "whole": ratios(sum),
        "slowest_phase": ratios(lambda phases: phases[slowest]),
    }
    if stamped:
        result["stamps"] = statistics.median(
            sum(with_stamps) / sum(without) for with_stamps, without in zip(stamped, bare)
        )
    if fs_mark:
        for name, runs in ("bench", created), ("fs_mark", fs_mark):
            result[f"creation_by_{name}"] = {
                "files": runs[-1].files,
                "seconds": min(run.seconds for run in runs),
                "calls": min(run.calls for run in runs),
            }
    if postmark:
        whole = [sum(phases) for phases in bench]
        result["postmark"] = {
            way: {"seconds": min(seconds), "minima": min(whole) / min(seconds)} | in_pairs(whole, seconds)
            for way, seconds in postmark.items()
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", help=f"of {', '.join(WORKLOADS)}; all without")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another setting of the workload, for a shorter run",
    )
    parser.add_argument("--root", default="/dev/shm", help="a directory on the file system to use, best a memory one")
    parser.add_argument("--without-mpi", action="store_true", help="compare with a loop that is no MPI program")
    parser.add_argument(
        "--time-stamps", action="store_true", help="also run the loop with two time stamps an operation"
    )
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    unknown = [name for name in given.workloads if name not in WORKLOADS]
    if unknown:
        sys.exit(f"There are no settings for {', '.join(unknown)}. Allowed: {', '.join(WORKLOADS)}.")
    bare_loop, benchmark = find_program("bare-loop"), find_program("iocast-bench")
    floor = [bare_loop, *(["--without-mpi"] if given.without_mpi else [])]
    root = tempfile.mkdtemp(prefix="iocast-overhead-", dir=given.root)
    results = {}
    try:
        if not given.json:
            print(
                f"{given.pairs} pairs, 1 rank, {given.root}: seconds of the fastest run, then bench / bare; of the"
                " whole run, and of its slowest phase"
            )
            print(
                f"{'workload':<20}{'bare':>9}{'bench':>9}{'minima':>8}{'pairs':>8}{'interval':>16}"
                f"{'minima':>10}{'pairs':>8}"
            )
        for workload in given.workloads or WORKLOADS:
            with huge_pages(root) if workload in ON_HUGE_PAGES else contextlib.nullcontext(root) as place:
                result = compare(floor, benchmark, place, workload, given.pairs, given.time_stamps, given.set)
            results[workload] = result | {"huge_pages": place != root}
            whole, slowest = result["whole"], result["slowest_phase"]
            if not given.json:
                more = "   on huge pages" if place != root else ""
                more += f"   time stamps alone {result['stamps']:.3f}" if "stamps" in result else ""
                for way, beside in result.get("postmark", {}).items():
                    more += f"   postmark {way} {beside['seconds']:.3f} s, bench / postmark {beside['pairs']:.3f}"
                    more += "" if beside["interval"][0] is None else " ({:.3f} .. {:.3f})".format(*beside["interval"])
                if "creation_by_fs_mark" in result:
                    ours, theirs = result["creation_by_bench"], result["creation_by_fs_mark"]
                    more += (
                        f"   creation {ours['seconds']:.3f} s, fs_mark {theirs['seconds']:.3f} s; calls"
                        f" {ours['calls']:.3f} s, {theirs['calls']:.3f} s"
                    )
                print(
                    f"{workload:<20}{whole['bare']:>9.4f}{whole['bench']:>9.4f}"
                    f"{whole['minima']:>8.3f}{whole['pairs']:>8.3f}"
                    f"{'' if whole['interval'][0] is None else '{:.3f} .. {:.3f}'.format(*whole['interval']):>16}"
                    f"{slowest['minima']:>10.3f}{slowest['pairs']:>8.3f}{more}",
                    flush=True,
                )
    finally:
        shutil.rmtree(root)
    if given.json:
        print(json.dumps({"pairs": given.pairs, "workloads": results}, indent=1))


if __name__ == "__main__":
    main()

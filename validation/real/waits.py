#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What do ranks wait for inside a file system, and is that a matter of how many ranks there are, or of how many objects
they have? Runs md-workbench with few ranks and few objects, with few ranks and many objects, and with many ranks that
have as many together; looks now and then where in the kernel each rank sleeps, and prints throughput and the shares of
their time: what is not there in a measurement can't be in a forecast that was fitted to it.

    validation/real/waits.py FILESYSTEM... [--of 4x4000 4x32000 32x4000] [--operations N] [--place DIR] [--page
    docs/scoreboard.md]

Needs root (the kernel shows its stacks to nobody else) and what filesystems.py needs. Shares add up to less than 1: the
rest works, or waits for a core."""

import argparse
import contextlib
import json
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "validation"), str(ROOT / "validation/real")]
from mounts import MOUNTS  # noqa: E402
from scoreboard import put  # noqa: E402

from iocast.campaign.launchers import ask_to_end, bench_command, bench_environment  # noqa: E402
from iocast.campaign.plan import settings_arguments  # noqa: E402
from iocast.wording.text import quantity  # noqa: E402
from iocast.watching.waits import wait_of  # noqa: E402

DATASETS, OPERATIONS_PER_ITERATION = 4, 4
EVERY = 0.1
LEAST = 0.03
"""Of the time, from which on a wait is printed."""


def ranks_under(launcher: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return [
            process for process in psutil.Process(launcher).children(recursive=True) if process.name() == "iocast-bench"
        ]
    return []


def waits(kind: str, place: Path, ranks: int, objects: int, operations: int) -> tuple[float, dict[str, float]]:
    """Operations a second in benchmark phases, and the shares of the ranks' time there, by where in the kernel they
    slept. `objects` are those of a rank in a dataset, `operations` those of all ranks."""
    found: Counter[str | None] = Counter()
    repeats = max(1, round(operations / (ranks * objects * DATASETS * OPERATIONS_PER_ITERATION)))
    settings = {"datasets": DATASETS, "objects": objects, "iterations": objects, "repeats": repeats}
    with (
        MOUNTS[kind](place) as directory,
        tempfile.TemporaryFile() as printed,
        tempfile.TemporaryDirectory(prefix="iocast-waits-") as scratch,
    ):
        root = directory / "ranks"
        root.mkdir()
        command = [
            *bench_command(1, ranks),
            "--workload",
            "md-workbench",
            *settings_arguments(settings),
            "--posix.root",
            str(root),
            "--quiet",
        ]
        subprocess.run(
            [*command, "--set", "phases=precreate"], check=True, stdout=subprocess.DEVNULL, env=bench_environment()
        )
        run = Path(scratch) / "run"
        launcher = subprocess.Popen(
            [*command, "--set", "phases=benchmark", "--out", str(run)],
            stdout=subprocess.DEVNULL,
            stderr=printed,
            env=bench_environment(),
        )
        try:
            while (
                launcher.poll() is None and not (run / "run.json").exists()
            ):  # which is there when the first phase begins
                time.sleep(EVERY / 10)
            while launcher.poll() is None:
                for rank in ranks_under(launcher.pid):
                    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                        found[wait_of(rank.pid)] += 1
                time.sleep(EVERY)
        finally:
            ask_to_end(launcher)
            launcher.wait()
        if launcher.returncode != 0 or not found:
            printed.seek(0)
            sys.exit(
                f"The benchmark on {kind} with {run_title(ranks, objects)} failed, or ended before it was looked at:"
                f" {printed.read().decode().strip()}"
            )
        phases = json.loads((run / "run.json").read_text())["phases"]
    rate = sum(phase["operations"] for phase in phases) / sum(phase["seconds"] for phase in phases)
    return rate, {where: count / found.total() for where, count in found.most_common() if where}


def run_title(ranks: int, objects: int) -> str:
    return f"{ranks} ranks with {DATASETS} x {objects} objects each"


def case(text: str) -> tuple[int, int]:
    """ "4x4000": ranks, and objects of each in each dataset."""
    found = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is no case; write RANKSxOBJECTS, such as 4x4000")
    return int(found[1]), int(found[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "kinds", nargs="+", metavar="FILESYSTEM", choices=sorted(MOUNTS), help=f"of {', '.join(MOUNTS)}"
    )
    parser.add_argument(
        "--of",
        type=case,
        nargs="+",
        default=[(4, 4000), (4, 32_000), (32, 4000)],
        metavar="RANKSxOBJECTS",
        help="objects of each rank in each of four datasets",
    )
    parser.add_argument(
        "--operations",
        type=int,
        default=3_000_000,
        help="of all ranks of a run in benchmark phases: some ten seconds and more",
    )
    parser.add_argument(
        "--place", type=Path, default=Path(tempfile.gettempdir()), help="where the loop devices' files lie"
    )
    parser.add_argument("--page", type=Path, help="put what was found there, between its marks")
    given = parser.parse_args()
    named = ", of ".join(run_title(*one) for one in given.of)
    lines = [
        f"Linux {platform.release().partition('-')[0]}; throughput, and shares of the ranks' time asleep, of {named}:"
    ]
    for kind in given.kinds:
        rates, shares = zip(*(waits(kind, given.place, *one, given.operations) for one in given.of), strict=True)
        lines += ["", "".join(f"{quantity('rate', rate):>9}" for rate in rates) + f"  {kind}"]
        shown = {where for those in shares for where, share in those.items() if share >= LEAST}
        for where in sorted(shown, key=lambda one: -max(those.get(one, 0.0) for those in shares)):
            lines.append("".join(f"{100 * those.get(where, 0.0):7.0f} %" for those in shares) + f"  {where}")
    print("\n".join(lines))
    if given.page:
        put(given.page, "waits", ["```text", *lines, "```"])


if __name__ == "__main__":
    main()

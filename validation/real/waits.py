#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What do ranks wait for inside a file system, and does it show at few ranks? Runs md-workbench with so many and so many ranks, looks now and then where in the
kernel each one sleeps, and prints the shares of their time: what is not there at few ranks can't be in a forecast that was fitted to them.

    validation/real/waits.py FILESYSTEM... [--ranks 4 32] [--place DIR] [--seconds 8] [--page docs/scoreboard.md]

Needs root (the kernel shows its stacks to nobody else) and what filesystems.py needs. Shares add up to less than 1: the rest works, or waits for a core."""

import argparse
import contextlib
import platform
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

from iocast.campaign import ask_to_end, bench_command, bench_environment, settings_arguments  # noqa: E402
from iocast.waits import wait_of  # noqa: E402

SETTINGS = {"datasets": 4, "objects": 1500, "iterations": 1500, "repeats": 10_000}
SETTLED = 4.0
"""Seconds after which all ranks are in a benchmark phase."""
EVERY = 0.1
LEAST = 0.03
"""Of the time, from which on a wait is printed."""


def ranks_under(launcher: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return [process for process in psutil.Process(launcher).children(recursive=True) if process.name() == "iocast-bench"]
    return []


def waits(kind: str, place: Path, ranks: int, seconds: float) -> dict[str, float]:
    """Shares of the ranks' time in benchmark phases, by where in the kernel they slept."""
    found: Counter[str | None] = Counter()
    with MOUNTS[kind](place) as directory, tempfile.TemporaryFile() as said:
        root = directory / "ranks"
        root.mkdir()
        command = [*bench_command(1, ranks), "--workload", "md-workbench", *settings_arguments(SETTINGS), "--posix.root", str(root), "--quiet"]
        subprocess.run([*command, "--set", "phases=precreate"], check=True, stdout=subprocess.DEVNULL, env=bench_environment())
        launcher = subprocess.Popen([*command, "--set", "phases=benchmark"], stdout=subprocess.DEVNULL, stderr=said, env=bench_environment())
        try:
            time.sleep(SETTLED)
            end = time.monotonic() + seconds
            while launcher.poll() is None and time.monotonic() < end:
                for rank in ranks_under(launcher.pid):
                    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                        found[wait_of(rank.pid)] += 1
                time.sleep(EVERY)
            if launcher.poll() is not None:
                said.seek(0)
                sys.exit(f"The benchmark on {kind} with {ranks} ranks ended before it was looked at: {said.read().decode().strip()}")
        finally:
            ask_to_end(launcher)
            launcher.wait()
    return {where: count / found.total() for where, count in found.most_common() if where}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="+", metavar="FILESYSTEM", choices=sorted(MOUNTS), help=f"of {', '.join(MOUNTS)}")
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 32])
    parser.add_argument("--place", type=Path, default=Path(tempfile.gettempdir()), help="where the loop devices' files lie")
    parser.add_argument("--seconds", type=float, default=8.0, help="that each number of ranks is looked at")
    parser.add_argument("--page", type=Path, help="put what was found there, between its marks")
    given = parser.parse_args()
    lines = [f"Linux {platform.release().partition('-')[0]}; share of the ranks' time asleep, of {' and of '.join(map(str, given.ranks))} ranks:"]
    for kind in given.kinds:
        shares = [waits(kind, given.place, ranks, given.seconds) for ranks in given.ranks]
        lines += ["", kind]
        told = {where for those in shares for where, share in those.items() if share >= LEAST}
        for where in sorted(told, key=lambda one: -max(those.get(one, 0.0) for those in shares)):
            lines.append("".join(f"{100 * those.get(where, 0.0):7.0f} %" for those in shares) + f"  {where}")
    print("\n".join(lines))
    if given.page:
        put(given.page, "waits", ["```text", *lines, "```"])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it takes to start the programs, in milliseconds of a processor: most simulations of a calibration, and most runs
of the tests, are short.

    validation/speed/start.py [BUILD...]      build directories, by default build/"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from statistics import median

REPOSITORY = Path(__file__).resolve().parents[2]
REPEATS = 21
PLATFORM = "--json --brief --platform network --nodes 4".split()
SMALLEST = [*PLATFORM, *"--workload md-workbench --set phases=benchmark --set iterations=10".split()]
COMMANDS = {
    "iocast-sim --version": ["iocast-sim", "--version"],
    "iocast-sim, 10 iterations": ["iocast-sim", *SMALLEST],
    "iocast-sim, its flows from SimGrid": ["iocast-sim", *SMALLEST, "--flows", "simgrid"],
    "iocast-bench --version": ["iocast-bench", "--version"],
    "iocast-bench --list backends": ["iocast-bench", "--list", "backends"],
}


def milliseconds(command: list[str]) -> float:
    """Of the user's and of the system's mode, of the program and all that it waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def main() -> None:
    builds = [Path(name).resolve() for name in sys.argv[1:]] or [REPOSITORY / "build"]
    for what, (program, *arguments) in COMMANDS.items():
        taken: dict[Path, list[float]] = {build: [] for build in builds}
        for _ in range(REPEATS):
            for build in builds:  # in turns, so that a busy moment is everybody's
                taken[build].append(milliseconds([str(build / "bin" / program), *arguments]))
        print(f"{what:36}", *(f"{median(values):8.1f} ms" for values in taken.values()))


if __name__ == "__main__":
    main()

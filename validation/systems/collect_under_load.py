#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do collections of all tests agree on a busy machine? Collects them many times, two processes at once, while
`stress-ng` keeps every CPU busy, and compares the lists of tests.

    validation/systems/collect_under_load.py [--times 50] [--at-once 2] [--stress 8] [--logs DIR]

`--stress 0` leaves the machine as it is. Needs `.venv` and `build/` as `./check` leaves them, and the Debian package
stress-ng. Prints seconds and number of tests of each collection. Exit status 4 when a collection fails, or its list
differs from the first."""

import argparse
import contextlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLLECT = (".venv/bin/python", "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", "-p", "no:xdist")


def tests_in(output: str) -> list[str]:
    """Names of the tests, in the order of the output."""
    return [line for line in output.splitlines() if "::" in line]


def collected(number: int, logs: Path) -> tuple[int, float, int, list[str]]:
    """Number, seconds, exit status and tests of one collection; its output is kept when it fails."""
    began = time.monotonic()
    done = subprocess.run(COLLECT, cwd=ROOT, capture_output=True, text=True, check=False)
    tests = tests_in(done.stdout)
    if done.returncode or not tests:
        (logs / f"collection-{number}.log").write_text(done.stdout + done.stderr)
    return number, time.monotonic() - began, done.returncode, tests


@contextlib.contextmanager
def stressed(workers: int) -> Iterator[None]:
    """The time in which stress-ng's workers compute."""
    if not workers:
        yield
        return
    process = subprocess.Popen(["stress-ng", "--cpu", str(workers), "--quiet"])
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=50, help="collections in all")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--stress", type=int, default=8, help="workers of stress-ng; 0: none")
    parser.add_argument("--logs", type=Path, default=ROOT / "build" / "collections", help="directory for failed ones")
    given = parser.parse_args()
    if given.stress and shutil.which("stress-ng") is None:
        sys.exit("collect_under_load.py needs the Debian package stress-ng; --stress 0 does without.")
    given.logs.mkdir(parents=True, exist_ok=True)
    first: list[str] = []
    bad = 0
    with stressed(given.stress), ThreadPoolExecutor(given.at_once) as pool:
        for number, seconds, status, tests in pool.map(lambda n: collected(n, given.logs), range(1, given.times + 1)):
            first = first or tests
            differs = len(set(first) ^ set(tests))
            verdict = "alike" if tests == first else f"{differs} tests DIFFER"
            if status or not tests:
                verdict = f"FAILED, see {given.logs}"
            bad += verdict != "alike"
            print(f"{number:>4}{seconds:>8.1f} s{len(tests):>7} tests  {verdict}", flush=True)
    print(f"{given.times} collections, {given.at_once} at once, {given.stress} busy workers: {bad} differ or failed.")
    sys.exit(4 if bad else 0)


if __name__ == "__main__":
    main()

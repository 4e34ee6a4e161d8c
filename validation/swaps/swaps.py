#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Can another user have iocast overwrite or remove files? One exchanges directories that iocast works in for links to
other data, as fast as possible, while campaigns begin, are killed, resume and are swept.

    validation/swaps/swaps.py [DIR] [--swaps 1000] [--seed 0] [--json]

As root, the other user is a process of the user 65534; otherwise one of the same user. The measured directory and the
one that OUT lies in are writable for both, so that the other one may rename whatever iocast makes there. The links lead
to files with the names of iocast's own: data sets, objects, runs, pilot runs, campaign.json. Campaigns run with posix
and with mpiio. A fault is a file or a name there that has changed or is new; but for new directories of a data set or a
run, with names of their own, which a path that leads there for a moment has iocast make. Exit code 1 with a fault."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OTHER = 65534
PLAN = """schema_version: 1
workload: md-workbench
settings: {datasets: 1, most_seconds: 60s}
seconds: 0.05
repeats: 1
benchmark_repeats: 1
points:
  - {ranks: 1}
  - {ranks: 2, role: check}
"""
OBJECTS = 60
OWN_NAME = re.compile(r"[^/]*\.[0-9a-f]{16}|runs/[^/]*\.attempt-\d+(/run\.json|/latency\.hlog)?")
AT_FDCWD, EXCHANGE = -100, 2  # fcntl.h, linux/fs.h


def exchange(one: Path, other: Path) -> bool:
    """Whether both names were there, and lead to each other's files now."""
    return not ctypes.CDLL(None).renameat2(AT_FDCWD, bytes(one), AT_FDCWD, bytes(other), EXCHANGE)


def race(root: Path, victim: Path, swaps: Synchronized[int]) -> None:
    """Exchanges DIR/iocast-campaign and OUT for links, and single data sets in what it put there."""
    if os.geteuid() == 0:
        os.setgid(OTHER)
        os.setuid(OTHER)
    data, out = root / "trap-data", root / "trap-out"  # who may not write to a directory can't move it to another one
    data.mkdir()
    out.symlink_to(victim)
    while True:
        for name, trap in (("iocast-campaign", data), ("out", out)):
            place = root / name
            with contextlib.suppress(OSError):
                for one in place.iterdir():
                    if one.is_dir() and not (data / one.name).exists():
                        (data / one.name).symlink_to(victim)
            if exchange(place, trap):
                swaps.value += 1
                time.sleep(random.choice((0, 0.001, 0.02)))
                swaps.value += exchange(place, trap)
            time.sleep(random.choice((0, 0.001, 0.02, 0.1)))


def prepare(victim: Path) -> dict[str, str]:
    """Files of names that iocast works with. @return what they hold, by path"""
    (victim / "runs" / "pilot-study").mkdir(parents=True)
    (victim / "runs" / "pilot.attempt-1").mkdir()
    files = [victim / name for name in ("campaign.json", "runs/pilot-study/thesis", "runs/pilot.attempt-1/run.json")]
    files += [victim / f"{rank}_0" / f"file-{number}" for rank in (0, 1) for number in range(OBJECTS)]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"somebody's {file.name}")
    return contents(victim)


def contents(victim: Path) -> dict[str, str]:
    return {str(file.relative_to(victim)): file.read_text() if file.is_file() else "" for file in victim.rglob("*")}


def command(root: Path, backend: str, *more: str) -> subprocess.Popen[str]:
    arguments = [root / "dir", "--campaign", root / "plan.yaml", "--out", root / "dir" / "out", "--backend", backend]
    return subprocess.Popen(
        [sys.executable, "-m", "iocast", "measure", *map(str, arguments), *more],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def campaign(root: Path, backend: str, victim: Path, swaps: Synchronized[int], outcomes: Counter[str]) -> None:
    """One that is killed at a random moment, resumed, and swept, beside a racer of its own."""
    (place := root / "dir").mkdir(mode=0o777)
    place.chmod(0o777)
    racer = multiprocessing.get_context("fork").Process(target=race, args=(place, victim, swaps), daemon=True)
    racer.start()
    try:
        for step, more in (("killed", ()), ("resumed", ()), ("swept", ("--sweep",))):
            child = command(root, backend, *more)
            if step == "killed":
                time.sleep(random.uniform(0.5, 3))
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
            child.communicate(timeout=300)
            outcomes[f"{step}: exit code {child.returncode}"] += 1
    finally:
        racer.kill()
        racer.join()
        shutil.rmtree(place, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, nargs="?", default=Path("/dev/shm"))
    parser.add_argument("--swaps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    random.seed(given.seed)
    root = Path(tempfile.mkdtemp(prefix="iocast-swaps-", dir=given.directory))
    root.chmod(0o755)
    (root / "plan.yaml").write_text(PLAN)
    before = prepare(victim := root / "victim")
    swaps: Synchronized[int] = multiprocessing.Value("i", 0)
    outcomes: Counter[str] = Counter()
    campaigns = 0
    while swaps.value < given.swaps:
        campaign(root, ("posix", "mpiio")[campaigns % 2], victim, swaps, outcomes)
        campaigns += 1
    after = contents(victim)
    faults = [name for name, text in before.items() if after.get(name) != text]
    faults += [name for name in after.keys() - before.keys() if not OWN_NAME.fullmatch(name)]
    answer = {
        "swaps": swaps.value,
        "campaigns": campaigns,
        "outcomes": dict(sorted(outcomes.items())),
        "faults": faults,
    }
    if given.json:
        print(json.dumps(answer))
    else:
        for outcome, count in sorted(outcomes.items()):
            print(f"{count:5}  {outcome}")
        print(f"{swaps.value} swaps during {campaigns} campaigns, {len(faults)} files that were touched. {faults[:5]}")
    shutil.rmtree(root)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

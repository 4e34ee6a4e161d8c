# SPDX-License-Identifier: Apache-2.0
"""Where in the kernel processes sleep: seen, observed beside a command, and looked for in a file system
(validation/real/waits.py)."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from programs import REPOSITORY

from iocast.watching.waits import NOT_SHOWN, wait_of

REAL = REPOSITORY / "validation" / "real"


def seen(command: list[str]) -> set[str | None]:
    """What is found of a process in a second."""
    with subprocess.Popen(command) as process:
        try:
            time.sleep(0.5)
            return {wait_of(process.pid) for _ in range(20) if not time.sleep(0.05)}
        finally:
            process.kill()


def test_a_sleeper_is_found_where_it_sleeps() -> None:
    (where,) = seen(["sleep", "30"])
    assert where is not None and "nanosleep" in where.partition(" < ")[0]


@pytest.mark.needs("root")
def test_other_users_get_a_reason_where_it_is_not_shown() -> None:
    look = (
        "import os; from iocast.watching.waits import wait_of; os.setuid(65534); "
        "print(wait_of(int(os.environ['WHOM'])))"
    )
    with subprocess.Popen(["sleep", "30"]) as process:
        try:
            time.sleep(0.5)
            done = subprocess.run(
                [sys.executable, "-c", look],
                capture_output=True,
                text=True,
                cwd=REPOSITORY,
                env={**os.environ, "WHOM": str(process.pid)},
                check=False,
            )
        finally:
            process.kill()
    assert done.stdout.strip() == NOT_SHOWN, done.stderr


def test_who_works_waits_for_nothing() -> None:
    assert None in seen([sys.executable, "-c", "while True: pass"])


def test_an_observation_tells_them(iocast: Callable[..., CompletedProcess[str]], tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    done = iocast("observe", "--out", out, "--every", "50ms", "--process", "sleep", "--waits", "--", "sleep", "1")
    assert done.returncode == 0, done.stderr
    looks = [
        sample["processes"]["sleep"]
        for sample in map(json.loads, out.read_text().splitlines())
        if "processes" in sample and "monotonic" in sample and "cpu" in sample
    ]
    asleep = [where for look in looks for where, count in look["waits"].items() for _ in range(count)]
    assert len(asleep) >= 5 and sum("nanosleep" in where for where in asleep) > 0.9 * len(asleep)
    refused = iocast("observe", "--out", tmp_path / "other", "--waits", "--", "true")
    assert refused.returncode == 2 and "--process" in refused.stderr and not (tmp_path / "other").exists()


@pytest.mark.needs("mounts")
def test_ranks_are_looked_at(bench: Path) -> None:
    environment = {**os.environ, "IOCAST_BUILD": str(bench.parents[1]), "PYTHONPATH": str(REPOSITORY)}
    command = [
        sys.executable,
        str(REAL / "waits.py"),
        "tmpfs",
        "--of",
        "2x500",
        "2x1000",
        "--operations",
        "100000",
        "--place",
        "/dev/shm",
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "asleep, of 2 ranks with 4 x 500 objects each, of 2 ranks with 4 x 1000 objects each:" in done.stdout
    assert re.search(r"^ +[\d.]+ [kM]?/s +[\d.]+ [kM]?/s  tmpfs$", done.stdout, re.MULTILINE), done.stdout

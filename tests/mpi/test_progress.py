# SPDX-License-Identifier: Apache-2.0
"""What a terminal shows while a run is going on."""

import os
import pty
import re
import subprocess
from pathlib import Path

# 500 operations of 4 ms; every seventh create fails
RUN = [
    "--backend",
    "dummy",
    "--dummy.delay",
    "4ms",
    "--dummy.fail",
    "create:7",
    "--set",
    "datasets=1",
    "--set",
    "objects=100",
    "--set",
    "iterations=50",
]


def on_a_terminal(bench: Path, environment: dict[str, str], *more: str) -> str:
    ours, its = pty.openpty()
    process = subprocess.Popen([str(bench), *RUN, *more], stdout=subprocess.DEVNULL, stderr=its, env=environment)
    os.close(its)
    shown = b""
    while True:
        try:
            some = os.read(ours, 4096)
        except OSError:  # as Linux ends a terminal
            break
        if not some:
            break
        shown += some
    os.close(ours)
    assert process.wait(timeout=120) == 1
    return shown.decode()


def test_rate_quantiles_errors_and_the_time_that_is_left(bench: Path, mpi_environment: dict[str, str]) -> None:
    shown = on_a_terminal(bench, mpi_environment)
    lines = [line for line in re.split(r"\r(?:\x1b\[K)?", shown) if "of the run done" in line]
    assert lines, shown
    entries = [
        re.match(
            r"benchmark 1: (\d+) % of the run done, (\d+) operations/s, p50 ([\d.]+)ms, p99 ([\d.]+)ms, (\d+) errors?,"
            r" about \d+ s left",
            line,
        )
        for line in lines
    ]
    shown_in_the_benchmark = [match for match, line in zip(entries, lines, strict=True) if line.startswith("benchmark")]
    assert shown_in_the_benchmark and all(shown_in_the_benchmark), lines
    for match in shown_in_the_benchmark:
        assert match
        assert 0 < int(match[1]) <= 100 and int(match[5]) > 0
        assert int(match[2]) <= 250, "of one rank whose operations take 4 ms; those of the phase before don't count"
        assert 3.9 <= float(match[3]) <= float(match[4])
        assert float(match[3]) <= 2 * 1000 / int(match[2]), "one rank has one operation at a time"
    assert shown.rindex("\x1b[K") > shown.rindex("of the run done")  # nothing of it stays


def test_quiet(bench: Path, mpi_environment: dict[str, str]) -> None:
    shown = on_a_terminal(bench, mpi_environment, "--quiet")
    assert "of the run done" not in shown and "operations failed" in shown

# SPDX-License-Identifier: Apache-2.0
"""validation/speed/bench_scale.py measures. Here: each figure comes from a run of the requested size, and a missed
target is reported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "validation" / "speed" / "bench_scale.py"


@pytest.mark.long("a sample of validation/speed/bench_scale.py")
def test_every_figure_is_taken(bench: Path, mpi_environment: dict[str, str], tmp_path: Path) -> None:
    environment = {**mpi_environment, "IOCAST_BUILD": os.environ.get("IOCAST_BUILD", str(bench.parents[1]))}
    sizes = [
        "--ranks",
        "3",
        "--runs",
        "1",
        "--operations",
        "1e5",
        "--memory-operations",
        "1e6",
        "--trace-operations",
        "1e5",
    ]
    command = [sys.executable, str(SCRIPT), *sizes, "--root", str(tmp_path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    figures = {figure["name"]: figure for figure in json.loads(done.stdout)}
    assert list(figures) == ["start", "end", "memory", "trace"]
    assert done.returncode == (0 if all(figure["met"] for figure in figures.values()) else 4), done.stderr
    start, end, memory, trace = figures.values()
    assert start["more"]["ranks"] == 3 and start["value"] == start["more"]["nothing"] / start["more"]["bench"]
    assert 1e5 <= end["more"]["operations"] < 1.01e5 and 0 < end["value"] < end["more"]["seconds"]
    sanitized = os.environ.get("IOCAST_SANITIZED") == "1"  # which takes memory itself
    assert 1e6 <= memory["more"]["operations"] < 1.01e6 and (memory["met"] or sanitized)
    assert 1e5 <= trace["more"]["operations"] < 1.01e5 and 0 < trace["value"] < 8
    assert list(tmp_path.iterdir()) == []

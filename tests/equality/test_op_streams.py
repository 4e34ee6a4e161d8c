# SPDX-License-Identifier: Apache-2.0
"""One workload, two executors: iocast-bench on the dummy backend and iocast-sim carry out byte-identical operation
streams.

Every pattern alone and on six ranks; tests/mpi/test_real_effect.py compares every workload on three ranks, on a file
system."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench_runs import settings_arguments
from programs import find_program
from registry import described, listed
from schedule import mostly_long

from iocast.runs.question import Question

SIMULATOR = find_program("iocast-sim")
assert SIMULATOR is not None, "iocast-sim is not built; run ./check"


NAMES = [entry["name"] for entry in listed("iocast-sim", "patterns")]


def moved(run: bytes) -> Any:
    """Operations and bytes of each kind, phase by phase."""
    return [
        (p["name"], p["repeat"], {op: (row["count"], row.get("bytes", 0)) for op, row in p["by_operation"].items()})
        for p in json.loads(run)["phases"]
    ]


def question(run: bytes) -> Question:
    content = json.loads(run)
    return Question.of(content["workload"], content["placement"], content["phases"][0]["name"])


@pytest.mark.parametrize("ranks", mostly_long([1, 6, 16], [1, 6], "more ranks of the same patterns"))
@pytest.mark.parametrize("name", NAMES)
def test_streams_are_identical(
    name: str,
    ranks: int,
    bench: Path,
    mpirun: Callable[[int], list[str]],
    mpi_environment: dict[str, str],
    launch_check: None,
    tmp_path: Path,
) -> None:
    small = described("iocast-sim", name)["small"]
    assert small, f"{name} names no small settings"
    for number, settings in enumerate(small[:1]):
        real, simulated = tmp_path / f"real-{number}", tmp_path / f"simulated-{number}"
        chosen = settings_arguments(settings)
        common = ["--workload", name, *chosen, "--seed", "3", "--no-time-limits"]
        done = subprocess.run(
            [*mpirun(ranks), str(bench), "--backend", "dummy", *common, "--json", "--dump-ops", str(real)],
            check=True, capture_output=True, env={**os.environ, **mpi_environment}, timeout=120,
        )  # fmt: skip
        reported = subprocess.run(
            [
                SIMULATOR,
                "--platform",
                "local",
                *common,
                "--json",
                "--nodes",
                "1",
                "--ppn",
                str(ranks),
                "--dump-ops",
                str(simulated),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )
        assert moved(done.stdout) == moved(reported.stdout)
        assert question(done.stdout) == question(reported.stdout), "a forecast and its measurement are matched by it"
        streams = sorted(path.name for path in real.iterdir())
        assert streams == sorted(f"ops.{rank}" for rank in range(ranks))
        for stream in streams:
            content = (real / stream).read_bytes()
            assert content and content == (simulated / stream).read_bytes(), (settings, stream)

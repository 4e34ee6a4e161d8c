# SPDX-License-Identifier: Apache-2.0
"""Simulated measurements with a known truth, and the command line as a user calls it."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import Iocast
from programs import REPOSITORY, find_program
from shared import shared


@pytest.fixture(scope="session")
def simulator() -> Path:
    program = find_program("iocast-sim")
    assert program is not None, "iocast-sim is not built; run ./check"
    return program


@pytest.fixture(scope="session")
def iocast(simulator: Path) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Calls `iocast` with these arguments; standard output and error are kept."""
    with Iocast() as start:

        def call(*arguments: str | Path, timeout: float = 600) -> subprocess.CompletedProcess[str]:
            environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "IOCAST_BUILD": str(simulator.parents[1])}
            return start(list(map(str, arguments)), environment, timeout)

        yield call


@pytest.fixture(scope="session")
def simulate(simulator: Path) -> Callable[..., dict[str, Any]]:
    """A simulated run with --json: platform, further arguments."""

    def run(platform: str | Path, *arguments: str | Path) -> dict[str, Any]:
        command = [str(simulator), "--platform", str(platform), "--json", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


TRUTH = """schema_version: 1
extends: local
stations: {cpu: {quantum: 5ms, contention: 0.1}}
"""


@pytest.fixture(scope="session")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A platform file."""
    return (
        shared(tmp_path_factory, "truth", lambda directory: (directory / "truth.yaml").write_text(TRUTH)) / "truth.yaml"
    )


@pytest.fixture(scope="session")
def run_of_truth(simulate: Callable[..., dict[str, Any]], truth: Path) -> Callable[..., dict[str, Any]]:
    """Simulate a run with a number of ranks, a seed and further arguments."""

    def run(ranks: int, seed: int, *arguments: str | Path) -> dict[str, Any]:
        return simulate(
            truth,
            "--ppn",
            str(ranks),
            "--seed",
            str(seed),
            "--set",
            "datasets=2",
            "--set",
            "objects=1500",
            "--set",
            "iterations=1500",
            *arguments,
        )

    return run


@pytest.fixture(scope="session")
def measured(run_of_truth: Callable[..., dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of runs of the truth: n<N>-r<repeat> for N = 1, 2, 4, 8 and 32."""

    def make(directory: Path) -> None:
        for ranks in (1, 2, 4, 8, 32):
            for repeat in (1, 2):
                run_of_truth(ranks, 100 * ranks + repeat, "--out", directory / f"n{ranks}-r{repeat}")

    return shared(tmp_path_factory, "measured", make)


@pytest.fixture(scope="session")
def fitted(
    measured: Path, iocast: Callable[..., subprocess.CompletedProcess[str]], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """local, calibrated to the runs of at most 8 ranks."""

    def make(directory: Path) -> None:
        runs = [measured / f"n{ranks}-r{repeat}" for ranks in (1, 2, 4, 8) for repeat in (1, 2)]
        done = iocast("calibrate", *runs, "--platform", "local", "--out", directory / "fitted.yaml", "--seed", "1")
        assert done.returncode == 0, done.stderr

    return shared(tmp_path_factory, "fitted", make) / "fitted.yaml"

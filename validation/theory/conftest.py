# SPDX-License-Identifier: Apache-2.0
"""Where the simulator is, and intervals for what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


def simulator() -> Path:
    """iocast-sim of $IOCAST_BUILD, else of build/."""
    return Path(os.environ.get("IOCAST_BUILD", ROOT / "build")) / "bin" / "iocast-sim"


@pytest.fixture(scope="session")
def iocast_sim() -> Path:
    return simulator()


@pytest.fixture(scope="session")
def simulate(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[dict[str, Any]]]:
    """Runs a platform (as YAML text) once for each seed and gives the benchmark phases: stat, read, stat, read, ..."""
    binary = simulator()
    assert binary.exists(), (
        f"The simulator is not built: there is no {binary}. Run ./check, or set IOCAST_BUILD to a build directory."
    )
    directory = tmp_path_factory.mktemp("platforms")

    def run(
        platform: str, ranks: int, iterations: int, seeds: Sequence[int] = (1,), until: str = "", **settings: object
    ) -> list[dict[str, Any]]:
        file = directory / f"p{abs(hash(platform))}.yaml"
        file.write_text(platform)
        values: dict[str, object] = {
            "datasets": 1,
            "objects": iterations,
            "iterations": iterations,
            "phases": "precreate,benchmark",
            "read_only": "true",
        } | settings
        sets = [word for key, value in values.items() for word in ("--set", f"{key}={value}")]

        def once(seed: int) -> dict[str, Any]:
            command = [
                str(binary),
                "--platform",
                str(file),
                *sets,
                "--nodes",
                "1",
                "--ppn",
                str(ranks),
                "--seed",
                str(seed),
                "--json",
                *(["--until", until] if until else []),
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            return next(p for p in json.loads(done.stdout)["phases"] if p["name"] == "benchmark")

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(once, seeds))

    return run

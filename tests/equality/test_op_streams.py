# SPDX-License-Identifier: Apache-2.0
"""One workload, two executors: iocast-bench on the dummy backend and iocast-sim carry out byte-identical operation streams."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from programs import find_program

SIMULATOR = find_program("iocast-sim")
assert SIMULATOR is not None, "iocast-sim is not built; run ./check"
PATTERNS = [p["name"] for p in json.loads(subprocess.run([SIMULATOR, "--list", "patterns", "--json"], capture_output=True, check=True).stdout)["patterns"]]
SMALL = {
    "md-workbench": [
        ("datasets=3", "objects=7", "iterations=5", "repeats=2", "offset=1"),
        ("datasets=2", "objects=4", "iterations=4", "start_index=9", "waiting_factor=0.5", "node_offset=1"),
        ("datasets=1", "objects=6", "iterations=3", "read_only=true"),
    ],
}


@pytest.mark.parametrize("ranks", [1, 2, 5, 16])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_streams_are_identical(
    pattern: str, ranks: int, bench: Path, mpirun: Callable[[int], list[str]], mpi_environment: dict[str, str], launch_check: None, tmp_path: Path
) -> None:
    assert pattern in SMALL, f"the pattern {pattern} needs small settings in this test"
    for number, settings in enumerate(SMALL[pattern]):
        real, simulated = tmp_path / f"real-{number}", tmp_path / f"simulated-{number}"
        chosen = [argument for setting in settings for argument in ("--set", setting)]
        common = ["--workload", pattern, *chosen, "--seed", "3"]
        subprocess.run(
            [*mpirun(ranks), str(bench), "--backend", "dummy", *common, "--dump-ops", str(real)],
            check=True, capture_output=True, env={**os.environ, **mpi_environment}, timeout=120,
        )  # fmt: skip
        subprocess.run(
            [SIMULATOR, "--platform", "local", *common, "--nodes", "1", "--ppn", str(ranks), "--dump-ops", str(simulated)],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        streams = sorted(path.name for path in real.iterdir())
        assert streams == sorted(f"ops.{rank}" for rank in range(ranks))
        for name in streams:
            content = (real / name).read_bytes()
            assert content and content == (simulated / name).read_bytes(), (settings, name)

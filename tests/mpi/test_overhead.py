# SPDX-License-Identifier: Apache-2.0
"""validation/speed/bench_overhead.py measures; here is only that it sets equal work side by side."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "validation" / "speed" / "bench_overhead.py"


@pytest.mark.parametrize(("workload", "parameter"), [("mdtest-hard", "items"), ("hpcs-04", "files")])
@pytest.mark.long("another benchmark beside this one")
def test_fs_mark_creates_as_many_files(
    bench: Path, mpi_environment: dict[str, str], tmp_path: Path, workload: str, parameter: str
) -> None:
    files = 2000
    environment = {**mpi_environment, "IOCAST_BUILD": os.environ.get("IOCAST_BUILD", str(bench.parents[1]))}
    command = [
        sys.executable,
        str(SCRIPT),
        workload,
        "--set",
        f"{parameter}={files}",
        "--pairs",
        "1",
        "--root",
        str(tmp_path),
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["workloads"][workload]
    for program in ("bench", "fs_mark"):
        creation = result[f"creation_by_{program}"]
        assert creation["files"] == files and 0 < creation["calls"] < creation["seconds"], program
    assert list(tmp_path.iterdir()) == []

# SPDX-License-Identifier: Apache-2.0
"""The how-to for a cluster, run on a real Slurm of one node and on a Dask cluster beside it."""

import json
import socket
import tempfile
from pathlib import Path

import pytest
import yaml
from pages import Page
from slurm_cluster import PARTITION, Cluster

SMALL = """schema_version: 1
description: three numbers of ranks and one to check
workload: md-workbench
settings: {datasets: 1, objects: 100, iterations: 100}
repeats: 1
benchmark_repeats: 1
points:
  - {nodes: 1, ranks_per_node: [1, 2, 3]}
  - {nodes: 1, ranks_per_node: 4, role: check}
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.needs("slurm")
@pytest.mark.long("a minute; jobs and studies each have their tests")
def test_from_a_measurement_to_a_decision_under_slurm(page: Page) -> None:
    lines: list[str] = []

    def before(line: str) -> None:
        """The page's own commands, on files of a size for tests."""
        lines.append(line)
        if "sbatch" in line:
            assert len(yaml.safe_load((page.place / "cluster.yaml").read_text())["points"]) == 3
            (page.place / "cluster.yaml").write_text(SMALL)
        if "iocast study" in line and "--slurm" in line:
            shrink(page.place / "study.yaml")

    port = free_port()
    with Cluster() as cluster, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        change = {
            "--nodes 4": "--nodes 1", "/lustre/me": memory, "--platform lustre": "--platform local",
            "--partition=short": f"--partition={PARTITION}", "--workers 32": "--workers 2",
            "--nworkers 8": "--nworkers 2", "login1": "127.0.0.1", "8786": str(port),
        }  # fmt: skip
        page.run("study-cluster.md", change, before, **cluster.changed)
        cluster.wait_for_jobs()
    assert [
        sum(word in line for line in lines)
        for word in (
            "sbatch",
            "calibrate",
            "validate",
            "--slurm ",
            "dask scheduler",
            "dask worker",
            "--scheduler tls",
            "report",
        )
    ] == [1] * 8
    assert "not fitted to" in "".join(page.printed), "the check is of a scale that calibration has not seen"
    assert list((page.place / "study" / "workers").iterdir()), "no job computed"
    by_jobs, by_dask = (json.loads((page.place / out / "study.json").read_text()) for out in ("study", "study-by-dask"))
    assert by_jobs["platform"]["calibrated"] and by_jobs["search"]["simulated"] >= 2
    for answer in (by_jobs, by_dask):
        del answer["command"]
    assert json.dumps(by_jobs) == json.dumps(by_dask), "the answer depends on who computes"
    report = (page.place / "study.html").read_text()
    assert "Measured and forecast" in report or "How wrong it was" in report


def shrink(file: Path) -> None:
    """Few clients, few operations; the machine's cores are the servers."""
    text = (
        file.read_text().replace("stations.mds.count", "stations.cpu.servers").replace("stations.mds", "stations.cpu")
    )
    study = yaml.safe_load(text)
    del study["axes"]["clock"], study["uncertainty"]
    study["scales"] = {"now": {"nodes": 1, "ranks_per_node": 4}, "then": {"nodes": 1, "ranks_per_node": 16}}
    study |= {"search": {"simulate": 2, "replications": 4}, "most_operations": 2000}
    file.write_text(yaml.safe_dump(study, sort_keys=False))

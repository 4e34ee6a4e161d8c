# SPDX-License-Identifier: Apache-2.0
"""Directories have no content: making and removing one visits no server that only contents are on."""

import json
import subprocess
from pathlib import Path

import pytest
from programs import REPOSITORY

PLATFORMS = sorted(file.stem for file in (REPOSITORY / "platforms").glob("*.yaml"))


@pytest.mark.parametrize("platform", PLATFORMS)
def test_directories_visit_no_station_of_contents(simulator: Path, platform: str) -> None:
    settings = ["--set", "datasets=1", "--set", "objects=2", "--set", "iterations=1"]
    command = [str(simulator), "--platform", platform, "--workload", "md-workbench", *settings, "--json", "--brief"]
    run = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    visited: dict[str, set[str]] = {"mkdir": set(), "rmdir": set(), "read": set(), "stat": set(), "unlink": set()}
    for phase in run["phases"]:
        for station, found in phase.get("stations", {}).items():
            for operation in visited.keys() & found.get("operations", {}).keys():
                visited[operation].add(station)
    described = subprocess.run(
        [str(simulator), "--platform", platform, "--print-platform"], capture_output=True, check=True, text=True
    )
    of_clients = {name for name, one in json.loads(described.stdout)["stations"].items() if one["per"] == "node"}
    assert not (visited["mkdir"] | visited["rmdir"]) & (visited["read"] - visited["stat"] - of_clients)

# SPDX-License-Identifier: Apache-2.0
"""Directories have no content: making and removing one visits no server that only contents are on."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from programs import REPOSITORY

PLATFORMS = sorted(file.stem for file in (REPOSITORY / "platforms").glob("*.yaml"))


def stations_of(steps: Any) -> set[str]:
    """All that are visited in steps, however they are nested."""
    if isinstance(steps, list):
        return set().union(*map(stations_of, steps))
    if not isinstance(steps, dict):
        return set()
    return ({steps["station"]} if "station" in steps else set()).union(*map(stations_of, steps.values()))


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
    resolved = json.loads(described.stdout)
    of_clients = {name for name, one in resolved["stations"].items() if one["per"] == "node"}
    of_names = visited["stat"] | stations_of([one for one in resolved["operations"]["read"] if one["part"] == "open"])
    assert not (visited["mkdir"] | visited["rmdir"]) & (visited["read"] - of_names - of_clients)

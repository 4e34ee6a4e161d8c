# SPDX-License-Identifier: Apache-2.0
"""What every member of a registry must do; new members are covered at once. The rules for operation streams are in
pattern_contract_test.cpp."""

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from programs import find_program
from registry import listed
from schedule import SOME_PLATFORMS, mostly_long

SIMULATOR = find_program("iocast-sim")
assert SIMULATOR is not None, "iocast-sim is not built; run ./check"
WORKLOADS = [entry["name"] for kind in ("workloads", "patterns") for entry in listed("iocast-sim", kind)]
PLATFORMS = [entry["name"] for entry in listed("iocast-sim", "platforms")]
MOSTLY_LONG = mostly_long(PLATFORMS, SOME_PLATFORMS, "other platforms; each serves every operation always")


def ask(*arguments: str | Path) -> Any:
    done = subprocess.run([str(SIMULATOR), *map(str, arguments), "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


SMALL = ["--set", "objects=20", "--set", "iterations=20", "--set", "datasets=2"]


@pytest.mark.parametrize("what", ["workloads", "patterns", "platforms", "primitives"])
def test_every_member_has_a_summary_and_a_description(what: str) -> None:
    for entry in ask("--list", what)[what]:
        assert entry["summary"], entry
        assert ask("--describe", entry["name"])["name"] == entry["name"]
        command = [str(SIMULATOR), "--describe", entry["name"]]
        for_people = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert f"name: {entry['name']}\n" in for_people and "example:" not in for_people


@pytest.mark.parametrize("name", WORKLOADS)
def test_workloads_describe_their_parameters(name: str) -> None:
    described = ask("--describe", name)
    assert described["source"]
    for parameter in described["parameters"]:
        assert parameter["meaning"] and parameter["unit"], parameter


@pytest.mark.parametrize("name", WORKLOADS)
def test_workloads_name_small_settings(name: str) -> None:
    """What a workload asks for is checked on these: by pattern_contract_test.cpp, and wherever executors are
    compared."""
    assert ask("--describe", name)["small"]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_platforms_serve_every_operation(platform: str) -> None:
    run = ask("--platform", platform, *SMALL, "--nodes", 2, "--ppn", 3)
    assert {phase["name"] for phase in run["phases"]} == {"precreate", "benchmark", "cleanup"}
    for phase in [
        *run["phases"],
        *ask("--platform", platform, "--workload", "probe", "--set", "sharing=2", "--nodes", 2, "--ppn", 3)["phases"],
    ]:
        assert phase["rate"] > 0 and phase["errors"] == 0
        for station in phase["stations"].values():
            assert 0 <= station["utilisation"] <= 1 + 1e-9
    for phase in run["phases"]:
        # Ranks that never think, and do nothing together, are inside an operation all the time that they run.
        ends = phase["rank_seconds"]
        assert phase["responding_seconds"] == pytest.approx(sum(ends), rel=1e-6)
        assert phase["node_seconds"] == pytest.approx([sum(ends[:3]) / 3, sum(ends[3:]) / 3])


@pytest.mark.parametrize("platform", MOSTLY_LONG)
def test_same_seed_same_bytes_other_seed_other_bytes(platform: str, tmp_path: Path) -> None:
    def digest(name: str, seed: int) -> str:
        ask("--platform", platform, *SMALL, "--nodes", 2, "--ppn", 3, "--seed", seed, "--out", tmp_path / name)
        content = json.loads((tmp_path / name / "run.json").read_text())
        del content["command"], content["seed"]
        return hashlib.sha256(
            json.dumps(content).encode() + (tmp_path / name / "latency.hlog").read_bytes()
        ).hexdigest()

    assert digest("a", 1) == digest("b", 1) != digest("c", 2)


@pytest.mark.parametrize("platform", MOSTLY_LONG)
def test_waiting_factor_makes_concurrency(platform: str) -> None:
    """Q = N/(1+T) path by path, when sleeps last as long as requested and waking costs nothing; else a little less."""
    resolved = ask("--describe", platform)
    run = ask(
        "--platform",
        platform,
        *SMALL,
        "--nodes",
        2,
        "--ppn",
        4,
        "--set",
        "waiting_factor=3",
        "--set",
        "phases=benchmark",
    )
    phase = run["phases"][0]
    inside = phase["responding_seconds"] / (phase["responding_seconds"] + phase["think_actual_seconds"])
    if resolved["clients"]["think_overshoot"] == 0 and "wake" not in resolved["operations"]:
        assert inside == pytest.approx(1 / 4, rel=1e-6)
    else:
        assert inside < 1 / 4

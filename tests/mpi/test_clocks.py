# SPDX-License-Identifier: Apache-2.0
"""Nodes whose clocks differ: every node that mpirun starts is a UTS and time namespace of this machine."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest

pytestmark = [pytest.mark.usefixtures("launch_check"), pytest.mark.needs("clocks")]

AGENT = """#!/bin/sh
# mpirun's remote shell: HOST COMMAND...
host=$1; shift
case $host in b) ahead=1000 ;; c) ahead=50000 ;; *) ahead=0 ;; esac
if [ $host = c ] && [ -n "$DRIFTING" ]; then export LD_PRELOAD=$DRIFTING INJECT_CALL=drift INJECT_AFTER=0; fi
exec unshare --uts --time --monotonic $ahead --fork sh -c "hostname $host; $*"
"""
APART = ["--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "btl_tcp_if_include", "lo", "--mca", "btl", "self,tcp,vader"]
NEAR_ENOUGH = (
    0.005  # seconds; the clocks are 1000 and 50000 apart, and half a round trip on a busy machine is less than this
)


@pytest.fixture
def nodes(mpirun: Callable[[int], list[str]], tmp_path: Path) -> list[str]:
    """mpirun on three of them, two ranks each."""
    agent = tmp_path / "agent"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    starter = mpirun(6)
    # mpirun's own connections; those of Open MPI 5 refuse to be on loopback alone.
    own = ["--mca", "oob_tcp_if_include", "lo"] if "-q" in starter else []
    return [*starter, "--mca", "plm_rsh_agent", str(agent), *own, *APART, "--host", "a:2,b:2,c:2"]


def beginnings(ops: Path) -> list[list[float]]:
    """By rank, the seconds at which its phases began."""
    with h5py.File(ops) as trace:
        first_row, kind, start = trace["first_row"][:], trace["kind"][:], trace["start_ns"][:]
    return [
        [int(t) * 1e-9 for t, k in zip(start[a:b], kind[a:b], strict=True) if k == 0]
        for a, b in zip(first_row, first_row[1:], strict=False)
    ]


@pytest.mark.not_sanitized("its run-time library has to come first")
def test_traces_of_a_clock_that_drifts_begin_their_phases_together(
    bench: Path, nodes: list[str], mpi_environment: dict[str, str], injection: Path, tmp_path: Path
) -> None:
    """The third node's clock is 2 % fast: 20 ms in each second since the run began."""
    settings = ["--set", "datasets=1", "--set", "objects=20", "--set", "iterations=20", "--set", "think_time=20ms"]
    out = tmp_path / "out"
    command = [*nodes, str(bench), "--backend", "dummy", *settings, "--trace", "--out", str(out)]
    environment = mpi_environment | {"DRIFTING": str(injection)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    phases = json.loads((out / "run.json").read_text())["phases"]
    assert max(phase["clocks"]["drift"] for phase in phases) > 0.01, "no clock drifted"
    assert phases[-1]["start_seconds"] > 1
    for moments in zip(*beginnings(out / "ops.h5"), strict=True):
        assert max(moments) - min(moments) <= NEAR_ENOUGH, moments


def test_offsets_of_clocks_are_found_and_removed(
    bench: Path, nodes: list[str], mpi_environment: dict[str, str], tmp_path: Path
) -> None:
    settings = ["--set", "datasets=1", "--set", "objects=2000", "--set", "iterations=1000"]
    out = tmp_path / "out"
    command = [*nodes, str(bench), "--backend", "dummy", *settings, "--trace", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, env=mpi_environment, timeout=120)
    assert done.returncode == 0, done.stderr
    run = json.loads((out / "run.json").read_text())
    assert run["placement"]["nodes"] == 3 and run["environment"]["hosts"] == ["a", "b", "c"]
    for phase in run["phases"]:
        assert 0 < phase["clocks"]["uncertainty"] < NEAR_ENOUGH
        assert 0 <= phase["clocks"]["drift"]
        ends = phase["rank_seconds"]
        assert phase["node_seconds"] == pytest.approx([(ends[r] + ends[r + 1]) / 2 for r in (0, 2, 4)])
        assert phase["node_balance"] == pytest.approx(min(phase["node_seconds"]) / max(phase["node_seconds"]))
        assert f"balance {phase['balance']:.2f} (nodes {phase['node_balance']:.2f})" in done.stdout
    begins = beginnings(out / "ops.h5")
    assert len(begins) == 6 and all(len(one) == len(run["phases"]) for one in begins)
    for number, phase in enumerate(run["phases"]):
        moments = [one[number] for one in begins]
        assert max(moments) - min(moments) <= NEAR_ENOUGH, moments
        assert abs(moments[0] - phase["start_seconds"]) < 1e-6

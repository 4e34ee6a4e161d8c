# SPDX-License-Identifier: Apache-2.0
"""Ranks that wait: between operations (think time), for the moment of the next one (open loop), or because an operation
says so."""

import json
import subprocess
from pathlib import Path

import pytest
from bench_runs import Run, settings_arguments
from programs import find_program

pytestmark = pytest.mark.usefixtures("launch_check")

MILLISECOND = (
    """\
schema_version: 1
stations: {server: {servers: 100}}
operations:
"""
    + "".join(
        f"  {op}: [{{station: server, demand: 1ms}}]\n"
        for op in "mkdir stat unlink rmdir readdir open close fsync pwrite pread".split()
    )
    + """\
  create: {open: [], write: [{station: server, demand: 1ms}], close: []}
  append: {open: [], write: [{station: server, demand: 1ms}], close: []}
  read: {open: [], read: [{station: server, demand: 1ms}], close: []}
"""
)


@pytest.mark.parametrize("settings", ["waiting_factor=1", "think_time=3ms", "waiting_factor=2 think_time=1ms"])
def test_a_moment_is_thought_once(run: Run, settings: str) -> None:
    """What a rank waits for and what it works for add up to no more than its time; operations that are think times
    follow think times."""
    done = run(
        "--backend",
        "dummy",
        "--dummy.delay",
        "1ms",
        "--workload",
        "probe",
        *settings_arguments(f"think=5ms accesses=20 objects=5 {settings}"),
        "--json",
    )
    assert done.code == 0, done.err
    for phase in done.json["phases"]:
        spent = phase["responding_seconds"] + phase["think_asked_seconds"]
        # The phase lasts until the last answer; what is thought after it is at most one think time of each kind.
        assert spent <= phase["seconds"] + 0.020, (phase["name"], spent, phase["seconds"])
        assert phase["think_asked_seconds"] <= phase["think_actual_seconds"]


def test_both_executors_ask_for_the_same_think_time(run: Run, tmp_path: Path) -> None:
    """Where the time does not depend on how long answers take, to the digit."""
    platform = tmp_path / "millisecond.yaml"
    platform.write_text(MILLISECOND)
    workload = [
        "--workload",
        "probe",
        *settings_arguments("think=2ms accesses=20 objects=3 think_time=1ms cleanup=true"),
        "--json",
    ]
    real = run("--backend", "dummy", *workload).json["phases"]
    simulator = find_program("iocast-sim")
    assert simulator is not None
    simulated = json.loads(
        subprocess.run([simulator, "--platform", platform, *workload], check=True, capture_output=True).stdout
    )["phases"]
    for ours, theirs in zip(real, simulated, strict=True):
        # The simulator's ranks also think after a phase's last answer.
        assert (
            theirs["think_asked_seconds"] - 0.0011 < ours["think_asked_seconds"] < theirs["think_asked_seconds"] + 1e-6
        ), ours["name"]


@pytest.mark.parametrize(
    "settings",
    [
        "--workload md-workbench --set think_time=1h",
        "--workload md-workbench --set rate=0.0002/s --set arrivals=fixed",
        "--workload probe --set think=1h --set accesses=5 --set objects=1",
    ],
)
def test_who_waits_hears_that_another_gives_up(run: Run, settings: str) -> None:
    # The probe's rank 1 fails after it has opened the file into which rank 0 is about to write, after a think time.
    done = run(
        "--backend",
        "dummy",
        "--dummy.abort_rank",
        "1",
        "--dummy.abort_after",
        "5" if "probe" in settings else "0",
        *settings.split(),
        ranks=2,
    )
    assert done.code == 1
    assert len(done.messages) == 1 and "gives up" in done.messages[0], done.err

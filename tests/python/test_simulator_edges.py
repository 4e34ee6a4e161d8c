# SPDX-License-Identifier: Apache-2.0
"""Where the simulator's numbers were too short: draws of an operation, phases of a workload, the rest of a slice."""

from __future__ import annotations

import subprocess

import h5py
import numpy as np
import pytest
import sharpness

STAT, APPEND = 3, 7  # kinds of operation in a trace, docs/operations.md
# Two ranks that append and one that calls stat and sleeps for a millisecond.
MIX = """schema_version: 1
pattern: mix
parameters:
  hog: {workload: operation-mix, share: 2, files: 1, operations: 400, stat: 0, read: 0, create: 0, unlink: 0, append: 1}
  waker:
    {workload: operation-mix, share: 1, files: 1, operations: 2000, stat: 1, read: 0, create: 0, unlink: 0, append: 0,
     think_time: 1ms}
"""
QUIET = ("--workload", "md-workbench", "--set", "read_only=true", "--set", "phases=benchmark", "--set", "datasets=1")


def test_the_draws_of_an_operation_are_all_different(simulate, tmp_path):
    """Four visits of 128 exponential stripes: the variance of the sum of four maxima is 4 times that of one, which is
    the sum of 1/k^2."""
    file = tmp_path / "stripes.yaml"
    visits = ", ".join(["{station: a, demand: s, stripes: 128}"] * 4)
    file.write_text(
        "schema_version: 1\nstations: {a: {count: 128}}\ndemands: {s: {law: exponential, mean: 1ms}}\n"
        f"operations:\n  stat: [{visits}]\n  read: {{read: [{{station: a, demand: s}}]}}\n"
    )
    count = 2000
    simulate(
        file, *QUIET, "--set", f"objects={count}", "--set", f"iterations={count}", "--trace", "--out", tmp_path / "run"
    )
    with h5py.File(tmp_path / "run" / "ops.h5") as trace:
        milliseconds = trace["duration_ns"][:][trace["kind"][:] == STAT] * 1e-6
    assert len(milliseconds) == count
    exact = np.sqrt(4 * sum(1 / k**2 for k in range(1, 129)))
    # The estimate's standard error is sd * sqrt((kurtosis - 1) / 4n), with a kurtosis of about 3.6 here.
    error = np.sqrt(2.6 / (4 * count))
    sharpness.shift("relative error of the standard deviation", 4 * error, error)
    assert abs(milliseconds.std(ddof=1) - exact) < 4 * exact * error


def test_many_phases_are_refused_or_simulated(simulator):
    few = ["--workload", "md-workbench", "--set", "objects=1", "--set", "datasets=1"]

    def run(*settings: str) -> subprocess.CompletedProcess[str]:
        arguments = [part for setting in settings for part in ("--set", setting)]
        return subprocess.run(
            [str(simulator), "--platform", "local", *few, *arguments, "--json", "--brief"],
            capture_output=True,
            text=True,
            check=False,
        )

    done = run("repeats=40000", "most_seconds=1h", "iterations=1")
    assert done.returncode == 2
    assert "the most is 65535" in done.stderr
    assert run("repeats=10000", "iterations=0").returncode == 0


def test_a_preempted_job_keeps_the_rest_of_its_slice(simulate, tmp_path):
    """Two ranks that compute beside one that wakes every millisecond on one core: whoever it interrupts goes on with
    its slice, and both get as much."""
    file = tmp_path / "core.yaml"
    file.write_text(
        "schema_version: 1\nstations: {cpu: {per: node, discipline: timeslice, quantum: 3ms}}\noperations:\n  stat:"
        " [{station: cpu, demand: 50us}]\n  append: {open: [], write: [{station: cpu, demand: 5ms}], close: []}\n "
        " mkdir: [{station: cpu, demand: 1us}]\n  rmdir: [{station: cpu, demand: 1us}]\n  unlink: [{station: cpu,"
        " demand: 1us}]\n  create: {open: [], write: [{station: cpu, demand: 1us}], close: []}\n  read: {open: [],"
        " read: [{station: cpu, demand: 1us}], close: []}\n"
    )
    workload = tmp_path / "mix.yaml"
    workload.write_text(MIX)
    out = tmp_path / "run"
    simulate(file, "--workload", workload, "--ppn", "3", "--trace", "--out", out)
    with h5py.File(out / "ops.h5") as trace:
        rank, kind, start, took = (trace[name][:] for name in ("rank", "kind", "start_ns", "duration_ns"))
    appends = kind == APPEND
    begin = start[appends].min()
    done = [int((appends & (rank == r) & (start + took < begin + 1e9)).sum()) for r in sorted(set(rank[appends]))]
    assert len(done) == 2 and min(done) > 50
    assert done[0] == pytest.approx(done[1], rel=0.06)


def test_who_was_stalled_waits_for_a_stall_that_began_meanwhile(simulate, tmp_path):
    """Two stalls, each recognised by the long gaps of a run where the other one lasts a microsecond: where both are, no
    service begins in a window of either."""

    def starts(name: str, first: str, second: str) -> np.ndarray:
        file = tmp_path / f"{name}.yaml"
        file.write_text(
            f"schema_version: 1\nstations: {{s: {{}}}}\nstalls:\n  a: {{station: s, every: 100ms, length: {first},"
            f" operations: [stat]}}\n  b: {{station: s, every: 101ms, length: {second}, operations:"
            " [stat]}\noperations:\n  stat: [{station: s, demand: 1ms}]\n  read: {read: [{delay: 10us}]}\n"
        )
        simulate(file, *QUIET, "--set", "objects=800", "--set", "iterations=800", "--trace", "--out", tmp_path / name)
        with h5py.File(tmp_path / name / "ops.h5") as trace:
            stats = trace["kind"][:] == STAT
            return (trace["start_ns"][:][stats] + trace["duration_ns"][:][stats]) * 1e-9 - 1e-3

    both = starts("both", "40ms", "40ms")
    seen = 0
    for name, lengths in (("first", ("40ms", "1us")), ("second", ("1us", "40ms"))):
        alone = starts(name, *lengths)
        for begin, end in zip(alone[:-1], alone[1:], strict=True):
            if end - begin > 30e-3:
                seen += 1
                assert not ((both > begin + 2e-3) & (both < end - 1e-6)).any(), (name, begin, end)
    assert seen > 10

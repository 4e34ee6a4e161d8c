# SPDX-License-Identifier: Apache-2.0
"""Several clients a rank: the operations of the same number of ranks, at the same time, and an end for all of them."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from bench_runs import (
    MANIFEST,
    SMALL,
    Run,
    expect_refusal,
    injected,
    manifest_phase,
    ranks_in,
    settings_arguments,
    total_counts,
    wait_for,
)
from programs import find_program
from registry import listed
from schedule import mostly_long
from test_real_effect import cases

pytestmark = pytest.mark.usefixtures("launch_check")


WAIT_TOGETHER = {"checkpoint", "training"}
"""Patterns whose steps ranks wait for; threads of a rank are refused there."""


def of_patterns() -> list[object]:
    """The first settings of every pattern that threads can do."""
    names = {entry["name"] for entry in listed("iocast-bench", "patterns")} - WAIT_TOGETHER
    return [case for case in cases() if case.values[0] in names and str(case.id).endswith("-0")]


@pytest.mark.parametrize(("workload", "settings"), of_patterns())
def test_clients_do_what_so_many_ranks_do(run: Run, root: Path, tmp_path: Path, workload: str, settings: str) -> None:
    """Byte by byte, for the simulator's ranks are the real ones (test_real_effect.py); and all of it succeeds."""
    chosen = ["--workload", workload, *settings_arguments(settings), "--no-time-limits"]
    done = run(
        *chosen,
        "--posix.root",
        str(root),
        "--dump-ops",
        str(tmp_path / "real"),
        "--threads-per-rank",
        "3",
        "--json",
        ranks=2,
    )
    assert done.code == 0, done.err
    simulate = [
        str(find_program("iocast-sim")),
        "--platform",
        "local",
        *chosen,
        "--ppn",
        "6",
        "--dump-ops",
        str(tmp_path / "simulated"),
    ]
    subprocess.run(simulate, capture_output=True, check=True, timeout=120)
    for rank in range(6):
        assert (tmp_path / "real" / f"ops.{rank}").read_bytes() == (tmp_path / "simulated" / f"ops.{rank}").read_bytes()
    assert done.json["placement"] == {"ranks": 6, "nodes": 1, "ranks_per_node": 6, "threads_per_rank": 3}
    assert list(root.iterdir()) == []


def test_everything_that_clients_measured_is_there(run: Run, root: Path) -> None:
    """The same counts as with ranks, every client's time, contents verified."""
    base = [*SMALL, "--posix.root", str(root), "--verify", "--json"]
    threads, ranks = run(*base, "--threads-per-rank", "4", ranks=2), run(*base, ranks=8)
    assert threads.code == ranks.code == 0, threads.err + ranks.err
    assert total_counts(threads.json) == total_counts(ranks.json)
    for phase in threads.json["phases"]:
        assert len(phase["rank_seconds"]) == 8 and min(phase["rank_seconds"]) > 0
        assert phase["seconds"] == max(phase["rank_seconds"])
        assert {slow["rank"] for slow in phase["slowest"]} <= set(range(8))
        for name, row in phase["latency"].items():
            assert 0 < row["min"] <= row["q50"] <= row["max"] <= phase["seconds"], name


def test_clients_wait_at_the_same_time(run: Run) -> None:
    """Each operation takes 2 ms whoever else asks: sixteen clients take as long as one, within what a busy machine
    adds."""
    base = [
        "--backend",
        "dummy",
        "--dummy.delay",
        "2ms",
        "--set",
        "datasets=1",
        "--set",
        "objects=100",
        "--set",
        "iterations=50",
        "--set",
        "phases=benchmark",
        "--json",
    ]
    one, many = (run(*base, "--threads-per-rank", str(threads), ranks=1).json["phases"][0] for threads in (1, 16))
    assert many["operations"] == 16 * one["operations"]
    assert many["seconds"] < 4 * one["seconds"]


def test_a_time_limit_ends_all_clients_and_the_wear_out_is_right(run: Run, root: Path) -> None:
    """mdtest's stonewall: all clients do as many as the furthest did, whichever thread that was."""
    settings = settings_arguments("items=1000000 files_only=true most_seconds=50ms")
    done = run(
        "--workload", "mdtest", *settings, "--posix.root", str(root), "--threads-per-rank", "3", "--json", ranks=2
    )
    assert done.code == 0, done.err
    assert list(root.iterdir()) == []


def test_an_error_names_the_client(run: Run) -> None:
    done = run(
        *SMALL,
        "--backend",
        "dummy",
        "--dummy.fail",
        "create:7",
        "--dummy.fail_rank",
        "4",
        "--threads-per-rank",
        "3",
        "--json",
        ranks=2,
    )
    assert done.code == 1
    first = [row for phase in done.json["phases"] for row in phase.get("first_errors", [])]
    assert first and {row["rank"] for row in first} == {4}
    assert any("the first was on rank 4" in line for line in done.messages)


@pytest.mark.parametrize("who", ["0", "4"])
def test_a_failing_client_ends_all(run: Run, tmp_path: Path, who: str) -> None:
    """Whether it works in its rank's own thread or not."""
    done = run(
        *["--backend", "dummy", "--dummy.abort_rank", who, "--dummy.abort_after", "30", "--dummy.delay", "1ms"],
        *[
            "--set",
            "datasets=2",
            "--set",
            "objects=10000",
            "--set",
            "iterations=10",
            "--out",
            str(tmp_path / "out"),
            "--threads-per-rank",
            "3",
        ],
        ranks=2,
        timeout=120,
    )
    assert done.code == 1 and len(done.messages) == 1, done.err
    assert re.match(rf"rank {int(who) // 3} on host .*client {who}.*gives up.*\.$", done.messages[0]), done.messages
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] == "interrupted"


def test_sigterm(start: Callable[..., subprocess.Popen[str]], run: Run, root: Path, tmp_path: Path) -> None:
    base = ["--set", "datasets=2", "--set", "objects=200", "--posix.root", str(root), "--threads-per-rank", "4"]
    process = start(
        *base,
        "--set",
        "iterations=200",
        "--set",
        "repeats=60000",
        "--set",
        "waiting_factor=5",
        "--out",
        str(tmp_path / "out"),
        ranks=2,
    )
    wait_for(lambda: manifest_phase(root) == "benchmark")
    os.kill(min(ranks_in(root)), signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode != 0
    wait_for(lambda: not ranks_in(root))
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] == "interrupted"
    assert json.loads((root / MANIFEST).read_text())["state"] == "in progress"
    assert run(*base, "--set", "phases=cleanup", ranks=2).code == 0
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    "options, words",
    [
        (["--threads-per-rank", "0"], ["between 1 and", "0"]),
        (["--threads-per-rank", "two"], ["--threads-per-rank", "'two'"]),
    ],
    ids=["none", "no number"],
)
def test_refusals(run: Run, root: Path, tmp_path: Path, options: list[str], words: list[str]) -> None:
    expect_refusal(run(*SMALL, "--posix.root", str(root), "--out", str(tmp_path / "out"), *options, ranks=2), *words)
    assert list(root.iterdir()) == [] and not (tmp_path / "out").exists()


WITHOUT_COLLECTIVE_ACCESSES = [
    ("md-workbench", "datasets=2 objects=20 iterations=20"),
    ("mdtest-hard", "items=50"),
    ("ior-hard", "segments=20"),  # one file of all clients
    ("ior-easy", "transfer_size=64KiB per_process=256KiB"),
]


@pytest.mark.parametrize(
    ("workload", "settings"),
    mostly_long(WITHOUT_COLLECTIVE_ACCESSES, WITHOUT_COLLECTIVE_ACCESSES[::2], "as of the others"),
)
def test_clients_of_mpi_io_are_threads_too(run: Run, root: Path, workload: str, settings: str) -> None:
    """Each client opens its own files, at the same time as the others of its rank. Together they do the operations of
    the same number of ranks, contents verified."""
    chosen = ["--workload", workload, *settings_arguments(settings), "--no-time-limits"]
    base = [*chosen, "--backend", "mpiio", "--mpiio.root", str(root), "--verify", "--json"]
    threads, ranks = run(*base, "--threads-per-rank", "3", ranks=2), run(*base, ranks=6)
    assert threads.code == ranks.code == 0, threads.err + ranks.err
    assert total_counts(threads.json) == total_counts(ranks.json)
    assert list(root.iterdir()) == []


def test_collective_accesses_are_those_of_ranks(run: Run, root: Path) -> None:
    """MPI has no communicators of threads."""
    base = ["--workload", "probe", "--backend", "mpiio", "--mpiio.root", str(root), "--threads-per-rank", "2"]
    expect_refusal(run(*base, ranks=2), "'mpiio'", "collective", "--threads-per-rank")
    assert list(root.iterdir()) == []


def test_an_mpi_that_only_one_thread_may_call(run: Run, root: Path, injection: Path) -> None:
    settings = [*SMALL, "--threads-per-rank", "2"]
    done = run(
        *settings, "--backend", "mpiio", "--mpiio.root", str(root), ranks=2, environment=injected(injection, "threads")
    )
    expect_refusal(done, "'mpiio'", "MPI_THREAD_MULTIPLE", "--threads-per-rank")
    assert run(*settings, "--posix.root", str(root), ranks=2, environment=injected(injection, "threads")).code == 0
    assert list(root.iterdir()) == []

# SPDX-License-Identifier: Apache-2.0
"""--dry-run: the same answer with and without MPI, for ranks that nobody has started."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from bench_runs import SMALL, Done, Run, expect_refusal

WITHOUT_MPI = {"OMPI_MCA_btl": "none-such", "OMPI_MCA_pml": "none-such"}
"""MPI_Init fails with these."""


@pytest.mark.parametrize(
    "arguments",
    [
        SMALL,
        [*SMALL, "--threads-per-rank", "3", "--no-time-limits"],
        ["--backend", "mpiio", "--verify", "--workload", "tile-io"],
        ["--backend", "dummy", "--workload", "mdtest"],
    ],
    ids=["md-workbench", "threads", "mpiio", "dummy"],
)
def test_ranks_that_are_started_and_ranks_that_are_named(
    bench: Path, mpirun: Callable[[int], list[str]], mpi_environment: dict[str, str], arguments: list[str]
) -> None:
    """Four on one node; and warnings go to standard error alike."""
    ask = [str(bench), *arguments, "--dry-run", "--json"]
    started = subprocess.run([*mpirun(4), *ask], capture_output=True, text=True, env=mpi_environment, timeout=120)
    named = subprocess.run(
        [*ask, "--ranks", "4"], capture_output=True, text=True, env=mpi_environment | WITHOUT_MPI, timeout=120
    )
    assert named.returncode == 0 and named.stdout == started.stdout, named.stderr
    entries = [
        [line for line in done.stderr.splitlines() if line.startswith("iocast-bench:")] for done in (started, named)
    ]
    assert entries[0] == entries[1]


def test_nodes_that_are_named(run: Run) -> None:
    """Ranks on more nodes than there are; what a pattern says of nodes follows the placement."""
    one, several = (
        json.loads(run(*SMALL, "--dry-run", "--json", *more, ranks=12).out) for more in ([], ["--ranks-per-node", "5"])
    )
    assert one["placement"] == {"ranks": 12, "nodes": 1, "ranks_per_node": 12, "threads_per_rank": 1}
    assert several["placement"] == {"ranks": 12, "nodes": 3, "ranks_per_node": 5, "threads_per_rank": 1}
    assert one["footprint"] == several["footprint"]


def test_one_rank_is_the_default(bench: Path, mpi_environment: dict[str, str]) -> None:
    done = subprocess.run(
        [str(bench), *SMALL, "--dry-run", "--json"],
        capture_output=True,
        text=True,
        env=mpi_environment | WITHOUT_MPI,
        timeout=120,
    )
    assert json.loads(done.stdout)["placement"]["ranks"] == 1


def test_named_ranks_under_a_launcher_are_answered_once(
    bench: Path, mpirun: Callable[[int], list[str]], mpi_environment: dict[str, str]
) -> None:
    done = subprocess.run(
        [*mpirun(2), str(bench), *SMALL, "--dry-run", "--json", "--ranks", "7"],
        capture_output=True,
        text=True,
        env=mpi_environment,
        timeout=120,
    )
    assert json.loads(done.stdout)["placement"]["ranks"] == 7


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--ranks", "4"], ["--ranks", "--dry-run", "mpirun"]),
        (["--dry-run", "--ranks", "0"], ["--ranks", "between 1 and", "not 0"]),
        (["--dry-run", "--ranks", "2000000000"], ["--ranks", "between 1 and", "not 2000000000"]),
        (["--dry-run", "--ranks-per-node", "4"], ["--ranks-per-node", "--ranks is missing"]),
        (["--dry-run", "--ranks", "3", "--ranks-per-node", "4"], ["--ranks-per-node is 4", "--ranks is 3"]),
        (["--dry-run", "--backend", "dummy", "--verify"], ["keeps no data"]),
    ],
    ids=["without --dry-run", "none", "too many", "nodes alone", "fewer than on a node", "a backend that can't"],
)
def test_refusals(bench: Path, mpi_environment: dict[str, str], arguments: list[str], words: list[str]) -> None:
    done = subprocess.run(
        [str(bench), *SMALL, *arguments], capture_output=True, text=True, env=mpi_environment | WITHOUT_MPI, timeout=120
    )
    expect_refusal(Done(done.returncode, done.stdout, done.stderr), *words)

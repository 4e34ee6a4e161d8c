# SPDX-License-Identifier: Apache-2.0
"""Runs of iocast-bench under MPI."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench_runs import Done, Run


@pytest.fixture
def run(bench: Path, mpirun: Callable[[int], list[str]], mpi_environment: dict[str, str]) -> Run:
    def run_it(
        *arguments: str, ranks: int = 1, timeout: float = 120, environment: dict[str, str] | None = None
    ) -> Done:
        if "--dry-run" in arguments:  # needs no launcher (test_dry_run.py)
            command = [str(bench), *arguments, "--ranks", str(ranks)]
        else:
            command = [*mpirun(ranks), str(bench), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, env=mpi_environment | (environment or {}), timeout=timeout
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run_it


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "root"
    directory.mkdir()
    return directory


@pytest.fixture
def start(
    bench: Path, mpirun: Callable[[int], list[str]], mpi_environment: dict[str, str]
) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a run in a session of its own; whatever is left of it ends with the test. Ranks that mpirun has to end
    have `patience` seconds for it."""
    processes: list[subprocess.Popen[str]] = []

    def start_it(*arguments: str, ranks: int, patience: int = 2) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*mpirun(ranks), str(bench), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # mpirun passes SIGTERM on and sends SIGKILL a second later, which is short on a busy machine.
            env=mpi_environment | {"OMPI_MCA_odls_base_sigkill_timeout": str(patience)},
            start_new_session=True,
        )
        processes.append(process)
        return process

    yield start_it
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.fixture(scope="session")
def injection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("inject") / "inject.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, Path(__file__).with_name("inject.c")], check=True)
    return library

# SPDX-License-Identifier: Apache-2.0
"""Where the programs are and how MPI is started, for all tests."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from machine import NEEDS, Machine
from pages import Page
from processor_time import ProcessorTime
from programs import find_program
from schedule import Schedule

os.environ.setdefault("OMPI_MCA_pml", "ob1")  # spares every start of Open MPI 0.2 s of looking for fabrics
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # What a shell starts in the background ignores interrupts, and so do the programs that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without",
        default="",
        metavar="NAME,...",
        help=f"leave out the tests that need this of the machine: {', '.join(NEEDS)}",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "needs(what): what of the machine the test needs, by its name in tests/machine.py"
    )
    config.addinivalue_line("markers", "long(why): runs with ./check --all only; why ./check can do without it")
    config.pluginmanager.register(Schedule(config), "iocast-schedule")
    config.pluginmanager.register(Machine(config), "iocast-machine")
    config.pluginmanager.register(ProcessorTime(), "iocast-processor-time")
    config.addinivalue_line(
        "markers", "not_sanitized(reason): the test can't hold in programs that are built with sanitizers"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Programs that are built with sanitizers (validation/sanitizers/run) use more memory and time."""
    if os.environ.get("IOCAST_SANITIZED") != "1":
        return
    for item in items:
        if marker := item.get_closest_marker("not_sanitized"):
            item.add_marker(pytest.mark.skip(*marker.args, **marker.kwargs))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the standard error of a failed command to the report of its test."""
    report = yield
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, (subprocess.CalledProcessError, subprocess.TimeoutExpired)) and error.stderr:
        text = error.stderr if isinstance(error.stderr, str) else error.stderr.decode(errors="replace")
        report.sections.append(("standard error of the command", text[-4000:]))
    return report


@pytest.fixture(scope="session")
def bench() -> Path:
    program = find_program("iocast-bench")
    # Nothing may pass because nothing is there.
    assert program is not None, "iocast-bench is not built; run ./check, or set IOCAST_BUILD to a build directory"
    return program


@pytest.fixture(scope="session")
def mpi_environment() -> dict[str, str]:
    # Ranks end after each other's last word (MPI_Finalize), so that mpirun need not give the others a second when one
    # ends with an error.
    environment = {"OMPI_MCA_odls_base_sigkill_timeout": "0", **os.environ}
    if os.geteuid() == 0:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return environment


@pytest.fixture(scope="session")
def mpirun(mpi_environment: dict[str, str]) -> Callable[[int], list[str]]:
    """Start of a command line that launches a number of ranks. Tests have more ranks than cores, so waiting ranks
    yield."""
    assert shutil.which("mpirun") is not None, "there is no mpirun; run ./check"
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, env=mpi_environment)
    flags: list[str] = []
    if "Open MPI" in version.stdout:
        flags = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
        if int(version.stdout.partition("Open MPI) ")[2].partition(".")[0] or 0) < 5:
            flags.insert(
                0, "-q"
            )  # without mpirun's own words about ranks that ended with an error; later versions have no such option
    return lambda ranks: ["mpirun", *flags, "-n", str(ranks)]


@pytest.fixture(scope="session")
def launch_check(bench: Path, mpirun: Callable[[int], list[str]], mpi_environment: dict[str, str]) -> None:
    """A broken launcher starts n programs of one rank each, all of which succeed: see that it doesn't."""
    command = [*mpirun(2), str(bench), "--backend", "dummy", "--dry-run", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=mpi_environment, timeout=120)
    assert '"ranks": 2' in done.stdout, f"mpirun -n 2 does not start 2 ranks:\n{done.stdout}\n{done.stderr}"


@pytest.fixture
def page(tmp_path: Path, mpi_environment: dict[str, str]) -> Page:
    """Runs pages of the manual."""
    return Page(tmp_path / "here", mpi_environment)

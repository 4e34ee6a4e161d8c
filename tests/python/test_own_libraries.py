# SPDX-License-Identifier: Apache-2.0
"""What needs others' libraries is loaded when somebody asks for it: programs start without, and say what is missing."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from programs import find_program

HEAVY = ("simgrid", "hdf5", "curl", "libpq", "mongoc", "cephfs", "libnfs")
SMALL = "--workload md-workbench --set objects=5 --set iterations=5".split()


def run(program: Path, *arguments: str | Path) -> CompletedProcess[str]:
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=100, check=False)


@pytest.fixture
def alone(tmp_path: Path) -> Callable[[str], Path]:
    """A program in a directory of its own, bin/NAME; without its libraries, which would be in lib/iocast."""

    def copy(name: str) -> Path:
        program = find_program(name)
        assert program is not None, f"{name} is not built; run ./check"
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "lib" / "iocast").mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(program, tmp_path / "bin" / name))

    return copy


@pytest.mark.parametrize("name", ["iocast-sim", "iocast-bench"])
def test_a_program_starts_without_libraries_that_few_ask_for(name: str) -> None:
    program = find_program(name)
    linked = subprocess.run(["readelf", "-d", str(program)], capture_output=True, text=True, check=True).stdout
    assert "[libc.so" in linked and not [one for one in HEAVY if one in linked]


def test_a_program_alone_does_the_rest(alone: Callable[[str], Path], tmp_path: Path) -> None:
    simulator, bench = alone("iocast-sim"), alone("iocast-bench")
    simulated = [*SMALL, "--platform", "network"]
    assert run(simulator, *simulated).returncode == 0
    listed = run(bench, "--list", "backends").stdout
    assert [line.split()[0] for line in listed.splitlines()] == ["dummy", "mpiio", "posix"]
    place = str(tmp_path / "lib" / "iocast")
    for program, arguments, what in (
        (simulator, [*simulated, "--trace", "--out", tmp_path / "run"], "There is no HDF5"),
        (simulator, [*simulated, "--flows", "simgrid"], "SimGrid can't be loaded"),
        (bench, [*SMALL, "--backend", "s3"], "There is no backend 's3'"),
        (bench, [*SMALL, "--s3.endpoint", "http://localhost"], "There is no option '--s3.endpoint'"),
        (bench, [*SMALL, "--backend", "dummy", "--trace", "--out", tmp_path / "run"], "There is no HDF5"),
    ):
        refused = run(program, *arguments)
        assert refused.returncode == 2 and not (tmp_path / "run").exists()
        assert what in refused.stderr and place in refused.stderr and refused.stderr.count("\n") == 1
        assert "cmake --install" in refused.stderr and len(refused.stderr) < 500, "what to do, and no list of options"
    misspelt = run(bench, *SMALL, "--ranks-per-nod=0.5")
    assert "Did you mean '--ranks-per-node'?" in misspelt.stderr, "a point in a value names no backend"


def test_a_library_that_can_not_be_loaded_is_named(alone: Callable[[str], Path], tmp_path: Path) -> None:
    bench = alone("iocast-bench")
    (tmp_path / "lib" / "iocast" / "backend-s3.so").write_text("no library")
    listed = run(bench, "--list", "backends")
    assert listed.returncode == 0 and "\ns3 " in listed.stdout
    assert "its library can't be loaded" in listed.stdout and "backend-s3.so" in listed.stdout
    for options in (["--backend", "s3"], ["--backend=s3"], ["--s3.endpoint", "http://localhost"]):
        refused = run(bench, *SMALL, *options)
        assert refused.returncode == 2
        assert refused.stderr.startswith("iocast-bench: The backend 's3' can't be used: its library can't be loaded")
        assert "backend-s3.so" in refused.stderr and refused.stderr.count("\n") == 1
    assert run(bench, *SMALL, "--backend", "dummy", "--dry-run").returncode == 0


def test_options_of_a_backend_are_known_without_its_name() -> None:
    """--s3.endpoint loads the backend, so that an option of it that isn't there has a nearest match."""
    bench = find_program("iocast-bench")
    assert bench is not None
    for option in ("--s3.endpont", "--s4.endpoint", "--s3endpoint"):
        refused = run(bench, *SMALL, option, "http://localhost")
        assert refused.returncode == 2 and "Did you mean '--s3.endpoint'" in refused.stderr
    assert "--s3.endpoint" in run(bench, "--help").stdout


@pytest.mark.parametrize(("option", "word", "near"), [("flows", "simgird", "simgrid"), ("placement", "bloc", "block")])
def test_a_value_that_is_no_choice_has_a_nearest_one(option: str, word: str, near: str) -> None:
    simulator = find_program("iocast-sim")
    assert simulator is not None
    refused = run(simulator, *SMALL, "--platform", "network", f"--{option}", word)
    assert refused.returncode == 2 and f"--{option} can't be '{word}'. Did you mean '{near}'?" in refused.stderr


@pytest.mark.parametrize("instead", ["no symbols", "another build"])
def test_a_library_of_another_build_is_refused(alone: Callable[[str], Path], tmp_path: Path, instead: str) -> None:
    """Program and library call each other's functions, so that they must be of one build; nothing of another runs."""
    simulator = alone("iocast-sim")
    source, library = tmp_path / "other.c", tmp_path / "lib" / "iocast" / "hdf5.so"
    stamp = 'const char iocast_interface[] = "another";' if instead == "another build" else "int nothing;"
    source.write_text(stamp + "__attribute__((constructor)) static void begin(void) { __builtin_trap(); }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    refused = run(simulator, *SMALL, "--platform", "network", "--trace", "--out", tmp_path / "run")
    assert refused.returncode == 2 and not (tmp_path / "run").exists()
    assert "hdf5.so is of another build than this program" in refused.stderr and refused.stderr.count("\n") == 1
    bench = alone("iocast-bench")
    library.rename(library.with_name("backend-s3.so"))
    refused = run(bench, *SMALL, "--backend", "s3")
    assert refused.returncode == 2 and "backend-s3.so is of another build than this program" in refused.stderr

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does iocast build and run with other compilers, MPIs, SimGrids and Pythons than Debian's own? Each leg changes one
of them on this machine.

    validation/systems/legs.py [LEG...] [--place DIR]

clang          all programs, compiled with clang 16 or later; unit and contract tests
mpich          iocast-bench with MPICH (Debian packages libmpich-dev and mpich): a verified run of 4 ranks, a campaign
               by `iocast measure`, and tests of tests/mpi
bench-alone    -DIOCAST_SIM=OFF without HDF5, curl and the other libraries of backends: a verified run
simgrid-3.35   iocast-sim with SimGrid 3.35, built from PyPI's source package: the same bytes as with the SimGrid of
               this machine (validation/simgrid/versions.py)
simgrid-4.1    the same with 4.1
python-3.11    tests that start no program (importers, residuals, searches), in a fresh virtual environment of that
               Python with the newest packages that pyproject.toml allows
python-3.13    the same with 3.13
python-lowest  the same with Python 3.10 and the oldest packages that pyproject.toml allows
offline        packaging/offline.sh; from its archive, in a network namespace without a network: ./install, the same
               tests, iocast-bench from the sources and a verified run

offline needs root, and mpich .venv as ./quickstart leaves it. Prints seconds and outcome of each. A leg whose tools
this machine lacks says so. Exit status 4 when one fails or is not tried."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PURE = [
    "contract/test_importers.py",
    "python/test_residuals.py",
    "python/test_knee_search.py",
    "python/test_evidence.py",
]
"""Tests that start no program."""
REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)(?:\[\w+\])?\s*>=\s*([\w.]+)")
UNDER_MPI = ["test_bench.py", "test_bench_trees.py", "test_dry_run.py"]
CAMPAIGN = """schema_version: 1
description: tiny
workload: md-workbench
settings: {datasets: 1, iterations: 20, objects: 20}
points:
  - {ranks: [1, 4]}
"""
SMALL = ["--set", "datasets=2", "--set", "objects=20", "--set", "iterations=20", "--verify"]


class NotTried(Exception):
    """The machine lacks what the leg needs."""


def run(log: Path, *command: str | Path, **environment: str) -> None:
    with log.open("a") as out:
        subprocess.run(list(map(str, command)), stdout=out, stderr=out, check=True, env=os.environ | environment)


def build(place: Path, log: Path, *options: str, targets: tuple[str, ...] = ()) -> Path:
    run(log, "cmake", "-G", "Ninja", "-S", ROOT, "-B", place, *options)
    run(log, "ninja", "-C", place, *targets)
    return place / "bin"


def newest_clang() -> str:
    """The newest clang++ of this machine. @raises NotTried"""
    found = [name for name in ("clang++", *(f"clang++-{n}" for n in range(30, 15, -1))) if shutil.which(name)]
    for name in found:
        printed = subprocess.run([name, "-dumpversion"], capture_output=True, text=True, check=True).stdout
        if int(printed.partition(".")[0]) >= 16:
            return name
    raise NotTried("there is no clang 16 or later; install a Debian package such as clang-19")


def clang(place: Path, log: Path) -> str:
    compiler = newest_clang()
    bin_ = build(
        place,
        log,
        f"-DCMAKE_CXX_COMPILER={compiler}",
        f"-DCMAKE_C_COMPILER={compiler.replace('++', '')}",
        "-DIOCAST_TESTS=ON",
    )
    for test in ("iocast-unit-tests", "iocast-contract-tests"):
        run(log, bin_ / test, "--gtest_brief=1")
    return f"{compiler}: unit and contract tests pass"


def verified_run(bench: Path, launcher: list[str], place: Path, log: Path) -> None:
    root = place / "root"
    root.mkdir(exist_ok=True)
    run(
        log,
        *launcher,
        bench,
        *SMALL,
        "--posix.root",
        root,
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
    )


def mpich(place: Path, log: Path) -> str:
    compiler, launcher = shutil.which("mpicxx.mpich"), shutil.which("mpiexec.mpich")
    if not compiler or not launcher:
        raise NotTried("there is no MPICH; install the Debian packages libmpich-dev and mpich")
    bin_ = build(
        place,
        log,
        "-DIOCAST_SIM=OFF",
        f"-DMPI_CXX_COMPILER={compiler}",
        f"-DMPIEXEC_EXECUTABLE={launcher}",
        targets=("iocast-bench",),
    )
    verified_run(bin_ / "iocast-bench", [launcher, "-n", "4"], place, log)
    (place / "path").mkdir(exist_ok=True)
    (place / "path" / "mpirun").unlink(missing_ok=True)
    # No link: it looks for its proxy beside itself.
    (place / "path" / "mpirun").write_text(f'#!/bin/sh\nexec {launcher} "$@"\n')
    (place / "path" / "mpirun").chmod(0o755)
    ours = {"PATH": f"{place / 'path'}:{os.environ['PATH']}", "IOCAST_BUILD": str(place), "PYTHONPATH": str(ROOT)}
    (place / "tiny.yaml").write_text(CAMPAIGN)
    shutil.rmtree(place / "campaign", ignore_errors=True)
    measure = ["measure", place / "root", "--campaign", place / "tiny.yaml", "--out", place / "campaign"]
    run(log, ROOT / ".venv" / "bin" / "iocast", *measure, **ours)
    files = [ROOT / "tests" / "mpi" / name for name in UNDER_MPI]
    run(log, ROOT / ".venv" / "bin" / "python", "-m", "pytest", "-p", "no:cacheprovider", *files, **ours)
    return f"a verified run of 4 ranks; iocast measure; the tests of {', '.join(UNDER_MPI)} pass"


def bench_alone(place: Path, log: Path) -> str:
    absent = [
        f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("HDF5", "CURL", "OpenSSL", "PostgreSQL", "mongoc-1.0")
    ]
    bin_ = build(place, log, "-DIOCAST_SIM=OFF", "-DIOCAST_CEPHFS=OFF", *absent, targets=("iocast-bench",))
    verified_run(bin_ / "iocast-bench", [], place, log)
    refused = subprocess.run(
        [bin_ / "iocast-bench", "--trace", "--out", place / "out", "--backend", "dummy"],
        capture_output=True,
        text=True,
        check=False,
    )
    if refused.returncode != 2 or "no HDF5" not in refused.stderr:
        raise RuntimeError(f"--trace without HDF5 printed: {refused.stderr}")
    return "a verified run; --trace is refused in a sentence"


def simgrid(version: str) -> Callable[[Path, Path], str]:
    def leg(place: Path, log: Path) -> str:
        run(
            log,
            sys.executable,
            ROOT / "validation" / "simgrid" / "versions.py",
            "local",
            "lustre",
            "--simgrid",
            version,
            "--cache",
            place,
        )
        return "the same bytes on two platforms with four workloads each"

    return leg


def fresh(version: str, place: Path, log: Path, *options: str | Path) -> None:
    """Makes a virtual environment of that Python with iocast, and runs the tests of PURE in it. @raises NotTried"""
    program = shutil.which(f"python{version}")
    if program is None or subprocess.run([program, "-c", ""], capture_output=True, check=False).returncode:
        raise NotTried(f"there is no python{version} on PATH")
    run(log, program, "-m", "venv", "--clear", place / "venv")
    run(log, place / "venv" / "bin" / "pip", "install", "--quiet", *options, "--editable", f"{ROOT}[test]")
    files = [ROOT / "tests" / name for name in PURE]
    run(log, place / "venv" / "bin" / "python", "-m", "pytest", "-p", "no:cacheprovider", *files)
    table, runs = ROOT / "examples" / "first-forecast" / "cirrus.csv", place / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    run(log, place / "venv" / "bin" / "iocast", "import", table, "--out", runs)
    run(log, place / "venv" / "bin" / "iocast", "report", *runs.iterdir(), "--out", place / "report.html")
    run(log, place / "venv" / "bin" / "iocast", "list", "formats")


def python(version: str) -> Callable[[Path, Path], str]:
    def leg(place: Path, log: Path) -> str:
        fresh(version, place, log)
        return f"the tests of {len(PURE)} files pass; a table is imported and reported"

    return leg


def lowest(place: Path, log: Path) -> str:
    """pip takes the newest that it may; so each lower bound becomes the only version."""
    lines = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    bounds = [f"{found[1]}=={found[2]}" for line in lines if (found := REQUIREMENT.match(line))]
    (place / "lowest.txt").write_text("\n".join(bounds) + "\n")
    fresh("3.10", place, log, "--constraint", place / "lowest.txt")
    return f"{len(bounds)} packages at their lower bounds: the tests of {len(PURE)} files pass; a table is reported"


def offline(place: Path, log: Path) -> str:
    """Its archive is unpacked anew each time."""
    if os.geteuid() != 0:
        raise NotTried("only root can leave the network; start it as root")
    for entry in place.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    run(log, ROOT / "packaging" / "offline.sh", "--extra", "test", place / "iocast.tar.gz")
    # A machine without a network has its loopback interface all the same.
    alone = ["unshare", "--net", "--", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    run(log, *alone, "tar", "-xzf", place / "iocast.tar.gz", "-C", place)
    (archive,) = place.glob("iocast-*/")
    run(log, *alone, archive / "install")
    source, build_ = archive / "source", archive / "build"
    files = [source / "tests" / name for name in PURE]
    run(log, *alone, archive / ".venv" / "bin" / "python", "-m", "pytest", "-p", "no:cacheprovider", *files)
    run(log, *alone, "cmake", "-G", "Ninja", "-S", source, "-B", build_, "-DIOCAST_SIM=OFF")
    run(log, *alone, "ninja", "-C", build_, "iocast-bench")
    verified_run(build_ / "bin" / "iocast-bench", alone, place, log)
    return f"installed without a network; the tests of {len(files)} files pass; a verified run"


LEGS: dict[str, Callable[[Path, Path], str]] = {
    "clang": clang,
    "mpich": mpich,
    "bench-alone": bench_alone,
    "simgrid-3.35": simgrid("3.35"),
    "simgrid-4.1": simgrid("4.1"),
    "python-3.11": python("3.11"),
    "python-3.13": python("3.13"),
    "python-lowest": lowest,
    "offline": offline,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("legs", nargs="*", metavar="LEG", help="all without")
    parser.add_argument(
        "--place", type=Path, default=Path("build/legs"), help="directory for what is built, and for logs"
    )
    given = parser.parse_args()
    unknown = [name for name in given.legs if name not in LEGS]
    if unknown:
        parser.error(f"there is no leg {unknown[0]}; allowed: {', '.join(LEGS)}")
    bad = 0
    for name in given.legs or LEGS:
        place = given.place.resolve() / name
        place.mkdir(parents=True, exist_ok=True)
        log, began = given.place.resolve() / f"{name}.log", time.monotonic()
        log.unlink(missing_ok=True)
        try:
            word, printed = "passed", LEGS[name](place, log)
        except NotTried as reason:
            word, printed = "not tried", str(reason)
        except (subprocess.CalledProcessError, RuntimeError) as error:
            word, printed = "FAILED", f"{error} See {log}."
        bad += word != "passed"
        print(f"{name:<14}{time.monotonic() - began:>7.0f} s  {word}: {printed}", flush=True)
    sys.exit(4 if bad else 0)


if __name__ == "__main__":
    main()

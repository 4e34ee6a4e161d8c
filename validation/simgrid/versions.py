#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does iocast-sim say the same with another SimGrid? The simulator that is built here beside one with another: for each
platform of the catalogue the same workloads with the same seed, each operation traced, and all that both wrote compared
byte by byte, but for what tells the run from another one (SimGrid's version, the command, wall time and memory).

    validation/simgrid/versions.py [PLATFORM...] [--simgrid 4.1] [--cache DIR]

That SimGrid (3.35 is Ubuntu 24.04's; 4.1 the newest) is built from its PyPI source package the first time (some ten
minutes on two cores) and kept in the cache with the simulator that uses it, by default in ~/.cache/iocast. Needs a
C++20 compiler, cmake, ninja, Boost and the network for the source package. Exit status 4 when anything differs."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "validation/speed"))
from programs import find_program  # noqa: E402

OPTIONS = ["documentation", "smpi", "python", "java", "lto", "model-checking"]
WORKLOADS = {
    "md-workbench": ["datasets=2", "objects=60", "iterations=60", "repeats=2"],
    "mdtest-hard": ["items=50"],
    "ior-easy": ["per_process=32MiB"],
    "ior-hard": ["segments=20"],
}
"""The first two have small transfers, which the calendar serves; the others large ones, which are flows of SimGrid."""
OF_THE_RUN = ("tool", "simgrid", "command", "requests_per_second", "wall_seconds", "peak_rss_bytes", "started")


def step(*command: str | Path, log: Path, cwd: Path | None = None, environment: dict[str, str] | None = None) -> None:
    with log.open("a") as out:
        code = subprocess.run(
            command,
            cwd=cwd,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            check=False,
        ).returncode
    if code:
        sys.exit(f"'{' '.join(map(str, command))}' failed; {log} says why.")


def other_simulator(cache: Path, version: str) -> Path:
    """iocast-sim of this tree with SimGrid of that version."""
    place = cache / f"simgrid-{version}"
    place.mkdir(parents=True, exist_ok=True)
    prefix, log = place / "prefix", place / "build.log"
    found = sorted(prefix.rglob("simgrid.pc"))
    if not found:
        print(f"Building SimGrid {version} in {place}; this is done once.", flush=True)
        step(
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--no-binary",
            ":all:",
            f"simgrid=={version}",
            "--dest",
            place,
            log=log,
        )
        step("tar", "xzf", place / f"simgrid-{version}.tar.gz", "-C", place, log=log)
        off = [f"-Denable_{name}=OFF" for name in OPTIONS]
        step(
            "cmake",
            "-G",
            "Ninja",
            "-S",
            place / f"simgrid-{version}",
            "-B",
            place / "build",
            f"-DCMAKE_INSTALL_PREFIX={prefix}",
            "-DCMAKE_BUILD_TYPE=Release",
            *off,
            log=log,
        )
        step("ninja", "-C", place / "build", "install", log=log)
        found = sorted(prefix.rglob("simgrid.pc"))
    build = place / "iocast"
    environment = {"PKG_CONFIG_PATH": str(found[0].parent)}
    options = ["-DIOCAST_REAL=OFF", f"-DCMAKE_BUILD_RPATH={found[0].parents[1]}"]
    step("cmake", "-G", "Ninja", "-S", ROOT, "-B", build, *options, log=log, environment=environment)
    step("ninja", "-C", build, "iocast-sim", log=log)
    return build / "bin" / "iocast-sim"


def output_of(program: Path, platform: str, workload: str) -> tuple[dict[str, Any], bytes, str]:
    """Its output without run identifiers, the trace of all operations, and SimGrid's version."""
    with tempfile.TemporaryDirectory(prefix="iocast-versions-") as scratch:
        out = Path(scratch) / "run"
        settings = [argument for setting in WORKLOADS[workload] for argument in ("--set", setting)]
        command = [
            program,
            "--platform",
            platform,
            "--workload",
            workload,
            *settings,
            "--nodes",
            "3",
            "--ppn",
            "4",
            "--seed",
            "7",
            "--no-time-limits",
            "--trace",
            "--out",
            out,
            "--json",
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "IOCAST_HOME": str(ROOT)}, check=False
        )
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
        run = json.loads(done.stdout)
        return (
            {key: value for key, value in run.items() if key not in OF_THE_RUN},
            (out / "ops.h5").read_bytes(),
            run["simgrid"],
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("platforms", nargs="*", metavar="PLATFORM", help="all of the catalogue without")
    parser.add_argument("--simgrid", default="4.1", metavar="VERSION", help="of PyPI's source packages; default 4.1")
    parser.add_argument(
        "--cache", type=Path, default=Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "iocast"
    )
    given = parser.parse_args()
    known = sorted(file.stem for file in (ROOT / "platforms").glob("*.yaml"))
    unknown = [name for name in given.platforms if name not in known]
    if unknown:
        parser.error(f"there is no platform {', '.join(unknown)}; allowed: {', '.join(known)}")
    programs = [find_program("iocast-sim"), other_simulator(given.cache.resolve(), given.simgrid)]
    differing = 0
    for platform in given.platforms or known:
        for workload in WORKLOADS:
            runs = [output_of(program, platform, workload) for program in programs]
            same = runs[0][:2] == runs[1][:2]
            differing += not same
            operations = sum(phase["operations"] for phase in runs[0][0]["phases"])
            print(
                f"{platform:<18}{workload:<14}{operations:>8} operations  SimGrid {runs[0][2]} and {runs[1][2]}:"
                f" {'identical bytes' if same else 'DIFFERENT'}",
                flush=True,
            )
    sys.exit(4 if differing else 0)


if __name__ == "__main__":
    main()

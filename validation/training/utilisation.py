#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measured and simulated utilisation of emulated accelerators, on a file system whose service times are known.

    validation/training/utilisation.py [--accelerators 1,2,4,8] [--steps 60]

`iocast-queuefs` serves opens at one station with two servers, `iocast-bench` runs `training` on it, and `iocast-sim`
simulates the same on the file system's platform. Beside both is `au` by the definition of DLIO (utils/statscounter.py,
compute_metrics_train): computation after the first step over the time after it. About a minute; it needs FUSE, Open MPI
and a quiet machine. Exit code 1 when a difference is above 3 points.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BIN = TOP / "build" / "bin"
PLATFORM = """schema_version: 1
description: a station with two servers in front of opens
source: chosen
stations: {mds: {servers: 2}}
demands: {open: {law: lognormal, mean: 8ms, sigma: 0.4}, make: 100us, remove: 100us}
operations:
  stat: []
  read: {open: &open [{station: mds, demand: open}], read: [], close: []}
  append: {open: *open, write: [], close: []}
  open: *open
  pwrite: []
  pread: []
  fsync: []
  close: []
  readdir: []
  unlink: [{station: mds, demand: remove}]
  create: {open: [{station: mds, demand: make}], write: [], close: []}
  mkdir: []
  rmdir: []
"""
ALLOWED_POINTS = 3.0


def settings(steps: int, phases: str) -> list[str]:
    chosen = {
        "readers": 2, "batch": 2, "compute_time": "40ms", "steps": steps, "sample_size": "1kB", "phases": phases,
    }  # fmt: skip
    return [part for name, value in chosen.items() for part in ("--set", f"{name}={value}")]


def accelerators_of(run: dict) -> tuple[float, float]:
    [phase] = [one for one in run["phases"] if one["name"] == "train"]
    return phase["accelerators"]["utilisation"], phase["accelerators"]["utilisation_after_first_step"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accelerators", default="1,2,4,8")
    parser.add_argument("--steps", type=int, default=60)
    given = parser.parse_args()
    environment = {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
    }  # fmt: skip
    worst = 0.0
    print("accelerators  measured  simulated  difference  measured after step 1  simulated")
    for count in map(int, given.accelerators.split(",")):
        with tempfile.TemporaryDirectory() as scratch:
            place, platform = Path(scratch) / "mount", Path(scratch) / "platform.yaml"
            place.mkdir()
            platform.write_text(PLATFORM)
            server = subprocess.Popen([BIN / "iocast-queuefs", "--platform", platform, place])
            try:
                while not os.path.ismount(place):
                    time.sleep(0.05)
                ranks = str(2 * count)
                (place / "data").mkdir()
                run = json.loads(subprocess.run(
                    ["mpirun", "-n", ranks, BIN / "iocast-bench", "--quiet", "--json", "--posix.root", place / "data",
                     "--workload", "training", *settings(given.steps, "all")],
                    check=True, capture_output=True, text=True, env=environment,
                ).stdout)  # fmt: skip
            finally:
                subprocess.run(["fusermount3", "-u", place], check=False)
                server.wait(timeout=100)
            simulated = json.loads(subprocess.run(
                [BIN / "iocast-sim", "--json", "--brief", "--platform", platform, "--ppn", ranks,
                 "--workload", "training", *settings(given.steps, "train")],
                check=True, capture_output=True, text=True,
            ).stdout)  # fmt: skip
        real, real_later = accelerators_of(run)
        model, model_later = accelerators_of(simulated)
        points = 100 * (real - model)
        worst = max(worst, abs(points), 100 * abs(real_later - model_later))
        print(f"{count:12d}  {100 * real:7.1f} %  {100 * model:8.1f} %  {points:+10.1f}  {100 * real_later:19.1f} %"
              f"  {100 * model_later:8.1f} %")  # fmt: skip
    print(f"largest difference {worst:.1f} points, at most {ALLOWED_POINTS:g} wanted")
    return worst > ALLOWED_POINTS


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Utilisation by DLIO itself and by `iocast-bench training`, on the same directory.

    validation/training/dlio.py --dlio VENV/bin/dlio_benchmark [--accelerators 1,2,4] [--steps 20]

The directory is one of `iocast-queuefs`, whose opens take 400 ms at two servers, so that both wait for the
same storage; computation is 1.2 s, a batch 2 samples, and each accelerator has 2 readers that are ahead by a batch.
DLIO generates its files there (npz) and trains by its PyTorch loader; `iocast-bench` makes its own beside them. Each
says what its utilisation after the first step is. It is that of the second epoch: in the first, DLIO's accelerators
start their readers for seconds, and one that is ready waits for the others, which DLIO counts as waiting for
storage. The accelerators' outputs of DLIO are imported, too: the utilisation
of the import is DLIO's. DLIO 2.0.0 is installed by

    python3 -m venv VENV
    VENV/bin/pip install --no-deps dlio-benchmark==2.0.0 pydftracer==1.0.2
    VENV/bin/pip install numpy pandas psutil omegaconf hydra-core mpi4py Pillow h5py PyYAML torch tensorflow-cpu

About five minutes; it needs FUSE, Open MPI and a quiet machine. Exit code 1 when a difference is above 3 points."""

from __future__ import annotations

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
demands: {open: 400ms}
operations:
  stat: []
  read: {open: &open [{station: mds, demand: open}], read: [], close: []}
  append: {open: [], write: [], close: []}
  open: *open
  pwrite: []
  pread: []
  fsync: []
  close: []
  readdir: []
  unlink: []
  create: {open: [], write: [], close: []}
  mkdir: []
  rmdir: []
"""
READERS, BATCH, COMPUTE, SAMPLE = 2, 2, 1.2, 4096
ALLOWED_POINTS = 3.0


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
    }  # fmt: skip


def by_dlio(program: Path, place: Path, out: Path, count: int, steps: int) -> None:
    """Generates the data and trains; the results are in `out`."""
    settings = {
        "workflow.checkpoint": "False",
        "dataset.data_folder": place / "dlio",
        "dataset.num_files_train": steps * BATCH * count,
        "dataset.record_length": SAMPLE,
        "dataset.record_length_stdev": 0,
        "dataset.record_length_resize": SAMPLE,
        "reader.batch_size": BATCH,
        "reader.read_threads": READERS,
        "reader.prefetch_size": READERS,
        "train.epochs": 2,
        "train.computation_time": COMPUTE,
    }
    for generates in (True, False):
        flow = {"workflow.generate_data": generates, "workflow.train": not generates}
        subprocess.run(
            ["mpirun", "-n", str(count), program, "workload=unet3d_h100", f"hydra.run.dir={out}",
             *(f"++workload.{name}={value}" for name, value in (settings | flow).items())],
            check=True, capture_output=True, env=environment(), cwd=out.parent,
        )  # fmt: skip


def utilisation_of(run: dict) -> float:
    """Of the last epoch."""
    return [one for one in run["phases"] if one["name"] == "train"][-1]["accelerators"]["utilisation_after_first_step"]


def by_bench(place: Path, count: int, steps: int) -> float:
    settings = {
        "readers": READERS, "batch": BATCH, "compute_time": f"{COMPUTE}s", "steps": steps,
        "sample_size": f"{SAMPLE}B", "prefetch": 1, "epochs": 2,
    }  # fmt: skip
    done = subprocess.run(
        ["mpirun", "-n", str(READERS * count), BIN / "iocast-bench", "--quiet", "--json", "--posix.root", place,
         "--workload", "training", *(part for one in settings.items() for part in ("--set", "=".join(map(str, one))))],
        check=True, capture_output=True, text=True, env=environment(),
    )  # fmt: skip
    return utilisation_of(json.loads(done.stdout))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dlio", type=Path, required=True)
    parser.add_argument("--accelerators", default="1,2,4")
    parser.add_argument("--steps", type=int, default=20)
    given = parser.parse_args()
    worst = 0.0
    print("accelerators     DLIO  imported  iocast-bench  difference")
    for count in map(int, given.accelerators.split(",")):
        with tempfile.TemporaryDirectory() as scratch:
            place, platform, out = (Path(scratch) / name for name in ("mount", "platform.yaml", "out"))
            place.mkdir()
            platform.write_text(PLATFORM)
            server = subprocess.Popen([BIN / "iocast-queuefs", "--platform", platform, place])
            try:
                while not os.path.ismount(place):
                    time.sleep(0.05)
                by_dlio(given.dlio.absolute(), place, out, count, given.steps)
                (place / "iocast").mkdir()
                own = by_bench(place / "iocast", count, given.steps)
            finally:
                subprocess.run(["fusermount3", "-u", "-z", place], check=False)
                server.terminate()
                server.wait(timeout=100)
            subprocess.run(
                [sys.executable, "-m", "iocast", "import", out, "--out", Path(scratch) / "run"],
                check=True, capture_output=True,
            )  # fmt: skip
            imported = utilisation_of(json.loads((Path(scratch) / "run" / "run.json").read_text()))
            theirs = json.loads((out / "summary.json").read_text())["metric"]["train_au_percentage"][-1]
        points = 100 * own - theirs
        worst = max(worst, abs(points))
        print(f"{count:12d}  {theirs:5.1f} %  {100 * imported:6.1f} %  {100 * own:10.1f} %  {points:+10.1f}")
    print(f"largest difference {worst:.1f} points, at most {ALLOWED_POINTS:g} wanted")
    return worst > ALLOWED_POINTS


if __name__ == "__main__":
    sys.exit(main())

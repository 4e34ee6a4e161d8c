#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the module for pages with iocast-sim, number by number: python validation/page/equal.py

Runs the module in node, whose engine is that of Chromium. Prints a line for each platform and workload with both
processor times, and exits with 1 when a number differs."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

from iocast import binaries
from iocast.errors import InputError
from iocast.platform import PLATFORMS, find_platform
from iocast.whatif import module
from iocast.whatif.panel import file_in_module, platform_files

WORKLOADS = {"md-workbench": ["iterations=10"], "mdtest-easy": ["items=200"], "ior-easy": [], "hpcs-07": ["arrays=1"]}
NODES, RANKS_PER_NODE, SEED = 4, 2, 1
OF_THE_RUN = ("command", "simgrid", "wall_seconds", "requests_per_second", "peak_rss_bytes")
"""Keys about the process, not about the simulated system."""


def native(platform: str, workload: str, settings: list[str]) -> tuple[dict, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [binaries.find("iocast-sim"), "--json", "--brief", "--platform", platform, "--workload", workload]
    command += ["--nodes", str(NODES), "--ppn", str(RANKS_PER_NODE), "--seed", str(SEED)]
    command += [word for setting in settings for word in ("--set", setting)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 2:
        raise InputError(done.stderr.strip())
    run = json.loads(done.stdout)
    for key in OF_THE_RUN:
        run.pop(key, None)
    return run, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main() -> int:
    place = module.find()
    if place is None:
        sys.exit("There is no module: cmake --build build --target page")
    names = sys.argv[1:] or sorted(file.stem for file in PLATFORMS.glob("*.yaml"))
    differ = compared = 0
    for name in names:
        for workload, settings in WORKLOADS.items():
            try:
                own, seconds = native(name, workload, settings)
            except InputError:
                continue  # the platform serves no such operation
            path = find_platform(name)
            request = {"platform": file_in_module(path), "workload": workload, "settings": settings, "nodes": NODES,
                       "ranks_per_node": RANKS_PER_NODE, "seed": SEED}  # fmt: skip
            given = {"files": platform_files(path) | module.workloads(workload), "requests": [request]}
            done = subprocess.run(
                ["node", Path(__file__).with_name("run.js"), place.resolve()],
                input=json.dumps(given), capture_output=True, text=True, check=True,
            )  # fmt: skip
            answer = json.loads(done.stdout)
            answer["step"].pop("command", None)
            same = answer["step"] == own
            compared, differ = compared + 1, differ + (not same)
            print(f"{name:20} {workload:14} {'equal' if same else 'DIFFERENT'} {answer['seconds']:.2f} s "
                  f"({seconds:.2f} s)", flush=True)  # fmt: skip
    print(f"{compared} pairs, {differ} different")
    return 1 if differ or not compared else 0


if __name__ == "__main__":
    sys.exit(main())

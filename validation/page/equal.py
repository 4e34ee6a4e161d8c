#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the module for pages with iocast-sim, number by number:
python validation/page/equal.py [--in node|chromium|firefox] [PLATFORM...]

Without --in it runs the module in all three that are installed. Prints a line for each platform and workload, with both
processor times, and exits with 1 when a number differs."""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
from typing import Any

from engines import NAMES, engine

from iocast.ground import binaries
from iocast.errors import InputError
from iocast.platforms.documents import PLATFORMS, find_platform
from iocast.whatif import module
from iocast.whatif.panel import file_in_module, platform_files

WORKLOADS = {"md-workbench": ["iterations=10"], "mdtest-easy": ["items=200"], "ior-easy": [], "hpcs-07": ["arrays=1"]}
NODES, RANKS_PER_NODE, SEED = 4, 2, 1
OF_THE_RUN = ("command", "simgrid", "wall_seconds", "requests_per_second", "peak_rss_bytes")
"""Keys about the process, not about the simulated system."""


def native(
    platform: str, workload: str, settings: list[str], nodes: int = NODES, ranks_per_node: int = RANKS_PER_NODE
) -> tuple[dict[str, Any], float]:
    """The run by iocast-sim, and the user time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [binaries.find("iocast-sim"), "--json", "--brief", "--platform", platform, "--workload", workload]
    command += ["--nodes", str(nodes), "--ppn", str(ranks_per_node), "--seed", str(SEED)]
    command += [word for setting in settings for word in ("--set", setting)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 2:
        raise InputError(done.stderr.strip())
    run = json.loads(done.stdout)
    for key in OF_THE_RUN:
        run.pop(key, None)
    return run, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def given(
    platform: str, workload: str, settings: list[str], nodes: int = NODES, ranks_per_node: int = RANKS_PER_NODE
) -> dict[str, Any]:
    """The same for the module."""
    path = find_platform(platform)
    request = {"platform": file_in_module(path), "workload": workload, "settings": settings, "nodes": nodes,
               "ranks_per_node": ranks_per_node, "seed": SEED}  # fmt: skip
    return {"files": platform_files(path) | module.workloads(workload), "requests": [request]}


def differences(own: Any, other: Any, place: str = "") -> list[str]:
    """Where two documents differ, with both values."""
    if isinstance(own, dict) and isinstance(other, dict):
        keys = dict.fromkeys([*own, *other])
        return [one for key in keys for one in differences(own.get(key), other.get(key), f"{place}.{key}")]
    if isinstance(own, list) and isinstance(other, list) and len(own) == len(other):
        return [
            one for i, pair in enumerate(zip(own, other, strict=True)) for one in differences(*pair, f"{place}[{i}]")
        ]
    return [] if own == other else [f"{place}: {str(own)[:60]} | {str(other)[:60]}"]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--in", dest="engines", action="append", choices=NAMES)
    parser.add_argument("platforms", nargs="*")
    arguments = parser.parse_args()
    platforms = arguments.platforms or sorted(file.stem for file in PLATFORMS.glob("*.yaml"))
    known: dict[tuple[str, str], tuple[dict[str, Any], float]] = {}
    for platform in platforms:
        for workload, settings in WORKLOADS.items():
            try:
                known[platform, workload] = native(platform, workload, settings)
            except InputError:
                continue  # the platform serves no such operation
    differ = 0
    for name in arguments.engines or [one for one in NAMES if shutil.which(one)]:
        with engine(name) as run:
            for (platform, workload), (own, seconds) in known.items():
                answer, took = run(given(platform, workload, WORKLOADS[workload]))
                answer.pop("command", None)
                found = differences(own, answer)
                differ += bool(found)
                print(f"{name:9} {platform:20} {workload:14} {'DIFFERENT' if found else 'equal'} {took:.2f} s "
                      f"({seconds:.2f} s)", *found[:3], flush=True)  # fmt: skip
    print(f"{len(known)} pairs, {differ} different")
    return 1 if differ or not known else 0


if __name__ == "__main__":
    sys.exit(main())

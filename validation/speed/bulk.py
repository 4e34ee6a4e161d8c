#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast are bulk data simulated? Processor seconds, memory and cost of a flow of checkpoints and streams, beside
their targets, and how many times as long SimGrid takes to share the same links (`--flows simgrid`), in one run.

    python validation/speed/bulk.py [--small] [--json]

hpcs-07 of the catalogue's size (50 arrays) on `lustre` with 1,000 and 10,000 clients and, on a dragonfly, 100,000;
ior-easy with 10,000 and ior-hard with 1,000, whose every transfer is a flow. And ior-easy with eight processes on each
of 1,000 nodes, whose cards and those of 160 servers are about as busy, so that each end of a flow changes many rates.
`--small` leaves out what takes more than 10 s. Exit status 4 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from programs import find_program

from iocast.wording import text

ALL_FLOWS = "schema_version: 1\nextends: lustre\nnetwork: {never_limited: 1B}\n"
DRAGONFLY = """schema_version: 1
extends: lustre
stations: {oss: {count: 128}}
network:
  topology: dragonfly
  hop_latency: 200ns
  groups: {routers: 32, nodes: 16, local: 25GB/s}
  global: {links: 2, bandwidth: 25GB/s}
"""
LINKS = """schema_version: 1
stations: {oss: {count: 16, spread: object}}
network: {latency: 5us, node_bandwidth: 5GB/s, server_bandwidth: 3GB/s}
demands: {call: {law: lognormal, mean: 150us, sigma: 0.6}}
operations:
  mkdir: []
  rmdir: []
  open: []
  close: []
  unlink: []
  fsync: []
  pwrite: [{delay: call}, {transfer: write, station: oss}]
  pread: [{delay: call}, {transfer: read, station: oss}]
"""
"""As SimGrid's flows pass no disk."""
BOTH_SIDES = LINKS.replace("count: 16", "count: 160").replace("server_bandwidth: 3GB/s", "server_bandwidth: 25GB/s")
MAX_GROWTH = 2.0
"""Cost of a flow of 10^4 clients over that of 10^2."""


@dataclass(frozen=True)
class Case:
    platform: str
    workload: str
    clients: int
    settings: tuple[str, ...] = ()
    most_seconds: float | None = None
    most_mib: float | None = None
    most_microseconds: float | None = None  # of a flow
    ranks: int = 1  # of a client node
    slow: bool = False
    beside: bool = False  # SimGrid's flows as well


CASES = (
    Case("links", "hpcs-07", 100, beside=True),
    Case("links", "hpcs-07", 300, beside=True),
    Case("lustre", "hpcs-07", 100),
    Case("lustre", "hpcs-07", 1000, most_seconds=0.5),
    Case("lustre", "hpcs-07", 10_000, most_seconds=5, most_mib=200),
    Case("dragonfly", "hpcs-07", 100_000, most_seconds=60, most_mib=1024, slow=True),
    Case("both-sides", "ior-easy", 1000, ("per_process=12MiB", "transfer_size=1MiB"), most_microseconds=10, ranks=8),
    Case("lustre", "ior-easy", 10_000, most_seconds=30, slow=True),
    Case("all-flows", "ior-hard", 1000, most_seconds=15, slow=True),
)


def simulate(program: Path, case: Case, files: Path, *more: str) -> dict[str, Any]:
    """Processor seconds, MiB at most, and flows."""
    file = files / f"{case.platform}.yaml"
    command = [str(program), "--platform", str(file) if file.exists() else case.platform, "--workload", case.workload]
    command += ["--nodes", str(case.clients), "--ppn", str(case.ranks), "--json", "--brief", *more]
    command += [part for setting in case.settings for part in ("--set", setting)]
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}.")
        out.seek(0)
        run = json.load(out)
    flows = max((p.get("network", {}).get("flows", 0) for p in run["phases"]), default=0)
    return {"seconds": usage.ru_utime + usage.ru_stime, "mib": usage.ru_maxrss / 1024, "flows": flows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="leave out what takes more than 10 s")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    program = find_program("iocast-sim")
    rows, missed = [], []
    with tempfile.TemporaryDirectory() as directory:
        files = Path(directory)
        (files / "all-flows.yaml").write_text(ALL_FLOWS)
        (files / "links.yaml").write_text(LINKS)
        (files / "both-sides.yaml").write_text(BOTH_SIDES)
        (files / "dragonfly.yaml").write_text(DRAGONFLY)
        for case in CASES:
            if given.small and case.slow:
                continue
            row = {
                "case": f"{case.workload} on {case.platform}",
                "clients": case.clients * case.ranks,
                **simulate(program, case, files),
            }
            row["microseconds"] = row["seconds"] / row["flows"] * 1e6 if row["flows"] else None
            if case.beside:
                row["simgrid"] = simulate(program, case, files, "--flows", "simgrid")["seconds"] / row["seconds"]
            for what, most in (
                ("seconds", case.most_seconds),
                ("mib", case.most_mib),
                ("microseconds", case.most_microseconds),
            ):
                if most is not None and row[what] > most:
                    missed.append(f"{row['case']}, {row['clients']:,} clients: {row[what]:.3g} {what}, target {most:g}")
            row["target"] = case.most_seconds
            rows.append(row)
    costs = {row["clients"]: row["microseconds"] for row in rows if row["case"] == "hpcs-07 on lustre"}
    if costs.get(100) and costs.get(10_000):
        growth = costs[10_000] / costs[100]
        if growth > MAX_GROWTH:
            missed.append(f"a flow of 10,000 clients costs {growth:.2f} times one of 100, target {MAX_GROWTH:g}")
    if given.json:
        print(json.dumps({"rows": rows, "missed": missed}, indent=1))
    else:
        print(
            text.table(
                ["case", "clients", "flows", "seconds", "target", "us a flow", "MiB", "SimGrid's seconds over ours"],
                [
                    [
                        row["case"],
                        f"{row['clients']:,}",
                        f"{row['flows']:,}",
                        f"{row['seconds']:.2f}",
                        "-" if row["target"] is None else f"{row['target']:g}",
                        "-" if row["microseconds"] is None else f"{row['microseconds']:.2f}",
                        f"{row['mib']:.0f}",
                        f"{row['simgrid']:.1f}" if "simgrid" in row else "-",
                    ]
                    for row in rows
                ],
            )
        )
        for sentence in missed:
            print(f"Missed: {sentence}.")
    sys.exit(4 if missed else 0)


if __name__ == "__main__":
    main()

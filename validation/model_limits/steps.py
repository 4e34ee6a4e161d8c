# SPDX-License-Identifier: Apache-2.0
"""Rates around powers of two of the number of client nodes: a bound of the simulator shows as a step from n to n + 1.

    python validation/model_limits/steps.py [--out validation/model_limits/steps.txt]

Metadata: read-only md-workbench on lustre, one rank a node; the rate is that of the server, which every further node
shares. Bulk: one transfer of 1 MiB of each node to servers that are never short, through cards of 100 MB/s; the rate
of a node is that of its card. `tests/python/test_cliffs.py` has the smaller ones of both. It takes minutes and 1 GB."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests"))
from programs import find_program  # noqa: E402

METADATA = [1 << k for k in (10, 12, 14, 16, 17, 18, 19)] + [1_000_000]
BULK = [1 << k for k in (10, 12, 14, 15, 16)] + [100_000]
CARDS = """schema_version: 1
stations: {oss: {servers: 64, count: 64, spread: object}}
network: {latency: 1us, node_bandwidth: 100MB/s, server_bandwidth: 100GB/s, never_limited: 1MiB}
operations:
  mkdir: [{delay: 1us}]
  rmdir: [{delay: 1us}]
  stat: [{delay: 1us}]
  unlink: [{delay: 1us}]
  open: [{delay: 1us}]
  close: [{delay: 1us}]
  fsync: [{delay: 1us}]
  pwrite: [{transfer: write, station: oss}]
  pread: [{transfer: read, station: oss}]
"""
SMALL = ("datasets=1", "objects=2", "iterations=1", "phases=benchmark", "read_only=true")
ONE_TRANSFER = ("transfer_size=1MiB", "per_process=1MiB", "shift_nodes=0")


def rate(simulator: Path, platform: str, workload: str, settings: tuple[str, ...], phase: str, nodes: int) -> float:
    """Operations a second of all nodes in the phase."""
    command = [str(simulator), "--platform", platform, "--workload", workload, "--nodes", str(nodes)]
    command += [part for setting in settings for part in ("--set", setting)]
    done = subprocess.run([*command, "--json", "--brief"], capture_output=True, text=True, check=True)
    found = next(one for one in json.loads(done.stdout)["phases"] if one["name"] == phase)
    return float(found["operations"] / found["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="text file")
    options = parser.parse_args()
    simulator = find_program("iocast-sim")
    assert simulator is not None, "iocast-sim is not built; run ./check"
    lines = ["python validation/model_limits/steps.py", "", "kind nodes: rate of all, then of n + 1 over that of n"]
    with tempfile.TemporaryDirectory() as directory:
        cards = Path(directory) / "cards.yaml"
        cards.write_text(CARDS)
        for kind, scales in (("metadata", METADATA), ("bulk", BULK)):
            for nodes in scales:
                begun = time.monotonic()
                if kind == "metadata":
                    few, more = (
                        rate(simulator, "lustre", "md-workbench", SMALL, "benchmark", n) for n in (nodes, nodes + 1)
                    )
                    ratio = more / few
                else:
                    few, more = (
                        rate(simulator, str(cards), "ior-easy", ONE_TRANSFER, "write", n) for n in (nodes, nodes + 1)
                    )
                    ratio = (more / (nodes + 1)) / (few / nodes)
                lines.append(f"{kind} {nodes}: {few:.6g}/s, {ratio:.5f}")
                print(f"{lines[-1]} ({time.monotonic() - begun:.0f} s)", flush=True)
    if options.out:
        options.out.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()

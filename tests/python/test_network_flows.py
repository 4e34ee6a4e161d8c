# SPDX-License-Identifier: Apache-2.0
"""Flows on the links of a network: against SimGrid's, and whatever their size no more than links carry."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

PLATFORM = """schema_version: 1
stations: {{s: {{count: 3, servers: 400, spread: {spread}}}}}
network: {{latency: 20us, node_bandwidth: {node}, server_bandwidth: 300MB/s{more}}}
operations:
  mkdir: []
  rmdir: []
  stat: []
  unlink: []
  open: []
  close: []
  fsync: []
  create: {{}}
  pwrite: [{{transfer: write, station: s{stripes}}}, {{station: s, demand: 1ms, bandwidth: 1GB/s}}]
  pread: [{{station: s, demand: {{law: exponential, mean: 3ms}}}}, {{transfer: read, station: s{stripes}}}]
"""


def simulated(simulator: Path, file: Path, workload: str, *arguments: str) -> dict[str, Any]:
    command = [str(simulator), "--platform", str(file), "--workload", workload, "--json", "--brief", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize(
    ("node", "more", "spread", "stripes", "ppn"),
    [
        ("1GB/s", "", "object", "", "4"),
        ("200MB/s", "", "object", "", "4"),
        ("250MB/s", ", backbone_bandwidth: 400MB/s", "object", "", "3"),
        ("400MB/s", "", "stripe, stripe_size: 256KiB", ", stripes: spanned", "2"),
    ],
)
def test_flows_take_as_long_as_those_of_simgrid(
    simulator: Path, tmp_path: Path, node: str, more: str, spread: str, stripes: str, ppn: str
) -> None:
    """Servers, cards, a backbone and striped accesses limit in turn; no two flows begin together when reading."""
    file = tmp_path / "platform.yaml"
    file.write_text(PLATFORM.format(node=node, more=more, spread=spread, stripes=stripes))
    arguments = ("--nodes", "5", "--ppn", ppn, "--set", "per_process=8MiB", "--set", "transfer_size=1MiB")
    own, simgrid = (simulated(simulator, file, "ior-easy", *arguments, "--flows", by) for by in ("own", "simgrid"))
    moving = [phase["name"] for phase in own["phases"] if "network" in phase]
    assert len(moving) == 2
    for one, other in zip(own["phases"], simgrid["phases"], strict=True):
        assert one["seconds"] == pytest.approx(other["seconds"], rel=1e-6)
        for operation, latency in one["latency"].items():
            assert latency["mean"] == pytest.approx(other["latency"][operation]["mean"], rel=1e-6)


def written(simulator: Path, file: Path, size: int) -> tuple[float, dict[str, Any]]:
    """Bytes a second, and the busiest link."""
    arguments = ("--nodes", "40", "--ppn", "2", "--set", f"transfer_size={size}B", "--set", f"per_process={40 * size}B")
    run = simulated(simulator, file, "ior-easy", *arguments)
    phase = next(phase for phase in run["phases"] if "pwrite" in phase["latency"])
    return 80 * 40 * size / phase["seconds"], phase["network"]["busiest"][0]


@pytest.mark.parametrize("size", [16384, 1048576])
def test_one_byte_more_or_less_changes_no_rate(simulator: Path, tmp_path: Path, size: int) -> None:
    """80 clients keep three servers' links full, with transfers that may pass freely and with those that may not."""
    file = tmp_path / "platform.yaml"
    text = PLATFORM.format(node="1GB/s", more="", spread="round-robin", stripes="").replace(
        "demand: 1ms", "demand: 1us"
    )
    file.write_text(text.replace("servers: 4", "servers: 400"))
    rates = []
    for each in (size - 1, size, size + 1):
        rate, busiest = written(simulator, file, each)
        assert busiest["name"].startswith("s ") and busiest["busy"] <= 1
        rates.append(rate)
    assert max(rates) <= 3 * 300e6
    assert rates == pytest.approx([rates[1]] * 3, rel=0.02)


def test_the_former_key_is_refused_with_what_takes_its_place(simulator: Path, tmp_path: Path) -> None:
    file = tmp_path / "platform.yaml"
    file.write_text("schema_version: 1\nextends: lustre\nnetwork: {flow_threshold: 1MiB}\n")
    done = subprocess.run([str(simulator), "--platform", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and f"{file}:3: " in done.stderr
    assert "'flow_threshold' is no key here; write 'never_limited: SIZE'" in done.stderr

# SPDX-License-Identifier: Apache-2.0
"""Collective accesses by aggregators: by hand, and faster than independent ones where locks change hands."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

PLATFORM = """schema_version: 1
clients: {{collective: {{aggregators: 1, {units}}}}}
stations:
  oss: {{count: 4, spread: stripe, stripe_size: 100kB, disk: {{read: 10MB/s, write: 10MB/s, overhead: 1ms}}}}
network: {{node_bandwidth: 100MB/s, latency: 1ms}}
operations:
  mkdir: []
  rmdir: []
  open: []
  close: []
  unlink: []
  fsync: []
  create: {{}}
  pwrite: [{{disk: write, station: oss, stripes: spanned}}]
  pread: [{{disk: read, station: oss, stripes: spanned}}]
"""


def phase(
    simulator: Path, platform: Path | str, *arguments: str, name: str = "write", workload: str = "ior-hard"
) -> dict[str, Any]:
    command = [str(simulator), "--platform", str(platform), "--workload", workload, "--json", "--brief", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = next(p for p in json.loads(done.stdout)["phases"] if p["name"] == name)
    return found


@pytest.mark.parametrize("units", ["stripes_of: oss", "unit: 100kB"])
def test_two_phases_by_hand(simulator: Path, tmp_path: Path, units: str) -> None:
    """Four nodes of ten ranks write 40 records of 10 kB, a stripe at each of four servers. Of its 100 kB a node keeps a
    quarter; 75 kB leave its card. Then each aggregator writes 100 kB, to one server."""
    file = tmp_path / "p.yaml"
    file.write_text(PLATFORM.format(units=units))
    where = ("--nodes", "4", "--ppn", "10", "--set", "segments=3", "--set", "transfer_size=10kB")
    by_hand = 3 * (1e-3 + 75e3 / 100e6 + 1e-3 + 100e3 / 10e6)
    together = phase(simulator, file, *where, "--set", "together=all")
    assert together["seconds"] == pytest.approx(by_hand, rel=1e-6)
    assert together["by_operation"]["pwrite"]["bytes"] == 3 * 40 * 10_000
    read = phase(simulator, file, *where, "--set", "together=all", name="read")
    assert read["seconds"] == pytest.approx(by_hand, rel=1e-6)
    independent = phase(simulator, file, *where, "--set", "together=opening")
    assert independent["seconds"] == pytest.approx(3 * 10 * (1e-3 + 10e3 / 10e6), rel=0.35)


def test_a_checkpoint_in_one_file_by_hand(simulator: Path, tmp_path: Path) -> None:
    """HPCS scenario 6, whose four nodes of ten processes deal out three records of 10 kB each: as ior-hard in
    the test before."""
    file = tmp_path / "p.yaml"
    file.write_text(PLATFORM.format(units="stripes_of: oss"))
    settings = "layout=interleaved record=10kB arrays=1 share=1 memory=300kB sync=false"
    where = ["--nodes", "4", "--ppn", "10", *(word for one in settings.split() for word in ("--set", one))]
    by_hand = 3 * (1e-3 + 75e3 / 100e6 + 1e-3 + 100e3 / 10e6)
    for name in ("checkpoint", "restart"):
        together, independent = (
            phase(simulator, file, *where, "--set", f"together={how}", name=name, workload="hpcs-06")["seconds"]
            for how in ("all", "opening")
        )
        assert together == pytest.approx(by_hand, rel=1e-6)
        assert independent == pytest.approx(3 * 10 * (1e-3 + 10e3 / 10e6), rel=0.35)


@pytest.mark.parametrize("nodes", [4, 64, 65, 1024, 2049, 4096])
def test_all_bytes_are_exchanged_on_any_number_of_nodes(simulator: Path, tmp_path: Path, nodes: int) -> None:
    """Where servers take next to no time, a step takes what the cards need. When all nodes aggregate, each keeps its
    n-th part of 10 kB and sends the rest; when four do, each receives the quarter of all others' bytes."""
    text = PLATFORM.replace("read: 10MB/s, write: 10MB/s, overhead: 1ms", "read: 10TB/s, write: 10TB/s, overhead: 1ns")
    text = text.replace("node_bandwidth: 100MB/s, latency: 1ms", "node_bandwidth: 1MB/s, latency: 0s")
    text = text.replace("stripe_size: 100kB", "stripe_size: 1kB")
    where = ("--nodes", str(nodes), "--ppn", "1", "--set", "segments=1", "--set", "transfer_size=10kB")
    others = 10e3 * (nodes - 1)
    file = tmp_path / "p.yaml"
    for units, bytes_of_a_card in {"unit: 10kB": others / nodes, "stripes_of: oss": others / 4}.items():
        file.write_text(text.format(units=units))
        seconds = phase(simulator, file, *where, "--set", "together=all")["seconds"]
        assert seconds == pytest.approx(bytes_of_a_card / 1e6, rel=5e-3), units


def test_collective_is_faster_where_locks_change_hands(simulator: Path, tmp_path: Path) -> None:
    """47,008 B of each of 40 ranks in one file of `lustre-gigabit`, whose nodes keep locks of stripes."""
    file = tmp_path / "p.yaml"
    file.write_text(
        "schema_version: 1\nextends: lustre-gigabit\nclients: {collective: {aggregators: 1, stripes_of: pool}}\n"
    )
    where = ("--nodes", "10", "--ppn", "4", "--set", "segments=10")
    together, independent = (
        phase(simulator, file, *where, "--set", f"together={how}")["seconds"] for how in ("all", "opening")
    )
    assert together < independent / 2


@pytest.mark.parametrize(
    ("units", "sentence"),
    [("unit: 1MiB, stripes_of: oss", "one of the two"), ("unit: 0B", "unit"), ("stripes_of: osss", "oss")],
)
def test_units_are_given_once(simulator: Path, tmp_path: Path, units: str, sentence: str) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(PLATFORM.format(units=units))
    command = [str(simulator), "--platform", str(file), "--workload", "ior-hard"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and f"{file}:2" in done.stderr and sentence in done.stderr, done.stderr

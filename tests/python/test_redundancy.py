# SPDX-License-Identifier: Apache-2.0
"""Copies and erasure coding of a station's objects: times and busy times by hand."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from iocast.analytic import solve
from iocast.analytic.routes import read_routes
from iocast.errors import InputError

PLATFORM = """schema_version: 1
stations:
  osd: {{count: 6, spread: stripe, stripe_size: 1MB, disk: {{read: 10MB/s, write: 10MB/s}}, {more}}}
network: {{node_bandwidth: 1GB/s, server_bandwidth: 100MB/s, latency: 1ms}}
operations:
  mkdir: []
  rmdir: []
  open: []
  close: []
  unlink: []
  fsync: []
  create: {{}}
  pwrite: [{{transfer: write, station: osd, stripes: spanned{demand}}}]
  pread: [{{transfer: read, station: osd, stripes: spanned{demand}}}]
"""
COPIES = "redundancy: {copies: 3}"
CODED = "redundancy: {data: 2, parity: 1, unit: 250kB}"


def platform(tmp_path: Path, more: str, demand: str = "") -> Path:
    file = tmp_path / "p.yaml"
    file.write_text(PLATFORM.format(more=more, demand=demand))
    return file


def ran(simulator: Path, file: Path | str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(simulator), "--platform", str(file), "--workload", "ior-easy", "--json", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def phase(run: subprocess.CompletedProcess[str], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in json.loads(run.stdout)["phases"] if one["name"] == name)
    return found


@pytest.mark.parametrize(
    ("more", "size", "write", "read"),
    [
        # A message takes 1 ms; a MB from a node takes 10 ms into a server's card, 100 ms at a disk.
        ("", "1MB", 1 + 100, 1 + 100),
        ("redundancy: {copies: 1}", "1MB", 1 + 100, 1 + 100),
        (COPIES, "1MB", 1 + 10 + 1 + 100, 1 + 100),
        # A stripe of 500 kB is 250 kB each at two data instances and one of parity.
        (CODED, "1MB", 1 + 10 + 1 + 50, 1 + 50 + 1 + 10),
        # A part of a stripe is written as all of it, which was read before.
        (CODED, "100kB", (1 + 25) + (1 + 1) + (1 + 25), (1 + 25) + (1 + 1)),
    ],
)
def test_one_access_by_hand(simulator: Path, tmp_path: Path, more: str, size: str, write: float, read: float) -> None:
    file = platform(tmp_path, more)
    run = ran(simulator, file, "--set", f"per_process={size}", "--set", f"transfer_size={size}")
    assert phase(run, "write")["seconds"] == pytest.approx(write / 1e3, rel=1e-6)
    assert phase(run, "read")["seconds"] == pytest.approx(read / 1e3, rel=1e-6)


@pytest.mark.parametrize(
    ("more", "factor"), [("", 1), (COPIES, 3), ("redundancy: {data: 4, parity: 2, unit: 25kB}", 1.5)]
)
def test_many_writers_take_the_time_of_all_bytes_on_all_disks(
    simulator: Path, tmp_path: Path, more: str, factor: float
) -> None:
    """Twelve ranks write 6 MB each, a MB at each of the six instances, in trains of requests: 12 MB an instance and
    what is redundant, at 10 MB/s."""
    file = platform(tmp_path, f"rpc: {{size: 100kB, in_flight: 8}}, {more}", ", demand: 0us")
    size = ("--set", "per_process=6MB", "--set", "transfer_size=6MB")
    write = phase(ran(simulator, file, "--nodes", "6", "--ppn", "2", *size), "write")
    at_disk = 12 * 1e6 * factor / 10e6
    assert write["seconds"] == pytest.approx(at_disk, rel=0.02) and write["seconds"] >= at_disk
    busiest = write["network"]["busiest"]
    assert [link["busy"] for link in busiest] == pytest.approx([at_disk / write["seconds"]] * 3, rel=1e-6)


def test_a_mirror_of_two_targets_halves_what_beegfs_writes(simulator: Path, tmp_path: Path) -> None:
    file = tmp_path / "mirror.yaml"
    file.write_text("schema_version: 1\nextends: beegfs\nstations: {storage: {redundancy: {copies: 2}}}\n")
    many = ("--nodes", "64", "--ppn", "4", "--set", "per_process=256MiB", "--set", "transfer_size=64MiB")
    plain, mirrored = (phase(ran(simulator, which, *many), "write") for which in ("beegfs", file))
    assert 1.7 < mirrored["seconds"] / plain["seconds"] < 2.5


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("redundancy: {copies: 7}", "7 copies need as many instances; the station 'osd' has 6"),
        ("redundancy: {copies: 2, data: 2, parity: 1}", "give one of the two"),
        ("redundancy: {replicas: 2}", "write copies"),
        ("redundancy: {data: 4, parity: 3}", "7 shards need as many"),
        ("redundancy: {data: 3, parity: 1, unit: 100kB}", "must fit a whole number of times"),
    ],
)
def test_what_redundancy_cannot_be_is_refused(simulator: Path, tmp_path: Path, more: str, sentence: str) -> None:
    file = platform(tmp_path, more)
    done = ran(simulator, file)
    assert done.returncode == 2 and f"{file}:3" in done.stderr and sentence in done.stderr, done.stderr


@pytest.mark.parametrize("clients", [1, 24])
def test_the_analytic_solver_knows_copies(simulator: Path, tmp_path: Path, clients: int) -> None:
    file = platform(tmp_path, COPIES).read_text().replace(", stripes: spanned", "")
    (tmp_path / "q.yaml").write_text(file.replace("1MB,", "1MB, stripe_count: 1, allocation: round-robin,", 1))
    size = ("--set", "per_process=16MB", "--set", "transfer_size=1MB")
    write = phase(ran(simulator, tmp_path / "q.yaml", "--nodes", str(clients), *size), "write")
    rate = write["by_operation"]["pwrite"]["count"] / write["seconds"]
    command = [str(simulator), "--platform", str(tmp_path / "q.yaml"), "--print-platform"]
    known = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    found = solve(known, {"pwrite": 1}, clients, 1, 0.0, 16 * clients, size=1e6, objects=float(clients))
    assert found.rate == pytest.approx(rate, rel=1e-3 if clients == 1 else 0.1)


def test_the_analytic_solver_says_that_it_knows_no_shards(simulator: Path, tmp_path: Path) -> None:
    file = platform(tmp_path, CODED)
    file.write_text(file.read_text().replace(", stripes: spanned", ""))
    command = [str(simulator), "--platform", str(file), "--print-platform"]
    known = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    with pytest.raises(InputError, match="shards of 'osd'"):
        read_routes(known, {"pread": 1}, 5e5)

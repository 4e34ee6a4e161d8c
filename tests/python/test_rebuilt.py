# SPDX-License-Identifier: Apache-2.0
"""A disk that is rebuilt gets its bytes from the others over the network: by hand."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

PLATFORM = """schema_version: 1
stations:
  s:
    {{count: {count}, spread: stripe, stripe_count: 1, allocation: round-robin,
      disk: {{read: {disk}, write: {disk}}}{more}}}
network: {{latency: 2us, node_bandwidth: 10GB/s, server_bandwidth: {link}}}
failures: {{{failures}}}
operations:
  mkdir: []
  rmdir: []
  unlink: []
  open: []
  close: []
  fsync: []
  create: {{}}
  pwrite: [{{transfer: write, station: s}}]
  pread: [{{transfer: read, station: s}}]
"""
FILE = 64 * 2**20
"""Bytes that each of two nodes writes, to a server each, at 100 MB/s."""
REBUILT = 40e6


def ran(
    simulator: Path,
    place: Path,
    failures: str = "",
    disk: str = "10GB/s",
    link: str = "100MB/s",
    count: int = 2,
    more: str = "",
) -> subprocess.CompletedProcess[str]:
    file = place / "p.yaml"
    file.write_text(PLATFORM.format(failures=failures, disk=disk, link=link, count=count, more=more))
    command = [str(simulator), "--platform", str(file), "--workload", "ior-easy", "--json", "--brief"]
    sizes = ("--nodes", str(count), "--set", f"per_process={FILE}B", "--set", "transfer_size=1MiB")
    return subprocess.run([*command, *sizes], capture_output=True, text=True, check=False)


def write(run: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert run.returncode == 0, run.stderr
    return next(one for one in json.loads(run.stdout)["phases"] if one["name"] == "write")


def rebuilt(length: str, disk: str = "disk: s 1", size: float = REBUILT) -> str:
    return f"lost: {{{disk}, at: 0s, length: {length}, rebuild: {size:.0f}B}}"


@pytest.mark.parametrize(("disk", "link"), [("10GB/s", "100MB/s"), ("100MB/s", "10GB/s")])
def test_what_is_sent_takes_links_and_disks_from_clients(simulator: Path, tmp_path: Path, disk: str, link: str) -> None:
    """The clients' flow and the one that rebuilds share 100 MB/s evenly until the latter has moved all. At a tenth of
    that the client's has nine tenths."""
    alone = float(write(ran(simulator, tmp_path, disk=disk, link=link))["seconds"])
    assert alone == pytest.approx(FILE / 100e6, rel=1e-3)
    soon = float(write(ran(simulator, tmp_path, rebuilt("1ms"), disk, link))["seconds"])
    assert soon == pytest.approx((FILE + REBUILT) / 100e6, rel=1e-3)
    slowly = float(write(ran(simulator, tmp_path, rebuilt("4s"), disk, link))["seconds"])
    assert slowly == pytest.approx(FILE / 90e6, rel=1e-3)


def into_servers(run: subprocess.CompletedProcess[str]) -> dict[str, float]:
    """Bytes of the busiest links."""
    return {link["name"]: link["bytes"] for link in write(run)["network"]["busiest"]}


def test_all_bytes_arrive_and_none_twice(simulator: Path, tmp_path: Path) -> None:
    """What leaves the other server comes to the one that is rebuilt, beside the clients' bytes."""
    carried = into_servers(ran(simulator, tmp_path, rebuilt("1ms")))
    assert carried["s 1 in"] == pytest.approx(FILE + REBUILT, rel=1e-9)
    assert carried["s 0 out"] == pytest.approx(REBUILT, rel=1e-9)


def test_of_coded_data_each_byte_takes_as_many_as_have_data(simulator: Path, tmp_path: Path) -> None:
    coded = ", redundancy: {data: 2, parity: 1}"
    alone = into_servers(ran(simulator, tmp_path, count=3, more=coded))
    both = into_servers(ran(simulator, tmp_path, rebuilt("1ms"), count=3, more=coded))
    before = max(size for name, size in alone.items() if name.endswith(" in"))
    assert both["s 1 in"] == pytest.approx(before + 2 * REBUILT, rel=1e-9)


def test_it_begins_at_its_time(simulator: Path, tmp_path: Path) -> None:
    """After 30 MB; the rest of the client's bytes has half of the link."""
    late = f"lost: {{disk: s 1, at: 300ms, length: 1ms, rebuild: {REBUILT:.0f}B}}"
    run = ran(simulator, tmp_path, late)
    assert float(write(run)["seconds"]) == pytest.approx(0.3 + (FILE - 30e6) / 50e6, rel=1e-3)


@pytest.mark.parametrize(
    ("failures", "count", "sentence"),
    [
        (rebuilt("1s", "link: s 1"), 2, "bytes are rebuilt on a disk"),
        (rebuilt("1s", "disk: s 0"), 1, "nobody sends 's' its bytes"),
        (rebuilt("1s", size=0), 2, "0B"),
    ],
)
def test_what_cannot_be_is_refused(simulator: Path, tmp_path: Path, failures: str, count: int, sentence: str) -> None:
    done = ran(simulator, tmp_path, failures, count=count)
    assert done.returncode == 2 and f"{tmp_path}/p.yaml:" in done.stderr and sentence in done.stderr, done.stderr

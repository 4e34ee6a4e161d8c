# SPDX-License-Identifier: Apache-2.0
"""Buffers in whole simulations: flows out of them, what the run directory says of them, and the same bytes for the same
seed."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

MIB = 1 << 20
PLATFORM = """schema_version: 1
stations:
  memory: {{per: node, servers: 8}}
  server: {{count: {servers}, spread: object}}
  disk: {{count: 4, spread: object}}
  far: {{count: 4, spread: stripe, stripe_size: 256KiB}}
network: {{node_bandwidth: 100MiB/s, server_bandwidth: {server}, latency: 0s, never_limited: 64KiB}}
buffers:
  {buffers}
operations:
  mkdir: []
  rmdir: []
  open: []
  close: []
  unlink: []
  create: {{}}
  pwrite: [{{station: memory, demand: 0s, bandwidth: 10GiB/s}}, {{buffer: b}}]
  fsync: [{{flush: b}}]
"""


def simulate(
    simulator: Path,
    place: Path,
    buffers: str,
    server: str = "1000MiB/s",
    servers: int = 2,
    fsync: str = "never",
    seed: int = 1,
) -> dict[str, Any]:
    """The phase in which each rank writes 32 MiB to a file of its own in blocks of 256 KiB, and what was written."""
    (place / "p.yaml").write_text(PLATFORM.format(buffers=buffers, server=server, servers=servers))
    settings = [
        "block_size=256KiB",
        "per_process=32MiB",
        "sharing=process",
        "run=write",
        "phases=benchmark",
        f"fsync={fsync}",
    ]
    command = [
        str(simulator),
        "--platform",
        str(place / "p.yaml"),
        "--workload",
        "application",
        *(a for s in settings for a in ("--set", s)),
    ]
    done = subprocess.run(
        [*command, "--seed", str(seed), "--nodes", "4", "--json"], capture_output=True, text=True, check=True
    )
    phase: dict[str, Any] = json.loads(done.stdout)["phases"][-1]
    buffer = phase["buffers"]["b"]
    assert buffer["entered"] == 4 * 32 * MIB == buffer["drained"] + buffer["held"]
    return phase


def test_the_network_is_the_drain(simulator: Path, tmp_path: Path) -> None:
    """Flows of a MiB, one at a time from each node: the last block is in when all but 4 MiB (and what the copy takes)
    are out."""
    phase = simulate(
        simulator,
        tmp_path,
        "b: {capacity: 4MiB, unit: 1MiB, at_once: 1, linger: 1s, drain: [{transfer: write, station: server}]}",
    )
    assert phase["seconds"] == pytest.approx(28 / 100, abs=1e-3)
    assert phase["buffers"]["b"]["peak"] == 4 * MIB and phase["buffers"]["b"]["pieces"] == 4 * 28
    flushed = simulate(
        simulator,
        tmp_path,
        "b: {capacity: 4MiB, unit: 1MiB, linger: 1s, drain: [{transfer: write, station: server}]}",
        fsync="end",
    )
    assert flushed["seconds"] == pytest.approx(32 / 100, abs=1e-3) and flushed["buffers"]["b"]["held"] == 0


def test_flows_of_buffers_share_what_is_short(simulator: Path, tmp_path: Path) -> None:
    """One server for all: four nodes get a quarter of its link each."""
    buffers = "b: {capacity: 4MiB, unit: 1MiB, at_once: 4, drain: [{transfer: write, station: server}]}"
    phase = simulate(simulator, tmp_path, buffers, servers=1, server="100MiB/s", fsync="end")
    assert phase["seconds"] == pytest.approx(4 * 32 / 100, rel=0.01)


def test_servers_buffers_drain_over_the_network(simulator: Path, tmp_path: Path) -> None:
    """A burst buffer takes all at once and sends it on to the disks, over its own link."""
    buffers = "b: {station: server, capacity: 1GiB, unit: 1MiB, drain: [{transfer: write, station: disk}]}"
    phase = simulate(simulator, tmp_path, buffers, servers=1, server="100MiB/s")
    assert phase["seconds"] == pytest.approx(32 / 10240, rel=1e-3)
    flushed = simulate(simulator, tmp_path, buffers, servers=1, server="100MiB/s", fsync="end")
    assert flushed["seconds"] == pytest.approx(4 * 32 / 100, rel=0.01)


def test_a_drain_competes_with_reads(simulator: Path, tmp_path: Path) -> None:
    """At one server, pieces of 10 ms each and reads wait for each other; the drain's work is reported apart."""
    buffers = "b: {per: system, capacity: 1GiB, unit: 1MiB, at_once: 4, drain: [{station: server, demand: 10ms}]}"
    phase = simulate(simulator, tmp_path, buffers, servers=1, fsync="end")
    drain = phase["stations"]["server"]["operations"]["drain"]
    assert drain["visits"] == phase["buffers"]["b"]["pieces"] and drain["service"] == pytest.approx(10e-3)
    assert phase["stations"]["server"]["utilisation"] == pytest.approx(1, abs=1e-3)


def test_same_seed_same_bytes(simulator: Path, tmp_path: Path) -> None:
    law = "{law: lognormal, mean: 5ms, sigma: 1}"
    buffers = (
        "b: {capacity: 4MiB, unit: 1MiB, at_once: 3, linger: 2ms, resume: 0.5, drain: [{transfer: write, station:"
        f" server}}, {{station: disk, demand: {law}}}]}}"
    )

    def seconds(seed: int) -> str:
        return json.dumps(simulate(simulator, tmp_path, buffers, seed=seed))

    assert seconds(1) == seconds(1) != seconds(2)


def test_pieces_take_as_long_as_the_law_says(simulator: Path, tmp_path: Path) -> None:
    buffers = "b: {capacity: 1MiB, drain: [{delay: 1ms}, {station: disk, demand: {law: exponential, mean: 5ms}}]}"
    phase = simulate(simulator, tmp_path, buffers, fsync="end")
    drain = phase["stations"]["disk"]["operations"]["drain"]
    assert drain["visits"] == 4 * 128
    assert drain["service"] == pytest.approx(5e-3, rel=4 / 512**0.5)


def test_a_drain_over_stripes_waits_for_a_server_that_fails(simulator: Path, tmp_path: Path) -> None:
    """Four disks have 0.32 s of work each. One is away for 0.2 s, and does what it had in service once more; nothing
    that was written is lost."""
    failing = """b:
    capacity: 64MiB
    unit: 1MiB
    at_once: 8
    drain: [{station: far, demand: 0s, bandwidth: 100MiB/s, stripes: spanned}]
failures:
  far1: {station: far, instance: 1, at: 50ms, length: 200ms}"""
    phase = simulate(simulator, tmp_path, failing, fsync="end")
    assert phase["buffers"]["b"]["held"] == 0
    assert phase["stations"]["far"]["operations"]["drain"]["replays"] > 0
    assert 0.52 < phase["seconds"] < 0.56

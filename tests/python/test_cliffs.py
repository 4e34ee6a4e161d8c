# SPDX-License-Identifier: Apache-2.0
"""Answers at scale: no bound of the simulator's implementation changes them, and idle nodes beside a workload change
nothing."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

FREE = "{delay: 1us}"
REST = "\n".join(f"  {name}: [{FREE}]" for name in ("mkdir", "rmdir", "stat", "unlink", "open", "close", "fsync"))


def platform(directory: Path, body: str, operations: str) -> Path:
    file = directory / "platform.yaml"
    file.write_text(f"schema_version: 1\nserves: {{node_local: all}}\n{body}operations:\n{REST}\n{operations}")
    return file


def phase(run, name: str) -> dict:
    return next(p for p in run["phases"] if p["name"] == name)


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    """Client nodes with cards of 100 MB/s before servers that are never short."""
    return platform(
        tmp_path,
        "stations: {oss: {servers: 64, count: 64, spread: object}}\n"
        "network: {latency: 1us, node_bandwidth: 100MB/s, server_bandwidth: 100GB/s, never_limited: 1MiB}\n",
        "  pwrite: [{transfer: write, station: oss}]\n  pread: [{transfer: read, station: oss}]\n",
    )


def test_one_stream_has_one_network_card_however_many_nodes_are_idle(simulate, cards):
    seconds = [
        phase(simulate(cards, "--workload", "hpcs-01", "--set", "memory=16MiB", "--nodes", nodes), "write")["seconds"]
        for nodes in ("1", "1024", "1025", "4096", "10240")
    ]
    assert seconds == pytest.approx([seconds[0]] * 5, rel=1e-6)
    assert 16 * 2**20 * 0.5 / seconds[0] < 100e6


@pytest.mark.parametrize("nodes", [1024, 2048, 4096])
def test_one_more_node_does_not_change_the_rate_of_a_node(simulate, cards, nodes):
    arguments = "--workload ior-easy --set transfer_size=1MiB --set per_process=1MiB --set shift_nodes=0".split()
    seconds = [
        phase(simulate(cards, *arguments, "--nodes", str(n)), "write")["seconds"] for n in (nodes - 1, nodes, nodes + 1)
    ]
    assert seconds == pytest.approx([seconds[0]] * 3, rel=0.01)


def test_nodes_that_share_a_network_card_by_turns_are_not_slower_beyond_a_power_of_two(simulate, cards):
    """Four ranks a node: they share its card at 1024 nodes and at 1025."""
    arguments = (
        "--ppn 4 --workload ior-easy --set transfer_size=1MiB --set per_process=1MiB --set shift_nodes=0"
    ).split()
    of = [phase(simulate(cards, *arguments, "--nodes", n), "write")["seconds"] for n in ("100", "1025")]
    assert of[1] == pytest.approx(of[0], rel=0.01)
    assert of[0] == pytest.approx(4 * 2**20 / 100e6, rel=0.01)


@pytest.mark.parametrize("nodes", [1024, 4096, 65536])
def test_metadata_rates_of_a_node_have_no_step(simulate, nodes):
    """A server that is the bottleneck: what changes from n to n + 1 clients is the rate of each, by 1 / n."""
    settings = (
        "--workload",
        "md-workbench",
        "--set",
        "datasets=1",
        "--set",
        "objects=2",
        "--set",
        "iterations=1",
        "--set",
        "phases=benchmark",
        "--set",
        "read_only=true",
    )
    rates = [phase(simulate("lustre", *settings, "--nodes", str(n)), "benchmark")["rate"] for n in (nodes, nodes + 1)]
    assert rates[1] == pytest.approx(rates[0], rel=0.01)


def test_range_locks_cost_the_same_at_ten_percent_more_nodes(simulate, tmp_path):
    file = platform(
        tmp_path,
        "stations: {mds: {servers: 100000}}\nlocks: {rng: {per: object, hand_over: 1ms, extent: 4KiB, grow: 0B}}\n",
        "  pwrite: [{station: mds, demand: 10us, lock: rng}]\n  pread: [{station: mds, demand: 10us, lock: rng,"
        " lock_mode: shared}]\n",
    )
    arguments = "--workload ior-hard --set segments=4 --set shift_nodes=1 --set transfer_size=4KiB".split()
    reads = [phase(simulate(file, *arguments, "--nodes", nodes), "read") for nodes in ("1000", "1100")]
    for read in reads:
        assert read["locks"]["rng"]["called_back"] == read["locks"]["rng"]["taken"]
        assert "forgotten" not in read["locks"]["rng"]
    assert reads[1]["seconds"] == pytest.approx(reads[0]["seconds"], rel=0.01)


def test_read_ahead_knows_more_than_a_thousand_readers(simulate, tmp_path):
    file = platform(
        tmp_path,
        "stations: {dev: {servers: 100000}}\ncaches: {srv: {per: system, capacity: 64GiB, page: 1MiB, ahead: 8MiB,"
        " unit: 1MiB, at_once: 100000, fetch: [{station: dev, demand: 1ms}]}}\n",
        "  pwrite: [{delay: 1us}]\n  pread: [{delay: 1ms}, {cache: srv, miss: [{station: dev, demand: 1ms}]}]\n",
    )
    arguments = "--workload ior-easy --set transfer_size=1MiB --set per_process=8MiB --set shift_nodes=0".split()
    reads = [phase(simulate(file, *arguments, "--nodes", nodes), "read") for nodes in ("1000", "1050")]
    shares = [read["caches"]["srv"]["hits"] / read["caches"]["srv"]["lookups"] for read in reads]
    assert shares == pytest.approx([7 / 8] * 2)
    assert reads[1]["seconds"] == pytest.approx(reads[0]["seconds"], rel=0.01)


def test_a_lock_that_many_nodes_share_takes_linear_time(simulate, tmp_path):
    """User time of the simulator grows linearly with the nodes that read under one lock; it was quadratic."""
    file = platform(
        tmp_path,
        "stations: {mds: {servers: 1000000}}\nlocks: {l: {per: system, hand_over: 10us}}\n",
        "  create: {open: [], write: [{delay: 1us}], close: []}\n  read: {open: [], read: [{station: mds, demand: 10us,"
        " lock: l, lock_mode: shared}], close: []}\n",
    )
    arguments = (
        "--workload md-workbench --set datasets=1 --set objects=2 --set iterations=2 --set "
        "phases=benchmark --set read_only=true"
    ).split()
    taken = []
    for nodes in ("1", "32000", "64000"):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        simulate(file, *arguments, "--nodes", nodes, "--brief")
        taken.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    start, few, many = taken
    assert many - start < 2.8 * max(few - start, 0.02)  # linear: twice as long; it was 3.7 times

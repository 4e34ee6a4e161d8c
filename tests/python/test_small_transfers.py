# SPDX-License-Identifier: Apache-2.0
"""The analytic solver has small transfers share links that they fill, as the simulator does."""

from __future__ import annotations

from pathlib import Path

import pytest

from iocast import analytic
from iocast.ground.binaries import resolve_platform

MIX = {"stat": 1.0, "read": 1.0, "unlink": 1.0, "create": 1.0}
NODES, SIZE = 4, 3901.0


def solved(tmp_path: Path, network: str) -> analytic.Solution:
    file = tmp_path / "edited.yaml"
    file.write_text(f"schema_version: 1\nextends: lustre\nnetwork: {{{network}}}\n")
    return analytic.solve(resolve_platform(file), MIX, NODES, 4, 0, 10_000, size=SIZE)


@pytest.mark.parametrize(
    ("key", "count"), [("node_bandwidth", NODES), ("server_bandwidth", None), ("backbone_bandwidth", 1)]
)
def test_a_link_carries_no_more_than_its_bandwidth(key: str, count: int | None, tmp_path: Path) -> None:
    """Each iteration moves an object to a server and one back; a backbone has both."""
    limit = 50e3
    limited = solved(tmp_path, f"{key}: {limit:g}B/s")
    if count is not None:
        directions = 2 if key == "backbone_bandwidth" else 1
        assert limited.rate / len(MIX) * SIZE * directions <= count * limit
    assert limited.rate == pytest.approx(solved(tmp_path, f"{key}: {limit:g}B/s, never_limited: 1B").rate)
    assert limited.rate < solved(tmp_path, f"{key}: 10GB/s").rate / 2


def test_links_that_are_hardly_used_take_time_alone(tmp_path: Path) -> None:
    wide, apart = (
        solved(tmp_path, "node_bandwidth: 10GB/s"),
        solved(tmp_path, "node_bandwidth: 10GB/s, never_limited: 1B"),
    )
    assert not any(name.startswith("network") for name in wide.utilisation)
    assert any(name.startswith("network") for name in apart.utilisation)
    assert wide.rate == pytest.approx(apart.rate, rel=0.01)


@pytest.mark.parametrize("size", [1000.0, 1e6])
def test_disks_of_nodes_are_as_many_as_nodes(size: float, tmp_path: Path) -> None:
    """Each node writes to its own, however many there are: twice the nodes are twice the rate."""
    file = tmp_path / "own.yaml"
    file.write_text(
        "schema_version: 1\nnetwork: {latency: 1us}\nserves: {node_local: all}\n"
        "stations: {flash: {per: node, disk: {read: 1GB/s, write: 1MB/s}}}\n"
        "operations: {pwrite: [{disk: write, station: flash}]}\n"
    )
    platform = resolve_platform(file)
    one, two, many = (analytic.solve(platform, {"pwrite": 1.0}, n, 1, 0, 10_000, size=size).rate for n in (1, 2, 16))
    assert one == pytest.approx(1e6 / size) and two == pytest.approx(2 * one) and many == pytest.approx(16 * one)

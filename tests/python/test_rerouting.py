# SPDX-License-Identifier: Apache-2.0
"""Routers between client nodes and servers, and ways around links that are gone: by hand."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

PLATFORM = """schema_version: 1
stations:
  s: {{count: 2, servers: 400, spread: stripe, stripe_count: 1, allocation: round-robin}}
{more}
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
TREE = """network:
  latency: 2us
  node_bandwidth: 10GB/s
  server_bandwidth: 10GB/s
  topology: fat-tree
  leaf: {nodes: 4, uplinks: 2, bandwidth: 800MB/s}
  servers: {s: {leaf: 2}}
"""
ROUTED = """  lnet: {{count: {routers}}}
network:
  latency: 2us
  node_bandwidth: 10GB/s
  server_bandwidth: 10GB/s
  servers: {{lnet: {{bandwidth: 300MB/s}}}}
  routers: lnet
"""
BYTES = 8 * 8 * 2**20
"""Of a phase: eight nodes have a file of 8 MiB each, by turns at both servers."""


def ran(
    simulator: Path, tmp_path: Path, more: str, *arguments: str, nodes: int = 8, per_process: str = "8MiB"
) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "p.yaml"
    file.write_text(PLATFORM.format(more=more))
    command = [str(simulator), "--platform", str(file), "--workload", "ior-easy", "--json", "--brief"]
    sizes = ("--nodes", str(nodes), "--set", f"per_process={per_process}", "--set", "transfer_size=1MiB")
    return subprocess.run([*command, *sizes, *arguments], capture_output=True, text=True, check=False)


def phase_of(run: subprocess.CompletedProcess[str], name: str) -> dict[str, Any]:
    assert run.returncode == 0, run.stderr
    phases: list[dict[str, Any]] = json.loads(run.stdout)["phases"]
    return next(one for one in phases if one["name"] == name)


def seconds(run: subprocess.CompletedProcess[str], phase: str = "write") -> float:
    return float(phase_of(run, phase)["seconds"])


def gone(link: str, at: str = "0s", reroute: str = "true", name: str = "cut") -> str:
    return f"  {name}: {{link: {link}, at: {at}, length: 900s, share: 0, reroute: {reroute}}}\n"


def test_all_bytes_pass_the_routers(simulator: Path, tmp_path: Path) -> None:
    one = ran(simulator, tmp_path, ROUTED.format(routers=1))
    for phase in ("write", "read"):
        assert seconds(one, phase) == pytest.approx(BYTES / 300e6, rel=1e-3)
    write = phase_of(one, "write")
    assert {link["name"] for link in write["network"]["busiest"]} >= {"lnet 0 in", "lnet 0 out"}
    assert seconds(one) > 1.4 * seconds(ran(simulator, tmp_path, ROUTED.format(routers=8)))


def test_the_other_router_serves_when_one_is_gone(simulator: Path, tmp_path: Path) -> None:
    two = ROUTED.format(routers=2)
    one = seconds(ran(simulator, tmp_path, ROUTED.format(routers=1)))
    assert seconds(ran(simulator, tmp_path, f"{two}failures:\n{gone('lnet 0')}")) == pytest.approx(one, rel=1e-6)
    none = ran(simulator, tmp_path, f"{two}failures:\n{gone('lnet 0')}{gone('lnet 1', name='other')}")
    assert none.returncode == 2 and f"{tmp_path}/p.yaml:" in none.stderr, none.stderr
    assert "no way leads from node 0 to s 0" in none.stderr


def test_an_uplink_that_is_gone_halves_a_tree_of_two(simulator: Path, tmp_path: Path) -> None:
    """Each server's bytes come down over an uplink of its own; then both over the one that is left."""
    whole = seconds(ran(simulator, tmp_path, TREE))
    assert whole == pytest.approx(BYTES / 1600e6, rel=1e-3)
    cut = seconds(ran(simulator, tmp_path, f"{TREE}failures:\n{gone('leaf 2 uplink 0')}"))
    assert cut == pytest.approx(2 * whole, rel=1e-3)


DRAGONFLY = """  lnet: {{count: 2}}
network:
  latency: 2us
  node_bandwidth: 10GB/s
  server_bandwidth: 10GB/s
  topology: dragonfly
  groups: {{count: 5, routers: 2, nodes: 2, local: 10GB/s}}
  global: {{links: 1, bandwidth: 100MB/s}}
  minimal: {minimal}
  servers: {{s: {{router: 1}}, lnet: {{router: 1}}}}
  routers: lnet
"""


def test_behind_routers_flows_spread_over_groups_as_without(simulator: Path, tmp_path: Path) -> None:
    """On the way to a router and on from it; without a group that is gone."""
    times = {minimal: seconds(ran(simulator, tmp_path, DRAGONFLY.format(minimal=minimal))) for minimal in (1, 0.5, 0)}
    assert times[1] > 1.2 * times[0.5] and len(set(times.values())) == 3, times
    for reroute, waits in (("true", False), ("false", True)):
        cut = f"failures:\n{gone('groups 0 and 6 link 0', reroute=reroute)}"
        assert (seconds(ran(simulator, tmp_path, DRAGONFLY.format(minimal=1) + cut)) > 900) == waits
    refused = ran(simulator, tmp_path, DRAGONFLY.format(minimal=0.5), "--flows", "simgrid")
    assert refused.returncode == 2 and "compare it with minimal: 1" in refused.stderr, refused.stderr


def test_what_is_on_a_link_that_goes_takes_another_way(simulator: Path, tmp_path: Path) -> None:
    """Half of all bytes have come over two uplinks; the other half comes over one, and none twice."""
    whole = BYTES / 1600e6
    run = ran(simulator, tmp_path, f"{TREE}failures:\n{gone('leaf 2 uplink 0', at=f'{whole / 2:.6f}s')}")
    assert seconds(run) == pytest.approx(1.5 * whole, rel=1e-3)
    carried = {link["name"]: link["bytes"] for link in phase_of(run, "write")["network"]["busiest"]}
    assert carried["leaf 2 uplink 1 down"] == pytest.approx(0.75 * BYTES, rel=1e-3)
    waits = ran(simulator, tmp_path, f"{TREE}failures:\n{gone('leaf 2 uplink 0', reroute='false')}")
    assert 900 < seconds(waits) < 901


def test_flows_of_a_dragonfly_go_on_over_a_third_group(simulator: Path, tmp_path: Path) -> None:
    """The way around is as wide: a lone client hardly notices that its link goes, unless it waits for it."""
    fly = DRAGONFLY.format(minimal=1).replace("  routers: lnet\n", "").replace("  lnet: {count: 2}\n", "")
    fly = fly.replace(", lnet: {router: 1}", "")
    whole = ran(simulator, tmp_path, fly, nodes=1, per_process="64MiB")
    busiest = phase_of(whole, "write")["network"]["busiest"]
    link = next(one["name"] for one in busiest if one["name"].startswith("groups "))
    for reroute, expected in (("true", seconds(whole)), ("false", 900 + seconds(whole))):
        cut = f"failures:\n{gone(link.rsplit(' ', 1)[0], at='300ms', reroute=reroute)}"
        assert seconds(ran(simulator, tmp_path, fly + cut, nodes=1, per_process="64MiB")) == pytest.approx(
            expected, rel=1e-3
        )


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (ROUTED.format(routers=2).replace("routers: lnet", "routers: lnnet"), "lnet"),
        ("network: {node_bandwidth: 1GB/s, server_bandwidth: 1GB/s, routers: s}", "'s' routes nothing"),
        (f"{TREE}failures:\n{gone('leaf 2 uplink 0', reroute='maybe')}", "'maybe'"),
        (DRAGONFLY.format(minimal=1) + f"failures:\n{gone('leaf 2 uplink 0')}", "'groups 5 and 6 link 0 down'"),
        (DRAGONFLY.format(minimal=1) + f"failures:\n{gone('groups 5 and 5 link 0')}", "no link 'groups 5 and 5 link"),
        *(
            (
                f"{TREE}failures:\n{gone('leaf 2 uplink 0')[:-2]}, {other}}}\n",
                "a failure has one of these keys, and not two",
            )
            for other in ("disk: s 1", "station: s")
        ),
    ],
)
def test_what_cannot_be_is_refused(simulator: Path, tmp_path: Path, more: str, sentence: str) -> None:
    done = ran(simulator, tmp_path, more)
    assert done.returncode == 2 and f"{tmp_path}/p.yaml:" in done.stderr and sentence in done.stderr, done.stderr

# SPDX-License-Identifier: Apache-2.0
"""Networks other than a star: every key changes an answer, what makes no sense is refused, and links carry no more
than arrives. Routes are tested in tests/unit/topology_test.cpp."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import REPOSITORY

Iocast = Callable[..., subprocess.CompletedProcess[str]]

PLATFORM = """schema_version: 1
stations: {{s: {{count: 4, servers: 400, spread: object}}, idle: {{servers: 1}}}}
network:
  latency: 2us
  node_bandwidth: 1GB/s
  server_bandwidth: 2GB/s
{network}
operations:
  mkdir: []
  rmdir: []
  stat: [{{station: idle, demand: 1us}}]
  unlink: []
  open: []
  close: []
  fsync: []
  create: {{}}
  pwrite: [{{transfer: write, station: s}}]
  pread: [{{transfer: read, station: s}}]
"""
NETWORKS = {
    "fat-tree": """  topology: fat-tree
  hop_latency: 1us
  leaf: {nodes: 4, uplinks: 2, bandwidth: 800MB/s}
  pod: {leaves: 2, uplinks: 2, bandwidth: 500MB/s}
  servers: {s: {leaf: 2}}""",
    "islands": """  topology: islands
  hop_latency: 1us
  leaf: {nodes: 4, uplinks: 2, bandwidth: 800MB/s}
  island: {leaves: 2, uplinks: 2, bandwidth: 700MB/s}
  servers: {s: {leaf: 2}}""",
    "dragonfly": """  topology: dragonfly
  hop_latency: 1us
  groups: {routers: 3, nodes: 2, local: 700MB/s}
  global: {links: 2, bandwidth: 600MB/s}
  servers: {s: {router: 2}}""",
    "torus": """  topology: torus
  hop_latency: 1us
  torus: {dimensions: [4, 3], nodes: 2, bandwidth: 700MB/s}
  servers: {s: {router: 2}}""",
}


def simulated(simulator: Path, file: Path, text: str, *arguments: str) -> dict[str, Any]:
    file.write_text(PLATFORM.format(network=text))
    command = [str(simulator), "--platform", str(file), "--workload", "ior-easy", "--json", "--brief"]
    sizes = ("--nodes", "12", "--ppn", "2", "--set", "per_process=8MiB", "--set", "transfer_size=1MiB")
    done = subprocess.run([*command, *sizes, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def refused(simulator: Path, file: Path, text: str, *arguments: str) -> str:
    file.write_text(PLATFORM.format(network=text))
    command = [str(simulator), "--platform", str(file), "--workload", "ior-easy", "--nodes", "12"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and not done.stdout, done.stdout
    return done.stderr.replace(str(file), "FILE")


def seconds(run: dict[str, Any]) -> list[float]:
    return [phase["seconds"] for phase in run["phases"] if "network" in phase]


def answer(run: dict[str, Any]) -> list[Any]:
    """Times and latencies, and which links are busiest."""
    return [(phase["seconds"], phase["latency"], phase.get("network")) for phase in run["phases"]]


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        (kind, before, after)
        for kind, changes in {
            "fat-tree": {
                "hop_latency: 1us": "hop_latency: 2us",
                "nodes: 4": "nodes: 6",
                "leaf: {nodes: 4, uplinks: 2": "leaf: {nodes: 4, uplinks: 3",
                "bandwidth: 800MB/s": "bandwidth: 200MB/s",
                "leaves: 2, uplinks: 2": "leaves: 3, uplinks: 2",
                "pod: {leaves: 2, uplinks: 2": "pod: {leaves: 2, uplinks: 1",
                "bandwidth: 500MB/s": "bandwidth: 300MB/s",
                "\n  pod: {leaves: 2, uplinks: 2, bandwidth: 500MB/s}": "",
                "servers: {s: {leaf: 2}}": "servers: {s: {leaf: 1}}",
                "s: {leaf: 2}": "s: {leaf: 2, bandwidth: 300MB/s}",
                "topology: fat-tree": "topology: fat-tree\n  routing: hashed",
            },
            "islands": {
                "island: {leaves: 2, uplinks: 2": "island: {leaves: 2, uplinks: 3",
                "island: {leaves: 2": "island: {leaves: 3",
                "bandwidth: 700MB/s": "bandwidth: 400MB/s",
            },
            "dragonfly": {
                "hop_latency: 1us": "hop_latency: 2us",
                "routers: 3": "routers: 4",
                "nodes: 2": "nodes: 3",
                "local: 700MB/s": "local: 200MB/s",
                "links: 2": "links: 1",
                "bandwidth: 600MB/s": "bandwidth: 400MB/s",
                "router: 2": "router: 1",
                "topology: dragonfly": "topology: dragonfly\n  minimal: 0.5",
                "routers: 3, nodes: 2": "routers: 3, count: 2, nodes: 2",
                "s: {router: 2": "s: {router: 2, bandwidth: 300MB/s",
            },
            "torus": {
                "hop_latency: 1us": "hop_latency: 2us",
                "[4, 3]": "[4, 4]",
                "[4, 3], nodes: 2": "[4, 3], nodes: 3",
                "bandwidth: 700MB/s": "bandwidth: 400MB/s",
                "router: 2": "router: 1",
                "s: {router: 2": "s: {router: 2, among: nodes",
            },
        }.items()
        for before, after in changes.items()
    ],
)
def test_each_key_changes_an_answer(simulator: Path, tmp_path: Path, kind: str, before: str, after: str) -> None:
    assert NETWORKS[kind].count(before) == 1
    changed = NETWORKS[kind].replace(before, after)
    if "count: 2" in after:  # more groups than the nodes need: only routes over a third group use them
        changed = changed.replace("count: 2", "count: 4") + "\n  minimal: 0.5"
        one = simulated(simulator, tmp_path / "p.yaml", NETWORKS[kind] + "\n  minimal: 0.5")
    else:
        one = simulated(simulator, tmp_path / "p.yaml", NETWORKS[kind])
    other = simulated(simulator, tmp_path / "p.yaml", changed)
    assert len(seconds(one)) == 2 and answer(one) != answer(other)


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_wide_network_is_a_star(simulator: Path, tmp_path: Path, kind: str) -> None:
    """Where neither links between switches nor their latency count, only those of the ends are left."""
    file = tmp_path / "p.yaml"
    wide = NETWORKS[kind].replace("MB/s", "00GB/s").replace("hop_latency: 1us", "hop_latency: 0s")
    star = simulated(simulator, file, "")
    assert seconds(simulated(simulator, file, wide)) == pytest.approx(seconds(star), rel=1e-9)
    assert seconds(simulated(simulator, file, NETWORKS[kind])) > seconds(star)


ROUTED = NETWORKS | {
    "two levels": "  topology: fat-tree\n  leaf: {nodes: 3, uplinks: 2, bandwidth: 600MB/s}",
    "hashed": NETWORKS["fat-tree"].replace("topology: fat-tree", "topology: fat-tree\n  routing: hashed"),
    "servers of two speeds": "  servers: {s: {bandwidth: 350MB/s}}",
    "among": NETWORKS["torus"].replace("{router: 2", "{router: 2, among: nodes"),
}


@pytest.mark.parametrize("kind", ROUTED)
def test_flows_take_as_long_as_those_of_simgrid(simulator: Path, tmp_path: Path, kind: str) -> None:
    """Where links between switches have no latency, by which SimGrid weighs shares."""
    network = ROUTED[kind].replace("hop_latency: 1us", "hop_latency: 0s")
    own, simgrid = (
        simulated(simulator, tmp_path / "p.yaml", network, "--flows", by, "--set", "per_process=4MiB")
        for by in ("own", "simgrid")
    )
    for one, other in zip(own["phases"], simgrid["phases"], strict=True):
        assert one["seconds"] == pytest.approx(other["seconds"], rel=1e-6)
        for operation, latency in one["latency"].items():
            assert latency["mean"] == pytest.approx(other["latency"][operation]["mean"], rel=1e-6)


def test_simgrid_has_one_way_between_two_ends(simulator: Path, tmp_path: Path) -> None:
    network = NETWORKS["dragonfly"] + "\n  minimal: 0.5"
    assert "compare it with minimal: 1" in refused(simulator, tmp_path / "p.yaml", network, "--flows", "simgrid")


@pytest.mark.parametrize("kind", NETWORKS)
def test_no_link_carries_more_than_it_can(simulator: Path, tmp_path: Path, kind: str) -> None:
    run = simulated(simulator, tmp_path / "p.yaml", NETWORKS[kind])
    for phase in run["phases"]:
        if "network" not in phase:
            continue
        busiest = phase["network"]["busiest"]
        assert len(busiest) == 3 and 1 + 1e-9 >= busiest[0]["busy"] >= busiest[1]["busy"] > 0
        assert phase["network"]["fallbacks"] == 0


@pytest.mark.parametrize(
    ("kind", "before", "after", "sentence"),
    [
        ("fat-tree", "uplinks: 2, bandwidth: 8", "uplinks: 0, bandwidth: 8", "FILE:9: in network.leaf.uplinks"),
        ("fat-tree", "bandwidth: 800MB/s", "bandwidth: 0B/s", "FILE:9: in network.leaf.bandwidth"),
        ("fat-tree", "nodes: 4", "nodes: 4, count: 2", "there are 8 places for client nodes, 4 at each of 2 switches"),
        ("fat-tree", "s: {leaf: 2}", "idle: {leaf: 2}", "no transfer goes to the station 'idle'"),
        ("fat-tree", "s: {leaf: 2}", "t: {leaf: 2}", "there is no station 't'"),
        ("fat-tree", "s: {leaf: 2}", "s: {router: 2}", "'router' has no effect: in a 'fat-tree' servers are at a leaf"),
        ("fat-tree", "s: {leaf: 2}", "s: {leaf: 1, among: nodes}", "there are 3 places for 's' among the client nodes"),
        ("fat-tree", "pod:", "global:", "'global' has no effect: it is of the topology 'dragonfly'"),
        ("fat-tree", "fat-tree", "fat-tre", "the topology 'fat-tre' is unknown"),
        ("fat-tree", "topology: fat-tree", "topology: fat-tree\n  routing: random", "'destination' or 'hashed'"),
        ("fat-tree", "hop_latency: 1us", "backbone_bandwidth: 1GB/s", "only a star has a backbone"),
        ("dragonfly", "routers: 3", "routers: 0", "FILE:9: in network.groups.routers"),
        ("dragonfly", "links: 2", "links: 0", "FILE:10: in network.global.links"),
        ("dragonfly", "\n  global: {links: 2, bandwidth: 600MB/s}", "", "3 groups are needed and nothing links them"),
        ("torus", "[4, 3]", "[2, 2]", "there are 4 places for client nodes, 2 at each of 2 switches"),
        ("torus", "[4, 3]", "[1, 2]", "the servers alone need 2 routers, and the torus has 2"),
        ("torus", "[4, 3]", "[40, 40]", "the longest route has 42 links; it may have 28"),
        ("torus", "topology: torus", "topology: star", "'torus' has no effect: it is of the topology 'torus'"),
    ],
)
def test_what_makes_no_network_is_refused(
    simulator: Path, tmp_path: Path, kind: str, before: str, after: str, sentence: str
) -> None:
    assert NETWORKS[kind].count(before) == 1
    message = refused(simulator, tmp_path / "p.yaml", NETWORKS[kind].replace(before, after))
    assert sentence in message and "FILE:" in message


def test_links_of_the_network_are_what_limits(iocast: Iocast) -> None:
    """128 nodes fill one group of the dragonfly; on the fat tree no link is full. The analytic solver says why it has
    no answer."""
    sizes = ("--nodes", "128", "--ppn", "2", "--phase", "checkpoint", "--set", "arrays=1", "--set", "memory=64GiB")
    limited = {}
    for name in ("fat-tree", "dragonfly"):
        file = REPOSITORY / "examples" / "fat-tree-or-dragonfly" / f"{name}.yaml"
        reported = iocast("simulate", str(file), "hpcs-07", *sizes).stdout
        limited[name] = next(line for line in reported.splitlines() if line.startswith("What limits the rate"))
        assert f"over a network whose links differ ({name})" in reported
    assert "links between switches, the busiest, groups 0 and 8 link" in limited["dragonfly"]
    assert "links between switches" not in limited["fat-tree"]


def test_a_network_is_described(iocast: Iocast) -> None:
    """Half of 32 leaves have 16 uplinks each; servers are at leaves of their own."""
    file = REPOSITORY / "examples" / "fat-tree-or-dragonfly" / "fat-tree.yaml"
    described = json.loads(iocast("describe", str(file), "--nodes", "100", "--json").stdout)["topology"]
    assert described["nodes"] == 100 and described["bisection"] == 16 * 16 * 25e9
    leaf = described["levels"][0]
    assert leaf["count"] == 36 and leaf["tapering"] == 2
    assert described["servers"]["oss"] == {"count": 32, "switches": 4, "among_nodes": False}
    drawn = iocast("describe", str(file)).stdout
    assert "fat-tree of 1024 client nodes" in drawn and "16 x 25 GB/s       2:1" in drawn
    assert "topology" not in json.loads(iocast("describe", "lustre", "--json").stdout)


@pytest.mark.parametrize(
    ("failure", "write", "read"),
    [
        ("", 0.1, 0.1),
        ("link: node 0, at: 20ms, length: 40ms, share: 0.25", 0.13, 0.1),
        ("link: node 0 out, at: 20ms, length: 40ms, share: 0", 0.14, 0.1),
        ("link: node 0 in, at: 20ms, length: 40ms, share: 0", 0.1, 0.1),
        ("link: node 0 in, at: 120ms, length: 40ms, share: 0.5", 0.1, 0.12),
        ("link: leaf 0 uplink 0, at: 10ms, length: 10ms, every: 50ms, share: 0.5", 0.11, 0.115),
        ("link: leaf 0 uplink 1, at: 10ms, length: 40ms, share: 0.5", 0.1, 0.1),
    ],
)
def test_a_link_fails(simulator: Path, tmp_path: Path, failure: str, write: float, read: float) -> None:
    """100 MB at 1 GB/s, once each way, of which a part passes more slowly or has to wait."""
    network = "  topology: fat-tree\n  leaf: {nodes: 1, uplinks: 2, bandwidth: 1GB/s}"
    network += f"\nfailures: {{f: {{{failure}}}}}" * bool(failure)
    file = tmp_path / "p.yaml"
    file.write_text(PLATFORM.replace("count: 4", "count: 1").format(network=network))
    command = [str(simulator), "--platform", str(file), "--workload", "ior-easy", "--json", "--brief"]
    sizes = ("--nodes", "1", "--set", "per_process=100MB", "--set", "transfer_size=100MB")
    phases = json.loads(subprocess.run([*command, *sizes], capture_output=True, text=True, check=True).stdout)["phases"]
    took = [phase["seconds"] for phase in phases if "network" in phase]
    assert took == pytest.approx([write, read], abs=1e-5)


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        ("link: leaf 99 uplink 0, at: 1s, length: 1s, share: 0.5", "this network has no link 'leaf 99 uplink 0'"),
        ("link: leaf 0 uplink 0, at: 1s, length: 1s, share: 1.5", "failures.f.share, 1.5 is outside its range, 0 to 1"),
        ("link: leaf 0 uplink 0, at: 1s, length: 2s, every: 1s, share: 0", "a failure of 2s every 1s would never end"),
        ("link: leaf 0 uplink 0, at: 1s, length: 1s", "'share'"),
        ('link: "", at: 1s, length: 1s, share: 0.5', "a link has a name"),
        ('disk: "", at: 1s, length: 1s, share: 0.5', "a disk has a name"),
    ],
)
def test_a_failure_of_no_link_is_refused(simulator: Path, tmp_path: Path, failure: str, sentence: str) -> None:
    network = NETWORKS["fat-tree"] + f"\nfailures: {{f: {{{failure}}}}}"
    assert sentence in refused(simulator, tmp_path / "p.yaml", network)
    network = network.replace(failure, "link: leaf 0 uplink 0, at: 1s, length: 1s, share: 0.5")
    assert "not compared" in refused(simulator, tmp_path / "p.yaml", network, "--flows", "simgrid")


TREE = (
    "{{topology: fat-tree, leaf: {{nodes: 4, uplinks: {}, bandwidth: 1GB/s}},"
    " pod: {{leaves: 2, uplinks: {}, bandwidth: 1GB/s}}}}"
)


@pytest.mark.parametrize(
    ("network", "says"),
    [
        (TREE.format(65536, 65536), "links of a pod; a network may have 100000000"),
        ("{topology: dragonfly, groups: {routers: 65536, nodes: 1, local: 1GB/s}}", "links in a group; a network may"),
        (
            "{topology: fat-tree, leaf: {nodes: 4, uplinks: 2, uplinks: 3, bandwidth: 1GB/s}}",
            "'uplinks' is given twice",
        ),
    ],
)
def test_what_links_can_not_be_counted_with_is_refused(
    simulator: Path, tmp_path: Path, network: str, says: str
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(f"schema_version: 1\nextends: lustre\nnetwork: {network}\n")
    done = subprocess.run(
        [simulator, "--platform", file, "--nodes", "20"], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 2 and f"{file}:3: " in done.stderr and says in done.stderr, done.stderr


def test_links_without_a_bandwidth_limit_nothing(simulator: Path, tmp_path: Path) -> None:
    """Nodes and servers at one leaf, whose cards nobody states: the disks alone take time, and the run ends."""
    file = tmp_path / "p.yaml"
    leaf = "leaf: {nodes: 4, uplinks: 2, bandwidth: 1GB/s}, servers: {oss: {among: nodes, leaf: 16}}"
    file.write_text(
        "schema_version: 1\nextends: lustre\nnetwork:\n  node_bandwidth: null\n  server_bandwidth: null\n"
        f"  topology: fat-tree\n  {leaf.replace(', servers', chr(10) + '  servers')}\n"
    )
    settings = ["--set", "object_size=1MiB", "--set", "objects=5", "--set", "iterations=5"]
    done = subprocess.run(
        [simulator, "--platform", file, "--nodes", "2", *settings, "--json"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "no step has a bandwidth" not in done.stderr


@pytest.mark.parametrize("size", ["3901B", "1MiB"])
def test_no_transfer_passes_a_dead_link(simulator: Path, tmp_path: Path, size: str) -> None:
    file = tmp_path / "p.yaml"
    slowest = []
    for share in (1, 0):
        failure = f"failures: {{f: {{link: node 0, at: 0s, length: 1s, share: {share}}}}}\n" if share < 1 else ""
        file.write_text(f"schema_version: 1\nextends: lustre\n{failure}")
        settings = ["--set", f"object_size={size}", "--set", "objects=2", "--set", "iterations=2", "--brief", "--json"]
        done = subprocess.run([simulator, "--platform", file, *settings], capture_output=True, text=True, check=True)
        made = [p["latency"]["create"]["max"] for p in json.loads(done.stdout)["phases"] if "create" in p["latency"]]
        slowest.append(max(made))
    assert slowest[0] < 0.1 < 0.9 < slowest[1], slowest


def test_a_link_that_is_not_there_can_not_fail(simulator: Path, tmp_path: Path) -> None:
    """Whether or not the network has bandwidths."""
    for network in ("{latency: 1us}", "{node_bandwidth: 1GB/s}"):
        file = tmp_path / "p.yaml"
        file.write_text(
            "schema_version: 1\nstations: {s: {}}\n"
            "operations: {stat: [], read: {read: [{transfer: read, station: s}]}, create: {},"
            f" unlink: []}}\nnetwork: {network}\nfailures: {{f: {{link: no such, at: 0s, length: 1s, share: 0}}}}\n"
        )
        done = subprocess.run([simulator, "--platform", file], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "no link 'no such'" in done.stderr, done.stderr

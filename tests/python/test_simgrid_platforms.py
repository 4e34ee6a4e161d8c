# SPDX-License-Identifier: Apache-2.0
"""Platforms of SimGrid as networks: as long as ours of the same shape takes, and refused with file and line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

PLATFORM = """schema_version: 1
stations: {{s: {{count: 2, servers: 400, spread: object}}}}
network: {network}
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
XML = "{simgrid: cluster.xml, hosts: {nodes: 'node-{}', s: 'oss-{}'}}"
HEAD = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
"""
STAR = f"""{HEAD}  <zone id="all" routing="Full">
    <cluster id="nodes" prefix="node-" suffix="" radical="0-7" speed="1Gf" bw="1GBps" lat="1us"/>
    <cluster id="servers" prefix="oss-" suffix="" radical="0-1" speed="1Gf" bw="2GBps" lat="1us"/>
    <link id="trunk" bandwidth="3GBps" latency="0us" sharing_policy="SPLITDUPLEX"/>
    <zoneRoute src="nodes" dst="servers" gw_src="node-nodes_router" gw_dst="oss-servers_router">
      <link_ctn id="trunk" direction="UP"/>
    </zoneRoute>
  </zone>
</platform>
"""


def fat_tree() -> str:
    """Two leaves of four nodes with two uplinks each, and one of both servers; the last end chooses the uplink."""
    names = [f"node-{i}" for i in range(8)] + ["oss-0", "oss-1"]
    leaf = [i // 4 for i in range(8)] + [2, 2]
    lines = [f'<host id="{name}" speed="1Gf"/>' for name in names]
    for i in range(10):
        card = "1GBps" if i < 8 else "2GBps"
        lines += [f'<link id="{names[i]} {way}" bandwidth="{card}" latency="1us"/>' for way in ("out", "in")]
    for one in range(3):
        for up in range(2):
            lines += [
                f'<link id="leaf {one} uplink {up} {way}" bandwidth="800MBps" latency="0us"/>' for way in ("up", "down")
            ]
    for a in range(10):
        for b in range(10):
            if a == b:
                continue
            between = [f"leaf {leaf[a]} uplink {b % 2} up", f"leaf {leaf[b]} uplink {b % 2} down"]
            links = [f"{names[a]} out", *(between if leaf[a] != leaf[b] else []), f"{names[b]} in"]
            ctn = "".join(f'<link_ctn id="{link}"/>' for link in links)
            lines.append(f'<route src="{names[a]}" dst="{names[b]}" symmetrical="NO">{ctn}</route>')
    body = "\n".join(lines)
    return f'{HEAD}<zone id="all" routing="Full">\n{body}\n</zone>\n</platform>\n'


def ran(
    simulator: Path, tmp_path: Path, network: str, *arguments: str, xml: str = STAR
) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "p.yaml"
    file.write_text(PLATFORM.format(network=network))
    (tmp_path / "cluster.xml").write_text(xml)
    command = [str(simulator), "--platform", str(file), "--workload", "ior-easy", "--json", "--brief"]
    sizes = ("--nodes", "8", "--ppn", "2", "--set", "per_process=8MiB", "--set", "transfer_size=1MiB")
    return subprocess.run([*command, *sizes, *arguments], capture_output=True, text=True, check=False)


def seconds(run: subprocess.CompletedProcess[str]) -> list[float]:
    assert run.returncode == 0, run.stderr
    phases: list[dict[str, Any]] = json.loads(run.stdout)["phases"]
    return [phase["seconds"] for phase in phases if phase["name"] in ("write", "read")]


CARDS = "latency: 2us, node_bandwidth: 1GB/s, server_bandwidth: 2GB/s"
TREE = "topology: fat-tree, leaf: {nodes: 4, uplinks: 2, bandwidth: 800MB/s}, servers: {s: {leaf: 2}}"


@pytest.mark.parametrize(
    ("xml", "own"),
    [(STAR.replace("3GBps", "4GBps"), CARDS), (fat_tree(), f"{CARDS}, {TREE}")],
    ids=["star", "fat tree"],
)
def test_as_our_own_topology_of_the_same_shape(simulator: Path, tmp_path: Path, xml: str, own: str) -> None:
    ours = seconds(ran(simulator, tmp_path, f"{{{own}}}"))
    assert seconds(ran(simulator, tmp_path, XML, xml=xml)) == pytest.approx(ours, rel=1e-9)
    reference = seconds(ran(simulator, tmp_path, XML, "--flows", "simgrid", xml=xml))
    assert reference == pytest.approx(ours, rel=1e-6)


def test_its_links_limit_and_are_named(simulator: Path, tmp_path: Path) -> None:
    run = ran(simulator, tmp_path, XML, xml=STAR.replace("3GBps", "500MBps"))
    write = next(phase for phase in json.loads(run.stdout)["phases"] if phase["name"] == "write")
    assert write["seconds"] == pytest.approx(16 * 8 * 2**20 / 500e6, rel=1e-3)
    assert write["network"]["busiest"][0]["name"] == "trunk_UP"


@pytest.mark.parametrize(
    ("old", "new", "place", "sentence"),
    [
        ("https://simgrid.org/simgrid.dtd", "surf.dtd", "cluster.xml:2", "no platform of SimGrid"),
        ('version="4.1"', 'version="3"', "cluster.xml:3", "TOO OLD"),
        (' speed="1Gf"', "", "cluster.xml:5", "speed"),
        ("3GBps", "0Bps", "cluster.xml:7", "'trunk' has a bandwidth of 0"),
        ('radical="0-7"', 'radical="0-6"', "p.yaml:3", "no host 'node-7'"),
        ('prefix="oss-"', 'prefix="ost-"', "cluster.xml", "oss-servers_router"),
    ],
)
def test_what_cannot_be_is_refused(
    simulator: Path, tmp_path: Path, old: str, new: str, place: str, sentence: str
) -> None:
    done = ran(simulator, tmp_path, XML, xml=STAR.replace(old, new, 1))
    assert done.returncode == 2 and f"{tmp_path}/{place}" in done.stderr and sentence in done.stderr, done.stderr


def test_ends_without_a_route_are_named(simulator: Path, tmp_path: Path) -> None:
    start, end = STAR.index("    <zoneRoute"), STAR.index("</zoneRoute>") + len("</zoneRoute>\n")
    done = ran(simulator, tmp_path, XML, xml=STAR[:start] + STAR[end:])
    assert done.returncode == 2 and "no route from 'node-0' to 'oss-0'" in done.stderr, done.stderr


def test_what_its_links_have_is_stated_nowhere_else(simulator: Path, tmp_path: Path) -> None:
    done = ran(simulator, tmp_path, XML.replace("{simgrid", "{latency: 2us, simgrid"))
    assert done.returncode == 2 and f"{tmp_path}/p.yaml:3" in done.stderr and "'latency'" in done.stderr, done.stderr

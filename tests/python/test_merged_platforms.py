# SPDX-License-Identifier: Apache-2.0
"""A platform's files merged into one document, as edits and studies simulate it, are the platform that its files are:
what a file decides takes away what it has no use for any more, and files beside a platform stay where they are."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from iocast.ground import binaries
from iocast.platforms.content import content_hash, platform_hash, whole
from iocast.errors import InputError
from iocast.ground.files import read_yaml
from iocast.platforms.fitted import Fitted
from iocast.platforms.documents import TOPOLOGIES, dump, get_path
from iocast.study.documents import Edit, edited

BASE = """schema_version: 1
clients: {collective: {aggregators: 1, stripes_of: oss}}
stations:
  work: {per: node, discipline: timeslice, quantum: 2ms, wakeup: queues, crowding: 0.1}
  oss: {count: 4, servers: 8, spread: stripe, stripe_size: 2MiB, stripe_count: 2, ALLOCATION}
  other: {count: 4, spread: stripe, stripe_count: 2, allocation: round-robin}
  lnet: {count: 2}
NETWORK
operations:
  mkdir: []
  rmdir: []
  unlink: []
  open: [{station: work, demand: 1us}]
  close: []
  fsync: [{station: other, demand: 1ms}]
  create: {}
  pwrite: [{transfer: write, station: oss, stripes: spanned}]
  pread: [{station: oss, demand: 1ms, stripes: spanned}]
"""
IN_TURN, BY_SPACE = "allocation: round-robin", "allocation: weighted, free: [1GB, 2GB, 3GB, 4GB]"
CARDS = "latency: 2us, node_bandwidth: 1GB/s, server_bandwidth: 2GB/s, routers: lnet"
LEAF = "leaf: {nodes: 4, uplinks: 2, bandwidth: 800MB/s}"
NETWORKS = {
    "star": f"{CARDS}, topology: star, backbone_bandwidth: 3GB/s, servers: {{oss: {{bandwidth: 1GB/s}}}}",
    "fat-tree": f"{CARDS}, topology: fat-tree, hop_latency: 1us, {LEAF}, routing: hashed, servers: {{oss: {{leaf: 2, "
    "among: nodes}}, pod: {leaves: 2, uplinks: 2, bandwidth: 1GB/s}",
    "islands": f"{CARDS}, topology: islands, {LEAF}, island: {{leaves: 2, uplinks: 2, bandwidth: 1GB/s}}",
    "dragonfly": f"{CARDS}, topology: dragonfly, groups: {{routers: 2, nodes: 2, local: 1GB/s}}, minimal: 0.5, global: "
    "{links: 2, bandwidth: 1GB/s}, servers: {oss: {router: 2}}",
    "torus": f"{CARDS}, topology: torus, torus: {{dimensions: [4, 4], bandwidth: 1GB/s}}",
    "simgrid": "topology: simgrid, simgrid: cluster.xml, hosts: {nodes: 'node-{}', oss: 'oss-{}', lnet: 'lnet-{}'}",
}
SAME = {
    "a spread by object": "stations: {oss: {spread: object}}",
    "a spread by dataset": "stations: {oss: {spread: dataset}}",
    "a spread in turn": "stations: {oss: {spread: round-robin}}",
    "a spread by stripe": "stations: {oss: {spread: stripe}}",
    "a spread by all stripes": "stations: {oss: {spread: stripe, stripe_count: 3}}",
    "fewer stripes": "stations: {oss: {stripe_count: 1}}",
    "another allocation": "stations: {oss: {allocation: by-name}}",
    "stripes by chance": "stations: {oss: {allocation: by-stripe}}",
    "servers by turns": "stations: {work: {discipline: fcfs}}",
    "servers that all share": "stations: {work: {discipline: ps}}",
    "a station of nodes": "stations: {other: {per: node}}",
}
PROSE = ("name", "file", "description", "source")


def meaning(file: Path) -> Any:
    return {key: value for key, value in binaries.resolve_platform(file).items() if key not in PROSE}


def child(folder: Path, text: str, network: str = NETWORKS["star"], allocation: str = IN_TURN) -> Path:
    base = BASE.replace("ALLOCATION", allocation).replace("NETWORK", f"network: {{{network}}}")
    (folder / "base.yaml").write_text(base)
    (folder / "cluster.xml").touch()
    file = folder / "child.yaml"
    file.write_text(f"schema_version: 1\nextends: base.yaml\n{text}\n")
    return file


def merged(folder: Path, file: Path) -> Path:
    place = folder / "elsewhere" / "merged.yaml"
    place.parent.mkdir(exist_ok=True)
    place.write_text(dump(whole({"extends": str(file)})))
    return place


@pytest.mark.parametrize("allocation", [IN_TURN, BY_SPACE], ids=["in turn", "by space"])
@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_what_a_file_decides_is_decided_in_one_document(tmp_path: Path, text: str, allocation: str) -> None:
    file = child(tmp_path, text, allocation=allocation)
    assert meaning(merged(tmp_path, file)) == meaning(file)
    assert meaning(file) != meaning(tmp_path / "base.yaml")


@pytest.mark.parametrize(("below", "upon"), list(permutations(NETWORKS, 2)))
def test_another_topology_takes_away_the_keys_of_the_one_below(tmp_path: Path, below: str, upon: str) -> None:
    file = child(tmp_path, f"network: {{{NETWORKS[upon]}}}", NETWORKS[below])
    assert meaning(merged(tmp_path, file)) == meaning(file)


@pytest.mark.parametrize("name", [name for name in TOPOLOGIES if name != "star"])
def test_all_keys_of_a_topology_are_known(simulator: Path, name: str) -> None:
    described = binaries.run_json([str(simulator), "--describe", name, "--json"])
    assert {key["name"] for key in described["keys"]} == TOPOLOGIES[name] - {"hop_latency"}


@pytest.mark.parametrize("spread", ["object", "dataset", "round-robin", "stripe"])
def test_a_platform_of_the_catalogue_is_spread_otherwise_by_an_edit(tmp_path: Path, spread: str) -> None:
    file = tmp_path / "child.yaml"
    file.write_text(f"schema_version: 1\nextends: lustre\nstations: {{oss: {{spread: {spread}}}}}\n")
    (one := tmp_path / "edited.yaml").write_text(
        dump(Fitted.open("lustre", [("stations.oss.spread", spread), ("stations.mds.servers", 5)]).best())
    )
    (two := tmp_path / "child_edited.yaml").write_text(
        dump(Fitted.open(str(file), [("stations.mds.servers", 5)]).best())
    )
    assert meaning(one) == meaning(two)
    assert meaning(one)["stations"]["oss"] == meaning(file)["stations"]["oss"]


def test_a_key_without_effect_is_refused_in_an_edit(tmp_path: Path) -> None:
    file = child(tmp_path, SAME["a spread by object"])
    edited = tmp_path / "edited.yaml"
    edited.write_text(dump(Fitted.open(str(file), [("stations.oss.stripe_size", "1MiB")]).best()))
    with pytest.raises(InputError, match="'stripe_size' has no effect"):
        binaries.resolve_platform(edited)


@pytest.mark.parametrize(
    "edits",
    [
        {"stations.oss.spread": "stripe", "stations.oss.stripe_count": 2, "stations.oss.stripe_size": "4MiB"},
        {"stations.oss.allocation": "weighted", "stations.oss.free": ["1GB"] * 16},
        {"network.topology": "torus", "network.torus": {"dimensions": [4, 4], "bandwidth": "1GB/s"}},
        {"stations.mds.discipline": "ps", "stations.mds.crowding": 0.1},
    ],
)
def test_no_edit_takes_away_what_another_says(edits: dict[str, Any]) -> None:
    for order in permutations(edits.items()):
        forecast = Fitted.open("lustre", list(order)).best()
        studied = edited(whole(Fitted.open("lustre").best()), [Edit(path, "set", value) for path, value in order])
        for path, value in edits.items():
            assert get_path(forecast, path) == get_path(studied, path) == value, order


def test_a_topology_that_is_no_name_is_refused_by_the_simulator(tmp_path: Path) -> None:
    for value in (["star"], {"star": 1}, 3):
        (file := tmp_path / "edited.yaml").write_text(dump(Fitted.open("lustre", [("network.topology", value)]).best()))
        with pytest.raises(InputError, match="topology"):
            binaries.resolve_platform(file)


def test_a_platform_of_simgrid_counts_by_its_content(tmp_path: Path) -> None:
    """Through a file in another folder, and as an edit of a study's design."""
    file = child(tmp_path, "", NETWORKS["simgrid"])
    (tmp_path / "far").mkdir()
    (other := tmp_path / "far" / "child.yaml").write_text("schema_version: 1\nextends: ../child.yaml\n")
    before = Fitted.open(str(file)).content_hash()
    assert Fitted.open(str(other)).content_hash() == before
    assert Fitted.open(str(file), [("network.latency", None)]).content_hash() == before
    assert platform_hash(read_yaml(other), other.parent) == platform_hash(read_yaml(file), file.parent)
    (copy := tmp_path / "far" / "copy.xml").write_text("")
    edit = [("network.simgrid", str(copy))]
    assert Fitted.open(str(file), edit).content_hash() == before
    key = content_hash(Edit("network.simgrid", "set", str(copy)).as_json())
    copy.write_text("<platform/>")
    assert Fitted.open(str(file), edit).content_hash() != before == Fitted.open(str(file)).content_hash()
    assert content_hash(Edit("network.simgrid", "set", str(copy)).as_json()) != key

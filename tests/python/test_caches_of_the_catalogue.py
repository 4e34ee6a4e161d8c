# SPDX-License-Identifier: Apache-2.0
"""What clients remember on the catalogue's platforms: cold and warm passes differ, a working set beyond a cache costs
what its formula says, entries end, and strides are read ahead."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from programs import REPOSITORY

from iocast import analytic
from iocast.ground.binaries import resolve_platform
from iocast.calibrate.search import remembers
from iocast.errors import InputError

SPEC = spec_from_file_location("sweep_of_caches", REPOSITORY / "validation" / "sweep" / "sweep.py")
assert SPEC is not None and SPEC.loader is not None
sweep = module_from_spec(SPEC)
sys.modules[SPEC.name] = sweep  # its dataclasses look themselves up there
SPEC.loader.exec_module(sweep)

Run = Callable[..., dict[str, Any]]
ATTRIBUTES = {
    "lustre": "attributes",
    "fuse": "attributes",
    "nfs": "attributes",
    "cephfs": "capabilities",
    "gpfs": "inodes",
    "mistral": "attributes",
    "ddn-duesseldorf": "attributes",
    "xt4": "attributes",
}
"""By platform, the cache that a node answers stat from."""
TREE = sweep.WORKLOADS["hpcs-12"]


def phase(run: dict[str, Any], name: str) -> dict[str, Any]:
    return next(p for p in run["phases"] if p["name"] == name)


@pytest.mark.parametrize(("workload", "nodes"), [("hpcs-10", 10), ("hpcs-11", 1), ("hpcs-12", 10)])
@pytest.mark.parametrize("platform", ATTRIBUTES)
def test_a_warm_pass_is_faster_where_clients_keep_attributes(platform: str, workload: str, nodes: int) -> None:
    assert sweep.check_caches(sweep.Question(platform, workload, nodes, TREE)) == []


def test_a_platform_without_a_cache_is_listed() -> None:
    assert sweep.check_caches(sweep.Question("beegfs", "hpcs-12", 1, TREE)) == ["stat looks into no cache of objects"]


STATS = "--workload operation-mix --set read=0 --set create=0 --set unlink=0 --set append=0 --set operations=6000"
FILES = 200


@pytest.mark.parametrize("platform", ATTRIBUTES)
def test_a_working_set_beyond_a_cache_costs_what_its_share_of_misses_says(
    platform: str, simulate: Run, tmp_path: Path
) -> None:
    """W files that are equally likely, of which C fit: a look-up misses with 1 - C / W, so that the mean time of a stat
    lies between those of all hits and of none in that proportion."""

    cache, endless = ATTRIBUTES[platform], ", valid: 1000s, valid_at_most: 1000s" * (platform in ("nfs", "fuse"))

    def stats(objects: int) -> tuple[float, float]:
        file = tmp_path / f"{objects}.yaml"
        file.write_text(
            f"schema_version: 1\nextends: {platform}\nclients: {{speed_sigma: 0}}\n"
            f"caches: {{{cache}: {{objects: {objects}{endless}}}}}\n"
        )
        run = phase(simulate(file, *STATS.split(), "--set", f"files={FILES}"), "benchmark")
        return run["latency"]["stat"]["mean"], run["caches"][cache]["hits"] / run["caches"][cache]["lookups"]

    (fastest, most), (slowest, least) = stats(10**6), stats(1)
    for objects in (50, 100, 150):
        mean, hits = stats(objects)
        start = FILES / 6000  # the first look-up of each file may miss
        assert hits == pytest.approx(objects / FILES, abs=5 * math.sqrt(0.25 / 6000) + start)
        assert mean == pytest.approx(fastest + (slowest - fastest) * (most - hits) / (most - least), rel=0.04)


@pytest.mark.parametrize("nodes", ["1", "256", "300", "1000"])
def test_each_node_finds_what_it_looked_up_however_many_there_are(nodes: str, simulate: Run) -> None:
    run = simulate(
        "lustre", "--workload", "hpcs-12", "--nodes", nodes, *(a for s in TREE for a in ("--set", s)), "--brief"
    )
    shares = {name: phase(run, name)["caches"]["attributes"] for name in ("dirty", "cold", "warm")}
    assert [one["hits"] for one in shares.values()] == [0, 0, shares["warm"]["lookups"]]
    assert shares["warm"]["lookups"] == 1110 and shares["cold"]["known"] == 1


ENDING = """schema_version: 1
stations: {s: {servers: 1}}
caches: {c: {objects: 10, valid: 1s, valid_at_most: 4s}}
operations:
  mkdir: []
  rmdir: []
  create: {}
  stat: [{cache: c, hit: [{delay: 100ms}], miss: [{delay: 100ms}]}]
  unlink: [{forget: c}]
"""


def test_an_entry_ends_and_is_valid_for_twice_as_long_when_it_was_confirmed(simulate: Run, tmp_path: Path) -> None:
    """A stat each 100 ms: look-ups miss at 0, after 1 s, then after 2 s, and every 4 s from there on."""
    (tmp_path / "p.yaml").write_text(ENDING)
    settings = STATS.replace("6000", "301").split()
    cache = phase(simulate(tmp_path / "p.yaml", *settings, "--set", "files=1"), "benchmark")["caches"]["c"]
    assert (cache["lookups"], cache["expired"]) == (301, 2 + math.floor((30 - 3) / 4.0))
    assert cache["hits"] == cache["lookups"] - cache["expired"] - 1


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("objects: 9, valid_at_most: 1s", ("no effect without 'valid'",)),
        ("objects: 9, valid: 2s, valid_at_most: 1s", ("2s at first, which is longer",)),
        ("capacity: 1MiB, page: 4KiB, valid: 1s", ("no effect without 'objects'",)),
        ("capacity: 1MiB, page: 4KiB, follows: strides", ("no effect without 'ahead'",)),
        ("capacity: 9MiB, page: 4KiB, ahead: 1MiB, follows: stripes, fetch: [{delay: 1ms}]", ("sequential, strides",)),
    ],
)
def test_keys_of_caches_that_make_no_sense_are_refused_with_their_line(
    keys: str, words: tuple[str, ...], simulator: Path, tmp_path: Path
) -> None:
    (tmp_path / "p.yaml").write_text(f"schema_version: 1\nextends: queue\ncaches: {{c: {{{keys}}}}}\n")
    done = subprocess.run([simulator, "--platform", tmp_path / "p.yaml"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "p.yaml:3" in done.stderr
    assert all(word in done.stderr for word in words), done.stderr


def test_what_no_object_sees_twice_is_not_kept_and_changes_no_time(simulate: Run, tmp_path: Path) -> None:
    """md-workbench calls stat once for each object: with the cache and without, the same times."""
    stat = json.dumps([{"station": "client", "demand": "client"}, {"limit": "rpcs", "steps": [
        {"delay": "network"}, {"station": "mds", "demand": "getattr"}, {"delay": "network"}]}])  # fmt: skip
    (tmp_path / "plain.yaml").write_text(f"schema_version: 1\nextends: lustre\noperations: {{stat: {stat}}}\n")
    settings = "--nodes 2 --ppn 3 --set datasets=2 --set objects=30 --set iterations=30".split()
    kept, plain = (simulate(file, *settings) for file in ("lustre", tmp_path / "plain.yaml"))
    for one, other in zip(kept["phases"], plain["phases"], strict=True):
        assert (one["seconds"], one["latency"]) == (other["seconds"], other["latency"])
    cache = phase(kept, "benchmark")["caches"]["attributes"]
    assert cache["lookups"] > 0 and cache["hits"] == cache["held"] == 0


def test_the_solver_takes_first_look_ups_as_misses_and_refuses_others() -> None:
    lustre = resolve_platform("lustre")
    mix = {"stat": 1.0}
    cold = analytic.solve(lustre, mix, 2, 4, 0, 1000, objects=1000)
    assert cold.left_out == [one for one in cold.left_out if "attributes" not in one]
    after = analytic.solve(lustre, mix, 2, 4, 0, 1000, objects=1000, before={"stat"})
    assert after.rate == cold.rate and any("'attributes'" in one for one in after.left_out)
    with pytest.raises(InputError, match="how often it hits"):
        analytic.solve(lustre, mix, 2, 4, 0, 1001, objects=1000)


def test_phases_before_matter_where_they_fill_a_cache() -> None:
    assert not remembers({"extends": "lustre"}, "md-workbench", "benchmark")
    made = {"create": {"open": [{"delay": "1ms"}, {"cache": "attributes"}]}}
    assert remembers({"extends": "lustre", "operations": made}, "md-workbench", "benchmark")
    assert remembers({"extends": "lustre"}, "hpcs-tree", "warm")
    assert not remembers({"extends": "lustre", "operations": {"stat": [{"delay": "1ms"}]}}, "hpcs-tree", "warm")
    assert remembers({"extends": "cooley"}, "md-workbench", "benchmark")  # its buffers


AHEAD = """schema_version: 1
stations:
  oss: {servers: 64}
caches:
  c:
    {capacity: 256MiB, page: 64KiB, ahead: 16MiB, unit: 1MiB, at_once: 8, follows: FOLLOWS,
     fetch: [{station: oss, demand: 10ms}]}
operations:
  mkdir: []
  rmdir: []
  create: {}
  open: []
  close: []
  fsync: []
  unlink: [{forget: c, of: everywhere}]
  pwrite: [{station: oss, demand: 1us}]
  pread: [{delay: 1ms}, {cache: c, miss: [{station: oss, demand: 10ms}]}]
"""
BLOCKS = 256


@pytest.mark.parametrize(
    ("layout", "follows", "ahead"),
    [
        ("segmented", "sequential", True),
        ("segmented", "strides", True),
        ("strided", "sequential", False),
        ("strided", "strides", True),
        ("random", "strides", False),
    ],
)
def test_read_ahead_knows_the_order(layout: str, follows: str, ahead: bool, simulate: Run, tmp_path: Path) -> None:
    """Blocks in turn are fetched ahead by all, blocks at equal distances by those that follow strides, and random ones
    by none. Of strides only the blocks are fetched, one request each."""
    (tmp_path / "p.yaml").write_text(AHEAD.replace("FOLLOWS", follows))
    settings = f"--workload application --nodes 4 --set layout={layout} --set block_size=64KiB --set run=write,read "
    settings += f"--set per_process={BLOCKS * 64}KiB"
    run = phase(simulate(tmp_path / "p.yaml", *settings.split()), "read")
    cache = run["caches"]["c"]
    if not ahead:
        assert cache["hits"] < 0.2 * cache["lookups"] and cache["requests"] <= 4
        return
    assert cache["hits"] > 0.97 * cache["lookups"] == 0.97 * 4 * BLOCKS
    assert run["seconds"] < 0.5 * BLOCKS * 11e-3
    if layout == "strided":
        assert cache["requests"] == pytest.approx(4 * BLOCKS, rel=0.02)
        assert cache["fetched"] / cache["requests"] == pytest.approx(64 * 1024, rel=0.06)
    else:  # a reader's window reaches into what its neighbour reads
        assert 1 <= cache["requests"] / (4 * BLOCKS / 16) < 2

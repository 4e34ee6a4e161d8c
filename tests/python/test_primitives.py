# SPDX-License-Identifier: Apache-2.0
"""How caches, pools and locks on ranges are reported: in run directories, in the resolved platform, and in the drawn
model. Their course is tested in tests/unit."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from iocast.report.figures.routes import FIGURE, route

PLATFORM = """schema_version: 1
stations:
  mds: {servers: 4}
caches:
  c: {station: mds, objects: 500}
operations:
  mkdir: []
  rmdir: []
  create: {open: [{cache: c}]}
  stat: [{cache: c, hit: [{station: mds, demand: 10us}], miss: [{delay: 1ms}, {station: mds, demand: 1ms}]}]
  unlink: [{forget: c}]
"""


def simulate(
    simulator: Path,
    place: Path,
    text: str,
    *settings: str,
    workload: str = "operation-mix",
    seed: int = 1,
    nodes: int = 1,
) -> dict[str, Any]:
    (place / "p.yaml").write_text(text)
    command = [
        str(simulator),
        "--platform",
        str(place / "p.yaml"),
        "--workload",
        workload,
        *(a for s in settings for a in ("--set", s)),
    ]
    done = subprocess.run(
        [*command, "--seed", str(seed), "--nodes", str(nodes), "--json"], capture_output=True, text=True, check=True
    )
    run: dict[str, Any] = json.loads(done.stdout)
    return run


STATS = ("files=1000", "operations=20000", "read=0", "create=0", "unlink=0", "append=0")


def test_a_run_tells_how_often_caches_hit(simulator: Path, tmp_path: Path) -> None:
    run = simulate(simulator, tmp_path, PLATFORM, *STATS)
    made, used, cleaned = (p["caches"]["c"] for p in run["phases"])
    assert made == {"lookups": 1000, "hits": 0, "held": 500, "known": 1.0}
    assert used["lookups"] == 20000 and used["hits"] == pytest.approx(
        10000, abs=5 * 5000**0.5
    )  # half of 1000 objects fit
    assert cleaned == {"lookups": 0, "hits": 0, "held": 0, "known": 1.0}
    assert simulate(simulator, tmp_path, PLATFORM, *STATS)["phases"] == run["phases"]


def test_the_resolved_platform_and_its_drawing_have_both_ways(simulator: Path, tmp_path: Path) -> None:
    platform = simulate(simulator, tmp_path, PLATFORM, *STATS)["platform"]
    assert platform["caches"] == {"c": {"station": "mds", "objects": 500}}
    rows = route("stat", platform["operations"]["stat"])
    assert [(r["name"], r["case"]) for r in rows] == [
        ("c", None),
        ("mds", "hit of c"),
        ("delay", "miss of c"),
        ("mds", "miss of c"),
    ]
    assert [r["name"] for r in route("unlink", platform["operations"]["unlink"])] == ["forget c"]
    assert FIGURE.draw([{"platform": "p", **row} for row in rows]).legend[-1].label == "look into a cache"


AHEAD = """schema_version: 1
stations:
  oss: {servers: 8}
caches:
  c:
    {capacity: 64MiB, page: 1MiB, ahead: 4MiB, unit: 2MiB, at_once: 2,
     fetch: [{station: oss, demand: {law: exponential, mean: 10ms}}]}
operations:
  mkdir: []
  rmdir: []
  create: {}
  open: []
  close: []
  fsync: []
  unlink: [{forget: c, of: everywhere}]
  pwrite: [{delay: 1ms}]
  pread: [{cache: c, hit: [{delay: 1ms}], miss: [{station: oss, demand: 10ms}]}]
"""


def test_a_run_tells_what_was_fetched_ahead_and_what_others_took(simulator: Path, tmp_path: Path) -> None:
    settings = ("block_size=1MiB", "per_process=32MiB", "sharing=process", "run=write,read,remove")
    run = simulate(simulator, tmp_path, AHEAD, *settings, workload="application")
    read, removed = (next(p for p in run["phases"] if p["name"].startswith(name)) for name in ("read", "remove"))
    cache = read["caches"]["c"]
    # The first block is missed; the rest of it, and of the next unit, is on its way by then.
    assert {k: cache[k] for k in ("lookups", "hits", "held", "fetched", "unused")} == {
        "lookups": 32,
        "hits": 31,
        "held": 32 << 20,
        "fetched": 31 << 20,
        "unused": 0,
    }
    assert 1 <= cache["waited"] <= 31 and cache["taken"] == 0
    assert read["stations"]["oss"]["operations"]["drain"]["visits"] == 16
    assert removed["caches"]["c"]["taken"] == 32 and removed["caches"]["c"]["held"] == 0
    assert simulate(simulator, tmp_path, AHEAD, *settings, workload="application")["phases"] == run["phases"]
    assert simulate(simulator, tmp_path, AHEAD, *settings, workload="application", seed=2)["phases"] != run["phases"]
    reported = run["platform"]["caches"]["c"]
    assert (reported["ahead"], reported["unit"], reported["at_once"]) == (4 << 20, 2 << 20, 2)
    assert reported["fetch"][0]["demand"]["mean"] == 0.01
    assert [r["name"] for r in route("unlink", run["platform"]["operations"]["unlink"])] == ["forget c everywhere"]


POOL = """schema_version: 1
stations:
  mds: {servers: 100}
  oss: {count: 2, spread: round-robin}
pools:
  p: {station: oss, size: 20, batch: 10, refill: [{station: oss, demand: {law: exponential, mean: 20ms}}]}
operations:
  mkdir: []
  create: {open: [{station: mds, demand: 1ms}, {take: p}]}
"""


def test_a_run_tells_what_a_pool_cost(simulator: Path, tmp_path: Path) -> None:
    settings = ("phases=precreate", "datasets=1", "objects=8000", "iterations=1")
    run = simulate(simulator, tmp_path, POOL, *settings, workload="md-workbench")
    phase = run["phases"][0]
    pool = phase["pools"]["p"]
    assert run["platform"]["pools"]["p"]["low"] == 10
    assert pool["taken"] == 8000 and pool["left"] == 40 + pool["made"] - pool["taken"] and pool["lowest"] == 0
    # One server after the other, each needing 10 objects every 20 ms in the mean: twice ten in the longer of two such
    # times, 30 ms, or nearly so.
    assert phase["seconds"] == pytest.approx(400 * 0.03, rel=0.2)
    assert pool["wait"] == pytest.approx(phase["seconds"] - 8, rel=0.01)
    assert phase["stations"]["oss"]["operations"]["drain"]["visits"] == pool["made"] / 10
    assert simulate(simulator, tmp_path, POOL, *settings, workload="md-workbench")["phases"] == run["phases"]
    assert simulate(simulator, tmp_path, POOL, *settings, workload="md-workbench", seed=2)["phases"] != run["phases"]
    rows = route("create", run["platform"]["operations"]["create"])
    assert [(r["name"], r["kind"]) for r in rows] == [("mds", "station"), ("take p", "another mechanism")]


RANGES = """schema_version: 1
stations:
  s: {servers: 100}
  oss: {count: 4, spread: stripe, stripe_size: 1MiB}
locks:
  l: {per: object, hand_over: {law: exponential, mean: 10ms}, extent: 4KiB, grow: 1GiB, station: oss}
operations:
  mkdir: []
  rmdir: []
  open: []
  close: []
  unlink: []
  pwrite: [{station: s, demand: 1ms, lock: l, recall: [{delay: 1ms}]}]
"""


def test_a_run_tells_how_often_ranges_were_called_back(simulator: Path, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(RANGES)

    def run(workload: str, seed: int = 1) -> dict[str, Any]:
        command = [
            str(simulator),
            "--platform",
            str(tmp_path / "p.yaml"),
            "--workload",
            workload,
            "--nodes",
            "8",
            "--seed",
            str(seed),
            "--json",
        ]
        settings = ("tests=write", "block_size=4MiB", "per_process=512MiB")
        done = subprocess.run(
            [*command, *(a for s in settings for a in ("--set", s))], capture_output=True, text=True, check=True
        )
        answer: dict[str, Any] = json.loads(done.stdout)
        answer["phase"] = next(p for p in answer["phases"] if p["name"] == "write")
        return answer

    segmented, strided = run("pio-sequential"), run("pio-simple-strided")
    # 128 blocks of each node lie on four servers; a segment is handed over once on each.
    assert segmented["phase"]["locks"]["l"] == {"taken": 4096, "kept": 4096 - 32, "called_back": 28, "ranges": 32}
    assert strided["phase"]["locks"]["l"]["called_back"] == 4096 - 4
    # All but the one whose lock has no end are served at a time, and the slowest of seven of four hand-overs each is
    # awaited, or nearly so.
    assert 1024 / 7 * 0.042 < strided["phase"]["seconds"] < 1024 / 7 * 4 * 0.042
    assert run("pio-simple-strided")["phases"] == strided["phases"]
    assert run("pio-simple-strided", 2)["phases"] != strided["phases"]
    answer = segmented["platform"]["locks"]["l"]
    assert (answer["extent"], answer["grow"], answer["station"]) == (4096, 1 << 30, "oss")
    rows = route("pwrite", segmented["platform"]["operations"]["pwrite"])
    assert [(r["name"], r["lock"], r["case"]) for r in rows] == [("s", "l", None), ("delay", None, "recall of l")]


PAGES = """schema_version: 1
serves: {node_local: all}
stations: {disk: {per: node, servers: 1}}
caches: {memory: {per: node, capacity: CAPACITY, page: 4KiB}}
operations:
  mkdir: []
  rmdir: []
  create: {}
  open: []
  close: []
  fsync: []
  unlink: [{forget: memory}]
  pwrite: [{cache: memory}]
  pread: [{cache: memory, hit: [{delay: 10us}], miss: [{station: disk, demand: 1ms}]}]
"""


@pytest.mark.parametrize(("nodes", "fits"), [(1, 16), (256, 16), (300, 16), (1000, 6), (10_000, 1)])
def test_a_nodes_memory_does_not_depend_on_how_many_nodes_there_are(
    simulator: Path, tmp_path: Path, nodes: int, fits: int
) -> None:
    """What fits is read from memory, and what does not from the disk: on each of
    any number of nodes, and a run says nothing of samples."""
    platform = PAGES.replace("CAPACITY", f"{fits}MiB")
    for mebibytes, hits, seconds in ((fits, 1, 10e-6), (fits + 1, 0, 1e-3)):
        settings = (f"per_process={mebibytes}MiB", "block_size=1MiB", "sharing=process", "run=write,read", "passes=2")
        run = simulate(simulator, tmp_path, platform, *settings, workload="application", nodes=nodes)
        read = next(p for p in run["phases"] if p["name"].startswith("read"))
        looked = read["caches"]["memory"]
        assert looked["lookups"] == nodes * 2 * mebibytes and looked["hits"] == hits * looked["lookups"]
        assert read["latency"]["pread"]["mean"] == pytest.approx(seconds, rel=1e-3)
        assert not any(f["kind"] == "sampled-cache" for f in run.get("model_limits", {}).get("findings", ()))

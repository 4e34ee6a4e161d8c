# SPDX-License-Identifier: Apache-2.0
"""What caches and pools are told as: in run directories, in the resolved platform, and in the drawn model. Their course is tested in tests/unit."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from iocast.report.figures.routes import FIGURE, _route

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


def simulate(simulator: Path, place: Path, text: str, *settings: str, workload: str = "operation-mix", seed: int = 1) -> dict[str, Any]:
    (place / "p.yaml").write_text(text)
    command = [str(simulator), "--platform", str(place / "p.yaml"), "--workload", workload, *(a for s in settings for a in ("--set", s))]
    done = subprocess.run([*command, "--seed", str(seed), "--nodes", "1", "--json"], capture_output=True, text=True, check=True)
    run: dict[str, Any] = json.loads(done.stdout)
    return run


STATS = ("files=1000", "operations=20000", "read=0", "create=0", "unlink=0", "append=0")


def test_a_run_tells_how_often_caches_hit(simulator: Path, tmp_path: Path) -> None:
    run = simulate(simulator, tmp_path, PLATFORM, *STATS)
    made, used, cleaned = (p["caches"]["c"] for p in run["phases"])
    assert made == {"lookups": 1000, "hits": 0, "held": 500, "known": 1.0}
    assert used["lookups"] == 20000 and used["hits"] == pytest.approx(10000, abs=5 * 5000**0.5)  # half of 1000 objects fit
    assert cleaned == {"lookups": 0, "hits": 0, "held": 0, "known": 1.0}
    assert simulate(simulator, tmp_path, PLATFORM, *STATS)["phases"] == run["phases"]


def test_the_resolved_platform_and_its_drawing_have_both_ways(simulator: Path, tmp_path: Path) -> None:
    platform = simulate(simulator, tmp_path, PLATFORM, *STATS)["platform"]
    assert platform["caches"] == {"c": {"station": "mds", "objects": 500}}
    rows = _route("stat", platform["operations"]["stat"])
    assert [(r["name"], r["case"]) for r in rows] == [("c", None), ("mds", "hit of c"), ("delay", "miss of c"), ("mds", "miss of c")]
    assert [r["name"] for r in _route("unlink", platform["operations"]["unlink"])] == ["forget c"]
    assert FIGURE.draw([{"platform": "p", **row} for row in rows]).legend[-1].label == "look into a cache"


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
    # One server after the other, each needing 10 objects every 20 ms in the mean: twice ten in the longer of two such times, 30 ms, or nearly so.
    assert phase["seconds"] == pytest.approx(400 * 0.03, rel=0.2)
    assert pool["wait"] == pytest.approx(phase["seconds"] - 8, rel=0.01)
    assert phase["stations"]["oss"]["operations"]["drain"]["visits"] == pool["made"] / 10
    assert simulate(simulator, tmp_path, POOL, *settings, workload="md-workbench")["phases"] == run["phases"]
    assert simulate(simulator, tmp_path, POOL, *settings, workload="md-workbench", seed=2)["phases"] != run["phases"]
    rows = _route("create", run["platform"]["operations"]["create"])
    assert [(r["name"], r["kind"]) for r in rows] == [("mds", "station"), ("p", "pool, one is taken")]

# SPDX-License-Identifier: Apache-2.0
"""Campaigns of steps on one data set, the MDWorkbench paper's protocol, and its tables."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from iocast.campaign.plan import read_plan
from iocast.errors import InputError
from iocast.report.paper_tables import paper_tables, paper_tables_text
from iocast.report.sources import read_sources

Iocast = Callable[..., CompletedProcess[str]]

STEPS = """schema_version: 1
workload: md-workbench
settings: {datasets: 1, objects: 30, iterations: 20}
repeats: 1
benchmark_repeats: 2
steps:
  - {name: precreate, settings: {phases: precreate}, role: beside}
  - {name: benchmark, settings: {phases: benchmark}}
  - {name: waiting, settings: {phases: benchmark, waiting_factor: 2}}
  - {name: read-only, settings: {phases: benchmark, read_only: true}, role: beside}
  - {name: cleanup, settings: {phases: cleanup}, role: beside}
points:
  - {nodes: 10, ranks_per_node: 2}
"""


def test_the_papers_protocol_is_planned() -> None:
    plan = read_plan("mdworkbench-paper")
    assert [step.name for step in plan.steps] == ["precreate", "benchmark", "again", "waiting", "read-only", "cleanup"]
    assert plan.benchmark_repeats == 3 and plan.settings == {"object_size": "3901B"}
    shapes = [(p.nodes, p.ranks_per_node, *(v for _, v in p.settings)) for p in plan.points]
    sets = [(1, 10000, 2000), (10, 1000, 200), (10, 10000, 2000)]
    assert sorted(shapes) == sorted((10, per_node, *own) for per_node in (1, 10) for own in sets)
    # A smaller system and less work: points that then are the same are one.
    small = read_plan("mdworkbench-paper", nodes=2, settings={"objects": "10", "iterations": "5"})
    assert sorted((p.nodes * p.ranks_per_node, dict(p.settings)["datasets"]) for p in small.points) == [
        (2, 1),
        (2, 10),
        (20, 1),
        (20, 10),
    ]


def test_steps_share_a_data_set_and_are_resumed_as_a_whole(iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "steps.yaml").write_text(STEPS)
    (tmp_path / "root").mkdir()
    ask = (
        "measure",
        tmp_path / "root",
        "--campaign",
        tmp_path / "steps.yaml",
        "--out",
        tmp_path / "out",
        "--nodes",
        "1",
        "--json",
    )
    done = iocast(*ask)
    assert done.returncode == 0, done.stderr
    campaign = json.loads(done.stdout)
    assert [p["status"] for p in campaign["points"]] == ["complete"] * 5 and not any((tmp_path / "root").iterdir())
    runs = {
        p["step"]: json.loads((tmp_path / "out" / "runs" / p["name"] / "run.json").read_text())
        for p in campaign["points"]
    }
    assert [p["name"] for p in runs["precreate"]["phases"]] == ["precreate"] and [
        p["name"] for p in runs["benchmark"]["phases"]
    ] == ["benchmark"] * 2
    # Each goes on where the one before it ended: 2 repeats of 20 iterations, then 2 more.
    assert [runs[s]["workload"]["parameters"]["start_index"] for s in ("benchmark", "waiting", "read-only")] == [
        0,
        40,
        80,
    ]
    assert (
        set(runs["read-only"]["phases"][0]["latency"]) >= {"stat", "read"}
        and "create" not in runs["read-only"]["phases"][0]["latency"]
    )
    assert all(p["errors"] == 0 for run in runs.values() for p in run["phases"])

    # The tables: T = 2 is virtual, three times the measured rate; the read-only step is in neither.
    tables = paper_tables(read_sources([tmp_path / "out"]))
    (row,) = tables["table1"]
    creates = {
        s: sum(p["latency"]["create"]["count"] for p in r["phases"]) / sum(p["seconds"] for p in r["phases"])
        for s, r in runs.items()
        if s in ("precreate", "benchmark", "waiting")
    }
    assert row["precreate"] == pytest.approx(creates["precreate"]) and row["benchmark"] == pytest.approx(
        {"0": creates["benchmark"], "2": 3 * creates["waiting"]}
    )
    (second,) = tables["table2"]
    assert (second["nodes"], second["ppn"], second["d"], second["i"], second["p"]) == (1, 2, 1, 20, 30)
    assert second["op_max"] == max(v["max"] for p in runs["benchmark"]["phases"] for v in p["latency"].values())

    # As after a kill in the third step: all steps are made anew, what there was is kept.
    content = json.loads((tmp_path / "out" / "campaign.json").read_text())
    for point in content["points"][2:]:
        point["status"] = "planned"
    (tmp_path / "out" / "campaign.json").write_text(json.dumps(content))
    done = iocast(*ask)
    assert done.returncode == 0, done.stderr
    assert all(p["status"] == "complete" for p in json.loads(done.stdout)["points"]) and not any(
        (tmp_path / "root").iterdir()
    )
    assert (tmp_path / "out" / "runs" / (content["points"][0]["name"] + ".interrupted-1")).is_dir()
    # Other overrides would be another campaign.
    done = iocast(*ask, "--set", "objects=31")
    assert done.returncode == 2 and "other --nodes or --set" in done.stderr


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("ranks_per_node: 2", "ranks_per_node: 2, ranks: 2", "exactly one of"),
        ("ranks_per_node: 2", "role: fit", "exactly one of"),
        ("name: waiting", "name: benchmark", "same name"),
        ("role: beside}\n  - {name: benchmark", "role: besides}\n  - {name: benchmark", "Did you mean 'beside'"),
        ("ranks_per_node: 2", "ranks_per_node: 2, settings: 7", "a map of parameters"),
    ],
)
def test_refusals(tmp_path: Path, old: str, new: str, words: str) -> None:
    (tmp_path / "c.yaml").write_text(STEPS.replace(old, new))
    with pytest.raises(InputError, match=words) as error:
        read_plan(str(tmp_path / "c.yaml"))
    assert "c.yaml:" in str(error.value)


def made(directory: Path, phases: list[dict[str, Any]], factor: float) -> Path:
    directory.mkdir()
    run = {
        "schema_version": 1,
        "kind": "run",
        "source": "bench",
        "status": "complete",
        "placement": {"ranks": 100, "nodes": 10, "ranks_per_node": 10},
        "workload": {
            "name": "md-workbench",
            "pattern": "md-workbench",
            "parameters": {"datasets": 1, "objects": 10000, "iterations": 2000, "waiting_factor": factor},
        },
        "environment": {"filesystem": {"type": "gpfs", "mount_point": "/home"}},
        "phases": phases,
    }
    (directory / "run.json").write_text(json.dumps(run))
    return directory


def test_tables_look_like_the_papers(tmp_path: Path) -> None:
    """ALCF Cooley's rows of Tables 1 and 2 (10 nodes, 10 processes each, D = 1), given the numbers they were made
    of."""

    def phase(name: str, rate: float, **more: Any) -> dict[str, Any]:
        quartiles = {"read": 1.8e-2, "stat": 8.3e-4, "create": 5.6e-4, "unlink": 2.8e-4}
        latency = {
            op: {"count": 200_000, "q75": q, "max": 0.2 if op == "create" else 0.1} for op, q in quartiles.items()
        }
        return {
            "name": name,
            "repeat": 1,
            "seconds": 200_000 / rate,
            "operations": 800_000,
            "errors": 0,
            "rate": 4 * rate,
            "balance": 0.607,
            "latency": latency,
            **more,
        }

    sources = [
        made(tmp_path / "a", [phase("precreate", 6500.4), phase("benchmark", 5640.0)], 0.0),
        made(tmp_path / "b", [phase("benchmark", 1660.0)], 4.0),
    ]
    text = paper_tables_text(paper_tables(read_sources(sources)))
    lines = [line.split() for line in text.splitlines()]
    assert "gpfs on /home 10 10 1 6,500 5,640 8,300".split() in lines
    assert "gpfs on /home 10 10 1 2000 10k 5640 60.7 0.20 1.8E-2 8.3E-4 5.6E-4 2.8E-4".split() in lines


def test_text_on_the_command_line(iocast: Iocast, measured: Path, tmp_path: Path) -> None:
    done = iocast("report", measured / "n2-r1", "--text", "paper-tables", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["table1"][0]["ppn"] == 2
    assert iocast("report", measured / "n2-r1", "--text", "paper").returncode == 2
    assert not Path("report.html").exists()

# SPDX-License-Identifier: Apache-2.0
"""Numbers of a fitted platform that nothing measured are named, and a forecast that rests on them has no interval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from forked import Iocast
from programs import REPOSITORY

from iocast.platforms.fitted import Fitted
from iocast.report.figures import study_risk
from iocast.report.sources import read_sources
from iocast.report.study_tables import all_tables
from iocast.study.desk import Desk
from iocast.study.spec import read_study
from iocast.study.store import Store
from iocast.platforms.unmeasured import unmeasured
from iocast.runs.question import Question
from iocast.jobs.workers import Workers

STUDY = """
schema_version: 1
platform: {platform}
confidence: 0.9
workloads:
  w: {{workload: {workload}}}
scales:
  s: {{nodes: 1, ranks_per_node: 4}}
axes:
  cores: {{path: stations.cpu.servers, values: [4, 8]}}
levels: ["rate(all) >= 1 /s"]
search: {{replications: 4}}
"""
TUTORIAL = REPOSITORY / "examples" / "tutorial" / "fitted.yaml"


@pytest.fixture(scope="module")
def on_lustre(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A platform of the family lustre whose create, stat, read and unlink were measured, and nothing of bulk data."""
    document = yaml.safe_load(TUTORIAL.read_text())
    laws = ("client", "close", "getattr", "open", "make", "remove", "ost_read", "cached_write")
    document |= {"extends": "lustre", "demands": dict.fromkeys(laws, "20us"), "stations": {"mds": {"servers": 4}}}
    document.pop("clients", None)
    document["fitted"]["draws"] = []
    file = tmp_path_factory.mktemp("lustre") / "fitted.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def test_what_was_measured_rests_on_measurements(on_lustre: Path) -> None:
    for file in (TUTORIAL, on_lustre):
        assert not unmeasured(Fitted.open(str(file)), ["create", "stat", "read", "unlink"])
    assert not unmeasured(Fitted.open("lustre"), ["pwrite"])  # never calibrated: that is its own sentence


def test_each_number_that_nothing_measured_is_named_until_somebody_sets_it(on_lustre: Path) -> None:
    """A family: setting all that is named, by edits, leaves nothing; leaving one out leaves that one."""
    for operation in ("pwrite", "pread", "append", "readdir", "fsync"):
        named = unmeasured(Fitted.open(str(on_lustre)), [operation])[operation]
        assert named and all(not path.startswith("demands.getattr") for path in named)
        edits: list[tuple[str, Any]] = [(path, "1us" if "bandwidth" not in path else "1GB/s") for path in named]
        assert not unmeasured(Fitted.open(str(on_lustre), edits), [operation])
        for k, (path, _) in enumerate(edits):
            others = Fitted.open(str(on_lustre), edits[:k] + edits[k + 1 :])
            assert unmeasured(others, [operation]) == {operation: [path]}
    pwrite = unmeasured(Fitted.open(str(on_lustre)), ["stat", "pwrite"])
    assert list(pwrite) == ["pwrite"]
    assert {"demands.ost_pwrite", "network.node_bandwidth", "network.server_bandwidth"} <= set(pwrite["pwrite"])


@pytest.mark.parametrize(("measured", "requested"), [(0, 3901), (0, 0), (3901, 3901), (3901, 0)])
def test_content_is_not_known_from_empty_objects(
    measured: int, requested: int, on_lustre: Path, tmp_path: Path
) -> None:
    """Their creates and reads say nothing of it; an edit settles what they leave out."""
    document = yaml.safe_load(on_lustre.read_text())
    document["fitted"]["campaign"]["workload"]["parameters"]["object_size"] = measured
    (file := tmp_path / "fitted.yaml").write_text(yaml.safe_dump(document))
    workload: Any = {"pattern": "md-workbench", "parameters": {"object_size": requested, "datasets": 2}}
    question = Question.of(workload, {"ranks": 4, "nodes": 1, "ranks_per_node": 4}, "benchmark")
    found = unmeasured(Fitted.open(str(file)), ["create", "stat", "read", "unlink"], question)
    if not measured < requested:
        assert not found
        return
    assert set(found) == {"create", "read"}
    assert "demands.cached_write" in found["create"] and "demands.ost_read" in found["read"]
    edits: list[tuple[str, Any]] = [
        (path, "1GB/s" if "bandwidth" in path else "1us") for paths in found.values() for path in paths
    ]
    assert not unmeasured(Fitted.open(str(file), edits), list(found), question)


@pytest.mark.parametrize("settings", [{"object_size": 0}, {"object_size": 4096}])
@pytest.mark.parametrize("times", [0.5, 1.0, 1.9, 2.1, 100.0])
def test_content_is_not_known_from_far_smaller_objects_of_any_workload(
    settings: dict[str, int], times: float, on_lustre: Path, tmp_path: Path
) -> None:
    """Another workload's sizes have other names; what one operation moves has not."""
    document = yaml.safe_load(on_lustre.read_text())
    document["fitted"]["campaign"]["workload"]["parameters"] |= settings
    (file := tmp_path / "fitted.yaml").write_text(yaml.safe_dump(document))
    other: Any = {"pattern": "operation-mix", "parameters": {"size_median": 4096 * times}}
    question = Question.of(other, {"ranks": 4, "nodes": 1, "ranks_per_node": 4}, "benchmark")
    sizes = {"create": 4096 * times, "read": 4096 * times}
    found = unmeasured(Fitted.open(str(file)), ["create", "stat", "read", "unlink"], question, bytes_each=sizes)
    named = {path for paths in found.values() for path in paths}
    assert set(found) <= {"create", "read"}
    assert ({"demands.cached_write", "demands.ost_read"} <= named) is (times > 2 or settings == {"object_size": 0})
    assert ("network.node_bandwidth" in named) is (times > 1.1 or settings == {"object_size": 0})


@pytest.mark.parametrize(
    ("workload", "known"),
    [
        ("md-workbench, settings: {datasets: 4, objects: 20, iterations: 20, repeats: 1}", True),
        ("ior-easy, phase: write, settings: {per_process: 2MiB, transfer_size: 1MiB}", False),
    ],
)
def test_a_study_is_as_sure_as_its_numbers(workload: str, known: bool, iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY.format(platform=TUTORIAL, workload=workload))
    done = iocast("study", tmp_path / "study.yaml", "--out", tmp_path / "answer", "--workers", "1")
    assert done.returncode == 0, done.stderr
    headline = done.stdout.splitlines()[0]
    assert (" confidence (required: 90 %)" in headline) is known, headline
    assert ("how surely is not known" in headline and "nothing measured its demands." in headline) is not known
    assert ("calibrate with that" in done.stdout) is not known
    assert ("without having seen it" in done.stdout) is known
    assert ("unknown chance" in done.stdout) is not known
    assert known or ("more than 99 %" not in done.stdout and "less than 1 %" not in done.stdout)
    sources = read_sources([tmp_path / "answer"])
    chances = [row["probability"] for table in all_tables(sources) for row in table.rows if "probability" in row]
    assert chances and {one is not None for one in chances} == {known}
    assert any(row["panel"] == "chance" for row in study_risk.data(sources) or []) is known


def test_what_each_design_sets_needs_no_measurement(on_lustre: Path, tmp_path: Path) -> None:
    """An axis with a number of its own for each value settles it; one that leaves it alone in one value does not, nor
    one that multiplies it."""
    workload = "ior-easy, phase: write, settings: {per_process: 2MiB, transfer_size: 1MiB}"
    document = yaml.safe_load(STUDY.format(platform=on_lustre, workload=workload))
    document["axes"] = {"servers": {"path": "stations.mds.servers", "values": [4, 8]}}

    def named(**axes: Any) -> set[str]:
        (tmp_path / "study.yaml").write_text(yaml.safe_dump(document | {"axes": document["axes"] | axes}))
        with Workers(1) as workers, Store(tmp_path / "store") as store:
            desk = Desk(read_study(tmp_path / "study.yaml"), store, workers, lambda *_: None)
            found = desk.unmeasured(desk.platforms[desk.study.platform])
        return {path for paths in found.values() for path in paths}

    path, every = "network.node_bandwidth", named()
    assert path in every
    assert named(cards={"path": path, "values": ["1GB/s", "2GB/s"]}) == every - {path}
    assert named(cards={"as it is": {}, "new": {"edit": {path: "2GB/s"}}}) == every
    assert named(cards={"one": {"edit": {path: {"times": 2}}}, "two": {"edit": {path: {"times": 3}}}}) == every
    law = {"slow": {"edit": {"demands.ost_pwrite": "1ms"}}, "fast": {"add": {"demands": {"ost_pwrite": "1us"}}}}
    assert named(law=law) == every - {"demands.ost_pwrite"}


def test_a_forecast_is_as_sure_as_its_numbers(iocast: Iocast, tmp_path: Path) -> None:
    """The measured workload has intervals. Bulk data, which nothing measured, have none and the sentence, until all
    numbers that it names are set."""

    def forecast(*options: str) -> dict[str, Any]:
        done = iocast("predict", TUTORIAL, "--nodes", "1", "--ppn", "4", "--json", *options)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    own = forecast("--set", "objects=20", "--set", "iterations=20")
    assert (
        not own["rests_on"]
        and own["quantities"]["rate"]["low"]
        and not any("family's own" in w for w in own["warnings"])
    )
    bulk = ("--workload", "ior-easy", "--phase", "write", "--set", "per_process=2MiB", "--set", "transfer_size=1MiB")
    guess = forecast(*bulk)
    assert guess["quantities"]["rate"]["value"] > 0 and guess["draws"]["used"] == 0
    assert all(one["low"] is None for one in (guess["quantities"] | guess["parts"]).values())
    (printed,) = [w for w in guess["warnings"] if "family's own" in w]
    assert "demands.pwrite" in printed and "pwrite" in guess["rests_on"]
    paths = {path for named in guess["rests_on"].values() for path in named}
    edits = [f"--edit={path}={'1GB/s' if path.endswith('bandwidth') else '10us'}" for path in sorted(paths)]
    assert not forecast(*bulk, *edits)["rests_on"]

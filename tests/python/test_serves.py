# SPDX-License-Identifier: Apache-2.0
"""What a platform's file says that it serves: other questions are refused by runs, forecasts and studies alike."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from schedule import SOME_PLATFORMS, mostly_long

from iocast.ground import binaries
from iocast.api.study import study
from iocast.platforms.content import whole
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.records.codes import notes_of
from iocast.records.note import ModelLimit
from iocast.forecasts.answer import predict
from iocast.platforms.documents import PLATFORMS, dump
from iocast.published.facts import FACTS, read_facts
from iocast.published.serves import Serves

Run = Callable[..., dict[str, Any]]
SMALL = ["--workload", "md-workbench", "--set", "datasets=1", "--set", "objects=20", "--set", "iterations=10"]
SETTINGS = {"datasets": "1", "objects": "20", "iterations": "10"}
ALONE = "extends: lustre\nstations: {work: {per: node}}\noperations: {stat: [{station: work, demand: 1ms}]}\n"
SLOW = "extends: lustre\nserves: {bounds: {BOUND}}\n"


def platform_file(folder: Path, text: str) -> Path:
    file = folder / "site.yaml"
    file.write_text("schema_version: 1\n" + text)
    return file


def refusal(simulator: Path, *arguments: str | Path) -> str:
    done = subprocess.run(list(map(str, (simulator, *arguments))), capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stdout
    return done.stderr


def study_file(folder: Path, platform: str | Path, nodes: int, file: str = "study.yaml") -> Path:
    made = folder / file
    made.write_text(
        f"schema_version: 1\nplatform: {platform}\n"
        "workloads: {files: {workload: md-workbench, phase: benchmark, scales: [all],\n"
        "  settings: {datasets: 1, objects: 20, iterations: 10}}}\n"
        f"scales: {{all: {{nodes: {nodes}, ranks_per_node: 1}}}}\n"
        "axes: {cores: {as it is: {parts: {node: 1}}, again: {parts: {node: 2}}}}\n"
        "currency: EUR\nparts: {node: {price: 1, source: made up}}\nsearch: {replications: 4}\n"
        "levels: [rate(create) >= 1/s]\n"
    )
    return made


def test_an_operation_without_a_server_is_refused_on_several_nodes(
    simulator: Path, simulate: Run, tmp_path: Path
) -> None:
    file = platform_file(tmp_path, ALONE)
    refused = "on the platform 'site' these operations visit nothing that client nodes share: stat"
    sentence = f"{file}:4: {refused}"
    assert sentence in refusal(simulator, "--platform", file, "--nodes", "2", *SMALL)
    for solver in ("simulate", "analytic"):
        with pytest.raises(InputError, match=sentence):
            predict(Fitted.open(str(file)), "md-workbench", SETTINGS, 2, 1, solver=solver)
    with pytest.raises(InputError, match=f"{file}: {refused}"):
        study(study_file(tmp_path, file, 2), out=tmp_path / "study")
    assert simulate(file, *SMALL)["phases"]
    file = platform_file(tmp_path, ALONE + "serves: {node_local: [stat]}\n")
    run = simulate(file, "--nodes", "2", *SMALL)
    assert [one["operation"] for one in run["model_limits"]["findings"]] == ["stat"]
    answer = study(study_file(tmp_path, file, 2), out=tmp_path / "studied")
    forecast = predict(Fitted.open(str(file)), "md-workbench", SETTINGS, 2, 1, solver="simulate")
    for cautions in (answer.cautions, notes_of(forecast)):
        (limit,) = [one for one in cautions if isinstance(one, ModelLimit)]
        assert limit.kind == run["model_limits"]["findings"][0]["kind"] and "'site'" in limit.sentence


@pytest.mark.parametrize("bound", ["create: {rate: 100/s}", "create: {bytes: 1kB/s}"])
def test_a_rate_beyond_a_declared_bound_is_no_answer(
    simulator: Path, simulate: Run, tmp_path: Path, bound: str
) -> None:
    file = platform_file(tmp_path, SLOW.replace("BOUND", bound))
    assert f"{file}:3: in the phase" in (sentence := refusal(simulator, "--platform", file, *SMALL))
    assert "the most that it serves" in sentence
    for solver in ("simulate", "analytic"):
        with pytest.raises(InputError, match=rf"{file}:3: in the phase .* the most that it serves"):
            predict(Fitted.open(str(file)), "md-workbench", SETTINGS, 1, 1, solver=solver)
        with pytest.raises(InputError, match=r"on the platform 'site', whose file") as error:
            predict(
                Fitted.open(str(file), [("stations.mds.servers", 5)]), "md-workbench", SETTINGS, 1, 1, solver=solver
            )
        assert "candidate" not in str(error.value)
    wide = platform_file(tmp_path, SLOW.replace("BOUND", "create: {rate: 1000000/s, bytes: 100GB/s}"))
    assert simulate(wide, *SMALL)["phases"] == simulate("lustre", *SMALL)["phases"]


def test_far_beyond_all_facts_needs_a_word(simulator: Path, simulate: Run, tmp_path: Path) -> None:
    facts = Serves.of(Fitted.open("ime"))
    nodes = str(11 * facts.nodes)
    refused = refusal(simulator, "--platform", "ime", "--nodes", nodes, *SMALL)
    assert "11 times the largest of any published number" in refused and "--beyond" in refused
    far = simulate("ime", "--nodes", nodes, *SMALL, "--beyond")["basis"]
    assert len(far) == 1 and "11 times" in far[0]
    assert simulate("ime", "--nodes", "2", *SMALL)["basis"] == []
    with pytest.raises(InputError, match="with --beyond"):
        study(study_file(tmp_path, "ime", 11 * facts.nodes), out=tmp_path / "far")


def test_an_empty_calibration_lifts_no_limit(simulator: Path, tmp_path: Path) -> None:
    nodes = 11 * Serves.of(Fitted.open("ime")).nodes
    file = platform_file(tmp_path, "extends: ime\nfitted: {}\n")
    assert "with --beyond" in refusal(simulator, "--platform", file, "--nodes", str(nodes), *SMALL)
    with pytest.raises(InputError, match="with --beyond"):
        Serves.of(Fitted.open(str(file))).refuse_beyond(nodes, nodes)


@pytest.mark.parametrize("serves", ["{facts: {nodes: 1k, ranks: 8k}}", "5", "{facts: [3]}", "{bounds: {stat: 3}}"])
def test_what_it_cannot_be_is_refused_with_its_line(tmp_path: Path, serves: str) -> None:
    file = platform_file(tmp_path, f"extends: lustre\nserves: {serves}\n")
    with pytest.raises(InputError, match=rf"{file}:3: in serves"):
        Serves.of(Fitted.open(str(file)))


def test_a_template_says_in_every_answer_that_it_is_one(simulator: Path, simulate: Run, tmp_path: Path) -> None:
    words = "a template, no facts"
    assert any(words in text for text in simulate("lustre", *SMALL)["basis"])
    shown = subprocess.run([simulator, "--platform", "lustre", *SMALL], capture_output=True, text=True, check=True)
    assert words in shown.stdout
    answer = predict(Fitted.open("lustre"), "md-workbench", SETTINGS, 1, 1, solver="analytic")
    assert any(words in text.lower() for text in answer["basis"])
    decided = study(study_file(tmp_path, "lustre", 1), out=tmp_path / "template").document()
    assert any(words in text.lower() for text in decided["warnings"])
    assert not Serves.of(Fitted.open("cori")).template


def test_the_scale_that_a_platform_states_is_the_largest_of_its_facts() -> None:
    largest: dict[str, list[int]] = {}
    with (FACTS / "frozen.csv").open(newline="", encoding="utf-8") as file:
        rows = [(row["platform"], int(row["nodes"]), int(row["ppn"])) for row in csv.DictReader(file)]
    rows += [
        (fact.platform, fact.nodes, fact.ppn) for source in ("mdworkbench2018", "sandy9") for fact in read_facts(source)
    ]
    for platform, nodes, ppn in rows:
        before = largest.get(platform, [0, 0])
        largest[platform] = [max(before[0], nodes), max(before[1], nodes * ppn)]
    for platform, scale in largest.items():
        if (PLATFORMS / f"{platform}.yaml").is_file():
            stated = Serves.of(Fitted.open(platform))
            assert [stated.nodes, stated.ranks] == scale and stated.platform == platform, platform


def test_it_is_in_the_resolved_platform(simulator: Path) -> None:
    done = subprocess.run(
        [simulator, "--platform", "xt4", "--print-platform"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["serves"] == {
        "facts": {"nodes": 256, "ranks": 256},
        "bounds": {"pwrite": {"bytes": 5.25e9}},
    }


@pytest.mark.parametrize(
    "name",
    mostly_long(
        sorted(one.stem for one in PLATFORMS.glob("*.yaml")), (*SOME_PLATFORMS, "xt4"), "others are merged alike"
    ),
)
def test_a_platform_that_is_merged_for_edits_serves_the_same(simulator: Path, tmp_path: Path, name: str) -> None:
    """Studies and edits simulate it so: as one document, in which no key is inherited."""
    file = tmp_path / "merged.yaml"
    file.write_text(dump(whole({"extends": name})))
    assert binaries.resolve_platform(file)["serves"] == binaries.resolve_platform(name)["serves"]

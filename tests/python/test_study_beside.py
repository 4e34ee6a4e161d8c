# SPDX-License-Identifier: Apache-2.0
"""Studies of platforms that nobody calibrated: measured systems beside the levels, and sentences that can be obeyed."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from study_inputs import changed, write

from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict
from iocast.study import words
from iocast.wording.study import as_text

Iocast = Callable[..., CompletedProcess[str]]
FEW = {"datasets": 2, "objects": 40, "iterations": 40}
OFFERS = {"offer": {"one": {"edit": {"stations.mds.servers": 1}}, "two": {"edit": {"stations.mds.servers": 2}}}}
QUESTION = changed(
    workloads={
        "mix": {"workload": "md-workbench", "settings": FEW},
        "other": {"workload": "md-workbench", "settings": {**FEW, "datasets": 1}},
    },
    scales={"few": {"nodes": 2, "ranks_per_node": 2}},
    axes=OFFERS,
    levels=[{"level": "rate(create) >= 1k/s", "workload": "mix"}, {"level": "p99(stat) < 1 s", "workload": "mix"}],
    uncertainty=None,
    base=None,
    most_operations=1000,
)


@pytest.fixture(scope="module")
def study(iocast: Iocast, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("beside")
    done = iocast("study", write(directory, QUESTION), "--out", directory / "answer", "--workers", "1", "--json")
    return dict(json.loads(done.stdout))


def test_measured_systems_stand_beside_each_level(study: dict[str, Any]) -> None:
    family = study["family"]
    assert [one["name"] for one in family["systems"]] == ["ddn-duesseldorf", "mistral"]
    assert {one["level"] for one in family["levels"]} == {"rate(create) >= 1k/s", "p99(stat) < 1 s"}
    settings = {key: str(value) for key, value in FEW.items()}
    forecast = predict(Fitted.open("lustre"), "md-workbench", settings | {"iterations": "31"}, 2, 2)
    for system in forecast["family"]["systems"]:
        rates = [one["values"][system["name"]] for one in family["levels"] if "rate" in one["level"]]
        share = forecast["operations"]["create"]["share"]
        assert rates == [pytest.approx(share * system["quantities"]["rate"], rel=1e-5)]
    table = next(line for line in as_text(study).splitlines() if "tightest" in line)
    assert table.split()[-2:] == ["ddn-duesseldorf", "mistral"]
    assert any("Beside the levels stand the catalogue's measured systems" in one for one in study["warnings"])


def test_a_workload_without_a_level_decides_nothing_and_means_say_so(study: dict[str, Any]) -> None:
    assert any(one.startswith("No level is about other") for one in study["warnings"])
    assert "geometric means over workloads of unlike operations" in as_text(study)


def test_a_capped_simulation_names_the_cap(study: dict[str, Any]) -> None:
    stalls = [one for one in study["warnings"] if "periods of the stall commit" in one]
    assert stalls and all("raise 'most_operations' of the study" in one for one in stalls)


def test_a_platform_set_by_hand_to_measurements_says_so(iocast: Iocast, tmp_path: Path) -> None:
    question = {**QUESTION, "platform": "mistral"}
    other = {"workload": "mdtest-easy", "settings": {"items": 20}}
    question["workloads"] = {**QUESTION["workloads"], "other": other}
    done = iocast("study", write(tmp_path, question), "--out", tmp_path / "answer", "--workers", "1", "--json")
    found = json.loads(done.stdout)
    assert "its author set them by hand to measurements of md-workbench" in found["headline"]
    assert any("set its numbers by hand to measurements of md-workbench" in one for one in found["warnings"])
    assert [one["name"] for one in found["family"]["systems"]] == ["ddn-duesseldorf"]


def test_less_confidence_is_named_as_what_the_design_has() -> None:
    answer: dict[str, Any] = {
        "decision": {"id": "B", "cost": 0},
        "designs": [{"id": "A", "name": "A", "probability": 0.7, "meets": False, "cost": 0}],
        "confidence_asked": 0.9,
        "platform": {"name": "p", "calibrated": True},
        "other_confidences": [
            {"confidence": c, "design": "A" if c < 0.7 else "B", "name": "A", "cost": 0}
            for c in (0.5, 0.8, 0.9, 0.95, 0.99)
        ],
        "sensitivity": {"uncertain": []},
        "measurements": [],
        "nearest_miss": None,
    }
    assert words.changes(answer) == ["Where 70 % confidence is enough, \u201cA\u201d would do."]
    answer["platform"]["unmeasured"] = {"pwrite": ["demands.ost_pwrite"]}
    assert words.changes(answer) == []

# SPDX-License-Identifier: Apache-2.0
"""Every shipped study answers, in a small size: fewer clients, fewer operations, two designs simulated."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from programs import REPOSITORY
from study_inputs import write

from iocast.study import run_study
from iocast.study.workers import Workers

EXAMPLES = sorted((REPOSITORY / "examples").glob("*/study.yaml"))
SMALL = [file for file in EXAMPLES if file.parent.name != "tutorial"]  # which is run in full with its page


def small(file: Path) -> dict[str, Any]:
    """The study with at most eight nodes of four ranks, its files named in full."""
    study = yaml.safe_load(file.read_text())
    for i, scale in enumerate(sorted(study["scales"].values(), key=lambda s: s["nodes"] * s["ranks_per_node"]), start=1):
        scale |= {"nodes": min(scale["nodes"], 2 * i), "ranks_per_node": min(scale["ranks_per_node"], 4)}
    study |= {"search": {"simulate": 2, "replications": 4}, "most_operations": 1000}
    named = [study, *(value for axis in study["axes"].values() if "path" not in axis for value in axis.values())]
    for one in named:
        if str(one.get("platform", "")).endswith(".yaml"):
            one["platform"] = str((file.parent / one["platform"]).resolve())
    return study


@pytest.mark.parametrize("file", SMALL, ids=lambda f: f.parent.name)
def test_an_example_answers(file: Path, simulator: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IOCAST_BUILD", str(simulator.parents[1]))
    page = file.with_name("README.md")
    assert f"examples/{file.parent.name}/study.yaml" in page.read_text()
    study = small(file)
    for part in (study.get("parts") or {}).values():
        assert part["source"], "a price says where it comes from, if only that it is a placeholder"
    with Workers(1) as workers:
        told = run_study(write(tmp_path, study), tmp_path / "answer", workers, lambda *_: None, [])
    assert {"decision", "confidence", "designs", "levels"} <= set(told)
    assert (told["decision"] is None) == (told["confidence"] is None)
    assert told["decision"] or told["nearest_miss"]
    assert told["search"]["simulated"] >= 2
    assert len(told["designs"]) >= 4 and len(told["levels"]) >= 2
    for design in told["designs"]:
        assert set(design["values"]) == set(study["axes"])
        if design["basis"] == "simulated":
            assert all(row["value"] is not None or row["under"] for row in design["levels"]), design["levels"]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 8

# SPDX-License-Identifier: Apache-2.0
"""Every shipped study answers, in a small size: fewer clients, fewer operations, fewer designs simulated."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from schedule import mostly_long
import yaml
from pages import Page, commands_of, own_copy
from programs import REPOSITORY

EXAMPLES = sorted((REPOSITORY / "examples").glob("*/study.yaml"))
SMALL = [file for file in EXAMPLES if file.parent.name != "tutorial"]  # which is run in full with its page


def small(file: Path) -> dict[str, Any]:
    """The study with at most eight nodes of four ranks."""
    study = yaml.safe_load(file.read_text())
    for i, scale in enumerate(
        sorted(study["scales"].values(), key=lambda s: s["nodes"] * s["ranks_per_node"]), start=1
    ):
        scale |= {"nodes": min(scale["nodes"], 2 * i), "ranks_per_node": min(scale["ranks_per_node"], 4)}
    for workload in study["workloads"].values():  # else the background load would take most of the simulation
        if "think_time" in workload.get("settings", {}):
            workload["settings"]["think_time"] = "10ms"
    return study | {"search": {"simulate": 2, "replications": 4}, "most_operations": 1000}


@pytest.fixture
def one_core() -> Iterator[None]:
    """Programs that are started meanwhile see one core, so that a study computes by itself: workers would take longer
    to start."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


ALWAYS = [file for file in SMALL if file.parent.name in ("mounts-per-node",)]


@pytest.mark.parametrize("file", mostly_long(SMALL, ALWAYS, "a study each"), ids=lambda f: f.parent.name)
@pytest.mark.usefixtures("one_core")
def test_an_example_answers(file: Path, page: Page) -> None:
    """The commands of its page, on the shrunken study."""
    study = small(file)
    for part in (study.get("parts") or {}).values():
        assert part["source"], "a price says where it comes from, if only that it is a placeholder"
    name = f"examples/{file.parent.name}"
    (command, *more) = commands_of(f"{name}/README.md")
    if more:  # which compares designs, so that these must be simulated
        study["search"]["simulate"] = 6
    (own_copy(page, "examples") / file.parent.name / "study.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    assert command.startswith(f"iocast study {name}/study.yaml --out results/")
    # No level need be kept by what is left of the study.
    page.run(f"{name}/README.md", statuses={0, 4})
    reported = json.loads((page.place / command.split()[4] / "study.json").read_text())
    assert {"decision", "confidence", "designs", "levels"} <= set(reported)
    assert (reported["decision"] is None) == (reported["confidence"] is None)
    assert reported["decision"] or reported["nearest_miss"]
    assert reported["search"]["simulated"] >= 2
    assert len(reported["designs"]) >= 4 and len(reported["levels"]) >= 2
    for design in reported["designs"]:
        assert set(design["values"]) == set(study["axes"])
        if design["basis"] == "simulated":
            assert all(row["value"] is not None or row["under"] for row in design["levels"]), design["levels"]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 8


def test_the_page_of_the_tutorials_study() -> None:
    """Its command is the tutorial's, which test_study_tutorial.py runs."""
    (command,) = commands_of("examples/tutorial/README.md")
    assert f".venv/bin/{command}" in commands_of("docs/study-tutorial.md")

# SPDX-License-Identifier: Apache-2.0
"""The tutorial on studies, run as a reader would type it."""

import json
from pathlib import Path

import pytest
from pages import Page


pytestmark = pytest.mark.long("the studies of examples/ and docs are answered elsewhere")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, mpi_environment: dict[str, str]) -> Path:
    """Every command of the tutorial, in order; the first answer is kept as tutorial-first.json."""
    page = Page(tmp_path_factory.mktemp("tutorial") / "here", mpi_environment)
    directory = page.place / "results"

    def before(line: str) -> None:
        if line.startswith("sed"):
            (directory / "tutorial-first.json").write_text((directory / "tutorial" / "study.json").read_text())

    page.run("study-tutorial.md", before=before)
    assert len(page.printed) == 5
    return directory


@pytest.mark.long("a study page; smaller studies run always")
def test_the_tutorial_ends_in_a_decision(results: Path) -> None:
    first = json.loads((results / "tutorial-first.json").read_text())
    assert first["decision"] and first["confidence"] >= 0.9
    assert first["platform"]["calibrated"] and first["extrapolation"] == 16
    assert first["decision"]["cost"] <= 9000
    assert any("16 times the 8 that were measured" in w for w in first["warnings"])
    ends = first["decision"] and next(d for d in first["designs"] if d["id"] == first["decision"]["id"])["breaks_at"]
    assert ends["nodes"] == 1 and 128 < ends["ranks"] < 1024 and "mean(create)" in ends["level"]
    assert any(c["about"] == "Measure before signing" for c in first["conclusions"])


def test_the_tutorials_page_has_the_calibrations_record(results: Path) -> None:
    page = (results / "tutorial.html").read_text()
    assert len(page) < 5_000_000 and "<dt>How wrong it was</dt><dd>On data it had not seen" in page
    figures = {f.stem.rsplit("-", 1)[0] for f in (results / "tutorial-figures").iterdir()}
    assert {"front", "scale", "risk", "sensitivity", "knee", "beside", "stations", "routes"} <= figures
    assert all(f.stat().st_size > 5000 for f in (results / "tutorial-figures").iterdir())
    numbers = json.loads((results / "tutorial-data" / "report.json").read_text())
    lines = (results / "tutorial-data" / "table-designs.csv").read_text().splitlines()
    assert len(lines) == 1 + len(numbers["tables"]["designs"]["rows"])


def test_an_edited_question_is_answered_from_what_is_known(results: Path) -> None:
    first = json.loads((results / "tutorial-first.json").read_text())
    second = json.loads((results / "tutorial" / "study.json").read_text())
    assert second["confidence_asked"] == 0.8 and second["decision"]["values"] != first["decision"]["values"]
    # Only replications that a closer call needs, or designs that the other limit brings into play.
    assert second["search"]["computed"] < first["search"]["computed"] / 2

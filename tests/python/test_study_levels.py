# SPDX-License-Identifier: Apache-2.0
"""Each kind of level that a study takes: its margins, and its place on the page and in the text."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import report_inputs

from iocast.records.quantities import ACCELERATORS, SHARES_OF_TIME, unit_of
from iocast.report import study_controls, units, write_report
from iocast.report.figures import load, study_scale
from iocast.report.sources import read_sources
from iocast.report.tables import all_tables
from iocast.study import amounts
from iocast.study.levels import FUNCTIONS, Level, parse_level
from iocast.wording.study import as_text

OF_FUNCTION = {
    "rate": "rate(create) >= 3k/s", "time": "time(all) < 5 min", "bandwidth": "bandwidth(read) >= 2 GB/s",
    "utilisation": "utilisation(mds) < 80 %", "au": "au >= 90 %", "samples": "samples >= 700/s",
    "accelerator_bandwidth": "accelerator_bandwidth >= 300 MB/s", "stall_share": "stall_share < 10 %",
}  # fmt: skip
WHOLE = [parse_level("au >= 100 %"), parse_level("stall_share < 100 %")]
LEVELS = [parse_level(OF_FUNCTION.get(function, f"{function}(create) < 50 ms")) for function in FUNCTIONS]
UNITS = {"rate": "/s", "bytes": "B/s", "share": "%", "seconds": "s"}


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.text)
@pytest.mark.parametrize("margin", [-2.0, -0.1, 0.3])
def test_a_moved_value_has_the_margin_that_it_was_moved_by(level: Level, margin: float) -> None:
    """A share of time stays one, however far it is moved."""
    moved = level.moved(level.limit, margin)
    assert level.margin(moved) == pytest.approx(margin) and (moved > level.limit) == ((margin > 0) != level.upper)
    assert level.margin(level.moved(moved, -margin)) == pytest.approx(0.0, abs=1e-9)
    assert moved < 1 or level.quantity not in SHARES_OF_TIME


@pytest.mark.parametrize("level", [one for one in (*LEVELS, *WHOLE) if unit_of(one.quantity) == "share"])
@pytest.mark.parametrize("value", [0.0, 1e-4, 0.5, 1.0])
def test_a_share_at_its_end_has_a_margin_in_words(level: Level, value: float) -> None:
    margin = math.exp(level.margin(value))
    row = {"quantity": level.quantity, "limit": level.limit, "upper": level.upper, "value": value, "margin": margin}
    assert amounts.margin(row) and "inf" not in amounts.margin(row).replace("better", "").replace("worse", "")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A study's answer with a level of each kind, of which each design keeps every second one."""
    made: dict[str, Any] = json.loads((report_inputs.made(tmp_path_factory).study / "study.json").read_text())
    values = {one.name: one.moved(one.limit, (-1) ** place * 0.2) for place, one in enumerate(LEVELS)}
    workload, scales = made["workloads"][0]["name"], made["scales"]
    known = made["levels"][0]
    made["levels"] = [
        known | {"level": one.name, "quantity": one.quantity, "limit": one.limit, "upper": one.upper} for one in LEVELS
    ]
    for design in (one for one in made["designs"] if one["levels"]):
        row = design["levels"][0]
        design["levels"] = [
            row | {"level": one.name, "quantity": one.quantity, "limit": one.limit, "upper": one.upper}
            | {"value": values[one.name], "margin": (1.2, 0.8)[place % 2]}
            for place, one in enumerate(LEVELS)
        ]  # fmt: skip
        design["possible_margins"] = [[100] * len(LEVELS) for _ in design["possible_margins"]]
    made["curves"] = [
        made["curves"][0] | {"workload": workload, "scale": scale["name"], "ranks": scale["ranks"]}
        | {"quantity": one.quantity, "value": values[one.name], "low": values[one.name], "high": values[one.name]}
        for one in LEVELS for scale in scales
    ]  # fmt: skip
    return made


def test_a_studys_page_has_each_kind_of_level_in_its_unit(
    study: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_scale, "MAX_PANELS", len(LEVELS))
    (tmp_path / "study.json").write_text(json.dumps(study))
    write_report([tmp_path / "study.json"], tmp_path / "page.html")
    page, text = (tmp_path / "page.html").read_text(), as_text(study)
    drawing = study_scale.draw(study_scale.data(read_sources([tmp_path / "study.json"])) or [])
    assert len(drawing.panels) == len({one.quantity for one in LEVELS}) and all(one.title for one in drawing.panels)
    sliders = {one.name: one for one in study_controls.sliders(study)}
    for level in LEVELS:
        shown = units.quantity(level.quantity, level.limit)
        assert shown.endswith(UNITS[unit_of(level.quantity)]) and shown in page, level.text
        assert sliders[level.name].unit.partition(" ")[0] == unit_of(level.quantity)
        assert any(line.lstrip().startswith(level.text) for line in text.splitlines()), level.text
    assert {unit_of(level.quantity) for level in LEVELS} == set(UNITS), "each unit has a level"


@pytest.mark.parametrize("level", [one for one in LEVELS if one.kind != "rate" or one.quantity in ACCELERATORS])
def test_a_knee_has_each_level_in_its_unit(level: Level, tmp_path_factory: pytest.TempPathFactory) -> None:
    """In its table and its figure, as a search keeps it."""
    sources = read_sources([report_inputs.made(tmp_path_factory).campaign])
    knee: Any = sources.knees[0]
    value = level.moved(level.limit, 0.1)
    knee["levels"] = [{"text": level.text, "quantity": level.quantity, "limit": level.limit}]
    for entry in knee["loads"]:
        entry["values"] = {level.text: value}
    knee["answer"]["values"] = {level.text: {"value": value, "low": value, "high": value}}
    [table] = [one for one in all_tables(sources) if one.name == "knees"]
    assert table.rows[0]["values"] == f"{level.text}: {units.quantity(level.quantity, value)}"
    rows = [row for row in load.data(sources) or [] if row["quantity"] == level.text]
    assert rows and {row["unit"] for row in rows} == {unit_of(level.quantity)}
    assert any(panel.title == level.text for panel in load.draw(rows).panels)

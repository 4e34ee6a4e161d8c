# SPDX-License-Identifier: Apache-2.0
"""What the phases of one workload take together, in forecasts, their text, and reports."""

import json
from pathlib import Path
from typing import Any

import pytest

from iocast.agreement import check_forecast
from iocast.errors import InputError
from iocast.fitted import Fitted
from iocast.forecast import Answer, PhaseForecast, forecasts_text
from iocast.predict import predict
from iocast.report import answers
from iocast.report.sources import read_sources
from iocast.simulate import simulate, simulation_text
from iocast.text import total_text
from iocast.total import total

STEPS = """\
schema_version: 1
description: small records and a checkpoint in turn
source: made up
pattern: application
application:
  files: {small: {per: process}, dump: {per: process}}
  phases:
    - repeat: 3
      phases:
        - {name: small, file: small, operation: write, layout: sequential, size: 4KiB, requests: 50}
        - {name: checkpoint, file: dump, operation: write, layout: sequential, size: 1MiB, requests: 8}
"""
MOVED = 3 * 4 * (50 * 4096 + 8 * 2**20)
"""Bytes of STEPS with 4 ranks."""


def phase(name: str, seconds: float, repeats: int = 1, **changes: Any) -> dict[str, Any]:
    """Of a forecast: 100 operations a second of 1000 bytes, known to a factor of two."""
    rate = {"value": 100.0, "low": 50.0, "high": 200.0}
    moved = {end: 1000 * value for end, value in rate.items()}
    return {
        "phase": name,
        "repeats": repeats,
        "seconds": {"value": seconds, "low": seconds / 2, "high": 2 * seconds},
        "quantities": {"rate": rate},
        "operations": {"pwrite": {"rate": rate, "bytes_each": 1000, "bytes_per_second": moved}},
        "question": {"workload": "steps", "settings": {}, "placement": {"ranks": 4}, "waiting_factor": 0},
    } | changes


def test_times_and_bytes_of_all_repeats_add_up() -> None:
    found = total([phase("a", 2.0, 3), phase("b", 4.0)])
    assert found is not None
    assert found["seconds"] == {"value": 10.0, "low": 5.0, "high": 20.0} and found["range"] is None
    assert (found["operations"], found["rate"], found["bytes"], found["bytes_per_second"]) == (1e3, 100, 1e6, 1e5)
    text = total_text(found)
    assert text.startswith("All phases together (3 times a, b): 10.0 s long (5.00 s .. 20.0 s); 1.00 MB, 100 kB/s in")
    assert total([phase("a", 2.0, 3)]) is None


def test_without_the_length_of_a_phase_there_is_no_total_but_its_name() -> None:
    found = total([phase("a", 2.0), phase("b", 1.0) | {"seconds": None}])
    assert found is not None and found["unknown"] == ["b"] and "seconds" not in found
    assert "how long b lasts is not known" in total_text(found)


@pytest.mark.parametrize("solver", ["simulate", "analytic"])
def test_an_application_is_forecast_with_the_total_of_its_phases(tmp_path: Path, solver: str) -> None:
    file = tmp_path / "steps.yaml"
    file.write_text(STEPS)
    answer = predict(Fitted.open("lustre"), str(file), {}, 2, 2, solver=solver)
    found = answer["total"]
    assert found["phases"] == ["small", "checkpoint"] and found["repeats"] == [3, 3]
    assert found["bytes"] == pytest.approx(MOVED)
    assert found["seconds"]["value"] * found["bytes_per_second"] == pytest.approx(MOVED)
    if solver == "simulate":
        assert found["seconds"]["value"] == pytest.approx(sum(row["seconds"] for row in answer["course"]), rel=0.2)
    assert found["range"]["low"] <= found["seconds"]["value"] * 1.000001 <= found["range"]["high"] * 1.00001
    assert predict(Fitted.open("lustre"), str(file), {}, 2, 2, phase="small", solver=solver)["total"] is None


def test_terminal_and_page_have_the_total(tmp_path: Path) -> None:
    file = tmp_path / "steps.yaml"
    file.write_text(STEPS)
    answer = simulate(Fitted.open("lustre"), str(file), {}, 2, 2, report=lambda *_: None)
    assert "All phases together (3 times small, 3 times checkpoint): " in simulation_text(answer).splitlines()[1]
    assert " long, 3 times; " in simulation_text(answer)
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    (grid,) = answers.grids(read_sources([tmp_path / "answer.json"]))
    assert [row[0] for row in grid.rows] == ["small", "checkpoint", "all phases"]
    assert all(cell not in ("", "-") for cell in grid.rows[-1][:5])
    for key in ("bytes", "operations", "rate"):
        changed = answer | {"total": answer["total"] | {key: 2 * answer["total"][key]}}
        with pytest.raises(InputError, match=f"total.{key} is .* the sum over its phases"):
            check_forecast(changed, "The forecast 'f.json'")
    with pytest.raises(InputError, match="repeats is 2, and the rows of its course is 3"):
        check_forecast(answer | {"repeats": 2}, "The forecast 'f.json'")


def test_only_phases_of_one_question_are_added_up(tmp_path: Path) -> None:
    placement = {"nodes": 2, "ranks_per_node": 2, "ranks": 4}
    made = [phase(name, 2.0, placement=placement, level=0.9, baselines={}, warnings=[]) for name in ("a", "b")]
    one, other = (PhaseForecast(m["phase"], forecasts=[m], refusal="none") for m in made)
    answer = Answer(tmp_path, [], [one, other], None)
    assert answer.document()["totals"] == [{"placement": placement} | (total(made) or {})]
    assert "At 2 x 2: All phases together (a, b): 4.00 s" in forecasts_text(answer)
    other.forecasts = [made[1] | {"question": made[1]["question"] | {"settings": {"size": 1}}}]
    assert answer.document()["totals"] == []

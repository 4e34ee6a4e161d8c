# SPDX-License-Identifier: Apache-2.0
"""What the phases of one workload take together, in forecasts, their text, and reports."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from iocast.runs.agreement import check_forecast
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.forecast import Answer, PhaseForecast
from iocast.wording.forecasts import forecasts_text
from iocast.forecasts.answer import predict
from iocast.report import answers, units
from iocast.report.sources import read_sources
from iocast.report.story import tell
from iocast.simulate import simulate, simulation_text
from iocast.wording.text import quantity
from iocast.wording.forecast import bulk_text, forecast_text, total_text
from iocast.runs.total import bytes_per_second, moves_bulk, total

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
    assert all(cell not in ("", "-") for cell in grid.rows[-1][:6])
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


@pytest.fixture(scope="module")
def by_phase(tmp_path_factory: pytest.TempPathFactory) -> dict[str | None, dict[str, Any]]:
    """STEPS simulated: each phase alone, and under None all of them."""
    file = tmp_path_factory.mktemp("bulk") / "steps.yaml"
    file.write_text(STEPS)
    return {
        name: simulate(Fitted.open("lustre"), str(file), {}, 2, 2, phase=name, report=lambda *_: None)
        for name in ("small", "checkpoint", None)
    }


@pytest.mark.parametrize("name", ["checkpoint", None])
def test_a_phase_that_moves_bytes_in_bulk_is_answered_by_time_and_bandwidth(
    by_phase: dict[str | None, dict[str, Any]], name: str | None, tmp_path: Path
) -> None:
    """Alone as among others, on the page and on the terminal."""
    answer = by_phase[name]
    one = next(one for one in (answer, *answer["further_phases"]) if one["phase"] == "checkpoint")
    seconds, moved = units.repeated(one["seconds"]["value"], 3), units.bandwidth(bytes_per_second(one))
    assert moves_bulk(one)
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    page = tell(read_sources([tmp_path / "answer.json"]))
    assert f"checkpoint {seconds} at {moved}" in page.headline and page.question.startswith("How long do")
    (grid,) = page.grids
    row = next(row for row in grid.rows if row[0] == "checkpoint")
    assert grid.header[2:5] == ["time", "interval or range", "bandwidth"] and (row[2], row[4]) == (seconds, moved)
    assert row[3].endswith("(a range)") and "/s" not in row[3]
    length = quantity("", one["seconds"]["value"])
    assert f"Phase checkpoint: {length} long, 3 times; " in simulation_text(answer)
    assert [
        line.split("  ")[0] for line in forecast_text(answer).partition("phase checkpoint")[2].splitlines()[1:3]
    ] == ["whole phase", "pwrite bandwidth"]
    assert bulk_text(answer | one).startswith(f"checkpoint at 2 x 2: 3 times {length} at ")


def test_a_phase_of_small_operations_is_answered_by_its_rate(
    by_phase: dict[str | None, dict[str, Any]], tmp_path: Path
) -> None:
    """Its time and bandwidth stand behind that."""
    answer = by_phase["small"]
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    page = tell(read_sources([tmp_path / "answer.json"]))
    rate = units.rate(answer["quantities"]["rate"]["value"])
    assert f"small {rate}" in page.headline and page.question.startswith("How fast is small")
    (grid,) = page.grids
    columns = dict(zip(grid.header, grid.rows[0], strict=True))
    assert grid.header[2] == "forecast" and columns["forecast"] == rate
    assert columns["bandwidth"] == units.bandwidth(bytes_per_second(answer))
    assert simulation_text(answer).splitlines()[2].startswith("Phase small: rate ")


@pytest.mark.parametrize("only", [None, "checkpoint"])
def test_the_pages_of_a_forecast_and_of_a_run_name_the_repeats_and_their_sum(
    by_phase: dict[str | None, dict[str, Any]], only: str | None, simulator: Path, tmp_path: Path
) -> None:
    """Of the same question, with the run that the forecast is of."""
    answer = by_phase[None]
    file = tmp_path / "steps.yaml"
    file.write_text(STEPS)
    arguments = ["--platform", "lustre", "--workload", str(file), "--nodes", "2", "--ppn", "2"]
    subprocess.run([simulator, *arguments, "--out", str(tmp_path / "run")], check=True, capture_output=True)
    if only:
        document = json.loads((tmp_path / "run" / "run.json").read_text())
        document["phases"] = [one for one in document["phases"] if one["name"] == only]
        (tmp_path / "run" / "run.json").write_text(json.dumps(document))
    page = tell(read_sources([tmp_path / "run"]))
    (grid,) = page.grids
    times = {row[0]: row[1] for row in grid.rows}
    assert list(times) == ([only] if only else ["small", "checkpoint", "all phases"])
    for one in (answer, *answer["further_phases"]):
        if one["phase"] in times:
            each = sum(row["seconds"] for row in answer["course"] if row["phase"] == one["phase"]) / 3
            assert times[one["phase"]].startswith("3\N{NO-BREAK SPACE}×") and times[one["phase"]] in page.headline
            assert one["seconds"]["value"] == pytest.approx(each, rel=0.2)
    assert page.headline.count(" at ") == 1

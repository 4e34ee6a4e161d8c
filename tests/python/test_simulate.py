# SPDX-License-Identifier: Apache-2.0
"""`iocast simulate`: the answer of the simulator with measured systems and the analytic solver beside it."""

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from programs import REPOSITORY

from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict
from iocast.report.sources import read_sources
from iocast.wording.text import quantity
from iocast.simulate import _moment_text, phase_at, simulate, simulation_text

MODULE = importlib.import_module("iocast.simulate")

Iocast = Callable[..., CompletedProcess[str]]

SETTINGS = {"datasets": "1", "iterations": "5", "objects": "10"}


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    return simulate(Fitted.open("lustre"), "md-workbench", SETTINGS, 1, 2, report=lambda *_: None)


def test_it_is_the_forecast_of_both_solvers(answer: dict[str, Any]) -> None:
    for solver in ("simulate", "analytic"):
        same = predict(Fitted.open("lustre"), "md-workbench", SETTINGS, 1, 2, solver=solver)
        rate = same["quantities"]["rate"]["value"]
        assert rate == (
            answer["quantities"]["rate"]["value"] if solver == "simulate" else answer["analytic"]["rates"]["benchmark"]
        )
    assert answer["analytic"]["refusal"] == ""


def test_the_text_has_every_operation_with_the_measured_systems(answer: dict[str, Any]) -> None:
    text = simulation_text(answer)
    assert "range, not an interval" in text and "analytic solver" in text and "MB/s" in text
    systems = [one["name"] for one in answer["family"]["systems"]]
    assert {"ddn-duesseldorf", "mistral"} <= set(systems)
    header = next(line for line in text.splitlines() if line.startswith("phase benchmark"))
    assert all(f"rate of {name}" in header for name in systems)
    rows = {line.split()[0]: line for line in text.splitlines() if line}
    assert set(answer["operations"]) == {"create", "stat", "read", "unlink"} <= set(rows)
    moving = {name for name in answer["operations"] if rows[name].count("B/s")}
    assert moving == {"create", "read"}


@pytest.mark.parametrize(("rate", "behind"), [("20/s", False), ("100000/s", True)])
def test_an_open_loop_is_answered_with_the_time_since_an_operation_was_due(rate: str, behind: bool) -> None:
    settings = SETTINGS | {"rate": rate, "iterations": "40", "objects": "40"}
    found = simulate(Fitted.open("lustre"), "md-workbench", settings, 2, 2, report=lambda *_: None)
    text = simulation_text(found)
    due = found["quantities"]["create.response.q99"]["value"]
    row = next(line for line in text.splitlines() if line.startswith("create "))
    assert "99th percentile since it was due" in text and quantity("", due) in row
    assert any("load is more than is served: 400 k/s are due" in one for one in found["warnings"][:1]) == behind
    assert behind == (due > 2 * found["quantities"]["create.q99"]["value"])


def test_no_analytic_answer_is_a_sentence(answer: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def only_simulated(*_: object, solver: str, **__: object) -> dict[str, Any]:
        if solver == "analytic":
            raise InputError("The solver has no answer.")
        return {key: value for key, value in answer.items() if key != "analytic"}

    monkeypatch.setattr(MODULE, "predict", only_simulated)
    found = simulate(Fitted.open("lustre"), "md-workbench", SETTINGS, 1, 2, report=lambda *_: None)
    assert found["analytic"] == {"rates": {}, "refusal": "The solver has no answer.", "left_out": []}
    assert "No analytic answer: The solver has no answer." in simulation_text(found)


def test_it_says_what_limits_each_phase_and_how_much_is_simulated(answer: dict[str, Any]) -> None:
    assert answer["bottleneck"] in simulation_text(answer)
    lines: list[str] = []
    simulate(Fitted.open("lustre"), "md-workbench", SETTINGS, 1, 2, report=lambda what, *_: lines.append(what))
    assert "2 ranks with 40 operations: this platform 3 times, and 2 measured systems of its family once" in lines[-1]


@pytest.mark.parametrize(
    ("platform", "workload", "settings"),
    [("lustre", "md-workbench", SETTINGS), ("mistral", "mdtest-easy", {"items": "5"})],
)
def test_the_announced_systems_are_those_beside_the_answer(
    platform: str, workload: str, settings: dict[str, str]
) -> None:
    """Of which a measured system is none beside itself."""
    lines: list[str] = []
    found = simulate(Fitted.open(platform), workload, settings, 1, 2, report=lambda what, *_: lines.append(what))
    count = len(found["family"]["systems"])
    assert f"and {count} measured system{'s' * (count != 1)} of its family" in lines[-1]


def test_beside_an_interval_no_systems_are_announced() -> None:
    lines: list[str] = []
    simulate(Fitted.open("mistral"), "md-workbench", SETTINGS, 1, 2, report=lambda what, *_: lines.append(what))
    assert "measured system" not in lines[-1]


def test_the_announced_runs_are_those_that_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "LONG", 39)
    lines: list[str] = []
    simulate(Fitted.open("lustre"), "md-workbench", SETTINGS, 1, 2, report=lambda what, *_: lines.append(what))
    assert "with 40 operations: this platform once, and" in lines[-1]


HOUR = """\
schema_version: 1
description: a program that computes and writes a checkpoint, three times
source: an example
pattern: application
parameters: {length: {default: 100s, meaning: seconds of computing}}
application:
  files: {state: {per: process}}
  phases:
    - repeat: 3
      phases:
        - {name: compute, file: state, operation: write, layout: sequential, size: 1KiB, requests: 2, think: $length}
        - {name: checkpoint, file: state, operation: write, layout: sequential, size: 1MiB, requests: 4}
small: [length=1ms]
"""


def test_an_application_says_what_happens_at_a_moment(iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "hour.yaml").write_text(HOUR)
    command = ("simulate", "lustre", tmp_path / "hour.yaml", "--nodes", 1, "--ppn", 2)
    done = iocast(*command, "--at", "5min", "--out", tmp_path / "answer.json")
    first = done.stdout.splitlines()[1]  # before all tables
    assert first.startswith("At 300 s: phase compute, repeat 2 (200 s to 400 s)"), done.stdout + done.stderr
    named = json.loads(iocast(*command, "--at", "5min", "--json").stdout)["at"]
    assert (named["moment"], named["phase"], named["repeat"]) == (300, "compute", 2)
    read_sources([tmp_path / "answer.json"])  # iocast report draws it
    course = json.loads((tmp_path / "answer.json").read_text())["course"]
    assert [(row["phase"], row["repeat"]) for row in course] == [
        (phase, repeat) for repeat in (1, 2, 3) for phase in ("compute", "checkpoint")
    ]
    for before, after in zip(course, course[1:], strict=False):
        assert before["start"] + before["seconds"] <= after["start"]
    assert all(row["bytes_per_second"] > 0 for row in course)
    assert "it must be a time" in iocast(*command, "--at", "30").stderr
    computing = [row for row in course if row["phase"] == "compute"]  # --phase can leave out what lies between
    gap = computing[0]["start"] + computing[0]["seconds"] + 1e-3
    text = _moment_text(phase_at(computing, gap), gap)
    assert "between two phases of this forecast; next comes phase compute, repeat 2 (" in text
    late = iocast(*command, "--at", "1h")
    assert late.returncode == 2 and "the phases last 600 s in all; name an earlier" in late.stderr


def test_a_calibrated_platform_is_for_predict(iocast: Iocast) -> None:
    done = iocast("simulate", REPOSITORY / "examples/tutorial/fitted.yaml", "md-workbench", "--nodes", 3, "--ppn", 2)
    assert done.returncode == 2 and "--workload md-workbench --nodes 3 --ppn 2" in done.stderr


def test_the_file_is_a_forecast(
    iocast: Iocast, tmp_path: Path, answer: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
    done = iocast("simulate", "lustre", "md-workbench", "--ppn", 2, *sets, "--out", tmp_path / "s.json", "--json")
    assert done.returncode == 0, done.stderr
    written = json.loads((tmp_path / "s.json").read_text())
    assert written == json.loads(done.stdout) and written["kind"] == "forecast"
    assert written["quantities"] == answer["quantities"] and written["analytic"] == answer["analytic"]
    assert iocast("simulate", "lustre", "md-workbench", "--out", tmp_path / "s.json").returncode == 2


def test_more_ranks_than_a_trace_has_are_copies_and_named_so(simulate: Callable[..., dict[str, Any]]) -> None:
    """The example was recorded with 16 ranks."""
    for ranks, shown in (("16", ""), ("64", "64 ranks are 4 copies of the 16 that were recorded")):
        run = simulate("local", "--workload", "replay-example", "--ppn", ranks)
        named = [one for one in run.get("warnings", []) if "copies" in one]
        assert len(named) == bool(shown) and all(shown in one for one in named)

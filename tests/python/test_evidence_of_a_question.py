# SPDX-License-Identifier: Apache-2.0
"""Measurements speak of a forecast where its workload and settings are theirs, along the line of its placement; every
consumer asks one record. A changed setting takes them all away, a length none; packed placements change no forecast of
spread ones."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from iocast.platforms.fitted import Fitted
from iocast.runs.measured import measured
from iocast.forecasts.answer import predict
from iocast.runs.question import Placement, Question
from iocast.rules.residuals import Residuals
from iocast.rules.applied import Rules, line_of
from iocast.study.questions import Ask, Point
from iocast.study.desk import Desk
from iocast.study.spec import NORMAL, read_study
from iocast.study.store import Store
from iocast.jobs.workers import Workers

KINDS = ("rate", "q50", "q75", "q95", "q99", "max")
SETTINGS = {"datasets": 4, "objects": 100, "iterations": 100, "object_size": 3901}
RULES = ("calibrated platform", "curves of growth", "closed M/M/c", "last value", "half slope")
SPREAD = {(1, 1): 900.0, (2, 1): 1700.0, (4, 1): 3000.0, (8, 1): 4800.0}
PACKED = {(1, 2): 1000.0, (1, 4): 1050.0, (1, 8): 1060.0}


def platform(directory: Path, rates: dict[tuple[int, int], float] = SPREAD, off: float = -0.2) -> Fitted:
    """Calibrated to rates by placement, with a residual everywhere, a blend, and measured errors at its largest
    scale."""
    points = [
        {
            "name": f"{n}x{each}", "ranks": n * each, "nodes": n, "waiting_factor": 0.0, "rate": rate,
            "latency": {
                op: {"mean": n * each / rate, "q50": n * each / rate, "count": 1000}
                for op in ("create", "stat", "read", "unlink")
            },
        }
        for (n, each), rate in rates.items()
    ]  # fmt: skip
    weights = dict.fromkeys(RULES, 0.2)
    fitted = {
        "campaign": {
            "runs": [], "ranks": [1, 2, 4, 8], "waiting_factors": [0.0], "phase": "benchmark", "points": points,
            "workload": {"name": "md-workbench", "pattern": "md-workbench", "parameters": SETTINGS},
        },
        "fit": [{"point": p["name"], "quantity": "rate", "error": off if p["nodes"] > 1 else 0.5} for p in points],
        "holdout": {"rows": [{"point": "8x1", "quantity": "rate", "error": 0.6}], "ranks": 8, "fitted_up_to": 4},
        "blend": {"rate": {"favoured": "last value", "weights": weights, "errors": dict.fromkeys(RULES, 0.1)}},
        "draws": [], "alternatives": [], "notes": [], "discrepancy": dict.fromkeys(KINDS, 0.05),
        "noise": dict.fromkeys(KINDS, 0.01),
    }  # fmt: skip
    fitted["blend"]["latency"] = {"favoured": None, "weights": {RULES[0]: 1.0}, "errors": {}}
    file = directory / "fitted.yaml"
    file.write_text(yaml.safe_dump({"schema_version": 1, "extends": "service", "fitted": fitted}))
    return Fitted.open(str(file))


def question(nodes: int, each: int, **settings: Any) -> Question:
    workload = {"pattern": "md-workbench", "name": "md-workbench", "parameters": DEFAULTS | SETTINGS | settings}
    return Question.of(workload, {"ranks": nodes * each, "nodes": nodes, "ranks_per_node": each}, "benchmark")


DEFAULTS = {
    "offset": 1, "node_offset": 0, "most_seconds": 0, "read_only": False, "think_law": "fixed", "rate": 0,
    "arrivals": "poisson",
}  # fmt: skip


def used(answer: dict[str, Any]) -> set[str]:
    """What of the measurements is in a forecast."""
    rate = answer["quantities"]["rate"]
    found = {key for key in ("baselines", "rule", "blend", "bounded") if answer[key]}
    found |= {"residual"} if rate["value"] != rate.get("model", rate["value"]) else set()
    return found | {"warning" for text in answer["warnings"] if "held-out scale" in text or "was measured:" in text}


CHANGED = {"read_only": "true", "datasets": "5", "object_size": "64KiB", "offset": "0", "think_law": "exponential"}


def test_a_changed_setting_takes_all_evidence_away_and_a_length_none(tmp_path: Path) -> None:
    fitted = platform(tmp_path)

    def forecast(**settings: str) -> dict[str, Any]:
        return predict(fitted, None, settings, 8, 1)

    same = forecast()
    assert used(same) == {"baselines", "rule", "blend", "bounded", "residual", "warning"}
    for length in ({"iterations": "50"}, {"objects": "200"}):
        longer = forecast(**length)
        assert used(longer) == used(same)
        assert [longer[key] for key in ("baselines", "rule")] == [same[key] for key in ("baselines", "rule")]
    for name, value in CHANGED.items():
        other = forecast(**{name: value})
        assert used(other) == set(), name
        assert any(name in text and "another workload" in text for text in other["warnings"]), name
        rate = other["quantities"]["rate"]
        plain = same["quantities"]["rate"]
        if other["rests_on"]:  # larger objects meet bandwidths that nothing measured
            assert name == "object_size" and rate["low"] is None
        else:
            assert math.log(rate["high"] / rate["low"]) > math.log(plain["high"] / plain["model"]), "a doubt more"
        assert Question.read(other["question"]).differences(Question.read(same["question"]))


def test_a_question_has_one_answer_however_it_is_put(tmp_path: Path) -> None:
    """By a setting, by a file, and in a study."""
    fitted = platform(tmp_path)
    for read_only in ("false", "true"):
        settings = {**SETTINGS, "object_size": "3901B", "read_only": read_only == "true"}
        own = {"schema_version": 1, "description": "own", "pattern": "md-workbench", "parameters": settings}
        (tmp_path / "own.yaml").write_text(yaml.safe_dump(own))
        study = {
            "schema_version": 1, "title": "t", "platform": str(fitted.file),
            "workloads": {"own": {"workload": "own.yaml", "phase": "benchmark"}},
            "scales": {"s": {"nodes": 16, "ranks_per_node": 1}}, "currency": "EUR",
            "parts": {"core": {"price": 1, "source": "made up"}},
            "axes": {"nodes": {"as it is": {}, "same": {"parts": {"core": 1}}}}, "levels": ["rate(stat) >= 1/s"],
        }  # fmt: skip
        (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
        by_setting = predict(fitted, None, {"read_only": read_only}, 16, 1, solver="analytic")
        by_file = predict(fitted, str(tmp_path / "own.yaml"), {}, 16, 1, phase="benchmark", solver="analytic")
        for key in ("quantities", "baselines", "rule", "blend", "bounded"):
            assert by_setting[key] == by_file[key], (read_only, key)
        with Workers(1) as workers, Store(tmp_path / "store") as store:
            desk = Desk(read_study(tmp_path / "study.yaml"), store, workers, lambda *_: None)
            assert desk.question("own", desk.study.largest, fitted.fitted).answers(Question.read(by_file["question"]))
            ask = Ask("analytic", 0, Point(NORMAL, "own", "s"), 0)
            shift = desk.gather([ask], "")[ask]["quantities"]["rate"] / desk._stored([ask])[ask]["quantities"]["rate"]
            assert (shift == 1.0) == (read_only == "true")


def test_a_workload_by_its_name_is_the_measured_one_in_forecasts_and_studies(tmp_path: Path) -> None:
    """Settings that are not given are those of the measurements, and not the catalogue's."""
    fitted = platform(tmp_path)
    study = {
        "schema_version": 1, "title": "t", "platform": str(fitted.file), "currency": "EUR",
        "workloads": {"named": {"workload": "md-workbench"}, "more": {
            "workload": "md-workbench", "settings": {"objects": 50, "iterations": 50}}},
        "scales": {"s": {"nodes": 2, "ranks_per_node": 1}}, "parts": {"core": {"price": 1, "source": "made up"}},
        "axes": {"nodes": {"as it is": {}, "same": {"parts": {"core": 1}}}}, "levels": ["rate(stat) >= 1/s"],
    }  # fmt: skip
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    with Workers(1) as workers, Store(tmp_path / "store") as store:
        desk = Desk(read_study(tmp_path / "study.yaml"), store, workers, lambda *_: None)
        for name, given in (("named", {}), ("more", {"objects": "50", "iterations": "50"})):
            for called in (None, "md-workbench"):
                forecast = predict(fitted, called, given, 2, 1, solver="analytic")
                requested = Question.read(forecast["question"])
                here = desk.question(name, desk.study.largest, fitted.fitted)
                assert here.answers(requested) and here.settings == requested.settings, name
            point = desk._stored([ask := Ask("analytic", 0, Point(NORMAL, name, "s"), 0)]) or desk.gather([ask], "")
            assert point[ask]["quantities"]["seconds"] > 0
            assert forecast["total_operations"] == sum(desk.profiles[name]["operations"].values())


@pytest.mark.parametrize("seed", range(3))
def test_packed_placements_change_nothing_of_a_spread_one(seed: int, tmp_path: Path) -> None:
    """Rules, ceiling, residual: as without them, in whatever order the points come."""
    alone = platform(tmp_path).fitted
    every = list((SPREAD | PACKED).items())
    random.Random(seed).shuffle(every)
    both = platform(tmp_path, dict(every)).fitted
    for nodes in (8, 16, 64):
        here = question(nodes, 1)
        first, second = (
            (
                {(p.ranks, p.rate) for p in line_of(fitted, here)},
                rules.ceiling if (rules := Rules.of(fitted, here)) else None,
                Residuals.of_fitted(fitted, here).at("rate", here),
            )
            for fitted in (alone, both)
        )
        assert first[:2] == second[:2]
        assert first[2] == pytest.approx(second[2], abs=0.01)  # shrunk by the noise of all rows
    assert {p.rate for p in line_of(both, question(1, 32))} == {900.0, *PACKED.values()}


def test_a_line_is_of_as_many_ranks_a_node_or_as_many_nodes() -> None:
    places = [Placement(n, each, n * each) for n, each in (*SPREAD, *PACKED)]

    def line(nodes: int | None, each: float | None, ranks: int) -> set[str]:
        return {str(places[i]) for i in Placement(nodes, each, ranks).line(places)}

    assert line(16, 1, 16) == {"1 x 1", "2 x 1", "4 x 1", "8 x 1"}
    assert line(1, 16, 16) == {"1 x 1", "1 x 2", "1 x 4", "1 x 8"}
    assert line(32, 8, 256) == {"1 x 8"}
    assert line(32, 16, 512) == set()
    assert len(line(None, None, 16)) == len(places)


def test_what_is_printed_at_a_measured_place_is_what_was_measured(tmp_path: Path) -> None:
    """The platform is off by -20 % there, and by +50 % at as many ranks on one node: within twice the noise of the
    measured rate, which is what the residual leaves of chance."""
    fitted = platform(tmp_path, SPREAD | PACKED)
    for entry in (SPREAD | PACKED).keys():
        here = question(*entry)
        (point,) = [one for one in measured(fitted.fitted, here) if one.question.answers(here)]
        off = next(row["error"] for row in fitted.fitted["fit"] if row["point"] == point.name)
        missed = Residuals.of_fitted(fitted.fitted, here).at("rate", here)
        assert abs(missed - math.log1p(off)) < 2 * fitted.fitted["noise"]["rate"], entry


def test_a_question_is_read_as_it_was_written() -> None:
    here = question(4, 2, think_time="5ms", waiting_factor=2)
    assert Question.read(json.loads(json.dumps(here.document()))) == here and here.think_time == 0.005
    earlier = here.document() | {"settings": here.document()["settings"] | {"think_time": 0.005}}
    del earlier["think_time"]
    assert Question.read(earlier) == here, "of a version that had the think time among the settings"

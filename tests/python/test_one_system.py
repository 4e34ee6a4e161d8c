# SPDX-License-Identifier: Apache-2.0
"""What stands beside a corrected rate is of one system with it: lengths, course, time line, utilisation, bandwidth and
distributions; and where the model says nothing of the corrected system, nothing is printed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_evidence_of_a_question import SPREAD, platform

from iocast.rules.blend import Question
from iocast.platforms.fitted import Fitted
from iocast.runs.limits_of import NOT_KNOWN
from iocast.forecasts.answer import predict
from iocast.forecasts.one_system import CLOSE, Correction, Simulated
from iocast.report import units
from iocast.report.answers import largest_part
from iocast.study.questions import Ask, Point
from iocast.study.desk import Desk
from iocast.study.spec import NORMAL, read_study
from iocast.study.store import Store
from iocast.wording.forecast import forecast_text
from iocast.jobs.workers import Workers

PLACE = (8, 1)
SETTINGS = {"repeats": "2"}
MEASURED = {"datasets": "4", "objects": "100", "iterations": "100", "object_size": "3901B"}


def corrected(directory: Path, how: str, solver: str = "simulate") -> Fitted:
    """A platform whose forecast at PLACE is corrected by its residual alone, by simple rules, or by the ceiling."""
    model = predict(Fitted.open("service"), "md-workbench", MEASURED, *PLACE, solver=solver)
    rate = 0.96 * model["quantities"]["rate"]["value"]
    far = how != "residual"
    rates = {place: rate / (4 if far else 1) * place[0] / PLACE[0] for place in SPREAD}
    fitted = platform(directory, rates, off=0.0 if far else 0.04)
    document = yaml.safe_load(fitted.file.read_text())
    if how != "rules":
        document["fitted"]["blend"] = {}
    fitted.file.write_text(yaml.safe_dump(document))
    return Fitted.open(str(fitted.file))


@pytest.mark.parametrize("solver", ["simulate", "analytic"])
@pytest.mark.parametrize("how", ["residual", "rules", "ceiling"])
def test_every_quantity_of_a_corrected_phase_is_of_one_system(how: str, solver: str, tmp_path: Path) -> None:
    fitted = corrected(tmp_path, how, solver)
    answer = predict(fitted, None, SETTINGS, *PLACE, solver=solver)
    workload = MEASURED | SETTINGS
    model = predict(Fitted.open("service"), "md-workbench", workload, *PLACE, phase="benchmark", solver=solver)
    rate, plain = (one["quantities"]["rate"]["value"] for one in (answer, model))
    if solver == "simulate":  # the analytic solver's own residual leaves nothing for rules to correct
        assert (bool(answer["blend"]), bool(answer["bounded"])) == (how == "rules", how != "residual")
    assert (rate < 0.9 * plain) == (how != "residual") and rate < 0.999 * plain

    whole = answer["seconds"]["value"] * answer["repeats"]
    assert answer["total_operations"] == model["total_operations"] == pytest.approx(whole * rate)
    for op, one in answer["operations"].items():
        assert one["rate"]["value"] == pytest.approx(rate * model["operations"][op]["share"])
        if "bytes_each" in one:
            assert one["bytes_per_second"]["value"] == pytest.approx(one["rate"]["value"] * one["bytes_each"])
    for name, used in model["stations"].items():
        now = answer["stations"][name]["utilisation"]
        assert now <= 1 and now / rate == pytest.approx(used["utilisation"] / plain, rel=1e-3)
    is_close = how == "residual"
    assert (NOT_KNOWN in answer["bottleneck"]) == (not is_close)
    assert is_close or "is used" not in answer["bottleneck"], "how full stations are is as little known"
    assert answer["bottleneck"] in forecast_text(answer)
    if solver == "analytic":
        return

    assert sum(row["seconds"] for row in answer["course"]) == pytest.approx(whole)
    assert sum(row["seconds"] * row["rate"] for row in answer["course"]) == pytest.approx(whole * rate)
    for row, before in zip(answer["course"], model["course"], strict=True):
        assert row["seconds"] * row["bytes_per_second"] == pytest.approx(
            before["seconds"] * before["bytes_per_second"], rel=1e-6
        )
        gap = before["start"] - sum(one["seconds"] for one in model["course"][: row["repeat"] - 1])
        assert row["start"] - sum(one["seconds"] for one in answer["course"][: row["repeat"] - 1]) == pytest.approx(gap)
    bins = answer["timeline"]
    assert sum(bins["rate"]) * bins["bin_seconds"] == pytest.approx(answer["seconds"]["value"] * rate)
    for op, known in answer["distributions"].items():
        at = dict(zip(known["probability"], known["seconds"], strict=True))
        for q, p in (("q50", 0.5), ("q75", 0.75), ("q95", 0.95), ("q99", 0.99)):
            assert at[p] == pytest.approx(answer["quantities"][f"{op}.{q}"]["value"]), (op, q)
    times = {part for one in answer["stations"].values() for part in one} - {"utilisation"}
    assert bool(times) == is_close
    if is_close:  # demands are the platform's
        for name, one in model["stations"].items():
            assert answer["stations"][name]["service"] == pytest.approx(one["service"])
    else:
        assert largest_part(answer["stations"], 1.0) == units.NOTHING


def test_a_study_corrects_utilisation_with_the_rate(tmp_path: Path) -> None:
    for how in ("residual", "ceiling"):
        fitted = corrected(tmp_path, how)
        study = {
            "schema_version": 1, "title": "t", "platform": str(fitted.file),
            "workloads": {"own": {"workload": "md-workbench", "settings": MEASURED}},
            "scales": {"s": {"nodes": PLACE[0], "ranks_per_node": PLACE[1]}}, "currency": "EUR",
            "parts": {"core": {"price": 1, "source": "made up"}},
            "axes": {"nodes": {"as it is": {}, "same": {"parts": {"core": 1}}}}, "levels": ["rate(stat) >= 1/s"],
        }  # fmt: skip
        (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
        with Workers(1) as workers, Store(tmp_path / "store") as store:
            desk = Desk(read_study(tmp_path / "study.yaml"), store, workers, lambda *_: None)
            ask = Ask("analytic", 0, Point(NORMAL, "own", "s"), 0)
            after, before = desk.gather([ask], "")[ask], desk._stored([ask])[ask]
        factor = after["quantities"]["rate"] / before["quantities"]["rate"]
        assert factor < 0.99 and (factor < 1 / CLOSE) == (how == "ceiling")
        for name, one in before["stations"].items():
            used = after["stations"][name]["utilisation"]
            assert used == after["quantities"][f"{name}.utilisation"] == pytest.approx(factor * one["utilisation"])


def test_a_rate_beyond_what_a_station_can_do_has_no_utilisations() -> None:
    """Over factors of the rate: proportional up to 1, and beyond absent with a sentence; a close one is at most 1."""
    stations: dict[str, Any] = {
        "a": {"utilisation": 0.8, "service": 2e-3, "wait": 3e-3},
        "b": {"utilisation": 0.1, "service": 1e-3, "lock_wait": 1e-3},
    }
    used = {name: one["utilisation"] for name, one in stations.items()}
    load = Question(ranks=8, nodes=8)
    for factor in (0.2, 0.85, 0.95, 1.0, 1.05, 1.2, 1.3, 5.0):
        correction = Correction(1000.0, 1000.0 * factor, load)
        found = correction.stations(stations, 8e-3)
        absent = 0.8 * factor > 1
        assert (not found) == absent and bool(correction.beyond(used)) == absent, factor
        for name, one in found.items():
            assert one["utilisation"] == pytest.approx(factor * used[name])
            assert ("service" in one) == correction.is_close
        if found and correction.is_close:  # Little's law: 8 ranks are 8 ms in an operation at 1,000/s
            waits = sum(one.get("wait", 0.0) + one.get("lock_wait", 0.0) for one in found.values())
            assert 3e-3 + waits * 5 / 4 == pytest.approx(8 / correction.after)
    full = Correction(1000.0, 1050.0).stations({"a": {"utilisation": 1.0}}, 0.0)
    assert full == {"a": {"utilisation": 1.0}}


def test_work_of_others_keeps_its_share() -> None:
    correction = Correction(1000.0, 500.0)
    assert correction.used({"a": 0.5}, {"a": 0.3}) == {"a": pytest.approx(0.4)}
    assert correction.longer == 1.0 and not math.isnan(correction.factor)


def test_links_are_as_busy_as_the_printed_rate_has_them() -> None:
    phase = {
        "seconds": 2.0, "operations": 100, "stations": {}, "by_operation": {}, "timeline": {"bin_seconds": 1.0},
        "latency": {"pwrite": {"count": 100, "mean": 0.1}}, "network": {"busiest": [{"name": "leaf 1", "busy": 0.9}]},
    }  # fmt: skip
    system = {"stations": {}, "operations": {}, "network": {"topology": "tree"}}
    model = Simulated(50.0, 50.0, phase, system, 2, 8, {})
    for rate, used in ((50.0, "90 %"), (47.5, "86 %"), (42.0, "76 %"), (100.0, "100 %"), (10.0, "")):
        bottleneck = model.at(Correction(50.0, rate, Question(8, 2)))["bottleneck"]
        assert (f"leaf 1, used at {used} of capacity" in bottleneck) == bool(used), (rate, bottleneck)
    assert phase["network"]["busiest"][0]["busy"] == 0.9  # type: ignore[index]

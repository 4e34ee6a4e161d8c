# SPDX-License-Identifier: Apache-2.0
"""`validate` judges what was held out, by one definition of error and a fixed pass mark, and names its noise measured
or assumed."""

from __future__ import annotations

import importlib
import json
import math
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from iocast.calibrate import reading
from iocast.errors import InputError
from iocast.ground.files import sha256
from iocast.platforms.fitted import Fitted
from iocast.report.sources import read_sources
from iocast.report.story import tell
from iocast.records.run import Brake
from iocast.runs.question import Question
from iocast.runs.run_directory import Point, Run
from iocast.wording.checked import validation_text
from iocast.validate import validate

judging = sys.modules["iocast.validate"]


def run_of(directory: Path, rate: float, ranks: int = 4, phases: int = 1, **more: Any) -> Run:
    """An imported run with a rate and nothing else."""
    directory.mkdir(parents=True)
    phase = {
        "name": "benchmark",
        "repeat": 0,
        "rate": rate,
        "operations": None,
        "seconds": None,
        "errors": 0,
        "latency": {},
        **more,
    }
    document = {
        "schema_version": 1, "kind": "run", "status": "complete", "source": "imported",
        "placement": {"ranks": ranks, "nodes": 1, "ranks_per_node": ranks}, "environment": None,
        "workload": {"name": "mdtest", "pattern": "mdtest", "parameters": {}}, "phases": [phase] * phases,
    }  # fmt: skip
    (directory / "run.json").write_text(json.dumps(document))
    (directory / "latency.hlog").write_text("")
    return Run(directory)


def fitted_to(run: Run, noise: float = 0.02, **more: Any) -> Fitted:
    campaign = {
        "runs": [{"name": "n1", "sha256": sha256(run.path / "run.json")}],
        "ranks": [1],
        "workload": {"name": "mdtest", "pattern": "mdtest"},
    }
    return Fitted(
        Path("f.yaml"), {"campaign": campaign, "noise": dict.fromkeys(reading.NOISE_KINDS, noise), **more}, [{}], []
    )


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Validates forecasts of 100/s beside these rates, the first of which was fitted to; by a ruler 50/s."""

    def answer(*rates: float, noise: float = 0.02, fitted: int = 1, most: float = 0.25) -> dict[str, Any]:
        document = {"rate": {"value": 100.0, "low": 50.0, "high": 200.0}}
        forecast = {
            "quantities": document,
            "level": 0.9,
            "baselines": {"last value": {"rate": 50.0}},
            "distributions": {},
            "question": Question.of(
                {"pattern": "md-workbench", "parameters": {}},
                {"ranks": 1, "nodes": 1, "ranks_per_node": 1},
                "benchmark",
            ).document(),
        }
        monkeypatch.setattr(judging, "forecast_for", lambda *_, **__: forecast)
        monkeypatch.setattr(judging, "_earlier", lambda *_: None, raising=False)
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        points = [Point([run_of(place / f"n{i}", rate, 2**i)]) for i, rate in enumerate(rates)]
        platform = fitted_to(points[0].first if fitted else run_of(place / "other", 1.0, 64), noise)
        return validate(platform, points, most_rate_error=most)

    return answer


def test_with_nothing_held_out_nothing_passes(judge: Any) -> None:
    alone = judge(100.0)
    assert (alone["passed"], alone["verdict"]) == (False, "nothing held out")
    assert alone["summary"]["rate_error_median"] is None is alone["summary"]["coverage"]
    assert "Nothing held out" in validation_text(alone) and "Passed" not in validation_text(alone)
    beside = judge(100.0, 110.0)
    assert (beside["passed"], beside["verdict"]) == (True, "passed")


def test_runs_that_a_limit_held_back_are_refused(tmp_path: Path) -> None:
    """Their rate is the limit's, whether a point has one of them or all."""
    runs = [run_of(tmp_path / f"n1-r{repeat}", 100.0) for repeat in (1, 2)]
    runs[1].record = msgspec.structs.replace(runs[1].record, brake=Brake(max_rate=200.0))
    with pytest.raises(InputError, match=r"n1-r2' was held back by a limit of its tool \(200/s\)"):
        validate(fitted_to(runs[0]), [Point(runs)])


def test_fitted_points_are_not_in_the_summary(judge: Any) -> None:
    """Neither as good ones nor as bad ones."""
    assert judge(100.0, 125.0)["summary"] == judge(1.0, 125.0)["summary"]


def test_the_pass_mark_is_fixed(judge: Any) -> None:
    """Noisy measurements make nothing pass, and their noise stands beside it."""
    quiet, noisy = judge(1.0, 100 / 1.3, noise=0.02), judge(1.0, 100 / 1.3, noise=0.5)
    assert quiet["criterion"] == noisy["criterion"] and quiet["passed"] is noisy["passed"] is False
    assert noisy["summary"]["noise"]["rate"] == pytest.approx(math.expm1(0.5))
    assert judge(1.0, 100 / 1.3, most=0.31)["passed"]


def test_one_definition_of_error(judge: Any) -> None:
    """Of one row the summary is the row, of the forecast as of a ruler; half is 50 % off and twice is 100 % off in
    both."""
    for measured, error, ruler in ((50.0, 1.0, 0.0), (200.0, -0.5, -0.75)):
        answer = judge(1.0, measured, most=2.0)
        row, summary = answer["points"][1]["rows"][0], answer["summary"]
        assert row["error"] == pytest.approx(error) and row["baselines"]["last value"]["error"] == pytest.approx(ruler)
        assert summary["rate_error_median"] == pytest.approx(abs(error))
        assert summary["baselines"]["last value"]["rate_error_median"] == pytest.approx(abs(ruler))
        assert answer["error"] == "forecast / measured - 1" and answer["error"] in validation_text(answer)


def test_terminal_and_report_have_one_median_error(judge: Any, tmp_path: Path) -> None:
    """Of throughput and quantiles, of the forecast, each simple rule, and one that is better; the largest latency,
    here ten times off, is in none of them. What the error is stands in the text once."""
    answer = judge(1.0, 250.0, most=1.0)
    (point,) = [point for point in answer["points"] if point["role"] == "check"]
    row = point["rows"][0]
    assert [one["quantity"] for one in point["rows"]] == ["rate"] and row["error"] == pytest.approx(-0.6)

    def of(quantity: str, forecast: float, rule: float) -> dict[str, Any]:
        """Of a quantity of which 100 was measured."""
        errors = {"error": forecast / 100 - 1, "baselines": {"last value": {"value": rule, "error": rule / 100 - 1}}}
        return row | {"quantity": quantity, "measured": 100.0, "forecast": forecast, "inside": False} | errors

    point["rows"] = [of("rate", 26.0, 84.0), *(of(f"stat.{q}", 228.0, 120.0) for q in ("q50", "q95", "q99"))]
    point["rows"] += [of("stat.max", 1000.0, 1000.0), of("open.max", 1000.0, 1000.0), of("read.max", 1000.0, 1000.0)]
    noise = {"noise": dict.fromkeys(reading.NOISE_KINDS, 0.01)}
    answer["summary"] = judging._summary([point], noise)
    text = validation_text(answer)
    (tmp_path / "validation.json").write_text(json.dumps(answer))
    page = tell(read_sources([tmp_path / "validation.json"]))
    for (which, ours, its), key in zip(
        (("throughput", 0.74, 0.16), ("latency quantiles q50 to q99", 1.28, 0.2)), ("rate", "quantile"), strict=True
    ):
        assert answer["summary"][f"{key}_error_median"] == pytest.approx(ours)
        assert page.summary[f"{key}_error_median"] == pytest.approx(ours)
        assert page.summary["baselines"]["last value"][f"{key}_error_median"] == pytest.approx(its)
        better = (
            f"the {which} better by more than noise: {100 * its:.0f} % off in the median, iocast {100 * ours:.0f} %."
        )
        assert better in text
    assert "latency quantiles q50 to q99" in text.split("median size of the error", 1)[1].splitlines()[0]
    (card,) = [card for card in page.cards if card.label == "median error of latency quantiles q50 to q99"]
    assert card.value.replace("\N{NO-BREAK SPACE}", " ") == "128 %"
    assert text.count(answer["error"]) == 1


def test_stated_repeats_are_the_noise_and_an_assumption_is_called_one(tmp_path: Path, judge: Any) -> None:
    stated = Point(
        [
            run_of(
                tmp_path / "a",
                100.0,
                rate_over_repeats={"repeats": 3, "mean": 100.0, "standard_deviation": 1.5, "min": 98, "max": 102},
            )
        ]
    )
    alone = Point([run_of(tmp_path / "b", 100.0, 8)])
    assert reading.noise([stated, alone])["rate"] == pytest.approx(0.015)
    assert reading.noise_basis([stated, alone])["rate"] == reading.WITHIN_RUNS
    assert (
        reading.noise([alone])["rate"] == reading.UNREPEATED_IMPORTED
        and reading.noise_basis([alone])["rate"] == reading.ASSUMED
    )
    # Repeated runs tell more than iterations within them; degrees of freedom weigh points: (2 x 0.01 + 1 x 0.04) / 3.
    three, two = ([math.exp(0.1 * x) for x in (-1, 0, 1)], [math.exp(0.2 * x / math.sqrt(2)) for x in (-1, 1)])
    twice = [
        Point([run_of(tmp_path / f"c{i}{j}", rate) for j, rate in enumerate(rates)])
        for i, rates in enumerate((three, two))
    ]
    assert reading.noise([stated, *twice])["rate"] == pytest.approx(math.sqrt(0.02))
    assert reading.noise_basis([stated, *twice])["rate"] == reading.BETWEEN_RUNS
    # A file that doesn't state it.
    assert "5 % assumed" in validation_text(judge(1.0, 100.0, noise=reading.UNREPEATED))
    assert "2 % measured between runs" in validation_text(judge(1.0, 100.0))


def test_single_iterations_of_an_imported_run_are_its_noise(tmp_path: Path) -> None:
    run = run_of(tmp_path / "a", 100.0, phases=3)
    run.phases = [
        msgspec.structs.replace(phase, rate=rate) for phase, rate in zip(run.phases, (98.0, 100.0, 102.0), strict=True)
    ]
    assert reading.noise([Point([run])])["rate"] == pytest.approx(0.02, rel=0.01)


def of_rows(*errors: tuple[str, float, float], runs: int = 1) -> list[dict[str, Any]]:
    """A point whose rows have these errors, as logarithms, of the forecast and of a rule."""
    rows = [
        {
            "quantity": q,
            "measured": 1.0,
            "forecast": math.exp(ours),
            "baselines": {"last value": {"value": math.exp(its)}},
        }
        for q, ours, its in errors
    ]
    return [{"runs": ["r"] * runs, "rows": rows}]


def test_a_rule_beats_a_forecast_by_more_than_noise_only() -> None:
    """The noise is that of the mean of the runs; either side of a measurement counts alike; throughput and quantiles
    are judged apart."""
    noise = dict.fromkeys(reading.NOISE_KINDS, 0.1)

    def beaten(*errors, runs=1):
        return [(one["what"], one["rule"]) for one in judging.beaten_by(of_rows(*errors, runs=runs), noise)]

    assert beaten(("rate", 0.25, 0.0)) == beaten(("rate", -0.25, 0.0)) == [("rate", "last value")]
    assert beaten(("rate", 0.15, 0.0)) == [] and beaten(("rate", 0.15, 0.0), runs=4) == [("rate", "last value")]
    assert beaten(("rate", 0.0, 0.25)) == [] and beaten(("rate", 0.25, 0.25)) == []
    assert beaten(("rate", 0.0, 0.0), ("stat.q50", 0.5, 0.1), ("stat.q95", 0.6, 0.1), ("stat.max", 0.0, 0.9)) == [
        ("quantiles", "last value")
    ]
    # Of many quantities the noise is that of their mean, unless a slow run is slow in all of them.
    many = [(f"op{i}.q50", 0.2, 0.08) for i in range(32)]
    assert beaten(*many[:1]) == [] and beaten(*many) == [("quantiles", "last value")]
    assert judging.beaten_by(of_rows(*many), noise, {"rate": 0.1, "latency": 0.1}) == []
    assert judging.beaten_by(of_rows(("rate", 0.015, 0.0)), dict.fromkeys(noise, 0.0)) == [], (
        "simulations of one platform differ by that"
    )
    some = of_rows(("rate", 0.5, 0.0)) + of_rows(("rate", 0.5, 0.0))
    some[1]["rows"][0]["baselines"] = {}
    assert judging.beaten_by(some, noise) == [], "a rule that is silent where it is hard is no better"


def test_what_a_simple_rule_beats_has_not_passed(judge: Any) -> None:
    """The forecast of 100/s is well within the pass mark; the rule's 50/s is right."""
    answer = judge(1.0, 55.0, most=1.0)
    assert answer["verdict"] == "fell short" and answer["summary"]["coverage"] == 1.0
    assert "'last value' forecasts the throughput better" in validation_text(answer)
    assert judge(1.0, 95.0, most=1.0)["passed"]


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (["file-stat", "file-create"], ["file-create", "file-stat"]),
        (["file-stat"], ["file-stat"]),
        (["file-stat", "file-read"], ["file-stat"]),
        (["precreate", "benchmark", "cleanup"], ["benchmark"]),
    ],
)
def test_of_the_fitted_phases_those_that_were_measured_are_judged(
    measured: list[str], expected: list[str], tmp_path: Path
) -> None:
    """Of another workload's runs all but set-up and clean-up."""
    run = run_of(tmp_path / "run", 100.0, ranks=1)
    document = json.loads((run.path / "run.json").read_text())
    document["phases"] = [document["phases"][0] | {"name": name} for name in measured]
    (run.path / "run.json").write_text(json.dumps(document))
    campaign = {"phase": "file-create", "workload": {"name": "mdtest", "pattern": "mdtest"}}
    fitted = Fitted(Path("f.yaml"), {"campaign": campaign, "further_phases": {"file-stat": {}}}, [{}], [])
    chosen = importlib.import_module("iocast.api.validate")._chosen
    assert list(chosen([], fitted, [run.path])) == expected

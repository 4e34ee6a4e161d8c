# SPDX-License-Identifier: Apache-2.0
"""What a forecast is put together from, piece by piece: rulers, draws and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sharpness
import yaml
from scipy.special import stdtrit
from scipy.stats import binom

from iocast.forecasts import draws
from iocast.rules import baselines
from iocast.rules.baselines import _throughput as closed_queue_rate
from iocast.calibrate.discrepancy import (
    DOUBLING,
    FAMILY_DISCREPANCY,
    GROWTH_POWER,
    MISFIT_GROWTH_POWER,
    discrepancies,
    held_out_from,
)
from iocast.calibrate.recipe import read_recipe
from iocast.platforms.family import family_of, measured_systems
from iocast.platforms.fitted import Fitted, discrepancy_at
from iocast.forecasts.answer import predict
from iocast.forecasts.cautions import far_off_where_checked
from iocast.forecasts.phase import simple_rules, with_intervals
from iocast.forecasts.structures import middle_of
from iocast.runs.operations import pooled_quantity
from iocast.runs.question import Question
from iocast.rules.residuals import Residuals
from iocast.rules.applied import line_of
from iocast.runs.run_directory import Point, Run
from iocast.study.desk import Desk
from iocast.study.questions import Ask
from iocast.study.questions import Point as Point_
from iocast.study.spec import NORMAL, read_study
from iocast.study.store import Store
from iocast.wording.forecast import forecast_text, rule_of
from iocast.wording.notes import sentences
from iocast.jobs.workers import Workers

THINK = 5e-3


def at(ranks: int) -> Question:
    return Question.of({"pattern": "", "parameters": {}}, {"ranks": ranks}, "benchmark")


def thinking(think: dict[str, float], common: float) -> dict[str, Any]:
    """Measurements of a server of 1,000 operations a second whose ranks think 5 ms after each: saturated from six ranks
    on."""
    rates = {1: 1 / 6e-3, 16: 1000.0, 32: 1000.0}
    points = [
        {
            "name": f"N={n}",
            "ranks": n,
            "waiting_factor": 0.0,
            "rate": x,
            "latency": {"stat": {"q50": n / x - THINK, "count": 100}},
        }
        | think
        for n, x in rates.items()
    ]
    return {"campaign": {"points": points, "workload": {"parameters": {"think_time": common}}}}


@pytest.mark.parametrize("fitted", [thinking({"think_time": THINK}, 0), thinking({}, THINK)])
def test_rulers_know_the_think_time(fitted: dict[str, Any]) -> None:
    """As points state it, or, in files of before, their workload; and as the forecast asks for it."""

    def last_value(think_time: str) -> dict[str, float]:
        parameters = {"think_time": think_time}
        question = Question.of({"pattern": "", "parameters": parameters}, {"ranks": 64}, "benchmark")
        answers = simple_rules(line_of(fitted, question), question, ["rate", "stat.q50"])
        return dict(answers["last value"])

    assert last_value("5ms")["stat.q50"] == pytest.approx(64 / 1000 - THINK)
    assert last_value("100ms")["rate"] < 64 / 100e-3


def measured_at(rates: dict[int, float]) -> list[baselines.Point]:
    return [baselines.Point(n, 0.0, rate, {}) for n, rate in rates.items()]


RANKS = (1, 2, 4, 8, 16)
CURVES = {
    "closed M/M/c": {n: closed_queue_rate(n, 1e-3, 2e-4, 4) for n in (*RANKS, 64)},
    "universal scalability law": {n: 1000 * n / (1 + 0.02 * (n - 1) + 0.002 * n * (n - 1)) for n in (*RANKS, 64)},
    "straight line": {n: 3000.0 + 100 * n for n in (*RANKS, 64)},
    "last value": dict.fromkeys((*RANKS, 64), 5000.0),
}


@pytest.mark.parametrize("name", CURVES)
def test_the_simple_rule_beside_a_forecast_is_the_best_at_the_largest_scale(name: str) -> None:
    """Rates of each rule's own law: that rule, or one that says the same; and what it says of a larger scale is the
    best of all."""
    curve = CURVES[name]
    points = measured_at({n: curve[n] for n in RANKS})
    best = baselines.best_rule(points)
    assert best is not None and abs(best.error) < 0.005
    printed = baselines.forecast(points, 64, 0.0, 0.0)
    made = {"rule": {"name": best.name, "error": best.error}, "baselines": printed}
    rule = rule_of(made)
    assert rule is not None and rule.rate == pytest.approx(curve[64], rel=0.03) and best.name in rule.text
    assert baselines.best_rule(points[:2]) is None
    assert rule_of({"baselines": printed}).text == "last value"  # type: ignore[union-attr]


# Intervals

QUIET = dict.fromkeys(("rate", "q50", "q75", "q95", "q99", "max"), 0.0)


def interval_of(best: float, rows: list[float], error: float = 0.01) -> dict[str, float]:
    fitted = {
        "discrepancy": {"rate": error}, "discrepancy_degrees": {"rate": 8},
        "discrepancy_growth": {"step": 2, "power": 0.5}, "campaign": {"ranks": [1, 2, 4, 8]},
        "holdout": {}, "noise": {"rate": 0.01},
    }  # fmt: skip
    return with_intervals(fitted, {"value": {"rate": best}, "ensemble": {"rate": rows}}, {"rate": 0.0}, 32, 0.9)["rate"]


@pytest.mark.parametrize("off", [0.5, 0.83, 1.0, 1.2, 2.0])
def test_an_interval_holds_the_draws_that_it_claims(off: float) -> None:
    """Wherever the best platform lies among them."""
    entries = [100 * off * math.exp(0.05 * z) for z in np.random.default_rng(0).standard_normal(16)]
    found = interval_of(100.0, entries)
    assert sum(found["low"] <= one <= found["high"] for one in entries) >= 0.9 * 16 - 1
    assert found["low"] < 100 < found["high"]
    # Unbiased draws: no wider than their own quantiles and the blur.
    assert off != 1.0 or found["high"] / found["low"] < math.exp(2 * 1.7 * math.hypot(0.05, 0.035))


def held_out(errors: np.ndarray, runs: int = 1, points: int = 1) -> dict[str, Any]:
    each = len(errors) // points
    return {
        "rows": [
            {
                "point": f"N=8 T={i // each}",
                "runs": runs,
                "quantity": f"op{i % each}.q50",
                "error": math.expm1(x),
                "spread": 0.0,
            }
            for i, x in enumerate(errors)
        ]
    }


@pytest.mark.parametrize(
    ("rows", "correlation", "least"), [(1, 0.0, 0.9), (8, 0.0, 0.9), (8, 0.5, 0.88), (8, 0.8, 0.84)]
)
def test_errors_that_share_a_cause_are_no_independent_values(rows: int, correlation: float, least: float) -> None:
    """How often the 90 % interval of a stranger's next forecast holds, at the distance of the held-out one, when its
    rows have this correlation."""
    generator, hits, tries = np.random.default_rng(0), 0, 3000
    for _ in range(tries):
        common, own = generator.standard_normal(), generator.standard_normal(rows)
        errors = 0.3 * (math.sqrt(correlation) * common + math.sqrt(1 - correlation) * own)
        deviation, degrees = discrepancies(held_out(errors), QUIET, True, 0.0)["q50"]
        hits += abs(0.3 * generator.standard_normal()) < float(stdtrit(degrees, 0.95)) * deviation
    fewest = int(binom.ppf(1e-4, tries, least))
    sharpness.fewer_than("coverage", fewest, tries)
    assert hits >= fewest, hits / tries


def test_intervals_of_many_systems_cover_as_often_as_they_claim() -> None:
    """Systems outside of the family whose own errors are 8 % in the median and differ by a factor of two; two runs a
    point with a noise of 3 %, one kind of quantity with four operations, as correlated as rows of one scale are."""
    generator, hits, tries = np.random.default_rng(1), 0, 4000
    noise = QUIET | {"q50": 0.03}
    for _ in range(tries):
        true = 0.08 * math.exp(0.7 * generator.standard_normal())
        errors = true * (math.sqrt(0.7) * generator.standard_normal() + math.sqrt(0.3) * generator.standard_normal(4))
        seen = errors + 0.03 / math.sqrt(2) * generator.standard_normal(4)
        deviation, degrees = discrepancies(held_out(seen, runs=2), noise, True, 0.0)["q50"]
        widen = float(stdtrit(degrees, 0.95)) / 1.645
        hits += abs(true * generator.standard_normal() + 0.03 * generator.standard_normal()) < 1.645 * math.hypot(
            widen * deviation, 0.03
        )
    assert 0.86 < hits / tries < 0.95, hits / tries


@pytest.mark.parametrize("runs", [1, 2, 3, 5])
def test_the_noise_of_a_mean_is_taken_off_as_such(runs: int) -> None:
    """Model error and noise of 10 % each: the estimate is the model's error, whatever number of runs was averaged; of
    residuals that are carried, too."""
    generator = np.random.default_rng(2)
    errors = 0.1 * generator.standard_normal(6000) + 0.1 / math.sqrt(runs) * generator.standard_normal(6000)
    deviation = discrepancies(held_out(errors, runs), QUIET | {"q50": 0.1}, True, 0.0)["q50"][0]
    assert deviation == pytest.approx(
        0.1, rel=0.05
    )  # a mean of 6000 squares is within 4 sqrt(2 / 6000) = 7 % of its own, with the noise's share 3 in 100
    beside = errors + 0.1 * generator.standard_normal(6000)  # the simulation's own
    rows = [
        {"point": "N=8", "runs": runs, "quantity": f"op{i}.q50", "error": math.expm1(x)} for i, x in enumerate(beside)
    ]
    kept = Residuals.of(rows, {"N=8": at(8)}, {"q50": 0.1})
    shares = [kept.at(f"op{i}.q50", at(8)) / x for i, x in enumerate(beside[:20])]
    assert shares == pytest.approx([1 / (1 + 1 / runs + 1)] * 20, rel=0.1)


def test_more_scales_never_make_an_interval_wider() -> None:
    """The same held-out error; a scale more between those that were there leaves what is tested, and what is known
    beforehand, as it is."""
    assert held_out_from([1, 2, 4, 8, 16]) == 16
    assert held_out_from([1, 2, 4, 8, 15, 16]) == 15
    assert held_out_from([1, 2, 4, 8, 12, 16]) == 12
    assert held_out_from([1, 2, 16]) == 16
    assert held_out_from([1, 2, 3]) == 3, "two scales must be left"
    widths = {}
    for scales in ([1, 2, 4, 8, 16], [1, 2, 4, 8, 15, 16], [1, 2, 4, 8, 12, 15, 16]):
        below = held_out_from(scales)
        step = max(DOUBLING, scales[-1] / max(n for n in scales if n < below))
        for stranger, power in ((False, GROWTH_POWER), (True, MISFIT_GROWTH_POWER)):
            points = sum(n >= below for n in scales)
            found = discrepancies(
                held_out(np.full(4 * points, FAMILY_DISCREPANCY["q50"]), points=points),
                QUIET,
                stranger,
                0.0,
                step,
                power,
            )
            fitted = {
                "discrepancy": {"q50": found["q50"][0]}, "discrepancy_degrees": {"q50": found["q50"][1]},
                "discrepancy_growth": {"step": step, "power": power},
                "campaign": {"ranks": scales}, "holdout": {},
            }  # fmt: skip
            error, degrees = discrepancy_at(fitted, "q50", 64)
            widths.setdefault(stranger, []).append(error * float(stdtrit(degrees, 0.95)))
    for stranger, found in widths.items():
        assert found == sorted(found, reverse=True), (stranger, widths)


def test_what_is_known_beforehand_is_known_of_a_doubling() -> None:
    """A platform that forecast eight times the ranks without error is as sure, four times beyond, as one that was
    tested over a doubling."""
    sure = {}
    for step in (2.0, 8.0):
        deviation, degrees = discrepancies(held_out(np.zeros(4)), QUIET, True, 0.0, step, 1.0)["q50"]
        fitted = {
            "discrepancy": {"q50": deviation},
            "discrepancy_degrees": {"q50": degrees},
            "discrepancy_growth": {"step": step, "power": 1.0},
            "campaign": {"ranks": [1, 16]},
            "holdout": {},
        }
        sure[step] = discrepancy_at(fitted, "q50", 64)[0]
    assert sure[2.0] == pytest.approx(sure[8.0])


# Draws

SERVER = """schema_version: 1
extends: queue
demands: {alone: 1us, node: 1us, server: {law: exponential, mean: 1ms}}
stations: {server: {servers: 8, crowding: 0}, node: {servers: 64}}
"""


def server(directory: Path, **more: Any) -> Fitted:
    """A fitted platform whose measurements leave open how many servers there are: 5 to 12, the best one 8."""
    (directory / "server.yaml").write_text(SERVER)
    rows = more.pop("fit", [])
    points = [{"name": f"N={n}", "ranks": n, "waiting_factor": 0.0, "rate": 8000.0, "latency": {}} for n in (8,)]
    fitted = {
        "campaign": {
            "runs": [],
            "ranks": [1, 2, 4, 8],
            "waiting_factors": [0.0],
            "phase": "benchmark",
            "points": points,
            "workload": {
                "name": "md-workbench",
                "pattern": "md-workbench",
                "parameters": {"datasets": 1, "objects": 20},
            },
        },
        "draws": [{"stations": {"server": {"servers": 5 + i // 2}}} for i in range(16)],
        "draw_structures": [{}] * 16,
        "alternatives": [{"structure": {}, "weight": 0.9}, {"structure": {}, "weight": 0.1}],
        "discrepancy": dict.fromkeys(QUIET, 0.02),
        "discrepancy_degrees": dict.fromkeys(QUIET, 6),
        "discrepancy_growth": {"step": 2, "power": 0.5},
        "noise": dict.fromkeys(QUIET, 0.02),
        "fit": rows,
        "holdout": {},
        "notes": [],
    } | more
    file = directory / "fitted.yaml"
    file.write_text(yaml.safe_dump({"schema_version": 1, "extends": str(directory / "server.yaml"), "fitted": fitted}))
    return Fitted.open(str(file))


@pytest.mark.parametrize("tied", [False, True])
def test_the_length_of_a_question_changes_neither_the_draws_nor_the_answer(
    tied: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, simulator: Path
) -> None:
    """Ten times as many iterations than one draw may take: as many draws, simulated beside the best platform; where
    structures tie, the same median."""
    monkeypatch.setattr(draws, "OPERATIONS_A_DRAW", 32 * 4 * 20)
    fitted = server(
        tmp_path,
        **({"alternatives": [{"structure": {}, "weight": 0.4}, {"structure": {}, "weight": 0.35}]} if tied else {}),
    )
    answer = {n: predict(fitted, None, {"iterations": str(n), "objects": "200"}, 1, 32) for n in (20, 200)}
    assert [answer[n]["draws"] for n in (20, 200)] == [
        {"used": 16, "of": 16, "how": how} for how in (draws.IN_FULL, draws.SHORTER)
    ]
    for name in ("rate", "stat.q50"):
        short, long = (answer[n]["quantities"][name] for n in (20, 200))
        # Of 2,560 exponential times on 8 servers a rate has 2 %; a median of some 640 has 4 %.
        for end in ("low", "value", "high"):
            assert long[end] == pytest.approx(short[end], rel=0.15), (name, end)
        # Servers of 5/8 to 12/8 are in it.
        assert long["high"] / long["low"] > 2


def test_a_workload_without_iterations_has_its_draws_from_the_solver(tmp_path: Path, simulator: Path) -> None:
    """Its ratios, beside a value from the simulation; a part of an operation changes as the whole, and a quantile that
    the solver lacks as the mean time; where there is no solution all is simulated."""
    first = {"workload": {"parameters": {"per_process": 3}}, "phases": [{"name": "write", "operations": 10**9}]}
    assert draws.shorter({}, first) is None
    assert draws.shorter({"a": "b"}, first | {"workload": {"parameters": {"items": 1000}}}) == {"a": "b", "items": "2"}
    answer = {"best": {"rate": 100.0, "create.q50": 2.0}, "draw": {"rate": 50.0, "create.q50": 3.0}}
    values = {"rate": 120.0, "create.q50": 1.0, "create.open.q50": 0.5, "create.q99": 7.0}

    def of_phase(printed: dict[str, float]) -> dict[tuple[str, str], float]:
        return {("write", name): value for name, value in printed.items()}

    solver = lambda: lambda document: of_phase(answer[document["is"]])  # noqa: E731
    found = draws.ask(
        None, [{"is": "draw"}] * 16, tmp_path, {"is": "best"}, of_phase(values), first, ("w", {}, 1000, 10), 0, solver
    )  # type: ignore[arg-type]
    assert found.document() == {"used": 16, "of": 16, "how": draws.SOLVED}
    assert found.values[0] == of_phase({"rate": 60.0, "create.q50": 1.5, "create.open.q50": 0.75, "create.q99": 14.0})


# What-ifs

MISSED = [
    {"point": "N=8", "quantity": "stat.q99", "runs": 2, "error": 0.2},
    {"point": "N=8", "quantity": "rate", "runs": 2, "error": -0.04},
]


def test_an_edited_system_is_shifted_as_the_measured_one_and_less_sure(tmp_path: Path, simulator: Path) -> None:
    """By an edit that changes nothing the value stays; what the model misses may be something else there, so the
    interval is wider by it."""
    plain = server(tmp_path, fit=MISSED)
    (tmp_path / "renamed.yaml").write_text(
        f"schema_version: 1\nextends: {plain.file}\ndescription: the same by another name\n"
    )
    answer = {}
    for name, edits in (("plain", []), ("renamed", []), ("edited", [("stations.node.servers", 64)])):
        file = tmp_path / "renamed.yaml" if name == "renamed" else plain.file
        platform = Fitted.open(str(file), edits)  # type: ignore[arg-type]
        answer[name] = predict(platform, None, {"iterations": "20"}, 1, 16)["quantities"]
    assert answer["renamed"] == answer["plain"]
    for quantity in ("stat.q99", "rate", "create.q99"):
        a, b = answer["plain"][quantity], answer["edited"][quantity]
        assert a["value"] == b["value"]
        if quantity == "stat.q99":
            assert a["model"] / a["value"] == pytest.approx(1.2, rel=0.01)
        assert b["low"] < a["low"] < a["high"] < b["high"], quantity


def bounded_server(directory: Path) -> Fitted:
    """A server whose two measured scales have a straight continuation below what its eight servers do."""
    plain = server(directory)
    document = yaml.safe_load(plain.file.read_text())
    document["fitted"]["campaign"]["points"] = [
        {"name": f"N={n}", "ranks": n, "nodes": 1, "waiting_factor": 0.0, "rate": rate, "latency": {}}
        for n, rate in ((4, 3000.0), (8, 3500.0))
    ]
    plain.file.write_text(yaml.safe_dump(document))
    return Fitted.open(str(plain.file))


@pytest.mark.parametrize("waiting_factor", [0.0, 3.0])
def test_latencies_follow_a_bounded_rate(waiting_factor: float, tmp_path: Path, simulator: Path) -> None:
    """Rate times mean response is the mean number of ranks inside an operation (Little's law), whose mean is that of
    the printed distributions; of an edited system too. Quantiles move with the mean."""
    file = bounded_server(tmp_path).file
    for edits in ([], [("stations.node.servers", 64)], [("stations.server.servers", 7)]):
        platform = Fitted.open(str(file), edits)  # type: ignore[arg-type]
        settings = {"iterations": "200", "objects": "200", "datasets": "1", "waiting_factor": f"{waiting_factor:g}"}
        answer = predict(platform, None, settings, 1, round(16 * (1 + waiting_factor)))
        rate = answer["quantities"]["rate"]
        assert rate["value"] < 0.8 * rate["model"]
        inside = 0.0
        for op, one in answer["operations"].items():
            known = answer["distributions"][op]
            p, seconds = np.array(known["probability"]), np.array(known["seconds"])
            inside += one["rate"]["value"] * float(np.diff(p) @ (seconds[1:] + seconds[:-1])) / 2
        assert inside == pytest.approx(16, rel=0.06), edits
        longer = rate["model"] / rate["value"]
        for name, one in (answer["quantities"] | answer["parts"]).items():
            if name != "rate":
                assert one["value"] == pytest.approx(longer * one["model"], rel=1e-6), name
                assert one["low"] < one["value"] < one["high"], name
        assert any("Little's law" in warning for warning in answer["warnings"])


def test_a_bound_on_the_measured_system_changes_edited_ones_by_the_same_factor(tmp_path: Path, simulator: Path) -> None:
    """An edit that changes nothing keeps the value, and a slower server is slower than the measured one."""
    plain = bounded_server(tmp_path)
    answer = {}
    for name, edits in (
        ("plain", []),
        ("same", [("stations.node.servers", 64)]),
        ("slower", [("stations.server.servers", 6)]),
    ):
        platform = Fitted.open(str(plain.file), edits)  # type: ignore[arg-type]
        answer[name] = predict(platform, None, {"iterations": "20"}, 1, 16)
    rate = {name: one["quantities"]["rate"] for name, one in answer.items()}
    assert rate["plain"]["value"] < 0.7 * rate["plain"]["model"]
    assert rate["same"]["value"] == pytest.approx(rate["plain"]["value"])
    assert rate["slower"]["value"] / rate["same"]["value"] == pytest.approx(
        rate["slower"]["model"] / rate["same"]["model"]
    )
    assert any("straight continuation" in warning for warning in answer["plain"]["warnings"])


def test_a_study_carries_residuals_as_a_forecast_does(tmp_path: Path, simulator: Path) -> None:
    """Shifted by what the platform misses, whatever the design; the design without an edit is as sure as a forecast,
    the others have it as a doubt."""
    plain = server(tmp_path, fit=MISSED)
    study = {
        "schema_version": 1, "title": "t", "platform": str(plain.file),
        "workloads": {"own": {"workload": "md-workbench", "settings": {"iterations": 20, "objects": 20, "datasets": 1}},
        "other": {"workload": "postmark"}},
        "scales": {"s": {"nodes": 1, "ranks_per_node": 16}}, "currency": "EUR",
        "parts": {"core": {"price": 1, "source": "made up"}},
        "axes": {"nodes": {"as it is": {}, "more": {"edit": {"stations.node.servers": 65}, "parts": {"core": 1}}}},
        "levels": ["rate(stat) >= 1/s", "p99(stat) < 1 s"],
    }  # fmt: skip
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    read = read_study(tmp_path / "study.yaml")
    with Workers(1) as workers, Store(tmp_path / "store") as store:
        desk = Desk(read, store, workers, lambda *_: None)
        by_workload = {w: Point_(NORMAL, w, "s") for w in ("own", "other")}
        asks = [Ask("simulate", design, point, 0) for design in (0, 1) for point in by_workload.values()]
        reported, raw = desk.gather(asks, ""), desk._stored(asks)
        forecast = predict(plain, None, {"iterations": "20"}, 1, 16)["quantities"]
        for ask in asks:
            for name in ("rate", "stat.q99") if ask.point.workload == "own" else ("rate",):
                shift = reported[ask]["quantities"][name] / raw[ask]["quantities"][name]
                expected = forecast[name]["value"] / forecast[name]["model"] if ask.point.workload == "own" else 1.0
                assert shift == pytest.approx(expected, rel=1e-6), (ask, name)
            assert reported[ask]["quantities"]["seconds"] * reported[ask]["quantities"]["rate"] == pytest.approx(
                raw[ask]["quantities"]["seconds"] * raw[ask]["quantities"]["rate"]
            )
        assert desk.known(asks) == reported
        for ask in asks:
            design = desk.designs.at(ask.design)
            assert desk.is_as_measured(design, ask.point) is (design.name == "as it is" and ask.point.workload == "own")


# Maxima


def test_the_largest_latency_is_one_quantity_for_all_who_tell_it(simulate: Callable[..., Any], tmp_path: Path) -> None:
    """Measured by runs of three repeats, by six runs of one, and forecast from other seeds, of the same platform: the
    same but for chance, however many runs or repeats there are. And a run says what its summaries say."""

    def maxima(first_seed: int, runs: int, repeats: int) -> tuple[float, list[float]]:
        made = []
        for seed in range(first_seed, first_seed + runs):
            place = tmp_path / str(seed)
            reported = (
                "--set",
                "datasets=1",
                "--set",
                "objects=60",
                "--set",
                "iterations=60",
                "--set",
                f"repeats={repeats}",
                "--seed",
                str(seed),
            )
            simulate("lustre", "--ppn", "4", *reported, "--out", place)
            made.append(Run(place))
        logs = [math.log(phase.latency["stat"].max) for run in made for phase in run.phases]
        point = Point(made)
        assert point.value("stat.max") == pytest.approx(
            math.exp(np.mean([math.log(pooled_quantity(run.json, "stat.max")) for run in made]))
        )
        assert point.value("stat.max") == pytest.approx(math.exp(np.mean(logs)))
        return point.value("stat.max"), logs

    few, many = maxima(100, 2, 3), maxima(200, 6, 1)
    chance = math.hypot(*(np.std(logs, ddof=1) / math.sqrt(len(logs)) for _, logs in (few, many)))
    assert abs(math.log(few[0] / many[0])) < 4 * chance


# Platforms without measurements

SITE = "schema_version: 1\nextends: lustre\nstations: {mds: {count: 2, servers: 32}}\n"


@pytest.mark.parametrize("solver", ["analytic", "simulate"])
def test_without_measurements_measured_systems_stand_beside(solver: str, tmp_path: Path, simulator: Path) -> None:
    """The same question to the catalogue's measured Lustres: each as it answers by itself; a range that is called none
    of an interval."""
    (tmp_path / "site.yaml").write_text(SITE)
    settings = {"datasets": "1", "objects": "30", "iterations": "30"}

    def ask(platform: str) -> dict[str, Any]:
        return predict(Fitted.open(platform), "md-workbench", settings, 16, 1, solver=solver)

    site, mistral = ask(str(tmp_path / "site.yaml")), ask("mistral")
    family = site["family"]
    assert family["family"] == "lustre" and family["label"] == "range, not an interval"
    systems = {one["name"]: one["quantities"] for one in family["systems"]}
    assert {"mistral", "ddn-duesseldorf"} <= set(systems)
    tolerance = 1e-9 if solver == "analytic" else 0.3  # one simulation beside three
    assert systems["mistral"]["rate"] == pytest.approx(mistral["quantities"]["rate"]["value"], rel=tolerance)
    value = site["quantities"]["rate"]
    assert value["low"] is value["high"] is None
    assert family["range"]["rate"] == {"low": min(one["rate"] for one in systems.values()), "high": value["value"]}
    assert family["range"]["create.q99"] == {
        "low": site["quantities"]["create.q99"]["value"],
        "high": max(one["create.q99"] for one in systems.values()),
    }
    # Published numbers tell how far one of them is off, as it is simulated; else none stands beside itself.
    if solver == "simulate":
        assert mistral["quantities"]["rate"]["low"] and "family" not in mistral
    else:
        assert "mistral" not in {one["name"] for one in mistral["family"]["systems"]}
    text = forecast_text(site)
    assert "range, not an interval" in text and "ddn-duesseldorf" in text and "90 %" not in text
    assert any("measured systems of the family lustre" in one for one in site["basis"])


def test_a_family_without_measured_systems_says_so(simulator: Path) -> None:
    answer = predict(
        Fitted.open("beegfs"), "md-workbench", {"datasets": "1", "objects": "10", "iterations": "10"}, 2, 1
    )
    assert answer["family"]["systems"] == [] and answer["family"]["range"] == {}
    assert any("no measured system of this family (beegfs)" in one for one in answer["basis"])


def test_systems_set_to_another_workload_are_named_so(tmp_path: Path, simulator: Path) -> None:
    answer = predict(Fitted.open("lustre"), "postmark", {}, 2, 1)
    assert any("measurements of md-workbench, not of postmark" in one for one in answer["basis"]), answer["basis"]


def test_a_measured_system_is_calibrated_as_its_family() -> None:
    ours, family = read_recipe("mistral"), read_recipe("lustre")
    assert (ours.laws, ours.parameters, ours.choices) == (family.laws, family.parameters, family.choices)


def test_every_measured_system_is_of_a_family_of_the_catalogue(simulator: Path) -> None:
    families = {"lustre", "datawarp"}
    found = [(family, one.name) for family in families for one in measured_systems(family)]
    assert len(found) >= 4
    for family, name in found:
        assert family_of(Fitted.open(name)) == family


@pytest.mark.parametrize(
    ("error", "rule", "says"),
    [
        (0.1, 0.0, None),
        (0.3, 0.1, "too high, and a simple rule was closer"),
        (-0.3, 0.4, "too low: plan with the interval"),
    ],
)
def test_a_forecast_that_was_far_off_where_it_was_checked_says_so(error: float, rule: float, says: str | None) -> None:
    fitted = {"holdout": {"rows": [{"quantity": "rate", "error": error}]}}
    found = sentences(far_off_where_checked(fitted, {"name": "last value", "error": rule}))
    assert (not found) if says is None else says in found[0]
    of_a_phase = sentences(far_off_where_checked(fitted | {"campaign": {"phase": "file-stat"}}, None))
    assert bool(of_a_phase) == bool(found) and all("the forecast of file-stat was" in one for one in of_a_phase)
    assert not far_off_where_checked({}, None)


def test_which_of_two_tied_limits_is_the_best_decides_nothing() -> None:
    """Eight draws without a limit and eight with one: a tie answers alike whichever is called the best, and moves with
    their shares; an option that has most draws is the answer."""

    def forecast(free: int, best: float) -> float:
        rates = [8000.0 * (1 + 0.01 * (i % 3)) if i < free else 1000.0 * (1 + 0.01 * (i % 3)) for i in range(16)]
        structures = [{"threads": "unlimited" if i < free else "8"} for i in range(16)]
        return middle_of({"noise": {"rate": 0.01}}, free < 8, {"rate": best}, {"rate": rates}, structures)["rate"]

    assert forecast(8, 8000.0) == forecast(8, 1000.0) == pytest.approx(math.sqrt(8e6), rel=0.02)
    assert 0.7 < forecast(7, 1000.0) / forecast(8, 1000.0) < 1 < forecast(9, 8000.0) / forecast(8, 1000.0) < 1.4
    assert forecast(15, 8000.0) == 8000.0 and forecast(1, 8000.0) == pytest.approx(1010.0, rel=0.02)

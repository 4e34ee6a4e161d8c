# SPDX-License-Identifier: Apache-2.0
"""Results that were multiplied by 100 do not pass unnoticed, whoever reads them; nor does a question that is only
spelled otherwise change an answer."""

import json
import math
import re
import shutil
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import yaml

from iocast.runs.agreement import check_fitted, check_forecast
from iocast.analytic.response import POINTS
from iocast.errors import InputError
from iocast.export.table import rows_of
from iocast.platforms.fitted import Fitted
from iocast.runs.operations import profile
from iocast.platforms.documents import set_path
from iocast.forecasts.answer import predict
from iocast.forecasts.simulated import SEEDS
from iocast.report.sources import read_sources
from iocast.runs.run_directory import Run
from iocast.study import evaluate

READERS: dict[str, Callable[[Path], Any]] = {
    "validate": Run,
    "report": lambda path: read_sources([path]),
    "export": lambda path: list(rows_of(path)),
}


@pytest.fixture(scope="module")
def run(simulate: Callable[..., dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("agreement") / "run"
    simulate("lustre", "--ppn", 4, "--set", "datasets=2", "--set", "objects=30", "--set", "iterations=30", "--out", out)
    return out


def paths(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Of every number in it."""
    if isinstance(node, dict | list):
        return [
            found
            for key, value in (node.items() if isinstance(node, dict) else enumerate(node))
            for found in paths(value, (*path, key))
        ]
    return [path] if isinstance(node, int | float) and not isinstance(node, bool) and node else []


RESULTS = ("seconds", "operations", "rate", "responding_seconds", "latency", "by_operation")
"""Keys of a phase that a run directory has twice, so that they can contradict each other."""


def test_every_result_times_a_hundred_is_noticed(run: Path, tmp_path: Path) -> None:
    content = json.loads((run / "run.json").read_text())
    (number,) = [i for i, phase in enumerate(content["phases"]) if phase["name"] == "benchmark"]
    shutil.copytree(run, tmp_path / "changed")
    passed = []
    for key in RESULTS:
        for path in paths(content["phases"][number][key], (key,)):
            changed = json.loads(json.dumps(content))
            *way, last = path
            node = changed["phases"][number]
            for step in way:
                node = node[step]
            node[last] *= 100
            (tmp_path / "changed" / "run.json").write_text(json.dumps(changed))
            try:
                Run(tmp_path / "changed")
                passed.append(path)
            except InputError as error:
                assert "contradicts itself" in str(error)
    # A part's count and mean stand once, as do the bytes of an operation that moves none.
    assert all(path[0] == "latency" and "." in path[1] and path[2] in ("count", "mean") for path in passed), passed


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("keys", [("rate",), ("latency",), ("latency", "responding_seconds")], ids="-".join)
def test_no_reader_takes_results_times_a_hundred(run: Path, tmp_path: Path, reader: str, keys: tuple[str, ...]) -> None:
    READERS[reader](run)
    content = json.loads((run / "run.json").read_text())
    for phase in content["phases"]:
        for path in (found for key in keys for found in paths(phase[key], (key,)) if found[-1] != "count"):
            node = phase
            for step in path[:-1]:
                node = node[step]
            node[path[-1]] *= 100
    shutil.copytree(run, tmp_path / "changed")
    (tmp_path / "changed" / "run.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="contradicts itself"):
        READERS[reader](tmp_path / "changed")


def times_a_hundred(content: Any, check: Callable[[Any], None]) -> tuple[int, list[tuple[Any, ...]]]:
    """How many numbers there are, and those that may be a hundred times as large without a word."""
    check(content)
    passed, every = [], paths(content)
    for path in every:
        changed = json.loads(json.dumps(content))
        node = changed
        for step in path[:-1]:
            node = node[step]
        node[path[-1]] *= 100
        try:
            check(changed)
            passed.append(path)
        except InputError as error:
            assert "contradicts itself" in str(error)
    return len(every), passed


def test_the_numbers_of_a_forecast_agree(fitted: Path) -> None:
    """Value and interval, the quantiles, operations and bytes, time, balance, shares of time. `model` is the value
    before the residual's shift; nothing lies above the highest end."""
    answer = predict(Fitted.open(str(fitted)), None, {"objects": "100", "iterations": "100"}, 1, 8)
    known_once = ("cautions", "distributions", "baselines", "timeline", "question", "further_phases", "next", "draws")
    answer = json.loads(json.dumps({key: value for key, value in answer.items() if key not in known_once}))
    answer["question"] = {}  # numbers of its own are compared with a measurement's
    number, passed = times_a_hundred(answer, lambda content: check_forecast(content, "The forecast 'f.json'"))
    others = {path[-1] for path in passed if path[0] in ("quantities", "parts")}
    assert number > 100 and {"model", "high"} <= others <= {"model", "high", "value"}
    for part, name in [path[:2] for path in passed if path[0] in ("quantities", "parts") and path[-1] == "value"]:
        one = answer[part][name]  # a largest latency, of which the interval allows a hundred times as much
        assert name.endswith(".max") and one["high"] >= 100 * one["value"], name
    assert all(path[1].endswith((".max", ".q99")) for path in passed if path[-1] == "high")
    rest = {path[0] for path in passed} - {"quantities", "parts"}
    once = {"schema_version", "level", "extrapolation", "waiting_factor", "placement", "workload", "stations", "rule"}
    unread = {"course", "total_operations"}  # printed by iocast simulate, which has just computed them
    assert rest <= once | unread
    assert not [path for path in passed if path[0] == "stations" and path[-1] == "utilisation"]


def test_bounds_of_simple_rules_may_cross() -> None:
    """A forecast whose bound on the largest latency is below that on a quantile was refused as changed."""
    bounds = {f"stat.{which}": {"low": low, "value": 2.0, "high": 3.0} for which, low in (("q99", 1.001), ("max", 1.0))}
    forecast = {"phase": "benchmark", "question": {}, "baselines": {"asymptotic bounds": bounds}}
    check_forecast(forecast, "The forecast 'f.json'")
    bounds["stat.max"]["low"] = 100.0
    with pytest.raises(InputError, match="low, value and high of"):
        check_forecast(forecast, "The forecast 'f.json'")


def test_what_a_forecast_says_twice_agrees(fitted: Path) -> None:
    answer = json.loads(json.dumps(predict(Fitted.open(str(fitted)), None, {}, 1, 8, solver="analytic")))
    for change in (
        {"placement": answer["placement"] | {"ranks_per_node": 800}},
        {"phase": "precreate"},
        {"waiting_factor": 4.0},
        {"workload": answer["workload"] | {"pattern": "postmark"}},
    ):
        with pytest.raises(InputError, match="and that of its question"):
            check_forecast(answer | change, "The forecast 'f.json'")
    with pytest.raises(InputError, match="lacks a number in its phase benchmark"):
        check_forecast(answer | {"operations": {"stat": {"share": "all"}}}, "The forecast 'f.json'")


@pytest.mark.parametrize(
    ("workload", "settings", "pattern"),
    [("ior-easy", {"per_process": "16MiB"}, "application"), ("mdtest-easy", {"items": "10"}, "mdtest")],
)
def test_a_workload_whose_name_is_no_pattern_is_forecast_as_its_pattern(
    workload: str, settings: dict[str, str], pattern: str
) -> None:
    answer = json.loads(json.dumps(predict(Fitted.open("lustre"), workload, settings, 1, 2)))
    assert (answer["workload"]["name"], answer["workload"]["pattern"]) == (workload, pattern)
    check_forecast(answer, "The forecast 'f.json'")
    # Earlier states wrote the name in its place.
    check_forecast(answer | {"workload": answer["workload"] | {"pattern": workload}}, "The forecast 'f.json'")


def test_the_numbers_of_a_fitted_platform_agree(fitted: Path, tmp_path: Path) -> None:
    """Its parameters with what the platform holds, the best structure's, and rows with their errors."""
    platform = yaml.safe_load(fitted.read_text())
    parts = {key: platform["fitted"][key] for key in ("parameters", "alternatives", "misfit", "fit", "holdout")}
    parts["alternatives"] = parts["alternatives"][:1]
    number, passed = times_a_hundred(
        {"fitted": parts, **{key: platform[key] for key in platform if key not in ("fitted", "demands")}},
        lambda content: check_fitted(content, Path("f.yaml")),
    )
    assert number > 100
    kept = {path[-1] for path in passed if path[:2] not in (("fitted", "fit"), ("fitted", "holdout"))}
    assert kept <= {"schema_version", "high"}
    assert {path[-1] for path in passed if path[0] == "fitted"} <= {
        "high",
        "runs",
        "ranks",
        "fitted_up_to",
        "noise",
        "spread",
        0,
    }
    path, one = next(iter(platform["fitted"]["parameters"].items()))
    set_path(platform, path, f"{2 * one['value']}{one['unit']}")
    (tmp_path / "f.yaml").write_text(yaml.safe_dump(platform))
    for reader in (lambda file: Fitted.open(str(file)), lambda file: read_sources([file])):
        with pytest.raises(InputError, match="change a fitted platform by --edit, or in a file that extends it"):
            reader(tmp_path / "f.yaml")
    (tmp_path / "g.yaml").write_text(yaml.safe_dump({"schema_version": 1, "extends": str(fitted)}))
    edits = [(path, f"{2 * one['value']}{one['unit']}")]
    assert Fitted.open(str(tmp_path / "g.yaml"), edits).edited


# ---- invariances ------------------------------------------------------------------------------------------------

PLATFORM = (
    "schema_version: 1\nextends: lustre\nstations: {mds: {servers: 8, speed: 2}}\nnetwork: {latency: 3us,"
    " node_bandwidth: 100Gbit/s}\n"
)
SPELLED = (
    "# mine\ndescription: the same\nnetwork: {node_bandwidth: 12.5GB/s, latency: 0.003ms}\nextends: lustre\nstations:\n"
    "  mds:\n    speed: 2.0\n    servers: 8\nschema_version: 1\n"
)


def test_words_and_means_of_a_fitted_platform_that_were_changed_are_refused(fitted: Path) -> None:
    """What a noise rests on, the options of its draws, and mean responses with which more ranks than there are would
    be inside operations."""
    document = yaml.safe_load(fitted.read_text())
    check_fitted(document, fitted)
    known = document["fitted"]
    points = [p for p in known["campaign"]["points"] if not p["waiting_factor"] and p["latency"]]
    assert known["noise_basis"] and points
    places: list[tuple[dict[str, Any], str, Any]] = [
        (known["noise_basis"], kind, "guessed") for kind in known["noise_basis"]
    ]
    draws = known["draw_structures"]
    places += [(draws[place], choice, "another") for place in (0, -1) for choice in draws[place]]
    # An option that was compared when its choice was up, and in no structure of the end, may be in a draw.
    assert all(option in known["drawn_from"][choice] for draw in draws for choice, option in draw.items())
    compared = next(choice for choice in draws[0])
    known["drawn_from"][compared]["a rival"], before = 0.03, draws[0][compared]
    draws[0][compared] = "a rival"
    check_fitted(document, fitted)
    draws[0][compared] = before
    places += [(op, "mean", 100 * op["mean"]) for point in points for op in point["latency"].values()]
    places += [(known, name, other) for name in ("notes", "cautions") for other in ("none", [1], None, {})]
    for of, key, other in places:
        before, of[key] = of[key], other
        with pytest.raises(InputError, match="is damaged|contradicts itself"):
            check_fitted(document, fitted)
        of[key] = before


def test_a_forecast_was_made_at_a_time(fitted: Path) -> None:
    document = predict(Fitted.open(str(fitted)), None, {"objects": "20", "iterations": "20"}, 1, 2, solver="analytic")
    check_forecast(document, "The forecast")
    for wrong in (f"{document['made_at']}-else", "", None, 5):
        with pytest.raises(InputError, match="made_at is .*, which is no time"):
            check_forecast(document | {"made_at": wrong}, "The forecast")


@pytest.mark.parametrize("kind", ["run", "forecast", "fitted"])
def test_a_report_refuses_what_contradicts_itself_in_a_sentence(
    kind: str, run: Path, fitted: Path, iocast: Callable[..., Any], tmp_path: Path
) -> None:
    """With the file and both numbers; no page is written. So every page is of files whose numbers agree."""
    source = tmp_path / ("changed" if kind == "run" else f"changed.{'json' if kind == 'forecast' else 'yaml'}")
    if kind == "run":
        shutil.copytree(run, source)
        file = source / "run.json"
        document = json.loads(file.read_text())
        document["phases"][0]["rate"] *= 100
    elif kind == "forecast":
        file = source
        platform = Fitted.open(str(fitted))
        document = predict(platform, None, {"objects": "20", "iterations": "20"}, 1, 2, solver="analytic")
        document["quantities"]["rate"]["value"] *= 100
    else:
        file, document = source, yaml.safe_load(fitted.read_text())
        document["fitted"]["fit"][0]["error"] = 100.0
    file.write_text(json.dumps(document))
    done = iocast("report", source, "--out", tmp_path / "page.html")
    message = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 2 and "changed" in message and "contradicts itself" in message, done.stderr
    assert len(re.findall(r"\d[\d.e+-]*", message)) >= 2 and message.endswith(".")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("solver", ["simulate", "analytic"])
def test_spelling_order_and_names_change_no_number(tmp_path: Path, solver: str) -> None:
    one, other = tmp_path / "one.yaml", tmp_path / "another name.yaml"
    one.write_text(PLATFORM)
    other.write_text(SPELLED)
    settings = {"datasets": "2", "objects": "30", "iterations": "30", "object_size": "4KiB", "think_time": "100us"}
    spelled = {"think_time": "0.1ms", "object_size": "4096B", "iterations": "30", "objects": "30", "datasets": "2"}
    a = predict(Fitted.open(str(one)), "md-workbench", settings, 2, 2, solver=solver)
    b = predict(Fitted.open(str(other)), "md-workbench", spelled, 2, 2, solver=solver)
    compared = ("quantities", "operations", "seconds", "stations", "question")
    numbers = [
        {path: reduce(lambda node, key: node[key], path, one) for path in paths({key: one[key] for key in compared})}
        for one in (a, b)
    ]
    assert a["question"] == b["question"]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-14), "but for the last digit of 0.003 ms and 3 us"
    changed = predict(
        Fitted.open(str(one), [("network.node_bandwidth", "10Gbit/s")]), "md-workbench", settings, 2, 2, solver=solver
    )
    assert changed["platform"]["content_hash"] != a["platform"]["content_hash"]
    assert changed["quantities"] != a["quantities"]


# ---- one number for one question -------------------------------------------------------------------------------------

SETTINGS = {"datasets": "2", "objects": "30", "iterations": "30", "object_size": "1MiB"}
PLACE = {"nodes": 2, "ranks_per_node": 2}


def of_a_study(results: list[dict[str, float]], name: str) -> float:
    """A study's value over its replications."""
    return math.exp(sum(math.log(one[name]) for one in results) / len(results))


def test_a_studys_simulations_are_those_of_a_forecast(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(PLATFORM)
    answer = predict(Fitted.open(str(file)), "md-workbench", SETTINGS, 2, 2, seed=5)
    request = {
        "platform_key": f"{file}, simulated",
        "workload": "md-workbench",
        "settings": {**SETTINGS, "phases": "benchmark"},
        "phase": "benchmark",
        **PLACE,
    }
    results = [evaluate._simulate(request | {"seed": 5 + i}, file)["quantities"] for i in range(SEEDS)]
    for name, printed in answer["quantities"].items():
        assert of_a_study(results, name) == pytest.approx(printed["value"], rel=1e-5), name
    for op, printed in answer["operations"].items():
        assert of_a_study(results, f"{op}.rate") == pytest.approx(printed["rate"]["value"], rel=1e-5)
    assert of_a_study(results, "write.bandwidth") == pytest.approx(
        answer["operations"]["create"]["bytes_per_second"]["value"], rel=1e-5
    )
    assert of_a_study(results, "read.bandwidth") == pytest.approx(
        answer["operations"]["read"]["bytes_per_second"]["value"], rel=1e-5
    )


def test_a_studys_solutions_are_those_of_a_forecast(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(PLATFORM)
    answer = predict(Fitted.open(str(file)), "md-workbench", SETTINGS, 2, 2, solver="analytic")
    profiled = profile("md-workbench", {**SETTINGS, "phases": "benchmark"}, 2, 2)["phases"]["benchmark"]
    request = {
        "platform_key": str(file),
        "mix": profiled["operations"],
        **{name: profiled[name] for name in ("place", "bytes", "blocks", "datasets", "objects")},
        "points": POINTS,
        "waiting_factor": 0.0,
        "think_time": 0.0,
    }
    found = evaluate._analytic(request, file)["quantities"]
    for name, printed in answer["quantities"].items():
        assert found[name] == pytest.approx(printed["value"], rel=1e-5), name
    assert found["write.bandwidth"] == pytest.approx(
        answer["operations"]["create"]["bytes_per_second"]["value"], rel=1e-5
    )

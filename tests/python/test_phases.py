# SPDX-License-Identifier: Apache-2.0
"""Forecasts of every workload of the catalogue, phase by phase, with bytes a second wherever data move."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from bench_runs import settings_arguments
from programs import REPOSITORY
from schedule import mostly_long
from study_inputs import changed, write

from iocast.ground import binaries
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.forecast import forecast
from iocast.runs.operations import MOVES_DATA
from iocast.runs.phases import check_phase, first_phase, is_beside, main_phases
from iocast.forecasts.answer import _joined, predict
from iocast.forecasts.cautions import measured_there, other_placement, outside_bounds
from iocast.forecasts.request import Request, ranks_per_node_of
from iocast.runs.question import Question
from iocast.runs.run_directory import Run
from iocast.study import run_study
from iocast.wording.forecast import forecast_text
from iocast.wording.notes import sentences
from iocast.jobs.workers import Workers

PATTERNS = {
    path.stem: yaml.safe_load(path.read_text())["pattern"]
    for path in sorted((REPOSITORY / "workload" / "catalogue").glob("*.yaml"))
}
WORKLOADS = mostly_long(
    PATTERNS, {pattern: name for name, pattern in PATTERNS.items()}.values(), "a workload of its pattern is forecast"
)


def small(workload: str) -> dict[str, str]:
    """Settings by which it ends in a moment."""
    described = binaries.run_json([binaries.find("iocast-sim"), "--describe", workload, "--json"])
    return dict(one.split("=", 1) for one in settings_arguments((described.get("small") or [""])[0])[1::2])


@pytest.fixture(scope="module")
def lustre() -> Fitted:
    return Fitted.open("lustre")


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_workload_is_forecast_phase_by_phase(lustre: Fitted, workload: str) -> None:
    settings = small(workload)
    answer = predict(lustre, workload, settings, 2, 2)
    run = binaries.simulate("lustre", workload, settings, 2, 2, 0)
    expected = {p["name"] for p in run["phases"] if p["operations"] and not is_beside(p["name"])}
    entries = [answer, *answer["further_phases"]]
    assert {one["phase"] for one in entries} == expected
    assert len(entries) == len(expected) > 0
    for one in entries:
        assert one["question"]["phase"] == one["phase"]
        repeats = [p for p in run["phases"] if p["name"] == one["phase"]]
        seconds, rate = sum(p["seconds"] for p in repeats), one["quantities"]["rate"]["value"]
        assert rate == pytest.approx(
            sum(p["operations"] for p in repeats) / seconds, rel=0.7
        )  # three seeds, and the run is a short one
        assert sum(row["rate"]["value"] for row in one["operations"].values()) == pytest.approx(rate)
        for op, row in one["operations"].items():
            moved = sum(p["by_operation"][op].get("bytes", 0) for p in repeats)
            assert ("bytes_per_second" in row) == (moved > 0) and (op in MOVES_DATA or not moved)
            if moved:
                assert row["bytes_per_second"]["value"] / row["rate"]["value"] == pytest.approx(
                    moved / sum(p["by_operation"][op]["count"] for p in repeats)
                )
    text = forecast_text(answer)
    assert all(f"phase {one['phase']} " in text for one in entries)
    assert text.count(" bandwidth ") == sum(
        "bytes_per_second" in row for one in entries for row in one["operations"].values()
    )


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_analytic_solver_answers_or_says_why_not(lustre: Fitted, workload: str) -> None:
    settings = small(workload)
    try:
        answer = predict(lustre, workload, settings, 2, 2, solver="analytic")
    except InputError as error:
        assert "--solver simulate" in str(error)
        return
    simulated = predict(lustre, workload, settings, 2, 2)
    by_phase = {one["phase"]: one for one in (simulated, *simulated["further_phases"])}
    for one in (answer, *answer["further_phases"]):
        other = by_phase[one["phase"]]["operations"]
        assert set(one["operations"]) == set(other)
        for op, row in one["operations"].items():
            assert row["share"] == pytest.approx(other[op]["share"], rel=0.35, abs=0.02), (
                op
            )  # ranks of an uneven workload do different things
            assert ("bytes_per_second" in row) == ("bytes_per_second" in other[op])


@pytest.fixture
def no_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulations fail."""
    run = binaries.run_json

    def refusing(arguments: list[str], **options: Any) -> Any:
        assert "--platform" not in arguments, "it simulates"
        return run(arguments, **options)

    monkeypatch.setattr(binaries, "run_json", refusing)


@pytest.mark.usefixtures("no_simulation")
@pytest.mark.parametrize("solver", ["simulate", "analytic"])
def test_a_phase_that_is_not_there_is_refused_before_the_simulation(lustre: Fitted, solver: str) -> None:
    with pytest.raises(InputError, match="no phase 'wirte'; name one with --phase. Did you mean 'write'"):
        predict(lustre, "ior-easy", {}, 64, 48, phase="wirte", solver=solver)
    with pytest.raises(InputError, match="per_proces"):
        predict(lustre, "ior-easy", {"per_proces": "1GiB"}, 64, 48, solver=solver)


@pytest.mark.parametrize("key", ["warnings", "basis"])
def test_no_sentence_of_a_further_phase_is_lost(key: str) -> None:
    """Of phases that were fitted apart, each with a forecast of its own."""
    parts = [{"phase": name, "warnings": [], "basis": []} for name in ("write", "read")]
    for one, own in zip(parts, (["Of both."], ["Of both.", "Of the later one."]), strict=True):
        one[key] = own
    place = {"nodes": 1, "ranks_per_node": 1, "ranks": 1}
    assert _joined([one | {"placement": place} for one in parts])[key] == ["Of both.", "read: Of the later one."]


def test_a_named_phase_alone_is_forecast(lustre: Fitted) -> None:
    settings = small("mdtest-hard")
    every = predict(lustre, "mdtest-hard", settings, 1, 2)
    one = predict(lustre, "mdtest-hard", settings, 1, 2, phase="file-stat")
    assert one["further_phases"] == [] and one["phase"] == "file-stat"
    (same,) = [of for of in (every, *every["further_phases"]) if of["phase"] == "file-stat"]
    assert one["quantities"] == same["quantities"]
    cleaning = predict(lustre, "mdtest-hard", settings, 1, 2, phase="tree-remove")
    assert cleaning["phase"] == "tree-remove"
    with pytest.raises(InputError, match="no operations"):
        predict(lustre, "mdtest-hard", settings, 1, 2, phase="file-create-rest")


def test_what_stands_for_a_workload() -> None:
    assert main_phases(["precreate", "benchmark", "benchmark", "cleanup"]) == ["benchmark"]
    assert main_phases(["setup", "precreate+precreate-directories", "benchmark+write", "cleanup+read", "teardown"]) == [
        "benchmark+write",
        "cleanup+read",
    ]
    assert main_phases(["precreate", "cleanup"]) == ["precreate", "cleanup"]
    assert first_phase({"precreate": 900, "write": 10, "read": 11}) == "read"
    assert first_phase({"write": 10, "benchmark": 1}) == "benchmark"
    assert first_phase({"write": 10, "read": 10}) == "write"
    assert Request("w", {}, ["a", "b"]).present({"a": 0, "b": 2}) == ["b"]


# ---- placements ------------------------------------------------------------------------------------------------------


def with_points(*placements: tuple[int, int]) -> Fitted:
    """Fitted to measurements of these nodes and ranks a node."""
    points = [{"nodes": nodes, "ranks": nodes * each} for nodes, each in placements]
    return Fitted(Path("f.yaml"), {"campaign": {"points": points}}, [], [])


@pytest.mark.parametrize(
    ("placements", "each"),
    [([(1, 16), (2, 16), (8, 16)], 16), ([(1, 1), (1, 8)], 8), ([(4, 1), (8, 1)], 1), ([], 1), ([(2, 16), (8, 4)], 16)],
)
def test_ranks_a_node_are_those_of_the_largest_measurement(placements: list[tuple[int, int]], each: int) -> None:
    assert ranks_per_node_of(with_points(*placements)) == each


@pytest.mark.parametrize(
    ("placements", "requested", "says"),
    [
        ([(1, 16), (2, 16), (8, 16)], (32, 16), ""),
        ([(1, 16), (2, 16), (8, 16)], (32, 1), "1 rank a node was not measured; 16"), ([(1, 1), (1, 8)], (1, 64), ""),
        ([(1, 1), (1, 8)], (4, 8), "ran on one node"), ([(1, 1), (4, 8)], (64, 4), ""),
        ([(1, 1), (4, 8)], (64, 16), "16 ranks a node"), ([], (5, 5), ""),
        ([(10, 60), (40, 26)], (48, 26), "differ in nodes and in ranks a node at once"),
    ],
)  # fmt: skip
def test_a_placement_of_a_kind_never_measured_is_warned_of(
    placements: list[tuple[int, int]], requested: tuple[int, int], says: str
) -> None:
    found = sentences(other_placement(with_points(*placements), *requested))
    assert (says in found[0]) if says else (found == [])


@pytest.mark.parametrize(("rate", "says"), [(50, ""), (37, "below"), (85, "above"), (39, ""), (81, "")])
def test_a_forecast_outside_the_bounds_beside_it_says_so(rate: float, says: str) -> None:
    answer = {
        "phase": "benchmark",
        "baselines": {"asymptotic bounds": {"rate": {"low": 40, "high": 80}}},
        "quantities": {"rate": {"value": rate, "low": None, "high": None}},
    }
    place: Any = {"nodes": 1, "ranks_per_node": 1, "ranks": 1}
    found = sentences(outside_bounds([answer], place))
    assert (f", {says} 40.0 /s to 80.0 /s" in found[0]) if says else (found == [])
    assert len(outside_bounds([answer] * 3, place)) == len(found), "one sentence for all phases"
    answer["quantities"]["rate"] |= {"low": rate / 2000, "high": rate * 2000}
    assert not any(f"{rate:.1f}" in one for one in sentences(outside_bounds([answer], place))), "the tables withhold it"


@pytest.mark.parametrize(
    ("placement", "factor", "given", "edits", "says"),
    [
        ((4, 16), 0.0, {}, [], "file-create did 38.0 k/s at 4x16"),
        ((4, 16), 0.0, {"file_size": "4KiB", "waiting_factor": "0"}, [], "38.0 k/s"),
        ((4, 16), 2.0, {"waiting_factor": "2"}, [], "21.0 k/s"),
        ((4, 16), 0.0, {"file_size": "8KiB"}, [], ""), ((4, 16), 0.0, {"shared": "true"}, [], ""),
        ((4, 16), 1.0, {"waiting_factor": "1"}, [], ""), ((4, 16), 0.0, {"think_time": "1ms"}, [], ""),
        ((4, 16), 0.0, {}, [("stations.server.servers", 2)], ""), ((8, 8), 0.0, {}, [], ""), ((3, 16), 0.0, {}, [], ""),
        ((2, 16), 0.0, {}, [], "24.5 k/s at 2x16; take"),
        ((5, 16), 0.0, {}, [], "40.0 k/s with 80 ranks; if it was on as many nodes, take"),
    ],
)  # fmt: skip
def test_a_forecast_of_a_measured_scale_says_what_was_measured(
    placement: tuple[int, int], factor: float, given: dict[str, str], edits: list[Any], says: str
) -> None:
    """And only one of the same system, placement and settings."""
    rates = {(2, 16, 0.0): 24.5e3, (4, 16, 0.0): 38e3, (4, 16, 2.0): 21e3}
    points: list[dict[str, Any]] = [
        {"nodes": nodes, "ranks": nodes * each, "waiting_factor": waits, "rate": rate}
        for (nodes, each, waits), rate in rates.items()
    ]
    points.append({"nodes": None, "ranks": 80, "waiting_factor": 0.0, "rate": 40e3})
    workload = {"name": "mdtest", "pattern": "none of iocast's", "parameters": {"file_size": 4096}}
    campaign = {"points": points, "workload": workload, "phase": "file-create"}
    nodes, each = placement
    answer = {
        "phase": "file-create",
        "placement": {"nodes": nodes, "ranks_per_node": each, "ranks": nodes * each},
        "quantities": {"rate": {"value": 36.5e3}},
    }
    parameters = {"file_size": "4KiB", "waiting_factor": factor} | given
    question = Question.of(workload | {"parameters": parameters}, answer["placement"], "file-create")
    found = sentences(measured_there(Fitted(Path("f.yaml"), {"campaign": campaign}, [], edits), answer, question))
    assert says in found[0] if says else not found


@pytest.mark.parametrize("operation", ["create", "stat", "remove"])
def test_an_operation_for_a_phase_means_that_of_files(operation: str) -> None:
    names = [f"{kind}-{operation}" for kind in ("tree", "directory", "file")]
    with pytest.raises(InputError, match=f"Did you mean 'file-{operation}'"):
        check_phase(operation, names, "mdtest", lambda: {name: [operation] for name in names})


def test_an_operation_for_a_phase_is_answered_with_its_phase(lustre: Fitted, tmp_path: Path) -> None:
    """Phases of set-up that do it too are not meant."""
    small = {"datasets": "1", "objects": "2", "iterations": "2"}
    run = tmp_path / "run"
    arguments = settings_arguments(" ".join(f"{name}={value}" for name, value in small.items()))
    command = [binaries.find("iocast-sim"), "--platform", "lustre", "--workload", "md-workbench", "--out", str(run)]
    subprocess.run([*command, *arguments], check=True, capture_output=True)
    study = changed(workloads={"mix": {"workload": "md-workbench", "settings": small, "phase": "create"}})
    asking: list[Callable[[], Any]] = [
        lambda: predict(lustre, "md-workbench", small, 2, 2, phase="create"),
        lambda: Run(run, "create"),
        lambda: forecast([run], [4], tmp_path / "out", phase="create", report=lambda *_: None),
        lambda: run_study(write(tmp_path, study), tmp_path / "study", Workers(1), lambda *_: None, []),
    ]
    for ask in asking:
        with pytest.raises(InputError, match="'create' is an operation of the phase benchmark; name that phase. Allow"):
            ask()


def test_bits_are_taken_for_links(simulator: Path, tmp_path: Path) -> None:
    def resolved(bandwidth: str) -> Any:
        file = tmp_path / "p.yaml"
        file.write_text(f"schema_version: 1\nextends: lustre\nnetwork: {{node_bandwidth: {bandwidth}}}\n")
        return binaries.resolve_platform(file)["network"]

    assert resolved("100Gbit/s") == resolved("100Gb/s") == resolved("12.5GB/s") != resolved("100GB/s")

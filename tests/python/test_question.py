# SPDX-License-Identifier: Apache-2.0
"""A forecast and a measurement are matched by their question: by meaning, not by spelling, and by all of it."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from programs import REPOSITORY

from iocast.runs.earlier import Earlier
from iocast.errors import InputError
from iocast.ground import binaries
from iocast.ground.binaries import as_settings
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict, predict_planned
from iocast.runs.question import Placement, Question, Setting
from iocast.runs.run_directory import find_runs, group

PARAMETERS = {
    "datasets": 10, "objects": 1000, "iterations": 200, "object_size": 3901, "most_seconds": 5.0, "read_only": False,
    "start_index": 0, "repeats": 1,
    "waiting_factor": 0.0, "phases": "benchmark", "think_time": 0.0005, "rate": 0.0,
}  # fmt: skip
WORKLOAD = {"name": "md-workbench", "pattern": "md-workbench", "parameters": PARAMETERS}
PLACE = {"ranks": 32, "nodes": 1, "ranks_per_node": 32}
QUESTION = Question.of(WORKLOAD, PLACE, "benchmark")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5s", "5.0s"), ("5s", "5000ms"), (5.0, "5s"), ("3901B", 3901), ("4KiB", "4096B"), ("4KiB", 4096),
        ("4kB", "4000 B"), ("1min", "60s"), ("100/s", "6000/min"), ("1e3", 1000), (True, "true"),
        ("yes", True), ("0", "0s"), ("0.1s", "100ms"), ("2g", "2GiB"), ("fixed", "fixed"),
    ],
)  # fmt: skip
def test_settings_are_equal_by_meaning(one: Any, other: Any) -> None:
    assert Setting.read(one) == Setting.read(other)
    assert hash(Setting.read(one)) == hash(Setting.read(other))
    assert Setting.read(Setting.read(one).document()) == Setting.read(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5s", "5ms"),
        ("4KiB", "4kB"),
        (True, False),
        ("fixed", "exponential"),
        ("10", "10.1"),
        ("0:0B,1:2KiB", "0:0B,1:4KiB"),
        ("100/s", "100/min"),
    ],
)
def test_settings_that_differ_are_not_equal(one: Any, other: Any) -> None:
    assert Setting.read(one) != Setting.read(other)


def test_spelling_order_and_names_do_not_change_a_question() -> None:
    spelled = {
        "object_size": "3901B",
        "most_seconds": "5000ms",
        "think_time": "500us",
        "read_only": "false",
        "waiting_factor": "0",
        "iterations": "2e2",
        "repeats": 3,
        "phases": "precreate,benchmark",
    }
    names = list(PARAMETERS)
    random.Random(1).shuffle(names)
    other = Question.of(
        {
            "name": "my copy",
            "pattern": "md-workbench",
            "parameters": {name: spelled.get(name, PARAMETERS[name]) for name in names},
        },
        PLACE,
        "benchmark",
    )
    assert other == QUESTION
    assert hash(other) == hash(QUESTION)
    assert QUESTION.differences(other) == []
    assert Question.read(json.loads(json.dumps(QUESTION.document()))) == QUESTION


def changed_questions() -> list[tuple[str, Question]]:
    """A question for each thing that makes it another one, and the word by which the difference is named."""
    found = [
        (name, Question.of(WORKLOAD | {"parameters": PARAMETERS | {name: value}}, PLACE, "benchmark"))
        for name, value in (
            ("datasets", 11),
            ("object_size", "4KiB"),
            ("read_only", True),
            ("think_time", "1s"),
            ("rate", "5/s"),
        )
    ]
    found.append(
        (
            "waiting factor 4",
            Question.of(WORKLOAD | {"parameters": PARAMETERS | {"waiting_factor": 4}}, PLACE, "benchmark"),
        )
    )
    found.append(
        ("workload postmark", Question.of(WORKLOAD | {"pattern": "postmark", "name": "postmark"}, PLACE, "benchmark"))
    )
    found.append(("definition", Question.of(WORKLOAD | {"application": {"phases": []}}, PLACE, "benchmark")))
    found.append(
        ("placement 32 x 1", Question.of(WORKLOAD, {"ranks": 32, "nodes": 32, "ranks_per_node": 1}, "benchmark"))
    )
    found.append(
        ("placement 1 x 16", Question.of(WORKLOAD, {"ranks": 16, "nodes": 1, "ranks_per_node": 16}, "benchmark"))
    )
    found.append(("phase precreate", Question.of(WORKLOAD, PLACE, "precreate")))
    return found


@pytest.mark.parametrize(("named", "other"), changed_questions(), ids=[name for name, _ in changed_questions()])
def test_whatever_changes_a_question_is_named(named: str, other: Question) -> None:
    assert other != QUESTION
    assert not other.answers(QUESTION)
    (difference,) = other.differences(QUESTION)
    assert named in difference


@pytest.mark.parametrize(("name", "value"), [("objects", 10), ("iterations", 20), ("most_seconds", "6s")])
def test_the_length_of_a_run_does_not_change_a_question(name: str, value: Any) -> None:
    longer = Question.of(WORKLOAD | {"parameters": PARAMETERS | {name: value}}, PLACE, "benchmark")
    assert longer.answers(QUESTION) and QUESTION.is_of_workload(longer)


def test_a_platform_fitted_to_rates_alone_knows_no_settings() -> None:
    rates_alone = Question.of(WORKLOAD, PLACE, "benchmark", settings_known=False)
    assert rates_alone.answers(QUESTION)
    assert not rates_alone.answers(Question.of(WORKLOAD, PLACE, "precreate"))


def test_nested_parameters_count() -> None:
    mix = {"name": "m", "pattern": "mix", "parameters": {"mail": {"files": 5, "start": 7, "waiting_factor": 1}}}
    requested = Question.of(mix, PLACE, "benchmark")
    assert dict(requested.settings or ()) == {"mail.files": Setting(5.0), "mail.waiting_factor": Setting(1.0)}


def test_a_question_without_nodes_can_be_written() -> None:
    assert Placement.read({"ranks": 4}).document() == {"ranks": 4, "nodes": None, "ranks_per_node": None}


# ---- forecasts made earlier ------------------------------------------------------------------------------------------

HASH = "a" * 64


def forecast(question: Question = QUESTION, **more: Any) -> dict[str, Any]:
    return {
        "schema_version": 1, "kind": "forecast", "label": "earlier",
        "platform": {"file": "fitted.yaml", "content_hash": HASH, "edits": {}}, "level": 0.9,
        "made_at": "2026-01-01T00:00:00.000Z",
        "question": question.document(), **more,
    }  # fmt: skip


def run_directory(
    path: Path, parameters: dict[str, Any], started: str | None = None, place: dict[str, int] = PLACE, **more: Any
) -> Path:
    path.mkdir(parents=True)
    phase = {
        "name": "benchmark",
        "repeat": 0,
        "seconds": 1.0,
        "operations": 10,
        "errors": 0,
        "rate": 10.0,
        "latency": {},
    }
    content = {
        "schema_version": 1,
        "kind": "run",
        "source": "bench",
        "status": "complete",
        "seed": 0,
        "workload": WORKLOAD | {"parameters": parameters},
        "placement": place,
        "phases": [phase],
    }
    (path / "run.json").write_text(json.dumps(content | ({"started": started} if started else {}) | more))
    (path / "latency.hlog").write_text("")
    return path


@pytest.mark.parametrize(
    "other", [other for _, other in changed_questions()], ids=[name for name, _ in changed_questions()]
)
def test_a_forecast_of_another_question_is_refused(tmp_path: Path, other: Question) -> None:
    points = group(find_runs([run_directory(tmp_path / "run", PARAMETERS)])[0])
    with pytest.raises(InputError, match="answers another question") as refusal:
        Earlier.of_document(forecast(other)).of(points)
    assert all(difference in str(refusal.value) for difference in other.differences(points[0].question))


def test_a_forecast_is_found_however_its_settings_are_spelled(tmp_path: Path) -> None:
    points = group(find_runs([run_directory(tmp_path / "run", PARAMETERS)])[0])
    spelled = forecast()
    spelled["question"]["settings"] |= {"object_size": "3901B", "most_seconds": "5s"}
    assert [point for point, _ in Earlier.of_document(spelled).of(points)] == points


def test_settings_that_another_tool_does_not_state_are_the_workloads_defaults(tmp_path: Path) -> None:
    """Results of other tools are fitted so; a forecast with another value than the default has another question."""
    stated = {"datasets": 1, "objects": 40, "iterations": 20, "object_size": 3901, "waiting_factor": 0.0}
    points = group(find_runs([run_directory(tmp_path / "run", stated, source="imported")])[0])
    settings = {name: str(value) for name, value in stated.items()} | {"object_size": "3901B"}
    for other, refused in (
        ({}, False),
        ({"think_time": "1ms"}, True),
        ({"objects": "50"}, False),
        ({"datasets": "2"}, True),
    ):
        made = predict(Fitted.open("lustre"), "md-workbench", settings | other, 1, 32, solver="analytic")
        if refused:
            with pytest.raises(InputError, match=f"in: {next(iter(other))} .*, not [0-9s ]+\\.$"):
                Earlier.of_document(made).of(points)
        else:
            assert [point for point, _ in Earlier.of_document(made).of(points)] == points
    more = group(find_runs([run_directory(tmp_path / "more", stated | {"fsync": True}, source="imported")])[0])
    with pytest.raises(InputError, match="in: fsync not set, not true"):  # which no workload of iocast's knows
        Earlier.of_document(predict(Fitted.open("lustre"), "md-workbench", settings, 1, 32, solver="analytic")).of(more)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"platform": {"file": "other.yaml", "content_hash": "b" * 64, "edits": {}}}, "another platform"),
        (
            {"platform": {"file": "f", "content_hash": "b" * 64, "edits": {"stations.cpu.servers": 4}}},
            "stations.cpu.servers",
        ),
        ({"level": 0.5}, "--level 0.5"),
    ],
)
def test_a_forecast_of_another_platform_or_level_is_refused(change: dict[str, Any], says: str) -> None:
    Earlier.of_document(forecast()).check(HASH, 0.9)
    with pytest.raises(InputError, match=says):
        Earlier.of_document(forecast(**change)).check(HASH, 0.9)


@pytest.mark.parametrize("key", ["question", "made_at"])
def test_a_forecast_that_can_not_be_checked_is_refused(tmp_path: Path, key: str) -> None:
    document = forecast()
    del document[key]
    (tmp_path / "old.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="earlier version"):
        Earlier.open(tmp_path / "old.json")
    (tmp_path / "damaged.json").write_text(json.dumps(forecast() | {"question": {"workload": {}}}))
    with pytest.raises(InputError, match="damaged"):
        Earlier.open(tmp_path / "damaged.json")


@pytest.mark.parametrize(
    ("started", "before"),
    [
        ("2026-01-01T00:00:00.001Z", True),
        ("2025-12-31T23:59:59.999Z", False),
        ("2026-01-01T01:00:00+00:00", True),
        (None, None),
        ("yesterday", None),
    ],
)
def test_made_before_the_measurement_is_checked(tmp_path: Path, started: str | None, before: bool | None) -> None:
    (point,) = group(find_runs([run_directory(tmp_path / "run", PARAMETERS, started)])[0])
    assert Earlier.of_document(forecast()).made(point)["before_measurement"] is before


def test_all_runs_of_a_point_must_be_later(tmp_path: Path) -> None:
    runs = [
        run_directory(tmp_path / f"r{i}", PARAMETERS, started, seed=i)
        for i, started in enumerate(("2026-02-01T00:00:00Z", "2025-02-01T00:00:00Z"))
    ]
    (point,) = group(find_runs(runs)[0])
    assert Earlier.of_document(forecast()).made(point)["before_measurement"] is False


# ---- points ----------------------------------------------------------------------------------------------------------


def campaign(path: Path, points: dict[str, str]) -> Path:
    """One with runs of these names and roles."""
    for name in points:
        run_directory(path / "runs" / name, PARAMETERS, seed=len(name) + ord(name[-1]))
    planned = [
        {"name": name, "nodes": 1, "ranks_per_node": 32, "settings": {}, "role": role, "status": "complete"}
        for name, role in points.items()
    ]
    (path / "campaign.json").write_text(json.dumps({"schema_version": 1, "kind": "campaign", "points": planned}))
    return path


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_fit_runs_and_check_runs_of_a_placement_are_two_points(tmp_path: Path, order: tuple[str, str]) -> None:
    made = {"a": campaign(tmp_path / "a", {"n8-r1": "fit"}), "b": campaign(tmp_path / "b", {"n8-r2": "check"})}
    points = group(find_runs([made[name] for name in order])[0])
    assert [(point.role, [run.path.name for run in point.runs]) for point in points] == [
        ("fit", ["n8-r1"]),
        ("check", ["n8-r2"]),
    ]


TUTORIAL = REPOSITORY / "examples" / "tutorial" / "fitted.yaml"


def planned(fitted: Fitted, directory: Path, workload: str, *runs: dict[str, Any]) -> dict[str, Any]:
    """Forecasts of a campaign's planned runs, each with the name of its file."""
    directory.mkdir(exist_ok=True)
    point = {"name": "n2-r1", "nodes": 1, "ranks_per_node": 2, "role": "check", "status": "planned"}
    document = {"schema_version": 1, "kind": "campaign", "workload": workload, "points": [point | one for one in runs]}
    (directory / "campaign.json").write_text(json.dumps(document))
    return {path.stem: made for path, made in predict_planned(fitted, directory, directory / "out")}


def fitted_with(file: Path, phases: tuple[str, ...] = (), **parameters: Any) -> Fitted:
    """The tutorial's platform as if its campaign had had these parameters, fitted to further phases as well."""
    document = yaml.safe_load(TUTORIAL.read_text())
    own = document["fitted"]
    own["campaign"]["workload"]["parameters"] |= parameters
    further = {
        phase: {
            "platform": {"demands": document["demands"]},
            "fitted": {**own, "campaign": {**own["campaign"], "phase": phase}},
        }
        for phase in phases
    }
    file.write_text(yaml.safe_dump(document | {"fitted": {**own, "further_phases": further}} if phases else document))
    return Fitted.open(str(file))


@pytest.mark.parametrize(
    ("workload", "settings", "phases"),
    [
        ("md-workbench", {"datasets": 1, "objects": 5, "iterations": 3}, ["benchmark"]),
        ("mdtest", {"items": 5, "files_only": True, "phases": "create,stat"}, ["file-create", "file-stat"]),
    ],
)
def test_a_planned_point_is_forecast_with_its_campaigns_workload(
    workload: str, settings: dict[str, Any], phases: list[str], tmp_path: Path
) -> None:
    """Whichever the platform was fitted to, and as it is forecast by name."""
    fitted = Fitted.open(str(TUTORIAL))
    (made,) = planned(fitted, tmp_path, workload, {"settings": settings}).values()
    assert [made["phase"], *(one["phase"] for one in made.get("further_phases", []))] == phases
    named = predict(fitted, workload, as_settings(settings), 1, 2)
    assert (made["question"], made["quantities"]) == (named["question"], named["quantities"])


@pytest.mark.parametrize("workload", ["md-workbench", "md-workbench-large"])
def test_a_planned_point_is_forecast_with_the_settings_that_it_will_have(workload: str, tmp_path: Path) -> None:
    """A campaign knows nothing of the calibration's settings: what it leaves out is the workload's own."""
    fitted = fitted_with(tmp_path / "fitted.yaml", object_size=65536, datasets=3, offset=2)
    settings = {"objects": 5, "iterations": 5}
    (made,) = planned(fitted, tmp_path, workload, {"settings": settings}).values()
    resolved = binaries.resolve_workload(workload, settings, 1, 2)["workload"]
    own = Question.of(resolved, made["placement"], "benchmark")
    assert not own.differences(Question.read(made["question"])), made["question"]


def test_of_the_fitted_phases_those_of_the_campaign_are_forecast(tmp_path: Path) -> None:
    fitted = fitted_with(tmp_path / "fitted.yaml", ("precreate",))
    size = {"datasets": 1, "objects": 5, "iterations": 3}
    for phases in (["benchmark", "precreate"], ["precreate"], ["benchmark"]):
        run = {"settings": size | {"phases": ",".join(sorted(phases, reverse=True))}}
        (made,) = planned(fitted, tmp_path, "md-workbench", run).values()
        assert [made["phase"], *(one["phase"] for one in made["further_phases"])] == phases
    with pytest.raises(InputError, match="has no phase 'benchmark'"):
        planned(fitted, tmp_path, "md-workbench", {"settings": size | {"phases": "cleanup"}})


def test_steps_on_one_data_set_are_forecast_in_files_of_their_own(tmp_path: Path) -> None:
    """Also of a step whose name ends as those of repeats do."""
    runs = [
        {
            "name": f"n2-r{repeat}-{step}",
            "group": f"n2-r{repeat}",
            "step": step,
            "settings": {"datasets": 1, "objects": 5, "iterations": iterations},
        }
        for repeat in (1, 2)
        for step, iterations in (("first", 2), ("second-r1", 3))
    ]
    made = planned(Fitted.open(str(TUTORIAL)), tmp_path, "md-workbench", *runs)
    assert {name: one["question"]["settings"]["iterations"] for name, one in made.items()} == {
        "n2-first": 2,
        "n2-second-r1": 3,
    }


def test_each_phase_says_what_nothing_measured(tmp_path: Path) -> None:
    fitted = fitted_with(tmp_path / "fitted.yaml", ("precreate",), object_size=0)
    answer = predict(fitted, None, {"object_size": "4KiB", "datasets": "1", "objects": "5", "iterations": "3"}, 1, 2)
    every = [answer, *answer["further_phases"]]
    assert [one["phase"] for one in every] == ["benchmark", "precreate"]
    for one in every:
        assert one["rests_on"]["create"] and one["quantities"]["rate"]["low"] is None


def test_order_and_names_of_runs_do_not_matter(tmp_path: Path) -> None:
    runs = [
        run_directory(tmp_path / f"r{i}", PARAMETERS | ({"most_seconds": "5000ms"} if i else {}), seed=i)
        for i in range(4)
    ]
    one = group(find_runs(runs)[0])
    renamed = [path.rename(tmp_path / name) for path, name in zip(runs, "dbca", strict=True)]
    other = group(find_runs(renamed[::-1])[0])
    assert (
        [[run.json["seed"] for run in point.runs] for point in one]
        == [[run.json["seed"] for run in point.runs] for point in other]
        == [[0, 1, 2, 3]]
    )


def test_a_platforms_hash_is_of_its_content(tmp_path: Path) -> None:
    base, file = tmp_path / "base.yaml", tmp_path / "platform.yaml"
    base.write_text("schema_version: 1\nextends: local\nstations: {cpu: {servers: 4, quantum: 5ms}}\n")
    file.write_text("schema_version: 1\nextends: base.yaml\ndescription: one\n")
    first = Fitted.open(str(file)).content_hash()
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "under.yaml").write_text(
        "# a comment\nschema_version: 1\nstations: {cpu: {quantum: 5ms, servers: 4}}\nextends: local\nsource:"
        " elsewhere\n"
    )
    (moved / "other.yaml").write_text("description: another\nextends: under.yaml\nschema_version: 1\n")
    assert Fitted.open(str(moved / "other.yaml")).content_hash() == first
    assert Fitted.open(str(file), [("stations.cpu.servers", 8)]).content_hash() != first
    base.write_text(base.read_text().replace("servers: 4", "servers: 5"))
    assert Fitted.open(str(file)).content_hash() != first

# SPDX-License-Identifier: Apache-2.0
"""A changed question changes the answer: a sample of validation/changed, and what reports and exports make of files
whose numbers were multiplied by 100."""

import copy
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import test_report_phases as inputs
import yaml
from programs import REPOSITORY
from schedule import mostly_long
from study_inputs import SMALL, write

from iocast.platforms.content import whole
from iocast.errors import InputError
from iocast.export import rows_of
from iocast.report.figures import all_figures
from iocast.report.sources import read_sources
from iocast.report.story import tell
from iocast.report.tables import all_tables
from iocast.study import run_study
from iocast.jobs.workers import Workers

Path_ = tuple[Any, ...]
FIGURES = all_figures()


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(REPOSITORY / "validation" / "changed"))
    import changed

    yield changed
    for name in ("changed", "files"):
        sys.modules.pop(name, None)


def test_a_platforms_values_move_its_answers(changed: Any, simulator: Path) -> None:
    with changed.Asker() as asker:
        found = changed.changed_platform(asker, "local", whole({"extends": "local"}), slice(2, None, 15))
    assert len(found) > 4 and any(not change.refused for change in found)
    assert not [change for change in found if not change.noticed]


def test_a_workloads_values_move_its_answers(changed: Any, simulator: Path) -> None:
    with changed.Asker() as asker:
        for name in ("postmark", "hpcs-01"):
            document = yaml.load(
                (REPOSITORY / "workload" / "catalogue" / f"{name}.yaml").read_text(), Loader=yaml.BaseLoader
            )
            found = changed.changed_workload(asker, name, document)
            assert found and not [change for change in found if not change.noticed]


def test_every_value_of_a_campaign_changes_its_plan(changed: Any) -> None:
    with changed.Asker() as asker:
        found = changed.campaigns(asker, [])
    assert len(found) > 40
    assert not [change for change in found if not change.noticed]


@pytest.mark.parametrize(
    ("kind", "sample", "verbs"),
    mostly_long(
        [("runs", 40, None), ("forecasts", 60, None), ("fitted", 70, 2)],
        [("runs", 40, None), ("fitted", 70, 2)],
        "a report shows all of a forecast",
    ),
)
def test_values_of_written_files_change_what_verbs_answer(
    kind: str,
    sample: int,
    verbs: int | None,
    changed: Any,
    fitted: Path,
    simulate: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    import files

    runs = [tmp_path / f"n8-{seed}" for seed in (1, 2)]
    for seed, run in enumerate(runs):
        settings = [f"--set={key}={value}" for key, value in files.SETTINGS.items()]
        simulate("local", "--ppn", "8", "--seed", str(seed), *settings, "--out", run)
    platform = shutil.copy(fitted, tmp_path / "fitted.yaml")
    given = files.inputs(tmp_path, platform, [], runs)
    found = files.changed_file(files.FILES[kind](given), slice(5, None, sample), verbs)
    assert len(found) > 3
    assert not [change for change in found if not change.noticed]


def test_what_changes_nothing_is_seen(changed: Any, simulator: Path) -> None:
    """A demand that no route uses, and a number that is set to itself."""
    document = whole({"extends": "queue"})
    document["demands"]["nobody"] = "5ms"
    place = [path for path, _ in changed.values(document)].index(("demands", "nobody"))
    with changed.Asker() as asker:
        (change,) = changed.changed_platform(asker, "queue", document, slice(place, place + 1), changed.QUESTIONS[:1])
    assert not change.noticed or "nobody" in change.refused


# Studies --------------------------------------------------------------------------------------------------------------

STUDY_CHANGES: list[tuple[Path_, Any]] = [
    (("platform",), "mistral"),
    (("confidence",), 0.5),
    (("workloads", "mix", "settings", "objects"), 21),
    (("workloads", "mix", "weight"), 3),
    (("scales", "few", "nodes"), 3),
    (("scales", "many", "ranks_per_node"), 8),
    (("axes", "servers", "two", "edit", "stations.mds.servers"), 3),
    (("axes", "servers", "two", "parts", "core"), 5),
    (("axes", "speed", "fast", "edit", "stations.mds.speed", "times"), 3.0),
    (("base", "chassis"), 2),
    (("currency",), "USD"),
    (("parts", "core", "price"), 1500),
    (("parts", "core", "watts"), 90),
    (("parts", "chassis", "rack_units"), 4),
    (("levels", 0), "rate(create) >= 9k/s"),
    (("levels", 1), "p95(stat) < 800 us"),
    (("uncertainty", "service times", "factor"), 3.0),
    (("uncertainty", "service times", "paths"), ["demands.make"]),
    (("search", "replications"), 8),
    (("exclude",), [{"servers": "one"}]),
    (("limits",), {"budget": 6500}),
    (("running",), {"years": 5, "price_per_kwh": 0.3}),
    (("model_error",), {"rate": 1.5, "q95": 1.5, "source": "made up"}),
    (("measurements",), {"a pilot": {"tells": "service times", "price": 10, "leaves": 1.1}}),
    (("scenarios",), {"slow": {"edit": {"stations.mds.speed": 0.5}}}),
]
"""By the way to a key of the small study, another value. Each adds or changes one thing."""
ECHOES = ("study", "file", "command", "programs", "title", "question", "search")
"""Parts of an answer that repeat the question, or say how it was found."""
WITHOUT_A_LEVEL = {
    ("workloads", "mix", "weight"): "a study of one workload has nothing to weigh",
    ("scenarios",): "no level is about it",
}


def answer(directory: Path, study: dict[str, Any], store: Path) -> Any:
    """Numbers of the answer without echoes, or the refusal. All share a store, so that only what a change touches is
    simulated."""
    file = write(directory, study)
    try:
        with Workers(1) as workers:
            shown = run_study(file, store, workers, lambda *_: None, [])
    except InputError as error:
        return str(error)
    return {key: value for key, value in shown.items() if key not in ECHOES}


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A store, and the answer of the small study, which has one run of each thing to spare."""
    directory = tmp_path_factory.mktemp("changed")
    return directory, answer(directory, small(), directory / "store")


def small() -> dict[str, Any]:
    study = copy.deepcopy(SMALL)
    study["search"] = {"replications": 4, "simulate": 2}
    return study


def with_value(study: dict[str, Any], path: Path_, value: Any) -> dict[str, Any]:
    here: Any = study
    for key in path[:-1]:
        here = here.setdefault(key, {}) if isinstance(here, dict) else here[key]
    here[path[-1]] = value
    return study


@pytest.mark.parametrize(
    ("path", "value"), STUDY_CHANGES[9::2], ids=lambda v: "-".join(map(str, v)) if isinstance(v, tuple) else ""
)
def test_a_studys_keys_change_its_answer(path: Path_, value: Any, answered: tuple[Path, Any], tmp_path: Path) -> None:
    store, before = answered
    after = answer(tmp_path, with_value(small(), path, value), store / "store")
    assert (after == before) == (path in WITHOUT_A_LEVEL), path


def test_a_studys_keys_may_come_in_any_order_and_be_described_otherwise(
    answered: tuple[Path, Any], tmp_path: Path
) -> None:
    store, before = answered
    study = {key: small()[key] for key in reversed(small())} | {"title": "Another title"}
    assert answer(tmp_path, study, store / "store") == before


# Files ----------------------------------------------------------------------------------------------------------------

NOT_SHOWN = {
    "schema_version": "the format's version",
    "mean": "reports show quantiles", "min": "reports show quantiles", "q25": "reports show quantiles",
    "q75": "of runs, reports show the median and the tail",
    "q95": "of runs, reports show the median and the tail", "q999": "of runs, reports show the median and the tail",
    "max": "of runs, reports show the median and the tail",
    "count": "operations are shown by phase", "level": "in the words of a forecast without a check",
    "seconds": "beside the rate it says the same",
    "start_seconds": "of figures that need a timeline",
    "ranks_per_node": "nodes and ranks say it",
}  # fmt: skip
"""Numbers of run directories and forecasts that a report doesn't show, with the reason."""


def numbers(content: Any, path: Path_ = ()) -> Iterator[Path_]:
    """The way to every number that is not zero."""
    if isinstance(content, dict | list):
        for key, value in content.items() if isinstance(content, dict) else enumerate(content):
            yield from numbers(value, (*path, key))
    elif isinstance(content, int | float) and not isinstance(content, bool) and content:
        yield path


def hundredfold(file: Path, path: Path_, read: Callable[[str], Any], dump: Callable[[Any], str]) -> None:
    document = read(file.read_text())
    here = document
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] *= 100
    file.write_text(dump(document))


def reported(sources: list[Path]) -> Any:
    """All that a report shows but hashes and places of files; or the refusal."""
    try:
        read = read_sources(sources)
        shown = tell(read)
        tables = {table.name: table.rows for table in all_tables(read)}
        return {
            "story": (
                shown.headline,
                shown.grids,
                shown.changes,
                shown.paragraphs,
                shown.cards,
                shown.warnings,
                shown.summary,
            ),
            "tables": tables,
            "figures": {f.name: f.data(read) for f in FIGURES},
        }
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("which", ["run", "forecast", "platform"])
def test_a_number_times_100_does_not_pass_unnoticed_through_a_report(which: str, tmp_path: Path) -> None:
    runs = [inputs.run(tmp_path / f"n{ranks}", ranks, ["file-create"]) for ranks in (32, 128)]
    forecast = inputs.forecast(tmp_path / "f.json", "file-create", 256)
    platform = inputs.platform(tmp_path / "p.yaml", "file-create")
    file = {"run": runs[0] / "run.json", "forecast": forecast, "platform": platform}[which]
    read, dump = (yaml.safe_load, yaml.safe_dump) if which == "platform" else (json.loads, json.dumps)
    sources, text = [*runs, forecast, platform], file.read_text()
    before = reported(sources)
    unnoticed = []
    places = list(numbers(read(text)))
    for path in places:
        hundredfold(file, path, read, dump)
        if reported(sources) == before:
            unnoticed.append(path)
        file.write_text(text)
    assert len(places) > 5
    assert not [path for path in unnoticed if path[-1] not in NOT_SHOWN], unnoticed


def test_a_number_times_100_does_not_pass_unnoticed_through_an_export(tmp_path: Path) -> None:
    run = inputs.run(tmp_path / "run", 32, ["file-create"])
    text = (run / "run.json").read_text()
    before = list(rows_of(run))
    for path in numbers(json.loads(text)["phases"]):
        if path[1] not in ("latency", "stations"):
            hundredfold(run / "run.json", ("phases", *path), json.loads, json.dumps)
            assert list(rows_of(run)) != before, path
            (run / "run.json").write_text(text)


def test_the_order_and_names_of_sources_do_not_change_a_report(tmp_path: Path) -> None:
    runs = [inputs.run(tmp_path / f"n{ranks}", ranks, list(inputs.RATES)) for ranks in (32, 64, 128)]
    sources = [
        *runs,
        inputs.forecast(tmp_path / "f.json", "file-create", 1024),
        inputs.platform(tmp_path / "p.yaml", "file-create"),
    ]
    before, after = reported(sources), reported(sources[::-1])
    assert before == after
    moved = shutil.copytree(tmp_path, tmp_path / "moved", ignore=lambda *_: ["moved"])
    assert reported([moved / source.relative_to(tmp_path) for source in sources]) == before

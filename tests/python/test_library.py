# SPDX-License-Identifier: Apache-2.0
"""`import iocast`: the verbs of the command line as calls. What a call returns is what the command prints."""

import contextlib
import doctest
import importlib
import io
import json
import pkgutil
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from programs import REPOSITORY

import iocast
from iocast import api
from iocast.api.answer import Answer
from iocast.api.knee import Knee
from iocast.api.study import Study
from iocast.errors import RunError

Command = Callable[..., CompletedProcess[str]]
CIRRUS = "examples/first-forecast/cirrus.csv"
SMALL = {"datasets": 1, "iterations": 10, "objects": 10}
NOTEBOOKS = REPOSITORY / "examples" / "notebooks"
PAGES = ("README.md", "docs/library.md")


@pytest.fixture(name="command_line")
def _command_line(request: pytest.FixtureRequest) -> Command:
    found: Command = request.getfixturevalue("iocast")
    return found


@pytest.fixture(autouse=True)
def from_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


def test_importing_loads_no_call() -> None:
    """What it loads more than Python itself: no module of iocast beside the first, and no library."""
    code = "import sys; before = set(sys.modules); import iocast; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names] == ["iocast"]


def test_commands_load_what_they_compute_with_when_they_compute() -> None:
    """Each call of `iocast`, --help and --version too, waits for what the command line imports."""
    code = "import sys, iocast.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "scipy", "altair", "jinja2", "iocast.importers", "iocast.calibrate"} & set(loaded)


def test_a_call_stays_one_after_a_module_of_its_name_is_loaded() -> None:
    for name in iocast.__all__:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(f"iocast.{name}")
        assert callable(getattr(iocast, name)) and name in dir(iocast), name
    with pytest.raises(AttributeError, match="no attribute 'predcit'"):
        iocast.predcit  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(api.__path__)])
def test_examples_of_calls(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"iocast.api.{name}"))
    assert not found.failed


@pytest.mark.parametrize("script", sorted(NOTEBOOKS.glob("*.py")), ids=lambda script: script.stem)
def test_notebooks_print_what_stands_in_them(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(script))
    shown = re.findall(r"^# -> (.*)$", script.read_text(), re.M)
    assert shown and capsys.readouterr().out.splitlines() == shown


@pytest.mark.parametrize("page", PAGES)
def test_examples_of_pages(page: str) -> None:
    """The blocks of a page go on with one another; each prints what stands below it."""
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", (REPOSITORY / page).read_text(), re.S)
    assert blocks
    for code, shown in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, names)
        assert printed.getvalue() == shown


def test_records_are_what_commands_print(command_line: Command, tmp_path: Path) -> None:
    runs = iocast.import_results(CIRRUS, out=tmp_path / "runs")
    fitted = iocast.calibrate(runs, seed=1)
    done = command_line("calibrate", tmp_path / "runs", "--seed", 1, "--out", tmp_path / "fitted.yaml")
    assert done.stdout == f"{fitted.text()}\nWritten to {tmp_path}/fitted.yaml.\n", done.stderr
    file = fitted.save(tmp_path / "saved.yaml")
    assert file.read_bytes() == (tmp_path / "fitted.yaml").read_bytes()
    answers: list[tuple[Answer, tuple[object, ...]]] = [
        (iocast.predict(fitted, 16), ("predict", file, "--nodes", 16)),
        (iocast.validate(fitted, runs), ("validate", file, tmp_path / "runs")),
        (iocast.compare(runs.directories[0], runs.directories[1]), ("compare", *runs.directories[:2])),
        (
            iocast.simulate("queue", "md-workbench", 1, 2, settings=SMALL),
            ("simulate", "queue", "md-workbench", "--ppn", 2, *(f"--set={name}={n}" for name, n in SMALL.items())),
        ),
        (
            iocast.plan(fitted, nodes=16).write(tmp_path / "next.yaml"),
            ("plan", "--platform", file, "--nodes", 16, "--out", tmp_path / "plan.yaml"),
        ),
    ]
    for answer, command in answers:
        assert command_line(*command).stdout.startswith(f"{answer.text()}\n"), command
        document = json.loads(command_line(*command, "--json").stdout)
        assert _without_times(document) == _without_times(answer.document()), command
    for answer in (runs, fitted, *(answer for answer, _ in answers)):
        assert answer.rows() and answer._repr_html_().count("<tr>") == 1 + len(answer.rows()), answer


def _without_times(document: Any) -> Any:
    """Without when it was made, and where files lie."""
    if isinstance(document, dict):
        left_out = ("made_at", "file", "sha256")
        return {key: _without_times(value) for key, value in document.items() if key not in left_out}
    return [_without_times(one) for one in document] if isinstance(document, list) else document


def test_rows_are_a_table_of_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is installed; a sentence where it is not."""
    answer = iocast.import_results(CIRRUS)

    class Pandas:
        DataFrame = staticmethod(list)

    monkeypatch.setitem(sys.modules, "pandas", Pandas)
    assert answer.to_pandas() == answer.rows()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(RunError, match="pandas is not installed"):
        answer.to_pandas()


def test_rows_are_a_table_of_arrow_and_a_chart() -> None:
    """Of each answer that has numbers to draw; what a chart has are the rows, and those alone."""
    runs = iocast.import_results(CIRRUS)
    fitted = iocast.calibrate(runs)
    answers = [runs, fitted, iocast.predict(fitted, 16), iocast.validate(fitted, runs)]
    answers += [iocast.compare(runs.directories[0], runs.directories[1])]
    load = {"load": 2.0, "runs": ["a"], "rate": 16.0, "response": 0.01}
    answers += [Knee({"loads": [load, load | {"load": 4.0, "response": None}]})]
    answers += [Study(json.loads(file.read_text())) for file in (REPOSITORY / "tests" / "earlier").rglob("study.json")]
    for answer in answers:
        columns = dict.fromkeys(name for row in answer.rows() for name in row)
        assert answer.to_arrow().to_pylist() == [dict.fromkeys(columns) | row for row in answer.rows()]
        chart = answer.plot().to_dict()
        (values,) = chart["datasets"].values()
        drawn = [row for row in answer.rows() if None not in (row[answer.axes.x], row[answer.axes.y])]
        assert values == drawn and drawn
        fields = {one["field"] for encoding in _found(chart, "encoding") for one in encoding.values() if "field" in one}
        assert {answer.axes.x, answer.axes.y} <= fields <= set(drawn[0])
    with pytest.raises(RunError, match="No row has load and response"):
        Knee({"loads": []}).plot()
    with pytest.raises(RunError, match="Plan has no chart"):
        iocast.plan(fitted, nodes=16).plot()


def _found(chart: Any, key: str) -> list[Any]:
    """What a chart has under this key, at every depth."""
    inner = chart.values() if isinstance(chart, dict) else chart if isinstance(chart, list) else []
    own = [chart[key]] if isinstance(chart, dict) and key in chart else []
    return own + [one for part in inner for one in _found(part, key)]


def test_opened_runs_are_fitted_to_the_phase_that_some_of_them_have(tmp_path: Path) -> None:
    table = tmp_path / "rates.csv"
    table.write_text(
        "phase,nodes,ppn,rate\n"
        + "".join(f"file-{verb},{n},1,{900 * n}\n" for verb in ("create", "remove") for n in (1, 2))
    )
    runs = iocast.import_results(table)
    for source in (runs, iocast.open_runs(runs.directories[0].parent)):
        assert iocast.calibrate(source, phases=["file-create"]).phases == ["file-create"]

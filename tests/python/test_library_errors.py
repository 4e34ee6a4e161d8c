# SPDX-License-Identifier: Apache-2.0
"""Errors of the library name arguments where those of the command line name options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import iocast
from iocast.api.answer import unit_in_row
from iocast.api.arguments import as_arguments
from iocast.errors import InputError

CALLS = sorted(iocast.__all__)


@pytest.mark.parametrize("name", CALLS)
def test_every_argument_has_its_name_for_its_option(name: str) -> None:
    parameters = set(inspect.signature(getattr(iocast, name)).parameters)
    for parameter in parameters:
        option = "--" + {"ranks_per_node": "ppn", "settings": "set", "edits": "edit"}.get(parameter, parameter).replace(
            "_", "-"
        )
        text = as_arguments(f"There are too few; name one with {option}, or leave it out.", parameters)
        assert text == f"There are too few; name one with the argument {parameter}, or leave it out."
        command = f"Import it anew by iocast import a.csv {option} 4 --out DIR."
        assert as_arguments(command, parameters) == command


@pytest.mark.parametrize(
    ("sentence", "becomes"),
    [
        ("let the rates alone speak: --platform queue.", 'let the rates alone speak: platform="queue".'),
        ("use --solver analytic, or calibrate", 'use solver="analytic", or calibrate'),
        ("validate with --level 0.9.", "validate with level=0.9."),
        ("--edit a.b=32: nothing is there", 'edits={"a.b": 32}: nothing is there'),
        ("choose it by --only stripes=4.", 'choose it by only={"stripes": ["4"]}.'),
        ("a larger --budget and another --out goes further", "a larger budget and another out goes further"),
        ("start it with mpirun --phase 4.", "start it with mpirun --phase 4."),
        ("add --unknown.", "add --unknown."),
    ],
)
def test_values_are_written_as_python_has_them(sentence: str, becomes: str) -> None:
    known = {"platform", "solver", "level", "edits", "only", "budget", "out", "phase"}
    assert as_arguments(sentence, known) == becomes


def _imported(tmp_path: Path) -> Any:
    (tmp_path / "t.csv").write_text("nodes,ppn,rate,stripes\n1,4,10,1\n2,4,18,1\n4,4,30,1\n")
    return iocast.import_results(tmp_path / "t.csv")


@pytest.mark.parametrize(
    "call",
    [
        lambda runs, out: iocast.calibrate(runs, phases=["writing"]),
        lambda runs, out: iocast.calibrate(runs, platform="lustre"),
        lambda runs, out: iocast.forecast(runs.directories, 8, out=out, only={"stripes": ["9"]}),
    ],
)
def test_no_error_of_a_call_names_an_option(tmp_path: Path, call: Callable[[Any, Path], Any]) -> None:
    with pytest.raises(InputError) as refused:
        call(_imported(tmp_path), tmp_path / "out")
    assert "--" not in str(refused.value), refused.value


@pytest.mark.parametrize("name", CALLS)
def test_an_argument_of_another_type_is_refused_by_name(name: str) -> None:
    """Each argument of each call, given something that no argument takes, before anything is computed."""
    call = getattr(iocast, name)
    parameters = inspect.signature(call).parameters
    needed = {one: "x" for one, it in parameters.items() if it.default is inspect.Parameter.empty}
    for parameter in parameters:
        with pytest.raises(InputError, match=f"The argument {parameter} is .*it must be "):
            call(
                **{**needed, "nodes": 1, parameter: object()} if "nodes" in needed else {**needed, parameter: object()}
            )


@pytest.mark.parametrize("value", ["16", 16.5, True, None, [16], float("nan")])
def test_a_number_of_nodes_is_a_whole_number(value: Any) -> None:
    with pytest.raises(InputError, match="The argument nodes is .*; it must be a whole number[.]$"):
        iocast.predict("queue", value, 1, workload="md-workbench")


def test_what_is_no_platform_is_named_as_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="argument platform is <Runs of 3 rows.*a text or a path or a calibration"):
        iocast.predict(_imported(tmp_path), 3)
    two: Any = np.int64(2)
    assert iocast.predict("queue", two, workload="md-workbench", solver="analytic").rows()


@pytest.mark.parametrize("call", [iocast.import_results, iocast.open_runs, iocast.calibrate])
def test_no_source_at_all_is_refused(call: Callable[[list[str]], Any]) -> None:
    with pytest.raises(InputError, match="No file and no directory was named"):
        call([])


def test_runs_are_sources_of_every_call_that_takes_results(tmp_path: Path) -> None:
    runs = _imported(tmp_path)
    assert iocast.report(runs, tmp_path / "page.html").page.is_file()
    found = iocast.forecast(runs, 8, out=tmp_path / "out")
    assert {row["unit"] for row in found.rows()} == {"1/s"}


def test_rows_have_units() -> None:
    rows = iocast.predict("queue", 2, workload="md-workbench", solver="analytic").rows()
    assert {(row["quantity"], row["unit"]) for row in rows} >= {("rate", "1/s"), ("create.q99", "s")}
    named = {"create.mean": "s", "read.bandwidth": "B/s", "au": "", "create.rate": "1/s", "length": "s"}
    assert {name: unit_in_row(name, {}) for name in named} == named
    assert unit_in_row("rate", {"unit": "bytes"}) == "B/s"


@pytest.mark.parametrize(
    ("argument", "meant"), [("ppn", "ranks_per_node"), ("edit", "edits"), ("set", "settings"), ("levle", "level")]
)
def test_an_argument_that_a_call_does_not_have_is_refused_with_the_nearest(argument: str, meant: str) -> None:
    call: Any = iocast.predict
    with pytest.raises(TypeError, match=rf"^predict\(\) has no argument '{argument}'\. Did you mean '{meant}'\?"):
        call("queue", **{argument: 4})


def test_an_edit_with_spaces_is_named_whole() -> None:
    with pytest.raises(InputError) as refused:
        iocast.predict("queue", edits={"stations.servr.servers": "5 of them"}, workload="md-workbench")
    assert str(refused.value).startswith("""edits={"stations.servr.servers": "5 of them"}: the platform""")

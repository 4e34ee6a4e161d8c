# SPDX-License-Identifier: Apache-2.0
"""Errors of the library name arguments where those of the command line name options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import iocast
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

# SPDX-License-Identifier: Apache-2.0
"""Open loops in what calculates with workloads: forecasts by simulation know them; formulas and calibrations refuse
them."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from iocast.runs.arrivals import is_open, number

Iocast = Callable[..., CompletedProcess[str]]
FEW = ["--set", "objects=20", "--set", "iterations=20", "--set", "datasets=2"]


def refused(done: CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("iocast: ") and message.endswith("."), message
    for word in words:
        assert word in message, (word, message)


@pytest.mark.parametrize(
    ("text", "expected"), [("200/s", 200), ("1.5e3/s", 1500), (0.0, 0), ("0.0/s", 0), ("2ms", 2), ("fixed", 0)]
)
def test_numbers_with_units(text: object, expected: float) -> None:
    assert number({"rate": text}, "rate") == expected
    assert is_open({"rate": text}) == (expected > 0)
    assert not is_open({})


def test_the_analytic_solver_refuses(iocast: Iocast) -> None:
    refused(
        iocast("predict", "local", "--solver", "analytic", "--ppn", 2, *FEW, "--set", "rate=100/s"),
        "closed loops only",
        "--solver simulate",
    )
    for thinking in ("waiting_factor=1", "think_time=1ms"):
        assert iocast("predict", "local", "--solver", "analytic", "--ppn", 2, *FEW, "--set", thinking).returncode == 0


def test_forecasts_of_open_loops_have_responses(iocast: Iocast) -> None:
    done = iocast("predict", "local", "--ppn", 2, *FEW, "--set", "rate=100/s", "--json")
    assert done.returncode == 0, done.stderr
    forecast = json.loads(done.stdout)
    quantities = {name: q["value"] for name, q in forecast["quantities"].items()}
    assert quantities["stat.response.q50"] >= quantities["stat.q50"]
    assert forecast["baselines"] == {}
    # 2 x 160 operations at 200 a second in all: far below what the platform can, so the rate is the requested one, but
    # for chance.
    assert quantities["rate"] == pytest.approx(200, rel=0.25)


def test_calibration_refuses(iocast: Iocast, simulate: Callable[..., dict], tmp_path: Path) -> None:
    for ranks in (1, 2, 4):
        simulate("local", *FEW, "--set", "rate=100/s", "--ppn", ranks, "--out", tmp_path / f"n{ranks}")
    refused(
        iocast("calibrate", *(tmp_path / f"n{n}" for n in (1, 2, 4)), "--out", tmp_path / "fitted.yaml"),
        "open loop",
        "without a rate",
    )

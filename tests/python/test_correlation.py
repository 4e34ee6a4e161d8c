# SPDX-License-Identifier: Apache-2.0
"""What of the fitted numbers the measurements don't tell apart."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import yaml

from iocast.calibrate.correlation import TIED, correlations, tied
from iocast.records.note_of_measurements import ParametersTied


def test_correlations_of_a_known_covariance() -> None:
    found = correlations(
        ["service", "threads", "fixed", "lock"],
        np.array([[4.0, 3.9, 0, -1.0], [3.9, 4.0, 0, 0.5], [0, 0, 0, 0], [-1.0, 0.5, 0, 1.0]]),
    )
    assert found == {
        "service": {"threads": pytest.approx(0.975), "lock": pytest.approx(-0.5)},
        "threads": {"lock": pytest.approx(0.25)},
    }
    assert tied(found) == [ParametersTied("service", "threads", pytest.approx(0.975))]
    assert tied({"a": {"b": -0.99}}) == [ParametersTied("a", "b", -0.99)]
    assert correlations([], np.zeros((0, 0))) == {} == correlations(["alone"], np.ones((1, 1)))


def test_a_calibration_keeps_them(fitted: Path) -> None:
    known = yaml.safe_load(fitted.read_text())["fitted"]
    names = {parameter["name"] for parameter in known["parameters"].values()}
    pairs = {(one, other): r for one, others in known["correlations"].items() for other, r in others.items()}
    assert len(names) > 1 and pairs
    assert {name for pair in pairs for name in pair} <= names
    assert all(math.isfinite(r) for r in pairs.values()) and any(abs(r) > 0.01 for r in pairs.values())
    assert not {(other, one) for one, other in pairs} & pairs.keys(), "each once"
    entries = [one for one in known["cautions"] if one["code"] == "parameters-tied"]
    assert len(entries) == sum(abs(r) >= TIED for r in pairs.values())

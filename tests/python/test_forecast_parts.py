# SPDX-License-Identifier: Apache-2.0
"""What a forecast is put together from, piece by piece: rulers, draws and intervals."""

from __future__ import annotations

from typing import Any

import pytest

from iocast.predict import _baselines

THINK = 5e-3


def thinking(think: dict[str, float], common: float) -> dict[str, Any]:
    """Measurements of a server of 1,000 operations a second whose ranks think 5 ms after each: saturated from six ranks on."""
    rates = {1: 1 / 6e-3, 16: 1000.0, 32: 1000.0}
    points = [
        {"name": f"N={n}", "ranks": n, "waiting_factor": 0.0, "rate": x, "latency": {"stat": {"q50": n / x - THINK, "count": 100}}} | think for n, x in rates.items()
    ]
    return {"campaign": {"points": points, "workload": {"parameters": {"think_time": common}}}}


@pytest.mark.parametrize("fitted", [thinking({"think_time": THINK}, 0), thinking({}, THINK)])
def test_rulers_know_the_think_time(fitted: dict[str, Any]) -> None:
    """As points state it, or, in files of before, their workload; and as the forecast asks for it."""
    same = _baselines(fitted, {}, 64, 0.0, ["rate", "stat.q50"]) if "think_time" not in fitted["campaign"]["points"][0] else None
    asked = _baselines(fitted, {"think_time": "5ms"}, 64, 0.0, ["rate", "stat.q50"])
    assert asked["last value"]["stat.q50"] == pytest.approx(64 / 1000 - THINK)
    assert same is None or same == asked
    longer = _baselines(fitted, {"think_time": "100ms"}, 64, 0.0, ["rate", "stat.q50"])
    assert longer["last value"]["rate"] < 64 / 100e-3

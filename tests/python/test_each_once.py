# SPDX-License-Identifier: Apache-2.0
"""A warning about several forecasts is printed once."""

from typing import Any

from iocast.forecasts.cautions import each_once, outside_bounds

BOUNDS = "Forecast rates outside the asymptotic bounds of the measurements: "
"""How the sentence begins."""


def made(phase: str, rate: float, nodes: int = 4) -> dict[str, Any]:
    one: dict[str, Any] = {
        "phase": phase,
        "placement": {"ranks": nodes, "nodes": nodes, "ranks_per_node": 1},
        "quantities": {"rate": {"value": rate, "low": rate / 2, "high": 2 * rate}},
        "baselines": {"asymptotic bounds": {"rate": {"low": 50.0, "high": 100.0}}},
    }
    return one | {"warnings": ["one for all", *outside_bounds([one])]}


def test_rates_outside_their_bounds_are_one_sentence() -> None:
    phases = [made("create", 500.0), made("stat", 70.0), made("read", 5.0)]
    all_, bounds = each_once(phases)
    assert all_ == "one for all" and bounds.startswith(f"{BOUNDS}create 500 /s, above 50.0 /s to 100 /s; read 5.00 /s")
    assert "stat" not in bounds and bounds.count(BOUNDS) == 1
    assert each_once([made("stat", 70.0)]) == ["one for all"]
    several = each_once([made("create", 500.0), made("create", 500.0, 8)])[1]
    assert "create at 4x1 500 /s" in several and "create at 8x1 500 /s" in several
    joined = phases[0] | {"further_phases": [phases[2]], "warnings": [f"create: {phases[0]['warnings'][1]}", "other"]}
    assert each_once([joined]) == [bounds, "other"]

# SPDX-License-Identifier: Apache-2.0
"""A warning about several forecasts is printed once."""

import json
from typing import Any

from iocast.forecasts.cautions import of_all, outside_bounds
from iocast.records.codes import notes_of
from iocast.records.note import Note, OfCalibration
from iocast.wording.notes import put, sentences

BOUNDS = "Forecast rates outside the asymptotic bounds of the measurements: "
"""How the sentence begins."""


def made(phase: str, rate: float, nodes: int = 4) -> dict[str, Any]:
    one: dict[str, Any] = {
        "phase": phase,
        "placement": {"ranks": nodes, "nodes": nodes, "ranks_per_node": 1},
        "quantities": {"rate": {"value": rate, "low": rate / 2, "high": 2 * rate}},
        "baselines": {"asymptotic bounds": {"rate": {"low": 50.0, "high": 100.0}}},
    }
    return with_notes(one, [OfCalibration("one for all"), *outside_bounds([one], one["placement"])])


def with_notes(document: dict[str, Any], notes: list[Note]) -> dict[str, Any]:
    """As a file has it."""
    made = dict(document)
    put(made, notes)
    return dict(json.loads(json.dumps(made)))


def each_once(forecasts: list[Any]) -> list[str]:
    return sentences(of_all(forecasts))


def test_rates_outside_their_bounds_are_one_sentence() -> None:
    phases = [made("create", 500.0), made("stat", 70.0), made("read", 5.0)]
    all_, bounds = each_once(phases)
    assert all_ == "one for all" and bounds.startswith(f"{BOUNDS}create 500 /s, above 50.0 /s to 100 /s; read 5.00 /s")
    assert "stat" not in bounds and bounds.count(BOUNDS) == 1
    assert each_once([made("stat", 70.0)]) == ["one for all"]
    assert each_once([made("create", 500.0), made("create", 500.0)])[1].count("create 500 /s") == 1
    several = each_once([made("create", 500.0), made("create", 500.0, 8)])[1]
    assert "create at 4x1 500 /s" in several and "create at 8x1 500 /s" in several
    everything = outside_bounds([phases[0], phases[2]], phases[0]["placement"])
    joined = with_notes(phases[0], [*everything, OfCalibration("other", about=("create",))])
    assert each_once([joined]) == [bounds, "create: other"]


def test_forecasts_of_before_are_read_by_their_sentences() -> None:
    """They have no codes: what two of them say alike is printed once, and nothing else is merged."""
    before = [made("create", 500.0), made("read", 5.0)]
    for one in before:
        del one["cautions"]
    (all_, *bounds) = each_once(before)
    assert all_ == "one for all" and [one.count(BOUNDS) for one in bounds] == [1, 1]
    assert {code for one in before for code in (type(n).__name__ for n in notes_of(one))} == {"Written"}

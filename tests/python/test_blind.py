# SPDX-License-Identifier: Apache-2.0
"""validation/blind: truths, and that nothing at the target scale is seen before it is forecast."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iocast.runs.earlier import Earlier
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict

VALIDATION = Path(__file__).resolve().parents[2] / "validation"


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> Any:
    for directory in ("", "theory", "blind"):
        monkeypatch.syspath_prepend(str(VALIDATION / directory))
    import blind

    yield blind
    for name in ("blind", "truths", "scoreboard", "second_simulator"):
        sys.modules.pop(name, None)


def test_truths_are_the_same_each_time_and_alternate(blind: Any) -> None:
    once, again = blind.truths(30, 1), blind.truths(30, 1)
    assert once == again and once != blind.truths(30, 2)
    assert [truth.side for truth in once[:5]] == [
        "in the grid",
        "out of it",
        "in the grid",
        "out of it",
        "beyond sight",
    ]
    assert len({truth.name.partition(" ")[2] for truth in once}) == 15  # every kind is there


def test_forecasts_come_first(blind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[tuple[str, int]] = []
    real_run = blind.run

    def run(system: Any, clients: int, *rest: Any) -> Any:
        order.append(("run", clients))
        return real_run(system, clients, *rest)

    def calibrate(points: list[Any], family: str, *_: Any) -> dict[str, Any]:
        assert {point.ranks for point in points} == {clients for clients, _ in blind.FIT}
        order.append(("calibrate", max(point.ranks for point in points)))
        raise StopIteration

    monkeypatch.setattr(blind, "run", run)
    monkeypatch.setattr(blind, "calibrate", calibrate)
    with pytest.raises(StopIteration):
        blind.outcome(replace(blind.truths(1, 1)[0], seconds=0.02), 0)
    assert order[-1] == ("calibrate", 16) and max(clients for what, clients in order if what == "run") == 16


def test_forecasts_are_of_what_is_measured_afterwards(blind: Any, tmp_path: Path) -> None:
    truth, clients, factor, iterations = blind.truths(1, 1)[0], 4, 1.0, 30
    points = blind.measured(truth, [(clients, factor, iterations)], 1, 0, tmp_path)
    settings = {"datasets": "1"} | blind._settings(factor, iterations)  # of the former a fit knows
    made = predict(Fitted.open("lustre"), "md-workbench", settings, clients, 1)
    assert [point for point, _ in Earlier.of_document(made).of(points)] == points

# SPDX-License-Identifier: Apache-2.0
"""platforms/facts: rows that are read with bounds, judged by role, and that tell a change of the platform."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from iocast.errors import InputError
from iocast.published import error_of, forecasts_by_quantity
from iocast.published.claims.mdworkbench2018 import REASONS, WHY
from iocast.published.facts import BUDGET, COLUMNS, FACTS, claims_of, read_facts, sentence, simulated

ROW = {
    "place": "Table 2", "platform": "lustre", "nodes": "2", "ppn": "2", "placement": "block",
    "workload": "md-workbench-large", "settings": "datasets=1 objects=100 iterations=50", "phase": "benchmark",
    "operation": "create", "quantity": "rate", "value": "1000", "tolerance": "1.5", "role": "forecast", "reason": "",
}  # fmt: skip


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """A file of one row, ROW but for these columns."""

    def write(**changed: str) -> Path:
        with (tmp_path / "source.csv").open("w", newline="") as file:
            rows = csv.DictWriter(file, COLUMNS)
            rows.writeheader()
            rows.writerow(ROW | changed)
        return tmp_path

    return write


def test_a_row_has_bounds_by_its_tolerance(written) -> None:
    for tolerance, bounds in (
        ("2", (500, 2000)),
        ("at most", (float("-inf"), 1000)),
        ("at least", (1000, float("inf"))),
    ):
        (fact,) = read_facts("source", written(tolerance=tolerance))
        assert fact.bounds == bounds


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"role": "forcast"}, "Did you mean 'forecast'|forecast"),
        ({"placement": "cycle"}, "no placement"),
        ({"quantity": "q74"}, "no quantity"),
        ({"nodes": "0"}, "whole number from 1"),
        ({"nodes": "2.5"}, "whole number from 1"),
        ({"value": "nan"}, "value is 'nan'"),
        ({"value": "0"}, "value is '0'"),
        ({"tolerance": "0.5"}, "tolerance is '0.5'"),
        ({"tolerance": "about"}, "tolerance is 'about'"),
        ({"operation": ""}, "name the operation"),
        ({"settings": "datasets"}, "NAME=VALUE"),
        ({"platform": ""}, "platform is missing"),
    ],
)
def test_a_wrong_row_is_refused_with_its_line(written, changed: dict[str, str], why: str) -> None:
    with pytest.raises(InputError, match=f"source.csv:2: .*({why})"):
        read_facts("source", written(**changed))


def test_a_reason_must_be_known(written) -> None:
    with pytest.raises(InputError, match="no reason 'because'"):
        claims_of("source", {"other": "It is so."}, written(reason="because"))


def test_a_changed_row_asks_something_else(written) -> None:
    """The value changes with each input that it depends on, and with none that it doesn't."""
    (fact,) = read_facts("source", written())
    rate = simulated(fact)
    for changed in ({"nodes": "4"}, {"platform": "mistral"}, {"operation": "stat", "quantity": "q75"}):
        (other,) = read_facts("source", written(**changed))
        assert simulated(other) != rate
    for same in ({"role": "fitted"}, {"value": "2000"}, {"place": "Table 1"}, {"tolerance": "3"}):
        (other,) = read_facts("source", written(**same))
        assert simulated(other) == rate
    (slowed,) = read_facts("source", written(settings=ROW["settings"] + " waiting_factor=4", quantity="virtual_rate"))
    assert simulated(slowed) > rate * 0.9


def test_runs_keep_to_the_budget(written) -> None:
    (fact,) = read_facts("source", written(settings="datasets=1 objects=100 iterations=100"))
    assert simulated(fact, budget=80) != simulated(fact)
    (longest,) = read_facts("source", written(settings=f"datasets=1 objects=9 iterations={BUDGET}", quantity="max"))
    assert longest.iterations == 4 * BUDGET
    assert claims_of("source", {}, written(settings=f"datasets=1 objects=9 iterations={BUDGET}", quantity="max")) == []


def test_errors_are_of_forecasts_alone() -> None:
    row = {"quantity": "rate", "low": 50.0, "high": 200.0, "simulated": 150.0, "met": True, "role": "forecast"}
    assert error_of(row) == pytest.approx(0.5)
    assert error_of(row | {"simulated": 50.0}) == pytest.approx(1.0)
    assert error_of(row | {"high": float("inf")}) is None
    rows = [row, row | {"simulated": 110.0}, row | {"simulated": 1e9, "role": "fitted", "met": False}]
    found = forecasts_by_quantity(rows)["rate"]
    assert (found["claims"], found["met"]) == (2, 2) and found["median_error"] == pytest.approx(0.3)


def test_the_rows_of_the_catalogue() -> None:
    """Sixty of the 248 numbers of both tables at most are given or fitted, and no row is twice there."""
    facts = read_facts("mdworkbench2018")
    roles = Counter(fact.role for fact in facts)
    assert len(facts) == 248 and roles["given"] + roles["fitted"] <= 60
    assert len({(sentence(fact), fact.place) for fact in facts}) == len(facts)
    assert {fact.reason for fact in facts} - {""} <= set(REASONS) and set(WHY.values()) <= set(REASONS)


def test_frozen_runs_are_in_no_file_of_facts() -> None:
    with (FACTS / "frozen.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert Counter(row["set"] for row in rows) == {"frozen": 46, "open": 9, "fitted": 36}
    frozen = {
        (row["platform"], row["nodes"], row["ppn"], row["datasets"], row["objects"], row["iterations"])
        for row in rows
        if row["set"] == "frozen"
    }
    kept = [
        (
            fact.platform,
            str(fact.nodes),
            str(fact.ppn),
            *(fact.settings.get(k) for k in ("datasets", "objects", "iterations")),
        )
        for fact in read_facts("mdworkbench2018")
        if fact.role != "forecast"
    ]
    assert ("cooley", "10", "1", "1", "10000", "2000") in kept and not frozen & set(kept)


def test_fitted_runs_of_one_machine_are_those_that_may_be_fitted_and_come_out() -> None:
    """No run with an even number of processes, which are kept apart; of each platform the quickest run, simulated."""
    with (FACTS / "frozen.csv").open() as file:
        may = {row["run"] for row in csv.DictReader(file) if row["set"] == "fitted"}
    facts = [fact for fact in read_facts("sandy9") if fact.role == "fitted"]
    assert facts and {fact.place for fact in facts} <= may
    for platform in {fact.platform for fact in facts}:
        mine = [fact for fact in facts if fact.platform == platform and fact.phase == "benchmark"]
        quickest = min(mine, key=lambda fact: fact.ppn * int(fact.settings["datasets"]) * int(fact.settings["objects"]))
        low, high = quickest.bounds
        assert low <= simulated(quickest) <= high, platform

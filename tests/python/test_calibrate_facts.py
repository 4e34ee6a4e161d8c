# SPDX-License-Identifier: Apache-2.0
"""A platform fitted to published numbers alone: `iocast calibrate FACTS.csv --platform FAMILY`."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

import iocast
from iocast.calibrate.facts import calibrate_facts
from iocast.calibrate.recipe import read_recipe
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.platforms.documents import dump
from iocast.published.errors import Errors
from iocast.published.facts import Fact, simulated

SETTINGS = {"datasets": "1", "objects": "60", "iterations": "60"}
TRUTH = {"demands.make.mean": "900us", "demands.getattr.mean": "300us"}
COLUMNS = ("place", "nodes", "ppn", "workload", "settings", "phase", "operation", "quantity", "value", "role")
WANTED = (
    ("create", "q75"), ("create", "rate"), ("stat", "q75"), ("stat", "q95"), ("read", "q75"), ("unlink", "q75"),
)  # fmt: skip


def fact(nodes: int, ppn: int, operation: str, quantity: str, role: str = "fitted", value: float = 1.0) -> Fact:
    where = ("lustre", nodes, ppn, "block", "md-workbench", SETTINGS, "benchmark", operation, quantity)
    return Fact(f"{operation} {quantity} {nodes} x {ppn}", *where, value, "1.5", role, "")


def write(file: Path, facts: list[Fact], **changed: str) -> Path:
    """The facts as a table; changed: columns that have these values, or with None are left out."""
    settings = " ".join(f"{name}={value}" for name, value in SETTINGS.items())
    with file.open("w", newline="") as stream:
        rows = csv.DictWriter(stream, [name for name in COLUMNS if name not in changed or changed[name]])
        rows.writeheader()
        for one in facts:
            row = {name: str(getattr(one, name)) for name in COLUMNS} | {"settings": settings, **changed}
            rows.writerow({name: value for name, value in row.items() if value})
    return file


@pytest.fixture(scope="module")
def truth() -> list[Fact]:
    """What the family with TRUTH does, 2 x 1 and 2 x 4 to fit, 8 x 8 to forecast."""
    wanted = [fact(2, ppn, *one) for ppn in (1, 4) for one in WANTED]
    wanted += [fact(8, 8, *one, role="forecast") for one in WANTED]
    return [
        fact(one.nodes, one.ppn, one.operation, one.quantity, one.role, simulated(one, edits=TRUTH)) for one in wanted
    ]


@pytest.mark.long("a calibration; validation/published/frozen.py judges all platforms with facts")
def test_the_numbers_that_made_the_facts_are_found_and_forecast_the_rest(truth: list[Fact], tmp_path: Path) -> None:
    fit = calibrate_facts(write(tmp_path / "facts.csv", truth), "lustre")
    assert len(fit.numbers) <= sum(one.role == "fitted" for one in truth) // 2
    for path, text in TRUTH.items():
        found = float(fit.numbers[path]["value"].removesuffix("s"))
        assert found == pytest.approx(1e-6 * float(text.removesuffix("us")), rel=0.05), path
    for row in fit.rows:
        assert row["fitted"] == pytest.approx(row["published"], rel=0.1), row
        assert (row["left_out"] is None) == (row["role"] == "forecast")
    assert not set(fit.numbers) & set(fit.kept)


def test_only_named_paths_are_fitted_and_a_fact_that_is_left_out_is_missed(truth: list[Fact], tmp_path: Path) -> None:
    mine = [one for one in truth if one.operation == "stat" and one.nodes == 2]
    fit = calibrate_facts(write(tmp_path / "facts.csv", mine), "lustre", ["demands.getattr.mean"])
    assert list(fit.numbers) == ["demands.getattr.mean"]
    off = [abs(row["left_out"] / row["published"] - 1) for row in fit.rows]
    assert max(off) > 0 and max(off) < 0.1  # four facts say the same of one number


def test_the_file_is_a_platform_whose_forecasts_have_the_errors_that_the_fit_showed(
    truth: list[Fact], tmp_path: Path
) -> None:
    fit = iocast.calibrate_facts(write(tmp_path / "facts.csv", truth), "lustre", paths=list(TRUTH))
    file = fit.save(tmp_path / "mine.yaml")
    assert "most of it from" in fit.text()
    assert read_recipe(str(file)).parameters  # it can still be calibrated with runs
    platform = Fitted.open(str(file))
    errors = Errors.of(platform)
    assert errors is not None and len(errors.own()) == len(truth) and errors.note.left_out
    answer = iocast.simulate(str(file), "md-workbench", 4, 4, settings=SETTINGS)
    rate = answer.phases["benchmark"].rate
    assert rate.low is not None and rate.high is not None
    assert rate.high / rate.value == pytest.approx(errors.spread("rate").factor(0.9))
    with pytest.raises(InputError, match="with the argument beyond"):
        iocast.simulate(str(file), "md-workbench", 100, 1, settings=SETTINGS)
    assert errors.speaks_of("md-workbench") and not errors.speaks_of("ior-easy")
    assert dump(fit.document()) in file.read_text()


@pytest.mark.parametrize(
    ("changed", "paths", "why"),
    [
        ({"quantity": ""}, [], "column 'quantity' of a fact is missing"),
        ({"value": "fast"}, [], "facts.csv:2: the value is 'fast'"),
        ({"operation": "stats"}, [], "no demand on the route of stats. Did you mean 'stat'"),
        ({"operation": "readdir"}, [], "has no operation 'readdir'"),
        ({"workload": "md-workbensh"}, [], "md-workbench"),
        ({"role": "given"}, [], "0 facts of the role 'fitted'"),
        ({}, ["demands.getatr.mean"], "Did you mean 'demands.getattr.mean'"),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    changed: dict[str, str], paths: list[str], why: str, truth: list[Fact], tmp_path: Path
) -> None:
    with pytest.raises(Exception, match=why):
        calibrate_facts(write(tmp_path / "facts.csv", truth[:4], **changed), "lustre", paths)


def test_a_bound_that_is_met_is_no_error(truth: list[Fact], tmp_path: Path) -> None:
    mine = [one for one in truth if one.operation == "stat" and one.nodes == 2]
    bound = replace(mine[0], role="forecast", value=10.0, tolerance="at most")
    factors = []
    for facts in (mine, [*mine, bound]):
        with (tmp_path / "facts.csv").open("w", newline="") as stream:
            rows = csv.DictWriter(stream, [*COLUMNS, "tolerance"])
            rows.writeheader()
            settings = " ".join(f"{name}={value}" for name, value in SETTINGS.items())
            for one in facts:
                row = {name: str(getattr(one, name)) for name in [*COLUMNS, "tolerance"]}
                rows.writerow(row | {"settings": settings})
        file = iocast.calibrate_facts(tmp_path / "facts.csv", "lustre", paths=["demands.getattr.mean"]).save(
            tmp_path / f"{len(facts)}.yaml"
        )
        errors = Errors.of(Fitted.open(str(file)))
        assert errors is not None
        factors.append(errors.spread("stat.q75").factor(0.9))
    assert factors[0] == pytest.approx(factors[1])


def test_a_maximum_of_more_iterations_than_are_simulated_and_a_tolerance_of_nothing_are_refused(tmp_path: Path) -> None:
    long = replace(fact(10, 10, "create", "max"), settings={**SETTINGS, "iterations": "5000"})
    file = write(tmp_path / "facts.csv", [long, long])
    file.write_text(file.read_text().replace("iterations=60", "iterations=5000"))
    with pytest.raises(InputError, match="runs are shortened"):
        calibrate_facts(file, "lustre")
    file.write_text(
        "nodes,ppn,workload,phase,operation,quantity,value,tolerance\n2,1,md-workbench,benchmark,stat,q75,1,1\n"
    )
    with pytest.raises(InputError, match="facts.csv:2: the tolerance is '1'"):
        calibrate_facts(file, "lustre")

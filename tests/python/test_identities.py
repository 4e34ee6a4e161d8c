# SPDX-License-Identifier: Apache-2.0
"""One question has one number, whichever verb answers it: studies and forecasts, calibrations and forecasts, reports
and the files that they show."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from scipy.special import ndtri
import test_forecast_parts as parts
import test_report_phases as inputs
import yaml
from schedule import mostly_long

from iocast.ground import binaries
from iocast.calibrate.search import Simulations
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.runs.operations import pooled_quantity
from iocast.forecasts.answer import predict
from iocast.forecasts.request import workload_of
from iocast.report.sources import read_sources
from iocast.report.tables import all_tables
from iocast.study import run_study
from iocast.jobs.workers import Workers

TIED = {"alternatives": [{"structure": {}, "weight": 0.4}, {"structure": {}, "weight": 0.35}]}
ROWS = [*parts.MISSED, {"point": "N=8", "quantity": "stat.q50", "runs": 2, "error": 0.3}]


def studied(
    directory: Path,
    platform: str,
    workload: str,
    settings: dict[str, str],
    nodes: int,
    ranks: int,
    levels: list[str],
    **more: Any,
) -> dict[str, Any]:
    """Answer of a study of one design, the platform as it is."""
    study = {
        "schema_version": 1, "title": "t", "platform": platform,
        "workloads": {"own": {"workload": workload, "settings": settings}},
        "scales": {"s": {"nodes": nodes, "ranks_per_node": ranks}}, "axes": {"system": {"as it is": {}}},
        "levels": levels,
    } | more  # fmt: skip
    directory.mkdir(exist_ok=True)
    (directory / "study.yaml").write_text(yaml.safe_dump(study))
    with Workers(1) as workers:
        return run_study(directory / "study.yaml", directory / "out", workers, lambda *_: None, [])


def cells(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Of the only design, by quantity."""
    return {row["quantity"]: row for row in [*found["designs"][0]["levels"], *found["curves"]]}


@pytest.mark.parametrize("more", [{}, TIED], ids=["settled", "tied"])
def test_a_studys_cell_is_the_forecast(more: dict[str, Any], tmp_path: Path, simulator: Path) -> None:
    """Value and interval, of the measured workload on a fitted platform; also where structures tie, and in a phase with
    repeats; by the settings that a study has by itself."""
    platform = parts.server(tmp_path, fit=ROWS, **more)
    settings = {"iterations": "20", "objects": "20", "datasets": "1", "repeats": "2"}
    forecast = predict(platform, "md-workbench", settings, 1, 16, seed=0)
    levels = [
        "rate(all) >= 1/s",
        "rate(stat) >= 1/s",
        "median(stat) < 1 s",
        "p75(stat) < 1 s",
        "p95(stat) < 1 s",
        "p99(stat) < 1 s",
        "max(stat) < 9 s",
        "p99(create) < 1 s",
        "time(own) < 9 h",
    ]
    found = cells(studied(tmp_path / "study", str(platform.file), "md-workbench", settings, 1, 16, levels))
    wanted = forecast["quantities"] | {
        "stat.rate": forecast["operations"]["stat"]["rate"],
        "seconds": forecast["seconds"],
    }
    compared = [name for name in found if name in wanted]
    assert len(compared) == len(levels)
    for name in compared:
        for end in ("value", "low", "high"):
            assert found[name][end] == pytest.approx(wanted[name][end], rel=1e-5), (name, end)


WEIGHTS = {"calibrated platform": 0.3, "last value": 0.7}
BLEND = {
    group: {"weights": WEIGHTS, "favoured": "last value", "errors": dict.fromkeys(WEIGHTS, 0.1)}
    for group in ("rate", "latency")
}
MEASURED = {"q50": 2e-3, "q75": 3e-3, "q95": 5e-3, "q99": 7e-3, "max": 9e-3, "mean": 1e-3, "count": 100}
LEVELS = ["rate(all) >= 1/s", "rate(stat) >= 1/s", "median(stat) < 1 s", "p95(stat) < 1 s", "time(own) < 9 h"]


def with_rules(directory: Path, ceiling: bool, blended: bool, tied: bool) -> Fitted:
    """Measured scales with a straight continuation below or above what the servers do; a rule that was better."""
    directory.mkdir()
    platform = parts.server(directory, fit=ROWS, **(TIED if tied else {}))
    document = yaml.safe_load(platform.file.read_text())
    rates = {4: 3000.0, 8: 3500.0} if ceiling else {4: 3500.0, 8: 7000.0}
    document["fitted"]["campaign"]["points"] = [
        {"name": f"N={n}", "ranks": n, "nodes": 1, "waiting_factor": 0.0, "rate": rate, "latency": {"stat": MEASURED}}
        for n, rate in rates.items()
    ]
    document["fitted"]["fit"] = []
    document["fitted"]["blend"] = BLEND if blended else {}
    platform.file.write_text(yaml.safe_dump(document))
    return Fitted.open(str(platform.file))


@pytest.mark.parametrize(
    ("ceiling", "blended", "tied"),
    mostly_long(
        [(True, False, False), (True, True, False), (False, True, True)], [(True, True, False)], "a study each"
    ),
)
def test_a_studys_cell_is_the_forecast_also_beside_simple_rules(
    ceiling: bool, blended: bool, tied: bool, tmp_path: Path, simulator: Path
) -> None:
    """Blended with a rule, or held below the ceiling of the measured scales: of the system as it is, and of one with
    other servers. The page says by how much."""
    platform = with_rules(tmp_path / "platform", ceiling, blended, tied)
    settings = {"iterations": "20", "objects": "20", "datasets": "1"}
    axes = {"servers": {"as it is": {}, "six": {"edit": {"stations.server.servers": 6}}}}
    out = tmp_path / "study"
    more = {"search": {"replications": 16, "simulate": 2}}
    found = studied(out, str(platform.file), "md-workbench", settings, 1, 16, LEVELS, axes=axes, **more)
    designs = {one["name"]: {row["quantity"]: row for row in one["levels"]} for one in found["designs"]}
    edited: dict[str, list[tuple[str, Any]]] = {"as it is": [], "six": [("stations.server.servers", 6)]}
    for name, edits in edited.items():
        forecast = predict(Fitted.open(str(platform.file), edits), "md-workbench", settings, 1, 16)
        rate = forecast["quantities"]["rate"]
        assert abs(math.log(rate["value"] / rate["model"])) > 0.1
        wanted = forecast["quantities"] | {
            "stat.rate": forecast["operations"]["stat"]["rate"],
            "seconds": forecast["seconds"],
        }
        assert len(designs[name]) == len(LEVELS)
        for quantity, row in designs[name].items():
            for end in ("value", "low", "high"):
                assert row[end] == pytest.approx(wanted[quantity][end], rel=1e-4), (name, quantity, end)
    # Whether the edited system has the measured one's factor is not known.
    factor = math.log(rate["value"] / rate["calibrated"])
    assert math.log(rate["high"] / rate["low"]) > 2 * float(ndtri(0.95)) * abs(factor)
    share = 100 * (rate["value"] / rate["model"] - 1)
    assert any(f"changes the rate of own at 16 clients by {share:+.0f} %" in one for one in found["warnings"])
    again = studied(out, str(platform.file), "md-workbench", settings, 1, 16, LEVELS, axes=axes, **more)
    assert again["search"]["computed"] == 0


def test_a_studys_cell_is_the_forecast_of_a_platform_without_measurements(tmp_path: Path, simulator: Path) -> None:
    settings = {"number": "20", "transactions": "20"}
    forecast = predict(Fitted.open("mistral"), "postmark", settings, 2, 2)
    found = cells(
        studied(
            tmp_path / "study",
            "mistral",
            "postmark",
            settings,
            2,
            2,
            ["rate(all) >= 1/s", "p99(open) < 9 s", "bandwidth(write) >= 1 B/s"],
        )
    )
    for name in ("rate", "open.q99"):
        assert found[name]["value"] == pytest.approx(forecast["quantities"][name]["value"], rel=1e-5)
    assert found["write.bandwidth"]["value"] == pytest.approx(
        forecast["operations"]["pwrite"]["bytes_per_second"]["value"], rel=1e-5
    )


def test_a_forecast_of_a_fitted_placement_has_the_question_of_the_fit(fitted: Path) -> None:
    """With the calibration's random numbers it has the calibration's values, and its own are theirs but for chance."""
    platform = Fitted.open(str(fitted))
    point = next(p for p in platform.fitted["campaign"]["points"] if p["ranks"] == 8)
    rows = {row["quantity"]: row for row in platform.fitted["fit"] if row["point"] == point["name"]}
    wanted = workload_of(platform, None, {}, None, 1, 8)
    with Simulations(about=platform.file) as simulations:
        run = binaries.simulate(simulations.write(platform.best()), wanted.pattern, wanted.settings, 1, 8, 2)
    assert len(rows) > 8
    for name, row in rows.items():
        assert pooled_quantity(run, name, wanted.phases[0]) == pytest.approx(row["forecast"], rel=1e-9), name
    forecast = predict(platform, None, {}, 1, 8)["quantities"]
    for name, row in rows.items():
        kind = name.rpartition(".")[2]
        if kind != "max":
            assert math.log(forecast[name]["model"] / row["forecast"]) == pytest.approx(
                0, abs=4 * platform.fitted["noise"][kind]
            ), name


def by_phase(directory: Path) -> Fitted:
    """A platform that was fitted to two phases, the second of which found other servers."""
    first = parts.server(directory, fit=ROWS)
    own = {key: value for key, value in first.fitted.items() if key != "campaign"} | {
        "campaign": first.fitted["campaign"] | {"phase": "precreate"},
        "fit": [],
        "draws": [{}] * 16,
    }
    document = yaml.safe_load(first.file.read_text())
    document["fitted"]["further_phases"] = {
        "precreate": {"platform": {"stations": {"server": {"servers": 3}}}, "fitted": own}
    }
    first.file.write_text(yaml.safe_dump(document))
    return Fitted.open(str(first.file))


def test_a_study_takes_the_fit_of_the_phase_that_it_asks_about(tmp_path: Path, simulator: Path) -> None:
    platform = by_phase(tmp_path)
    settings = {"iterations": "20", "objects": "20", "datasets": "1"}
    values = {}
    for phase in platform.phases:
        forecast = predict(platform, "md-workbench", settings, 1, 16, phase=phase)
        workloads = {"own": {"workload": "md-workbench", "settings": settings, "phase": phase}}
        found = studied(
            tmp_path / phase,
            str(platform.file),
            "md-workbench",
            {},
            1,
            16,
            ["rate(all) >= 1/s"],
            workloads=workloads,
            search={"replications": 4},
        )
        values[phase] = cells(found)["rate"]["value"]
        assert values[phase] == pytest.approx(forecast["quantities"]["rate"]["value"], rel=1e-5)
    assert values["precreate"] < 0.6 * values["benchmark"]
    both = {phase: {"workload": "md-workbench", "settings": settings, "phase": phase} for phase in platform.phases}
    with pytest.raises(InputError, match="a fit of its own for each phase.*ask for one phase in each study"):
        studied(tmp_path / "both", str(platform.file), "", {}, 1, 16, ["rate(all) >= 1/s"], workloads=both)


def test_what_rests_on_one_of_several_fitted_phases_says_so(tmp_path: Path, simulator: Path) -> None:
    platform, settings = by_phase(tmp_path), {"number": "20", "transactions": "20"}
    rests = "rests on what was fitted to the phase benchmark alone: precreate has parameters of its own"
    assert any(rests in one for one in predict(platform, "postmark", settings, 1, 4, solver="analytic")["warnings"])
    assert not any(
        rests in one
        for one in predict(platform, None, {"objects": "20", "iterations": "20"}, 1, 4, solver="analytic")["warnings"]
    )
    found = studied(
        tmp_path / "study",
        str(platform.file),
        "postmark",
        settings,
        1,
        4,
        ["rate(all) >= 1/s"],
        search={"replications": 4},
    )
    assert any(rests in one for one in found["warnings"])


def test_rates_alone_are_no_matter_for_a_study(tmp_path: Path, simulator: Path) -> None:
    """As for a forecast that is to be simulated."""
    platform = parts.server(tmp_path, method="rates")
    with pytest.raises(InputError, match="fitted to rates alone, so that there is nothing to simulate"):
        predict(platform, None, {}, 1, 4, solver="simulate")
    with pytest.raises(
        InputError, match="fitted to rates alone, so that a study has nothing to simulate; iocast predict"
    ):
        studied(tmp_path / "study", str(platform.file), "md-workbench", {}, 1, 4, ["rate(all) >= 1/s"])


# Reports

DERIVED = {"error", "measured_low", "measured_high"}
"""Columns that are worked out of the files' numbers: an error, and the range of several runs."""


def numbers(content: Any) -> set[float]:
    if isinstance(content, dict | list):
        return set().union(*(numbers(value) for value in (content.values() if isinstance(content, dict) else content)))
    return {float(content)} if isinstance(content, int | float) and not isinstance(content, bool) else set()


def test_every_number_of_a_reports_tables_is_in_its_files(tmp_path: Path, simulator: Path) -> None:
    runs = [inputs.run(tmp_path / f"n{ranks}", ranks, list(inputs.RATES)) for ranks in (32, 64, 128)]
    forecast, platform = (
        inputs.forecast(tmp_path / "f.json", "file-create", 1024),
        inputs.platform(tmp_path / "p.yaml", "file-create"),
    )
    uncalibrated = predict(Fitted.open("datawarp"), "postmark", {"number": "20", "transactions": "20"}, 2, 2)
    (tmp_path / "u.json").write_text(json.dumps(uncalibrated))
    files = [*(run / "run.json" for run in runs), forecast, tmp_path / "u.json"]
    known = set().union(*(numbers(json.loads(file.read_text())) for file in files)) | numbers(
        yaml.safe_load(platform.read_text())
    )
    sources = read_sources([*runs, forecast, platform, tmp_path / "u.json"])
    tables = {table.name: table for table in all_tables(sources)}
    assert {"runs", "forecasts", "checked", "family"} <= set(tables)
    unknown = [
        (table.name, column.key, row[column.key])
        for table in tables.values()
        for column in table.columns
        for row in table.rows
        for value in [row.get(column.key)]
        if column.key not in DERIVED
        and not column.key.startswith("error of")
        and isinstance(value, int | float)
        and not isinstance(value, bool)
        and float(value) not in known
    ]
    assert not unknown, unknown
    family = uncalibrated["family"]["range"]["rate"]
    assert any(
        row["quantity"] == "rate" and (row["low"], row["high"]) == (family["low"], family["high"])
        for row in tables["family"].rows
    )

# SPDX-License-Identifier: Apache-2.0
"""Tables whose lines belong together, and columns that are no settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import iocast
from iocast.errors import InputError
from iocast.importers import import_files
from iocast.importers.results import is_result
from iocast.runs.run_directory import Run, group, is_table

HEADER = "run,nodes,ppn,workload,phase,repeat,operation,rate,operations,q50,q99"


def documents(tmp_path: Path, *lines: str) -> list[dict[str, Any]]:
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    return [
        json.loads((one / "run.json").read_text()) for one in import_files([tmp_path / "table.csv"], tmp_path / "r")
    ]


def test_lines_of_a_run_are_its_phases_repeats_and_operations(tmp_path: Path) -> None:
    lines = [
        f"{run},{nodes},10,md-workbench,benchmark,{repeat},{op},{rate},1000,0.00{repeat + 1},0.01"
        for run, nodes in (("a", 5), ("b", 10))
        for repeat, rate in ((0, 100), (1, 200))
        for op in ("create", "stat")
    ]
    lines += ["a,5,10,md-workbench,precreate,0,create,50,9000,0.004,0.02"]
    first, second = documents(tmp_path, HEADER, *lines)
    assert [(p["name"], p["repeat"], p["rate"], p["operations"]) for p in first["phases"]] == [
        ("benchmark", 0, 200, 2000), ("benchmark", 1, 400, 2000), ("precreate", 0, 50, 9000),
    ]  # fmt: skip
    assert first["phases"][0]["seconds"] == 10 and first["phases"][0]["by_operation"]["stat"] == pytest.approx(
        {"count": 1000, "rate": 100}
    )
    assert first["label"] == "a" and second["label"] == "b" and len(second["phases"]) == 2
    points = group([Run(one) for one in sorted((tmp_path / "r").iterdir())])
    assert [point.ranks for point in points] == [50, 100] and not is_table(points[0].first)
    assert points[0].value("stat.q50") == pytest.approx((0.001 * 0.002) ** 0.5)


def test_a_run_that_is_a_number_of_repeats_joins_no_placements(tmp_path: Path) -> None:
    """Where the column counts repeats, each placement has a run of each number."""
    found = documents(tmp_path, "run,nodes,ppn,rate", "1,1,4,10", "1,2,4,20", "2,1,4,11", "2,2,4,21")
    assert sorted((one["placement"]["nodes"], one["phases"][0]["rate"]) for one in found) == [
        (1, 10), (1, 11), (2, 20), (2, 21),
    ]  # fmt: skip
    assert [len(point.runs) for point in group([Run(one) for one in (tmp_path / "r").iterdir()])] == [2, 2]


def test_operations_of_a_run_without_a_phase_came_one_after_the_other(tmp_path: Path) -> None:
    (found,) = documents(tmp_path, "run,nodes,ppn,operation,rate", "a,1,4,create,10", "a,1,4,stat,90", "a,1,4,stat,80")
    assert [(p["name"], p["repeat"], p["rate"]) for p in found["phases"]] == [
        ("create", 0, 10), ("stat", 0, 90), ("stat", 1, 80),
    ]  # fmt: skip


def test_columns_that_count_runs_are_settings(tmp_path: Path) -> None:
    one, other = documents(tmp_path, "nodes,ppn,rate,repeats,iops_limit", "2,4,1000,3,3000", "2,4,4000,3,16000")
    assert one["workload"]["parameters"] == {"repeats": "3", "iops_limit": "3000"}
    assert other["workload"]["parameters"] == {"repeats": "3", "iops_limit": "16000"}


def test_two_names_that_would_be_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"table.csv:3: phase 'read \[cold\]' would be read-cold, as 'read \(cold\)'"):
        documents(tmp_path, "nodes,ppn,phase,rate", "2,4,read (cold),1000", "2,4,read [cold],4000")


def test_a_repeat_that_is_there_twice_is_refused_with_its_line(tmp_path: Path) -> None:
    line = "a,5,10,md-workbench,benchmark,0,create,100,1000,0.001,0.01"
    with pytest.raises(InputError, match=r"table.csv:3: 'create' of the phase 'benchmark' .* twice with repeat 0"):
        documents(tmp_path, HEADER, line, line)
    with pytest.raises(InputError, match=r"table.csv:2: repeat is 'first'"):
        documents(tmp_path, HEADER, line.replace("benchmark,0", "benchmark,first"))


RESULTS = ("wall_s", "rank_tmean_s", "rank_tmax_s", "balance_tmin_over_tmax", "duration_s", "mib_per_s", "errors")
PLACES = {"file": "results/24-1.txt", "start": "logs/run.log", "source_path": "here", "cmd": "mdtest -n 10"}
SETTINGS = {"stripes": "4", "mix": "70/30", "mount": "/lustre01", "think_time": "0.5", "D": "10", "version": "1.2"}


def test_results_and_names_of_files_are_no_settings(tmp_path: Path) -> None:
    columns = {**{name: f"{number}.5" for number, name in enumerate(RESULTS)}, **PLACES, **SETTINGS}
    (found,) = documents(tmp_path, f"nodes,ppn,rate,{','.join(columns)}", f"1,2,3,{','.join(columns.values())}")
    assert found["workload"]["parameters"] == SETTINGS
    assert found["imported"]["facts"] == {name: columns[name] for name in (*RESULTS, *PLACES)}
    named = next(text for text in found["warnings"] if "no settings" in text)
    assert all(name in named for name in (*RESULTS, *PLACES)) and "stripes" not in named


def test_runs_that_differ_in_results_alone_are_repeats(tmp_path: Path) -> None:
    documents(tmp_path, "nodes,ppn,rate,wall_s,file", "1,2,3,4.5,a.txt", "1,2,3.1,4.4,b.txt")
    (point,) = group([Run(one) for one in (tmp_path / "r").iterdir()])
    assert len(point.runs) == 2


@pytest.mark.parametrize(
    "name", ["per_stripe", "rated", "walls", "files", "paths", "times", "osd", "iops_limit", "target_rate"]
)
def test_a_name_that_contains_a_result_is_none(name: str) -> None:
    assert not is_result(name, ["4"]) and is_result("errors_x", ["4"]) and is_result("ops_per_sec", ["4"])


@pytest.mark.parametrize("column", ["phase", "operation", "workload"])
def test_a_name_with_spaces_is_made_one(tmp_path: Path, column: str) -> None:
    (found,) = documents(tmp_path, f"nodes,ppn,rate,{column}", "1,2,3,File creation")
    names = {*(p["name"] for p in found["phases"]), found["workload"]["name"], *found["phases"][0]["latency"]}
    assert "File-creation" in names and not any(" " in name for name in names)
    assert any("'File creation' is File-creation" in text for text in found["warnings"])


def test_another_number_of_objects_is_taken_with_a_warning(tmp_path: Path) -> None:
    documents(tmp_path, "nodes,ppn,rate,objects", "1,4,10,100", "2,4,18,100", "4,4,30,100")
    fitted = iocast.calibrate(tmp_path / "r", file=tmp_path / "fitted.yaml")
    plain = iocast.predict(fitted, nodes=8, settings={"objects": 100})
    other = iocast.predict(fitted, nodes=8, settings={"objects": 200})
    assert not any("objects=" in text for text in plain.warnings)
    assert any("objects=200 was not measured, but objects=100" in text for text in other.warnings)
    assert other.phases["benchmark"].rate.value == plain.phases["benchmark"].rate.value
    with pytest.raises(InputError, match="what stripes does to them is not known. Allowed: .*objects"):
        iocast.predict(fitted, nodes=8, settings={"stripes": 200})

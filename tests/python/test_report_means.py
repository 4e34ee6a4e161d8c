# SPDX-License-Identifier: Apache-2.0
"""A server's statistics, which have means and no quantiles, stand in the report."""

from pathlib import Path

import pytest
from programs import REPOSITORY

from iocast.importers import import_files
from iocast.report import write_report
from iocast.report.sources import read_sources
from iocast.report.tables import all_tables


def test_what_a_server_did_is_a_table(tmp_path: Path) -> None:
    sample = REPOSITORY / "tests" / "samples" / "lustre" / "md_stats.txt"
    (run,) = import_files([sample], tmp_path / "run", None, {"ranks": 200, "nodes": 200})
    (table,) = [one for one in all_tables(read_sources([run])) if one.name == "means"]
    rows = {row["operation"]: row for row in table.rows}
    assert list(rows) == ["open", "close", "stat", "unlink"], "what takes most of the time first"
    assert rows["open"]["rate"] == 200 and rows["stat"]["mean"] == pytest.approx(20e-6)
    assert sum(row["share"] for row in table.rows) == pytest.approx(1)
    for row in table.rows:
        assert row["in_service"] == pytest.approx(row["rate"] * row["mean"])
    write_report([run], page := tmp_path / "r.html")
    assert "What operations took on average" in page.read_text()


def test_runs_with_quantiles_are_not_in_it(tmp_path: Path) -> None:
    runs = import_files([REPOSITORY / "tests" / "samples" / "fio" / "version-2.json"], tmp_path / "run", None, {})
    sources = read_sources(list(runs))
    assert any(one["q50"] for run in sources.runs for p in run.phases for one in p["latency"].values())
    assert not [one for one in all_tables(sources) if one.name == "means"]

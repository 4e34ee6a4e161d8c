# SPDX-License-Identifier: Apache-2.0
"""Results of benchmarks that print means and no quantiles stand in the report."""

from pathlib import Path

import pytest
from programs import REPOSITORY

from iocast.importers import import_files
from iocast.report.sources import read_sources
from iocast.report.tables import all_tables

SAMPLES = REPOSITORY / "tests" / "samples"


def test_what_operations_took_on_average_is_a_table(tmp_path: Path) -> None:
    runs = import_files([next((SAMPLES / "pgbench").iterdir())], tmp_path / "run", None, {})
    (table,) = [one for one in all_tables(read_sources(list(runs))) if one.name == "means"]
    assert table.rows and sum(row["share"] for row in table.rows) == pytest.approx(1)
    for row in table.rows:
        assert row["in_service"] == pytest.approx(row["rate"] * row["mean"])


def test_runs_with_quantiles_are_not_in_it(tmp_path: Path) -> None:
    runs = import_files([SAMPLES / "fio" / "version-2.json"], tmp_path / "run", None, {})
    sources = read_sources(list(runs))
    assert any(one["q50"] for run in sources.runs for p in run.phases for one in p["latency"].values())
    assert not [one for one in all_tables(sources) if one.name == "means"]

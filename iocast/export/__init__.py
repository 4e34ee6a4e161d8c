# SPDX-License-Identifier: Apache-2.0
"""Runs for other programs: one long table as CSV, Parquet or OpenMetrics, and the text of md-workbench
(docs/export.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from iocast.errors import InputError
from iocast.export.files import write_csv, write_openmetrics, write_parquet
from iocast.export.md_workbench import write_md_workbench
from iocast.export.table import COLUMNS, Row, rows_of
from iocast.ground.strict_yaml import allowed_sentence
from iocast.runs.run_directory import runs_in

__all__ = ["COLUMNS", "FORMATS", "Row", "export", "rows_of"]

TABLES: dict[str, Callable[[Sequence[Row], Path], None]] = {
    "csv": write_csv,
    "parquet": write_parquet,
    "openmetrics": write_openmetrics,
}
FORMATS = (*TABLES, "md-workbench")


def export(runs: Sequence[Path], format_: str, out: Path) -> None:
    """@raises InputError when a run can't be read, the format is unknown or the output exists"""
    if format_ not in FORMATS:
        raise InputError(f"There is no export format '{format_}'. {allowed_sentence(format_, FORMATS)}")
    if out.exists():
        raise InputError(f"The output '{out}' exists already; name a new one, nothing is overwritten.")
    runs = [one for run in runs for one in ([run] if (run / "run.json").is_file() else runs_in(run) or [run])]
    if format_ == "md-workbench":
        if len(runs) > 1:
            raise InputError("The text of md-workbench is about one run; export each by itself.")
        write_md_workbench(runs[0], out)
    else:
        TABLES[format_]([row for run in runs for row in rows_of(run)], out)

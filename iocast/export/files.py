# SPDX-License-Identifier: Apache-2.0
"""The long table as files. Floats are written with all their digits, so what is read back is equal."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from iocast.errors import RunError
from iocast.export.table import COLUMNS, Row
from iocast.ground.files import replacing, write_text
from iocast.wording.text import cell


NUMBERS = {"ranks": "int64", "nodes": "int64", "repeat": "int64", "rank": "int64", "at": "float64", "value": "float64"}
"""Columns that are no texts."""
LABELS = ("run", "source", "workload", "ranks", "nodes", "phase", "repeat", "operation")
"""Columns that say what a value is of."""


def write_csv(rows: Sequence[Row], out: Path) -> None:
    """Comma-separated with a header; what does not apply is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(
        ["" if value is None else repr(value) if isinstance(value, float) else cell(value) for value in row.cells()]
        for row in rows
    )
    write_text(out, text.getvalue())


def write_parquet(rows: Sequence[Row], out: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    texts = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    schema = pyarrow.schema([(name, NUMBERS.get(name, texts)) for name in COLUMNS])
    cells = [row.cells() for row in rows]
    columns = [pyarrow.array([one[i] for one in cells], type=kind) for i, kind in enumerate(schema.types)]
    table = pyarrow.table(columns, schema=schema)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with replacing(out) as file:
            parquet.write_table(table, file, compression="zstd")
    except OSError as error:
        raise RunError(f"The file '{out}' can't be written: {error.strerror or error}.") from error


def write_openmetrics(rows: Sequence[Row], out: Path) -> None:
    """OpenMetrics text 1.0: one family a quantity, and of each distribution a histogram with cumulative counts.

    A gauge's axis value `at` is a label. The sum of a histogram is that of count times mean where both are known, else
    it is left out."""
    families: dict[str, list[str]] = defaultdict(list)
    histograms: dict[tuple[tuple[str, str], ...], list[tuple[float, int]]] = defaultdict(list)
    means: dict[tuple[tuple[str, str], ...], dict[str, float]] = defaultdict(dict)
    for row in rows:
        cells = dict(zip(COLUMNS, row.cells(), strict=True))
        labels = tuple((name, str(cells[name])) for name in LABELS if cells[name] not in (None, ""))
        if row.quantity == "latency_count":
            histograms[labels].append((row.at or 0.0, int(row.value)))
            continue
        if row.quantity in ("count", "latency_mean"):
            means[labels][row.quantity] = row.value
        labels += tuple((name, repr(cells[name])) for name in ("rank", "at") if cells[name] is not None)
        families[_metric(row.quantity)].append(f"{_metric(row.quantity)}{_labels(labels)} {row.value!r}")
    lines = []
    for family, samples in families.items():
        lines += [f"# TYPE {family} gauge", *samples]
    if histograms:
        lines.append("# TYPE iocast_latency_seconds histogram")
        lines.append("# UNIT iocast_latency_seconds seconds")
    for labels, buckets in histograms.items():
        total = 0
        for seconds, count in sorted(buckets):
            total += count
            lines.append(f"iocast_latency_seconds_bucket{_labels((*labels, ('le', repr(seconds))))} {total}")
        lines.append(f"iocast_latency_seconds_bucket{_labels((*labels, ('le', '+Inf')))} {total}")
        lines.append(f"iocast_latency_seconds_count{_labels(labels)} {total}")
        known = means.get(labels, {})
        if "latency_mean" in known:
            lines.append(f"iocast_latency_seconds_sum{_labels(labels)} {known['latency_mean'] * total!r}")
    write_text(out, "\n".join([*lines, "# EOF"]) + "\n")


def _metric(quantity: str) -> str:
    return "iocast_" + "".join(c if c.isalnum() else "_" for c in quantity)


def _labels(labels: Sequence[tuple[str, str]]) -> str:
    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels) + "}"

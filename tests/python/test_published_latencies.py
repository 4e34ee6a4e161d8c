# SPDX-License-Identifier: Apache-2.0
"""Published latencies as questions, which validation/published/latencies.py puts."""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from programs import REPOSITORY

sys.path[:0] = [str(REPOSITORY / "validation"), str(REPOSITORY / "validation" / "published")]
import latencies  # noqa: E402

PLACES = {"a": (5, 10), "b": (10, 10), "c": (10, 20), "target": (25, 10)}
QUESTION = latencies.Question("a system", ("a", "b", "c"), "target")


def tables(directory: Path, scale: float = 1.0) -> latencies.Tables:
    """Of a system whose times grow with its nodes; those of the target times `scale`."""
    quantiles: list[dict[str, Any]] = []
    phases: list[dict[str, Any]] = []
    for run, (nodes, ppn) in PLACES.items():
        for repeat in range(2):
            time = 1e-4 * nodes * (1 + 0.02 * repeat) * (scale if run == "target" else 1)
            phases.append(
                {"run": run, "scope": "all", "phase": "benchmark", "bench_iter": repeat, "nodes": nodes, "ppn": ppn}
                | {"objs": 1000 * nodes * ppn, "obj_per_s": 4000 + nodes}
            )
            for op in latencies.OPERATIONS:
                row = {"run": run, "iteration": repeat, "op": op, "n_rank_files": 2, "n_obs": 2000}
                for place, column in enumerate(latencies.COLUMNS.values()):
                    row[column] = time * (place + 1)
                row["mean_s"] = 5 * time
                quantiles.append(row | {"rank_end_max_s": 1})
        quantiles.append({**quantiles[-1], "op": "precreate", "n_obs": 10000})
    directory.mkdir(exist_ok=True)
    for name, rows in (("latency_quantiles_2017", quantiles), ("parallel_2017_mdreal_phases", phases)):
        with (directory / f"{name}.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return latencies.Tables(directory)


def test_forecasts_know_nothing_of_the_target(tmp_path: Path) -> None:
    plain, other = (latencies.answered(QUESTION, tables(tmp_path / str(scale), scale)) for scale in (1.0, 3.0))
    for before, after in zip(plain, other, strict=True):
        assert after["forecast"] == before["forecast"] and after["low"] == before["low"]
        factor = 1 if before["quantity"] == "rate" else 3
        assert after["measured"] == pytest.approx(factor * before["measured"])


def test_errors_are_factors_less_one_of_what_each_scale_has(tmp_path: Path) -> None:
    rows = {row["quantity"]: row for row in latencies.answered(QUESTION, tables(tmp_path))}
    assert len(rows) == 1 + 4 * len(latencies.SHOWN)
    assert rows["stat.q95"]["last value"] == pytest.approx(1.5)  # 25 nodes for 10
    assert rows["stat.q95"]["repeats"] == pytest.approx(math.expm1(math.log(1.02) / math.sqrt(2)))
    assert latencies.off(2, 1) == pytest.approx(1) and latencies.off(1, 2) == pytest.approx(1)
    lines = latencies.table(list(rows.values()))
    assert sum("a system" in line for line in lines) == 2 and any(line.startswith("| unlink |") for line in lines)

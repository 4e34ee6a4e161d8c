# SPDX-License-Identifier: Apache-2.0
"""The rows of validation/lab/workloads.py."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from programs import REPOSITORY

sys.path.append(str(REPOSITORY / "validation" / "lab"))
import workloads  # noqa: E402


def row(quantity: str, measured: float, forecast: float, inside: bool | None) -> dict[str, Any]:
    return {"quantity": quantity, "measured": measured, "forecast": forecast, "inside": inside}


def test_errors_are_factors_and_what_a_workload_lacks_is_left_empty() -> None:
    rates = [row("rate", 100.0, 50.0, False), row("rate", 100.0, 110.0, True), row("rate", 100.0, 100.0, None)]
    load = workloads.WORKLOADS[0]
    found = workloads.row_of("nfs", load, workloads.OWN, {"points": [{"rows": rates}]})
    assert found["throughput"] == pytest.approx(0.1) and found["its largest"] == pytest.approx(1.0)
    assert (found["q50 to q95"], found["q99"], found["with intervals"], found["inside"]) == (None, None, 2, 1)
    assert (
        workloads.table([found])[2] == f"| nfs | {load.name} | {workloads.OWN} | 3 | 10.0 % | 100.0 % |  |  | 2 | 1 |"
    )
    rows = [row("create.q95", 1.0, 4.0, True), row("create.q99", 1.0, 2.0, True), row("create.q99", 0.0, 2.0, True)]
    tails = workloads.row_of("nfs", load, workloads.OWN, {"points": [{"rows": rates + rows}]})
    assert tails["q50 to q95"] == pytest.approx(3.0) and tails["q99"] == pytest.approx(1.0) and tails["inside"] == 3

# SPDX-License-Identifier: Apache-2.0
"""What the arrivals of a workload (docs/workloads/arrivals.md) mean for those who calculate with them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from iocast.errors import InputError
from iocast.records.run import OBSERVED


def number(parameters: Mapping[str, object], name: str) -> float:
    """The number of "200/s", "1.5ms" or 0.0, without its unit; 0 when there is none: good for asking whether it is
    above 0."""
    found = re.match(r"\s*([0-9.]+(?:[eE][-+]?[0-9]+)?)", str(parameters.get(name, 0)))
    return float(found.group(1)) if found else 0.0


def is_open(parameters: Mapping[str, object]) -> bool:
    """Whether operations start at moments that don't depend on the answers."""
    return number(parameters, "rate") > 0


def refuse_in_analytic(parameters: Mapping[str, object]) -> None:
    """@raises InputError for what the analytic solver has no formulas for"""
    if is_open(parameters):
        raise InputError(
            f"The analytic solver knows closed loops only, and rate = {parameters['rate']} is an open loop; ask with "
            "--solver simulate, or leave rate out."
        )


def refuse_in_calibration(name: str, pattern: str, parameters: Mapping[str, object]) -> None:
    """@raises InputError for an open loop: its service times don't say what concurrency they were measured at; and for
    an observed load, which does not show how much could have been served"""
    if pattern.endswith(OBSERVED):
        raise InputError(
            f"The run '{name}' is a load that was observed, of any program, and no measurement of the storage's "
            "capacity: nothing follows from it for more clients. 'iocast report' shows it; forecast from runs of a "
            "benchmark."
        )
    if is_open(parameters):
        raise InputError(
            f"The run '{name}' was an open loop (rate = {number(parameters, 'rate'):g}/s a rank); calibrate with runs "
            "without a rate."
        )

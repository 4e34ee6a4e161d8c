# SPDX-License-Identifier: Apache-2.0
"""How forecasts of each kind fared so far: the totals of docs/scoreboard.md, for the first screen of a report."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Record:
    """Forecasts that were compared with later measurements. `inside`: share of them within the 90 % interval;
    `error`: median size of forecast / measured - 1 of the rate."""

    forecasts: int
    inside: float
    error: float
    what: str


SCALES = ("1", "2", "3 or more")
"""Rows of "Published systems, by distance": numbers of ranks that were fitted."""
DISTANCES = {"up to 1": 1.0, "1 to 2": 2.0, "2 to 4": 4.0, "4 to 16": 16.0, "beyond 16": math.inf}
"""Rows of that table: target over largest fitted ranks, up to and with the number."""
FEWEST = 10
"""Forecasts from which on a row is a record."""


def cell(scales: int, beyond: float) -> tuple[str, str]:
    """The row of that table for a forecast from this number of scales; beyond: target over largest fitted ranks."""
    distance = next(name for name, most in DISTANCES.items() if beyond <= most * (1 + 1e-9))
    return SCALES[min(scales, len(SCALES)) - 1], distance


BY_DISTANCE = {
    ("1", "up to 1"): (66, 0.91, 0.57),
    ("1", "1 to 2"): (99, 0.87, 0.19),
    ("1", "2 to 4"): (116, 0.95, 0.29),
    ("1", "4 to 16"): (83, 0.87, 1.07),
    ("1", "beyond 16"): (37, 0.81, 1.19),
    ("2", "up to 1"): (32, 0.81, 0.2),
    ("2", "1 to 2"): (46, 0.93, 0.2),
    ("2", "2 to 4"): (32, 1.0, 0.36),
    ("2", "4 to 16"): (10, 1.0, 4.8),
    ("3 or more", "up to 1"): (39, 0.95, 0.43),
    ("3 or more", "1 to 2"): (71, 0.89, 0.18),
    ("3 or more", "2 to 4"): (71, 0.87, 0.23),
    ("3 or more", "4 to 16"): (130, 0.92, 0.48),
    ("3 or more", "beyond 16"): (52, 0.94, 0.53),
}  # fmt: skip
"""That table: forecasts, share inside and median error."""
RATES_ALONE = Record(884, 0.90, 0.40, "rates of published systems, forecast from rates alone")
"""The row "every row" of "Published systems"."""
CALIBRATED = Record(
    3360, 0.90, 0.036, "rates and latencies of 40 systems drawn at random, forecast from runs with latencies"
)
"""The row "all" of "Unknown systems"."""
CALIBRATED_REACH = (4.0, 16.0)
"""Target over largest fitted ranks in that table: 64 and 256 clients from up to 16."""


def of_rates_alone(scales: int, beyond: float) -> Record | None:
    """The record of such forecasts (see `cell`); None where there is none."""
    found = BY_DISTANCE.get(cell(scales, beyond))
    return found and Record(*found, f"rates of published systems, forecast {_case(scales, beyond)}")


def sentence_of_rates_alone(scales: int, beyond: float) -> str:
    """What that record says, or that there is none."""
    found = of_rates_alone(scales, beyond)
    return sentence(found) if found else f"Forecasts {_case(scales, beyond)} have no record."


def sentence_of_calibrated(beyond: float) -> str:
    """What the record of forecasts with latencies says, and whether it reaches so far."""
    least, most = CALIBRATED_REACH
    if least <= beyond <= most * (1 + 1e-9):
        return sentence(CALIBRATED)
    where = f"{sentence(CALIBRATED)} They were for {least:g} to {most:g} times the fitted ranks"
    return f"{where}; forecasts for {beyond:.3g} times have no record."


def _case(scales: int, beyond: float) -> str:
    """ "from 2 scales, for 4 to 16 times the fitted ranks"."""
    number, distance = cell(scales, beyond)
    return f"from {number} scale{'s' * (number != '1')} alone, for {distance} times the fitted ranks"


def sentence(record: Record) -> str:
    """What the record says of intervals and of the rate's error."""
    return (
        f"Of {record.forecasts:,} {record.what}, {100 * record.inside:.0f} % lay within their 90 % intervals; "
        f"the median error of rates was {100 * record.error:.{2 if record.error < 1 else 3}g} %."
    )

# SPDX-License-Identifier: Apache-2.0
"""How forecasts of each kind fared so far: the totals of docs/scoreboard.md, for the first screen of a report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Record:
    """Forecasts that were compared with later measurements. `inside`: share of them within the 90 % interval;
    `error`: median size of forecast / measured - 1 of the rate."""

    forecasts: int
    inside: float
    error: float
    what: str


RATES_ALONE = Record(884, 0.94, 0.38, "rates of published systems, forecast from rates alone")
"""The row "every row" of "Published systems"."""
CALIBRATED = Record(
    3360, 0.90, 0.036, "rates and latencies of 40 systems drawn at random, forecast from runs with latencies"
)
"""The row "all" of "Unknown systems"."""


def sentence(record: Record) -> str:
    """What the record says of intervals and of the rate's error."""
    return (
        f"Of {record.forecasts:,} {record.what}, {100 * record.inside:.0f} % lay within their 90 % intervals; "
        f"the median error of rates was {100 * record.error:.2g} %."
    )

# SPDX-License-Identifier: Apache-2.0
"""What the error of a forecast is, and of several: the one definition of validations, their text and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median

QUANTILES = {"q50": 0.50, "q75": 0.75, "q95": 0.95, "q99": 0.99}
"""The quantiles that forecasts are about; the maximum comes beside them: the largest latency of one repeat of the
phase, of which several repeats, runs or simulations have a geometric mean. So more repeats or runs make it surer, and
not larger."""
ERROR = "forecast / measured - 1"
"""The error of a row; a median error is that of its absolute value."""
OF_QUANTILES = f"latency quantiles {min(QUANTILES)} to {max(QUANTILES)}"
"""What a median error of quantiles is over: the largest latency, one operation's, is not among them."""


def error_of(forecast: float, measured: float) -> float:
    """The relative error of a forecast (`ERROR`)."""
    return forecast / measured - 1


def is_rate(quantity: str) -> bool:
    return quantity == "rate"


def is_quantile(quantity: str) -> bool:
    return quantity.rpartition(".")[2] in QUANTILES


def median_error(errors: Iterable[tuple[str, float | None]], which: Callable[[str], bool]) -> float | None:
    """Median size of the errors of quantities that are `which`: is_rate or is_quantile; None where none is known.

    @param errors quantity and error of each row"""
    sizes = [abs(error) for quantity, error in errors if error is not None and which(quantity)]
    return median(sizes) if sizes else None

# SPDX-License-Identifier: Apache-2.0
"""What a fitted platform misses of its own measurements, carried to a study's designs by the rule of forecasts
(docs/calibration.md): results of the measured workload are shifted by the residual; an edited system, or another
workload, has it as a doubt. So are simple rules and the ceiling of measured scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise

from iocast.forecasts.one_system import Correction
from iocast.runs.question import Question
from iocast.records.quantities import unit_of
from iocast.rules.residuals import Residuals
from iocast.runs.run_directory import QUANTITIES
from iocast.study.evaluate import Result
from iocast.study.levels import kind_of

UTILISATION = ".utilisation"


def residual(residuals: Residuals, name: str, question: Question) -> float:
    """Logarithm by which a quantity of a study is too high: that of the fitted quantity nearest to it."""
    if name == "seconds":
        return -residuals.at("rate", question)
    return residuals.at(fitted_name(name), question)


def shifted(result: Result, residuals: Residuals, question: Question) -> Result:
    """The result with its quantities, and its bounds of the rate, without what the platform misses."""
    return _times(result, lambda name: math.exp(-residual(residuals, name, question)))


def changed(result: Result, changes: Mapping[str, float]) -> Result:
    """The result changed as simple rules and the ceiling change the measured system's forecast
    (iocast/rules/applied.py). `changes`: factor by fitted quantity."""

    return _times(result, lambda name: change_of(name, changes))


def change_of(name: str, changes: Mapping[str, float]) -> float:
    """The factor of a study's quantity."""
    return 1 / changes["rate"] if name == "seconds" else changes.get(fitted_name(name), 1.0)


def fitted_name(name: str) -> str:
    """The fitted quantity nearest to one of a study: the rate, or a quantile of the operation."""
    kind = kind_of(name)
    return "rate" if kind == "rate" else f"{name.rpartition('.')[0]}.{kind}"


def _times(result: Result, factor: Callable[[str], float]) -> Result:
    if "quantities" not in result:
        return result
    quantities = {name: _scaled(name, value, factor(name)) for name, value in result["quantities"].items()}
    for op in {name.rpartition(".")[0] for name in quantities}:
        rising = [f"{op}.{q}" for q in QUANTITIES if f"{op}.{q}" in quantities]
        for lower, higher in pairwise(rising):  # shifted apart from each other, quantiles must not cross
            quantities[higher] = max(quantities[higher], quantities[lower])
    found = result | {"quantities": quantities, "stations": _stations(result, quantities)}
    correction = Correction(result["quantities"]["rate"], quantities["rate"])
    if not correction.is_close:
        # Where an operation waits at the corrected rate is not known.
        found |= {"operations": {}, "otherwise": correction.otherwise().document()}
    if "bounds" in result:
        found["bounds"] = {end: value * factor("rate") for end, value in result["bounds"].items()}
    return found


def _scaled(name: str, value: float, factor: float) -> float:
    """A quantity at `factor` times the rate, or a time that is `factor` times as long. Shares end at 100 %: beyond it a
    level on one is missed as well. A stall is the rest of a utilisation."""
    if name == "stall_share":
        return max(0.0, 1 - (1 - value) * factor)
    return min(1.0, value * factor) if unit_of(name) == "share" else value * factor


def _stations(result: Result, quantities: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """The result's stations with the utilisations that are among its quantities."""
    return {name: one | {"utilisation": quantities[f"{name}{UTILISATION}"]} for name, one in result["stations"].items()}

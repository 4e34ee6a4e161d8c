# SPDX-License-Identifier: Apache-2.0
"""The quantities of a phase with their intervals, and what simple rules say of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import numpy as np
from scipy.special import ndtri

from iocast.rules import applied as rules, baselines
from iocast.rules.accuracy import QUANTILES
from iocast.platforms.fitted import Fitted, discrepancy_at
from iocast.rules.intervals import interval
from iocast.runs.measured import speaks_of
from iocast.runs.operations import Shares
from iocast.runs.question import Question
from iocast.records.forecast import ENDS, BestRule, Distribution, Ends, OperationForecast, Range, scaled
from iocast.rules.residuals import Residuals, kind_of
from iocast.records.fitted import FitRow, FittedSection
from iocast.forecasts.request import Samples


def by_operation(shares: Shares, rate: Ends) -> dict[str, OperationForecast]:
    """Of each operation its share, rate, and where it moves data bytes of one and bytes a second; intervals are the
    whole rate's, times its share."""

    answer: dict[str, OperationForecast] = {}
    for op, share in shares.share.items():
        answer[op] = {"share": share, "rate": scaled(rate, share)}
        if each := shares.bytes_each.get(op):
            answer[op]["bytes_each"], answer[op]["bytes_per_second"] = each, scaled(rate, share * each)
    return answer


def phase_seconds(shares: Shares, rate: Ends) -> Ends | None:
    """How long the phase lasts at this rate; None where its number of operations isn't known."""
    if not shares.share:
        return None
    value, low, high = (shares.operations / one if (one := rate[end]) else None for end in ENDS)
    return cast(Ends, {"value": value, "low": high, "high": low})  # at a rate of 0 no value


Rows = list[FitRow]
"""What is missed at measured points, as `fitted.fit` has it (docs/answers.md)."""


def missed_by(platform: Fitted, question: Question, names: Iterable[str], rows: Rows | None = None) -> dict[str, float]:
    """What the platform misses of the workload and phase that it was fitted to, as a logarithm by quantity, also where
    it is edited: what-ifs are compared with the system as it is. Of another phase or workload that is not known. What
    few rates are missed by is left to the belief about storage: carried on, it made forecasts of published systems
    worse. rows: of the analytic solver, where it answers"""
    if platform.rates_alone:
        return dict.fromkeys(names, 0.0)
    residuals = Residuals.of_fitted(platform.fitted, question, rows)
    return {name: residuals.at(name, question) for name in names}


def doubt_of(platform: Fitted, question: Question, names: Iterable[str], rows: Rows | None = None) -> dict[str, float]:
    """How far what the platform misses may be something else here, as the standard deviation of a logarithm: nothing
    for the system, workload and phase that were measured; for an edited system or another workload as much as is missed
    at the largest scale. What the analytic solver misses (`rows`) is in no discrepancy, and changes with the scale."""
    if not platform.fitted or platform.rates_alone:
        return {}
    known = speaks_of(platform.fitted, question)
    if known and not platform.edited and rows is None:
        return {}
    residuals = Residuals.of_fitted(platform.fitted, question if known else None, rows)
    if known and not platform.edited:
        return {name: residuals.walked(name, question) for name in names}
    return {name: residuals.largest(name, kind_of(name)) for name in names}


def shifted_distribution(distribution: Distribution, quantities: Mapping[str, Ends], op: str) -> Distribution:
    """A distribution through the printed quantiles, shifted between them by straight lines over the normal scores."""
    at = dict(zip(distribution["probability"], distribution["seconds"], strict=True))
    known = {
        p: math.log(quantities[f"{op}.{name}"]["value"] / at[p])
        for name, p in QUANTILES.items()
        if at.get(p, 0.0) > 0 and f"{op}.{name}" in quantities and quantities[f"{op}.{name}"]["value"] > 0
    }
    if not known:
        return distribution
    shift = np.interp(ndtri(distribution["probability"]), ndtri(list(known)), list(known.values()))
    return {
        "probability": distribution["probability"],
        "seconds": np.maximum.accumulate(distribution["seconds"] * np.exp(shift)).tolist(),
    }


def with_intervals(
    fitted: FittedSection,
    samples: Samples,
    missed: dict[str, float],
    ranks: int,
    level: float,
    doubt: dict[str, float] | None = None,
) -> dict[str, Ends]:
    """Value, low and high by quantity. On the logarithmic scale each draw is blurred by the discrepancy that the
    held-out scale showed, grown with the distance beyond the fitted scales, and by what two measurements of one thing
    differ by; the value is blurred likewise, and the interval holds `level` of either. The held-out rows are few, hence
    Student's t. All is shifted by what the platform misses of its own measurements, `missed`; where it is not known to
    miss the same here, that is an error more, `doubt`. Without a calibration there is no interval."""
    if not fitted:
        return {name: {"value": value, "low": None, "high": None} for name, value in samples["value"].items()}
    result: dict[str, Ends] = {}
    for name, model in samples["value"].items():
        kind = kind_of(name)
        if kind not in fitted["discrepancy"]:
            continue  # nothing of the kind was fitted
        error, degrees = discrepancy_at(fitted, kind, ranks)
        error = math.hypot(error, (doubt or {}).get(name, 0.0))
        low, high = interval(model, samples["ensemble"][name], error, degrees, fitted["noise"][kind], level)
        value = model * math.exp(-missed[name])
        result[name] = {"value": value, "low": value * low, "high": value * high, "model": model}
    return rules.rising(result)


def simple_rules(
    line: Sequence[baselines.Point], question: Question, names: list[str]
) -> dict[str, dict[str, float | Range]]:
    """What simple rules say of a question from the measurements on its line."""
    printed = baselines.forecast(line, question.placement.ranks, question.waiting_factor, question.think_time)
    return {
        model: {
            name: ({"low": value[0], "high": value[1]} if isinstance(value, tuple) else value)
            for name, value in answers.items()
            if name in names
        }
        for model, answers in printed.items()
    }


def best_rule(line: Sequence[baselines.Point]) -> BestRule | None:
    best = baselines.best_rule(line)
    return None if best is None else {"name": best.name, "error": best.error}

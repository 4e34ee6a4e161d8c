# SPDX-License-Identifier: Apache-2.0
"""Latencies where no lone rank was measured, so that no platform could be fitted to them: those of the measured scale
nearest to the question, stretched as the mean response must be at the forecast rate. N/(1+T) ranks inside operations at
X operations a second take N/(1+T)/X on average (Little's law); all quantiles are taken to grow as the mean does."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from iocast.rules import growth
from iocast.records.fitted import FittedPoint
from iocast.records.forecast import Ends

STRETCHED = ("q50", "q75", "q95", "q99")
OFF = {"q50": 0.2, "q75": 0.2, "q95": 0.2, "q99": 0.3}
"""Standard deviation of the logarithm over a doubling of the ranks, where no second scale was measured: as of a
calibration that nothing checks."""
WORTH = 2
"""Scales that this belief counts as, beside those that were measured."""
LEAST = 0.5
"""Doublings that a question is away, at least."""


def latencies(
    points: Sequence[FittedPoint], concurrency: float, found: growth.Forecast, changes: Sequence[float], level: float
) -> dict[str, Ends]:
    """By quantity ("create.q50") value, low and high in seconds; nothing where no point has latencies.

    @param points of a fitted campaign, with `ranks`, `waiting_factor`, `rate` and `latency`
    @param concurrency ranks / (1 + waiting factor) of the question
    @param changes logarithms by which an edit changes the rate, each as likely as the others"""
    known = sorted((point for point in points if point["latency"]), key=_inside)
    if not known:
        return {}
    base = min(known, key=lambda point: abs(math.log(concurrency / _inside(point))))
    away = math.log(concurrency / _inside(base))
    rates = np.add.outer([found.quantile(p) for p in (np.arange(200) + 0.5) / 200], changes).ravel()
    stretch = math.log(concurrency * base["rate"] / _inside(base))  # less the logarithm of the rate
    least, most = found.tails(level)
    noise = ndtri((np.arange(50) + 0.5) / 50)
    doublings = max(abs(away) / math.log(2), LEAST)
    off = {which: spread * math.sqrt(doublings) for which, spread in _spreads(known).items()}
    result: dict[str, Ends] = {}
    for op, own in base["latency"].items():
        for which in STRETCHED:
            if not own.get(which):
                continue
            value = math.log(own[which]) + stretch - found.value - float(np.median(changes))
            spread = np.add.outer(math.log(own[which]) + stretch - rates, off[which] * noise)
            low, high = np.quantile(spread, (1 - most, 1 - least))
            result[f"{op}.{which}"] = {
                "value": math.exp(value), "low": math.exp(low), "high": math.exp(high), "model": math.exp(value),
            }  # fmt: skip
    return result


def _inside(point: FittedPoint) -> float:
    return float(point["ranks"] / (1 + point["waiting_factor"]))


def _spreads(known: Sequence[FittedPoint]) -> dict[str, float]:
    """By kind of quantile, the standard deviation of the logarithm over a doubling: what is believed, and by how much
    each scale's latencies miss those of the next one at its measured rate."""
    squares = {which: [OFF[which] ** 2] * WORTH for which in STRETCHED}
    for before, after in zip(known, known[1:]):
        if _inside(after) <= _inside(before):
            continue
        doublings = max(math.log2(_inside(after) / _inside(before)), LEAST)
        stretch = math.log(_inside(after) * before["rate"] / (_inside(before) * after["rate"]))
        for which in STRETCHED:
            missed = [
                math.log(own[which] / later[which]) + stretch
                for op, own in before["latency"].items()
                if own.get(which) and (later := after["latency"].get(op, {})).get(which)
            ]
            if missed:
                squares[which].append(float(np.mean(np.square(missed))) / doublings)
    return {which: math.sqrt(float(np.mean(values))) for which, values in squares.items()}

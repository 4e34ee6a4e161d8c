# SPDX-License-Identifier: Apache-2.0
"""Latencies where no lone rank was measured, so that no platform could be fitted to them: those of a measured scale,
stretched as the mean response must be at the forecast rate. N/(1+T) ranks inside operations at X operations a second
take N/(1+T)/X on average (Little's law); all quantiles are taken to grow as the mean does.

The scale is the nearest on the question's line, with as many ranks a node or as many nodes; q99 follows the nearest
number of ranks, wherever they lie. Measured scales that differ in both nodes and ranks a node tell more: what a
quantile takes that no other rank shares, and what it takes for each node and for each rank. The value is then the
geometric mean of this law's and the stretched one. Neither is nearer for all systems (docs/scoreboard.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.special import ndtri

from iocast.rules import growth
from iocast.records.fitted import FittedPoint
from iocast.records.forecast import Ends

STRETCHED = ("q50", "q75", "q95", "q99")
BY_RANKS = ("q99",)
"""Quantiles that grow with all ranks: a queue of theirs is the longest wherever they lie."""
OFF = {"q50": 0.2, "q75": 0.2, "q95": 0.2, "q99": 0.3}
"""Standard deviation of the logarithm over a doubling of the ranks, where no second scale was measured: as of a
calibration that nothing checks."""
WORTH = 2
"""Scales that this belief counts as, beside those that were measured."""
LEAST = 0.5
"""Doublings that a question is away, at least."""
TERMS = 3
"""Of the law: a time of its own, one for each node, one for each rank."""


def latencies(
    points: Sequence[FittedPoint],
    target: growth.Placement,
    found: growth.Forecast,
    changes: Sequence[float],
    level: float,
) -> dict[str, Ends]:
    """By quantity ("create.q50") value, low and high in seconds; nothing where no point has latencies.

    @param points of a fitted campaign, with `nodes`, `ranks`, `waiting_factor`, `rate` and `latency`
    @param target its ranks are those inside an operation
    @param changes logarithms by which an edit changes the rate, each as likely as the others"""
    known = sorted((point for point in points if point["latency"]), key=_inside)
    if not known:
        return {}
    rates = np.add.outer([found.quantile(p) for p in (np.arange(200) + 0.5) / 200], changes).ravel()
    least, most = found.tails(level)
    noise = ndtri((np.arange(50) + 0.5) / 50)
    spreads, change = _spreads(known), float(np.median(changes))
    result: dict[str, Ends] = {}
    for op in dict.fromkeys(op for point in known for op in point["latency"]):
        below = [-math.inf] * 3  # quantiles of different scales may cross; none is below a lower one
        for which in STRETCHED:
            own = [point for point in known if point["latency"].get(op, {}).get(which)]
            if not own:
                continue
            near = own if which in BY_RANKS else _on_the_line(own, target) or own
            base = min(near, key=lambda point: abs(math.log(target.ranks / _inside(point))))
            doublings = max(abs(math.log2(target.ranks / _inside(base))), LEAST)
            off = spreads[which] * math.sqrt(doublings)
            stretch = math.log(base["latency"][op][which] * target.ranks * base["rate"] / _inside(base))
            law = None if which in BY_RANKS else _by_law(own, f"{op}.{which}", target)
            moved = 0.0 if law is None else (math.log(law) - (stretch - found.value)) / 2
            value = stretch - found.value - change + moved
            spread = np.add.outer(stretch + moved - rates, off * noise)
            low, high = np.quantile(spread, (1 - most, 1 - least))
            below = [max(pair) for pair in zip((value, low, high), below, strict=True)]
            value, low, high = (math.exp(one) for one in below)
            result[f"{op}.{which}"] = {"value": value, "low": low, "high": high, "model": value}
    return result


def _inside(point: FittedPoint) -> float:
    return float(point["ranks"] / (1 + point["waiting_factor"]))


def _on_the_line(known: Sequence[FittedPoint], target: growth.Placement) -> list[FittedPoint]:
    """Those with as many ranks inside operations on each node, or on as many nodes."""
    return [
        point
        for point in known
        if point["nodes"] == target.nodes
        or math.isclose(_inside(point) / point["nodes"], target.ranks_per_node, rel_tol=1e-9)
    ]


def _by_law(known: Sequence[FittedPoint], quantity: str, target: growth.Placement) -> float | None:
    """The quantity at the target by a time of its own, one for each node and one for each rank, none of them negative:
    least squares of the factors that it misses. None where the scales can't tell them apart."""
    op, _, which = quantity.rpartition(".")
    measured = np.array([point["latency"][op][which] for point in known])
    terms = np.array([_terms(point["nodes"], _inside(point)) for point in known])
    if np.linalg.matrix_rank(terms / terms.max(axis=0)) < TERMS:
        return None
    shares, _ = nnls(terms / measured[:, None], np.ones(len(measured)))
    value = float(_terms(target.nodes, target.ranks) @ shares)
    return value if value > 0 else None


def _terms(nodes: int, ranks: float) -> NDArray[np.float64]:
    return np.array([1.0, float(nodes), ranks])


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

# SPDX-License-Identifier: Apache-2.0
"""Forecasts by a ruler: the simple models that any better one has to beat.

All take points measured at small scale and answer for a larger one, in the same keys: "rate" (operations per second
of all ranks) and "<operation>.<q50|q75|q95|q99|max>" (seconds). A rate at waiting factor T stands for a rate at
N/(1+T) ranks that never think, by the identity that a rank is inside an operation 1/(1+T) of its time; the closed
queue treats T itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, least_squares
from scipy.special import gammainc

from iocast.analytic.product_form import ClosedNetwork, Station, servers
from iocast.errors import InputError

Array = NDArray[np.float64]
Forecast = dict[str, float | tuple[float, float]]

NAMES = ("q50", "q75", "q95", "q99", "max")


@dataclass(frozen=True)
class Point:
    """One measurement: operations per second of all ranks; by operation mean, q50, q75, q95, q99, max and count."""

    ranks: int
    waiting_factor: float
    rate: float
    operations: Mapping[str, Mapping[str, float]]

    @property
    def concurrency(self) -> float:
        """Mean ranks inside an operation."""
        return self.ranks / (1 + self.waiting_factor)


def forecast(points: Sequence[Point], ranks: int, waiting_factor: float = 0.0) -> dict[str, Forecast]:
    """What every baseline says, by its name. Raises InputError when the points can't carry a forecast."""
    return {name: model(points, ranks, waiting_factor) for name, model in BASELINES.items()}


def asymptotic_bounds(points: Sequence[Point], ranks: int, waiting_factor: float = 0.0) -> Forecast:
    """Intervals: no more than the smallest scale's rate per rank allows, no less than the highest rate measured (or
    that, if less).

    Response times lie between those at the smallest scale and what a saturation at the highest measured rate would
    make of them.
    """
    ordered = _checked(points)
    first, q = ordered[0], ranks / (1 + waiting_factor)
    free = first.rate / first.concurrency * q
    measured = max(p.rate for p in ordered)
    result: Forecast = {"rate": (min(free, measured), free)}
    alone, saturated = first.concurrency / first.rate, max(q / measured, first.concurrency / first.rate)
    for key, value in _latencies(first).items():
        result[key] = (value, value * saturated / alone)
    return result


def closed_queue(points: Sequence[Point], ranks: int, waiting_factor: float = 0.0) -> Forecast:
    """Closed M/M/c: service S at c servers and a delay Z inside each operation, by least squares on log rate.

    Response times by the arrival theorem. Each operation keeps its share of the mean, and its quantiles' ratio to the
    model's at the largest measured scale.
    """
    ordered = _checked(points)
    largest = ordered[-1]
    best: tuple[float, float, float, int] | None = None
    mean = min(p.concurrency / p.rate for p in ordered)
    highest = max(p.rate for p in ordered)
    logs = np.log([p.rate for p in ordered])
    choices = [c for c in (2**k for k in range(11)) if c / highest <= 4 * mean] or [1]

    def miss(x: Array, c: int) -> Array:
        return (
            np.array(
                [
                    math.log(_cycle(p.ranks, p.waiting_factor, float(np.exp(x[0])), float(np.exp(x[1])), c)[0])
                    for p in ordered
                ]
            )
            - logs
        )

    for c in choices:
        for share in (0.9, 0.5):
            start = np.log([mean * share, mean * (1 - share)])
            fit = least_squares(miss, start, args=(c,), bounds=(start - 12, start + 12), x_scale=0.3)
            if best is None or fit.cost < best[0] * (1 - 1e-3) - 1e-12:
                best = (float(fit.cost), float(np.exp(fit.x[0])), float(np.exp(fit.x[1])), c)
    assert best is not None
    _, service, delay, c = best
    rate, response = _cycle(ranks, waiting_factor, service, delay, c)
    _, before = _cycle(largest.ranks, largest.waiting_factor, service, delay, c)
    result: Forecast = {"rate": rate}
    for name, measured in largest.operations.items():
        count = float(measured.get("count", 1)) * ranks / largest.ranks
        for key in NAMES:
            if measured.get(key) is None:
                continue
            p, q = _probability(key, float(measured.get("count", 1))), _probability(key, count)
            result[f"{name}.{key}"] = float(measured[key]) * response(q) / before(p)
    return result


def universal_scalability_law(points: Sequence[Point], ranks: int, waiting_factor: float = 0.0) -> Forecast:
    """Gunther's law as a curve of the rate over concurrency, by least squares on log rate; responses grow as N/X."""
    ordered = _checked(points)
    q, logs = np.array([p.concurrency for p in ordered]), np.log([p.rate for p in ordered])

    def log_rate(x: Array, n: Array | float) -> Array:
        return np.asarray(
            x[0]
            + np.log(n)
            - np.log1p(x[1] * np.maximum(np.asarray(n) - 1, 0) + x[2] * n * np.maximum(np.asarray(n) - 1, 0))
        )

    fit = least_squares(
        lambda x: log_rate(x, q) - logs,
        [logs[0] - math.log(q[0]), 0.01, 1e-5],
        bounds=([-60, 0, 0], [60, 100, 10]),
        x_scale=[1, 0.1, 1e-3],
    )
    rate = float(np.exp(log_rate(fit.x, ranks / (1 + waiting_factor))))
    return _with_scaled_latencies(ordered[-1], rate, ranks, waiting_factor)


def straight_line(points: Sequence[Point], ranks: int, waiting_factor: float = 0.0) -> Forecast:
    """A line through the last two scales, for the rate and for each latency; never below zero."""
    ordered = _checked(points)
    a, b, q = ordered[-2], ordered[-1], ranks / (1 + waiting_factor)
    reach = (q - a.concurrency) / (b.concurrency - a.concurrency)
    result: Forecast = {"rate": max(a.rate + reach * (b.rate - a.rate), 0.0)}
    before = _latencies(a)
    for key, value in _latencies(b).items():
        result[key] = max(before.get(key, value) + reach * (value - before.get(key, value)), 0.0)
    return result


def last_value(points: Sequence[Point], ranks: int, waiting_factor: float = 0.0) -> Forecast:
    """The system is saturated already: the rate stays, latencies grow with the ranks."""
    ordered = _checked(points)
    return _with_scaled_latencies(ordered[-1], ordered[-1].rate, ranks, waiting_factor)


BASELINES: dict[str, Callable[[Sequence[Point], int, float], Forecast]] = {
    "asymptotic bounds": asymptotic_bounds,
    "closed M/M/c": closed_queue,
    "universal scalability law": universal_scalability_law,
    "straight line": straight_line,
    "last value": last_value,
}


def _checked(points: Sequence[Point]) -> list[Point]:
    """One point for each concurrency, ascending: repeats by their mean rate, latencies of the one nearest to it."""
    for p in points:
        if p.ranks < 1 or not p.waiting_factor >= 0 or not (p.rate > 0 and math.isfinite(p.rate)):
            raise InputError(
                f"A measured point has {p.ranks} ranks, waiting factor {p.waiting_factor} and rate {p.rate}; it needs "
                "at least one rank, a factor of zero or more and a rate above zero."
            )
    scales: dict[tuple[int, float], list[Point]] = {}
    for p in points:
        scales.setdefault((p.ranks, p.waiting_factor), []).append(p)
    merged: dict[float, Point] = {}
    for (ranks, factor), same in sorted(scales.items(), key=lambda entry: -entry[0][1]):
        rate = math.exp(sum(math.log(p.rate) for p in same) / len(same))
        nearest = min(same, key=lambda p: abs(p.rate - rate))
        merged[round(ranks / (1 + factor), 9)] = Point(ranks, factor, rate, nearest.operations)
    if len(merged) < 2:
        raise InputError(
            "A forecast needs measurements at two or more numbers of ranks (or waiting factors); there are fewer."
        )
    return [merged[q] for q in sorted(merged)]


def _latencies(point: Point) -> dict[str, float]:
    """Those that are known: imported measurements may lack some."""
    return {f"{name}.{key}": float(values[key]) for name, values in point.operations.items() for key in NAMES if values.get(key) is not None}


def _with_scaled_latencies(largest: Point, rate: float, ranks: int, waiting_factor: float) -> Forecast:
    """Latencies of the largest scale, times the growth of the mean response N / (1+T) / X."""
    growth = ranks / (1 + waiting_factor) / rate / (largest.concurrency / largest.rate)
    return {"rate": rate, **{key: value * growth for key, value in _latencies(largest).items()}}


def _probability(key: str, count: float) -> float:
    """Where a quantile lies; for the maximum, the median of that of `count` operations."""
    return 0.5 ** (1 / max(count, 1.0)) if key == "max" else float(key[1:]) / 100


def _cycle(ranks: int, factor: float, service: float, delay: float, c: int) -> tuple[float, Callable[[float], float]]:
    """(rate, quantile function of the response) of ranks at an M/M/c queue with a delay inside and T thinking."""
    station = Station("queue", service, servers(c))

    def gap(think: float) -> float:
        return think - factor * (ranks / ClosedNetwork([station], delay + think, ranks).throughput - think)

    think = 0.0
    if factor > 0:
        think = float(brentq(gap, 0.0, factor * (delay + service * (ranks + 1)) * 1.01, rtol=1e-10))
    network = ClosedNetwork([station], delay + think, ranks)
    first, p = network.queue_lengths("queue", seen_by_arrival=True)
    ahead = np.maximum(np.arange(first, first + len(p)) - c + 1, 0)
    kept = p > 1e-14
    ahead, p = ahead[kept].astype(np.float64), p[kept]

    def quantile(q: float) -> float:
        def above(t: float) -> float:
            return q - float(np.dot(p, _sojourn_cdf(ahead, t, service, c)))

        most = service
        while above(most) > 0 and most < 1e12 * service:
            most *= 2
        return delay + float(brentq(above, 0.0, most, rtol=1e-9))

    return network.throughput, quantile


def _sojourn_cdf(ahead: Array, t: float, service: float, c: int) -> Array:
    """P(Erlang(k, c/S) + Exp(1/S) <= t) for k = `ahead`.

    = P(Erlang <= t) - exp(-t/S) r^k P(Erlang(k, (c-1)/S) <= t), r = c/(c-1); for one server Erlang(k+1, 1/S).
    """
    if c == 1:
        return np.asarray(gammainc(ahead + 1, t / service))
    waited = np.where(ahead > 0, gammainc(np.maximum(ahead, 1), c * t / service), 1.0)
    slower = np.where(ahead > 0, gammainc(np.maximum(ahead, 1), (c - 1) * t / service), 1.0)
    with np.errstate(divide="ignore", over="ignore"):
        logs = np.log(slower) + ahead * math.log(c / (c - 1)) - t / service
    return np.asarray(np.maximum(waited - np.exp(np.minimum(logs, 0.0)), 0.0))

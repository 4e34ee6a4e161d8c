# SPDX-License-Identifier: Apache-2.0
"""Forecasts by a ruler: the simple models that any better one has to beat.

All take points measured at small scale and answer for a larger one, in the same keys: "rate" (operations per second
of all ranks) and "<operation>.<q50|q75|q95|q99|max>" (seconds). Ranks that wait T times an operation's response and
then a think time z are (N - X z) / (1+T) inside an operation (Little's law): the rate X of a curve over concurrency is
where both meet. The closed queue treats T and z itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, least_squares
from scipy.special import gammainc, gammaln

from iocast.analytic.product_form import ClosedNetwork, Station, servers
from iocast.errors import InputError

Array = NDArray[np.float64]
Forecast = dict[str, float | tuple[float, float]]

NAMES = ("q50", "q75", "q95", "q99", "max")
BEYOND = 1.05
"""Factor by which a rate must lie outside bounds to be called outside: what repeats of a measurement differ by."""
STEPS = 7
"""Numbers of servers that are tried at once between two others."""


@dataclass(frozen=True)
class Point:
    """One measurement: operations per second of all ranks; by operation mean, q50, q75, q95, q99, max and count."""

    ranks: int
    waiting_factor: float
    rate: float
    operations: Mapping[str, Mapping[str, float]]
    think_time: float = 0.0
    """Seconds after each operation, beside the waiting factor's; a mean."""

    @property
    def concurrency(self) -> float:
        """Mean ranks inside an operation."""
        return _inside(self.ranks, self.waiting_factor, self.think_time, self.rate)

    @property
    def response(self) -> float:
        """Mean seconds of an operation."""
        return self.concurrency / self.rate


def forecast(
    points: Sequence[Point], ranks: int, waiting_factor: float = 0.0, think_time: float = 0.0
) -> dict[str, Forecast]:
    """What every baseline says, by its name; of one scale its value and bounds alone. The points are on one line: of as
    many ranks on each node, or on as many nodes. Raises InputError for points that can't be."""
    several = len(_merged(points)) > 1
    names = BASELINES if several else ("last value", "asymptotic bounds")
    found = {name: BASELINES[name](points, ranks, waiting_factor, think_time) for name in names} if points else {}
    return {name: one for name, one in found.items() if one}


def asymptotic_bounds(
    points: Sequence[Point], ranks: int, waiting_factor: float = 0.0, think_time: float = 0.0
) -> Forecast:
    """Intervals: no more than the smallest scale's rate per rank allows; no less than a rate curve through 0 that is
    concave and never falls has to be, given each measurement: its rate with more ranks, its rate per rank with fewer.
    Of points with the waiting factor and think time alone: with others as many ranks are inside an operation on
    average, and not always. Empty without such points, below all of them, and where one of them is outside the bounds
    that the others set, so that the curve is none of these.

    Response times lie between those at the smallest scale and what a saturation at that lower bound would
    make of them.
    """
    own = [p for p in points if (p.waiting_factor, p.think_time) == (waiting_factor, think_time)]
    ordered = _merged(own)
    if not ordered or ranks < ordered[0].ranks or any(_outside(p, ordered) for p in ordered):
        return {}
    first = ordered[0]
    least, free = _bounds(ordered, ranks)
    result: Forecast = {"rate": (least, free)}
    alone = first.response
    saturated = max(_inside(ranks, waiting_factor, think_time, least) / least, alone)
    for key, value in _latencies(first).items():
        result[key] = (value, value * saturated / alone)
    return result


def _bounds(ordered: Sequence[Point], ranks: int) -> tuple[float, float]:
    """Of the rate; points in order, of one waiting factor and think time."""
    free = ordered[0].rate * ranks / ordered[0].ranks
    return min(free, max(p.rate * min(1.0, ranks / p.ranks) for p in ordered)), free


def _outside(point: Point, ordered: Sequence[Point]) -> bool:
    low, high = _bounds(ordered, point.ranks)
    return not low / BEYOND <= point.rate <= high * BEYOND


def closed_queue(points: Sequence[Point], ranks: int, waiting_factor: float = 0.0, think_time: float = 0.0) -> Forecast:
    """Closed M/M/c: service S at c servers, of any number, and a delay Z inside each operation, by least squares on log
    rate.

    Response times by the arrival theorem. Each operation keeps its share of the mean, and its quantiles' ratio to the
    model's at the largest measured scale.
    """
    ordered = _checked(points)
    largest = ordered[-1]
    service, delay, c = _fitted_queue(tuple((p.ranks, p.waiting_factor, p.think_time, p.rate) for p in ordered))
    rate, response = _cycle(ranks, waiting_factor, think_time, service, delay, c)
    _, before = _cycle(largest.ranks, largest.waiting_factor, largest.think_time, service, delay, c)
    result: Forecast = {"rate": rate}
    for name, measured in largest.operations.items():
        count = float(measured.get("count", 1)) * ranks / largest.ranks
        for key in NAMES:
            if measured.get(key) is None:
                continue
            p, q = _probability(key, float(measured.get("count", 1))), _probability(key, count)
            result[f"{name}.{key}"] = float(measured[key]) * response(q) / before(p)
    return result


@lru_cache(maxsize=64)  # the same for each target
def _fitted_queue(loads: tuple[tuple[int, float, float, float], ...]) -> tuple[float, float, int]:
    """Service, delay and number of servers for (ranks, waiting factor, think time, rate) in order of concurrency."""
    mean = min(_inside(*load) / load[3] for load in loads)
    logs = np.log([rate for *_, rate in loads])

    @lru_cache(maxsize=None)
    def fitted(c: int) -> tuple[float, float, float]:
        """Cost, service and delay with c servers."""

        def miss(x: Array) -> Array:
            service, delay = float(np.exp(x[0])), float(np.exp(x[1]))
            return np.log([_rate(ranks, factor, think, service, delay, c) for ranks, factor, think, _ in loads]) - logs

        fits = []
        for share in (0.9, 0.5):
            start = np.log([mean * share, mean * (1 - share)])
            # A delay that goes to zero would go on for ever on its logarithm.
            fits.append(least_squares(miss, start, bounds=(start - 12, start + 12), x_scale=0.3, max_nfev=40))
        best = min(fits, key=lambda fit: float(fit.cost))
        return float(best.cost), float(np.exp(best.x[0])), float(np.exp(best.x[1]))

    # With more servers than ranks nobody waits, and servers that are never busy can't be seen.
    busy = max(rate for *_, rate in loads) * mean
    most = max(1, min(max(ranks for ranks, *_ in loads), math.ceil(4 * busy)))
    c = _least(lambda servers: fitted(servers)[0], most)
    _, service, delay = fitted(c)
    return service, delay, c


def _least(cost: Callable[[int], float], most: int) -> int:
    """The number from 1 to `most` of least cost, the smallest of those that tie: powers of two, then numbers between
    the best one's neighbours, by ever smaller steps until each of its own neighbours was tried. For a cost that falls
    to its least and then rises."""
    tried: list[int] = sorted({most, *(2**k for k in range(most.bit_length()))})
    while True:
        best = tried[0]
        for number in tried[1:]:
            if cost(number) < cost(best) * (1 - 1e-3) - 1e-12:
                best = number
        place = tried.index(best)
        low, high = tried[max(0, place - 1)], tried[min(len(tried) - 1, place + 1)]
        if max(best - low, high - best) <= 1:
            return best
        tried = sorted({best, *np.linspace(low, high, STEPS).round().astype(int).tolist()})


def universal_scalability_law(
    points: Sequence[Point], ranks: int, waiting_factor: float = 0.0, think_time: float = 0.0
) -> Forecast:
    """Gunther's law as a curve of the rate over concurrency, by least squares on log rate; responses grow as N/X."""
    ordered = _checked(points)
    q, logs = np.array([p.concurrency for p in ordered]), np.log([p.rate for p in ordered])

    def log_rate(x: Array, n: Array | float) -> Array:
        return np.asarray(
            x[0]
            + np.log(n)
            - np.log1p(x[1] * np.maximum(np.asarray(n) - 1, 0) + x[2] * n * np.maximum(np.asarray(n) - 1, 0))
        )

    def misses(x: Array) -> Array:
        return log_rate(x, q) - logs

    fit = least_squares(
        misses, [logs[0] - math.log(q[0]), 0.01, 1e-5], bounds=([-60, 0, 0], [60, 100, 10]), x_scale=[1, 0.1, 1e-3]
    )
    rate = _where_they_meet(lambda n: float(np.exp(log_rate(fit.x, n))), ranks, waiting_factor, think_time)
    return _with_scaled_latencies(ordered[-1], rate, ranks, waiting_factor, think_time)


def straight_line(
    points: Sequence[Point], ranks: int, waiting_factor: float = 0.0, think_time: float = 0.0
) -> Forecast:
    """A line through the last two scales, for the rate and for each latency; never below zero."""
    ordered = _checked(points)
    a, b = ordered[-2], ordered[-1]

    def rate_at(n: float) -> float:
        return max(a.rate + (n - a.concurrency) / (b.concurrency - a.concurrency) * (b.rate - a.rate), 0.0)

    rate = _where_they_meet(rate_at, ranks, waiting_factor, think_time)
    reach = (_inside(ranks, waiting_factor, think_time, rate) - a.concurrency) / (b.concurrency - a.concurrency)
    result: Forecast = {"rate": rate}
    before = _latencies(a)
    for key, value in _latencies(b).items():
        result[key] = max(before.get(key, value) + reach * (value - before.get(key, value)), 0.0)
    return result


def last_value(points: Sequence[Point], ranks: int, waiting_factor: float = 0.0, think_time: float = 0.0) -> Forecast:
    """The system is saturated already: the rate stays, latencies grow with the ranks. Ranks that think can't have more
    than their think times allow."""
    ordered = _merged(points)
    rate = ordered[-1].rate
    if think_time > 0:
        rate = min(rate, ranks / (think_time + ordered[-1].response * (1 + waiting_factor)))
    return _with_scaled_latencies(ordered[-1], rate, ranks, waiting_factor, think_time)


def half_slope(points: Sequence[Point], ranks: int, waiting_factor: float = 0.0, think_time: float = 0.0) -> Forecast:
    """The rate grows on with half of the logarithmic slope between the last two scales; latencies as N/X. No ruler
    beside forecasts, but a part of blends."""
    ordered = by_concurrency(points)
    a, b = ordered[-2], ordered[-1]
    half = max(0.0, 0.5 * math.log(b.rate / a.rate) / math.log(b.concurrency / a.concurrency))
    rate = _where_they_meet(lambda n: b.rate * (n / b.concurrency) ** half, ranks, waiting_factor, think_time)
    return _with_scaled_latencies(b, rate, ranks, waiting_factor, think_time)


def scaled(
    points: Sequence[Point], rate: float, ranks: int, waiting_factor: float = 0.0, think_time: float = 0.0
) -> Forecast:
    """A rate with the latencies of the largest scale, grown as the mean response must at that rate (Little's law)."""
    return _with_scaled_latencies(by_concurrency(points)[-1], rate, ranks, waiting_factor, think_time)


def by_concurrency(points: Sequence[Point]) -> list[Point]:
    """One point for each concurrency, ascending. Raises InputError when there are fewer than two."""
    return _checked(points)


def _inside(ranks: int, waiting_factor: float, think_time: float, rate: float) -> float:
    """Mean ranks inside an operation."""
    return (ranks - rate * think_time) / (1 + waiting_factor)


def _where_they_meet(curve: Callable[[float], float], ranks: int, waiting_factor: float, think_time: float) -> float:
    """The rate at which as many ranks are inside an operation as the curve needs for it; at most what think times
    allow."""
    if not think_time > 0:
        return curve(ranks / (1 + waiting_factor))

    def above(rate: float) -> float:
        return curve(max(_inside(ranks, waiting_factor, think_time, rate), 1e-12)) - rate

    most = ranks / think_time
    if above(0.0) <= 0:
        return 0.0
    return float(brentq(above, 0.0, most, xtol=1e-300, rtol=1e-12, maxiter=2000)) if above(most) < 0 else most


BASELINES: dict[str, Callable[[Sequence[Point], int, float, float], Forecast]] = {
    "asymptotic bounds": asymptotic_bounds,
    "closed M/M/c": closed_queue,
    "universal scalability law": universal_scalability_law,
    "straight line": straight_line,
    "last value": last_value,
}


@dataclass(frozen=True)
class BestRule:
    """The rule with the smallest error of the rate at the largest measured concurrency, forecast from the smaller
    ones; `error` is relative to the measured rate."""

    name: str
    error: float


def best_rule(points: Sequence[Point]) -> BestRule | None:
    """None with fewer than three concurrencies, where nothing can be held out. Of equals the first in BASELINES;
    bounds are no forecast."""
    merged = _merged(points)
    if len(merged) < 3:
        return None
    *smaller, largest = merged
    answers = forecast(smaller, largest.ranks, largest.waiting_factor, largest.think_time)
    rates = {name: found["rate"] for name, found in answers.items()}
    errors = {name: rate / largest.rate - 1 for name, rate in rates.items() if not isinstance(rate, tuple) and rate > 0}
    best = min(errors, key=lambda name: round(abs(math.log1p(errors[name])), 3))
    return BestRule(best, errors[best])


def _checked(points: Sequence[Point]) -> list[Point]:
    """The same, of two at least. Raises InputError when there are fewer."""
    merged = _merged(points)
    if len(merged) < 2:
        raise InputError(
            "A forecast needs measurements at two or more numbers of ranks (or waiting factors); there are fewer."
        )
    return merged


def _merged(points: Sequence[Point]) -> list[Point]:
    """One point for each concurrency, ascending: repeats by their mean rate, latencies of the one nearest to it."""
    for p in points:
        if not p.think_time >= 0 or p.concurrency <= 0:
            raise InputError(
                f"A measured point of {p.ranks} ranks has the think time {p.think_time} s and the rate {p.rate:g}/s, "
                "at which its ranks would think all the time; the think time must be that after each operation."
            )
        if p.ranks < 1 or not p.waiting_factor >= 0 or not (p.rate > 0 and math.isfinite(p.rate)):
            raise InputError(
                f"A measured point has {p.ranks} ranks, waiting factor {p.waiting_factor} and rate {p.rate}; it needs "
                "at least one rank, a factor of zero or more and a rate above zero."
            )
    scales: dict[tuple[int, float, float], list[Point]] = {}
    for p in points:
        scales.setdefault((p.ranks, p.waiting_factor, p.think_time), []).append(p)
    merged: dict[float, Point] = {}
    for (ranks, factor, think), same in sorted(scales.items(), key=lambda entry: (-entry[0][1], -entry[0][2])):
        rate = math.exp(sum(math.log(p.rate) for p in same) / len(same))
        nearest = min(same, key=lambda p: abs(p.rate - rate))
        point = Point(ranks, factor, rate, nearest.operations, think)
        merged[round(point.concurrency, 9)] = point
    return [merged[q] for q in sorted(merged)]


def _latencies(point: Point) -> dict[str, float]:
    """Those that are known: imported measurements may lack some."""
    return {
        f"{name}.{key}": float(values[key])
        for name, values in point.operations.items()
        for key in NAMES
        if values.get(key) is not None
    }


def _with_scaled_latencies(
    largest: Point, rate: float, ranks: int, waiting_factor: float, think_time: float
) -> Forecast:
    """Latencies of the largest scale, times the growth of the mean response (N / X - z) / (1+T); none where the curve
    falls to nothing."""
    if rate <= 0:
        return {"rate": 0.0}
    growth = _inside(ranks, waiting_factor, think_time, rate) / rate / largest.response
    return {"rate": rate, **{key: value * growth for key, value in _latencies(largest).items()}}


def _probability(key: str, count: float) -> float:
    """Where a quantile lies; for the maximum, the median of that of `count` operations."""
    return 0.5 ** (1 / max(count, 1.0)) if key == "max" else float(key[1:]) / 100


def _cycle(
    ranks: int, factor: float, think_time: float, service: float, delay: float, c: int
) -> tuple[float, Callable[[float], float]]:
    """(rate, quantile function of the response) of ranks at an M/M/c queue with a delay inside, that think T times the
    response and a think time."""
    think = _think(ranks, factor, think_time, service, delay, c)
    network = ClosedNetwork([Station("queue", service, servers(c))], delay + think, ranks)
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


def _think(ranks: int, factor: float, think_time: float, service: float, delay: float, c: int) -> float:
    """Seconds that a rank thinks between operations, when it does so for a think time and T times the response."""
    if factor == 0:
        return think_time

    def gap(think: float) -> float:
        return think - think_time - factor * (ranks / _throughput(ranks, service, delay + think, c) - think)

    return float(brentq(gap, think_time, think_time + factor * (delay + service * (ranks + 1)) * 1.01, rtol=1e-10))


def _rate(ranks: int, factor: float, think_time: float, service: float, delay: float, c: int) -> float:
    """The rate of `_cycle` alone."""
    return _throughput(ranks, service, delay + _think(ranks, factor, think_time, service, delay, c), c)


def _throughput(ranks: int, service: float, delay: float, c: int) -> float:
    """Operations a second of a closed M/M/c queue with a delay, by its product form (Gordon & Newell 1967),
    O(ranks)."""
    numbers, log_factorials = _factorials(ranks)
    at_delay = ranks - numbers
    busy = np.minimum(numbers, c)
    logs = at_delay * math.log(delay) - log_factorials[::-1] if delay > 0 else np.where(at_delay > 0, -np.inf, 0.0)
    logs = logs + numbers * math.log(service) - log_factorials[busy] - (numbers - busy) * math.log(c)
    p = np.exp(logs - logs.max())
    return float(np.dot(p, busy) / p.sum() / service)


@lru_cache(maxsize=16)
def _factorials(most: int) -> tuple[NDArray[np.int64], Array]:
    """0 .. most, and the logarithms of their factorials."""
    numbers = np.arange(most + 1)
    return numbers, gammaln(numbers + 1.0)


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

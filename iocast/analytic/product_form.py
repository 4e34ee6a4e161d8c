# SPDX-License-Identifier: Apache-2.0
"""Exact solution of closed single-class product-form networks, safe up to millions of customers.

The textbook recursions lose all digits here: load-dependent mean value analysis subtracts nearly equal probabilities,
and plain convolution over- or underflows. This solver does neither. For any rate theta the normalising constants obey

    G(n) theta^n = P[ open network at arrival rate theta holds n customers ] * constant

because each factor of the product form, multiplied by theta^n, is (up to a constant) the queue length distribution of
that station in an open network (Jackson 1963; Buzen 1973 for G). Choosing theta so that the open network holds
`population` customers on average keeps every number that matters near 1/sqrt(variance); all terms are positive, so
nothing cancels.

    X(N) = G(N-1)/G(N) = theta P(N-1)/P(N)                    (Buzen 1973, eq. 6)
    p(n | N) = f(n) G_without(N-n)/G(N)                       (marginal at a station)

By the arrival theorem (Sevcik & Mitrani 1981; Reiser & Lavenberg 1980) a customer who arrives at a station sees p(. |
N-1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Array = NDArray[np.float64]

NEGLIGIBLE = 1e-40  # relative to the largest term; P(N) itself is about 1/sqrt(variance), above 1e-8 at any population
NO_LOAD = 1e-15
"""Share of the most loaded station's load below which a station is empty: 1 less that is 1 to the last digit."""
DIRECT_PRODUCTS = 20_000_000  # below this many products a direct convolution (relative precision) is fast enough


@dataclass(frozen=True, eq=False)
class Station:
    """A queueing station of a closed network.

    demand: seconds of service a customer needs per cycle, over all instances. rates[n-1]: work done per second with n
    customers present at an instance, in units of one undisturbed server; constant beyond the last. instances:
    identical copies, each visited with equal probability. FCFS with exponential service, or processor sharing with
    any service (BCMP 1975).
    """

    name: str
    demand: float
    rates: Array
    instances: int = 1

    @property
    def capacity(self) -> float:
        """Cycles per second that all instances can sustain with any number of customers."""
        return self.instances * float(np.max(self.rates)) / self.demand

    @property
    def best_speed(self) -> float:
        """Of a customer, with the number of them at which that is most."""
        return float(np.max(self.rates / np.arange(1.0, len(self.rates) + 1.0)))

    @cached_property
    def log_paths(self) -> Array:
        """Minus the logarithms of the products of the rates 1 ... n, for n = 0 ... len(rates)."""
        return np.concatenate(([0.0], -np.cumsum(np.log(self.rates))))

    @cached_property
    def numbers(self) -> Array:
        return np.arange(len(self.rates) + 1.0)


def servers(count: float) -> Array:
    """Rates of `count` servers: min(n, count). A fraction is a last server of that speed."""
    rates = np.arange(1.0, math.ceil(count) + 1.0)
    rates[-1] = count
    return rates


class _Terms:
    """Non-negative terms at first, first+1, ...; zero elsewhere. Constant factors never matter in this file."""

    def __init__(self, first: int, values: Array) -> None:
        keep = np.flatnonzero(values > NEGLIGIBLE * np.max(values))
        self.first = first + int(keep[0])
        self.last = first + int(keep[-1])
        self._values = values[keep[0] : keep[-1] + 1] / np.max(values)

    def window(self, low: int, high: int) -> Array:
        """The terms low..high, all inside first..last."""
        values: Array = self._values[low - self.first : high - self.first + 1]
        return values


class _Queue:
    """Queue length terms of one station at rate theta: a head up to the last rate, then a geometric tail that is
    never stored.

    `slope` is the logarithm of the tail's ratio; zero or more is allowed, as a closed network ends at its population.
    """

    def __init__(self, station: Station, theta: float, slope: float, population: int) -> None:
        self._at = len(station.rates)
        self._slope = slope
        self._head = _log_terms(station, theta)
        self.first = 0
        self.last = population
        if slope < 0:
            reach = self._at + (float(self._head[-1] - np.max(self._head)) - math.log(NEGLIGIBLE)) / -slope
            self.last = int(min(population, max(reach, self._at)))

    def window(self, low: int, high: int) -> Array:
        """The terms low..high, up to a factor that depends on the window: they may lie far below those elsewhere."""
        tail = np.arange(max(low, self._at), high + 1) - self._at
        logs = np.concatenate((self._head[low : min(high + 1, self._at)], self._head[-1] + self._slope * tail))
        return np.asarray(np.exp(logs - np.max(logs)))


def _log_terms(station: Station, theta: float) -> Array:
    return station.numbers * math.log(theta * station.demand / station.instances) + station.log_paths


def _from_ratios(mode: int, low: int, high: int, ratio: Callable[[Array], Array]) -> _Terms:
    """Terms low..high with p(n+1)/p(n) = ratio(n), summed outwards from the mode so that rounding stays relative."""
    n = np.arange(low, high, dtype=np.float64)
    steps = np.log(ratio(n))
    up = np.cumsum(steps[mode - low :])
    down = -np.cumsum(steps[: mode - low][::-1])[::-1]
    return _Terms(low, np.exp(np.concatenate((down, [0.0], up))))


def _delay_terms(mean: float, population: int) -> _Terms:
    """Customers in a delay of the open network: Poisson."""
    mode = min(int(mean), population)
    width = int(15 * math.sqrt(mean) + 120)
    return _from_ratios(mode, max(0, mode - width), min(population, mode + width), lambda n: mean / (n + 1))


def _single_server_copies(copies: int, one_minus_ratio: float, population: int) -> _Terms:
    """Customers in `copies` equal single-server stations of the open network: negative binomial."""
    ratio = 1 - one_minus_ratio
    mode = min(max(0, math.floor((copies - 1) * ratio / one_minus_ratio)), population)
    width = int(15 * math.sqrt(copies * ratio) / one_minus_ratio + 120 / one_minus_ratio)
    return _from_ratios(
        mode, max(0, mode - width), min(population, mode + width), lambda n: ratio * (copies + n) / (n + 1)
    )


_Law = _Terms | _Queue


def _convolve(a: _Law, b: _Law, low: int, high: int) -> _Terms | None:
    """Terms low..high of the sum of two independent numbers, None where all are zero."""
    short, long = (a, b) if a.last - a.first <= b.last - b.first else (b, a)
    start, end = max(long.first, low - short.last), min(long.last, high - short.first)
    if start > end:
        return None
    x, y = short.window(short.first, short.last), long.window(start, end)
    if len(x) * len(y) <= DIRECT_PRODUCTS:
        values = np.convolve(x, y)
    else:  # absolute precision 1e-16 of the largest term: enough for terms that P(N) is made of
        from scipy.signal import oaconvolve  # half a second to import, and few need it

        values = np.maximum(oaconvolve(x, y), 0.0)
    first = short.first + start
    values = values[max(0, low - first) : high - first + 1]
    return _Terms(max(low, first), values) if np.any(values) else None


def _copies(queue: _Law, copies: int, population: int) -> _Law:
    """Customers in `copies` equal stations together, by repeated squaring."""
    result: _Law | None = None
    power = queue
    while True:
        if copies & 1:
            result = power if result is None else _must(_convolve(result, power, 0, population))
        copies >>= 1
        if not copies:
            assert result is not None
            return result
        power = _must(_convolve(power, power, 0, population))


def _must(terms: _Terms | None) -> _Terms:
    assert terms is not None, "an open network has states of every population"
    return terms


class ClosedNetwork:
    """`population` customers cycling through `stations` and a delay (think time) of `delay` seconds per cycle.

    throughput: cycles per second. Time O(population) at worst, far less when one station is the bottleneck.
    """

    def __init__(self, stations: Sequence[Station], delay: float, population: int) -> None:
        heaviest = max((s.demand / s.instances / float(np.max(s.rates)) for s in stations), default=0.0)
        self.stations = [s for s in stations if s.demand / s.instances > NO_LOAD * heaviest * float(np.max(s.rates))]
        self.delay = delay
        self.population = population
        if population < 1 or (delay <= 0 and not self.stations):
            raise ValueError("A closed network needs at least one customer and some time per cycle.")
        self._theta, self._complements = self._choose_rate()
        self._slopes = [math.log1p(-c) for c in self._complements]  # of the queues' tails
        retrograde = any(s.rates[-1] < np.max(s.rates) for s in self.stations)
        for _ in range(200):
            self.throughput = self._solve()
            # Where rates fall with the queue, the open network was a guess (see _choose_rate): go to where the closed
            # one is.
            if not retrograde or abs(self.throughput / self._theta - 1) * math.sqrt(population) < 0.1:
                break
            self._theta = self.throughput
            loads = [self._theta * s.demand / s.instances / s.rates.item(-1) for s in self.stations]
            self._complements, self._slopes = [1 - x for x in loads], [math.log(x) for x in loads]

    def _solve(self) -> float:
        with np.errstate(under="ignore"):
            self._queues = [
                _Queue(s, self._theta, slope, self.population)
                for s, slope in zip(self.stations, self._slopes, strict=True)
            ]
            self._groups = [self._group(i, s.instances) for i, s in enumerate(self.stations)]
            before, now = self._ways(list(self._groups))
        return self._theta * before / now

    def queue_lengths(self, name: str, *, seen_by_arrival: bool = False) -> tuple[int, Array]:
        """Distribution of customers at one instance of a station: (first number, probabilities from it on).

        With seen_by_arrival, as found by a customer who arrives (that of the network with one customer less). A station
        without load is empty.
        """
        i = next((k for k, s in enumerate(self.stations) if s.name == name), None)
        if i is None:
            return 0, np.ones(1)
        total = self.population - (1 if seen_by_arrival else 0)
        if total == 0:
            return 0, np.ones(1)
        with np.errstate(under="ignore"):
            others: list[_Law] = [group for k, group in enumerate(self._groups) if k != i]
            if self.stations[i].instances > 1:
                others.append(self._group(i, self.stations[i].instances - 1))
            own = self._queues[i]
            last = min(own.last, total)
            rest = self._rest(others, total - last, total)
            first, last = total - min(rest.last, total), total - rest.first
            terms = own.window(first, last) * rest.window(total - last, total - first)[::-1]
        return first, terms / np.sum(terms)

    def mean_queue(self, name: str) -> float:
        """Mean customers at one instance of a station, waiting or in service."""
        first, p = self.queue_lengths(name)
        return float(np.dot(p, np.arange(first, first + len(p))))

    def _choose_rate(self) -> tuple[float, list[float]]:
        """theta, and for each station 1 - (theta demand / final rate): kept apart because near saturation it has the
        digits.

        A station that slows down as its queue grows counts as if it kept its best rate; an open network of it is
        empty or endless.
        """
        if not self.stations:
            return self.population / self.delay, []
        stations = [replace(s, rates=s.rates[: int(np.argmax(s.rates)) + 1]) for s in self.stations]
        loads = np.array([s.demand / s.instances / s.rates.item(-1) for s in stations])
        heaviest = float(np.max(loads))
        relative = loads / heaviest

        def customers(t: float) -> float:
            share, complement = 1 / (1 + math.exp(-t)), 1 / (1 + math.exp(t))
            total = share / heaviest * self.delay
            for s, x in zip(stations, relative, strict=True):
                total += s.instances * _mean_open_queue(s, share / heaviest, complement + share * (1 - x))
            return total / self.population - 1

        low, high = -1.0, 1.0
        while customers(low) > 0 and low > -600:
            low *= 2
        while customers(high) < 0 and high < 600:
            high *= 2
        # Any theta gives the same answer; this one only has to be near enough to keep the digits.
        t = float(brentq(customers, low, high, xtol=1e-3, rtol=1e-6))
        share, complement = 1 / (1 + math.exp(-t)), 1 / (1 + math.exp(t))
        theta = share / heaviest
        return theta, [
            complement + share * (1 - x)
            if len(new.rates) == len(old.rates)
            else 1 - theta * old.demand / old.instances / old.rates.item(-1)
            for new, old, x in zip(stations, self.stations, relative, strict=True)
        ]

    def _group(self, index: int, copies: int) -> _Law:
        station, complement = self.stations[index], self._complements[index]
        if copies == 1:
            return self._queues[index]
        if len(station.rates) == 1:
            return _single_server_copies(copies, complement, self.population)
        return _copies(self._queues[index], copies, self.population)

    def _rest(self, groups: Sequence[_Law], low: int, high: int) -> _Terms:
        """Terms low..high of all `groups` and the delay together.

        The longest comes last, so that only a window of it is made.
        """
        parts = sorted(groups, key=lambda g: g.last - g.first)
        total: _Law = (
            _delay_terms(self._theta * self.delay, self.population) if self.delay > 0 else _Terms(0, np.ones(1))
        )
        for k, part in enumerate(parts):
            final = k == len(parts) - 1
            total = _must(_convolve(total, part, low if final else 0, high))
        return total if isinstance(total, _Terms) else _Terms(low, total.window(low, high))

    def _ways(self, groups: list[_Law]) -> tuple[float, float]:
        """Terms for population - 1 and population customers in all, up to one common factor."""
        last = self.population
        if not groups:
            return float(last), self._theta * self.delay  # ratio of two Poisson terms
        groups.sort(key=lambda g: g.last - g.first)
        longest = groups[-1]
        rest = self._rest(groups[:-1], 0, last)
        low, high = max(longest.first, last - 1 - rest.last), min(longest.last, last - rest.first)
        terms = longest.window(low, high)
        result = []
        for n in (last - 1, last):
            first, final = max(rest.first, n - high), min(rest.last, n - low)
            part = terms[n - final - low : n - first - low + 1]
            result.append(float(np.dot(rest.window(first, final), part[::-1])) if first <= final else 0.0)
        return result[0], result[1]


def _mean_open_queue(station: Station, theta: float, one_minus_ratio: float) -> float:
    """Mean customers at one instance in the open network at rate theta."""
    if len(station.rates) == 1:
        return (1 - one_minus_ratio) / one_minus_ratio
    logs = _log_terms(station, theta)
    head = np.exp(logs - np.max(logs))
    c, ratio = len(station.rates), 1 - one_minus_ratio
    tail = head[c]
    mass = float(head[:c].sum()) + tail / one_minus_ratio
    weighted = float(np.dot(head[:c], station.numbers[:c])) + tail * (c / one_minus_ratio + ratio / one_minus_ratio**2)
    return float(weighted / mass)

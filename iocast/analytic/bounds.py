# SPDX-License-Identifier: Apache-2.0
"""Bounds on the throughput of a closed network: what no solution may leave.

Lazowska, Zahorjan, Graham & Sevcik, Quantitative System Performance, 1984, chapter 5 (asymptotic bounds: Denning &
Buzen 1978; balanced job bounds: Zahorjan, Sevcik, Eager & Galler 1982).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iocast.analytic.product_form import Station


@dataclass(frozen=True)
class Bounds:
    """The throughput lies in [lower, upper] (per second)."""

    lower: float
    upper: float

    def contain(self, rate: float, tolerance: float = 1e-6) -> bool:
        return self.lower * (1 - tolerance) <= rate <= self.upper * (1 + tolerance)


def asymptotic(stations: Sequence[Station], delay: float, population: int, waiting_factor: float = 0.0) -> Bounds:
    """Asymptotic bounds on cycles per second, `delay` seconds per cycle and a think time of waiting_factor x the
    response.

    At best nobody waits and no station exceeds its capacity; at worst everyone queues behind all others at every visit.
    """
    alone = delay + sum(s.demand / s.best_speed for s in stations)
    worst = delay + sum(population * s.demand / float(min(s.rates)) for s in stations)
    upper = population / ((1 + waiting_factor) * alone)
    return Bounds(population / ((1 + waiting_factor) * worst), min([upper] + [s.capacity for s in stations]))


def balanced_job(stations: Sequence[Station], delay: float, population: int) -> Bounds:
    """Balanced job bounds on cycles per second for a fixed delay: tighter than the asymptotic ones.

    Proven for single servers. A station with other rates counts as a delay in the upper bound and as instances of its
    slowest rate in the lower one; both only widen the interval, because product-form throughput grows with every
    rate.
    """
    n = population
    single = [s for s in stations if len(s.rates) == 1]
    other = [s for s in stations if len(s.rates) > 1]
    demands = [s.demand / s.instances / float(s.rates[0]) for s in single for _ in range(s.instances)]
    upper = asymptotic(stations, delay, n).upper
    if demands:
        total, think = sum(demands), delay + sum(s.demand / s.best_speed for s in other)
        average = total / len(demands)
        upper = min(upper, n / (total + think + (n - 1) * average / (1 + think / total)))
    demands += [s.demand / s.instances / float(min(s.rates)) for s in other for _ in range(s.instances)]
    if not demands:
        return Bounds(upper, upper)
    total = sum(demands)
    lower = n / (delay + total + (n - 1) * max(demands) / (1 + delay / (n * total)))
    return Bounds(lower, upper)

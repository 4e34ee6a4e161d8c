# SPDX-License-Identifier: Apache-2.0
"""Response time distributions: what an arrival finds (arrival theorem), how long it waits for it, and the service laws.

Each operation is a sum of independent parts (delays, waits, lock waits, services), taken over a fixed set of
low-discrepancy points (Sobol' 1967), so that the same question always has the same answer. Parts of one operation are
taken as independent, and the ranks as out of step with one another; convoys of ranks that all do the same operation
at once are not here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtri

from iocast.analytic.laws import Law, look_up
from iocast.analytic.network import Network, Served, holder
from iocast.analytic.product_form import ClosedNetwork
from iocast.analytic.routes import Delay, Route, Visit
from iocast.analytic.throughput import Flow, StallEffect, slot_queue

Array = NDArray[np.float64]
Part = Callable[[Array], Array]  # a time from uniform numbers

POINTS = 2**13
QUANTILES = {"q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95, "q99": 0.99, "q999": 0.999}


@lru_cache(maxsize=128)
def _points(dimensions: int, number: int) -> Array:
    """Points of the unit cube, moved to the middle of their cells so that none is 0."""
    from scipy.stats import qmc  # half a second to import, which a simulated forecast need not wait for

    points = qmc.Sobol(dimensions, scramble=False).random(number)
    return np.asfortranarray(points + 0.5 / len(points))


@dataclass(eq=False)
class Table:
    """A quantile function by its values at (i + 0.5)/len, with an exponential tail beyond."""

    values: Array

    def __call__(self, u: Array) -> Array:
        size = len(self.values)
        result = look_up(self.values, u)
        beyond = u > 1 - 0.5 / size
        if np.any(beyond):
            inner = size - 1 - size // 100
            slope = (self.values[-1] - self.values[inner]) / math.log((size - inner - 0.5) / 0.5)
            result[beyond] = self.values[-1] + slope * (-np.log1p(-u[beyond]) - math.log(size / 0.5))
        return result


def _gamma(shape: Array, u: Array) -> Array:
    """Quantiles of the gamma distribution; Wilson & Hilferty (1931) for large shapes, where it is good to 1e-4."""
    result = np.zeros_like(u)
    small, large = (shape > 0) & (shape < 200), shape >= 200
    result[small] = gammaincinv(shape[small], u[small])
    k = shape[large]
    result[large] = k * (1 - 1 / (9 * k) + ndtri(u[large]) / (3 * np.sqrt(k))) ** 3
    return result


def _found(net: ClosedNetwork, name: str, u: Array) -> NDArray[np.int64]:
    """Customers found at an instance by an arrival, at probabilities u."""
    first, p = net.queue_lengths(name, seen_by_arrival=True)
    return np.asarray(first + np.minimum(np.searchsorted(np.cumsum(p), u), len(p) - 1), dtype=np.int64)


class Crowd:
    """What arrivals at one station find and what follows from it."""

    def __init__(self, served: Served, net: ClosedNetwork | None, points: int = POINTS) -> None:
        self.served = served
        u = _points(4, points)
        others = np.zeros(len(u), dtype=np.int64) if net is None else _found(net, served.name, u[:, 0])
        c = min(served.servers, len(served.speed))
        threads = np.minimum(others + 1, c)
        # Slower servers: all but locks and background, which have their own parts. Crowding lengthens the service of
        # all.
        crowded = np.minimum(others + 1, len(served.speed))
        self.stretch = float(np.mean(threads / served.speed[crowded - 1]))
        ahead, mean_service = others.astype(np.float64), np.full(len(u), served.service)
        variation = np.full(len(u), max(served.variation, 1e-3))
        work = served.background
        if work is not None:
            strangers = _strangers(served, others, u[:, 1])
            total = np.maximum(others + strangers, 1)
            mean_service = (others * served.service + strangers * work.demand * (1 + work.variation) / 2) / total
            ahead = others + strangers
        with_locks = served.rates if work is None and not served.forks else served.speed
        per_completion = mean_service / with_locks[np.minimum(np.maximum(others, c), len(with_locks)) - 1]
        waiting = np.maximum(ahead - c + 1, 0.0)
        gamma = _gamma(waiting / variation, u[:, 2]) * variation
        self.wait = Table(np.sort(gamma * per_completion))
        queue = np.maximum(others - c + 1, 0) / c
        self.turns = Table(np.sort(queue.astype(np.float64)))  # rounds of others between two slices
        self.share = Table(np.sort((others + 1) / served.rates[np.minimum(others + 1, len(served.rates)) - 1]))
        found = served.found_at_lock
        self.at_lock = [float(found[np.minimum(others, len(found) - 1), i].mean()) for i in range(found.shape[1])]


def _strangers(served: Served, others: NDArray[np.int64], u: Array) -> Array:
    """Background jobs present beside `others` of our own: terms C(n+m, m) x^m / rates.

    Negative binomial once all servers work.
    """
    from scipy.stats import nbinom

    work = served.background
    assert work is not None
    c, load, offered = len(served.speed), work.load(served.speed), work.rate * work.demand
    result = np.empty(len(u))
    full = others >= c
    result[full] = nbinom.ppf(u[full], others[full] + 1, 1 - load)
    reach = int(c + 40 / -math.log(load)) if load > 0 else c
    for n in np.unique(others[~full]):
        m = np.arange(1, reach)
        rates = served.speed[np.minimum(n + m, c) - 1]
        logs = np.concatenate(([0.0], np.cumsum(np.log(offered * (n + m) / (m * rates)))))
        below = np.cumsum(np.exp(logs - np.max(logs)))
        at = others == n
        result[at] = np.searchsorted(below / below[-1], u[at])
    return result


def parts_of(
    route: Route,
    network: Network,
    crowds: dict[str, Crowd],
    slot_waits: dict[str, tuple[int, Part]],
    stalls: Sequence[tuple[StallEffect, set[str], str]],
    continuous: bool,
    speed_sigma: float,
) -> list[tuple[int, Part]]:
    """(uniform numbers needed, time) of every part of an operation."""
    parts: list[tuple[int, Part]] = []
    limits = {held.name: held for held in network.limits}
    last = None
    for step in route.steps:
        held = holder(step.limits, limits)
        if held is not None and held is not last:
            parts.append(slot_waits[held.name])
        last = held
        if isinstance(step, Delay):
            parts.append(_law(step.time))
        elif isinstance(step, Visit):
            parts += _visit(step, crowds.get(step.station), continuous, speed_sigma)
            for effect, kinds, station in stalls:
                if station == step.station and route.operation in kinds:
                    parts.append(_stall(effect))
        else:
            parts.append((0, lambda u, wait=step.latency: np.full(len(u), wait)))  # type: ignore[misc]
            crowd = crowds.get(step.queue)
            if crowd is not None:
                seconds = crowd.served.service
                parts.append((1, lambda u, c=crowd, s=seconds: s * c.share(u[:, 0])))  # type: ignore[misc]
    return parts


def _law(law: Law, factor: float = 1.0) -> tuple[int, Part]:
    return 1, lambda u: factor * law.quantile(u[:, 0])


def _visit(step: Visit, crowd: Crowd | None, continuous: bool, speed_sigma: float) -> list[tuple[int, Part]]:
    if crowd is None:
        return [_law(step.demand)]
    served = crowd.served
    if step.stripes > 1:
        longest: Part = lambda u: step.demand.quantile(u[:, 0] ** (1 / step.stripes)) * crowd.stretch  # noqa: E731
        work: tuple[int, Part] = (1, longest)
    elif served.per_node and speed_sigma > 0:

        def service(u: Array) -> Array:
            return np.asarray(step.demand.quantile(u[:, 0]) * np.exp(speed_sigma * ndtri(u[:, 1])) * crowd.stretch)

        work = (2, service)
    else:
        work = _law(step.demand, crowd.stretch)
    if not served.waits:
        return [work]
    if served.discipline == "ps":
        return [(2, lambda u: step.demand.quantile(u[:, 0]) * crowd.share(u[:, 1]))]
    if served.discipline == "timeslice" and continuous:
        # A rank that never sleeps keeps its server from operation to operation and loses it once a quantum.
        def sliced(u: Array) -> Array:
            need = step.demand.quantile(u[:, 0]) * crowd.stretch
            return np.asarray(need + np.floor(need / served.quantum + u[:, 1]) * served.quantum * crowd.turns(u[:, 2]))

        return [(3, sliced)]
    parts: list[tuple[int, Part]] = [work, (1, lambda u: crowd.wait(u[:, 0]))]
    if step.lock:
        i = served.lock_names.index(step.lock)
        found, hold = crowd.at_lock[i], served.locks[i].hold * crowd.stretch

        def lock_wait(u: Array) -> Array:
            """With a geometric number at the lock: nothing, or exponential."""
            x = np.maximum((1 - u[:, 0]) * (1 + found) / max(found, 1e-12), 1e-300)
            return np.asarray(np.where(x < 1, -np.log(np.minimum(x, 1.0)), 0.0) * hold * (1 + found))

        parts.append((1, lock_wait))
    return parts


def slot_waits(
    network: Network, flow: Flow, routes: Sequence[Route], points: int = POINTS
) -> dict[str, tuple[int, Part]]:
    """The wait for a slot of each limit; a limit taken several times a cycle is waited for in equal parts."""
    waits: dict[str, tuple[int, Part]] = {}
    limits = {held.name: held for held in network.limits}
    for held in network.limits:
        station = (
            next((s for s in flow.group.stations if s.name == slot_queue(held.name)), None) if flow.group else None
        )
        if station is None or flow.group is None:
            waits[held.name] = (1, lambda u: np.zeros(len(u)))
            continue
        holdings = 0.0
        for route in routes:
            owners = [holder(step.limits, limits) for step in route.steps]
            holdings += route.count * sum(
                a is held and a is not b for a, b in zip(owners, [None, *owners], strict=False)
            )
        u = _points(4, points)
        slots = len(station.rates)
        waiting = np.maximum(_found(flow.group, station.name, u[:, 0]) - slots + 1, 0).astype(np.float64)
        table = Table(np.sort(_gamma(waiting, u[:, 1]) * station.demand / holdings / station.rates.item(-1)))
        waits[held.name] = (1, lambda v, table=table: table(v[:, 0]))  # type: ignore[misc]
    return waits


def _stall(effect: StallEffect) -> tuple[int, Part]:
    def extra(u: Array) -> Array:
        length = effect.length * np.exp(effect.sigma * ndtri(u[:, 1]) - effect.sigma**2 / 2)
        late = np.maximum(u[:, 2] - (1 - effect.free_share), 0) / max(effect.free_share, 1e-12) * effect.free
        return np.asarray(np.where(u[:, 0] > 1 - effect.hit, np.maximum(length - late, 0), 0.0))

    return 3, extra


def summarise(parts: Sequence[tuple[int, Part]], operations: float, points: int = POINTS) -> dict[str, float]:
    """Mean, quantiles, and the median of the maximum of `operations` independent operations."""
    width = sum(n for n, _ in parts)
    if width == 0:
        return dict.fromkeys(("mean", *QUANTILES, "max"), 0.0)
    u = _points(width, points)
    starts = np.cumsum([0] + [n for n, _ in parts])
    samples = [part(u[:, start : start + n]) for (n, part), start in zip(parts, starts, strict=False)]
    total = np.sum(samples, axis=0)
    result = {"mean": float(np.mean(total))}
    result |= zip(QUANTILES, np.quantile(total, list(QUANTILES.values())).tolist(), strict=True)
    result["max"] = max(_maximum(parts, samples, u, starts, operations), result["q99"] if operations >= 69 else 0.0)
    return result


def _maximum(
    parts: Sequence[tuple[int, Part]], samples: list[Array], u: Array, starts: NDArray[np.int64], operations: float
) -> float:
    """Where the survival function is ln 2 / operations.

    Beyond the points' resolution the largest sum has one large part (exactly so for subexponential laws): each random
    number in turn is confined to its upper tail, and the tails' weights are added.
    """
    total = np.sum(samples, axis=0)
    wanted = math.log(2) / max(operations, 1.0)
    if wanted > 20 / len(total):
        return float(np.quantile(total, max(1 - wanted, 0.0)))
    weight = min(50 * wanted, 0.01)
    ends = []
    for k, (n, part) in enumerate(parts):
        rest = total - samples[k]
        for j in range(n):
            v = u[:, starts[k] : starts[k] + n].copy()
            v[:, j] = 1 - weight * (1 - v[:, j])
            ends.append(rest + part(v))
    pool = np.sort(np.concatenate(ends))[::-1]
    place = wanted / (weight / len(total))
    return float(pool[min(int(place), len(pool) - 1)])

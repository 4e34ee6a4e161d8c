# SPDX-License-Identifier: Apache-2.0
"""How fast a station works with n customers: the rate law of a load-dependent server (rates[n-1], constant beyond the
last).

Each function takes rates in units of one undisturbed server and returns the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln, logsumexp

Array = NDArray[np.float64]


def scalability_law(servers: int, contention: float, coherency: float) -> Array:
    """n / (1 + contention (n-1) + coherency n (n-1)): Gunther's scalability law as a rate inside the queue."""
    n = np.arange(1.0, servers + 1.0)
    return n / (1 + contention * (n - 1) + coherency * n * (n - 1))


def measured(servers: int, speeds: Sequence[float]) -> Array:
    """n times the speed of each of n busy servers; of more than there are speeds, the last."""
    n = np.arange(1, servers + 1)
    return np.asarray(n * np.asarray(speeds, dtype=float)[np.minimum(n, len(speeds)) - 1])


def forked(rates: Array, largest: float, customers: int) -> Array:
    """Customers who each leave parts at several stations like this one and go when the last part is done.

    largest: mean of the longest part's service over the mean service. Response time S (largest + customers found),
    Varki 1999, "Mean value technique for closed fork-join networks", SIGMETRICS: exact for two single servers with
    exponential service, where n customers have the rate 2n/(2n+1). More servers are taken to shorten the queue alike.
    """
    n = np.arange(1.0, max(customers, len(rates)) + 1.0)
    queue = np.maximum(n / len(rates), 1.0)
    return np.asarray(rates[np.minimum(n, len(rates)).astype(int) - 1] * queue / (queue + largest - 1))


@dataclass(frozen=True)
class LockUse:
    """One lock as the threads of a station use it.

    visits: share of the station's visits that take it. hold: mean seconds held by one that does, at full speed.
    instances: equal locks (directories, say) that a visit chooses among at random.
    """

    visits: float
    hold: float
    instances: int


def with_locks(rates: Array, service: float, locks: Sequence[LockUse]) -> tuple[Array, Array]:
    """Threads that hold a lock for part of their service: (rates, requests found at one lock by n = 1 ... c busy
    threads).

    The threads are customers of an inner closed network: a delay (work without the lock) and a queue for each lock.
    Its throughput with n threads is the rate of a flow-equivalent server (Chandy, Herzog & Woo 1975) for simultaneous
    resource possession (Jacobson & Lazowska 1982). Single-server mean value analysis is stable at any n.
    """
    if not locks:
        return rates, np.zeros((len(rates), 0))
    demands = np.array([lock.visits * lock.hold for lock in locks])
    instances = np.array([float(lock.instances) for lock in locks])
    free = service - float(np.sum(demands))
    at_locks = np.zeros(len(locks))
    result = np.empty_like(rates)
    found = np.zeros((len(rates), len(locks)))
    for n in range(1, len(rates) + 1):
        found[n - 1] = at_locks / instances
        residence = demands * (1 + found[n - 1])
        throughput = n / (free + float(np.sum(residence)))
        at_locks = throughput * residence
        result[n - 1] = throughput * service * rates[n - 1] / n
    return result, found


@dataclass(frozen=True)
class Background:
    """Poisson arrivals of other work at one instance: per second, mean demand (s), squared coefficient of variation."""

    rate: float
    demand: float
    variation: float

    def load(self, rates: Array) -> float:
        """Share of the final rate that it uses."""
        return self.rate * self.demand / rates.item(-1)


def with_background(rates: Array, service: float, work: Background) -> Array:
    """The rates that the closed customers see while an open class uses the station.

    Exact in product form (mixed networks: Baskett, Chandy, Muntz & Palacios 1975; Bruell & Balbo 1980, section 4.4):
    the terms become f(n) = sum over m of C(n+m, m) x^m / (rates of 1 ... n+m), x = offered background work. For
    background demands that are not those of the closed customers, rates up to c are scaled so that a lone closed
    customer waits what an open queue makes it wait: Pollaczek and Khinchine's mean for one server (exact), Allen &
    Cunneen's for more.
    """
    c, offered, load = len(rates), work.rate * work.demand, work.load(rates)
    log_paths = np.concatenate(([0.0], np.cumsum(np.log(rates))))  # log of the product of the rates 1 ... k
    log_terms = np.empty(c + 2)
    for n in range(c + 2):
        beyond = max(c - n, 0)
        inside = 1.0 if beyond == 0 else float(betainc(beyond, n + 1, load))
        tail = (c - n) * np.log(rates[-1]) - log_paths[c] - (n + 1) * np.log1p(-load)
        parts = [tail + np.log(inside)] if inside > 0 else []
        if beyond:
            m = np.arange(beyond)
            heads = (
                gammaln(n + m + 1) - gammaln(n + 1) - gammaln(m + 1) + m * np.log(offered) - log_paths[n : n + beyond]
            )
            parts.append(float(logsumexp(heads)))
        log_terms[n] = logsumexp(parts)
    result = np.exp(log_terms[:-1] - log_terms[1:])
    product_form_wait = service / result[0] - service / rates[0]
    wanted = open_wait(rates, work)
    stretch = (service / rates[0] + wanted) / (service / rates[0] + product_form_wait)
    result[:c] /= stretch
    result[1:] = np.minimum(result[1:], np.maximum(rates.item(-1) * (1 - load), 1e-300))
    return np.asarray(result)


def open_wait(rates: Array, work: Background) -> float:
    """Mean wait (s) of a Poisson arrival in the background alone: Erlang's delay formula times (1 + variation)/2."""
    c, load = len(rates), work.load(rates)
    log_states = np.concatenate(([0.0], np.cumsum(np.log(work.rate * work.demand / rates))))
    delayed = log_states[c] - np.log1p(-load)
    probability = np.exp(delayed - logsumexp(np.append(log_states[:c], delayed)))
    return float(probability) * work.demand / (rates.item(-1) * (1 - load)) * (1 + work.variation) / 2

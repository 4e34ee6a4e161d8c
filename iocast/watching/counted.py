# SPDX-License-Identifier: Apache-2.0
"""Snapshots of a server's own counters as an observation beside a run (docs/observe.md), and the number of threads that
follows from them.

The server's part of an operation is the seconds of all requests that it served, over the operations that were completed
(utilisation law). Of a lone rank that is the service, since nobody else is there; what it grows by with more ranks is
the wait for a thread. Clients and the network have no part in either.

A server that times the work of its threads alone is used with its counter of waits beside it, or not at all: that time
doesn't grow where threads are short. What a client times from sending to the answer holds the network as well. It grows
by the wait all the same, but the service is only known to be at most that of a lone rank."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from iocast.errors import InputError
from iocast.importers import Importer, all_importers, matching
from iocast.importers.source import Source
from iocast.records.note_of_measurements import ThreadsCounted
from iocast.importers.statistics import (
    HANDLING,
    REQUESTS,
    TRIP,
    TRIPS,
    WAIT,
    Snapshot,
    require_later,
    require_same,
    without_ended_jobs,
)

WAITING = "waiting"
"""Kind of resource, beside those of Snapshot.holds: time in which requests waited for a thread."""
COUNTED = "counted"
"""Likewise: requests whose times nobody counts."""
KINDS = (REQUESTS, HANDLING, TRIPS, WAITING)
TIMED = 0.9
"""Least share of a service's requests that have times. Chosen by hand."""
TARGET = re.compile(r"(mdt|obdfilter)\.[\w-]+")
SERVICES = {"mdt": "mds.", "obdfilter": "ost."}
"""By kind of Lustre's targets, how names of the services begin whose threads work for all of a machine's."""
PLACE = re.compile(r" on .*$|-[0-9a-f]{8,16}$")
"""End of a client's name for a server that is another one on each node: the mount, or an address in memory."""
SERVICE = np.linspace(0.05, 1.0, 20)
"""Shares of a lone rank's trip that may be service."""
SPREAD = 0.05
"""Standard deviation of a measured wait, as a share of the time at the server. Chosen by hand."""
CONSTANT = 0.5
"""Times the wait for exponential service, what constant service has at least (Pollaczek 1930, one server)."""
LEAST = 1e-3
"""Share of the likeliest number's weight that each other number keeps in a fit."""
SURE = 0.9
"""Weight from which on a number of threads is the answer."""


def statistics_in(path: Path) -> Importer | None:
    """The importer of a file that has snapshots of a server's counters; None for any other file."""
    if not path.is_file():
        return None
    source = Source(path)
    if source.head.startswith('{"') and '"kind": "observation"' in source.head.partition("\n")[0]:
        return None
    return next((one for one in matching(source, all_importers()) if one.snapshots is not None), None)


class Counters:
    """Snapshots with times, as utilisation.Observation has samples.

    @raises InputError for fewer than two snapshots, or one without a time"""

    def __init__(self, path: Path, importer: Importer) -> None:
        self.path, self.host = path, importer.name
        source = Source(path)
        assert importer.snapshots is not None
        source.require_last_line()
        taken: dict[str, list[Snapshot]] = {}
        for one in importer.snapshots(source):
            if one.time is None:
                raise source.refuse(
                    one.line,
                    "this snapshot has no time, so that it can't be joined to a run; write 'snapshot_time: ' and the "
                    "seconds since 1970 above each",
                )
            taken.setdefault(one.name, []).append(one)
        ordered = {name: sorted(own, key=lambda one: one.time or 0.0) for name, own in taken.items() if len(own) > 1}
        self._by_name, self._left_out = without_ended_jobs(ordered)
        for one, later in (pair for own in self._by_name.values() for pair in pairwise(own)):
            require_later(one, later)
            require_same(one, later)
        if not self._by_name:
            raise InputError(f"{path}:{source.last}: there are fewer than two snapshots in it; take more of them.")
        moments = {one.time for own in self._by_name.values() for one in own if one.time is not None}
        self.times: NDArray[np.float64] = np.array(sorted(moments))
        most = max(self._by_name.values(), key=len)
        self.count = len(most)
        self.every_seconds = float(np.median(np.diff([one.time or 0.0 for one in most])))

    def totals(self) -> Iterator[tuple[str, str, NDArray[np.float64], list[float], list[float]]]:
        """Of each kind of request its name, kind of resource, the times at which it is known, and at each of them the
        seconds and the number so far. Of a client's requests these are the trips; of untimed ones the seconds are the
        number."""
        for name, own in self._by_name.items():
            holds = own[-1].holds
            for op in sorted({op for one in own for op in one.counts}):
                known = [one.counts.get(op) for one in own]
                part = op[op.find(".") :] if "." in op else ""
                whole = part == (TRIP if holds == TRIPS else "")
                untimed = any(one is not None and one.seconds is None for one in known)
                if not (whole or part == WAIT or untimed):
                    continue
                counts = [float(one.count) if one else 0.0 for one in known]
                seconds = counts if untimed else [one.seconds or 0.0 if one else 0.0 for one in known]
                times = np.array([one.time or 0.0 for one in own])
                kind = COUNTED if untimed else holds if whole else WAITING
                yield f"{self.host} {name} {op}", kind, times, seconds, counts

    @property
    def notes(self) -> list[str]:
        """What the last snapshots say of themselves."""
        return [own[-1].note for own in self._by_name.values() if own[-1].note] + self._left_out


class AtServer(NamedTuple):
    """Seconds of an operation at a server, of which `wait` for a thread where that is counted by itself. network: they
    hold the way there and back, too."""

    seconds: float
    wait: float | None
    network: bool = False


def at_targets(
    handling: Mapping[tuple[str, str], float], waiting: Mapping[tuple[str, str], float]
) -> Iterator[AtServer]:
    """By machine and name, seconds of an operation in which threads worked for targets, and waits at its services. A
    machine's targets share their threads, so that they are added up; a target's jobs and clients count the same again.
    Without the waits nothing is known."""
    machines: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for (host, name), seconds in handling.items():
        target = TARGET.match(name)
        at = target[0] if target else name
        views = machines.setdefault((host, target[1] if target else ""), {}).setdefault(at, {})
        view = name[len(at) : len(at) + 1]  # "": all, " ": a job, ".": a client
        views[view] = views.get(view, 0.0) + seconds
    for (host, kind), targets in machines.items():
        begin = SERVICES.get(kind, "")
        waits = [one for (at, name), one in waiting.items() if at == host and name.startswith(begin)]
        if waits:  # the service where they waited longest
            most = max(waits)
            yield AtServer(sum(max(views.values()) for views in targets.values()) + most, most)


@dataclass(frozen=True)
class Served:
    """What a server's counters say at a number of ranks without think time: operations a second of the clients, and
    AtServer's parts."""

    ranks: int
    rate: float
    seconds: float
    wait: float | None = None
    network: bool = False


@dataclass(frozen=True)
class Threads:
    """service: seconds of an operation in which it holds a thread, with the network where `network`. weights: of
    numbers of threads, ascending, each for all that are nearer to it than to another one; of the largest number, that
    there are no fewer. busy: threads in use at most, in the mean."""

    service: float
    weights: dict[int, float]
    busy: float
    network: bool = False

    @property
    def likely(self) -> int | None:
        """The number of threads; None where the counters leave it open."""
        number, weight = max(self.weights.items(), key=lambda one: one[1])
        return number if weight >= SURE and number < max(self.weights) else None

    def surprise(self, threads: float) -> float:
        """Twice the logarithm by which this number is less likely than the likeliest one, up to a bound: a handful of
        counters may mislead."""
        weight = self.weights[min(self.weights, key=lambda number: abs(math.log(number / max(threads, 1.0))))]
        return -2 * math.log(max(weight / max(self.weights.values()), LEAST))

    def note(self, station: str) -> ThreadsCounted:
        return ThreadsCounted(
            station, self.service, self.busy, self.at_least, self.at_most, self.likely, network=self.network
        )

    @property
    def at_least(self) -> int:
        """All fewer ones together are unlikely."""
        sums = accumulate(self.weights.values())
        return next(number for number, sum_ in zip(self.weights, sums, strict=True) if sum_ > (1 - SURE) / 2)

    @property
    def at_most(self) -> int | None:
        """All more ones together are unlikely; None where the largest number may be."""
        if self.weights[max(self.weights)] > LEAST * max(self.weights.values()):
            return None
        sums = accumulate(self.weights.values())
        return next(number for number, sum_ in zip(self.weights, sums, strict=True) if sum_ >= (1 + SURE) / 2)


def threads_of(served: Sequence[Served]) -> Threads | None:
    """The number of threads that explains how the time at a server grows with the ranks (closed M/M/c with the measured
    delay elsewhere, waits between those of exponential and constant service; of trips with any share of the network);
    None without a lone rank's counters, and without a larger scale."""
    alone = [one for one in served if one.ranks == 1]
    more = [one for one in served if one.ranks > 1]
    if not alone or not more or min(one.seconds for one in alone) <= 0:
        return None
    own = float(np.mean([one.seconds - (one.wait or 0.0) for one in alone]))
    network = any(one.network for one in (*alone, *more))
    shares = SERVICE if network else SERVICE[-1:]
    most = max(one.ranks for one in more)
    costs = {}
    tried = numbers_up_to(most)
    for threads in tried:
        costs[threads] = math.inf
        for held in (own * share for share in shares):
            elsewhere = [max(one.ranks / one.rate - one.seconds, 0.0) + own - held for one in more]
            waits = [closed_wait(one.ranks, held, at, threads) for one, at in zip(more, elsewhere, strict=True)]
            costs[threads] = min(
                costs[threads],
                *(
                    sum(
                        ((_wait(one, own) - share * wait) / (SPREAD * (own + _wait(one, own)))) ** 2
                        for one, wait in zip(more, waits, strict=True)
                    )
                    for share in np.linspace(CONSTANT, 1.0, 6)
                ),
            )
    least = min(costs.values())
    # A number of threads is as likely before as any multiple of it: each tried one has the logarithm of its range.
    edges = [0.5, *((a + b) / 2 for a, b in pairwise(tried)), tried[-1] + 0.5]
    ranges = {number: math.log(high / low) for number, (low, high) in zip(tried, pairwise(edges), strict=True)}
    weights = {threads: math.exp(-(cost - least) / 2) * ranges[threads] for threads, cost in costs.items()}
    whole = sum(weights.values())
    busy = max(one.rate * own for one in served)
    return Threads(own, {threads: weight / whole for threads, weight in weights.items()}, busy, network)


def _wait(one: Served, own: float) -> float:
    return one.wait if one.wait is not None else max(one.seconds - own, 0.0)


def numbers_up_to(most: int) -> list[int]:
    """Numbers of threads to try: all up to 16, then eight for each doubling, and the last one."""
    further = (round(16 * 2 ** (k / 8)) for k in range(1, 8 * max(most.bit_length() - 4, 0) + 1))
    return [*range(1, min(most, 16) + 1), *sorted({n for n in further if n < most} | {most} - set(range(17)))]


def closed_wait(customers: int, service: float, delay: float, servers: int) -> float:
    """Mean wait in a closed M/M/c queue with a delay elsewhere, from the probabilities of how many are at the servers
    (product form; Gordon & Newell 1967)."""
    if delay <= 0:
        return max(customers * service / min(customers, servers) - service, 0.0)
    at = np.arange(customers + 1)
    busy = np.minimum(at, servers)
    logs = at * math.log(service / delay) - gammaln(customers - at + 1)
    logs[1:] -= np.cumsum(np.log(busy[1:]))
    chances = np.exp(logs - np.max(logs))
    return max(float(chances @ at / (chances @ busy)) * service - service, 0.0)

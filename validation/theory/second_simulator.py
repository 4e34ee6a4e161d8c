# SPDX-License-Identifier: Apache-2.0
"""A second simulator of a metadata server: plain Python, one heap of events, nothing of iocast in it.

`threads` servers, first come first served; clients that stat, read, remove and create in turn, one operation at a time, each followed by
`waiting_factor` times its response of thinking. Times in seconds."""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

OPERATIONS = ("stat", "read", "unlink", "create")
MODIFYING = frozenset(("unlink", "create"))


@dataclass
class System:
    """Means are of one client alone."""

    threads: int = 8
    service: dict[str, float] = field(default_factory=lambda: {"stat": 4e-4, "read": 5e-4, "unlink": 9e-4, "create": 1e-3})
    sigma: float = 0.5  # of the logarithm of a service time
    round_trip: float = 2e-4  # of every request
    storage: float = 6e-4  # mean of a lognormal delay that only reads have
    stall_every: float = 0.0  # modifying services do not begin for stall_length every so often; 0: never
    stall_length: float = 0.0
    contention: float = 0.0  # n busy threads serve at 1 / (1 + contention (n - 1)) each
    journal: float = 0.0  # share of a modifying service with one lock of the whole server held


@dataclass
class Observed:
    """One run: what every operation took, and the whole of it."""

    seconds: float
    latencies: dict[str, list[float]]

    @property
    def rate(self) -> float:
        return sum(map(len, self.latencies.values())) / self.seconds


def run(system: System, clients: int, iterations: int, waiting_factor: float, seed: int) -> Observed:
    """Every client performs `iterations` rounds of the four operations; the run lasts until the last one is done."""
    return _Machine(system, clients, iterations, waiting_factor, seed).run()


class _Request:
    __slots__ = ("begun", "client", "modifies", "op", "rest", "service")

    def __init__(self, client: int, op: str, begun: float) -> None:
        self.client, self.op, self.begun = client, op, begun
        self.modifies = op in MODIFYING
        self.service = 0.0
        self.rest = 0.0


class _Machine:
    def __init__(self, system: System, clients: int, iterations: int, waiting_factor: float, seed: int) -> None:
        self.system = system
        self.random = random.Random(seed)
        self.clients = clients
        self.left = [4 * iterations] * self.clients
        self.waiting_factor = waiting_factor
        self.now = 0.0
        self.events: list[tuple[float, int, Any, Any]] = []
        self.order = 0
        self.queue: deque[_Request] = deque()
        self.busy = 0
        self.locked = False
        self.waiting_for_lock: deque[_Request] = deque()
        self.stall_phase = self.random.random() * system.stall_every
        self.latencies: dict[str, list[float]] = {op: [] for op in OPERATIONS}
        self.working = self.clients

    def at(self, time: float, what: Any, who: Any = None) -> None:
        self.order += 1
        heapq.heappush(self.events, (time, self.order, what, who))

    def run(self) -> Observed:
        for client in range(self.clients):
            self.at(self.random.random() * 1e-3, self.begin, client)
        last = 0.0
        while self.working:
            self.now, _, what, who = heapq.heappop(self.events)
            what(who)
            last = self.now
        return Observed(last, self.latencies)

    # A client's operation, from its beginning to its answer.

    def begin(self, client: int) -> None:
        request = _Request(client, OPERATIONS[-self.left[client] % 4], self.now)
        self.at(self.now + self.half_trip(), self.arrive, request)

    def half_trip(self) -> float:
        return 0.5 * self.system.round_trip * self.random.uniform(0.9, 1.1)

    def answered(self, request: _Request) -> None:
        if request.op == "read":
            self.at(self.now + self.lognormal(self.system.storage, 0.4), self.done, request)
        else:
            self.done(request)

    def done(self, request: _Request) -> None:
        response = self.now - request.begun
        self.latencies[request.op].append(response)
        self.left[request.client] -= 1
        if self.left[request.client]:
            self.at(self.now + self.waiting_factor * response, self.begin, request.client)
        else:
            self.working -= 1

    # The server.

    def arrive(self, request: _Request) -> None:
        if self.busy < self.system.threads:
            self.busy += 1
            self.start(request)
        else:
            self.queue.append(request)

    def start(self, request: _Request) -> None:
        until = self.stalled_until() if request.modifies else self.now
        request.service = self.lognormal(self.system.service[request.op], self.system.sigma) * (1 + self.system.contention * (self.busy - 1))
        if until > self.now:
            self.at(until, self.serve, request)
        else:
            self.serve(request)

    def serve(self, request: _Request) -> None:
        if request.modifies and self.system.journal:
            request.rest = request.service * (1 - self.system.journal)
            request.service *= self.system.journal
            if self.locked:
                self.waiting_for_lock.append(request)
            else:
                self.locked = True
                self.at(self.now + request.service, self.unlock, request)
        else:
            self.at(self.now + request.service, self.leave, request)

    def unlock(self, request: _Request) -> None:
        if self.waiting_for_lock:
            after = self.waiting_for_lock.popleft()
            self.at(self.now + after.service, self.unlock, after)
        else:
            self.locked = False
        self.at(self.now + request.rest, self.leave, request)

    def leave(self, request: _Request) -> None:
        if self.queue:
            self.start(self.queue.popleft())
        else:
            self.busy -= 1
        self.at(self.now + self.half_trip(), self.answered, request)

    def stalled_until(self) -> float:
        every = self.system.stall_every
        if not every:
            return self.now
        return (self.now + self.stall_phase) // every * every - self.stall_phase + self.system.stall_length

    def lognormal(self, mean: float, sigma: float) -> float:
        return mean * math.exp(self.random.gauss(-0.5 * sigma * sigma, sigma))

# SPDX-License-Identifier: Apache-2.0
"""A second simulator of metadata servers, for truths that a calibration has to find: plain Python, one heap of events, nothing of iocast in it.

What it knows is fixed here and wider than what a calibration can choose between. One metadata server with `threads` servers, first come first
served; clients that stat, read, remove and create in turn, one operation at a time, each followed by `waiting_factor` times its response of
thinking. Times in seconds."""

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
class Truth:
    """A system. Means are of one client alone."""

    threads: int = 8
    service: dict[str, float] = field(default_factory=lambda: {"stat": 4e-4, "read": 5e-4, "unlink": 9e-4, "create": 1e-3})
    sigma: float = 0.5  # of the logarithm of a service time
    round_trip: float = 2e-4  # of every request
    storage: float = 6e-4  # mean of a lognormal delay that only reads have
    slots: int = 0  # requests that a node may have on their way; 0: any number
    stall_every: float = 0.0  # modifying services do not begin for stall_length every so often; 0: never
    stall_length: float = 0.0
    stall_sigma: float = 0.3
    background: float = 0.0  # share of all threads' time that others' work takes
    contention: float = 0.0  # n busy threads serve at 1 / (1 + contention (n - 1)) each
    crowding: float = 0.0  # and a service that begins with q requests waiting takes 1 + crowding ln(1 + q / threads) times as long
    node_sigma: float = 0.0  # of the logarithm of a node's factor on its round trips
    # What no calibration of iocast has a choice for:
    journal: float = 0.0  # share of a modifying service with one lock of the whole server held
    thrash_beyond: int = 0  # with more requests than this at the server, services take as many times longer as there are more; 0: never
    batch: int = 0  # modifying services begin only in groups of this many, or after 20 ms; 0: at once
    slow_every: float = 0.0  # the server is `slow_factor` slower for half of every such period
    slow_factor: float = 1.0


@dataclass
class Observed:
    """One run: what every operation took, and the whole of it."""

    seconds: float
    latencies: dict[str, list[float]]
    ends: dict[str, list[float]]  # since the start of the run, in the same order

    @property
    def rate(self) -> float:
        return sum(map(len, self.latencies.values())) / self.seconds


def run(truth: Truth, nodes: int, per_node: int, iterations: int, waiting_factor: float, seed: int) -> Observed:
    """Every client performs `iterations` rounds of the four operations; the run lasts until the last one is done."""
    return _Machine(truth, nodes, per_node, iterations, waiting_factor, seed).run()


class _Request:
    __slots__ = ("begun", "client", "modifies", "op", "rest", "service")

    def __init__(self, client: int, op: str, begun: float) -> None:
        self.client, self.op, self.begun = client, op, begun
        self.modifies = op in MODIFYING
        self.service = 0.0
        self.rest = 0.0


class _Machine:
    def __init__(self, truth: Truth, nodes: int, per_node: int, iterations: int, waiting_factor: float, seed: int) -> None:
        self.t = truth
        self.random = random.Random(seed)
        self.clients = nodes * per_node
        self.per_node = per_node
        self.left = [4 * iterations] * self.clients
        self.waiting_factor = waiting_factor
        self.now = 0.0
        self.events: list[tuple[float, int, Any, Any]] = []
        self.order = 0
        self.queue: deque[_Request] = deque()
        self.busy = 0
        self.slots_taken = [0] * nodes
        self.slot_queue: list[deque[_Request]] = [deque() for _ in range(nodes)]
        self.locked = False
        self.waiting_for_lock: deque[_Request] = deque()
        self.held_back: list[_Request] = []  # of a batch
        self.node_factor = [math.exp(self.random.gauss(0, truth.node_sigma)) if truth.node_sigma else 1.0 for _ in range(nodes)]
        self.stall_phase = self.random.random() * truth.stall_every if truth.stall_every else 0.0
        self.stalls: dict[int, float] = {}
        self.latencies: dict[str, list[float]] = {op: [] for op in OPERATIONS}
        self.ends: dict[str, list[float]] = {op: [] for op in OPERATIONS}
        self.working = self.clients

    def at(self, time: float, what: Any, who: Any = None) -> None:
        self.order += 1
        heapq.heappush(self.events, (time, self.order, what, who))

    def run(self) -> Observed:
        for client in range(self.clients):
            self.at(self.random.random() * 1e-3, self.begin, client)
        if self.t.background:
            self.at(self.random.expovariate(self.background_rate()), self.background_arrives)
        last = 0.0
        while self.working:
            self.now, _, what, who = heapq.heappop(self.events)
            what(who)
            last = self.now
        return Observed(last, self.latencies, self.ends)

    def background_rate(self) -> float:
        return self.t.background * self.t.threads / (sum(self.t.service.values()) / 4)

    def background_arrives(self, _: Any) -> None:
        self.arrive(_Request(-1, self.random.choice(OPERATIONS), self.now))
        self.at(self.now + self.random.expovariate(self.background_rate()), self.background_arrives)

    # A client's operation, from its beginning to its answer.

    def begin(self, client: int) -> None:
        op = OPERATIONS[-self.left[client] % 4]
        request = _Request(client, op, self.now)
        node = client // self.per_node
        if self.t.slots and self.slots_taken[node] == self.t.slots:
            self.slot_queue[node].append(request)
        else:
            self.slots_taken[node] += 1
            self.send(request)

    def send(self, request: _Request) -> None:
        self.at(self.now + self.half_trip(request), self.arrive, request)

    def half_trip(self, request: _Request) -> float:
        return 0.5 * self.t.round_trip * self.node_factor[request.client // self.per_node] * self.random.uniform(0.9, 1.1)

    def answered(self, request: _Request) -> None:
        node = request.client // self.per_node
        if self.slot_queue[node]:
            self.send(self.slot_queue[node].popleft())
        else:
            self.slots_taken[node] -= 1
        if request.op == "read":
            self.at(self.now + self.lognormal(self.t.storage, 0.4), self.done, request)
        else:
            self.done(request)

    def done(self, request: _Request) -> None:
        response = self.now - request.begun
        self.latencies[request.op].append(response)
        self.ends[request.op].append(self.now)
        self.left[request.client] -= 1
        if self.left[request.client]:
            self.at(self.now + self.waiting_factor * response, self.begin, request.client)
        else:
            self.working -= 1

    # The server.

    def arrive(self, request: _Request) -> None:
        if self.t.batch and request.modifies and request.client >= 0:
            self.held_back.append(request)
            if len(self.held_back) >= self.t.batch:
                self.release_batch(None)
            elif len(self.held_back) == 1:
                self.at(self.now + 0.02, self.batch_is_late, request)
            return
        self.enter(request)

    def batch_is_late(self, first: _Request) -> None:
        if self.held_back and self.held_back[0] is first:
            self.release_batch(None)

    def release_batch(self, _: Any) -> None:
        together, self.held_back = self.held_back, []
        for request in together:
            self.enter(request)

    def enter(self, request: _Request) -> None:
        if self.busy < self.t.threads:
            self.busy += 1
            self.start(request)
        else:
            self.queue.append(request)

    def start(self, request: _Request) -> None:
        until = self.stalled_until() if request.modifies else self.now
        request.service = self.lognormal(self.t.service[request.op], self.t.sigma) * self.slowdown()
        if until > self.now:
            self.at(until, self.serve, request)
        else:
            self.serve(request)

    def serve(self, request: _Request) -> None:
        if request.modifies and self.t.journal:
            request.rest = request.service * (1 - self.t.journal)
            request.service *= self.t.journal
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
        if request.client >= 0:
            self.at(self.now + self.half_trip(request), self.answered, request)

    def slowdown(self) -> float:
        t, waiting = self.t, len(self.queue)
        factor = 1 + t.contention * (self.busy - 1)
        if t.crowding:
            factor *= 1 + t.crowding * math.log1p(waiting / t.threads)
        if t.thrash_beyond and self.busy + waiting > t.thrash_beyond:
            factor *= (self.busy + waiting) / t.thrash_beyond
        if t.slow_every and self.now % t.slow_every < t.slow_every / 2:
            factor *= t.slow_factor
        return factor

    def stalled_until(self) -> float:
        t = self.t
        if not t.stall_every:
            return self.now
        number = int((self.now + self.stall_phase) // t.stall_every)
        if number not in self.stalls:
            self.stalls[number] = t.stall_length * math.exp(self.random.gauss(0, t.stall_sigma))
        return number * t.stall_every - self.stall_phase + self.stalls[number]

    def lognormal(self, mean: float, sigma: float) -> float:
        return mean * math.exp(self.random.gauss(-0.5 * sigma * sigma, sigma))

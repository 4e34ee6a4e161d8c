# SPDX-License-Identifier: Apache-2.0
"""A second simulator of a metadata server: plain Python, one heap of events, nothing of iocast in it.

`threads` servers, first come first served; clients that stat, read, remove and create in turn, one operation at a time,
each followed by `waiting_factor` times its response of thinking. Times in seconds."""

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
    service: dict[str, float] = field(
        default_factory=lambda: {"stat": 4e-4, "read": 5e-4, "unlink": 9e-4, "create": 1e-3}
    )
    sigma: float = 0.5  # of the logarithm of a service time
    round_trip: float = 2e-4  # of every request
    storage: float = 6e-4  # mean of a lognormal delay that only reads have
    stall_every: float = 0.0  # modifying services do not begin for stall_length every so often; 0: never
    stall_length: float = 0.0
    contention: float = 0.0  # n busy threads serve at 1 / (1 + contention (n - 1)) each
    journal: float = 0.0  # share of a modifying service with one lock of the whole server held
    serial: float = 0.0  # share of every other service with that lock held
    crowding: float = 0.0  # a service that begins while others wait is longer by crowding ln(1 + waiting / threads)
    cliff: int = 0  # beyond this number of busy threads each further one lengthens services by cliff_slope; 0: never
    cliff_slope: float = 0.1
    others: float = 0.0  # requests a second of other people, with the mean service of all operations
    detour: float = 0.0  # probability that an answer comes later by detour_length, without a thread
    detour_length: float = 0.0
    shards: int = 1  # servers with `threads` each; which of them has an object is its name's chance
    newest_first: bool = False  # the queue is a stack
    cache: int = 0  # storage's delay is 1 + clients / cache times as long; 0: always the same
    disk: float = 0.0  # mean time of modifying operations on one disk, after the server
    node_limit: int = 0  # requests that all clients, on one node, have at the server at once; 0: no limit
    slow_second: float = 0.0  # every second client is slower: a delay of its own, times the mean service
    fall_from: int = 0  # requests inside, beyond which each further one lengthens services by fall_slope; 0: never
    fall_slope: float = 0.0
    commit: float = 0.0  # modifying operations are answered at the next of ticks that are so far apart
    token: float = 0.0  # a modifying service is longer by this when the one before was another client's
    refuse_beyond: int = 0  # waiting requests beyond which one is refused and comes again after refuse_delay; 0: never
    refuse_delay: float = 0.0
    slow_every: float = 0.0  # services take slow_factor times as long in a fifth of every such period; 0: never
    slow_factor: float = 1.0
    client: float = 0.0  # a client's own work on writing, and half of it on closing
    requests: dict[str, int] = field(default_factory=dict)  # of an operation, one after the other; default 1
    fork: int = 1  # every request has a part at each of this number of servers, and ends with the last of them
    group: float = 0.0  # mean time of a commit, which takes all modifying operations that wait for one; 0: none
    last: str = ""  # this operation is served only where no other waits
    hot: float = 0.0  # share of objects that are on the first of the shards; 0: as many as on the others
    memory: int = 0  # clients whose objects fit into memory; reads of those beyond it take `miss` more; 0: all
    miss: float = 0.0
    further: list[tuple[int, dict[str, float]]] = field(default_factory=list)  # stations after this one: servers, means


@dataclass
class Observed:
    """One run: what every operation took, and the whole of it."""

    seconds: float
    latencies: dict[str, list[float]]
    begun: dict[str, list[float]]  # of the same operations
    opened: dict[str, list[float]]  # what read and create took of it up to the server's answer
    finished: list[float]  # when each client was done

    @property
    def rate(self) -> float:
        return sum(map(len, self.latencies.values())) / self.seconds


def run(system: System, clients: int, iterations: int, waiting_factor: float, seed: int) -> Observed:
    """Every client performs `iterations` rounds of the four operations; the run lasts until the last one is done."""
    return _Machine(system, clients, iterations, waiting_factor, seed).run()


class _Request:
    __slots__ = ("at", "begun", "client", "held", "modifies", "op", "parent", "parts", "rest", "service", "shard")

    def __init__(self, client: int, op: str, begun: float, shard: int, held: float) -> None:
        self.client, self.op, self.begun, self.shard = client, op, begun, shard
        self.modifies = op in MODIFYING
        self.held = held  # share of the service with the lock
        self.service = 0.0
        self.rest = 0.0
        self.at = 0  # further stations that it has left
        self.parts = 1  # of it that are not done: requests that follow, or parts at several servers
        self.parent: _Request | None = None  # that it is a part of


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
        self.queues: list[deque[_Request]] = [deque() for _ in range(max(system.shards, system.fork))]
        self.busy = [0] * max(system.shards, system.fork)
        self.locked = False
        self.waiting_for_lock: deque[_Request] = deque()
        self.disk_free = 0.0
        self.beyond = [[0, deque[_Request]()] for _ in system.further]  # busy servers, and who waits
        self.committing: list[_Request] = []
        self.uncommitted: list[_Request] = []
        self.inside = 0
        self.at_gate: deque[_Request] = deque()
        self.holder = -1
        self.stall_phase = self.random.random() * system.stall_every
        self.seen = Observed(
            0.0, *({op: [] for op in OPERATIONS} for _ in range(2)), {"read": [], "create": []}, [0.0] * clients
        )
        self.working = self.clients

    def at(self, time: float, what: Any, who: Any = None) -> None:
        self.order += 1
        heapq.heappush(self.events, (time, self.order, what, who))

    def run(self) -> Observed:
        for client in range(self.clients):
            self.at(self.random.random() * 1e-3, self.begin, client)
        if self.system.others:
            self.at(0.0, self.another)
        while self.working:
            self.now, _, what, who = heapq.heappop(self.events)
            what(who)
        self.seen.seconds = self.now
        return self.seen

    # A client's operation, from its beginning to its answer.

    def begin(self, client: int) -> None:
        request = self.request(client, OPERATIONS[-self.left[client] % 4])
        if self.system.node_limit and self.inside >= self.system.node_limit:
            self.at_gate.append(request)
        else:
            self.send(request)

    def send(self, request: _Request) -> None:
        self.inside += 1
        self.at(self.now + self.half_trip(), self.arrive, request)

    def request(self, client: int, op: str) -> _Request:
        shard = self.random.randrange(self.system.shards) if self.system.shards > 1 else 0
        if self.system.hot and shard and self.random.random() < self.system.hot:
            shard = 0
        held = self.system.journal if op in MODIFYING else self.system.serial
        made = _Request(client, op, self.now, shard, held)
        made.parts = self.system.requests.get(op, 1)
        return made

    def another(self, _: None) -> None:
        """A request of other people, whom nobody here waits for."""
        self.at(self.now + self.random.expovariate(self.system.others), self.another)
        self.arrive(self.request(-1, self.random.choice(OPERATIONS)))

    def half_trip(self) -> float:
        return 0.5 * self.system.round_trip * self.random.uniform(0.9, 1.1)

    def answered(self, request: _Request) -> None:
        self.inside -= 1
        if self.at_gate:
            self.send(self.at_gate.popleft())
        if self.system.slow_second and request.client % 2:
            mean = sum(self.system.service.values()) / len(self.system.service)
            self.at(self.now + self.lognormal(self.system.slow_second * mean, 0.3), self.reached, request)
        else:
            self.reached(request)

    def reached(self, request: _Request) -> None:
        if self.system.detour and self.random.random() < self.system.detour:
            self.at(self.now + self.lognormal(self.system.detour_length, 0.2), self.after_detour, request)
        else:
            self.after_detour(request)

    def after_detour(self, request: _Request) -> None:
        if request.op in self.seen.opened:
            self.seen.opened[request.op].append(self.now - request.begun)
        if request.op == "read":
            slower = 1 + self.clients / self.system.cache if self.system.cache else 1.0
            missed = self.system.memory and self.random.random() > self.system.memory / self.clients
            beyond = self.lognormal(self.system.miss, 0.4) if missed else 0.0
            self.at(
                self.now + self.lognormal(self.system.storage * slower, 0.4) + beyond + self.system.client / 2,
                self.done,
                request,
            )
        elif request.op == "create" and self.system.client:
            self.at(self.now + 1.5 * self.system.client, self.done, request)
        else:
            self.done(request)

    def done(self, request: _Request) -> None:
        response = self.now - request.begun
        self.seen.latencies[request.op].append(response)
        self.seen.begun[request.op].append(request.begun)
        self.left[request.client] -= 1
        if self.left[request.client]:
            self.at(self.now + self.waiting_factor * response, self.begin, request.client)
        else:
            self.seen.finished[request.client] = self.now
            self.working -= 1

    # The server.

    def arrive(self, request: _Request) -> None:
        if self.system.fork == 1:
            self.arrive_at(request)
            return
        request.parts = self.system.fork
        for shard in range(self.system.fork):
            part = _Request(request.client, request.op, request.begun, shard, request.held)
            part.parent = request
            self.arrive_at(part)

    def arrive_at(self, request: _Request) -> None:
        refuse = self.system.refuse_beyond and len(self.queues[request.shard]) >= self.system.refuse_beyond
        if refuse and request.client >= 0:
            self.at(self.now + self.random.expovariate(1 / self.system.refuse_delay), self.arrive, request)
            return
        if self.busy[request.shard] < self.system.threads:
            self.busy[request.shard] += 1
            self.start(request)
        else:
            self.queues[request.shard].append(request)

    def start(self, request: _Request) -> None:
        until = self.stalled_until() if request.modifies else self.now
        busy, waiting = self.busy[request.shard], len(self.queues[request.shard])
        slower = (1 + self.system.contention * (busy - 1)) * (
            1 + self.system.crowding * math.log1p(waiting / self.system.threads)
        )
        if self.system.cliff:
            slower *= 1 + self.system.cliff_slope * max(0, busy - self.system.cliff)
        if self.system.fall_from:
            slower *= 1 + self.system.fall_slope * max(0, busy + waiting - self.system.fall_from)
        if self.system.slow_every and self.now % self.system.slow_every < 0.2 * self.system.slow_every:
            slower *= self.system.slow_factor
        request.service = self.lognormal(self.system.service[request.op], self.system.sigma) * slower
        if request.modifies and self.holder != request.client:
            request.service += self.system.token
            self.holder = request.client
        if until > self.now:
            self.at(until, self.serve, request)
        else:
            self.serve(request)

    def serve(self, request: _Request) -> None:
        if request.held:
            request.rest = request.service * (1 - request.held)
            request.service *= request.held
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
        queue = self.queues[request.shard]
        if queue:
            self.start(self.following(queue))
        else:
            self.busy[request.shard] -= 1
        whole = request.parent or request
        whole.parts -= 1
        if whole.client < 0 or (whole.parts and whole is not request):
            return
        if whole.parts:  # the answer, and the client's next request
            self.at(self.now + self.half_trip() + self.half_trip(), self.arrive, whole)
        elif self.system.group and whole.modifies:
            self.uncommitted.append(whole)
            if not self.committing:
                self.commit()
        else:
            self.go_on(whole)

    def go_on(self, request: _Request) -> None:
        """To the next further station that serves it, or back to its client."""
        while request.at < len(self.system.further):
            servers, means = self.system.further[request.at]
            station = self.beyond[request.at]
            if request.op in means:
                if station[0] < servers:
                    station[0] += 1
                    self.at(self.now + self.lognormal(means[request.op], self.system.sigma), self.gone_on, request)
                else:
                    station[1].append(request)
                return
            request.at += 1
        self.at(self.kept_until(request) + self.half_trip(), self.answered, request)

    def gone_on(self, request: _Request) -> None:
        _, means = self.system.further[request.at]
        station = self.beyond[request.at]
        if station[1]:
            after = station[1].popleft()
            self.at(self.now + self.lognormal(means[after.op], self.system.sigma), self.gone_on, after)
        else:
            station[0] -= 1
        request.at += 1
        self.go_on(request)

    def following(self, queue: deque[_Request]) -> _Request:
        """Who is served now of those that wait."""
        if self.system.newest_first:
            return queue.pop()
        for waiting in queue if self.system.last else ():
            if waiting.op != self.system.last:
                queue.remove(waiting)
                return waiting
        return queue.popleft()

    def commit(self, _: None = None) -> None:
        """The end of a commit, and the beginning of the next with all that have come meanwhile."""
        for request in self.committing:
            self.at(self.now + self.half_trip(), self.answered, request)
        self.committing, self.uncommitted = self.uncommitted, []
        if self.committing:
            self.at(self.now + self.lognormal(self.system.group, self.system.sigma), self.commit)

    def kept_until(self, request: _Request) -> float:
        """When the answer leaves: after the disk and the next tick."""
        if not request.modifies:
            return self.now
        until = self.now
        if self.system.disk:
            self.disk_free = until = max(until, self.disk_free) + self.lognormal(self.system.disk, self.system.sigma)
        if self.system.commit:
            until = math.ceil(until / self.system.commit) * self.system.commit
        return until

    def stalled_until(self) -> float:
        every = self.system.stall_every
        if not every:
            return self.now
        return (self.now + self.stall_phase) // every * every - self.stall_phase + self.system.stall_length

    def lognormal(self, mean: float, sigma: float) -> float:
        return mean * math.exp(self.random.gauss(-0.5 * sigma * sigma, sigma))

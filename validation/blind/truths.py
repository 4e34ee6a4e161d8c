# SPDX-License-Identifier: Apache-2.0
"""Random metadata servers whose truth is known, for the second simulator: some that the platform `lustre` can be, some
that it can't, and some whose end lies beyond all that is measured of them. And systems of eight other kinds: of four of
them the rules for blends and alarms were chosen, of the other four they are judged."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from second_simulator import System


@dataclass(frozen=True)
class Truth:
    name: str
    system: System
    side: str  # one of SIDES
    seconds: float  # how long each of its runs lasts, about
    one_node: bool = False  # all clients are on one node


Change = Callable[[random.Random, System], None]


def _nothing(_: random.Random, system: System) -> None:
    del system


def _contention(r: random.Random, system: System) -> None:
    system.contention = _log_uniform(r, 0.01, 0.15)


def _crowding(r: random.Random, system: System) -> None:
    system.crowding = _log_uniform(r, 0.03, 0.3)


def _stall(r: random.Random, system: System) -> None:
    system.stall_every = r.uniform(1.0, 2.5)
    system.stall_length = system.stall_every * r.uniform(0.06, 0.15)


def _journal(r: random.Random, system: System) -> None:
    system.threads = r.choice((4, 8))
    system.journal = r.uniform(0.15, 0.7)


def _others(r: random.Random, system: System) -> None:
    mean = sum(system.service.values()) / len(system.service)
    system.others = r.uniform(0.1, 0.4) * system.threads / mean


def _cliff(r: random.Random, system: System) -> None:
    system.threads, system.cliff, system.cliff_slope = 64, r.choice((3, 6, 9)), r.uniform(0.05, 0.25)


def _detour(r: random.Random, system: System) -> None:
    system.detour, system.detour_length = r.uniform(0.01, 0.05), r.uniform(8e-3, 3e-2)


def _shards(r: random.Random, system: System) -> None:
    system.shards, system.threads = r.choice((2, 4, 8)), r.choice((1, 2))


def _newest_first(_: random.Random, system: System) -> None:
    system.newest_first = True


def _cache(r: random.Random, system: System) -> None:
    system.cache = r.choice((4, 8, 32))


def _serial(r: random.Random, system: System) -> None:
    system.threads, system.serial = r.choice((16, 32)), r.uniform(0.05, 0.3)
    system.journal = system.serial


INSIDE: dict[str, Change] = {
    "plain": _nothing,
    "contention": _contention,
    "crowding": _crowding,
    "stall": _stall,
    "journal": _journal,
    "others": _others,
}
OUTSIDE: dict[str, Change] = {
    "cliff": _cliff, "detour": _detour, "shards": _shards, "newest first": _newest_first, "cache": _cache,
    "serial": _serial,
}  # fmt: skip


def _late(r: random.Random, system: System) -> None:
    system.threads = r.choice((16, 32))


def _late_contention(r: random.Random, system: System) -> None:
    _contention(r, system)
    _late(r, system)


def _late_crowding(r: random.Random, system: System) -> None:
    _crowding(r, system)
    _late(r, system)


# As many threads as there are clients in what is measured, or more: nothing of how the system saturates is seen.
UNSEEN: dict[str, Change] = {"late": _late, "late contention": _late_contention, "late crowding": _late_crowding}
SIDES = {"in the grid": INSIDE, "out of it": OUTSIDE, "beyond sight": UNSEEN}
_TURNS = ("in the grid", "out of it", "in the grid", "out of it", "beyond sight")


def _disk(r: random.Random, system: System) -> None:
    mean = sum(system.service.values()) / len(system.service)
    system.threads, system.disk = r.choice((2, 4)), mean * r.uniform(0.3, 1.2)


def _late_fall(r: random.Random, system: System) -> None:
    system.threads = r.choice((2, 4, 8))
    system.fall_from, system.fall_slope = r.choice((6, 8)), r.uniform(0.02, 0.06)


def _commit(r: random.Random, system: System) -> None:
    system.commit = r.uniform(2e-3, 1e-2)


def _token(r: random.Random, system: System) -> None:
    system.token = r.uniform(0.5, 2) * system.service["create"]


def _node_limit(r: random.Random, system: System) -> None:
    system.threads, system.node_limit = 64, r.choice((3, 4, 6, 8))


def _slow_second(r: random.Random, system: System) -> None:
    system.slow_second = r.uniform(1, 4)


def _refusals(r: random.Random, system: System) -> None:
    system.threads, system.refuse_beyond = r.choice((1, 2, 4)), r.choice((2, 4))
    system.refuse_delay = r.uniform(1e-3, 5e-3)


def _slow_periods(r: random.Random, system: System) -> None:
    system.slow_every, system.slow_factor = r.uniform(0.05, 0.2), r.uniform(2, 6)


CHOSEN_ON: dict[str, Change] = {"disk": _disk, "late fall": _late_fall, "commit": _commit, "token": _token}
JUDGED_ON: dict[str, Change] = {
    "node limit": _node_limit, "slow second": _slow_second, "refusals": _refusals, "slow periods": _slow_periods,
}  # fmt: skip


def _requests(r: random.Random, system: System) -> None:
    one = r.uniform(2e-4, 8e-4)
    system.threads, system.service, system.storage = 1, dict.fromkeys(system.service, one), 0.0
    system.requests = {"read": r.choice((1, 2)), "unlink": r.choice((2, 3)), "create": r.choice((3, 4, 5))}
    system.sigma = r.uniform(0.1, 0.6)


def _fork(r: random.Random, system: System) -> None:
    system.fork, system.threads = r.choice((2, 4, 8)), r.choice((1, 2, 4))


def _group(r: random.Random, system: System) -> None:
    system.group = r.uniform(1, 4) * system.service["create"]


def _last(r: random.Random, system: System) -> None:
    system.last = r.choice(("unlink", "create", "read"))


def _hot(r: random.Random, system: System) -> None:
    system.shards, system.threads, system.hot = r.choice((2, 4)), r.choice((1, 2)), r.uniform(0.1, 0.5)


def _memory(r: random.Random, system: System) -> None:
    system.memory, system.miss = r.choice((3, 6, 12)), r.uniform(2, 8) * system.service["read"]


def _network(r: random.Random, system: System) -> None:
    for _ in range(r.choice((1, 2, 3, 5))):
        means = {op: mean * _log_uniform(r, 0.1, 1.5) for op, mean in system.service.items() if r.random() < 0.7}
        system.further.append((r.choice((1, 2, 4, 8)), means))


MISSING: dict[str, Change] = {
    "slow second": _slow_second, "requests": _requests, "fork": _fork, "group": _group, "last": _last, "hot": _hot,
    "memory": _memory, "network": _network,
}  # fmt: skip
OTHER_KINDS = {"chosen on": CHOSEN_ON, "judged on": JUDGED_ON, "missing": MISSING}


def other_truths(count: int, seed: int, side: str) -> list[Truth]:
    """`count` systems of the kinds of this side of OTHER_KINDS, in turns."""
    generator = random.Random(seed)
    kinds = list(OTHER_KINDS[side].items())
    made = []
    for number in range(count):
        kind, change = kinds[number % len(kinds)]
        system = _plain(generator)
        change(generator, system)
        made.append(Truth(f"{number:02d} {kind}", system, side, 1.2, kind == "node limit"))
    return made


def truths(count: int, seed: int) -> list[Truth]:
    """`count` of them, the sides in turns (of five two, two and one), each kind as often as the others of its side."""
    generator = random.Random(seed)
    made: list[Truth] = []
    for number in range(count):
        side = _TURNS[number % len(_TURNS)]
        kinds = list(SIDES[side].items())
        kind, change = kinds[sum(one.side == side for one in made) % len(kinds)]
        system = _plain(generator)
        change(generator, system)
        made.append(Truth(f"{number:02d} {kind}", system, side, max(2.5, 6 * system.stall_every)))
    return made


def _plain(r: random.Random) -> System:
    stat = _log_uniform(r, 4e-4, 1.2e-3)
    service = {
        op: stat * r.uniform(low, high)
        for op, low, high in (("stat", 1, 1), ("read", 1, 1.6), ("unlink", 1.3, 2.5), ("create", 1.4, 3))
    }
    return System(
        threads=r.choice((1, 2, 4, 8)), service=service, sigma=r.uniform(0.2, 0.9),
        round_trip=_log_uniform(r, 5e-5, 4e-4),
        storage=_log_uniform(r, 1e-4, 1e-3), client=_log_uniform(r, 2e-6, 1e-5),
    )  # fmt: skip


def _log_uniform(r: random.Random, low: float, high: float) -> float:
    return float(low * (high / low) ** r.random())

# SPDX-License-Identifier: Apache-2.0
"""HPCS scenarios on file systems of one, two and four storage units.

The pages say what grew with the units and what didn't; the numbers of their figures aren't known here. So "grows" is at
least 1.03 times, "less" at most 0.97 times, "does not grow" 0.87 to 1.15 times; the best is beaten by 3 % at most. The
pages don't say how the shared file was striped (here over all OSTs, since it grows with them), nor how many clients ran
each scenario (here four an OST, page 13's best; one process in scenarios 9 and 11)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from iocast.platforms.documents import chain, find_platform
from iocast.published.experiment import Claim, bandwidth, phase, rate

SOURCE = (
    "J. Carrier, HPCS I/O Scenarios, Lustre Users Group 2012: ORNL's Cray XT4 with Lustre; platforms `xt4`, `xt4-2` "
    "and `xt4-4`."
)

XT4 = {1: "xt4", 2: "xt4-2", 4: "xt4-4"}  # by storage units
OSTS = 16  # of a unit
MEMORY = 8 * 2**30  # of a node, as in the catalogue
RECORD = MEMORY // 2 // 400 * 8  # of scenarios 5 and 7: 1 % of it, in whole numbers of 8 bytes
READ = 129 * 512 / 2  # mean of scenarios 13 and 14: 1 to 128 sectors
INFINITY = float("inf")


def large(scenario: int, units: int, clients: int = 4, seconds: float = 0) -> float:
    """Bytes a second that scenario 5 or 7 writes with this many clients an OST, perhaps stopped after a time."""
    edits: dict[str, Any] = {}
    if scenario == 5:
        route = chain(find_platform("xt4"))[0][1]["operations"]["pwrite"]
        edits["operations.pwrite"] = [*route[:-1], route[-1] | {"stripes": OSTS * units}]
    settings = {"phases": "precreate,checkpoint,cleanup", "memory": f"{MEMORY}B", "most_seconds": f"{seconds}s"}
    found = phase(
        XT4[units], f"hpcs-{scenario:02}", "checkpoint", clients * OSTS * units, settings=settings, edits=edits
    )
    return bandwidth(found, RECORD * found["latency"]["pwrite"]["count"])


def small(scenario: int, units: int) -> float:
    """Bytes a second that scenario 13 or 14 reads at random places."""
    clients = 4 * OSTS * units
    reads = 100 if scenario == 13 else 100 * clients
    edits = {"stations.oss.spread": "stripe"} if scenario == 14 else {}
    settings = {"phases": "random-aligned", "reads": reads}
    found = phase(XT4[units], f"hpcs-{scenario}", "random-aligned", clients, settings=settings, edits=edits)
    return bandwidth(found, READ * found["latency"]["pread"]["count"])


def metadata(scenario: int, units: int) -> float:
    """Operations a second of scenarios 9 to 12."""
    settings = {"phases": "cold", "depth": 2, "branching": 20, "files": 20}
    return rate(phase(XT4[units], f"hpcs-{scenario:02}", "cold", 4 * OSTS * units, settings=settings))


def beside_four(units: int, *others: int) -> float:
    """The best bandwidth of scenario 7 with other numbers of clients an OST, in terms of that with four."""
    return max(large(7, units, clients) for clients in others) / large(7, units)


def early(scenario: int) -> float:
    """Bytes a second of scenario 5 or 7 on one unit, stopped after a fifth of the time that all of it takes."""
    whole = 4 * OSTS * 50 * RECORD / large(scenario, 1)
    return large(scenario, 1, seconds=whole / 5)


def worst(of_units: Callable[[int], float]) -> float:
    """The largest value among the three file systems."""
    return max(of_units(units) for units in XT4)


def two_for_one(scenario: int, units: int) -> float:
    """Bandwidth of twice the units over that of `units`."""
    return large(scenario, 2 * units) / large(scenario, units)


def four_for_one(of_units: Callable[[int, int], float], scenario: int) -> float:
    """Rate of four units over that of one."""
    return of_units(scenario, 4) / of_units(scenario, 1)


def worst_small(scenario: int) -> float:
    """MiB a second of small accesses on the fastest of the three file systems."""
    return worst(lambda units: small(scenario, units)) / 2**20


def early_for_whole(scenario: int) -> float:
    """Bandwidth after a fifth of the time over that of the whole scenario."""
    return early(scenario) / large(scenario, 1)


TOO_FAST = (
    "A read is one seek at its OST here, and 16 OSTs seek about 2000 times a second. 2 MiB/s are one read a second for "
    "each of 64 processes, so what is missing reads far more than was requested, such as read-ahead, or serialises all "
    "of them; unless the page means each process, which gets 0.8 to 0.95 MiB/s here, or had fewer of them."
)
GROWS = (
    "Each OST seeks by itself here, and processes come with the OSTs; what is missing is common to all OSTs, or all "
    "had as many processes."
)

CLAIMS = [
    Claim(
        "The theoretical bandwidth of a unit is about 5 GB/s (the OSTs were given that), which scenario 7 doesn't "
        "exceed.",
        "page 11",
        -INFINITY,
        5.25,
        lambda: large(7, 1) / 1e9,
        "GB/s",
        role="given",
    ),
    Claim(
        "Where the unit is the bottleneck, twice the units double the performance, as in scenario 7 with two.",
        "page 12",
        1.8,
        2.2,
        lambda: large(7, 2) / large(7, 1),
        "times",
    ),
    Claim(
        "In scenario 7, two clients an OST reach less than four on all three file systems (the clients' speed was "
        "chosen for this).",
        "page 13",
        -INFINITY,
        0.97,
        lambda: worst(lambda units: beside_four(units, 2)),
        "times",
        role="fitted",
    ),
    Claim(
        "In scenario 7, eight or 16 clients an OST reach no more than four on any of the three (likewise).",
        "page 13",
        -INFINITY,
        1.03,
        lambda: worst(lambda units: beside_four(units, 8, 16)),
        "times",
        role="fitted",
    ),
    Claim(
        "The shared file of scenario 5 is slower than the files of scenario 7, on all three file systems.",
        "page 14",
        -INFINITY,
        0.97,
        lambda: worst(lambda units: large(5, units) / large(7, units)),
        "times",
    ),
    *(
        Claim(
            f"Scenario {scenario} is faster on {2 * units} units than on {units}.",
            "page 14",
            1.03,
            INFINITY,
            partial(two_for_one, scenario, units),
            "times",
        )
        for scenario in (7, 5)
        for units in (1, 2)
    ),
    Claim(
        "From one unit to four, the shared file gains less than the files of each process.",
        "page 14",
        -INFINITY,
        0.97,
        lambda: large(5, 4) / large(5, 1) / (large(7, 4) / large(7, 1)),
        "times",
    ),
    *(
        Claim(
            f"Random reads of scenario {scenario} stay below 2 MiB/s on all three file systems.",
            "page 15",
            -INFINITY,
            2,
            partial(worst_small, scenario),
            "MiB/s",
            TOO_FAST,
        )
        for scenario in (13, 14)
    ),
    *(
        Claim(
            f"Random reads of scenario {scenario} are no faster on four units than on one.",
            "page 15",
            0.87,
            1.15,
            partial(four_for_one, small, scenario),
            "times",
            GROWS,
        )
        for scenario in (13, 14)
    ),
    *(
        Claim(
            f"Scenario {scenario} is no faster on four units than on one, which have one MDS each.",
            "page 16",
            0.87,
            1.15,
            partial(four_for_one, metadata, scenario),
            "times",
        )
        for scenario in (9, 10, 11, 12)
    ),
    *(
        Claim(
            f"Scenario {scenario} reaches its bandwidth long before all is written: after a fifth of the time, as "
            "against the whole.",
            "page 17",
            0.9,
            1.1,
            partial(early_for_whole, scenario),
            "times",
        )
        for scenario in (7, 5)
    ),
]

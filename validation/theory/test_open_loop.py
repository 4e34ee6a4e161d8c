# SPDX-License-Identifier: Apache-2.0
"""Open loops in the simulator against closed forms: independent replications, Student's intervals.

One false alarm in 10^4 comparisons. Ranks do one operation at a time, so the queue forms at them and at the station; as
nobody rests while there is work, the number in the system is that of one queue, and by Little's law so is the mean time
since the intended start.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from schedule import mostly_long
import systems
from intervals import contains
from systems import station, yaml

Simulate = Callable[..., list[dict[str, Any]]]
SEEDS = range(1, 11)
RESOLUTION = 1e-3  # of the histogram that quantiles come from
SERVICE = 1e-3


def one_queue(law: str) -> str:
    """`stat` and `read` ask for the same service at one server."""
    demand = f"{{law: exponential, mean: {SERVICE * 1e6:g}us}}" if law == "exponential" else f"{SERVICE * 1e6:g}us"
    text = yaml({"s": station(1)}, [{"station": "s", "demand": (law, SERVICE)}])
    return text.replace("  read: {}", f"  read: {{open: [{{station: s, demand: {demand}}}]}}")


def mean_of(phases: list[dict[str, Any]], tag: str) -> list[float]:
    """Mean over all operations, stat and read alike, by replication."""
    rows = [[p["latency"][f"{op}{tag}"] for op in ("stat", "read")] for p in phases]
    return [sum(r["count"] * r["mean"] for r in two) / sum(r["count"] for r in two) for two in rows]


@pytest.mark.parametrize("ranks", [1, 8])
@pytest.mark.parametrize("law", ["exponential", "constant"])
@pytest.mark.parametrize("load", mostly_long([0.3, 0.7], [0.7], "the law at a lower load"))
def test_mean_response(simulate: Simulate, law: str, load: float, ranks: int) -> None:
    """M/M/1: S/(1-rho). M/D/1: S (1 + rho/(2(1-rho))) (Kleinrock 1975, eq. 5.70)."""
    phases = simulate(one_queue(law), ranks, 16000 // ranks, SEEDS, rate=f"{load / SERVICE / ranks:.17g}/s")
    wait = systems.pollaczek_khinchine(load / SERVICE, (law, SERVICE))
    contains(mean_of(phases, ".response"), SERVICE + wait)
    if ranks == 1:  # nobody waits at the station: what is called service time has no queue in it
        contains(mean_of(phases, ""), SERVICE, slack=1e-9)


def test_response_of_one_rank_is_exponential(simulate: Simulate) -> None:
    """M/M/1 in order of arrival: P(response <= t) = 1 - exp(-(1 - rho) t / S), Kleinrock 1975, eq. 5.119."""
    phases = simulate(one_queue("exponential"), 1, 16000, SEEDS, rate="600/s")
    for name, q in (("q50", 0.5), ("q95", 0.95), ("q99", 0.99)):
        shares = [1 - math.exp(-0.4 * float(p["latency"]["stat.response"][name]) / SERVICE) for p in phases]
        contains(shares, q, slack=RESOLUTION)


def test_fixed_rate_below_capacity_never_waits(simulate: Simulate) -> None:
    """D/D/1: gaps of 2 ms, service of 1 ms."""
    phase = simulate(one_queue("constant"), 1, 500, rate="500/s", arrivals="fixed")[0]
    assert phase["latency"]["stat.response"]["max"] == pytest.approx(SERVICE, abs=2e-9)
    assert phase["seconds"] == pytest.approx(2 * 500 / 500, rel=2e-3)


def test_beyond_capacity_the_backlog_grows(simulate: Simulate) -> None:
    """D/D/1 at load 2: operation k is late by k (S - gap); the rate is the server's."""
    phase = simulate(one_queue("constant"), 1, 500, rate="2000/s", arrivals="fixed")[0]
    assert phase["rate"] == pytest.approx(1 / SERVICE, rel=1e-2)
    assert phase["latency"]["read.response"]["max"] == pytest.approx(1000 * 0.5 * SERVICE, rel=1e-2)
    assert phase["latency"]["read"]["max"] == pytest.approx(SERVICE, abs=2e-9)


def test_think_time_is_a_delay(simulate: Simulate) -> None:
    """Machine repairman: exponential think times of 2 ms at one server, as a parameter of the workload instead of a
    step."""
    import numpy as np

    phases = simulate(one_queue("exponential"), 6, 4000, SEEDS, think_time="2ms", think_law="exponential")
    truth = systems.repairman_throughput(6, np.full(6, 1 / SERVICE), 2e-3)
    contains([m + 2e-3 for m in mean_of(phases, "")], 6 / truth)


@pytest.mark.parametrize("load", mostly_long([0.3, 0.7], [0.7], "the law at a lower load"))
@pytest.mark.parametrize("stripes", ["2", "spanned"])
def test_fork_join_of_two(simulate: Simulate, stripes: str, load: float) -> None:
    """Requests with a part at each of two M/M/1 servers: (12 - rho)/8 S/(1-rho) (Flatto & Hahn 1984; Nelson & Tantawi
    1988, eq. 6).

    With so great a number of ranks, next to none of their requests finds its own rank busy. The run ends while all of
    them still send requests. An object of two stripes is read, or two parts are requested whatever the object.
    """
    ranks = 4000
    size = "8KiB" if stripes == "spanned" else "1B"
    two = yaml(
        {"s": station(1, count=2, stripe_size="4KiB") | {"spread": "stripe"}},
        [{"station": "s", "demand": ("exponential", SERVICE), "stripes": 2}],
    )
    text = two.replace(
        "  read: {}", f"  read: {{read: [{{station: s, demand: {{law: exponential, mean: 1ms}}, stripes: {stripes}}}]}}"
    )
    settings = {"phases": "benchmark", "object_size": size, "rate": f"{load / SERVICE / ranks:.17g}/s"}
    phases = simulate(text, ranks, 1000, SEEDS, until="rate:0.5%", **settings)
    contains(mean_of(phases, ".response"), (12 - load) / 8 * SERVICE / (1 - load))


@pytest.mark.parametrize("count", mostly_long([1, 3], [3], "the law of one server"))
@pytest.mark.parametrize("order", [["stat", "background", "read"], ["read", "stat", "background"]], ids="-".join)
def test_classes_wait_behind_those_before_them(simulate: Simulate, count: int, order: list[str]) -> None:
    """M/G/1 and M/M/3 in non-preemptive order: Cobham 1954. With so great a number of ranks, next to none of their
    requests finds its own rank busy."""
    ranks, each = 4000, 0.25 * count / SERVICE
    laws = {name: ("exponential", SERVICE) for name in order}
    if count == 1:
        laws |= {"background": ("lognormal", SERVICE, 1.0), "read": ("constant", SERVICE)}
    others = {"o": {"station": "s", "rate": f"{each:.17g}/s", "demand": laws["background"]}}
    text = yaml(
        {"s": station(count, priority=f"[{', '.join(order)}]")},
        [{"station": "s", "demand": laws["stat"]}],
        background=others,
    )
    text = text.replace("  read: {}", f"  read: {{open: [{{station: s, demand: {systems.yaml_law(laws['read'])}}}]}}")
    settings = {"phases": "benchmark", "rate": f"{2 * each / ranks:.17g}/s"}
    phases = simulate(text, ranks, 1000, SEEDS, until="rate:0.7%", **settings)
    truth = dict(zip(order, systems.cobham([(each, laws[name]) for name in order], count), strict=True))
    for name, called in (("stat", "stat"), ("read", "read"), ("background", "others")):
        contains([float(p["stations"]["s"]["operations"][called]["wait"]) for p in phases], truth[name])

# SPDX-License-Identifier: Apache-2.0
"""The simulator against closed forms: independent replications, Student's intervals.

One false alarm in 10^4 comparisons.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from schedule import mostly_long
import sharpness
import systems
from intervals import contains
from scipy.stats import binom
from systems import station, yaml

from iocast.analytic.product_form import ClosedNetwork, Station, servers

Simulate = Callable[..., list[dict[str, Any]]]
SEEDS = range(1, 11)
RESOLUTION = 1e-3  # of the histogram that quantiles come from
VISIT = {"station": "s", "demand": ("exponential", 1e-3)}
THINK = {"delay": ("exponential", 2e-3)}


def per_stat(phases: list[dict[str, Any]], what: str, name: str = "s") -> list[float]:
    """Seconds a visit of `stat` at a station, by replication."""
    return [float(p["stations"][name]["operations"]["stat"][what]) for p in phases]


def responses(phases: list[dict[str, Any]], what: str = "mean") -> list[float]:
    return [float(p["latency"]["stat"][what]) for p in phases]


# ---- exact to the nanosecond
# -------------------------------------------------------------------------------------------


def test_a_lone_rank_takes_the_sum(simulate: Simulate) -> None:
    platform = yaml({"s": station(1)}, [{"delay": ("constant", 5e-6)}, {"station": "s", "demand": ("constant", 1e-3)}])
    latency = simulate(platform, 1, 100)[0]["latency"]["stat"]
    assert [latency[k] for k in ("min", "mean", "max")] == pytest.approx([1.005e-3] * 3, rel=1e-3)
    assert latency["mean"] == pytest.approx(1.005e-3, abs=1e-9)


def test_nobody_waits_with_a_server_each(simulate: Simulate) -> None:
    phase = simulate(yaml({"s": station(8)}, [VISIT]), 8, 500)[0]
    assert per_stat([phase], "wait") == [0.0]


def test_servers_never_rest(simulate: Simulate) -> None:
    """N = 12 at 4 servers, constant service: all work is done in N I S/c."""
    platform = yaml({"s": station(4)}, [{"station": "s", "demand": ("constant", 1e-3)}])
    assert simulate(platform, 12, 1000)[0]["seconds"] == pytest.approx(3.0, rel=1e-3)


@pytest.mark.parametrize("factor", [1, 4])
def test_concurrency_is_ranks_over_one_plus_t(simulate: Simulate, factor: int) -> None:
    """Responding and thinking divide the ranks' time as 1 : T, on every path."""
    phase = simulate(yaml({"s": station(4)}, [VISIT]), 32, 300, waiting_factor=factor)[0]
    assert phase["think_actual_seconds"] == pytest.approx(factor * phase["responding_seconds"], rel=1e-6)
    # Over the phase's time the same, but for ranks that have ended.
    assert phase["responding_seconds"] / sum(phase["rank_seconds"]) == pytest.approx(1 / (1 + factor), rel=0.02)


def test_time_scales(simulate: Simulate) -> None:
    """1024 times slower throughout: the same run, 1024 times as long."""

    def mean(unit: float) -> float:
        steps = [{"delay": ("exponential", 2 * unit)}, {"station": "s", "demand": ("lognormal", unit, 1.0)}]
        return responses(simulate(yaml({"s": station(3)}, steps), 20, 200))[0]

    assert mean(1024e-4) == pytest.approx(1024 * mean(1e-4), rel=1e-5)


# ---- open queues, as a visitor without service sees them
# ------------------------------------------------------------------


def visitor_waits(simulate: Simulate, arrivals: float, law: tuple, count: int = 1) -> list[float]:
    """Mean waits of ranks that need no service, far apart in time: they see time averages and disturb nobody."""
    others = {"o": {"station": "s", "rate": f"{arrivals:.17g}/s", "demand": law}}
    steps = [{"delay": ("constant", 300e-3)}, {"station": "s", "demand": ("constant", 0.0)}]
    return per_stat(simulate(yaml({"s": station(count)}, steps, background=others), 2, 2500, SEEDS), "wait")


@pytest.mark.parametrize("load", mostly_long([0.3, 0.7], [0.7], "the law at a lower load"))
@pytest.mark.parametrize("count", [1, 4])
def test_erlang(simulate: Simulate, load: float, count: int) -> None:
    """M/M/1 and M/M/c."""
    arrivals = load * count / 1e-3
    contains(
        visitor_waits(simulate, arrivals, ("exponential", 1e-3), count), systems.erlang_wait(arrivals, 1e-3, count)
    )


@pytest.mark.parametrize(
    "law", [("constant", 1e-3), ("lognormal", 1e-3, 1.0), ("two", 0.9, 0.5e-3, 5.5e-3)], ids=lambda law: law[0]
)
def test_pollaczek_khinchine(simulate: Simulate, law: tuple) -> None:
    """M/G/1 at load 0.6."""
    arrivals = 0.6 / systems.moments(law)[0]
    contains(visitor_waits(simulate, arrivals, law), systems.pollaczek_khinchine(arrivals, law))


# ---- closed networks
# -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", mostly_long([3, 16], [16], "fewer ranks than servers; more run always"))
def test_machine_repairman(simulate: Simulate, ranks: int) -> None:
    """M/M/4//N: cycle time N/X, and for N = 16 the sojourn's distribution function at the simulated quantiles.

    The delay is a think time: it belongs to `read`, which leaves `stat` with the queue alone.
    """
    platform = yaml({"s": station(4)}, [VISIT]).replace(
        "  read: {}", "  read: {open: [{delay: {law: exponential, mean: 2ms}}]}"
    )
    phases = simulate(platform, ranks, 8000, SEEDS)
    truth = systems.repairman_throughput(ranks, np.minimum(np.arange(1, ranks + 1), 4) / 1e-3, 2e-3)
    contains([p["latency"]["stat"]["mean"] + p["latency"]["read"]["mean"] for p in phases], ranks / truth)
    if ranks == 16:
        for name, q in (("q50", 0.5), ("q75", 0.75), ("q95", 0.95), ("q99", 0.99)):
            shares = [systems.repairman_sojourn_cdf(ranks, 4, 1e-3, 2e-3, t) for t in responses(phases, name)]
            contains(shares, q, slack=RESOLUTION)


def test_intervals_of_until_hold_the_truth(simulate: Simulate) -> None:
    """The same with N = 16, each run as long as its own precision asks: of 40 intervals of 95 %, as many hold rate and
    95th percentile as of 40 of 88 % with a probability of a false alarm of 1e-4 (some are lost by stopping as soon as
    an interval is narrow)."""
    platform = yaml({"s": station(4)}, [VISIT]).replace(
        "  read: {}", "  read: {open: [{delay: {law: exponential, mean: 2ms}}]}"
    )
    phases = simulate(platform, 16, 10_000_000, range(40), until="rate:2%,stat.q95:3%", phases="benchmark")
    truth = 2 * systems.repairman_throughput(
        16, np.minimum(np.arange(1, 17), 4) / 1e-3, 2e-3
    )  # a stat and a read a cycle
    holds = {"rate": 0, "stat.q95": 0}
    for found in (phase["until"] for phase in phases):
        assert found["met"]
        for name, one in found["estimates"].items():
            assert one["half_width"] <= one["requested"] * one["value"]
            low, high = one["value"] - one["half_width"], one["value"] + one["half_width"]
            if name == "rate":
                holds[name] += low <= truth <= high
            else:
                holds[name] += (
                    systems.repairman_sojourn_cdf(16, 4, 1e-3, 2e-3, low)
                    <= 0.95
                    <= systems.repairman_sojourn_cdf(16, 4, 1e-3, 2e-3, high)
                )
    least = int(binom.ppf(1e-4, 40, 0.88))
    sharpness.fewer_than("coverage", least, 40)
    assert min(holds.values()) >= least, holds


def test_two_stations(simulate: Simulate) -> None:
    """Closed network of a 3-server and a 1-server station and a delay, against convolution."""
    steps = [
        THINK,
        {"station": "a", "demand": ("exponential", 1e-3)},
        {"station": "b", "demand": ("exponential", 0.3e-3)},
    ]
    phases = simulate(yaml({"a": station(3), "b": station(1)}, steps), 12, 8000, SEEDS)
    contains(responses(phases), 12 / systems.convolution([(1e-3, 3), (0.3e-3, 1)], 2e-3, 12))


@pytest.mark.parametrize("law", [("lognormal", 1e-3, 1.0), ("exponential", 1e-3)], ids=lambda law: law[0])
def test_processor_sharing_is_insensitive(simulate: Simulate, law: tuple) -> None:
    """BCMP 1975: with processor sharing only the mean of the service matters, here with 2 servers."""
    platform = yaml({"s": station(2, discipline="ps")}, [THINK, {"station": "s", "demand": law}])
    truth = systems.repairman_throughput(8, [1e3, 2e3], 2e-3)
    contains(responses(simulate(platform, 8, 8000, SEEDS)), 8 / truth)


def test_delays_are_insensitive(simulate: Simulate) -> None:
    """Only the mean of a delay matters to the rate."""
    platform = yaml({"s": station(2)}, [{"delay": ("lognormal", 2e-3, 1.5)}, VISIT])
    contains(responses(simulate(platform, 8, 8000, SEEDS)), 8 / systems.repairman_throughput(8, [1e3, 2e3], 2e-3))


def test_contention_is_a_rate_law(simulate: Simulate) -> None:
    """n servers at 1/(1 + 0.05 (n-1) + 0.02 n (n-1)) each: birth and death with those rates."""
    n = np.arange(1.0, 9.0)
    platform = yaml({"s": station(8, contention=0.05, coherency=0.02)}, [THINK, VISIT])
    truth = systems.repairman_throughput(16, 1e3 * n / (1 + 0.05 * (n - 1) + 0.02 * n * (n - 1)), 2e-3)
    contains(responses(simulate(platform, 16, 5000, SEEDS)), 16 / truth)


MEASURED = [0.9, 1.0, 0.7, 0.65, 0.4]


@pytest.mark.parametrize("discipline", ["fcfs", "ps"])
def test_measured_speeds_are_rates(simulate: Simulate, discipline: str) -> None:
    """Eight servers, each as fast as the table says for the number that is busy, beyond it as for five: birth and death
    with those rates."""
    n = np.arange(1, 9)
    platform = yaml({"s": station(8, discipline=discipline, speeds=MEASURED)}, [THINK, VISIT])
    truth = systems.repairman_throughput(16, 1e3 * n * np.array(MEASURED)[np.minimum(n, 5) - 1], 2e-3)
    contains(responses(simulate(platform, 16, 5000, SEEDS)), 16 / truth)


@pytest.mark.parametrize("discipline", ["fcfs", "ps", "timeslice"])
def test_a_table_of_the_law_is_the_law(simulate: Simulate, discipline: str) -> None:
    """Speeds written out from contention and coherency: the very same run."""
    table = [1 / (1 + 0.05 * (n - 1.0) + 0.02 * n * (n - 1.0)) for n in range(1, 9)]
    law, measured = (
        simulate(yaml({"s": station(8, discipline=discipline, **how)}, [THINK, VISIT]), 16, 500, [1, 2])
        for how in ({"contention": 0.05, "coherency": 0.02}, {"speeds": table})
    )
    assert [(p["seconds"], p["latency"]) for p in law] == [(p["seconds"], p["latency"]) for p in measured]


def test_a_limit_around_a_delay_is_a_multi_server(simulate: Simulate) -> None:
    inside = {"limit": "l", "steps": [{"delay": ("exponential", 1e-3)}]}
    platform = yaml({"s": station(1)}, [THINK, inside], limits={"l": {"slots": 4, "per": "system"}})
    truth = systems.repairman_throughput(16, np.minimum(np.arange(1, 17), 4) / 1e-3, 2e-3)
    contains(responses(simulate(platform, 16, 5000, SEEDS)), 16 / truth)


def test_a_lock_held_throughout_is_one_server(simulate: Simulate) -> None:
    platform = yaml({"s": station(8)}, [THINK, {**VISIT, "lock": "l", "lock_share": 1}], locks={"l": {"per": "system"}})
    contains(responses(simulate(platform, 8, 5000, SEEDS)), 8 / systems.repairman_throughput(8, [1e3], 2e-3))


def test_a_lock_that_all_share_is_none(simulate: Simulate) -> None:
    """To the last bit the run without it."""
    visit = {**VISIT, "lock": "l", "lock_share": 1, "lock_mode": "shared"}
    with_it = simulate(yaml({"s": station(3)}, [THINK, visit], locks={"l": {"per": "system"}}), 8, 2000)[0]
    without = simulate(yaml({"s": station(3)}, [THINK, VISIT]), 8, 2000)[0]
    assert (with_it["seconds"], with_it["latency"]) == (without["seconds"], without["latency"])


def test_equal_instances(simulate: Simulate) -> None:
    """Objects spread over 4 single servers by hash: as 4 stations of a quarter of the demand.

    A rank stats its objects in order and meets the others at each instance at random, which is the product form's
    routing.
    """
    phases = simulate(yaml({"s": station(1, count=4)}, [THINK, VISIT]), 12, 8000, SEEDS)
    contains(responses(phases), 12 / ClosedNetwork([Station("s", 1e-3, servers(1), 4)], 2e-3, 12).throughput)


@pytest.mark.parametrize("ranks", mostly_long([1, 2, 5, 20], [1, 5], "the law of other ranks"))
def test_fork_join_of_two(simulate: Simulate, ranks: int) -> None:
    """Every rank always has a request with a part at each of two servers: the rate is 2N/(2N+1) of one server's.

    The longer queue has all N requests. The shorter one is behind by d = 0 ... N; the walk of d goes up and down at the
    service rate, from 0 up at twice that, so P(d = 0) = 1/(2N+1), and only where d > 0 does a departure end a request.
    """
    visit = {"station": "s", "demand": ("exponential", 1e-3), "stripes": 2}
    phases = simulate(yaml({"s": station(1, count=2)}, [visit]), ranks, 80_000 // ranks, SEEDS)
    contains(responses(phases), 1e-3 * (2 * ranks + 1) / 2)


@pytest.mark.parametrize("ranks", [1, 5])
def test_fork_join_of_the_stripes_that_an_access_spans(simulate: Simulate, ranks: int) -> None:
    """The same rate with objects of two stripes: each read has a part at both servers."""
    striped = yaml({"s": station(1, count=2, stripe_size="4KiB") | {"spread": "stripe"}}, [])
    platform = striped.replace(
        "  read: {}", "  read: {read: [{station: s, demand: {law: exponential, mean: 1ms}, stripes: spanned}]}"
    )
    phases = simulate(platform, ranks, 80_000 // ranks, SEEDS, object_size="8KiB")
    contains([p["latency"]["read"]["mean"] for p in phases], 1e-3 * (2 * ranks + 1) / 2)


@pytest.mark.parametrize("law", [("exponential", 1e-3), ("lognormal", 1e-3, 0.8)], ids=lambda law: law[0])
def test_a_lone_rank_waits_for_the_last_stripe(simulate: Simulate, law: tuple) -> None:
    """The mean and the distribution of the longest of 8 parts: F^8."""
    visit = {"station": "s", "demand": law, "stripes": 8}
    phases = simulate(yaml({"s": station(1, count=8)}, [visit]), 1, 20_000, SEEDS)
    for name, q in (("q50", 0.5), ("q95", 0.95)):
        contains([systems.cumulative(law, t) ** 8 for t in responses(phases, name)], q, slack=RESOLUTION)
    if law[0] == "exponential":
        contains(responses(phases), 1e-3 * sum(1 / k for k in range(1, 9)))


# ---- bulk transfers
# -------------------------------------------------------------------------------------------------------

LATENCY = 1e-5


@pytest.mark.parametrize(
    ("links", "servers", "shared"),
    [
        ({"node_bandwidth": "8GB/s", "server_bandwidth": "500MB/s"}, 1, 0.5e9),
        ({"node_bandwidth": "1GB/s", "server_bandwidth": "8GB/s"}, 3, 1e9),
        ({"node_bandwidth": "9GB/s", "server_bandwidth": "8GB/s", "backbone_bandwidth": "2GB/s"}, 3, 2e9),
    ],
    ids=["server", "node", "backbone"],
)
@pytest.mark.parametrize("ranks", [1, 4])
def test_flows_share_the_tightest_link(
    simulate: Simulate, ranks: int, servers: int, links: dict[str, str], shared: float
) -> None:
    """Ranks of one node fetch 100 MB each at the same time, over and over: each takes N S/B and the latency."""
    platform = yaml({"s": station(1, count=servers)}, []).replace(
        "  read: {}", "  read: {read: [{transfer: read, station: s}]}"
    )
    platform += f"network: {{latency: 10us, {', '.join(f'{k}: {v}' for k, v in links.items())}}}\n"
    phase = simulate(platform, ranks, 20, object_size="100MB")[0]
    assert phase["latency"]["read"]["min"] == pytest.approx(ranks * 1e8 / shared + LATENCY, rel=RESOLUTION)
    assert phase["latency"]["read"]["max"] == pytest.approx(ranks * 1e8 / shared + LATENCY, rel=RESOLUTION)
    assert phase["seconds"] == pytest.approx(20 * (ranks * 1e8 / shared + LATENCY), rel=1e-6)


@pytest.mark.parametrize(
    ("node", "server", "seconds"), [("16GB/s", "1GB/s", 25e-3), ("2GB/s", "1GB/s", 50e-3)], ids=["servers", "node"]
)
def test_a_striped_flow_has_all_its_servers(simulate: Simulate, node: str, server: str, seconds: float) -> None:
    """100 MB in stripes of 1 MB over four servers: a quarter over each link at the same time, or all over the
    node's."""
    striped = yaml({"s": station(1, count=4, stripe_size="1MB") | {"spread": "stripe"}}, [])
    platform = striped.replace("  read: {}", "  read: {read: [{transfer: read, station: s, stripes: spanned}]}")
    platform += f"network: {{latency: 10us, node_bandwidth: {node}, server_bandwidth: {server}}}\n"
    phase = simulate(platform, 1, 20, object_size="100MB")[0]
    assert phase["latency"]["read"]["max"] == pytest.approx(seconds + LATENCY, rel=RESOLUTION)
    assert phase["seconds"] == pytest.approx(20 * (seconds + LATENCY), rel=1e-6)


# ---- stalls: a law that holds within a stated accuracy, not exactly
# ---------------------------------------------------------


@pytest.mark.parametrize(
    ("factor", "loss"),
    mostly_long([(0, 0.05), (1, 0.10), (4, 0.25), (8, 0.45)], [(0, 0.05), (4, 0.25)], "the law at other waits"),
)
def test_stall_law(simulate: Simulate, factor: int, loss: float) -> None:
    """N = 10 at c = 16, service 1 ms, stall 0.25 s every 5 s: (1+T) s/P of the rate is lost, within 2 points.

    The stall occupies nobody's server that others need (c > N), every operation can meet it, and the stall is far
    longer than a cycle. Rates are operations over the ranks' time; runs have about 200 periods, so that their ends
    matter little.
    """
    visit = {"station": "s", "demand": ("exponential", 1e-3)}
    stall = {"c": {"station": "s", "every": "5s", "length": "250ms", "operations": "[stat]"}}
    iterations = round(1000 / (1e-3 * (1 + factor)) * (1 - loss))
    phase = simulate(yaml({"s": station(16)}, [visit], stalls=stall), 10, iterations, waiting_factor=factor)[0]
    rate = iterations * 10 / sum(phase["rank_seconds"]) * 10
    quiet = 10 / (1e-3 * (1 + factor))
    assert 1 - rate / quiet == pytest.approx(loss, abs=0.02)

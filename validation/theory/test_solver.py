# SPDX-License-Identifier: Apache-2.0
"""The analytic solver against closed forms: 1e-6 relative, up to a million customers."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import systems
from scipy.optimize import brentq
from systems import resolved, station

from iocast.analytic import solve
from iocast.analytic.bounds import asymptotic, balanced_job
from iocast.analytic.product_form import ClosedNetwork, Station, servers
from iocast.errors import InputError

EXACT = 1e-6
ONE = {"stat": 1.0}
VISIT = {"station": "s", "demand": ("exponential", 1e-3)}


def response(platform: dict, ranks: int, think: float = 0.0) -> float:
    """Mean response from the rate, which the solver has in closed form (its quantiles come from sample points)."""
    return ranks / solve(platform, ONE, 1, ranks, 0.0, 1).rate - think


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("count", [1, 2, 16, 128])
def test_a_lone_visitor_waits_as_in_an_open_queue(load: float, count: int) -> None:
    """M/M/1 and M/M/c: Poisson arrivals of others, and one rank that sees their time averages (PASTA)."""
    mean, far = 1e-3, 1e-3
    arrivals = load * count / mean
    others = {"o": {"station": "s", "rate": arrivals, "demand": ("exponential", mean)}}
    platform = resolved({"s": station(count)}, [{"delay": ("constant", far)}, VISIT], background=others)
    wait = response(platform, 1, far) - mean
    assert wait == pytest.approx(systems.erlang_wait(arrivals, mean, count), rel=EXACT)


@pytest.mark.parametrize(
    "law", [("constant", 2e-3), ("lognormal", 2e-3, 1.5), ("two", 0.9, 1e-3, 11e-3)], ids=lambda law: law[0]
)
@pytest.mark.parametrize("load", [0.2, 0.8])
def test_pollaczek_khinchine(law: tuple, load: float) -> None:
    arrivals = load / systems.moments(law)[0]
    others = {"o": {"station": "s", "rate": arrivals, "demand": law}}
    platform = resolved({"s": station(1)}, [{"delay": ("constant", 1e-3)}, VISIT], background=others)
    assert response(platform, 1, 1e-3) - 1e-3 == pytest.approx(systems.pollaczek_khinchine(arrivals, law), rel=EXACT)


@pytest.mark.parametrize("customers", [1, 2, 16, 256, 10_000, 100_000, 1_000_000])
@pytest.mark.parametrize("count", [1, 4, 16, 64])
@pytest.mark.parametrize("thinking", [0.01, 0.5, 1.0, 3.0])
def test_machine_repairman(customers: int, count: int, thinking: float) -> None:
    """M/M/c//N; `thinking` is the delay over the one that puts the knee at N."""
    delay = thinking * customers / count
    network = ClosedNetwork([Station("s", 1.0, servers(count))], delay, customers)
    truth = systems.repairman_throughput(customers, np.minimum(np.arange(1, customers + 1), count), delay)
    if customers < 100_000:  # the reference itself sums logarithms of up to 1e7, which costs it the digits beyond 1e-9
        assert network.throughput == pytest.approx(truth, rel=1e-9)
    assert network.throughput == pytest.approx(truth, rel=EXACT)
    assert network.mean_queue("s") == pytest.approx(customers - truth * delay, rel=EXACT)


def test_where_other_solvers_fail() -> None:
    """queueing's qncsmva: -6.2; LINE's exact MVA: 8.7 for 13.28 at N = 4000, its default 12.6 for 16 at 10^4."""
    assert ClosedNetwork([Station("s", 1.0, servers(16))], 300.0, 10_000).throughput == pytest.approx(16.0, rel=EXACT)
    truth = systems.repairman_throughput(4000, np.minimum(np.arange(1, 4001), 16), 300.0)
    assert truth == pytest.approx(13.28, abs=0.01)
    assert ClosedNetwork([Station("s", 1.0, servers(16))], 300.0, 4000).throughput == pytest.approx(truth, rel=EXACT)


@pytest.mark.parametrize("customers", [3, 1000, 100_000])
@pytest.mark.parametrize("coherency", [0.001, 0.05])
def test_a_server_that_slows_down(customers: int, coherency: float) -> None:
    """Universal scalability law as the rate, past its peak; and a rate that falls without end."""
    n = np.arange(1.0, 33.0)
    usl = n / (1 + 0.02 * (n - 1) + coherency * n * (n - 1))
    m = np.arange(1.0, customers + 1.0)
    crowded = np.minimum(m, 16) / (1 + 0.15 * np.log1p(np.maximum(m - 16, 0) / 16))
    for rates in (usl, crowded):
        for delay in (0.1, customers / 40, customers / 2):
            found = ClosedNetwork([Station("s", 1.0, rates)], delay, customers).throughput
            assert found == pytest.approx(systems.repairman_throughput(customers, rates, delay), rel=EXACT)


@pytest.mark.parametrize("customers", [1, 5, 30])
@pytest.mark.parametrize("delay", [0.0, 0.5, 20.0])
def test_convolution(customers: int, delay: float) -> None:
    """Two and more stations against rational arithmetic; equal instances too."""
    cases: list[tuple[list[Station], list[tuple[float, int]]]] = [
        ([Station("a", 1.0, servers(1)), Station("b", 0.7, servers(1))], [(1.0, 1), (0.7, 1)]),
        ([Station("a", 1.0, servers(3)), Station("b", 0.33, servers(1))], [(1.0, 3), (0.33, 1)]),
        ([Station("a", 3.0, servers(2), 3), Station("b", 1.2, servers(1), 2)], [(1.0, 2)] * 3 + [(0.6, 1)] * 2),
    ]
    for stations, demands in cases:
        assert ClosedNetwork(stations, delay, customers).throughput == pytest.approx(
            systems.convolution(demands, delay, customers), rel=EXACT
        )


def test_balanced_stations_at_any_size() -> None:
    """K equal single servers: X = N / (D (N + K - 1)) with K D in all (Lazowska et al. 1984, chapter 5)."""
    for customers in (1, 100, 10_000, 1_000_000):
        for count in (1, 2, 50, 1000):
            network = ClosedNetwork([Station("s", float(count), servers(1), count)], 0.0, customers)
            assert network.throughput == pytest.approx(customers / (customers + count - 1), rel=EXACT)


def test_sojourn_distribution() -> None:
    """Machine repairman, arrival theorem: the response's distribution function at the solver's quantiles, to 0.003."""
    ranks, count, service, delay = 16, 4, 1e-3, 2e-3
    platform = resolved({"s": station(count)}, [{**VISIT, "demand": ("exponential", service)}])
    # The delay is think time that answers are measured without: T = 0 has none, so it goes into a second operation.
    platform["operations"]["read"] = [{"part": "", "steps": [{"delay": systems.resolved_law(("exponential", delay))}]}]
    solution = solve(platform, {"stat": 1, "read": 1}, 1, ranks, 0.0, 1000)
    for name, q in (("q50", 0.5), ("q75", 0.75), ("q95", 0.95), ("q99", 0.99)):
        found = systems.repairman_sojourn_cdf(ranks, count, service, delay, solution.quantiles["stat"][name])
        assert found == pytest.approx(q, abs=0.003)


@pytest.mark.parametrize("factor", [0.5, 1.0, 4.0, 8.0])
@pytest.mark.parametrize("ranks", [1, 32, 10_000])
def test_concurrency_is_ranks_over_one_plus_t(factor: float, ranks: int) -> None:
    """Q = N / (1 + T), whatever the system."""
    platform = resolved(
        {"s": station(4), "t": station(1, contention=0)}, [VISIT, {"station": "t", "demand": ("constant", 1e-4)}]
    )
    solution = solve(platform, ONE, 1, ranks, factor, 1)
    assert solution.mean_in_operation == pytest.approx(ranks / (1 + factor), rel=EXACT)


def test_nobody_waits_with_a_server_each() -> None:
    steps = [{"delay": ("constant", 2e-3)}, {"station": "s", "demand": ("constant", 1e-3)}]
    for ranks in (1, 7, 16):
        solution = solve(resolved({"s": station(16)}, steps), ONE, 1, ranks, 0.0, 1000)
        assert solution.rate == pytest.approx(ranks / 3e-3, rel=EXACT)
        assert all(value == pytest.approx(3e-3, rel=EXACT) for value in solution.quantiles["stat"].values())


def test_a_lone_rank_takes_the_sum() -> None:
    """N = 1: response = all services and delays."""
    steps = [
        {"delay": ("constant", 5e-6)},
        VISIT,
        {"station": "t", "demand": ("lognormal", 3e-3, 1.0)},
        {"delay": ("constant", 5e-6)},
    ]
    assert response(resolved({"s": station(1), "t": station(1)}, steps), 1) == pytest.approx(4.01e-3, rel=EXACT)


def test_time_scales() -> None:
    """A thousand times slower throughout: latencies times 1000, rate over 1000."""

    def system(unit: float) -> dict:
        steps = [{"delay": ("exponential", 2 * unit)}, {"station": "s", "demand": ("lognormal", unit, 0.5)}]
        others = {"o": {"station": "s", "rate": 0.5 / unit, "demand": ("exponential", unit)}}
        return resolved({"s": station(3)}, steps, background=others)

    fast, slow = (solve(system(unit), ONE, 1, 20, 1.0, 10_000) for unit in (1e-6, 1e-3))
    assert fast.rate == pytest.approx(1000 * slow.rate, rel=EXACT)
    for name, value in slow.quantiles["stat"].items():
        assert value == pytest.approx(1000 * fast.quantiles["stat"][name], rel=EXACT)


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(1, 64), (64, 1), (8, 8)])
def test_placement_is_free_without_node_resources(nodes: int, ranks_per_node: int) -> None:
    solution = solve(resolved({"s": station(4)}, [VISIT]), ONE, nodes, ranks_per_node, 0.0, 1)
    assert solution.rate == pytest.approx(4000.0, rel=EXACT)


def test_a_limit_around_a_delay_is_a_multi_server() -> None:
    """Slots around an exponential delay are servers: M/M/c//N."""
    inside = {"limit": "l", "steps": [{"delay": ("exponential", 1e-3)}]}
    platform = resolved(
        {"s": station(1)}, [{"delay": ("exponential", 2e-3)}, inside], limits={"l": {"slots": 4, "per": "system"}}
    )
    truth = systems.repairman_throughput(16, np.minimum(np.arange(1, 17), 4) / 1e-3, 2e-3)
    assert solve(platform, ONE, 1, 16, 0.0, 1).rate == pytest.approx(truth, rel=EXACT)


def test_a_lock_held_throughout_is_one_server() -> None:
    visit = {**VISIT, "lock": "l", "lock_share": 1.0}
    platform = resolved({"s": station(8)}, [{"delay": ("exponential", 2e-3)}, visit], locks={"l": {"per": "system"}})
    truth = systems.repairman_throughput(16, [1e3], 2e-3)
    assert solve(platform, ONE, 1, 16, 0.0, 1).rate == pytest.approx(truth, rel=EXACT)


@pytest.mark.parametrize(("nodes", "accuracy"), [(2, 0.07), (4, 0.05), (16, 0.02)])
def test_queues_at_nodes_and_one_they_share(nodes: int, accuracy: float) -> None:
    """Two closed networks that see each other as delays, against the exact multi-class product form.

    The worst case is a balance of the two; its error falls about as 1/sqrt(nodes). Three to one either way it is
    below 1e-4.

    Exact: G = sum over K of K! s(K) [z^K] h(z)^J, h(z) = sum over k of f(P-k) z^k/k!, with f the terms of a node's
    station, s those of the shared one, K of the N = J P customers away from their nodes (BCMP 1975 with a class for
    each node, summed by symmetry).
    """
    per_node, at_node = 6, 1e-3
    for balance, within in ((0.3, 1e-4), (1.0, accuracy), (3.0, 1e-4)):
        at_shared = balance * at_node / nodes
        platform = resolved(
            {"cpu": station(1, per="node"), "s": station(1)},
            [
                {"station": "cpu", "demand": ("exponential", at_node)},
                {"station": "s", "demand": ("exponential", at_shared)},
            ],
        )
        found = solve(platform, ONE, nodes, per_node, 0.0, 1).rate
        assert found == pytest.approx(_exact_symmetric(nodes, per_node, at_node, at_shared), rel=within)


def _exact_symmetric(nodes: int, per_node: int, at_node: float, at_shared: float) -> float:
    from fractions import Fraction

    def ways(populations: list[int]) -> Fraction:
        total = [Fraction(1)]
        for p in populations:
            h = [Fraction(at_node) ** (p - k) / math.factorial(k) for k in range(p + 1)]
            total = [
                sum((total[i] * h[n - i] for i in range(max(0, n - p), min(n, len(total) - 1) + 1)), Fraction(0))
                for n in range(len(total) + p)
            ]
        return sum((math.factorial(k) * Fraction(at_shared) ** k * x for k, x in enumerate(total)), Fraction(0))

    full = [per_node] * nodes
    return float(nodes * ways([per_node - 1, *full[1:]]) / ways(full))


@pytest.mark.parametrize("factor", [0.0, 1.0, 4.0])
def test_stall_law_of_the_solver(factor: float) -> None:
    """Every operation stalls s seconds every P: the rate falls by (1 + T) s/P (what the solver says, by definition)."""
    stalls = {"c": {"station": "s", "every": 5.0, "length": 0.25, "sigma": 0.0, "operations": ["stat"]}}
    quiet = solve(resolved({"s": station(4)}, [VISIT]), ONE, 1, 10, factor, 1).rate
    stalled = solve(resolved({"s": station(4)}, [VISIT], stalls=stalls), ONE, 1, 10, factor, 1).rate
    assert stalled / quiet == pytest.approx(1 - (1 + factor) * 0.05, rel=EXACT)


def test_bounds_hold() -> None:
    """Asymptotic and balanced job bounds contain the exact throughput."""
    for customers in (1, 3, 17, 200, 5000):
        for delay in (0.0, 1.0, 40.0):
            for stations in (
                [Station("a", 1.0, servers(1)), Station("b", 0.4, servers(1), 2)],
                [Station("a", 1.0, servers(4)), Station("b", 0.2, servers(1))],
            ):
                found = ClosedNetwork(stations, delay, customers).throughput
                wide, tight = asymptotic(stations, delay, customers), balanced_job(stations, delay, customers)
                assert wide.contain(found)
                assert tight.contain(found)
                assert tight.lower >= wide.lower * (1 - 1e-12)
                assert tight.upper <= wide.upper * (1 + 1e-12)


def test_fork_join_of_two() -> None:
    """R2 = (12 - rho)/8 R1 (Flatto & Hahn 1984; Nelson & Tantawi 1988, eq. 6) against the two-queue Markov chain.

    A job is in the system while either task is, and both queues serve in order, so jobs in the system = max of the
    queues. The open system, which checks the formula alone; below is the closed one, which the solver has.
    """
    from scipy.sparse import coo_matrix, identity
    from scipy.sparse.linalg import spsolve

    for load in (0.2, 0.5):
        size = 70
        n = np.arange(size * size)
        a, b = n // size, n % size
        moves = [(load, a + 1, b + 1, (a < size - 1) & (b < size - 1)), (1.0, a - 1, b, a > 0), (1.0, a, b - 1, b > 0)]
        rows, columns, rates = [], [], []
        for rate, x, y, ok in moves:
            rows += [n[ok], n[ok]]
            columns += [(x * size + y)[ok], n[ok]]
            rates += [np.full(ok.sum(), rate), np.full(ok.sum(), -rate)]
        generator = coo_matrix((np.concatenate(rates), (np.concatenate(rows), np.concatenate(columns)))).tocsc()
        system = (generator.T + identity(size * size) * 0).tolil()
        system[0, :] = 1.0
        p = spsolve(system.tocsc(), np.eye(1, size * size)[0])
        assert float(np.dot(p, np.maximum(a, b))) / load == pytest.approx((12 - load) / 8 / (1 - load), rel=EXACT)


@pytest.mark.parametrize("ranks", [1, 2, 7, 100, 4000])
def test_closed_fork_join_of_two(ranks: int) -> None:
    """Against the Markov chain of how far the shorter queue is behind: up and down at rate 1, from 0 up at rate 2."""
    up, down = np.ones(ranks), np.ones(ranks)
    up[0] = 2.0
    logs = np.concatenate(([0.0], np.cumsum(np.log(up / down))))
    behind = np.exp(logs) / np.exp(logs).sum()
    platform = resolved({"s": station(1, count=2)}, [{**VISIT, "stripes": 2}])
    assert solve(platform, ONE, 1, ranks, 0.0, 1).rate == pytest.approx(1e3 * behind[1:].sum(), rel=EXACT)


def test_a_lone_fork_waits_for_its_last_part() -> None:
    platform = resolved({"s": station(1, count=8)}, [{**VISIT, "stripes": 8}])
    assert response(platform, 1) == pytest.approx(1e-3 * sum(1 / k for k in range(1, 9)), rel=EXACT)


def test_stripes_that_an_access_spans() -> None:
    """An object of four stripes from its start is four parts; where an access lies is not known, nor what unequal parts
    take together."""
    station_of = {"s": station(1, count=8) | {"spread": "stripe", "stripe_size": 1000, "stripe_count": 8}}
    for operation, size, stripes in (("read", 4000, 4), ("read", 10, 1), ("create", 16000, 8), ("stat", 4000, 1)):
        spanned, fixed = (
            {
                **resolved(station_of, []),
                "operations": {operation: resolved(station_of, [{**VISIT, "stripes": n}])["operations"]["stat"]},
            }
            for n in ("spanned", stripes)
        )
        assert (
            solve(spanned, {operation: 1}, 1, 3, 0.0, 1, size=size).rate
            == solve(fixed, {operation: 1}, 1, 3, 0.0, 1, size=size).rate
        )
    for operation, size in (("pread", 4000), ("append", 10), ("read", 4001)):
        platform = {
            **resolved(station_of, []),
            "operations": {operation: resolved(station_of, [{**VISIT, "stripes": "spanned"}])["operations"]["stat"]},
        }
        with pytest.raises(InputError, match=f"route of {operation} goes to the stripes"):
            solve(platform, {operation: 1}, 1, 3, 0.0, 1, size=size)


def test_same_question_same_answer() -> None:
    platform = resolved({"s": station(4)}, [{"delay": ("exponential", 1e-3)}, VISIT])
    first, second = (solve(platform, ONE, 2, 8, 1.0, 10**6) for _ in range(2))
    assert json.dumps(first.quantiles) == json.dumps(second.quantiles)


def test_who_keeps_a_lock_is_not_for_the_solver() -> None:
    visit = {**VISIT, "lock": "l", "lock_share": 1}
    with pytest.raises(InputError, match="use the simulator"):
        solve(resolved({"s": station(1)}, [visit], locks={"l": {"per": "object"}}), ONE, 1, 1, 0.0, 1)


@pytest.mark.parametrize("steps", [[{"buffer": "b"}], [{"buffer": "b"}, {"flush": "b", "of": "all"}]])
def test_buffers_are_not_for_the_solver(steps: list[dict[str, str]]) -> None:
    platform = resolved({"s": station(1)}, [VISIT])
    platform["operations"]["stat"][0]["steps"] += steps
    with pytest.raises(InputError, match="the buffer 'b'.*use the simulator"):
        solve(platform, ONE, 1, 1, 0.0, 1)


def test_a_flush_of_what_nothing_fills_takes_no_time() -> None:
    platform, plain = (resolved({"s": station(1)}, [VISIT]) for _ in range(2))
    platform["operations"]["stat"][0]["steps"].append({"flush": "b", "of": "all"})
    assert solve(platform, ONE, 1, 3, 0.0, 1).quantiles == solve(plain, ONE, 1, 3, 0.0, 1).quantiles


def test_platforms_that_cannot_be_solved_are_refused() -> None:
    platform = resolved(
        {"s": station(1)}, [VISIT], background={"o": {"station": "s", "rate": 2e3, "demand": ("constant", 1e-3)}}
    )
    with pytest.raises(InputError, match="200 % of it"):
        solve(platform, ONE, 1, 1, 0.0, 1)
    with pytest.raises(InputError, match="Did you mean stat"):
        solve(resolved({"s": station(1)}, [VISIT]), {"stats": 1}, 1, 1, 0.0, 1)


def test_thinking_by_bisection_is_a_fixed_point() -> None:
    """th = T R(th) for an M/M/c//N, found here by another route: the root in R."""
    ranks, count, factor = 64, 4, 4.0
    rates = np.minimum(np.arange(1, ranks + 1), count) / 1e-3
    root = brentq(
        lambda r: ranks / systems.repairman_throughput(ranks, rates, factor * r) - (1 + factor) * r,
        1e-3,
        1.0,
        rtol=1e-13,
    )
    found = solve(resolved({"s": station(count)}, [VISIT]), ONE, 1, ranks, factor, 1).rate
    assert found == pytest.approx(ranks / ((1 + factor) * root), rel=EXACT)


def test_waking_costs_time_at_the_node() -> None:
    """wake_slowdown: demands at a node's stations grow when ranks think, and only then."""
    platform = resolved({"cpu": station(4, per="node")}, [{"station": "cpu", "demand": ("lognormal", 1e-3, 0.5)}])
    slow = platform | {"clients": {"speed_sigma": 0, "think_overshoot": 0, "wake_slowdown": 1.5}}
    for factor, cost in ((0.0, 1.0), (1.0, 1.5)):
        plain, woken = (solve(p, ONE, 2, 3, factor, 1000) for p in (platform, slow))
        assert woken.rate * cost == pytest.approx(plain.rate, rel=EXACT)
        assert woken.quantiles["stat"]["q95"] == pytest.approx(cost * plain.quantiles["stat"]["q95"], rel=EXACT)

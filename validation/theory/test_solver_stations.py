# SPDX-License-Identifier: Apache-2.0
"""What stations and locks do besides serving in order of arrival: where the solver knows it, and where it says that it
doesn't."""

from __future__ import annotations

import numpy as np
import pytest
import systems
from systems import resolved, station

from iocast.analytic import solve
from iocast.analytic.product_form import ClosedNetwork, Station, servers
from iocast.errors import InputError

EXACT = 1e-6
ONE = {"stat": 1.0}
VISIT = {"station": "s", "demand": ("exponential", 1e-3)}
THINK = {"delay": ("exponential", 2e-3)}


@pytest.mark.parametrize("speeds", [[1.0, 1.0, 0.93, 0.7], [0.5, 0.6, 0.9], [2.0]])
@pytest.mark.parametrize("customers", [1, 3, 40, 1000])
@pytest.mark.parametrize("discipline", ["fcfs", "ps"])
def test_measured_speeds(customers: int, speeds: list[float], discipline: str) -> None:
    """Eight servers, as fast as a table says for the number that is busy, beyond it as the last; also faster together
    than alone."""
    n = np.arange(1, 9)
    rates = 1e3 * n * np.array(speeds)[np.minimum(n, len(speeds)) - 1]
    platform = resolved({"s": station(8, discipline=discipline, speeds=speeds)}, [THINK, VISIT])
    truth = systems.repairman_throughput(customers, rates, 2e-3)
    assert solve(platform, ONE, 1, customers, 0.0, 1).rate == pytest.approx(truth, rel=EXACT)
    if customers > 1:  # thinking T times as long as responding
        thinking = solve(platform, ONE, 1, customers, 2.0, 1)
        assert thinking.mean_in_operation == pytest.approx(customers / 3, rel=EXACT)
        assert thinking.bounds.contain(thinking.rate)


def test_a_table_of_the_law_is_the_law() -> None:
    table = [1 / (1 + 0.05 * (n - 1.0) + 0.02 * n * (n - 1.0)) for n in range(1, 9)]
    law, measured = (
        solve(resolved({"s": station(8, **how)}, [THINK, VISIT]), ONE, 1, 30, 1.0, 1000)
        for how in ({"contention": 0.05, "coherency": 0.02}, {"speeds": table})
    )
    assert measured.rate == pytest.approx(law.rate, rel=1e-12)
    assert measured.quantiles["stat"] == pytest.approx(law.quantiles["stat"], rel=1e-9)
    assert measured.utilisation == pytest.approx(law.utilisation, rel=1e-12)


def test_readers_of_a_lock_do_not_wait() -> None:
    """A lock that all share is none; one that nobody shares is as before; between them the solver has no answer."""
    reads, writes = ({**VISIT, "lock": "l", "lock_share": 1, "lock_mode": mode} for mode in ("shared", "exclusive"))
    for per in ("system", "object"):
        found = solve(resolved({"s": station(4)}, [THINK, reads], locks={"l": {"per": per}}), ONE, 1, 12, 0.0, 1)
        assert found.rate == solve(resolved({"s": station(4)}, [THINK, VISIT]), ONE, 1, 12, 0.0, 1).rate
    one_at_a_time = solve(
        resolved({"s": station(4)}, [THINK, writes], locks={"l": {"per": "system"}}), ONE, 1, 12, 0.0, 1
    ).rate
    assert one_at_a_time == pytest.approx(systems.repairman_throughput(12, [1e3], 2e-3), rel=EXACT)
    both = resolved({"s": station(4)}, [reads, writes], locks={"l": {"per": "system"}})
    with pytest.raises(InputError, match=r"shares the lock 'l', which stat takes alone.*use the simulator"):
        solve(both, ONE, 1, 12, 0.0, 1)
    with pytest.raises(InputError, match="use the simulator"):
        solve(
            resolved({"s": station(4)}, [reads], locks={"l": {"per": "system", "hand_over": 1e-3}}), ONE, 1, 12, 0.0, 1
        )


def test_priorities_are_for_the_solver_only_where_they_do_not_matter() -> None:
    background = {"o": {"station": "s", "rate": 100.0, "demand": ("constant", 1e-3)}}
    plain = solve(resolved({"s": station(1)}, [VISIT], background=background), ONE, 1, 5, 0.0, 1)
    for order in ([["stat", "background"], ["rest"]], [["create"], ["rest"]]):
        together = resolved({"s": station(1, priority=order)}, [VISIT], background=background)
        assert solve(together, ONE, 1, 5, 0.0, 1) == plain
    apart = resolved({"s": station(1, priority=[["stat"], ["rest"]])}, [VISIT], background=background)
    with pytest.raises(
        InputError, match=r"station s serves some of its work \(stat, background\) before other.*use the simulator"
    ):
        solve(apart, ONE, 1, 5, 0.0, 1)
    assert solve(apart | {"background": {}}, ONE, 1, 5, 0.0, 1).rate == pytest.approx(1e3, rel=EXACT)
    two = resolved({"s": station(2, priority=[["stat"], ["rest"]])}, [VISIT])
    two["operations"]["create"] = two["operations"]["stat"]
    mix = {"stat": 1.0, "create": 1.0}
    with pytest.raises(InputError, match=r"\(stat, create\)"):
        solve(two, mix, 1, 3, 0.0, 1)
    assert solve(two, mix, 1, 2, 0.0, 1).rate == pytest.approx(2e3, rel=EXACT)  # a server each: nobody waits


@pytest.mark.parametrize("demand", [1e-12, 1e-16, 4e-25, 1e-300])
def test_a_station_that_takes_no_time_changes_nothing(demand: float) -> None:
    """As a part that was measured to take a nanosecond leaves one behind: throughput and queues are those without it,
    however little it takes."""
    busy = Station("busy", 1e-3, servers(4))
    alone = ClosedNetwork([busy], 1e-4, 32)
    both = ClosedNetwork([busy, Station("idle", demand, servers(1), instances=3)], 1e-4, 32)
    assert both.throughput == pytest.approx(alone.throughput, rel=1e-8)
    assert both.mean_queue("busy") == pytest.approx(alone.mean_queue("busy"), rel=1e-8)
    assert both.mean_queue("idle") < 1e-7
    first, p = both.queue_lengths("idle", seen_by_arrival=True)
    assert first == 0 and p[0] == pytest.approx(1.0)

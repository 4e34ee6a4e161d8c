# SPDX-License-Identifier: Apache-2.0
"""The analytic solver against independent programs: LINE (exact methods) and Ciw (simulation, confidence intervals)."""

from __future__ import annotations

import ciw
import line_solver as line
import numpy as np
import pytest
import systems
from intervals import contains
from systems import resolved, station

from iocast.analytic import solve
from iocast.analytic.product_form import ClosedNetwork, Station, servers

REPLICATIONS = 10


@pytest.mark.parametrize("method", ["MVA", "CTMC"])
def test_line(method: str) -> None:
    """Exact MVA and the Markov chain of LINE: N = 12 at a queue of 4 servers, one of 1 server, and a delay."""
    line.GlobalConstants.set_verbose(line.VerboseLevel.SILENT)
    model = line.Network("model")
    delay, a, b = (
        line.Delay(model, "think"),
        line.Queue(model, "a", line.SchedStrategy.FCFS),
        line.Queue(model, "b", line.SchedStrategy.FCFS),
    )
    a.set_number_of_servers(4)
    job = line.ClosedClass(model, "jobs", 12, delay)
    for where, mean in ((delay, 2.0), (a, 1.0), (b, 0.2)):
        where.set_service(job, line.Exp.fit_mean(mean))
    model.link(line.Network.serial_routing([delay, a, b]))
    solver = line.MVA(model, method="exact") if method == "MVA" else line.CTMC(model)
    throughput = float(np.asarray(solver.avg_table()["Tput"], dtype=float)[0])
    ours = ClosedNetwork([Station("a", 1.0, servers(4)), Station("b", 0.2, servers(1))], 2.0, 12)
    assert ours.throughput == pytest.approx(throughput, rel=1e-5)  # LINE prints five digits


def test_ciw_machine_repairman() -> None:
    """N = 8, c = 2: rate and mean queue."""
    network = ciw.create_network(  # all customers come at time zero and never leave
        arrival_distributions=[ciw.dists.Sequential([0.0] * 8 + [float("inf")]), None],
        service_distributions=[ciw.dists.Exponential(0.5), ciw.dists.Exponential(1.0)],
        number_of_servers=[float("inf"), 2],
        routing=[[0.0, 1.0], [1.0, 0.0]],
    )
    rates, waits = [], []
    for seed in range(REPLICATIONS):
        ciw.seed(seed)
        simulation = ciw.Simulation(network)
        simulation.simulate_until_max_time(1500.0)
        served = [r for r in simulation.get_all_records() if r.node == 2 and r.exit_date > 100]
        rates.append(len(served) / 1400.0)
        waits.append(float(np.mean([r.waiting_time for r in served])))
    ours = ClosedNetwork([Station("s", 1.0, servers(2))], 2.0, 8)
    contains(rates, ours.throughput)
    contains(waits, ours.mean_queue("s") / ours.throughput - 1.0)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_ciw_multi_server(load: float) -> None:
    """M/M/3 in Ciw against the solver's lone visitor."""
    count = 3
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(load * count)],
        service_distributions=[ciw.dists.Exponential(1.0)],
        number_of_servers=[count],
    )
    waits = []
    for seed in range(REPLICATIONS):
        ciw.seed(seed)
        simulation = ciw.Simulation(network)
        simulation.simulate_until_max_time(3000.0)
        waits.append(float(np.mean([r.waiting_time for r in simulation.get_all_records() if r.arrival_date > 200])))
    others = {"o": {"station": "s", "rate": load * count, "demand": ("exponential", 1.0)}}
    platform = resolved({"s": station(count)}, [{"station": "s", "demand": ("exponential", 1.0)}], background=others)
    platform["operations"]["stat"][0]["steps"].append({"delay": systems.resolved_law(("constant", 1.0))})
    contains(waits, 1 / solve(platform, {"stat": 1}, 1, 1, 0.0, 1).rate - 2.0)


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_fork_join_of_two_by_recursion(load: float) -> None:
    """R2 = (12 - rho)/8 R1 against Lindley's recursion for two queues fed by the same arrivals."""
    responses = []
    for seed in range(REPLICATIONS):
        random = np.random.default_rng(seed)
        gaps = random.exponential(1 / load, 200_000)
        both = []
        for _ in range(2):
            service = random.exponential(1.0, len(gaps))
            steps = np.concatenate(([0.0], np.cumsum(service[:-1] - gaps[1:])))
            both.append(steps - np.minimum.accumulate(steps) + service)
        responses.append(float(np.maximum(*both)[2000:].mean()))
    contains(responses, (12 - load) / 8 / (1 - load))

# SPDX-License-Identifier: Apache-2.0
"""What measurements show before any model: found where it was put in, and seldom where it was not."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest
import sharpness
import yaml
from msgspec.structs import replace
from scipy.stats import binom

from iocast.calibrate import discrepancy
from iocast.calibrate.findings import (
    FALSE_ALARM,
    _chance_of_columns,
    ageing,
    bands,
    bound,
    clock,
    drift,
    findings,
    latency_bands,
    lone_ranks,
    nodes,
    others,
    outside,
    ramps,
)
from iocast.importers.record import Phase, Record, write_runs
from iocast.records.run import SteadyState
from iocast.runs.run_directory import Point, Run, group

SECONDS, MEAN = 2.0, 1e-3
Generator = np.random.Generator


def measured(
    out: Path, ranks: int, generator: Generator, *, factors: tuple[float, ...] = (1.0,), swing: float = 0.0,
    second_band: float = 0.0,
    started: str = "2026-01-01T00:00:00.000Z", per_node: int = 0, node_factors: tuple[float, ...] = (),
    idle: float = 0.0,
) -> Run:  # fmt: skip
    """Phases of 2 s a rank of creates of about 1 ms. `factors` multiply the latencies of each phase, `swing` those of
    every second quarter of a second, `node_factors` those of each node; `second_band` of them take 20 ms; `idle` is the
    share of time between operations."""
    phases = []
    for repeat, factor in enumerate(factors):
        starts, seconds, of_rank, ends = [], [], [], []
        for rank in range(ranks):
            now = 0.0
            own = factor * (node_factors[rank // per_node] if node_factors else 1.0)
            for _ in range(round(SECONDS / MEAN / (1 + 19 * second_band))):
                took = (
                    own
                    * generator.lognormal(math.log(MEAN) - 0.02, 0.2)
                    * (20 if generator.random() < second_band else 1)
                )
                took *= 1 + swing * (int(now / 0.25) % 2)
                starts.append(now)
                seconds.append(took)
                of_rank.append(rank)
                now += took / (1 - idle)
            ends.append(now)
        phase = Phase("benchmark", repeat, 0.0, max(ends), len(starts), errors=0, rate=len(starts) / max(ends))
        phase.add_trace({"create": (np.array(starts), np.array(seconds))}, {"create": np.array(of_rank)})
        phases.append(phase)
    record = Record(
        out.name, "made up", phases, pattern="md-workbench", ranks=ranks, nodes=ranks // per_node if per_node else 1
    )
    record.parameters = {"waiting_factor": 0}
    write_runs([("", record)], out)
    run = Run(out)
    environment = {"clock_resolution_ns": 1.0, "hosts": [f"n{k}" for k in range(record.nodes or 1)]}
    run.record = replace(run.record, source="bench", started=started, environment=environment)
    change_phases(run, rank_seconds=ends, responding_seconds=float(np.sum(seconds)), think_actual_seconds=0.0)
    return run


def change_phases(run: Run, **changes: Any) -> None:
    run.phases = [replace(phase, **changes) for phase in run.phases]


def points(*runs: Run) -> list[Point]:
    return group(list(runs))


def test_quiet_data_show_nothing(tmp_path: Path) -> None:
    """Ten campaigns of three points with two runs each. Six tests of 1 % each could raise an alarm; more than three
    among ten has a probability below 0.4 %."""
    generator = np.random.default_rng(7)
    alarms = 0
    for n in range(10):
        runs = [
            measured(
                tmp_path / f"{n}-{ranks}-{repeat}",
                ranks,
                generator,
                factors=(1.0, 1.0),
                per_node=2 if ranks > 1 else 0,
                started=f"2026-01-01T00:00:0{repeat}.000Z",
            )
            for ranks in (1, 4, 8)
            for repeat in (0, 1)
        ]
        alarms += len(findings(points(*runs)))
    sharpness.more_than("share of campaigns with a false alarm", 3, 10)
    assert binom.sf(3, 10, 6 * FALSE_ALARM) < 0.004 and alarms <= 3


@pytest.mark.parametrize(("factors", "word"), [((1.0, 1.2, 1.5), "falls by 3"), ((1.5, 1.2, 1.0), "rises by 5")])
def test_a_system_that_ages_is_reported(tmp_path: Path, factors: tuple[float, ...], word: str) -> None:
    generator = np.random.default_rng(1)
    runs = [
        measured(tmp_path / f"{ranks}-{r}", ranks, generator, factors=factors if ranks == 4 else (1.0,) * 3)
        for ranks in (1, 4)
        for r in (0, 1)
    ]
    found = ageing(points(*runs))
    assert found is not None and found.text.startswith("Ageing: at N=4 T=0 the throughput " + word)
    assert abs(found.numbers["log_ratio"]) == pytest.approx(math.log(1.5), rel=0.05)


def test_a_system_that_changes_during_the_campaign_is_reported(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    runs = [
        measured(tmp_path / f"{ranks}-{r}", ranks, generator, factors=(1.3**r,), started=f"2026-01-01T0{r}:00:00.000Z")
        for ranks in (1, 2, 4, 8)
        for r in (0, 1)
    ]
    found = drift(points(*runs))
    assert found is not None and found.numbers["log_ratio"] == pytest.approx(-math.log(1.3), rel=0.05)


def test_a_slow_node_is_named(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    runs = [measured(tmp_path / str(r), 12, generator, per_node=4, node_factors=(1.0, 1.25, 1.0)) for r in (0, 1)]
    (found,) = nodes(points(*runs))
    assert "ranks on n1 took 25 % longer" in found.text, found.text
    assert found.numbers["runs"] == found.numbers["tested"] == 2


@pytest.mark.parametrize("from_run_to_run", [0.0, 0.1])
def test_what_nodes_differ_by_from_run_to_run_is_noise(from_run_to_run: float) -> None:
    """300 campaigns of nodes that are alike but for the jobs beside them, on two nodes and more, and 60 with a node
    that is always slower: false alarms as stated, and the node is found."""
    generator = np.random.default_rng(21)

    def campaign(slower: float) -> list[dict[str, float]]:
        runs = []
        for count in (2, 4, 8, 8):
            for _ in range(2):
                own = 0.02 * generator.standard_normal(count) + from_run_to_run * generator.standard_normal(count)
                own[1] += slower
                own += generator.normal()  # the run's
                runs.append({f"n{k}": float(one) for k, one in enumerate(own)})
        return runs

    alarms = sum(_chance_of_columns(campaign(0.0)) < FALSE_ALARM for _ in range(300))
    most = int(binom.ppf(1 - 1e-4, 300, FALSE_ALARM))
    sharpness.more_than("share of campaigns with a false alarm on nodes", most, 300)
    assert alarms <= most
    assert sum(_chance_of_columns(campaign(0.5)) < FALSE_ALARM for _ in range(60)) >= 55


def test_time_between_operations_is_reported(tmp_path: Path) -> None:
    run = measured(tmp_path / "1", 2, np.random.default_rng(4), idle=0.3)
    run.record.environment["cpus_per_node"] = 1
    found = outside(points(run))
    assert found is not None and "30 %" in found.text and "waiting for one of 1 processors" in found.text


def test_a_slow_rank_that_is_alone_on_its_node_is_reported_and_not_explained(tmp_path: Path) -> None:
    generator = np.random.default_rng(13)
    slow = [
        measured(tmp_path / f"s{r}", 4, generator, per_node=1, node_factors=(1.0, 1.0, 1.3, 1.0)) for r in (0, 1, 2)
    ]
    found = lone_ranks(points(*slow))
    assert (
        found is not None and "the rank on n2 took 30 % longer" in found.text and "nothing shows whether" in found.text
    )
    assert nodes(points(*slow)) == []
    alike = [measured(tmp_path / f"a{r}", 4, generator, per_node=1) for r in (0, 1, 2)]
    assert lone_ranks(points(*alike)) is None
    once = measured(tmp_path / "once", 4, generator, per_node=1)
    for balance, printed in ((0.45, True), (0.95, False)):
        change_phases(once, balance=balance)
        assert (lone_ranks(points(once)) is not None) is printed


def test_think_times_that_nobody_recorded_are_not_idle_time(tmp_path: Path) -> None:
    """An imported run that doesn't say whether its ranks thought tells nothing of time outside; one that says they
    didn't does, and so does one of iocast."""
    run = measured(tmp_path / "1", 2, np.random.default_rng(4), idle=0.5)
    assert outside(points(run)) is not None
    run.record = replace(run.record, source="imported")
    change_phases(run, think_actual_seconds=None)
    assert outside(points(run)) is not None, "waiting_factor is 0, it says"
    for parameters in ({}, {"waiting_factor": 1.0}, {"waiting_factor": 0, "think_time": 0.001}):
        run.record = replace(run.record, workload=replace(run.record.workload, parameters=parameters))
        assert outside([Point([run])]) is None, parameters


def test_ramps_are_reported(tmp_path: Path) -> None:
    run = measured(tmp_path / "1", 2, np.random.default_rng(5))
    (phase,) = run.phases
    steady = SteadyState(begin=0.2 * phase.seconds, rate=1.5 * phase.rate)
    change_phases(run, balance=0.5, steady_state=steady)
    found = ramps(points(run))
    assert (
        found is not None
        and "33 % below that of its steady part: it starts 20 % into the phase, and the first rank is done after 50 %"
        in found.text
    )


def test_others_at_work_are_seen_by_a_lone_rank(tmp_path: Path) -> None:
    found = others(points(measured(tmp_path / "1", 1, np.random.default_rng(6), swing=1.0)))
    assert yaml.safe_dump(found and found.document())
    assert found is not None and found.numbers["swing"] > 0.2


def test_bands_of_latencies_have_their_middles_and_shares(tmp_path: Path) -> None:
    run = measured(tmp_path / "1", 1, np.random.default_rng(8), factors=(1.0,) * 4, second_band=0.3)
    parts = latency_bands(run.latencies("create"))
    assert [value for value, _ in parts] == pytest.approx([MEAN, 20 * MEAN], rel=0.1)
    assert parts[1][1] == pytest.approx(0.3, abs=0.05)
    (reported,) = bands(points(run))
    assert yaml.safe_load(yaml.safe_dump(reported.document())) == json.loads(json.dumps(reported.document()))
    assert reported.text.startswith("Latencies of create at N=1 lie in bands: ")


@pytest.mark.parametrize(
    ("bindings", "cpus", "found"),
    [
        (["0", "0", "0", "0"], 2, 1), (["0-1"] * 4, 2, 0), (["0", "1"], 8, 0),
        (["0-1,4", "0-1,4", "4", "4", "4"], 8, 3),
        ([""], 2, 0), ([], 2, 0), (["0", "0"], None, 0),
    ],
)  # fmt: skip
def test_ranks_bound_to_few_cpus_are_found(bindings: list[str], cpus: int | None, found: int, tmp_path: Path) -> None:
    run = measured(tmp_path / "run", 1, np.random.default_rng(1))
    assert run.record.environment is not None
    run.record.environment.update(bindings=bindings, cpus_per_node=cpus)
    finding = bound(points(run))
    assert (finding is not None) == bool(found)
    if finding is not None:
        assert f"bound to {found} of its {cpus} CPUs" in finding.text and finding.numbers["cpus"] == found
        assert finding in findings(points(run))


def test_a_coarse_clock_is_reported(tmp_path: Path) -> None:
    run = measured(tmp_path / "1", 1, np.random.default_rng(9))
    run.record.environment["clock_resolution_ns"] = 1e6
    found = clock(points(run))
    assert found is not None and "create" in found.text


def test_calibrate_says_what_it_saw_and_fits_nothing_with_look(
    tmp_path: Path, iocast: Callable[..., CompletedProcess[str]]
) -> None:
    generator = np.random.default_rng(10)
    run = measured(tmp_path / "lone", 1, generator, factors=(1.0,) * 4, second_band=0.3)
    done = iocast("calibrate", run.path, "--look", "--out", tmp_path / "none.yaml")
    assert done.returncode == 0, done.stderr
    assert "The measurements show:" in done.stdout and "bands" in done.stdout and not (tmp_path / "none.yaml").exists()
    assert {one["kind"] for one in json.loads(iocast("calibrate", run.path, "--look", "--json").stdout)} >= {"bands"}


def test_what_a_system_ages_within_a_run_widens_every_interval() -> None:
    rows = [
        {"point": "N=8", "quantity": name, "error": error, "spread": 0.0}
        for name, error in (("rate", 0.0), ("create.q50", 0.1))
    ]
    noise = dict.fromkeys(discrepancy.MISFIT_FLOOR, 0.0)
    for misfit in (True, False):
        young, aged = (discrepancy.discrepancies({"rows": rows}, noise, misfit, more) for more in (0.0, 0.4))
        assert all(
            aged[kind] == (pytest.approx(math.hypot(error, 0.4)), degrees) for kind, (error, degrees) in young.items()
        )


def test_what_was_held_out_counts_beside_what_is_known_of_the_family_and_alone_where_it_refutes_that() -> None:
    few = [
        {"point": "N=8", "quantity": name, "error": error, "spread": 0.0}
        for name, error in (("rate", 0.0), ("create.q50", 0.015), ("create.q75", 0.1))
    ]
    noise = dict.fromkeys(discrepancy.MISFIT_FLOOR, 0.0)
    misfit = discrepancy.discrepancies({"rows": few}, noise, True, 0.0)
    assert misfit["rate"] == (discrepancy.MISFIT_FLOOR["rate"], 2) and misfit["q75"] == (
        pytest.approx(math.log(1.1)),
        1,
    )
    known = discrepancy.discrepancies({"rows": few}, noise, False, 0.0)
    assert known["rate"] == (pytest.approx(discrepancy.FAMILY_DISCREPANCY["rate"]), discrepancy.FAMILY_WORTH)
    assert discrepancy.FAMILY_DISCREPANCY["q50"] < known["q50"][0] < math.log(1.015)
    assert known["q50"][1] == discrepancy.FAMILY_WORTH + 1
    assert known["q75"] == misfit["q75"], "no system of the family is ten deviations off"
    # What the smaller scales left open is no evidence against the family, and little of the model's own error.
    open_one = discrepancy.discrepancies({"rows": [row | {"spread": 0.1} for row in few]}, noise, False, 0.0)
    assert open_one["q75"] == (pytest.approx(discrepancy.FAMILY_DISCREPANCY["q75"]), discrepancy.FAMILY_WORTH)
    # The more was held out, the less counts what is known of others; but the errors of one scale have a common cause,
    # however many there are.
    many = discrepancy.discrepancies(
        {"rows": few + [few[1] | {"point": f"N=8 T={i}"} for i in range(1, 999)]}, noise, False, 0.0
    )
    assert known["q50"][0] < many["q50"][0] < math.log(1.015)
    assert many["q50"][1] == pytest.approx(discrepancy.FAMILY_WORTH + 1 / discrepancy.ALIKE_APART**2, rel=0.01)
    assert known["max"] == misfit["max"] == (discrepancy.UNCHECKED_DISCREPANCY["max"], 2), (
        "nothing of the kind was held out"
    )

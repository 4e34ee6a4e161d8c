# SPDX-License-Identifier: Apache-2.0
"""Calibrate, predict, validate, on simulated measurements whose truth is known."""

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest
import yaml
from scipy.stats import norm

from iocast.ground import binaries
from iocast.calibrate.fit import calibrate
from iocast.calibrate.search import Simulations
from iocast.errors import RunError
from iocast.runs.run_directory import Run, group
from iocast.validate import log_crps
from iocast.jobs.workers import Workers

Iocast = Callable[..., CompletedProcess[str]]


def test_the_fit_finds_the_true_parameters(fitted: Path) -> None:
    parameters = yaml.safe_load(fitted.read_text())["fitted"]["parameters"]
    quantum = parameters["stations.cpu.quantum"]["value"]
    contention = parameters["stations.cpu.contention"]["value"]
    # A factor of 1.5: the maxima that fix the quantum are few.
    assert abs(math.log(quantum / 0.005)) < math.log(1.5)
    assert abs(contention - 0.1) < 0.03


def test_the_held_out_scale_is_reported(fitted: Path) -> None:
    holdout = yaml.safe_load(fitted.read_text())["fitted"]["holdout"]
    assert holdout["ranks"] == 8 and holdout["fitted_up_to"] == 4
    assert any(row["quantity"] == "rate" for row in holdout["rows"])


def test_forecast_of_four_times_the_ranks_holds(
    fitted: Path, measured: Path, iocast: Iocast, run_of_truth: Callable[..., dict[str, Any]]
) -> None:
    done = iocast("validate", fitted, measured / "n32-r1", measured / "n32-r2", "--json")
    assert done.returncode == 0, done.stderr
    validation = json.loads(done.stdout)
    assert [point["role"] for point in validation["points"]] == ["check"]
    rows = {row["quantity"]: row for row in validation["points"][0]["rows"]}
    assert abs(rows["rate"]["error"]) < 0.05
    for op in ("stat", "read", "unlink", "create"):
        for quantile in ("q50", "q75", "q95"):
            assert abs(rows[f"{op}.{quantile}"]["error"]) < 0.10, (op, quantile, rows[f"{op}.{quantile}"])
    # 21 quantities with 90 % intervals: fewer than 15 inside has a probability below 0.2 % even if all were
    # independent.
    assert sum(row["inside"] for row in rows.values()) >= 15
    assert {"closed M/M/c", "universal scalability law", "straight line"} <= set(rows["rate"]["baselines"])
    distances = validation["points"][0]["wasserstein"]
    assert set(distances) == {"stat", "read", "unlink", "create"}
    # Most of a mean latency is waits of many quanta that few operations have, so a distance is that of the means: as
    # far as the quantum is off, and chance.
    quantum = yaml.safe_load(fitted.read_text())["fitted"]["parameters"]["stations.cpu.quantum"]["value"]
    phases = [run_of_truth(32, seed)["phases"][1] for seed in range(1, 25)]
    for op, distance in distances.items():
        means = [phase["latency"][op]["mean"] for phase in phases]
        chance = np.std(means, ddof=1) / np.mean(means)
        # The measured mean is of two runs, the forecast's of at least as many: beyond four times `chance`, itself of 24
        # runs, in less than 1 of 1000 checks.
        assert distance < abs(math.log(quantum / 0.005)) + 4 * chance + 0.05, (op, distance, quantum, chance)
    assert validation["summary"]["wasserstein_median"] <= max(distances.values())
    assert 0 < validation["summary"]["crps"]["rate"] < 0.1


@pytest.mark.long("a calibration for one warning")
def test_many_more_objects_than_were_fitted_are_warned_of(fitted: Path, iocast: Iocast, tmp_path: Path) -> None:
    points = yaml.safe_load(fitted.read_text())["fitted"]["campaign"]["points"]
    assert {point["ranks"]: point["peak_objects"] for point in points} == {
        ranks: ranks * 2 * 1500 for ranks in (1, 2, 4, 8)
    }
    untold = yaml.safe_load(fitted.read_text())
    for point in untold["fitted"]["campaign"]["points"]:
        del point["peak_objects"]
    (tmp_path / "untold.yaml").write_text(yaml.safe_dump(untold))
    warned = []
    # Objects of a rank in each of two datasets: with 16 ranks three times as many as measured, and a few more; then the
    # latter on a platform that doesn't record the measured number.
    for platform, objects in ((fitted, 2250), (fitted, 2260), (tmp_path / "untold.yaml", 2260)):
        settings = ("--set", f"iterations={objects}", "--set", f"objects={objects}")
        done = iocast("predict", platform, "--ppn", "16", *settings, "--json")
        assert done.returncode == 0, done.stderr
        warned.append(
            [one for one in json.loads(done.stdout)["warnings"] if "times as many as any that was fitted" in one]
        )
    assert [len(one) for one in warned] == [0, 1, 0], warned


def test_the_score_of_a_distribution_is_its_integral() -> None:
    """CRPS by its definition: the integral of the squared difference of the distribution function and the step at what
    was seen."""
    printed, measured = {"low": 70.0, "value": 100.0, "high": 100.0**2 / 70}, 130.0
    sd = math.log(printed["high"] / printed["low"]) / (2 * norm.ppf(0.95))
    x = np.linspace(-10, 10, 400_001)
    step = x >= math.log(measured / printed["value"])
    integral = float(np.sum((norm.cdf(x / sd) - step) ** 2) * (x[1] - x[0]))
    assert log_crps(printed, measured, 0.9) == pytest.approx(integral, rel=1e-3)
    # A forecast that is all but sure is scored by its error.
    assert log_crps({"low": 99.9999, "value": 100, "high": 100.0001}, measured, 0.9) == pytest.approx(
        math.log(1.3), rel=1e-3
    )


@pytest.mark.long("three calibrations")
def test_the_answer_is_the_same_whoever_computes(fitted: Path, measured: Path, iocast: Iocast, tmp_path: Path) -> None:
    here, crew = (iocast("validate", fitted, measured / "n8-r1", "--json", *more) for more in ((), ("--workers", 2)))
    assert here.returncode == crew.returncode == 4, crew.stderr  # it was fitted to all of them
    assert here.stdout == crew.stdout
    jobs = [(fitted, "md-workbench", {"objects": "20", "iterations": "20"}, 1, ranks, 7) for ranks in (1, 2, 3, 4, 5)]
    with Simulations() as alone, Workers(2) as workers, Simulations(workers) as together:
        assert [run["phases"] for run in alone.run(jobs)] == [run["phases"] for run in together.run(jobs)]
    done = iocast("calibrate", measured / "n1-r1", "--out", tmp_path / "f.yaml", "--slurm", "--scheduler", "tcp://h:1")
    assert done.returncode == 2 and "--scheduler or --slurm" in done.stderr


def test_an_interrupted_calibration_goes_on_where_it_was(
    fitted: Path, measured: Path, iocast: Iocast, tmp_path: Path
) -> None:
    """What was tried lies beside the platform, the best of it with the least cost; of a line that was being written
    nothing is taken."""
    tried = fitted.with_suffix(".search.jsonl").read_text().splitlines(keepends=True)
    entries = [json.loads(line) for line in tried]
    assert len({tuple(entry["keys"]) for entry in entries}) == len(entries) and {
        entry["structure"]["lock"] for entry in entries
    } == {"none", "journal"}
    (tmp_path / "again.search.jsonl").write_text("".join(tried[:-3]) + tried[-3][:50])
    runs = [measured / f"n{ranks}-r{repeat}" for ranks in (1, 2, 4, 8) for repeat in (1, 2)]
    done = iocast("calibrate", *runs, "--platform", "local", "--out", tmp_path / "again.yaml", "--seed", "1")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again.yaml").read_text() == fitted.read_text()
    after = (tmp_path / "again.search.jsonl").read_text().splitlines()
    assert len(after) == len(tried) + 1 and [json.loads(line)["keys"] for line in after[-3:]] == [
        entry["keys"] for entry in entries[-3:]
    ]


def test_what_was_tried_before_an_interruption_is_kept(
    measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of candidates that are simulated together."""
    points = group([Run(measured / f"n{ranks}-r{repeat}") for ranks in (1, 2, 4, 8) for repeat in (1, 2)])
    simulate, count = binaries.simulate, itertools.count()

    def interrupted(*job: Any) -> Any:
        if next(count) == 5 * len(points):
            raise RunError("The power is gone.")
        return simulate(*job)

    monkeypatch.setattr(binaries, "simulate", interrupted)
    with pytest.raises(RunError, match="power"):
        calibrate(points, "local", 1, lambda *_: None, trace=tmp_path / "search.jsonl")
    assert len((tmp_path / "search.jsonl").read_text().splitlines()) == 5


def test_a_bar_that_is_missed_exits_4(fitted: Path, measured: Path, iocast: Iocast) -> None:
    done = iocast("validate", fitted, measured / "n32-r1", "--most-rate-error", "0")
    assert done.returncode == 4
    assert "FELL SHORT" in done.stdout


def test_runs_that_were_fitted_to_are_named_so(fitted: Path, measured: Path, iocast: Iocast) -> None:
    done = iocast("validate", fitted, measured / "n8-r1", "--json")
    assert json.loads(done.stdout)["points"][0]["role"] == "fit"
    assert done.returncode == 4 and json.loads(done.stdout)["verdict"] == "nothing held out"


def test_what_if_is_an_edit(fitted: Path, iocast: Iocast, tmp_path: Path) -> None:
    """Twice as many cores, by file and by option: the same, and about twice the throughput."""
    (tmp_path / "more.yaml").write_text(f"schema_version: 1\nextends: {fitted}\nstations: {{cpu: {{servers: 4}}}}\n")
    ask = ("--ppn", "16", "--set", "iterations=300", "--set", "objects=300", "--json")
    plain = json.loads(iocast("predict", fitted, *ask).stdout)
    by_file = json.loads(iocast("predict", tmp_path / "more.yaml", *ask).stdout)
    by_option = json.loads(iocast("predict", fitted, *ask, "--edit", "stations.cpu.servers=4").stdout)
    assert by_file["quantities"] == by_option["quantities"]
    assert by_file["platform"]["edits"] == {"stations.cpu.servers": 4}
    gain = by_file["quantities"]["rate"]["value"] / plain["quantities"]["rate"]["value"]
    assert 1.5 < gain < 2.05


@pytest.mark.parametrize("solver", ["simulate", "analytic"])
def test_both_solvers_answer_and_intervals_hold_the_value(fitted: Path, iocast: Iocast, solver: str) -> None:
    done = iocast("predict", fitted, "--ppn", "16", "--solver", solver, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    for name, q in answer["quantities"].items():
        assert q["low"] <= q["value"] <= q["high"], name
    rate = answer["quantities"]["rate"]["value"]
    bounds = answer["baselines"]["asymptotic bounds"]["rate"]
    assert rate <= bounds["high"] * 1.05


def test_a_forecast_tells_parts_balance_and_the_course_of_time(fitted: Path, iocast: Iocast) -> None:
    answer = json.loads(iocast("predict", fitted, "--ppn", "16", "--set", "iterations=200", "--json").stdout)
    parts = answer["parts"]
    assert parts["create.open.q50"]["value"] < answer["quantities"]["create.q50"]["value"]
    for name, printed in parts.items():
        assert name.count(".") == 2 and printed["low"] <= printed["value"] <= printed["high"]
    balance = answer["balance"]
    assert 0 < balance["low"] <= balance["value"] <= balance["high"] <= 1
    reported = answer["timeline"]
    operations = sum(reported["rate"]) * reported["bin_seconds"]
    datasets = int(answer["workload"]["parameters"]["datasets"])
    assert round(operations) == 16 * 200 * datasets * 4, "every operation of one run: create, stat, read, unlink"


def test_the_solvers_agree_on_throughput(fitted: Path, iocast: Iocast) -> None:
    rates = [
        json.loads(iocast("predict", fitted, "--ppn", "16", "--solver", solver, "--json").stdout)["quantities"]["rate"][
            "value"
        ]
        for solver in ("simulate", "analytic")
    ]
    assert abs(math.log(rates[0] / rates[1])) < 0.1


def test_both_solvers_count_the_bytes_of_large_objects(iocast: Iocast, tmp_path: Path) -> None:
    """32 MB through a target of 1 GB/s take 32 ms, whoever says so; 3.9 kB take next to nothing."""
    operations = (
        "{create: {open: [{station: mds, demand: 10us}], write: [{station: oss, demand: 1ms, bandwidth: 1GB/s}], close:"
        " [{station: mds, demand: 1us}]}, read: {read: [{station: oss, demand: 1ms, bandwidth: 1GB/s}]}}"
    )
    (tmp_path / "disks.yaml").write_text(
        f"schema_version: 1\nextends: lustre\nstations: {{oss: {{servers: 1}}}}\noperations: {operations}\n"
    )
    rates = {}
    for solver in ("simulate", "analytic"):
        for size in ("3901B", "32MB"):
            options = (
                "--workload",
                "md-workbench",
                "--nodes",
                "2",
                "--ppn",
                "4",
                "--set",
                "datasets=2",
                "--set",
                "objects=60",
                "--set",
                "iterations=60",
                "--set",
                f"object_size={size}",
            )
            done = iocast("predict", tmp_path / "disks.yaml", *options, "--solver", solver, "--json")
            assert done.returncode == 0, done.stderr
            rates[solver, size] = json.loads(done.stdout)["quantities"]["rate"]["value"]
    for solver in ("simulate", "analytic"):
        assert rates[solver, "3901B"] > 3 * rates[solver, "32MB"], rates
    for size in ("3901B", "32MB"):
        assert abs(math.log(rates["simulate", size] / rates["analytic", size])) < 0.15, rates


def test_an_uncalibrated_platform_has_no_intervals(iocast: Iocast) -> None:
    answer = json.loads(iocast("predict", "local", "--ppn", "2", "--set", "iterations=50", "--json").stdout)
    assert answer["quantities"]["rate"]["low"] is None
    assert "never calibrated" in answer["basis"][0]


def test_far_extrapolation_is_flagged_and_wider(fitted: Path, iocast: Iocast) -> None:
    near = json.loads(iocast("predict", fitted, "--ppn", "16", "--set", "iterations=100", "--json").stdout)
    far = json.loads(iocast("predict", fitted, "--ppn", "512", "--set", "iterations=100", "--json").stdout)
    width = [f["quantities"]["rate"]["high"] / f["quantities"]["rate"]["low"] for f in (near, far)]
    assert width[1] > width[0]
    assert any("64 times" in warning for warning in far["warnings"])

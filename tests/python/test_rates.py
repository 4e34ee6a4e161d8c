# SPDX-License-Identifier: Apache-2.0
"""Calibration from rates alone: the network that is fitted, what the numbers leave open, and what a user sees of it."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sharpness
import yaml
from scipy.stats import binom, chi2

from iocast import analytic
from iocast.ground import binaries
from iocast.calibrate import rates
from iocast.calibrate.rates import PARAMETERS, Placement, different_tests, find_posterior, rates_of
from iocast.errors import InputError
from iocast.forecasts.sources import with_settings
from iocast.importers import import_files
from iocast.platforms.documents import dump
from iocast.runs.run_directory import Run, group

FALSE_ALARM = 1e-4
Call = Callable[..., Any]


def test_the_fitted_network_is_the_platform_that_is_written(simulator: Path, tmp_path: Path) -> None:
    """Within 8 % of the analytic solver, which solves the platform file itself; in the median within 2 %."""
    generator = np.random.default_rng(7)
    errors = []
    for number in range(12):
        logs = np.log([500e-6, 20e-6, 5e-6, 0.03]) + generator.normal(0, 1, 4)
        file = tmp_path / f"{number}.yaml"
        file.write_text(dump({"schema_version": 1, "extends": "queue"} | rates._numbers(logs)))
        platform = binaries.resolve_platform(file)
        for place in (
            Placement(1, 1, 0.0),
            Placement(1, 24, 0.0),
            Placement(10, 10, 0.0),
            Placement(200, 24, 0.0),
            Placement(10, 10, 4.0),
        ):
            solved = analytic.solve(
                platform, {"stat": 1.0}, place.nodes, place.ranks_per_node, place.waiting_factor, 1, points=64
            ).rate
            errors.append(abs(math.log(rates_of(logs[None, :], [place])[0, 0] / solved)))
    assert max(errors) < 0.08 and np.median(errors) < 0.02


def test_a_station_twice_as_fast_serves_in_half_the_time(simulator: Path, tmp_path: Path) -> None:
    """Speed 4 at the station `server` is its demand over 4, for the solver as for the simulator; so is the memory of
    other sockets."""
    rates = []
    for number, change in enumerate(
        ({"stations": {"server": {"speed": 4}}}, {"demands": {"server": {"law": "exponential", "mean": "5us"}}})
    ):
        file = tmp_path / f"{number}.yaml"
        file.write_text(dump({"schema_version": 1, "extends": "queue"} | change))
        rates.append(analytic.solve(binaries.resolve_platform(file), {"stat": 1.0}, 50, 8, 0.0, 1, points=64).rate)
    assert rates[0] == pytest.approx(rates[1], rel=1e-9)


def test_a_network_that_crowds_falls_with_more_clients() -> None:
    logs = np.log([[500e-6, 1e-9, 20e-6, 0.5]])
    few, many = rates_of(logs, [Placement(10, 10, 0.0), Placement(1000, 10, 0.0)])[0]
    assert many < 0.7 * few


@pytest.mark.long("many fits")
def test_belief_and_measurements_are_weighed_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulation-based calibration (Talts et al. 2018): of truths drawn from the belief itself, the forecast's quantile
    at which the truth lies is uniform, so that intervals hold as often as they say."""
    monkeypatch.setattr(rates, "SAMPLES", 2**9)
    generator = np.random.default_rng(11)
    places = [Placement(2, 8, 0.0), Placement(4, 8, 0.0), Placement(10, 8, 0.0)]
    entries = [Placement(100, 8, 0.0)]
    largest = places[-1]
    scale = {"alone": math.log(largest.ranks), "node": math.log(largest.nodes), "server": 0.0}
    sigma, truths, found = 0.1, 60, []
    while len(found) < truths:
        logs = np.array([p.mean + scale.get(p.name, 0.0) + p.sd * generator.normal() for p in PARAMETERS])[None, :]
        measured = np.log(rates_of(logs, places))[0]
        # The belief is relative to the largest rate; a truth that is at odds with its own was not drawn from it.
        if abs(measured[-1]) > 0.05:
            continue
        measured += sigma * generator.standard_t(4, len(places))
        posterior = find_posterior(places, measured, np.full(len(places), sigma), seed=len(found))
        found.append(float(np.mean(rates_of(posterior, entries)[:, 0] < rates_of(logs, entries)[0, 0])))
    counts = np.histogram(found, bins=6, range=(0, 1))[0]
    assert float(np.sum((counts - truths / 6) ** 2 / (truths / 6))) < chi2.isf(FALSE_ALARM, 5), counts
    inside = sum(0.05 <= p <= 0.95 for p in found)
    fewest, most = int(binom.ppf(FALSE_ALARM, truths, 0.9)), int(binom.isf(FALSE_ALARM, truths, 0.9))
    sharpness.fewer_than("coverage", fewest, truths)
    assert fewest <= inside <= most, inside


def test_many_precise_rates_are_followed() -> None:
    """The little room that precise measurements leave is found."""
    logs = np.log([[2e-3, 50e-6, 10e-6, 0.02]])
    places = [Placement(n, p, 0.0) for n in (1, 2, 4, 8, 16, 32) for p in (1, 8, 32)]
    truth = np.log(rates_of(logs, places))[0]
    posterior = find_posterior(places, truth, np.full(len(places), 0.01), seed=0)
    assert float(np.median(rates_of(posterior, [Placement(64, 32, 0.0)]))) == pytest.approx(
        float(rates_of(logs, [Placement(64, 32, 0.0)])[0, 0]), rel=0.03
    )


MEASURED = """\
# a paper's table
nodes,ppn,rate,phase,operation
1,36,5400,create,create
2,36,10500,create,create
4,36,19000,create,create
8,36,31000,create,create
1,36,40000,stat,stat
"""


def fitted(iocast: Call, tmp_path: Path, table: str = MEASURED, phase: str = "create") -> Path:
    tmp_path.mkdir(exist_ok=True)
    shutil.rmtree(tmp_path / "runs", ignore_errors=True)
    (tmp_path / "fitted.yaml").unlink(missing_ok=True)
    (tmp_path / "table.csv").write_text(table)
    assert iocast("import", tmp_path / "table.csv", "--out", tmp_path / "runs").returncode == 0
    runs = (
        [tmp_path / "runs"]
        if (tmp_path / "runs" / "run.json").exists()
        else sorted((tmp_path / "runs").glob(f"*-{phase}")) or sorted((tmp_path / "runs").iterdir())
    )
    done = iocast("calibrate", *runs, "--platform", "queue", "--phase", phase, "--out", tmp_path / "fitted.yaml")
    assert done.returncode == 0, done.stderr
    assert "Only rates were fitted" in done.stdout
    return tmp_path / "fitted.yaml"


def test_what_the_network_does_not_know_is_named(iocast: Call, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("nodes,ppn,rate,D\n10,1,540,10\n10,1,1530,1\n10,10,5280,1\n")
    assert iocast("import", tmp_path / "table.csv", "--out", tmp_path / "runs").returncode == 0
    done = iocast(
        "calibrate", *sorted((tmp_path / "runs").iterdir()), "--platform", "queue", "--out", tmp_path / "fitted.yaml"
    )
    assert done.returncode == 2 and "2 tests that differ in D: D=1 at 10x1, 10x10 in" in done.stderr, (
        "two values at one placement"
    )
    (tmp_path / "table.csv").write_text("nodes,ppn,rate,D\n10,1,540,10\n10,10,5280,1\n")
    assert iocast("import", tmp_path / "table.csv", "--out", tmp_path / "again").returncode == 0
    done = iocast("calibrate", tmp_path / "again", "--platform", "queue", "--out", tmp_path / "fitted.yaml")
    assert done.returncode == 0 and "The measurements differ in D," in done.stdout


@pytest.mark.parametrize(
    ("columns", "rows", "differing"),
    [
        ("access", ["1,shared", "2,shared", "4,own"], "access"),
        ("transfer_size", ["1,1048576", "2,4096", "4,1048576"], "transfer_size"),
        ("bs,iodepth", ["1,4k,1", "2,4096,8"], "iodepth"),  # 4k is 4096
        ("block_size", ["1,1024", "2,512", "4,256"], ""),  # strong scaling
        ("block_size", ["1,1024", "2,512", "2,1024"], "block_size"),
        ("numjobs,runtime", ["1,36,60", "2,72,30", "2,72,60"], ""),
        ("kind", ["1,a", "1,a", "2,a"], ""),
        ("direct", ["1,0", "1,false", "2,0"], ""),
        ("direct", ["1,0", "1,true", "2,1"], "direct"),
        ("block_size", ["1,4KiB", "1,4096", "2,4096"], ""),
    ],
)
def test_different_tests_have_no_common_forecast(tmp_path: Path, columns: str, rows: list[str], differing: str) -> None:
    table = tmp_path / "table.csv"
    table.write_text("\n".join([f"ppn,rate,nodes,{columns}", *(f"36,1000,{row}" for row in rows)]) + "\n")
    runs = [Run(path) for path in import_files([table], tmp_path / "runs")]
    mixed = different_tests(group(runs))
    assert bool(mixed) == bool(differing), mixed
    assert (
        not differing or f"tests that differ in {differing}: {differing}=" in mixed and f"--only {differing}=" in mixed
    )


def test_a_test_that_is_chosen_names_what_refutes_it(iocast: Call, tmp_path: Path) -> None:
    """Measured nearer to the target with another setting; the hint chooses the test of the largest scale."""
    table = tmp_path / "table.csv"
    table.write_text("nodes,ppn,rate,transfer_size\n10,60,15300,4MiB\n5,60,9000,4MiB\n40,60,81200,32MiB\n")
    ask = ("forecast", table, "--nodes", "48", "--out", tmp_path / "out")
    refused = iocast(*ask).stderr
    assert refused.strip().endswith("largest scale by --only transfer_size=33554432.")
    assert "transfer_size=33554432 at 40x60 in" in refused and "transfer_size=4194304 at 5x60, 10x60 in" in refused
    done = iocast(*ask, "--only", "transfer_size=4194304")
    assert "than anything that the forecast rests on: 81.2 k/s at 40x60 (transfer_size=33554432)." in done.stdout
    (page,) = (tmp_path / "out").glob("report.html")
    assert "81.2 k/s at 40x60" in page.read_text()
    near = iocast("forecast", table, "--nodes", "10", "--out", tmp_path / "near", "--only", "transfer_size=4194304")
    assert near.returncode == 0 and "leaves out what was measured nearer" not in near.stdout


def test_one_test_of_several_is_chosen(iocast: Call, tmp_path: Path) -> None:
    """Its answer is that of its results alone; without a choice there is no answer."""
    small, large = ["1,36,100,4KiB", "2,36,190,4KiB", "4,36,350,4KiB"], ["1,36,9,1MiB", "2,36,17,1MiB", "4,36,30,1MiB"]
    head = "nodes,ppn,rate,transfer_size"
    for name, rows in (("mixed", small + large), ("alone", large)):
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *rows]) + "\n")
    ask = ("forecast", tmp_path / "mixed.csv", "--nodes", "8")
    done = iocast(*ask, "--out", tmp_path / "none")
    assert done.returncode == 2 and "2 tests that differ in transfer_size" in done.stderr, done.stderr
    assert not (tmp_path / "none").exists()
    (option,) = re.findall(r"--only (\S+)\.$", done.stderr.strip())
    assert option.startswith("transfer_size=")
    done = iocast(*ask[:-1], "8, 8", "--only", "transfer_size=1048576", "--json", "--out", tmp_path / "chosen")
    assert done.returncode == 0, done.stderr
    alone = iocast("forecast", tmp_path / "alone.csv", "--nodes", "8", "--json", "--out", tmp_path / "alone")
    chosen, expected = (json.loads(one.stdout)["phases"][0]["forecasts"][0]["quantities"] for one in (done, alone))
    assert chosen == expected
    assert len(json.loads(done.stdout)["phases"][0]["forecasts"]) == 1, "a target that is named twice is one target"
    page = (tmp_path / "chosen" / "report.html").read_text()
    assert "in 3 runs of" in page, "the page shows the runs of this test alone"
    for wrong in ("transfer_size=1GiB", "block_size=1"):
        done = iocast(*ask, "--only", "transfer_size=1MiB", "--only", wrong, "--out", tmp_path / "none")
        assert done.returncode == 2 and "Allowed:" in done.stderr, done.stderr


@pytest.mark.long("many fits; one of several tests is chosen always")
def test_a_choice_is_among_the_tests_of_the_phases_that_state_the_setting(iocast: Call, tmp_path: Path) -> None:
    """Phases without the setting stay as they are without a choice; one with another value is named with its remedy."""
    rows = {
        "io.csv": ["size,phase", "write,100,4096", "write,9,1048576", "read,50,512"],
        "meta.csv": ["phase", "stat,7000"],
    }
    for name, (head, *lines) in rows.items():
        table = [f"nodes,ppn,rate,{head}".replace("size,phase", "phase,size")]
        for line in lines:
            phase, rate, *more = line.split(",")
            table += [",".join([str(n), "4", str(n * int(rate)), phase, *more]) for n in (1, 2, 4)]
        (tmp_path / name).write_text("\n".join(table) + "\n")
    ask = ("forecast", tmp_path / "io.csv", tmp_path / "meta.csv", "--nodes", "8", "--json")

    def rates(out: str, *only: str) -> dict[str, Any]:
        options = [word for one in only for word in ("--only", one)]
        done = iocast(*ask, *options, "--out", tmp_path / out)
        assert done.returncode == 0, done.stderr
        return {
            one["phase"]: one.get("refusal") or one["forecasts"][0]["quantities"]["rate"]
            for one in json.loads(done.stdout)["phases"]
        }

    whole, chosen = rates("whole"), rates("chosen", "size=4KiB")
    assert "differ in size" in whole["write"] and chosen["stat"] == whole["stat"]
    assert "value" in chosen["write"], "the test that was chosen"
    (advice,) = re.findall(r"add --only (\S+) to", chosen["read"])
    both = rates("both", "size=4KiB", f"{advice}")
    assert both["read"] == whole["read"] and both["write"] == chosen["write"]
    for wrong in ("size=5KiB", "sizes=4KiB"):
        done = iocast(*ask, "--only", wrong, "--out", tmp_path / "none")
        assert done.returncode == 2 and re.search(r"Allowed: \w", done.stderr) and not (tmp_path / "none").exists()
    done = iocast(*ask, "--phase", "stat", "--only", "size=4KiB", "--out", tmp_path / "none")
    assert done.returncode == 2 and "Allowed: ." not in done.stderr and "leave --only out" in done.stderr


def test_the_setting_that_no_run_has_is_named(tmp_path: Path) -> None:
    """And not another one of --only, that is written in another unit."""
    (tmp_path / "t.csv").write_text("nodes,ppn,rate,size,api\n1,1,5,1048576,POSIX\n2,1,9,4096,MPIIO\n")
    runs = [Run(path) for path in import_files([tmp_path / "t.csv"], tmp_path / "runs")]
    assert [run.parameters["api"] for run in with_settings(runs, {"size": ["1MiB"]})] == ["POSIX"]
    with pytest.raises(InputError, match=r"^No run has api=POSX"):
        with_settings(runs, {"size": ["1MiB"], "api": ["POSX"]})
    with pytest.raises(InputError, match="all settings of --only together"):
        with_settings(runs, {"size": ["1MiB"], "api": ["MPIIO"]})


def forecast(iocast: Call, platform: Path, *arguments: object) -> dict[str, Any]:
    done = iocast("predict", platform, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_from_a_papers_table_to_a_checked_forecast(iocast: Call, tmp_path: Path) -> None:
    platform = fitted(iocast, tmp_path)
    near, far = (forecast(iocast, platform, "--nodes", nodes, "--ppn", 36) for nodes in (8, 64))
    assert near["solver"] == "analytic" and near["phase"] == "create" and list(near["quantities"]) == ["rate"]
    assert near["quantities"]["rate"]["low"] < 31000 < near["quantities"]["rate"]["high"]
    width = [f["quantities"]["rate"]["high"] / f["quantities"]["rate"]["low"] for f in (near, far)]
    assert width[1] > 1.5 * width[0]
    assert set(far["baselines"]) >= {"closed M/M/c", "last value", "universal scalability law"}

    (tmp_path / "larger.csv").write_text("nodes,ppn,rate,phase,operation\n16,36,43000,create,create\n")
    assert iocast("import", tmp_path / "larger.csv", "--out", tmp_path / "larger").returncode == 0
    done = iocast("validate", platform, tmp_path / "larger", "--json")
    assert done.returncode in (0, 4), done.stderr
    (point,) = json.loads(done.stdout)["points"]
    assert (
        point["role"] == "check"
        and [row["quantity"] for row in point["rows"]] == ["rate"]
        and point["rows"][0]["inside"]
    )


def test_one_number_gives_a_wide_answer_that_says_so(iocast: Call, tmp_path: Path) -> None:
    platform = fitted(iocast, tmp_path, "nodes,ppn,rate\n10,16,5000\n", "benchmark")
    answer = forecast(iocast, platform, "--nodes", 100, "--ppn", 16)
    rate = answer["quantities"]["rate"]
    thinking = forecast(iocast, platform, "--nodes", 100, "--ppn", 16, "--set", "waiting_factor=4")["quantities"][
        "rate"
    ]
    assert thinking["value"] < rate["value"]
    assert rate["high"] / rate["low"] > 4 and rate["low"] < 5000 * 10
    assert set(answer["baselines"]) == {"last value", "asymptotic bounds"}  # a rule of growth needs two scales
    assert any(
        "growth from there is not measured. Measure 5 x 16 and 2 x 16 next." in warning
        for warning in answer["warnings"]
    )


def test_another_seed_says_the_same() -> None:
    places = [Placement(n, 36, 0.0) for n in (1, 2, 4, 8)]
    log_rates = np.log([5400, 10500, 19000, 31000])
    entries = []
    for seed in (0, 1):
        posterior = find_posterior(places, log_rates, np.full(4, 0.07), seed)
        entries.append(np.quantile(np.log(rates_of(posterior, [Placement(64, 36, 0.0)])), [0.05, 0.5, 0.95]))
    assert np.abs(np.subtract(*entries)).max() < 0.15


def test_a_forecast_of_a_fitted_placement_is_what_the_fit_says(iocast: Call, tmp_path: Path) -> None:
    """Within the digits that the table has; an edit that changes nothing leaves the forecast, a faster server raises
    it."""
    platform = fitted(iocast, tmp_path)
    (row,) = [r for r in yaml.safe_load(platform.read_text())["fitted"]["fit"] if round(r["measured"]) == 31000]
    plain = forecast(iocast, platform, "--nodes", 8, "--ppn", 36)["quantities"]["rate"]
    assert plain["value"] == pytest.approx(row["forecast"], rel=1e-9)
    same = forecast(iocast, platform, "--nodes", 8, "--ppn", 36, "--edit", "stations.server.speed=1")["quantities"][
        "rate"
    ]
    assert same["value"] == pytest.approx(plain["value"], rel=1e-6) and same["high"] == pytest.approx(
        plain["high"], rel=0.02
    )
    faster = forecast(iocast, platform, "--nodes", 64, "--ppn", 36, "--edit", "stations.server.speed=4")["quantities"][
        "rate"
    ]
    assert faster["value"] > 1.1 * forecast(iocast, platform, "--nodes", 64, "--ppn", 36)["quantities"]["rate"]["value"]


@pytest.mark.parametrize(
    ("columns", "rows", "arguments", "named"),
    [
        ("cores", ("1,1,1000,4", "1,2,1900,4"), (), "8 ranks on 4 cores"),
        (
            "memory,working_set",
            ("1,1,1000,16GiB,4GiB", "1,2,1900,16GiB,8GiB"),
            (),
            "working set of 32 GiB with 16 GiB of memory",
        ),
        (
            "memory,working_set",
            ("1,1,1000,64GiB,4GiB", "1,2,1900,64GiB,8GiB"),
            ("--set", "working_set=100GiB"),
            "working set of 100 GiB",
        ),
    ],
)
def test_a_single_machine_beyond_its_cores_or_memory_has_no_interval(
    iocast: Call, tmp_path: Path, columns: str, rows: tuple[str, ...], arguments: tuple[str, ...], named: str
) -> None:
    """Where a measurement has been there, it has one."""
    platform = fitted(iocast, tmp_path, "\n".join([f"nodes,ppn,rate,{columns}", *rows]) + "\n", "benchmark")
    answer = forecast(iocast, platform, "--nodes", 1, "--ppn", 8, *arguments)
    assert answer["quantities"]["rate"]["low"] is None and any(named in warning for warning in answer["warnings"])
    near = forecast(iocast, platform, "--nodes", 1, "--ppn", 3)
    assert near["quantities"]["rate"]["low"] is not None and not any(
        "no interval is known" in warning for warning in near["warnings"]
    )


def test_rates_in_bytes_grow_by_a_rule_of_their_own(iocast: Call, tmp_path: Path) -> None:
    """Units of bytes change nothing; bytes and operations are not one table."""
    answers = [
        forecast(
            iocast,
            fitted(
                iocast, tmp_path / unit.replace("/", ""), f"nodes,ppn,rate,unit\n10,16,{rate},{unit}\n", "benchmark"
            ),
            "--nodes",
            40,
            "--ppn",
            16,
        )
        for unit, rate in (("MiB/s", 2048), ("GiB/s", 2), ("bytes", 2**31))
    ]
    values = [answer["quantities"]["rate"]["value"] for answer in answers]
    assert values == pytest.approx([2**31 * 4**0.3] * 3)


@pytest.mark.parametrize(
    "rows",
    [
        ("1,1,1000", "2,1,2000", "4,1,4000", "8,1,8000", "16,1,800"),  # a collapse
        pytest.param(("10,60,30000", "10,32,196000"), marks=pytest.mark.long("placements that contradict each other")),
    ],
)
def test_rates_that_no_curve_follows_raise_the_alarm(iocast: Call, tmp_path: Path, rows: tuple[str, ...]) -> None:
    """Also where the same rates in a likely order raise none; the interval holds the measured rate."""
    platform = fitted(iocast, tmp_path, "\n".join(["nodes,ppn,rate", *rows]) + "\n", "benchmark")
    nodes, ppn, rate = rows[-1].split(",")
    answer = forecast(iocast, platform, "--nodes", nodes, "--ppn", ppn)
    assert any("Misfit" in warning and f"{nodes}" in warning for warning in answer["warnings"])
    assert answer["quantities"]["rate"]["low"] < float(rate) < answer["quantities"]["rate"]["high"]
    likely = fitted(iocast, tmp_path, "nodes,ppn,rate\n1,1,1000\n2,1,2000\n4,1,3800\n8,1,6000\n", "benchmark")
    assert not any("Misfit" in warning for warning in forecast(iocast, likely, "--nodes", 16, "--ppn", 1)["warnings"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(("--set", "datasets=4"), "Allowed: waiting_factor"), (("--solver", "simulate"), "use --solver analytic")],
)
def test_what_rates_do_not_tell_is_refused(iocast: Call, tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    done = iocast("predict", fitted(iocast, tmp_path), *arguments)
    assert done.returncode == 2 and says in done.stderr


def test_an_open_loop_is_not_taken_for_a_closed_one(iocast: Call, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("nodes,ppn,rate\n10,16,5000\n")
    assert iocast("import", tmp_path / "table.csv", "--out", tmp_path / "run").returncode == 0
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    run["workload"]["parameters"]["rate"] = 50.0
    (tmp_path / "run" / "run.json").write_text(json.dumps(run))
    done = iocast("calibrate", tmp_path / "run", "--platform", "queue", "--out", tmp_path / "f.yaml")
    assert done.returncode == 2 and "open loop" in done.stderr and not (tmp_path / "f.yaml").exists()


def test_only_a_network_with_a_place_for_them_is_fitted_to_rates(iocast: Call, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("schema_version: 1\nextends: local\ncalibration: {method: rates}\n")
    (tmp_path / "table.csv").write_text(MEASURED)
    assert iocast("import", tmp_path / "table.csv", "--out", tmp_path / "runs").returncode == 0
    done = iocast(
        "calibrate",
        tmp_path / "runs" / "1x36-stat",
        "--phase",
        "stat",
        "--platform",
        tmp_path / "own.yaml",
        "--out",
        tmp_path / "f.yaml",
    )
    assert done.returncode == 2 and "has no demands.alone" in done.stderr and "extend the platform queue" in done.stderr

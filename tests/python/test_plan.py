# SPDX-License-Identifier: Apache-2.0
"""Planning: what measurements would tell, against closed forms; and campaigns that are proposed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest
import yaml
from schedule import mostly_long

from iocast.ground import binaries
from iocast.calibrate.fit import calibrate
from iocast.calibrate.recipe import read_recipe
from iocast.calibrate.search import Simulations
from iocast.campaign.bench import POSIX
from iocast.campaign.plan import read_plan
from iocast.campaign.dry_run import dry_run
from iocast.platforms.fitted import Fitted
from iocast.importers import import_files
from iocast.platforms.documents import dump
from iocast.planning.candidate_places import beyond, candidates
from iocast.planning.plan import BELIEFS, Ensemble, Planner, STARTUP, Simulated, believed, campaign_file
from iocast.planning.proposed import ALONE, Place, Proposed
from iocast.forecasts.answer import predict
from iocast.runs.run_directory import find_runs, group
from iocast.wording.calibration import plan_text

Iocast = Callable[..., CompletedProcess[str]]
TARGET, NEAR, FAR = Place(1, 256), Place(1, 8), Place(1, 64)


def ensemble(answer: dict[Place, tuple[np.ndarray, float]]) -> Ensemble:
    """One whose answers are these: log rates of each platform, and the variance of a measurement."""
    made = Ensemble.__new__(Ensemble)
    made.known = {
        place: Simulated(logs.reshape(-1, 1), np.array([variance])) for place, (logs, variance) in answer.items()
    }
    made.ask = lambda places: None  # type: ignore[method-assign]
    made.sized = True
    return made


@pytest.mark.parametrize("noise", [0.01, 0.3, 3.0])
def test_what_remains_is_that_of_normal_theory(noise: float) -> None:
    """Rate at the target scale z = a + b, at the measured one y = a + error: Var(z | y) = 1 + 1 - 1 / (1 + noise^2)
    when a and b have variance 1."""
    generator = np.random.default_rng(3)
    a, b = generator.standard_normal((2, 800))
    made = ensemble({TARGET: (a + b, 0.0), NEAR: (a, noise**2)})
    # A mean of 800 squares is within 3.9 sqrt(2 / 800) of its own once in 10,000 tries; the two fitted moments add 3 in
    # 800.
    assert made.spread(TARGET, []) ** 2 == pytest.approx(2, rel=0.2)
    assert made.spread(TARGET, [NEAR]) ** 2 == pytest.approx(2 - 1 / (1 + noise**2), rel=0.2)


def test_a_measurement_that_tells_nothing_is_not_proposed() -> None:
    generator = np.random.default_rng(4)
    z = generator.standard_normal(400)
    made = ensemble(
        {
            TARGET: (z, 0.0),
            ALONE: (np.zeros(400), 0.01),
            NEAR: (generator.standard_normal(400), 0.01),
            FAR: (z + 0.1 * generator.standard_normal(400), 0.01),
        }
    )
    best, other = Planner(made, TARGET, {}).proposals([NEAR, FAR])
    assert best.place == FAR and best.worth_it
    assert not other.worth_it
    # what remains: noise and scatter of variance 0.02 beside a variance of 1
    assert math.log(best.after) == pytest.approx(1.645 * math.sqrt(0.02 / 1.02), rel=0.15)


def test_measuring_further_out_lessens_the_models_own_error() -> None:
    fitted = {
        "campaign": {"ranks": [1, 4, 16]},
        "discrepancy": {"rate": 0.05},
        "discrepancy_growth": {"step": 4, "power": 1},
        "holdout": {"rows": []},
    }
    same = np.linspace(-1e-3, 1e-3, 50)
    made = ensemble({place: (same, 0.01) for place in (TARGET, ALONE, NEAR, FAR)})
    best, other = Planner(made, TARGET, fitted).proposals([NEAR, FAR])
    assert best.place == FAR
    # twice as far as the step before; half of that from 64 on
    assert math.log(other.after) == pytest.approx(2 * math.log(best.after), rel=0.02)


@pytest.mark.parametrize("family", mostly_long(["lustre", "beegfs"], ["lustre"], "lustre's is the same rule"))
def test_others_keep_few_servers_busy_in_all_that_is_believed_of_a_family(family: str, tmp_path: Path) -> None:
    """Or a simulation of a few thousand operations would hold millions of others."""
    recipe = read_recipe(family)
    limits = [
        station["servers"]
        for options in recipe.choices.values()
        for option in options
        if not option.unlimited
        for station in (option.edit.get("stations") or {}).values()
        if "servers" in station
    ]
    busy = []
    for seed in range(3):
        generator = np.random.default_rng(seed)
        for _ in range(BELIEFS):
            file = tmp_path / "believed.yaml"
            file.write_text(dump(believed(recipe, generator)))
            for work in binaries.resolve_platform(file).get("background", {}).values():
                busy.append(work["rate"] * work["demand"]["mean"])
    assert len(busy) > BELIEFS, "half of them have others, but where nobody waits"
    assert max(busy) < max(limits)


def test_candidates_go_over_nodes_first() -> None:
    assert [(p.nodes, p.ranks_per_node) for p in candidates(6, 3, factors=[0.0])] == [
        (1, 1),
        (2, 1),
        (4, 1),
        (6, 1),
        (6, 2),
        (6, 3),
    ]


def test_candidates_with_all_ranks_tell_apart_what_runs_show_together() -> None:
    def apart(settings: dict[str, str]) -> list[tuple[int, dict[str, str]]]:
        return [(p.ranks, dict(p.settings)) for p in candidates(2, 3, "md-workbench", settings) if p.settings]

    assert apart({}) == [(6, {"read_only": "true"}), (6, {"offset": "0"})]
    assert apart({"read_only": "true", "node_offset": "1"}) == [], "it reads only; the offset in nodes counts"
    assert apart({"offset": "0"}) == [(6, {"read_only": "true"})]


def test_a_place_with_settings_of_its_own_is_simulated_and_measured_with_them(tmp_path: Path) -> None:
    own = Place(2, 3, 0.0, (("offset", "0"),))
    made = ensemble({})
    made.settings, made._short, made._each = {"offset": "1", "datasets": "2"}, set(), 1.0
    assert made._settings(own) == {"offset": "0", "datasets": "2", "waiting_factor": "0"}
    proposed = [Proposed(place, 1.0, 2.0, 1.5) for place in (ALONE, own)]
    (tmp_path / "plan.yaml").write_text(
        campaign_file(proposed, TARGET, 1.0, 2, "md-workbench", {"datasets": 2}, "a test")
    )
    assert [dict(point.settings) for point in read_plan(str(tmp_path / "plan.yaml")).points] == [{}, {"offset": "0"}]


@pytest.mark.long("a whole campaign; the plan itself is tested always")
def test_a_plan_is_a_campaign(iocast: Iocast, tmp_path: Path) -> None:
    out = tmp_path / "plan.yaml"
    done = iocast(
        "plan",
        "--platform",
        "fuse",
        "--nodes",
        4,
        "--ppn",
        2,
        "--target",
        "100x2",
        "--budget",
        "5min",
        "--out",
        out,
        "--set",
        "datasets=2",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    printed, plan = json.loads(done.stdout), read_plan(str(out))
    assert plan.settings == {"datasets": "2"}
    source = yaml.safe_load(out.read_text())["source"]
    assert source.startswith("iocast plan --platform fuse") and "--set datasets=2" in source, "it can be planned again"
    placed = {(p.nodes, p.ranks_per_node) for p in plan.points}
    assert {(1, 1), (4, 2)} < placed, "one rank and all of them"
    assert len({p.nodes * p.ranks_per_node for p in plan.points if p.waiting_factor == 0}) >= 3
    assert printed["repeats"] * sum(point["seconds"] for point in printed["points"]) <= 300
    falling = [point["after"] for point in printed["points"] if point["purpose"] == "narrows"]
    assert falling == sorted(falling, reverse=True)


def test_a_calibration_says_what_to_measure_next(fitted: Path, iocast: Iocast, tmp_path: Path) -> None:
    known = yaml.safe_load(fitted.read_text())["fitted"]
    assert known["next"]["target"] == {"nodes": 1, "ranks_per_node": 32, "waiting_factor": 0.0}
    assert {run["ranks_per_node"] for run in known["next"]["runs"]} == {16}
    assert len(known["draw_structures"]) == len(known["draws"])
    out = tmp_path / "next.yaml"
    done = iocast("plan", "--platform", fitted, "--ppn", 16, "--target", "1x64", "--budget", "10min", "--out", out)
    assert done.returncode == (0 if out.exists() else 4), done.stderr
    assert out.exists() == ("Written to" in done.stdout)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--target", "many"], "'many' is no placement; write NODES or NODESxRANKS, such as 1000x10."),
        (["--budget", "3s", "--ppn", "8"], "the budget is 3 s."),
        (["--ppn", "2"], "at least three numbers of ranks"),
        (["--platform", "queue", "--ppn", "8"], "fitted to rates alone"),
        (["--platform", "locul"], "local"),
        (["--out", "plan"], "name a file such as plan.yaml"),
        (["--asked", "1x64"], "--target"),
        (["--workload", "md-workbensch", "--ppn", "8"], "md-workbench"),
        (["--workload", "mdtest-hard", "--ppn", "8"], "plan one that has both, such as md-workbench"),
        (["--workload", "postmark", "--ppn", "8"], "sized by iterations on as many objects"),
        (["--phase", "benchmarc", "--ppn", "8"], "benchmark"),
        (["--target", "100000x10", "--ppn", "8"], "1000000 ranks are too many to plan for"),
    ],
)
def test_what_cannot_be_planned(iocast: Iocast, tmp_path: Path, arguments: list[str], says: str) -> None:
    out = [] if "--out" in arguments else ["--out", tmp_path / "plan.yaml"]
    done = iocast("plan", *arguments, *out)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr.replace("\n", " ")
    assert not list(tmp_path.iterdir())


def test_places_beyond_lie_between(fitted: Path) -> None:
    platform = Fitted.open(str(fitted))
    assert {p.ranks for p in beyond(platform, Place(1, 64))} == {16, 32}
    assert beyond(platform, Place(1, 8)) == []


RATES = {1: 5420.0, 2: 12978.0, 4: 24672.0, 8: 38696.0}
"""Files made a second on the Lustre of Cirrus by nodes with 36 ranks each (examples/first-forecast/cirrus.csv)."""


def fitted_to(rates: dict[int, float], folder: Path) -> Path:
    """A platform fitted to these rates alone, as `iocast forecast` fits it."""
    folder.mkdir()
    lines = [f"{nodes},36,{rate},file-create,create" for nodes, rate in rates.items()]
    (folder / "rates.csv").write_text("\n".join(["nodes,ppn,rate,phase,operation", *lines]) + "\n")
    runs = import_files([folder / "rates.csv"], folder / "runs", None, {})
    points = group(find_runs(runs, "file-create")[0])
    (folder / "fitted.yaml").write_text(dump(calibrate(points, "queue", 0, lambda *_: None, None, None)))
    return folder / "fitted.yaml"


def test_a_promised_interval_is_that_of_the_forecast_with_such_a_run(iocast: Iocast, tmp_path: Path) -> None:
    """Whatever rate the proposed run measures within its own forecast's interval: of a full system, or of one that
    grows."""
    platform = fitted_to(RATES, tmp_path / "now")
    ask = ("plan", "--platform", platform, "--nodes", 16, "--target", "128x36", "--out", tmp_path / "plan.yaml")
    done = iocast(*ask, "--json")
    assert done.returncode == 4 and not (tmp_path / "plan.yaml").exists(), "no workload of iocast made these rates"
    (point,) = json.loads(done.stdout)["points"]
    assert (point["nodes"], point["ranks_per_node"], point["waiting_factor"]) == (16, 36, 0), "as the tool's own runs"
    place = predict(Fitted.open(str(platform)), None, {}, 16, 36)["quantities"]["rate"]
    now = predict(Fitted.open(str(platform)), None, {}, 128, 36)["quantities"]["rate"]
    assert point["before"] == pytest.approx(math.sqrt(now["high"] / now["low"]), rel=1e-6)
    low, high = point["between"]
    assert low < point["after"] < high < point["before"]
    for number, rate in enumerate((place["low"], place["value"], 53811.0, place["high"])):
        again = fitted_to(RATES | {16: rate}, tmp_path / str(number))
        then = predict(Fitted.open(str(again)), None, {}, 128, 36)["quantities"]["rate"]
        assert low / 1.1 < math.sqrt(then["high"] / then["low"]) < high * 1.1


def test_a_plan_for_a_fitted_platform_needs_the_nodes(iocast: Iocast, tmp_path: Path) -> None:
    platform, out = fitted_to(RATES, tmp_path / "now"), tmp_path / "plan.yaml"
    for given, words in (
        ([], "Name how many can be measured next with --nodes."),
        (["--ppn", 36], "on up to 8 nodes with 36 ranks each."),
        (["--nodes", 16, "--budget", "1h"], "--budget has no effect"),
        (["--nodes", 16, "--seed", 3], "--seed has no effect"),
    ):
        done = iocast("plan", "--platform", platform, *given, "--out", out)
        assert done.returncode == 2 and words in done.stderr.replace("\n", " "), done.stderr
    done = iocast("plan", "--platform", platform, "--nodes", 8, "--target", "128x36", "--out", out)
    assert done.returncode == 4 and "nothing is written" in done.stdout and not out.exists()


def test_a_workload_with_sizes_of_its_own_is_measured_with_those(
    simulate: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """mdtest's iterations are whole repeats: no pilot run decides them."""
    place, settings = Place(1, 4), {"items": "50"}
    with Simulations() as simulations:
        local = {"schema_version": 1, "extends": "local"}
        noise = dict.fromkeys(("rate", "q50", "q95"), 0.05)
        ensemble = Ensemble(simulations, [local], "mdtest", settings, "file-create", noise)
        ensemble.ask([place])
        run = simulate("local", "--workload", "mdtest", "--set", "items=50", "--ppn", "4")
        simulated = sum(phase["seconds"] for phase in run["phases"])
        assert simulated / 4 < ensemble.seconds(place, length=1000.0) - STARTUP < 4 * simulated
    plan = tmp_path / "plan.yaml"
    plan.write_text(campaign_file([Proposed(place, 2.5, 9.0, 2.0)], TARGET, None, 2, "mdtest", settings, "a test"))
    (point,) = dry_run(tmp_path, read_plan(str(plan)), tmp_path / "out", 0, backend=POSIX)["points"]
    assert point["runs"] == 2 and point["files"] == 4 * 50
    shown = plan_text(TARGET, [Proposed(place, 2.5, 9.0, 2.0)], 2, None, "plan.yaml")
    assert "with the settings of those that were measured: some 5 s in all" in shown


def test_only_a_forecast_made_again_promises_an_interval() -> None:
    """The spread of candidate platforms orders measurements; it is narrower than the next forecast's interval."""
    ordered = Proposed(NEAR, 12.0, 9.0, 2.0)
    again = Proposed(NEAR, None, 9.0, 2.0, between=(1.8, 2.5))
    assert "factor" not in ordered.text + plan_text(TARGET, [ordered], 2, 1.0, "plan.yaml")
    assert "a factor 1.8 to 2.5 either way" in again.text and "a factor 9.0" in again.text
    for rows, counts in (([again], False), ([again, again], True)):
        assert ("of those above it" in plan_text(TARGET, rows, 2, None, None)) == counts


def test_a_campaign_after_results_without_settings_says_so(iocast: Iocast, tmp_path: Path) -> None:
    for column, cell, known in (("", "", False), (",datasets", ",4", True)):
        place = tmp_path / str(known)
        place.mkdir()
        rows = [f"{nodes},36,{rate},md-workbench{cell}" for nodes, rate in RATES.items()]
        (place / "rates.csv").write_text("\n".join([f"nodes,ppn,rate,workload{column}", *rows, ""]))
        done = iocast("import", place / "rates.csv", "--out", place / "runs")
        assert done.returncode == 0, done.stderr
        runs = sorted((place / "runs").iterdir())
        done = iocast("calibrate", *runs, "--platform", "queue", "--out", place / "fitted.yaml")
        assert done.returncode == 0, done.stderr
        ask = ("plan", "--platform", place / "fitted.yaml", "--nodes", 16, "--target", "128x36")
        done = iocast(*ask, "--out", place / "plan.yaml")
        assert done.returncode == 0, done.stderr
        assert ("The results don't say with which settings md-workbench ran." in done.stdout) != known


@pytest.mark.parametrize(("target", "says"), [("1x", "'1x' is no placement"), ("16x36", "--nodes")])
def test_a_target_that_is_none_is_refused_before_nodes_are_wanted(
    target: str, says: str, iocast: Iocast, tmp_path: Path
) -> None:
    platform = fitted_to(RATES, tmp_path / "table")
    done = iocast("plan", "--platform", platform, "--target", target, "--out", tmp_path / "plan.yaml")
    assert done.returncode == 2 and says in done.stderr.replace("\n", " "), done.stderr

# SPDX-License-Identifier: Apache-2.0
"""Comparisons: false alarms as rare as stated, real changes found, thresholds and refusals."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sharpness
import test_report_phases as inputs
from programs import REPOSITORY
from scipy.stats import binom

import iocast as library
from iocast.changes import Side, Threshold
from iocast.compare import compare
from iocast.records.codes import notes_of
from iocast.records.note import Differs
from iocast.rules.significance import choose
from iocast.records.run import Phase, Summary
from iocast.errors import InputError
from iocast.wording.checked import comparison_text
from iocast.wording.notes import sentence
from iocast.importers import import_files

Iocast = Callable[..., CompletedProcess[str]]
ALPHA = 0.05
FALSE_ALARM = 1e-4  # of a test here, when the code is right


def written(directory: Path, repeats: list[dict[str, float]], **changes: Any) -> Path:
    """A run directory with a benchmark phase of these quantities for each repeat, and nothing else."""
    phases = []
    for number, values in enumerate(repeats, start=1):
        latency: dict[str, dict[str, float]] = {}
        for name, value in values.items():
            op, _, which = name.rpartition(".")
            if op:
                latency.setdefault(op, {"count": 1000})[which] = value
        phases.append(
            {
                "name": "benchmark",
                "repeat": number,
                "start_seconds": 0.0,
                "seconds": 1.0,
                "operations": 1000,
                "errors": 0,
                "rate": values["rate"],
                "latency": latency,
            }
        )
    directory.mkdir(parents=True)
    run = {
        "schema_version": 1, "kind": "run", "source": "bench", "status": "complete",
        "placement": {"ranks": 2, "nodes": 1, "ranks_per_node": 2},
        "workload": {"name": "w", "pattern": "w", "parameters": {"objects": 3}}, "phases": phases, **changes,
    }  # fmt: skip
    (directory / "run.json").write_text(json.dumps(run))
    (directory / "latency.hlog").write_text("")
    return directory


def runs_of(directory: Path, runs: list[list[dict[str, float]]], **changes: Any) -> Path:
    """A directory of run directories, each with its repeats."""
    for number, repeats in enumerate(runs):
        written(directory / f"r{number}", repeats, **changes)
    return directory


NAMES = [
    "rate",
    *(f"{op}.{q}" for op in ("create", "stat", "read", "unlink") for q in ("mean", "q50", "q75", "q95", "q99")),
]


def noisy(generator: np.random.Generator, repeats: int, **shifts: float) -> list[dict[str, float]]:
    """Repeats that share a good or a bad moment, as real ones do: correlated log-normal noise, heavier in the tail."""
    found = []
    for _ in range(repeats):
        moment = generator.standard_t(4)
        logs = {}
        for name in NAMES:
            own = (3 if name.endswith("q99") else 1) * generator.standard_normal()
            logs[name] = 0.05 * (moment * (-1 if name == "rate" else 1) + own) + shifts.get(name, 0.0)
        found.append({name: math.exp(log) for name, log in logs.items()})
    return found


def verdicts(answer: dict[str, Any]) -> dict[str, str]:
    return {row["quantity"]: row["verdict"] for row in answer["points"][0]["rows"]}


def test_runs_that_did_not_change_rarely_raise_an_alarm(tmp_path: Path) -> None:
    """Over 200 comparisons of 21 quantities each, at most as many alarms as a rate of 5 % explains."""
    generator, alarms, tries = np.random.default_rng(5), 0, 200
    for i in range(tries):
        a, b = (
            runs_of(tmp_path / f"{side}{i}", [[one] for one in noisy(generator, runs)])
            for side, runs in (("a", 5), ("b", 6))
        )
        alarms += any(v != "open" for v in verdicts(compare(a, b, alpha=ALPHA)).values())
    most = int(binom.ppf(1 - FALSE_ALARM, tries, ALPHA))
    sharpness.more_than("share of false alarms", most, tries)
    assert alarms <= most
    assert alarms > 0  # a test that never fires is no test; the chance of none is 0.95^200 = 4e-5


def test_runs_show_what_changed_and_only_that(tmp_path: Path) -> None:
    generator = np.random.default_rng(6)
    a = runs_of(tmp_path / "a", [[one] for one in noisy(generator, 8)])
    b = runs_of(
        tmp_path / "b", [[one] for one in noisy(generator, 8, rate=-0.8, **{"create.q50": 0.8, "create.q75": -0.8})]
    )
    answer = compare(a, b, fail_on=[Threshold.parse("30%")])
    printed = verdicts(answer)
    assert (printed["rate"], printed["create.q50"], printed["create.q75"]) == ("worse", "worse", "better")
    assert (
        answer["points"][0]["method"] == "runs"
        and answer["failed"]
        and answer["points"][0]["failed"] == ["rate", "create.q50"]
    )
    assert compare(a, b, fail_on=[Threshold.parse("70%")])["points"][0]["failed"] != ["rate"]
    rows = {row["quantity"]: row for row in answer["points"][0]["rows"]}
    assert rows["rate"]["low"] < math.exp(-0.8) < rows["rate"]["high"] and rows["rate"]["cliffs_delta"] == -1
    assert sum(v != "open" for v in printed.values()) <= 4  # three, and one false alarm at most


def test_a_clear_change_is_found_with_as_few_runs_as_tell_it(tmp_path: Path) -> None:
    generator = np.random.default_rng(7)
    shifts = dict.fromkeys(NAMES, 4.0)
    for runs, method in ((4, "runs"), (3, "few runs"), (2, "few runs")):
        a, b = (
            runs_of(tmp_path / f"{side}{runs}", [[one] for one in noisy(generator, runs, **more)])
            for side, more in (("a", {}), ("b", shifts))
        )
        answer = compare(a, b)
        assert answer["points"][0]["method"] == method and answer["points"][0]["runs"] == [runs, runs]
        assert (
            set(verdicts(answer).values()) == {"better", "worse"} or runs == 2 and "worse" in verdicts(answer).values()
        )


@pytest.mark.parametrize(("apart", "verdict"), [(0.1, "open"), (2.0, "unknown")])
def test_runs_that_differ_a_hundredfold_are_not_called_the_same(
    apart: float, verdict: str, iocast: Iocast, tmp_path: Path
) -> None:
    """Two runs a side, of which one is faster by this factor's logarithm; neither side is the better one."""
    generator = np.random.default_rng(8)
    shifts = dict.fromkeys(NAMES, apart)
    a, b = (
        runs_of(tmp_path / side, [[one] for more in ({}, shifts) for one in noisy(generator, 1, **more)])
        for side in "ab"
    )
    assert verdicts(compare(a, b, fail_on=[Threshold.parse("rate=10%")]))["rate"] == verdict
    done = iocast("compare", a, b, "--fail-on", "rate=10%")
    assert done.returncode == 4 and done.stdout.startswith("UNDECIDED: rate may be worse by up to "), done.stdout
    assert ("by up to any amount" in done.stdout) == ("No change of the rate" in done.stdout) == (verdict == "unknown")


@pytest.mark.parametrize("runs", [2, 4, 6])
def test_a_gate_passes_only_what_it_could_have_seen(runs: int, tmp_path: Path) -> None:
    """Over 60 pairs of sides whose rates truly differ by up to 15 %, and thresholds between: what is "within" has its
    whole interval there, what is "worse" lies beyond noise, and an interval has no change in it exactly where the
    verdict says that none was shown. A threshold of one quantity isn't judged by the noise of twenty others."""
    generator = np.random.default_rng(runs)
    seen, passed_wrongly = set(), 0
    for i in range(60):
        true, limit = generator.uniform(0, 0.15), generator.choice([0.02, 0.1, 0.3])
        a, b = (
            runs_of(
                tmp_path / f"{side}{i}",
                [[{"rate": 1000 * math.exp(0.02 * generator.standard_normal()) * (1 - loss)} | {
                    f"stat.{q}": math.exp(0.3 * generator.standard_normal()) for q in ("mean", "q50", "q99")
                }] for _ in range(runs)],
            )
            for side, loss in (("a", 0.0), ("b", true))
        )  # fmt: skip
        answer = compare(a, b, fail_on=[Threshold(limit, "rate")])
        for row in answer["points"][0]["rows"]:
            shown = row["verdict"] in ("worse", "better")
            assert row["low"] >= 1 or row["high"] <= 1 if shown else row["low"] <= 1 <= row["high"], row
            assert (row["judged"] is None) == (row["quantity"] != "rate")
        rate = answer["points"][0]["rows"][0]
        seen.add(rate["judged"])
        if rate["judged"] == "within":
            assert 1 - rate["low"] <= limit
            passed_wrongly += true > limit
        assert (rate["judged"] == "worse") == (rate["verdict"] == "worse" and 1 - rate["ratio"] > limit)
        assert answer["failed"] == (rate["judged"] == "worse")
        assert answer["undecided"] == (rate["judged"] == "undecided")
    assert seen == {"worse", "within", "undecided"}
    most = int(binom.ppf(1 - FALSE_ALARM, 60, ALPHA))
    sharpness.more_than("share of losses beyond the threshold that pass", most, 60)
    assert passed_wrongly <= most


def test_the_nearest_threshold_counts(tmp_path: Path) -> None:
    """One of a quantity before one of its kind, and that before one for all."""
    generator = np.random.default_rng(3)
    a, b = (
        runs_of(tmp_path / side, [[one] for one in noisy(generator, 4, **{"create.q99": more})])
        for side, more in (("a", 0.0), ("b", 3.0))
    )
    thresholds = [Threshold.parse(text) for text in ("10%", "q99=40%", "create.q99=5000%")]
    rows = {row["quantity"]: row["threshold"] for row in compare(a, b, fail_on=thresholds)["points"][0]["rows"]}
    assert (rows["create.q99"], rows["stat.q99"], rows["stat.q50"]) == (50.0, 0.4, 0.1)


def test_one_run_a_side_says_what_cannot_be_known(tmp_path: Path) -> None:
    """With repeats within it, by an assumed noise between runs; with too few of them not at all; simulated runs have
    none."""
    generator = np.random.default_rng(7)
    shifts = dict.fromkeys(NAMES, 2.0)
    for repeats, source, method, between in (
        (4, "bench", "repeats", 0.05),
        (4, "simulated", "repeats", None),
        (3, "bench", "none", None),
    ):
        a, b = (
            written(tmp_path / f"{side}{repeats}{source}", noisy(generator, repeats, **more), source=source)
            for side, more in (("a", {}), ("b", shifts))
        )
        answer = compare(a, b)
        point = answer["points"][0]
        assert (point["method"], point["assumed_between_runs"]) == (method, between)
        assert ("can't be known" in point["how"]) is (source == "bench"), point["how"]
        assert set(verdicts(answer).values()) == ({"better", "worse"} if repeats == 4 else {"unknown"})


@pytest.mark.parametrize(
    ("runs", "repeats", "between"),
    [(1, 4, 0.0), (1, 4, 0.02), (1, 4, 0.05), (2, 3, 0.02), (2, 3, 0.05), (3, 3, 0.05), (4, 3, 0.05)],
)
def test_false_alarms_are_as_rare_as_stated_whatever_runs_differ_by(runs: int, repeats: int, between: float) -> None:
    """An unchanged system whose runs differ by `between` and repeats within them by 1 %: as many alarms as a rate of 5
    % explains. Where one run a side leaves the noise between runs to an assumption, that is the largest here."""
    generator, alarms, tries = np.random.default_rng(1), 0, 150

    def side(name: str) -> Side:
        made = []
        for _ in range(runs):
            level = generator.normal(0, between)
            values = np.exp(
                np.r_[7 + level, np.full(5, -7 - level)][None] + 0.01 * generator.standard_normal((repeats, 6))
            )
            quantities = ("mean", "q50", "q75", "q95", "q99")
            phases = [
                Phase(
                    "benchmark",
                    0,
                    None,
                    None,
                    None,
                    v[0],
                    {"stat": Summary(count=9, **dict(zip(quantities, v[1:], strict=True)))},
                )  # fmt: skip
                for v in values.tolist()
            ]
            made.append(SimpleNamespace(phases=phases, record=SimpleNamespace(source="bench")))
        return Side(name, made)  # type: ignore[arg-type]

    for _ in range(tries):
        alarms += any(
            change.adjusted is not None and change.adjusted < ALPHA
            for change in choose(side("a"), side("b"), ALPHA, 0).changes
        )
    most = int(binom.ppf(1 - FALSE_ALARM, tries, ALPHA))
    sharpness.more_than("share of false alarms", most, tries)
    assert alarms <= most, alarms


def test_turns_of_an_application_are_no_repeats(tmp_path: Path) -> None:
    """Phases of one name that remove 100,000 files and then 1,000 differ by what they do: that is no noise."""
    generator = np.random.default_rng(3)
    a = written(tmp_path / "a", noisy(generator, 4))
    document = json.loads((a / "run.json").read_text())
    for number, phase in enumerate(document["phases"]):
        for reported in phase["latency"].values():
            reported["count"] = 10 ** (2 + number)
    (a / "run.json").write_text(json.dumps(document))
    assert compare(a, a)["points"][0]["method"] == "none"


TURNS = """schema_version: 1
description: two kinds of files, removed in phases of one name
pattern: application
application:
  files: {small: {per: process, count: 40}, large: {per: process, count: 2}}
  phases:
    - {name: write-small, file: small, operation: write, size: 1KiB, requests: 1}
    - {name: write-large, file: large, operation: write, size: 1KiB, requests: 1}
    - {name: remove-old, file: small, operation: remove}
    - {name: remove-old, file: large, operation: remove}
    - {name: again, repeat: 3, file: small, operation: write, size: 1KiB, requests: 1}
"""


def test_a_run_pools_no_different_operations_as_repeats(simulate: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "turns.yaml").write_text(TURNS)
    run = simulate("lustre", "--workload", tmp_path / "turns.yaml", "--nodes", "2", "--ppn", "2")
    assert [phase["name"] for phase in run["phases"]].count("remove-old") == 2
    assert set(run["repeats"]) == {"again"} and run["repeats"]["again"]["count"] == 3


def test_operations_outside_of_the_steady_part_are_left_out(simulate: Callable[..., Any], tmp_path: Path) -> None:
    """Each rank synchronizes and closes its file once, at the end: none of these is in the intervals compared."""
    small = ("--workload", "ior-easy", "--nodes", "4", "--ppn", "4", "--set", "per_process=1GiB")
    for seed in (1, 2):
        simulate("lustre", *small, "--seed", str(seed), "--out", tmp_path / str(seed))
    answer = compare(tmp_path / "1", tmp_path / "2")
    assert answer["points"][0]["method"] == "intervals"
    rows = {row["quantity"]: row for row in answer["points"][0]["rows"]}
    assert "steady part" in rows["fsync.mean"]["why_not"] and rows["fsync.mean"]["verdict"] == "unknown"
    assert rows["rate"]["verdict"] == rows["pwrite.mean"]["verdict"] == "open"


MEASURED = ("--set", "datasets=1", "--set", "objects=1500", "--set", "iterations=1500", "--ppn", "4")


@pytest.mark.long("false alarms of several runs are counted always")
def test_intervals_of_unchanged_runs_rarely_raise_an_alarm(simulate: Callable[..., Any], tmp_path: Path) -> None:
    """Ten pairs of simulated runs of one platform, with seeds of their own."""
    tries = 10
    for seed in range(2 * tries):
        simulate("lustre", *MEASURED, "--seed", str(seed), "--out", tmp_path / str(seed))
    alarms = 0
    for i in range(tries):
        answer = compare(tmp_path / str(2 * i), tmp_path / str(2 * i + 1))
        assert answer["points"][0]["method"] == "intervals"
        alarms += any(v in ("better", "worse") for v in verdicts(answer).values())
    most = int(binom.ppf(1 - FALSE_ALARM, tries, ALPHA))
    sharpness.more_than("share of false alarms", most, tries)
    assert alarms <= most


def test_intervals_show_a_slower_operation(simulate: Callable[..., Any], iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "slower.yaml").write_text(
        "schema_version: 1\nextends: lustre\ndemands: {remove: {law: lognormal, mean: 195us, sigma: 0.5}}\n"
    )
    simulate("lustre", *MEASURED, "--seed", "1", "--out", tmp_path / "a")
    simulate(tmp_path / "slower.yaml", *MEASURED, "--seed", "2", "--out", tmp_path / "b")
    done = iocast(
        "compare", tmp_path / "a", tmp_path / "b", "--fail-on", "unlink.q50=10%", "--out", tmp_path / "c.json", "--json"
    )
    assert done.returncode == 4, done.stderr
    answer = json.loads(done.stdout)
    assert answer == json.loads((tmp_path / "c.json").read_text()) and answer["kind"] == "comparison"
    printed = verdicts(answer)
    assert printed["unlink.q50"] == "worse" and printed["unlink.mean"] == "worse" and printed["stat.q50"] == "open"
    (row,) = [r for r in answer["points"][0]["rows"] if r["quantity"] == "unlink.q50"]
    assert (
        1.05 < row["low"] < row["ratio"] < row["high"] < 195 / 150
    )  # the demand grew by 30 %, and is not all of the response
    assert answer["points"][0]["failed"] == ["unlink.q50"]
    done = iocast("compare", tmp_path / "a", tmp_path / "b", "--fail-on", "unlink.q50=40%")
    assert done.returncode == 0 and done.stdout.startswith("Within the threshold: unlink.q50 +")
    assert re.search(r"Worse, without a threshold: .*unlink\.mean \+", done.stdout)
    # The other way round it is better, which fails nothing.
    assert iocast("compare", tmp_path / "b", tmp_path / "a", "--fail-on", "unlink.q50=0%").returncode == 0


def test_campaigns_are_compared_point_by_point(tmp_path: Path) -> None:
    generator = np.random.default_rng(8)
    for side, shift in (("before", 0.0), ("after", -5.0)):
        points = []
        for ranks in (1, 2) if side == "before" else (2, 3):
            for repeat in (1, 2):
                name = f"n{ranks}-{repeat}"
                shifts = {"rate": shift}
                written(
                    tmp_path / side / "runs" / name,
                    noisy(generator, 2, **shifts),
                    placement={"ranks": ranks, "nodes": 1, "ranks_per_node": ranks},
                )
                points.append(
                    {
                        "name": name,
                        "status": "complete",
                        "role": "fit",
                        "nodes": 1,
                        "ranks_per_node": ranks,
                        "settings": {},
                    }
                )
        (tmp_path / side / "campaign.json").write_text(
            json.dumps({"schema_version": 1, "kind": "campaign", "points": points})
        )
    answer = compare(tmp_path / "before", tmp_path / "after")
    assert [p["ranks"] for p in answer["points"]] == [2] and answer["points"][0]["repeats"] == [4, 4]
    assert answer["points"][0]["runs"] == [2, 2] and answer["points"][0]["method"] == "few runs"
    assert verdicts(answer)["rate"] == "worse" and "2 measurements of only one side" in answer["warnings"][0]


@pytest.mark.parametrize("pilot", [True, False])
def test_campaigns_sized_by_time_are_compared_whatever_their_lengths(pilot: bool, tmp_path: Path) -> None:
    """A faster system is given more operations; without a pilot run the lengths are what the plan asks for."""
    generator = np.random.default_rng(4)
    for side, length in (("before", 3680), ("after", 3020)):
        points = []
        for ranks in (1, 2):
            written(
                tmp_path / side / "runs" / f"n{ranks}",
                noisy(generator, 2),
                placement={"ranks": ranks, "nodes": 1, "ranks_per_node": ranks},
                workload={"name": "w", "pattern": "w", "parameters": {"iterations": length * ranks, "size": 1}},
            )
            points.append(
                {"name": f"n{ranks}", "status": "complete", "role": "fit", "nodes": 1, "ranks_per_node": ranks}
                | {"settings": {}}
            )
        campaign: dict[str, Any] = {"schema_version": 1, "kind": "campaign", "points": points}
        campaign |= {"pilot": {"rate": 1.0, "datasets": 1}} if pilot else {}
        (tmp_path / side / "campaign.json").write_text(json.dumps(campaign))
    if not pilot:
        with pytest.raises(InputError, match=r"nearest two: The parameter iterations differs: 3680 and 3020"):
            compare(tmp_path / "before", tmp_path / "after")
        return
    answer = compare(tmp_path / "before", tmp_path / "after")
    assert [point["ranks"] for point in answer["points"]] == [1, 2] and not answer["warnings"]
    assert answer["points"][0]["warnings"] == ["The parameter iterations differs: 3680 and 3020."]


def test_what_one_run_does_not_state_is_named_so(tmp_path: Path) -> None:
    generator = np.random.default_rng(9)
    a = written(tmp_path / "a", noisy(generator, 4))
    place = {"ranks": 2, "nodes": None, "ranks_per_node": None}
    b = written(
        tmp_path / "b", noisy(generator, 4), placement=place, workload={"name": "w", "pattern": "w", "parameters": {}}
    )
    notes = compare(a, b)["points"][0]["warnings"]
    assert "The parameter objects differs: 3 and not stated." in notes
    assert "The number of nodes differs: 1 and not stated." in notes
    found = library.compare(a, b)
    assert [sentence(one) for one in found.cautions] == notes
    assert (
        Differs("parameter", "objects", "3") in found.cautions and Differs("number of", "nodes", "1") in found.cautions
    )
    read = json.loads(json.dumps(found.document()))
    assert [list(notes_of(point)) for point in read["points"]] == [found.cautions]
    del read["points"][0]["cautions"]  # as older files have it
    assert [sentence(one) for one in notes_of(read["points"][0])] == notes


def test_refusals(iocast: Iocast, tmp_path: Path) -> None:
    generator = np.random.default_rng(9)
    a = written(tmp_path / "a", noisy(generator, 4))
    b = written(tmp_path / "b", noisy(generator, 4), workload={"name": "v", "pattern": "v", "parameters": {}})
    c = written(
        tmp_path / "c", noisy(generator, 4), workload={"name": "w", "pattern": "w", "parameters": {"objects": 4}}
    )
    with pytest.raises(InputError, match="no measurements of the same thing"):
        compare(a, b)
    assert compare(a, c)["points"][0]["warnings"] == ["The parameter objects differs: 3 and 4."]
    with pytest.raises(InputError, match="Did you mean 'create.q99'"):
        compare(a, a, fail_on=[Threshold.parse("creat.q99=10%")])
    for text in ("ten", "-5%", "rate=", "nan"):
        with pytest.raises(InputError, match="no threshold"):
            Threshold.parse(text)
    (tmp_path / "empty").mkdir()
    done = iocast("compare", a, tmp_path / "empty")
    assert done.returncode == 2 and "no run directory" in done.stderr


def test_imported_runs_are_compared_as_far_as_they_tell(tmp_path: Path) -> None:
    sample = REPOSITORY / "tests" / "samples" / "fio" / "two-groups.json"
    run, _ = import_files([sample], tmp_path / "run")
    point = compare(run, run)["points"][0]
    assert (
        point["method"] == "none"
        and {row["verdict"] for row in point["rows"]} == {"unknown"}
        and {row["ratio"] for row in point["rows"]} == {1.0}
    )


@pytest.mark.parametrize("unit", ["operations", "MB/s"])
def test_a_threshold_that_nothing_can_be_tested_against_does_not_pass(
    unit: str, iocast: Iocast, tmp_path: Path
) -> None:
    """Half of the rate is lost between two single runs: whether that is noise nobody knows, so exit 0 would mislead."""
    for name, rate in (("before", 2000), ("after", 1000)):
        (tmp_path / f"{name}.csv").write_text(f"nodes,ppn,rate,unit\n1,4,{rate},{unit}\n")
        assert iocast("import", tmp_path / f"{name}.csv", "--out", tmp_path / name).returncode == 0
    sides = (tmp_path / "before", tmp_path / "after")
    plain = iocast("compare", *sides)
    assert plain.returncode == 0 and "-50 %" in plain.stdout
    assert ("2.00 GB/s" if unit == "MB/s" else "2.00 k/s") in plain.stdout
    done = iocast("compare", *sides, "--fail-on", "10%")
    assert done.returncode == 4 and done.stdout.startswith("UNDECIDED: rate: not tested.")


def test_the_phase_that_is_compared_is_the_one_of_reports(tmp_path: Path) -> None:
    """Neither set-up, however many operations it has, nor the benchmark of runs that have none."""
    counts = {"tree-create": 9000, "file-create": 900, "file-stat": 500}
    sides = []
    for name in ("a", "b"):
        for number in (1, 2):
            inputs.run(tmp_path / name / f"r{number}", 32, list(counts), operations=counts)
        sides.append(tmp_path / name)
    assert [point["phase"] for point in compare(*sides)["points"]] == ["file-create"]
    assert [point["phase"] for point in compare(*(side / "r1" for side in sides))["points"]] == ["file-create"]


def test_accelerators_are_compared(tmp_path: Path) -> None:
    """Utilisation and samples that fall are worse, and so is a stall that grows; a threshold may name them."""
    names = ("utilisation_after_first_step", "samples_per_second", "bytes_per_second", "stall_share")
    for side, values in (("a", (0.95, 100.0, 2e9, 0.05)), ("b", (0.80, 84.0, 1.7e9, 0.2))):
        for number in range(4):
            run = written(tmp_path / side / f"r{number}", [{"rate": 100.0 + number}])
            document = json.loads((run / "run.json").read_text())
            of = {name: value * (1 + 0.001 * number) for name, value in zip(names, values, strict=True)}
            document["phases"][0]["accelerators"] = {"count": 2} | of
            (run / "run.json").write_text(json.dumps(document))
    answer = compare(tmp_path / "a", tmp_path / "b", fail_on=[Threshold.parse("au=5%")])
    found = verdicts(answer)
    assert [found[name] for name in ("au", "samples", "accelerator_bandwidth", "stall_share")] == ["worse"] * 4
    assert answer["points"][0]["failed"] == ["au"] and found["rate"] == "open"
    assert re.search(r"^au +95\.1 % +80\.1 %", comparison_text(answer), re.MULTILINE)
    back = compare(tmp_path / "b", tmp_path / "a", fail_on=[Threshold.parse("au=5%")])
    assert verdicts(back)["au"] == verdicts(back)["stall_share"] == "better" and not back["failed"]

# SPDX-License-Identifier: Apache-2.0
"""Studies: the decision and its reasons, what an edit costs, resuming, workers that come and go."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from distributed.security import Security
from programs import REPOSITORY
from study_inputs import SMALL, changed, write

from iocast.report.sources import read_sources
from iocast.report.story import tell
from iocast.study import amounts
from iocast.study import words
from iocast.study.compare import _conclusion, _rows

Iocast = Callable[..., CompletedProcess[str]]


def answered(done: CompletedProcess[str], code: int = 0) -> dict[str, Any]:
    assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr[-3000:])
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def small(iocast: Iocast, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A study's directory and its answer."""
    directory = tmp_path_factory.mktemp("study")
    file = write(directory, SMALL)
    return directory, answered(iocast("study", file, "--out", directory / "answer", "--workers", "1", "--json"))


def without_counts(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer without what depends on where and how often it was computed."""
    answer = json.loads(json.dumps(answer))
    answer["search"] = {k: v for k, v in answer["search"].items() if k not in ("computed", "found")}
    return {k: v for k, v in answer.items() if k not in ("command", "file")}


def test_the_decision_is_the_cheapest_design_that_keeps_every_level(small: tuple[Path, dict[str, Any]]) -> None:
    _, reported = small
    designs = {d["id"]: d for d in reported["designs"]}
    assert len(designs) == 6 and reported["kind"] == "study"
    for d in designs.values():
        cores = {"one": 1, "two": 2, "four": 4}[d["values"]["servers"]]
        assert d["cost"] == 5000 + 1000 * cores + (900 if d["values"]["speed"] == "fast" else 0)
        assert d["watts"] == 50 * cores and d["rack_units"] == 2
        assert 0 <= d["probability"] <= 1 and d["basis"] == "simulated"
        assert d["meets"] == (d["probability"] >= 0.9)
        # All levels together can't be likelier than one of them.
        assert d["probability"] <= min(c["probability"] for c in d["levels"]) + 1e-9
    keeping = [d for d in designs.values() if d["meets"]]
    missing = [d for d in designs.values() if not d["meets"]]
    assert keeping and missing, "the small study must have both"
    assert reported["decision"]["id"] == min(keeping, key=lambda d: d["cost"])["id"]
    assert reported["confidence"] == designs[reported["decision"]["id"]]["probability"]
    for d in missing:
        failing = d["first_failing"]
        assert failing["level"] in SMALL["levels"] and (failing["why"]["station"] or failing["why"]["text"])
        row = next(c for c in d["levels"] if (c["level"], c["scale"]) == (failing["level"], failing["scale"]))
        assert row["probability"] < 0.9
    assert {level["level"] for level in reported["levels"]} == set(SMALL["levels"])
    for level in reported["levels"]:
        fails = [
            any(c["probability"] < 0.9 for c in d["levels"] if c["level"] == level["level"]) for d in designs.values()
        ]
        assert level["rules_out"] == pytest.approx(sum(fails) / 6)


def test_forecasts_are_the_simulators(
    small: tuple[Path, dict[str, Any]], simulate: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """The number beside a level is what iocast-sim says of the edited platform, run by hand with three seeds."""
    _, reported = small
    design = next(d for d in reported["designs"] if d["values"] == {"servers": "two", "speed": "fast"})
    (tmp_path / "p.yaml").write_text("{schema_version: 1, extends: lustre, stations: {mds: {servers: 2, speed: 1.5}}}")
    settings = ["--set", "datasets=2", "--set", "objects=20", "--set", "iterations=20", "--set", "phases=benchmark"]
    place = ["--nodes", "16", "--ppn", "4"]
    runs = [simulate(tmp_path / "p.yaml", *settings, *place, "--seed", seed) for seed in (0, 1, 2)]
    phases = [run["phases"][-1] for run in runs]

    def mean(of: Callable[[Any], float]) -> float:
        return math.exp(sum(math.log(of(phase)) for phase in phases) / len(phases))

    rate_level = next(c for c in design["levels"] if c["quantity"] == "create.rate" and c["scale"] == "many")
    rate = mean(lambda phase: phase["latency"]["create"]["count"] / phase["seconds"])
    assert rate_level["value"] == pytest.approx(rate, rel=1e-6)
    tail_level = next(c for c in design["levels"] if c["quantity"] == "stat.q95" and c["scale"] == "many")
    assert tail_level["value"] == pytest.approx(mean(lambda phase: phase["latency"]["stat"]["q95"]), rel=1e-6)
    assert tail_level["low"] < tail_level["value"] < tail_level["high"]


def test_no_design_beats_one_of_the_front_in_everything(small: tuple[Path, dict[str, Any]]) -> None:
    _, reported = small
    designs = {d["id"]: d for d in reported["designs"]}
    assert reported["front"]
    for name in reported["front"]:
        a = designs[name]
        for b in designs.values():
            better = b["cost"] <= a["cost"] and b["rate"] > 1.02 * a["rate"] and b["tail"] < 0.98 * a["tail"]
            assert not better, (a["name"], b["name"])


def test_designs_break_where_their_curves_cross_the_level(small: tuple[Path, dict[str, Any]]) -> None:
    """A design that misses a response time inside the study breaks inside it; one that keeps all does not."""
    _, reported = small
    scales = {s["name"]: s["ranks"] for s in reported["scales"]}
    for d in reported["designs"]:
        end = d["breaks_at"]
        inside = [c for c in d["levels"] if c["quantity"] == "stat.q95" and c["margin"] < 1]
        if inside:
            assert end["ranks"] <= scales[inside[0]["scale"]]
        if all(c["margin"] > 1 for c in d["levels"]):
            assert end["ranks"] is None or end["ranks"] > scales["few"]


def test_a_repeated_study_computes_nothing_and_an_edited_price_changes_the_answer(
    small: tuple[Path, dict[str, Any]], iocast: Iocast, tmp_path: Path
) -> None:
    directory, reported = small
    again = answered(
        iocast("study", directory / "study.yaml", "--out", directory / "answer", "--workers", "1", "--json")
    )
    assert again["search"]["computed"] == 0
    assert without_counts(again) == without_counts(reported)
    # The decision's own part becomes very dear: what was second is first, and not one simulation more.
    dear = "fast" if reported["decision"]["values"]["speed"] == "fast" else "core"
    parts = {**SMALL["parts"], dear: {"price": 50_000, "source": "made up"}}
    file = write(tmp_path, changed(parts=parts))
    edited = answered(iocast("study", file, "--out", directory / "answer", "--workers", "1", "--json"))
    holds = [d for d in edited["designs"] if d["meets"]]
    assert edited["decision"]["id"] == min(holds, key=lambda d: d["cost"])["id"]
    if dear == "fast":
        assert edited["decision"]["values"]["speed"] == "plain"
    assert edited["search"]["computed"] == 0 or edited["decision"]["id"] != reported["decision"]["id"]
    restored = answered(
        iocast("study", directory / "study.yaml", "--out", directory / "answer", "--workers", "1", "--json")
    )
    assert restored["decision"] == reported["decision"]


def test_known_results_are_printed_before_more_is_computed(
    small: tuple[Path, dict[str, Any]], iocast: Iocast, tmp_path: Path
) -> None:
    """One value more on an axis: what the designs of before say comes first, then the whole answer."""
    directory, reported = small
    shutil.copytree(directory / "answer", tmp_path / "answer")
    axes = {
        **SMALL["axes"],
        "servers": {**SMALL["axes"]["servers"], "eight": {"edit": {"stations.mds.servers": 8}, "parts": {"core": 8}}},
    }
    file = write(tmp_path, changed(axes=axes))
    done = iocast("study", file, "--out", tmp_path / "answer", "--workers", "1", "--json")
    assert answered(done)["search"]["simulated"] == 8
    (line,) = [line for line in done.stderr.splitlines() if "earlier runs" in line]
    assert f"“{reported['decision']['name']}” for" in line and "6 designs simulated so far" in line
    assert done.stderr.index(line) < done.stderr.index("simulating designs")
    assert "earlier runs" not in iocast("study", file, "--out", tmp_path / "answer", "--json").stderr, (
        "nothing was left to compute"
    )


def test_an_interrupted_study_goes_on_where_it_was_whoever_computes(
    small: tuple[Path, dict[str, Any]], simulator: Path, iocast: Iocast, tmp_path: Path
) -> None:
    """One process begins, two go on: the answer's bytes are those of one."""
    file = write(tmp_path, SMALL)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "IOCAST_BUILD": str(simulator.parents[1])}
    command = [
        sys.executable,
        "-c",
        "from iocast.cli import main; main()",
        "study",
        str(file),
        "--out",
        str(tmp_path / "answer"),
        "--workers",
        "1",
    ]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    memory = tmp_path / "answer" / "evaluations.sqlite-wal"
    until = time.monotonic() + 120
    while not (memory.is_file() and memory.stat().st_size > 60_000):
        assert time.monotonic() < until and process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, printed = process.communicate(timeout=120)
    assert process.returncode == 1 and printed.strip().endswith(
        "iocast: Interrupted; what was measured or computed is kept, and the same command continues from there."
    )
    assert not (tmp_path / "answer" / "study.json").exists()
    reported = answered(iocast("study", file, "--out", tmp_path / "answer", "--workers", "2", "--json"))
    assert reported["search"]["found"] > 8, "nothing of the first run was used"
    assert json.dumps(without_counts(reported)) == json.dumps(without_counts(small[1]))


def test_no_interrupt_is_lost() -> None:
    """Python drops those that come while an object is thrown away."""
    program = """
import os, signal, time
from iocast.ground.progress import keep_interrupts
class Thrown:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
keep_interrupts()
Thrown()
time.sleep(3600)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert done.stderr.count("KeyboardInterrupt") == 1


@pytest.fixture
def cluster(simulator: Path, tmp_path: Path) -> Iterator[tuple[list[str], list[subprocess.Popen[bytes]]]]:
    """A Dask scheduler and two workers without anybody who would restart them: options that name it, worker
    processes."""
    own = Security.temporary()
    secret = tmp_path / "secret.pem"
    secret.touch(0o600)
    secret.write_text(f"{own.tls_scheduler_key}{own.tls_scheduler_cert}")
    tls = ["--tls-ca-file", str(secret), "--tls-cert", str(secret), "--tls-key", str(secret)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "IOCAST_BUILD": str(simulator.parents[1])}
    dask = [
        sys.executable,
        "-m",
        "distributed.cli.dask_scheduler",
        "--protocol",
        "tls",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--no-dashboard",
        "--scheduler-file",
        str(tmp_path / "scheduler.json"),
        *tls,
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment, "cwd": tmp_path}
    scheduler = subprocess.Popen(dask, **quiet)
    until = time.monotonic() + 120
    while not (tmp_path / "scheduler.json").is_file():
        assert time.monotonic() < until and scheduler.poll() is None
        time.sleep(0.05)
    address = json.loads((tmp_path / "scheduler.json").read_text())["address"]
    one = [
        sys.executable,
        "-m",
        "distributed.cli.dask_worker",
        address,
        "--nthreads",
        "1",
        "--no-nanny",
        "--no-dashboard",
        *tls,
    ]
    workers = [subprocess.Popen(one, **quiet) for _ in range(2)]
    yield ["--scheduler", address, "--scheduler-secret", str(secret)], workers
    for process in (*workers, scheduler):
        process.kill()
        process.wait()


@pytest.mark.long("a study with workers; lost workers have tests of their own")
def test_a_lost_worker_costs_only_its_task(
    small: tuple[Path, dict[str, Any]],
    cluster: tuple[list[str], list[subprocess.Popen[bytes]]],
    simulator: Path,
    tmp_path: Path,
) -> None:
    named, workers = cluster
    file = write(tmp_path, SMALL)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "IOCAST_BUILD": str(simulator.parents[1])}
    command = [
        sys.executable,
        "-c",
        "from iocast.cli import main; main()",
        "study",
        str(file),
        "--out",
        str(tmp_path / "answer"),
        *named,
        "--json",
    ]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    memory = tmp_path / "answer" / "evaluations.sqlite-wal"
    until = time.monotonic() + 120
    while not (memory.is_file() and memory.stat().st_size > 80_000):
        assert time.monotonic() < until and process.poll() is None, process.communicate()
        time.sleep(0.02)
    workers[0].kill()
    out, printed = process.communicate(timeout=240)
    assert process.returncode == 0, printed[-3000:]
    assert workers[0].wait() == -signal.SIGKILL and workers[1].poll() is None
    assert json.dumps(without_counts(json.loads(out))) == json.dumps(without_counts(small[1]))


def test_nobody_meets_impossible_levels_and_the_answer_says_who_comes_nearest(
    small: tuple[Path, dict[str, Any]], iocast: Iocast, tmp_path: Path
) -> None:
    directory, _ = small
    file = write(tmp_path, changed(levels=["rate(create) >= 200k/s", "p95(stat) < 8 ms"]))
    reported = answered(iocast("study", file, "--out", directory / "answer", "--workers", "1", "--json"), code=4)
    assert reported["decision"] is None and reported["confidence"] is None
    assert reported["levels"][0]["rules_out"] == 1 and reported["levels"][1]["rules_out"] < 1
    miss = reported["nearest_miss"]
    best = max(reported["designs"], key=lambda d: (d["probability"], d["rate"] or 0))
    assert miss["design"] == best["id"] or miss["probability"] == best["probability"]
    needed = next(n for n in miss["needed"] if n["quantity"] == "create.rate")
    assert needed["needed"] < next(d for d in reported["designs"] if d["id"] == miss["design"])["levels"][0]["value"]
    text = iocast("study", file, "--out", directory / "answer", "--workers", "1")
    assert text.returncode == 4 and text.stdout.startswith(
        "None of the 6 designs within the limits keeps both service levels"
    )
    assert text.stdout.splitlines()[0].endswith("if the numbers of “lustre” hold: nobody calibrated it.")


@pytest.mark.long("a full factorial")
def test_the_optimiser_finds_what_the_full_factorial_finds(
    small: tuple[Path, dict[str, Any]], iocast: Iocast, tmp_path: Path
) -> None:
    axes = {
        "servers": {"path": "stations.mds.servers", "values": [1, 2, 3, 4, 6, 8], "part": "core"},
        "speed": SMALL["axes"]["speed"],
        "slots": {"path": "limits.modifying.slots", "values": [1, 2, 4, 7]},
    }
    plain = {"axes": axes, "uncertainty": None, "scales": {"many": SMALL["scales"]["many"]}}
    searched = changed(**plain, search={"full_up_to": 20, "evaluations": 25, "simulate": 4, "replications": 4})
    full = changed(**plain, search={"simulate": 4, "replications": 4})
    out = tmp_path / "answer"
    a = answered(
        iocast("study", write(tmp_path / "a", searched), "--out", out, "--workers", "1", "--json", timeout=900)
    )
    b = answered(iocast("study", write(tmp_path / "b", full), "--out", out, "--workers", "1", "--json", timeout=900))
    assert a["search"]["explored"] == "NSGA-II" and b["search"]["explored"] == "full factorial"
    assert a["search"]["looked_at"] < b["search"]["looked_at"] == 48
    assert a["decision"]["cost"] == b["decision"]["cost"]


def test_one_server_down(small: tuple[Path, dict[str, Any]], iocast: Iocast, tmp_path: Path) -> None:
    """A scenario that leaves nothing takes a design out; one that leaves a server does not."""
    directory, _ = small
    axes = {"MDS": {"path": "stations.mds.count", "values": [1, 2], "part": "core"}}
    levels = [{"level": "p95(stat) < 1 s", "under": "one MDS down"}]
    scenarios = {"one MDS down": {"edit": {"stations.mds.count": {"plus": -1}}}}
    file = write(tmp_path, changed(axes=axes, levels=levels, scenarios=scenarios, uncertainty=None))
    reported = answered(iocast("study", file, "--out", directory / "answer", "--workers", "1", "--json"))
    alone, two = reported["designs"]
    assert alone["probability"] == 0 and alone["first_failing"]["why"]["part"] == "down"
    assert two["probability"] == 1 and reported["decision"]["values"] == {"MDS": "2"}


def test_compare_sets_two_designs_beside_each_other(
    small: tuple[Path, dict[str, Any]], iocast: Iocast, tmp_path: Path
) -> None:
    directory, first = small
    answer = directory / "answer"
    answered(iocast("study", directory / "study.yaml", "--out", answer, "--workers", "1", "--json"))
    slow, fast = (
        next(d["id"] for d in first["designs"] if d["values"] == {"servers": "two", "speed": s})
        for s in ("plain", "fast")
    )
    reported = json.loads(iocast("compare", f"{answer}:{slow}", f"{answer}:{fast}", "--json").stdout)
    rate = next(r for r in reported["rows"] if r["quantity"] == "rate" and r["scale"] == "many")
    # Half as fast again where the server is the bottleneck.
    assert 1.3 < rate["low"] <= rate["ratio"] <= rate["high"] < 1.6 and rate["clear"] and rate["pairs"] >= 4
    same = json.loads(iocast("compare", f"{answer}:{slow}", f"{answer}:{slow}", "--json").stdout)
    assert all(r["ratio"] == pytest.approx(1) for r in same["rows"]) and not any(r["clear"] for r in same["rows"])
    assert "+" in iocast("compare", f"{answer}:{slow}", f"{answer}:{fast}").stdout
    for name, speed in (("a", 1), ("b", 2)):
        (tmp_path / f"{name}.yaml").write_text(
            f"schema_version: 1\nextends: lustre\nstations: {{mds: {{servers: 2, speed: {speed}}}}}\n"
        )
    offers = json.loads(
        iocast(
            "compare",
            tmp_path / "a.yaml",
            tmp_path / "b.yaml",
            "--study",
            directory / "study.yaml",
            "--workers",
            "1",
            "--json",
        ).stdout
    )
    assert [s["name"] for s in offers["sides"]] == ["a", "b"]
    rate = next(r for r in offers["rows"] if r["quantity"] == "rate" and r["scale"] == "many")
    assert 1.6 < rate["ratio"] < 2.1


def test_designs_of_unlike_studies_are_compared_in_what_they_share() -> None:
    """Neither amounts in two currencies are subtracted, nor confidences in unlike levels set beside each other; a side
    that has no value in some replications is not clearly faster by the others."""
    row = {"scenario": "", "workload": "w", "scale": "s", "ranks": 8, "quantity": "rate"}

    def side(name: str, currency: str, level: str, values: list[float | None]) -> dict[str, Any]:
        shared = {"name": name, "cost": 8000.0, "currency": currency, "probability": 1.0, "asks": [level]}
        return shared | {"rows": [row | {"values": values}]}

    a = side("a", "EUR", "p99(stat) < 50 ms", [1.0, 1.0, 1.01, 0.99, 1.0])
    b = side("b", "USD", "p99(stat) < 200 us", [1.2, 1.2, 1.21, 1.19, None])
    rows = _rows([a, b], 0.9)
    assert rows[0]["without"] == 1 and rows[0]["low"] > 1 and not rows[0]["clear"]
    words = _conclusion([a, b], rows)
    assert "unlike currencies are not compared" in words and "more than" in words and "100 %" not in words
    assert "keeps “p99(stat) < 200 us” with" in words and "the other “p99(stat) < 50 ms”" in words
    alike = side("c", "EUR", "p99(stat) < 50 ms", [1.2, 1.2, 1.21, 1.19, 1.2]) | {"cost": 9000.0}
    rows = _rows([a, alike], 0.9)
    assert rows[0]["clear"] and "costs 1,000 EUR more" in _conclusion([a, alike], rows)


def test_a_fitted_platform_brings_its_own_uncertainty(fitted: Path, iocast: Iocast, tmp_path: Path) -> None:
    study = {
        "schema_version": 1,
        "platform": str(fitted),
        "confidence": 0.8,
        "workloads": {
            "mix": {"workload": "md-workbench", "settings": {"datasets": 2, "objects": 50, "iterations": 50}}
        },
        "scales": {"measured": {"nodes": 1, "ranks_per_node": 8}, "beyond": {"nodes": 1, "ranks_per_node": 64}},
        "axes": {
            "cores": {"as today": {}, "twice": {"edit": {"stations.cpu.servers": {"times": 2}}, "parts": {"core": 2}}}
        },
        "parts": {"core": {"price": 100, "source": "made up"}},
        "levels": ["rate(all) >= 150k/s", "p50(stat) < 1 ms"],
        "measurements": {"a longer campaign": {"tells": "the model", "price": 1}},
        "search": {"replications": 8},
    }
    reported = answered(
        iocast("study", write(tmp_path, study), "--out", tmp_path / "answer", "--workers", "1", "--json")
    )
    assert reported["platform"]["calibrated"] and reported["extrapolation"] == 8
    assert "nobody calibrated" not in reported["headline"]
    assert any("8 times the 8 that were measured" in w for w in reported["warnings"]), reported["warnings"]
    for d in reported["designs"]:
        near, far = (
            next(
                r for r in reported["curves"] if r["design"] == d["id"] and r["scale"] == s and r["quantity"] == "rate"
            )
            for s in ("measured", "beyond")
        )
        # Farther from what was measured is known worse.
        assert far["high"] / far["low"] > near["high"] / near["low"] > 1.02
    assert {m["name"] for m in reported["measurements"]} >= {"a longer campaign", "a model without error"}


def test_the_reports_first_screen_has_levels_runner_up_and_what_would_change(
    small: tuple[Path, dict[str, Any]],
) -> None:
    """Each level with limit, value and margin, where it is tightest; the next designs with price and reason; the
    uncertain input that turns the decision."""
    directory, reported = small
    shown = tell(read_sources([directory / "answer"]))
    design = next(d for d in reported["designs"] if d["id"] == reported["decision"]["id"])
    levels, rivals = shown.grids
    for level, cells in zip(reported["levels"], levels.rows, strict=True):
        row = min((r for r in design["levels"] if r["level"] == level["level"]), key=lambda r: r["margin"])
        value = amounts.amount(row["quantity"], row["value"])
        assert cells == [row["level"], amounts.place(row, reported), amounts.limit_of(row), value, amounts.margin(row),
                         amounts.chance(row["probability"], 0.9), *words.measured_beside(reported, row)]  # fmt: skip
    others = [d for d in reported["designs"] if d["meets"] and d["id"] != design["id"]]
    runner_up = min(others, key=lambda d: d["cost"])
    assert rivals.rows[0][0] == amounts.quoted(runner_up["name"])
    gap = amounts.signed_money(runner_up["cost"] - design["cost"], reported["currency"])
    assert rivals.rows[0][2].replace("\N{NO-BREAK SPACE}", " ") == gap
    cheaper = max((d for d in reported["designs"] if d["cost"] < design["cost"]), key=amounts.nearness)
    assert (
        rivals.rows[1][0] == amounts.quoted(cheaper["name"]) and cheaper["first_failing"]["level"] in rivals.rows[1][4]
    )
    turning = next(u for u in reported["sensitivity"]["uncertain"] if u["turns_at"])
    assert any(turning["name"] in one and f"{turning['turns_at']:.2g} times" in one for one in shown.changes)
    assert (
        "What would change it" not in dict(shown.paragraphs) and len(shown.cards) == 3
    )  # cost, chance, where it breaks
    counted = f"Which of {len(reported['designs'])} designs is the cheapest"
    assert shown.question.startswith(counted)  # after the author's own words, if there are some
    own = words.question(reported | {"question": "What do we buy?"})
    assert own.startswith(f"What do we buy? {counted}")

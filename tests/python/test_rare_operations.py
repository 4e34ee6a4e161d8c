# SPDX-License-Identifier: Apache-2.0
"""Operations of a random mix that some runs of a short simulation lack: no part of iocast ends because of them, takes
another quantity for theirs, or keeps silent."""

import copy
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_phases import small

from iocast.forecasts import draws
from iocast.ground import binaries
from iocast.calibrate.search import Target, summaries
from iocast.calibrate.section import too_rare
from iocast.calibrate.structure_search import Search
from iocast.platforms.documents import find_platform
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict
from iocast.planning.plan import QUANTILES, Ensemble
from iocast.planning.proposed import Place
from iocast.runs.run_directory import Point, Run
from iocast.study import evaluate
from iocast.records.note_of_measurements import TooRareToCheck

SETTINGS = {"files": "20", "operations": "40"}


@pytest.fixture(scope="module")
def run() -> Any:
    """Of two repeats, with all of the mix in both."""
    found = binaries.simulate("local", "nfs-server", SETTINGS | {"operations": "2000", "repeats": "2"}, 1, 1, 1)
    assert all("create" in phase["latency"] for phase in repeats(found))
    return found


def repeats(run: Any) -> list[Any]:
    return [phase for phase in run["phases"] if phase["name"] == "benchmark"]


def without(run: Any, op: str, *numbers: int) -> Any:
    """The run whose repeats of these numbers have no such operation."""
    found = copy.deepcopy(run)
    for number in numbers:
        for tag in [tag for tag in repeats(found)[number]["latency"] if tag.partition(".")[0] == op]:
            del repeats(found)[number]["latency"][tag]
        repeats(found)[number]["by_operation"].pop(op)
    return found


def test_a_forecast_has_the_same_operations_whichever_run_comes_first() -> None:
    """Seed 0's first run lacks create, seed 1's readdir."""
    named = {}
    for seed, lacking in ((0, "create"), (1, "readdir")):
        answer = predict(
            Fitted.open("local"), "mix-mail-beside-open-loop", small("mix-mail-beside-open-loop"), 1, 8, seed=seed
        )
        assert lacking not in answer["operations"] and answer["quantities"][f"{lacking}.q50"]["value"] > 0
        (warning,) = [text for text in answer["warnings"] if text.startswith(f"{lacking} is so rare")]
        assert "its share and distribution are not known" in warning
        named[seed] = set(answer["quantities"])
    assert named[0] == named[1]


class Fake:
    """Simulations that answer with what is prepared, in turn."""

    def __init__(self, *runs: Any) -> None:
        self.runs = list(runs)

    def write(self, document: Any) -> Path:
        return Path("x")

    def run_those_that_settle(self, jobs: list[Any]) -> list[Any]:
        return [self.runs.pop(0) for _ in jobs]


@pytest.mark.parametrize("most", [10**9, 1])
def test_a_draw_that_lacks_an_operation_says_nothing_of_it(
    run: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither that it is like the best platform's, nor, where draws are simulated for shorter, the whole question's
    value over the short run's."""
    monkeypatch.setattr(draws, "OPERATIONS_A_DRAW", most)
    best = {("benchmark", name): value for name, value in {"rate": 10.0, "create.q50": 7.0, "stat.q50": 1.0}.items()}
    lacking, shorter = without(run, "create", 0, 1), most == 1
    for own, draw in [(run, lacking), (lacking, run)][: 1 + shorter]:
        fake: Any = Fake(*([own] if shorter else []), draw)
        first = {"workload": {"parameters": {"iterations": 10}}, "phases": run["phases"]}
        found = draws.ask(fake, [{}], Path("best"), {}, best, first, ("w", {}, 1, 1), 0, lambda: None)  # type: ignore
        assert found.how == (draws.SHORTER if shorter else draws.IN_FULL) and found.values[0] is not None
        assert found.values[0].get(("benchmark", "create.q50")) == (7.0 if shorter else None)
        assert found.values[0]["benchmark", "stat.q50"] > 0


@pytest.fixture(scope="module")
def point(tmp_path_factory: pytest.TempPathFactory) -> Point:
    out = tmp_path_factory.mktemp("rare") / "run"
    command = [
        binaries.find("iocast-sim"),
        "--json",
        "--platform",
        "local",
        "--workload",
        "nfs-server",
        "--out",
        str(out),
    ]
    binaries.run_json([*command, *(word for one in SETTINGS.items() for word in ("--set", "=".join(one)))])
    return Point([Run(out)])


def test_a_fit_takes_no_evidence_from_an_operation_that_a_simulation_lacks(run: Any, point: Point) -> None:
    names = ["rate", "create.q50", "stat.q50"]
    target = Target(point, names, np.zeros(3), np.ones(3), {})
    full, first, none = (
        summaries(one, target, target.logs) for one in (run, without(run, "create", 1), without(run, "create", 0, 1))
    )
    assert full[1] != 0 and none[1] == 0.0 and (none[[0, 2]] == full[[0, 2]]).all()
    assert first[1] == pytest.approx(math.log(repeats(run)[0]["latency"]["create"]["q50"]))


def test_errors_of_an_operation_that_a_simulation_lacks_have_a_note(run: Any, point: Point) -> None:
    op = point.first.operations[0]
    search: Any = SimpleNamespace(seed=0, simulated=lambda *of: Search.simulated(search, *of))

    def rows(simulated: Any) -> list[dict[str, Any]]:
        return Search.rows(search, Fake(simulated), {}, [point])  # type: ignore[arg-type]

    assert {row["quantity"] for row in rows(run)} == set(point.quantities())
    assert too_rare([point], rows(run)) == too_rare([point], []) == []
    few = rows(without(run, op, 0, 1))
    assert {row["quantity"] for row in few} == {n for n in point.quantities() if n.rpartition(".")[0] != op}
    (note,) = too_rare([point], few)
    assert note == TooRareToCheck(op, ["N=1 T=0"])


@pytest.mark.parametrize("lacking", [0, 1])
def test_a_plan_compares_platforms_by_what_all_of_them_have(run: Any, lacking: int) -> None:
    runs = [run, run]
    runs[lacking] = without(run, "create", 0)
    noise = dict.fromkeys(("rate", "q50", "q75", "q95", "q99"), 0.01)
    ensemble = Ensemble(Fake(*runs), [{}, {}], "cluster-postmark", {}, "benchmark", noise)  # type: ignore[arg-type]
    ensemble.ask([Place(1, 1)])
    logs = ensemble.known[Place(1, 1)].logs
    operations = [op for op in repeats(run)[0]["latency"] if "." not in op and op != "create"]
    assert logs.shape[1] == 1 + len(QUANTILES) * len(operations) and np.isfinite(logs).all()


def simulated(run: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(binaries, "simulate", lambda *_: run)
    request = {"workload": "w", "settings": {}, "nodes": 1, "ranks_per_node": 1, "seed": 0, "phase": "benchmark"}
    return evaluate._simulate(request | {"platform_key": "local"}, find_platform("local"))


def test_a_study_counts_operations_of_all_repeats(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    each = [phase["latency"]["create"]["count"] for phase in repeats(run)]
    seconds = sum(phase["seconds"] for phase in repeats(run))
    for gone, left in (((), sum(each)), ((0,), each[1]), ((1,), each[0])):
        found = simulated(without(run, "create", *gone), monkeypatch)
        assert found["quantities"]["create.rate"] == pytest.approx(left / seconds, rel=1e-5)
        assert "create" in found["operations"] and found["quantities"]["create.q99"] > 0


def test_a_study_has_what_its_first_run_lacks(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    having, lacking = simulated(run, monkeypatch), simulated(without(run, "create", 0, 1), monkeypatch)
    key: Callable[[Any], Any] = lambda found: found["quantities"]["create.q99"]  # noqa: E731
    assert key(evaluate.pooled([lacking, having])) == pytest.approx(key(evaluate.pooled([having, lacking])))
    assert key(evaluate.pooled([lacking, having])) == pytest.approx(key(having))


def test_a_phase_of_which_a_shorter_run_has_nothing_is_left_out() -> None:
    """What a time limit leaves of a long run, none of a shorter one that ends in time."""
    made = {"name": "make", "operations": 10, "seconds": 2.0, "latency": {}}
    run: Any = {"phases": [made, {"name": "rest", "operations": 0, "seconds": 0.0, "latency": {}}]}
    assert draws.known_quantities(run, [("make", "rate"), ("rest", "rate")]) == {("make", "rate"): 5.0}

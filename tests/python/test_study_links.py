# SPDX-License-Identifier: Apache-2.0
"""A study's designs with other links than the measured ones do what a forecast with the same edits says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from iocast.forecasts.links import with_requests
from iocast.forecasts.request import resolved
from iocast.platforms.content import whole
from iocast.platforms.fitted import Fitted
from iocast.records.fitted import LinkBytes
from iocast.records.forecast import Ends
from iocast.records.note import LinkFull, LinkUnknown
from iocast.rules.applied import target
from iocast.runs.question import Question
from iocast.study import over_links
from iocast.study.documents import Edit, edited
from iocast.study.questions import Ask, Point

MOVED: LinkBytes = {"sent": 20.0, "received": 10.0, "ranks": 1, "at_most": {"sent": 30.0, "received": 10.0, "ranks": 8}}
NODES, RATE, TIME = 4, 500.0, 1e-2
RESULT = {
    "quantities": {"rate": RATE, "stat.rate": 300.0, "unlink.rate": 200.0, "seconds": 2.0, "stat.q50": TIME},
    "stations": {},
}  # fmt: skip


@pytest.fixture(autouse=True)
def _built(simulator: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOCAST_BUILD", str(simulator.parents[1]))


def question(load: dict[str, float]) -> Question:
    place = {"ranks": 8 * NODES, "nodes": NODES, "ranks_per_node": 8}
    return Question.of({"pattern": "md-workbench", "parameters": load}, place, "benchmark")


def desk_of(
    edits: list[Edit], moved: LinkBytes | None = MOVED, load: dict[str, float] | None = None, other: bool = False
) -> Any:
    """The parts of a desk that links need; its one design has these edits, or its platform's
    own file."""
    document = edited(whole({"schema_version": 1, "extends": "network"}), edits)
    variants = SimpleNamespace(
        platform_of=lambda design: SimpleNamespace(fitted={"campaign": {}, "link_bytes": moved}, other_links=other),
        edits=lambda *_: [] if other else edits,
        document=lambda *_: document,
    )
    return SimpleNamespace(
        designs=SimpleNamespace(at=lambda number: number), scale=lambda ask: SimpleNamespace(nodes=NODES),
        variants=variants, residuals=lambda *_: object(), profiles={"w": {"given": {}}},
        question=lambda *_: question(load or {}), links_of={},
    )  # fmt: skip


def ask(replication: int = 0) -> Ask:
    return Ask("simulate", 1, Point("normal", "w", "s"), replication)


@pytest.mark.parametrize("key", ["node_bandwidth", "server_bandwidth", "backbone_bandwidth"])
@pytest.mark.parametrize("limit", [1e3, 3e3, 1e4, 1e9])
@pytest.mark.parametrize("factor", [0.0, 1.0])
def test_links_carry_of_a_design_what_they_carry_of_a_forecast(key: str, limit: float, factor: float) -> None:
    setting = f"network.{key}", f"{limit:g}B/s"
    load = {"waiting_factor": factor}
    desk = desk_of([Edit(setting[0], "set", setting[1])], load=load)
    found = over_links.limited(desk, ask(), RESULT)["quantities"]
    fitted = replace(Fitted.open("network", [setting]), fitted={"campaign": {}})
    given: dict[str, Ends] = {
        name: {"value": value, "low": None, "high": None} for name, value in (("rate", RATE), ("stat.q50", TIME))
    }
    shares, at = {"stat": 0.6, "unlink": 0.4}, target(question(load))
    forecast, notes = with_requests(fitted, resolved(fitted.best()), shares, NODES, given, at, MOVED)
    assert found["rate"] == pytest.approx(forecast["rate"]["value"])
    assert found["stat.q50"] == pytest.approx(forecast["stat.q50"]["value"])
    assert found["stat.rate"] / found["rate"] == pytest.approx(0.6)
    assert found["seconds"] * found["rate"] == pytest.approx(2.0 * RATE)
    assert desk.links_of.get((1, ask().point), []) == notes
    assert any(isinstance(one, LinkFull) for one in notes) == (found["rate"] < RATE)


@pytest.mark.parametrize("median", [{"stat.q50": 0.0}, {"stat.q75": TIME}, {}])
def test_times_grow_as_the_rate_falls_where_a_median_is_not_known(median: dict[str, float]) -> None:
    """Nothing stands for it: 32 ranks without pauses take as much longer as fewer operations are done."""
    result = {"quantities": {"rate": 3200.0, "stat.rate": 3200.0, "stat.q99": TIME} | median, "stations": {}}
    desk = desk_of([Edit("network.node_bandwidth", "set", "1kB/s")], load={"waiting_factor": 0.0})
    found = over_links.limited(desk, ask(), result)["quantities"]
    assert found["rate"] == pytest.approx(NODES * 1e3 / 20)
    assert found["stat.q99"] == pytest.approx(TIME * 3200 / found["rate"])


@pytest.mark.parametrize("edits", [[], [Edit("stations.server.servers", "set", 4)]])
def test_designs_with_the_measured_links_are_as_they_were(edits: list[Edit]) -> None:
    assert over_links.limited(desk_of(edits), ask(), RESULT) is RESULT


def test_without_observed_bytes_no_value_changes_and_a_word_says_so() -> None:
    for fastest, words in (("1kB/s", [LinkUnknown]), ("1GB/s", [])):
        desk = desk_of([Edit("network.node_bandwidth", "set", fastest)], None)
        for number in (0, 3):
            assert over_links.limited(desk, ask(number), RESULT) is RESULT
        assert [type(one) for one in desk.links_of.get((1, ask().point), [])] == words


def test_words_are_of_the_last_result() -> None:
    """An analytic screening's rate may be above a link and the simulation's below it."""
    desk = desk_of([Edit("network.node_bandwidth", "set", "1kB/s")])
    over_links.limited(desk, ask(), RESULT)
    assert desk.links_of
    slow = {name: value / 100 if name.endswith("rate") else value for name, value in RESULT["quantities"].items()}
    over_links.limited(desk, ask(), {"quantities": slow, "stations": {}})
    assert not desk.links_of


def test_a_piece_laid_over_the_network_without_its_links_changes_nothing() -> None:
    desk = desk_of([Edit("", "lay", {"network": {"latency": "1us"}})])
    assert over_links.limited(desk, ask(), RESULT) is RESULT


def test_links_of_a_file_that_extends_the_calibration_count() -> None:
    desk = desk_of([Edit("network.node_bandwidth", "set", "1kB/s")], other=True)
    assert over_links.limited(desk, ask(), RESULT)["quantities"]["rate"] == pytest.approx(NODES * 1e3 / 20)


def test_a_piece_laid_over_the_links_counts_and_replications_leave_no_word() -> None:
    desk = desk_of([Edit("", "lay", {"network": {"node_bandwidth": "1kB/s"}})])
    assert over_links.limited(desk, ask(3), RESULT)["quantities"]["rate"] == pytest.approx(NODES * 1e3 / 20)
    assert not desk.links_of

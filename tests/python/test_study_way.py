# SPDX-License-Identifier: Apache-2.0
"""Beyond a study's scales nothing is added that no design has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from study_inputs import changed, write

from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict
from iocast.study.breaking import grows_in_ranks, way
from iocast.study.search import Search
from iocast.study.spec import Scale

Iocast = Callable[..., Any]


def _search(platform: dict[str, Any], *scales: tuple[int, int]) -> Search:
    study = SimpleNamespace(scales={str(i): Scale(str(i), *scale) for i, scale in enumerate(scales)})
    desk = SimpleNamespace(platforms={"p": SimpleNamespace(best=(platform, "key"), fitted={})})
    return cast(Search, SimpleNamespace(study=study, desk=desk))


OWN = {"stations": {"cpu": {"per": "node"}}}
SHARED = {"stations": {"client": {"per": "node"}, "mds": {}}}


@pytest.mark.parametrize(
    ("platform", "scales", "in_ranks"),
    [
        (OWN, [(1, 8), (1, 32)], True),
        (OWN, [(2, 8)], True),
        (OWN, [(1, 8), (4, 8)], True),
        (SHARED, [(1, 8), (1, 32)], True),
        (SHARED, [(2, 8)], False),
        (SHARED, [(1, 8), (4, 8)], False),
        (SHARED, [(1, 4), (4, 8)], True),
    ],
)
def test_further_clients_come_as_they_do_in_the_study(
    platform: dict[str, Any], scales: list[tuple[int, int]], in_ranks: bool
) -> None:
    search = _search(platform, *scales)
    places = [(one.nodes, one.ranks_per_node) for one in way(search)]
    assert grows_in_ranks(search) == in_ranks and set(scales) <= set(places)
    ranks = [nodes * each for nodes, each in places]
    assert ranks == sorted(set(ranks)) and ranks[-1] == 16 * scales[-1][0] * scales[-1][1]
    largest = scales[-1]
    beyond = places[places.index(largest) + 1 :]
    assert len(beyond) == 4
    assert {place[0 if in_ranks else 1] for place in beyond} == {largest[0 if in_ranks else 1]}


def test_the_curve_of_a_study_is_the_forecast_at_each_placement(iocast: Iocast, tmp_path: Path) -> None:
    """A machine that is full at eight jobs stays full with more of them, and misses a mean where they fill it up."""
    study = changed(
        platform="local",
        scales={"now": {"nodes": 1, "ranks_per_node": 8}, "then": {"nodes": 1, "ranks_per_node": 32}},
        axes={"cores": {"four": {"edit": {"stations.cpu.servers": 4}, "parts": {"core": 1}}}},
        levels=["mean(create) < 150 us"],
        uncertainty=None,
    )
    done = iocast("study", write(tmp_path, study), "--out", tmp_path / "answer", "--workers", "1", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    curve = [row for row in answer["knee"] if row["series"] == "analytic solver"]
    assert [(row["nodes"], row["ranks_per_node"]) for row in curve] == [(1, 8 * 2**i) for i in range(7)]
    local = Fitted.open("local", [("stations.cpu.servers", 4)])
    for row in (curve[0], curve[-1]):
        settings = {"datasets": "2", "objects": "20", "iterations": "20"}
        made = predict(local, "md-workbench", settings, row["nodes"], row["ranks_per_node"], solver="analytic")
        assert row["rate"] == pytest.approx(made["quantities"]["rate"]["value"], rel=1e-6)
    (design,) = answer["designs"]
    end = design["breaks_at"]
    assert end["nodes"] == 1 and end["ranks_per_node"] is None and not end["already"]
    # Little's law on a full machine: the mean of all operations at which creates take the level.
    share = next(level["value"] for level in design["levels"] if level["scale"] == "then") / (32 / curve[-1]["rate"])
    assert end["ranks"] == pytest.approx(150e-6 / share * curve[-1]["rate"], rel=0.15)


def test_a_rate_that_fewer_clients_miss_breaks_nowhere(iocast: Iocast, tmp_path: Path) -> None:
    study = changed(
        axes={"servers": {"one": {"edit": {"stations.mds.servers": 1}}}},
        levels=[{"level": "rate(create) >= 50k/s", "at": "many"}],
        uncertainty=None,
    )
    done = iocast("study", write(tmp_path, study), "--out", tmp_path / "answer", "--workers", "1", "--json")
    assert done.returncode == 4, done.stderr
    answer = json.loads(done.stdout)
    assert [design["breaks_at"] for design in answer["designs"]] == [None]
    assert not [c for c in answer["conclusions"] if c["about"] == "Where it ends"]

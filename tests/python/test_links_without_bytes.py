# SPDX-License-Identifier: Apache-2.0
"""A forecast says so where a link is limited and the operations move no bytes over it, on every platform."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from schedule import SOME_PLATFORMS, mostly_long

from iocast.records.note import LinkFull, LinkPerhapsFull, LinkUnknown
from iocast.calibrate.reading import link_bytes
from iocast.forecasts.answer import predict
from iocast.forecasts.links import LINKS, REQUEST_BYTES, with_requests
from iocast.forecasts.one_system import full_link
from iocast.forecasts.request import resolved
from iocast.platforms.documents import PLATFORMS
from iocast.platforms.fitted import Fitted
from iocast.records.fitted import LinkBytes
from iocast.records.forecast import Ends
from iocast.rules.blend import Question

OPERATIONS = ("stat", "create", "read", "unlink", "pwrite", "pread", "fsync", "readdir")
NODES, LIMIT = 4, 1000.0
RATE: Ends = {"value": 500.0, "low": 400.0, "high": 600.0}
TIME: Ends = {"value": 1e-2, "low": 0.8e-2, "high": 1.2e-2}


def with_limit(name: str, key: str, limit: float = LIMIT) -> Fitted:
    return Fitted.open(name, [(f"network.{key}", f"{limit:g}B/s")])


@pytest.mark.parametrize(
    "name",
    mostly_long(sorted(file.stem for file in PLATFORMS.glob("*.yaml")), SOME_PLATFORMS, "the rule of other platforms"),
)
def test_operations_move_bytes_over_a_limited_link_or_the_forecast_says_so(name: str) -> None:
    for key in LINKS:
        platform = with_limit(name, key)
        system = resolved(platform.best(), name)
        stations = {one for one, spec in system["stations"].items() if spec["per"] != "node"}
        for op in set(OPERATIONS) & set(system["operations"]):
            text = json.dumps(system["operations"][op])
            crosses = any(f'"station": "{station}"' in text for station in stations)
            _, sentences = with_requests(platform, system, {op: 1.0}, NODES, {"rate": {**RATE, "value": 1e9}}, None)
            if '"buffer"' not in text:  # whose drains may move them
                assert bool(sentences) == (crosses and '"transfer"' not in text), (key, op, sentences)


@pytest.mark.parametrize(
    ("key", "count"), [("node_bandwidth", NODES), ("server_bandwidth", 1), ("backbone_bandwidth", 0.5)]
)
def test_the_interval_reaches_down_to_where_requests_fill_the_link(key: str, count: float) -> None:
    """A backbone has both directions."""
    platform = replace(with_limit("network", key), fitted={"campaign": {}})
    system = resolved(platform.best())
    full = LIMIT * count / REQUEST_BYTES
    given = {"rate": RATE, "stat.q50": TIME}
    found, notes = with_requests(
        platform, system, {"stat": 0.5, "create": 0.0, "unlink": 0.5}, NODES, given, Question(8, 4)
    )
    assert [one.operations for one in notes if isinstance(one, LinkUnknown)] == [["stat", "unlink"]]
    assert found["rate"] == {**RATE, "low": full}
    assert found["stat.q50"]["high"] == pytest.approx(TIME["value"] * RATE["value"] / full)
    assert found["stat.q50"]["value"] == TIME["value"] and found["stat.q50"]["low"] == TIME["low"]


def test_empty_files_move_no_bytes_whatever_their_route_has() -> None:
    platform = with_limit("lustre", "node_bandwidth")
    system, shares, given = resolved(platform.best()), {"create": 1.0}, {"rate": {**RATE, "value": 1e9}}
    for each, words in (({"create": 0.0}, ["create"]), ({"create": 10.0}, []), ({}, [])):
        _, notes = with_requests(platform, system, shares, NODES, given, None, None, each)
        assert [op for one in notes if isinstance(one, LinkUnknown) for op in one.operations] == words


@pytest.mark.parametrize("edits", [[], [("stations.server.servers", 4)], [("network.node_bandwidth", "10GB/s")]])
def test_links_that_are_wide_or_as_measured_change_nothing(edits: list[tuple[str, Any]]) -> None:
    platform = replace(Fitted.open("network", edits), fitted={"campaign": {}})
    given = {"rate": RATE, "stat.q50": TIME}
    assert with_requests(platform, resolved(platform.best()), {"stat": 1.0}, NODES, given, Question(8, 4)) == (
        given,
        [],
    )


def test_a_forecast_prints_the_note() -> None:
    settings = {"iterations": "5", "objects": "5"}
    notes = [
        [text for text in predict(one, "md-workbench", settings, 2, 2)["warnings"] if "no bytes of requests" in text]
        for one in (with_limit("lustre", "server_bandwidth"), Fitted.open("lustre", []))
    ]
    assert len(notes[0]) == 1 and "stat" in notes[0][0] and not notes[1]


@pytest.mark.parametrize(
    ("key", "each"), [("node_bandwidth", 20.0), ("server_bandwidth", 20.0), ("backbone_bandwidth", 30.0)]
)
def test_links_carry_no_more_than_the_observed_bytes_of_operations(key: str, each: float) -> None:
    """Directions of a card don't compete, those of the backbone do. A limit above the rate changes nothing."""
    moved: LinkBytes = {"sent": 20.0, "received": 10.0, "ranks": 4}
    given = {"rate": RATE, "stat.q50": TIME}
    for limit in (LIMIT, 1e6):
        platform = replace(with_limit("network", key, limit), fitted={"campaign": {}})
        system = resolved(platform.best())
        found, sentences = with_requests(platform, system, {"stat": 1.0}, NODES, given, Question(8, 4), moved)
        full = limit / each * (NODES if key == "node_bandwidth" else 1)
        if full > RATE["value"]:
            assert found == given and not sentences
            continue
        assert found["rate"]["value"] == pytest.approx(full) and len(sentences) == 1
        assert found["rate"]["high"] / full == pytest.approx(RATE["high"] / RATE["value"])
        assert found["stat.q50"]["value"] / TIME["value"] == pytest.approx(RATE["value"] / full)
    as_measured = replace(Fitted.open("network", []), fitted={"campaign": {}})
    assert with_requests(as_measured, system, {"stat": 1.0}, NODES, given, Question(8, 4), moved) == (given, [])


def test_bytes_of_several_nodes_may_be_fewer() -> None:
    """Ranks may have sent each other a part of them: the interval then ends where the platform's does."""
    platform = replace(with_limit("network", "node_bandwidth"), fitted={"campaign": {}})
    system, given = resolved(platform.best()), {"rate": RATE, "stat.q50": TIME}
    for nodes, ends in ((1, False), (4, True)):
        moved: LinkBytes = {"sent": 20.0, "received": 10.0, "ranks": 4}
        if nodes > 1:
            moved["nodes"] = nodes
        found, (word,) = with_requests(platform, system, {"stat": 1.0}, NODES, given, Question(8, 4), moved)
        assert (found["rate"]["high"] == RATE["high"], found["stat.q50"]["low"] == TIME["low"]) == (ends, ends)
        assert found["rate"]["value"] < RATE["value"] and isinstance(word, LinkFull) and word.seen_on == nodes


@pytest.mark.parametrize("name", ["network", "nfs", "lustre", "gpfs"])
def test_observed_bytes_are_of_the_mean_operation_whatever_routes_have(name: str) -> None:
    """Transfers of some operations, and operations at no shared station, take nothing from what was observed."""
    moved: LinkBytes = {"sent": 20.0, "received": 10.0, "ranks": 4}
    platform = replace(with_limit(name, "node_bandwidth"), fitted={"campaign": {}})
    shares = dict.fromkeys(("stat", "create", "read", "unlink"), 0.25)
    found, notes = with_requests(
        platform, resolved(platform.best()), shares, NODES, {"rate": RATE}, Question(8, 4), moved
    )
    assert found["rate"]["value"] == pytest.approx(LIMIT * NODES / 20.0)
    assert [one.bytes_each for one in notes if isinstance(one, LinkFull)] == [20.0]


@pytest.mark.parametrize("rate", [3150.0, 3190.0, 3199.0, 3200.0, 3250.0])
def test_pauses_leave_operations_no_less_than_their_median(rate: float) -> None:
    """32 ranks that pause for 10 ms do 3,200 operations a second at most; a corrected rate may say more. Little's law
    at what links carry has the mean."""
    moved: LinkBytes = {"sent": 100.0, "received": 100.0, "ranks": 1}
    platform = replace(with_limit("network", "node_bandwidth", 25e3), fitted={"campaign": {}})
    given = {"rate": {**RATE, "value": rate}, "stat.q50": {"value": 1e-4, "low": None, "high": None}}
    found, _ = with_requests(
        platform, resolved(platform.best()), {"stat": 1.0}, NODES, given, Question(8, 4, think_time=1e-2), moved
    )
    assert found["rate"]["value"] == pytest.approx(1000.0)
    assert found["stat.q50"]["value"] <= 32 / 1000 - 1e-2 + 1e-9


@pytest.mark.parametrize("key", LINKS[:2])
def test_the_interval_reaches_down_to_what_links_carry_of_all_that_crossed_them(key: str) -> None:
    """Whether or not the operations' own bytes fill them."""
    count = NODES if key == "node_bandwidth" else 1
    platform = replace(with_limit("network", key), fitted={"campaign": {}})
    system = resolved(platform.best())
    given = {"rate": RATE, "stat.q50": TIME}
    for own, everything in ((20.0, 40.0), (1.0, 40.0), (1.0, 1.5)):
        moved: LinkBytes = {"sent": own, "received": 0.5, "ranks": 1}
        alone, _ = with_requests(platform, system, {"stat": 1.0}, NODES, given, Question(8, 4), moved)
        moved["at_most"] = {"sent": everything, "received": 0.5, "ranks": 16}
        found, notes = with_requests(platform, system, {"stat": 1.0}, NODES, given, Question(8, 4), moved)
        assert all(found[name]["value"] == alone[name]["value"] for name in given)
        assert found["rate"]["high"] == alone["rate"]["high"] and found["stat.q50"]["low"] == alone["stat.q50"]["low"]
        least = LIMIT * count / everything / RATE["value"]
        reached = [one for one in notes if isinstance(one, LinkPerhapsFull)]
        if least >= 1:
            assert found == alone and not reached
            continue
        assert RATE["low"] is not None and found["rate"]["low"] == pytest.approx(least * RATE["low"])
        assert TIME["high"] is not None and found["stat.q50"]["high"] == pytest.approx(TIME["high"] / least)
        assert [one.ranks for one in reached] == [16]
        assert [one.rate for one in reached] == pytest.approx([least * RATE["value"]])


def test_bytes_of_operations_are_those_of_client_nodes(tmp_path: Path) -> None:
    """Of the largest observed scale without think times, on one node where there is one, as ranks of several nodes send
    each other more; each node with its share of the operations. Loopback and servers are left out."""

    def use(moved: float) -> dict[str, Any]:
        return {"kind": "link", "bytes": moved}

    points = []
    for nodes, ranks, each in ((1, 1, 85.0), (1, 2, 80.0), (2, 2, 45.0), (2, 8, 50.0)):
        (directory := tmp_path / f"{ranks}x{nodes}").mkdir()
        resources = {
            "node1 link lan sent": use(each), "node1 link lan received": use(each / 2), "node1 link lo sent": use(9e9),
            "server1 link lan sent": use(8e9), "node1 cpu": {"kind": "cpu"},
        }  # fmt: skip
        phase = {"name": "benchmark", "repeat": 1, "resources": resources}
        document = {"schema_version": 1, "kind": "utilisation", "phases": [phase]}
        (directory / "utilisation.json").write_text(json.dumps(document))
        hosts = ["node1", "node2"][:nodes]
        run = SimpleNamespace(
            path=directory, phase="benchmark", placement=(nodes, ranks // nodes),
            record=SimpleNamespace(environment={"hosts": hosts}),
        )  # fmt: skip
        points += [SimpleNamespace(ranks=ranks, waiting_factor=factor, first=run, runs=[run]) for factor in (0.0, 1.0)]
    several: list[Any] = points[4:]
    largest = {"sent": 100.0, "received": 50.0, "ranks": 8}
    assert link_bytes(several) == largest | {"nodes": 2}
    several_and_one: list[Any] = points
    assert link_bytes(several_and_one) == {"sent": 80.0, "received": 40.0, "ranks": 2, "at_most": largest}
    assert link_bytes(several_and_one, "node") == link_bytes(several), "a lone client answers for itself"
    assert link_bytes(several_and_one, "rank") == link_bytes(several_and_one), "two ranks are two clients"
    one: list[Any] = points[:4]
    assert link_bytes(one) == {"sent": 80.0, "received": 40.0, "ranks": 2}
    assert link_bytes([]) is None


def test_a_full_link_is_what_limits_the_rate() -> None:
    found = full_link(LinkFull("node_bandwidth", 1187.0, 1, 500.0, nodes=2), 84.0)
    assert found["limited_by"] == "links"
    assert found["bottleneck"].startswith("The network cards of 2 client nodes, full of")
    assert "84.0 /s of these operations, 1.19 kB each" in found["links"]

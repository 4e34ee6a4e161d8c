# SPDX-License-Identifier: Apache-2.0
"""A forecast says so where a link is limited and the operations move no bytes over it, on every platform."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from iocast.forecasts.answer import predict
from iocast.forecasts.links import LINKS, REQUEST_BYTES, doubted
from iocast.forecasts.request import resolved
from iocast.platforms.documents import PLATFORMS
from iocast.platforms.fitted import Fitted
from iocast.records.forecast import Ends
from iocast.rules.blend import Question

OPERATIONS = ("stat", "create", "read", "unlink", "pwrite", "pread", "fsync", "readdir")
NODES, LIMIT = 4, 1000.0
RATE: Ends = {"value": 500.0, "low": 400.0, "high": 600.0}
TIME: Ends = {"value": 1e-2, "low": 0.8e-2, "high": 1.2e-2}


def with_limit(name: str, key: str, limit: float = LIMIT) -> Fitted:
    return Fitted.open(name, [(f"network.{key}", f"{limit:g}B/s")])


@pytest.mark.parametrize("name", sorted(file.stem for file in PLATFORMS.glob("*.yaml")))
def test_operations_move_bytes_over_a_limited_link_or_the_forecast_says_so(name: str) -> None:
    for key in LINKS:
        platform = with_limit(name, key)
        system = resolved(platform.best(), name)
        stations = {one for one, spec in system["stations"].items() if spec["per"] != "node"}
        for op in set(OPERATIONS) & set(system["operations"]):
            text = json.dumps(system["operations"][op])
            crosses = any(f'"station": "{station}"' in text for station in stations)
            _, sentences = doubted(platform, system, {op: 1.0}, NODES, {"rate": {**RATE, "value": 1e9}}, None)
            if '"buffer"' not in text:  # whose drains may move them
                assert bool(sentences) == (crosses and '"transfer"' not in text), (key, op, sentences)


@pytest.mark.parametrize(("key", "count"), [("node_bandwidth", NODES), ("server_bandwidth", 1)])
def test_the_interval_reaches_down_to_where_requests_fill_the_link(key: str, count: int) -> None:
    platform = replace(with_limit("network", key), fitted={"campaign": {}})
    system = resolved(platform.best())
    full = LIMIT * count / REQUEST_BYTES
    given = {"rate": RATE, "stat.q50": TIME}
    found, sentences = doubted(
        platform, system, {"stat": 0.5, "create": 0.0, "unlink": 0.5}, NODES, given, Question(8, 4)
    )
    assert len(sentences) == 1 and "stat, unlink send" in sentences[0] and "create" not in sentences[0]
    assert found["rate"] == {**RATE, "low": full}
    assert found["stat.q50"]["high"] == pytest.approx(TIME["value"] * RATE["value"] / full)
    assert found["stat.q50"]["value"] == TIME["value"] and found["stat.q50"]["low"] == TIME["low"]


@pytest.mark.parametrize("edits", [[], [("stations.server.servers", 4)], [("network.node_bandwidth", "10GB/s")]])
def test_links_that_are_wide_or_as_measured_change_nothing(edits: list[tuple[str, Any]]) -> None:
    platform = replace(Fitted.open("network", edits), fitted={"campaign": {}})
    given = {"rate": RATE, "stat.q50": TIME}
    assert doubted(platform, resolved(platform.best()), {"stat": 1.0}, NODES, given, Question(8, 4)) == (given, [])


def test_a_forecast_prints_the_note() -> None:
    settings = {"iterations": "5", "objects": "5"}
    notes = [
        [text for text in predict(one, "md-workbench", settings, 2, 2)["warnings"] if "no bytes of requests" in text]
        for one in (with_limit("lustre", "server_bandwidth"), Fitted.open("lustre", []))
    ]
    assert len(notes[0]) == 1 and "stat" in notes[0][0] and not notes[1]

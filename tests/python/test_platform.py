# SPDX-License-Identifier: Apache-2.0
"""Edits of platform documents by path, and what runs tell of platforms."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iocast.ground import binaries
from iocast.errors import InputError
from iocast.platforms.documents import holds, set_path


def test_paths_reach_into_lists() -> None:
    document = {
        "operations": {
            "create": {"open": [{"delay": "rtt"}, {"limit": "rpcs", "steps": [{"station": "mds", "lock_share": 0.3}]}]}
        }
    }
    path = "operations.create.open.1.steps.0.lock_share"
    assert holds(document, path) and not holds(document, "operations.create.open.2.steps")
    set_path(document, path, 0.5)
    assert document["operations"]["create"]["open"][1]["steps"][0]["lock_share"] == 0.5


@pytest.mark.parametrize("path", ["operations.2.delay", "operations.x.delay", "operations.0", "operations.1.delay"])
def test_a_list_has_only_the_entries_that_are_there(path: str) -> None:
    document = {"operations": [{"delay": "rtt"}, "rtt"]}
    with pytest.raises(InputError, match=r"leads into a list"):
        set_path(document, path, 1)
    assert document == {"operations": [{"delay": "rtt"}, "rtt"]}


def test_every_law_has_its_quantiles_and_names_are_free(tmp_path: Path) -> None:
    """Also within drains, and whatever a buffer is called; only where they are requested."""
    file = tmp_path / "p.yaml"
    file.write_text(
        "schema_version: 1\nextends: queue\nbuffers:\n  quantiles: {capacity: 1GiB, drain: [{delay: 3ms}]}\n  other:"
        " {capacity: 1GiB, drain: [{delay: {law: exponential, mean: 1ms}}]}\noperations:\n  fsync: [{flush: quantiles},"
        " {flush: other}]\n"
    )
    reported = binaries.resolve_platform(file)
    assert list(reported["buffers"]) == ["quantiles", "other"]
    assert reported["buffers"]["quantiles"]["drain"][0]["delay"]["quantiles"] == [0.003] * 1001
    exponential = reported["buffers"]["other"]["drain"][0]["delay"]["quantiles"]
    assert len(exponential) == 1001 and exponential[500] == pytest.approx(1e-3 * math.log(2))
    assert len(json.dumps(reported).split('"quantiles": [')) == len(
        json.dumps(reported).split('"law"')
    )  # every law has some
    plain = binaries.run_json([binaries.find("iocast-sim"), "--describe", str(file), "--json"])
    assert list(plain["buffers"]) == ["quantiles", "other"] and plain["buffers"]["other"]["drain"][0][
        "delay"
    ].keys() == {"law", "mean", "variance"}


def test_a_run_tells_what_its_failures_cost(simulate: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    """A rank whose only server is away for a second loses that second, less the requests that it had not sent yet."""
    (tmp_path / "p.yaml").write_text(
        "schema_version: 1\nextends: queue\nfailures: {f: {station: server, at: 1s, length: 1s}}\n"
    )
    settings = ("--set", "phases=benchmark", "--set", "datasets=1", "--set", "objects=2000", "--set", "iterations=2000")
    run, usual = (simulate(p, *settings, "--ppn", 4) for p in (tmp_path / "p.yaml", "queue"))
    failed, whole = run["phases"][0], usual["phases"][0]
    visits = failed["stations"]["server"]["operations"].values()
    assert sum(v["replays"] for v in visits) == 4
    assert sum(v["visits"] * v["lost"] for v in visits) == pytest.approx(4, rel=0.01)
    assert failed["seconds"] == pytest.approx(whole["seconds"] + 1, rel=0.02)
    assert failed["operations"] == whole["operations"]
    assert not any("lost" in v for v in whole["stations"]["server"]["operations"].values())

# SPDX-License-Identifier: Apache-2.0
"""An operation that nothing measured takes the times of a like one that was, under its own name, and is no less unknown
for that: it is named, and without an interval, until somebody sets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from forked import Iocast

from iocast.calibrate.recipe import family_document, read_recipe
from iocast.calibrate.stand_ins import ALIKE, StandIn, stand_ins
from iocast.ground import binaries
from iocast.platforms.documents import Document, get_path
from iocast.platforms.fitted import Fitted
from iocast.platforms.unmeasured import in_place, unmeasured
from iocast.runs.run_directory import Run, group

FAMILIES = ("network", "lustre", "nfs", "cephfs", "beegfs", "local", "service", "fuse")
SMALL = {
    "md-workbench": ("--set", "datasets=2", "--set", "objects=10", "--set", "iterations=10"),
    "postmark": ("--set", "number=6", "--set", "transactions=30"),
}
POSTMARK = ("--workload", "postmark", "--set", "number=6", "--set", "transactions=30", "--nodes", "1", "--ppn", "4")
LAW = {"law": "empirical", "probabilities": [0.0, 1.0], "values": ["3ms", "5ms"]}


@pytest.mark.parametrize("workload", SMALL)
@pytest.mark.parametrize("platform", FAMILIES)
def test_only_what_was_measured_stands_in_and_only_for_what_was_not(
    platform: str, workload: str, simulate: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """Whatever was measured; and the platform with it is one that the programs take."""
    simulate(platform, "--workload", workload, *SMALL[workload], "--out", tmp_path / "run")
    (single,) = group([Run(tmp_path / "run")])
    measured = set(single.first.operations)
    recipe, family = read_recipe(platform), family_document(platform)
    found = stand_ins(recipe, single, family)
    assert found and {one.like.partition(".")[0] for one in found} <= measured
    assert not {one.tag.partition(".")[0] for one in found} & measured
    document: Document = {"schema_version": 1, "extends": platform, "demands": {one.like_demand: LAW for one in found}}
    for one in found:
        assert one.like in ALIKE[one.tag]
        one.put(document, family)
        assert one.path(document) == f"demands.{one.demand}" and document["demands"][one.demand] == LAW
    (file := tmp_path / "platform.yaml").write_text(yaml.safe_dump(document))
    assert {one.tag.partition(".")[0] for one in found} <= set(binaries.resolve_platform(str(file))["operations"])
    recipe.facts[f"demands.{found[0].demand}"] = "1ms"
    assert found[0] not in stand_ins(recipe, single, family)  # its owner knows it


def test_bytes_are_its_own() -> None:
    """An access moves as many bytes as it has, whatever the other one moved."""
    family = family_document("network")
    fixed = read_recipe("network").fixed["operations.create.write"]
    for create in (fixed, family["operations"]["create"]["write"]):
        document: Document = {"demands": {"create.write": LAW}, "operations": {"create": {"write": create}}}
        StandIn("pwrite", "pwrite", "create.write", "create.write").put(document, family)
        route = document["operations"]["pwrite"]
        assert [step for step in route if "transfer" in step] == [{"transfer": "write", "station": "server"}]
        assert {"station": "server", "demand": "pwrite"} in route


def test_a_stand_in_leaves_in_caches_what_it_did_itself() -> None:
    """And not what the other one leaves there; what the other one waits for is its own as well."""
    family, own, other = family_document("network"), {"cache": "own"}, {"forget": "own", "of": "elsewhere"}
    called = {**other, "recall": [{"delay": "back"}]}
    document: Document = {
        "demands": {"append.write": LAW},
        "operations": {
            "append": {"write": [{"station": "server", "demand": "append.write"}, other, called]},
            "pwrite": [{"station": "server", "demand": "pwrite"}, own],
        },
    }
    StandIn("pwrite", "pwrite", "append.write", "append.write").put(document, family)
    route = [step for step in document["operations"]["pwrite"] if "transfer" not in step]
    assert route == [{"station": "server", "demand": "pwrite"}, called, own]


def test_where_a_structure_left_the_demand_out_the_route_is_named() -> None:
    """As where each operation is several requests of another law."""
    family, part = family_document("network"), {"station": "server", "demand": "part"}
    document: Document = {"demands": {"part": LAW}, "operations": {"read": {"open": [part, part]}}}
    one = StandIn("open", "open", "read.open", "read.open")
    one.put(document, family)
    assert document["operations"]["open"] == [part, part] and one.path(document) == "operations.open"


def test_several_nodes_may_ask_where_no_server_is_visited() -> None:
    """A part that a client does by itself stands in for an operation that is nothing but this part."""
    document: Document = {"demands": {"read.close": LAW}, "operations": {"read": {"close": [{"delay": "read.close"}]}}}
    StandIn("close", "close", "read.close", "read.close").put(document, family_document("network"))
    assert document["operations"]["close"] == [{"delay": "close"}] and get_path(document, "serves.node_local") == [
        "close"
    ]


def test_a_stand_in_is_named_and_has_no_interval_until_it_is_set(fitted: Path, iocast: Iocast, tmp_path: Path) -> None:
    document = yaml.safe_load(fitted.read_text())
    standing = document["fitted"]["stand_ins"]
    assert standing["demands.open"] == "read.open" and document["demands"]["open"] == document["demands"]["read.open"]

    def forecast(platform: Path, *options: str) -> dict[str, Any]:
        done = iocast("predict", platform, *POSTMARK, "--json", *options)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    plain = forecast(fitted)
    assert "demands.open" in plain["rests_on"]["open"] and plain["quantities"]["rate"]["low"] is None
    (caution,) = [one for one in plain["cautions"] if one["code"] == "rests-on-family"]
    assert caution["in_place"]["demands.open"] == "read.open" and "demands.open has the times of read.open" in str(
        plain
    )
    printed = iocast("predict", fitted, *POSTMARK).stdout
    assert "not known" in printed and " % intervals" not in printed and "Intervals rest on" not in printed
    slow = forecast(fitted, "--edit", "demands.open=20ms")
    assert slow["quantities"]["rate"]["value"] < plain["quantities"]["rate"]["value"] / 2
    assert "demands.open" not in str(slow["rests_on"])
    (tmp_path / "upon.yaml").write_text(f"schema_version: 1\nextends: {fitted}\ndemands: {{open: 20ms}}\n")
    assert forecast(tmp_path / "upon.yaml")["rests_on"] == slow["rests_on"]
    paths = {path for named in plain["rests_on"].values() for path in named}
    edits = [f"--edit={path}={'1GB/s' if path.endswith('bandwidth') else '10us'}" for path in sorted(paths)]
    assert not forecast(fitted, *edits)["rests_on"]
    # A stand-in that is a route, and one where somebody has set the number that it had.
    document["fitted"]["stand_ins"] = {"operations.open": "read.open"}
    (tmp_path / "route.yaml").write_text(yaml.safe_dump(document))
    platform = Fitted.open(str(tmp_path / "route.yaml"))
    rests = unmeasured(platform, ["open", "stat"])
    assert rests == {"open": ["operations.open"]} and in_place(platform, rests) == {"operations.open": "read.open"}
    assert not unmeasured(Fitted.open(str(tmp_path / "route.yaml"), [("operations.open", [])]), ["open"])
    for damaged in ([], {"demands.open": 3}, "read.open"):
        document["fitted"]["stand_ins"] = damaged
        (tmp_path / "damaged.yaml").write_text(yaml.safe_dump(document))
        done = iocast("predict", tmp_path / "damaged.yaml", *POSTMARK)
        assert done.returncode == 2 and ("stand_ins is" in done.stderr or not damaged), done.stderr

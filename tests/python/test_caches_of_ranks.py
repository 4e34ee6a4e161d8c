# SPDX-License-Identifier: Apache-2.0
"""Caches of ranks: each process has its own, as with a client library, so that where ranks are makes no difference."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from iocast import analytic
from iocast.errors import InputError
from iocast.ground import binaries

LOOKED, MADE, REMOVED = 10e-3, 1e-3, 1e-3
"""Seconds at the one server: of a stat of an object of another client, of a create, of an unlink."""
PLATFORM: dict[str, Any] = {
    "schema_version": 1,
    "stations": {"server": {"servers": 1}},
    "caches": {"held": {"per": "rank", "objects": 1000000}},
    "operations": {
        "stat": [{"cache": "held", "miss": [{"station": "server", "demand": f"{LOOKED}s"}]}],
        "create": {
            "open": [{"station": "server", "demand": f"{MADE}s"}],
            "write": [],
            "close": [{"forget": "held", "of": "elsewhere"}, {"cache": "held"}],
        },
        "read": {"open": [], "read": [], "close": []},
        "unlink": [{"station": "server", "demand": f"{REMOVED}s"}, {"forget": "held", "of": "everywhere"}],
        "mkdir": [],
        "rmdir": [],
    },
}


def _benchmark(
    place: Path, owner: str, nodes: int, per_node: int, platform: dict[str, Any] = PLATFORM
) -> dict[str, Any]:
    file = place / f"{owner}.yaml"
    file.write_text(yaml.safe_dump(platform | {"caches": {"held": {"per": owner, "objects": 1000000}}}))
    command = [binaries.find("iocast-sim"), "--platform", str(file), "--nodes", str(nodes), "--ppn", str(per_node)]
    run = binaries.run_json([*command, "--json"])
    phase: dict[str, Any] = next(one for one in run["phases"] if one["name"] == "benchmark")
    return phase


def _answer(phase: dict[str, Any]) -> Any:
    return phase["rate"], phase["caches"], {op: one["mean"] for op, one in phase["latency"].items()}


def test_ranks_with_caches_of_their_own_are_like_nodes(tmp_path: Path) -> None:
    of_nodes = _answer(_benchmark(tmp_path, "node", 4, 1))
    assert _answer(_benchmark(tmp_path, "rank", 4, 1)) == of_nodes
    assert _answer(_benchmark(tmp_path, "rank", 1, 4)) == of_nodes
    assert _answer(_benchmark(tmp_path, "node", 1, 4)) != of_nodes  # one client, which made all of it
    assert _answer(_benchmark(tmp_path, "rank", 1, 1)) == _answer(_benchmark(tmp_path, "node", 1, 1))


def test_all_objects_are_of_others_where_ranks_are_many(tmp_path: Path) -> None:
    """16 ranks with ten datasets each: none comes back to its own, so that a full server has four operations in this
    time."""
    phase = _benchmark(tmp_path, "rank", 4, 4)
    assert phase["caches"]["held"]["hits"] == 0
    assert phase["rate"] == pytest.approx(4 / (LOOKED + MADE + REMOVED), rel=0.01)


BACK = 20e-3
CALL = {"forget": "held", "of": "elsewhere", "recall": [{"station": "call", "demand": f"{BACK}s"}]}
CALLED = PLATFORM | {
    "stations": PLATFORM["stations"] | {"call": {"servers": 1000}},  # for whom nobody waits
    "operations": PLATFORM["operations"] | {"stat": [CALL]},
}


@pytest.mark.parametrize(
    ("owner", "nodes", "per_node", "called"), [("node", 16, 1, 1), ("rank", 4, 4, 1), ("node", 1, 16, 0)]
)
def test_what_a_client_has_alone_is_called_back(
    owner: str, nodes: int, per_node: int, called: int, tmp_path: Path
) -> None:
    """Each stat of another client's object takes the time of that, and none of the client's own."""
    phase = _benchmark(tmp_path, owner, nodes, per_node, CALLED)
    own = _benchmark(tmp_path, owner, 1, 1, CALLED)
    assert phase["latency"]["stat"]["mean"] == pytest.approx(called * BACK, abs=1e-6)
    assert own["latency"]["stat"]["mean"] == pytest.approx(0, abs=1e-6)
    looked, removed = (phase["by_operation"][op]["count"] for op in ("stat", "unlink"))
    # who has looked has it no longer alone; else its maker has, until it is removed
    assert phase["caches"]["held"]["taken"] == (looked if called else removed)


def test_the_solver_takes_all_as_called_back_and_refuses_what_is_looked_at_twice(tmp_path: Path) -> None:
    """By the rate of 8 ranks that wait for nothing else; each other client has the object."""
    file = tmp_path / "called.yaml"
    file.write_text(yaml.safe_dump(CALLED))
    platform = binaries.resolve_platform(file)
    found = analytic.solve(platform, {"stat": 1.0}, 2, 4, 0, 1000, objects=1000)
    assert found.rate == pytest.approx(8 / BACK)
    assert any("'held'" in one and "calls its own back" in one for one in found.left_out)
    alone = analytic.solve(platform, {"stat": 1.0, "create": 1.0}, 1, 1, 0, 1000, objects=1000)
    assert alone.rate == pytest.approx(2 / MADE)  # from nobody
    assert not any("'held'" in one for one in alone.left_out)
    with pytest.raises(InputError, match="calls back what others have .*--solver simulate"):
        analytic.solve(platform, {"stat": 1.0}, 2, 4, 0, 1001, objects=1000)


def test_pages_are_called_back_whatever_routes_are_lent(tmp_path: Path) -> None:
    """A directory goes the way of a file that is opened. Nobody has pages of it."""
    opened = [{"station": "server", "demand": f"{MADE}s"}, CALL | {"forget": "pages"}]
    create = {"open": opened, "write": [], "close": [{"cache": "held"}]}
    routes = {op: route for op, route in PLATFORM["operations"].items() if op != "mkdir"} | {"create": create}
    caches = PLATFORM["caches"] | {"pages": {"per": "node", "capacity": "1GiB", "page": "4KiB"}}
    file = tmp_path / "pages.yaml"
    file.write_text(yaml.safe_dump(CALLED | {"operations": routes, "caches": caches}))
    command = [binaries.find("iocast-sim"), "--platform", str(file), "--workload", "mdtest", "--set", "items=5"]
    run = binaries.run_json([*command, "--nodes", "2", "--json"])
    made = {phase["name"]: phase["latency"] for phase in run["phases"] if phase["name"].endswith("-create")}
    for name, op in (("directory-create", "mkdir"), ("file-create", "create")):
        assert made[name][op]["max"] < BACK

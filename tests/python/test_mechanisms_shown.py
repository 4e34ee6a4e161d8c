# SPDX-License-Identifier: Apache-2.0
"""Structures beyond a family's own choices: each is found where it is the truth, by what the measurements show of it or
by what nothing else explains, and forecasts beyond them hold."""

import copy
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from schedule import mostly_long

from iocast.ground import binaries
from iocast.calibrate import own_work, reading, search, structures
from iocast.calibrate.recipe import family_document, read_recipe
from iocast.calibrate.structure_search import Search
from iocast.calibrate.structures import in_turn, recalled, seen, several
from iocast.calibrate.trace import Trace
from iocast.calibrate.fit import calibrate
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict
from iocast.platforms.documents import dump
from iocast.runs.run_directory import Point, Run, group

FAMILY = """
schema_version: 1
stations: {server: {servers: 16}}
demands:
  look: {law: lognormal, mean: 600us, sigma: 0.3}
  fetch: {law: lognormal, mean: 800us, sigma: 0.3}
  drop: {law: lognormal, mean: 1200us, sigma: 0.3}
  make: {law: lognormal, mean: 1500us, sigma: 0.3}
operations:
  stat: [{station: server, demand: look}]
  read: {open: [{station: server, demand: fetch}], read: [], close: []}
  unlink: [{station: server, demand: drop}]
  create: {open: [{station: server, demand: make}], write: [], close: []}
  mkdir: []
  rmdir: []
  open: []
  pwrite: []
  close: []
calibration:
  laws: {look: stat, fetch: read.open, drop: unlink, make: create.open}
  choices:
    threads: {unlimited: {unlimited: server}, 1: {edit: {stations: {server: {servers: 1}}}},
      2: {edit: {stations: {server: {servers: 2}}}}}
"""
ONE = {"station": "server", "demand": "look"}
MINE = {"station": "mine", "demand": "mine"}
LATER = {"delay": "later"}
TRUTHS: dict[str, dict[str, Any]] = {
    "requests in turn": {
        "stations": {"server": {"servers": 1}},
        "operations": {"read": {"open": [ONE] * 2}, "unlink": [ONE] * 2, "create": {"open": [ONE] * 3}},
    },
    "unlink last": {"stations": {"server": {"servers": 2, "priority": ["rest", ["unlink"]]}}},
    "newest first": {"stations": {"server": {"servers": 2, "waiting": "newest-first"}}},
    "slow answers elsewhere": {
        "stations": {"server": {"servers": 2}},
        "demands": {
            "late": {
                "law": "mixture",
                "parts": [
                    {"weight": 0.97, "law": "constant", "value": "0s"},
                    {"weight": 0.03, "law": "lognormal", "mean": "30ms", "sigma": 0.1},
                ],
            }
        },
        "operations": {
            "stat": [ONE, {"delay": "late"}],
            "unlink": [{"station": "server", "demand": "drop"}, {"delay": "late"}],
            "read": {"open": [{"station": "server", "demand": "fetch"}, {"delay": "late"}]},
            "create": {"open": [{"station": "server", "demand": "make"}, {"delay": "late"}]},
        },
    },
    "every second node slower": {
        "clients": {"slow_nodes": {"share": 0.5, "factor": 3000, "station": "mine"}},
        "stations": {"server": {"servers": 2}, "mine": {"per": "node", "servers": 1}},
        "demands": {"mine": "1us"},
        "operations": {
            "stat": [ONE, MINE],
            "unlink": [{"station": "server", "demand": "drop"}, MINE],
            "read": {"open": [{"station": "server", "demand": "fetch"}, MINE]},
            "create": {"open": [{"station": "server", "demand": "make"}, MINE]},
        },
    },
    "stat recalled from other": {
        "stations": {"server": {"servers": 2}},
        "caches": {"own": {"objects": 1000000}},
        "demands": {"look": {"law": "lognormal", "mean": "20us", "sigma": 0.3}, "called": "1ms", "back": "8ms"},
        "operations": {
            "stat": [
                {"delay": "look"},
                {"cache": "own", "miss": [{"station": "server", "demand": "called"}, {"delay": "back"}]},
            ],
            "create": {
                "open": [{"station": "server", "demand": "make"}],
                "close": [{"forget": "own", "of": "elsewhere"}, {"cache": "own"}],
            },
            "unlink": [{"station": "server", "demand": "drop"}, {"forget": "own", "of": "everywhere"}],
        },
    },
    "objects on 4 servers of 1": {"stations": {"server": {"count": 4, "spread": "object", "servers": 1}}},
    "parts at 4 servers of 1": {
        "stations": {"server": {"count": 4, "servers": 1}},
        "operations": {
            "stat": [ONE | {"stripes": 4}],
            "read": {"open": [{"station": "server", "demand": "fetch", "stripes": 4}]},
            "unlink": [{"station": "server", "demand": "drop", "stripes": 4}],
            "create": {"open": [{"station": "server", "demand": "make", "stripes": 4}]},
        },
    },
    "modifying: a delay beside 2 servers": {
        "stations": {"server": {"servers": 2}},
        "demands": {"later": {"law": "lognormal", "mean": "4ms", "sigma": 0.1}},
        "operations": {
            "unlink": [{"station": "server", "demand": "drop"}, LATER],
            "create": {"open": [{"station": "server", "demand": "make"}, LATER]},
        },
    },
}


def _rate(platform: Path, ranks: int, seed: int, out: Path | None = None) -> float:
    """Operations a second; as iocast-bench would record it in `out`."""
    iterations = 300 if ranks == 1 else 100
    command = [binaries.find("iocast-sim"), "--platform", str(platform), "--nodes", str(ranks), "--json"]
    command += [word for name in ("objects", "iterations") for word in ("--set", f"{name}={iterations}")]
    run = binaries.run_json([*command, "--seed", str(seed), *(["--out", str(out)] if out else [])])
    return float(next(phase["rate"] for phase in run["phases"] if phase["name"] == "benchmark"))


def _measured(platform: Path, scales: tuple[int, ...], place: Path) -> list[Point]:
    for n in scales:
        _rate(platform, n, n, place / str(n))
    return group([Run(place / str(n)) for n in scales])


ALWAYS = ("requests in turn", "newest first", "stat recalled from other", "objects on 4 servers of 1")


@pytest.mark.parametrize("true", mostly_long(TRUTHS, ALWAYS, "a calibration each; of each kind of evidence one runs"))
def test_a_structure_that_no_choice_has_is_found(true: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "ENOUGH_OPERATIONS", 1200)
    clients: list[str] = []
    monkeypatch.setattr(reading, "link_bytes", lambda _, called_back_from: clients.append(called_back_from))
    (tmp_path / "family.yaml").write_text(FAMILY)
    truth = tmp_path / "truth.yaml"
    truth.write_text(yaml.safe_dump({"schema_version": 1, "extends": "family.yaml"} | TRUTHS[true]))
    ungrounded = re.search("delay|servers of", true)  # what a misfit alone leads to needs four scales
    scales = (1, 4, 8, 16) if ungrounded else (1, 4, 8)
    document = calibrate(_measured(truth, scales, tmp_path), str(tmp_path / "family.yaml"), 0, lambda *_: None)
    found = document["fitted"]["structure"][structures.CHOICE]
    assert found.startswith(true)
    called_back = re.match(f"{CALLED} (node|rank)s", found)
    # before it, that of the calibration that holds a scale out
    assert clients[-1] == (called_back[1] if called_back else ""), "whose bytes are not those of several"
    fitted = tmp_path / "fitted.yaml"
    fitted.write_text(dump(document))
    forecast = predict(Fitted.open(str(fitted)), None, {"objects": "100", "iterations": "100"}, 32, 1)
    assert forecast["quantities"]["rate"]["value"] == pytest.approx(_rate(truth, 32, 99), rel=0.06)


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Search:
    """Operations that are multiples of the shortest one: an unlink of three requests, a call of two."""
    place = tmp_path_factory.mktemp("calls")
    request = {"station": "server", "demand": "make"}
    truth = copy.deepcopy(TRUTHS["stat recalled from other"])
    truth["operations"]["unlink"][:1] = [request] * 3
    truth["operations"]["stat"][1]["miss"][:1] = [request] * 2
    truth["operations"]["read"] = {"open": [request]}
    del truth["demands"]["called"]
    truth["demands"]["back"] = "20ms"
    (place / "family.yaml").write_text(FAMILY)
    file = place / "truth.yaml"
    file.write_text(yaml.safe_dump({"schema_version": 1, "extends": "family.yaml"} | truth))
    points = _measured(file, (1, 4, 16), place)
    return Search(read_recipe(str(place / "family.yaml")), points, 0, lambda *_: None, Trace(None))


CALLED = "stat recalled from other"
OF_NODES_AND_RANKS = [f"{CALLED} nodes", f"{CALLED} nodes, requests in turn"] + [
    f"{CALLED} ranks", f"{CALLED} ranks, requests in turn"
]  # fmt: skip
"""Simulated runs tell no backend."""


def test_a_call_has_as_many_requests_as_a_full_server_has_time_for(calls: Search) -> None:
    found = calls.seen
    assert found is not None
    assert [one.name for one in recalled.shown(found)] == OF_NODES_AND_RANKS
    assert recalled._turns(found, ["look"]) == ({"make": 1, "fetch": 1, "drop": 3}, 2)
    before, last = found.closed
    rate = 4 * before.value("rate")
    idle: Any = SimpleNamespace(first=last.first, ranks=last.ranks, waiting_factor=0.0, value=lambda _: rate)
    # a server that isn't full has time for any number
    assert recalled._turns(replace(found, closed=[before, idle]), ["look"]) == ({}, 1)


def test_calls_show_at_any_scale_and_in_whole_operations(calls: Search) -> None:
    found = calls.seen
    assert found is not None
    silent: Any = SimpleNamespace(
        first=found.closed[0].first, ranks=2, waiting_factor=0.0, has=lambda _: False, value=lambda _: 100.0
    )
    other = replace(found, closed=[silent, *found.closed])
    assert [one.name for one in recalled.shown(other)] == OF_NODES_AND_RANKS
    point = found.closed[0]
    assert not recalled._options(found, lambda *_: {"make"}, 1)  # what is made now nobody has had before
    whole = recalled._waits(replace(found, tags={"make": "create"}), point)
    assert whole == {"make": point.value("create.q75") - found.alone["make"]}


def test_requests_of_a_call_lose_what_the_network_takes_of_all(calls: Search) -> None:
    assert calls.seen is not None
    option = next(one for one in recalled.shown(calls.seen) if one.name.endswith("in turn"))
    document: dict[str, Any] = {"demands": {name: law | {"shift": "-1us"} for name, law in calls.seen.laws.items()}}
    assert option.rewrite is not None
    option.rewrite(document)
    fewest = in_turn.fewest(calls.seen, {"make": 1, "fetch": 1, "drop": 3})
    assert document["demands"][recalled.CALL] == document["demands"][fewest]
    assert document["demands"][recalled.CALL]["shift"] == "-1us"


def test_a_client_answers_of_its_own_directories(calls: Search, tmp_path: Path) -> None:
    """As of its own files; those of another one are called back."""
    assert calls.seen is not None
    option = next(one for one in recalled.shown(calls.seen) if one.name.endswith("nodes"))
    document = calls.build([option], {recalled.CALL: 1e-3, recalled.AWAITED: 1e-3})
    lending = copy.deepcopy(document)  # of which directories go the way of files
    for op in ("mkdir", "rmdir"):
        del lending["operations"][op]
    lending["extends"] = str(tmp_path / "family.yaml")
    (tmp_path / "family.yaml").write_text(FAMILY.replace("  mkdir: []\n  rmdir: []\n", ""))
    (tmp_path / "calls.yaml").write_text(dump(document))
    (tmp_path / "lending.yaml").write_text(dump(lending))

    def command(platform: str) -> list[str]:
        file = str(tmp_path / f"{platform}.yaml")
        return [binaries.find("iocast-sim"), "--platform", file, "--workload", "mdtest", "--json"]

    for platform, nodes, stride, share in (
        *(("calls", nodes, stride, share) for nodes, stride, share in ((1, 0, 1.0), (2, 0, 1.0), (2, 1, 0.0))),
        *(("lending", nodes, stride, share) for nodes, stride, share in ((1, 0, 1.0), (2, 1, 0.0))),
    ):
        settings = ["--set", "items=50", f"stride={stride}"]
        run = binaries.run_json([*command(platform), "--nodes", str(nodes), *settings])
        for name in ("directory-stat", "file-stat"):
            caches = next(phase for phase in run["phases"] if phase["name"] == name)["caches"]
            known, held = caches[recalled.KNOWN], caches[recalled.HELD]
            assert known["lookups"] == 50 * nodes and known["hits"] == share * 50 * nodes
            assert held["taken"] == (1 - share) * 50 * nodes
    # objects of several clients are called back once, and those that nobody made not at all
    shared = ["--nodes", "4", "--set", "items=50", "shared_files=true", "files_only=true", "write_size=1B"]
    for phases, missed, taken in (("create,stat,remove", 3, 1), ("stat", 4, 0)):
        run = binaries.run_json([*command("calls"), *shared, f"phases={phases}"])
        caches = next(phase for phase in run["phases"] if phase["name"] == "file-stat")["caches"]
        known, held = caches[recalled.KNOWN], caches[recalled.HELD]
        assert (known["lookups"] - known["hits"], held["taken"]) == (missed * 50, taken * 50)


@pytest.mark.parametrize(
    ("close", "others", "own"),
    [
        ([LATER], {}, ["create"]),  # at a busy server it takes long, and doesn't wait
        ([{"station": "server", "demand": "later"}], {}, []),  # it waits as all do
        ([LATER], {"stations": {"server": {"servers": 64}}}, []),  # nobody waits, so nothing tells
        ([{"delay": "500ns"}], {"stations": {"server": {"servers": 64}}}, ["create"]),  # but no request is as short
    ],
)
def test_a_part_that_needs_no_server_doesn_t_wait_there(
    close: list[Any], others: dict[str, Any], own: list[str], tmp_path: Path
) -> None:
    """Though the family has it visit the server."""
    family = yaml.safe_load(FAMILY)
    family["demands"]["later"] = "1ms"
    family["operations"]["create"]["close"] = [{"station": "server", "demand": "later"}]
    family["calibration"]["laws"]["later"] = "create.close"
    (tmp_path / "family.yaml").write_text(yaml.safe_dump(family))
    true = {"schema_version": 1, "extends": "family.yaml", "stations": {"server": {"servers": 2}}} | others
    (tmp_path / "truth.yaml").write_text(yaml.safe_dump(true | {"operations": {"create": {"close": close}}}))
    points = _measured(tmp_path / "truth.yaml", (1, 16), tmp_path)
    named = str(tmp_path / "family.yaml")
    found = own_work.routes(points, points[0], read_recipe(named), family_document(named))
    assert found == {f"operations.{op}.close": [{"delay": "later"}] for op in own}


def test_what_nodes_answer_themselves_is_simulated_on_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measurements of several nodes declare it; without a declaration several nodes are refused, and all structures
    would be as far off."""
    monkeypatch.setattr(search, "ENOUGH_OPERATIONS", 1200)
    (tmp_path / "family.yaml").write_text(FAMILY)
    true = {"stations": {"server": {"servers": 2}}, "operations": {"stat": [{"delay": "look"}]}}
    truth, fitted = tmp_path / "truth.yaml", tmp_path / "fitted.yaml"
    local = {"serves": {"node_local": ["stat"]}}
    truth.write_text(yaml.safe_dump({"schema_version": 1, "extends": "family.yaml"} | true | local))
    document = calibrate(_measured(truth, (1, 4, 8), tmp_path), str(tmp_path / "family.yaml"), 0, lambda *_: None)
    assert document["fitted"]["structure"]["threads"] == "2" and document["serves"] == local["serves"]
    assert not [note for note in document["fitted"]["notes"] if note.startswith(("Misfit", "Alarm"))]
    fitted.write_text(dump(document))
    forecast = predict(Fitted.open(str(fitted)), None, {"objects": "100", "iterations": "100"}, 32, 1)
    assert forecast["quantities"]["rate"]["value"] == pytest.approx(_rate(truth, 32, 99), rel=0.06)


def test_a_draw_of_another_structure_has_no_demand_that_nothing_uses() -> None:
    """A platform file that has one is refused."""
    law = {"law": "empirical", "probabilities": [0.0, 1.0], "values": ["1ms", "2ms"]}
    document = {"extends": "family", "demands": {"look": law, "look_elsewhere": law}}
    fitted = Fitted(
        Path("family"), {"draws": [{"demands": {"look": {"scale": 2.0}, "look_elsewhere": None}}]}, [document], []
    )
    (draw,) = fitted.draws()
    assert draw["demands"] == {"look": law | {"scale": 2.0}}


def test_parts_at_several_servers_leave_no_lock_that_nothing_holds() -> None:
    """A platform that declares one is refused, and with it the calibration of a server with one lock."""
    law = {"law": "empirical", "probabilities": [0.0, 0.5, 1.0], "values": ["1ms", "2ms", "3ms"]}
    steps = [{"station": "server", "demand": "drop", "lock": "directory", "lock_share": 0.3}]
    document: dict[str, Any] = {
        "stations": {"server": {"servers": 2}},
        "demands": {"drop": law},
        "locks": {"directory": {"per": "system"}},
        "operations": {"unlink": steps},
    }
    alone: Any = None  # of the lone rank's runs, which these structures don't look at
    route = {"drop": "operations.unlink"}
    found = seen.Seen("server", {"drop": law}, route, {"drop": "unlink"}, {"drop": 2e-3}, {}, 16, 2.0, {}, alone, [])
    for option in several.options(found):
        changed = copy.deepcopy(document)
        if option.rewrite is not None:
            option.rewrite(changed)
        assert ("locks" in changed) == ("lock" in changed["operations"]["unlink"][0])


class Seen:
    """A point of which means and upper quartiles of parts are known, in milliseconds."""

    waiting_factor = 0.0

    def __init__(self, ranks: int, parts: dict[str, tuple[float, float]]) -> None:
        self.ranks, self.parts = ranks, parts

    def has(self, quantity: str) -> bool:
        return quantity.rpartition(".")[0] in self.parts

    def value(self, quantity: str) -> float:
        part, _, which = quantity.rpartition(".")
        return self.parts[part][("mean", "q75").index(which)] / 1e3


@pytest.mark.parametrize(
    ("read", "others", "own"),
    [
        ((0.4, 0.08), 1.0, ["operations.read.open"]),  # single slow ones raise its mean
        ((0.4, 0.8), 1.0, []),
        ((0.4, 0.08), 0.0, []),  # all of a server that stands still now and then: means grow, quartiles don't
    ],
)
def test_what_few_wait_for_is_no_visit_to_the_server(
    read: tuple[float, float], others: float, own: list[str], tmp_path: Path
) -> None:
    (tmp_path / "family.yaml").write_text(FAMILY)
    named, waiting = str(tmp_path / "family.yaml"), ("create.open", "unlink", "stat")
    alone = {"read.open": (0.04, 0.05)} | dict.fromkeys(waiting, (4.7, 4.7))
    crowded = {"read.open": read} | dict.fromkeys(waiting, (48.0, 4.7 + others * 44))
    points: list[Any] = [Seen(1, alone), Seen(16, crowded)]
    assert list(own_work.routes(points, points[0], read_recipe(named), family_document(named))) == own

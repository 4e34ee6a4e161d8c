# SPDX-License-Identifier: Apache-2.0
"""Which structure a calibration finds, when the truth is one of the family's."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import yaml

from iocast.ground import binaries
from iocast.calibrate import structures
from iocast.calibrate.draws import together
from iocast.calibrate.fit import calibrate
from iocast.calibrate.recipe import Option, Parameter, read_recipe, simplest
from iocast.calibrate.search import Fit
from iocast.calibrate.reading import levels_off
from iocast.calibrate.structure_search import USUAL_MISFIT, Search
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict
from iocast.platforms.documents import dump
from iocast.runs.run_directory import Point, Run, group
from iocast.records.note_of_measurements import ALARMS

FAMILY = """
schema_version: 1
stations: {server: {servers: 16}}
demands:
  make: 2ms
  look: {law: lognormal, mean: 1ms, sigma: 0.1}
  fetch: {law: lognormal, mean: 3ms, sigma: 0.1}
  drop: 1500us
operations:
  create: {open: [{station: server, demand: make}], write: [], close: []}
  stat: [{station: server, demand: look}]
  read: {open: [{station: server, demand: fetch}], read: [], close: []}
  unlink: [{station: server, demand: drop}]
  mkdir: []
  rmdir: []
calibration:
  laws: {make: create.open, look: stat, fetch: read.open, drop: unlink}
  choices:
    threads:
      16: {}
      1: {edit: {stations: {server: {servers: 1}}}}
      2: {edit: {stations: {server: {servers: 2}}}}
      4: {edit: {stations: {server: {servers: 4}}}}
    slowdown:
      contention: {parameters: {contention: {path: stations.server.contention, low: 0.0001, high: 1, start: 0.01}}}
      none: {}
    order: {none: {}, turns: {edit: {stations: {server: {discipline: ps}}}}}
"""


def _measured(truth: Path, ranks: tuple[int, ...]) -> list[Point]:
    """Two runs of this platform at each number of ranks."""
    runs = []
    for n in ranks:
        for repeat in (1, 2):
            out = truth.parent / f"n{n}-{repeat}"
            command = [binaries.find("iocast-sim"), "--platform", str(truth), "--ppn", str(n), "--json"]
            command += ["--set", "datasets=1", "--set", "objects=400", "--set", "iterations=400"]
            binaries.run_json([*command, "--seed", str(10 * n + repeat), "--out", str(out)])
            runs.append(Run(out, "benchmark"))
    return group(runs)


@pytest.mark.long("a calibration; other structures are distinguished always")
def test_two_threads_that_take_turns_are_distinguished_from_many_that_contend(tmp_path: Path) -> None:
    """With many threads, contention makes all operations longer in proportion, much as turns do."""
    (tmp_path / "family.yaml").write_text(FAMILY)
    truth = tmp_path / "truth.yaml"
    truth.write_text(
        yaml.safe_dump(
            {"schema_version": 1, "extends": "family.yaml", "stations": {"server": {"servers": 2, "discipline": "ps"}}}
        )
    )
    fitted = calibrate(_measured(truth, (1, 2, 4, 8)), str(tmp_path / "family.yaml"), 0, lambda *_: None)["fitted"]
    assert (fitted["structure"]["threads"], fitted["structure"]["order"]) == ("2", "turns")
    assert not {one["code"] for one in fitted["cautions"]} & ALARMS


def _searching(choices: dict[str, list[Option]], costs: dict[tuple[str, ...], float]) -> Search:
    """A search in which every structure has this cost, and what is not named a large one; no parameters."""
    search = Search.__new__(Search)
    search.threads, search.counted = None, ""
    search.choices, search.nearest = choices, {}
    search.family = {"stations": {"server": {"servers": 16}}}
    search.recipe, search.seen = SimpleNamespace(priors={}, facts={}), None  # type: ignore[assignment]
    search.largest = 8
    search.unseen, search.levels_off = search._unseen(), False
    search.report = lambda *_: None
    search.targets = [SimpleNamespace(logs=np.zeros(800))]  # type: ignore[list-item]

    def fit(_: object, structure: dict[str, str], *__: object) -> Fit:
        cost = costs.get(tuple(structure.values()), 20 * USUAL_MISFIT)
        return Fit(structure, search.options(structure), [], {}, cost, np.zeros((0, 0)), 1)

    search._fit = fit  # type: ignore[method-assign, assignment]
    return search


@pytest.mark.parametrize(
    ("at_the_trap", "finds"),
    [(10 * USUAL_MISFIT, ("2", "none", "turns")), (0.9 * USUAL_MISFIT, ("16", "contention", "none"))],
)
def test_a_misfit_is_left_for_a_second_search(at_the_trap: float, finds: tuple[str, ...]) -> None:
    """Costs by structure, where from the first one no single step is for the better. A good fit is not left: most
    systems are of their family."""
    costs = {
        ("16", "contention", "none"): at_the_trap,
        ("16", "contention", "turns"): at_the_trap,
        ("2", "none", "turns"): 0.1,
        ("2", "none", "none"): 12 * USUAL_MISFIT,
    }
    names = {"threads": ["16", "2", "4"], "slowdown": ["contention", "none"], "order": ["none", "turns"]}
    search = _searching({choice: [Option(name, {}) for name in options] for choice, options in names.items()}, costs)
    best = search.explore(None)[0]  # type: ignore[arg-type]
    assert tuple(best.structure.values()) == finds
    assert all(any(rival.structure == best.structure for rival in rivals) for rivals in search.rivals.values()), (
        "alternatives are those about the best"
    )


def test_the_best_pair_is_found_behind_a_tie() -> None:
    """Three numbers of threads fit equally well but for noise; only the worst of them gets better by turns."""
    costs = {(threads, "none"): cost for threads, cost in (("2", 0.3), ("4", 0.299), ("3", 0.301), ("1", 0.4))}
    costs |= {("3", "turns"): 0.1, ("2", "turns"): 0.5, ("4", "turns"): 0.5}
    choices = {
        "threads": [Option(name, {}) for name in ("1", "2", "4", "3")],
        "order": [Option("none", {}), Option("turns", {})],
    }
    search = _searching(choices, costs)
    assert search.explore(None)[0].structure == {"threads": "3", "order": "turns"}  # type: ignore[arg-type]
    assert {tuple(fit.structure.values()) for fit in search.rivals["order"]} == {("3", "none"), ("3", "turns")}


@pytest.mark.parametrize(
    ("others", "none", "first", "finds"),
    [
        (0, 0.07, 0.07, "none"),  # an order where nobody waits
        (0, 0.07, 0.052, "none"),  # 100 facts: 2 is a cost of 0.02
        (0, 0.07, 0.048, "stat first"),
        (3, 0.07, 0.048, "none"),  # the best of four, by chance
        (3, 0.07, 0.015, "stat first"),
        (0, 24.0, 23.6, "none"),  # a misfit with each of them
        (0, 24.0, 12.0, "stat first"),
    ],
)
def test_an_order_of_service_must_show_in_the_measurements(others: int, none: float, first: float, finds: str) -> None:
    """It is tried first, and has no parameter to pay for: what chance gives the best of all orders is not enough."""
    orders = ["stat first", *(f"order {number}" for number in range(others))]
    choices = {
        "threads": [Option("2", {}), Option("4", {})],
        structures.CHOICE: [*(Option(name, {}) for name in orders), structures.NONE],
    }
    costs = {("2", name): none for name in (*orders, "none")} | {("2", "stat first"): first}
    search = _searching(choices, costs)
    fits = [search._fit(None, {"threads": "2", structures.CHOICE: name}) for name in (*orders, "none")]  # type: ignore
    assert search.front(fits)[0].structure[structures.CHOICE] == finds


def _threads(*servers: int) -> list[Option]:
    return [
        Option("unlimited", {}, unlimited="server"),
        *(Option(str(n), {"stations": {"server": {"servers": n}}}) for n in servers),
    ]


@pytest.mark.parametrize(("four", "finds"), [(0.3, "unlimited"), (0.295, "unlimited"), (0.2, "4"), (0.4, "unlimited")])
def test_a_number_of_servers_must_show_in_the_measurements(four: float, finds: str) -> None:
    """With 8 ranks nobody waits for one of 8 servers or more: no measurement tells them from no limit, which is likely
    where something else is short, and they are not fitted. Four servers are the answer where they fit better by more
    than the noise of a score."""
    search = _searching({"threads": _threads(4, 8, 64)}, {("unlimited",): 0.3, ("4",): four})
    fits = search.explore(None)  # type: ignore[arg-type]
    assert fits[0].structure["threads"] == finds
    assert {fit.structure["threads"] for fit in fits} == {"unlimited", "4"}
    for search.levels_off, share in ((False, 2.0), (True, 0.125)):
        rivals = search.rivals["threads"]
        weights = dict(zip([fit.structure["threads"] for fit in rivals], search.weights(rivals), strict=True))
        assert weights["8"] == weights["64"] == pytest.approx(share * weights["unlimited"])
        assert set(weights) == {"unlimited", "4", "8", "64"}


def test_where_nobody_waits_order_and_crowding_and_others_do_nothing() -> None:
    """So that they are not tried there, and work of others, who take a share of the servers, is no flood."""
    crowding = Parameter("crowding", "stations.server.crowding", 1e-3, 10.0, 0.1)
    contention = Parameter("contention", "stations.server.contention", 1e-3, 10.0, 0.1)
    others = Parameter("others", "background.others.share", 0.01, 0.4, 0.1)
    work = {"background": {"others": {"station": "server", "share": 0.1, "demand": "look"}}}
    choices = {
        "threads": _threads(4, 16),
        "order": [Option("none", {}), Option("turns", {"stations": {"server": {"discipline": "ps"}}})],
        "slowdown": [
            Option("none", {}),
            Option("crowding", {}, parameters=(crowding,)),
            Option("contention", {}, parameters=(contention,)),
        ],
        "background": [Option("none", {}), Option("others", work, parameters=(others,))],
    }
    search = _searching(choices, {})
    fits = [tuple(fit.structure.values()) for fit in search.explore(None)]  # type: ignore[arg-type]
    free = {tuple(rest) for threads, *rest in fits if threads == "unlimited"}
    assert free == {("none", "none", "none"), ("none", "contention", "none")}
    drawn = {"threads": "unlimited", "order": "turns", "slowdown": "contention", "background": "others"}
    assert simplest(choices, drawn) == {**drawn, "order": "none", "background": "none"}
    assert simplest(choices, {**drawn, "threads": "16"}) == {**drawn, "threads": "16"}, "these may be short beyond"


def _locked() -> dict[str, Any]:
    """The family with a lock of the whole system, and numbers of threads alone to choose from."""
    family: dict[str, Any] = yaml.safe_load(FAMILY)
    family["locks"] = {"journal": {"per": "system"}}
    for step in (family["operations"]["create"]["open"][0], family["operations"]["unlink"][0]):
        step |= {"lock": "journal", "lock_share": 0.4}
    threads: dict[str, Any] = {str(n): {"edit": {"stations": {"server": {"servers": n}}}} for n in (4, 16, 64)}
    family["calibration"]["choices"] = {"threads": {"unlimited": {"unlimited": "server"}, **threads}}
    return family


def test_who_waits_for_a_lock_holds_no_thread_that_nobody_missed(tmp_path: Path) -> None:
    """A lock is what is short at 8 ranks and beyond. With 16 threads, or 64, those who wait for it would hold them all,
    and others would wait tens of times as long."""
    family, truth = tmp_path / "family.yaml", tmp_path / "truth.yaml"
    family.write_text(yaml.safe_dump(_locked(), sort_keys=False))
    many = {"stations": {"server": {"servers": 300}}}
    truth.write_text(yaml.safe_dump({"schema_version": 1, "extends": "family.yaml", **many}))
    tried: list[str] = []
    document = calibrate(_measured(truth, (1, 2, 4, 8)), str(family), 0, lambda what, *_: tried.append(what))
    assert [what for what in tried if what.startswith("threads")] == ["threads unlimited", "threads 4"]
    fitted = tmp_path / "fitted.yaml"
    fitted.write_text(dump(document))
    few = {"iterations": "50", "objects": "50"}
    for ranks in (64, 256):
        answer = predict(Fitted.open(str(fitted)), None, few, 1, ranks)["quantities"]["stat.q50"]
        simulated = binaries.simulate(truth, "md-workbench", {"datasets": "1", **few}, 1, ranks, 1)
        true = next(p for p in simulated["phases"] if p["name"] == "benchmark")["latency"]["stat"]["q50"]
        assert answer["value"] == pytest.approx(true, rel=0.05)
        assert answer["low"] <= true <= answer["high"]
    assert {structure["threads"] for structure in document["fitted"]["draw_structures"]} == {"unlimited", "16", "64"}, (
        "numbers that no measurement rules out"
    )


def test_only_a_station_that_there_is_has_no_limit(tmp_path: Path) -> None:
    family = _locked()
    family["calibration"]["choices"]["threads"]["unlimited"]["unlimited"] = "servers"
    (tmp_path / "family.yaml").write_text(yaml.safe_dump(family))
    with pytest.raises(InputError, match="there is no station 'servers'. Did you mean 'server'?"):
        read_recipe(str(tmp_path / "family.yaml"))


def test_options_that_were_fitted_apart_bring_every_number_that_they_need_together() -> None:
    """Nothing crowds where requests share the servers: two that did so each lack a number that the two together
    need."""
    crowding = Parameter("crowding", "stations.server.crowding", 1e-3, 10.0, 0.1)
    search = Search.__new__(Search)
    search.threads, search.counted = None, ""
    search.recipe = SimpleNamespace(parameters=())  # type: ignore[assignment]
    search.shown, search.thinking = {}, False
    turns, fair = Option("none", {}), Option("turns", {"stations": {"server": {"discipline": "ps"}}})
    slow, fast = Option("crowding", {}, parameters=(crowding,)), Option("none", {})
    search.choices = {"order": [turns, fair], "slowdown": [fast, slow]}

    def fit(order: Option, slowdown: Option, values: dict[str, float]) -> Fit:
        known = [crowding] if values else []
        return Fit(
            {"order": order.name, "slowdown": slowdown.name},
            [order, slowdown],
            known,
            values,
            0.0,
            np.eye(len(known)),
            1,
        )

    best, without, with_it = fit(fair, fast, {}), fit(turns, fast, {}), fit(fair, slow, {})
    for rivals, held in (
        (([best, without, with_it]), 0.1),
        ([best, without, with_it, fit(turns, slow, {"crowding": 5.0})], 5.0),
    ):
        search.rivals = {"order": rivals, "slowdown": rivals}
        _, values = together(search, {"order": without, "slowdown": with_it}, best, np.random.default_rng(1))
        assert crowding.low <= values["crowding"] <= crowding.high and (values["crowding"] == 0.1) == (held == 0.1)


def test_throughput_of_one_scale_has_no_slope() -> None:
    """Where all others had think times: nothing is known of whether it levels off."""
    one = cast("Point", SimpleNamespace(ranks=1, waiting_factor=0, value=lambda _: 100.0))
    thinking = cast("Point", SimpleNamespace(ranks=4, waiting_factor=1, value=lambda _: 400.0))
    flat = cast("Point", SimpleNamespace(ranks=4, waiting_factor=0, value=lambda _: 110.0))
    assert not levels_off([one, thinking]) and levels_off([one, thinking, flat])


def test_a_calibration_section_merges_with_that_of_its_base(tmp_path: Path) -> None:
    """By key, as maps do; a fault is printed with the file that holds it."""
    (tmp_path / "family.yaml").write_text(FAMILY)
    over = tmp_path / "over.yaml"
    head = "schema_version: 1\nextends: family.yaml\n"
    over.write_text(head + "calibration:\n  laws: {drop: null}\n  choices: {order: null, threads: {1: null, 8: {}}}\n")
    base, own = read_recipe(str(tmp_path / "family.yaml")), read_recipe(str(over))
    assert own.laws == {demand: tag for demand, tag in base.laws.items() if demand != "drop"}
    assert list(own.choices) == ["threads", "slowdown"]
    assert [option.name for option in own.choices["threads"]] == ["16", "2", "4", "8"]
    assert own.choices["slowdown"] == base.choices["slowdown"]
    for text in ("calibration: {}\n", ""):
        over.write_text(head + text)
        assert read_recipe(str(over)).choices == base.choices
    over.write_text(head + "calibration: null\n")
    with pytest.raises(InputError, match="does not say what may be fitted"):
        read_recipe(str(over))
    over.write_text(head + "calibration:\n  choices:\n    slowdown: {none: {edits: {}}}\n")
    with pytest.raises(InputError, match=r"over.yaml:5: .*'edits' is unknown"):
        read_recipe(str(over))
    (tmp_path / "family.yaml").write_text(FAMILY.replace("low: 0.0001, high: 1", "low: 2, high: 1"))
    with pytest.raises(InputError, match=r"family.yaml:\d+: .*'high'"):
        read_recipe(str(over))

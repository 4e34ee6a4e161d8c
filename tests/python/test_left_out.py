# SPDX-License-Identifier: Apache-2.0
"""The analytic solver either has what the simulator has, or its answer says what it lacks."""

from pathlib import Path
from typing import Any

import pytest

from iocast.analytic import solve
from iocast.ground.binaries import resolve_platform
from iocast.calibrate.search import Simulations
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.platforms.documents import parse_edit
from iocast.forecasts.answer import predict
from iocast.simulate import simulate, simulation_text

SHARING = """\
schema_version: 1
stations:
  mds: {servers: 16}
  oss: {count: 16, spread: object, servers: 2}
locks:
  directory: {per: dataset}
operations:
  create: {open: [{station: mds, demand: 100us, lock: directory, lock_share: 0.5}], write: [], close: []}
  unlink: [{station: mds, demand: 100us, lock: directory, lock_share: 0.5}]
  stat: [{station: mds, demand: 50us}]
  open: [{station: mds, demand: 50us}]
  close: []
  fsync: []
  read: {open: [{station: mds, demand: 50us}], read: [{station: oss, demand: 100us}], close: []}
  pwrite: [{station: oss, demand: 100us, per: block}]
  pread: [{station: oss, demand: 100us, per: block}]
"""
FEW_FILES = "which of the 16 instances of 'oss' hold the 4 files"


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    file = tmp_path / "sharing.yaml"
    file.write_text(SHARING)
    return file


def rates(file: Path, workload: str, settings: dict[str, str], phase: str) -> tuple[float, float]:
    """Of the simulator and of the analytic solver, on four nodes with four ranks each."""
    simulated, solved = (
        predict(Fitted.open(str(file)), workload, settings, 4, 4, phase=phase, solver=solver)["quantities"]["rate"]
        for solver in ("simulate", "analytic")
    )
    return simulated["value"], solved["value"]


@pytest.mark.parametrize(
    ("workload", "settings", "phase"),
    [
        ("mdtest", {"items": "50", "files_only": "true"}, "file-create"),  # one directory, one lock
        ("mdtest", {"items": "50", "files_only": "true", "unique_directory": "true"}, "file-create"),  # one a rank
        ("md-workbench", {"datasets": "2", "objects": "20", "iterations": "20"}, "benchmark"),  # others' in turn
        ("ior-hard", {"segments": "50"}, "write"),  # one file, on one of the instances
        ("pio-nested-strided", {"per_process": "64MiB"}, "write"),  # several blocks a request
    ],
)
def test_what_ranks_share_bounds_both_solvers(
    platform: Path, workload: str, settings: dict[str, str], phase: str
) -> None:
    simulated, solved = rates(platform, workload, settings, phase)
    assert solved == pytest.approx(simulated, rel=0.25)


@pytest.mark.parametrize(
    ("workload", "settings", "phase"),
    [
        ("mdtest", {"items": "31", "depth": "2", "branching": "5"}, "tree-create"),
        ("mdtest", {"items": "31", "depth": "2", "branching": "5"}, "tree-remove"),
    ],
)
def test_the_work_of_one_rank_does_not_grow_with_the_ranks(
    platform: Path, workload: str, settings: dict[str, str], phase: str
) -> None:
    """Neither its rate, nor its length, nor the operations that are announced."""
    for nodes in (2, 8):
        simulated, solved = (
            predict(Fitted.open(str(platform)), workload, settings, nodes, 4, phase=phase, solver=solver)
            for solver in ("simulate", "analytic")
        )
        assert solved["total_operations"] == simulated["total_operations"]
        for of_answer in (lambda a: a["quantities"]["rate"], lambda a: a["seconds"]):
            assert of_answer(solved)["value"] == pytest.approx(of_answer(simulated)["value"], rel=0.05)
        assert not any("unlike work" in one for one in solved["left_out"])


def resolved(file: Path, text: str) -> Any:
    file.write_text(text)
    return resolve_platform(file)


@pytest.mark.parametrize(
    ("text", "mix", "more", "sentence"),
    [
        (SHARING, {"pread": 1.0}, {"objects": 4.0}, FEW_FILES),
        (SHARING.replace("count: 16", "count: 1"), {"pread": 1.0}, {"objects": 4.0}, ""),
        (SHARING, {"pread": 1.0}, {"objects": 1.0}, ""),  # one instance serves: that the network has
        (SHARING, {"stat": 1.0}, {"unlike_ranks": True}, "that ranks do unlike work"),
        (SHARING + "  wake: [{station: mds, demand: 1ms}]\n", {"stat": 1.0}, {"think_time": 1e-3}, "the route 'wake'"),
        (SHARING + "  wake: [{station: mds, demand: 1ms}]\n", {"stat": 1.0}, {}, ""),
        (
            SHARING.replace("mds: {servers: 16}", "mds: {per: node, servers: 16}") + "clients: {speed_sigma: 0.1}\n",
            {"stat": 1.0},
            {},
            "nodes of unlike speed",
        ),
        (
            SHARING.replace(
                "stat: [{station: mds, demand: 50us}]",
                "stat: [{limit: outer, steps: [{limit: inner, steps: [{station: mds, demand: 50us}]}]}]",
            )
            + "limits: {outer: {slots: 3, per: node}, inner: {slots: 2, per: node}}\n",
            {"stat": 1.0},
            {},
            "(inner, outer)",
        ),
    ],
)
def test_what_the_solver_leaves_out_it_says(
    platform: Path, text: str, mix: dict[str, float], more: dict[str, Any], sentence: str
) -> None:
    found = solve(resolved(platform, text), mix, 4, 4, 0.0, 1000, size=4096.0, **more).left_out
    assert [sentence in one for one in found] == ([True] if sentence else []), found


def test_a_demand_for_each_block_counts_its_blocks(platform: Path) -> None:
    one, many = (
        solve(resolve_platform(platform), {"pread": 1.0}, 1, 1, 0.0, 100, size=4096.0, blocks=blocks).rate
        for blocks in (None, {"pread": 8.0})
    )
    assert one == pytest.approx(8 * many)


@pytest.mark.parametrize("ranks_per_node", [1, 2, 3])
def test_a_limit_of_all_that_is_part_of_the_way_ends_in_an_answer(platform: Path, ranks_per_node: int) -> None:
    """Without any delay and queue of a node's own there is nothing but the cycle to begin the search with."""
    text = """\
schema_version: 1
stations: {server: {servers: 2}}
limits: {few: {slots: 1}}
operations:
  create:
    open: [{station: server, demand: 2ms}]
    write: [{limit: few, steps: [{station: server, demand: 3ms}]}]
    close: [{station: server, demand: 1ms}]
  read: {open: [{station: server, demand: 1ms}], read: [{limit: few, steps: [{station: server, demand: 3ms}]}]}
  stat: [{station: server, demand: 1ms}]
  unlink: [{station: server, demand: 1ms}]
"""
    mix = dict.fromkeys(("create", "read", "stat", "unlink"), 1.0)
    for nodes in (1, 2, 4):
        found = solve(resolved(platform, text), mix, nodes, ranks_per_node, 0.0, 1000, size=1.0)
        ranks = nodes * ranks_per_node
        assert 0.6 * min(ranks / 12e-3, 1 / 6e-3) < found.rate / 4 < 1.001 * min(ranks / 12e-3, 1 / 6e-3)


def test_the_answer_and_its_table_have_the_sentence(platform: Path) -> None:
    settings = {"per_process": "16MiB", "phases": "benchmark"}
    answer = simulate(Fitted.open(str(platform)), "ior-easy", settings, 2, 2, report=lambda *_: None)
    assert any(FEW_FILES in one for one in answer["analytic"]["left_out"]), answer["analytic"]
    assert FEW_FILES in simulation_text(answer)
    solved = predict(Fitted.open(str(platform)), "ior-easy", settings, 2, 2, solver="analytic")
    assert any(FEW_FILES in one for one in solved["basis"])


IDLE = ("operations.pread.0.bandwidth=1MB/s", "stations.oss.count=2")
FEW_ITEMS = {"items": "5", "files_only": "true", "phases": "create,remove"}


@pytest.mark.parametrize("solver", ["simulate", "analytic"])
@pytest.mark.parametrize("edit", IDLE)
def test_an_edit_of_what_the_workload_does_not_use_is_refused(platform: Path, edit: str, solver: str) -> None:
    edited = Fitted.open(str(platform), [parse_edit(edit)])
    with pytest.raises(InputError, match="no operation of this workload"):
        predict(edited, "mdtest", FEW_ITEMS, 1, 2, solver=solver)


def test_such_an_edit_is_refused_after_the_first_run(platform: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def further(*_: Any) -> None:
        raise AssertionError("nobody needs replications, nor other systems, for an edit that is refused")

    monkeypatch.setattr(Simulations, "run", further)
    with pytest.raises(InputError, match="no operation of this workload"):
        predict(Fitted.open(str(platform), [parse_edit(IDLE[1])]), "mdtest", FEW_ITEMS, 1, 2, solver="simulate")


def test_every_edit_that_is_not_refused_changes_the_answer(platform: Path) -> None:
    def rate(edits: list[str]) -> float:
        edited = Fitted.open(str(platform), [parse_edit(one) for one in edits])
        answer = predict(edited, "mdtest", FEW_ITEMS, 2, 2, phase="file-create", solver="simulate")
        return float(answer["quantities"]["rate"]["value"])

    for edit in ("locks.directory.per=node", "stations.mds.speed=2", "operations.create.open.0.lock_share=0.9"):
        assert rate([edit]) != pytest.approx(rate([]), rel=0.01), edit


def test_a_speed_that_does_not_scale_bytes_says_so(platform: Path) -> None:
    platform.write_text(SHARING.replace("pwrite: [{", "pwrite: [{bandwidth: 1GB/s, "))
    few = {"per_process": "4MiB", "phases": "benchmark"}
    for speed, count in (("1", 0), ("4", 1)):
        edited = Fitted.open(str(platform), [parse_edit(f"stations.oss.speed={speed}")])
        basis = predict(edited, "ior-easy", few, 1, 2, solver="analytic")["basis"]
        assert sum("time by bytes" in one and "(pwrite)" in one for one in basis) == count, basis


@pytest.mark.parametrize(
    ("workload", "settings"),
    [
        ("hpcs-02", {"memory": "1MiB", "block": "64KiB", "times": "0.5"}),  # two ranks, however many there are
        ("hpcs-10", {"depth": "2", "branching": "3", "files": "4"}),  # a tree that all ranks share
        ("md-workbench", {"datasets": "2", "objects": "7", "iterations": "5", "offset": "1"}),  # of each rank
    ],
)
@pytest.mark.parametrize("ppn", [1, 3, 8])
def test_the_solver_counts_as_many_operations_as_the_simulator(
    workload: str, settings: dict[str, str], ppn: int
) -> None:
    answers = [
        predict(Fitted.open("local"), workload, settings, 4, ppn, solver=one) for one in ("analytic", "simulate")
    ]
    assert answers[0]["total_operations"] == answers[1]["total_operations"]
    solved, simulated = ({one["phase"]: one for one in (of, *of["further_phases"])} for of in answers)
    assert solved.keys() == simulated.keys()
    for phase in solved:
        counts = [
            of[phase]["seconds"]["value"] * of[phase]["quantities"]["rate"]["value"] for of in (solved, simulated)
        ]
        assert counts[0] == pytest.approx(counts[1], rel=1e-9)


def test_a_mix_of_ranks_of_a_fixed_number_and_others_is_not_solved() -> None:
    """Its rate rose in proportion to all ranks."""
    settings = {"a.workload": "postmark", "a.number": "5", "a.transactions": "9", "b.workload": "md-workbench"}
    settings |= {"b.datasets": "2", "b.objects": "2", "b.iterations": "2"}
    platform = Fitted.open("local")
    with pytest.raises(InputError, match=r"of a fixed number beside others.*--solver simulate"):
        predict(platform, "mix", settings | {"a.ranks": "1"}, 2, 8, solver="analytic")
    assert predict(platform, "mix", settings, 2, 8, solver="analytic")["quantities"]["rate"]["value"] > 0

# SPDX-License-Identifier: Apache-2.0
"""iocast-sim --placement: ranks in blocks, or cyclically over the nodes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iocast.campaign import launchers
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict
from iocast.importers.order import order_of
from iocast.importers.source import Source
from iocast.runs.run_directory import Run as RunDirectory
from iocast.runs.run_directory import group

Run = Callable[..., dict[str, Any]]
SMALL = "--workload md-workbench --set datasets=1 --set objects=40 --set iterations=20 --seed 3".split()
CYCLIC = ("--placement", "cyclic")


def seconds(run: dict[str, Any]) -> list[float]:
    return [phase["seconds"] for phase in run["phases"]]


def test_one_rank_a_node_lies_where_it_lies(simulate: Run) -> None:
    assert seconds(simulate("lustre", *SMALL, "--nodes", "4", *CYCLIC)) == seconds(
        simulate("lustre", *SMALL, "--nodes", "4")
    )


def test_one_node_has_all_ranks(simulate: Run) -> None:
    assert seconds(simulate("lustre", *SMALL, "--ppn", "4", *CYCLIC)) == seconds(
        simulate("lustre", *SMALL, "--ppn", "4")
    )


def test_ranks_of_a_node_are_those_of_its_rest(simulate: Run, tmp_path: Path) -> None:
    """Nodes of unlike speed: in blocks neighbours end together, cyclically those who are `nodes` apart."""
    file = tmp_path / "nodes.yaml"
    file.write_text("schema_version: 1\nextends: local\nclients: {speed_sigma: 0.5}\n")
    arguments = (*SMALL, "--nodes", "3", "--ppn", "2", "--set", "phases=precreate")
    for placement, node_of in (("block", lambda r: r // 2), ("cyclic", lambda r: r % 3)):
        run = simulate(file, *arguments, "--placement", placement)
        (phase,) = run["phases"]
        times = phase["rank_seconds"]
        for a in range(6):
            for b in range(a):
                assert (abs(times[a] / times[b] - 1) < 0.08) is (node_of(a) == node_of(b)), (placement, a, b, times)
        assert phase["node_balance"] == pytest.approx(phase["balance"], rel=0.08)
        assert run["placement"].get("order", "block") == placement


def test_the_next_node_is_the_next_rank(simulate: Run, tmp_path: Path) -> None:
    """Cyclically neighbours never share a node, so that no read is of an object that its own node created."""
    file = tmp_path / "turns.yaml"
    file.write_text("schema_version: 1\nextends: lustre\nlimits: {modifying: {slots: 1}}\n")
    where = ("--nodes", "4", "--ppn", "3")
    block, cyclic = (simulate(file, *SMALL, *where, "--placement", one) for one in ("block", "cyclic"))
    assert any("a rank of the same node created" in one for one in block["warnings"])
    assert not any("a rank of the same node created" in one for one in cyclic["warnings"])
    further = simulate(file, *SMALL, *where, *CYCLIC, "--set", "node_offset=1")
    assert seconds(further) == seconds(cyclic) != seconds(block)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--workload", "md-workbench", "--placement", "cycle"), "cycle"),
        (("--workload", "md-workbench", *CYCLIC, "--trace", "--out", "run"), "leave out --trace"),
        ((*CYCLIC, "--set", "placement=block"), "--placement cyclic and --set placement=block differ"),
        (("--placement", "block", "--set", "placement=cyclic"), "--placement block and --set placement=cyclic differ"),
    ],
)
def test_what_it_can_not_be(simulator: Path, tmp_path: Path, arguments: tuple[str, ...], why: str) -> None:
    command = [str(simulator), "--platform", "lustre", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and why in done.stderr


def test_slow_nodes_take_longer_at_their_own_stations(simulate: Run, tmp_path: Path) -> None:
    """Every second node, and no other; at one station, only what is done there."""
    file = tmp_path / "nodes.yaml"
    times = {}
    for name, station in (("all", ""), ("one", ", station: mine")):
        file.write_text(
            "schema_version: 1\nextends: local\nstations: {mine: {per: node, servers: 1}}\ndemands: {mine: 1us}\n"
            "operations: {stat: [{station: mine, demand: mine}]}\n"
            f"clients: {{slow_nodes: {{share: 0.5, factor: 3{station}}}}}\n"
        )
        run = simulate(file, *SMALL, "--nodes", "4", "--set", "phases=precreate")
        times[name] = run["phases"][0]["rank_seconds"]
    for a, b, ratio in ((0, 1, 3), (0, 2, 1), (2, 3, 3)):
        assert times["all"][b] / times["all"][a] == pytest.approx(ratio, rel=0.1)
        assert times["one"][b] / times["one"][a] == pytest.approx(1, rel=0.1)


def test_a_setting_of_the_workload_says_the_same_as_the_option(simulate: Run) -> None:
    where = ("--nodes", "3", "--ppn", "2")
    by_option, by_setting = (
        simulate("lustre", *SMALL, *where, *more) for more in (CYCLIC, ("--set", "placement=cyclic"))
    )
    assert seconds(by_option) == seconds(by_setting)
    for run in (by_option, by_setting):
        assert run["placement"]["order"] == "cyclic" and run["workload"]["parameters"]["placement"] == "cyclic"
    block = simulate("lustre", *SMALL, *where)
    assert "order" not in block["placement"] and "placement" not in block["workload"]["parameters"]
    assert seconds(simulate("lustre", *SMALL, *where, "--set", "placement=block")) == seconds(block)


def test_a_forecast_differs_where_neighbours_share_something(tmp_path: Path) -> None:
    """Each rank makes files for its neighbour. In blocks half of the neighbours are on the same node, which keeps the
    lock of the directory; cyclically none are. Without a lock it is the same."""
    shared = tmp_path / "shared.yaml"
    shared.write_text("schema_version: 1\nextends: lustre\nlocks: {directory: {hand_over: 5ms}}\n")
    alike = tmp_path / "alike.yaml"
    alike.write_text("schema_version: 1\nextends: network\n")
    settings = {"datasets": "1", "objects": "40", "iterations": "20"}
    rates = {}
    for file in (shared, alike):
        for order in ("block", "cyclic"):
            answer = predict(Fitted.open(str(file)), "md-workbench", settings | {"placement": order}, 4, 4)
            assert answer["placement"].get("order", "block") == order
            rates[file, order] = answer["quantities"]["rate"]["value"]
    assert rates[shared, "cyclic"] < 0.97 * rates[shared, "block"]
    assert rates[alike, "cyclic"] == pytest.approx(rates[alike, "block"], rel=0.02)


LOG = """mdtest-3.4.0+dev was launched with 8 total task(s) on 2 node(s)
Command line used: mdtest '-n' '100' '-F'
"""


@pytest.mark.parametrize(
    ("line", "order"),
    [
        ("srun -N 2 -n 8 --distribution=cyclic mdtest -n 100", "cyclic"),
        ("#SBATCH -m cyclic", "cyclic"),
        ("SLURM_DISTRIBUTION=cyclic", "cyclic"),
        ("mpirun -np 8 --map-by node mdtest", "cyclic"),
        ("mpiexec -rr -n 8 mdtest", "cyclic"),
        ("srun -m block:cyclic mdtest", "block"),
        ("mpirun --map-by ppr:4:node mdtest", "block"),
        ("mpirun -np 8 mdtest", None),
        ("srun -m block mdtest\nsrun -m cyclic mdtest", None),
    ],
)
def test_an_import_reads_how_ranks_were_started(tmp_path: Path, line: str, order: str | None) -> None:
    file = tmp_path / "log.txt"
    file.write_text(f"+ {line}\n{LOG}")
    assert order_of([Source(file)]) == order


def test_runs_of_both_placements_are_two_points(simulator: Path, tmp_path: Path) -> None:
    runs = []
    for order in ("block", "cyclic"):
        for seed in ("1", "2"):
            out = tmp_path / f"{order}-{seed}"
            command = [simulator, "--platform", "lustre", *SMALL[:-2], "--seed", seed, "--nodes", "2", "--ppn", "2"]
            subprocess.run(
                [*map(str, command), "--placement", order, "--out", str(out)], check=True, capture_output=True
            )
            runs.append(RunDirectory(out))
    points = group(runs)
    assert [len(point.runs) for point in points] == [2, 2]
    assert sorted(point.apart.get("placement", "block") for point in points) == ["block", "cyclic"]


def test_launchers_place_ranks_as_the_workload_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "2")
    assert "--distribution=cyclic" in launchers.launcher(2, 4, {"placement": "cyclic"})
    assert "--distribution=cyclic" not in launchers.launcher(2, 4, {})


@pytest.mark.parametrize("option", ["block", "cyclic"])
def test_an_option_that_contradicts_a_setting_is_refused_by_every_verb(
    option: str, iocast: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    for setting in ("block", "cyclic"):
        for verb in (("simulate", "lustre", "md-workbench"), ("predict", "lustre", "--workload", "md-workbench")):
            sizes = ("datasets=1", "objects=2", "iterations=2", f"placement={setting}")
            done = iocast(*verb, "--placement", option, *(part for one in sizes for part in ("--set", one)))
            words = f"--placement {option} and --set placement={setting} differ"
            assert (words in " ".join(done.stderr.split())) == (setting != option) == (done.returncode == 2)

# SPDX-License-Identifier: Apache-2.0
"""What a platform does not model of a workload is in the run, by name; most questions have nothing of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from programs import REPOSITORY
from schedule import SOME_PLATFORMS, mostly_long

from iocast.forecasts.simulated import _limits
from iocast.wording.notes import sentences

sys.path.insert(0, str(REPOSITORY / "validation" / "model_limits"))
import sweep  # noqa: E402
from sweep import NODES, WORKLOADS, Cell, run  # noqa: E402

PLATFORMS = sorted(file.stem for file in (REPOSITORY / "platforms").glob("*.yaml"))


def kinds(cell: Cell) -> set[tuple[str, str]]:
    return {(finding["kind"], finding["operation"]) for finding in cell.findings}


@pytest.fixture(scope="module", params=mostly_long(["some", "all"], ["some"], "what some platforms show"))
def table(simulator, request) -> dict[str, Cell]:
    """Platforms and all workloads with the shortened settings, each once: in turn on 1 and on 100 nodes. The rest is
    validation/model_limits/sweep.py --short."""
    platforms = PLATFORMS if request.param == "all" else SOME_PLATFORMS
    cells = [
        run(simulator, platform, workload, (1, 100)[(i + k) % 2], WORKLOADS[workload], 60)
        for i, platform in enumerate(platforms)
        for k, workload in enumerate(WORKLOADS)
    ]
    return {cell.name: cell for cell in cells}


def test_every_cell_is_answered(table, request):
    platforms = PLATFORMS if "all" in request.node.callspec.id.split("-") else SOME_PLATFORMS
    assert len(table) == len(platforms) * len(WORKLOADS)
    assert {cell.name: cell.error for cell in table.values() if cell.error} == {}


def test_warnings_are_the_exception(table):
    """Each finding is in the warnings of its run; a tenth of the questions at most has any, but for platforms that are
    one machine or known to lack something."""
    assert all(cell.warnings for cell in table.values() if cell.findings)
    known = {"local", "service", "queue", "queuefs", "multisocket", "cooley", "ime", "gpfs"}
    known |= {platform for platform in PLATFORMS if platform.startswith("local-")}
    others = [cell for cell in table.values() if cell.platform not in known]
    assert sum(bool(cell.findings) for cell in others) <= 0.1 * len(others)


def test_operations_that_visit_no_server_are_reported(simulator):
    """GPFS's clients create by themselves: at 1000 nodes two million a second, which no server of the platform sees."""
    cell = run(simulator, "cooley", "mdtest-hard", 1000, WORKLOADS["mdtest-hard"], 60)
    assert ("no-server", "unlink") in kinds(cell)
    assert any(kind in ("no-server", "held-in-memory") and operation == "create" for kind, operation in kinds(cell))
    assert any("unlink" in sentence and "without bound" in sentence for sentence in cell.warnings)


def test_accesses_that_bypass_where_whole_objects_go_are_reported(simulator, tmp_path):
    file = tmp_path / "bypass.yaml"
    file.write_text(
        "schema_version: 1\nextends: ime\noperations:\n  pwrite: [{transfer: write, station: oss}]\n"
        "  pread: [{transfer: read, station: oss}]\n"
    )
    cell = run(simulator, str(file), "ior-easy", 1, WORKLOADS["ior-easy"], 60)
    found = next(finding for finding in cell.findings if finding["kind"] == "other-servers")
    assert (found["station"], found["instead_of"]) == ("oss", "ime")


def test_where_nothing_is_modelled_there_is_no_answer(simulator, tmp_path):
    file = tmp_path / "empty.yaml"
    file.write_text(
        "schema_version: 1\nstations: {s: {}}\noperations: {stat: [], read: {}, create: {}, unlink: [{station: s,"
        " demand: 0us}]}\n"
    )
    command = [
        str(simulator),
        "--platform",
        str(file),
        "--workload",
        "md-workbench",
        "--set",
        "objects=2",
        "--set",
        "iterations=1",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "models nothing of this workload" in done.stderr


def test_the_long_table_has_the_nodes_of_the_page():
    assert NODES == (1, 10, 100, 1000)


def test_the_long_table_is_made_in_pieces(simulator, tmp_path):
    """A cell that ran out of time is in the file, and is run again with more of it; the others are not."""
    late, quick = ("beegfs", "mdtest-hard", 1000), ("beegfs", "postmark", 1)
    stopped = sweep.outcome(run(simulator, *late, ("items=1000000",), 1))
    assert stopped == "not done after 1 s" and sweep.late_seconds(stopped) == 1
    results = {
        late: stopped,
        quick: sweep.outcome(run(simulator, *quick, WORKLOADS["postmark"], 60)),
        ("beegfs", "mdtest-hard", 10): "refused: it is no question.",
        ("cooley", "postmark", 1): "no-server unlink; held-in-memory pwrite",
    }
    file = tmp_path / "results.txt"
    sweep.write_results(file, results, False)
    assert sweep.read_results(file) == results
    assert sweep.totals(results, 588) == [
        "4 of 588 cells, 1 with findings, 1 out of time",
        "held-in-memory: 1 cells",
        "no-server: 1 cells",
    ]
    wanted = sweep.keys(False, NODES)
    assert len(wanted) == len(PLATFORMS) * 7 * 4 and wanted[0][2] == 1
    assert set(wanted) - set(sweep.to_run(wanted, results, 1)) == set(results)
    assert set(wanted) - set(sweep.to_run(wanted, results, 2)) == set(results) - {late}


def test_a_forecast_has_the_limits_of_its_phases() -> None:
    """A sentence may name another phase, in which the same was found first."""
    simulated: Any = {
        "model_limits": {
            "sentences": [
                "In the phase 'precreate' create ... 1 more phase.",
                "In the phase 'precreate' mkdir ...",
                "A cache ...",
            ],
            "findings": [
                {"kind": "no-bytes", "phase": "precreate", "sentence": 0},
                {"kind": "no-bytes", "phase": "benchmark", "sentence": 0},
                {"kind": "no-bytes", "phase": "precreate", "sentence": 1},
                {"kind": "sampled-cache", "of": "pages", "count": 1, "sentence": 2},
            ],
        }
    }
    first, second, third = simulated["model_limits"]["sentences"]
    assert sentences(_limits(simulated, ["benchmark"], Path("p.yaml"))) == [first, third]
    assert sentences(_limits(simulated, ["precreate"], Path("p.yaml"))) == [first, second, third]

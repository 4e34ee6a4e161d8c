# SPDX-License-Identifier: Apache-2.0
"""The worked examples of docs/extend.md, taken from the page and used; and rules of an extension point that stand where
it is written."""

import dataclasses
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pages import blocks_of
from programs import find_program

from iocast import importers
from iocast.campaign.plan import read_plan
from iocast.errors import InputError
from iocast.report import figures
from iocast.report.sources import Sources, read_sources

EXAMPLES = {block.file: block.content for block in blocks_of("docs/extend.md") if block.file}


@pytest.fixture
def example(tmp_path: Path):
    """Writes an example as a file of a fresh directory."""

    def write(name: str) -> Path:
        (tmp_path / name).write_text(EXAMPLES[name])
        return tmp_path / name

    return write


def simulate(*arguments: str | Path) -> dict:
    simulator = find_program("iocast-sim")
    assert simulator is not None, "iocast-sim is not built; run ./check"
    done = subprocess.run([str(simulator), *map(str, arguments), "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_example_is_used() -> None:
    text = Path(__file__).read_text()
    assert len(EXAMPLES) == 5 and all(f'"{name}"' in text for name in EXAMPLES)


def test_workload_and_platform(example) -> None:
    run = simulate(
        "--platform",
        example("our-lustre.yaml"),
        "--workload",
        example("log-files.yaml"),
        "--set",
        "objects=20",
        "--set",
        "iterations=5",
        "--nodes",
        2,
    )
    assert run["workload"]["parameters"]["datasets"] == 2
    assert run["platform"]["stations"]["mds"]["servers"] == 32


def test_campaign(example) -> None:
    plan = read_plan(str(example("two-nodes.yaml")))
    assert [point.role for point in plan.points] == ["fit"] * 4 + ["check"]


@pytest.fixture
def imported(example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run directory that the example's importer made."""
    example("opsbench.py")
    monkeypatch.setattr(importers, "__path__", [*importers.__path__, str(tmp_path)])
    (tmp_path / "out.txt").write_text("opsbench: 4 processes did 1000 creates in 2.5 s\n")
    importers.import_files([tmp_path / "out.txt"], tmp_path / "run")
    return tmp_path / "run"


def test_importer(imported: Path, tmp_path: Path) -> None:
    run = json.loads((imported / "run.json").read_text())
    assert (
        run["imported"]["format"] == "opsbench" and run["phases"][0]["rate"] == 400 and run["placement"]["ranks"] == 4
    )
    (tmp_path / "cut.txt").write_text("opsbench: 4 processes did")
    with pytest.raises(InputError, match=r"cut\.txt:1"):
        importers.import_files([tmp_path / "cut.txt"], tmp_path / "second")


def test_figure(example, imported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "figures"
    folder.mkdir()
    example("phases.py").rename(folder / "phases.py")
    monkeypatch.setattr(figures, "__path__", [*figures.__path__, str(folder)])
    (figure,) = [one for one in figures.all_figures() if one.name == "phases"]
    assert figure.data(Sources()) is None
    rows = json.loads(json.dumps(figure.data(read_sources([imported])), allow_nan=False))
    assert [row["seconds"] for row in rows] == [2.5]
    (panel,) = figure.draw(rows).panels
    assert panel.chart.to_dict(validate=True)["width"] == "container"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": "phase-times"}, "letters a to z"),
        ({"caption": "Too short."}, "10 characters"),
        ({"needs": "a run."}, "full stop"),
        ({"title": ""}, "title"),
    ],
)
def test_a_figure_that_breaks_a_rule_is_refused_where_it_is_made(change: dict[str, str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        dataclasses.replace(figures.all_figures()[0], **change)


def test_backend(mpirun: Callable[[int], list[str]], mpi_environment: dict[str, str]) -> None:
    """docs/new-backend.md shows it."""
    program = find_program("iocast-bench-with-example")
    assert program is not None, "iocast-bench-with-example is not built; run ./check"
    sizes = ["--set", "datasets=2", "--set", "objects=20", "--set", "iterations=20"]
    command = [*mpirun(1), str(program), "--backend", "memory", *sizes, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=mpi_environment, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    phases = {phase["name"]: phase for phase in json.loads(done.stdout)["phases"]}
    assert {name: phase["errors"] for name, phase in phases.items()} == dict.fromkeys(phases, 0)
    assert phases["precreate"]["latency"]["create"]["count"] == 40
    full = subprocess.run(
        [*command, "--memory.capacity", "30"], capture_output=True, text=True, env=mpi_environment, timeout=120
    )
    assert full.returncode == 1 and "holds 30 objects and is full; raise --memory.capacity." in full.stderr


def test_mechanism(tmp_path: Path) -> None:
    """A gate that opens each 30 ms: a rank's creates, of 1 ms each, begin when it opens."""
    program = find_program("iocast-sim-with-example")
    assert program is not None, "iocast-sim-with-example is not built; run ./check"

    def seconds(every: str) -> float:
        (tmp_path / "p.yaml").write_text(
            "schema_version: 1\nstations: {s: {}}\n"
            f"gates: {{g: {{every: {every}}}}}\noperations: {{mkdir: [], create: {{open: [{{gate: g}}], "
            "write: [{station: s, demand: 1ms}]}}\n"
        )
        sizes = [
            word for one in ("phases=precreate", "datasets=1", "objects=10", "iterations=1") for word in ("--set", one)
        ]
        command = [str(program), "--platform", str(tmp_path / "p.yaml"), *sizes, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        (phase,) = json.loads(done.stdout)["phases"]
        assert phase["gates"]["g"]["passed"] == 10
        return float(phase["seconds"])

    assert seconds("30ms") == pytest.approx(10 * 0.030 + 0.001)
    assert seconds("1500us") == pytest.approx(10 * 0.0015 + 0.001)
    listed = subprocess.run([str(program), "--describe", "gate", "--json"], capture_output=True, text=True, check=True)
    (every,) = [key for key in json.loads(listed.stdout)["keys"] if key["name"] == "every"]
    assert (every["unit"], every["low"]) == ("seconds", 1e-6)

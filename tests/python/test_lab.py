# SPDX-License-Identifier: Apache-2.0
"""Laboratories: nodes are apart, a campaign sees them, and nothing is left, wherever one was interrupted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import psutil
import pytest

from iocast.errors import InputError, RunError
from iocast.lab import laboratory, servers
from iocast.lab.laboratory import Laboratory, bits_per_second
from iocast.lab.record import MARK, PLACE, Record, all_records, marked
from iocast.lab.servers.queuefs import QueueFs

Iocast = Callable[..., CompletedProcess[str]]
CAMPAIGN = """schema_version: 1
workload: md-workbench
settings: {datasets: 1, objects: 5, iterations: 5}
repeats: 1
points:
  - {nodes: 2, ranks_per_node: 2, role: fit}
"""


@pytest.fixture
def name() -> Iterator[str]:
    own = f"test-{os.getpid()}"
    yield own
    laboratory.down(own)


def left(record: Record) -> list[psutil.Process]:
    """Processes of a laboratory; its networks and mounts belong to those alone."""
    first = record.init()
    return marked(record.identity) + (first.children(recursive=True) if first else [])


@pytest.mark.usefixtures("launch_check")
@pytest.mark.needs("laboratory")
def test_a_campaign_runs_on_the_nodes_of_a_laboratory_and_nothing_is_left(
    iocast: Iocast, name: str, tmp_path: Path
) -> None:
    done = iocast("lab", "up", name, "--nodes", "2", "--set", "service=1ms", "--rate", "100mbit", "--json")
    record = json.loads(done.stdout)
    (directory,) = record["arguments"]
    (plan := tmp_path / "plan.yaml").write_text(CAMPAIGN)
    inner = ["-m", "iocast", "measure", directory, "--campaign", plan, "--out", tmp_path / "out"]
    done = iocast("lab", "run", name, "--", sys.executable, *inner)
    assert "1 of 1 runs measured" in done.stdout, done.stderr
    (file,) = (tmp_path / "out").glob("runs/*/run.json")
    run = json.loads(file.read_text())
    assert run["environment"]["hosts"] == ["node1", "node2"] and run["placement"]["nodes"] == 2

    lab = Laboratory.open(name)
    lab.do("node1", "touch", f"{directory}/shared")
    assert "shared" in lab.do("node2", "ls", directory), "both nodes mount one file system"
    for where, device in (("node1", "lan"), ("head", "node1")):
        assert "rate 100Mbit" in lab.do(where, "tc", "qdisc", "show", "dev", device)
    assert not os.path.ismount(directory) and "node1" not in subprocess.getoutput("ip link"), "all is inside"

    waits = [sys.executable, "-m", "iocast", "lab", "run", name, "--", "sleep", "77"]
    with subprocess.Popen(waits) as running:
        laboratory.wait_for(lambda: "sleep 77" in lab.do("head", "ps", "-eo", "args"), "the command")
        running.terminate()
    assert "sleep 77" not in lab.do("head", "ps", "-eo", "args"), "a signal reaches the command"

    kept = Record.read(name)
    assert kept is not None and left(kept)
    with pytest.raises(InputError, match="is up already"):
        laboratory.up(name, 1, "queuefs", {})
    assert "is gone" in iocast("lab", "down", name).stdout
    assert not left(kept) and not kept.directory.exists()
    assert not list(Path("/sys/fs/cgroup").glob(f"**/{kept.group}"))
    assert "There was no laboratory" in iocast("lab", "down", name).stdout


@pytest.mark.needs("laboratory")
def test_a_server_serves_no_more_than_its_capacity(iocast: Iocast, name: str, tmp_path: Path) -> None:
    """However many clients: a thread of known service times bounds the rate, at the same level on one node and on two.

    Each of n operations takes 3/4 of `service` in the mean (an equal mix of both kinds), with a standard deviation
    below one mean; five standard errors are a false alarm in 3 million."""
    iocast("lab", "up", name, "--nodes", "2", "--set", "threads=1", "--set", "service=4ms")
    (plan := tmp_path / "plan.yaml").write_text(
        "schema_version: 1\nworkload: md-workbench\nsettings: {datasets: 1, objects: 8, iterations: 8}\nrepeats: 1\n"
        "points:\n  - {nodes: 1, ranks_per_node: 4, role: fit}\n  - {nodes: 2, ranks_per_node: 2, role: fit}\n"
    )
    directory = str(PLACE / name / "mount")
    iocast("lab", "run", name, "--", sys.executable, "-m", "iocast", "measure", directory, "--campaign", plan,
        "--out", tmp_path / "out")  # fmt: skip
    phases = [
        phase
        for file in (tmp_path / "out").glob("runs/*/run.json")
        for phase in json.loads(file.read_text())["phases"]
        if phase["name"] == "benchmark"
    ]
    assert len(phases) >= 2
    for phase in phases:
        n, capacity = phase["operations"], 1 / (0.75 * 4e-3)
        assert phase["rate"] < capacity / (1 - 5 / n**0.5), "one thread did the work of more"


class Interrupted(QueueFs):
    """Ends like a process that is killed when its server is up: nothing is cleaned."""

    def start(self) -> None:
        super().start()
        raise SystemExit


@pytest.mark.needs("laboratory")
@pytest.mark.parametrize("point", ("before the name spaces", "before their record", "before it is ready"))
def test_a_laboratory_that_was_interrupted_is_found_and_removed(
    name: str, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Record, "remove", lambda self: None)  # who was killed removes nothing
        if point == "before the name spaces":
            patched.setattr(laboratory.subprocess, "Popen", None)  # type: ignore[attr-defined]
        elif point == "before their record":
            writes = Record.write
            patched.setattr(Record, "write", lambda self: writes(self) if self.first is None else 1 / 0)
        else:
            patched.setattr(servers, "find", lambda name: Interrupted)
        with pytest.raises((TypeError, ZeroDivisionError, SystemExit)):
            laboratory.up(name, 1, "queuefs", {})
    record = Record.read(name)
    assert record is not None and not record.ready and name in [one.name for one in all_records()]
    processes = left(record)
    assert bool(processes) == (point != "before the name spaces")
    with pytest.raises(InputError, match="There is no laboratory"):
        Laboratory.open(name)
    with pytest.raises(InputError, match="is being made by the process"):
        laboratory.up(name, 1, "queuefs", {})
    laboratory.down(name)
    assert not left(record) and Record.read(name) is None
    assert not [process for process in processes if process.is_running()]


@pytest.mark.needs("laboratory")
def test_only_processes_of_the_laboratory_are_ended(name: str) -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        started = psutil.Process(stranger.pid).create_time()
        record = Record(name, ["node1"], ["server1"], "", "queuefs", {}, first=(stranger.pid, started - 1))
        record.write()
        laboratory.down(name)
        assert stranger.poll() is None, "the process id was used again, as its start time shows"
        own = replace(record, first=(stranger.pid, started))
        own.write()
        laboratory.down(name)
        assert not psutil.pid_exists(stranger.pid)
    assert not (PLACE / name).exists() and MARK not in os.environ


def test_what_a_laboratory_cannot_be_is_refused_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = {
        "nearest": (("a", 1, "queuef", {}), "Did you mean 'queuefs'"),
        "setting": (("a", 1, "queuefs", {"thread": "1"}), "Did you mean 'threads'"),
        "count": (("a", 1, "queuefs", {"threads": "0"}), "it must be 1 to 1024"),
        "time": (("a", 1, "queuefs", {"service": "4"}), "a number with a unit"),
        "rate": (("a", 1, "queuefs", {}, "1Gb"), "write it as 1gbit"),
        "nodes": (("a", 0, "queuefs", {}), "1 to 64 client nodes"),
        "name": (("../a", 1, "queuefs", {}), "names a directory"),
    }
    for arguments, sentence in cases.values():
        with pytest.raises(InputError, match=sentence):
            laboratory.up(*arguments)  # type: ignore[arg-type]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for attempt in (lambda: laboratory.up("a", 1, "queuefs", {}), lambda: laboratory.down("a")):
        with pytest.raises(RunError, match="Only root"):
            attempt()
    assert not (PLACE / "a").exists()
    assert bits_per_second("100mbit") == 1e8


@pytest.mark.parametrize("server", sorted(servers.all_servers()))
def test_each_server_says_what_is_known_of_it(server: str) -> None:
    kind = servers.find(server)
    assert kind.name == server and kind.known.endswith(".") and kind.unknown.endswith(".")
    assert kind.settings_of({}) == kind.defaults and kind.nodes_of(kind.defaults) >= 1
    page = (Path(__file__).parents[2] / "docs/laboratory.md").read_text()
    assert all(f"`{setting}={value}`" in page for setting, value in kind.defaults.items())

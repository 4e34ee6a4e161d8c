# SPDX-License-Identifier: Apache-2.0
"""Laboratories: nodes are apart, a campaign sees them, and nothing is left, wherever one was interrupted."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, cast

import msgspec
import psutil
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from ended import has_ended
from programs import REPOSITORY

from iocast.ground import binaries
from iocast.errors import InputError, RunError
from iocast.lab import laboratory, record as manifest, servers
from iocast.lab.laboratory import Laboratory, bits_per_second
from iocast.lab.record import MARK, PLACE, Damaged, Record, all_records, as_json, marked, read
from iocast.lab.servers.queuefs import QueueFs

Iocast = Callable[..., CompletedProcess[str]]
OPERATIONS = ("create", "stat", "read", "unlink")
HISTOGRAM = 1e-3
"""Relative width of a class of latencies."""
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


def record_named(name: str) -> Record:
    return Record(name, clients=["node1"], servers=["server1"], rate="", server="queuefs", settings={"threads": "2"})


def left(record: Record) -> list[psutil.Process]:
    """Processes of a laboratory; its networks and mounts belong to those alone."""
    first = record.init()
    return marked(record.name, record.identity) + (first.children(recursive=True) if first else [])


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

    kept = read(name)
    assert isinstance(kept, Record) and left(kept)
    with pytest.raises(InputError, match="is up already"):
        laboratory.up(name, 1, "queuefs", {})
    assert "is gone" in iocast("lab", "down", name).stdout
    assert not left(kept) and not kept.directory.exists()
    assert not list(Path("/sys/fs/cgroup").glob(f"**/{kept.group}"))
    assert "There was no laboratory" in iocast("lab", "down", name).stdout


@pytest.mark.needs("laboratory")
def test_a_server_serves_no_more_than_its_capacity(iocast: Iocast, name: str, tmp_path: Path) -> None:
    """However many clients and mount points: a thread of known service times bounds the rate, at the same level on one
    node and on two.

    Each of n operations takes 3/4 of `service` in the mean (an equal mix of both kinds), with a standard deviation
    below one mean; five standard errors are a false alarm in 3 million."""
    up = ("lab", "up", name, "--nodes", "2", "--mounts", "2", "--set", "threads=1", "--set", "service=4ms", "--json")
    (directories,) = json.loads(iocast(*up).stdout)["arguments"]
    assert directories == f"{PLACE / name / 'mount'},{PLACE / name / 'mount2'}"
    (plan := tmp_path / "plan.yaml").write_text(
        "schema_version: 1\nworkload: md-workbench\nsettings: {datasets: 1, objects: 8, iterations: 8}\nrepeats: 1\n"
        "points:\n  - {nodes: 1, ranks_per_node: 4, role: fit}\n  - {nodes: 2, ranks_per_node: 2, role: fit}\n"
    )
    iocast("lab", "run", name, "--", sys.executable, "-m", "iocast", "measure", directories, "--campaign", plan,
        "--out", tmp_path / "out")  # fmt: skip
    runs = [json.loads(file.read_text()) for file in (tmp_path / "out").glob("runs/*/run.json")]
    assert all(len(run["environment"]["mounts"]) == 2 for run in runs)
    phases = [phase for run in runs for phase in run["phases"] if phase["name"] == "benchmark"]
    assert len(phases) >= 2
    for phase in phases:
        n, capacity = phase["operations"], 1 / (0.75 * 4e-3)
        assert phase["rate"] < capacity / (1 - 5 / n**0.5), "one thread did the work of more"


REQUESTS = {
    "nfs": {"create": 4, "stat": 1, "read": 3, "unlink": 1},
    "mongodb": dict.fromkeys(OPERATIONS, 1),
    "cephfs": {"create": 1, "unlink": 1},  # at least; clients may know the rest
}
"""Of each operation, by server; see `known` of each."""


@pytest.mark.needs("laboratory")
@pytest.mark.parametrize("server", [pytest.param(name, marks=pytest.mark.needs(name)) for name in REQUESTS])
def test_each_request_takes_one_of_the_threads_for_the_service_time(iocast: Iocast, name: str, server: str) -> None:
    """Alone and in a queue; and nothing outlives the first process, whose end is that of a crash."""
    service, requests = 5e-3, REQUESTS[server]
    record = laboratory.up(name, 1, server, {"threads": "1", "service": "5ms"})
    given = [one.removeprefix("--backend-option=") for one in record.arguments]
    settings = ["--set", "datasets=1", "--set", "objects=6", "--set", "iterations=6", "--json"]

    def benchmark(*arguments: str) -> dict[str, Any]:
        bench = [str(binaries.find("iocast-bench")), *given, *settings, *arguments]
        done = iocast("lab", "run", name, "--node", "node1", "--", *bench)
        (found,) = [phase for phase in json.loads(done.stdout)["phases"] if phase["name"] == "benchmark"]
        return cast(dict[str, Any], found)

    alone = benchmark()["latency"]
    assert alone.keys() >= set(OPERATIONS)
    for operation, number in requests.items():
        assert alone[operation]["min"] >= number * service * (1 - HISTOGRAM), "a request took less than its time"
        if "stat" in requests:
            assert round(alone[operation]["min"] / alone["stat"]["min"]) == number
    queue = benchmark("--threads-per-rank", "4")
    served = sum(queue["latency"][operation]["count"] * number for operation, number in requests.items())
    assert queue["seconds"] >= (served - 4) * service, "one thread did the work of more"

    processes = left(record)
    assert (first := record.init()) is not None and len(processes) > 3
    first.kill()
    psutil.wait_procs(processes, timeout=100)
    assert not [process for process in processes if process.is_running()]
    assert laboratory.down(name) and not record.directory.exists()


ANSWERS = """
import socket, sys, threading, time
pairs = [socket.socketpair() for _ in range(4)]
answer = b"x" * int(sys.argv[1])
threads = [threading.Thread(target=lambda one=one: [one[0].send(answer) for _ in range(2)]) for one in pairs]
begin = time.monotonic()
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(time.monotonic() - begin)
"""
"""Four threads with two answers of a size each; prints how long all took."""


def test_answers_take_their_time_with_one_of_the_threads(tmp_path: Path) -> None:
    library, delay = tmp_path / "answer_delay.so", 0.05
    source = Path(laboratory.__file__).with_name("answer_delay.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl", "-lpthread"], check=True)

    def seconds(threads: int, size: int = 100, **given: str) -> float:
        settings = {"DELAY": str(delay), "THREADS": str(threads), "SMALLEST": "100"} | given
        held = {f"IOCAST_ANSWER_{name}": value for name, value in settings.items()}
        command = ["env", f"LD_PRELOAD={library}", *(f"{name}={value}" for name, value in held.items())]
        done = subprocess.run(
            [*command, sys.executable, "-I", "-c", ANSWERS, str(size)], capture_output=True, text=True
        )
        return float(done.stdout)

    took = {threads: seconds(threads) for threads in (1, 2, 0)}
    assert took[1] >= 8 * delay and took[2] >= 4 * delay and took[0] >= 2 * delay, "it was not held"
    assert max(took[0], took[2]) < took[1]
    assert max(seconds(1, size=99), seconds(1, PORT="7000")) < took[1], "what is no answer to a client was held"


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
    record = read(name)
    assert isinstance(record, Record) and not record.ready and name in [one.name for one in all_records()]
    processes = left(record)
    assert bool(processes) == (point != "before the name spaces")
    with pytest.raises(InputError, match="There is no laboratory"):
        Laboratory.open(name)
    with pytest.raises(InputError, match="is being made by the process"):
        laboratory.up(name, 1, "queuefs", {})
    laboratory.down(name)
    assert not left(record) and read(name) is None
    assert not [process for process in processes if process.is_running()]


@pytest.mark.needs("laboratory")
def test_only_processes_of_the_laboratory_are_ended(name: str) -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        started = psutil.Process(stranger.pid).create_time()
        record = replace(record_named(name), first=(stranger.pid, started - 1))
        record.write()
        laboratory.down(name)
        assert stranger.poll() is None, "the process id was used again, as its start time shows"
        own = replace(record, first=(stranger.pid, started))
        own.write()
        laboratory.down(name)
        assert not psutil.pid_exists(stranger.pid)
    assert not (PLACE / name).exists() and MARK not in os.environ


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of laboratories without processes."""
    monkeypatch.setattr(manifest, "PLACE", tmp_path)
    monkeypatch.setattr(psutil, "process_iter", lambda: iter(()))
    return tmp_path


def damaged_manifests(content: dict[str, Any]) -> Iterator[bytes]:
    """Cut off at each length, a key missing or added, values of other types, other files."""
    text = json.dumps(content, indent=1).encode()
    yield from (text[:length] for length in range(len(text)))
    others: tuple[Any, ...] = (
        None,
        True,
        3.5,
        -1,
        10**400,
        "x",
        "\ud800",
        [],
        [1],
        [-1, 2.0],
        [10**18, 1.0],
        {},
        {"a": 1},
    )
    for key, value in content.items():
        yield json.dumps({name: one for name, one in content.items() if name != key}).encode()
        for other in others:
            optional = key in ("first", "maker") and other is None
            possible = type(other) is type(value) and other in ("x", True, [], {})
            if not optional and not possible:
                yield json.dumps(content | {key: other}).encode()
    yield json.dumps(content | {"further": 1}).encode()
    yield from (b"[]", b"{}", b"\xff", b"[" * 1000, json.dumps(content | {"kind": "run"}).encode())


def test_the_campaign_that_is_proposed_needs_no_more_nodes_than_there_are() -> None:
    most = {
        name: max(
            point.get("nodes", 1)
            for point in yaml.safe_load((REPOSITORY / f"campaigns/{name}.yaml").read_text())["points"]
        )
        for name in ("laboratory", "quick")
    }
    assert most == {"laboratory": laboratory.NODES_OF_CAMPAIGN, "quick": 1}


def test_a_damaged_manifest_is_listed_and_removed_and_stops_no_other(place: Path) -> None:
    whole, sound = record_named("whole"), record_named("a")
    sound.first = sound.maker
    for record in (sound, whole):
        record.write()
    content = msgspec.to_builtins(sound)
    file = place / "a" / "lab.json"
    damaged_files = list(damaged_manifests(content))
    assert len(damaged_files) > len(json.dumps(content)), "each length is there"
    for damaged in damaged_files:
        file.write_bytes(damaged)
        found, other = all_records()
        assert isinstance(found, Damaged) and other == whole, damaged
        assert (found.identity == sound.identity) == (f'"identity": "{sound.identity}"'.encode() in damaged)
        assert json.dumps(as_json(found)) and found.advice.isprintable() and found.advice.endswith("lab down a.")
    found.remove()
    assert not file.parent.exists() and all_records() == [whole]
    file.parent.mkdir()
    assert isinstance(read("a"), Damaged), "a directory without a manifest is found too"
    file.mkdir()
    assert isinstance(read("a"), Damaged)
    assert read("b") is None


@settings(max_examples=50)
@given(place=st.integers(0, 600), bytes_=st.binary(min_size=1, max_size=8))
def test_whatever_a_manifest_holds_it_is_read_or_called_damaged(
    place: int, bytes_: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(manifest, "PLACE", tmp_path_factory.getbasetemp() / "laboratories")
        patched.setattr(psutil, "process_iter", lambda: iter(()))
        record = record_named("a")
        record.write()
        file = record.directory / "lab.json"
        content = file.read_bytes()
        file.write_bytes(content[:place] + bytes_ + content[place + len(bytes_) :])
        found = read("a")
        assert found is not None and found.name == "a" and json.dumps(as_json(found))


@pytest.mark.needs("laboratory")
@pytest.mark.parametrize("length", (0, 200))
def test_a_running_laboratory_with_a_damaged_manifest_is_removed_by_its_mark(
    iocast: Iocast, name: str, length: int
) -> None:
    record = record_named(name)
    record.write()
    Laboratory.start(record)
    processes = left(record)
    file = record.directory / "lab.json"
    file.write_bytes(file.read_bytes()[:length])
    assert f"{name}: damaged." in iocast("lab", "list").stdout
    for attempt in (lambda: laboratory.up(name, 1, "queuefs", {}), lambda: Laboratory.open(name)):
        with pytest.raises(InputError, match=f"Remove what is left of the laboratory: iocast lab down {name}"):
            attempt()
    assert all(process.is_running() for process in processes)
    assert laboratory.down(name)
    assert processes and not any(process.is_running() for process in processes) and not record.directory.exists()
    assert not list(Path("/sys/fs/cgroup").glob(f"**/{record.group}"))


@pytest.mark.needs("laboratory")
def test_of_those_that_are_made_at_once_under_one_name_one_comes_up_and_lacks_what_is_killed(
    iocast: Iocast, name: str
) -> None:
    with futures.ThreadPoolExecutor() as several:
        made = list(several.map(lambda _: iocast("lab", "up", name, "--nodes", "1"), range(3)))
    assert sorted(one.returncode for one in made) == [0, 2, 2]
    assert all("is being made by" in one.stderr or "is up already" in one.stderr for one in made if one.returncode)
    record = read(name)
    assert isinstance(record, Record) and len(record.served) == 3 and not record.gone()
    assert f"{name}: 1 client nodes, server queuefs, up\n" in iocast("lab", "list").stdout
    (server,) = (psutil.Process(process) for of, (process, _) in record.served.items() if of == "queuefs")
    assert server.name() == "iocast-queuefs"
    server.kill()
    laboratory.wait_for(lambda: has_ended(server), "its end")
    listed_now = iocast("lab", "list").stdout
    assert f"{name}: 1 client nodes, server queuefs, without queuefs" in listed_now
    assert f"which ended (see {record.directory}/queuefs.log); iocast lab down {name}\n" in listed_now
    (listed,) = [one for one in json.loads(iocast("lab", "list", "--json").stdout) if one["name"] == name]
    assert listed["alive"] and "queuefs" in listed["gone"]


def test_removal_waits_for_others_spares_a_newer_one_and_names_a_file_that_stays(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (older := record_named("a")).write()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with futures.ThreadPoolExecutor() as other:
        with manifest.alone():
            removed = other.submit(laboratory.down, "a")
            with pytest.raises(futures.TimeoutError):
                removed.result(0.2)
        assert removed.result()
    assert not older.directory.exists()
    (newer := record_named("a")).write()
    older.remove()
    assert read("a") == newer, "its maker was overtaken"

    def refuse(directory: Path) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(directory / "mount"))

    monkeypatch.setattr(shutil, "rmtree", refuse)
    with pytest.raises(RunError, match=f"the file '{place}/a/mount' stays: Device or resource busy"):
        laboratory.down("a")
    assert read("a") == newer


@pytest.mark.needs("laboratory")
@pytest.mark.needs("s3")
def test_keys_stand_on_no_command_line_and_are_required(iocast: Iocast, name: str) -> None:
    record = laboratory.up(name, 1, "s3", {})
    key, secret = (record.environment[f"AWS_{part}"] for part in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
    lines = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    assert any("rclone serve s3" in line for line in lines)
    assert not [line for line in lines if key in line or secret in line]
    place = [one.removeprefix("--backend-option=") for one in record.arguments]
    bench = [str(binaries.find("iocast-bench")), *place, "--workload", "md-workbench"]
    sizes = [part for one in ("datasets=1", "objects=2", "iterations=2") for part in ("--set", one)]
    for key_of, right in ((secret, True), (secret[:-1], False)):
        run = ["env", f"AWS_SECRET_ACCESS_KEY={key_of}", *bench, *sizes]
        done = iocast("lab", "run", name, "--", *run)
        assert (done.returncode == 0) == right, done.stderr


def test_what_a_laboratory_cannot_be_is_refused_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = {
        "nearest": (("a", 1, "queuef", {}), "Did you mean 'queuefs'"),
        "setting": (("a", 1, "queuefs", {"thread": "1"}), "Did you mean 'threads'"),
        "count": (("a", 1, "queuefs", {"threads": "0"}), "it must be 1 to 1024"),
        "digit": (("a", 1, "queuefs", {"threads": "\u00b2"}), "it must be 1 to 1024"),
        "digits": (("a", 1, "queuefs", {"threads": "1" * 5000}), "it must be 1 to 1024"),
        "time": (("a", 1, "queuefs", {"service": "4"}), "a number with a unit"),
        "rate": (("a", 1, "queuefs", {}, "1Gb"), "write it as 1gbit"),
        "endless": (("a", 1, "queuefs", {}, "infgbit"), "write it as 1gbit"),
        "too much": (("a", 1, "queuefs", {}, "1e308gbit"), "write it as 1gbit"),
        "no number": (("a", 1, "queuefs", {}, "nangbit"), "write it as 1gbit"),
        "nodes": (("a", 0, "queuefs", {}), "1 to 64 client nodes"),
        "mounts": (("a", 1, "queuefs", {}, "", 65), "1 to 64 times"),
        "no mount": (("a", 1, "s3", {}, "", 2), "don't mount the server 's3'.*glusterfs, queuefs"),
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

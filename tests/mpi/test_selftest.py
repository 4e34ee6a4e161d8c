# SPDX-License-Identifier: Apache-2.0
"""The file system whose truth is known, and `iocast selftest` as far as it takes no minutes (docs/selftest.md has the
whole)."""

import csv
import errno
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sharpness
from bench_runs import Run

from iocast.ground import binaries
from iocast.errors import InputError
from iocast.selftest import mounted, selftest

pytestmark = pytest.mark.needs("fuse")

TRUTH = """\
schema_version: 1
stations: {mds: {servers: 3}}
operations:
  stat: [{station: mds, demand: {law: exponential, mean: 300us}}]
  read: {open: [{station: mds, demand: {law: exponential, mean: 400us}}], read: [], close: []}
  create: {open: [{station: mds, demand: {law: exponential, mean: 800us}}], write: [], close: []}
  unlink: [{station: mds, demand: {law: exponential, mean: 600us}}]
  mkdir: []
  rmdir: []
"""


@pytest.fixture
def truth(tmp_path: Path) -> str:
    file = tmp_path / "truth.yaml"
    file.write_text(TRUTH)
    return str(file)


@pytest.fixture
def place(truth: str, tmp_path: Path) -> Iterator[Path]:
    with mounted(truth, tmp_path / "log.csv", 1) as directory:
        yield directory
    assert not os.path.ismount(directory) and not directory.exists()


def served(log: Path) -> list[dict[str, Any]]:
    with log.open() as lines:
        return [
            {key: value if key == "operation" else float(value) for key, value in row.items()}
            for row in csv.DictReader(lines)
        ]


def test_it_is_a_file_system(place: Path) -> None:
    (place / "d").mkdir()
    file = place / "d" / "a"
    file.write_bytes(b"x" * 10000)
    with file.open("ab") as more:
        more.write(b"yz")
    assert file.read_bytes() == b"x" * 10000 + b"yz" and file.stat().st_size == 10002
    with pytest.raises(FileExistsError):
        (place / "d").mkdir()
    with pytest.raises(OSError) as full:
        (place / "d").rmdir()
    assert full.value.errno == errno.ENOTEMPTY
    (place / "d" / "b").write_text("old")
    file.rename(place / "d" / "b")
    assert sorted(os.listdir(place / "d")) == ["b"] and (place / "d" / "b").stat().st_size == 10002
    os.truncate(place / "d" / "b", 3)
    assert (place / "d" / "b").read_bytes() == b"xxx"
    with (place / "d" / "b").open() as kept:
        (place / "d" / "b").unlink()
        assert kept.read() == "xxx"  # what is open is still there
    (place / "d").rmdir()
    assert os.listdir(place) == []


def test_each_operation_is_one_request_and_served_in_order(truth: str, tmp_path: Path, run: Run) -> None:
    log = tmp_path / "log.csv"
    with mounted(truth, log, 1) as directory:
        done = run(
            "--workload",
            "md-workbench",
            "--set",
            "datasets=2",
            "--set",
            "objects=20",
            "--set",
            "iterations=20",
            "--posix.root",
            str(directory),
            "--verify",
            ranks=4,
        )
        assert done.code == 0, done.err
        assert os.listdir(directory) == []
    requests = served(log)
    counts = {
        operation: sum(row["operation"] == operation for row in requests)
        for operation in ("stat", "read", "create", "unlink")
    }
    rounds = 4 * 2 * 20  # ranks, datasets, objects or iterations
    for operation, expected in (("stat", rounds), ("read", rounds), ("create", 2 * rounds), ("unlink", 2 * rounds)):
        assert expected <= counts[operation] <= expected + 20, operation  # and those of claim and manifest
    free = [0.0] * 3
    for row in requests:
        first = min(range(3), key=lambda server: free[server])
        assert row["start"] == pytest.approx(max(row["arrival"], free[first]), abs=2e-9)
        free[first] = row["finish"]


def test_it_ends_while_it_serves(tmp_path: Path) -> None:
    """Requests are under way and wait for a server; with sanitizers, what answers them uses nothing that is gone."""
    (tmp_path / "slow.yaml").write_text(TRUTH.replace("mean: 300us", "mean: 500ms"))
    (directory := tmp_path / "place").mkdir()
    program = [binaries.find("iocast-queuefs"), "--platform", tmp_path / "slow.yaml", directory]
    process, waiting = subprocess.Popen(program, stderr=subprocess.PIPE, text=True), []
    try:
        until = time.monotonic() + 120
        while not os.path.ismount(directory):
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.02)
        (directory / "file").touch()
        for _ in range(8):
            waiting.append(
                subprocess.Popen(["stat", directory / "file"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
        time.sleep(0.3)
        assert any(one.poll() is None for one in waiting)
        process.terminate()
        printed = process.communicate(timeout=120)[1]
        assert process.returncode == 0 and not printed and not os.path.ismount(directory)
        for one in waiting:
            one.wait(timeout=120)
    finally:
        for one in (process, *waiting):
            one.kill()
            one.wait()


def test_what_it_cannot_be_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [binaries.find("iocast-queuefs"), "--platform", "lustre", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "can't be a real file system: the route of stat visits" in done.stderr


def test_a_place_that_is_no_directory_is_refused(truth: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [binaries.find("iocast-queuefs"), "--platform", truth, str(tmp_path / "none")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "can't be a mount point" in done.stderr


@pytest.mark.parametrize(
    ("truth", "family", "campaign"),
    [
        ("nothing", "fuse", "selftest"),
        ("queuefs", "nothing", "selftest"),
        ("queuefs", "fuse", "nothing"),
        ("lustre", "fuse", "selftest"),
    ],
)
def test_what_can_not_be_used_is_refused_before_anything_is_measured(
    tmp_path: Path, truth: str, family: str, campaign: str
) -> None:
    with pytest.raises(InputError):
        selftest(tmp_path / "out", truth, family, campaign, 0, lambda *_: None)
    assert not list(tmp_path.glob("out/*"))


@pytest.mark.long("the way of ./quickstart, whose test runs always")
def test_the_whole_way(tmp_path: Path) -> None:
    """With so few and short runs that nothing is promised of the forecasts; but they are there, and the log agrees with
    the truth."""
    plan = tmp_path / "tiny.yaml"
    plan.write_text(
        "schema_version: 1\nworkload: md-workbench\nsettings: {datasets: 1}\nseconds: 0.1\nrepeats: 1\npoints:\n  -"
        " {ranks: [1, 2, 3], waiting_factor: [0], role: fit}\n  - {ranks: 6, waiting_factor: [0], role: check}\n"
    )
    out = tmp_path / "out"
    answer = selftest(out, "queuefs", "fuse", str(plan), 0, lambda *_: None)
    assert answer["structure"]["threads"] and set(answer["errors"]) == {"throughput", "q50 to q95", "q99"}
    for operation, one in answer["services"].items():
        error = 1 / np.sqrt(one["count"])  # in standard deviations of the service time
        sharpness.shift(f"mean service of {operation} in its standard deviations", 5 * error, error)
    assert all(
        one["count"] > 50 and one["deviation"] < 5 for one in answer["services"].values()
    )  # 5 standard errors: once in a million
    assert len(answer["forecasts_sha256"]) == 1 and json.loads((out / "selftest.json").read_text()) == answer

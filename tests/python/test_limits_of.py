# SPDX-License-Identifier: Apache-2.0
"""Where no station is the bottleneck, the answer says what limits the rate instead."""

from pathlib import Path
from typing import Any

import pytest

from iocast.fitted import Fitted
from iocast.predict import predict
from iocast.text import forecast_text

PLATFORM = """\
schema_version: 1
stations:
  server: {servers: 64}
  disk: {count: 4, spread: object, servers: 8}
locks: {directory: {per: dataset}}
limits: {slots: {slots: 1, per: node}}
stalls: {pause: {station: server, every: 10ms, length: 9ms, operations: [stat]}}
network: {latency: 1us, node_bandwidth: 1GB/s, server_bandwidth: 10GB/s, flow_threshold: 4KiB}
operations:
  create: {open: [{station: server, demand: 100us, lock: directory, lock_share: 0.9}], write: [], close: []}
  mkdir: []
  rmdir: []
  unlink: [{limit: slots, steps: [{station: server, demand: 100us}]}]
  stat: [{station: server, demand: 100us}]
  read: {open: [{station: server, demand: 100us}], read: [], close: []}
  open: []
  close: []
  fsync: []
  pwrite: [{station: disk, demand: 10us}, {transfer: write, station: disk}]
  pread: [{station: disk, demand: 2ms}]
"""
FILES = ("mdtest", {"items": "20", "files_only": "true"})
BYTES = ("ior-easy", {"per_process": "64MiB"})


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("limits") / "p.yaml"
    file.write_text(PLATFORM)
    return file


def test_the_answer_has_what_each_class_of_links_carries(platform: Path) -> None:
    answer = predict(Fitted.open(str(platform)), *BYTES, 3, 1, phase="write", solver="simulate")
    assert answer["links"] == (
        "Links carry at most: the network cards of 3 client nodes 3.00 GB/s (1.00 GB/s each), "
        "the network cards of 4 instances of 'disk' 40.0 GB/s (10.0 GB/s each)."
    )
    assert predict(Fitted.open(str(platform)), *FILES, 3, 1, phase="file-stat", solver="simulate")["links"] == ""


def test_a_platform_set_by_hand_to_measurements_is_not_its_authors_alone() -> None:
    settings = {"datasets": "1", "objects": "5", "iterations": "5"}
    for name, sentence in (
        ("mistral", "by hand to published measurements of md-workbench"),
        ("lustre", "never calibr"),
    ):
        basis = predict(Fitted.open(name), "md-workbench", settings, 1, 2, solver="analytic")["basis"]
        assert sentence in basis[0] and sum("never calibrated" in one for one in basis) == (name == "lustre")


def test_rows_of_bytes_and_of_the_whole_phase_have_the_range() -> None:
    text = forecast_text(predict(Fitted.open("lustre"), "ior-easy", {"per_process": "8MiB"}, 2, 2, solver="analytic"))
    rows = [
        line for line in text.splitlines() if line.startswith(("pwrite bandwidth", "pread bandwidth", "whole phase"))
    ]
    assert len(rows) == 4 and all(" .. " in row and "not known" not in row and " - " not in row for row in rows), rows


@pytest.mark.parametrize(
    ("workload", "phase", "solver", "reason"),
    [
        (FILES, "file-create", "simulate", "is waiting for a lock at server"),
        (FILES, "file-remove", "simulate", "goes to slots of limits, the network and delays"),
        (FILES, "file-remove", "analytic", "for slots of slots or at stations"),
        (FILES, "file-stat", "simulate", "is standing still in stalls of server"),
        (FILES, "file-read", "simulate", "more of them do more."),
        ((FILES[0], FILES[1] | {"think_time": "10ms"}), "file-read", "simulate", "their pauses"),
        (FILES, "file-read", "analytic", "more ranks do more"),
        (BYTES, "write", "simulate", "the network cards of 2 client nodes are used at"),
        (BYTES, "read", "simulate", "where their files lie on instances of disk with free servers"),
    ],
)
def test_the_answer_says_what_limits_the_rate(
    platform: Path, workload: tuple[str, dict[str, str]], phase: str, solver: str, reason: str
) -> None:
    answer = predict(Fitted.open(str(platform)), *workload, 2, 4, phase=phase, solver=solver)
    assert answer["bottleneck"].startswith("No station is the bottleneck") and reason in answer["bottleneck"]


def answer_of(file: Path, text: str, workload: tuple[str, dict[str, str]], phase: str) -> dict[str, Any]:
    file.write_text(text)
    return predict(Fitted.open(str(file)), *workload, 2, 2, phase=phase, solver="simulate")


def test_operations_that_use_no_station_have_a_reason_too(tmp_path: Path) -> None:
    text = PLATFORM.replace("read: {open: [{station: server, demand: 100us}]", "read: {open: [{delay: 1ms}]")
    answer = answer_of(tmp_path / "p.yaml", text, FILES, "file-read")
    assert "100 % goes to slots of limits, the network and delays" in answer["bottleneck"]


def test_stripes_that_are_served_side_by_side_take_the_time_of_one(tmp_path: Path) -> None:
    """No part of an operation's time is longer than the whole."""
    striped = "pread: [{station: disk, stripes: spanned, demand: 2ms}]"
    text = PLATFORM.replace("spread: object, servers: 8", "spread: stripe, stripe_size: 64KiB, servers: 64").replace(
        "pread: [{station: disk, demand: 2ms}]", striped
    )
    answer = answer_of(tmp_path / "p.yaml", text, (BYTES[0], BYTES[1] | {"transfer_size": "256KiB"}), "read")
    disk = answer["stations"]["disk"]
    assert disk["service"] == pytest.approx(answer["quantities"]["pread.q50"]["value"], rel=0.1)
    assert "100 % is being served at disk" in answer["bottleneck"]


def test_what_a_buffer_drains_is_no_part_of_an_operations_time(tmp_path: Path) -> None:
    text = PLATFORM.replace(
        "pwrite: [{station: disk, demand: 10us}, {transfer: write, station: disk}]",
        "pwrite: [{delay: 1ms}, {buffer: burst}]",
    )
    text += "buffers: {burst: {per: system, capacity: 1GiB, drain: [{station: disk, demand: 20ms}]}}\n"
    disk = answer_of(tmp_path / "p.yaml", text, BYTES, "write")["stations"]["disk"]
    assert disk["utilisation"] > 0 and disk["service"] == 0

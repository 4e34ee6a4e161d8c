# SPDX-License-Identifier: Apache-2.0
"""Where no station is the bottleneck, the answer says what limits the rate instead."""

from pathlib import Path

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

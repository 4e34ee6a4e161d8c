# SPDX-License-Identifier: Apache-2.0
"""An answer says what limits the rate, also where no station is full, or why that is not known."""

from pathlib import Path
from typing import Any

import pytest

from iocast.platforms.fitted import Fitted
from iocast.runs.limits_of import LEAD, NOT_KNOWN, Kind, capacity_text, full_buffer, limit, sentences, text, unknown
from iocast.forecasts.answer import predict
from iocast.wording.forecast import forecast_text


@pytest.mark.parametrize("reads", [0, 1000])
def test_reads_beside_writes_do_not_hide_a_full_buffer(reads: int) -> None:
    """Ten writes of 64 pieces wait 40 of 100 s together: a piece is part of a write."""
    unit = 2**20
    phase: Any = {
        "operations": 10 + reads,
        "seconds": 10.0,
        "by_operation": {
            "pwrite": {"count": 10, "bytes": 640 * unit},
            "pread": {"count": reads, "bytes": reads * unit},
        },
        "buffers": {"b": {"entered": 640.0 * unit, "drained": 1e8, "stopped": 600, "wait": 4000.0}},
    }
    system: Any = {"buffers": {"b": {"unit": unit}}}
    few = {**phase, "buffers": {"b": {**phase["buffers"]["b"], "wait": 40.0}}}
    found, none = full_buffer(100.0, phase, {}, system), full_buffer(100.0, few, {}, system)
    assert found is not None and "the buffer 'b' ran full" in found.text and none is None


PLATFORM = """\
schema_version: 1
stations:
  server: {servers: 64}
  disk: {count: 4, spread: object, servers: 8}
locks: {directory: {per: dataset}}
limits: {slots: {slots: 1, per: node}}
stalls: {pause: {station: server, every: 10ms, length: 9ms, operations: [stat]}}
network: {latency: 1us, node_bandwidth: 1GB/s, server_bandwidth: 10GB/s, never_limited: 4KiB}
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
WAITS = """
schema_version: 1
extends: p.yaml
{section}: {{m: {of}}}
operations: {{stat: [{step}]}}
"""
VISIT = "{station: server, demand: 10us}"
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


@pytest.mark.parametrize(("limited", "named"), [("50kB/s", True), ("10GB/s", False)])
def test_the_busiest_link_is_named_where_nothing_is_full(limited: str, named: bool) -> None:
    """A card that is in use for two thirds of the time is where operations spend it."""
    platform = Fitted.open("lustre", [("network.node_bandwidth", limited)])
    answer = predict(platform, None, {"datasets": "2", "objects": "100", "iterations": "50"}, 4, 4)
    assert ("The busiest link, node" in answer["bottleneck"]) == named


def test_a_platform_set_by_hand_to_measurements_is_not_its_authors_alone() -> None:
    settings = {"datasets": "1", "objects": "5", "iterations": "5"}
    for name, numbers, sentence in (
        ("mistral", "by hand", "by hand to published measurements of md-workbench"),
        ("lustre", "own", "never calibr"),
    ):
        answer = predict(Fitted.open(name), "md-workbench", settings, 1, 2, solver="analytic")
        basis = answer["basis"]
        assert (
            answer["platform"]["numbers"] == numbers
            and sentence in basis[0]
            and sum("never calibrated" in one for one in basis) == (name == "lustre")
        )


def test_rows_of_bytes_and_of_the_whole_phase_have_the_range() -> None:
    text = forecast_text(predict(Fitted.open("lustre"), "ior-easy", {"per_process": "8MiB"}, 2, 2, solver="analytic"))
    rows = [
        line for line in text.splitlines() if line.startswith(("pwrite bandwidth", "pread bandwidth", "whole phase"))
    ]
    assert len(rows) == 4 and all(" .. " in row and "not known" not in row and " - " not in row for row in rows), rows


@pytest.mark.parametrize(
    ("workload", "phase", "solver", "kind", "reason"),
    [
        (FILES, "file-create", "simulate", Kind.WAITS, "waiting for a lock at server, "),
        (FILES, "file-remove", "simulate", Kind.OUTSIDE, "slots of limits, the network and delays, "),
        (FILES, "file-remove", "analytic", Kind.WAITS, "waits for slots of slots or at stations"),
        (FILES, "file-stat", "simulate", Kind.WAITS, "standing still in stalls of server, "),
        (FILES, "file-read", "simulate", Kind.SERVICE, "more of them do more."),
        ((FILES[0], FILES[1] | {"think_time": "10ms"}), "file-read", "simulate", Kind.RANKS, "their pauses"),
        (FILES, "file-read", "analytic", Kind.SERVICE, "more ranks do more"),
        (BYTES, "write", "simulate", Kind.LINKS, "the network cards of 2 client nodes, used at"),
        (BYTES, "read", "simulate", Kind.SERVICE, "where their files lie on instances of disk with free servers"),
    ],
)
def test_the_answer_says_what_limits_the_rate(
    platform: Path, workload: tuple[str, dict[str, str]], phase: str, solver: str, kind: Kind, reason: str
) -> None:
    answer = predict(Fitted.open(str(platform)), *workload, 2, 4, phase=phase, solver=solver)
    text = answer["bottleneck"]
    assert answer["limited_by"] == kind.value
    assert text.startswith(LEAD) and reason in text and "No station is full" in text, text


@pytest.mark.parametrize("used, after", [(0.3, " No station is full: the busiest, b, is used 30 %."),
                                         (0.002, " No station is full.")])  # fmt: skip
def test_no_station_is_called_the_busiest_that_is_not_used(used: float, after: str) -> None:
    stations = {"a": {"utilisation": used / 2}, "b": {"utilisation": used}}
    waits = limit(Kind.WAITS, "locks.")
    assert sentences(stations, waits) == waits._replace(text=f"{LEAD}locks.{after}")
    corrected = unknown("a rule corrects it.")
    assert sentences(stations, corrected, known=False) == corrected, "the same model says how much stations are used"


def answer_of(file: Path, text: str, workload: tuple[str, dict[str, str]], phase: str) -> dict[str, Any]:
    file.write_text(text)
    return predict(Fitted.open(str(file)), *workload, 2, 2, phase=phase, solver="simulate")


def test_operations_that_use_no_station_have_a_reason_too(tmp_path: Path) -> None:
    text = PLATFORM.replace("read: {open: [{station: server, demand: 100us}]", "read: {open: [{delay: 1ms}]")
    text += "serves: {node_local: [read]}\n"
    answer = answer_of(tmp_path / "p.yaml", text, FILES, "file-read")
    assert "slots of limits, the network and delays, 100 %" in answer["bottleneck"]


def test_stripes_that_are_served_side_by_side_take_the_time_of_one(tmp_path: Path) -> None:
    """No part of an operation's time is longer than the whole."""
    striped = "pread: [{station: disk, stripes: spanned, demand: 2ms}]"
    text = PLATFORM.replace("spread: object, servers: 8", "spread: stripe, stripe_size: 64KiB, servers: 64").replace(
        "pread: [{station: disk, demand: 2ms}]", striped
    )
    answer = answer_of(tmp_path / "p.yaml", text, (BYTES[0], BYTES[1] | {"transfer_size": "256KiB"}), "read")
    disk = answer["stations"]["disk"]
    assert disk["service"] == pytest.approx(answer["quantities"]["pread.q50"]["value"], rel=0.1)
    assert "100 % of it being served at disk" in answer["bottleneck"]


def test_what_a_buffer_drains_is_no_part_of_an_operations_time(tmp_path: Path) -> None:
    text = PLATFORM.replace(
        "pwrite: [{station: disk, demand: 10us}, {transfer: write, station: disk}]",
        "pwrite: [{delay: 1ms}, {buffer: burst}]",
    )
    text += "buffers: {burst: {per: system, capacity: 1GiB, drain: [{station: disk, demand: 20ms}]}}\n"
    disk = answer_of(tmp_path / "p.yaml", text, BYTES, "write")["stations"]["disk"]
    assert disk["utilisation"] > 0 and disk["service"] == 0


def phase(**changes: Any) -> dict[str, Any]:
    """Of a run.json: 4 ranks that write for a second."""
    written = {"pwrite": {"count": 100, "rate": 100, "bytes": 10**8, "bytes_per_second": 1e8}}
    latency = {"pwrite": {"count": 100, "mean": 0.03}}
    return {"seconds": 1.0, "operations": 100, "latency": latency, "by_operation": written, "balance": 0.9} | changes


SERVED = {"disk": {"wait": 0.0, "service": 0.02, "lock_wait": 0.0, "stall": 0.0, "lost": 0.0, "utilisation": 0.2}}
SENT = {"transfer": "write", "station": "disk"}
SYSTEM = {"stations": {"disk": {"count": 4}}, "operations": {"pwrite": [{"steps": [SENT]}]}}


def test_a_link_that_a_buffer_drains_through_is_full_once_all_is_through() -> None:
    """A buffer may hold for later what the phase wrote beyond what the link carries."""
    moved = next(row["bytes"] / phase()["seconds"] for row in phase()["by_operation"].values() if row.get("bytes"))
    buffered = SYSTEM | {"operations": {"pwrite": [{"steps": [{"buffer": "b"}]}]}, "buffers": {"b": {"drain": [SENT]}}}
    drains = {"b": {"drain": [{"limit": "l", "steps": [{"buffer": "behind"}]}]}, "behind": {"drain": [SENT]}}
    behind = buffered | {"buffers": drains}
    for system, full in ((SYSTEM, (True, True)), (buffered, (True, False)), (behind, (True, False))):
        for share, named in zip((0.9, 1.5), full, strict=True):
            network = {"network": {"backbone_bandwidth": moved / share}}
            assert ("the backbone, used at" in text(phase(), SERVED, system | network, 1, 4).text) == named, (
                share,
                named,
            )


def test_ranks_that_end_unevenly_are_named() -> None:
    assert "first rank" not in text(phase(), SERVED, SYSTEM, 1, 4).text
    uneven = text(phase(balance=0.5), SERVED, SYSTEM, 1, 4).text
    assert uneven.startswith(LEAD) and "The first rank ends after 50 % of the phase" in uneven


def test_what_is_not_known_has_its_reason() -> None:
    nothing = {"pwrite": {"count": 100, "mean": 0.0}}
    assert text(phase(latency=nothing), SERVED, SYSTEM, 1, 4).text.startswith(NOT_KNOWN + "no operation takes any time")
    assert "is not known: the platform states no bandwidth" in capacity_text(phase(), SYSTEM, 1)
    assert "cross no link" in capacity_text(phase(), SYSTEM | {"operations": {"pwrite": []}}, 1)
    assert capacity_text(phase(by_operation={"stat": {"count": 5, "rate": 5}}), SYSTEM, 1) == ""
    buffered = {"operations": {"pwrite": [{"steps": [{"buffer": "dirty"}]}]}, "buffers": {"dirty": {"drain": [SENT]}}}
    assert "is not known: the platform states no bandwidth" in capacity_text(phase(), SYSTEM | buffered, 1)
    known = capacity_text(phase(), SYSTEM | buffered | {"network": {"backbone_bandwidth": 1e9}}, 1)
    assert known == "Links carry at most: the backbone 1.00 GB/s."
    known = capacity_text(phase(), SYSTEM | {"network": {"backbone_bandwidth": 1e9}}, 1)
    assert known == "Links carry at most: the backbone 1.00 GB/s."


@pytest.mark.parametrize(
    ("section", "of", "step"),
    [
        ("buckets", "{rate: 100/s, burst: 1}", f"{{bucket: m}}, {VISIT}"),
        ("tokens", "{per: system, move: [{station: server, demand: 20ms}]}", f"{{token: m, steps: [{VISIT}]}}"),
        ("pools", "{size: 1, batch: 1, refill: [{station: server, demand: 20ms}]}", f"{{take: m}}, {VISIT}"),
    ],
)
def test_the_mechanism_that_operations_wait_for_is_named(section: str, of: str, step: str, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PLATFORM)
    file = tmp_path / "waits.yaml"
    file.write_text(WAITS.format(section=section, of=of, step=step))
    settings = {"items": "20", "files_only": "true"}
    forecast = predict(Fitted.open(str(file)), "mdtest", settings, 2, 2, phase="file-stat", solver="simulate")
    assert f"{LEAD}waiting for the {section[:-1]} 'm', " in forecast["bottleneck"], forecast["bottleneck"]

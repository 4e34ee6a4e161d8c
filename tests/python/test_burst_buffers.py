# SPDX-License-Identifier: Apache-2.0
"""Burst buffers by hand: what is absorbed and what drains share a device, a checkpoint that fills the buffer goes on at
the speed of the drain, and stages come before and after phases."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import study_inputs

from iocast import study as study_run
from iocast.forecasts.answer import predict
from iocast.platforms.fitted import Fitted

MIB = 1 << 20
PLATFORM = """schema_version: 1
stations:
  bb: {{count: {count}, spread: stripe, stripe_size: 1MiB, disk: {{read: 100MiB/s, write: 100MiB/s{disk}}}}}
  oss: {{count: 1, disk: {{read: {oss}, write: {oss}}}}}
buffers:
  b:
    station: bb
    unit: 1MiB
    drain: [{{disk: read, station: bb}}, {{transfer: write, station: oss}}]
    {buffer}
{more}
operations:
  mkdir: []
  rmdir: []
  open: []
  close: []
  unlink: []
  fsync: [{{flush: b}}]
  create: {{}}
  pread: [{{transfer: read, station: bb, stripes: spanned}}]
  pwrite: [{{transfer: write, station: bb, stripes: spanned}}, {{buffer: b, stripes: spanned}}]
"""
WRITE = "{disk: write, station: bb}, {buffer: b}"


def write_platform(
    place: Path, buffer: str, count: int = 1, disk: str = "", oss: str = "1e6GB/s", more: str = ""
) -> str:
    file = place / "p.yaml"
    inner = "\n    ".join(part.strip() for part in buffer.split(";"))
    file.write_text(PLATFORM.format(count=count, disk=disk, oss=oss, buffer=inner, more=more))
    return str(file)


def test_a_buffer_of_a_station_whose_stripes_lie_by_chance_is_refused(simulator: Path, tmp_path: Path) -> None:
    platform = Path(write_platform(tmp_path, "capacity: 1GiB", count=2))
    command = [str(simulator), "--platform", str(platform), "--print-platform"]
    subprocess.run(command, capture_output=True, check=True)
    platform.write_text(platform.read_text().replace("stripe_size: 1MiB,", "stripe_size: 1MiB, allocation: by-stripe,"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "p.yaml:7" in done.stderr and "lie by chance" in done.stderr, done.stderr


def run(simulator: Path, platform: str, *settings: str, nodes: int = 1) -> list[dict[str, Any]]:
    """The phases; each rank writes 32 blocks of a MiB to a file of its own."""
    given = ("block_size=1MiB", "per_process=32MiB", "sharing=process", "run=write", "phases=benchmark", "fsync=never")
    command = [str(simulator), "--platform", platform, "--workload", "application", "--nodes", str(nodes), "--json"]
    command += [part for setting in (*given, *settings) for part in ("--set", setting)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    phases: list[dict[str, Any]] = json.loads(done.stdout)["phases"]
    buffer = phases[-1]["buffers"]["b"]
    assert sum(p["buffers"]["b"]["entered"] - p["buffers"]["b"]["drained"] for p in phases) == buffer["held"]
    return phases


def test_absorbing_has_the_device_alone_or_shares_it_with_the_drain(simulator: Path, tmp_path: Path) -> None:
    """At 100 MiB/s. The first of 32 blocks has the device alone; at each further one the block before drains."""
    alone = run(simulator, write_platform(tmp_path, "capacity: 1GiB; above: 0.99"))[-1]
    assert alone["seconds"] == pytest.approx(32 / 100, rel=1e-6)
    assert alone["buffers"]["b"]["held"] == 32 * MIB
    shared = run(simulator, write_platform(tmp_path, "capacity: 1GiB"))[-1]
    assert shared["seconds"] == pytest.approx(1 / 100 + 31 * 2 / 100, rel=1e-6)


def test_a_device_in_each_node_absorbs_what_the_node_writes(simulator: Path, tmp_path: Path) -> None:
    """At 100 MiB/s each, whatever the number of nodes, as above: alone, and beside the drain."""
    platform = Path(write_platform(tmp_path, "capacity: 1GiB; above: 0.99"))
    local = platform.read_text().replace("count: 1, spread: stripe, stripe_size: 1MiB,", "per: node,", 1)
    local = local.replace("    station: bb\n    unit", "    per: node\n    unit")
    local = local.replace("{transfer: write, station: bb, stripes: spanned}, {buffer: b, stripes: spanned}", WRITE)
    local = local.replace("{transfer: read, station: bb, stripes: spanned}", "{disk: read, station: bb}")
    platform.write_text(local)
    for nodes in (1, 4):
        alone = run(simulator, str(platform), nodes=nodes)[-1]
        assert alone["seconds"] == pytest.approx(32 / 100, rel=1e-6)
        assert alone["buffers"]["b"]["held"] == nodes * 32 * MIB
    platform.write_text(local.replace("above: 0.99", ""))
    shared = run(simulator, str(platform), nodes=4)[-1]
    assert shared["seconds"] == pytest.approx(1 / 100 + 31 * 2 / 100, rel=1e-6)


def test_a_buffer_that_runs_full_goes_on_at_the_speed_of_the_drain(simulator: Path, tmp_path: Path) -> None:
    """Behind it are 10 MiB/s. The first block is in after 10 ms. A piece takes 20 ms of the device, beside the next
    block, and 100 ms behind. Of 32 MiB 8 have room, so that 24 are out when the last one is in."""
    phase = run(simulator, write_platform(tmp_path, "capacity: 8MiB", oss="10MiB/s"))[-1]
    assert phase["seconds"] == pytest.approx(0.01 + 24 * 0.12, rel=1e-6)
    assert phase["buffers"]["b"]["peak"] == 8 * MIB and phase["buffers"]["b"]["stopped"] > 0
    larger = run(simulator, write_platform(tmp_path, "capacity: 16MiB", oss="10MiB/s"))[-1]
    assert larger["seconds"] == pytest.approx(0.01 + 16 * 0.12, rel=1e-6)


@pytest.mark.parametrize("at_once", [4, 16])
def test_a_checkpoint_beyond_the_capacity_takes_as_long_in_one_write_as_in_many(
    simulator: Path, tmp_path: Path, at_once: int
) -> None:
    """Eight files of 512 MiB, each on one of eight targets of 10 MiB/s by chance; the buffer has room for a quarter of
    them, and its own device isn't in the way. Large writes used to drain one by one, to one target at a time."""
    platform = Path(
        write_platform(tmp_path, f"capacity: 1GiB; at_once: {at_once}", disk=", together: 1000GB/s", oss="10MiB/s")
    )
    text = platform.read_text().replace("count: 1, disk: {read: 10", "count: 8, spread: object, disk: {read: 10")
    platform.write_text(text.replace("100MiB/s", "500GB/s"))

    def seconds(block: str) -> float:
        given = (f"block_size={block}", "per_process=512MiB")
        return float(run(simulator, str(platform), *given, nodes=8)[-1]["seconds"])

    many, one = seconds("8MiB"), seconds("512MiB")
    assert one == pytest.approx(many, rel=0.25)
    assert one < 0.6 * (4096 - 1024) / 10  # one target at a time, for all that has no room


def test_the_drain_is_in_the_way_of_others_behind(simulator: Path, tmp_path: Path) -> None:
    """The next phase's writes, straight to the disks behind, find the drain of the phase before at these."""
    platform = write_platform(tmp_path, "capacity: 1GiB; at_once: 4", oss="10MiB/s")
    phases = run(simulator, platform, "fsync=end")
    disk = next(link for link in phases[-1]["network"]["busiest"] if link["name"] == "oss 0 disk")
    assert disk["bytes"] == 32 * MIB and disk["busy"] == pytest.approx(1, abs=0.01)
    assert phases[-1]["seconds"] == pytest.approx(3.2, rel=0.01)


@pytest.mark.parametrize("streams", [1, 2, 4, 8])
def test_a_device_that_few_streams_do_not_fill(simulator: Path, tmp_path: Path, streams: int) -> None:
    platform = write_platform(tmp_path, "capacity: 1GiB; above: 0.99", disk=", slowdown: [0.25, 0.5, 0.75, 1]")
    phase = run(simulator, platform, nodes=streams)[-1]
    assert phase["seconds"] == pytest.approx(streams * 32 / (100 * min(1, streams / 4)), rel=1e-6)


def test_stripes_enter_where_they_lie(simulator: Path, tmp_path: Path) -> None:
    """One write of 32 MiB at four servers is 8 MiB at each, and none waits for another server's room."""
    platform = write_platform(tmp_path, "capacity: 8MiB; above: 0.99", count=4)
    phase = run(simulator, platform, "block_size=32MiB")[-1]
    assert phase["seconds"] == pytest.approx(8 / 100, rel=1e-6)
    assert phase["buffers"]["b"]["peak"] == 8 * MIB and phase["buffers"]["b"]["stopped"] == 0
    small = run(simulator, write_platform(tmp_path, "capacity: 4MiB; above: 0.99", count=4), "block_size=32MiB")[-1]
    assert small["buffers"]["b"]["stopped"] == 4
    assert small["buffers"]["b"]["drained"] == 32 * MIB - small["buffers"]["b"]["held"] == 16 * MIB


def test_one_server_of_stripes_is_one_server(simulator: Path, tmp_path: Path) -> None:
    platform = write_platform(tmp_path, "capacity: 8MiB", oss="20MiB/s")
    spanned = run(simulator, platform)[-1]["seconds"]
    whole = Path(platform).read_text().replace("{buffer: b, stripes: spanned}", "{buffer: b}")
    Path(platform).write_text(whole)
    assert run(simulator, platform)[-1]["seconds"] == pytest.approx(spanned, rel=1e-9)


def test_stages_before_the_first_phase_and_after_each(simulator: Path, tmp_path: Path) -> None:
    """Two pieces at a time take 0.2 s of the disk behind and 20 ms of the device. 20 MiB come in; 12 are left."""
    inner = (
        "capacity: 32MiB; above: 0.9; at_once: 2; stage_out: phase;"
        "staged: 20MiB; stage_in: [{transfer: read, station: oss}, {disk: write, station: bb}]"
    )
    phases = run(simulator, write_platform(tmp_path, inner, oss="10MiB/s"), "per_process=10MiB")
    assert phases[0]["start_seconds"] == pytest.approx(10 * 0.22, rel=1e-6)
    assert phases[0]["buffers"]["b"]["staged_in_seconds"] == phases[0]["start_seconds"]
    written = phases[-1]
    assert written["seconds"] == pytest.approx(0.1, rel=1e-6)
    assert written["buffers"]["b"]["staged_out_seconds"] == pytest.approx(5 * 0.22, rel=1e-6)
    assert written["buffers"]["b"]["held"] == 0
    full = run(simulator, write_platform(tmp_path, inner, oss="10MiB/s"))[-1]
    assert full["buffers"]["b"]["peak"] == 12 * MIB and full["seconds"] > 1.9


def test_capacity_is_given_out_in_granules(simulator: Path, tmp_path: Path) -> None:
    platform = write_platform(tmp_path, "capacity: 100MiB; granularity: 82MiB")
    done = subprocess.run(
        [str(simulator), "--platform", platform, "--print-platform"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["buffers"]["b"]["capacity"] == 164 * MIB


@pytest.mark.parametrize("name", ["datawarp", "datawarp-8", "cori", "ime"])
def test_platforms_of_the_catalogue_absorb_and_drain(simulator: Path, tmp_path: Path, name: str) -> None:
    """When all that was written is staged out, it has passed the flash twice and the disks behind once."""
    file = tmp_path / "p.yaml"
    file.write_text(f"schema_version: 1\nextends: {name}\nbuffers: {{absorbed: {{stage_out: phase}}}}\n")
    command = [str(simulator), "--platform", str(file), "--workload", "hpcs-07", "--set", "arrays=2", "--nodes", "8"]
    done = subprocess.run([*command, "--json", "--brief"], capture_output=True, text=True, check=True)
    phase = next(p for p in json.loads(done.stdout)["phases"] if p["name"] == "checkpoint")
    buffer = phase["buffers"]["absorbed"]
    assert buffer["entered"] == buffer["drained"] == phase["by_operation"]["pwrite"]["bytes"]
    assert buffer["staged_out_seconds"] > 0 == buffer["held"]


def test_a_disk_that_is_rebuilt_has_a_share_of_its_speed(simulator: Path, tmp_path: Path) -> None:
    """A quarter of 100 MiB/s for 0.4 s is 10 MiB; 22 more follow at full speed."""
    more = "failures: {rebuild: {disk: bb 0, at: 0s, length: 400ms, share: 0.25}}"
    phase = run(simulator, write_platform(tmp_path, "capacity: 1GiB; above: 0.99", more=more))[-1]
    assert phase["seconds"] == pytest.approx(0.4 + 22 / 100, rel=1e-6)


@pytest.mark.parametrize(
    ("buffer", "more", "sentence"),
    [
        ("capacity: 1GiB; stage_out: always", "", "it can't be 'always'. Allowed: never, phase"),
        ("capacity: 4MiB; staged: 4MiB; stage_in: [{delay: 1s}]", "", "no room for 4MiB and a unit besides"),
        ("capacity: 1GiB; staged: 4MiB", "", "the key 'stage_in' is missing"),
        ("capacity: 1GiB; staged: 4MiB; stage_in: []", "", "give it at least one"),
        ("capacity: 1GiB; staged: 4MiB; stage_in: [{transfer: write, station: oss}]", "", "is read, not written"),
        ("capacity: 1GiB; staged: 4MiB; stage_in: [{flush: b}]", "", "what is staged in goes through"),
        ("capacity: 1GiB; granularity: 0B", "", "granularity"),
        ("capacity: 512KiB", "", "no room for a stripe of 'bb', of 1048576 bytes"),
        ("capacity: 1GiB", "failures: {r: {disk: bb 7, at: 0s, length: 1s, share: 0.5}}", "there is no 'bb 7 disk'"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_line(
    simulator: Path, tmp_path: Path, buffer: str, more: str, sentence: str
) -> None:
    platform = write_platform(tmp_path, buffer, more=more)
    command = [str(simulator), "--platform", platform, "--workload", "ior-easy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and f"{platform}:" in done.stderr and sentence in done.stderr, done.stderr


def test_a_study_says_which_buffer_ran_full(simulator: Path, tmp_path: Path) -> None:
    """Of the buffers above the one of 8 MiB misses the level since it is full, and the one of 64 MiB is what to buy;
    there nothing waits for room."""
    platform = write_platform(tmp_path, "capacity: 1GiB", oss="10MiB/s")
    settings = {"block_size": "1MiB", "per_process": "32MiB", "sharing": "process", "run": "write", "fsync": "never"}
    study = study_inputs.changed(
        platform=platform,
        workloads={"dump": {"workload": "application", "phase": "write", "settings": settings}},
        scales={"one": {"nodes": 1, "ranks_per_node": 1}},
        axes={
            "capacity": {
                size: {"edit": {"buffers.b.capacity": size}, "parts": {"core": cores}}
                for size, cores in (("8MiB", 1), ("64MiB", 8))
            }
        },
        levels=["time(dump) < 1 s"],
        uncertainty=None,
    )
    answer = study_run(study_inputs.write(tmp_path, study), out=tmp_path / "out").document()
    texts = {one["about"]: one["text"] for one in answer["conclusions"]}
    assert "the buffer 'b' ran full, and writes waited for room" in texts["Why not cheaper"]
    assert "It took in 11.6 MB/s while it drained 8.71 MB/s" in texts["Why not cheaper"]
    enough = run(simulator, write_platform(tmp_path, "capacity: 64MiB", oss="10MiB/s"))[-1]
    assert enough["buffers"]["b"]["stopped"] == 0
    for size, limit in (("8MiB", "ran full"), ("64MiB", "the disk of")):
        place = write_platform(tmp_path, f"capacity: {size}", oss="10MiB/s")
        found = predict(Fitted.open(place), "application", settings, 1, 1, phase="write", solver="simulate")
        assert limit in found["bottleneck"] and ("ran full" in found["bottleneck"]) == (size == "8MiB")

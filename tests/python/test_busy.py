# SPDX-License-Identifier: Apache-2.0
"""Whether the machine is busy before a measurement, from files in the kernel's format, and what that changes."""

import dataclasses
import os
from pathlib import Path

import pytest

from iocast.watching import busy
from iocast.watching.busy import TICKS, Activity, activity, counters
from iocast.report import story
from iocast.report.sources import Sources
from iocast.wording.notes import sentence

SECONDS = 2.0


def machine(
    proc: Path,
    *,
    used: float = 0.0,
    steal: float = 0.0,
    disk: float = 0.0,
    sectors: int = 0,
    runnable: int = 1,
    pressure: float = 0.0,
    load: float = 0.1,
) -> None:
    """Writes /proc of two CPUs and a disk with two partitions, with counters in seconds since the boot."""
    half = (int(TICKS * (100 + used / 2)), int(TICKS * steal / 2))
    cpus = "".join(f"cpu{n} {half[0]} 0 0 9999 0 0 0 {half[1]} 0 0\n" for n in range(2))
    proc.mkdir(exist_ok=True)
    # A third CPU, which this process may not use, is always busy.
    forbidden = f"cpu2 {int(1e6 * used)} 0 0 0 0 0 0 0 0 0\n"
    (proc / "stat").write_text(f"cpu 1 2 3 4\n{cpus}{forbidden}intr 5 4 3\nprocs_running {runnable}\n")
    rows = [(8, 0, "sda"), (8, 1, "sda1"), (253, 2, "vdb"), (7, 0, "loop0")]
    moving = {"sda", "sda1", "loop0"}
    lines = []
    for major, minor, name in rows:
        read, milliseconds = (sectors, int(disk * 1000)) if name in moving else (0, 0)
        lines.append(f"{major:4} {minor:7} {name} 1 0 {read} 1 1 0 0 1 0 {milliseconds} 1 0 0 0 0")
    (proc / "diskstats").write_text("\n".join(lines) + "\n")
    (proc / "loadavg").write_text(f"{load} 0.2 0.3 1/99 4711\n")
    (proc / "pressure").mkdir(exist_ok=True)
    full = "full avg10=0.00 avg60=0.00 avg300=0.00 total=3"
    (proc / "pressure" / "io").write_text(f"some avg10={100 * pressure:.2f} avg60=0.00 avg300=0.00 total=9\n{full}\n")


def between(proc: Path, device: tuple[int, int] | None = None, **after: float) -> Activity:
    """The activity from an idle reading to one with these counters, two seconds later."""
    machine(proc)
    first = counters(proc, {0, 1})
    machine(proc, **after)  # type: ignore[arg-type]
    second = counters(proc, {0, 1})
    assert first is not None and second is not None
    return activity(first, dataclasses.replace(second, at=first.at + SECONDS), proc, device)


def test_a_quiet_machine_is_called_quiet(tmp_path: Path) -> None:
    quiet = between(tmp_path / "proc")
    assert quiet.effects(8) == []
    (sentence,) = quiet.sentences(8)
    assert (
        sentence.startswith("The machine is quiet: other processes use 0.0 of 2 CPUs") and "other nodes" not in sentence
    )
    assert "not the other nodes" in quiet.sentences(8, nodes=4)[0]


@pytest.mark.parametrize(
    ("after", "reported"),
    [
        ({"used": 3.0}, "Other processes use 1.5 of 2 CPUs"),
        ({"steal": 0.4}, "withholds 10% of the CPU time"),
        ({"disk": 1.0, "sectors": 40_000}, "The device sda is busy 50% of the time with other work (10.2 MB/s)"),
        ({"pressure": 0.4}, "waited for I/O in 40% of the last 10 s"),
    ],
    ids=["cpu", "steal", "disk", "pressure"],
)
def test_each_kind_of_activity_is_reported_alone(after: dict[str, float], reported: str, tmp_path: Path) -> None:
    """One effect each, in words and in the document; a tenth of the activity gives none."""
    found = between(tmp_path / "proc", **after)
    (effect,) = found.effects(8)
    assert reported in effect and found.to_json(8)["busy"]
    assert found.sentences(8)[0] == "The machine is busy." and found.sentences(8)[1] == effect
    assert not between(tmp_path / "proc", **{name: type(value)(value / 10) for name, value in after.items()}).effects(8)


@pytest.mark.parametrize(
    ("device", "measured"), [((8, 1), True), ((8, 0), True), ((253, 2), False), ((0, 44), False), (None, False)]
)
def test_the_measured_device_is_known_by_its_number(
    device: tuple[int, int] | None, measured: bool, tmp_path: Path
) -> None:
    """A partition's disk is its own; a network file system and a service have no device."""
    (sda,) = [disk for disk in between(tmp_path / "proc", device, disk=1.0, sectors=10).disks if disk.busy > 0]
    assert sda.name == "sda" and sda.measured is measured
    assert ("holds for storage with this load" in between(tmp_path / "proc", device, disk=1.0).effects()[0]) is measured


def test_the_slowdown_follows_the_clients_and_the_others(tmp_path: Path) -> None:
    """Equal shares of two CPUs: no slowdown while there is room; as many clients as CPUs are slowed down most."""
    half = between(tmp_path / "proc", used=1.0 * SECONDS)
    assert (
        half.slowdown(1) == 1.0 and half.slowdown(2) == pytest.approx(1.5) and half.slowdown(8) == pytest.approx(9 / 8)
    )
    full = between(tmp_path / "proc", used=2.0 * SECONDS, runnable=7)
    others = full.runnable
    assert others == 3.0, "mean of both readings, without the process that reads"
    assert full.slowdown(1) == pytest.approx((1 + others) / 2) and full.slowdown(8) == pytest.approx((8 + others) / 8)
    assert "up to 2.5 times as long for their own work (2 at once; 8 at once: 1.4 times)" in full.effects(8)[0]
    assert "up to 2.0 times as long for their own work (1 at once)" in full.effects(1)[0]
    assert half.effects(1) == [] and "(2 at once; 8 at once: 1.1 times)" in half.effects(8)[0], (
        "a free CPU is enough for one"
    )


def test_what_the_kernel_does_not_report_is_unknown(tmp_path: Path) -> None:
    nothing = busy.look(tmp_path, 0.0, tmp_path / "proc")
    assert nothing.effects(8) == [] and nothing.cpus_used is None and "unknown" in nothing.sentences()[0]
    machine(tmp_path / "proc")
    (tmp_path / "proc" / "pressure" / "io").unlink()
    (tmp_path / "proc" / "diskstats").write_text("8 0 sda what\n")
    part = counters(tmp_path / "proc", {0, 1})
    assert part is not None and part.disks == {} and part.cpus == 2
    assert activity(part, part, tmp_path / "proc").io_pressure is None


def test_this_machine_answers(tmp_path: Path) -> None:
    found = busy.look(tmp_path, 0.05)
    assert (
        found.cpus == len(os.sched_getaffinity(0))
        and found.cpus_used is not None
        and 0 <= found.cpus_used <= found.cpus
    )
    assert found.sentences()


def test_answers_of_a_busy_campaign_say_so(tmp_path: Path) -> None:
    """The report's warnings and the notes of a calibration repeat the effects; a campaign of before has none."""
    looks = [between(tmp_path / "proc", used=used).to_json(8) for used in (0.0, 2.0)]
    campaign = {"name": "scratch", "points": [], "machine": looks}
    (note,) = busy.notes(campaign, "scratch")
    shown = sentence(note)
    assert shown.startswith("The machine was busy before 'scratch' was measured. Other processes use 1.0 of 2 CPUs")
    assert story.warnings(Sources(campaigns=[campaign])) == [shown]
    for quiet in ({}, {"machine": looks[:1]}, {"machine": "no list"}, {"machine": [3]}):
        assert busy.notes(quiet, "scratch") == []

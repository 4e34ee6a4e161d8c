# SPDX-License-Identifier: Apache-2.0
"""Activity of this machine just before a measurement, and what that does to the answer.

docs/campaigns.md, "A busy machine". Sources: /proc/stat (CPU time and steal of the allowed CPUs, runnable processes)
and /proc/diskstats (busy time of block devices) at both ends of a short window, /proc/loadavg, and /proc/pressure
(share of the last 10 s in which some process waited). Fields: proc(5), and the kernel's documentation of I/O
statistics and of pressure stall information.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iocast.ground.progress import stderr
from iocast.ground.strict import is_whole
from iocast.records.campaign import CampaignDocument
from iocast.records.note_of_measurements import MachineBusy

PROC = Path("/proc")
WINDOW_SECONDS = 0.25
"""Length of the observed window: 25 ticks of a CPU."""
BUSY_CPU = 0.15
"""Share of the CPUs that others may use before the machine counts as busy."""
BUSY_STEAL = 0.02
"""Share of CPU time that a hypervisor may withhold."""
BUSY_DISK = 0.15
"""Share of the window in which a block device may have requests of others in flight."""
BUSY_PRESSURE = 0.15
"""Share of the last 10 s in which some process waited for I/O."""
TICKS = os.sysconf("SC_CLK_TCK")
SECTOR_BYTES = 512


@dataclass(frozen=True)
class Counters:
    """Counters at one time. Seconds are those of all allowed CPUs together.

    `runnable`: processes that run or wait for a CPU, without the one that reads; `disks`: by (major, minor) the name,
    bytes and busy seconds."""

    at: float
    busy_seconds: float = 0.0
    steal_seconds: float = 0.0
    cpus: int = 1
    runnable: int = 0
    disks: dict[tuple[int, int], tuple[str, int, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Disk:
    """One block device in the window. `measured`: whether the directory that will be measured lies on it."""

    name: str
    busy: float
    bytes_per_second: float
    measured: bool


@dataclass(frozen=True)
class Activity:
    """What the machine did in the window. None: this kernel doesn't report it."""

    cpus: int
    cpus_used: float | None
    runnable: float | None
    steal: float | None
    load_average: float | None
    io_pressure: float | None
    disks: tuple[Disk, ...]

    def to_json(self, clients: int = 1) -> dict[str, Any]:
        disks = [
            {"name": d.name, "busy": d.busy, "bytes_per_second": d.bytes_per_second, "measured": d.measured}
            for d in self.disks
        ]
        return {
            "cpus": self.cpus, "cpus_used": self.cpus_used, "runnable": self.runnable, "steal": self.steal,
            "load_average": self.load_average,
            "io_pressure": self.io_pressure, "disks": disks,
            "busy": bool(self.effects(clients)), "effects": self.effects(clients),
        }  # fmt: skip

    def slowdown(self, clients: int) -> float:
        """Factor by which the clients' own work takes longer beside other processes, with equal shares of the CPUs.

        Clients that mostly wait for the storage need less than a share, so this is an upper limit."""
        others = self.cpus_used or 0.0
        if others > 0.9 * self.cpus:  # more would run if there were more CPUs
            others = max(others, self.runnable or 0.0)
        return max(1.0, (clients + others) / self.cpus) / max(1.0, clients / self.cpus)

    def effects(self, clients: int = 1) -> list[str]:
        """Each activity of others above its limit, and what it does to the answer; empty on a quiet machine.

        `clients`: the largest number of ranks that will run on this machine."""
        found = []
        worst = max(range(1, clients + 1), key=self.slowdown)
        slowest = self.slowdown(worst)
        if self.cpus_used is not None and self.cpus_used > BUSY_CPU * self.cpus and slowest > 1.05:
            load = "" if self.load_average is None else f" (load average {self.load_average:.1f})"
            all_together = "" if worst == clients else f"; {clients} at once: {self.slowdown(clients):.1f} times"
            found.append(
                f"Other processes use {self.cpus_used:.1f} of {self.cpus} CPUs{load}. "
                f"Clients take up to {slowest:.1f} times as long for their own work ({worst} at once{all_together}). "
                "Rates come out lower and latencies longer, and calibration counts the difference as the storage's."
            )
        if self.steal is not None and self.steal > BUSY_STEAL:
            found.append(
                f"The hypervisor withholds {self.steal:.0%} of the CPU time (steal). "
                "Pauses of the clients appear as long operations: the 99 % quantiles come out too long."
            )
        for disk in self.disks:
            if disk.busy <= BUSY_DISK:
                continue
            megabytes = disk.bytes_per_second / 1e6
            doing = (
                f"The device {disk.name} is busy {disk.busy:.0%} of the time with other work ({megabytes:.1f} MB/s)."
            )
            if disk.measured:
                found.append(
                    f"{doing} The measured directory lies on it: "
                    "the answer holds for storage with this load, not for idle storage."
                )
            else:
                found.append(
                    f"{doing} The measured directory does not lie on it, as far as its device number shows; "
                    "the caches are shared all the same."
                )
        if (
            self.io_pressure is not None
            and self.io_pressure > BUSY_PRESSURE
            and not any(disk.busy > BUSY_DISK for disk in self.disks)
        ):
            found.append(
                f"Processes waited for I/O in {self.io_pressure:.0%} of the last 10 s. "
                "If that was the measured storage, the answer holds for it with this load."
            )
        return found

    def sentences(self, clients: int = 1, nodes: int = 1) -> list[str]:
        """The report: one sentence on a quiet machine, and with effects also what to do about them."""
        of = " This is about the node where iocast runs, not the other nodes." if nodes > 1 else ""
        found = self.effects(clients)
        if found:
            todo = f"Measure again when it is quiet, or keep the answer for this load.{of}"
            return ["The machine is busy.", *found, todo]
        known = [] if self.cpus_used is None else [f"other processes use {self.cpus_used:.1f} of {self.cpus} CPUs"]
        known += [] if self.steal is None else [f"steal is {self.steal:.0%}"]
        if self.disks:
            busiest = max(self.disks, key=lambda disk: disk.busy)
            known.append(f"the busiest device ({busiest.name}) is busy {busiest.busy:.0%} of the time")
        if not known:
            return ["Whether the machine is busy is unknown: /proc/stat and /proc/diskstats can't be read."]
        return [f"The machine is quiet: {', '.join(known)}.{of}"]


def report_activity(place: Path | None, clients: int, nodes: int) -> dict[str, Any]:
    """Looks, reports on standard error, and returns the entry of a campaign's `machine` (docs/answers.md).

    `clients`: the largest number of ranks on this machine; `nodes`: the largest number of nodes."""
    found = look(place)
    for sentence in found.sentences(clients, nodes):
        stderr.print(sentence, markup=False, soft_wrap=True)
    return {"wall": time.time(), "host": socket.gethostname(), **found.to_json(clients)}


def notes(campaign: CampaignDocument, name: str) -> list[MachineBusy]:
    """For answers that rest on a campaign (its campaign.json) which was measured on a busy machine."""
    looks = campaign.get("machine")
    busy = [look for look in looks if isinstance(look, dict) and look.get("busy")] if isinstance(looks, list) else []
    effects = [str(effect) for look in busy[:1] for effect in look.get("effects") or []]
    return [MachineBusy(name, effects)] if busy else []


def counters(proc: Path = PROC, allowed: set[int] | None = None) -> Counters | None:
    """Counters of this moment; None where /proc/stat can't be read.

    `allowed`: numbers of the CPUs that count, by default those that this process may use."""
    allowed = os.sched_getaffinity(0) if allowed is None else allowed
    at = time.monotonic()
    busy = steal = 0.0
    cpus = 0
    runnable = 1
    try:
        for line in (proc / "stat").read_text().splitlines():
            name, *numbers = line.split()
            if name == "procs_running":
                runnable = int(numbers[0])
            if not (name.startswith("cpu") and is_whole(name[3:]) and int(name[3:]) in allowed):
                continue
            user, nice, system, _, _, irq, softirq, stolen = (int(number) for number in [*numbers, *["0"] * 8][:8])
            busy += (user + nice + system + irq + softirq) / TICKS
            steal += stolen / TICKS
            cpus += 1
    except (OSError, ValueError):
        return None
    return Counters(at, busy, steal, cpus, max(runnable - 1, 0), _disks(proc)) if cpus else None


def _disks(proc: Path) -> dict[tuple[int, int], tuple[str, int, float]]:
    """Block devices that hold data: whole devices and their partitions, without loop and RAM devices."""
    found = {}
    with contextlib.suppress(OSError, ValueError):
        for line in (proc / "diskstats").read_text().splitlines():
            words = line.split()
            if len(words) < 13 or words[2].startswith(("loop", "ram", "zram")):
                continue
            found[int(words[0]), int(words[1])] = (
                words[2],
                (int(words[5]) + int(words[9])) * SECTOR_BYTES,
                int(words[12]) / 1000,
            )
    return found


def activity(before: Counters, after: Counters, proc: Path = PROC, device: tuple[int, int] | None = None) -> Activity:
    """What the machine did between two readings. `device`: (major, minor) of the file system that will be measured."""
    seconds = max(after.at - before.at, 1e-3)
    own = before.disks.get(device) if device is not None else None
    disks = []
    for number, (name, moved, busy) in after.disks.items():
        if number not in before.disks:
            continue
        _, moved_before, busy_before = before.disks[number]
        share = min((busy - busy_before) / seconds, 1.0)
        measured = own is not None and (own[0] == name or own[0].startswith(name))
        disks.append(Disk(name, share, (moved - moved_before) / seconds, measured))
    whole = [
        disk
        for disk in disks
        if not any(disk.name != other.name and disk.name.startswith(other.name) for other in disks)
    ]
    used = (after.busy_seconds - before.busy_seconds) / seconds
    steal = max(after.steal_seconds - before.steal_seconds, 0.0) / (seconds * after.cpus)
    return Activity(
        cpus=after.cpus,
        cpus_used=min(max(used, 0.0), float(after.cpus)),
        runnable=(before.runnable + after.runnable) / 2,
        steal=steal,
        load_average=_load(proc),
        io_pressure=_pressure(proc),
        disks=tuple(whole),
    )


def look(place: Path | None = None, seconds: float = WINDOW_SECONDS, proc: Path = PROC) -> Activity:
    """Activity in the next `seconds`, in which this process sleeps. `place`: the directory that will be measured."""
    before = counters(proc)
    if before is None:
        return Activity(os.cpu_count() or 1, None, None, None, _load(proc), _pressure(proc), ())
    time.sleep(seconds)
    after = counters(proc)
    device = None
    with contextlib.suppress(OSError):
        if place is not None:
            number = os.stat(place).st_dev
            device = (os.major(number), os.minor(number))
    return activity(before, after or before, proc, device)


def _load(proc: Path) -> float | None:
    """Load average of the last minute."""
    try:
        return float((proc / "loadavg").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _pressure(proc: Path) -> float | None:
    """Share of the last 10 s in which some process waited for I/O."""
    try:
        words = (proc / "pressure" / "io").read_text().split()
        return float(words[1].removeprefix("avg10=")) / 100
    except (OSError, ValueError, IndexError):
        return None

# SPDX-License-Identifier: Apache-2.0
"""Watching a machine beside a measurement: CPU, named processes, memory, block devices, network (docs/observe.md).

Every sample is one line of JSON with counters that only grow, written at once, so that whatever ends the observer
leaves a file that can be used, and a lost sample loses nothing but resolution; only what processes wait for is counted
in each sample by itself. Times are of the monotonic clock, with the wall clock beside it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, TextIO

import psutil

from iocast.errors import InputError, RunError
from iocast.ground.files import SCHEMA_VERSION
from iocast.watching.waits import wait_of

SHORTEST, LONGEST = 0.01, 3600.0
"""Seconds between two samples."""
NAMING = 5
"""Samples during which a new process may still change its name: it is forked before it becomes what it is called."""


class Named:
    """The processes of one name: their counters added up, those that have ended included; with `waits`, what they wait
    for now."""

    def __init__(self, name: str, waits: bool = False) -> None:
        self.name = name
        self._waits = waits
        self._alive: dict[int, psutil.Process] = {}
        self._last: dict[int, tuple[float, int, int]] = {}  # CPU seconds, bytes read and written
        self._ended = [0.0, 0, 0]

    def matches(self, process: psutil.Process) -> bool:
        name: str = process.name()
        # The kernel keeps 15 characters.
        return name == self.name or name == self.name[:15]

    def add(self, process: psutil.Process) -> None:
        self._alive.setdefault(process.pid, process)

    def __contains__(self, pid: int) -> bool:
        return pid in self._alive

    def sample(self) -> dict[str, Any]:
        resident = threads = 0
        for pid, process in list(self._alive.items()):
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    memory = process.memory_info().rss
                    threads += process.num_threads()
                read, write = _io(process)
                resident += memory
                self._last[pid] = (times.user + times.system, read, write)
            except psutil.Error:  # it has ended; what it had used stays
                del self._alive[pid]
                for i, value in enumerate(self._last.pop(pid, (0.0, 0, 0))):
                    self._ended[i] += value
        cpu, read_bytes, written_bytes = (
            self._ended[i] + sum(last[i] for last in self._last.values()) for i in range(3)
        )
        answer = {
            "cpu": round(cpu, 6),
            "count": len(self._alive),
            "threads": threads,
            "resident": resident,
            "read_bytes": read_bytes,
            "write_bytes": written_bytes,
        }
        return answer | {"waits": self._asleep()} if self._waits else answer

    def _asleep(self) -> dict[str, int]:
        """How many of them sleep, by where."""
        found: Counter[str] = Counter()
        for pid in self._alive:
            with contextlib.suppress(OSError):
                if where := wait_of(pid):
                    found[where] += 1
        return dict(found)


def _io(process: psutil.Process) -> tuple[int, int]:
    """Bytes that reached the storage layer; zero where another user's process does not tell."""
    try:
        counters = process.io_counters()
        return counters.read_bytes, counters.write_bytes
    except (psutil.AccessDenied, AttributeError):
        return 0, 0


class Sampler:
    """Takes samples of this machine. Not for use by several threads."""

    def __init__(self, processes: Sequence[str], waits: bool = False) -> None:
        self.named = [Named(name, waits) for name in processes]
        self._known: dict[int, int] = {}  # pid -> samples since it was first seen

    def header(self, every: float) -> dict[str, Any]:
        memory = psutil.virtual_memory()
        links = {name: link.speed for name, link in psutil.net_if_stats().items() if link.speed > 0}
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "observation",
            "host": socket.gethostname(),
            "cores": psutil.cpu_count() or 1,
            "every_seconds": every,
            "processes": [named.name for named in self.named],
            "memory_bytes": memory.total,
            "link_megabits": links,
            "monotonic": time.monotonic(),
            "wall": time.time(),
        }

    def sample(self) -> dict[str, Any]:
        at, wall = time.monotonic(), time.time()
        cores = psutil.cpu_times(percpu=True)
        memory = psutil.virtual_memory()
        disks = psutil.disk_io_counters(perdisk=True, nowrap=False) or {}
        links = psutil.net_io_counters(pernic=True, nowrap=False) or {}
        self._find()
        return {
            "monotonic": round(at, 6),
            "wall": round(wall, 6),
            "cpu": [round(_busy(core), 3) for core in cores],
            "steal": round(sum(getattr(core, "steal", 0.0) for core in cores), 3),
            "iowait": round(sum(getattr(core, "iowait", 0.0) for core in cores), 3),
            "memory": {"available": memory.available, "cached": getattr(memory, "cached", 0)},
            "disks": {
                name: {
                    "reads": d.read_count,
                    "writes": d.write_count,
                    "read_bytes": d.read_bytes,
                    "write_bytes": d.write_bytes,
                    "busy": getattr(d, "busy_time", 0) * 1e-3,
                }
                for name, d in disks.items()
                if d.read_count or d.write_count
            },
            "links": {
                name: {"sent": n.bytes_sent, "received": n.bytes_recv, "packets": n.packets_sent + n.packets_recv}
                for name, n in links.items()
            },
            "processes": {named.name: named.sample() for named in self.named},
        }

    def _find(self) -> None:
        """New processes of the requested names. Only pids that were not there before are looked at, and those a few
        times."""
        if not self.named:
            return
        present = set(psutil.pids())
        self._known = {pid: seen for pid, seen in self._known.items() if pid in present}
        for pid in present:
            seen = self._known.get(pid, 0)
            if seen >= NAMING:
                continue
            self._known[pid] = seen + 1
            try:
                process = psutil.Process(pid)
                for named in self.named:
                    if pid not in named and named.matches(process):
                        named.add(process)
                        self._known[pid] = NAMING
            except psutil.Error:
                continue


def _busy(core: Any) -> float:
    """Seconds in which the core did something: neither idle nor waiting for a device. Guests are within user time
    already."""
    return float(core.user + core.nice + core.system + core.irq + core.softirq + getattr(core, "steal", 0.0))


class Observer:
    """Writes samples to a file in a thread of its own, from entering until leaving it as a context manager."""

    def __init__(self, out: Path, every: float, processes: Sequence[str] = (), waits: bool = False) -> None:
        self.out, self.every = out, every
        self._sampler = Sampler(processes, waits)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="observer", daemon=True)
        self.samples = 0
        self.error: OSError | None = None
        self._file: TextIO | None = None

    def __enter__(self) -> Observer:
        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.out.open("x", buffering=1)  # a line at a time
            self._file.write(json.dumps(self._sampler.header(self.every)) + "\n")
        except FileExistsError:
            raise InputError(
                f"The output '{self.out}' exists already; name a new one, nothing is overwritten."
            ) from None
        except OSError as error:
            self._close()
            raise RunError(f"The file '{self.out}' can't be written: {error.strerror}.") from error
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._close()

    def _close(self) -> None:
        """What is left of a line that did not fit is dropped."""
        try:
            if self._file is not None:
                self._file.close()
        except OSError as error:
            self.error = self.error or error

    def _run(self) -> None:
        start = time.monotonic()
        own = time.thread_time()
        number = 0
        try:
            while True:
                self._write(self._sampler.sample())
                self.samples += 1
                # On a grid: a late sample does not shift those after it, and missed ones are left out.
                number = max(number + 1, int((time.monotonic() - start) / self.every))
                if self._stop.wait(max(0.0, start + number * self.every - time.monotonic())):
                    break
            self._write(self._sampler.sample())
            self.samples += 1
            self._write({"end": True, "samples": self.samples, "own_cpu": round(time.thread_time() - own, 6)})
        except OSError as error:  # a full disk must not end what is observed
            self.error = error

    def _write(self, line: dict[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")


def observe(out: Path, every: float, processes: Sequence[str], command: Sequence[str], waits: bool = False) -> int:
    """Observes until `command` ends, or without one until SIGTERM or SIGINT; these are handed on to the command.

    @return the command's exit status (128 + signal when a signal ended it), 0 without one"""
    ended = threading.Event()
    child: subprocess.Popen[bytes] | None = None

    def stop(number: int, _frame: FrameType | None) -> None:
        ended.set()
        if child is not None and child.poll() is None and number != signal.SIGINT:  # the terminal sends SIGINT to both
            child.send_signal(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with Observer(out, every, processes, waits) as observer:
            if not command:
                while not ended.wait(3600):
                    pass
                status = 0
            else:
                try:
                    child = subprocess.Popen(list(command))
                except OSError as error:
                    out.unlink()
                    raise InputError(f"The command '{command[0]}' can't be started: {error.strerror}.") from error
                status = _wait(child)
        if observer.error is not None:
            raise RunError(f"The observation '{out}' is incomplete: {observer.error.strerror}.")
        return status
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(child: subprocess.Popen[bytes]) -> int:
    status = child.wait()
    return 128 - status if status < 0 else status


def run_directories_of(command: Sequence[str]) -> list[Path]:
    """Run directories that a command wrote: what follows its --out, when it is one or a campaign of some."""
    for i, word in enumerate(command):
        value = (
            command[i + 1]
            if word == "--out" and i + 1 < len(command)
            else word.removeprefix("--out=")
            if word.startswith("--out=")
            else None
        )
        if value is None:
            continue
        path = Path(os.path.expanduser(value))
        if (path / "run.json").is_file():
            return [path]
        return sorted(p.parent for p in path.glob("runs/*/run.json"))
    return []

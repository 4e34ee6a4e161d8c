# SPDX-License-Identifier: Apache-2.0
"""Precedence of a laboratory's processes on a machine that others use too: a control group of their own with a larger
weight, and short slices. Niceness doesn't count between sessions where the kernel groups processes by session
(autogroup). A process that wakes up waits for the end of another one's slice, unless its own is shorter (EEVDF, Linux
6.12): else each of the steps of a request would take some ms more on a busy machine."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import time
from pathlib import Path

GROUPS = ((Path("/sys/fs/cgroup/cpu"), "cpu.shares", 65536), (Path("/sys/fs/cgroup"), "cpu.weight", 6400))
"""Mount points of version 1 and 2 of control groups, with the file of the weight and 64 times its default."""

SLICE = 100_000
"""Nanoseconds."""
SYSTEM_CALLS = {"x86_64": 314, "aarch64": 274}
"""Numbers of sched_setattr(2)."""


def make(name: str) -> Path | None:
    """Makes the group, unless it is there; None where this machine has none to be made."""
    for top, file, weight in GROUPS:
        group = top / name
        with contextlib.suppress(OSError):
            group.mkdir(exist_ok=True)
            if (group / file).exists():
                (group / file).write_text(str(weight))
                return group
            group.rmdir()
    return None


def join(group: Path | None) -> None:
    """Gives precedence to this process and to all that it starts, as far as this machine can."""
    if group is not None:
        with contextlib.suppress(OSError):
            (group / "cgroup.procs").write_text(str(os.getpid()))
    if (number := SYSTEM_CALLS.get(platform.machine())) is not None:
        attributes = struct.pack("=IIQiIQQQ", 48, os.SCHED_OTHER, 0, 0, 0, SLICE, 0, 0)
        ctypes.CDLL(None).syscall(number, 0, attributes, 0)  # older kernels refuse or ignore it


def remove(name: str, patience: float) -> None:
    """Removes the group, whose last processes may need `patience` seconds to end."""
    until = time.monotonic() + patience
    for top, _, _ in GROUPS:
        while (top / name).exists():
            with contextlib.suppress(OSError):
                (top / name).rmdir()
            if time.monotonic() > until:
                break
            time.sleep(0.02)

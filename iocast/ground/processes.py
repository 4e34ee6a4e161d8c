# SPDX-License-Identifier: Apache-2.0
"""Child processes that end with the process that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)


def end_with_parent(number: int = signal.SIGTERM, parent: int | None = None) -> None:
    """The kernel sends this process the signal `number` when its parent dies, however it dies. Linux only; elsewhere
    nothing happens.

    `parent`: process id of the parent, which may have died before this call."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), number)


def start(command: Sequence[str], number: int = signal.SIGTERM, **options: Any) -> subprocess.Popen[Any]:
    """A child that gets the signal `number` when the calling thread ends. `options`: those of subprocess.Popen."""
    return subprocess.Popen(list(command), preexec_fn=_bound_to(os.getpid(), number), **options)


def _bound_to(parent: int, number: int) -> Callable[[], None]:
    return lambda: end_with_parent(number, parent)

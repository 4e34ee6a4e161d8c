# SPDX-License-Identifier: Apache-2.0
"""Where in the kernel a process sleeps: for a lock of the file system, for its journal, for an answer of the network.
What a benchmark sees as one long operation has its reason there."""

from __future__ import annotations

from pathlib import Path

DEEPEST = 5
"""Frames of a stack, the innermost first, that tell one wait from another."""
NOT_SHOWN = "(the kernel doesn't show where)"


def wait_of(pid: int) -> str | None:
    """The innermost functions of the kernel in which the process's main thread sleeps, "xfs_buf_lock <
    xfs_buf_find_lock < ..."; nothing when it runs, waits for a core only, or has ended. Root sees DEEPEST of them;
    others one of their own processes', and NOT_SHOWN of the rest.

    @raises OSError when there is no such process"""
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    if state in "RZX":
        return None
    try:
        frames = [line.split()[1].partition("+")[0] for line in Path(f"/proc/{pid}/stack").read_text().splitlines()]
    except PermissionError:
        frames = [name for name in [Path(f"/proc/{pid}/wchan").read_text()] if name != "0"]
    return " < ".join(frames[:DEEPEST]) or NOT_SHOWN

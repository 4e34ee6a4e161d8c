# SPDX-License-Identifier: Apache-2.0
"""Inputs that many files of tests read: made once in a run of pytest, however many processes it has."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def shared(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A directory of that name, filled by `make` in whichever process asks first; the others wait for it. Tests only
    read it."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    directory, made = root / name, root / f"{name}.made"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            directory.mkdir()
            make(directory)
            made.touch()
    return directory

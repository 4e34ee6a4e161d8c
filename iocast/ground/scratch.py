# SPDX-License-Identifier: Apache-2.0
"""Temporary directories that nobody else can read. Each goes with the code that made it, or, when its process was
killed, at the next start of iocast by the same user."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from iocast.errors import InputError, RunError

PREFIX = "iocast-scratch-"
_swept: set[str] = set()
"""Directories that this process has swept."""


@contextlib.contextmanager
def scratch_directory(what: str, parent: Path | None = None) -> Iterator[Path]:
    """A new directory with mode 0700 in `parent`, by default in that for temporary files. `what`: part of its name.

    A lock on it says that its process lives. What dead processes of this user left beside it is removed first, once in
    a process."""
    where = tempfile.gettempdir() if parent is None else str(parent)
    if where not in _swept:
        _swept.add(where)
        sweep(Path(where))
    path, lock = _locked(what, where)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


@contextlib.contextmanager
def whole_directory(out: Path) -> Iterator[Path]:
    """A new directory that becomes `out` when the block ends well: `out` is whole, or isn't there. Files that name the
    new directory name `out` then. What ended the process before, a signal or a full disk, leaves the same command
    possible; its remains go at the next start.

    @raises RunError when it can't be made, or `out` is there by then"""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with scratch_directory("unfinished", out.parent) as scratch:
            (made := scratch / out.name).mkdir()
            try:
                yield made
            except (InputError, RunError) as error:
                raise type(error)(str(error).replace(str(made), str(out))) from error
            here, there = str(made).encode(), str(out).encode()
            for file in made.rglob("*"):
                if file.is_file() and here in (content := file.read_bytes()):
                    file.write_bytes(content.replace(here, there))
            os.rename(made, out)
    except OSError as error:
        raise RunError(f"The directory '{out}' can't be made: {error.strerror}.") from error


def _locked(what: str, where: str) -> tuple[Path, int]:
    """A new directory and the open descriptor that holds its lock."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{what}-", dir=where))
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # swept before it was opened
        with contextlib.suppress(OSError):  # a file system without locks: nobody sweeps there, either
            fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return path, lock
        os.close(lock)  # swept before it was locked


def sweep(where: Path) -> None:
    """Removes the directories of dead processes of this user."""
    with contextlib.suppress(OSError):
        for path in where.glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    if os.fstat(lock).st_uid == os.geteuid():
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        shutil.rmtree(path, ignore_errors=True)
                finally:
                    os.close(lock)

# SPDX-License-Identifier: Apache-2.0
"""Directories in which names are made, written and removed: this user's own, opened once, and never looked up by path
again."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from iocast.errors import InputError, RunError

MODE = 0o755
"""Of directories that are made: nobody else writes into them, whatever the umask."""


class OwnDirectory:
    """An open directory that belongs to this user and that nobody else can write to. `path` is its name for messages
    and for programs on other nodes. `at` leads to it from any process of this user on this machine, wherever `path`
    leads by now. Close it."""

    def __init__(self, path: Path) -> None:
        """@raises InputError for a symbolic link, for what is no directory, and for one that others can change"""
        self.path = path
        try:
            self._handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if not os.path.lexists(path) or stat.S_ISDIR(os.lstat(path).st_mode):
                raise
            raise InputError(foreign(path)) from error
        try:
            require_own(self._handle, path)
        except BaseException:
            self.close()
            raise
        self.at = Path(f"/proc/{os.getpid()}/fd/{self._handle}")

    @property
    def handle(self) -> int:
        return self._handle

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Errors of access through `at` name `path`."""
        try:
            yield
        except (InputError, RunError) as error:
            if str(self.at) not in str(error):
                raise
            raise type(error)(str(error).replace(str(self.at), str(self.path))) from error


def require_own_directory(path: Path) -> None:
    """As for an OwnDirectory, which isn't kept. @raises InputError"""
    OwnDirectory(path).close()


def foreign(path: Path) -> str:
    """Why a path can't be used that leads to no directory itself."""
    kind = "a symbolic link" if path.is_symlink() else "something else"
    return f"'{path}' is no directory of iocast's but {kind}; move it away, or name another directory."


def require_own(directory: int, shown: Path) -> None:
    """As the benchmark does (real/own_directory.cpp). @raises InputError when others can change what is in it"""
    about = os.fstat(directory)
    if about.st_uid != os.geteuid() and about.st_uid != (own := _user_of_files_in(directory)):
        raise InputError(
            f"The directory '{shown}' belongs to the user with the number {about.st_uid}, and files of this run to "
            f"{own}; who owns a directory can put links to other data into it. Name one of your own."
        )
    # A group of the same number as the user is the user's alone, as most systems set them up.
    others = about.st_mode & stat.S_IWOTH or (about.st_mode & stat.S_IWGRP and about.st_gid != about.st_uid)
    if others and not about.st_mode & stat.S_ISVTX:
        raise InputError(
            f"The directory '{shown}' can be written to by other users, who could put links to other data into it. "
            "Take that from them (chmod go-w), or name a directory of your own."
        )


def _user_of_files_in(directory: int) -> int:
    """A file system may know this user, or root, under another number, so a file is made to see it."""
    name = f".iocast.{secrets.token_hex(8)}"
    try:
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=directory)
    except OSError:
        return os.geteuid()
    try:
        return os.fstat(file).st_uid
    finally:
        os.close(file)
        os.unlink(name, dir_fd=directory)

# SPDX-License-Identifier: Apache-2.0
"""One owner of a directory at a time: a claim file in it names the host, the process and the campaign that work
there."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from iocast.errors import InputError, RunError

NAME = "iocast.owner.json"
BEAT = 30.0
"""Seconds between an owner's signs of life: the modification time of its claim."""
SILENCE = 300.0
"""Seconds without one after which an owner on another host may be dead."""
_UNFINISHED = re.compile(rf"\.{re.escape(NAME)}\.[0-9a-f]{{16}}")
"""Names of files that become a claim, or ask for the time."""
_MAX_BYTES = 65536
_MAX_SHOWN = 300
"""Characters of a value of a claim in a message."""
_PATIENCE = 30.0
"""Seconds to wait for who holds the lock, which takes a moment: anybody who can read the file may hold it."""
_SETTLE = 1.0
"""Seconds after which a claim is read again where the file system knows no locks."""


def _read_line(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _name_space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(process: int) -> str:
    """When the process began, in the kernel's ticks; "" when it is gone, or no more than a zombie, "?" when that can't
    be known, as of other users' processes where /proc hides them."""
    hidden = False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        hidden = True
    try:
        state, *rest = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return "?" if hidden or not Path("/proc/self/stat").exists() else ""
    except OSError:
        return "?"
    return "" if state in "ZX" else rest[18]


def _own(campaign: str, what: str) -> dict[str, Any]:
    return {
        "kind": "owner",
        "host": socket.gethostname(),
        "machine": _read_line("/etc/machine-id"),
        "boot": _read_line("/proc/sys/kernel/random/boot_id"),
        "name_space": _name_space(),
        "process": os.getpid(),
        "process_started": _started(os.getpid()),
        "since": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "campaign": campaign,
        "what": what,
        "token": secrets.token_hex(8),
    }


class Claim:
    """This process's claim to `directory`, which must exist. Release it; a daemon thread renews its sign of life until
    then."""

    def __init__(self, directory: Path, campaign: str, what: str, *, take_over: bool = False) -> None:
        """`campaign`: identity of the campaign. `what`: for a person, what is being done. `take_over`: also from
        another host that has been silent.

        @raises InputError when another process owns the directory"""
        self.path = directory / NAME
        self._lock = directory / f".{NAME}.lock"
        self.content = _own(campaign, what)
        self.predecessor: dict[str, Any] | None = None
        """The claim of a dead owner, when there was one."""
        self._file = -1
        try:
            while not self._make():
                self._replace(take_over)
                if self._file >= 0:
                    break
        except OSError as error:
            raise RunError(f"The directory '{directory}' can't be claimed: {error.strerror}.") from error
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True, name="claim")
        self._thread.start()

    @property
    def token(self) -> str:
        return str(self.content["token"])

    def release(self) -> None:
        """Removes the claim if it is still this process's."""
        if self._file < 0:
            return
        self._ended.set()
        self._thread.join(5)
        if self.is_held():
            for file in (*self._begun(), self._lock, self.path):
                with contextlib.suppress(OSError):
                    file.unlink()
        os.close(self._file)
        self._file = -1

    def _begun(self) -> list[Path]:
        """Claims that were never finished: of processes killed in between. Who is at it now finds this one's claim
        all the same, and is refused."""
        return [file for file in self.path.parent.glob(f".{NAME}.*") if _UNFINISHED.fullmatch(file.name)]

    def is_held(self) -> bool:
        """Whether nobody has taken it over."""
        return self._file >= 0 and (_read(self.path) or {}).get("token") == self.token

    def _make(self) -> bool:
        """Whether there was no claim. A file of its own content takes the name at once where the file system has links,
        so that nobody reads half of it."""
        fresh = self.path.with_name(f".{NAME}.{self.token}")
        file = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            self._write(file)
            try:
                os.link(fresh, self.path, follow_symlinks=False)
            except FileExistsError:
                return False
            except OSError:  # no links here
                os.close(file)
                file = -1
                try:
                    file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
                except FileExistsError:
                    return False
                try:
                    self._write(file)
                except BaseException:
                    self.path.unlink(missing_ok=True)
                    raise
            self._file, file = file, -1
            return True
        finally:
            with contextlib.suppress(OSError):
                fresh.unlink()
            if file >= 0:
                os.close(file)

    def _write(self, file: int) -> None:
        """The whole content, on the disk."""
        rest = (json.dumps(self.content, indent=1) + "\n").encode()
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fsync(file)

    def _replace(self, take_over: bool) -> None:
        """Takes the place of a dead owner. Who comes at the same time waits for the lock and finds this process's
        claim."""
        with _locked(self._lock) as locked:
            before = _read(self.path)
            if before is None:  # released meanwhile
                return
            if refusal := _refusal(self.path, before, self.content, take_over, _age):
                raise InputError(refusal)
            fresh = self.path.with_name(f".{NAME}.{self.token}")
            file = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            try:
                self._write(file)
                os.replace(fresh, self.path)
            except BaseException:
                os.close(file)
                fresh.unlink(missing_ok=True)
                raise
            self._file = file
            if not locked:
                time.sleep(_SETTLE)
                if not self.is_held():
                    os.close(file)
                    self._file = -1
                    return
            self.predecessor = before

    def _live(self) -> None:
        while not self._ended.wait(BEAT):
            with contextlib.suppress(OSError):
                _touch(self._file)


def live_owner(directory: Path, take_over: bool = False) -> str:
    """Why a claim to the directory would be refused now, as a sentence; "" for nothing. Nothing is touched, so that the
    age of a sign of life is by this host's clock."""
    owner = _read(directory / NAME)
    if owner is None:
        return ""
    return _refusal(
        directory / NAME, owner, _own("", ""), take_over, lambda path: time.time() - os.lstat(path).st_mtime
    )


def _refusal(
    path: Path, owner: dict[str, Any], own: dict[str, Any], take_over: bool, age: Callable[[Path], float]
) -> str:
    """Why the owner's claim can't be replaced, as a sentence; "" when it can: it is dead, or silent elsewhere and
    `take_over` was given. `age`: seconds since the last sign of life."""
    place, who = path.parent, _who(owner)
    if _is_near(owner, own):
        return _in_use(path, owner)
    try:
        silent = age(path)
    except OSError as error:
        return (
            f"The directory '{place}' is in use by {who}; how long ago its last sign of life was can't be seen:"
            f" {error.strerror or error}. Give the same command again."
        )
    if _started_again(owner, own) and silent > _up():
        return ""
    # A sign of life far in the future is a clock's that was set back since: it would never grow old.
    if abs(silent) < SILENCE:
        return (
            f"The directory '{place}' is in use by {who}; its last sign of life was {max(silent, 0):.0f} s ago. "
            f"After {SILENCE:.0f} s without one, --take-over continues its work here."
        )
    if take_over:
        return ""
    last = (
        f"without a sign of life for {silent:.0f} s"
        if silent > 0
        else f"with a sign of life {-silent:.0f} s in the future"
    )
    return (
        f"The directory '{place}' is claimed by {who}, {last}. Make sure that it has ended there with all its "
        "ranks, then give --take-over."
    )


def _who(owner: dict[str, Any]) -> str:
    """On one line, whatever the claim has in it."""

    def part(key: str, otherwise: str) -> str:
        return " ".join(str(owner.get(key, otherwise)).split())[:_MAX_SHOWN]

    return (
        f"process {part('process', '?')} on {part('host', 'an unknown host')}, since "
        f"{part('since', 'an unknown time')} ({part('what', 'its claim is damaged')})"
    )


def _is_near(owner: dict[str, Any], own: dict[str, Any]) -> bool:
    """Whether it can be seen from here if the owner's process lives."""
    process = owner.get("process")
    return (
        owner.get("boot") == own["boot"]
        and owner.get("name_space") == own["name_space"]
        and isinstance(process, int)
        and not isinstance(process, bool)
        and 0 < process < 2**31
        and _started(process) != "?"
    )


def _started_again(owner: dict[str, Any], own: dict[str, Any]) -> bool:
    """Whether the owner was on this machine before it was started the last time, or on one with the same name and
    number, as nodes of one image may have. This machine's gave no sign of life since: see _up()."""
    return bool(
        owner.get("machine")
        and owner.get("machine") == own["machine"]
        and owner.get("host") == own["host"]
        and owner.get("boot") != own["boot"]
    )


def _up() -> float:
    """Seconds since this machine was started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _is_own(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return os.lstat(path).st_uid == os.geteuid()
    return False


def _in_use(path: Path, owner: dict[str, Any]) -> str:
    """That an owner near here lives, as a sentence; "" when it is dead."""
    started = _started(owner["process"])
    if not started or started != owner.get("process_started"):
        return ""
    # Another user's claim may name any process.
    own = _is_own(path) and _is_own(Path(f"/proc/{owner['process']}"))
    remedy = f"wait until it ends, or end it with 'kill {owner['process']}'" if own else "wait until it ends"
    return f"The directory '{path.parent}' is in use by {_who(owner)}; {remedy}. Two at once would measure each other."


def _read(path: Path) -> dict[str, Any] | None:
    """A claim's content; empty when it can't be understood, None when there is none."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:
        return {}
    try:
        content = json.loads(os.read(file, _MAX_BYTES))
    except (ValueError, OSError, RecursionError):
        return {}
    finally:
        os.close(file)
    return content if isinstance(content, dict) else {}


def _age(path: Path) -> float:
    """Seconds since the last sign of life, by the clock of who keeps the files; negative when it lies in the future.

    @raises OSError"""
    probe = path.with_name(f".{NAME}.{secrets.token_hex(8)}")
    file = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        _touch(file)  # an NFS server may keep the number of an exclusive creation in the new file's times
        return os.fstat(file).st_mtime - os.lstat(path).st_mtime
    finally:
        os.close(file)
        probe.unlink()


def _touch(file: int) -> None:
    """Sets the time of an open file's last change to now, by the clock of who keeps it, and leaves its content.

    @raises OSError"""
    try:
        os.utime(file)
    except OSError:  # of a file system that sets no times
        os.pwrite(file, os.pread(file, 1, 0) or b"?", 0)
        os.fsync(file)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Keeps others out of the block, as far as the file system knows locks; yields whether it does. The file is removed
    by the owner in the end."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        yield _lock(file, path.parent)
    finally:
        os.close(file)


def _lock(file: int, directory: Path) -> bool:
    """Whether the file system knows locks; the open file has one then.

    @raises InputError when somebody else keeps it"""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                raise InputError(
                    f"The directory '{directory}' is being taken over by another process, which holds the lock "
                    f"'.{NAME}.lock' in it for more than {_PATIENCE:.0f} s; see which with 'fuser', and end it."
                ) from None
            time.sleep(0.05)
        except OSError:
            return False

# SPDX-License-Identifier: Apache-2.0
"""What a laboratory is made of, on disk before it is made: whoever comes after a crash finds and removes it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import psutil
from msgspec import Meta, Struct, field

from iocast.errors import InputError, RunError
from iocast.ground.files import read_json, write_json
from iocast.lab import precedence
from iocast.ground.names import ALLOWED, is_file_name
from iocast.records.declared import Impossible, record_of
from iocast.records.run import FileName
from iocast.ground.strict import read_bytes

PLACE = Path("/run/iocast-lab")
"""Directories of laboratories, by name. None outlives a restart of the machine, and neither does /run."""
MARK = "IOCAST_LAB"
"""Environment variable of the first processes of a laboratory: its identity and its name, with a space between."""
MAX_MOUNTS = 64
PATIENCE = 10.0
"""Seconds until killed processes must have ended."""
Identity = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}\Z", description="an identity, 16 digits from 0 to f")]
Known = tuple[Annotated[int, Meta(ge=1, le=2**31 - 1)], float]
"""A process by its id and start time, as ids are used again."""


def new_identity() -> str:
    return secrets.token_hex(8)


class Named(Struct):
    """A laboratory, as far as its removal needs to know it."""

    name: FileName
    identity: Identity = field(default_factory=new_identity)

    @property
    def directory(self) -> Path:
        return PLACE / self.name

    @property
    def group(self) -> str:
        """Name of its control group."""
        return f"iocast-lab-{self.identity}"

    def processes(self) -> list[psutil.Process]:
        """Those that carry its mark, wherever it was interrupted; all others end with them."""
        return marked(self.name, self.identity)

    def remove(self) -> None:
        """Ends all processes of the laboratory; networks and mounts go with them, and its directory last, unless a
        laboratory of the same name has it by now. What is gone already is no error.

        @raises RunError for a process that does not end, as in a call to storage that hangs, and for files that stay"""
        processes = self.processes()
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.kill()
        _, alive = psutil.wait_procs(processes, timeout=PATIENCE)
        if alive:
            which = ", ".join(str(process.pid) for process in alive)
            raise RunError(f"Processes of the laboratory '{self.name}' do not end: {which}. Its manifest is kept.")
        precedence.remove(self.group, PATIENCE)
        now = read(self.name)
        if now is None or isinstance(now, Record) and now.identity != self.identity:
            return
        try:
            shutil.rmtree(self.directory)
        except OSError as error:
            raise RunError(
                f"Of the laboratory '{self.name}' the file '{error.filename}' stays: {error.strerror}. Remove "
                f"'{self.directory}'."
            ) from error


class Damaged(Named, kw_only=True):
    """One whose manifest can't be read. Its processes are all that carry its name."""

    damage: str
    """A sentence."""

    @property
    def advice(self) -> str:
        return f"{self.damage} Remove what is left of the laboratory: iocast lab down {self.name}."

    def processes(self) -> list[psutil.Process]:
        return marked(self.name)


class Record(Named, kw_only=True, forbid_unknown_fields=True):
    """The manifest of a laboratory."""

    clients: list[FileName]
    servers: list[FileName]
    rate: Annotated[str, Meta(pattern=r"^[0-9.eE+-]*[a-z]*\Z", description="a rate of a link")]
    """Of each client's link; "" without a limit."""
    server: FileName
    settings: dict[str, str]
    """Of the server, as text with units."""
    mounts: Annotated[int, Meta(ge=1, le=MAX_MOUNTS)] = 1
    """Times that each node mounts the server."""
    first: Known | None = None
    """Process 1 of the laboratory; None until it has started."""
    maker: Known | None = field(default_factory=lambda: (os.getpid(), psutil.Process().create_time()))
    """The process that makes it."""
    served: dict[FileName, Known] = {}
    """Servers and mounts by name, as processes."""
    arguments: list[str] = []
    """What `iocast measure` is given for this storage."""
    environment: dict[str, str] = {}
    """Of commands in the laboratory; it may hold secrets."""
    ready: bool = False
    schema_version: int = 1
    kind: Literal["laboratory"] = "laboratory"

    def write(self) -> None:
        """@raises RunError"""
        write_json(self.directory / "lab.json", msgspec.to_builtins(self), secret=True)

    def init(self) -> psutil.Process | None:
        """Process 1 of the laboratory; None where it has ended."""
        return known_process(self.first)

    def gone(self) -> list[str]:
        """Servers and mounts that have ended, by name."""
        return [name for name, known in self.served.items() if known_process(known) is None]

    def processes(self) -> list[psutil.Process]:
        return [*super().processes(), *([found] if (found := self.init()) else [])]


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Keeps other processes from making and removing laboratories until the block ends, however it does."""
    PLACE.mkdir(mode=0o755, parents=True, exist_ok=True)
    with (PLACE / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def read(name: str) -> Record | Damaged | None:
    """None where there is no laboratory of this name.

    @raises InputError for a name that can't be, and for a manifest that this user may not read"""
    check_name(name)
    file = PLACE / name / "lab.json"
    if not file.parent.is_dir():
        return None
    try:
        content = read_json(file, "laboratory")
        record = record_of(content, Record)
        if lacking := set(Record.__struct_fields__) - content.keys():
            raise Impossible("the laboratory", f", has no '{min(lacking)}'")
        if record.name != name:
            raise Impossible("name", f": it is not that of its directory, '{name}'")
        return record
    except Impossible as error:
        damage = f"The file '{file}', {error.where}{error.what}; the file is damaged, or was edited."
    except InputError as error:
        if file.exists() and not os.access(file, os.R_OK):
            raise
        damage = str(error)
    return Damaged(name, _identity_of(name, file), damage=damage)


def _identity_of(name: str, file: Path) -> str:
    """That of its processes, or what a damaged manifest still has of it; a fresh one where neither is there."""
    known = [_mark_of(process)[0] for process in marked(name)]
    with contextlib.suppress(InputError):
        known += [found.decode() for found in re.findall(rb'"identity": "([0-9a-f]{16})"', read_bytes(file))]
    return known[0] if known else new_identity()


def known_process(known: Known | None) -> psutil.Process | None:
    """The process of this id and start time; None where it has ended."""
    if known is not None:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(known[0])
            if process.create_time() == known[1] and process.status() != psutil.STATUS_ZOMBIE:
                return process
    return None


def check_name(name: str) -> None:
    """@raises InputError"""
    if not is_file_name(name):
        raise InputError(f"The laboratory '{name[:80]}' names a directory, which has {ALLOWED}.")


def marked(name: str, identity: str = "") -> list[psutil.Process]:
    """Processes of this machine that were started for the laboratory of this name, and of this identity if given."""
    found = []
    for process in psutil.process_iter():
        if process.pid != os.getpid() and (mark := _mark_of(process))[1] == name and identity in ("", mark[0]):
            found.append(process)
    return found


def _mark_of(process: psutil.Process) -> tuple[str, str]:
    """Identity and name of the laboratory that a process was started for; "" where it wasn't, or has ended."""
    with contextlib.suppress(psutil.Error, OSError):
        identity, _, name = process.environ().get(MARK, "").partition(" ")
        return identity, name
    return "", ""


def all_records() -> list[Record | Damaged]:
    """In the order of their names. @raises InputError for a manifest that this user may not read"""
    names = sorted(path.name for path in PLACE.glob("*") if is_file_name(path.name))
    return [record for name in names if (record := read(name)) is not None]


def as_json(record: Record | Damaged) -> dict[str, Any]:
    """An entry of `iocast lab list --json`, without secrets. `gone`: servers and mounts that have ended. One whose
    manifest is damaged has `damage`, a sentence."""
    content: dict[str, Any] = msgspec.to_builtins(record)
    content.pop("environment", None)
    if isinstance(record, Damaged):
        return content | {"alive": bool(record.processes())}
    return content | {"alive": record.init() is not None, "gone": record.gone()}

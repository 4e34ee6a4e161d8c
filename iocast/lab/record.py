# SPDX-License-Identifier: Apache-2.0
"""What a laboratory is made of, on disk before it is made: whoever comes after a crash finds and removes it."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from iocast.errors import InputError, RunError
from iocast.files import read_json, write_json
from iocast.lab import precedence
from iocast.names import ALLOWED, is_file_name

PLACE = Path("/run/iocast-lab")
"""Directories of laboratories, by name. None outlives a restart of the machine, and neither does /run."""
MARK = "IOCAST_LAB"
"""Environment variable of the first processes of a laboratory: its identity."""
PATIENCE = 10.0
"""Seconds until killed processes must have ended."""


@dataclass
class Record:
    """The manifest of a laboratory. Processes are known by process id and start time, as ids are used again."""

    name: str
    clients: list[str]
    servers: list[str]
    rate: str
    server: str
    settings: dict[str, str]
    """Of the server, as text with units."""
    identity: str = field(default_factory=lambda: secrets.token_hex(8))
    first: tuple[int, float] | None = None
    """Process 1 of the laboratory; None until it has started."""
    maker: tuple[int, float] | None = field(default_factory=lambda: (os.getpid(), psutil.Process().create_time()))
    """The process that makes it."""
    arguments: list[str] = field(default_factory=list)
    """What `iocast measure` is given for this storage."""
    environment: dict[str, str] = field(default_factory=dict)
    """Of commands in the laboratory; it may hold secrets."""
    ready: bool = False
    schema_version: int = 1
    kind: str = "laboratory"

    @property
    def directory(self) -> Path:
        return PLACE / self.name

    @property
    def group(self) -> str:
        """Name of its control group."""
        return f"iocast-lab-{self.identity}"

    def write(self) -> None:
        """@raises RunError"""
        write_json(self.directory / "lab.json", asdict(self), secret=True)

    @classmethod
    def read(cls, name: str) -> Record | None:
        """None where there is no laboratory of this name. @raises InputError for a damaged manifest"""
        check_name(name)
        file = PLACE / name / "lab.json"
        if not file.exists():
            return None
        content = read_json(file, "laboratory")
        processes = {key: tuple(content[key]) for key in ("first", "maker") if content[key] is not None}
        return cls(**(content | processes))

    def init(self) -> psutil.Process | None:
        """Process 1 of the laboratory; None where it has ended."""
        return known_process(self.first)

    def remove(self) -> None:
        """Ends all processes of the laboratory; networks and mounts go with them, and its directory last. What is gone
        already is no error.

        @raises RunError for a process that does not end, as in a call to storage that hangs"""
        processes = [*marked(self.identity), *([found] if (found := self.init()) else [])]
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.kill()
        _, alive = psutil.wait_procs(processes, timeout=PATIENCE)
        if alive:
            which = ", ".join(str(process.pid) for process in alive)
            raise RunError(f"Processes of the laboratory '{self.name}' do not end: {which}. Its manifest is kept.")
        precedence.remove(self.group, PATIENCE)
        shutil.rmtree(self.directory, ignore_errors=True)


def known_process(known: tuple[int, float] | None) -> psutil.Process | None:
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


def marked(identity: str) -> list[psutil.Process]:
    """Processes of this machine that were started for the laboratory of this identity, wherever it was interrupted."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(MARK) == identity:
                found.append(process)
    return found


def all_records() -> list[Record]:
    """In the order of their names. @raises InputError for a damaged manifest"""
    names = sorted(path.parent.name for path in PLACE.glob("*/lab.json"))
    return [record for name in names if (record := Record.read(name)) is not None]


def as_json(record: Record) -> dict[str, Any]:
    """An entry of `iocast lab list --json`, without secrets."""
    content: dict[str, Any] = json.loads(json.dumps(asdict(record)))
    del content["environment"]
    return content | {"alive": record.init() is not None}

# SPDX-License-Identifier: Apache-2.0
"""Servers of a laboratory, one file each: how it is started, how a node connects, what is known of it and what is
not."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from iocast.errors import InputError
from iocast.ground.files import duration
from iocast.lab.nodes import Nodes
from iocast.ground.strict import is_whole
from iocast.ground.strict_yaml import allowed_sentence


class Server:
    """A server with known capacity. A subclass is found by its file, `iocast/lab/servers/NAME.py`."""

    name: ClassVar[str]
    title: ClassVar[str]
    known: ClassVar[str]
    unknown: ClassVar[str]
    defaults: ClassVar[dict[str, str]]
    """Settings with their values; counts are whole numbers, times have units."""
    counts: ClassVar[dict[str, tuple[int, int]]]
    """Which settings are counts, with the least and the largest."""
    mounts: ClassVar[bool] = False
    """Whether nodes mount it, as often as they like; others have connections of their own kind."""
    programs: ClassVar[dict[str, str]] = {}
    """What it needs, with the Debian package of each."""

    def __init__(self, laboratory: Nodes, settings: Mapping[str, str]) -> None:
        self.laboratory = laboratory
        self.record = laboratory.record
        self.settings = settings

    @classmethod
    def settings_of(cls, given: Mapping[str, str]) -> dict[str, str]:
        """All settings. @raises InputError for names and values that it doesn't have"""
        for name, value in given.items():
            if name not in cls.defaults:
                raise InputError(
                    f"The server '{cls.name}' has no setting '{name}'. {allowed_sentence(name, sorted(cls.defaults))}"
                )
            if name in cls.counts:
                low, high = cls.counts[name]
                if not is_whole(value) or not low <= int(value) <= high:
                    raise InputError(f"{name} of the server '{cls.name}' is {value}; it must be {low} to {high}.")
            else:
                duration(value, f"{name} of the server '{cls.name}'", 1e-6, 10)
        return {**cls.defaults, **given}

    @classmethod
    def nodes_of(cls, settings: Mapping[str, str]) -> int:
        """Server nodes that it takes."""
        return 1

    @property
    def directories(self) -> list[Path]:
        """Where it is mounted, on every node alike."""
        names = ["mount", *(f"mount{number}" for number in range(2, self.record.mounts + 1))]
        return [self.laboratory.directory / name for name in names]

    def connect(self, command: Callable[[Path, str], list[str]]) -> None:
        """Mounts it on all nodes, the head included, and has ranks go through all mount points of a node.

        @param command that mounts a directory, with the name of its log, and stays"""
        lab = self.laboratory
        for directory in self.directories:
            directory.mkdir()
            for client in ("head", *self.record.clients):
                name = f"{directory.name}-{client}"
                lab.serve(client, name, command(directory, name))
                lab.wait(lambda at=client, to=directory: lab.is_mounted(at, to), name)  # type: ignore[misc]
        self.record.arguments = [",".join(map(str, self.directories))]

    def seconds(self, name: str) -> float:
        return duration(self.settings[name], name, 1e-6, 10)

    def start(self) -> None:
        """Starts it and connects all nodes, the head included; sets `arguments` and `environment` of the record.

        @raises RunError"""
        raise NotImplementedError


@lru_cache(maxsize=None)
def all_servers() -> dict[str, type[Server]]:
    """By name."""
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    return {module.SERVER.name: module.SERVER for module in modules}


def find(name: str) -> type[Server]:
    """@raises InputError with the nearest match"""
    if (server := all_servers().get(name)) is None:
        raise InputError(f"There is no server '{name}'. {allowed_sentence(name, sorted(all_servers()))}")
    return server

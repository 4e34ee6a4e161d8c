# SPDX-License-Identifier: Apache-2.0
"""The hosts on which mpirun starts ranks outside Slurm: a host file that is named, or that a batch system made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from iocast.errors import InputError
from iocast.ground.strict import is_whole

NAMED = "IOCAST_HOSTS"
"""Variable with the host file, as `--hosts` sets it."""
BATCH = ("PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "OAR_NODEFILE")
"""Variables in which PBS, LSF and OAR name the host file of a job."""


@dataclass(frozen=True)
class Hosts:
    file: Path
    names: tuple[str, ...]
    """Each once, in the order of the file."""

    @classmethod
    def find(cls, environment: Mapping[str, str] = os.environ) -> Hosts | None:
        """Of the first variable that is set; None where none is.

        @raises InputError for a file that can't be read or names no host"""
        file = next((environment[name] for name in (NAMED, *BATCH) if environment.get(name)), None)
        return None if file is None else cls.read(Path(file))

    @classmethod
    def read(cls, file: Path) -> Hosts:
        """A host a line: `name`, `name slots=8` (Open MPI), `name:8` (MPICH), or `name` once for each slot (PBS). What
        follows a # is a comment.

        @raises InputError for a file that can't be read or names no host"""
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise InputError(f"The host file '{file}' can't be read: {reason}.") from error
        words = [line.partition("#")[0].split() for line in lines]
        names = tuple(dict.fromkeys(_name(row[0]) for row in words if row))
        if not names:
            raise InputError(f"The host file '{file}' names no host; it has one a line.")
        return cls(file, names)

    def first(self, nodes: int) -> tuple[str, ...]:
        """@raises InputError where there are fewer"""
        if nodes > len(self.names):
            raise InputError(
                f"The campaign needs {nodes} nodes, but '{self.file}' has {len(self.names)} "
                f"host{'s' * (len(self.names) != 1)}. Name further ones there, or measure the points for the fit alone "
                "where these need fewer: --role fit."
            )
        return self.names[:nodes]


def _name(word: str) -> str:
    """Without the slots of MPICH; an address of IPv6 has several colons."""
    name, _, slots = word.rpartition(":")
    return name if is_whole(slots) and name and ":" not in name else word

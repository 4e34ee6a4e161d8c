# SPDX-License-Identifier: Apache-2.0
"""What a server needs of its laboratory: commands on nodes, and waiting for what they start."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from iocast.errors import RunError
from iocast.lab.record import Record

PATIENCE = 30.0
"""Seconds in which a server must answer and a mount appear."""


class Nodes(Protocol):
    """See iocast.lab.laboratory.Laboratory."""

    record: Record
    directory: Path

    def address(self, node: str) -> str: ...

    def do(self, node: str, *command: str) -> str: ...

    def serve(self, node: str, name: str, command: Sequence[str], secrets: Mapping[str, str] | None = None) -> None: ...

    def wait(self, condition: Callable[[], bool], name: str) -> None: ...

    def answers(self, node: str, port: int) -> bool: ...

    def succeeds(self, node: str, *command: str) -> bool: ...

    def is_mounted(self, node: str, directory: Path) -> bool: ...


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """@raises RunError when it does not come true within PATIENCE"""
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise RunError(f"The laboratory waited {PATIENCE:g} s in vain for {what}.")
        time.sleep(0.02)

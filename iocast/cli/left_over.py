# SPDX-License-Identifier: Apache-2.0
"""What a verb that measures leaves on the storage when it ends early, and the command that removes it."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from typing import Protocol

from iocast.cli.app import LINE
from iocast.errors import InputError, RunError
from iocast.ground.progress import CONTINUES


class Measuring(Protocol):
    def left_over(self) -> str:
        """What ended runs left on the storage, as a sentence; "" for nothing."""


class LeftOver:
    """Set `work` once it is there."""

    def __init__(self) -> None:
        self.work: Measuring | None = None

    @property
    def sentences(self) -> str:
        """What stays, and the command that removes it, with a space before; "" for nothing."""
        left = "" if self.work is None else self.work.left_over()
        command = shlex.join([one for one in LINE if one != "--sweep"])
        return f" {left} To remove that without measuring: {command} --sweep" if left else ""

    def interrupted(self) -> str:
        left = self.sentences
        return CONTINUES + (f".{left}" if left else "")

    @contextlib.contextmanager
    def named(self, *kinds: type[InputError | RunError]) -> Iterator[None]:
        """Adds what stays to errors of these kinds, when the work has let go of the storage."""
        try:
            yield
        except kinds as error:
            if not (left := self.sentences):
                raise
            end = "" if str(error).endswith((".", "!", "?")) else "."
            raise type(error)(f"{error}{end}{left}") from error

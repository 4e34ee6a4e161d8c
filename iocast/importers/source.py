# SPDX-License-Identifier: Apache-2.0
"""One file or directory that is to be imported, and the sentences with which it is refused."""

from __future__ import annotations

import hashlib
import json
import shlex
from functools import cached_property
from pathlib import Path
from typing import Any

from iocast.errors import InputError

HEAD = 20_000  # characters by which a format is recognised


class Source:
    """@raises InputError when there is nothing to read"""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            raise InputError(f"There is no file '{path}'.")
        if not self.is_directory and path.stat().st_size == 0:
            raise InputError(f"{path}:1: the file is empty; the tool wrote nothing, or elsewhere.")

    @property
    def is_directory(self) -> bool:
        return self.path.is_dir()

    @cached_property
    def text(self) -> str:
        if self.is_directory:
            return ""
        try:
            return self.path.read_text(encoding="utf-8", errors="strict")
        except UnicodeDecodeError as error:
            line = self.path.read_bytes()[: error.start].count(b"\n") + 1
            raise InputError(f"{self.path}:{line}: this is no text; name the tool's own output.") from error
        except OSError as error:
            raise InputError(f"The file '{self.path}' can't be read: {error.strerror}.") from error

    @cached_property
    def head(self) -> str:
        """The beginning, for recognition: whatever it is."""
        if self.is_directory:
            return ""
        with self.path.open("rb") as file:
            return file.read(HEAD).decode("utf-8", errors="replace")

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def files(self) -> list[Path]:
        """Itself, or the files of the directory in order."""
        return sorted(p for p in self.path.iterdir() if p.is_file()) if self.is_directory else [self.path]

    def refuse(self, line: int, sentence: str) -> InputError:
        """`sentence` without its full stop; lines count from 1."""
        return InputError(f"{self.path}:{line}: {sentence}.")

    def refuse_cut(self, what: str) -> InputError:
        return self.refuse(max(len(self.lines), 1), f"the file ends before {what}; it was cut off, or the tool did not finish")

    def require_last_line(self) -> None:
        """Refuses a file whose last line does not end: a value in it may have lost digits."""
        if not self.text.endswith("\n"):
            raise self.refuse_cut("the end of its last line")

    def number(self, text: str, line: int, what: str) -> float:
        """A number that must be one."""
        try:
            value = float(text)
        except ValueError:
            raise self.refuse(line, f"{what} is '{text}', which is no number; the line may have been cut off") from None
        if value != value or value in (float("inf"), float("-inf")):
            raise self.refuse(line, f"{what} is '{text}', which is no measurement")
        return value

    def json_values(self) -> list[tuple[int, Any]]:
        """All JSON values in the file with the lines where they begin; other lines before, between and after them are left out.

        fio writes notes around its one value, elbencho a value for each phase."""
        decoder, found, at = json.JSONDecoder(), [], 0
        while (start := self._next_value(at)) is not None:
            line = self.text.count("\n", 0, start) + 1
            try:
                value, at = decoder.raw_decode(self.text, start)
            except json.JSONDecodeError as error:
                whole = error.lineno
                raise self.refuse(whole, f"this is not whole JSON ({error.msg}); the file may have been cut off") from error
            found.append((line, value))
        return found

    def _next_value(self, at: int) -> int | None:
        """Where the next line that begins with a brace does."""
        while at < len(self.text):
            end = self.text.find("\n", at)
            end = len(self.text) if end < 0 else end
            line = self.text[at:end]
            if line.lstrip().startswith("{"):
                return at + len(line) - len(line.lstrip())
            at = end + 1
        return None

    @staticmethod
    def words(command: str) -> list[str]:
        """A command line as its shell would split it; as one word when its quotes don't match."""
        try:
            return shlex.split(command)
        except ValueError:
            return [command]

    def fingerprints(self) -> list[dict[str, str]]:
        return [{"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()} for path in self.files()]

# SPDX-License-Identifier: Apache-2.0
"""One file or directory that is to be imported, and the sentences with which it is refused."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import shlex
import shutil
import subprocess
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from iocast.ground import strict
from iocast.errors import InputError
from iocast.ground.processes import start
from iocast.records.simulated import FileOfTool


READERS: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}
"""By the first bytes of a compressed file: what decompresses a given number of its bytes."""
ZSTANDARD = b"\x28\xb5\x2f\xfd"
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""What those raise for damaged content."""
ENDED_EARLY = re.compile(
    r"^ior\S* ERROR\b|^\*\* (?:error|exiting) \*\*"
    r"|^.*Process \d+\([^)]*\): FAILED in|MPI_ABORT was invoked|exited on\s+signal \d"
    r"|^srun: error: .*(?:Killed|Terminated|Out Of Memory|Segmentation fault|Bus error|Aborted)"
    r"|^slurmstepd: error: .*(?:CANCELLED|Killed|oom)"
)
"""What IOR, mpirun and srun print when a run of IOR ends before its end."""


BARE_LINE = re.compile(
    r"^[ \t]{0,200}(?!true\b|false\b|null\b|nan\b|inf\b|Infinity\b)[A-Za-z].*$", re.MULTILINE | re.IGNORECASE
)
"""A line that begins with a word of no JSON."""
NO_NUMBER = re.compile(r"-?(?:nan|inf)\b", re.IGNORECASE)
JSON_WORDS = (
    ("Expecting ',' delimiter", "a comma or a closing bracket is missing"),
    ("Expecting ':' delimiter", "a colon is missing after a name"),
    ("Expecting property name", "a name in double quotes is missing"),
    ("Expecting value", "a value is missing, or is none of JSON's"),
    ("Unterminated string", "a text has no closing quote"),
    ("Invalid control character", "a text has a line break or another control character in it"),
    ("Invalid \\", "a text has a backslash that stands for nothing"),
    ("Illegal trailing comma", "a comma has no entry after it"),
    ("Extra data", "another document follows the first one"),
)
"""Messages of Python's reader of JSON, by their beginnings, in plain words."""


def json_words(error: json.JSONDecodeError) -> str:
    """What is wrong with a document that is no JSON, at `error.lineno`."""
    return next((words for begin, words in JSON_WORDS if error.msg.startswith(begin)), "it ends in the middle")


class Source:
    """@raises InputError when there is nothing to read"""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.first = 1  # number of its first line, above 1 in a part of a file
        self.cut_value: int | None = None
        if not path.exists():
            raise InputError(f"There is no file '{path}'.")
        if not self.is_directory and path.stat().st_size == 0:
            raise InputError(f"{path}:1: the file is empty; the tool wrote nothing, or elsewhere.")

    @property
    def is_directory(self) -> bool:
        return self.path.is_dir()

    @cached_property
    def text(self) -> str:
        """The file, unpacked, without the labels that a launcher put before each line."""
        if self.is_directory:
            return ""
        return without_labels(_decoded(unpacked(self.path), self.path))

    @cached_property
    def head(self) -> str:
        """All of it, for recognition; empty when it is no text."""
        try:
            return self.text
        except InputError:
            return ""

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def numbered(self) -> Iterator[tuple[int, str]]:
        """The lines with the numbers that they have in the file."""
        return enumerate(self.lines, start=self.first)

    @property
    def last(self) -> int:
        """The number of its last line."""
        return self.first + max(len(self.lines), 1) - 1

    def part(self, first: int, last: int) -> Source:
        """The lines `first` to `last`, with the numbers that they have in the file."""
        made = Source(self.path)
        made.first = first
        made.lines = self.lines[first - self.first : last - self.first + 1]
        ended = last < self.last or self.text.endswith("\n")
        made.text = "\n".join(made.lines) + "\n" * ended
        return made

    def runs(self, begins: re.Pattern[str], ends: re.Pattern[str]) -> list[Source]:
        """The parts of a log of several runs: after a line that only the results of a run have (`ends`), the next one
        that only its beginning has (`begins`) is the first of another.

        @raises InputError where results follow results without a beginning"""
        starts, ended = [self.first], 0
        for number, line in self.numbered:
            if ended and begins.search(line):
                starts.append(number)
                ended = 0
            if ends.search(line):
                if ended:
                    raise self.refuse(
                        number,
                        f"the results of another run are here (line {ended} has the first ones), and the beginning of "
                        "that run is missing; import each run by itself",
                    )
                ended = number
        if len(starts) > 1 and not ended:
            starts.pop()  # of a run without results, or of no run at all
        lasts = [*(start - 1 for start in starts[1:]), self.last]
        return [self] if len(starts) == 1 else [self.part(*span) for span in zip(starts, lasts, strict=True)]

    def files(self) -> list[Path]:
        """Itself, or the files of the directory in order."""
        return sorted(p for p in self.path.iterdir() if p.is_file()) if self.is_directory else [self.path]

    def at(self, line: int) -> str:
        """Where a number stands: "FILE:LINE"."""
        return f"{self.path}:{line}"

    def line_at(self, position: int) -> int:
        """The line, from 1, of a position in the text."""
        return self.first - 1 + bisect_right(self._line_starts, position)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    def refuse(self, line: int, sentence: str) -> InputError:
        """`sentence` without its full stop; lines count from 1."""
        return InputError(f"{self.path}:{line}: {sentence}.")

    def refuse_cut(self, what: str) -> InputError:
        return self.refuse(self.last, f"the file ends before {what}; it was cut off, or the tool did not finish")

    def ended_early(self, first: int, last: int, words: re.Pattern[str] = ENDED_EARLY) -> tuple[int, str] | None:
        """The first of these lines that says that a run ended before its end, and that line."""
        for number in range(first, min(last, self.last) + 1):
            if words.search(line := self.lines[number - self.first]):
                return number, line.strip()[:200].rstrip(".")
        return None

    def require_last_line(self) -> None:
        """Refuses a file whose last line does not end: a value in it may have lost digits."""
        if not self.text.endswith("\n"):
            raise self.refuse_cut("the end of its last line")

    def number(self, text: str, line: int, what: str) -> float:
        """A number that must be one."""
        try:
            value = float(text)
        except ValueError:
            if re.fullmatch(r"[-+]?\d+(?:\.\d+)?(?:[,'\s]\d+(?:\.\d+)?)+", text.strip()):
                raise self.refuse(
                    line,
                    f"{what} is '{text}', with a comma or a space in it; write a point before decimals and nothing "
                    "between thousands, as tools do that run with LC_ALL=C",
                ) from None
            if scaled := re.fullmatch(r"([0-9]+(?:\.[0-9]*)?) ?([kKMG])", text.strip()):
                written = float(scaled[1]) * {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}[scaled[2]]
                raise self.refuse(line, f"{what} is '{text}'; write it without a letter: {written:.15g}") from None
            cut = "; the line may have been cut off" if line == self.last else ""
            raise self.refuse(line, f"{what} is '{text}', which is no number{cut}") from None
        if value != value or value in (float("inf"), float("-inf")):
            raise self.refuse(line, f"{what} is '{text}', which is no measurement")
        if value < 0:
            raise self.refuse(
                line, f"{what} is '{text}', which is negative: a clock was set back, or a counter ran over"
            )
        return value

    def values(self, pattern: re.Pattern[str]) -> dict[str, tuple[float, int]]:
        """Numbers that lines print by name, with their lines; the last line of a name counts.

        The groups of `pattern` are name and number."""
        found = ((pattern.match(line), number) for number, line in self.numbered)
        return {one[1].strip(): (self.number(one[2], number, one[1].strip()), number) for one, number in found if one}

    def whole_json(self) -> Any:
        """The file as one JSON value. @raises InputError with the line"""
        try:
            return json.loads(self.text)
        except json.JSONDecodeError as error:
            raise self.refuse_json(error) from error
        except RecursionError as error:
            raise self.refuse(1, "its JSON is nested more deeply than any tool writes") from error

    def refuse_json(self, error: json.JSONDecodeError) -> InputError:
        line = self.first - 1 + error.lineno
        if no_number := NO_NUMBER.match(error.doc, error.pos):
            return self.refuse(line, f"'{no_number[0]}' stands where a number is allowed, which is no measurement")
        return self.refuse(
            line,
            f"this is not whole JSON: {json_words(error)}"
            + "; the file may have been cut off" * (not error.msg.startswith("Extra data")),
        )

    def json_values(self) -> list[tuple[int, Any]]:
        """All JSON values in the file with the lines where they begin; other lines before, between and after them are
        left out.

        fio writes notes around its values, elbencho a value for each phase. A last value that was cut off is left out
        when there are others, and `cut_value` is its line then."""
        found: list[tuple[int, Any]] = []
        decoder, at = json.JSONDecoder(), 0
        while (start := self._next_value(at)) is not None:
            line = self.line_at(start)
            try:
                value, at = decoder.raw_decode(self._bare_lines_blank, start)
            except json.JSONDecodeError as error:
                if found:
                    self.cut_value = line
                    break
                raise self.refuse_json(error) from error
            except RecursionError as error:
                raise self.refuse(line, "its JSON is nested more deeply than any tool writes") from error
            found.append((line, value))
        return found

    @cached_property
    def _bare_lines_blank(self) -> str:
        """The text with blanks for lines that are no part of JSON: notes that a tool prints inside a value."""
        if not BARE_LINE.search(self.text):
            return self.text
        return BARE_LINE.sub(lambda found: " " * len(found[0]), self.text)

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

    def fingerprints(self) -> list[FileOfTool]:
        return [
            {"name": path.name, "sha256": hashlib.sha256(strict.read_bytes(path)).hexdigest()} for path in self.files()
        ]


UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
"""Encodings by the marks at the begin of a file."""


def _decoded(data: bytes, path: Path) -> str:
    """Text of UTF-8, or of UTF-16 as Windows writes it. Bytes that are neither are replaced: the noise of other
    programs may be in a log."""
    encoding = UTF_16.get(data[:2])
    if encoding is None and b"\0" in data[:4096]:
        begin = data[:4096]
        encoding = "utf-16-le" if begin[1::2].count(0) > begin[::2].count(0) else "utf-16-be"
        if begin[encoding == "utf-16-le" :: 2].count(0) < 0.4 * len(begin):
            raise InputError(f"{path}:1: this is no text; name the tool's own output.")
    text = data.decode(encoding or "utf-8", errors="replace")
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


LABELLED = 0.9
"""Share of the lines that have a label before it is taken for one of a launcher."""
LABELS = (
    r"\[\d+,\d+\](?:<std(?:out|err|diag)>)?:",  # mpirun --tag-output of Open MPI up to 4
    r"\[[\w.-]{1,200}@\d+,\d+\](?:\[[^\]\s]{1,200}\])?(?:<std(?:out|err|diag)>)?:",  # and from 5 on
    r"\[\d+\]",  # mpiexec -prepend-rank, -l of MPICH and Intel MPI
    r" {0,9}\d+:",  # srun --label
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?\]?:?",  # logs of CI, kubectl
    r"\[?(?:[A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d(?:\.\d{1,9})?\]?:?",  # ts of moreutils
)
"""What launchers put before each line."""
UNSPACED = LABELS[:2]
"""Those after which the line may follow at once."""
HOST = re.compile(r"([A-Za-z][\w.-]{0,200})(?::| {0,40}\|)(?: |$)")
"""The name of a host or a container before a line: pdsh, clush, docker compose."""


def without_labels(text: str) -> str:
    """The text without the labels that nearly all of its lines have: of ranks, times, and of one host."""
    while (label := _label(text)) is not None:
        text = "\n".join(label.sub("", line, count=1) for line in text.split("\n"))
    return text


def _label(text: str) -> re.Pattern[str] | None:
    lines = [line for line in text.split("\n") if line.strip()]
    for label in LABELS:
        tag, spaced = re.compile(f"^{label}"), re.compile(f"^{label}(?: |$)")
        known = (
            tag if label in UNSPACED and not all(spaced.match(line) for line in lines if tag.match(line)) else spaced
        )
        if _most(known, lines[:100]) and _most(known, lines):
            return known
    if len(lines) > 2:
        hosts = Counter(found[1] for line in lines if (found := HOST.match(line))).most_common(1)
        if hosts and hosts[0][1] > LABELLED * len(lines):
            return re.compile(rf"^{re.escape(hosts[0][0])}(?::| {{0,40}}\|)(?: |$)")
    return None


def _most(label: re.Pattern[str], lines: Sequence[str]) -> bool:
    return bool(lines) and sum(bool(label.match(line)) for line in lines) > LABELLED * len(lines)


def unpacked(path: Path, limit: int = strict.MAX_BYTES) -> bytes:
    """The file's bytes, decompressed when its first bytes are those of gzip, bzip2, xz or Zstandard.

    @raises InputError beyond `limit` bytes, and for what can't be decompressed or read"""
    data = strict.read_bytes(path, limit)
    try:
        for magic, opened in READERS.items():
            if data.startswith(magic):
                with opened(io.BytesIO(data)) as stream:
                    data = stream.read(limit + 1)
                break
        else:
            if data.startswith(ZSTANDARD):
                data = _from_zstandard(path, limit)
    except DAMAGED as error:
        raise InputError(f"The file '{path}' can't be decompressed ({error}); it may have been cut off.") from error
    if len(data) > limit:
        raise InputError(
            f"The file '{path}' has more than {limit} bytes when it is decompressed; more of such a file are not read."
        )
    return data


def _from_zstandard(path: Path, limit: int) -> bytes:
    if shutil.which("zstd") is None:
        raise InputError(
            f"'{path}' is compressed with Zstandard, and there is no program zstd; install it, or unpack the file."
        )
    with start(["zstd", "-dcq", "--", str(path.absolute())], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout is not None and program.stderr is not None
        data: bytes = program.stdout.read(limit + 1)
        if len(data) > limit:
            program.kill()
            return data
        words = program.stderr.read().decode(errors="replace").strip()
    if program.returncode:
        raise InputError(f"'{path}' can't be unpacked by zstd ({words}); it may have been cut off.")
    return data


def directories_below(top: Path) -> Iterator[Path]:
    """`top` and the directories below it, but not what links lead to.

    @raises InputError for what is nested too deep"""
    waiting = [(top, 0)]
    while waiting:
        directory, depth = waiting.pop()
        require_shallow(directory, depth)
        yield directory
        with os.scandir(directory) as entries:
            waiting += [(directory / one.name, depth + 1) for one in entries if one.is_dir(follow_symlinks=False)]


def require_shallow(directory: Path, depth: int) -> None:
    """@raises InputError for a directory that is `depth` below the one that is named, when that is too deep"""
    if depth > strict.MAX_DEPTH:
        raise InputError(
            f"The directory '{str(directory)[:200]}...' lies more than {strict.MAX_DEPTH} directories deep; name the "
            "one that has the results."
        )

# SPDX-License-Identifier: Apache-2.0
"""Sentences for files that are not built as their tool writes them: where, what was read and what is allowed.

An importer reads what its tool writes where it writes it. Other people's files can be built in any way, and then the
reading of an entry fails in Python's own words. Here they become a refusal in the words of the file."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from iocast.errors import InputError
from iocast.importers.source import Source
from iocast.ground.strict import shown

FORESEEN = (csv.Error, KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError, ZeroDivisionError)
"""What reading an entry raises that is missing, of another kind, or no measurement."""
KINDS = {"NoneType": "null", "list": "a list", "dict": "a group of entries", "str": "a text", "bool": "true or false"}
QUOTED = re.compile(
    r"(?:float|base \d+|complex\(\)|ISO 8601|isoformat string|timestamp): ?(?P<text>'.*'|\".*\")$", re.DOTALL
)
HUGE = re.compile(r"-?\d+(?:\.\d*)?[eE]\+?\d{3,}|\d{300,}|Infinity|\binf\b", re.IGNORECASE)
NAN = re.compile(r"\bnan\b", re.IGNORECASE)


def refusal(error: Exception, sources: Sequence[Source], tool: str) -> InputError:
    """The refusal of sources whose reading ended in one of FORESEEN."""
    source, line, what = _where(error, sources)
    cut = "" if source.text.endswith(("\n", "}", "]")) or source.is_directory else "; the file may have been cut off"
    return InputError(f"{source.path}:{line}: {what}{cut}. It is not built as {tool} writes it.")


def _where(error: Exception, sources: Sequence[Source]) -> tuple[Source, int, str]:
    """Source and line of the entry that can't be read, and what it is; line 1 where it can't be located."""
    text = str(error)
    if isinstance(error, KeyError) and error.args:
        return sources[0], 1, f"{shown(str(error.args[0]))} is missing in it"
    if found := QUOTED.search(text):
        read = found["text"][1:-1]
        return *_line_of(sources, re.compile(re.escape(read))), f"{shown(read)} stands where a number is allowed"
    if isinstance(error, csv.Error):
        long = re.compile(rf"[^,;\n]{{{csv.field_size_limit()}}}")
        return *_line_of(sources, long), f"a cell of it can't be read ({error})"
    if isinstance(error, OverflowError) or "infinity" in text:
        return *_line_of(sources, HUGE), "a number is too large to be a measurement"
    if "NaN" in text:
        return *_line_of(sources, NAN), "'NaN' stands where a number is allowed"
    if isinstance(error, ZeroDivisionError):
        return sources[0], 1, "a time or a count in it is 0, where a number above 0 is allowed"
    if isinstance(error, IndexError):
        return sources[0], 1, "a list or a line in it has too few values"
    for name, kind in KINDS.items():
        if re.search(rf"\b{name}\b", text):
            where = _line_of(sources, re.compile(r"\bnull\b")) if name == "NoneType" else (sources[0], 1)
            return *where, f"{kind} stands where another kind of value is allowed"
    return sources[0], 1, "an entry has another kind of value than is allowed there"


def _line_of(sources: Sequence[Source], pattern: re.Pattern[str]) -> tuple[Source, int]:
    for source in sources:
        if found := pattern.search(source.head):
            return source, source.line_at(found.start())
    return sources[0], 1

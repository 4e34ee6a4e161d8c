# SPDX-License-Identifier: Apache-2.0
"""Edits of platform documents: set a value, multiply it, add to it, or lay a piece of platform over it (docs/platforms.md)."""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from iocast.content import PROSE
from iocast.errors import InputError
from iocast.platform import Document, get_path, merge, set_path

COUNTS = ("servers", "count", "slots", "objects", "size", "batch")
_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*)")
_RESOLVED = ("clients", "stations", "limits", "locks", "stalls", "failures", "background", "caches", "buffers", "pools", "network")


class Down(Exception):
    """An edit left nothing of a part: no server, no instance, no slot. The system does not serve any more."""


@dataclass(frozen=True)
class Edit:
    """`how`: "set", "times" or "plus" at a dotted path, or "lay" a piece of platform over the whole (path empty)."""

    path: str
    how: str
    value: Any

    def as_json(self) -> list[Any]:
        return [self.path, self.how, self.value]


def edited(document: Document, edits: Iterable[Edit]) -> Document:
    """The document with the edits made in order. @raises Down when an edit leaves no server, instance or slot"""
    result = copy.deepcopy(document)
    for edit in edits:
        if edit.how == "lay":
            result = merge(result, edit.value)
        elif edit.how == "set":
            set_path(result, edit.path, copy.deepcopy(edit.value))
        elif (now := get_path(result, edit.path)) is not None:  # a draw of another structure may lack the path
            changed = times(now, edit.value) if edit.how == "times" else plus(now, edit.value)
            set_path(result, edit.path, round(changed) if is_count(edit.path) and not isinstance(changed, str) else changed)
        if is_count(edit.path) and isinstance(now := get_path(result, edit.path), int | float) and now < 1:
            raise Down(edit.path)
    return result


def is_count(path: str) -> bool:
    """Whether the value there is a whole number of things, which nobody is uncertain about."""
    return path.rpartition(".")[2] in COUNTS


def paths(node: Any, prefix: str = "") -> Iterator[str]:
    """Every dotted path of a document, down to single values; laws and lists are single values too."""
    for key, value in node.items():
        path = f"{prefix}.{key}" if prefix else str(key)
        yield path
        if isinstance(value, dict):
            yield from paths(value, path)


def known_paths(document: Document, resolved: Document) -> set[str]:
    """What an edit may name: all that the platform's files say, and all that the resolved platform has by default."""
    known = set(paths(document))
    for part in _RESOLVED:
        known |= set(paths({part: resolved.get(part) or {}}))
    known |= {f"demands.{n}.{key}" for n, law in document.get("demands", {}).items() if isinstance(law, dict) for key in ("scale", "shift")}
    return {path for path in known if path.partition(".")[0] not in PROSE}


def nearest(path: str, known: set[str]) -> str:
    """What is there with a similar name, or at all, as a sentence."""
    near = difflib.get_close_matches(path, sorted(known), n=3, cutoff=0.6)
    if near:
        return f"Nearest to it come{'s' if len(near) == 1 else ''} " + ", ".join(f"'{n}'" for n in near) + "."
    return f"It has, among others, {', '.join(sorted(p for p in known if p.count('.') <= 1)[:12])}."


def number(value: Any) -> tuple[float, str] | None:
    """A number and its unit as written: 5 -> (5, ""), "5us" -> (5, "us"); None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value), ""
    found = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    return (float(found[1]), found[2]) if found else None


def times(value: Any, factor: float) -> Any:
    """A number, a number with a unit, or a law (its scale and shift), `factor` times as large."""
    if isinstance(value, dict) and "law" in value:
        law = dict(value)
        law["scale"] = float(law.get("scale", 1)) * factor
        if "shift" in law:
            law["shift"] = times(law["shift"], factor)
        return law
    return _shaped(value, lambda x: x * factor)


def plus(value: Any, addend: Any) -> Any:
    """A number, or a number with a unit, and so much more in the same unit. @raises InputError for another unit"""
    now, more = number(value), number(addend)
    if now is None or more is None or now[1] != more[1]:
        raise InputError(f"'{addend}' can't be added to '{value}'; write a number with the same unit.")
    return _shaped(value, lambda x: x + more[0])


def _shaped(value: Any, change: Any) -> Any:
    given = number(value)
    if given is None:
        raise InputError(f"The value '{value}' is no number that can be multiplied or added to.")
    result = change(given[0])
    return f"{result:.12g}{given[1]}" if given[1] else result

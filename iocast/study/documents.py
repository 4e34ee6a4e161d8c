# SPDX-License-Identifier: Apache-2.0
"""Edits of platform documents: set a value, multiply it, add to it, or lay a piece of platform over it
(docs/platforms.md)."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from iocast.errors import InputError
from iocast.ground.strict import NUMBER
from iocast.platforms.documents import Document, get_path, has_part, make_room, merge, set_path, without_decided

COUNTS = ("servers", "count", "slots", "objects", "size", "batch")
_NUMBER = re.compile(rf"\s*({NUMBER})\s*(.*)")


class Down(Exception):
    """An edit left nothing of a part: no server, no instance, no slot. The system does not serve any more."""


@dataclass(frozen=True)
class Edit:
    """`how`: "set", "times" or "plus" at a dotted path, or "lay" a piece of platform over the whole (path empty)."""

    path: str
    how: str
    value: Any

    def as_json(self) -> list[Any]:
        """The value by the last part of its path, for content_hash()."""
        return [self.path, self.how, {self.path.rpartition(".")[2]: self.value}]


def edited(document: Document, edits: Iterable[Edit]) -> Document:
    """The document with the edits made in order. @raises Down when an edit leaves no server, instance or slot"""
    result = copy.deepcopy(document)
    edits = list(edits)
    for edit in edits:
        if edit.how == "lay":
            result = without_decided(result, edit.value)
        elif edit.how == "set":
            make_room(result, edit.path, edit.value)
    for edit in edits:
        if edit.how == "lay":
            result = merge(result, edit.value, has_room=True)
        elif edit.how == "set":
            if has_part(result, edit.path):  # another platform, or a draw of another structure, may lack the part
                set_path(result, edit.path, copy.deepcopy(edit.value))
        elif (now := get_path(result, edit.path)) is not None:  # a draw of another structure may lack the path
            changed: object = times(now, edit.value) if edit.how == "times" else plus(now, edit.value)
            set_path(
                result,
                edit.path,
                round(changed) if is_count(edit.path) and isinstance(changed, int | float) else changed,
            )
        if is_count(edit.path) and isinstance(now := get_path(result, edit.path), int | float) and now < 1:
            raise Down(edit.path)
    return result


def is_count(path: str) -> bool:
    """Whether the value there is a whole number of things, which nobody is uncertain about."""
    return path.rpartition(".")[2] in COUNTS


def number(value: object) -> tuple[float, str] | None:
    """A number and its unit as written: 5 -> (5, ""), "5us" -> (5, "us"); None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value), ""
    found = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    return (float(found[1]), found[2]) if found else None


def times(value: object, factor: float) -> float | str | dict[str, object]:
    """A number, a number with a unit, or a law (its scale and shift), `factor` times as large."""
    if isinstance(value, dict) and "law" in value:
        law: dict[str, object] = dict(value)
        law["scale"] = float(value.get("scale", 1)) * factor
        if "shift" in law:
            law["shift"] = times(law["shift"], factor)
        return law
    return _shaped(value, lambda x: x * factor)


def plus(value: object, addend: object) -> float | str:
    """A number, or a number with a unit, and so much more in the same unit. @raises InputError for another unit"""
    now, more = number(value), number(addend)
    if now is None or more is None or now[1] != more[1]:
        raise InputError(f"'{addend}' can't be added to '{value}'; write a number with the same unit.")
    by, _ = more
    return _shaped(value, lambda x: x + by)


def _shaped(value: object, change: Callable[[float], float]) -> float | str:
    given = number(value)
    if given is None:
        raise InputError(f"The value '{value}' is no number that can be multiplied or added to.")
    result = change(given[0])
    return f"{result:.12g}{given[1]}" if given[1] else result

# SPDX-License-Identifier: Apache-2.0
"""The closed list of codes, and notes of documents by them (note.py and note_of_measurements.py have the codes)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec
from msgspec import ValidationError

from iocast.errors import InputError
from iocast.ground.strict import shown
from iocast.records.fitted import FittedSection
from iocast.records import note_of_measurements
from iocast.records.note import Note, OfCalibration, Written

T = TypeVar("T")
KINDS: dict[str, type[Note]] = {
    str(kind.__struct_config__.tag): kind
    for kind in sorted(Note.__subclasses__(), key=lambda kind: kind.__module__ == note_of_measurements.__name__)
}
"""The closed list of codes."""


def notes_of(document: Mapping[str, object]) -> Iterator[Note]:
    """The notes of a document; of one without codes its sentences."""
    cautions, warnings = document.get("cautions"), document.get("warnings", document.get("notes"))
    if isinstance(cautions, list):
        yield from map(_read, cautions)
    elif isinstance(warnings, list):
        yield from (Written(str(text)) for text in warnings)


def notes_of_fit(fitted: FittedSection) -> list[OfCalibration]:
    """The notes of a fitted platform, for forecasts of it."""
    codes = {one.get("text"): str(one.get("code", "")) for one in fitted.get("cautions", [])}
    return [OfCalibration(text, codes.get(text, "")) for text in fitted.get("notes", [])]


def _read(entry: object) -> Note:
    known = entry if isinstance(entry, dict) else {}
    try:
        return msgspec.convert(known, KINDS.get(str(known.get("code")), Written))
    except ValidationError as error:  # of a newer iocast
        if not isinstance(text := known.get("text"), str):
            raise InputError(
                f"The caution {shown(entry)} has neither a known code with its keys nor a text."
            ) from error
        return Written(text)


def each_once(notes: Iterable[T]) -> list[T]:
    """Equal ones once, in their order."""
    found: list[T] = []
    for note in notes:
        if note not in found:
            found.append(note)
    return found

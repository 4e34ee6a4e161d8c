# SPDX-License-Identifier: Apache-2.0
"""The sentence of each code that a document's `cautions` have, and the keys that hold both (records/codes.py)."""

from __future__ import annotations

from collections.abc import Iterable
from operator import methodcaller

import msgspec

from iocast.records.fitted import FittedSection
from iocast.records.codes import each_once
from iocast.records.note import Cautious, Note, Noted
from iocast.wording import notes_of_answers, notes_of_measurements
from iocast.wording.note_sentence import sentence

__all__ = ["add", "cautious", "entries", "put", "sentence", "sentences"]
SENTENCES = (notes_of_answers, notes_of_measurements)
"""Files whose codes have sentences."""


def sentences(notes: Iterable[Note]) -> list[str]:
    """Each sentence once."""
    return list(dict.fromkeys(map(sentence, notes)))


def add(document: Noted | FittedSection, notes: Iterable[Note]) -> None:
    """Adds to the keys `notes` and `cautions` of a document."""
    known = each_once(notes)
    document["notes"] = list(dict.fromkeys([*document["notes"], *map(sentence, known)]))
    document["cautions"] = each_once([*document.get("cautions", []), *entries(known)])


def put(document: Cautious, notes: Iterable[Note]) -> None:
    """The keys `cautions` and `warnings` of a document."""
    document.update(cautious(notes))


def cautious(notes: Iterable[Note]) -> Cautious:
    """These keys by themselves."""
    known = list(notes)
    return {"cautions": entries(known), "warnings": sentences(known)}


def entries(notes: Iterable[Note]) -> list[dict[str, object]]:
    """The key `cautions` of a document; numbers of numpy as JSON has them."""
    return [
        {**msgspec.to_builtins(one, enc_hook=methodcaller("item")), "text": sentence(one)} for one in each_once(notes)
    ]

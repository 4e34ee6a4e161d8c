# SPDX-License-Identifier: Apache-2.0
"""The sentence of a note. Each code registers its own, in a file that notes.py imports."""

from __future__ import annotations

from functools import singledispatch

from iocast.records.note import Note


def sentence(one: Note) -> str:
    """A note as it is printed, after the names of the phases or platforms that it is about."""
    return (f"{', '.join(one.about)}: " if one.about else "") + of_code(one)


@singledispatch
def of_code(one: Note) -> str:
    raise TypeError(f"The code {one.__struct_config__.tag} has no sentence.")

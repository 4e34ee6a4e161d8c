# SPDX-License-Identifier: Apache-2.0
"""Structures that no family's file can have, since they rest on what was measured: how many requests an operation is,
which one waits longest, what a lone rank took. Those that the measurements show are tried from the beginning; of the
others, where all else leaves a misfit, those are fitted that come nearest to the measurements as they are."""

from __future__ import annotations

from iocast.calibrate.recipe import PLAIN, Option
from iocast.calibrate.structures import elsewhere, in_turn, last, several, slow_answers
from iocast.calibrate.structures.seen import Seen

CHOICE = "mechanism"
NONE = Option(PLAIN, edit={})


def shown(found: Seen | None) -> list[Option]:
    """Structures that the measurements show, the surest first. Operations of several requests wait for longer without
    being served later."""
    return [] if found is None else [*(in_turn.options(found) or last.options(found)), *slow_answers.options(found)]


def unseen(found: Seen | None) -> list[Option]:
    """All others."""
    return [] if found is None else [*several.options(found), *elsewhere.options(found)]

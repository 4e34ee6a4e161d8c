# SPDX-License-Identifier: Apache-2.0
"""Structures that no family's file can have, since they rest on what was measured: how many requests an operation is,
which one waits longest, what a lone rank took. Those that the measurements show are tried from the beginning; of the
others, where all else leaves a misfit, those are fitted that come nearest to the measurements as they are."""

from __future__ import annotations

from iocast.calibrate.recipe import PLAIN, Option
from iocast.calibrate.structures import (
    elsewhere,
    in_turn,
    last,
    newest_first,
    recalled,
    several,
    slow_answers,
    slow_nodes,
)
from iocast.calibrate.structures.seen import Seen
from iocast.platforms.documents import get_path

CHOICE = "mechanism"
NONE = Option(PLAIN, edit={})


def shown(found: Seen | None) -> list[Option]:
    """Structures that the measurements show, the surest first. Operations of several requests wait for longer without
    being served later, and a stack leaves single ranks behind without slow nodes."""
    if found is None:
        return []
    stack = newest_first.options(found)
    order = in_turn.options(found) or [*stack, *last.options(found)]
    return [*([] if stack else slow_nodes.shown(found)), *order, *recalled.shown(found), *slow_answers.options(found)]


def servers_of(options: list[Option], found: Seen | None) -> int | None:
    """Of the server, where one of these structures is chosen and says how many it has; None where it doesn't."""
    if found is None:
        return None
    own = {option.name: option.edit for option in [*several.options(found), *elsewhere.options(found)]}
    stated = (
        get_path(own[option.name], f"stations.{found.station}.servers") for option in options if option.name in own
    )
    return next((int(servers) for servers in stated if servers is not None), None)


def unseen(found: Seen | None) -> list[Option]:
    """All others."""
    if found is None:
        return []
    return [*several.options(found), *elsewhere.options(found), *recalled.unseen(found), *slow_nodes.unseen(found)]

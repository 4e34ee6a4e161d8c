# SPDX-License-Identifier: Apache-2.0
"""Priorities: some operations are served only while no other waits, or before all others. Then one waits many times as
long as the others, which a common queue can't make."""

from __future__ import annotations

from iocast.calibrate.recipe import Option
from iocast.calibrate.structures.seen import Seen
from iocast.platforms.documents import Document, get_path, set_path

FACTOR = 2.5
"""Longest wait over the next one, or of the next one over the shortest, from which on an order is tried."""
WAITS = 3.0
"""Growth of the operation that waits longest, from which on waits say something."""


def options(found: Seen) -> list[Option]:
    """An order for each gap between waits, the widest first."""
    waits: dict[str, float] = {}
    for demand, wait in found.waits.items():
        op = found.operation(demand)
        waits[op] = max(waits.get(op, 0.0), wait, 1e-3 * found.alone[demand])
    if len(waits) < 2 or max(found.growth.values()) < WAITS:
        return []
    ordered = sorted(waits, key=lambda op: waits[op])
    gaps = sorted(
        ((waits[after] / waits[before], place) for place, (before, after) in enumerate(zip(ordered, ordered[1:]), 1)),
        reverse=True,
    )
    return [_ordered(found, ordered[:place], ordered[place:]) for gap, place in gaps[:1] if gap >= FACTOR]


def _ordered(found: Seen, first: list[str], last: list[str]) -> Option:
    few = len(last) <= len(first)

    def rewrite(document: Document) -> None:
        own = get_path(document, f"stations.{found.station}.discipline")
        if (own or get_path(found.family, f"stations.{found.station}.discipline") or "fcfs") == "fcfs":
            classes = ["rest", sorted(last)] if few else [sorted(first), "rest"]
            set_path(document, f"stations.{found.station}.priority", classes)

    named = " and ".join(sorted(last if few else first))
    return Option(f"{named} {'last' if few else 'first'}", edit={}, rewrite=rewrite)

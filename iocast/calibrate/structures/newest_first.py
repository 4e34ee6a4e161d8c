# SPDX-License-Identifier: Apache-2.0
"""Newest first: a free server takes who came last, as from a stack. Most requests then wait shortly and a few very
long, so that means lie far above medians."""

from __future__ import annotations

from iocast.calibrate.recipe import Option
from iocast.calibrate.structures.seen import Seen
from iocast.platforms.documents import Document, get_path, set_path

NAME = "newest first"
LEAST, SKEWED = 0.9, 1.25
"""Mean over median at the most ranks, over that of a lone rank: of every operation, and of the one with the most. In
order of arrival it falls."""


def options(found: Seen) -> list[Option]:
    """One, if means grow beyond medians."""
    most = found.closed[-1]
    tags = [found.routes[demand].removeprefix("operations.") for demand in found.laws]
    known = [tag for tag in tags if all(p.has(f"{tag}.{q}") for p in (most, found.single) for q in ("mean", "q50"))]
    skews = [
        most.value(f"{tag}.mean") / most.value(f"{tag}.q50")
        * found.single.value(f"{tag}.q50") / found.single.value(f"{tag}.mean")
        for tag in known
        if most.value(f"{tag}.q50") > 0
    ]  # fmt: skip
    if not skews or min(skews) < LEAST or max(skews) < SKEWED:
        return []

    def rewrite(document: Document) -> None:
        discipline = get_path(document, f"stations.{found.station}.discipline")
        if (discipline or get_path(found.family, f"stations.{found.station}.discipline") or "fcfs") == "fcfs":
            set_path(document, f"stations.{found.station}.waiting", "newest-first")

    return [Option(NAME, edit={}, rewrite=rewrite)]

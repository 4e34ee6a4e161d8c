# SPDX-License-Identifier: Apache-2.0
"""Several servers in the place of one: objects lie on one of them each, by name, or every operation has a part at each
and ends with the last of them (fork and join). A lone rank's time is then that of the longest part."""

from __future__ import annotations

import math

import numpy as np

from iocast.calibrate.recipe import Option
from iocast.calibrate.structures.seen import Seen, Steps, rewrite_visits, seconds, without_lock
from iocast.platform import Document, set_path

COUNTS = (2, 4, 8)
"""Of servers, of which the nearest fits about as well as one in between."""


def options(found: Seen) -> list[Option]:
    return [
        *(_objects(found, count, max(1, math.ceil(found.busy / count))) for count in COUNTS),
        *(_forked(found, count, threads) for count in COUNTS for threads in _threads(found, count)),
    ]


def _threads(found: Seen, count: int) -> list[int]:
    """Of each server, as many as are busy at the most ranks, were all of a part's time service, or one more."""
    whole = sum(found.alone.values())
    part = sum(_mean(_part(law, count)) for law in found.laws.values())
    busy = max(1, math.floor(found.busy * part / whole))
    return [busy, busy + 1]


def _objects(found: Seen, count: int, threads: int) -> Option:
    edit: Document = {"stations": {found.station: {"count": count, "spread": "object", "servers": threads}}}
    return Option(f"objects on {count} servers of {threads}", edit=edit)


def _forked(found: Seen, count: int, threads: int) -> Option:
    def rewrite(document: Document) -> None:
        set_path(document, f"stations.{found.station}.discipline", "fcfs")
        for demand in found.laws:
            document["demands"][demand] = _part(document["demands"][demand], count)

        def forked(steps: Steps, number: int, visit: Document) -> Steps:
            return [*steps[:number], {**without_lock(visit), "stripes": count}, *steps[number + 1 :]]

        rewrite_visits(document, found, forked)

    edit: Document = {"stations": {found.station: {"count": count, "servers": threads}}}
    return Option(f"parts at {count} servers of {threads}", edit=edit, rewrite=rewrite)


def _part(law: Document, count: int) -> Document:
    """The law of one of `count` parts, of which the longest has this law: its distribution function is the other's
    root."""
    return {**law, "probabilities": [float(p) ** (1 / count) for p in law["probabilities"]]}


def _mean(law: Document) -> float:
    return float(np.trapezoid(seconds(law), law["probabilities"]))

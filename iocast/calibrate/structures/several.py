# SPDX-License-Identifier: Apache-2.0
"""Several servers in the place of one: objects lie on one of them each, by name, or every operation has a part at each
and ends with the last of them (fork and join). A lone rank's time is then that of the longest part."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from iocast.calibrate import reading
from iocast.calibrate.recipe import Option
from iocast.calibrate.structures.seen import Seen, Steps, leave_out_unused_locks, rewrite_visits, seconds, without_lock
from iocast.platforms.documents import Document, set_path
from iocast.runs.latency_log import NS

COUNTS = (2, 4, 8)
"""Of servers, of which the nearest fits about as well as one in between."""
LOWEST = 0.05
"""Share of the longest parts below which too few were seen to tell what one part takes."""
BELOW = 12
"""Points of a part's law below what was seen."""


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
        leave_out_unused_locks(document)

    edit: Document = {"stations": {found.station: {"count": count, "servers": threads}}}
    return Option(f"parts at {count} servers of {threads}", edit=edit, rewrite=rewrite)


def _part(law: Document, count: int) -> Document:
    """The law of one of `count` parts, of which the longest has this law: its distribution function is the other's
    root. So most of it lies below what is seen of the longest, and is continued there as a lognormal law has it."""
    shift = reading.seconds_of(law.get("shift", "0s")) or 0.0
    p, values = np.array(law["probabilities"]), np.maximum(np.array(seconds(law)) + shift, NS)
    known = (p >= LOWEST) & (p < 1)
    if known.sum() < 2:
        return {**law, "probabilities": (p ** (1 / count)).tolist()}
    places = ndtri(p[known] ** (1 / count))
    slope, middle = np.polyfit(places, np.log(values[known]), 1)
    first = float(p[known][0] ** (1 / count))
    below = first * np.arange(BELOW) / BELOW
    seen = p >= p[known][0]
    continued = np.exp(middle + slope * ndtri(np.maximum(below, first / BELOW / 4)))
    every = np.maximum.accumulate([*np.minimum(continued, values[known][0]), *values[seen]])
    return {
        "law": "empirical",
        "probabilities": [*below.tolist(), *(p[seen] ** (1 / count)).tolist()],
        "values": [f"{value:.9g}s" for value in every],
    }


def _mean(law: Document) -> float:
    return float(np.trapezoid(seconds(law), law["probabilities"]))

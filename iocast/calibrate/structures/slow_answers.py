# SPDX-License-Identifier: Apache-2.0
"""Slow answers: a few operations of a lone rank take many times as long as all others, and nothing lies in between.
Where that time is spent elsewhere, such as at a client or on a detour, no server is busy meanwhile; plain laws would
have it so."""

from __future__ import annotations

import numpy as np

from iocast.calibrate.recipe import Option
from iocast.calibrate.structures.seen import Seen, seconds
from iocast.platforms.documents import Document
from iocast.runs.latency_log import NS

NAME = "slow answers elsewhere"
GAP = 1.5
"""Between neighbours in the order of latencies, as a factor: nothing in between."""
FEWEST = 6
"""Operations beyond the gap: fewer may be a law's tail."""
RAREST, MOST = 0.004, 0.15
"""Share of the operations beyond it."""
APART = 3.0
"""Their median over the longest of the operations' own."""


def options(found: Seen) -> list[Option]:
    """One, if the operations' latencies have such a gap."""
    times = _times(found)
    edge = _edge(times)
    if edge is None:
        return []
    together = np.sort(np.concatenate(list(times.values())))
    late = together[together >= edge] - np.median(together)
    share = late.size / together.size
    places = np.linspace(0, 1, min(late.size, 21))
    beyond: Document = {
        "weight": share,
        "law": "empirical",
        "probabilities": places.tolist(),
        "values": [f"{value:.9g}s" for value in np.quantile(late, places)],
    }
    law: Document = {"law": "mixture", "parts": [{"weight": 1 - share, "law": "constant", "value": "0s"}, beyond]}
    demands = {demand: _below(found.laws[demand], edge) for demand in times} | {"late": law}
    then: Document = {found.routes[demand]: [{"delay": "late"}] for demand in times}
    return [Option(NAME, edit={"demands": demands}, then=then)]


def _below(law: Document, edge: float) -> Document:
    """What of an `empirical` law is shorter than the edge."""
    kept = [(p, value) for p, value in zip(law["probabilities"], seconds(law), strict=True) if value < edge]
    longest = kept[-1][0]
    return {
        "law": "empirical",
        "probabilities": [p / longest for p, _ in kept],
        "values": [f"{value:.9g}s" for _, value in kept],
    }


def _times(found: Seen) -> dict[str, np.ndarray]:
    """By demand, the lone rank's latencies in seconds; none where a run has no distribution of one."""
    times = {}
    for demand in found.laws:
        tag = found.routes[demand].removeprefix("operations.")
        if any(tag not in run.tags() for run in found.single.runs):
            return {}
        recorded = [run.latencies(tag).recorded() for run in found.single.runs]
        times[demand] = np.concatenate([np.repeat((low + high) * (NS / 2), count) for low, high, count in recorded])
    return times


def _edge(times: dict[str, np.ndarray]) -> float | None:
    """Seconds within the widest gap that lies above most latencies; None where there is none."""
    if not times:
        return None
    values = np.sort(np.concatenate(list(times.values())))
    first = int((1 - MOST) * values.size)
    upper = values[first : values.size - FEWEST + 1]
    if upper.size < 2:
        return None
    gaps = upper[1:] / np.maximum(upper[:-1], NS)
    place = first + int(np.argmax(gaps))
    above = values[place + 1 :]
    longest = max(float(np.median(one)) for one in times.values())
    if gaps.max() < GAP or above.size < RAREST * values.size or np.median(above) < APART * longest:
        return None
    return float(np.sqrt(values[place] * values[place + 1]))

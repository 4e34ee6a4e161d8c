# SPDX-License-Identifier: Apache-2.0
"""What the files of claims/ are made of: claims that others published, and simulated experiments that show them or
don't."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from iocast.ground import binaries
from iocast.calibrate.search import Simulations
from iocast.platforms.fitted import Fitted
from iocast.records.simulated import SimulatedPhase

Phase: TypeAlias = SimulatedPhase


@dataclass(frozen=True)
class Claim:
    """One published statement. It is met when `simulated()` lies between `low` and `high`, which say the statement with
    its tolerance."""

    text: str  # a finished sentence
    place: str  # page, slide, table or figure of the source
    low: float
    high: float
    simulated: Callable[[], float]
    unit: str = ""  # of the number
    why_not: str = ""  # for a claim that is not met: the reason
    role: str = "forecast"  # given and fitted ones, as of facts.py, are no evidence
    quantity: str = ""  # of a number of a table, as of facts.py


def phase(
    platform: str,
    workload: str,
    name: str,
    nodes: int,
    ppn: int = 1,
    settings: dict[str, Any] | None = None,
    edits: dict[str, Any] | None = None,
    seed: int = 1,
    placement: str = "block",
) -> Phase:
    """The last phase of this name of one simulated run. `edits` are upon the platform, by dotted path."""
    found = phases(platform, workload, nodes, ppn, settings, edits, seed, placement)
    last: Phase = next(p for p in reversed(found) if p["name"] == name)
    return last


def phases(
    platform: str,
    workload: str,
    nodes: int,
    ppn: int = 1,
    settings: dict[str, Any] | None = None,
    edits: dict[str, Any] | None = None,
    seed: int = 1,
    placement: str = "block",
) -> list[Phase]:
    """All phases of one simulated run; the same one is not simulated again, nor twice at a time."""
    key = (platform, workload, nodes, ppn, json.dumps(settings or {}), json.dumps(edits or {}), seed, placement)
    with _one_lock:
        lock = _locks.setdefault(key, threading.Lock())
    with lock:
        return _run(*key)


_one_lock = threading.Lock()
_locks: dict[Any, threading.Lock] = {}


@cache
def _run(
    platform: str, workload: str, nodes: int, ppn: int, settings: str, edits: str, seed: int, placement: str
) -> list[Phase]:
    document = Fitted.open(platform, list(json.loads(edits).items())).best()
    text = binaries.as_settings(json.loads(settings))
    with Simulations() as simulations:
        path = simulations.write(document)
        run = binaries.simulate(path, workload, text, nodes, ppn, seed, brief=False, placement=placement)
    return run["phases"]


def rate(found: Phase) -> float:
    """Operations a second."""
    return float(found["rate"])


def bandwidth(found: Phase, bytes_moved: float) -> float:
    """Bytes a second of a phase that moves `bytes_moved` bytes."""
    return float(bytes_moved / found["seconds"])

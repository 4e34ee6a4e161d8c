# SPDX-License-Identifier: Apache-2.0
"""What measurements tell of the server that most operations visit, without a model: what structures look for."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from iocast.calibrate import parts, reading
from iocast.calibrate.recipe import Recipe
from iocast.platforms.documents import Document, get_path, merge, set_path
from iocast.runs.run_directory import Point

Steps = list[Any]
PLAIN = frozenset(("servers", "contention", "coherency", "crowding", "discipline", "count", "spread"))
"""What a station may have that structures change: a single instance that serves in order of arrival."""


@dataclass(frozen=True)
class Seen:
    """station: the one that most operations visit. laws: of its demands, what a lone rank took, `empirical`. routes: by
    demand, the path of the route that visits it. tags: by demand, the quantities that tell it, an operation's where
    runs know it whole only. alone, grown: by demand, mean seconds of a lone rank, and of one of
    `ranks`, the most without think times. busy: servers that would be busy there all the time, were all of a lone
    rank's time service. single: the lone rank's point; closed: those of more ranks without think times, the fewest
    first."""

    station: str
    laws: Document
    routes: dict[str, str]
    tags: dict[str, str]
    alone: dict[str, float]
    grown: dict[str, float]
    ranks: int
    busy: float
    family: Document
    single: Point
    closed: list[Point]

    @property
    def waits(self) -> dict[str, float]:
        """By demand, mean seconds beyond a lone rank's at the most ranks."""
        return {demand: self.grown[demand] - self.alone[demand] for demand in self.alone}

    @property
    def growth(self) -> dict[str, float]:
        """By demand, the factor from a lone rank's mean to that at the most ranks."""
        return {demand: self.grown[demand] / self.alone[demand] for demand in self.alone}

    def operation(self, demand: str) -> str:
        """Whose demand it is."""
        return self.routes[demand].split(".")[1]


def look(
    points: list[Point], single: Point, recipe: Recipe, family: Document, laws: Document, wholes: dict[str, parts.Whole]
) -> Seen | None:
    """None where no plain station is visited by two of the measured demands, or only one scale was measured.

    @param laws of the lone rank, by demand"""
    closed = sorted((p for p in points if p.waiting_factor == 0 and p.ranks > 1), key=lambda point: point.ranks)
    station = parts.main_station(single, recipe.laws, family)
    spec = (family.get("stations") or {}).get(station) or {}
    plain = spec.keys() <= PLAIN and spec.get("discipline", "fcfs") == "fcfs" and spec.get("count", 1) == 1
    if not closed or not station or not plain or spec.get("spread") == "stripe":
        return None
    most = closed[-1]
    alone, grown, routes, tags = {}, {}, {}, {}
    for demand, tag in recipe.laws.items():
        op = tag.partition(".")[0]
        whole = wholes.get(op)
        measured = op if whole is not None else tag
        if (
            not (isinstance(law := laws.get(demand), dict) and law.get("law") == "empirical")
            or parts.station_of(family, tag, demand) != station
            or (whole is not None and whole.demands.get(whole.at) != demand)
            or not (single.has(f"{measured}.mean") and most.has(f"{measured}.mean"))
            or single.value(f"{measured}.mean") <= 0
        ):
            continue
        alone[demand], grown[demand] = single.value(f"{measured}.mean"), most.value(f"{measured}.mean")
        routes[demand], tags[demand] = f"operations.{tag}", measured
    if len(alone) < 2:
        return None
    counts = {demand: most.first.count(recipe.laws[demand].partition(".")[0]) for demand in alone}
    seconds = sum(alone[demand] * count for demand, count in counts.items())
    total = sum(most.first.count(op) for op in most.first.operations)
    busy = most.value("rate") * seconds / total if total else 0.0
    known = {demand: laws[demand] for demand in alone}
    return Seen(station, known, routes, tags, alone, grown, most.ranks, busy, family, single, closed)


def rewrite_visits(
    document: Document,
    found: Seen,
    change: Callable[[Steps, int, Document], Steps],
    demands: Iterator[str] | None = None,
) -> None:
    """Changes the list of steps around each visit to the station, in the document's routes and those of the family that
    it has not replaced. change: of the list, the visit's place and the visit, what takes the list's place."""
    whole = merge({"operations": found.family.get("operations", {})}, {"operations": document.get("operations", {})})
    for demand in found.routes if demands is None else demands:
        route = get_path(whole, found.routes[demand])
        if isinstance(route, list):
            set_path(document, found.routes[demand], _changed(copy.deepcopy(route), found.station, demand, change))


def _changed(steps: Steps, station: str, demand: str, change: Callable[[Steps, int, Document], Steps]) -> Steps:
    for number, step in enumerate(steps):
        if not isinstance(step, dict):
            continue
        if step.get("station") == station and step.get("demand") == demand:
            return change(steps, number, step)
        if step.get("steps"):
            step["steps"] = _changed(step["steps"], station, demand, change)
    return steps


def without_lock(visit: Document) -> Document:
    """The visit, during which no lock is held."""
    return {key: value for key, value in visit.items() if not key.startswith("lock")}


def leave_out_unused_locks(document: Document) -> None:
    """Drops declarations of locks that no step of the document holds any longer; a platform with one is refused."""
    held = set(_locks(document.get("operations", {})))
    if "locks" in document and not (document["locks"].keys() & held):
        del document["locks"]


def _locks(part: Any) -> Iterator[str]:
    """Names of the locks that steps hold, anywhere below."""
    if isinstance(part, dict):
        if isinstance(part.get("lock"), str):
            yield part["lock"]
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from _locks(one)


def seconds(law: Document) -> list[float]:
    """The values of an `empirical` law."""
    return [reading.seconds_of(value) or 0.0 for value in law["values"]]

# SPDX-License-Identifier: Apache-2.0
"""Operations of which a run tells the whole and not the parts, as imported ones do. Plain first: one server does all of
such an operation, in one visit. That the operation also goes elsewhere must show in the data, which then fit the time
that it is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from iocast.calibrate import reading
from iocast.calibrate.recipe import Option, Parameter
from iocast.platforms.documents import Document, get_path
from iocast.records.note_of_measurements import OperationsWhole
from iocast.runs.run_directory import Point

CHOICE = "parts"
TOGETHER, MOSTLY, APART = "together", "briefly elsewhere", "mostly elsewhere"
ELSEWHERE = (MOSTLY, APART)
SECOND: Document = {"law": "empirical", "probabilities": [0.0, 1.0], "values": ["1s", "1s"]}
"""The law of a part that always takes the same time, which is its `scale`."""
SHORTEST = 1e-6
"""Seconds of a part, at least: the least that is fitted."""


@dataclass(frozen=True)
class Whole:
    """An operation that was measured as a whole."""

    law: Document  # `empirical`, of a lone rank
    demands: dict[str, str]  # of its parts, by part
    station: str  # where all of it may be done; "" where no part visits the server of most operations
    at: str  # the part that visits this station
    elsewhere: str  # the part with the largest mean that visits another server; "" where none does


def wholes(single: Point, laws: dict[str, str], family: Document) -> dict[str, Whole]:
    """By operation that the lone rank's runs tell as a whole only. `laws`: by demand, the operation or part that it is
    measured by (docs/calibration.md)."""
    run = single.first
    by_part: dict[str, dict[str, str]] = {}
    for demand, tag in laws.items():
        op, _, part = tag.rpartition(".")
        if part and op in run.operations and reading.single_rank_law(single, tag) is None:
            by_part.setdefault(op, {})[part] = demand
    station = main_station(single, laws, family)
    means = {demand: reading.mean_seconds(law) for demand, law in (family.get("demands") or {}).items()}
    found = {}
    for op, demands in by_part.items():
        law = reading.single_rank_law(single, op)
        if law is None:
            continue
        visited = {part: station_of(family, f"{op}.{part}", demand) for part, demand in demands.items()}
        here = next((part for part in demands if station and visited[part] == station), "")
        others = [part for part in demands if visited[part] not in ("", station)]
        elsewhere = max(others, key=lambda part: means.get(demands[part], 0.0), default="") if here else ""
        found[op] = Whole(law, demands, station if here else "", here, elsewhere)
    return found


def main_station(single: Point, laws: dict[str, str], family: Document) -> str:
    """The system's station that most of the lone rank's operations visit; "" where none does."""
    visits: set[tuple[str, str]] = set()  # operation, station
    for demand, tag in laws.items():
        op, _, part = tag.rpartition(".")
        if (op or part) in single.first.operations:
            visits.add((op or part, station_of(family, tag, demand)))
    most = Counter(station for _, station in sorted(visits) if station).most_common(1)
    return most[0][0] if most else ""


def options(found: dict[str, Whole]) -> list[Option]:
    """Where these operations may be done, the plainest first; none where no part of any visits the server of most."""
    one = {op: whole for op, whole in found.items() if whole.at}
    if not one:
        return []
    two = {op: whole for op, whole in one.items() if whole.elsewhere}
    result = [Option(TOGETHER, edit=_edit(one, set(), {}))]
    if two:
        longest = {op: reading.seconds_of(whole.law["values"][-1]) or 1.0 for op, whole in two.items()}
        for name, varies in ((MOSTLY, "at"), (APART, "elsewhere")):
            laws: Document = {}
            parameters: list[Parameter] = []
            for op, whole in two.items():
                fixed, other = (whole.elsewhere, whole.at) if varies == "at" else (whole.at, whole.elsewhere)
                laws |= {whole.demands[other]: whole.law, whole.demands[fixed]: SECOND}
                typical = reading.seconds_of(whole.law["values"][len(whole.law["values"]) // 2]) or SHORTEST
                parameters.append(
                    Parameter(
                        f"{op}_{fixed}",
                        f"demands.{whole.demands[fixed]}.scale",
                        low=SHORTEST,
                        high=max(longest[op], 2 * SHORTEST),
                        start=max(0.3 * typical, 1.5 * SHORTEST),
                        also=((f"demands.{whole.demands[other]}.shift", -1.0),),
                    )
                )
            result.append(Option(name, edit=_edit(one, set(two), laws), parameters=tuple(parameters)))
    return result


def notes(found: dict[str, Whole], option: str) -> list[OperationsWhole]:
    """What a reader of the fit must know of it; none where there was no choice."""
    one = {op: whole for op, whole in found.items() if whole.at}
    if not one:
        return []
    station = next(iter(one.values())).station
    split = [] if option == TOGETHER else sorted(op for op, measured in one.items() if measured.elsewhere)
    return [OperationsWhole(sorted(one), station, split)]


def _edit(one: dict[str, Whole], split: set[str], laws: Document) -> Document:
    """Routes without what is not visited, and laws."""
    routes: Document = {
        op: {part: [] for part in whole.demands if part != whole.at and not (op in split and part == whole.elsewhere)}
        for op, whole in one.items()
    }
    return {"operations": routes} | ({"demands": dict(laws)} if laws else {})


def station_of(family: Document, tag: str, demand: str) -> str:
    """The system's station at which an operation (or its part) has this demand; "" where it is none, or a node's."""
    route = get_path(family, f"operations.{tag}")
    for step in _steps(route if isinstance(route, list) else []):
        if step.get("demand") == demand and "station" in step:
            station = (family.get("stations") or {}).get(step["station"]) or {}
            return "" if station.get("per") == "node" else str(step["station"])
    return ""


def _steps(route: list[Any]) -> Iterator[Document]:
    for step in route:
        if isinstance(step, dict):
            yield step
            yield from _steps(step.get("steps") or [])

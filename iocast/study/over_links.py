# SPDX-License-Identifier: Apache-2.0
"""Designs with other links than the measured ones, whose operations were observed to move bytes: what their links
carry, as a forecast of the same system has it (iocast/forecasts/links.py)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from iocast.forecasts.links import LINKS, over_links
from iocast.forecasts.request import resolved
from iocast.records.forecast import Ends
from iocast.records.note import Note
from iocast.rules.applied import target
from iocast.rules.residuals import Residuals
from iocast.runs.question import Question
from iocast.study import carried
from iocast.study.designs import Design, Designs, Variants
from iocast.study.documents import Edit
from iocast.study.evaluate import Result
from iocast.study.questions import Ask, Point
from iocast.study.spec import Scale


A_SECOND = "a second"
"""A quantity that no result has: how much longer any time gets, also where its own value is 0."""


class Desk(Protocol):
    """The parts of a study's desk that links need."""

    designs: Designs
    variants: Variants
    profiles: dict[str, Result]
    links_of: dict[tuple[int, Point], list[Note]]

    def scale(self, ask: Ask) -> Scale: ...
    def residuals(self, design: Design, workload: str) -> Residuals | None: ...
    def question(self, workload: str, scale: Scale, fitted: Mapping[str, Any]) -> Question: ...


def limited(desk: Desk, ask: Ask, result: Result) -> Result:
    """The result with a rate that its links carry, and times as much longer; the desk keeps a forecast's words on the
    best estimate's links."""
    is_best = ask.replication == 0 and ask.factors is None and ask.at is None
    found, notes = _over_links(desk, ask, result, is_best)
    if is_best and notes:
        desk.links_of[ask.design, ask.point] = notes
    elif is_best:
        desk.links_of.pop((ask.design, ask.point), None)  # of another solver's rate
    return found


def _over_links(desk: Desk, ask: Ask, result: Result, is_best: bool) -> tuple[Result, list[Note]]:
    design, scale, workload = desk.designs.at(ask.design), desk.scale(ask), ask.point.workload
    platform, found = desk.variants.platform_of(design), result.get("quantities", {})
    speaks = desk.residuals(design, workload) is not None
    moved = platform.fitted.get("link_bytes") if speaks else None
    if not found.get("rate") or (moved is None and not is_best):  # what isn't known changes no value
        return result, []
    factors = None if ask.factors is None else dict(ask.factors)
    edits = desk.variants.edits(design, ask.point.scenario, ask.replication, factors)
    if not (platform.other_links or _edits_links(edits)):
        return result, []
    is_open = float(desk.profiles[workload]["given"].get("rate", 0)) > 0
    load = None if is_open or moved is None else target(desk.question(workload, scale, platform.fitted))
    system = resolved(desk.variants.document(design, ask.point.scenario, ask.replication, factors))
    shares = {
        name.removesuffix(".rate"): rate / found["rate"] for name, rate in found.items() if name.endswith(".rate")
    }
    medians = {name: found[name] for name in (f"{op}.q50" for op in shares) if found.get(name)}
    given = {"rate": found["rate"], A_SECOND: 1.0} | medians
    values, notes = over_links(
        system, shares, scale.nodes, {name: _alone(one) for name, one in given.items()}, load, moved
    )
    changes = {carried.fitted_name(name): values[A_SECOND]["value"] for name in found}
    changes["rate"] = values["rate"]["value"] / found["rate"]
    return result if set(changes.values()) == {1.0} else carried.changed(result, changes), notes


def _edits_links(edits: Iterable[Edit]) -> bool:
    return any(
        _lays_links(edit.value) if edit.how == "lay" else edit.path.removeprefix("network.") in ("network", *LINKS)
        for edit in edits
    )


def _lays_links(piece: Mapping[str, Any]) -> bool:
    return "network" in piece and (piece["network"] is None or bool(piece["network"].keys() & set(LINKS)))


def _alone(value: float) -> Ends:
    return {"value": value, "low": None, "high": None}

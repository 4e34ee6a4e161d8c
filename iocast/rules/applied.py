# SPDX-License-Identifier: Apache-2.0
"""Simple rules and the ceiling of measured scales, applied to the quantities of a calibrated platform's forecast
(docs/calibration.md, "Simple rules" and "Ceiling")."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from iocast.rules import baselines, blend
from iocast.runs.measured import measured
from iocast.runs.question import Question
from iocast.records.forecast import ENDS, Ends, scaled, shown
from iocast.records.note import BlendedWithRules, HeldBelowCeiling, Note, RulesSilent
from iocast.runs.run_directory import QUANTITIES
from iocast.records.fitted import BlendOfGroup, FittedSection

Quantities = dict[str, Ends]
"""By name {value, low, high}; without an interval the ends are None."""


@dataclass(frozen=True)
class Rules:
    """What is known of one target scale beside the calibrated platform: weights of simple rules, and the ceiling."""

    weights: Mapping[str, BlendOfGroup]
    points: list[tuple[baselines.Point, int]]
    requested: blend.Question
    noise: Mapping[str, float]
    ceiling: float
    own_storage: bool = True

    @classmethod
    def of(cls, fitted: FittedSection, question: Question) -> Rules | None:
        """Of the section `fitted` of a platform file; None where neither rules nor a ceiling are known, nothing
        measured speaks of the question, or it was measured with no other scale on its line."""
        speaking = measured(fitted, question)
        points = [(one.point, one.nodes) for one in speaking]
        requested = target(question)
        known = not points or any(question.placement.is_at(one.question.placement) for one in speaking)
        if known and not blend.has_slope(blend.on_line(points, requested)):
            return None
        most = blend.ceiling(points, requested, fitted["noise"]["rate"])
        own = has_own_storage(fitted.get("family", "local"))
        found = cls(fitted.get("blend") or {}, points, requested, fitted["noise"], most, own)
        return None if found.note is None and math.isinf(most) else found

    @property
    def note(self) -> BlendedWithRules | RulesSilent | None:
        """The weights, or that rules are silent here; None where nothing is blended."""
        if blend.is_blended(self.weights) and self.is_silent:
            nodes, ranks = self.requested.nodes, self.requested.ranks
            return RulesSilent(ranks, nodes or None, ranks // nodes if nodes else None)
        return blend.note_of(self.weights)

    @property
    def line(self) -> list[baselines.Point]:
        return blend.on_line(self.points, self.requested)

    @property
    def is_silent(self) -> bool:
        """Whether nothing measured says how the requested placement's line goes on."""
        return not blend.has_slope(self.line)

    def apply(self, quantities: Quantities, level: float) -> tuple[Quantities, Note | None]:
        """The quantities of the measured system, blended with simple rules where these were better at the held-out
        scale, and with a rate below the ceiling; changed ones keep the former value as `calibrated`. And that
        the ceiling holds the rate down, or None."""
        if blend.is_blended(self.weights) and not self.is_silent:
            largest = max(point.concurrency for point in self.line)
            candidates = blend.candidates(self.points, self.requested, self.own_storage)
            mixed = blend.blended(self.weights, quantities, candidates, self.requested, largest, self.noise, level)
            blended: Quantities = {
                name: {
                    **one,
                    "value": mixed[name].value,
                    "low": mixed[name].low,
                    "high": mixed[name].high,
                    "calibrated": one["value"],
                }
                for name, one in quantities.items()
            }
            quantities = rising(blended)
        rate, most = quantities["rate"], self.ceiling
        low, high = (None if end is None else min(end, most) for end in (rate["low"], rate["high"]))
        kept: Ends = {**rate, "value": min(rate["value"], most), "low": low, "high": high}
        if rate["value"] <= most:
            return {**quantities, "rate": kept}, None
        if rate["low"] is not None:  # how far below the value it may lie is not known any better than before
            kept["low"] = rate["low"] * most / rate["value"]
        longer = blend.mean_response(self.requested, most) / blend.mean_response(self.requested, rate["value"])
        below: Quantities = {
            name: {"calibrated": one["value"], **one, **scaled(one, longer)} for name, one in quantities.items()
        }
        held = HeldBelowCeiling(shown(kept), most, rate["value"], longer)
        return {**below, "rate": {"calibrated": rate["value"], **kept}}, held


def has_own_storage(family: str) -> bool:
    """Whether nodes of this family of platforms have storage of their own."""
    return Path(family).stem in ("local", "service")


def changes_of(quantities: Quantities) -> dict[str, float]:
    """By name the factor that rules and ceiling have for the measured system. They know nothing of edits, so that an
    edited one is changed by the same factors."""
    return {name: one["value"] / one["calibrated"] for name, one in quantities.items() if "calibrated" in one}


def changed(quantities: Quantities, changes: Mapping[str, float]) -> Quantities:
    """The quantities of an edited system. Each has a factor of its own, which may not turn quantiles around."""
    return rising(
        {
            name: {**one, **scaled(one, changes[name]), "calibrated": one["value"]} if name in changes else one
            for name, one in quantities.items()
        }
    )


def doubted(doubt: float, change: float) -> float:
    """The error of an edited system, as the standard deviation of a logarithm, with the factor that rules have for the
    measured one: whether the edited system has it, too, nobody measured."""
    return math.hypot(doubt, math.log(change))


def rising(quantities: dict[str, Ends]) -> dict[str, Ends]:
    """The same without quantiles that cross, as they may when each is shifted by itself; what is given stays."""
    quantities = {name: {**one} for name, one in quantities.items()}
    for op in {name.rpartition(".")[0] for name in quantities} - {""}:
        steps = [quantities[f"{op}.{q}"] for q in QUANTITIES if f"{op}.{q}" in quantities]
        for lower, higher in pairwise(steps):
            for end in ENDS:
                least, own = lower[end], higher[end]
                if least is not None and own is not None:
                    higher[end] = max(own, least)
    return quantities


def target(question: Question) -> blend.Question:
    """The scale of a question, as simple rules take it."""
    place = question.placement
    return blend.Question(place.ranks, place.nodes or 0, question.waiting_factor, question.think_time)


def line_of(fitted: FittedSection, question: Question) -> list[baselines.Point]:
    """The measurements that simple rules extend to a question: of its workload and settings, on its line."""
    return blend.on_line([(one.point, one.nodes) for one in measured(fitted, question)], target(question))

# SPDX-License-Identifier: Apache-2.0
"""What a fitted platform was fitted to, as questions: which of its measurements speak of a forecast (docs/answers.md,
`question`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from iocast.rules.baselines import Point
from iocast.runs.question import Question, mounts_of
from iocast.runs.settings import name_for_programs, settings_of, whole_workload
from iocast.records.fitted import FittedCampaign, FittedPoint, FittedSection
from iocast.records.forecast import WorkloadDocument


@dataclass(frozen=True)
class Measured:
    """A measured point of a fitted platform; `entry` is its row of the section `fitted.campaign.points`."""

    question: Question
    entry: FittedPoint

    @property
    def name(self) -> str:
        return str(self.entry.get("name", ""))

    @property
    def point(self) -> Point:
        """As simple rules take it."""
        return Point(
            self.question.placement.ranks,
            self.question.waiting_factor,
            self.entry["rate"],
            self.entry["latency"],
            self.question.think_time,
        )

    @property
    def nodes(self) -> int:
        """0 where they are not known."""
        return self.question.placement.nodes or 0


_NONE: WorkloadDocument = {"name": "", "pattern": "", "parameters": {}}
_LOAD: tuple[Literal["waiting_factor", "think_time"], ...] = ("waiting_factor", "think_time")


def measured(fitted: FittedSection, question: Question | None = None) -> list[Measured]:
    """The points of the section `fitted` of a platform file, or those that speak of a question: of its workload with
    its settings, wherever they ran."""
    campaign: FittedCampaign = fitted.get("campaign") or {}
    workload = campaign.get("workload") or _NONE
    stated = bool(workload.get("pattern"))
    known: WorkloadDocument = whole_workload(workload) if stated else {**_NONE, **workload}
    found = []
    for entry in campaign.get("points", []):
        own = {name: entry[name] for name in _LOAD if name in entry}
        nodes, each = entry.get("nodes") or None, None
        if nodes:
            each = entry["ranks"] / nodes if entry["ranks"] % nodes else entry["ranks"] // nodes
        place = {"ranks": entry["ranks"], "nodes": nodes, "ranks_per_node": each}
        own_question = Question.of(
            {**known, "parameters": {**known["parameters"], **entry.get("switches", {}), **own}},
            place,
            str(campaign.get("phase", "benchmark")),
            settings_known=stated and fitted.get("method") != "rates",
            mounts=mounts_of(campaign.get("environment")),
        )
        found.append(Measured(own_question, entry))
    return [one for one in found if question is None or one.question.is_of_workload(question)]


def about(fitted: FittedSection, question: Question) -> FittedSection:
    """The section with those held-out rows alone that speak of a question."""
    like = {one.name for one in measured(fitted, question)}
    held_out = fitted.get("holdout") or {}
    return {**fitted, "holdout": {**held_out, "rows": [r for r in held_out.get("rows", []) if r["point"] in like]}}


def speaks_of(fitted: FittedSection, question: Question) -> bool:
    """Whether a platform was fitted to the workload and settings of a question."""
    return bool(measured(fitted, question))


def differing_settings(fitted: FittedSection, question: Question) -> list[str]:
    """What differs from the measured settings that are nearest; nothing where they were measured, and of other
    workloads."""
    like = [one.question for one in measured(fitted) if one.question.kind == question.kind]
    return min((question.differences_of_workload(one) for one in like), key=len, default=[])


def measured_workload(fitted: FittedSection, workload: str | None) -> tuple[str, dict[str, str]] | None:
    """Pattern and settings that forecasts and studies of the workload of this name begin with: those of the
    measurements without their repeats, loads and phases. None where the platform was not fitted to it."""
    if not is_called(fitted, workload):
        return None
    measured = fitted["campaign"]["workload"]
    skipped = ("waiting_factor", "repeats", "start_index", "phases")
    return name_for_programs(measured), {
        name: value for name, value in settings_of(measured).items() if name not in skipped
    }


def is_called(fitted: FittedSection, workload: str | None) -> bool:
    """Whether a platform was fitted to the workload of this name or pattern, or it is not named. Settings that are not
    given are then those of the measurements; it says nothing of others."""
    own = fitted.get("campaign", {}).get("workload")
    return bool(own and workload in (None, own.get("name"), own.get("pattern")))

# SPDX-License-Identifier: Apache-2.0
"""What a forecast's reader must know beside its numbers, a function a reason; each returns notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from iocast.rules import baselines
from iocast.runs import arrivals
from iocast.platforms.fitted import Fitted
from iocast.published.serves import FAR as FAR_BEYOND_PUBLISHED
from iocast.published.serves import Serves
from iocast.records import note
from iocast.runs.measured import differing_settings, is_called, measured
from iocast.runs.question import Question
from iocast.records.fitted import FittedSection
from iocast.records.forecast import BestRule, Ends, ForecastDocument, PhaseDocument, PlaceDocument, shown
from iocast.records.codes import each_once, notes_of, notes_of_fit
from iocast.records.note import Note, OutsideBounds

MORE_OBJECTS = 3.0
"""Times as many as at any fitted point, from which on a forecast says that what they fill may not be in it. Chosen by
hand: eight times as many take more than a third of ext4's rate (validation/real/waits.py)."""
FAR_BEYOND = 8.0
"""Times the largest measured scale, from which a forecast warns that nothing new may happen in between."""
KEEPS_UP = 0.9
"""Share of the due operations below which an open loop falls behind."""


def other_placement(platform: Fitted, nodes: int, ranks_per_node: int) -> list[Note]:
    """Whether the target has several nodes, or ranks on each, that were never measured."""
    points = [p for p in platform.fitted.get("campaign", {}).get("points", []) if p.get("nodes")]
    if not points:
        return []
    if nodes > 1 and all(p["nodes"] == 1 for p in points):
        return [note.OneNodeMeasured(nodes)]
    each = sorted({p["ranks"] // p["nodes"] for p in points})
    if len(each) > 1 and all(p["nodes"] > 1 for p in points) and len({p["nodes"] for p in points}) == len(each):
        places = list(dict.fromkeys(f"{p['nodes']}x{p['ranks'] / p['nodes']:g}" for p in points))
        return [note.NodesWithRanks(places, ranks_per_node)]
    if any(p["nodes"] > 1 for p in points) and not each[0] <= ranks_per_node <= each[-1]:
        return [note.RanksPerNodeNotMeasured(ranks_per_node, [*each])]
    return []


def other_settings(fitted: FittedSection, question: Question) -> list[Note]:
    """That the workload was measured, but with none of these settings."""
    found = differing_settings(fitted, question)
    return [note.OtherSettings(found)] if found else []


def other_phases(platform: Fitted, workload: str | None, phases: Iterable[str]) -> list[Note]:
    """Which of these phases the platform was not fitted to, of the workload that it was fitted to."""
    other = [name for name in phases if name != platform.phase]
    return [note.PhasesNotFitted(platform.phase, other)] if other and is_called(platform.fitted, workload) else []


def resting_on_one(platform: Fitted, workload: str | None, phase: str | None) -> list[Note]:
    """Whether the forecast rests on one fitted phase where several were fitted, each with parameters of its own."""
    others = [name for name in platform.phases if name != platform.phase]
    if not others or (is_called(platform.fitted, workload) and phase in (None, *platform.phases)):
        return []
    return [note.RestsOnOnePhase(platform.phase, others)]


def far_beyond_published(serves: Serves, nodes: int, ranks: int) -> list[Note]:
    factor = serves.beyond(nodes, ranks)
    return [note.FarBeyondPublished(serves.platform, nodes, ranks, factor)] if factor > FAR_BEYOND_PUBLISHED else []


def falls_behind(settings: Mapping[str, object], ranks: int, phases: Sequence[PhaseDocument]) -> list[Note]:
    """That an open loop intends more than is done, so that it waits ever longer."""
    due = arrivals.number(settings, "rate") * ranks
    behind = {
        one["phase"]: one["quantities"]["rate"]["value"]
        for one in phases
        if one["quantities"]["rate"]["value"] < KEEPS_UP * due
        and any(name.endswith(".response.q99") for name in one["quantities"])
    }
    return [note.LoadNotServed(due, behind)] if behind else []


def of_all(forecasts: Sequence[ForecastDocument]) -> list[Note]:
    """The notes of several forecasts, each thing once: their rates outside the bounds are one note, with the placement
    where there are several."""
    placed = len({str(sorted(one["placement"].items())) for one in forecasts}) > 1
    every = [one for made in forecasts for one in notes_of(made)]
    rates = [row for one in every if isinstance(one, OutsideBounds) for row in one.rates]
    together = OutsideBounds(each_once(rates), placed)
    return each_once([together if isinstance(one, OutsideBounds) else one for one in every])


def outside_bounds(rows: Iterable[PhaseDocument], place: PlaceDocument) -> list[Note]:
    """The forecast rates outside the bounds that are printed beside them, as one note."""
    entries = []
    for one in rows:
        bounds = (one.get("baselines") or {}).get("asymptotic bounds", {}).get("rate")
        found = one.get("quantities", {}).get("rate")
        if found is None or not isinstance(bounds, dict):
            continue
        if not bounds["low"] / baselines.BEYOND <= found["value"] <= baselines.BEYOND * bounds["high"]:
            where = place["nodes"], place["ranks_per_node"]
            entries.append(note.RateOutside(one["phase"], shown(found), bounds["low"], bounds["high"], *where))
    return [OutsideBounds(entries)] if entries else []


def measured_there(platform: Fitted, answer: ForecastDocument, question: Question) -> list[Note]:
    """Rates that were measured at the very question of a forecast, unless its system differs."""
    there = [one for one in measured(platform.fitted) if question.answers(one.question)]
    if platform.edited or not there:
        return []
    where = answer["placement"]
    return [
        note.MeasuredHere(
            answer["phase"],
            [one.entry["rate"] for one in there],
            where["nodes"],
            where["ranks_per_node"],
            question.placement.ranks,
            answer["quantities"]["rate"].get("unit", ""),
            any(one.nodes == 0 and one.question.placement.ranks > 1 for one in there),
        )
    ]


def beyond_observed(platform: Fitted, rate: Ends, nodes: int) -> list[Note]:
    """Forecast rates that an observed resource can't serve if an operation goes on taking as much of it (utilisation
    law). A client node's resources come with each node; an edited platform may have others than were observed."""
    if platform.edits or len(platform.documents) > 1:
        return []
    entries: list[Note] = []
    for name, known in platform.fitted.get("observed", {}).items():
        most = known["servers"] / known["demand"] * (nodes / known["nodes"] if known["per_node"] else 1)
        if rate["value"] > 1.05 * most:
            use = known["utilisation"], known["ranks"], known["demand"]
            entries.append(note.BeyondObserved(shown(rate), name, most, *use))
    return entries


def more_objects(platform: Fitted, objects: float | None) -> list[Note]:
    """Whether the workload keeps many more objects than any that was fitted; where it is simulated, which counts
    them."""
    measured = [
        point["peak_objects"]
        for point in platform.fitted.get("campaign", {}).get("points", [])
        if point.get("peak_objects")
    ]
    if objects is None or not measured or objects <= MORE_OBJECTS * max(measured):
        return []
    return [note.MoreObjects(objects, max(measured))]


FAR_OFF = 0.25
"""Error of the rate at the held-out scale above which a forecast should not be extrapolated
(docs/reading-a-forecast.md)."""


def far_off_where_checked(fitted: FittedSection, rule: BestRule | None) -> list[Note]:
    holdout = fitted.get("holdout", {})
    errors = [row["error"] for row in holdout.get("rows", []) if row["quantity"] == "rate"]
    if not errors or abs(errors[0]) <= FAR_OFF:
        return []
    phase = (fitted.get("campaign") or {}).get("phase") or ""
    closer = rule is not None and abs(rule["error"]) < abs(errors[0])
    scales = holdout.get("ranks", 0), holdout.get("fitted_up_to", 0)
    return [note.FarOffWhereChecked(errors[0], FAR_OFF, phase, closer, *scales)]


def beyond_measured(platform: Fitted, ranks: int, largest: int, factor: float) -> list[Note]:
    fitted = platform.fitted
    if not fitted:
        return []
    found: list[Note] = [*notes_of_fit(fitted)]
    if ranks > FAR_BEYOND * largest:
        found.append(note.FarBeyondMeasured(ranks, largest))
    if factor > 0 and factor not in fitted["campaign"]["waiting_factors"]:
        found.append(note.WaitingNotMeasured(factor, [*fitted["campaign"]["waiting_factors"]]))
    return found

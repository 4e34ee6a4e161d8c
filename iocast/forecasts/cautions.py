# SPDX-License-Identifier: Apache-2.0
"""What a forecast's reader must know beside its numbers, a function a reason; each returns sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from iocast.rules import baselines
from iocast.runs import arrivals
from iocast.platforms.fitted import Fitted, one_of_several
from iocast.runs.measured import is_called, measured
from iocast.runs.question import Question
from iocast.wording.text import quantity, rate_kind, roughly
from iocast.records.fitted import FittedSection
from iocast.records.forecast import BestRule, Ends, ForecastDocument, PhaseDocument

MORE_OBJECTS = 3.0
"""Times as many as at any fitted point, from which on a forecast says that what they fill may not be in it. Chosen by
hand: eight times as many take more than a third of ext4's rate (validation/real/waits.py)."""
FAR_BEYOND = 8.0
"""Times the largest measured scale, from which a forecast warns that nothing new may happen in between."""
KEEPS_UP = 0.9
"""Share of the due operations below which an open loop falls behind."""


def other_placement(platform: Fitted, nodes: int, ranks_per_node: int) -> list[str]:
    """Whether the target has several nodes, or ranks on each, that were never measured."""
    points = [p for p in platform.fitted.get("campaign", {}).get("points", []) if p.get("nodes")]
    if not points:
        return []
    if nodes > 1 and all(p["nodes"] == 1 for p in points):
        return [
            f"All measurements ran on one node, and the forecast is of {nodes}: what nodes have in common and what "
            "each has of its own was not measured apart. Measure on two nodes."
        ]
    each = sorted({p["ranks"] // p["nodes"] for p in points})
    if len(each) > 1 and all(p["nodes"] > 1 for p in points) and len({p["nodes"] for p in points}) == len(each):
        places = ", ".join(dict.fromkeys(f"{p['nodes']}x{p['ranks'] / p['nodes']:g}" for p in points))
        return [
            f"The measurements ({places}) differ in nodes and in ranks a node at once: what more nodes bring, and what "
            f"more ranks on each, they don't tell apart. Measure two numbers of nodes with {ranks_per_node} ranks each."
        ]
    if any(p["nodes"] > 1 for p in points) and not each[0] <= ranks_per_node <= each[-1]:
        return [
            f"{ranks_per_node} rank{'s' if ranks_per_node > 1 else ''} a node "
            f"{'were' if ranks_per_node > 1 else 'was'} not measured; {', '.join(map(str, each))} "
            f"{'were' if len(each) > 1 or each[0] > 1 else 'was'}."
        ]
    return []


def other_phases(platform: Fitted, workload: str | None, phases: Iterable[str]) -> list[str]:
    """Which of these phases the platform was not fitted to, of the workload that it was fitted to."""
    other = [name for name in phases if name != platform.phase]
    if not other or not is_called(platform.fitted, workload):
        return []
    return [
        f"The platform was fitted to the phase {platform.phase}, not to {', '.join(other)}: no error of such a "
        "forecast is known."
    ]


def resting_on_one(platform: Fitted, workload: str | None, phase: str | None) -> list[str]:
    """Whether the forecast rests on one fitted phase where several were fitted, each with parameters of its own."""
    others = [name for name in platform.phases if name != platform.phase]
    if not others or (is_called(platform.fitted, workload) and phase in (None, *platform.phases)):
        return []
    return [one_of_several(platform.phase, others)]


def falls_behind(settings: Mapping[str, object], ranks: int, phases: Sequence[PhaseDocument]) -> list[str]:
    """That an open loop intends more than is done, so that it waits ever longer; one sentence, or none."""
    due = arrivals.number(settings, "rate") * ranks
    behind = [
        f"{quantity('rate', one['quantities']['rate']['value'])} in the phase {one['phase']}"
        for one in phases
        if one["quantities"]["rate"]["value"] < KEEPS_UP * due
        and any(name.endswith(".response.q99") for name in one["quantities"])
    ]
    if not behind:
        return []
    return [
        f"The load is more than is served: {quantity('rate', due)} are due, {' and '.join(behind)} are done. "
        "Operations wait ever longer for their turn. Response times, counted from when an operation is due, are those "
        "of this length of the phase, and grow with it."
    ]


def each_once(forecasts: Sequence[ForecastDocument]) -> list[str]:
    """The warnings of several forecasts, each thing once: their rates outside the bounds are one sentence, which names
    the placement where there are several."""
    texts = [text for one in forecasts for text in one.get("warnings") or []]
    phases: list[list[PhaseDocument]] = [[one, *(one.get("further_phases") or [])] for one in forecasts]
    own = {text for rows in phases for text in outside_bounds(rows)}
    own |= {f"{row['phase']}: {text}" for rows in phases for row in rows for text in outside_bounds([row])}  # of before
    if own.intersection(texts):
        places = {str(sorted(one["placement"].items())) for one in forecasts}
        rows: list[PhaseDocument] = []
        for own_phases, one in zip(phases, forecasts, strict=True):
            where = one["placement"]
            at = f" at {where['nodes']}x{where['ranks_per_node']:g}" if len(places) > 1 else ""
            rows += [{**row, "phase": f"{row['phase']}{at}"} for row in own_phases]
        (sentence,) = outside_bounds(rows) or [""]
        texts = [sentence if text in own else text for text in texts]
    return [text for text in dict.fromkeys(texts) if text]


def outside_bounds(rows: Iterable[PhaseDocument]) -> list[str]:
    """One sentence on the forecast rates outside the bounds that are printed beside them, or none."""
    entries = []
    for one in rows:
        bounds = (one.get("baselines") or {}).get("asymptotic bounds", {}).get("rate")
        found = one.get("quantities", {}).get("rate")
        if found is None or not isinstance(bounds, dict):
            continue
        rate = found["value"]
        if not bounds["low"] / baselines.BEYOND <= rate <= baselines.BEYOND * bounds["high"]:
            kind = rate_kind(found)
            low, high = quantity(kind, bounds["low"]), quantity(kind, bounds["high"])
            value = roughly(quantity(kind, rate), found)
            entries.append(
                f"{one['phase']} {value}, {'below' if rate < bounds['low'] else 'above'} "
                f"{low if low == high else f'{low} to {high}'}"
            )
    if not entries:
        return []
    return [
        f"Forecast rates outside the asymptotic bounds of the measurements: {'; '.join(entries)}. In a closed system "
        "more ranks do no less than fewer, and each does no more than one of the fewest."
    ]


def measured_there(platform: Fitted, answer: ForecastDocument, question: Question) -> list[str]:
    """Rates that were measured at the very question of a forecast, unless its system differs."""
    there = [one for one in measured(platform.fitted) if question.answers(one.question)]
    if platform.edited or not there:
        return []
    rates = [quantity(rate_kind(answer["quantities"]["rate"]), one.entry["rate"]) for one in there]
    if any(one.nodes == 0 and one.question.placement.ranks > 1 for one in there):  # of an imported run
        where = f"with {question.placement.ranks} ranks"
        advice = "if it was on as many nodes, take the measurement"
    else:
        where, advice = f"at {answer['placement']['nodes']}x{answer['placement']['ranks_per_node']}", ""
    advice = advice or "take the measurement"
    return [f"This scale was measured: {answer['phase']} did {' and '.join(rates)} {where}; {advice}."]


def beyond_observed(platform: Fitted, rate: Ends, nodes: int) -> list[str]:
    """Forecast rates that an observed resource can't serve if an operation goes on taking as much of it (utilisation
    law). A client node's resources come with each node; an edited platform may have others than were observed."""
    if platform.edits or len(platform.documents) > 1:
        return []
    entries = []
    for name, known in platform.fitted.get("observed", {}).items():
        most = known["servers"] / known["demand"] * (nodes / known["nodes"] if known["per_node"] else 1)
        if rate["value"] > 1.05 * most:
            value = roughly(f"{rate['value']:.3g}/s", rate)
            entries.append(
                f"The forecast rate, {value}, is above the {most:.3g}/s that {name} allows: it was "
                f"{100 * known['utilisation']:.0f} % in use at {known['ranks']} ranks, {known['demand'] * 1e6:.3g} us "
                "an operation."
            )
    return entries


def more_objects(platform: Fitted, objects: float | None) -> list[str]:
    """Whether the workload keeps many more objects than any that was fitted; where it is simulated, which counts
    them."""
    measured = [
        point["peak_objects"]
        for point in platform.fitted.get("campaign", {}).get("points", [])
        if point.get("peak_objects")
    ]
    if objects is None or not measured or objects <= MORE_OBJECTS * max(measured):
        return []
    return [
        f"The workload keeps {objects:.0f} objects, {objects / max(measured):.0f} times as many as any that was fitted "
        f"({max(measured)}). What they fill, such as a journal or a cache of inodes, may have had room in those "
        "measurements; measure few ranks with as many in all (in a campaign: 'scaling: strong', and 'seconds' so long "
        "that one rank makes as many)."
    ]


FAR_OFF = 0.25
"""Error of the rate at the held-out scale above which a forecast should not be extrapolated
(docs/reading-a-forecast.md)."""


def far_off_where_checked(fitted: FittedSection, rule: BestRule | None) -> list[str]:
    errors = [row["error"] for row in fitted.get("holdout", {}).get("rows", []) if row["quantity"] == "rate"]
    if not errors or abs(errors[0]) <= FAR_OFF:
        return []
    phase = (fitted.get("campaign") or {}).get("phase")
    of = f" of {phase}" if phase else ""
    closer = ", and a simple rule was closer" if rule and abs(rule["error"]) < abs(errors[0]) else ""
    return [
        f"At the held-out scale the forecast{of} was more than {100 * FAR_OFF:.0f} % too "
        f"{'high' if errors[0] > 0 else 'low'}{closer}: plan with the interval, not with its middle, and measure one "
        "more scale."
    ]


def beyond_measured(platform: Fitted, ranks: int, largest: int, factor: float) -> list[str]:
    fitted = platform.fitted
    if not fitted:
        return []
    warnings = list(fitted.get("notes", []))
    if ranks > FAR_BEYOND * largest:
        warnings.append(
            f"{ranks:,} ranks are {ranks / largest:.0f} times what was measured ({largest:,g}). The intervals assume "
            "that nothing new happens in between, such as throughput that falls with more clients; a measurement at a "
            "larger scale would narrow them most."
        )
    if factor > 0 and factor not in fitted["campaign"]["waiting_factors"]:
        warnings.append(
            f"The waiting factor {factor:g} was not measured; T = "
            f"{', '.join(f'{x:g}' for x in fitted['campaign']['waiting_factors'])} were."
        )
    return warnings

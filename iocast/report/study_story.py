# SPDX-License-Identifier: Apache-2.0
"""The first screen of a study."""

from __future__ import annotations

from typing import Any

from iocast.report import units
from iocast.report.answers import Grid, reached
from iocast.report.cards import Card, Story
from iocast.report.sources import Sources
from iocast.study import amounts
from iocast.study import words
from iocast.records.study import StudyDocument


def tell_study(sources: Sources, study: StudyDocument, measured: Story) -> Story:
    """A study's decision comes before everything; what was measured and forecast stands behind it as its record."""
    decision = study["decision"]
    cards = []
    shown = amounts.reference(study)
    if shown is not None:
        what = "cost of the decision" if decision else "cost of the nearest miss"
        probability = study["confidence"] if decision else shown["probability"]
        if any(d["cost"] for d in study["designs"]):
            bought = f"{amounts.money(shown['price'], '')} to buy"
            running = (
                f", {amounts.money(shown['cost'] - shown['price'], '')} of electricity in {study['years']:g} years"
                if shown["cost"] > shown["price"]
                else ""
            )
            cards.append(
                Card(what, amounts.money(shown["cost"], study["currency"]).replace(" ", units.SPACE), bought + running)
            )
        text = f"{100 * study['confidence_asked']:g}{units.SPACE}% required"
        text += words.if_it_holds(study)
        cards.append(
            Card(
                "chance that all levels are kept",
                amounts.kept_with(study, probability)
                .replace("more than", ">")
                .replace("less than", "<")
                .replace(" ", units.SPACE),
                text,
            )
        )
        ends = shown["breaks_at"]
        if ends:
            value = (
                units.count(words.break_count(study, ends["ranks"]))
                if ends["ranks"] is not None
                else f"> {units.count(ends['beyond'])}"
            )
            cards.append(
                Card(
                    "clients at which it breaks",
                    f"≤ {value}" if ends.get("already") else value,
                    f"the fewest that were looked at; missed: {ends['level']}"
                    if ends.get("already")
                    else f"best estimate{words.placed(ends)}; first: {ends['level']}"
                    if ends["level"]
                    else f"no level missed as far as was looked{words.placed(ends)}",
                )
            )
    grids, changes = _study_grids(study), words.changes(study)
    shown_above = {"What would change it"} if changes else set()
    paragraphs = [(c["about"], c["text"]) for c in study["conclusions"] if c["about"] not in shown_above]
    record = dict([*measured.facts, *measured.paragraphs])
    paragraphs += [
        (about, record[about])
        for about in ("Measured", "Forecast", "How wrong it was", "Simple rules")
        if about in record
    ]
    alarms = measured.warnings[: measured.alarms]
    reported = list(dict.fromkeys([*alarms, *study["warnings"], *measured.warnings]))
    summary = measured.summary | {"study": _study_summary(study)}
    return Story(
        study["headline"],
        words.question(study),
        grids,
        changes,
        paragraphs,
        cards,
        reported,
        len(alarms),
        measured.missing,
        summary,
        reach=reached(study["scales"][-1]["ranks"], study.get("extrapolation")),
    )


def _study_grids(study: StudyDocument) -> list[Grid]:
    """Each level of the decision (or the nearest miss) where it is tightest; then the decision beside its rivals."""
    shown = amounts.reference(study)
    if shown is None:
        return []
    levels = [
        [
            row["level"],
            amounts.place(row, study),
            amounts.limit_of(row),
            amounts.amount(row["quantity"], row["value"]),
            amounts.margin(row),
            amounts.kept_with(study, row["probability"]),
            *words.measured_beside(study, row),
        ]
        for row in amounts.tightest(shown["levels"])
    ]
    header = ["service level", "tightest", "limit", "value", "margin", "kept with", *words.systems_beside(study)]
    found = [Grid(f"Service levels of {amounts.quoted(shown['name'])}", header, levels)]
    rivals = words.rivals(study)
    if rivals:
        header = ["design", "cost", "difference", "keeps all levels", "why it lost"]
        priced = amounts.is_priced(study)
        cells = [
            [
                amounts.quoted(r["name"]),
                amounts.money(r["cost"], study["currency"]).replace(" ", units.SPACE) if priced else units.NOTHING,
                amounts.signed_money(r["difference"], study["currency"]).replace(" ", units.SPACE)
                if priced
                else units.NOTHING,
                amounts.kept_with(study, r["probability"]).replace(" ", units.SPACE),
                r["why"],
            ]
            for r in rivals
        ]
        found.append(
            Grid("Runner-up" if len(rivals) == 1 else "Runner-up, and the nearest cheaper design", header, cells)
        )
    return found


def _study_summary(study: StudyDocument) -> dict[str, Any]:
    return {
        key: study[key]
        for key in (
            "title",
            "decision",
            "confidence",
            "confidence_asked",
            "stability",
            "currency",
            "front",
            "nearest_miss",
            "search",
        )
    }

# SPDX-License-Identifier: Apache-2.0
"""The tables of a study."""

from __future__ import annotations


from iocast.report.sources import Sources
from iocast.report.table import Column, Table
from iocast.study.amounts import is_confident
from iocast.study import words
from iocast.study.evaluate import Elsewhere
from iocast.records.study import NearestMiss, Relaxation, StudyDocument, Why


def all_tables(sources: Sources) -> list[Table]:
    study = sources.study
    if study is None:
        return []
    return [
        _designs(study),
        _levels(study),
        _conditions(study),
        _relaxations(study),
        _measurements(study),
        _uncertain(study),
        _axes(study),
    ]


def _money(study: StudyDocument, title: str) -> str:
    return f"{title}, {study['currency']}" if study["currency"] else title


def _designs(study: StudyDocument) -> Table:
    decision = (study["decision"] or {}).get("id")
    rows = []
    for d in study["designs"]:
        ends, failing = d["breaks_at"] or {}, d["first_failing"] or {}
        what = "the decision" if d["id"] == decision else d["basis"]
        rows.append(
            {
                "chosen": d["id"] == decision,
                **{
                    k: d[k]
                    for k in ("id", "name", "cost", "price", "watts", "rack_units", "meets", "rate", "tail", "front")
                },
                "probability": _chance(study, d["probability"]),
                "what": what,
                "breaks": ends.get("ranks"),
                "failing": failing and f"{failing['level']} at {failing['ranks']:,} clients" or None,
                "why": why(failing.get("why")),
            }
        )
    columns = [
        Column("id", "id"),
        Column("name", "design"),
        Column("what", "basis"),
        Column("cost", _money(study, "cost"), "money"),
        Column("probability", "keeps all levels", "chance"),
        Column("rate", "rate", "rate"),
        Column("tail", "q99", "seconds"),
        Column("breaks", "breaks at clients", "count"),
        Column("failing", "fails first"),
        Column("why", "because"),
        Column("price", _money(study, "price"), "money"),
        Column("watts", "watts", "count"),
        Column("rack_units", "rack units", "number"),
    ]
    columns = [
        c for c in columns if c.key not in ("price", "watts", "rack_units", "cost") or any(r[c.key] for r in rows)
    ]
    note = (
        "Every design looked at, cheapest first; a click on a heading, or Enter on it, sorts by that column. Rate (of "
        "all operations) and q99 (of the slowest operation) are at the largest "
        f"scale{', means over the workloads' if len(study['workloads']) > 1 else ''}; the levels themselves are in "
        "their own table. A design that was only screened has an upper estimate of its chance. Breaks at: best "
        "estimate of the clients from which on a level is missed."
    )
    return Table("designs", "The designs", note, columns, rows, leads=True)


def _chance(study: StudyDocument, probability: float | None) -> float | None:
    """None where the study's chances are not known."""
    return probability if is_confident(study) else None


def why(answer: Why | None) -> str | None:
    """Where the time goes, in a few words."""
    if not answer:
        return None
    if answer["part"] == "down":
        return "nothing is left that serves"
    if answer["part"] == "limit":
        return words.limited(answer).partition(". ")[0].rstrip(".")
    share = f"{100 * (answer['share'] or 0.0):.0f} %"
    if answer["part"] == "utilisation":
        return f"{answer['station']} is in use {share}"
    if answer["station"] == Elsewhere.CLIENTS.value:
        return f"{Elsewhere.CLIENTS.value}, {share} of the time"
    part = {"wait": "waiting", "service": "service", "lock_wait": "lock", "stall": "stall", "lost": "failure"}[
        answer["part"]
    ]
    return f"{part} at {answer['station']}, {share} of the time"


def _levels(study: StudyDocument) -> Table:
    rows = [
        {
            **level,
            "at": ", ".join(level["at"]),
            "workloads": ", ".join(level["workloads"]),
            "under": level["under"] or "normal service",
        }
        for level in study["levels"]
    ]
    columns = [
        Column("level", "level"),
        Column("workloads", "workload"),
        Column("at", "at scale"),
        Column("under", "when"),
        Column("rules_out", "rules out designs", "share"),
        Column("alone", "by itself alone", "share"),
        Column("why", "reason"),
    ]
    columns = [c for c in columns if c.key != "why" or any(r["why"] for r in rows)]
    return Table(
        "levels",
        "Service levels",
        "A level rules out the designs that keep it with less than the required confidence.",
        columns,
        rows,
    )


def _conditions(study: StudyDocument) -> Table:
    chosen = (study["decision"] or {}).get("id") or (study["nearest_miss"] or {}).get("design")
    design = next((d for d in study["designs"] if d["id"] == chosen), None)
    levels = design["levels"] if design else []
    rows = [{**row, "probability": _chance(study, row["probability"])} for row in levels]
    columns = [
        Column("level", "level"),
        Column("workload", "workload"),
        Column("scale", "scale"),
        Column("limit", "limit", "quantity"),
        Column("value", "forecast", "quantity"),
        Column("low", "90 % interval", "quantity", "high"),
        Column("margin", "margin, factor", "factor"),
        Column("probability", "kept with", "chance"),
    ]
    name = f"How \u201c{design['name']}\u201d keeps each level" if design else ""
    return Table(
        "conditions",
        name,
        "The margin is the factor by which the forecast stays on the good side; below 1 it does not.",
        columns,
        rows,
    )


def _relaxations(study: StudyDocument) -> Table:
    miss = study["nearest_miss"]
    found: list[Relaxation | NearestMiss] = [*study["relaxations"], *([miss] if miss else [])]
    rows = [
        {
            "design": one["design"],
            "name": one["name"],
            "saves": one.get("saves"),
            "probability": _chance(study, one["probability"]),
            **needed,
        }
        for one in found
        for needed in one["needed"]
        if not needed["down"]
    ]
    columns = [
        Column("design", "id"),
        Column("name", "design"),
        Column("saves", _money(study, "saves"), "money"),
        Column("probability", "keeps all now", "chance"),
        Column("level", "level"),
        Column("limit", "limit", "quantity"),
        Column("needed", "would have to be", "quantity"),
        Column("scale", "because of scale"),
    ]
    note = "With these limits in place of the present ones the design keeps all levels with the required confidence."
    return Table("relaxations", "What cheaper designs would need", note, columns, rows)


def _measurements(study: StudyDocument) -> Table:
    rows = [{**m, "tells": ", ".join(m["tells"])} for m in study["measurements"]]
    columns = [
        Column("name", "measurement"),
        Column("tells", "tells"),
        Column("value", _money(study, "saves on average"), "money"),
        Column("price", _money(study, "costs"), "money"),
        Column("net", _money(study, "is worth"), "money"),
    ]
    falling = study["falling_short"]
    note = (
        "The expected value of information: what a choice made with the result costs less on average"
        + (
            f", when missing a level after buying costs {falling:,.0f} {study['currency']}".rstrip()
            if falling is not None
            else ""
        )
        + ". Rows without a price say what it would be worth to know a thing exactly: no measurement of it is worth "
        "more."
    )
    return Table("measurements", "What to measure before signing", note, columns, rows)


def _uncertain(study: StudyDocument) -> Table:
    rows = [{**u, "effect": u["effect"] - 1} for u in study["sensitivity"]["uncertain"]]
    columns = [
        Column("name", "uncertain"),
        Column("factor", "known to a factor of", "number"),
        Column("level", "tightest level"),
        Column("scale", "at scale"),
        Column("effect", "effect of one standard deviation", "error"),
        Column("turns_at", "turns at, times", "number"),
    ]
    note = (
        "Turns at: the factor on the best estimate at which the level changes from kept to missed or back, all else "
        "being as thought."
    )
    return Table("uncertain", "What is uncertain", note, columns, rows, folded=True)


def _axes(study: StudyDocument) -> Table:
    rows = [
        {"axis": a["axis"], **v, "share": a["shares"]["worst margin"]}
        for a in study["sensitivity"]["axes"]
        for v in a["values"]
    ]
    columns = [
        Column("axis", "axis"),
        Column("value", "value"),
        Column("cost", _money(study, "mean cost"), "money"),
        Column("rate", "mean rate", "rate"),
        Column("tail", "mean q99", "seconds"),
        Column("worst_margin", "mean worst margin, log", "number"),
        Column("share", "axis explains", "share"),
    ]
    return Table(
        "axes",
        "Axes and their values",
        "Means over all designs with this value, rates and times geometrically.",
        columns,
        rows,
        folded=True,
    )

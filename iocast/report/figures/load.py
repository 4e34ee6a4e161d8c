# SPDX-License-Identifier: Apache-2.0
"""A knee search: throughput and response times against the load, with the levels and the knee's interval."""

from __future__ import annotations

import altair as alt

from iocast.records.quantities import unit_of
from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.sources import Sources

MET = style.Mark("all runs met", style.BLUE, "circle", kind="point")
MIXED = style.Mark("some missed", style.ORANGE, "diamond", kind="point")
MISSED = style.Mark("all missed", style.VERMILLION, "square", kind="point")
TRIED = style.Mark("tried", style.BLACK, "circle", kind="point")
LEVEL = style.Mark("level", style.GREY, dash=(5, 3), kind="line")
INTERVAL = style.Mark("interval of the knee", style.SKY, kind="band")
ANSWER = style.Mark("answer", style.BLACK, dash=(2, 2), kind="line")
_BY_VERDICT = {"met": MET, "mixed": MIXED, "missed": MISSED}
THROUGHPUT = "throughput"
AXES = {
    "rate": "samples a second", "bytes": "bytes a second", "share": "share of time", "seconds": "time of an operation",
}  # fmt: skip
"""Titles of the axes of levels, by the kind of their unit."""


def data(sources: Sources) -> list[Row] | None:
    rows: list[Row] = []
    for knee in sources.knees:
        answer = knee["answer"]["load"] if knee["answer"] else None
        ends = {"low": knee["knee"]["low"], "high": knee["knee"]["high"], "answer": answer}
        for entry in knee["loads"]:
            series = _BY_VERDICT[entry["verdict"]].label if "verdict" in entry else TRIED.label
            shared = {
                "search": knee["name"],
                "over": knee["over"],
                "load": entry["load"],
                "runs": len(entry["runs"]),
                "series": series,
                **ends,
            }
            quantities: list[tuple[str, str, float | None, float | None]]
            quantities = [(THROUGHPUT, "rate", entry["rate"], None)]
            quantities += [("mean response", "seconds", entry["response"], None)]
            for level in knee["levels"]:
                text = level["text"]
                quantities.append((text, unit_of(level["quantity"]), entry["values"][text], level["limit"]))
            rows += [
                {**shared, "quantity": name, "unit": unit, "value": value, "limit": limit}
                for name, unit, value, limit in quantities
                if value
            ]
    return rows or None


def draw(rows: list[Row]) -> Drawing:
    panels = []
    searches = list(dict.fromkeys(r["search"] for r in rows))
    for search in searches:
        for name in dict.fromkeys(r["quantity"] for r in rows if r["search"] == search):
            here = [r for r in rows if r["search"] == search and r["quantity"] == name]
            panels.append(Panel(name + (f", {search}" if len(searches) > 1 else ""), _chart(search, name, here)))
    present = {r["series"] for r in rows}
    marks = [m for m in (MET, MIXED, MISSED, TRIED) if m.label in present]
    return Drawing(panels, [*marks, *([LEVEL] if any(r["limit"] for r in rows) else []), INTERVAL, ANSWER])


def _chart(search: str, name: str, rows: list[Row]) -> style.Drawn:
    text = style.TEXTS[rows[0]["unit"]]
    base = style.with_texts(
        style.chart(f"{style.is_('search', search)} && {style.is_('quantity', name)}"), text, value="value"
    )
    first = rows[0]
    log = alt.Scale(type="log", nice=False, padding=10)
    loads = [r["load"] for r in rows]
    over = "operations a second and rank" if first["over"] == "rate" else "ranks that are asking, N / (1 + T)"
    x = alt.X("load:Q", scale=log, axis=alt.Axis(title=over, values=style.log_ticks(loads), format=",~r", grid=False))
    axis = style.log_axis(
        text,
        "operations a second" if name == THROUGHPUT else AXES[first["unit"]],
        [*(r["value"] for r in rows), first["limit"]],
    )
    marks = [MET, MIXED, MISSED, TRIED]
    layers = []
    if first["low"] is not None:
        end = first["high"] if first["high"] is not None else max(loads)
        band = alt.Chart(alt.Data(values=[{"from": first["low"], "to": end}]))
        layers.append(band.mark_rect(color=style.SKY, opacity=0.4).encode(x=alt.X("from:Q", scale=log), x2="to:Q"))
    if first["answer"] is not None:
        layers.append(
            alt.Chart(alt.Data(values=[{"at": first["answer"]}]))
            .mark_rule(color=style.BLACK, strokeDash=[2, 2])
            .encode(x=alt.X("at:Q", scale=log))
        )
    if first["limit"] is not None:
        layers.append(
            alt.Chart(alt.Data(values=[{"limit": first["limit"]}]))
            .mark_rule(color=style.GREY, strokeDash=[5, 3], size=1.5)
            .encode(y=alt.Y("limit:Q", scale=log))
        )
    tooltip = [
        alt.Tooltip("load:Q", title="load", format=",.4~r"),
        alt.Tooltip("value_text:N", title=name),
        alt.Tooltip("runs:Q", title="runs"),
        alt.Tooltip("series:N", title="levels"),
    ]
    layers.append(
        base.mark_point(size=65, filled=True, opacity=0.85).encode(
            x=x,
            y=alt.Y("value:Q", scale=log, axis=axis),
            color=style.colour(marks),
            shape=style.shape(marks),
            tooltip=tooltip,
        )
    )
    return style.finish(alt.layer(*layers), f"{name} against the load in the knee search {search}", 240)


FIGURE = Figure(
    name="load",
    order=1,
    title="Knee: throughput and response times against the load",
    caption=(
        "Each point is a load that the search tried, with the median over its runs for a level and the mean for "
        "throughput and response. The dotted line is the load that the search states, the band the interval of the "
        "knee. Left of the knee throughput grows with the load and response times hardly; right of it, the other way "
        "round."
    ),
    needs="a campaign made with iocast knee",
    data=data,
    draw=draw,
)

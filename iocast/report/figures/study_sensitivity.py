# SPDX-License-Identifier: Apache-2.0
"""What the answer hangs on: axes of the study, what is uncertain, and what it would be worth to know."""

from __future__ import annotations

import math

import altair as alt

from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.sources import Sources

AXIS = style.Mark("share of the differences between designs", style.BLUE, kind="bar")
EFFECT = style.Mark("effect of one standard deviation", style.ORANGE, kind="bar")
WORTH = style.Mark("what knowing it saves on average", style.GREEN, kind="bar")
PRICE = style.Mark("what the measurement costs", style.BLACK, "stroke", kind="point")
MOST = 10


def data(sources: Sources) -> list[Row] | None:
    study = sources.study
    if study is None:
        return None
    rows: list[Row] = []
    for axis in study["sensitivity"]["axes"]:
        rows.append(
            {
                "panel": "axes",
                "name": axis["axis"],
                "value": axis["shares"]["worst margin"],
                "price": None,
                "level": None,
            }
        )
    for u in study["sensitivity"]["uncertain"][:MOST]:
        rows.append(
            {"panel": "uncertain", "name": u["name"], "value": u["effect"] - 1, "price": None, "level": u["level"]}
        )
    if any(m["value"] > 0 for m in study["measurements"]):
        for m in study["measurements"][:MOST]:
            rows.append({"panel": "worth", "name": m["name"], "value": m["value"], "price": m["price"], "level": None})
    return [r for r in rows if r["value"] is not None and math.isfinite(r["value"])] or None


def draw(rows: list[Row]) -> Drawing:
    panels, legend = [], []
    for panel, title, mark, format_ in (
        ("axes", "Which axis makes the difference (worst level)", AXIS, ".0%"),
        ("uncertain", "Which unknown moves the tightest level", EFFECT, "+.0%"),
        ("worth", "What it is worth to know", WORTH, ",.3~s"),
    ):
        here = [r for r in rows if r["panel"] == panel]
        if here:
            panels.append(Panel(title, _chart(panel, title, here, mark, format_)))
            legend.append(mark)
    if any(r["price"] is not None for r in rows):
        legend.append(PRICE)
    return Drawing(panels, legend)


def _chart(panel: str, title: str, rows: list[Row], mark: style.Mark, format_: str) -> style.Drawn:
    order = [r["name"] for r in sorted(rows, key=lambda r: -abs(r["value"]))]
    base = style.chart(style.is_("panel", panel)).transform_calculate(text=f"format(datum.value, '{format_}')")
    y = alt.Y(
        "name:N", scale=alt.Scale(domain=order), axis=alt.Axis(title=None, ticks=False, domain=False, labelLimit=250)
    )
    least = min(0.0, *(r["value"] for r in rows))
    most = max(0.0, *(max(r["value"], r["price"] or 0) for r in rows))
    x = alt.X(
        "value:Q",
        scale=alt.Scale(domain=[1.05 * least, 1.05 * most or (0.0 if least else 1.0)]),
        axis=alt.Axis(title=None, format=format_, tickCount=4),
    )
    tooltip = [alt.Tooltip("name:N"), alt.Tooltip("text:N", title=mark.label), alt.Tooltip("level:N")]
    layers = [base.mark_bar(color=mark.colour, size=16).encode(x=x, y=y, tooltip=tooltip)]
    if panel == "worth":
        priced = base.transform_filter("isValid(datum.price)")
        layers.append(
            priced.mark_tick(color=style.BLACK, thickness=3, size=22).encode(
                x=alt.X("price:Q"), y=y, tooltip=[alt.Tooltip("name:N"), alt.Tooltip("price:Q", format=",.3~s")]
            )
        )
    return style.finish(alt.layer(*layers), title, style.lines(len(order), 30))


FIGURE = Figure(
    name="sensitivity",
    order=-5,
    title="What the answer hangs on",
    caption=(
        "First, how much of the differences between designs each axis explains by itself: an axis with a short bar can "
        "be decided by price alone. Then, how much one standard deviation of each unknown moves the level that is "
        "nearest to being missed. Last, what a choice made with that knowledge would cost less on average: a "
        "measurement is worth making when its bar is longer than its price."
    ),
    needs="a study with at least two designs within its limits",
    data=data,
    draw=draw,
    of_study=True,
)

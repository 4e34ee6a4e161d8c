# SPDX-License-Identifier: Apache-2.0
"""What money buys: margin, rate and tail of every design against its cost."""

from __future__ import annotations

import altair as alt

from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.sources import Sources
from iocast.study.amounts import is_confident

DECISION = style.Mark("the decision", style.VERMILLION, "diamond", kind="point")
KEEPS = style.Mark("keeps all levels", style.BLUE, "circle", kind="point")
UNSURE = style.Mark("kept, not surely enough", style.ORANGE, "square", kind="point")
MISSES = style.Mark("misses a level", style.GREY, "triangle-down", kind="point")
BEYOND = style.Mark("beyond the budget", style.BLACK, "stroke", kind="point")
"""Of a page whose reader turns prices."""
SCREENED = style.Mark("only screened", style.SKY, "cross", kind="point")
FRONT = style.Mark("the best for the money", style.BLACK, dash=(3, 3), kind="line")
MARKS = [BEYOND, SCREENED, MISSES, UNSURE, KEEPS, DECISION]


def data(sources: Sources) -> list[Row] | None:
    study = sources.study
    if study is None:
        return None
    decision = (study["decision"] or {}).get("id")
    rows: list[Row] = []
    for d in study["designs"]:
        margins = [level["margin"] or 0.0 for level in d["levels"]]
        if d["rate"] and d["tail"]:
            state = (
                DECISION
                if d["id"] == decision
                else SCREENED
                if d["basis"] != "simulated"
                else KEEPS
                if d["meets"]
                else UNSURE
                if margins and min(margin or 0.0 for margin in margins) >= 1
                else MISSES
            )
            rows.append(
                {
                    "design": d["id"],
                    "name": d["name"],
                    "state": state.label,
                    "cost": d["cost"],
                    "currency": study["currency"],
                    "margin": min(margins) if margins and all(margins) else None,  # where a level is not served at all
                    "rate": d["rate"],
                    "tail": d["tail"],
                    "probability": d["probability"] if is_confident(study) else None,
                    "front": d["front"],
                }
            )
    for what, best in (("margin", max), ("rate", max), ("tail", min)):
        reached = None
        for row in rows:  # cheapest first
            reached = best((one for one in (reached, row[what]) if one is not None), default=None)
            row[f"best_{what}"] = reached
    return rows if len(rows) > 1 else None


def draw(rows: list[Row]) -> Drawing:
    present = {r["state"] for r in rows}
    panels = [
        Panel(
            "Margin of the tightest level against cost",
            _chart(rows, "margin", style.factor_text, "times what the level needs"),
        ),
        Panel("Rate at the largest scale", _chart(rows, "rate", style.rate_text, "operations a second")),
        Panel(
            "Slowest in a hundred at the largest scale",
            _chart(rows, "tail", style.seconds_text, "latency (q99, worst operation)"),
        ),
    ]
    return Drawing(panels, [*(m for m in reversed(MARKS) if m.label in present), FRONT])


def _chart(rows: list[Row], what: str, text: style.Text, title: str) -> style.Drawn:
    base = style.with_texts(style.chart(), text, value=what)
    base = base.transform_calculate(
        cost_text="format(datum.cost, ',.3~r') + ' ' + datum.currency",
        chance_text="datum.probability === null ? 'unknown' : datum.probability > 0.99 ? 'more than 99 %' : "
        "format(datum.probability, '.0%')",
    )
    x = alt.X(
        "cost:Q",
        scale=alt.Scale(zero=False, nice=True, padding=12),
        axis=alt.Axis(title=f"cost, {rows[0]['currency']}".rstrip(", "), format=",.3~s", tickCount=5),
    )
    # Sliders of the page move margins, so that their ticks are not those of the rows alone.
    ticks = {"values": style.log_ticks(r[what] for r in rows)} if what != "margin" else {"tickCount": 6}
    y = alt.Y(
        f"{what}:Q",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(title=title, labelExpr=text("datum.value", ".3~r"), labelOverlap=True, **ticks),
    )
    tooltip = [
        alt.Tooltip("design:N"),
        alt.Tooltip("name:N"),
        alt.Tooltip("state:N"),
        alt.Tooltip("cost_text:N", title="cost"),
        alt.Tooltip("value_text:N", title=what),
        alt.Tooltip("chance_text:N", title="keeps all levels"),
    ]
    look = {
        "x": x,
        "y": y,
        "color": style.colour(MARKS, "state"),
        "shape": style.shape(MARKS, "state"),
        "tooltip": tooltip,
    }
    chosen = style.is_("state", DECISION.label)
    limit = [base.mark_rule(color=style.GREY, strokeDash=[8, 3]).encode(y=alt.datum(1))] if what == "margin" else []
    return style.finish(
        alt.layer(
            *limit,
            base.mark_line(color=style.BLACK, size=1, strokeDash=[3, 3], interpolate="step-after").encode(
                x=x, y=alt.Y(f"best_{what}:Q", scale=alt.Scale(type="log", nice=False, padding=12)), order="cost:Q"
            ),
            base.transform_filter(f"!({chosen})").mark_point(size=55, filled=True, opacity=0.75).encode(**look),
            base.transform_filter(chosen).mark_point(size=220, filled=True, opacity=1).encode(**look),
        ),
        f"{what} of every design against its cost",
        300,
    )


FIGURE = Figure(
    name="front",
    order=-8,
    title="What money buys",
    caption=(
        "Each mark is a design. The margin is how many times better than its limit the tightest level is, by the best "
        "estimate: 1 is the limit. A design above it may still keep its levels with less than the required confidence. "
        "For the rate up is better, for the response time down is better, and further left is always cheaper. The "
        "broken line is the best that so much money buys; a design off both lines pays for something that none of "
        "them shows. Crosses were only screened by the analytic solver, set right by the designs that were simulated."
    ),
    needs="a study with at least two designs within its limits",
    data=data,
    draw=draw,
    leads=True,
    of_study=True,
)

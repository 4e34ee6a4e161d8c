# SPDX-License-Identifier: Apache-2.0
"""What-if: throughput and tail of the alternatives against scale."""

from __future__ import annotations

import altair as alt

from iocast.report import evidence
from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.sources import Sources


def data(sources: Sources) -> list[Row] | None:
    rows: list[Row] = []
    for label, forecasts in evidence.what_if(sources).items():
        for forecast in forecasts:
            ranks = evidence.ranks_of(forecast["placement"])
            for name in sorted(forecast["quantities"], key=evidence.quantity_order):
                if name == "rate" or name.endswith(".q99"):
                    values = evidence.drawable(forecast["quantities"][name])
                    rows.append(
                        {
                            "phase": evidence.phase_of(forecast),
                            "series": label,
                            "ranks": ranks,
                            "quantity": name,
                            **values,
                            "wide": evidence.is_wide(forecast["quantities"][name]),
                        }
                    )
    lines = [row for row in rows if _is_line(rows, row["phase"], row["quantity"])]
    return lines or None


def _is_line(rows: list[Row], phase: str, quantity: str) -> bool:
    """Whether some system has values at two scales; single points stand in the table of forecasts."""
    known = {
        (r["series"], r["ranks"])
        for r in rows
        if (r["phase"], r["quantity"]) == (phase, quantity) and r["value"] is not None and not r["wide"]
    }
    return len(known) > len({series for series, _ in known})


def draw(rows: list[Row]) -> Drawing:
    marks = style.cycle(dict.fromkeys(r["series"] for r in rows))
    panels = []
    for phase in dict.fromkeys(r["phase"] for r in rows):
        for quantity in sorted({r["quantity"] for r in rows if r["phase"] == phase}, key=evidence.quantity_order):
            operation, what = evidence.split_quantity(quantity)
            title = f"{phase}: " + (f"{operation}, slowest in a hundred ({what})" if operation else "throughput")
            here = [r for r in rows if (r["phase"], r["quantity"]) == (phase, quantity)]
            panels.append(Panel(title, _chart(phase, quantity, here, marks), wide=not operation))
    return Drawing(panels, marks)


def _chart(phase: str, quantity: str, rows: list[Row], marks: list[style.Mark]) -> style.Drawn:
    is_rate = quantity == "rate"
    text = style.rate_text if is_rate else style.seconds_text
    where = f"{style.is_('phase', phase)} && {style.is_('quantity', quantity)} && isValid(datum.value)"
    base = style.with_texts(style.chart(where), text, value="value", low="low", high="high")
    log = alt.Scale(type="log", nice=False, padding=10)
    x = alt.X("ranks:Q", scale=log, axis=style.rank_axis(r["ranks"] for r in rows))
    ends_of = [r[k] for r in rows for k in ("value", "low", "high")]
    axis = style.log_axis(text, "operations a second" if is_rate else "latency", ends_of)
    y = alt.Y("value:Q", scale=log, axis=axis)
    tooltip = [
        alt.Tooltip("series:N", title="system"),
        alt.Tooltip("ranks:Q", format=","),
        alt.Tooltip("value_text:N", title="forecast"),
        alt.Tooltip("low_text:N", title="from"),
        alt.Tooltip("high_text:N", title="to"),
    ]
    look = {"x": x, "color": style.colour(marks)}
    known = base.transform_filter("!datum.wide")
    ends = {"y": alt.Y("low:Q", scale=log, axis=axis), "y2": alt.Y2("high:Q")}
    banded = base.transform_filter("isValid(datum.low) && isValid(datum.high)")
    return style.finish(
        alt.layer(
            banded.mark_area(opacity=0.13).encode(**look, **ends),
            banded.mark_rule(opacity=0.5).encode(**look, **ends),
            known.mark_line(size=2).encode(y=y, strokeDash=style.dash(marks), **look),
            known.mark_point(size=60, filled=True, opacity=1).encode(
                y=y, shape=style.shape(marks), tooltip=tooltip, **look
            ),
        ),
        f"Forecast of {quantity} in {phase} of each alternative against the number of ranks",
        280 if is_rate else 220,
    )


FIGURE = Figure(
    name="whatif",
    order=8,
    title="What if: the alternatives against scale",
    caption=(
        "Forecasts of the system as it is and of each edited one. In throughput higher is better; where a line turns "
        "flat, that system is full, and more clients only wait longer. In latency lower is better. Where two bands "
        "overlap, the forecast can't tell the two systems apart, and a band that spans more than a factor 30 stands "
        "without a value. The further right of the measured scale, the more rests on the model."
    ),
    needs="forecasts of one system at two scales or more, each with a value",
    data=data,
    draw=draw,
)

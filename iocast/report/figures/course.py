# SPDX-License-Identifier: Apache-2.0
"""The course of forecast phases: throughput from the first operation to the last rank's end, in the simulation."""

from __future__ import annotations

import altair as alt

from iocast.report import evidence
from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.sources import Sources

MAX_BINS = 200  # more are joined


def data(sources: Sources) -> list[Row] | None:
    rows: list[Row] = []
    chosen = [
        (label, forecasts)
        for phase in evidence.forecast_phases(sources)
        for label, forecasts in evidence.what_if(sources, phase).items()
    ]
    for label, forecasts in chosen:
        largest = max(forecasts, key=lambda forecast: evidence.ranks_of(forecast["placement"]))
        course = largest.get("timeline")
        if not course or not course["rate"]:
            continue
        rates, width = course["rate"], course["bin_seconds"]
        join = -(-len(rates) // MAX_BINS)
        series = (
            f"{evidence.phase_of(largest)}, {label}, {evidence.ranks_of(largest['placement']):,} ranks, T = "
            f"{evidence.waiting_factor(largest):g}"
        )
        for first in range(0, len(rates), join):
            bins = rates[first : first + join]
            rows.append({"series": series, "at": (first + len(bins) / 2) * width, "rate": sum(bins) / len(bins)})
    return rows or None


def draw(rows: list[Row]) -> Drawing:
    marks = style.cycle(dict.fromkeys(r["series"] for r in rows))
    base = style.with_texts(style.chart(), style.rate_text, value="rate")
    base = style.with_texts(base, style.seconds_text, when="at")
    tooltip = [
        alt.Tooltip("series:N", title="forecast"),
        alt.Tooltip("when_text:N", title="at"),
        alt.Tooltip("value_text:N", title="throughput"),
    ]
    x = alt.X(
        "at:Q",
        axis=style.axis(style.seconds_text, "time since the start of the phase", grid=False, tickCount=8),
        scale=alt.Scale(nice=False, zero=True),
    )
    y = alt.Y("rate:Q", axis=style.axis(style.rate_text, "operations a second"), scale=alt.Scale(zero=True))
    chart = base.mark_line(size=2, interpolate="step").encode(
        x=x, y=y, color=style.colour(marks), strokeDash=style.dash(marks), tooltip=tooltip
    )
    return Drawing(
        [Panel("Throughput", style.finish(chart, "Forecast throughput against time", 240), wide=True)], marks
    )


FIGURE = Figure(
    name="course",
    order=9,
    title="The course of the forecast",
    caption=(
        "The simulated phase from beginning to end, at the largest forecast scale of each system. Dips that come back "
        "are stalls; a long tail at the end is ranks that are late, for which all others wait. One simulation of the "
        "best structure, without the interval of the forecast."
    ),
    needs="forecasts that were simulated",
    data=data,
    draw=draw,
)

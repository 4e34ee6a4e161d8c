# SPDX-License-Identifier: Apache-2.0
"""Density of the logarithm of latency, by operation and phase."""

from __future__ import annotations

import math
from collections import Counter

import altair as alt

from iocast.report import evidence
from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.sources import Sources

PER_DECADE = 20  # bins
FEWEST = 100  # operations, for a density to mean something


def data(sources: Sources) -> list[Row] | None:
    rows: list[Row] = []
    runs = evidence.focus_runs(sources)
    for run in runs:
        for (phase, operation), distribution in run.distributions.items():
            total = distribution.total
            if total < FEWEST:
                continue
            bins: Counter[int] = Counter()
            for nanoseconds, count in distribution.counts.items():
                bins[math.floor(PER_DECADE * math.log10(max(nanoseconds, 1) * 1e-9))] += count
            series = phase if len(runs) == 1 else f"{phase}, {run.name}"
            for index in range(min(bins) - 1, max(bins) + 2):
                rows.append(
                    {
                        "operation": operation, "series": series, "seconds": 10 ** ((index + 0.5) / PER_DECADE),
                        "count": bins[index], "share": bins[index] / total,
                    }
                )  # fmt: skip
    rows.sort(key=lambda r: evidence.operation_order(r["operation"]))
    return rows or None


def draw(rows: list[Row]) -> Drawing:
    marks = style.cycle(dict.fromkeys(r["series"] for r in rows), "line")
    panels = []
    for operation in dict.fromkeys(r["operation"] for r in rows):
        seconds = [r["seconds"] for r in rows if r["operation"] == operation]
        panels.append(Panel(operation, _chart(operation, seconds, marks)))
    return Drawing(panels, marks)


def _chart(operation: str, seconds: list[float], marks: list[style.Mark]) -> style.Drawn:
    base = style.with_texts(style.chart(style.is_("operation", operation)), style.seconds_text, value="seconds")
    log = alt.Scale(type="log", nice=False)
    x = alt.X("seconds:Q", scale=log, axis=style.log_axis(style.seconds_text, "latency", seconds, grid=False))
    y = alt.Y("share:Q", axis=alt.Axis(title="share of operations", format=".0%", tickCount=4), stack=None)
    tooltip = [
        alt.Tooltip("series:N", title="phase"),
        alt.Tooltip("value_text:N", title="latency"),
        alt.Tooltip("count:Q", format=","),
        alt.Tooltip("share:Q", format=".3~p"),
    ]
    look = {"x": x, "y": y, "color": style.colour(marks), "tooltip": tooltip}
    return style.finish(
        alt.layer(
            base.mark_area(opacity=0.15, interpolate="step").encode(x=x, y=y, color=style.colour(marks)),
            base.mark_line(size=1.8, interpolate="step").encode(strokeDash=style.dash(marks), **look),
            base.mark_point(size=40, opacity=0, filled=True).encode(**look),
        ),
        f"Density of the latency of {operation} by phase",
        200,
    )


FIGURE = Figure(
    name="density",
    order=7,
    title="Density of latency, by operation and phase",
    caption=(
        "How the operations share themselves out over latency, on a logarithmic axis; each step is 12 % wide. One hump "
        "is one way of being served; a second hump to the right is a second way, such as a miss of a cache or a wait "
        "for a lock, and its area is the share of operations that go that way. The same operation in two phases "
        "differs by what runs beside it."
    ),
    needs="a run directory with latency.hlog and at least 100 operations of a kind",
    data=data,
    draw=draw,
)

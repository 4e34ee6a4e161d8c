# SPDX-License-Identifier: Apache-2.0
"""Share of operations that were answered within a time, all operations of a run side by side."""

from __future__ import annotations

import altair as alt

from iocast.report import evidence
from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.figures.percentiles import _chosen, _merged
from iocast.report.sources import Sources

PROBABILITIES = [0.001, 0.005, *(i / 50 for i in range(1, 50)), 0.99, 0.995, 0.999]


def data(sources: Sources) -> list[Row] | None:
    rows: list[Row] = []
    for name, runs in _chosen(sources).items():
        merged = _merged(runs)
        order = sources.phases
        for phase, operation in sorted(
            merged, key=lambda place: (order.index(place[0]), evidence.operation_order(place[1]))
        ):
            known = [p for p in PROBABILITIES if p * merged[phase, operation].total >= 1]
            values = merged[phase, operation].quantiles(known)
            rows += [
                {"panel": f"{phase}, {name}", "operation": operation, "probability": p, "seconds": max(s, 1e-9)}
                for p, s in zip(known, values, strict=True)
            ]
    return rows or None


def draw(rows: list[Row]) -> Drawing:
    marks = style.cycle(dict.fromkeys(r["operation"] for r in rows), "line")
    names = list(dict.fromkeys(r["panel"] for r in rows))
    panels = [
        Panel(name, _chart(name, [r["seconds"] for r in rows if r["panel"] == name], marks), wide=len(names) == 1)
        for name in names
    ]
    return Drawing(panels, marks)


def _chart(name: str, seconds: list[float], marks: list[style.Mark]) -> style.Drawn:
    base = style.with_texts(style.chart(style.is_("panel", name)), style.seconds_text, value="seconds")
    x = alt.X(
        "seconds:Q",
        scale=alt.Scale(type="log", nice=False),
        axis=style.log_axis(style.seconds_text, "latency", seconds),
    )
    y = alt.Y(
        "probability:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(title="operations answered within it", format=".0%", tickCount=5),
    )
    tooltip = [
        alt.Tooltip("operation:N"),
        alt.Tooltip("probability:Q", title="share", format=".1%"),
        alt.Tooltip("value_text:N", title="within"),
    ]
    look = {"x": x, "y": y, "color": style.colour(marks, "operation"), "tooltip": tooltip}
    line = base.mark_line(size=2, interpolate="step-before").encode(strokeDash=style.dash(marks, "operation"), **look)
    return style.finish(
        alt.layer(line, base.mark_point(size=50, opacity=0, filled=True).encode(**look)),
        f"Distribution functions of the operations of {name}",
        240,
    )


FIGURE = Figure(
    name="ecdf",
    order=4,
    title="How many are answered in time",
    caption=(
        "Pick a time on the axis and read how many operations of each kind were answered within it. A curve further "
        "left is faster; a steep one is predictable. Where a curve lies flat for a while, operations of that kind come "
        "in two sorts, and nothing takes the time in between."
    ),
    needs="a run directory with latency.hlog",
    data=data,
    draw=draw,
)

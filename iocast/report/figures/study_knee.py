# SPDX-License-Identifier: Apache-2.0
"""Rate and response time of the chosen design against the number of clients, with the knee and the bounds."""

from __future__ import annotations

import altair as alt

from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.sources import Sources

SOLVED = style.Mark("analytic solver", style.BLUE, dash=(1, 0), kind="line")
SIMULATED = style.Mark("simulated", style.VERMILLION, "diamond", kind="point")
BOUNDS = style.Mark("bounds that nothing can pass", style.GREY, dash=(5, 3), kind="line")
KNEE = style.Mark("knee", style.BLACK, dash=(2, 2), kind="line")


def data(sources: Sources) -> list[Row] | None:
    return [dict(row) for row in sources.study.get("knee") or []] or None if sources.study else None


def draw(rows: list[Row]) -> Drawing:
    panels = []
    workloads = list(dict.fromkeys(r["workload"] for r in rows))
    for workload in workloads:
        here = [r for r in rows if r["workload"] == workload]
        of = f", {workload}" if len(workloads) > 1 else ""
        panels.append(Panel(f"Rate{of}", _chart(workload, here, "rate", style.rate_text, "operations a second")))
        panels.append(Panel(f"Mean response time{of}", _chart(workload, here, "mean", style.seconds_text, "latency")))
    return Drawing(panels, [SOLVED, SIMULATED, BOUNDS, KNEE])


def _chart(workload: str, rows: list[Row], what: str, text: style.Text, title: str) -> style.Drawn:
    base = style.with_texts(style.chart(style.is_("workload", workload)), text, value=what)
    log = alt.Scale(type="log", nice=False, padding=8)
    x = alt.X("ranks:Q", scale=log, axis=style.rank_axis((r["ranks"] for r in rows), "clients"))
    low, high = (f"{what}_low", f"{what}_high")
    values = [r[k] for r in rows for k in (what, high) if r.get(k)]
    axis = style.log_axis(text, title, values)
    scale = alt.Scale(
        type="log",
        nice=False,
        padding=8,
        domain=[0.7 * min(v for r in rows if (v := r.get(what))), 1.5 * max(v for r in rows if (v := r.get(what)))],
        clamp=False,
    )
    y = alt.Y(f"{what}:Q", scale=scale, axis=axis)
    tooltip = [
        alt.Tooltip("series:N", title="by"),
        alt.Tooltip("ranks:Q", title="clients", format=","),
        alt.Tooltip("value_text:N", title=what),
    ]
    solved, simulated = (
        base.transform_filter(style.is_("series", SOLVED.label)),
        base.transform_filter(style.is_("series", SIMULATED.label)),
    )
    knee = next((r["knee"] for r in rows if r["knee"]), None)
    bounds = [
        solved.transform_filter(f"isValid(datum['{end}'])")
        .mark_line(color=style.GREY, strokeDash=[5, 3], size=1.3, clip=True)
        .encode(x=x, y=alt.Y(f"{end}:Q", scale=scale, axis=axis))
        for end in (low, high)
    ]
    layers = [
        *bounds,
        solved.mark_line(color=style.BLUE, size=2).encode(x=x, y=y),
        solved.mark_point(color=style.BLUE, size=40, opacity=0, filled=True).encode(x=x, y=y, tooltip=tooltip),
        simulated.mark_point(color=style.VERMILLION, shape="diamond", size=80, filled=True, opacity=1).encode(
            x=x, y=y, tooltip=tooltip
        ),
    ]
    if knee:
        layers.append(
            alt.Chart(alt.Data(values=[{"knee": knee}]))
            .mark_rule(color=style.BLACK, strokeDash=[2, 2])
            .encode(x=alt.X("knee:Q", scale=log))
        )
    return style.finish(
        alt.layer(*layers), f"{title} of the chosen design against the number of clients, {workload}", 240
    )


FIGURE = Figure(
    name="knee",
    order=-4,
    title="Where the chosen design fills up",
    caption=(
        "Left of the knee nobody waits much and each further client adds its rate; right of it the system is full, and "
        "further clients only wait. Beyond the study's scales, clients come as they do in it: on the same nodes, or "
        "with nodes of their own. No system of these parts can pass the broken lines, whatever its clients do "
        "(asymptotic bounds: Denning & Buzen 1978). Where diamonds leave the line, the simulation knows something that "
        "the analytic solver leaves out, such as ranks in step."
    ),
    needs="a study whose workloads the analytic solver knows",
    data=data,
    draw=draw,
    of_study=True,
)

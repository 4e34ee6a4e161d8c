# SPDX-License-Identifier: Apache-2.0
"""Balance: when each rank ended, by node."""

from __future__ import annotations

from statistics import median

import altair as alt

from iocast.report import evidence
from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.sources import Run, Sources
from iocast.records.simulated import PhaseOfRun

MAX_RANKS = 1000  # drawn one by one; beyond, each node by its first, median and last rank
EACH, RANGE = "one rank", "first, median and last rank of a node"


def data(sources: Sources) -> list[Row] | None:
    rows = [row for run in evidence.focus_runs(sources) for name in run.about for row in _rows(run, name)]
    return rows or None


def _rows(run: Run, name: str) -> list[Row]:
    phase = run.phase(name) or PhaseOfRun()
    ends = phase.get("rank_seconds") or []
    if len(ends) < 2:
        return []
    title = f"{evidence.run_title(run)}, {phase['name']}"
    a_node = int(run.document["placement"].get("ranks_per_node") or len(ends))
    if len(ends) <= MAX_RANKS:
        return [
            {
                "run": title,
                "node": rank // a_node,
                "rank": rank,
                "series": EACH,
                "seconds": end,
                "low": None,
                "high": None,
            }
            for rank, end in enumerate(ends)
        ]
    groups = [ends[first : first + a_node] for first in range(0, len(ends), a_node)]
    return [
        {"run": title, "node": node, "rank": None, "series": RANGE, "seconds": median(g), "low": min(g), "high": max(g)}
        for node, g in enumerate(groups)
    ]


def draw(rows: list[Row]) -> Drawing:
    panels = []
    for run in dict.fromkeys(r["run"] for r in rows):
        here = [r for r in rows if r["run"] == run]
        panels.append(Panel(run, _chart(run, here), wide=True))
    marks = [
        style.Mark(EACH, style.BLUE, "circle", kind="point"),
        style.Mark(RANGE, style.BLUE, "square", kind="point"),
    ]
    return Drawing(panels, [m for m in marks if any(r["series"] == m.label for r in rows)])


def _chart(run: str, rows: list[Row]) -> style.Drawn:
    base = style.with_texts(
        style.chart(style.is_("run", run)), style.seconds_text, value="seconds", first="low", last="high"
    )
    by = "rank" if len({r["node"] for r in rows}) == 1 else "node"
    places = max(r[by] for r in rows) + 1
    x = alt.X(
        f"{by}:Q",
        scale=alt.Scale(domain=[-0.5, places - 0.5], nice=False),
        axis=alt.Axis(title=by, format=",d", tickMinStep=1, tickCount=min(places, 10), grid=False),
    )
    scale = alt.Scale(zero=False, nice=True)
    digits = style.digits(end for r in rows for end in (r["seconds"], r["low"], r["high"]))
    axis = style.axis(style.seconds_text, "end of the rank", digits, tickCount=5)
    y = alt.Y("seconds:Q", scale=scale, axis=axis)
    tooltip = [alt.Tooltip("node:Q"), alt.Tooltip("rank:Q"), alt.Tooltip("value_text:N", title="end")]
    points = base.mark_point(filled=True, size=45, opacity=0.7, color=style.BLUE).encode(x=x, y=y, tooltip=tooltip)
    ranges = base.transform_filter("isValid(datum.low)").mark_rule(color=style.BLUE)
    return style.finish(
        alt.layer(ranges.encode(x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q"), points),
        f"End time of each rank by node of the run {run}",
        220,
    )


FIGURE = Figure(
    name="balance",
    order=10,
    title="Balance between ranks and nodes",
    caption=(
        "When each rank finished its share, since the start of the phase. Ranks that end together share the storage "
        "fairly. A whole node above the others is a slow client, not a slow storage; single ranks above their node had "
        "bad luck or a bad neighbour. A job waits for the highest point. The axis does not start at zero."
    ),
    needs="a run directory with the end times of at least two ranks",
    data=data,
    draw=draw,
)

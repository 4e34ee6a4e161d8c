# SPDX-License-Identifier: Apache-2.0
"""Timeline of a run: the slowest operation of each moment, which shows stalls as columns and periods."""

from __future__ import annotations


import altair as alt

from iocast.report import evidence
from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.sources import Run, Sources
from iocast.records.simulated import time_line

MAX_BINS = 400  # for each operation of a run; more are joined


def data(sources: Sources) -> list[Row] | None:
    rows = [row for run in evidence.focus_runs(sources) for row in _rows(run)]
    return rows or None


def _rows(run: Run) -> list[Row]:
    title, rows = evidence.run_title(run), []
    phases = [p for p in run.phases if p.get("timeline")]
    bins = sum(len(v["max"]) for p in phases for v in list(time_line(p)[1].values())[:1])
    join = -(-bins // MAX_BINS) or 1
    for phase in phases:
        start = float(phase.get("start_seconds") or 0)
        width, operations = time_line(phase)
        for operation, series in operations.items():
            for first in range(0, len(series["max"]), join):
                slowest = max(series["max"][first : first + join])
                if sum(series["count"][first : first + join]):
                    at = start + (first + join / 2) * width
                    rows.append(_row(title, phase["name"], operation, "slowest of each moment", at, slowest))
        for slow in phase.get("slowest") or []:
            ended = start + slow["start"] + slow["seconds"]
            rows.append(_row(title, phase["name"], slow["op"], "among the slowest of all", ended, slow["seconds"]))
    return rows


def _row(run: str, phase: str, operation: str, kind: str, at: float, seconds: float) -> Row:
    return {"run": run, "phase": phase, "operation": operation, "kind": kind, "at": at, "seconds": max(seconds, 1e-9)}


def draw(rows: list[Row]) -> Drawing:
    operations = sorted({r["operation"] for r in rows}, key=evidence.operation_order)
    marks = style.cycle(operations, "point")
    panels = []
    for run in dict.fromkeys(r["run"] for r in rows):
        starts: dict[str, float] = {}
        for row in rows:
            if row["run"] == run:
                starts[row["phase"]] = min(starts.get(row["phase"], row["at"]), row["at"])
        seconds = [r["seconds"] for r in rows if r["run"] == run]
        panels.append(Panel(run, _chart(run, marks, starts, seconds), wide=True))
    return Drawing(panels, marks)


def _chart(run: str, marks: list[style.Mark], starts: dict[str, float], seconds: list[float]) -> style.Drawn:
    base = style.with_texts(style.chart(style.is_("run", run)), style.seconds_text, value="seconds", when="at")
    x = alt.X("at:Q", axis=style.axis(style.seconds_text, "time since the start of the run", grid=False, tickCount=8),
              scale=alt.Scale(nice=False, zero=True))  # fmt: skip
    y = alt.Y(
        "seconds:Q",
        axis=style.log_axis(style.seconds_text, "latency", seconds),
        scale=alt.Scale(type="log", nice=False, padding=10),
    )
    tooltip = [
        alt.Tooltip("operation:N"), alt.Tooltip("phase:N"), alt.Tooltip("kind:N", title="which"),
        alt.Tooltip("value_text:N", title="latency"), alt.Tooltip("when_text:N", title="ended at"),
    ]  # fmt: skip
    look = {
        "x": x,
        "y": y,
        "color": style.colour(marks, "operation"),
        "shape": style.shape(marks, "operation"),
        "tooltip": tooltip,
    }
    slow, usual = style.is_("kind", "among the slowest of all"), style.is_("kind", "slowest of each moment")
    began = alt.Chart(alt.InlineData([{"phase": name, "at": at} for name, at in starts.items()]))
    border = began.mark_rule(color="#999999", strokeDash=[3, 3]).encode(x=x)
    named = began.mark_text(align="left", baseline="bottom", fontSize=12, color=style.INK)
    return style.finish(
        alt.layer(
            border,
            base.transform_filter(usual).mark_point(size=22, filled=True, opacity=0.55).encode(**look),
            base.transform_filter(slow).mark_point(size=34, filled=False, opacity=0.9, strokeWidth=1.2).encode(**look),
            named.encode(x=x, y=alt.value(-4), text="phase:N"),
        ),
        f"Slowest operations over time of the run {run}",
        280,
    )


FIGURE = Figure(
    name="timeline",
    order=5,
    title="Timeline of the run",
    caption=(
        "Each small dot is the slowest operation of its kind in one moment of the run; open shapes are the slowest "
        "operations of each phase, placed where they ended. Columns of slow operations of all kinds are moments when "
        "the storage, or the machine, answered nobody; columns at equal distances are a periodic stall such as a "
        "commit. Dashed lines are starts of phases."
    ),
    needs="a run directory with a timeline",
    data=data,
    draw=draw,
)

# SPDX-License-Identifier: Apache-2.0
"""Utilisation over time: what the observed machines were busy with during a run."""

from __future__ import annotations

import altair as alt

from iocast.report import evidence
from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.sources import Run, Sources
from iocast.watching.utilisation import read_utilisation

MAX_LINES = 8  # of a run: the busiest resources


def data(sources: Sources) -> list[Row] | None:
    observed = [run for run in sources.given_runs if _observed(run)][:4] or [
        run for run in evidence.focus_runs(sources) if _observed(run)
    ]
    # With campaigns the focus may lie on a run that was not observed.
    observed = observed or [run for run in sorted(sources.runs, key=lambda r: -r.ranks) if _observed(run)][:1]
    rows = [row for run in observed for row in _rows(run)]
    return rows or None


def _observed(run: Run) -> bool:
    return read_utilisation(run.path) is not None


def _rows(run: Run) -> list[Row]:
    content = read_utilisation(run.path)
    series = {name: s for name, s in content["timeline"].items() if s["utilisation"]} if content else {}
    busiest = sorted(series, key=lambda name: -sum(series[name]["utilisation"]) / len(series[name]["utilisation"]))[
        :MAX_LINES
    ]
    title = evidence.run_title(run)
    rows: list[Row] = []
    for name in busiest:
        rows += [
            {"run": title, "resource": name, "kind": "used", "at": at, "share": min(used, 1.0)}
            for at, used in zip(series[name]["seconds"], series[name]["utilisation"], strict=True)
        ]
    rows += [
        {"run": title, "resource": p["name"], "kind": "phase", "at": float(p.get("start_seconds") or 0), "share": None}
        for p in run.phases
    ]
    return rows


def draw(rows: list[Row]) -> Drawing:
    resources = list(dict.fromkeys(r["resource"] for r in rows if r["kind"] == "used"))
    marks = style.cycle(resources, "line")
    return Drawing(
        [Panel(run, _chart(run, rows, marks), wide=True) for run in dict.fromkeys(r["run"] for r in rows)], marks
    )


def _chart(run: str, rows: list[Row], marks: list[style.Mark]) -> style.Drawn:
    base = style.with_texts(style.chart(style.is_("run", run)), style.seconds_text, when="at")
    used = base.transform_filter(style.is_("kind", "used"))
    end = max(r["at"] for r in rows if r["run"] == run)
    x = alt.X("at:Q", axis=style.axis(style.seconds_text, "time since the start of the run", grid=False, tickCount=8),
              scale=alt.Scale(nice=False, zero=True, domainMin=0, domainMax=end))  # fmt: skip
    y = alt.Y("share:Q", axis=alt.Axis(title="used", format=".0%", tickCount=5), scale=alt.Scale(domain=[0, 1]))
    tooltip = [
        alt.Tooltip("resource:N"),
        alt.Tooltip("share:Q", format=".0%", title="used"),
        alt.Tooltip("when_text:N", title="at"),
    ]
    starts: dict[str, float] = {}
    for row in rows:
        if row["run"] == run and row["kind"] == "phase":
            starts.setdefault(row["resource"], row["at"])
    began = alt.Chart(alt.InlineData([{"phase": name, "at": at} for name, at in starts.items()]))
    return style.finish(
        alt.layer(
            began.mark_rule(color="#999999", strokeDash=[3, 3]).encode(x=x),
            used.mark_line(size=1.6, clip=True).encode(
                x=x,
                y=y,
                color=style.colour(marks, "resource"),
                strokeDash=style.dash(marks, "resource"),
                tooltip=tooltip,
            ),
            began.mark_text(align="left", baseline="bottom", fontSize=12, color=style.INK).encode(
                x=x, y=alt.value(-4), text="phase:N"
            ),
        ),
        f"Utilisation over time of the run {run}",
        240,
    )


FIGURE = Figure(
    name="utilisation",
    order=6,
    title="Utilisation over time",
    caption=(
        "How much of each observed resource was in use between two samples: processor time of each machine and of the "
        "processes that were observed for, block devices, network links. What is near 100 % while the benchmark runs "
        "is what limits it; when nothing is, operations wait for something that was not observed, or for each other. "
        "The table below says how much of each resource an operation takes, and what rate that allows at most."
    ),
    needs="a run directory that an observation was joined to (iocast observe)",
    data=data,
    draw=draw,
)

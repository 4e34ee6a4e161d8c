# SPDX-License-Identifier: Apache-2.0
"""Latency percentile curves by operation on the axis of HdrHistogram, where each further nine has the same width."""

from __future__ import annotations

import math

import altair as alt

from iocast.records.forecast import ForecastDocument
from iocast.report import evidence
from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.sources import Distribution, Run, Sources

PER_DECADE = 12  # points of a curve for each further nine
FEWEST = 20  # operations, for a curve to mean something
FIRST = 0.25  # percentile where the curves begin: the interest is in the tail


def data(sources: Sources) -> list[Row] | None:
    rows: list[Row] = []
    for name, runs in _chosen(sources).items():
        kind = "simulated" if runs[0].simulated else "measured"
        for (phase, operation), distribution in _merged(runs).items():
            probabilities = _probabilities(distribution.total)
            rows += [
                {
                    "phase": phase,
                    "operation": operation,
                    "series": name,
                    "kind": kind,
                    "probability": p,
                    "odds": 1 / (1 - p),
                    "seconds": max(seconds, 1e-9),
                }
                for p, seconds in zip(probabilities, distribution.quantiles(probabilities), strict=True)
            ]
    for forecast in _forecasts(sources):
        name = "forecast, " + _ranks(evidence.ranks_of(forecast["placement"]))
        if system := evidence.series_of(sources, forecast):
            name += f", {system}"
        for operation, law in (forecast.get("distributions") or {}).items():
            rows += [
                {
                    "phase": evidence.phase_of(forecast),
                    "operation": operation,
                    "series": name,
                    "kind": "forecast",
                    "probability": p,
                    "odds": 1 / (1 - p),
                    "seconds": s,
                }
                for p, s in zip(law["probability"], law["seconds"], strict=False)
                if FIRST <= p < 1 and s is not None and s > 0
            ]
    order = sources.phases
    rows.sort(
        key=lambda r: (
            order.index(r["phase"]),
            evidence.operation_order(r["operation"]),
            r["kind"] == "forecast",
            r["series"],
            r["probability"],
        )
    )
    return rows or None


def _ranks(ranks: int) -> str:
    return f"{ranks:,} rank" + ("" if ranks == 1 else "s")


def _chosen(sources: Sources) -> dict[str, list[Run]]:
    """Runs by curve: those named themselves one by one; else all repeats of the run in focus as one curve."""
    focus = evidence.focus_runs(sources)
    if sources.given_runs:
        return {evidence.run_title(r): [r] for r in focus}
    return {
        ("simulated, " if f.simulated else "measured, ") + _ranks(f.ranks): [
            r
            for r in sources.runs
            if (r.placement, r.waiting_factor, r.simulated, r.workload)
            == (f.placement, f.waiting_factor, f.simulated, f.workload)
        ]
        for f in focus
    }


def _forecasts(sources: Sources) -> list[ForecastDocument]:
    focus = {(r.ranks, r.waiting_factor) for r in evidence.focus_runs(sources)}
    known = evidence.as_they_are(sources)
    same = [f for f in known if (evidence.ranks_of(f["placement"]), evidence.waiting_factor(f)) in focus]
    return same or ([] if focus else known[-3:])


def _merged(runs: list[Run]) -> dict[tuple[str, str], Distribution]:
    """One distribution for each phase that the report is about and operation, over all runs."""
    merged: dict[tuple[str, str], Distribution] = {}
    for run in runs:
        for (phase, operation), distribution in run.distributions.items():
            if phase in run.about:
                merged.setdefault((phase, operation), Distribution()).counts.update(distribution.counts)
    return {place: d for place, d in merged.items() if d.total >= FEWEST}


def _probabilities(total: int) -> list[float]:
    """Evenly spaced on the axis, up to the slowest of `total` operations."""
    steps = math.floor(PER_DECADE * math.log10(total))
    grid = {FIRST, 0.5, *(1 - 10 ** (-i / PER_DECADE) for i in range(2, steps + 1)), 1 - 0.5 / total}
    return sorted(p for p in grid if p >= FIRST)


def draw(rows: list[Row]) -> Drawing:
    series = list(dict.fromkeys(r["series"] for r in rows))
    kinds = {r["series"]: r["kind"] for r in rows}
    looks = iter(style.cycle([s for s in series if kinds[s] != "forecast"], "line"))
    marks = []
    for name in series:
        if kinds[name] == "forecast":
            marks.append(style.Mark(name, style.BLUE, "circle", (6, 3), "line"))
        else:
            mark = next(looks)
            colour = style.BLACK if mark.colour == style.BLUE else mark.colour
            marks.append(style.Mark(name, colour, mark.shape, mark.dash, "line"))
    panels = []
    for phase, operation in dict.fromkeys((r["phase"], r["operation"]) for r in rows):
        seconds = [r["seconds"] for r in rows if (r["phase"], r["operation"]) == (phase, operation)]
        panels.append(Panel(f"{operation} in {phase}", _chart(phase, operation, seconds, marks)))
    return Drawing(panels, marks)


def _chart(phase: str, operation: str, seconds: list[float], marks: list[style.Mark]) -> style.Drawn:
    where = f"{style.is_('phase', phase)} && {style.is_('operation', operation)}"
    base = style.with_texts(style.chart(where), style.seconds_text, value="seconds")
    base = base.transform_calculate(percentile="format(100 * datum.probability, '.6~r') + ' %'")
    nines = "format(100 - 100 / datum.value, '.6~r') + ' %'"
    x = alt.X(
        "odds:Q",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(title="percentile", values=[2, 10, 100, 1000, 10000, 100000, 1000000], labelExpr=nines),
    )
    log = alt.Scale(type="log", nice=False, padding=8)
    y = alt.Y("seconds:Q", scale=log, axis=style.log_axis(style.seconds_text, "latency", seconds))
    tooltip = [
        alt.Tooltip("series:N", title="who"),
        alt.Tooltip("percentile:N"),
        alt.Tooltip("value_text:N", title="latency"),
    ]
    look = {"x": x, "y": y, "color": style.colour(marks), "tooltip": tooltip}
    line = base.mark_line(size=2).encode(strokeDash=style.dash(marks), **look)
    return style.finish(
        alt.layer(line, base.mark_point(size=60, opacity=0, filled=True).encode(**look)),
        f"Latency of {operation} in {phase} by percentile",
        240,
    )


FIGURE = Figure(
    name="percentiles",
    order=3,
    title="The whole latency distribution, by operation",
    caption=(
        "Go right to worse luck: at 99 % one operation in a hundred is slower than the line, at 99.9 % one in a "
        "thousand. A flat line is a steady system; a step shows that a few operations meet something else, such as a "
        "stall or a lock. Where the dashed forecast follows the solid measurement, the forecast knows the tail and not "
        "only the average."
    ),
    needs="a run directory with latency.hlog, or a forecast with distributions",
    data=data,
    draw=draw,
)

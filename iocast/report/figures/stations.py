# SPDX-License-Identifier: Apache-2.0
"""Where the time goes: wait, service, locks, stalls and failures at each station of the model."""

from __future__ import annotations

import altair as alt

from iocast.report import evidence
from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.sources import Run, Sources
from iocast.records.simulated import PhaseOfRun

PARTS = [
    style.Mark("service", style.PALE, kind="bar"),
    style.Mark("waiting for a server", style.BLUE, kind="bar"),
    style.Mark("waiting for a lock", style.ORANGE, kind="bar"),
    style.Mark("stalled", style.BLACK, kind="bar"),
    style.Mark("lost in failures", style.PURPLE, kind="bar"),
]
KEYS = {
    "service": "service",
    "waiting for a server": "wait",
    "waiting for a lock": "lock_wait",
    "stalled": "stall",
    "lost in failures": "lost",
}
MOST = 8  # panels


def data(sources: Sources) -> list[Row] | None:
    rows: list[Row] = _of_study(sources)
    common = evidence.largest_common(evidence.what_if(sources))
    chosen = [
        (label, forecasts)
        for phase in evidence.forecast_phases(sources)
        for label, forecasts in evidence.what_if(sources, phase).items()
    ]
    for label, forecasts in chosen:
        wanted = [f for f in forecasts if f.get("stations") and evidence.ranks_of(f["placement"]) == common]
        known = wanted or [f for f in forecasts if f.get("stations")]
        if known:
            forecast = known[-1]
            panel = f"{evidence.phase_of(forecast)}, {label}, {evidence.ranks_of(forecast['placement']):,} ranks"
            panel += _pausing(evidence.in_operations(forecast))
            for station, at in forecast["stations"].items():
                rows += [_row(panel, station, part, at.get(key)) for part, key in KEYS.items()]
    if not rows:
        runs = [r for r in evidence.focus_runs(sources) if r.simulated]
        rows = [
            row for run in runs for phase in run.about for row in _of_run(run, phase, _where(run, phase, len(runs) > 1))
        ]
    return [r for r in rows if r["seconds"]] or None


def _where(run: Run, phase: str, several: bool) -> str:
    return (
        f" in {phase}"
        + (f", {run.name}" if several else "")
        + _pausing(evidence.in_operations_of_run(run, run.repeats(phase)))
    )


def _pausing(share: str) -> str:
    """What a reader must know before a bar counts: that ranks are hardly ever there."""
    return share and f": in an operation {share} of the time"


def _of_study(sources: Sources) -> list[Row]:
    """Of a study's first few designs, each workload at its largest scale."""
    study = sources.study
    if study is None:
        return []
    parts = {key: part for part, key in KEYS.items()}
    several = len(study["workloads"]) > 1
    shown = study["shown"][: max(1, MOST // 2 // len(study["workloads"]))]
    return [
        _row(r["name"] + (f", {r['workload']}" if several else ""), r["station"], parts[r["part"]], r["seconds"])
        for design in shown
        for r in study["stations"]
        if r["design"] == design and r["seconds"]
    ]


def _of_run(run: Run, name: str, suffix: str) -> list[Row]:
    """Seconds an operation, by operation and station, of a phase of a simulated run."""
    phase = run.phase(name) or PhaseOfRun()
    rows: list[Row] = []
    latency = phase.get("latency") or {}
    for operation in sorted(latency, key=evidence.operation_order):
        for station, at in (phase.get("stations") or {}).items():
            sums = at["operations"].get(operation)
            if sums and latency[operation].get("count"):
                visits = sums["visits"] / latency[operation]["count"]
                rows += [
                    _row(operation + suffix, station, part, visits * sums.get(key, 0)) for part, key in KEYS.items()
                ]
    return rows


def _row(panel: str, station: str, part: str, seconds: float | None) -> Row:
    return {"panel": panel, "station": station, "part": part, "seconds": seconds or 0}


def draw(rows: list[Row]) -> Drawing:
    panels = list(dict.fromkeys(r["panel"] for r in rows))[:MOST]
    totals: dict[tuple[str, str], float] = {}
    for row in rows:
        totals[row["panel"], row["station"]] = totals.get((row["panel"], row["station"]), 0) + row["seconds"]
    longest = max(totals.values())
    present = {r["part"] for r in rows}
    shown = [p for p in PARTS if p.label in present]
    made = []
    for panel in panels:
        stations = list(dict.fromkeys(r["station"] for r in rows if r["panel"] == panel))
        made.append(Panel(panel, _chart(panel, shown, stations, longest)))
    return Drawing(made, shown)


def _chart(panel: str, shown: list[style.Mark], stations: list[str], longest: float) -> style.Drawn:
    order = "indexof([" + ", ".join(f'"{p.label}"' for p in shown) + "], datum.part)"
    base = style.with_texts(style.chart(style.is_("panel", panel)), style.seconds_text, value="seconds")
    axis = style.axis(style.seconds_text, "time an operation", tickCount=4)
    bars = (
        base.transform_calculate(order=order)
        .mark_bar(stroke="white", strokeWidth=1)
        .encode(
            x=alt.X("seconds:Q", stack=True, scale=alt.Scale(domain=[0, longest], nice=True), axis=axis),
            y=alt.Y("station:N", scale=alt.Scale(domain=stations),
                    axis=alt.Axis(title=None, ticks=False, domain=False, labelLimit=170)),
            color=style.colour(shown, "part"),
            order=alt.Order("order:Q"),
            tooltip=[alt.Tooltip("station:N"), alt.Tooltip("part:N"), alt.Tooltip("value_text:N", title="time")],
        )
    )  # fmt: skip
    return style.finish(bars, f"Time at each station, {panel}", style.lines(len(stations), 34))


FIGURE = Figure(
    name="stations",
    order=9,
    title="Where the time goes",
    caption=(
        "What an operation spends at each station of the model. Long pale bars are work: only faster parts help. Long "
        "dark blue bars are queues: more servers at that station help. Orange is time behind a lock, black is time in "
        "a stall and red is time until a failed server's requests were sent again; none of them gets better with more "
        "servers. All panels have the same scale."
    ),
    needs="a forecast with stations, a simulated run, or a study",
    data=data,
    draw=draw,
)

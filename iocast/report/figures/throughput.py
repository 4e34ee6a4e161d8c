# SPDX-License-Identifier: Apache-2.0
"""Throughput against the number of ranks: measured points, the forecast with its interval, simple rules and bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import altair as alt

from iocast.runs.phases import rate_of, unit_entry
from iocast.report import evidence
from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.sources import Sources, phases_of_platform
from iocast.records.fitted import FittedPlatform


FORECASTS = ("forecast", style.HELD_OUT.label)


def data(sources: Sources) -> list[Row] | None:
    rows: list[Row] = []
    subjects = sources.workloads
    for run in sources.runs:
        series = "simulated" if run.simulated else "measured"
        for name in run.about:
            shown = name if run.workload in subjects else f"{name} of {run.workload}"
            for phase in run.repeats(name):
                if rate := rate_of(phase):
                    rows.append(
                        _row(
                            shown,
                            run.waiting_factor,
                            series,
                            run.ranks,
                            {"value": rate} | unit_entry(phase.get("rate_unit")),
                            run.point or run.name,
                            run.nodes,
                        )
                    )
    for comparison in evidence.comparisons(sources):
        answer = comparison.row("rate")
        if answer is None:
            continue
        shown, factor, ranks = comparison.phase, comparison.waiting_factor, comparison.ranks
        ends = {"value": answer["measured"], "low": answer.get("measured_low"), "high": answer.get("measured_high")}
        seen = _row(
            shown, factor, "measured", ranks, {**ends, **unit_entry(answer.get("unit"))}, nodes=comparison.nodes
        )
        if not _is_among(rows, seen):
            rows.append(seen)
        held_out = comparison.origin == evidence.HELD_OUT
        entries: dict[str, Mapping[str, Any]] = {
            style.HELD_OUT.label if held_out else "forecast": {
                "value": answer["forecast"], "low": answer.get("low"), "high": answer.get("high"),
            },
            **(answer.get("baselines") or {}),
        }  # fmt: skip
        rows += [
            _row(shown, factor, name, ranks, entry, nodes=comparison.nodes) | {"held_out": held_out}
            for name, entry in entries.items()
        ]
    before = list(rows)
    for forecast in evidence.as_they_are(sources):
        ranks, factor = evidence.ranks_of(forecast["placement"]), evidence.waiting_factor(forecast)
        shown = evidence.phase_of(forecast)
        if "rate" not in forecast["quantities"]:
            continue
        system = evidence.series_of(sources, forecast)
        baselines = forecast.get("baselines") or {}
        entries = {"forecast": forecast["quantities"]["rate"]}
        for name, values in baselines.items():
            if "rate" in values:
                of_rule = values["rate"]
                entries[name] = of_rule if isinstance(of_rule, dict) else {"value": of_rule}
        for name, entry in entries.items():
            row = _row(shown, factor, name, ranks, entry, nodes=forecast["placement"].get("nodes"))
            if not any(_is_among(before, row | {"system": of}) for of in (system, "")):
                rows.append(row | {"system": system})
    fitted = [
        row
        for platform in sources.fitted
        for row in _model_at_fitted(platform, {str(r["system"]) for r in rows})
        if not _is_among(rows, row)
    ]
    drawn = {_place(row)[:3] for row in rows}
    rows += [row for row in fitted if _place(row)[:3] in drawn]
    _part_lines(rows)
    order = sources.phases
    rows.sort(
        key=lambda r: (
            order.index(r["phase"]) if r["phase"] in order else len(order),
            r["waiting_factor"],
            r["series"],
            r["system"],
            r["ranks"],
        )
    )
    return rows if len(rows) > 1 else None


def _part_lines(rows: list[Row]) -> None:
    """Sets what tells lines of one series apart: nothing where all placements are on as many nodes, or have as many
    ranks on each. Else each placement is on the line with more of them, of equal ranks a node or of equal nodes."""
    for where in {(row["phase"], row["waiting_factor"]) for row in rows}:
        own = [row for row in rows if (row["phase"], row["waiting_factor"]) == where and row["nodes"]]
        places = {(row["nodes"], row["ranks"] / row["nodes"]) for row in own}
        if min(len({nodes for nodes, _ in places}), len({each for _, each in places})) < 2:
            continue
        of_nodes, of_each = Counter(nodes for nodes, _ in places), Counter(each for _, each in places)
        for row in own:
            each = row["ranks"] / row["nodes"]
            row["line"] = f"{each:g} a node" if of_each[each] >= of_nodes[row["nodes"]] else f"on {row['nodes']}"


def _model_at_fitted(platform: FittedPlatform, systems: set[str]) -> list[Row]:
    """The model's rate at the placements that it was fitted to: its line begins at the smallest. systems: platforms
    that name series."""
    system = str(platform.get("name")) if platform.get("name") in systems else ""
    fitted = platform["fitted"]
    points = {point["name"]: point for point in (fitted.get("campaign") or {}).get("points") or []}
    rows = []
    for row in fitted.get("fit") or []:
        point = points.get(str(row.get("point")))
        if point is None or row.get("quantity") != "rate":
            continue
        answer = {"value": row["forecast"]} | unit_entry(row.get("unit"))
        phase = str(row.get("phase") or phases_of_platform(platform)[0])
        place = (phase, float(point.get("waiting_factor") or 0), "forecast", int(point["ranks"]))
        rows.append(_row(*place, answer, nodes=point.get("nodes")) | {"fitted": True, "system": system})
    return rows


def _row(
    phase: str,
    factor: float,
    series: str,
    ranks: int,
    answer: Mapping[str, Any],
    run: str = "",
    nodes: int | None = None,
) -> Row:
    return {
        "phase": phase,
        "waiting_factor": factor,
        "series": series,
        "ranks": ranks,
        "nodes": nodes,
        "line": "",  # of a series, where placements are on several (_part_lines)
        **evidence.drawable(answer),
        "wide": series in FORECASTS and evidence.is_wide(answer),
        **unit_entry(answer.get("unit")),
        "run": run,
        "fitted": False,
        "system": "",  # of a forecast, where there are several
        "held_out": False,  # by a fit without this scale: no point of the line that the final fit draws
    }


def _place(row: Row) -> tuple[Any, ...]:
    return row["phase"], row["waiting_factor"], row["series"], row["ranks"], row["held_out"], row["system"]


def _is_among(rows: list[Row], row: Row) -> bool:
    """Whether its series has the placement already; without a number of nodes the ranks decide."""
    return any(
        _place(one) == _place(row) and (None in (one["nodes"], row["nodes"]) or one["nodes"] == row["nodes"])
        for one in rows
    )


def draw(rows: list[Row]) -> Drawing:
    names = {r["series"] for r in rows} - {"measured", "simulated", *FORECASTS}
    baselines = [style.baseline(name) for name in sorted(names, key=evidence.baseline_order)]
    simulated = style.Mark("simulated", style.PURPLE, "cross", kind="point")
    present = {r["series"] for r in rows}
    systems = list(dict.fromkeys(r["system"] for r in rows if r["series"] == style.FORECAST.label))
    forecasts = style.cycle(_who(style.FORECAST.label, system) for system in systems)
    if len(forecasts) == 1:
        forecasts = [replace(style.FORECAST, label=forecasts[0].label)]
    shown = [m for m in (style.MEASURED, simulated) if m.label in present]
    shown += forecasts + [m for m in [style.HELD_OUT] if m.label in present]
    places = list(dict.fromkeys((r["phase"], r["waiting_factor"]) for r in rows))
    waits = any(factor for _, factor in places)
    panels = []
    for phase, factor in places:
        title = f"{phase}, waiting factor {factor:g}" if waits else phase
        here = [r for r in rows if (r["phase"], r["waiting_factor"]) == (phase, factor)]
        panels.append(Panel(title, _chart(phase, factor, here, shown, baselines), wide=len(places) == 1))
    has_interval = any(r["series"] in FORECASTS and r["low"] is not None for r in rows)
    legend = shown + [style.INTERVAL] * has_interval + baselines
    explained = caption(
        measured="measured" in present,
        forecasts=style.FORECAST.label in present,
        held_out=style.HELD_OUT.label in present,
        wide=any(r["wide"] for r in rows),
        rules=bool(baselines),
    )
    return Drawing(panels, legend, explained)


def caption(*, measured: bool, forecasts: bool, held_out: bool, wide: bool, rules: bool) -> str:
    """How to read the figure, of the parts that are drawn."""
    parts = []
    if measured:
        parts.append(
            "Each black diamond is one measurement; diamonds above each other are repeats, and their spread is the "
            "noise that no forecast can beat."
        )
    if forecasts:
        parts.append(
            "The blue line is the model, from the smallest scale that it was fitted to; its dots are forecasts with "
            "their intervals."
        )
    if held_out:
        parts.append(
            "A blue ring is a held-out forecast: of a fit without this scale, so it stands beside the line of the "
            "final fit."
        )
    if held_out and rules:
        parts.append("The rules' marks at that scale are from the same smaller data and join no line.")
    if wide:
        parts.append("An interval that spans more than a factor 30 stands without a value.")
    if rules:
        parts.append("Thin lines are simple rules: where they leave the diamonds, queueing matters.")
    parts.append(
        "Both axes are logarithmic, so a system that scales perfectly climbs at 45 degrees and a full one is flat."
    )
    return " ".join(parts)


def _who(series: str, system: str) -> str:
    return f"{series}, {system}" if system else series


def _chart(
    phase: str, factor: float, rows: list[Row], shown: list[style.Mark], baselines: list[style.Mark]
) -> style.Drawn:
    marks = shown + baselines
    where = f"{style.is_('phase', phase)} && {style.is_('waiting_factor', factor)}"
    text, title = style.rate_axis(rows)
    base = style.with_texts(style.chart(where), text, value="value", low="low", high="high")
    # Of several systems each has its own line, and its forecasts their own look; rules look alike.
    base = base.transform_calculate(
        who=f"({style.is_('series', style.FORECAST.label)}) && datum.system ? datum.series + ', ' + datum.system : "
        "datum.series"
    ).encode(detail=["system:N", "line:N"])
    several = sum(mark.label.startswith(style.FORECAST.label) for mark in shown) > 1
    log = alt.Scale(type="log", nice=False, padding=10)
    heights = [r[k] for r in rows for k in ("value", "low", "high")]
    log_y = style.log_scale(heights)
    x = alt.X("ranks:Q", scale=log, axis=style.rank_axis(r["ranks"] for r in rows))
    axis = style.log_axis(text, title, heights)
    y = alt.Y("value:Q", scale=log_y, axis=axis)
    tooltip = [
        alt.Tooltip("who:N", title="who"),
        alt.Tooltip("run:N", title="run"),
        alt.Tooltip("ranks:Q", format=","),
        alt.Tooltip("value_text:N", title="rate"),
        alt.Tooltip("low_text:N", title="from"),
        alt.Tooltip("high_text:N", title="to"),
    ]
    look = {"color": style.colour(marks, "who"), "tooltip": tooltip}
    own = {"color": look["color"]} if several else {}
    forecast, held_out = (style.is_("series", name) for name in FORECASTS)
    points = f"{style.is_('series', 'measured')} || {style.is_('series', 'simulated')}"
    known = base.transform_filter("isValid(datum.value) && !datum.wide")
    others = f"!({forecast}) && !({held_out}) && !({points})"
    lines = f"{others} && !datum.held_out"
    ends = {"y": alt.Y("low:Q", scale=log_y, axis=axis), "y2": alt.Y2("high:Q")}
    has_ends = "isValid(datum.low) && isValid(datum.high)"
    return style.finish(
        alt.layer(
            base.transform_filter(f"{forecast} && {has_ends}")
            .mark_area(color=style.SKY, opacity=0.2 if several else 0.4)
            .encode(x=x, **ends, **own),
            base.transform_filter(f"({forecast} || {held_out}) && {has_ends}")
            .mark_rule(color=style.SKY, size=6, opacity=0.6)
            .encode(x=x, tooltip=tooltip, **ends, **own),
            *(
                base.transform_filter(f"({lines}) && {has_ends}")
                .mark_line(size=1.2, point=alt.OverlayMarkDef(size=15))
                .encode(x=x, y=alt.Y(f"{end}:Q", scale=log_y, axis=axis), strokeDash=style.dash(marks, "who"), **look)
                for end in ("low", "high")
            ),
            known.transform_filter(lines)
            .mark_line(size=1.2)
            .encode(x=x, y=y, strokeDash=style.dash(marks, "who"), **look),
            known.transform_filter(others)
            .mark_point(size=40, strokeWidth=1.4)
            .encode(x=x, y=y, shape=style.shape(marks, "who"), **look),
            known.transform_filter(forecast).mark_line(size=2, color=style.BLUE).encode(x=x, y=y, **own),
            known.transform_filter(f"{forecast} && !datum.fitted")
            .mark_point(size=60, filled=True, opacity=1)
            .encode(x=x, y=y, **({"shape": style.shape(marks, "who")} if several else {}), **look),
            known.transform_filter(held_out).mark_point(size=60, strokeWidth=1.6, opacity=1).encode(x=x, y=y, **look),
            base.transform_filter(points)
            .mark_point(size=65, filled=True, opacity=0.85)
            .encode(x=x, y=y, shape=style.shape(marks, "who"), **look),
        ),
        f"Throughput of {phase} against the number of ranks" + (f" at waiting factor {factor:g}" if factor else ""),
        300,
    )


FIGURE = Figure(
    name="throughput",
    order=2,
    title="Throughput against the number of ranks",
    caption=caption(measured=True, forecasts=True, held_out=True, wide=True, rules=True),
    needs="at least two runs, a campaign, a validation or forecasts",
    data=data,
    draw=draw,
    leads=True,
)

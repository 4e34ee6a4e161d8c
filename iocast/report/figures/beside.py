# SPDX-License-Identifier: Apache-2.0
"""The centrepiece: forecasts beside later measurements, and the forecasts of simple rules."""

from __future__ import annotations

from typing import Any

import altair as alt

from iocast.runs.phases import unit_entry
from iocast.report import evidence
from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.sources import Sources

TRUTH = "truth"
"""Series of a server that was drawn."""
LARGEST = 3  # number of comparisons drawn: those of most ranks, or one of each phase


def data(sources: Sources) -> list[Row] | None:
    rows: list[Row] = []
    compared = evidence.checks(sources) or evidence.comparisons(sources)
    for comparison in compared[: max(LARGEST, len({c.phase for c in compared}))]:
        for row in comparison.rows:
            operation, what = evidence.split_quantity(row["quantity"])
            same = {"point": comparison.title, "operation": operation, "what": what}
            same |= unit_entry(row.get("unit"))
            measured = {"value": row["measured"], "low": row.get("measured_low"), "high": row.get("measured_high")}
            rows.append({**same, "series": "measured", **evidence.drawable(measured), "error": None})
            forecast = {"value": row["forecast"], "low": row.get("low"), "high": row.get("high")}
            drawn = {**evidence.drawable(forecast), "error": row.get("error"), "wide": evidence.is_wide(forecast)}
            rows.append({**same, "series": "forecast", **drawn})
            if row.get("truth") is not None:  # of a server that was drawn
                truth = {"value": row["truth"], "low": None, "high": None, "error": None}
                rows.append({**same, "series": TRUTH, **truth})
            baselines = row.get("baselines") or {}
            for name in sorted(baselines, key=evidence.baseline_order):
                printed = evidence.drawable(baselines[name])
                if any(v is not None for v in printed.values()):
                    rows.append({**same, "series": name, **printed, "error": baselines[name].get("error")})
    return rows or None


def draw(rows: list[Row]) -> Drawing:
    names = list(dict.fromkeys(r["series"] for r in rows if r["series"] not in ("measured", "forecast")))
    baselines = [style.baseline(name) for name in sorted(names, key=evidence.baseline_order)]
    panels = []
    for point in dict.fromkeys(r["point"] for r in rows):
        here = [r for r in rows if r["point"] == point]
        for operation in dict.fromkeys(r["operation"] for r in here):
            chosen = [r for r in here if r["operation"] == operation]
            if operation:
                chart = _latency(point, operation, chosen, baselines)
                panels.append(Panel(f"{operation}, {point}", chart))
            else:
                panels.append(Panel(f"Throughput, {point}", _rate(point, chosen, baselines), wide=True))
    has_interval = any(r["series"] == "forecast" and r["low"] is not None for r in rows)
    legend = (
        [style.MEASURED, style.FORECAST]
        + [style.INTERVAL] * has_interval
        + [style.Mark(m.label, m.colour, m.shape, kind="point") for m in baselines]
    )
    shown = caption(
        interval=has_interval,
        repeats=any(r["series"] == "measured" and r["low"] is not None and r["low"] != r["high"] for r in rows),
        rules=any(mark.label != TRUTH for mark in baselines),
        latencies=any(r["operation"] for r in rows),
    )
    return Drawing(panels, legend, shown)


def caption(*, interval: bool, repeats: bool, rules: bool, latencies: bool) -> str:
    """How to read the figure, of the parts that are drawn."""
    parts = [
        "The forecast (blue dot) was made without the measurement at this scale (black diamond). Read each line from "
        "the diamond: the nearer the dot, the better the forecast."
    ]
    if interval:
        parts.append("A diamond inside the pale bar means that the forecast knew its own uncertainty.")
    if repeats:
        parts.append("The thin black line is the range over repeated measurements.")
    if rules:
        parts.append("Open shapes show the forecasts of simple rules, where these are above zero.")
    if latencies:
        parts.append("q50 is the median; one operation in a hundred takes longer than q99; max is the single slowest.")
    return " ".join(parts)


def _parts(where: str, y: alt.Y, x: alt.Scale, axis: alt.Axis, text: style.Text, marks: list[style.Mark]) -> Any:
    """Band and dot of the forecast, range and diamond of the measurement, one open shape for each baseline."""
    everything = [style.MEASURED, style.FORECAST, *marks]
    base = style.with_texts(style.chart(where), text, value="value", low="low", high="high")
    base = base.transform_calculate(error_text="isValid(datum.error) ? format(datum.error, '+.1%') : 'no data'")
    tooltip = [
        alt.Tooltip("series:N", title="who"),
        alt.Tooltip("what:N", title="quantity"),
        alt.Tooltip("value_text:N", title="value"),
        alt.Tooltip("low_text:N", title="from"),
        alt.Tooltip("high_text:N", title="to"),
        alt.Tooltip("error_text:N", title="error"),
    ]
    at = alt.X("value:Q", scale=x, axis=axis)
    ends = {"x": alt.X("low:Q", scale=x, axis=axis), "x2": alt.X2("high:Q"), "y": y, "tooltip": tooltip}
    has_ends = "isValid(datum.low) && isValid(datum.high)"
    forecast, measured = style.is_("series", "forecast"), style.is_("series", "measured")
    known = base.transform_filter("isValid(datum.value)")
    others = f"!({forecast}) && !({measured})"
    return alt.layer(
        base.transform_filter(f"{forecast} && {has_ends}")
        .mark_bar(color=style.SKY, opacity=0.6, height=13)
        .encode(**ends),
        base.transform_filter(f"{others} && {has_ends}")
        .mark_rule(color=style.GREY, size=2, strokeDash=[3, 2])
        .encode(**ends),
        known.transform_filter(others)
        .mark_point(size=65, strokeWidth=1.8, filled=False)
        .encode(x=at, y=y, color=style.colour(everything), shape=style.shape(everything), tooltip=tooltip),
        base.transform_filter(f"{measured} && {has_ends}").mark_rule(color=style.BLACK, size=1.5).encode(**ends),
        known.transform_filter(f"{forecast} && !datum.wide")
        .mark_point(color=style.BLUE, filled=True, size=70, opacity=1)
        .encode(x=at, y=y, tooltip=tooltip),
        known.transform_filter(measured)
        .mark_point(color=style.BLACK, shape="diamond", filled=True, size=75, opacity=1)
        .encode(x=at, y=y, tooltip=tooltip),
    )


def _rate(point: str, rows: list[Row], marks: list[style.Mark]) -> style.Drawn:
    values = [v for r in rows for v in (r["value"], r["low"], r["high"]) if v]
    log = max(values) > 30 * min(values)
    x = alt.Scale(type="log", nice=False, padding=12) if log else alt.Scale(zero=True, nice=True)
    order = ["measured", "forecast", *(m.label for m in marks)]
    labels = alt.Axis(title=None, ticks=False, domain=False, grid=False, labelLimit=160)
    y = alt.Y("series:N", sort=order, axis=labels)
    text, title = style.rate_axis(rows)
    axis = style.log_axis(text, title, values) if log else style.axis(text, title)
    where = f"{style.is_('point', point)} && {style.is_('what', 'rate')}"
    line = (
        style.chart(f"{where} && {style.is_('series', 'measured')}")
        .mark_rule(color=style.BLACK, strokeDash=[2, 3], size=1)
        .encode(x=alt.X("value:Q", scale=x, axis=axis))
    )
    parts = _parts(where, y, x, axis, text, marks)
    description = f"Throughput measured, forecast and by simple rules, {point}"
    return style.finish(alt.layer(line, parts), description, style.lines(len({r["series"] for r in rows}), 30))


def _latency(point: str, operation: str, rows: list[Row], marks: list[style.Mark]) -> style.Drawn:
    order = [q for q in evidence.QUANTILES if any(r["what"] == q for r in rows)]
    x = alt.Scale(type="log", nice=False, padding=12)
    axis = style.log_axis(
        style.seconds_text, "latency (logarithmic)", [r[k] for r in rows for k in ("value", "low", "high")]
    )
    where = f"{style.is_('point', point)} && {style.is_('operation', operation)}"
    lanes = alt.Y(
        "what:N", sort=order, axis=alt.Axis(title=None, ticks=False, domain=False, grid=True, bandPosition=0.5)
    )
    parts = _parts(where, lanes, x, axis, style.seconds_text, marks)
    description = f"Latency quantiles of {operation} measured, forecast and by simple rules, {point}"
    return style.finish(parts, description, style.lines(len(order), 36))


FIGURE = Figure(
    name="beside",
    order=1,
    title="Forecast beside measurement",
    caption=caption(interval=True, repeats=True, rules=True, latencies=True),
    needs="a validation, a fitted platform with a held-out scale, or a forecast and a run of the same placement",
    data=data,
    draw=draw,
)

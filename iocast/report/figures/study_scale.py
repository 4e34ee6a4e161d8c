# SPDX-License-Identifier: Apache-2.0
"""How designs bear growth: what the levels ask about against the number of clients, with bands, and the levels
themselves."""

from __future__ import annotations

import altair as alt

from iocast.records.quantities import unit_of
from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.sources import Sources
from iocast.records.study import LevelDocument

MAX_DESIGNS, MAX_PANELS = 5, 8
LEVEL = style.Mark("the level", style.BLACK, dash=(1, 0), kind="line")
NAMES = {
    "q25": "a quarter is faster",
    "q50": "median",
    "q75": "three in four",
    "q95": "slowest in twenty",
    "q99": "slowest in a hundred",
    "q999": "slowest in a thousand",
    "max": "slowest of all",
    "mean": "mean",
    "rate": "rate",
    "bandwidth": "bandwidth",
    "utilisation": "share of time in use",
    "seconds": "time to the end",
    "au": "utilisation of accelerators",
    "samples": "samples a second",
    "accelerator_bandwidth": "bandwidth of one accelerator",
    "stall_share": "time that checkpoints stall accelerators",
}
"""What a panel shows, by the end of its quantity's name: of each level that a study takes."""


def data(sources: Sources) -> list[Row] | None:
    study = sources.study
    if study is None or len(study["scales"]) < 2:
        return None
    shown = study["shown"][:MAX_DESIGNS]
    rows: list[Row] = []
    request: dict[tuple[str, str], list[LevelDocument]] = {}
    for level in study["levels"]:
        if level["under"] is None:
            for workload in level["workloads"]:
                request.setdefault((workload, level["quantity"]), []).append(level)
    wanted = list(request) or [(w["name"], "rate") for w in study["workloads"]]
    for workload, quantity in wanted[:MAX_PANELS]:
        curve = [
            r
            for r in study["curves"]
            if r["workload"] == workload and r["quantity"] == quantity and r["design"] in shown and r["value"]
        ]
        panel = f"{_title(quantity)}, {workload}" if len(study["workloads"]) > 1 else _title(quantity)
        for r in curve:
            rows.append(
                {
                    "panel": panel,
                    "quantity": quantity,
                    "series": r["name"],
                    "ranks": r["ranks"],
                    "value": r["value"],
                    "low": r["low"],
                    "high": r["high"],
                    "limit": None,
                }
            )
        for level in request.get((workload, quantity), []):
            ranks = [s["ranks"] for s in study["scales"] if s["name"] in level["at"]]
            rows.append(
                {
                    "panel": panel,
                    "quantity": quantity,
                    "series": level["level"],
                    "ranks": max(ranks),
                    "value": None,
                    "low": min(ranks),
                    "high": None,
                    "limit": level["limit"],
                }
            )
    return rows if any(r["value"] for r in rows) else None


def _title(quantity: str) -> str:
    subject, _, what = quantity.rpartition(".")
    if not subject:
        return NAMES[what].capitalize()
    return f"{'any operation' if subject == 'any' else subject}: {NAMES[what]}"


def draw(rows: list[Row]) -> Drawing:
    marks = style.cycle(dict.fromkeys(r["series"] for r in rows if r["limit"] is None))
    panels = []
    names = list(dict.fromkeys(r["panel"] for r in rows))
    for name in names:
        panels.append(Panel(name, _chart(name, [r for r in rows if r["panel"] == name], marks), wide=len(names) == 1))
    legend = marks + ([LEVEL] if any(r["limit"] is not None for r in rows) else [])
    return Drawing(panels, legend)


def text_of(quantity: str) -> style.Text:
    return style.TEXTS[unit_of(quantity)]


def _chart(name: str, rows: list[Row], marks: list[style.Mark]) -> style.Drawn:
    text = text_of(rows[0]["quantity"])
    base = style.with_texts(
        style.chart(style.is_("panel", name)), text, value="value", low="low", high="high", limit="limit"
    )
    log = alt.Scale(type="log", nice=False, padding=10)
    x = alt.X("ranks:Q", scale=log, axis=style.rank_axis((r["ranks"] for r in rows), "clients"))
    values = [r[k] for r in rows for k in ("value", "low", "high") if r["limit"] is None] + [r["limit"] for r in rows]
    axis = style.log_axis(text, None, values)
    y = alt.Y("value:Q", scale=log, axis=axis)
    tooltip = [
        alt.Tooltip("series:N", title="design"),
        alt.Tooltip("ranks:Q", title="clients", format=","),
        alt.Tooltip("value_text:N", title="forecast"),
        alt.Tooltip("low_text:N", title="from"),
        alt.Tooltip("high_text:N", title="to"),
    ]
    look = {"x": x, "color": style.colour(marks)}
    curves, levels = base.transform_filter("isValid(datum.value)"), base.transform_filter("isValid(datum.limit)")
    ends = {"y": alt.Y("low:Q", scale=log, axis=axis), "y2": alt.Y2("high:Q")}
    limit = alt.Y("limit:Q", scale=log, axis=axis)
    return style.finish(
        alt.layer(
            curves.transform_filter("isValid(datum.low)").mark_area(opacity=0.13).encode(**look, **ends),
            curves.mark_line(size=2).encode(y=y, strokeDash=style.dash(marks), **look),
            curves.mark_point(size=60, filled=True, opacity=1).encode(
                y=y, shape=style.shape(marks), tooltip=tooltip, **look
            ),
            levels.mark_rule(color=style.BLACK, size=2).encode(
                y=limit, tooltip=[alt.Tooltip("series:N", title="level")]
            ),
            *(
                levels.mark_text(align="left", baseline="bottom", dx=4, dy=-3, fontSize=12, **look).encode(
                    x=alt.value(0), y=limit, text="series:N"
                )
                for look in ({"stroke": "white", "strokeWidth": 4, "color": "white"}, {"color": style.INK})
            ),
        ),
        f"{name} of each design against the number of clients",
        240,
    )


FIGURE = Figure(
    name="scale",
    order=-7,
    title="How the designs bear growth",
    caption=(
        "Forecasts of the quantities of the service levels, from today's clients to the study's largest scale, with "
        "bands that hold 90 % of the uncertainty. The black line is the level: response times must stay below it, "
        "rates must reach it. Where a band crosses the line, the design may go either way. Both axes are logarithmic."
    ),
    needs="a study of at least two scales",
    data=data,
    draw=draw,
    of_study=True,
)

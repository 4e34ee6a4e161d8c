# SPDX-License-Identifier: Apache-2.0
"""How sure each design is to keep its levels, and at how many clients it breaks."""

from __future__ import annotations

import altair as alt

from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.sources import Sources
from iocast.study.amounts import is_confident
from iocast.records.study import DesignDocument

MOST = 16
ALL = style.Mark("keeps all levels", style.BLUE, "circle", kind="point")
EACH = style.Mark("keeps a single level, at its worst scale", style.ORANGE, "stroke", kind="point")
REQUIRED = style.Mark("required confidence", style.BLACK, kind="line")
BREAKS = style.Mark("clients at which the first level is missed", style.VERMILLION, "diamond", kind="point")
HOLDS = style.Mark("not missed as far as was looked", style.BLUE, "triangle-right", kind="point")
SCALES = style.Mark("scales of the study", style.GREY, dash=(2, 3), kind="line")


def data(sources: Sources) -> list[Row] | None:
    study = sources.study
    if study is None:
        return None
    simulated = [d for d in study["designs"] if d["basis"] == "simulated"]
    chosen = sorted(simulated, key=lambda d: (d["id"] not in study["shown"], -(d["probability"] or 0.0)))[:MOST]
    chosen.sort(key=lambda d: d["cost"])
    rows: list[Row] = []
    for d in chosen:
        name = _short(d)
        rows.append(
            {
                "panel": "chance",
                "design": name,
                "series": ALL.label,
                "value": d["probability"],
                "level": "all",
                "required": study["confidence_asked"],
            }
        )
        worst: dict[str, float] = {}
        for c in d["levels"]:
            worst[c["level"]] = min(worst.get(c["level"], 1.0), c["probability"] or 0.0)
        if len(worst) > 1:
            rows += [
                {
                    "panel": "chance",
                    "design": name,
                    "series": EACH.label,
                    "value": p,
                    "level": level,
                    "required": study["confidence_asked"],
                }
                for level, p in worst.items()
            ]
        end = d["breaks_at"]
        if end:
            found = end["ranks"] is not None
            rows.append(
                {
                    "panel": "breaks",
                    "design": name,
                    "series": (BREAKS if found else HOLDS).label,
                    "value": end["ranks"] if found else end["beyond"],
                    "level": end["level"],
                    "required": None,
                }
            )
    for s in study["scales"]:
        rows.append(
            {
                "panel": "scale",
                "design": s["name"],
                "series": SCALES.label,
                "value": s["ranks"],
                "level": None,
                "required": None,
            }
        )
    if not is_confident(study):
        rows = [row for row in rows if row["panel"] != "chance"]
    return rows if any(row["panel"] != "scale" for row in rows) else None


def _short(d: DesignDocument) -> str:
    """The design's name as far as a chart has room for it."""
    text = f"{d['id']} {d['name']}"
    return text if len(text) <= 34 else text[:33] + "\N{HORIZONTAL ELLIPSIS}"


def draw(rows: list[Row]) -> Drawing:
    order = list(dict.fromkeys(r["design"] for r in rows if r["panel"] != "scale"))
    panels = []
    if any(r["panel"] == "chance" for r in rows):
        panels.append(Panel("Chance that the levels are kept", _chances(order, rows)))
    if any(r["panel"] == "breaks" for r in rows):
        panels.append(Panel("Clients at which a design breaks", _breaks(order, rows)))
    present = {r["series"] for r in rows}
    return Drawing(
        panels,
        [
            m
            for m in (ALL, EACH, REQUIRED, BREAKS, HOLDS, SCALES)
            if m.label in present or (m is REQUIRED and ALL.label in present)
        ],
    )


def _y(order: list[str]) -> alt.Y:
    return alt.Y(
        "design:N",
        scale=alt.Scale(domain=order),
        axis=alt.Axis(title=None, ticks=False, domain=False, labelLimit=230, grid=True),
    )


def _chances(order: list[str], rows: list[Row]) -> style.Drawn:
    base = style.chart(style.is_("panel", "chance")).transform_calculate(
        text="datum.value > 0.99 ? 'more than 99 %' : format(datum.value, '.0%')"
    )
    x = alt.X(
        "value:Q",
        scale=alt.Scale(domain=[0, 1.03]),
        axis=alt.Axis(title=None, format=".0%", values=[0, 0.25, 0.5, 0.75, 1]),
    )
    tooltip = [alt.Tooltip("design:N"), alt.Tooltip("level:N"), alt.Tooltip("text:N", title="chance")]
    all_, each = (
        base.transform_filter(style.is_("series", ALL.label)),
        base.transform_filter(style.is_("series", EACH.label)),
    )
    requested = next(r["required"] for r in rows if r["panel"] == "chance")
    return style.finish(
        alt.layer(
            all_.mark_bar(color=style.BLUE, opacity=0.25, size=12).encode(x=x, y=_y(order)),
            alt.Chart(alt.Data(values=[{"required": requested}]))
            .mark_rule(color=style.BLACK, size=2)
            .encode(x=alt.X("required:Q")),
            each.mark_tick(color=style.ORANGE, thickness=3, size=14).encode(x=x, y=_y(order), tooltip=tooltip),
            all_.mark_point(color=style.BLUE, filled=True, size=70, opacity=1).encode(
                x=x, y=_y(order), tooltip=tooltip
            ),
        ),
        "Probability of each design to keep its service levels",
        style.lines(len(order), 26),
    )


def _breaks(order: list[str], rows: list[Row]) -> style.Drawn:
    marks = [BREAKS, HOLDS]
    base = style.chart(style.is_("panel", "breaks")).transform_calculate(text="format(datum.value, ',.2~r')")
    values = [r["value"] for r in rows if r["panel"] in ("breaks", "scale")]
    log = alt.Scale(type="log", nice=False, padding=12, domain=[min(values) / 1.2, max(values) * 1.2])
    x = alt.X(
        "value:Q",
        scale=log,
        axis=alt.Axis(title="clients", values=style.log_ticks(values, 5), format=",~r", grid=False),
    )
    tooltip = [
        alt.Tooltip("design:N"),
        alt.Tooltip("series:N", title="what"),
        alt.Tooltip("text:N", title="clients"),
        alt.Tooltip("level:N", title="first level"),
    ]
    return style.finish(
        alt.layer(
            style.chart(style.is_("panel", "scale"))
            .mark_rule(color=style.GREY, strokeDash=[2, 3])
            .encode(
                x=x,
                tooltip=[alt.Tooltip("design:N", title="scale"), alt.Tooltip("value:Q", title="clients", format=",")],
            ),
            base.mark_point(filled=True, size=80, opacity=1).encode(
                x=x, y=_y(order), color=style.colour(marks), shape=style.shape(marks), tooltip=tooltip
            ),
        ),
        "Number of clients at which each design first misses a level",
        style.lines(len(order), 26),
    )


FIGURE = Figure(
    name="risk",
    order=-6,
    title="How sure, and how far",
    caption=(
        "On the left, dots are the chance that a design keeps all its levels, over everything the study calls "
        "uncertain; orange strokes are the single levels. A design counts when its dot is right of the black line. On "
        "the right, the best estimate of the number of clients from which on the first level is missed; beyond the "
        "study's scales (broken lines) this is the analytic solver's word alone. Designs are in order of cost."
    ),
    needs="a study whose designs were simulated",
    data=data,
    draw=draw,
    of_study=True,
)

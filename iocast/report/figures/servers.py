# SPDX-License-Identifier: Apache-2.0
"""What keeps servers busy: by kind of request how many are there at a time."""

from __future__ import annotations

import altair as alt

from iocast.importers.statistics import HANDLING, TRIPS
from iocast.report import servers
from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.servers import Load
from iocast.report.sources import Sources

THERE, WAITING = "rest of its time", "waiting"
PARTS = [style.Mark(THERE, style.BLUE, kind="bar"), style.Mark(WAITING, style.ORANGE, kind="bar")]
MAX_SERVERS, MAX_REQUESTS = 4, 8
AXES = {HANDLING: "threads busy at a time", TRIPS: "requests under way at a time"}


def data(sources: Sources) -> list[Row] | None:
    rows = [row for load in servers.loads(sources)[:MAX_SERVERS] if load.busy for row in _rows(load)]
    return rows or None


def _rows(load: Load) -> list[Row]:
    found: list[Row] = []
    for one in load.requests[:MAX_REQUESTS]:
        if one.at_a_time is None:
            continue
        waiting = one.rate * (one.wait or 0.0)
        for part, value in ((THERE, one.at_a_time - waiting), (WAITING, waiting)):
            if value > 0:
                found.append(
                    {
                        "server": load.title,
                        "request": one.name,
                        "part": part,
                        "at_a_time": value,
                        "share": load.share(one),
                        "axis": AXES.get(load.about["holds"], "requests there at a time"),
                    }
                )
    return found


def draw(rows: list[Row]) -> Drawing:
    shown = [mark for mark in PARTS if any(row["part"] == mark.label for row in rows)]
    panels = []
    for server in dict.fromkeys(row["server"] for row in rows):
        here = [row for row in rows if row["server"] == server]
        panels.append(Panel(f"{here[0]['axis'].capitalize()}, {server}", _chart(server, here, shown), wide=True))
    return Drawing(panels, shown if len(shown) > 1 else [])


def _number(value: str, digits: str = ".3~r") -> str:
    """The Vega expression that writes a number of requests."""
    return f"format({value}, '{digits}')"


def _chart(server: str, rows: list[Row], shown: list[style.Mark]) -> style.Drawn:
    names = list(dict.fromkeys(row["request"] for row in rows))
    base = style.with_texts(style.chart(style.is_("server", server)), _number, value="at_a_time")
    base = style.with_texts(base, style.share_text, share="share")
    bars = base.mark_bar(stroke="white", strokeWidth=1).encode(
        x=alt.X("at_a_time:Q", stack=True, axis=style.axis(_number, rows[0]["axis"], tickCount=4)),
        y=alt.Y("request:N", scale=alt.Scale(domain=names),
                axis=alt.Axis(title=None, ticks=False, domain=False, labelLimit=170)),
        color=style.colour(shown, "part"),
        tooltip=[alt.Tooltip("request:N"), alt.Tooltip("part:N"), alt.Tooltip("value_text:N", title="at a time"),
                 alt.Tooltip("share_text:N", title="share of the time")],
    )  # fmt: skip
    return style.finish(bars, f"Requests at {server} at a time, by kind", style.lines(len(names), 30))


FIGURE = Figure(
    name="servers",
    order=1,
    title="What keeps the server busy",
    caption=(
        "How many requests of each kind are at a server at a time: their rate times their mean time. The longest bar "
        "is what to make rarer or faster first; where waiting is counted, it is orange, and more threads or "
        "connections shorten it."
    ),
    needs="counters of a server, as iocast import reads them",
    data=data,
    draw=draw,
    of_servers=True,
    leads=True,
)

# SPDX-License-Identifier: Apache-2.0
"""The model drawn: which stations each operation visits, in which order, and what it holds meanwhile."""

from __future__ import annotations

from typing import Any

import altair as alt

from iocast.report import evidence
from iocast.report.figures import Drawing, Figure, Panel, Row, style
from iocast.report.sources import Sources
from iocast.records.platform import RoutePart, Step

STATION = style.Mark("station", style.SKY, kind="bar")
LOCKED = style.Mark("station, with a lock", style.ORANGE, kind="bar")
DELAY = style.Mark("delay", "#d0d0d0", kind="bar")
TRANSFER = style.Mark("transfer over the network", style.GREEN, kind="bar")
BUFFER = style.Mark("buffer, entered or flushed", style.PURPLE, kind="bar")
MECHANISM = style.Mark("another mechanism", style.BLUE, kind="bar")
CACHE = style.Mark("look into a cache", style.YELLOW, kind="bar")
LIMIT = style.Mark("a slot of a limit is held", style.BLACK, kind="line")
MARKS = [STATION, LOCKED, DELAY, TRANSFER, BUFFER, MECHANISM, CACHE]


def data(sources: Sources) -> list[Row] | None:
    for name, operations, wanted in _platforms(sources):
        rows = [
            row
            for operation in sorted(operations, key=evidence.operation_order)
            if not wanted or operation in wanted
            for row in route(operation, operations[operation])
        ]
        if rows:
            return [{"platform": name, **row} for row in rows]
    return None


def _platforms(sources: Sources) -> list[tuple[str, dict[str, Any], set[str]]]:
    """Name, routes, and the operations that were done."""
    found = []
    study = sources.study
    if study and (routes := study.get("routes")):
        found.append(
            (routes["design"], routes["operations"], {op for w in study["workloads"] for op in w["operations"]})
        )
    for run in evidence.focus_runs(sources):
        platform = run.document.get("platform")
        if isinstance(platform, dict) and isinstance(platform.get("operations"), dict):
            done = {op for phase in run.phases for op in phase.get("latency") or {} if "." not in op}
            found.append((str(platform.get("name", "")), platform["operations"], done))
    return found


def route(operation: str, parts: list[RoutePart]) -> list[Row]:
    """The steps of one operation, as a resolved platform has them."""
    rows: list[Row] = []

    def walk(steps: list[Step], part: str, held: str, case: str = "") -> None:
        for step in steps:
            if "limit" in step:
                walk(step["steps"], part, f"{held}, {step['limit']}".lstrip(", "), case)
                continue
            if "delay" in step:
                kind, name, law = DELAY.label, step["delay"].get("name") or "delay", step["delay"]
            elif "transfer" in step:
                kind, name, law = TRANSFER.label, f"{step['transfer']} {step['station']}", {}
            elif "disk" in step:
                kind, name, law = TRANSFER.label, f"{step['disk']} disk of {step['station']}", {}
            elif "buffer" in step:
                kind, name, law = BUFFER.label, step["buffer"], {}
            elif "flush" in step:
                kind, name, law = BUFFER.label, f"flush {step['flush']}", {}
            elif "cache" in step:
                kind, name, law = CACHE.label, step["cache"], {}
            elif "forget" in step:
                kind, name, law = (
                    CACHE.label,
                    f"forget {step['forget']}" + (f" {step['of']}" if "of" in step else ""),
                    {},
                )
            elif "station" not in step:
                kind, name, law = MECHANISM.label, " ".join(map(str, next(iter(step.items())))), {}
            else:
                kind, name, law = (
                    (LOCKED if step.get("lock") and step.get("lock_share") else STATION).label,
                    step["station"],
                    step["demand"],
                )
            rows.append(
                {
                    "operation": operation,
                    "part": part,
                    "place": len(rows),
                    "kind": kind,
                    "name": name,
                    "seconds": law.get("mean"),
                    "demand": law.get("name"),
                    "lock": step.get("lock") or None,
                    "held": held or None,
                    "case": case or None,
                }
            )
            walk(step.get("steps", []), part, f"{held}, {name}".lstrip(", "), case)  # of a mechanism
            cache = step.get("cache")
            for branch, of, below in (
                ("hit", cache, step.get("hit")),
                ("miss", cache, step.get("miss")),
                ("recall", step.get("lock") or step.get("forget"), step.get("recall")),
            ):
                walk(below or [], part, held, f"{case}, {branch} of {of}".lstrip(", "))

    for part in parts:
        walk(part["steps"], part.get("part", ""), "")
    return rows


def draw(rows: list[Row]) -> Drawing:
    present = {r["kind"] for r in rows}
    legend = [m for m in MARKS if m.label in present] + ([LIMIT] if any(r["held"] for r in rows) else [])
    return Drawing([Panel(f"Routes of {rows[0]['platform']}", _chart(rows), wide=True)], legend)


def _chart(rows: list[Row]) -> style.Drawn:
    operations = list(dict.fromkeys(r["operation"] for r in rows))
    most = max(r["place"] for r in rows) + 1
    base = style.with_texts(style.chart(), style.seconds_text, value="seconds")
    base = base.transform_calculate(
        left="datum.place + 0.04",
        right="datum.place + 0.96",
        middle="datum.place + 0.5",
        short="length(datum.name) > 11 ? substring(datum.name, 0, 10) + '…' : datum.name",
    )
    scale = alt.Scale(domain=[0, most])
    y = alt.Y(
        "operation:N",
        scale=alt.Scale(domain=operations, paddingInner=0.35),
        axis=alt.Axis(title=None, ticks=False, domain=False),
    )
    tooltip = [
        alt.Tooltip("operation:N"),
        alt.Tooltip("part:N"),
        alt.Tooltip("name:N", title="where"),
        alt.Tooltip("demand:N", title="law"),
        alt.Tooltip("value_text:N", title="mean"),
        alt.Tooltip("lock:N", title="with the lock"),
        alt.Tooltip("held:N", title="while holding a slot of"),
        alt.Tooltip("case:N", title="after a"),
    ]
    x = alt.X("left:Q", scale=scale, axis=None)
    return style.finish(
        alt.layer(
            base.mark_bar(height=alt.RelativeBandSize(band=1)).encode(
                x=x, x2="right:Q", y=y, color=style.colour(MARKS, "kind"), tooltip=tooltip
            ),
            base.transform_filter("isValid(datum.held)")
            .mark_bar(height=3, yOffset=14, color=style.BLACK)
            .encode(x=x, x2="right:Q", y=y),
            base.mark_text(fontSize=11, color=style.INK).encode(
                x=alt.X("middle:Q", scale=scale, axis=None), y=y, text="short:N", tooltip=tooltip
            ),
        ),
        "Stations that each operation visits, in order",
        style.lines(len(operations), 40) - 30,
    )


FIGURE = Figure(
    name="routes",
    order=11,
    title="The model, drawn",
    caption=(
        "The way of each operation through the model, from left to right: blue boxes are stations where it is served "
        "and may queue, grey ones delays that nobody queues for, orange ones stations where it also needs a lock, "
        "purple ones memory that takes its bytes and drains later, or that it waits for to drain, dark blue ones "
        "objects made in advance of which one is taken, yellow ones looks into a cache, each with the steps of a hit "
        "and then those of a miss behind it; steps of those who had to call a lock back come behind its station. A "
        "black line below says that a slot of a client's or the system's limit is held meanwhile. Hover for the mean "
        "time of each step."
    ),
    needs="a simulated run or a study",
    data=data,
    draw=draw,
)

# SPDX-License-Identifier: Apache-2.0
"""How all figures look: colours that colour-blind readers can tell apart (Okabe & Ito 2008), and beside each colour a
shape or a dash, so that a grey print says the same; axes with units; charts that fill the width they are given.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import altair as alt

from iocast.runs.phases import BYTES

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE, GREY = "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#767676"
PALE = "#CFE8F7"
"""Lighter than SKY: beside ORANGE on a grey print SKY is the same."""
INK, FAINT = "#222222", "#e4e4e4"

Text: TypeAlias = Callable[[str, str], str]  # from a Vega expression and a format to the expression of a text with unit
Drawn: TypeAlias = alt.Chart | alt.LayerChart

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"  # the page uses the same
ROWS = "figure"  # name under which the page hands a figure's rows to its charts


@dataclass(frozen=True)
class Mark:
    """How one series looks, in charts and in the legend. `kind`: point, line, both, band or bar."""

    label: str
    colour: str
    shape: str = "circle"
    dash: tuple[int, ...] = ()
    kind: str = "both"


MEASURED = Mark("measured", BLACK, "diamond", kind="point")
FORECAST = Mark("forecast", BLUE, "circle", kind="both")
HELD_OUT = Mark("held-out forecast", BLUE, "circle", kind="point")
INTERVAL = Mark("interval of the forecast", SKY, kind="band")
_BASELINES = {
    "straight line": Mark("straight line", VERMILLION, "triangle-up", (6, 3), "both"),
    "last value": Mark("last value", PURPLE, "square", (2, 2), "both"),
    "universal scalability law": Mark("universal scalability law", ORANGE, "cross", (8, 3, 2, 3), "both"),
    "closed M/M/c": Mark("closed M/M/c", GREEN, "triangle-down", (4, 2), "both"),
    "asymptotic bounds": Mark("asymptotic bounds", GREY, "stroke", (1, 2), "both"),
}
_CYCLE = [
    (BLUE, "circle", ()),
    (VERMILLION, "square", (6, 3)),
    (GREEN, "triangle-up", (2, 2)),
    (PURPLE, "cross", (8, 3, 2, 3)),
    (ORANGE, "diamond", (4, 2)),
    (BLACK, "triangle-down", (1, 2)),
    (SKY, "triangle-right", (10, 4)),
    (GREY, "triangle-left", (3, 5)),
]


def baseline(name: str) -> Mark:
    return _BASELINES.get(name, Mark(name, GREY, "triangle-right", (3, 3), "both"))


def cycle(labels: Iterable[str], kind: str = "both") -> list[Mark]:
    """One look for each label, in order; beyond eight they repeat."""
    return [Mark(label, *_CYCLE[i % len(_CYCLE)], kind) for i, label in enumerate(labels)]


def chart(where: str | None = None) -> alt.Chart:
    """A chart of the figure's rows, of those for which the Vega expression `where` holds."""
    made = alt.Chart(alt.NamedData(name=ROWS))
    return made.transform_filter(where) if where else made


def is_(field: str, value: str | float | None) -> str:
    """The Vega expression that a row's field has this value."""
    return f"datum[{json.dumps(field)}] === {json.dumps(value)}"


def colour(marks: list[Mark], field: str = "series") -> alt.Color:
    scale = alt.Scale(domain=[m.label for m in marks], range=[m.colour for m in marks])
    return alt.Color(f"{field}:N", scale=scale, legend=None)


def shape(marks: list[Mark], field: str = "series") -> alt.Shape:
    scale = alt.Scale(domain=[m.label for m in marks], range=[m.shape for m in marks])
    return alt.Shape(f"{field}:N", scale=scale, legend=None)


def dash(marks: list[Mark], field: str = "series") -> alt.StrokeDash:
    scale = alt.Scale(domain=[m.label for m in marks], range=[list(m.dash) or [1, 0] for m in marks])
    return alt.StrokeDash(f"{field}:N", scale=scale, legend=None)


def _unit_text(value: str, steps: list[tuple[float, str]], digits: str) -> str:
    text = f"format({value} / {steps[-1][0]!r}, '{digits}') + ' {steps[-1][1]}'"
    for factor, unit in reversed(steps[:-1]):
        text = f"abs({value}) >= {0.9995 * factor!r} ? format({value} / {factor!r}, '{digits}') + ' {unit}' : {text}"
    return f"({value} === 0 ? '0' : {text})"


def seconds_text(value: str, digits: str = ".3~r") -> str:
    """The Vega expression that writes the time `value` with its unit."""
    return _unit_text(value, [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")], digits)


def rate_text(value: str, digits: str = ".3~r") -> str:
    """The Vega expression that writes the rate `value` with its unit."""
    return _unit_text(value, [(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")], digits)


def bandwidth_text(value: str, digits: str = ".3~r") -> str:
    """The Vega expression that writes the bandwidth `value` with its unit."""
    return _unit_text(value, [(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")], digits)


def rate_axis(rows: Iterable[Mapping[str, Any]]) -> tuple[Text, str]:
    """How the rates of these rows are written, and the title of their axis: bytes where a row has that `unit`."""
    if any(row.get("unit") == BYTES for row in rows):
        return bandwidth_text, "bytes a second"
    return rate_text, "operations a second"


def factor_text(value: str, digits: str = ".3~r") -> str:
    """The Vega expression that writes the factor `value`."""
    return f"format({value}, '{digits}') + ' ×'"


def share_text(value: str, digits: str = ".3~r") -> str:
    """The Vega expression that writes the share `value` in percent."""
    del digits
    return f"format({value}, '.0%')"


TEXTS: dict[str, Text] = {
    "rate": rate_text, "bytes": bandwidth_text, "share": share_text, "seconds": seconds_text,
}  # fmt: skip
"""How values are written, by the kind of their unit (iocast.records.quantities.unit_of)."""


def digits(values: Iterable[float | None]) -> str:
    """The format in which the labels of an axis over these values differ, however little the values do: three
    significant digits at least."""
    known = [value for value in values if value is not None]
    spread = max(known, default=0.0) - min(known, default=0.0)
    if not spread > 0:
        return ".3~r"
    between = spread / 10  # less than a step between two labels
    largest = max(map(abs, known))
    return f".{min(15, max(3, math.floor(math.log10(largest)) - math.floor(math.log10(between)) + 1))}~r"


def axis(text: Text, title: str | None, digits: str = ".3~r", **more: Any) -> alt.Axis:
    """A linear axis whose labels carry units."""
    more.setdefault("tickCount", 6)
    return alt.Axis(title=title, labelExpr=text("datum.value", digits), **more)


def log_axis(text: Text, title: str | None, values: Iterable[float | None], **more: Any) -> alt.Axis:
    """A logarithmic axis for these values, whose few labels carry units."""
    return alt.Axis(title=title, labelExpr=text("datum.value", ".3~r"), values=log_ticks(values), **more)


AROUND = 1.02
"""Factor around the values of a logarithmic axis within which its ticks lie."""


CLOSEST = 0.09
"""Share of a logarithmic axis between two ticks, at least: a label that would touch its neighbour is left out, and its
line would have none."""


def log_scale(values: Iterable[float | None], padding: int = 10) -> alt.Scale:
    """A logarithmic scale over these values. Where they hardly differ it has the margin around them that their ticks
    have, as it would else spread them over its whole length and have no round number within."""
    known = [v for v in values if v is not None and v > 0]
    alike = known and max(known) < 1.1 * min(known)
    more: dict[str, Any] = {"domain": [min(known) / AROUND, max(known) * AROUND]} if alike else {}
    return alt.Scale(type="log", nice=False, padding=padding, **more)


def log_ticks(values: Iterable[float | None], most: int = 7) -> list[float]:
    """Round numbers across the values: 1, 2, 5 of each decade, fewer over many decades, more over less than one."""
    known = [v for v in values if v is not None and v > 0]
    if not known:
        return []
    if max(known) < 1.0001 * min(known):  # an axis of one value has one place, where all ticks would lie
        return [float(f"{known[0]:.3g}")]
    low, high = min(known) / AROUND, max(known) * AROUND
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), range(1, 10), [i / 10 for i in range(10, 100, 2)]):
        ticks = [t for d in decades for s in steps if low <= (t := float(f"{s * 10.0**d:.3g}")) <= high]
        gaps = [math.log(b / a) for a, b in zip(ticks, ticks[1:])]
        if len(ticks) <= most and min(gaps, default=1.0) >= CLOSEST * math.log(high / low):
            found = ticks
    return found if len(found) > 1 else _even_ticks(low, high, most)


def _even_ticks(low: float, high: float, most: int) -> list[float]:
    """Multiples of a round step: over so little of a decade an axis is nearly linear."""
    finest = 10.0 ** (math.floor(math.log10(high - low)) - 1)
    step = next(s for factor in (1, 2, 5, 10, 20, 50, 100) if (high - low) / (s := factor * finest) <= most - 1)
    return [float(f"{n * step:.6g}") for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def rank_axis(ranks: Iterable[int], title: str = "ranks") -> alt.Axis:
    """An axis of ranks with a tick at each number of them that occurs, as long as these are few."""
    known = sorted(set(ranks))
    ticks = known if len(known) <= 10 else log_ticks(known)
    return alt.Axis(title=title, format=",~r", values=ticks, grid=False)


def with_texts(base: alt.Chart, text: Text, **fields: str) -> alt.Chart:
    """`base` with one more text field `<name>_text` for each `name=field`, for tooltips with units."""
    for name, source in fields.items():
        where = f'datum["{source}"]'
        base = base.transform_calculate(**{f"{name}_text": f"isValid({where}) ? {text(where, '.4~r')} : 'no data'"})
    return base


def lines(count: int, each: int) -> int:
    """Height in pixels of a chart with this number of lines, with its horizontal axis."""
    return count * each + 48


CONFIG = alt.Config(
    font=FONT,
    view=alt.ViewConfig(stroke=None),
    axis=alt.AxisConfig(
        labelColor=INK,
        titleColor=INK,
        gridColor=FAINT,
        domainColor="#999999",
        tickColor="#999999",
        labelFontSize=12,
        titleFontSize=12,
        titleFontWeight="normal",
        labelOverlap="greedy",
        labelSeparation=6,
        titlePadding=8,
    ),
)
"""House fonts and lines."""


def finish(made: Any, description: str, height: int = 260) -> Drawn:
    """Width of the page, house fonts and lines, and the words that a screen reader says."""
    autosize = alt.AutoSizeParams(type="fit", contains="padding", resize=True)
    drawn: Drawn = made.copy(deep=False)  # each method of Altair copies everything
    drawn.width, drawn.height, drawn.description, drawn.autosize = "container", height, description, autosize
    drawn.config = CONFIG
    return drawn

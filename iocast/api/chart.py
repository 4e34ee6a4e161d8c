# SPDX-License-Identifier: Apache-2.0
"""Rows of an answer as a chart for notebooks; a report's figures are those of iocast/report/figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from iocast.errors import RunError

if TYPE_CHECKING:
    import altair


class Axes(NamedTuple):
    """Which columns of the rows a chart has: `low` and `high` are ends of an interval of y. Of each value of `facet`
    there is a chart, since its values have another unit."""

    x: str
    y: str
    low: str = ""
    high: str = ""
    colour: str = ""
    facet: str = ""


def chart_of(
    rows: Sequence[Mapping[str, object]], axes: Axes, caption: str = ""
) -> altair.FacetChart | altair.LayerChart:
    """Points with their intervals. Axes of numbers are logarithmic where all of them are above 0, and have
    prefixes of the SI where their unit stands above them.

    @raises RunError where no row has both coordinates"""
    import altair

    whole = [dict(row) for row in rows if row.get(axes.x) is not None and row.get(axes.y) is not None]
    if not whole:
        raise RunError(f"No row has {axes.x} and {axes.y}, so that there is nothing to draw.")

    prefixes = {"axis": {"format": "~s"}} if axes.facet == "unit" else {}
    title = {"title": caption} if caption else {}

    def axis(column: str, *further: str) -> dict[str, Any]:
        values = [value for row in whole for name in (column, *further) if (value := row.get(name)) is not None]
        if any(isinstance(value, str) for value in values):
            return {"field": column, "type": "nominal", "sort": None, "title": column}
        kind = "log" if min(value for value in values if isinstance(value, float | int)) > 0 else "linear"
        return {
            "field": column,
            "type": "quantitative",
            "scale": {"type": kind, "zero": False},
            "title": column,
            **prefixes,
        }

    encoding = {"x": axis(axes.x), "y": axis(axes.y, *filter(None, (axes.low, axes.high)))}
    if axes.colour:
        encoding["color"] = {"field": axes.colour, "type": "nominal"}
    layers = [{"mark": {"type": "point", "filled": True, "tooltip": {"content": "data"}}, "encoding": encoding}]
    if axes.low:
        ends = {**encoding, "y": {**encoding["y"], "field": axes.low}, "y2": {"field": axes.high}}
        layers.insert(0, {"mark": {"type": "rule"}, "encoding": ends})
    if not axes.facet:
        return altair.LayerChart.from_dict({"data": {"values": whole}, "layer": layers, **title})
    return altair.FacetChart.from_dict(
        {
            "data": {"values": whole},
            **title,
            "facet": {"field": axes.facet, "type": "nominal", "sort": None},
            "columns": 2,
            "spec": {"layer": layers},
            "resolve": {"scale": {"x": "independent", "y": "independent"}},
        }
    )

# SPDX-License-Identifier: Apache-2.0
"""The figures of a report, one a file. A new file in this folder that defines FIGURE is in every report from then on.

A figure is two functions: `data` turns the sources into rows (plain values, or None when there is nothing to draw),
and `draw` turns these rows into panels. The rows are also the figure's part of the JSON of numbers, and the page draws
from that JSON: what a reader sees on hovering is what a program reads.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from iocast.errors import InputError
from iocast.report.figures.style import Drawn, Mark
from iocast.report.sources import Sources

Row = dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """One chart with the heading above it; `wide` takes the whole width of the page."""

    title: str
    chart: Drawn
    wide: bool = False


@dataclass(frozen=True)
class Drawing:
    panels: list[Panel]
    legend: list[Mark]


@dataclass(frozen=True)
class Figure:
    name: str  # in the JSON and in the page's addresses
    order: int  # position in the report
    title: str
    caption: str  # teaches how to read it
    needs: str  # what must be among the sources, to end the sentence "It needs ..."
    data: Callable[[Sources], list[Row] | None]
    draw: Callable[[list[Row]], Drawing]
    of_study: bool = False  # about a study: missed only where there is one


def all_figures() -> list[Figure]:
    """Every FIGURE of this package's modules, in reading order."""
    figures: list[Figure] = []
    for module in pkgutil.iter_modules(__path__):
        figure = getattr(importlib.import_module(f"{__name__}.{module.name}"), "FIGURE", None)
        if figure is not None:
            figures.append(figure)
    figures.sort(key=lambda f: f.order)
    names = [f.name for f in figures]
    if len(set(names)) != len(names):
        raise InputError(f"Two figures have the same name among {', '.join(names)}; rename one of them.")
    return figures

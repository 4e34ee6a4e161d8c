# SPDX-License-Identifier: Apache-2.0
"""The figures of a report, one a file. A new file in this folder that defines FIGURE is in every report from then on.

A figure is two functions: `data` turns the sources into rows (plain values, or None when there is nothing to draw),
and `draw` turns these rows into panels. The rows are also the figure's part of the JSON of numbers, and the page draws
from that JSON: what a reader sees on hovering is what a program reads. docs/extend.md has a whole example.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from iocast.errors import InputError
from iocast.report.figures.style import Drawn, Mark
from iocast.report.sources import Sources

Row = dict[str, Any]
SHORTEST_CAPTION = 100
"""Characters that a caption must exceed."""


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
    caption: str = ""  # in the place of the figure's, where not all that it explains is drawn


@dataclass(frozen=True)
class Figure:
    """A figure of a report.

    @raises InputError for a name, caption or `needs` that breaks the rules stated at these fields"""

    name: str  # in the JSON and in the page's addresses: letters a to z only
    order: int  # position in the report
    title: str
    caption: str  # how to read it: more than SHORTEST_CAPTION characters, with a full stop at the end
    needs: str  # what must be among the sources, to end the sentence "It needs ...": without a full stop
    data: Callable[[Sources], list[Row] | None]
    draw: Callable[[list[Row]], Drawing]
    of_study: bool = False  # about a study: missed only where there is one
    of_servers: bool = False  # about what servers counted: missed only where that was given
    leads: bool = False  # its first panel is on the first screen

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z]+", self.name):
            raise InputError(f"The figure's name {self.name!r} is not allowed; use the letters a to z only.")
        if not self.title:
            raise InputError(f"The figure {self.name!r} has no title; give it one.")
        if len(self.caption) <= SHORTEST_CAPTION or not self.caption.endswith("."):
            raise InputError(
                f"The caption of the figure {self.name!r} has {len(self.caption)} characters; it must have more than "
                f"{SHORTEST_CAPTION}, end with a full stop, and say how to read the figure."
            )
        if self.needs.endswith("."):
            raise InputError(
                f"'needs' of the figure {self.name!r} ends the sentence 'It needs ...'; leave out the full stop."
            )


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

# SPDX-License-Identifier: Apache-2.0
"""What every call of the library returns."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from iocast.api.chart import Axes, chart_of
from iocast.errors import InputError, RunError
from iocast.platforms.fitted import Fitted
from iocast.records.codes import notes_of
from iocast.records.note import Note
from iocast.records.quantities import unit_of
from iocast.runs.phases import BYTES

if TYPE_CHECKING:
    import altair
    import pyarrow

Cell = str | float | int | bool | None
Row = dict[str, Cell]
Progress = Callable[[str, int, int], None]
Place = str | Path
DIGITS = 4
"""Significant digits of a number in a notebook's table."""
UNITS = {"rate": "1/s", "bytes": "B/s", "share": "", "seconds": "s"}
"""Of the numbers of a row, by the kind of its quantity."""


def quietly(*_: object) -> None:
    """Progress that nobody hears."""


class Answer(ABC):
    """An answer: as the text that the command of the same name prints, as its document (docs/answers.md), as the table
    of a notebook, and as rows of numbers in SI units."""

    axes: Axes | None = None
    """Of its chart."""
    caption = ""
    """What its chart shows."""

    @abstractmethod
    def text(self) -> str:
        """What the command prints."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """What the command prints with --json."""

    @abstractmethod
    def rows(self) -> list[Row]:
        """Its numbers, a quantity a row."""

    def to_pandas(self) -> Any:
        """The rows as a pandas.DataFrame. @raises RunError where pandas is not installed"""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise RunError("The package pandas is not installed; install it, or use .rows().") from error
        return pandas.DataFrame(self.rows())

    def to_arrow(self) -> pyarrow.Table:
        """The rows as a table of Apache Arrow; what a row lacks is null."""
        import pyarrow

        rows = self.rows()
        columns = dict.fromkeys(name for row in rows for name in row)
        return pyarrow.table({name: [row.get(name) for row in rows] for name in columns})

    def plot(self) -> altair.FacetChart | altair.LayerChart:
        """The rows as a chart of Altair, which a notebook shows. @raises RunError for an answer without a chart"""
        if self.axes is None:
            raise RunError(f"{type(self).__name__} has no chart; .rows() and .to_pandas() have its numbers.")
        return chart_of(self.rows(), self.axes, self.caption)

    def __repr__(self) -> str:
        number = len(self.rows())
        return f"<{type(self).__name__} of {number} row{'s' * (number != 1)}; .text() prints it>"

    def _repr_html_(self) -> str:
        """A notebook's table."""
        rows = self.rows()
        columns = list(dict.fromkeys(column for row in rows for column in row))
        head = "".join(f"<th>{escape(column)}</th>" for column in columns)
        body = "".join("<tr>" + "".join(_cell(row.get(column)) for column in columns) + "</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Cell) -> str:
    if isinstance(value, float):
        short = f"{value:.{DIGITS}g}"
        plain = f"{float(short):,.0f}" if 1000 <= abs(value) < 1e15 else short
        return f'<td style="text-align: right">{plain}</td>'
    return f"<td>{'' if value is None else escape(str(value))}</td>"


Document = TypeVar("Document", bound=Mapping[str, Any])


class Found(Answer, Generic[Document]):
    """An answer that is read from its document."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def document(self) -> dict[str, Any]:
        return dict(self._document)

    @property
    def cautions(self) -> list[Note]:
        """What must be known before it is believed, as codes with numbers (docs/cautions.md)."""
        return list(notes_of(self._document))


def cells(row: Mapping[str, object]) -> list[tuple[str, Cell]]:
    """The plain values of a document's row, by key."""
    return [(key, value) for key, value in row.items() if value is None or isinstance(value, str | float | int)]


def as_paths(places: Place | Sequence[Place]) -> list[Path]:
    """One place or several. @raises InputError for none"""
    paths = [Path(one) for one in ([places] if isinstance(places, str | Path) else places)]
    if not paths:
        raise InputError("No file and no directory was named; name at least one.")
    return paths


def platform_of(platform: Place | Fitted, edits: Mapping[str, object] | None = None) -> Fitted:
    """A platform of the catalogue, a file, or what `calibrate` returned, with edits by path."""
    if isinstance(platform, Fitted):
        return Fitted(platform.file, platform.fitted, platform.documents, [*platform.edits, *(edits or {}).items()])
    return Fitted.open(str(platform), list((edits or {}).items()))


def unit_in_row(quantity: str, one: Mapping[str, Any]) -> str:
    """The SI unit of a quantity; of a rate that counts bytes, B/s."""
    return UNITS["bytes" if one.get("unit") == BYTES else unit_of(quantity)]


def quantity_rows(phase: Mapping[str, Any]) -> list[Row]:
    """The quantities of a phase of a forecast."""
    return [
        {
            "phase": phase["phase"],
            "quantity": name,
            "unit": unit_in_row(name, one),
            "value": one["value"],
            "low": one.get("low"),
            "high": one.get("high"),
        }
        for name, one in phase["quantities"].items()
    ]

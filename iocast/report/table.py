# SPDX-License-Identifier: Apache-2.0
"""A table of a report: rows of plain values, and for each column how people read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iocast.report import units
from iocast.wording.text import NARROWED, kind_of_row, roughly, too_wide

WRITERS = {
    "money": units.money,
    "chance": units.chance,
    "count": units.count,
    "seconds": units.seconds,
    "error": units.error,
    "share": units.share,
    "factor": units.factor,
    "plain": "{:g}".format,
    "bandwidth": units.bandwidth,
}


@dataclass(frozen=True)
class Column:
    """`kind` says how a value is written: text, count, money, seconds, rate (by the row's `unit`), error, share,
    chance, factor, bandwidth,
    number (three digits), plain, yesno, or quantity (a rate, seconds, ..., by the row's `quantity`).
    With `to` the cell is an interval, from this key's value to that key's. `within` are the keys of a forecast's
    interval: where that is too wide, the value is `roughly` that."""

    key: str
    title: str
    kind: str = "text"
    to: str | None = None
    within: tuple[str, str] | None = None

    def is_wide(self, row: dict[str, Any]) -> bool:
        """Whether the row's interval is so wide that the value is no answer by itself."""
        ends = self._ends(row)
        return ends is not None and too_wide(ends)

    def _ends(self, row: dict[str, Any]) -> dict[str, Any] | None:
        """Of the row's interval; None where the cell has no value with one."""
        ends = self.within
        if ends is None and self.kind == "quantity" and self.key in ("forecast", "value"):
            ends = ("low", "high")
        if ends is None or self.to is not None or None in (low_high := [row.get(end) for end in ends]):
            return None
        return dict(zip(("low", "high"), low_high, strict=True))

    def text(self, row: dict[str, Any]) -> str:
        value = row.get(self.key)
        if self.to is None:
            return roughly(self._one(row, value), self._ends(row) or {})
        end = row.get(self.to)
        if value is None or end is None:
            return units.NOTHING
        return units.span(self._one(row, value), self._one(row, end))

    def _one(self, row: dict[str, Any], value: Any) -> str:
        if value is None or value == "":
            return units.NOTHING
        if self.kind == "quantity":
            return units.quantity(kind_of_row(row), value)
        if self.kind == "number":
            return units.digits(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
        if self.kind == "yesno":
            return "yes" if value else "NO"
        if self.kind == "rate":
            return units.rate(value, row.get("unit"))
        return WRITERS[self.kind](value) if self.kind in WRITERS else str(value)

    @property
    def is_number(self) -> bool:
        return self.kind not in ("text", "yesno")


@dataclass(frozen=True)
class Table:
    name: str
    title: str
    note: str
    columns: list[Column]
    rows: list[dict[str, Any]]
    folded: bool = False
    leads: bool = False  # stands before the figures

    def numbers(self) -> list[dict[str, Any]]:
        """The rows with their numbers; of a column `within` an interval also KEY_wide, whether that is too wide."""
        keys = [key for c in self.columns for key in (c.key, c.to) if key]
        wide = [c for c in self.columns if c.within]
        return [
            {key: row.get(key) for key in keys} | {f"{c.key}_wide": c.is_wide(row) for c in wide} for row in self.rows
        ]

    @property
    def notes(self) -> str:
        """The note, and where a value is only "about", which run would narrow it."""
        wide = any(c.is_wide(row) for c in self.columns for row in self.rows)
        return f"{self.note} Where a value is only about right, {NARROWED}.".strip() if wide else self.note

# SPDX-License-Identifier: Apache-2.0
"""Answers as text for a terminal."""

from __future__ import annotations

import math
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from iocast.errors import printable
from iocast.runs.phases import BYTES
from iocast.records.forecast import Ends
from iocast.records.quantities import ACCELERATORS, unit_of

SCALES = {
    "rate": [("M/s", 1e6), ("k/s", 1e3), ("/s", 1.0)],
    "bandwidth": [("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0)],
    "bytes": [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)],
    "share": [("%", 1e-2)],
    "": [("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)],
}
"""Units by kind of quantity, the largest first; "" for times."""


def rate_kind(answer: Mapping[str, Any]) -> str:
    """How a rate is written: a "bandwidth" where the answer or row that holds it counts bytes."""
    return "bandwidth" if answer.get("unit") == BYTES else "rate"


def kind_of_row(row: Mapping[str, Any]) -> str:
    """How the values of a row with a `quantity` are written."""
    return rate_kind(row) if row["quantity"] == "rate" else str(row["quantity"])


def quantity(name: str, value: float | None) -> str:
    """Three significant digits and a unit: "12.3 us", "45.6 k/s"; of a "bandwidth" "7.89 GB/s"."""
    if value is None:
        return "-"
    kind = {"bytes": "bandwidth"}.get(unit_of(name), unit_of(name)) if name in ACCELERATORS else name
    scales = SCALES.get(kind, SCALES[""])
    unit, scale = next(((u, s) for u, s in scales if abs(value) >= s), scales[-1])
    digits = max(0, 2 - math.floor(math.log10(abs(value / scale)))) if value else 0
    return f"{value / scale:.{min(digits, 3)}f} {unit}"


TOO_WIDE = 30.0
"""Upper over lower end of an interval, from which on its middle is only "about"."""
NOT_KNOWN = 1e6
"""Upper over lower end from which on the middle says nothing."""
MAGNITUDE = 100.0
"""Largest over smallest of all simple rules, up to which they are a range."""
NARROWED = "a run nearer to this scale narrows it: iocast plan proposes one"
CHANCE = 0.05
"""Largest probability at which errors of one sign are taken for more than chance."""
RAREST = 0.001
"""Probability below which chance is printed as less than that."""


def one_sided(errors: Sequence[float]) -> str:
    """A sentence where more errors have one sign than chance gives (two-sided sign test); else ""."""
    signs = [error > 0 for error in errors if error]
    more = max(sum(signs), len(signs) - sum(signs))
    chance = min(1.0, 2 * sum(math.comb(len(signs), k) for k in range(more, len(signs) + 1)) / 2 ** len(signs))
    if chance > CHANCE:
        return ""
    rarely = f"{100 * chance:.1g} %" if chance >= RAREST else f"less than {100 * RAREST:g} %"
    side, tends = ("above", "high") if 2 * sum(signs) > len(signs) else ("below", "low")
    return (
        f"{more} of {len(signs)} forecasts were {side} the measurement (by chance: {rarely}): they tend to be too "
        f"{tends}."
    )


def percent(error: float | None) -> str:
    return "-" if error is None else f"{100 * error:+.0f} %"


def terminal_columns() -> int | None:
    """Width of the terminal that standard output goes to; None where it goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.,]+([eE][+-]?\d+)?( ?%| [\w/µ]+)?$)")
"""How a text begins that a spreadsheet would compute."""


def cell(value: Any) -> Any:
    """A value for a CSV file: text that a spreadsheet would take for a formula has an apostrophe before it, and what a
    terminal would act on is escaped."""
    if not isinstance(value, str):
        return value
    return printable("'" * bool(_FORMULA.match(value)) + value)


def table(header: list[str], rows: list[list[str]], keys: int = 1) -> str:
    """Left-aligned first column, the others to the right. On a terminal that is too narrow the columns stand in several
    tables, each with the first `keys` columns."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    room = terminal_columns()
    if room is not None and len(header) > keys and sum(widths) + 2 * (len(widths) - 1) > room:
        return "\n\n".join(
            _aligned([header[i] for i in part], [[row[i] for i in part] for row in rows])
            for part in _parts_within(room, widths, keys)
        )
    return _aligned(header, rows)


def _parts_within(room: int, widths: list[int], keys: int) -> list[list[int]]:
    """Columns of the tables that a wide one falls into; a part has at least one column beside the keys."""
    parts: list[list[int]] = []
    for i in range(keys, len(widths)):
        if not parts or sum(widths[j] + 2 for j in [*parts[-1], i]) - 2 > room:
            parts.append([*range(keys), i])
        else:
            parts[-1].append(i)
    return parts


def _aligned(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [
        [cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        for row in [header, *rows]
    ]
    return "\n".join("  ".join(line).rstrip() for line in lines)


def interval(kind: str, answer: Ends) -> list[str]:
    """Value and interval in words. Of an interval wider than a factor TOO_WIDE the middle is only "about"."""
    value, low, high = answer["value"], answer["low"], answer["high"]
    if low is None:
        return [quantity(kind, value), "not known"]
    between = f"{quantity(kind, low)} .. {quantity(kind, high)}"
    return [roughly(quantity(kind, value), answer), between]


def roughly(shown: str, answer: Mapping[str, Any]) -> str:
    """A value as it is shown; where the interval that it stands in is too wide to be quoted without it, "about 12.3
    k/s", or that it is not known."""
    if not too_wide(answer):
        return shown
    return f"about {shown}" if answer["high"] < NOT_KNOWN * answer["low"] else "not known"


def too_wide(answer: Mapping[str, Any]) -> bool:
    """Whether the interval is so wide that its value is no answer by itself."""
    low, high = answer.get("low"), answer.get("high")
    return low is not None and high is not None and low >= 0 and high > TOO_WIDE * max(low, 1e-300)

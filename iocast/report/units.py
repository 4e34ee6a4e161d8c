# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them: three significant digits and a unit."""

from __future__ import annotations

import math
from collections.abc import Callable

from iocast.runs.phases import BYTES
from iocast.records.quantities import unit_of

MINUS = "\N{MINUS SIGN}"
SPACE = "\N{NO-BREAK SPACE}"
TIMES = "\N{MULTIPLICATION SIGN}"
NOTHING = "\N{EN DASH}"


def digits(value: float, significant: int = 3) -> str:
    """A number with this many significant digits, never in exponent form between 0.001 and a million."""
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    rounded = round(value, significant - 1 - exponent)
    exponent = math.floor(math.log10(abs(rounded)))
    text = f"{rounded:.{max(0, significant - 1 - exponent)}f}"
    return text.replace("-", MINUS)


def _scaled(value: float, steps: list[tuple[float, str]]) -> str:
    """`value` in the largest step that it reaches once rounded, so that 999.9 us is written 1.00 ms."""
    for factor, unit in steps:
        if abs(value) / factor >= 0.9995:
            return digits(value / factor) + SPACE + unit
    factor, unit = steps[-1]
    return digits(value / factor) + SPACE + unit


def seconds(value: float | None) -> str:
    """12.3 us, 4.56 ms, 1.20 s."""
    if value is None:
        return NOTHING
    if value == 0:
        return "0" + SPACE + "s"
    return _scaled(value, [(1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")])


def repeated(each: float, times: int) -> str:
    """The time of `times` repeats of one length: 6 × 80.0 s = 480 s; of a single one 80.0 s."""
    return seconds(each) if times == 1 else f"{times:,} × {seconds(each)} = {seconds(times * each)}".replace(" ", SPACE)


def rate(value: float | None, unit: str | None = None) -> str:
    """Operations a second: 456 /s, 12.3 k/s, 1.23 M/s; bytes a second of the unit BYTES."""
    if value is None:
        return NOTHING
    if unit == BYTES:
        return bandwidth(value)
    return _scaled(value, [(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1, "/s")])


def count(value: float | None) -> str:
    """12, 4,800, 1,000,000: counts are exact."""
    return NOTHING if value is None else f"{value:,.0f}"


def error(value: float | None) -> str:
    """A relative error: +12 %, -3.4 %; from +1000 % on, the factor."""
    if value is None:
        return NOTHING
    if value >= 10:
        return TIMES + SPACE + digits(1 + value, 2)
    percent = round(100 * value, 1 if abs(value) < 0.0995 else 0)
    sign = "+" if percent > 0 else MINUS if percent < 0 else ""
    return f"{sign}{abs(percent):.{1 if abs(percent) < 10 else 0}f}{SPACE}%"


def share(value: float | None) -> str:
    """A fraction between 0 and 1: 87 %."""
    return NOTHING if value is None else f"{100 * value:.0f}{SPACE}%"


def factor(value: float | None) -> str:
    """How many times as much: 2.1 times."""
    return NOTHING if value is None else digits(value, 2)


def quantity(name: str, value: float | None) -> str:
    """A value of a quantity: `rate`, `<operation>.<quantile>`, `read.bandwidth`, `<station>.utilisation`, `seconds`,
    ..."""
    writers: dict[str, Callable[[float | None], str]]
    writers = {"rate": rate, "bytes": bandwidth, "share": share, "seconds": seconds}
    return writers[unit_of(name)](value)


def bandwidth(value: float | None) -> str:
    """12.3 GB/s."""
    return (
        NOTHING
        if value is None
        else _scaled(value, [(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s")])
    )


def chance(value: float | None) -> str:
    """A probability, never more certain than an estimate of one can be."""
    if value is None:
        return NOTHING
    if value > 0.99:
        return f"more than 99{SPACE}%"
    return f"less than 1{SPACE}%" if value < 0.01 else share(value)


def money(value: float | None) -> str:
    """Whole units of the currency, which a heading names."""
    return NOTHING if value is None else f"{value:,.0f}".replace("-", MINUS)


def span(low: str, high: str) -> str:
    """An interval; the unit is written once when both ends share it."""
    first, _, unit = low.rpartition(SPACE)
    if first and high.endswith(SPACE + unit):
        low = first
    return f"{low} to {high}"


def ranks(value: int) -> str:
    return f"{value:,}{SPACE}rank" + ("" if value == 1 else "s")


def nodes(value: int) -> str:
    return f"{value:,}{SPACE}node" + ("" if value == 1 else "s")

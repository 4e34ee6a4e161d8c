# SPDX-License-Identifier: Apache-2.0
"""Second readers of other tools' result files, to judge the importers by.

Each module reads one tool's files after that tool's own sources and manual, and shares nothing with iocast/importers.
A reader turns a file into `Printed` runs: what the file prints, as named quantities. Seconds, bytes, operations a
second throughout. `AUTHORS` says who wrote which reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


@dataclass
class Quantity:
    """A value and its relative rounding error. None means: the file does not give it, and an import must not either.

    A `derived` quantity follows from printed ones: an import may leave it out, but must not contradict it.
    """

    value: float | None
    relative: float = 1e-9
    derived: bool = False


@dataclass
class Printed:
    """A run that a file prints. `phases` maps (phase, repeat) to quantities by their key in run.json, dots between the
    levels."""

    ranks: int | None = None
    nodes: int | None = None
    command: str | None = None
    started: str | None = None
    phases: dict[tuple[str, int], dict[str, Quantity]] = field(default_factory=dict)

    def put(self, phase: str, repeat: int, **quantities: Quantity | float | None) -> None:
        """Adds quantities of a phase; `__` in a name stands for a dot."""
        known = self.phases.setdefault((phase, repeat), {})
        for name, value in quantities.items():
            known[name.replace("__", ".")] = value if isinstance(value, Quantity) else Quantity(value)


@dataclass
class Reading:
    """What a reader found in a file. `refusal` is a true reason not to import it; then there are no runs."""

    format: str
    version: str = ""
    runs: list[Printed] = field(default_factory=list)
    refusal: str = ""


Reader = Callable[[Path, str], "Reading | None"]
"""From a file and its text to what it prints; None when the file is not of the reader's format."""


def rounding(text: str) -> float:
    """Relative error of a decimal number that was rounded to its last digit."""
    digits, _, power = text.strip().lower().partition("e")
    step = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    return 0.50000001 * step / abs(float(text)) if float(text) else 1.0


def figure(text: str, scale: float = 1.0) -> Quantity:
    """A printed number times `scale`, with its rounding error."""
    return Quantity(float(text) * scale, rounding(text) + 1e-12)


def half_digit(text: str) -> float:
    """What rounding may have done to a printed number, relative to it."""
    value = abs(float(text))
    mantissa = text.lower().split("e")[0]
    step = 10.0 ** -len(mantissa.partition(".")[2])
    if "e" in text.lower():
        step *= 10.0 ** int(text.lower().split("e")[1])
    return 0.5000001 * step / value if value else 1.0


def printed(text: str, scale: float = 1.0) -> Quantity:
    """The value that a text prints, times `scale`."""
    return Quantity(float(text) * scale)


def unit_size(text: str) -> float | None:
    """Bytes of "16 MiB", "4096 bytes", "1m", "512kb"; a letter alone is binary, as IOR and mdtest take it."""
    found = re.fullmatch(r"\s*([\d.]+)\s*(?:([kmgt]?)(i?)b?(?:ytes)?)\s*", text, re.IGNORECASE)
    if not found:
        return None
    binary = found[3] or not text.strip().lower().endswith("b")
    return float(found[1]) * PREFIXES[found[2].lower() + ("i" if binary and found[2] else "")]

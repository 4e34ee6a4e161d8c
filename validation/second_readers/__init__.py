# SPDX-License-Identifier: Apache-2.0
"""Second readers of other tools' result files, to judge the importers by.

Each module reads one tool's files after that tool's own sources and manual, and shares nothing with iocast/importers.
A reader turns a file into `Printed` runs: what the file prints, as named quantities. Seconds, bytes, operations a
second throughout. `INDEPENDENT` are the formats whose reader was written by somebody who did not write the importer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


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


INDEPENDENT = {"mdtest", "ior", "io500", "md-workbench", "fio", "elbencho"}
"""Formats whose second reader is not by the importer's author; all other readers are."""

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

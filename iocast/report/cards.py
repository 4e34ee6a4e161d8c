# SPDX-License-Identifier: Apache-2.0
"""The first screen's parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from iocast.report.answers import Grid


@dataclass(frozen=True)
class Card:
    """One number of the first screen."""

    label: str
    value: str
    note: str


@dataclass(frozen=True)
class Story:
    headline: str
    question: str  # that the page answers, in the reader's words; "" where there is none
    grids: list[Grid]  # the answers
    changes: list[str]  # of a study: what would change the decision
    paragraphs: list[tuple[str, str]]  # (what it is about, one or more sentences)
    cards: list[Card]
    warnings: list[str]
    alarms: int  # the first ones of the warnings: results that contradict each other
    missing: list[str]  # what was not forecast, and why; where a simple rule was nearer
    summary: dict[str, Any]
    facts: list[tuple[str, str]] = field(default_factory=list)  # paragraphs of the first screen: how wrong, what limits
    reach: str = ""  # what the headline's ranges are, and how far beyond the measured scales it goes

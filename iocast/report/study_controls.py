# SPDX-License-Identifier: Apache-2.0
"""What a reader may turn on the page of a study: the required confidence, limits of levels, prices of parts. The page
decides anew from the samples that the answer holds."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from iocast.records.quantities import SHARES_OF_TIME, unit_of
from iocast.study.amounts import is_confident
from iocast.study.risk import PLAUSIBLE
from iocast.records.study import LevelDocument, StudyDocument

AT_ONCE = 4
"""Number of sliders that are shown at once; the others are folded."""
SPAN = 4.0
"""A slider reaches from the value over this to the value times this."""


@dataclass(frozen=True)
class Slider:
    """One number that may be turned. `kind`: confidence, level or price; `unit` says how the number is written. Of a
    "share of time" the factor is of its odds, as a level's margin is."""

    kind: str
    name: str
    label: str
    unit: str
    value: float


def sliders(study: StudyDocument) -> list[Slider]:
    """Of a study's answer: limits and prices in turn, so that both are among the first ones."""
    levels = [Slider("level", one["level"], one["level"], _unit(one), one["limit"])
              for one in study["levels"] if one["limit"] > 0]  # fmt: skip
    used = {name for design in study["designs"] for name, count in design["parts"].items() if count}
    prices = [Slider("price", name, f"price of {name}", study["currency"], float(part["price"]))
              for name, part in (study["study"].get("parts") or {}).items()
              if name in used and _price(part) > 0]  # fmt: skip
    confidence = Slider("confidence", "", "required confidence", "share", study["confidence_asked"])
    half = AT_ONCE // 2
    return [*levels[:half], *prices[:half], confidence, *levels[half:], *prices[half:]]


def _unit(level: LevelDocument) -> str:
    return "share of time" if level["quantity"] in SHARES_OF_TIME and level["limit"] < 1 else unit_of(level["quantity"])


def _price(part: Any) -> float:
    price = part.get("price") if isinstance(part, dict) else None
    return float(price) if isinstance(price, int | float) else 0.0


def desk(study: StudyDocument) -> dict[str, Any] | None:
    """What the page decides from; None for an answer without samples, of an earlier version or of no simulated
    design. `unsimulated`: designs that nothing but the budget rules out, which other prices may bring within it."""
    if not any(design.get("possible_margins") for design in study["designs"]):
        return None
    limits = study["study"].get("limits") or {}
    return {
        "confident": is_confident(study),
        "currency": study["currency"],
        "span": SPAN,
        "at_once": AT_ONCE,
        "sliders": [asdict(one) for one in sliders(study)],
        "designs": [
            {
                "id": one["id"],
                "name": one["name"],
                "cost": one["cost"],
                "parts": one["parts"],
                "simulated": one["basis"] == "simulated",
                "probability": one["probability"],
                "levels": [row["level"] for row in one["levels"]],
                "margins": [row["margin"] for row in one["levels"]],
                "possible": one.get("possible_margins", []),
            }
            for one in study["designs"]
            if one["basis"] != "beyond limits"
        ],
        "budget": limits.get("budget"),
        "unsimulated": [
            {key: one[key] for key in ("cost", "parts")}
            for one in study["designs"]
            if one["basis"] == "beyond limits"
            and all(one[what] <= limits.get(what, math.inf) for what in ("watts", "rack_units"))
        ],
        "plausible": PLAUSIBLE,
        "upper": {one["level"]: one["upper"] for one in study["levels"]},
    }

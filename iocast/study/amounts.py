# SPDX-License-Identifier: Apache-2.0
"""Numbers of a study's answer as they are printed, and which of its rows is tightest."""

from __future__ import annotations

import math
from typing import Any

from iocast.wording import text
from iocast.records.quantities import SHARES_OF_TIME, odds, unit_of
from iocast.study.risk import PLAUSIBLE
from iocast.records.study import StudyDocument, DesignDocument, LevelRow, Uncertain

Json = dict[str, Any]
NO_WAIT = 1e-3
"""Time that steps wait, over that they compute, which counts as none."""


def amount(quantity: str, value: float | None) -> str:
    """A value with its unit, by the kind of quantity."""
    unit_kind = unit_of(quantity)
    if value is None:
        return "nothing"
    if unit_kind == "rate":
        return text.quantity("rate", value)
    if unit_kind == "bytes":
        unit, scale = next(
            ((u, s) for u, s in (("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)) if value >= s),
            ("B/s", 1.0),
        )
        return f"{value / scale:.3g} {unit}"
    return f"{100 * value:.0f} %" if unit_kind == "share" else text.quantity("", value)


def money(value: float, currency: str) -> str:
    """In whole units, so that differences are those of the amounts that stand beside them."""
    return f"{value:,.0f} {currency}".rstrip()


def chance(probability: float, required: float | None = None) -> str:
    """A probability, never more certain than an estimate of one can be; beside a required one with as many digits as
    leave it on its side of that."""
    limit = required or 0.0
    if probability > 0.99 and probability >= limit:
        return f"more than {max(99.0, 100 * limit):g} %"
    if probability < 0.01:
        return "less than 1 %"
    for digits in range(4):
        shown = f"{100 * probability:.{digits}f}"
        if required is None or (float(shown) >= 100 * required) == (probability >= required):
            break
    return f"{shown} %"


def is_confident(answer: StudyDocument) -> bool:
    """Whether the answer's chances are known: not where its platform has numbers that nothing measured."""
    return not answer["platform"].get("unmeasured")


def kept_with(answer: StudyDocument, probability: float | None) -> str:
    """The chance that levels are kept, where it is known."""
    if probability is None or not is_confident(answer):
        return "unknown chance"
    return chance(probability, answer["confidence_asked"])


def quoted(name: str) -> str:
    return f"\u201c{name}\u201d"


def tightest(rows: list[LevelRow]) -> list[LevelRow]:
    """Of a design's rows, one for each place where a level must hold, the one with the least margin for each level, in
    their order."""
    found: dict[str, LevelRow] = {}
    for row in rows:
        known = found.get(row["level"])
        if known is None or (row["margin"] or 0.0) < (known["margin"] or 0.0):
            found[row["level"]] = row
    return list(found.values())


def margin(row: LevelRow) -> str:
    """How far a value is on the good side of its limit, or on the other: "14 % above", "2 % short"."""
    value, limit = row["value"], row["limit"]
    if value is None:
        return "does not serve"
    kept = is_kept(row)
    if row["quantity"] in SHARES_OF_TIME and limit < 1:
        return waiting(value, limit, row["quantity"] == "au")
    times = max(row["margin"], 1 / row["margin"]) if row["margin"] else math.inf
    if times >= 2:
        return f"{times:.2g} times {'better than needed' if kept else 'worse than needed'}"
    size = percent_off(value, limit)
    return f"{size} to spare" if kept else f"missed by {size}"


def waiting(value: float, limit: float, of_work: bool) -> str:
    """The time that steps wait beside what a limit allows: "3.9 times less waiting than allowed"."""
    waits, allowed = (1 / odds(share) if of_work else odds(share) for share in (value, limit))
    if waits < NO_WAIT:
        return "no waiting"
    times = max(waits / allowed, allowed / waits)
    return f"{times:.2g} times {'less' if waits <= allowed else 'more'} waiting than allowed"


def is_kept(row: LevelRow) -> bool:
    """By the best estimate."""
    value = row["value"]
    return value is not None and (value <= row["limit"] if row["upper"] else value >= row["limit"])


def is_kept_now(answer: StudyDocument, uncertain: Uncertain) -> bool:
    """Whether the design that the answer is about keeps the level of an uncertain input by its best estimate."""
    rows = (reference(answer) or {"levels": []})["levels"]
    own = [row for row in rows if all(row[k] == uncertain[k] for k in ("level", "workload", "scale"))]
    return all(row["value"] is not None and is_kept(row) for row in own)


def percent_off(value: float, limit: float) -> str:
    off = abs(value / limit - 1)
    return f"{100 * off:.0f} %" if off >= 0.0095 else f"{100 * off:.1f} %"


def limit_of(row: LevelRow) -> str:
    """The limit as a condition: "at least 60 k/s"."""
    return f"{'at most' if row['upper'] else 'at least'} {amount(row['quantity'], row['limit'])}"


def place(row: LevelRow, answer: StudyDocument) -> str:
    """Where a level must hold: "at 1,024 clients", and of which workload where there are several."""
    ranks = next(s["ranks"] for s in answer["scales"] if s["name"] == row["scale"])
    where = f"at {ranks:,} client{'s' if ranks != 1 else ''}"
    if len(answer["workloads"]) > 1 and f"({row['workload']})" not in row["level"]:
        where += f", {row['workload']}"
    return where + (f", with {row['under']}" if row["under"] else "")


def nearness(design: DesignDocument) -> tuple[float, list[float], float]:
    """How near a design comes to keeping all levels, for max(): its probability, then its margins from the worst on,
    then its cost. Probabilities below PLAUSIBLE differ by chance alone and count as one."""
    probability = design["probability"] or 0.0
    return (
        probability if probability >= PLAUSIBLE else 0.0,
        sorted(row["margin"] or 0.0 for row in design["levels"]),
        -design["cost"],
    )


def reference(answer: StudyDocument) -> DesignDocument | None:
    """The design that the answer is about: the decision, or else the nearest miss."""
    chosen = (answer["decision"] or {}).get("id") or (answer["nearest_miss"] or {}).get("design")
    return next((d for d in answer["designs"] if d["id"] == chosen), None)


def is_priced(answer: StudyDocument) -> bool:
    """Whether any design costs anything."""
    return any(d["cost"] for d in answer["designs"])


def signed_money(difference: float, currency: str) -> str:
    """ "+900 EUR", "-100 EUR", "the same"."""
    if round(difference) == 0:
        return "the same"
    return f"{'+' if difference > 0 else '-'}{money(abs(difference), currency)}"

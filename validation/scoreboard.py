# SPDX-License-Identifier: Apache-2.0
"""What the scripts of this directory have in common: how wrong forecasts were, and the page that shows it
(docs/scoreboard.md)."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from iocast.validate import KINDS, errors  # noqa: E402

BASELINE = "closed M/M/c"
RULES = (BASELINE, "universal scalability law", "straight line", "last value")
Scores = dict[str, float]


@dataclass(frozen=True)
class Bars:
    """The targets of the project's beginning: median errors as factors less 1, and the share of measurements in
    intervals of 90 %."""

    throughput: float
    quantiles: float
    q99: float
    wasserstein: float
    coverage: tuple[float, float]
    throughput_ninth: float = np.inf  # nine in ten below


def scores(validations: list[dict[str, Any]]) -> Scores:
    """Over all rows of answers of `kind: validation`: median errors by kind of quantity, those of the closed M/M/c
    queue, coverage."""
    rows = [row for validation in validations for point in validation["points"] for row in point["rows"]]

    def errors_of(kind: str, model: str | None = None) -> list[float]:
        return [error for validation in validations for error in errors(validation, kind, model)]

    found = {"forecasts": float(len(rows))}
    for kind in KINDS:
        found[kind] = float(np.median(errors_of(kind)))
        if kind == "throughput":
            found["nine in ten"] = float(np.quantile(errors_of(kind), 0.9))
            found["throughput, last value"] = float(np.median(errors_of(kind, "last value") or [np.nan]))
        found[f"{kind}, {BASELINE}"] = float(np.median(errors_of(kind, BASELINE) or [np.nan]))
    distances = [
        d for validation in validations for point in validation["points"] for d in point["wasserstein"].values()
    ]
    found["Wasserstein"] = float(np.median(distances or [np.nan]))
    found["inside 90 %"] = float(np.mean([row["inside"] for row in rows]))
    found["high / low"] = float(np.median([row["high"] / row["low"] for row in rows]))
    found["interval score"] = float(np.mean([interval_score(row) for row in rows]))
    found["noise of throughput"] = float(
        np.median([validation["summary"]["noise"]["rate"] for validation in validations])
    )
    return found


def binomial_interval(inside: int, count: int) -> tuple[float, float]:
    """The exact 95 % interval of a share (Clopper & Pearson 1934)."""
    low = float(beta.ppf(0.025, inside, count - inside + 1)) if inside else 0.0
    return low, float(beta.ppf(0.975, inside + 1, count - inside)) if inside < count else 1.0


def share_interval(validations: list[dict[str, Any]]) -> str:
    """That of the share inside 90 % intervals, as rows of the same system were each of its own: "87.3 to 92.4 %"."""
    inside = [bool(row["inside"]) for one in validations for point in one["points"] for row in point["rows"]]
    low, high = binomial_interval(sum(inside), len(inside))
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def interval_score(row: dict[str, Any]) -> float:
    """Of a 90 % interval on the logarithmic scale: its width, and twenty times how far the measured value lies outside;
    less is better (Gneiting & Raftery 2007, eq. 43)."""
    low, high, measured = (float(np.log(row[key])) for key in ("low", "high", "measured"))
    return high - low + 20 * max(0.0, low - measured, measured - high)


def behind_rules(validations: list[dict[str, Any]], by: float = 0.03) -> list[str]:
    """Kinds of quantity and simple rules whose median error is smaller than the forecasts' by more than `by`."""
    found = []
    for kind in KINDS:
        ours = float(np.median([error for validation in validations for error in errors(validation, kind)]))
        for rule in RULES:
            its = [error for validation in validations for error in errors(validation, kind, rule)]
            if its and ours - float(np.median(its)) > by:
                found.append(f"{kind} behind {rule} ({100 * ours:.0f} and {100 * float(np.median(its)):.0f} %)")
    return found


def judge(found: Scores, bars: Bars) -> list[str]:
    """Names of the bars that are missed."""
    most = {
        "throughput": bars.throughput,
        "nine in ten": bars.throughput_ninth,
        "q50 to q95": bars.quantiles,
        "q99": bars.q99,
        "Wasserstein": bars.wasserstein,
    }
    low, high = bars.coverage
    return [name for name, limit in most.items() if found[name] > limit] + (
        [] if low <= found["inside 90 %"] <= high else ["inside 90 %"]
    )


def error_table(title: str, rows: dict[str, Scores], more: dict[str, dict[str, str]] | None = None) -> list[str]:
    """As Markdown, a line each; `more` are further cells of a row by column."""
    further = list(next(iter(more.values()))) if more else []
    columns = list(next(iter(rows.values())))
    lines = [f"| {title} | " + " | ".join(further + columns) + " |", "|---" * (1 + len(further) + len(columns)) + "|"]
    for name, found in rows.items():
        cells = [(more or {})[name][column] for column in further]
        for column, value in found.items():
            text = (
                f"{value:.0f}"
                if column == "forecasts"
                else f"{value:.1f}"
                if column == "high / low"
                else f"{value:.2f}"
                if column == "interval score"
                else f"{100 * value:.{0 if value > 0.0995 else 1}f} %"
            )
            cells.append("-" if np.isnan(value) else text)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def put(page: Path, section: str, lines: list[str]) -> None:
    """Replaces what stands on the page between the marks of this section, which must be there."""
    begin, end = f"<!-- {section} -->", f"<!-- end of {section} -->"
    text = page.read_text()
    if begin not in text or end not in text:
        raise SystemExit(f"The page '{page}' has no marks '{begin}' and '{end}'; write them where the table belongs.")
    before, _, rest = text.partition(begin)
    page.write_text("\n".join([before + begin, "", *lines, "", end]) + rest.partition(end)[2])

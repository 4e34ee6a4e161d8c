# SPDX-License-Identifier: Apache-2.0
"""Forecasts of several phases as text."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from iocast.forecasts.cautions import of_all
from iocast.wording.text import interval, one_sided, percent, quantity, rate_kind, table, too_wide
from iocast.wording.checked import Nearer, nearer_text
from iocast.wording.notes import sentences
from iocast.wording.forecast import bulk_text, rule_beside, total_text
from iocast.runs.total import moves_bulk
from iocast.forecast import Answer, PhaseForecast
from iocast.records.fitted import HoldOut
from iocast.records.forecast import ForecastDocument


LIKELY = 0.05
"""Share of curves that fall, from which on it is printed. Chosen by hand."""


def forecasts_text(answer: Answer) -> str:
    """A row for each phase and target: the largest measurement, the forecast, its interval, a simple rule, and
    the held-out error."""
    rows = []
    checked: list[float] = []
    nearer: list[Nearer] = []
    for one in answer.phases:
        if one.refusal or one.largest is None:
            continue
        held_out = [row["error"] for row in one.holdout.get("rows", []) if row["quantity"] == "rate"]
        checked += held_out[:1]
        for made in one.forecasts:
            where, printed = made["placement"], made["quantities"]["rate"]
            kind = rate_kind(printed)
            value, between = interval(kind, printed)
            rows.append(
                [
                    one.phase,
                    f"{where['nodes']} x {where['ranks_per_node']}",
                    f"{quantity(kind, one.largest.value('rate'))} at "
                    f"{'x'.join(f'{n:g}' for n in one.largest.first.placement)}",
                    value,
                    between,
                    rule_beside(made, partial(quantity, kind)) or "-",
                    _held_out_cell(one.holdout, made) if held_out else "not held out",
                ]
            )
        if held_out and one.forecasts and (rule := one.forecasts[0].get("rule")):
            nearer.append(Nearer(one.phase, rule["name"], abs(rule["error"]), abs(held_out[0])))
    level = next(f["level"] for one in answer.phases for f in one.forecasts)
    header = [
        "phase",
        "nodes x ranks",
        "largest measured",
        "forecast",
        f"{100 * level:g} % interval",
        "a simple rule",
        "held-out error",
    ]
    lines = [bulk_text(made) for one in answer.phases for made in one.forecasts if moves_bulk(made)]
    lines += [table(header, rows, keys=2), ""]
    lines += [f"At {where['nodes']} x {where['ranks_per_node']}: {total_text(one)}" for where, one in answer.totals()]
    shown = sentences(of_all([made for one in answer.phases for made in one.forecasts]))
    lines += [f"Note: {sentence}" for sentence in shown[:3]]
    left = len(shown) - 3
    lines += [f"{left} further note{' is' if left == 1 else 's are'} in the report."] if left > 0 else []
    lines += _falls(answer.phases)
    lines += [sentence] if (sentence := _narrowing(answer.phases)) else []
    lines += [f"Held-out errors: {sentence}"] if (sentence := one_sided(checked)) else []
    lines += [sentence] if (sentence := nearer_text(nearer, lambda size: percent(size).removeprefix("+"))) else []
    lines += [*answer.not_forecast(), *answer.series]
    runs = "runs, " if (answer.out / "runs").is_dir() else ""
    lines.append(
        f"Written to {answer.out}: {runs}fitted platforms, forecasts; the page for a board is {answer.report}."
    )
    return "\n".join(lines)


def _falls(phases: Sequence[PhaseForecast]) -> list[str]:
    """How likely the rate of each phase falls until its farthest target, where that was fitted to rates alone."""
    farthest = [(one.phase, max(one.forecasts, key=_ranks)) for one in phases if one.forecasts]
    found = [(phase, one["growth"]) for phase, one in farthest if "growth" in one]
    several = len(phases) > 1
    return list(
        dict.fromkeys(
            f"{phase}: {growth['text']}" if several and growth["falls"] is not None else growth["text"]
            for phase, growth in found
            if growth["falls"] is None or growth["falls"] >= LIKELY
        )
    )


def _ranks(forecast: ForecastDocument) -> int:
    return forecast["placement"]["ranks"]


def _narrowing(phases: Sequence[PhaseForecast]) -> str:
    """How the run is found that narrows the first forecast whose interval is too wide; "" where none is."""
    for one in phases:
        for made in one.forecasts:
            if too_wide(made["quantities"]["rate"]):
                where = made["placement"]
                target = f"{where['nodes']}x{where['ranks_per_node']:g}"
                what, option = ("nodes", "--nodes") if where["nodes"] > 1 else ("ranks of a node", "--ppn")
                return (
                    f"Where a value is only about right, a run nearer to this scale narrows it. With N {what} that you "
                    f"can measure: iocast plan --platform {shlex.quote(str(one.fitted))} {option} N --target {target}"
                )
    return ""


def _held_out_cell(holdout: HoldOut, made: Mapping[str, Any]) -> str:
    """The error at the held-out scale; beside a forecast farther away, how far that was."""
    error = next(row["error"] for row in holdout["rows"] if row["quantity"] == "rate")
    fitted, ranks = holdout.get("fitted_up_to"), holdout.get("ranks")
    if not fitted or not ranks or made["extrapolation"] <= ranks / fitted:
        return percent(error)
    return f"{percent(error)} at {ranks / fitted:.2g} times"

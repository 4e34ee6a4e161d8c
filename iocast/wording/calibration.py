# SPDX-License-Identifier: Apache-2.0
"""A calibration, what it leaves open, and the runs that are proposed, as text for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING
from collections.abc import Iterable

from iocast.wording.text import kind_of_row, percent, quantity, table
from iocast.records.fitted import FittedSection, WARNED_OF

if TYPE_CHECKING:
    from iocast.planning.proposed import Place, Proposed
    from iocast.records.validation import SelftestDocument


def calibration_text(fitted: FittedSection) -> str:
    lines = (
        [f"Best structure: {', '.join(f'{k} {v}' for k, v in fitted['structure'].items())}"]
        if fitted["structure"]
        else []
    )
    rows = []
    for path, p in fitted["parameters"].items():
        value, low, high = (
            quantity("", p[key]) if p["unit"] == "s" else f"{p[key]:.3g}" for key in ("value", "low", "high")
        )
        rows.append([path, value, f"{low} .. {high}"])
    lines += ["", table(["fitted", "value", "90 % range"], rows)] if rows else []
    holdout = fitted["holdout"]
    if holdout:
        shown_rows = [
            [
                f"{r['point']} {r['quantity']}",
                quantity(kind_of_row(r), r["measured"]),
                quantity(kind_of_row(r), r["forecast"]),
                percent(r["error"]),
            ]
            for r in holdout["rows"]
        ]
        lines += [
            "",
            f"Held out: {' and '.join(map(str, holdout.get('scales') or [holdout['ranks']]))} ranks, forecast by a fit "
            f"to at most {holdout['fitted_up_to']}",
        ]
        lines.append(table(["", "measured", "forecast", "error"], shown_rows))
    shown = [one["text"] for one in fitted.get("findings") or [] if one["kind"] not in WARNED_OF]
    lines += ["", findings_text(shown), ""] if shown else []
    return "\n".join([*lines, *fitted["notes"]]).lstrip()


def findings_text(found: Iterable[str]) -> str:
    """What measurements show by themselves, a finding a line."""
    lines = [f"- {text}" for text in found]
    if not lines:
        return "The measurements show nothing that a forecast should know of."
    return "\n".join(["The measurements show:", *lines])


PURPOSES = {
    "needed": "a calibration needs it",
    "narrows": "narrows the forecast most for its time",
    "checks": "shows what has no place in the model",
}


def plan_text(requested: Place, proposed: list[Proposed], repeats: int, length: float | None, out: str | None) -> str:
    """A campaign that is proposed, in the order in which its measurements were chosen.

    @param length seconds of a rank alone; None where the runs have the size of those that were measured
    @param out the campaign file; None where iocast measure can't make the runs"""
    if not proposed:
        return (
            f"No measurement within these nodes, ranks and time would narrow a forecast of {requested.text}; nothing "
            "is written. Allow more of them."
        )
    rows = [
        [one.place.text, "-" if one.seconds is None else f"{one.seconds:.0f} s", one.width, PURPOSES[one.purpose]]
        for one in proposed
    ]
    header = ["", "a run", f"throughput of {requested.text} then within", ""]
    known = {1: proposed[0].seconds is not None, 2: proposed[0].between is not None, 3: proposed[0].between is None}
    kept = [i for i in range(len(header)) if known.get(i, True)]
    lines = [table([header[i] for i in kept], [[row[i] for i in kept] for row in rows]), ""]
    if proposed[0].between is not None:
        lines.append(
            f"Now within {proposed[0].width_before}. Each range is of forecasts made again, with the rates that "
            "the run may measure."
        )
        if len(proposed) > 1:
            lines.append("A row counts on the runs of those above it.")
    if out is not None:
        total = repeats * sum(one.seconds or 0 for one in proposed)
        in_all = f"{total:.0f} s" if total < 120 else f"{total / 60:.0f} minutes"
        until = " until a pilot run knows better" if length is not None else ""
        takes = f": some {in_all} in all, by the platform's own times{until}" if total else ""
        each = "with the settings of those that were measured" if length is None else f"{length:g} s for a rank alone"
        lines.append(f"Each {repeats} times, in shuffled order, {each}{takes}.")
    if out is None:
        lines.append(
            "No campaign is written: iocast measure has no workload like that of the results. Make these runs with the "
            "tool and settings of the results, then give all files to iocast forecast."
        )
    else:
        lines.append(f"Written to {out}; iocast measure DIRECTORY --campaign {out} makes the runs.")
    return "\n".join(lines)


def next_text(open_choices: dict[str, dict[str, float]], requested: Place, proposed: list[Proposed]) -> str:
    """What measurements left open, and which one would settle most of it."""
    lines = [
        f"Left open: {choice} {' or '.join(f'{option} ({100 * weight:.0f} %)' for option, weight in options.items())}."
        for choice, options in open_choices.items()
        if len(options) > 1
    ]
    if proposed:
        lines.append(f"To measure next, for a forecast of {requested.text}: {proposed[0].text}.")
    else:
        lines.append(f"No single measurement up to {requested.text} would narrow the forecast there.")
    return "\n".join(lines)


def selftest_text(answer: SelftestDocument) -> str:
    services = [
        [name, str(one["count"]), quantity("", one["mean"]), quantity("", one["truth"]), f"{one['deviation']:.1f}"]
        for name, one in answer["services"].items()
    ]
    errors = [
        [kind, f"{100 * one['error']:.1f} %", f"{100 * one['allowed']:.0f} %"] for kind, one in answer["errors"].items()
    ]
    lines = [f"The file system '{answer['truth']}' served, as its own log says:"]
    lines += [table(["", "requests", "mean service", "truth", "standard errors off"], services), ""]
    lines += [
        f"Found, as '{answer['family']}': {', '.join(f'{k} {v}' for k, v in answer['structure'].items())}",
        *answer["notes"],
        "",
    ]
    lines += [
        "Forecasts at four times the ranks, made before they were measured:",
        table(["", "median error", "allowed"], errors),
    ]
    if (covered := answer["coverage"]) is not None:
        lines += [f"{100 * covered:.0f} % of the measured values lie inside their 90 % intervals.", ""]
    return "\n".join([*lines, "Passed." if answer["passed"] else "Not passed."])

# SPDX-License-Identifier: Apache-2.0
"""A knee search as text for a terminal."""

from __future__ import annotations

from typing import Any

from iocast.study.levels import parse_level
from iocast.text import quantity, table

REASONS = {
    "narrow": "The interval is as narrow as requested.",
    "time": "The time budget is spent: the interval is as wide as it is; the same command with a larger --budget goes "
    "on.",
    "never met": "Not even the unloaded system keeps the levels.",
    "greatest power": "Runs at the lowest load agree that power does not rise there.",
    "always met": "No load that these ranks, or the limit on their rate, allow misses.",
    "unfinished": "The search was not finished; the same command goes on.",
}


def load_text(over: str, load: float | None, ranks: int) -> str:
    """ "812 /s a rank", or "T = 3.4 (6.8 ranks asking)"."""
    if load is None:
        return "-"
    if over == "rate":
        return f"{quantity('rate', load)} a rank"
    return f"T = {max(0.0, ranks / load - 1):.3g} ({load:.3g} ranks asking)"


def knee_text(knee: dict[str, Any]) -> str:
    over, ranks, where, answer = knee["over"], knee["placement"]["ranks"], knee["knee"], knee["answer"]
    levels = [level["text"] for level in knee["levels"]]
    header = [
        "rate a rank" if over == "rate" else "T",
        "runs",
        *(["met"] if levels else []),
        "throughput",
        "response",
        *([] if levels else ["power"]),
        *levels,
        "",
    ]
    rows = []
    for entry in knee["loads"]:
        row = [
            f"{entry['rate_of_a_rank']:.4g}/s" if over == "rate" else f"{entry['waiting_factor']:.4g}",
            str(len(entry["runs"])),
        ]
        row += [str(entry["met"])] if levels else []
        row += [quantity("rate", entry["rate"]), quantity("", entry["response"])]
        row += [] if levels else ["-" if entry["power"] is None else f"{entry['power']:.4g}"]
        row += [quantity("", entry["values"][text]) for text in levels]
        behind = "cut off" if entry["cut_off"] else "" if entry["kept_up"] == len(entry["runs"]) else "fell behind"
        rows.append([*row, behind if not levels else f"{entry['verdict']}{', ' + behind if behind else ''}"])
    what = " and ".join(levels) or "greatest power (throughput / response time)"
    lines = [f"Knee of {knee['workload']}, {ranks} ranks: {what}", table(header, rows), ""]
    sure = f"{100 * knee['confidence']:.0f} %"
    if answer is None:
        unloaded = knee["unloaded"]
        if unloaded and not levels:
            lines.append(
                f"Power was not seen to rise above the lowest load, {load_text(over, unloaded['load'], ranks)}: "
                "the greatest power is at that load or below, or these runs are too few to show the rise."
            )
        elif unloaded:
            printed = ", ".join(f"{text} was {quantity('', value)}" for text, value in unloaded["values"].items())
            lines.append(
                f"No load meets the level{'s' if len(levels) > 1 else ''}: at the lowest load, "
                f"{load_text(over, unloaded['load'], ranks)}, {printed} (median)."
            )
    else:
        rate, response = answer["rate"], answer["response"]
        title = "Highest load that meets the levels" if levels else "Load of the greatest power"
        lines.append(
            f"{title}: {load_text(over, answer['load'], ranks)}: {_span('rate', rate)} in all, mean response "
            f"{_span('', response)}."
        )
        for text, value in answer["values"].items():
            lines.append(f"  {text}: {_span('', value)}, limit {quantity('', parse_level(text).limit)}")
        if levels:
            fresh = (
                f"Confirmed there by {answer['confirmed']} fresh runs"
                if answer["confirmed"]
                else "NOT confirmed by fresh runs"
            )
            lines.append(f"  {fresh}.")
        elif answer["confirmed"]:
            lines.append(f"  measured there with {answer['confirmed']} fresh runs.")
        low, high = where["low"], where["high"]
        if high is None:
            lines.append(f"The knee is at {load_text(over, low, ranks)} or above: these runs don't say how far.")
        else:
            estimate = (
                f", estimate {load_text(over, where['estimate'], ranks)}" if where["estimate"] is not None else ""
            )
            lines.append(
                f"The knee is between {load_text(over, low, ranks)} and {load_text(over, high, ranks)} "
                f"({sure}){estimate}."
            )
    if knee["bounds"]:
        bounds = knee["bounds"]
        lines.append(
            f"Bounds: an operation takes {quantity('', bounds['demand'])} without load, the most was "
            f"{quantity('rate', bounds['saturated_rate'])}: from N* = D / D_max = {bounds['ranks']:.3g} ranks asking "
            "all the time on, some must wait."
        )
    return "\n".join([*lines, f"{why_ended(knee)} {knee['runs']} runs, {knee['seconds']:.0f} s.", *knee["notes"]])


def why_ended(knee: dict[str, Any]) -> str:
    """Of the content of knee.json: why the search ended, as a sentence."""
    for_power = not knee["levels"] and knee["reason"] == "never met"
    return REASONS["greatest power" if for_power else knee["reason"]]


def _span(name: str, value: dict[str, float | None]) -> str:
    known = quantity(name, value["value"])
    return (
        known
        if value["low"] is None
        else f"{known} ({quantity(name, value['low'])} .. {quantity(name, value['high'])})"
    )

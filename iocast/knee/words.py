# SPDX-License-Identifier: Apache-2.0
"""A knee search as text for a terminal."""

from __future__ import annotations

from iocast.records.knee import KneeDocument, MeanOfRuns
from iocast.study.levels import ANY, parse_level
from iocast.wording.text import quantity, table

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


def knee_text(knee: KneeDocument) -> str:
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
            f"{entry['rate_of_a_rank']:.4g}/s"
            if "rate_of_a_rank" in entry
            else f"{entry.get('waiting_factor', 0):.4g}",
            str(len(entry["runs"])),
        ]
        row += [str(entry["met"])] if levels else []
        row += [quantity("rate", entry["rate"]), quantity("", entry["response"])]
        row += [] if levels else ["-" if entry["power"] is None else f"{entry['power']:.4g}"]
        row += [_of_level(text, entry["values"][text]) for text in levels]
        behind = "cut off" if entry["cut_off"] else "" if entry["kept_up"] == len(entry["runs"]) else "fell behind"
        rows.append([*row, behind if not levels else f"{entry.get('verdict', '')}{', ' + behind if behind else ''}"])
    what = " and ".join(levels) or "greatest power (throughput / response time)"
    lines = [f"Knee of {knee['workload']}, {ranks} ranks: {what}", counted(knee), table(header, rows), ""]
    sure = f"{100 * knee['confidence']:.0f} %"
    if answer is None:
        lines.append(headline(knee))
    else:
        lines.append(headline(knee))
        lines.append(f"  In all: {_span('rate', answer['rate'])}, mean response {_span('', answer['response'])}.")
        lines += [f"  {op} alone: {_span('rate', answer['rates'][op])}." for op in own_operations(knee)]
        for text, value in answer["values"].items():
            name = parse_level(text).quantity
            lines.append(f"  {text}: {_span(name, value)}, limit {quantity(name, parse_level(text).limit)}")
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


def counted(knee: KneeDocument) -> str:
    """Which operations the load and the throughput count, as a sentence."""
    operations, phase = knee.get("operations"), knee["phase"]
    if not operations:  # an older file
        return ""
    if len(operations) == 1:
        return f"Loads and throughput count the operation of phase {phase}: {operations[0]}."
    return f"Loads and throughput count all operations of phase {phase}: {_listed(operations)}."


def question(knee: KneeDocument) -> str:
    """What the search answers, as a question."""
    placement = knee["placement"]
    who = f"{placement['ranks']} rank{'s' * (placement['ranks'] != 1)} of {knee['workload']}"
    if knee["levels"]:
        return f"How much load can {who} put on the storage with {_levels(knee)}?"
    return f"At which load of {who} is power (throughput / response time) greatest?"


def headline(knee: KneeDocument) -> str:
    """The answer in one or two sentences, for terminal and report."""
    over, ranks, answer, unloaded = knee["over"], knee["placement"]["ranks"], knee["answer"], knee["unloaded"]
    if answer is not None:
        title = f"Highest load that meets {_levels(knee)}" if knee["levels"] else "Load of the greatest power"
        own = [
            f"{op} alone {quantity('rate', answer['rates'][op]['value'])}"
            for op in own_operations(knee)
            if answer["rates"][op]["value"] is not None
        ]
        rates = ", ".join([f"{quantity('rate', answer['rate']['value'])} in all", *own])
        return f"{title}: {load_text(over, answer['load'], ranks)}, {rates}. {confirmation(knee)}"
    if unloaded is None:
        return "No load was measured."
    lowest = load_text(over, unloaded["load"], ranks)
    if not knee["levels"]:
        return (
            f"Power was not seen to rise above the lowest load, {lowest}: "
            "the greatest power is at that load or below, or these runs are too few to show the rise."
        )
    printed = ", ".join(f"{text} was {_of_level(text, value)}" for text, value in unloaded["values"].items())
    return (
        f"No load meets the level{'s' if len(knee['levels']) > 1 else ''}: at the lowest load, {lowest}, {printed} "
        "(median)."
    )


def confirmation(knee: KneeDocument) -> str:
    """Whether fresh runs at the answer confirm it, as a sentence; "" without an answer."""
    if knee["answer"] is None:
        return ""
    fresh = knee["answer"]["confirmed"]
    if not knee["levels"]:
        return f"Measured there with {fresh} fresh runs." if fresh else "NOT measured there with fresh runs."
    return f"Confirmed there by {fresh} fresh runs." if fresh else "NOT confirmed by fresh runs."


def own_operations(knee: KneeDocument) -> list[str]:
    """Operations whose rates stand beside that of all: those of the levels; of a level on `any`, or without one, all.
    None where there is one operation only."""
    operations = knee.get("operations") or []  # which older files don't have
    if len(operations) == 1:
        return []
    subjects = {level["quantity"].rpartition(".")[0] for level in knee["levels"]}
    return [op for op in operations if op in subjects or ANY in subjects or not subjects]


def _levels(knee: KneeDocument) -> str:
    return _listed([level["text"] for level in knee["levels"]])


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def why_ended(knee: KneeDocument) -> str:
    """Of the content of knee.json: why the search ended, as a sentence."""
    for_power = not knee["levels"] and knee["reason"] == "never met"
    return REASONS["greatest power" if for_power else knee["reason"]]


def _of_level(text: str, value: float | None) -> str:
    return quantity(parse_level(text).quantity, value)


def _span(name: str, value: MeanOfRuns) -> str:
    known = quantity(name, value["value"])
    return (
        known
        if value["low"] is None
        else f"{known} ({quantity(name, value['low'])} .. {quantity(name, value['high'])})"
    )

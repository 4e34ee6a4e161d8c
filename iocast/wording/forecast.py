# SPDX-License-Identifier: Apache-2.0
"""A forecast as text for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from iocast.records.forecast import RANGE, Ends, ForecastDocument, Numbers, PhaseDocument, Range, Total, scaled
from iocast.wording.text import MAGNITUDE, interval, percent, quantity, rate_kind, roughly, table, too_wide
from iocast.runs.total import bytes_per_second, moves_bulk, range_of_seconds


@dataclass(frozen=True)
class Rule:
    """A simple rule beside a forecast: its rate at the target, and its error at the largest measured scale, which it
    forecast from the smaller ones; None where nothing can be held out."""

    name: str
    rate: float
    error: float | None

    @property
    def text(self) -> str:
        return self.name if self.error is None else f"{self.name}, {percent(self.error)}"


def rule_of(made: PhaseDocument) -> Rule | None:
    """The rule with the smallest held-out error. Where none is held out, and in forecasts of before: the last value,
    which is never below the largest measured scale."""
    best = made.get("rule")
    for name, error in ((best["name"], best["error"]) if best else ("", None), ("last value", None)):
        value = made.get("baselines", {}).get(name, {}).get("rate")
        if isinstance(value, int | float) and value > 0:
            return Rule(name, float(value), error)
    return None


def rule_beside(made: PhaseDocument, shown: Callable[[float], str]) -> str | None:
    """The best simple rule in the cell of a table. Where the interval is too wide for a value, what all rules say: the
    best one's value would be no answer either.

    @param shown writes a rate"""
    rule = rule_of(made)
    if rule is None:
        return None
    if not too_wide(made["quantities"]["rate"]):
        return f"{shown(rule.rate)} ({rule.text})"
    # A line can fall below zero: it says nothing.
    rates = {n: r for n, one in made["baselines"].items() if isinstance(r := one.get("rate"), int | float) and r > 0}
    low, high = min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)
    if rates[high] <= MAGNITUDE * rates[low]:
        return f"{shown(rates[low])} .. {shown(rates[high])} (all rules)"
    return f"rules disagree: {shown(rates[low])} ({low}) .. {shown(rates[high])} ({high})"


def label_of_family(phase: PhaseDocument) -> str:
    """What the range of measured systems is called that stands beside a forecast; "" where there is none."""
    family = phase.get("family")
    return family["label"] if family else ""


def ranks_text(ranks: int) -> str:
    """1 rank, 4,608 ranks."""
    return f"{ranks:,} rank{'s' * (ranks != 1)}"


def forecast_text(forecast: ForecastDocument) -> str:
    where = forecast["placement"]
    assumed = (
        ", ranks a node as in the largest measurement"
        if forecast.get("ranks_per_node_assumed") and where["ranks_per_node"] > 1
        else ""
    )
    assumed += ", ranks lie cyclically" if where.get("order") == "cyclic" else ""
    phases: list[PhaseDocument] = [forecast, *forecast.get("further_phases", [])]
    known = any(one["low"] is not None for phase in phases for one in phase["quantities"].values())
    level = "" if forecast.get("family") or not known else f", {100 * forecast['level']:.0f} % intervals"
    lines = [
        f"Forecast for {ranks_text(where['ranks'])} ({where['nodes']} x {where['ranks_per_node']}{assumed}), T = "
        f"{forecast['waiting_factor']:g}{level}"
    ]
    if whole := forecast.get("total"):
        lines.append(total_text(whole, label_of_family(forecast)))
    numbers = (forecast.get("platform") or {}).get("numbers", Numbers.FITTED.value)
    for one in phases:
        lines += _phase_lines(one, is_fitted=numbers == Numbers.FITTED.value)
    if known and (draws := forecast.get("draws")) and draws["of"]:
        lines.append(
            f"Intervals rest on {draws['used']} of {draws['of']} platforms that the measurements leave open, "
            f"{draws['how']}."
        )
    return "\n".join([*lines, *forecast.get("basis", []), *forecast["warnings"]])


def seconds_range(one: PhaseDocument) -> str:
    """The length of a phase at the ends of its family's range, "" where there is none."""
    ends = range_of_seconds(one)
    return _seconds_between(ends) if ends else ""


def _seconds_between(ends: Range | Ends) -> str:
    return f"{quantity('', ends['low'])} .. {quantity('', ends['high'])}"


def total_text(found: Total, around: str = "") -> str:
    """The key `total` of a forecast as a sentence. around: what the family's range is called."""
    names = ", ".join(
        name if repeats == 1 else f"{repeats} times {name}"
        for name, repeats in zip(found["phases"], found["repeats"], strict=True)
    )
    if found["unknown"]:
        return f"No total over the phases ({names}): how long {' and '.join(found['unknown'])} lasts is not known."
    seconds, ends = found["seconds"], found["range"]
    if too_wide(seconds):
        middle = roughly(quantity("", seconds["value"]), seconds)
        return f"All phases together ({names}): {_seconds_between(seconds)} long, {middle}."
    text = f"All phases together ({names}): {quantity('', seconds['value'])} long"
    text += f" ({_seconds_between(seconds)})" if seconds["low"] is not None else ""
    text += f" ({around}: {_seconds_between(ends)})" if ends else ""
    if found["bytes"]:
        moved = quantity("bandwidth", found["bytes"]).removesuffix("/s")
        text += f"; {moved}, {quantity('bandwidth', found['bytes_per_second'])} in the mean"
    return f"{text}; {quantity('rate', found['rate'])} in the mean."


def bulk_text(made: ForecastDocument) -> str:
    """Time and bandwidth of a forecast phase that moves bytes in bulk, each with its interval where one is known."""
    where, rate, seconds = made["placement"], made["quantities"]["rate"], made.get("seconds")
    times = made.get("repeats", 1)
    each = bytes_per_second(made) / rate["value"]
    moved = scaled(rate, each)
    known: list[tuple[str, str, Ends]] = [(f"{times} times " if times > 1 else "", "", seconds)] if seconds else []
    facts = []
    for before, kind, answer in [*known, ("", "bandwidth", moved)]:
        value, between = interval(kind, answer)
        facts.append(f"{before}{value}" + (f" ({between})" if answer["low"] is not None else ""))
    return f"{made['phase']} at {where['nodes']} x {where['ranks_per_node']}: {' at '.join(facts)}."


def _phase_lines(one: PhaseDocument, *, is_fitted: bool) -> list[str]:
    """A phase of a forecast: its rates, of each operation its rate and bandwidth, and the latencies."""
    rulers: Mapping[str, Mapping[str, float | Range]] = one["baselines"]
    family = one.get("family")
    if family:  # never calibrated: measured systems in the place of rulers, a range in that of the interval
        rulers = {system["name"]: system["quantities"] for system in family["systems"]}
    models = list(rulers)

    whole = rate_kind(one["quantities"]["rate"])

    def beside(name: str, share: float, model: str, kind: str = "") -> str:
        answer = rulers[model].get(name)
        kind = kind or (whole if name == "rate" else name)
        if isinstance(answer, dict):
            return f"{quantity(kind, share * answer['low'])} .. {quantity(kind, share * answer['high'])}"
        return quantity(kind, share * answer) if answer else "-"  # a straight line may have met zero on the way

    def length(work: float, rate: float | Range | None) -> str:
        """Of a phase at this rate."""
        if isinstance(rate, dict):
            return " .. ".join(quantity("", work / rate[end]) if rate[end] else "-" for end in reversed(RANGE))
        return quantity("", work / rate) if rate else "-"

    def shown(kind: str, answer: Ends, name: str = "", share: float = 1.0) -> list[str]:
        if family and name in family["range"]:
            return [
                quantity(kind, answer["value"]),
                " .. ".join(quantity(kind, share * family["range"][name][end]) for end in RANGE),
            ]
        return interval(kind, answer)

    operations = one.get("operations") or {}
    rows = [
        [
            "all operations" if whole == "rate" else "bandwidth",
            *shown(whole, one["quantities"]["rate"], "rate"),
            *(beside("rate", 1, model) for model in models),
        ]
    ]
    for op, did in operations.items():
        rows += (
            [
                [
                    op,
                    *shown("rate", did["rate"], "rate", did["share"]),
                    *(beside("rate", did["share"], model) for model in models),
                ]
            ]
            if len(operations) > 1
            else []
        )
        if "bytes_per_second" in did:
            each = did["share"] * did["bytes_each"]
            rows.append(
                [
                    f"{op} bandwidth",
                    *shown("bandwidth", did["bytes_per_second"], "rate", each),
                    *(beside("rate", each, model, "bandwidth") for model in models),
                ]
            )
    for name, answer in one["quantities"].items():
        if name != "rate":
            rows.append([name, *shown(name, answer, name), *(beside(name, 1, model) for model in models)])
    if seconds := one.get("seconds"):
        work = seconds["value"] * one["quantities"]["rate"]["value"]
        ends = seconds_range(one)
        rows.append(
            [
                "whole phase",
                *([quantity("", seconds["value"]), ends] if ends else shown("", seconds)),
                *(length(work, rulers[model].get("rate")) for model in models),
            ]
        )
    if moves_bulk(one):  # then time and bytes a second are the question
        rows.sort(key=lambda row: (row[0] != "whole phase", not row[0].endswith("bandwidth")))
    lines = ["", table([f"phase {one['phase']}", "forecast", family["label"] if family else "interval", *models], rows)]
    if balance := one.get("balance"):
        lines.append(
            f"Balance (first rank's end over the last one's): {balance['value']:.2f}, {balance['low']:.2f} .. "
            f"{balance['high']:.2f} over {'what the measurements left open' if is_fitted else 'the simulated runs'}."
        )
    return [*lines, one["bottleneck"], *([one["growth"]["text"]] if "growth" in one else [])]

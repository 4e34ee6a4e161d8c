# SPDX-License-Identifier: Apache-2.0
"""Answers as text for a terminal."""

from __future__ import annotations

import math
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iocast.accuracy import OF_QUANTILES
from iocast.errors import printable
from iocast.phases import BYTES
from iocast.total import bytes_per_second, moves_bulk, range_of_seconds

if TYPE_CHECKING:  # text of other answers should not wait for what computes these
    from iocast.plan import Place, Proposed


SCALES = {
    "rate": [("M/s", 1e6), ("k/s", 1e3), ("/s", 1.0)],
    "bandwidth": [("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0)],
    "bytes": [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)],
    "": [("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)],
}
"""Units by kind of quantity, the largest first; "" for times."""


def rate_kind(answer: Mapping[str, Any]) -> str:
    """How a rate is written: a "bandwidth" where the answer or row that holds it counts bytes."""
    return "bandwidth" if answer.get("unit") == BYTES else "rate"


def kind_of_row(row: Mapping[str, Any]) -> str:
    """How the values of a row with a `quantity` are written."""
    return rate_kind(row) if row["quantity"] == "rate" else str(row["quantity"])


def quantity(name: str, value: float | None) -> str:
    """Three significant digits and a unit: "12.3 us", "45.6 k/s"; of a "bandwidth" "7.89 GB/s"."""
    if value is None:
        return "-"
    scales = SCALES.get(name, SCALES[""])
    unit, scale = next(((u, s) for u, s in scales if abs(value) >= s), scales[-1])
    digits = max(0, 2 - math.floor(math.log10(abs(value / scale)))) if value else 0
    return f"{value / scale:.{min(digits, 3)}f} {unit}"


TOO_WIDE = 30.0
"""Upper over lower end of an interval, from which on only the range is printed."""
ROUGHLY = "order of magnitude only"
"""In the place of the value of such an interval."""
MAGNITUDE = 100.0
"""Upper over lower end up to which that is true: ten times either way."""
NARROWED = "a run nearer to this scale narrows it: iocast plan proposes one"


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


def rule_of(made: dict[str, Any]) -> Rule | None:
    """The rule with the smallest held-out error. Where none is held out, and in forecasts of before: the last value,
    which is never below the largest measured scale."""
    best = made.get("rule") or {}
    for name in (best.get("name"), "last value"):
        value = made.get("baselines", {}).get(name, {}).get("rate")
        if isinstance(value, int | float) and value > 0:
            return Rule(str(name), float(value), best["error"] if name == best.get("name") else None)
    return None


def rule_beside(made: dict[str, Any], shown: Callable[[float], str]) -> str | None:
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


@dataclass(frozen=True)
class Nearer:
    """The best simple rule of a phase at held-out measurements, and sizes of its error and the forecast's."""

    phase: str
    rule: str
    rule_error: float
    error: float


def nearer_text(known: Sequence[Nearer], shown: Callable[[float], str]) -> str:
    """A sentence on the phases whose best simple rule was nearer to held-out measurements than the forecast; "" where
    none was. shown: writes the size of an error."""
    found = [one for one in known if shown(one.rule_error) != shown(one.error) and one.rule_error < one.error]
    if not found:
        return ""
    named = ", ".join(
        f"{one.phase} ({one.rule}: {shown(one.rule_error)} off, the forecast {shown(one.error)})"
        for one in found[:MAX_NAMED]
    )
    more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    of = f" in {len(found)} of {len(known)} phases" if len(known) > 1 else ""
    return f"At held-out measurements a simple rule was nearer than the forecast{of}: {named}{more}."


MAX_NAMED = 3
"""Phases that such a sentence names."""
CHANCE = 0.05
"""Largest probability at which errors of one sign are taken for more than chance."""


RAREST = 0.001
"""Probability below which chance is printed as less than that."""


def one_sided(errors: Sequence[float]) -> str:
    """A sentence where more errors have one sign than chance gives (two-sided sign test); else ""."""
    signs = [error > 0 for error in errors if error]
    more = max(sum(signs), len(signs) - sum(signs))
    chance = min(1.0, 2 * sum(math.comb(len(signs), k) for k in range(more, len(signs) + 1)) / 2 ** len(signs))
    if chance > CHANCE:
        return ""
    rarely = f"{100 * chance:.1g} %" if chance >= RAREST else f"less than {100 * RAREST:g} %"
    side, tends = ("above", "high") if 2 * sum(signs) > len(signs) else ("below", "low")
    return (
        f"{more} of {len(signs)} forecasts were {side} the measurement (by chance: {rarely}): they tend to be too "
        f"{tends}."
    )


def percent(error: float | None) -> str:
    return "-" if error is None else f"{100 * error:+.0f} %"


def terminal_columns() -> int | None:
    """Width of the terminal that standard output goes to; None where it goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.,]+([eE][+-]?\d+)?( ?%| [\w/µ]+)?$)")
"""How a text begins that a spreadsheet would compute."""


def cell(value: Any) -> Any:
    """A value for a CSV file: text that a spreadsheet would take for a formula has an apostrophe before it, and what a
    terminal would act on is escaped."""
    if not isinstance(value, str):
        return value
    return printable("'" * bool(_FORMULA.match(value)) + value)


def table(header: list[str], rows: list[list[str]], keys: int = 1) -> str:
    """Left-aligned first column, the others to the right. On a terminal that is too narrow the columns stand in several
    tables, each with the first `keys` columns."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    room = terminal_columns()
    if room is not None and len(header) > keys and sum(widths) + 2 * (len(widths) - 1) > room:
        return "\n\n".join(
            _aligned([header[i] for i in part], [[row[i] for i in part] for row in rows])
            for part in _parts_within(room, widths, keys)
        )
    return _aligned(header, rows)


def _parts_within(room: int, widths: list[int], keys: int) -> list[list[int]]:
    """Columns of the tables that a wide one falls into; a part has at least one column beside the keys."""
    parts: list[list[int]] = []
    for i in range(keys, len(widths)):
        if not parts or sum(widths[j] + 2 for j in [*parts[-1], i]) - 2 > room:
            parts.append([*range(keys), i])
        else:
            parts[-1].append(i)
    return parts


def _aligned(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [
        [cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        for row in [header, *rows]
    ]
    return "\n".join("  ".join(line).rstrip() for line in lines)


def calibration_text(fitted: dict[str, Any]) -> str:
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
    shown = [one for one in fitted.get("findings") or [] if one["text"] not in fitted["notes"]]
    lines += ["", findings_text(shown), ""] if shown else []
    return "\n".join([*lines, *fitted["notes"]]).lstrip()


def findings_text(found: list[dict[str, Any]]) -> str:
    """What measurements show by themselves, a finding a line."""
    if not found:
        return "The measurements show nothing that a forecast should know of."
    return "\n".join(["The measurements show:", *(f"- {one['text']}" for one in found)])


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


def selftest_text(answer: dict[str, Any]) -> str:
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
    lines += [f"{100 * answer['coverage']:.0f} % of the measured values lie inside their 90 % intervals.", ""]
    return "\n".join([*lines, "Passed." if answer["passed"] else "Not passed."])


def interval(kind: str, answer: dict[str, Any]) -> list[str]:
    """Value and interval in words. An interval wider than a factor TOO_WIDE is a range, of which the middle says
    nothing."""
    value, low, high = answer["value"], answer["low"], answer["high"]
    if low is None:
        return [quantity(kind, value), "not known"]
    between = f"{quantity(kind, low)} .. {quantity(kind, high)}"
    return [roughly(answer), between] if too_wide(answer) else [quantity(kind, value), between]


def roughly(answer: Mapping[str, Any]) -> str:
    """What stands in the place of a value whose interval is too wide: how wide, where that is more than an order of
    magnitude either way."""
    low, high = answer["low"], answer["high"]
    if high <= MAGNITUDE * low:
        return ROUGHLY
    return f"not known: a factor of {float(f'{high / low:.3g}'):,.0f}" if 0 < high < 1e6 * low else "not known"


def too_wide(answer: Mapping[str, Any]) -> bool:
    """Whether the interval is so wide that its value is no answer."""
    low, high = answer.get("low"), answer.get("high")
    return low is not None and high is not None and low >= 0 and high > TOO_WIDE * max(low, 1e-300)


def ranks_text(ranks: int) -> str:
    """1 rank, 4,608 ranks."""
    return f"{ranks:,} rank{'s' * (ranks != 1)}"


def forecast_text(forecast: dict[str, Any]) -> str:
    where = forecast["placement"]
    assumed = (
        ", ranks a node as in the largest measurement"
        if forecast.get("ranks_per_node_assumed") and where["ranks_per_node"] > 1
        else ""
    )
    level = "" if "family" in forecast else f", {100 * forecast['level']:.0f} % intervals"
    lines = [
        f"Forecast for {ranks_text(where['ranks'])} ({where['nodes']} x {where['ranks_per_node']}{assumed}), T = "
        f"{forecast['waiting_factor']:g}{level}"
    ]
    if whole := forecast.get("total"):
        lines.append(total_text(whole, (forecast.get("family") or {}).get("label", "")))
    for one in (forecast, *forecast.get("further_phases", [])):
        lines += _phase_lines(one)
    if (draws := forecast.get("draws")) and draws["of"]:
        lines.append(
            f"Intervals rest on {draws['used']} of {draws['of']} platforms that the measurements leave open, "
            f"{draws['how']}."
        )
    return "\n".join([*lines, *forecast.get("basis", []), *forecast["warnings"]])


def seconds_range(one: dict[str, Any]) -> str:
    """The length of a phase at the ends of its family's range, "" where there is none."""
    ends = range_of_seconds(one)
    return _seconds_between(ends) if ends else ""


def _seconds_between(ends: Mapping[str, Any]) -> str:
    return f"{quantity('', ends['low'])} .. {quantity('', ends['high'])}"


def total_text(found: Mapping[str, Any], around: str = "") -> str:
    """The key `total` of a forecast as a sentence. around: what the family's range is called."""
    names = ", ".join(
        name if repeats == 1 else f"{repeats} times {name}"
        for name, repeats in zip(found["phases"], found["repeats"], strict=True)
    )
    if found["unknown"]:
        return f"No total over the phases ({names}): how long {' and '.join(found['unknown'])} lasts is not known."
    seconds, ends = found["seconds"], found["range"]
    if too_wide(seconds):
        return f"All phases together ({names}): {_seconds_between(seconds)} long, {roughly(seconds)}."
    text = f"All phases together ({names}): {quantity('', seconds['value'])} long"
    text += f" ({_seconds_between(seconds)})" if seconds["low"] is not None else ""
    text += f" ({around}: {_seconds_between(ends)})" if ends else ""
    if found["bytes"]:
        moved = quantity("bandwidth", found["bytes"]).removesuffix("/s")
        text += f"; {moved}, {quantity('bandwidth', found['bytes_per_second'])} in the mean"
    return f"{text}; {quantity('rate', found['rate'])} in the mean."


def bulk_text(made: Mapping[str, Any]) -> str:
    """Time and bandwidth of a forecast phase that moves bytes in bulk, each with its interval where one is known."""
    where, rate, seconds = made["placement"], made["quantities"]["rate"], made.get("seconds")
    times = made.get("repeats", 1)
    each = bytes_per_second(made) / rate["value"]
    moved = {end: rate[end] and each * rate[end] for end in ("value", "low", "high")}
    known = [(f"{times} times " if times > 1 else "", "", seconds)] if seconds else []
    facts = []
    for before, kind, answer in [*known, ("", "bandwidth", moved)]:
        value, between = interval(kind, answer)
        facts.append(f"{before}{value}" + (f" ({between})" if answer["low"] is not None else ""))
    return f"{made['phase']} at {where['nodes']} x {where['ranks_per_node']}: {' at '.join(facts)}."


def _phase_lines(one: dict[str, Any]) -> list[str]:
    """A phase of a forecast: its rates, of each operation its rate and bandwidth, and the latencies."""
    models, rulers = list(one["baselines"]), one["baselines"]
    family = one.get("family")
    if (
        family
    ):  # never calibrated: measured systems of the family in the place of rulers, a range in that of the interval
        rulers = {system["name"]: system["quantities"] for system in family["systems"]}
        models = list(rulers)

    whole = rate_kind(one["quantities"]["rate"])

    def beside(name: str, share: float, model: str, kind: str = "") -> str:
        answer = rulers[model].get(name)
        kind = kind or (whole if name == "rate" else name)
        if isinstance(answer, dict):
            return f"{quantity(kind, share * answer['low'])} .. {quantity(kind, share * answer['high'])}"
        return quantity(kind, share * answer) if answer else "-"  # a straight line may have met zero on the way

    def length(work: float, rate: Any) -> str:
        """Of a phase at this rate."""
        if isinstance(rate, dict):
            return " .. ".join(quantity("", work / rate[end]) if rate[end] else "-" for end in ("high", "low"))
        return quantity("", work / rate) if rate else "-"

    def shown(kind: str, answer: dict[str, Any], name: str = "", share: float = 1.0) -> list[str]:
        if family and name in family["range"]:
            return [
                quantity(kind, answer["value"]),
                " .. ".join(quantity(kind, share * family["range"][name][end]) for end in ("low", "high")),
            ]
        return interval(kind, answer)

    operations: dict[str, Any] = one.get("operations") or {}
    rows = [
        [
            "all operations" if whole == "rate" else "bandwidth",
            *shown(whole, one["quantities"]["rate"], "rate"),
            *(beside("rate", 1, model) for model in models),
        ]
    ]
    for op, answer in operations.items():
        rows += (
            [
                [
                    op,
                    *shown("rate", answer["rate"], "rate", answer["share"]),
                    *(beside("rate", answer["share"], model) for model in models),
                ]
            ]
            if len(operations) > 1
            else []
        )
        if "bytes_per_second" in answer:
            each = answer["share"] * answer["bytes_each"]
            rows.append(
                [
                    f"{op} bandwidth",
                    *shown("bandwidth", answer["bytes_per_second"], "rate", each),
                    *(beside("rate", each, model, "bandwidth") for model in models),
                ]
            )
    for name, answer in one["quantities"].items():
        if name != "rate":
            rows.append([name, *shown(name, answer, name), *(beside(name, 1, model) for model in models)])
    if one.get("seconds"):
        work = one["seconds"]["value"] * one["quantities"]["rate"]["value"]
        ends = seconds_range(one)
        rows.append(
            [
                "whole phase",
                *([quantity("", one["seconds"]["value"]), ends] if ends else shown("", one["seconds"])),
                *(length(work, rulers[model].get("rate")) for model in models),
            ]
        )
    if moves_bulk(one):  # then time and bytes a second are the question
        rows.sort(key=lambda row: (row[0] != "whole phase", not row[0].endswith("bandwidth")))
    lines = ["", table([f"phase {one['phase']}", "forecast", family["label"] if family else "interval", *models], rows)]
    if balance := one.get("balance"):
        lines.append(
            f"Balance (first rank's end over the last one's): {balance['value']:.2f}, {balance['low']:.2f} .. "
            f"{balance['high']:.2f} over {'the simulated runs' if family else 'what the measurements left open'}."
        )
    return [*lines, one["bottleneck"], *([one["growth"]["text"]] if "growth" in one else [])]


def validation_text(validation: dict[str, Any]) -> str:
    lines = []
    several = len({point.get("phase") for point in validation["points"]}) > 1
    for point in validation["points"]:
        models = list(dict.fromkeys(m for row in point["rows"] for m in row["baselines"]))
        of_phase = f", phase {point['phase']}" if several else ""
        role = "not fitted to" if point["role"] == "check" else "FITTED TO, no test"
        lines.append(f"{point['name']}{of_phase} ({role}, {len(point['runs'])} runs)")
        lines += [made_text(point["made"])] if point["made"]["when"] == "earlier" else []
        rows = []
        for row in point["rows"]:
            name = row["quantity"]
            cells = [
                name,
                quantity(kind_of_row(row), row["measured"]),
                *interval(kind_of_row(row), {**row, "value": row["forecast"]}),
                percent(row["error"]),
            ]
            cells += [{True: "yes", False: "NO", None: "-"}[row["inside"]]]
            cells += [percent(row["baselines"][m]["error"]) if m in row["baselines"] else "-" for m in models]
            rows.append(cells)
        lines += [table(["", "measured", "forecast", "interval", "error", "inside", *models], rows), ""]
    summary = validation["summary"]
    if validation["verdict"] == "nothing held out":
        lines.append(
            "Nothing held out: the platform was fitted to all these measurements, so that they can't test it. Measure "
            "a point that is kept from the calibration (role: check in a campaign), at a larger scale if possible."
        )
        return "\n".join(lines)
    rows = [["iocast", _error(summary["rate_error_median"]), _error(summary["quantile_error_median"])]]
    rows += [
        [model, _error(e["rate_error_median"]), _error(e["quantile_error_median"])]
        for model, e in summary["baselines"].items()
    ]
    basis = summary["noise_basis"]
    rows.append(
        [
            "(noise of a measurement)",
            *(f"{_error(summary['noise'][kind])} {basis[kind]}" for kind in ("rate", "quantiles")),
        ]
    )
    lines.append(table(["median size of the error", "throughput", OF_QUANTILES], rows))
    lines.append(f"Errors are {validation['error']}.")
    if summary["wasserstein_median"] is not None:
        lines.append(
            f"Whole latency distributions are {_error(summary['wasserstein_median'])} of the mean away from the "
            "measured ones, in the median (Wasserstein distance)."
        )
    if summary["coverage"] is not None:
        lines.append(
            f"{100 * summary['coverage']:.0f} % of the measured values lie inside their "
            f"{100 * validation['level']:.0f} % intervals."
        )
    for one in summary.get("beaten_by", []):
        what = "throughput" if one["what"] == "rate" else OF_QUANTILES
        lines.append(
            f"The simple rule '{one['rule']}' forecasts the {what} better by more than noise: "
            f"{_error(one['rule_error'])} off in the median, iocast {_error(one['forecast_error'])}."
        )
    lines.append(f"{'Passed' if validation['passed'] else 'FELL SHORT'}: {validation['criterion']}.")
    return "\n".join(lines)


def made_text(made: dict[str, Any]) -> str:
    """When a forecast was made, as far as that was checked."""
    name = f"{made['file'] or 'The forecast'}, sha256 {made['sha256'][:16]}"
    if made["before_measurement"] is None:
        return f"{name}: written at {made['made_at']}; the measurement does not say when it began."
    return f"{name}: made {'before' if made['before_measurement'] else 'AFTER'} the measurement, at {made['made_at']}."


def comparison_text(comparison: dict[str, Any]) -> str:
    points = comparison["points"]
    lines = [_comparison_headline(comparison)] if len(points) > 1 else []
    for point in points:
        runs, repeats = (" and ".join(str(n) for n in point[key]) for key in ("runs", "repeats"))
        lines += [
            _changes_line(point, bool(comparison["fail_on"])),
            f"{point['name']}, phase {point['phase']}: {point['ranks']} ranks, T = {point['waiting_factor']:g}, {runs} "
            f"runs, {repeats} repeats in them",
        ]
        judged = [row["judged"] is not None for row in point["rows"]]
        rows = []
        for row in point["rows"]:
            p = "-" if row["p_adjusted"] is None else f"{row['p_adjusted']:.2g}"
            delta = [] if point["method"] != "runs" else [f"{row['cliffs_delta']:+.2f}"]
            change = "-" if row["ratio"] is None else percent(row["ratio"] - 1)
            values = (quantity(kind_of_row(row), row[side]) for side in "ab")
            threshold = [] if not any(judged) else ["" if row["judged"] is None else f"{100 * row['threshold']:g} %"]
            verdict = row["judged"] or VERDICTS[row["verdict"]]
            verdict = verdict.upper() if verdict == "worse" else verdict
            rows.append([row["quantity"], *values, change, _change_span(row), p, *delta, *threshold, verdict])
        header = [
            "",
            "before",
            "after",
            "change",
            f"{100 * (1 - comparison['alpha']):.0f} % interval",
            "adjusted p",
            *(["delta"] if point["method"] == "runs" else []),
            *(["threshold"] if any(judged) else []),
            "",
        ]
        lines += [table(header, rows), point["how"], *point["warnings"]]
        unknown: dict[str, list[str]] = {row["why_not"]: [] for row in point["rows"] if row["why_not"]}
        for row in point["rows"]:
            if row["why_not"]:
                unknown[row["why_not"]].append(row["quantity"])
        lines += [f"Not tested: {', '.join(names)}: {why}." for why, names in unknown.items()]
        lines.append("")
    return "\n".join([*lines, *comparison["warnings"]]).rstrip()


VERDICTS = {"worse": "worse", "better": "better", "open": "not shown to differ", "unknown": "unknown"}
"""Words for a change that no threshold is for."""


def _change_span(row: dict[str, Any]) -> str:
    """The interval of a change."""
    if row["low"] is None:
        return "-"
    if row["verdict"] == "unknown":
        return "not known"
    return f"{percent(row['low'] - 1)} .. {percent(row['high'] - 1)}"


def _comparison_headline(comparison: dict[str, Any]) -> str:
    """Of several points: at how many something is worse, or undecided."""
    points = comparison["points"]
    if comparison["fail_on"]:
        counts = {
            "WORSE beyond the threshold": sum(bool(point["failed"]) for point in points),
            "UNDECIDED": sum(bool(point["undecided"]) and not point["failed"] for point in points),
            "Within the threshold": sum(not point["failed"] and not point["undecided"] for point in points),
        }
    else:
        verdicts = [{row["verdict"] for row in point["rows"]} for point in points]
        counts = {
            "Worse": sum("worse" in one for one in verdicts),
            "Better": sum("better" in one and "worse" not in one for one in verdicts),
            "No change shown": sum(not one & {"worse", "better"} for one in verdicts),
        }
    reported = "; ".join(f"{name} at {count} of {len(points)} points" for name, count in counts.items() if count)
    return f"{reported}.\n"


def _changes_line(point: dict[str, Any], gate: bool) -> str:
    """The first line of a point: what is worse, undecided, or better."""

    def named(rows: list[dict[str, Any]]) -> str:
        return ", ".join(f"{row['quantity']} {percent(row['ratio'] - 1)} ({_change_span(row)})" for row in rows)

    def of(key: str, value: str) -> list[dict[str, Any]]:
        return [row for row in point["rows"] if row[key] == value]

    if gate:
        failed, undecided, within = (of("judged", value) for value in ("worse", "undecided", "within"))
        others = [row for row in of("verdict", "worse") if row["judged"] is None]
        besides = f" Worse, without a threshold: {named(others)}." if others else ""
        if failed:
            return f"WORSE beyond the threshold: {named(failed)}.{besides}"
        if undecided:
            untested = [row["quantity"] for row in undecided if row["low"] is None]
            parts = [
                f"{row['quantity']} may be worse by up to {_largest_loss(row)} (threshold {100 * row['threshold']:g} %)"
                for row in undecided
                if row["low"] is not None
            ]
            parts += [f"{', '.join(untested)}: not tested"] if untested else []
            return f"UNDECIDED: {'; '.join(parts)}. More runs a side decide more.{besides}"
        return f"Within the threshold: {named(within)}.{besides}"
    parts = [f"{name}: {named(rows)}." for name in ("worse", "better") if (rows := of("verdict", name))]
    parts = [part[0].upper() + part[1:] for part in parts]
    still = len(of("verdict", "open"))
    if still:
        parts.append(f"Not shown to differ: {still} of {len(point['rows'])} quantities.")
    if unknown := len(of("verdict", "unknown")):
        parts.append(f"Unknown: {unknown} of {len(point['rows'])}.")
    return " ".join(parts)


def _largest_loss(row: dict[str, Any]) -> str:
    """The loss at the worse end of a row's interval."""
    if row["verdict"] == "unknown":
        return "any amount"
    return f"{100 * (1 - row['low'] if row['quantity'] == 'rate' else row['high'] - 1):.3g} %"


def utilisation_text(utilisation: dict[str, Any]) -> str:
    """By phase, the resources that were used by at least 1 %, or that an operation took something of."""
    lines = []
    for phase in utilisation["phases"]:
        title = f"{phase['name']} {phase['repeat']}" if phase["repeat"] else phase["name"]
        rows = []
        for name, r in phase["resources"].items():
            if (
                r["kind"] == "core"
                or r["busy"] is None
                or (r["utilisation"] is not None and r["utilisation"] < 0.01 and r["kind"] != "process")
                or not r["busy"]
            ):
                continue
            used = "-" if r["utilisation"] is None else f"{100 * r['utilisation']:.0f} %"
            demand = (
                "-"
                if r["demand"] is None
                else quantity("", r["demand"])
                if r["unit"] == "seconds"
                else f"{r['demand']:.3g} B"
            )
            most = "-" if not r["demand"] or r["servers"] is None else quantity("rate", r["servers"] / r["demand"])
            rows.append([name, used, demand, most])
        if rows:
            lines += [
                f"{title}, {quantity('', phase['seconds'])}",
                table(["", "used", "an operation takes", "allows at most"], rows),
                "",
            ]
        else:
            lines += [f"{title}: {phase.get('note', 'No resource was used.')}", ""]
        for name, shares in phase.get("waits", {}).items():
            if shares:
                lines += [
                    f"{name} sleeps",
                    *(f"  {100 * share:3.0f} %  {where}" for where, share in shares.items()),
                    "",
                ]
    return "\n".join([*lines, *utilisation["notes"]]).rstrip()


def _error(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"

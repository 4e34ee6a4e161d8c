# SPDX-License-Identifier: Apache-2.0
"""Forecasts beside measurements, runs beside runs, and resources that an observation saw, as text for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from iocast.rules.accuracy import OF_QUANTILES
from iocast.records.comparison import ChangedRow, ComparedPoint, ComparisonDocument
from iocast.records.quantities import MORE_IS_BETTER
from iocast.records.utilisation import UtilisationDocument
from iocast.records.validation import KINDS, Made, ValidationDocument, Verdict
from iocast.wording.text import interval, kind_of_row, percent, quantity, table


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


def validation_text(validation: ValidationDocument) -> str:
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
                *interval(kind_of_row(row), {"value": row["forecast"], "low": row["low"], "high": row["high"]}),
                percent(row["error"]),
            ]
            cells += [{True: "yes", False: "NO", None: "-"}[row["inside"]]]
            cells += [percent(row["baselines"][m]["error"]) if m in row["baselines"] else "-" for m in models]
            rows.append(cells)
        lines += [table(["", "measured", "forecast", "interval", "error", "inside", *models], rows), ""]
    summary = validation["summary"]
    if validation["verdict"] == Verdict.NOTHING_HELD_OUT.value:
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
    rows.append(["(noise of a measurement)", *(f"{_error(summary['noise'][kind])} {basis[kind]}" for kind in KINDS)])
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


def made_text(made: Made) -> str:
    """When a forecast was made, as far as that was checked."""
    name = f"{made['file'] or 'The forecast'}, sha256 {made['sha256'][:16]}"
    if made["before_measurement"] is None:
        return f"{name}: written at {made['made_at']}; the measurement does not say when it began."
    return f"{name}: made {'before' if made['before_measurement'] else 'AFTER'} the measurement, at {made['made_at']}."


def comparison_text(comparison: ComparisonDocument) -> str:
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
            values = (quantity(kind_of_row(row), side) for side in (row["a"], row["b"]))
            threshold = [] if not any(judged) else ["" if row["threshold"] is None else f"{100 * row['threshold']:g} %"]
            verdict = row["judged"] or VERDICTS[row["verdict"]]
            verdict = verdict.upper() if verdict == "worse" else verdict
            rows.append([row["quantity"], *values, _change(row), _change_span(row), p, *delta, *threshold, verdict])
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


def _change(row: ChangedRow) -> str:
    return "-" if row["ratio"] is None else percent(row["ratio"] - 1)


def _change_span(row: ChangedRow) -> str:
    """The interval of a change."""
    if row["low"] is None or row["high"] is None:
        return "-"
    if row["verdict"] == "unknown":
        return "not known"
    return f"{percent(row['low'] - 1)} .. {percent(row['high'] - 1)}"


def _comparison_headline(comparison: ComparisonDocument) -> str:
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


def _changes_line(point: ComparedPoint, gate: bool) -> str:
    """The first line of a point: what is worse, undecided, or better."""

    def named(rows: list[ChangedRow]) -> str:
        return ", ".join(f"{row['quantity']} {_change(row)} ({_change_span(row)})" for row in rows)

    def of(key: Literal["judged", "verdict"], value: str) -> list[ChangedRow]:
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
                f"{row['quantity']} may be worse by up to {_largest_loss(row)} "
                f"(threshold {100 * (row['threshold'] or 0):g} %)"
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


def _largest_loss(row: ChangedRow) -> str:
    """The loss at the worse end of a row's interval."""
    if row["verdict"] == "unknown" or row["low"] is None or row["high"] is None:
        return "any amount"
    return f"{100 * (1 - row['low'] if row['quantity'] in MORE_IS_BETTER else row['high'] - 1):.3g} %"


def utilisation_text(utilisation: UtilisationDocument) -> str:
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
                else f"{r['demand']:.3g} {'B' if r['unit'] == 'bytes' else r['unit']}"
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

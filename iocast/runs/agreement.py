# SPDX-License-Identifier: Apache-2.0
"""Whether the numbers of a run.json agree with each other, so that a changed one does not pass unnoticed."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from iocast.ground import strict
from iocast.errors import InputError
from iocast.ground.files import moment
from iocast.records.forecast import RANGE, End, ForecastDocument, PhaseDocument, Total
from iocast.records.run import Counted, Phase, Run
from iocast.runs.total import total
from iocast.records.fitted import FittedPoint, FittedSection, FurtherPhase

ENDS: tuple[End, ...] = ("low", "value", "high")
VALUE: tuple[End, ...] = ("value",)
BETWEEN_RUNS, WITHIN_RUNS, ASSUMED = "measured between runs", "measured within runs", "assumed"
"""What a noise rests on. Iterations within a run share its time and place, so that runs of another day may differ by
more."""
MAX_INSIDE = 1.2
"""Ranks inside operations, by rate times mean response, over the ranks that there are: at most 1, but for the rounding
of a tool that prints its rate and its means apart."""
RISING = ("min", "q25", "q50", "q75", "q95", "q99", "q999", "max")


Pair = tuple[str, float, str, float]
"""A number's name and value, and the name and value that it must equal; NaN for what is not there."""


def check_agreement(run: Run, path: Path) -> None:
    """Of a run that iocast's own programs wrote with `by_operation`; of others nothing is known twice.

    @raises InputError that names the phase and the two numbers that contradict each other"""
    if run.source not in ("bench", "simulated") or run.placement.ranks is None:
        return
    logged = _maxima(path / "latency.hlog")
    for phase in run.phases:
        if phase.by_operation is None or not phase.latency:
            continue  # of a part that is not there nothing is known twice
        pairs = [
            *_pairs(phase, phase.by_operation, run.placement.ranks),
            *_of_log(phase, logged),
            *_of_repeats(run, phase.name),
        ]
        for name, reported, other, known in pairs:
            if not (math.isfinite(reported) and math.isfinite(known)):
                raise InputError(
                    f"The run '{path}' lacks a number in its phase {phase.name}, or has one that is beyond all "
                    f"measuring: {name}, or {other}. Measure it again."
                )
            if not math.isclose(reported, known, rel_tol=1e-5, abs_tol=1e-12):
                raise InputError(
                    f"The run '{path}' contradicts itself: in its phase {phase.name}, {name} is {reported:.6g}, and "
                    f"{other} is {known:.6g}. It was changed since it was written, or is damaged; measure it again."
                )


def check_forecast(document: Mapping[str, Any], name: str) -> None:
    """Whether the numbers of a forecast agree with each other: a value lies inside its interval, quantiles rise, and
    what the question repeats is the same. What is null is not known.

    @raises InputError that names the phase, the quantity and the numbers"""
    forecast = cast(ForecastDocument, document)  # which it claims to be, and which is checked here
    if "made_at" in forecast:
        try:
            moment(forecast["made_at"])
        except (ValueError, TypeError, AttributeError) as error:
            raise InputError(
                f"{name} is damaged: its made_at is {strict.shown(forecast['made_at'])}, which is no time; forecast "
                "again with iocast predict."
            ) from error
    further = [one for one in forecast.get("further_phases") or [] if isinstance(one, dict)]
    phases: list[ForecastDocument] = [forecast]
    phases += [{**forecast, **one} for one in further]
    for phase in phases:
        where = f"in its phase {phase.get('phase')}"
        try:
            rising, pairs = list(_rows_that_rise(phase)), list(_forecast_pairs(phase))
            pairs += list(_total_pairs(forecast, further)) if phase is forecast else []
            finite = all(math.isfinite(one) for _, known in rising for one in known)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(
                f"{name} lacks a number {where}, or has something else in its place ({strict.shown(str(error))}); "
                "forecast again with iocast predict."
            ) from error
        if not finite:
            raise InputError(f"{name} has numbers {where} that are beyond all measuring; forecast again.")
        for way, values in rising:
            if any(later < earlier * (1 - 1e-6) for earlier, later in itertools.pairwise(values)):
                raise InputError(
                    f"{name} contradicts itself: {where}, {way} are {', '.join(f'{one:.6g}' for one in values)}, which "
                    "do not rise. It was changed since it was written, or is damaged; forecast again with iocast "
                    "predict."
                )
        for way, reported, other, known in pairs:
            if not math.isclose(reported, known, rel_tol=1e-5, abs_tol=1e-12):
                raise InputError(
                    f"{name} contradicts itself: {where}, {way} is {reported:.6g}, and {other} is {known:.6g}. It was "
                    "changed since it was written, or is damaged; forecast again with iocast predict."
                )
        for way, printed, wanted in _repeated_question(phase):
            if printed != wanted:
                raise InputError(
                    f"{name} contradicts itself: {where}, {way} is {strict.shown(printed)}, and that of its question "
                    f"{strict.shown(wanted)}. It was changed since it was written; forecast again with iocast predict."
                )


def _rows_that_rise(phase: ForecastDocument) -> Iterator[tuple[str, list[float]]]:
    """Numbers of a forecast of which none is below the one before, with what they are."""
    for key in _WITH_INTERVALS:
        for way, one in _intervals(phase.get(key), key):
            most = [1.0] if key == "balance" else []
            known = [number for end in ENDS if (number := one.get(end)) is not None]
            yield f"low, value and high of {way}", [*known, *most]
    for station, used in (phase.get("stations") or {}).items():
        yield f"utilisation of {station} and 1", [used.get("utilisation", 0), 1.0]
    if draws := phase.get("draws"):
        yield "draws used and draws", [draws["used"], draws["of"]]
    yield "the weights' sum and 1", [sum(one.get("weight", 0) for one in phase.get("alternatives") or []), 1.0]
    bounds = (phase.get("baselines") or {}).get("asymptotic bounds")
    for rows in (phase.get("quantities"), phase.get("parts"), bounds):
        intervals = _maps(rows)
        # Of bounds the largest latency is that of a run as long as this one, and may lie below a quantile.
        steps = [which for which in RISING if rows is not bounds or which != "max"]
        for of in dict.fromkeys(name.rpartition(".")[0] for name in intervals):
            own = [intervals[name] for which in steps if (name := f"{of}.{which}") in intervals]
            for end in ENDS if "question" in phase else VALUE:  # ends of earlier states may cross
                numbers = [number for one in own if (number := one.get(end)) is not None]
                if len(numbers) == len(own) and None not in [one.get("low") for one in own]:
                    yield f"{end} of the quantiles of {of}", numbers  # without an interval they may cross


def _forecast_pairs(phase: ForecastDocument) -> Iterator[Pair]:
    """Of a forecast a number's name and value, and the name and value that it must equal."""
    rate, operations = (phase.get("quantities") or {}).get("rate"), phase.get("operations") or {}
    if course := [one for one in phase.get("course") or [] if one["phase"] == phase["phase"]]:
        yield "repeats", float(phase.get("repeats", len(course))), "the rows of its course", float(len(course))
    shares = [one["share"] for one in operations.values()]
    if shares:
        yield "the sum of operations' shares", sum(shares), "the whole", 1.0
    for end, other in _OPPOSITE.items():
        if rate is None or (whole := rate.get(end)) is None:
            continue
        for op, one in operations.items():
            own = _present(one["rate"][end])
            yield f"operations.{op}.rate.{end}", own, "share x rate", one["share"] * whole
            if "bytes_each" in one:
                moved, printed = one["bytes_each"] * own, _present(one["bytes_per_second"][end])
                yield f"operations.{op}.bytes_per_second.{end}", printed, "bytes x rate", moved
        seconds = phase.get("seconds")
        if seconds and seconds.get("value") and (length := seconds.get(other)):
            count = seconds["value"] * rate["value"]
            yield f"seconds.{other} x rate.{end}", length * whole, "seconds x rate", count


def _present(number: float | None) -> float:
    """@raises TypeError for what is not known where it must be"""
    if number is None:
        raise TypeError("null")
    return number


def _total_pairs(forecast: ForecastDocument, further: list[PhaseDocument]) -> Iterator[Pair]:
    """Numbers of all phases together, and the sums that they must equal."""
    found, known = forecast.get("total"), total([forecast, *further])
    if not found or known is None:
        return
    printed = dict(_numbers_below(found))
    for way, value in _numbers_below(known):
        yield f"total.{way}", printed[way], "the sum over its phases", value


def _numbers_below(sums: Total) -> Iterator[tuple[str, float]]:
    """Numbers by their way, one level deep."""
    for way, own in sums.items():
        for end, value in own.items() if isinstance(own, dict) else [("", own)]:
            if isinstance(value, int | float):
                yield f"{way}.{end}".rstrip("."), float(value)


def _repeated_question(phase: ForecastDocument) -> Iterator[tuple[str, object, object]]:
    """What stands in a forecast and in its question: what it is, and both."""
    question = phase.get("question")
    if not isinstance(question, dict):
        return  # of an earlier state
    for key in _IN_QUESTION:
        if key in phase and key in question:
            yield key, phase[key], question[key]
    workload, wanted = phase.get("workload"), question.get("workload")
    if isinstance(workload, dict) and isinstance(wanted, dict):
        pattern = workload.get("pattern")
        if pattern != workload.get("name"):  # as an earlier state did
            yield "workload.pattern", pattern, wanted.get("pattern")


def check_fitted(platform: dict[str, Any], file: Path) -> None:
    """Whether the numbers of a platform that iocast calibrate wrote agree with each other: its parameters with what the
    platform holds, its rows with their errors. Edits are given by --edit, or in a file that extends it.

    @raises InputError that names the two numbers that contradict each other"""
    fitted = platform["fitted"]
    own: list[tuple[dict[str, Any], FittedSection, str]] = [(platform, fitted, "")]
    further: dict[str, FurtherPhase] = fitted.get("further_phases") or {}
    for phase, one in further.items():
        own.append((one.get("platform") or {}, one["fitted"], f"further_phases.{phase}."))
    for document, known, where in own:
        try:
            pairs = [(name, float(a), other, float(b)) for name, a, other, b in _fitted_pairs(document, known)]
            rising = [(name, [float(one) for one in row]) for name, row in _fitted_rows_that_rise(known)]
            words = list(_fitted_words(known))
            for name, kind in (("notes", str), ("cautions", dict)):
                entries = known.get(name, [])
                if not isinstance(entries, list) or not all(isinstance(one, kind) for one in entries):
                    raise TypeError(f"{name} is {strict.shown(entries)}")
            standing = known.get("stand_ins", {})
            if not isinstance(standing, dict) or not all(isinstance(one, str) for one in standing.values()):
                raise TypeError(f"stand_ins is {strict.shown(standing)}")
            for name, number in _fitted_numbers(known):
                if isinstance(number, bool) or not isinstance(number, int | float):
                    raise TypeError(f"{name} is {strict.shown(number)}")
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(
                f"The fitted platform '{file}' lacks a value in {where}fitted, or has something else in its place "
                f"({strict.shown(str(error))}); the file is damaged, or was edited."
            ) from error
        for name, reported, other, value in pairs:
            if not math.isclose(reported, value, rel_tol=1e-5, abs_tol=1e-9):
                raise InputError(
                    f"The fitted platform '{file}' contradicts itself: {where}{name} is {reported:.6g}, and {other} is "
                    f"{value:.6g}. It was changed since iocast calibrate wrote it; change a fitted platform by --edit, "
                    "or in a file that extends it."
                )
        for name, word, allowed in words:
            if not isinstance(word, str) or word not in allowed:
                raise InputError(
                    f"The fitted platform '{file}' is damaged: {where}{name} is {strict.shown(word)}. Allowed: "
                    f"{', '.join(sorted(allowed))}."
                )
        for name, row in rising:
            if any(later < earlier * (1 - 1e-6) for earlier, later in itertools.pairwise(row)):
                raise InputError(
                    f"The fitted platform '{file}' contradicts itself: {where}{name} are "
                    f"{', '.join(f'{one:.6g}' for one in row)}, which do not rise. It was changed since iocast "
                    "calibrate wrote it."
                )


def _fitted_rows_that_rise(fitted: FittedSection) -> Iterator[tuple[str, list[float]]]:
    # Of rates alone the value is the likeliest network's, the ends are quantiles of all: it may lie outside.
    ends: tuple[End, ...] = RANGE if fitted.get("method") == "rates" else ENDS
    for path, one in (fitted.get("parameters") or {}).items():
        known = [one[end] for end in ends if one.get(end) is not None]
        yield f"{', '.join(ends)} of parameters.{path}", known
    yield "the weights' sum and 1", [sum(one["weight"] for one in fitted.get("alternatives") or []), 1.0]
    for point in (fitted.get("campaign") or {}).get("points") or []:
        rows = [one for one in (point.get("latency") or {}).values() if one.get("mean") and one.get("count")]
        if rows and point.get("rate") and not point.get("waiting_factor"):
            mean = sum(one["count"] * one["mean"] for one in rows) / sum(one["count"] for one in rows)
            inside = [point["rate"] * mean, MAX_INSIDE * point["ranks"]]
            yield f"rate x mean response at {point['name']} and its ranks", inside
    for name, others in (fitted.get("correlations") or {}).items():
        for other, value in others.items():
            yield f"the size of correlations.{name}.{other} and 1", [abs(value), 1.0]


_WITH_INTERVALS: tuple[Literal["quantities", "parts", "operations", "seconds", "baselines", "balance"], ...]
_WITH_INTERVALS = ("quantities", "parts", "operations", "seconds", "baselines", "balance")
_OPPOSITE: dict[End, End] = {"value": "value", "low": "high", "high": "low"}
_IN_QUESTION: tuple[Literal["placement", "phase", "waiting_factor"], ...]
_IN_QUESTION = ("placement", "phase", "waiting_factor")
_OF_NUMBERS: tuple[Literal["noise", "noise_together", "discrepancy", "discrepancy_degrees"], ...]
_OF_NUMBERS = ("noise", "noise_together", "discrepancy", "discrepancy_degrees")
_OF_A_POINT: tuple[Literal["ranks", "nodes", "waiting_factor", "rate", "repeats", "peak_objects"], ...]
_OF_A_POINT = ("ranks", "nodes", "waiting_factor", "rate", "repeats", "peak_objects")


def _fitted_numbers(fitted: FittedSection) -> Iterator[tuple[str, object]]:
    """What a forecast counts with: its name, and what must be a number."""
    for section in _OF_NUMBERS:
        for name, value in (fitted.get(section) or {}).items():
            yield f"{section}.{name}", value
    for name, number in (fitted.get("discrepancy_growth") or {}).items():
        yield f"discrepancy_growth.{name}", number
    for kind, one in (fitted.get("blend") or {}).items():
        for rule, value in (one.get("errors") or {}).items():
            yield f"blend.{kind}.errors.{rule}", value
    campaign = fitted.get("campaign") or {}
    for ranks in campaign.get("ranks") or []:
        yield "campaign.ranks", ranks
    for factor in campaign.get("waiting_factors") or []:
        yield "campaign.waiting_factors", factor
    for point in campaign.get("points") or []:
        for name in _OF_A_POINT:
            if point.get(name) is not None:  # what an imported run does not state
                yield f"{name} of campaign.points {point.get('name', '')}", point[name]


def _fitted_words(fitted: FittedSection) -> Iterator[tuple[str, object, set[str]]]:
    """A word's name, the word, and those that it may be."""
    for kind, basis in (fitted.get("noise_basis") or {}).items():
        yield f"noise_basis.{kind}", basis, {BETWEEN_RUNS, WITHIN_RUNS, ASSUMED}
    structures = [fitted.get("structure") or {}, *(one["structure"] for one in fitted.get("alternatives") or [])]
    for number, drawn in enumerate(fitted.get("draw_structures") or []):
        for choice, option in drawn.items():
            known = {str(one[choice]) for one in structures if choice in one}
            for compared in (fitted.get("open"), fitted.get("drawn_from")):
                known |= set((compared or {}).get(choice) or {})
            yield f"draw_structures.{number}.{choice}", option, known


def _fitted_pairs(platform: dict[str, Any], fitted: FittedSection) -> Iterator[tuple[str, float, str, float]]:
    """A number's name and value, and the name and value that it must equal."""
    parameters = fitted.get("parameters") or {}
    for path, one in parameters.items():
        held: object = platform
        for key in path.split("."):
            held = held.get(key) if isinstance(held, dict) else None
        if isinstance(held, int | float | str):
            printed = float(str(held).removesuffix(one.get("unit", "")))
            yield path, printed, f"parameters.{path}.value", one["value"]
    holdout = fitted.get("holdout")
    if holdout and holdout.get("scales"):
        yield "the largest of holdout.scales", max(holdout["scales"]), "holdout.ranks", holdout["ranks"]
    best = next(iter(fitted.get("alternatives") or []), None)
    if best:
        if "misfit" in fitted and "misfit" in best:
            yield "misfit", fitted["misfit"], "alternatives.0.misfit", best["misfit"]
        for path, one in parameters.items():
            if one.get("name") in (best.get("parameters") or {}):
                name = f"alternatives.0.parameters.{one['name']}"
                yield name, best["parameters"][one["name"]], f"parameters.{path}.value", one["value"]
    for kind, mixed in (fitted.get("blend") or {}).items():
        yield f"the sum of blend.{kind}.weights", sum(mixed["weights"].values()), "the whole", 1.0
    points = {point["name"]: point for point in (fitted.get("campaign") or {}).get("points") or []}
    for part, rows in (("fit", fitted.get("fit")), ("holdout", (fitted.get("holdout") or {}).get("rows"))):
        for row in rows or []:
            of, _, kind = row["quantity"].rpartition(".")
            measured = _measured(points.get(row["point"]), of, kind)
            if measured is not None and row.get("measured") is not None:
                name = f"{row['quantity']} at {row['point']}, measured, in {part}"
                yield name, row["measured"], "campaign.points'", measured
            if row.get("error") is not None and row.get("measured") and row.get("forecast") is not None:
                error = row["forecast"] / row["measured"] - 1
                yield (
                    f"the error of {row['quantity']} at {row['point']} in {part}",
                    row["error"],
                    "forecast / measured - 1",
                    error,
                )


def _measured(point: FittedPoint | None, operation: str, kind: str) -> float | None:
    if point is None or kind == "rate":
        return point and point.get("rate")
    return (point.get("latency") or {}).get(operation, {}).get(kind)


def _maps(rows: object) -> dict[str, dict[str, float | None]]:
    """Intervals by name; what is a number is none."""
    return {name: one for name, one in rows.items() if isinstance(one, dict)} if isinstance(rows, dict) else {}


def _intervals(node: object, way: str) -> Iterator[tuple[str, dict[str, float | None]]]:
    """Every interval below a node, with the way to it."""
    if isinstance(node, dict):
        if "low" in node and "high" in node:
            yield way, node
        for key, below in node.items():
            yield from _intervals(below, f"{way}.{key}")


def _maxima(log: Path) -> dict[str, list[float]]:
    """The largest latency of every interval of a latency.hlog in seconds, by tag; as the log has it, to a
    microsecond."""
    found: dict[str, list[float]] = {}
    for line in strict.read_text(log).splitlines() if log.is_file() else []:
        if line.startswith("Tag="):
            tag, _, _, milliseconds, _ = line[4:].split(",", 4) if line.count(",") >= 4 else (line, "", "", "nan", "")
            try:
                found.setdefault(tag, []).append(float(milliseconds) * 1e-3)
            except ValueError:
                continue  # who reads the log says what is wrong with it
    return found


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _of_log(phase: Phase, logged: Mapping[str, Sequence[float]]) -> Iterator[Pair]:
    for tag, row in phase.latency.items():
        if maxima := logged.get(f"{phase.name}.{tag}"):
            most = _number(row.max)
            nearest = min(maxima, key=lambda one: abs(one - most))
            yield f"latency.{tag}.max", most, "the log's", most if abs(nearest - most) < 1e-6 else nearest


def _of_repeats(run: Run, name: str) -> Iterator[Pair]:
    """Of repeats of a phase that did the same, how many there are and their mean rate."""
    if stated := run.repeats.get(name):
        own = [_number(p.rate) for p in run.phases if p.name == name and p.repeat > 0 and not p.interrupted]
        yield f"repeats.{name}.count", _number(stated.count), "the number of its repeats", len(own)
        yield f"repeats.{name}.rate", _number(stated.rate), "their mean", sum(own) / max(len(own), 1)


def _pairs(phase: Phase, by_operation: Mapping[str, Counted], ranks: int) -> Iterator[Pair]:
    seconds, operations = _number(phase.seconds), _number(phase.operations)
    counts = {op: _number(row.count) for op, row in by_operation.items()}
    yield "operations", operations, "the sum over operations", sum(counts.values())
    if seconds != 0:
        yield "rate", _number(phase.rate), "operations / seconds", operations / seconds
    for op, row in by_operation.items():
        yield f"latency.{op}.count", phase.latencies(op).count or 0, f"by_operation.{op}.count", counts[op]
        if seconds != 0:
            yield f"by_operation.{op}.rate", _number(row.rate), "count / seconds", counts[op] / seconds
            if row.bytes is not None:
                moved = row.bytes / seconds
                yield f"by_operation.{op}.bytes_per_second", _number(row.bytes_per_second), "bytes / seconds", moved
    responding = _number(phase.responding_seconds)
    whole = [row for tag, row in phase.latency.items() if "." not in tag]
    known = sum(_number(row.count) * _number(row.mean) for row in whole)
    yield "responding_seconds", responding, "the sum of count x mean", known
    if responding > 1.01 * ranks * seconds:
        yield "responding_seconds", responding, "at most ranks x seconds, which", ranks * seconds
    for tag, summary in phase.latency.items():
        values, mean = [_number(summary.value(key)) for key in RISING], _number(summary.mean)
        if not all(map(operator.le, values, values[1:])) or not values[0] <= mean <= values[-1] * 1.001:
            largest = max(*values, mean) * (1 + 1e-3)
            yield f"latency.{tag}.max", values[-1], "the largest of its quantiles and mean", largest

# SPDX-License-Identifier: Apache-2.0
"""Forecasts against measurements that they were not fitted to (docs/answers.md, `kind: validation`)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.integrate import trapezoid
from scipy.special import ndtr, ndtri

from iocast.rules import blend
from iocast.rules import noise as noises
from iocast.records.forecast import Distribution, Ends, ForecastDocument
from iocast.records.quantities import ACCELERATORS
from iocast.records.validation import (
    Beaten,
    Made,
    MedianErrors,
    ScoredPoint,
    ScoredRow,
    ValidationDocument,
    ValidationSummary,
    Verdict,
)
from iocast.rules.accuracy import ERROR, error_of, is_quantile, is_rate, median_error
from iocast.runs.agreement import ASSUMED
from iocast.calibrate.reading import noise_basis_of
from iocast.calibrate.search import whole_settings
from iocast.runs.earlier import Earlier
from iocast.errors import InputError
from iocast.ground.files import SCHEMA_VERSION, sha256
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict
from iocast.rules.residuals import kind_of
from iocast.runs.run_directory import Point, Run
from iocast.runs.settings import name_for_programs
from iocast.jobs.workers import Workers
from iocast.records.fitted import FittedSection

MAX_RATE_ERROR = 0.25
LEAST_COVERAGE = 0.7
KINDS = {"throughput": ("rate",), "q50 to q95": ("q50", "q75", "q95"), "q99": ("q99",)}
"""Quantities pooled in one error figure."""
BEATEN_BY = 0.02
"""A simple rule beats a forecast where its median error is smaller by more than noise (iocast/rules/noise.py), and by
more than this, by which simulations of one platform differ."""
OF_A_MEDIAN = math.sqrt(math.pi / 2)
"""Standard deviation of a median of many values, beside that of their mean."""


def validate(
    platform: Fitted,
    points: list[Point],
    *,
    level: float = 0.9,
    seed: int = 0,
    most_rate_error: float = MAX_RATE_ERROR,
    least_coverage: float = LEAST_COVERAGE,
    forecasts: list[Earlier] | None = None,
    workers: Workers | None = None,
) -> ValidationDocument:
    """Forecasts every measured point and scores it; with `forecasts` scores these, each beside the point that it is the
    forecast of, and no other point.

    Points that the calibration was fitted to are shown as such and left out of the summary. With no other point nothing
    can be judged: the verdict is NOTHING_HELD_OUT and `passed` false. A forecast that a simple rule beats (`beaten_by`)
    has not passed, however small its error.

    @param most_rate_error largest median |forecast / measured - 1| of the throughput that passes; the same for every
    system, however noisy
    @raises InputError for an earlier forecast of another platform or level, or of a question that no point answers,
    and for a run that --max-rate held back"""
    if not platform.fitted:
        raise InputError(f"The platform '{platform.file}' was never calibrated; run iocast calibrate first.")
    fitted_to = {run["sha256"] for run in platform.fitted["campaign"]["runs"]}
    for run in (run for point in points for run in point.runs):
        run.require_no_max_rate("Forecasts are of runs without that limit; validate with such runs.")
    points = _by_what_was_fitted(points, fitted_to)
    scored: list[ScoredPoint] = []
    if forecasts:
        digest = platform.content_hash()
        for earlier in forecasts:
            earlier.check(digest, level)
            scored += [_score(point, document, earlier.made(point)) for point, document in earlier.of(points)]
    else:
        for point in points:
            forecast = forecast_for(platform, point, level=level, seed=seed, workers=workers)
            scored.append(_score(point, forecast, {"when": "now"}))
    judged = [p for p in scored if p["role"] == "check"]
    summary = _summary(judged, platform.fitted)
    criterion = (
        f"median error of the throughput at most {100 * most_rate_error:g} %, and at least {100 * least_coverage:g} % "
        f"of the measured values inside their {100 * level:g} % intervals, and no simple rule better by more than noise"
    )
    close = (
        summary["rate_error_median"] is not None
        and summary["rate_error_median"] <= most_rate_error
        and (summary["coverage"] or 0.0) >= least_coverage
    )
    passed = close and not summary["beaten_by"]
    verdict = Verdict.PASSED if passed else Verdict.FELL_SHORT
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "validation",
        "platform": {"name": platform.file.stem, "file": str(platform.file)},
        "level": level,
        "points": scored,
        "error": ERROR,
        "summary": summary,
        "criterion": criterion,
        "passed": passed,
        "verdict": (verdict if judged else Verdict.NOTHING_HELD_OUT).value,
    }


def errors(validation: ValidationDocument, kind: str, model: str | None = None) -> list[float]:
    """exp(|log(forecast / measured)|) - 1 of all rows of this kind; of those that a baseline has, its own. The
    scoreboard's factors, which weigh half of a value as twice of it: not `ERROR`."""
    rows = [row for point in validation["points"] for row in point["rows"] if kind_of(row["quantity"]) in KINDS[kind]]
    entries = [
        (row["forecast"] if model is None else row["baselines"][model]["value"], row["measured"])
        for row in rows
        if model is None or model in row["baselines"]
    ]
    return [math.expm1(abs(math.log(value / measured))) for value, measured in entries]


def forecast_for(
    platform: Fitted, point: Point, *, level: float, seed: int, workers: Workers | None = None
) -> ForecastDocument:
    """The forecast that answers this measurement: same workload, settings and placement."""
    run = point.first
    nodes, ranks_per_node = run.placement
    settings = {k: v for k, v in _settings_of(platform, run).items() if k != "phases"}
    pattern = name_for_programs(run.json["workload"])
    return predict(
        platform,
        pattern,
        settings,
        nodes,
        ranks_per_node,
        phase=run.phase,
        level=level,
        seed=seed,
        label=point.name,
        workers=workers,
    )


def _settings_of(platform: Fitted, run: Run) -> dict[str, str]:
    """Settings of the run's workload that a forecast takes; a platform that was fitted to rates alone knows of the
    waiting factor only."""
    return {"waiting_factor": f"{run.waiting_factor:g}"} if platform.rates_alone else whole_settings(run)


def _by_what_was_fitted(points: list[Point], fitted_to: set[str]) -> list[Point]:
    """The points with the role that the platform gives them: those of their runs that it was fitted to, and the others,
    are two points."""
    found = []
    for point in points:
        seen = {id(run): sha256(run.path / "run.json") in fitted_to for run in point.runs}
        for role, fitted in (("fit", True), ("check", False)):
            runs = [run for run in point.runs if seen[id(run)] == fitted]
            found += [point.in_role(role, runs)] if runs else []
    return found


def _score(point: Point, forecast: ForecastDocument, made: Made) -> ScoredPoint:
    nodes, ranks_per_node = point.first.placement
    rows = []
    for quantity, printed in forecast["quantities"].items():
        if not point.has(quantity):
            continue
        seen = point.observations(quantity)
        measured = point.value(quantity)
        low, high = printed["low"], printed["high"]
        known = low is not None and high is not None  # where no interval is known, none can be judged
        row: ScoredRow = {
            "quantity": quantity,
            "measured": measured,
            "measured_low": min(seen),
            "measured_high": max(seen),
            "forecast": printed["value"],
            "low": low,
            "high": high,
            "error": error_of(printed["value"], measured),
            "inside": low <= measured <= high if low is not None and high is not None else None,
            "crps": log_crps(printed, measured, forecast["level"]) if known else None,
            "baselines": {
                model: {"value": value, "error": error_of(value, measured)}
                for model, answers in forecast["baselines"].items()
                if isinstance(value := answers.get(quantity), int | float)
                and value > 0  # a line can fall below zero: it says nothing
            },
        }
        if unit := printed.get("unit"):
            row["unit"] = unit
        rows.append(row)
    rows += [row for rate in rows if rate["quantity"] == "rate" for row in of_accelerators(point, rate)]
    return {
        "name": point.name,
        "phase": point.first.phase,
        "role": point.role,
        "question": forecast["question"],
        "placement": {"ranks": point.ranks, "nodes": nodes, "ranks_per_node": ranks_per_node},
        "waiting_factor": point.waiting_factor,
        "runs": [run.path.name for run in point.runs],
        "rows": rows,
        "wasserstein": {
            op: distance
            for op, reported in forecast["distributions"].items()
            if (distance := _wasserstein(point, op, reported)) is not None
        },
        "made": made,
    }


def of_accelerators(point: Point, rate: ScoredRow) -> list[ScoredRow]:
    """Rows of the quantities of accelerators, which follow from the row of the rate: the same work reads as many
    samples and computes as long. Utilisation is of the whole phase, and ends at 100 %; a stall is the rest of it.

    They are no judgement beside the rate's: coverage does not count them."""
    rows: list[ScoredRow] = []
    for name in ACCELERATORS:
        seen = [value for run in point.runs if (value := _mean_of_run(run, name)) is not None]
        if len(seen) < len(point.runs):
            continue
        measured = sum(seen) / len(seen)
        rests = name == "stall_share"
        share = (1 - measured if rests else measured) / rate["measured"]

        def follows(value: float | None, share: float = share, name: str = name, rests: bool = rests) -> float | None:
            if value is None:
                return None
            found = min(1.0, value * share) if ACCELERATORS[name] == "share" else value * share
            return 1 - found if rests else found

        forecast = follows(rate["forecast"]) or 0.0
        low, high = follows(rate["low"]), follows(rate["high"])
        low, high = (high, low) if rests else (low, high)
        row: ScoredRow = {
            "quantity": name,
            "measured": measured,
            "measured_low": min(seen),
            "measured_high": max(seen),
            "forecast": forecast,
            "low": low,
            "high": high,
            "error": error_of(forecast, measured),
            "inside": low <= measured <= high if low is not None and high is not None else None,
            "crps": None,
            "baselines": {
                model: {"value": value, "error": error_of(value, measured)}
                for model, one in rate["baselines"].items()
                if (value := follows(one["value"]))
            },
        }
        rows.append(row)
    return rows


def _mean_of_run(run: Run, name: str) -> float | None:
    """Over the repeats; None where one has none. "au" is of the whole phase."""
    of = [one.accelerators for one in run.phases]
    found = [one and (one.utilisation if name == "au" else one.quantity(name)) for one in of]
    known = [value for value in found if value]
    return sum(known) / len(known) if len(known) == len(found) else None


def log_crps(answer: Ends, measured: float, level: float) -> float:
    """Continuous ranked probability score of the logarithm, for a forecast taken as lognormal about its value and as
    wide as its interval: what a point forecast's absolute error is, but for a whole distribution; less is better
    (Gneiting & Raftery 2007, "Strictly proper scoring rules, prediction, and estimation", JASA 102, eq. 21)."""
    assert answer["low"] is not None and answer["high"] is not None
    sd = max(math.log(answer["high"] / answer["low"]) / (2 * float(ndtri((1 + level) / 2))), 1e-9)
    z = math.log(measured / answer["value"]) / sd
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return sd * (z * (2 * float(ndtr(z)) - 1) + 2 * density - 1 / math.sqrt(math.pi))


def _wasserstein(point: Point, op: str, answer: Distribution) -> float | None:
    """Mean distance between forecast and measured quantiles of an operation's latency, over the measured mean: the
    relative Wasserstein distance. None where a run's whole distribution is not known."""
    if any(op not in run.tags() for run in point.runs):
        return None
    probability = np.array(answer["probability"])
    seen = np.mean([[run.latencies(op).quantile(p) for p in probability] for run in point.runs], axis=0)
    return float(trapezoid(np.abs(np.array(answer["seconds"]) - seen), probability) / trapezoid(seen, probability))


_KINDS = {"rate": is_rate, "quantiles": is_quantile}


def _medians(errors: list[tuple[str, float]]) -> MedianErrors:
    return {
        "rate_error_median": median_error(errors, is_rate),
        "quantile_error_median": median_error(errors, is_quantile),
    }


def _summary(points: list[ScoredPoint], fitted: FittedSection) -> ValidationSummary:
    rows = [row for point in points for row in point["rows"]]
    by_model = {}
    for model in sorted({model for row in rows for model in row["baselines"]}):
        own = [(row["quantity"], row["baselines"][model]["error"]) for row in rows if model in row["baselines"]]
        by_model[model] = _medians(own)
    distances = [distance for point in points for distance in point["wasserstein"].values()]
    noise, basis = fitted["noise"], noise_basis_of(fitted)
    quantiles = KINDS["q50 to q95"] + KINDS["q99"]
    return {
        **_medians([(row["quantity"], row["error"]) for row in rows]),
        "coverage": sum(judged) / len(judged)
        if (
            judged := [
                row["inside"] for row in rows if row["inside"] is not None and row["quantity"] not in ACCELERATORS
            ]
        )
        else None,
        "crps": {
            kind: float(np.mean(scores))
            for kind, which in _KINDS.items()
            if (scores := [row["crps"] for row in rows if which(row["quantity"]) and row["crps"] is not None])
        },
        "wasserstein_median": float(np.median(distances)) if distances else None,
        "baselines": by_model,
        "beaten_by": beaten_by(points, noise, fitted.get("noise_together")),
        "noise": {
            "rate": math.expm1(noise["rate"]),
            "quantiles": math.expm1(float(np.mean([noise[q] for q in quantiles]))),
        },
        "noise_basis": {
            "rate": basis["rate"],
            "quantiles": ASSUMED if any(basis[q] == ASSUMED for q in quantiles) else basis["q50"],
        },
    }


def beaten_by(
    points: list[ScoredPoint], noise: dict[str, float], together: Mapping[str, float] | None = None
) -> list[Beaten]:
    """Simple rules that are better than the forecasts by more than noise, in throughput or in quantiles: `what`,
    `rule`, and the median errors of both (`ERROR`). A rule that has no value for some of the rows is not
    compared. Each row counts once; the noise is that of the median over all rows, by which both errors move alike.

    @param noise standard deviation of the logarithm of one measurement, by kind of quantity
    @param together the same by group of the mean of its quantities (iocast/rules/noise.py)"""
    found: list[Beaten] = []
    for (what, which), group in zip(_KINDS.items(), blend.GROUPS, strict=True):
        of_points = [(point, [row for row in point["rows"] if which(row["quantity"])]) for point in points]
        rows = [row for _, own in of_points for row in own]
        if not rows:
            continue
        deviation = noises.of_points(
            [
                (
                    len(own),
                    noises.of_mean(
                        [noise[kind_of(row["quantity"])] for row in own],
                        len(point["runs"]),
                        (together or {}).get(group, 0.0),
                    ),
                )
                for point, own in of_points
            ]
        )
        if len(rows) > 1:
            deviation *= OF_A_MEDIAN
        ours = float(np.median([abs(error_of(row["forecast"], row["measured"])) for row in rows]))
        least = max(BEATEN_BY, noises.DEVIATIONS * deviation)
        for rule in sorted(set.intersection(*(set(row["baselines"]) for row in rows))):
            values = [(row["baselines"][rule]["value"], row["measured"]) for row in rows]
            its = float(np.median([abs(error_of(*one)) for one in values]))
            if ours - its > least:
                found.append({"what": what, "rule": rule, "forecast_error": ours, "rule_error": its})
    return found

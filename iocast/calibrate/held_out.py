# SPDX-License-Identifier: Apache-2.0
"""The largest scales as forecasts of the smaller ones: what a calibration is off by on what it has not seen."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from iocast.rules import baselines, blend
from iocast.calibrate.discrepancy import held_out_from
from iocast.calibrate.search import OVERLOADED, Simulations, whole_settings
from iocast.calibrate.section import HeldOut, fitted_section, measured_point
from iocast.calibrate.structure_search import Search
from iocast.errors import RunError
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import calibrated_values
from iocast.rules.applied import has_own_storage
from iocast.runs.run_directory import Point, switches
from iocast.records.fitted import FitRow, HoldOut
from iocast.records.note_of_measurements import NothingHeldOut


def hold_out(search: Search, simulations: Simulations) -> HeldOut:
    """Forecasts the largest scale by a calibration of the smaller ones alone, which has structure, start values,
    noise and rivals of its own: the error of a forecast, and the discrepancy scale. Scales beyond half of the
    largest are left out with it, if two are left without: what is measured in between must not make the step that
    is tested smaller."""
    below = held_out_from([point.ranks for point in search.points])
    smaller = [point for point in search.points if point.ranks < below]
    if len({point.ranks for point in smaller}) < 2:
        search.notes.append(NothingHeldOut())
        return HeldOut({})
    answer = {p.name: own for p, own in zip(search.points, switches(search.points), strict=True)}
    known_before = [answer[point.name] for point in smaller]
    # What was measured with a switch at no smaller scale is no forecast of it.
    entries = [point for point in search.points if point.ranks >= below and answer[point.name] in known_before]
    if not entries:
        search.notes.append(NothingHeldOut(switched=True))
        return HeldOut({})
    scales = sorted({point.ranks for point in entries})
    without = f"without {' and '.join(map(str, scales))} ranks"
    alone = Search(
        search.recipe, smaller, search.seed, lambda name, *at: search.report(f"{without}: {name}", *at), search.trace
    )
    platform = _fitted_platform(alone, simulations)
    rows = [row for point in entries for row in _forecast(search, simulations, platform, point)]
    document: HoldOut = {
        "ranks": scales[-1],
        "scales": scales,
        "fitted_up_to": max(point.ranks for point in smaller),
        "structure": platform.fitted["structure"],
        "rows": rows,
    }
    return HeldOut(document, _backtest(search, smaller, entries, rows, answer))


def _fitted_platform(search: Search, simulations: Simulations) -> Fitted:
    """A calibrated platform, of which no scale is held out."""
    fits = search.explore(simulations)
    document = search.build(fits[0].options, fits[0].values)
    rows = search.rows(simulations, document, search.points)
    fitted = fitted_section(search, fits, HeldOut({}), rows, math.inf)
    return Fitted(Path(search.recipe.family), fitted, [document], [])


def _forecast(search: Search, simulations: Simulations, platform: Fitted, point: Point) -> list[FitRow]:
    """Rows of a point that the calibrated platform has not seen; `spread` is what its draws leave open, as a
    standard deviation of the logarithm. None where work of others piles up without end."""
    try:
        forecast = calibrated_values(
            simulations, platform, whole_settings(point.first, platform.best()),
            *point.first.placement, search.seed,
        )  # fmt: skip
    except RunError as error:
        if error.code != OVERLOADED:
            raise
        return []
    rows: list[FitRow] = []
    for quantity in point.quantities():
        if quantity not in forecast:
            continue  # so rare that a run lacks it
        value, drawn = forecast[quantity]
        measured = point.value(quantity)
        rows.append(
            {
                "point": point.name,
                "runs": len(point.runs),
                "quantity": quantity,
                "measured": measured,
                "forecast": value,
                "error": value / measured - 1,
                "spread": float(np.std(np.log(np.maximum(drawn, 1e-9)), ddof=1)) if len(drawn) > 1 else 0.0,
            }
        )
    return rows


def _backtest(
    search: Search, smaller: list[Point], entries: list[Point], rows: list[FitRow], answer: dict[str, Any]
) -> blend.Backtest | None:
    """Errors of simple rules at the held-out points, fitted to the same smaller ones; those with the switches of
    the largest."""
    like = answer[max(entries, key=lambda point: point.ranks).name]
    known = [_ruled(point) for point in smaller if answer[point.name] == like]
    if len({point.concurrency for point, _ in known}) < 2 or not rows:
        return None
    held_out = [
        (p.name, blend.Question(p.ranks, p.first.placement[0], p.waiting_factor, p.think_time))
        for p in entries
        if answer[p.name] == like
    ]
    own = has_own_storage(search.recipe.family)
    return blend.Backtest.of(known, held_out, rows, search.noise, search.together, own)


def _ruled(point: Point) -> tuple[baselines.Point, int]:
    """A point as simple rules take it, with its nodes."""
    reported = measured_point(point)
    args = (
        reported["ranks"],
        reported["waiting_factor"],
        reported["rate"],
        reported["latency"],
        reported["think_time"],
    )
    return baselines.Point(*args), int(reported["nodes"])

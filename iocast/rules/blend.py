# SPDX-License-Identifier: Apache-2.0
"""Forecasts of a calibrated platform blended with those of simple rules (docs/calibration.md, "Simple rules"). Weights
are those of a likelihood of the held-out errors, Student's t with four degrees of freedom, over prior weights.

A forecast is left as it is unless a rule was better at the held-out scale by more than noise, that scale was missed by
more than noise, or the calibration raises an alarm: what is right there needs no help."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from iocast.rules import baselines, growth
from iocast.rules.noise import DEVIATIONS, of_mean
from iocast.records.forecast import Ends, scaled
from iocast.rules.residuals import kind_of
from iocast.records.fitted import BlendOfGroup, FitRow
from iocast.runs.question import Placement
from iocast.records.note import BlendedGroup, BlendedWithRules

CALIBRATED, POPULATION, QUEUE, LAST, HALF = (
    "calibrated platform",
    "curves of growth",
    "closed M/M/c",
    "last value",
    "half slope",
)
PRIOR = {CALIBRATED: 0.6, POPULATION: 0.1, QUEUE: 0.1, LAST: 0.1, HALF: 0.1}
STRANGER_PRIOR = {CALIBRATED: 0.3, POPULATION: 0.4, QUEUE: 0.1, LAST: 0.1, HALF: 0.1}
"""Prior weights; the second where the calibration raises an alarm, or fewer than three scales were measured. Where a
rule is favoured the platform has lost what it had beforehand: then all are alike."""
DEGREES = 4
ERROR, ERROR_BY_REACH = 0.05, 0.1
"""Standard deviation of the logarithm that a good candidate's forecast is off by: beside the noise, and for each
logarithm of the reach. Round numbers chosen by hand."""
SHARES = (0.25, 0.5, 1.0)
"""Shares of that deviation that a candidate may have, alike beforehand. One whose held-out error is small is then taken
for a good one, and one that was off by the whole of it loses weight."""
APART = 0.5
"""Correlation of a candidate's errors at two held-out points. Chosen by hand."""
BEYOND = 0.03
"""Logarithms by which a mean error must be larger than another to be called so, beside noise."""
RULE_BETTER, MISSED, ALARM = (
    "a simple rule was better at the held-out scale",
    "the held-out scale was missed by more than noise",
    "the calibration raises an alarm",
)
"""Why a forecast is a blend."""
RATE, LATENCY = "rate", "latency"
GROUPS = {RATE: ("rate",), LATENCY: ("q50", "q75", "q95", "q99")}
NAMED = 0.005
"""Weight below which a candidate is not named."""

Point = baselines.Point
Values = dict[str, float]


@dataclass(frozen=True)
class Question:
    """A target scale. `nodes` may be 0 where it isn't known: the curves of growth are silent then."""

    ranks: int
    nodes: int
    waiting_factor: float = 0.0
    think_time: float = 0.0


def candidates(points: Sequence[tuple[Point, int]], request: Question, own_storage: bool = True) -> dict[str, Values]:
    """What each rule says of the question, by quantity: the rate and latency quantiles ("stat.q50").

    @param points measured points, each with its number of nodes (0: unknown); empty where the target's line has no
    slope
    @param own_storage whether the storage is the nodes' own: the curves of growth of a single machine are of such, and
    silent of a single client of servers"""
    plain = on_line(points, request)
    if not has_slope(plain):
        return {}
    args = (request.ranks, request.waiting_factor, request.think_time)
    found: dict[str, Mapping[str, Any]] = {
        QUEUE: baselines.closed_queue(plain, *args),
        LAST: baselines.last_value(plain, *args),
        HALF: baselines.half_slope(plain, *args),
    }
    one_client = not own_storage and request.nodes == 1 and all(nodes == 1 for _, nodes in points)
    grown = None if one_client else _grown(points, request)
    if grown is not None:
        found[POPULATION] = baselines.scaled(plain, math.exp(grown.value), *args)
    return {
        name: {q: float(value) for q, value in printed.items() if not isinstance(value, tuple) and value > 0}
        for name, printed in found.items()
    }


def on_line(points: Sequence[tuple[Point, int]], request: Question) -> list[Point]:
    """The points on the line of the target scale (Placement.line): what simple rules know of it."""

    def place(ranks: int, nodes: int) -> Placement:
        return Placement(nodes or None, ranks / nodes if nodes else None, ranks)

    line = place(request.ranks, request.nodes).line([place(point.ranks, nodes) for point, nodes in points])
    return [points[i][0] for i in line]


def has_slope(line: Sequence[Point]) -> bool:
    """Whether measurements on a line say how it goes on: at two numbers of ranks and two concurrencies. One placement
    with and without think times says what its ranks do, and nothing of more ranks there."""
    return len({point.ranks for point in line}) > 1 and len({point.concurrency for point in line}) > 1


def _grown(points: Sequence[tuple[Point, int]], request: Question) -> growth.Forecast | None:
    """By the curves of growth; None where nodes are not known or ranks think for a time of their own."""
    if request.think_time > 0 or request.nodes < 1 or any(nodes < 1 or point.think_time > 0 for point, nodes in points):
        return None
    measured = [
        growth.Measured(nodes, point.ranks / nodes / (1 + point.waiting_factor), math.log(point.rate))
        for point, nodes in points
    ]
    return growth.forecast(
        measured, growth.Placement(request.nodes, request.ranks / request.nodes / (1 + request.waiting_factor))
    )


@dataclass(frozen=True)
class Backtest:
    """Errors at the held-out points, as |ln(forecast / measured)|: by group of quantities and candidate the mean of a
    point's quantities. By group, of each point: `noise`, the standard deviation of such a mean; `chance`, the mean
    error of a perfect forecast; `open`, the standard deviation of the calibrated platform's forecast over
    what the fitted points left open. `reach`: concurrency over the largest fitted one."""

    reach: list[float]
    errors: dict[str, dict[str, list[float]]]
    noise: dict[str, list[float]]
    chance: dict[str, list[float]]
    open: dict[str, list[float]]

    @classmethod
    def of(
        cls,
        fitted: Sequence[tuple[Point, int]],
        held_out: Sequence[tuple[str, Question]],
        rows: Sequence[FitRow],
        noise: Mapping[str, float],
        together: Mapping[str, float] | None = None,
        own_storage: bool = True,
    ) -> Backtest:
        """@param held_out the points' names and questions; `rows` say what was measured there and what the platform,
        fitted without them, forecast
        @param noise standard deviation of the logarithm of one measurement by kind of quantity
        @param together the same by group of the mean of its quantities in one measurement, where it is known; else
        their noises are independent
        @param own_storage as candidates() takes it"""
        largest = max(point.concurrency for point, _ in fitted)
        noise_of, chance, left_open = ({group: list[float]() for group in GROUPS} for _ in range(3))
        result = cls([], {group: {} for group in GROUPS}, noise_of, chance, left_open)
        for name, requested in held_out:
            of_point = [row for row in rows if row["point"] == name]
            rate = next((row["measured"] for row in of_point if row["quantity"] == "rate"), None)
            if rate is None:
                continue
            inside = (requested.ranks - rate * requested.think_time) / (1 + requested.waiting_factor)
            result.reach.append(max(1.0, inside / largest))
            printed = candidates(fitted, requested, own_storage) | {
                CALIBRATED: {row["quantity"]: row["forecast"] for row in of_point}
            }
            for group, kinds in GROUPS.items():
                own = [row for row in of_point if kind_of(row["quantity"]) in kinds]
                deviations = [noise[kind_of(row["quantity"])] for row in own]
                runs = own[0].get("runs", 1) if own else 1
                result.noise[group].append(of_mean(deviations, runs, (together or {}).get(group, 0.0)))
                result.chance[group].append(math.sqrt(2 / math.pi / runs) * float(np.mean(deviations)) if own else 0.0)
                result.open[group].append(float(np.mean([row.get("spread", 0.0) for row in own])) if own else 0.0)
                for candidate in PRIOR:
                    values = printed.get(candidate, {})
                    known = [
                        abs(math.log(max(values[row["quantity"]], 1e-12) / row["measured"]))
                        for row in own
                        if row["quantity"] in values
                    ]
                    result.errors[group].setdefault(candidate, []).append(
                        float(np.mean(known)) if known and len(known) == len(own) else math.nan
                    )
        return result

    def _means(self, group: str) -> dict[str, float]:
        """Mean errors of the candidates that answered every held-out point."""
        return {
            name: float(np.mean(errors))
            for name, errors in self.errors[group].items()
            if errors and not np.isnan(errors).any()
        }

    def _least(self, group: str, stranger: bool) -> float:
        """What a mean error must differ by to be another: more than noise and, but of a stranger, than what the fitted
        points left open, which those that were held out settle."""
        deviation = np.hypot(self.noise[group], 0.0 if stranger else self.open[group])
        return max(BEYOND, DEVIATIONS * float(np.mean(deviation)))

    def favoured(self, group: str, stranger: bool = False) -> str | None:
        """The rule that was better than the calibrated platform by more than noise, the best one; None when none was.
        stranger: whether the calibration raises an alarm."""
        means = self._means(group)
        if CALIBRATED not in means or len(means) < 2:
            return None
        best = min((name for name in means if name != CALIBRATED), key=lambda name: means[name])
        return best if means[CALIBRATED] - means[best] > self._least(group, stranger) else None

    def because(self, group: str, stranger: bool) -> str | None:
        """Why this group is blended; None where it is not."""
        if self.favoured(group, stranger):
            return RULE_BETTER
        means = self._means(group)
        if CALIBRATED not in means or len(means) < 2:
            return None
        if stranger:
            return ALARM
        missed = means[CALIBRATED] - float(np.mean(self.chance[group]))
        return MISSED if missed > self._least(group, stranger) else None

    def weights(self, group: str, stranger: bool, few: bool = False) -> dict[str, float]:
        """Weights of the candidates that answered every held-out point; the calibrated platform alone where nothing is
        blended. few: whether fewer than three scales were measured."""
        if self.because(group, stranger) is None:
            return {CALIBRATED: 1.0}
        prior = STRANGER_PRIOR if stranger or few else PRIOR
        if self.favoured(group, stranger):
            prior = dict.fromkeys(PRIOR, 1 / len(PRIOR))
        points = len(self.reach)
        worth = points / (1 + (points - 1) * APART**2)  # as many independent ones
        logs = {}
        for name in self._means(group):
            scores = []
            for share in SHARES:
                spread = np.hypot(share * (ERROR + ERROR_BY_REACH * np.log(self.reach)), self.noise[group])
                if name == CALIBRATED and not stranger:
                    spread = np.hypot(spread, self.open[group])
                square = (np.array(self.errors[group][name]) / spread) ** 2
                own = -np.log(spread) - (DEGREES + 1) / 2 * np.log1p(square / DEGREES)
                scores.append(worth * float(np.mean(own)))
            logs[name] = math.log(prior[name]) + float(np.logaddexp.reduce(scores))
        most = max(logs.values())
        total = sum(math.exp(log - most) for log in logs.values())
        return {name: math.exp(log - most) / total for name, log in logs.items()}

    def document(self, stranger: bool, few: bool = False) -> dict[str, BlendOfGroup]:
        """As `fitted.blend` of a platform file: by group `weights`, root mean square `errors` of each candidate, which
        rule is `favoured`, and why it is a blend (`because`)."""
        return {
            group: {
                "favoured": self.favoured(group, stranger),
                "because": self.because(group, stranger),
                "weights": self.weights(group, stranger, few),
                "errors": {
                    name: float(np.sqrt(np.mean(np.square(self.errors[group][name])))) for name in self._means(group)
                },
            }
            for group in GROUPS
        }


def is_blended(blend: Mapping[str, BlendOfGroup]) -> bool:
    """Whether simple rules have weight in some group of quantities."""
    return any(len(blend.get(group, {}).get("weights", {})) > 1 for group in GROUPS)


def note_of(blend: Mapping[str, BlendOfGroup]) -> BlendedWithRules | None:
    """The weights and why they are so; None where nothing is blended."""
    groups = [
        BlendedGroup(what, weights, blend[group].get("because") or RULE_BETTER)
        for group, what in ((RATE, "throughput"), (LATENCY, "latencies"))
        if len(weights := blend.get(group, {}).get("weights", {})) > 1
    ]
    return BlendedWithRules(groups) if groups else None


def mean_response(request: Question, rate: float) -> float:
    """Mean response time in seconds at this rate, by Little's law."""
    return max((request.ranks - rate * request.think_time) / (1 + request.waiting_factor), 1e-12) / rate


@dataclass(frozen=True)
class Blended:
    value: float
    low: float | None
    high: float | None


def blended(
    blend: Mapping[str, BlendOfGroup],
    quantities: Mapping[str, Ends],
    rules: Mapping[str, Values],
    request: Question,
    largest: float,
    noise: Mapping[str, float],
    level: float,
) -> dict[str, Blended]:
    """Values and intervals of a forecast's quantities after blending; of all quantities, when only the rate is blended,
    too: latencies change with the mean response (Little's law).

    @param quantities of the calibrated platform: {value, low, high}
    @param rules what `candidates` says
    @param largest concurrency of the largest fitted point"""
    rate = quantities["rate"]["value"]
    z = float(ndtri((1 + level) / 2))
    printed = {CALIBRATED: {name: one["value"] for name, one in quantities.items()}} | dict(rules)

    def spread(group: str, candidate: str, reach: float, kind: str) -> float:
        return math.hypot(
            float(blend[group]["errors"].get(candidate, 0.0)), ERROR + 2 * ERROR_BY_REACH * math.log(reach), noise[kind]
        )

    def mixed(group: str, name: str, shift: Mapping[str, float]) -> Blended:
        """`shift`: by candidate the logarithm that is added."""
        weights = {c: w for c, w in blend[group]["weights"].items() if printed.get(c, {}).get(name, 0.0) > 0}
        one = quantities[name]
        if len(weights) < 2 or CALIBRATED not in weights:
            found = scaled(one, math.exp(shift[CALIBRATED]))
            return Blended(found["value"], found["low"], found["high"])
        total = sum(weights.values())
        logs = {c: math.log(printed[c][name]) + shift.get(c, 0.0) for c in weights}
        value = sum(w / total * logs[c] for c, w in weights.items())
        if one["low"] is None or one["high"] is None:
            return Blended(math.exp(value), None, None)
        reach = max(1.0, mean_response(request, rate) * rate / largest)
        laws: list[tuple[float, float, float, float]] = []  # weight, middle, spread below, spread above
        for c, w in weights.items():
            below = above = spread(group, c, reach, kind_of(name))
            if c == CALIBRATED:
                below, above = (max(abs(math.log(one["value"] / end)) / z, 1e-6) for end in (one["low"], one["high"]))
            laws.append((w / total, logs[c], below, above))
        low, high = (_quantile(laws, p) for p in ((1 - level) / 2, (1 + level) / 2))
        return Blended(math.exp(value), math.exp(min(low, value)), math.exp(max(high, value)))

    found = {"rate": mixed(RATE, "rate", {CALIBRATED: 0.0})}
    new = found["rate"].value
    # By Little's law the mean response follows the rate; each candidate's latencies are taken at the blended rate.
    shift = {
        c: math.log(mean_response(request, new) / mean_response(request, values["rate"]))
        for c, values in printed.items()
        if values.get("rate", 0.0) > 0
    }
    return found | {name: mixed(LATENCY, name, shift) for name in quantities if name != "rate"}


def _quantile(laws: Sequence[tuple[float, float, float, float]], probability: float) -> float:
    """Of a mixture of normal laws with a spread of their own on either side."""

    def below(x: float) -> float:
        return sum(w * float(ndtr((x - m) / (low if x < m else high))) for w, m, low, high in laws)

    reach = max(10 * max(low, high) for _, _, low, high in laws)
    least, most = min(m for _, m, _, _ in laws) - reach, max(m for _, m, _, _ in laws) + reach
    return float(brentq(lambda x: below(x) - probability, least, most, xtol=1e-6))


def ceiling(points: Sequence[tuple[Point, int]], request: Question, noise: float) -> float:
    """A bound of the rate: the throughput of a closed system is concave in its ranks, so that none is above the
    straight line through the two largest measured scales on the target's line, drawn as steep as two deviations of the
    measured rates allow; nor, where that falls, is any above the largest measured one. Infinite where ranks think for a
    time of their own, and where nodes are not known.

    @param noise standard deviation of the logarithm of a measured rate"""
    known = on_line([(point, nodes) for point, nodes in points if nodes > 0], request)
    thinking = request.think_time > 0 or any(point.think_time > 0 for point in known)
    if request.nodes < 1 or thinking or not has_slope(known):
        return math.inf
    below, last = baselines.by_concurrency(known)[-2:]
    steep = [_times(below, math.exp(-2 * noise)), _times(last, math.exp(2 * noise))]
    line = baselines.straight_line(steep, request.ranks, request.waiting_factor, request.think_time)["rate"]
    return max(float(line), math.exp(2 * noise) * max(point.rate for point in known))  # type: ignore[arg-type]


def _times(point: Point, factor: float) -> Point:
    return Point(point.ranks, point.waiting_factor, point.rate * factor, point.operations, point.think_time)

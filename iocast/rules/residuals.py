# SPDX-License-Identifier: Apache-2.0
"""What a fitted platform still misses of its own measurements, carried on to where nothing was measured. A random walk
over the logarithm of scale is the simplest error of a model that is not known to end anywhere (Kennedy & O'Hagan 2001,
section 4.2: discrepancy as a Gaussian process); its mean between two scales is a straight line, and beyond the largest
one what it was there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from iocast.runs.measured import measured
from iocast.runs.question import Question
from iocast.records.fitted import FitRow, FittedSection

TINY = 1e-9
"""Share of all residuals' squares below which the variance beside chance is none."""


@dataclass(frozen=True)
class Residual:
    """Of one quantity at a measured place: logarithm of forecast over measured."""

    question: Question
    log: float


@dataclass(frozen=True)
class Residuals:
    known: dict[str, list[Residual]]
    """By quantity, one for each question."""

    @classmethod
    def of(cls, rows: Iterable[FitRow], questions: Mapping[str, Question], noise: dict[str, float]) -> Residuals:
        """From rows that say what a platform was off by: {point, quantity, error, runs, noise}, error as a factor less
        1, of a measured mean of `runs` runs (1).

        @param questions that of each point, by name; rows of others are left out
        @param noise standard deviation of the logarithm of a measurement, by kind of quantity ("rate", "q50", ...), of
        rows that don't have their point's own"""
        logs: dict[str, dict[Question, list[tuple[float, float]]]] = {}
        for row in rows:
            if row["error"] > -1 and row["point"] in questions:
                own = logs.setdefault(row["quantity"], {}).setdefault(questions[row["point"]], [])
                deviation = row.get("noise", noise.get(kind_of(row["quantity"]), 0.0))
                # Of the mean of the measurement's runs, and of the one simulation beside it.
                own.append((math.log1p(row["error"]), deviation**2 * (1 / row.get("runs", 1) + 1)))
        by_kind: dict[str, list[tuple[float, float]]] = {}
        for quantity, by_question in logs.items():
            by_kind.setdefault(kind_of(quantity), []).extend(one for own in by_question.values() for one in own)
        missed = {kind: _beside_chance(own) for kind, own in by_kind.items()}

        def kept(kind: str, own: list[tuple[float, float]]) -> float:
            return float(np.mean([log * _share(missed[kind], chance) for log, chance in own]))

        return cls(
            {
                quantity: [Residual(question, kept(kind_of(quantity), own)) for question, own in by_question.items()]
                for quantity, by_question in logs.items()
            }
        )

    @classmethod
    def of_fitted(
        cls, fitted: FittedSection, about: Question | None = None, rows: Iterable[FitRow] | None = None
    ) -> Residuals:
        """Of the section `fitted` of a platform file (docs/answers.md), at the points that speak of a question, or at
        all; none of a platform that was never calibrated. `rows`: those of another solver than the simulator."""
        questions = {one.name: one.question for one in measured(fitted, about)}
        return cls.of(fitted.get("fit", []) if rows is None else rows, questions, fitted.get("noise", {}))

    def at(self, quantity: str, question: Question) -> float:
        """The logarithm by which the platform is taken to be too high: at the think time and waiting factor nearest to
        the question's, along the line of its placement; where none was measured on that line, at the nearest
        placements. A part of an operation ("create.open.q50") is off as the whole is."""
        line = self._line(quantity, question)
        return float(np.interp(math.log(question.placement.ranks), list(line), list(line.values()))) if line else 0.0

    def walked(self, quantity: str, question: Question) -> float:
        """How far the residual may be another one at a question than `at` says, as the standard deviation of a
        logarithm: of a random walk with the steps between the measured scales, held at these and free beyond the
        outermost ones. As much as is missed at all where nothing was measured with that load, or at one scale alone."""
        line = self._line(quantity, question)
        loads = {(one.question.waiting_factor, one.question.think_time) for one in self.known.get(quantity, [])}
        if len(line) < 2 or (question.waiting_factor, question.think_time) not in loads:
            here = any(one.question.answers(question) for one in self.known.get(quantity, []))
            return 0.0 if here else self.largest(quantity, kind_of(quantity))
        at, logs, target = np.array(list(line)), np.array(list(line.values())), math.log(question.placement.ranks)
        variance = float(np.sum(np.diff(logs) ** 2) / (at[-1] - at[0]))
        below, above = at[at <= target], at[at >= target]
        if not len(below) or not len(above):
            return math.sqrt(variance * float(np.min(np.abs(at - target))))
        apart = above[0] - below[-1]
        return math.sqrt(variance * (target - below[-1]) * (above[0] - target) / apart) if apart else 0.0

    def _line(self, quantity: str, question: Question) -> dict[float, float]:
        """By logarithm of the ranks, rising, the residuals that `at` goes along."""
        op, _, which = quantity.rpartition(".")
        known = self.known.get(quantity) or self.known.get(f"{op.partition('.')[0]}.{which}")
        if not known:
            return {}
        place = question.placement
        known = [known[i] for i in place.line([one.question.placement for one in known])] or _nearest(
            known, lambda one: place.distance(one.question.placement)
        )
        known = _nearest(known, lambda one: _load_apart(one.question, question))
        by_ranks: dict[int, list[float]] = {}
        for one in known:
            by_ranks.setdefault(one.question.placement.ranks, []).append(one.log)
        return {math.log(ranks): float(np.mean(by_ranks[ranks])) for ranks in sorted(by_ranks)}

    def largest(self, quantity: str, kind: str) -> float:
        """By how much the platform is off, either way, at the largest scale of each waiting factor, as a logarithm: in
        the quantity, or if it was not fitted in any of its kind."""
        about = [quantity] if quantity in self.known else [name for name in self.known if kind_of(name) == kind]
        found = 0.0
        for name in about:
            most: dict[tuple[float, float], int] = {}
            for one in self.known[name]:
                load = (one.question.waiting_factor, one.question.think_time)
                most[load] = max(most.get(load, 0), one.question.placement.ranks)
            found = max(
                found,
                *(
                    abs(one.log)
                    for one in self.known[name]
                    if one.question.placement.ranks == most[one.question.waiting_factor, one.question.think_time]
                ),
            )
        return found


def _load_apart(one: Question, other: Question) -> tuple[float, float, float]:
    """How far apart two questions' think times and waiting factors are; of equally near ones the smaller first."""
    apart = abs(math.log1p(one.waiting_factor) - math.log1p(other.waiting_factor))
    return abs(one.think_time - other.think_time), apart, one.waiting_factor


def _nearest(known: Sequence[Residual], apart: Callable[[Residual], Any]) -> list[Residual]:
    least = min(map(apart, known))
    return [one for one in known if apart(one) == least]


def kind_of(quantity: str) -> str:
    """ "create.q50" -> "q50"."""
    return quantity.rpartition(".")[2]


def _share(missed: float, chance: float) -> float:
    """The share of a residual that is not chance: shrinking by it makes the mean square error least (James & Stein
    1961; with unequal variances Efron & Morris 1973)."""
    return missed / (missed + chance) if missed > 0 else 0.0


def _beside_chance(residuals: Sequence[tuple[float, float]]) -> float:
    """The variance that residuals have beside that of chance, each with its own: with both the mean square of the
    standardised ones is 1 (Paule & Mandel 1982); 0 where chance explains them all."""
    squares = np.array([log**2 for log, _ in residuals])
    chance = np.array([of_chance for _, of_chance in residuals])

    def beyond(missed: float) -> float:
        return float(np.mean(squares / (missed + chance))) - 1

    most = float(np.sum(squares))
    least = TINY * most
    if most == 0 or beyond(least) <= 0:
        return 0.0
    return float(brentq(beyond, least, 2 * most, xtol=least))

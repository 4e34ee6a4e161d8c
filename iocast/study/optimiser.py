# SPDX-License-Identifier: Apache-2.0
"""Spaces too large for the full factorial: NSGA-II over cost, rate and tail (Deb et al. 2002, by Optuna), then a local
search around what it found, so that the cheapest design is not missed by one step."""

from __future__ import annotations

import math
import warnings
from typing import Any

from iocast.study.designs import Design
from iocast.study.search import Candidate, Search

POPULATION = 40


def explore(search: Search) -> None:
    """Adds designs to the search: in whole generations, so that the answer is the same however many workers there
    are."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study, designs = search.study, search.desk.designs
    search.explored = "NSGA-II"
    budget = study.search.evaluations

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constraints are Optuna's to call experimental
        sampler = optuna.samplers.NSGAIISampler(
            population_size=POPULATION, seed=search.desk.seed, constraints_func=lambda t: t.user_attrs["missed"]
        )
        trials = optuna.create_study(directions=["minimize"] * 3, sampler=sampler)
    names = [axis.name for axis in study.axes]
    spaces: dict[str, optuna.distributions.BaseDistribution] = {
        axis.name: optuna.distributions.CategoricalDistribution(list(range(len(axis.values)))) for axis in study.axes
    }
    for extreme in _corners(search):
        trials.enqueue_trial(dict(zip(names, extreme, strict=True)))
    requested = 0
    while len(search.candidates) < budget and requested < 5 * budget:
        generation = [trials.ask(spaces) for _ in range(POPULATION)]
        requested += len(generation)
        chosen = [designs.of(tuple(int(t.params[name]) for name in names)) for t in generation]
        search.add([d for d in dict.fromkeys(chosen) if not designs.excluded(d)])
        for trial, design in zip(generation, chosen, strict=True):
            values, missed = _judged(search, design)
            trial.set_user_attr("missed", missed)
            trials.tell(trial, values)
    _climb(search)


def _corners(search: Search) -> list[tuple[int, ...]]:
    """The cheapest value on every axis, the dearest, and the first."""
    ends = []
    for pick in (min, max):
        priced = [[(_price(search, value), i) for i, value in enumerate(a.values)] for a in search.study.axes]
        ends.append(tuple(pick(values)[1] for values in priced))
    return list(dict.fromkeys([*ends, (0,) * len(search.study.axes)]))


def _price(search: Search, value: Any) -> float:
    return float(sum(count * search.study.parts[name].price for name, count in value.parts.items()))


def _judged(search: Search, design: Design) -> tuple[list[float], list[float]]:
    """Cost, -log rate, log tail; and what is missed: limits and levels, above zero where one is."""
    candidate = search.candidates.get(design.number)
    if candidate is None or design.beyond:
        return [design.cost, 0.0, 0.0], [1.0 + (len(design.beyond) or 9)]
    objectives = search.objectives(candidate)
    worst = min(search.margin_means(candidate)[0], default=0.0)
    if objectives is None:
        return [design.cost, 0.0, 0.0], [9.0]
    return [objectives[0], -math.log(objectives[1]), math.log(objectives[2])], [-worst]


def _climb(search: Search) -> None:
    """Looks at all single-axis changes of the cheapest design that seems to keep everything (or of the one that comes
    nearest), and goes on from the best of them, until there is none better."""
    designs = search.desk.designs
    seen: set[int] = set()
    while (best := _leading(search)) is not None and best.design.number not in seen:
        seen.add(best.design.number)
        choice = designs.choice(best.design.number)
        around = [
            designs.of((*choice[:i], j, *choice[i + 1 :]))
            for i, axis in enumerate(search.study.axes)
            for j in range(len(axis.values))
            if j != choice[i]
        ]
        search.add([d for d in around if not designs.excluded(d)])


def _leading(search: Search) -> Candidate | None:
    worst = {c: min(search.margin_means(c)[0], default=0.0) for c in search.allowed}
    keeping = [c for c in search.allowed if worst[c] >= 0]
    if keeping:
        return keeping[0]  # the cheapest
    return max(search.allowed, key=lambda c: (worst[c], -c.design.cost, -c.design.number), default=None)

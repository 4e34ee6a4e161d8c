# SPDX-License-Identifier: Apache-2.0
"""What the answer hangs on: the axes, what is uncertain, and what it would be worth to know it before buying.

The expected value of information (Howard 1966; Raiffa & Schlaifer 1961): what a choice made with the knowledge costs
less, on average, than the choice that is best without it. A choice costs its price, and the price of falling short when
a level is missed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
import numpy as np

from iocast.ground.arrays import Array, log, means, numbers, sums, variances
from iocast.study import risk
from iocast.study.questions import Ask, Point
from iocast.study.search import Candidate, Search
from iocast.study.spec import MODEL
from iocast.records.study import AxisEffect, AxisSensitivity, Uncertain, Worth

CONTENDERS = 8
OUTER, INNER = 256, 512
STEP = 1.0
"""Standard deviations to either side over which an effect is taken."""


@dataclass(frozen=True)
class Slopes:
    """Change of every margin of a design with one standard deviation of each uncertain number, [names, conditions]."""

    names: tuple[str, ...]
    table: Array


def slopes(search: Search, chosen: list[Candidate]) -> dict[int, Slopes]:
    """By the analytic solver, whose answers have no noise, set right by a ridge regression over the replications: the
    solver's slope counts as much as one replication."""
    desk = search.desk
    asks: dict[tuple[int, str, int, Point], Ask] = {}
    uncertain = {c.design.number: desk.variants.uncertain(c.design) for c in chosen}
    points = [p for p in search.points if desk.can_screen(p.workload)]
    for c in chosen:
        for name, sd in uncertain[c.design.number].items():
            for side in (-1, 1):
                factors = ((name, math.exp(side * STEP * sd)),)
                for point in points:
                    asks[c.design.number, name, side, point] = Ask("analytic", c.design.number, point, factors=factors)
    found = desk.gather(asks.values(), "asking what the answer hangs on")
    result = {}
    for c in chosen:
        names = tuple(uncertain[c.design.number])
        table = np.zeros((len(names), len(search.conditions)))
        for i, name in enumerate(names):
            sides = [
                search.margins_of({p: found[asks[c.design.number, name, side, p]] for p in points}) for side in (1, -1)
            ]
            table[i] = [
                0.0 if up is None or down is None else (up - down) / 2 / STEP for up, down in zip(*sides, strict=True)
            ]
        scores: Array = np.array(
            [
                [desk.variants.scores(c.design, r + 1).get(name, 0.0) for name in names]
                for r in range(len(c.replications))
            ]
        )
        if names and len(scores) > 1:
            scores -= means(scores)
            margins = search.margin_table(c)
            unexplained = margins - means(margins) - scores @ table
            table = table + np.linalg.solve(scores.T @ scores + np.eye(len(names)), scores.T @ unexplained)
        result[c.design.number] = Slopes(names, table)
    return result


def contenders(search: Search) -> list[Candidate]:
    """Designs that could be bought: the decision, what is cheaper with some chance, and what is dearer but safer."""
    best = search.decision()
    known = [c for c in search.tried if c.probability >= 0.01 or c is best]
    known.sort(key=lambda c: (c.design.cost, c.design.number))
    if best is None:
        return sorted(known or search.tried, key=lambda c: -c.probability)[:CONTENDERS]
    cheaper = [c for c in known if c.design.cost < best.design.cost][-CONTENDERS // 2 :]
    dearer = [
        c for c in known if c is not best and c.design.cost >= best.design.cost and c.probability >= best.probability
    ]
    return [*cheaper, best, *dearer[: CONTENDERS - 1 - len(cheaper)]]


def axes(search: Search) -> list[AxisSensitivity]:
    """How much of the differences in rate, in tail and in the worst margin each axis explains by itself (first-order
    share of the variance over all designs looked at), and what each of its values does on average."""
    known = [(c, o) for c in search.allowed if (o := search.objectives(c)) is not None]
    result: list[AxisSensitivity] = []
    if len(known) < 2:
        return result
    choices = [search.desk.designs.choice(c.design.number) for c, _ in known]
    worst = numbers(min(search.margin_means(c)[0], default=0.0) for c, _ in known)
    outcomes = {"rate": log([o[1] for _, o in known]), "tail": log([o[2] for _, o in known]), "worst margin": worst}
    for index, axis in enumerate(search.study.axes):
        groups = [[n for n, one in enumerate(choices) if one[index] == i] for i in range(len(axis.values))]
        shares: dict[str, float] = {}
        effects: list[AxisEffect] = []
        for name, values in outcomes.items():
            total = float(np.var(values))
            by_value = [float(np.mean(values[group])) if group else 0.0 for group in groups]
            explained = numbers(by_value[one[index]] for one in choices) - np.mean(values)
            shares[name] = float(np.mean(np.square(explained)) / total) if total > 1e-12 else 0.0
        for value, group in zip(axis.values, groups, strict=True):
            if group:
                cost = float(np.mean([known[n][0].design.cost for n in group]))
                rate, tail = (math.exp(np.mean(outcomes[name][group])) for name in ("rate", "tail"))
                margin = float(np.mean(worst[group]))
                effects.append({"value": value.name, "cost": cost, "rate": rate, "tail": tail, "worst_margin": margin})
        result.append({"axis": axis.name, "shares": shares, "values": effects})
    return result


def uncertain(search: Search, candidate: Candidate, known: Slopes) -> list[Uncertain]:
    """What the tightest condition of a design does when something uncertain is one standard deviation up, most
    important first; and the factor from which on that level is missed, all else being as thought."""
    margins = search.margins(candidate.best)
    index = int(np.argmin(margins))
    level, point = search.conditions[index]
    sds = search.desk.variants.uncertain(candidate.design)
    value = search.read(candidate.best[point], point, level.quantity) or level.limit
    result: list[Uncertain] = []
    for name, slope in zip(known.names, map(float, known.table[:, index]), strict=True):
        turns = None
        if abs(slope) > 1e-6 and abs(z := -margins[index] / slope) <= 4:
            turns = math.exp(z * sds[name])
        result.append(
            {
                "name": name,
                "factor": math.exp(NormalDist().inv_cdf(0.95) * sds[name]),
                "effect": level.moved(value, slope) / value,
                "level": level.name,
                "workload": point.workload,
                "scale": point.scale,
                "turns_at": turns,
            }
        )
    return sorted(result, key=lambda r: -abs(math.log(r["effect"])))


class Value:
    """Samples of all contenders' margins, separated by their cause."""

    def __init__(self, search: Search, chosen: list[Candidate], known: dict[int, Slopes]) -> None:
        self.search, self.chosen = search, chosen
        self.names = tuple(dict.fromkeys(n for c in chosen for n in known[c.design.number].names))
        best = search.decision()
        price = search.study.falling_short
        self.falling_short = price if price is not None else max((best or chosen[0]).design.cost, 1.0)
        self.costs = [c.design.cost for c in chosen]
        self.centres: list[Array] = []
        self.slopes: list[Array] = []
        self.rest: list[Array] = []
        self.errors = [search.model_error(c) for c in chosen]
        self.deviations = [search.desk.variants.uncertain(c.design) for c in chosen]
        for c in chosen:
            table = search.judged_table(c)
            slope = np.zeros((len(self.names), table.shape[1]))
            slope[[self.names.index(name) for name in known[c.design.number].names]] = known[c.design.number].table
            samples = risk.predictive(table, risk.ModelError.none(table.shape[1]), INNER)
            residual = samples - means(samples)
            # What the uncertain numbers explain is theirs; replications keep the rest.
            explained = sums(np.square(slope)) / np.maximum(variances(residual), 1e-12)
            self.centres.append(means(table))
            self.slopes.append(slope)
            self.rest.append(residual * np.sqrt(np.maximum(1 - explained, 0.05)))
        generator = np.random.Generator(np.random.Philox(key=7))
        self._inner = generator.standard_normal((INNER, len(self.names)))
        self._outer = generator.standard_normal((OUTER, len(self.names)))

    def now(self) -> float:
        """Expected cost of the best choice, knowing no more than now."""
        return float(np.min(means(self._losses({}))))

    def of_knowing(self, left: dict[str, float]) -> float:
        """What a choice costs less on average once these are known; `left`: for each, the standard deviation of its
        logarithm that stays unknown."""
        if len(self.chosen) < 2:
            return 0.0
        losses = self._losses(left)
        # The same samples with and without the knowledge, so that their noise is not taken for value.
        return max(0.0, float(np.min(means(losses)) - np.mean(np.minimum.reduce(losses, axis=1))))

    def _losses(self, left: dict[str, float]) -> Array:
        """[outer, designs]: expected cost given the results of each outer sample."""
        result = np.empty((OUTER, len(self.chosen)))
        for d in range(len(self.chosen)):
            error = self.errors[d]
            stays = numbers(_stays(left.get(name), self.deviations[d].get(name, 0.0)) for name in self.names)
            model = numbers(_stays(left.get(MODEL), scale) for scale in map(float, error.scale))
            inner_error = error.samples(INNER, seed=3)
            outer_error = error.samples(OUTER, seed=4)
            unknown = self.centres[d] + self.rest[d] + (self._inner * stays) @ self.slopes[d] + model * inner_error
            known = (self._outer * np.sqrt(1 - stays**2)) @ self.slopes[d] + np.sqrt(1 - model**2) * outer_error
            kept = means(np.logical_and.reduce(unknown[None, :, :] + known[:, None, :] >= 0, axis=2), axis=1)
            result[:, d] = self.costs[d] + self.falling_short * (1 - kept)
        return result


def _stays(left: float | None, deviation: float) -> float:
    """Share of a standard deviation that stays unknown: all of it where nothing was measured, never more than
    before."""
    if left is None:
        return 1.0
    return min(1.0, left / deviation) if deviation > 0 else 0.0


def measurements(search: Search, value: Value) -> list[Worth]:
    """The study's measurements with what they are worth and cost, and what it would be worth to know each uncertain
    thing exactly."""
    result: list[Worth] = []
    for one in search.study.measurements:
        left = math.log(one.leaves) / NormalDist().inv_cdf(0.95)
        worth = value.of_knowing(dict.fromkeys(one.tells, left))
        result.append(
            {
                "name": one.name,
                "tells": list(one.tells),
                "price": one.price,
                "value": worth,
                "net": worth - one.price,
                "exact": one.leaves == 1,
            }
        )
    for name in (*value.names, MODEL):
        if name == MODEL and not any(np.any(e.scale) for e in value.errors):
            continue
        worth = value.of_knowing({name: 0.0})
        result.append(
            {
                "name": f"knowing {name} exactly" if name != MODEL else "a model without error",
                "tells": [name],
                "price": None,
                "value": worth,
                "net": None,
                "exact": True,
            }
        )
    return sorted(result, key=lambda r: -(r["net"] if r["net"] is not None else r["value"]))

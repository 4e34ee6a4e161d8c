# SPDX-License-Identifier: Apache-2.0
"""From many designs to one: screened by the analytic solver, then simulated, cheapest candidates first, until the
decision stands."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from iocast.ground.arrays import Array, log, numbers, rows, sums
from iocast.platforms.fitted import discrepancy_at
from iocast.forecasts.simulated import SEEDS
from iocast.published.errors import Spread
from iocast.rules.applied import doubted
from iocast.rules.residuals import Residuals
from iocast.study import carried, quantities, risk
from iocast.study.designs import Design
from iocast.study.questions import Ask, Point
from iocast.study.desk import Desk
from iocast.study.evaluate import Result, pooled
from iocast.study.levels import Level, kind_of
from iocast.study.places import refused
from iocast.study.risk import DOWN, PLAUSIBLE, ModelError
from iocast.study.spec import NORMAL, Study
from iocast.study.amounts import chance, money, quoted

BATCH = 4
"""Replications that are added at a time; also designs that are tried at a time."""
STABLE = 0.95
"""Share of bootstrap samples over replications that must give the same decision before it counts as settled."""
_PRIOR = {
    "rate": (0.15, 0.10),
    "q50": (0.4, 0.25),
    "q75": (0.4, 0.25),
    "q95": (0.5, 0.3),
    "q99": (0.5, 0.3),
    "max": (0.7, 0.5),
}
"""Of log(simulated / analytic), by kind: standard deviation of its mean before anything is simulated, and from design
to design."""
_NORMAL = NormalDist()


@dataclass(eq=False)
class Candidate:
    """What is known of one design."""

    design: Design
    screened: dict[Point, Result] = field(default_factory=dict)
    best: dict[Point, Result] = field(default_factory=dict)  # simulated with the best estimate
    replications: list[dict[Point, Result]] = field(default_factory=list)
    probability: float = 0.0  # that all levels hold
    level_probabilities: Array | None = None  # by condition
    settled: bool = False

    @property
    def simulated(self) -> bool:
        return bool(self.best)


class Search:
    def __init__(self, desk: Desk, tell: Callable[[str], None] = lambda _: None) -> None:
        """`tell` hears what the results of earlier runs say, once, before anything is simulated."""
        self.desk = desk
        self.tell = tell
        self.study: Study = desk.study
        self.points = desk.points()
        self.conditions: list[tuple[Level, Point]] = desk.conditions()
        self.candidates: dict[int, Candidate] = {}
        self.stability = 0.0
        self.explored = "full factorial"
        self._errors: dict[tuple[str, bool], ModelError] = {}
        self._judged: dict[int, Array] = {}
        self._ratios: dict[tuple[Point, str], tuple[Array, NDArray[np.int64]]] = {}
        self._values: dict[
            tuple[int, Point, str], tuple[float, float] | None
        ] = {}  # of designs that were not simulated

    # Choosing what to look at ------------------------------------------------------------------------------------

    def run(self, explore: Callable[[Search], None]) -> None:
        """Screens and simulates designs. `explore` chooses those of a space that is too large for all."""
        if self.study.size <= self.study.search.full_up_to:
            self.add(list(self.desk.designs.all()))
        else:
            explore(self)
        if not self.allowed:
            text = f"the limits contradict the prices, no design stays within them. {self._no_room()}"
            raise refused(self.study.file, text, "limits")
        self.desk.before_computing = self._glance
        self.simulate()
        self.settle()
        self.desk.before_computing = None

    def _glance(self) -> None:
        """What is known already, of all designs: another price makes other designs deserve a simulation, which takes a
        while."""
        known = Search(self.desk)
        for c in self.allowed:
            runs = self._known_runs(c.design)
            best = runs[0] if len(runs) > BATCH else {}  # with fewer replications it would look surer than it is
            known.candidates[c.design.number] = Candidate(c.design, c.screened, best, runs[1:])
        if known.tried:
            known.judge()
            self.tell(f"From what earlier runs computed: {known.summary()}. The rest is on its way.")

    def _known_runs(self, design: Design) -> list[dict[Point, Result]]:
        """The best estimate and the replications that were simulated at all points."""
        runs: list[dict[Point, Result]] = []
        for replication in range(self.study.search.replications + 1):
            asks = {
                p: [Ask("simulate", design.number, p, replication)] if replication else _best_of(design.number, p)
                for p in self.points
            }
            found = self.desk.known(ask for of in asks.values() for ask in of)
            if len(found) < sum(map(len, asks.values())):
                break
            runs.append({p: pooled([found[ask] for ask in of]) for p, of in asks.items()})
        return runs

    def summary(self) -> str:
        """The decision as far as it is known, in a line."""
        best = self.decision()
        if best is None:
            likeliest = max(self.tried, key=lambda c: c.probability)
            text = f"none of the {len(self.tried)} designs simulated so far keeps all levels, the likeliest is"
            return f"{text} {quoted(likeliest.design.name)} ({chance(likeliest.probability)})"
        priced = any(c.design.cost for c in self.candidates.values())
        cost = f" for {money(best.design.cost, self.study.currency)}," if priced else ","
        return (
            f"{quoted(best.design.name)}{cost} which keeps all levels with {chance(best.probability)} confidence "
            f"({len(self.tried)} designs simulated so far)"
        )

    def _no_room(self) -> str:
        """What the most modest design takes of everything that is limited."""
        study, every = self.study, [c.design for c in self.candidates.values()]
        if not every:
            return "All of them are excluded."
        least = [
            ("cost", "budget", "budget", study.currency),
            ("watts", "watts", "watts limit", "W"),
            ("rack_units", "rack_units", "rack units limit", "rack units"),
        ]
        entries = [
            f"the {named} is {getattr(study.limits, limit):,.0f} and the most modest design "
            f"takes {min(getattr(d, what) for d in every):,.0f} {unit}".rstrip()
            for what, limit, named, unit in least
            if any(getattr(d, what) > getattr(study.limits, limit) for d in every)
        ]
        return f"{'; '.join(entries)}.".capitalize()

    def add(self, designs: list[Design]) -> None:
        """Makes candidates of the designs and screens those that break no limit."""
        fresh = [d for d in designs if d.number not in self.candidates]
        for design in fresh:
            self.candidates[design.number] = Candidate(design)
        asks = [
            Ask("analytic", d.number, p)
            for d in fresh
            if not d.beyond
            for p in self.points
            if self.desk.can_screen(p.workload)
        ]
        found = self.desk.gather(asks, "screening designs")
        for ask, result in found.items():
            if "unsolved" not in result:
                self.candidates[ask.design].screened[ask.point] = result
        # What the analytic solver can't do is simulated once instead.
        left = [
            Ask("simulate", d.number, p)
            for d in fresh
            if not d.beyond
            for p in self.points
            if p not in self.candidates[d.number].screened
        ]
        for ask, result in self.desk.gather(left, "screening designs by simulation").items():
            self.candidates[ask.design].screened[ask.point] = result

    @property
    def allowed(self) -> list[Candidate]:
        """Within all limits, cheapest first."""
        return sorted(
            (c for c in self.candidates.values() if not c.design.beyond), key=lambda c: (c.design.cost, c.design.number)
        )

    @property
    def tried(self) -> list[Candidate]:
        return [c for c in self.allowed if c.simulated]

    def simulate(self) -> None:
        """Simulates candidates in small rounds: those that could be the decision, cheapest first; what is left of the
        budget goes to the front of cost, rate and tail, and to the neighbours of the decision in cost."""
        budget = self.budget
        while len(self.tried) < budget:
            chosen = self._next(min(BATCH, budget - len(self.tried)))
            if not chosen:
                break
            self.simulate_best(chosen)

    @property
    def budget(self) -> int:
        return min(self.study.search.simulate or max(12, math.ceil(len(self.candidates) / 10)), len(self.allowed))

    def _next(self, count: int) -> list[Candidate]:
        untried = [c for c in self.allowed if not c.simulated]
        hopeful = [c for c in self.tried if min(self.margins(c.best), default=0) >= 0]
        cost = min((c.design.cost for c in hopeful), default=math.inf)
        plausible = [c for c in untried if c.design.cost <= cost and self.chance(c) >= PLAUSIBLE]
        if plausible:
            return plausible[:count]
        if not hopeful and untried:
            return sorted(untried, key=lambda c: (-self.chance(c), -min(self.margin_means(c)[0]), c.design.number))[
                :count
            ]
        front = [c for c in self.front() if not c.simulated]
        near = sorted(untried, key=lambda c: (abs(c.design.cost - cost), c.design.number))
        return list(dict.fromkeys([*front, *near]).keys())[:count] if untried else []

    def simulate_best(self, chosen: list[Candidate]) -> None:
        asks = [ask for c in chosen for p in self.points for ask in _best_of(c.design.number, p)]
        found = self.desk.gather(asks, f"simulating designs ({len(self.tried) + len(chosen)} of {self.budget})")
        for c in chosen:
            c.best = {p: pooled([found[ask] for ask in _best_of(c.design.number, p)]) for p in self.points}
        self._ratios.clear()
        self._values.clear()

    # What screening says of a design that was not simulated ------------------------------------------------------

    def value(self, candidate: Candidate, point: Point, quantity: str) -> tuple[float, float] | None:
        """The best estimate, and the standard deviation of its logarithm as far as it comes from not having been
        simulated."""
        if candidate.simulated:
            found = self.read(candidate.best[point], point, quantity)
            undecided = self.desk.variants.platform_of(candidate.design).undecided
            drawn = self.drawn(candidate, point, quantity) if undecided else []
            if found is not None and drawn:  # where structures tie, none of them is the answer
                found = math.exp(float(np.median(np.log(np.maximum(drawn, 1e-9)))))
            return None if found is None else (found, 0.0)
        key = (candidate.design.number, point, quantity)
        if key not in self._values:
            self._values[key] = self._screened_value(candidate, point, quantity)
        return self._values[key]

    def drawn(self, candidate: Candidate, point: Point, quantity: str) -> list[float]:
        """Values of the replications, those above 0."""
        values = [self.read(one[point], point, quantity) for one in candidate.replications]
        return [value for value in values if value is not None and value > 0]

    def _screened_value(self, candidate: Candidate, point: Point, quantity: str) -> tuple[float, float] | None:
        if point not in candidate.screened or "down" in candidate.screened[point]:
            return None
        found = quantities.value(candidate.screened[point], quantity, self.study.tasks)
        if found is None:
            return None
        if "bounds" not in candidate.screened[point]:  # a simulation already
            return self.read(candidate.screened[point], point, quantity) or found, 0.0
        mean, sd = self.bridge(candidate, point, quantity)
        return found * math.exp(mean), sd

    def read(self, result: Result, point: Point, quantity: str) -> float | None:
        """From a simulation; a time is that of all operations, also when fewer were simulated."""
        if "down" in result:
            return None
        found = quantities.value(result, quantity, self.study.tasks)
        if found is not None and quantity == "seconds" and "bounds" not in result:
            found /= self.desk.share(point.workload, self.study.scales[point.scale])
        return found

    def bridge(self, candidate: Candidate, point: Point, quantity: str) -> tuple[float, float]:
        """Mean and standard deviation of log(simulated / analytic) at this point, learnt from the designs that were
        simulated; those that share more values with this one count for more."""
        of_mean, between = _PRIOR[kind_of(quantity)]
        key = (point, quantity)
        if key not in self._ratios:
            self._ratios[key] = self._simulated_over_analytic(point, quantity)
        logs, choices = self._ratios[key]
        if not len(logs):
            return 0.0, math.hypot(of_mean, between)
        own = self.desk.designs.choice(candidate.design.number)
        weights = 0.25 ** sums(choices != np.array(own), 1) + 1e-3
        prior = (between / of_mean) ** 2
        total = float(np.sum(weights))
        mean = float(np.sum(weights * logs) / (total + prior))
        spread = float(np.sum(weights * np.square(logs - mean)))
        return mean, math.sqrt((spread + between**2) / (total + 1) + between**2 / (total + prior))

    def _simulated_over_analytic(self, point: Point, quantity: str) -> tuple[Array, NDArray[np.int64]]:
        logs, choices = [], []
        for one in self.tried:
            if "down" in one.best[point] or "bounds" not in one.screened.get(point, {}):
                continue
            a, b = (
                self.read(one.best[point], point, quantity),
                quantities.value(one.screened[point], quantity, self.study.tasks),
            )
            if a and b:
                logs.append(math.log(a / b))
                choices.append(self.desk.designs.choice(one.design.number))
        return np.array(logs), np.array(choices, dtype=np.int64)

    def margin_means(self, candidate: Candidate) -> tuple[list[float], list[float]]:
        """Margins by condition, and their standard deviations as far as they come from not having been simulated."""
        means, sds = [], []
        for level, point in self.conditions:
            known = self.value(candidate, point, level.quantity)
            means.append(DOWN if known is None else level.margin(known[0]))
            sds.append(0.0 if known is None else known[1])
        return means, sds

    def chance(self, candidate: Candidate) -> float:
        """At most this likely does a screened design keep all levels: that of its worst condition."""
        means, sds = self.margin_means(candidate)
        error = self.model_error(candidate)
        return min(
            (
                _NORMAL.cdf(m / max(math.sqrt(s * s + e * e + n * n + 1e-4), 1e-9))
                for m, s, e, n in zip(means, sds, error.scale, error.noise, strict=True)
            ),
            default=1.0,
        )

    def margins(self, results: dict[Point, Result]) -> list[float]:
        """Of one simulation everywhere, by condition; a system that is down keeps nothing."""
        return [DOWN if m is None else m for m in self.margins_of(results)]

    def margins_of(self, results: dict[Point, Result]) -> list[float | None]:
        """By condition; None where the results say nothing."""
        found: list[float | None] = []
        for level, point in self.conditions:
            value = self.read(results[point], point, level.quantity) if point in results else None
            found.append(None if value is None else level.margin(value))
        return found

    # Risk --------------------------------------------------------------------------------------------------------

    def model_error(self, candidate: Candidate) -> ModelError:
        """Of the conditions, on the platform that the design starts from, as it is or edited."""
        key = (
            self.desk.variants.platform_of(candidate.design).reference,
            any(value.edits for value in candidate.design.values),
        )
        if key not in self._errors:
            self._errors[key] = self.error_of(candidate, [(level.quantity, point) for level, point in self.conditions])
        return self._errors[key]

    def error_of(self, candidate: Candidate, rows: list[tuple[str, Point]]) -> ModelError:
        """What the platform's calibration found, grown with the distance beyond its scales; where the design is another
        system than the measured one, what the platform misses of its own measurements as well, which may be something
        else there; without a calibration, and where a workload rests on numbers that nothing measured, what the study
        states, or published numbers show of a platform of the catalogue."""
        scale, degrees, noise, kinds = [], [], [], []
        platform = self.desk.variants.platform_of(candidate.design)
        fitted = platform.fitted
        for quantity, point in rows:
            kind = kind_of(quantity)
            kinds.append(kind)
            if fitted and kind in fitted["discrepancy"] and not self.desk.unmeasured(platform, point.workload):
                error, freedom = discrepancy_at(fitted, kind, self.study.scales[point.scale].ranks)
                doubt = 0.0
                if not self.desk.is_as_measured(candidate.design, point):
                    changes = self.desk.changes(candidate.design, point.workload, self.study.scales[point.scale])
                    change = carried.change_of(quantity, changes) if changes else 1.0
                    doubt = doubted(Residuals.of_fitted(fitted).largest(quantity, kind), change)
                scale.append(math.hypot(error, doubt))
                degrees.append(freedom)
                noise.append(fitted["noise"][kind])
                continue
            published = self.desk.published_errors(platform, point.workload)
            at = self.study.scales[point.scale]
            beyond = platform.serves.beyond(at.nodes, at.ranks)
            spread = Spread(0.0, math.inf) if published is None else published.spread(kind, beyond)
            if kind in self.study.model_error:
                spread = Spread(self.study.model_error[kind], math.inf)
            scale.append(spread.deviation)
            degrees.append(spread.degrees)
            noise.append(0.0)
        return ModelError(np.array(scale), np.array(degrees), np.array(noise), tuple(kinds))

    @property
    def is_random(self) -> bool:
        """Whether replications differ in more than their random numbers."""
        return bool(self.study.uncertainty) or any(p.draws for p in self.desk.platforms.values())

    @property
    def _calibrated_draws(self) -> int:
        """The most draws that a platform's calibration left; 0 where none was calibrated."""
        return max((len(p.draws) for p in self.desk.platforms.values()), default=0)

    def settle(self) -> None:
        """Adds replications until the decision no longer changes, and of each draw of a calibration one, since a
        forecast's value and interval rest on all of them; a design that comes into play then is simulated too."""
        self.replicate(self.tried, BATCH)
        while True:
            self.judge()
            contenders = self.contenders()
            fresh = self._missed()
            if fresh:
                self.simulate_best(fresh)
                self.replicate(fresh, BATCH)
                continue
            self.stability = self._stability(contenders)
            enough = self.study.search.replications
            if self.stability >= STABLE:
                enough = min(enough, self._calibrated_draws)
            short = [c for c in contenders if len(c.replications) < enough]
            if not short:
                return
            self.replicate(short, min(enough, min(len(c.replications) for c in short) + BATCH))

    def replicate(self, candidates: list[Candidate], count: int) -> None:
        asks = [
            Ask("simulate", c.design.number, p, r)
            for c in candidates
            for r in range(len(c.replications) + 1, count + 1)
            for p in self.points
        ]
        found = self.desk.gather(asks, f"replication {count} of the survivors")
        for c in candidates:
            for r in range(len(c.replications) + 1, count + 1):
                c.replications.append({p: found[Ask("simulate", c.design.number, p, r)] for p in self.points})

    def judged_table(self, candidate: Candidate) -> Array:
        """The same, corrected for choosing among the simulated designs."""
        if candidate.design.number not in self._judged:
            tables = [self.margin_table(c) for c in self.tried]
            screened = [self._screened_margins(c) for c in self.tried]
            for c, table in zip(self.tried, risk.pooled(tables, screened), strict=True):
                self._judged[c.design.number] = table
        return self._judged[candidate.design.number]

    def _screened_margins(self, candidate: Candidate) -> Array:
        """By condition, from the analytic solver alone; not a number where it says nothing."""
        found = []
        for level, point in self.conditions:
            result = candidate.screened.get(point, {})
            value = quantities.value(result, level.quantity, self.study.tasks) if "bounds" in result else None
            found.append(math.nan if value is None else level.margin(value))
        return np.array(found)

    def margin_table(self, candidate: Candidate) -> Array:
        """[replications, conditions]"""
        return np.array([self.margins(one) for one in candidate.replications])

    def judge(self) -> None:
        self._judged.clear()
        for c in self.tried:
            samples = risk.predictive(self.judged_table(c), self.model_error(c))
            c.probability, c.level_probabilities = risk.probabilities(samples)
        for c in self.allowed:
            if not c.simulated:
                means, sds = self.margin_means(c)
                error = self.model_error(c)
                total = np.sqrt(np.square(sds) + np.square(error.scale) + np.square(error.noise) + 1e-4)
                chances = [_NORMAL.cdf(m / s) for m, s in zip(means, map(float, total), strict=True)]
                c.level_probabilities, c.probability = np.array(chances), min(chances, default=1.0)

    def decision(self) -> Candidate | None:
        """The cheapest simulated design that keeps all levels with the required confidence."""
        return next(iter(sorted((c for c in self.tried if c.probability >= self.study.confidence), key=_order)), None)

    def contenders(self) -> list[Candidate]:
        """Simulated designs that cost no more than the decision; all, when there is none."""
        best = self.decision()
        return [c for c in self.tried if best is None or c.design.cost <= best.design.cost]

    def _missed(self) -> list[Candidate]:
        """Designs that screening thought too poor or too dear, but that would now be the decision if they held."""
        best = self.decision()
        cost = math.inf if best is None else best.design.cost
        untried = [
            c
            for c in self.allowed
            if not c.simulated
            and c.design.cost <= cost
            and c.probability >= max(PLAUSIBLE, 0.5 * self.study.confidence)
        ]
        room = 2 * self.budget - len(self.tried)
        return untried[: min(BATCH, max(room, 0))]

    def _stability(self, contenders: list[Candidate]) -> float:
        """Share of resampled replications that would have given the same decision."""
        if not contenders:
            return 1.0
        ordered = sorted(contenders, key=_order)
        table: Array = np.array([risk.resampled(self.judged_table(c), self.model_error(c)) for c in ordered])
        holds = table >= self.study.confidence
        first = np.where(np.logical_or.reduce(holds), np.argmax(holds, axis=0), -1)
        best = self.decision()
        return float(np.mean(first == (-1 if best is None else ordered.index(best))))

    # The front ---------------------------------------------------------------------------------------------------

    def objectives(self, candidate: Candidate) -> tuple[float, float, float] | None:
        """Cost, rate and tail at the largest scale in normal service: weighted geometric means over the workloads, the
        rate of all operations, the worst operation's p99. None for a design that does not run."""
        rate = tail = weights = 0.0
        for workload in self.study.workloads.values():
            scale = [s for s in self.study.scales if s in workload.scales][-1]
            point = Point(NORMAL, workload.name, scale)
            a, b = self.value(candidate, point, "rate"), self.value(candidate, point, "any.q99")
            if a is None or b is None:
                return None
            rate += workload.weight * math.log(a[0])
            tail += workload.weight * math.log(max(b[0], 1e-9))
            weights += workload.weight
        return candidate.design.cost, math.exp(rate / weights), math.exp(tail / weights)

    def front(self) -> list[Candidate]:
        """Designs that no other beats in cost, rate and tail at once, cheapest first."""
        known = [(c, o) for c in self.allowed if (o := self.objectives(c)) is not None]
        if not known:
            return []
        cost, rate, tail = (numbers(column) for column in zip(*(o for _, o in known), strict=True))
        # Two designs within 1 % of each other count as equal.
        logs = np.column_stack((cost, -np.round(log(rate) * 100), np.round(log(tail) * 100)))
        return [
            candidate
            for own, (candidate, _) in zip(rows(logs), known, strict=True)
            if not np.any(np.logical_and.reduce(logs <= own, axis=1) & np.logical_or.reduce(logs < own, axis=1))
        ]


def _best_of(design: int, point: Point) -> list[Ask]:
    """Simulations of the best estimate, as many as a forecast takes."""
    return [Ask("simulate", design, point, again=i) for i in range(SEEDS)]


def _order(candidate: Candidate) -> tuple[float, float, int]:
    return candidate.design.cost, -candidate.probability, candidate.design.number

# SPDX-License-Identifier: Apache-2.0
"""Measurements that narrow a forecast most: of platforms that may all be true, those that differ at the target, and the
places where a measurement would tell them apart (docs/planning.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import yaml
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from iocast.ground import binaries
from iocast.calibrate.recipe import Parameter, Recipe, options_of, read_recipe, simplest
from iocast.calibrate.search import RATE_FLOOR, SUMMARIES, Simulations, only
from iocast.planning.candidate_places import beyond, four_times, has_sizes
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted, discrepancy_at
from iocast.forecasts.request import workload_of
from iocast.runs.operations import phase_operations, profile
from iocast.runs.phases import check_phase
from iocast.planning.plan_rates import proposals
from iocast.platforms.documents import Document, laid_over, reference
from iocast.planning.proposed import ALONE, WORTH_IT, Place, Proposed
from iocast.runs.settings import units_of
from iocast.jobs.workers import Workers
from iocast.records.fitted import FittedSection

Array = NDArray[np.float64]
BELIEFS = 64
"""Platforms drawn of a family before anything was measured."""
SPREAD = 1.5
"""Standard deviation of the logarithm of a parameter then, as in the search of a calibration."""
QUANTILES = ("q50", "q95")
"""Of each operation, beside the rate: what a measurement tells. More of its quantiles would say the same again."""
ONE_FACT = 8
"""Quantities of a point are far from independent: this many count as one (calibrate/structure_search.py)."""
OPERATIONS, FEWEST = 6000, 40
"""Of all ranks in a simulation together, and of each at least."""
MAX_RANKS = 50_000
"""Of the target."""
STARTUP = 2.0
"""Seconds that a run takes beside its phases."""
LENGTHS = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds of the phase of a lone rank: the longest with which the least there must be takes a third of the time."""
MAX_REPEATS = 3
BENCHMARK_REPEATS = 3


@dataclass(frozen=True)
class Simulated:
    """What each platform says of a place: logarithms, [platform, quantity], the rate first; NaN where it has no
    answer."""

    logs: Array
    variances: Array  # of a measurement of each quantity, with what the model deserves


class Ensemble:
    """Platforms that may all be true, and what they say."""

    def __init__(
        self,
        simulations: Simulations,
        documents: Sequence[Document],
        pattern: str,
        settings: dict[str, str],
        phase: str,
        noise: dict[str, float],
        seed: int = 0,
    ) -> None:
        self.simulations, self.documents, self.pattern, self.phase, self.noise, self.seed = (
            simulations,
            documents,
            pattern,
            phase,
            noise,
            seed,
        )
        self.settings = settings
        self.known: dict[Place, Simulated] = {}
        self._files = [simulations.write(document) for document in documents]
        self.sized = has_sizes(pattern)
        self._short = set(units_of(pattern)) & {"iterations", "objects", "repeats"} if self.sized else set()
        self._each = self._operations_of_an_iteration() if self.sized else 1.0

    def ask(self, places: Sequence[Place]) -> None:
        new = [place for place in dict.fromkeys(places) if place not in self.known]
        jobs = [
            (file, self.pattern, self._settings(place), place.nodes, place.ranks_per_node, self.seed)
            for place in new
            for file in self._files
        ]
        found = self.simulations.run_those_that_settle(jobs)
        for number, place in enumerate(new):
            runs = [
                one and next(p for p in one["phases"] if p["name"] == self.phase)
                for one in found[number * len(self._files) : (number + 1) * len(self._files)]
            ]
            latencies = [{op for op in one["latency"] if "." not in op} for one in runs if one]
            operations = sorted(set.intersection(*latencies)) if latencies else []  # a short run of a mix may lack some
            names = [(op, which) for op in operations for which in QUANTILES]
            rows = [
                [one["rate"], *(one["latency"][op][which] for op, which in names)]
                if one
                else [math.nan] * (1 + len(names))
                for one in runs
            ]
            variances = [self._variance("rate"), *(self._variance(which) for _, which in names)]
            self.known[place] = Simulated(np.log(np.maximum(np.array(rows, dtype=float), 1e-9)), np.array(variances))

    def _settings(self, place: Place) -> dict[str, str]:
        iterations = str(max(2, round(max(FEWEST, OPERATIONS / place.ranks) / self._each)))
        short = {"iterations": iterations, "objects": iterations, "repeats": "1"}
        return (
            self.settings
            | {name: short[name] for name in self._short}
            | {"waiting_factor": f"{place.waiting_factor:g}"}
            | dict(place.settings)
        )

    def _operations_of_an_iteration(self) -> float:
        ten = self.settings | {name: "10" if name != "repeats" else "1" for name in self._short}
        check_phase(
            self.phase,
            [p["name"] for p in binaries.resolve_workload(self.pattern, ten, 1, 1)["phases"]],
            self.pattern,
            lambda: phase_operations(self.pattern, ten | dict.fromkeys(self._short, "1"), 2, 2),
        )  # before millions of operations are counted
        phases = profile(self.pattern, ten, 2, 2)["phases"]
        return float(sum(phases[self.phase]["operations"].values())) / (4 * 10)

    def _variance(self, kind: str) -> float:
        floor = RATE_FLOOR if kind == "rate" else SUMMARIES[kind]
        return ONE_FACT * (floor**2 + self.noise[kind] ** 2)

    def spread(self, requested: Place, measured: Sequence[Place]) -> float:
        """Standard deviation of the logarithm of the target's throughput that remains after these measurements: each
        platform in turn is taken for the true one and forecast by what the others say of it, linearly (Bayes linear
        adjustment, Goldstein & Wooff 2007, section 3)."""
        target = self.known[requested].logs[:, 0]
        entries = [self.known[place] for place in measured]
        facts = np.hstack([one.logs for one in entries]) if entries else np.zeros((len(target), 0))
        errors = np.diag(np.concatenate([one.variances for one in entries])) if entries else np.zeros((0, 0))
        usable = np.isfinite(target) & np.isfinite(facts).all(axis=1)
        target, facts = target[usable], facts[usable]
        if len(target) < 3:
            return 0.0
        squares = []
        for number in range(len(target)):
            others = np.arange(len(target)) != number
            mean = facts[others].mean(axis=0)
            apart, target_apart = facts[others] - mean, target[others] - target[others].mean()
            weights = (
                np.linalg.solve(apart.T @ apart / (len(apart) - 1) + errors, apart.T @ target_apart / (len(apart) - 1))
                if entries
                else np.zeros(0)
            )
            missed = target[number] - target[others].mean() - (facts[number] - mean) @ weights
            squares.append(missed**2 + weights @ errors @ weights)
        return math.sqrt(float(np.mean(squares)))

    def seconds(self, place: Place, length: float) -> float:
        """Of one run as `iocast measure` makes it, when a lone rank's phase takes `length`; by what most
        platforms say. A workload with sizes of its own does all its operations, as fast as those of the phase."""
        if not self.sized:
            phases = profile(self.pattern, self._settings(place), place.nodes, place.ranks_per_node)["phases"].values()
            operations = sum(one["repeats"] * sum(one["operations"].values()) for one in phases)
            return STARTUP + float(operations) / math.exp(float(np.nanmedian(self.known[place].logs[:, 0])))
        slower = (
            math.exp(
                float(np.nanmedian(self.known[ALONE].logs[:, 0])) - float(np.nanmedian(self.known[place].logs[:, 0]))
            )
            * place.ranks
        )
        share = (BENCHMARK_REPEATS + 1) if place.waiting_factor == 0 else 0.5 + 0.5 / (1 + place.waiting_factor)
        return STARTUP + length / BENCHMARK_REPEATS * slower * share


def of_fitted(simulations: Simulations, platform: Fitted, seed: int = 0) -> Ensemble:
    """What measurements left open.

    @raises InputError for a platform that was never calibrated"""
    documents = platform.draws()
    if not documents:
        raise InputError(
            f"The platform '{platform.file}' was never calibrated, so that nothing tells what is open; name its family "
            "with --platform to plan its first campaign."
        )
    requested = workload_of(platform, None, {})
    return Ensemble(
        simulations,
        documents,
        requested.pattern,
        requested.settings,
        platform.phase,
        platform.fitted["noise"],
        seed=seed,
    )


def of_family(
    simulations: Simulations,
    family: str,
    workload: str,
    settings: dict[str, str],
    phase: str,
    noise: dict[str, float],
    seed: int = 0,
) -> Ensemble:
    """What is open before anything was measured: any structure, any numbers about the family's own.

    @raises InputError when the platform can't be calibrated, or a campaign of the workload can't be sized"""
    recipe = read_recipe(family)
    if recipe.method == "rates":
        raise InputError(
            f"The platform '{family}' is fitted to rates alone; plan a campaign for one that latencies are fitted to "
            "(iocast list platforms)."
        )
    if not has_sizes(workload):
        raise InputError(
            f"The runs of a first campaign are sized by iterations on as many objects, which the workload '{workload}' "
            "doesn't have; plan one that has both, such as md-workbench."
        )
    generator = np.random.default_rng(seed)
    documents = [believed(recipe, generator) for _ in range(BELIEFS)]
    return Ensemble(
        simulations, documents, workload, settings | only(phase, workload, documents), phase, noise, seed=seed
    )


def believed(recipe: Recipe, generator: np.random.Generator) -> Document:
    """A platform of the family: of each choice any option that needs nothing seen, with any numbers about its own."""
    document: Document = {"schema_version": 1, "extends": reference(recipe.family)}
    structure = {}
    for choice, options in recipe.choices.items():
        # what data must show first is not in the family
        open_ones = [option.name for option in options if not option.needs]
        structure[choice] = open_ones[int(generator.integers(len(open_ones)))]
    chosen = options_of(recipe.choices, simplest(recipe.choices, structure))
    for option in chosen:
        document = laid_over(document, option.edit)
    stations = document.get("stations") or {}
    shared = {
        f"stations.{name}.crowding" for name, station in stations.items() if (station or {}).get("discipline") == "ps"
    }  # nobody waits there
    for parameter in (*recipe.parameters, *(p for option in chosen for p in option.parameters)):
        drawn = _drawn(parameter, generator)
        if parameter.path not in shared:
            parameter.write(document, drawn)
    return document


def _drawn(parameter: Parameter, generator: np.random.Generator) -> float:
    return float(
        np.clip(parameter.start * math.exp(SPREAD * generator.standard_normal()), parameter.low, parameter.high)
    )


@dataclass
class Planner:
    """Proposes measurements for a question."""

    ensemble: Ensemble
    target: Place
    fitted: FittedSection  # empty before anything was measured
    length: float = 1.0

    def __post_init__(self) -> None:
        if self.target.ranks > MAX_RANKS:
            raise InputError(
                f"{self.target.ranks} ranks are too many to plan for, since all platforms are simulated there (at most "
                f"{MAX_RANKS}); what tells of fewer tells of them too."
            )

    def within(self, measured: Sequence[Place]) -> float:
        """By which factor either way a 90 % interval of the target's throughput would hold after these measurements
        beside those that were fitted."""
        spread = self.ensemble.spread(self.target, measured)
        own = 0.0
        if self.fitted:
            largest = max([*self.fitted["campaign"]["ranks"], *(place.ranks for place in measured)])
            own, degrees = discrepancy_at(self.fitted, "rate", self.target.ranks, largest)
            own *= float(stdtrit(degrees, 0.95) / ndtri(0.95))
        return math.exp(float(ndtri(0.95)) * math.hypot(spread, own))

    def proposals(self, candidates: Sequence[Place], measured: Sequence[Place] = ()) -> list[Proposed]:
        """What each candidate would add, the one that narrows the interval most first."""
        self.ensemble.ask([ALONE, self.target, *measured, *candidates])
        before = self.within(measured)
        entries = [
            Proposed(place, self.ensemble.seconds(place, self.length), before, self.within([*measured, place]))
            for place in candidates
        ]
        return sorted(entries, key=lambda one: (one.after, one.seconds))

    def campaign(self, candidates: Sequence[Place], budget: float) -> tuple[list[Proposed], int]:
        """Measurements one after the other, each the one that narrows the interval most for its time, until nothing
        narrows it or the time is used; and how often each is made. Those that a calibration can't do without are first.

        @raises InputError when the time isn't enough for those"""
        needed = [] if self.fitted else _needed(candidates)
        longest = [place for place in candidates if not place.settings][-1:]
        repeats = 2

        def time_of(places: Sequence[Place]) -> float:
            return repeats * sum(self.ensemble.seconds(place, self.length) for place in places)

        self.length = LENGTHS[0]
        self.ensemble.ask(needed)  # alone, so that a refusal costs few simulations
        if time_of(needed) > budget:
            raise InputError(
                f"The least that a calibration needs takes some {time_of(needed):.0f} s "
                f"({', '.join(p.text for p in needed)}, each twice); the budget is {budget:.0f} s."
            )
        self.ensemble.ask([ALONE, self.target, *candidates])
        for length in LENGTHS:
            if (
                length == LENGTHS[0]
                or repeats * sum(self.ensemble.seconds(place, length) for place in needed or longest) <= budget / 3
            ):
                self.length = length
        chosen: list[Place] = []
        rows: list[Proposed] = []

        def take(place: Place, purpose: str) -> None:
            before = self.within(chosen)
            chosen.append(place)
            rows.append(
                Proposed(place, self.ensemble.seconds(place, self.length), before, self.within(chosen), purpose)
            )

        def affordable() -> list[Place]:
            return [place for place in candidates if place not in chosen and time_of([*chosen, place]) <= budget]

        for place in needed:
            take(place, "needed")
        while True:
            now = math.log(self.within(chosen))
            gains = {place: now - math.log(self.within([*chosen, place])) for place in affordable()}
            worth = [place for place in gains if gains[place] >= WORTH_IT]
            if not worth:
                break
            take(max(worth, key=lambda place: gains[place] / self.ensemble.seconds(place, self.length)), "narrows")
        while not self.fitted and (
            left := [place for place in affordable() if place.ranks not in {one.ranks for one in chosen}]
        ):
            take(left[0], "checks")
        if chosen and (repeats + 1) / repeats * time_of(chosen) <= budget:
            repeats = MAX_REPEATS
        return rows, repeats


def campaign_file(
    proposed: Sequence[Proposed],
    target: Place,
    length: float | None,
    repeats: int,
    workload: str,
    settings: dict[str, str],
    source: str,
) -> str:
    """A campaign in YAML, as `iocast measure --campaign` takes it.

    @param length seconds of a lone rank's phases; None where the settings have the sizes"""
    sizes = {} if length is None else {"seconds": length, "benchmark_repeats": BENCHMARK_REPEATS}
    document = {
        "schema_version": 1,
        "description": f"planned for a forecast of {target.text}",
        "source": source,
        "workload": workload,
        "settings": settings,
        **sizes,
        "repeats": repeats,
        "points": [one.place.document() | {"role": "fit"} for one in proposed],
    }
    return "# SPDX-License-Identifier: Apache-2.0\n" + yaml.safe_dump(document, sort_keys=False)


def next_runs(
    platform: Fitted, requested: Place | None = None, *, seed: int = 0, workers: Workers | None = None
) -> tuple[Place, list[Proposed]]:
    """The target, by default four times the largest measured scale, and the measurements beyond the measured scales,
    the most telling first; none where there would be too much to simulate."""
    requested = requested or four_times(platform)
    if platform.rates_alone:
        return requested, proposals(platform, requested, beyond(platform, requested))
    if requested.ranks > MAX_RANKS:
        return requested, []
    with Simulations(workers, platform.file) as simulations:
        planner = Planner(of_fitted(simulations, platform, seed), requested, platform.fitted)
        return requested, planner.proposals(beyond(platform, requested))


def _needed(candidates: Sequence[Place]) -> list[Place]:
    """One rank, all of them, and a number between: what a calibration asks for at least."""
    by_ranks = sorted(
        {place.ranks: place for place in candidates if place.waiting_factor == 0 and not place.settings}.values(),
        key=lambda place: place.ranks,
    )
    if len(by_ranks) < 3:
        raise InputError(
            "A calibration needs at least three numbers of ranks; allow more with --nodes or --ppn, at least 3 ranks "
            "in all."
        )
    return [by_ranks[0], by_ranks[-1], by_ranks[len(by_ranks) // 2]]

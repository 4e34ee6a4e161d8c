# SPDX-License-Identifier: Apache-2.0
"""Fits a platform to published numbers alone (`iocast calibrate FACTS.csv --platform FAMILY`).

A fact is any quantity of iocast/published/facts.py at any placement, workload and phase. Fitted are service demands on
the routes of the facts' operations, their means and the sigmas of lognormal ones, by least squares over the logarithms
of simulated over published. At most one number is fitted for two facts, those which explain them best; the others stay
as the family has them. Each fact is left out once, and forecast from the rest by one Gauss-Newton step; these errors
are the platform's record, on which the intervals of its forecasts rest (iocast/published/errors.py)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from iocast.ground import binaries
from iocast.calibrate.reading import seconds_of
from iocast.calibrate.recipe import family_document
from iocast.errors import InputError
from iocast.platforms.documents import Document, get_path, reference, set_path
from iocast.published.facts import BOUNDS, Fact, read_own_facts, simulated
from iocast.ground.strict_yaml import allowed_sentence
from iocast.platforms.unmeasured import demands_of

Array = NDArray[np.float64]
Report = Callable[[str, int, int], None]
STEP = 0.3
"""Of a parameter's logarithm, for the slopes; common random numbers keep their noise small."""
SEEN = 0.05
"""Change of a fact's logarithm by a step, below which the fact says nothing of the parameter."""
WIDE = 1000.0
"""Factor that a mean may be from the family's, either way."""
SIGMAS = (0.05, 3.0)
BELIEF = math.log(10)
"""Standard deviation of the family's numbers: it settles only what the facts leave open."""
ROUNDS = 8
ENOUGH = 0.01
"""A round that improves the sum of squares by a smaller share is the last."""
BUDGET = 20_000
"""Iterations of one simulation over all ranks."""
SEEDS = 3
"""Simulations of a maximum."""


@dataclass(frozen=True)
class Number:
    """A number of the family that can be fitted."""

    value: float
    low: float
    high: float
    unit: str = "s"

    @property
    def bounds(self) -> tuple[float, float]:
        """As logarithms over the family's."""
        return math.log(self.low / self.value), math.log(self.high / self.value)

    def text(self, at: float) -> str:
        return f"{at:.6g}{self.unit}"


@dataclass(frozen=True)
class FactsFit:
    """A platform fitted to facts."""

    platform: Document
    """As a file has it, with the section `calibration.facts` (docs/calibration.md)."""
    rows: list[dict[str, Any]]
    """By fact: `{place, nodes, ppn, phase, operation, quantity, role, published, fitted, left_out}`; `left_out` is what
    the platform gives without the fact, None for those that it was not fitted to."""
    numbers: dict[str, dict[str, Any]]
    """By path: `{family, value, from}`; `from`: places of the facts that say most of it."""
    kept: list[str]
    """Numbers on the routes that no fact tells, or that others tell as well."""


def calibrate_facts(file: Path, family: str, paths: Sequence[str] = (), report: Report = lambda *_: None) -> FactsFit:
    """Fits `family` to the facts of a file, or the demands at `paths` of it.

    @raises InputError for a file that can't be read, a path that is no demand, fewer than two facts to fit, and from
    the programs"""
    every = read_own_facts(file, family)
    facts = [fact for fact in every if fact.role == "fitted"]
    if bound := next((fact for fact in facts if fact.tolerance in BOUNDS), None):
        raise InputError(
            f"{file}: the fact '{bound.place}' is a bound, to which nothing is fitted; make its role 'forecast'."
        )
    if short := next((fact for fact in every if fact.quantity == "max" and fact.iterations > BUDGET), None):
        raise InputError(
            f"{file}: the maximum of '{short.place}' is of {short.iterations:,} iterations, and runs are shortened to "
            f"{BUDGET:,} here, whose maximum is smaller; leave the row out."
        )
    if len(facts) < 2:
        raise InputError(
            f"{file} has {len(facts)} facts of the role 'fitted', and a number is fitted to two; add some, or set "
            "numbers by hand with a file that extends the platform."
        )
    start = candidates(family_document(family), facts, paths)
    search = _Search(facts, start, report)
    search.run()
    values = search.values(search.at)
    rest = [fact for fact in every if fact.role != "fitted" and fact.tolerance not in BOUNDS]
    fitted = np.exp(search.logs) * search.published
    rows = [_row(*one) for one in zip(facts, fitted, search.left_out(), strict=True)]
    rows += [_row(fact, value, None) for fact, value in zip(rest, _simulated(rest, values), strict=True)]
    numbers = {
        path: {"family": start[path].text(start[path].value), "value": value, "from": search.tellers(path)}
        for path, value in values.items()
    }
    document: Document = {"schema_version": 1, "extends": reference(family)}
    document["description"] = f"{family}, {len(numbers)} numbers fitted to {len(facts)} published numbers"
    document["source"] = f"iocast calibrate {file.name} --platform {family}"
    whole = family_document(family)
    for path, value in values.items():
        section, name = path.split(".")[:2]
        law = get_path(whole, f"{section}.{name}")
        if isinstance(law, dict) and name not in document.setdefault(section, {}):
            document[section][name] = dict(law)  # a law replaces the family's
        set_path(document, path, value if start[path].unit else float(value))
    nodes, ranks = max(fact.nodes for fact in every), max(fact.nodes * fact.ppn for fact in every)
    document["serves"] = {"facts": {"nodes": nodes, "ranks": ranks}}
    patterns = list(dict.fromkeys(map(_pattern, every)))
    document["calibration"] = {"facts": {"patterns": patterns, "rows": rows, "numbers": numbers}}
    return FactsFit(document, rows, numbers, [path for path in start if path not in numbers])


def candidates(document: Document, facts: Sequence[Fact], paths: Sequence[str]) -> dict[str, Number]:
    """By path the numbers of demands that can be fitted: of these paths, or of all on the routes of the facts'
    operations.

    @raises InputError for a path that is none"""
    operations = dict.fromkeys(fact.operation for fact in facts if fact.operation)
    routes = operations or dict.fromkeys(document.get("operations", {}))
    found: dict[str, Number] = {}
    for path in dict.fromkeys(path for one in routes for path in demands_of(document, one)):
        law = get_path(document, path)
        place = f"{path}.mean" if isinstance(law, dict) and "mean" in law else path
        seconds = seconds_of(get_path(document, place))
        if seconds is not None and seconds > 0:
            found[place] = Number(seconds, seconds / WIDE, seconds * WIDE)
        if isinstance(law, dict) and law.get("law") == "lognormal":
            found[f"{path}.sigma"] = Number(float(law["sigma"]), *SIGMAS, unit="")
    if not found:
        known = sorted(document.get("operations", {}))
        raise InputError(
            f"The platform has no demand on the route of {', '.join(routes)}. "
            f"{allowed_sentence(next(iter(routes)), known)}"
        )
    for path in paths:
        if path not in found:
            raise InputError(
                f"'{path}' is no demand on the routes of {', '.join(routes)}. {allowed_sentence(path, list(found))}"
            )
    return {path: found[path] for path in paths} if paths else found


def _pattern(fact: Fact) -> str:
    found = binaries.resolve_workload(fact.workload, dict(fact.settings), fact.nodes, fact.ppn)
    return str(found["workload"]["pattern"])


def _row(fact: Fact, fitted: float, left_out: float | None) -> dict[str, Any]:
    return {
        "place": fact.place, "nodes": fact.nodes, "ppn": fact.ppn, "phase": fact.phase, "operation": fact.operation,
        "quantity": fact.quantity, "role": fact.role, "published": fact.value, "fitted": float(f"{fitted:.6g}"),
        "left_out": None if left_out is None else float(f"{left_out:.6g}"),
    }  # fmt: skip


def _simulated(facts: Sequence[Fact], edits: dict[str, str]) -> list[float]:
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(lambda fact: max(simulated(fact, BUDGET, SEEDS, edits), 1e-12), facts))


class _Search:
    """Gauss-Newton over the logarithms of chosen numbers, over those of the family."""

    def __init__(self, facts: Sequence[Fact], start: dict[str, Number], report: Report) -> None:
        self.facts, self.start, self.report = facts, start, report
        self.published = np.array([fact.value for fact in facts])
        self.weights = np.array([1 / math.log(float(fact.tolerance)) for fact in facts])
        self.paths = list(start)
        self.low, self.high = np.array([one.bounds for one in start.values()]).T
        self.at: Array = np.zeros(len(start))
        self.chosen: list[int] = []
        self.logs: Array = self._off(self.at)
        self.slopes: Array = np.zeros((len(facts), len(start)))

    def values(self, at: Array) -> dict[str, str]:
        """Of the chosen numbers, as a platform has them."""
        found = {}
        for n in self.chosen:
            one = self.start[self.paths[n]]
            found[self.paths[n]] = one.text(one.value * math.exp(at[n]))
        return found

    def run(self) -> None:
        """Chooses half of the numbers at the family's and fits these, then looks what else explains the rest, and fits
        again: what facts tell of a spread, say, shows when the means are about right."""
        most = len(self.facts) // 2
        for allowed in ((most + 1) // 2, most):
            known = len(self.chosen)
            self._choose(allowed)
            if len(self.chosen) == known:
                return
            self._fit()

    def _choose(self, allowed: int) -> None:
        """More numbers which the facts see, up to this many, that which explains most of the rest first."""
        self.report("looking which numbers the facts tell", len(self.chosen), allowed)
        self.slopes = self._slopes(range(len(self.paths)))
        seen = [n for n in range(len(self.paths)) if np.abs(self.slopes[:, n] * STEP).max() >= SEEN]
        if not seen:
            raise InputError(
                f"None of the facts hangs on any of {', '.join(self.paths)}; take facts of a lone rank, or others."
            )
        while len(self.chosen) < min(len(seen), allowed):
            left = [n for n in seen if n not in self.chosen]
            explained = {n: self._explained([*self.chosen, n]) for n in left}
            best = min(explained, key=explained.__getitem__, default=None)
            if best is None or (self.chosen and explained[best] > (1 - ENOUGH) * self._explained(self.chosen)):
                return
            self.chosen.append(best)

    def _fit(self) -> None:
        for number in range(ROUNDS):
            self.report(f"fitting {len(self.chosen)} numbers", number, ROUNDS)
            if number:
                self.slopes = self._slopes(self.chosen)
            step, before = self._step(self.chosen), self._cost(self.at, self.logs)
            for share in (1.0, 0.5, 0.25):
                at = self.at + share * step
                logs = self._off(at)
                if self._cost(at, logs) < before:
                    break
            else:
                return
            self.at, self.logs = at, logs
            if self._cost(at, logs) > (1 - ENOUGH) * before:
                return

    def left_out(self) -> list[float]:
        """What the rest of the facts forecast of each one."""
        found = []
        for n, fact in enumerate(self.facts):
            self.report("leaving out each fact in turn", n, len(self.facts))
            others = np.arange(len(self.facts)) != n
            found += _simulated([fact], self.values(self.at + self._step(self.chosen, others)))
        return found

    def tellers(self, path: str) -> list[str]:
        """Places of the facts that say most of a number, in the order of their weight, until they have half of it."""
        weight = np.abs(self.slopes[:, self.paths.index(path)]) * self.weights
        order = np.argsort(-weight)
        enough = int(np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)) + 1
        return list(dict.fromkeys(self.facts[i].place for i in order[:enough]))

    def _off(self, at: Array) -> Array:
        moved = {
            path: one.text(one.value * math.exp(x)) for (path, one), x in zip(self.start.items(), at, strict=True) if x
        }
        found: Array = np.log(np.array(_simulated(self.facts, moved)) / self.published)
        return found

    def _cost(self, at: Array, logs: Array) -> float:
        return float(((self.weights * logs) ** 2).sum() + ((at / BELIEF) ** 2).sum())

    def _slopes(self, of: Iterable[int]) -> Array:
        """[facts, candidates], 0 but for these."""
        slopes = np.zeros((len(self.facts), len(self.paths)))
        for n in of:
            moved = self.at.copy()
            moved[n] += STEP if moved[n] + STEP <= self.high[n] else -STEP
            slopes[:, n] = (self._off(moved) - self.logs) / (moved[n] - self.at[n])
        return slopes

    def _explained(self, chosen: list[int]) -> float:
        """What is left of the sum of squares with these numbers, by the slopes here."""
        step = self._step(chosen)
        return self._cost(self.at + step, self.logs + self.slopes @ step)

    def _step(self, chosen: list[int], of: NDArray[np.bool_] | None = None) -> Array:
        """Towards the least squares of these facts and the belief in the family, by the slopes here."""
        of = np.ones(len(self.facts), bool) if of is None else of
        at = self.at[chosen]
        matrix = np.vstack([(self.weights[:, None] * self.slopes[:, chosen])[of], np.eye(len(at)) / BELIEF])
        target = np.concatenate([(-self.weights * self.logs)[of], -at / BELIEF])
        bounds = (self.low[chosen] - at - 1e-9, self.high[chosen] - at + 1e-9)
        step = np.zeros(len(self.paths))
        step[chosen] = lsq_linear(matrix, target, bounds).x
        return step

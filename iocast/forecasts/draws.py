# SPDX-License-Identifier: Apache-2.0
"""Forecasts of each draw of a fitted platform. All draws are used, whatever the length of the question: where that
takes too many simulated operations, each is simulated for fewer iterations and its ratio to the best platform at the
same length and with the same random numbers is taken (common random numbers: Law & Kelton, Simulation Modeling and
Analysis, section 11.2); a workload without iterations has the ratio from the analytic solver (a control variate with
coefficient 1)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iocast.calibrate.search import Simulations
from iocast.errors import InputError, RunError
from iocast.runs.operations import TooRare, pooled_quantity
from iocast.platforms.documents import Document
from iocast.records.forecast import DrawsDocument
from iocast.records.simulated import SimulatedRun

Values = dict[tuple[str, str], float]
"""Quantities by phase and name."""
Solve = Callable[[Document], Values]

OPERATIONS_A_DRAW = 2_500_000
"""Simulated operations that one draw may take."""
LENGTHS = ("iterations", "items", "transactions")
"""Parameters to which the number of operations is in proportion, in their order."""
OPERATIONS_OF_A_STREAM = 500_000
"""Operations of a rank that are counted for the analytic solver, one by one."""
IN_FULL, SHORTER, SOLVED = (
    "simulated in full",
    "simulated for shorter, beside the best platform",
    "solved, beside the best platform",
)


@dataclass
class Draws:
    """By draw the quantities that its run has, None where work of others piles up without end; how they were found; the
    simulated runs, where they are as long as the question."""

    values: list[Values | None]
    how: str = IN_FULL
    runs: list[SimulatedRun] = field(default_factory=list)

    def document(self) -> DrawsDocument:
        """As a forecast has it (docs/answers.md, `draws`)."""
        return {"used": sum(one is not None for one in self.values), "of": len(self.values), "how": self.how}


def ask(
    simulations: Simulations,
    draws: Sequence[Document],
    best: Path,
    best_document: Document,
    best_values: Values,
    first: SimulatedRun,
    question: tuple[str, dict[str, str], int, int],
    seed: int,
    solver: Callable[[], Solve],
) -> Draws:
    """@param best, best_values the best platform's file, and what it says of the whole question (pattern, settings,
    nodes, ranks a node)
    @param first its run of the whole question, as iocast-sim prints it
    @param solver makes an analytic solver of all phases of the question; raises InputError where it can't"""
    pattern, settings, nodes, ranks_per_node = question
    operations = sum(p["operations"] for p in first["phases"])
    if operations > OPERATIONS_A_DRAW:
        short = shorter(settings, first)
        if short is not None:
            files = [best, *(simulations.write(d) for d in draws)]
            beside, *runs = simulations.run_those_that_settle(
                [(file, pattern, short, nodes, ranks_per_node, seed) for file in files]
            )
            if beside is not None:
                own = _quantities(beside, best_values)
                return Draws([_beside(_quantities(run, best_values), own, best_values) for run in runs], SHORTER)
        try:
            if operations > OPERATIONS_OF_A_STREAM * nodes * ranks_per_node:
                raise InputError("The streams of operations are too long to count.")
            solve = solver()
            own = solve(best_document)
            return Draws([_beside(_solved(solve, d), own, best_values) for d in draws], SOLVED)
        except InputError:
            pass  # only a simulation knows
    runs = simulations.run_those_that_settle(
        [(simulations.write(d), pattern, settings, nodes, ranks_per_node, seed + i) for i, d in enumerate(draws)]
    )
    return Draws([_quantities(run, best_values) for run in runs], IN_FULL, [run for run in runs if run is not None])


def shorter(settings: dict[str, str], first: SimulatedRun) -> dict[str, str] | None:
    """The settings with one repeat, and so few iterations (LENGTHS) that OPERATIONS_A_DRAW are not exceeded, but one;
    None for a workload that has no such number."""
    parameters = first["workload"]["parameters"]
    name = next((name for name in LENGTHS if isinstance(parameters.get(name), int) and parameters[name] > 1), None)
    if name is None:
        return None
    short = dict(settings)
    operations = float(sum(p["operations"] for p in first["phases"]))
    if int(parameters.get("repeats") or 1) > 1:
        short["repeats"] = "1"
        operations = sum({p["name"]: p["operations"] for p in first["phases"]}.values())
    if operations > OPERATIONS_A_DRAW:
        short[name] = str(max(1, int(parameters[name] * OPERATIONS_A_DRAW / operations)))
    return short


def _quantities(run: SimulatedRun | None, names: Values) -> Values | None:
    return None if run is None else known_quantities(run, names)


def known_quantities(run: SimulatedRun, names: Iterable[tuple[str, str]]) -> Values:
    """The quantities by phase and name, without those of operations that the run lacks."""
    found = {}
    for phase, name in names:
        with contextlib.suppress(TooRare):
            found[phase, name] = max(pooled_quantity(run, name, phase), 1e-9)
    return found


def _solved(solve: Solve, draw: Document) -> Values | None:
    """None where work of others piles up without end."""
    try:
        return solve(draw)
    except RunError:
        return None


def _beside(draw: Values | None, own: Values | None, best: Values) -> Values | None:
    """The best platform's quantities times what the draw changes; a part of an operation, which a solver doesn't know,
    changes as the whole. A time that either of the two lacks, as a shorter run may, changes as the mean time of its
    phase's operations, and what belongs to no phase of theirs not at all."""
    if draw is None or own is None:
        return None

    def ratio(phase: str, name: str) -> float:
        op, _, which = name.rpartition(".")
        for known in ((phase, name), (phase, f"{op.partition('.')[0]}.{which}")):
            if own.get(known, 0.0) > 0 and known in draw:
                return draw[known] / own[known]
        rates = own.get((phase, "rate"), 0.0), draw.get((phase, "rate"), 0.0)
        return rates[0] / rates[1] if op and min(rates) > 0 else 1.0

    return {(phase, name): value * ratio(phase, name) for (phase, name), value in best.items()}

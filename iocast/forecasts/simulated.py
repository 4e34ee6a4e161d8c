# SPDX-License-Identifier: Apache-2.0
"""A forecast's quantities by simulation: of the best platform, and of the draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np

from iocast.forecasts import draws
from iocast.ground import binaries
from iocast.calibrate.search import OVERLOADED, Simulations
from iocast.errors import InputError, RunError
from iocast.platforms.family import Beside
from iocast.platforms.fitted import Fitted
from iocast.forecasts import one_system
from iocast.forecasts.request import Found, Request, Samples, Shown, leave_out, refuse_idle_edits, resolved
from iocast.forecasts.solved import Solver
from iocast.forecasts.structures import middle_of
from iocast.runs.operations import Shares
from iocast.runs.phases import operations_by_phase
from iocast.platforms.documents import Document
from iocast.published.errors import Errors
from iocast.records.forecast import Distribution, Ends
from iocast.records.simulated import ModelLimits, SimulatedPhase, SimulatedRun, kinds_of
from iocast.runs.run_directory import QUANTITIES, Run
from iocast.records.note import ModelLimit, Note, TooRare
from iocast.records.quantities import Quantity
from iocast.ground.scratch import scratch_directory

SEEDS = 3
"""Replications of the best platform; their geometric mean is the forecast's value."""
PROBABILITIES = (
    0.0,
    *(n / 100 for n in range(1, 100)),
    *(round(1 - 10 ** (-2 - k / 20), 9) for k in range(1, 81)),
    1.0,
)
"""Probabilities at which a forecast states a distribution. The tail has many of them: where waits are rare but long,
most of the mean is in it."""
Distributions = dict[str, dict[str, Distribution]]
"""By phase and operation."""
LONG = 10_000_000
"""Simulated operations from which on one replication of the best platform is enough."""


def simulated(
    simulations: Simulations, platform: Fitted, request: Request, nodes: int, ranks_per_node: int, seed: int
) -> Found:
    """Log quantities of the best platform and of the draws; and what else the first simulation shows."""
    documents = [platform.best(), *platform.draws()]
    best, first, distributions, document = _first_that_settles(
        simulations, documents, request, nodes, ranks_per_node, seed
    )
    settles = document is documents[0]
    refuse_idle_edits(platform, [op for p in first["phases"] for op in p["by_operation"]])
    seeds = 1 if sum(p["operations"] for p in first["phases"]) > LONG else SEEDS
    question = (request.pattern, request.settings, nodes, ranks_per_node)
    centre = [first, *simulations.run([(best, *question, seed + s) for s in range(1, seeds)])]
    all_repeats = {phase: [p for p in first["phases"] if p["name"] == phase] for phase in distributions}
    names = {phase: _names_of(centre, phase) for phase in all_repeats}
    every = [(p, n) for p, of in names.items() for n in of]
    known = [draws.known_quantities(run, every) for run in centre]
    values = {key: math.exp(np.mean([math.log(one[key]) for one in known if key in one])) for key in every}

    def solver() -> draws.Solve:
        solution = Solver(request, nodes, ranks_per_node)
        if set(solution.phases) != set(names):
            raise InputError(f"Some phases of the workload {request.pattern} have no solution.")
        return lambda document: {
            (phase, n): v
            for phase in names
            for n, v in solution.quantities(phase, solution.solve(phase, document)).items()
        }

    def ask(system: Document) -> draws.Values:
        """One simulation, which may be shorter."""
        settings = draws.shorter(request.settings, first) or request.settings
        file = simulations.write(system)
        (run,) = simulations.run([(file, request.pattern, settings, nodes, ranks_per_node, seed)])
        return draws.known_quantities(run, [(p, n) for p, n in every if not Quantity.of(n).is_part])

    errors = Errors.of(platform)
    known_errors = errors if errors is not None and errors.speaks_of(first["workload"]["pattern"]) else None
    beside = Beside.of(platform, ask) if not platform.fitted and known_errors is None else None
    reported = draws.ask(simulations, documents[1:], best, document, values, first, question, seed, solver)
    settled = [one for one in reported.values if one is not None]
    request.notes += _too_rare([*known, *settled], every)
    structures = platform.fitted.get("draw_structures") or [{}] * len(reported.values)
    settled_structures = [
        structure for structure, one in zip(structures, reported.values, strict=True) if one is not None
    ]
    found: Found = {}
    for phase, repeats in all_repeats.items():
        ensemble = {n: [one[phase, n] for one in settled if (phase, n) in one] for n in names[phase]}
        value = middle_of(
            platform.fitted,
            platform.undecided,
            {n: values[phase, n] for n in names[phase]},
            ensemble,
            settled_structures,
            settles,
        )
        shown: Shown = {
            "workload": first["workload"],
            "shares": Shares.of(repeats),
            "distributions": distributions[phase],
        }
        balances = [p["balance"] for run in (reported.runs or centre) for p in run["phases"] if p["name"] == phase]
        shown["model"] = one_system.Simulated(
            known[0][phase, "rate"], values[phase, "rate"], repeats[-1], resolved(document, platform.file), nodes,
            nodes * ranks_per_node, _balance(balances),
        )  # fmt: skip
        samples: Samples = {
            "value": value,
            "ensemble": ensemble,
            "settles": settles,
            "structures": settled_structures,
            "peak_objects": first["peak_objects"],
            "total": sum(p["operations"] for p in first["phases"]),
            "course": partial(one_system.course, [p for p in first["phases"] if p["name"] in request.phases]),
            "draws": reported.document(),
            "beside": beside,
            "errors": known_errors,
        }
        found[phase] = (samples, shown)
    return found


def _names_of(runs: Sequence[SimulatedRun], phase: str) -> list[str]:
    """The quantities of a phase that some of these runs have: of a random mix one alone may lack the rarest
    operations."""
    rows = [p["latency"] for run in runs for p in run["phases"] if p["name"] == phase]
    operations = dict.fromkeys(op for latency in rows for op, printed in latency.items() if printed["count"])
    return ["rate", *(f"{op}.{q}" for op in operations for q in QUANTITIES)]


def _too_rare(known: Sequence[draws.Values], every: Sequence[tuple[str, str]]) -> list[Note]:
    """Of operations of a random mix that some simulated runs lack. known: what each has, first the one whose operations
    are counted."""
    lacking = {(p, n.partition(".")[0]): sum((p, n) not in one for one in known) for p, n in every}
    return [
        TooRare(op, phase, runs, len(known), (phase, f"{op}.q50") in known[0])
        for (phase, op), runs in lacking.items()
        if runs
    ]


def _balance(rows: list[float]) -> Ends:
    """First rank's end over the last one's (docs/run-directory.md): median and the middle nine tenths of the simulated
    runs. No error of the model's is in it."""
    low, value, high = np.quantile(rows, [0.05, 0.5, 0.95])
    return {"value": float(value), "low": float(low), "high": float(high)}


def _first_that_settles(
    simulations: Simulations, documents: list[Document], request: Request, nodes: int, ranks_per_node: int, seed: int
) -> tuple[Path, SimulatedRun, Distributions, Document]:
    """The first run of the best platform, or where work of others piles up in it without end, of the first draw in
    which it doesn't: its file, the run, its distributions by phase, and the platform.

    @raises RunError when it piles up in all of them"""
    for number, document in enumerate(documents):
        file = simulations.write(document)
        try:
            return file, *_first_run(file, request, nodes, ranks_per_node, seed), document
        except RunError as error:
            if error.code != OVERLOADED or number + 1 == len(documents):
                raise
    raise AssertionError("there is always a best platform")


def _first_run(
    platform: Path, request: Request, nodes: int, ranks_per_node: int, seed: int
) -> tuple[SimulatedRun, Distributions]:
    with scratch_directory("forecast") as scratch:
        out = scratch / "run"
        command = [
            binaries.find("iocast-sim"),
            "--json",
            "--platform",
            str(platform),
            "--workload",
            request.pattern,
            "--seed",
            str(seed),
        ]
        command += ["--nodes", str(nodes), "--ppn", str(round(ranks_per_node)), "--out", str(out), "--beyond"]
        for name, value in request.settings.items():
            command += ["--set", f"{name}={value}"]
        first = cast(SimulatedRun, binaries.run_json(command))
        timed = _timed(first["phases"], request, platform)
        present = request.present(timed)
        request.notes += _limits(first, present, platform)
        request.unshared = any(
            one["kind"] == "no-server" and one["phase"] in present for one in _limits_of(first)["findings"]
        )
        distributions: Distributions = {}
        for phase in present:
            run = Run(out, phase)
            distributions[phase] = {
                op: {
                    "probability": list(PROBABILITIES),
                    "seconds": [run.latencies(op).quantile(p) for p in PROBABILITIES],
                }
                for op in run.operations
            }
    return first, distributions


def _timed(phases: list[SimulatedPhase], wanted: Request, platform: Path) -> dict[str, float]:
    """Operations by phase of a run, of those that take time. @raises InputError when no phase of the forecast does"""
    operations = operations_by_phase(phases)
    seconds = {name: sum(p["seconds"] for p in phases if p["name"] == name) for name in operations}
    present = [name for name in wanted.phases if operations.get(name)]
    instant = [name for name in present if not seconds[name]]
    leave_out(instant, len(instant) < len(present), wanted, platform)
    return {name: count if seconds[name] else 0 for name, count in operations.items()}


def _limits_of(run: SimulatedRun) -> ModelLimits:
    return run.get("model_limits") or {"sentences": [], "findings": []}


def _limits(run: SimulatedRun, phases: list[str], platform: Path) -> list[Note]:
    """Limits of the platform's model in these phases (docs/run-directory.md, `model_limits`), under its name."""
    limits = _limits_of(run)
    here, elsewhere = (
        {one.get("sentence") for one in limits["findings"] if (one.get("phase", phases[0]) in phases) == inside}
        for inside in (True, False)
    )
    name = Path(binaries.known_as.get(str(platform), platform)).stem
    return [
        ModelLimit(kind, text.replace(f"'{platform.stem}'", f"'{name}'"))
        for number, (kind, text) in enumerate(zip(kinds_of(limits), limits["sentences"], strict=True))
        if number in here or number not in elsewhere
    ]

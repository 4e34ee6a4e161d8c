# SPDX-License-Identifier: Apache-2.0
"""A forecast's quantities by the analytic solver, and its share in a simulated one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from iocast import analytic
from iocast.forecasts import draws
from iocast.calibrate.search import Simulations
from iocast.errors import InputError
from iocast.platforms.family import Beside
from iocast.platforms.fitted import Fitted
from iocast.forecasts import one_system
from iocast.forecasts.phase import Rows
from iocast.records.fitted import FitRow
from iocast.forecasts.request import Found, Request, Shown, leave_out, refuse_idle_edits, resolved, workload_of
from iocast.forecasts.structures import middle_of
from iocast.runs.measured import Measured, measured
from iocast.runs.operations import MOVES_DATA, Shares, UNSOLVED, is_solved, iteration, profile
from iocast.platforms.documents import Document
from iocast.runs.run_directory import QUANTITIES
from iocast.records.forecast import DrawsDocument
from iocast.records.note import TimeLimit, Unsolved


class Solver:
    """The analytic solver for the phases of a workload that it has a model for: `phases`; `unsolved` are the others."""

    def __init__(self, request: Request, nodes: int, ranks_per_node: int) -> None:
        """@raises InputError when it has a model for no phase"""
        known = profile(request.pattern, request.settings, nodes, ranks_per_node)
        self.workload, self.given, self.known = known["workload"], known["given"], known["phases"]
        present = request.present({name: sum(of["operations"].values()) for name, of in self.known.items()})
        self.unsolved = [name for name in present if not is_solved(self.known[name])]
        self.phases = [name for name in present if name not in self.unsolved]
        if not self.phases:
            raise InputError(
                f"The workload {request.pattern} has ranks that {UNSOLVED}; of such the analytic "
                "solver knows nothing. Use --solver simulate."
            )

    def solve(self, phase: str, document: Document) -> analytic.Solution:
        of = self.known[phase]
        nodes, ranks_per_node = of["place"]
        return analytic.solve(
            resolved(document), iteration(of["operations"]), nodes, ranks_per_node,
            float(self.given.get("waiting_factor", 0)), round(sum(of["operations"].values())),
            size=of["bytes"], blocks=of["blocks"], datasets=of["datasets"], objects=of["objects"],
            think_time=float(self.given.get("think_time", 0)), unlike_ranks=of["unlike"], before=self.before(phase),
        )  # fmt: skip

    def before(self, phase: str) -> set[str]:
        """Operations of the phases before it."""
        names = list(self.known)
        return {op for name in names[: names.index(phase)] for op in self.known[name]["operations"]}

    def quantities(self, phase: str, solution: analytic.Solution) -> dict[str, float]:
        return {"rate": solution.rate} | {
            f"{op}.{q}": values[q] for op, values in solution.quantiles.items() for q in QUANTITIES
        }

    def first_cut(self, rates: Mapping[str, float]) -> str | None:
        """The first phase that its time limit may end: it lasts longer at its rate, or that is not known."""
        for name in self.known:
            rate, limit = rates.get(name), self.known[name]["most_seconds"]
            if limit > 0 and (rate is None or sum(self.known[name]["operations"].values()) > limit * rate):
                return str(name)
        return None

    def is_cut(self, phase: str, cut: str | None) -> bool:
        """Whether the phase is `cut`, the first that a time limit ends, or comes after it."""
        names = list(self.known)
        return cut is not None and names.index(phase) >= names.index(cut)

    def shares(self, phase: str) -> Shares:
        of = self.known[phase]
        count = {op: of["repeats"] * n for op, n in of["operations"].items()}
        moved = {op: of["bytes"][op] * count[op] for op in MOVES_DATA if op in count}
        return Shares.of_counts(count, moved, of["repeats"])


def solved(simulations: Simulations, platform: Fitted, request: Request, nodes: int, ranks_per_node: int) -> Found:
    """The same by the analytic solver. Phases that it has no model for are left out with a warning, or refused when no
    other is there."""
    file = simulations.write(platform.best())
    solver = Solver(request, nodes, ranks_per_node)
    refuse_idle_edits(platform, [op for one in solver.known.values() for op in one["operations"]])
    if solver.unsolved:
        request.notes.append(Unsolved(solver.unsolved))

    def ask(system: Document) -> draws.Values:
        return {(p, n): v for p in solver.phases for n, v in solver.quantities(p, solver.solve(p, system)).items()}

    best = {}
    for phase in solver.phases:
        with suppress(analytic.NoTime):
            best[phase] = solver.solve(phase, platform.best())
    untimed = [phase for phase in solver.phases if phase not in best]
    leave_out(untimed, bool(best), request, file)
    solver.phases = list(best)
    beside = Beside.of(platform, ask) if not platform.fitted else None
    cut = solver.first_cut({phase: solution.rate for phase, solution in best.items()})
    if cut is not None:
        request.notes.append(TimeLimit(cut))
    found: Found = {}
    rows = fit_rows(platform) if platform.fitted else None
    for phase in solver.phases:
        solutions = [best[phase], *(solver.solve(phase, document) for document in platform.draws())]
        value, *reported = [solver.quantities(phase, one) for one in solutions]
        shown: Shown = {
            "workload": solver.workload,
            "shares": solver.shares(phase),
            "lasting": not solver.is_cut(phase, cut),
            "distributions": {},
            "model": one_system.Solved(solutions[0]),
        }
        ensemble = {n: [one[n] for one in reported] for n in value}
        count: DrawsDocument = {"used": len(reported), "of": len(reported), "how": "solved"}
        found[phase] = (
            {
                "value": middle_of(
                    platform.fitted, platform.undecided, value, ensemble, platform.fitted.get("draw_structures") or []
                ),
                "ensemble": ensemble,
                "fit_rows": rows,
                "draws": count,
                "beside": beside,
                "total": None
                if cut is not None
                else round(sum(of["repeats"] * sum(of["operations"].values()) for of in solver.known.values())),
            },
            shown,
        )
    return found


_fit_rows: dict[tuple[str, str], Rows] = {}


def fit_rows(platform: Fitted) -> Rows:
    """What the analytic solver is off by at the points that a calibrated platform was fitted to, without any edit;
    points that it has no model for are left out, and those whose number of nodes is not known are on one."""
    plain = platform.as_measured()
    key = platform.content_hash(), platform.phase
    if key not in _fit_rows:
        _fit_rows[key] = [row for one in measured(plain.fitted) for row in _rows_at(plain, one)]
    return _fit_rows[key]


def _rows_at(platform: Fitted, point: Measured) -> Rows:
    place = point.question.placement
    where = place.nodes or 1, round(place.ranks_per_node or place.ranks)
    own = {"waiting_factor": point.question.waiting_factor, "think_time": point.question.think_time}
    settings = {name: f"{value:g}" for name, value in own.items() if value}
    settings |= {name: str(value) for name, value in point.entry.get("switches", {}).items()}
    try:
        solver = Solver(workload_of(platform, None, settings, None, *where), *where)
        known = solver.quantities(platform.phase, solver.solve(platform.phase, platform.best()))
    except InputError:
        return []
    reported = {f"{op}.{q}": value for op, of in point.entry["latency"].items() for q, value in of.items()}
    reported["rate"] = point.entry["rate"]
    simulated = {row["quantity"]: row for row in platform.fitted.get("fit", []) if row["point"] == point.name}
    rows: Rows = []
    for name, value in known.items():
        if reported.get(name):
            row: FitRow = {"point": point.name, "quantity": name, "error": value / reported[name] - 1}
            beside: FitRow = simulated.get(name, row)
            row["runs"] = beside.get("runs", point.entry.get("repeats", 1))
            if "noise" in beside:
                row["noise"] = beside["noise"]
            rows.append(row)
    return rows

# SPDX-License-Identifier: Apache-2.0
"""Calibration from few numbers: how rates grow with nodes and ranks, when that is all that is known
(docs/calibration.md, "Rates alone").

Lists of results, tables in papers and logs of other tools hold a rate for each placement and nothing of latencies,
often at one scale only. Forecasts of the measured system follow from curves of growth (iocast/rules/growth.py). What an
edit of the system changes follows from queueing networks, each weighted by how well it explains the rates: the smallest
network that does what storage does (platforms/queue.yaml), in which an operation takes a time that nobody shares, then
its node's queue, then one shared server that slows down as it is crowded."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from iocast.rules import growth
from iocast.runs.agreement import ASSUMED
from iocast.calibrate import reading
from iocast.calibrate.correlation import correlations, tied
from iocast.ground.names import shortened
from iocast.errors import InputError
from iocast.ground.files import sha256
from iocast.runs.phases import unit_entry
from iocast.records import note_of_measurements as note
from iocast.records.note import Note
from iocast.platforms.documents import Document, reference, set_path
from iocast.runs.question import Setting, meaning
from iocast.wording.notes import add
from iocast.runs.run_directory import QUANTITIES, Point, is_table

Array = NDArray[np.float64]
Report = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Parameter:
    """A number of the network: where it lies in the platform, its unit, and what is believed of its logarithm before
    any measurement, relative to the largest one: mean and standard deviation. Chosen by hand, once for all systems."""

    name: str
    path: str
    unit: str
    mean: float
    sd: float


PARAMETERS = (
    Parameter("alone", "demands.alone.mean", "s", -1.3, 1.0),  # over N/X, the time of an operation there
    Parameter("node", "demands.node.mean", "s", -2.0, 1.5),  # over nodes/X: the node's utilisation there
    Parameter("server", "demands.server.mean", "s", -1.5, 1.5),  # over 1/X: the server's
    Parameter("crowding", "stations.server.crowding", "", math.log(0.02), 1.0),
)
DISCREPANCY = 0.15
"""Standard deviation of the logarithm of a rate that the network itself misses, at twice the fitted scale; it grows as
`GROWTH` says."""
GROWTH = {"step": 2.0, "power": 0.5}
SAMPLES, MOVES = 2**9, 6
DRAWS = 24
NOT_OF_THE_WORKLOAD = ("waiting_factor", "repeats", "start_index", "phases", "working_set", "seed")
"""Parameters in which measurements of one workload may differ."""
HOW_LONG = ("iterations", "transactions", "operations", "most_seconds", "stonewalling_time", "runtime", "ramp_time")
"""Parameters that change how long a run was watched, and not what it did."""
OF_THE_CALL = (
    "name", "directory", "filename", "description", "numjobs", "nrfiles", "group_reporting", "output", "threads",
    "write_bw_log", "write_iops_log", "write_lat_log", "log_avg_msec", "randseed", "time_based",
)  # fmt: skip
"""Options of fio and others that say where a run ran and what it wrote down."""
OF_THE_TEST = (
    "transfer_size", "access", "api", "type", "ordering_in_a_file", "bs", "rw", "rwmixread", "ioengine", "iodepth",
    "direct", "test", "unique_directory",
)  # fmt: skip
"""Parameters that make another test of a run, at whatever placement: none of them follows the scale."""
MAX_NAMED = 3
OPERATIONS, BYTES = "operations", "bytes"
"""Units of a rate, per second."""
FAR = (1, 2, 8, 32)
"""Multiples of the largest measured number of nodes at which draws are distinguished."""


def _latency(point: Point) -> Document:
    """Quantiles by operation, in seconds; of ranks with think times of their own none, whose number inside operations
    is not known."""
    if point.think_time > 0:
        return {}
    known = {
        op: {q: point.value(f"{op}.{q}") for q in ("mean", *QUANTITIES) if point.has(f"{op}.{q}")}
        for op in point.first.operations
    }
    return {op: own for op, own in known.items() if own}


@dataclass(frozen=True)
class Placement:
    nodes: int
    ranks_per_node: int
    waiting_factor: float

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


def rates_of(logs: Array, placements: Sequence[Placement]) -> Array:
    """Operations a second of the network with each row of parameters (logarithms, in the order of PARAMETERS) at each
    placement.

    Approximate mean value analysis (Bard 1979, Schweitzer 1979) of two queues and a delay, N/(1+T) customers; the
    server's service grows by 1 + crowding ln(1 + waiting) as a platform's does. Within 8 % of the analytic solver."""
    alone, node, server, crowding = np.exp(logs).T
    result = np.empty((len(logs), len(placements)))
    for column, place in enumerate(placements):
        customers = place.ranks / (1 + place.waiting_factor)
        others, neighbours = 1 - 1 / place.ranks, 1 - 1 / place.ranks_per_node
        low, high = np.zeros_like(server), np.full_like(server, customers)
        # The number at the server is what all else follows from, and grows with the customers even where the rate
        # falls.
        for _ in range(40):
            there = (low + high) / 2
            rate = _rate(there, server, crowding, others)
            free = 1 - rate * node / place.nodes * neighbours
            elsewhere = np.where(free > 1e-9, rate * (alone + node / np.maximum(free, 1e-9)), np.inf)
            above = there + elsewhere > customers
            high, low = np.where(above, there, high), np.where(above, low, there)
        result[:, column] = _rate(high, server, crowding, others)
    return result


def _rate(there: Array, server: Array, crowding: Array, others: float) -> Array:
    """Throughput of a server with this many customers, each of whom found a share `others` of them."""
    return there / (server * (1 + crowding * np.log1p(others * there)) * (1 + others * there))


def spread(logs: Array, by: Array, count: int) -> Array:
    """Indices of `count` of the samples, spread evenly over the quantity `by` of each."""
    return np.asarray(np.argsort(by)[((np.arange(count) + 0.5) / count * len(logs)).astype(int)])


def find_posterior(placements: Sequence[Placement], log_rates: Array, sigmas: Array, seed: int) -> Array:
    """What the rates leave of the belief in PARAMETERS, as samples of their logarithms (SAMPLES, 4). log_rates and
    their standard deviations: one a placement.

    Sequential Monte Carlo (Del Moral, Doucet & Jasra 2006): samples of the belief to which the measurements are made to
    matter little by little; each time, those that explain them are multiplied, and then moved by differences of others
    (differential evolution: ter Braak
    2006), which follow whatever shape the rates leave: a faster server and less crowding, say. A measurement errs with
    Student's t of 4 degrees, for one that was disturbed must not overrule the others."""
    from scipy.stats import qmc

    largest = max(range(len(placements)), key=lambda i: placements[i].ranks / (1 + placements[i].waiting_factor))
    place, log_rate = placements[largest], float(log_rates[largest])
    busy = place.ranks / (1 + place.waiting_factor)
    scale = {"alone": math.log(busy) - log_rate, "node": math.log(place.nodes) - log_rate, "server": -log_rate}
    mean = np.array([p.mean + scale.get(p.name, 0.0) for p in PARAMETERS])
    sd = np.array([p.sd for p in PARAMETERS])

    def prior(logs: Array) -> Array:
        return np.asarray(-0.5 * (((logs - mean) / sd) ** 2).sum(axis=1))

    def likelihood(logs: Array) -> Array:
        residuals = (np.log(rates_of(logs, placements)) - log_rates) / sigmas
        return np.asarray(-2.5 * np.log1p(residuals**2 / 4).sum(axis=1))

    generator = np.random.default_rng(seed)
    logs: Array = mean + sd * ndtri(np.clip(qmc.Sobol(len(PARAMETERS), seed=seed).random(SAMPLES), 1e-9, 1 - 1e-9))
    before, explained = prior(logs), likelihood(logs)
    power = 0.0
    while power < 1:
        step = _next_step(explained, 1 - power)
        power = min(1.0, power + step)
        weights = _normalised(step * explained)
        kept = np.searchsorted(np.cumsum(weights), (np.arange(SAMPLES) + generator.random()) / SAMPLES).clip(
            0, SAMPLES - 1
        )
        logs, before, explained = logs[kept], before[kept], explained[kept]
        for move in range(MOVES):
            stride = 2.38 / math.sqrt(2 * len(PARAMETERS)) * (1.0, 0.4, 0.15)[move % 3]
            difference = logs[generator.permutation(SAMPLES)] - logs[generator.permutation(SAMPLES)]
            moved = logs + stride * difference + 1e-3 * sd * generator.standard_normal(logs.shape)
            new_before, new_explained = prior(moved), likelihood(moved)
            gain = new_before - before + power * (new_explained - explained)
            taken = np.log(generator.random(SAMPLES)) < gain
            logs[taken], before[taken], explained[taken] = moved[taken], new_before[taken], new_explained[taken]
    return logs


def _next_step(explained: Array, most: float) -> float:
    """By how much more the measurements may matter until half of the samples carry the weight."""

    def too_far(step: float) -> bool:
        return bool(1 / np.sum(_normalised(step * explained) ** 2) < SAMPLES / 2)

    if not too_far(most):
        return most
    low, high = 0.0, most
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if too_far(middle) else (middle, high)
    return max(low, 1e-6)


def _normalised(logs: Array) -> Array:
    weights = np.exp(logs - np.max(logs))
    return np.asarray(weights / np.sum(weights))


def calibrate_rates(points: list[Point], platform: str, seed: int, report: Report) -> Document:
    """The document of a platform file that extends `platform`, a network like platforms/queue.yaml, with a `fitted`
    section.

    @raises InputError when there is no run, or for one that can't be fitted to"""
    reading.check_runs(points)
    if mixed := different_tests(points):
        raise InputError(mixed)
    noise = reading.noise(points)
    places = [Placement(*point.first.placement, point.waiting_factor) for point in points]
    observed = np.array([float(np.mean(np.log(point.observations("rate")))) for point in points])
    # Measured one after the other, placements differ less from a common law than one measured on two days differs from
    # itself.
    basis = reading.noise_basis(points)
    scatter = reading.UNREPEATED if basis["rate"] == ASSUMED else noise["rate"]
    sigmas = np.hypot([scatter / math.sqrt(len(point.runs)) for point in points], reading.UNREPEATED)
    report("the fit to rates alone", 0, 1)
    posterior = find_posterior(places, observed, sigmas, seed)
    largest = max(places, key=lambda p: p.ranks)
    far = [Placement(factor * largest.nodes, largest.ranks_per_node, largest.waiting_factor) for factor in FAR]
    printed = np.log(rates_of(posterior, far))
    chosen = spread(posterior, printed[:, -1], DRAWS)
    best = chosen[_middle(printed[chosen], posterior[chosen])]
    document: Document = {"schema_version": 1, "extends": reference(platform)} | _numbers(posterior[best])
    ranks = sorted({point.ranks for point in points})
    document["description"] = f"{platform}, fitted to rates at {', '.join(map(str, ranks))} ranks"
    document["source"] = "calibrated by iocast; see the section 'fitted'"
    measured = [measured_growth(point) for point in points]
    unit = unit_of(points)
    missed = growth.residuals(measured)
    runs = [run for point in points for run in point.runs]
    together = correlations([p.name for p in PARAMETERS], np.cov(posterior.T))
    document["fitted"] = {
        "method": "rates",
        "campaign": {
            "runs": [{"name": run.path.name, "sha256": sha256(run.path / "run.json")} for run in runs],
            "ranks": ranks,
            "waiting_factors": sorted({point.waiting_factor for point in points}),
            "workload": points[0].first.json["workload"],
            "phase": points[0].first.phase,
            "environment": points[0].first.record.environment or {},
            "unit": unit,
            "points": [
                {
                    "name": p.name,
                    "ranks": p.ranks,
                    "nodes": p.first.placement[0],
                    "waiting_factor": p.waiting_factor,
                    "think_time": p.think_time,
                    "rate": p.value("rate"),
                    "repeats": m.repeats,
                    "log_variance": m.variance,
                    "working_set": p.first.parameters.get("working_set"),
                    "latency": _latency(p),
                }
                for p, m in zip(points, measured, strict=True)
            ],
        },
        "family": platform,
        "structure": {},
        "parameters": {
            p.path: {
                "name": p.name,
                "value": math.exp(posterior[best, i]),
                "low": math.exp(np.quantile(posterior[:, i], 0.05)),
                "high": math.exp(np.quantile(posterior[:, i], 0.95)),
                "unit": p.unit,
            }
            for i, p in enumerate(PARAMETERS)
        },
        "correlations": together,
        "alternatives": [],
        "misfit": float(np.mean([(miss / sigma) ** 2 for (miss, _), sigma in zip(missed, sigmas, strict=True)])),
        "noise": noise,
        "noise_basis": basis,
        "fit": [
            _row(p, growth.forecast(measured, m, operations=unit == OPERATIONS).value)
            for p, m in zip(points, measured, strict=True)
        ],
        "residuals": [
            {"point": p.name, "residual": miss, "alarm": alarm} for p, (miss, alarm) in zip(points, missed, strict=True)
        ],
        "holdout": _hold_out(points, measured, unit),
        "discrepancy": {"rate": DISCREPANCY},
        "discrepancy_growth": GROWTH,
        "simulations": 0,
        "notes": [],
        "cautions": [],
        "draws": [_numbers(posterior[i]) for i in chosen],
    }
    add(document["fitted"], [*_notes(points, measured), *tied(together)])
    return document


def different_tests(points: Sequence[Point]) -> str:
    """That these points are of different tests, in what they differ and how one is chosen; "" for one test.

    Tests differ in a setting that never follows the scale (OF_THE_TEST), or in any at one placement. Where all else
    differs only from placement to placement, as sizes do with strong scaling, the points are taken for one test."""
    free = {*NOT_OF_THE_WORKLOAD, *HOW_LONG, *OF_THE_CALL}
    settings = [
        {name: meaning(value) for name, value in point.first.parameters.items() if name not in free} for point in points
    ]
    names = {name for one in settings for name in one}
    differing = {name for name in OF_THE_TEST if len({one[name] for one in settings if name in one}) > 1}
    by_place: dict[tuple[Any, ...], list[dict[str, Setting]]] = {}
    for point, one in zip(points, settings, strict=True):
        by_place.setdefault((*point.first.placement, point.waiting_factor), []).append(one)
    differing |= {name for name in names for those in by_place.values() if len({one.get(name) for one in those}) > 1}
    if not differing:
        return ""
    tests: dict[tuple[str, ...], list[Point]] = {}
    for point, one in zip(points, settings, strict=True):
        key = tuple(f"{name}={one[name]}" for name in sorted(differing) if name in one)
        tests.setdefault(key, []).append(point)
    # Of the largest scale first: what was measured there refutes a forecast from smaller ones.
    largest = sorted(tests, key=lambda key: (-max(point.ranks for point in tests[key]), -len(key)))
    listed = "; ".join(f"{', '.join(key) or 'none of them'} {_where(tests[key])}" for key in largest[:MAX_NAMED])
    more = f"; and {len(tests) - MAX_NAMED} more" if len(tests) > MAX_NAMED else ""
    example = " ".join(f"--only {shlex.quote(one)}" for one in next(key for key in largest if key))
    return (
        f"These are {len(tests)} tests that differ in {', '.join(sorted(differing))}: {listed}{more}. Each has a "
        "forecast of its own. Name the runs of one test alone, or choose it in iocast forecast, as that of the largest "
        f"scale by {example}."
    )


def _where(points: Sequence[Point]) -> str:
    """Placements, and the runs there."""
    places = dict.fromkeys("x".join(f"{n:g}" for n in point.first.placement) for point in points)
    return f"at {shortened(list(places))} in {shortened([run.path.name for point in points for run in point.runs])}"


def _middle(printed: Array, logs: Array) -> int:
    """The representative draw: in the middle of the draws' forecasts, and of those there in the middle of the
    parameters."""

    def away(values: Array) -> Array:
        return np.asarray((((values - np.median(values, axis=0)) / (values.std(axis=0) + 1e-9)) ** 2).sum(axis=1))

    near = np.argsort(away(printed))[: max(1, len(printed) // 4)]
    return int(near[np.argmin(away(logs)[near])])


def _numbers(logs: Array) -> Document:
    document: Document = {}
    for parameter, log in zip(PARAMETERS, logs, strict=True):
        value = f"{math.exp(log):.6g}s" if parameter.unit else float(f"{math.exp(log):.6g}")
        path, _, key = parameter.path.rpartition(".")
        set_path(
            document,
            path if key == "mean" else parameter.path,
            {"law": "exponential", "mean": value} if key == "mean" else value,
        )
    return document


def _row(point: Point, log_forecast: float) -> dict[str, Any]:
    measured, forecast = point.value("rate"), math.exp(log_forecast)
    return {
        "point": point.name,
        "quantity": "rate",
        "measured": measured,
        "forecast": forecast,
        "error": forecast / measured - 1,
    } | unit_entry(unit_of([point]))


def measured_growth(point: Point) -> growth.Measured:
    """The rates of a point, as curves of growth take them."""
    logs = np.log(point.observations("rate"))
    nodes, ranks_per_node = point.first.placement
    variance = float(np.var(logs, ddof=1)) if len(logs) > 1 else 0.0
    return growth.Measured(
        nodes, ranks_per_node / (1 + point.waiting_factor), float(np.mean(logs)), len(logs), variance
    )


def unit_of(points: Sequence[Point]) -> str:
    """OPERATIONS, or BYTES where the imported rates count bytes.

    @raises InputError when the points disagree"""
    units = {phase.rate_unit or OPERATIONS for point in points for run in point.runs for phase in run.phases}
    if len(units) > 1:
        raise InputError(
            f"These rates have the units {' and '.join(sorted(units))} a second; calibrate each by itself."
        )
    return units.pop()


def _hold_out(points: list[Point], measured: list[growth.Measured], unit: str) -> dict[str, Any]:
    """Forecasts of the largest scale by the others, when those have two scales at least."""
    largest = max(one.ranks for one in measured)
    kept = [one for one in measured if one.ranks < largest]
    if len({round(one.ranks, 9) for one in kept}) < 2:
        return {}
    rows = [
        _row(point, growth.forecast(kept, one, operations=unit == OPERATIONS).value)
        for point, one in zip(points, measured, strict=True)
        if one.ranks == largest
    ]
    scales = [point.ranks for point, one in zip(points, measured, strict=True) if one.ranks < largest]
    return {"ranks": max(p.ranks for p in points), "fitted_up_to": max(scales), "rows": rows}


def _notes(points: list[Point], measured: list[growth.Measured]) -> list[Note]:
    """What the rates leave open."""
    notes: list[Note] = [note.RatesAlone(any(_latency(point) for point in points)), *_unused_latencies(points)]
    if growth.one_scale(measured):
        notes.append(one_scale_note(points))
    settings = [
        {name: value for name, value in point.first.parameters.items() if name not in NOT_OF_THE_WORKLOAD}
        for point in points
    ]
    differing = sorted(
        name for name in {name for one in settings for name in one} if len({str(one.get(name)) for one in settings}) > 1
    )
    if differing:
        notes.append(note.SettingsVary(differing))
    return notes + alarm_notes(points, growth.residuals(measured))


def one_scale_note(points: list[Point]) -> note.GrowthNotMeasured:
    """That growth was not measured, and which runs would measure it: half and a quarter of the ranks."""
    nodes, ranks_per_node = points[0].first.placement
    smaller = [
        f"{nodes // k} x {ranks_per_node}" if nodes >= k else f"1 x {nodes * ranks_per_node // k}"
        for k in (2, 4)
        if nodes * ranks_per_node >= k
    ]
    return note.GrowthNotMeasured(points[0].ranks, smaller)


def _unused_latencies(points: Sequence[Point]) -> list[note.LatenciesNotFitted]:
    """Why quantiles of latency that the results have are in no forecast."""
    if any(len(point.quantities()) == 1 for point in points):
        return []
    lacking = "" if is_table(points[0].first) else reading.lacking_scales(points)
    why = lacking or (
        "A fit to latencies needs runs of iocast measure, or results of a tool whose workload iocast has, with all its "
        "operations."
    )
    return [note.LatenciesNotFitted(why)]


def alarm_notes(points: list[Point], residuals: Sequence[tuple[float, bool]]) -> list[Note]:
    """The misfit alarm: rates that no curve of growth follows, with their residuals."""
    off = {p.name: math.expm1(miss) for p, (miss, alarm) in zip(points, residuals, strict=True) if alarm}
    return [note.RatesOffGrowth(off)] if off else []


def check_platform(document: Document, platform: str) -> None:
    """@raises InputError when the platform has no place for the parameters"""
    for parameter in PARAMETERS:
        here: Any = document
        for key in parameter.path.split("."):
            here = here.get(key) if isinstance(here, dict) else None
            if here is None:
                raise InputError(
                    f"The platform '{platform}' has no {parameter.path}, which a calibration of rates fits; extend the "
                    "platform queue."
                )

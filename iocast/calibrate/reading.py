# SPDX-License-Identifier: Apache-2.0
"""Reading the data before anything is fitted: enough of it, laws of a single rank, stalls, noise."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hdrh.histogram import HdrHistogram

from iocast.runs.agreement import ASSUMED, BETWEEN_RUNS, WITHIN_RUNS
from iocast.runs.arrivals import refuse_in_calibration
from iocast.errors import InputError
from iocast.rules.noise import moderated
from iocast.rules.residuals import kind_of
from iocast.runs.latency_log import NS, Latencies
from iocast.runs.run_directory import Point, Run
from iocast.watching.counted import Served, Threads, threads_of
from iocast.watching.utilisation import bounds, bytes_over_links, served
from iocast.records.fitted import FittedSection, LinkBytes, MovedAtMost, Observed

LONGEST_NS = 86_400 * 10**9
NO_REQUEST = 1e-6
"""Seconds of a lone rank's part in the mean, below which it is no request: no network's answer comes as soon."""
UNREPEATED, UNREPEATED_IMPORTED = 0.05, 0.15
"""Standard deviation of the logarithm assumed where nothing was repeated. Other people's results come from shared
production systems, whose repeats differ more: three repeats on Mistral by a factor of 1.8, the MDWorkbench paper's
Tables 1 and 2 by 6 % in the median, 13 % at worst (Kunkel & Markomanolis 2018)."""

LEVELS_OFF = 0.5
"""Logarithmic slope of throughput between the two largest scales, below which something else than servers is short."""
NOISE_KINDS = ("rate", "q50", "q75", "q95", "q99", "max")
LAW_PROBABILITIES = (
    *(
        0.0,
        0.01,
        0.02,
        0.05,
        0.1,
        0.15,
        0.2,
        0.25,
        0.3,
        0.35,
        0.4,
        0.45,
        0.5,
        0.55,
        0.6,
        0.65,
        0.7,
        0.75,
        0.8,
        0.85,
        0.9,
    ),
    *(0.925, 0.95, 0.965, 0.98, 0.9875, 0.995, 0.9975, 0.999, 0.9995, 0.9999, 0.99999, 1.0),
)


def check_enough(points: list[Point]) -> None:
    """@raises InputError that says which measurements are missing"""
    check_runs(points)
    if lacking := lacking_scales(points):
        raise InputError(f"{lacking[:-1]}; or let the rates alone speak: --platform queue.")


def lacking_scales(points: Sequence[Point]) -> str:
    """Which measurements a fit to latencies lacks, and what to measure; "" when it has all."""
    counts = sorted({point.ranks for point in points if point.waiting_factor == 0})
    if 1 not in counts:
        return "A run of one rank without waiting factor is missing; it gives the service times. Measure N = 1, T = 0."
    if len(counts) < 3:
        return (
            f"There are too few measurements to calibrate: only N = {', '.join(map(str, counts))} without waiting "
            "factor. Measure at least three numbers of ranks, e.g. N = "
            f"{', '.join(str(n) for n in (2, 4, 8) if n not in counts)} as well."
        )
    return ""


def check_runs(points: list[Point]) -> None:
    """@raises InputError when there is none to fit to, or for one of an open loop, of an observed load, of another
    tool's training, that failed or that did nothing"""
    if not points:
        raise InputError("All points of these campaigns are kept for checks; name measurements with the role 'fit'.")
    if len(counts := sorted({point.first.mounts for point in points})) > 1:
        raise InputError(
            f"These runs go through {' and '.join(map(str, counts))} mount points, and a node with more of them is "
            f"another system; name the runs of one number alone, as in OUT/runs/*-mounts{counts[-1]}-*."
        )
    for point in points:
        for run in point.runs:
            refuse_in_calibration(str(run.path), run.record.workload.pattern, run.parameters)
            run.require_no_training()
            run.require_no_max_rate(
                "Calibrate with runs without that limit, and with fewer ranks where load is the worry."
            )
            if run.errors:
                raise InputError(
                    f"The run '{run.path}' has {run.errors} failed operations; a model of a failing system would "
                    "mislead. Measure it again."
                )
            if run.rate <= 0:
                raise InputError(f"The run '{run.path}' has no throughput; measure it again.")


def empirical_law(latencies: Latencies) -> dict[str, Any]:
    """A measured distribution as a platform's `empirical` law: values in seconds, smoothed only by the choice of
    probabilities. Probabilities finer than the number of samples are left out."""
    values: list[float] = []
    probabilities = []
    for p in LAW_PROBABILITIES:
        if 0 < p < 1 and min(p, 1 - p) * latencies.count < 2:
            continue
        value = latencies.minimum if p == 0 else latencies.maximum if p == 1 else latencies.quantile(p)
        values.append(max(value, NS, values[-1] if values else 0))
        probabilities.append(p)
    return {"law": "empirical", "probabilities": probabilities, "values": [f"{v:.9g}s" for v in values]}


def quantile_law(run: Run, tag: str) -> dict[str, Any] | None:
    """The `empirical` law of an imported run that tells quantiles only: straight between them, which knows nothing of
    the tail beyond the last one but its maximum. None with fewer than three."""
    answer = {
        "min": 0.0,
        "q25": 0.25,
        "q50": 0.5,
        "q75": 0.75,
        "q90": 0.9,
        "q95": 0.95,
        "q99": 0.99,
        "q999": 0.999,
        "max": 1.0,
    }
    points = [(q, value) for name, q in answer.items() if (value := run.quantity(tag, name)) is not None]
    if points and points[-1][0] == 1:  # no operation took longer in any of its repeats
        points[-1] = 1.0, max(phase.latencies(tag).max or points[-1][1] for phase in run.phases)
    if len(points) < 3 or points[0][0] > 0 or points[-1][0] < 1:
        return None
    values = np.maximum.accumulate([max(value, NS) for _, value in points])
    return {"law": "empirical", "probabilities": [q for q, _ in points], "values": [f"{v:.9g}s" for v in values]}


def split_law(whole: dict[str, Any], parts: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """An `empirical` law of a compound operation as laws of its parts, which add up to it: the part with the largest
    mean varies as the whole does, the others are constant, at their share of the shortest time. `parts` are a
    platform's own demands."""
    means = {name: mean_seconds(law) for name, law in parts.items()}
    total = sum(means.values()) or 1.0
    largest = max(means, key=lambda name: means[name])
    values = [float(value.removesuffix("s")) for value in whole["values"]]
    constant = {name: max(values[0] * mean / total, NS) for name, mean in means.items() if name != largest}
    laws = {
        name: {"law": "empirical", "probabilities": [0.0, 1.0], "values": [f"{v:.9g}s"] * 2}
        for name, v in constant.items()
    }
    rest = [f"{max(value - sum(constant.values()), NS):.9g}s" for value in values]
    return laws | {largest: {"law": "empirical", "probabilities": whole["probabilities"], "values": rest}}


def mean_seconds(law: Any) -> float:
    """The stated mean of a demand, "8us" or {law, mean: 8us}; 1 us where it has another form."""
    stated = seconds_of(law.get("mean") if isinstance(law, dict) else law)
    return 1e-6 if stated is None else stated


def seconds_of(text: Any) -> float | None:
    """ "8us" or "-1.5e-05s" as a platform has it; None for what is no time."""
    found = re.fullmatch(r"\s*(-?[\d.]+(?:e[+-]?\d+)?)\s*(ns|us|ms|s)\s*", str(text))
    return float(found[1]) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[found[2]] if found else None


def single_rank_law(point: Point, tag: str, below: float = math.inf) -> dict[str, Any] | None:
    """The law of "create.open" in the benchmark phase, or of "precreate.mkdir" in that phase; None when it was not
    measured. What took `below` seconds or longer is left out where the whole distribution is known."""
    run = point.first
    phase, _, rest = tag.partition(".")
    if rest and phase in {p.name for p in run.record.phases}:
        return empirical_law(_shorter(run.latencies(rest, phase), below)) if rest in run.tags(phase) else None
    if any(tag not in run.tags() for run in point.runs):
        return quantile_law(run, tag)
    # Into a histogram of its own: each run goes on answering for itself.
    pooled = HdrHistogram(1, LONGEST_NS, 3)
    for run in point.runs:
        pooled.add(run.latencies(tag).histogram)
    return empirical_law(_shorter(Latencies(pooled), below))


def _shorter(latencies: Latencies, below: float) -> Latencies:
    """Those below; all when none is."""
    if latencies.maximum < below or latencies.minimum >= below:
        return latencies
    kept = HdrHistogram(1, LONGEST_NS, 3)
    _, highest, counts = latencies.recorded()
    for value, count in zip(highest.tolist(), counts.tolist(), strict=True):
        if value * NS < below:
            kept.record_value(value, count)
    return Latencies(kept)


@dataclass(frozen=True)
class Stall:
    every: float  # seconds
    length: float  # seconds
    operations: tuple[str, ...]
    sigma: float  # of the logarithm of its length


def find_stall(runs: list[Run]) -> Stall | None:
    """Periodic stalls: bursts of operations that are released together, at regular intervals.

    A slow operation lasts over 40 ms and 20 medians; its release time is when it ended. Releases closer than 0.25 s
    form a burst. The bursts of a run must be at least four, and the gaps between them near multiples of one period
    (queueing.md 2.3)."""
    found: list[Stall] = []
    for run in runs:
        if run.waiting_factor > 0:
            continue
        for phase in run.phases:
            slow = [s for s in phase.slowest or [] if s.seconds > max(0.04, 20 * (phase.latencies(s.op).q50 or 0.0))]
            ends = sorted((s.start + s.seconds, s.seconds, s.op) for s in slow)
            bursts: list[list[tuple[float, float, str]]] = []
            for one in ends:
                if bursts and one[0] - bursts[-1][-1][0] < 0.25:
                    bursts[-1].append(one)
                else:
                    bursts.append([one])
            bursts = [b for b in bursts if len(b) >= 2]
            if len(bursts) < 4:
                continue
            gaps = np.diff([b[0][0] for b in bursts])
            period = float(np.median(gaps))
            multiples = np.maximum(1, np.round(gaps / period))
            if float(np.std(gaps / multiples)) > 0.1 * period:
                continue
            operations = tuple(sorted({s[2] for b in bursts for s in b}))
            lengths = [max(s[1] for s in b) for b in bursts]
            found.append(
                Stall(
                    float(np.median(gaps / multiples)),
                    float(np.median(lengths)),
                    operations,
                    float(np.std(np.log(lengths), ddof=1)),
                )
            )
    if not found:
        return None
    return Stall(
        float(np.median([s.every for s in found])),
        float(np.median([s.length for s in found])),
        tuple(sorted({op for s in found for op in s.operations})),
        float(np.clip(np.median([s.sigma for s in found]), 0.01, 1)),
    )


def noise(points: list[Point]) -> dict[str, float]:
    """Standard deviation of the logarithm between repeats of the same measurement, by kind of quantity (NOISE_KINDS);
    what it rests on is in `noise_basis`."""
    return {kind: deviation for kind, (deviation, _) in _noise(points).items()}


def noise_together(points: Sequence[Point], kinds: Sequence[str]) -> float:
    """Standard deviation between repeats of the mean logarithm of all quantities of these kinds: a slow run is slow in
    all of them. Where nothing was repeated as much as one quantity is assumed to differ by."""
    variances = []
    for point in points:
        names = [name for name in point.quantities() if kind_of(name) in kinds]
        if len(point.runs) > 1 and names:
            means = np.mean([np.log(np.maximum(point.observations(name), NS)) for name in names], axis=0)
            variances.append((float(np.var(means, ddof=1)), len(means) - 1))
    if variances:
        return _pooled(variances)
    known = noise(list(points))
    return float(np.sqrt(np.mean([known[kind] ** 2 for kind in kinds])))


def noise_of_points(points: Sequence[Point]) -> dict[tuple[str, str], float]:
    """Standard deviation of the logarithm between repeats, by name of the point and quantity: what carries a residual
    on (rules.residuals). A saturated server repeats its rate within a thousandth where a lone client is 2 % off. Only
    of points that were repeated; quantities of a kind have as much in common as they are alike."""
    between: dict[str, dict[tuple[str, str], tuple[float, int]]] = {}
    for point in points:
        if len(point.runs) > 1:
            for quantity in point.quantities():
                logs = np.log(np.maximum(point.observations(quantity), NS))
                place = point.name, quantity
                between.setdefault(kind_of(quantity), {})[place] = float(np.var(logs, ddof=1)), len(logs) - 1
    return {
        place: math.sqrt(variance)
        for of_kind in between.values()
        for place, variance in zip(of_kind, moderated(list(of_kind.values())), strict=True)
    }


def noise_basis(points: list[Point]) -> dict[str, str]:
    """What the noise of each kind rests on: BETWEEN_RUNS, WITHIN_RUNS or ASSUMED."""
    return {kind: basis for kind, (_, basis) in _noise(points).items()}


def noise_basis_of(fitted: FittedSection) -> dict[str, str]:
    """The same of the section `fitted` of a platform file; files that don't state it have an assumption where the noise
    is one of the two assumed values."""
    stated = fitted.get("noise_basis") or {}
    return {
        kind: stated.get(kind) or (ASSUMED if value in (UNREPEATED, UNREPEATED_IMPORTED) else BETWEEN_RUNS)
        for kind, value in fitted["noise"].items()
    }


def _noise(points: list[Point]) -> dict[str, tuple[float, str]]:
    """By kind, standard deviation of the logarithm and its basis: between runs of one point, pooled over points by
    their degrees of freedom; where no point was run twice, between the iterations within a run that an imported tool
    states; else an assumption."""
    assumed = UNREPEATED_IMPORTED if any(point.first.imported for point in points) else UNREPEATED
    found = {kind: (assumed, ASSUMED) for kind in NOISE_KINDS}
    within = [one for point in points for run in point.runs if (one := _rate_within(run)) is not None]
    if within:
        found["rate"] = _pooled(within), WITHIN_RUNS
    between: dict[str, list[tuple[float, int]]] = {}
    for point in points:
        if len(point.runs) > 1:
            for quantity in point.quantities():
                logs = np.log(np.maximum(point.observations(quantity), NS))
                between.setdefault(kind_of(quantity), []).append((float(np.var(logs, ddof=1)), len(logs) - 1))
    return found | {
        kind: (_pooled(variances), BETWEEN_RUNS) for kind, variances in between.items() if kind in NOISE_KINDS
    }


def _pooled(variances: list[tuple[float, int]]) -> float:
    """Standard deviation from variances with their degrees of freedom."""
    return math.sqrt(
        sum(variance * degrees for variance, degrees in variances) / sum(degrees for _, degrees in variances)
    )


def _rate_within(run: Run) -> tuple[float, int] | None:
    """Variance of the logarithm of the rate between a tool's iterations within an imported run, with its degrees of
    freedom: from the iterations, or from the mean and standard deviation that stand for them. None where the tool
    states neither."""
    if not run.imported:
        return None
    rates = [phase.rate for phase in run.phases if phase.rate]
    if len(rates) > 1:
        return float(np.var(np.log(rates), ddof=1)), len(rates) - 1
    reported = run.phases[0].rate_over_repeats
    if reported and (reported.repeats or 0) > 1 and reported.standard_deviation is not None and reported.mean:
        return (reported.standard_deviation / reported.mean) ** 2, int(reported.repeats or 0) - 1
    return None


def levels_off(points: list[Point]) -> bool:
    """Whether throughput without think times grows by less than half of the last step of scale."""
    rates: dict[float, list[float]] = {}
    for point in points:
        if point.waiting_factor == 0:
            rates.setdefault(point.ranks, []).append(math.log(point.value("rate")))
    if len(rates) < 2:
        return False
    before, last = sorted(rates)[-2:]
    return float(np.mean(rates[last]) - np.mean(rates[before])) < LEVELS_OFF * math.log(last / before)


def link_bytes(points: list[Point], called_back_from: str = "") -> LinkBytes | None:
    """What operations moved over the links of their own node, each node having as many of them; None where no client
    node was observed. On one node nothing else crosses links. With more of them ranks also wait for each other and
    gather results, which the first node has most of.

    @param called_back_from whose objects are called back from it, "node" or "rank": what the only one of these moves is
    not what each of several does; "" where nothing is"""
    seen = [
        (point, moved)
        for point in sorted(points, key=lambda p: p.ranks)
        if point.waiting_factor == 0 and (moved := _moved(point)) is not None
    ]
    if not seen:
        return None
    (most, largest) = seen[-1]
    lone = {"": 0, "rank": 1, "node": math.inf}[called_back_from]  # ranks on one node that are a client alone
    alone = [moved for point, moved in seen if point.first.placement[0] == 1 and point.ranks > lone]
    own = alone[-1] if alone else largest
    found: LinkBytes = {"sent": own["sent"], "received": own["received"], "ranks": own["ranks"]}
    if not alone:
        found["nodes"] = most.first.placement[0]
    sent, received = max(found["sent"], largest["sent"]), max(found["received"], largest["received"])
    if (sent, received) != (found["sent"], found["received"]):
        found["at_most"] = {"sent": sent, "received": received, "ranks": largest["ranks"]}
    return found


def _moved(point: Point) -> MovedAtMost | None:
    """Bytes of an operation over the links of its node; None where no client node was observed."""
    moved: dict[str, list[float]] = {"sent": [], "received": []}
    for run in point.runs:
        hosts = [str(host) for host in (run.record.environment or {}).get("hosts") or []]
        for (host, way), each in bytes_over_links(run.path, run.phase).items():
            if host in hosts:
                moved[way].append(each * len(hosts))
    if not all(moved.values()):
        return None
    return {"sent": float(np.mean(moved["sent"])), "received": float(np.mean(moved["received"])), "ranks": point.ranks}


def counted_threads(points: list[Point]) -> Threads | None:
    """What counters of the server, joined to the runs without think times, say of its threads; None where too few
    have them."""
    found = []
    for point in points:
        nodes = point.first.record.placement.nodes or 1
        known = [seen for run in point.runs if (seen := served(run.path, run.phase, nodes)) is not None]
        if point.waiting_factor > 0 or point.think_time > 0 or not known:
            continue
        waits = [one.wait for one in known if one.wait is not None]
        seconds, wait = float(np.mean([one.seconds for one in known])), float(np.mean(waits)) if waits else None
        network = any(one.network for one in known)
        found.append(Served(point.ranks, point.value("rate"), seconds, wait, network))
    return threads_of(found)


def observed_demands(points: list[Point]) -> dict[str, Observed]:
    """What operations took of the resources that were observed beside the measurements, at the largest scale where they
    were: by resource `servers`, `demand` (seconds an operation), `utilisation` there, `ranks`, `nodes`, and whether the
    resource is one of the client nodes' (`per_node`)."""
    found: dict[str, Observed] = {}
    for point in sorted(points, key=lambda p: p.ranks):
        if point.waiting_factor > 0:
            continue
        hosts = {str(host) for run in point.runs for host in (run.record.environment or {}).get("hosts") or []}
        runs = [bounds(run.path, run.phase) for run in point.runs]
        for name in dict.fromkeys(name for run in runs for name in run):
            known = [run[name] for run in runs if name in run]
            if known[0]["kind"] == "process":
                continue  # a process may use all of a machine's cores: they are the resource
            found[name] = {
                "servers": known[-1]["servers"],
                "demand": float(np.mean([one["demand"] for one in known])),
                "utilisation": float(np.mean([one["utilisation"] for one in known])),
                "ranks": point.ranks,
                "nodes": point.first.placement[0],
                "per_node": name.partition(" ")[0] in hosts,
            }
    return found

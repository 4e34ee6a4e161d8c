# SPDX-License-Identifier: Apache-2.0
"""What the measurements themselves show, before any model: ageing, drift, uneven nodes, time that is nobody's, ramps,
bands, others' work, coarse clocks. Each finding is a test with a stated false-alarm rate, or a share that is large
enough to matter, or both."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np
from scipy.special import fdtrc, gammaincinv, stdtrit

from iocast.ground.arrays import Array, log, means, numbers, rows as rows_of, sums
from iocast.records.run import Phase
from iocast.runs.latency_log import NS, Latencies
from iocast.runs.run_directory import Point, Run
from iocast.wording.text import quantity
from iocast.records.fitted import FindingDocument

FALSE_ALARM = 0.01
"""False-alarm rate of each test; tests over several points share it (Bonferroni)."""
MATTERS = 0.1
"""Share of the throughput, or of the time, below which a finding is none."""
UNREPEATED_PHASES = 0.05
"""Standard deviation of the logarithm of two phases' ratio where no run was repeated."""
SAME = 1e-18
"""Sum of squared logarithms that is no difference."""
UNEVEN = 0.75
"""Balance of a phase that was run once, below which its ranks ended unevenly."""
BAND_SHARE, BAND_APART, BAND_VALLEY = 0.02, 2.5, 0.4
"""A band of latencies holds at least this share, lies at least this factor from its neighbour, and the valley between
is this much lower than the lesser."""


@dataclass(frozen=True)
class Finding:
    kind: str
    text: str
    """A finished sentence or two: what, where, and what it means for a forecast."""
    numbers: dict[str, Any] = field(default_factory=dict)

    def document(self) -> FindingDocument:
        """Of plain numbers, as files hold them."""
        found: FindingDocument = json.loads(json.dumps(asdict(self), default=float))
        return found


def findings(points: list[Point]) -> list[Finding]:
    """Everything that these measurements show; `points` as they are calibrated."""
    found = [
        ageing(points),
        drift(points),
        *nodes(points),
        lone_ranks(points),
        outside(points),
        ramps(points),
        others(points),
        *bands(points),
        clock(points),
        bound(points),
    ]
    return [one for one in found if one is not None]


def ageing(points: list[Point]) -> Finding | None:
    """Whether the system slows down, or speeds up, as it is used: the phase's last repeat within a run against its
    first. Student's t over the runs of a point, with the variance between runs pooled over points."""
    every = [
        (
            p,
            [
                math.log(_rate(r.phases[-1]) / _rate(r.phases[0]))
                for r in p.runs
                if len(r.phases) > 1 and _rates_known(r)
            ],
        )
        for p in points
    ]
    ratios = [(p, logs) for p, logs in every if logs]
    degrees = sum(len(logs) - 1 for _, logs in ratios)
    pooled = sum(float(np.var(logs)) * len(logs) for _, logs in ratios) / degrees if degrees else UNREPEATED_PHASES**2
    critical = float(stdtrit(degrees or 1000, 1 - FALSE_ALARM / 2 / max(1, len(ratios))))
    shown = [
        (mean, p)
        for p, logs in ratios
        if abs(mean := float(np.mean(logs)))
        > max(critical * math.sqrt(max(pooled, 1e-8) / len(logs)), -math.log(1 - MATTERS))
    ]
    if not shown:
        return None
    change, worst = max(shown, key=lambda one: abs(one[0]))
    slower = change < 0
    return Finding(
        "ageing",
        f"Ageing: at {worst.name} the throughput {'falls' if slower else 'rises'} by {_share(change)} from the first "
        f"to the last of a run's {len(worst.first.phases)} phases. The system gets {'slower' if slower else 'faster'} "
        "as it is used, which no model here follows: forecasts are for the age that was measured, and their intervals "
        "allow for as much again.",
        {"point": worst.name, "ranks": worst.ranks, "log_ratio": change},
    )


def drift(points: list[Point]) -> Finding | None:
    """Whether the system changed while the campaign went on: the last visit of each point against its first (t-test
    over points)."""
    from scipy.stats import ttest_1samp  # half a second to import, which a forecast need not wait for

    logs = []
    for point in points:
        visits = sorted(
            (str(run.record.started), run.rate) for run in point.runs if run.record.started and not run.imported
        )
        if len(visits) > 1:
            logs.append(math.log(visits[-1][1] / visits[0][1]))
    if len(logs) < 3 or abs(mean := float(np.mean(logs))) < -math.log(1 - MATTERS):
        return None
    if float(np.ptp(logs)) > 0 and ttest_1samp(logs, 0.0).pvalue > FALSE_ALARM:
        return None
    return Finding(
        "drift",
        f"Drift: over the campaign the throughput {'fell' if mean < 0 else 'rose'} by {_share(mean)} from the first "
        "visit of each point to the last. Something changed meanwhile (others' load, a file system that fills); "
        "measure at another time as well before the forecast is believed.",
        {"log_ratio": mean},
    )


def nodes(points: list[Point]) -> list[Finding]:
    """Nodes that are slower or faster than the others in run after run. What differs from run to run, as a batch
    system's other jobs do, is noise."""
    rows: list[dict[str, float]] = []
    deviations: dict[str, list[float]] = defaultdict(list)
    for run in (run for point in points for run in point.runs):
        times = _times_by_node(run)
        if times is None:
            continue
        row = dict(zip(_hosts(run, len(times)), (float(np.mean(one)) for one in times), strict=True))
        rows.append(row)
        for host, value in row.items():
            deviations[host].append(value - float(np.median(list(row.values()))))
    log_ratios = {host: float(np.mean(logs)) for host, logs in deviations.items()}
    if not rows or _chance_of_columns(rows) >= FALSE_ALARM:
        return []
    host = max(log_ratios, key=lambda h: abs(log_ratios[h]))
    if abs(log_ratios[host]) < MATTERS / 2:
        return []
    same = sum(value * log_ratios[host] > 0 for value in deviations[host])
    text = (
        f"Nodes differ: ranks on {host} took {_longer(log_ratios[host])} than those of the node in the middle ({same} "
        f"of {len(deviations[host])} runs, means of nodes against what they differ by from run to run). A forecast "
        "takes all nodes for alike but for speed_sigma."
    )
    numbers = {"node": host, "log_ratio": log_ratios[host], "runs": same, "tested": len(rows), "by_node": log_ratios}
    return [Finding("nodes", text, numbers)]


def _chance_of_columns(rows: list[dict[str, float]]) -> float:
    """The p-value of means that differ between columns, beside effects of the rows (F-test of an additive model without
    balance). The unit is a cell: what differs between cells of a column is noise. 1 where nothing can be tested.

    rows: of each run a value by node or rank."""
    names = sorted({name for row in rows for name in row})
    cells = [(i, names.index(name), value) for i, row in enumerate(rows) for name, value in row.items()]
    values = numbers(value for _, _, value in cells)
    design = np.zeros((len(cells), len(rows) + len(names)))
    for k, (i, j, _) in enumerate(cells):
        design[k, i] = design[k, len(rows) + j] = 1.0

    def left(columns: Array) -> tuple[float, int]:
        fit, _, rank, _ = np.linalg.lstsq(columns, values, rcond=None)
        return float(np.sum(np.square(values - columns @ fit))), int(rank)

    (without, of_rows), (within, of_all) = left(design[:, : len(rows)]), left(design)
    between, freedom = of_all - of_rows, len(cells) - of_all
    if between < 1 or freedom < 1 or without - within < SAME:
        return 1.0
    return float(fdtrc(between, freedom, (without - within) / between / max(within / freedom, SAME)))


def _longer(log_ratio: float) -> str:
    return f"{100 * math.expm1(log_ratio):.0f} % longer" if log_ratio > 0 else f"{_share(log_ratio)} less time"


def lone_ranks(points: list[Point]) -> Finding | None:
    """Ranks that are alone on their nodes and slower or faster than the others in run after run of a point. A point
    that was run once and ended unevenly is reported, too, since nothing can be tested there."""
    tested: list[tuple[float, Point, dict[str, float]]] = []
    once: list[tuple[float, Point]] = []
    for point in points:
        count, per_node = point.first.placement
        if count < 2 or per_node != 1:
            continue
        rows = [row for run in point.runs if (row := _times_of_lone_ranks(run, count))]
        if len(rows) > 1:
            off = {
                name: float(np.mean([row[name] - np.median(list(row.values())) for row in rows])) for name in rows[0]
            }
            tested.append((_chance_of_columns(rows), point, off))
        elif len(point.runs) == 1:
            balance = [p.balance for p in point.first.phases if p.balance is not None]
            once += [(float(np.mean(balance)), point)] if balance else []
    for chance, point, off in sorted(tested, key=lambda one: one[0]):
        name = max(off, key=lambda one: abs(off[one]))
        if chance < FALSE_ALARM / len(tested) and abs(off[name]) > MATTERS / 2:
            host = _hosts(point.first, len(off))[int(name)]
            return Finding(
                "nodes",
                f"At {point.name} the rank on {host} took {_longer(off[name])} than the one in the middle, in "
                f"{len(point.runs)} runs. With one rank a node nothing shows whether that is the node or the rank's "
                "share of the work; measure two ranks or more on each. A forecast takes all nodes for alike but for "
                "speed_sigma.",
                {"point": point.name, "node": host, "log_ratio": off[name]},
            )
    evenness, point = min(once, key=lambda one: one[0], default=(1.0, points[0]))
    if tested or evenness > UNEVEN:
        return None
    return Finding(
        "nodes",
        f"At {point.name} the first rank was done after {100 * evenness:.0f} % of the phase. With one rank a node and "
        "one run, nothing tells a slow node from chance; repeat the run, or measure two ranks or more a node.",
        {"point": point.name, "balance": evenness},
    )


def outside(points: list[Point]) -> Finding | None:
    """Ranks' time that was neither in operations nor in thinking: where the identity Q = N / (1 + T) doesn't hold."""
    shares = [
        (float(np.mean(known)), p)
        for p in points
        if (known := [s for run in p.runs if (s := _outside(run)) is not None])
    ]
    share, worst = max(shares, key=lambda one: one[0], default=(0.0, points[0]))
    if share < MATTERS:
        return None
    cpus = (worst.first.record.environment or {}).get("cpus_per_node")
    crowded = cpus and worst.first.placement[1] > cpus
    return Finding(
        "outside",
        f"At {worst.name} ranks spent {100 * share:.0f} % of their time neither in an operation nor thinking: the "
        "benchmark's own work"
        + (f", and waiting for one of {cpus} processors" if crowded else "")
        + ". So fewer requests were under way than N / (1 + T).",
        {"point": worst.name, "share": share},
    )


def ramps(points: list[Point]) -> Finding | None:
    """How much of the throughput start-up and stragglers take: that of the whole phase against its steady part (MSER-5
    to the first rank's end)."""
    losses = []
    for point in points:
        logs = [
            math.log(_rate(p) / p.steady_state.rate)
            for run in point.runs
            for p in run.phases
            if p.steady_state and _rate(p) > 0
        ]
        if logs:
            losses.append((float(np.mean(logs)), point))
    loss, worst = min(losses, key=lambda one: one[0], default=(0.0, points[0]))
    if loss > math.log(1 - MATTERS):
        return None
    phases = [p for run in worst.runs for p in run.phases]
    balance = [p.balance for p in phases if p.balance is not None]
    begin = [p.steady_state.begin / p.seconds for p in phases if p.steady_state and p.seconds]
    return Finding(
        "ramps",
        f"At {worst.name} the throughput of the whole phase is {_share(loss)} below that of its steady part: it starts "
        f"{100 * np.mean(begin):.0f} % into the phase, and the first rank is done after "
        f"{100 * np.mean(balance or [1.0]):.0f} %. Throughput counts until the last answer, here and in a forecast; "
        "longer phases show more of the steady rate.",
        {"point": worst.name, "log_ratio": loss},
    )


def others(points: list[Point]) -> Finding | None:
    """Whether a lone rank's pace changes more from moment to moment than its own latencies explain: a chi-square test
    of the operations in each interval of the time line, whose variance is that of a renewal process."""
    for point in (p for p in points if p.ranks == 1 and p.waiting_factor == 0):
        known = []
        for run in point.runs:
            for phase in run.phases:
                lines = [line["count"] for line in phase.series.values()]
                every = numbers(sum(n or 0.0 for n in bins) for bins in zip_longest(*lines, fillvalue=0))
                counts = every[1:-1]  # the first and the last are cut
                # Bins, for 50 operations in each.
                together = max(1, math.ceil(50 / max(float(np.mean(counts)), 1e-9))) if len(counts) else 1
                counts = sums(counts[: len(counts) // together * together].reshape(-1, together), 1)
                if len(counts) >= 20:
                    known.append((counts, float(np.mean(counts)), _variation(run)))
        if not known:
            continue
        degrees = sum(len(counts) - 1 for counts, _, _ in known)
        statistic = sum(
            float(np.sum(np.square(counts - mean))) / (mean * max(0.05, variation)) for counts, mean, variation in known
        )
        swing = float(np.median([float(np.std(counts)) / mean for counts, mean, _ in known]))
        if swing > MATTERS and statistic > 4 * float(gammaincinv(degrees / 2, 1 - FALSE_ALARM)):
            return Finding(
                "others",
                f"A lone rank's pace swings by {100 * swing:.0f} % from moment to moment, "
                f"{math.sqrt(statistic / degrees):.1f} times what its own latencies explain: somebody else works on "
                "this system, or it stalls. The work of others that calibration finds is that of the time of the "
                "measurement.",
                {"swing": swing, "dispersion": statistic / degrees},
            )
    return None


def bands(points: list[Point]) -> list[Finding]:
    """Operations whose latencies at the smallest scale fall into several bands: ways through the system that the
    average hides."""
    lone = next((p for p in points if p.ranks == 1 and p.waiting_factor == 0), None)
    if lone is None:
        return []
    found, logged = [], set(lone.first.tags())
    for op in lone.first.operations:
        if op in logged and len(parts := latency_bands(lone.first.latencies(op))) > 1:
            bands = ", ".join(f"{quantity('', value)} ({100 * share:.0f} %)" for value, share in parts)
            found.append(
                Finding(
                    "bands",
                    f"Latencies of {op} at N=1 lie in bands: {bands}.",
                    {"operation": op, "bands": [list(one) for one in parts]},
                )
            )
    return found


def clock(points: list[Point]) -> Finding | None:
    """A clock too coarse for what it measures."""
    for run in (run for point in points for run in point.runs):
        resolution = (run.record.environment or {}).get("clock_resolution_ns")
        medians = {op: m for op in run.operations if (m := run.quantity(op, "q50")) is not None}
        if resolution and medians and resolution * NS > MATTERS * min(medians.values()):
            op = min(medians, key=lambda name: medians[name])
            return Finding(
                "clock",
                f"The clock of the run '{run.path.name}' tells {resolution:.0f} ns apart, and half of its {op} took "
                f"less than {quantity('', medians[op])}: quantiles of such operations are steps of the clock.",
                {"resolution_ns": resolution, "operation": op},
            )
    return None


def bound(points: list[Point]) -> Finding | None:
    """Ranks that were bound to fewer CPUs than they and their node have."""
    crowded = []
    for point in points:
        for run in point.runs:
            environment = run.record.environment or {}
            bindings = environment.get("bindings") or []
            cpus = {cpu for text in bindings for cpu in _cpus(str(text))}
            wanted = min(len(bindings), environment.get("cpus_per_node") or 0)
            if 0 < len(cpus) < wanted:
                crowded.append((len(cpus) / wanted, point, len(bindings), len(cpus), environment["cpus_per_node"]))
    if not crowded:
        return None
    _, point, ranks, have, of = min(crowded, key=lambda one: one[0])
    return Finding(
        "bound",
        f"Bound ranks: at {point.name} the {ranks} ranks of a node are bound to {have} of its {of} CPUs. They wait for "
        "each other there, and latencies contain that: a forecast is of ranks that are bound as these. Start them with "
        "mpirun --bind-to none, or srun --cpu-bind=none.",
        {"point": point.name, "ranks": ranks, "cpus": have, "cpus_per_node": of},
    )


def _cpus(text: str) -> set[int]:
    """Numbers of a list of CPUs as run.json has it: "0-3,8"."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def latency_bands(latencies: Latencies) -> list[tuple[float, float]]:
    """(median, share) of each band of a distribution, by the valleys of its smoothed density over the logarithm."""
    from scipy.ndimage import gaussian_filter1d
    from scipy.signal import find_peaks

    step, smooth = 0.02, 0.05  # decades
    _, highest, counts = latencies.recorded()
    logs: Array = np.log10(np.maximum(highest, 1))
    if not logs.size or float(np.ptp(logs)) < 2 * step:
        return []
    edges: Array = np.arange(np.min(logs) - 10 * smooth, np.max(logs) + 10 * smooth, step)
    weights = counts.astype(np.float64)
    density: Array = gaussian_filter1d(np.histogram(logs, edges, weights=weights)[0], smooth / step, mode="constant")
    peaks = [int(peak) for peak in find_peaks(density)[0]]
    total = float(np.sum(counts))

    def split(kept: list[int]) -> list[tuple[float, float, float]]:
        """Bands between the valleys of these peaks: edges and share."""
        valleys = [a + int(np.argmin(density[a : b + 1])) for a, b in zip(kept, kept[1:], strict=False)]
        borders = [-math.inf, *(float(edges[v]) + step / 2 for v in valleys), math.inf]
        return [
            (low, high, float(np.sum(weights[(logs > low) & (logs <= high)])) / total)
            for low, high in zip(borders, borders[1:], strict=False)
        ]

    while len(peaks) > 1:  # the least band that is none joins its neighbour
        parts = split(peaks)
        bad = []
        for n, (a, b) in enumerate(zip(peaks, peaks[1:], strict=False)):
            lesser = n if density.item(a) < density.item(b) else n + 1
            shallow = np.min(density[a : b + 1]) > BAND_VALLEY * min(density.item(a), density.item(b))
            if (
                shallow
                or (b - a) * step < math.log10(BAND_APART)
                or parts[lesser][2] < BAND_SHARE
                or parts[lesser][2] * total < 100
            ):
                bad.append((density.item(peaks[lesser]), lesser))
        if not bad:
            break
        del peaks[min(bad)[1]]
    if len(peaks) < 2:
        return []
    result = []
    for low, high, share in split(peaks):
        inside = (logs > low) & (logs <= high)
        middle = int(np.searchsorted(np.cumsum(weights[inside]), np.sum(weights[inside]) / 2))
        result.append((math.pow(10, logs[inside].item(middle)) * NS, share))
    return result


def _rate(phase: Phase) -> float:
    return phase.rate or 0.0


def _rates_known(run: Run) -> bool:
    return all(_rate(phase) > 0 for phase in run.phases)


def _share(log_ratio: float) -> str:
    return f"{100 * abs(math.expm1(log_ratio)):.0f} %"


def _times_of_lone_ranks(run: Run, count: int) -> dict[str, float] | None:
    """The mean logarithm of each rank's time over the run's phases, by its number."""
    logs = _logs_of_ranks(run, count)
    return None if logs is None else {str(rank): float(one) for rank, one in enumerate(logs)}


def _logs_of_ranks(run: Run, count: int) -> Array | None:
    """The mean logarithm of each rank's time; None where a phase lacks one of them."""
    seconds = [own for phase in run.phases if (own := phase.rank_seconds) and len(own) == count and min(own) > 0]
    return means(log(seconds)) if len(seconds) == len(run.phases) else None


def _times_by_node(run: Run) -> list[Array] | None:
    """Logarithms of the ranks' times by node; None without several nodes of several ranks each."""
    count, per_node = run.record.placement.nodes or 1, run.record.placement.ranks_per_node or 1
    if count < 2 or per_node < 2 or per_node != int(per_node):
        return None
    logs = _logs_of_ranks(run, count * int(per_node))
    return None if logs is None or float(np.ptp(logs)) <= 1e-9 else rows_of(logs.reshape(count, -1))


def _hosts(run: Run, count: int) -> list[str]:
    named = [str(host) for host in (run.record.environment or {}).get("hosts") or []]
    return named if len(named) == count else [f"node {n}" for n in range(count)]


def _outside(run: Run) -> float | None:
    """Share of the ranks' time that was neither in an operation nor in a think time."""
    total = spent = 0.0
    for phase in run.phases:
        seconds = phase.rank_seconds
        if not seconds or phase.responding_seconds is None:
            return None
        thought = phase.think_actual_seconds
        if thought is None and _may_have_thought(run):
            return None
        total += float(np.sum(seconds))
        spent += phase.responding_seconds + (thought or 0.0)
    return max(0.0, 1 - spent / total) if total > 0 else None


def _may_have_thought(run: Run) -> bool:
    """Whether ranks may have thought for a time that was not recorded: where they were to, and in imported runs that
    don't say that they were not."""
    return run.waiting_factor > 0 or run.think_time > 0 or run.imported and "waiting_factor" not in run.parameters


def _variation(run: Run) -> float:
    """Squared coefficient of variation of all operations' latencies."""
    known = [run.latencies(op) for op in run.operations if op in run.tags()]
    count = sum(one.count for one in known)
    if not count:
        return 1.0
    means = [(one.count, *one.moments()) for one in known]
    mean = sum(n * m for n, m, _ in means) / count
    square = sum(n * (s**2 + m**2) for n, m, s in means) / count
    return float(square / mean**2 - 1)

# SPDX-License-Identifier: Apache-2.0
"""Which changes chance explains: by the spread of runs, of repeats, or of a run's own time line."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from iocast.calibrate.reading import UNREPEATED
from iocast.ground.arrays import Array, log, means, numbers, rows, sums, variances
from iocast.changes import Change, LEAST_REPEATS, Method, Side, TELLS_NOTHING, logs
from iocast.records.quantities import ACCELERATORS
from iocast.records.run import Phase

LEAST_RUNS = 4
"""On a side, for a permutation test: with three, even the clearest change has a p-value of 0.1."""
BETWEEN_RUNS = UNREPEATED
"""Assumed standard deviation of the logarithm between runs of an unchanged system, where one run a side can't tell."""
MAX_ARRANGEMENTS = 12_870  # of 8 and 8 repeats; beyond, that many are drawn
LEAST_INTERVALS = 20
RESAMPLES = 4000
QUANTITIES = ("mean", "q50", "q75", "q95", "q99")
LEAST_BEYOND = 10
"""Minimum number of independent operations beyond a quantile for a statement on it."""
MANY = 1e6
"""Degrees of freedom that are as good as any number of them."""
RESOLUTION = 5e-4  # log standard deviation that the histogram's buckets deserve


def choose(a: Side, b: Side, alpha: float, seed: int, thresholds: Collection[str] = ()) -> Method:
    """The changes by the method that these runs allow; the quantities of thresholds are corrected for each other, and
    the others among themselves."""
    known = quantities(a, b)
    families = [
        family
        for judged in (True, False)
        if (family := [i for i, quantity in enumerate(known) if (quantity in thresholds) is judged])
    ]
    n, m = len(a.runs), len(b.runs)
    if min(n, m) >= LEAST_RUNS:
        return _by_runs(a, b, known, families, alpha, seed)
    simulated = a.simulated and b.simulated
    if max(n, m) > 1 and not simulated:
        return _by_few_runs(a, b, known, families, alpha)
    between = BETWEEN_RUNS * math.sqrt(sum(not side.simulated for side in (a, b)))
    if all(len(_intervals(side)) >= LEAST_INTERVALS for side in (a, b)):
        return _by_intervals(a, b, known, families, alpha, seed, between)
    if a.repeated and b.repeated:
        return _by_repeats(a, b, known, families, alpha, between)
    why = (
        f"one run a side, with fewer than {LEAST_REPEATS} repeats of the same operations and no time line of "
        f"{LEAST_INTERVALS} intervals"
    )
    changes = []
    for quantity in known:
        one, other = a.pooled(quantity), b.pooled(quantity)
        changes.append(Change(quantity, one, other, ratio=other / one if one and other else None, why_not=why))
    sentence = (
        f"No test: there is {why}. The noise within the runs and between them can't be known, and ratios alone can't "
        "be distinguished from noise."
    )
    return Method("none", sentence, changes)


def quantities(a: Side, b: Side) -> list[str]:
    operations = [tag for phase in a.phases for tag in phase.operation_names]
    names = ["rate", *(f"{op}.{which}" for op in dict.fromkeys(operations) for which in QUANTITIES)]
    if len({phase.rate_unit for phase in (*a.phases, *b.phases)}) > 1:
        names.remove("rate")  # operations of one side, bytes of the other (`_differences`)
    names += ACCELERATORS
    return [n for n in names if a.tells(n) and b.tells(n)]


def _by_runs(a: Side, b: Side, known: list[str], families: list[list[int]], alpha: float, seed: int) -> Method:
    n, m = len(a.runs), len(b.runs)
    logs: Array = np.array([np.log([*a.known(q), *b.known(q)]) for q in known])  # quantity x run
    arrangements, drawn = _arrangements(n, m, seed)
    statistics: Array = np.abs(_welch(logs, arrangements, n))  # quantity x arrangement; the first is the observed one
    changes = []
    for i, quantity in enumerate(known):
        x, y = logs[i, :n], logs[i, n:]
        spread, freedom = _welch_spread(x, y)
        change = Change(quantity, math.exp(np.mean(x)), math.exp(np.mean(y)), spread=spread, freedom=freedom)
        change.ratio = math.exp(np.mean(y) - np.mean(x))
        change.p = float(np.mean(statistics[i, :] >= statistics.item(i, 0) * (1 - 1e-9)))
        change.cliffs_delta = float(np.mean(np.sign(y[:, None] - x[None, :])))
        changes.append(change)
    for family in families:
        for i, adjusted in zip(family, _step_down(statistics[family, :]), strict=True):
            changes[i].adjusted = adjusted
        left = [i for i in family if (changes[i].adjusted or 0.0) >= alpha]
        # The largest value that at least alpha of the arrangements reach: what was not rejected reaches no more.
        rank = -math.ceil(alpha * len(arrangements))
        critical = np.sort(np.maximum.reduce(statistics[left, :])).item(rank) if left else None
        for i in family:
            change = changes[i]
            factor = float(stdtrit(change.freedom, 1 - alpha / 2 / len(family))) if critical is None else critical
            change.set_interval(factor * change.spread, alpha)
    how = f"{len(arrangements)} random arrangements" if drawn else f"all {len(arrangements)} arrangements"
    sentence = (
        f"Runs are compared ({n} and {m}): permutation test over {how}, Westfall-Young step-down over "
        f"{_sizes(families)} quantities; intervals of the same correction."
    )
    return Method("runs", sentence, changes)


def _sizes(families: list[list[int]]) -> str:
    """How many quantities are corrected for each other: those of thresholds, and the others."""
    return " and ".join(str(len(family)) for family in families)


def _by_few_runs(a: Side, b: Side, known: list[str], families: list[list[int]], alpha: float) -> Method:
    """Student's t with the variance between runs pooled over both sides: Welch's would have a degree of freedom, or
    none."""
    n, m = len(a.runs), len(b.runs)
    changes, smallest = [], 0.0
    for quantity in known:
        x, y = log(a.known(quantity)), log(b.known(quantity))
        freedom = n + m - 2
        variance = (float(np.sum((x - np.mean(x)) ** 2)) + float(np.sum((y - np.mean(y)) ** 2))) / freedom
        spread = math.sqrt((variance + RESOLUTION**2) * (1 / n + 1 / m))
        changes.append(_tested(_change(quantity, x, y), float(np.mean(y) - np.mean(x)), spread, freedom))
        if quantity == "rate":
            others = next(len(family) for family in families if known.index(quantity) in family)
            smallest = math.expm1(float(stdtrit(freedom, 1 - alpha / 2 / others)) * spread)
    _holm(changes, families, alpha)
    least = ""
    if 1 + smallest > TELLS_NOTHING:
        least = " No change of the rate can be distinguished from noise this way."
    elif smallest:
        factor = f"{1 + smallest:.3g}"
        least = f" A rate that changes by less than a factor of {factor} can't be distinguished from noise this way."
    sentence = (
        f"Runs are compared ({n} and {m}): Student's t on logarithms with {n + m - 2} degrees of freedom, Holm's "
        f"correction over {_sizes(families)} quantities.{least} {LEAST_RUNS} runs a side and more tell smaller changes."
    )
    return Method("few runs", sentence, changes)


def _change(quantity: str, x: Array, y: Array) -> Change:
    """Between the geometric means of both sides, given as logarithms."""
    return Change(quantity, math.exp(np.mean(x)), math.exp(np.mean(y)))


def _tested(change: Change, difference: float, spread: float, freedom: float) -> Change:
    """The change with Student's p-value of a difference of logarithms."""
    change.ratio = math.exp(difference)
    change.p = float(2 * stdtr(freedom, -abs(difference) / spread))
    change.spread, change.freedom = spread, freedom
    return change


def _with_between(variance: float, freedom: float, between: float) -> tuple[float, float]:
    """Standard deviation of a difference with that between the two runs added, and its degrees of freedom
    (Satterthwaite): an assumption has no end of them."""
    total = variance + between**2 + RESOLUTION**2
    return math.sqrt(total), min(freedom * (total / variance) ** 2, MANY) if variance > 0 else MANY


def _unknown(between: float) -> str:
    """What one run a side can't tell."""
    if not between:
        return "Simulated runs differ by their seeds alone, as much as the noise within them says."
    return (
        "One run a side: by how much two runs of an unchanged system differ (other users, where the data came to lie) "
        f"can't be known from them. Assumed: a standard deviation of {100 * BETWEEN_RUNS:.0f} %. Measure each side at "
        f"least {LEAST_RUNS} times to know."
    )


def _by_repeats(a: Side, b: Side, known: list[str], families: list[list[int]], alpha: float, between: float) -> Method:
    changes = []
    for quantity in known:
        x, y = logs(a.phases, quantity), logs(b.phases, quantity)
        change, difference = _change(quantity, x, y), float(np.mean(y) - np.mean(x))
        if min(len(x), len(y)) < 2:
            change.ratio, change.why_not = math.exp(difference), "a single repeat tells it"
        else:
            variance, own = _of_difference(x, y)
            _tested(change, difference, *_with_between(variance, own, between))
        changes.append(change)
    _holm(changes, families, alpha)
    sentence = (
        f"Repeats within the runs are compared ({len(a.phases)} and {len(b.phases)}): Welch's t on logarithms, Holm's "
        f"correction. {_unknown(between)}"
    )
    return Method("repeats", sentence, changes, BETWEEN_RUNS if between else None)


def _arrangements(n: int, m: int, seed: int) -> tuple[NDArray[np.intp], bool]:
    """Rows of indices whose first n are side a; the observed one first. All of them, or a sample."""
    total = math.comb(n + m, n)
    if total <= MAX_ARRANGEMENTS:
        rows = []
        for chosen in itertools.combinations(range(n + m), n):
            rest = [i for i in range(n + m) if i not in chosen]
            rows.append([*chosen, *rest])
        return np.array(rows), False
    generator = np.random.default_rng(seed)
    return np.array([np.arange(n + m), *(generator.permutation(n + m) for _ in range(MAX_ARRANGEMENTS - 1))]), True


def _welch(logs: Array, arrangements: NDArray[np.intp], n: int) -> Array:
    """Welch's t of every row of `logs` in every arrangement, whose first n are side a."""
    result = np.empty((len(logs), len(arrangements)))
    for i, row in enumerate(rows(logs)):
        shuffled = row[arrangements]
        x, y = shuffled[:, :n], shuffled[:, n:]
        spread = variances(x, axis=1, ddof=1) / n + variances(y, axis=1, ddof=1) / y.shape[1]
        # Repeats that are equal to the last digit would divide by zero; the histogram's resolution is a floor.
        result[i] = (means(y, 1) - means(x, 1)) / np.sqrt(spread + RESOLUTION**2 * (1 / n + 1 / y.shape[1]))
    return result


def _step_down(statistics: Array) -> list[float]:
    """Westfall-Young adjusted p-values: the share of arrangements whose largest statistic, among quantities that are
    not clearer, is at least as large as observed."""
    order = np.argsort(-statistics[:, 0], kind="stable")
    largest = np.maximum.accumulate(statistics[order[::-1]], axis=0)[::-1]
    p = means(largest >= statistics[order, :1] * (1 - 1e-9), axis=1)
    result = np.empty(len(order))
    result[order] = np.maximum.accumulate(p)
    return [*map(float, result)]


def _of_difference(x: Array, y: Array) -> tuple[float, float]:
    """Variance of the difference of means, and its degrees of freedom."""
    vx, vy = float(np.var(x, ddof=1)) / len(x), float(np.var(y, ddof=1)) / len(y)
    return vx + vy, (vx + vy) ** 2 / (vx**2 / (len(x) - 1) + vy**2 / (len(y) - 1)) if vx + vy else MANY


def _welch_spread(x: Array, y: Array) -> tuple[float, float]:
    """Standard deviation of the difference of means, with the histogram's resolution as a floor, and its degrees of
    freedom."""
    variance, freedom = _of_difference(x, y)
    return math.sqrt(variance + RESOLUTION**2 * (1 / len(x) + 1 / len(y))), freedom


def _intervals(side: Side) -> list[tuple[Phase, int]]:
    """(phase, number of interval) of all intervals before the first rank ended; later ones see fewer ranks."""
    found = []
    for phase in side.phases:
        if phase.bin_seconds is None or phase.seconds is None:
            continue
        until = phase.seconds * (phase.balance if phase.balance is not None else 1.0)
        found += [(phase, i) for i in range(int(until / phase.bin_seconds))]
    return found


def _by_intervals(
    a: Side, b: Side, known: list[str], families: list[list[int]], alpha: float, seed: int, between: float
) -> Method:
    samples = {}
    for number, side in enumerate((a, b)):
        samples[number] = _Series(side, np.random.default_rng((seed, number)))
    changes = []
    for quantity in known:
        op, _, which = quantity.rpartition(".")
        of_steps = quantity in ACCELERATORS
        before, after = (None if of_steps else samples[i].log_value(op, which, side) for i, side in enumerate((a, b)))
        if before is None or after is None:
            one, other = a.pooled(quantity), b.pooled(quantity)
            ratio = other / one if one and other else None
            why_not = (
                "a run has one value of it, and no time line"
                if of_steps
                else "none of them ended in the steady part that is compared"
            )
            changes.append(Change(quantity, one, other, ratio=ratio, why_not=why_not))
            continue
        (log_before, deviation_before), (log_after, deviation_after) = before, after
        one, other = math.exp(log_before), math.exp(log_after)
        change = Change(quantity, one, other, ratio=other / one)
        if deviation_before is None or deviation_after is None:
            change.why_not = f"fewer than {LEAST_BEYOND} independent operations lie beyond it"
        else:
            variance = deviation_before**2 + deviation_after**2
            own = max(2, min(samples[i].blocks for i in (0, 1)) - 1)
            _tested(change, math.log(change.ratio or 1.0), *_with_between(variance, own, between))
        changes.append(change)
    _holm(changes, families, alpha)
    sentence = (
        f"Intervals within the runs are compared (blocks of {samples[0].block} and {samples[1].block} intervals): "
        f"block bootstrap for rates and means, order statistics for quantiles, Holm's correction. {_unknown(between)}"
    )
    return Method("intervals", sentence, changes, BETWEEN_RUNS if between else None)


def _holm(changes: list[Change], families: list[list[int]], alpha: float) -> None:
    """Adjusts the p-values of each family, and gives intervals of the same correction."""
    for family in families:
        ordered = sorted((changes[i] for i in family if changes[i].p is not None), key=lambda change: change.p or 0.0)
        largest = 0.0
        for i, change in enumerate(ordered):
            largest = max(largest, min(1.0, (len(ordered) - i) * (change.p or 0.0)))
            change.adjusted = largest
        left = sum((change.adjusted or 0.0) >= alpha for change in ordered) or len(ordered)
        for change in ordered:
            change.set_interval(float(stdtrit(change.freedom, 1 - alpha / 2 / left)) * change.spread, alpha)


class _Series:
    """The intervals of a side, and how much their means would vary if it ran again."""

    def __init__(self, side: Side, generator: np.random.Generator) -> None:
        intervals = _intervals(side)
        self.operations = list(dict.fromkeys(op for phase, _ in intervals for op in phase.series))
        self.counts = {op: numbers(_at(phase, op, "count", i) for phase, i in intervals) for op in self.operations}
        self.sums = {
            op: self.counts[op] * numbers(_at(phase, op, "mean", i) for phase, i in intervals) for op in self.operations
        }
        self.widths = numbers(phase.bin_seconds or 0.0 for phase, _ in intervals)
        together = sums([self.counts[op] for op in self.operations])
        self.block = _block_length(together / self.widths)
        self.blocks = len(intervals) // self.block
        starts = generator.integers(0, len(intervals), (RESAMPLES, -(-len(intervals) // self.block)))
        # Circular blocks: every interval is drawn equally often.
        drawn = ((starts[:, :, None] + np.arange(self.block)) % len(intervals)).reshape(RESAMPLES, -1)
        self.drawn: NDArray[np.int64] = drawn[:, : len(intervals)]
        self.rates = log(sums(together[self.drawn], 1) / sums(self.widths[self.drawn], 1))
        self.histograms: dict[str, tuple[Array, Array]] = {}

    def log_value(self, op: str, which: str, side: Side) -> tuple[float, float | None] | None:
        """Logarithm of the quantity and its standard deviation, which is None when too few operations carry it; None
        when there is none in the intervals."""
        if op and not np.sum(self.counts.get(op, np.zeros(1))):
            return None
        if not op:
            rate = sum(np.sum(self.counts[o]) for o in self.operations) / np.sum(self.widths)
            return math.log(rate), float(np.std(self.rates, ddof=1))
        counts, seconds = self.counts[op], self.sums[op]
        likely: Array = sums(seconds[self.drawn], 1) / np.maximum(sums(counts[self.drawn], 1), 1)
        mean, deviation = float(np.sum(seconds) / max(np.sum(counts), 1)), float(np.std(likely, ddof=1))
        if which == "mean":
            return math.log(mean), deviation / mean
        values, weights = self._histogram(op, side)
        total = float(np.sum(weights))
        variance = float(np.sum(weights * (values - np.sum(weights * values) / total) ** 2) / total)
        # As many independent operations as would have left the mean as uncertain as it is.
        effective = min(total, variance / deviation**2) if deviation > 0 else total
        return _log_quantile(values, weights, float(f"0.{which[1:]}"), effective)

    def _histogram(self, op: str, side: Side) -> tuple[Array, Array]:
        if op not in self.histograms:
            pooled: Counter[float] = Counter()
            for run in side.runs:
                lowest, highest, counts = run.latencies(op).recorded()
                pooled.update(dict(zip(map(float, (lowest + highest) / 2), map(int, counts), strict=True)))
            self.histograms[op] = numbers(sorted(pooled)) * 1e-9, numbers(pooled[v] for v in sorted(pooled))
        return self.histograms[op]


def _at(phase: Phase, op: str, key: str, i: int) -> float:
    series = phase.series.get(op, {}).get(key, [])
    return (series[i] or 0.0) if i < len(series) else 0.0


def _block_length(series: Array) -> int:
    """Long enough that neighbouring blocks are nearly independent: twice the lag at which the autocorrelation has died
    away, at least the cube root of the length; and at most a tenth, so that there are ten blocks."""
    n = len(series)
    centred = series - np.mean(series)
    power = float(np.sum(np.square(centred)))
    lag = 0
    if power > 0:
        while lag < n // 4 and float(np.sum(centred[: n - lag - 1] * centred[lag + 1 :])) / power > 2 / math.sqrt(n):
            lag += 1
    return int(min(max(2 * lag, round(n ** (1 / 3)), 1), max(1, n // 10)))


def _log_quantile(values: Array, weights: Array, probability: float, effective: float) -> tuple[float, float | None]:
    """The quantile's logarithm, and its deviation from the quantiles one binomial standard deviation below and
    above."""
    cumulative = np.cumsum(weights) / np.sum(weights)

    def at(q: float) -> float:
        return math.log(values.item(min(int(np.searchsorted(cumulative, q - 1e-12)), len(values) - 1)))

    if effective * min(probability, 1 - probability) < LEAST_BEYOND:
        return at(probability), None
    step = math.sqrt(probability * (1 - probability) / effective)
    return at(probability), (at(min(probability + step, 1)) - at(max(probability - step, 0))) / 2

# SPDX-License-Identifier: Apache-2.0
"""What changed from one measurement to another beyond their noise (docs/compare.md).

The unit is the run: repeats within a run share its moment, and are no independent evidence of a change. With at least
four runs on both sides their values are compared: a permutation test over all their arrangements, on Welch's t of the
logarithms, with Westfall and Young's step-down maximum over all quantities (P. Westfall, S. Young, Resampling-Based
Multiple Testing, 1993, algorithm 4.1), so that the chance of one false alarm among all of them is alpha. With fewer,
but two on some side, Student's t with the pooled variance between runs, and Holm's correction. An interval has the
correction of its test: those that were not rejected share alpha as the last step did, so that an interval holds "no
change" exactly where the test did not reject it (O. Guilbaud, Simultaneous confidence regions corresponding to Holm's
step-down procedure, Biometrical Journal 50, 2008). The quantities that thresholds name are a family of their own, which
the others cost nothing. With one run a side the
noise between runs can't be known: an assumed one is added to the noise within the runs, which repeats show, or the
intervals of the time lines: a block bootstrap for the rate and means (H. Kuensch, Annals of Statistics 17, 1989), order
statistics with as many independent operations as the bootstrap's spread says for quantiles. Simulated runs differ by
their seeds alone: there nothing is added.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from iocast.calibrate.reading import UNREPEATED
from iocast.errors import InputError
from iocast.files import read_campaign, read_json, SCHEMA_VERSION
from iocast.phases import first_phase, operations_by_phase, unit_entry
from iocast.records.run import Phase
from iocast.run_directory import LENGTHS, UNTOLD, Run, runs_in
from iocast.strict_yaml import allowed_sentence

LEAST_RUNS = 4
"""On a side, for a permutation test: with three, even the clearest change has a p-value of 0.1."""
LEAST_REPEATS = 4
"""Within each of two runs, to know the noise within them."""
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
TELLS_NOTHING = 100.0
"""An interval of a change that is wider than this factor, and has "no change" in it, leaves everything open."""
RESOLUTION = 5e-4  # log standard deviation that the histogram's buckets deserve


@dataclass
class Side:
    """Runs of one phase, placement and set of parameters."""

    name: str
    runs: list[Run]

    @property
    def phases(self) -> list[Phase]:
        return [phase for run in self.runs for phase in run.phases]

    @property
    def simulated(self) -> bool:
        return all(run.record.source == "simulated" for run in self.runs)

    def values(self, quantity: str) -> np.ndarray | None:
        """The quantity in every run: the geometric mean over its repeats that tell it; None when a run has none."""
        found = []
        for run in self.runs:
            reported = _logs(run.phases, quantity)
            if not len(reported):
                return None
            found.append(math.exp(float(reported.mean())))
        return np.array(found)

    def pooled(self, quantity: str) -> float | None:
        values = self.values(quantity)
        return None if values is None else float(np.exp(np.mean(np.log(values))))

    @property
    def repeated(self) -> bool:
        """Whether its only run repeats one and the same phase often enough: phases of one name that did other
        operations, or more of them, are turns of an application and no repeats."""
        work = [{op: phase.latency[op].count for op in phase.operation_names} for phase in self.phases]
        return len(self.runs) == 1 and len(work) >= LEAST_REPEATS and all(one == work[0] for one in work)


def _logs(phases: list[Phase], quantity: str) -> np.ndarray:
    """Logarithms of the quantity in those of the phases that tell it."""
    return np.log([v for phase in phases if (v := _value_of(phase, quantity)) is not None and v > 0])


def _value_of(phase: Phase, quantity: str) -> float | None:
    op, _, which = quantity.rpartition(".")
    return phase.latencies(op).value(which) if op else phase.own_rate


@dataclass
class Change:
    quantity: str
    a: float | None
    b: float | None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    adjusted: float | None = None
    cliffs_delta: float | None = None
    why_not: str = ""
    spread: float = 0.0
    """Standard deviation of the ratio's logarithm, with `freedom` degrees of freedom; 0 where nothing was tested."""
    freedom: float = 0.0

    @property
    def worse(self) -> bool:
        return self.ratio is not None and (self.ratio < 1) == (self.quantity == "rate") and self.ratio != 1

    @property
    def loss(self) -> float:
        """By how much worse, as a share: of the rate lost, or of the latency gained; negative when better."""
        if self.ratio is None:
            return 0.0
        return 1 - self.ratio if self.quantity == "rate" else self.ratio - 1

    @property
    def too_wide(self) -> bool:
        """Whether the interval of the change leaves everything open."""
        return self.low is not None and self.high is not None and self.high > TELLS_NOTHING * self.low

    @property
    def largest_loss(self) -> float:
        """The loss at the worse end of the interval; infinite where there is none."""
        if self.low is None or self.high is None:
            return math.inf
        return 1 - self.low if self.quantity == "rate" else self.high - 1

    def verdict(self, alpha: float) -> str:
        if self.adjusted is not None and self.adjusted < alpha:
            return "worse" if self.worse else "better"
        return "unknown" if self.adjusted is None or self.too_wide else "open"

    def judged(self, threshold: Threshold | None, alpha: float) -> str | None:
        """Against its threshold: "worse" by more than it and beyond noise, "within" it with the whole interval, or
        "undecided"; None without a threshold."""
        if threshold is None:
            return None
        if self.verdict(alpha) == "worse" and self.loss > threshold.loss:
            return "worse"
        return "within" if self.largest_loss <= threshold.loss else "undecided"

    def set_interval(self, half: float, alpha: float) -> None:
        """To the ratio and `half` on either side of its logarithm, cut at "no change" where the test rejected that."""
        assert self.ratio is not None
        low, high = self.ratio * math.exp(-half), self.ratio * math.exp(half)
        if self.adjusted is not None and self.adjusted < alpha:
            low, high = (max(low, 1.0), high) if self.ratio > 1 else (low, min(high, 1.0))
        self.low, self.high = low, high

    def as_json(self, alpha: float, threshold: Threshold | None) -> dict[str, Any]:
        return {
            "quantity": self.quantity,
            "a": self.a,
            "b": self.b,
            "ratio": self.ratio,
            "low": self.low,
            "high": self.high,
            "p": self.p,
            "p_adjusted": self.adjusted,
            "cliffs_delta": self.cliffs_delta,
            "verdict": self.verdict(alpha),
            "threshold": None if threshold is None else threshold.loss,
            "judged": self.judged(threshold, alpha),
            "why_not": self.why_not or None,
        }


@dataclass
class Threshold:
    """`--fail-on 10%` or `--fail-on create.q99=20%`."""

    loss: float
    quantity: str = ""

    @classmethod
    def parse(cls, text: str) -> Threshold:
        quantity, _, number = text.rpartition("=")
        try:
            value = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
        except ValueError:
            value = -1.0
        if not 0 <= value < math.inf:
            raise InputError(
                f"'{text}' is no threshold; write --fail-on 10% for every quantity, or --fail-on create.q99=20% for "
                "one."
            )
        return cls(value, quantity.strip())

    def nearness(self, quantity: str) -> int:
        """0 where it says nothing of the quantity; more the nearer it names it."""
        return (
            1
            if not self.quantity
            else 3 * (self.quantity == quantity) or 2 * (self.quantity == quantity.rpartition(".")[2])
        )


@dataclass
class Method:
    name: str  # "runs", "few runs", "repeats", "intervals" or "none"
    sentence: str
    changes: list[Change] = field(default_factory=list)
    between: float | None = None  # standard deviation of the logarithm between runs that was assumed


def compare(
    a: Path, b: Path, *, phase: str | None = None, alpha: float = 0.05, seed: int = 0, fail_on: Sequence[Threshold] = ()
) -> dict[str, Any]:
    """@return the comparison (docs/compare.md, `kind: comparison`)
    @raises InputError when the two can't be compared"""
    if not 0 < alpha < 1:
        raise InputError(f"The false-alarm rate {alpha:g} is no probability between 0 and 1.")
    any_length = _sized(a) and _sized(b)
    pairs, warnings = _pairs(_read(a, phase), _read(b, phase), a, b, any_length=any_length)
    points = []
    for left, right, notes in pairs:
        thresholds = _thresholds(_quantities(left, right), fail_on)
        method = _choose(left, right, alpha, seed, thresholds)
        rows = [change.as_json(alpha, thresholds.get(change.quantity)) for change in method.changes]
        for row in rows:
            if row["quantity"] == "rate":
                row |= unit_entry(left.phases[0].rate_unit)
        first = left.runs[0]
        points.append(
            {
                "name": left.name,
                "phase": first.phase,
                "ranks": first.ranks,
                "waiting_factor": first.waiting_factor,
                "runs": [len(left.runs), len(right.runs)],
                "repeats": [len(left.phases), len(right.phases)],
                "method": method.name,
                "assumed_between_runs": method.between,
                "how": method.sentence,
                "tests": sum(c.p is not None for c in method.changes),
                "rows": rows,
                "failed": [row["quantity"] for row in rows if row["judged"] == "worse"],
                "undecided": [row["quantity"] for row in rows if row["judged"] == "undecided"],
                "warnings": notes + _held_back(left.runs + right.runs),
            }
        )
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "comparison",
        "a": str(a),
        "b": str(b),
        "alpha": alpha,
        "fail_on": [{"quantity": threshold.quantity or None, "loss": threshold.loss} for threshold in fail_on],
        "points": points,
        "failed": any(point["failed"] for point in points),
        "undecided": any(point["undecided"] for point in points),
        "warnings": warnings,
    }


def _thresholds(known: Sequence[str], fail_on: Sequence[Threshold]) -> dict[str, Threshold]:
    """The threshold of each quantity that has one: of several the one that names it most nearly, and of these the
    strictest. @raises InputError when a threshold is for nothing that was measured"""
    for threshold in fail_on:
        if not any(threshold.nearness(quantity) for quantity in known):
            raise InputError(
                f"There is no quantity '{threshold.quantity}' to fail on. "
                f"{allowed_sentence(threshold.quantity, list(known))}"
            )
    found = {}
    for quantity in known:
        near = [threshold for threshold in fail_on if threshold.nearness(quantity)]
        if near:
            found[quantity] = max(near, key=lambda one: (one.nearness(quantity), -one.loss))
    return found


def _sized(path: Path) -> bool:
    """Whether it is a campaign whose pilot run chose the lengths of its runs."""
    return (path / "campaign.json").is_file() and bool(read_campaign(path).get("pilot"))


def is_measurement(path: Path) -> bool:
    """Whether `compare` can take it: a run directory, a campaign, or a directory of run directories."""
    return (path / "run.json").is_file() or (path / "campaign.json").is_file() or bool(runs_in(path))


def _read(path: Path, phase: str | None) -> list[Run]:
    if (path / "campaign.json").is_file():
        points = read_campaign(path)["points"]
        paths = [path / "runs" / p["name"] for p in points if p["status"] == "complete"]
    else:
        paths = [path] if (path / "run.json").is_file() else runs_in(path) or [path]
    found = []
    name = phase or _main_phase(paths)
    for one in paths:
        if len(paths) > 1 and name not in {p["name"] for p in read_json(one / "run.json", "run")["phases"]}:
            continue  # a step of a protocol that has no such phase
        found.append(Run(one, name))
    if not found:
        raise InputError(
            f"There is no complete run with the phase '{name}' in "
            f"'{path}'.{'' if phase else ' Name another one with --phase.'}"
        )
    return found


def _main_phase(paths: Sequence[Path]) -> str:
    """The phase that stands for these runs, as in reports and forecasts."""
    operations: dict[str, float] = {}
    for path in paths:
        if (path / "run.json").is_file():  # otherwise Run has the sentence for it
            for name, count in operations_by_phase(Run.read(path)[0]["phases"]).items():
                operations[name] = operations.get(name, 0) + count
    return first_phase(operations) if operations else "benchmark"


def _key(run: Run, besides: Sequence[str] = ()) -> tuple[Any, ...]:
    """What two runs must share to be the same measurement; a repeat count does not matter, nor what is in `besides`."""
    parameters = {k: v for k, v in run.parameters.items() if k not in (*UNTOLD, *besides)}
    where = run.json["placement"]
    return (
        run.ranks,
        where["nodes"],
        run.waiting_factor,
        run.json["workload"]["pattern"],
        *sorted((k, str(v)) for k, v in parameters.items()),
    )


def _pairs(
    left: list[Run], right: list[Run], a: Path, b: Path, *, any_length: bool
) -> tuple[list[tuple[Side, Side, list[str]]], list[str]]:
    """The sides of each measurement that both have, with what is not the same about them; and warnings. With
    `any_length` runs of one measurement may differ in length: a faster system is given more operations."""
    if len(left) == 1 and len(right) == 1:
        return [(Side(left[0].path.name, left), Side(right[0].path.name, right), _differences(left[0], right[0]))], []
    grouped: dict[tuple[Any, ...], tuple[list[Run], list[Run]]] = {}
    besides = LENGTHS if any_length and all(_same_without(LENGTHS, runs) for runs in (left, right)) else ()
    for runs, side in ((left, 0), (right, 1)):
        for run in runs:
            grouped.setdefault(_key(run, besides), ([], []))[side].append(run)
    pairs, alone = [], 0
    for mine, theirs in grouped.values():
        if mine and theirs:
            name = f"N={mine[0].ranks} T={mine[0].waiting_factor:g}"
            pairs.append((Side(name, mine), Side(name, theirs), _differences(mine[0], theirs[0])))
        else:
            alone += 1
    if not pairs:
        raise InputError(
            f"'{a}' and '{b}' have no measurement of the same ranks, nodes and parameters in common. "
            f"{_nearest(left, right)}"
        )
    return pairs, [
        f"{alone} measurement{'s' if alone > 1 else ''} of only one side {'are' if alone > 1 else 'is'} left out."
    ] if alone else []


def _same_without(names: Sequence[str], runs: list[Run]) -> bool:
    """Whether these parameters distinguish no two of the runs."""
    return len({_key(run) for run in runs}) == len({_key(run, names) for run in runs})


def _nearest(left: list[Run], right: list[Run]) -> str:
    """What the two runs differ in that differ in least."""
    notes = min((_differences(x, y) for x in left for y in right), key=len)
    return f"Of the nearest two: {' '.join(notes)}"


def _differences(a: Run, b: Run) -> list[str]:
    """What is not the same about two runs; another workload can't be compared at all."""
    if a.json["workload"]["pattern"] != b.json["workload"]["pattern"] or a.phase != b.phase:
        raise InputError(
            f"'{a.path}' is of the workload {a.json['workload']['pattern']} (phase {a.phase}), '{b.path}' of "
            f"{b.json['workload']['pattern']} (phase {b.phase}); these are no measurements of the same thing."
        )
    notes = []
    ours, theirs = a.parameters, b.parameters
    for name in sorted({*ours, *theirs} - {"repeats", "start_index", "phases", "score"}):
        if str(ours.get(name)) != str(theirs.get(name)):
            notes.append(f"The parameter {name} differs: {ours.get(name)} and {theirs.get(name)}.")
    for key in ("ranks", "nodes"):
        one, other = a.json["placement"][key], b.json["placement"][key]
        if one != other:
            notes.append(f"The number of {key} differs: {one} and {other}.")
    units = {phase.rate_unit or "operations" for phase in (*a.phases, *b.phases)}
    if len(units) > 1:
        notes.append(f"The rates count {' and '.join(sorted(units))}; they are not compared.")
    if a.errors or b.errors:
        notes.append(f"Operations failed ({a.errors} and {b.errors}); failed ones are in no figure.")
    return notes


def _held_back(runs: list[Run]) -> list[str]:
    """A warning on runs whose rate --max-rate limited."""
    limited = [run for run in runs if run.max_rate]
    if not limited:
        return []
    return [
        f"{len(limited)} of {len(runs)} runs were held back by --max-rate "
        f"('{limited[0].path}': {limited[0].max_rate:g}/s): "
        "their throughput, their concurrency and so their latencies are the limit's, not the storage's."
    ]


def _choose(a: Side, b: Side, alpha: float, seed: int, thresholds: Collection[str] = ()) -> Method:
    """The changes by the method that these runs allow; the quantities of thresholds are corrected for each other, and
    the others among themselves."""
    known = _quantities(a, b)
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


def _quantities(a: Side, b: Side) -> list[str]:
    operations = [tag for phase in a.phases for tag in phase.operation_names]
    names = ["rate", *(f"{op}.{which}" for op in dict.fromkeys(operations) for which in QUANTITIES)]
    if len({phase.rate_unit for phase in (*a.phases, *b.phases)}) > 1:
        names.remove("rate")  # operations of one side, bytes of the other (`_differences`)
    return [n for n in names if a.values(n) is not None and b.values(n) is not None]


# Runs


def _by_runs(a: Side, b: Side, known: list[str], families: list[list[int]], alpha: float, seed: int) -> Method:
    n, m = len(a.runs), len(b.runs)
    logs = np.array([np.log(np.concatenate([a.values(q), b.values(q)])) for q in known])  # quantity x run
    arrangements, drawn = _arrangements(n, m, seed)
    statistics = np.abs(_welch(logs, arrangements, n))  # quantity x arrangement; the first is the observed one
    changes = []
    for i, quantity in enumerate(known):
        x, y = logs[i, :n], logs[i, n:]
        spread, freedom = _welch_spread(x, y)
        change = Change(quantity, math.exp(x.mean()), math.exp(y.mean()), spread=spread, freedom=freedom)
        change.ratio = math.exp(float(y.mean() - x.mean()))
        change.p = float((statistics[i] >= statistics[i, 0] * (1 - 1e-9)).mean())
        change.cliffs_delta = float(np.sign(y[:, None] - x[None, :]).mean())
        changes.append(change)
    for family in families:
        for i, adjusted in zip(family, _step_down(statistics[family]), strict=True):
            changes[i].adjusted = float(adjusted)
        left = [i for i in family if (changes[i].adjusted or 0.0) >= alpha]
        # The largest value that at least alpha of the arrangements reach: what was not rejected reaches no more.
        critical = np.sort(statistics[left].max(axis=0))[-math.ceil(alpha * len(arrangements))] if left else None
        for i in family:
            change = changes[i]
            factor = stdtrit(change.freedom, 1 - alpha / 2 / len(family)) if critical is None else critical
            change.set_interval(float(factor) * change.spread, alpha)
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
        x, y = np.log(a.values(quantity)), np.log(b.values(quantity))  # type: ignore[arg-type]
        freedom = n + m - 2
        variance = (float(np.sum((x - x.mean()) ** 2)) + float(np.sum((y - y.mean()) ** 2))) / freedom
        spread = math.sqrt((variance + RESOLUTION**2) * (1 / n + 1 / m))
        changes.append(
            _tested(
                Change(quantity, math.exp(x.mean()), math.exp(y.mean())), float(y.mean() - x.mean()), spread, freedom
            )
        )
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
        x, y = _logs(a.phases, quantity), _logs(b.phases, quantity)
        change = Change(quantity, math.exp(x.mean()), math.exp(y.mean()))
        if min(len(x), len(y)) < 2:
            change.ratio, change.why_not = math.exp(y.mean() - x.mean()), "a single repeat tells it"
        else:
            vx, vy = float(x.var(ddof=1)) / len(x), float(y.var(ddof=1)) / len(y)
            own = (vx + vy) ** 2 / (vx**2 / (len(x) - 1) + vy**2 / (len(y) - 1)) if vx + vy else MANY
            _tested(change, float(y.mean() - x.mean()), *_with_between(vx + vy, own, between))
        changes.append(change)
    _holm(changes, families, alpha)
    sentence = (
        f"Repeats within the runs are compared ({len(a.phases)} and {len(b.phases)}): Welch's t on logarithms, Holm's "
        f"correction. {_unknown(between)}"
    )
    return Method("repeats", sentence, changes, BETWEEN_RUNS if between else None)


def _arrangements(n: int, m: int, seed: int) -> tuple[np.ndarray, bool]:
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


def _welch(logs: np.ndarray, arrangements: np.ndarray, n: int) -> np.ndarray:
    """Welch's t of every row of `logs` in every arrangement, whose first n are side a."""
    result = np.empty((len(logs), len(arrangements)))
    for i, row in enumerate(logs):
        shuffled = row[arrangements]
        x, y = shuffled[:, :n], shuffled[:, n:]
        spread = x.var(axis=1, ddof=1) / n + y.var(axis=1, ddof=1) / y.shape[1]
        # Repeats that are equal to the last digit would divide by zero; the histogram's resolution is a floor.
        result[i] = (y.mean(axis=1) - x.mean(axis=1)) / np.sqrt(spread + RESOLUTION**2 * (1 / n + 1 / y.shape[1]))
    return result


def _step_down(statistics: np.ndarray) -> np.ndarray:
    """Westfall-Young adjusted p-values: the share of arrangements whose largest statistic, among quantities that are
    not clearer, is at least as large as observed."""
    order = np.argsort(-statistics[:, 0], kind="stable")
    largest = np.maximum.accumulate(statistics[order[::-1]], axis=0)[::-1]
    p = (largest >= statistics[order, :1] * (1 - 1e-9)).mean(axis=1)
    result = np.empty(len(order))
    result[order] = np.maximum.accumulate(p)
    return result


def _welch_spread(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Standard deviation of the difference of means, with the histogram's resolution as a floor, and its degrees of
    freedom."""
    vx, vy = x.var(ddof=1) / len(x), y.var(ddof=1) / len(y)
    freedom = (vx + vy) ** 2 / (vx**2 / (len(x) - 1) + vy**2 / (len(y) - 1)) if vx + vy else MANY
    return math.sqrt(vx + vy + RESOLUTION**2 * (1 / len(x) + 1 / len(y))), float(freedom)


# Intervals


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
        before, after = (samples[i].log_value(op, which, side) for i, side in enumerate((a, b)))
        if before is None or after is None:
            one, other = a.pooled(quantity), b.pooled(quantity)
            ratio = other / one if one and other else None
            why_not = "none of them ended in the steady part that is compared"
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
        self.counts = {
            op: np.array([_at(phase, op, "count", i) for phase, i in intervals], float) for op in self.operations
        }
        self.sums = {
            op: self.counts[op] * np.array([_at(phase, op, "mean", i) for phase, i in intervals])
            for op in self.operations
        }
        self.widths = np.array([phase.bin_seconds for phase, _ in intervals])
        all_counts = np.sum([self.counts[op] for op in self.operations], axis=0) / self.widths
        self.block = _block_length(all_counts)
        self.blocks = len(intervals) // self.block
        starts = generator.integers(0, len(intervals), (RESAMPLES, -(-len(intervals) // self.block)))
        # Circular blocks: every interval is drawn equally often.
        self.drawn = ((starts[:, :, None] + np.arange(self.block)) % len(intervals)).reshape(RESAMPLES, -1)[
            :, : len(intervals)
        ]
        self.rates = np.log(
            np.sum([self.counts[op] for op in self.operations], axis=0)[self.drawn].sum(axis=1)
            / self.widths[self.drawn].sum(axis=1)
        )
        self.histograms: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def log_value(self, op: str, which: str, side: Side) -> tuple[float, float | None] | None:
        """Logarithm of the quantity and its standard deviation, which is None when too few operations carry it; None
        when there is none in the intervals."""
        if op and not self.counts.get(op, np.zeros(1)).sum():
            return None
        if not op:
            total = sum(self.counts[o].sum() for o in self.operations) / self.widths.sum()
            return math.log(total), float(self.rates.std(ddof=1))
        counts, sums = self.counts[op], self.sums[op]
        means = sums[self.drawn].sum(axis=1) / np.maximum(counts[self.drawn].sum(axis=1), 1)
        mean, deviation = sums.sum() / max(counts.sum(), 1), float(means.std(ddof=1))
        if which == "mean":
            return math.log(mean), deviation / mean
        values, weights = self._histogram(op, side)
        total = weights.sum()
        variance = float(np.sum(weights * (values - np.sum(weights * values) / total) ** 2) / total)
        # As many independent operations as would have left the mean as uncertain as it is.
        effective = min(total, variance / deviation**2) if deviation > 0 else total
        return _log_quantile(values, weights, float(f"0.{which[1:]}"), effective)

    def _histogram(self, op: str, side: Side) -> tuple[np.ndarray, np.ndarray]:
        if op not in self.histograms:
            pooled: dict[float, int] = {}
            for run in side.runs:
                histogram = run.latencies(op).histogram
                counts = np.ctypeslib.as_array(histogram.counts)
                for i in np.flatnonzero(counts):
                    lowest = histogram.get_value_from_index(int(i))
                    value = (lowest + histogram.get_highest_equivalent_value(lowest)) / 2
                    pooled[value] = pooled.get(value, 0) + int(counts[i])
            self.histograms[op] = np.array(sorted(pooled)) * 1e-9, np.array([pooled[v] for v in sorted(pooled)], float)
        return self.histograms[op]


def _at(phase: Phase, op: str, key: str, i: int) -> float:
    series = phase.series.get(op, {}).get(key, [])
    return (series[i] or 0.0) if i < len(series) else 0.0


def _block_length(series: np.ndarray) -> int:
    """Long enough that neighbouring blocks are nearly independent: twice the lag at which the autocorrelation has died
    away, at least the cube root of the length; and at most a tenth, so that there are ten blocks."""
    n = len(series)
    centred = series - series.mean()
    power = float(np.sum(centred**2))
    lag = 0
    if power > 0:
        while lag < n // 4 and float(np.sum(centred[: n - lag - 1] * centred[lag + 1 :])) / power > 2 / math.sqrt(n):
            lag += 1
    return int(min(max(2 * lag, round(n ** (1 / 3)), 1), max(1, n // 10)))


def _log_quantile(
    values: np.ndarray, weights: np.ndarray, probability: float, effective: float
) -> tuple[float, float | None]:
    """The quantile's logarithm, and its deviation from the quantiles one binomial standard deviation below and
    above."""
    cumulative = np.cumsum(weights) / weights.sum()

    def at(q: float) -> float:
        return math.log(values[min(int(np.searchsorted(cumulative, q - 1e-12)), len(values) - 1)])

    if effective * min(probability, 1 - probability) < LEAST_BEYOND:
        return at(probability), None
    step = math.sqrt(probability * (1 - probability) / effective)
    return at(probability), (at(min(probability + step, 1)) - at(max(probability - step, 0))) / 2

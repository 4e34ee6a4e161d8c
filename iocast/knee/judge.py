# SPDX-License-Identifier: Apache-2.0
"""What one run of a knee search says: rates, times, whether it kept up, and whether the levels held."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from iocast.runs.arrivals import is_open, number
from iocast.errors import InputError
from iocast.records.quantities import ACCELERATORS
from iocast.records.run import Phase
from iocast.runs.run_directory import Run
from iocast.ground.strict_yaml import allowed_sentence
from iocast.study.levels import ANY, STATISTICS, Level

SLACK = 0.02
"""An open loop that took so much longer than its last intended start kept up all the same: the last answers, and
timers."""
SIGMAS = 3.09  # 0.1 % of runs that keep up take longer by chance
BUSY = 0.97
"""Share of its time inside operations from which a rank in an open loop counts as always busy: its intended requests
pile up."""
FEW = 10
"""Operations beyond a quantile, in one run, below which the quantile is not much of a measurement."""


@dataclass(frozen=True)
class Seen:
    """One run at one load. Times in seconds, rates in operations a second of all ranks together.

    values: {level: value}; response: mean of all operations, from the intended start in an open loop; service: from the
    real start; busy: share of the time that a rank is inside an operation; few: levels whose quantile rests on fewer
    than FEW operations."""

    rate: float
    response: float
    service: float
    busy: float
    kept_up: bool
    values: dict[str, float]
    met: bool
    seconds: float = 0.0  # of all repeats of the phase
    few: tuple[str, ...] = ()
    rates: dict[str, float] = field(default_factory=dict)  # by operation; `rate` is their sum

    @property
    def power(self) -> float:
        """Throughput over response time (Kleinrock, ICC 1979; Jain 1991, p. 37)."""
        return self.rate / self.response


def check_levels(levels: list[Level], operations: list[str]) -> None:
    """@raises InputError for a level that this search can't judge"""
    subjects = [*operations, ANY]
    for level in levels:
        subject, _, what = level.quantity.rpartition(".")
        if what in ACCELERATORS:
            continue  # which a run without accelerators lacks, whatever its operations
        if what not in STATISTICS.values():
            raise InputError(
                f"The level '{level.text}' is not about response times. A knee search judges levels such as "
                f"'p99(create) < 50 ms', of {', '.join(STATISTICS)}."
            )
        if subject not in subjects:
            raise InputError(
                f"The level '{level.text}' is about '{subject}', which this workload does not do in the phase that is "
                f"searched. {allowed_sentence(subject, subjects)}"
            )


def look(path: Path, phase: str, levels: list[Level]) -> Seen:
    """@raises InputError for a run that lacks the phase"""
    run = Run(path, phase)
    operations = run.operations
    opened = is_open(run.parameters)
    responses = [f"{op}.response" if opened else op for op in operations]
    counts = [run.count(op) for op in operations]
    service = _weighted([run.mean(op) for op in operations], counts)
    response = _weighted([run.mean(tag) for tag in responses], counts)
    values, few = {}, []
    for level in levels:
        subject, _, what = level.quantity.rpartition(".")
        if what in ACCELERATORS:
            values[level.text] = _of_accelerators(run, what, level)
            continue
        chosen = [op for op in operations if subject in (op, ANY)]
        if not chosen:
            raise InputError(
                f"The level '{level.text}' is about '{subject}', which the run '{path}' did not do in its phase "
                f"'{phase}'. {allowed_sentence(subject, [*operations, ANY])}"
            )
        worst = [run.quantity(f"{op}.response" if opened else op, what) for op in chosen]
        values[level.text] = max(v for v in worst if v is not None)
        beyond = 1 - float(f"0.{what[1:]}") if what.startswith("q") else 1.0
        if min(run.count(op) for op in chosen) * beyond < FEW:
            few.append(level.text)
    busy = run.rate * service / run.ranks
    kept_up = (
        not opened
        or busy < BUSY
        and all(
            _kept_up(p, number(run.parameters, "rate"), run.ranks, service, run.parameters.get("arrivals") != "fixed")
            for p in run.phases
        )
    )
    return Seen(
        rate=run.rate, response=response, service=service, busy=busy, kept_up=kept_up, values=values,
        met=kept_up and all(level.margin(values[level.text]) > 0 for level in levels),
        seconds=sum(p.seconds or 0.0 for p in run.phases), few=tuple(few),
        rates={op: run.rate * n / max(1, sum(counts)) for op, n in zip(operations, counts, strict=True)},
    )  # fmt: skip


def _of_accelerators(run: Run, what: str, level: Level) -> float:
    """Mean over the repeats. @raises InputError for a run without it"""
    found = [one.quantity(what) for p in run.phases if (one := p.accelerators) is not None]
    known = [value for value in found if value is not None]
    if not known:
        raise InputError(
            f"The level '{level.text}' is about accelerators, and the run '{run.path}' has no {what} in its phase "
            f"'{run.phase}'; the workloads training and checkpoint have."
        )
    return sum(known) / len(known)


def _weighted(values: list[float], counts: list[int]) -> float:
    return sum(v * n for v, n in zip(values, counts, strict=True)) / max(1, sum(counts))


def _kept_up(phase: Phase, rate: float, ranks: int, service: float, poisson: bool) -> bool:
    """n gaps of a Poisson process last n / rate, with a standard deviation of 1 / sqrt(n) of that; a rank that kept up
    has answered soon after the last."""
    operations = phase.operations or 0
    each = operations / ranks
    ends = phase.rank_seconds or phase.rank_seconds_quantiles or []
    longer = (sum(ends) / len(ends) - service) * rate / each
    return bool(longer <= 1 + SLACK + (SIGMAS / math.sqrt(operations) if poisson else 0.0))

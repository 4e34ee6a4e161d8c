# SPDX-License-Identifier: Apache-2.0
"""A changed quantity between two sides of a comparison, with the limit that it is judged by."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from iocast.errors import InputError
from iocast.records.comparison import ChangedRow
from iocast.records.quantities import ACCELERATORS, MORE_IS_BETTER
from iocast.records.run import Phase
from iocast.runs.run_directory import Run

LEAST_REPEATS = 4
"""Within each of two runs, to know the noise within them."""
TELLS_NOTHING = 100.0
"""An interval of a change that is wider than this factor, and has "no change" in it, leaves everything open."""


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

    def known(self, quantity: str) -> list[float]:
        """The quantity in the runs that have it: the geometric mean over its repeats that tell it."""
        reported = [logs(run.phases, quantity) for run in self.runs]
        return [math.exp(np.mean(one)) for one in reported if len(one)]

    def tells(self, quantity: str) -> bool:
        """Whether every run has it."""
        return len(self.known(quantity)) == len(self.runs)

    def pooled(self, quantity: str) -> float | None:
        return float(np.exp(np.mean(np.log(self.known(quantity))))) if self.tells(quantity) else None

    @property
    def repeated(self) -> bool:
        """Whether its only run repeats one and the same phase often enough: phases of one name that did other
        operations, or more of them, are turns of an application and no repeats."""
        work = [{op: phase.latency[op].count for op in phase.operation_names} for phase in self.phases]
        return len(self.runs) == 1 and len(work) >= LEAST_REPEATS and all(one == work[0] for one in work)


def logs(phases: list[Phase], quantity: str) -> NDArray[np.float64]:
    """Logarithms of the quantity in those of the phases that tell it."""
    return np.log([v for phase in phases if (v := _value_of(phase, quantity)) is not None and v > 0])


def _value_of(phase: Phase, quantity: str) -> float | None:
    if quantity in ACCELERATORS:
        return phase.accelerators.quantity(quantity) if phase.accelerators else None
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
        return self.ratio is not None and (self.ratio < 1) == self.gains and self.ratio != 1

    @property
    def gains(self) -> bool:
        """Whether more of it is better."""
        return self.quantity in MORE_IS_BETTER

    @property
    def loss(self) -> float:
        """By how much worse, as a share: of the rate lost, or of the latency gained; negative when better."""
        if self.ratio is None:
            return 0.0
        return 1 - self.ratio if self.gains else self.ratio - 1

    @property
    def too_wide(self) -> bool:
        """Whether the interval of the change leaves everything open."""
        return self.low is not None and self.high is not None and self.high > TELLS_NOTHING * self.low

    @property
    def largest_loss(self) -> float:
        """The loss at the worse end of the interval; infinite where there is none."""
        if self.low is None or self.high is None:
            return math.inf
        return 1 - self.low if self.gains else self.high - 1

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

    def as_json(self, alpha: float, threshold: Threshold | None) -> ChangedRow:
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

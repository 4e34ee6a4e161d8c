# SPDX-License-Identifier: Apache-2.0
"""How busy more accelerators would be: a closed network whose customers, the accelerators, think for a fixed time.

A step of training computes for a fixed time and waits for what reading ahead could not hide. Its time over the
computation, T, is 1 / utilisation. Three bounds hold on any storage:

- T does not fall as accelerators are added: T(N) >= T(n) for N > n, and where several counts were measured it grows at
  least as it did between the last two, T(n) (N/n)^a;
- throughput does not fall: T(N) <= T(n) N/n;
- a count that the system is meant to feed keeps the benchmark's limit: T(N) <= 1/limit, where T(n) does.

The forecast is the middle between the bounds, and its interval their range, blurred by what two runs of one system
differ by. So it has no fitted constant in the middle. How likely it is that the system feeds the count at all, and how
many it feeds, is answered from a alone: as measured, or with what is usual."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from iocast.errors import InputError

BLUR = 0.02
"""Standard deviation of ln T between configurations of one system. Repeats of one configuration differ by 0.2 %."""
START_SECONDS = 5.0
"""Time before the first step of an epoch, where its share can grow no more: a data set has 500 steps or more."""
FEWEST_STEPS = 500
GROWTH, GROWTH_FACTOR = 0.03, 3.0
"""Usual exponent a of T, and the factor of its standard deviation."""
UNLIKELY = 0.05
"""Probability of being fed below which a forecast is not made under the condition that the system feeds the count."""
FARTHEST = 300.0
"""Largest ratio of requested to measured accelerators; published pairs reach 288."""


@dataclass(frozen=True)
class Fed:
    """A measured count of accelerators. `utilisation`: after the first step. `rate`: of all accelerators, samples or
    bytes a second. `start`: time of an epoch over that of its steps, 1 where it is not known."""

    count: int
    hosts: int | None
    utilisation: float
    rate: float
    start: float = 1.0

    @property
    def cycle(self) -> float:
        return 1 / self.utilisation


@dataclass(frozen=True)
class Range:
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Feeding:
    """A forecast. `fed`: probability that the count keeps the limit; `as_fed`: whether the answer supposes it."""

    count: int
    utilisation: Range
    rate: Range
    fed: float
    as_fed: bool


def largest(measured: Sequence[Fed]) -> Fed:
    return max(measured, key=lambda one: one.count)


def growth(measured: Sequence[Fed]) -> float | None:
    """Exponent a between the two largest counts, 0 to 1; None from one count."""
    if len(measured) < 2:
        return None
    before, last = sorted(measured, key=lambda one: one.count)[-2:]
    return min(1.0, max(0.0, math.log(last.cycle / before.cycle) / math.log(last.count / before.count)))


def feeding(
    measured: Sequence[Fed], count: int, *, limit: float, hosts: int | None = None, step_seconds: float | None = None,
    level: float = 0.9,
) -> Feeding:  # fmt: skip
    """The forecast for a count of accelerators.

    @param measured of one system, workload and accelerator, each count once
    @param hosts among which they are spread; those of the largest measurement unless given
    @param step_seconds computation of a step, where it is known
    @raises InputError for a count too far beyond what was measured"""
    last = largest(measured)
    if count > FARTHEST * last.count:
        raise InputError(
            f"{count} accelerators are {count / last.count:.0f} times the {last.count} measured; forecasts reach "
            f"{FARTHEST:.0f} times. Measure {math.ceil(count / FARTHEST)} accelerators or more."
        )
    low, high = bounds(measured, count, limit)
    fed = probability_fed(measured, count, limit, hosts)
    as_fed = last.cycle < 1 / limit and (fed >= UNLIKELY or count <= last.count)
    if not as_fed and count > last.count:
        low, high = max(low, 1 / limit), max(low, 1 / limit, last.cycle * count / last.count)
    ends = [max(1.0, _blurred(low, high, p)) for p in ((1 - level) / 2, (1 + level) / 2)]
    middle = (low + high) / 2
    used = Range(1 / middle, 1 / ends[1], 1 / ends[0])
    start, most = last.start, _start(last, count, step_seconds)
    each = last.rate / last.count * last.cycle * last.start * count
    rate = Range(each / most / middle, each / max(start, 2 * most - start) / ends[1], each / start / ends[0])
    return Feeding(count, used, rate, fed, as_fed)


def bounds(measured: Sequence[Fed], count: int, limit: float) -> tuple[float, float]:
    """The least and the greatest T."""
    below = [one for one in measured if one.count <= count]
    above = [one for one in measured if one.count >= count]
    if above:
        nearest = min(above, key=lambda one: one.count)
        return (largest(below).cycle if below else 1.0), max(nearest.cycle, largest(below).cycle if below else 1.0)
    last = largest(measured)
    ratio = count / last.count
    low, flat = last.cycle * ratio ** (growth(measured) or 0.0), last.cycle * ratio
    return (low, max(low, min(flat, 1 / limit))) if last.cycle < 1 / limit else (low, flat)


def probability_fed(measured: Sequence[Fed], count: int, limit: float, hosts: int | None = None) -> float:
    """That `count` accelerators keep the limit, by the growth of T. Hosts that are added share what a host could not
    read, and not what servers could not: the growth is halfway, on a logarithmic scale, between that of the
    accelerators of a host and that of all."""
    last = largest(measured)
    ratio = count / last.count
    if ratio > 1 and hosts and last.hosts and hosts > last.hosts:
        ratio = math.sqrt(ratio * max(1.0, ratio * last.hosts / hosts))
    room = math.log(1 / limit / last.cycle)
    if ratio <= 1:
        return 1.0 if room >= 0 else float(any(one.count >= count and one.cycle <= 1 / limit for one in measured))
    if room <= 0:
        return 0.0
    return float(ndtr(math.log(room / math.log(ratio) / _usual(measured)) / math.log(GROWTH_FACTOR)))


def _usual(measured: Sequence[Fed]) -> float:
    """Median of a: geometric mean of the usual one and the measured one."""
    found = growth(measured)
    return GROWTH if found is None else math.sqrt(GROWTH * max(found, GROWTH / GROWTH_FACTOR**2))


@dataclass(frozen=True)
class Most:
    """How many accelerators keep the limit. None is not known: it lies beyond FARTHEST times what was measured."""

    value: float | None
    low: float
    high: float | None


def most_fed(measured: Sequence[Fed], limit: float, level: float = 0.9) -> Most:
    """How many accelerators keep the limit, T(n) (N/n)^a = 1/limit; between two counts where the measurements enclose
    it."""
    ordered = sorted(measured, key=lambda one: one.count)
    kept = [one for one in ordered if one.cycle <= 1 / limit]
    missed = [one for one in ordered if one.cycle > 1 / limit]
    if not kept:
        first = missed[0]
        return Most(first.count / (limit * first.cycle), 0.0, float(first.count))
    last = kept[-1]
    beyond = [one for one in missed if one.count > last.count]
    room = math.log(1 / limit / last.cycle)
    if beyond:
        next_ = beyond[0]
        share = room / math.log(next_.cycle / last.cycle)
        return Most(last.count * (next_.count / last.count) ** share, float(last.count), float(next_.count))
    spread = math.log(GROWTH_FACTOR) * float(ndtri((1 + level) / 2))

    def at(a: float) -> float | None:
        exponent = room / min(1.0, a)
        return last.count * math.exp(exponent) if exponent < math.log(FARTHEST) else None

    usual = _usual(kept)
    return Most(at(usual), at(usual * math.exp(spread)) or last.count * FARTHEST, at(usual * math.exp(-spread)))


def _start(last: Fed, count: int, step_seconds: float | None) -> float:
    """Time of an epoch over that of its steps. The data set stays, so each of more accelerators takes fewer steps, down
    to the fewest that the benchmark allows."""
    share = last.start - 1
    most = START_SECONDS / (FEWEST_STEPS * step_seconds) if step_seconds else share
    return 1 + max(share, min(share * count / last.count, most))


def _blurred(low: float, high: float, probability: float) -> float:
    """Quantile of a value that is uniform between two ends, and then blurred by BLUR of the upper one."""
    sd = BLUR * high
    width = high - low
    if width < 1e-6 * high:
        return low + sd * float(ndtri(probability))

    def integral(z: float) -> float:
        """Of the normal distribution function up to z."""
        return z * float(ndtr(z)) + math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    def share(x: float) -> float:
        return sd / width * (integral((x - low) / sd) - integral((x - high) / sd)) - probability

    return float(brentq(share, low - 8 * sd, high + 8 * sd))

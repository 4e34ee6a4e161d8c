# SPDX-License-Identifier: Apache-2.0
"""How busy more accelerators would be: a closed network whose customers, the accelerators, think for a fixed time.

A step of training computes for a fixed time and waits for what reading ahead could not hide. Its time over the
computation, T, is 1 / utilisation. On any storage T does not fall as accelerators are added, and throughput does not
either: T grows with an exponent a between 0 and 1, T(N) = T(n) (N/n)^a.

- a of fed accelerators is about GROWTH. Waiting beyond the limit is taken for contention, whose share of a step grows
  in proportion to the accelerators.
- Several measured counts tell more: the exponent does not fall with the count, so that it is at least what it was
  between the last two, as far as noise lets that be known.
- Between two measured counts T lies on their line in logarithms, bent to either side as far as throughput doesn't fall.
- A count that is fed may use any share of the room between the measured T and the limit, since systems are built for
  counts that they just feed. So the exponent decides whether a count is fed, and how far it is from that if not.

DRAWS of the exponent, of the differences between configurations and of the time before the first step are one set for
all answers of a question: values are their medians and intervals their quantiles, and chances and the largest count
that is fed follow from their shares. A forecast "if it is fed" is of those draws that keep the limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from iocast.errors import InputError

Draws = NDArray[np.float64]

BLUR = 0.02
"""Standard deviation of ln T between configurations of one system, half of them or twice as many."""
REPEATS = 0.002
"""Standard deviation of ln T between repeats of one configuration."""
START_SECONDS = 5.0
"""Time before the first step of an epoch, where its share can grow no more: a data set has 500 steps or more."""
FEWEST_STEPS = 500
GROWTH, GROWTH_FACTOR = 0.03, 3.0
"""Usual exponent a of T, and the factor of its standard deviation."""
UNLIKELY = 0.05
"""Probability of being fed below which a forecast is not made under the condition that the system feeds the count."""
FARTHEST = 300.0
"""Largest ratio of requested to measured accelerators; published pairs reach 288."""
DRAWS = 2000
EXPONENTS = np.geomspace(1e-5, 1, 500)
"""Exponents at which their probability is computed."""


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

    @property
    def rate_without_waiting(self) -> float:
        """Of one accelerator, whose epochs have their start."""
        return self.rate / self.count * self.cycle


@dataclass(frozen=True)
class Range:
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class IfFed:
    """A forecast under the condition that the count keeps the limit."""

    utilisation: Range
    rate: Range


@dataclass(frozen=True)
class Feeding:
    """A forecast. `fed`: probability that the count keeps the limit; `if_fed`: None for a count that was measured or
    enclosed, and where the condition hardly ever holds or changes next to nothing."""

    count: int
    utilisation: Range
    rate: Range
    fed: float
    if_fed: IfFed | None


def largest(measured: Sequence[Fed]) -> Fed:
    return max(measured, key=lambda one: one.count)


def growth(measured: Sequence[Fed]) -> float | None:
    """Exponent a between the two largest counts, 0 to 1; None from one count."""
    if len(measured) < 2:
        return None
    before, last = sorted(measured, key=lambda one: one.count)[-2:]
    return min(1.0, max(0.0, math.log(last.cycle / before.cycle) / math.log(last.count / before.count)))


@dataclass(frozen=True)
class FeedingQuestion:
    """What forecasts of several counts have in common.

    measured: of one system, workload and accelerator, each count once. limit: utilisation that counts as fed. hosts:
    among which accelerators are spread; those of the largest measurement unless given. step_seconds: computation of a
    step, where it is known. level: of intervals. built_for: utilisation that such systems are built to keep, since
    results below it are not published; the limit unless given. What is required of a forecast doesn't change it."""

    measured: Sequence[Fed]
    limit: float
    hosts: int | None = None
    step_seconds: float | None = None
    level: float = 0.9
    built_for: float | None = None

    @property
    def usual_limit(self) -> float:
        return self.built_for or self.limit

    def feeding(self, count: int) -> Feeding:
        """The forecast for a count of accelerators. @raises InputError for one too far beyond what was measured"""
        last = largest(self.measured)
        if count > FARTHEST * last.count:
            raise InputError(
                f"{count} accelerators are {count / last.count:.0f} times the {last.count} measured; forecasts reach "
                f"{FARTHEST:.0f} times. Measure {math.ceil(count / FARTHEST)} accelerators or more."
            )
        cycles = self.cycles(count)
        rates = self._rates(count, cycles)
        kept = cycles <= 1 / self.limit
        fed = float(np.mean(kept))
        conditional = count > last.count and UNLIKELY <= fed < 1 - UNLIKELY
        return Feeding(
            count,
            self._range(1 / cycles),
            self._range(rates),
            fed,
            IfFed(self._range(1 / cycles[kept]), self._range(rates[kept])) if conditional else None,
        )

    def most_fed(self) -> Most:
        """How many accelerators keep the limit."""
        found = [self._most_with(chance) for chance in (0.5, (1 + self.level) / 2, (1 - self.level) / 2)]
        return Most(found[0], found[1], found[2])

    def _most_with(self, chance: float) -> int | None:
        """Largest count that keeps the limit with this probability; None beyond FARTHEST times the measured ones."""

        def keeps(count: int) -> bool:
            return float(np.mean(self.cycles(count) <= 1 / self.limit)) >= chance

        counts = [0, *sorted(one.count for one in self.measured), int(FARTHEST * largest(self.measured).count)]
        place = max(number for number, count in enumerate(counts) if count == 0 or keeps(count))
        if place == len(counts) - 1:
            return None
        met, missed = counts[place : place + 2]
        while missed - met > 1:
            middle = (met + missed) // 2
            met, missed = (middle, missed) if keeps(middle) else (met, middle)
        return met

    def _range(self, draws: Draws) -> Range:
        low, value, high = np.quantile(draws, ((1 - self.level) / 2, 0.5, (1 + self.level) / 2))
        return Range(float(value), float(low), float(high))

    def _around(self, count: int) -> tuple[Fed | None, Fed | None]:
        """The nearest measured counts up to this one, and from it on."""
        below = [one for one in self.measured if one.count <= count]
        above = [one for one in self.measured if one.count >= count]
        return (largest(below) if below else None), min(above, key=lambda one: one.count) if above else None

    def cycles(self, count: int) -> Draws:
        """Draws of T at a count."""
        below, above = self._around(count)
        chances, errors = _standard()[:2]
        if below and above:
            return _between(below, above, count, chances, errors)
        nearest = below or above
        assert nearest is not None
        noise = _noise(count, nearest) * errors
        exponents = self._exponents() if below else self._exponents_below()
        found = nearest.cycle * np.exp(exponents * self._logarithm(count, nearest) + noise)
        return np.maximum(1.0, found if above else self._with_room_used(found, nearest, count))

    def _with_room_used(self, cycles: Draws, last: Fed, count: int) -> Draws:
        """The draws, of which those that keep the limit use any share of the room between the measured T and the limit,
        in their order: systems are built for counts that they just feed. Up to twice the count the room grows."""
        room = 1 / self.usual_limit - last.cycle
        kept = cycles <= 1 / self.usual_limit
        if room <= 0 or not np.any(kept):
            return cycles
        order = np.argsort(np.argsort(cycles[kept]))
        shares = (order + 0.5) / len(order) * min(1.0, math.log2(count / last.count))
        used = (last.cycle + room * shares) * np.exp(_blur(count, last.count) * _standard()[3][kept])
        found = np.array(cycles)
        found[kept] = np.minimum(used, 1 / self.usual_limit)
        return found

    def _logarithm(self, count: int, nearest: Fed) -> float:
        """Of the count over the measured one. Hosts that are added share what a host could not read, and not what
        servers could not: growth is halfway, on a logarithmic scale, between that of the accelerators of a host and
        that of all."""
        whole = math.log(count / nearest.count)
        if count <= nearest.count or not self.hosts or not nearest.hosts or self.hosts <= nearest.hosts:
            return whole
        return (whole + max(0.0, whole - math.log(self.hosts / nearest.hosts))) / 2

    def _exponents(self) -> Draws:
        """Draws of a."""
        return _exponents_of(growth(self.measured), self._usual(), _noise_of_growth(self.measured))

    def _exponents_below(self) -> Draws:
        """Draws of a below the smallest count: from 0 to that between the two smallest, as it does not fall with the
        count, and more often near 0, which it nears where nobody waits for another."""
        smallest = sorted(self.measured, key=lambda one: one.count)[:2]
        found = growth(smallest)
        if found is None:
            return self._exponents()
        chances, errors = _standard()[0], _standard()[3]
        return chances**2 * np.maximum(0.0, found + _noise_of_growth(smallest) * errors)

    def _usual(self) -> float:
        """Median of a before several counts are compared."""
        return max(GROWTH, 1 - largest(self.measured).utilisation / self.usual_limit)

    def _rates(self, count: int, cycles: Draws) -> Draws:
        """Draws of the rate of all accelerators."""
        below, above = self._around(count)
        if below and above:
            share = _share(below, above, count)
            each = below.rate_without_waiting ** (1 - share) * above.rate_without_waiting**share
            rates: Draws = count * each / cycles
            return rates
        nearest = below or above
        assert nearest is not None
        likely = self._start(nearest, count)
        starts = nearest.start + 2 * (likely - nearest.start) * _standard()[2]
        return count * nearest.rate_without_waiting * nearest.start / (starts * cycles)

    def _start(self, nearest: Fed, count: int) -> float:
        """Time of an epoch over that of its steps. The data set stays, so each of more accelerators takes fewer steps,
        down to the fewest that the benchmark allows."""
        share = nearest.start - 1
        most = START_SECONDS / (FEWEST_STEPS * self.step_seconds) if self.step_seconds else share
        return 1 + max(share, min(share * count / nearest.count, most))


@dataclass(frozen=True)
class Most:
    """How many accelerators keep the limit: with a probability of a half at least, and with those of the ends of the
    interval. None is not known: it lies beyond FARTHEST times what was measured."""

    value: int | None
    low: int | None
    high: int | None


@cache
def _standard() -> tuple[Draws, Draws, Draws, Draws]:
    """DRAWS of a uniform, a normal, another uniform and another normal variable: points of a lattice that fills the
    unit cube evenly (an additive recurrence by powers of the root of x^5 = x + 1)."""
    root = 1.1673039782614187
    cube = (0.5 + np.outer(1 / root ** np.arange(1, 5), np.arange(DRAWS))) % 1
    return cube[0], ndtri(cube[1]), cube[2], ndtri(cube[3])


@cache
def _exponents_of(found: float | None, usual: float, noise: float) -> Draws:
    """Draws of a. Before, its logarithm is normal, and what lies above 1 is 1.

    @param found exponent between two counts: the mean of one that does not fall, so anywhere from 0 to a
    @param noise standard deviation of that"""
    below = ndtr(np.log(EXPONENTS / usual) / math.log(GROWTH_FACTOR))
    weights = np.diff(below, prepend=0.0)
    weights[-1] += 1 - below[-1]
    if found is not None:
        weights *= (ndtr((EXPONENTS - found) / noise) - ndtr(-found / noise)) / EXPONENTS
    return np.interp(_standard()[0], np.cumsum(weights) / np.sum(weights), EXPONENTS)


def _noise_of_growth(measured: Sequence[Fed]) -> float:
    """Standard deviation of `growth`; 0 from one count."""
    if len(measured) < 2:
        return 0.0
    before, last = sorted(measured, key=lambda one: one.count)[-2:]
    return math.sqrt(2) * BLUR / math.log(last.count / before.count)


def _blur(count: int, nearest: int) -> float:
    """BLUR as far as the count differs from the nearest measured one: its variance grows with the logarithm."""
    return BLUR * math.sqrt(min(1.0, abs(math.log2(count / nearest))))


def _noise(count: int, nearest: Fed) -> float:
    """Standard deviation of ln T at a count, of which a repeat of the nearest one was measured."""
    return math.hypot(REPEATS, _blur(count, nearest.count))


def _share(below: Fed, above: Fed, count: int) -> float:
    """Where a count lies between two, on a logarithmic scale."""
    return math.log(count / below.count) / math.log(above.count / below.count) if below.count < above.count else 0.0


def _between(below: Fed, above: Fed, count: int, chances: Draws, errors: Draws) -> Draws:
    """Draws of T between two measured counts, or at one: on their line in logarithms, bent to either side, as far as
    throughput doesn't fall."""
    share = _share(below, above, count)
    bends = GROWTH_FACTOR ** ndtri(chances)
    bent = below.cycle * (above.cycle / below.cycle) ** (share**bends)
    line = below.cycle * (above.cycle / below.cycle) ** share
    least, most = above.cycle * count / above.count, below.cycle * count / below.count
    noise = min(_noise(count, below), _noise(count, above))
    found: Draws = np.clip(bent, min(least, line), max(most, line)) * np.exp(noise * errors)
    return np.maximum(1.0, found)

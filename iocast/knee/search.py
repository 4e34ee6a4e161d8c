# SPDX-License-Identifier: Apache-2.0
"""Which load to try next, and what the loads tried so far say of the knee (docs/knee.md). Nothing here runs anything,
and the state of a search is no more than the list of its observations: a search that was killed goes on from what it
had seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr

GROWTH = 2.0
"""From load to load while the knee is not yet enclosed. An open loop that is so much above what it could keep up takes
as much longer."""
OUTLIERS = 0.02
"""Share of the observations that say nothing of the load: somebody else's job, a flush of caches."""
SPREADS = np.geomspace(0.01, 0.3, 10)
"""Of the load at which one observation would turn, as standard deviations of its logarithm."""
STEPS = 600  # of the grid of loads
ASIDE = (0.2, 0.8)
"""Quantiles of the knee that are tried in turn. At the median alone one would never learn how sharply the answers
turn."""

ALLOWED = 1  # misses among the runs that confirm

Purpose = Literal["bracket", "search", "confirm"]


@dataclass(frozen=True)
class Observation:
    """`met`: the levels held at this load; or in a search for the greatest power, it still rose there. `attempt` counts
    confirmations."""

    load: float
    met: bool
    purpose: Purpose = "search"
    attempt: int = 0


@dataclass(frozen=True)
class Limits:
    """lowest: an unloaded system. cap: the load that the ranks can't exceed, inf if there is none. precision: high /
    low - 1 that is narrow enough. confirms: whether the end is a load at which fresh runs must meet the levels, and not
    the estimate itself."""

    lowest: float
    cap: float
    confidence: float = 0.9
    precision: float = 0.1
    confirms: bool = True

    @property
    def unanimous(self) -> int:
        """Number of observations in a row, all met or all missed, that count as an answer by themselves: at a load
        where an observation is as likely met as missed, that happens with a probability of at most 1 - confidence."""
        return math.ceil(-math.log2(1 - self.confidence) - 1e-9)


@dataclass(frozen=True)
class Ask:
    load: float
    purpose: Purpose
    attempt: int = 0


@dataclass(frozen=True)
class Done:
    """reason: "narrow" (as precise as requested), "time", "never met" or "always met". answer: the load to state, None
    when none met. The knee is between low and high with the requested confidence; an end that is None is open."""

    reason: str
    answer: float | None
    estimate: float | None
    low: float | None
    high: float | None
    confirmed: int  # fresh runs at the answer, at most one of them missed


@dataclass(frozen=True)
class Belief:
    """Where the knee is, after Bayes."""

    low: float
    median: float
    high: float
    aside: tuple[float, ...] = ()


def believe(seen: Sequence[Observation], limits: Limits) -> Belief:
    """The knee K is the load at which an observation is met with probability one half. At load x it is met with

        P(met) = o / 2 + (1 - o) Phi((ln K - ln x) / s),

    Phi the normal distribution function and o the share of outliers: the psychometric function (Watson & Pelli, QUEST,
    Perception & Psychophysics 33, 1983). K and s are unknown; before anything was seen, ln K is uniform over the loads
    tried with a margin on both sides, ln s uniform over SPREADS. Asking at the median of K is probabilistic bisection
    (Horstein 1963; Waeber, Frazier & Henderson, SIAM J. Control Optim. 51, 2013) whose error probability is learned
    with the load's distance."""
    loads = [o.load for o in seen]
    bottom, top = min(loads) / GROWTH, min(max(loads), limits.cap) * GROWTH
    knees = np.geomspace(bottom, top, STEPS)
    steepness = np.log(knees)[:, None] / SPREADS
    logs = np.zeros((STEPS, len(SPREADS)))
    for load in set(loads):
        chance = OUTLIERS / 2 + (1 - OUTLIERS) * ndtr(steepness - math.log(load) / SPREADS)
        met = sum(o.met for o in seen if o.load == load)
        missed = sum(not o.met for o in seen if o.load == load)
        logs += met * np.log(chance) + missed * np.log1p(-chance)
    weights = np.exp(logs - np.max(logs)).sum(axis=1)
    sums = np.cumsum(weights) / np.sum(weights)
    tail = (1 - limits.confidence) / 2
    low, median, high, *aside = (
        float(knees[min(int(np.searchsorted(sums, p)), STEPS - 1)]) for p in (tail, 0.5, 1 - tail, *ASIDE)
    )
    return Belief(low, median, high, tuple(aside))


def decide(seen: Sequence[Observation], limits: Limits, *, hurry: bool = False) -> Ask | Done:
    """The next load, or the end. In a `hurry` what is left of the time goes to confirming."""
    if not seen:
        return Ask(limits.lowest, "bracket")
    old, fresh, attempts = _split(seen, limits)
    if not any(o.met for o in old):
        if sum(o.load == limits.lowest for o in old) >= limits.unanimous:
            return Done("never met", None, None, None, limits.lowest, 0)
        return Done("time", None, None, None, limits.lowest, 0) if hurry else Ask(limits.lowest, "bracket")
    highest = max(o.load for o in old)
    if all(o.met for o in old):
        if sum(o.load == highest for o in old) >= limits.unanimous and highest >= limits.cap:
            return Done("always met", highest, None, highest, None, 0)
        if not hurry:
            return Ask(rounded(highest * GROWTH) if highest * GROWTH < limits.cap else limits.cap, "bracket")
        return _confirm(Belief(highest, highest, math.inf), old, fresh, attempts, limits, "time")
    belief = believe(old, limits)
    narrow = min(belief.high, limits.cap) <= (1 + limits.precision) * belief.low
    if narrow or hurry:
        return _confirm(belief, old, fresh, attempts, limits, "narrow" if narrow else "time")
    return Ask(min(rounded(belief.aside[len(old) % len(ASIDE)]), limits.cap), "search")


def _split(seen: Sequence[Observation], limits: Limits) -> tuple[list[Observation], list[Observation], int]:
    """What the search knows, the runs of the confirmation that is going on, and the number of attempts before it. An
    attempt ends with its second miss, or when the search goes on because it was given more time; its runs are then
    evidence like others."""
    place = len(seen)
    while place > 0 and seen[place - 1].purpose == "confirm" and seen[place - 1].attempt == seen[-1].attempt:
        place -= 1
    if sum(not o.met for o in seen[place:]) > ALLOWED:
        place = len(seen)
    old = [o for o in seen[:place] if limits.confirms or o.purpose != "confirm"]
    return old, list(seen[place:]), max((o.attempt for o in seen[:place]), default=0)


def fresh_runs(limits: Limits, attempt: int) -> int:
    """Runs that must meet the levels at the answer, with at most one miss beside them. At a load where half of the runs
    miss, n runs are met before the second miss with a probability of (n + 2) / 2^(n+1). Each attempt asks for one more
    run than the one before, which makes less than 0.57 of the
    probability: all attempts together stay below 1 - confidence."""
    n = 1
    while (n + 2) / 2 ** (n + 1) > 0.43 * (1 - limits.confidence):
        n += 1
    return n + attempt - 1


def _confirm(
    belief: Belief, old: Sequence[Observation], fresh: Sequence[Observation], attempts: int, limits: Limits, reason: str
) -> Ask | Done:
    """With the answer's own runs."""
    if limits.confirms:
        missed = [(o.attempt, o.load) for o in old if o.purpose == "confirm" and not o.met]
        failed_at = min((load for attempt, load in missed if missed.count((attempt, load)) > ALLOWED), default=math.inf)
        answer = rounded(min(belief.low, limits.cap, failed_at / (1 + limits.precision / 4)), down=True)
        needed = fresh_runs(limits, attempts + 1)
    else:
        answer, needed = rounded(min(belief.median, limits.cap)), limits.unanimous
    if sum(o.met for o in fresh) < needed:
        return Ask(answer, "confirm", attempts + 1)
    high = belief.high if belief.high <= limits.cap and belief.high < math.inf else None
    return Done(reason, answer, rounded(min(belief.median, limits.cap)), min(answer, belief.low), high, len(fresh))


def unfinished(seen: Sequence[Observation], limits: Limits) -> Done:
    """The answer when there is no time left, not even to confirm."""
    end = decide(seen, limits, hurry=True) if seen else Ask(limits.lowest, "bracket")
    if isinstance(end, Done):
        return end
    if not any(o.met for o in seen):
        return Done("time", None, None, None, limits.lowest if seen else None, 0)
    if all(o.met for o in seen):
        return Done("time", max(o.load for o in seen), None, max(o.load for o in seen), None, 0)
    belief = believe(seen, limits)
    return Done(
        "time",
        end.load,
        rounded(min(belief.median, limits.cap)),
        min(end.load, belief.low),
        belief.high if belief.high <= limits.cap else None,
        0,
    )


def rounded(value: float, *, down: bool = False) -> float:
    """To four significant digits: loads that people can type again."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 3)
    return float(f"{(math.floor(value / unit + 1e-9) if down else round(value / unit)) * unit:.10g}")

# SPDX-License-Identifier: Apache-2.0
"""The search itself, on queues whose knee has a closed form: how often its interval contains the knee, and what it does
at the ends."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from schedule import mostly_long
import sharpness
from knee_inputs import knee_of_queue, responses
from scipy.optimize import brentq
from scipy.stats import binom

from iocast.knee import judge
from iocast.knee.search import Ask, Done, Limits, Observation, believe, decide, fresh_runs, rounded, unfinished
from iocast.knee.words import knee_text
from iocast.records.run import Phase

FALSE_ALARM = 1e-6
SEARCHES = 60


def at_least(share: float) -> int:
    """Least number of SEARCHES that succeed when each does with this probability, but for FALSE_ALARM."""
    least = int(binom.ppf(FALSE_ALARM, SEARCHES, share))
    sharpness.fewer_than("share of searches", least, SEARCHES)
    return least


def waits_at_most(time: float, rate: float) -> float:
    """Of an M/D/1 queue with service time 1 (Erlang 1909): P(W <= t) = (1 - rho) sum over k <= t of (rho (k - t))^k /
    k! exp(-rho (k - t))."""
    return (1 - rate) * math.fsum(
        (rate * (k - time)) ** k / math.factorial(k) * math.exp(-rate * (k - time)) for k in range(math.floor(time) + 1)
    )


def search(met: Callable[[float], bool], limits: Limits, most: int = 300) -> tuple[Done, list[Observation]]:
    seen: list[Observation] = []
    while len(seen) < most:
        step = decide(seen, limits)
        if isinstance(step, Done):
            return step, seen
        seen.append(Observation(step.load, met(step.load), step.purpose, step.attempt))
    return unfinished(seen, limits), seen


@pytest.mark.parametrize(
    ("quantile", "limit"), mostly_long([(0.95, 4.0), (0.5, 1.5)], [(0.95, 4.0)], "another quantile of the queue")
)
def test_intervals_contain_the_knee_of_a_queue(quantile: float, limit: float) -> None:
    """The load at which a quantile of the response time of M/D/1 is at its limit, against Erlang's formula."""
    knee = brentq(lambda rate: waits_at_most(limit - 1, rate) - quantile, 0.01, 0.95)
    inside = good = 0
    for seed in range(SEARCHES):
        random = np.random.Generator(np.random.Philox(seed))
        done, seen = search(
            lambda rate: bool(rate < 5 and np.quantile(responses(rate, 3000, random), quantile) < limit),
            Limits(0.05, math.inf, 0.9, 0.2),
        )
        assert done.reason == "narrow" and done.low is not None and done.high is not None and done.answer is not None, (
            done,
            len(seen),
        )
        inside += done.low <= knee <= done.high
        good += done.answer <= knee
    assert inside >= at_least(0.9), inside
    assert good >= at_least(0.9), good


@pytest.mark.parametrize("spread", mostly_long([0.001, 0.1], [0.1], "loads of less noise"))
def test_intervals_contain_a_knee_anywhere(spread: float) -> None:
    inside = good = runs = 0
    for seed in range(SEARCHES):
        random = np.random.Generator(np.random.Philox(seed))
        knee = math.exp(random.uniform(0, 5))
        done, seen = search(
            lambda load: bool(load * math.exp(spread * random.standard_normal()) < knee),
            Limits(0.2, math.inf, 0.9, 0.2),
        )
        inside += done.low is not None and done.high is not None and done.low <= knee <= done.high
        good += done.answer is not None and done.answer <= knee
        runs += len(seen)
    assert inside >= at_least(0.9), inside
    assert good >= at_least(0.9), good
    assert runs / SEARCHES < 60


def test_confirming_rarely_takes_a_bad_load() -> None:
    """n met before the second miss, each with probability 1/2, over all attempts together."""
    for confidence in (0.8, 0.9, 0.99, 0.999):
        chance = 0.0
        for attempt in range(1, 60):
            n = fresh_runs(Limits(1, math.inf, confidence), attempt)
            chance += binom.pmf(0, n, 0.5) + n * 0.5 ** (n + 1)
        assert chance <= 1 - confidence, confidence


def test_the_ends() -> None:
    nothing, seen = search(lambda load: False, Limits(0.5, math.inf))
    assert nothing == Done("never met", None, None, None, 0.5, 0) and len(seen) == Limits(0.5, math.inf).unanimous
    everything, seen = search(lambda load: True, Limits(0.5, 8.0))
    assert everything.reason == "always met" and everything.answer == everything.low == 8.0 and everything.high is None
    assert sorted({o.load for o in seen}) == [0.5, 1, 2, 4, 8]
    # At the cap half of the runs miss: the knee may be there or above.
    close, _ = search(lambda load: load < 7.9, Limits(0.5, 8.0))
    assert close.reason == "narrow" and close.low is not None and 6 < close.low < 8


def test_time_that_runs_out() -> None:
    limits = Limits(1, math.inf)
    assert unfinished([], limits).answer is None
    met = [Observation(1, True, "bracket"), Observation(2, True, "bracket")]
    assert (end := unfinished(met, limits)).answer == 2 and end.high is None and end.confirmed == 0
    confirmed = decide([*met, *[Observation(2, True, "confirm", 1)] * fresh_runs(limits, 1)], limits, hurry=True)
    assert (
        isinstance(confirmed, Done)
        and confirmed.answer == 2
        and confirmed.high is None
        and confirmed.confirmed == fresh_runs(limits, 1)
    )
    seen = [*met, Observation(4, False, "bracket")]
    step = decide(seen, limits, hurry=True)
    assert isinstance(step, Ask) and step.purpose == "confirm" and step.load < 4
    seen += [Observation(step.load, True, "confirm", 1)] * fresh_runs(limits, 1)
    done = decide(seen, limits, hurry=True)
    assert isinstance(done, Done) and done.reason == "time" and done.confirmed == fresh_runs(limits, 1)
    # With more time the search goes on, and what had confirmed is evidence like any other.
    again = decide(seen, limits)
    assert isinstance(again, Ask) and again.purpose == "search"
    assert believe(seen, limits).low > believe(seen[:3], limits).low


def test_two_misses_end_a_confirmation() -> None:
    limits = Limits(1, math.inf)
    seen = [
        Observation(x, x < 4, "search") for x in (1, 2, 3, 3.5, 3.7, 3.8, 3.9, 4.1, 4.2, 4.3, 5, 8) for _ in range(3)
    ]
    step = decide(seen, limits)
    assert isinstance(step, Ask) and step.purpose == "confirm" and step.attempt == 1
    once = [*seen, Observation(step.load, False, "confirm", 1)]
    assert decide(once, limits) == step
    after = decide([*once, Observation(step.load, False, "confirm", 1)], limits, hurry=True)
    assert isinstance(after, Ask) and after.attempt == 2 and after.load < step.load


def test_loads_are_rounded() -> None:
    assert [rounded(x) for x in (123456.0, 0.00123456, 999.96)] == [123500.0, 0.001235, 1000.0]
    assert rounded(1.2349, down=True) == 1.234


def test_the_greatest_power_of_a_queue(tmp_path: Path) -> None:
    """Power rho / (1 + rho / (2 (1 - rho))) of M/D/1 is greatest at rho = 2 - sqrt 2 (Kleinrock 1979, section 3)."""
    knee, inside = 2 - math.sqrt(2), 0
    for seed in range(SEARCHES):
        answer = knee_of_queue(tmp_path, [], seed, precision=0.3)
        assert answer["reason"] == "narrow"
        inside += answer["knee"]["low"] <= knee <= answer["knee"]["high"]
    assert inside >= at_least(0.9), inside


def test_falling_behind_is_seen() -> None:
    """A rank's 400 arrivals at 100/s last 4 s with a standard deviation of 5 %; those of 4 ranks together of 2.5 %."""

    def phase(longer: float) -> Phase:
        return Phase("p", 1, 4.0, 1600, 0, 400.0, {}, rank_seconds=[4 * longer] * 4)

    assert judge._kept_up(phase(1.0), 100, 4, 0.001, True) and judge._kept_up(phase(1.09), 100, 4, 0.001, True)
    assert not judge._kept_up(phase(1.2), 100, 4, 0.001, True)
    assert judge._kept_up(phase(1.01), 100, 4, 0.001, False) and not judge._kept_up(phase(1.05), 100, 4, 0.001, False)


def test_a_search_for_the_greatest_power_that_never_saw_power_rise_speaks_of_power() -> None:
    load = {"load": 1.0, "asking": 1.0, "waiting_factor": 1.0, "runs": ["a"], "rate": 10.0, "response": 0.1}
    load |= {"power": None, "values": {}, "cut_off": False, "kept_up": 1, "met": 0}
    knee = {"workload": "w", "over": "waiting_factor", "placement": {"ranks": 2}, "levels": [], "confidence": 0.9}
    knee |= {
        "reason": "never met",
        "answer": None,
        "knee": {"estimate": None, "low": None, "high": 1.0},
        "loads": [load],
    }
    knee |= {"unloaded": load, "bounds": None, "runs": 3, "seconds": 6.0, "notes": []}
    knee |= {"phase": "p", "operations": ["create"]}
    for reason in ("never met", "time"):
        text = knee_text({**knee, "reason": reason})
        assert "Power was not seen to rise" in text and "level" not in text and "(median)" not in text

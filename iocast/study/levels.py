# SPDX-License-Identifier: Apache-2.0
"""Service levels: sentences such as `p99(create) < 50 ms` that a design must keep."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from iocast.errors import InputError
from iocast.records.quantities import ACCELERATORS, SHARES_OF_TIME, odds, share_of
from iocast.ground.strict import NUMBER, shown
from iocast.ground.strict_yaml import allowed_sentence

STATISTICS = {
    "mean": "mean",
    "median": "q50",
    "p25": "q25",
    "p50": "q50",
    "p75": "q75",
    "p95": "q95",
    "p99": "q99",
    "p99.9": "q999",
    "max": "max",
}
"""Of the response times of an operation, by the name that a level uses."""
FUNCTIONS = (*STATISTICS, "rate", "time", "bandwidth", "utilisation", *ACCELERATORS)
LOWER = ("rate", "bandwidth", "au", "samples", "accelerator_bandwidth")
"""Functions whose levels are lower limits."""
ANY, ALL = "any", "all"
"""Subjects beside operations: the worst of all operations (response times), all operations together (rates)."""
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_RATES = {"/s": 1.0, "k/s": 1e3, "M/s": 1e6, "G/s": 1e9, "/ms": 1e3, "/min": 1 / 60}
_BYTES = {
    "B/s": 1.0,
    "kB/s": 1e3,
    "MB/s": 1e6,
    "GB/s": 1e9,
    "TB/s": 1e12,
    "KiB/s": 2.0**10,
    "MiB/s": 2.0**20,
    "GiB/s": 2.0**30,
    "TiB/s": 2.0**40,
}
_SHARES = {"%": 0.01, "": 1.0}
_FORM = re.compile(rf"([\w.]+)(?:\s*\(\s*([^()\s][^()]*)\))?\s*(<=|>=|<|>|==?)\s*({NUMBER})\s*((?:[^\s\d]\S*)?)")
MAX_LEVEL = 200
"""Characters of a level's text."""
_BITS = re.compile(r"([kMGT]?i?)b(?:it)?(?:/s|ps)")
EXAMPLE = "write a level such as 'p99(create) < 50 ms' or 'rate(create) >= 20k/s'"


@dataclass(frozen=True)
class Level:
    """`quantity` is what an evaluation calls it, `limit` in SI units; `upper`: the quantity must stay below.

    places: workloads that it is about, each with a scale at which it must hold, smallest first. named_scales,
    named_workloads: what the study names for it, each of which must have a place. under: the scenario, "" for normal
    service."""

    text: str
    quantity: str
    limit: float
    upper: bool
    places: tuple[tuple[str, str], ...] = ()
    named_scales: tuple[str, ...] = ()
    named_workloads: tuple[str, ...] = ()
    under: str = ""
    why: str = ""

    @property
    def name(self) -> str:
        return self.text + (f" with {self.under}" if self.under else "")

    @property
    def workloads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(workload for workload, _ in self.places))

    @property
    def at(self) -> tuple[str, ...]:
        """Scales, of whichever workload."""
        return tuple(dict.fromkeys(scale for _, scale in self.places))

    def named_without_place(self) -> tuple[str, str] | None:
        """The first scale or workload that is named for it and has no place, as its kind and name."""
        scales = [("scale", name) for name in self.named_scales if name not in self.at]
        return next(iter(scales + [("workload", n) for n in self.named_workloads if n not in self.workloads]), None)

    @property
    def subject(self) -> str:
        return self.quantity.rpartition(".")[0]

    @property
    def kind(self) -> str:
        """The kind of quantity, as calibrations tell their errors by: rate, q50, q75, q95, q99 or max."""
        return kind_of(self.quantity)

    @property
    def by_odds(self) -> bool:
        """Whether its margin is a factor of the odds."""
        return self.quantity in SHARES_OF_TIME and self.limit < 1

    def margin(self, value: float) -> float:
        """How far the value is on the good side, as the logarithm of a factor; negative when the level is missed. Of
        shares of time the factor is of the time that steps wait over the time that they compute: a utilisation ends at
        100 %, so that a model's error can't be a factor of it."""
        if self.by_odds:
            value, limit = odds(value), odds(self.limit)
        else:
            limit = self.limit
        if value <= 0:
            return -MOST if not self.upper else MOST
        margin = math.log(limit / value) if self.upper else math.log(value / limit)
        return max(-MOST, min(MOST, margin))

    def moved(self, value: float, margin: float) -> float:
        """The value whose margin is larger by so much than that of `value`."""
        factor = math.exp(-margin if self.upper else margin)
        return share_of(odds(value) * factor) if self.by_odds else value * factor


MOST = 7.0
"""A margin of a factor 1000 either way; nothing hangs on more."""


def kind_of(quantity: str) -> str:
    """rate, q50, q75, q95, q99 or max: calibrations know their errors by these."""
    which = quantity.rpartition(".")[2]
    return {"mean": "q75", "q25": "q50", "q999": "max", "seconds": "rate"}.get(
        which, which if which.startswith("q") or which == "max" else "rate"
    )


def parse_level(text: str) -> Level:
    """@raises InputError without file and line: the caller knows them"""
    if len(text) > MAX_LEVEL:
        raise InputError(f"{shown(text)} is no level, with {len(text)} characters; {EXAMPLE}")
    found = _FORM.fullmatch(text.strip())
    if not found:
        raise InputError(f"'{text}' is no level; {EXAMPLE}")
    function, subject, comparison, value, unit = found.groups()
    if function not in FUNCTIONS:
        raise InputError(f"'{text}' is a level on '{function}'. {allowed_sentence(function, FUNCTIONS)[:-1]}")
    if (subject is None) != (function in ACCELERATORS):
        raise InputError(
            f"'{text}' is no level; {EXAMPLE}" if subject is None
            else f"'{text}' names an operation; {function} is of accelerators: '{function} >= 90 %' has no parentheses"
        )  # fmt: skip
    subject = (subject or ALL).strip()
    if "<" not in comparison and ">" not in comparison:
        raise InputError(f"'{text}' compares with '{comparison}', which no measurement ever meets; use <, <=, > or >=")
    if function == "rate" and subject == ANY:
        raise InputError(f"'{text}' limits the rate of any operation; that of all together is rate({ALL})")
    if function == "rate":
        units, quantity = _RATES, "rate" if subject == ALL else f"{subject}.rate"
    elif function == "time":
        units, quantity = _SECONDS, "seconds"
    elif function == "bandwidth":
        units, quantity = _BYTES, f"{subject}.bandwidth"
        if subject not in ("read", "write"):
            raise InputError(
                f"'{text}' is a level on the bandwidth of '{subject}'. "
                f"{allowed_sentence(subject, ('read', 'write'))[:-1]}"
            )
    elif function in ACCELERATORS:
        units, quantity = {"share": _SHARES, "rate": _RATES, "bytes": _BYTES}[ACCELERATORS[function]], function
    elif function == "utilisation":
        units, quantity = _SHARES, f"{subject}.utilisation"
    else:
        units, quantity = _SECONDS, f"{subject}.{STATISTICS[function]}"
    scale = units.get(unit)
    if scale is None and unit[:1] in "kMG" and unit[1:] in units:  # "20k /s" and the like
        scale = {"k": 1e3, "M": 1e6, "G": 1e9}[unit[0]] * units[unit[1:]]
    bits = _BITS.fullmatch(unit)
    if scale is None and bits and function == "bandwidth":
        meant = f"{float(value) / 8:.6g} {bits[1]}B/s"
        raise InputError(
            f"'{text}' is in bits; data are counted in bytes, bits in links of a platform alone. As bytes it is {meant}"
        )
    if scale is None:
        has = f"has the unit '{unit}'" if unit else "has no unit"
        raise InputError(f"'{text}' {has}. {allowed_sentence(unit, [u for u in units if u])[:-1]}")
    limit = float(value) * scale
    if limit <= 0 or not math.isfinite(limit):
        raise InputError(f"'{text}' has a limit that nothing can be held against; it must be above zero")
    if units is _SHARES and limit > 1:
        meant = f", such as {value} %" if not unit and limit <= 100 else ""
        raise InputError(f"'{text}' has a limit of {100 * limit:g} %; a share of time is at most 100 %{meant}")
    upper = "<" in comparison
    if upper and function in LOWER:
        raise InputError(f"'{text}' is an upper limit; a level on {function} is a lower one, with >=")
    if not upper and function not in LOWER:
        raise InputError(f"'{text}' is a lower limit; a level on {function} is an upper one, with <")
    return Level(" ".join(text.split()), quantity, limit, upper)


def stated_twice(levels: list[Level]) -> str | None:
    """A sentence on the first two levels that limit one thing at one place; None when there are none."""
    for i, one in enumerate(levels):
        for other in levels[i + 1 :]:
            if (one.quantity, one.under) != (other.quantity, other.under) or not set(one.places) & set(other.places):
                continue
            workload, scale = next(place for place in one.places if place in other.places)
            where = f"for the workload '{workload}' at the scale '{scale}'"
            if one.text == other.text:
                return f"the level '{one.text}' is there twice {where}; keep one"
            what = "are the same level" if math.isclose(one.limit, other.limit) else "are two limits of one quantity"
            return f"'{one.text}' and '{other.text}' {what} {where}; keep one"
    return None

# SPDX-License-Identifier: Apache-2.0
"""What stands beside a forecast's rate, of one system with it (docs/answers.md, "One system"). Utilisation, time at
stations, time line and course are those of a run or solution of the model. Its rate is not the printed one where the
forecast is corrected: by more seeds and draws, by residuals, simple rules or the ceiling. `Correction` decides what
the parts are at the printed rate, for forecasts and studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Protocol, TypedDict

from iocast.rules import blend
from iocast.runs import limits_of
from iocast.runs.limits_of import Kind, Limit
from iocast.records.note import LinkFull
from iocast.records.forecast import CourseRow, Ends, Timeline
from iocast.records.simulated import BusyLink, SimulatedPhase, time_line
from iocast.wording.notes_of_answers import link_name
from iocast.wording.text import quantity
from iocast.records.platform import ResolvedPlatform

if TYPE_CHECKING:  # its libraries take a second to load
    from iocast.analytic import Solution

NO_LIMIT = Limit(None, "")
CLOSE = 1.1
"""Factor of a rate, either way, up to which the model's waits and its limit count for the corrected system, too.
Chosen by hand: a calibrated platform is mostly off by less where it was measured."""
WAITS = ("wait", "lock_wait", "stall", "lost")
"""Parts of an operation's time at a station beside its service."""


@dataclass(frozen=True)
class Correction:
    """From the rate of a run or solution of the model to the printed one, operations a second.

    load: of closed ranks, whose mean response time follows the rate by Little's law. model: the mean rate of several
    runs of the model where there are more, from which the printed one is far or close."""

    before: float
    after: float
    load: blend.Question | None = None
    model: float | None = None

    @property
    def factor(self) -> float:
        return self.after / self.before if self.before > 0 else 1.0

    @property
    def is_close(self) -> bool:
        return 1 / CLOSE <= self.after / self.alone <= CLOSE if self.alone > 0 else True

    @property
    def alone(self) -> float:
        """The model's rate."""
        return self.before if self.model is None else self.model

    @property
    def longer(self) -> float:
        """Factor of the mean response time; 1 where nothing is known of it."""
        if self.load is None or self.factor == 1.0:
            return 1.0
        return blend.mean_response(self.load, self.after) / blend.mean_response(self.load, self.before)

    def used(self, utilisation: Mapping[str, float], others: Mapping[str, float] | None = None) -> dict[str, float]:
        """Utilisations at the printed rate by the utilisation law, with the platform's demands; that by `others` stays.
        At most 1 for a close rate, whose difference may lie in the demands."""
        found = {}
        for name, share in utilisation.items():
            fixed = min(share, (others or {}).get(name, 0.0))
            at_rate = fixed + (share - fixed) * self.factor
            found[name] = min(1.0, at_rate) if self.is_close else at_rate
        return found

    def stations(
        self, stations: Mapping[str, Mapping[str, float]], response: float, others: Mapping[str, float] | None = None
    ) -> dict[str, dict[str, float]]:
        """Utilisation, and for a close rate seconds an operation by part: the service is the platform's, and waits fill
        the mean response time. None where a station would be in use for more than the time.

        @param response mean response time of the model in seconds"""
        used = self.used({name: one["utilisation"] for name, one in stations.items()}, others)
        if max(used.values(), default=0.0) > 1:
            return {}
        service = sum(one.get("service", 0.0) for one in stations.values())
        waiting = response - service
        waits = max(0.0, (response * self.longer - service) / waiting) if waiting > 1e-9 * response else 1.0
        found = {}
        for name, one in stations.items():
            parts = {part: value * (waits if part in WAITS else 1.0) for part, value in one.items()}
            found[name] = (parts if self.is_close else {}) | {"utilisation": used[name]}
        return found

    def beyond(self, utilisation: Mapping[str, float], others: Mapping[str, float] | None = None) -> Limit | None:
        """Of a station that would be in use for more than the time at the printed rate; None for none."""
        used = self.used(utilisation, others)
        name = max(used, key=lambda one: used[one], default="")
        if not name or used[name] <= 1:
            return None
        return limits_of.unknown(
            f"the best structure alone does {quantity('rate', self.alone)}, and at the printed "
            f"rate {name} would be in use for {100 * used[name]:.0f} % of the time. Utilisations are left out."
        )

    def otherwise(self) -> Limit:
        """What limits a rate that is not close to the model's, where no station and no link is full at it."""
        return limits_of.unknown(
            f"the best structure alone does {quantity('rate', self.alone)}, and what corrects it "
            "is no part of it. Where an operation waits is left out."
        )


class OneSystem(TypedDict, total=False):
    """The parts of a forecast at a rate (docs/answers.md)."""

    stations: dict[str, dict[str, float]]
    bottleneck: str
    limited_by: str | None
    links: str
    left_out: list[str]
    timeline: Timeline
    balance: Ends


class Model(Protocol):
    """A run or solution of the model, of one phase."""

    @property
    def rate(self) -> float: ...

    @property
    def mean_rate(self) -> float:
        """Over all runs of the model."""
        ...

    def at(self, correction: Correction) -> OneSystem:
        """The parts of a forecast at a rate: `stations`, `bottleneck`, and what else is known."""
        ...


@dataclass(frozen=True)
class Solved:
    """Of the analytic solver."""

    solution: Solution

    @property
    def rate(self) -> float:
        return self.solution.rate

    mean_rate = rate

    def at(self, correction: Correction) -> OneSystem:
        used = self.solution.utilisation
        stations = correction.stations({name: {"utilisation": one} for name, one in used.items()}, 0.0)
        waiting = 1 - (1 - self.solution.waiting) / correction.longer
        if correction.is_close:
            otherwise = limits_of.solved_text(max(0.0, waiting), self.solution.limits)
        else:
            otherwise = correction.otherwise()
        found = correction.beyond(used) or limits_of.sentences(stations, otherwise, known=correction.is_close)
        return {
            "stations": stations,
            "bottleneck": found.text,
            "limited_by": found.word,
            "left_out": self.solution.left_out,
        }


@dataclass(frozen=True)
class Grown:
    """Of networks that were fitted to rates alone: the utilisation in one of them, `used`, at its rate."""

    rate: float
    used: Mapping[str, float] = field(default_factory=dict)
    otherwise: Limit = NO_LIMIT

    @property
    def mean_rate(self) -> float:
        return self.rate

    def at(self, correction: Correction) -> OneSystem:
        stations = correction.stations({name: {"utilisation": one} for name, one in self.used.items()}, 0.0)
        if not self.used:
            return {"stations": {}, "bottleneck": self.otherwise.text, "limited_by": self.otherwise.word}
        found = correction.beyond(self.used) or limits_of.sentences(stations, self.otherwise)
        return {"stations": stations, "bottleneck": found.text, "limited_by": found.word}


@dataclass(frozen=True)
class Simulated:
    """Of the last repeat of a simulated phase.

    rate: of all repeats together. mean_rate: of several runs. phase: of a run.json. system: the resolved platform.
    balance: first rank's end over the last one's, {value, low, high}."""

    rate: float
    mean_rate: float
    phase: SimulatedPhase
    system: ResolvedPlatform
    nodes: int
    ranks: float
    balance: Ends

    def at(self, correction: Correction) -> OneSystem:
        seconds, others = limits_of.stations_of(self.phase, self.system), others_of(self.phase)
        phase = self._phase(correction)
        stations = correction.stations(seconds, _mean_response(self.phase), others)
        links = limits_of.of_links(phase, self.system, self.nodes)
        if correction.is_close:
            otherwise = limits_of.text(phase, stations, self.system, self.nodes, self.ranks)
        else:
            otherwise = links or correction.otherwise()
        used = {name: one["utilisation"] for name, one in seconds.items()}
        known = correction.is_close or links is not None
        found = correction.beyond(used, others) or limits_of.sentences(stations, otherwise, known=known)
        return {
            "stations": stations,
            "bottleneck": found.text,
            "limited_by": found.word,
            "links": limits_of.capacity_text(phase, self.system, self.nodes),
            "timeline": timeline(self.phase, correction.factor),
            "balance": self.balance,
        }

    def _phase(self, correction: Correction) -> SimulatedPhase:
        """The phase as it is at the printed rate: its length, mean response times, and how busy links are."""
        latency = {
            op: one | {"mean": one["mean"] * correction.longer} if one["count"] else one
            for op, one in self.phase["latency"].items()
        }
        changed: SimulatedPhase = {
            **self.phase,
            "seconds": self.phase["seconds"] / correction.factor,
            "latency": latency,
        }
        if "network" in self.phase:
            busiest = self.phase["network"]["busiest"]
            links: list[BusyLink] = [{**one, "busy": min(1.0, one["busy"] * correction.factor)} for one in busiest]
            changed["network"] = {**self.phase["network"], "busiest": links}
        return changed


def full_link(one: LinkFull, rate: float) -> OneSystem:
    """What limits a rate that is what a link carries of the bytes of operations, which no station's use tells."""
    name = link_name(one)
    name = name[0].upper() + name[1:]
    carried = f"{quantity('rate', rate)} of these operations, {quantity('bytes', one.bytes_each)} each"
    return {
        "bottleneck": f"{name}, full of the bytes that operations were observed to move.",
        "limited_by": Kind.LINKS.value,
        "links": f"{name} carry at most {carried}.",
    }


def _mean_response(phase: SimulatedPhase) -> float:
    whole = sum(
        one["count"] * one["mean"] for name, one in phase["latency"].items() if "." not in name and one["count"]
    )
    return float(whole / phase["operations"]) if phase["operations"] else 0.0


def others_of(phase: SimulatedPhase) -> dict[str, float]:
    """By station the utilisation by work of others, which no rate of the benchmark changes."""
    found = {}
    for name, station in phase["stations"].items():
        served = {op: one["visits"] * one.get("service", 0.0) for op, one in station["operations"].items()}
        whole = sum(served.values())
        found[name] = station["utilisation"] * served.get("others", 0.0) / whole if whole else 0.0
    return found


def timeline(phase: SimulatedPhase, factor: float) -> Timeline:
    """Throughput over the phase's time: operations a second that ended within each bin, where all goes `factor` times
    as fast."""
    each, series = time_line(phase)
    counts, width = [one["count"] for one in series.values()], each / factor
    return {"bin_seconds": width, "rate": [sum(column) / width for column in zip_longest(*counts, fillvalue=0)]}


def course(phases: Sequence[SimulatedPhase], factors: Mapping[str, float]) -> list[CourseRow]:
    """Every repeat of the forecast's phases in order: when it begins, in seconds since the first one began, how long it
    lasts, and its operations and bytes a second. In the first simulated run, each phase at its printed rate.

    @param phases of a run.json, in order
    @param factors by name of the forecast's phases that of their rate"""
    found: list[CourseRow] = []
    ended = end = None  # of the row before, in the run and here
    for p in (p for p in phases if p["name"] in factors):
        start = 0.0 if end is None or ended is None else end + max(0.0, p["start_seconds"] - ended)
        moved = sum(one.get("bytes_per_second", 0.0) for one in p["by_operation"].values())
        factor = factors[p["name"]]
        found.append(
            {
                "phase": p["name"],
                "repeat": p["repeat"],
                "start": start,
                "seconds": p["seconds"] / factor,
                "rate": p["rate"] * factor,
                "bytes_per_second": moved * factor,
            }
        )
        ended, end = p["start_seconds"] + p["seconds"], start + p["seconds"] / factor
    return found

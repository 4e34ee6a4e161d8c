# SPDX-License-Identifier: Apache-2.0
"""What a reader must know beside an answer's numbers, as codes with numbers and names: `cautions` of a document. A
class here is a code; `iocast/wording/notes_of_answers.py` has the sentence of each."""

from __future__ import annotations

import re
from typing import TypedDict

from msgspec import Struct
from typing_extensions import NotRequired

from iocast.records.quantities import Interval

Number = int | float
"""Whole where the document has it whole, so that both are printed alike."""


def _code(name: str) -> str:
    """The code of a class: "load-not-served" of LoadNotServed."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


class Note(Struct, frozen=True, kw_only=True, tag_field="code", tag=_code, omit_defaults=True):
    """A code with its numbers and names, in SI units. `about`: the phases, or the platforms, that it is about, where it
    is not about all."""

    about: tuple[str, ...] = ()


class Coded(TypedDict, total=False):
    cautions: list[dict[str, object]]


class Cautious(Coded):
    """The keys of a document that hold its notes: `warnings` are the sentences of `cautions`, each once. Documents of
    before have no `cautions`."""

    warnings: list[str]


class Noted(TypedDict):
    """The keys of a document whose sentences are `notes`, each once, and the same as `cautions`."""

    notes: list[str]
    cautions: NotRequired[list[dict[str, object]]]


class Written(Note, frozen=True):
    """A sentence of a document without codes, or of a newer one whose code is not known here."""

    sentence: str


class OfCalibration(Note, frozen=True):
    """A sentence of the fitted platform, which holds for every forecast of it (its `notes`). `of`: its code there."""

    sentence: str
    of: str = ""


class ModelLimit(Note, frozen=True):
    """A limit of the platform's model, with the simulator's sentence; kind as in a run's `model_limits`."""

    kind: str
    sentence: str


class LoadNotServed(Note, frozen=True):
    """More operations are due than are served, so that they wait ever longer; the rates by phase."""

    due: float
    rates: dict[str, float]


class CoresUnknown(Note, frozen=True):
    """How many cores the single measured machine has is not known."""


class MoreRanksThanCores(Note, frozen=True):
    """No measurement had more ranks than cores, and the forecast has."""

    ranks_per_node: Number
    cores: Number


class BeyondMemory(Note, frozen=True):
    """No measurement had a working set beyond the memory, and the forecast has; bytes."""

    working_set: float
    memory: float


class OthersPileUp(Note, frozen=True):
    """The work of others is more than the server of the best structure can do."""


class RestsOnFamily(Note, frozen=True):
    """By operation the numbers of the platform that it rests on and that nothing measured; of some of them what was
    measured in their place."""

    operations: dict[str, list[str]]
    in_place: dict[str, str] = {}


class SolverUnchecked(Note, frozen=True):
    """The analytic solver has no model for what was measured: its error is not known."""


class StructureOpen(Note, frozen=True):
    """The measurements leave a choice open that matters here; the rate of each option."""

    choice: str
    rates: dict[str, float]


class TellingRun(Note, frozen=True):
    """The measurement that would tell most, as in the proposed runs of `iocast plan`."""

    nodes: int
    ranks_per_node: int
    waiting_factor: Number
    before: float
    after: float
    seconds: float | None = None
    between: tuple[float, float] | None = None
    settings: dict[str, str] = {}


class BlendedGroup(Struct, frozen=True):
    """Throughput or latencies: the weight of each candidate, and why there is a blend."""

    what: str
    weights: dict[str, float]
    because: str


class BlendedWithRules(Note, frozen=True):
    """Simple rules have weight in the forecast."""

    groups: list[BlendedGroup]


class RulesSilent(Note, frozen=True):
    """Simple rules have weight elsewhere, and none answers at this placement."""

    ranks: int
    nodes: int | None = None
    ranks_per_node: int | None = None


class HeldBelowCeiling(Note, frozen=True):
    """The rate is held at what concave growth allows, below that of the platform alone; latencies are longer by a
    factor."""

    rate: Interval
    ceiling: float
    platform_rate: float
    longer: float


class HeldAsMeasured(Note, frozen=True):
    """An edited system's forecast is changed by the factor by which the measured one's is held below the ceiling."""

    factor: float


class LinkFull(Note, frozen=True):
    """The rate is what a link can carry of the bytes that an operation was observed to move, up to this many ranks.
    `seen_on`: nodes of these, where they are several: the bytes may be fewer. `reached`: whether the interval then
    goes up to the platform's rate."""

    link: str
    bytes_each: float
    ranks: int
    platform_rate: float
    nodes: int = 0
    station: str = ""
    seen_on: int = 1
    reached: bool = True


class LinkPerhapsFull(Note, frozen=True):
    """The rate at which a link is full of all bytes that crossed it at this many ranks, some of which ranks may have
    sent each other. `reached`: whether the interval goes down to it."""

    link: str
    bytes_each: float
    ranks: int
    rate: float
    reached: bool = True
    nodes: int = 0
    station: str = ""


class LinkUnknown(Note, frozen=True):
    """What operations send over a limited link is not known; the rate at which requests of `bytes_each` fill it.
    `reached`: whether the interval goes down to that."""

    link: str
    operations: list[str]
    bytes_each: int
    rate: float
    reached: bool
    nodes: int = 0
    station: str = ""


class LengthNotMeasured(Note, frozen=True):
    """The run is of another length than the measured rates, which do not tell what that changes."""

    setting: str
    value: str
    measured: str


class NoTime(Note, frozen=True):
    """Phases whose operations take no time on the platform: they have no rate."""

    platform: str
    phases: list[str]


class Unsolved(Note, frozen=True):
    """Phases that the analytic solver has no model for."""

    phases: list[str]


class TimeLimit(Note, frozen=True):
    """A time limit may end this phase, so that the solver knows neither its length nor that of later ones."""

    phase: str


class TooRare(Note, frozen=True):
    """An operation that some of the simulated runs lack. `counted`: whether its share and distribution are known."""

    operation: str
    phase: str
    lacking: int
    runs: int
    counted: bool


class FarBeyondMeasured(Note, frozen=True):
    """Many times as many ranks as in any measurement."""

    ranks: int
    largest: Number


class WaitingNotMeasured(Note, frozen=True):
    """The waiting factor was not among the measured ones."""

    waiting_factor: Number
    measured: list[Number]


class OneNodeMeasured(Note, frozen=True):
    """All measurements ran on one node, and the forecast is of several."""

    nodes: int


class NodesWithRanks(Note, frozen=True):
    """The measurements differ in nodes and in ranks a node at once."""

    placements: list[str]
    ranks_per_node: Number


class RanksPerNodeNotMeasured(Note, frozen=True):
    """The ranks a node lie outside the measured ones."""

    ranks_per_node: Number
    measured: list[Number]


class OtherSettings(Note, frozen=True):
    """Nothing was measured with the settings of the workload."""

    differences: list[str]


class SumOfMachines(Note, frozen=True):
    """The forecast adds nodes that have storage of their own each."""

    nodes: int


class RestsOnOnePhase(Note, frozen=True):
    """Several phases were fitted, and the answer rests on one of them; `workloads` of a study, where these do."""

    phase: str
    others: list[str]
    workloads: list[str] = []


class PhasesNotFitted(Note, frozen=True):
    """Phases of the measured workload that the platform was not fitted to."""

    fitted: str
    phases: list[str]


class FarBeyondPublished(Note, frozen=True):
    """Many times the largest nodes or ranks of any published number of the platform."""

    platform: str
    nodes: int
    ranks: Number
    factor: float


class RateOutside(Struct, frozen=True):
    """A phase whose forecast rate is outside the asymptotic bounds of its measurements, and where."""

    phase: str
    rate: Interval
    low: float
    high: float
    nodes: int = 0
    ranks_per_node: Number = 0


class OutsideBounds(Note, frozen=True):
    """Forecast rates outside the asymptotic bounds of the measurements; `placed`: with several placements."""

    rates: list[RateOutside]
    placed: bool = False


class MoreObjects(Note, frozen=True):
    """The workload keeps many more objects than any that was fitted."""

    objects: Number
    measured: Number


class MeasuredHere(Note, frozen=True):
    """Rates that were measured at the very question of the forecast. `imported`: on how many nodes is not known."""

    phase: str
    rates: list[float]
    nodes: int
    ranks_per_node: Number
    ranks: Number
    unit: str = ""
    imported: bool = False


class FarOffWhereChecked(Note, frozen=True):
    """The rate at the scale that a calibration held out, `ranks`, was missed by more than is worth extrapolating, from
    measurements of up to `fitted_up_to`. `rule_closer`: whether a simple rule was closer."""

    error: float
    limit: float
    phase: str = ""
    rule_closer: bool = False
    ranks: int = 0
    fitted_up_to: int = 0


class BeyondObserved(Note, frozen=True):
    """The rate is above what an observed resource allows, which was in use by `utilisation` at `ranks`;
    `demand` in seconds an operation."""

    rate: Interval
    resource: str
    allowed: float
    utilisation: float
    ranks: int
    demand: float


class LeftOutRun(Struct, frozen=True):
    """A measured run: its rate, nodes and ranks a node or ranks, and the settings that only it has."""

    rate: float
    placement: list[Number]
    settings: list[str]


class NearerLeftOut(Note, frozen=True):
    """Runs that --only leaves out, measured nearer to the scale than any that the forecast rests on."""

    runs: list[LeftOutRun]
    unit: str = ""


class NoFacts(Note, frozen=True):
    """No published or measured number stands behind the platform."""

    platform: str


class PublishedOff(Struct, frozen=True):
    """How many published numbers of a kind, and the median of the factors by which the platform is off them."""

    kind: str
    numbers: int
    factor: float


class RestsOnPublished(Note, frozen=True):
    """Intervals rest on published numbers. `edited`: as if they were of an edited platform, too; `left_out`: it was
    fitted to them, each forecast from the rest."""

    platform: str
    off: list[PublishedOff]
    edited: bool = False
    left_out: bool = False


class NeverFitted(Note, frozen=True):
    """A platform of a study that iocast did not fit; `by`: whose measurements its author set it to by hand.
    `error_stated`: whether the study states an error of the model."""

    platform: str
    error_stated: bool
    by: str = ""


class StudyFarBeyondMeasured(Note, frozen=True):
    """A study has many times as many clients as were measured."""

    clients: int
    largest: int


class RulesChangeDesigns(Note, frozen=True):
    """Simple rules or the ceiling change the rate of every design of a platform by a factor."""

    platform: str
    workload: str
    clients: int
    factor: float
    rules: BlendedWithRules | RulesSilent | None = None


class MeasuredNotSimulated(Note, frozen=True):
    """The platform as it was measured has no answer, for a reason, so that rules change no design there."""

    platform: str
    workload: str
    clients: int
    reason: str


class SystemsBeside(Note, frozen=True):
    """Measured systems of a family stand beside the levels of a study, with the workloads they were measured by."""

    family: str
    systems: list[str]
    by: list[str]


class SystemWithoutAnswer(Note, frozen=True):
    """A measured system of the family that has no answer to the question."""

    sentence: str


class NothingUncertain(Note, frozen=True):
    """Nothing in a study is uncertain but chance."""


class Unsettled(Note, frozen=True):
    """The share of resampled replications in which the decision is the same."""

    stability: float


class PricesWithoutSource(Note, frozen=True):
    """Parts of a study whose prices have no source."""

    parts: list[str]


class PartSimulated(Note, frozen=True):
    """The share of a workload's operations that was simulated at the largest scale."""

    workload: str
    share: float


class ShorterThanStalls(Note, frozen=True):
    """A simulation that lasted less than `periods` of a stall; `capped`: by the study's most operations."""

    workload: str
    scale: str
    seconds: float
    periods: int
    stall: str
    capped: bool


class NoLevelAbout(Note, frozen=True):
    """Workloads that no level is about, and that decide nothing."""

    workloads: list[str]


class NotScreened(Note, frozen=True):
    """Workloads that the analytic solver has no model for, so that one simulation screened each design."""

    workloads: list[str]


class Differs(Note, frozen=True):
    """What is not the same about the two sides of a comparison: a parameter, or the number of ranks or nodes. A value
    that isn't there is not stated."""

    what: str
    name: str
    before: str | None = None
    after: str | None = None


class RatesCount(Note, frozen=True):
    """The rates of the two sides count different things, so that they are not compared."""

    units: list[str]


class OperationsFailed(Note, frozen=True):
    """Operations failed on a side, and are in no figure."""

    before: int
    after: int


class HeldBack(Note, frozen=True):
    """Runs, of all those compared, whose rate was limited; of the first one its place, the rate, and by what."""

    limited: int
    runs: int
    run: str
    rate: float
    by: str


class OneSided(Note, frozen=True):
    """Measurements that only one side has, and that are left out."""

    measurements: int

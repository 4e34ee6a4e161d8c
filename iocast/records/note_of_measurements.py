# SPDX-License-Identifier: Apache-2.0
"""What a reader must know beside the answers of searches, observations and calibrations, as codes (note.py)."""

from __future__ import annotations

from iocast.records.note import Note, Number


class RanksEndSearch(Note, frozen=True):
    """Not the server but the number of ranks ends a search for the knee: up to the fastest that they ask, `levels`
    hold, `power` rises, or they are never idle (`busy`)."""

    ranks: int
    still: str


class MaxRateEndsSearch(Note, frozen=True):
    """The limit of --max-rate ends a search for the knee; the levels hold there."""

    max_rate: str


class PaceEndsSearch(Note, frozen=True):
    """No level was missed up to the load that the system can't keep up with."""


class WaitsForItsRank(Note, frozen=True):
    """At the answer operations wait this share of their response time for their own rank, not for the server."""

    share: float


class FewBeyondQuantile(Note, frozen=True):
    """In some runs fewer than `operations` lie beyond these quantiles."""

    operations: int
    quantities: list[str]


class DataSetTooSmall(Note, frozen=True):
    """The data set is too small for runs of the length at the highest loads; seconds."""

    length: float
    shortest: float


class WholeWorkloadEachRun(Note, frozen=True):
    """The workload's phase can't be run on a data set by itself, so that every run was the whole workload."""

    phase: str


class WorkOfItsOwn(Note, frozen=True):
    """The workload's own parameters say how much a run does, so that its length changed with the load."""


class RunsCutOff(Note, frozen=True):
    """Runs that took far longer than planned were ended, and count as missed."""

    runs: int


class ClockSet(Note, frozen=True):
    """A host's wall clock was set while it was observed."""

    host: str


class RunNotCovered(Note, frozen=True):
    """The observation of a host does not cover the whole run."""

    host: str


class StartUncertain(Note, frozen=True):
    """The start of the run is known to within this many seconds only."""

    seconds: float


class OfCounters(Note, frozen=True):
    """What files of a server's counters say of themselves, or what of them is left out."""

    sentence: str


class MachineBusy(Note, frozen=True):
    """The machine was busy before a campaign was measured, with these effects."""

    campaign: str
    effects: list[str]


class FoundInRuns(Note, frozen=True):
    """A finding of the measurements (`findings`): what grows with age or drifts, and is no part of the model."""

    kind: str
    sentence: str


class PartsNotMeasured(Note, frozen=True):
    """The measurements tell an operation as a whole only; its parts are split as in the family."""

    operation: str
    family: str


class OperationsWhole(Note, frozen=True):
    """The measurements tell operations as a whole only. The station explains all, but of `elsewhere` a part."""

    operations: list[str]
    station: str
    elsewhere: list[str] = []


class ThreadsCounted(Note, frozen=True):
    """The number of a station's threads by the server's own counters, or by clients' trips to it (`network`): the
    likely one, or a range whose end is open. An operation holds one for `service` seconds; at most `busy` are used."""

    station: str
    service: float
    busy: float
    at_least: int
    at_most: int | None = None
    likely: int | None = None
    network: bool = False


class NothingHeldOut(Note, frozen=True):
    """No scale could be held out. `switched`: nothing of the largest was measured at smaller ones."""

    switched: bool = False


class TooRareToCheck(Note, frozen=True):
    """An operation that a simulated run of these points lacks, so that its error there is not known."""

    operation: str
    points: list[str]


class LoneRankOff(Note, frozen=True):
    """A lone rank's mean seconds in the measurements and on the fitted platform differ, most in a part."""

    operation: str
    measured: float
    fitted: float
    part: str = ""


class ParametersTied(Note, frozen=True):
    """The measurements hardly tell two parameters apart."""

    one: str
    other: str
    correlation: float


class FitsNearlyAsWell(Note, frozen=True):
    """Another structure fits nearly as well; by choice its option. The intervals include it."""

    structure: dict[str, str]


class HeldOutMissed(Note, frozen=True):
    """Alarm: the throughput of the largest scale, held out, was missed by a factor."""

    factor: float


class Misfit(Note, frozen=True):
    """The best structure is further from the measurements than their noise explains: the mean square of standardised
    residuals, and what is usual; the quantity that is off most, where, and its error as a share."""

    residual: float
    usual: float
    quantity: str = ""
    point: str = ""
    error: float = 0.0


class FamilyByDefault(Note, frozen=True):
    """The family is a default, as nothing says which one it is; the scores of those that were tried."""

    family: str
    because: str
    scores: dict[str, float]


class RatesAlone(Note, frozen=True):
    """Only rates were fitted. `latencies`: those of measured scales are stretched to the rate."""

    latencies: bool = False


class LatenciesNotFitted(Note, frozen=True):
    """The results have latencies, which were not fitted, and why."""

    because: str


class GrowthNotMeasured(Note, frozen=True):
    """All measurements have the same ranks; placements that would measure growth."""

    ranks: Number
    next: list[str]


class SettingsVary(Note, frozen=True):
    """The measurements differ in settings of which the model of growth knows nothing."""

    settings: list[str]


class RatesOffGrowth(Note, frozen=True):
    """Misfit of rates: no curve of growth follows them; by point measured over fitted, less one."""

    errors: dict[str, float]


ALARMS = {"held-out-missed", "misfit", "rates-off-growth"}
"""Codes of calibrations in whose system something has no place in the model."""

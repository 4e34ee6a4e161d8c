# SPDX-License-Identifier: Apache-2.0
"""Sentences of the codes of forecasts, studies and comparisons (iocast/records/note.py)."""

from __future__ import annotations

from iocast.planning.proposed import Place, Proposed
from iocast.records import note
from iocast.records.quantities import Interval
from iocast.rules.blend import CALIBRATED, NAMED
from iocast.runs.operations import UNSOLVED
from iocast.runs.question import Placement
from iocast.wording.note_sentence import of_code, sentence
from iocast.wording.text import quantity, rate_kind, roughly


def _kind(unit: str | None) -> str:
    return rate_kind({"unit": unit})


def _rate(rate: Interval, shown: str) -> str:
    return roughly(shown, {"low": rate.low, "high": rate.high})


@of_code.register(note.Written)
@of_code.register(note.OfCalibration)
@of_code.register(note.ModelLimit)
@of_code.register(note.SystemWithoutAnswer)
def _as_written(one: note.Written | note.OfCalibration | note.ModelLimit | note.SystemWithoutAnswer) -> str:
    return one.sentence


@of_code.register
def _load_not_served(one: note.LoadNotServed) -> str:
    done = " and ".join(f"{quantity('rate', rate)} in the phase {phase}" for phase, rate in one.rates.items())
    return (
        f"The load is more than is served: {quantity('rate', one.due)} are due, {done} are done. "
        "Operations wait ever longer for their turn. Response times, counted from when an operation is due, are those "
        "of this length of the phase, and grow with it."
    )


@of_code.register
def _cores_unknown(_: note.CoresUnknown) -> str:
    return (
        "How many cores the machine has is not known (column cores of a table). Beyond them, this interval holds "
        "less often than it says."
    )


@of_code.register
def _more_ranks_than_cores(one: note.MoreRanksThanCores) -> str:
    return (
        f"{one.ranks_per_node} ranks on {one.cores} cores: no measurement had more ranks than cores, so that no "
        "interval is known."
    )


@of_code.register
def _beyond_memory(one: note.BeyondMemory) -> str:
    return (
        f"A working set of {one.working_set / 2**30:.3g} GiB with {one.memory / 2**30:.3g} GiB of memory: no "
        "measurement had more than the memory holds, so that no interval is known."
    )


@of_code.register
def _others_pile_up(_: note.OthersPileUp) -> str:
    return (
        "The work of others, which was fitted at smaller scales, is at this one more than the server of the best "
        "structure can do; the forecast is of those structures whose server can."
    )


@of_code.register
def _rests_on_family(one: note.RestsOnFamily) -> str:
    instead = one.in_place
    others = any(path not in instead for paths in one.operations.values() for path in paths)
    reasons = [f"the {'other ' if instead else ''}numbers are the family's own"] if others else []
    if instead:
        first = [f"{path} has the times of {measured}" for path, measured in list(instead.items())[:4]]
        reasons.insert(0, ", ".join(first) + (f" and {len(instead) - 4} more likewise" if len(instead) > 4 else ""))
    return (
        f"Nothing measured {first_paths(one.operations)}, on which the times of {', '.join(one.operations)} rest: "
        f"{', and '.join(reasons)}, so that there is no interval and no confidence. What settles it: measure a "
        "workload of these operations, and calibrate with that; or set the numbers with --edit."
    )


def first_paths(operations: dict[str, list[str]]) -> str:
    """The paths by operation, the first few of many."""
    parts = list(dict.fromkeys(path for paths in operations.values() for path in paths))
    return ", ".join(parts[:4]) + (f" and {len(parts) - 4} more" if len(parts) > 4 else "")


@of_code.register
def _solver_unchecked(_: note.SolverUnchecked) -> str:
    return (
        "The analytic solver has no model for what was measured, so that its error and an interval are not known; "
        "--solver simulate has one."
    )


@of_code.register
def _structure_open(one: note.StructureOpen) -> str:
    printed = ", ".join(f"{option} {rate:.3g}/s" for option, rate in one.rates.items())
    return f"The measurements leave open which {one.choice} it is, and here that matters: {printed}."


@of_code.register
def _telling_run(one: note.TellingRun) -> str:
    place = Place(one.nodes, one.ranks_per_node, one.waiting_factor, tuple(one.settings.items()))
    proposed = Proposed(place, one.seconds, one.before, one.after, between=one.between)
    return f"The measurement that would tell most: {proposed.text}."


@of_code.register
def _blended_with_rules(one: note.BlendedWithRules) -> str:
    parts: dict[tuple[str, bool], list[str]] = {}
    for group in one.groups:
        reported = ", ".join(
            f"{100 * weight:.0f} % {name}"
            for name, weight in sorted(group.weights.items(), key=lambda one: -one[1])
            if weight >= NAMED
        )
        mostly = group.weights.get(CALIBRATED, 0.0) < 0.5
        parts.setdefault((group.because, mostly), []).append(f"{group.what} {reported}")
    return " ".join(
        f"The forecast is {'mostly that of simple rules' if mostly else 'a blend with simple rules'}, since {why}: "
        f"{'; '.join(reported)}."
        for (why, mostly), reported in parts.items()
    )


@of_code.register
def _rules_silent(one: note.RulesSilent) -> str:
    place = Placement(one.nodes, one.ranks_per_node, one.ranks)
    return (
        f"Simple rules are silent at {place}, since fewer than two measured placements are on its line: the forecast "
        "is the calibrated platform's alone. Its interval allows for what that missed at the held-out scale."
    )


@of_code.register
def _held_below_ceiling(one: note.HeldBelowCeiling) -> str:
    return (
        "The rate is that of the straight continuation of the two largest measured scales, "
        f"{_rate(one.rate, quantity('rate', one.ceiling))}; the calibrated platform alone says "
        f"{quantity('rate', one.platform_rate)}, more than a closed system's concave growth allows. Latencies are "
        f"{100 * (one.longer - 1):.0f} % longer than the platform's, as Little's law has them at that rate."
    )


@of_code.register
def _held_as_measured(one: note.HeldAsMeasured) -> str:
    return (
        f"The forecast of the measured system is {100 * (1 - one.factor):.0f} % below the calibrated platform's, at "
        "what a closed system's concave growth allows; this one of an edited system is changed by the same factor, "
        "and its latencies by Little's law."
    )


def link_name(one: note.LinkFull | note.LinkPerhapsFull | note.LinkUnknown) -> str:
    if one.station:
        return f"the network cards of '{one.station}'"
    if one.nodes:
        return f"the network cards of {one.nodes} client node{'s' * (one.nodes != 1)}"
    return "the backbone"


@of_code.register
def _link_full(one: note.LinkFull) -> str:
    return (
        f"The rate is what {link_name(one)} can carry: operations moved {quantity('bytes', one.bytes_each)} each, as "
        f"was observed at {one.ranks} rank{'s' * (one.ranks != 1)}; the platform alone, whose requests have no bytes, "
        f"says {quantity('rate', one.platform_rate)}."
        + (one.seen_on > 1)
        * (
            f" Ranks of the {one.seen_on} nodes may have sent each other a part of them, so that links carry more"
            f"{': the interval goes up to that rate' if one.reached else ', of which nothing here takes account'}."
        )
    )


@of_code.register
def _link_perhaps_full(one: note.LinkPerhapsFull) -> str:
    return (
        f"At {one.ranks} ranks {quantity('bytes', one.bytes_each)} an operation crossed links, some of which ranks of "
        f"several nodes may have sent each other. If they did not, {link_name(one)} carry {quantity('rate', one.rate)}"
        f"{', down to which the interval reaches' if one.reached else ', of which nothing here takes account'}."
    )


@of_code.register
def _link_unknown(one: note.LinkUnknown) -> str:
    reach = ", down to which the interval reaches" * one.reached
    return (
        f"The platform moves no bytes of requests over links: what {', '.join(one.operations)} "
        f"send{'s' * (len(one.operations) == 1)} over {link_name(one)} is not known, so that their limit changes no "
        f"value here. With {one.bytes_each // 1024} KiB each way an operation they are full at "
        f"{quantity('rate', one.rate)}{reach}."
    )


@of_code.register
def _length_not_measured(one: note.LengthNotMeasured) -> str:
    return (
        f"{one.setting}={one.value} was not measured, but {one.setting}={one.measured}. Rates alone do "
        "not tell what it changes: the forecast takes no change, and its interval has none."
    )


@of_code.register
def _no_time(one: note.NoTime) -> str:
    return (
        f"On the platform '{one.platform}' no operation of {' and '.join(one.phases)} takes any time, so that there is "
        "no rate to forecast; give their routes a station or a delay."
    )


@of_code.register
def _unsolved(one: note.Unsolved) -> str:
    return (
        f"In {', '.join(one.phases)} ranks {UNSOLVED}; of such the analytic solver knows nothing. "
        "--solver simulate forecasts that, too."
    )


@of_code.register
def _time_limit(one: note.TimeLimit) -> str:
    return (
        f"The time limit of {one.phase} may end it before all is done: how many operations it and later phases have, "
        "and how long they last, only --solver simulate knows."
    )


@of_code.register
def _too_rare(one: note.TooRare) -> str:
    unknown = "" if one.counted else ", and its share and distribution are not known"
    return (
        f"{one.operation} is so rare in the phase '{one.phase}' that {one.lacking} of {one.runs} simulated runs lack "
        f"it: its latencies rest on the others{unknown}. A longer run has more of them."
    )


@of_code.register
def _far_beyond_measured(one: note.FarBeyondMeasured) -> str:
    return (
        f"{one.ranks:,} ranks are {one.ranks / one.largest:.0f} times what was measured ({one.largest:,g}). The "
        "intervals assume that nothing new happens in between, such as throughput that falls with more clients; a "
        "measurement at a larger scale would narrow them most."
    )


@of_code.register
def _waiting_not_measured(one: note.WaitingNotMeasured) -> str:
    return (
        f"The waiting factor {one.waiting_factor:g} was not measured; T = "
        f"{', '.join(f'{x:g}' for x in one.measured)} were."
    )


@of_code.register
def _one_node_measured(one: note.OneNodeMeasured) -> str:
    return (
        f"All measurements ran on one node, and the forecast is of {one.nodes}: what nodes have in common and what "
        "each has of its own was not measured apart. Measure on two nodes."
    )


@of_code.register
def _nodes_with_ranks(one: note.NodesWithRanks) -> str:
    return (
        f"The measurements ({', '.join(one.placements)}) differ in nodes and in ranks a node at once: what more nodes "
        f"bring, and what more ranks on each, they don't tell apart. Measure two numbers of nodes with "
        f"{one.ranks_per_node} ranks each."
    )


@of_code.register
def _ranks_per_node_not_measured(one: note.RanksPerNodeNotMeasured) -> str:
    several = len(one.measured) > 1 or one.measured[0] > 1
    return (
        f"{one.ranks_per_node} rank{'s' if one.ranks_per_node > 1 else ''} a node "
        f"{'were' if one.ranks_per_node > 1 else 'was'} not measured; {', '.join(map(str, one.measured))} "
        f"{'were' if several else 'was'}."
    )


@of_code.register
def _other_settings(one: note.OtherSettings) -> str:
    return (
        f"Nothing was measured with these settings ({', '.join(one.differences)}): it is another workload than the "
        "measured one, of which no error, simple rule or ceiling is known."
    )


@of_code.register
def _sum_of_machines(one: note.SumOfMachines) -> str:
    return (
        f"This is the sum of {one.nodes} machines, each with storage of its own like that which was measured. Storage "
        "that these nodes share was not measured, and is not forecast here."
    )


@of_code.register
def _rests_on_one_phase(one: note.RestsOnOnePhase) -> str:
    names = one.workloads
    of = f"Of the workload{'s' if len(names) > 1 else ''} {', '.join(names)}: " if names else ""
    have, own = ("have", "their") if len(one.others) > 1 else ("has", "its")
    return (
        f"{of}It rests on what was fitted to the phase {one.phase} alone: {', '.join(one.others)} {have} parameters of "
        f"{own} own in the same file, which would answer otherwise."
    )


@of_code.register
def _phases_not_fitted(one: note.PhasesNotFitted) -> str:
    return (
        f"The platform was fitted to the phase {one.fitted}, not to {', '.join(one.phases)}: no error of such a "
        "forecast is known."
    )


@of_code.register
def _far_beyond_published(one: note.FarBeyondPublished) -> str:
    return (
        f"{one.nodes:,} nodes with {one.ranks:,} ranks are {one.factor:.0f} times the largest of any published number "
        f"of {one.platform}: how far off it is there, nobody published; intervals are widened by how errors change "
        "with the scale."
    )


@of_code.register
def _outside_bounds(one: note.OutsideBounds) -> str:
    entries = []
    for row in one.rates:
        kind, at = _kind(row.rate.unit), f" at {row.nodes}x{row.ranks_per_node:g}" if one.placed else ""
        low, high = quantity(kind, row.low), quantity(kind, row.high)
        entries.append(
            f"{row.phase}{at} {_rate(row.rate, quantity(kind, row.rate.value))}, "
            f"{'below' if row.rate.value < row.low else 'above'} {low if low == high else f'{low} to {high}'}"
        )
    return (
        f"Forecast rates outside the asymptotic bounds of the measurements: {'; '.join(entries)}. In a closed system "
        "more ranks do no less than fewer, and each does no more than one of the fewest."
    )


@of_code.register
def _more_objects(one: note.MoreObjects) -> str:
    return (
        f"The workload keeps {one.objects:.0f} objects, {one.objects / one.measured:.0f} times as many as any that was "
        f"fitted ({one.measured}). What they fill, such as a journal or a cache of inodes, may have had room in those "
        "measurements; measure few ranks with as many in all (in a campaign: 'scaling: strong', and 'seconds' so long "
        "that one rank makes as many)."
    )


@of_code.register
def _measured_here(one: note.MeasuredHere) -> str:
    rates = " and ".join(quantity(_kind(one.unit), rate) for rate in one.rates)
    if one.imported:
        where, advice = f"with {one.ranks} ranks", "if it was on as many nodes, take the measurement"
    else:
        where, advice = f"at {one.nodes}x{one.ranks_per_node}", "take the measurement"
    return f"This scale was measured: {one.phase} did {rates} {where}; {advice}."


@of_code.register
def _far_off_where_checked(one: note.FarOffWhereChecked) -> str:
    of = f" of {one.phase}" if one.phase else ""
    closer = ", and a simple rule was closer" if one.rule_closer else ""
    way = "high" if one.error > 0 else "low"
    what = f"At the held-out scale the forecast{of} was more than {100 * one.limit:.0f} % too {way}"
    if one.ranks and one.fitted_up_to:
        what = (
            f"The calibration checked itself: from up to {one.fitted_up_to} rank{'s' * (one.fitted_up_to != 1)} its "
            f"forecast{of} at {one.ranks} was {100 * abs(one.error):.0f} % too {way}"
        )
    return f"{what}{closer}: plan with the interval, not with its middle, and measure one more scale."


@of_code.register
def _beyond_observed(one: note.BeyondObserved) -> str:
    return (
        f"The forecast rate, {_rate(one.rate, f'{one.rate.value:.3g}/s')}, is above the {one.allowed:.3g}/s that "
        f"{one.resource} allows: it was {100 * one.utilisation:.0f} % in use at {one.ranks} ranks, "
        f"{one.demand * 1e6:.3g} us an operation."
    )


@of_code.register
def _nearer_left_out(one: note.NearerLeftOut) -> str:
    named = [
        f"{quantity(_kind(one.unit), run.rate)} at {'x'.join(f'{n:g}' for n in run.placement)} "
        f"({', '.join(run.settings) or 'other settings'})"
        for run in one.runs[:3]
    ]
    return (
        "--only leaves out what was measured nearer to this scale than anything that the forecast rests on: "
        f"{'; '.join(named)}."
    )


@of_code.register
def _no_facts(one: note.NoFacts) -> str:
    return f"A template, no facts: no published or measured number stands behind the platform '{one.platform}'."


@of_code.register
def _rests_on_published(one: note.RestsOnPublished) -> str:
    known = [f"{off.numbers} {off.kind}, in the median a factor of {off.factor:.2f} off" for off in one.off]
    upon = ", as if that were so of its changes, too" if one.edited else ""
    which = f"the platform {one.platform} was not set to"
    if one.left_out:
        which = f"{one.platform} was fitted to, each forecast from the rest"
    return f"Intervals rest on published numbers that {which}{upon}: {'; '.join(known)} (docs/evidence.md)."


@of_code.register
def _never_fitted(one: note.NeverFitted) -> str:
    error = ", and the study states no error of the model, so the confidence counts only what it calls uncertain"
    error = "" if one.error_stated else error
    if one.by:
        return (
            f"The platform '{one.platform}' was never fitted by iocast: its author set its numbers by hand to "
            f"measurements of {one.by}{error}."
        )
    return f"The platform '{one.platform}' was never calibrated: its numbers are its author's{error}."


@of_code.register
def _study_far_beyond_measured(one: note.StudyFarBeyondMeasured) -> str:
    return (
        f"The study has {one.clients:,} clients, {one.clients / one.largest:.0f} times the {one.largest} that "
        "were measured: the answer rests on the model, and nothing new may happen in between."
    )


@of_code.register
def _rules_change_designs(one: note.RulesChangeDesigns) -> str:
    ceiling = "The measured scales set a ceiling: throughput grows no steeper than between the last two."
    return (
        f"Of {one.platform}, as iocast predict forecasts it: {sentence(one.rules) if one.rules else ceiling} It "
        f"changes the rate of {one.workload} at {one.clients:,} clients by {100 * (one.factor - 1):+.0f} % for every "
        "design of this platform, and latencies likewise; chances count the calibrated platform's own uncertainty "
        "about the changed values."
    )


@of_code.register
def _measured_not_simulated(one: note.MeasuredNotSimulated) -> str:
    return (
        f"The platform '{one.platform}' as it was measured is not simulated under {one.workload} at {one.clients:,} "
        f"clients, so that simple rules and the measured ceiling change no design there: {one.reason}"
    )


@of_code.register
def _systems_beside(one: note.SystemsBeside) -> str:
    return (
        f"Beside the levels stand the catalogue's measured systems of the family {one.family} "
        f"({', '.join(one.systems)}), as models that were set to measurements of {' and '.join(one.by)}: "
        "this is the range of "
        "what such systems reached."
    )


@of_code.register
def _nothing_uncertain(_: note.NothingUncertain) -> str:
    return (
        "Nothing in this study is uncertain but chance: name what is not known for sure under 'uncertainty', or the "
        "confidence says too much."
    )


@of_code.register
def _unsettled(one: note.Unsettled) -> str:
    return (
        f"The decision is not settled: in {100 * (1 - one.stability):.0f} % of resampled replications it would be "
        "another; allow more replications."
    )


@of_code.register
def _prices_without_source(one: note.PricesWithoutSource) -> str:
    return f"Prices without a source, to be replaced by those of an offer: {', '.join(one.parts)}."


@of_code.register
def _part_simulated(one: note.PartSimulated) -> str:
    return (
        f"Of the workload {one.workload} at the largest scale {100 * one.share:.2g} % of the operations were "
        "simulated; a maximum over all of them would be longer."
    )


@of_code.register
def _shorter_than_stalls(one: note.ShorterThanStalls) -> str:
    more = "raise 'most_operations' of the study" if one.capped else "give the workload more iterations"
    return (
        f"The simulation of {one.workload} at {one.scale} lasted {one.seconds:.2g} s, less than {one.periods} periods "
        f"of the stall {one.stall}: {more}."
    )


@of_code.register
def _no_level_about(one: note.NoLevelAbout) -> str:
    return f"No level is about {', '.join(one.workloads)}: it is in the means of rate and q99, and decides nothing."


@of_code.register
def _not_screened(one: note.NotScreened) -> str:
    return (
        f"The analytic solver does not know what {', '.join(one.workloads)} does (ranks that {UNSOLVED}; or phases of "
        "a level of seconds that a time limit may end); its designs were screened by one simulation each."
    )


@of_code.register
def _differs(one: note.Differs) -> str:
    before, after = ("not stated" if value is None else value for value in (one.before, one.after))
    return f"The {one.what} {one.name} differs: {before} and {after}."


@of_code.register
def _rates_count(one: note.RatesCount) -> str:
    return f"The rates count {' and '.join(one.units)}; they are not compared."


@of_code.register
def _operations_failed(one: note.OperationsFailed) -> str:
    return f"Operations failed ({one.before} and {one.after}); failed ones are in no figure."


@of_code.register
def _held_back(one: note.HeldBack) -> str:
    return (
        f"{one.limited} of {one.runs} runs were held back by {one.by} ('{one.run}': {one.rate:g}/s): "
        "their throughput, their concurrency and so their latencies are the limit's, not the storage's."
    )


@of_code.register
def _one_sided(one: note.OneSided) -> str:
    several = one.measurements > 1
    return f"{one.measurements} measurement{'s' * several} of only one side {'are' if several else 'is'} left out."

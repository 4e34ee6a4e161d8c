# SPDX-License-Identifier: Apache-2.0
"""Sentences of the codes of searches, observations and calibrations (iocast/records/note_of_measurements.py)."""

from __future__ import annotations

from iocast.records import note_of_measurements as note
from iocast.wording.note_sentence import of_code

STILL = {
    "levels": "the levels hold as fast as they can ask.",
    "power": "power still rises as fast as they can ask.",
    "busy": "beyond this load they are never idle, and operations take no longer than without load.",
}


@of_code.register
def _ranks_end_search(one: note.RanksEndSearch) -> str:
    return (
        f"Not the server but the number of ranks ({one.ranks}) ends the search: {STILL[one.still]} Ask with more "
        "ranks to learn what the server can do."
    )


@of_code.register
def _max_rate_ends_search(one: note.MaxRateEndsSearch) -> str:
    return f"The limit --max-rate {one.max_rate} ends the search: the levels hold at the highest rate that it allows."


@of_code.register
def _pace_ends_search(_: note.PaceEndsSearch) -> str:
    return (
        "No level was missed up to the load that the system can't keep up with; the answer is where its throughput "
        "ends."
    )


@of_code.register
def _waits_for_its_rank(one: note.WaitsForItsRank) -> str:
    return (
        f"At the answer an operation waits {100 * one.share:.0f} % of its response time for its own rank, which does "
        "one at a time, and takes no longer than without load: this is the limit of the ranks rather than of the "
        "server. With more ranks, the same load may keep the levels."
    )


@of_code.register
def _few_beyond_quantile(one: note.FewBeyondQuantile) -> str:
    return (
        f"In some runs fewer than {one.operations} operations lie beyond the quantile of {', '.join(one.quantities)}; "
        "longer runs (--length) know it better."
    )


@of_code.register
def _data_set_too_small(one: note.DataSetTooSmall) -> str:
    return (
        f"The data set is too small for runs of {one.length:g} s at the highest loads: the shortest was busy for "
        f"{one.shortest:.2g} s. More objects make longer runs."
    )


@of_code.register
def _whole_workload_each_run(one: note.WholeWorkloadEachRun) -> str:
    return (
        f"This workload's phase '{one.phase}' can't be run on a data set by itself: every run was the whole workload, "
        "as long as its own parameters say."
    )


@of_code.register
def _work_of_its_own(_: note.WorkOfItsOwn) -> str:
    return (
        "The amount of work of a run was the workload's own, as its parameters say, and so their length changed with "
        "the load."
    )


@of_code.register
def _runs_cut_off(one: note.RunsCutOff) -> str:
    return (
        f"{one.runs} run{'s were' if one.runs > 1 else ' was'} ended because of taking far longer than planned; this "
        "counts as missed."
    )


@of_code.register
def _clock_set(one: note.ClockSet) -> str:
    return f"The wall clock of {one.host} was set while it was observed; the times after that rest on the clock before."


@of_code.register
def _run_not_covered(one: note.RunNotCovered) -> str:
    return f"The observation of {one.host} does not cover the whole run."


@of_code.register
def _start_uncertain(one: note.StartUncertain) -> str:
    return f"The start of the run is known to {one.seconds:.1f} s only, so short phases may be off."


@of_code.register(note.OfCounters)
@of_code.register(note.FoundInRuns)
def _as_written(one: note.OfCounters | note.FoundInRuns) -> str:
    return one.sentence


@of_code.register
def _machine_busy(one: note.MachineBusy) -> str:
    return f"The machine was busy before '{one.campaign}' was measured. {' '.join(one.effects)}"


@of_code.register
def _parts_not_measured(one: note.PartsNotMeasured) -> str:
    return (
        f"The measurements tell {one.operation} as a whole only; its parts are split as in '{one.family}', so which "
        "station serves them is a guess."
    )


@of_code.register
def _operations_whole(one: note.OperationsWhole) -> str:
    whole = f"The measurements tell {', '.join(one.operations)} as a whole only; "
    if not one.elsewhere:
        return (
            whole + f"that the station '{one.station}' does all of it explains them, so nothing shows other stations."
        )
    split = ", ".join(one.elsewhere)
    return whole + f"{split} also takes time at another station. That time is fitted, but the station is a guess."


@of_code.register
def _threads_counted(one: note.ThreadsCounted) -> str:
    who = "Trips to the server" if one.network else "The server's own counters"
    many = f"{one.at_least} to {one.at_most}" if one.at_most else f"at least {one.at_least}"
    known = f"{one.likely} thread{'s' * (one.likely != 1)}" if one.likely else f"{many} threads"
    return (
        f"{who} show {known} of '{one.station}': an operation holds one for {'at most ' * one.network}"
        f"{1e3 * one.service:.3g} ms, and {one.busy:.2g} are in use at most."
    )


@of_code.register
def _nothing_held_out(one: note.NothingHeldOut) -> str:
    because = ", since nothing of the largest was measured at smaller ones" * one.switched
    return f"No scale could be held out{because}; the intervals rest on assumed discrepancies."


@of_code.register
def _too_rare_to_check(one: note.TooRareToCheck) -> str:
    return (
        f"{one.operation} is so rare that a simulated run lacks it at {', '.join(one.points)}: how far the platform is "
        "off there is not known. Longer runs have more of it."
    )


@of_code.register
def _lone_rank_off(one: note.LoneRankOff) -> str:
    more = "more" if one.fitted > one.measured else "less"
    return (
        f"A lone rank's {one.operation} takes {1e3 * one.measured:.3g} ms in the measurements and "
        f"{1e3 * one.fitted:.3g} ms on the fitted platform, {100 * abs(one.fitted / one.measured - 1):.0f} % {more}"
        f"{f', most of it in {one.part}' if one.part else ''}: the family has no right place for this time, and "
        f"forecasts of {one.operation} inherit the error."
    )


@of_code.register
def _parameters_tied(one: note.ParametersTied) -> str:
    return (
        f"The measurements hardly tell {one.one} and {one.other} apart (correlation {one.correlation:+.2f}): they fix "
        f"the {'ratio' if one.correlation > 0 else 'product'} of the two better than either."
    )


@of_code.register
def _fits_nearly_as_well(one: note.FitsNearlyAsWell) -> str:
    named = ", ".join(f"{choice} {name}" for choice, name in one.structure.items())
    return f"The data fit nearly as well with {named}; the intervals include it."


@of_code.register
def _held_out_missed(one: note.HeldOutMissed) -> str:
    return (
        f"Alarm: the largest measured scale, held out, was missed by a factor of {one.factor:.1f} in throughput. "
        "Either the measurements do not repeat (look at their spread), or the system does something at scale that the "
        "model has no place for."
    )


@of_code.register
def _misfit(one: note.Misfit) -> str:
    most = (
        f", most in {one.quantity} at {one.point}, {abs(100 * one.error):.0f} % too "
        f"{'high' if one.error > 0 else 'low'}"
        if one.quantity
        else ""
    )
    return (
        "Misfit: the best structure is further from the measurements than their noise explains (mean square of "
        f"standardised residuals {one.residual:.2f}, at most {one.usual:.2g} is usual){most}. Something in this system "
        "has no place in the model: intervals are wider and grow faster for it, and forecasts far beyond the measured "
        "scales deserve less trust than even those say."
    )


@of_code.register
def _family_by_default(one: note.FamilyByDefault) -> str:
    others = [f"{family} ({score:.3g})" for family, score in one.scores.items() if family != one.family]
    better = f", which fits better (score {one.scores[one.family]:.3g}) than {' and '.join(others)}" if others else ""
    return (
        f"The family '{one.family}' is a default{better}: {one.because}. Name a family with --platform if you know it."
    )


@of_code.register
def _rates_alone(one: note.RatesAlone) -> str:
    if one.latencies:
        return (
            "Only rates were fitted: latencies are those of measured scales, stretched to the rate, and intervals rest "
            "on how other storage systems grow."
        )
    return (
        "Only rates were fitted: forecasts have no latencies, and their intervals rest on how other storage systems "
        "grow."
    )


@of_code.register
def _latencies_not_fitted(one: note.LatenciesNotFitted) -> str:
    return f"The results have latencies, which were not fitted. {one.because}"


@of_code.register
def _growth_not_measured(one: note.GrowthNotMeasured) -> str:
    advice = f"Measure {' and '.join(one.next)} next." if one.next else "Measure more ranks."
    return f"All measurements have {one.ranks} ranks, so that growth from there is not measured. {advice}"


@of_code.register
def _settings_vary(one: note.SettingsVary) -> str:
    return (
        f"The measurements differ in {', '.join(one.settings)}, of which the model knows nothing: it takes them for "
        "one workload. If they are not, calibrate each by itself."
    )


@of_code.register
def _rates_off_growth(one: note.RatesOffGrowth) -> str:
    listed = ", ".join(f"{point} {100 * error:+.0f} %" for point, error in one.errors.items())
    return (
        f"Misfit: no curve of growth follows these rates (measured against fitted: {listed}). The system may have "
        "changed between the runs, the rates may be of different things, or the system collapses there; intervals are "
        "widened by the residuals. Measure these placements again."
    )

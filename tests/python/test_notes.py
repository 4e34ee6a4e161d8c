# SPDX-License-Identifier: Apache-2.0
"""Codes of cautions: each has a sentence, which the numbers of a document make again, and each is made
somewhere."""

from __future__ import annotations

import ast

import json

from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import Struct
from programs import REPOSITORY

import iocast
from iocast.errors import InputError
from iocast.records import note, note_of_measurements as measured
from iocast.records.codes import KINDS, notes_of, notes_of_fit
from iocast.records.note import BlendedGroup, LeftOutRun, Note, Noted, PublishedOff, RateOutside, Written
from iocast.records.quantities import Interval
from iocast.wording.notes import add, put, sentence

RATE = Interval(1234.5, 800.0, 2000.0)
WIDE = Interval(1234.5, 10.0, 2000.0)
NUMBERS = [
    (note.Written("As it was."), "As it was."),
    (note.OfCalibration("Fitted so."), "Fitted so."),
    (note.ModelLimit("no-server", "No server."), "No server."),
    (note.LoadNotServed(4e5, {"create": 1e5, "stat": 2e5}), "400 k/s are due, 100 k/s in the phase create and"),
    (note.CoresUnknown(), "How many cores the machine has is not known"),
    (note.MoreRanksThanCores(32, 8), "32 ranks on 8 cores:"),
    (note.BeyondMemory(3 * 2.0**30, 2.0**31), "A working set of 3 GiB with 2 GiB of memory:"),
    (note.OthersPileUp(), "The work of others, which was fitted at smaller scales"),
    (note.RestsOnFamily({"read": ["a", "b", "c"], "write": ["c", "d", "e"]}), "a, b, c, d and 1 more, on which the"),
    (note.SolverUnchecked(), "The analytic solver has no model for what was measured"),
    (note.StructureOpen("lock", {"node": 10.0, "system": 1500.0}), "which lock it is, and here that matters: node"),
    (
        note.TellingRun(4, 8, 0.5, 3.0, 1.5, 20.0, (1.2, 2.0), {"sync": "true"}),
        "most: 32 ranks on 4 nodes, T = 0.5, sync=true (a run takes some 20 s); throughput would then hold within a "
        "factor 1.2 to 2.0 either way instead of a factor 3.0 either way.",
    ),
    (
        note.BlendedWithRules([BlendedGroup("throughput", {"last value": 0.7, "queue": 0.3}, "it is so")]),
        "mostly that of simple rules, since it is so: throughput 70 % last value, 30 % queue.",
    ),
    (note.RulesSilent(64, 4, 16), "Simple rules are silent at 4 x 16, since"),
    (note.RulesSilent(64), "Simple rules are silent at 64 ranks, since"),
    (note.HeldBelowCeiling(RATE, 1234.5, 2000.0, 1.25), "1.23 k/s; the calibrated platform alone says 2.00 k/s"),
    (note.HeldBelowCeiling(WIDE, 1234.5, 2000.0, 1.25), "about 1.23 k/s; the calibrated platform alone says"),
    (note.HeldAsMeasured(0.75), "is 25 % below the calibrated platform's"),
    (note.LinkFull("node_bandwidth", 5000.0, 16, 2000.0, nodes=1), "the network cards of 1 client node can carry"),
    (note.LinkFull("node_bandwidth", 5000.0, 16, 2000.0, seen_on=4), "Ranks of the 4 nodes may have sent each other"),
    (note.LinkPerhapsFull("node_bandwidth", 5e3, 16, 900.0, nodes=2), "cards of 2 client nodes carry 900 /s, down to"),
    (note.LinkPerhapsFull("node_bandwidth", 5e3, 16, 900.0, False, nodes=2), "900 /s, of which nothing here"),
    (
        note.LinkUnknown("server_bandwidth", ["stat"], 4096, 1e5, True, station="mds"),
        "what stat sends over the network cards of 'mds' is not known, so that their limit changes no value here. With "
        "4 KiB each way an operation they are full at 100 k/s, down to which the interval reaches.",
    ),
    (note.LinkUnknown("backbone_bandwidth", ["a", "b"], 4096, 1e5, False), "what a, b send over the backbone is"),
    (note.LengthNotMeasured("objects", "200", "100"), "objects=200 was not measured, but objects=100."),
    (note.NoTime("x", ["a", "b"]), "On the platform 'x' no operation of a and b takes any time"),
    (note.Unsolved(["a", "b"]), "In a, b ranks act together"),
    (note.TimeLimit("write"), "The time limit of write may end it"),
    (note.TooRare("stat", "mix", 1, 3, True), "'mix' that 1 of 3 simulated runs lack it: its latencies rest on"),
    (note.TooRare("stat", "mix", 1, 3, False), "rest on the others, and its share and distribution are not known."),
    (note.FarBeyondMeasured(16384, 64), "16,384 ranks are 256 times what was measured (64)."),
    (note.WaitingNotMeasured(2.0, [0.0, 0.5]), "The waiting factor 2 was not measured; T = 0, 0.5 were."),
    (note.OneNodeMeasured(4), "All measurements ran on one node, and the forecast is of 4:"),
    (note.NodesWithRanks(["1x2", "2x4"], 8), "(1x2, 2x4) differ in nodes and in ranks a node at once"),
    (note.RanksPerNodeNotMeasured(8, [1]), "8 ranks a node were not measured; 1 was."),
    (note.RanksPerNodeNotMeasured(1, [2, 4]), "1 rank a node was not measured; 2, 4 were."),
    (note.OtherSettings(["sync true, not false"]), "with these settings (sync true, not false): it is another"),
    (note.SumOfMachines(4), "This is the sum of 4 machines"),
    (note.RestsOnOnePhase("stat", ["read"]), "was fitted to the phase stat alone: read has parameters"),
    (note.RestsOnOnePhase("stat", ["a", "b"], ["w", "v"]), "Of the workloads w, v: It rests on what was fitted"),
    (note.PhasesNotFitted("stat", ["read"]), "The platform was fitted to the phase stat, not to read:"),
    (note.FarBeyondPublished("ime", 9000, 18000, 5.2), "9,000 nodes with 18,000 ranks are 5 times the largest"),
    (
        note.OutsideBounds([RateOutside("stat", Interval(5e8, 1.0, None, unit="bytes"), 1e9, 1e9, 4, 2)], placed=True),
        "stat at 4x2 500 MB/s, below 1.00 GB/s. In a closed system",
    ),
    (note.OutsideBounds([RateOutside("stat", RATE, 50.0, 100.0)]), "stat 1.23 k/s, above 50.0 /s to 100 /s."),
    (note.MoreObjects(4000, 1000), "keeps 4000 objects, 4 times as many as any that was fitted (1000)."),
    (note.MeasuredHere("stat", [1e3, 2e3], 4, 2, 8), "stat did 1.00 k/s and 2.00 k/s at 4x2; take the measurement."),
    (
        note.MeasuredHere("stat", [1e9], 1, 8, 8, "bytes", True),
        "stat did 1.00 GB/s with 8 ranks; if it was on as many nodes, take the measurement.",
    ),
    (note.FarOffWhereChecked(-0.5, 0.25, "stat", True), "of stat was more than 25 % too low, and a simple rule was"),
    (note.FarOffWhereChecked(0.31, 0.25, "stat", False, 8, 4), "from up to 4 ranks its forecast of stat at 8 was 31 %"),
    (note.FarOffWhereChecked(0.5, 0.25), "At the held-out scale the forecast was more than 25 % too high:"),
    (
        note.BeyondObserved(RATE, "server cpu", 1e3, 0.8, 16, 2e-4),
        "1.23e+03/s, is above the 1e+03/s that server cpu allows: it was 80 % in use at 16 ranks, 200 us an operation.",
    ),
    (
        note.NearerLeftOut([LeftOutRun(1e3, [4, 2.5], []), LeftOutRun(2e3, [8, 2], ["sync=1"])]),
        "1.00 k/s at 4x2.5 (other settings); 2.00 k/s at 8x2 (sync=1).",
    ),
    (note.NoFacts("x"), "no published or measured number stands behind the platform 'x'."),
    (
        note.RestsOnPublished("x", [PublishedOff("rates", 3, 1.256)], edited=True),
        "that the platform x was not set to, as if that were so of its changes, too: 3 rates, in the median a factor "
        "of 1.26 off (docs/evidence.md).",
    ),
    (note.RestsOnPublished("x", [], left_out=True), "numbers that x was fitted to, each forecast from the rest:"),
    (note.NeverFitted("x", True), "The platform 'x' was never calibrated: its numbers are its author's."),
    (note.NeverFitted("x", False), "its author's, and the study states no error of the model, so the confidence"),
    (note.NeverFitted("x", True, "fio"), "its author set its numbers by hand to measurements of fio."),
    (note.StudyFarBeyondMeasured(1024, 8), "The study has 1,024 clients, 128 times the 8 that were measured:"),
    (
        note.RulesChangeDesigns("x", "w", 1024, 1.1, note.RulesSilent(64)),
        "predict forecasts it: Simple rules are silent at 64 ranks, since",
    ),
    (
        note.RulesChangeDesigns("x", "w", 1024, 0.9),
        "between the last two. It changes the rate of w at 1,024 clients by -10 % for every design of this platform",
    ),
    (note.MeasuredNotSimulated("x", "w", 1024, "It can't."), "w at 1,024 clients, so that simple rules and the"),
    (note.SystemsBeside("lustre", ["a", "b"], ["ior", "mdtest"]), "(a, b), as models that were set to measurements of"),
    (note.SystemWithoutAnswer("a has none."), "a has none."),
    (note.NothingUncertain(), "Nothing in this study is uncertain but chance"),
    (note.Unsettled(0.9), "in 10 % of resampled replications it would be another"),
    (note.PricesWithoutSource(["ost"]), "to be replaced by those of an offer: ost."),
    (note.PartSimulated("w", 0.125), "Of the workload w at the largest scale 12 % of the operations were simulated;"),
    (note.ShorterThanStalls("w", "few", 1.5, 3, "commit", True), "w at few lasted 1.5 s, less than 3 periods of the"),
    (note.ShorterThanStalls("w", "few", 1.5, 3, "commit", False), "commit: give the workload more iterations."),
    (note.NoLevelAbout(["a"]), "No level is about a: it is in the means"),
    (note.NotScreened(["a"]), "The analytic solver does not know what a does (ranks that"),
    (note.Differs("parameter", "sync", "True"), "The parameter sync differs: True and not stated."),
    (note.Differs("number of", "ranks", "4", "8"), "The number of ranks differs: 4 and 8."),
    (note.RatesCount(["bytes", "operations"]), "The rates count bytes and operations; they are not compared."),
    (note.OperationsFailed(0, 3), "Operations failed (0 and 3); failed ones are in no figure."),
    (note.HeldBack(1, 4, "a/b", 1500.0, "--max-rate"), "1 of 4 runs were held back by --max-rate ('a/b': 1500/s):"),
    (note.OneSided(1), "1 measurement of only one side is left out."),
    (note.OneSided(2), "2 measurements of only one side are left out."),
    (measured.RanksEndSearch(8, "levels"), "number of ranks (8) ends the search: the levels hold as fast as"),
    (measured.RanksEndSearch(8, "power"), "ends the search: power still rises as fast as they can ask."),
    (measured.RanksEndSearch(8, "busy"), "ends the search: beyond this load they are never idle,"),
    (measured.MaxRateEndsSearch("100/s"), "The limit --max-rate 100/s ends the search:"),
    (measured.PaceEndsSearch(), "the answer is where its throughput ends."),
    (measured.WaitsForItsRank(0.456), "waits 46 % of its response time for its own rank"),
    (measured.FewBeyondQuantile(10, ["q99", "q999"]), "fewer than 10 operations lie beyond the quantile of q99, q999;"),
    (measured.DataSetTooSmall(5.0, 1.25), "too small for runs of 5 s at the highest loads: the shortest was busy for"),
    (measured.WholeWorkloadEachRun("mix"), "phase 'mix' can't be run on a data set by itself"),
    (measured.WorkOfItsOwn(), "was the workload's own, as its parameters say"),
    (measured.RunsCutOff(1), "1 run was ended because of taking far longer"),
    (measured.RunsCutOff(2), "2 runs were ended because of taking far longer"),
    (measured.ClockSet("a"), "The wall clock of a was set while it was observed;"),
    (measured.RunNotCovered("a"), "The observation of a does not cover the whole run."),
    (measured.StartUncertain(0.5), "is known to 0.5 s only"),
    (measured.OfCounters("Without times."), "Without times."),
    (measured.MachineBusy("scratch", ["Slow.", "Slower."]), "busy before 'scratch' was measured. Slow. Slower."),
    (measured.FoundInRuns("drift", "It drifts."), "It drifts."),
    (measured.PartsNotMeasured("create", "lustre"), "tell create as a whole only; its parts are split as in 'lustre',"),
    (measured.OperationsWhole(["a", "b"], "mds"), "tell a, b as a whole only; that the station 'mds' does all of it"),
    (measured.OperationsWhole(["a", "b"], "mds", ["b"]), "as a whole only; b also takes time at another station."),
    (measured.ThreadsCounted("mds", 1e-3, 1.25, 1, 2, 1), "The server's own counters show 1 thread of 'mds': an "),
    (measured.ThreadsCounted("mds", 1e-3, 1.25, 4, network=True), "Trips to the server show at least 4 threads of"),
    (measured.ThreadsCounted("mds", 1e-3, 1.25, 4, 8), "show 4 to 8 threads of 'mds': an operation holds one for 1"),
    (measured.NothingHeldOut(), "No scale could be held out; the intervals"),
    (measured.NothingHeldOut(switched=True), "since nothing of the largest was measured at smaller ones; the"),
    (measured.TooRareToCheck("stat", ["4x2"]), "stat is so rare that a simulated run lacks it at 4x2:"),
    (measured.LoneRankOff("stat", 1e-3, 1.5e-3, "stat.x"), "fitted platform, 50 % more, most of it in stat.x: the"),
    (measured.LoneRankOff("stat", 1e-3, 5e-4), "1 ms in the measurements and 0.5 ms on the fitted platform, 50 %"),
    (measured.ParametersTied("a", "b", 0.98), "tell a and b apart (correlation +0.98): they fix the ratio of the two"),
    (measured.ParametersTied("a", "b", -0.98), "(correlation -0.98): they fix the product of the two"),
    (measured.FitsNearlyAsWell({"lock": "node", "cache": "none"}), "nearly as well with lock node, cache none; the"),
    (measured.HeldOutMissed(1.5), "Alarm: the largest measured scale, held out, was missed by a factor of 1.5 in"),
    (
        measured.Misfit(3.0, 1.5, "stat.q50", "4x2", -0.5),
        "residuals 3.00, at most 1.5 is usual), most in stat.q50 at 4x2, 50 % too low. Something",
    ),
    (measured.Misfit(3.0, 1.5), "at most 1.5 is usual). Something in this system"),
    (measured.FamilyByDefault("nfs", "it is so", {"nfs": 1.0}), "The family 'nfs' is a default: it is so. Name a"),
    (
        measured.FamilyByDefault("nfs", "it is so", {"nfs": 1.0, "lustre": 2.5}),
        "'nfs' is a default, which fits better (score 1) than lustre (2.5): it is so.",
    ),
    (measured.RatesAlone(), "Only rates were fitted: forecasts have no latencies,"),
    (measured.RatesAlone(latencies=True), "Only rates were fitted: latencies are those of measured scales,"),
    (measured.LatenciesNotFitted("It is so."), "The results have latencies, which were not fitted. It is so."),
    (measured.GrowthNotMeasured(8, ["2 x 2", "1 x 2"]), "All measurements have 8 ranks, so that growth from there is"),
    (measured.GrowthNotMeasured(8, []), "is not measured. Measure more ranks."),
    (measured.SettingsVary(["sync", "size"]), "The measurements differ in sync, size, of which the model knows"),
    (measured.RatesOffGrowth({"4x2": -0.5, "8x2": 0.25}), "(measured against fitted: 4x2 -50 %, 8x2 +25 %)."),
]  # fmt: skip
"""Of each code its numbers, and what of the sentence they make."""


@pytest.mark.parametrize(("one", "part"), NUMBERS)
def test_the_sentence_is_that_of_the_numbers_in_a_file(one: Note, part: str) -> None:
    document: dict[str, Any] = {}
    put(document, [one, one])
    (entry,) = (written := json.loads(json.dumps(document)))["cautions"]
    assert list(notes_of(written)) == [one]
    assert [sentence(read) for read in notes_of(written)] == written["warnings"] == [entry["text"]]
    assert part in entry["text"] and entry["text"].endswith(".") and "{" not in entry["text"]
    named = msgspec.structs.replace(one, about=("create", "stat"))
    assert sentence(named) == f"create, stat: {entry['text']}"
    assert list(notes_of({"cautions": [msgspec.to_builtins(named)]})) == [named]


def of_numpy(value: Any) -> Any:
    """The same with numbers of numpy, as sums and medians over arrays are."""
    if isinstance(value, Note | Struct):
        return type(value)(**{name: of_numpy(getattr(value, name)) for name in value.__struct_fields__})
    if isinstance(value, dict | list | tuple):
        changed = [of_numpy(one) for one in (value.values() if isinstance(value, dict) else value)]
        return dict(zip(value, changed, strict=True)) if isinstance(value, dict) else type(value)(changed)
    return np.float64(value) if isinstance(value, float) else value


@pytest.mark.parametrize(("one", "part"), NUMBERS)
def test_numbers_of_numpy_are_written_as_others(one: Note, part: str) -> None:
    made: dict[str, Any] = {}
    put(made, [of_numpy(one)])
    written = json.loads(json.dumps(made))
    assert list(notes_of(written)) == [one] and part in sentence(one) == written["warnings"][0]


def test_each_code_has_its_row_above_and_is_made_somewhere() -> None:
    assert {type(one) for one, _ in NUMBERS} == set(KINDS.values())
    trees = [
        ast.parse(file.read_text())
        for file in (REPOSITORY / "iocast").rglob("*.py")
        if file.parent.name != "wording" and not file.name.startswith(("note", "codes"))
    ]
    calls = [node.func for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    made = {
        one.attr if isinstance(one, ast.Attribute) else one.id
        for one in calls
        if isinstance(one, ast.Attribute | ast.Name)
    }
    assert {kind.__name__ for kind in KINDS.values()} - made == {"Written", "OfCalibration"}  # which codes.py makes


def test_notes_are_added_once() -> None:
    """As calibrations do, whose parts each add theirs."""
    document: Noted = {"notes": ["Before."], "cautions": [{"code": "written", "text": "Before."}]}
    add(document, [measured.RatesAlone(), measured.RatesAlone()])
    add(document, [measured.RatesAlone(), measured.ClockSet("a")])
    assert document["notes"] == ["Before.", *map(sentence, (measured.RatesAlone(), measured.ClockSet("a")))]
    assert [one["text"] for one in document["cautions"]] == document["notes"]
    forecast = notes_of_fit({"notes": [*document["notes"], "Of old."], "cautions": document["cautions"]})
    assert [one.of for one in forecast] == ["written", "rates-alone", "clock-set", ""]


def test_codes_of_a_newer_file_are_read_as_its_sentences() -> None:
    entries = [
        {"code": "of-tomorrow", "text": "New."},
        {"code": "sum-of-machines", "nodes": "four", "text": "Changed."},
    ]
    assert list(notes_of({"cautions": entries, "warnings": []})) == [Written("New."), Written("Changed.")]


@pytest.mark.parametrize("entry", ["x", {"code": "sum-of-machines"}, {"code": "of-tomorrow"}, None])
def test_an_entry_of_which_nothing_can_be_read_is_refused(entry: object) -> None:
    with pytest.raises(InputError, match="has neither a known code with its keys nor a text"):
        list(notes_of({"cautions": [entry], "warnings": ["As it was."]}))


def test_an_answer_has_its_cautions_by_code() -> None:
    small = {"datasets": 1, "iterations": 10, "objects": 10}
    runs = iocast.import_results(REPOSITORY / "examples" / "first-forecast" / "cirrus.csv")
    answer = iocast.predict(iocast.calibrate(runs), nodes=1024)
    (far,) = [one for one in answer.cautions if isinstance(one, note.FarBeyondMeasured)]
    assert far.ranks == 1024 * 36 and sentence(far) in answer.warnings
    assert [one["text"] for one in answer.document()["cautions"]] == answer.warnings
    assert iocast.predict("queue", 1, 8, workload="md-workbench", settings=small, solver="analytic").cautions == []

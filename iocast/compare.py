# SPDX-License-Identifier: Apache-2.0
"""What changed from one measurement to another beyond their noise (docs/compare.md).

The unit is the run: repeats within a run share its moment, and are no independent evidence of a change. With at least
four runs on both sides their values are compared: a permutation test over all their arrangements, on Welch's t of the
logarithms, with Westfall and Young's step-down maximum over all quantities (P. Westfall, S. Young, Resampling-Based
Multiple Testing, 1993, algorithm 4.1), so that the chance of one false alarm among all of them is alpha. With fewer,
but two on some side, Student's t with the pooled variance between runs, and Holm's correction. An interval has the
correction of its test: those that were not rejected share alpha as the last step did, so that an interval holds "no
change" exactly where the test did not reject it (O. Guilbaud, Simultaneous confidence regions corresponding to Holm's
step-down procedure, Biometrical Journal 50, 2008). The quantities that thresholds name are a family of their own, which
the others cost nothing. With one run a side the
noise between runs can't be known: an assumed one is added to the noise within the runs, which repeats show, or the
intervals of the time lines: a block bootstrap for the rate and means (H. Kuensch, Annals of Statistics 17, 1989), order
statistics with as many independent operations as the bootstrap's spread says for quantiles. Simulated runs differ by
their seeds alone: there nothing is added."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iocast.changes import Side, Threshold
from iocast.errors import InputError
from iocast.ground.files import SCHEMA_VERSION, read_campaign, read_json
from iocast.runs.phases import first_phase, operations_by_phase
from iocast.records import note
from iocast.records.comparison import ComparedPoint, ComparisonDocument
from iocast.records.note import Note
from iocast.runs.run_directory import LENGTHS, Run, UNTOLD, runs_in
from iocast.rules.significance import choose, quantities
from iocast.ground.strict_yaml import allowed_sentence
from iocast.wording.notes import cautious, sentences


def compare(
    a: Path, b: Path, *, phase: str | None = None, alpha: float = 0.05, seed: int = 0, fail_on: Sequence[Threshold] = ()
) -> ComparisonDocument:
    """@return the comparison (docs/compare.md, `kind: comparison`)
    @raises InputError when the two can't be compared"""
    if not 0 < alpha < 1:
        raise InputError(f"The false-alarm rate {alpha:g} is no probability between 0 and 1.")
    any_length = _sized(a) and _sized(b)
    pairs, alone = _pairs(_read(a, phase), _read(b, phase), a, b, any_length=any_length)
    points: list[ComparedPoint] = []
    for left, right, notes in pairs:
        thresholds = _thresholds(quantities(left, right), fail_on)
        method = choose(left, right, alpha, seed, thresholds)
        rows = [change.as_json(alpha, thresholds.get(change.quantity)) for change in method.changes]
        for row in rows:
            if row["quantity"] == "rate" and (unit := left.phases[0].rate_unit):
                row["unit"] = unit
        first = left.runs[0]
        points.append(
            {
                "name": left.name,
                "phase": first.phase,
                "ranks": first.ranks,
                "waiting_factor": first.waiting_factor,
                "runs": [len(left.runs), len(right.runs)],
                "repeats": [len(left.phases), len(right.phases)],
                "method": method.name,
                "assumed_between_runs": method.between,
                "how": method.sentence,
                "tests": sum(c.p is not None for c in method.changes),
                "rows": rows,
                "failed": [row["quantity"] for row in rows if row["judged"] == "worse"],
                "undecided": [row["quantity"] for row in rows if row["judged"] == "undecided"],
                **cautious(notes + _held_back(left.runs + right.runs)),
            }
        )
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "comparison",
        "a": str(a),
        "b": str(b),
        "alpha": alpha,
        "fail_on": [{"quantity": threshold.quantity or None, "loss": threshold.loss} for threshold in fail_on],
        "points": points,
        "failed": any(point["failed"] for point in points),
        "undecided": any(point["undecided"] for point in points),
        **cautious(alone),
    }


def _thresholds(known: Sequence[str], fail_on: Sequence[Threshold]) -> dict[str, Threshold]:
    """The threshold of each quantity that has one: of several the one that names it most nearly, and of these the
    strictest. @raises InputError when a threshold is for nothing that was measured"""
    for threshold in fail_on:
        if not any(threshold.nearness(quantity) for quantity in known):
            raise InputError(
                f"There is no quantity '{threshold.quantity}' to fail on. "
                f"{allowed_sentence(threshold.quantity, list(known))}"
            )
    found = {}
    for quantity in known:
        near = [threshold for threshold in fail_on if threshold.nearness(quantity)]
        if near:
            found[quantity] = max(near, key=lambda one: (one.nearness(quantity), -one.loss))
    return found


def _sized(path: Path) -> bool:
    """Whether it is a campaign whose pilot run chose the lengths of its runs."""
    return (path / "campaign.json").is_file() and bool(read_campaign(path).get("pilot"))


def is_measurement(path: Path) -> bool:
    """Whether `compare` can take it: a run directory, a campaign, or a directory of run directories."""
    return (path / "run.json").is_file() or (path / "campaign.json").is_file() or bool(runs_in(path))


def _read(path: Path, phase: str | None) -> list[Run]:
    if (path / "campaign.json").is_file():
        points = read_campaign(path)["points"]
        paths = [path / "runs" / p["name"] for p in points if p["status"] == "complete"]
    else:
        paths = [path] if (path / "run.json").is_file() else runs_in(path) or [path]
    found = []
    name = phase or _main_phase(paths)
    for one in paths:
        if len(paths) > 1 and name not in {p["name"] for p in read_json(one / "run.json", "run")["phases"]}:
            continue  # a step of a protocol that has no such phase
        found.append(Run(one, name))
    if not found:
        raise InputError(
            f"There is no complete run with the phase '{name}' in "
            f"'{path}'.{'' if phase else ' Name another one with --phase.'}"
        )
    return found


def _main_phase(paths: Sequence[Path]) -> str:
    """The phase that stands for these runs, as in reports and forecasts."""
    operations: dict[str, float] = {}
    for path in paths:
        if (path / "run.json").is_file():  # otherwise Run has the sentence for it
            for name, count in operations_by_phase(Run.read(path)[0]["phases"]).items():
                operations[name] = operations.get(name, 0) + count
    return first_phase(operations) if operations else "benchmark"


def _key(run: Run, besides: Sequence[str] = ()) -> tuple[Any, ...]:
    """What two runs must share to be the same measurement; a repeat count does not matter, nor what is in `besides`."""
    parameters = {k: v for k, v in run.parameters.items() if k not in (*UNTOLD, *besides)}
    where = run.json["placement"]
    return (
        run.ranks,
        where["nodes"],
        run.waiting_factor,
        run.json["workload"]["pattern"],
        *sorted((k, str(v)) for k, v in parameters.items()),
    )


def _pairs(
    left: list[Run], right: list[Run], a: Path, b: Path, *, any_length: bool
) -> tuple[list[tuple[Side, Side, list[Note]]], list[Note]]:
    """The sides of each measurement that both have, with what is not the same about them; and what only one has. With
    `any_length` runs of one measurement may differ in length: a faster system is given more operations."""
    if len(left) == 1 and len(right) == 1:
        return [(Side(left[0].path.name, left), Side(right[0].path.name, right), _differences(left[0], right[0]))], []
    grouped: dict[tuple[Any, ...], tuple[list[Run], list[Run]]] = {}
    besides = LENGTHS if any_length and all(_same_without(LENGTHS, runs) for runs in (left, right)) else ()
    for runs, side in ((left, 0), (right, 1)):
        for run in runs:
            grouped.setdefault(_key(run, besides), ([], []))[side].append(run)
    pairs, alone = [], 0
    for mine, theirs in grouped.values():
        if mine and theirs:
            name = f"N={mine[0].ranks} T={mine[0].waiting_factor:g}"
            pairs.append((Side(name, mine), Side(name, theirs), _differences(mine[0], theirs[0])))
        else:
            alone += 1
    if not pairs:
        raise InputError(
            f"'{a}' and '{b}' have no measurement of the same ranks, nodes and parameters in common. "
            f"{_nearest(left, right)}"
        )
    return pairs, [note.OneSided(alone)] if alone else []


def _same_without(names: Sequence[str], runs: list[Run]) -> bool:
    """Whether these parameters distinguish no two of the runs."""
    return len({_key(run) for run in runs}) == len({_key(run, names) for run in runs})


def _nearest(left: list[Run], right: list[Run]) -> str:
    """What the two runs differ in that differ in least."""
    notes = min((_differences(x, y) for x in left for y in right), key=len)
    return f"Of the nearest two: {' '.join(sentences(notes))}"


def _differences(a: Run, b: Run) -> list[Note]:
    """What is not the same about two runs; another workload can't be compared at all."""
    if a.json["workload"]["pattern"] != b.json["workload"]["pattern"] or a.phase != b.phase:
        raise InputError(
            f"'{a.path}' is of the workload {a.json['workload']['pattern']} (phase {a.phase}), '{b.path}' of "
            f"{b.json['workload']['pattern']} (phase {b.phase}); these are no measurements of the same thing."
        )
    notes: list[Note] = []
    ours, theirs = a.parameters, b.parameters
    for name in sorted({*ours, *theirs} - {"repeats", "start_index", "phases", "score"}):
        if str(ours.get(name)) != str(theirs.get(name)):
            notes.append(note.Differs("parameter", name, _stated(ours.get(name)), _stated(theirs.get(name))))
    for key in ("ranks", "nodes"):
        one, other = a.json["placement"][key], b.json["placement"][key]
        if one != other:
            notes.append(note.Differs("number of", key, _stated(one), _stated(other)))
    units = {phase.rate_unit or "operations" for phase in (*a.phases, *b.phases)}
    if len(units) > 1:
        notes.append(note.RatesCount(sorted(units)))
    if a.errors or b.errors:
        notes.append(note.OperationsFailed(a.errors, b.errors))
    return notes


def _stated(value: object) -> str | None:
    return None if value is None else str(value)


def _held_back(runs: list[Run]) -> list[Note]:
    """Runs whose rate was limited."""
    limited = [run for run in runs if run.max_rate]
    if not limited:
        return []
    first = limited[0]
    return [note.HeldBack(len(limited), len(runs), str(first.path), first.max_rate, first.limited_by)]

# SPDX-License-Identifier: Apache-2.0
"""From results of trainings to a forecast of more accelerators (`iocast forecast --accelerators`)."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any, cast

from iocast.training.accelerators import FARTHEST, UNLIKELY, Fed, Feeding, FeedingQuestion, Most, growth, largest
from iocast.errors import InputError
from iocast.ground.files import read_json, write_json
from iocast.forecasts.sources import runs_of, with_settings
from iocast.importers.record import Stated
from iocast.importers.series import series_notes
from iocast.runs.question import meaning
from iocast.records.run import Accelerators
from iocast.runs.run_directory import Run, run_directories
from iocast.ground.scratch import whole_directory
from iocast.wording.text import quantity, table
from iocast.training.tasks import limit_of, task_of
from iocast.records.feeding import AcceleratorsDocument, IfFedDocument, MostFed, FedDocumentCount, FeedingForecast

IDENTITY = ("submitter", "system", "workload", "accelerator")
"""Parameters that tell measurements of different questions apart, before all others that are words."""
NO_QUESTION = ("phases", "name")
"""Words among the parameters of a run that tell no system from another."""
SETTINGS = ("batch", "readers", "prefetch", "samples_per_file", "ranges", "read_block")
"""Numbers among the parameters that tell trainings apart, too. Others are lengths of runs, or grow with the count."""
SIZES = ("sample_size", "compute_time")
"""Those that may be measured means."""
SAME_SIZE = 0.1
"""Share by which they may differ in one training."""
DIFFERS = 0.1
"""Share by which repeats of one count differ that contradict each other. Of 82 published means the repeats have a
standard deviation of 3.2 % at most (MLPerf Storage 1.0)."""
REFUTED = 0.25
"""Share by which the rate of an accelerator that waits for nothing may differ between counts of one training; it is its
computation alone, and published ones differ by 16 % at most between systems."""
BORDER = 0.02
"""Share of the limit by which a count counts as bordering it, where what limits is read from added hosts."""


def trained(run: Run) -> list[Accelerators]:
    """What accelerators did in the phases that train; in all that have any, where none does."""
    found = [phase for phase in run.record.phases if phase.accelerators is not None]
    training = [phase for phase in found if phase.name == "train"]
    return [phase.accelerators for phase in training or found if phase.accelerators is not None]


def runs_with_accelerators(paths: Sequence[Path], only: Mapping[str, Sequence[str]]) -> list[Run]:
    """Runs with accelerators, by the settings of `only`.

    @raises InputError when none has any"""
    runs = []
    for path, _, _ in run_directories(list(paths)):
        _, record = Run.read(path)
        phase = next((one.name for one in record.phases if one.accelerators is not None), None)
        if phase is not None:
            runs.append(Run(path, phase))
    if not runs:
        raise InputError(
            "No run of these results has accelerators. They are in the results of DLIO and MLPerf Storage, in tables "
            "of trainings, and in runs of trainings by iocast-bench and iocast-sim."
        )
    for name, values in only.items():
        runs = with_settings(runs, {name: values})
    return runs


def left_out(paths: Sequence[Path], series: Path) -> list[str]:
    """What the sources hold beside trainings, as sentences: runs without accelerators, and files that are no result of
    a training, by the series that was imported."""
    found = []
    for path, _, _ in run_directories(list(paths)):
        _, record = Run.read(path)
        if all(one.accelerators is None for one in record.phases):
            found.append(f"left out: '{path.name}' is a result of {record.workload.name}, without accelerators.")
    if series.is_file():
        found += series_notes(read_json(series, "series"))
    return found


def measured_of(runs: Sequence[Run]) -> list[Fed]:
    """Each count of accelerators once, repeats as their mean; of several numbers of hosts the largest.

    @raises InputError for runs of several systems, workloads or accelerators, and for those without utilisation"""
    every = by_place(runs)
    return [max((one for one in every if one.count == count), key=_hosts) for count in sorted({f.count for f in every})]


def on_fewer_hosts(runs: Sequence[Run]) -> list[Fed]:
    """Counts that were measured on more hosts, too: these are the hosts' limit, and not that of the system."""
    kept = measured_of(runs)
    return [one for one in by_place(runs) if one not in kept]


def by_place(runs: Sequence[Run]) -> list[Fed]:
    """Each count on each number of hosts, ascending, repeats as their mean. @raises InputError as measured_of does"""
    _require_one_question(runs)
    every = [one for run in runs for one in trained(run)]
    in_samples = [one.samples_per_second is not None for one in every]
    if any(in_samples) and not all(in_samples) and not all(one.bytes_per_second is not None for one in every):
        raise InputError(
            "Some of these results have samples a second, and others bytes a second alone. A forecast is in one of "
            "them; name a workload whose size of a sample is known, or leave the others out with --only."
        )
    found: dict[tuple[int, int | None], list[Accelerators]] = defaultdict(list)
    for run in runs:
        for one in trained(run):
            found[one.count, run.record.placement.nodes].append(one)
    made = [_fed(count, hosts, repeats, samples=all(in_samples)) for (count, hosts), repeats in found.items()]
    return sorted(made, key=lambda one: (one.count, _hosts(one)))


def _hosts(one: Fed) -> int:
    return one.hosts or 0


def _require_one_question(runs: Sequence[Run]) -> None:
    """@raises InputError for runs of several systems, workloads or accelerators, with all that differs"""
    words = {name for run in runs for name, value in run.parameters.items() if not _is_number(value)}
    names = [*IDENTITY, *sorted((words | set(SETTINGS)).difference(IDENTITY, NO_QUESTION, SIZES))]
    found = {name: _known(runs, name) for name in names}
    differs = {name: values for name, values in found.items() if len(set(map(meaning, values.values()))) > 1}
    for name in SIZES:
        sizes = {run: value for run, value in _known(runs, name).items() if meaning(value).number}
        numbers = [meaning(value).number or 0.0 for value in sizes.values()]
        if numbers and max(numbers) > (1 + SAME_SIZE) * min(numbers):
            differs[name] = sizes
    if not differs:
        return
    of = " and ".join(f"{name}: {', '.join(sorted(set(map(str, of.values()))))}" for name, of in differs.items())
    chosen = [{name: str(run.parameters[name]) for name in differs if name in run.parameters} for run in runs]
    one = min(filter(None, chosen), key=lambda values: (-len(values), list(values.values())), default={})
    words_of = ",".join(f"{name}={value}" for name, value in one.items())
    raise InputError(
        f"These results are of several values of {of}. A forecast is of one; "
        + (f"choose it with --only {shlex.quote(words_of)}." if one else "name the results of one alone.")
    )


def _known(runs: Sequence[Run], name: str) -> dict[Run, Any]:
    """A setting of each run that has it. The mean size of a sample follows from rates, too."""
    found = {run: run.parameters[name] for run in runs if name in run.parameters}
    if name == "sample_size":
        derived = {run: size for run in runs for one in trained(run) if (size := _mean_sample(one))}
        found = {run: f"{size:.4g}" for run, size in derived.items()} | found
    return found


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def _fed(count: int, hosts: int | None, repeats: Sequence[Accelerators], *, samples: bool) -> Fed:
    used = [one.utilisation_after_first_step or one.utilisation for one in repeats]
    rates = [one.samples_per_second if samples else one.bytes_per_second for one in repeats]
    if not all(used):
        raise InputError(
            f"The results with {count} accelerators have no utilisation, or one of 0: how long a step waits, beside "
            "what it computes, is not known then. Those of checkpoints have none; forecasts are of trainings. Name "
            "the results of trainings alone."
        )
    if not all(rates):
        raise InputError(f"The results with {count} accelerators have no samples a second.")
    share = fmean(one for one in used if one)
    whole = [one.utilisation for one in repeats if one.utilisation]
    start = max(1.0, share / fmean(whole)) if len(whole) == len(repeats) else 1.0
    return Fed(count, hosts, share, fmean(one for one in rates if one), start)


def forecast_training(
    sources: Sequence[Path],
    counts: Sequence[int],
    out: Path,
    *,
    hosts: int | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    limit: float | None = None,
    stated: Stated | None = None,
    level: float = 0.9,
) -> AcceleratorsDocument:
    """Writes OUT/runs (what was imported) and OUT/accelerators.json; returns the content of the latter.

    @param limit utilisation that counts as fed; that of the benchmark for the workload unless given
    @raises InputError when nothing can be read or forecast; OUT is not left behind then"""
    with whole_directory(out) as made:
        paths = runs_of(sources, made, stated or {})
        runs = runs_with_accelerators(paths, only or {})
        answer = answer_of(runs, counts, hosts=hosts, limit=limit, level=level)
        answer["notes"] += left_out(paths, made / "runs" / "series.json")
        write_json(made / "accelerators.json", answer)
    return answer


def answer_of(
    runs: Sequence[Run], counts: Sequence[int], *, hosts: int | None, limit: float | None, level: float
) -> AcceleratorsDocument:
    """The document of a forecast: kind `accelerators`."""
    measured = measured_of(runs)
    have = largest(measured).hosts
    if hosts is not None and (have is None or hosts < have):
        raise InputError(
            f"{hosts} hosts are requested, and the largest results are of "
            f"{'a number that they do not say' if have is None else f'{have}'}: what fewer hosts limit is not known. "
            "Leave out --nodes, or give more"
            + ("; --nodes-measured says how many there were." if have is None else ".")
        )
    known = {name: str(runs[0].parameters[name]) for name in IDENTITY if name in runs[0].parameters}
    workload = known.get("workload", runs[0].record.workload.name)
    kept = limit if limit is not None else limit_of(workload)
    task = task_of(workload, known.get("accelerator", ""))
    question = FeedingQuestion(measured, kept, hosts, task.step_seconds if task else None, level, limit_of(workload))
    made = [question.feeding(count) for count in counts]
    every = [one for run in runs for one in trained(run)]
    first = every[0]
    return {
        "kind": "accelerators",
        "level": level,
        "of": known | {"workload": workload},
        "limit": kept,
        "unit": "samples" if all(one.samples_per_second is not None for one in every) else "bytes",
        "bytes_per_sample": _mean_sample(first),
        "measured": cast(list[FedDocumentCount], [asdict(one) for one in measured]),
        "growth": growth(measured),
        "forecasts": cast(list[FeedingForecast], [asdict(one) for one in made]),
        "most": cast(MostFed, asdict(question.most_fed())),
        "limits": what_limits(by_place(runs), kept),
        "notes": notes(measured, made, kept)
        + contradictions(runs)
        + [_left_out_text(one) for one in on_fewer_hosts(runs)],
    }


def _mean_sample(one: Accelerators) -> float | None:
    return one.bytes_per_second / one.samples_per_second if one.bytes_per_second and one.samples_per_second else None


def what_limits(measured: Sequence[Fed], limit: float) -> str:
    """What the data say of hosts against storage, as a sentence: whether hosts that were added read more.

    @param measured each count on each number of hosts"""
    by_hosts: dict[int, list[Fed]] = defaultdict(list)
    for one in measured:
        if one.hosts:
            by_hosts[one.hosts].append(one)
    full = [hosts for hosts, own in sorted(by_hosts.items()) if _is_full(own, limit)]
    more = [hosts for hosts in sorted(by_hosts) if full and hosts > full[0]]
    if more:
        few = min(by_hosts[full[0]], key=lambda one: one.utilisation)
        most = max(one.rate for one in by_hosts[few.hosts or 0])
        gains = {hosts: max(one.rate for one in by_hosts[hosts]) / most for hosts in more}
        many = max(more, key=lambda hosts: gains[hosts])
        if gains[many] > 1 + many / full[0] / 10:
            return (
                f"Hosts or their network cards limit: {few.hosts} host{'s' * (few.hosts != 1)} with {few.count} "
                f"accelerators {'are' if few.hosts != 1 else 'is'} at the limit, and {many} hosts read "
                f"{gains[many]:.1f} times as much."
            )
        if many_full := [hosts for hosts in more if _is_full(by_hosts[hosts], limit)]:
            return (
                f"Servers or devices limit: {many_full[-1]} hosts read {gains[many_full[-1]]:.2f} times what "
                f"{few.hosts} {'read' if few.hosts != 1 else 'reads'}."
            )
    return (
        "These results don't tell what limits: no count at the limit was measured with more hosts, too. A run with as "
        "many accelerators on more hosts tells hosts and cards from servers and devices."
    )


def _is_full(own: Sequence[Fed], limit: float) -> bool:
    """Whether any of these counts is at the limit, or beyond it."""
    return any(one.utilisation < limit * (1 + BORDER) for one in own)


def _left_out_text(one: Fed) -> str:
    return (
        f"left out: {one.count} accelerators on {one.hosts or 'an unknown number of'} host{'s' * (one.hosts != 1)} "
        f"({_percent(one.utilisation, 1)}), since as many were measured on more hosts."
    )


def notes(measured: Sequence[Fed], made: Sequence[Feeding], limit: float) -> list[str]:
    found = []
    if growth(measured) is None:
        found.append(
            f"One count was measured ({measured[0].count}), so how waiting grows is what is usual. A second count, "
            f"such as {max(1, measured[0].count // 4) if measured[0].count > 1 else 4}, tells it."
        )
    last = largest(measured)
    unlikely = [str(one.count) for one in made if one.count > last.count and one.fed < UNLIKELY]
    if any(one.if_fed for one in made):
        found.append(
            "'if it is fed' supposes that the system was built to keep the limit with the count, as systems of "
            "published results were. The line above it has no such condition."
        )
    if unlikely:
        found.append(
            f"{', '.join(unlikely)} accelerators: the system feeds them at {_percent(limit)} with a probability below "
            f"{_percent(UNLIKELY)}."
        )
    return found


def contradictions(runs: Sequence[Run]) -> list[str]:
    """Results that can't all be right, as sentences: repeats that differ, and rates that their utilisation refutes."""
    found = []
    repeats: dict[tuple[int, int | None], list[float]] = defaultdict(list)
    for run in runs:
        for one in trained(run):
            if used := one.utilisation_after_first_step or one.utilisation:
                repeats[one.count, run.record.placement.nodes].append(used)
    for (count, _), shares in repeats.items():
        if max(shares) > (1 + DIFFERS) * min(shares):
            found.append(
                f"Results with {count} accelerators contradict each other: {_percent(min(shares), 1)} and "
                f"{_percent(max(shares), 1)}. The forecast rests on their mean; leave out the one that is wrong."
            )
    alone = sorted(by_place(runs), key=lambda one: one.rate_without_waiting)
    slow, fast = alone[0], alone[-1]
    if fast.rate_without_waiting > (1 + REFUTED) * slow.rate_without_waiting:
        found.append(
            f"Rate and utilisation contradict each other: without waiting, one of {fast.count} accelerators would do "
            f"{fast.rate_without_waiting / slow.rate_without_waiting:.1f} times as much as one of {slow.count}, and "
            "what an accelerator computes doesn't depend on their number. One of these results is of another training, "
            "or wrong."
        )
    return found


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def training_text(answer: AcceleratorsDocument) -> str:
    """The document for a terminal."""
    of, limit = answer["of"], answer["limit"]
    size = answer["bytes_per_sample"]

    def rate(value: float) -> str:
        moved = value if answer["unit"] == "bytes" else size and value * size
        return quantity("bandwidth", moved) if moved else quantity("rate", value)

    def cells(one: IfFedDocument) -> list[str]:
        used, moved = one["utilisation"], one["rate"]
        return [
            _percent(used["value"], 1),
            f"{_percent(used['low'], 1)} .. {_percent(used['high'], 1)}",
            rate(moved["value"]),
            f"{rate(moved['low'])} .. {rate(moved['high'])}",
        ]

    rows = [
        [str(one["count"]), "measured", f"{_percent(one['utilisation'], 1)}", "", rate(one["rate"]), "", ""]
        for one in answer["measured"]
    ]
    for one in answer["forecasts"]:
        rows.append([str(one["count"]), "forecast", *cells(one), f"{_percent(one['fed'])}"])
        if one["if_fed"]:
            rows.append(["", "if it is fed", *cells(one["if_fed"]), ""])
    title = " ".join(of[name] for name in ("system", "workload", "accelerator") if name in of)
    header = ["accelerators", "", "utilisation", "interval", "throughput", "interval", f"keeps {_percent(limit)}"]
    return "\n".join(
        [
            f"{title}, {_percent(answer['level'])} intervals",
            "",
            table(header, rows, keys=2),
            "",
            most_text(answer["most"], limit),
            answer["limits"],
            *answer["notes"],
        ]
    )


def most_text(most: MostFed, limit: float) -> str:
    found = Most(**most)
    beyond = f"more than {FARTHEST:.0f} times what was measured"
    value, low, high = (beyond if one is None else str(one) for one in (found.value, found.low, found.high))
    return f"Accelerators at {_percent(limit)}: {value} ({low} .. {high})."

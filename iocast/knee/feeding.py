# SPDX-License-Identifier: Apache-2.0
"""How many accelerators storage keeps busy: `training` measured with more and more of them until a level is missed
(`iocast knee --over accelerators`)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Protocol

from iocast.ground import binaries
from iocast.campaign.places import remove_if_empty
from iocast.errors import InputError, RunError
from iocast.training.fed import document, fed_rows_text, row_of
from iocast.ground.files import read_json
from iocast.knee.judge import Seen, check_levels, look
from iocast.knee.probes import Probes
from iocast.knee.request import KneeSearch
from iocast.records.run import Accelerators, read_run
from iocast.study.levels import Level, parse_level
from iocast.training.tasks import limit_of
from iocast.records.feeding import FedDocument, FedRow

TRAIN = "train"
REASONS = {
    "enclosed": "the next count that was measured misses",
    "never met": "not even the fewest accelerators keep the level",
    "always met": "no count that these nodes and ranks allow misses",
    "time": "the time budget is spent; the same command with a larger --budget and another --out goes further",
}


class Ask(Protocol):
    """One run with a number of accelerators."""

    def __call__(self, count: int) -> tuple[Seen, Accelerators]: ...


@dataclass
class Feeding:
    """A search over counts. `allowed`: those that fill nodes, ascending; `seen`: whether the levels held, by count."""

    allowed: Sequence[int]
    precision: float
    seen: dict[int, list[bool]] = field(default_factory=dict)

    @property
    def missed(self) -> int | None:
        """The smallest count that missed in one of its runs."""
        return min((count for count, met in self.seen.items() if not all(met)), default=None)

    @property
    def met(self) -> int | None:
        """The largest count below all that missed."""
        missed = self.missed
        return max((n for n in self.seen if missed is None or n < missed), default=None)

    def next(self) -> int | None:
        """The count to measure next: doubled until one misses, then between; the answer once more. None at the end."""
        met, missed = self.met, self.missed
        if not self.seen:
            return self.allowed[0]
        if met is None:
            return None
        if missed is None and met < self.allowed[-1]:
            return next((n for n in self.allowed if n >= 2 * met), self.allowed[-1])
        between = [n for n in self.allowed if met < n < (missed or 0)]
        if missed is not None and between and missed / met > 1 + self.precision:
            return min(between, key=lambda n: abs(math.log(n * n / met / missed)))
        return met if len(self.seen[met]) == 1 else None


def counts_of(nodes: int, ranks_per_node: int, readers: int) -> list[int]:
    """Numbers of accelerators whose readers fit: any on one node, whole nodes beyond.

    @raises InputError where not even one fits"""
    each = ranks_per_node // readers
    if each < 1:
        raise InputError(
            f"An accelerator has {readers} readers, each a rank, and --ppn allows {ranks_per_node} on a node; give "
            f"--ppn {readers} or a multiple of it."
        )
    return [*range(1, each + 1), *(each * n for n in range(2, nodes + 1))]


def search(
    counts: Sequence[int], levels: Sequence[Level], ask: Ask, *, precision: float, budget: float,
    clock: Callable[[], float] = time.monotonic, report: Callable[[str, int, int], None] = lambda *_: None,
) -> FedDocument:  # fmt: skip
    """Measures counts until the answer is enclosed or the time is over.

    @return `rows` (iocast.training.fed), `answer` (null where no count met), `missed`, `confirmed` by how many further
    runs, and `reason`, a key of REASONS"""
    state = Feeding(counts, precision)
    runs: dict[int, list[tuple[Seen, Accelerators]]] = {}
    began, longest = clock(), 0.0
    reason = ""
    while (count := state.next()) is not None:
        spent = clock() - began
        if state.seen and spent + longest > budget:
            reason = "time"
            break
        report(f"{count} accelerator{'s' * (count != 1)}", int(spent), int(budget))
        found = ask(count)
        longest = max(longest, clock() - began - spent)
        runs.setdefault(count, []).append(found)
        state.seen.setdefault(count, []).append(found[0].met)
    met, missed = state.met, state.missed
    known = "never met" if met is None else "always met" if missed is None else "enclosed"
    return {
        "rows": [_row(count, runs[count], levels) for count in sorted(runs)],
        "answer": met,
        "missed": missed,
        "confirmed": len(state.seen[met]) - 1 if met is not None else 0,
        "reason": reason or known,
    }


def _row(count: int, runs: Sequence[tuple[Seen, Accelerators]], levels: Sequence[Level]) -> FedRow:
    """Means over the runs of a count."""
    of = [one for _, one in runs]
    names = ("utilisation", "utilisation_after_first_step", "samples_per_second", "bytes_per_second", "stall_share")
    known = {name: [value for one in of if (value := getattr(one, name)) is not None] for name in names}
    return row_of(count, {name: fmean(values) for name, values in known.items() if len(values) == len(of)}) | {
        "runs": len(runs),
        "met": sum(seen.met for seen, _ in runs),
        "levels": {level.text: fmean(seen.values[level.text] for seen, _ in runs) for level in levels},
    }


def levels_of(texts: Sequence[str], workload: str) -> list[Level]:
    """The levels; without any the benchmark's utilisation for the workload. @raises InputError"""
    return [parse_level(text) for text in texts or [f"au >= {100 * limit_of(workload):g} %"]]


def measured(
    request: KneeSearch, levels: list[Level], probes_of: Callable[[KneeSearch], Probes], *, budget: float,
    precision: float, report: Callable[[str, int, int], None],
) -> FedDocument:  # fmt: skip
    """Runs `training` with growing numbers of accelerators; each number is a campaign of its own in `out`.

    @return kind `fed` (docs/answers.md)
    @raises InputError for another workload, RunError where a run fails"""
    if request.out.exists():
        raise InputError(
            f"The output directory '{request.out}' exists already; a search over accelerators begins anew, name "
            "another --out."
        )
    resolved = binaries.resolve_workload(request.workload, request.settings, 1, 1)["workload"]
    if resolved["pattern"] != "training":
        raise InputError(
            f"--over accelerators is for training, and '{request.workload}' is {resolved['pattern']}; choose unet3d, "
            "resnet50, cosmoflow, retinanet or another workload with the pattern training."
        )
    readers = int(resolved["parameters"]["readers"])
    counts = counts_of(request.nodes, request.ranks_per_node, readers)
    each = request.ranks_per_node // readers

    def probes_with(count: int) -> Probes:
        nodes = max(1, count // each)
        path = request.out / f"accelerators-{count:05d}"
        while path.exists():
            path = path.with_name(f"{path.name}-again")
        ranks = count // nodes * readers
        threads = math.gcd(request.threads_per_rank, ranks)
        return probes_of(
            replace(request, out=path, nodes=nodes, ranks_per_node=ranks, threads_per_rank=threads, length=budget)
        )

    def check() -> None:
        """Refuses what can't be searched, up to the largest count, before anything is measured."""
        try:
            if len(counts) > 1:
                with probes_with(counts[-1]):
                    pass
            with probes_with(counts[0]) as probes:
                check_levels(levels, probes.operations)
                probes.check_extent(budget)
        finally:
            remove_if_empty(request.out)

    def ask(count: int) -> tuple[Seen, Accelerators]:
        with probes_with(count) as probes:
            probes.check_extent(budget)
            run = probes.make("bracket", {}, within=budget)
            probes.leave()
        if run.status != "complete":
            raise RunError(f"The run with {count} accelerators was ended; see '{probes.search.out}'.")
        phases = read_run(read_json(probes.path(run) / "run.json", "run")).phases
        of = [one.accelerators for one in phases if one.name == TRAIN and one.accelerators is not None]
        return look(probes.path(run), TRAIN, levels), of[-1]

    check()
    found = search(counts, levels, ask, precision=precision, budget=budget, report=report)
    for row in found["rows"]:
        row |= {"nodes": max(1, row["accelerators"] // each), "readers": row["accelerators"] * readers}
    about = document("measured", request.workload, request.settings, found["rows"])
    ended = REASONS[found["reason"]]
    return {**about, **found, "levels": [level.text for level in levels], "reason_text": ended}


def feeding_text(answer: FedDocument) -> str:
    """The answer for a terminal."""
    title = f"{answer['workload']}, measured: {' and '.join(answer['levels'])}"
    ended = [] if answer["answer"] is None else [f"The search ended: {answer['reason_text']}."]
    return "\n".join([title, fed_rows_text(answer["rows"]), verdict(answer), *ended])


def verdict(answer: FedDocument) -> str:
    """How many accelerators are fed, as a sentence."""
    if answer["answer"] is None:
        return f"No count meets {' and '.join(answer['levels'])}: {REASONS['never met']}."
    n, missed = answer["answer"], answer["missed"]
    confirmed = f"confirmed by {answer['confirmed']} further run" if answer["confirmed"] else "NOT confirmed"
    beyond = f"; {missed} miss{'es' * (missed == 1)}" if missed is not None else ""
    return f"{n} accelerator{'s' * (n != 1)} {'is' if n == 1 else 'are'} fed ({confirmed}){beyond}."

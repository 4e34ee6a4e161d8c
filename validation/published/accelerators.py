# SPDX-License-Identifier: Apache-2.0
"""Forecasts of accelerators from published results of MLPerf Storage: all pairs of few and many accelerators.

Each pair is one question: a configuration with few accelerators is the measurement, one with more of the same
submitter, workload and accelerator the answer. Both are of one system by its name ("same hosts"), or of systems whose
names differ only in the number of client hosts ("more hosts": Nclient1 and Nclient3, 1Client and 5Client). A
configuration whose workload was not recognised has no pair.

    validation/published/accelerators.py training_v1.0.csv [--pairs] [--page docs/scoreboard.md]

Seconds. README.md describes the table."""

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scipy.optimize import brentq
from scoreboard import binomial_interval, put

from iocast.training.accelerators import BLUR, UNLIKELY, Fed, Feeding, FeedingQuestion, IfFed
from iocast.importers.source import Source
from iocast.importers.training_table import IMPORTER
from iocast.training.tasks import Task, task_of

HOSTS = re.compile(r"_?N?client\d+|_\d+client", re.IGNORECASE)
WORKLOADS = re.compile(r"_(unet3d|resnet50|cosmoflow)", re.IGNORECASE)
CONSTANT = {"cosmoflow": 0.73}
"""Utilisation that most results have, whatever the system; 92 % of other workloads."""


@dataclass(frozen=True)
class Row:
    submitter: str
    system: str
    task: Task
    fed: Fed
    bytes_per_second: float

    @property
    def family(self) -> tuple[str, str, str, str]:
        """What configurations of one pair have in common."""
        base = HOSTS.sub("", WORKLOADS.sub("", self.system))
        return self.submitter, base, self.task.workload, self.task.accelerator


@dataclass(frozen=True)
class Pair:
    few: Row
    many: Row

    @property
    def kind(self) -> str:
        return "same hosts" if self.few.system == self.many.system else "more hosts"

    def made(self) -> Feeding:
        many, task = self.many.fed, self.few.task
        return FeedingQuestion([self.few.fed], task.limit, many.hosts, task.step_seconds).feeding(many.count)

    def answer(self, *, if_fed: bool = True) -> Feeding | IfFed:
        """With the condition that the count is fed, as all that are published are, or without."""
        made = self.made()
        return (made.if_fed if if_fed else None) or made


def read(table: Path) -> list[Row]:
    rows = []
    for record in IMPORTER.read([Source(table)]):
        of, found = record.parameters, record.phases[0].more["accelerators"]
        task = task_of(of["workload"], of["accelerator"])
        if task is None:
            continue
        share = found["utilisation_after_first_step"]
        start = max(1.0, share / found["utilisation"])
        fed = Fed(found["count"], record.nodes, share, found["samples_per_second"], start)
        rows.append(Row(of["submitter"], of["system"], task, fed, found["bytes_per_second"]))
    return rows


def pairs_of(rows: Sequence[Row]) -> list[Pair]:
    return [
        Pair(few, many)
        for few in rows
        for many in rows
        if few.family == many.family
        and few.fed.count < many.fed.count
        and (few.system == many.system or (few.fed.hosts or 1) < (many.fed.hosts or 1))
    ]


# ---- simple rules: utilisation of the many, and throughput of the few in proportion to it

Rule = Callable[[Pair], float]


def _utilisation_of_queue(count: int, demand: float) -> float:
    """Of customers that compute for 1 and then queue for one server for `demand` (mean value analysis)."""
    queue = rate = 0.0
    for customers in range(1, count + 1):
        response = demand * (1 + queue)
        rate = customers / (1 + response)
        queue = rate * response
    return rate / count


def _queue(pair: Pair) -> float:
    """Closed M/M/c whose customers compute for a step, fitted to the few: with c = 1, since one count tells no c."""
    few = pair.few.fed
    demand = brentq(lambda d: _utilisation_of_queue(few.count, d) - few.utilisation, 0.0, 10.0)
    return _utilisation_of_queue(pair.many.fed.count, float(demand))


RULES: dict[str, Rule] = {
    "linear growth": lambda pair: pair.few.fed.utilisation,
    "last value": lambda pair: pair.few.fed.utilisation * pair.few.fed.count / pair.many.fed.count,
    "constant utilisation": lambda pair: CONSTANT.get(pair.few.task.workload, 0.92),
    "closed M/M/c": _queue,
}


@dataclass(frozen=True)
class Errors:
    """Of one pair: errors of throughput (relative) and utilisation (points), and whether intervals hold them."""

    rate: float
    utilisation: float
    rate_inside: bool | None = None
    utilisation_inside: bool | None = None


def errors_of_rule(rule: Rule, pair: Pair) -> Errors:
    few, many, used = pair.few.fed, pair.many.fed, rule(pair)
    rate = few.rate / few.count / few.utilisation * used * many.count
    return Errors(abs(rate / many.rate - 1), abs(used - many.utilisation))


def errors_of(pair: Pair, *, if_fed: bool = True) -> Errors:
    made, many = pair.answer(if_fed=if_fed), pair.many.fed
    return Errors(
        abs(made.rate.value / many.rate - 1),
        abs(made.utilisation.value - many.utilisation),
        made.rate.low <= many.rate <= made.rate.high,
        made.utilisation.low <= many.utilisation <= made.utilisation.high,
    )


def _cells(name: str, found: Sequence[Errors]) -> str:
    rates, shares = [one.rate for one in found], [one.utilisation for one in found]
    held = [[one.rate_inside for one in found], [one.utilisation_inside for one in found]]
    cells = [
        name,
        str(len(found)),
        f"{100 * median(rates):.1f} %",
        f"{100 * mean(rates):.1f} %",
        f"{100 * max(rates):.1f} %",
        f"{100 * median(shares):.1f}",
        f"{100 * mean(shares):.1f}",
        f"{100 * max(shares):.1f}",
    ]
    for inside in held:
        if inside[0] is None:
            cells.append("-")
            continue
        low, high = binomial_interval(sum(map(bool, inside)), len(inside))
        cells.append(f"{sum(map(bool, inside))} of {len(inside)} ({100 * low:.0f} to {100 * high:.0f} %)")
    return f"| {' | '.join(cells)} |"


def lines_of(pairs: Sequence[Pair]) -> list[str]:
    """The table and what stands below it, as Markdown."""
    lines = [
        "| pairs, rule | n | throughput: median error | mean | worst | utilisation: median error, points | mean "
        "| worst | throughput inside 90 % (95 % interval of the share) | utilisation inside |",
        "|---" * 10 + "|",
    ]
    answered = [pair for pair in pairs if pair.made().fed >= UNLIKELY]
    for kind, chosen in {
        "same hosts": [pair for pair in pairs if pair.kind == "same hosts"],
        "more hosts": [pair for pair in pairs if pair.kind == "more hosts"],
        "all": pairs,
        "all, without those called not fed": answered,
    }.items():
        lines.append(_cells(f"{kind}: iocast, if it is fed", [errors_of(pair) for pair in chosen]))
        lines.append(_cells(f"{kind}: iocast", [errors_of(pair, if_fed=False) for pair in chosen]))
        lines += [
            _cells(f"{kind}: {name}", [errors_of_rule(rule, pair) for pair in chosen]) for name, rule in RULES.items()
        ]
    beyond = [pair for pair in pairs if (one := errors_of(pair)).rate > 0.08 and not one.rate_inside]
    lines += [
        "",
        f"Called not fed, though every published count was: {len(pairs) - len(answered)} of {len(pairs)}. "
        f"Throughput more than 8 % off and outside its interval: {len(beyond)}.",
        "",
        *left_out(pairs),
    ]
    return lines


def of_three(rows: Sequence[Row]) -> list[str]:
    """Of systems with three counts, each forecast from the two others: the one between them, and the largest."""
    groups: dict[tuple[str, str, str, str], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.fed.count):
        groups[row.submitter, row.system, row.task.workload, row.task.accelerator].append(row)
    sentences = []
    for words, place in (("the middle one", 1), ("the largest", 2)):
        found = []
        for own in (own for own in groups.values() if len(own) == 3):
            task, wanted = own[0].task, own[place].fed
            others = [row.fed for row in own if row.fed is not wanted]
            made = FeedingQuestion(others, task.limit, wanted.hosts, task.step_seconds).feeding(wanted.count)
            answer = made.if_fed or made
            inside = answer.utilisation.low <= wanted.utilisation <= answer.utilisation.high
            found.append((abs(answer.utilisation.value - wanted.utilisation), inside))
        errors = [100 * error for error, _ in found]
        sentences.append(
            f"- Of three counts {words} from the others: {median(errors):.1f} points off in the median, "
            f"{max(errors):.1f} at worst, {sum(inside for _, inside in found)} of {len(found)} inside."
        )
    return sentences


def left_out(pairs: Sequence[Pair], blurs: Sequence[float] = (0.005, 0.01, 0.015, 0.02, 0.03)) -> list[str]:
    """The one constant of an interval, chosen without each submitter: the blur whose share inside is nearest 90 %."""
    import iocast.training.accelerators as law

    found: dict[float, dict[Pair, bool]] = {}
    for blur in blurs:
        law.BLUR = blur
        found[blur] = {pair: bool(errors_of(pair).rate_inside) for pair in pairs}
    law.BLUR = BLUR
    sentences = []
    for submitter in dict.fromkeys(pair.few.submitter for pair in pairs):
        others = [pair for pair in pairs if pair.few.submitter != submitter]
        own = [pair for pair in pairs if pair.few.submitter == submitter]
        best = min(blurs, key=lambda blur: abs(mean(found[blur][pair] for pair in others) - 0.9))
        inside = sum(found[best][pair] for pair in own)
        sentences.append(f"{submitter}: {inside} of {len(own)} inside with the blur of the others ({100 * best:g} %)")
    return ["Chosen without the submitter. " + "; ".join(sentences) + "."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--pairs", action="store_true", help="every pair")
    parser.add_argument("--page", type=Path, help="put the table between the marks of this page")
    given = parser.parse_args()
    rows = read(given.table)
    pairs = pairs_of(rows)
    if given.pairs:
        for pair in pairs:
            made, many, fed = pair.answer(), pair.many.fed, pair.made().fed
            print(
                f"{pair.kind:10} {pair.few.system[:36]:36} {pair.few.task.workload:9} {pair.few.task.accelerator} "
                f"{pair.few.fed.count:4} -> {many.count:4}  utilisation {pair.few.fed.utilisation:.3f} -> "
                f"{made.utilisation.value:.3f} [{made.utilisation.low:.3f}, {made.utilisation.high:.3f}] "
                f"measured {many.utilisation:.3f}; throughput {100 * (made.rate.value / many.rate - 1):+.1f} % "
                f"[{made.rate.low / many.rate:.3f}, {made.rate.high / many.rate:.3f}], fed {fed:.2f}"
            )
    lines = [*lines_of(pairs), "", *of_three(rows)]
    print("\n".join(lines))
    if given.page:
        put(given.page, "accelerators", lines)


if __name__ == "__main__":
    main()

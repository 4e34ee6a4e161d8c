#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often forecasts warn or refuse: each workload of the catalogue, with its settings for tests, on each platform of
the catalogue, by both solvers. One entry for each code of a warning, with its first sentence, and for each sentence of
a refusal, its numbers and names left out; with its share of the questions.

    validation/warnings/count.py [PLATFORM...] [--workload NAME] [--solver simulate] [--nodes 2] [--ppn 4]
                                 [--keep FILE] [--out FILE]

A warning on more than a tenth of the questions informs nobody: exit status 4. Refusals are counted apart; they are the
answers to their questions. About ten minutes on two cores. `tests/python/test_warnings.py` runs a sample.
`validation/warnings/results.txt` is its output; the simulator's part is of before warnings had codes, by sentence."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import textwrap
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]
from iocast.ground import binaries  # noqa: E402
from iocast.errors import InputError, RunError  # noqa: E402
from iocast.platforms.fitted import Fitted  # noqa: E402
from iocast.platforms.documents import PLATFORMS  # noqa: E402
from iocast.forecasts.answer import predict  # noqa: E402
from iocast.jobs.workers import Workers  # noqa: E402

CATALOGUE = ROOT / "workload" / "catalogue"
SOLVERS = ("simulate", "analytic")
OFTEN = 0.1
"""Share of the questions from which on a warning is a defect."""
SMALL = {
    "cluster-postmark": "number=20 transactions=20",
    "md-workbench": "datasets=2 objects=20 iterations=20",
    "md-workbench-large": "datasets=2 objects=20 iterations=20",
    "postmark": "number=20 transactions=20",
    "mdtest-easy": "items=20",
    "mdtest-hard": "items=20",
    "mdtest-shared": "items=20",
}
"""Settings of workloads that have none for tests, or too small ones to say anything of rates."""
_NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?\d[\d.,]*(e[-+]?\d+)?")


@dataclass(frozen=True)
class Question:
    platform: str
    workload: str
    solver: str
    nodes: int
    ranks_per_node: int

    @property
    def settings(self) -> dict[str, str]:
        small = yaml.safe_load((CATALOGUE / f"{self.workload}.yaml").read_text()).get("small") or [""]
        return dict(one.partition("=")[::2] for one in SMALL.get(self.workload, str(small[0])).split())


@dataclass(frozen=True)
class Answer:
    """The warnings of a forecast, each its code and its sentence, or the sentence that refused it."""

    question: Question
    warnings: tuple[tuple[str, str], ...]
    refused: str = ""


def workloads() -> list[str]:
    return sorted(file.stem for file in CATALOGUE.glob("*.yaml"))


def platforms() -> list[str]:
    return sorted(file.stem for file in PLATFORMS.glob("*.yaml"))


def placed(platform: str, workload: str, solver: str, nodes: int, ranks_per_node: int) -> Question:
    """A platform of one machine, whose stations all belong to client nodes, gets one node with all ranks."""
    if _is_machine(platform):
        return Question(platform, workload, solver, 1, nodes * ranks_per_node)
    return Question(platform, workload, solver, nodes, ranks_per_node)


@lru_cache
def _is_machine(platform: str) -> bool:
    return all(station["per"] == "node" for station in binaries.resolve_platform(platform)["stations"].values())


def kept(file: Path) -> dict[Question, Answer]:
    found = {}
    for line in file.read_text().splitlines() if file.is_file() else []:
        *question, warnings, refusal = json.loads(line)
        found[Question(*question)] = Answer(
            Question(*question), tuple((code, text) for code, text in warnings), refusal
        )
    return found


def ask(question: Question) -> Answer:
    try:
        with Workers(1) as workers:
            answer = predict(
                Fitted.open(question.platform),
                question.workload,
                question.settings,
                question.nodes,
                question.ranks_per_node,
                solver=question.solver,
                workers=workers,
            )
    except (InputError, RunError) as error:
        return Answer(question, (), str(error))
    return Answer(question, tuple((_code(one), str(one["text"])) for one in answer["cautions"]))


def _code(caution: dict[str, object]) -> str:
    return f"{caution['code']} {caution.get('kind', '')}".strip()


def form(sentence: str, question: Question) -> str:
    """The sentence without its numbers, and without the names of the question."""
    for name, shown in ((question.workload, "WORKLOAD"), (question.platform, "PLATFORM")):
        sentence = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", shown, sentence)
    return _NUMBER.sub("N", re.sub(r"(?<!\w)'[^']*'", "'...'", sentence))


@dataclass(frozen=True)
class Row:
    sentence: str
    count: int
    share: float
    example: str


def rows(answers: Iterable[tuple[Question, str, str]], questions: int) -> list[Row]:
    """One for each kind of the questions' sentences, with the first of them; the most frequent first."""
    having: dict[str, dict[Question, str]] = {}
    for question, kind, sentence in answers:
        having.setdefault(kind, {}).setdefault(question, sentence)
    found = [(*next(iter(own.items())), len(own)) for own in having.values()]
    return [
        Row(sentence, n, n / max(questions, 1), f"{first.workload} on {first.platform}")
        for first, sentence, n in sorted(found, key=lambda one: -one[2])
    ]


def warned(answers: list[Answer]) -> list[Row]:
    answered = [one for one in answers if not one.refused]
    return rows(
        ((one.question, code, f"{code}: {text}") for one in answered for code, text in one.warnings), len(answered)
    )


def refused(answers: list[Answer]) -> list[Row]:
    kinds = ((one.question, form(one.refused, one.question)) for one in answers if one.refused)
    return rows(((question, kind, kind) for question, kind in kinds), len(answers))


def text(answers: list[Answer]) -> str:
    lines = []
    for solver in dict.fromkeys(one.question.solver for one in answers):
        own = [one for one in answers if one.question.solver == solver]
        answered = [one for one in own if not one.refused]
        none = sum(not one.warnings for one in answered)
        lines.append(f"{solver}: {len(own)} questions, {len(answered)} answered, {none} of them without a warning")
        for title, found in (
            ("warnings, share of the answered questions", warned(own)),
            ("refusals, share of all questions", refused(own)),
        ):
            lines += [f"  {title}:"] if found else []
            for row in found:
                entry = f"    {row.count:4} {100 * row.share:5.1f} %  {row.sentence} [{row.example}]"
                lines.append(textwrap.fill(entry, 120, subsequent_indent=" " * 18, break_long_words=False))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("platforms", nargs="*")
    parser.add_argument("--workload", action="append", help="default: all")
    parser.add_argument("--solver", action="append", choices=SOLVERS, help="default: both")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--ppn", type=int, default=4)
    parser.add_argument("--out", type=Path, help="file for the text")
    parser.add_argument(
        "--keep",
        type=Path,
        help=(
            "file that keeps each answer; known answers are not computed again, so that the count can be made in parts"
        ),
    )
    given = parser.parse_args()
    solvers = given.solver or SOLVERS
    questions = [
        placed(p, w, s, given.nodes, given.ppn)
        for s in solvers
        for p in given.platforms or platforms()
        for w in given.workload or workloads()
    ]
    known = kept(given.keep) if given.keep else {}
    left = [question for question in questions if question not in known]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for one in pool.map(ask, left, chunksize=2):
            known[one.question] = one
            if given.keep:
                with given.keep.open("a") as file:
                    file.write(json.dumps([*astuple(one.question), list(one.warnings), one.refused]) + "\n")
    answers = [known[question] for question in questions]
    shown = f"{given.nodes} nodes with {given.ppn} ranks each\n{text(answers)}"
    print(shown)
    if given.out:
        given.out.write_text(shown + "\n")
    often = [
        row
        for solver in solvers
        for row in warned([one for one in answers if one.question.solver == solver])
        if row.share > OFTEN
    ]
    return 4 if often else 0


if __name__ == "__main__":
    sys.exit(main())

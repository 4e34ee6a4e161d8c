# SPDX-License-Identifier: Apache-2.0
"""Warnings on most questions tell nobody anything: a sample of validation/warnings over the catalogue."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import REPOSITORY

from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict

PLATFORMS = ("beegfs", "local", "lustre", "xt4")
WORKLOADS = ("md-workbench", "postmark", "ior-easy", "browse")


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(REPOSITORY / "validation" / "warnings"))
    import count

    yield count
    sys.modules.pop("count", None)


def test_no_warning_is_on_more_than_a_tenth_of_the_questions(count: Any, simulator: Path) -> None:
    answers = [
        count.ask(count.placed(p, w, solver, 2, 4)) for p in PLATFORMS for w in WORKLOADS for solver in ("analytic",)
    ]
    answers += [count.ask(count.placed(p, w, "simulate", 2, 4)) for p in PLATFORMS[1:] for w in WORKLOADS[:2]]
    answered = [one for one in answers if not one.refused]
    assert len(answered) > 15
    assert not [row for row in count.warned(answers) if row.share > count.OFTEN]
    # A refusal says what to do.
    assert all("use " in one.refused.lower() and "simulat" in one.refused for one in answers if one.refused)
    assert not [
        sentence
        for one in answers
        for sentence in (*dict(one.warnings).values(), one.refused)
        if "candidate-" in sentence
    ], "names that nobody gave"


def test_warnings_are_counted_by_code_and_refusals_without_names_and_numbers(count: Any) -> None:
    first, second = (count.Question(p, w, "simulate", 2, 4) for p, w in (("local", "compile"), ("service", "browse")))
    sentence = "The workload {} waits for '{}' {} times on {}; use the simulator."
    refusals = [
        (first, sentence.format("compile", "a", 12.5, "local")),
        (second, sentence.format("browse", "b", 4, "service")),
    ]
    (row,) = count.refused([count.Answer(question, (), text) for question, text in refusals])
    assert (row.count, row.share) == (2, 1.0)
    warned = [(first, (("x", "x 1."), ("x", "x 2."), ("y", "y."))), (second, (("x", "x 3."),))]
    often, once = count.warned([count.Answer(question, warnings) for question, warnings in warned])
    assert (often.count, often.share, often.sentence) == (2, 1.0, "x: x 1.") and once.sentence == "y: y."


@pytest.mark.parametrize("solver", ["simulate", "analytic"])
def test_phases_that_take_no_time_are_left_out_with_a_sentence(solver: str, simulator: Path) -> None:
    """`queuefs` serves mkdir and rmdir in no time, which once was a division by zero."""
    settings = {"items": "20"}
    answer = predict(Fitted.open("queuefs"), "mdtest-shared", settings, 2, 4, solver=solver)
    assert {"directory-create", "directory-remove"}.isdisjoint(
        one["phase"] for one in (answer, *answer["further_phases"])
    )
    assert any(
        "no operation of directory-create and directory-remove takes any time" in one for one in answer["warnings"]
    )
    with pytest.raises(InputError, match="'queuefs' no operation of directory-create takes any time"):
        predict(Fitted.open("queuefs"), "mdtest-shared", settings, 2, 4, phase="directory-create", solver=solver)


def test_one_machines_own_storage_on_many_nodes_is_a_sum(fitted: Path) -> None:
    sums = [predict(Fitted.open(str(fitted)), None, {}, nodes, 2)["warnings"][:1] for nodes in (1, 4)]
    assert [["This is the sum of" in one for one in found] for found in sums] in ([[], [True]], [[False], [True]])
    assert "sum of 4 machines" in sums[1][0]

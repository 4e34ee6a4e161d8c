# SPDX-License-Identifier: Apache-2.0
"""Searches for the number of accelerators that storage feeds, and levels on what they do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from iocast.errors import InputError
from iocast.training.fed import at_least, numbers_of
from iocast.knee.feeding import counts_of, feeding_text, levels_of, search
from iocast.records.run import Accelerators
from iocast.study.amounts import margin
from iocast.study.levels import parse_level
from iocast.study.risk import ModelError, predictive, probabilities

Iocast = Callable[..., CompletedProcess[str]]
LEVEL = "au >= 90 %"


def fed_by(capacity: float, counts: list[int], budget: float = 1e9, precision: float = 0.01) -> tuple[Any, list[int]]:
    """The search on storage that feeds `capacity` accelerators wholly, with a clock of a second a run."""
    measured: list[int] = []

    def ask(count: int) -> Any:
        measured.append(count)
        used = min(1.0, capacity / count)
        return SimpleNamespace(met=used >= 0.9, values={LEVEL: used}), Accelerators(count, utilisation=used)

    levels = levels_of([], "unet3d")
    assert [level.text for level in levels] == [LEVEL]
    found = search(counts, levels, ask, precision=precision, budget=budget, clock=lambda: float(len(measured)))
    return found, measured


@pytest.mark.parametrize("capacity", [1.0, 3.0, 7.9, 23.0, 55.0])
def test_the_search_finds_the_largest_count_that_is_fed(capacity: float) -> None:
    """Utilisation min(1, capacity / n): the level of 90 % holds up to n = capacity / 0.9."""
    counts = counts_of(1, 64 * 4, 4)
    found, measured = fed_by(capacity, counts)
    assert found["answer"] == int(capacity / 0.9 + 1e-9) and found["missed"] == found["answer"] + 1
    assert found["confirmed"] == 1 and found["reason"] == "enclosed"
    assert len(measured) <= 2 * np.log2(len(counts)) + 2
    assert [row["accelerators"] for row in found["rows"]] == sorted(set(measured))


def test_the_ends_of_a_search_differ() -> None:
    assert fed_by(0.5, [1, 2, 4])[0]["reason"] == "never met"
    assert fed_by(0.5, [1, 2, 4])[0]["answer"] is None
    always = fed_by(100, [1, 2, 3, 4])[0]
    assert (always["answer"], always["missed"], always["reason"]) == (4, None, "always met")
    short = fed_by(23, counts_of(1, 64, 1), budget=4)[0]
    assert short["reason"] == "time" and short["answer"] == 8 and not short["confirmed"]
    coarse = fed_by(23, counts_of(1, 64, 1), precision=0.4)[0]
    assert coarse["missed"] / coarse["answer"] <= 1.4


def test_counts_fill_nodes() -> None:
    assert counts_of(3, 8, 4) == [1, 2, 4, 6]
    with pytest.raises(InputError, match="each a rank, and --ppn allows 2"):
        counts_of(1, 2, 4)


@pytest.mark.parametrize(("compute", "status", "answer"), [("40ms", 0, 1), ("1ms", 4, None)])
def test_accelerators_are_measured_until_one_misses(
    iocast: Iocast, tmp_path: Path, compute: str, status: int, answer: int | None
) -> None:
    """The dummy takes 10 ms for a batch of 2: computation of 40 ms hides that, of 1 ms doesn't."""
    settings = ("readers=1", "batch=2", "steps=4", "sample_size=1kB", f"compute_time={compute}")
    done = iocast(
        "knee", "--over", "accelerators", "--workload", "training", "--backend", "dummy",
        "--backend-option=--dummy.delay=5ms", "--slo", "au >= 50 %", "--budget", "10min", "--json",
        *(part for one in settings for part in ("--set", one)), "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    found = json.loads(done.stdout)
    assert json.loads((tmp_path / "out" / "fed.json").read_text()) == found
    assert (found["kind"], found["source"], found["answer"]) == ("fed", "measured", answer)
    [row] = found["rows"]
    assert (row["utilisation_after_first_step"] >= 0.5) == (answer == 1) and row["readers"] == 1
    assert ("1 accelerator is fed" if answer else "No count meets") in feeding_text(found)


def test_a_search_over_accelerators_is_for_training(iocast: Iocast, tmp_path: Path) -> None:
    done = iocast("knee", "--over", "accelerators", "--backend", "dummy", "--out", tmp_path / "out")
    assert done.returncode == 2 and "is for training, and 'md-workbench' is md-workbench" in " ".join(
        done.stderr.split()
    )


def test_a_models_error_leaves_a_level_that_is_kept_by_far() -> None:
    """A utilisation ends at 100 %: the error is of the time that steps wait."""
    level = parse_level(LEVEL)
    error = ModelError(np.array([0.085]), np.array([np.inf]), np.zeros(1), ("rate",))
    chances = []
    for used in (0.85, 0.9, 0.92, 0.99, 1.0):
        assert (level.margin(used) >= 0) == (used >= 0.9)
        chances.append(probabilities(predictive(np.full((8, 1), level.margin(used)), error))[0])
    assert chances == sorted(chances) and chances[0] < 0.01 and chances[1] == pytest.approx(0.5, abs=0.05)
    assert chances[3] > 0.99
    row = {"quantity": "au", "value": 0.97, "limit": 0.9, "upper": False, "margin": 1.0}
    assert margin(row) == "3.6 times less waiting than allowed"
    assert margin(row | {"value": 1.0}) == "no waiting" and "more waiting" in margin(row | {"value": 0.8})
    stall = parse_level("stall_share <= 5 %")
    assert stall.margin(0.04) > 0 > stall.margin(0.06) and stall.margin(0.0) == 7


def test_a_long_simulation_says_how_long_before_it_begins() -> None:
    assert numbers_of("1e6,8") == [8, 1_000_000]
    assert at_least(1_000_000, {8: 0.5}) == ", at least 17.4 hours by the time of 8"
    assert at_least(64, {8: 0.5}) == "" and at_least(10**6, {}) == ""
    for text in ("1.5e0", "1e400", "e", "nan"):
        with pytest.raises(InputError, match="no list of whole numbers"):
            numbers_of(text)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("--slo", "p99(unlink) < 1 ms"), "is about 'unlink'"),
        (("--slo", "au > 10"), "a share of time is at most 100 %, such as 10 %"),
        (("--nodes", "2"), "needs 2 nodes"),
        (("--set", "steps=100000000"), "--budget"),
        (("--set", "sample_size=-1"), "sample_size"),
    ],
)
def test_what_cannot_be_searched_is_refused_before_anything_is_made(
    wrong: tuple[str, ...], words: str, iocast: Iocast, tmp_path: Path
) -> None:
    """Up to the largest count, so that no search ends in the middle; the corrected command then finds no directory."""
    settings = ("readers=1", "batch=2", "steps=4", "sample_size=1kB", "compute_time=40ms")
    search = ("knee", "--over", "accelerators", "--workload", "training", "--backend", "dummy",
        *(part for one in settings for part in ("--set", one)), "--out", tmp_path / "new" / "out")  # fmt: skip
    done = iocast(*search, *wrong)
    assert done.returncode == 2 and words in " ".join(done.stderr.split()), done.stderr
    assert not (tmp_path / "new" / "out").exists()

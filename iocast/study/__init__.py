# SPDX-License-Identifier: Apache-2.0
"""Studies: which design to buy, and how sure that is. From a STUDY.yaml to a decision with its reasons
(docs/studies.md)."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

from iocast.errors import InputError
from iocast.ground.files import write_json, write_text
from iocast.study.spec import read_study
from iocast.study.store import Store
from iocast.wording.text import cell
from iocast.jobs.workers import Workers
from iocast.records.study import Breaks, Failing, StudyDocument

ANSWER, SAMPLES, MEMORY, TABLE = "study.json", "samples.json", "evaluations.sqlite", "designs.csv"


def run_study(
    file: Path,
    out: Path,
    workers: Workers,
    report: Callable[[str, int, int], None],
    command: list[str],
    seed: int = 0,
    tell: Callable[[str], None] = lambda _: None,
    *,
    beyond: bool = False,
) -> StudyDocument:
    """Answers a study and writes the answer into the directory `out`; what is there from an earlier or interrupted run
    is used again. `report` hears the progress, `tell` what earlier runs' results say before more is computed. `beyond`:
    also at scales far beyond the published numbers of a platform.

    @raises InputError for what the study file says, or a directory that holds something else"""
    from iocast.study.answer import answer
    from iocast.study.curves import samples
    from iocast.study.desk import Desk
    from iocast.study.optimiser import explore
    from iocast.study.search import Search

    study = read_study(file)
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / MEMORY).is_file())):
        raise InputError(f"'{out}' exists and is no directory of a study; name another one, nothing is overwritten.")
    with Store(out / MEMORY) as store:
        desk = Desk(study, store, workers, report, seed, beyond=beyond)
        search = Search(desk, tell)
        search.run(explore)
        reported = answer(search, command)
        reported["search"] |= {"computed": store.computed, "found": desk.found}
        write_json(out / ANSWER, reported)
        write_json(out / SAMPLES, samples(search), indent=None)
        write_text(out / TABLE, _as_csv(reported))
    return reported


def _as_csv(answer: StudyDocument) -> str:
    """The designs, one a line."""
    axes = list(answer["designs"][0]["values"]) if answer["designs"] else []
    columns = [
        "id",
        "name",
        "basis",
        "cost",
        "price",
        "watts",
        "rack_units",
        "probability",
        "meets",
        "front",
        "rate",
        "tail",
    ]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*columns, "breaks_at_ranks", "first_failing", *axes])
    for d in answer["designs"]:
        ends: Breaks = d["breaks_at"] or {}
        failing: Failing = d["first_failing"] or {}
        known: dict[str, object] = {**d}
        values = [*map(known.__getitem__, columns), ends.get("ranks"), failing.get("level"), *d["values"].values()]
        writer.writerow([cell(value) for value in values])
    return out.getvalue()

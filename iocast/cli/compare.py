# SPDX-License-Identifier: Apache-2.0
"""`iocast compare`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from iocast.cli.app import verb
from iocast.cli.options import (
    FELL_SHORT,
    AnswerFile,
    Json,
    Level,
    LocalWorkers,
    Seed,
    refuse_existing,
    refuse_without_effect,
    within,
)
from iocast.errors import InputError
from iocast.ground.files import write_json
from iocast.ground.progress import Steps

MEASUREMENTS = "Of measurements"
OFFERS = "Of offers"


@verb(
    epilog="Examples: iocast compare runs/before runs/after --fail-on 10% --fail-on create.q99=25%\n\n"
    "iocast compare results/dne:d4 results/dne:d6\n\niocast compare offer-a.yaml offer-b.yaml --study tender.yaml"
)
def compare(
    a: Annotated[
        str,
        typer.Argument(
            help="Run directory or campaign: before. Or a design of a study (DIRECTORY:DESIGN, DIRECTORY for its "
            "decision), or with --study an offer (a platform)."
        ),
    ],
    b: Annotated[str, typer.Argument(help="Of the same kind: after, or what to set beside it.")],
    phase: Annotated[
        Optional[str], typer.Option(help="Phase to compare.  [default: benchmark]", rich_help_panel=MEASUREMENTS)
    ] = None,
    fail_on: Annotated[
        Optional[list[str]],
        typer.Option(
            help="Exit with 4 when a quantity is worse by more than this beyond noise, or that is undecided: 10% or "
            "QUANTITY=10%; may be repeated.",
            metavar="LIMIT",
            rich_help_panel=MEASUREMENTS,
        ),
    ] = None,
    alpha: Annotated[
        float,
        typer.Option(
            help="Chance of one false alarm or more among all quantities.",
            callback=within("a probability", 0.0, 1.0, 0.05),
            rich_help_panel=MEASUREMENTS,
        ),
    ] = 0.05,
    study: Annotated[
        Optional[Path],
        typer.Option(
            help="The study whose workloads, scales and levels they are compared under.", rich_help_panel=OFFERS
        ),
    ] = None,
    workers: LocalWorkers = 0,
    level: Level = 0.9,
    out: AnswerFile = None,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Compare two measurements, two designs or two offers.

    For measurements the answer names the changes beyond noise. Designs and offers are compared with intervals."""
    from iocast.api.compare import compare as judge
    from iocast.compare import is_measurement
    from iocast.study import compare as designs

    if out is not None:
        refuse_existing(out)
    measured = [argument for argument in (a, b) if is_measurement(Path(argument))]
    if len(measured) == 2:
        refuse_without_effect("on measurements", "study", "workers", "level")
        comparison = judge(a, b, phase=phase, alpha=alpha, seed=seed, fail_on=fail_on or [])
        answer, text, failed = comparison.document(), comparison.text(), comparison.failed
    else:
        for argument in (a, b):
            if study is None and argument not in measured and not designs.is_design(argument):
                raise InputError(
                    f"'{argument}' is nothing that can be compared: no run directory, no directory of run directories "
                    "and no campaign (it has no run.json and no campaign.json), "
                    "no design of a study (DIRECTORY:DESIGN), no platform."
                )
        if measured:
            other = b if measured[0] == a else a
            raise InputError(
                f"'{measured[0]}' is a measurement, and '{other}' a design or an offer; compare two of a kind."
            )
        refuse_without_effect("on designs and offers", "phase", "fail_on", "alpha")
        answer = _compare_designs(a, b, study, workers, level, seed)
        text, failed = designs.as_text(answer), False
    if out is not None:
        write_json(out, answer)
    print(json.dumps(answer) if json_ else text)
    if failed:
        raise typer.Exit(FELL_SHORT)


def _compare_designs(a: str, b: str, study: Path | None, workers: int, level: float, seed: int) -> dict[str, Any]:
    from iocast.study.compare import compare as beside
    from iocast.study.compare import is_offer
    from iocast.jobs.workers import Workers

    if study is None and is_offer(a):
        raise InputError("Two offers are compared under a study; name it with --study.")
    with Steps(every=5) as steps, Workers(workers) as crew:
        return beside(a, b, study, crew, steps, level, seed)

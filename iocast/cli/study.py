# SPDX-License-Identifier: Apache-2.0
"""`iocast study`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from iocast.cli.app import verb
from iocast.cli.options import FELL_SHORT, HERE, OUTPUT, Beyond, Json, Seed, WorkerOptions
from iocast.ground.progress import CONTINUES, Steps


@verb(
    epilog="Example: iocast study examples/one-mds-or-dne/study.yaml --out results/dne "
    "&& iocast report results/dne --out dne.html"
)
def study(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="STUDY.yaml", help="The study: platform, workloads, scales, axes, prices, service levels."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Directory for the answer. Results of an earlier run in it are used again: "
            "an edited study computes only what is new.",
            rich_help_panel=OUTPUT,
        ),
    ],
    computing: WorkerOptions = HERE,
    beyond: Beyond = False,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Choose the cheapest design that meets service levels.

    The answer has the probability of that choice, the runner-up, and what would change the choice. Exit status 4 when
    no design meets the service levels."""
    from iocast.api.study import study as decide

    with Steps(every=5, interrupted=CONTINUES) as steps, computing.start(out / "workers") as crew:
        answer = decide(
            file, out=out, seed=seed, progress=steps, tell=steps.tell, workers=crew, command=["iocast", *sys.argv[1:]],
            beyond=beyond,
        )  # fmt: skip
    text = f"{answer.text()}\nWritten to {out}; iocast report {out} makes a page of it."
    print(json.dumps(answer.document()) if json_ else text)
    if answer.decision is None:
        raise typer.Exit(FELL_SHORT)

# SPDX-License-Identifier: Apache-2.0
"""`iocast forecast`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Optional

import typer

from iocast.cli.app import LINE, verb
from iocast.cli.options import LOAD, OUTPUT, Json, Level, LocalWorkers, Seed, choices_of, local_workers, refuse_existing
from iocast.errors import InputError
from iocast.progress import Steps

MEASUREMENTS = "Results"


@verb(
    epilog="Examples: iocast forecast 'results/mdtest-*.txt' --nodes 32,1000 --out forecast\n\n"
    "iocast forecast campaigns/scratch --nodes 100 --out forecast"
)
def forecast(
    sources: Annotated[
        list[Path],
        typer.Argument(
            help="Results of other tools (files, directories, globs, archives), run directories, or campaigns."
        ),
    ],
    nodes: Annotated[str, typer.Option(help="Client nodes to forecast, such as 32 or 32,1000.", rich_help_panel=LOAD)],
    ppn: Annotated[
        Optional[int],
        typer.Option(help="Ranks a node.  [default: those of the largest measurement]", min=1, rich_help_panel=LOAD),
    ] = None,
    phase: Annotated[
        Optional[str],
        typer.Option(help="Phase to forecast.  [default: all but set-up and clean-up]", rich_help_panel=LOAD),
    ] = None,
    only: Annotated[
        Optional[list[str]],
        typer.Option(
            "--only",
            metavar="NAME=VALUE",
            help="Only results whose workload has this setting, such as transfer_size=1MiB, of phases that state it; "
            "may be repeated, also for further values.",
            rich_help_panel=MEASUREMENTS,
        ),
    ] = None,
    platform: Annotated[
        Optional[str],
        typer.Option(help="Platform to fit.  [default: by the results; queue for rates alone]", rich_help_panel=LOAD),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(help="Directory for runs, fitted platforms, forecasts and the report.", rich_help_panel=OUTPUT),
    ] = Path("forecast"),
    ranks_measured: Annotated[
        Optional[int],
        typer.Option(
            "--ranks-measured", help="Ranks of the results, when the files don't say.", rich_help_panel=MEASUREMENTS
        ),
    ] = None,
    nodes_measured: Annotated[
        Optional[int],
        typer.Option(
            "--nodes-measured",
            help="Client nodes of the results, when the files don't say.",
            rich_help_panel=MEASUREMENTS,
        ),
    ] = None,
    level: Level = 0.9,
    workers: LocalWorkers = 0,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Forecast larger scales from results, with a report."""
    from iocast.api.forecast import forecast as forecasts_of

    counts = nodes.split(",")
    targets = list(dict.fromkeys(int(one) for one in counts if one.strip().isdigit() and int(one) > 0))
    if not all(one.strip().isdigit() and int(one) > 0 for one in counts):
        raise InputError(f"--nodes is '{nodes}'; it must be numbers of nodes of at least 1, such as 32 or 32,1000.")
    refuse_existing(out)
    with (
        Steps(every=2, interrupted="nothing is kept, and the same command begins anew") as steps,
        local_workers(workers) as crew,
    ):
        answer = forecasts_of(
            sources, targets, out=out, ranks_per_node=ppn, phase=phase, only=choices_of(only, "--only"),
            platform=platform, ranks_measured=ranks_measured, nodes_measured=nodes_measured, level=level, seed=seed,
            progress=steps, workers=crew, command=shlex.join(LINE),
        )  # fmt: skip
    print(json.dumps(answer.document()) if json_ else answer.text())

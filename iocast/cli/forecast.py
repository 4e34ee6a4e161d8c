# SPDX-License-Identifier: Apache-2.0
"""`iocast forecast`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Optional

import typer

from iocast.cli.app import LINE, verb
from iocast.cli.options import (
    LOAD,
    OUTPUT,
    Json,
    KnownNumbers,
    Level,
    LocalWorkers,
    Seed,
    choices_of,
    local_workers,
    refuse_existing,
)
from iocast.errors import InputError
from iocast.ground.progress import Steps
from iocast.ground.strict import is_whole

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
    nodes: Annotated[
        Optional[str],
        typer.Option(
            help="Client nodes to forecast, such as 32 or 32,1000; with --accelerators their hosts.",
            rich_help_panel=LOAD,
        ),
    ] = None,
    accelerators: Annotated[
        Optional[str],
        typer.Option(
            help="Accelerators to forecast from results of trainings, such as 64 or 64,256.", rich_help_panel=LOAD
        ),
    ] = None,
    au: Annotated[
        Optional[float],
        typer.Option(
            "--au",
            help="Utilisation that accelerators are to keep.  [default: that of MLPerf Storage for the workload]",
            min=0.01,
            max=1.0,
            rich_help_panel=LOAD,
        ),
    ] = None,
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
            "may be repeated, also for further values; several at once as NAME=VALUE,NAME=VALUE.",
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
    known: KnownNumbers = None,
    level: Level = 0.9,
    workers: LocalWorkers = 0,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Forecast larger scales from results, with a report."""
    from iocast.api.forecast import forecast as forecasts_of

    targets = _counts("--nodes", nodes, "nodes")
    refuse_existing(out)
    if accelerators is not None or au is not None:
        _refuse_with_accelerators(
            {
                "--ppn": ppn,
                "--phase": phase,
                "--platform": platform,
                "--known": known,
                "--ranks-measured": ranks_measured,
                "--seed": seed or None,
                "--workers": workers or None,
            }  # fmt: skip
        )
        if len(targets) > 1:
            raise InputError(f"--nodes is '{nodes}'; with --accelerators it is one number of hosts.")
        from iocast.api.forecast import forecast_accelerators

        found = forecast_accelerators(
            sources, _counts("--accelerators", accelerators, "accelerators"), out=out,
            hosts=targets[0] if targets else None, only=choices_of(only, "--only"), limit=au,
            hosts_measured=nodes_measured, level=level,
        )  # fmt: skip
        print(json.dumps(found.document()) if json_ else found.text())
        return
    if not targets:
        raise InputError(
            "iocast forecast needs --nodes: client nodes to forecast, such as 32 or 32,1000. For results of trainings "
            "it needs --accelerators."
        )
    with (
        Steps(every=2, interrupted="nothing is kept, and the same command begins anew") as steps,
        local_workers(workers) as crew,
    ):
        answer = forecasts_of(
            sources, targets, out=out, ranks_per_node=ppn, phase=phase, only=choices_of(only, "--only"),
            platform=platform, ranks_measured=ranks_measured, nodes_measured=nodes_measured, level=level, seed=seed,
            progress=steps, workers=crew, command=shlex.join(LINE), known=known or [],
        )  # fmt: skip
    print(json.dumps(answer.document()) if json_ else answer.text())


def _counts(option: str, text: Optional[str], of: str) -> list[int]:
    """Whole numbers between commas, each once; none where the option is not there."""
    counts = [one.strip() for one in text.split(",")] if text is not None else []
    if not all(is_whole(one) and int(one) > 0 for one in counts):
        raise InputError(f"{option} is '{text}'; it must be numbers of {of} of at least 1, such as 32 or 32,1000.")
    return list(dict.fromkeys(map(int, counts)))


def _refuse_with_accelerators(options: dict[str, object]) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InputError(f"{given[0]} says nothing of accelerators; leave it out with --accelerators and --au.")

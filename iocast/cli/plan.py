# SPDX-License-Identifier: Apache-2.0
"""`iocast plan`."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from iocast.cli.app import LINE, verb
from iocast.cli.options import (
    FELL_SHORT,
    LOAD,
    OUTPUT,
    Json,
    Seed,
    Sets,
    refuse_existing,
    refuse_without_effect,
    settings_of,
)
from iocast.errors import InputError
from iocast.ground.progress import PATIENCE, Steps

QUESTION = "Question"


@verb(
    epilog="Examples: iocast plan --platform lustre --nodes 4 --ppn 8 --target 1000x8 --budget 1h --out plan.yaml\n\n"
    "iocast plan --platform fitted.yaml --nodes 16 --ppn 8 --target 1000x8 --out next.yaml",
    moved={"--asked": "The scale to forecast is --target."},
)
def plan(
    platform: Annotated[
        str, typer.Option(help="Platform that will be calibrated, or the fitted one.", rich_help_panel=QUESTION)
    ] = "local",
    target: Annotated[
        str,
        typer.Option(
            help="Placement to forecast, NODES or NODESxRANKS.  [default: ten times --nodes, with --ppn ranks each]",
            rich_help_panel=QUESTION,
        ),
    ] = "",
    phase: Annotated[str, typer.Option(help="Phase that will be calibrated.", rich_help_panel=QUESTION)] = "benchmark",
    workload: Annotated[str, typer.Option(help="Workload of the runs.", rich_help_panel=LOAD)] = "md-workbench",
    sets: Sets = None,
    nodes: Annotated[
        Optional[int],
        typer.Option(
            help="Client nodes that can be measured, at most; needed with a platform fitted on several.  [default: 1]",
            min=1,
            rich_help_panel=LOAD,
        ),
    ] = None,
    ppn: Annotated[
        Optional[int],
        typer.Option(
            help="Ranks a node, at most.  [default: 1, or those of the largest measurement]",
            min=1,
            rich_help_panel=LOAD,
        ),
    ] = None,
    budget: Annotated[str, typer.Option(help="Time for all runs, with unit.", rich_help_panel=LOAD)] = "10min",
    out: Annotated[Path, typer.Option(help="Campaign file to write.", rich_help_panel=OUTPUT)] = Path("plan.yaml"),
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Propose the runs that narrow a forecast most.

    The answer is a campaign file for iocast measure. Nothing is measured, and no storage is touched. With a fitted
    platform the proposal is what to measure next. Exit status 4 when no campaign is written: nothing within the limits
    narrows the forecast, or the results are another tool's, which makes the proposed runs."""
    from iocast.api.plan import plan as proposal
    from iocast.platforms.fitted import Fitted

    if out.suffix not in (".yaml", ".yml"):
        raise InputError(f"The plan is a campaign in YAML; name a file such as plan.yaml, not '{out}'.")
    refuse_existing(out)
    fitted = Fitted.open(platform)
    if fitted.fitted:
        refuse_without_effect("with a fitted platform, whose measurements are continued", "workload", "sets", "phase")
    if fitted.rates_alone:
        refuse_without_effect(
            "with a platform fitted to rates alone, whose plan has no times of runs and draws nothing at random",
            "budget",
            "seed",
        )
    with Steps(after=PATIENCE) as steps:
        answer = proposal(
            fitted if fitted.fitted else platform, target, nodes=nodes, ranks_per_node=ppn, budget=budget,
            workload=workload, settings=settings_of(sets), phase=phase, seed=seed, progress=steps,
        ).write(out, shlex.join(LINE))  # fmt: skip
    print(json.dumps(answer.document()) if json_ else answer.text())
    if answer.file is None:
        raise typer.Exit(FELL_SHORT)
    if answer.settings_unknown and fitted.rates_alone:
        print(
            f"The results don't say with which settings {answer.workload} ran. The campaign has iocast's own, which "
            f"may be another workload: write those of the results under 'settings' in {out} first.",
            file=sys.stderr if json_ else sys.stdout,
        )

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
from iocast.files import duration, write_text
from iocast.progress import PATIENCE, Steps

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
    from iocast.calibrate.reading import UNREPEATED
    from iocast.calibrate.search import Simulations
    from iocast.candidate_places import candidates, limits_of, measured_settings
    from iocast.fitted import Fitted
    from iocast.plan import Planner, QUANTILES, campaign_file, of_family, of_fitted
    from iocast.proposed import Place, read_place
    from iocast.wording.calibration import plan_text

    if out.suffix not in (".yaml", ".yml"):
        raise InputError(f"The plan is a campaign in YAML; name a file such as plan.yaml, not '{out}'.")
    refuse_existing(out)
    seconds = duration(budget, "--budget", 1, 30 * 86400)
    fitted = Fitted.open(platform)
    if fitted.fitted:
        refuse_without_effect("with a fitted platform, whose measurements are continued", "workload", "sets", "phase")
    most, per_node = limits_of(fitted, nodes, ppn)
    wanted = read_place(target) if target else Place(10 * most, per_node)
    length: float | None = None
    written: Path | None = out
    with Simulations(about=fitted.file) as simulations, Steps(after=PATIENCE) as steps:
        steps("what could be true, and what measurements would tell of it", 0, 1)
        if fitted.rates_alone:
            from iocast import plan_rates

            refuse_without_effect(
                "with a platform fitted to rates alone, whose plan has no times of runs and draws nothing at random",
                "budget",
                "seed",
            )
            workload, settings, repeats = fitted.fitted["campaign"]["workload"]["pattern"], {}, 2
            proposed = plan_rates.chosen(fitted, wanted, plan_rates.candidates(most, per_node))
            if plan_rates.can_be_measured(workload):
                length, settings = 1.0, measured_settings(fitted)
            else:
                written = None
        else:
            if fitted.fitted:
                ensemble = of_fitted(simulations, fitted, seed)
                workload, settings = ensemble.pattern, measured_settings(fitted)
            else:
                settings = settings_of(sets)
                noise = dict.fromkeys(("rate", *QUANTILES), UNREPEATED)
                ensemble = of_family(simulations, platform, workload, settings, phase, noise, seed)
            planner = Planner(ensemble, wanted, fitted.fitted)
            places = candidates(most, per_node, workload, settings)
            proposed, repeats = planner.campaign(places, seconds)
            length = planner.length if ensemble.sized else None
    if proposed and written:
        write_text(out, campaign_file(proposed, wanted, length, repeats, workload, settings, shlex.join(LINE)))
    answer = {
        "target": wanted.document(),
        "repeats": repeats,
        "seconds": length,
        "points": [one.document() | {"purpose": one.purpose} for one in proposed],
        "campaign": str(written) if proposed and written else None,
    }
    print(
        json.dumps(answer) if json_ else plan_text(wanted, proposed, repeats, length, str(written) if written else None)
    )
    if fitted.rates_alone and answer["campaign"] and not settings:
        print(
            f"The results don't say with which settings {workload} ran. The campaign has iocast's own, which may be "
            f"another workload: write those of the results under 'settings' in {out} first.",
            file=sys.stderr if json_ else sys.stdout,
        )
    if answer["campaign"] is None:
        raise typer.Exit(FELL_SHORT)

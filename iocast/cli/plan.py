# SPDX-License-Identifier: Apache-2.0
"""`iocast plan`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from iocast.cli.app import verb
from iocast.cli.options import LOAD, OUTPUT, Json, Seed, Sets, refuse_existing, settings_of, refuse_without_effect
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
        int, typer.Option(help="Client nodes that can be measured, at most.", min=1, rich_help_panel=LOAD)
    ] = 1,
    ppn: Annotated[int, typer.Option(help="Ranks a node, at most.", min=1, rich_help_panel=LOAD)] = 1,
    budget: Annotated[str, typer.Option(help="Time for all runs, with unit.", rich_help_panel=LOAD)] = "10min",
    out: Annotated[Path, typer.Option(help="Campaign file to write.", rich_help_panel=OUTPUT)] = Path("plan.yaml"),
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Propose the runs that narrow a forecast most.

    The answer is a campaign file for iocast measure. Nothing is measured, and no storage is touched. With a fitted
    platform the proposal is what to measure next."""
    from iocast import plan as planning
    from iocast.calibrate.reading import UNREPEATED
    from iocast.calibrate.search import Simulations
    from iocast.fitted import Fitted
    from iocast.text import plan_text

    if out.suffix not in (".yaml", ".yml"):
        raise InputError(f"The plan is a campaign in YAML; name a file such as plan.yaml, not '{out}'.")
    refuse_existing(out)
    seconds = duration(budget, "--budget", 1, 30 * 86400)
    fitted = Fitted.open(platform)
    if fitted.fitted:
        refuse_without_effect("with a fitted platform, whose measurements are continued", "workload", "sets", "phase")
    wanted = planning.read_place(target) if target else planning.Place(10 * nodes, ppn)
    with Simulations(about=fitted.file) as simulations, Steps(after=PATIENCE) as steps:
        steps("what could be true, and what measurements would tell of it", 0, 1)
        if fitted.fitted:
            ensemble = planning.of_fitted(simulations, fitted, seed)
            workload, settings = ensemble.pattern, planning.measured_settings(fitted)
        else:
            settings = settings_of(sets)
            noise = dict.fromkeys(("rate", *planning.QUANTILES), UNREPEATED)
            ensemble = planning.of_family(simulations, platform, workload, settings, phase, noise, seed)
        planner = planning.Planner(ensemble, wanted, fitted.fitted)
        candidates = planning.candidates(nodes, ppn, "" if ensemble.rates_alone else workload, settings)
        proposed, repeats = planner.campaign(candidates, seconds)
    place = f"{wanted.nodes}x{wanted.ranks_per_node}"
    source = f"iocast plan --platform {platform} --nodes {nodes} --ppn {ppn} --target {place} --budget {budget}"
    if proposed:
        write_text(out, planning.campaign_file(proposed, planner, repeats, workload, settings, source))
    answer = {
        "target": wanted.document(),
        "repeats": repeats,
        "seconds": planner.length,
        "points": [one.document() | {"purpose": one.purpose} for one in proposed],
    }
    print(json.dumps(answer) if json_ else plan_text(wanted, proposed, repeats, planner.length, str(out)))

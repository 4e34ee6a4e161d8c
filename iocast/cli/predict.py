# SPDX-License-Identifier: Apache-2.0
"""`iocast predict`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from iocast.cli.app import verb
from iocast.cli.options import (
    LOAD,
    OUTPUT,
    PLATFORM,
    Beyond,
    Edits,
    Json,
    Level,
    Placed,
    Seed,
    Sets,
    placed,
    refuse_existing,
    settings_of,
    refuse_without_effect,
)
from iocast.errors import InputError
from iocast.ground.files import write_json
from iocast.ground.progress import PATIENCE, Steps


@verb(
    epilog="Example: iocast predict fitted.yaml --nodes 100 --ppn 10 "
    "--set waiting_factor=4 --edit stations.mds.servers=32"
)
def predict(
    platform: Annotated[
        str, typer.Argument(help="Fitted platform, a platform that extends one, or a catalogue platform.")
    ],
    workload: Annotated[
        Optional[str], typer.Option(help="Workload; by default the calibration's.", rich_help_panel=LOAD)
    ] = None,
    nodes: Annotated[int, typer.Option(help="Client nodes.", rich_help_panel=LOAD)] = 1,
    ppn: Annotated[
        Optional[int],
        typer.Option(help="Ranks a node.  [default: those of the largest measurement, or 1]", rich_help_panel=LOAD),
    ] = None,
    phase: Annotated[
        Optional[str],
        typer.Option(
            help="Phase of the workload.  [default: the fitted one, or all but set-up and clean-up]",
            rich_help_panel=LOAD,
        ),
    ] = None,
    sets: Sets = None,
    edit: Edits = None,
    solver: Annotated[
        Optional[str],
        typer.Option(
            help="simulate or analytic.  [default: simulate; analytic for a platform fitted to rates alone]",
            rich_help_panel=PLATFORM,
        ),
    ] = None,
    level: Level = 0.9,
    placement: Placed = None,
    beyond: Beyond = False,
    label: Annotated[str, typer.Option(help="What to call the forecast in a report.", rich_help_panel=OUTPUT)] = "",
    points_of: Annotated[
        Optional[Path],
        typer.Option(
            help="Forecast the points of this campaign that are yet to be measured, one file each in --out.",
            rich_help_panel=LOAD,
        ),
    ] = None,
    out: Annotated[
        Optional[Path],
        typer.Option(help="File for the whole forecast as JSON; a directory with --points-of.", rich_help_panel=OUTPUT),
    ] = None,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Forecast one scale with a fitted or a catalogue platform.

    The answer has rates, bandwidth and latency percentiles of each phase."""
    from iocast.api.predict import predict as forecast_of
    from iocast.platforms.fitted import Fitted
    from iocast.platforms.documents import parse_edit

    if out is not None:
        refuse_existing(out)
    fitted = Fitted.open(platform, [parse_edit(text) for text in edit or []])
    if points_of is not None:
        refuse_without_effect("on the points of a campaign", "workload", "nodes", "ppn", "sets", "label")
        _predict_points(fitted, points_of, out, phase, solver, level, seed, json_)
        return
    settings = placed(settings_of(sets), placement)
    options: dict[str, Any] = {"phase": phase, "solver": solver, "level": level, "seed": seed, "label": label}
    with Steps(after=PATIENCE) as steps:
        steps(f"forecasting {nodes} node{'s' * (nodes != 1)}", 0, 1)
        answer = forecast_of(fitted, nodes, ppn, workload=workload, settings=settings, beyond=beyond, **options)
    if out is not None:
        write_json(out, answer.document())
    print(json.dumps(answer.document()) if json_ else answer.text())


def _predict_points(
    fitted: Any,
    campaign: Path,
    out: Path | None,
    phase: str | None,
    solver: str | None,
    level: float,
    seed: int,
    json_: bool,
) -> None:
    """Writes forecasts before their measurement, each with a hash that shows later that they were not fitted to it."""
    from iocast.ground.files import sha256
    from iocast.forecasts.answer import predict_planned
    from iocast.wording.forecast import forecast_text

    if out is None:
        raise InputError("Forecasts of a campaign's points need a directory to go to; name it with --out.")
    answers = []
    for path, answer in predict_planned(fitted, campaign, out, phase=phase, solver=solver, level=level, seed=seed):
        answers.append(answer)
        if not json_:
            print(forecast_text(answer))
            print(f"Written to {path}, sha256 {sha256(path)[:16]}.\n")
    if json_:
        print(json.dumps({"forecasts": answers}))

# SPDX-License-Identifier: Apache-2.0
"""`iocast simulate`."""

from __future__ import annotations

import json
from typing import Annotated, Optional

import typer

from iocast.cli.app import verb
from iocast.cli.options import (
    LOAD,
    AnswerFile,
    Beyond,
    Edits,
    Json,
    LocalWorkers,
    Nodes,
    Ppn,
    Placed,
    Seed,
    Sets,
    local_workers,
    placed,
    refuse_existing,
    refuse_without_effect,
    settings_of,
)
from iocast.errors import InputError
from iocast.ground.files import write_json
from iocast.ground.progress import PATIENCE, Steps


@verb(
    epilog="Examples: iocast simulate lustre md-workbench --nodes 500 --ppn 8\n\n"
    "iocast simulate our-lustre.yaml ior-easy --nodes 64 --ppn 4 --set per_process=128MiB\n\n"
    "iocast simulate lustre unet3d --accelerators 8,64,512"
)
def simulate(
    platform: Annotated[str, typer.Argument(help="Platform of the catalogue, or a platform file with hardware data.")],
    workload: Annotated[str, typer.Argument(help="Workload by name (see: iocast list workloads) or its file.")],
    nodes: Nodes = 1,
    ppn: Ppn = 1,
    sets: Sets = None,
    phase: Annotated[
        Optional[str], typer.Option(help="Phase.  [default: all but set-up and clean-up]", rich_help_panel=LOAD)
    ] = None,
    at: Annotated[
        Optional[str],
        typer.Option(
            help="Begin with the phase of this moment, such as 30min after the first phase began.", rich_help_panel=LOAD
        ),
    ] = None,
    accelerators: Annotated[
        Optional[str],
        typer.Option(
            help="Numbers of accelerators to feed, such as 8,64,512, in place of nodes and ranks: for training.",
            rich_help_panel=LOAD,
        ),
    ] = None,
    accelerators_per_node: Annotated[
        Optional[int],
        typer.Option(help="Accelerators of a node, with --accelerators; 8 by default.", min=1, rich_help_panel=LOAD),
    ] = None,
    edit: Edits = None,
    placement: Placed = None,
    beyond: Beyond = False,
    out: AnswerFile = None,
    workers: LocalWorkers = 0,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Simulate a workload on a platform from hardware data.

    The answer has time, rate, bytes a second and latencies of every phase, what limits it, and the total of several
    phases. Models of measured systems of the same family stand beside it; the range from them to the simulated value
    is no interval."""
    from iocast.api.answer import platform_of
    from iocast.api.simulate import simulate as simulated
    from iocast.training.fed import PER_NODE, fed, fed_text, numbers_of
    from iocast.platforms.documents import parse_edit
    from iocast.simulate import moment_of

    if at is not None:
        moment_of(at)  # refused before anything is simulated
    if accelerators is None:
        refuse_without_effect("without --accelerators", "accelerators_per_node")
    if out is not None:
        refuse_existing(out)
    settings = placed(settings_of(sets), placement)
    edits = dict(parse_edit(text) for text in edit or [])
    if accelerators is not None:
        numbers = numbers_of(accelerators)
        if at is not None or phase is not None or nodes > 1 or ppn > 1:
            raise InputError(
                "--accelerators says where the ranks are, and what is simulated is the phase 'train'; leave "
                "out --nodes, --ppn, --phase and --at."
            )
        with Steps(after=PATIENCE) as steps:
            counted = fed(
                platform_of(platform, edits), workload, settings, numbers, accelerators_per_node or PER_NODE,
                seed=seed, beyond=beyond, report=steps,
            )  # fmt: skip
        if out is not None:
            write_json(out, counted)
        print(json.dumps(counted) if json_ else fed_text(platform, counted))
        return
    with Steps(after=PATIENCE) as steps, local_workers(workers) as crew:
        answer = simulated(
            platform, workload, nodes, ppn, settings=settings, phase=phase, edits=edits, seed=seed,
            beyond=beyond, progress=steps, workers=crew,
        )  # fmt: skip
    if out is not None:
        write_json(out, answer.document())
    if at is not None:
        answer = answer.at(at)
    print(json.dumps(answer.document()) if json_ else answer.text())

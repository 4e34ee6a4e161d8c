# SPDX-License-Identifier: Apache-2.0
"""`iocast observe`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Optional

import typer

from iocast.cli.app import verb
from iocast.cli.options import Json, refuse_without_effect
from iocast.errors import InputError
from iocast.ground.progress import stderr


@verb(
    epilog="Example: iocast observe --out obs.jsonl --process iocast-bench "
    "-- mpirun -n 8 iocast-bench ... --out runs/a; iocast observe --join runs/a mds.jsonl"
)
def observe(
    words: Annotated[
        Optional[list[str]],
        typer.Argument(
            metavar="[-- COMMAND...] | FILE...", help="Command to run and observe; or with --join, observations."
        ),
    ] = None,
    out: Annotated[Optional[Path], typer.Option(help="File for the observation, one JSON object a line.")] = None,
    process: Annotated[
        Optional[list[str]],
        typer.Option(help="Also count the CPU time of the processes of this name; may be repeated."),
    ] = None,
    waits: Annotated[
        bool, typer.Option("--waits", help="Also look where in the kernel those processes sleep.")
    ] = False,
    every: Annotated[str, typer.Option(help="Time between samples, with unit.")] = "1s",
    join: Annotated[Optional[Path], typer.Option(help="Run directory that observations are joined to.")] = None,
    json_: Json = False,
) -> None:
    """Sample CPU, disks and network during a measurement.

    Processes and memory are sampled too. The samples are joined to the run directory of the measurement."""
    from iocast.ground.files import duration
    from iocast.watching.observe import LONGEST, SHORTEST, run_directories_of
    from iocast.watching.observe import observe as watch
    from iocast.wording.checked import utilisation_text
    from iocast.watching.utilisation import join as join_to

    if join is not None:
        refuse_without_effect("with --join, which observes nothing", "process", "waits", "every")
        if not words or out is not None:
            raise InputError("Say which observations to join: iocast observe --join RUN FILE...")
        content = join_to(join, [Path(word) for word in words])
        print(json.dumps(content) if json_ else utilisation_text(content))
        return
    if out is None:
        raise InputError("Name the file for the observation with --out, or join some to a run with --join RUN FILE...")
    if waits and not process:
        raise InputError("Say with --process which processes --waits is about.")
    status = watch(out, duration(every, "--every", SHORTEST, LONGEST), process or [], words or [], waits)
    joined = []
    for run in run_directories_of(words or []) if status == 0 else []:
        content = join_to(run, [out])
        joined.append(str(run))
        if not json_:
            stderr.print(f"Joined to {run}.", markup=False, soft_wrap=True)
            print(utilisation_text(content))
    if json_:
        print(json.dumps({"observation": str(out), "joined": joined, "status": status}))
    elif not joined:
        stderr.print(f"Written to {out}.", markup=False, soft_wrap=True)
    if status:
        raise typer.Exit(status)

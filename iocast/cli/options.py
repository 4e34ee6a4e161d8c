# SPDX-License-Identifier: Apache-2.0
"""Options and checks that several verbs share."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from iocast.errors import InputError

if TYPE_CHECKING:  # each verb loads what it needs
    from iocast.workers import Workers

FELL_SHORT = 4
"""Exit status of an answer that is "no"."""

LOAD = "Workload and scale"
STORAGE = "Storage system"
SHARED = "Limits, on a system that others use"
WORKERS = "Workers that compute"
SLURM = "Slurm jobs"
OUTPUT = "Output"

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, all else on standard error.")]
Seed = Annotated[int, typer.Option(help="Seed of all random choices.", min=0)]
Sets = Annotated[
    Optional[list[str]],
    typer.Option("--set", metavar="NAME=VALUE", help="A workload parameter; may be repeated.", rich_help_panel=LOAD),
]
BackendName = Annotated[
    str,
    typer.Option(
        help="Backend (see: iocast list backends); DIRECTORY is for posix and mpiio only.", rich_help_panel=STORAGE
    ),
]
BackendOptions = Annotated[
    Optional[list[str]],
    typer.Option(
        "--backend-option",
        metavar="OPTION",
        help="Option of the backend, --backend-option=--s3.endpoint=URL; may be repeated.",
        rich_help_panel=STORAGE,
    ),
]
TakeOver = Annotated[
    bool,
    typer.Option(
        "--take-over",
        help="Continue although the owner is another host, when that has been silent for five minutes.",
        rich_help_panel=STORAGE,
    ),
]
SoleUser = Annotated[
    bool,
    typer.Option(
        "--sole-user",
        help="No other run uses the service, where it can't keep two runs apart itself.",
        rich_help_panel=STORAGE,
    ),
]
MaxRate = Annotated[
    str,
    typer.Option(
        metavar="RATE",
        help="Maximum of operations begun a second, all clients together: 200/s.",
        rich_help_panel=SHARED,
    ),
]
MaxObjects = Annotated[
    str, typer.Option(metavar="COUNT", help="Maximum of objects that exist at once in a run.", rich_help_panel=SHARED)
]
StopLatency = Annotated[
    str,
    typer.Option(
        metavar="OP:TIME,...",
        help="End when an operation took longer: create:5s,stat:500ms, or any:10s for each.",
        rich_help_panel=SHARED,
    ),
]
MinFree = Annotated[
    str, typer.Option(metavar="SIZE", help="End when the file system has less free: 50GiB.", rich_help_panel=SHARED)
]
WorkerCount = Annotated[
    int,
    typer.Option(
        "--workers",
        help="Processes that compute, or jobs with --slurm; by default one a core.",
        min=0,
        rich_help_panel=WORKERS,
    ),
]
Scheduler = Annotated[
    str, typer.Option(help="Address of a running Dask scheduler, such as tls://host:8786.", rich_help_panel=WORKERS)
]
Secret = Annotated[
    Optional[Path],
    typer.Option(
        "--scheduler-secret",
        help="The scheduler's certificate and key, one PEM file that nobody else can read.",
        rich_help_panel=WORKERS,
    ),
]
Interface = Annotated[
    str,
    typer.Option(
        help="With --slurm: network interface that workers reach this host by, such as ib0.", rich_help_panel=WORKERS
    ),
]
WorkersInSlurm = Annotated[
    bool, typer.Option("--slurm", help="Start the workers as Slurm jobs.", rich_help_panel=WORKERS)
]
WorkerOptions = Annotated[
    Optional[list[str]],
    typer.Option(
        "--slurm-option",
        metavar="OPTION",
        help="A further option of sbatch, such as --account=me; may be repeated.",
        rich_help_panel=WORKERS,
    ),
]
Level = Annotated[float, typer.Option(help="Probability that an interval is meant to cover.")]


def measured_points(paths: list[Path], phase: str = "benchmark") -> Any:
    """Measured points of a phase, each with its repeats."""
    from iocast.run_directory import find_runs, group

    return group(find_runs(paths, phase)[0])


def crew_of(
    workers: int, scheduler: str, secret: Path | None, slurm: bool, options: list[str] | None, interface: str, out: Path
) -> AbstractContextManager[Workers | None]:
    """The workers that the options name, or None. What workers inside Slurm write lies beside `out`."""
    from iocast.workers import Workers

    if not (workers or scheduler or slurm or secret or interface):
        return nullcontext()
    directory = out.with_name(f"{out.stem}.workers")
    return Workers(workers, scheduler, slurm, tuple(options or ()), directory, secret=secret, interface=interface)


def settings_of(sets: list[str] | None) -> dict[str, str]:
    """Workload parameters from --set.

    @raises InputError for one without `=`"""
    settings = {}
    for one in sets or []:
        name, equals, value = one.partition("=")
        if not equals:
            raise InputError(f"'{one}' is no setting; write --set name=value.")
        settings[name] = value
    return settings


def refuse_existing(path: Path) -> None:
    """@raises InputError when an output is there already"""
    if path.exists():
        raise InputError(f"The output '{path}' exists already; name a new one, nothing is overwritten.")

# SPDX-License-Identifier: Apache-2.0
"""Options and checks that several verbs share."""

from __future__ import annotations

import re
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from iocast.cli.app import GIVEN
from iocast.errors import InputError

if TYPE_CHECKING:  # each verb loads what it needs
    from iocast.jobs.workers import Workers

FELL_SHORT = 4
"""Exit status of an answer that is "no"."""

LOAD = "Workload and scale"
STORAGE = "Storage system"
PLATFORM = "Platform"
STARTED = "Start of ranks"
SHARED = "Limits, on a system that others use"
WORKERS = "Workers that compute"
SLURM = "Slurm jobs"
OUTPUT = "Output"

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, all else on standard error.")]
Seed = Annotated[int, typer.Option(help="Seed of all random choices.", min=0)]
KnownNumbers = Annotated[
    Optional[list[str]],
    typer.Option(
        "--known",
        metavar="NAME=VALUE",
        help="A number of the system that is held, such as mds.servers=512; with network=20us~1.5 it may be off by the "
        "factor behind the tilde. May be repeated.",
        rich_help_panel=LOAD,
    ),
]
Sets = Annotated[
    Optional[list[str]],
    typer.Option("--set", metavar="NAME=VALUE", help="A workload parameter; may be repeated.", rich_help_panel=LOAD),
]
Edits = Annotated[
    Optional[list[str]],
    typer.Option(metavar="PATH=VALUE", help="A change of the platform; may be repeated.", rich_help_panel=PLATFORM),
]
HostFile = Annotated[
    Optional[Path],
    typer.Option(
        "--hosts",
        metavar="FILE",
        help="Outside Slurm: file of the hosts for mpirun, one a line.  [default: that of a job of PBS, LSF or OAR]",
        rich_help_panel=STARTED,
    ),
]
Beyond = Annotated[
    bool,
    typer.Option(
        help="Also at more than ten times the nodes or ranks of any published number of the platform.",
        rich_help_panel=LOAD,
    ),
]
Placed = Annotated[
    Optional[str],
    typer.Option(
        "--placement",
        metavar="block|cyclic",
        help="Which ranks share a node, short for --set placement=...: block, the first ones on the first node, or "
        "cyclic, rank r on node r mod nodes.  [default: as the workload or the measurement has it]",
        rich_help_panel=LOAD,
    ),
]
Nodes = Annotated[int, typer.Option(help="Client nodes.", min=1, rich_help_panel=LOAD)]
Ppn = Annotated[int, typer.Option(help="Ranks a node.", min=1, rich_help_panel=LOAD)]
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


def within(
    what: str, low: float, high: float, example: float, ends: bool = False
) -> Callable[[typer.CallbackParam, float], float]:
    """Callback of an option that is `what` between two numbers, with `ends` also one of them.

    @raises InputError before anything is computed"""

    def check(param: typer.CallbackParam, value: float) -> float:
        if not (low <= value <= high if ends else low < value < high):
            raise InputError(
                f"{max(param.opts, key=len)} is {value:g}; it must be {what} between {low:g} and {high:g}, such as "
                f"{example:g} for {100 * example:g} %."
            )
        return value

    return check


Level = Annotated[
    float,
    typer.Option(
        help="Probability that an interval is meant to cover.", callback=within("a probability", 0.0, 1.0, 0.9)
    ),
]


AnswerFile = Annotated[Optional[Path], typer.Option(help="File for the whole answer as JSON.", rich_help_panel=OUTPUT)]
LocalWorkers = Annotated[
    int, typer.Option(help="Processes that compute; by default one a core.", min=0, rich_help_panel=WORKERS)
]


@dataclass(frozen=True)
class WorkerOptions:
    """Options of the verbs that compute here, by a Dask scheduler or in Slurm jobs."""

    workers: Annotated[
        int,
        typer.Option(
            help="Processes that compute, or jobs with --slurm; by default one a core.", min=0, rich_help_panel=WORKERS
        ),
    ] = 0
    scheduler: Annotated[
        str, typer.Option(help="Address of a running Dask scheduler, such as tls://host:8786.", rich_help_panel=WORKERS)
    ] = ""
    scheduler_secret: Annotated[
        Optional[Path],
        typer.Option(
            help="The scheduler's certificate and key, one PEM file that nobody else can read.", rich_help_panel=WORKERS
        ),
    ] = None
    slurm: Annotated[
        bool, typer.Option("--slurm", help="Start the workers as Slurm jobs.", rich_help_panel=WORKERS)
    ] = False
    slurm_option: Annotated[
        Optional[list[str]],
        typer.Option(
            metavar="OPTION",
            help="A further option of sbatch, such as --account=me; may be repeated.",
            rich_help_panel=WORKERS,
        ),
    ] = None
    interface: Annotated[
        str,
        typer.Option(
            help="With --slurm: network interface that workers reach this host by, such as ib0.",
            rich_help_panel=WORKERS,
        ),
    ] = ""

    def start(self, logs: Path) -> Workers:
        """These workers, by default the processes of this machine. `logs`: directory for what Slurm jobs write."""
        from iocast.jobs.workers import Workers

        return Workers(
            self.workers,
            self.scheduler,
            self.slurm,
            tuple(self.slurm_option or ()),
            logs,
            secret=self.scheduler_secret,
            interface=self.interface,
        )

    def start_if_named(self, out: Path) -> AbstractContextManager[Workers | None]:
        """These workers, or None when no option names one. What Slurm jobs write lies beside `out`."""
        named = self.workers or self.scheduler or self.slurm or self.scheduler_secret or self.interface
        return self.start(out.with_name(f"{out.stem}.workers")) if named else nullcontext()


HERE = WorkerOptions()
"""The default."""
WORKER_OPTIONS = tuple(field.name for field in fields(WorkerOptions))


def local_workers(count: int) -> AbstractContextManager[Workers | None]:
    """This many processes of this machine, or None for 0."""
    from iocast.jobs.workers import Workers

    return Workers(count) if count else nullcontext()


def measured_points(paths: list[Path], phase: str = "benchmark") -> Any:
    """Measured points of a phase, each with its repeats."""
    from iocast.runs.run_directory import find_runs, group

    return group(find_runs(paths, phase)[0])


def settings_of(sets: list[str] | None, option: str = "--set") -> dict[str, str]:
    """Workload parameters from --set; of a name that is given twice the last value.

    @raises InputError for one without `=`"""
    return {name: values[-1] for name, values in choices_of(sets, option).items()}


def placed(settings: dict[str, str], placement: str | None) -> dict[str, str]:
    """The settings with that of --placement. @raises InputError where both have one, and they differ"""
    if placement is not None and settings.get("placement", placement) != placement:
        raise InputError(f"--placement {placement} and --set placement={settings['placement']} differ; leave one out.")
    return settings if placement is None else settings | {"placement": placement}


def choices_of(sets: list[str] | None, option: str) -> dict[str, list[str]]:
    """All values of each name of an option NAME=VALUE, or NAME=VALUE,NAME=VALUE.

    @raises InputError for one without `=`"""
    found: dict[str, list[str]] = {}
    for one in (part for text in sets or [] for part in re.split(r",(?=[\w.-]+=)", text)):
        name, equals, value = one.partition("=")
        if not equals:
            raise InputError(f"'{one}' is no setting; write {option} name=value.")
        found.setdefault(name, []).append(value)
    return found


def refuse_without_effect(where: str, *parameters: str) -> None:
    """@raises InputError when the command line has an option of these, which would change nothing `where`"""
    for parameter in parameters:
        if parameter in GIVEN:
            raise InputError(f"{GIVEN[parameter]} has no effect {where}; leave it out.")


def refuse_existing(path: Path) -> None:
    """@raises InputError when an output is there already"""
    if path.exists():
        raise InputError(f"The output '{path}' exists already; name a new one, nothing is overwritten.")


def take_hosts(file: Path | None) -> None:
    """Has mpirun start ranks on the hosts of a file. @raises InputError for one that can't be used"""
    if file is not None:
        from iocast.campaign.hosts import NAMED, Hosts

        if "SLURM_JOB_ID" in os.environ:
            raise InputError("Inside a Slurm job srun starts the ranks on its nodes; leave out --hosts.")
        os.environ[NAMED] = str(Hosts.read(file).file.resolve())

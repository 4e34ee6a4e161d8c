# SPDX-License-Identifier: Apache-2.0
"""Runs of iocast-bench: what it measures, with which limits, and why one failed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iocast.ground import binaries
from iocast.campaign.launchers import Ended, Ending, ask_to_end, bench_command, bench_environment, on_other_hosts
from iocast.campaign.places import MARK, make_place, mount_points, remove_if_empty, require_directory
from iocast.campaign.plan import PlannedRun, settings_arguments
from iocast.errors import InputError, NothingThere, RunError
from iocast.ground.files import read_json
from iocast.ground.processes import start
from iocast.ground.progress import stderr
from iocast.records.campaign import CampaignDocument

OBSERVE_EVERY = 0.1
"""Seconds between samples with `--observe`: a run's phases may take less than a second."""
DROP_CACHES = Path("/proc/sys/vm/drop_caches")
"""Who may write to it may have the kernel forget what it caches."""
REFUSALS = {2: InputError, 4: NothingThere}
"""What the benchmark's exit codes mean, but 1 and those of launchers (docs/exit-codes.md)."""


def check_backend(backend: Backend, workload: str, settings: dict[str, Any], limits: Sequence[str] = ()) -> None:
    """Has the benchmark look at the backend's options and at limits, before any of them is written to a file. Nothing
    is measured and nothing is opened.

    @raises InputError with the benchmark's own sentence, or for a limit that this backend can't keep"""
    if not backend.has_root and any(limit.startswith("--min-free") for limit in limits):
        raise InputError(
            f"--min-free looks at what a file system has free, and the backend '{backend.name}' works in none; "
            "leave it out, or bound the run with --max-objects."
        )
    if backend.options or limits:
        command = [
            binaries.find("iocast-bench"),
            "--backend",
            backend.name,
            *backend.options,
            *limits,
            "--workload",
            workload,
            *settings_arguments(settings),
            "--dry-run",
        ]
        if backend.has_root:
            command += [f"--{backend.name}.root", "/"]
        call_bench(command)


@dataclass(frozen=True)
class Backend:
    """What iocast-bench measures, as its command line says it. options: "--s3.endpoint=http://..." and the like, of
    this backend."""

    name: str = "posix"
    options: Sequence[str] = ()

    def __post_init__(self) -> None:
        for option in self.options:
            if not option.startswith(f"--{self.name}.") or "=" not in option:
                raise InputError(
                    f"'{option.partition('=')[0]}' is no option of the backend '{self.name}'; write it as "
                    f"--backend-option=--{self.name}.NAME=VALUE (iocast describe {self.name})."
                )

    @property
    def has_root(self) -> bool:
        """Whether it works in a directory."""
        return self.name in ("posix", "mpiio")

    @property
    def keeps_data(self) -> bool:
        return self.name != "dummy"

    def check_place(self, directory: Path | None) -> None:
        """@raises InputError for a backend that works in a directory and has none, or the other way round"""
        if self.has_root and directory is None:
            raise InputError(f"The backend '{self.name}' needs the directory to be measured; name it.")
        if not self.has_root and directory is not None:
            raise InputError(f"The backend '{self.name}' works in no directory; leave '{directory}' out.")

    def document(self) -> CampaignDocument:
        """Its entry in campaign.json; POSIX has none."""
        return {} if self == POSIX else {"backend": {"name": self.name, "options": list(self.options)}}

    def arguments(self, root: Path | None, ways: Sequence[Path] = ()) -> list[str]:
        """`ways`: the same directory through further mount points."""
        place = [f"--{self.name}.root", ",".join(map(str, [root, *ways]))] if root is not None else []
        return ["--backend", self.name, *place, *self.options]


POSIX = Backend()


def can_drop_caches() -> bool:
    """Whether this user may have the kernel forget what it caches of files."""
    return os.access(DROP_CACHES, os.W_OK)


@dataclass(frozen=True)
class SharedUse:
    """How runs use a system that others use too, in the benchmark's words (docs/operations.md, Brakes; One run at a
    time)."""

    max_rate: str = ""
    max_objects: str = ""
    stop_latency: str = ""
    min_free: str = ""
    take_over: bool = False
    sole_user: bool = False

    @property
    def limits(self) -> list[str]:
        """Arguments of a run that measures."""
        given = {
            "max-rate": self.max_rate,
            "max-objects": self.max_objects,
            "stop-latency": self.stop_latency,
            "min-free": self.min_free,
        }
        return [f"--{name}={value}" for name, value in given.items() if value]

    @property
    def pace(self) -> list[str]:
        """Arguments of a run that removes what is left: it begins no more operations a second, and stops for nothing
        else."""
        return [f"--max-rate={self.max_rate}"] * bool(self.max_rate)

    @property
    def claims(self) -> list[str]:
        """Arguments of every run, also of one that removes what another left."""
        return ["--take-over"] * self.take_over + ["--sole-user"] * self.sole_user


ALONE = SharedUse()


@contextlib.contextmanager
def observed(out: Path, file: Path) -> Iterator[None]:
    """Observes this machine meanwhile, into `file`, and joins that to the run directory `out` in the end.

    A disk that is full for the observation costs the observation, and not the run."""
    from iocast.watching.observe import Observer
    from iocast.watching.utilisation import join

    file.unlink(missing_ok=True)
    with Observer(file, OBSERVE_EVERY, ["iocast-bench"], waits=True) as observer:
        yield
    if observer.error is not None:
        stderr.print(
            f"The observation '{file}' is incomplete: {observer.error.strerror}. The run is kept without it.",
            markup=False,
            soft_wrap=True,
        )
        return
    join(out, [file])


def run_bench(
    run: PlannedRun,
    workload: str,
    backend: Backend,
    place: Path | None,
    out: Path,
    seed: int,
    *,
    kept: Path | None = None,
    goes_on: bool = False,
    drop_caches: bool = False,
    ending: Ending | None = None,
    mark: str = "",
    use: SharedUse = ALONE,
    ways: Sequence[Path] = (),
) -> None:
    """One benchmark run in the directory `place`, which is made, and removed again if it is empty then; None for a
    backend that has no directory. `ways`: the same place through further mount points, over which ranks are spread.
    `goes_on`: on the data set that an earlier run left there. `drop_caches`: first, unless it goes on. `mark`: see
    MARK. `kept`: the way to `out` by what is open.

    @raises RunError or InputError with the benchmark's own sentence"""
    command = [
        *bench_command(run.nodes, run.ranks_per_node, run.threads_per_rank, run.settings),
        "--workload",
        workload,
        *backend.arguments(place, ways),
        "--seed",
        str(seed),
    ]
    make_place(place)
    command += [*settings_arguments(run.settings), *use.limits, *use.claims]
    if drop_caches and not goes_on:
        command.append("--drop-caches=run")
    command += ["--out", str(out), "--label", run.name]
    try:
        call_bench(command, ending, mark)
        if (found := read_json((kept or out) / "run.json", "run")["placement"]["ranks"]) != run.ranks:
            # srun without a fitting MPI plugin starts one program of one rank for each.
            raise RunError(
                f"The launcher started {found} ranks in place of {run.ranks} ({' '.join(command[:3])} ...); its MPI "
                "support does not fit the benchmark's MPI library."
            )
    finally:
        remove_if_empty(place)


def sweep(
    run: PlannedRun,
    workload: str,
    backend: Backend,
    place: Path | None,
    seed: int,
    *,
    ending: Ending | None = None,
    mark: str = "",
    use: SharedUse = ALONE,
) -> None:
    """Removes what an attempt at this run left in its place, and the place itself when nothing else is in it. An empty
    place is clean.

    @raises RunError or InputError with the benchmark's own sentence"""
    if remove_if_empty(place):
        return
    require_directory(place)
    command = [
        *bench_command(run.nodes, run.ranks_per_node, run.threads_per_rank, run.settings),
        "--workload",
        workload,
        *backend.arguments(place),
        "--seed",
        str(seed),
    ]
    try:
        call_bench(
            [
                *command,
                *settings_arguments({name: value for name, value in run.settings.items() if name != "phases"}),
                "--sweep",
                *use.pace,
                *use.claims,
            ],
            ending,
            mark,
        )
    finally:
        remove_if_empty(place)


def call_bench(command: list[str], ending: Ending | None = None, mark: str = "") -> None:
    """Runs a benchmark, which ends with this process. `mark`: see MARK."""
    if ending is not None and ending.why:
        raise Ended(ending.why)
    environment = bench_environment() | ({MARK: mark} if mark else {})
    command = on_other_hosts(command, environment)
    try:
        child = start(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", env=environment
        )
    except OSError as error:
        raise RunError(f"'{command[0]}' can't be started: {error.strerror}.") from error
    if ending is not None:
        ending.child = child
        if ending.why:  # it came between the question above and here
            ask_to_end(child)
    try:
        _, errors = child.communicate()
    except BaseException:
        child.terminate()
        child.communicate()
        raise
    if ending is not None and ending.why:
        raise Ended(ending.why)
    if child.returncode == 0:
        return
    raise REFUSALS.get(child.returncode, RunError)(failure(command, child.returncode, errors))


def failure(command: list[str], code: int, errors: str) -> str:
    """Why a benchmark failed: its own sentence, or who was killed by which signal, or its last words."""
    own = [
        line
        for line in errors.splitlines()
        if line.startswith("iocast-bench: ") and not line.startswith("iocast-bench: warning: ")
    ]
    if own:
        return own[0].removeprefix("iocast-bench: ")
    killed = re.search(
        r"process rank (?P<rank>\d+) .*on node (?P<node>\S+) exited on\s+signal (?P<number>\d+)", errors
    ) or re.search(
        r"srun: error: (?P<node>\S+): task (?P<rank>\d+): (?P<word>Killed|Terminated|Segmentation fault|Bus "
        r"error|Aborted|Out Of Memory)",
        errors,
    )
    after = (
        "what was measured before is kept, and the same command goes on. Memory is the usual reason ('Out of memory' "
        "in dmesg), or somebody ended it"
    )
    launcher_name = Path(command[0]).name
    if killed is not None:
        how = _signal(int(killed["number"])) if "number" in killed.groupdict() else killed["word"]
        return f"Rank {killed['rank']} of the benchmark on {killed['node']} was killed ({how}); {after}."
    number = -code if code < 0 else code - 128  # as a shell gives a signal on; 255 is an error like others
    if number in signal.valid_signals():
        does = "starts the ranks" if launcher_name != "iocast-bench" else "measures"
        return f"The program {launcher_name}, which {does}, was killed ({_signal(number)}); {after}."
    words = " ".join(errors.split())[-500:]
    return f"The benchmark failed with exit code {code}" + (
        f"; the last words of {launcher_name}: {words}" if words else f", and {launcher_name} printed nothing."
    )


def _signal(number: int) -> str:
    try:
        return f"signal {number}, {signal.Signals(number).name}"
    except ValueError:
        return f"signal {number}"


def check_root(backend: Backend, root: Path | None) -> list[Path]:
    """The mount points, absolute, the first without links. @raises InputError for one that is no directory that the
    backend can measure"""
    backend.check_place(root)
    ways = mount_points(root)
    for way in ways:
        if not way.exists():
            raise InputError(f"The directory '{way}' to be measured does not exist; make it first.")
        if not way.is_dir():
            raise InputError(f"'{way}' is not a directory; name the directory whose storage is to be measured.")
        if not os.access(way, os.W_OK | os.X_OK):
            raise InputError(f"The directory '{way}' can't be written to.")
    found = [*(way.resolve() for way in ways[:1]), *(way.absolute() for way in ways[1:])]
    if twice := next((way for way in found if found.count(way) > 1), None):
        raise InputError(f"The mount point '{twice}' is named twice; name each once.")
    return found


def require_few_objects(
    workload: str, runs: Sequence[PlannedRun], max_objects: str, ending: Ending | None = None
) -> None:
    """@raises InputError when one of the runs would have more objects than --max-objects allows; nothing is made"""
    for settings, ranks, per_node in sorted(
        {(tuple(settings_arguments(run.settings)), run.ranks, run.ranks_per_node) for run in runs}
    ):
        command = [
            binaries.find("iocast-bench"),
            "--backend",
            "dummy",
            "--workload",
            workload,
            *settings,
            f"--max-objects={max_objects}",
        ]
        call_bench([*command, "--dry-run", "--ranks", str(ranks), "--ranks-per-node", str(per_node)], ending)

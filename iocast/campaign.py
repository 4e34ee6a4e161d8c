# SPDX-License-Identifier: Apache-2.0
"""Campaigns: which runs to make, in which order, with which launcher; and making them (docs/answers.md, `kind:
campaign`)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import re
import secrets
import shutil
import signal
import stat
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from glob import escape as glob_escape
from pathlib import Path
from typing import Any

import psutil

from iocast import binaries, claim
from iocast.busy import report_activity
from iocast.claim import Claim
from iocast.errors import InputError, RunError
from iocast.files import data_directory, SCHEMA_VERSION, read_campaign, read_json, sha256, write_json
from iocast.own_directory import MODE, OwnDirectory, require_own_directory
from iocast.names import ALLOWED, as_file_name, is_file_name
from iocast.processes import start
from iocast.progress import stderr
from iocast.strict_yaml import Section, allowed_sentence

MAX_RANKS_PER_CORE = 128
"""Beyond this an oversubscribed mpirun spends minutes on starting and measures only its own scheduler."""

OBSERVE_EVERY = 0.1
"""Seconds between samples with `--observe`: a run's phases may take less than a second."""

SCALINGS = ("weak", "strong")

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
"""Who may write to it may have the kernel forget what it caches."""

CAMPAIGNS = data_directory("campaigns")

MARK = "IOCAST_CAMPAIGN"
"""Environment variable of everything that a campaign starts: the campaign's identity."""

MAX_RUNS = 20_000
"""Runs of a campaign; each takes seconds, and a place in campaign.json."""

MIN_ITERATIONS, MAX_ITERATIONS = 5, 100_000
"""Bounds of the iterations that a pilot run chooses."""
PILOT_ITERATIONS = (50, 3200)
"""Iterations of the first pilot run and of the last."""
PILOT_GROWTH = 4
MAY_BE_LEFT = "The last run may have left its objects on the service."
COUNTING = 2.0
"""Seconds that a count of left files may take."""
NOTHING_TO_SWEEP = "there is nothing to sweep"
"""Words of the benchmark (real/manifest.cpp), to which tests/mpi/test_operations.py holds it."""

SCRATCH = "iocast-campaign"
"""Directory below the measured one in which data sets lie."""

BY_CAMPAIGN = "by campaign"
"""Value of `places` in campaign.json: directories of data sets have the campaign's identity in their names."""

SEEDS_OF_REPEATS = 1000
"""Seeds of one campaign's repeats: its own seed times this, and those after it."""


@dataclass
class PlannedRun:
    name: str
    nodes: int
    ranks_per_node: int
    settings: dict[str, Any]
    role: str
    status: str = "planned"
    threads_per_rank: int = 1  # clients in a process
    group: str = ""  # runs of one group are steps on one data set, one after the other
    step: str = ""
    seed: int | None = None  # of the run; None: the campaign's

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    @property
    def text(self) -> str:
        """ "8 ranks, T = 0"."""
        return f"{self.ranks:,} rank{'s' * (self.ranks != 1)}, T = {self.settings.get('waiting_factor', 0):g}"


@dataclass(frozen=True)
class PlannedPoint:
    nodes: int
    ranks_per_node: int
    waiting_factor: float
    role: str
    settings: tuple[tuple[str, Any], ...] = ()
    threads_per_rank: int = 1

    @property
    def name(self) -> str:
        """ "n100x10-t0-d1-o10000-i2000-threads5": ranks, nodes, waiting factor, its own settings by their first
        letters, ranks of a process."""
        own = "".join(f"-{as_file_name(key[:1] + str(value))}" for key, value in self.settings) + (
            f"-threads{self.threads_per_rank}" if self.threads_per_rank > 1 else ""
        )
        return (
            f"n{self.nodes * self.ranks_per_node}"
            + (f"x{self.nodes}" if self.nodes > 1 else "")
            + f"-t{self.waiting_factor:g}{own}"
        )


@dataclass(frozen=True)
class Step:
    name: str
    settings: dict[str, Any]
    role: str  # fit, check, beside, or empty for the point's


@dataclass
class Plan:
    """A campaign file, read and checked."""

    file: Path
    workload: str
    settings: dict[str, Any]
    seconds: float
    benchmark_repeats: int
    repeats: int
    scaling: str = "weak"  # "strong": ranks share what a rank alone does; "weak": each does as much
    drop_caches: bool = False  # before each run, or group of steps, where the user may
    points: list[PlannedPoint] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    overrides: dict[str, Any] = field(default_factory=dict)  # what the user changed of it
    parameters: frozenset[str] | None = None  # see parameters_of
    yaml: Section | None = field(default=None, repr=False, compare=False)


def read_plan(name_or_file: str, *, nodes: int | None = None, settings: dict[str, str] | None = None) -> Plan:
    """`nodes` and `settings` take the place of the file's own, in every point.

    @raises InputError: with file, line and the nearest match"""
    file = Path(name_or_file)
    if not name_or_file.endswith((".yaml", ".yml")):
        file = CAMPAIGNS / f"{name_or_file}.yaml"
        if not file.is_file():
            known = sorted(p.stem for p in CAMPAIGNS.glob("*.yaml"))
            allowed = allowed_sentence(name_or_file, known)[:-1]
            raise InputError(f"There is no campaign '{name_or_file}'. {allowed}; or name a YAML file.")
    yaml = Section.load(file, "campaign")
    yaml.value("description", "")
    yaml.value("source", "")
    plan = Plan(
        file,
        workload=str(yaml.value("workload")),
        settings={**yaml.map("settings"), **(settings or {})},
        seconds=yaml.number("seconds", 2, low=0.01, high=86400),
        benchmark_repeats=int(yaml.number("benchmark_repeats", 3, low=1, high=1000)),
        repeats=int(yaml.number("repeats", 2, low=1, high=1000)),
        scaling=yaml.choice("scaling", SCALINGS, "weak"),
        drop_caches=yaml.flag("drop_caches", False),
        overrides={k: v for k, v in (("nodes", nodes), ("settings", settings)) if v},
        yaml=yaml,
    )
    _refuse_place(yaml, "settings", plan.settings, set(settings or {}))
    for point in yaml.sections("points"):
        _read_points(plan, point, nodes, settings or {})
    if "steps" in yaml:
        for step in yaml.sections("steps"):
            role = step.choice("role", ("fit", "check", "beside"), "") if "role" in step else ""
            name = str(step.value("name"))
            if not is_file_name(name):
                step.fail("name", f"the step {name[:80]!r} names a directory, which has {ALLOWED}")
            plan.steps.append(Step(name, step.map("settings"), role))
            step.finish()
    yaml.finish()
    if not plan.points:
        yaml.fail("points", "a campaign needs at least one point")
    if (planned := len(plan.points) * plan.repeats * max(1, len(plan.steps))) > MAX_RUNS:
        yaml.fail("steps", f"with these steps there are {planned:,} runs; a campaign has at most {MAX_RUNS:,}")
    if len({step.name for step in plan.steps}) < len(plan.steps):
        yaml.fail("steps", "two steps have the same name")
    return plan


def _refuse_place(section: Section, key: str, settings: Mapping[str, Any], overrides: Collection[str]) -> None:
    """Refuses settings that a campaign has keys of its own for, which would count in their place."""
    if "waiting_factor" in settings:
        sentence = "'waiting_factor' is a key of points, not one of their settings"
        if "waiting_factor" in overrides:
            raise InputError(f"--set can't change the waiting factor: {sentence}. Change it in {section.file}.")
        section.fail(key, sentence)


def _refuse_without_effect(plan: Plan) -> None:
    """Refuses keys of the file that change nothing, since it or its workload decides in another way. What the user sets
    in place of the file's own may do so.

    @raises InputError, RunError with the benchmark's own sentence"""
    if plan.yaml is None:
        return
    own = {name: value for name, value in plan.settings.items() if name not in plan.overrides.get("settings", {})}
    without = ""
    if not has_sizes(plan):
        without = f"the workload '{plan.workload}' has sizes of its own, which no pilot run decides"
    elif all("iterations" in {**own, **dict(point.settings)} for point in plan.points):
        without = "'iterations' under settings decides the size of each run"
    for key in ("seconds", "scaling"):
        if without and key in plan.yaml:
            plan.yaml.fail(key, f"'{key}' has no effect, since {without}; leave it out")
    if "benchmark_repeats" in plan.yaml and "repeats" not in parameters_of(plan):
        plan.yaml.fail(
            "benchmark_repeats",
            f"'benchmark_repeats' has no effect, since the workload '{plan.workload}' has no 'repeats'; leave it out",
        )
    if "benchmark_repeats" in plan.yaml and "repeats" in own:
        plan.yaml.fail("benchmark_repeats", "'benchmark_repeats' and 'repeats' under settings are one number")


def _read_points(plan: Plan, point: Section, nodes: int | None, settings: dict[str, str]) -> None:
    """The product of all lists of one entry of `points`."""
    counts = [nodes] if nodes is not None else point.numbers("nodes", 1, low=1, high=1e6)
    point.value("nodes", 1)
    role = point.choice("role", ("fit", "check"), "fit")
    factors = point.numbers("waiting_factor", 0, low=0, high=1e6)
    own = point.value("settings", {})
    variants = own if isinstance(own, list) else [own]
    if not all(
        isinstance(variant, dict)
        and all(isinstance(name, str) and not isinstance(value, list | dict | set) for name, value in variant.items())
        for variant in variants
    ):
        point.fail("settings", "'settings' must be a map of parameters and their values, or a list of such maps")
    for variant in variants:
        _refuse_place(point, "settings", variant, set(settings))
    threads = int(point.number("threads_per_rank", 1, low=1, high=4096))
    if ("ranks" in point) == ("ranks_per_node" in point):
        point.fail(None, "exactly one of 'ranks' and 'ranks_per_node' is needed")
    key = "ranks" if "ranks" in point else "ranks_per_node"
    of_ranks = point.numbers(key, low=1, high=1e9 if key == "ranks" else 1e6)
    combinations = len(counts) * len(of_ranks) * len(variants) * len(factors)
    if (runs := (len(plan.points) + combinations) * plan.repeats) > MAX_RUNS:
        point.fail(None, f"with this entry there are {runs:,} runs; a campaign has at most {MAX_RUNS:,}")
    for count in counts:
        for ranks in of_ranks if key == "ranks" else [n * count for n in of_ranks]:
            if ranks % count:
                way_out = (
                    f"; a campaign for them is made by: iocast plan --nodes {count:g} --ppn N"
                    if nodes is not None
                    else ""
                )
                point.fail(
                    "ranks" if nodes is None else None,
                    f"{ranks:g} ranks can't be spread evenly over {count:g} nodes{way_out}",
                )
            if ranks // count % threads:
                point.fail(
                    "threads_per_rank",
                    f"{int(ranks // count)} clients a node can't be processes of {threads} threads each",
                )
            for variant in variants:
                kept = tuple((k, v) for k, v in variant.items() if k not in settings)
                plan.points += [
                    PlannedPoint(int(count), int(ranks // count), float(factor), role, kept, threads)
                    for factor in factors
                ]
    point.finish()
    # Points that differed only by what the user set are one.
    plan.points = list(dict.fromkeys(plan.points))


def bench_command(nodes: int, ranks_per_node: int, threads_per_rank: int = 1) -> list[str]:
    """The start of a command line: iocast-bench with `nodes` x `ranks_per_node` clients, `threads_per_rank` in a
    process.

    @raises InputError when that number can't sensibly be started here"""
    threads = ["--threads-per-rank", str(threads_per_rank)] if threads_per_rank > 1 else []
    return [*launcher(nodes, ranks_per_node // threads_per_rank), binaries.find("iocast-bench"), *threads]


def launcher(nodes: int, ranks_per_node: int) -> list[str]:
    """The command that starts `nodes` x `ranks_per_node` ranks: srun inside a Slurm job, else mpirun.

    @raises InputError when that number can't sensibly be started here"""
    ranks = nodes * ranks_per_node
    if "SLURM_JOB_ID" in os.environ:
        have = int(os.environ.get("SLURM_JOB_NUM_NODES", os.environ.get("SLURM_NNODES", "1")))
        if nodes > have:
            raise InputError(f"The campaign needs {nodes} nodes, but this Slurm job has {have}.")
        from iocast.slurm import mpi_options

        return [
            "srun",
            *mpi_options(),
            f"--nodes={nodes}",
            f"--ntasks={ranks}",
            f"--ntasks-per-node={ranks_per_node}",
            "--overcommit",
        ]
    if nodes > 1:
        raise InputError(
            f"The campaign needs {nodes} nodes, which only a Slurm job has; start iocast measure inside one, write one "
            "with --slurm, or plan runs on one node."
        )
    cores = len(os.sched_getaffinity(0))
    if ranks > MAX_RANKS_PER_CORE * cores:
        raise InputError(
            f"{ranks} ranks are too many for mpirun on this machine's {cores} cores (at most "
            f"{MAX_RANKS_PER_CORE * cores}); let a process have several with threads_per_rank in the campaign, or "
            "simulate that scale with iocast predict."
        )
    if shutil.which("mpirun") is None:
        raise RunError("The program mpirun is not installed; install Open MPI (Debian: openmpi-bin).")
    return ["mpirun", *mpirun_options(), "-n", str(ranks)]


def mpirun_options() -> list[str]:
    """What Open MPI needs for more ranks than cores: they must yield while they wait, and must not be bound to a core.
    Those of others (MPICH, Intel MPI) refuse these options and allow it without any."""
    done = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, env=bench_environment(), check=False)
    if "Open MPI" not in done.stdout:
        return []
    return ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]


def bench_environment() -> dict[str, str]:
    """Open MPI refuses root unless two variables are set; in a container root is the only user."""
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


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

    def document(self) -> dict[str, Any]:
        """Its entry in campaign.json; POSIX has none."""
        return {} if self == POSIX else {"backend": {"name": self.name, "options": list(self.options)}}

    def arguments(self, root: Path | None) -> list[str]:
        place = [f"--{self.name}.root", str(root)] if root is not None else []
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


class Ending:
    """Ends a campaign before its time: on SIGTERM, on SIGUSR1 (with which Slurm announces a time limit to a job script
    of iocast), or when a deadline comes. The benchmark that runs gets SIGTERM, and keeps what it measured. Use as a
    context manager in the main thread."""

    WHY = {signal.SIGTERM: "SIGTERM came", signal.SIGUSR1: "the time limit of the job is near"}

    def __init__(self, deadline: float | None = None) -> None:
        self.why = ""
        self.child: subprocess.Popen[str] | None = None
        self._timer: threading.Timer | None = None
        if deadline is not None:
            self._timer = threading.Timer(max(0.0, deadline - time.time()), self.end, [self.WHY[signal.SIGUSR1]])
            self._timer.daemon = True

    def __enter__(self) -> Ending:
        self._before = {
            number: signal.signal(number, lambda n, frame: self.end(self.WHY[signal.Signals(n)])) for number in self.WHY
        }
        if self._timer is not None:
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._timer is not None:
            self._timer.cancel()

    def end(self, why: str) -> None:
        self.why = self.why or why
        if self.child is not None:
            ask_to_end(self.child)


def ask_to_end(launcher: subprocess.Popen[str]) -> None:
    """SIGTERM to the ranks, which agree on an end and keep what they measured. A signal to srun or mpirun would kill
    the ranks too soon."""
    if launcher.poll() is not None:
        return
    if str(launcher.args[0]) == "srun":  # type: ignore[index]
        from iocast.slurm import ask_steps_to_end

        if not ask_steps_to_end():
            launcher.terminate()
        return
    try:
        ranks = [p for p in psutil.Process(launcher.pid).children(recursive=True) if p.name() == "iocast-bench"]
    except psutil.Error:
        ranks = []
    for rank in ranks:
        with contextlib.suppress(psutil.Error):
            rank.terminate()
    if not ranks:
        launcher.terminate()


class Ended(RunError):
    """The campaign was ended from outside, in good order."""


@contextlib.contextmanager
def observed(out: Path, file: Path) -> Iterator[None]:
    """Observes this machine meanwhile, into `file`, and joins that to the run directory `out` in the end.

    A disk that is full for the observation costs the observation, and not the run."""
    from iocast.observe import Observer
    from iocast.utilisation import join

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
) -> None:
    """One benchmark run in the directory `place`, which is made, and removed again if it is empty then; None for a
    backend that has no directory. `goes_on`: on the data set that an earlier run left there. `drop_caches`: first,
    unless it goes on. `mark`: see MARK. `kept`: the way to `out` by what is open.

    @raises RunError or InputError with the benchmark's own sentence"""
    command = [
        *bench_command(run.nodes, run.ranks_per_node, run.threads_per_rank),
        "--workload",
        workload,
        *backend.arguments(place),
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
        *bench_command(run.nodes, run.ranks_per_node, run.threads_per_rank),
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


def counted(places: Sequence[Path]) -> str:
    """How many files and directories these directories are with what is in them: "1,234 files and directories". A count
    that takes more than COUNTING seconds ends there."""
    found, end = len(places), time.monotonic() + COUNTING
    for place in places:
        for _, directories, files in os.walk(place):
            found += len(directories) + len(files)
            if time.monotonic() > end:
                return f"at least {found:,} files and directories"
    return f"{found:,} files and directories"


def mark_of_places(campaign: Mapping[str, Any]) -> str:
    """The campaign's identity, which its directories have in their names; "" for a campaign of before they had."""
    return str(campaign["id"]) if campaign.get("places") == BY_CAMPAIGN else ""


def own_place(scratch: Path | None, name: str, mark: str) -> Path | None:
    """Directory of a data set below DIR/iocast-campaign. The campaign's identity `mark` is in its name, so that no
    other campaign's data set ever has it. None for a backend without directories."""
    return None if scratch is None else scratch / (f"{name}.{mark}" if mark else name)


def make_place(place: Path | None) -> None:
    """Makes the directory of a data set, unless it is there. Nobody else can put anything into it.

    @raises InputError when something else is there"""
    if place is None:
        return
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o700)
    require_directory(place)


def require_directory(place: Path | None) -> None:
    """@raises InputError when the place is no directory itself: what a symbolic link leads to belongs to others"""
    if place is not None and not stat.S_ISDIR(os.lstat(place).st_mode):
        kind = "a symbolic link" if place.is_symlink() else "no directory"
        raise InputError(f"'{place}' is {kind}, which iocast did not make; look at it, and move it away.")


def left_in(scratch: Path, mark: str = "") -> str:
    """What directories of data sets there are in DIR/iocast-campaign, as a sentence; "" for none. mark: only those of
    the campaign of this identity."""
    try:
        places = [one for one in scratch.iterdir() if one.name.endswith(f".{mark}" * bool(mark)) and one.is_dir()]
        if mark:  # its own empty ones are clean
            places = [one for one in places if any(one.iterdir())]
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"'{scratch}' can't be read ({error.strerror}); it may still hold files."
    return f"'{scratch}' still holds {counted(places)}." if places else ""


def remove_if_empty(place: Path | None) -> bool:
    """Whether there is no such directory afterwards. None is no directory, and may hold anything."""
    if place is None:
        return False
    try:
        place.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def settings_arguments(settings: dict[str, Any]) -> list[str]:
    """As arguments; YAML's true is the programs' true."""
    return [
        a
        for name, value in settings.items()
        for a in ("--set", f"{name}={str(value).lower() if isinstance(value, bool) else value}")
    ]


def call_bench(command: list[str], ending: Ending | None = None, mark: str = "") -> None:
    """Runs a benchmark, which ends with this process. `mark`: see MARK."""
    if ending is not None and ending.why:
        raise Ended(ending.why)
    environment = bench_environment() | ({MARK: mark} if mark else {})
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
    raise (InputError if child.returncode == 2 else RunError)(failure(command, child.returncode, errors))


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


def end_earlier(campaign: dict[str, Any], out: Path, take_over: bool) -> None:
    """Ends what an earlier process of this campaign left running, unless the campaign is a copy of one that goes on:
    copies have one identity, and, on a service, one place. Notes where it is now.

    @raises InputError when it goes on elsewhere, RunError as end_orphans()"""
    here, before = str(out.resolve()), str(campaign.get("out", ""))
    if before not in ("", here) and (owner := claim.live_owner(Path(before), take_over)):
        raise InputError(f"The campaign in '{out}' is a copy of that in '{before}', which goes on. {owner}")
    campaign["out"] = here
    end_orphans(str(campaign["id"]))


def end_orphans(mark: str) -> None:
    """Ends what an earlier process of this campaign started on this machine and left running.

    @raises RunError for one that does not end, as in a call to storage that hangs"""
    orphans = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                orphans.append(process)
    for deadly in (False, True):
        for process in orphans:
            with contextlib.suppress(psutil.Error):
                (process.kill if deadly else process.terminate)()
        _, orphans = psutil.wait_procs(orphans, timeout=5)
    if orphans:
        which = ", ".join(str(process.pid) for process in orphans)
        raise RunError(
            f"Of an earlier process of this campaign still run here, and can't be ended: {which}. They wait for the "
            "storage, most likely; the campaign goes on when they are gone."
        )


def make_own_directory(path: Path) -> OwnDirectory:
    """A directory whose children the ext file systems spread over block groups, as they do with users' homes.

    ext4 without a journal looks at every inode of a group that was deleted within the last minutes before it makes a
    new one there (Linux, fs/ext4/ialloc.c, recently_deleted), so runs that share a group slow down those after them, up
    to forty-fold for creates. Other file systems don't know the flag."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(MODE)
    made = OwnDirectory(path)
    get_flags, set_flags, top_directory = 0x80086601, 0x40086602, 0x00020000  # linux/fs.h
    with contextlib.suppress(OSError):
        (flags,) = struct.unpack("l", fcntl.ioctl(made.handle, get_flags, struct.pack("l", 0)))
        fcntl.ioctl(made.handle, set_flags, struct.pack("l", flags | top_directory))
    return made


def _not_begun(out: Path) -> bool:
    """Whether there is no more than what comes before campaign.json: nothing, a claim, job scripts, and a pilot that
    was ended."""
    if not out.is_dir():
        return False
    names = {p.name for p in out.iterdir()}
    pilots = {p.name.partition(".")[0] for p in (out / "runs").iterdir()} if "runs" in names else set()
    return all(name in ("slurm", "runs") or claim.NAME in name for name in names) and pilots <= {"pilot"}


class Owned:
    """What this process alone works in: a campaign's directory, and DIR/iocast-campaign. Both are made. `out`: the
    first, open. Release it."""

    def __init__(self, out: Path, scratch: Path | None, take_over: bool) -> None:
        """@raises InputError, RunError when another process owns one of them, or another user can change them"""
        self._claims: list[Claim] = []
        self._opened: list[OwnDirectory] = []
        self._made = [] if os.path.lexists(out) else [out]
        self._scratch = scratch
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                out.mkdir(MODE)
            self.out = OwnDirectory(out)
            self._claim(self.out, str(out.resolve()), "iocast measure into this directory", take_over)
            for name in ("runs", "observations"):
                if os.path.lexists(self.out.at / name):
                    with self.out.named():
                        require_own_directory(self.out.at / name)
            if scratch is not None:
                place = make_own_directory(scratch)
                self._claim(place, str(out.resolve()), f"the campaign in '{out.resolve()}'", take_over)
        except OSError as error:
            self.release()
            raise RunError(f"The directory '{error.filename or out}' can't be made: {error.strerror}.") from error
        except BaseException:
            self.release()
            raise

    def _claim(self, directory: OwnDirectory, campaign: str, what: str, take_over: bool) -> None:
        self._opened.append(directory)
        with directory.named():
            self._claims.append(Claim(directory.at, campaign, what, take_over=take_over))

    def make(self, name: str) -> Path:
        """A directory in the campaign's, unless it is there; the way to it by what is open."""
        (path := self.out.at / name).mkdir(MODE, exist_ok=True)
        return path

    def require_held(self) -> None:
        """@raises RunError when somebody took one of them over, as after minutes without a sign of life"""
        if not all(one.is_held() for one in self._claims):
            raise RunError(
                "Another process has taken this campaign over; this one ends here, and what it measured is kept."
            )

    def release(self) -> None:
        for one in reversed(self._claims):
            one.release()
        self._claims = []
        for opened in self._opened:
            opened.close()
        self._opened = []
        for directory in [*self._made, *([self._scratch] if self._scratch else [])]:  # unless something was made in it
            remove_if_empty(directory)


def _unique(names: list[str]) -> list[str]:
    """The names, those that are there already with a number behind."""
    found: list[str] = []
    for name in names:
        number, fresh = 1, name
        while fresh in found:
            number += 1
            fresh = f"{name}-{number}"
        found.append(fresh)
    return found


def check_root(backend: Backend, root: Path | None) -> None:
    """@raises InputError when this is no directory that the backend can measure"""
    backend.check_place(root)
    if root is None:
        return
    if not root.exists():
        raise InputError(f"The directory '{root}' to be measured does not exist; make it first.")
    if not root.is_dir():
        raise InputError(f"'{root}' is not a directory; name the directory whose storage is to be measured.")
    if not os.access(root, os.W_OK | os.X_OK):
        raise InputError(f"The directory '{root}' can't be written to.")


def check_out(out: Path, scratch: Path | None) -> None:
    """@raises InputError when something else than a campaign is there, or `out` lies among the data sets"""
    if scratch is not None and out.resolve().is_relative_to(scratch):
        raise InputError(
            f"The output directory '{out}' lies in '{scratch}', where data sets are made and removed; choose another "
            "place."
        )
    if out.exists() and not (out / "campaign.json").is_file() and not _not_begun(out):
        raise InputError(
            f"The output directory '{out}' exists already and holds no campaign; name a new one, nothing is "
            "overwritten."
        )


def check_same(campaign: dict[str, Any], plan: Plan, out: Path, root: Path | None, backend: Backend, seed: int) -> None:
    """@raises InputError when the campaign in `out` was begun with something else"""
    place = str(root or "")
    for key, now, what in (
        ("plan_sha256", sha256(plan.file), f"was made from another plan than '{plan.file}'; choose another --out"),
        (
            "overrides",
            plan.overrides,
            f"was begun with other --nodes or --set ({campaign.get('overrides', {})}); repeat them, or choose another "
            "--out",
        ),
        ("root", place, f"measures '{campaign.get('root')}', not '{place}'; choose another --out"),
        (
            "backend",
            backend.document().get("backend"),
            "was begun with another --backend or --backend-option; repeat them, or choose another --out",
        ),
        ("seed", seed, f"was begun with --seed {campaign.get('seed')}, not {seed}; repeat it, or choose another --out"),
    ):
        if campaign.get(key, {} if key == "overrides" else None) != now:
            raise InputError(f"The campaign in '{out}' {what}.")


def sized_by_a_pilot(plan: Plan) -> bool:
    """Whether some point leaves its iterations to a pilot run."""
    lacking = any("iterations" not in {**plan.settings, **dict(point.settings)} for point in plan.points)
    return lacking and has_sizes(plan)


def has_sizes(plan: Plan) -> bool:
    """Whether a pilot run can decide the sizes of the plan's workload: iterations on as many objects. Others have sizes
    of their own, which the plan sets or leaves."""
    return {"iterations", "objects"} <= parameters_of(plan)


def parameters_of(plan: Plan) -> frozenset[str]:
    """Names of the parameters that the plan's workload has.

    @raises InputError, RunError with the benchmark's own sentence"""
    if plan.parameters is None:
        point = plan.points[0]
        step = plan.steps[0].settings if plan.steps else {}
        ranks = point.nodes * point.ranks_per_node
        command = [binaries.find("iocast-bench"), "--backend", "dummy", "--workload", plan.workload]
        given = {**plan.settings, **dict(point.settings), **step}
        if "iterations" not in given:  # the workload's own may be more than these objects; the campaign's will not
            given.pop("objects", None)
        command += settings_arguments(given)
        command += ["--dry-run", "--json", "--ranks", str(ranks), "--ranks-per-node", str(point.ranks_per_node)]
        plan.parameters = frozenset(binaries.run_json(command)["workload"]["parameters"])
    return plan.parameters


def repeats_of_benchmark(plan: Plan) -> int:
    """How often a run without think times repeats its benchmark phase."""
    return int(plan.settings.get("repeats", plan.benchmark_repeats))


def settings_of_a_run(plan: Plan) -> dict[str, Any]:
    """Settings of a planned run, with the least size that a pilot run may have where one decides."""
    return planned_runs(plan, 0, PILOT_ITERATIONS[0] if sized_by_a_pilot(plan) else 0)[0].settings


def planned_runs(plan: Plan, seed: int, alone: int) -> list[PlannedRun]:
    """All runs of a campaign in their order: every repeat visits all points, shuffled, so that scale is not confounded
    with the time of day.

    @param alone iterations that a pilot run found for a rank alone; 0 where the plan has all sizes"""
    _refuse_without_effect(plan)
    shuffled = random.Random(seed)
    names = _unique([point.name for point in plan.points])
    runs: list[PlannedRun] = []
    for repeat in range(1, plan.repeats + 1):
        points = list(zip(plan.points, names, strict=True))
        shuffled.shuffle(points)
        for point, name in points:
            factor, repeats = point.waiting_factor, plan.benchmark_repeats
            given = {**plan.settings, **dict(point.settings)}
            sizes = {"objects": alone} if alone else {}
            if "iterations" not in given and has_sizes(plan):
                share = float(point.nodes * point.ranks_per_node if plan.scaling == "strong" else 1)
                if factor > 0:
                    # A thinking rank takes at least 1 + T times as long, so it gets one phase with half of its share of
                    # the work.
                    repeats = 1
                    share *= 2 * (1 + factor)
                iterations = max(MIN_ITERATIONS, round(alone / share))
                sizes = {"iterations": _within_objects(iterations, given), "objects": iterations}
            own = {**sizes, "waiting_factor": factor, "repeats": repeats, **given}
            # What the plan does not set is left out where the workload lacks it; a think time that it sets is refused.
            kept = given.keys() | parameters_of(plan) | ({"waiting_factor"} if factor else set())
            own = {name: value for name, value in own.items() if name in kept}
            runs += _steps(plan, point, own, f"{name}-r{repeat}", seed * SEEDS_OF_REPEATS + repeat - 1)
    return runs


def pilot_run(plan: Plan, iterations: int) -> PlannedRun:
    """A rank alone, with objects for its iterations where the campaign sets none."""
    sizes = {"objects": iterations} | plan.settings
    return PlannedRun("pilot", 1, 1, sizes | {"iterations": _within_objects(iterations, sizes)}, "fit")


def _within_objects(iterations: int, settings: dict[str, Any]) -> int:
    """At most as many as the objects that a campaign sets: beyond them a rank reads what nobody made yet."""
    objects = str(settings.get("objects", ""))
    return min(iterations, int(objects)) if objects.isdigit() else iterations


def _steps(plan: Plan, point: PlannedPoint, settings: dict[str, Any], name: str, seed: int) -> list[PlannedRun]:
    """The runs of one repeat of a point. Steps work on one data set and so have one seed."""
    if not plan.steps:
        return [
            PlannedRun(
                name,
                point.nodes,
                point.ranks_per_node,
                settings,
                point.role,
                threads_per_rank=point.threads_per_rank,
                seed=seed,
            )
        ]
    return [
        PlannedRun(
            f"{name}-{step.name}",
            point.nodes,
            point.ranks_per_node,
            {**settings, **step.settings},
            step.role or point.role,
            threads_per_rank=point.threads_per_rank,
            group=name,
            step=step.name,
            seed=seed,
        )
        for step in plan.steps
    ]


def missing_of(runs: list[PlannedRun], role: str | None, only_nodes: int | None = None) -> list[PlannedRun]:
    """Runs to make, in order. A group of steps is made as a whole: nobody knows what an unfinished one left in its data
    set."""
    unfinished = {run.group for run in runs if run.group and run.status != "complete"}
    of_role = {run.group for run in runs if run.group and (role is None or run.role == role)}
    return [
        run
        for run in runs
        if (
            run.group in unfinished & of_role
            if run.group
            else run.status != "complete" and (role is None or run.role == role)
        )
        and only_nodes in (None, run.nodes)
    ]


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


class Campaign:
    """A campaign directory: campaign.json and runs/<name>/. Opening one again goes on with what is missing. Use as a
    context manager: until it is closed this process owns the directory, and DIR/iocast-campaign. `sweeps`: it is opened
    to be swept, at any rate."""

    def __init__(
        self,
        root: Path | None,
        plan: Plan,
        out: Path,
        seed: int,
        *,
        backend: Backend = POSIX,
        observe: bool = False,
        only_nodes: int | None = None,
        ending: Ending | None = None,
        use: SharedUse = ALONE,
        sweeps: bool = False,
    ) -> None:
        check_root(backend, root)
        for point in plan.points:
            if only_nodes in (None, point.nodes):
                launcher(point.nodes, point.ranks_per_node // point.threads_per_rank)
        check_backend(backend, plan.workload, settings_of_a_run(plan), use.limits)
        self.root, self.plan, self.out, self.seed, self.observe = root and root.resolve(), plan, out, seed, observe
        self.scratch = self.root and self.root / SCRATCH
        check_out(out, self.scratch)
        self.only_nodes, self.ending = only_nodes, ending
        self.backend, self.use, self._sweeps = backend, use, sweeps
        self.drops_caches = plan.drop_caches and can_drop_caches()
        self._owned = Owned(out, self.scratch, use.take_over)
        self._looked = False
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets others have the directories."""
        self._owned.release()

    def _open(self) -> None:
        """Reads what there is of the campaign, and ends what an earlier process of it left running."""
        plan, out, backend, place = self.plan, self.out, self.backend, str(self.root or "")
        if not (self._owned.out.at / "campaign.json").is_file():
            self.json: dict[str, Any] = {
                "schema_version": SCHEMA_VERSION,
                "kind": "campaign",
                "id": secrets.token_hex(8),
                "places": BY_CAMPAIGN,
                "out": str(out.resolve()),
                "workload": plan.workload,
                "root": place,
            } | backend.document()
            self.json |= {
                "plan": str(plan.file),
                "plan_sha256": sha256(plan.file),
                "overrides": plan.overrides,
                "seed": self.seed,
            }
            if self.use.max_rate:
                self.json["max_rate"] = self.use.max_rate
            self.runs: list[PlannedRun] = []
            return
        with self._owned.out.named():
            self.json = read_campaign(self._owned.out.at, planned=True)
        check_same(self.json, plan, out, self.root, backend, self.seed)
        self.json.setdefault("id", secrets.token_hex(8))  # of before campaigns had one
        self.runs = [PlannedRun(**point) for point in self.json["points"]]
        # A sweep may be faster or slower than what was measured.
        if not self._sweeps and self.json.get("max_rate", "") != self.use.max_rate:
            if any(run.status == "complete" for run in self.runs):
                raise InputError(
                    f"The campaign in '{out}' was begun with another --max-rate, or with none; repeat it, or choose "
                    "another --out."
                )
            self.json["max_rate"] = self.use.max_rate
        end_earlier(self.json, out, self.use.take_over)

    def _save(self) -> None:
        self._owned.require_held()
        self.json["points"] = [asdict(run) for run in self.runs]
        with self._owned.out.named():
            write_json(self._owned.out.at / "campaign.json", self.json, secret=bool(self.backend.options))

    def prepare(self) -> None:
        """Sizes the runs by a pilot of one rank where the plan leaves that to it, and orders them."""
        if self.runs:
            return
        points = self.plan.points
        self._look_at_the_machine(max(point.ranks_per_node for point in points), max(point.nodes for point in points))
        try:
            alone = self._sized() if sized_by_a_pilot(self.plan) else 0
        except Ended as error:
            raise Ended(f"Ended because {error}, in the pilot run; the same command begins again.") from error
        self.runs = planned_runs(self.plan, self.seed, alone)
        self._save()

    def _sized(self) -> int:
        """Iterations with which a rank alone takes the seconds that are aimed at, by a pilot run."""
        datasets = int(self.plan.settings.get("datasets", 10))
        iterations, seconds = PILOT_ITERATIONS[0], 0.0
        number = 0
        while True:
            number += 1
            run = pilot_run(self.plan, iterations)
            attempt, place = self._begin(run, f"pilot-{number}")
            out = self.out / "runs" / f"pilot.attempt-{attempt}"
            runs = self._owned.make("runs")
            for old in runs.glob("pilot*"):
                shutil.rmtree(old)
            run_bench(
                run,
                self.plan.workload,
                self.backend,
                place,
                out,
                self.seed,
                kept=runs / out.name,
                drop_caches=self.drops_caches,
                ending=self.ending,
                mark=self.json["id"],
                use=self.use,
            )
            with self._owned.out.named():
                phases = read_json(runs / out.name / "run.json", "run")["phases"]
            phase = next((p for p in phases if p["name"] == "benchmark"), None)
            if phase is None:
                raise InputError(
                    f"The workload '{self.plan.workload}' has no phase 'benchmark' that a pilot run could time; set "
                    f"its size with 'iterations' under settings in {self.plan.file}."
                )
            shutil.rmtree(runs / out.name)
            seconds = phase["seconds"]
            done = int(run.settings["iterations"])
            if seconds > 0.05 or iterations >= PILOT_ITERATIONS[1] or done < iterations:
                break
            iterations *= PILOT_GROWTH
        wanted = self.plan.seconds / repeats_of_benchmark(self.plan)
        iterations = max(MIN_ITERATIONS, min(MAX_ITERATIONS, round(done * wanted / max(float(seconds), 1e-6))))
        self.json["pilot"] = {"rate": phase["rate"], "datasets": datasets}
        return iterations

    def _place(self, key: str, attempt: int) -> Path | None:
        """A directory of its own for each attempt: what an earlier one may still do there, wherever it runs, disturbs
        nobody."""
        return own_place(self.scratch, key if attempt == 1 else f"{key}.attempt-{attempt}", mark_of_places(self.json))

    def _sweep_attempts(self, run: PlannedRun, key: str) -> str:
        """Removes what earlier attempts at a run, or at a group of steps, left. What can't be recognised is reported,
        and stays.

        @return why nothing was removed from a service; "" otherwise"""
        refused = ""
        before = self.json.get("attempts", {}).get(key, 0)
        seed = self.seed if run.seed is None else run.seed
        places: list[Path | None] = (
            [self._place(key, n) for n in range(1, before + 1)] if self.scratch is not None else [None] * (before > 0)
        )
        for place in places:
            if place is not None and not os.path.lexists(place):
                continue
            try:
                sweep(
                    run,
                    self.plan.workload,
                    self.backend,
                    place,
                    seed,
                    ending=self.ending,
                    mark=self.json["id"],
                    use=self.use,
                )
            except InputError as error:
                if place is None:  # a service says so when nothing is there; what else is wrong stops the run itself
                    refused = str(error)
                elif os.path.lexists(place):
                    stderr.print(
                        f"What an earlier attempt left in '{place}' stays there, look at it and remove it: {error}",
                        markup=False,
                        soft_wrap=True,
                    )
        return refused

    def _begin(self, run: PlannedRun, key: str) -> tuple[int, Path | None]:
        """Number and place of a new attempt at a run, or at a group of steps; what earlier ones left is removed.

        @raises RunError when that fails. What can't be recognised is reported, and stays."""
        attempts = self.json.setdefault("attempts", {})
        before = attempts.get(key, 0)
        self._sweep_attempts(run, key)
        attempt = before + 1
        while (fresh := self._place(key, attempt)) is not None and os.path.lexists(fresh):
            attempt += 1
        attempts[key] = attempt
        self._save()
        return attempt, fresh

    def _set_aside(self, name: str) -> None:
        """What earlier attempts at this run wrote is kept, but out of the way."""
        runs = self._owned.out.at / "runs"
        for old in [runs / name, *sorted(runs.glob(f"{glob_escape(name)}.attempt-*"))]:
            if old.exists():
                number = 1 + len(list(runs.glob(f"{glob_escape(name)}.interrupted-*")))
                while (aside := runs / f"{name}.interrupted-{number}").exists():
                    number += 1
                old.rename(aside)

    def _attempted(self) -> dict[str, PlannedRun]:
        """Runs that were begun and may have left something, the last first, by the key of their attempts. An earlier
        attempt at a complete run may have: while nobody could see whether it was dead, its directory stayed."""
        attempts = self.json.get("attempts", {})
        of = self.missing(None) if self.scratch is None else self.runs
        begun = {key: run for run in reversed(of) if (key := run.group or run.name) in attempts}
        if self.runs and self.scratch is None:
            return begun  # pilot runs are over, and had the place that the runs have
        pilots = {}
        for key in attempts:
            if found := re.fullmatch(r"pilot-([1-9])", key):
                iterations = min(PILOT_ITERATIONS[0] * PILOT_GROWTH ** (int(found[1]) - 1), PILOT_ITERATIONS[1])
                pilots[key] = pilot_run(self.plan, iterations)
        return begun | pilots

    def sweep(self) -> None:
        """Removes what ended attempts of this campaign left, and measures nothing.

        @raises InputError, RunError when something stays, or may stay"""
        if "attempts" not in self.json and not self.runs:
            raise InputError(f"There is no campaign in '{self.out}' that could have left anything; see --out.")
        if not self.backend.keeps_data:
            return
        try:
            answers = [self._sweep_attempts(run, key) for key, run in self._attempted().items()]
        except Ended as error:
            raise Ended(f"Ended because {error}, while it removed what was left.") from error
        # Runs have one place in a service: what one of them removed there is no longer in the way of another.
        if answers and all(answers) and not any(NOTHING_TO_SWEEP in answer for answer in answers):
            raise InputError(f"What the campaign left on the service may still be there: {answers[-1]}")

    def left_over(self) -> str:
        """What ended attempts left on the storage, as a sentence; "" for nothing."""
        if not self.backend.keeps_data:
            return ""
        if self.scratch is None:
            return MAY_BE_LEFT if self._attempted() else ""
        return left_in(self.scratch, mark_of_places(self.json))

    def missing(self, role: str | None) -> list[PlannedRun]:
        """Runs to make, in order."""
        return missing_of(self.runs, role, self.only_nodes)

    def measure(self, role: str | None, report: Callable[[PlannedRun, int, int], None]) -> None:
        """Makes the missing runs of this role (all when None). `report` is called before each with its number and their
        count."""
        todo = self.missing(role)
        if self.use.max_objects:
            require_few_objects(self.plan.workload, todo, self.use.max_objects, self.ending)
        if todo:
            self._look_at_the_machine(max(run.ranks_per_node for run in todo), max(run.nodes for run in todo))
        for run in todo:
            run.status = "planned"
        group, attempt, place = "", 0, None
        for number, run in enumerate(todo, start=1):
            report(run, number, len(todo))
            goes_on, group = bool(run.group) and run.group == group, run.group
            try:
                if not goes_on:
                    attempt, place = self._begin(run, run.group or run.name)
                self._set_aside(run.name)
                self._make(run, attempt, place, goes_on)
                run.status = "complete"
            except Ended as error:
                run.status = "planned"
                self._save()
                left = len(self.missing(role))
                raise Ended(
                    f"Ended because {error}; what was measured is kept, and {left} "
                    f"run{'s are' if left != 1 else ' is'} left. The same command goes on with them."
                ) from error
            except (InputError, RunError):
                run.status = "failed"
                self._save()
                raise
            if "filesystem" not in self.json:
                with self._owned.out.named():
                    environment = read_json(self._owned.out.at / "runs" / run.name / "run.json", "run")["environment"]
                self.json["filesystem"] = environment.get("filesystem") or environment.get("service") or {}
            self._save()

    def _look_at_the_machine(self, clients: int, nodes: int) -> None:
        """Reports whether this machine is busy, once before this process's first run, and keeps that."""
        if self._looked:
            return
        self._looked = True
        self.json.setdefault("machine", []).append(report_activity(self.root, clients, nodes))

    def _make(self, run: PlannedRun, attempt: int, place: Path | None, goes_on: bool) -> None:
        """One run. Its results take its name when they are whole, and only while this process owns the campaign."""
        final = self.out / "runs" / run.name
        out = final.with_name(f"{run.name}.attempt-{attempt}")
        seed = self.seed if run.seed is None else run.seed
        try:
            runs = self._owned.make("runs")
            with (
                observed(runs / out.name, self._owned.make("observations") / f"{run.name}.jsonl")
                if self.observe
                else contextlib.nullcontext()
            ):
                run_bench(
                    run,
                    self.json["workload"],
                    self.backend,
                    place,
                    out,
                    seed,
                    kept=runs / out.name,
                    goes_on=goes_on,
                    drop_caches=self.drops_caches,
                    ending=self.ending,
                    mark=self.json["id"],
                    use=self.use,
                )
            self._owned.require_held()
            (runs / out.name).rename(runs / final.name)
        except OSError as error:
            raise RunError(f"The results of '{run.name}' can't be kept in '{final}': {error.strerror}.") from error

# SPDX-License-Identifier: Apache-2.0
"""Campaigns: which runs to make, in which order, with which launcher; and making them (docs/answers.md, `kind: campaign`)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import shutil
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from iocast import binaries
from iocast.errors import InputError, RunError
from iocast.files import data_directory, SCHEMA_VERSION, read_json, sha256, write_json
from iocast.strict_yaml import Section

MOST_RANKS_PER_CORE = 128
"""Beyond this an oversubscribed mpirun spends minutes on starting and measures only its own scheduler."""

OBSERVE_EVERY = 0.1
"""Seconds between samples with `--observe`: a run's phases may take less than a second."""

SCALINGS = ("weak", "strong")

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
"""Who may write to it may have the kernel forget what it caches."""

CAMPAIGNS = data_directory("campaigns")


@dataclass
class PlannedRun:
    name: str
    nodes: int
    ranks_per_node: int
    settings: dict[str, Any]
    role: str
    status: str = "planned"
    threads_per_rank: int = 1  # of those, so many in a process
    group: str = ""  # runs of one group are steps on one data set, one after the other
    step: str = ""

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


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
        """ "n100x10-t0-d1-o10000-i2000-threads5": ranks, nodes, waiting factor, its own settings by their first letters, ranks of a process."""
        own = "".join(f"-{key[0]}{value}" for key, value in self.settings) + (f"-threads{self.threads_per_rank}" if self.threads_per_rank > 1 else "")
        return f"n{self.nodes * self.ranks_per_node}" + (f"x{self.nodes}" if self.nodes > 1 else "") + f"-t{self.waiting_factor:g}{own}"


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


def read_plan(name_or_file: str, *, nodes: int | None = None, settings: dict[str, str] | None = None) -> Plan:
    """`nodes` and `settings` take the place of the file's own, in every point.

    @raises InputError: with file, line and the nearest match"""
    file = Path(name_or_file)
    if not name_or_file.endswith((".yaml", ".yml")):
        file = CAMPAIGNS / f"{name_or_file}.yaml"
        if not file.is_file():
            known = sorted(p.stem for p in CAMPAIGNS.glob("*.yaml"))
            raise InputError(f"There is no campaign '{name_or_file}'. Known: {', '.join(known)}; or name a YAML file.")
    yaml = Section.load(file)
    yaml.value("description", "")
    yaml.value("source", "")
    plan = Plan(
        file,
        workload=str(yaml.value("workload")),
        settings={**yaml.value("settings", {}), **(settings or {})},
        seconds=yaml.number("seconds", 2, low=0.01, high=86400),
        benchmark_repeats=int(yaml.number("benchmark_repeats", 3, low=1, high=1000)),
        repeats=int(yaml.number("repeats", 2, low=1, high=1000)),
        scaling=yaml.choice("scaling", SCALINGS, "weak"),
        drop_caches=yaml.flag("drop_caches", False),
        overrides={k: v for k, v in (("nodes", nodes), ("settings", settings)) if v},
    )
    for point in yaml.sections("points"):
        _read_points(plan, point, nodes, settings or {})
    if "steps" in yaml:
        for step in yaml.sections("steps"):
            role = step.choice("role", ("fit", "check", "beside"), "") if "role" in step else ""
            plan.steps.append(Step(str(step.value("name")), step.value("settings", {}), role))
            step.finish()
    yaml.finish()
    if not plan.points:
        yaml.fail("points", "a campaign needs at least one point")
    if len({step.name for step in plan.steps}) < len(plan.steps):
        yaml.fail("steps", "two steps have the same name")
    return plan


def _read_points(plan: Plan, point: Section, nodes: int | None, settings: dict[str, str]) -> None:
    """The product of all lists of one entry of `points`."""
    counts = [nodes] if nodes is not None else point.numbers("nodes", 1, low=1, high=1e6)
    point.value("nodes", 1)
    role = point.choice("role", ("fit", "check"), "fit")
    factors = point.numbers("waiting_factor", 0, low=0, high=1e6)
    own = point.value("settings", {})
    variants = own if isinstance(own, list) else [own]
    if not all(isinstance(variant, dict) for variant in variants):
        point.fail("settings", "'settings' must be a map of parameters, or a list of such maps")
    threads = int(point.number("threads_per_rank", 1, low=1, high=4096))
    if ("ranks" in point) == ("ranks_per_node" in point):
        point.fail(None, "exactly one of 'ranks' and 'ranks_per_node' is needed")
    for count in counts:
        for ranks in point.numbers("ranks", low=1, high=1e9) if "ranks" in point else [n * count for n in point.numbers("ranks_per_node", low=1, high=1e6)]:
            if ranks % count:
                point.fail("ranks" if nodes is None else None, f"{ranks} ranks can't be spread evenly over {count} nodes")
            if ranks // count % threads:
                point.fail("threads_per_rank", f"{int(ranks // count)} clients a node can't be processes of {threads} threads each")
            for variant in variants:
                kept = tuple((k, v) for k, v in variant.items() if k not in settings)
                plan.points += [PlannedPoint(int(count), int(ranks // count), float(factor), role, kept, threads) for factor in factors]
    point.finish()
    # Points that differed only by what the user set are one.
    plan.points = list(dict.fromkeys(plan.points))


def bench_command(nodes: int, ranks_per_node: int, threads_per_rank: int = 1) -> list[str]:
    """The start of a command line: iocast-bench with so many ranks, of which a process has `threads_per_rank`.

    @raises InputError when so many can't sensibly be started here"""
    threads = ["--threads-per-rank", str(threads_per_rank)] if threads_per_rank > 1 else []
    return [*launcher(nodes, ranks_per_node // threads_per_rank), binaries.find("iocast-bench"), *threads]


def launcher(nodes: int, ranks_per_node: int) -> list[str]:
    """The command that starts `nodes` x `ranks_per_node` ranks: srun inside a Slurm job, else Open MPI's mpirun.

    @raises InputError when so many can't sensibly be started here"""
    ranks = nodes * ranks_per_node
    if "SLURM_JOB_ID" in os.environ:
        have = int(os.environ.get("SLURM_JOB_NUM_NODES", os.environ.get("SLURM_NNODES", "1")))
        if nodes > have:
            raise InputError(f"{nodes} nodes are asked for, but this Slurm job has {have}.")
        from iocast.slurm import mpi_options

        return ["srun", *mpi_options(), f"--nodes={nodes}", f"--ntasks={ranks}", f"--ntasks-per-node={ranks_per_node}", "--overcommit"]
    if nodes > 1:
        raise InputError(f"{nodes} nodes are asked for outside a Slurm job; start iocast measure inside one, write one with --slurm, or plan runs on one node.")
    cores = len(os.sched_getaffinity(0))
    if ranks > MOST_RANKS_PER_CORE * cores:
        raise InputError(
            f"{ranks} ranks are too many for mpirun on this machine's {cores} cores (at most {MOST_RANKS_PER_CORE * cores}); "
            "let a process have several with threads_per_rank in the campaign, or simulate that scale with iocast predict."
        )
    if shutil.which("mpirun") is None:
        raise RunError("The program mpirun is not installed; install Open MPI (Debian: openmpi-bin).")
    # More ranks than cores must yield while they wait, and must not be bound to a core.
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", "-n", str(ranks)]


def bench_environment() -> dict[str, str]:
    """Open MPI refuses root unless told twice; in a container root is who there is."""
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@dataclass(frozen=True)
class Backend:
    """What iocast-bench measures, as its command line says it. options: "--s3.endpoint=http://..." and the like, of this backend."""

    name: str = "posix"
    options: Sequence[str] = ()

    def __post_init__(self) -> None:
        for option in self.options:
            if not option.startswith(f"--{self.name}.") or "=" not in option:
                raise InputError(f"'{option}' is no option of the backend '{self.name}'; write it as --backend-option=--{self.name}.NAME=VALUE (iocast describe {self.name}).")

    @property
    def has_root(self) -> bool:
        """Whether it works in a directory."""
        return self.name in ("posix", "mpiio")

    def check_place(self, directory: Path | None) -> None:
        """@raises InputError for a backend that works in a directory and has none, or the other way round"""
        if self.has_root and directory is None:
            raise InputError(f"The backend '{self.name}' needs the directory to be measured; name it.")
        if not self.has_root and directory is not None:
            raise InputError(f"The backend '{self.name}' works in no directory; leave '{directory}' out.")

    def arguments(self, root: Path | None) -> list[str]:
        place = [f"--{self.name}.root", str(root)] if root is not None else []
        return ["--backend", self.name, *place, *self.options]


POSIX = Backend()


class Ending:
    """Ends a campaign before its time: on SIGTERM, on SIGUSR1 (with which Slurm announces a time limit to a job script of iocast), or when a
    deadline comes. The benchmark that runs gets SIGTERM, and keeps what it measured. Use as a context manager in the main thread."""

    WHY = {signal.SIGTERM: "SIGTERM came", signal.SIGUSR1: "the time limit of the job is near"}

    def __init__(self, deadline: float | None = None) -> None:
        self.why = ""
        self.child: subprocess.Popen[str] | None = None
        self._timer: threading.Timer | None = None
        if deadline is not None:
            self._timer = threading.Timer(max(0.0, deadline - time.time()), self.end, [self.WHY[signal.SIGUSR1]])
            self._timer.daemon = True

    def __enter__(self) -> Ending:
        self._before = {number: signal.signal(number, lambda n, frame: self.end(self.WHY[signal.Signals(n)])) for number in self.WHY}
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
    """SIGTERM to the ranks, who agree on an end among them and keep what they measured. srun and mpirun, asked themselves, kill the ranks too soon."""
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
    """Observes this machine meanwhile, into `file`, and joins that to the run directory `out` in the end."""
    from iocast.observe import Observer
    from iocast.utilisation import join

    file.unlink(missing_ok=True)
    with Observer(file, OBSERVE_EVERY, ["iocast-bench"], waits=True):
        yield
    join(out, [file])


def run_bench(
    run: PlannedRun, workload: str, backend: Backend, root: Path | None, out: Path | None, seed: int, *, goes_on: bool = False, again: bool = False, drop_caches: bool = False,
    ending: Ending | None = None,
) -> None:  # fmt: skip
    """One benchmark run in the directory `root`, which is made, and removed again if it is empty then; None for a backend that has no directory.
    `goes_on`: on the data set that an earlier run left there. `again`: this run was begun before, and may have left something. `drop_caches`: first, unless it goes on.

    @raises RunError or InputError with the benchmark's own sentence"""
    command = [*bench_command(run.nodes, run.ranks_per_node, run.threads_per_rank), "--workload", workload, *backend.arguments(root), "--seed", str(seed)]
    if root is not None and root.exists() and not goes_on:  # a killed run left it behind
        call_bench([*command, *settings_arguments({**run.settings, "phases": "cleanup"})], ending)
    elif root is None and again and not goes_on:
        with contextlib.suppress(InputError):  # nothing was left; or something that is refused again, by the run itself
            call_bench([*command, *settings_arguments(run.settings), "--sweep"], ending)
    if root is not None:
        root.mkdir(exist_ok=True)
    command += settings_arguments(run.settings)
    if drop_caches and not goes_on:
        command.append("--drop-caches=run")
    if out is not None:
        command += ["--out", str(out), "--label", run.name]
    try:
        call_bench(command, ending)
        if out is not None and (found := read_json(out / "run.json", "run")["placement"]["ranks"]) != run.ranks:
            # srun without a fitting MPI plugin starts so many programs of one rank each.
            raise RunError(f"The launcher started {found} ranks in place of {run.ranks} ({' '.join(command[:3])} ...); its MPI support does not fit the benchmark's MPI library.")
    finally:
        if root is not None and root.is_dir() and not any(root.iterdir()):
            root.rmdir()


def settings_arguments(settings: dict[str, Any]) -> list[str]:
    """As arguments; YAML's true is the programs' true."""
    return [a for name, value in settings.items() for a in ("--set", f"{name}={str(value).lower() if isinstance(value, bool) else value}")]


def call_bench(command: list[str], ending: Ending | None = None) -> None:
    if ending is not None and ending.why:
        raise Ended(ending.why)
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=bench_environment())
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
    own = [line for line in errors.splitlines() if line.startswith("iocast-bench: ") and not line.startswith("iocast-bench: warning: ")]
    message = own[0].removeprefix("iocast-bench: ") if own else f"iocast-bench failed with exit code {child.returncode}: {errors.strip()[-500:]}"
    raise (InputError if child.returncode == 2 else RunError)(message)


def make_own_directory(path: Path) -> None:
    """A directory whose children the ext file systems spread over block groups, as they do with users' homes.

    ext4 without a journal looks at every inode of a group that was deleted within the last minutes before it makes a new one there
    (Linux, fs/ext4/ialloc.c, recently_deleted), so runs that share a group slow down those after them, up to forty-fold for creates.
    Other file systems don't know the flag."""
    path.mkdir(exist_ok=True)
    get_flags, set_flags, top_directory = 0x80086601, 0x40086602, 0x00020000  # linux/fs.h
    handle = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            (flags,) = struct.unpack("l", fcntl.ioctl(handle, get_flags, struct.pack("l", 0)))
            fcntl.ioctl(handle, set_flags, struct.pack("l", flags | top_directory))
    finally:
        os.close(handle)


def _not_begun(out: Path) -> bool:
    """Whether there is no more than what comes before campaign.json: job scripts, and a pilot that was ended."""
    names = {p.name for p in out.iterdir()} if out.is_dir() else set()
    pilots = {p.name for p in (out / "runs").iterdir()} if "runs" in names else set()
    return bool(names) and names <= {"slurm", "runs"} and pilots <= {"pilot"}


class Campaign:
    """A campaign directory: campaign.json and runs/<name>/. Opening one again goes on with what is missing."""

    def __init__(
        self, root: Path | None, plan: Plan, out: Path, seed: int, *, backend: Backend = POSIX, observe: bool = False, only_nodes: int | None = None, ending: Ending | None = None
    ) -> None:
        backend.check_place(root)
        if root is None:
            pass
        elif not root.exists():
            raise InputError(f"The directory '{root}' to be measured does not exist; make it first.")
        elif not root.is_dir():
            raise InputError(f"'{root}' is not a directory; name the directory whose storage is to be measured.")
        elif not os.access(root, os.W_OK | os.X_OK):
            raise InputError(f"The directory '{root}' can't be written to.")
        for point in plan.points:
            if only_nodes in (None, point.nodes):
                launcher(point.nodes, point.ranks_per_node // point.threads_per_rank)
        self.only_nodes, self.ending = only_nodes, ending
        self.root, self.plan, self.out, self.seed, self.observe = root and root.resolve(), plan, out, seed, observe
        self.backend = backend
        self.scratch = self.root and self.root / "iocast-campaign"
        self.drops_caches = plan.drop_caches and os.access(DROP_CACHES, os.W_OK)
        place = str(self.root or "")
        asked = {} if backend == POSIX else {"backend": {"name": backend.name, "options": list(backend.options)}}
        if (out / "campaign.json").is_file():
            self.json = read_json(out / "campaign.json", "campaign")
            if self.json["plan_sha256"] != sha256(plan.file):
                raise InputError(f"The campaign in '{out}' was made from another plan than '{plan.file}'; choose another --out.")
            if self.json.get("overrides", {}) != plan.overrides:
                raise InputError(f"The campaign in '{out}' was begun with other --nodes or --set ({self.json.get('overrides', {})}); repeat them, or choose another --out.")
            if self.json["root"] != place:
                raise InputError(f"The campaign in '{out}' measures '{self.json['root']}', not '{place}'; choose another --out.")
            if self.json.get("backend") != asked.get("backend"):
                raise InputError(f"The campaign in '{out}' was begun with another --backend or --backend-option; repeat them, or choose another --out.")
            self.runs = [PlannedRun(**point) for point in self.json["points"]]
        elif out.exists() and not _not_begun(out):
            raise InputError(f"The output directory '{out}' exists already and holds no campaign; name a new one, nothing is overwritten.")
        else:
            self.json = {"schema_version": SCHEMA_VERSION, "kind": "campaign", "workload": plan.workload, "root": place} | asked
            self.json |= {"plan": str(plan.file), "plan_sha256": sha256(plan.file), "overrides": plan.overrides, "seed": seed}
            self.runs = []

    def _save(self) -> None:
        self.json["points"] = [asdict(run) for run in self.runs]
        write_json(self.out / "campaign.json", self.json)

    def prepare(self) -> None:
        """Sizes the runs by a pilot of one rank, and orders them: every repeat visits all points, in a shuffled order, so that
        scale is not confounded with the time of day."""
        if self.runs:
            return
        alone = self._sized() if any("iterations" not in {**self.plan.settings, **dict(point.settings)} for point in self.plan.points) else 0
        shuffled = random.Random(self.seed)
        for repeat in range(1, self.plan.repeats + 1):
            points = list(self.plan.points)
            shuffled.shuffle(points)
            for point in points:
                factor, repeats = point.waiting_factor, self.plan.benchmark_repeats
                given = {**self.plan.settings, **dict(point.settings)}
                sizes = {"objects": alone} if alone else {}
                if "iterations" not in given:
                    share = float(point.nodes * point.ranks_per_node if self.plan.scaling == "strong" else 1)
                    if factor > 0:
                        # A thinking rank takes at least 1 + T times as long, so it gets one phase with half of its share of the work.
                        repeats = 1
                        share *= 2 * (1 + factor)
                    sizes = dict.fromkeys(("iterations", "objects"), max(5, round(alone / share)))
                own = {**sizes, **given, "waiting_factor": factor, "repeats": repeats}
                self.runs += self._steps(point, own, f"{point.name}-r{repeat}")
        self._save()

    def _steps(self, point: PlannedPoint, settings: dict[str, Any], name: str) -> list[PlannedRun]:
        if not self.plan.steps:
            return [PlannedRun(name, point.nodes, point.ranks_per_node, settings, point.role, threads_per_rank=point.threads_per_rank)]
        return [
            PlannedRun(
                f"{name}-{step.name}", point.nodes, point.ranks_per_node, {**settings, **step.settings}, step.role or point.role, threads_per_rank=point.threads_per_rank,
                group=name, step=step.name,
            )
            for step in self.plan.steps
        ]

    def _sized(self) -> int:
        """Iterations with which a rank alone takes the seconds that are aimed at, by a pilot run."""
        datasets = int(self.plan.settings.get("datasets", 10))
        iterations, seconds = 50, 0.0
        number = 0
        while True:
            number += 1
            run = PlannedRun("pilot", 1, 1, {**self.plan.settings, "iterations": iterations, "objects": iterations}, "fit")
            out = self.out / "runs" / "pilot"
            if out.exists():
                shutil.rmtree(out)
            out.parent.mkdir(parents=True, exist_ok=True)
            run_bench(run, self.plan.workload, self.backend, self._own(f"pilot-{number}"), out, self.seed, drop_caches=self.drops_caches, ending=self.ending)
            phase = next(p for p in read_json(out / "run.json", "run")["phases"] if p["name"] == "benchmark")
            shutil.rmtree(out)
            seconds = phase["seconds"]
            if seconds > 0.05 or iterations >= 3200:
                break
            iterations *= 4
        self._leave()
        wanted = self.plan.seconds / self.plan.benchmark_repeats
        iterations = max(5, min(100_000, round(iterations * wanted / max(seconds, 1e-6))))
        self.json["pilot"] = {"rate": phase["rate"], "datasets": datasets}
        return iterations

    def _own(self, name: str) -> Path | None:
        if self.scratch is None:
            return None
        make_own_directory(self.scratch)
        return self.scratch / name

    def _leave(self) -> None:
        if self.scratch is not None and self.scratch.is_dir() and not any(self.scratch.iterdir()):
            self.scratch.rmdir()

    def missing(self, role: str | None) -> list[PlannedRun]:
        """Runs to make, in order. A group of steps is made as a whole: nobody knows what an unfinished one left in its data set."""
        wanted = {run.group for run in self.runs if run.group and run.status != "complete"}
        asked = {run.group for run in self.runs if run.group and (role is None or run.role == role)}
        return [
            run
            for run in self.runs
            if (run.group in wanted & asked if run.group else run.status != "complete" and (role is None or run.role == role))
            and self.only_nodes in (None, run.nodes)
        ]

    def measure(self, role: str | None, report: Callable[[PlannedRun, int, int], None]) -> None:
        """Makes the missing runs of this role (all when None). `report` is called before each with its number and their count."""
        todo = self.missing(role)
        for run in todo:
            run.status = "planned"
        group = ""
        for number, run in enumerate(todo, start=1):
            report(run, number, len(todo))
            out = self.out / "runs" / run.name
            again = out.exists()
            if again:  # from a killed run: kept, but out of the way
                attempts = len(list(out.parent.glob(f"{run.name}.interrupted-*")))
                out.rename(out.with_name(f"{run.name}.interrupted-{attempts + 1}"))
            goes_on, group = bool(run.group) and run.group == group, run.group
            try:
                with observed(out, self.out / "observations" / f"{run.name}.jsonl") if self.observe else contextlib.nullcontext():
                    run_bench(
                        run, self.json["workload"], self.backend, self._own(run.group or run.name), out, self.seed, goes_on=goes_on, again=again,
                        drop_caches=self.drops_caches, ending=self.ending,
                    )  # fmt: skip
                run.status = "complete"
            except Ended as error:
                run.status = "planned"
                self._save()
                left = len(self.missing(role))
                raise Ended(f"Ended because {error}; what was measured is kept, and {left} run{'s are' if left != 1 else ' is'} left. The same command goes on with them.") from error
            except (InputError, RunError):
                run.status = "failed"
                self._save()
                raise
            if "filesystem" not in self.json:
                environment = read_json(out / "run.json", "run")["environment"]
                self.json["filesystem"] = environment.get("filesystem") or environment.get("service") or {}
            self._save()
        self._leave()

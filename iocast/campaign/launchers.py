# SPDX-License-Identifier: Apache-2.0
"""The commands that start a benchmark's ranks, and how a campaign is ended before its time."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import psutil

from iocast.ground import binaries
from iocast.campaign.hosts import Hosts
from iocast.errors import InputError, RunError
from iocast.jobs.slurm import ask_steps_to_end, mpi_options

MAX_RANKS_PER_CORE = 128
"""Beyond this an oversubscribed mpirun spends minutes on starting and measures only its own scheduler."""


def bench_command(
    nodes: int, ranks_per_node: int, threads_per_rank: int = 1, settings: Mapping[str, Any] | None = None
) -> list[str]:
    """The start of a command line: iocast-bench with `nodes` x `ranks_per_node` clients, `threads_per_rank` in a
    process.

    @raises InputError when that number can't sensibly be started here"""
    threads = ["--threads-per-rank", str(threads_per_rank)] if threads_per_rank > 1 else []
    return [*launcher(nodes, ranks_per_node // threads_per_rank, settings), binaries.find("iocast-bench"), *threads]


def launcher(nodes: int, ranks_per_node: int, settings: Mapping[str, Any] | None = None) -> list[str]:
    """The command that starts `nodes` x `ranks_per_node` ranks: srun inside a Slurm job, else mpirun, on the hosts of a
    host file where there is one. Ranks lie as the workload's setting `placement` says: in blocks, or cyclically.

    @raises InputError when that number can't sensibly be started here"""
    ranks = nodes * ranks_per_node
    cyclic = (settings or {}).get("placement") == "cyclic"
    if "SLURM_JOB_ID" in os.environ:
        have = int(os.environ.get("SLURM_JOB_NUM_NODES", os.environ.get("SLURM_NNODES", "1")))
        if nodes > have:
            raise InputError(f"The campaign needs {nodes} nodes, but this Slurm job has {have}.")
        return [
            "srun",
            *mpi_options(),
            f"--nodes={nodes}",
            f"--ntasks={ranks}",
            f"--ntasks-per-node={ranks_per_node}",
            "--overcommit",
            *(["--distribution=cyclic"] if cyclic else []),
        ]
    if (hosts := Hosts.find()) is not None:
        _require_mpirun()
        return ["mpirun", *mpirun_options(), *_on(hosts.first(nodes), ranks_per_node, cyclic), "-n", str(ranks)]
    if nodes > 1:
        raise InputError(
            f"The campaign needs {nodes} nodes; name them with --hosts FILE, start iocast measure inside a Slurm job, "
            "write one with --slurm, or plan runs on one node."
        )
    cores = len(os.sched_getaffinity(0))
    if ranks > MAX_RANKS_PER_CORE * cores:
        raise InputError(
            f"{ranks} ranks are too many for mpirun on this machine's {cores} cores (at most "
            f"{MAX_RANKS_PER_CORE * cores}); let a process have several with threads_per_rank in the campaign, or "
            "simulate that scale with iocast predict."
        )
    _require_mpirun()
    return ["mpirun", *mpirun_options(), "-n", str(ranks)]


def _require_mpirun() -> None:
    if shutil.which("mpirun") is None:
        raise RunError("The program mpirun is not installed; install Open MPI (Debian: openmpi-bin).")


def mpirun_options() -> list[str]:
    """What Open MPI needs for more ranks than cores: they must yield while they wait, and must not be bound to a core.
    Those of others (MPICH, Intel MPI) refuse these options and allow it without any."""
    return ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"] if _is_open_mpi() else []


def _on(names: Sequence[str], ranks_per_node: int, cyclic: bool) -> list[str]:
    """These ranks on each of the hosts, the first ones on the first host or one a host by turns."""
    if _is_open_mpi():
        slots = ",".join(f"{name}:{ranks_per_node}" for name in names)
        return ["--host", slots, "--map-by", "node" if cyclic else f"ppr:{ranks_per_node}:node"]
    return ["-hosts", ",".join(names), "-ppn", "1" if cyclic else str(ranks_per_node)]


HANDED_ON = ("IOCAST_", "AWS_", "PG", "MONGODB_")
"""Beginnings of the names of variables that iocast-bench and its backends read."""


def on_other_hosts(command: list[str], environment: Mapping[str, str]) -> list[str]:
    """The command of a launcher; where mpirun starts ranks on other hosts, it hands variables on. MPICH's hands on all
    by itself."""
    if command[0] != "mpirun" or Hosts.find() is None or not _is_open_mpi():
        return command
    names = [name for name in environment if name.startswith(HANDED_ON)]
    return [command[0], *(option for name in names for option in ("-x", name)), *command[1:]]


def _is_open_mpi() -> bool:
    done = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, env=bench_environment(), check=False)
    return "Open MPI" in done.stdout


def bench_environment() -> dict[str, str]:
    """Open MPI refuses root unless two variables are set; in a container root is the only user."""
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


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

# SPDX-License-Identifier: Apache-2.0
"""Who computes for studies, calibrations and forecasts: this process, a Dask cluster on this machine, one that runs already, or one inside Slurm.

What computes a task is a pure function of it, so it makes no difference who does, in which order, or how often: a lost worker costs the
task that it had.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from iocast.errors import InputError, RunError
from iocast.slurm import require_taken

Task = TypeVar("Task")
Result = TypeVar("Result")
START_PATIENCE = 300  # seconds until the first worker must be there; a queue may be long


class Workers:
    """Use as a context manager. Nothing is started before there is something to compute."""

    def __init__(
        self, count: int = 0, scheduler: str = "", slurm: bool = False, slurm_options: tuple[str, ...] = (), logs: Path | None = None,
        always_dask: bool = False,
    ) -> None:  # fmt: skip
        """`logs`: directory for what workers inside Slurm write; left out: the present one."""
        if scheduler and slurm:
            raise InputError("Workers come from a scheduler that runs already, or from Slurm, not from both; give --scheduler or --slurm.")
        self.count = count or len(os.sched_getaffinity(0))
        self._here = self.count == 1 and not scheduler and not slurm and not always_dask
        self._scheduler, self._slurm, self._options, self._logs = scheduler, slurm, slurm_options, logs
        self._cluster: Any = None
        self._client: Any = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for one in (self._client, self._cluster):
            if one is not None:
                one.close()

    def map(self, compute: Callable[[Task], Result], tasks: list[Task]) -> Iterator[tuple[int, Result]]:
        """compute(task) of each with the task's number, as they come. Other processes must be able to import `compute`.

        @raises InputError, RunError of the first task that fails; the others are dropped"""
        if not tasks:
            return
        if self._here:
            for number, task in enumerate(tasks):
                yield number, compute(task)
            return
        yield from self._on_dask(compute, tasks)

    def _on_dask(self, compute: Callable[[Task], Result], tasks: list[Task]) -> Iterator[tuple[int, Result]]:
        client = self._start()
        from distributed import KilledWorker, as_completed

        futures = {client.submit(compute, task, pure=False): number for number, task in enumerate(tasks)}
        try:
            for future, result in as_completed(futures, with_results=True):
                yield futures[future], result
                future.release()
        except KilledWorker as error:
            raise RunError(f"A task ended {error.allowed_failures + 1} workers one after another; their logs say why, memory is the usual reason.") from error
        finally:
            client.cancel([f for f in futures if not f.done()])

    def _start(self) -> Any:
        if self._client is not None:
            return self._client
        import dask
        from distributed import Client, LocalCluster

        # Restarted workers announce themselves on standard error; the answer is what counts.
        # Nobody looks at Dask's own profiles of the workers, which cost time.
        dask.config.set(
            {"distributed.logging.distributed": "error", "distributed.worker.daemon": True, "distributed.worker.profile.enabled": False, "distributed.admin.system-monitor.gil.enabled": False}
        )  # fmt: skip
        if self._scheduler:
            try:
                self._client = Client(self._scheduler, timeout=30)
            except (OSError, TimeoutError, ValueError) as error:
                raise InputError(f"There is no Dask scheduler at '{self._scheduler}': {error}.") from error
        elif self._slurm:
            self._cluster = self._slurm_cluster()
            self._client = Client(self._cluster)
        else:
            self._cluster = LocalCluster(n_workers=self.count, threads_per_worker=1, dashboard_address=None, silence_logs=50)
            self._client = Client(self._cluster)
        try:
            self._client.wait_for_workers(1, timeout=START_PATIENCE)
        except TimeoutError as error:
            raise RunError(f"No worker came up in {START_PATIENCE} s; look at the queue and at the workers' logs.") from error
        return self._client

    def _slurm_cluster(self) -> Any:
        from dask_jobqueue import SLURMCluster

        root = Path(__file__).resolve().parents[1]
        prologue = [f"export PYTHONPATH={root}${{PYTHONPATH:+:$PYTHONPATH}}"]
        if "IOCAST_BUILD" in os.environ:
            prologue.append(f"export IOCAST_BUILD={Path(os.environ['IOCAST_BUILD']).resolve()}")
        try:
            cluster = SLURMCluster(
                cores=1, processes=1, memory="2GB", walltime="04:00:00", python=sys.executable, job_script_prologue=prologue,
                job_extra_directives=list(self._options), scheduler_options={"dashboard_address": None},
                log_directory=None if self._logs is None else str(self._logs.resolve()),
            )  # fmt: skip
        except (OSError, RuntimeError) as error:
            raise RunError(f"Slurm takes no jobs from here: {error}") from error
        # dask-jobqueue would log a refusal where nobody looks, and wait for workers that never come.
        require_taken(cluster.job_script())
        cluster.scale(jobs=self.count)
        return cluster

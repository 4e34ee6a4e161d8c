# SPDX-License-Identifier: Apache-2.0
"""Who computes for studies, calibrations and forecasts: this process, processes of this machine, or Dask workers
elsewhere (iocast/jobs/cluster.py).

A task is a pure function of its input. The answer depends neither on who computes, nor on the order, nor on
repetitions: a lost worker costs the task that it had. On one machine nothing listens: the processes speak through
pipes.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, TypeVar

from iocast.errors import InputError, RunError
from iocast.ground.processes import end_with_parent

Task = TypeVar("Task")
Result = TypeVar("Result")
MAX_LOSSES = 3
"""Times in a row that workers may die before any of them finishes a task."""


class Workers:
    """Use as a context manager. Nothing is started before there is something to compute."""

    def __init__(
        self,
        count: int = 0,
        scheduler: str = "",
        slurm: bool = False,
        slurm_options: tuple[str, ...] = (),
        logs: Path | None = None,
        *,
        secret: Path | None = None,
        interface: str = "",
        apart: bool = False,
    ) -> None:
        """`scheduler`: address of a Dask scheduler, with the file of its `secret`. `logs`: directory for what workers
        inside Slurm write; left out: the present one. `interface`: network interface of the scheduler that is started
        for them. `apart`: another process even when `count` is 1."""
        if scheduler and slurm:
            raise InputError(
                "Workers come from a scheduler that runs already, or from Slurm, not from both; give --scheduler or "
                "--slurm."
            )
        if secret is not None and not scheduler:
            raise InputError("--scheduler-secret belongs to --scheduler; name its address, or leave the secret out.")
        if interface and not slurm:
            raise InputError(
                "--interface is where the scheduler of --slurm listens; without --slurm nothing listens, leave it out."
            )
        self.count = count or len(os.sched_getaffinity(0))
        self._elsewhere = bool(scheduler or slurm)
        self._here = self.count == 1 and not self._elsewhere and not apart
        self._named = (scheduler, secret, self.count, slurm_options, logs, interface)
        self._cluster: Any = None
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._cluster is not None:
            self._cluster.close()
        if self._pool is not None:
            self._end_pool(at_once=kind is not None)

    def map(self, compute: Callable[[Task], Result], tasks: list[Task]) -> Iterator[tuple[int, Result]]:
        """compute(task) of each with the task's number, as they come. Other processes must be able to import `compute`.

        @raises InputError, RunError of the first task that fails; the others are dropped"""
        if not tasks:
            return
        if self._here:
            for number, task in enumerate(tasks):
                yield number, compute(task)
        elif self._elsewhere:
            if self._cluster is None:
                from iocast.jobs.cluster import Cluster

                self._cluster = Cluster(*self._named)
            yield from self._cluster.map(compute, tasks)
        else:
            yield from self._in_processes(compute, tasks)

    def _in_processes(self, compute: Callable[[Task], Result], tasks: list[Task]) -> Iterator[tuple[int, Result]]:
        left, losses = dict(enumerate(tasks)), 0
        while left:
            futures: dict[Future[Result], int] = {}
            lost = False
            before = len(left)
            try:
                try:
                    futures |= {self._started().submit(compute, task): number for number, task in left.items()}
                except BrokenProcessPool:  # a worker died while the first tasks were on their way
                    lost = True
                for future in as_completed(futures):
                    try:
                        result = future.result()
                    except BrokenProcessPool:
                        lost = True
                        continue
                    number = futures.pop(future)
                    del left[number]
                    yield number, result
            finally:
                for future in futures:
                    future.cancel()
            if lost:
                self._end_pool(at_once=True)
                losses = losses + 1 if len(left) == before else 0
                if losses == MAX_LOSSES:
                    raise RunError(
                        f"Worker processes died {losses} times without finishing one of {len(left)} tasks. Memory is "
                        "the usual reason (look for 'Out of memory' in dmesg); use fewer with --workers."
                    )

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # A fresh interpreter for each: what threads of this process hold is not inherited.
            self._pool = ProcessPoolExecutor(self.count, multiprocessing.get_context("spawn"), _begin, (os.getpid(),))
        return self._pool

    def _end_pool(self, *, at_once: bool) -> None:
        assert self._pool is not None
        processes = list((getattr(self._pool, "_processes", None) or {}).values())
        self._pool.shutdown(wait=not at_once, cancel_futures=True)
        if at_once:
            for process in processes:
                process.terminate()
            for process in processes:
                process.join()
        self._pool = None


def _begin(parent: int) -> None:
    """In each worker. An interrupt from the terminal is its parent's matter, who ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(signal.SIGTERM, parent)

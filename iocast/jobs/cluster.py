# SPDX-License-Identifier: Apache-2.0
"""Dask: a scheduler that runs already, or one whose workers are jobs of Slurm. Every connection is encrypted and needs
the run's own secret, since whoever may speak to a scheduler may run programs as its user."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from shlex import quote
from types import SimpleNamespace
from typing import Any

import dask
from dask_jobqueue.slurm import SLURMCluster, SLURMJob
from distributed import Client, KilledWorker, Scheduler, Worker, as_completed
from distributed.security import Security
from distributed.utils import get_ip

from iocast.errors import InputError, RunError
from iocast.ground.scratch import scratch_directory
from iocast.jobs.slurm import require_taken, sbatch_quoted

START_PATIENCE = 300
"""Seconds until the first worker must be there; a queue may be long."""


class SilentScheduler(Scheduler):
    """A scheduler without HTTP."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        pass


class SilentWorker(Worker):
    """A worker without HTTP."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        pass


class Cluster:
    """The workers of a scheduler. Close it."""

    def __init__(
        self,
        scheduler: str,
        secret: Path | None,
        count: int,
        options: tuple[str, ...],
        logs: Path | None,
        interface: str,
    ) -> None:
        """`scheduler`: its address; empty for workers inside Slurm, of which `count` are started with `options` of
        sbatch.

        @raises InputError, RunError when no worker comes"""
        # Restarted workers announce themselves on standard error; the answer is what counts.
        # Nobody looks at Dask's own profiles of the workers, which cost time.
        dask.config.set(
            {
                "distributed.logging.distributed": "error",
                "distributed.worker.daemon": True,
                "distributed.worker.profile.enabled": False,
                "distributed.admin.system-monitor.gil.enabled": False,
            }
        )
        self._cluster: Any = None
        self._opened = ExitStack()
        if scheduler:
            self._client = _client_of(scheduler, secret)
        else:
            folder = (Path.cwd() if logs is None else logs).resolve()
            folder.mkdir(parents=True, exist_ok=True)
            try:
                # The workers' hosts must see it, which they need not do with this one's directory for temporary files.
                secrets = self._opened.enter_context(scratch_directory("secrets", folder))
                self._cluster = _slurm_cluster(count, options, folder, secrets, interface)
            except BaseException:
                self._opened.close()
                raise
            self._client = Client(self._cluster, security=self._cluster.security)
        try:
            self._client.wait_for_workers(1, timeout=START_PATIENCE)
        except TimeoutError as error:
            self.close()
            raise RunError(
                f"No worker came up in {START_PATIENCE} s; look at the queue and at the workers' logs."
            ) from error

    def close(self) -> None:
        for one in (self._client, self._cluster):
            if one is not None:
                one.close()
        self._opened.close()

    def map(self, compute: Callable[[Any], Any], tasks: list[Any]) -> Iterator[tuple[int, Any]]:
        """Workers.map()."""
        futures = {self._client.submit(compute, task, pure=False): number for number, task in enumerate(tasks)}
        try:
            for future, result in as_completed(futures, with_results=True):
                yield futures[future], result
                future.release()
        except KilledWorker as error:
            raise RunError(
                f"A task ended {error.allowed_failures + 1} workers one after another; their logs say why, memory is "
                "the usual reason."
            ) from error
        finally:
            self._client.cancel([f for f in futures if not f.done()])


def _client_of(scheduler: str, secret: Path | None) -> Client:
    if not scheduler.startswith("tls://"):
        raise InputError(
            f"The scheduler at '{scheduler}' would run programs as you for anybody who reaches it; start it with a "
            "secret and name it tls://HOST:PORT (docs/study-cluster.md, 'Compute where there are cores')."
        )
    if secret is None:
        raise InputError(
            f"The scheduler at '{scheduler}' asks for its secret; name the file with --scheduler-secret "
            "(docs/study-cluster.md, 'Compute where there are cores')."
        )
    if not secret.is_file():
        raise InputError(f"There is no file '{secret}' with the scheduler's secret.")
    if secret.stat().st_mode & 0o077:
        raise InputError(
            f"The file '{secret}' with the scheduler's secret can be read by others; run chmod 600 '{secret}', or make "
            "a new one if somebody has read it."
        )
    one = str(secret)
    try:
        return Client(
            scheduler,
            timeout=30,
            security=Security(tls_ca_file=one, tls_client_cert=one, tls_client_key=one, require_encryption=True),
        )
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"There is no Dask scheduler at '{scheduler}' that knows the secret in '{secret}': {error}."
        ) from error


class QuotedJob(SLURMJob):
    """A job of workers, in whose script the names of the secrets' files are quoted."""

    def __init__(self, *arguments: Any, security: Security, **options: Any) -> None:
        files = {key: quote(file) for key, file in security.get_tls_config_for_role("worker").items()}
        quoted = SimpleNamespace(get_tls_config_for_role=lambda role: files)
        super().__init__(*arguments, security=quoted, **options)  # type: ignore[no-untyped-call]


class QuotedCluster(SLURMCluster):
    job_cls: Any = QuotedJob


def _new_security(secrets: Path) -> Security:
    """A new key and certificate for every connection, as files in `secrets`.

    Were they texts, dask-jobqueue would write files of its own, which it removes later than iocast their directory."""
    made = Security.temporary()
    files = {}
    for name, text in (("key", made.tls_worker_key), ("cert", made.tls_worker_cert)):
        path = secrets / f"{name}.pem"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(text)
        files[name] = str(path)
    roles = {f"tls_{role}_{name}": file for role in ("client", "scheduler", "worker") for name, file in files.items()}
    return Security(require_encryption=True, tls_ca_file=files["cert"], **roles)


def _slurm_cluster(count: int, options: tuple[str, ...], logs: Path, secrets: Path, interface: str) -> Any:
    """A scheduler in this process and jobs of one worker each. It listens at one address: that of `interface`, or else
    the one by which this host is reached.

    `secrets`: directory for the key and the certificates of the connections; nobody else can read it."""
    root = Path(__file__).resolve().parents[2]
    log = f"{sbatch_quoted(logs)}/dask-worker-%J"
    prologue = [f"export PYTHONPATH={quote(str(root))}${{PYTHONPATH:+:$PYTHONPATH}}"]
    if "IOCAST_BUILD" in os.environ:
        prologue.append(f"export IOCAST_BUILD={quote(str(Path(os.environ['IOCAST_BUILD']).resolve()))}")
    try:
        cluster: Any = QuotedCluster(
            cores=1,
            processes=1,
            memory="2GB",
            walltime="04:00:00",
            python=quote(sys.executable),
            job_script_prologue=prologue,
            # Its own lines for logs have no quotes.
            job_directives_skip=["#SBATCH -e ", "#SBATCH -o "],
            job_extra_directives=[f'--error="{log}.err"', f'--output="{log}.out"', *options],
            scheduler_cls=SilentScheduler,
            log_directory=str(logs),
            protocol="tls://",
            security=_new_security(secrets),
            shared_temp_directory=str(secrets),
            interface=interface or None,
            scheduler_options={"interface": interface} if interface else {"host": get_ip()},
            worker_extra_args=["--worker-class", "iocast.jobs.cluster.SilentWorker", "--no-dashboard"],
        )
    except ValueError as error:  # of the interface
        raise InputError(
            f"The workers can't be reached through the interface '{interface}': {' '.join(str(error).split())}."
        ) from error
    except (OSError, RuntimeError) as error:
        raise RunError(f"Slurm takes no jobs from here: {error}") from error
    # dask-jobqueue would log a refusal where nobody looks, and wait for workers that never come.
    require_taken(cluster.job_script())
    cluster.scale(jobs=count)
    return cluster

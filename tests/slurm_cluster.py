# SPDX-License-Identifier: Apache-2.0
"""A Slurm of one machine for tests: munged, slurmctld and slurmd as children of the test, with their files in a
directory of their own."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import closing
from pathlib import Path
from types import TracebackType

PROGRAMS = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}
PARTITION = "tests"


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cluster:
    """Use as a context manager. `environment` makes the client programs speak to it."""

    def __init__(self) -> None:
        absent = [
            package
            for program, package in PROGRAMS.items()
            if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin") is None
        ]
        assert not absent, f"install the Debian packages {', '.join(absent)}; ./check does"
        # Socket names have no room for a test's long directory.
        self.directory = Path(tempfile.mkdtemp(prefix="slurm-"))
        self.environment = {
            **os.environ,
            "SLURM_CONF": str(self.directory / "slurm.conf"),
            "PATH": os.environ["PATH"] + ":/usr/sbin",
        }
        # A test that itself runs in a job must not speak of that one.
        for name in [n for n in self.environment if n.startswith(("SLURM_", "SBATCH_")) and n != "SLURM_CONF"]:
            del self.environment[name]
        self._children: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Cluster:
        try:
            self._configure()
            self._start(
                "munged",
                "--foreground",
                "--force",
                f"--key-file={self.directory}/key",
                f"--socket={self.directory}/munge.socket",
                f"--pid-file={self.directory}/munge.pid",
                f"--log-file={self.directory}/munge.log",
                f"--seed-file={self.directory}/munge.seed",
            )
            self._wait(lambda: (self.directory / "munge.socket").exists(), "munged")
            self._start("slurmctld", "-D", "-i")
            self._start("slurmd", "-D")
            self._wait(lambda: "idle" in self.client("sinfo", "-h", "-o", "%T"), "slurmctld and slurmd")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._children[1:]:
            self.client("scancel", "--full", "--signal=KILL", f"--partition={PARTITION}", check=False)
            until = time.monotonic() + 120
            while self.client("squeue", "-h", check=False) and time.monotonic() < until:
                time.sleep(0.1)
        for child in reversed(self._children):
            child.terminate()
        for child in reversed(self._children):
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def changed(self) -> dict[str, str]:
        """What is other in `environment` than here, PATH apart."""
        return {
            name: value for name, value in self.environment.items() if os.environ.get(name) != value and name != "PATH"
        }

    def client(self, *command: str, check: bool = True) -> str:
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, timeout=120)
        return done.stdout if done.returncode == 0 or not check else ""

    def wait_for_jobs(self, seconds: float = 120) -> None:
        """Until none is queued or runs."""
        until = time.monotonic() + seconds
        while self.client("squeue", "-h"):
            assert time.monotonic() < until, self.client("squeue") + self.logs()
            time.sleep(0.1)

    def logs(self) -> str:
        return "\n".join(
            f"== {p.name}\n{p.read_text(errors='replace')[-2000:]}" for p in sorted(self.directory.glob("*.log"))
        )

    def _configure(self) -> None:
        self.directory.chmod(0o711)  # munge refuses a socket in a directory that others can't enter
        (self.directory / "key").write_bytes(secrets.token_bytes(128))
        (self.directory / "key").chmod(0o400)
        for name in ("state", "spool"):
            (self.directory / name).mkdir()
        host, (controller, node) = socket.gethostname().partition(".")[0], _free_ports(2)
        cores = os.cpu_count() or 1
        (self.directory / "slurm.conf").write_text(
            f"""ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={self.directory}/munge.socket
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={self.directory}/state
SlurmdSpoolDir={self.directory}/spool
SlurmctldPidFile={self.directory}/slurmctld.pid
SlurmdPidFile={self.directory}/slurmd.pid
SlurmctldLogFile={self.directory}/slurmctld.log
SlurmdLogFile={self.directory}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SchedulerParameters=sched_min_interval=100000,batch_sched_delay=0
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory=8000 State=UNKNOWN
PartitionName={PARTITION} Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""
        )

    def _start(self, *command: str) -> None:
        with closing((self.directory / f"{command[0]}-output.log").open("wb")) as log:
            self._children.append(subprocess.Popen(command, env=self.environment, stdout=log, stderr=log))

    def _wait(self, ready: object, what: str) -> None:
        until = time.monotonic() + 120
        while not ready():  # type: ignore[operator]
            assert time.monotonic() < until and all(c.poll() is None for c in self._children), (
                f"{what} did not start:\n{self.logs()}"
            )
            time.sleep(0.05)

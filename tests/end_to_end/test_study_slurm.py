# SPDX-License-Identifier: Apache-2.0
"""A study whose workers are jobs of a real Slurm, of one node, which this test starts."""

import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import REPOSITORY, find_program

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
import study_inputs  # noqa: E402

PATIENCE = 60
SBIN = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])


def free_ports(count: int) -> list[int]:
    taken = [socket.socket() for _ in range(count)]
    for one in taken:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which sbatch finds the scheduler."""
    for program in ("munged", "slurmctld", "slurmd", "sbatch"):
        assert shutil.which(program, path=SBIN), f"{program} is missing; run ./check"
    directory = tmp_path_factory.mktemp("slurm")
    directory.chmod(0o755)
    for name in ("munge", "state", "spool"):
        (directory / name).mkdir()
    (directory / "munge").chmod(0o711)
    (directory / "munge" / "key").write_bytes(os.urandom(1024))
    (directory / "munge" / "key").chmod(0o400)
    host, user, ports = socket.gethostname().partition(".")[0], getpass.getuser(), free_ports(2)
    socket_file = directory / "munge" / "socket"
    (directory / "slurm.conf").write_text(
        f"""ClusterName=test
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={socket_file}
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} RealMemory=8000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES State=UP OverSubscribe=FORCE:8
"""
    )
    environment = {**os.environ, "PATH": SBIN, "SLURM_CONF": str(directory / "slurm.conf")}
    munge = [f"--{what}={directory}/munge/{what.partition('-')[0]}" for what in ("key-file", "pid-file", "log-file", "seed-file", "socket")]
    daemons = [["munged", "--foreground", "--force", *munge], ["slurmctld", "-D"], ["slurmd", "-D"]]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    started = [subprocess.Popen(command, **quiet) for command in daemons]
    try:
        until = time.monotonic() + PATIENCE
        while "idle" not in subprocess.run(["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True, text=True, check=False).stdout:
            assert time.monotonic() < until, "Slurm did not come up"
            time.sleep(0.2)
        yield environment
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def test_jobs_of_slurm_give_the_answer_of_one_process(slurm: dict[str, str], tmp_path: Path) -> None:
    simulator = find_program("iocast-sim")
    assert simulator is not None, "iocast-sim is not built; run ./check"
    servers = {name: study_inputs.SMALL["axes"]["servers"][name] for name in ("one", "two")}
    file = study_inputs.write(tmp_path, study_inputs.changed(axes={"servers": servers}))
    environment = {**slurm, "PYTHONPATH": str(REPOSITORY), "IOCAST_BUILD": str(simulator.parents[1])}

    def answer(out: str, *options: str) -> dict[str, object]:
        command = [sys.executable, "-c", "from iocast.cli import main; main()", "study", str(file), "--out", str(tmp_path / out), "--json", *options]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        told = json.loads(done.stdout)
        return {k: v for k, v in told.items() if k != "command"}

    before = set(tmp_path.iterdir())
    by_jobs = answer("jobs", "--slurm", "--workers", "2", "--slurm-option=--partition=all")
    assert set(tmp_path.iterdir()) - before == {tmp_path / "jobs"}, "nothing is written elsewhere"
    assert list((tmp_path / "jobs" / "workers").iterdir()), "no job ran"
    assert json.dumps(by_jobs) == json.dumps(answer("alone", "--workers", "1"))
    left = subprocess.run(["squeue", "-h"], env=slurm, capture_output=True, text=True, check=True).stdout
    assert not left.strip() or "CG" in left, left

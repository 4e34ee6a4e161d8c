# SPDX-License-Identifier: Apache-2.0
"""Worker processes: nothing listens on one machine, nobody else is served by a cluster's scheduler, and a lost worker
costs its task."""

import gc
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from programs import REPOSITORY

from iocast.errors import InputError, RunError
from iocast.jobs.workers import Workers

ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{REPOSITORY}:{Path(__file__).parent}:{Path(__file__).parents[1]}"}


def own_id(pause: float) -> int:
    time.sleep(pause)
    return os.getpid()


def die_once(flag: str) -> str:
    if flag and not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return flag


def die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def sockets(*, listening: bool) -> list[Any]:
    """Of this process and its children."""
    own = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return [c for one in own for c in one.net_connections("inet") if c.status == psutil.CONN_LISTEN or not listening]


def test_workers_of_this_machine_open_no_port() -> None:
    before = len(sockets(listening=False))
    with Workers(2) as workers:
        found = dict(workers.map(own_id, [0.2] * 4))
        assert set(found) == {0, 1, 2, 3} and os.getpid() not in found.values()
        assert len(psutil.Process().children()) >= 2 and len(sockets(listening=False)) == before


def test_a_lost_worker_costs_only_its_task(tmp_path: Path) -> None:
    flag = str(tmp_path / "died")
    with Workers(2) as workers:
        assert dict(workers.map(die_once, ["", flag, "", ""])) == {0: "", 1: flag, 2: "", 3: ""}
        with pytest.raises(RunError, match="died 3 times .* --workers"):
            list(workers.map(die, [1]))
        assert dict(workers.map(len, [[1]])) == {0: 1}, "the pool is of no use afterwards"


WAITING = (
    "from iocast.jobs.workers import Workers\nfrom iocast.ground.progress import Steps, keep_interrupts\n"
    "from test_workers import own_id\nkeep_interrupts()\n"
    "with Steps() as steps, Workers(2) as workers:\n    for _, found in workers.map(own_id,"
    " [0, 0.1, 3600, 3600]):\n        print(found, flush=True)\n"
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_who_started_them(number: signal.Signals) -> None:
    """The interrupt comes to the whole group of processes, as from a terminal."""
    script = subprocess.Popen(
        [sys.executable, "-c", WAITING],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert script.stdout is not None and script.stdout.readline()
    workers = psutil.Process(script.pid).children(recursive=True)
    os.killpg(script.pid, number) if number == signal.SIGINT else script.kill()
    _, printed = script.communicate(timeout=120)
    gone, alive = psutil.wait_procs(workers, timeout=120)
    assert len(gone) >= 2 and not alive
    assert number == signal.SIGKILL or (
        "Process" not in printed and printed.strip().endswith("Interrupted; what was measured or computed is kept.")
    ), printed


CONNECT = """
import os, sys
from distributed import Client
from distributed.security import Security
if os.geteuid() == 0:  # once all is read: others may have no way to where this is installed
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
try:
    client = Client(sys.argv[1], timeout=5, security=Security.temporary() if sys.argv[1].startswith("tls") else None)
    print("ran as", client.run_on_scheduler(lambda: __import__("os").getuid()))
except Exception as error:
    print("refused:", type(error).__name__)
"""


def test_nobody_else_is_served_by_the_scheduler_of_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler as for Slurm, without Slurm: another user speaks to it, plainly and with a secret of its own."""
    from distributed import Client

    from iocast.jobs import cluster

    (tmp_path / "sbatch").write_text("#!/bin/sh\necho Submitted batch job 1\n")
    (tmp_path / "scancel").write_text("#!/bin/sh\n")
    for program in ("sbatch", "scancel"):
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    before = {c.laddr for c in sockets(listening=True)}  # sockets that earlier tests left open
    logs, secrets = tmp_path / "a folder", tmp_path / "secrets"
    for made in (logs, secrets):
        made.mkdir()
    monkeypatch.chdir(logs)
    running = cluster._slurm_cluster(0, (), logs, secrets, "lo")
    try:
        addresses = {c.laddr for c in sockets(listening=True)} - before
        assert len(addresses) == 1 and {a.ip for a in addresses} == {"127.0.0.1"}, "one address, and no HTTP"
        address = running.scheduler_address
        assert address.startswith("tls://127.0.0.1:")
        for named in (address, address.replace("tls", "tcp")):
            done = subprocess.run(
                [sys.executable, "-c", CONNECT, named],
                env={**ENVIRONMENT, "HOME": "/nonexistent"},
                cwd="/",
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert "refused:" in done.stdout and "ran as" not in done.stdout, done.stdout + done.stderr
        with Client(running, security=running.security) as own:
            assert own.run_on_scheduler(os.getpid) == os.getpid()
        script = running.job_script()
        assert "--tls-key" in script and "SilentWorker" in script
        keys = list(secrets.iterdir())
        assert len(keys) == 2 and all(p.stat().st_mode & 0o077 == 0 and str(p) in script for p in keys)
        assert not list(logs.iterdir()), "no secret beside the logs, or where the user is"
    finally:
        running.close()
    shutil.rmtree(secrets)
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    del own, running
    gc.collect()
    assert not complaints, "the secrets are removed once, and quietly"


def test_no_name_gets_out_of_the_script_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory of logs and secrets, and that of Python, with quotes, blanks, patterns of sbatch and commands in
    their names: run, the script starts what it names and nothing else."""
    from iocast.jobs import cluster

    (programs := tmp_path / "p $(touch PWNED) ';touch PWNED;").mkdir()
    speaking = programs / "speak"
    speaking.write_text('#!/bin/sh\nprintf "%s\\0" "$@"\n')
    (programs / "sbatch").write_text("#!/bin/sh\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(sys, "executable", str(speaking))
    (secrets := tmp_path / "o $(touch PWNED) ;touch PWNED;'touch PWNED' \"%x").mkdir()
    monkeypatch.chdir(tmp_path)
    running = cluster._slurm_cluster(0, ("--account=me",), secrets, secrets, "lo")
    try:
        script = running.job_script()
    finally:
        running.close()
    directives = [line for line in script.splitlines() if line.startswith("#SBATCH")]
    assert "#SBATCH --account=me" in directives
    quoted = str(secrets).replace('"', '\\"').replace("%", "%%")
    for named in ("error", "output"):
        assert any(line.startswith(f'#SBATCH --{named}="{quoted}/') and line.endswith('"') for line in directives)
    assert not any(line.startswith(("#SBATCH -e", "#SBATCH -o")) for line in directives)
    words = subprocess.run(["bash"], input=script, capture_output=True, text=True, check=True).stdout.split("\0")
    assert {str(file) for file in secrets.iterdir()} <= set(words) and not list(tmp_path.rglob("PWNED*"))
    with pytest.raises(InputError, match="choose another --out"):
        cluster._slurm_cluster(0, (), tmp_path / "a\nb", secrets, "lo")


def test_a_scheduler_without_a_secret_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open.pem").touch()
    for named, secret, words in (
        ("tcp://127.0.0.1:1", None, "anybody who reaches it"), ("tls://127.0.0.1:1", None, "--scheduler-secret"),
        ("tls://127.0.0.1:1", tmp_path / "none", "There is no file"),
        ("tls://127.0.0.1:1", tmp_path / "open.pem", "chmod 600"),
    ):  # fmt: skip
        with Workers(scheduler=named, secret=secret) as workers, pytest.raises(InputError, match=words):
            list(workers.map(len, [[1]]))
    with pytest.raises(InputError, match="without --slurm nothing listens"):
        Workers(interface="lo")
    with pytest.raises(InputError, match="belongs to --scheduler"):
        Workers(secret=tmp_path / "open.pem")

# SPDX-License-Identifier: Apache-2.0
"""A root on NFS: what its clients keep, hide and wait for; and the backend nfs where its server isn't as it should be.
(test_contract.py has what any backend must do.)"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent import futures
from pathlib import Path

import pytest
from bench_runs import Done, expect_refusal, wait_for
from programs import REPOSITORY
from servers import NfsExport, NfsMount, free_port, mounts_below, sweep_mounts

from iocast.ground import claim
from iocast.ground.claim import Claim
from iocast.errors import InputError

pytestmark = pytest.mark.places(lambda kind: kind is NfsMount)

SMALL = ["--set", "datasets=2", "--set", "objects=20", "--set", "iterations=20"]
Run = Callable[..., Done]


@pytest.fixture
def run(bench: Path, mpirun: Callable[[int], list[str]], mpi_environment: dict[str, str], place: NfsMount) -> Run:
    def run_it(*arguments: str, ranks: int = 4, roots: str = "") -> Done:
        roots = roots or ",".join(map(str, place.nodes))
        done = subprocess.run(
            [*mpirun(ranks), str(bench), "--posix.root", roots, *arguments],
            capture_output=True,
            text=True,
            env=mpi_environment,
            timeout=100,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run_it


def test_two_nodes_see_each_others_files(run: Run, place: NfsMount) -> None:
    """Each rank reads and removes what was made through the other mount, which keeps names and attributes for a
    second."""
    done = run(*SMALL, "--set", "datasets=1", "--set", "repeats=3", "--verify", "--json")
    assert done.code == 0, done.err
    assert [phase["errors"] for phase in done.json["phases"]] == [0] * 5
    assert list(place.export.iterdir()) == []


def test_what_somebody_has_open_stays_for_a_while(run: Run, place: NfsMount) -> None:
    assert run(*SMALL, "--set", "phases=precreate").code == 0
    with (place.nodes[0] / "0_1" / "file-3").open("rb"):
        done = run(*SMALL, "--set", "phases=cleanup", "--json")
        assert done.code == 1
        (cleanup,) = done.json["phases"]
        (first,) = cleanup["first_errors"]
        assert (first["op"], first["error"], first["name"], first["count"]) == (
            "rmdir",
            "Directory not empty",
            "0_1",
            1,
        )
        (hidden,) = (place.export / "0_1").iterdir()
        assert hidden.name.startswith(".")
    wait_for(lambda: not hidden.exists())
    assert run(*SMALL, "--sweep").code == 0
    assert list(place.export.iterdir()) == []


def test_a_server_that_is_killed_is_waited_for(
    bench: Path, mpi_environment: dict[str, str], run: Run, place: NfsMount, tmp_path: Path
) -> None:
    """As on a hard mount: an operation takes longer, and is named meanwhile."""
    slow = [*SMALL, "--set", "think_time=2ms", "--set", "repeats=4"]
    command = [
        str(bench),
        "--posix.root",
        str(place.nodes[0]),
        *slow,
        "--watchdog",
        "500ms",
        "--out",
        str(tmp_path / "run"),
    ]
    process = subprocess.Popen(
        command, env=mpi_environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    wait_for((place.export / "0_0" / "file-25").exists)
    place.kill_server()
    try:
        printed = process.stderr.readline() if process.stderr else ""
        while process.poll() is None and "has had no answer for" not in printed:
            printed = process.stderr.readline() if process.stderr else ""
        assert "has had no answer for" in printed
    finally:
        place.start_server()
    process.communicate(timeout=120)
    document = json.loads((tmp_path / "run" / "run.json").read_text())
    assert document["status"] == "complete" and [phase["name"] for phase in document["phases"]][-1] == "cleanup"
    # The client repeats requests that the server carried out before it died and never answered. A repeated removal
    # finds nothing to remove and fails.
    slowest, failed = (
        max(row["max"] for phase in document["phases"] for row in phase["latency"].values()),
        sum(phase["errors"] for phase in document["phases"]),
    )
    assert slowest > 0.4 if failed == 0 else failed == 1, document["phases"]
    if list(place.export.iterdir()):
        assert run(*slow, "--sweep", ranks=1).code == 0
    assert list(place.export.iterdir()) == []


def test_a_root_that_the_server_has_no_longer(
    bench: Path, mpi_environment: dict[str, str], run: Run, place: NfsMount
) -> None:
    """Files and directories go away under a client that still knows them: counted or the end, in sentences, and never a
    hang."""
    assert run(*SMALL, "--set", "phases=precreate").code == 0
    subprocess.run(["rm", "-r", place.export / "0_0"], check=True)
    done = run(*SMALL, "--set", "phases=benchmark")
    assert done.code == 1
    assert done.messages and all(message.endswith(".") for message in done.messages), done.err
    assert any("No such file" in message or "Stale file handle" in message for message in done.messages), done.err
    assert run(*SMALL, "--sweep").code == 0
    assert list(place.export.iterdir()) == []


def test_an_open_file_that_the_server_has_no_longer(
    bench: Path, mpi_environment: dict[str, str], run: Run, place: NfsMount, tmp_path: Path
) -> None:
    """Its handle is stale (ESTALE): the run ends in one sentence, what was measured is kept, and the rest can be
    swept."""
    long = [
        "--workload",
        "ior-easy",
        "--set",
        "transfer_size=1KiB",
        "--set",
        "per_process=64MiB",
        "--set",
        "shift_nodes=0",
    ]
    command = [str(bench), "--posix.root", str(place.nodes[0]), *long, "--out", str(tmp_path / "run")]
    process = subprocess.Popen(
        command, env=mpi_environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    file = place.export / "easy" / "file-0"
    wait_for(lambda: file.exists() and file.stat().st_size > 50_000)
    place.kill_server()
    file.unlink()
    place.start_server()
    _, printed = process.communicate(timeout=120)
    sentence = f"The directory '{place.nodes[0]}' can't be used any longer: Stale file handle."
    assert f"iocast-bench: {sentence}" in printed.splitlines() and process.returncode == 1
    assert "--sweep removes it" in printed.splitlines()[-1], "what stays, and how it goes"
    document = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (document["status"], document["error"]) == ("interrupted", sentence)
    # The file was longer than 48 writes; the last one's answer may have died with the server.
    assert document["phases"][-1]["name"] == "write" and document["phases"][-1]["operations"] >= 48
    assert run(*long, "--sweep", ranks=1).code == 0
    assert list(place.export.iterdir()) == []


def test_a_campaign_claims_a_directory_there(place: NfsMount) -> None:
    for number in range(2):
        (directory := place.nodes[0] / f"campaign-{number}").mkdir()
        held = Claim(directory, "c", "this")
        assert held.is_held() and (place.export / directory.name / claim.NAME).exists()
        with pytest.raises(InputError, match="in use by process"):
            Claim(directory, "c", "another")
        held.release()
        assert not list(directory.iterdir())
        directory.rmdir()


Client = Callable[[str], Callable[..., Done]]


@pytest.fixture
def without_a_mount(bench: Path, mpi_environment: dict[str, str]) -> Client:
    """iocast-bench with --backend nfs at an address."""

    def at(url: str) -> Callable[..., Done]:
        def run_it(*arguments: str) -> Done:
            command = [str(bench), "--backend", "nfs", "--nfs.url", url, *(arguments or SMALL)]
            done = subprocess.run(command, capture_output=True, text=True, env=mpi_environment, timeout=100)
            return Done(done.returncode, done.stdout, done.stderr)

        return run_it

    return at


@pytest.mark.places(lambda kind: kind is NfsExport)
def test_addresses_without_a_directory_to_work_in(without_a_mount: Client, place: NfsExport) -> None:
    expect_refusal(without_a_mount("")(), "--nfs.url nfs://HOST/PATH")
    expect_refusal(without_a_mount("/export")(), "'/export'", "is none")
    expect_refusal(without_a_mount(place.url("/export/nowhere"))(), "no directory '/export/nowhere'")
    nobody = place.url().replace(str(place.port), str(port := free_port()))
    expect_refusal(without_a_mount(nobody)(), "No NFS server answers", str(port))
    (place.export / "of-another").mkdir()
    (place.export / "of-another" / "foreign").write_text("x")
    expect_refusal(without_a_mount(place.url("/export/of-another"))(), "'/export/of-another'", "not empty")
    (place.export / "of-all").mkdir()
    (place.export / "of-all").chmod(0o777)
    expect_refusal(without_a_mount(place.url("/export/of-all"))(), "written to by other users")
    (place.export / "own").mkdir()
    done = without_a_mount(place.url("/export/own"))(*SMALL, "--json")
    assert done.code == 0, done.err
    assert list((place.export / "own").iterdir()) == []
    for made in ("of-another", "of-all", "own"):
        shutil.rmtree(place.export / made)


@pytest.mark.places(lambda kind: kind is NfsExport)
def test_operations_on_open_files_without_a_mount(without_a_mount: Client, place: NfsExport) -> None:
    """Accesses of more bytes than libnfs has room for in a request."""
    probe = ("--workload", "probe", "--set", "objects=4", "--set", "access_size=9000B", "--set", "accesses=5")
    done = without_a_mount(place.url())(*probe, "--verify", "--json")
    assert done.code == 0 and done.json["verified"] is True, done.err
    assert list(place.export.iterdir()) == []


@pytest.mark.places(lambda kind: kind is NfsExport)
def test_operations_fail_while_the_server_is_away(without_a_mount: Client, place: NfsExport, tmp_path: Path) -> None:
    """None hangs; those after it has come back are answered, on another connection."""
    run = without_a_mount(place.url())
    slow = (*SMALL, "--set", "waiting_factor=20", "--set", "repeats=4", "--out", str(tmp_path / "run"))
    with futures.ThreadPoolExecutor() as other:
        running = other.submit(run, *slow)
        wait_for((place.export / "0_0" / "file-25").exists)
        place.kill_server()
        place.start_server()
        done = running.result()
    phases = json.loads((tmp_path / "run" / "run.json").read_text())["phases"]
    assert done.code == 1 and sum(phase["errors"] for phase in phases) > 0
    assert {error["error"] for phase in phases for error in phase.get("first_errors", [])} & {
        "Connection refused",
        "Input/output error",
    }
    assert phases[-1]["latency"]["unlink"]["count"] > 0, "nothing was answered after the server had come back"
    assert run(*SMALL, "--sweep").code == 0
    assert list(place.export.iterdir()) == []


HOLD = """
import sys
from servers import NfsMount
with NfsMount() as place:
    print(place.top, flush=True)
    sys.stdin.read()
"""


@pytest.mark.needs("nfs")
def test_mounts_of_killed_tests_are_removed(tmp_path: Path) -> None:
    paths = (REPOSITORY, REPOSITORY / "tests", REPOSITORY / "tests" / "backends")
    killed = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        env={**os.environ, "PYTHONPATH": ":".join(map(str, paths)), "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert killed.stdout is not None
    top = Path(killed.stdout.readline().strip())
    assert len(mounts_below(top)) == 2
    killed.kill()
    killed.communicate()

    def is_swept() -> bool:  # its mounts' processes end a moment later
        sweep_mounts("iocast-posix-", tmp_path)
        return not mounts_below(top) and not top.exists()

    wait_for(is_swept)

# SPDX-License-Identifier: Apache-2.0
"""Other people's data and other runs: what is not the run's own is neither touched nor trusted, and one run has a place
at a time."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench_runs import MANIFEST, Run, expect_nothing_there, expect_refusal, manifest_phase, ranks_in, wait_for

pytestmark = pytest.mark.usefixtures("launch_check")

CLAIM = "iocast.claim.json"
TINY = ["--set", "datasets=1", "--set", "objects=5", "--set", "iterations=2"]
SLOW = [
    "--set",
    "datasets=1",
    "--set",
    "objects=20",
    "--set",
    "iterations=20",
    "--set",
    "repeats=500",
    "--set",
    "think_time=2ms",
]


def claim_of(root: Path) -> dict[str, Any]:
    return json.loads((root / CLAIM).read_text())


# ---- what only looks like iocast's -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [MANIFEST, f"{MANIFEST}.new", f"{MANIFEST}.0123456789abcdef.new", CLAIM])
def test_links_are_not_followed(run: Run, root: Path, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("somebody's")
    (root / name).symlink_to(victim)
    expect_refusal(run(*TINY, "--posix.root", str(root)), str(root))
    assert victim.read_text() == "somebody's" and (root / name).is_symlink()
    assert [p.name for p in root.iterdir()] == [name]


@pytest.mark.parametrize("backend", ["posix"])
def test_a_link_in_the_place_of_an_object_leads_nowhere(run: Run, root: Path, tmp_path: Path, backend: str) -> None:
    """Objects that are there, and those that are yet to be made, in every phase of a run."""
    small = ["--set", "datasets=1", "--set", "objects=20", "--set", "iterations=10", f"--{backend}.root", str(root)]
    phases = lambda names: ["--backend", backend, "--set", f"phases={names}"]  # noqa: E731
    assert run(*small, *phases("precreate")).code == 0
    victim = tmp_path / "victim"
    victim.write_text("somebody's")
    (dataset,) = (one for one in root.iterdir() if one.is_dir())
    for number in range(40):
        (dataset / f"file-{number}").unlink(missing_ok=True)
        (dataset / f"file-{number}").symlink_to(victim)
    for names in ("benchmark", "cleanup"):
        done = run(*small, *phases(names))
        assert "operations failed" in done.err or done.code == 0, done.err
        assert victim.read_text() == "somebody's"


@pytest.mark.needs("root")
@pytest.mark.parametrize("backend", ["posix", "mpiio"])
def test_a_directory_that_others_can_exchange_is_refused(run: Run, root: Path, backend: str) -> None:
    """Its owner, and who may write to it, could put links into it at any moment."""
    arguments = (*TINY, "--backend", backend, f"--{backend}.root", str(root))
    within = {"IOCAST_CAMPAIGN": "0123456789abcdef"}
    for owner, mode, refusal in ((65534, 0o755, ("belongs to the user", "65534")), (0, 0o777, ("chmod go-w",))):
        os.chown(root, owner, owner)
        root.chmod(mode)
        for environment in ({}, within):
            expect_refusal(run(*arguments, environment=environment), *refusal)
        assert not list(root.iterdir())
    root.chmod(0o1777)  # others can't exchange what this user makes
    assert run(*arguments, environment=within).code == 0
    (link := root.with_name("link")).symlink_to(root)
    through = (*TINY, "--backend", backend, f"--{backend}.root", str(link))
    assert run(*through).code == 0  # the user's own word
    expect_refusal(run(*through, environment=within), "symbolic")


@pytest.mark.parametrize("backend", ["posix", "mpiio"])
def test_a_link_in_the_place_of_a_data_set_leads_nowhere(run: Run, root: Path, backend: str) -> None:
    """Where others may add names, one of them puts a link there as soon as the run has looked whether the place is
    empty: neither the run nor its sweep goes through it."""
    root.chmod(0o1777)
    (victim := root.with_name("victim")).mkdir()
    for number in range(20):
        (victim / f"file-{number}").write_text("somebody's")
    ends = threading.Event()

    def race() -> None:
        while not ends.is_set():
            if (root / CLAIM).exists():
                with contextlib.suppress(FileExistsError):
                    (root / "1_0").symlink_to(victim)  # rank 1 has its turn later

    arguments = ["--set", "datasets=1", "--set", "objects=20", "--set", "iterations=10"]
    arguments += ["--backend", backend, f"--{backend}.root", str(root)]
    (racer := threading.Thread(target=race)).start()
    try:
        outcomes = [run(*arguments, *more, ranks=2) for more in (("--max-rate=20/s",), ("--sweep",))]
    finally:
        ends.set()
        racer.join()
    assert [file.read_text() for file in victim.iterdir()] == 20 * ["somebody's"], outcomes
    assert outcomes[0].code == 1 and "did not make" in outcomes[0].err, outcomes
    assert outcomes[1].code == 1 and "Not a directory" in outcomes[1].err, outcomes


def test_manifests_that_are_none(run: Run, root: Path) -> None:
    manifest = root / MANIFEST
    os.mkfifo(manifest)
    expect_refusal(run(*TINY, "--posix.root", str(root)), MANIFEST, "regular file")
    manifest.unlink()
    with manifest.open("wb") as file:
        file.truncate(3 << 30)
    expect_refusal(run(*TINY, "--posix.root", str(root)), MANIFEST, "1048576 bytes")
    manifest.unlink()
    manifest.mkdir()
    expect_refusal(run(*TINY, "--posix.root", str(root)), MANIFEST)


def test_another_directory_under_the_roots_name_is_not_the_root(
    start: Callable[..., subprocess.Popen[str]], root: Path
) -> None:
    process = start(*SLOW, "--posix.root", str(root), ranks=1)
    wait_for(lambda: manifest_phase(root) == "benchmark")
    moved = root.with_name("moved")
    root.rename(moved)
    root.mkdir()
    (root / MANIFEST).write_text('{"mine": 1}')
    (root / CLAIM).write_text("mine")
    os.kill(claim_of(moved)["process"], signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert "interrupted by a signal" in err
    assert (root / MANIFEST).read_text() == '{"mine": 1}' and (root / CLAIM).read_text() == "mine"
    assert json.loads((moved / MANIFEST).read_text())["state"] == "in progress" and not (moved / CLAIM).exists()


# ---- one directory or two --------------------------------------------------------------------------------------------


def test_one_directory_by_two_ways(run: Run, root: Path, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(root)
    assert run(*TINY, "--posix.root", f"{root},{tmp_path}/way", ranks=2).code == 0
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("backend", ["posix", "mpiio"])
def test_two_directories_are_not_one(run: Run, root: Path, tmp_path: Path, backend: str) -> None:
    (tmp_path / "other").mkdir()
    expect_refusal(
        run(*TINY, "--backend", backend, f"--{backend}.root", f"{root},{tmp_path}/other", ranks=2), "other", "not seen"
    )
    assert list(root.iterdir()) == [] and list((tmp_path / "other").iterdir()) == []


@pytest.mark.needs("mounts")
def test_two_file_systems_whose_roots_have_one_number(
    bench: Path, mpirun: Callable[[int], list[str]], mpi_environment: dict[str, str], tmp_path: Path
) -> None:
    """Fresh file systems in memory number their roots alike."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    mounts = "mount -t tmpfs x a && mount -t tmpfs x b && "
    command = [
        *mpirun(2),
        str(bench),
        "--workload",
        "postmark",
        "--set",
        "number=5",
        "--set",
        "transactions=5",
        "--posix.root",
        f"{tmp_path}/a,{tmp_path}/b",
    ]
    environment = mpi_environment | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mounts + 'test $(stat -c %i a) = $(stat -c %i b) && "$@"', "sh", *command],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2 and "not seen through the other" in done.stderr, done.stderr


# ---- one run at a time -----------------------------------------------------------------------------------------------


def test_who_has_the_place_is_named(start: Callable[..., subprocess.Popen[str]], run: Run, root: Path) -> None:
    process = start(*SLOW, "--posix.root", str(root), ranks=2)
    wait_for(lambda: manifest_phase(root) == "benchmark")
    claim = claim_of(root)
    assert (
        claim["process"] in ranks_in(root)
        and claim["host"] == socket.gethostname()
        and abs(claim["seen"] - time.time()) < 60
    )
    for more in ([], ["--set", "phases=cleanup"], ["--sweep"], ["--take-over"]):
        expect_refusal(
            run(*SLOW, "--posix.root", str(root), *more),
            f"process {claim['process']} on host '{claim['host']}'",
            "wait for its end",
        )
    assert process.poll() is None and claim_of(root)["run"] == claim["run"]
    os.kill(claim["process"], signal.SIGTERM)
    process.communicate(timeout=120)
    assert not (root / CLAIM).exists()
    assert run(*SLOW, "--posix.root", str(root), "--sweep", ranks=2).code == 0
    assert list(root.iterdir()) == []


def test_the_place_of_a_dead_run_is_taken_over(
    start: Callable[..., subprocess.Popen[str]], run: Run, root: Path
) -> None:
    process = start(*SLOW, "--posix.root", str(root), ranks=1)
    wait_for(lambda: manifest_phase(root) == "benchmark")
    os.kill(claim_of(root)["process"], signal.SIGKILL)
    process.communicate(timeout=120)
    assert (root / CLAIM).exists()
    assert run(*SLOW, "--posix.root", str(root), "--sweep").code == 0
    assert list(root.iterdir()) == []


def test_a_claim_alone_of_a_dead_run_is_swept(run: Run, root: Path) -> None:
    """Of a run that was killed when its data were removed already."""
    dead = {
        "schema_version": 1, "run": "0" * 16, "host": socket.gethostname(),
        "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "namespace": os.readlink("/proc/self/ns/pid"), "process": 2**22 + 1, "process_ticks": 1,
        "began": int(time.time()), "seen": int(time.time()),
    }  # fmt: skip
    (root / CLAIM).write_text(json.dumps(dead))
    expect_nothing_there(run(*TINY, "--posix.root", str(root), "--sweep"))
    assert list(root.iterdir()) == []


def foreign(seen: float) -> str:
    claim = {
        "schema_version": 1,
        "run": "0" * 16,
        "host": "elsewhere",
        "boot": "x",
        "namespace": "y",
        "process": 1,
        "process_ticks": 1,
        "began": int(seen),
        "seen": int(seen),
    }
    return json.dumps(claim)


def test_a_run_of_before_this_machine_was_started_is_dead(run: Run, root: Path) -> None:
    """One with a sign of life since is another machine's of the same name and number."""
    file = Path("/etc/machine-id")
    same = {"host": socket.gethostname(), "machine": file.read_text().strip() if file.exists() else ""}
    up = time.clock_gettime(time.CLOCK_BOOTTIME)
    command = [*TINY, "--posix.root", str(root)]
    for more in ({"seen": int(time.time() - up / 2)}, {"host": "elsewhere"}, {"machine": "0" * 32}):
        claim = json.loads(foreign(time.time() - up - 600)) | same | more
        (root / CLAIM).write_text(json.dumps(claim))
        expect_refusal(run(*command), "--take-over")
    (root / CLAIM).write_text(json.dumps(json.loads(foreign(time.time() - up - 600)) | same))
    more = [] if same["machine"] else ["--take-over"]  # a container may have no number
    assert run(*command, *more).code == 0 and list(root.iterdir()) == []


def test_a_run_on_another_host(run: Run, root: Path) -> None:
    """Whether its process lives can't be seen from here."""
    claim = root / CLAIM
    command = [*TINY, "--posix.root", str(root)]
    claim.write_text(foreign(time.time() - 100))
    for more in ([], ["--take-over"]):
        expect_refusal(run(*command, *more), "'elsewhere'", "s from now")
    for seen in (time.time() - 1000, time.time() + 1e6, 2**62):  # of a clock that was set back since, too
        claim.write_text(foreign(seen))
        expect_refusal(run(*command), "'elsewhere'", "--take-over")
        assert claim.read_text().startswith("{")
        assert run(*command, "--take-over").code == 0
        assert list(root.iterdir()) == []
    claim.write_text("{}")
    expect_refusal(run(*command), CLAIM, "--take-over")
    assert run(*command, "--take-over").code == 0
    assert list(root.iterdir()) == []


def test_a_run_whose_place_was_taken_stops_and_removes_nothing(
    start: Callable[..., subprocess.Popen[str]], run: Run, root: Path, tmp_path: Path
) -> None:
    process = start(*SLOW, "--posix.root", str(root), "--out", str(tmp_path / "out"), ranks=2)
    wait_for(lambda: manifest_phase(root) == "benchmark")
    (root / CLAIM).unlink()
    (root / CLAIM).write_text(foreign(time.time()))
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1 and err.count("was taken over by another run") == 1, err
    assert claim_of(root)["host"] == "elsewhere" and (root / MANIFEST).exists() and len(list(root.iterdir())) == 2 + 2
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] == "interrupted"


def test_a_refused_run_leaves_no_trace(run: Run, root: Path) -> None:
    (root / "somebodys").write_text("x")
    before = root.stat().st_mtime_ns
    expect_refusal(run(*TINY, "--posix.root", str(root)), "not empty")
    assert root.stat().st_mtime_ns == before

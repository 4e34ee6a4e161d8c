# SPDX-License-Identifier: Apache-2.0
"""What keeps the caches of a node out of a measurement: O_DIRECT, and dropping them."""

import ctypes
import mmap
import os
import subprocess
from pathlib import Path

import pytest
from bench_runs import SMALL, Run

pytestmark = pytest.mark.usefixtures("launch_check")

ONE_FILE = ["--workload", "ior-easy", "--set", "transfer_size=64KiB", "--set", "per_process=1MiB"]
MAY_DROP = os.access("/proc/sys/vm/drop_caches", os.W_OK)


def cached_share(file: Path) -> float:
    """Of the file's pages, those that are in the kernel's cache (mincore(2))."""
    size = file.stat().st_size
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), size, access=mmap.ACCESS_COPY) as mapped:
        pages = -(-size // mmap.PAGESIZE)
        seen = (ctypes.c_ubyte * pages)()
        begin = ctypes.c_char.from_buffer(mapped)
        assert (
            ctypes.CDLL(None, use_errno=True).mincore(
                ctypes.c_void_p(ctypes.addressof(begin)), ctypes.c_size_t(size), seen
            )
            == 0
        )
        del begin
        return sum(page & 1 for page in seen) / pages


@pytest.fixture
def disk(root: Path) -> Path:
    """A place whose files are in the page cache only when they were read or written through it (`needs("disk")`)."""
    return root


def data_of(place: Path) -> Path:
    (file,) = [path for path in place.rglob("*") if path.is_file() and path.stat().st_size == 1 << 20]
    return file


@pytest.mark.needs("disk")
@pytest.mark.parametrize(("direct", "cached"), [("false", 1), ("true", 0)])
def test_direct_accesses_leave_nothing_in_the_cache(run: Run, disk: Path, direct: str, cached: int) -> None:
    for _ in range(5):  # who else drops the caches of this machine, as the test below does, drops these too
        done = run(
            *ONE_FILE,
            "--posix.root",
            str(disk),
            "--posix.direct",
            direct,
            "--set",
            "phases=precreate,benchmark",
            "--verify",
            "--json",
        )
        assert done.code == 0, done.err
        share = cached_share(data_of(disk))
        assert done.json["backend"]["options"]["direct"] == (direct == "true")
        assert run(*ONE_FILE, "--posix.root", str(disk), "--set", "phases=cleanup").code == 0
        assert list(disk.iterdir()) == []
        if share == cached:
            break
    assert share == cached


@pytest.mark.needs("disk")
def test_sizes_that_o_direct_can_not_do(run: Run, disk: Path) -> None:
    sizes = [*SMALL, "--set", "object_size=3901B", "--posix.root", str(disk)]
    done = run(*sizes, "--posix.direct", "true")
    assert (
        done.code == 1
        and len(done.messages) == 1
        and "multiples" in done.messages[0]
        and "--posix.direct" in done.messages[0]
    ), done.err
    assert run(*sizes, "--sweep").code == 0
    assert list(disk.iterdir()) == []


@pytest.mark.needs("disk")
@pytest.mark.needs("caches")
@pytest.mark.parametrize(("option", "moment"), [("--drop-caches", "phase"), ("--drop-caches=run", "run")])
def test_dropped_caches_are_empty_when_a_phase_begins(
    run: Run, disk: Path, tmp_path: Path, option: str, moment: str
) -> None:
    beside = tmp_path / "beside"  # nothing of the run touches it
    beside.write_bytes(os.urandom(1 << 20))
    assert cached_share(beside) == 1
    done = run(*SMALL, "--posix.root", str(disk), option, "--json", ranks=2)
    assert done.code == 0, done.err
    assert done.json["caches_dropped"] == moment
    assert cached_share(beside) == 0


def test_moments_to_drop_them_at(run: Run, root: Path) -> None:
    done = run(*SMALL, "--posix.root", str(root), "--drop-caches=runs")
    assert done.code == 2 and len(done.messages) == 1, done.err
    assert "'runs'" in done.messages[0] and "Did you mean 'run'?" in done.messages[0] and "phase" in done.messages[0]
    assert list(root.iterdir()) == []


@pytest.mark.needs("mounts")
def test_a_user_who_may_not_drop_them_is_refused_before_anything_happens(
    run: Run, bench: Path, root: Path, mpi_environment: dict[str, str]
) -> None:
    command = [str(bench), *SMALL, "--posix.root", str(root), "--drop-caches"]
    if MAY_DROP:  # as root, whose kernel settings can be made unwritable for one process
        protect = 'mount --bind /proc/sys/vm /proc/sys/vm && mount -o remount,ro,bind /proc/sys/vm && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", protect, "sh", *command]
    done = subprocess.run(command, capture_output=True, text=True, env=mpi_environment, timeout=120)
    entries = [line for line in done.stderr.splitlines() if line.startswith("iocast-bench: ")]
    assert done.returncode == 2 and done.stdout == "" and len(entries) == 1, done.stderr
    assert "--drop-caches" in entries[0] and "root" in entries[0] and entries[0].endswith(".")
    assert list(root.iterdir()) == []

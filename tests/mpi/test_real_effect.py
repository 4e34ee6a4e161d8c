# SPDX-License-Identifier: Apache-2.0
"""Real effect equals intent: the system calls of each rank, as the kernel saw them, are those that its operation stream
asks for, and the simulator was given the same stream, byte by byte."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench_runs import Run, expect_refusal, settings_arguments, total_counts
from programs import find_program
from registry import described, listed, operations_of, workload_names

pytestmark = pytest.mark.usefixtures("launch_check")

CALLS = "mkdirat,openat,close,read,write,pread64,pwrite64,fsync,newfstatat,unlinkat,getdents64"
# openat(7<DIRECTORY>, "a/b", O_RDONLY) = 8<DIRECTORY/a/b>
CALL = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\)\s+= (?P<result>-?\d+)(?:<(?P<opened>[^>]*)>)?")

PATTERNS = {entry["name"] for entry in listed("iocast-bench", "patterns")}


def cases() -> list[Any]:
    """All settings of patterns; of the catalogue's workloads, which are patterns with other settings, the first."""
    return [
        case(name, number, settings)
        for name in workload_names("iocast-bench")
        for number, settings in enumerate(described("iocast-bench", name)["small"])
        if name in PATTERNS or number == 0
    ]


def case(name: str, number: int, settings: str) -> Any:
    marks = () if name in PATTERNS and number < 1 else pytest.mark.long("a pattern that runs always, otherwise set")
    return pytest.param(name, settings, id=f"{name}-{number}", marks=marks)


Seen = tuple[str, str, int, int]
"""A call, the path below the root, bytes, offset (or flags of an open)."""


def seen_calls(trace: Path, root: Path) -> list[Seen]:
    """The calls of one rank below the root, in order; what concerns claim, manifest and the root itself is left out."""
    calls: list[Seen] = []
    for line in trace.read_text().splitlines():
        found = CALL.search(line)
        if found is None or str(root) not in line or "iocast.manifest" in line or "iocast.claim" in line:
            continue
        name, arguments = found["name"], found["arguments"]
        assert int(found["result"]) >= 0, line
        first = re.match(r"\d+<([^>]*)>", arguments)
        if first is None:
            continue  # by an absolute path: opening the root
        quoted = re.search(r'"([^"]*)"', arguments)
        if name in ("mkdirat", "openat", "newfstatat", "unlinkat"):
            assert first[1] == str(root) and quoted is not None, line
            path = quoted[1]
        else:
            path = os.path.relpath(first[1], root)
        if path in (".", ""):
            continue  # is the place empty?
        numbers = [int(word) for word in re.findall(r"(?<=, )\d+(?=,|$)", arguments)]
        if name == "openat":
            flags = [
                f for f in ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_DIRECTORY") if f in arguments
            ]
            calls.append((" ".join(["openat", *flags]), path, 0, 0))
        elif name == "unlinkat":
            calls.append(("rmdir" if "AT_REMOVEDIR" in arguments else "unlink", path, 0, 0))
        elif name in ("read", "write"):
            calls.append((name, path, int(found["result"]), 0))
        elif name in ("pread64", "pwrite64"):
            assert int(found["result"]) == numbers[-2], line
            calls.append((name, path, numbers[-2], numbers[-1]))
        elif name == "getdents64":
            if int(found["result"]) > 0:
                calls.append((name, path, 0, 0))
        else:
            calls.append((name, path, 0, 0))
    return calls


Request = tuple[str, int, int | None, int, int]
"""A call, dataset, object (None: the dataset itself), bytes, offset."""


def requested_calls(stream: Path) -> list[Request]:
    """What the operations of a stream come to, by the documented meaning of each."""
    calls: list[Request] = []
    for line in stream.read_text().splitlines():
        kind, *rest = line.split()
        dataset, item, size, offset, count, stride, flags = map(int, rest)

        def whole(access: str, transfer: str) -> None:
            calls.append((access, dataset, item, 0, 0))
            for done in range(0, size, 1 << 20):
                calls.append((transfer, dataset, item, min(size - done, 1 << 20), 0))
            calls.append(("close", dataset, item, 0, 0))

        if kind == "mkdir":
            calls.append(("mkdirat", dataset, None, 0, 0))
        elif kind == "rmdir":
            calls.append(("rmdir", dataset, None, 0, 0))
        elif kind == "create":
            whole("openat O_WRONLY O_CREAT O_TRUNC", "write")
        elif kind == "append":
            whole("openat O_WRONLY O_APPEND", "write")
        elif kind == "read":
            whole("openat", "read")
        elif kind == "stat":
            calls.append(("newfstatat", dataset, None if flags & 16 else item, 0, 0))
        elif kind == "unlink":
            calls.append(("unlink", dataset, item, 0, 0))
        elif kind == "readdir":
            calls.append(("openat O_DIRECTORY", dataset, None, 0, 0))
            calls.append(("getdents64", dataset, None, 0, 0))
            calls.append(("close", dataset, None, 0, 0))
        elif kind == "open":
            words = (["O_RDWR"] if flags & 1 else []) + (["O_CREAT"] if flags & 2 else [])
            calls.append((" ".join(["openat", *words]), dataset, item, 0, 0))
        elif kind in ("pwrite", "pread"):
            for block in range(count):
                calls.append((f"{kind}64", dataset, item, size, offset + block * stride))
        elif kind in ("fsync", "close"):
            calls.append((kind, dataset, item, 0, 0))
        else:
            assert kind in ("phase", "think"), line
    return calls


@pytest.mark.parametrize(("workload", "settings"), cases())
@pytest.mark.needs("tools")
def test_system_calls_are_those_of_the_stream(
    bench: Path,
    mpirun: Callable[[int], list[str]],
    mpi_environment: dict[str, str],
    root: Path,
    tmp_path: Path,
    workload: str,
    settings: str,
) -> None:
    assert shutil.which("strace"), "this test needs strace (apt-get install strace)"
    ranks, traces, streams = 3, tmp_path / "traces", tmp_path / "streams"
    traces.mkdir()
    chosen = settings_arguments(settings)
    command = [
        str(bench),
        "--workload",
        workload,
        *chosen,
        "--no-time-limits",
        "--posix.root",
        str(root),
        "--dump-ops",
        str(streams),
        "--json",
    ]
    # A file a thread of a rank; the rank's own number is in the environment that its launcher gave it. With the filter,
    # calls that nobody asks for are not held up.
    traced = (
        f'exec strace -ff --seccomp-bpf -q -y -e trace={CALLS} -o {traces}/"${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}" "$@"'
    )
    done = subprocess.run(
        [*mpirun(ranks), "sh", "-c", traced, "sh", *command],
        capture_output=True,
        text=True,
        env=mpi_environment,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert list(root.iterdir()) == []
    simulate = [
        str(find_program("iocast-sim")),
        "--platform",
        "local",
        *command[1 : command.index("--posix.root")],
        "--ppn",
        str(ranks),
    ]
    subprocess.run([*simulate, "--dump-ops", str(tmp_path / "simulated")], capture_output=True, check=True, timeout=120)
    for rank in range(ranks):
        assert (streams / f"ops.{rank}").read_bytes() == (tmp_path / "simulated" / f"ops.{rank}").read_bytes()
    names: dict[tuple[int, int | None], str] = {}
    for rank in range(ranks):
        threads = [calls for trace in traces.glob(f"{rank}.*") if (calls := seen_calls(trace, root))]
        assert len(threads) <= 1, "operations of one rank come from one thread"
        seen, requested = threads[0] if threads else [], requested_calls(streams / f"ops.{rank}")
        # A listing takes as many calls as it needs.
        seen = [call for i, call in enumerate(seen) if not (i > 0 and call[0] == "getdents64" == seen[i - 1][0])]
        for did, wanted in zip(seen, requested, strict=False):
            assert (did[0], did[2], did[3]) == (wanted[0], wanted[3], wanted[4]), (did, wanted)
            assert names.setdefault((wanted[1], wanted[2]), did[1]) == did[1], (did, wanted)
        assert len(seen) == len(requested)
    # One name each, and objects within their datasets.
    assert len(set(names.values())) == len(names)
    for (dataset, item), path in names.items():
        if item is not None and (dataset, None) in names:
            assert os.path.dirname(path) == names[dataset, None]


@pytest.mark.needs("tools")
def test_ranks_are_spread_over_mount_points(
    bench: Path, mpirun: Callable[[int], list[str]], mpi_environment: dict[str, str], root: Path, tmp_path: Path
) -> None:
    """A directory by two names, as two mount points of a file system would be; and which rank went through which."""
    (tmp_path / "other").symlink_to(root)
    ways = [str(root), str(tmp_path / "other")]
    command = [
        str(bench),
        "--posix.root",
        ",".join(ways),
        "--set",
        "datasets=1",
        "--set",
        "objects=4",
        "--set",
        "iterations=4",
        "--json",
    ]
    traced = f'exec strace -q -e trace=openat -o {tmp_path}/"${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}" "$@"'
    done = subprocess.run(
        [*mpirun(4), "sh", "-c", traced, "sh", *command],
        capture_output=True,
        text=True,
        env=mpi_environment,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    for rank in range(4):
        opened = re.findall(
            r'^openat\(AT_FDCWD, "([^"]*)", O_RDONLY\|O_CLOEXEC\|O_DIRECTORY\)',
            (tmp_path / str(rank)).read_text(),
            re.MULTILINE,
        )
        # Later ones are to see whether all lead to one directory, and the claim in it.
        assert next(directory for directory in opened if directory in ways) == ways[rank % 2]
    assert len(json.loads(done.stdout)["environment"]["mounts"]) == 2
    assert list(root.iterdir()) == []


def test_mount_points_of_different_directories_are_refused(run: Run, root: Path, tmp_path: Path) -> None:
    (tmp_path / "another").mkdir()
    expect_refusal(
        run("--posix.root", f"{root},{tmp_path}/another", "--set", "datasets=1", ranks=2),
        "one directory of one file system",
        "another",
    )
    expect_refusal(run("--posix.root", f"{root},{tmp_path}/nowhere", "--set", "datasets=1", ranks=1), "nowhere")


def accesses(workload: str, settings: str) -> bool:
    """Whether it reads or writes at offsets, which is what can be shared."""
    operations = operations_of(workload, settings)
    return any(operations.get(kind) for kind in ("pread", "pwrite"))


def shared_cases() -> list[Any]:
    """The first settings of every workload that reads or writes at offsets, and all with which processes do so
    together."""
    return [
        case(name, number, settings)
        for name in workload_names("iocast-bench")
        for number, settings in enumerate(described("iocast-bench", name)["small"])
        if (number == 0 or "together=" in settings) and accesses(name, settings)
    ]


@pytest.mark.parametrize(("workload", "settings"), shared_cases())
def test_workloads_that_access_files_at_offsets_run_on_mpi_io(
    run: Run, root: Path, workload: str, settings: str
) -> None:
    command = ["--workload", workload, *settings_arguments(settings), "--no-time-limits", "--json"]
    plan = run(*command, "--dry-run", ranks=3).json["footprint"]["operations"]
    done = run(*command, "--backend", "mpiio", "--mpiio.root", str(root), "--verify", ranks=3)
    assert done.code == 0, done.err
    assert total_counts(done.json) == {op: count for op, count in plan.items() if count and op != "think"}
    assert done.json["verified"] is True
    assert list(root.iterdir()) == []

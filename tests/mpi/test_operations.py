# SPDX-License-Identifier: Apache-2.0
"""Operations on open objects, time limits, checked content, MPI-IO, and sweeping up."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from bench_runs import (
    Run,
    counts,
    expect_nothing_there,
    expect_refusal,
    manifest_phase,
    ranks_in,
    settings_arguments,
    total_counts,
    tree,
    wait_for,
)
from registry import described, listed


pytestmark = pytest.mark.usefixtures("launch_check")

PROBE = [
    "--workload",
    "probe",
    "--set",
    "objects=4",
    "--set",
    "access_size=3000B",
    "--set",
    "accesses=5",
    "--set",
    "sharing=2",
]


def place(backend: str, root: Path) -> list[str]:
    return ["--backend", backend, f"--{backend}.root", str(root)]


@pytest.mark.parametrize("backend", ["posix", "mpiio"])
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_every_kind_of_operation(run: Run, root: Path, backend: str, ranks: int) -> None:
    plan = run(*PROBE, "--dry-run", "--json", ranks=ranks).json["footprint"]
    done = run(*PROBE, *place(backend, root), "--verify", "--json", ranks=ranks)
    assert done.code == 0, done.err
    assert total_counts(done.json) == {op: count for op, count in plan["operations"].items() if count and op != "think"}
    assert done.json["verified"] is True
    for phase in done.json["phases"]:
        for op in ("create", "append", "read"):
            tags = [tag for tag in phase["latency"] if tag.startswith(op + ".")]
            assert len(tags) == (3 if op in phase["latency"] else 0)
    assert list(root.iterdir()) == []


def test_backends_leave_the_same_on_disk(run: Run, tmp_path: Path) -> None:
    left = {}
    for backend in ("posix", "mpiio"):
        root = tmp_path / backend
        root.mkdir()
        done = run(*PROBE, *place(backend, root), "--verify", "--seed", "5", "--set", "cleanup=false", ranks=4)
        assert done.code == 0, done.err
        left[backend] = tree(root)
        directories = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_dir()}
        assert directories == {f"rank{r}{below}" for r in range(4) for below in ("", "/files")} | {"group0", "group1"}
    assert left["posix"] == left["mpiio"]
    assert len(left["posix"]) == 4 * 5 + 2 + 1  # with the manifest
    # 5 accesses, then 8 blocks that are one block apart
    assert {len(content) for name, content in left["posix"].items() if name.endswith("/file-4")} == {
        (5 + 2 * 8 - 1) * 3000
    }
    assert {len(left["posix"][f"group{g}/file-0"]) for g in (0, 1)} == {2 * 5 * 3000}


def test_hints_must_be_pairs(run: Run, root: Path) -> None:
    expect_refusal(run(*PROBE, *place("mpiio", root), "--mpiio.hints", "cb_nodes", ranks=2), "'cb_nodes'", "cb_nodes=4")
    done = run(*PROBE, *place("mpiio", root), "--mpiio.hints", "romio_cb_write=enable,cb_nodes=1", ranks=2)
    assert done.code == 0, done.err


# Content


def flip(file: Path, at: int) -> None:
    with file.open("r+b") as stream:
        stream.seek(at)
        byte = stream.read(1)[0]
        stream.seek(at)
        stream.write(bytes([byte ^ 1]))


def test_verify_finds_a_flipped_byte_in_a_whole_object(run: Run, root: Path) -> None:
    base = [
        *place("posix", root),
        "--set",
        "datasets=1",
        "--set",
        "objects=5",
        "--set",
        "iterations=5",
        "--set",
        "object_size=2MB",
        "--json",
    ]
    assert run(*base, "--set", "phases=precreate", "--verify", "--seed", "9", ranks=2).code == 0
    flip(root / "1_0" / "file-3", 1_234_567)
    # The seed is that of the data set.
    done = run(*base, "--set", "phases=benchmark", "--set", "read_only=true", "--verify", "--seed", "10", ranks=2)
    assert done.code == 1
    phase = done.json["phases"][0]
    assert phase["errors_by_operation"] == {"read": 1}
    assert counts(phase) == {"stat": 10, "read": 9}
    first = phase["first_errors"][0]
    assert (first["name"], first["offset"], first["rank"]) == ("1_0/file-3", 1_234_567, 0)
    assert "'1_0/file-3', byte 1234567" in done.messages[0]
    # Not looked at, not seen.
    assert run(*base, "--set", "phases=benchmark", "--set", "read_only=true", ranks=2).code == 0
    # An object that grew is found by its size.
    with (root / "0_0" / "file-1").open("ab") as stream:
        stream.write(b"x")
    done = run(*base, "--set", "phases=benchmark", "--set", "read_only=true", "--verify", ranks=2)
    assert done.json["phases"][0]["errors_by_operation"] == {"stat": 1, "read": 1}
    # Once something was written without, nothing can be checked any more.
    assert run(*base, "--set", "phases=benchmark", ranks=2).code == 0
    expect_refusal(run(*base, "--set", "phases=benchmark", "--verify", ranks=2), str(root), "--verify")


@pytest.mark.parametrize("backend", ["posix", "mpiio"])
def test_verify_finds_a_flipped_byte_in_an_access(
    start: Callable[..., subprocess.Popen[str]], root: Path, backend: str
) -> None:
    slow = ["--set", "think=60ms", "--set", "accesses=12"]
    process = start(*PROBE, *slow, *place(backend, root), "--verify", ranks=2)
    file = root / "rank1" / "files" / "file-4"
    wait_for(lambda: file.exists() and file.stat().st_size >= 2 * 3000)
    flip(file, 3007)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert (
        "in read, 1 pread operations failed: other bytes than were written; the first was on rank 1,"
        " 'rank1/files/file-4', byte 3007." in err
    )


def test_verifying_is_in_no_latency(run: Run, root: Path) -> None:
    """Filling and comparing take the more time beside the operations, the larger the objects; here a third of these and
    more."""
    large = [
        "--set",
        "datasets=1",
        "--set",
        "objects=40",
        "--set",
        "iterations=40",
        "--set",
        "object_size=4MiB",
        *place("posix", root),
        "--verify",
        "--json",
    ]
    done = run(*large, ranks=1)
    assert done.code == 0, done.err
    for phase in done.json["phases"][:2]:
        inside = sum(row["count"] * row["mean"] for tag, row in phase["latency"].items() if "." not in tag)
        assert phase["rank_seconds"][0] > 1.05 * inside, phase["name"]  # without, 1.001


def test_a_backend_that_keeps_nothing_has_nothing_to_verify(run: Run) -> None:
    expect_refusal(run("--backend", "dummy", "--verify", ranks=2), "'dummy'", "--verify")


def test_a_listing_with_other_entries_is_an_error(start: Callable[..., subprocess.Popen[str]], root: Path) -> None:
    process = start(*PROBE, "--set", "think=400ms", *place("posix", root), ranks=2)
    wait_for(lambda: (root / "rank1" / "files" / "file-4").exists())
    (root / "rank1" / "files" / "foreign").write_text("x")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert (
        "in look, 1 readdir operations failed: other than the expected number of entries; the first was on rank 1,"
        " 'rank1/files'." in err
    )
    assert sorted(path.name for path in root.rglob("*") if path.is_file()) == ["foreign", "iocast.manifest.json"]


# Time limits

ENDLESS = [*PROBE, "--set", "accesses=300000", "--set", "most_seconds=300ms"]


@pytest.mark.parametrize("backend", ["posix", "mpiio"])
def test_a_time_limit_ends_a_phase_and_the_cleanup_leaves_nothing(run: Run, root: Path, backend: str) -> None:
    done = run(*ENDLESS, *place(backend, root), "--verify", "--json", ranks=4)
    assert done.code == 0, done.err
    result = done.json
    assert result["status"] == "complete"
    for phase in result["phases"]:
        assert "interrupted" not in phase
        if phase["name"] not in ("write", "write-shared"):
            assert "most_seconds" not in phase
            continue
        assert phase["most_seconds"] == 0.3 and phase["cut_ranks"] == 4
        assert phase["seconds"] >= 0.3
        assert phase["latency"]["close"]["count"] == 4  # what was open is closed
        assert "fsync" not in phase["latency"]
        assert 0 < phase["latency"]["pwrite"]["count"] < 4 * 300_000
    written = {p["name"]: p["latency"]["pwrite"]["count"] for p in result["phases"] if "pwrite" in p["latency"]}
    read = {p["name"]: p["latency"]["pread"]["count"] for p in result["phases"] if "pread" in p["latency"]}
    assert read == {"read": written["write"], "read-shared": written["write-shared"]}
    assert list(root.iterdir()) == []


STREAM = [
    "--workload",
    "ior-easy",
    "--set",
    "transfer_size=1KiB",
    "--set",
    "per_process=512MiB",
    "--set",
    "shift_nodes=0",
]


def test_a_time_limit_ends_a_stream_of_accesses_and_what_was_written_is_read(run: Run, root: Path) -> None:
    done = run(*STREAM, "--set", "most_seconds=50ms", *place("posix", root), "--json", ranks=2)
    assert done.code == 0, done.err
    phases = {phase["name"]: phase for phase in done.json["phases"]}
    assert phases["write"]["cut_ranks"] == 2 and phases["write"]["seconds"] >= 0.05
    written = phases["write"]["latency"]["pwrite"]["count"]
    assert 100 < written < 2 * 512 * 1024 and phases["read"]["latency"]["pread"]["count"] == written
    assert list(root.iterdir()) == []


def test_failed_accesses_of_a_stream_are_counted_and_the_rest_goes_on(run: Run) -> None:
    done = run(
        *STREAM, "--set", "per_process=1MiB", "--backend", "dummy", "--dummy.fail", "pwrite:100", "--json", ranks=2
    )
    assert done.code == 1 and "in write, 20 pwrite operations failed" in done.err
    write = next(phase for phase in done.json["phases"] if phase["name"] == "write")
    assert write["errors"] == 20 and write["latency"]["pwrite"]["count"] == 2 * 1024 - 20
    assert sum(write["timeline"]["pwrite"]["count"]) == 2 * 1024 - 20


def test_a_time_limit_ends_thinking(run: Run) -> None:
    """Of an hour, at the limit; where the machine is busy, it begins late."""
    done = run(
        *PROBE, "--backend", "dummy", "--set", "think=1h", "--set", "most_seconds=200ms", "--json", ranks=2, timeout=120
    )
    assert done.code == 0, done.err
    write = done.json["phases"][1]
    assert write["cut_ranks"] == 2 and 2 * 0.2 * 0.8 <= write["think_actual_seconds"] <= sum(write["rank_seconds"])
    assert write["think_asked_seconds"] <= write["think_actual_seconds"] * 1.001


def test_what_a_cut_run_leaves_is_swept(run: Run, root: Path) -> None:
    base = [*ENDLESS, *place("posix", root), "--json"]
    assert run(*base, "--set", "cleanup=false", ranks=3).code == 0
    assert len(tree(root)) > 1
    expect_refusal(run(*base, ranks=3), "did not finish", "'write", "--sweep")
    expect_refusal(run(*base, "--sweep", ranks=2), "ranks = 3 (requested: 2)")
    (root / "rank1" / "files" / "foreign-3").write_text("mine")
    done = run(*base, "--sweep", ranks=3)
    assert done.code == 1
    assert "foreign-3" in str(list(tree(root))) and len(tree(root)) == 2
    (root / "rank1" / "files" / "foreign-3").unlink()
    done = run(*base, "--sweep", ranks=3)
    assert done.code == 0, done.err
    assert list(root.iterdir()) == []
    expect_nothing_there(run(*base, "--sweep", ranks=3))


def test_no_time_limits(run: Run) -> None:
    small = [
        *PROBE,
        "--set",
        "accesses=40",
        "--set",
        "think=5ms",
        "--set",
        "most_seconds=20ms",
        "--backend",
        "dummy",
        "--json",
    ]
    limited, unlimited = run(*small).json, run(*small, "--no-time-limits").json
    assert counts(limited["phases"][1])["pwrite"] < 41 == counts(unlimited["phases"][1])["pwrite"]


@pytest.mark.needs("mounts")
def test_room_that_is_lacking_only_without_the_time_limit_is_a_warning(run: Run, root: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", root], check=True)
    try:
        large = [*PROBE, "--set", "accesses=2000", "--set", "think=2ms", *place("posix", root)]
        expect_refusal(run(*large, ranks=2), "free")
        done = run(*large, "--set", "most_seconds=100ms", ranks=2)
        assert done.code == 0, done.err
        assert "rests on the time limits" in done.err
    finally:
        subprocess.run(["umount", root], check=True)


def test_a_dry_run_names_limits_and_every_kind(run: Run, root: Path) -> None:
    done = run(*ENDLESS, "--set", "think=1us", "--dry-run", *place("posix", root), ranks=2)
    assert done.code == 0, done.err
    assert "write (at most 300ms), write-shared (at most 300ms), look" in done.out
    plan = run(*ENDLESS, "--set", "think=1us", "--dry-run", "--json", ranks=2).json
    assert plan["phases"][1] == {"name": "write", "repeat": 0, "most_seconds": 0.3}
    for op, count in plan["footprint"]["operations"].items():
        assert f"  {op:<8}{count:>16}\n" in done.out
    assert list(root.iterdir()) == []


# Ends


@pytest.mark.parametrize("backend", ["posix", "mpiio"])
def test_sigterm_of_one_rank_ends_what_ranks_do_together(
    start: Callable[..., subprocess.Popen[str]], run: Run, root: Path, backend: str
) -> None:
    long = [*PROBE, "--set", "accesses=3000000", "--set", "access_size=512B"]
    process = start(*long, "--set", "most_seconds=1s", "--no-time-limits", *place(backend, root), ranks=4)
    wait_for(lambda: manifest_phase(root) == "write")
    os.kill(min(ranks_in(root)), signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode != 0
    wait_for(lambda: not ranks_in(root))
    done = run(*long, "--set", "most_seconds=1s", *place(backend, root), "--sweep", ranks=4)
    assert done.code == 0, done.err
    assert list(root.iterdir()) == []


def limited_in_time() -> list[str]:
    """Patterns with phases that a parameter ends after some time; what ranks lack then, a phase of its own makes up
    for."""
    return [
        entry["name"]
        for entry in listed("iocast-bench", "patterns")
        if "most_seconds" in {one["name"] for one in described("iocast-bench", entry["name"])["parameters"]}
    ]


@pytest.mark.parametrize("pattern", limited_in_time())
def test_what_a_run_with_a_time_limit_left_is_swept(run: Run, root: Path, pattern: str) -> None:
    """No rank reaches anything in a sweep, so that none has to catch up with others."""
    given = [
        ["--workload", pattern, *settings_arguments(small), "--set", "most_seconds=5s", *place("posix", root)]
        for small in described("iocast-bench", pattern)["small"]
    ]
    settings = next(one for one in given if run(*one, "--dry-run", ranks=2).code == 0)  # some can't be limited
    done = run(*settings, "--stop-latency", "any:1ns", ranks=2)
    assert done.code == 1 and list(root.iterdir()), done.err
    done = run(*settings, "--sweep", ranks=2)
    assert done.code == 0, done.err
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("backend", ["posix", "mpiio"])
def test_sigterm_within_collective_accesses(
    start: Callable[..., subprocess.Popen[str]], run: Run, root: Path, backend: str
) -> None:
    settings = [*PROBE, "--set", "think=20ms", "--set", "accesses=60", *place(backend, root)]
    process = start(*settings, ranks=4)
    wait_for(lambda: manifest_phase(root) == "write-shared")
    os.kill(min(ranks_in(root)), signal.SIGTERM)
    try:
        process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        pytest.fail(f"mpirun has not ended after a minute; of its ranks there are still {ranks_in(root) or 'none'}")
    assert process.returncode != 0
    wait_for(lambda: not ranks_in(root))
    assert run(*settings, "--sweep", ranks=4).code == 0
    assert list(root.iterdir()) == []


@pytest.mark.needs("mounts")
def test_a_full_disk_ends_all_ranks_of_a_group(run: Run, root: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", root], check=True)
    try:
        large = [*PROBE, "--set", "accesses=4000", "--set", "most_seconds=1h"]
        for backend in ("posix", "mpiio"):
            done = run(*large, *place(backend, root), ranks=4, timeout=120)
            assert done.code == 1
            assert any("No space left on device" in message for message in done.messages), done.err
            assert run(*large, *place(backend, root), "--sweep", ranks=4).code == 0
            assert list(root.iterdir()) == []
    finally:
        subprocess.run(["umount", root], check=True)

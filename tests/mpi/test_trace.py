# SPDX-License-Identifier: Apache-2.0
"""Traces of real and simulated runs, and replaying them."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from bench_runs import SMALL, Done, Run, expect_refusal, settings_arguments
from programs import find_program

COLUMNS = [
    "rank",
    "kind",
    "flags",
    "count",
    "dataset",
    "object",
    "size",
    "offset",
    "stride",
    "start_ns",
    "duration_ns",
    "error",
]


def dumped(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.fixture
def simulator() -> Path:
    program = find_program("iocast-sim")
    assert program is not None, "iocast-sim is not built; run ./check"
    return program


WORKLOADS = [
    ("md-workbench", SMALL),
    ("postmark", ["--set", "number=20", "--set", "transactions=50", "--set", "subdirectories=3"]),
    ("tile-io", []),  # shared, collective and strided accesses
    (
        "mix",
        [
            "--set",
            "a.workload=operation-mix",
            "--set",
            "a.files=20",
            "--set",
            "a.operations=40",
            "--set",
            "b.workload=md-workbench",
            "--set",
            "b.objects=5",
            "--set",
            "b.iterations=5",
        ],
    ),
]


@pytest.mark.parametrize(("workload", "settings"), WORKLOADS, ids=[w for w, _ in WORKLOADS])
def test_record_and_replay(
    run: Run, simulator: Path, workload: str, settings: list[str], tmp_path: Path, small: Callable[[str], list[str]]
) -> None:
    """A run of 4 ranks is recorded by the benchmark; benchmark and simulator replay it with identical streams."""
    settings = settings or small(workload)
    recorded = run(
        "--backend",
        "dummy",
        "--workload",
        workload,
        *settings,
        "--trace",
        "--out",
        str(tmp_path / "run"),
        "--dump-ops",
        str(tmp_path / "ops"),
        ranks=4,
    )
    assert recorded.code == 0, recorded.err
    replay = ["--workload", "replay", "--set", f"file={tmp_path / 'run' / 'ops.h5'}"]
    assert run("--backend", "dummy", *replay, "--dump-ops", str(tmp_path / "replayed"), ranks=4).code == 0
    subprocess.run(
        [simulator, "--platform", "local", *replay, "--ppn", "4", "--dump-ops", tmp_path / "simulated"],
        check=True,
        capture_output=True,
    )
    assert dumped(tmp_path / "ops") == dumped(tmp_path / "replayed") == dumped(tmp_path / "simulated")


def test_a_stream_of_accesses_is_traced_one_by_one(run: Run, simulator: Path, tmp_path: Path) -> None:
    """The benchmark asks for accesses that differ in their offsets alone by the dozen."""
    workload = ["--workload", "iozone", "--set", "file_size=300KiB", "--set", "record_sizes=1KiB", "--set", "tests=all"]
    assert run("--backend", "dummy", *workload, "--trace", "--out", str(tmp_path / "run"), ranks=2).code == 0
    replay = ["--workload", "replay", "--set", f"file={tmp_path / 'run' / 'ops.h5'}"]
    for name, arguments in (("replayed", replay), ("whole", workload)):
        subprocess.run(
            [simulator, "--platform", "local", *arguments, "--ppn", "2", "--dump-ops", tmp_path / name],
            check=True,
            capture_output=True,
        )
    assert dumped(tmp_path / "replayed") == dumped(tmp_path / "whole")
    with h5py.File(tmp_path / "run" / "ops.h5") as trace:
        assert trace["start_ns"].shape == trace["offset"].shape and len(trace["start_ns"]) > 2 * 8 * 300


@pytest.fixture
def small(simulator: Path) -> Callable[[str], list[str]]:
    """The first small settings of a workload."""

    def settings(workload: str) -> list[str]:
        described = json.loads(
            subprocess.run([simulator, "--describe", workload, "--json"], check=True, capture_output=True).stdout
        )
        return settings_arguments(described["small"][0])

    return settings


@pytest.mark.parametrize(("ranks", "threads"), [(3, 1), (2, 3)])
def test_the_simulator_records_the_same_streams(
    simulator: Path, run: Run, tmp_path: Path, ranks: int, threads: int
) -> None:
    """Rank r of a trace is client r, in whichever process it was."""
    arguments = ["--workload", "md-workbench", *SMALL, "--trace", "--out"]
    assert (
        run(
            "--backend", "dummy", *arguments, str(tmp_path / "real"), "--threads-per-rank", str(threads), ranks=ranks
        ).code
        == 0
    )
    subprocess.run(
        [simulator, "--platform", "local", *arguments, tmp_path / "simulated", "--ppn", str(ranks * threads)],
        check=True,
        capture_output=True,
    )
    with h5py.File(tmp_path / "real" / "ops.h5") as real, h5py.File(tmp_path / "simulated" / "ops.h5") as simulated:
        assert np.array_equal(real["first_row"][:], simulated["first_row"][:]) and np.array_equal(
            real["group"][:], simulated["group"][:]
        )
        for column in COLUMNS:
            assert real[column].shape == simulated[column].shape
            if column not in ("start_ns", "duration_ns"):
                assert np.array_equal(real[column][:], simulated[column][:]), column


@pytest.mark.parametrize(
    "clients", [["--threads-per-rank", "1"], ["--threads-per-rank", "3"]], ids=["processes", "threads"]
)
def test_a_trace_says_what_the_latencies_say(run: Run, root: Path, tmp_path: Path, clients: list[str]) -> None:
    done = run(
        "--posix.root",
        str(root),
        *SMALL,
        "--trace",
        "--out",
        str(tmp_path / "run"),
        "--json",
        *clients,
        ranks=3 // int(clients[1]),
    )
    assert done.code == 0, done.err
    with h5py.File(tmp_path / "run" / "ops.h5") as file:
        names = {value: name for name, value in h5py.check_enum_dtype(file["kind"].dtype).items()}
        columns = {name: file[name][:] for name in COLUMNS}
        first = file["first_row"][:]
    assert first[-1] == len(columns["rank"])
    for rank in range(3):
        rows = slice(int(first[rank]), int(first[rank + 1]))
        assert (columns["rank"][rows] == rank).all()
        end = columns["start_ns"][rows] + columns["duration_ns"][rows]
        assert (columns["start_ns"][rows][1:] >= end[:-1] - 1).all()
    phase = next(p for p in done.json["phases"] if p["name"] == "benchmark")
    number = next(i for i, p in enumerate(done.json["phases"]) if p["name"] == "benchmark")
    in_phase = np.concatenate(
        [
            np.cumsum(columns["kind"][int(a) : int(b)] == 0) - 1 == number
            for a, b in zip(first[:-1], first[1:], strict=True)
        ]
    )
    for code, name in names.items():
        durations = columns["duration_ns"][in_phase & (columns["kind"] == code)] * 1e-9
        if name != "phase" and len(durations):
            assert phase["latency"][name]["count"] == len(durations)
            assert phase["latency"][name]["mean"] == pytest.approx(durations.mean(), rel=1e-9)
            assert phase["latency"][name]["max"] == pytest.approx(durations.max(), rel=1e-9)


def test_replay_on_disk_leaves_nothing(run: Run, root: Path, tmp_path: Path) -> None:
    assert (
        run(
            "--backend",
            "dummy",
            "--workload",
            "postmark",
            "--set",
            "number=20",
            "--set",
            "transactions=60",
            "--trace",
            "--out",
            str(tmp_path / "run"),
            ranks=4,
        ).code
        == 0
    )
    for ranks in (1, 3, 4):
        done = run(
            "--posix.root",
            str(root),
            "--workload",
            "replay",
            "--set",
            f"file={tmp_path / 'run' / 'ops.h5'}",
            "--json",
            ranks=ranks,
        )
        assert done.code == 0, done.err
        assert not any(root.iterdir())


def test_failed_operations_are_in_the_trace(run: Run, tmp_path: Path) -> None:
    done = run(
        "--backend",
        "dummy",
        "--dummy.fail",
        "stat:5",
        *SMALL,
        "--trace",
        "--out",
        str(tmp_path / "run"),
        "--json",
        ranks=2,
    )
    assert done.code == 1
    with h5py.File(tmp_path / "run" / "ops.h5") as file:
        assert np.count_nonzero(file["error"][:]) == sum(p["errors"] for p in done.json["phases"]) > 0
        assert (np.diff(file["start_ns"][: int(file["first_row"][1])]) >= 0).all()


@pytest.mark.parametrize(
    ("ranks", "threads", "objects", "iterations"),
    [(5, 1, 4000, 4000), (5, 1, 3, 2), (2, 5, 4000, 4000), (5, 2, 3, 2), (2, 3, 40_000, 40_000)],
    ids=["", "few rows", "threads", "threads with few rows", "threads beyond their memory"],
)
def test_rows_of_many_ranks_share_chunks(
    run: Run, simulator: Path, tmp_path: Path, ranks: int, threads: int, objects: int, iterations: int
) -> None:
    """Chunks that begin with one rank's rows and end with those of others, several chunks a rank: nothing is lost or
    out of place."""
    chosen = [
        "--set",
        "datasets=1",
        "--set",
        f"objects={objects}",
        "--set",
        f"iterations={iterations}",
        "--trace",
        "--out",
    ]
    assert (
        run("--backend", "dummy", *chosen, str(tmp_path / "run"), "--threads-per-rank", str(threads), ranks=ranks).code
        == 0
    )
    clients = ranks * threads
    subprocess.run(
        [simulator, "--platform", "local", *chosen, tmp_path / "sim", "--ppn", str(clients)],
        check=True,
        capture_output=True,
    )
    with h5py.File(tmp_path / "run" / "ops.h5") as real, h5py.File(tmp_path / "sim" / "ops.h5") as simulated:
        assert real["kind"].shape[0] == clients * (3 + 1 + 1 + objects * 2 + 4 * iterations)
        for column in ("rank", "kind", "dataset", "object", "size"):
            assert np.array_equal(real[column][:], simulated[column][:])


@pytest.mark.parametrize("threads", [1, 3])
def test_a_trace_without_room_ends_the_run(
    bench: Path, mpirun: Callable[[int], list[str]], mpi_environment: dict[str, str], tmp_path: Path, threads: int
) -> None:
    """And each operation that was done until then is counted once."""
    chosen = [
        "--backend",
        "dummy",
        "--set",
        "datasets=1",
        "--set",
        "objects=1000000",
        "--trace",
        "--out",
        str(tmp_path / "run"),
        "--dump-ops",
        str(tmp_path / "ops"),
    ]
    # Of the ranks alone: a launcher makes its own.
    command = [
        *mpirun(2),
        "env",
        f"TMPDIR={tmp_path / 'nowhere'}",
        str(bench),
        *chosen,
        "--threads-per-rank",
        str(threads),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, env=mpi_environment, timeout=120)
    done = Done(ended.returncode, ended.stdout, ended.stderr)
    assert (
        done.code == 1
        and len(done.messages) == 1
        and "nowhere' can't be made" in done.messages[0]
        and "Set TMPDIR" in done.messages[0]
    ), done.err
    result = json.loads((tmp_path / "run" / "run.json").read_text())
    assert result["status"] == "interrupted" and "Set TMPDIR" in result["error"]
    requested = sum(
        not line.startswith("phase ")
        for name in dumped(tmp_path / "ops")
        for line in (tmp_path / "ops" / name).read_text().splitlines()
    )
    assert sum(phase["operations"] for phase in result["phases"]) == requested
    assert not (tmp_path / "run" / "ops.h5").exists()


def test_replay_at_recorded_times(run: Run, simulator: Path, tmp_path: Path) -> None:
    """What took a second at 100/s takes half of it at time_scale=0.5, and responses are counted from the intended
    starts. In the simulator, whose time no other work stretches, it takes no longer either."""
    virtual = ["--platform", "local", "--json"]
    settings = "datasets=1 objects=25 iterations=25 phases=benchmark rate=100/s arrivals=fixed"
    recording = [*virtual, "--workload", "md-workbench", *settings_arguments(settings), "--trace"]
    subprocess.run([simulator, *recording, "--out", tmp_path / "run"], check=True, capture_output=True)
    for timing, expected in (("fast", 0.0), ("think", 0.5), ("start", 0.5)):
        replay = settings_arguments(f"file={tmp_path / 'run' / 'ops.h5'} timing={timing} time_scale=0.5")
        simulated = subprocess.run([simulator, *virtual, "--workload", "replay", *replay], capture_output=True)
        done = run("--backend", "dummy", "--workload", "replay", *replay, "--json", ranks=1)
        assert done.code == 0, done.err
        phase, meant = done.json["phases"][0], json.loads(simulated.stdout)["phases"][0]
        assert phase["operations"] == meant["operations"] == 100
        assert meant["seconds"] == pytest.approx(expected, abs=0.01) and phase["seconds"] >= expected - 0.01
        assert phase["think_asked_seconds"] == pytest.approx(expected if timing == "think" else 0.0, abs=0.01)
        assert ("stat.response" in phase["latency"]) == (timing == "start")


def test_refusals(run: Run, simulator: Path, tmp_path: Path) -> None:
    expect_refusal(run("--backend", "dummy", "--trace"), "--trace", "--out")
    assert subprocess.run([simulator, "--platform", "local", "--trace"], capture_output=True).returncode == 2
    (tmp_path / "no.h5").write_text("nothing")
    expect_refusal(
        run("--backend", "dummy", "--workload", "replay", "--set", f"file={tmp_path / 'no.h5'}", ranks=2),
        "no.h5",
        "no HDF5 file",
    )
    assert run("--backend", "dummy", *SMALL, "--trace", "--out", str(tmp_path / "run"), ranks=2).code == 0
    whole = (tmp_path / "run" / "ops.h5").read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[: len(whole) // 2])
    expect_refusal(
        run("--backend", "dummy", "--workload", "replay", "--set", f"file={tmp_path / 'cut.h5'}", ranks=2),
        "was cut off",
    )
    (tmp_path / "other.h5").write_bytes(whole.replace(b"rmdir", b"mvdir"))
    expect_refusal(
        run("--backend", "dummy", "--workload", "replay", "--set", f"file={tmp_path / 'other.h5'}", ranks=2),
        "mvdir",
        "doesn't know",
    )
    expect_refusal(
        run("--backend", "dummy", "--workload", "replay", "--set", f"file={tmp_path / 'run' / 'ops.h5'}", ranks=3),
        "by a multiple",
    )


@pytest.mark.long("a long trace; short ones are read back always")
def test_a_trace_takes_few_bytes_an_operation(run: Run, root: Path, tmp_path: Path) -> None:
    settings = settings_arguments("datasets=1 objects=5000 iterations=5000 repeats=4")
    done = run(*settings, "--posix.root", str(root), "--trace", "--json", "--out", str(tmp_path / "out"), ranks=2)
    assert done.code == 0, done.err
    operations = sum(phase["operations"] for phase in done.json["phases"])
    assert operations == 2 * (2 * 5001 + 4 * 4 * 5000)
    assert (tmp_path / "out" / "ops.h5").stat().st_size < 8 * operations

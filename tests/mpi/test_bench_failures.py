# SPDX-License-Identifier: Apache-2.0
"""Operations, ranks and whole runs that fail: counted, reported once, and never a hang or a mess."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest
from schedule import mostly_long
from bench_runs import (
    MANIFEST,
    SMALL,
    Run,
    counts,
    expect_refusal,
    injected,
    manifest_phase,
    ranks_in,
    total_counts,
    tree,
    wait_for,
)

pytestmark = pytest.mark.usefixtures("launch_check")


def test_injected_failures_are_counted_and_not_in_the_latencies(run: Run) -> None:
    done = run(*SMALL, "--backend", "dummy", "--dummy.fail", "create:7", "--dummy.fail_rank", "1", "--json", ranks=2)
    assert done.code == 1
    result = done.json
    precreate = result["phases"][0]
    assert result["status"] == "complete"
    assert precreate["errors"] == 40 // 7
    assert precreate["errors_by_operation"] == {"create": 40 // 7}
    assert counts(precreate)["create"] == precreate["latency"]["create.open"]["count"] == 80 - 40 // 7
    first = precreate["first_errors"]
    assert [(row["op"], row["rank"], row["count"], row["name"]) for row in first] == [("create", 1, 5, "1_0/file-3")]
    assert len(done.messages) == 2  # one line for precreate and one for benchmark, however many failed


@pytest.mark.parametrize("after", ["0", "30"])
def test_a_failing_rank_ends_all(run: Run, tmp_path: Path, after: str) -> None:
    done = run(
        *["--backend", "dummy", "--dummy.abort_rank", "2", "--dummy.abort_after", after, "--dummy.delay", "1ms"],
        *["--set", "datasets=2", "--set", "objects=10000", "--set", "iterations=10"],
        *["--out", str(tmp_path / "out")],
        ranks=4,
        timeout=120,
    )
    assert done.code == 1
    assert len(done.messages) == 1, done.err
    assert re.match(r"rank 2 on host .*gives up.*\.$", done.messages[0])
    if after != "0":
        result = json.loads((tmp_path / "out" / "run.json").read_text())
        assert result["status"] == "interrupted" and "gives up" in result["error"]


def test_what_a_rank_was_answered_before_it_failed_is_kept(run: Run, tmp_path: Path) -> None:
    settings = ["--set", "datasets=2", "--set", "objects=10000", "--set", "iterations=10"]
    done = run(
        "--backend",
        "dummy",
        "--dummy.abort_rank",
        "0",
        "--dummy.abort_after",
        "30",
        *settings,
        "--out",
        str(tmp_path / "out"),
    )
    assert done.code == 1
    result = json.loads((tmp_path / "out" / "run.json").read_text())
    assert 29 <= sum(phase["operations"] for phase in result["phases"]) <= 30


def test_a_root_that_vanishes(start: Callable[..., subprocess.Popen[str]], root: Path) -> None:
    base = ["--posix.root", str(root), "--set", "datasets=1", "--set", "objects=20000", "--set", "waiting_factor=50"]
    process = start(*base, ranks=2)
    wait_for(lambda: (root / "1_0" / "file-0").exists())
    moved = root.with_name("moved")
    root.rename(moved)  # nothing has happened to a descriptor, and the run goes on
    end = time.monotonic() + 120
    while moved.exists() and time.monotonic() < end:  # it makes new files while old ones are removed
        shutil.rmtree(moved, ignore_errors=True)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert err.count("was removed while the run was in it") == 1, err


LONG = [
    "--set",
    "datasets=2",
    "--set",
    "objects=200",
    "--set",
    "iterations=200",
    "--set",
    "repeats=60000",
    "--set",
    "think_time=200us",
]


def test_sigkill_in_the_middle(
    start: Callable[..., subprocess.Popen[str]], run: Run, root: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = start(*LONG, "--posix.root", str(root), "--out", str(out), ranks=2)
    wait_for(lambda: manifest_phase(root) == "benchmark")
    process.kill()
    process.communicate()
    for rank in ranks_in(root):  # mpirun had no time to end them
        try:
            os.kill(rank, signal.SIGKILL)
        except ProcessLookupError:
            pass
    wait_for(lambda: not ranks_in(root))
    assert json.loads((out / "run.json").read_text())["status"] == "running"
    # A run that dies while it writes leaves at most the previous manifest; say "in progress" as most kills do.
    state = json.loads((root / MANIFEST).read_text())
    state["state"] = "in progress"
    (root / MANIFEST).write_text(json.dumps(state))

    base = ["--set", "datasets=2", "--set", "objects=200", "--posix.root", str(root), "--json"]
    expect_refusal(run(*base, "--set", "phases=benchmark", ranks=2), "'benchmark'", "phases=cleanup")
    expect_refusal(run(*base, ranks=2), "phases=cleanup")

    # Foreign files are never removed; what is left can be swept again once they are gone.
    (root / "0_0" / "precious").write_text("mine")
    (root / "0_0" / "file-007").write_text("mine too: no pattern writes its numbers so")
    done = run(*base, "--set", "phases=cleanup", ranks=2)
    assert done.code == 1
    assert done.json["phases"][0]["errors_by_operation"] == {"rmdir": 1}
    assert sorted(tree(root)) == ["0_0/file-007", "0_0/precious", MANIFEST]
    shutil.rmtree(root / "0_0")
    done = run(*base, "--set", "phases=cleanup", ranks=2)
    assert done.code == 0, done.err
    assert list(root.iterdir()) == []


def test_a_sweep_reports_what_it_removed(run: Run, root: Path) -> None:
    base = [*SMALL, "--posix.root", str(root), "--json"]
    run(*base, "--set", "phases=precreate", ranks=2)
    state = json.loads((root / MANIFEST).read_text())
    (root / MANIFEST).write_text(json.dumps(state | {"state": "in progress"}))
    (root / "0_1" / "file-4").unlink()
    done = run(*base, "--set", "phases=cleanup", ranks=2)
    phase = done.json["phases"][0]
    assert (phase["name"], phase["operations"], phase["swept"], phase["latency"]) == ("cleanup", 0, 2 * 2 * 21 - 1, {})
    assert list(root.iterdir()) == []


def test_sigterm_to_one_rank(start: Callable[..., subprocess.Popen[str]], run: Run, root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(
        *LONG, "--set", "waiting_factor=5", "--posix.root", str(root), "--out", str(out), ranks=2, patience=0
    )
    wait_for(lambda: manifest_phase(root) == "benchmark")
    os.kill(min(ranks_in(root)), signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode != 0
    wait_for(lambda: not ranks_in(root))
    result = json.loads((out / "run.json").read_text())
    assert result["status"] == "interrupted"
    assert [phase.get("interrupted", False) for phase in result["phases"]] == [False] * (len(result["phases"]) - 1) + [
        True
    ]
    assert json.loads((root / MANIFEST).read_text())["state"] == "in progress"
    base = ["--set", "datasets=2", "--set", "objects=200", "--posix.root", str(root)]
    assert run(*base, "--set", "phases=cleanup", ranks=2).code == 0
    assert list(root.iterdir()) == []


def test_a_broken_pipe_ends_no_run(start: Callable[..., subprocess.Popen[str]], root: Path) -> None:
    """A client of TLS writes to a connection that the service has closed, and the system sends it SIGPIPE."""
    settings = ["--set", "datasets=1", "--set", "objects=50", "--set", "iterations=50", "--set", "think_time=5ms"]
    process = start("--posix.root", str(root), *settings, "--json", ranks=2)
    wait_for(lambda: (root / "0_0" / "file-55").exists())
    for rank in ranks_in(root):
        os.kill(rank, signal.SIGPIPE)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert [phase["errors"] for phase in json.loads(out)["phases"]] == [0, 0, 0]


Begin = Callable[..., tuple[subprocess.Popen[str], list[str]]]


@pytest.fixture
def begin(start: Callable[..., subprocess.Popen[str]], run: Run, root: Path, tmp_path: Path) -> Begin:
    """Starts three ranks that take seconds for a phase, and returns when they are in the middle of it, with what its
    runs have in common."""

    def begin_it(phase: str, patience: int = 2) -> tuple[subprocess.Popen[str], list[str]]:
        base = ["--set", "datasets=2", "--set", "objects=500", "--set", "iterations=500", "--posix.root", str(root)]
        if phase != "precreate":
            assert run(*base, "--set", "phases=precreate", ranks=3).code == 0
        process = start(
            *base,
            "--set",
            f"phases={phase}",
            "--set",
            "think_time=5ms",
            "--out",
            str(tmp_path / "out"),
            ranks=3,
            patience=patience,
        )
        sign = root / "0_0" / ("file-509" if phase == "benchmark" else "file-9")
        wait_for(lambda: sign.exists() == (phase != "cleanup"))
        return process, base

    return begin_it


PHASES = ["precreate", "benchmark", "cleanup"]


@pytest.mark.parametrize("phase", mostly_long(PHASES, ["benchmark"], "as in the other phase"))
@pytest.mark.parametrize("signals", ["SIGTERM to mpirun", "SIGINT to all ranks"])
def test_signals_end_each_phase(begin: Begin, run: Run, root: Path, tmp_path: Path, signals: str, phase: str) -> None:
    """What batch systems send, and Ctrl-C: what was measured is kept, nobody is left behind, and what lies there can be
    removed."""
    to_ranks = signals == "SIGINT to all ranks"  # mpirun makes it SIGTERM, other launchers pass it on
    process, base = begin(phase, patience=0 if to_ranks else 2)
    for one in ranks_in(root) if to_ranks else [process.pid]:
        os.kill(one, signal.SIGINT if to_ranks else signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode != 0
    if to_ranks:  # after SIGTERM, mpirun may end rank 0 before it has printed that
        assert "The run was interrupted by a signal." in err and f"{root}' still holds what it made, up to" in err
        assert "the same command with --sweep removes them, without --out." in err
    wait_for(lambda: not ranks_in(root))
    result = json.loads((tmp_path / "out" / "run.json").read_text())
    assert result["status"] == "interrupted"
    assert [(p["name"], p["interrupted"], p["errors"]) for p in result["phases"]] == [(phase, True, 0)] and result[
        "phases"
    ][0]["operations"] > 0
    assert json.loads((root / MANIFEST).read_text())["state"] == "in progress"
    assert run(*base, "--set", "phases=cleanup", ranks=3).code == 0
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("phase", mostly_long(PHASES, ["benchmark"], "as in the other phase"))
@pytest.mark.parametrize("who", ["one rank", "all ranks"])
def test_sigkill_in_each_phase(begin: Begin, run: Run, root: Path, tmp_path: Path, who: str, phase: str) -> None:
    """As when memory runs out, or a node goes down: mpirun ends the others, the run never says that it is complete, and
    --sweep removes what lies there."""
    process, base = begin(phase, patience=0)
    ranks = sorted(ranks_in(root))
    assert len(ranks) == 3
    for rank in ranks if who == "all ranks" else [ranks[PHASES.index(phase)]]:
        os.kill(rank, signal.SIGKILL)
    process.communicate(timeout=120)
    assert process.returncode != 0
    wait_for(lambda: not ranks_in(root))
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] in ("running", "interrupted")
    assert json.loads((root / MANIFEST).read_text())["state"] == "in progress"
    assert not [
        name for name in os.listdir("/dev/shm") for rank in ranks if name.endswith(f"-{rank}")
    ]  # what libmongoc puts there
    assert run(*base, "--sweep", ranks=3).code == 0
    assert list(root.iterdir()) == []


# ---- two runs in one place -------------------------------------------------------------------------------------------


def test_a_run_keeps_its_place_to_itself(
    start: Callable[..., subprocess.Popen[str]], run: Run, root: Path, tmp_path: Path
) -> None:
    """Others are refused at any time, also between phases, and it ends as if it had been alone."""
    base = ["--set", "datasets=2", "--set", "objects=10", "--set", "iterations=10", "--posix.root", str(root)]
    process = start(*base, "--set", "repeats=40", "--set", "think_time=5ms", "--out", str(tmp_path / "out"), ranks=2)
    wait_for(lambda: manifest_phase(root) == "benchmark")
    for number in range(3):
        refused = run(
            *base,
            *(["--set", "phases=benchmark"] if number % 2 else []),
            "--out",
            str(tmp_path / f"out-{number}"),
            ranks=2,
        )
        expect_refusal(refused, "in use by another run", "wait for its end")
        assert not (tmp_path / f"out-{number}").exists()
    assert process.poll() is None, "it was over before it was disturbed"
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    result = json.loads((tmp_path / "out" / "run.json").read_text())
    assert result["status"] == "complete" and [p["operations"] for p in result["phases"]] == [44, *([160] * 40), 44]
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(("phases", "think"), [("precreate,benchmark,cleanup", "5ms"), ("benchmark", "8ms")])
def test_of_runs_that_begin_at_once_one_goes_on(
    start: Callable[..., subprocess.Popen[str]], run: Run, root: Path, phases: str, think: str
) -> None:
    base = ["--set", "datasets=1", "--set", "objects=100", "--set", "iterations=100", "--posix.root", str(root)]
    if phases == "benchmark":
        assert run(*base, "--set", "phases=precreate", ranks=2).code == 0
    runs = [start(*base, "--set", f"phases={phases}", "--set", f"think_time={think}", ranks=2) for _ in range(3)]
    ends = [(process.communicate(timeout=120)[1], process.returncode) for process in runs]
    assert sorted(code for _, code in ends) == [0, 2, 2], ends
    for err, code in ends:
        if code == 2:
            assert re.search(
                r"^iocast-bench: The directory .*(another run|if none is running there).*\.$", err, re.MULTILINE
            ), err
    if phases == "benchmark":
        assert run(*base, "--set", "phases=cleanup", ranks=2).code == 0
    assert list(root.iterdir()) == []


def test_files_of_a_run_that_died_as_it_began(run: Run, root: Path, tmp_path: Path) -> None:
    """They are no data, and go with it; the last two are of earlier versions."""
    for name in (f"{MANIFEST}.0123456789abcdef.new", f"{MANIFEST}.new", f"{MANIFEST}.claim"):
        (root / name).write_text("half of")
    assert run(*SMALL, "--posix.root", str(root), ranks=2).code == 0
    assert list(root.iterdir()) == []


# ---- machines and file systems that misbehave ------------------------------------------------------------------------


def test_many_more_ranks_than_cores(run: Run) -> None:
    done = run(
        "--backend",
        "dummy",
        "--set",
        "datasets=1",
        "--set",
        "objects=3",
        "--set",
        "iterations=2",
        "--json",
        ranks=32,
        timeout=120,
    )
    assert done.code == 0, done.err
    assert total_counts(done.json) == {
        "mkdir": 32,
        "create": 32 * 5,
        "stat": 64,
        "read": 64,
        "unlink": 32 * 5,
        "rmdir": 32,
    }
    assert all(len(phase["rank_seconds"]) == 32 for phase in done.json["phases"])


HANGS = [
    "--backend",
    "dummy",
    "--set",
    "datasets=1",
    "--set",
    "objects=60",
    "--set",
    "iterations=60",
    "--dummy.stall_every",
    "200",
]


def test_an_operation_without_an_answer_is_named_and_waited_for(run: Run) -> None:
    done = run(*HANGS, "--dummy.stall", "1500ms", "--watchdog", "500ms", ranks=2)
    assert done.code == 0
    entries = [
        re.fullmatch(
            r"(\w+) of '([01]_0/file-\d+)' by rank ([01]) on \S+ (has had no answer for|was answered after)"
            r" ([\d.]+) s\.",
            m,
        )
        for m in done.messages
    ]
    assert all(entries) and len(entries) >= 4, done.err
    for rank in ("0", "1"):
        mine = [m for m in entries if m and m[3] == rank]
        assert [m[4] for m in mine[:2]] == ["has had no answer for", "was answered after"] and mine[0].group(
            1, 2
        ) == mine[1].group(1, 2)
        assert float(mine[0][5]) >= 0.4 and float(mine[1][5]) >= 1.2
    assert run(*HANGS, "--dummy.stall", "1500ms", "--watchdog", "0s", ranks=1).messages == []


def test_an_operation_without_an_answer_can_end_the_run(run: Run, tmp_path: Path) -> None:
    """What was measured before is kept, and the exit status says that the rest is missing."""
    done = run(
        *HANGS,
        "--dummy.stall",
        "1h",
        "--watchdog",
        "300ms",
        "--give-up",
        "1s",
        "--out",
        str(tmp_path / "out"),
        ranks=2,
        timeout=120,
    )
    assert done.code != 0
    assert any("is given up after" in m for m in done.messages), done.err
    result = json.loads((tmp_path / "out" / "run.json").read_text())
    assert result["status"] != "complete" and [p["name"] for p in result["phases"]] == ["precreate"]


def test_patience_is_a_time(run: Run) -> None:
    expect_refusal(run(*HANGS, "--watchdog", "soon", ranks=1), "--watchdog", "soon")
    expect_refusal(run(*HANGS, "--give-up=-1s", ranks=1), "--give-up")


@pytest.mark.parametrize("name", ["ENOSPC", "EDQUOT", "ESTALE", "EIO", "EACCES"])
def test_errors_of_the_file_system_in_the_middle(
    run: Run, root: Path, tmp_path: Path, injection: Path, name: str
) -> None:
    """Those after which nothing can succeed end the run; others are counted, and it goes on."""
    number = getattr(errno, name)
    base = ["--set", "datasets=2", "--set", "objects=100", "--set", "iterations=100", "--posix.root", str(root)]
    inject = injected(injection, "create", 250, number)  # 200 are made before the benchmark
    done = run(*base, "--out", str(tmp_path / "out"), ranks=2, environment=inject)
    assert done.code == 1
    result = json.loads((tmp_path / "out" / "run.json").read_text())
    benchmark = result["phases"][1]
    if name in ("EIO", "EACCES"):
        assert result["status"] == "complete" and benchmark["errors_by_operation"]["create"] == 2
        assert benchmark["first_errors"][0]["error"] == os.strerror(number)
        assert any(os.strerror(number) in message for message in done.messages)
        base += ["--set", "phases=cleanup"]
    else:
        assert len(done.messages) == 1 and os.strerror(number) in done.messages[0], done.err
        assert result["status"] == "interrupted" and os.strerror(number) in result["error"]
        assert benchmark["interrupted"] and benchmark["operations"] > 100
    assert run(*base, "--sweep", ranks=2).code == 0
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("name", ["ENOTEMPTY", "EBUSY"])
def test_a_directory_that_nfs_keeps_for_a_while(
    run: Run, root: Path, tmp_path: Path, injection: Path, name: str
) -> None:
    """What somebody has open stays as .nfs and a number, and its directory with it: the run goes on, says where, and
    the rest is swept later."""
    base = ["--set", "datasets=2", "--set", "objects=10", "--set", "iterations=10", "--posix.root", str(root)]
    done = run(
        *base,
        "--out",
        str(tmp_path / "out"),
        ranks=2,
        environment=injected(injection, "rmdir", 2, getattr(errno, name)),
    )
    assert done.code == 1
    result = json.loads((tmp_path / "out" / "run.json").read_text())
    cleanup = result["phases"][2]
    assert result["status"] == "complete" and cleanup["errors_by_operation"] == {"rmdir": 2}
    first = cleanup["first_errors"][0]
    assert (first["op"], first["error"]) == ("rmdir", os.strerror(getattr(errno, name))) and first["name"] in (
        "0_1",
        "1_1",
    )
    assert any(f"'{first['name']}'" in message for message in done.messages)
    assert sorted(path.name for path in root.iterdir()) == ["0_1", "1_1", MANIFEST]
    assert run(*base, "--sweep", ranks=2).code == 0
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO], ids=["ESTALE", "EIO"])
def test_a_manifest_that_can_not_be_replaced_stays(
    run: Run, root: Path, tmp_path: Path, injection: Path, number: int
) -> None:
    base = ["--set", "datasets=2", "--set", "objects=10", "--set", "iterations=10", "--posix.root", str(root)]
    done = run(*base, "--out", str(tmp_path / "out"), ranks=2, environment=injected(injection, "rename", 2, number))
    assert (
        done.code == 1
        and len(done.messages) == 1
        and MANIFEST in done.messages[0]
        and os.strerror(number) in done.messages[0]
    ), done.err
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] == "interrupted"
    assert manifest_phase(root) == "precreate" and sorted(root.glob("iocast*")) == [root / MANIFEST]
    assert run(*base, "--sweep", ranks=2).code == 0
    assert list(root.iterdir()) == []


def test_the_wall_clock_may_step(run: Run, root: Path, tmp_path: Path, injection: Path) -> None:
    """Whatever time service corrects it, latencies and phases are as long as they were."""
    arguments = [*SMALL, "--posix.root", str(root), "--trace", "--out", str(tmp_path / "out")]
    began = time.monotonic()
    assert run(*arguments, ranks=2, environment=injected(injection, "clock", 5)).code == 0
    took = time.monotonic() - began
    result = json.loads((tmp_path / "out" / "run.json").read_text())
    assert result["status"] == "complete" and len(result["phases"]) == 3
    for phase in result["phases"]:
        assert phase["start_seconds"] >= 0 and phase["seconds"] > 0
        assert phase["start_seconds"] + phase["seconds"] < took
        assert all(0 < row["min"] <= row["max"] <= phase["seconds"] for row in phase["latency"].values())
    with h5py.File(tmp_path / "out" / "ops.h5") as file:
        assert (
            (file["start_ns"][:] >= 0).all()
            and (file["duration_ns"][:] >= 0).all()
            and file["start_ns"][:].max() < took * 1e9
        )
    assert list(root.iterdir()) == []

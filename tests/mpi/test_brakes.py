# SPDX-License-Identifier: Apache-2.0
"""Limits on the load that a run puts on a shared system, and on the numbers that it accepts."""

import json
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest
from bench_runs import MANIFEST, Run, expect_refusal, settings_arguments
from programs import find_program

pytestmark = pytest.mark.usefixtures("launch_check")

DUMMY = ["--backend", "dummy", "--set", "datasets=1"]


@pytest.mark.parametrize("more", ["", "think_time=1ms", "rate=2000/s"])
def test_no_more_operations_a_second_than_allowed(run: Run, more: str) -> None:
    done = run(
        *DUMMY,
        *settings_arguments(f"phases=benchmark objects=30 iterations=30 {more}"),
        "--max-rate",
        "200/s",
        "--json",
        ranks=2,
    )
    assert done.code == 0, done.err
    (phase,) = done.json["phases"]
    assert phase["operations"] == 240 and done.json["brake"] == {"max_rate": 200.0}
    assert phase["seconds"] >= 239 / 200 - 0.02
    assert phase["latency"]["stat"]["q50"] < phase["seconds"] / 120 / 2, "the brake is in the latencies"


def test_the_brake_is_in_no_response_time(run: Run) -> None:
    """Of arrivals that come at once: they would queue for half of the run, in the mean."""
    loads = settings_arguments("phases=benchmark objects=50 iterations=50 rate=20000/s")
    done = run(*DUMMY, *loads, "--max-rate", "200/s", "--json", ranks=1)
    (phase,) = done.json["phases"]
    responses = [of["mean"] for name, of in phase["latency"].items() if name.endswith(".response")]
    assert responses and max(responses) < phase["seconds"] / 4, phase


def test_rates_that_hardly_move_are_kept(bench: Path, mpi_environment: dict[str, str]) -> None:
    """The second operation would come after a million years."""
    loads = settings_arguments("phases=benchmark objects=5 iterations=5")
    process = subprocess.Popen(
        [bench, *DUMMY, *loads, "--max-rate", "1e-14/s", "--json"],
        stdout=subprocess.PIPE,
        env=mpi_environment,
        text=True,
    )
    time.sleep(1)
    process.terminate()
    answer = json.loads(process.communicate(timeout=120)[0])
    assert sum(phase["operations"] for phase in answer["phases"]) <= 1, answer


def test_a_sweep_keeps_to_the_rate(run: Run, root: Path) -> None:
    command = [*settings_arguments("datasets=1 objects=20 iterations=20"), "--posix.root", str(root)]
    assert run(*command, "--stop-latency", "create:1ns", ranks=2).code == 1
    began = time.monotonic()
    done = run(*command, "--sweep", "--max-rate", "100/s", ranks=2)
    assert done.code == 0, done.err
    assert time.monotonic() - began > 80 / 100 - 0.02, "each rank looks for 20 old and 20 new objects"
    assert list(root.iterdir()) == []


def test_more_objects_than_allowed_are_refused(run: Run, root: Path) -> None:
    command = [*settings_arguments("datasets=1 objects=30 iterations=5"), "--posix.root", str(root), "--max-objects"]
    expect_refusal(run(*command, "59", ranks=2), "60 objects", "--max-objects allows 59")
    assert list(root.iterdir()) == []
    assert run(*command, "60", ranks=2).code == 0


def test_a_slow_operation_ends_the_run(run: Run, tmp_path: Path) -> None:
    slow = [
        *DUMMY,
        *settings_arguments("objects=500 iterations=500 repeats=1000"),
        "--dummy.stall",
        "300ms",
        "--dummy.stall_every",
        "50",
    ]
    for limit in ("any:100ms", "stat:9s,create:100ms,read:9s,unlink:9s"):
        out = tmp_path / limit[:4]
        done = run(*slow, "--stop-latency", limit, "--out", str(out), ranks=2)
        assert done.code == 1 and len(done.messages) == 1 and "--stop-latency" in done.messages[0], done.err
        assert '"interrupted"' in (out / "run.json").read_text()
    assert run(*DUMMY, *settings_arguments("objects=20 iterations=20"), "--stop-latency", "any:20s").code == 0


def test_a_file_system_that_is_too_full_is_left_alone(run: Run, root: Path) -> None:
    expect_refusal(
        run(
            *settings_arguments("datasets=1 objects=5 iterations=5"), "--posix.root", str(root), "--min-free", "8000TiB"
        ),
        "of --min-free",
        "nothing was made",
    )
    assert list(root.iterdir()) == []


def test_a_file_system_that_fills_up_ends_the_run(run: Run, root: Path) -> None:
    """Others fill it, once the run has begun."""
    command = [
        *settings_arguments("datasets=1 objects=100 iterations=100 repeats=1000 think_time=1ms"),
        "--posix.root",
        str(root),
    ]
    free = os.statvfs(root).f_bavail * os.statvfs(root).f_frsize

    def fill() -> None:
        while not (root / MANIFEST).exists():
            time.sleep(0.01)
        with (root.parent / "others").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 1 << 30)

    others = threading.Thread(target=fill, daemon=True)
    others.start()
    done = run(*command, "--min-free", f"{free - (1 << 29)}B")
    others.join(10)
    (root.parent / "others").unlink()
    assert done.code == 1 and "--min-free" in done.messages[0] and len(done.messages) == 1, done.err
    assert f"'{root}' still holds what it made" in done.err and "--sweep removes them" in done.err
    assert (root / MANIFEST).exists()
    assert run(*command, "--sweep").code == 0
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--max-rate", "0/s", ("--max-rate", "above 0")),
        ("--max-rate", "100", ("--max-rate",)),
        ("--max-objects", "0", ("--max-objects", "at least 1")),
        ("--min-free", "many", ("--min-free",)),
        ("--stop-latency", "creat:5s", ("Did you mean 'create'",)),
        ("--stop-latency", "create", ("create:5s",)),
        ("--stop-latency", "create:0s", ("from 1 ns",)),
    ],
)
def test_brakes_that_are_none(run: Run, option: str, value: str, words: tuple[str, ...]) -> None:
    expect_refusal(run(*DUMMY, option, value), *words)


# ---- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", ["-1", "18446744073709551616", "1.5", "1e3", "nan"])
def test_both_executors_refuse_the_same_seeds(run: Run, seed: str) -> None:
    expect_refusal(run(*DUMMY, f"--seed={seed}"), f"'{seed}'", "18446744073709551615")
    simulator = find_program("iocast-sim")
    assert simulator is not None
    done = subprocess.run([simulator, "--platform", "local", f"--seed={seed}"], capture_output=True, text=True)
    assert done.returncode == 2 and f"--seed can't be '{seed}'" in done.stderr


def test_both_executors_take_all_seeds(run: Run, tmp_path: Path) -> None:
    simulator = find_program("iocast-sim")
    assert simulator is not None
    for seed in ("0", "9007199254740993", "18446744073709551615"):
        common = [
            "--workload",
            "operation-mix",
            *settings_arguments("files=5 operations=20"),
            "--seed",
            seed,
            "--dump-ops",
        ]
        assert run("--backend", "dummy", *common, str(tmp_path / f"real-{seed}")).code == 0
        subprocess.run(
            [simulator, "--platform", "local", *common, tmp_path / f"simulated-{seed}"], check=True, capture_output=True
        )
        assert (tmp_path / f"real-{seed}" / "ops.0").read_bytes() == (
            tmp_path / f"simulated-{seed}" / "ops.0"
        ).read_bytes()
    assert (tmp_path / "real-0" / "ops.0").read_bytes() != (tmp_path / f"real-{seed}" / "ops.0").read_bytes()


def test_workloads_beyond_all_counting_are_refused(run: Run) -> None:
    simulator = find_program("iocast-sim")
    assert simulator is not None
    for settings in (
        "objects=32768 datasets=1 iterations=0 object_size=562949953421312B",
        "objects=1000000000000 datasets=1000000000 iterations=0",
    ):
        arguments = settings_arguments(settings)
        expect_refusal(run("--dry-run", *arguments), "2^63")
        done = subprocess.run([simulator, "--platform", "local", *arguments], capture_output=True, text=True)
        assert done.returncode == 2 and "2^63" in done.stderr, done.stderr


def test_a_data_set_keeps_the_seed_that_it_was_made_with(run: Run, root: Path) -> None:
    """Sizes are drawn: a run with another seed would look for other objects."""
    command = [
        "--workload",
        "operation-mix",
        *settings_arguments("files=5 operations=20"),
        "--posix.root",
        str(root),
        "--set",
    ]
    assert run(*command, "phases=precreate", "--seed", "3").code == 0
    expect_refusal(run(*command, "phases=benchmark", "--set", "seed=4"), "seed = 3 (requested: 4)")
    assert run(*command, "phases=benchmark", "--seed", "4").code == 0
    assert run(*command, "phases=cleanup").code == 0
    assert list(root.iterdir()) == []

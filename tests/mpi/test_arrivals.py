# SPDX-License-Identifier: Apache-2.0
"""Arrivals of real runs: when operations really start, and what is counted from when."""

import json
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
import sharpness
from bench_runs import Run, expect_refusal
from programs import find_program
from scipy.stats import kstest, kstwo

FALSE_ALARM = 1e-6
WORK = ["--backend", "dummy", "--workload", "md-workbench", "--set", "datasets=1", "--set", "phases=benchmark"]


def starts(out: Path) -> list[np.ndarray]:
    """Start of every operation in seconds since the start of the phase, rank by rank."""
    with h5py.File(out / "ops.h5") as file:
        first, start, kind = file["first_row"][:], file["start_ns"][:], file["kind"][:]
    rows = [slice(int(a), int(b)) for a, b in zip(first[:-1], first[1:], strict=True)]
    assert all(kind[r][0] == 0 and np.count_nonzero(kind[r] == 0) == 1 for r in rows)
    return [(start[r][1:] - start[r][0]) * 1e-9 for r in rows]


def simulated_starts(tmp_path: Path, *settings: str, ranks: int) -> list[np.ndarray]:
    """Starts on a platform where next to nothing takes time: when the operations are meant to start, which nobody's
    scheduler can delay."""
    platform = tmp_path / "nothing.yaml"
    routes = (
        "\n".join(f"  {op}: []" for op in ("stat", "mkdir", "rmdir"))
        + "\n  unlink: [delay: blink]\n  create: {}\n  read: {}\n"
    )
    platform.write_text(
        "schema_version: 1\nstations: {s: {servers: 1}}\ndemands: {blink: {law: constant, value:"
        f" 1ns}}}}\noperations:\n{routes}"
    )
    simulator = find_program("iocast-sim")
    assert simulator is not None
    out = tmp_path / "simulated"
    subprocess.run(
        [simulator, "--platform", platform, *WORK[2:], *settings, "--ppn", str(ranks), "--out", out],
        check=True,
        capture_output=True,
    )
    return starts(out)


def test_poisson_gaps_are_exponential(tmp_path: Path) -> None:
    """Kolmogorov and Smirnov on 2 x 400 gaps at 200/s a rank; one false alarm in a million."""
    by_rank = simulated_starts(
        tmp_path, "--set", "objects=100", "--set", "iterations=100", "--set", "rate=200/s", "--trace", ranks=2
    )
    gaps = np.concatenate([np.diff(np.concatenate(([0.0], s))) for s in by_rank])
    assert len(gaps) == 800
    sharpness.record("distance of distribution functions", kstwo.isf(FALSE_ALARM, len(gaps)) + 0.5 / np.sqrt(len(gaps)))
    assert kstest(gaps, "expon", args=(0, 1 / 200)).pvalue > FALSE_ALARM
    assert not np.allclose(by_rank[0][:50], by_rank[1][:50], atol=1e-4)
    assert kstest(gaps, "expon", args=(0, 1 / 150)).pvalue < FALSE_ALARM, "the test has no power"


def test_both_executors_intend_the_same_starts(run: Run, tmp_path: Path) -> None:
    """The simulator starts exactly when it means to where nothing takes time; the benchmark never earlier, and on time
    whenever the machine gives it a processor: a busy one may delay most operations, but not each."""
    settings = ["--set", "objects=30", "--set", "iterations=30", "--set", "rate=300/s", "--seed", "5", "--trace"]
    real = tmp_path / "real"
    assert run(*WORK, *settings, "--out", str(real), ranks=2).code == 0
    for real_starts, meant in zip(starts(real), simulated_starts(tmp_path, *settings, ranks=2), strict=True):
        late = real_starts - meant
        assert late.min() > -1e-6
        assert late.min() < 2e-3


def test_a_stall_shows_in_response_and_not_in_service(run: Run) -> None:
    """Coordinated omission: 100 beats a second, and one operation in 100 takes 500 ms longer. The 50 operations that
    were meant to start in the meantime waited a quarter of a second on average; to the service time it is one slow
    operation in 100."""
    done = run(
        *WORK, "--set", "objects=50", "--set", "iterations=50", "--set", "rate=100/s", "--set", "arrivals=fixed",
        "--dummy.stall", "500ms", "--dummy.stall_every", "100", "--json", ranks=1,
    )  # fmt: skip
    assert done.code == 0, done.err
    latency = done.json["phases"][0]["latency"]
    operations = [op for op in latency if "." not in op]
    count = {op: latency[op]["count"] for op in operations}
    assert all(latency[f"{op}.response"]["count"] == count[op] for op in operations)
    mean = {tag: sum(count[op] * latency[op + tag]["mean"] for op in operations) / 200 for tag in ("", ".response")}
    assert mean[""] >= 0.005
    # The first of two stalls is followed by 100 operations, half of which are late; the second ends the run.
    assert mean[".response"] >= 0.75 * (2 * 0.5 + 50 * 0.25) / 200 and mean[".response"] > 5 * mean[""]
    assert all(max(0.2, 4 * latency[op]["q95"]) < latency[f"{op}.response"]["q95"] for op in operations)


def test_think_times(run: Run) -> None:
    done = run(*WORK, "--set", "objects=25", "--set", "iterations=25", "--set", "think_time=2ms", "--json", ranks=1)
    phase = done.json["phases"][0]
    assert phase["think_asked_seconds"] == pytest.approx(99 * 0.002, rel=1e-6)
    assert phase["think_actual_seconds"] >= phase["think_asked_seconds"]
    assert "stat.response" not in phase["latency"]
    exponential = run(
        *WORK,
        "--set",
        "objects=25",
        "--set",
        "iterations=25",
        "--set",
        "think_time=2ms",
        "--set",
        "think_law=exponential",
        "--json",
        ranks=1,
    )
    # A sum of 99 exponential times: gamma, whose 10^-6 quantiles are 0.57 and 1.54 times the mean.
    assert 0.57 < exponential.json["phases"][0]["think_asked_seconds"] / (99 * 0.002) < 1.54


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["rate=100/s", "waiting_factor=1"], ("open loop", "leave out rate")),
        (["arrivals=poison"], ("Did you mean 'poisson'",)),
        (["think_law=fix"], ("Did you mean 'fixed'",)),
        (["rate=100"], ("rate", "/s")),
    ],
)
def test_contradictions_are_refused(run: Run, settings: list[str], words: tuple[str, ...]) -> None:
    expect_refusal(run(*WORK, *[w for s in settings for w in ("--set", s)]), *words)


def test_every_workload_takes_them(run: Run) -> None:
    for workload in ("postmark", "operation-mix", "mdtest"):
        described = json.loads(run("--describe", workload, "--json").out)
        assert {"rate", "arrivals", "think_time", "think_law", "waiting_factor"} <= {
            p["name"] for p in described["parameters"]
        }

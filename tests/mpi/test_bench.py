# SPDX-License-Identifier: Apache-2.0
"""iocast-bench as a black box: command line in, JSON and files out."""

import json
import math
import os
import re
import subprocess
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from bench_runs import MANIFEST, SMALL, Run, counts, settings_arguments, total_counts
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from registry import listed

pytestmark = pytest.mark.usefixtures("launch_check")


# What a run does


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_counts_equal_the_footprint_and_the_root_is_empty_afterwards(run: Run, root: Path, ranks: int) -> None:
    plan = run(*SMALL, "--dry-run", "--json", ranks=ranks).json["footprint"]
    done = run(*SMALL, "--posix.root", str(root), "--json", ranks=ranks)
    assert done.code == 0, done.err
    result = done.json
    assert total_counts(result) == plan["operations"]
    assert result["peak_objects"] == plan["peak_objects"] > 0
    assert result["status"] == "complete"
    assert [phase["name"] for phase in result["phases"]] == ["precreate", "benchmark", "cleanup"]
    assert result["placement"]["ranks"] == ranks
    for phase in result["phases"]:
        assert phase["errors"] == 0
        assert phase["operations"] == sum(counts(phase).values())
        assert len(phase["rank_seconds"]) == ranks
        assert phase["seconds"] == max(phase["rank_seconds"])
        assert phase["rate"] == pytest.approx(phase["operations"] / phase["seconds"])
        assert {op: row["count"] for op, row in phase["by_operation"].items()} == counts(phase)
        assert sum(row["rate"] for row in phase["by_operation"].values()) == pytest.approx(phase["rate"])
        timeline = phase["timeline"]
        assert sum(sum(timeline[op]["count"]) for op in counts(phase)) == phase["operations"]
        assert sum(row["seconds"] for row in phase["slowest"]) <= phase["responding_seconds"] * (1 + 1e-9)
        for op, parts in (("create", ("open", "write", "close")), ("read", ("open", "read", "close"))):
            if op in phase["latency"]:
                whole = phase["latency"][op]["mean"]
                assert sum(phase["latency"][f"{op}.{part}"]["mean"] for part in parts) == pytest.approx(whole)
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    ("workload", "settings"),
    [("md-workbench", SMALL), ("hpcs-01", ["--set", "memory=1MiB", "--set", "times=0.5", "--set", "block=64KiB"])],
)
def test_bytes_equal_the_footprint(run: Run, workload: str, settings: list[str]) -> None:
    """By operation and phase, merged over ranks; hpcs-01 has long stretches of accesses that are alike."""
    arguments = ["--workload", workload, *settings, "--backend", "dummy", "--json"]
    plan = run(*arguments, "--dry-run", ranks=2).json["footprint"]
    phases = run(*arguments, ranks=2).json["phases"]
    for key, kinds in (("bytes_written", ("create", "append", "pwrite")), ("bytes_read", ("read", "pread"))):
        assert (
            sum(phase["by_operation"].get(kind, {}).get("bytes", 0) for phase in phases for kind in kinds)
            == plan[key]
            > 0
        )
    for phase in phases:
        for row in phase["by_operation"].values():
            assert "bytes" not in row or row["bytes_per_second"] == pytest.approx(row["bytes"] / phase["seconds"])


def test_the_start_is_on_the_wall_clock(run: Run) -> None:
    before = time.time()
    result = run(*SMALL, "--backend", "dummy", "--json", ranks=2).json
    started = datetime.strptime(result["started"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc).timestamp()
    assert before - 0.001 <= started <= time.time() - result["phases"][-1]["start_seconds"] + 0.001


def test_slow_operations_come_from_all_ranks_longest_first(run: Run) -> None:
    done = run(*SMALL, "--backend", "dummy", "--dummy.delay", "100us", "--json", ranks=4)
    slowest = done.json["phases"][0]["slowest"]
    assert len(slowest) == min(200, 4 * (2 + 2 * 20))
    assert [row["seconds"] for row in slowest] == sorted((row["seconds"] for row in slowest), reverse=True)
    assert {row["rank"] for row in slowest} == {0, 1, 2, 3}


@pytest.mark.parametrize("size", ["0B", "1B", "1MiB", "1048577B", "5MB"])
def test_object_sizes(run: Run, root: Path, size: str) -> None:
    base = ["--posix.root", str(root), "--set", "datasets=1", "--set", "objects=3", "--set", "iterations=3", "--json"]
    base += ["--set", f"object_size={size}"]
    made = run(*base, "--set", "phases=precreate").json
    sizes = {file.stat().st_size for file in root.glob("0_0/*")}
    assert sizes == {made["workload"]["parameters"]["object_size"]}
    assert run(*base, "--set", "phases=benchmark,cleanup").code == 0
    assert list(root.iterdir()) == []


def test_a_short_object_is_an_error_not_a_latency(run: Run, root: Path) -> None:
    base = [*SMALL, "--posix.root", str(root), "--json"]
    run(*base, "--set", "phases=precreate")
    (root / "0_0" / "file-3").write_bytes(b"short")
    done = run(*base, "--set", "phases=benchmark")
    phase = done.json["phases"][0]
    assert done.code == 1
    assert phase["errors_by_operation"] == {"read": 1}
    assert counts(phase) == {"stat": 20, "read": 19, "unlink": 20, "create": 20}
    assert len(done.messages) == 1 and "0_0/file-3" in done.messages[0] and "short read" in done.messages[0]


def test_a_missing_object_is_replaced(run: Run, root: Path) -> None:
    """The hole must not travel on: the object that takes its place is created, and later phases see no error."""
    base = [*SMALL, "--posix.root", str(root), "--json"]
    run(*base, "--set", "phases=precreate", ranks=2)
    (root / "0_0" / "file-3").unlink()
    done = run(*base, "--set", "phases=benchmark", "--set", "repeats=3", ranks=2)
    assert done.code == 1
    errors = [phase["errors_by_operation"] for phase in done.json["phases"]]
    assert errors == [{"stat": 1, "read": 1, "unlink": 1}, {}, {}]
    assert run(*base, "--set", "phases=cleanup", ranks=2).code == 0
    assert list(root.iterdir()) == []


def test_phases_in_runs_of_their_own(run: Run, root: Path) -> None:
    base = [*SMALL, "--posix.root", str(root), "--json"]

    def manifest() -> dict[str, Any]:
        return json.loads((root / MANIFEST).read_text())

    for given, start, objects in (
        ("phases=precreate", 0, range(20)),
        ("phases=benchmark", 10, range(10, 30)),
        ("phases=benchmark repeats=2", 30, range(30, 50)),
        ("phases=benchmark read_only=true", 30, range(30, 50)),
    ):
        done = run(*base, *settings_arguments(given), ranks=3)
        assert done.code == 0, done.err
        assert manifest()["state"] == "ready"
        assert manifest()["position"] == {"start_index": start}
        for dataset in ("0_0", "2_1"):
            assert {file.name for file in (root / dataset).iterdir()} == {f"file-{i}" for i in objects}
    assert counts(done.json["phases"][0]) == {"stat": 60, "read": 60}
    assert run(*base, "--set", "phases=benchmark", "--set", "start_index=30", ranks=3).code == 0
    assert run(*base, "--set", "phases=cleanup", ranks=3).code == 0
    assert list(root.iterdir()) == []


def test_a_time_limit_leaves_a_data_set_that_a_later_run_goes_on_with(run: Run, root: Path) -> None:
    chosen = ["--posix.root", str(root), "--json", *settings_arguments("datasets=2 object_size=10B")]
    limited = settings_arguments("objects=4000 iterations=4000 repeats=2 most_seconds=50ms")
    done = run(*chosen, *limited, "--set", "phases=precreate,benchmark", ranks=3)
    assert done.code == 0, done.err
    first, first_rest, second, second_rest = done.json["phases"][1:]
    assert [p["name"] for p in (first, first_rest, second, second_rest)] == ["benchmark", "benchmark-rest"] * 2
    assert first["cut_ranks"] == 3
    went_on = 0
    for benchmark, rest in ((first, first_rest), (second, second_rest)):
        for op in ("stat", "read", "unlink", "create"):
            made = counts(benchmark)[op] + counts(rest).get(op, 0)
            assert made > 0 and made % (3 * 2) == 0  # whole iterations of all ranks, each in both datasets
        went_on += made // (3 * 2)
    manifest = json.loads((root / MANIFEST).read_text())
    assert manifest["state"] == "ready" and manifest["position"] == {"start_index": went_on}
    later = run(
        *chosen, *settings_arguments("objects=4000 iterations=50"), "--set", "phases=benchmark,cleanup", ranks=3
    )
    assert later.code == 0, later.err
    assert all(phase["errors"] == 0 for phase in later.json["phases"])
    assert list(root.iterdir()) == []


def test_dumped_operations_are_those_of_the_run(run: Run, root: Path, tmp_path: Path) -> None:
    dump = tmp_path / "ops"
    done = run(*SMALL, "--posix.root", str(root), "--dump-ops", str(dump), "--json", ranks=2)
    assert done.code == 0, done.err
    seen: dict[str, int] = {}
    for rank in range(2):
        for line in (dump / f"ops.{rank}").read_text().splitlines():
            op = line.split()[0]
            seen[op] = seen.get(op, 0) + 1
    assert seen.pop("phase") == 2 * 3
    assert seen == total_counts(done.json)


# Files


def test_the_run_directory_holds_what_was_printed(run: Run, root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(*SMALL, "--posix.root", str(root), "--out", str(out), "--label", "mine", "--json", ranks=2)
    result = json.loads((out / "run.json").read_text())
    assert result == done.json
    assert sorted(file.name for file in out.iterdir()) == ["latency.hlog", "run.json"]
    assert result["label"] == "mine" and result["source"] == "bench" and result["schema_version"] == 1
    assert result["backend"] == {"name": "posix", "options": {"root": str(root), "direct": False}}
    assert result["environment"]["filesystem"]["type"] not in ("", "unknown")
    assert str(root).startswith(result["environment"]["filesystem"]["mount_point"])
    assert result["environment"]["cpus_per_node"] == len(os.sched_getaffinity(0))
    slice_seconds = result["environment"]["timeslice_seconds"]
    if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (6, 6):
        assert slice_seconds is None
    else:
        ticks = slice_seconds / time.clock_getres(6)  # CLOCK_MONOTONIC_COARSE, which Python has no name for
        assert abs(ticks - round(ticks)) < 1e-6 and 7e-4 < slice_seconds <= 14e-3
    everywhere = re.findall(r"Cpus_allowed_list:\s*(\S+)", Path("/proc/self/status").read_text())
    assert result["environment"]["bindings"] == everywhere * 2  # the tests' ranks are not bound to anything


def test_ranks_that_share_a_cpu_are_warned_of(
    bench: Path, mpirun: Callable[[int], list[str]], mpi_environment: dict[str, str], root: Path
) -> None:
    """Bound after the launcher, which may use all of them."""
    cpus = sorted(os.sched_getaffinity(0))
    command = [*mpirun(2), "taskset", "-c", str(cpus[0]), str(bench), *SMALL, "--posix.root", str(root), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=mpi_environment, timeout=120)
    result = json.loads(done.stdout)
    assert result["environment"]["bindings"] == [str(cpus[0])] * 2
    crowded = [one for one in result["warnings"] if f"are bound to 1 of its {len(cpus)} CPUs" in one]
    assert len(crowded) == (len(cpus) > 1) and all("--bind-to none" in one for one in crowded)


def test_the_log_read_by_the_reference_decoder_agrees(run: Run, root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(*SMALL, "--posix.root", str(root), "--set", "repeats=2", "--out", str(out), "--json", ranks=2)
    expected = {}
    for phase in done.json["phases"]:
        for tag, row in phase["latency"].items():
            expected[f"{phase['name']}.{tag}", round(phase["start_seconds"], 3)] = row
    reference = HdrHistogram(1, 86_400_000_000_000, 3)
    reader = HistogramLogReader(str(out / "latency.hlog"), reference)
    seen = 0
    while (histogram := reader.get_next_interval_histogram()) is not None:
        start = round(histogram.get_start_time_stamp() / 1000, 3)
        row = expected[histogram.get_tag(), start]
        assert histogram.get_total_count() == row["count"]
        for key, share in (("q50", 0.5), ("q95", 0.95), ("q99", 0.99), ("max", 1.0)):
            # The reference rounds share x count to the nearest rank, we go up to the rank that holds the whole share.
            percentile = 100 * math.ceil(share * row["count"]) / row["count"]
            # three significant digits: either side may be off by half a bucket of 0.1 %, and by 1 ns of rounding
            assert histogram.get_value_at_percentile(percentile) == pytest.approx(row[key] * 1e9, rel=1.1e-3, abs=1)
        assert histogram.get_mean_value() == pytest.approx(row["mean"] * 1e9, rel=1e-3)
        seen += 1
    assert seen == len(expected) > 0


def test_the_table_is_aligned(run: Run, root: Path) -> None:
    done = run(*SMALL, "--posix.root", str(root), ranks=2)
    header = [line for line in done.out.splitlines() if line.strip().startswith("operation")]
    assert len(header) == 3
    rows = [line for line in done.out.splitlines() if re.match(r"  +\.?[a-z]+ +\d", line)]
    assert len(rows) == (1 + 4) + (4 + 4 + 1 + 1) + 2  # precreate, benchmark, cleanup
    assert {len(row) for row in rows + header} == {len(header[0])}


# Quantities


counts_memory = pytest.mark.not_sanitized(
    reason="AddressSanitizer keeps memory of its own, and freed memory for a while"
)


@counts_memory
def test_a_small_run_takes_little_memory(run: Run, root: Path) -> None:
    assert run(*SMALL, "--posix.root", str(root), "--json", ranks=2).json["peak_rss_bytes"] < 64 << 20


@counts_memory
def test_memory_does_not_grow_with_the_operations(run: Run) -> None:
    peaks = []
    for objects in (1_000, 1_000_000):
        sets = ["--set", "datasets=1", "--set", f"objects={objects}", "--set", f"iterations={objects}"]
        done = run("--backend", "dummy", *sets, "--json")
        assert done.code == 0, done.err
        peaks.append(done.json["peak_rss_bytes"])
    assert max(peaks) < 64 << 20
    # 6 million operations more; histograms that reach further cost up to some MiB.
    assert peaks[1] - peaks[0] < 8 << 20


@pytest.mark.parametrize("factor", [0.5, 1.0, 4.0])
def test_waiting_factor(run: Run, factor: float) -> None:
    """Ranks are inside an operation 1/(1+T) of their time (MDWorkbench paper, section 3), T as it really was."""
    ranks = 2
    sets = ["--set", "datasets=1", "--set", "objects=60", "--set", "iterations=60", "--set", f"waiting_factor={factor}"]
    done = run("--backend", "dummy", "--dummy.delay", "2ms", *sets, "--json", ranks=ranks)
    phase = done.json["phases"][1]
    responding, thinking = phase["responding_seconds"], phase["think_actual_seconds"]
    slowest = max(row["max"] for tag, row in phase["latency"].items() if "." not in tag)
    # The last answer of each rank isn't followed by one.
    assert factor * (responding - ranks * slowest) <= phase["think_asked_seconds"] * (1 + 1e-9)
    assert phase["think_asked_seconds"] <= factor * responding * (1 + 1e-9)
    assert thinking >= phase["think_asked_seconds"] * (1 - 1e-9)
    # What is neither is the recording and the naming, microseconds beside milliseconds; a half is for a busy machine.
    assert sum(phase["rank_seconds"]) / 2 <= responding + thinking <= sum(phase["rank_seconds"])


# Contracts over the registries


def described(bench: Path, name: str) -> dict[str, Any]:
    return json.loads(
        subprocess.run([bench, "--describe", name, "--json"], capture_output=True, text=True, check=True).stdout
    )


def test_the_dummy_backend_runs_md_workbench(run: Run) -> None:
    """Backends that keep data are in tests/backends, each with its server."""
    done = run(*SMALL, "--backend", "dummy", "--json", ranks=2)
    assert done.code == 0, done.err
    plan = run(*SMALL, "--dry-run", "--json", ranks=2).json["footprint"]["operations"]
    assert total_counts(done.json) == plan
    for phase in done.json["phases"]:
        for op, parts in (("create", 3), ("read", 3)):
            tags = [tag for tag in phase["latency"] if tag.startswith(op + ".")]
            assert len(tags) == (parts if op in phase["latency"] else 0)
            assert all(phase["latency"][tag]["count"] == phase["latency"][op]["count"] for tag in tags)


@pytest.mark.parametrize("pattern", listed("iocast-bench", "patterns"), ids=lambda entry: entry["name"])
def test_every_pattern_dry_runs(run: Run, bench: Path, pattern: dict[str, Any]) -> None:
    small = settings_arguments(described(bench, pattern["name"])["small"][0])
    done = run("--workload", pattern["name"], *small, "--dry-run", "--json", ranks=2)
    assert done.code == 0, done.err
    assert done.json["footprint"]["operations"]


@pytest.mark.parametrize("kind", ["patterns", "workloads", "backends"])
def test_everything_listed_can_be_described(bench: Path, kind: str) -> None:
    entries = listed("iocast-bench", kind)
    assert entries
    for entry in entries:
        reported = described(bench, entry["name"])
        assert reported["name"] == entry["name"]
        for parameter in reported["parameters"]:
            assert parameter["meaning"] and parameter["unit"]


def test_help_speaks_once_and_teaches_by_example(run: Run) -> None:
    done = run("--help", ranks=3)
    assert done.code == 0 and done.err == ""
    assert done.out.count("Examples:") == 1
    for option in ("--workload", "--set", "--posix.root", "--dummy.delay", "--out", "--dry-run", "--json"):
        assert option in done.out


def test_a_dry_run_touches_nothing(run: Run, root: Path) -> None:
    done = run(*SMALL, "--dry-run", "--posix.root", str(root), "--json", ranks=2)
    assert done.code == 0 and done.json["kind"] == "dry-run"
    assert done.json["footprint"]["peak_objects"] == 2 * 2 * 20
    assert list(root.iterdir()) == []

# SPDX-License-Identifier: Apache-2.0
"""Numbers of imported files that contradict one another, or that mean something else than they seem to."""

import json
from pathlib import Path
from typing import Any

import pytest

from iocast.errors import InputError
from iocast.importers import import_files
from iocast.importers.record import Phase, Record


def imported(directory: Path, text: str, name: str = "file", **stated: Any) -> list[dict[str, Any]]:
    number = len(list(directory.iterdir()))
    file = directory / f"{number}-{name}"
    file.write_text(text)
    return [
        json.loads((path / "run.json").read_text())
        for path in import_files([file], directory / f"run-{number}", None, stated)
    ]


def settled(phases: list[Phase], elapsed: float | None) -> Record:
    for phase in phases:
        phase.origin.setdefault("", "f:1")
    record = Record("r", "tool", phases, ranks=4, elapsed=(elapsed, "f:9") if elapsed is not None else None)
    record.settle()
    return record


@pytest.mark.parametrize(
    ("elapsed", "rate", "words"),
    [
        (100.0, 16_000.0, "is of the 4000000 operations requested"),  # 4,000,000 / 40,000 /s is the elapsed time
        (101.6, 16_000.0, "is of the 4000000 operations requested"),
        (41.0, 40_000.0, ""),  # the operations made / 40,000 /s is
        (60.0, 40_000.0, ""),  # neither: there was a pause, and requested / rate is longer than the whole run
        (300.0, 40_000.0, "may be of the 4000000 operations requested"),  # neither, and both are possible
        (None, 40_000.0, ""),
    ],
)
def test_a_rate_of_the_operations_requested_is_of_those_made(elapsed: float | None, rate: float, words: str) -> None:
    phase = Phase("file-create", rate=40_000.0, operations=1_600_000, seconds=40.0, requested=4_000_000)
    record = settled([phase], elapsed)
    assert phase.rate == pytest.approx(rate) and phase.seconds == pytest.approx(1_600_000 / rate)
    assert len(record.warnings) == bool(words) and all(words in warning for warning in record.warnings)
    record.settle()
    assert phase.rate == pytest.approx(rate) and len(record.warnings) == bool(words)


def test_times_are_compared_with_the_time_between_start_and_end() -> None:
    def parts() -> list[Phase]:
        return [Phase("write", seconds=60.0), Phase("read", seconds=40.0)]

    assert (
        not settled(parts(), 100).warnings and not settled(parts(), 98).warnings and not settled(parts(), 500).warnings
    )
    [warning] = settled(parts(), 50).warnings
    assert "add up to 100 s" in warning and "counts 50 s" in warning and warning.startswith("f:9:")


@pytest.mark.parametrize(
    ("rate", "seconds", "operations", "warns"),
    [(100.0, 10.0, 1000, False), (100.0, 10.0, 1040, False), (100.0, 10.0, 2000, True), (100.0, 10.0, 500, True)],
)
def test_rate_times_time_is_the_count(rate: float, seconds: float, operations: int, warns: bool) -> None:
    record = settled([Phase("read", rate=rate, seconds=seconds, operations=operations)], None)
    assert len(record.warnings) == warns


def test_fio_groups_of_different_numjobs_are_runs_of_their_own(tmp_path: Path) -> None:
    """In JSON and in text; each phase has the options in which it differs."""

    def job(group: int, numjobs: int, rw: str, iops: int) -> dict[str, Any]:
        part = {
            "total_ios": 10 * iops,
            "io_bytes": 40960 * iops,
            "io_kbytes": 40 * iops,
            "runtime": 10_000,
            "iops": iops,
        }
        options = {"rw": rw, "bs": "4k", "numjobs": str(numjobs), "group_reporting": "1", "stonewall": "1"}
        job = {"jobname": f"{rw}{numjobs}", "groupid": group, "error": 0, "job options": options, "read": part}
        return job | {"job_runtime": 10_000 * numjobs}

    jobs = [job(0, 1, "read", 100), job(1, 1, "randread", 90), job(2, 8, "read", 500)]
    runs = imported(tmp_path, json.dumps({"fio version": "fio-3.36", "jobs": jobs}))
    assert [(run["placement"]["ranks"], [p["rate"] for p in run["phases"]]) for run in runs] == [
        (1, [100, 90]),
        (8, [500]),
    ]
    assert [phase["options"]["rw"] for phase in runs[0]["phases"]] == ["read", "randread"]
    assert runs[0]["workload"]["parameters"]["bs"] == "4k" and "rw" not in runs[0]["workload"]["parameters"]


@pytest.mark.parametrize("numjobs", [1, 4])
def test_fio_of_several_hosts_counts_the_jobs_of_each(numjobs: int, tmp_path: Path) -> None:
    part = {"total_ios": 1000, "io_bytes": 4096000, "io_kbytes": 4000, "runtime": 10_000, "iops": 100.0}
    options = {"rw": "read", "numjobs": str(numjobs), "group_reporting": "1"}
    one = {"groupid": 0, "error": 0, "job options": options, "read": part, "job_runtime": 10_000 * numjobs}
    stats = [one | {"jobname": "w", "hostname": host} for host in ("a", "b")]
    stats.append(one | {"jobname": "All clients", "read": part | {"total_ios": 2000}})
    [run] = imported(tmp_path, json.dumps({"fio version": "fio-3.36", "client_stats": stats}))
    assert (run["placement"]["ranks"], run["placement"]["nodes"]) == (2 * numjobs, 2)
    assert run["phases"][0]["operations"] == 2000


def test_the_sum_of_fio_clients_in_text_is_not_added_to_its_parts(tmp_path: Path) -> None:
    def entry(name: str, jobs: int, count: int) -> str:
        return (
            f"{name}: (groupid=0, jobs={jobs}): err= 0: pid=1: Mon Jan  1 00:00:00 2024\n"
            f"  read: IOPS={count // 10}, BW=10.0MiB/s (10.5MB/s)(100MiB/10000msec)\n"
            f"     issued rwts: total={count},0,0,0 short=0,0,0,0 dropped=0,0,0,0\n"
        )

    text = entry("<a> w", 1, 20_000) + entry("<b> w", 1, 30_000) + entry("All clients", 2, 50_000)
    [run] = imported(tmp_path, f"fio-3.36\n{text}\nRun status group 0 (all jobs):\n")
    assert (run["placement"]["ranks"], run["placement"]["nodes"], run["phases"][0]["rate"]) == (2, 2, 5000)


def test_parameters_of_lustre_are_apart(tmp_path: Path) -> None:
    """lctl get_param prints several; requests are counted once; what falls is no snapshot of the same."""

    def block(server: int, time: float, count: int) -> str:
        return (
            f"mdt.fs-MDT000{server}.md_stats=\nsnapshot_time {time:.9f} secs.nsecs\n"
            f"elapsed_time {time - 1000:.9f} secs.nsecs\nopen {count} samples [usecs] 1 2 3\n"
        )

    runs = imported(tmp_path, block(0, 1100.0, 500) + block(1, 1100.004, 700), ranks=4)
    assert sorted(run["phases"][0]["rate"] for run in runs) == pytest.approx([5, 7], rel=1e-3)
    twice = block(0, 1100.0, 500) + block(1, 1100.004, 700) + block(0, 1110.0, 600) + block(1, 1110.004, 900)
    assert sorted(run["phases"][0]["rate"] for run in imported(tmp_path, twice, ranks=4)) == pytest.approx([10, 20])
    service = (
        "mds.MDS.mdt.stats=\nsnapshot_time 1100.0 secs.nsecs\nelapsed_time 100.0 secs.nsecs\n"
        "req_waittime 500 samples [usecs] 1 2 3\nreq_qdepth 500 samples [reqs] 0 1 2\n"
        "req_active 500 samples [reqs] 1 2 3\n"
        "req_timeout 500 samples [secs] 1 2 3\nreqbuf_avail 900 samples [bufs] 1 2 3\n"
        "mds_getattr 500 samples [usecs] 1 2 3\n"
    )
    [run] = imported(tmp_path, service, ranks=4)
    assert run["phases"][0]["rate"] == 5
    nameless = "".join(block(0, 1100.0 + i, count).partition("\n")[2] for i, count in enumerate((500, 400)))
    with pytest.raises(InputError, match="several servers"):
        imported(tmp_path, nameless, ranks=4)

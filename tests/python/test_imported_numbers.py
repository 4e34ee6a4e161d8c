# SPDX-License-Identifier: Apache-2.0
"""Numbers of imported files that contradict one another, or that mean something else than they seem to."""

import json
from pathlib import Path
from typing import Any

import pytest

from programs import REPOSITORY

from iocast.calibrate.rates import calibrate_rates
from iocast.errors import InputError
from iocast.importers import import_files
from iocast.importers.record import Latency, Phase, Record
from iocast.importers.series import is_series
from iocast.runs.run_directory import Run, group

SAMPLES = REPOSITORY / "tests" / "samples"


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


@pytest.mark.parametrize("reverse", [False, True])
def test_two_files_are_begin_and_end(reverse: bool, tmp_path: Path) -> None:
    """Snapshots of one server are the load between them, in a file or in a file each, whichever is named first, and
    with the time since they were cleared where that was at the same moment. Of two servers each file is by itself."""

    def snapshot(name: str, time: float, count: int, more: str = "") -> Path:
        text = f"snapshot_time {time:.6f} secs.nsecs\n{more}open {count} samples [usecs] 1 2 {count}\n"
        (tmp_path / name).write_text(text)
        return tmp_path / name

    files = [snapshot("begin", 1000, 500), snapshot("end", 1010, 900)]
    whole = imported(tmp_path, "".join(file.read_text() for file in files), ranks=4)
    runs = import_files(files[::-1] if reverse else files, tmp_path / "parts", None, {"ranks": 4})
    [phase] = [json.loads((run / "run.json").read_text())["phases"][0] for run in runs]
    assert (phase["rate"], phase["seconds"]) == (40, 10) == (whole[0]["phases"][0]["rate"], 10)
    assert not is_series(files)
    since, cleared = (
        [snapshot(f"{name}-{n}", 1000 + n, 500, f"elapsed_time {100 + more * n}.0 secs.nsecs\n") for n in range(2)]
        for name, more in (("since", 1), ("cleared", 5))
    )
    other = tmp_path / "other"
    other.write_text("mdt.fs-MDT0001.md_stats=\n" + files[1].read_text())
    assert not is_series(since) and is_series(cleared) and is_series([files[0], other])


@pytest.mark.parametrize(("tool", "file"), [("lustre", "md_stats.txt"), ("nfs", "mountstats.txt")])
def test_nothing_is_forecast_from_an_observed_load(tool: str, file: str, tmp_path: Path) -> None:
    """It says what was requested, and not what could have been served."""
    runs = import_files([SAMPLES / tool / file], tmp_path / "run", None, {"ranks": 4, "nodes": 4})
    with pytest.raises(InputError, match="is a load that was observed.*nothing follows"):
        calibrate_rates(group([Run(run, "observed") for run in runs]), "queue", 0, lambda *_: None)
    with pytest.raises(InputError, match="is a load that was observed.*how many ranks made it is not known"):
        group([Run(run, "observed") for run in import_files([SAMPLES / tool / file], tmp_path / "without")])


@pytest.mark.parametrize(("limit", "held"), [("", False), (" -target 100", True), (" -target 1000", False)])
def test_a_limit_that_was_reached_set_the_rate_of_ycsb(limit: str, held: bool, tmp_path: Path) -> None:
    text = (SAMPLES / "ycsb" / "workload-a.txt").read_text().replace(" -threads 8", f" -threads 8{limit}")  # 98.9/s
    file = tmp_path / "ycsb.txt"
    file.write_text(text)
    [path] = import_files([file], tmp_path / "run")
    run = Run(path, "run")
    assert any("-target 100 held this run back" in warning for warning in run.record.warnings) == held
    if held:
        with pytest.raises(InputError, match=r"held back by a limit of its tool \(100/s\)"):
            calibrate_rates(group([run]), "queue", 0, lambda *_: None)
    else:
        assert run.max_rate == 0


@pytest.mark.parametrize(
    ("options", "held"),
    [({"rate_iops": "1k"}, True), ({"rate_iops": "9k"}, False), ({"rate_iops": "1000", "rw": "randrw"}, False),
     ({}, False)],
)  # fmt: skip
def test_a_limit_that_was_reached_set_the_rate_of_fio(options: dict[str, str], held: bool, tmp_path: Path) -> None:
    """A single number is of reads and of writes."""
    document = json.loads((SAMPLES / "fio" / "version-2.json").read_text())
    document["jobs"][0]["job options"] |= options  # 1000/s
    [run] = imported(tmp_path, json.dumps(document), "fio.json", ranks=None)
    assert ("brake" in run) == held and run["phases"][0]["rate"] == 1000


def test_a_mount_of_nfs_is_the_load_between_its_snapshots_or_since_it_was_mounted(tmp_path: Path) -> None:
    """A wait for a slot and the way to the server are apart; what counts less is another client's."""
    text = (SAMPLES / "nfs" / "mountstats.txt").read_text()
    first, second = ("device filer" + part for part in text.split("device filer")[1:])
    [run] = imported(tmp_path, text, ranks=1)
    phase = run["phases"][0]
    assert (phase["seconds"], phase["operations"]) == (20, 200 + 1600 + 20 + 200 + 200 + 2000 + 200)
    assert phase["latency"]["pwrite"]["mean"] == pytest.approx((27.680 - 6.560) / 1600)
    assert phase["latency"]["pwrite.queue"]["mean"] == pytest.approx(16.0 / 1600)
    assert phase["latency"]["pwrite.trip"]["mean"] == pytest.approx(4.8 / 1600)
    assert phase["bytes"] == 4194304 - 2097152 + 25165824 - 8388608
    [run] = imported(tmp_path, first, ranks=1)
    assert run["phases"][0]["seconds"] == 86400
    other = second.replace("filer:/export/home mounted on /home", "filer:/export/work mounted on /work")
    assert len(imported(tmp_path, first + other, ranks=1)) == 2
    without = "".join(line for line in first.splitlines(keepends=True) if "bytes:" not in line)
    [run] = imported(tmp_path, without + second, ranks=1)
    assert run["phases"][0].get("bytes") is None, "bytes since the mount are not of the time between the snapshots"
    with pytest.raises(InputError, match="another order"):
        imported(tmp_path, second + first, ranks=1)
    with pytest.raises(InputError, match="pread of filer:/export/home on /home counts less than in line"):
        imported(tmp_path, first + second.replace("READ: 400 400", "READ: 100 100"), ranks=1)


IOR = """IOR-3.3.0: MPI Coordinated Test of Parallel I/O
Began               : Tue Mar 20 10:00:00 2018
Command line        : ior -w -t 1m -b 1g
Options:
nodes               : 2
tasks               : 8
xfersize            : 1 MiB
blocksize           : 1 GiB

access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
write     {rate}     1048576    1024.00    0.001463   174.62     0.001      {total}    0
Finished            : Tue Mar 20 {end} 2018
"""
MDTEST = """mdtest-3.3.0 was launched with 4 total task(s) on 2 node(s)
Command line used: mdtest -n 1000 {options}
4 tasks, 4000 files
SUMMARY rate: (of 1 iterations)
   File creation     :   {rate}   {rate}   {rate}   0.000
   File stat         :   900.000  900.000  900.000  0.000
-- finished at 11/08/2018 13:01:40 --
"""


@pytest.mark.parametrize(
    ("rate", "words"),
    [("-327.68", "negative"), ("46,91", "comma"), ("nan", "no measurement"), ("inf", "no measurement")],
)
@pytest.mark.parametrize("tool", [IOR, MDTEST])
def test_a_row_that_can_not_be_is_named(tool: str, rate: str, words: str, tmp_path: Path) -> None:
    """It is refused or left out with its value; never blamed on a file cut off."""
    text = tool.format(rate=rate, total="174.62", end="10:03:00", options="")
    try:
        reasons = [" ".join(run["warnings"]) for run in imported(tmp_path, text)]
    except InputError as error:
        reasons = [str(error)]
        assert not (tmp_path / "run-0").exists()
    assert all(rate in reason and words in reason and "cut off" not in reason for reason in reasons)


def test_ior_is_held_against_its_own_clock(tmp_path: Path) -> None:
    [run] = imported(tmp_path, IOR.format(rate="46.91", total="174.62", end="10:03:00"))
    assert not run["warnings"]
    [run] = imported(tmp_path, IOR.format(rate="46.91", total="174.62", end="10:01:29"))
    assert "clock counts 89 s" in " ".join(run["warnings"])


def test_notes_inside_the_json_of_ior_are_read_past(tmp_path: Path) -> None:
    result = {"access": "write", "bwMiB": 100.0, "totalTime": 8.0, "xferKiB": 1024}
    test = {"Options": {"tasks": 8, "nodes": 2}, "Results": [[result]]}
    document = json.dumps({"Command line": "ior", "tests": [test]}, indent=1)
    noisy = document.replace('"Results": [', '"Results": [\nCommencing write performance test: Mon Oct  8 2018')
    assert [run["phases"] for run in imported(tmp_path, noisy)] == [
        run["phases"] for run in imported(tmp_path, document)
    ]
    with pytest.raises(InputError, match="'nan' stands where a number") as refused:
        imported(tmp_path, document.replace("100.0", "nan"))
    assert "cut off" not in str(refused.value)


@pytest.mark.parametrize(("options", "warns"), [("", True), ("-C -T", True), ("-N 2", False), ("-N2 -F", False)])
def test_mdtest_without_a_shift_of_ranks_may_be_answered_by_caches(options: str, warns: bool, tmp_path: Path) -> None:
    [run] = imported(tmp_path, MDTEST.format(rate="500.0", options=options))
    assert ("cache" in " ".join(run["warnings"])) == warns


@pytest.mark.parametrize(
    ("more", "warns"),
    [
        ({"potential_caching": [1]}, True),
        ({"potential_caching": [0]}, False),
        ({"host_memory_GB": [256.0], "data_size_per_host_GB": 98.0}, True),
        ({"host_memory_GB": [256.0], "data_size_per_host_GB": 980.0}, False),
    ],
)
def test_dlio_reports_that_hosts_may_cache(more: dict[str, Any], warns: bool, tmp_path: Path) -> None:
    metric = {"train_throughput_samples_per_second": [30.0, 50.0]}
    [run] = imported(tmp_path, json.dumps({"num_accelerators": 4, "metric": metric} | more, indent=1))
    assert ("cache" in " ".join(run["warnings"])) == warns


@pytest.mark.parametrize("kept", ["save", "load", "save load"])
def test_checkpoints_of_dlio_are_phases_of_binary_gigabytes(kept: str, tmp_path: Path) -> None:
    document = json.loads((SAMPLES / "dlio" / "checkpoint.json").read_text())
    document["metric"] = {key: n for key, n in document["metric"].items() if key.split("_")[0] in kept.split()}
    [run] = imported(tmp_path, json.dumps(document, indent=1))
    expected = {"save": ("checkpoint", 8.0, 12.25 * 2**30), "load": ("restore", 4.0, 24.5 * 2**30)}
    found = [(p["name"], p["seconds"], p["bytes_per_second"]) for p in run["phases"]]
    assert found == [expected[one] for one in kept.split()]
    for phase in run["phases"]:
        assert phase["accelerators"] == {"count": 8, "bytes_per_second": phase["bytes_per_second"]}


def test_a_latency_of_zero_is_missing() -> None:
    phase = Phase("read", rate=10.0, latency={"pread": Latency(5, {"min": 0.0, "mean": 0.0, "max": 0.0})})
    phase.latency["stat"] = Latency(5, {"min": 0.0, "mean": 0.1, "max": 0.2})
    record = settled([phase], None)
    assert phase.latency["pread"].known == {} and "phases[].latency.pread" in record.missing
    assert phase.latency["stat"].known["min"] == 0


@pytest.mark.parametrize("second", ["WRITE", "READ"])
def test_calls_of_elbencho_that_print_no_command_are_apart(second: str, tmp_path: Path) -> None:
    """The title is printed once a call."""
    title = "OPERATION RESULT TYPE        FIRST DONE  LAST DONE\n========= ====\n"
    rows = "{} Elapsed ms : 9900 {}\n          IOPS : 640 {}\n          Throughput MiB/s : 10 10\n---\n"
    text = title + rows.format("WRITE", 10000, 640) + title + rows.format(second, 20000, 320)
    runs = imported(tmp_path, text, ranks=16, nodes=1)
    assert [(run["phases"][0]["rate"], run["phases"][0]["seconds"]) for run in runs] == [(640, 10), (320, 20)]


def test_live_files_of_elbencho_may_begin_with_a_date(tmp_path: Path) -> None:
    rows = "Label,Phase,RuntimeMS,Rank,MixType,Done%,DoneBytes,MiB/s,IOPS,Entries,Entries/s,Active,CPU,Service,\n"
    row = ",WRITE,5000,Total,,33,536870912,102,1638,0,0,8,3,,\n"
    old, new = rows + row, f"ISO Date,{rows}2025-01-01T00:00:00+0000,{row}"
    assert [run["phases"] for run in imported(tmp_path, old)] == [run["phases"] for run in imported(tmp_path, new)]


def test_an_outer_summary_of_io500_with_other_numbers_is_named(tmp_path: Path) -> None:
    line = "[RESULT]    mdtest-easy-write       {} kIOPS : time 324.936 seconds\n"
    line += "[SCORE ] Bandwidth 1 GiB/s : IOPS 1 kiops : TOTAL 1\n"
    inner = tmp_path / "package" / "results" / "2024.01.02-03.04.05"
    inner.mkdir(parents=True)
    (inner / "mdtest-easy-write.txt").write_text(MDTEST.format(rate="500.0", options="-N 2"))
    for number, (outside, warns) in enumerate((("360.0", False), ("360.5", False), ("380.0", True))):
        (inner / "result_summary.txt").write_text(line.format("360.0"))
        (inner.parents[1] / "result_summary.txt").write_text(line.format(outside))
        (path,) = import_files([tmp_path / "package"], tmp_path / f"run-{number}")
        warnings = " ".join(json.loads((path / "run.json").read_text())["warnings"])
        assert ("380000 /s and 360000 /s" in warnings) == warns


@pytest.mark.parametrize(("row", "words"), [('1,4,"5,000"', "between thousands"), ("3,,10", "")])
def test_tables_of_other_programs(row: str, words: str, tmp_path: Path) -> None:
    text = f"sep=,\nnodes,ppn,rate\n{row}\n" if words else "nodes,ranks,rate\n3.0,10.0,500\n"
    if words:
        with pytest.raises(InputError, match=words):
            imported(tmp_path, text, "t.csv")
    else:
        [run] = imported(tmp_path, text, "t.csv")
        assert run["placement"]["ranks_per_node"] == pytest.approx(10 / 3)


def test_a_cell_of_a_table_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        imported(tmp_path, f"nodes,ppn,rate,note\n1,4,500,{'x' * 200_000}\n", "t.csv")


SECONDS = """\
  sec Cur ops   started  finished  avg MB/s  cur MB/s last lat(s)  avg lat(s)
    0       0         0         0         0         0           -           0
    1      15       145       130   519.977       520    0.113882    0.110504
    2      16       276       260   519.974       520    0.182140    0.113790
    3       4       310       306   519.974       520    0.182140    0.113790
"""


def test_ranks_of_a_read_of_rados_are_its_operations_in_flight(tmp_path: Path) -> None:
    """Its log has no line that says how many were requested."""
    log = (SAMPLES / "rados" / "write.txt").read_text()
    summary = log[log.index("Total time run") :].replace("writes", "reads").replace("Write size", "Read size")
    (run,) = imported(tmp_path, SECONDS + summary)
    assert run["placement"]["ranks"] == 16 and run["phases"][0]["name"] == "read"
    contradicts = SECONDS.replace("    2      16 ", "    2      99 ")
    assert imported(tmp_path, contradicts + summary)[0]["placement"]["ranks"] == 15
    with pytest.raises(InputError, match="--ranks"):
        imported(tmp_path, summary)


def test_the_table_of_one_process_of_iozone_is_named(tmp_path: Path) -> None:
    table = "\tIozone: Performance Test of File I/O\n\n     kB  reclen    write  rewrite    read    reread\n"
    with pytest.raises(InputError, match=r":3: this is iozone's table of one process .*iozone -t N"):
        imported(tmp_path, table + "     64       4   372772  1232783  2662899  3588436\n\niozone test complete.\n")


def test_examples_of_a_manual_page_are_no_results(tmp_path: Path) -> None:
    example = (SAMPLES / "mdtest" / "archer-shared-file.log").read_text()
    assert imported(tmp_path, example)
    with pytest.raises(InputError, match="this is a manual page"):
        imported(tmp_path, '.TH mdtest 1 "2010-05-05" "mdtest" "mdtest"\n.SH EXAMPLES\n' + example, "mdtest.1")

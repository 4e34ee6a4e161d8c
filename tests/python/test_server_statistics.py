# SPDX-License-Identifier: Apache-2.0
"""Counters that servers keep of their own requests: what lies between two snapshots, by operation, and what is refused
with its line."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from programs import REPOSITORY

from iocast.errors import InputError
from iocast.importers import all_importers, import_files

SAMPLES = REPOSITORY / "tests" / "samples"
STATISTICS = sorted(name for name, one in all_importers().items() if one.snapshots is not None)


def imported(files: list[Path], out: Path) -> dict[str, dict[str, Any]]:
    """By label the only phase of each run, with the run's warnings."""
    runs = [json.loads((run / "run.json").read_text()) for run in import_files(files, out, None, {"ranks": 4})]
    return {run["label"]: run["phases"][0] | {"warnings": run["warnings"]} for run in runs}


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


SAMPLE = {
    "gluster": "profile.txt",
    "postgresql": "statements.csv",
    "prometheus": "garage.txt",
    "ceph": "mds.txt",
    "lustre": "md_stats.txt",
    "nfs": "mountstats.txt",
    "nfsd": "nfsd.txt",
}
"""Of two snapshots."""


def test_there_are_statistics() -> None:
    assert set(SAMPLE) == set(STATISTICS)


def test_bricks_of_gluster_are_the_load_between_two_profiles(tmp_path: Path) -> None:
    """Cumulative counts alone; of the first brick 347 look-ups in 3 s and 1289 in 8 s, as the file says."""
    bricks = imported([SAMPLES / "gluster" / "profile.txt"], tmp_path / "run")
    assert list(bricks) == ["store1:/mnt/b1", "store1:/mnt/b2"]
    phase = bricks["store1:/mnt/b1"]
    assert phase["seconds"] == 5 and phase["latency"]["lookup"]["count"] == 1289 - 347
    assert phase["latency"]["lookup"]["mean"] == pytest.approx(
        (1289 * 166346.32 - 347 * 76173.52) * 1e-9 / (1289 - 347)
    )
    assert "release" not in phase["latency"] and "forget" not in phase["latency"]
    assert phase["bytes"] == 429110 - 132634
    assert phase["operations"] == sum(one["count"] for one in phase["latency"].values())


def test_one_profile_is_the_load_since_it_was_started_and_xml_says_the_same(tmp_path: Path) -> None:
    text = (SAMPLES / "gluster" / "profile.txt").read_text()
    last = text[text.index("Brick: store1:/mnt/b1", 10) :]
    plain = imported([written(tmp_path / "last.txt", last)], tmp_path / "plain")
    xml = imported([SAMPLES / "gluster" / "profile.xml"], tmp_path / "xml")
    for brick, phase in plain.items():
        assert phase["seconds"] == 8 == xml[brick]["seconds"] and phase["bytes"] == xml[brick]["bytes"]
        assert set(phase["latency"]) == set(xml[brick]["latency"])
        for op, one in phase["latency"].items():
            assert one == pytest.approx(xml[brick]["latency"][op], rel=1e-4), op
        assert any("no unit" in warning for warning in xml[brick]["warnings"])


def test_an_interval_of_gluster_alone_is_a_load(tmp_path: Path) -> None:
    """`info incremental` prints nothing else."""
    text = (SAMPLES / "gluster" / "profile.txt").read_text()
    brick = text[text.index("Brick: store1:/mnt/b1", 10) : text.rindex("Brick: ")]
    only = brick[: brick.index("Cumulative")] + brick[brick.index("Interval 1") :]
    [(name, phase)] = imported([written(tmp_path / "interval.txt", only)], tmp_path / "run").items()
    assert name.endswith("interval 1") and phase["seconds"] == 5 and phase["latency"]["lookup"]["count"] == 942


def test_intervals_of_gluster_as_xml_are_loads_of_their_own(tmp_path: Path) -> None:
    """They have no numbers there, and none is the beginning of another one."""
    text = (SAMPLES / "gluster" / "profile.xml").read_text().replace("cumulativeStats", "intervalStats")
    duration = re.search(r"<duration>(\d+)</duration>", text)
    assert duration is not None
    longer = text.replace(duration[0], f"<duration>{int(duration[1]) + 3}</duration>")
    once = imported([written(tmp_path / "one.xml", text)], tmp_path / "once")
    twice = imported([written(tmp_path / "two.xml", text + longer)], tmp_path / "twice")
    assert len(twice) == 2 * len(once)
    assert sorted(phase["seconds"] for phase in twice.values()) == sorted(
        phase["seconds"] + more for phase in once.values() for more in (0, 3)
    )


def test_statements_are_counted_by_their_first_word(tmp_path: Path) -> None:
    [(name, phase)] = imported([SAMPLES / "postgresql" / "statements.csv"], tmp_path / "run").items()
    assert name == "pg_stat_statements" and {"select", "insert", "delete"} <= set(phase["latency"])
    rows = (SAMPLES / "postgresql" / "statements.csv").read_text().splitlines()
    calls = [
        int(re.split(r",(?=[\d.]+,[\d.]+,[\d.]+,[\d.]+$)", row)[1].split(",")[0])
        for row in rows
        if "delete from" in row
    ]
    assert phase["latency"]["delete"]["count"] == calls[1] - calls[0] > 1000
    quoted = 'now,query,calls,total_exec_time\n2026-01-01 00:00:{}+00,"/* a,\n b */ -- c\nSelect ""x""",{},{}\n'
    file = written(tmp_path / "quoted.csv", quoted.format("00", 10, 5.0) + quoted.format("10", 30, 45.0))
    [phase] = imported([file], tmp_path / "quoted").values()
    assert phase["rate"] == 2 and phase["latency"]["select"]["mean"] == pytest.approx(0.002)


def test_a_pool_says_how_long_statements_held_a_connection_and_waited_for_one(tmp_path: Path) -> None:
    [(name, phase)] = imported([SAMPLES / "postgresql" / "pgbouncer.csv"], tmp_path / "run").items()
    assert name == "pool postgres" and phase["operations"] == phase["latency"]["query"]["count"]
    assert 0 < phase["latency"]["query.wait"]["mean"] < phase["latency"]["query"]["mean"]


def test_active_backends_stand_beside_a_rate_and_refused_without(tmp_path: Path) -> None:
    database = SAMPLES / "postgresql" / "database.csv"
    [phase] = imported([database], tmp_path / "run").values()
    assert any(re.search(r"In 10 looks at pg_stat_activity .* backends", warning) for warning in phase["warnings"])
    text = database.read_text()
    alone = text[text.index("now,pid") : text.rindex("now,datname")]
    with pytest.raises(InputError, match=r"In 10 looks .* No rate follows from that; add pg_stat_statements"):
        imported([written(tmp_path / "alone.csv", alone)], tmp_path / "no")


def test_metrics_of_gateways_by_operation(tmp_path: Path) -> None:
    [phase] = imported([SAMPLES / "prometheus" / "garage.txt"], tmp_path / "garage").values()
    assert phase["seconds"] == 20 and phase["rate"] == (2000 + 600) / 20
    assert phase["latency"]["putobject"]["mean"] == pytest.approx((36.5 - 12.5) / 600)
    [phase] = imported([SAMPLES / "prometheus" / "minio.txt"], tmp_path / "minio").values()
    assert phase["rate"] == (3000 + 600) / 30 and phase["latency"]["getobject"]["mean"] is None
    assert any("tells no sum of their times" in warning for warning in phase["warnings"])
    [phase] = imported([SAMPLES / "prometheus" / "ceph-rgw.txt"], tmp_path / "rgw").values()
    assert phase["latency"]["get"]["mean"] == pytest.approx(4 / 1500)
    by_kind = "".join(
        f"# snapshot_time: {at}\n# TYPE ceph_rgw_op_put_obj_lat_sum counter\n"
        f'ceph_rgw_op_put_obj_lat_sum{{instance_id="1"}} {0.02 * n}\n'
        f'ceph_rgw_op_put_obj_lat_count{{instance_id="1"}} {n}\n'
        f'ceph_rgw_op_list_obj_lat_sum{{instance_id="1"}} {n}\nceph_rgw_op_list_obj_lat_count{{instance_id="1"}} {n}\n'
        f'ceph_rgw_op_put_obj_bytes{{instance_id="1"}} {1000 * n}\nceph_rgw_put_b{{instance_id="1"}} {1000 * n}\n'
        f'ceph_rgw_put_initial_lat_sum{{instance_id="1"}} {n}\nceph_rgw_put_initial_lat_count{{instance_id="1"}} {n}\n'
        for at, n in ((100, 10), (110, 60))
    )
    [phase] = imported([written(tmp_path / "kinds", by_kind)], tmp_path / "kinds-out").values()
    assert set(phase["latency"]) == {"put_obj", "list_obj"} and phase["bytes_per_second"] == 5000
    assert phase["latency"]["put_obj"]["mean"] == pytest.approx(0.02) and phase["operations"] == 100
    other = (
        'process_start_time_seconds 1000\nstore_seconds_sum{{op="a",code="200"}} 1 {0}\n'
        'store_seconds_count{{op="a",code="200"}} 10 {0}\nstore_seconds_sum{{op="a",code="500"}} 3 {0}\n'
        'store_seconds_count{{op="a",code="500"}} 10 {0}\n# TYPE store_seconds summary\n'
    )
    anew = other.format(1010_000) + other.replace("seconds 1000", "seconds 1090").replace(" 10 ", " 30 ").format(
        1100_000
    )
    with pytest.raises(InputError, match=r":\d+: store_seconds has counted for \+0 s more .* counting began anew"):
        imported([written(tmp_path / "anew", anew)], tmp_path / "anew-out")
    [phase] = imported([written(tmp_path / "one", other.format(1010_000))], tmp_path / "since").values()
    assert phase["seconds"] == 10 and phase["latency"]["a"]["mean"] == pytest.approx(0.2), "since the program's start"


def test_daemons_of_ceph_by_kind_of_request(tmp_path: Path) -> None:
    [phase] = imported([SAMPLES / "ceph" / "mds.txt"], tmp_path / "mds").values()
    text = (SAMPLES / "ceph" / "mds.txt").read_text()
    counts = [int(count) for count in re.findall(r'"req_unlink_latency": \{\s+"avgcount": (\d+)', text)]
    assert phase["latency"]["unlink"]["count"] == counts[-1] - counts[0] > 0
    assert {"create", "unlink", "stat"} <= set(phase["latency"]), "of md-workbench"
    several = re.sub(r"^\{", "mds.a: {", text, flags=re.M) + re.sub(r"^\{", "mds.b: {", text, flags=re.M)
    assert set(imported([written(tmp_path / "two", several)], tmp_path / "two-out")) == {"mds.a", "mds.b"}


def test_a_gateway_of_ceph_says_what_it_moved_by_kind_of_request(tmp_path: Path) -> None:
    """As releases from 19 on count it."""
    dumps = "".join(
        f'snapshot_time: {at}\n{{"rgw_op": {{"put_obj_ops": {n}, "put_obj_bytes": {1000 * n}, "get_obj_bytes": 0, '
        f'"put_obj_lat": {{"avgcount": {n}, "sum": {0.01 * n}}}}}, "rgw": {{"put_b": 7}}}}\n'
        for at, n in ((100, 10), (110, 60))
    )
    [phase] = imported([written(tmp_path / "dumps", dumps)], tmp_path / "run").values()
    assert phase["latency"]["create"]["count"] == 50 and phase["bytes_per_second"] == 5000


@pytest.mark.parametrize("name", sorted(SAMPLE.keys() - {"nfs"}))  # of which two clients' files look alike
def test_two_files_are_begin_and_end_whichever_is_named_first(name: str, tmp_path: Path) -> None:
    """A sample of two snapshots cut between them says the same from two files."""
    cut = {
        "gluster": "Brick: store1:/mnt/b1",
        "postgresql": "now,queryid",
        "prometheus": "# snapshot_time",
        "ceph": "snapshot_time",
        "lustre": "snapshot_time",
        "nfsd": "snapshot_time",
    }
    path = SAMPLES / name / SAMPLE[name]
    text = path.read_text()
    at = text.index(cut[name], 10)
    files = [written(tmp_path / "b", text[at:]), written(tmp_path / "a", text[:at])]
    whole, parts = imported([path], tmp_path / "whole"), imported(files, tmp_path / "parts")
    assert parts == whole


def test_a_service_of_lustre_counts_waits_beside_its_requests(tmp_path: Path) -> None:
    """They are no requests of their own; a client's times hold the trip, and its file has no depth of a queue."""
    service = (
        "mds.MDS.mdt.stats=\nsnapshot_time 1100.0 secs.nsecs\nelapsed_time 100.0 secs.nsecs\n"
        "req_waittime 500 samples [usec] 1 90 4000\nreq_qdepth 500 samples [reqs] 0 1 2\n"
        "mds_getattr 200 samples [usec] 1 80 3000\nldlm_ibits_enqueue 300 samples [reqs] 1 1 300 300\n"
    )
    [phase] = imported([written(tmp_path / "service", service)], tmp_path / "run").values()
    assert phase["operations"] == 500 and set(phase["by_operation"]) == {"mds_getattr", "ldlm_ibits_enqueue"}
    assert phase["latency"]["request.wait"]["mean"] == pytest.approx(8e-6)
    assert phase["latency"]["request.wait"]["max"] == pytest.approx(90e-6)
    client = service.replace("req_qdepth 500 samples [reqs] 0 1 2\n", "").replace("mds.MDS.mdt", "mdc.fs-MDT0000")
    [phase] = imported([written(tmp_path / "client", client)], tmp_path / "client-run").values()
    assert phase["latency"]["request.trip"]["mean"] == pytest.approx(8e-6) and phase["operations"] == 500


def test_requests_of_an_nfs_server_are_compounds_and_those_of_version_three(tmp_path: Path) -> None:
    """Operations of version 4 are parts of compounds. The number of threads is named as a fact to state."""
    [phase] = imported([SAMPLES / "nfsd" / "nfsd.txt"], tmp_path / "run").values()
    assert phase["by_operation"]["compound"]["rate"] == 40000 / 20 and phase["by_operation"]["stat"]["rate"] == 60
    assert phase["operations"] == 40000 + 1200 * 2.1 and phase["bytes"] is None
    assert phase["latency"]["compound.sequence"]["count"] == 40000 and "compound.sequence" not in phase["by_operation"]
    assert phase["latency"]["compound.pwrite"]["count"] == 12000 and phase["latency"]["compound"]["mean"] is None
    assert any("has 8 threads" in one and "--known server.servers=8" in one for one in phase["warnings"])


def test_bytes_alone_are_a_load_of_lustre(tmp_path: Path) -> None:
    """Older releases time no reads and writes. Bytes that fall are refused."""
    text = "snapshot_time 1{}0.0 secs.usecs\nread_bytes {} samples [bytes] 1 4096 {}\n"
    file = written(tmp_path / "grown", text.format(0, 5, 10000) + text.format(1, 9, 30000))
    [phase] = imported([file], tmp_path / "run").values()
    assert phase["bytes"] == 20000 and phase["bytes_per_second"] == 2000 and phase["operations"] is None
    fallen = written(tmp_path / "fallen", text.format(0, 5, 10000) + text.format(1, 9, 3000))
    with pytest.raises(InputError, match=r":4: the bytes of fallen are fewer than in line 2: .*anew in between"):
        imported([fallen], tmp_path / "no")


def test_counts_of_lustre_whose_squares_ran_over_are_counted(tmp_path: Path) -> None:
    """They would be missing without a word. What is sampled in pages, buffers or seconds is no request."""
    text = (
        "snapshot_time 1{}0.0 secs.usecs\nopen {} samples [usecs] -3 400 {} -9000\nclose 5 samples [usecs] 1 2 10 5\n"
        "cache_access {} samples [pages] 1 1 900\nreqbuf_avail {} samples [bufs] 1 64 900 900\n"
    )
    file = written(tmp_path / "over", text.format(0, 10, 1000, 10, 10) + text.format(1, 30, 5000, 900, 900))
    [phase] = imported([file], tmp_path / "run").values()
    assert phase["operations"] == 20 and phase["latency"]["open"]["mean"] == pytest.approx(2e-4)
    job = "- job_id: a\n  snapshot_time: {}\n  open: {{ samples: {}, unit: usecs, min: -3, max: 9, sum: {} }}\n"
    jobs = written(tmp_path / "job", "job_stats:\n" + job.format(5, 1, 9) + job.format(9, 3, 13))
    [phase] = imported([jobs], tmp_path / "job-run").values()
    assert phase["latency"]["open"]["mean"] == pytest.approx(2e-6)


def test_files_of_one_server_that_says_since_when_it_counts_are_one_load(tmp_path: Path) -> None:
    """Those that count since another moment are of other servers."""
    text = "md_stats=\nsnapshot_time {} secs.nsecs\nelapsed_time {}.5 secs.nsecs\nopen {} samples [usecs] 1 9 {} 5\n"
    first, second, other = (
        written(tmp_path / name, text.format(*numbers))
        for name, numbers in (("b", (5000, 900, 10, 20)), ("a", (5010, 910, 30, 80)), ("c", (5010, 700, 70, 90)))
    )
    [phase] = imported([second, first], tmp_path / "one").values()
    assert phase["rate"] == 2 and phase["latency"]["open"]["mean"] == pytest.approx(3e-6)
    runs = import_files([second, first, other], tmp_path / "two", None, {"ranks": 4})
    seconds = [json.loads((run / "run.json").read_text())["phases"][0]["seconds"] for run in runs]
    assert sorted(seconds) == [10, 700.5]


def test_the_directory_of_an_nfs_server_is_no_mount_of_one(tmp_path: Path) -> None:
    """Most clients have it."""
    with_it = MOUNT.replace("device filer", "device nfsd mounted on /proc/fs/nfsd with fstype nfsd\ndevice filer")
    plain = imported([written(tmp_path / "plain", MOUNT)], tmp_path / "run")
    assert imported([written(tmp_path / "with", with_it)], tmp_path / "with-run") == plain


def test_jobs_that_made_no_request_or_began_anew_are_named(tmp_path: Path) -> None:
    job = "- job_id: {}\n  snapshot_time: {}\n  open: {{ samples: {}, unit: reqs }}\n"
    jobs = (("a", 10, 5), ("idle", 7, 5), ("anew", 9, 50), ("a", 20, 15), ("idle", 7, 5), ("anew", 19, 5))
    [(name, phase)] = imported(
        [written(tmp_path / "jobs", "job_stats:\n" + "".join(job.format(*one) for one in jobs))], tmp_path / "run"
    ).items()
    assert name == "a" and phase["rate"] == 1
    assert {one.split(" ")[0] for one in phase["warnings"] if one.endswith("left out.")} == {"idle", "The"}
    fallen = "job_stats:\n" + job.format("a", 10, 50) + job.format("a", 20, 5)
    with pytest.raises(InputError, match=r":7: open of a counts less than in line 4"):
        imported([written(tmp_path / "fallen", fallen)], tmp_path / "no")


def test_a_job_of_one_snapshot_is_named(tmp_path: Path) -> None:
    job = "- job_id: {}\n  snapshot_time: {}\n  open: {{ samples: {}, unit: reqs }}\n"
    text = "job_stats:\n" + "".join(job.format(*one) for one in (("a", 10, 5), ("a", 20, 15), ("b", 20, 7)))
    [(name, phase)] = imported([written(tmp_path / "jobs", text)], tmp_path / "run").items()
    assert name == "a" and phase["rate"] == 1
    assert "b is in one snapshot alone, and is left out." in phase["warnings"]


def test_a_time_above_a_mount_is_closer_than_its_age(tmp_path: Path) -> None:
    first, second = ("device filer" + part for part in MOUNT.split("device filer")[1:])
    text = f"snapshot_time: 100.25\n{first}snapshot_time: 120.75\n{second}"
    [phase] = imported([written(tmp_path / "timed", text)], tmp_path / "run").values()
    assert phase["seconds"] == 20.5


PARAMETER = re.compile(r"^(?=[A-Za-z][\w@:.-]+=)", re.MULTILINE)


@pytest.mark.parametrize("file", ["client.txt", "server.txt"])
def test_parameters_of_lustre_that_count_no_requests_change_nothing(tmp_path: Path, file: str) -> None:
    """Files of production systems: beside the statistics of a device stand others of it, cleared at other times."""
    text = (SAMPLES / "lustre" / file).read_text()
    sections = [one for one in PARAMETER.split(text) if one]
    kept = [one for one in sections if re.match(r"\S+\.(md_|job_)?stats=", one)]
    assert 2 < len(kept) < len(sections)
    whole = imported([SAMPLES / "lustre" / file], tmp_path / "whole")
    alone = imported([written(tmp_path / "alone.txt", "".join(kept))], tmp_path / "alone")
    assert list(whole) == list(alone)
    for device, phase in whole.items():
        for key in ("seconds", "rate", "latency", "bytes", "operations"):
            assert phase.get(key) == alone[device].get(key), (device, key)


def test_a_client_of_lustre_has_the_calls_of_its_programs_and_its_requests(tmp_path: Path) -> None:
    """How long files were open, and how many at most, are no requests."""
    client = "a361000-ffff000189257000"
    device = "mdc.a361000-MDT0000-mdc-ffff000189257000"
    found = imported([SAMPLES / "lustre" / "client.txt"], tmp_path / "run")
    assert list(found) == [f"llite.{client}", f"md_stats.{device}", device]
    calls = found[f"llite.{client}"]
    assert calls["seconds"] == 268875.244389490
    assert calls["latency"]["pread"]["mean"] == pytest.approx(7034.832815 / 57406355)
    assert not {"opencount", "openclosetime", "hybrid_noswitch", "getxattr_hits"} & calls["latency"].keys()
    assert calls["operations"] == sum(one["count"] for one in calls["latency"].values())
    assert calls["bytes"] == 1496254921055 + 1184274862535
    trip = found[device]["latency"]["request.trip"]
    assert trip["count"] == 275910125 and trip["mean"] == pytest.approx(45158.219745 / 275910125)


@pytest.mark.parametrize(("service", "known"), [("mds.MDS.mdt", "mds.servers=64"), ("mds.MDS.mdt_out", None)])
@pytest.mark.parametrize("first", [True, False])
def test_threads_of_a_service_are_a_fact(tmp_path: Path, service: str, known: str | None, first: bool) -> None:
    """Of those whose threads are servers of the family's stations, wherever the line stands."""
    threads = f"{service}.threads_max=64\n{service}.threads_started=7\n"
    text = (SAMPLES / "lustre" / "server.txt").read_text()
    file = written(tmp_path / "file.txt", threads + text if first else text + threads)
    warnings = imported([file], tmp_path / "run")["mds.MDS.mdt"]["warnings"]
    assert [one for one in warnings if "--known" in one] == (
        ["The service mds.MDS.mdt has started 7 of at most 64 threads. Where neither its processors nor its disks are "
         f"shorter, calibrate with --known {known}."] if known else []
    )  # fmt: skip


def test_a_sum_of_times_below_zero_is_no_time(tmp_path: Path) -> None:
    """Of a mount: the kernel adds up differences of clocks, and prints a sum below zero as 2^64 more. The difference of
    two such sums is one of times."""
    text = (SAMPLES / "nfs" / "production.txt").read_text()
    [mount] = imported([SAMPLES / "nfs" / "production.txt"], tmp_path / "run").values()
    assert mount["latency"]["access"]["mean"] == pytest.approx(1e-3 * 1953587717 / 2927395007)
    assert "access.queue" not in mount["latency"] and mount["latency"]["pread.queue"]["mean"] > 0
    later = text.replace("18446743919241604546", "18446743919241605546").replace(
        "2927395007 2927394995", "2927396007 0"
    )
    two = f"snapshot_time: 10\n{text}snapshot_time: 20\n{later.replace('13968', '13978')}"
    [mount] = imported([written(tmp_path / "two.txt", two)], tmp_path / "two").values()
    assert (
        mount["latency"]["access.queue"] | {"count": 1000, "mean": pytest.approx(1e-3)}
        == (mount["latency"]["access.queue"])
    )


PROFILE = (SAMPLES / "gluster" / "profile.txt").read_text()
MOUNT = (SAMPLES / "nfs" / "mountstats.txt").read_text()
SERVED = (SAMPLES / "nfsd" / "nfsd.txt").read_text()
LUSTRE = (SAMPLES / "lustre" / "md_stats.txt").read_text()
GARAGE = (SAMPLES / "prometheus" / "garage.txt").read_text()
DATABASE = "now,datname,xact_commit,xact_rollback,active_time\n2026-01-01 00:00:0{}+00,a,{},0,{}\n"


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (PROFILE.replace("      0.12   34595.00 ns", "      0.12   34595.00", 1), ":10: this line of the table has"),
        (PROFILE.replace("Data Written: 132634 bytes", "", 1), r":26: .* end before 'Data Written'"),
        (PROFILE.replace("            347", "           9347", 1), "lookup of store1:/mnt/b1 counts less than"),
        (PROFILE + PROFILE, "is not of a later time than that of line"),
        (GARAGE.replace("} 9.625", "} nine"), r":8: api_s3_request_duration_sum is 'nine', which is no number"),
        (GARAGE.replace('_count{api_endpoint="GetObject"} 1200', "_count"), ":9: this line has no name"),
        (GARAGE.replace("# snapshot_time", "# time"), "no time between the snapshots is known .* snapshot_time"),
        (GARAGE[: GARAGE.rindex("# snap")], r":13: no rate follows from one snapshot"),
        (DATABASE.format(0, 5, 1.0) + DATABASE.format(9, 4, 2.0), ":4: transaction of a counts less"),
        (DATABASE.format(0, 5, 1.0) + DATABASE.format(9, 5, 1.0), "no request was counted in it"),
        (DATABASE.format(0, 5, 1.0) + DATABASE.format(9, 5, 1.0).replace(",a,", ","), r":4: this row has 4 cells"),
        (DATABASE.format(0, 5, 1.0).replace("+00", ""), r":2: now is '2026-01-01 00:00:00'; it must be"),
        (DATABASE.format(0, 5, 1.0).replace("active_time", "idle_time"), ":2: the table has no column active_time"),
        ('{"osd": {"op_r_latency": {"avgcount": true, "sum": 1}}}\n', r":1: op_r_latency.avgcount is true"),
        ('snapshot_time: 5\n{"osd": {"op_r_latency": {"avgcount": 1, \n', "not whole JSON"),
        (LUSTRE.replace("3000 samples", "300 samples", 1), r":6: open of broken counts less than in line 2: "),
        (LUSTRE.replace("150000 27", "15000 27"), r":6: open of broken counts less than in line 2: "),
        (LUSTRE.replace("getattr                   1500", "statfs 1500"), r":5: this snapshot of broken lacks stat"),
        (LUSTRE.replace("1010.0", "990.0"), r":5: this snapshot of broken is not of a later time than that of line 1"),
        (LUSTRE.replace("1010.0", "a"), r":5: snapshot_time is 'a"),
        (LUSTRE[: LUSTRE.rindex("snap")], r":1: no rate follows from one snapshot of Lustre .* with it as well\.$"),
        (LUSTRE.replace("secs.nsecs\n", "secs.nsecs\nelapsed_time 50.0 secs.nsecs\n"), r"\+0 s more than in line 1"),
        (LUSTRE.replace("150000 27000000", "150000 27 9"), r":6: this line of counts has not the columns of Lustre"),
        (SERVED.replace("proc4 2 1 52000", "proc4 2 52000"), r":22: proc4 has 1 counts, and says 2; it was cut off"),
        (SERVED.replace("proc4 2 1 52000", "proc4 2 1 5200"), r":22: compound of nfsd counts less than in line 10"),
        (SERVED.replace("rc 0 4000 8000\n", ""), r":4: there is no row 'rc' above th; the beginning"),
        (SERVED.replace("snapshot_time", "taken"), r"no time between the snapshots is known of NFS server; .*date"),
        (MOUNT.replace("\tage:\t86420\n", ""), r":19: the mount filer:/export/home on /home has no line 'age:'"),
        (MOUNT.replace("86420", "86400"), r":19: this snapshot of filer:/export/home on /home is not of a later time"),
        (MOUNT.replace("CLOSE: 500 500 0", "CLOSE: 500 x 0"), r":31: this line below 'per-op statistics'"),
        ('snapshot_time: x\n{"osd": {"op_r_latency": {"avgcount": 1, "sum": 1}}}\n', ":1: snapshot_time is 'x'"),
    ],
    ids=itertools.count(),
)  # fmt: skip
def test_what_is_broken_is_refused_with_its_line(text: str, refusal: str, tmp_path: Path) -> None:
    file = written(tmp_path / "broken", text)
    with pytest.raises(InputError, match=refusal) as refused:
        imported([file], tmp_path / "run")
    assert re.match(rf"{re.escape(str(file))}:\d+: .*\.$", str(refused.value)) and not (tmp_path / "run").exists()


def snapshots_of(file: Path) -> tuple[str, str]:
    text = file.read_text()
    at = text.index("snapshot_time", 5)
    return text[:at], text[at:]


@pytest.mark.parametrize("row", ["proc3", "proc4", "proc4ops"])
@pytest.mark.parametrize("which", [0, 1])
def test_rows_of_an_nfs_server_are_in_both_snapshots(row: str, which: int, tmp_path: Path) -> None:
    """Else what one lacks would be the requests of all time since the server's start; a count that is none is named."""
    texts = list(snapshots_of(SAMPLES / "nfsd" / "nfsd.txt"))
    for change, message in ((rf"(?m)^{row} .*\n", f"lacks the row {row}"), (rf"(?m)(^{row} \d+ .*) \d+$", "-4")):
        changed = [*texts]
        changed[which] = re.sub(change, "" if "lacks" in message else r"\1 -4", texts[which])
        assert changed != texts
        files = [written(tmp_path / f"{message[:3]}{n}", text) for n, text in enumerate(changed)]
        with pytest.raises(InputError, match=message) as raised:
            imported(files, tmp_path / "run")
        assert f"{files[which].name}:" in str(raised.value)


def test_the_snapshot_with_the_mistake_is_named_whichever_it_is(tmp_path: Path) -> None:
    for which in (0, 1):
        texts = list(snapshots_of(SAMPLES / "nfsd" / "nfsd.txt"))
        texts[which] = re.sub(r"snapshot_time: \S+", "snapshot_time: nan", texts[which])
        files = [written(tmp_path / f"{which}-{n}", text) for n, text in enumerate(texts)]
        with pytest.raises(InputError, match=rf"{files[which].name}:1: .*'nan', which is no measurement"):
            imported(files, tmp_path / "run")


def test_a_gateway_that_was_started_again_between_snapshots_is_refused(tmp_path: Path) -> None:
    """Also soon after its first start, with more requests since; the time of the start is exact."""
    text = (
        "# TYPE app_request_duration_seconds histogram\n# snapshot_time: {}\nprocess_start_time_seconds {}\n"
        'app_request_duration_seconds_sum{{method="GET"}} {}\napp_request_duration_seconds_count{{method="GET"}} {}\n'
    )
    first, same, again = (
        written(tmp_path / name, text.format(*of))
        for name, of in (("first", (100, 98, 1, 10)), ("same", (200, 98, 5, 90)), ("again", (200, 101, 5, 90)))
    )
    [phase] = imported([first, same], tmp_path / "run").values()
    assert phase["rate"] == 80 / 100
    with pytest.raises(InputError, match="counting began anew"):
        imported([first, again], tmp_path / "refused")


def test_a_pool_and_its_database_are_two_loads_of_one_folder(tmp_path: Path) -> None:
    """Both have the database's name, and count other requests."""
    files = [SAMPLES / "postgresql" / name for name in ("database.csv", "pgbouncer.csv")]
    together = imported(files, tmp_path / "both")
    alone = [imported([file], tmp_path / file.stem) for file in files]
    assert {phase["rate"] for phase in together.values()} == {phase["rate"] for one in alone for phase in one.values()}

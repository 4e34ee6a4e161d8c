# SPDX-License-Identifier: Apache-2.0
"""A report on the counters of servers answers why they are slow: the busiest request first, and what would help."""

import json
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from programs import REPOSITORY

from iocast.calibrate.rates import calibrate_rates
from iocast.compare import compare
from iocast.errors import InputError
from iocast.importers import all_importers, import_files, matching
from iocast.importers.source import Source
from iocast.importers.statistics import Snapshot
from iocast.records.declared import Impossible
from iocast.records.run import read_run
from iocast.report import servers, write_numbers, write_report
from iocast.report.sources import Sources, read_sources
from iocast.report.story import tell
from iocast.report.tables import all_tables
from iocast.runs.run_directory import Run, group

Iocast = Callable[..., CompletedProcess[str]]
SAMPLES = REPOSITORY / "tests" / "samples"
STATISTICS = {name: one for name, one in all_importers().items() if one.snapshots is not None}
FILES = sorted(
    path.relative_to(SAMPLES).as_posix()
    for path in SAMPLES.rglob("*")
    if path.is_file() and path.name != "README.md" and matching(Source(path), STATISTICS)
)
OTHERS = "(not timed apart)"


def imported(file: Path, out: Path) -> Sources:
    return read_sources(import_files([file], out, None, {}))


def counted(path: Path) -> dict[str, dict[str, tuple[int, float | None]]]:
    """By server and whole kind of request the number and the seconds between the first snapshot and the last one, or
    since counting began."""
    source = Source(path)
    (importer,) = matching(source, STATISTICS)
    assert importer.snapshots is not None
    taken: dict[str, list[Snapshot]] = defaultdict(list)
    for one in importer.snapshots(source):
        taken[one.name].append(one)
    found: dict[str, dict[str, tuple[int, float | None]]] = {}
    for name, own in taken.items():
        first = own[0].counts if len(own) > 1 else {}
        kinds = {}
        for kind, last in own[-1].counts.items():
            before = first.get(kind)
            count = last.count - (before.count if before else 0)
            seconds = None if last.seconds is None else last.seconds - ((before.seconds or 0.0) if before else 0.0)
            if count:
                kinds[kind] = count, seconds
        found[name] = kinds
    return found


def test_all_formats_of_statistics_have_samples() -> None:
    assert {file.partition("/")[0] for file in FILES} == set(STATISTICS) and len(FILES) >= 16, FILES


@pytest.mark.parametrize("file", FILES)
def test_the_busiest_request_of_the_file_comes_first(file: str, tmp_path: Path) -> None:
    """The server and its busiest request by the counters themselves; no ranks, which nobody stated; shares that add up
    to one; and the same on the page, in the JSON and in the text."""
    sources = imported(SAMPLES / file, tmp_path / "runs")
    story, loads = tell(sources), servers.loads(sources)
    known = counted(SAMPLES / file)
    assert loads and not sources.runs
    for load in loads:
        kinds = known[load.name] if load.name in known else known[""]
        whole = {kind: one for kind, one in kinds.items() if "." not in kind}
        seconds = {kind: time for kind, (_, time) in whole.items() if time is not None}
        if (trips := kinds.get("request.trip")) is not None and trips[1] is not None:
            seconds[OTHERS] = trips[1] - sum(seconds.values())
        if seconds:
            busiest = max(seconds, key=lambda kind: seconds[kind])
            assert load.busy == pytest.approx(sum(seconds.values()) / load.seconds, rel=1e-6)
            assert sum(load.share(one) or 0 for one in load.requests) == pytest.approx(1)
            assert load.share(load.busiest) == pytest.approx(seconds[busiest] / sum(seconds.values()), rel=1e-6)
        else:
            busiest = max(whole, key=lambda kind: whole[kind][0])
            assert load.busy is None and "No time of theirs" in servers.answer(load)
            assert load.share(load.busiest) == pytest.approx(
                whole[busiest][0] / sum(count for count, _ in whole.values())
            )
        assert load.busiest.name == busiest
        if busiest != OTHERS:
            assert load.busiest.count == whole[busiest][0] and busiest in servers.answer(load)
    assert [load.busy or 0.0 for load in loads] == sorted((load.busy or 0.0 for load in loads), reverse=True)
    assert loads[0].title in story.question and loads[0].title in story.headline
    first = [story.question, story.headline, story.reach, *(text for _, text in story.facts)]
    assert not [text for text in first if re.search(r"\branks?\b", text)], first
    assert any(about.startswith("What would help") for about, _ in story.facts)
    write_report([run.path for run in sources.servers], page := tmp_path / "page.html")
    write_numbers([run.path for run in sources.servers], data := tmp_path / "numbers.json")
    shown = re.sub(r"\s+", " ", page.read_text().replace("&#39;", "'"))
    assert all(re.sub(r"\s+", " ", text) in shown for text in first)
    numbers = json.loads(data.read_text())
    assert numbers["summary"]["servers"][0]["answer"] in story.headline and numbers["summary"]["ranks"] == []
    assert [row["request"] for row in numbers["tables"]["servers"]["rows"]][0] == loads[0].busiest.name
    words = servers.text(sources)
    assert all(text in words for text in first)


@pytest.mark.parametrize("file", FILES)
def test_ranks_are_taken_where_they_are_stated_and_change_nothing(file: str, tmp_path: Path) -> None:
    without = imported(SAMPLES / file, tmp_path / "without")
    runs = import_files([SAMPLES / file], tmp_path / "with", None, {"ranks": 8, "nodes": 4})
    for path, other in zip(runs, without.servers, strict=False):
        stated = json.loads((path / "run.json").read_text())
        assert stated["placement"] == {"ranks": 8, "nodes": 4, "ranks_per_node": 2}
        assert "placement.ranks" not in stated["imported"]["missing"]
        assert other.document["placement"]["ranks"] is None
        assert "placement.ranks" in (other.document["imported"]["missing"])
    assert servers.numbers(read_sources(runs)) == servers.numbers(without)


def test_a_benchmark_beside_a_server_keeps_its_question(tmp_path: Path) -> None:
    fio = import_files([SAMPLES / "fio" / "version-2.json"], tmp_path / "fio", None, {})
    bricks = import_files([SAMPLES / "gluster" / "profile.txt"], tmp_path / "bricks", None, {})
    alone, both = tell(read_sources(list(fio))), tell(read_sources([*fio, *bricks]))
    assert (both.question, both.headline, both.reach) == (alone.question, alone.headline, alone.reach)
    assert any("lookup" in text for _, text in both.facts)
    assert "servers" in {table.name for table in all_tables(read_sources([*fio, *bricks]))}


def test_nothing_is_computed_with_ranks_that_nobody_stated(tmp_path: Path) -> None:
    """Neither calibrated nor compared, and a benchmark must have them."""
    (run,) = import_files([SAMPLES / "lustre" / "md_stats.txt"], tmp_path / "run", None, {})
    with pytest.raises(InputError, match="a load that was observed.*not known"):
        calibrate_rates(group([Run(run, "observed")]), "queue", 0, lambda *_: None)
    with pytest.raises(InputError, match="a load that was observed"):
        compare(run, run)
    document = json.loads((run / "run.json").read_text())
    document["workload"]["pattern"] = "md-workbench"
    with pytest.raises(Impossible) as refused:
        read_run(document)
    assert refused.value.where == "placement.ranks"


SERVICE = (
    "mds.MDS.mdt.threads_max={most}\nmds.MDS.mdt.threads_started=8\nmds.MDS.mdt.stats=\n"
    "snapshot_time 1100.0 secs.nsecs\nelapsed_time {elapsed} secs.nsecs\n{waits}"
    "req_qdepth 100000 samples [reqs] 0 1 2\nmds_getattr 90000 samples [usec] 1 80 {work}\n"
    "mds_close 10000 samples [usec] 1 80 1000000\n"
)
WAITS = "req_waittime 100000 samples [usec] 1 90 {}\n"


def service(folder: Path, most: int, work: int, wait: int | None, elapsed: float = 100.0) -> servers.Load:
    file = folder / "service"
    waits = "" if wait is None else WAITS.format(wait)
    file.write_text(SERVICE.format(most=most, work=work, waits=waits, elapsed=elapsed))
    (load,) = servers.loads(imported(file, folder / "run"))
    return load


def advice(load: servers.Load) -> str:
    return " ".join(servers.advice(load)).replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("most", "work", "wait", "helps"),
    [
        (8, 699_000_000, 700_000_000, ["Of at most 8 threads 7.00 are busy", "50 % of the time", "gets shorter by"]),
        (
            512,
            699_000_000,
            7_000_000,
            ["Of 8 started threads of at most 512 7.00 are busy", "a shorter one would hardly help"],
        ),
        (512, 100_000, 7_000, ["hardly any waits for another"]),
        (512, 100_000, 9_000_000, ["the wait for a thread of the service, although", "they come in bursts"]),
        (8, 699_000_000, None, ["Of at most 8 threads 7.00 are busy on average: more of them help"]),
        (512, 699_000_000, None, ["7.00 are busy on average: it starts more when requests wait"]),
        (8, 99_000_000, None, ["1.00 are busy on average: more of them would not help"]),
    ],
)
def test_threads_and_waits_decide_what_would_help(
    most: int, work: int, wait: int | None, helps: list[str], tmp_path: Path
) -> None:
    """700 s of work in 100 s are 7 busy threads, and as many seconds of waiting half of the time of requests."""
    load = service(tmp_path, most, work, wait)
    assert load.busy == pytest.approx((work + 1_000_000) * 1e-6 / 100)
    assert load.waiting == (None if wait is None else pytest.approx(wait / (wait + work + 1_000_000)))
    assert all(words in advice(load) for words in helps), advice(load)


@pytest.mark.parametrize(("wait", "elapsed"), [(700_000_000, 100.0), (7_000_000, 100.0), (None, 7200.0)])
def test_busy_threads_decide_nothing_where_waits_do_or_the_mean_is_of_hours(
    wait: int | None, elapsed: float, tmp_path: Path
) -> None:
    """Requests come in bursts: they may wait for each other with few threads busy on average, and the other way."""
    for busy in (1.0, 7.0):
        (folder := tmp_path / str(busy)).mkdir()
        text = advice(service(folder, 8, int(busy * elapsed * 1e6) - 1_000_000, wait, elapsed))
        assert "are busy on average. " in text and "more of them" not in text, text


def test_an_idle_server_is_not_what_clients_wait_for(tmp_path: Path) -> None:
    text = advice(service(tmp_path, 8, 100_000, None, elapsed=1000.0))
    assert text.startswith("It has hardly anything to do") and "Whoever waits" in text


@pytest.mark.parametrize(
    "file",
    [
        "lustre/job_stats.yaml",
        "postgresql/database.csv",
        *(file for file in FILES if "export" in file or "pgbouncer" in file),
    ],
)
def test_a_part_of_a_server_says_nothing_of_the_whole(file: str, tmp_path: Path) -> None:
    """Requests of a job, an export or a database are some of its load, and no reason to look elsewhere."""
    for load in servers.loads(imported(SAMPLES / file, tmp_path / "run")):
        assert load.about["part"]
        assert "Whoever waits" not in advice(load) and "hardly any waits" not in advice(load), advice(load)
        if load.is_idle:
            assert "counters of the whole" in advice(load)


def test_a_busy_job_is_not_hidden_by_its_idle_neighbour(tmp_path: Path) -> None:
    file = tmp_path / "jobs"
    row = (
        "- job_id: {}\n  snapshot_time: 1100.0 secs.nsecs\n  start_time: 1000.0 secs.nsecs\n"
        "  elapsed_time: 100.0 secs.nsecs\n"
        "  getattr: {{ samples: {}, unit: usecs, min: 1, max: 100, sum: {}, sumsq: 1 }}\n"
    )
    file.write_text("job_stats:\n" + row.format("small.1", 10, 700) + row.format("big.0", 1_000_000, 700_000_000))
    big, small = servers.loads(imported(file, tmp_path / "run"))
    assert (big.name, small.name) == ("big.0", "small.1") and big.busy == pytest.approx(7)
    assert "Whoever waits" not in advice(small)


def test_a_benchmark_of_any_name_keeps_its_report(tmp_path: Path) -> None:
    """Who counted decides, not how a workload is called."""
    (run,) = import_files([SAMPLES / "fio" / "version-2.json"], tmp_path / "run", None, {})
    document = json.loads((run / "run.json").read_text())
    document["workload"]["pattern"] = "load-observed"
    document["source"] = "benchmark"
    (run / "run.json").write_text(json.dumps(document))
    sources = read_sources([run])
    assert sources.runs and not sources.servers


@pytest.mark.parametrize("file", FILES)
def test_an_import_without_what_is_known_of_the_counting_is_reported_as_far_as_it_goes(
    file: str, tmp_path: Path
) -> None:
    """Files of earlier versions lack `imported.observed`: the requests are the same, and nothing is made up."""
    runs = import_files([SAMPLES / file], tmp_path / "run", None, {})
    now = servers.loads(read_sources(runs))
    for run in runs:
        document = json.loads((run / "run.json").read_text())
        del document["imported"]["observed"]
        document["placement"].update(ranks=8, nodes=1, ranks_per_node=8)
        (run / "run.json").write_text(json.dumps(document))
    before = servers.loads(read_sources(runs))
    assert [(one.name, one.requests, one.seconds) for one in before] == [
        (one.name, one.requests, one.seconds) for one in now
    ]
    for old, new in zip(before, now, strict=True):
        assert old.title == new.title and servers.answer(old).split(",")[0] == servers.answer(new).split(",")[0]
        assert not re.search("since it began|two snapshots|by the", servers.reach([old])), servers.reach([old])
        assert "Whoever waits" not in advice(old) and "hardly any waits" not in advice(old)


def test_an_import_that_does_not_say_whether_it_is_a_part_is_reported_without_a_verdict(tmp_path: Path) -> None:
    """As it was written before parts were kept apart: with what waits are for, and without `part`."""
    (run,) = import_files([SAMPLES / "lustre" / "md_stats.txt"], tmp_path / "run", None, {})
    document = json.loads((run / "run.json").read_text())
    assert document["imported"]["observed"].pop("part") is False
    document["imported"]["observed"] |= {"waits_for": "a thread", "relief": "more threads"}
    now = servers.loads(read_sources([run]))[0]
    (run / "run.json").write_text(json.dumps(document))
    (load,) = servers.loads(read_sources([run]))
    assert servers.answer(load) == servers.answer(now) and servers.reach([load]) == servers.reach([now])
    assert "hardly any waits" in advice(now) and "hardly any waits" not in advice(load)


def test_a_client_that_waits_for_its_slots_needs_more_of_them(tmp_path: Path) -> None:
    """Of 221 requests a second, 16 of 23.8 s waited in the client: 10 ms of each write's 13.2 ms."""
    (load,) = servers.loads(imported(SAMPLES / "nfs" / "mountstats.txt", tmp_path / "run"))
    text = " ".join(servers.advice(load))
    assert load.busiest.wait == pytest.approx(0.010) and load.waiting == pytest.approx(0.68, abs=0.005)
    assert "the wait for a slot in this client" in text and "nconnect" in text


def test_threads_of_a_server_without_times_bound_its_requests(tmp_path: Path) -> None:
    """8 threads and 2126 requests a second."""
    (load,) = servers.loads(imported(SAMPLES / "nfsd" / "nfsd.txt", tmp_path / "run"))
    assert "8 threads: if a request holds one for 3.76\N{NO-BREAK SPACE}ms" in " ".join(servers.advice(load))
    assert "In them stat is" in servers.answer(load), "what all compounds have says nothing of them"


def test_bytes_alone_are_no_requests(tmp_path: Path) -> None:
    file = tmp_path / "bytes"
    file.write_text(
        "obdfilter.fs-OST0000.stats=\nsnapshot_time 1100.0 secs.nsecs\nelapsed_time 100.0 secs.nsecs\n"
        "read_bytes 500 samples [bytes] 4096 1048576 104857600\n"
    )
    story = tell(imported(file, tmp_path / "run"))
    assert "moves 1.05\N{NO-BREAK SPACE}MB/s" in story.headline and "bytes alone" in story.headline


def test_the_text_is_printed(iocast: Iocast, tmp_path: Path) -> None:
    (run,) = import_files([SAMPLES / "nfs" / "mountstats.txt"], tmp_path / "run", None, {})
    words = iocast("report", run, "--text", "servers").stdout
    document = json.loads(iocast("report", run, "--text", "servers", "--json").stdout)
    assert document["servers"][0]["answer"] in words and document["servers"][0]["busiest"] == "pwrite"
    assert [row["request"] for row in document["requests"]][0] == "pwrite"
    refused = iocast("report", run, "--text", "server")
    assert refused.returncode == 2 and "servers" in refused.stderr
    (fio,) = import_files([SAMPLES / "fio" / "version-2.json"], tmp_path / "fio", None, {})
    for more in ([], ["--json"]):
        nothing = iocast("report", fio, "--text", "servers", *more)
        assert nothing.returncode == 2 and "None of the sources has requests" in nothing.stderr, nothing.stderr


def test_times_too_short_for_the_counters_are_none(tmp_path: Path) -> None:
    """mountstats count whole milliseconds: 100 reads of less than one have none."""
    file, before = tmp_path / "mountstats", (SAMPLES / "nfs" / "mountstats.txt").read_text()
    file.write_text(re.sub(r"(?m)^(\s+\w+: \d+ \d+ \d+ \d+ \d+) \d+ \d+ \d+", r"\1 0 0 0", before))
    (load,) = servers.loads(imported(file, tmp_path / "run"))
    assert load.busy is None and "No time of theirs was counted" in servers.answer(load)
    assert sum(load.share(one) or 0 for one in load.requests) == pytest.approx(1)


def test_counters_without_times_exclude_no_help(tmp_path: Path) -> None:
    """Nothing tells which of an NFS server's requests take its time, rare writes perhaps."""
    [load] = servers.loads(imported(SAMPLES / "nfsd" / "nfsd.txt", tmp_path / "runs"))
    text = " ".join(servers.advice(load))
    assert "make fewer of them." in text and "don't" not in text and "Rarer requests that take longer may" in text


@pytest.mark.parametrize("file", ["nfs/mountstats.txt", "fio/version-2.json", "postmark/report.txt", "nfsd/nfsd.txt"])
def test_what_was_not_imported_is_named_with_its_tool(file: str) -> None:
    with pytest.raises(InputError, match=rf"is output of {file.partition('/')[0]}, and no run yet: .*iocast import "):
        read_sources([SAMPLES / file])

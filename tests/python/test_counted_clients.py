# SPDX-License-Identifier: Apache-2.0
"""Counters of Lustre and of NFS mounts beside a run: a queue with a known number of threads, from snapshots to
threads."""

import heapq
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_observe import synthetic

from iocast.errors import InputError
from iocast.watching.counted import Served, Threads, threads_of
from iocast.watching.utilisation import join, served
from iocast.wording.checked import utilisation_text
from iocast.wording.notes import sentence

BEGAN = 1_700_000_000.0
SERVICE, DELAY, SECONDS, EVERY = 0.004, 0.0005, 20.0, 0.5


@dataclass
class Sums:
    """Of all requests until a moment."""

    time: float
    count: int
    wait: float
    service: float


def queue(ranks: int, threads: int, delay: float, seed: int = 1) -> Iterator[Sums]:
    """Each rank waits for a thread, holds it for an exponential time, and comes again after another one."""
    random_ = random.Random(f"{seed} {ranks} {threads}")
    arrivals = [(random_.expovariate(1 / delay), rank) for rank in range(ranks)]
    heapq.heapify(arrivals)
    free = [0.0] * threads
    ended: list[tuple[float, float, float]] = []
    while arrivals[0][0] < SECONDS:
        at, rank = heapq.heappop(arrivals)
        start, held = max(at, heapq.heappop(free)), random_.expovariate(1 / SERVICE)
        heapq.heappush(free, start + held)
        ended.append((start + held, start - at, held))
        heapq.heappush(arrivals, (start + held + random_.expovariate(1 / delay), rank))
    ended.sort()
    count, wait, service = 0, 0.0, 0.0
    for n in range(round(SECONDS / EVERY) + 1):
        while count < len(ended) and ended[count][0] <= n * EVERY:
            wait, service, count = wait + ended[count][1], service + ended[count][2], count + 1
        yield Sums(BEGAN + n * EVERY, count, wait, service)


def lustre(one: Sums) -> str:
    """Kinds of requests that a metadata service counts without times, a few others, and md_stats beside them."""
    at = f"snapshot_time             {one.time:.9f} secs.nsecs\n"
    if not one.count:
        return f"mds.MDS.mdt.stats=\n{at}mdt.fs-MDT0000.md_stats=\n{at}"
    return (
        f"mds.MDS.mdt.stats=\n{at}"
        f"req_waittime              {one.count} samples [usec] 1 90000 {round(1e6 * one.wait)} 0\n"
        f"req_qdepth                {one.count} samples [reqs] 0 4 {one.count} 0\n"
        f"req_active                {one.count} samples [reqs] 1 4 {one.count} 0\n"
        f"ldlm_ibits_enqueue        {one.count} samples [reqs] 1 1 {one.count} 0\n"
        "obd_ping                  3 samples [usec] 10 20 45 700\n"
        f"mdt.fs-MDT0000.md_stats=\n{at}"
        f"getattr                   {one.count} samples [usecs] 1 90000 {round(1e6 * one.service)} 0\n"
    )


def mount(one: Sums, network: float, slot: float, share: float = 1.0) -> str:
    """`network` there and back; `slot`: the wait for one in the client."""
    count = round(share * one.count)
    trip = share * (one.wait + one.service) + count * network
    times = f"{round(1e3 * count * slot)} {round(1e3 * trip)} {round(1e3 * (trip + 2 * count * slot))}"
    return (
        f"snapshot_time: {one.time:.6f}\n"
        "device filer:/export mounted on /scratch with fstype nfs4 statvers=1.1\n"
        f"\tage:\t{3600 + round(one.time - BEGAN)}\n"
        "\tbytes:\t0 0 0 0 0 0 0 0\n"
        "\tper-op statistics\n"
        "\t        NULL: 1 1 0 44 24 0 1 1 0\n"
        f"\t     GETATTR: {count} {count} 0 0 0 {times} 0\n"
    )


def run_of(directory: Path, ranks: int, sums: list[Sums]) -> Path:
    """From 5 s on for 10 s."""
    first, last = (next(one.count for one in sums if one.time == BEGAN + at) for at in (5.0, 15.0))
    directory.parent.mkdir(exist_ok=True)
    return synthetic(directory, start=BEGAN, phases=[("benchmark", 5.0, 10.0, last - first)], hosts=["a"], ranks=ranks)


def threads_seen(
    directory: Path, threads: int, text: str, network: float = 0.0, slot: float = 0.0
) -> tuple[Threads, list[Served]]:
    """From joined snapshots of one, two, four and eight ranks."""
    found = []
    for ranks in (1, 2, 4, 8):
        sums = list(queue(ranks, threads, DELAY + network + slot))
        run = run_of(directory / f"{threads}-{ranks}", ranks, sums)
        file = directory / f"{threads}-{ranks}.txt"
        file.write_text("".join(lustre(one) if text == "lustre" else mount(one, network, slot) for one in sums))
        join(run, [file])
        seen = served(run)
        assert seen is not None
        rate = (sums[30].count - sums[10].count) / 10
        found.append(Served(ranks, rate, *seen))
    result = threads_of(found)
    assert result is not None
    return result, found


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_of_lustre_are_those_of_the_queue(threads: int, tmp_path: Path) -> None:
    """The service counts the waits, and md_stats the work of its threads."""
    found, seen = threads_seen(tmp_path / "runs", threads, "lustre")
    assert found.likely == threads and found.service == pytest.approx(SERVICE, rel=0.1)
    for one in seen:
        assert one.wait is not None and one.seconds - one.wait == pytest.approx(SERVICE, rel=0.1)
        assert one.ranks / one.rate == pytest.approx(one.seconds + DELAY, rel=0.02), "Little's law"


@pytest.mark.parametrize("network", [0.0, 0.001])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_trips_of_a_mount_bound_the_threads(threads: int, network: float, tmp_path: Path) -> None:
    """Their service is not known, and the wait for a slot is the client's own."""
    found, seen = threads_seen(tmp_path / "runs", threads, "nfs", network, slot=0.002)
    assert found.network and found.at_least <= threads
    assert found.at_most is not None and threads <= found.at_most <= threads * (1 + network / SERVICE) + 1
    assert found.surprise(8) > found.surprise(threads)
    assert all(one.seconds < one.ranks / one.rate - 0.002 for one in seen), "without the wait for a slot"
    assert "Trips to the server show" in (text := sentence(found.note("server"))) and "at most" in text


def test_the_work_of_threads_alone_says_nothing_of_their_number(tmp_path: Path) -> None:
    """It doesn't grow where threads are short. What a service times of few of its requests is not its work."""
    sums = list(queue(8, 2, DELAY))
    run = run_of(tmp_path / "run", 8, sums)
    file = tmp_path / "md.txt"
    whole = [lustre(one) for one in sums]
    file.write_text("".join("mdt.fs" + text.partition("mdt.fs")[2] for text in whole))
    join(run, [file])
    assert served(run) is None
    file.write_text("".join(text.partition("mdt.fs")[0] for text in whole))
    [found] = join(run, [file])["phases"]
    assert served(run) is None and found["resources"]["lustre mds.MDS.mdt request.wait"]["kind"] == "waiting"
    timed = [text.partition("mdt.fs")[0].replace("ldlm_ibits_enqueue        ", "ost_read ") for text in whole]
    file.write_text("".join(text.replace("[reqs] 1 1", "[usec] 1 1") for text in timed))
    join(run, [file])
    seen = served(run)
    assert seen is not None and seen.wait is not None and seen.seconds - seen.wait == pytest.approx(1e-6, rel=0.1)


def test_a_client_of_lustre_has_trips(tmp_path: Path) -> None:
    """Without req_qdepth, req_waittime is no wait for a thread."""
    sums = list(queue(4, 2, DELAY))
    run = run_of(tmp_path / "run", 4, sums)
    file = tmp_path / "mdc.txt"
    text = "".join(lustre(one).partition("mdt.fs")[0].replace("mds.MDS.mdt", "mdc.fs-MDT0000-mdc-ff8c") for one in sums)
    file.write_text("".join(line for line in text.splitlines(keepends=True) if "req_qdepth" not in line))
    [found] = join(run, [file])["phases"]
    kinds = {name.rpartition(" ")[2]: use["kind"] for name, use in found["resources"].items()}
    assert kinds == {"ldlm_ibits_enqueue": "counted", "request.trip": "trips"}
    assert (seen := served(run)) is not None and seen.network and seen.wait is None


def test_mounts_of_an_export_on_one_node_are_one(tmp_path: Path) -> None:
    """A bind mount has the same counters again; it is no other node, and no further request."""
    sums = list(queue(4, 2, DELAY))
    run = run_of(tmp_path / "run", 4, sums)
    files = [tmp_path / "once", tmp_path / "twice"]
    files[0].write_text("".join(mount(one, 0.001, 0.0) for one in sums))
    again = (mount(one, 0.001, 0.0).partition("\n") for one in sums)
    files[1].write_text("".join(f"{at}\n{rest}{rest.replace('/scratch', '/mnt/x')}" for at, _, rest in again))
    seen = []
    for file in files:
        join(run, [file])
        seen.append(served(run))
        assert served(run, nodes=2) is None
    assert seen[0] == seen[1] is not None


def test_devices_of_several_clients_are_named_by_addresses_in_memory(tmp_path: Path) -> None:
    """They are of one server all the same."""
    sums = list(queue(4, 2, DELAY))
    run = run_of(tmp_path / "run", 4, sums)
    files = [tmp_path / "a", tmp_path / "b"]
    for file, address in zip(files, ("ffff9a3c40c11000", "ffff8811deadbe00"), strict=True):
        whole = "".join(lustre(one).partition("mdt.fs")[0] for one in sums)
        lines = whole.replace("mds.MDS.mdt", f"mdc.fs-MDT0000-mdc-{address}").splitlines(keepends=True)
        file.write_text("".join(line for line in lines if "req_qdepth" not in line))
    join(run, files[:1])
    once = served(run)
    assert once is not None and served(run, nodes=2) is None
    join(run, files)
    assert served(run, nodes=2) == pytest.approx((2 * once.seconds, None, True))


@pytest.mark.parametrize(
    ("target", "service"), [("mdt.fs-MDT{}.md_stats", "mds.MDS.mdt"), ("obdfilter.fs-OST{}.stats", "ost.OSS.ost_io")]
)
def test_targets_of_a_machine_share_its_threads(target: str, service: str, tmp_path: Path) -> None:
    """Their work is added up, whatever jobs count of it again; waits of another service are not theirs."""
    sums = list(queue(4, 2, DELAY))
    run = run_of(tmp_path / "run", 4, sums)
    file = tmp_path / "server.txt"
    blocks = []
    for one in sums:
        waits, _, work = lustre(one).replace("mds.MDS.mdt", service).partition("mdt.fs-MDT0000.md_stats")
        job = f"- job_id: dd 1\n  snapshot_time: {one.time}\n  open: {{ samples: {one.count}, unit: usecs, min: 1, "
        blocks += [
            waits,
            *(target.format(f"000{n}") + work for n in range(4)),
            target.format("0000").rpartition(".")[0] + f".job_stats=\njob_stats:\n{job}",
            f"max: 9, sum: {round(1e6 * one.service)}, sumsq: 1 }}\n",
            f"mgs.MGS.mgs.stats=\nsnapshot_time {one.time} secs.nsecs\n"
            f"req_waittime {one.count} samples [usec] 1 9 {round(9e6 * one.wait)} 0\n"
            f"req_qdepth {one.count} samples [reqs] 0 4 9 0\n",
        ]
    file.write_text("".join(blocks))
    join(run, [file])
    seen = served(run)
    file.write_text("".join(lustre(one) for one in sums))
    join(run, [file])
    of_one = served(run)
    assert seen is not None and of_one is not None and of_one.wait is not None and seen.wait is not None
    assert seen.wait == pytest.approx(of_one.wait)
    assert seen.seconds - seen.wait == pytest.approx(4 * (of_one.seconds - of_one.wait))


def test_a_job_that_asks_for_nothing_does_not_hinder_the_others(tmp_path: Path) -> None:
    """Its time is that of its last request. One that the server forgot in between is counted anew."""
    sums = list(queue(4, 2, DELAY))
    run = run_of(tmp_path / "run", 4, sums)
    line = (
        "- job_id: {}\n  snapshot_time: {}\n  open: {{ samples: {}, unit: usecs, min: 1, max: 9, sum: {}, sumsq: 1 }}\n"
    )
    file = tmp_path / "jobs"
    file.write_text(
        "".join(
            "mdt.fs-MDT0000.job_stats=\njob_stats:\n"
            + line.format("a", one.time, one.count + 1, round(1e6 * one.service) + 1)
            + line.format("idle", BEGAN - 9, 5, 50)
            + line.format("anew", one.time, 500 + n if n < 20 else n, 600 + n if n < 20 else n)
            for n, one in enumerate(sums)
        )
    )
    content = join(run, [file])
    assert set(content["phases"][0]["resources"]) == {"lustre mdt.fs-MDT0000 a open"}
    assert [note for note in content["notes"] if "left out" in note] == [
        "mdt.fs-MDT0000 idle made no request between the snapshots, and is left out.",
        "The counts of mdt.fs-MDT0000 anew began anew between the snapshots, and are left out.",
    ]


def test_what_counted_nothing_says_nothing_of_waits(tmp_path: Path) -> None:
    """Another mount than the run's, say. A file of unknown counters is refused with where to look."""
    sums = list(queue(4, 2, DELAY))
    run = run_of(tmp_path / "run", 4, sums)
    file = tmp_path / "mount"
    file.write_text("".join(mount(Sums(one.time, 0, 0.0, 0.0), 0.0, 0.0) for one in sums))
    join(run, [file])
    assert served(run) is None
    file.write_text("net 0 0 0 0\nrpc 5 0 5\n")
    with pytest.raises(InputError, match=r"mount:1: this is neither an observation .* nor counters .*observe.md"):
        join(run, [file])


def test_the_last_line_of_joined_counters_is_whole(tmp_path: Path) -> None:
    sums = list(queue(2, 1, DELAY))
    run = run_of(tmp_path / "run", 2, sums)
    file = tmp_path / "counters.txt"
    file.write_text("".join(lustre(one) for one in sums)[:-3])
    with pytest.raises(InputError, match=r"counters.txt:\d+: the file ends before the end of its last line"):
        join(run, [file])


def test_mounts_of_several_nodes_are_added_up(tmp_path: Path) -> None:
    """Each counts its own requests; without one of them nothing is known of the server."""
    sums = list(queue(4, 2, DELAY))
    run = run_of(tmp_path / "run", 4, sums)
    whole, files = tmp_path / "whole", [tmp_path / "a", tmp_path / "b"]
    whole.write_text("".join(mount(one, 0.001, 0.0) for one in sums))
    for file in files:
        file.write_text("".join(mount(one, 0.001, 0.0, share=0.5) for one in sums))
    join(run, [whole])
    once = served(run)
    assert once is not None
    [found] = join(run, files)["phases"]
    assert served(run, nodes=2) == pytest.approx(once, rel=1e-3)
    assert {name.split(" ")[0] for name in found["resources"]} == {"nfs:1", "nfs:2"}
    join(run, files[:1])
    assert served(run, nodes=2) is None and served(run, nodes=1) is not None


@pytest.mark.parametrize("text", ["lustre", "nfs"])
def test_order_falls_and_restarts(text: str, tmp_path: Path) -> None:
    """Snapshots in another order are the same ones; a fallen count and a restart are refused with their line."""
    sums = list(queue(2, 1, DELAY))
    run = run_of(tmp_path / "run", 2, sums)
    blocks = [lustre(one) if text == "lustre" else mount(one, 0.0, 0.0) for one in sums]
    file = tmp_path / "counters.txt"
    file.write_text("".join(blocks))
    as_written = join(run, [file])["phases"][0]["resources"]
    file.write_text("".join(blocks[20:] + blocks[:20]))
    assert join(run, [file])["phases"][0]["resources"] == as_written
    assert as_written["lustre mdt.fs-MDT0000 stat" if text == "lustre" else "nfs filer:/export on /scratch stat.trip"]
    fallen = [*blocks]
    fallen[20] = fallen[20].replace(str(sums[20].count), str(sums[20].count - 500))
    file.write_text("".join(fallen))
    with pytest.raises(InputError, match=r"counters.txt:\d+: .* counts less than in line \d+: .*anew in between"):
        join(run, [file])
    anew = sums[30]
    for number, one in enumerate(sums):
        since = one.time - anew.time + 100.0 if number >= 30 else one.time - BEGAN + 9000.0
        if text == "lustre":
            head, moment, rest = blocks[number].partition("secs.nsecs\n")
            blocks[number] = f"{head}{moment}elapsed_time {since:.3f} secs.nsecs\n{rest}"
        else:
            blocks[number] = blocks[number].replace(f"{3600 + round(one.time - BEGAN)}\n", f"{round(since)}\n")
    file.write_text("".join(blocks))
    with pytest.raises(InputError, match=r"counters.txt:\d+: .* has counted for .* s more than in .*anew in between"):
        join(run, [file])


def test_a_mount_without_times_says_how_to_write_them(tmp_path: Path) -> None:
    sums = list(queue(2, 1, DELAY))
    run = run_of(tmp_path / "run", 2, sums)
    file = tmp_path / "mountstats"
    file.write_text("".join(mount(one, 0.0, 0.0).partition("\n")[2] for one in itertools.islice(sums, 0, None, 2)))
    with pytest.raises(InputError, match=r"mountstats:1: this snapshot has no time, .*write 'snapshot_time: ' and"):
        join(run, [file])


def test_a_time_written_above_those_of_lustre_is_no_snapshot(tmp_path: Path) -> None:
    sums = list(queue(2, 1, DELAY))
    run = run_of(tmp_path / "run", 2, sums)
    file = tmp_path / "counters.txt"
    file.write_text("".join(lustre(one) for one in sums))
    plain = join(run, [file])["phases"]
    file.write_text("".join(f"snapshot_time: {one.time:.3f}\n{lustre(one)}" for one in sums) + "snapshot_time: 1\n")
    assert join(run, [file])["phases"] == plain


def test_looks_into_a_phase_are_those_of_each_counter(tmp_path: Path) -> None:
    """Two parameters with two snapshots each inside it are too few looks at either."""
    sums = list(queue(2, 1, DELAY))
    run = run_of(tmp_path / "run", 2, sums)
    file = tmp_path / "counters.txt"
    file.write_text("".join(lustre(one) for one in (sums[0], sums[15], sums[25], sums[35])))
    content = join(run, [file])
    assert all(use["busy"] is None for use in content["phases"][0]["resources"].values())
    assert content["observations"][0]["samples"] == 4 and content["observations"][0]["every_seconds"] == 5


def test_requests_of_a_server_without_times_are_counted(tmp_path: Path) -> None:
    """Two reads in a compound of each operation; threads are a fact that the owner may state."""
    sums = list(queue(2, 1, DELAY))
    run = run_of(tmp_path / "run", 2, sums)
    file = tmp_path / "nfsd.txt"
    zeros = " ".join(["0"] * 25)
    file.write_text(
        "".join(
            f"snapshot_time: {one.time}\nrc 0 0 0\nth 4 0\nproc4 2 0 {one.count}\nproc4ops 26 {zeros} {2 * one.count}\n"
            for one in sums
        )
    )
    content = join(run, [file])
    uses = {name: use["demand"] for name, use in content["phases"][0]["resources"].items()}
    assert uses == {"nfsd nfsd compound": pytest.approx(1), "nfsd nfsd compound.pread": pytest.approx(2)}
    assert served(run) is None and any("has 4 threads" in note for note in content["notes"])
    assert "2 requests" in utilisation_text(content)

# SPDX-License-Identifier: Apache-2.0
"""Disks and trains of requests, against what queueing theory and arithmetic say of them."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sharpness

from iocast import analytic

PLATFORM = """schema_version: 1
stations: {{s: {{count: {count}, servers: {servers}, spread: round-robin, disk: {{{disk}}}{rpc}}}}}{extra}
network: {{latency: {latency}, node_bandwidth: {node}, server_bandwidth: {server}, never_limited: 1B}}
operations:
  mkdir: []
  rmdir: []
  stat: []
  unlink: []
  open: []
  close: []
  fsync: [{{disk: write, station: s}}]
  create: {{write: [{write}]}}
  append: {{}}
  read: {{read: [{read}]}}
  pwrite: [{write}]
  pread: [{read}]
"""
TRAIN = "{{transfer: {}, station: s, demand: 150us}}"


def platform_file(place: Path, **keys: str) -> Path:
    """A platform with one station; what is not in `keys` limits nothing."""
    usual = {
        "count": "1", "servers": "8", "disk": "read: 1GB/s, write: 1GB/s", "rpc": "", "latency": "5us",
        "node": "5GB/s", "server": "3GB/s", "extra": "", "write": "{disk: write, station: s}",
        "read": "{disk: read, station: s}",
    }  # fmt: skip
    file = place / "platform.yaml"
    file.write_text(PLATFORM.format(**{**usual, **keys}))
    return file


def simulated(
    simulator: Path,
    file: Path,
    workload: str,
    *settings: str,
    nodes: int = 1,
    ppn: int = 1,
    seed: int = 0,
    dump: Path | None = None,
) -> Any:
    command = [str(simulator), "--platform", str(file), "--workload", workload, "--json", "--brief"]
    command += [
        "--nodes",
        str(nodes),
        "--ppn",
        str(ppn),
        "--seed",
        str(seed),
        *(a for s in settings for a in ("--set", s)),
    ]
    command += ["--dump-ops", str(dump)] if dump else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def access_seconds(simulator: Path, file: Path, size: int, operation: str = "pwrite", nodes: int = 1) -> float:
    """Mean seconds of one access of `size` bytes by each node."""
    run = simulated(simulator, file, "ior-easy", f"transfer_size={size}B", f"per_process={size}B", nodes=nodes)
    [phase] = [phase for phase in run["phases"] if operation in phase["latency"]]
    return float(phase["latency"][operation]["mean"])


RPC = ", rpc: {size: 4MiB, in_flight: 8}"
MIB = 1 << 20


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        # whole = 2 L + wire + demand + disk; then all bytes at the slowest stage, less one request's
        ({}, 2 * 5e-6 + 4 * MIB / 3e9 + 150e-6 + 1),
        ({"disk": "read: 7GB/s, write: 7GB/s"}, 2 * 5e-6 + 4 * MIB / 7e9 + 150e-6 + 1 / 3),
        ({"disk": "read: 7GB/s, write: 7GB/s", "node": "500MB/s"}, 2 * 5e-6 + 4 * MIB / 7e9 + 150e-6 + 2),
        # a window of 8 requests to a server that is 20 ms away
        ({"latency": "20ms"}, None),
    ],
)
def test_a_stream_has_what_its_slowest_stage_gives(
    simulator: Path, tmp_path: Path, keys: dict[str, str], expected: float | None
) -> None:
    file = platform_file(tmp_path, rpc=RPC, write=TRAIN.format("write"), read=TRAIN.format("read"), **keys)
    if expected is None:
        whole = 2 * 20e-3 + 4 * MIB / 3e9 + 150e-6 + 4 * MIB / 1e9
        expected = 7 * 4 * MIB / 1e9 + 1e9 / (8 * 4 * MIB / whole)
    for operation in ("pwrite", "pread"):
        assert access_seconds(simulator, file, 10**9, operation) == pytest.approx(expected, rel=1e-6)


def one_by_one(
    size: float, window: int, latency: float, demand: float, threads: int, wire: float, disk: float
) -> float:
    """Seconds of a write in requests of 4 MiB, each on its own: they follow each other on the wire, wait for a server
    and, with it, for the disk."""
    request = 4 * MIB
    on_wire = at_disk = 0.0
    free, done = [0.0] * threads, []
    for i in range(math.ceil(size / request)):
        bytes_of = min(request, size - i * request)
        sent = done[i - window] if i >= window else 0.0
        on_wire = max(on_wire, sent + latency) + bytes_of / wire
        server = min(range(threads), key=free.__getitem__)
        at_disk = max(at_disk, max(on_wire, free[server]) + demand) + bytes_of / disk
        free[server] = at_disk
        done.append(at_disk + latency)
    return done[-1]


@pytest.mark.parametrize("requests", [1, 2, 4, 64, 239])
@pytest.mark.parametrize("window", [1, 2, 8, 64])
@pytest.mark.parametrize(
    ("latency", "demand", "threads", "disk"),
    [(5e-6, 150e-6, 8, 1e9), (5e-6, 150e-6, 8, 7e9), (20e-3, 150e-6, 8, 1e9), (5e-6, 10e-3, 4, 7e9)],
)
def test_a_train_is_as_long_as_its_requests_one_by_one(
    simulator: Path,
    tmp_path: Path,
    requests: int,
    window: int,
    latency: float,
    demand: float,
    threads: int,
    disk: float,
) -> None:
    """Exact for whole requests where one stage limits; a window of several ends within one request's way."""
    file = platform_file(
        tmp_path, rpc=f", rpc: {{size: 4MiB, in_flight: {window}}}", latency=f"{latency}s", servers=str(threads),
        disk=f"read: {disk}B/s, write: {disk}B/s", write=f"{{transfer: write, station: s, demand: {demand}s}}",
    )  # fmt: skip
    expected = one_by_one(requests * 4 * MIB, window, latency, demand, threads, 3e9, disk)
    error = access_seconds(simulator, file, requests * 4 * MIB) / expected - 1
    if requests == 1:
        assert abs(error) < 1e-6
    else:
        assert abs(error) < (0.02 if requests >= 64 else max(0.02, window / requests)), error
    if requests >= 64:
        slowest = max(4 * MIB / 3e9, 4 * MIB / disk, (demand + 4 * MIB / disk) / threads)
        whole = 2 * latency + 4 * MIB / 3e9 + demand + 4 * MIB / disk
        assert access_seconds(simulator, file, 1024 * 4 * MIB) == pytest.approx(
            1024 * max(slowest, whole / window), rel=0.02
        )


@pytest.mark.parametrize(
    "disk",
    ["read: 1GB/s, write: 800MB/s", "read: 7GB/s, write: 7GB/s", "read: 1GB/s, write: 1GB/s, overhead: 2ms", None],
)
@pytest.mark.parametrize("step", [TRAIN, "{{transfer: {}, station: s}}"])
def test_the_analytic_solver_has_the_simulators_transfers(
    simulator: Path, tmp_path: Path, step: str, disk: str | None
) -> None:
    """One request, a stream and a train: alone to the nanosecond, and of six clients at one server as many a second."""
    steps = {"write": step.format("write"), "read": step.format("read")}
    file = platform_file(tmp_path, rpc=RPC, disk=disk or "", **steps)
    if disk is None:
        file.write_text(file.read_text().replace(", disk: {}", "").replace("[{disk: write, station: s}]", "[]"))
    command = [str(simulator), "--platform", str(file), "--print-platform"]
    resolved = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    for operation in ("pwrite", "pread"):
        for size in (1 << 14, MIB, 4 * MIB, 100 * MIB):
            alone = 1 / analytic.solve(resolved, {operation: 1}, 1, 1, 0, 1000, size=size).rate
            assert alone == pytest.approx(access_seconds(simulator, file, size, operation), abs=1e-9), size
        if step != TRAIN and disk and "overhead" in disk:
            continue  # they would be on the network all together, and then all at the disk
        rate = analytic.solve(resolved, {operation: 1}, 6, 1, 0, 1000, size=16 * MIB).rate
        run = simulated(simulator, file, "ior-easy", "transfer_size=16MiB", "per_process=640MiB", nodes=6)
        [phase] = [phase for phase in run["phases"] if operation in phase["latency"]]
        assert rate == pytest.approx(240 / phase["seconds"], rel=0.03), operation


def closed(demands: list[float], think: float, clients: int) -> float:
    """Operations a second of a closed network by mean value analysis, exact for processor sharing whatever the law."""
    queues, rate = [0.0] * len(demands), 0.0
    for n in range(1, clients + 1):
        times = [d * (1 + q) for d, q in zip(demands, queues, strict=True)]
        rate = n / (think + sum(times))
        queues = [rate * t for t in times]
    return rate


@pytest.mark.parametrize("overhead", [0.0, 0.001])
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("clients", [1, 3, 8])
def test_a_shared_disk_is_a_processor_sharing_queue(
    simulator: Path, tmp_path: Path, overhead: float, together: bool, clients: int
) -> None:
    """M/D/1-PS and M/M/1-PS have the same means; so has a closed network of such queues, exactly. Reads and writes
    share one queue, or have one each where the device moves as many bytes together as each alone."""
    think, operations = 0.004, 40000
    steps = "{{delay: {{law: exponential, mean: 4ms}}}}, {{disk: {}, station: s}}"
    disk = f"read: 1GB/s, write: 500MB/s, overhead: {overhead}s" + (", together: 1.5GB/s" if together else "")
    file = platform_file(tmp_path, disk=disk, write=steps.format("write"), read=steps.format("read"))
    run = simulated(
        simulator, file, "operation-mix", "sizes=0:1000KB,1:1000KB", "stat=0", "append=0", "files=10",
        f"operations={operations // clients}", "phases=precreate,benchmark", ppn=clients,
    )  # fmt: skip
    phase = run["phases"][-1]
    reads, writes = (phase["latency"][operation]["count"] for operation in ("read", "create"))
    done = reads + writes
    demands = [reads / done * (0.001 + overhead), writes / done * (0.002 + overhead)]
    expected = closed(demands if together else [sum(demands)], think, clients)
    # the mean of times that vary about as exponential ones do: five standard deviations
    sharpness.shift("rate of a shared disk, share", 5 / math.sqrt(done), 1 / math.sqrt(done))
    assert done / phase["seconds"] == pytest.approx(expected, rel=5 / math.sqrt(done))


def test_a_fifo_disk_is_an_m_d_1_queue(simulator: Path, tmp_path: Path) -> None:
    """Accesses as Poisson's wait as Pollaczek and Khinchine say."""
    clients, service, load, runs = 1000, 0.001, 0.7, 5
    file = platform_file(tmp_path, disk="read: 2GB/s, write: 1GB/s, discipline: fifo")
    settings = ("transfer_size=1000KB", "per_process=150MB", "most_seconds=100s", f"rate={load / service / clients}/s")
    means = []
    for seed in range(runs):
        run = simulated(simulator, file, "ior-easy", *settings, nodes=clients, seed=seed)
        [latency] = [phase["latency"]["pwrite"] for phase in run["phases"] if phase["name"] == "write"]
        assert latency["count"] == pytest.approx(100 * load / service, rel=0.05)
        means.append(latency["mean"])
    wait = load * service / (2 * (1 - load))
    error = float(np.std(means, ddof=1)) / math.sqrt(runs)
    sharpness.shift("wait at a fifo disk", 5 * error, error, "s")
    assert 5 * error < wait / 5
    assert np.mean(means) - service == pytest.approx(wait, abs=5 * error)


@pytest.mark.parametrize("share", [0.1, 0.25, 0.4])
def test_a_train_lessens_the_speed_of_a_fifo_disk(simulator: Path, tmp_path: Path, share: float) -> None:
    """Accesses beside a train, whose window lets it have a share of the disk, and the same ones at a disk that is
    slower by as much."""
    clients, each, request, speed, load = 200, 50, 10**6, 10**9, 0.7
    demand = request / (share * speed) - request / speed  # one request at a time: at a thread, then at the disk
    rate = load * (1 - share) * speed / request / clients
    long = int(2 * each / rate * share * speed)
    accesses = (
        "small.workload=ior-easy", f"small.ranks={clients}", f"small.transfer_size={request}B",
        f"small.per_process={each * request}B", f"small.rate={rate}/s",
    )  # fmt: skip
    train = ("train.workload=ior-easy", "train.ranks=1", f"train.transfer_size={long}B", f"train.per_process={long}B")
    latencies = []
    for disk, settings in ((speed, accesses + train), ((1 - share) * speed, accesses)):
        file = platform_file(
            tmp_path, disk=f"read: {disk}B/s, write: {disk}B/s, discipline: fifo", servers="1000", latency="0s",
            rpc=f", rpc: {{size: {request}B, in_flight: 1}}", node="1TB/s", server="100TB/s",
            write=f"{{transfer: write, station: s, demand: {demand}s}}",
        )  # fmt: skip
        run = simulated(simulator, file, "mix", *settings, nodes=clients + (settings != accesses))
        [latency] = [phase["latency"]["pwrite"] for phase in run["phases"] if "pwrite" in phase["latency"]]
        latencies.append([latency[name] - demand for name in ("q25", "q50", "q75", "q95", "q99")])
    assert latencies[0] == pytest.approx(latencies[1], rel=5e-3)
    assert latencies[1][-1] > 3 * request / ((1 - share) * speed), "they wait"


def test_each_key_of_a_disk_and_of_requests_changes_the_answer(simulator: Path, tmp_path: Path) -> None:
    """Four clients that write and then read accesses of 16 MiB; the same file again gives the same."""

    def answer(**keys: str) -> list[float]:
        steps = {"write": TRAIN.format("write"), "read": TRAIN.format("read")}
        file = platform_file(tmp_path, **{"disk": "read: 1GB/s, write: 800MB/s", "rpc": RPC, **steps, **keys})
        run = simulated(simulator, file, "ior-easy", "transfer_size=16MiB", "per_process=64MiB", nodes=4)
        return [float(phase["seconds"]) for phase in run["phases"]]

    base = answer()
    assert answer() == base
    for disk in (
        "read: 2GB/s, write: 800MB/s", "read: 1GB/s, write: 900MB/s", "read: 1GB/s, write: 800MB/s, overhead: 1ms",
        "read: 1GB/s, write: 800MB/s, slowdown: [1, 0.9]",
    ):  # fmt: skip
        assert answer(disk=disk) != base, disk
    fifo = answer(disk="read: 1GB/s, write: 800MB/s, discipline: fifo")
    assert fifo == pytest.approx(base, rel=0.1)  # as much in all, in another order
    for rpc in (", rpc: {size: 2MiB, in_flight: 8}", ", rpc: {size: 4MiB, in_flight: 1}"):
        assert answer(rpc=rpc) != base, rpc


@pytest.mark.parametrize("size", [16384, 4 * MIB, 32 * MIB])
def test_no_byte_more_or_less_makes_a_cliff(simulator: Path, tmp_path: Path, size: int) -> None:
    """At the size of a request, of a window, and where transfers begin to be flows: alone, and with 20 clients that
    keep the disk busy."""
    file = platform_file(tmp_path, rpc=RPC, write=TRAIN.format("write"))
    file.write_text(file.read_text().replace("never_limited: 1B", "never_limited: 16KiB"))
    for nodes in (1, 20):
        times = []
        for each in (size - 1, size, size + 1):
            run = simulated(
                simulator, file, "ior-easy", f"transfer_size={each}B", f"per_process={50 * each}B", nodes=nodes
            )
            [phase] = [phase for phase in run["phases"] if "pwrite" in phase["latency"]]
            times.append(phase["seconds"])
        assert times == pytest.approx([times[1]] * 3, rel=0.02)
        if nodes == 20:
            assert times[1] == pytest.approx(20 * 50 * size / 1e9, rel=0.1 if size > 16384 else 0.3)


def test_an_access_without_bytes_takes_the_overhead(simulator: Path, tmp_path: Path) -> None:
    file = platform_file(tmp_path, disk="read: 1GB/s, write: 1GB/s, overhead: 3ms")
    run = simulated(simulator, file, "application", "block_size=1MB", "per_process=1MB", "fsync=end", "run=write")
    [phase] = [phase for phase in run["phases"] if "fsync" in phase["latency"]]
    assert phase["latency"]["fsync"]["mean"] == pytest.approx(0.003, rel=1e-9)
    assert phase["latency"]["pwrite"]["mean"] == pytest.approx(0.004, rel=1e-9)
    assert phase["network"]["busiest"][0]["name"] == "s 0 disk"
    assert phase["network"]["busiest"][0]["busy"] == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("length", ["1h", "1s"])
def test_a_failing_disk_is_busy_by_what_is_left_of_it(simulator: Path, tmp_path: Path, length: str) -> None:
    """Four clients keep four disks busy, of which a failure leaves one a fifth: for all of the phase, or for a part."""
    failure = f"\nfailures: {{slow: {{disk: s 2, at: 0s, length: {length}, share: 0.2}}}}"
    file = platform_file(tmp_path, count="4", extra=failure, disk="read: 1GB/s, write: 1GB/s")
    run = simulated(simulator, file, "ior-easy", "transfer_size=1MiB", "per_process=4GiB", nodes=8)
    [phase] = [phase for phase in run["phases"] if phase["name"] == "write"]
    assert phase["seconds"] > 2
    busiest = phase["network"]["busiest"][0]
    assert busiest["name"] == "s 2 disk" and 0.9 < busiest["busy"] < 1 + 1e-9
    assert sum(disk["busy"] for disk in phase["network"]["busiest"][1:]) < 1.99


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"disk": "read: 0B/s, write: 1GB/s"}, ":2: "),
        ({"disk": "read: 1GB/s"}, "write"),
        ({"disk": "read: 1GB/s, write: 1GB/s, together: 3GB/s"}, "no more than of both"),
        ({"disk": "read: 1GB/s, write: 1GB/s, discipline: elevator"}, "fifo"),
        ({"disk": "read: 1GB/s, write: 1GB/s, slowdown: [2]"}, "2"),
        ({"disk": "bandwidth: 1GB/s"}, "read and write"),
        ({"write": TRAIN.format("write")}, "rpc"),
        ({"rpc": ", rpc: {size: 0B, in_flight: 1}"}, ":2: "),
    ],
)
def test_what_a_disk_cannot_be_is_refused(simulator: Path, tmp_path: Path, keys: dict[str, str], sentence: str) -> None:
    file = platform_file(tmp_path, **keys)
    done = subprocess.run(
        [str(simulator), "--platform", str(file), "--workload", "ior-easy"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "platform.yaml:" in done.stderr and sentence in done.stderr, done.stderr

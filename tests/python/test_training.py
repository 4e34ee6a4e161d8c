# SPDX-License-Identifier: Apache-2.0
"""Training and checkpoints in the simulator, against arithmetic: what accelerators compute, and what feeds them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_devices import MIB, RPC, TRAIN, platform_file, simulated

from iocast.training.fed import fed, numbers_of
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted

READ_SECONDS = 0.01
SLOW = f"{{station: s, demand: {READ_SECONDS}s}}"


def trained(simulator: Path, file: Path, *settings: str, nodes: int = 1, ppn: int = 1) -> Any:
    usual = ("phases=train", "read_block=0B", "sample_size=1kB", "batch=2", "readers=1", "steps=200")
    chosen = {text.partition("=")[0]: text for text in (*usual, *settings)}
    run = simulated(simulator, file, "training", *chosen.values(), nodes=nodes, ppn=ppn)
    return run["phases"][0]


@pytest.mark.parametrize("compute_ms", [5, 20, 40])
@pytest.mark.parametrize("accelerators", [1, 4])
def test_utilisation_is_that_of_a_closed_network(
    simulator: Path, tmp_path: Path, compute_ms: int, accelerators: int
) -> None:
    """One server of 10 ms a sample: a step takes the longer one of its computation and of all accelerators' samples."""
    file = platform_file(tmp_path, servers="1", read=SLOW)
    phase = trained(simulator, file, f"compute_time={compute_ms}ms", ppn=accelerators)
    step = max(compute_ms / 1e3, 2 * accelerators * READ_SECONDS)
    of = phase["accelerators"]
    assert of["count"] == accelerators
    assert of["compute_seconds"] == pytest.approx(200 * accelerators * compute_ms / 1e3)
    assert of["utilisation"] == pytest.approx(of["compute_seconds"] / accelerators / phase["seconds"])
    assert of["utilisation_after_first_step"] == pytest.approx(compute_ms / 1e3 / step, rel=0.01)
    assert of["samples_per_second"] == pytest.approx(2 * accelerators / step, rel=0.02)


def test_readers_are_ahead_by_what_the_queue_holds(simulator: Path, tmp_path: Path) -> None:
    """A station that stands still for a while after computing was ahead of it: a longer queue hides a longer stall."""
    file = platform_file(
        tmp_path,
        servers="1",
        read=SLOW,
        extra="\nstalls: {pause: {station: s, every: 1s, length: 200ms, operations: [read]}}",
    )
    found = [
        trained(simulator, file, "compute_time=30ms", f"prefetch={prefetch}")["accelerators"]["utilisation"]
        for prefetch in (1, 2, 4, 12)
    ]
    assert found == sorted(found)
    assert found[0] < 0.93 < 0.97 < found[-1]


@pytest.mark.parametrize(("disk", "node"), [(1e9, 5e9), (4e9, 2e9)])
def test_a_lone_stream_has_the_slower_of_device_and_link(
    simulator: Path, tmp_path: Path, disk: float, node: float
) -> None:
    """Samples of 128 requests, read by one reader."""
    file = platform_file(
        tmp_path, rpc=RPC, read=TRAIN.format("read"), disk=f"read: {disk:.0f}B/s, write: 1GB/s", node=f"{node:.0f}B/s"
    )
    phase = trained(
        simulator, file, "compute_time=0s", f"sample_size={512 * MIB}B", "read_block=1GiB", "batch=1", "steps=40"
    )
    assert phase["accelerators"]["bytes_per_second"] == pytest.approx(min(disk, node), rel=0.02)


def test_an_epoch_reads_each_sample_once_and_in_another_order(simulator: Path, tmp_path: Path) -> None:
    file = platform_file(tmp_path)
    orders = []
    for seed in (0, 1):
        out = tmp_path / f"ops-{seed}"
        simulated(
            simulator, file, "training", "epochs=2", "batch=3", "readers=2", "steps=5", "compute_time=1ms",
            "sample_size=1kB", "phases=train", f"seed={seed}", f"files={5 * 3 * 2}", ppn=4, dump=out,
        )  # fmt: skip
        for epoch in (1, 2):
            read = []
            for rank in range(4):
                parts = (out / f"ops.{rank}").read_text().split("phase")
                read += [line.split()[2] for line in parts[epoch].splitlines() if line.startswith("read ")]
            orders.append(read)
    assert all(sorted(map(int, order)) == list(range(30)) for order in orders)
    assert len({tuple(order) for order in orders}) == 4


def test_a_rate_paces_steps(simulator: Path, tmp_path: Path) -> None:
    phase = trained(simulator, platform_file(tmp_path), "compute_time=1ms", "rate=20/s")
    assert phase["seconds"] == pytest.approx(200 / 20, rel=0.01)
    assert phase["accelerators"]["utilisation"] == pytest.approx(0.02, rel=0.01)


@pytest.mark.parametrize("interval", [1, 10])
def test_the_stall_of_a_checkpoint_is_the_time_that_it_takes(simulator: Path, tmp_path: Path, interval: int) -> None:
    file = platform_file(tmp_path)  # one disk of 1 GB/s
    run = simulated(simulator, file, "checkpoint", "size=2GB", f"interval={interval}s", "sync=false", ppn=8)
    phase = next(one for one in run["phases"] if one["name"] == "checkpoint")
    assert phase["accelerators"]["stall_share"] == pytest.approx(2 / (interval + 2), rel=0.01)
    written = [row["bytes"] for one in run["phases"] for op, row in one["by_operation"].items() if op == "pwrite"]
    assert written == [pytest.approx(2e9, abs=8)]


@pytest.mark.parametrize(
    ("model", "bytes_", "accelerators"),
    [("8B", 105e9, 8), ("70B", 912e9, 64), ("405B", 5.29e12, 512), ("1T", 18e12, 1024)],
)
def test_models_have_the_sizes_of_the_benchmarks_rules(
    simulator: Path, tmp_path: Path, model: str, bytes_: float, accelerators: int
) -> None:
    run = simulated(
        simulator, platform_file(tmp_path), f"llama3-{model.lower()}", "block=1TB", "interval=1s",
        "phases=precreate,checkpoint",
    )  # fmt: skip
    phase = run["phases"][-1]
    assert phase["accelerators"]["count"] == accelerators == phase["by_operation"]["open"]["count"]
    assert phase["by_operation"]["pwrite"]["bytes"] == pytest.approx(bytes_, rel=1e-9)


def test_accelerators_fill_nodes() -> None:
    answer = fed(Fitted.open("lustre"), "cosmoflow", {"steps": "10"}, numbers_of("16,2"))
    rows = answer["rows"]
    assert (answer["kind"], answer["source"], answer["workload"]) == ("fed", "simulated", "cosmoflow")
    assert [(row["accelerators"], row["nodes"], row["readers"]) for row in rows] == [(2, 1, 8), (16, 2, 64)]
    for text in ("0", "8,x", ""):
        with pytest.raises(InputError, match="no list of whole numbers"):
            numbers_of(text)
    with pytest.raises(InputError, match="no whole nodes"):
        fed(Fitted.open("lustre"), "cosmoflow", {}, [12])
    with pytest.raises(InputError, match="is for training"):
        fed(Fitted.open("lustre"), "md-workbench", {}, [8])


def test_sizes_are_aligned_for_direct_access(simulator: Path, tmp_path: Path) -> None:
    file = platform_file(tmp_path)
    of = trained(simulator, file, "steps=10", "sample_size=5000B", "align=4KiB", "compute_time=1ms")
    assert of["by_operation"]["read"]["bytes"] == 10 * 2 * 8192
    run = simulated(simulator, file, "checkpoint", "size=100kB", "align=4KiB", "phases=precreate,checkpoint")
    assert run["phases"][-1]["by_operation"]["pwrite"]["bytes"] == 8 * 16384


def test_samples_have_their_mean_size_or_are_refused(simulator: Path, tmp_path: Path) -> None:
    """Sizes end at four times the mean; what is cut off there is less than a percent, or the law is refused."""
    file = platform_file(tmp_path)
    sizes = ["steps=2000", "sample_size=1MB", "compute_time=1ms"]
    mean, wide = (
        trained(simulator, file, *sizes, f"sample_deviation={deviation}")["by_operation"]["read"]
        for deviation in ("0B", "600kB")
    )
    assert wide["bytes"] / wide["count"] == pytest.approx(mean["bytes"] / mean["count"], rel=0.05)
    command = [simulator, "--platform", file, "--workload", "training", "--set", "sample_size=1MB"]
    done = subprocess.run([*command, "--set", "sample_deviation=800kB"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "at most 0.7 times" in done.stderr

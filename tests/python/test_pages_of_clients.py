# SPDX-License-Identifier: Apache-2.0
"""Pages of clients on the catalogue's platforms: who reads what it wrote finds it, who reads another node's meets the
servers, what is written goes behind, and files of CephFS lie in objects on all OSDs."""

from __future__ import annotations

import json
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import pytest

Run = Callable[..., dict[str, Any]]
Iocast = Callable[..., CompletedProcess[str]]
MIB = 1 << 20
BYTES, NODES = 64 * MIB, 2
CLIENTS = {
    "nfs": ("pages", "dirty"),
    "cephfs": ("pages", "dirty"),
    "gpfs": ("pages", "unwritten"),
    "lustre-cached": ("pages", "dirty"),
}
"""By platform, the cache of a client's pages and the buffer of bytes that it has not written yet."""


def phases(simulate: Run, platform: str, *more: str) -> dict[str, dict[str, Any]]:
    settings = f"--workload application --nodes {NODES} --set sharing=process --set per_process={BYTES}B"
    settings += " --set block_size=1MiB --set run=write,read"
    run = simulate(platform, *settings.split(), *more)
    return {phase["name"]: phase for phase in run["phases"]}


@pytest.mark.parametrize("platform", CLIENTS)
def test_a_node_finds_what_it_wrote_and_not_what_another_did(platform: str, simulate: Run) -> None:
    own, others = (phases(simulate, platform, "--set", f"shift={shift}")["read"] for shift in (0, 1))
    cache = CLIENTS[platform][0]
    blocks = NODES * BYTES // MIB
    assert own["caches"][cache]["hits"] == own["caches"][cache]["lookups"] == blocks
    assert others["caches"][cache]["hits"] < blocks
    assert own["seconds"] < 0.7 * others["seconds"]


@pytest.mark.parametrize("platform", CLIENTS)
def test_a_flush_waits_for_what_went_behind(platform: str, simulate: Run) -> None:
    buffer = CLIENTS[platform][1]
    ends = {}
    for fsync in ("never", "end"):
        write = phases(simulate, platform, "--set", f"fsync={fsync}")["write"]
        ends[fsync] = write["seconds"]
        held = write["buffers"][buffer]
        assert held["entered"] == NODES * BYTES == held["drained"] + held["held"]
    assert held["held"] == 0
    assert ends["end"] > 1.02 * ends["never"] or platform == "nfs"  # which flushes when the file is closed


@pytest.mark.parametrize("objects", [1, 12, 24])
def test_a_file_of_cephfs_lies_in_objects_of_4_mib_by_chance(objects: int, simulate: Run) -> None:
    """Each object crosses its primary's card three times, in and out to two copies, which are with the next OSDs. By
    chance as many objects as there are OSDs lie less evenly than one on each."""
    settings = f"--workload application --nodes 1 --set sharing=process --set per_process={4 * objects}MiB"
    settings += " --set block_size=1MiB --set run=write --set fsync=end"
    write = next(p for p in simulate("cephfs", *settings.split())["phases"] if p["name"] == "write")
    most = write["network"]["shares"]["osd"]
    crossed = most["share"] * 5 * objects
    assert most["instances"] == 12 and crossed == pytest.approx(round(crossed))
    assert crossed == pytest.approx(3) if objects == 1 else most["share"] > 1.2 / 12


@pytest.mark.parametrize("platform", ["nfs", "cephfs", "gpfs", "lustre-cached"])
def test_no_link_limits_what_a_nodes_own_pages_answer(iocast: Iocast, platform: str) -> None:
    settings = ["--set", "per_process=16MiB", "--set", "shift_nodes=0", "--phase", "read"]
    done = iocast("simulate", platform, "ior-easy", "--nodes", 1, "--ppn", 4, *settings, "--json")
    assert json.loads(done.stdout)["limited_by"] != "links", "its bytes cross none"

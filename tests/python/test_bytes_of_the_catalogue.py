# SPDX-License-Identifier: Apache-2.0
"""On every platform of the catalogue each byte meets a device or the network's cards, and no rate is beyond them."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from programs import REPOSITORY

PLATFORMS = sorted(file.stem for file in (REPOSITORY / "platforms").glob("*.yaml"))
WITHOUT_DEVICE = {
    "local": "a page cache; bytes take the cores' time",
    "local-ext4-hdd": "a miss of the page cache is an access of a device, whose time is that of small files",
    "local-ext4-ssd": "likewise",
    **{f"local-{name}": "likewise" for name in ("xfs-hdd", "xfs-ssd", "xfs-memory")},
    **{f"local-{name}": "likewise" for name in ("btrfs-hdd", "btrfs-ssd", "btrfs-memory")},
    "service": "as local",
    "multisocket": "a study of metadata alone",
    "network": "what a calibration takes where nobody says what the storage is",
    "queue": "likewise",
    "queuefs": "what a selftest measures, which moves no bytes",
    "lustre-gigabit": "servers write back behind their cards, which are slower than their disks",
    "pvfs2-gigabit": "likewise",
}
"""Platforms on which bytes meet no device, each with its reason."""
MOVE = ("create", "append", "read", "pwrite", "pread")
NODES, SIZE, FILES = 20, 64 << 20, 4


@cache
def resolved(simulator: Path, name: str) -> dict[str, Any]:
    done = subprocess.run(
        [str(simulator), "--platform", name, "--print-platform"], capture_output=True, text=True, check=True
    )
    platform: dict[str, Any] = json.loads(done.stdout)
    return platform


ALL = ("steps", "hit", "miss", "recall")
"""What a step holds further steps under."""


def steps_of(
    platform: dict[str, Any], steps: list[dict[str, Any]], under: tuple[str, ...] = ALL
) -> Iterator[dict[str, Any]]:
    """All steps, or those of them that are under some of these keys alone; those with which buffers drain among
    them."""
    for step in steps:
        yield step
        for inner in under:
            yield from steps_of(platform, step.get(inner, []), under)
        if "buffer" in step:
            yield from steps_of(platform, platform["buffers"][step["buffer"]]["drain"], under)


def is_device(platform: dict[str, Any], step: dict[str, Any]) -> bool:
    station = platform["stations"].get(step.get("station", ""), {})
    return ("disk" in station and ("disk" in step or "transfer" in step)) or (
        float(step.get("bandwidth", 0)) > 0 and station.get("per") == "system"
    )


@pytest.mark.parametrize("name", PLATFORMS)
def test_bytes_meet_a_device(simulator: Path, name: str) -> None:
    platform = resolved(simulator, name)
    missing = [
        operation
        for operation in MOVE
        if not any(
            is_device(platform, step)
            for part in platform["operations"].get(operation, [])
            for step in steps_of(platform, part["steps"])
        )
    ]
    assert bool(missing) == (name in WITHOUT_DEVICE), missing


def bound(platform: dict[str, Any], operation: str) -> float:
    """Bytes a second that the operation can move at most, wherever caches hit: cards of the nodes, cards and disks of
    the servers."""
    network = platform["network"]
    steps = [s for part in platform["operations"][operation] for s in steps_of(platform, part["steps"], ("steps",))]
    limits = []
    for step in steps:
        station = platform["stations"].get(step.get("station", ""), {})
        count = station.get("count", 1)
        if "transfer" in step:
            limits += [NODES * network["node_bandwidth"], count * network["server_bandwidth"]]
            limits += [count * station["disk"][step["transfer"]]] if "disk" in station else []
        if "disk" in step:
            limits.append(count * station["disk"][step["disk"]])
        if station.get("per") == "system" and float(step.get("bandwidth", 0)) > 0:
            limits.append(count * station["servers"] * step["bandwidth"])
    return min((limit for limit in limits if limit > 0), default=math.inf)


@pytest.mark.parametrize("name", [name for name in PLATFORMS if name not in WITHOUT_DEVICE])
def test_no_rate_is_beyond_cards_and_devices(simulator: Path, name: str) -> None:
    """Files of 64 MiB are made, and streams are written and read; what is left in buffers of nodes isn't counted."""
    platform = resolved(simulator, name)
    held = sum(NODES * b["capacity"] for b in platform["buffers"].values() if b.get("per") == "node")
    making = (
        "md-workbench",
        "datasets=1",
        f"objects={FILES}",
        "iterations=1",
        f"object_size={SIZE}B",
        "phases=precreate",
    )
    streaming = ("ior-easy", f"per_process={FILES * SIZE}B", f"transfer_size={SIZE}B")
    for workload, *settings in (making, streaming):
        run = json.loads(
            subprocess.run(
                [
                    str(simulator), "--platform", name, "--workload", workload, "--json", "--brief",
                    "--beyond", "--nodes", str(NODES), *(a for s in settings for a in ("--set", s)),
                ],
                capture_output=True, text=True, check=True,
            ).stdout
        )  # fmt: skip
        for phase in run["phases"]:
            for operation in MOVE:
                count = phase["latency"].get(operation, {}).get("count")
                if not count:
                    continue
                moved = count * SIZE - (held if operation in ("create", "append", "pwrite") else 0)
                assert moved / phase["seconds"] <= bound(platform, operation) * (1 + 1e-9), (workload, operation)

# SPDX-License-Identifier: Apache-2.0
"""Bulk transfers that begin and end at any time, over shared links: each flow of a simulation against max-min fair sharing computed anew here
(Bertsekas & Gallager 1992, section 6.5.2: the link with the least for each of its flows settles theirs, then the next one)."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

NODES, RANKS_PER_NODE, SERVERS = 3, 4, 12
LATENCY, NODE_BANDWIDTH, SERVER_BANDWIDTH = 40e-6, 9.8e6, 6.5e6
PLATFORM = f"""
schema_version: 1
stations: {{s: {{count: {SERVERS}, servers: 1, spread: round-robin}}}}
network: {{latency: 40us, node_bandwidth: 9.8MB/s, server_bandwidth: 6.5MB/s, flow_threshold: 1B}}
operations:
  create: {{write: [{{transfer: write, station: s}}]}}
  stat: []
  read: {{}}
  unlink: []
  mkdir: []
  rmdir: []
"""
CREATE = 2  # of the trace, docs/operations.md


@dataclass(frozen=True)
class Flow:
    start: float
    end: float
    size: float
    links: tuple[str, str]


def flows_of(trace: Path) -> list[Flow]:
    """Files of one directory go to the servers in turn; which is the first doesn't matter."""
    names = ("kind", "size", "rank", "dataset", "object", "start_ns", "duration_ns")
    with h5py.File(trace) as file:
        rows = np.stack([file[name][:].astype(np.int64) for name in names], axis=1)
    rows = rows[rows[:, 0] == CREATE]
    assert len(set(rows[:, 3])) == 1
    return [
        Flow(start * 1e-9, (start + duration) * 1e-9, float(size), (f"node {rank // RANKS_PER_NODE}", f"server {number % SERVERS}"))
        for _, size, rank, _, number, start, duration in rows.tolist()
    ]


def fair_rates(active: dict[int, tuple[str, str]]) -> dict[int, float]:
    """Bytes a second of each flow, by its number."""
    left = {link: NODE_BANDWIDTH if link.startswith("node") else SERVER_BANDWIDTH for links in active.values() for link in links}
    rates: dict[int, float] = {}
    while len(rates) < len(active):
        waiting = {number: links for number, links in active.items() if number not in rates}
        users = {link: [number for number, links in waiting.items() if link in links] for link in left}
        tightest = min((link for link in left if users[link]), key=lambda link: left[link] / len(users[link]))
        share = left[tightest] / len(users[tightest])
        for number in users[tightest]:
            rates[number] = share
            for link in active[number]:
                left[link] -= share
    return rates


def ends_of(flows: list[Flow]) -> list[float]:
    """When each would end, given when they begin: its bytes flow once the latency is over."""
    begins = sorted((flow.start + LATENCY, number) for number, flow in enumerate(flows))
    ends, missing, now = [0.0] * len(flows), {}, 0.0
    while begins or missing:
        rates = fair_rates({number: flows[number].links for number in missing})
        next_end = min((now + missing[number] / rates[number] for number in missing), default=np.inf)
        then = min(next_end, begins[0][0] if begins else np.inf)
        missing = {number: bytes_left - rates[number] * (then - now) for number, bytes_left in missing.items()}
        now = then
        for number in [number for number, bytes_left in missing.items() if bytes_left < 1e-3]:
            ends[number] = now
            del missing[number]
        while begins and begins[0][0] <= now:
            number = begins.pop(0)[1]
            missing[number] = flows[number].size
    return ends


def test_flows_share_links_fairly_whenever_they_come(iocast_sim: Path, tmp_path: Path) -> None:
    platform, out = tmp_path / "platform.yaml", tmp_path / "run"
    platform.write_text(PLATFORM)
    settings = ["items=60", "think_time=1ms", "think_law=exponential"]
    command = [iocast_sim, "--platform", platform, "--workload", "mdtest-hard", *(word for setting in settings for word in ("--set", setting))]
    placement = ["--nodes", str(NODES), "--ppn", str(RANKS_PER_NODE), "--no-time-limits"]
    subprocess.run([*command, *placement, "--trace", "--out", out], check=True, capture_output=True)
    flows = flows_of(out / "ops.h5")
    assert len(flows) == 60 * NODES * RANKS_PER_NODE
    assert np.max(np.abs(np.array(ends_of(flows)) - [flow.end for flow in flows])) < 1e-7  # starts and ends are known to the nanosecond

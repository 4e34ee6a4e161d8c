# SPDX-License-Identifier: Apache-2.0
"""Writes that a client's memory takes at once: how long bursts, larger ones and flushes take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., dict[str, Any]]
MIB = 1 << 20
COPY, WIRE = 4096 * MIB, 256 * MIB
"""Bytes a second of the copy into memory, and of a client's card."""
DIRTY = 64 * MIB
PLATFORM = f"""schema_version: 1
stations: {{memory: {{per: node, servers: 8}}, server: {{count: 4, spread: object}}}}
network: {{node_bandwidth: {WIRE}B/s, server_bandwidth: 100GiB/s}}
buffers:
  dirty: {{capacity: {DIRTY}B, unit: 1MiB, at_once: 8, drain: [{{transfer: write, station: server}}]}}
operations:
  mkdir: []
  rmdir: []
  open: []
  close: []
  unlink: []
  create: {{}}
  pwrite: [{{station: memory, demand: 0s, bandwidth: {COPY}B/s}}, {{buffer: dirty}}]
  fsync: [{{flush: dirty, of: object}}]
"""


@pytest.mark.parametrize("nodes", [1, 7])
@pytest.mark.parametrize("fsync", ["never", "end"])
@pytest.mark.parametrize("written", [16 * MIB, 64 * MIB, 256 * MIB])
def test_a_burst_ends_at_the_speed_of_memory_and_what_is_beyond_at_that_of_the_card(
    simulate: Run, tmp_path: Path, written: int, fsync: str, nodes: int
) -> None:
    """Of B bytes the card takes W a second from the first piece on. Without a flush the last block is in when all but
    what memory holds is out, with one when all is."""
    (tmp_path / "p.yaml").write_text(PLATFORM)
    settings = f"--set sharing=process --set per_process={written}B --set block_size=1MiB --set run=write"
    arguments = f"--workload application --nodes {nodes} {settings} --set fsync={fsync}".split()
    phase = next(p for p in simulate(tmp_path / "p.yaml", *arguments)["phases"] if p["name"] == "write")
    copy, through = written / COPY, (written - DIRTY * (fsync == "never")) / WIRE
    if through <= 0:
        assert phase["seconds"] == pytest.approx(copy, rel=1e-6)
    else:  # the first piece waits for its bytes, and eight that share the card end together
        assert through <= phase["seconds"] * (1 + 1e-9) and phase["seconds"] <= through + 9 * MIB / WIRE
    buffer = phase["buffers"]["dirty"]
    assert buffer["entered"] == nodes * written == buffer["drained"] + buffer["held"]
    assert buffer["peak"] <= DIRTY and (fsync != "end" or buffer["held"] == 0)


def test_on_lustre_with_memory_a_reader_elsewhere_waits_until_it_is_written_back(simulate: Run) -> None:
    """One node reads what it wrote itself from its pages; another one has it flushed first, and fetches it."""
    settings = "--workload application --nodes 2 --set sharing=process --set per_process=64MiB --set block_size=1MiB"
    own, others = (
        simulate("lustre-cached", *settings.split(), "--set", "run=write,read", "--set", f"shift={shift}")
        for shift in (0, 1)
    )
    for run, hits in ((own, 128), (others, 0)):
        read = next(p for p in run["phases"] if p["name"] == "read")
        assert read["caches"]["pages"]["lookups"] == 128
        assert (read["caches"]["pages"]["hits"] == hits) is (hits == 128)
        held = read["buffers"]["dirty"]["held"]
        assert held == 0 or hits == 128

# SPDX-License-Identifier: Apache-2.0
"""Memory of servers on the catalogue's platforms: what is warm there meets no disk, a working set beyond it costs what
its share of misses says, and what is written goes to the disk behind."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iocast import analytic
from iocast.ground.binaries import resolve_platform
from iocast.calibrate.search import remembers
from iocast.errors import InputError

Run = Callable[..., dict[str, Any]]
MIB = 1 << 20
FILES, OPERATIONS, SIZE = 200, 6000, 1 << 18
MEMORY = {"nfs": ("memory", "pages: {capacity: 512KiB}, ")}
"""By platform: the cache of its servers, and what leaves its clients none that would hold a file."""
READS = "--workload operation-mix --set stat=0 --set create=0 --set unlink=0 --set append=0 --set read=1"


def phase(run: dict[str, Any], name: str) -> dict[str, Any]:
    return next(p for p in run["phases"] if p["name"] == name)


def variant(folder: Path, name: str, lines: str) -> Path:
    file = folder / "variant.yaml"
    file.write_text(f"schema_version: 1\nextends: {name}\nclients: {{speed_sigma: 0}}\n{lines}\n")
    return file


@pytest.mark.parametrize("platform", MEMORY)
def test_a_working_set_beyond_a_servers_memory_costs_what_its_share_of_misses_says(
    platform: str, simulate: Run, tmp_path: Path
) -> None:
    """W files that are equally likely, of which C fit: a read misses with 1 - C / W, so that the mean time of a read
    lies between those of all hits and of none in that proportion."""
    cache, clients = MEMORY[platform]

    def reads(files: int) -> tuple[float, float]:
        file = variant(tmp_path, platform, f"caches: {{{clients}{cache}: {{capacity: {files * SIZE}B}}}}")
        settings = f"{READS} --set files={FILES} --set operations={OPERATIONS} --set sizes=0:{SIZE}B,1:{SIZE}B".split()
        run = phase(simulate(file, *settings), "benchmark")
        return run["latency"]["read"]["mean"], run["caches"][cache]["hits"] / run["caches"][cache]["lookups"]

    (fastest, most), (slowest, least) = reads(2 * FILES), reads(1)
    assert most > 0.97 and least < 0.03 and slowest > 1.2 * fastest
    for files in (50, 100, 150):
        mean, hits = reads(files)
        assert hits == pytest.approx(files / FILES, abs=5 * math.sqrt(0.25 / OPERATIONS) + FILES / OPERATIONS)
        assert mean == pytest.approx(fastest + (slowest - fastest) * (most - hits) / (most - least), rel=0.04)


DISK, OVERHEAD, WIRE, COPY = 500e6, 100e-6, 1e9, 5e9
"""Of `nfs`: bytes a second of the server's disk, seconds of an access, and bytes a second of its link and of a client's
memory."""
AT_ONCE = 64
"""Pieces of a client on their way."""
BYTES, NODES = 256 * MIB, 2


def application(simulate: Run, file: Path, run: str) -> dict[str, Any]:
    settings = f"--workload application --nodes {NODES} --ppn 1 --set sharing=process --set per_process={BYTES}B"
    return simulate(file, *f"{settings} --set block_size=1MiB --set shift=1 --set run={run}".split())


@pytest.mark.parametrize(("memory", "cold"), [(2 * NODES * BYTES, False), (NODES * BYTES // 2, True)])
def test_what_another_node_wrote_is_warm_at_the_server_as_long_as_it_fits(
    memory: int, cold: bool, simulate: Run, tmp_path: Path
) -> None:
    file = variant(tmp_path, "nfs", f"caches: {{memory: {{capacity: {memory}B}}}}")
    read = phase(application(simulate, file, "write,read"), "read")
    assert (read["seconds"] >= NODES * BYTES / DISK) is cold
    assert (read["caches"]["memory"]["hits"] == 0) is cold


@pytest.mark.parametrize("unwritten", [8 * MIB, NODES * BYTES * 4])
def test_what_is_written_is_flushed_behind_or_when_the_file_is_closed(
    unwritten: int, simulate: Run, tmp_path: Path
) -> None:
    """A server that keeps little writes while clients send more; one that keeps all begins when they
    close."""
    lines = f"buffers: {{unwritten: {{capacity: {unwritten}B}}, dirty: {{capacity: {BYTES}B}}}}"
    write = phase(application(simulate, variant(tmp_path, "nfs", lines), "write"), "write")
    pieces = NODES * BYTES / MIB
    to_disk, over_wire = NODES * BYTES / DISK + pieces * OVERHEAD, NODES * BYTES / WIRE
    buffer = write["buffers"]["unwritten"]
    assert buffer["entered"] == buffer["drained"] == NODES * BYTES and buffer["peak"] <= unwritten
    copy = BYTES / COPY
    if unwritten < NODES * BYTES:  # the first pieces share the link, so that they arrive together
        assert to_disk <= write["seconds"] <= to_disk + copy + NODES * AT_ONCE * MIB / WIRE
    else:
        assert to_disk + over_wire <= write["seconds"] <= to_disk + over_wire + copy + pieces * 1e-4


def test_the_solver_takes_reads_of_whole_files_as_cold_and_says_what_it_cannot_know() -> None:
    nfs = resolve_platform("nfs")
    mix = {"create": 1.0, "read": 1.0}
    left_out = analytic.solve(nfs, mix, 2, 4, 0, 1000, objects=1000).left_out
    assert [sum(f"cache '{name}'" in one for one in left_out) for name in ("memory", "pages")] == [1, 1]
    with pytest.raises(InputError, match="cache 'pages'; how often it hits .*--solver simulate"):
        analytic.solve(nfs, {"pread": 1.0}, 2, 4, 1 << 20, 1000, objects=1000)
    with pytest.raises(InputError, match="buffer 'dirty', whose filling and draining"):
        analytic.solve(nfs, {"pwrite": 1.0}, 2, 4, 1 << 20, 1000, objects=1000)


def test_phases_before_matter_where_they_fill_a_servers_memory() -> None:
    assert remembers({"extends": "nfs"}, "application", "read")
    measured = {name: [{"delay": "1ms"}] for name in ("create", "read", "stat", "unlink")}
    assert not remembers({"extends": "nfs", "operations": measured}, "md-workbench", "benchmark")
    assert remembers({"extends": "nfs", "operations": measured}, "application", "read")

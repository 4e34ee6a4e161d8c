# SPDX-License-Identifier: Apache-2.0
"""Lustre's md_stats (stats) and job_stats of a server: the load that it saw, as counts and rates of operations.

Counts are since the statistics were cleared. A rate needs a time: `elapsed_time`, which servers print since Lustre
2.15, or several snapshots in one file, of which the first is taken off the last. job_stats give a run for each job. How
many ranks made the load a server does not know.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from iocast.importers import Importer
from iocast.importers.record import Latency, Phase, Record
from iocast.importers.source import Source

SNAPSHOT = re.compile(r"^\s*snapshot_time:?\s+([\d.]+)(?: secs\.\S+)?\s*$")
ELAPSED = re.compile(r"^\s*elapsed_time:?\s+([\d.]+)(?: secs\.\S+)?\s*$")
STAT = re.compile(r"^(\w+)\s+(\d+) samples \[(\w+)\](?: (\d+) (\d+) (\d+)(?: \d+)?)?\s*$")
PARAMETER = re.compile(r"^([A-Za-z][\w@:-]*(?:\.[\w@:-]+)+)=(.*)$")
SERVICE = ("req_waittime", "req_qdepth", "req_active", "req_timeout", "reqbuf_avail")
"""What a service samples at each request beside counting it by its kind."""
JOB = re.compile(r"^- job_id:\s+(\S.*?)\s*$")
JOB_STAT = re.compile(
    r"^\s+(\w+):\s+\{ samples:\s*(\d+), unit:\s*(\w+)(?:, min:\s*(\d+), max:\s*(\d+), sum:\s*(\d+))?.*\}\s*$"
)
OPERATIONS = {
    "getattr": "stat",
    "mknod": "create",
    "create": "create",
    "unlink": "unlink",
    "mkdir": "mkdir",
    "rmdir": "rmdir",
    "sync": "fsync",
    "read": "pread",
    "write": "pwrite",
    "readdir": "readdir",
}


@dataclass
class _Snapshot:
    """Operations at a moment: samples, unit, smallest, largest and sum with their line."""

    name: str
    time: float
    line: int
    elapsed: float | None = None
    stats: dict[str, tuple[int, str, tuple[int, int, int] | None, int]] = field(default_factory=dict)


def recognises(source: Source) -> bool:
    return (
        bool(re.search(r"^job_stats:|^\w+\s+\d+ samples \[(?:reqs|usecs?|bytes)\]", source.head, re.MULTILINE))
        and "snapshot_time" in source.head
    )


def read(sources: Sequence[Source]) -> list[Record]:
    return [record for source in sources for record in _read_one(source)]


def _read_one(source: Source) -> list[Record]:
    source.require_last_line()
    taken: dict[str, list[_Snapshot]] = {}
    for one in _snapshots(source):
        taken.setdefault(one.name, []).append(one)
    records = [record for name, own in taken.items() if (record := _record(source, name, own)) is not None]
    if not records:
        raise source.refuse(
            1,
            "no rate follows from these counts: there is no elapsed_time, and one snapshot alone; append a later "
            "snapshot to the file",
        )
    return records


def _snapshots(source: Source) -> list[_Snapshot]:
    found: list[_Snapshot] = []
    parameter = job = ""
    for number, line in source.numbered:
        if named := PARAMETER.match(line):
            parameter, job, line = named[1], "", named[2]
            found.append(_Snapshot(_name(parameter, job), 0.0, number))  # statistics without a time are of none
        if named := JOB.match(line):
            job = named[1].strip("\"'")
        elif moment := SNAPSHOT.match(line):
            found.append(_Snapshot(_name(parameter, job), source.number(moment[1], number, "snapshot_time"), number))
        elif not found:
            continue
        elif elapsed := ELAPSED.match(line):
            found[-1].elapsed = source.number(elapsed[1], number, "elapsed_time")
        elif stat := STAT.match(line) or JOB_STAT.match(line):
            values = (int(stat[4]), int(stat[5]), int(stat[6])) if stat[4] else None
            if stat[1] in SERVICE:
                continue
            found[-1].stats[stat[1]] = int(stat[2]), stat[3], values, number
    return [one for one in found if one.time]


def _name(parameter: str, job: str) -> str:
    """What is counted: of one of several parameters that lctl get_param printed, and of a job."""
    return " ".join(filter(None, (parameter.rpartition(".")[0] or parameter, job)))


def _require_same(source: Source, before: _Snapshot, last: _Snapshot) -> None:
    """@raises InputError for two snapshots of which the later one has counted less"""
    for title, (samples, _, _, line) in last.stats.items():
        if title in before.stats and samples < before.stats[title][0]:
            raise source.refuse(
                line,
                f"{title} has {samples} samples and had {before.stats[title][0]} in line {before.stats[title][3]}: "
                "these are statistics of several servers or parameters, or they were cleared in between; import each "
                "by itself, with the lines 'NAME=' that lctl get_param prints",
            )
    if before.elapsed is not None and last.elapsed is not None:
        cleared = (last.time - last.elapsed) - (before.time - before.elapsed)
        if abs(cleared) > 1:
            raise source.refuse(
                last.line,
                f"these statistics were cleared {abs(cleared):.6g} s {'after' if cleared > 0 else 'before'} those of "
                f"line {before.line}: they are of several servers or parameters; import each by itself",
            )


def _record(source: Source, name: str, own: list[_Snapshot]) -> Record | None:
    """The load between the first snapshot and the last, or since the statistics were cleared."""
    last, before = own[-1], own[0] if len(own) > 1 else None
    for one, after in pairwise(own):
        if after.time < one.time:
            raise source.refuse(
                after.line,
                f"this snapshot is of an earlier time than that of line {one.line}: they are of several servers or "
                "parameters, or appended twice; import each by itself",
            )
    if before is not None:
        _require_same(source, before, last)
    seconds = last.time - before.time if before is not None else last.elapsed
    if not seconds or seconds <= 0:
        return None
    timed = source.at(last.line) if before is None else f"{source.at(last.line)} (less line {before.line})"
    phase = Phase("observed", seconds=seconds, origin={"": timed})
    moved, bytes_line = 0, 0
    for title, (samples, unit, values, line) in last.stats.items():
        earlier = before.stats.get(title) if before is not None else None
        count = samples - (earlier[0] if earlier else 0)
        if unit == "bytes":
            total = values[2] - (earlier[2][2] if earlier and earlier[2] else 0) if values else 0
            moved, bytes_line = moved + max(total, 0), line
            continue
        if count <= 0:
            continue
        op = OPERATIONS.get(title, title)
        phase.counts[op] = phase.counts.get(op, 0) + count
        phase.origin[f"latency.{op}"] = source.at(line) + (f" (less line {earlier[3]})" if earlier else "")
        if values and unit.startswith("usec"):
            total = values[2] - (earlier[2][2] if earlier and earlier[2] else 0)
            known = {"mean": total / count * 1e-6}
            if earlier is None:
                known |= {"min": values[0] * 1e-6, "max": values[1] * 1e-6}
            phase.latency[op] = Latency(phase.counts[op], known)
    phase.operations = sum(phase.counts.values()) or None
    if not phase.operations and not moved:
        return None
    phase.rate = phase.operations / seconds if phase.operations else None
    phase.origin |= dict.fromkeys(("operations", "rate"), f"{source.path}:{last.line} (all operations of the snapshot)")
    if moved:
        phase.bytes, phase.bytes_per_second = moved, moved / seconds
        phase.origin |= dict.fromkeys(
            ("bytes", "bytes_per_second"), f"{source.at(bytes_line)} (reads and writes together)"
        )
    record = Record(name or "lustre", "Lustre", [phase], pattern="lustre-observed", label=name)
    record.warnings.append(
        "This is the load that a server saw, of any program; it is no benchmark of the server's capacity."
    )
    record.missing |= {
        "command": "A server's statistics know no command.",
        "started": "A server's statistics count from when they were cleared.",
        "workload.parameters": "A server's statistics know no options.",
        "phases[].latency.*": "Lustre prints sums and extremes of service times, and those with usecs only.",
        "phases[].rank_seconds": "A server does not know ranks.",
        "seed": "Nothing is drawn at random.",
    }
    if phase.operations is None:
        record.missing["phases[].operations"] = "Only bytes were counted."
    return record


IMPORTER = Importer(
    "lustre",
    "md_stats and job_stats of a Lustre server, as observed load",
    "the output of lctl get_param, with elapsed_time or several snapshots",
    recognises,
    read,
)

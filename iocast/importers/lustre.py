# SPDX-License-Identifier: Apache-2.0
"""Lustre's md_stats (stats) and job_stats of a server: the load that it saw, as counts and rates of operations.

Counts are since the statistics were cleared. A rate needs a time: `elapsed_time`, which servers print since Lustre
2.15, or several snapshots, in one file or a file each, of which the first is taken off the last. job_stats give a run
for each job. How many ranks made the load a server does not know.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from iocast.errors import InputError
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

    source: Source
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
    return [record for group in of_one_server(sources) for record in _read_group(group)]


def of_one_server(sources: Sequence[Source]) -> list[list[Source]]:
    """Files with a snapshot each of the same parameters, and no time since they were cleared, in the order of their
    times; all others by themselves."""
    groups: dict[tuple[str, ...], list[tuple[float, Source]]] = {}
    for number, source in enumerate(sources):
        try:
            found = _snapshots(source)
        except InputError:  # which its own reading will report
            found = []
        names = tuple(sorted(one.name for one in found))
        alone = not names or len(set(names)) < len(names) or any(one.elapsed is not None for one in found)
        first = min((one.time for one in found), default=0.0)
        groups.setdefault((str(number),) if alone else ("", *names), []).append((first, source))
    return [[source for _, source in sorted(group, key=lambda one: one[0])] for group in groups.values()]


def _read_group(sources: Sequence[Source]) -> list[Record]:
    taken: dict[str, list[_Snapshot]] = {}
    for source in sources:
        source.require_last_line()
        for one in _snapshots(source):
            taken.setdefault(one.name, []).append(one)
    records = [record for name, own in taken.items() if (record := _record(name, own)) is not None]
    if not records:
        raise sources[0].refuse(
            1,
            "no rate follows from these counts: there is no elapsed_time, and one snapshot alone; append a later "
            "snapshot to the file, or name a file with a later one as well",
        )
    for record in records:
        record.sources = sources
    return records


def _snapshots(source: Source) -> list[_Snapshot]:
    found: list[_Snapshot] = []
    parameter = job = ""
    for number, line in source.numbered:
        if named := PARAMETER.match(line):
            parameter, job, line = named[1], "", named[2]
            found.append(_Snapshot(source, _name(parameter, job), 0.0, number))  # statistics without a time are of none
        if named := JOB.match(line):
            job = named[1].strip("\"'")
        elif moment := SNAPSHOT.match(line):
            time = source.number(moment[1], number, "snapshot_time")
            found.append(_Snapshot(source, _name(parameter, job), time, number))
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


def _require_same(before: _Snapshot, last: _Snapshot) -> None:
    """@raises InputError for two snapshots of which the later one has counted less"""
    for title, (samples, _, _, line) in last.stats.items():
        if title in before.stats and samples < before.stats[title][0]:
            raise last.source.refuse(
                line,
                f"{title} has {samples} samples and had {before.stats[title][0]} in "
                f"{_earlier(last, before, before.stats[title][3])}: "
                "these are statistics of several servers or parameters, or they were cleared in between; import each "
                "by itself, with the lines 'NAME=' that lctl get_param prints",
            )
    if before.elapsed is not None and last.elapsed is not None:
        cleared = (last.time - last.elapsed) - (before.time - before.elapsed)
        if abs(cleared) > 1:
            raise last.source.refuse(
                last.line,
                f"these statistics were cleared {abs(cleared):.6g} s {'after' if cleared > 0 else 'before'} those of "
                f"{_earlier(last, before, before.line)}: they are of several servers or parameters; import each by "
                "itself",
            )


def _earlier(one: _Snapshot, before: _Snapshot, line: int) -> str:
    """Where a line of an earlier snapshot stands."""
    return f"line {line}" if before.source is one.source else before.source.at(line)


def _record(name: str, own: list[_Snapshot]) -> Record | None:
    """The load between the first snapshot and the last, or since the statistics were cleared."""
    last, before = own[-1], own[0] if len(own) > 1 else None
    for one, after in pairwise(own):
        if after.time < one.time:
            raise after.source.refuse(
                after.line,
                f"this snapshot is of an earlier time than that of {_earlier(after, one, one.line)}: they are of "
                "several servers or parameters, or appended twice; import each by itself",
            )
    if before is not None:
        _require_same(before, last)
    seconds = last.time - before.time if before is not None else last.elapsed
    source = last.source
    if not seconds or seconds <= 0:
        return None
    timed = (
        source.at(last.line)
        if before is None
        else f"{source.at(last.line)} (less {_earlier(last, before, before.line)})"
    )
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
        less = f" (less {_earlier(last, before, earlier[3])})" if before is not None and earlier else ""
        phase.origin[f"latency.{op}"] = source.at(line) + less
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
        "ranks": "a server does not know how many made its load (nothing is computed with their number)",
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
    "the output of lctl get_param, with elapsed_time or several snapshots, in one file or a file each",
    recognises,
    read,
    of_one_server,
)

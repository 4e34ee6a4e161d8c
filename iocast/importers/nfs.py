# SPDX-License-Identifier: Apache-2.0
"""/proc/self/mountstats of an NFS client: the load of each mount, as counts, rates and times of requests.

Counts are since the file system was mounted, `age` seconds ago. Several snapshots in one file are the load between the
first and the last. Of each request the kernel adds up the time that it waited in the client for a slot, that from its
sending to the answer, and both with what is around them; mountstats(8) of nfs-utils names the columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from iocast.importers import Importer
from iocast.importers.record import Latency, Phase, Record
from iocast.importers.source import Source

DEVICE = re.compile(r"^\s*device (\S+) mounted on (\S+) with fstype nfs4?(?: statvers=(\S+))?")
AGE = re.compile(r"^\s*age:\s+(\d+)")
BYTES = re.compile(r"^\s*bytes:\s+((?:\d+\s+){7}\d+)\s*$")
REQUEST = re.compile(r"^\s*([A-Z0-9_]+):((?:\s+\d+){8,9})\s*$")
OPERATIONS = {
    "READ": "pread", "WRITE": "pwrite", "COMMIT": "fsync", "GETATTR": "stat", "CREATE": "create", "REMOVE": "unlink",
    "MKDIR": "mkdir", "RMDIR": "rmdir", "READDIR": "readdir", "READDIRPLUS": "readdir", "OPEN": "open",
    "CLOSE": "close",
}  # fmt: skip
PARTS = {"queue": 5, "trip": 6}
"""By part of a request the column of its milliseconds: in the client before it is sent, and to the answer."""
EXECUTE = 7
FROM_SERVER, TO_SERVER = 4, 5
"""Columns of `bytes`: what READ and WRITE requests moved."""


@dataclass
class _Snapshot:
    server: str
    mount: str
    line: int
    age: int | None = None
    moved: list[int] = field(default_factory=list)
    requests: dict[str, tuple[list[int], int]] = field(default_factory=dict)
    """Columns and line by the request's name."""


def recognises(source: Source) -> bool:
    return bool(re.search(r"^\s*device \S+ mounted on \S+ with fstype nfs", source.head, re.MULTILINE))


def read(sources: Sequence[Source]) -> list[Record]:
    return [record for source in sources for record in _read_one(source)]


def _read_one(source: Source) -> list[Record]:
    source.require_last_line()
    taken: dict[tuple[str, str], list[_Snapshot]] = {}
    here: _Snapshot | None = None
    counting = False  # below "per-op statistics"
    for number, line in source.numbered:
        if line.lstrip().startswith("device "):
            found = DEVICE.match(line)
            here = _Snapshot(found[1], found[2], number) if found else None  # other file systems have no statistics
            counting = False
            if here is not None:
                taken.setdefault((here.server, here.mount), []).append(here)
        elif here is None or not line.strip():
            continue
        elif "per-op statistics" in line:
            counting = True
        elif age := AGE.match(line):
            here.age = int(age[1])
        elif moved := BYTES.match(line):
            here.moved = [int(word) for word in moved[1].split()]
        elif request := REQUEST.match(line):
            here.requests[request[1]] = [int(word) for word in request[2].split()], number
        elif counting:
            raise source.refuse(number, "this line below 'per-op statistics' has no request with eight or nine counts")
    records = [record for own in taken.values() if (record := _record(source, own)) is not None]
    if not records:
        raise source.refuse(
            1,
            "no mount of NFS had a request between the snapshots, or since it was mounted; append a later snapshot to "
            "the file",
        )
    return records


def _require_later(source: Source, one: _Snapshot, after: _Snapshot) -> None:
    """@raises InputError for a snapshot that is not of the same mount at a later time, or is cut off"""
    if (after.age or 0) <= (one.age or 0):
        raise source.refuse(
            after.line,
            f"this snapshot is of {after.age} s after the mount, and that of line {one.line} of {one.age} s: they are "
            "of several clients or in another order, or it was mounted anew; import each by itself",
        )
    if lacking := sorted(one.requests.keys() - after.requests.keys()):
        raise source.refuse(
            after.line, f"this snapshot lacks {lacking[0]}, which that of line {one.line} has: it was cut off"
        )


def _record(source: Source, own: list[_Snapshot]) -> Record | None:
    """The load between the first snapshot and the last, or since the file system was mounted."""
    last, before = own[-1], own[0] if len(own) > 1 else None
    for one in own:
        if one.age is None:
            raise source.refuse(one.line, f"the mount {one.mount} has no line 'age:', so that no rate follows")
    for one, after in pairwise(own):
        _require_later(source, one, after)
    seconds = (last.age or 0) - (before.age or 0 if before else 0)
    timed = f"{source.at(last.line)} (age)" if before is None else f"{source.at(last.line)} (less line {before.line})"
    phase = Phase("observed", seconds=float(seconds), origin={"": timed})
    sums: dict[str, list[float]] = {}
    for name, (columns, line) in last.requests.items():
        earlier = before.requests.get(name, ([0] * len(columns), 0)) if before else ([0] * len(columns), 0)
        row = [now - then for now, then in zip(columns, earlier[0], strict=True)]
        if min(row) < 0:
            raise source.refuse(
                line,
                f"{name} counts less than in line {earlier[1]}: these are snapshots of several clients, or the file "
                "system was mounted anew in between; import each by itself",
            )
        if not row[0]:
            continue
        op = OPERATIONS.get(name, name.lower())
        known = sums.setdefault(op, [0.0] * len(row))
        sums[op] = [a + b for a, b in zip(known, row, strict=True)]
        phase.origin[f"latency.{op}"] = source.at(line) + (f" (less line {earlier[1]})" if earlier[1] else "")
    for op, total in sums.items():
        count = round(total[0])
        phase.counts[op] = count
        phase.latency[op] = Latency(count, {"mean": 1e-3 * total[EXECUTE] / count})
        for part, column in PARTS.items():
            if not total[column]:
                continue  # less than a millisecond over all requests together
            phase.latency[f"{op}.{part}"] = Latency(count, {"mean": 1e-3 * total[column] / count})
            phase.origin[f"latency.{op}.{part}"] = phase.origin[f"latency.{op}"]
    phase.operations = sum(phase.counts.values()) or None
    if not phase.operations or not seconds:
        return None
    phase.rate = phase.operations / seconds
    if last.moved and (before is None or before.moved):
        then = before.moved if before else [0] * len(last.moved)
        moved = sum(last.moved[column] - then[column] for column in (FROM_SERVER, TO_SERVER))
        phase.bytes, phase.bytes_per_second = moved, moved / seconds
    record = Record("nfs", "NFS client", [phase], pattern="nfs-observed", label=f"{last.server} on {last.mount}")
    record.warnings.append(
        "This is the load that one client put on its mount, of any program; it is no benchmark of the server's "
        "capacity. 'queue' is the wait for a slot in this client, 'trip' the network and the server."
    )
    record.missing |= {
        "command": "A mount's statistics know no command.",
        "ranks": "a mount does not know how many used it (nothing is computed with their number)",
        "started": "A mount's statistics count from when it was mounted.",
        "workload.parameters": "A mount's statistics know no options.",
        "phases[].errors": "Requests that failed are counted by kind of request alone.",
        "phases[].latency.*": "The kernel adds up the times of requests, in milliseconds; a distribution is not known.",
        "phases[].rank_seconds": "A mount does not know ranks.",
        "seed": "Nothing is drawn at random.",
    }
    return record


IMPORTER = Importer(
    "nfs",
    "/proc/self/mountstats of an NFS client, as observed load",
    "a copy of the file, or several snapshots appended to one",
    recognises,
    read,
)

# SPDX-License-Identifier: Apache-2.0
"""rados bench: its table of seconds and its closing summary.

Operations are whole objects, written or read; "concurrent" operations in flight are ranks. MB are 2^20 bytes. The table
gives the time line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from iocast.importers import Importer
from iocast.importers.record import Latency, Phase, Record
from iocast.importers.source import Source

CONCURRENT = re.compile(r"^Maintaining (\d+) concurrent (\w+) of (\d+) bytes to objects of size (\d+)", re.MULTILINE)
VALUE = re.compile(r"^([A-Z][\w ()/]*?):?\s{2,}(-?[\d.]+(?:e[-+]?\d+)?)\s*$")
SECOND = re.compile(r"^[ \t]*\d+[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)[ \t]")
"""A row of the table: operations in flight ("Cur ops"), started and finished ones."""
KINDS = {"write": ("write", "create"), "read": ("read", "read")}


def recognises(source: Source) -> bool:
    return bool(CONCURRENT.search(source.head)) or (
        bool(re.search(r"^Total (writes|reads) made", source.head, re.MULTILINE)) and "Total time run" in source.head
    )


def read(sources: Sequence[Source]) -> list[Record]:
    return [record for source in sources for record in _read_all(source)]


def _read_all(source: Source) -> list[Record]:
    ends = [n for n, line in source.numbered if line.startswith("Total time run")]
    if not ends:
        raise source.refuse_cut("'Total time run'")
    begins = [
        1,
        *(
            next((n for n in range(before + 1, end) if CONCURRENT.match(source.lines[n - 1])), before + 1)
            for before, end in zip(ends, ends[1:], strict=False)
        ),
    ]
    source.require_last_line()
    return [
        _read_one(source.part(begin, after - 1))
        for begin, after in zip(begins, [*begins[1:], len(source.lines) + 1], strict=True)
    ]


def _in_flight(source: Source) -> list[tuple[int, int]]:
    """Operations in flight, and the line, of each second of the table; what started and did not finish is in flight."""
    rows = [(found, number) for number, line in source.numbered if (found := SECOND.match(line))]
    return [(int(row[1]), n) for row, n in rows if int(row[1]) == int(row[2]) - int(row[3]) > 0]


def _read_one(source: Source) -> Record:
    values = {name.lower(): printed for name, printed in source.values(VALUE).items()}
    made = next((key for key in ("total writes made", "total reads made") if key in values), None)
    if (
        made is None
        or not values.keys() & {"min latency(s)", "min latency"}
        or not values.keys() & {"average latency(s)", "average latency"}
    ):
        raise source.refuse_cut("the number of operations and their latencies ('Min latency(s)')")
    name, op = KINDS[made.split()[1].removesuffix("s")]
    (seconds, timed), (count, counted) = values["total time run"], values[made]
    phase = Phase(
        name, seconds=seconds, operations=int(count), counts={op: int(count)}, rate=count / seconds if seconds else None
    )
    phase.origin = {"": source.at(timed), "operations": source.at(counted), f"latency.{op}.count": source.at(counted)}
    phase.origin["rate"] = f"{source.at(counted)} / {source.at(timed)} (operations / time)"
    if (bandwidth := values.get("bandwidth (mb/sec)")) is not None:
        phase.more["rate_unit"] = "bytes"
        phase.bytes_per_second, phase.origin["bytes_per_second"] = bandwidth[0] * 2**20, source.at(bandwidth[1])
    sizes = [values[key] for key in ("write size", "read size", "object size") if key in values]
    if sizes:
        phase.bytes, phase.origin["bytes"] = (
            int(count * sizes[0][0]),
            f"{source.at(counted)} x {source.at(sizes[0][1])} (operations x size)",
        )
        phase.more["transfer_size"], phase.origin["transfer_size"] = int(sizes[0][0]), source.at(sizes[0][1])
    known = {}
    for ours, theirs in (("mean", "average latency"), ("max", "max latency"), ("min", "min latency")):
        if (reported := values.get(f"{theirs}(s)") or values.get(theirs)) is not None:
            known[ours], phase.origin[f"latency.{op}.{ours}"] = reported[0], source.at(reported[1])
    phase.latency[op] = Latency(int(count), known)
    record = Record("rados", "rados bench", [phase], pattern="rados", nodes=1)
    record.origin["nodes"] = f"{source.at(counted)} (rados bench is one process)"
    if concurrent := CONCURRENT.search(source.text):
        record.ranks, line = int(concurrent[1]), source.line_at(concurrent.start())
        record.origin |= {"ranks": source.at(line), "parameters": source.at(line)}
        record.parameters = {"transfer_size": int(concurrent[3]), "object_size": int(concurrent[4])}
    elif in_flight := _in_flight(source):
        record.ranks, line = max(in_flight)
        record.origin["ranks"] = f"{source.at(line)} (largest of Cur ops)"
    record.missing |= {
        "phases[].errors": "rados bench ends at the first failed operation.",
        "phases[].latency.*.quantiles": "rados bench prints mean, extremes and deviation of latencies.",
        "phases[].timeline": "rados bench prints means of seconds, no maximum.",
    }
    return record


IMPORTER = Importer("rados", "output of rados bench", "the standard output", recognises, read)

# SPDX-License-Identifier: Apache-2.0
"""sysbench fileio, of 1.0 and later: rates of reads, writes and syncs, bytes, and the latency of all events
together."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iocast.importers import Importer
from iocast.importers.record import Latency, Phase, Record
from iocast.importers.source import Source

VERSION = re.compile(r"^sysbench (\d\S*)", re.MULTILINE)
VALUE = re.compile(r"^\s+([\w,/().][\w ,/().]*?):\s+([\d.]+)s?\s*$")
OPERATIONS = {"reads/s": "pread", "writes/s": "pwrite", "fsyncs/s": "fsync"}
LATENCIES = {"min": "min", "avg": "mean", "max": "max", "95th percentile": "q95", "99th percentile": "q99"}
MIB = 2**20


def recognises(source: Source) -> bool:
    return bool(re.search(r"^File operations:", source.head, re.MULTILINE)) and "General statistics:" in source.head


def read(sources: Sequence[Source]) -> list[Record]:
    return [_read_one(source) for source in sources]


def _read_one(source: Source) -> Record:
    values = source.values(VALUE)
    if (
        not re.search(r"^[ \t]+execution time \(avg/stddev\):\s+[\d.]+/[\d.]+$", source.text, re.MULTILINE)
        or "total number of events" not in values
    ):
        raise source.refuse_cut("the end of its statistics ('execution time')")
    source.require_last_line()
    seconds, timed = values["total time"]
    events, counted = values["total number of events"]
    phase = Phase(
        "benchmark", seconds=seconds or None, operations=int(events) or None, rate=events / seconds if seconds else None
    )
    phase.origin = {
        "": source.at(timed),
        "operations": source.at(counted),
        "rate": f"{source.at(counted)} / {source.at(timed)} (events / time)",
    }
    rates = {op: values[key] for key, op in OPERATIONS.items() if key in values and values[key][0] > 0}
    for op, (rate, line) in rates.items():
        phase.counts[op] = round(rate * seconds)
        phase.origin[f"latency.{op}.count"] = f"{source.at(line)} x {source.at(timed)} (rate x time)"
    moved = [values[key] for key in ("read, MiB/s", "written, MiB/s") if key in values]
    if moved:
        phase.bytes_per_second = sum(value for value, _ in moved) * MIB or None
        phase.origin["bytes_per_second"] = f"{source.at(moved[0][1])} (reads and writes together)"
    known = {ours: values[theirs][0] * 1e-3 for theirs, ours in LATENCIES.items() if theirs in values}
    if len(rates) == 1:
        op = next(iter(rates))
        phase.latency[op] = Latency(phase.counts[op], known)
    else:
        phase.more["latency_of_all_events"] = known
    for theirs, ours in LATENCIES.items():
        if theirs in values:
            key = f"latency.{next(iter(rates))}.{ours}" if len(rates) == 1 else f"latency_of_all_events.{ours}"
            phase.origin[key] = source.at(values[theirs][1])
    version = VERSION.search(source.text)
    record = Record(
        "sysbench",
        "sysbench fileio",
        [phase],
        pattern="sysbench-fileio",
        version=version[1] if version else None,
        nodes=1,
    )
    record.origin["nodes"] = f"{source.at(timed)} (sysbench is one process)"
    _add_options(source, record)
    record.missing |= {
        "phases[].errors": "sysbench ends at the first failed operation.",
        "phases[].latency.*": "sysbench prints the latency of all events together, without the median.",
        "phases[].rank_seconds": "sysbench prints the mean over threads.",
    }
    return record


def _add_options(source: Source, record: Record) -> None:
    for number, line in source.numbered:
        if found := re.match(r"^Number of threads: (\d+)", line):
            record.ranks, record.origin["ranks"] = int(found[1]), source.at(number)
        elif found := re.match(r"^Block size (\d+)([KM]?)i?B", line):
            record.parameters["block_size"] = int(found[1]) * {"": 1, "K": 2**10, "M": MIB}[found[2]]
            record.origin["parameters.block_size"] = source.at(number)
        elif found := re.match(r"^(\d+) files, ", line):
            record.parameters["files"], record.origin["parameters.files"] = int(found[1]), source.at(number)
        elif found := re.match(r"^Doing (.*) test", line):
            record.parameters["test"] = found[1]


IMPORTER = Importer(
    "sysbench",
    "report of sysbench fileio",
    "the standard output",
    recognises,
    read,
    begins=re.compile(r"^sysbench \d|^Running the test with following options|^Extra file open flags|^\d+ files, "),
    ends=re.compile(r"^\s+execution time \(avg/stddev\):"),
)

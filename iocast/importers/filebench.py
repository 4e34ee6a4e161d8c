# SPDX-License-Identifier: Apache-2.0
"""filebench's report, of 1.4 and 1.5: the table of operations and the summary of each run in a log.

Counts and rates of single operations (flowops) are kept under the kind of operation that their names begin with;
"finish" and the like, which do no I/O, are left out. The summary's rate is of all that do. Threads are those that the
log says it started.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from iocast.importers import Importer
from iocast.importers.record import Latency, Phase, Record
from iocast.importers.source import Source

VERSION = re.compile(r"^Filebench Version (\S+)")
PERSONALITY = re.compile(r"(?<![\w-])([A-Za-z][\w-]*) Version [\d.]+ personality successfully loaded")
THREADS = re.compile(r"Starting (\d+) (\S+) threads")
TOOK = re.compile(r"Run took (\d+) seconds")
FLOWOP = re.compile(
    r"^(\S+)\s+(\d+)ops\s+(\d+)ops/s\s+([\d.]+)mb/s"
    r"\s+([\d.]+)ms/op(?:\s+\d+us/op-cpu)?(?:\s+\[\s*([\d.]+)ms\s+-\s+([\d.]+)ms\])?\s*$"
)
SUMMARY = re.compile(
    r"IO Summary:\s+(\d+) ops,?\s+([\d.]+) ops/s,?\s+\(?(\d+)/(\d+)\s+(?:r/w\)|rd/wr),?\s+([\d.]+)mb/s"
)
KINDS = (
    ("create", "create"),
    ("delete", "unlink"),
    ("open", "open"),
    ("close", "close"),
    ("stat", "stat"),
    ("fsync", "fsync"),
    ("append", "append"),
    ("write", "pwrite"),
    ("read", "pread"),
    ("mkdir", "mkdir"),
    ("rmdir", "rmdir"),
    ("list", "readdir"),
)


def recognises(source: Source) -> bool:
    return bool(re.search(r"^Filebench Version|IO Summary:\s+\d+ ops", source.head, re.MULTILINE))


def read(sources: Sequence[Source]) -> list[Record]:
    return [record for source in sources for record in _read_all(source)]


def _read_all(source: Source) -> list[Record]:
    records: list[Record] = []
    begin = 1
    for number, line in source.numbered:
        if SUMMARY.search(line):
            records.append(_read_one(source, begin, number))
            begin = number + 1
    if not records:
        raise source.refuse_cut("'IO Summary'")
    return records


def _read_one(source: Source, begin: int, end: int) -> Record:
    record = Record("filebench", "filebench", [], pattern="filebench", nodes=1)
    phase = Phase("benchmark", origin={"": source.at(end)})
    parts: dict[str, list[tuple[int, float, float | None, float | None]]] = {}
    threads = 0
    for number in range(begin, end + 1):
        line = source.lines[number - 1]
        if found := VERSION.match(line):
            record.version = found[1]
        elif found := PERSONALITY.search(line):
            record.parameters["personality"] = found[1].lower()
            record.origin["parameters"] = source.at(number)
        elif found := THREADS.search(line):
            threads += int(found[1])
            record.origin["ranks"] = source.at(number)
        elif found := TOOK.search(line):
            phase.more["run_seconds"], phase.origin["run_seconds"] = int(found[1]), source.at(number)
        elif (found := FLOWOP.match(line)) and (
            op := next((ours for theirs, ours in KINDS if found[1].startswith(theirs)), None)
        ):
            least, most = (float(text) * 1e-3 if text else None for text in found.group(6, 7))
            parts.setdefault(op, []).append((int(found[2]), float(found[5]) * 1e-3, least, most))
            phase.origin.setdefault(f"latency.{op}", source.at(number))
        elif found := SUMMARY.search(line):
            phase.operations, phase.rate = int(found[1]) or None, source.number(found[2], number, "ops/s")
            phase.bytes_per_second = float(found[5]) * 2**20 or None
    if phase.operations and phase.rate:
        phase.seconds, phase.origin["seconds"] = phase.operations / phase.rate, f"{source.at(end)} (operations / rate)"
    for op, own in parts.items():
        count = sum(p[0] for p in own)
        if not count:
            continue
        phase.counts[op] = count
        known = {"mean": sum(p[0] * p[1] for p in own) / count}
        if all(p[3] is not None for p in own):
            known |= {"min": min(p[2] or 0.0 for p in own), "max": max(p[3] or 0.0 for p in own)}
        phase.latency[op] = Latency(count, known)
    record.phases = [phase]
    record.ranks = threads or None
    record.origin["nodes"] = f"{source.at(end)} (filebench is on one node)"
    record.missing |= {
        "phases[].latency.*.quantiles": "filebench prints mean and extremes of latencies, in tenths of a millisecond."
    }
    return record


IMPORTER = Importer("filebench", "reports of filebench 1.4 and 1.5", "the standard output", recognises, read)

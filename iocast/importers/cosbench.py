# SPDX-License-Identifier: Apache-2.0
"""COSBench's CSV files of a stage: of its workers (sN-STAGE-worker.csv), and its time line (sN-STAGE.csv).

A worker's file has a line for each worker and operation; COSBench's rate of a stage is the sum of its workers'. A time
line has a line for each interval; its counts add up to the stage's. The files of drivers and workloads have a line for
each stage, whose numbers of workers they do not tell. Avg-ResTime is the mean response time in milliseconds; a read is
a whole object.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Sequence
from datetime import datetime

from iocast.importers import Importer
from iocast.importers.record import Latency, Phase, Record
from iocast.importers.source import Source

SUMMARY = "Op-Type,Sample-Type,Op-Count"
TIMELINE = "Timestamp,Op-Count"
STAGES = "Stage,Op-"
COLUMNS = (
    7  # of each operation in a time line: count, bytes, response time, processing time, throughput, bandwidth, success
)
OPERATIONS = {
    "write": "create",
    "read": "read",
    "delete": "unlink",
    "list": "readdir",
    "filewrite": "create",
    "mprepare": "create",
    "mwrite": "create",
}
MISSING = {
    "placement.nodes": "COSBench's files do not say how many drivers there were.",
    "command": "COSBench takes a workload file, which its results do not name.",
    "workload.parameters": "COSBench's results do not repeat the workload's settings.",
    "phases[].latency.*.quantiles": "COSBench's CSV files have mean response times; percentiles are in its histogram "
    "files.",
}


def recognises(source: Source) -> bool:
    return source.head.startswith((SUMMARY, TIMELINE, STAGES))


def read(sources: Sequence[Source]) -> list[Record]:
    for source in sources:
        source.require_last_line()
        if source.head.startswith(STAGES):
            raise _of_stages(source, 1)
        again = next((n for n, line in source.numbered if n > 1 and line == source.lines[0]), None)
        if again is not None:
            raise source.refuse(again, "the header is here again: these are several files in one; name each by itself")
    return [_read_timeline(source) if source.head.startswith(TIMELINE) else _read_workers(source) for source in sources]


def _record(phase: Phase) -> Record:
    record = Record(phase.name, "COSBench", [phase], pattern="cosbench")
    record.missing |= MISSING
    if phase.errors is None:
        record.missing["phases[].errors"] = (
            "COSBench tells the share of operations that succeeded (success_ratio), not how many failed."
        )
    return record


def _share(source: Source, line: int, text: str) -> float:
    return 1.0 if text == "N/A" else source.number(text.removesuffix("%"), line, "Succ-Ratio") / 100


class _Sums:
    """Counts, bytes and response times of operations, added up over lines."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.bytes: dict[str, int] = {}
        self.times: dict[str, float] = {}
        self.succeeded = 0.0

    def add(self, source: Source, line: int, op: str, cells: Sequence[str]) -> None:
        """`cells`: count, bytes, response time in milliseconds, and last the share that succeeded."""
        count, size = (int(source.number(cells[i], line, what)) for i, what in enumerate(("Op-Count", "Byte-Count")))
        self.counts[op] = self.counts.get(op, 0) + count
        self.bytes[op] = self.bytes.get(op, 0) + size
        if count:
            self.times[op] = self.times.get(op, 0.0) + count * source.number(cells[2], line, "Avg-ResTime") / 1000
            self.succeeded += count * _share(source, line, cells[-1])

    def put(self, phase: Phase, where: str) -> None:
        phase.counts = {op: n for op, n in self.counts.items() if n}
        phase.operations = sum(phase.counts.values()) or None
        phase.bytes = sum(self.bytes.values()) or None
        phase.latency = {op: Latency(n, {"mean": self.times[op] / n}) for op, n in phase.counts.items()}
        if phase.operations and round(self.succeeded, 6) == phase.operations:
            phase.errors = 0
        elif phase.operations:
            phase.more["success_ratio"] = self.succeeded / phase.operations
        phase.origin[""] = where


def _read_workers(source: Source) -> Record:
    sums, rate, bandwidth, rows = _Sums(), 0.0, 0.0, dict[str, int]()
    stages = set()
    last = 1
    for number, line in enumerate(source.lines[1:], start=2):
        cells = line.split(",")
        if len(cells) == 1 and cells[0].endswith(("%", "N/A")):
            continue
        if len(cells) % 8 == 1 and len(cells) > 9:
            raise _of_stages(source, number)
        if len(cells) != 9:
            raise source.refuse(number, f"this line has {len(cells)} columns instead of 9; it was cut off")
        stages.add(cells[0] if cells[0] in ("init", "prepare", "cleanup", "dispose", "delay") else "main")
        if len(stages) > 1:
            raise _of_stages(source, number)
        op = OPERATIONS.get(cells[1], cells[1])
        rows[op] = rows.get(op, 0) + 1
        sums.add(source, number, op, [*cells[2:5], cells[8]])
        rate += source.number(cells[6], number, "Throughput")
        bandwidth += source.number(cells[7], number, "Bandwidth")
        last = number
    if not any(sums.counts.values()):
        raise source.refuse(last, "there is no operation in it; the stage did nothing, or did not finish")
    phase = Phase(stages.pop(), rate=rate or None, bytes_per_second=bandwidth or None)
    where = source.at(2) if last == 2 else f"{source.path}:2-{last} (all workers together)"
    sums.put(phase, where)
    if phase.rate and phase.operations:
        phase.seconds, phase.origin["seconds"] = phase.operations / phase.rate, f"{where} (operations / rate)"
    record = _record(phase)
    if max(rows.values()) > 1 or "worker" in source.path.name:
        record.ranks, record.origin["ranks"] = max(rows.values()), f"{source.path}:2-{last} (a line a worker)"
    record.missing["phases[].timeline"] = "The stage's own file has its time line."
    record.missing["started"] = "COSBench's summary has no time of day."
    return record


def _of_stages(source: Source, number: int) -> Exception:
    return source.refuse(
        number,
        "this is a summary of several stages, whose numbers of workers it does not tell; name the stages' own files "
        "('s3-main-worker.csv') instead",
    )


def _read_timeline(source: Source) -> Record:
    rows = list(csv.reader(source.lines))
    titles = [cell for cell in (rows[1] if len(rows) > 1 else []) if cell and not cell.endswith("Version")]
    kinds = titles[: len(titles) // COLUMNS]
    if not kinds or titles[: len(kinds)] * COLUMNS != titles:
        raise source.refuse(2, "the second line does not name the operations of each column")
    sums, times = _Sums(), []
    for number, row in enumerate(rows[2:], start=3):
        if len(row) == 1 + COLUMNS + 3 and row[1] == "0":  # nothing was done: the columns of one operation
            row = [row[0], *(cell for cell in row[1 : 1 + COLUMNS] for _ in kinds), *row[1 + COLUMNS :]]
        if len(row) < 1 + COLUMNS * len(kinds) + 3:
            raise source.refuse(
                number, f"this line has {len(row)} columns instead of {4 + COLUMNS * len(kinds)}; it was cut off"
            )
        try:
            times.append(datetime.strptime(row[0], "%H:%M:%S"))
        except ValueError:
            raise source.refuse(number, f"'{row[0]}' is no time of day") from None
        for i, kind in enumerate(kinds):
            own = row[1 + i :: len(kinds)][:COLUMNS]
            sums.add(source, number, OPERATIONS.get(kind.rpartition("-")[2], kind), [*own[:3], own[6]])
    if not any(sums.counts.values()):
        raise source.refuse(max(2, len(rows)), "there is no operation in it; the stage did nothing, or did not finish")
    stage = kinds[0].rpartition("-")[0] or "main"
    phase = Phase(stage)
    where = f"{source.path}:3-{len(rows)} (all intervals together)"
    sums.put(phase, where)
    steps = [(after - before).total_seconds() % 86_400 for before, after in zip(times, times[1:], strict=False)]
    if steps:
        phase.seconds = statistics.median(steps) * len(times)
        phase.rate = (phase.operations or 0) / phase.seconds or None
        phase.bytes_per_second = (phase.bytes or 0) / phase.seconds or None
        phase.origin["seconds"] = f"{source.path}:3-{len(rows)} (number of intervals x their length)"
    record = _record(phase)
    record.missing["started"] = "COSBench's time line has the time of day without its date."
    record.missing["phases[].timeline"] = "COSBench's time line has mean response times of intervals, no maximum."
    return record


IMPORTER = Importer(
    "cosbench",
    "CSV files of COSBench's stages: of workers, and time lines",
    "a stage's file, sN-STAGE-worker.csv or sN-STAGE.csv",
    recognises,
    read,
)

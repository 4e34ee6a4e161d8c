# SPDX-License-Identifier: Apache-2.0
"""elbencho's result files: CSV (--csvfile) and JSON (--jsonfile, one object a phase).

Both are appended to, so a file may hold several runs: phases with the same configuration that follow each other are one run. A phase counts
entries (files or directories); in file and block device mode there are none and its operations are block transfers. Times are whole
milliseconds and latencies whole microseconds. Histograms are in JSON with --lathisto only.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from iocast.importers import Importer
from iocast.importers.record import Latency, Phase, Record, place_one_after_the_other
from iocast.importers.source import Source

OPERATIONS = {  # phase: operation on an entry, its part or operation on a block
    "MKDIRS": ("mkdir", ""), "WRITE": ("create", "pwrite"), "READ": ("read", "pread"), "STAT": ("stat", ""), "RMFILES": ("unlink", ""), "RMDIRS": ("rmdir", ""),
    "RMOBJECTS": ("unlink", ""), "HEADOBJ": ("stat", ""), "LISTOBJ": ("readdir", ""), "MKBUCKETS": ("mkdir", ""), "RMBUCKETS": ("rmdir", ""),
}  # fmt: skip
PARTS = {"pwrite": "create.write", "pread": "read.read"}
CONFIG = ("path type", "paths", "hosts", "threads", "dirs", "files", "file size", "block size", "direct IO", "random", "IO depth")
NOT_TOLD = {
    "phases[].latency.*.quantiles": "elbencho's CSV has minimum, mean and maximum only; its JSON has a histogram with --lathisto.",
    "phases[].errors": "elbencho ends at the first failed operation and does not count them.",
    "phases[].rank_seconds": "elbencho tells the first and the last thread's end only.",
    "phases[].timeline": "elbencho's result file has no time line.",
    "phases[].slowest": "elbencho's result file has no single operations.",
    "environment": "elbencho does not say what file system it measured.",
    "seed": "elbencho does not name it.",
}


def recognises(source: Source) -> bool:
    first = source.head.split("\n", 1)[0]
    if "operation" in first and "time ms [last]" in first:
        return True
    return source.head.lstrip().startswith("{") and '"phase_type"' in source.head and '"last_done"' in source.head


def read(sources: Sequence[Source]) -> list[Record]:
    return [record for source in sources for record in (_read_json(source) if source.head.lstrip().startswith("{") else _read_csv(source))]


def _read_csv(source: Source) -> list[Record]:
    source.require_last_line()
    rows = csv.reader(source.lines)
    header = [name.strip() for name in next(rows)]
    if "operation" not in header or "time ms [last]" not in header:
        raise source.refuse(1, "the first line names no columns 'operation' and 'time ms [last]'; elbencho writes it into a new file only")
    found = []
    for row in rows:
        line = rows.line_num
        if not row or row[0] == header[0]:
            continue
        if len(row) != len(header):
            raise source.refuse(line, f"this result has {len(row)} columns instead of {len(header)}; the line was cut off")
        cells = dict(zip(header, row, strict=True))

        def number(name: str, cells: Mapping[str, str] = cells, line: int = line) -> float | None:
            return source.number(cells[name], line, name) if cells.get(name) else None

        first, last = number("time ms [first]"), number("time ms [last]")
        entries, blocks = number("entries/s [last]"), number("IOPS [last]")
        count, mebibytes = number("entries [last]"), number("MiB/s [last]")
        size = number("block size") or 0
        total = number("MiB [last]")
        times = {
            kind: {
                ours: v
                for ours, theirs in (("min", "min"), ("mean", "avg"), ("max", "max"))
                if (v := number(f"{kind} lat us [{theirs}]")) is not None
            }
            for kind in ("Ent", "IO")
        }
        facts = {
            "first": first, "last": last, "entries/s": entries, "iops": blocks, "entries": count,
            "blocks": round(total * 2**20 / size) if total and size else None, "bytes/s": mebibytes * 2**20 if mebibytes is not None else None,
            "entry times": times["Ent"], "block times": times["IO"], "start": cells.get("ISO DATE", cells.get("ISO date")),
        }  # fmt: skip
        config = {name: cells[name] for name in CONFIG if cells.get(name)}
        found.append((line, cells["operation"], config, facts, cells.get("version"), cells.get("command"), cells.get("label")))
    return _records(source, found)


def _read_json(source: Source) -> list[Record]:
    found = []
    for line, value in source.json_values():
        last, first, config = value.get("last_done"), value.get("first_done") or {}, value.get("config") or {}
        if not isinstance(last, dict) or "phase_type" not in value:
            raise source.refuse(line, "this object is no phase of elbencho (phase_type, last_done)")
        latency = last.get("latency") or {}

        def number(where: Mapping[str, Any], name: str, line: int = line) -> float | None:
            return source.number(str(where[name]), line, name) if where.get(name) not in (None, "") else None

        def times(kind: str, latency: Mapping[str, Any] = latency, number: Any = number) -> dict[str, float]:
            return {
                ours: v
                for ours, theirs in (("min", "min_us"), ("mean", "avg_us"), ("max", "max_us"))
                if (v := number(latency.get(kind) or {}, theirs)) is not None
            }

        size = number(config, "block_size")
        total = number(last, "bytes")
        facts = {
            "first": number(first, "elapsed_time_ms"), "last": number(last, "elapsed_time_ms"), "entries/s": number(last, "entries/s"), "iops": number(last, "iops"),
            "entries": number(last, "entries"), "blocks": round(total / size) if total and size else None, "bytes/s": number(last, "bytes/s"),
            "entry times": times("entries"), "block times": times("IO"), "start": value.get("iso_start_date"),
            "entry histogram": _buckets(source, line, latency.get("entries")), "block histogram": _buckets(source, line, latency.get("IO")),
        }  # fmt: skip
        kept = {
            name: str(config[key])
            for name in CONFIG
            if (key := {"direct IO": "direct_io", "random": "random_offsets", "IO depth": "io_depth"}.get(name, name.replace(" ", "_"))) in config
        }
        found.append((line, value["phase_type"], kept, facts, config.get("version"), config.get("command"), value.get("label")))
    return _records(source, found)


def _buckets(source: Source, line: int, latency: Any) -> Counter[int] | None:
    """Counts by the geometric middle of each bucket, in nanoseconds; None without a usable histogram."""
    histogram = (latency or {}).get("histogram")
    if not isinstance(histogram, dict) or not isinstance(histogram.get("buckets"), list):
        return None
    counts: Counter[int] = Counter()
    for bucket in histogram["buckets"]:
        span = re.match(r"^([\d.]+)(?:-([\d.]+)|\+)us$", str(bucket.get("range")))
        if span is None:
            raise source.refuse(line, f"the histogram's range '{bucket.get('range')}' is none")
        low, high = float(span[1]), float(span[2] or span[1])
        middle = (max(low, 0.5) * max(high, 0.5)) ** 0.5
        counts[max(1, round(middle * 1000))] += int(source.number(str(bucket.get("count")), line, "a count"))
    return counts or None


def _records(source: Source, found: list[tuple[int, str, dict[str, str], dict[str, Any], Any, Any, Any]]) -> list[Record]:
    records: list[Record] = []
    key = None
    for line, operation, config, facts, version, command, label in found:
        operation = operation.upper()
        if operation not in OPERATIONS:  # SYNC, DROPCACHE and the like are no measurement
            continue
        threads, hosts = (int(source.number(config.get(name, "1"), line, name)) for name in ("threads", "hosts"))
        own = (tuple(config.items()), command, label)
        done = {phase.name for phase in records[-1].phases} if records else set()
        if own != key or operation.lower() in done:
            key = own
            name = f"n{threads * hosts}" + (f"x{hosts}" if hosts > 1 else "")
            records.append(
                Record(
                    name,
                    "elbencho",
                    [],
                    version=str(version) if version else None,
                    started=facts["start"] or None,
                    ranks=threads * hosts,
                    nodes=hosts,
                )
            )
            records[-1].parameters = {k.replace(" ", "_"): int(v) if v.isdigit() else v for k, v in config.items()}
            records[-1].command = Source.words(command) if command else None
            records[-1].missing |= NOT_TOLD
            records[-1].label = str(label or "")
        phase = _phase(operation, facts)
        if phase is None:
            raise source.refuse(line, f"the phase {operation} has no rate and no time")
        if phase.latency and any(latency.counts for latency in phase.latency.values()):
            records[-1].missing.pop("phases[].latency.*.quantiles", None)
        if phase.seconds is not None and phase.seconds < 0.01:
            said = "elbencho gives whole milliseconds; times of phases this short say little, and rates are its own."
            if said not in records[-1].warnings:
                records[-1].warnings.append(said)
        records[-1].phases.append(phase)
    for record in records:
        place_one_after_the_other(record.phases)
    return records


def _phase(operation: str, facts: dict[str, Any]) -> Phase | None:
    on_entry, on_block = OPERATIONS[operation]
    of_entries = facts["entries/s"] is not None
    op = on_entry if of_entries or not on_block else on_block
    rate = facts["entries/s"] if of_entries else facts["iops"]
    seconds = facts["last"] / 1000 if facts["last"] is not None else None
    if rate is None and seconds is None:
        return None
    count = facts["entries"] if of_entries else facts["blocks"]
    if seconds is not None and seconds < 0.01 and rate:
        seconds = count / rate if count else None
    phase = Phase(operation.lower(), seconds=seconds, operations=int(count) if count else None, rate=rate)
    phase.counts = {op: int(count)} if count else {}
    if facts["first"] and facts["last"]:
        phase.balance = facts["first"] / facts["last"]
    if facts["bytes/s"] is not None:
        phase.more["bytes_per_second"] = facts["bytes/s"]
    for kind, tag, number in (
        ("entry", op if of_entries else "", count),
        ("block", PARTS[on_block] if on_block and of_entries else on_block, facts["blocks"]),
    ):
        times, histogram = {k: v * 1e-6 for k, v in facts[f"{kind} times"].items()}, facts.get(f"{kind} histogram")
        if not tag or not (times or histogram):
            continue
        phase.latency[tag] = Latency.of_counts(histogram, **times) if histogram else Latency(int(number) if number else None, times)
    return phase


IMPORTER = Importer("elbencho", "CSV and JSON result files of elbencho", "the file of --csvfile or --jsonfile", recognises, read)

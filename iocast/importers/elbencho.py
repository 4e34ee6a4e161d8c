# SPDX-License-Identifier: Apache-2.0
"""elbencho's result files: CSV (--csvfile; also its rows as a JSON list), JSON (--jsonfile, one object a phase), text
(--resfile, and the standard output), and live CSV (--livecsv).

All are appended to, so a file may hold several runs: phases with the same configuration that follow each other are one
run. A phase counts entries (files or directories); in file and block device mode there are none and its operations are
block transfers. Times are whole milliseconds and latencies whole microseconds. Histograms are in JSON with --lathisto
only.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

from iocast.importers import Importer
from iocast.importers.record import Latency, Phase, Record, place_one_after_the_other
from iocast.importers.source import Source
from iocast.ground.strict import is_whole

OPERATIONS = {  # phase: operation on an entry, its part or operation on a block
    "MKDIRS": ("mkdir", ""),
    "WRITE": ("create", "pwrite"),
    "READ": ("read", "pread"),
    "STAT": ("stat", ""),
    "RMFILES": ("unlink", ""),
    "RMDIRS": ("rmdir", ""),
    "RMOBJECTS": ("unlink", ""),
    "HEADOBJ": ("stat", ""),
    "LISTOBJ": ("readdir", ""),
    "MKBUCKETS": ("mkdir", ""),
    "RMBUCKETS": ("rmdir", ""),
}
PARTS = {"pwrite": "create.write", "pread": "read.read"}
NOT_MEASURED = ("SYNC", "DROPCACHE", "DROPCACHES")
PLACEMENT = ("hosts", "threads")
CONFIG = (
    "path type",
    "paths",
    "hosts",
    "threads",
    "dirs",
    "files",
    "file size",
    "block size",
    "direct IO",
    "random",
    "IO depth",
)
NOT_PRINTED = {
    "phases[].latency.*.quantiles": "elbencho's CSV has minimum, mean and maximum only; its JSON has a histogram with "
    "--lathisto.",
    "phases[].errors": "elbencho ends at the first failed operation and does not count them.",
    "phases[].rank_seconds": "elbencho tells the first and the last thread's end only.",
}


TABLE = re.compile(r"^OPERATION\s+RESULT TYPE\s+FIRST DONE\s+LAST DONE", re.MULTILINE)
LIVE = {"Phase", "RuntimeMS", "Rank", "DoneBytes"}
"""Columns of a live file, which since 3.0 begins with a date."""
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def recognises(source: Source) -> bool:
    first = source.head.split("\n", 1)[0]
    if (
        ("operation" in first and "time ms [last]" in first)
        or TABLE.search(source.head)
        or LIVE <= set(first.split(","))
    ):
        return True
    if source.head.lstrip().startswith("[") and '"time ms [last]"' in source.head:
        return True
    return source.head.lstrip().startswith("{") and '"phase_type"' in source.head and '"last_done"' in source.head


def read(sources: Sequence[Source]) -> list[Record]:
    return [record for source in sources for record in _reader(source)(source)]


def _reader(source: Source) -> Callable[[Source], list[Record]]:
    start = source.head.lstrip()[:1]
    if TABLE.search(source.head):
        return _read_text
    if start in ("{", "["):
        return _read_json if start == "{" else _read_rows
    if LIVE <= set(source.head.split("\n", 1)[0].split(",")):
        return _read_live
    return _read_csv


def _read_csv(source: Source) -> list[Record]:
    source.require_last_line()
    rows = csv.reader(source.lines)
    header = [name.strip() for name in next(rows)]
    if "operation" not in header or "time ms [last]" not in header:
        raise source.refuse(
            1,
            "the first line names no columns 'operation' and 'time ms [last]'; elbencho writes it into a new file only",
        )
    found = []
    for row in rows:
        line = rows.line_num
        if not row or row[0] == header[0]:
            continue
        if len(row) != len(header):
            raise source.refuse(
                line, f"this result has {len(row)} columns instead of {len(header)}; the line was cut off"
            )
        found.append(_row(source, line, dict(zip(header, row, strict=True))))
    return _records(source, found)


def _read_rows(source: Source) -> list[Record]:
    """The rows of the CSV file as a JSON list of objects, as other programs make it."""
    rows = source.whole_json()
    lines = [source.line_at(found.start()) for found in re.finditer(r'"operation"\s*:', source.text)]
    found = [
        _row(source, line, {k: "" if v is None else str(v) for k, v in row.items()})
        for line, row in zip(lines, rows, strict=True)
    ]
    return _records(source, found)


Facts = TypedDict(
    "Facts",
    {
        "call": int,
        "first": float | None,
        "last": float | None,
        "entries/s": float | None,
        "iops": float | None,
        "entries": float | None,
        "blocks": float | None,
        "mebibytes": float | None,
        "mebibytes/s": float,
        "bytes/s": float | None,
        "entry times": dict[str, float],
        "block times": dict[str, float],
        "entry histogram": Counter[int] | None,
        "block histogram": Counter[int] | None,
        "start": str | None,
        "lines": dict[str, int],
    },
    total=False,
)
"""What elbencho prints of a phase: milliseconds of its first and last rank, times in microseconds."""
_Found = tuple[int, str, dict[str, str], Facts, str | None, str | None, str | None]
"""Line, operation, configuration, facts, version, command, label."""


def _row(source: Source, line: int, cells: Mapping[str, str]) -> _Found:
    def number(name: str) -> float | None:
        return source.number(cells[name], line, name) if cells.get(name) else None

    total, size, mebibytes = number("MiB [last]"), number("block size") or 0, number("MiB/s [last]")
    times = {
        kind: {
            ours: v
            for ours, theirs in (("min", "min"), ("mean", "avg"), ("max", "max"))
            if (v := number(f"{kind} lat us [{theirs}]")) is not None
        }
        for kind in ("Ent", "IO")
    }
    facts: Facts = {
        "first": number("time ms [first]"),
        "last": number("time ms [last]"),
        "entries/s": number("entries/s [last]"),
        "iops": number("IOPS [last]"),
        "entries": number("entries [last]"),
        "blocks": round(total * 2**20 / size) if total and size else None,
        "mebibytes": total,
        "bytes/s": mebibytes * 2**20 if mebibytes is not None else None,
        "entry times": times["Ent"],
        "block times": times["IO"],
        "start": cells.get("ISO DATE", cells.get("ISO date")),
    }
    config = {name: cells[name] for name in CONFIG if cells.get(name)}
    return line, cells["operation"], config, facts, cells.get("version"), cells.get("command"), cells.get("label")


# ---- text


def _read_text(source: Source) -> list[Record]:
    found: list[_Found] = []
    command = start = label = None
    block: Facts = {}
    name, line = "", 0
    seen: set[str] = set()
    call, titled = 0, False
    for number, text in source.numbered:
        head = re.match(r"^([A-Z]+)\s+Elapsed (ms|time)\s*:\s+(\S+)\s+(\S+)\s*$", text)
        if head or text.startswith(("---", "ISO DATE: ", "OPERATION ")):
            if name:
                if not text.startswith("---"):
                    raise source.refuse(
                        number,
                        "a phase begins within another: several processes wrote here at once; name one process's "
                        "output",
                    )
                found.append(_text_row(source, line, name, block, command, start, label))
                name = ""
        if text.startswith("OPERATION "):
            if seen and not titled:  # a call that printed no command
                command, start, label, seen = None, None, None, set()
            call, titled = call + 1, False
        if head:
            name, line = head[1], number
            if command is None and name in seen and name not in NOT_MEASURED:
                raise source.refuse(
                    number,
                    f"the phase {name} is there twice in one call: several processes wrote here; name one process's "
                    "output",
                )
            seen.add(name)
            block = {
                "call": call,
                "first": _milliseconds(source, number, head[3], head[2]),
                "last": _milliseconds(source, number, head[4], head[2]),
            }
        elif text.startswith("ISO DATE: "):
            start, command, label, seen, titled = text[10:].strip(), None, None, set(), True
        elif text.startswith("COMMAND LINE: "):
            command = text[14:].strip()
        elif text.startswith("LABEL: "):
            label = text[7:].strip()
        elif name:
            _text_line(source, number, text, block)
    if not any(operation not in NOT_MEASURED for _, operation, *_ in found):
        raise source.refuse_cut("the end ('---') of the first phase's result")
    records = _records(source, found)
    if name:
        records[-1].warnings.append(f"{source.at(line)}: the result of {name} has no end ('---'); it is left out.")
    return records


def _text_line(source: Source, number: int, text: str, block: Facts) -> None:
    if row := re.match(r"^\s+(\S.*?)\s*:\s+(\d+)\s+(\d+)\s*$", text):
        value = source.number(row[3], number, row[1])
        block.setdefault("lines", {})[_quantity(row[1])] = number
        if row[1].endswith("/s") and "MiB" not in row[1]:
            block["entries/s"] = value
        elif row[1] == "Throughput MiB/s":
            block["mebibytes/s"] = value
        elif row[1] == "Total MiB":
            block["mebibytes"] = value
        elif row[1] in ("IOPS", "IOs total"):
            if row[1] == "IOPS":
                block["iops"] = value
            else:
                block["blocks"] = value
        elif row[1].endswith(" total"):
            block["entries"] = value
    elif row := re.match(
        r"^\s+(IO|Ent|Entries|Files|Objects|Dirs) lat(?:ency)?\s*:\s+\[ min=(\S+) avg=(\S+) max=(\S+) \]", text
    ):
        times = {key: 1e6 * _duration(source, number, row[i]) for i, key in enumerate(("min", "mean", "max"), start=2)}
        if row[1] == "IO":
            block["block times"] = times
        else:
            block["entry times"] = times
        block.setdefault("lines", {})["latency"] = number


def _quantity(title: str) -> str:
    """The key of a phase that a row of the text tells."""
    if title.startswith("Throughput"):
        return "bytes_per_second"
    return "rate" if title.endswith("/s") or title == "IOPS" else "bytes" if title == "Total MiB" else "operations"


def _milliseconds(source: Source, number: int, text: str, kind: str) -> float:
    return source.number(text, number, "Elapsed ms") if kind == "ms" else 1000 * _duration(source, number, text)


def _duration(source: Source, number: int, text: str) -> float:
    """Seconds of "6.431s", "770ms", "21us", "1m12.5s"."""
    if not re.fullmatch(r"(?:[\d.]+(?:ns|us|ms|s|m|h):?)+", text):
        raise source.refuse(number, f"'{text}' is no time; the line may have been cut off")
    return sum(float(value) * UNITS[unit] for value, unit in re.findall(r"([\d.]+)(ns|us|ms|s|m|h)", text))


def _text_row(
    source: Source, line: int, operation: str, block: Facts, command: str | None, start: str | None, label: str | None
) -> _Found:
    options = _options(command)
    config = {}
    if command is not None:
        hosts = [h for h in re.split(r"[,\s]+", options.get("hosts", "")) if h]
        config = {"hosts": str(max(1, len(hosts))), "threads": options.get("threads", options.get("t", "1"))}
    for theirs, ours in (
        ("files", "files"),
        ("dirs", "dirs"),
        ("size", "file size"),
        ("block", "block size"),
        ("iodepth", "IO depth"),
    ):
        if theirs in options:
            config[ours] = str(_bytes(options[theirs]))
    config |= {ours: "1" for theirs, ours in (("direct", "direct IO"), ("rand", "random")) if theirs in options}
    total, size = block.get("mebibytes"), float(config.get("block size") or 2**20 if command else 0)
    facts: Facts = {
        "call": block["call"],
        "first": block["first"],
        "last": block["last"],
        "entries/s": block.get("entries/s"),
        "iops": block.get("iops"),
        "entries": block.get("entries"),
        "blocks": block.get("blocks") or (round(total * 2**20 / size) if total and size else None),
        "mebibytes": total,
        "bytes/s": block["mebibytes/s"] * 2**20 if "mebibytes/s" in block else None,
        "entry times": block.get("entry times", {}),
        "block times": block.get("block times", {}),
        "start": start,
        "lines": block.get("lines", {}),
    }
    return line, operation, config, facts, None, command, label


def _options(command: str | None) -> dict[str, str]:
    """Long options of a command line by name; those without a value are empty."""
    words = re.findall(r'"([^"]*)"', command or "")
    found = {}
    for word, after in zip(words, [*words[1:], ""], strict=False):
        if option := re.match(r"^--?([a-z0-9]+)(?:=(.*))?$", word):
            found[option[1]] = option[2] if option[2] is not None else "" if after.startswith("--") else after
    return found


def _bytes(text: str) -> int | str:
    found = re.fullmatch(r"(\d+)([kmgtKMGT]?)", text)
    return int(found[1]) * 1024 ** " kmgt".index(found[2].lower() or " ") if found else text


# ---- live


def _read_live(source: Source) -> list[Record]:
    """What the live file says when a phase was last looked at: bytes and entries done by then."""
    source.require_last_line()
    rows = [(i, row) for i, row in enumerate(csv.DictReader(source.lines), start=2) if row.get("Rank") == "Total"]
    last: list[tuple[int, dict[str, str]]] = []
    most = 0
    records: list[Record] = []
    for i, row in rows:
        if None in row.values():
            raise source.refuse(i, "this line has fewer columns than the header; it was cut off")
        if row["Phase"] in NOT_MEASURED:
            continue
        again = (
            last and row["Phase"] == last[-1][1]["Phase"] and float(row["RuntimeMS"]) <= float(last[-1][1]["RuntimeMS"])
        )
        before = any(row["Phase"] == other["Phase"] for _, other in last[:-1])
        if again or before:
            records.append(_live_record(source, last, most))
            last, most = [], 0
        if last and last[-1][1]["Phase"] == row["Phase"]:
            last[-1] = (i, row)
        else:
            last.append((i, row))
        most = max(most, int(source.number(row["Active"], i, "Active")))
    if last:
        records.append(_live_record(source, last, most))
    if not records:
        raise source.refuse_cut("the first phase's line")
    return records


def _live_record(source: Source, rows: list[tuple[int, dict[str, str]]], ranks: int) -> Record:
    record = Record(
        f"n{ranks}",
        "elbencho",
        [],
        ranks=ranks,
        label=rows[0][1].get("Label") or "",
        origin={"ranks": source.at(rows[-1][0])},
    )
    record.missing |= NOT_PRINTED | {
        "phases[].operations": "elbencho's live file counts entries and bytes, no blocks.",
        "command": "elbencho's live file does not name it.",
        "workload.parameters": "elbencho's live file has no options.",
        "started": "elbencho's live file has no time of day.",
    }
    record.warnings.append(
        "A live file tells what was done when it was last written, not when the phase ended; the result file is exact."
    )
    for i, row in rows:
        values = {name: source.number(row[name], i, name) for name in ("RuntimeMS", "DoneBytes", "Entries")}
        seconds = values["RuntimeMS"] / 1000
        if seconds <= 0:
            raise source.refuse(i, f"RuntimeMS is {row['RuntimeMS']}; a phase that did something took a time above 0")
        phase = Phase(row["Phase"].lower(), seconds=seconds, origin={"": source.at(i)})
        if values["DoneBytes"]:
            phase.bytes, phase.bytes_per_second = int(values["DoneBytes"]), values["DoneBytes"] / seconds
            if not values["Entries"]:
                phase.more["rate_unit"] = "bytes"
        if values["Entries"]:
            phase.operations, phase.rate = int(values["Entries"]), values["Entries"] / seconds
            phase.counts = {OPERATIONS.get(row["Phase"], (row["Phase"].lower(), ""))[0]: phase.operations}
        record.phases.append(phase)
    place_one_after_the_other(record.phases)
    return record


class Done(TypedDict, total=False):
    """What was done when the first, or the last, thread was; beside numbers by their names."""

    latency: dict[str, dict[str, object]]


class Written(TypedDict, total=False):
    """A phase of a live file."""

    phase_type: str
    iso_start_date: str
    label: str
    first_done: Done
    last_done: Done
    config: dict[str, str]


def _read_json(source: Source) -> list[Record]:
    found: list[_Found] = []
    values: list[tuple[int, Written]] = source.json_values()
    for line, value in values:
        last, first, config = value.get("last_done"), value.get("first_done") or {}, value.get("config") or {}
        if not isinstance(last, dict) or "phase_type" not in value:
            raise source.refuse(line, "this object is no phase of elbencho (phase_type, last_done)")
        latency = last.get("latency") or {}

        def number(where: Mapping[str, object], name: str, line: int = line) -> float | None:
            return source.number(str(where[name]), line, name) if where.get(name) not in (None, "") else None

        def times(kind: str, latency: Mapping[str, Mapping[str, object]] = latency) -> dict[str, float]:
            return {
                ours: v
                for ours, theirs in (("min", "min_us"), ("mean", "avg_us"), ("max", "max_us"))
                if (v := number(latency.get(kind) or {}, theirs)) is not None
            }

        size = number(config, "block_size")
        total = number(last, "bytes")
        facts: Facts = {
            "first": number(first, "elapsed_time_ms"),
            "last": number(last, "elapsed_time_ms"),
            "entries/s": number(last, "entries/s"),
            "iops": number(last, "iops"),
            "entries": number(last, "entries"),
            "blocks": round(total / size) if total and size else None,
            "mebibytes": total / 2**20 if total else None,
            "bytes/s": number(last, "bytes/s"),
            "entry times": times("entries"),
            "block times": times("IO"),
            "start": value.get("iso_start_date"),
            "entry histogram": _buckets(source, line, latency.get("entries")),
            "block histogram": _buckets(source, line, latency.get("IO")),
        }
        kept = {
            name: str(config[key])
            for name in CONFIG
            if (
                key := {"direct IO": "direct_io", "random": "random_offsets", "IO depth": "io_depth"}.get(
                    name, name.replace(" ", "_")
                )
            )
            in config
        }
        found.append(
            (line, value["phase_type"], kept, facts, config.get("version"), config.get("command"), value.get("label"))
        )
    return _records(source, found)


def _buckets(source: Source, line: int, latency: Mapping[str, object] | None) -> Counter[int] | None:
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


def _records(source: Source, found: list[_Found]) -> list[Record]:
    records: list[Record] = []
    key = None
    for line, operation, config, facts, version, command, label in found:
        operation = operation.upper()
        if operation in NOT_MEASURED or operation not in OPERATIONS:
            continue
        threads, hosts = (
            int(source.number(config[name], line, name)) if name in config else None for name in ("threads", "hosts")
        )
        ranks = threads * hosts if threads and hosts else None
        own = (tuple(config.items()), command, label, facts.get("call"))
        done = {phase.name for phase in records[-1].phases} if records else set()
        if own != key or operation.lower() in done:
            key = own
            name = f"n{ranks}" + (f"x{hosts}" if (hosts or 1) > 1 else "") if ranks else "elbencho"
            records.append(
                Record(
                    name,
                    "elbencho",
                    [],
                    version=str(version) if version else None,
                    started=facts["start"] or None,
                    ranks=ranks,
                    nodes=hosts,
                )
            )
            records[-1].parameters = {
                k.replace(" ", "_"): int(v) if is_whole(v) else v for k, v in config.items() if k not in PLACEMENT
            }
            records[-1].origin = dict.fromkeys(("ranks", "nodes", "parameters", "command", "started"), source.at(line))
            records[-1].command = Source.words(command) if command else None
            records[-1].missing |= NOT_PRINTED
            records[-1].label = str(label or "")
        phase = _phase(operation, facts)
        if phase is not None:
            phase.origin |= {"": source.at(line)} | {
                key: source.at(number) for key, number in facts.get("lines", {}).items()
            }
            if "operations" not in phase.origin and "bytes" in phase.origin and "rate" in phase.origin:
                phase.origin["operations"] = f"{phase.origin['bytes']} (bytes / block size)"
        if phase is None:
            raise source.refuse(line, f"the phase {operation} has no rate and no time")
        if phase.latency and any(latency.counts for latency in phase.latency.values()):
            records[-1].missing.pop("phases[].latency.*.quantiles", None)
        if phase.seconds is not None and phase.seconds < 0.01:
            text = "elbencho gives whole milliseconds; times of phases this short say little, and rates are its own."
            if text not in records[-1].warnings:
                records[-1].warnings.append(text)
        records[-1].phases.append(phase)
    for record in records:
        place_one_after_the_other(record.phases)
    return records


def _phase(operation: str, facts: Facts) -> Phase | None:
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
    phase.bytes_per_second = facts["bytes/s"]
    if not of_entries and facts["bytes/s"] is not None:
        phase.more["rate_unit"] = "bytes"
    phase.bytes = round(facts["mebibytes"] * 2**20) if facts["mebibytes"] else None
    of_block = PARTS[on_block] if on_block and of_entries else on_block
    for tag, number, microseconds, histogram in (
        (op if of_entries else "", count, facts["entry times"], facts.get("entry histogram")),
        (of_block, facts["blocks"], facts["block times"], facts.get("block histogram")),
    ):
        times = {k: v * 1e-6 for k, v in microseconds.items()}
        if not tag or not (times or histogram):
            continue
        phase.latency[tag] = (
            Latency.of_counts(histogram, **times) if histogram else Latency(int(number) if number else None, times)
        )
    return phase


IMPORTER = Importer(
    "elbencho",
    "CSV, JSON, text and live files of elbencho",
    "the file of --csvfile, --jsonfile, --resfile or --livecsv",
    recognises,
    read,
)

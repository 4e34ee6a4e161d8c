# SPDX-License-Identifier: Apache-2.0
"""elbencho's CSV, its rows as JSON, JSON, live CSV and result text, read after its manual and its own `Statistics.cpp`.

What they say:

- "First done" is what all threads together had done when the fastest was finished, "last done" the whole phase.
- Threads are those of a host.
- Rates are whole numbers; times are whole milliseconds; MiB have 2^20 bytes.
- A directory's or file's whole life is an entry; IOPS count blocks. SYNC and DROPCACHE phases move nothing.
- A row of the live CSV has what was done so far; with "Total" as rank it is of all threads.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

from . import Printed, Quantity, Reading, figure

MIB = 2.0**20
OPERATIONS = {
    "WRITE": "pwrite",
    "READ": "pread",
    "MKDIRS": "mkdir",
    "RMDIRS": "rmdir",
    "RMFILES": "unlink",
    "STAT": "stat",
}
HEADER = re.compile(r"^OPERATION\s+RESULT TYPE\s+FIRST DONE\s+LAST DONE", re.M)
TYPES = (
    r"Elapsed (?:ms|time)|IOPS|Throughput MiB/s|Total MiB|(?:Files|Dirs)(?:/s| total)|(?:IO|Ent|Dirs|Files) lat[^:]*?"
)
LINE = re.compile(rf"^(\S+)?\s+({TYPES})\s*:\s+(.*)$")


def read(path: Path, text: str) -> Reading | None:
    if text.startswith("Label,Phase,RuntimeMS,Rank"):
        return of_live(text)
    if text.lower().startswith("iso date,label,path type"):
        rows = list(csv.DictReader([text.splitlines()[0].replace("ISO DATE", "ISO date"), *text.splitlines()[1:]]))
        return of_rows(rows, f"{rows[0]['version']} CSV" if rows else "CSV")
    if '"ISO date"' in text and '"operation"' in text and text.lstrip().startswith("["):
        try:
            rows = json.loads(text)
        except ValueError:
            return Reading("elbencho", "CSV as JSON", refusal="truncated")
        if all(isinstance(row, dict) and "operation" in row for row in rows):
            return of_rows(rows, f"{rows[0].get('version')} CSV as JSON")
    if '"phase_type"' in text and '"last_done"' in text:
        return of_phases(text)
    if HEADER.search(text) and "Elapsed" in text:
        return of_text(text)
    return None


def size(text: str) -> int | None:
    hit = re.fullmatch(r"(\d+)([kKmMgGtT]?)i?b?", text.strip(), re.I)
    return int(hit[1]) * {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}[hit[2].lower()] if hit else None


def put(run: Printed, operation: str, seen: dict[str, int], value: Any, block: int | None) -> None:
    """A phase; `value(name, first=False)` gives a column's text, or None."""
    op = OPERATIONS.get(operation)
    if op is None:
        return
    name, repeat = operation.lower(), seen.get(operation, 0)
    seen[operation] = repeat + 1
    seconds = figure(value("time ms"), 1e-3)
    moved, entries = value("MiB"), value("entries")
    if op in ("pwrite", "pread"):
        run.put(name, repeat, bytes_per_second=figure(value("MiB/s"), MIB), bytes=figure(moved, MIB))
        if value("IOPS"):
            run.put(name, repeat, rate=figure(value("IOPS")))
        if block and moved:
            run.put(name, repeat, operations=Quantity(int(moved) * MIB / block, figure(moved).relative, derived=True))
    else:
        rate = figure(value("entries/s"))
        if rate.value and rate.relative < seconds.relative:
            seconds = Quantity(int(entries) / rate.value, rate.relative)
        run.put(name, repeat, rate=rate, operations=int(entries))
    run.put(name, repeat, seconds=seconds)
    first, last = value("time ms", True), value("time ms")
    if first and int(first) and int(last):
        run.put(name, repeat, balance=Quantity(int(first) / int(last), figure(first).relative + figure(last).relative))


def put_latency(run: Printed, operation: str, repeat: int, values: list[Quantity]) -> None:
    op = OPERATIONS[operation]
    least, mean, most = values
    known = {"min": least, "mean": mean, "max": most}
    run.put(operation.lower(), repeat, **{f"latency__{op}__{which}": value for which, value in known.items()})


def of_rows(rows: list[dict[str, Any]], version: str) -> Reading:
    runs: dict[tuple[Any, ...], Printed] = {}
    seen: dict[tuple[Any, ...], dict[str, int]] = {}
    for row in rows:
        key = tuple(str(row.get(k)) for k in ("label", "hosts", "threads", "command"))
        if key not in runs:
            hosts, threads = int(row["hosts"]), int(row["threads"])
            runs[key] = Printed(hosts * threads, hosts, row.get("command") or None, str(row["ISO date"]))
            seen[key] = {}

        def value(name: str, first: bool = False, row: dict[str, Any] = row) -> str | None:
            found = row.get(f"{name} [{'first' if first else 'last'}]")
            return None if found in (None, "") else str(found)

        operation = row["operation"]
        before = dict(seen[key])
        if value("MiB/s") or value("entries/s"):
            put(runs[key], operation, seen[key], value, int(row["block size"]) if row.get("block size") else None)
            kind = "IO" if OPERATIONS.get(operation) in ("pwrite", "pread") else "Ent"
            values = [row.get(f"{kind} lat us [{which}]") for which in ("min", "avg", "max")]
            if operation in OPERATIONS and all(v not in (None, "") for v in values):
                put_latency(runs[key], operation, before.get(operation, 0), [figure(str(v), 1e-6) for v in values])
    made = [run for run in runs.values() if run.phases]
    return Reading("elbencho", version, made, "" if made else "no rate in it")


def of_phases(text: str) -> Reading:
    """The file of --jsonfile: a document for each phase, all values as texts."""
    decoder, at, run, version = json.JSONDecoder(), 0, Printed(), ""
    seen: dict[str, int] = {}
    names = {"time ms": "elapsed_time_ms", "IOPS": "iops", "entries/s": "entries/s", "entries": "entries"}
    while hit := re.compile(r"^\{", re.M).search(text, at):
        try:
            phase, at = decoder.raw_decode(text, hit.start())
        except ValueError:
            return Reading("elbencho", f"{version} JSON", refusal="truncated")
        config, version = phase["config"], phase["config"].get("version", "")
        run.ranks, run.nodes = int(config["hosts"]) * int(config["threads"]), int(config["hosts"])
        run.command, run.started = config.get("command"), run.started or phase.get("iso_start_date")
        operation, last = phase["phase_type"], phase["last_done"]
        if OPERATIONS.get(operation) not in ("pwrite", "pread"):
            continue
        repeat = seen.get(operation, 0)
        seen[operation] = repeat + 1
        run.put(operation.lower(), repeat, seconds=figure(last[names["time ms"]], 1e-3), rate=figure(last["iops"]))
        volume = figure(last["bytes"]) if "bytes" in last else Quantity(None)
        run.put(operation.lower(), repeat, bytes_per_second=figure(last["bytes/s"]), bytes=volume)
        known = last.get("latency", {}).get("IO", {})
        if known:
            put_latency(
                run, operation, repeat, [figure(known[which], 1e-6) for which in ("min_us", "avg_us", "max_us")]
            )
    return Reading("elbencho", f"{version} JSON", [run] if run.phases else [], "" if run.phases else "no rate in it")


def of_live(text: str) -> Reading:
    rows = [row for row in csv.DictReader(text.splitlines()) if row.get("Rank") == "Total"]
    run = Printed()
    for phase in dict.fromkeys(row["Phase"] for row in rows):
        of_phase = [row for row in rows if row["Phase"] == phase and row["DoneBytes"]]
        if phase not in OPERATIONS or not of_phase:
            continue
        last = of_phase[-1]
        milliseconds, done = int(last["RuntimeMS"]), int(last["DoneBytes"])
        run.put(phase.lower(), 0, seconds=milliseconds / 1000)
        if done:
            speed = Quantity(1000 * done / milliseconds, 1e-6, derived=True)
            run.put(phase.lower(), 0, bytes=done, bytes_per_second=speed)
        run.ranks = max(run.ranks or 0, *(int(row["Active"]) for row in of_phase)) or None
    return Reading("elbencho", "live CSV", [run] if run.phases else [], "" if run.phases else "no rate in it")


def human(text: str) -> Quantity | None:
    """ "26us", "523ms", "1.2s"."""
    hit = re.fullmatch(r"([\d.]+)(us|ms|s)", text)
    return figure(hit[1], {"us": 1e-6, "ms": 1e-3, "s": 1.0}[hit[2]]) if hit else None


def milliseconds(text: str) -> str | None:
    """Whole milliseconds of "1248", "506ms", "1.248s", "2m3.004s" or "1h2m3.004s"."""
    if text.removesuffix("ms").isdigit():
        return text.removesuffix("ms")
    hit = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:([\d.]+)s)?", text)
    return str(round(1000 * (3600 * int(hit[1] or 0) + 60 * int(hit[2] or 0) + float(hit[3] or 0)))) if hit else None


def of_text(text: str) -> Reading:
    runs = []
    begins = [m.start() for m in re.finditer(r"^ISO DATE: ", text, re.M)]
    if not begins:
        begins = [m.start() for m in HEADER.finditer(text)]
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        part = text[begin:end]
        if several_at_once(part):
            why = "several processes print into one file at once"
            return Reading("elbencho", "text of several processes", refusal=why)
        runs.append(of_part(part))
    made = [run for run in runs if run.phases]
    return Reading("elbencho", "text", made, "" if made else "no rate in it")


def several_at_once(part: str) -> bool:
    """Three phases of one name in a row are the output of services that write into one file."""
    names = [m[1] for m in re.finditer(r"^([A-Z]+)\s+Elapsed", part, re.M)]
    return any(a == b == c for a, b, c in zip(names, names[1:], names[2:], strict=False))


def of_part(part: str) -> Printed:
    command = re.search(r"^COMMAND LINE: (.*)$", part, re.M)
    started = re.search(r"^ISO DATE: (\S+)", part, re.M)
    run = Printed(command=command[1] if command else None, started=started[1] if started else None)
    block = None
    if command:
        words = " ".join(re.findall(r'"([^"]*)"', command[1]))
        found = {name: re.search(rf"--{name}[ =](.*?)(?= --|$)", words) for name in ("hosts", "threads", "block")}
        options = {name: hit[1].strip() for name, hit in found.items() if hit}
        run.nodes = len(re.findall(r"[^\s,]+", options["hosts"])) if options.get("hosts") else 1
        if "[" in options.get("hosts", ""):
            run.nodes = None
        threads = int(options.get("threads", "1").split()[0])
        run.ranks = threads * run.nodes if run.nodes else None
        block = size(options.get("block", "1m").split()[0])
    seen: dict[str, int] = {}
    for section in re.split(r"^---.*$", part, flags=re.M):
        put_section(run, section, seen, block)
    return run


NAMES = {
    "Elapsed ms": "time ms",
    "Elapsed time": "time ms",
    "IOPS": "IOPS",
    "Throughput MiB/s": "MiB/s",
    "Total MiB": "MiB",
    "Files/s": "entries/s",
    "Dirs/s": "entries/s",
    "Files total": "entries",
    "Dirs total": "entries",
}


def put_section(run: Printed, section: str, seen: dict[str, int], block: int | None) -> None:
    operation, cells, latency = "", {}, None
    for line in section.splitlines():
        if not (hit := LINE.match(line)):
            continue
        operation = hit[1] or operation
        if "lat" in hit[2]:
            words = dict(re.findall(r"(min|avg|max)=(\S+)", hit[3]))
            wanted = "IO" if OPERATIONS.get(operation) in ("pwrite", "pread") else ""
            if words and hit[2].startswith(wanted):
                latency = [human(words[which]) for which in ("min", "avg", "max")]
        elif len(words := hit[3].split()) >= 2:
            cells[NAMES[hit[2]]] = [milliseconds(w) if hit[2].startswith("Elapsed") else w for w in words[:2]]
    if operation in OPERATIONS and ("MiB/s" in cells or "entries/s" in cells):
        before = seen.get(operation, 0)
        put(run, operation, seen, lambda name, first=False: (cells.get(name) or [None, None])[0 if first else 1], block)
        if latency and all(latency):
            put_latency(run, operation, before, latency)  # type: ignore[arg-type]

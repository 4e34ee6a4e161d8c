# SPDX-License-Identifier: Apache-2.0
"""IOR's results: JSON (-O summaryFormat=JSON) and the text table, of IOR 2, 3 and 4.

Each line of results is one phase: a write or a read by all tasks, with its repeat. An operation is one transfer. Newer versions also tell
the mean time of a transfer ("Latency(s)").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from iocast.importers import Importer
from iocast.importers.record import Latency, Phase, Record, place_one_after_the_other
from iocast.importers.source import Source

TEXT = re.compile(r"^IOR-?(\S*?):? MPI Coordinated Test of Parallel I/O", re.MULTILINE)
TABLE = re.compile(r"^access\s+bw\(MiB/s\)")
SIZES = {"bytes": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
OPERATIONS = {"write": "pwrite", "read": "pread"}
NOT_TOLD = {
    "phases[].latency.*.quantiles": "IOR prints no distribution of its transfers' times.",
    "phases[].errors": "IOR does not count failed operations.",
    "phases[].rank_seconds": "IOR prints no times of single ranks.",
    "phases[].timeline": "IOR records no single operations.",
    "phases[].slowest": "IOR records no single operations.",
    "seed": "IOR's summary does not name it.",
}


def recognises(source: Source) -> bool:
    if TEXT.search(source.head) or re.search(r"^access\s+bw\(MiB/s\)", source.head, re.MULTILINE):
        return True
    return source.head.lstrip().startswith("{") and '"tests"' in source.head and '"Command line"' in source.head


def read(sources: Sequence[Source]) -> list[Record]:
    return [record for source in sources for record in (_read_json(source) if source.head.lstrip().startswith("{") else _read_text(source))]


def _read_json(source: Source) -> list[Record]:
    (line, document), *_ = source.json_values() or [(1, {})]
    records = []
    for test in document.get("tests") or []:
        options = {str(k).lower(): v for k, v in {**(test.get("Parameters") or {}), **(test.get("Options") or {})}.items()}
        tasks = options.get("tasks") or next((s.get("numTasks") for s in document.get("summary") or [] if s.get("numTasks")), None)
        record = _record(document.get("Version"), document.get("Command line"), options, tasks)
        record.started = test.get("StartTime") or document.get("Began")
        transfer = float(options.get("transfersize") or 0)
        repeats: dict[str, int] = {}
        for result in _flat(test.get("Results")):
            access = str(result.get("access"))
            if access not in OPERATIONS:
                continue
            repeats[access] = repeats.get(access, 0) + 1
            for key in ("bwMiB", "totalTime"):
                if not isinstance(result.get(key), int | float):
                    raise source.refuse(line, f"a {access} result has no {key}")
            size = transfer or 1024 * float(result.get("xferKiB") or 0)
            record.phases.append(
                _phase(access, repeats[access], result["bwMiB"], result["totalTime"], size, result.get("iops"), result.get("latency"), result)
            )
        if record.phases:
            records.append(_finish(record))
    if not records:
        raise source.refuse(line, "the JSON has no result of a write or read ('tests', 'Results')")
    return records


def _flat(results: Any) -> list[dict[str, Any]]:
    if isinstance(results, dict):
        return [results]
    return [one for part in results or [] for one in _flat(part)] if isinstance(results, list) else []


def _read_text(source: Source) -> list[Record]:
    version = TEXT.search(source.text)
    records: list[Record] = []
    options: dict[str, str] = {}
    columns: list[str] = []
    command = started = None
    for number, line in enumerate(source.lines, start=1):
        if found := re.match(r"^\s*([A-Za-z][\w ()]*?)\s*[:=]\s+(.*\S)\s*$", line):
            key, value = found[1].lower(), found[2]
            options[key] = value
            if key.startswith("command line"):
                command = value
            elif key in ("starttime", "began"):
                started = started or value
        if TABLE.match(line):
            columns = [re.sub(r"\(.*?\)", "", word).lower() for word in line.split()]
            records.append(_record(version[1] if version else None, command, options, _tasks(options)))
            records[-1].started = started
        elif re.match(r"^(Max |Summary of all tests|Operation )", line):
            columns = []  # rows of the closing summary begin with the operation too
        elif columns and line.split()[:1] and line.split()[0] in OPERATIONS and records:
            cells = line.split()
            if len(cells) != len(columns):
                raise source.refuse(number, f"this result has {len(cells)} columns instead of {len(columns)}; the line was cut off")
            row = dict(zip(columns, cells, strict=True))
            bandwidth, seconds = (source.number(row[c], number, c) for c in ("bw", "total"))
            size = 1024 * source.number(row["xfer"], number, "xfer")
            iops = source.number(row["iops"], number, "iops") if row.get("iops") not in (None, "-", "NA") else None
            latency = source.number(row["latency"], number, "latency") if row.get("latency") not in (None, "-", "NA") else None
            parts = {
                k: float(row[c])
                for k, c in (("openTime", "open"), ("wrRdTime", "wr/rd"), ("closeTime", "close"))
                if re.match(r"^[\d.]+$", row.get(c, ""))
            }
            records[-1].phases.append(
                _phase(cells[0], int(source.number(row["iter"], number, "iter")) + 1, bandwidth, seconds, size, iops, latency, parts)
            )
    if not any(record.phases for record in records):
        raise source.refuse_cut("the first result of a write or read")
    if not re.search(r"^(Finished|Max Write|Max Read|Summary of all tests|Run finished)", source.text, re.MULTILINE):
        raise source.refuse_cut("the summary ('Max Write', 'Summary of all tests', 'Finished')")
    source.require_last_line()
    return [_finish(record) for record in records if record.phases]


def _tasks(options: dict[str, str]) -> int | None:
    for key in ("tasks", "clients"):
        if found := re.match(r"^(\d+)", options.get(key, "")):
            return int(found[1])
    return None


def _record(version: Any, command: Any, options: dict[str, Any], tasks: Any) -> Record:
    per_node = next(
        (
            m[1]
            for v in (options.get("clients per node"), options.get("clients"), options.get("tasksPerNode".lower()))
            if v and (m := re.search(r"(\d+)(?: per node\))?$", str(v)))
        ),
        None,
    )
    nodes = options.get("nodes")
    ranks = int(tasks) if tasks else None
    found = int(nodes) if str(nodes or "").isdigit() and int(nodes) > 0 else None
    if found is None and ranks and per_node and ranks % int(per_node) == 0:
        found = ranks // int(per_node)
    record = Record(
        name=f"n{ranks}",
        tool="IOR",
        pattern="ior",
        phases=[],
        version=version or None,
        ranks=ranks,
        nodes=found if ranks and found and ranks % found == 0 else None,
    )
    record.command = Source.words(str(command)) if command else None
    wanted = (
        "api",
        "access",
        "type",
        "segments",
        "segmentcount",
        "repetitions",
        "xfersize",
        "transfersize",
        "blocksize",
        "ordering in a file",
        "ordering inter file",
        "aggregate filesize",
        "stonewallingtime",
    )
    for key in wanted:
        if key in options:
            record.parameters[key.replace(" ", "_")] = _size(options[key])
    record.missing |= NOT_TOLD | {"environment": "IOR does not say what file system it measured."}
    return record


def _size(value: Any) -> Any:
    """ "16 MiB" as bytes; all else as it is."""
    if isinstance(value, str) and (found := re.match(r"^([\d.]+) ([A-Za-z]+)$", value)) and found[2].lower() in SIZES:
        return round(float(found[1]) * SIZES[found[2].lower()])
    return int(value) if isinstance(value, str) and value.isdigit() else value


def _phase(access: str, repeat: int, mebibytes: float, seconds: float, transfer: float, iops: Any, latency: Any, parts: dict[str, Any]) -> Phase:
    op, rate = OPERATIONS[access], None
    if transfer > 0:
        rate = mebibytes * 2**20 / transfer
    elif isinstance(iops, int | float) and iops > 0:
        rate = float(iops)
    count = round(rate * seconds) if rate else None
    phase = Phase(access, repeat, seconds=seconds, operations=count, rate=rate, counts={op: count} if count else {})
    phase.more["bytes_per_second"] = mebibytes * 2**20
    phase.more["part_seconds"] = {
        ours: parts[theirs]
        for ours, theirs in (("open", "openTime"), ("transfer", "wrRdTime"), ("close", "closeTime"))
        if isinstance(parts.get(theirs), int | float)
    }
    if isinstance(latency, int | float) and latency > 0:
        phase.latency[op] = Latency(count, {"mean": float(latency)})
    return phase


def _finish(record: Record) -> Record:
    if all(phase.repeat <= 1 for phase in record.phases):
        for phase in record.phases:
            phase.repeat = 0
    if not any(phase.latency for phase in record.phases):
        record.missing["phases[].latency.*"] = "This version of IOR prints no times of transfers."
    record.missing["phases[].start_seconds"] = "IOR prints no start of a phase; phases are placed one after the other."
    place_one_after_the_other(record.phases)
    return record


IMPORTER = Importer("ior", "JSON and text results of IOR 2, 3 and 4", "the JSON summary file, or the standard output", recognises, read)

# SPDX-License-Identifier: Apache-2.0
"""YCSB's report: its text, and the list of its JSON array exporter.

The phase is `load` or `run`. Rates and times are of the whole client; latencies are those of each kind of operation, in
microseconds (old
versions: percentiles in milliseconds). Threads of the client are ranks. A read-modify-write is one operation, and its
read and update are counted again under their own names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from iocast.importers import Importer
from iocast.importers.record import Latency, Phase, Record
from iocast.importers.source import Source
from iocast.ground.strict import is_whole

LINE = re.compile(r"^\[([A-Z][\w-]*)\], ([^,]+), ([-+\d.]+(?:[eE][-+]?\d+)?|NaN)\s*$")
OPERATIONS = {
    "READ": "read",
    "INSERT": "create",
    "UPDATE": "update",
    "DELETE": "unlink",
    "SCAN": "scan",
    "READ-MODIFY-WRITE": "read-modify-write",
}
LATENCIES = {
    "AverageLatency": "mean",
    "MinLatency": "min",
    "MaxLatency": "max",
    "50thPercentileLatency": "q50",
    "75thPercentileLatency": "q75",
    "90thPercentileLatency": "q90",
    "95thPercentileLatency": "q95",
    "99thPercentileLatency": "q99",
    "99.9PercentileLatency": "q999",
}
UNITS = {"us": 1e-6, "ms": 1e-3}


def recognises(source: Source) -> bool:
    return bool(re.search(r"^\[OVERALL\], (RunTime|Throughput)", source.head, re.MULTILINE)) or (
        source.head.lstrip().startswith("[") and '"OVERALL"' in source.head and "Throughput(ops/sec)" in source.head
    )


def read(sources: Sequence[Source]) -> list[Record]:
    return [_read_one(source) for source in sources]


def _values(source: Source) -> dict[tuple[str, str], tuple[float, int]]:
    """Values and lines by kind of operation and measurement."""
    found: dict[tuple[str, str], tuple[float, int]] = {}
    if source.head.lstrip().startswith("[") and '"OVERALL"' in source.head:
        lines = [source.line_at(m.start()) for m in re.finditer(r'"metric"\s*:', source.text)]
        for line, one in zip(lines, source.whole_json(), strict=False):
            found[str(one["metric"]), str(one["measurement"])] = float(one["value"]), line
        return found
    for number, text in source.numbered:
        if (row := LINE.match(text)) and row[3] != "NaN":
            found[row[1], row[2]] = source.number(row[3], number, row[2]), number
    return found


def _read_one(source: Source) -> Record:
    values = _values(source)
    for key in ("RunTime(ms)", "Throughput(ops/sec)"):
        if ("OVERALL", key) not in values:
            raise source.refuse_cut(f"'[OVERALL], {key}'")
    (milliseconds, timed), (rate, rated) = values["OVERALL", "RunTime(ms)"], values["OVERALL", "Throughput(ops/sec)"]
    command = next(
        ((n, line) for n, line in source.numbered if re.search(r"(Command line:|com\.yahoo\.ycsb|site\.ycsb)", line)),
        None,
    )
    loading = bool(command and re.search(r"\s-load\b", command[1]))
    phase = Phase("load" if loading else "run", seconds=milliseconds / 1000, rate=rate, errors=0)
    phase.origin = {"": source.at(timed), "rate": source.at(rated)}
    for kind, op in OPERATIONS.items():
        _add_operation(source, phase, kind, op, values)
    done = round(rate * milliseconds / 1000)
    returned = {
        kind: sum(value for (own, key), (value, _) in values.items() if own == kind and key.startswith("Return="))
        for kind in OPERATIONS
    }
    counts = {kind: values[kind, "Operations"][0] for kind in OPERATIONS if (kind, "Operations") in values}
    if sum(counts.values()) < 0.999 * done or any(
        returned[kind] < count for kind, count in counts.items() if kind != "READ-MODIFY-WRITE"
    ):
        raise source.refuse_cut("the counts and returns of all operations")
    phase.operations, phase.origin["operations"] = done or None, f"{source.at(rated)}, {source.at(timed)} (rate x time)"
    record = Record("ycsb", "YCSB", [phase], pattern="ycsb", nodes=1)
    record.origin["nodes"] = f"{source.at(1)} (YCSB is one process)"
    if command:
        record.command = Source.words(command[1].partition("Command line:")[2].strip() or command[1])
        record.origin["command"] = source.at(command[0])
        if threads := re.search(r"-threads (\d+)|-p threadcount=(\d+)", command[1]):
            record.ranks = int(threads[1] or threads[2])
        elif "Command line:" in command[1]:
            record.ranks = 1  # YCSB's default
        record.origin["ranks"] = source.at(command[0])
        for name, value in re.findall(r"-p (\w+)=(\S+)", command[1]):
            record.parameters[name] = int(value) if is_whole(value) else value
        if (target := re.search(r"-target (\d+)|-p target=(\d+)", command[1])) and int(target[1] or target[2]):
            record.limit = float(target[1] or target[2]), f"-target {target[1] or target[2]}"
        if workload := re.search(r"-P (\S+)", command[1]):
            record.parameters["workload"] = workload[1].rpartition("/")[2]
    else:
        record.missing["command"] = "The report does not name the command; YCSB prints it before."
    record.missing |= {
        "phases[].bytes": "YCSB does not count bytes.",
        "latency.hlog": "YCSB's report has mean, extremes and some percentiles.",
    }
    return record


def _add_operation(
    source: Source, phase: Phase, kind: str, op: str, values: dict[tuple[str, str], tuple[float, int]]
) -> None:
    counted = values.get((kind, "Operations"))
    if counted is None or not counted[0]:
        return
    phase.counts[op] = int(counted[0])
    phase.origin[f"latency.{op}.count"] = source.at(counted[1])
    known = {}
    for (own, measurement), (value, line) in values.items():
        if own == kind and (reported := re.fullmatch(r"(.*)\((us|ms)\)", measurement)) and reported[1] in LATENCIES:
            known[LATENCIES[reported[1]]] = value * UNITS[reported[2]]
            phase.origin[f"latency.{op}.{LATENCIES[reported[1]]}"] = source.at(line)
        elif own == kind and re.match(r"Return=(?!OK|0$)", measurement):
            phase.errors = (phase.errors or 0) + int(value)
            phase.origin["errors"] = source.at(line)
    phase.latency[op] = Latency(int(counted[0]), known)


IMPORTER = Importer(
    "ycsb",
    "text and JSON-array reports of YCSB",
    "the standard output, or the file of exportfile",
    recognises,
    read,
    begins=re.compile(r"Command line:|com\.yahoo\.ycsb|site\.ycsb|^YCSB Client|^\[OVERALL\], RunTime|^\s*\[ ?\{"),
    ends=re.compile(r"Throughput\(ops/sec\)"),
)

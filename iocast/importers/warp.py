# SPDX-License-Identifier: Apache-2.0
"""MinIO warp: the analysis that it writes as JSON (--json, also compressed as .json.zst).

Each type of operation is a phase; types of a mixed run go on at the same time. Rates, bytes and times are those of
warp's measured part, which leaves out the ramps. Concurrent operations of all clients are ranks, clients are nodes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypedDict

from iocast.importers import Importer
from iocast.importers.record import Latency, Phase, Record
from iocast.importers.source import Source

OPERATIONS = {"PUT": "create", "GET": "read", "DELETE": "unlink", "STAT": "stat", "LIST": "readdir"}


def recognises(source: Source) -> bool:
    return source.head.lstrip().startswith("{") and '"by_op_type"' in source.head and '"commandline"' in source.head


class Throughput(TypedDict, total=False):
    measure_duration_millis: float
    ops: int
    errors: int
    bytes: float


class Segment(TypedDict, total=False):
    requests: int
    dur_avg_millis: float
    fastest_millis: float
    slowest_millis: float


class Requests(TypedDict, total=False):
    single_sized_requests: Segment


class Operation(TypedDict, total=False):
    throughput: Throughput
    requests_by_client: dict[str, list[Requests]]


class Total(TypedDict, total=False):
    start_time: str
    clients: list[str]
    concurrency: int


class Analysis(TypedDict, total=False):
    total: Total
    commandline: str
    by_op_type: dict[str, Operation]


def read(sources: Sequence[Source]) -> list[Record]:
    return [_read_one(source) for source in sources]


def _read_one(source: Source) -> Record:
    document: Analysis = source.whole_json()
    total: Total = document.get("total") or {}
    record = Record("warp", "warp", [], pattern="warp", started=total.get("start_time"))
    inside = source.text.find('"by_op_type"')
    record.nodes = len(total.get("clients") or []) or None
    record.ranks = int(total["concurrency"]) * (record.nodes or 1)
    record.origin = {
        "ranks": source.at(_line(source, "concurrency", 0)),
        "nodes": source.at(_line(source, "clients", 0)),
    }
    record.command = Source.words(str(document["commandline"]))
    record.origin["command"] = record.origin["parameters"] = source.at(_line(source, "commandline", 0))
    for name, value in re.findall(
        r"--(obj\.size|duration|objects|get-distrib|put-distrib|stat-distrib|delete-distrib)=(\S+)",
        document["commandline"],
    ):
        record.parameters[name.replace(".", "_").replace("-", "_")] = value
    for name, part in (document.get("by_op_type") or {}).items():
        phase = _phase(source, name, part, source.text.find(f'"{name}"', inside))
        if phase is not None:
            record.phases.append(phase)
    if not record.phases:
        raise source.refuse(_line(source, "by_op_type", 0), "no type of operation was measured long enough for a rate")
    if len(record.phases) > 1:
        record.warnings.append("The types of operations ran at the same time; each is a phase here.")
    for phase in record.phases:
        phase.start_seconds = 0.0
    record.missing |= {
        "phases[].latency.*.quantiles": "warp's percentiles are those of segments, which can't be put together.",
        "phases[].timeline": "warp's segments have rates, no latencies of each.",
    }
    return record


def _line(source: Source, key: str, start: int) -> int:
    position = source.text.find(f'"{key}"', max(start, 0))
    return source.line_at(max(position, 0))


def _phase(source: Source, name: str, part: Operation, start: int) -> Phase | None:
    """None for operations that prepared others, of which warp measures nothing."""
    through: Throughput = part.get("throughput") or {}
    seconds, count = float(through.get("measure_duration_millis") or 0) / 1000, int(through.get("ops") or 0)
    if not seconds or not count:
        return None
    op = OPERATIONS.get(name, name.lower())
    inside = source.text.find('"throughput"', start)
    at = {key: source.at(_line(source, key, inside)) for key in ("measure_duration_millis", "ops", "errors")}
    phase = Phase(
        name.lower(),
        seconds=seconds,
        operations=count,
        rate=count / seconds,
        errors=int(through.get("errors") or 0),
        counts={op: count},
    )
    phase.bytes = round(float(through.get("bytes") or 0)) or None
    phase.bytes_per_second = float(through.get("bytes") or 0) / seconds or None
    phase.origin = {"": at["ops"], "seconds": at["measure_duration_millis"], "errors": at["errors"]}
    phase.origin["bytes"] = source.at(_line(source, "bytes", source.text.find('"measure_duration_millis"', inside)))
    phase.origin["rate"] = f"{at['ops']} / {at['measure_duration_millis']} (operations / time)"
    phase.origin["bytes_per_second"] = f"{phase.origin['bytes']} / {at['measure_duration_millis']} (bytes / time)"
    segments = [
        s
        for own in (part.get("requests_by_client") or {}).values()
        for one in own or []
        if (s := one.get("single_sized_requests"))
    ]
    segments = [s for s in segments if s.get("requests") and "dur_avg_millis" in s]
    if segments:
        number = sum(int(s["requests"]) for s in segments)
        known = {"mean": sum(s["requests"] * s["dur_avg_millis"] for s in segments) / number * 1e-3}
        known |= {
            "min": min(s["fastest_millis"] for s in segments) * 1e-3,
            "max": max(s["slowest_millis"] for s in segments) * 1e-3,
        }
        phase.latency[op] = Latency(count, known)
        where = source.at(_line(source, "requests_by_client", start))
        phase.origin |= {f"latency.{op}.{key}": f"{where} (all segments together)" for key in known}
    return phase


IMPORTER = Importer("warp", "JSON analysis of MinIO warp", "the file *.json or *.json.zst", recognises, read)

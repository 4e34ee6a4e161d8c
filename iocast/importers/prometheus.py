# SPDX-License-Identifier: Apache-2.0
"""Metrics of S3 gateways in Prometheus's text format: the load of each gateway.

Format: Prometheus's documentation, "Exposition formats". Names: MinIO's "Metrics and alerts" (minio_s3_requests_total
of version 2, minio_api_requests_total of version 3), Ceph's "Monitoring" (ceph_rgw_get_initial_lat), Garage's
"Monitoring" (api_s3_request_duration), SeaweedFS's (SeaweedFS_s3_request_seconds). Of any other program all
histograms and summaries of times are read, NAME_seconds_sum with NAME_seconds_count, one run for each NAME. MinIO
counts requests and tells no sum of their times.

The time of a snapshot is a line `# snapshot_time: SECONDS` above it, or the time stamp of its samples. With
process_start_time_seconds one snapshot is enough. A sample that comes a second time begins another snapshot."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import partial

from iocast.ground.names import as_file_name
from iocast.importers import Importer
from iocast.importers.source import Source
from iocast.importers.statistics import Counted, Server, Snapshot, grouped, read, time_above

SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})?[ \t]+(\S+)(?:[ \t]+(-?\d+))?[ \t]*$")
LABEL = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')
KIND = re.compile(r"^# TYPE ([A-Za-z_:][\w:]*) (\w+)$", re.MULTILINE)
PART = re.compile(r"(\w+)_(sum|count|bucket)")
TIMES = re.compile(r"(?:.*_)?(?:seconds|(?:api_s3|api)_request_duration)")
NOT_REQUESTS = (
    "iocast_",
    "go_",
    "process_",
    "promhttp_",
    "prometheus_",
    "scrape_",
    "ceph_",
    "python_",
    "jvm_",
    "minio_",
)
"""What a program's own runtime counts, Ceph's other daemons, and MinIO, which is read by name."""
OPERATION = ("api_endpoint", "api", "operation", "op", "action", "name", "type", "method", "verb", "handler", "path")
"""Labels that tell the kind of request, the first that a sample has."""
INITIAL = {"ceph_rgw_get_initial_lat": "get", "ceph_rgw_put_initial_lat": "put"}
BY_KIND = re.compile(r"ceph_rgw_op_(?!per_)(\w+)_lat")
"""Since release 19 Ceph's gateways count each kind of request, beside GET and PUT until their first byte."""
COUNTED = ("minio_s3_requests_total", "minio_api_requests_total")
MOVED = (
    "minio_s3_traffic_received_bytes", "minio_s3_traffic_sent_bytes", "minio_api_requests_traffic_received_bytes",
    "minio_api_requests_traffic_sent_bytes", "ceph_rgw_get_b", "ceph_rgw_put_b", "ceph_rgw_op_get_obj_bytes",
    "ceph_rgw_op_put_obj_bytes",
)  # fmt: skip
START = "process_start_time_seconds"
SERVER = Server(
    "prometheus",
    "S3 gateway",
    "A time is that within the gateway, with what it waits for the store behind it, and no network; of ceph_rgw's "
    "initial latencies it ends at the first byte.",
)
NO_TIMES = "MinIO counts requests, and tells no sum of their times: how busy it was does not follow."


@dataclass(frozen=True)
class _Sample:
    name: str
    labels: dict[str, str]
    text: str
    line: int


def recognises(source: Source) -> bool:
    kinds = dict(KIND.findall(source.head))
    return any(name in COUNTED or _is_family(PART.sub(r"\1", name)) for name in kinds)


def _is_family(name: str) -> bool:
    """Whether requests' times are counted under this name."""
    if name in INITIAL or BY_KIND.fullmatch(name):
        return True
    return bool(TIMES.fullmatch(name)) and not name.startswith(NOT_REQUESTS) and not name.endswith("_total")


def snapshots(source: Source) -> list[Snapshot]:
    """@raises InputError with the line of a sample that is none"""
    found: list[Snapshot] = []
    here: dict[tuple[str, str], _Sample] = {}
    stated: float | None = None
    stamp: float | None = None
    begin = source.first

    for number, line in source.numbered:
        if (taken := time_above(source, number, line)) is not None:
            found += _snapshots_of(source, begin, here, stated if stated is not None else stamp)
            here, stated, stamp, begin = {}, taken, None, number
            continue
        if not line.strip() or line.startswith("#"):
            continue
        sample = SAMPLE.match(line)
        if sample is None:
            if not here and not found:
                continue  # noise before the first one, as headers of HTTP
            raise source.refuse(number, "this line has no name, labels and number of a metric")
        key = sample[1], sample[2] or ""
        if key in here:
            found += _snapshots_of(source, begin, here, stated if stated is not None else stamp)
            here, stated, stamp, begin = {}, None, None, number
        if sample[4]:
            stamp = int(sample[4]) * 1e-3
        labels = {name: value for name, value in LABEL.findall(sample[2] or "")}
        here[key] = _Sample(sample[1], labels, sample[3], number)
    return found + _snapshots_of(source, begin, here, stated if stated is not None else stamp)


def _snapshots_of(
    source: Source, begin: int, samples: dict[tuple[str, str], _Sample], time: float | None
) -> list[Snapshot]:
    """One for each family of requests."""
    sums: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    lines: dict[tuple[str, str], int] = {}
    began: float | None = None
    moved, moved_line = 0.0, 0
    found: dict[str, Snapshot] = {}

    def of(family: str) -> Snapshot:
        return found.setdefault(family, Snapshot(source, family, begin, time))

    by_kind = any(BY_KIND.match(one.name) for one in samples.values())
    for one in samples.values():
        if by_kind and one.name.startswith(("ceph_rgw_get_", "ceph_rgw_put_")):
            continue  # the others tell more
        part = PART.fullmatch(one.name)
        family = part[1] if part else ""
        if one.name == START:
            began = source.number(one.text, one.line, START)
        elif one.name in MOVED:
            moved, moved_line = moved + source.number(one.text, one.line, one.name), one.line
        elif one.name in COUNTED:
            snapshot = of(one.name.removesuffix("_total"))
            snapshot.add(_operation(one.labels), Counted(round(_value(source, one)), None, one.line))
            snapshot.note, snapshot.line = NO_TIMES, one.line
        elif part and part[2] != "bucket" and _is_family(family):
            if family in INITIAL:
                key = "ceph_rgw", INITIAL[family]
            elif kind := BY_KIND.fullmatch(family):
                key = "ceph_rgw", kind[1]
            else:
                key = family, _operation(one.labels)
            sums[key][part[2]] += _value(source, one)
            lines[key] = max(one.line, lines.get(key, 0))
    for (family, op), known in sums.items():
        line = lines[family, op]
        if "sum" not in known or "count" not in known:
            lacking = "count" if "sum" in known else "sum"
            raise source.refuse(line, f"{family}_{lacking} of {op} is missing; the file was cut off")
        of(family).add(op, Counted(round(known["count"]), known["sum"], line))
        of(family).line = line
    for snapshot in found.values():
        if began is not None and time is not None and time > began:
            snapshot.elapsed, snapshot.one_clock = time - began, True  # their difference is when it began
        if moved_line and snapshot.name.startswith(("minio_", "ceph_rgw")):
            snapshot.moved = round(moved), moved_line
    return list(found.values())


def _operation(labels: dict[str, str]) -> str:
    """The kind of request, as a name that a file may have."""
    text = next((labels[key] for key in OPERATION if labels.get(key)), "request")
    return as_file_name(text.lower().replace(".", "_"))


def _value(source: Source, one: _Sample) -> float:
    return source.number(one.text, one.line, one.name)


IMPORTER = Importer(
    "prometheus",
    "metrics of S3 gateways in Prometheus's text format, as observed load",
    "what curl wrote of the gateway's /metrics, two snapshots at least, in one file or in a file each",
    recognises,
    partial(read, snapshots=snapshots, server=SERVER),
    partial(grouped, snapshots=snapshots, server=SERVER),
    snapshots=snapshots,
    server=SERVER,
)

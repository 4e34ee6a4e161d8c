# SPDX-License-Identifier: Apache-2.0
"""Statistics that servers keep: GlusterFS's profile, Ceph's perf dump, PostgreSQL's and PgBouncer's tables, metrics of
S3 gateways, requests of NFS servers. Each is the last snapshot less the first."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree

from . import Printed, Quantity, Reading

Counts = dict[str, tuple[float, float]]
"""By operation how many, and the seconds of all together; nan where these aren't known."""
NAN = float("nan")


def read(path: Path, text: str) -> Reading | None:
    for reader in (_gluster, _gluster_xml, _postgresql, _ceph, _metrics, _nfsd):
        if (reading := reader(path, text)) is not None:
            return reading
    return None


def _put(seconds: float, last: Counts, first: Mapping[str, tuple[float, float]], moved: float = 0.0) -> Printed:
    run, total = Printed(), 0.0
    for op, (count, sums) in last.items():
        before = first.get(op, (0.0, 0.0))
        number = count - before[0]
        if number <= 0:
            continue
        total += number * ("." not in op)
        if "." not in op:
            run.put("observed", 0, **{f"latency__{op}__count": number})
        if (mean := (sums - before[1]) / number) > 0:
            run.put("observed", 0, **{f"latency__{op}__mean": Quantity(mean, 1e-6)})
    run.put("observed", 0, operations=total, seconds=Quantity(seconds, 1e-9), rate=Quantity(total / seconds, 1e-9))
    if moved:
        run.put("observed", 0, bytes=moved, bytes_per_second=Quantity(moved / seconds, 1e-9))
    return run


GLUSTER = {"read": "pread", "write": "pwrite", "readdirp": "readdir"}


def _gluster(path: Path, text: str) -> Reading | None:
    del path
    if "Cumulative Stats:" not in text:
        return None
    shots: dict[str, list[tuple[float, float, Counts]]] = {}
    for brick in re.split(r"^Brick: ", text, flags=re.M)[1:]:
        whole = brick.partition("Cumulative Stats:")[2].partition("Interval")[0]
        rows = re.findall(r"([\d.]+) ([nu])s\s+[\d.]+ [nu]s\s+[\d.]+ [nu]s\s+(\d+)\s+([A-Z]+)", whole)
        counts = {
            GLUSTER.get(op.lower(), op.lower()): (float(n), float(n) * float(mean) * {"n": 1e-9, "u": 1e-6}[unit])
            for mean, unit, n, op in rows
            if op not in ("RELEASE", "RELEASEDIR", "FORGET")
        }
        ends = {
            name: float(re.search(rf"{name}: (\d+)", whole)[1]) for name in ("Duration", "Data Read", "Data Written")
        }
        moved = ends["Data Read"] + ends["Data Written"]
        shots.setdefault(brick.split()[0], []).append((ends["Duration"], moved, counts))
    return Reading("gluster", "text", [_between(own) for own in shots.values()])


def _between(own: list[tuple[float, float, Counts]]) -> Printed:
    first = own[0] if len(own) > 1 else (0.0, 0.0, {})
    return _put(own[-1][0] - first[0], own[-1][2], first[2], own[-1][1] - first[1])


def _gluster_xml(path: Path, text: str) -> Reading | None:
    del path
    if "<volProfile>" not in text:
        return None
    runs = []
    for brick in ElementTree.fromstring(text).iter("brick"):
        stats = brick.find("cumulativeStats")
        counts = {}
        for fop in stats.iter("fop"):
            name, n = fop.findtext("name").lower(), float(fop.findtext("hits"))
            if name not in ("release", "releasedir", "forget"):
                counts[GLUSTER.get(name, name)] = n, n * float(fop.findtext("avgLatency")) * 1e-9
        moved = float(stats.findtext("totalRead")) + float(stats.findtext("totalWrite"))
        runs.append(_put(float(stats.findtext("duration")), counts, {}, moved))
    return Reading("gluster", "XML", runs)


def _postgresql(path: Path, text: str) -> Reading | None:
    del path
    tables = re.split(r"^(?=(?:now,|database,|snapshot_time))", text, flags=re.M)
    shots: dict[str, list[tuple[float, float, Counts]]] = {}
    clock = 0.0
    for table in tables:
        if table.startswith("snapshot_time"):
            clock = float(table.split()[1])
            continue
        for row in csv.DictReader(table.splitlines()):
            when = clock
            if "now" in row:
                when = datetime.fromisoformat(row["now"]).timestamp()
            if "calls" in row and "pg_stat_" not in row["query"]:
                new = not shots.get("s") or shots["s"][-1][0] != when
                if new:
                    shots.setdefault("s", []).append((when, 0.0, {}))
                counts, op = shots["s"][-1][2], row["query"].split()[0].lower()
                before = counts.get(op, (0.0, 0.0))
                counts[op] = before[0] + float(row["calls"]), before[1] + 1e-3 * float(row["total_exec_time"])
            elif "xact_commit" in row:
                n = float(row["xact_commit"]) + float(row["xact_rollback"])
                shots.setdefault(row["datname"], []).append(
                    (when, 0.0, {"transaction": (n, 1e-3 * float(row["active_time"]))})
                )
            elif "total_query_time" in row and row["database"] != "pgbouncer":
                n, busy, wait = (float(row[f"total_{key}"]) for key in ("query_count", "query_time", "wait_time"))
                counts = {"query": (n, 1e-6 * busy), "query.wait": (n, 1e-6 * wait)}
                shots.setdefault(row["database"], []).append((when, 0.0, counts))
    return Reading("postgresql", "CSV", [_between(own) for own in shots.values()]) if shots else None


def _ceph(path: Path, text: str) -> Reading | None:
    del path
    if '"avgcount"' not in text:
        return None
    shots = []
    for part in re.split(r"^snapshot_time: ", text, flags=re.M)[1:]:
        time, _, body = part.partition("\n")
        dump = json.loads(body)
        counts: Counts = {}
        for key, value in dump.get("mds_server", {}).items():
            if isinstance(value, dict) and value["avgcount"]:
                op = key.removeprefix("req_").removesuffix("_latency")
                counts["stat" if op == "getattr" else op] = value["avgcount"], value["sum"]
        osd, moved = dump.get("osd", {}), 0.0
        for key, op in (("op_r", "pread"), ("op_w", "pwrite"), ("op_rw", "read_and_write")):
            for more, end in (("_latency", ""), ("_process_latency", ".process")):
                if osd and osd[key + more]["avgcount"]:
                    counts[op + end] = osd[key + more]["avgcount"], osd[key + more]["sum"]
        if osd:
            moved = osd["op_in_bytes"] + osd["op_out_bytes"]
        shots.append((float(time), moved, counts))
    return Reading("ceph", "perf dump", [_between(shots)])


def _metrics(path: Path, text: str) -> Reading | None:
    del path
    if "# TYPE " not in text or "snapshot_time" not in text:
        return None
    shots = []
    for part in re.split(r"^# snapshot_time: ", text, flags=re.M)[1:]:
        found: dict[str, dict[str, float]] = {}
        moved = 0.0
        for name, label, value in re.findall(r'^([a-z]\w*)\{\w+="([^"]*)"[^}]*\} (\S+)$', part, re.M):
            if name in ("api_s3_request_duration_sum", "api_s3_request_duration_count"):
                found.setdefault(label.lower(), {})[name.rpartition("_")[2]] = float(value)
            elif rgw := re.fullmatch(r"ceph_rgw_(get|put)_initial_lat_(sum|count)", name):
                found.setdefault(rgw[1], {})[rgw[2]] = float(value)
            elif name == "minio_s3_requests_total":
                found.setdefault(label, {}).update(count=float(value), sum=NAN)
            elif name.startswith("minio_s3_traffic_"):
                moved += float(value)
        shots.append((float(part.split()[0]), moved, {op: (one["count"], one["sum"]) for op, one in found.items()}))
    return Reading("prometheus", "text", [_between(shots)])


FOURTH = {3: "access", 4: "close", 9: "stat", 10: "getfh", 15: "lookup", 18: "open", 22: "putfh", 25: "pread",
          28: "unlink", 38: "pwrite", 53: "sequence"}  # fmt: skip
"""Numbers of operations of version 4, as its RFCs list them."""
THIRD = {1: "stat", 3: "lookup", 6: "pread", 7: "pwrite", 12: "unlink"}


def _nfsd(path: Path, text: str) -> Reading | None:
    del path
    if not re.search(r"^th \d+ ", text, re.M) or "proc4ops" not in text:
        return None
    shots: list[tuple[float, Counts]] = []
    for shot in text.split("snapshot_time: ")[1:]:
        rows = {line.split()[0]: line.split()[2:] for line in shot.splitlines()[1:]}
        counts: Counts = {"compound": (float(rows["proc4"][1]), NAN)}
        counts |= {op: (float(rows["proc3"][n]), NAN) for n, op in THIRD.items()}
        counts |= {f"compound.{op}": (float(rows["proc4ops"][n]), NAN) for n, op in FOURTH.items()}
        shots.append((float(shot.split()[0]), counts))
    return Reading("nfsd", "", [_put(shots[-1][0] - shots[0][0], shots[-1][1], shots[0][1])])

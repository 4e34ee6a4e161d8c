# SPDX-License-Identifier: Apache-2.0
"""`ceph tell mds.* perf dump`, `ceph daemon osd.0 perf dump` and those of RADOS gateways: the load of each daemon.

Sections and counters: Ceph's documentation, "Perf counters", and the descriptions of `perf schema`. Of a metadata
server each kind of request is counted with its time from its arrival to its answer (`mds_server`, `req_*_latency`); of
an OSD reads, writes and both at once (`osd`), with the part of it in which it was worked on (`process`); of a gateway
its GET and PUT until their first byte (`rgw`), or since release 19 each kind of request (`rgw_op`)."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

from iocast.importers import Importer
from iocast.importers.source import Source
from iocast.importers.statistics import TAKEN, Counted, Server, Snapshot, grouped, read, time_above

BEGIN = re.compile(r"^(?:([A-Za-z][\w.@-]{0,200}): {0,4})?\{", re.MULTILINE)
SECTIONS = ("mds_server", "osd", "rgw", "rgw_op")
REQUEST = re.compile(r"req_(\w+)_latency")
GATEWAY = re.compile(r"(\w+)_lat")
OPERATIONS = {"getattr": "stat", "put_obj": "create", "get_obj": "read", "del_obj": "unlink"}
OSD = {"op_r": "pread", "op_w": "pwrite", "op_rw": "read_and_write"}
GET_AND_PUT = {"get_initial_lat": "get", "put_initial_lat": "put"}
MOVED = {
    "osd": ("op_in_bytes", "op_out_bytes"),
    "rgw": ("get_b", "put_b"),
    "rgw_op": ("get_obj_bytes", "put_obj_bytes"),
}
SERVER = Server(
    "ceph",
    "Ceph",
    "A time is that within the daemon, from a request's arrival to its answer: it holds waits for others, and no "
    "network.",
    waits_for="its turn in the daemon",
    relief="fewer requests at once, or more daemons",
)


def recognises(source: Source) -> bool:
    head = source.head
    return '"avgcount"' in head and any(f'"{section}"' in head for section in SECTIONS)


def snapshots(source: Source) -> list[Snapshot]:
    """@raises InputError with the line for what is cut off, is no JSON, or has no number where one belongs"""
    found: list[Snapshot] = []
    text, at = source.text, 0
    times = [(n, t) for n, line in source.numbered if TAKEN.match(line) and (t := time_above(source, n, line))]
    decoder = json.JSONDecoder()
    while (begin := BEGIN.search(text, at)) is not None:
        start = begin.end() - 1
        line = source.line_at(start)
        try:
            value, at = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            raise source.refuse_json(error) from None
        except RecursionError as error:
            raise source.refuse(line, "its JSON is nested more deeply than any tool writes") from error
        time = max(((n, t) for n, t in times if n < line), default=(0, None))[1]
        daemons = {begin[1] or "": value}
        if not begin[1] and not set(value) & set(SECTIONS):  # as tell of several daemons prints with --format json
            daemons = value
        for name, dump in daemons.items():
            if isinstance(dump, dict):
                found += _daemon(source, name, dump, (start, at), line, time)
    return found


def _daemon(
    source: Source, name: str, dump: dict[str, Any], span: tuple[int, int], line: int, time: float | None
) -> list[Snapshot]:
    result = []
    for section in SECTIONS:
        counters = dump.get(section)
        if not isinstance(counters, dict):
            continue
        if section == "rgw" and isinstance(dump.get("rgw_op"), dict):
            continue  # which tells more
        kind = section.partition("_")[0]
        one = Snapshot(source, name or kind, line, time)
        begin = source.text.find(f'"{section}"', *span)
        for key, value in counters.items():
            if (op := _operation(section, key)) is None or not isinstance(value, dict):
                continue
            where = source.line_at(max(begin, source.text.find(f'"{key}"', begin, span[1])))
            count, seconds = (_number(source, value.get(part), where, f"{key}.{part}") for part in ("avgcount", "sum"))
            one.add(op, Counted(round(count), seconds, where))
        bytes_ = [key for key in MOVED.get(section, ()) if key in counters]
        if bytes_:
            where = source.line_at(max(begin, source.text.find(f'"{bytes_[0]}"', begin, span[1])))
            one.moved = round(sum(_number(source, counters[key], where, key) for key in bytes_)), where
        # What never happened is no kind of request of this daemon, and most kinds never do.
        one.counts = {op: counted for op, counted in one.counts.items() if counted.count}
        result.append(one)
    return result


def _operation(section: str, key: str) -> str | None:
    if section == "mds_server":
        found = REQUEST.fullmatch(key)
    elif section == "rgw_op":
        found = GATEWAY.fullmatch(key)
    elif section == "rgw":
        return GET_AND_PUT.get(key)
    else:
        for begin, op in OSD.items():
            if key in (f"{begin}_latency", f"{begin}_process_latency"):
                return op + ".process" * ("process" in key)
        return None
    return OPERATIONS.get(found[1], found[1]) if found else None


def _number(source: Source, value: Any, line: int, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise source.refuse(line, f"{what} is {json.dumps(value)[:40]}, which is no number")
    return source.number(repr(value), line, what)


IMPORTER = Importer(
    "ceph",
    "perf dump of Ceph's metadata servers, OSDs and gateways, as observed load",
    "two outputs of ceph tell mds.* perf dump or ceph daemon NAME perf dump, in one file or in a file each",
    recognises,
    partial(read, snapshots=snapshots, server=SERVER),
    partial(grouped, snapshots=snapshots, server=SERVER),
    snapshots=snapshots,
    server=SERVER,
)

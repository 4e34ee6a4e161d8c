# SPDX-License-Identifier: Apache-2.0
"""`gluster volume profile VOLUME info` of GlusterFS, as text or with --xml: the load of each brick.

Columns and names: GlusterFS's administrator guide, "Monitoring your GlusterFS Volume", and what release 10.3 prints.
Counts are since profiling was started, `Duration` seconds ago; those of the interval are used where a file has no
others (`info incremental`). Releases and forgets of a client are no requests that anybody waits for: they are left
out."""

from __future__ import annotations

import re
from functools import partial

from iocast.importers import Importer
from iocast.importers.source import Source
from iocast.importers.statistics import Counted, Server, Snapshot, grouped, read, time_above

BRICK = re.compile(r"^Brick: (\S+)\s*$")
PART = re.compile(r"^(Cumulative|Interval (\d+)) Stats:\s*$")
ROW = re.compile(r"^\s*([\d.]+)\s+([\d.]+) (ns|us)\s+([\d.]+) (?:ns|us)\s+([\d.]+) (?:ns|us)\s+(\d+)\s+([A-Z_]+)\s*$")
ENDS = re.compile(r"^\s*(Duration|Data Read|Data Written): (\d+) (?:seconds|bytes)\s*$")
TABLE = re.compile(r"^\s*-{5,}(?:\s+-{3,}){5}\s*$")
SCALES = {"ns": 1e-9, "us": 1e-6}
TAG = re.compile(r"<(/?)([A-Za-z]\w*)(/?)>([^<]*)")
UNCOUNTED = ("RELEASE", "RELEASEDIR", "FORGET")
OPERATIONS = {"READ": "pread", "WRITE": "pwrite", "READDIRP": "readdir"}
XML_UNIT = 1e-9
XML_NOTE = (
    "The XML has no unit of times: they are read as nanoseconds, as release 10 writes them. Where 'info' as text has "
    "us, import that."
)
SERVER = Server(
    "gluster",
    "GlusterFS",
    "A time is that within the brick: the wait for one of its threads, the file system below it, and no network.",
)


def recognises(source: Source) -> bool:
    if "<volProfile>" in source.head:
        return True
    return bool(re.search(r"^Brick: \S", source.head, re.MULTILINE)) and " Stats:" in source.head


def snapshots(source: Source) -> list[Snapshot]:
    """Of each brick, with what counts since the start of profiling where there is such.

    @raises InputError with the line for what is cut off or no row of the table"""
    found = _of_xml(source) if "<volProfile>" in source.text else _of_text(source)
    whole = {one.name for one, interval in found if not interval}
    result = []
    for one, interval in found:
        if interval and one.name in whole:
            continue
        if interval:
            one.name, one.by_itself = f"{one.name} interval {interval}", True
        result.append(one)
    return result


def _operation(name: str) -> str:
    return OPERATIONS.get(name, name.lower())


def _of_text(source: Source) -> list[tuple[Snapshot, str]]:
    """With the number of the interval that each counts, "" of those since the start."""
    found: list[tuple[Snapshot, str]] = []
    brick, time, inside = "", None, False
    ended = {"Data Written"}
    for number, line in source.numbered:
        if (taken := time_above(source, number, line)) is not None:
            time = taken
        elif named := BRICK.match(line):
            _require_ended(source, number, ended)
            brick, inside = named[1], False
        elif part := PART.match(line):
            _require_ended(source, number, ended)
            if not brick:
                raise source.refuse(number, "there is no 'Brick:' above these statistics; their beginning is missing")
            found.append((Snapshot(source, brick, number, time), part[2] or ""))
            ended, inside = set(), False
        elif not found:
            continue
        elif end := ENDS.match(line):
            one, inside = found[-1][0], False
            ended.add(end[1])
            if end[1] == "Duration":
                one.elapsed, one.line = float(end[2]), number
            else:
                one.moved = ((one.moved[0] if one.moved else 0) + int(end[2]), number)
        elif TABLE.match(line):
            inside = True
        elif inside and not line.strip():
            inside = False
        elif inside:
            row = ROW.match(line)
            if row is None:
                raise source.refuse(
                    number, "this line of the table has no share, three times, number of calls and name of a request"
                )
            if row[7] in UNCOUNTED:
                continue
            scale, count = SCALES[row[3]], int(row[6])
            mean, least, most = (source.number(row[i], number, row[7]) * scale for i in (2, 4, 5))
            found[-1][0].add(_operation(row[7]), Counted(count, mean * count, number, least, most))
    _require_ended(source, source.last, ended)
    return found


def _require_ended(source: Source, number: int, ended: set[str]) -> None:
    if "Data Written" not in ended:
        raise source.refuse(number, "the statistics above end before 'Data Written'; the file was cut off")


def _of_xml(source: Source) -> list[tuple[Snapshot, str]]:
    """@raises InputError with the line where the document is cut off or a number is none"""
    found: list[tuple[Snapshot, str]] = []
    brick, interval, open_ = "", "", 0
    time: float | None = None
    fop: dict[str, tuple[str, int]] = {}
    times = iter(
        [(n, t) for n, line in source.numbered if (t := time_above(source, n, line)) is not None] + [(1 << 60, None)]
    )
    next_time = next(times)

    def number_of(key: str) -> float:
        if key not in fop:
            raise source.refuse(here, f"a request in fopStats has no {key}; the file was changed or cut off")
        return source.number(fop[key][0], fop[key][1], key)

    for tag in TAG.finditer(source.text):
        here, name, text = source.line_at(tag.start()), tag[2], tag[4].strip()
        while next_time[0] < here:
            time, next_time = next_time[1], next(times)
        if name == "volProfile":
            open_ += -1 if tag[1] else 1
        if tag[1]:
            if name == "fop" and found:
                if fop.get("name", ("", 0))[0] not in UNCOUNTED:
                    count = int(number_of("hits"))
                    mean, least, most = (XML_UNIT * number_of(f"{k}Latency") for k in ("avg", "min", "max"))
                    one = Counted(count, mean * count, fop["hits"][1], least, most)
                    found[-1][0].add(_operation(fop.get("name", ("unnamed", 0))[0]), one)
                fop = {}
        elif name == "brickName":
            brick = text
        elif name in ("cumulativeStats", "intervalStats"):
            interval = "0" if name == "intervalStats" else ""
            found.append((Snapshot(source, brick, here, time, note=XML_NOTE), interval))
        elif found and name in ("name", "hits", "avgLatency", "minLatency", "maxLatency"):
            fop[name] = text, here
        elif found and name == "duration":
            found[-1][0].elapsed, found[-1][0].line = source.number(text, here, name), here
        elif found and name in ("totalRead", "totalWrite"):
            before = found[-1][0].moved
            found[-1][0].moved = (before[0] if before else 0) + int(source.number(text, here, name)), here
    if open_ or not found:
        raise source.refuse_cut("</volProfile>")
    return found


IMPORTER = Importer(
    "gluster",
    "gluster volume profile VOLUME info of GlusterFS, as observed load",
    "its output as text or with --xml, as it is or with several snapshots, in one file or a file each",
    recognises,
    partial(read, snapshots=snapshots, server=SERVER),
    partial(grouped, snapshots=snapshots, server=SERVER),
    snapshots=snapshots,
    server=SERVER,
)

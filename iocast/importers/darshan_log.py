# SPDX-License-Identifier: Apache-2.0
"""Darshan logs as traces (ops.h5) for the pattern replay, and the text that darshan-parser prints of them.

A log with DXT holds every read and write with its time; one without holds counters, from which the accesses are made
up. Either way the trace is made whole, so that it can be replayed anywhere: what the application found there is created
first, and all is removed at the end.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from iocast.errors import InputError
from iocast.ground.files import sha256
from functools import partial

TEXT = b"# darshan log version:"
"""First words of darshan-parser's output."""
KINDS = (
    "phase",
    "mkdir",
    "create",
    "stat",
    "read",
    "unlink",
    "rmdir",
    "append",
    "readdir",
    "open",
    "pwrite",
    "pread",
    "fsync",
    "close",
    "think",
)
"""The codes of the trace's column `kind`."""
COLUMNS: tuple[tuple[str, Any], ...] = (
    ("rank", "<u4"),
    ("kind", "u1"),
    ("flags", "u1"),
    ("count", "<u4"),
    ("dataset", "<u8"),
    ("object", "<u8"),
    ("size", "<u8"),
    ("offset", "<u8"),
    ("stride", "<u8"),
    ("start_ns", "<i8"),
    ("duration_ns", "<i8"),
    ("error", "<i4"),
)
CHUNK = 16384
FOR_WRITING, MAKE_IT = 1, 2
PHASES = ("setup", "precreate", "benchmark", "cleanup", "teardown")
MAX_OPEN = 60  # of one rank at a time; the executors allow 64
ELSEWHERE = ("/dev/", "/proc/", "/sys/")
"""Files there are on no storage."""


def recognises(path: Path) -> bool:
    """By content: the version and the number that Darshan puts at the beginning of a log, or the first words of
    darshan-parser."""
    with path.open("rb") as file:
        head = file.read(16)
    return (
        _is_text(path)
        or len(head) == 16
        and head[:2] in (b"2.", b"3.")
        and 6567223 in (int.from_bytes(head[8:16], "little"), int.from_bytes(head[8:16], "big"))
    )


@dataclass
class Access:
    rank: int
    file: int
    start: float  # seconds since the start of the job
    end: float
    kind: str  # pread, pwrite, stat or fsync
    offset: int = 0
    size: int = 0


@dataclass
class Log:
    ranks: int
    nodes: int
    seconds: float
    version: str
    files: dict[int, str]  # by Darshan's record id
    accesses: list[Access]
    notes: list[str] = field(default_factory=list)


def no_result(log: object) -> str:
    """What to do with a log where results of a benchmark are needed."""
    return (
        "A Darshan log lists a program's accesses, and has no rates. It becomes a trace for the pattern replay: "
        f"iocast import darshan {log} --out ops.h5"
    )


def import_log(path: Path, out: Path) -> dict[str, Any]:
    """Writes the trace of one log.

    @return {operations, ranks, notes}
    @raises InputError for what is no log, or holds no accesses"""
    if out.exists():
        raise InputError(f"The output '{out}' exists already; name a new one, nothing is overwritten.")
    if not path.is_file():
        raise InputError(f"There is no file '{path}'.")
    if not recognises(path):
        raise InputError(f"'{path}' is no Darshan log, or its beginning is missing.")
    try:
        import h5py
    except ImportError as error:
        raise InputError(
            "Importing Darshan logs needs the packages darshan and h5py; install them with: "
            f"{shlex.quote(sys.executable)} -m pip install darshan h5py."
        ) from error
    log = _read(path)
    if not log.accesses:
        raise InputError(
            f"The log '{path}' has no reads, writes or stats of the module POSIX; there is nothing to replay."
        )
    rows, first_row = _rows(log)
    about = {
        "source": "imported",
        "tool": {"name": "darshan", "version": log.version},
        "file": path.name,
        "sha256": sha256(path),
        "placement": {"ranks": log.ranks, "ranks_per_node": max(1, -(-log.ranks // log.nodes))},
        "phases": [{"name": name, "repeat": 0} for name in PHASES],
        "approximate": log.notes,
    }
    fresh = out.with_name(out.name + ".new")
    with h5py.File(fresh, "w") as file:
        file.attrs["schema_version"] = np.int32(1)
        file.attrs["about"] = json.dumps(about)
        file.create_dataset("first_row", data=np.asarray(first_row, "<u8"))
        file.create_dataset("group", data=np.zeros(log.ranks, "<u4"))
        for name, kind in COLUMNS:
            stored = (
                h5py.enum_dtype({k: i for i, k in enumerate(KINDS)}, basetype="u1")
                if name == "kind"
                else np.dtype(kind)
            )
            file.create_dataset(
                name,
                data=rows[name],
                dtype=stored,
                maxshape=(None,),
                chunks=(CHUNK,),
                compression="gzip",
                compression_opts=4,
                shuffle=True,
            )
    os.replace(fresh, out)
    return {"operations": int(np.count_nonzero(rows["kind"])), "ranks": log.ranks, "notes": log.notes}


# ---- reading
# ---------------------------------------------------------------------------------------------------------------------


class Segment(TypedDict):
    """An access of DXT; times in seconds since the job began."""

    offset: int
    length: int
    start_time: float
    end_time: float


class LogRecord(TypedDict, total=False):
    """Of a file and rank (-1: all ranks): accesses of DXT, or counters of POSIX."""

    id: int
    rank: int
    hostname: str
    read_segments: list[Segment]
    write_segments: list[Segment]
    counters: dict[str, int]
    fcounters: dict[str, float]


def _records(backend: Any, log: Any, module: str) -> Iterator[LogRecord]:
    while (record := backend.log_get_record(log, module, dtype="dict")) is not None:
        yield record


def _is_text(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(TEXT)) == TEXT


def _read_text(path: Path) -> Log:
    """The counters that darshan-parser prints: a line each with module, rank, record, counter, value, file, mount
    point, file system."""
    about: dict[str, str] = {}
    found: dict[tuple[int, int], LogRecord] = {}
    names: dict[int, str] = {}
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
        if header := re.match(r"^# ([a-z][\w ]*?): (.*)$", line):
            about.setdefault(header[1], header[2])
        elif line.startswith("POSIX\t"):
            cells = line.split("\t")
            try:
                rank, record, value = int(cells[1]), int(cells[2]), float(cells[4])
                names[record] = cells[5]
            except (IndexError, ValueError):
                raise InputError(
                    f"{path}:{number}: this is no counter of darshan-parser; the line may have been cut off."
                ) from None
            own = found.setdefault((record, rank), {"id": record, "rank": rank, "counters": {}, "fcounters": {}})
            if cells[3].startswith("POSIX_F_"):
                own["fcounters"][cells[3]] = value
            else:
                own["counters"][cells[3]] = int(value)
    for key in ("nprocs", "run time"):
        if key not in about:
            raise InputError(f"{path}:1: the header of darshan-parser has no '{key}'; its beginning is missing.")
    for own in found.values():
        if "POSIX_F_VARIANCE_RANK_BYTES" not in own["fcounters"] or "POSIX_STATS" not in own["counters"]:
            raise InputError(
                f"{path}:{number}: the counters of the record {own['id']} are not all there; the text was cut off."
            )
    log = Log(
        int(about["nprocs"]), 1, float(about["run time"].split()[0]), about.get("darshan log version", ""), names, []
    )
    log.notes.append("darshan-parser does not say on how many nodes the job ran; the trace is one node's.")
    return _filled(log, [], list(found.values()), {})


def _read(path: Path) -> Log:
    if _is_text(path):
        return _read_text(path)
    try:
        import darshan.backend.cffi_backend as backend
    except ImportError as error:
        raise InputError(
            "Importing Darshan logs needs the packages darshan and h5py; install them with: "
            f"{shlex.quote(sys.executable)} -m pip install darshan h5py."
        ) from error
    except RuntimeError as error:  # the package without the library that it calls, as PyPI has it for Python 3.13
        raise InputError(
            f"'{path}' can't be read: the package darshan finds no libdarshan-util. Install that library, or print the"
            f" log with darshan-parser elsewhere and import what it prints."
        ) from error
    try:
        handle = backend.log_open(str(path))
        job = backend.log_get_job(handle)
        modules = backend.log_get_modules(handle)
        names = backend.log_get_name_records(handle)
        traced = list(_records(backend, handle, "DXT_POSIX")) if "DXT_POSIX" in modules else []
        counted = list(_records(backend, handle, "POSIX")) if "POSIX" in modules else []
        backend.log_close(handle)
    except (RuntimeError, ValueError, KeyError) as error:
        raise InputError(f"The Darshan log '{path}' can't be read ({error}); it may have been cut off.") from error
    # The library itself says nothing of records that it can't read.
    for module, records in (("DXT_POSIX", traced), ("POSIX", counted)):
        if module in modules and not records:
            raise InputError(
                f"The Darshan log '{path}' can't be read (it announces records of {module} but has none); it may have "
                "been cut off."
            )
    hosts = {record["hostname"] for record in traced}
    log = Log(
        int(job["nprocs"]),
        max(1, len(hosts)),
        float(job["run_time"]),
        str(job["metadata"].get("lib_ver", job["log_ver"])),
        names,
        [],
    )
    return _filled(log, traced, counted, modules)


def _filled(
    log: Log, traced: list[LogRecord], counted: list[LogRecord], modules: Mapping[str, Mapping[str, object]]
) -> Log:
    """The log with the accesses of its records."""
    names = log.files
    skipped = {
        r["id"]
        for r in [*traced, *counted]
        if str(names.get(r["id"], "")).startswith(ELSEWHERE) or str(names.get(r["id"], "")).startswith("<")
    }
    if skipped:
        log.notes.append(f"{len(skipped)} files under /dev, /proc and /sys, and standard streams, are left out.")
    traced = [r for r in traced if r["id"] not in skipped]
    counted = [r for r in counted if r["id"] not in skipped]
    incomplete = _incomplete(traced, counted) if traced else set()
    if incomplete:
        done, all_ = sum(_segments(r) for r in traced), sum(_calls(r) for r in counted)
        why = (
            "its memory was full, as the log says"
            if (modules.get("DXT_POSIX") or {}).get("partial_flag")
            else "its memory was full, or it was set to leave files out"
        )
        log.notes.append(
            f"DXT recorded {done} of {all_} reads and writes ({why}): those of {len(incomplete)} files are made up "
            "from counters, as many and of as many bytes in all, equally large, in sequence, and evenly spread over "
            "the time between the first and the last."
        )
        traced = [r for r in traced if r["id"] not in incomplete]
        for record in counted:
            if record["id"] in incomplete:
                log.accesses += _made_up(log, record)
    if traced:
        for record in traced:
            for kind, segments in (("pread", record["read_segments"]), ("pwrite", record["write_segments"])):
                log.accesses += [
                    Access(
                        int(record["rank"]),
                        record["id"],
                        s["start_time"],
                        s["end_time"],
                        kind,
                        int(s["offset"]),
                        int(s["length"]),
                    )
                    for s in segments
                ]
        log.notes.append("Reads and writes are those of DXT, each with its time; opens and closes are put around them.")
    elif counted and not incomplete:
        log.notes.append(
            "The log has no DXT traces: reads and writes are made up from counters, as many and of as many bytes in "
            "all, equally large, in sequence, and evenly spread over the time between the first and the last."
        )
        for record in counted:
            log.accesses += _made_up(log, record)
    shared = 0
    for record in counted:
        for rank, share in _shares(log, record):
            shared += record["rank"] < 0
            at = float(record["fcounters"]["POSIX_F_OPEN_START_TIMESTAMP"])
            for kind, counter in (("stat", "POSIX_STATS"), ("fsync", "POSIX_FSYNCS")):
                when = float(record["fcounters"]["POSIX_F_CLOSE_START_TIMESTAMP"]) if kind == "fsync" else at
                log.accesses += [Access(rank, record["id"], when, when, kind)] * share(
                    max(0, int(record["counters"][counter]))
                )
    log.notes.append(
        "Stats and syncs are counted by Darshan, not timed: stats are put before, syncs after the accesses to their "
        "file."
    )
    if shared:
        log.notes.append("What is counted for all ranks of a shared file together is shared out evenly among them.")
    return log


def _calls(record: LogRecord) -> int:
    """Reads and writes of a file that the counters have."""
    return max(0, int(record["counters"]["POSIX_READS"])) + max(0, int(record["counters"]["POSIX_WRITES"]))


def _segments(record: LogRecord) -> int:
    """Reads and writes of a file that DXT recorded."""
    return len(record["read_segments"]) + len(record["write_segments"])


def _incomplete(traced: list[LogRecord], counted: list[LogRecord]) -> set[int]:
    """Files of which DXT has fewer reads and writes than were counted."""
    recorded, calls = Counter[int](), Counter[int]()
    for record in traced:
        recorded[record["id"]] += _segments(record)
    for record in counted:
        calls[record["id"]] += _calls(record)
    return {file for file, number in calls.items() if number > recorded[file]}


def _shares(log: Log, record: LogRecord) -> Iterator[tuple[int, Callable[[int], int]]]:
    """Ranks that a record is about, with what each has of a number."""
    if record["rank"] >= 0:
        yield int(record["rank"]), lambda total: total
    else:
        for rank in range(log.ranks):
            yield rank, partial(_share, rank, log.ranks)


def _share(rank: int, ranks: int, total: int) -> int:
    return total * (rank + 1) // ranks - total * rank // ranks


def _made_up(log: Log, record: LogRecord) -> Iterator[Access]:
    counters, times = record["counters"], record["fcounters"]
    for kind, what, word in (("pread", "READ", "READ"), ("pwrite", "WRITE", "WRITTEN")):
        number, total = int(counters[f"POSIX_{what}S"]), int(counters[f"POSIX_BYTES_{word}"])
        if number <= 0:
            continue
        first, last = float(times[f"POSIX_F_{what}_START_TIMESTAMP"]), float(times[f"POSIX_F_{what}_END_TIMESTAMP"])
        duration = float(times[f"POSIX_F_{what}_TIME"]) / number
        extent = max(1, int(counters[f"POSIX_MAX_BYTE_{word}"]) + 1)
        done = 0
        for rank, share in _shares(log, record):
            for i in range(own := share(number)):
                begin, end = total * done // number, total * (done + 1) // number
                start = first + (last - first) * i / own
                size = end - begin
                offset = begin if end <= extent else begin % max(1, extent - size + 1)
                yield Access(rank, record["id"], start, start + duration, kind, offset, size)
                done += 1


# ---- making it whole
# -----------------------------------------------------------------------------------------------------------


class _Files:
    """Directories and files by number, who removes each, and what has to be there before."""

    def __init__(self, log: Log) -> None:
        self.directories: dict[str, int] = {}
        self.place: dict[int, tuple[int, int]] = {}
        self.owner: dict[int, int] = {}
        self.size_before: dict[int, int] = {}
        numbers: dict[int, int] = {}
        written: dict[int, int] = {}
        for access in sorted(log.accesses, key=lambda a: (a.start, a.rank)):
            if access.file not in self.place:
                directory = self.directories.setdefault(
                    os.path.dirname(log.files.get(access.file, "?/?")), len(self.directories)
                )
                numbers[directory] = numbers.get(directory, -1) + 1
                self.place[access.file] = (directory, numbers[directory])
                self.owner[access.file] = access.rank
            end = access.offset + access.size
            if access.kind == "pwrite":
                written[access.file] = max(written.get(access.file, 0), end)
            elif access.kind == "stat" and access.file not in written:
                self.size_before.setdefault(access.file, 0)
            elif access.kind == "pread" and (
                end > written.get(access.file, 0) or access.rank != self.owner[access.file]
            ):
                # Written by nobody before, or by another rank, which in a replay may come later.
                self.size_before[access.file] = max(self.size_before.get(access.file, 0), end)
        # A stat or sync of a rank that doesn't open the file itself must find it, whoever comes first.
        opened = {(a.rank, a.file) for a in log.accesses if a.kind == "pwrite"}
        for access in log.accesses:
            if (access.rank, access.file) not in opened:
                self.size_before.setdefault(access.file, 0)


def _rows(log: Log) -> tuple[dict[str, np.ndarray], list[int]]:
    files = _Files(log)
    end = max(log.seconds, max(a.end for a in log.accesses))
    by_rank: list[list[Access]] = [[] for _ in range(log.ranks)]
    for access in log.accesses:
        by_rank[access.rank].append(access)
    owned: list[list[int]] = [[] for _ in range(log.ranks)]
    for file, rank in files.owner.items():
        owned[rank].append(file)
    found: list[tuple[int, ...]] = []  # kind, flags, dataset, object, size, offset, start, duration
    first_row = [0]
    order = {"stat": 0, "pread": 1, "pwrite": 1, "fsync": 2}
    for rank in range(log.ranks):
        begins = [0.0, 0.0, 0.0, end, end]

        def put(
            kind: str,
            at: float,
            place: tuple[int, int] = (0, 0),
            *,
            flags: int = 0,
            size: int = 0,
            offset: int = 0,
            seconds: float = 0.0,
        ) -> None:
            found.append(
                (KINDS.index(kind), flags, *place, size, offset, round(at * 1e9), round(max(0.0, seconds) * 1e9))
            )

        put("phase", begins[0], (0, 0))
        if rank == 0:
            for directory in files.directories.values():
                put("mkdir", begins[0], (directory, 0))
        put("phase", begins[1], (0, 1))
        for file in owned[rank]:
            if file in files.size_before:
                put("create", begins[1], files.place[file], size=files.size_before[file])
        put("phase", begins[2], (0, 2))
        writes = {a.file for a in by_rank[rank] if a.kind == "pwrite"}
        ordered = sorted(by_rank[rank], key=lambda a: (a.start, order[a.kind]))
        last = {a.file: i for i, a in enumerate(ordered) if a.kind != "stat"}
        open_files: OrderedDict[int, None] = OrderedDict()
        now = 0.0
        for i, access in enumerate(ordered):
            place = files.place[access.file]
            if access.kind == "stat":
                put("stat", max(now, access.start), place)
                continue
            if access.file in open_files:
                open_files.move_to_end(access.file)
            else:
                if len(open_files) == MAX_OPEN:
                    put("close", max(now, access.start), files.place[open_files.popitem(last=False)[0]])
                put(
                    "open", max(now, access.start), place, flags=(FOR_WRITING | MAKE_IT) if access.file in writes else 0
                )
                open_files[access.file] = None
            put(
                access.kind,
                max(now, access.start),
                place,
                size=access.size,
                offset=access.offset,
                seconds=access.end - access.start,
            )
            now = max(now, access.end)
            if last[access.file] == i:
                del open_files[access.file]
                put("close", now, place)
        put("phase", begins[3], (0, 3))
        for file in owned[rank]:
            put("unlink", begins[3], files.place[file])
        put("phase", begins[4], (0, 4))
        if rank == 0:
            for directory in files.directories.values():
                put("rmdir", begins[4], (directory, 0))
        first_row.append(len(found))
    table = np.asarray(found, dtype=np.int64).reshape(len(found), 8)
    columns = dict(
        zip(("kind", "flags", "dataset", "object", "size", "offset", "start_ns", "duration_ns"), table.T, strict=True)
    )
    columns["rank"] = np.repeat(np.arange(log.ranks), np.diff(first_row))
    columns["count"] = np.ones(len(found), np.int64)
    columns["stride"] = columns["error"] = np.zeros(len(found), np.int64)
    return {name: columns[name].astype(kind) for name, kind in COLUMNS}, first_row

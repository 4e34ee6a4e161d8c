# SPDX-License-Identifier: Apache-2.0
"""fio's JSON and JSON+ (--output-format=json+): rates, and with the plus whole latency distributions; its normal text
is read by fio_text.py.

Versions before 3 have microseconds (clat) in place of nanoseconds (clat_ns), and io_bytes in KiB. A file may hold
several documents.

Jobs of one group run at the same time and are one phase; a new group begins after `stonewall` or `new_group`. Latencies
are total latencies (lat_ns) where fio kept their bins (lat_percentiles=1), else completion latencies (clat_ns). A bin
is named by its middle; fio's bins are at most 1.6 % wide (stat.h, FIO_IO_U_PLAT_BITS).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Literal, TypedDict

from iocast.errors import InputError
from iocast.importers import Importer, fio_text
from iocast.importers.record import Latency, Phase, Record, place_one_after_the_other
from iocast.importers.source import Source

Way = Literal["read", "write", "trim", "sync"]
OPERATIONS: dict[Way, str] = {"read": "pread", "write": "pwrite", "trim": "trim", "sync": "fsync"}
DATA: tuple[Way, ...] = ("read", "write", "trim")
ENGINES = {
    "filecreate": {"read": "create", "write": "create"},
    "filestat": {"read": "stat"},
    "filedelete": {"read": "unlink"},
}
PERCENTILES = {
    "q25": "25.000000",
    "q50": "50.000000",
    "q75": "75.000000",
    "q90": "90.000000",
    "q95": "95.000000",
    "q99": "99.000000",
    "q999": "99.900000",
}


SHORT = 0.9
"""Share of its time below which a job of fixed time ended early."""
ENDS_BEFORE = ("exitall", "steadystate", "ss", "read_iolog", "fill_device", "fill_fs")
"""Options with which fio ends a job of fixed time before that time, as it should."""


class Times(TypedDict, total=False):
    """Latencies, in nanoseconds."""

    min: float
    max: float
    mean: float
    N: int
    bins: dict[str, int]
    percentile: dict[str, float]


class Part(TypedDict, total=False):
    """What a job did in one way; each version has some of the keys."""

    runtime: float
    iops: float
    total_ios: int
    io_bytes: float
    io_kbytes: float
    lat_ns: Times
    clat_ns: Times
    lat: Times
    clat: Times


_SCALED: tuple[Literal["min", "max", "mean"], ...] = ("min", "max", "mean")
_KINDS: tuple[tuple[Literal["lat", "clat"], str], ...] = (("lat", "total"), ("clat", "completion"))
Options = Mapping[str, object]
Job = TypedDict(
    "Job",
    {
        "jobname": str,
        "groupid": int,
        "hostname": str,
        "error": int,
        "total_err": int,
        "job_runtime": float,
        "job options": dict[str, object],
        "read": Part,
        "write": Part,
        "trim": Part,
        "sync": Part,
    },
    total=False,
)
Document = TypedDict(
    "Document",
    {
        "fio version": str,
        "timestamp_ms": float,
        "global options": dict[str, object],
        "jobs": list[Job],
        "client_stats": list[Job],
    },
    total=False,
)


def recognises(source: Source) -> bool:
    return '"fio version"' in source.head or fio_text.recognises(source)


def read(sources: Sequence[Source]) -> list[Record]:
    return [
        record
        for source in sources
        for record in (_read_json(source) if '"fio version"' in source.head else fio_text.read(source))
    ]


def _read_json(source: Source) -> list[Record]:
    found: list[tuple[int, Document]] = [one for one in source.json_values() if "fio version" in one[1]]
    if not found:
        raise source.refuse_cut("the whole document with 'fio version'")
    records: list[Record] = []
    ended = []
    begin = 1
    for line, value in found:
        if why := _ended(source, begin, line, value):
            ended.append(why)
        else:
            records += _read_one(source, line, value)
        begin = line
    if not records:
        raise ended[0]
    records[0].warnings += [f"{str(one).rstrip('.')}; this run is left out." for one in ended]
    if source.cut_value is not None:
        records[0].warnings.append(
            f"{source.at(source.cut_value)}: the document that begins here was cut off; it is left out."
        )
    return records


def _jobs(document: Document) -> list[Job]:
    return document.get("jobs") or [
        job for job in document.get("client_stats") or [] if job.get("jobname") != fio_text.TOGETHER
    ]


def _ended(source: Source, begin: int, line: int, document: Document) -> InputError | None:
    """Why the run of the document at `line` did not reach its end: by a signal, which fio prints between `begin` and
    the document, by an error, or before the time that it was to run."""
    if early := source.ended_early(begin, line, fio_text.ENDED_EARLY):
        return source.refuse(early[0], f"fio ended before its jobs had done their work ('{early[1]}')")
    jobs, shared = _jobs(document), document.get("global options") or {}
    lines = _job_lines(source, line, jobs)
    for job in jobs:
        # With continue_on_error fio goes on after errors, and counts them.
        name = f"the job '{job.get('jobname', 'job')}'"
        if job.get("error") and "total_err" not in job:
            why = f"ended with error {job['error']}{_meaning(job['error'])}, before it had done its work"
            return source.refuse(lines[id(job)], f"{name} {why}")
        options = {**shared, **(job.get("job options") or {})}
        fixed = _is_set(options, "time_based") and not any(_is_set(options, name) for name in ENDS_BEFORE)
        wanted = _seconds(options.get("runtime")) if fixed else None
        ran = max((float(part.get("runtime") or 0) for part in _parts(job)), default=0)
        if wanted and 0 < ran / 1000 < SHORT * wanted:
            return source.refuse(
                lines[id(job)],
                f"{name} ran for {ran / 1000:g} s and was to run for {wanted:g} s "
                "(time_based, runtime): it ended early",
            )
    return None


def _rate_limit(options: Options) -> float:
    """Operations a second that each job may do, reads and writes together; 0 for any number."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([kKmM]?)", str(options.get("rate_iops") or ""))
    total = sum(float(number) * {"": 1, "k": 1e3, "m": 1e6}[unit.lower()] for number, unit in parts)
    mixed = str(options.get("rw") or options.get("readwrite")) in ("rw", "readwrite", "randrw")
    return 2 * total if mixed and len(parts) == 1 else total  # a single number is of each direction


def _is_set(options: Options, name: str) -> bool:
    """Whether an option is there, and not switched off; one without a value is on."""
    return name in options and str(options[name]).strip() not in ("0", "false")


def _meaning(error: object) -> str:
    return f" ({os.strerror(error)})" if isinstance(error, int) and 0 < error < 200 else ""


def _seconds(text: object) -> float | None:
    """A time of fio's options in seconds; None for what is none."""
    found = re.fullmatch(r"(\d+)\s*(us|ms|s|m|h|d|)", str(text).strip().lower())
    units = {"us": 1e-6, "ms": 1e-3, "": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
    return int(found[1]) * units[found[2]] if found else None


def _read_one(source: Source, line: int, document: Document) -> list[Record]:
    """A run for each number of ranks: groups of one job file may have different ones."""
    jobs = _jobs(document)
    if not jobs:
        raise source.refuse(line, "there are no jobs in it ('jobs' or 'client_stats')")
    shared = document.get("global options") or {}
    groups: dict[int, list[Job]] = {}
    for job in jobs:
        groups.setdefault(int(job.get("groupid", 0)), []).append(job)
    lines = _job_lines(source, line, jobs)
    found = [
        (group, phase)
        for _, group in sorted(groups.items())
        if (phase := _phase(source, lines[id(group[0])], group, shared)) is not None
    ]
    if not found:
        raise source.refuse(
            line, f"the jobs '{', '.join(str(job.get('jobname', 'job')) for job in jobs)}' did no operation"
        )
    place_one_after_the_other([phase for _, phase in found])
    numbers = [_processes(group, shared) for group, _ in found]
    if None in numbers:
        numbers = [None] * len(found)
    records = []
    for ranks in dict.fromkeys(numbers):
        own = [one for one, number in zip(found, numbers, strict=True) if number == ranks]
        record = _record(source, line, document, ranks, own, shared)
        record.name = "fio" if len(set(numbers)) == 1 else f"n{ranks}"
        records.append(record)
    if len(found) < len(groups):
        records[0].warnings.append("Groups of jobs that did no operation are left out.")
    return records


def _record(
    source: Source,
    line: int,
    document: Document,
    ranks: int | None,
    found: list[tuple[list[Job], Phase]],
    shared: Options,
) -> Record:
    """The run of groups with one number of ranks, of which each is a phase."""
    phases = [phase for _, phase in found]
    record = Record("fio", "fio", phases, version=str(document["fio version"]).removeprefix("fio-"), ranks=ranks)
    record.origin = {"ranks": source.at(line), "nodes": source.at(line), "parameters": source.at(line)}
    hosts = {host for group, _ in found for job in group if (host := job.get("hostname"))}
    record.nodes = len(hosts) or 1
    if ranks is None:
        record.missing["ranks"] = (
            "group_reporting has put more jobs into one entry than its numjobs says (job_runtime exceeds the runtimes)"
        )
    elif ranks % record.nodes:
        record.nodes = None
    options: list[Options] = [{**shared, **(group[0].get("job options") or {})} for group, _ in found]
    fio_text.put_options(record, options)
    limits = [_rate_limit(one) for one in options]
    if ranks is not None and all(limits):
        record.limit = max(limits) * ranks, "rate_iops"
    if "timestamp_ms" in document:
        record.started = None
        record.missing["started"] = "fio prints the time of its end only."
        ended = datetime.fromtimestamp(document["timestamp_ms"] / 1000, timezone.utc)
        record.environment = {"hosts": sorted(hosts), "ended": ended.isoformat().replace("+00:00", "Z")}
    if any(op in ("pread", "pwrite", "trim") for phase in phases for op in phase.latency) and not any(
        phase.more["latency_of"] == "total" for phase in phases
    ):
        record.warnings.append(
            "Latencies are fio's completion latencies: without the time to submit; lat_percentiles=1 would keep the "
            "total."
        )
    if any(phase.operations is None for phase in phases):
        record.missing["phases[].operations"] = (
            "This version of fio prints whole operations a second, too few digits to tell how many there were."
        )
    if not any(latency.counts for phase in phases for latency in phase.latency.values()):
        record.missing["latency.hlog"] = (
            "fio writes its latency bins with --output-format=json+ only; there are percentiles."
        )
    record.missing |= {
        "command": "fio prints its options, not its command line.",
        "phases[].start_seconds": "fio prints no start of a group; groups are placed one after the other.",
    }
    return record


def _job_lines(source: Source, line: int, jobs: list[Job]) -> dict[int, int]:
    """The line of each job's name, by the job's id()."""
    found, at = {}, line
    for job in jobs:
        while at <= len(source.lines) and '"jobname"' not in source.lines[at - 1]:
            at += 1
        found[id(job)] = min(at, len(source.lines))
        at += 1
    return found


def _key_line(source: Source, line: int, *keys: str) -> int:
    """The line of the last of `keys`, each looked for from the one before."""
    for key in keys:
        line = next((n for n in range(line, len(source.lines) + 1) if f'"{key}"' in source.lines[n - 1]), line)
    return line


def _processes(group: list[Job], shared: Options) -> int | None:
    """Number of jobs of a group; None where one entry of group_reporting holds several sections.

    With group_reporting a host has one entry. Its options are those of the first section, and its job_runtime is the
    sum over all jobs."""
    total = 0
    for host in {job.get("hostname") for job in group}:
        own = [job for job in group if job.get("hostname") == host]
        first = {**shared, **(own[0].get("job options") or {})}
        if len(own) > 1 or str(first.get("group_reporting", "0")) == "0":
            total += len(own)
            continue
        number = int(str(first.get("numjobs", 1)))
        longest = sum(float(part.get("runtime") or 0) for part in _parts(own[0]))
        if float(own[0].get("job_runtime") or 0) > number * (1.05 * longest + 100):
            return None
        total += number
    return total


def _parts(job: Job, ways: Iterable[Way] = OPERATIONS) -> list[Part]:
    """What it did, where the file has that."""
    return [part for way in ways if isinstance(part := job.get(way), dict)]


def _phase(source: Source, line: int, group: list[Job], shared: Options) -> Phase | None:
    """None when the jobs did no operation."""
    name = fio_text.tag("+".join(dict.fromkeys(str(job.get("jobname", "job")) for job in group)))
    engine = str({**shared, **(group[0].get("job options") or {})}.get("ioengine", ""))
    phase = Phase(name, errors=0, origin={"": source.at(line)})
    data, seconds, bytes_moved = {}, 0.0, 0.0
    for theirs, op in OPERATIONS.items():
        op = ENGINES.get(engine, {}).get(theirs, op)
        parts = [part for job in group for part in _parts(job, [theirs]) if _count(part)]
        if not parts:
            continue
        count = sum(_count(part) for part in parts)
        seconds = max(seconds, *(float(part.get("runtime", 0)) / 1000 for part in parts))
        bytes_moved += sum(_bytes(part) for part in parts)
        phase.origin[f"latency.{op}"] = source.at(_key_line(source, line, theirs))
        phase.origin |= {
            "operations": source.at(_key_line(source, line, theirs, "total_ios")),
            "seconds": source.at(_key_line(source, line, theirs, "runtime")),
        }
        if theirs != "sync":
            data[op] = count
        phase.counts[op] = count
        latency, kind = _latency(source, line, parts, count)
        if latency is not None:
            phase.latency[op] = latency
            phase.more.setdefault("latency_of", kind)
    phase.more.setdefault("latency_of", None)
    if not phase.counts:
        return None
    # fio's runtimes are whole milliseconds; a job's own rates say no more.
    phase.seconds = seconds or None
    phase.operations = sum(phase.counts.values())
    phase.rate = (
        phase.operations / seconds
        if seconds
        else sum(float(part.get("iops", 0)) for job in group for part in _parts(job, DATA)) or None
    )
    phase.bytes = round(bytes_moved) or None
    phase.bytes_per_second = bytes_moved / seconds if seconds and bytes_moved else None
    phase.origin |= {
        "rate": f"{phase.origin['operations']} / {phase.origin['seconds']} (operations / runtime)",
        "bytes": phase.origin["operations"],
    }
    entries = [part for job in group for part in _parts(job, DATA) if _count(part)]
    if not any("total_ios" in part for part in entries):
        _forget_counts(
            phase, sum(float(part["iops"]) for part in entries), min(float(part["iops"]) for part in entries)
        )
        phase.origin["rate"] = source.at(_key_line(source, line, "iops"))
    phase.errors = sum(int(job.get("total_err", 0) or (1 if job.get("error") else 0)) for job in group)
    ends = [float(job["job_runtime"]) / 1000 for job in group if job.get("job_runtime")]
    if len(ends) == len(group) and _processes(group, shared) == len(group):
        phase.rank_seconds = ends
        phase.balance = min(ends) / max(ends)
    return phase


def _count(part: Part) -> int:
    """Operations of a part; versions before 2.2 print none, and their rate times their time is as exact as the rate."""
    if "total_ios" in part:
        return int(part["total_ios"] or 0)
    return round(float(part.get("iops") or 0) * float(part.get("runtime") or 0) / 1000)


def _forget_counts(phase: Phase, rate: float, least: float) -> None:
    """Leaves out operations that only whole operations a second tell, when those are too few to tell them to a
    thousandth."""
    phase.rate = rate
    if 0.5 / least > 1e-3:
        phase.operations, phase.counts = None, {}
        for latency in phase.latency.values():
            latency.count = None


def _bytes(part: Part) -> float:
    """Bytes that were moved: versions before 3 write KiB under the same name, and no io_kbytes beside it."""
    moved = float(part.get("io_bytes", 0))
    return moved if "io_kbytes" in part else moved * 1024


def _in_nanoseconds(part: Part, name: Literal["lat", "clat"]) -> Times | None:
    """The part's "lat" or "clat": as it is (lat_ns), or versions before 3's microseconds."""
    known = part.get("lat_ns") if name == "lat" else part.get("clat_ns")
    if isinstance(known, dict):
        return known
    known = part.get(name)
    if not isinstance(known, dict):
        return None
    inside = {share: v for k, v in (known.get("percentile") or {}).items() if (share := float(k.rstrip("%"))) > 0}
    scaled: Times = {}
    for key in _SCALED:
        if isinstance(value := known.get(key), int | float):
            scaled[key] = 1000 * float(value)
    if any(inside.values()):
        scaled["percentile"] = {f"{share:.6f}": 1000 * float(v) for share, v in inside.items()}
    return scaled


def _latency(source: Source, line: int, parts: list[Part], count: int) -> tuple[Latency | None, str | None]:
    """The pooled distribution of some jobs, from bins if all have them; else percentiles of a single job, or only mean
    and extremes."""
    for key, kind in _KINDS:
        known = [one for part in parts if (one := _in_nanoseconds(part, key)) is not None and one.get("max", 0) > 0]
        if len(known) != len(parts):
            continue
        if key == "lat" and not all("bins" in one or "percentile" in one for one in known):
            binned = [_in_nanoseconds(part, "clat") or {} for part in parts]
            if all("bins" in one or "percentile" in one for one in binned):
                continue
        weights = [int(one.get("N", _count(part))) for one, part in zip(known, parts, strict=True)]
        exact: dict[str, float] = {
            "mean": sum(n * float(one["mean"]) for n, one in zip(weights, known, strict=True))
            / max(sum(weights), 1)
            * 1e-9,
            "min": min(float(one["min"]) for one in known) * 1e-9,
            "max": max(float(one["max"]) for one in known) * 1e-9,
        }
        if all(one.get("bins") for one in known):
            counts: Counter[int] = Counter()
            for one in known:
                for value, n in one["bins"].items():
                    counts[int(source.number(str(value), line, "a latency bin"))] += int(
                        source.number(str(n), line, "a latency bin's count")
                    )
            return Latency.of_counts(counts, **exact), kind
        if len(known) == 1 and "percentile" in known[0]:
            table = known[0]["percentile"]
            exact |= {ours: float(table[theirs]) * 1e-9 for ours, theirs in PERCENTILES.items() if theirs in table}
        return Latency(count, exact), kind
    return None, None


IMPORTER = Importer(
    "fio",
    "JSON, JSON+ and text output of fio 2 and 3",
    "the file of --output, best with --output-format=json+",
    recognises,
    read,
)

# SPDX-License-Identifier: Apache-2.0
"""Lustre's statistics as `lctl get_param` prints them: the load that a server saw, as counts, rates and times.

Counts are since the statistics were cleared. A rate needs a time: `elapsed_time`, which servers print since Lustre
2.15, or several snapshots. Names and columns: Lustre Operations Manual, "Lustre Parameters" and "Monitoring a Lustre
File System". What a time holds depends on who counts:

- Of `md_stats`, `job_stats` (a run for each job) and `obdfilter.*.stats` it is the work of a thread. The wait for that
  thread was over when it began.
- Of a service (`mds.MDS.mdt.stats`, `ost.OSS.ost_io.stats`) likewise, where a kind of request has times. `req_waittime`
  is how long all requests of the service waited for a thread: the part `request.wait`.
- A client's device (`mdc.*.stats`, `osc.*.stats`) has no `req_qdepth`. Its times are from sending to the answer, with
  the network; `req_waittime` is that of all its requests: `request.trip`.

The time of a job's counters is that of its last request, so that it stands still with them."""

from __future__ import annotations

import re
from functools import partial

from iocast.importers import Importer
from iocast.importers.source import Source
from iocast.importers.statistics import HANDLING, TAKEN, TRIP, TRIPS, WAIT, Counted, Server, Snapshot, grouped, read

MOMENT = re.compile(r"^\s*snapshot_time:?\s+(\S+)(?: secs\.\S+)?\s*$")
ELAPSED = re.compile(r"^\s*elapsed_time:?\s+(\S+)(?: secs\.\S+)?\s*$")
COUNTS = re.compile(r"^\w+\s+\d+ samples\b")
STAT = re.compile(r"^(\w+)\s+(\d+) samples \[(\w+)\](?: (-?\d+) (-?\d+) (\d+)(?: -?\d+)?)?\s*$")
"""Minimum, maximum, sum and sum of squares; the last one runs over, and a clock that was set back makes a minimum
negative."""
PARAMETER = re.compile(r"^([A-Za-z][\w@:-]*(?:\.[\w@:-]+)+)=(.*)$")
STATISTICS = ("stats", "md_stats", "job_stats")
"""Last parts of parameters that count requests. Others (rpc_stats, extents_stats, brw_stats) have times of their own:
each is cleared by itself."""
NO_REQUESTS = (
    "req_active", "opencount", "openclosetime", "getxattr_hits", "hybrid_noswitch", "hybrid_readsize_switch",
    "hybrid_writesize_switch",
)  # fmt: skip
"""What is sampled at a request beside counting it by its kind: how many are under way, how long a file was open."""
UNITS = ("reqs", "usec", "usecs", "bytes")
"""Others are of samples that are no requests: [pages] of a cache, [bufs], [sec]."""
STATIONS = {"mds.MDS.mdt": "mds", "ost.OSS.ost_io": "oss"}
"""By service, the station of the family whose servers its threads are."""
ALL, DEPTH = "req_waittime", "req_qdepth"
JOB = re.compile(r"^- job_id:\s+(\S.*?)\s*$")
JOB_STAT = re.compile(
    r"^\s+(\w+):\s+\{ samples:\s*(\d+), unit:\s*(\w+)(?:, min:\s*(-?\d+), max:\s*(-?\d+), sum:\s*(\d+))?.*\}\s*$"
)
OPERATIONS = {
    "getattr": "stat", "mknod": "create", "sync": "fsync", "read": "pread", "write": "pwrite",
}  # fmt: skip
USEC = 1e-6
SERVER = Server(
    "lustre",
    "Lustre",
    "A time is the work of a thread, without the wait for it, which a service counts apart ('request.wait'); that of a "
    "client's device is from sending to the answer, and that of llite all that a program waits for.",
    {"phases[].latency.*": "Lustre prints sums and extremes of service times, and those with usecs only."},
    apart=True,
    waits_for="a thread of the service",
    relief="more service threads, where neither processors nor disks are what they share",
)


def recognises(source: Source) -> bool:
    return (
        bool(re.search(r"^job_stats:|^\w+\s+\d+ samples \[(?:reqs|usecs?|bytes)\]", source.head, re.MULTILINE))
        and "snapshot_time" in source.head
    )


def snapshots(source: Source) -> list[Snapshot]:
    """Of each parameter and job; statistics without a time are of none.

    @raises InputError with the line of a time that is none"""
    found: list[Snapshot] = []
    here: Snapshot | None = None
    parameter = job = ""
    counts = True  # also without a parameter's name
    threads: dict[str, dict[str, str]] = {}
    for number, line in source.numbered:
        if named := PARAMETER.match(line):
            parameter, _, last = named[1].rpartition(".")
            counts = last in STATISTICS
            if last == "md_stats" and parameter.startswith("mdc."):  # calls of programs, beside the requests of stats
                parameter = f"md_stats.{parameter}"
            job, line, here = "", named[2], None
            if last.startswith("threads_") and line.isdecimal():
                threads.setdefault(parameter, {})[last] = line
        if not counts:
            continue
        if named := JOB.match(line):
            job = named[1].strip("\"'")
        elif moment := MOMENT.match(line):
            time = source.number(moment[1], number, "snapshot_time")
            name = " ".join(filter(None, (parameter, job)))
            holds = TRIPS if parameter.startswith(("llite.", "md_stats.")) else HANDLING
            here = Snapshot(source, name, number, time, moved=(0, number), holds=holds, one_clock=True)
            here.of_last = bool(job)
            here.part = bool(job) or ".exports." in parameter
            found.append(here)
        elif here is None:
            continue
        elif elapsed := ELAPSED.match(line):
            here.elapsed = source.number(elapsed[1], number, "elapsed_time")
        elif stat := STAT.match(line) or JOB_STAT.match(line):
            values = (int(stat[4]), int(stat[5]), int(stat[6])) if stat[4] else None
            _count(here, stat[1], int(stat[2]), stat[3], values, number)
        elif COUNTS.match(line):
            raise source.refuse(
                number,
                "this line of counts has not the columns of Lustre: samples, [unit], minimum, maximum, sum and sum of "
                "squares; it may have been cut off",
            )
    for one in found:
        of_service = threads.get(one.name, {})
        one.note = _note_on_threads(one.name, of_service)
        if "threads_max" in of_service:
            one.threads["most"] = int(of_service["threads_max"])
        if "threads_started" in of_service:
            one.threads["started"] = int(of_service["threads_started"])
    return [one for one in found if one.time and not _is_bare(one)]


def _note_on_threads(service: str, threads: dict[str, str]) -> str:
    """A service starts more of them when requests wait, up to threads_max."""
    most, started = threads.get("threads_max"), threads.get("threads_started")
    if service not in STATIONS or most is None:
        return ""
    have = (
        f"The service {service} has started {started} of at most {most} threads."
        if started
        else (f"The service {service} has at most {most} threads.")
    )
    return (
        f"{have} Where neither its processors nor its disks are shorter, calibrate with "
        f"--known {STATIONS[service]}.servers={most}."
    )


def _is_bare(one: Snapshot) -> bool:
    """Whether it is a time that somebody wrote above Lustre's own."""
    empty = not one.counts and one.elapsed is None and one.moved == (0, one.line)
    return empty and TAKEN.match(one.source.lines[one.line - one.source.first]) is not None


def _count(one: Snapshot, title: str, samples: int, unit: str, values: tuple[int, int, int] | None, line: int) -> None:
    if title in NO_REQUESTS or unit not in UNITS or not samples:
        return
    if title == DEPTH:
        if (waited := one.counts.pop("request" + TRIP, None)) is not None:
            one.counts["request" + WAIT], one.holds = waited, HANDLING
    elif unit == "bytes":
        one.moved = (one.moved[0] if one.moved else 0) + (values[2] if values else 0), line
    else:
        times = [USEC * value for value in values] if values and unit.startswith("usec") else None
        counted = (
            Counted(samples, times[2], line, max(times[0], 0.0), max(times[1], 0.0))
            if times
            else Counted(samples, None, line)
        )
        if title == ALL:
            title, one.holds = "request" + TRIP, TRIPS
        one.add(OPERATIONS.get(title, title), counted)


IMPORTER = Importer(
    "lustre",
    "statistics of a Lustre server, its jobs and services, as observed load",
    "the output of lctl get_param, with elapsed_time or several snapshots, in one file or a file each",
    recognises,
    partial(read, snapshots=snapshots, server=SERVER),
    partial(grouped, snapshots=snapshots, server=SERVER),
    snapshots=snapshots,
    server=SERVER,
)

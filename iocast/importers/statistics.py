# SPDX-License-Identifier: Apache-2.0
"""What a server counts of its own requests: snapshots of counters that only grow, and the load between two of them.

Each format of such statistics has a file of its own beside this one, whose importer names the function that reads
snapshots (`Importer.snapshots`). All else is the same: two snapshots, in one file or in a file each, are one load; one
is the load since counting began, where the server says when that was. Formats without a clock take the time from a line
`snapshot_time: SECONDS` above a snapshot, in seconds since 1970."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from iocast.errors import InputError
from iocast.importers.record import Latency, Phase, Record
from iocast.importers.source import Source
from iocast.records.run import OBSERVED
from iocast.records.simulated import ThreadsOfServer

TAKEN = re.compile(r"^\s*(?:#\s*)?snapshot_time:?\s+(\S+)\s*$")
"""A line that says when the snapshot below it was taken."""
CLOCK = "write 'snapshot_time: ' and the seconds since 1970 above each (echo snapshot_time: $(date +%s.%N))"

WHOLE = 2.0
"""Seconds by which a time in whole seconds, or one of another clock, may be off. Chosen by hand."""
EXACT = 1.0
"""Likewise of two times by one clock."""

REQUESTS, HANDLING, TRIPS = "requests", "handling", "trips"
"""What the seconds of requests hold: all their time at a server, with the wait for one of its threads; the part in
which they held a thread; or all from a client's sending to the answer, with the network."""
WAIT, TRIP = ".wait", ".trip"
"""Ends of names of parts: the wait for a thread of a server, and the trip of a client's request."""


@dataclass(frozen=True)
class Counted:
    """Requests of a kind since counting began. seconds: of all together, None where no time is kept; least and most: of
    one."""

    count: int
    seconds: float | None
    line: int
    least: float | None = None
    most: float | None = None


@dataclass
class Snapshot:
    """Counters at a moment. name: a brick or a daemon, say; time: in seconds since 1970; elapsed:
    seconds since counting began; counts: by operation, or by a part of one as "query.wait"; moved: bytes, and their
    line; note: a finished sentence on these counters; threads: of the server, `most` and how many are `started`;
    part: these are some of the server's requests, such as those of one job; by_itself: counting began with it, so that
    it is a load; holds: what its seconds are; one_clock: time and elapsed are by the same one; of_last: the time is
    that of the last request; rows: of a format that has them all at any time, those that were read."""

    source: Source
    name: str
    line: int
    time: float | None = None
    elapsed: float | None = None
    counts: dict[str, Counted] = field(default_factory=dict)
    moved: tuple[int, int] | None = None
    note: str = ""
    threads: ThreadsOfServer = field(default_factory=lambda: ThreadsOfServer())
    part: bool = False
    by_itself: bool = False
    holds: str = REQUESTS
    one_clock: bool = False
    of_last: bool = False
    rows: list[str] = field(default_factory=list)

    @property
    def subject(self) -> str:
        return self.name or self.source.path.name

    def add(self, op: str, one: Counted) -> None:
        """Several kinds of requests may be one operation."""
        if (before := self.counts.get(op)) is not None:
            seconds = None if before.seconds is None or one.seconds is None else before.seconds + one.seconds
            least = None if before.least is None or one.least is None else min(before.least, one.least)
            most = None if before.most is None or one.most is None else max(before.most, one.most)
            one = Counted(before.count + one.count, seconds, one.line, least, most)
        self.counts[op] = one


@dataclass(frozen=True)
class Server:
    """Statements on all statistics of a format. times: what a request's time holds, a finished sentence; who counts;
    apart: files that hold several snapshots, or count since another moment, are loads by themselves, since several
    servers give the same names. waits_for: what a request waits for in the parts WAIT, "queue" or beside "process",
    and relief: what shortens that wait. helps: what makes any of its requests rarer or faster, where their names don't
    say it."""

    format: str
    tool: str
    times: str
    missing: Mapping[str, str] = field(default_factory=dict)
    who: str = "server"
    apart: bool = False
    waits_for: str = ""
    relief: str = ""
    helps: str = ""


Snapshots = Callable[[Source], list[Snapshot]]


def time_above(source: Source, number: int, line: str) -> float | None:
    """The time that a line states for the snapshot below it; None for any other line.

    @raises InputError for a time that is none"""
    return source.number(found[1], number, "snapshot_time") if (found := TAKEN.match(line)) else None


def grouped(sources: Sequence[Source], snapshots: Snapshots, server: Server) -> list[list[Source]]:
    """Files that count the same are begin and end of a load, in the order of their times."""
    groups: dict[tuple[str, ...], list[tuple[float, Source]]] = {}
    for number, source in enumerate(sources):
        found = snapshots(source)
        names = tuple(sorted({one.name for one in found}))
        whole = len(names) < len(found) or any(one.elapsed is not None for one in found)
        if not found or server.apart and whole:
            since = {f"{one.time - one.elapsed:.1f}" for one in found if one.time and one.elapsed and one.one_clock}
            began = len(names) == len(found) and all(one.time and one.elapsed for one in found) and since
            names = (*names, *sorted(since)) if began else (str(number), "")
        first = min((one.time or one.elapsed or 0.0 for one in found), default=0.0)
        groups.setdefault(names, []).append((first, source))
    return [[source for _, source in sorted(group, key=lambda one: one[0])] for group in groups.values()]


def read(sources: Sequence[Source], snapshots: Snapshots, server: Server) -> list[Record]:
    """A run for each thing that is counted. @raises InputError with file and line where no rate follows"""
    groups = grouped(sources, snapshots, server)
    return [record for group in groups for record in _read_group(group, snapshots, server)]


def _read_group(sources: Sequence[Source], snapshots: Snapshots, server: Server) -> list[Record]:
    taken: dict[str, list[Snapshot]] = {}
    for source in sources:
        source.require_last_line()
        for one in snapshots(source):
            while one.by_itself and one.name in taken:
                one.name += " again"
            taken.setdefault(one.name, []).append(one)
    if not taken:
        raise sources[0].refuse(1, f"there is no snapshot of {server.tool} in it; it may have been cut off")
    taken, left_out = without_ended_jobs(taken)
    alone = [name for name, own in taken.items() if len(own) == 1 and not own[0].elapsed]
    if len(alone) == len(taken):
        alone = []  # which the first will report
    records = [
        record for name, own in taken.items() if name not in alone and (record := _record(own, server)) is not None
    ]
    if not records:
        raise sources[0].refuse(
            next((own[0].line for own in taken.values()), 1),
            "no request was counted in it, or none between the snapshots; take a later one",
        )
    for record in records:
        record.sources = sources
        record.warnings += [f"{name} is in one snapshot alone, and is left out." for name in alone]
    records[0].warnings += left_out
    return records


def without_ended_jobs(taken: Mapping[str, list[Snapshot]]) -> tuple[dict[str, list[Snapshot]], list[str]]:
    """Of each job the snapshots of different times; a job without a request in between, or that a server forgot and
    counted anew, is left out with a sentence. Anything else is as it was.

    @raises InputError where all jobs began anew"""
    kept: dict[str, list[Snapshot]] = {}
    left_out: list[str] = []
    refusal: InputError | None = None
    for name, own in taken.items():
        last = [one for one, after in pairwise(own) if not one.of_last or one.time != after.time] + own[-1:]
        if len(last) == 1 < len(own):
            left_out.append(f"{name} made no request between the snapshots, and is left out.")
            continue
        try:
            for one, after in pairwise(last if own[-1].of_last else []):
                require_later(one, after)
                require_same(one, after)
        except InputError as error:
            refusal = refusal or error
            left_out.append(f"The counts of {name} began anew between the snapshots, and are left out.")
            continue
        kept[name] = last
    if refusal is not None and not kept:
        raise refusal
    return kept, left_out


def _earlier(one: Snapshot, before: Snapshot, line: int) -> str:
    """Where a line of an earlier snapshot stands."""
    return f"line {line}" if before.source is one.source else before.source.at(line)


def require_later(before: Snapshot, after: Snapshot) -> None:
    """@raises InputError where a time that both have is not later, or counting began anew in between"""
    passed = [
        last - first
        for first, last in ((before.time, after.time), (before.elapsed, after.elapsed))
        if first is not None and last is not None
    ]
    where = _earlier(after, before, before.line)
    if passed and passed[0] <= 0:
        raise after.source.refuse(
            after.line,
            f"this snapshot of {after.subject} is not of a later time than that of {where}: they are of several "
            "servers, in another order, or taken twice; import each by itself",
        )
    if len(passed) < 2:
        return
    if passed[1] < passed[0] / 2 - WHOLE or after.one_clock and abs(passed[1] - passed[0]) > EXACT:
        raise after.source.refuse(
            after.line,
            f"{after.subject} has counted for {passed[1]:+.6g} s more than in {where}, "
            f"which is {passed[0]:.6g} s earlier: counting began anew in between, or these are of several servers; "
            "import each by itself",
        )


def seconds_between(before: Snapshot, after: Snapshot, server: Server) -> float:
    """@raises InputError for snapshots without times, or of which the second is not later"""
    require_later(before, after)
    for first, last in ((before.time, after.time), (before.elapsed, after.elapsed)):
        if first is not None and last is not None:
            return last - first
    raise after.source.refuse(after.line, f"no time between the snapshots is known of {server.tool}; {CLOCK}")


def require_same(before: Snapshot, after: Snapshot) -> None:
    """@raises InputError where the later one has counted less, or a row is in one of them alone"""
    for row in sorted({*before.rows} ^ {*after.rows}):
        lacks, has = (before, after) if row in after.rows else (after, before)
        raise lacks.source.refuse(
            lacks.line,
            f"this snapshot of {lacks.subject} lacks the row {row}, which that of {_earlier(lacks, has, has.line)} "
            "has: it was cut off; take both again",
        )
    for op, one in before.counts.items():
        later = after.counts.get(op)
        if later is None:
            raise after.source.refuse(
                after.line,
                f"this snapshot of {after.subject} lacks {op}, which {_earlier(after, before, one.line)} has: it was "
                "cut off, or counting began anew in between; import each by itself",
            )
        before_it = one.seconds or 0.0
        if later.count < one.count or (later.seconds or 0.0) < before_it - 1e-6 * (1 + abs(before_it)):
            raise after.source.refuse(
                later.line,
                f"{op} of {after.subject} counts less than in {_earlier(after, before, one.line)}: these are of "
                "several servers, or counting began anew in between; import each by itself",
            )
    if before.moved is not None and after.moved is not None and after.moved[0] < before.moved[0]:
        raise after.source.refuse(
            after.moved[1],
            f"the bytes of {after.subject} are fewer than in {_earlier(after, before, before.moved[1])}: these are of "
            "several servers, or counting began anew in between; import each by itself",
        )


def _record(own: list[Snapshot], server: Server) -> Record | None:
    """The load between the first snapshot and the last, or since counting began."""
    last, before = own[-1], own[0] if len(own) > 1 else None
    for one, after in pairwise(own):
        seconds_between(one, after, server)
        require_same(one, after)
    if before is not None:
        seconds = seconds_between(before, last, server)
        timed = f"{last.source.at(last.line)} (less {_earlier(last, before, before.line)})"
    elif last.elapsed:
        seconds, timed = last.elapsed, f"{last.source.at(last.line)} (since counting began)"
    else:
        raise last.source.refuse(
            last.line,
            f"no rate follows from one snapshot of {server.tool} that doesn't say since when it counts; append a later "
            "one to the file, or name a file with it as well" + (f", and {CLOCK}" if last.time is None else ""),
        )
    phase = Phase("observed", seconds=seconds, origin={"": timed})
    for op, counted in last.counts.items():
        then = before.counts.get(op) if before is not None else None
        count = counted.count - (then.count if then else 0)
        if count <= 0:
            continue
        if "." not in op or counted.seconds is None:
            phase.counts[op] = count
        less = f" (less {_earlier(last, before, then.line)})" if before is not None and then else " (all of its kind)"
        phase.origin[f"latency.{op}"] = last.source.at(counted.line) + less
        if counted.seconds is None:
            continue
        total = counted.seconds - ((then.seconds or 0.0) if then else 0.0)
        known = {"mean": max(total, 0.0) / count}
        if then is None and counted.least is not None and counted.most is not None:
            known |= {"min": counted.least, "max": counted.most}
        if known["mean"] > 0 or "." not in op:
            phase.latency[op] = Latency(count, known)
    phase.operations = sum(count for op, count in phase.counts.items() if "." not in op) or None
    if phase.operations:
        phase.rate = phase.operations / seconds
        phase.origin |= dict.fromkeys(("operations", "rate"), f"{last.source.at(last.line)} (all requests together)")
    if last.moved is not None and (before is None or before.moved is not None):
        moved = last.moved[0] - (before.moved[0] if before is not None and before.moved is not None else 0)
        if moved > 0:
            phase.bytes, phase.bytes_per_second = moved, moved / seconds
            phase.origin |= dict.fromkeys(
                ("bytes", "bytes_per_second"), f"{last.source.at(last.moved[1])} (read and written together)"
            )
    if not phase.operations and not phase.bytes:
        return None
    record = Record(
        last.name or server.format, server.tool, [phase], pattern=f"{server.format}{OBSERVED}", label=last.name
    )
    who = "client" if server.who == "server" and last.holds == TRIPS else server.who
    record.observed = {
        "who": who,
        "holds": last.holds,
        "part": last.part,
        "threads": last.threads,
        "since_counting_began": before is None,
    }
    record.warnings.append(
        f"This is the load that a {who} saw, of any program; it is no benchmark of the server's capacity. "
        + server.times
    )
    record.warnings += [last.note] * bool(last.note)
    record.missing |= {
        "command": f"A {who}'s statistics know no command.",
        "placement.ranks": f"A {who} does not know how many ranks made its load.",
        "placement.nodes": f"A {who} does not know on how many nodes its load was made.",
        "started": f"A {who}'s statistics are the difference of counters.",
        "workload.parameters": f"A {who}'s statistics know no options.",
        "phases[].errors": "Requests that failed are counted with the others.",
        "phases[].latency.*": "Sums of times are counted; a distribution is not known.",
        "phases[].rank_seconds": f"A {who} does not know ranks.",
        "seed": "Nothing is drawn at random.",
    } | dict(server.missing)
    if phase.operations is None:
        record.missing["phases[].operations"] = "Only bytes were counted."
    return record

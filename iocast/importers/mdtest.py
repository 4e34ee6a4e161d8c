# SPDX-License-Identifier: Apache-2.0
"""mdtest's text output, of 1.9 and of IOR 3 and 4; a log may hold several runs.

The summary has rates over iterations, and since IOR 3.3 times; single iterations are printed with -v only ("V-1: main:
..."). Rates count all tasks' items. "M files" are the files requested: with a stonewall (-W, or -x after one) fewer
exist, and the line "Continue stonewall hit ... max: K" tells that each rank made K. There are no latencies of single
operations in it. A shared-file run (-S) says "1 file", and how many operations that were is not printed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from iocast.importers import Importer
from iocast.importers.record import Phase, Record, counted, place_one_after_the_other
from iocast.importers.source import Source
from iocast.ground.strict import is_whole

LAUNCHED = re.compile(r"mdtest-(\S+) was launched with (\d+) total task\(s\) on (\d+) node")
COMMAND = re.compile(r"^(?:V-0: )?Command line used: (.*)$")
STARTED = re.compile(r"-- started at (\d\d/\d\d/\d{4} \d\d:\d\d:\d\d) --")
FINISHED = re.compile(r"-- finished at (\d\d/\d\d/\d{4} \d\d:\d\d:\d\d) --")
TASKS = re.compile(r"^(?:V-\d: )?(\d+) tasks, (\d+) (files/directories|files?|directories)")
SUMMARY = re.compile(r"^(?:V-\d: )?SUMMARY\b(.*)\(of (\d+) iterations\)")
ROW = re.compile(
    r"^\s+(Directory|File|Tree) (creation|stat|read|removal|rename)\s*:?"
    r"((?:\s+(?:-?[\d.,]+(?:e[+-]?\d+)?|-?nan|-?inf))+)\s*$",
    re.IGNORECASE,
)
UNMEASURED = re.compile("nan|inf", re.IGNORECASE)
STONEWALL = re.compile(r"^Continue stonewall hit min: (\d+) max: (\d+)")
NO_STATUS = re.compile(r"could not read stonewall status file", re.IGNORECASE)
SINGLE = re.compile(
    r"^(?:V-1: )?(?:main:)?\s+(Directory|File|Tree) (creation|stat|read|removal|rename)\s*:?\s+([\d.]+) "
    r"sec,\s+([\d.]+) ops/sec"
)

OPERATIONS = {
    "File creation": "create",
    "File stat": "stat",
    "File read": "read",
    "File removal": "unlink",
    "Directory creation": "mkdir",
    "Directory stat": "stat",
    "Directory read": "readdir",
    "Directory rename": "rename",
    "Directory removal": "rmdir",
    "Tree creation": "mkdir",
    "Tree removal": "rmdir",
}
# The tool's options and iocast's parameters of the same pattern (workload/patterns/mdtest.cpp).
NUMBERS = {
    "n": "items",
    "I": "items_per_directory",
    "b": "branching",
    "z": "depth",
    "N": "stride",
    "w": "write_size",
    "e": "read_size",
    "W": "most_seconds",
    "i": "iterations",
}
FLAGS = {
    "u": "unique_directory",
    "L": "leaf_only",
    "F": "files_only",
    "D": "directories_only",
    "S": "shared_files",
    "y": "sync",
    "R": "random_order",
}
PHASES = {"C": "create", "T": "stat", "E": "read", "r": "remove"}
TITLES = {"creation": "create", "stat": "stat", "read": "read", "removal": "remove", "rename": "rename"}
HALF_DIGIT = 0.0005
"""What rounding does to a printed time, in its unit."""


@dataclass
class _Launch:
    """One call of mdtest in a log: the lines from its start to the next, numbered from `first`."""

    source: Source
    first: int
    lines: list[str]
    number: int  # of the line "was launched with"
    version: str
    tasks: int
    nodes: int

    def find(self, pattern: re.Pattern[str]) -> tuple[int, re.Match[str]] | None:
        return next(
            ((self.first + i, found) for i, line in enumerate(self.lines) if (found := pattern.search(line))), None
        )

    def seconds(self) -> float | None:
        """Between its start and its end, in whole seconds."""
        start, end = self.find(STARTED), self.find(FINISHED)
        return (_moment(end[1][1]) - _moment(start[1][1])).total_seconds() if start and end else None


@dataclass
class _Table:
    """What is printed of one number of tasks: rows of rates and times by name with their lines, single iterations,
    stonewalls."""

    tasks: int
    items: int | None
    line: int
    iterations: int = 1
    rates: dict[str, tuple[list[float], int]] = field(default_factory=dict)
    times: dict[str, tuple[list[float], int]] = field(default_factory=dict)
    singles: dict[str, list[tuple[float, float, int]]] = field(default_factory=dict)
    unmeasured: dict[str, tuple[str, int]] = field(default_factory=dict)  # rates that are no numbers, lines
    stonewalls: list[tuple[int, int]] = field(default_factory=list)  # most items of a rank, line


def recognises(source: Source) -> bool:
    return bool(LAUNCHED.search(source.head)) or (
        "Command line used:" in source.head and bool(re.search(r"\bmdtest\b", source.head)) and "SUMMARY" in source.head
    )


def read(sources: Sequence[Source]) -> list[Record]:
    return [record for source in sources for record in _read_one(source)]


def _read_one(source: Source) -> list[Record]:
    launches = _launches(source)
    if not launches:
        raise source.refuse(1, "the line 'mdtest-... was launched with ... total task(s) on ... node(s)' is missing")
    whole = [launch for launch in launches if launch.find(FINISHED)]
    if not whole:
        raise source.refuse_cut("'-- finished at'")
    records = [record for launch in whole for record in _records(launch)]
    if not records:
        tables = [(launch, table) for launch in whole for table in _tables(launch) if table.rates]
        if tables:
            line = min(line for _, line in tables[0][1].rates.values())
            why = "every rate of the summary is 0.000 or no number, so there is no measurement in it; run it again"
            raise source.refuse(line, why)
        raise source.refuse_cut("the summary of rates")
    for launch in launches:
        if launch not in whole:
            records[0].warnings.append(f"{source.at(launch.number)}: this run has no '-- finished at'; it is left out.")
    return records


def _launches(source: Source) -> list[_Launch]:
    lines = source.lines
    found = [(i, match) for i, line in enumerate(lines) if (match := LAUNCHED.search(line))]
    launches, begin = [], 0
    for (i, match), after in zip(found, [*(i for i, _ in found[1:]), len(lines)], strict=False):
        # A run's start is printed before the line by which it is known.
        end = (
            next((k for k in range(after - 1, i, -1) if STARTED.search(lines[k])), after)
            if after < len(lines)
            else after
        )
        launches.append(_Launch(source, begin + 1, lines[begin:end], i + 1, match[1], int(match[2]), int(match[3])))
        begin = end
    return launches


def _records(launch: _Launch) -> list[Record]:
    records = []
    for table in _tables(launch):
        record = _record(launch, table.tasks)
        for name in table.rates:
            record.phases += _phases(launch, table, name, record)
        if not record.phases:
            continue
        record.warnings += [
            f"{launch.source.at(line)}: the rate of {name} is '{text}', which is no measurement; it is left out."
            for name, (text, line) in table.unmeasured.items()
        ]
        _warn_of_caches(record)
        if table.items is None:
            record.missing["phases[].operations"] = "mdtest does not say how many operations a shared file (-S) got."
        elif any(phase.operations is None for phase in record.phases):
            record.missing["phases[].operations"] = (
                "mdtest prints how many files were requested; after a stonewall, or over several iterations, not how "
                "many there were."
            )
        if any(phase.seconds is None for phase in record.phases):
            record.missing["phases[].seconds"] = "This version of mdtest prints no times."
        if table.iterations > 1 and not table.singles:
            record.missing["phases[] of single iterations"] = (
                "mdtest prints single iterations with -v only; a phase here is the mean over them, with "
                "rate_over_repeats."
            )
        place_one_after_the_other(record.phases)
        records.append(record)
    return records


def _warn_of_caches(record: Record) -> None:
    """Whether ranks may have had what they looked at in the memory of their own node."""
    created = any(phase.name.endswith("-create") and phase.name != "tree-create" for phase in record.phases)
    looked = any(phase.name.endswith(("-stat", "-read")) for phase in record.phases)
    if created and looked and not record.parameters.get("stride"):
        record.warnings.append(
            "mdtest ran without -N, so each rank looked at the files that it had made itself: phases of stat and read "
            "may be answered by its node's cache. With -N and the ranks of a node, the server answers."
        )


def _tables(launch: _Launch) -> list[_Table]:
    source, tables, rows = launch.source, [], None
    for number, line in enumerate(launch.lines, start=launch.first):
        if found := TASKS.match(line):
            shared = found[2] == "1" and found[3] == "file"
            tables.append(_Table(int(found[1]), None if shared else int(found[2]), number))
            rows = None
        elif not tables:
            continue
        elif found := SINGLE.match(line):
            seconds, rate = (source.number(text, number, "a value") for text in found.group(3, 4))
            tables[-1].singles.setdefault(f"{found[1]} {found[2]}".capitalize(), []).append((seconds, rate, number))
        elif found := STONEWALL.match(line):
            tables[-1].stonewalls.append((int(found[2]), number))
        elif found := SUMMARY.match(line):
            rows = tables[-1].times if " time" in found[1] else tables[-1].rates
            tables[-1].iterations = int(found[2])
        elif (found := ROW.match(line)) and rows is not None:
            name = f"{found[1]} {found[2]}".capitalize()
            values = [
                0.0 if UNMEASURED.search(text) else source.number(text, number, f"the value of {name}")
                for text in found[3].split()
            ]
            if len(values) < 4:
                raise source.refuse(
                    number,
                    f"{name} has {len(values)} values instead of maximum, minimum, mean and deviation; the line was "
                    "cut off",
                )
            mean = found[3].split()[-2]
            if rows is tables[-1].rates and UNMEASURED.search(mean):
                tables[-1].unmeasured[name] = mean, number
            rows[name] = (values[-4:], number)  # versions with per-rank columns have those first
    return tables


LAST_DIGIT = 1e-3
"""What rounding may put a printed mean beyond a printed extreme."""


def _phases(launch: _Launch, table: _Table, name: str, record: Record) -> list[Phase]:
    (most, least, mean, deviation), line = table.rates[name]
    if not mean > 0:
        return []
    source = launch.source
    if not least - LAST_DIGIT <= mean <= most + LAST_DIGIT:
        record.warnings.append(
            f"{source.at(line)}: the mean {mean:g} of {name} is not between its minimum {least:g} and its maximum "
            f"{most:g}; look whether this line was edited."
        )
    title = f"{name.split()[0].lower()}-{TITLES[name.split()[1]]}"
    walled = _walled(record.command or [])
    items = None if name.startswith("Tree") or (walled and not _as_requested(launch, table, record)) else table.items
    singles = table.singles.get(name, [])
    if len(singles) == table.iterations:
        made = []
        for repeat, (seconds, rate, number) in enumerate(singles, start=1):
            count = items if items is not None else counted(rate, seconds, HALF_DIGIT)
            phase = Phase(
                title,
                repeat if table.iterations > 1 else 0,
                seconds=seconds or None,
                operations=count,
                rate=rate,
                origin={"": source.at(number)},
            )
            phase.origin["operations"] = (
                source.at(table.line) if items is not None else f"{source.at(number)} (rate x time)"
            )
            if count and rate and items is not None:
                phase.seconds = count / rate  # as printed, with more digits
            made.append(_with_count(phase, name))
        return made
    phase = Phase(title, rate=mean, origin={"": source.at(line)})
    if name in table.times:
        values, where = table.times[name]
        phase.seconds = _in_seconds(launch, table, values[2], mean) or None
        phase.origin["seconds"] = source.at(where)
    if table.iterations > 1:
        phase.more["rate_over_repeats"] = {
            "repeats": table.iterations,
            "mean": mean,
            "min": least,
            "max": most,
            "standard_deviation": deviation,
        }
    else:
        _count(launch, table, name, items, phase, record)
    return [_with_count(phase, name)]


def _count(launch: _Launch, table: _Table, name: str, items: int | None, phase: Phase, record: Record) -> None:
    """Operations of a single iteration: what the stonewall's line says of the ranks, what was requested, or rate times
    time."""
    source, rate = launch.source, phase.rate or 0.0
    timed = counted(rate, phase.seconds, HALF_DIGIT) if phase.seconds else None
    number = where = None
    if name.endswith("creation") and not name.startswith("Tree") and table.stonewalls:
        # Directories are made before files, each with a line of its own.
        position = -1 if name.startswith("File") else 0
        phase.requested = table.items
        most, line = table.stonewalls[position]
        number, where = most * table.tasks, f"{source.at(line)} (items of the longest rank x {table.tasks} tasks)"
    elif items is not None:
        number, where = items, source.at(table.line)
    if number is not None and timed is not None and abs(number / timed - 1) > 1e-3:
        text = f"{where} says {number} operations, rate times time of '{name}' {timed}; the latter is imported."
        record.warnings.append(text)
        number = None
    if number is None and timed is not None:
        number, where = timed, f"{phase.origin['']}, {phase.origin['seconds']} (rate x time)"
    if number:
        phase.operations, phase.origin["operations"] = number, str(where)
        if phase.seconds is None:
            phase.seconds, phase.origin["seconds"] = number / rate, f"{where}, {phase.origin['']} (operations / rate)"


def _with_count(phase: Phase, name: str) -> Phase:
    if phase.operations:
        op = OPERATIONS[name]
        phase.counts = {op: phase.operations}
        phase.origin.setdefault(f"latency.{op}.count", phase.origin.get("operations", phase.origin[""]))
    return phase


def _in_seconds(launch: _Launch, table: _Table, printed: float, rate: float) -> float:
    """A time of the summary. Versions that name milliseconds an operation print seconds all the same; only where the
    run was shorter than that are they milliseconds, and where rate times time is 1000 the time of one operation, of
    which nothing follows."""
    if abs(printed * rate / 1000 - 1) < 1e-3 and table.items and table.items > 1000:
        return 0.0
    whole = launch.seconds()
    if whole is not None and sum(values[2] for values, _ in table.times.values()) * table.iterations > whole + 2:
        return printed / 1000
    return printed


def _walled(command: list[str]) -> bool:
    """Whether fewer files than requested may exist: a stonewall, or a file with the numbers that one has left."""
    return any(re.match(r"^-[WxY]*[Wx]", word) for word in command[1:])


def _as_requested(launch: _Launch, table: _Table, record: Record) -> bool:
    """Whether a phase had the items requested in spite of -W or -x.

    -W 0 is no stonewall, and a status file (-x) that can't be read changes nothing."""
    if "create" in record.parameters.get("phases", "create").split(","):
        return not table.stonewalls and not record.parameters.get("most_seconds")
    return launch.find(NO_STATUS) is not None


def _moment(text: str) -> datetime:
    return datetime.strptime(text, "%m/%d/%Y %H:%M:%S")


def _record(launch: _Launch, tasks: int) -> Record:
    total, nodes, source = launch.tasks, launch.nodes, launch.source
    per_node = total // nodes if total % nodes == 0 else 0
    if tasks == total:
        own: int | None = nodes
    else:
        own = max(1, tasks // per_node) if per_node and (tasks < per_node or tasks % per_node == 0) else None
    record = Record(
        name=f"n{tasks}", tool="mdtest", pattern="mdtest", phases=[], version=launch.version, ranks=tasks, nodes=own
    )
    record.origin = dict.fromkeys(("ranks", "nodes"), source.at(launch.number))
    if command := launch.find(COMMAND):
        record.command = Source.words(command[1][1])
        record.parameters = _parameters(record.command)
        record.origin["parameters"] = record.origin["command"] = source.at(command[0])
    if (seconds := launch.seconds()) is not None:
        finished = launch.find(FINISHED)
        record.elapsed = seconds, source.at(finished[0] if finished else launch.number)
    if started := launch.find(STARTED):
        record.started = _moment(started[1][1]).isoformat()
        record.origin["started"] = source.at(started[0])
        record.missing["started (zone)"] = "mdtest prints the local time without its zone."
    return record


def _parameters(command: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    requested = set()
    words = iter(command[1:])
    for word in words:
        if not re.match(r"^-[A-Za-z]", word):
            continue
        letter, rest = word[1], word[2:].removeprefix("=")
        if letter in NUMBERS:
            text = rest or next(words, "")
            if is_whole(text):
                found[NUMBERS[letter]] = int(text)
        elif letter in "dxaf":  # options with texts
            if not rest:
                next(words, "")
        else:
            found |= {FLAGS[one]: True for one in word[1:] if one in FLAGS}
            requested |= {one for one in word[1:] if one in PHASES}
    if requested:
        found["phases"] = ",".join(name for letter, name in PHASES.items() if letter in requested)
    return found


IMPORTER = Importer(
    "mdtest",
    "text output of mdtest, 1.9 and as part of IOR 3 and 4",
    "the standard output; -v adds single iterations",
    recognises,
    read,
)

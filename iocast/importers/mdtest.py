# SPDX-License-Identifier: Apache-2.0
"""mdtest's text output, of 1.9 and of IOR 3 and 4.

The summary has rates over iterations; single iterations are told with -v only ("V-1: main: ..."). Rates count all tasks' items. There are
no latencies of single operations in it. A shared-file run (-S) says "1 file", and how many operations that were is not told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from iocast.importers import Importer
from iocast.importers.record import Phase, Record, place_one_after_the_other
from iocast.importers.source import Source

LAUNCHED = re.compile(r"mdtest-(\S+) was launched with (\d+) total task\(s\) on (\d+) node")
COMMAND = re.compile(r"^(?:V-0: )?Command line used: (.*)$")
STARTED = re.compile(r"-- started at (\d\d)/(\d\d)/(\d{4}) (\d\d:\d\d:\d\d) --")
TASKS = re.compile(r"^(?:V-\d: )?(\d+) tasks, (\d+) (files/directories|files?|directories)")
SUMMARY = re.compile(
    r"^(?:V-\d: )?SUMMARY( rate| time)?[^(]*(?:\(in [^)]*\))?:? ?:?\(of (\d+) iterations\)|^SUMMARY( rate| time)?.*?\(of (\d+) iterations\)"
)
ROW = re.compile(
    r"^\s+(Directory|File|Tree) (creation|stat|read|removal|rename)\s*:?((?:\s+-?(?:[\d.]+(?:e[+-]?\d+)?|nan|inf|-nan))+)\s*$", re.IGNORECASE
)
STONEWALL = re.compile(r"^\s+File create \(stonewall\)")
SINGLE = re.compile(r"^(?:V-1: )?(?:main:)?\s+(Directory|File|Tree) (creation|stat|read|removal|rename)\s*:?\s+([\d.]+) sec,\s+([\d.]+) ops/sec")

OPERATIONS = {
    "File creation": "create", "File stat": "stat", "File read": "read", "File removal": "unlink", "Directory creation": "mkdir",
    "Directory stat": "stat", "Directory rename": "rename", "Directory removal": "rmdir", "Tree creation": "mkdir", "Tree removal": "rmdir",
}  # fmt: skip
# The tool's options and iocast's parameters of the same pattern (workload/patterns/mdtest.cpp).
NUMBERS = {
    "n": "items", "I": "items_per_directory", "b": "branching", "z": "depth", "N": "stride", "w": "write_size", "e": "read_size", "W": "most_seconds",
    "i": "iterations",
}  # fmt: skip
FLAGS = {
    "u": "unique_directory", "L": "leaf_only", "F": "files_only", "D": "directories_only", "S": "shared_files", "y": "sync", "R": "random_order",
}  # fmt: skip
PHASES = {"C": "create", "T": "stat", "E": "read", "r": "remove"}
TITLES = {"creation": "create", "stat": "stat", "read": "read", "removal": "remove", "rename": "rename"}


def recognises(source: Source) -> bool:
    return bool(LAUNCHED.search(source.head)) or (
        "Command line used:" in source.head and bool(re.search(r"\bmdtest\b", source.head)) and "SUMMARY" in source.head
    )


def read(sources: Sequence[Source]) -> list[Record]:
    return [record for source in sources for record in _read_one(source)]


def _read_one(source: Source) -> list[Record]:
    launched = LAUNCHED.search(source.text)
    if launched is None:
        raise source.refuse(1, "the line 'mdtest-... was launched with ... total task(s) on ... node(s)' is missing")
    if "-- finished at" not in source.text:
        raise source.refuse_cut("'-- finished at'")
    records: list[Record] = []
    singles: dict[str, list[tuple[float, float]]] = {}
    tasks, items, shared = int(launched[2]), None, False
    lines = iter(enumerate(source.lines, start=1))
    in_rates, iterations = False, 1
    for number, line in lines:
        if found := TASKS.match(line):
            tasks, items, shared = int(found[1]), int(found[2]), found[2] == "1" and found[3] == "file"
            singles, in_rates = {}, False
        elif found := SINGLE.match(line):
            seconds, rate = (source.number(text, number, "a value") for text in found.group(3, 4))
            singles.setdefault(f"{found[1]} {found[2]}".capitalize(), []).append((seconds, rate))
        elif found := SUMMARY.match(line):
            in_rates = (found[1] or found[3] or "").strip() != "time"
            iterations = int(found[2] or found[4])
            if in_rates:
                records.append(_record(source, launched, tasks))
        elif (found := ROW.match(line)) and in_rates:
            name = f"{found[1]} {found[2]}".capitalize()
            values = [source.number(text, number, f"the rate of {name}") if text.lower() not in ("nan", "-nan") else 0.0 for text in found[3].split()]
            if len(values) < 4:
                raise source.refuse(number, f"{name} has {len(values)} values instead of maximum, minimum, mean and deviation; the line was cut off")
            most, least, mean, deviation = values[-4:]  # versions with per-rank columns have those first
            if mean > 0:
                records[-1].phases += _phases(
                    name, (most, least, mean, deviation), iterations, tasks, None if shared else items, singles.get(name, [])
                )
    if not records or not any(record.phases for record in records):
        raise source.refuse_cut("the summary of rates")
    for record in records:
        if shared:
            record.missing["phases[].operations"] = "mdtest does not say how many operations a shared file (-S) got."
        if iterations > 1 and not singles:
            record.missing["phases[] of single iterations"] = (
                "mdtest prints single iterations with -v only; a phase here is the mean over them, with rate_over_repeats."
            )
        place_one_after_the_other(record.phases)
    return records


def _phases(
    name: str, summary: tuple[float, float, float, float], iterations: int, tasks: int, items: int | None, singles: list[tuple[float, float]]
) -> list[Phase]:
    op = OPERATIONS[name]
    title = f"{name.split()[0].lower()}-{TITLES[name.split()[1]]}"
    if name.startswith("Tree"):
        items = None  # how many directories the tree has is not printed
    if len(singles) == iterations:
        made = []
        for repeat, (seconds, rate) in enumerate(singles, start=1):
            count = items if items is not None else round(seconds * rate) or None
            exact = count / rate if count and rate else seconds or None
            made.append(
                Phase(title, repeat if iterations > 1 else 0, seconds=exact, operations=count, rate=rate, counts={op: count} if count else {})
            )
        return made
    most, least, mean, deviation = summary
    phase = Phase(title, seconds=items / mean if items else None, operations=items, rate=mean, counts={op: items} if items else {})
    if iterations > 1:
        phase.more["rate_over_repeats"] = {"repeats": iterations, "mean": mean, "min": least, "max": most, "standard_deviation": deviation}
    return [phase]


def _record(source: Source, launched: re.Match[str], tasks: int) -> Record:
    total, nodes = int(launched[2]), int(launched[3])
    per_node = total // nodes if total % nodes == 0 else 0
    record = Record(
        name=f"n{tasks}", tool="mdtest", pattern="mdtest", phases=[], version=launched[1], ranks=tasks,
        nodes=nodes if tasks == total and per_node else max(1, tasks // per_node) if per_node and (tasks < per_node or tasks % per_node == 0) else None,
    )  # fmt: skip
    command = next((found[1] for line in source.lines if (found := COMMAND.match(line))), None)
    if command:
        record.command = Source.words(command)
        record.parameters = _parameters(record.command)
    if found := STARTED.search(source.text):
        month, day, year, time = found.groups()
        record.started = f"{year}-{month}-{day}T{time}"
        record.missing["started (zone)"] = "mdtest prints the local time without its zone."
    record.missing |= {
        "phases[].latency.*": "mdtest prints rates, no latencies.",
        "phases[].errors": "mdtest does not count failed operations.",
        "phases[].rank_seconds": "mdtest's summary has no times of single ranks.",
        "phases[].timeline": "mdtest records no single operations.",
        "phases[].slowest": "mdtest records no single operations.",
        "environment": "mdtest does not say where it ran.",
        "seed": "mdtest's summary does not name it.",
    }
    return record


def _parameters(command: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    asked = set()
    words = iter(command[1:])
    for word in words:
        if not re.match(r"^-[A-Za-z]", word):
            continue
        letter, rest = word[1], word[2:].removeprefix("=")
        if letter in NUMBERS:
            text = rest or next(words, "")
            if text.isdigit():
                found[NUMBERS[letter]] = int(text)
        elif letter in "dxaf":  # options with texts
            if not rest:
                next(words, "")
        else:
            found |= {FLAGS[one]: True for one in word[1:] if one in FLAGS}
            asked |= {one for one in word[1:] if one in PHASES}
    if asked:
        found["phases"] = ",".join(name for letter, name in PHASES.items() if letter in asked)
    return found


IMPORTER = Importer(
    "mdtest", "text output of mdtest, 1.9 and as part of IOR 3 and 4", "the standard output; -v adds single iterations", recognises, read
)

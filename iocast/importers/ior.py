# SPDX-License-Identifier: Apache-2.0
"""IOR's results: JSON (-O summaryFormat=JSON) and the text table, of IOR 2, 3 and 4; a log may hold several runs.

Each line of results is one phase: a write or a read by all tasks, with its repeat. An operation is one transfer. A run
is complete when every repetition has its line; IOR as part of IO500 prints no closing summary. The columns IOPS and
Latency(s) are kept under names of their own: IOPS counts the transfers' time alone, and Latency(s) is no mean (without
the number of segments until January 2025, and the smallest over ranks).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypedDict

from iocast.errors import InputError
from iocast.importers import Importer
from iocast.importers.record import Phase, Record, place_one_after_the_other
from iocast.importers.source import Source
from iocast.ground.strict import is_whole

TEXT = re.compile(r"IOR-?(\S*?):? MPI Coordinated Test of Parallel I/O")
TABLE = re.compile(r"^access\s+bw\(MiB/s\)")
CLOSING = re.compile(r"^(?:Run finished|Finished)\s*:")
OPTION = re.compile(r"^\s*([A-Za-z][\w ()]*?)\s*[:=]\s+(.*\S)\s*$")
MOVED = re.compile(r"Using actual aggregate bytes moved\s*= (\d+)")
PRINTED_SIZES = {
    "bytes": 1,
    "byte": 1,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}
LETTERS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
RATE = re.compile(r"-?(?:[\d.,]+(?:e[-+]?\d+)?|nan|inf)$", re.IGNORECASE)
"""A bandwidth in a row of results, also one that can't be."""
OPERATIONS = {"write": "pwrite", "read": "pread"}
PARTS = (("open", "openTime", "open"), ("transfer", "wrRdTime", "wr/rd"), ("close", "closeTime", "close"))
KEPT = {  # options that make a measurement another one, and what they are called here
    "api": "api",
    "access": "access",
    "type": "type",
    "segments": "segments",
    "segmentcount": "segments",
    "xfersize": "transfer_size",
    "transfersize": "transfer_size",
    "blocksize": "block_size",
    "ordering in a file": "ordering_in_a_file",
    "ordering inter file": "ordering_inter_file",
    "stonewallingtime": "stonewalling_time",
    "repetitions": "repeats",
}
LETTERED = {"transfer_size": "t", "block_size": "b", "segments": "s"}
"""Parameters that a command line has exactly, with their letters."""
ALSO = (("ior_iops", "iops"), ("ior_latency", "latency"))
"""Numbers of a phase that are kept beside what others have, with IOR's names."""
NOT_PRINTED = {
    "phases[].latency.*": "IOR prints no distribution of its transfers' times, and its Latency(s) is no mean (see "
    "ior_latency)."
}


def recognises(source: Source) -> bool:
    if TEXT.search(source.head) or re.search(r"^access\s+bw\(MiB/s\)", source.head, re.MULTILINE):
        return True
    return _is_json(source)


def _is_json(source: Source) -> bool:
    return (
        '"tests"' in source.head
        and '"Command line"' in source.head
        and not re.search(r"^access\s+bw\(MiB/s\)", source.head, re.MULTILINE)
    )


def read(sources: Sequence[Source]) -> list[Record]:
    return [record for source in sources for record in (_read_json(source) if _is_json(source) else _read_text(source))]


def command_size(text: str) -> int | None:
    """Bytes of a size as IOR's options have it: "4096", "1m", "512kb"; its letters are binary."""
    found = re.fullmatch(r"=?\s*(\d+)\s*([kmgt]?)(?:i?b)?", text, re.IGNORECASE)
    return int(found[1]) * LETTERS[found[2].lower()] if found else None


def transfer_size(command: str) -> int | None:
    """The transfer size that a command line of IOR asks for."""
    return _command_number(command, "t")


def _command_number(command: str, letter: str) -> int | None:
    """The number or size after an option of a command line of IOR."""
    found = re.search(rf"\s-{letter}\s*=?\s*(\d+\s?[kmgtKMGT]?[iI]?[bB]?)(?=\s|$)", command)
    return command_size(found[1]) if found else None


# ---- JSON


def _read_json(source: Source) -> list[Record]:
    documents: list[tuple[int, Document]] = [
        one for one in source.json_values() if isinstance(one[1], dict) and "tests" in one[1]
    ]
    records = [record for line, document in documents for record in _read_document(source, line, document)]
    if not records:
        raise source.refuse(
            documents[0][0] if documents else 1, "the JSON has no result of a write or read ('tests', 'Results')"
        )
    if source.cut_value is not None:
        records[0].warnings.append(
            f"{source.at(source.cut_value)}: the document that begins here was cut off; it is left out."
        )
    return records


class Test(TypedDict, total=False):
    Parameters: dict[str, object]
    Options: dict[str, object]
    StartTime: str
    Results: object


Document = TypedDict(
    "Document",
    {
        "Version": str,
        "Command line": str,
        "Began": str,
        "Finished": str,
        "tests": list[Test],
        "summary": list[dict[str, object]],
    },
    total=False,
)


def _read_document(source: Source, line: int, document: Document) -> list[Record]:
    records = []
    for test in document.get("tests") or []:
        options = {
            str(k).lower(): v for k, v in {**(test.get("Parameters") or {}), **(test.get("Options") or {})}.items()
        }
        tasks = options.get("tasks") or next(
            (s.get("numTasks") for s in document.get("summary") or [] if s.get("numTasks")), None
        )
        record = _record(document.get("Version"), document.get("Command line"), options, tasks)
        record.started = _started(test.get("StartTime") or document.get("Began"))
        record.elapsed = _elapsed(document.get("Began"), document.get("Finished"), source.at(line))
        repeats: dict[str, int] = {}
        for result in _flat(test.get("Results")):
            access = str(result.get("access"))
            if access not in OPERATIONS:
                continue
            repeats[access] = repeats.get(access, 0) + 1
            numbers = {key: value for key, value in result.items() if isinstance(value, int | float)}
            for key in ("bwMiB", "totalTime"):
                if key not in numbers:
                    raise source.refuse(line, f"a {access} result has no {key}")
            bandwidth, seconds = numbers["bwMiB"], numbers["totalTime"]
            size = record.parameters.get("transfer_size") or 1024 * float(str(result.get("xferKiB") or 0))
            parts = {ours: numbers[theirs] for ours, theirs, _ in PARTS if theirs in numbers}
            whole = _whole(record, bandwidth * 2**20 * seconds)
            phase = _phase(access, repeats[access], bandwidth, seconds, size, whole, parts, source.at(line))
            phase.more |= {ours: numbers[theirs] for ours, theirs in ALSO if theirs in numbers}
            record.phases.append(phase)
        if record.phases:
            records.append(_finish(record))
    return records


def _flat(results: object) -> list[dict[str, object]]:
    if isinstance(results, dict):
        return [results]
    return [one for part in results or [] for one in _flat(part)] if isinstance(results, list) else []


# ---- text


def _read_text(source: Source) -> list[Record]:
    lines = source.lines
    begins = [i for i, line in enumerate(lines) if TEXT.search(line)] or [0]
    records, cut, begun = [], [], []
    for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        tests = _read_run(source, lines[begin:end], begin + 1)
        if not any(record.phases for record in tests):
            cut.append(f"{source.at(begin + 1)}: the run that begins here has no result of a write or read")
        if (early := source.ended_early(begin + 1, begin + _last_line(lines[begin:end]))) and tests:
            begun.append(f"{source.at(early[0])}: IOR ended before its end ('{early[1]}')")
            cut.append(begun[-1])
            continue
        for record in tests:
            if why := _cut(record, lines[begin:end]):
                begun.append(f"{source.at(end)}: {why}")
                cut.append(begun[-1])
            elif record.phases:
                records.append(_finish(record))
    if not records:
        if begun:
            raise InputError(f"{begun[0]}; the file was cut off, or the tool did not finish.")
        raise source.refuse_cut("the first result of a write or read")
    records[0].warnings += [f"{sentence}; this run is left out." for sentence in cut]
    return records


def _last_line(lines: list[str]) -> int:
    """Number of the line with which IOR closes a run, from 1 on; what comes after it is of others, such as the next
    program of a job. The number of all lines where it closes none."""
    closing = [number for number, line in enumerate(lines, start=1) if CLOSING.match(line)]
    return closing[-1] if closing else len(lines)


def _cut(record: Record, lines: list[str]) -> str:
    """Why the run is not complete; empty when every repetition is there."""
    repetitions = int(record.parameters.get("repeats") or 1)
    for access in OPERATIONS:
        number = sum(phase.name == access for phase in record.phases)
        if 0 < number < repetitions:
            return f"there are {number} results of {access} instead of {repetitions}"
    words = record.command or []
    wanted = {name for name, letter in (("write", "-w"), ("read", "-r")) if letter in words}
    if words and not any(re.match(r"-[wrWRf]", word) for word in words):
        wanted = set(OPERATIONS)  # as IOR does without any of them
    absent = wanted - {phase.name for phase in record.phases}
    closed = any(re.match(r"(Finished|Max Write|Max Read|Summary of all tests|Run finished)", line) for line in lines)
    if record.phases and absent and not closed:
        return f"the command asks for {' and '.join(sorted(absent))}, and there is no result of it"
    return ""


def _read_run(source: Source, lines: list[str], first: int) -> list[Record]:
    """The tests of one call of IOR."""
    version = TEXT.search(lines[0])
    records: list[Record] = []
    options: dict[str, str] = {}
    at: dict[str, int] = {}
    columns: list[str] = []
    moved: tuple[int, int] | None = None
    for number, line in enumerate(lines, start=first):
        if TABLE.match(line):
            columns = [re.sub(r"\(.*?\)", "", word).lower() for word in line.split()]
            records.append(_text_record(source, version, first, options, at))
        elif re.match(r"^(Max |Summary of all tests|Operation )", line):
            columns = []  # rows of the closing summary begin with the operation too
        elif found := CLOSING.match(line):
            for record in records:
                record.elapsed = _elapsed(
                    options.get("began", options.get("run began")), line[found.end() :], source.at(number)
                )
        elif not columns:
            if found := OPTION.match(line):
                options[found[1].lower()], at[found[1].lower()] = found[2], number
        elif found := MOVED.search(line):
            moved = int(found[1]), number
        elif (cells := line.split()) and cells[0] in OPERATIONS and len(cells) > 1 and RATE.match(cells[1]):
            if len(cells) != len(columns):
                raise source.refuse(
                    number, f"this result has {len(cells)} columns instead of {len(columns)}; the line was cut off"
                )
            records[-1].phases.append(_row(source, records[-1], number, dict(zip(columns, cells, strict=True)), moved))
            moved = None
    return records


def _row(source: Source, record: Record, number: int, row: Mapping[str, str], moved: tuple[int, int] | None) -> Phase:
    access, where = row["access"], source.at(number)
    bandwidth = source.number(row["bw"], number, "bw")
    parts = {ours: float(row[c]) for ours, _, c in PARTS if re.match(r"^[\d.]+(e[-+]?\d+)?$", row.get(c, ""))}
    seconds = (
        source.number(row["total"], number, "total")
        if "total" in row
        else _without_total(record, bandwidth, sum(parts.values()))
    )
    for ours, column in (("block_size", "block"), ("transfer_size", "xfer")):
        exact = 1024 * source.number(row[column], number, column)  # to a KiB, where an option's two decimals are of TiB
        if abs(float(record.parameters.setdefault(ours, round(exact))) - exact) > 1024:
            record.parameters[ours] = round(exact)
    size = record.parameters["transfer_size"]
    bytes_: int | None = None
    text = ""
    if moved is not None:
        bytes_, text = moved[0], source.at(moved[1])
    elif (whole := _whole(record, bandwidth * 2**20 * seconds)) is not None:
        bytes_, text = whole, f"{record.origin['parameters']} (tasks x segments x block size)"
    phase = _phase(
        access,
        int(source.number(row.get("iter", "0"), number, "iter")) + 1,
        bandwidth,
        seconds,
        size,
        bytes_,
        parts,
        where,
    )
    if text:
        phase.origin |= {"bytes": text} | dict.fromkeys(("operations", "latency"), f"{text} (bytes / transfer size)")
    for ours, theirs in ALSO:
        if row.get(theirs) not in (None, "-", "NA"):
            phase.more[ours] = source.number(row[theirs], number, theirs)
    return phase


def _without_total(record: Record, bandwidth: float, parts: float) -> float:
    """Seconds of a result of IOR 2, which prints no total: bytes over bandwidth, or its parts, which overlap, where
    bytes are not known."""
    segments, block = record.parameters.get("segments", 1), record.parameters.get("block_size")
    whole = (
        record.ranks * segments * block if record.ranks and isinstance(segments, int) and isinstance(block, int) else 0
    )
    return whole / (bandwidth * 2**20) if whole and bandwidth else parts


def _whole(record: Record, about: float) -> int | None:
    """Bytes that all tasks move when nothing ends them early; None when those are not `about` the bytes that bandwidth
    and time say."""
    segments, block = record.parameters.get("segments", 1), record.parameters.get("block_size")
    if not (record.ranks and isinstance(segments, int) and isinstance(block, int) and about):
        return None
    whole = record.ranks * segments * block
    return whole if abs(whole / about - 1) < 0.01 else None


def _text_record(
    source: Source, version: re.Match[str] | None, first: int, options: dict[str, str], at: dict[str, int]
) -> Record:
    command = next((key for key in options if key.startswith("command line")), "")
    record = _record(version[1] if version else None, options.get(command), options, _tasks(options))
    start = "starttime" if "starttime" in options else "began"
    record.started = _started(options.get(start))
    tasks = next((key for key in ("tasks", "clients") if key in options), "")
    record.origin = {
        "ranks": source.at(at.get(tasks, first)),
        "nodes": source.at(at.get("nodes", at.get("clients per node", at.get(tasks, first)))),
    }
    record.origin |= {
        "command": source.at(at.get(command, first)),
        "started": source.at(at.get(start, first)),
        "parameters": source.at(first),
    }
    for theirs, ours in KEPT.items():
        if theirs in at:
            record.origin[f"parameters.{ours}"] = source.at(at[theirs])
    return record


def _tasks(options: dict[str, str]) -> int | None:
    for key in ("tasks", "clients"):
        if found := re.match(r"^(\d+)", options.get(key, "")):
            return int(found[1])
    return None


# ---- both


def _started(text: object) -> str | None:
    """ "Thu Jul  9 20:37:11 2020" as ISO 8601; as it is when it is written otherwise."""
    try:
        return datetime.strptime(" ".join(str(text).split()), "%a %b %d %H:%M:%S %Y").isoformat()
    except ValueError:
        return str(text) if text else None


def _elapsed(began: object, finished: object, where: str) -> tuple[float, str] | None:
    """Seconds between the two, where both are times of day with their date."""
    try:
        begin, end = (datetime.fromisoformat(str(_started(text))) for text in (began, finished))
    except ValueError:
        return None
    return (end - begin).total_seconds(), where


def _record(version: str | None, command: object, options: Mapping[str, object], tasks: object) -> Record:
    entries = [options.get("clients per node"), options.get("clients"), options.get("taskspernode")]
    per_node = next((int(m[1]) for v in entries if v and (m := re.search(r"(\d+)(?: per node\))?$", str(v)))), None)
    nodes = str(options.get("nodes") or "")
    ranks = int(str(tasks)) if tasks else None
    own = int(nodes) if is_whole(nodes) and int(nodes) > 0 else None
    if own is None and ranks and per_node and ranks % per_node == 0:
        own = ranks // per_node
    record = Record(
        f"n{ranks}",
        "IOR",
        [],
        pattern="ior",
        version=version or None,
        ranks=ranks,
        nodes=own if ranks and own and own <= ranks else None,
    )
    record.command = Source.words(str(command)) if command else None
    for theirs, ours in KEPT.items():
        if theirs in options:
            record.parameters[ours] = _size(options[theirs])
    for ours, letter in LETTERED.items():
        if not isinstance(record.parameters.get(ours), int) or ours in _rounded(options):
            if exact := _command_number(str(command or ""), letter):
                record.parameters[ours] = exact
    if "aggregate filesize" in options:
        record.facts["aggregate_file_size"] = _size(options["aggregate filesize"])
    record.missing |= NOT_PRINTED
    return record


def _rounded(options: Mapping[str, object]) -> set[str]:
    """Sizes that are printed with two decimals only, as "219.73 GiB"."""
    return {ours for theirs, ours in KEPT.items() if re.match(r"\d+\.\d", str(options.get(theirs, "")))}


def _size(value: object) -> object:
    """ "16 MiB" as bytes; all else as it is."""
    if (
        isinstance(value, str)
        and (found := re.match(r"^([\d.]+) ?([A-Za-z]+)$", value))
        and found[2].lower() in PRINTED_SIZES
    ):
        return round(float(found[1]) * PRINTED_SIZES[found[2].lower()])
    return int(value) if isinstance(value, str) and is_whole(value) else value


def _phase(
    access: str,
    repeat: int,
    mebibytes: float,
    seconds: float,
    size: float,
    bytes_: int | None,
    parts: dict[str, float],
    where: str,
) -> Phase:
    """`size` of a transfer, `bytes_` in all where they are printed."""
    op = OPERATIONS[access]
    phase = Phase(
        access, repeat, seconds=seconds or None, bytes_per_second=mebibytes * 2**20, bytes=bytes_, origin={"": where}
    )
    if phase.bytes is None and seconds:
        phase.bytes, phase.origin["bytes"] = round(mebibytes * 2**20 * seconds), f"{where} (bandwidth x time)"
    if size > 0:
        phase.rate, phase.origin["rate"] = mebibytes * 2**20 / size, f"{where} (bandwidth / transfer size)"
        phase.more["transfer_size"] = round(size)
        phase.operations = round(phase.bytes / size) or None if phase.bytes else None
        phase.counts = {op: phase.operations} if phase.operations else {}
        phase.origin |= dict.fromkeys(
            ("operations", "latency"), f"{phase.origin.get('bytes', where)} (bytes / transfer size)"
        )
    phase.more |= {"part_seconds": parts, "rate_unit": "bytes"}
    return phase


def _finish(record: Record) -> Record:
    if all(phase.repeat <= 1 for phase in record.phases):
        for phase in record.phases:
            phase.repeat = 0
    record.missing["phases[].start_seconds"] = "IOR prints no start of a phase; phases are placed one after the other."
    place_one_after_the_other(record.phases)
    return record


IMPORTER = Importer(
    "ior", "JSON and text results of IOR 2, 3 and 4", "the JSON summary file, or the standard output", recognises, read
)

# SPDX-License-Identifier: Apache-2.0
"""An IO500 result directory: result_summary.txt, result.txt (INI), and the outputs of the phases beside them where they were kept.

Rates are the scores of the phases: kIOPS of mdtest and find, GiB/s of IOR. How many processes ran is not in the two files; it is read from
the phases' own outputs ("ior-easy-write.txt", "mdtest-easy-write.txt") or must be said.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from iocast.errors import InputError
from iocast.importers import Importer
from iocast.importers.record import Phase, Record, place_one_after_the_other
from iocast.importers.source import Source

RESULT = re.compile(r"^\[RESULT\]\s+(\S+)\s+([\d.]+) (kIOPS|GiB/s|GB/s)\s*: time ([\d.]+) seconds(?P<invalid>\s*\[INVALID\])?")
SCORE = re.compile(r"^\[SCORE ?(INVALID)?\s*\]\s+Bandwidth ([\d.]+) \S+\s*: IOPS ([\d.]+) kiops\s*: TOTAL ([\d.]+)(\s*\[INVALID\])?")
OPERATIONS = {"write": "create", "stat": "stat", "read": "read", "delete": "unlink"}
SIZE = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def recognises(source: Source) -> bool:
    if source.is_directory:
        return any((source.path / name).is_file() for name in ("result_summary.txt", "result.txt"))
    return bool(re.search(r"^\[RESULT\]\s+(ior|mdtest|find)", source.head, re.MULTILINE)) or (
        "config-hash" in source.head and "[ior-easy-write]" in source.head
    )


def read(sources: Sequence[Source]) -> list[Record]:
    return [_read_one(source) for source in sources]


def _read_one(source: Source) -> Record:
    directory = source.path if source.is_directory else source.path.parent
    summary = _file(directory, "result_summary.txt") if source.is_directory else source
    details = _file(directory, "result.txt") if source.is_directory else source if "config-hash" in source.head else None
    phases = _from_summary(summary) if summary is not None and "[RESULT]" in summary.text else []
    ini = _ini(details) if details is not None else None
    if not phases and ini is not None and details is not None:
        phases = _from_ini(ini, details)
    if not phases:
        raise InputError(f"{source.path}:1: there is no finished phase in it ([RESULT] lines, or sections with a score).")
    record = Record("io500", "IO500", phases, pattern="io500")
    if ini is not None:
        _add_details(record, ini)
        record.version = ini.get("run", "version", fallback=None)
    else:
        record.missing["phases[].start_seconds"] = "Only result.txt has the phases' starts; they are placed one after the other."
    score = next((found for line in (summary.lines if summary else []) if (found := SCORE.match(line))), None)
    if score is None and not (ini is not None and ini.has_section("SCORE")):
        raise (summary or details or source).refuse_cut("the score")
    for file in (summary, details):
        if file is not None:
            file.require_last_line()
    if score is not None:
        record.parameters["score"] = {"bandwidth": float(score[2]), "kiops": float(score[3]), "total": float(score[4])}
        if score[1] or score[5]:
            record.warnings.append("IO500 calls this run invalid (stonewall time, data set or phases are not those of the rules).")
    if source.is_directory:
        record.ranks, record.nodes = _placement(directory)
    record.missing |= {
        "phases[].latency.*": "IO500 prints rates, no latencies.",
        "phases[].errors": "IO500 does not count failed operations.",
        "phases[].rank_seconds": "IO500 prints no times of single ranks.",
        "phases[].timeline": "IO500 records no single operations.",
        "phases[].slowest": "IO500 records no single operations.",
        "environment": "IO500's result files do not say what file system was measured.",
        "seed": "IO500's result files do not name it.",
    }
    place_one_after_the_other(phases)
    return record


def _file(directory: Path, name: str) -> Source | None:
    return Source(directory / name) if (directory / name).is_file() else None


def _phase(name: str, score: float, seconds: float, unit: str) -> Phase:
    phase = Phase(name, seconds=seconds)
    kind = name.split("-")[-1]
    if name.startswith("ior"):
        phase.more["bytes_per_second"] = score * (2**30 if unit == "GiB/s" else 10**9)
        return phase
    op = OPERATIONS.get(kind, "find") if name.startswith("mdtest") else "find"
    phase.rate = 1000 * score
    # The score excludes what lies around the measurement, so the count is rate times time only roughly; it stays rate's companion.
    phase.operations = round(phase.rate * seconds) or None
    phase.counts = {op: phase.operations} if phase.operations else {}
    return phase


def _from_summary(source: Source) -> list[Phase]:
    phases = []
    for number, line in enumerate(source.lines, start=1):
        if not line.startswith("[RESULT]"):
            continue
        found = RESULT.match(line)
        if found is None:
            raise source.refuse(number, "this is no whole result ('[RESULT] name value unit : time ... seconds'); the line was cut off")
        score, seconds = source.number(found[2], number, "the score"), source.number(found[4], number, "the time")
        phases.append(_phase(found[1], score, seconds, found[3]))
        if found["invalid"]:
            phases[-1].more["invalid"] = True
    return phases


def _ini(source: Source) -> configparser.ConfigParser:
    ini = configparser.ConfigParser(strict=False, interpolation=None, comment_prefixes=(";",), inline_comment_prefixes=None)
    try:
        ini.read_string("[run]\n" + source.text)
    except configparser.ParsingError as error:
        line, what = error.errors[0]
        raise source.refuse(line - 1, f"this line is no 'key = value' ({what}); the file may have been cut off") from error
    except configparser.Error as error:
        raise source.refuse(1, f"this is no INI file ({error.message})") from error
    return ini


def _from_ini(ini: configparser.ConfigParser, source: Source) -> list[Phase]:
    phases = []
    for name in ini.sections():
        if re.match(r"^(ior|mdtest|find)", name) and ini.has_option(name, "score") and ini.has_option(name, "t_delta"):
            line = next((n for n, text in enumerate(source.lines, start=1) if text.strip() == f"[{name}]"), 1)
            score, seconds = (source.number(ini.get(name, key).split()[0], line, key) for key in ("score", "t_delta"))
            if score > 0:
                phases.append(_phase(name, score, seconds, "GiB/s"))
    return phases


def _add_details(record: Record, ini: configparser.ConfigParser) -> None:
    """Starts, options, and of IOR phases the rate of transfers."""
    first: datetime | None = None
    for phase in record.phases:
        if not ini.has_section(phase.name):
            continue
        start, command = ini.get(phase.name, "t_start", fallback=""), ini.get(phase.name, "exe", fallback="")
        try:
            when = datetime.strptime(start, "%Y-%m-%d %H:%M:%S")
            first = first or when
            phase.start_seconds = (when - first).total_seconds()
        except ValueError:
            pass
        size = re.search(r" -t ?(\d+)([kmg]?)\b", command)
        if size and "bytes_per_second" in phase.more and phase.seconds:
            phase.rate = phase.more["bytes_per_second"] / (int(size[1]) * SIZE[size[2]])
            phase.operations = round(phase.rate * phase.seconds) or None
            phase.counts = {"pwrite" if phase.name.endswith("write") else "pread": phase.operations} if phase.operations else {}
        if command:
            phase.more["command"] = Source.words(command)
    if first is not None:
        record.started = first.isoformat()
        record.missing["started (zone)"] = "IO500 prints the local time without its zone."


def _placement(directory: Path) -> tuple[int | None, int | None]:
    """Processes and nodes from the outputs of IOR and mdtest in the directory."""
    for path in sorted(directory.glob("*.txt")):
        text = path.read_text(errors="replace")
        if found := re.search(r"was launched with (\d+) total task\(s\) on (\d+) node", text):
            return int(found[1]), int(found[2])
        tasks, nodes = re.search(r"^tasks\s*: (\d+)$", text, re.MULTILINE), re.search(r"^nodes\s*: (\d+)$", text, re.MULTILINE)
        if tasks:
            per_node = re.search(r"^clients per node\s*: (\d+)$", text, re.MULTILINE)
            ranks = int(tasks[1])
            return ranks, int(nodes[1]) if nodes else ranks // int(per_node[1]) if per_node and ranks % int(per_node[1]) == 0 else None
    return None, None


IMPORTER = Importer("io500", "result directory of IO500, or its result_summary.txt or result.txt", "the directory", recognises, read)

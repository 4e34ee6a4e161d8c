# SPDX-License-Identifier: Apache-2.0
"""fs_mark's table: one line an iteration. With -v each also has minimum, mean and maximum of the system calls, in
microseconds.

Files are created, written, and with some sync methods synced; "Files/sec" counts whole files and leaves out the closing
deletion. The column Count adds up over iterations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from iocast.importers import Importer
from iocast.importers.record import Latency, Phase, Record, place_one_after_the_other
from iocast.importers.source import Source
from iocast.ground.strict import is_whole

COMMAND = re.compile(r"^#\s+(\S*fs_mark\s.*)$", re.MULTILINE)
VERSION = re.compile(r"^#\s+Version (\S+), (\d+) thread\(s\) starting at (.*)$", re.MULTILINE)
CALLS = (
    "create.open",
    "create.write",
    "fsync",
    "sync",
    "create.close",
    "unlink",
)  # CREAT WRITE FSYNC SYNC CLOSE UNLINK


def recognises(source: Source) -> bool:
    return "fs_mark" in source.head and "FSUse%" in source.head


def read(sources: Sequence[Source]) -> list[Record]:
    return [_read_one(source) for source in sources]


def _read_one(source: Source) -> Record:
    version, command = VERSION.search(source.text), COMMAND.search(source.text)
    if version is None:
        raise source.refuse(1, "the line '# Version ..., ... thread(s) starting at ...' is missing")
    phases: list[Phase] = []
    columns = before = 0
    for number, line in source.numbered:
        cells = line.split()
        if line.startswith("FSUse%"):
            columns = 5 + 3 * line.count("(Min/Avg/Max)")
        elif columns and cells and is_whole(cells[0].rstrip("%")):
            if len(cells) != columns:
                raise source.refuse(
                    number, f"this iteration has {len(cells)} columns instead of {columns}; the line was cut off"
                )
            values = [source.number(cell, number, "a column") for cell in cells]
            files, rate = int(values[1]) - before, values[3]
            before = int(values[1])
            phase = Phase(
                "create",
                len(phases) + 1,
                operations=files,
                rate=rate,
                seconds=files / rate if rate else None,
                counts={"create": files},
            )
            phase.origin[""] = source.at(number)
            phase.origin |= dict.fromkeys(
                ("seconds", "operations", "latency"), f"{source.at(number)} (files less those before, / rate)"
            )
            for i, tag in enumerate(CALLS if columns > 5 else ()):
                least, mean, most = (value * 1e-6 for value in values[5 + 3 * i : 8 + 3 * i])
                if most > 0:
                    phase.latency[tag] = Latency(files, {"min": least, "mean": mean, "max": most})
            phases.append(phase)
    if not phases:
        raise source.refuse_cut("the first iteration's line")
    source.require_last_line()
    if len(phases) == 1:
        phases[0].repeat = 0
    record = Record("fs_mark", "fs_mark", phases, version=version[1], ranks=int(version[2]), nodes=1)
    record.origin["ranks"] = record.origin["nodes"] = source.at(source.line_at(version.start()))
    record.command = Source.words(command[1]) if command else None
    record.missing["started"] = "fs_mark prints its start as words without a zone."
    for pattern, name in (
        (r"Files info: size (\d+) bytes", "object_size"),
        (r"IO size of (\d+) bytes", "transfer_size"),
    ):
        if found := re.search(pattern, source.text):
            record.parameters[name] = int(found[1])
    if found := re.search(r"Sync method: (.*)$", source.text, re.MULTILINE):
        record.parameters["sync_method"] = found[1]
    record.missing |= {
        "phases[].latency.*.quantiles": "fs_mark prints minimum, mean and maximum only, and those with -v.",
        "phases[].errors": "fs_mark ends at the first failed operation.",
    }
    place_one_after_the_other(phases)
    return record


IMPORTER = Importer(
    "fs_mark",
    "table of fs_mark, best with -v",
    "the standard output or the log file",
    recognises,
    read,
    begins=re.compile(r"^#\s+\S*fs_mark\s|^#\s+Version "),
    ends=re.compile(r"^FSUse%"),
)

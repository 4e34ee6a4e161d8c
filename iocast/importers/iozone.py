# SPDX-License-Identifier: Apache-2.0
"""iozone's throughput mode (-t, also over a cluster with -+m): a phase for each of its tests.

"Children see throughput for N writers" is the sum of the processes' own rates; iozone's kB are 1024 bytes, or it says
otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from iocast.importers import Importer
from iocast.importers.record import Phase, Record, place_one_after_the_other
from iocast.importers.source import Source

SEEN = re.compile(r"^\s*Children see throughput for\s+(\d+) (.*?)\s*=\s*([\d.]+) (kB|KB|MB|ops)/sec")
COMMAND = re.compile(r"^\s*Command line used: (.*\S)\s*$")
EACH = re.compile(r"^\s*Each process writes a (\d+) k[Bb]yte file in (\d+) k[Bb]yte records")
VERSION = re.compile(r"Version \$Revision: ([\d.]+) \$")
SIZES = {"kB": 2**10, "KB": 2**10, "MB": 2**20}
WORDS = {
    "initial writers": "write",
    "rewriters": "rewrite",
    "readers": "read",
    "re-readers": "reread",
    "random readers": "random-read",
    "random writers": "random-write",
    "mixed workload": "mixed",
    "reverse readers": "reverse-read",
    "stride readers": "stride-read",
}


AUTOMATIC = re.compile(r"^[ \t]*(?:kB|KB)[ \t]+reclen[ \t]+write\b", re.MULTILINE)
"""The head of the table of one process, by sizes of files and records."""


def recognises(source: Source) -> bool:
    if "Iozone" not in source.head:
        return False
    seen = "Children see throughput" in source.head and any(SEEN.match(line) for line in source.lines)
    return seen or bool(AUTOMATIC.search(source.text))


def read(sources: Sequence[Source]) -> list[Record]:
    return [_read_one(source) for source in sources]


def _read_one(source: Source) -> Record:
    if table := AUTOMATIC.search(source.text):
        raise source.refuse(
            source.line_at(table.start()),
            "this is iozone's table of one process by sizes of files and records (-a), which says nothing of several "
            "ranks; throughput mode (iozone -t N) is imported",
        )
    record = Record("iozone", "iozone", [], pattern="iozone")
    for number, line in source.numbered:
        if found := SEEN.match(line):
            name = WORDS.get(found[2], re.sub(r"[^a-z0-9]+", "-", found[2].lower()))
            value = source.number(found[3], number, "the throughput")
            phase = Phase(name, origin={"": source.at(number)})
            record.ranks, record.origin["ranks"] = int(found[1]), source.at(number)
            if found[4] == "ops":
                phase.rate = value
            else:
                phase.bytes_per_second = value * SIZES[found[4]]
                size = record.parameters.get("transfer_size")
                if size:
                    phase.rate, phase.more["transfer_size"], phase.more["rate_unit"] = (
                        phase.bytes_per_second / size,
                        size,
                        "bytes",
                    )
                    phase.origin |= {
                        "rate": f"{source.at(number)} (throughput / record size)",
                        "transfer_size": record.origin["parameters.transfer_size"],
                    }
            if value > 0:
                record.phases.append(phase)
        elif found := EACH.match(line):
            record.parameters |= {"file_size": int(found[1]) * 1024, "transfer_size": int(found[2]) * 1024}
            record.origin |= dict.fromkeys(("parameters.file_size", "parameters.transfer_size"), source.at(number))
        elif found := COMMAND.match(line):
            record.command, record.origin["command"] = Source.words(found[1]), source.at(number)
        elif found := VERSION.search(line):
            record.version = found[1]
    if not re.search(r"^[ \t]*iozone test complete\.", source.text, re.MULTILINE):
        raise source.refuse_cut("'iozone test complete.'")
    source.require_last_line()
    if not record.phases:
        raise source.refuse_cut("the first 'Children see throughput for'")
    record.missing |= {
        "phases[].operations": "iozone prints throughputs of its processes together, which end at different times.",
        "phases[].seconds": "iozone's throughput mode prints no times.",
        "phases[].errors": "iozone ends at the first failed operation.",
        "phases[].rank_seconds": "iozone prints extremes of its processes' throughputs.",
        "started": "iozone prints its start as words without a zone.",
    }
    place_one_after_the_other(record.phases)
    return record


IMPORTER = Importer(
    "iozone",
    "throughput mode of iozone (-t)",
    "the standard output",
    recognises,
    read,
    begins=re.compile(r"Iozone: Performance Test|^\s+Run began:|^\s+Command line used:"),
    ends=re.compile(r"^iozone test complete\."),
)

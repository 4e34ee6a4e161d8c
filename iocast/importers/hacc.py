# SPDX-License-Identifier: Apache-2.0
"""HACC-IO's report: bandwidth, bytes and time of a checkpoint and a restart. Its MB are 2^20 bytes; it does not print
its ranks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iocast.importers import Importer
from iocast.importers.record import Phase, Record, place_one_after_the_other
from iocast.importers.source import Source

RESULT = re.compile(
    r"^\s*(?:WRITE|READ) (Checkpoint|Restart) Perf: ([\d.]+) BW\[MB/s\] (\d+) Bytes ([\d.]+) MaxTime\[sec\]\s*$"
)


def recognises(source: Source) -> bool:
    return "BW[MB/s]" in source.head and any(RESULT.match(line) for line in source.lines)


def read(sources: Sequence[Source]) -> list[Record]:
    return [_read_one(source) for source in sources]


def _read_one(source: Source) -> Record:
    source.require_last_line()
    phases = []
    for number, line in source.numbered:
        if found := RESULT.match(line):
            seconds = source.number(found[4], number, "the time")
            phase = Phase(
                found[1].lower(), seconds=seconds or None, bytes=int(found[3]), origin={"": source.at(number)}
            )
            phase.bytes_per_second = source.number(found[2], number, "the bandwidth") * 2**20
            phase.more["rate_unit"] = "bytes"
            phases.append(phase)
    if not phases:
        raise source.refuse_cut("the line 'WRITE Checkpoint Perf'")
    if "CONTENTS VERIFIED" not in source.text and any(phase.name == "restart" for phase in phases):
        raise source.refuse_cut("'CONTENTS VERIFIED'")
    record = Record("hacc", "HACC-IO", phases, pattern="hacc-io")
    record.missing |= {
        "workload.parameters": "HACC-IO prints no options.",
        "phases[].operations": "HACC-IO prints bytes, not how many operations moved them.",
        "phases[].errors": "HACC-IO ends at the first failed operation.",
        "phases[].rank_seconds": "HACC-IO prints the longest time of a rank.",
    }
    place_one_after_the_other(phases)
    return record


IMPORTER = Importer("hacc", "report of HACC-IO", "the standard output", recognises, read)

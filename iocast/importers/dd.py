# SPDX-License-Identifier: Apache-2.0
"""dd's closing lines: one process, one file, blocks one after the other."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iocast.importers import Importer
from iocast.importers.record import Phase, Record
from iocast.importers.source import Source

RECORDS = re.compile(r"^(\d+)\+(\d+) records (in|out)$")
COPIED = re.compile(r"^(\d+) bytes(?: \(.*?\))? (?:copied, |transferred in )([\d.,]+(?:e-?\d+)?) s(?:ecs|econds)?\b")


def recognises(source: Source) -> bool:
    return bool(re.search(r"^\d+\+\d+ records out$", source.head, re.MULTILINE))


def read(sources: Sequence[Source]) -> list[Record]:
    return [_read_one(source) for source in sources]


def _read_one(source: Source) -> Record:
    phases: list[Phase] = []
    records: tuple[int, int] | None = None
    for number, line in source.numbered:
        if found := RECORDS.match(line):
            records = int(found[1]) + int(found[2]), number
        elif (found := COPIED.match(line)) and records is not None:
            size, seconds = int(found[1]), source.number(found[2].replace(",", "."), number, "the time")
            count, counted = records
            phase = Phase(
                "copy",
                len(phases) + 1,
                seconds=seconds or None,
                operations=count or None,
                bytes=size,
                origin={"": source.at(number)},
            )
            if seconds:
                phase.rate, phase.bytes_per_second = count / seconds, size / seconds
                phase.more["rate_unit"] = "bytes"
            phase.origin |= {
                "operations": source.at(counted),
                "rate": f"{source.at(counted)} / {source.at(number)} (records / time)",
            }
            phase.origin["bytes_per_second"] = f"{source.at(number)} (bytes / time)"
            if count and size % count == 0:
                phase.more["transfer_size"], phase.origin["transfer_size"] = (
                    size // count,
                    f"{source.at(number)} / {source.at(counted)} (bytes / records)",
                )
            phases.append(phase)
            records = None
    if not phases:
        raise source.refuse_cut("the line 'N bytes copied'")
    if len(phases) == 1:
        phases[0].repeat = 0
    record = Record("dd", "dd", phases, pattern="dd", ranks=1, nodes=1)
    record.origin = dict.fromkeys(("ranks", "nodes"), f"{phases[0].origin['']} (dd is one process)")
    sizes = {phase.more.get("transfer_size") for phase in phases}
    if len(sizes) == 1 and None not in sizes:
        record.parameters["transfer_size"] = sizes.pop()
        record.origin["parameters"] = phases[0].origin["transfer_size"]
    record.warnings.append(
        "dd does not say whether it read or wrote what is measured, nor whether the page cache or a sync was in it."
    )
    record.missing |= {
        "phases[].errors": "dd ends at the first failed operation.",
        "phases[].rank_seconds": "dd is one process.",
        "seed": "dd draws nothing at random.",
    }
    return record


IMPORTER = Importer("dd", "closing lines of dd", "the standard error", recognises, read)

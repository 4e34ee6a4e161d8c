# SPDX-License-Identifier: Apache-2.0
"""db_bench of RocksDB and LevelDB: a phase for each of its benchmarks. It does not print its threads.

RocksDB prints operations a second of all threads; LevelDB microseconds an operation, of one thread. MB are 2^20 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from iocast.importers import Importer
from iocast.importers.record import Latency, Phase, Record, place_one_after_the_other
from iocast.importers.source import Source
from iocast.ground.strict import is_whole

RESULT = re.compile(
    r"^(\w+)\s+:\s+([\d.]+) micros/op(?:\s+(\d+) ops/sec)?(?:\s+([\d.]+) seconds (\d+) operations)?;?(?:\s+([\d.]+) "
    r"MB/s)?(?:\s*\(.*\))?\s*;?\s*$"
)
OPTION = re.compile(r"^(Keys|Values|Entries|Prefix|Compression|Compression sampling rate|Memtablerep):\s+(\S+)")
VERSION = re.compile(r"^(RocksDB|LevelDB):\s+version (\S+)")
PERCENTILES = re.compile(r"^Percentiles: P50: ([\d.]+) P75: ([\d.]+) P99: ([\d.]+) P99\.9: ([\d.]+)")


def recognises(source: Source) -> bool:
    return "micros/op" in source.head and any(RESULT.match(line) for line in source.lines)


def read(sources: Sequence[Source]) -> list[Record]:
    return [_read_one(source) for source in sources]


def _read_one(source: Source) -> Record:
    source.require_last_line()
    record = Record("db_bench", "db_bench", [], pattern="db_bench", nodes=1)
    record.origin["nodes"] = f"{source.at(1)} (db_bench is one process)"
    for number, line in source.numbered:
        if found := RESULT.match(line):
            record.phases.append(_phase(source, number, found, sum(p.name == found[1] for p in record.phases)))
        elif (found := PERCENTILES.match(line)) and record.phases:
            phase = record.phases[-1]
            known = dict(zip(("q50", "q75", "q99", "q999"), (float(v) * 1e-6 for v in found.groups()), strict=True))
            phase.latency[phase.name] = Latency(phase.operations, known)
            phase.origin |= {f"latency.{phase.name}.{key}": source.at(number) for key in known}
        elif found := OPTION.match(line):
            key = found[1].lower().replace(" ", "_")
            record.parameters[key] = int(found[2]) if is_whole(found[2]) else found[2]
            record.origin[f"parameters.{key}"] = source.at(number)
        elif found := VERSION.match(line):
            record.version = f"{found[1]} {found[2]}"
    if not record.phases:
        raise source.refuse_cut("the first benchmark's line with 'micros/op'")
    record.missing |= {
        "started": "db_bench prints its date without a zone.",
        "phases[].operations": "Versions of db_bench before RocksDB 7 do not print how many operations there were.",
        "phases[].latency.*": "db_bench prints percentiles with --histogram only.",
        "phases[].errors": "db_bench ends at the first failed operation.",
    }
    place_one_after_the_other(record.phases)
    return record


def _phase(source: Source, number: int, found: re.Match[str], before: int) -> Phase:
    phase = Phase(found[1], before, origin={"": source.at(number)})
    micros = source.number(found[2], number, "micros/op")
    phase.rate = source.number(found[3], number, "ops/sec") if found[3] else 1e6 / micros if micros else None
    if not found[3]:
        phase.origin["rate"] = f"{source.at(number)} (1 / time of an operation)"
    if found[4]:
        phase.seconds, phase.operations = source.number(found[4], number, "seconds") or None, int(found[5]) or None
        phase.counts = {phase.name: int(found[5])} if phase.operations else {}
    if found[6]:
        phase.bytes_per_second = source.number(found[6], number, "MB/s") * 2**20
    return phase


IMPORTER = Importer("db_bench", "output of db_bench of RocksDB and LevelDB", "the standard output", recognises, read)

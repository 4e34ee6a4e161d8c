# SPDX-License-Identifier: Apache-2.0
"""A table of trainings, as lists of MLPerf Storage are: CSV with a header, one configuration a line.

Columns: `workload`, `accelerator`, `accelerators` (how many), the utilisation after the first step as `utilisation` (0
to 1) or `utilisation_percent`, and one of `samples_per_second`, `bytes_per_second` and `MB_per_second` of all
accelerators (DLIO's MB are 2^20 bytes); of choice `hosts`. A name may begin with `mean_`. Further columns become
parameters: `system` tells systems apart, and so does each other one that has words."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from difflib import get_close_matches

from iocast.importers import Importer
from iocast.importers.dlio import accelerators_of
from iocast.importers.record import Phase, Record
from iocast.importers.results import is_result
from iocast.importers.source import Source
from iocast.ground.strict import is_whole
from iocast.training.tasks import task_of

SHARES = {"utilisation": 1.0, "utilisation_percent": 0.01}
RATES = {"samples_per_second": 1.0, "bytes_per_second": 1.0, "MB_per_second": 2.0**20}
NEEDED = ("workload", "accelerator", "accelerators")


def _columns(line: str) -> list[str]:
    return [cell.strip().strip('"').removeprefix("mean_") for cell in next(csv.reader([line]), [])]


def recognises(source: Source) -> bool:
    names = set(_columns(source.head.split("\n", 1)[0].rstrip("\r")))
    return "accelerators" in names and bool(names & set(SHARES)) and bool(names & set(RATES))


def nearly(source: Source) -> str:
    """Which column a table lacks that has at least two of a table of trainings, as a sentence with the nearest name in
    it; "" where it has fewer."""
    names = _columns(source.head.split("\n", 1)[0].rstrip("\r"))
    groups = [*((name,) for name in NEEDED), tuple(SHARES), tuple(RATES)]
    lacking = [group for group in groups if not set(group) & set(names)]
    known = {*NEEDED, *SHARES, *RATES}
    if recognises(source) or not lacking or len(known & set(names)) < 2 or "workload" not in names:
        return ""
    sentences = []
    for group in lacking:
        near = [one for name in group for one in get_close_matches(name, set(names) - known, n=1, cutoff=0.75)]
        wanted = f"'{group[0]}'" + "".join(f" or '{name}'" for name in group[1:])
        sentences.append(f"no column {wanted}" + (f" ('{near[0]}' is near it)" if near else ""))
    return f"this is nearly a table of trainings: it has {' and '.join(sentences)}."


def read(sources: Sequence[Source]) -> list[Record]:
    return [record for source in sources for record in _read_one(source)]


def _read_one(source: Source) -> list[Record]:
    lines = [(number, line) for number, line in source.numbered if line.strip()]
    names = _columns(lines[0][1])
    lacking = [name for name in NEEDED if name not in names]
    if lacking:
        raise source.refuse(1, f"the table has no column {' and no column '.join(lacking)}")
    if len(set(names)) < len(names):
        raise source.refuse(1, "a column's name is there twice")
    records = []
    for number, line in lines[1:]:
        cells = [cell.strip() for cell in next(csv.reader([line]))]
        if len(cells) != len(names):
            raise source.refuse(number, f"this line has {len(cells)} cells, the header {len(names)}")
        records.append(_record(source, number, dict(zip(names, cells, strict=True))))
    source.require_last_line()
    if not records:
        raise source.refuse(1, "there is no result below the header")
    return records


def _record(source: Source, number: int, row: dict[str, str]) -> Record:
    count = _count(source, row["accelerators"], number, "accelerators")
    hosts = _count(source, row["hosts"], number, "hosts") if row.get("hosts") else None
    name, scale = next((one, by) for one, by in SHARES.items() if one in row)
    share = source.number(row[name], number, name) * scale
    if not 0 < share <= 1:
        raise source.refuse(
            number,
            f"{name} is {row[name]}; a utilisation is above 0 and at most {1 / scale:g}"
            + (", and 0 says nothing of how long a step waits" if share == 0 else ""),
        )
    if name == "utilisation_percent" and share <= 0.01:
        raise source.refuse(
            number, f"{name} is {row[name]}; a utilisation from 0 to 1 has the column 'utilisation', not this one"
        )
    rate_name = next(one for one in RATES if row.get(one)) if any(row.get(one) for one in RATES) else None
    if rate_name is None:
        raise source.refuse(number, f"this line has no rate: {', '.join(RATES)}")
    rate = source.number(row[rate_name], number, rate_name) * RATES[rate_name]
    if rate <= 0:
        raise source.refuse(number, f"{rate_name} is {row[rate_name]}; a measurement is above zero")
    samples, moved = (rate, None) if rate_name == "samples_per_second" else (None, rate)
    task = task_of(row["workload"], row["accelerator"])
    found = accelerators_of(count, share, samples, moved, task)
    phase = Phase("train", start_seconds=0.0, rate=found.get("samples_per_second", rate), bytes_per_second=moved)
    if "samples_per_second" not in found:
        phase.more["rate_unit"] = "bytes"
    phase.more["accelerators"] = found
    phase.origin[""] = source.at(number)
    record = Record(f"{number:04d}-{count}", "MLPerf Storage", [phase], pattern="training", ranks=count, nodes=hosts)
    record.origin = dict.fromkeys(("ranks", "nodes", "parameters"), source.at(number))
    numbers = {*SHARES, *RATES, "accelerators", "hosts", "runs", "cv_percent"}
    further = {key: cell for key, cell in row.items() if key not in numbers and cell}
    record.parameters = {key: cell for key, cell in further.items() if not is_result(key, [cell])}
    record.facts = {key: cell for key, cell in further.items() if key not in record.parameters}
    record.speaker = "A table of trainings"
    record.missing = {"phases[].operations": "A table of trainings has rates; how many samples were read is not in it."}
    return record


def _count(source: Source, text: str, number: int, name: str) -> int:
    if not is_whole(text) or int(text) < 1:
        raise source.refuse(number, f"{name} is '{text}', which is no number of at least 1")
    return int(text)


IMPORTER = Importer(
    "training-table",
    "CSV table of trainings: workload, accelerator, accelerators, utilisation, rate",
    "the file",
    recognises,
    read,
    nearly=nearly,
)

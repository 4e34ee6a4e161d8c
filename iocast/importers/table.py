# SPDX-License-Identifier: Apache-2.0
"""A table of results typed from a paper, a list or a tender: CSV with a header, one run a line.

Columns: `rate` (a second, of all ranks) and two of `nodes`, `ppn`, `ranks`; of choice `unit` of the rate (operations,
bytes, KiB, MB, ...), `phase` (benchmark), `operation`, `operations` (how many), `waiting_factor`, `cores` and `memory`
of a node, `working_set` (memory and working set in bytes, or with a unit such as 16GiB), `workload`, `label`, and the
operation's latencies in seconds: `mean`, `min`, `q25`, `q50`, `q75`, `q90`, `q95`, `q99`, `q999`, `max`. An empty cell
was not reported. Further columns become parameters of the workload: runs that differ in one are different measurements.

A line without a phase has its operation as phase, and a phase with several operations is one phase for each: rates of
different operations are no repeats of one another. With the column `run` lines of the same run, placement and settings
are one run: its phases, their repeats (column `repeat`, else in the order of the lines) and the operations of each.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any

from iocast.errors import InputError
from iocast.importers import Importer
from iocast.importers.record import SUMMARY, Latency, Phase, Record
from iocast.importers.results import is_result
from iocast.importers.source import Source
from iocast.runs.question import SCALES
from iocast.ground.strict import is_whole

PER_SECOND = re.compile(r"(?:_per_|/)s(?:ec|econd)?$")
"""End of a rate's name."""
LATENCIES = (*SUMMARY, "q90")
MACHINE = ("unit", "cores", "memory", "working_set")
KNOWN = (
    *MACHINE,
    "nodes",
    "ppn",
    "ranks",
    "rate",
    "phase",
    "operation",
    "operations",
    "waiting_factor",
    "workload",
    "label",
    "run",
    "repeat",
    *LATENCIES,
)
TEXTS = ("unit", "phase", "operation", "workload", "label", "run")
"""Columns of words; the other ones have numbers or sizes."""


UNITS = f"operations, bytes, {', '.join(unit for unit in SCALES if unit.endswith('B'))}; each may end in /s"
"""Values of the column `unit`."""
NOT_OF_A_NAME = r"[^A-Za-z0-9._=+-]+"
"""Characters that names of phases, operations and workloads can't have."""
THOUSANDS = ("k", "K", "M", "G")
"""Letters after a number, of which `Source.number` names the whole number."""


def recognises(source: Source) -> bool:
    first = next((line for line in source.head.splitlines() if _is_row(line)), "")
    columns = [cell.strip().strip('"') for cell in first.split(",")]
    return "rate" in columns and len({"nodes", "ppn", "ranks"} & set(columns)) >= 2


def _is_row(line: str) -> bool:
    """Not so a comment, and Excel's line of the separator."""
    return bool(line.strip()) and not line.lstrip().startswith("#") and not re.fullmatch("sep=.", line.strip())


def nearly(source: Source) -> str:
    """What keeps a file whose first line has at least two of the columns from being a table, as a sentence; "" where it
    has fewer."""
    first = next((line for line in source.head.splitlines() if _is_row(line)), "")
    separator = max(",;\t|", key=first.count)
    columns = [cell.strip().strip('"') for cell in first.split(separator)]
    needed = ("rate", "nodes", "ppn", "ranks")
    others = [name for name in columns if name not in KNOWN]
    alike = {right: found for right in needed if right not in columns and (found := _alike(right, others))}
    if len((set(columns) | set(alike)) & set(needed)) < 2:
        return ""
    differs = []
    for right, names in alike.items():
        shown = " or ".join(f"'{name}'" for name in names)
        differs.append(f"column{'s' * (len(names) > 1)} {shown} for '{right}'")
    if separator != ",":
        shown = "tabs" if separator == "\t" else f"'{separator}'"
        differs.append(f"{shown} between cells for commas")
    return (
        f"this is nearly a table of results, with {' and '.join(differs)}. " if differs else "this is nearly a table. "
    ) + "A table has commas, the column rate, and two of nodes, ppn and ranks."


def _alike(right: str, names: Sequence[str]) -> list[str]:
    """Those of other columns that this one is the likeliest to be: with its word in them, a rate by its unit, or nearly
    spelt so."""
    with_word = [name for name in names if right in name.lower().split("_")]
    by_unit = [name for name in names if right == "rate" and PER_SECOND.search(name.lower())]
    if with_word or by_unit:
        return with_word or by_unit
    close = get_close_matches(right, [name.lower() for name in names], n=1, cutoff=0.75)
    return [name for name in names if name.lower() in close]


def read(sources: Sequence[Source]) -> list[Record]:
    return [record for source in sources for record in _read_one(source)]


def _read_one(source: Source) -> list[Record]:
    lines = [(number, line) for number, line in source.numbered if _is_row(line)]
    rows = csv.reader([line for _, line in lines])
    header: list[str] = []
    near: dict[str, str] = {}
    found: list[tuple[int, dict[str, str]]] = []
    renamed: dict[str, str] = {}
    called_so: dict[tuple[str, str], str] = {}
    for (number, _), cells in zip(lines, rows, strict=False):
        cells = [cell.strip() for cell in cells]
        if not header:
            header = cells
            if len(set(header)) < len(header):
                raise source.refuse(number, "a column's name is there twice")
            near = {
                name: next((known for known in KNOWN if known not in header and _differs_by_one(name, known)), "")
                for name in header
            }
            if "rate" not in header or len({"nodes", "ppn", "ranks"} & set(header)) < 2:
                raise source.refuse(number, "the header needs the column rate and two of nodes, ppn and ranks")
            continue
        if cells == header:
            continue  # of another table that was appended
        if len(cells) != len(header):
            raise source.refuse(
                number, f"this line has {len(cells)} cells, the header {len(header)}; a cell with a comma needs quotes"
            )
        row = {name: cell for name, cell in zip(header, cells, strict=True) if cell}
        for name in ("phase", "operation", "workload"):
            if "/" in row.get(name, ""):
                continue  # it would lead elsewhere, and is refused with its line
            if name not in row:
                continue
            plain = re.sub(NOT_OF_A_NAME, "-", row[name]).strip("-.") or "unnamed"
            if (other := called_so.setdefault((name, plain), row[name])) != row[name]:
                raise source.refuse(
                    number,
                    f"{name} '{row[name]}' would be {plain}, as '{other}' above; names have letters, digits and . _ = "
                    "+ -: give these two different ones",
                )
            if plain != row[name]:
                renamed[row[name]] = row[name] = plain
        found.append((number, row))
    source.require_last_line()
    kept = {name: {row[name] for _, row in found if name in row} for name in header if name not in KNOWN}
    results = [name for name, cells in kept.items() if is_result(name, cells)]
    further = [name for name in kept if name not in results]
    if not found:
        raise source.refuse(lines[-1][0] if lines else 1, "there is no result below the header")
    first = lines[0][0]
    for name, meant in near.items():
        if meant and all(_may_be(meant, row[name]) for _, row in found if name in row):
            raise source.refuse(
                first, f"the column '{name}' is nearly '{meant}'; write that, or a name that is unlike it"
            )
    operations: dict[str, set[str]] = {}
    for _, row in found:
        if "run" not in row:  # a run's operations stay together
            operations.setdefault(_named_phase(row), set()).add(row.get("operation", ""))
    records = _in_runs(source, [(row, _record(source, number, row, operations, results)) for number, row in found])
    if further:
        records[0].warnings.append(
            f"{source.path.name}: settings of the workload, by which its lines are different measurements, are in the "
            f"column{'s' * (len(further) > 1)} {', '.join(further)}."
        )
    if renamed:
        called = ", ".join(f"'{text}' is {name}" for text, name in renamed.items())
        records[0].warnings.append(
            f"{source.path.name}: names of phases, operations and workloads have letters, digits and . _ = + -, so "
            f"that {called} here."
        )
    if results:
        records[0].warnings.append(
            f"{source.path.name}: the column{'s' * (len(results) > 1)} {', '.join(results)} "
            f"{'have' if len(results) > 1 else 'has'} results or names of files, and no settings of the workload."
        )
    return records


def _in_runs(source: Source, lines: Sequence[tuple[dict[str, str], Record]]) -> list[Record]:
    """Records with those of one run joined; a run has one placement and settings."""
    found: list[Record] = []
    runs: dict[tuple[Any, ...], Record] = {}
    for row, record in lines:
        (phase,) = record.phases
        settings = tuple(sorted((name, str(value)) for name, value in record.parameters.items()))
        key = (row.get("run", ""), record.pattern, record.ranks, record.nodes, settings)
        if "run" not in row or key not in runs:
            found.append(record)
            runs[key] = record
            if "run" in row:
                record.label = record.label or row["run"]
                record.name = f"{record.name.split('-')[0]}-{row['run']}"
            continue
        _join(source, runs[key], phase, "repeat" in row)
    return found


def _join(source: Source, run: Record, phase: Phase, numbered: bool) -> None:
    """Adds a line's operation to the run's phase and repeat. Operations of one repeat ran side by side."""
    (operation,) = phase.latency
    same = [one for one in run.phases if one.name == phase.name]
    if not numbered:
        phase.repeat = sum(operation in one.latency for one in same)
    at = next((one for one in same if one.repeat == phase.repeat), None)
    if at is None:
        run.phases.append(phase)
        order = list(dict.fromkeys(one.name for one in run.phases))
        run.phases.sort(key=lambda one: (order.index(one.name), one.repeat))
        return
    line = int(phase.origin[""].rpartition(":")[2])
    if operation in at.latency:
        raise source.refuse(
            line,
            f"'{operation}' of the phase '{phase.name}' of this run is there twice with repeat {phase.repeat}; give "
            "each repeat a number of its own",
        )
    if at.more.get("rate_unit") != phase.more.get("rate_unit"):
        raise source.refuse(line, f"the operations of the phase '{phase.name}' of this run have rates in two units")
    at.latency |= phase.latency
    at.rate = (at.rate or 0.0) + (phase.rate or 0.0)
    whole = at.operations is not None and phase.operations is not None
    at.operations = (at.operations or 0) + (phase.operations or 0) if whole else None
    at.seconds = at.operations / at.rate if at.operations is not None else None


def _differs_by_one(name: str, known: str) -> bool:
    """Whether a letter is wrong, lacks, is too many, or two have changed places, or only capitals differ."""
    if name == known or name in KNOWN:
        return False
    if known in ("run", "repeat") and name == f"{known}s":
        return False  # how many
    a, b = sorted((name.lower(), known), key=len)
    if len(a) == len(b):
        unlike = [i for i in range(len(a)) if a[i] != b[i]]
        swapped = len(unlike) == 2 and [a[i] for i in unlike] == [b[i] for i in reversed(unlike)]
        return len(unlike) <= 1 or (swapped and unlike[1] == unlike[0] + 1)
    return len(b) == len(a) + 1 and any(b[:i] + b[i + 1 :] == a for i in range(len(b)))


def _may_be(known: str, cell: str) -> bool:
    """Whether a cell could stand in this column: but for words those are numbers, or sizes such as 16GiB."""
    return known in TEXTS or bool(re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?\s*[a-z]*", cell, re.IGNORECASE))


def _named_phase(row: dict[str, str]) -> str:
    return row.get("phase") or row.get("operation") or "benchmark"


def _record(
    source: Source, number: int, row: dict[str, str], operations: dict[str, set[str]], results: Collection[str]
) -> Record:
    """`operations`: those of each phase in the table, but of lines with a run. `results`: columns with no settings."""
    numbers = {
        name: _plain_number(source, row[name], number, name)
        for name in row
        if name in ("rate", "operations", "waiting_factor", *LATENCIES)
    }
    whole = {name: _count(source, row[name], number, name) for name in ("nodes", "ppn", "ranks") if name in row}
    if len(whole) < 2 or "rate" not in numbers:
        raise source.refuse(number, "this line lacks the rate, or says fewer than two of nodes, ppn and ranks")
    ranks = whole.get("ranks") or whole["nodes"] * whole["ppn"]
    nodes = whole.get("nodes") or ranks // whole["ppn"]
    if ranks != nodes * whole["ppn"] if "ppn" in whole else ranks < nodes:
        raise source.refuse(
            number, f"{ranks} ranks are not {nodes} nodes with {whole.get('ppn', 'one or more')} ranks each"
        )
    for name, value in numbers.items():
        if value < 0 or (name == "rate" and value == 0):
            raise source.refuse(number, f"{name} is {row[name]}; a measurement is above zero")
    known = [
        numbers[name] for name in ("min", "q25", "q50", "q75", "q90", "q95", "q99", "q999", "max") if name in numbers
    ]
    if known != sorted(known):
        raise source.refuse(number, "the quantiles of the latency do not ascend")
    least, mean, most = numbers.get("min", 0.0), numbers.get("mean"), numbers.get("max", math.inf)
    if mean is not None and not least <= mean <= most:
        raise source.refuse(number, f"the mean {row['mean']} is not between min and max of the same latencies")
    operation, name = row.get("operation", "operation"), _named_phase(row)
    if len(operations.get(name, ())) > 1 and name != operation and "run" not in row:
        name += f"-{operation}"
    count = round(numbers["operations"]) if "operations" in numbers else None
    phase = Phase(
        name,
        start_seconds=0.0,
        operations=count,
        rate=numbers["rate"],
        seconds=count / numbers["rate"] if count else None,
    )
    phase.origin[""] = source.at(number)
    if "repeat" in row and "run" in row:
        if not is_whole(row["repeat"]):
            raise source.refuse(number, f"repeat is '{row['repeat']}', which is no whole number; count from 0 or 1")
        phase.repeat = int(row["repeat"])
    if row.get("unit", "operations").removesuffix("/s") != "operations":
        if count is not None:
            raise source.refuse(
                number,
                "a rate in bytes has no number of operations; leave one of the columns unit and operations empty",
            )
        phase.rate = numbers["rate"] * _bytes(source, f"1{row['unit'].removesuffix('/s')}", number, "unit")
        phase.more["rate_unit"] = "bytes"
    phase.latency[operation] = Latency(count, {name: numbers[name] for name in LATENCIES if name in numbers})
    named = "phase" in row or "operation" in row
    record = Record(
        f"{nodes}x{ranks / nodes:.4g}" + f"-{phase.name}" * named,
        "table",
        [phase],
        pattern=row.get("workload", "table"),
        ranks=ranks,
        nodes=nodes,
        label=row.get("label", ""),
        speaker="A table",
    )
    record.origin = dict.fromkeys(("ranks", "nodes", "parameters"), source.at(number))
    record.parameters = {name: cell for name, cell in row.items() if name not in (*KNOWN, *results)}
    record.facts = {name: row[name] for name in results if name in row}
    if "working_set" in row:
        record.parameters["working_set"] = _bytes(source, row["working_set"], number, "working_set")
    machine: dict[str, float] = (
        {"cpus_per_node": _count(source, row["cores"], number, "cores")} if "cores" in row else {}
    )
    machine |= {"memory_bytes": _bytes(source, row["memory"], number, "memory")} if "memory" in row else {}
    record.environment = machine or None
    if "waiting_factor" in numbers:
        record.parameters["waiting_factor"] = numbers["waiting_factor"]
    record.missing = {"phases[].latency.*": "A table has the latencies of its columns only."}
    if count is None:
        record.missing["phases[].operations"] = "The table has no column operations."
    return record


def _plain_number(source: Source, text: str, number: int, name: str) -> float:
    """A number without a unit; a cell with one is refused with the place where the unit belongs."""
    with_unit = re.fullmatch(
        r"([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?) *([A-Za-z\u00b5]+ *(?:/ *[a-z]+)?|/ *[a-z]+)", text
    )
    if with_unit and name == "rate":
        letter = re.sub(r"(op(eration)?s?)?/s(ec(ond)?)?$", "", with_unit[2].replace(" ", ""))
        if not letter:
            raise source.refuse(number, f"rate is '{text}'; write {with_unit[1]}, since rates are those of a second")
        if letter in THOUSANDS:
            joined = with_unit[1] + letter
            try:
                return source.number(joined, number, name)
            except InputError as error:  # which names the whole number, beside the text as it stands there
                raise InputError(str(error).replace(f"'{joined}'", f"'{text}'")) from error
        raise source.refuse(
            number, f"rate is '{text}'; write {with_unit[1]} there, and its unit in the column unit. Allowed: {UNITS}"
        )
    if with_unit and name in LATENCIES:
        raise source.refuse(number, f"{name} is '{text}'; a latency is in seconds, and has no unit")
    return source.number(text, number, name)


def _bytes(source: Source, text: str, number: int, name: str) -> float:
    found = re.fullmatch(r"([0-9.]+) *(bytes|[kKMGT]i?B|B|)", text)
    try:
        if found:
            return float(found[1]) * SCALES["" if found[2] == "bytes" else found[2]]
    except (ValueError, KeyError):
        pass
    if name == "unit":
        raise source.refuse(number, f"unit is '{text.removeprefix('1')}'. Allowed: {UNITS}")
    raise source.refuse(number, f"{name} is '{text}'; allowed are bytes and units such as MiB")


def _count(source: Source, text: str, number: int, name: str) -> int:
    text = text.removesuffix(".0")  # as programs write whole numbers beside empty cells
    if not is_whole(text) or int(text) < 1:
        raise source.refuse(number, f"{name} is '{text}', which is no number of at least 1")
    return int(text)


IMPORTER = Importer(
    "table",
    "CSV table of rates: nodes, ppn or ranks, rate, and what else is known",
    "the file",
    recognises,
    read,
    nearly=nearly,
)

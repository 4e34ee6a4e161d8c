# SPDX-License-Identifier: Apache-2.0
"""Tables 1 and 2 of J. Kunkel, G. Markomanolis, Understanding Metadata Latency with MDWorkbench (2018, pages 8 and 10),
in their columns.

Runs of the md-workbench pattern are gathered by system, nodes, processes per node and working set. The creation rate is
that of the creates of a phase; with waiting factor T > 0 it is the virtual one, times T + 1, as in Table 1. Repeats are
taken together: the rate over the sum of their times, the mean balance and third quartiles, the largest maximum.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TypedDict, cast

from iocast.errors import InputError
from iocast.report.sources import Run, Sources
from iocast.wording.text import table
from iocast.records.simulated import PhaseOfRun

OPERATIONS = ("read", "stat", "create", "unlink")


Key = tuple[str, int | None, float | None, int | None, int | None, int | None]
"""System, nodes, processes per node, datasets, iterations and objects: what runs of one line have in common."""


class Line(TypedDict):
    system: str
    nodes: int | None
    ppn: float | None
    d: int | None
    i: int | None
    p: int | None


class CreationRates(Line):
    """Of Table 1; `benchmark` by waiting factor."""

    precreate: float | None
    benchmark: dict[str, float | None]


class Latencies(Line):
    """Of Table 2; third quartiles by operation, in the paper's words."""

    rate: float | None
    balance: float | None
    op_max: float | None
    q3_read: float | None
    q3_stat: float | None
    q3_create: float | None
    q3_delete: float | None


class PaperTables(TypedDict):
    schema_version: int
    kind: str
    table1: list[CreationRates]
    table2: list[Latencies]


def paper_tables(sources: Sources) -> PaperTables:
    """What was not measured is None.

    @raises InputError when no run is of the md-workbench pattern"""
    precreated: dict[Key, list[PhaseOfRun]] = defaultdict(list)
    benchmarks: dict[Key, dict[float, list[PhaseOfRun]]] = defaultdict(lambda: defaultdict(list))
    for run in sources.runs:
        if run.document["workload"].get("pattern") != "md-workbench":
            continue
        for phase in run.phases:
            reported = run.parameters
            factor = float(phase.get("waiting_factor") or reported.get("waiting_factor") or 0)
            where = run.document["placement"]
            place = (_system(run), where.get("nodes"), where.get("ranks_per_node"))
            key: Key = (*place, reported.get("datasets"), reported.get("iterations"), reported.get("objects"))
            if phase["name"] == "precreate":
                precreated[key].append(phase)
                benchmarks[key]  # a line of its own, if nothing else was measured
            elif phase["name"] == "benchmark" and not (reported.get("read_only") or phase.get("read_only")):
                benchmarks[key][factor].append(phase)
    if not benchmarks:
        raise InputError(
            "None of the sources is a run of the md-workbench pattern; the paper's tables are about those."
        )
    first: list[CreationRates] = []
    second: list[Latencies] = []
    for key in sorted(
        benchmarks, key=lambda k: tuple((v is None, str(v) if isinstance(v, str) else v or 0) for v in k)
    ):
        found = benchmarks[key]
        rates = {"0": _creates(found.get(0.0, []))} | {f"{f:g}": _virtual(found[f], f) for f in sorted(found) if f > 0}
        line = cast(Line, dict(zip(Line.__annotations__, key, strict=True)))
        first.append({**line, "precreate": _creates(precreated.get(key, [])), "benchmark": rates})
        if 0.0 in found:
            second.append(_latencies(line, found[0.0]))
    return {"schema_version": 1, "kind": "paper-tables", "table1": first, "table2": second}


def _system(run: Run) -> str:
    if run.simulated:
        return f"{(run.document.get('platform') or {}).get('name', 'platform')} (simulated)"
    place = (run.document.get("environment") or {}).get("filesystem") or {}
    return (
        f"{place['type']} on {place.get('mount_point', '?')}"
        if place.get("type")
        else str(run.document.get("label") or run.name)
    )


def _creates(phases: list[PhaseOfRun]) -> float | None:
    counted = [
        (p["latency"]["create"]["count"], p["seconds"])
        for p in phases
        if p["latency"].get("create", {}).get("count") and p["seconds"]
    ]
    return sum(n for n, _ in counted) / sum(s for _, s in counted) if counted else None


def _virtual(phases: list[PhaseOfRun], factor: float) -> float | None:
    rate = _creates(phases)
    return None if rate is None else (factor + 1) * rate


def _latencies(line: Line, phases: list[PhaseOfRun]) -> Latencies:
    known = [(op, summary) for p in phases for op, summary in p["latency"].items() if op in OPERATIONS]

    def third_quartile(operation: str) -> float | None:
        return _mean([one["q75"] for op, one in known if op == operation and one.get("q75") is not None])

    return {
        **line,
        "rate": _creates(phases),
        "balance": _mean([p["balance"] for p in phases if p["balance"] is not None]),
        "op_max": max((one["max"] for _, one in known if one.get("max") is not None), default=None),
        "q3_read": third_quartile("read"),
        "q3_stat": third_quartile("stat"),
        "q3_create": third_quartile("create"),
        "q3_delete": third_quartile("unlink"),
    }


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def paper_tables_text(tables: PaperTables) -> str:
    factors = sorted({f for row in tables["table1"] for f in row["benchmark"]}, key=float)
    many = len({row["i"] for row in tables["table1"]} | {row["p"] for row in tables["table1"]}) > 2
    header = [
        "System",
        "Nodes",
        "PPN",
        "D",
        *(["I", "P"] if many else []),
        "Precreate",
        *(f"Benchm. T={f}" for f in factors),
    ]
    rows = []
    for row in tables["table1"]:
        sizes = [_size(row["i"]), _size(row["p"])] if many else []
        rows.append(
            [
                row["system"],
                _count(row["nodes"]),
                _count(row["ppn"]),
                _count(row["d"]),
                *sizes,
                _rate(row["precreate"]),
                *(_rate(row["benchmark"].get(f)) for f in factors),
            ]
        )
    lines = [
        "Table 1: creation rate (creates/s); with T > 0 the virtual rate, (T + 1) times the measured one",
        table(header, rows),
        "",
    ]
    header = ["System", "Nodes", "PPN", "D", "I", "P", "Rate creat/s", "balance %", "op_max in s"]
    header += ["Q3 read", "Q3 stat", "Q3 create", "Q3 delete"]
    rows = []
    for line in tables["table2"]:
        cells = [
            line["system"],
            _count(line["nodes"]),
            _count(line["ppn"]),
            _count(line["d"]),
            _size(line["i"]),
            _size(line["p"]),
            "-" if line["rate"] is None else f"{_rounded(line['rate']):.0f}",
        ]
        cells += [
            "-" if line["balance"] is None else f"{100 * line['balance']:.1f}",
            "-" if line["op_max"] is None else f"{line['op_max']:.2f}",
        ]
        cells += map(_seconds, (line["q3_read"], line["q3_stat"], line["q3_create"], line["q3_delete"]))
        rows.append(cells)
    lines += ["Table 2: benchmark phase with T = 0; latency in seconds of quartile 3", table(header, rows)]
    return "\n".join(lines)


def _rounded(rate: float) -> float:
    """Three significant digits, as the paper prints."""
    return float(f"{rate:.3g}")


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{_rounded(rate):,.0f}"


def _count(value: float | None) -> str:
    return "-" if value is None else str(value)


def _size(value: int | None) -> str:
    return (
        "-"
        if value is None
        else f"{value // 1000}k"
        if value >= 10_000 and value % 1000 == 0 or value == 1000
        else str(value)
    )


def _seconds(value: float | None) -> str:
    """ "9.2E-3", as the paper writes latencies."""
    if value is None:
        return "-"
    digits, _, exponent = f"{value:.1e}".partition("e")
    return f"{digits}E{int(exponent)}"

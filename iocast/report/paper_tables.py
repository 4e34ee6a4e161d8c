# SPDX-License-Identifier: Apache-2.0
"""Tables 1 and 2 of J. Kunkel, G. Markomanolis, Understanding Metadata Latency with MDWorkbench (2018, pages 8 and 10),
in their columns.

Runs of the md-workbench pattern are gathered by system, nodes, processes per node and working set. The creation rate is
that of the creates of a phase; with waiting factor T > 0 it is the virtual one, times T + 1, as in Table 1. Repeats are
taken together: the rate over the sum of their times, the mean balance and third quartiles, the largest maximum.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from iocast.errors import InputError
from iocast.report.sources import Run, Sources
from iocast.wording.text import table

OPERATIONS = {"read": "read", "stat": "stat", "create": "create", "unlink": "delete"}


def paper_tables(sources: Sources) -> dict[str, Any]:
    """`{table1: [...], table2: [...]}`; what was not measured is None.

    @raises InputError when no run is of the md-workbench pattern"""
    phases: dict[tuple[Any, ...], dict[Any, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for run in sources.runs:
        if run.document["workload"].get("pattern") != "md-workbench":
            continue
        for phase in run.phases:
            reported = run.parameters
            factor = float(phase.get("waiting_factor") or reported.get("waiting_factor") or 0)
            key = (
                _system(run),
                run.document["placement"].get("nodes"),
                run.document["placement"].get("ranks_per_node"),
                *(reported.get(k) for k in ("datasets", "iterations", "objects")),
            )
            if phase["name"] == "precreate":
                phases[key]["precreate"].append(phase)
            elif phase["name"] == "benchmark" and not (reported.get("read_only") or phase.get("read_only")):
                phases[key][factor].append(phase)
    if not phases:
        raise InputError(
            "None of the sources is a run of the md-workbench pattern; the paper's tables are about those."
        )
    first, second = [], []
    for key in sorted(phases, key=lambda k: tuple((v is None, str(v) if isinstance(v, str) else v or 0) for v in k)):
        found = phases[key]
        system, nodes, per_node, datasets, iterations, objects = key
        factors = sorted(f for f in found if f != "precreate" and f > 0)
        row = {
            "system": system,
            "nodes": nodes,
            "ppn": per_node,
            "d": datasets,
            "i": iterations,
            "p": objects,
            "precreate": _creates(found.get("precreate", [])),
        }
        row["benchmark"] = {"0": _creates(found.get(0.0, []))} | {f"{f:g}": _virtual(found[f], f) for f in factors}
        first.append(row)
        if 0.0 in found:
            second.append(_second(key, found[0.0]))
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


def _creates(phases: list[dict[str, Any]]) -> float | None:
    counted = [
        (p["latency"]["create"]["count"], p["seconds"])
        for p in phases
        if p["latency"].get("create", {}).get("count") and p["seconds"]
    ]
    return sum(n for n, _ in counted) / sum(s for _, s in counted) if counted else None


def _virtual(phases: list[dict[str, Any]], factor: float) -> float | None:
    rate = _creates(phases)
    return None if rate is None else (factor + 1) * rate


def _second(key: tuple[Any, ...], phases: list[dict[str, Any]]) -> dict[str, Any]:
    system, nodes, per_node, datasets, iterations, objects = key
    balances = [p["balance"] for p in phases if p["balance"] is not None]
    row = {
        "system": system,
        "nodes": nodes,
        "ppn": per_node,
        "d": datasets,
        "i": iterations,
        "p": objects,
        "rate": _creates(phases),
    }
    row["balance"] = sum(balances) / len(balances) if balances else None
    longest = [
        v["max"] for p in phases for op, v in p["latency"].items() if op in OPERATIONS and v.get("max") is not None
    ]
    row["op_max"] = max(longest, default=None)
    for op, name in OPERATIONS.items():
        quartiles = [p["latency"][op]["q75"] for p in phases if p["latency"].get(op, {}).get("q75") is not None]
        row[f"q3_{name}"] = sum(quartiles) / len(quartiles) if quartiles else None
    return row


def paper_tables_text(tables: dict[str, Any]) -> str:
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
    header = [
        "System",
        "Nodes",
        "PPN",
        "D",
        "I",
        "P",
        "Rate creat/s",
        "balance %",
        "op_max in s",
        "Q3 read",
        "Q3 stat",
        "Q3 create",
        "Q3 delete",
    ]
    rows = []
    for row in tables["table2"]:
        cells = [
            row["system"],
            _count(row["nodes"]),
            _count(row["ppn"]),
            _count(row["d"]),
            _size(row["i"]),
            _size(row["p"]),
            "-" if row["rate"] is None else f"{_rounded(row['rate']):.0f}",
        ]
        cells += [
            "-" if row["balance"] is None else f"{100 * row['balance']:.1f}",
            "-" if row["op_max"] is None else f"{row['op_max']:.2f}",
        ]
        rows.append([*cells, *(_seconds(row[f"q3_{name}"]) for name in OPERATIONS.values())])
    lines += ["Table 2: benchmark phase with T = 0; latency in seconds of quartile 3", table(header, rows)]
    return "\n".join(lines)


def _rounded(rate: float) -> float:
    """Three significant digits, as the paper prints."""
    return float(f"{rate:.3g}")


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{_rounded(rate):,.0f}"


def _count(value: Any) -> str:
    return "-" if value is None else str(value)


def _size(value: Any) -> str:
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

# SPDX-License-Identifier: Apache-2.0
"""Published measurements as questions: the scales that a forecast is fitted to, and its target scales.

The tables lie in one directory (README.md names them and where they come from); what is not there is left out.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Rate:
    """Operations a second of all ranks."""

    nodes: int
    ranks_per_node: int
    rate: float

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True)
class Question:
    """`system` is who owns what; `quantity` what was measured of it."""

    family: str
    system: str
    quantity: str
    fitted: tuple[Rate, ...]
    targets: tuple[Rate, ...]


Row = dict[str, str]
Groups = dict[tuple[str, ...], list[Rate]]


def _rows(data: Path, file: str) -> list[Row]:
    path = data / file
    return list(csv.DictReader(path.open())) if path.is_file() else []


def _group(rows: list[Row], key: Callable[[Row], tuple[str, ...]], rate: Callable[[Row], Rate | None]) -> Groups:
    groups: Groups = defaultdict(list)
    for row in rows:
        found = rate(row)
        if found is not None and found.rate > 0:
            groups[key(row)].append(found)
    return groups


def _split(family: str, groups: Groups, may_fit: Callable[[Rate, list[Rate]], bool]) -> Iterator[Question]:
    for name, rates in sorted(groups.items()):
        fitted = tuple(r for r in rates if may_fit(r, rates))
        requested = tuple(r for r in rates if not may_fit(r, rates))
        if fitted and requested:
            yield Question(family, name[0], _words(name[1:]), fitted, requested)


def _words(parts: tuple[str, ...]) -> str:
    return " ".join(part for part in parts if part)


def _number(text: str) -> float:
    return float(text) if text else 0.0


def mistral(data: Path) -> Iterator[Question]:
    """DKRZ Mistral, md-workbench and mdtest: fitted at 5 and 10 nodes, forecast at 25 and 50, where most runs wrote
    empty files."""
    for file, op, rate, tool in (
        ("mdworkbench/parallel_2017_mdreal_phases.csv", "phase", "obj_per_s", "md-workbench"),
        ("mdworkbench/parallel_2017_mdtest.csv", "operation", "rate_per_s", "mdtest"),
    ):
        rows = [
            r
            for r in _rows(data, file)
            if "Mistral" in r["system"] and r.get("scope", "all") == "all" and "Tree" not in r[op]
        ]
        groups = _group(
            rows,
            lambda r: (f"Mistral {r['fs']}", tool, r[op]),
            lambda r: Rate(int(r["nodes"]), int(r["ppn"]), _number(r[rate])),
        )  # noqa: B023
        yield from _split("Mistral", groups, lambda one, rates: one.nodes <= 10)


def cirrus(data: Path) -> Iterator[Question]:
    """EPCC Cirrus and ARCHER, mdtest of files: Cirrus fitted at up to 8 nodes, forecast at up to 128; ARCHER at 1
    and 2, forecast at 4 and 8."""
    for system, most in (("Cirrus", 8), ("ARCHER", 2)):
        rows = [
            r
            for r in _rows(data, "scaling/archer_mdtest_scaling.csv")
            if r["system"] == system and r["operation"].startswith("File") and not r["mode"].startswith("sp")
        ]
        groups = _group(
            rows,
            lambda r: (system, r["mode"], r["operation"]),
            lambda r: Rate(int(r["nodes"]), int(r["ppn"]), _number(r["rate_per_s"])),
        )  # noqa: B023
        yield from _split(system, groups, lambda one, rates: one.nodes <= most)  # noqa: B023


def io500(data: Path) -> Iterator[Question]:
    """IO500 systems with results at several node counts: fitted at 10 nodes or the fewest, forecast at more."""
    for kind, start in (("metadata", "kiops"), ("bandwidth", "gib")):
        groups: Groups = defaultdict(list)
        for row in _rows(data, "io500/io500_all_runs_tidy.csv"):
            for column in (c for c in row if c.startswith(start)):
                nodes, ranks = int(_number(row["nodes"])), int(_number(row["procs"]))
                if nodes > 0 and ranks >= nodes and _number(row[column]) > 0:
                    name = (f"{row['institution']} {row['system']}", row["fs_type"], row["ds_nodes"], column)
                    groups[name].append(Rate(nodes, ranks // nodes, 1000 * _number(row[column])))
        groups = {
            name: rates
            for name, rates in groups.items()
            if max(r.nodes for r in rates) >= 1.5 * min(r.nodes for r in rates)
        }
        yield from _split(f"IO500 {kind}", groups, lambda one, rates: one.nodes <= max(10, min(r.nodes for r in rates)))


def threads(data: Path) -> Iterator[Question]:
    """elbencho's thread scans at NERSC: fitted at up to 4 threads a node (DataWarp, which has no more: 2), forecast at
    more."""
    groups = _group(
        [r for r in _rows(data, "scaling/elbencho_nersc.csv") if r["operation"] in ("WRITE", "READ")],
        lambda r: (r["system"], r["operation"], r["block_size"], r["random"], r["target"]),
        lambda r: Rate(int(r["hosts"]), int(r["threads"]), _number(r["iops_last"])),
    )
    yield from _split(
        "thread scans",
        groups,
        lambda one, rates: one.ranks_per_node <= (4 if max(r.ranks_per_node for r in rates) > 4 else 2),
    )


def cubefs(data: Path) -> Iterator[Question]:
    """CubeFS's own figures of clients x processes: fitted at up to 8 processes, forecast at more."""

    def rate(row: Row) -> Rate | None:
        clients, processes = row["clients"].split(" ")[0], row["procs_or_label"].split(" ")[0]
        if not (clients.isdigit() and processes.isdigit()) or "atency" in row["metric"] or "ree" in row["metric"]:
            return None
        return Rate(int(clients), int(processes), _number(row["value"]))

    groups = _group(
        _rows(data, "scaling/cubefs_doc_clients_x_procs.csv"),
        lambda r: ("CubeFS", r["metric"], Path(r["source_path"]).name),
        rate,
    )
    yield from _split(
        "CubeFS",
        {name: list(dict.fromkeys(rates)) for name, rates in groups.items()},
        lambda one, rates: one.ranks <= 8,
    )


def local(data: Path) -> Iterator[Question]:
    """ext4, XFS and btrfs on one machine, md-workbench with memory for its working set: fitted at 1 and 2 processes,
    forecast at more."""
    rows = [
        r
        for r in _rows(data, "mdworkbench/sandy9_local_fs.csv")
        if r["scope"] == "all" and r["lim_free_mem_mb"] == "100000"
    ]
    groups = _group(
        rows,
        lambda r: (
            f"{r['device']} {r['fs']}",
            r["experiment"],
            f"D={r['D']}",
            f"P={r['P']}",
            f"{r['obj_bytes']} B",
            r["phase"],
        ),
        lambda r: Rate(1, int(r["nproc"]), _number(r["obj_per_s"])),
    )
    yield from _split("local file systems", groups, lambda one, rates: one.ranks <= 2)


def _table_2(data: Path) -> Groups:
    """The MDWorkbench paper's Table 2 by system, without the two rows of KAUST that its scan lost."""
    rows = [
        r
        for r in _rows(data, "seeds/mdworkbench_table2.csv")
        if "KAUST" not in r["system"] or r["rate_creates_per_s"] not in ("6510", "1860")
    ]
    return _group(
        rows,
        lambda r: (r["system"], r["filesystem"], r["n_md_or_bb"]),
        lambda r: Rate(int(r["nodes"]), int(r["ppn"]), _number(r["rate_creates_per_s"])),
    )


def paper(data: Path) -> Iterator[Question]:
    """Table 2, each row by all others of its system, whatever their numbers of directories (D) and objects."""
    for name, rates in sorted(_table_2(data).items()):
        for i, one in enumerate(rates):
            if len(rates) > 1:
                yield Question("MDWorkbench Table 2", name[0], _words(name[1:]), (*rates[:i], *rates[i + 1 :]), (one,))


def paper_from_smallest(data: Path) -> Iterator[Question]:
    """Table 2, a system's larger placements by its smallest one, most with a rank on each of 10 nodes."""
    yield from _split(
        "MDWorkbench Table 2 from smallest", _table_2(data), lambda one, rates: one.ranks == min(r.ranks for r in rates)
    )


def site(question: Question) -> str:
    """Who owns what was measured: rows of one site share their fate, and a table of many rows must not decide for
    all."""
    system = question.system
    if question.family.startswith("IO500"):
        institution = next((name for name in INSTITUTIONS if system.startswith(name)), system)
        return INSTITUTIONS.get(institution, institution)
    if question.family == "local file systems":
        return "one machine with four cores"
    owners = {"Mistral": "DKRZ", "DKRZ": "DKRZ", "NERSC": "NERSC", "Cirrus": "EPCC", "ARCHER": "EPCC", "DDN": "DDN"}
    return next((owner for start, owner in owners.items() if system.startswith(start)), system)


INSTITUTIONS = {
    "Clemson University": "Clemson",
    "Janelia Research Campus": "Janelia",
    "Howard Hughes Medical Institute Janelia": "Janelia",
    "Raytheon": "Raytheon",
    "DDN": "DDN",
    "Argonne": "ALCF",
}
TYPING_ERROR = "a typing error of the source"
COUNTED_TWICE = "the bandwidth of the same run is counted too"
DROPPED = (TYPING_ERROR, COUNTED_TWICE)
"""Reasons for which a row is left out, except for the figure over every row."""


def no_question_of_scale(question: Question, nodes: int, ranks_per_node: int) -> str:
    """Why a row doesn't ask how a system scales, as a reason; empty where it does."""
    ranks, system = nodes * ranks_per_node, question.system
    if question.family == "CubeFS" and "iops" in question.quantity.lower():
        # 1,100 at 8 x 1, where the bandwidth of the same run says 21,100
        wrong = any((one.nodes, one.ranks_per_node) == (8, 1) and one.rate == 1100 for one in question.fitted)
        return TYPING_ERROR if wrong else COUNTED_TWICE
    if any((one.nodes, one.ranks_per_node) == (nodes, ranks_per_node) for one in question.fitted):
        return "the placement is itself fitted"
    if "Janelia" in system and ("sharedscratch" in system or "Vast" in system):
        return "the fitted rates of one placement differ tenfold among themselves"
    if question.family == "IO500 bandwidth" and "Clemson" in system and "hard" in question.quantity:
        return "60 MiB/s beside 7,780 on the same servers"
    if question.family.startswith("IO500") and ("Summit" in system or "Tianhe-2E" in system):
        return "a tuned full run after an untuned one"
    if system == "SSD ext4" and ranks > 4:
        return "more processes than cores"
    if ranks <= max(one.ranks for one in question.fitted):
        return "no more ranks than were fitted"
    return ""


SOURCES = (mistral, cirrus, io500, threads, cubefs, local, paper, paper_from_smallest)


def questions(data: Path) -> list[Question]:
    return [question for source in SOURCES for question in source(data)]

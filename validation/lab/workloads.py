#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do forecasts of other workloads than md-workbench come true on servers of known capacity? Each server of a laboratory
that protocol.py has calibrated is measured with mdtest, PostMark, IOR of small and of large requests, and a mix: one
rank on one node, two on two, four on four and sixteen on four. Two forecasts of 16 and 32 ranks on eight nodes are
written with their hashes before these are measured: from a calibration with that workload, and from the one with
md-workbench, which never saw it. A mix, of which a lone rank does but one member, has the second alone. Prints how
wrong both were, each apart, and what nothing had measured.

    validation/lab/workloads.py [SERVER...] --keep DIR [--only WORKLOAD]... [--json] [--page docs/scoreboard.md]

DIR is that of protocol.py. Needs root and what each server needs. With the same DIR, what is finished there is not
measured again."""

import argparse
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "validation"), str(ROOT / "validation/real"), str(ROOT / "validation/lab")]
from filesystems import iocast  # noqa: E402
from protocol import brought_up, measure, seal, seal_of  # noqa: E402
from scoreboard import put  # noqa: E402


PLAN = """\
schema_version: 1
workload: {workload}
settings: {settings}
repeats: 2
points:
  - {{ranks: [16, 32], nodes: 8, role: check}}
"""
FIT = """\
  - {ranks: 2, nodes: 2, role: fit}
  - {ranks: 4, nodes: 4, role: fit}
  - {ranks: 16, nodes: 4, role: fit}
"""
FIT_ALONE = """\
  - {ranks: 1, nodes: 1, role: fit}
"""
OWN, ACROSS = "that workload", "md-workbench alone"
"""What a forecast's calibration had measured."""
MIDDLE = ("q50", "q75", "q95")


@dataclass(frozen=True)
class Workload:
    """A workload of the catalogue and its sizes: some hundred requests a rank, so that a lone one takes a second.
    alone: whether a lone rank does all of it, without which no calibration can be with it."""

    name: str
    workload: str
    settings: dict[str, str]
    alone: bool = True


WORKLOADS = (
    Workload(
        "mdtest",
        "mdtest",
        {"items": "60", "unique_directory": "true", "files_only": "true", "phases": "create,stat,remove"},
    ),
    Workload("PostMark", "postmark", {"number": "30", "transactions": "60", "read": "16KiB", "write": "16KiB"}),
    Workload("IOR of 64 KiB", "ior-easy", {"transfer_size": "64KiB", "per_process": "8MiB"}),
    Workload("IOR of 2 MiB", "ior-easy", {"transfer_size": "2MiB", "per_process": "16MiB"}),
    Workload(
        "mix",
        "mix-small-files-and-stream",
        {
            "small.datasets": "2",
            "small.objects": "20",
            "small.iterations": "20",
            "stream.transfer_size": "64KiB",
            "stream.per_process": "4MiB",
        },
        alone=False,
    ),
)


def directory_of(load: Workload) -> str:
    return load.name.replace(" ", "-")


def measured_ways(server: str, load: Workload, out: Path) -> dict[str, dict[str, Any]]:
    """Of one workload of a server: the validation of each way to forecast it, by what its calibration had measured."""
    place = out / "workloads" / directory_of(load)
    campaign = place / "campaign"
    ways = {OWN: (place / "own", place / "own" / "fitted.yaml")} if load.alone else {}
    ways[ACROSS] = (place / "across", out / "fitted.yaml")
    answers = {way: directory / "validation.json" for way, (directory, _) in ways.items()}
    if not all(file.exists() for file in answers.values()):
        for directory, _ in ways.values():
            directory.mkdir(parents=True, exist_ok=True)
        plan = place / "plan.yaml"
        fit = FIT_ALONE + FIT if load.alone else FIT
        plan.write_text(PLAN.format(workload=load.workload, settings=json.dumps(load.settings)) + fit)
        with brought_up(server, {}) as lab:
            measure(lab, str(plan), "fit", campaign)
            if OWN in ways and not (own := ways[OWN][1]).exists():
                iocast("calibrate", campaign, "--out", own)
            for directory, fitted in ways.values():
                forecasts = directory / "forecasts"
                if not seal_of(forecasts).exists():
                    iocast("predict", fitted, "--points-of", campaign, "--out", forecasts)
                seal(forecasts)
            measure(lab, str(plan), "check", campaign)
        for directory, fitted in ways.values():
            if not (directory / "validation.json").exists():
                judged(fitted, campaign, directory)
    return {way: json.loads(file.read_text()) for way, file in answers.items()}


def judged(fitted: Path, campaign: Path, directory: Path) -> None:
    """Of all phases but set-up and clean-up, whether the calibration had them or not."""
    made = sorted((directory / "forecasts").glob("*.json"))
    named = [word for file in made for word in ("--forecast", file)]
    phases = [word for phase in phases_of(made[0]) for word in ("--phase", phase)]
    validation = directory / "validation.json"
    iocast(
        "validate", fitted, campaign, "--role", "check", *phases, *named, "--out", validation, allowed=(0, 4)
    )  # fmt: skip


def phases_of(forecast: Path) -> list[str]:
    document = json.loads(forecast.read_text())
    return [document["phase"], *(one["phase"] for one in document.get("further_phases", []))]


def row_of(server: str, load: Workload, way: str, validation: dict[str, Any]) -> dict[str, Any]:
    rows = [row for point in validation["points"] for row in point["rows"] if row["measured"] > 0]

    def off(kept: list[dict[str, Any]]) -> list[float]:
        """|log(forecast / measured)| as factors less 1."""
        return [math.exp(abs(math.log(row["forecast"] / row["measured"]))) - 1 for row in kept if row["forecast"] > 0]

    def last(row: dict[str, Any]) -> str:
        return str(row["quantity"].rpartition(".")[2])

    def middle(kept: list[dict[str, Any]]) -> float | None:
        """None where a workload has no such quantities."""
        return median(found) if (found := off(kept)) else None

    known = [row["inside"] for row in rows if row["inside"] is not None]
    rates = off([row for row in rows if row["quantity"] == "rate"])
    return {
        "server": server,
        "workload": load.name,
        "calibrated with": way,
        "forecasts": len(rows),
        "throughput": median(rates) if rates else None,
        "its largest": max(rates, default=None),
        "q50 to q95": middle([row for row in rows if last(row) in MIDDLE]),
        "q99": middle([row for row in rows if last(row) == "q99"]),
        "with intervals": len(known),
        "inside": sum(known),
    }


def table(rows: list[dict[str, Any]]) -> list[str]:
    """As Markdown; errors are medians, and of throughput the largest, too."""
    cells = [
        [
            f"{100 * cell:.1f} %" if isinstance(cell, float) else "" if cell is None else str(cell)
            for cell in row.values()
        ]
        for row in rows
    ]
    return [f"| {' | '.join(line)} |" for line in ([*rows[0]], ["---"] * len(rows[0]), *cells)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="*", metavar="SERVER", help="by default all that protocol.py has finished")
    parser.add_argument("--keep", type=Path, required=True, help="the directory of protocol.py")
    parser.add_argument("--only", action="append", choices=[one.name for one in WORKLOADS])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--page", type=Path, help="put the table there, between its marks")
    given = parser.parse_args()
    servers = given.servers or sorted(file.parent.name for file in given.keep.glob("*/fitted.yaml"))
    rows = [
        row_of(server, load, way, validation)
        for server in servers
        for load in WORKLOADS
        if load.name in (given.only or [load.name])
        for way, validation in measured_ways(server, load, given.keep / server).items()
    ]
    lines = table(rows)
    print(json.dumps(rows, indent=1) if given.json else "\n".join(lines))
    if given.page:
        put(given.page, "workloads of servers", lines)


if __name__ == "__main__":
    main()

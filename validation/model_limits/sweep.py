# SPDX-License-Identifier: Apache-2.0
"""What the catalogue's platforms do not model of seven workloads, from 1 to 1000 client nodes: one line for each cell
with its findings (`model_limits` in docs/run-directory.md), and the number of cells for each kind.

    python validation/model_limits/sweep.py [--short] [--seconds 600] [--minutes 60] [--nodes 1 10] [--out FILE]

With the catalogue's own settings some cells take hours. A cell that takes more than `--seconds` of a processor is in
the results as such, and so are the cells of more nodes beside it, which are not begun. The cells in the file of `--out`
are not run again, unless they ran out of time and `--seconds` is longer now; `--minutes` ends the script earlier, with
the cells so far in the file. So the table can be made in pieces:

    python validation/model_limits/sweep.py --seconds 4 --minutes 5 --out validation/model_limits/results.txt
"""

from __future__ import annotations

import argparse
import json
import math
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests"))
from programs import find_program  # noqa: E402

NODES = (1, 10, 100, 1000)
# Settings of the short form: few operations of a rank, each kind of them.
WORKLOADS = {
    "md-workbench": ("datasets=1", "objects=4", "iterations=2"),
    "mdtest-hard": ("items=4",),
    "ior-easy": ("per_process=2MiB",),
    "ior-hard": ("segments=2",),
    "hpcs-07": ("memory=4MiB", "arrays=2"),
    "hpcs-12": ("depth=2", "branching=4", "files=10"),
    "postmark": ("number=10", "transactions=5"),
}
# Bytes of 1000 nodes in stripes of 64 KiB are 10^5 flows at a time, which take minutes.
SLOW = {"lustre-gigabit", "pvfs2-gigabit"}


@dataclass(frozen=True)
class Cell:
    platform: str
    workload: str
    nodes: int
    findings: tuple[dict[str, Any], ...]
    warnings: tuple[str, ...]
    error: str = ""

    @property
    def name(self) -> str:
        return f"{self.platform} {self.workload} {self.nodes}x1"


Key = tuple[str, str, int]
"""Platform, workload and nodes of a cell."""
NOTHING, LATE, NOT_BEGUN, REFUSED = (
    "nothing",
    "not done after",
    "not begun, as with fewer nodes it is not done after",
    "refused:",
)


def keys(short: bool, scales: Iterable[int]) -> list[Key]:
    """Few nodes first, so that the time goes to many cells."""
    platforms = sorted(file.stem for file in (REPOSITORY / "platforms").glob("*.yaml"))
    return [
        (platform, workload, nodes)
        for nodes in sorted(scales)
        for platform in platforms
        for workload in WORKLOADS
        if not (short and platform in SLOW and nodes > 100)
    ]


def run(simulator: Path, platform: str, workload: str, nodes: int, settings: tuple[str, ...], seconds: float) -> Cell:
    command = [
        str(simulator),
        "--json",
        "--brief",
        "--beyond",
        "--platform",
        platform,
        "--workload",
        workload,
        "--nodes",
        str(nodes),
    ]
    command += [part for setting in settings for part in ("--set", setting)]
    whole = math.ceil(seconds)
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        # Of the processor, so that what else the machine does changes no result.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1)),
    )
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return Cell(platform, workload, nodes, (), (), f"{LATE} {whole} s")
    if done.returncode:
        return Cell(platform, workload, nodes, (), (), f"{REFUSED} {done.stderr.strip().splitlines()[-1]}")
    document = json.loads(done.stdout)
    return Cell(
        platform,
        workload,
        nodes,
        tuple(document.get("model_limits", {}).get("findings", ())),
        tuple(document["warnings"]),
    )


def outcome(cell: Cell) -> str:
    if cell.error:
        return cell.error
    reported = Counter((finding["kind"], finding.get("operation", finding.get("of", ""))) for finding in cell.findings)
    return "; ".join(f"{kind} {of}" for kind, of in reported) or NOTHING


def findings_of(text: str) -> set[str]:
    """The kinds in an outcome."""
    if text == NOTHING or text.startswith((LATE, NOT_BEGUN, REFUSED)):
        return set()
    return {finding.split()[0] for finding in text.split("; ")}


def late_seconds(text: str) -> float | None:
    """Of a cell that ran out of time or was not begun: the seconds that were too few."""
    for beginning in (LATE, NOT_BEGUN):
        if text.startswith(beginning):
            return float(text.removeprefix(beginning).split()[0])
    return None


def read_results(file: Path) -> dict[Key, str]:
    """The outcomes in a file of `--out`; none without the file."""
    results = {}
    for row in file.read_text().splitlines() if file.exists() else ():
        if found := re.fullmatch(r"(\S+) (\S+) (\d+)x1: (.+)", row):
            results[found[1], found[2], int(found[3])] = found[4]
    return results


def to_run(wanted: list[Key], results: dict[Key, str], seconds: float) -> list[Key]:
    """The cells without an outcome, and those whose time was shorter than `seconds`."""
    return [key for key in wanted if key not in results or (late_seconds(results[key]) or math.inf) < seconds]


def totals(results: dict[Key, str], wanted: int) -> list[str]:
    """The numbers of cells; `wanted` are those of a complete table."""
    kinds = Counter(kind for text in results.values() for kind in sorted(findings_of(text)))
    late = sum(late_seconds(text) is not None for text in results.values())
    flagged = sum(bool(findings_of(text)) for text in results.values())
    return [
        f"{len(results)} of {wanted} cells, {flagged} with findings, {late} out of time",
        *(f"{kind}: {times} cells" for kind, times in kinds.most_common()),
    ]


def write_results(file: Path, results: dict[Key, str], short: bool) -> None:
    settings = "shortened settings" if short else "the catalogue's settings"
    rows = [
        f"{platform} {workload} {nodes}x1: {text}"
        for (platform, workload, nodes), text in sorted(
            results.items(), key=lambda row: (row[0][0], list(WORKLOADS).index(row[0][1]), row[0][2])
        )
    ]
    head = f"python validation/model_limits/sweep.py{' --short' * short}: {settings}, one rank a node"
    part = file.with_name(file.name + ".part")
    part.write_text("\n".join([head, *totals(results, len(keys(short, NODES))), "", *rows, ""]))
    part.replace(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="few operations of a rank, as ./check does")
    parser.add_argument("--seconds", type=float, default=600, help="longest time of a cell, of a processor")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no cell after so long")
    parser.add_argument("--nodes", type=int, nargs="+", default=NODES, help="client nodes, one rank each")
    parser.add_argument("--out", type=Path, help="text file, which the script goes on with")
    options = parser.parse_args()
    simulator = find_program("iocast-sim")
    assert simulator is not None, "iocast-sim is not built; run ./check"
    results = read_results(options.out) if options.out else {}
    begun = time.monotonic()
    left = to_run(keys(options.short, options.nodes), results, options.seconds)
    for done, key in enumerate(left):
        if time.monotonic() - begun > 60 * options.minutes:
            print(f"{len(left) - done} cells are left")
            break
        platform, workload, nodes = key
        fewer = [results.get((platform, workload, other), "") for other in options.nodes if other < nodes]
        if any((late_seconds(text) or 0) >= options.seconds for text in fewer):
            results[key] = f"{NOT_BEGUN} {math.ceil(options.seconds)} s"
        else:
            settings = WORKLOADS[workload] if options.short else ()
            results[key] = outcome(run(simulator, platform, workload, nodes, settings, options.seconds))
        if results[key] != NOTHING:
            print(f"{platform} {workload} {nodes}x1: {results[key]}", flush=True)
        if options.out:
            write_results(options.out, results, options.short)
    print("\n".join(totals(results, len(keys(options.short, options.nodes)))))


if __name__ == "__main__":
    main()

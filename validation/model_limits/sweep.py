# SPDX-License-Identifier: Apache-2.0
"""What the catalogue's platforms do not model of seven workloads, from 1 to 1000 client nodes: one line for each cell
with findings (`model_limits` in docs/run-directory.md), and the number of cells for each kind. The long form runs for
hours.

    python validation/model_limits/sweep.py [--short] [--seconds 600] [--nodes 1 10 100 1000] [--out validation/model_limits/results.txt]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
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


def cells(simulator: Path, short: bool, seconds: float, scales: Iterable[int]) -> Iterator[Cell]:
    for platform in sorted(file.stem for file in (REPOSITORY / "platforms").glob("*.yaml")):
        for workload, settings in WORKLOADS.items():
            for nodes in scales:
                if short and platform in SLOW and nodes > 100:
                    continue
                yield run(simulator, platform, workload, nodes, settings if short else (), seconds)


def run(simulator: Path, platform: str, workload: str, nodes: int, settings: tuple[str, ...], seconds: float) -> Cell:
    command = [
        str(simulator),
        "--json",
        "--brief",
        "--platform",
        platform,
        "--workload",
        workload,
        "--nodes",
        str(nodes),
    ]
    command += [part for setting in settings for part in ("--set", setting)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return Cell(platform, workload, nodes, (), (), f"not done after {seconds:g} s")
    if done.returncode:
        return Cell(platform, workload, nodes, (), (), done.stderr.strip().splitlines()[-1])
    document = json.loads(done.stdout)
    return Cell(
        platform,
        workload,
        nodes,
        tuple(document.get("model_limits", {}).get("findings", ())),
        tuple(document["warnings"]),
    )


def line(cell: Cell) -> str:
    if cell.error:
        return f"{cell.name}: {cell.error}"
    reported = Counter((finding["kind"], finding.get("operation", finding.get("of", ""))) for finding in cell.findings)
    return f"{cell.name}: " + "; ".join(f"{kind} {of}" for kind, of in reported)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="few operations of a rank, as ./check does")
    parser.add_argument("--seconds", type=float, default=600, help="a cell that takes longer is left out")
    parser.add_argument("--nodes", type=int, nargs="+", default=NODES, help="client nodes, one rank each")
    parser.add_argument("--out", type=Path, help="text file")
    options = parser.parse_args()
    simulator = find_program("iocast-sim")
    assert simulator is not None, "iocast-sim is not built; run ./check"
    kinds: Counter[str] = Counter()
    lines = []
    count = flagged = 0
    for cell in cells(simulator, options.short, options.seconds, options.nodes):
        count += 1
        kinds.update({finding["kind"] for finding in cell.findings})
        flagged += bool(cell.findings)
        if cell.findings or cell.error:
            lines.append(line(cell))
            print(lines[-1], flush=True)
    totals = [
        f"{count} cells, {flagged} with findings",
        *(f"{kind}: {times} cells" for kind, times in kinds.most_common()),
    ]
    print("\n".join(totals))
    if options.out:
        settings = "shortened settings" if options.short else "the catalogue's settings"
        options.out.write_text(
            "\n".join(
                [
                    f"python validation/model_limits/sweep.py{' --short' * options.short} --nodes {' '.join(map(str, options.nodes))}: {settings}, one rank a node",
                    *totals,
                    "",
                    *lines,
                    "",
                ]
            )
        )


if __name__ == "__main__":
    main()

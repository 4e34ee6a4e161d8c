#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes platforms/facts/errors.csv: published numbers that platforms of the catalogue were not set to, simulated.

    validation/published/errors.py [DIRECTORY] [--page docs/evidence.md]

These are the forecasts of platforms/facts, and the frozen runs of platforms/facts/frozen.csv. DIRECTORY holds the
tables of the latter (README.md has their names); without it their rows stay as they are. Forecasts and studies take
how far platforms are off from there. A minute of two cores. The page's table has medians of the factors, and the factor
of a 90 % interval."""

from __future__ import annotations

import argparse
import math
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]
from frozen import judged, rows_of  # noqa: E402
from iocast.ground.files import write_text  # noqa: E402
from iocast.published.errors import COLUMNS, Errors, of_catalogue, rows, tells  # noqa: E402
from iocast.published.facts import FACTS, Fact, read_facts, simulated  # noqa: E402
from scoreboard import put  # noqa: E402

SOURCES = ("mdworkbench2018",)
FILE = FACTS / "errors.csv"


def of_fact(source: str, fact: Fact) -> dict[str, Any]:
    return {
        "source": source, "platform": fact.platform, "run": fact.place, "nodes": fact.nodes, "ppn": fact.ppn,
        "phase": fact.phase, "operation": fact.operation, "quantity": fact.quantity, "value": fact.value,
        "simulated": f"{simulated(fact):.6g}",
    }  # fmt: skip


def of_facts(source: str) -> list[dict[str, Any]]:
    """Forecasts of rates, latencies and maxima; of the latter those that are simulated at full length."""
    facts = [fact for fact in read_facts(source) if tells(fact)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(lambda fact: of_fact(source, fact), facts))


def of_frozen(directory: Path) -> list[dict[str, Any]]:
    found = []
    for one in judged(directory, "frozen", []):
        quantity, _, what = one["quantity"].partition(" of ")
        if quantity not in ("rate", "q75"):
            continue
        scale = 1e-3 if quantity == "q75" else 1.0
        operation = what if quantity == "q75" else "unlink" if what == "cleanup" else "create"
        found.append(
            {
                **{name: one[name] for name in ("platform", "run", "nodes", "ppn")},
                "source": one["data"], "phase": "benchmark" if quantity == "q75" else what, "operation": operation,
                "quantity": quantity, "value": f"{scale * one['measured']:.6g}",
                "simulated": f"{scale * one['simulated']:.6g}",
            }
        )  # fmt: skip
    return found


def table() -> list[str]:
    """As Markdown: of each platform and kind the rows, the median factor, and that of a 90 % interval."""
    kinds = {"rate": "rates", "latency": "third quartiles", "max": "maxima"}
    lines = ["| platform | " + " | ".join(kinds.values()) + " |", "|---" * (1 + len(kinds)) + "|"]
    for platform in dict.fromkeys(one.platform for one in rows()):
        errors = Errors(platform, False, of_catalogue(platform))
        cells = []
        for kind in kinds:
            own = [abs(one.error) for one in errors.own(kind)]
            interval = f"interval {errors.spread(kind).factor(0.9):.1f}"
            cells.append(f"{len(own)}, median {math.exp(median(own)):.2f}, {interval}" if own else f"0, {interval}")
        lines.append(f"| {platform} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, nargs="?", help="with the tables of the frozen runs")
    parser.add_argument("--page", type=Path, help="put the table there, between its marks")
    given = parser.parse_args()
    found = [row for source in SOURCES for row in of_facts(source)]
    if given.directory:
        found += of_frozen(given.directory)
    else:
        found += [row for row in rows_of(FILE) if row["source"] not in SOURCES]
    lines = [",".join(COLUMNS), *(",".join(str(row[name]) for name in COLUMNS) for row in found)]
    write_text(FILE, "\n".join(lines) + "\n")
    if given.page:
        put(given.page, "errors", table())


if __name__ == "__main__":
    main()

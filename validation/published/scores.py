#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do forecasts from published rates come true? Fits each system of systems.py at its small scales and asks for its larger ones.

Every question goes the way a user's does: a table of the fitted rates is imported, a platform `queue` calibrated to it and asked for the
other placements, which nothing before has seen; then the measured rates are set beside the forecasts. Errors are factors less 1 of the median
forecast, over placements, repeats taken together; `inside` is the share within 90 % intervals.

    validation/published/scores.py DIRECTORY-OF-TABLES [--family NAME] [--json] [--page docs/scoreboard.md]
"""

import argparse
import json
import math
import os
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from systems import Question, questions

sys.path.append(str(Path(__file__).resolve().parents[1]))
from scoreboard import put

from iocast.calibrate import calibrate
from iocast.fitted import Fitted
from iocast.importers import import_files
from iocast.platform import dump
from iocast.predict import predict
from iocast.run_directory import Run, group

BARS = {
    "Mistral": (0.15, 1.0), "Cirrus": (0.15, 1.0), "IO500 metadata": (0.15, 1.0), "thread scans": (0.15, 1.0), "local file systems": (0.15, 1.0),
    "MDWorkbench Table 2": (0.20, 3.0), "MDWorkbench Table 2 from smallest": (0.20, 3.0),
}  # fmt: skip
"""Median error and largest error (a factor 2 is 1) that were asked for when the project began."""
BASELINES = ("closed M/M/c", "universal scalability law", "straight line", "last value")
Row = dict[str, Any]


def forecasts_of(question: Question) -> list[Row]:
    """A row for each placement asked: what iocast and the baselines say. Nothing here looks at the rates that were measured there."""
    with tempfile.TemporaryDirectory(prefix="iocast-published-") as scratch:
        table = Path(scratch) / "fitted.csv"
        lines = [f"{rate.nodes},{rate.ranks_per_node},{rate.rate!r}" for rate in question.fitted]
        table.write_text("\n".join(["nodes,ppn,rate", *lines]) + "\n")
        runs = [Run(path) for path in import_files([table], Path(scratch) / "runs")]
        platform = Path(scratch) / "platform.yaml"
        platform.write_text(dump(calibrate(group(runs), "queue", 0, lambda *_: None)))
        rows = []
        for nodes, ranks_per_node in dict.fromkeys((rate.nodes, rate.ranks_per_node) for rate in question.asked):
            answer = predict(Fitted.open(str(platform)), None, {}, nodes, ranks_per_node)
            said = {name: answer["baselines"].get(name, {}).get("rate") for name in BASELINES}
            largest = max(question.fitted, key=lambda rate: rate.ranks)
            said["last value"] = said["last value"] or largest.rate
            rows.append({"nodes": nodes, "ranks_per_node": ranks_per_node, "iocast": answer["quantities"]["rate"], **said})
    return rows


def score(question: Question) -> list[Row]:
    rows = forecasts_of(question)
    for row in rows:
        seen = [rate.rate for rate in question.asked if (rate.nodes, rate.ranks_per_node) == (row["nodes"], row["ranks_per_node"])]
        row["measured"] = math.exp(float(np.mean(np.log(seen))))
        row |= {"family": question.family, "system": question.system, "quantity": question.quantity}
        row["beyond"] = row["nodes"] * row["ranks_per_node"] / max(rate.ranks for rate in question.fitted)
    return rows


def error(said: float, measured: float) -> float:
    """How many times too large or too small, less 1."""
    return math.expm1(abs(math.log(max(said, 1e-9) / measured)))


def summary(rows: list[Row]) -> Row:
    errors = [error(row["iocast"]["value"], row["measured"]) for row in rows]
    inside = [row["iocast"]["low"] <= row["measured"] <= row["iocast"]["high"] for row in rows]
    widths = [row["iocast"]["high"] / row["iocast"]["low"] for row in rows]
    found: Row = {"forecasts": len(rows), "beyond": float(np.median([row["beyond"] for row in rows])), "median": float(np.median(errors))}
    found |= {"nine_in_ten": float(np.quantile(errors, 0.9)), "worst": max(errors), "inside": float(np.mean(inside)), "width": float(np.median(widths))}
    for name in BASELINES:
        told = [error(row[name], row["measured"]) for row in rows if row[name] is not None]
        found[name] = float(np.median(told)) if len(told) > len(rows) / 2 else None
    return found


def verdict(family: str, found: Row) -> str:
    if family not in BARS:
        return ""
    median, worst = BARS[family]
    missed = [f"median above {100 * median:.0f} %"] if found["median"] > median else []
    missed += [f"worst above a factor {1 + worst:g}"] if found["worst"] > worst else []
    return "met" if not missed else ", ".join(missed)


def table(families: dict[str, Row]) -> list[str]:
    """As Markdown."""

    def percent(value: float | None) -> str:
        return "-" if value is None else f"{100 * value:.0f} %"

    header = ["", "forecasts", "ranks asked / fitted", "median error", "nine in ten below", "worst", "inside 90 %", "high / low", *BASELINES, "what was asked for"]
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for family, found in families.items():
        cells = [family, str(found["forecasts"]), f"{found['beyond']:.1f}", percent(found["median"]), percent(found["nine_in_ten"]), f"x {1 + found['worst']:.1f}"]
        cells += [percent(found["inside"]), f"{found['width']:.1f}", *(percent(found[name]) for name in BASELINES), verdict(family, found)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="directory with the tables that README.md names")
    parser.add_argument("--family", help="only this one")
    parser.add_argument("--json", action="store_true", help="every forecast")
    parser.add_argument("--page", type=Path, help="put the table there, between its marks")
    given = parser.parse_args()
    asked = [question for question in questions(given.data) if given.family in (None, question.family)]
    if not asked:
        parser.error(f"There is no question in '{given.data}'" + (f" of the family '{given.family}'." if given.family else "; README.md says which tables are read."))
    rows: dict[str, list[Row]] = defaultdict(list)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for question, found in zip(asked, pool.map(score, asked), strict=True):
            rows[question.family] += found
    everything = [row for found in rows.values() for row in found]
    families = {family: summary(found) for family, found in rows.items()} | ({"all": summary(everything)} if len(rows) > 1 else {})
    if given.json:
        print(json.dumps({"rows": everything, "families": families}, indent=1))
        return
    lines = table(families)
    print("\n".join(lines))
    if given.page:
        put(given.page, "published", lines)


if __name__ == "__main__":
    main()

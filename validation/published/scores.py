#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do forecasts from published rates come true? Fits each system of systems.py at its small scales and asks for its
larger ones.

Every question goes the way a user's does: a table of the fitted rates is imported, a platform `queue` calibrated to it
and used to forecast the other placements, which nothing before has seen; then the measured rates are set beside the
forecasts. Errors are factors less 1 of the median forecast, over placements, repeats taken together; `inside` is the
share within 90 % intervals, of forecasts that have one. Families leave out rows that occur twice or have a typing error
(systems.py, DROPPED); "clean" leaves out every row that is no question of scale; "every row" none. "Site-equal" is the
mean over sites of the mean |ln error| (bounded by 3): a table of many rows can't decide it.

    validation/published/scores.py DIRECTORY-OF-TABLES [--family NAME] [--json] [--page docs/scoreboard.md]
"""

import argparse
import json
import math
import os
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from systems import DROPPED, Question, Rate, no_question_of_scale, questions, site

sys.path.append(str(Path(__file__).resolve().parents[1]))
from scoreboard import binomial_interval, interval_score, put

from iocast.calibrate.fit import calibrate
from iocast.platforms.fitted import Fitted
from iocast.importers import import_files
from iocast.platforms.documents import dump
from iocast.forecasts.answer import predict
from iocast.report import record
from iocast.runs.run_directory import Run, group
from iocast.wording.text import too_wide

BARS = {
    "Mistral": (0.15, 1.0), "Cirrus": (0.15, 1.0), "IO500 metadata": (0.15, 1.0), "thread scans": (0.15, 1.0),
    "local file systems": (0.15, 1.0),
    "MDWorkbench Table 2": (0.20, 3.0), "MDWorkbench Table 2 from smallest": (0.20, 3.0),
}  # fmt: skip
"""Median error and largest error (a factor 2 is 1) that were the targets when the project began."""
BASELINES = ("closed M/M/c", "universal scalability law", "straight line", "last value", "half slope", "slope squared")
Row = dict[str, Any]


def forecasts_of(question: Question) -> list[Row]:
    """A row for each target placement: the forecasts of iocast and the baselines. Nothing here looks at the rates that
    were measured there."""
    with tempfile.TemporaryDirectory(prefix="iocast-published-") as scratch:
        table = Path(scratch) / "fitted.csv"
        unit = "bytes" if "bandwidth" in f"{question.family} {question.quantity}".lower() else "operations"
        cores = 4 if question.family == "local file systems" else ""
        lines = [f"{rate.nodes},{rate.ranks_per_node},{rate.rate!r},{unit},{cores}" for rate in question.fitted]
        table.write_text("\n".join(["nodes,ppn,rate,unit,cores", *lines]) + "\n")
        runs = [Run(path) for path in import_files([table], Path(scratch) / "runs")]
        platform = Path(scratch) / "platform.yaml"
        platform.write_text(dump(calibrate(group(runs), "queue", 0, lambda *_: None)))
        rows = []
        for nodes, ranks_per_node in dict.fromkeys((rate.nodes, rate.ranks_per_node) for rate in question.targets):
            answer = predict(Fitted.open(str(platform)), None, {}, nodes, ranks_per_node)
            document = {name: answer["baselines"].get(name, {}).get("rate") for name in BASELINES}
            document |= rulers(question.fitted, nodes * ranks_per_node)
            rows.append(
                {"nodes": nodes, "ranks_per_node": ranks_per_node, "iocast": answer["quantities"]["rate"], **document}
            )
    return rows


def rulers(fitted: tuple[Rate, ...], ranks: int) -> dict[str, float]:
    """Rules by the last scales: its rate, and that times a power of the ranks, half of the last logarithmic slope s or
    0.8 s^2, with s between 0 and 1; with one fitted scale s is 1. Repeats and placements of as many ranks by their mean
    logarithm."""
    logs: dict[int, list[float]] = defaultdict(list)
    for one in fitted:
        logs[one.ranks].append(math.log(one.rate))
    scales = sorted(logs)
    last = float(np.mean(logs[scales[-1]]))
    slope = 1.0
    if len(scales) > 1:
        slope = (last - float(np.mean(logs[scales[-2]]))) / math.log(scales[-1] / scales[-2])
    slope, reach = min(max(slope, 0.0), 1.0), math.log(ranks / scales[-1])
    powers = {"last value": 0.0, "half slope": slope / 2, "slope squared": 0.8 * slope**2}
    return {name: math.exp(last + power * reach) for name, power in powers.items()}


def score(question: Question) -> list[Row]:
    rows = forecasts_of(question)
    scales = len({rate.ranks for rate in question.fitted})
    for row in rows:
        row["scales"] = scales
        seen = [
            rate.rate
            for rate in question.targets
            if (rate.nodes, rate.ranks_per_node) == (row["nodes"], row["ranks_per_node"])
        ]
        row["measured"] = math.exp(float(np.mean(np.log(seen))))
        row |= {"family": question.family, "system": question.system, "quantity": question.quantity}
        row |= {"site": site(question), "why_not": no_question_of_scale(question, row["nodes"], row["ranks_per_node"])}
        row["beyond"] = row["nodes"] * row["ranks_per_node"] / max(rate.ranks for rate in question.fitted)
    return rows


def error(printed: float, measured: float) -> float:
    """How many times too large or too small, less 1."""
    return math.expm1(abs(math.log(max(printed, 1e-9) / measured)))


def summary(rows: list[Row]) -> Row:
    errors = [error(row["iocast"]["value"], row["measured"]) for row in rows]
    known = [row for row in rows if row["iocast"]["low"] is not None]
    inside = [row["iocast"]["low"] <= row["measured"] <= row["iocast"]["high"] for row in known]
    widths = [row["iocast"]["high"] / row["iocast"]["low"] for row in known]
    found: Row = {
        "forecasts": len(rows),
        "beyond": float(np.median([row["beyond"] for row in rows])),
        "median": float(np.median(errors)),
    }
    found |= {
        "nine_in_ten": float(np.quantile(errors, 0.9)),
        "worst": max(errors),
        "inside": float(np.mean(inside)),
        "width": float(np.median(widths)),
        "wide": float(np.mean([too_wide(row["iocast"]) for row in known])),
        "interval_score": float(
            np.mean([interval_score(row["iocast"] | {"measured": row["measured"]}) for row in known])
        ),
    }
    found |= dict(zip(("inside_from", "inside_to"), binomial_interval(sum(inside), len(inside)), strict=True))
    found |= {
        "without_interval": len(rows) - len(known),
        "site_equal": site_equal([(row["site"], row["iocast"]["value"] / row["measured"]) for row in rows]),
    }
    for name in BASELINES:
        own = [row for row in rows if row[name] is not None]
        enough = len(own) > len(rows) / 2
        found[name] = float(np.median([error(row[name], row["measured"]) for row in own])) if enough else None
        found[f"{name}, site-equal"] = (
            site_equal([(row["site"], row[name] / row["measured"]) for row in own]) if enough else None
        )
    return found


def site_equal(ratios: list[tuple[str, float]]) -> float:
    """Mean over sites of the mean |ln ratio|, each bounded by 3."""
    by_site: dict[str, list[float]] = defaultdict(list)
    for where, ratio in ratios:
        by_site[where].append(min(abs(math.log(max(ratio, 1e-9))), 3.0))
    return float(np.mean([np.mean(logs) for logs in by_site.values()]))


def falls(rows: list[Row]) -> tuple[int, int]:
    """How many of the clean rows fell below three quarters of the last value with more ranks, and how many of these lay
    inside."""
    fallen = [
        row
        for row in rows
        if row["beyond"] > 1 and row["measured"] < 0.75 * row["last value"] and row["iocast"]["low"] is not None
    ]
    return len(fallen), sum(row["iocast"]["low"] <= row["measured"] for row in fallen)


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

    def shown(found: Row, name: str) -> str:
        return "-" if found[name] is None else f"{percent(found[name])} ({found[f'{name}, site-equal']:.2f})"

    header = [
        "",
        "forecasts",
        "target / fitted ranks",
        "median error",
        "nine in ten below",
        "worst",
        "inside 90 %",
        "high / low",
        "site-equal",
    ]
    header += [*BASELINES, "target"]
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for family, found in families.items():
        cells = [
            family,
            str(found["forecasts"]),
            f"{found['beyond']:.1f}",
            percent(found["median"]),
            percent(found["nine_in_ten"]),
            f"x {1 + found['worst']:.1f}",
        ]
        cells += [percent(found["inside"]), f"{found['width']:.1f}", f"{found['site_equal']:.2f}"]
        cells += [shown(found, name) for name in BASELINES] + [verdict(family, found)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def by_distance(rows: list[Row]) -> list[str]:
    """As Markdown: errors by the number of scales that were fitted and the distance of the target, of cells with
    record.FEWEST forecasts or more, and of all rows; beside the share inside its exact 95 % interval."""
    header = ["scales fitted", "target / fitted ranks", "forecasts", "median error", "nine in ten below", "inside 90 %"]
    header += ["95 % interval of that", "interval score", "wider than 30"]
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    groups = {
        cell: [row for row in rows if record.cell(row["scales"], row["beyond"]) == cell]
        for cell in product(record.SCALES, record.DISTANCES)
    }
    for cell, own in (groups | {("any", "any"): rows}).items():
        if len(own) < record.FEWEST:
            continue
        found = summary(own)
        cells = [*cell, str(len(own)), *(f"{100 * found[key]:.0f} %" for key in ("median", "nine_in_ten", "inside"))]
        cells += [f"{100 * found['inside_from']:.1f} to {100 * found['inside_to']:.1f} %"]
        cells += [f"{found['interval_score']:.2f}", f"{100 * found['wide']:.0f} %"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="directory with the tables that README.md names")
    parser.add_argument("--family", help="only this one")
    parser.add_argument("--json", action="store_true", help="every forecast")
    parser.add_argument("--page", type=Path, help="put the table there, between its marks")
    given = parser.parse_args()
    entries = [question for question in questions(given.data) if given.family in (None, question.family)]
    if not entries:
        parser.error(
            f"There is no question in '{given.data}'"
            + (f" of the family '{given.family}'." if given.family else "; README.md says which tables are read.")
        )
    rows: dict[str, list[Row]] = defaultdict(list)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for question, found in zip(entries, pool.map(score, entries), strict=True):
            rows[question.family] += found
    everything = [row for found in rows.values() for row in found]
    distinct = [row for row in everything if row["why_not"] not in DROPPED]
    clean = [row for row in everything if not row["why_not"]]
    families = {
        family: summary(kept) for family, found in rows.items() if (kept := [row for row in found if row in distinct])
    }
    if len(rows) > 1:
        families |= {"all": summary(distinct), "clean": summary(clean), "every row": summary(everything)}
    if given.json:
        print(json.dumps({"rows": everything, "families": families}, indent=1))
        return
    fallen, held = falls(clean)
    without = sum(row["iocast"]["low"] is None for row in distinct)
    reasons = Counter(row["why_not"] for row in everything if row["why_not"])
    lines = table(families)
    lines += [
        "",
        (
            f"Of the clean rows {fallen} fell below three quarters of the last value; {held} of them lie inside."
            f" {without} forecasts have no interval (more processes than cores)."
        ),
    ]
    if reasons:
        lines += ["", "Rows that are not clean, by reason:", ""]
        lines += [f"- {reason} ({count})" for reason, count in reasons.most_common()]
    distances = by_distance(everything)
    print("\n".join([*lines, "", *distances]))
    if given.page:
        put(given.page, "published", lines)
        put(given.page, "published by distance", distances)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do forecasts of latencies come true where nobody measured a lone rank? Published quantiles of md-workbench's runs at
small scales are imported as a table, a platform is calibrated to them, and its forecasts stand beside the quantiles of
a larger scale, which nothing before has seen.

    validation/published/latencies.py DIRECTORY [--json] [--page docs/scoreboard.md]

DIRECTORY holds the tables (README.md has their names). A few seconds. Errors are factors less 1. Beside each stands
that of the last value: the same quantile at the largest fitted scale. `repeats` is what one repeat of the target scale
is off from the mean of all, which no forecast can beat."""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]
from iocast.calibrate.fit import calibrate  # noqa: E402
from iocast.forecasts.answer import predict  # noqa: E402
from iocast.importers import import_files  # noqa: E402
from iocast.platforms.documents import dump  # noqa: E402
from iocast.platforms.fitted import Fitted  # noqa: E402
from iocast.runs.run_directory import Point, Run, group  # noqa: E402
from scoreboard import put  # noqa: E402

Row = dict[str, str]
OPERATIONS = {"create": "create", "stat": "stat", "read": "read", "delete": "unlink"}
"""By the tables' names those of iocast's workload md-workbench."""
COLUMNS = {
    "mean": "mean_s", "min": "min_s", "q25": "q1_s", "q50": "median_s", "q75": "q3_s", "q90": "p90_s", "q95": "p95_s",
    "q99": "p99_s", "q999": "p999_s", "max": "max_s",
}  # fmt: skip
SHOWN = ("q50", "q75", "q95", "q99")
BODY = ("q50", "q75", "q95")
BARS = {"q50 to q95": 0.20, "q99": 0.35}


@dataclass(frozen=True)
class Question:
    """Runs that are fitted, by name, and the one that is forecast. settings: of the workload, where the target has
    others."""

    title: str
    fitted: tuple[str, ...]
    target: str
    settings: tuple[tuple[str, str], ...] = ()


LUSTRE01 = "results-lustre01-"
NO_DATA = "results-nodata-lustre01-"
QUESTIONS = (
    Question(
        "Mistral lustre01, from 5 and 10 nodes: 25 x 10 ranks",
        (f"{LUSTRE01}5-7217917", f"{LUSTRE01}10-7217920", f"{LUSTRE01}10-7217919", f"{LUSTRE01}10-7217918"),
        f"{LUSTRE01}25-7217921",
    ),
    Question(
        "Mistral lustre01 without data, from 25 nodes: 50 x 20 ranks",
        (f"{NO_DATA}25-7224015", f"{NO_DATA}25-7223991", f"{NO_DATA}25-7224011"),
        f"{NO_DATA}50-7224029",
    ),
    Question("Mistral lustre02, from 5 x 10 ranks: 10 x 10 ranks", ("results-5-7217624",), "results-10-7217628"),
    Question(
        "Cooley, 10 ranks, from 10,000 objects each: 20,000", ("10-10-10k",), "10-10-20k", (("objects", "20000"),)
    ),
)


def rows_of(file: Path) -> list[Row]:
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


class Tables:
    """Quantiles of single operations and rates of the phases, by run."""

    def __init__(self, directory: Path) -> None:
        self.quantiles: dict[str, list[Row]] = defaultdict(list)
        self.objects: dict[str, int] = {}
        for row in rows_of(directory / "latency_quantiles_2017.csv"):
            if row["op"] in OPERATIONS:
                self.quantiles[row["run"]].append(row)
            elif row["op"] == "precreate":
                self.objects[row["run"]] = int(row["n_obs"]) // int(row["n_rank_files"])
        self.phases: dict[str, list[Row]] = defaultdict(list)
        for row in rows_of(directory / "parallel_2017_mdreal_phases.csv"):
            if row["scope"] == "all" and row["phase"] == "benchmark":
                self.phases[row["run"]].append(row)

    def lines(self, run: str) -> list[dict[str, Any]]:
        """Of a table of iocast's, an operation and repeat each. Repeats that lack an operation are left out. Where no
        rates of phases are published, all ranks are those with latencies: rates follow from their last end."""
        phases = {row["bench_iter"]: row for row in self.phases[run]}
        repeats: dict[str, list[Row]] = defaultdict(list)
        for row in self.quantiles[run]:
            repeats[row["iteration"]].append(row)
        found = []
        for repeat, rows in repeats.items():
            if len(rows) < len(OPERATIONS):
                continue
            phase, ranks = phases.get(repeat), int(rows[0]["n_rank_files"])
            for row in rows:
                count, rate = (
                    (int(phase["objs"]), float(phase["obj_per_s"]))
                    if phase
                    else (int(row["n_obs"]), float(row["n_obs"]) / max(float(r["rank_end_max_s"]) for r in rows))
                )
                found.append(
                    {
                        "run": run,
                        "nodes": phase["nodes"] if phase else ranks,
                        "ppn": phase["ppn"] if phase else 1,
                        "workload": "md-workbench",
                        "phase": "benchmark",
                        "repeat": repeat,
                        "objects": self.objects[run],
                        "operation": OPERATIONS[row["op"]],
                        "rate": f"{rate:.6g}",
                        "operations": count,
                        **{name: row[column] for name, column in COLUMNS.items()},
                    }
                )
        return found


def imported(tables: Tables, runs: Iterable[str], scratch: Path) -> list[Point]:
    """Through the importer of tables, as a user's."""
    lines = [line for run in runs for line in tables.lines(run)]
    file = scratch.with_suffix(".csv")
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    return group([Run(path) for path in import_files([file], scratch)])


def answered(question: Question, tables: Tables) -> list[dict[str, Any]]:
    """By quantity of the target: what was forecast, what the last scale has, and what was measured."""
    with tempfile.TemporaryDirectory(prefix="iocast-latencies-") as scratch:
        points = imported(tables, question.fitted, Path(scratch) / "fitted")
        platform = Path(scratch) / "platform.yaml"
        platform.write_text(dump(calibrate(points, "queue", 0, lambda *_: None)))
        place = tables.lines(question.target)[0]  # of which the placement alone is used here
        answer = predict(
            Fitted.open(str(platform)), None, dict(question.settings), int(place["nodes"]), int(place["ppn"])
        )
        (target,) = imported(tables, [question.target], Path(scratch) / "target")
        last = max(points, key=lambda point: point.ranks)
        rows = []
        for name in ["rate", *(f"{op}.{which}" for op in OPERATIONS.values() for which in SHOWN)]:
            ours, truth = answer["quantities"][name], target.value(name)
            rows.append(
                {
                    "question": question.title,
                    "quantity": name,
                    "forecast": ours["value"],
                    "low": ours["low"],
                    "high": ours["high"],
                    "measured": truth,
                    "error": off(ours["value"], truth),
                    "last value": off(last.value(name), truth),
                    "repeats": repeats_of(target.first, name),
                }
            )
        return rows


def off(value: float, truth: float) -> float:
    return math.expm1(abs(math.log(value / truth)))


def repeats_of(run: Run, quantity: str) -> float:
    """What a repeat is off from the mean of all: the standard deviation of the logarithm, as a factor less 1."""
    op, _, which = quantity.rpartition(".")
    values = [phase.own_rate if quantity == "rate" else phase.latencies(op).value(which) for phase in run.phases]
    return math.expm1(float(np.std(np.log([value for value in values if value]), ddof=1)))


def percent(value: float) -> str:
    return f"{100 * value:.{0 if value > 0.0995 else 1}f} %"


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """As Markdown: a line for each operation, and what each question comes to below."""
    lines = ["| operation | rate | q50 | q75 | q95 | q99 |", "|---|---|---|---|---|---|"]
    found = []
    for title in dict.fromkeys(row["question"] for row in rows):
        mine = {row["quantity"]: row for row in rows if row["question"] == title}
        lines.append(f"| **{title}** | | | | | |")
        lines.append(f"| all | {cell(mine['rate'])} | | | | |")
        for op in OPERATIONS.values():
            lines.append(f"| {op} | | {' | '.join(cell(mine[f'{op}.{which}']) for which in SHOWN)} |")
        found.append(sums(title, [row for name, row in mine.items() if name != "rate"]))
    lines += ["", "| question | q50 to q95 | q99 | last value | repeats | inside 90 % | target |", "|---" * 7 + "|"]
    return [*lines, *found]


def cell(row: dict[str, Any]) -> str:
    return f"{percent(row['error'])} (last {percent(row['last value'])})"


def sums(title: str, rows: Sequence[dict[str, Any]]) -> str:
    def middle(key: str, which: Callable[[str], bool]) -> float:
        return float(np.median([row[key] for row in rows if which(row["quantity"].rpartition(".")[2])]))

    both = {"q50 to q95": lambda which: which in BODY, "q99": lambda which: which == "q99"}
    ours, last, repeats = (
        {name: middle(key, which) for name, which in both.items()} for key in ("error", "last value", "repeats")
    )
    missed = [name for name, most in BARS.items() if ours[name] > most]
    inside = sum(row["low"] <= row["measured"] <= row["high"] for row in rows)
    cells = [
        title,
        *(percent(value) for value in ours.values()),
        *(" and ".join(percent(value) for value in one.values()) for one in (last, repeats)),
        f"{inside} of {len(rows)}",
        f"missed: {' and '.join(missed)}" if missed else "met",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="with the tables")
    parser.add_argument("--json", action="store_true", help="every forecast")
    parser.add_argument("--page", type=Path, help="put the table there, between its marks")
    given = parser.parse_args()
    tables = Tables(given.directory)
    rows = [row for question in QUESTIONS for row in answered(question, tables)]
    lines = table(rows)
    print(json.dumps(rows, indent=1) if given.json else "\n".join(lines))
    if given.page:
        put(given.page, "published latencies", lines)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges platforms by runs that were kept from every fit (platforms/facts/frozen.csv).

    validation/published/frozen.py DIRECTORY [--set frozen] [--data NAME...] [--page docs/evidence.md]

DIRECTORY holds the tables of md-workbench's runs (README.md has their names). Each run is simulated on its platform and
its rates, third quartiles and balance are compared within a factor of 1.5. Of repeats the median counts. Runs are
shortened to 100,000 iterations and as many objects."""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]
from iocast.published import three_digits  # noqa: E402
from iocast.published.experiment import phases  # noqa: E402
from iocast.published.facts import FACTS  # noqa: E402
from iocast.platforms.documents import PLATFORMS, chain, find_platform, get_path, merge  # noqa: E402
from scoreboard import put  # noqa: E402

WITHIN = 1.5
BUDGET = 100_000
ALL_MEMORY = 14_000
"""MB that the machine of sandy9 has for its page cache where the run limits none."""
INODES = "caches.inodes.objects"
OPERATIONS = {"read": "read", "stat": "stat", "create": "create", "delete": "unlink"}


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


def measured(directory: Path) -> dict[tuple[str, str], dict[str, float]]:
    """By data and run: `{"create rate of precreate": 25000.0, ...}`, rates a second, quartiles in milliseconds."""
    found: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows_of(directory / "parallel_2017_mdreal_phases.csv"):
        if row["scope"] == "all" and row["obj_per_s"]:
            found["mdworkbench-2017", row["run"]][f"rate of {row['phase']}"].append(float(row["obj_per_s"]))
    for row in rows_of(directory / "latency_quantiles_2017.csv"):
        if row["op"] in OPERATIONS:
            key = f"q75 of {OPERATIONS[row['op']]}"
            found["mdworkbench-2017", row["run"]][key].append(1e3 * float(row["q3_s"]))
    for row in rows_of(directory / "sandy9_local_fs.csv"):
        if row["scope"] == "all" and row["obj_per_s"]:
            run = f"{row['experiment']}/{row['device']}-{row['fs']}-{row['lim_free_mem_mb']}-{row['nproc']}"
            found["sandy9-2016", run][f"rate of {row['phase']}"].append(float(row["obj_per_s"]))
    for row in rows_of(directory / "mistral_earthsim_2016_summary.csv"):
        run = found["mistral-2016", row["file"].removeprefix("results/")]
        if row["phase"] != "cleanup":
            run[f"rate of {row['phase']}"].append(float(row["rate"]))
        run[f"balance of {row['phase']}"].append(float(row["balance_tmin_over_tmax"]))
    return {key: {name: median(values) for name, values in one.items()} for key, one in found.items()}


def of_memory(platform: str, megabytes: int) -> dict[str, Any]:
    """Edits of a platform of one machine that has a gigabyte: all that its memory keeps grows with it."""
    edits: dict[str, Any] = {"caches.memory.capacity": f"{megabytes}MB"}
    inodes = get_path(reduce(merge, (document for _, document in reversed(chain(find_platform(platform))))), INODES)
    return edits | ({INODES: round(inodes * megabytes / 1000)} if inodes else {})


def simulated(row: dict[str, str], size: str, more: Mapping[str, str] | None = None) -> dict[str, float]:
    """The same of the platform with these edits."""
    nodes, ppn, datasets = (int(row[name]) for name in ("nodes", "ppn", "datasets"))
    loops = nodes * ppn * datasets
    # what fits into memory depends on the objects of one machine, which are therefore all there
    objects = int(row["objects"]) if nodes == 1 else min(int(row["objects"]), max(1, BUDGET // loops))
    iterations = min(int(row["iterations"]), max(1, BUDGET // loops), objects)
    settings = {"datasets": datasets, "objects": objects, "iterations": iterations, "object_size": f"{size}B"}
    edits = dict(more or {})
    if row["data"] == "sandy9-2016":
        edits |= of_memory(row["platform"], min(int(row["run"].split("-")[-2]), ALL_MEMORY))
    found = {}
    for phase in phases(row["platform"], "md-workbench-large", nodes, ppn, settings, edits):
        operation = "unlink" if phase["name"] == "cleanup" else "create"
        found[f"rate of {phase['name']}"] = phase["latency"][operation]["count"] / phase["seconds"]
        found[f"balance of {phase['name']}"] = phase["balance"]
        if phase["name"] == "benchmark":
            found |= {f"q75 of {op}": 1e3 * phase["latency"][op]["q75"] for op in OPERATIONS.values()}
    return found


def judged(directory: Path, which: str, data: list[str]) -> Iterator[dict[str, Any]]:
    known = measured(directory)
    sizes = {row["run"]: row["obj_bytes"] for row in rows_of(directory / "parallel_2017_mdreal_phases.csv")}
    for row in rows_of(FACTS / "frozen.csv"):
        if row["set"] != which or (data and row["data"] not in data):
            continue
        if not (PLATFORMS / f"{row['platform']}.yaml").is_file():
            yield {**row, "quantity": "", "measured": 0.0, "simulated": 0.0, "met": None}
            continue
        values = simulated(row, sizes.get(row["run"], "3900"))
        for quantity, value in sorted(known[row["data"], row["run"]].items()):
            if quantity in values and value > 0:
                factor = values[quantity] / value
                met = 1 / WITHIN <= factor <= WITHIN
                yield {**row, "quantity": quantity, "measured": value, "simulated": values[quantity], "met": met}


def table(found: list[dict[str, Any]]) -> list[str]:
    """As Markdown: counts by data, then each value that is not met."""
    judged_rows: Counter[tuple[str, str]] = Counter()
    met: Counter[tuple[str, str]] = Counter()
    for one in found:
        if one["met"] is not None:
            key = (f"{one['data']}, {one['platform']}", one["quantity"].partition(" ")[0])
            judged_rows[key] += 1
            met[key] += one["met"]
    kinds = ("rate", "q75", "balance")
    lines = ["| data, platform | rates met | third quartiles met | balances met |", "|---|---|---|---|"]
    for name in dict.fromkeys(name for name, _ in judged_rows):
        cells = [
            f"{met[name, kind]} of {judged_rows[name, kind]}" if judged_rows[name, kind] else "–" for kind in kinds
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "| run | value | measured | simulated |", "|---|---|---|---|"]
    for one in found:
        if one["met"] is False:
            unit = {"rate": " /s", "q75": " ms"}.get(one["quantity"].partition(" ")[0], "")
            values = " | ".join(three_digits(one[side]) + unit for side in ("measured", "simulated"))
            lines.append(f"| {one['run']} | {one['quantity']} | {values} |")
    missing = sorted({one["platform"] for one in found if one["met"] is None})
    return lines + (["", f"Not in the catalogue: {', '.join(missing)}."] if missing else [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="with the tables")
    parser.add_argument("--set", default="frozen", choices=("frozen", "fitted", "open"), dest="which")
    parser.add_argument("--data", nargs="*", default=[], help="of this data alone")
    parser.add_argument("--page", type=Path, help="put the table there, between its marks")
    given = parser.parse_args()
    found = list(judged(given.directory, given.which, given.data))
    if given.page:
        put(given.page, given.which, table(found))
    else:
        print("\n".join(table(found)))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a run feel those before it? Measures a directory at several numbers of ranks again and again, in turns with and
without having caches dropped before each run (`drop_caches` in docs/campaigns.md), and prints throughput of each and by
what factor repeats differ: what they differ by, no forecast of them can be nearer than.

    validation/real/repeats.py DIR [--ranks 1 2 8] [--rounds 3] [--seconds 3] [--json]

Needs root, who alone may drop caches; each round takes about a minute."""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "validation"), str(ROOT / "validation/real")]
from filesystems import iocast  # noqa: E402

from iocast.campaign.bench import DROP_CACHES  # noqa: E402
from iocast.runs.run_directory import find_runs  # noqa: E402
from iocast.wording.text import quantity  # noqa: E402

CAMPAIGN = """\
schema_version: 1
workload: md-workbench
settings: {{datasets: 4}}
seconds: {seconds}
scaling: strong
drop_caches: {drop}
benchmark_repeats: 3
repeats: 2
points:
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 8])
    parser.add_argument(
        "--rounds", type=int, default=3, help="of two runs with and two without, for each number of ranks"
    )
    parser.add_argument("--seconds", type=float, default=3, help="that a rank alone takes for its phases")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if not os.access(DROP_CACHES, os.W_OK):
        parser.error(f"{DROP_CACHES} can't be written to; run as root")
    if not given.directory.is_dir():
        parser.error(f"the directory '{given.directory}' does not exist; make it first")
    rates: dict[str, dict[int, list[float]]] = {"as they come": {}, "caches dropped": {}}
    with tempfile.TemporaryDirectory(prefix="iocast-repeats-") as scratch:
        points: list[dict[str, object]] = [{"ranks": n} for n in given.ranks]
        for number in range(given.rounds):
            ways = [("caches dropped", "true"), ("as they come", "false")]
            for way, drop in ways if number % 2 == 0 else reversed(ways):
                plan, out = Path(scratch) / "plan.yaml", Path(scratch) / f"{drop}-{number}"
                plan.write_text(
                    CAMPAIGN.format(seconds=given.seconds, drop=drop)
                    + "".join(f"  - {json.dumps(point)}\n" for point in points)
                )
                iocast("measure", given.directory, "--campaign", plan, "--out", out, "--seed", number)
                for run in find_runs([out], "benchmark")[0]:
                    rates[way].setdefault(run.ranks, []).append(run.rate)
                    # The first campaign's pilot finds how long runs are; all others are as long.
                    next(point for point in points if point["ranks"] == run.ranks).setdefault(
                        "settings", {name: run.parameters[name] for name in ("iterations", "objects")}
                    )
    found = {
        way: {
            n: {
                "rates": by_ranks[n],
                "highest_over_lowest": max(by_ranks[n]) / min(by_ranks[n]),
                "sd_log": float(np.std(np.log(by_ranks[n]), ddof=1)),
            }
            for n in sorted(by_ranks)
        }
        for way, by_ranks in rates.items()
    }
    if given.json:
        print(json.dumps(found, indent=1))
        return
    for way, by_ranks in found.items():
        for n, printed in by_ranks.items():
            print(
                f"{way:>14}, {n:3d} ranks: {', '.join(quantity('rate', r) for r in printed['rates'])}; highest"
                f" {printed['highest_over_lowest']:.2f} times the lowest"
            )


if __name__ == "__main__":
    main()

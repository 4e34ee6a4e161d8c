#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast is the simulator? Requests a second of one core, and memory a client, for md-workbench at several numbers of clients.

Every size is simulated several times, the sizes in turns, so that whatever else the machine does hits all alike. A run's
iterations are chosen such that it handles at least the asked number of requests, but a client makes at least six. The bytes a
client are the peak memory beyond that of one client alone.

    validation/speed/simulator.py [--platform lustre] [--clients 100 10000 1000000] [--runs 5] [--json]
"""

import argparse
import json
import math
import statistics
import subprocess
from pathlib import Path
from typing import Any

from iocast import binaries, text

OPERATIONS_PER_ITERATION = 4  # md-workbench: stat, read, unlink, create


def run(program: str, platform: str, clients: int, requests: int) -> dict[str, Any]:
    iterations = max(3, math.ceil(requests / clients / (OPERATIONS_PER_ITERATION + 2)))
    ranks_per_node = min(10, clients)
    command = [program, "--json", "--platform", platform, "--nodes", str(clients // ranks_per_node), "--ppn", str(ranks_per_node)]
    command += ["--set", "datasets=1", "--set", f"objects={iterations}", "--set", f"iterations={iterations}"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", default="lustre", help="a name or a file")
    parser.add_argument("--clients", type=int, nargs="+", default=[100, 10_000, 1_000_000], help="ten a node")
    parser.add_argument("--requests", type=int, default=3_000_000, help="at least so many in a run")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()

    program = binaries.find("iocast-sim")
    empty = run(program, given.platform, 1, 1)["peak_rss_bytes"]
    runs: dict[int, list[dict[str, Any]]] = {clients: [] for clients in given.clients}
    for _ in range(given.runs):
        for clients, results in runs.items():
            results.append(run(program, given.platform, clients, given.requests))

    report = []
    for clients, results in runs.items():
        rates = [result["requests_per_second"] for result in results]
        report.append(
            {
                "clients": clients,
                "requests": results[0]["requests"],
                "events_per_request": results[0]["events"] / results[0]["requests"],
                "wall_seconds_median": statistics.median(result["wall_seconds"] for result in results),
                "requests_per_second": {"min": min(rates), "median": statistics.median(rates), "max": max(rates)},
                "bytes_per_client": (max(result["peak_rss_bytes"] for result in results) - empty) / clients,
            }
        )
    if given.json:
        print(json.dumps({"platform": given.platform, "program": Path(program).name, "runs": given.runs, "sizes": report}, indent=1))
        return
    print(f"md-workbench on {given.platform}, {given.runs} runs a size, one core; requests a second")
    print(
        text.table(
            ["clients", "requests", "events each", "seconds", "min", "median", "max", "bytes a client"],
            [
                [
                    f"{row['clients']:,}",
                    f"{row['requests']:,}",
                    f"{row['events_per_request']:.2f}",
                    f"{row['wall_seconds_median']:.2f}",
                    *(text.quantity("rate", row["requests_per_second"][of]) for of in ("min", "median", "max")),
                    f"{row['bytes_per_client']:.0f}" if row["clients"] >= 10_000 else "-",
                ]
                for row in report
            ],
        )
    )


if __name__ == "__main__":
    main()

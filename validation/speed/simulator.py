#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast is the simulator? Requests a second of one core, and memory a client, for md-workbench on each platform
family at several numbers of clients; how many times as fast as the same closed network of SimGrid's actors and
mailboxes (actors.cpp); and how long bulk data of 10,000 clients take (HPCS scenario 7 on xt4). Each figure stands
beside the targets; exit status 4 when one falls short.

Every size is simulated several times, the sizes in turns, so that whatever else the machine does hits all alike. A
run's iterations are chosen such that it handles at least the requested number of operations, but a client makes at
least six. Where an operation is several requests to servers (of PVFS2 a dozen), these count against the bar: visits to
stations that are not on nodes. The bytes a client are the peak memory beyond that of one client alone. What buffers of
the platform hold is data, not
clients: it grows with the run, so a run of twice the iterations tells how much of the memory it is, and it stands
apart.

    validation/speed/simulator.py [--platform NAME...] [--clients 100 10000 1000000] [--runs 5] [--json]

With --beside PROGRAM, an iocast-sim of another version, both simulate the same questions in turns, and only that is
printed: how many operations a second of processor time this version simulates for one of the other, in the median of
pairs and by the fastest runs, and the peak memory of both. Exit status 4 when a median falls below 0.97.

    validation/speed/simulator.py --platform lustre local --runs 9 --beside OTHER/bin/iocast-sim
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from iocast.ground import binaries
from iocast.wording import text

FAMILIES = ("lustre", "beegfs", "cephfs", "local", "fuse", "service", "pvfs2-gigabit", "cooley", "datawarp", "ime")
OPERATIONS_PER_ITERATION = 4  # md-workbench: stat, read, unlink, create
RANKS_PER_NODE = 10
LEAST_RATE, MAX_GROWTH, MAX_BYTES = 2e6, 2.0, 200
"""Requests a second at every size, cost of an operation at the most clients over that at the fewest, bytes a client."""
LEAST_BESIDE = 0.97
"""Operations a processor second over those of another version."""
MANY = 100_000
"""Clients, of whom the bytes of one can be separated from those needed once."""
BULK_CLIENTS, BULK_SECONDS = 10_000, 60
CLOSED = Path(__file__).with_name("closed.yaml")
EQUAL_WORK = 0.05
"""The two closed networks' simulated rates may differ by this share: their random numbers differ."""


@cache
def _beyond(program: str) -> tuple[str, ...]:
    """The option for more nodes than ten times the published ones; earlier programs have none."""
    known = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout
    return ("--beyond",) if "--beyond" in known else ()


def simulate(
    program: str, platform: str, clients: int, *settings: str, ranks_per_node: int = RANKS_PER_NODE
) -> dict[str, Any]:
    ranks_per_node = min(ranks_per_node, clients)
    command = [
        program,
        "--json",
        "--platform",
        platform,
        "--nodes",
        str(clients // ranks_per_node),
        "--ppn",
        str(ranks_per_node),
        *_beyond(program),
        *settings,
    ]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def run(program: str, platform: str, clients: int, operations: int, times: int = 1) -> dict[str, Any]:
    iterations = max(3, math.ceil(operations / clients / (OPERATIONS_PER_ITERATION + 2)))
    return simulate(program, platform, clients, *sized(times * iterations))


def requests_per_operation(result: dict[str, Any]) -> float:
    """To servers; at least one, be it to the node's own system."""
    servers = [name for name, station in result["platform"]["stations"].items() if station.get("per") != "node"]
    visits = sum(
        of["visits"]
        for phase in result["phases"]
        for name in servers
        for of in phase["stations"][name]["operations"].values()
    )
    return max(1.0, visits / result["requests"])


def sized(iterations: int) -> list[str]:
    return ["--set", "datasets=1", "--set", f"objects={iterations}", "--set", f"iterations={iterations}"]


def family(program: str, platform: str, given: argparse.Namespace) -> dict[str, Any]:
    empty = run(program, platform, 1, 1)["peak_rss_bytes"]
    runs: dict[int, list[dict[str, Any]]] = {clients: [] for clients in given.clients}
    for _ in range(given.runs):
        for clients, results in runs.items():
            results.append(run(program, platform, clients, given.operations))
    sizes = []
    for clients, results in runs.items():
        rates = [result["requests_per_second"] for result in results]
        sizes.append(
            {
                "clients": clients,
                "operations": results[0]["requests"],
                "events_per_operation": results[0]["events"] / results[0]["requests"],
                "requests_per_operation": requests_per_operation(results[0]),
                "wall_seconds_median": statistics.median(result["wall_seconds"] for result in results),
                "operations_per_second": {"min": min(rates), "median": statistics.median(rates), "max": max(rates)},
                "bytes_per_client": (max(result["peak_rss_bytes"] for result in results) - empty) / clients,
            }
        )
    first, last = sizes[0], sizes[-1]
    slowest = min(one["operations_per_second"]["median"] * one["requests_per_operation"] for one in sizes)
    if any("buffers" in phase for phase in runs[last["clients"]][0]["phases"]):
        twice = (run(program, platform, last["clients"], given.operations, times=2)["peak_rss_bytes"] - empty) / last[
            "clients"
        ]
        last["bytes_per_client_in_buffers"] = twice - last["bytes_per_client"]
        last["bytes_per_client"] -= last["bytes_per_client_in_buffers"]
    bars = {
        "least requests a second": {"value": slowest, "target": LEAST_RATE, "met": slowest >= LEAST_RATE},
        "growth of an operation's cost": _at_most(
            first["operations_per_second"]["median"] / last["operations_per_second"]["median"], MAX_GROWTH
        ),
    }
    if last["clients"] >= MANY:
        bars["bytes a client"] = _at_most(last["bytes_per_client"], MAX_BYTES)
    return {"platform": platform, "sizes": sizes, "bars": bars}


def _at_most(value: float, requested: float) -> dict[str, Any]:
    return {"value": value, "target": requested, "met": value <= requested}


def against_actors(program: str, actors: str, clients: int, requests: int, runs: int) -> dict[str, Any]:
    """The same closed network in both, in turns."""
    iterations = max(3, math.ceil(requests / clients / OPERATIONS_PER_ITERATION))
    each = iterations * OPERATIONS_PER_ITERATION
    factors, rates = [], []
    for _ in range(runs):
        ours = simulate(program, str(CLOSED), clients, *sized(iterations), "--set", "phases=benchmark")
        theirs = json.loads(
            subprocess.run(
                [actors, str(clients // RANKS_PER_NODE), str(RANKS_PER_NODE), str(each)],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        simulated = ours["phases"][0]["rate"], theirs["requests"] / theirs["simulated_seconds"]
        if not 1 - EQUAL_WORK < simulated[0] / simulated[1] < 1 + EQUAL_WORK:
            sys.exit(
                f"The two networks of {clients} clients are not the same one: {simulated[0]:.0f} requests a simulated"
                f" second, with actors {simulated[1]:.0f}."
            )
        rates.append((ours["requests_per_second"], theirs["requests"] / theirs["wall_seconds"]))
        factors.append(rates[-1][0] / rates[-1][1])
    ours_median, theirs_median = (statistics.median(pair[n] for pair in rates) for n in (0, 1))
    return {
        "clients": clients,
        "requests_per_second": ours_median,
        "with_actors": theirs_median,
        "factor": {"min": min(factors), "median": statistics.median(factors), "max": max(factors)},
    }


def beside_another(program: str, other: str, given: argparse.Namespace) -> bool:
    """Prints how two versions compare on each platform and size. @returns whether none is too slow"""
    rows, met = [], True
    for platform in given.platform:
        for clients in given.clients:
            rates: dict[str, list[float]] = {program: [], other: []}
            memory = dict.fromkeys(rates, 0)
            for number in range(given.runs):
                for one in (program, other) if number % 2 else (other, program):
                    before = resource.getrusage(resource.RUSAGE_CHILDREN)
                    result = run(one, platform, clients, given.operations)
                    after = resource.getrusage(resource.RUSAGE_CHILDREN)
                    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                    rates[one].append(result["requests"] / seconds)
                    memory[one] = max(memory[one], result["peak_rss_bytes"])
            pairs = [mine / theirs for mine, theirs in zip(rates[program], rates[other], strict=True)]
            median = statistics.median(pairs)
            met &= median >= LEAST_BESIDE
            rows.append(
                [
                    platform,
                    f"{clients:,}",
                    text.quantity("rate", statistics.median(rates[program])),
                    f"{median:.3f}",
                    f"{min(pairs):.3f}",
                    f"{max(pairs):.3f}",
                    f"{max(rates[program]) / max(rates[other]):.3f}",
                    f"{memory[program] / 1e6:.0f}",
                    f"{memory[other] / 1e6:.0f}",
                ]
            )
    print(f"md-workbench, {given.runs} pairs a size; operations a processor second, this version over the other")
    heads = ["platform", "clients", "operations", "median", "min", "max", "fastest", "MB", "MB of the other"]
    print(text.table(heads, rows))
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", nargs="+", default=list(FAMILIES), help="names or files; by default each family")
    parser.add_argument("--clients", type=int, nargs="+", default=[100, 10_000, 1_000_000], help="ten a node")
    parser.add_argument("--operations", type=int, default=3_000_000, help="least number in a run")
    parser.add_argument("--actors", type=int, nargs="*", default=[100, 10_000], help="clients beside SimGrid's actors")
    parser.add_argument("--actor-operations", type=int, default=200_000, help="of a run beside actors")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--beside", metavar="PROGRAM", help="an iocast-sim of another version")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()

    program = binaries.find("iocast-sim")
    if given.beside:
        sys.exit(0 if beside_another(program, given.beside, given) else 4)
    actors = str(Path(program).with_name("actors"))
    if given.actors and not Path(actors).is_file():
        sys.exit(
            "The comparison with actors is not built; build with -DIOCAST_TESTS=ON, as ./check does, or give --actors"
            " without a number."
        )
    families = [family(program, platform, given) for platform in given.platform]
    beside = [against_actors(program, actors, clients, given.actor_operations, given.runs) for clients in given.actors]
    bulk = simulate(program, "xt4", BULK_CLIENTS, "--workload", "hpcs-07", ranks_per_node=1)
    bulk_bar = _at_most(bulk["wall_seconds"], BULK_SECONDS)
    met = bulk_bar["met"] and all(bar["met"] for one in families for bar in one["bars"].values())
    if given.json:
        print(
            json.dumps(
                {
                    "runs": given.runs,
                    "families": families,
                    "actors": beside,
                    "bulk": {"clients": BULK_CLIENTS, "seconds": bulk_bar},
                    "met": met,
                },
                indent=1,
            )
        )
    else:
        show(families, beside, bulk_bar, given.runs)
    sys.exit(0 if met else 4)


def bytes_of(row: dict[str, Any]) -> str:
    if row["clients"] < MANY:
        return "-"
    buffers = row.get("bytes_per_client_in_buffers")
    return f"{row['bytes_per_client']:.0f}" + ("" if buffers is None else f" + {buffers:.0f} in buffers")


def show(families: list[dict[str, Any]], beside: list[dict[str, Any]], bulk: dict[str, Any], runs: int) -> None:
    print(f"md-workbench, {runs} runs a size, one core; operations a second, and requests to servers in the median")
    print(
        text.table(
            [
                "platform",
                "clients",
                "operations",
                "events each",
                "seconds",
                "min",
                "median",
                "max",
                "requests",
                "bytes a client",
            ],
            [
                [
                    one["platform"],
                    f"{row['clients']:,}",
                    f"{row['operations']:,}",
                    f"{row['events_per_operation']:.2f}",
                    f"{row['wall_seconds_median']:.2f}",
                    *(text.quantity("rate", row["operations_per_second"][of]) for of in ("min", "median", "max")),
                    text.quantity("rate", row["operations_per_second"]["median"] * row["requests_per_operation"]),
                    bytes_of(row),
                ]
                for one in families
                for row in one["sizes"]
            ],
        )
    )
    for one in families:
        for name, bar in one["bars"].items():
            if not bar["met"]:
                print(f"Missed on {one['platform']}: {name} {bar['value']:.4g}, target {bar['target']:.4g}.")
    if beside:
        print("\nThe closed network of closed.yaml, beside actors and mailboxes; requests a second")
        print(
            text.table(
                ["clients", "iocast-sim", "actors", "factor", "min", "max"],
                [
                    [
                        f"{row['clients']:,}",
                        text.quantity("rate", row["requests_per_second"]),
                        text.quantity("rate", row["with_actors"]),
                        *(f"{row['factor'][of]:.1f}" for of in ("median", "min", "max")),
                    ]
                    for row in beside
                ],
            )
        )
    print(
        f"\nBulk data of {BULK_CLIENTS:,} clients, HPCS scenario 7 on xt4: {bulk['value']:.1f} s, target at most"
        f" {bulk['target']} s."
    )


if __name__ == "__main__":
    main()

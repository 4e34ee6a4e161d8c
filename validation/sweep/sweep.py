#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every platform of the catalogue under seven workloads on 1 to 1000 client nodes, and what is wrong with the answers:

    python validation/sweep/sweep.py [--platform NAME...] [--nodes 1 10] [--checks cells nodes] [--out FILE]

- `cells`: bytes that take no time of any device or link; links or devices that carry more than they can, and rates
  beyond the cards and devices of both ends; no answer within 40 s of a processor.
- `nodes`: the rate of a node at n + 1 (n = 10, 100, 1000) that differs by more than 2 % from the line through n - 1 and
  n + 2. Where it does, seven more seeds tell it from chance. Beside it stands the instance whose share of the bytes
  explains it, as where files lie unevenly; else the busiest link of n + 1, and `unexplained`.
- `sizes`: ior-easy with transfers of 1 MiB and of 16 KiB, and of one byte more and less: bytes a second that differ by
  more than 2 %, again beyond chance.
- `caches`: cold and warm caches that differ by less than 10 % in HPCS scenarios 10 to 12, and platforms whose route of
  stat looks into no cache of objects, or into one that doesn't hold the whole set.

Every line of the result is one such cell. Exit status 4 when there is one of `cells`. Few operations of a rank, so that
all of it takes minutes; `--jobs` processes at a time. In the suite: `tests/python/test_sweep.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from scipy import stats

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests"))
from programs import find_program  # noqa: E402

NODES = (1, 10, 100, 1000)
STEPS = (10, 100, 1000)
WORKLOADS = {
    "md-workbench": ("datasets=1", "objects=20", "iterations=20"),
    "mdtest-hard": ("items=20",),
    "ior-easy": ("per_process=16MiB",),
    "ior-hard": ("segments=20",),
    "hpcs-07": ("arrays=3",),
    "hpcs-12": ("depth=2", "branching=10", "files=10"),
    "postmark": ("number=20", "transactions=40"),
}
WALKS = ("hpcs-10", "hpcs-11", "hpcs-12")
MOVE = ("create", "append", "read", "pwrite", "pread")
MAX_SECONDS = 40
"""Of a processor, for a cell."""
MAX_STEP = 0.02
"""Largest relative difference that is no cliff."""
MIN_WARMTH = 0.10
"""Least share of its time that a walk with warm caches saves."""
SEEDS = range(2, 9)
"""Further seeds of a cell that looks like a cliff."""
CONFIDENCE = 0.99


class Late(Exception):
    """No answer within MAX_SECONDS."""


@dataclass(frozen=True)
class Question:
    """One simulation, of one rank a node."""

    platform: str
    workload: str
    nodes: int
    settings: tuple[str, ...]
    seed: int = 1

    @property
    def name(self) -> str:
        return f"{self.platform} {self.workload} {self.nodes}x1"

    def answer(self) -> dict[str, Any]:
        """The run.

        Raises:
            Late: it takes too long.
            RuntimeError: it ends with an error.
        """
        command = [str(simulator()), "--json", "--brief", "--platform", self.platform, "--workload", self.workload]
        command += ["--nodes", str(self.nodes), "--seed", str(self.seed), "--beyond"]
        command += [part for setting in self.settings for part in ("--set", setting)]
        limit = (MAX_SECONDS, MAX_SECONDS + 1)
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limit),
        )
        if done.returncode < 0:
            raise Late
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        run: dict[str, Any] = json.loads(done.stdout)
        return run


@cache
def simulator() -> Path:
    found = find_program("iocast-sim")
    assert found is not None, "iocast-sim is not built; run ./check"
    return found


@cache
def resolved(platform: str) -> dict[str, Any]:
    """The platform with inheritance merged, in SI units."""
    done = subprocess.run(
        [str(simulator()), "--platform", platform, "--print-platform"], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


ALL = ("steps", "hit", "miss", "recall")
"""What a step holds further steps under."""


def steps_of(steps: list[dict[str, Any]], under: tuple[str, ...] = ALL) -> Iterator[dict[str, Any]]:
    """All steps in the foreground, or those of them that are under some of these keys alone."""
    for step in steps:
        yield step
        for inner in under:
            yield from steps_of(step.get(inner, []), under)


def route_of(platform: dict[str, Any], operation: str, under: tuple[str, ...] = ALL) -> list[dict[str, Any]]:
    parts = platform["operations"].get(operation, [])
    return [step for part in parts for step in steps_of(part["steps"], under)]


def most_bytes(platform: dict[str, Any], operation: str, nodes: int) -> float:
    """Bytes a second of all nodes, at most: cards of the nodes, and of the servers that the bytes go to, and disks of
    these; what goes into a buffer of the nodes, or comes out of a cache of theirs, has no bound."""
    network = platform["network"]
    places = network.get("servers", {})
    least = math.inf
    for step in route_of(platform, operation, ("steps",)):  # all bytes pass these
        if "buffer" in step and platform["buffers"][step["buffer"]].get("per") == "node":
            return math.inf
        station = platform["stations"].get(step.get("station", ""), {})
        if "transfer" in step:
            card = places.get(step["station"], {}).get("bandwidth", 0) or network.get("server_bandwidth", 0)
            least = min(least, nodes * network["node_bandwidth"] or math.inf, card * station["count"] or math.inf)
        if "disk" in station and ("transfer" in step or "disk" in step):
            way = step.get("transfer", step.get("disk"))
            least = min(least, station["disk"][way] * (1 if station.get("per") == "node" else station["count"]))
    return least


def faults_of(question: Question, run: dict[str, Any]) -> list[str]:
    """What is wrong with the bytes of one run."""
    platform = resolved(question.platform)
    faults = []
    for finding in run.get("model_limits", {}).get("findings", []):
        if finding["kind"] == "no-bytes":
            faults.append(f"{finding['operation']} of any number of bytes takes as long")
    for phase in run["phases"]:
        for link in phase.get("network", {}).get("busiest", []):
            if link["busy"] > 1 + 1e-9:
                faults.append(f"{phase['name']}: {link['name']} is busy for {link['busy']:.4f} of the time")
        for operation, sums in phase["by_operation"].items():
            rate = sums.get("bytes_per_second", 0)
            most = most_bytes(platform, operation, question.nodes)
            if operation in MOVE and rate > most * (1 + 1e-6):
                faults.append(
                    f"{phase['name']}: {operation} moves {rate:.3g} B/s, more than cards and disks: {most:.3g}"
                )
    return sorted(set(faults))


def check_cell(question: Question) -> list[str]:
    try:
        run = question.answer()
    except Late:
        return [f"no answer in {MAX_SECONDS} s"]
    except RuntimeError as error:
        return [f"refused: {error}"]
    return faults_of(question, run)


def rates_of(run: dict[str, Any]) -> dict[str, float]:
    """Operations a second by phase, of phases whose ranks all have some."""
    return {
        phase["name"]: phase["rate"]
        for phase in run["phases"]
        if phase["operations"] >= run["placement"]["ranks"] and phase["seconds"] > 0
    }


def busiest(run: dict[str, Any], phase: str) -> str:
    links = [
        link for one in run["phases"] if one["name"] == phase for link in one.get("network", {}).get("busiest", [])[:1]
    ]
    return f", busiest link {links[0]['name']} {100 * links[0]['busy']:.0f} %" if links else ""


def shares_of(run: dict[str, Any], phase: str) -> dict[str, dict[str, Any]]:
    """Of each station the instance with most bytes of the phase."""
    network = next((one["network"] for one in run["phases"] if one["name"] == phase and "network" in one), {})
    shares: dict[str, dict[str, Any]] = network.get("shares", {})
    return shares


def explained(phase: str, off: float, runs: dict[int, dict[str, Any]]) -> str:
    """Names the instance whose share of the bytes explains that the rate a node is `off` the line through the outer two
    of three numbers of nodes. Where it limits all the time, the rate of all goes by the inverse of its share; where it
    limits for a part of the time, by half of that or more."""
    before, here, after = runs
    for station, most in shares_of(runs[here], phase).items():
        others = [shares_of(runs[nodes], phase).get(station) for nodes in (before, after)]
        if None in others:
            continue
        pace = {
            nodes: 1 / (share["share"] * nodes)
            for nodes, share in zip((before, here, after), (others[0], most, others[1]), strict=True)
            if share
        }
        expected = pace[here] / (pace[before] / 3 + 2 * pace[after] / 3) - 1
        if expected * off > 0 and abs(off) - MAX_STEP <= abs(expected) <= 2 * abs(off) + MAX_STEP:
            share = f"{100 * most['share']:.2f} % of the bytes of all {most['instances']}"
            return f", by {station} {most['instance']}: {share}"
    return ""


def beyond_chance(deviations: list[float], most: float) -> bool:
    """Whether their mean is beyond `most` in size, whatever the seed."""
    error = statistics.stdev(deviations) / math.sqrt(len(deviations))
    margin = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(deviations) - 1)) * error
    return abs(statistics.fmean(deviations)) - margin > most


def cliffs(deviations_with: Callable[[int], dict[str, float]]) -> dict[str, float]:
    """Mean deviation by name, of those beyond MAX_STEP and beyond chance."""
    first = deviations_with(1)
    suspected = {name for name, deviation in first.items() if abs(deviation) > MAX_STEP}
    if not suspected:
        return {}
    more = [first, *(deviations_with(seed) for seed in SEEDS)]
    of = {name: [one[name] for one in more if name in one] for name in suspected}
    return {name: statistics.fmean(all_) for name, all_ in of.items() if beyond_chance(all_, MAX_STEP)}


def check_nodes(question: Question) -> list[str]:
    """Of the rate a node at n + 1 from the line through n - 1 and n + 2, n being the question's nodes."""
    n = question.nodes

    def rates(nodes: int, seed: int) -> dict[str, float]:
        run = Question(question.platform, question.workload, nodes, question.settings, seed).answer()
        return {name: rate / nodes for name, rate in rates_of(run).items()}

    def deviations(seed: int) -> dict[str, float]:
        before, here, after = (rates(nodes, seed) for nodes in (n - 1, n + 1, n + 2))
        return {
            name: here[name] / (before[name] / 3 + 2 * after[name] / 3) - 1
            for name in here
            if name in before and name in after
        }

    try:
        found = cliffs(deviations)
        if not found:
            return []
        runs = {
            nodes: Question(question.platform, question.workload, nodes, question.settings).answer()
            for nodes in (n - 1, n + 1, n + 2)
        }
    except Late:
        return [f"steps of nodes: no answer in {MAX_SECONDS} s"]
    except RuntimeError as error:
        return [f"steps of nodes: refused: {error}"]
    return [
        f"{name} at {n + 1} nodes: {100 * off:+.1f} %"
        f"{explained(name, off, runs) or busiest(runs[n + 1], name) + ', unexplained'}"
        for name, off in sorted(found.items())
    ]


def check_sizes(question: Question) -> list[str]:
    """ior-easy with transfers of the settings' size, one byte less and one more."""
    size = int(question.settings[0])
    count = max(16, (1 << 20) // size)

    def bytes_a_second(transfer: int, seed: int) -> dict[str, float]:
        settings = (f"transfer_size={transfer}B", f"per_process={count * transfer}B")
        run = Question(question.platform, "ior-easy", question.nodes, settings, seed).answer()
        return {
            operation: sums["bytes_per_second"]
            for phase in run["phases"]
            for operation, sums in phase["by_operation"].items()
            if sums.get("bytes_per_second", 0) > 0
        }

    def deviations(seed: int) -> dict[str, float]:
        exact = bytes_a_second(size, seed)
        return {
            f"{operation} of {size}{sign} B": rate / exact[operation] - 1
            for sign, transfer in ((" - 1", size - 1), (" + 1", size + 1))
            for operation, rate in bytes_a_second(transfer, seed).items()
        }

    try:
        return [f"{name}: {100 * off:+.1f} %" for name, off in sorted(cliffs(deviations).items())]
    except Late:
        return [f"sizes: no answer in {MAX_SECONDS} s"]
    except RuntimeError as error:
        return [f"sizes: refused: {error}"]


def lacks(platform: dict[str, Any], objects: int) -> str:
    """Why a warm pass can't find this number of objects in a cache; empty where the route of stat looks into one that
    has room for them."""
    rooms = [platform["caches"][step["cache"]] for step in route_of(platform, "stat") if "cache" in step]
    room = max((cache.get("objects", 0) for cache in rooms), default=0)
    if room == 0:
        return "stat looks into no cache of objects"
    return "" if room >= objects else f"the cache of stat has room for {room} of {objects} objects"


def check_caches(question: Question) -> list[str]:
    depth, branching, files = 2, 10, 10
    directories = sum(branching**level for level in range(depth + 1))
    if why := lacks(resolved(question.platform), directories * (files + 1)):
        return [why]
    try:
        run = question.answer()
    except Late:
        return [f"no answer in {MAX_SECONDS} s"]
    except RuntimeError as error:
        return [f"refused: {error}"]
    seconds = {phase["name"]: phase["seconds"] for phase in run["phases"]}
    if seconds["warm"] <= (1 - MIN_WARMTH) * seconds["cold"]:
        return []
    return [f"cold {seconds['cold']:.4g} s, warm {seconds['warm']:.4g} s"]


CHECKS: dict[str, Callable[[Question], list[str]]] = {
    "cells": check_cell,
    "nodes": check_nodes,
    "sizes": check_sizes,
    "caches": check_caches,
}


def questions(check: str, platforms: list[str], scales: list[int]) -> list[Question]:
    """Few nodes first."""
    if check == "sizes":
        return [
            Question(p, "ior-easy", n, (str(size),)) for n in (1, 10) for p in platforms for size in (1 << 20, 1 << 14)
        ]
    if check == "caches":
        return [Question(p, w, n, WORKLOADS["hpcs-12"]) for n in (1, 10) for p in platforms for w in WALKS]
    of = STEPS if check == "nodes" else NODES
    return [Question(p, w, n, s) for n in of if n in scales for p in platforms for w, s in WORKLOADS.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = sorted(file.stem for file in (REPOSITORY / "platforms").glob("*.yaml"))
    parser.add_argument("--platform", nargs="+", default=every, help="names or files; by default all of the catalogue")
    parser.add_argument("--nodes", type=int, nargs="+", default=list(NODES))
    parser.add_argument("--checks", nargs="+", choices=CHECKS, default=list(CHECKS))
    parser.add_argument("--jobs", type=int, default=2, help="simulations at a time")
    parser.add_argument("--out", type=Path, help="text file")
    given = parser.parse_args()
    lines, wrong = ["python validation/sweep/sweep.py", ""], 0
    for check in given.checks:
        cells = questions(check, given.platform, given.nodes)
        faulty = 0
        with ThreadPoolExecutor(given.jobs) as pool:
            for question, faults in zip(cells, pool.map(CHECKS[check], cells), strict=True):
                faulty += bool(faults)
                for fault in faults:
                    lines.append(f"{check}: {question.name}: {fault}")
                    print(lines[-1], flush=True)
        lines.append(f"{check}: {faulty} of {len(cells)} listed")
        print(lines[-1], flush=True)
        wrong += faulty if check == "cells" else 0
    if given.out:
        given.out.write_text("\n".join([*lines, ""]))
    sys.exit(4 if wrong else 0)


if __name__ == "__main__":
    main()

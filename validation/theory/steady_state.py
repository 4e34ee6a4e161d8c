# SPDX-License-Identifier: Apache-2.0
"""How often the 95 % interval of `steady_state` in a run holds the true rate, by the length of the phase.

    python validation/theory/steady_state.py [--runs 200] [--seconds 6 12 23 46 91]

The first system is a server that eight ranks share with background load: pieces of half a second on average (of the
server alone), 0.6 a second, by processor sharing. The other one is the server alone, before which ranks think for 5 ms
on average (machine repair). The true rates are exact, by their birth and death processes. A second of a phase costs
about a millisecond of one core.

Phases shorter than the load's pieces and their building-up (the server begins without any) miss the 95 %. Two other
rules were tried on 80 phases of 12 s, of which 57 % were covered: no steady state where the best cut lies in the second
half of the phase (58 % of those left), and intervals by 4 groups as well (58 %). What was kept, the interval of the
whole phase where more than a quarter was cut off, made 72 % of it, and 89 % instead of 75 % of 124 phases of 23 s."""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests"))
from programs import find_program  # noqa: E402

RANKS, SERVICE, THINK = 8, 1e-3, 5e-3
ARRIVALS, DEMAND = 0.6, 0.5
PLATFORM = """schema_version: 1
stations: {server: {servers: 1, discipline: ps}}
demands: {s: {law: exponential, mean: 1ms}}
operations:
  stat: [{station: server, demand: s}]
  unlink: [{station: server, demand: s}]
  create: {open: [], write: [{station: server, demand: s}], close: []}
  read: {open: [], read: [{station: server, demand: s}], close: []}
"""
BACKGROUND = "background: {others: {station: server, rate: 0.6/s, demand: {law: exponential, mean: 500ms}}}\n"


def stationary(births: Sequence[float], deaths: Sequence[float]) -> list[float]:
    """Probabilities of 0, 1, ... where `births[k]` leads from k to k + 1 and `deaths[k]` back."""
    weights = [1.0]
    for birth, death in zip(births, deaths, strict=True):
        weights.append(weights[-1] * birth / death)
    return [weight / sum(weights) for weight in weights]


def rate_beside_others() -> float:
    """Operations a second: the ranks' share of the server while k pieces are there."""
    most = 300
    present = stationary([ARRIVALS] * most, [k / (RANKS + k) / DEMAND for k in range(1, most + 1)])
    return sum(p * RANKS / (RANKS + k) for k, p in enumerate(present)) / SERVICE


def rate_with_thinking() -> float:
    present = stationary([(RANKS - k) / THINK for k in range(RANKS)], [1 / SERVICE] * RANKS)
    return (1 - present[0]) / SERVICE


class System(NamedTuple):
    name: str
    body: str
    settings: tuple[str, ...]
    rate: float


SYSTEMS = (
    System("beside background load", PLATFORM + BACKGROUND, (), rate_beside_others()),
    System("with thinking", PLATFORM, ("think_time=5ms", "think_law=exponential"), rate_with_thinking()),
)


class Coverage(NamedTuple):
    given: int
    """Runs with a steady state."""
    held: int
    """Of these, the intervals that hold the true rate."""
    half_width: float
    """Mean, relative to the true rate."""
    bias: float
    """Mean error of the rate, relative."""


def coverage(simulator: Path, system: System, seconds: float, runs: int) -> Coverage:
    iterations = math.ceil(seconds * system.rate / RANKS / 4)  # of four operations
    settings = ("datasets=1", f"objects={iterations}", f"iterations={iterations}", "phases=benchmark", *system.settings)
    arguments = [part for setting in settings for part in ("--set", setting)]
    held, widths, errors = 0, [], []
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "platform.yaml"
        file.write_text(system.body)
        command = [str(simulator), "--platform", str(file), "--nodes", str(RANKS), *arguments, "--json", "--brief"]
        for seed in range(runs):
            done = subprocess.run([*command, "--seed", str(seed)], check=True, capture_output=True, text=True)
            if steady := json.loads(done.stdout)["phases"][-1].get("steady_state"):
                held += abs(steady["rate"] - system.rate) <= steady["rate_half_width"]
                widths.append(steady["rate_half_width"] / system.rate)
                errors.append(steady["rate"] / system.rate - 1)
    given = len(widths)
    return Coverage(given, held, sum(widths) / max(given, 1), sum(errors) / max(given, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seconds", type=float, nargs="+", default=[6, 12, 23, 46, 91], help="length of the phase")
    options = parser.parse_args()
    simulator = find_program("iocast-sim")
    assert simulator is not None, "iocast-sim is not built; run ./check"
    print("| system | seconds | runs with a steady state | hold the true rate | half width | error of the rate |")
    print("|---|---|---|---|---|---|")
    for system in SYSTEMS:
        for seconds in options.seconds:
            found = coverage(simulator, system, seconds, options.runs)
            share = found.held / max(found.given, 1)
            print(
                f"| {system.name} | {seconds:g} | {found.given} of {options.runs} | {found.held} ({100 * share:.0f} %) "
                f"| {100 * found.half_width:.1f} % | {100 * found.bias:+.1f} % |",
                flush=True,
            )


if __name__ == "__main__":
    main()

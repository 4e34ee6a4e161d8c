#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""User time of simulations by the module for pages, beside iocast-sim's: python validation/page/speed.py [ENGINE]

ENGINE is chromium, firefox or node; without one chromium. Prints a line for each workload and number of clients on the
platform lustre, with the bar that it should stay below, and exits with 1 where one is missed. As the page does, it
simulates a long workload for so few iterations that it has at most 200,000 operations, but for one at least. Each
workload has run before: a browser compiles anew what runs often, beside it, and its user time counts that."""

from __future__ import annotations

import sys

from engines import engine
from equal import given, native

PLATFORM, RANKS_PER_NODE = "lustre", 10
LARGEST_RATIO = 2.5
"""Times iocast-sim's user time."""
CASES = (
    ("md-workbench", ["phases=benchmark", "iterations=5"], 1_000, 0.3),
    ("md-workbench", ["phases=benchmark", "iterations=1"], 10_000, 3.0),
    ("hpcs-07", [], 1_000, 1.5),
    ("hpcs-07", [], 10_000, 15.0),
)
"""Workload, settings, clients, and the most seconds that it should take."""


def main() -> int:
    name = sys.argv[1] if len(sys.argv) > 1 else "chromium"
    missed = 0
    with engine(name) as run:
        for workload, settings, clients, _ in CASES[::2]:
            run(given(PLATFORM, workload, settings, clients // RANKS_PER_NODE, RANKS_PER_NODE))
        for workload, settings, clients, most in CASES:
            place = (clients // RANKS_PER_NODE, RANKS_PER_NODE)
            answer, seconds = run(given(PLATFORM, workload, settings, *place))
            if "error" in answer:
                sys.exit(f"{workload}, {clients} clients: {answer['error']}")
            _, own = native(PLATFORM, workload, settings, *place)
            is_missed = seconds > most or seconds > LARGEST_RATIO * own
            missed += is_missed
            print(f"{name}: {workload}, {clients:,} clients, {answer['requests']:,} requests: {seconds:.2f} s (at most "
                  f"{most} s), {seconds / own:.1f} times iocast-sim (at most {LARGEST_RATIO}){', MISSED' * is_missed}",
                  flush=True)  # fmt: skip
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

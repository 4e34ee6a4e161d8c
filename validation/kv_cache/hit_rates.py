#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hit rates of `kv-cache` against an exact LRU of its own, and how many blocks a second are simulated.

    validation/kv_cache/hit_rates.py [--requests 1000000]

A trace of requests for one block each, popular by Zipf's law, drawn by NumPy, in stores of several capacities. The
other LRU is an ordered dictionary. Blocks a second are of the processor time of `iocast-sim`, on the platform `local`.
A minute. Exit code 1 when a hit rate differs by more than 1 %, or fewer than 500,000 blocks a second are done.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections import OrderedDict
from pathlib import Path

import numpy as np

SIMULATOR = Path(__file__).resolve().parents[2] / "build" / "bin" / "iocast-sim"


def exact_hits(blocks: list[int], capacity: int) -> int:
    """Hits of a least recently used cache that holds `capacity` blocks."""
    kept: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for block in blocks:
        if block in kept:
            hits += 1
            kept.move_to_end(block)
            continue
        if len(kept) == capacity:
            kept.popitem(last=False)
        kept[block] = None
    return hits


def processor_seconds() -> float:
    of = resource.getrusage(resource.RUSAGE_CHILDREN)
    return of.ru_utime + of.ru_stime


def simulated(*arguments: str) -> tuple[dict, float]:
    """Operations of the phase `serve` by kind, and the processor's seconds."""
    before = processor_seconds()
    done = subprocess.run(
        [SIMULATOR, "--json", "--brief", "--platform", "local", "--workload", "kv-cache", *arguments],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    phase = next(one for one in json.loads(done.stdout)["phases"] if one["name"] == "serve")
    return phase["by_operation"], processor_seconds() - before


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    given = parser.parse_args()
    ranks = np.arange(1, 200_001)
    weights = 1 / ranks
    blocks = np.random.default_rng(1).choice(200_000, given.requests, p=weights / weights.sum()).tolist()
    worst = 0.0
    with tempfile.TemporaryDirectory() as scratch:
        trace = Path(scratch) / "trace.jsonl"
        trace.write_text("".join(
            f'{{"timestamp": {i}, "input_length": 512, "output_length": 1, "hash_ids": [{block}]}}\n'
            for i, block in enumerate(blocks)
        ))  # fmt: skip
        print("capacity  exact LRU  kv-cache  blocks a second of a processor, trace read")
        for capacity in (100, 1_000, 10_000, 100_000):
            found, seconds = simulated("--set", f"trace={trace}", "--set", f"capacity={capacity}")
            reads = found["read"]["count"]
            assert reads + found["create"]["count"] == given.requests
            expected = exact_hits(blocks, capacity)
            worst = max(worst, abs(reads / expected - 1))
            print(f"{capacity:8d}  {expected / given.requests:9.4f}  {reads / given.requests:8.4f}"
                  f"  {given.requests / seconds:12,.0f}")  # fmt: skip
        found, seconds = simulated("--set", f"requests={given.requests}", "--set", "turn_blocks=4")
        speed = 4 * given.requests / seconds
    print(f"drawn requests of four blocks: {speed:,.0f} blocks a second of a processor; at least 500,000 wanted")
    print(f"hit rates differ by {100 * worst:.3g} % at most; at most 1 % wanted")
    return worst > 0.01 or speed < 500_000


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Prints how long the analytic solver takes and how far it is from the closed form.

Run it as: python validation/theory/solver_speed.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import systems

from iocast.analytic import solve
from iocast.analytic.product_form import ClosedNetwork, Station, servers


def best_of(five: Callable[[], float]) -> tuple[float, float]:
    """(answer, seconds)."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        answer = five()
        times.append(time.perf_counter() - start)
    return answer, min(times)


def main() -> None:
    print("closed M/M/16 with a delay, at its knee: rate only")
    print(f"{'N':>9} {'rate':>12} {'relative error':>15} {'ms':>8}")
    for n in (100, 10_000, 1_000_000):
        delay = n / 16
        found, seconds = best_of(lambda n=n, z=delay: ClosedNetwork([Station("s", 1.0, servers(16))], z, n).throughput)
        truth = systems.repairman_throughput(n, np.minimum(np.arange(1, n + 1), 16), delay)
        print(f"{n:9} {found:12.6f} {found / truth - 1:15.1e} {1e3 * seconds:8.2f}")

    visit = {"station": "s", "demand": ("lognormal", 1e-3, 0.5)}
    platform = systems.resolved({"s": systems.station(16)}, [{"delay": ("constant", 1e-2)}, visit])
    print("solve() of one station and a delay: rate, quantiles, maxima")
    print(f"{'ranks':>9} {'T':>3} {'rate':>12} {'ms':>8}")
    for n in (100, 10_000, 1_000_000):
        for factor in (0.0, 4.0):
            found, seconds = best_of(lambda n=n, t=factor: solve(platform, {"stat": 1}, n // 10, 10, t, 100 * n).rate)
            print(f"{n:9} {factor:3.0f} {found:12.2f} {1e3 * seconds:8.2f}")


if __name__ == "__main__":
    main()

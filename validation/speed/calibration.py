#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long does a calibration take? A campaign of at least 25 runs of systems that the second simulator made
(validation/blind), calibrated as `lustre` on all cores, beside the target; exit status 4 when it takes longer.
Seconds of processor, with those of all simulators, tell how much of it was waiting for other work of the machine.

    validation/speed/calibration.py [--truth 0 7 30] [--seed 5] [--json]"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

VALIDATION = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(VALIDATION.parent), str(VALIDATION), str(VALIDATION / "blind"), str(VALIDATION / "theory")]
from blind import small_campaign  # noqa: E402
from truths import truths  # noqa: E402

from iocast.calibrate.fit import calibrate  # noqa: E402

REPEATS = 4
MAX_SECONDS = 300
"""On two quiet cores."""


def processor_seconds() -> float:
    """Of this process and of those that it started and that ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=int, nargs="+", default=[0, 7, 30], help="numbers of the random systems")
    parser.add_argument("--seed", type=int, default=5, help="of these")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if min(given.truth) < 0:
        parser.error("truths have numbers from 0 on")
    known = truths(max(given.truth) + 1, given.seed)
    found = []
    for number in given.truth:
        with tempfile.TemporaryDirectory(prefix="iocast-") as scratch:
            points = small_campaign(known[number], number, REPEATS, Path(scratch))
            began, processor = time.perf_counter(), processor_seconds()
            fitted = calibrate(points, "lustre", 0, lambda *_: None)["fitted"]
            seconds, processor = time.perf_counter() - began, processor_seconds() - processor
        found.append(
            {
                "truth": known[number].name,
                "runs": sum(len(p.runs) for p in points),
                "simulations": fitted["simulations"],
                "seconds": seconds,
                "processor_seconds": processor,
            }
        )
        if not given.json:
            print(
                f"{known[number].name}: {found[-1]['runs']} runs, {fitted['simulations']} simulations, {seconds:.1f} s"
                f" on {len(os.sched_getaffinity(0))} cores (at most {MAX_SECONDS} on two), {processor:.1f} s of"
                " processor",
                flush=True,
            )
    if given.json:
        print(json.dumps(found))
    sys.exit(4 if max(one["seconds"] for one in found) > MAX_SECONDS else 0)


if __name__ == "__main__":
    main()

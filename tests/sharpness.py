#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sharpness of statistical tests: the smallest error that each detects with a probability of POWER.

    tests/sharpness.py          table of the records of the last runs, Python and C++
    tests/sharpness.py --json   the same as JSON

A statistical test records its sharpness where it asserts, with one of the functions here or `expect_within` of
tests/unit/sharpness.hpp. Records are lines of JSON in the file that IOCAST_SHARPNESS names, build/sharpness.jsonl by
default; the last one of a test and quantity counts. tests/python/test_sharpness.py finds tests that record nothing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
from pathlib import Path
from typing import Any

POWER = 0.9
"""Probability with which an error of the recorded size makes the test fail."""
Z = 1.2816
"""Quantile of the standard normal distribution at POWER."""
SHOWN = 4
"""Records that the table shows of each test, largest first."""
DEFAULT = Path(__file__).resolve().parents[1] / "build" / "sharpness.jsonl"


def record(what: str, smallest: float, unit: str = "") -> None:
    """Prints and keeps the smallest error of the quantity `what` that the running test detects."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0] or "no test"
    print(f"sharpness: {what}: {smallest:.3g} {unit}".rstrip())
    file = Path(os.environ.get("IOCAST_SHARPNESS", DEFAULT))
    if file.parent.is_dir():
        with file.open("a") as out:  # one write of a short line: processes may append at once
            out.write(json.dumps({"test": test, "what": what, "smallest": smallest, "unit": unit}) + "\n")


def shift(what: str, half_width: float, standard_error: float, unit: str = "") -> None:
    """Records the sharpness of a test that a mean lies within `half_width` of its expected value."""
    record(what, half_width + Z * standard_error, unit)


def more_than(what: str, most: int, tries: int) -> None:
    """Records the smallest share of successes that a test detects which allows `most` among `tries`."""
    from scipy.optimize import brentq
    from scipy.stats import binom

    if most < tries:
        record(what, brentq(lambda share: binom.sf(most, tries, share) - POWER, 0.0, 1.0), "of tries, or more")


def fewer_than(what: str, least: int, tries: int) -> None:
    """Records the largest share of successes that a test detects as too small which wants `least` among `tries`."""
    from scipy.optimize import brentq
    from scipy.stats import binom

    if least > 0:
        record(what, brentq(lambda share: binom.cdf(least - 1, tries, share) - POWER, 0.0, 1.0), "of tries, or less")


def recorded(file: Path) -> list[dict[str, Any]]:
    """The last record of each test and quantity, by test."""
    last = {}
    for line in file.read_text().splitlines() if file.is_file() else []:
        one = json.loads(line)
        last[one["test"], one["what"]] = one
    return [last[key] for key in sorted(last)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = recorded(Path(os.environ.get("IOCAST_SHARPNESS", DEFAULT)))
    if given.json:
        print(json.dumps({"power": POWER, "tests": rows}, indent=1))
        return
    print(f"Smallest error that fails a test with a probability of {POWER:.0%}.\n")
    for test, group in itertools.groupby(rows, key=lambda one: one["test"]):
        own = sorted(group, key=lambda one: -float(one["smallest"]))
        for one in own[:SHOWN]:
            print(f"{test}\n    {one['what']}: {one['smallest']:.3g} {one['unit']}".rstrip())
        if len(own) > SHOWN:
            print(f"    ... and {len(own) - SHOWN} smaller ones, the smallest {own[-1]['smallest']:.3g}")


if __name__ == "__main__":
    main()

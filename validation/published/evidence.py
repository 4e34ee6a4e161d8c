#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the simulator show what was published about the systems that platforms/ knows? Each file of claims/ holds the statements of one
source; here they are simulated and judged.

    validation/published/evidence.py [SOURCE...] [--json] [--page docs/evidence.md]

SOURCE is the name of a file of claims/; all without. With --page each source's table is put there, between its marks. Exit status 4 when a
claim is not met, unless its file says why."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from experiment import Claim  # noqa: E402
from scoreboard import put  # noqa: E402

SOURCES = sorted(file.stem for file in (HERE / "claims").glob("*.py"))


def source_of(name: str) -> tuple[str, list[Claim]]:
    """Its full name, and what it claims."""
    module = importlib.import_module(f"claims.{name}")
    return module.SOURCE, module.CLAIMS


def judged(claim: Claim) -> dict[str, Any]:
    value = claim.simulated()
    found = {"claim": claim.text, "place": claim.place, "low": claim.low, "high": claim.high, "unit": claim.unit, "simulated": value}
    return found | {"met": claim.low <= value <= claim.high, "why_not": claim.why_not}


def table(source: str, found: list[dict[str, Any]]) -> list[str]:
    """As Markdown."""
    lines = [source, "", "| claim | place | asked for | simulated | met |", "|---|---|---|---|---|"]
    for one in found:
        unit = f" {one['unit']}" if one["unit"] else ""
        verdict = "yes" if one["met"] else f"no: {one['why_not']}" if one["why_not"] else "no"
        lines.append(f"| {one['claim']} | {one['place']} | {_asked(one['low'], one['high'])}{unit} | {_digits(one['simulated'])}{unit} | {verdict} |")
    return lines


def _asked(low: float, high: float) -> str:
    if high == float("inf"):
        return f"at least {_digits(low)}"
    return f"at most {_digits(high)}" if low == float("-inf") else f"{_digits(low)} to {_digits(high)}"


def _digits(value: float) -> str:
    """Three of them."""
    return f"{float(f'{value:.3g}'):,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", help=f"of {', '.join(SOURCES)}; all without")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--page", type=Path, help="put the tables there, between the marks of each source")
    given = parser.parse_args()
    unknown = [name for name in given.sources if name not in SOURCES]
    if unknown:
        parser.error(f"there is no source {unknown[0]}; allowed: {', '.join(SOURCES)}")
    answers = {}
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for name in given.sources or SOURCES:
            source, claims = source_of(name)
            found = answers[name] = list(pool.map(judged, claims))
            lines = table(source, found)
            if not given.json:
                print("\n".join(lines), "\n", sep="\n", flush=True)
            if given.page:
                put(given.page, name, lines)
    if given.json:
        print(json.dumps(answers, indent=1))
    sys.exit(4 if any(not one["met"] and not one["why_not"] for found in answers.values() for one in found) else 0)


if __name__ == "__main__":
    main()

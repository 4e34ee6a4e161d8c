#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of published statements beside simulations into docs/evidence.md.

    validation/published/evidence.py [SOURCE...] --page docs/evidence.md

SOURCE is the name of a file of iocast/published/claims/; all without. Each source's table is put between its marks. The
statements alone are judged by `iocast validate --published`. Exit status 4 as there: when a claim is missed without a
stated reason, or met although a reason for a miss is stated."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]
from iocast.errors import InputError  # noqa: E402
from iocast.published import SOURCES, wanted_range, three_digits, validate_published  # noqa: E402
from scoreboard import put  # noqa: E402


def table(source: str, found: list[dict[str, Any]]) -> list[str]:
    """As Markdown."""
    lines = [source, "", "| claim | place | role | target | simulated | met |", "|---|---|---|---|---|---|"]
    for one in found:
        unit = f" {one['unit']}" if one["unit"] else ""
        verdict = "yes" if one["met"] else f"no: {one['why_not']}" if one["why_not"] else "no"
        wanted, value = wanted_range(one["low"], one["high"]), three_digits(one["simulated"])
        lines.append(
            f"| {one['claim']} | {one['place']} | {one['role']} | {wanted}{unit} | {value}{unit} | {verdict} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", help=f"of {', '.join(SOURCES)}; all without")
    parser.add_argument(
        "--page", type=Path, required=True, help="put the tables there, between the marks of each source"
    )
    given = parser.parse_args()
    try:
        answer = validate_published(given.sources)
    except InputError as error:
        parser.error(str(error))
    for name, one in answer["sources"].items():
        put(given.page, name, table(one["source"], one["claims"]))
    sys.exit(0 if answer["passed"] else 4)


if __name__ == "__main__":
    main()

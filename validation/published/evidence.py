#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of published statements beside simulations into docs/evidence.md.

    validation/published/evidence.py [SOURCE...] --page docs/evidence.md

SOURCE is the name of a file of iocast/published/claims/; all without. Each source's table is put between its marks, and
with all sources how many forecasts are met by quantity, and what is missed by reason. The statements alone are judged
by `iocast validate --published`. Exit status 4 as there: when a claim is missed without a
stated reason, or met although a reason for a miss is stated."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
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


KINDS = {"rate": "rates", "virtual_rate": "rates", "balance": "balances", "q75": "third quartiles", "max": "maxima"}
"""By quantity of a number of a table; all others are statements of other kinds."""
TARGETS = {"rates": "90 %", "third quartiles": "75 %", "all": "80 %"}


def misses(rows: Sequence[dict[str, Any]]) -> list[str]:
    """As Markdown: of forecasts how many are met by kind of quantity, and how many are missed for each reason."""
    forecasts = [row for row in rows if row["role"] == "forecast"]
    kinds = [*dict.fromkeys(KINDS.values()), "other statements"]
    of = [(KINDS.get(row["quantity"], kinds[-1]), row) for row in forecasts]
    lines = ["| forecasts of | met | share | target |", "|---|---|---|---|"]
    for kind in (*kinds, "all"):
        mine = [row for name, row in of if kind in (name, "all")]
        if mine:
            met = sum(row["met"] for row in mine)
            share = f"{100 * met / len(mine):.0f} %"
            lines.append(f"| {kind} | {met} of {len(mine)} | {share} | {TARGETS.get(kind, '–')} |")
    missed = [(row["why_not"], kind) for kind, row in of if not row["met"]]
    counts = Counter(missed)
    lines += ["", "| missed | of them | reason |", "|---|---|---|"]
    for reason, count in Counter(reason for reason, _ in missed).most_common():
        parts = ", ".join(f"{counts[reason, kind]} {kind}" for kind in kinds if counts[reason, kind])
        lines.append(f"| {count} | {parts} | {reason or 'none is stated'} |")
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
    if not given.sources:
        put(given.page, "misses", misses([row for one in answer["sources"].values() for row in one["claims"]]))
    sys.exit(0 if answer["passed"] else 4)


if __name__ == "__main__":
    main()

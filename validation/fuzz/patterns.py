#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of each regular expression of the toolkit on texts that almost match: some of its matches with one character
repeated, and with an end that spoils the match.

    validation/fuzz/patterns.py [--matches 15] [--length 3000]

A pattern that can split a text in several ways tries them all before it gives up. One that takes more than half a
second is printed with the text's beginning, and makes the exit status 1. Patterns that are put together at run time are
listed apart: nobody tried them. About half a minute."""

from __future__ import annotations

import argparse
import ast
import re
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from iocast.ground.strict import NUMBER  # noqa: E402

LIMIT = 0.5
"""Seconds of a processor."""
CALLS = ("compile", "match", "fullmatch", "search", "findall", "finditer", "split", "sub")
SPOILS = ("", "\0", " \0", " a b\0")


class Slow(Exception):
    pass


def patterns() -> Iterator[tuple[str, str, str | None]]:
    """Place, function of `re` and pattern of each call in the toolkit; None for what is known at run time only."""
    for file in sorted((ROOT / "iocast").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and ast.unparse(node.func.value) == "re"
                and node.func.attr in CALLS
                and node.args
            ):
                yield f"{file.relative_to(ROOT)}:{node.lineno}", node.func.attr, _text(node.args[0])


def _text(argument: ast.expr) -> str | None:
    """Of a constant, also with NUMBER in it."""
    if isinstance(argument, ast.Constant):
        return str(argument.value)
    if not isinstance(argument, ast.JoinedStr):
        return None
    parts = [part.value if isinstance(part, ast.Constant) else ast.unparse(part) for part in argument.values]
    parts = [NUMBER if part in ("f'{NUMBER}'", "f'{strict.NUMBER}'") else part for part in parts]
    return None if any(part.startswith("f'{") for part in parts) else "".join(parts)


def slowest(pattern: re.Pattern[str], function: str, matches: int, length: int) -> tuple[float, str]:
    """Seconds, and the text."""
    use = pattern.fullmatch if function in ("compile", "match", "fullmatch") else pattern.search
    worst = (0.0, "")

    @settings(
        max_examples=matches, database=None, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
    )
    @given(st.data())
    def stretch(data: Any) -> None:
        nonlocal worst
        match = data.draw(st.from_regex(pattern, fullmatch=True))
        place = data.draw(st.integers(0, max(len(match) - 1, 0)))
        for spoil in SPOILS:
            text = match[:place] + match[place : place + 1] * length + match[place + 1 :] + spoil
            begun = time.process_time()
            signal.setitimer(signal.ITIMER_VIRTUAL, 2 * LIMIT)
            try:
                use(text)
            except Slow:
                pass
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            worst = max(worst, (time.process_time() - begun, text))

    stretch()
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matches", type=int, default=15, help="of each pattern")
    parser.add_argument("--length", type=int, default=3000, help="times that a character is repeated")
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    def stop(*_: object) -> None:
        raise Slow

    signal.signal(signal.SIGVTALRM, stop)
    tried, slow, left = 0, 0, []
    for place, function, text in patterns():
        if text is None:
            left.append(place)
            continue
        try:
            seconds, example = slowest(re.compile(text), function, options.matches, options.length)
        except Unsatisfiable:
            left.append(place)
            continue
        tried += 1
        if seconds > LIMIT:
            slow += 1
            print(f"{place}: {seconds:.2f} s for {example[:40]!r}, repeated {options.length} times: {text[:80]}")
    print(f"{tried} patterns, {slow} slower than {LIMIT} s. Not tried: {', '.join(left)}.")
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()

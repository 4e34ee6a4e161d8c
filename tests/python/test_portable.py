# SPDX-License-Identifier: Apache-2.0
"""Simulations give the same numbers on every machine: nothing of theirs is left to the C library or to the standard
library of C++, which compute or order it in ways of their own."""

from __future__ import annotations

import re

import pytest
from programs import REPOSITORY

SOURCES = [file for directory in ("models", "workload", "sim", "profile", "input")
           for file in sorted((REPOSITORY / directory).rglob("*.[ch]pp"))]  # fmt: skip
DIFFERS = {
    "input/portable.hpp has it": r"std::(exp2?|expm1|log|log2|log10|log1p|pow|cbrt|hypot|t?gamma|lgamma|erfc?)\(",
    "no sum, product or quotient gives it": r"std::(sin|cos|tan|asin|acos|atan2?|sinh|cosh|tanh)\(",
    "its numbers are each library's own": r"std::(\w+_distribution|shuffle|sample|random_device)\b",
    "it has another size elsewhere": r"\blong double\b",
    "the library of the page's compiler lacks it": r"std::(ranges|views|format|jthread|source_location|execution)\b",
}


@pytest.mark.parametrize("why", DIFFERS)
def test_no_source_of_a_simulation_takes_what_differs_between_machines(why: str) -> None:
    assert len(SOURCES) > 100
    found = [f"{file.relative_to(REPOSITORY)}:{number}: {line.strip()}"
             for file in SOURCES for number, line in enumerate(file.read_text().splitlines(), 1)
             if re.search(DIFFERS[why], line.partition("//")[0])]  # fmt: skip
    assert not found, f"{why}: {found}"

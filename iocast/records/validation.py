# SPDX-License-Identifier: Apache-2.0
"""Validations as files and JSON have them (docs/answers.md, `kind: validation`)."""

from __future__ import annotations

from enum import Enum


class Verdict(Enum):
    """How a validation ended."""

    PASSED = "passed"
    FELL_SHORT = "fell short"
    NOTHING_HELD_OUT = "nothing held out"
    """Every measurement was fitted, so that nothing was judged."""

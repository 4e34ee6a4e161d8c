# SPDX-License-Identifier: Apache-2.0
"""Names that become names of files: of runs, steps, phases and points."""

from __future__ import annotations

import re
from collections.abc import Sequence

ALLOWED = "letters, digits and . _ = + -, no leading dot, at most 200 of them"
MAX_LENGTH = 200
MAX_LISTED = 3
PATTERN = rf"^[A-Za-z0-9_=+-][A-Za-z0-9._=+-]{{0,{MAX_LENGTH - 1}}}\Z"
_NAME = re.compile(PATTERN)
_FOREIGN = re.compile(r"[^A-Za-z0-9._=+-]")


def is_file_name(text: object) -> bool:
    """Whether the text names a file in the present directory and nothing else: no way out of it, nothing that a shell
    or a terminal would act on."""
    return isinstance(text, str) and _NAME.match(text) is not None


def as_file_name(text: str) -> str:
    """The text with "_" for every character that a name can't have."""
    plain = _FOREIGN.sub("_", text)[:MAX_LENGTH]
    return plain if is_file_name(plain) else f"_{plain[: MAX_LENGTH - 1]}"


def shortened(names: Sequence[str]) -> str:
    """The first three, and how many more there are."""
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(names[:MAX_LISTED]) + more

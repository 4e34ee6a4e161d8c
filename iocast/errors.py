# SPDX-License-Identifier: Apache-2.0
"""The two ways a command can fail. Messages are finished sentences: they reach the user as they are."""

from __future__ import annotations

import re

MAX_LENGTH = 3000
"""Characters of a message; what is longer comes from a file, not from us."""
_UNPRINTABLE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(message: object) -> str:
    """The message without what a terminal would act on, and not longer than anybody reads."""
    text = _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], str(message))
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH // 2]} ... {text[-MAX_LENGTH // 2 :]}"


class InputError(ValueError):
    """Bad input: a wrong file, value or combination (exit code 2)."""

    code = "bad-input"
    """What programs tell errors apart by; of iocast-sim's errors, as docs/run-directory.md lists them."""

    def __init__(self, message: object = "") -> None:
        super().__init__(printable(message))


class NothingThere(InputError):
    """What a command should work on isn't there, so that there is nothing to do."""

    code = "nothing-there"


class RunError(RuntimeError):
    """A failure although the input is right (exit code 1)."""

    code = "failed"

    def __init__(self, message: object = "") -> None:
        super().__init__(printable(message))

# SPDX-License-Identifier: Apache-2.0
"""The two ways a command can fail. Messages are finished sentences: they reach the user as they are."""

from __future__ import annotations


class InputError(ValueError):
    """What was asked can't be done as asked: a wrong file, value or combination (exit code 2)."""


class RunError(RuntimeError):
    """What was asked is fine, but doing it failed (exit code 1)."""

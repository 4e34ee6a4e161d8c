# SPDX-License-Identifier: Apache-2.0
"""Commands of the programs whose output is a verb's own."""

from __future__ import annotations

import subprocess
import sys

from iocast.errors import InputError, RunError


def pass_through(command: list[str]) -> None:
    """Runs a program whose standard output is this command's.

    @raises InputError, RunError with the program's message when it fails"""
    sys.stdout.flush()
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        message = done.stderr.strip()
        for program in ("iocast-sim: ", "iocast-bench: "):
            message = message.removeprefix(program)
        raise (InputError if done.returncode == 2 else RunError)(message)

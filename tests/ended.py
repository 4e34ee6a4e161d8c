# SPDX-License-Identifier: Apache-2.0
"""Whether a process that a test started has ended."""

import psutil


def has_ended(process: psutil.Process) -> bool:
    """Also one that its parent has collected between two looks."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True

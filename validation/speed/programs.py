# SPDX-License-Identifier: Apache-2.0
"""Where the programs are that speed is measured of."""

import os
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def find_program(name: str) -> Path:
    """In the bin directory of $IOCAST_BUILD, else of the build directory in the repository that has the newest. Ends
    the script when there is none."""
    if "IOCAST_BUILD" in os.environ:
        return Path(os.environ["IOCAST_BUILD"]) / "bin" / name
    built = list(REPOSITORY.glob(f"build*/bin/{name}"))
    if not built:
        sys.exit(f"{name} is not built; build the tree or set IOCAST_BUILD to its build directory.")
    return max(built, key=lambda program: program.stat().st_mtime)

# SPDX-License-Identifier: Apache-2.0
"""Where the built programs are."""

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]


def find_program(name: str) -> Path | None:
    """In $IOCAST_BUILD/bin if that is set, else in build/bin, else in the newest build-*/bin that has it."""
    if "IOCAST_BUILD" in os.environ:
        places = [Path(os.environ["IOCAST_BUILD"]).resolve()]
    else:
        others = (build for build in REPOSITORY.glob("build-*") if (build / "bin" / name).exists())
        newest = sorted(others, key=lambda build: (build / "bin" / name).stat().st_mtime, reverse=True)
        places = [REPOSITORY / "build", *newest]
    return next((place / "bin" / name for place in places if (place / "bin" / name).exists()), None)

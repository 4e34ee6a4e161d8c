# SPDX-License-Identifier: Apache-2.0
"""The command line. Each verb is a file of this package: it reads arguments, calls the library and prints.

A new verb is a file with `@verb(epilog=...)`, its name below, and its place in GROUPS (app.py)."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from iocast.cli import (  # noqa: F401
    calibrate,
    compare,
    describe,
    export,
    forecast,
    import_,
    knee,
    lab,
    list_,
    manual,
    measure,
    observe,
    plan,
    predict,
    report,
    selftest,
    simulate,
    study,
    validate,
)
from iocast.cli.app import app
from iocast.errors import InputError, RunError
from iocast.ground.progress import keep_interrupts, stderr


def _fail(message: str, code: int) -> NoReturn:
    stderr.print(f"iocast: {message}", markup=False, soft_wrap=True)
    sys.exit(code)


def main() -> None:
    keep_interrupts()
    try:
        app(prog_name="iocast")
    except InputError as error:
        _fail(str(error), 2)
    except RunError as error:
        _fail(str(error), 1)
    except Exception as error:
        if os.environ.get("IOCAST_DEBUG"):
            raise
        _fail(*_unexpected(error))


def _unexpected(error: Exception) -> tuple[str, int]:
    """Message and exit status of an unforeseen error. After a file was read its content is the likely reason."""
    from iocast.ground.strict import last_files, shown

    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "iocast" in Path(frame.filename).parts]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "its libraries"
    what = f"{type(error).__name__} {shown(str(error))} in {where}"
    files = last_files()
    if isinstance(error, OSError):
        named = f" '{error.filename}'" if error.filename else ""
        return f"The file{named} can't be used: {error.strerror or error}.", 1
    again = "IOCAST_DEBUG=1 in the environment shows where; please report it"
    if files and isinstance(
        error, ValueError | TypeError | LookupError | AttributeError | ArithmeticError | RecursionError | MemoryError
    ):
        second = f" and '{files[1]}'" if files[1:] else ""
        sentence = f"The content of '{files[0]}' can't be used, or iocast has a defect ({what})."
        return f"{sentence} Check that file{second}; if it is right, {again}.", 2
    return f"iocast has a defect ({what}); {again}.", 1

# SPDX-License-Identifier: Apache-2.0
"""Where a page is written: nothing but an earlier page is overwritten, and no directory is made."""

from __future__ import annotations

from pathlib import Path

from iocast.errors import InputError, RunError
from iocast.ground.files import refuse_special, replacing

GENERATOR = '<meta name="generator" content="iocast '
"""What the first lines of every page hold."""
HEAD = 4096
"""Bytes of a file in which GENERATOR is looked for."""


def write_page(out: Path, text: str) -> None:
    """Write a page. @raises InputError, RunError as check_page and write_whole"""
    check_page(out)
    write_whole(out, text)


def check_page(out: Path) -> None:
    """@raises InputError where no page may be written to"""
    check_place(out)
    if out.is_file() and out.stat().st_size > 0:
        with out.open("rb") as file:
            if GENERATOR.encode() not in file.read(HEAD):
                raise InputError(
                    f"The file '{out}' exists and is no page of iocast; name another one, nothing is overwritten."
                )


def check_place(out: Path) -> None:
    """@raises InputError where no file can be"""
    if out.is_dir():
        raise InputError(f"{out} is a directory; name the file that is to be written.")
    refuse_special(out)
    if not out.absolute().parent.is_dir():
        raise InputError(f"{out.absolute().parent} is not a directory; make it first or name a file elsewhere.")


def write_whole(out: Path, text: str) -> None:
    """Write the file whole or not at all. @raises InputError as check_place, RunError when it can't be written"""
    check_place(out)
    try:
        with replacing(out.absolute()) as file:
            file.write(text.encode())
    except OSError as error:
        raise RunError(f"{out} could not be written: {error.strerror or error}.") from error

# SPDX-License-Identifier: Apache-2.0
"""The library in a page that draws its figures (Vega-Embed, as vl-convert has it).

Putting it together takes longer than the rest of a page, so each user keeps it in a file of their own."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

import altair
import vl_convert

from iocast.errors import RunError
from iocast.ground.files import write_text

ENDS = "/* library-end */"
"""Last of a file that is whole."""


def vega_lite() -> str:
    """The version that charts are written for, such as 6.1."""
    return ".".join(altair.SCHEMA_VERSION.split(".")[:2])


@cache
def library() -> str:
    """Its source, which can stand inside a script element."""
    place = _kept_in()
    if place is None:
        return _put_together()
    file = place / f"vega-embed-{vega_lite()}-{version('vl-convert-python')}.js"
    with suppress(OSError, ValueError):
        if _ours_alone(place) and _ours_alone(file):
            text = file.read_text(encoding="utf-8")
            if text.endswith(ENDS):
                return text
    text = _put_together()
    with suppress(OSError, RunError):  # without a place it is put together each time
        write_text(file, text, secret=True)
    return text


def _put_together() -> str:
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=vega_lite())
    return bundle.replace("</script", "<\\/script") + ENDS


def _ours_alone(path: Path) -> bool:
    """Nobody else decides what is in our pages."""
    found = path.stat()
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _kept_in() -> Path | None:
    """Where users keep what can be made again (XDG Base Directory Specification); None for one without a home: a number
    without an entry among the users, as in containers."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(named):
        named = os.path.expanduser("~/.cache")
    return Path(named) / "iocast" if os.path.isabs(named) else None

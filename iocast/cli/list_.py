# SPDX-License-Identifier: Apache-2.0
"""`iocast list`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Optional

import typer

from iocast.ground import binaries
from iocast.cli.app import verb
from iocast.cli.options import Json, refuse_without_effect
from iocast.cli.passing import pass_through
from iocast.errors import InputError
from iocast.ground.files import write_text
from iocast.ground.strict_yaml import allowed_sentence

KINDS = ("workloads", "patterns", "backends", "platforms", "primitives", "campaigns", "formats", "cautions")


@verb(name="list", epilog="Example: iocast list platforms")
def list_(
    what: Annotated[str, typer.Argument(help=f"{', '.join(KINDS[:-1])} or {KINDS[-1]}.")],
    markdown: Annotated[bool, typer.Option("--markdown", help="Workloads, patterns or cautions as a table.")] = False,
    into: Annotated[
        Optional[Path], typer.Option(help="With --markdown: put the table into this file, where it was before.")
    ] = None,
    json_: Json = False,
) -> None:
    """List workloads, platforms, backends, formats and others."""
    from iocast import listing

    if what not in KINDS:
        raise InputError(f"There is no list of '{what}'. {allowed_sentence(what, KINDS)}")
    if markdown:
        refuse_without_effect("on a table in Markdown", "json_")
        table = listing.table(what)
        if into:
            write_text(into, listing.replaced(into, what, table))
        else:
            print(table, end="")
        return
    if into:
        raise InputError("--into needs --markdown.")
    if what in ("campaigns", "formats", "cautions"):
        entries = listing.entries(what)
        for entry in entries if what == "campaigns" else []:
            listing.described(what, entry["name"])  # a file that can't be read is not listed as if it could
        more = {entry["name"]: f"; name {entry['takes']}" if "takes" in entry else "" for entry in entries}
        print(
            json.dumps({what: entries})
            if json_
            else "\n".join(f"{e['name']}  {e['summary']}{more[e['name']]}" for e in entries)
        )
        return
    pass_through([binaries.find(listing.program_of(what)), "--list", what, *(["--json"] if json_ else [])])

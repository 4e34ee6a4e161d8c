# SPDX-License-Identifier: Apache-2.0
"""`iocast manual`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from iocast.cli.app import command, verb
from iocast.cli.options import Json


@verb(epilog="Example: iocast manual --out ~/.local/share/man && man iocast-bench")
def manual(
    out: Annotated[Path, typer.Option(help="Directory of manual pages; those of iocast in it are replaced.")],
    json_: Json = False,
) -> None:
    """Write manual pages of all programs and verbs.

    Workloads, backends, platforms and the other catalogues have pages too."""
    from iocast.cli.manual_pages import write_manual

    pages = write_manual(command(), out)
    print(
        json.dumps({"pages": [str(page) for page in pages]})
        if json_
        else f"{len(pages)} pages written to {out}; read them with man -M {out} iocast."
    )

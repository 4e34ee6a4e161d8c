# SPDX-License-Identifier: Apache-2.0
"""`iocast export`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from iocast.cli.app import verb
from iocast.cli.options import Json


@verb(epilog="Example: iocast export runs/a runs/b --format parquet --out runs.parquet")
def export(
    runs: Annotated[list[Path], typer.Argument(help="Run directories.")],
    format_: Annotated[
        str,
        typer.Option("--format", help="csv, parquet, openmetrics, or md-workbench (the text that its scripts parse)."),
    ],
    out: Annotated[Path, typer.Option(help="File to write.")],
    json_: Json = False,
) -> None:
    """Write all numbers of runs for other programs.

    Histograms and time lines are included."""
    from iocast.export import export as write

    write(runs, format_, out)
    print(json.dumps({"export": str(out), "bytes": out.stat().st_size}) if json_ else f"Written to {out}.")

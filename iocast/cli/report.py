# SPDX-License-Identifier: Apache-2.0
"""`iocast report`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Optional

import typer

from iocast.cli.app import LINE, verb
from iocast.cli.options import OUTPUT, Json, refuse_without_effect
from iocast.errors import InputError
from iocast.ground.progress import PATIENCE, Steps
from iocast.ground.strict_yaml import allowed_sentence


@verb(epilog="Example: iocast report campaigns/scratch fitted.yaml forecast.json validation.json --out report.html")
def report(
    sources: Annotated[
        list[Path],
        typer.Argument(
            help="Run directories, campaigns, fitted platforms, forecasts, validations, a study's directory."
        ),
    ],
    out: Annotated[
        Optional[Path],
        typer.Option(
            help="HTML file to write (report.html); it needs nothing else and no network.", rich_help_panel=OUTPUT
        ),
    ] = None,
    title: Annotated[Optional[str], typer.Option(help="Title of the page.", rich_help_panel=OUTPUT)] = None,
    text: Annotated[
        Optional[str],
        typer.Option(
            help="Text on standard output in place of the page: servers, what servers' counters say; or paper-tables, "
            "the two tables of the MDWorkbench paper.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    figures: Annotated[
        Optional[Path], typer.Option(help="Directory for every figure as PDF and PNG.", rich_help_panel=OUTPUT)
    ] = None,
    data: Annotated[
        Optional[Path],
        typer.Option(help="Directory for every number of the page as JSON and CSV.", rich_help_panel=OUTPUT),
    ] = None,
    json_: Json = False,
) -> None:
    """Write one self-contained page with figures for a board."""
    from iocast.api.report import report as page_of

    if text is not None:
        print(_text(sources, text, json_))
        if out is None:
            refuse_without_effect("on that text without --out", "title", "figures", "data")
            return
    out = out or Path("report.html")
    with Steps(after=PATIENCE) as steps:
        steps("drawing figures", 0, 1)
        answer = page_of(sources, out, title=title, figures=figures, data=data, command=shlex.join(LINE))
    if text is None:
        print(json.dumps(answer.document()) if json_ else answer.text())


def _text(sources: list[Path], which: str, json_: bool) -> str:
    """@raises InputError for a text that there is not, or sources that have nothing for it"""
    from iocast.report import servers
    from iocast.report.paper_tables import paper_tables, paper_tables_text
    from iocast.report.sources import read_sources

    if which not in (allowed := ("paper-tables", "servers")):
        raise InputError(f"There is no text '{which}'. {allowed_sentence(which, allowed)}")
    read = read_sources(sources)
    if which == "servers":
        if not servers.loads(read):
            raise InputError("None of the sources has requests that a server counted; 'iocast import' reads them.")
        return json.dumps(servers.document(read)) if json_ else servers.text(read)
    tables = paper_tables(read)
    return json.dumps(tables) if json_ else paper_tables_text(tables)

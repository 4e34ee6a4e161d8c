# SPDX-License-Identifier: Apache-2.0
"""`iocast import`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional, cast

import typer

from iocast.cli.app import verb
from iocast.cli.options import OUTPUT, Json, refuse_without_effect
from iocast.errors import InputError
from iocast.ground.files import read_json
from iocast.ground.progress import PATIENCE, Steps

if TYPE_CHECKING:  # what needs time to load is loaded when it is used
    from iocast.importers.record import Stated
    from iocast.records.simulated import RunDocument

RESULTS = "What the files lack"


@verb(
    name="import",
    epilog="Example: iocast import fio.json --out runs/fio; iocast import results/ 'logs/mdtest-*.txt' "
    "submission.tar.gz --out runs/site; iocast import --explain ior.txt",
)
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Files of one call of one tool, or a result directory (see: iocast list formats); "
            "directories, globs and archives with anything in them."
        ),
    ],
    out: Annotated[
        Optional[Path],
        typer.Option(
            help="Run directory to write; with several runs, a directory of run directories, which every verb takes.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    format_: Annotated[
        Optional[str],
        typer.Option("--format", help="The tool; by default recognised by content.", rich_help_panel=RESULTS),
    ] = None,
    ranks: Annotated[
        Optional[int], typer.Option(help="Ranks, when the files don't say.", rich_help_panel=RESULTS)
    ] = None,
    nodes: Annotated[
        Optional[int], typer.Option(help="Client nodes, when the files don't say.", rich_help_panel=RESULTS)
    ] = None,
    label: Annotated[
        Optional[str], typer.Option(help="What to call the run in a report.", rich_help_panel=RESULTS)
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Print the file and line of each imported number; without --out nothing is written.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    json_: Json = False,
) -> None:
    """Convert results of other tools to run directories.

    Values that the results lack are null and named as missing. A Darshan log becomes a trace for the pattern replay:
    iocast import darshan LOG --out ops.h5."""

    from iocast.importers import darshan_log
    from iocast.ground.scratch import scratch_directory

    if str(files[0]) == "darshan" and not files[0].exists():
        format_, files = "darshan", files[1:]
    if format_ is None and len(files) == 1 and files[0].is_file() and darshan_log.recognises(files[0]):
        format_ = "darshan"
    if out is None and not (explain and format_ != "darshan"):
        raise InputError(
            "An import needs --out DIRECTORY, where it is written; --explain alone shows what would be imported."
        )
    with scratch_directory("import") as scratch:
        target = out if out is not None else scratch / "run"
        if format_ == "darshan":
            refuse_without_effect("on a Darshan log", "ranks", "nodes", "label", "explain")
            _import_darshan(files, target, json_)
        else:
            _import_results(files, target, format_, {"ranks": ranks, "nodes": nodes, "label": label}, explain, json_)


def _import_results(
    files: list[Path], out: Path, format_: str | None, answer: Stated, explain: bool, json_: bool
) -> None:
    from iocast.importers import import_files
    from iocast.importers.record import explained
    from iocast.importers.series import import_series, is_series, series_notes

    if format_ is None and is_series(files):
        with Steps(every=1, after=PATIENCE) as steps:
            written = import_series(files, out, answer, steps)
    else:
        written = import_files(files, out, format_, answer)
    documents = [cast("RunDocument", read_json(directory / "run.json", "run")) for directory in written]
    series = read_json(out / "series.json", "series") if (out / "series.json").is_file() else {}
    if json_:
        runs = [
            {"path": str(path), "imported": d["imported"], "warnings": d["warnings"]}
            for path, d in zip(written, documents, strict=True)
        ]
        print(json.dumps({"runs": runs} | ({"series": series} if series else {})))
        return
    for path, document in zip(written, documents, strict=True):
        where = document["placement"]
        nodes = f" on {where['nodes']} node{'s' * (where['nodes'] != 1)}" if where["nodes"] else ""
        name = path if str(path).startswith(str(out)) and not explain else path.name
        number = len(document["phases"])
        tool = document["tool"]["name"]
        whose = f"a table ({', '.join(p['name'] for p in document['phases'])})" if tool == "table" else tool
        phases = f"{number} phase{'s' * (number != 1)} of {whose}"
        observed = document["imported"].get("observed")
        made = (
            f"as a {observed['who']} counted it" if observed else f"{where['ranks']} rank{'s' * (where['ranks'] != 1)}"
        )
        print(f"{name}: {phases}, {made}{nodes}.")
    for curve, scaling in series.get("scaling", {}).items():
        extent = "a rank" if scaling == "weak" else "in all"
        print(f"  {curve}: {scaling} scaling, as much work {extent} at each placement.")
    for note in series_notes(series):
        print(f"  {note}")
    for warning in dict.fromkeys(w for d in documents for w in d["warnings"]):
        print(f"  {warning}")
    if explain:
        for path, document in zip(written, documents, strict=True):
            print(f"Numbers of {path.name}, and where they stand:")
            for key, value, origin in explained(document):
                print(f"  {key:40} {value:>14}  {origin}")
    else:
        for key, why in {k: v for d in documents for k, v in d["imported"]["missing"].items()}.items():
            print(f"  missing: {key}. {why}")


def _import_darshan(files: list[Path], out: Path, json_: bool) -> None:
    from iocast.importers.darshan_log import import_log

    if len(files) != 1:
        raise InputError(f"One trace is made of one Darshan log; {len(files)} are named.")
    made = import_log(files[0], out)
    print(
        json.dumps(made | {"trace": str(out)})
        if json_
        else "\n  ".join([f"{out}: {made['operations']} operations of {made['ranks']} ranks.", *made["notes"]])
    )

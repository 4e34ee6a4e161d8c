# SPDX-License-Identifier: Apache-2.0
"""Results of other tools as run directories. One file a format: a module here that defines IMPORTER is found by itself.

An importer is two functions: `recognises` looks at one source and says whether it is of this format, by content and
never by name; `read` turns all sources of a call into records (record.py), one for each run directory. What a format
does not say stays None and is named in the record's `missing`; nothing is guessed. What it says wrongly or not at all
where it must is refused with file and line.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from iocast.errors import InputError
from iocast.importers import misbuilt
from iocast.importers.record import Record, Stated, write_runs
from iocast.importers.source import Source
from iocast.importers.statistics import Server, Snapshot
from iocast.ground.names import ALLOWED, as_file_name, is_file_name
from iocast.ground.strict import shown
from iocast.ground.strict_yaml import allowed_sentence


@dataclass(frozen=True)
class Importer:
    name: str
    summary: str  # one line: which output of which tool
    takes: str  # what to name on the command line
    recognises: Callable[[Source], bool]
    read: Callable[[Sequence[Source]], list[Record]]
    groups: Callable[[Sequence[Source]], list[list[Source]]] | None = (
        None  # several files of one run; else each its own
    )
    begins: re.Pattern[str] | None = None  # lines that only the beginning of a run has, where `read` takes one run
    ends: re.Pattern[str] | None = None  # and a line that its results have once; a log may hold several runs
    nearly: Callable[[Source], str] = lambda _: ""  # what keeps a source from being of this format, as a sentence
    snapshots: Callable[[Source], list[Snapshot]] | None = None  # of a server's counters (statistics.py) ...
    server: Server | None = None  # ... and what holds of all of them


def all_importers() -> dict[str, Importer]:
    """Every IMPORTER of this package's modules, by name."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        importer = getattr(importlib.import_module(f"{__name__}.{module.name}"), "IMPORTER", None)
        if importer is not None:
            found[importer.name] = importer
    return found


def import_files(
    paths: Sequence[Path], out: Path, format_: str | None = None, stated: Stated | None = None
) -> list[Path]:
    """Reads the files as results of one call of one tool and writes them as `out`, or as `out/NAME` each when they hold
    several runs.

    `stated` has what the files don't state: `ranks`, `nodes`, `label`.

    @return the run directories
    @raises InputError with file and line for what can't be understood; nothing is written then"""
    if out.exists():
        raise InputError(f"The output directory '{out}' exists already; name a new one, nothing is overwritten.")
    importers = all_importers()
    if format_ is not None and format_ not in importers:
        raise InputError(f"There is no format '{format_}'. {allowed_sentence(format_, sorted(importers))}")
    sources = [Source(path) for path in paths]
    chosen = [importers[format_]] if format_ is not None else _recognise(sources, importers)
    records, refusal = [], None
    for importer in chosen:
        try:
            for record in read_sources(importer, sources):
                record.complete(importer.name, sources, stated or {})
                records.append(record)
        except InputError as error:
            if len(chosen) == 1:
                raise
            refusal = error
    if not records:
        raise refusal or InputError(
            f"{sources[0].path}:1: there is no result in it; {chosen[0].name} may have ended before its first one."
        )
    for record in records:
        _require_names(record, sources)
    names = [as_file_name(record.name) for record in records]
    if len(set(names)) < len(names):
        names = [f"{number}-{name}" for number, name in enumerate(names, start=1)]
    return write_runs(list(zip(names, records, strict=True)), out)


def _require_names(record: Record, sources: Sequence[Source]) -> None:
    """@raises InputError for a name that would lead out of the output directory, or break the lines of a log"""
    where = (record.sources or sources)[0].path
    named = [
        *(("phase", phase.name) for phase in record.phases),
        *(("operation", operation) for phase in record.phases for operation in phase.latency),
    ]
    for what, name in named:
        if not is_file_name(name):
            raise InputError(
                f"{where}:1: the {what} is called {shown(name)}, which can't name a file: a name has {ALLOWED}."
            )


def read_sources(importer: Importer, sources: Sequence[Source]) -> list[Record]:
    """The runs of the sources, each with those that it was read from.

    @raises InputError with file and line for what can't be understood"""
    try:
        if importer.groups is not None:
            return importer.read(sources)
        records = []
        for source in sources:
            for record in _read_runs(importer, source):
                record.sources = record.sources or [source]
                records.append(record)
        return records
    except misbuilt.FORESEEN as error:
        if isinstance(error, InputError):
            raise
        raise misbuilt.refusal(error, sources, importer.name) from error


def _read_runs(importer: Importer, source: Source) -> list[Record]:
    """The runs of one file. One that is not whole is left out with a warning where there are others."""
    if importer.begins is None or importer.ends is None:
        return importer.read([source])
    parts = source.runs(importer.begins, importer.ends)
    records: list[Record] = []
    refusals = []
    for part in parts:
        try:
            records += importer.read([part])
        except InputError as error:
            refusals.append(error)
    if not records:
        raise refusals[0]
    records[0].warnings += [f"{str(error).rstrip('.')}; this run is left out." for error in refusals]
    return records


MANUAL = re.compile(r"^\.(?:TH|SH|Dd)[ \t]", re.MULTILINE)
"""A request of troff that each manual page has."""


def matching(source: Source, importers: dict[str, Importer]) -> list[Importer]:
    """The importers whose tools' output is in the source; several when it is the log of several tools, and none when it
    is a manual page, whose examples are no results."""
    if not source.is_directory and MANUAL.search(source.head):
        return []
    return [importer for importer in importers.values() if importer.recognises(source)]


def _recognise(sources: Sequence[Source], importers: dict[str, Importer]) -> list[Importer]:
    """The format of all sources; of one source all tools whose output is in it."""
    from iocast.importers import darshan_log

    recognised = {}
    for source in sources:
        found = matching(source, importers)
        if not found:
            known = ", ".join(sorted(importers))
            where = f"{source.path}:1" if not source.is_directory else f"{source.path}"
            if not source.is_directory and darshan_log.recognises(source.path):
                raise InputError(f"{where}: {darshan_log.no_result(shlex.quote(str(source.path)))}.")
            if not source.is_directory and MANUAL.search(source.head):
                raise InputError(f"{where}: this is a manual page, whose examples are no results.")
            if nearly := "".join(importer.nearly(source) for importer in importers.values()):
                raise InputError(f"{where}: {nearly}")
            more = " A CSV table needs the columns rate and two of nodes, ppn and ranks." * (
                source.path.suffix == ".csv"
            )
            raise InputError(
                f"{where}: this is no output of a tool that can be imported, or its beginning is missing. "
                f"Known: {known}; where it is one of these, name it with --format.{more}"
            )
        if len(found) > 1 and len(sources) == 1:
            return found
        if len(found) > 1:
            raise InputError(
                f"{source.path}:1: this could be {' or '.join(m.name for m in found)}; "
                "say which with iocast import --format."
            )
        recognised[found[0].name] = source
    if len(recognised) > 1:
        raise InputError(
            "These files come from different tools "
            f"({', '.join(f'{s.path} from {n}' for n, s in recognised.items())}); import each by itself."
        )
    return [importers[next(iter(recognised))]]

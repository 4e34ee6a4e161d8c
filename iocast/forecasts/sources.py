# SPDX-License-Identifier: Apache-2.0
"""Results that forecasts are made from: imported, chosen by their settings, grouped by their phases."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from iocast.errors import InputError
from iocast.ground.names import shortened
from iocast.ground.files import read_json
from iocast.importers import import_files
from iocast.importers.record import Stated
from iocast.importers.series import import_series, is_series
from iocast.runs.arrivals import refuse_in_calibration
from iocast.runs.phases import operations_in
from iocast.runs.question import meaning
from iocast.ground.strict_yaml import allowed_sentence
from iocast.runs.run_directory import Run, runs_in


def runs_of(sources: Sequence[Path], out: Path, stated: Stated) -> list[Path]:
    """Campaigns, run directories and series as they are; other files are imported into OUT/runs.

    @raises InputError for a mixture, whose runs would not be one series"""
    ready = [
        path
        for path in sources
        if path.is_dir() and ((path / "campaign.json").is_file() or (path / "run.json").is_file() or runs_in(path))
    ]
    if len(ready) == len(sources):
        if any(value is not None for value in stated.values()):
            raise InputError(
                "These runs are imported already, with their ranks and nodes; leave out --ranks-measured and "
                "--nodes-measured, or give the tools' own files."
            )
        return list(sources)
    if ready:
        raise InputError(
            f"'{ready[0]}' is a run directory or campaign, other arguments are tools' files; import these first with "
            "iocast import."
        )
    target = out / "runs"
    stated = {**stated, "option": "--{}-measured"}
    written = (
        import_series(sources, target, stated)
        if is_series(sources)
        else import_files(list(sources), target, None, stated)
    )
    documents = [read_json(path / "run.json", "run") for path in written]
    for one in documents:
        refuse_in_calibration(one["imported"]["files"][0]["name"], one["workload"]["pattern"], {})
    if all(one["placement"]["nodes"] is None for one in documents):
        files = list(dict.fromkeys(one["imported"]["files"][0]["name"] for one in documents))
        if len(documents) == 1:
            raise InputError(f"{files[0]} does not say on how many nodes it ran; add --nodes-measured.")
        raise InputError(
            f"These results don't say on how many nodes they ran: {shortened(files)}. If all ran on equally many, add "
            "--nodes-measured. Otherwise import each by itself (iocast import FILE --nodes N --out runs/NAME), then "
            "give the directories runs/* to iocast forecast."
        )
    return written


def import_warnings(written: Sequence[Path], most: int = 3) -> list[str]:
    """What iocast import says of these runs: the first ones whole, of the others how many there are."""
    warnings = list(dict.fromkeys(w for path in written for w in read_json(path / "run.json", "run")["warnings"]))
    more = len(warnings) - most
    rest = f"{more} further warning{'s' * (more > 1)} of the import: iocast import prints them." if more > 0 else ""
    return [*warnings[:most], *([rest] if rest else [])]


def without_nodes(runs: Sequence[Run]) -> list[Path]:
    """Directories of runs that don't say on how many nodes they ran; none where no run says it, since there is nothing
    to forecast from without them."""
    unknown = [run.path for run in runs if run.record.placement.nodes is None]
    return unknown if len(unknown) < len(runs) else []


def with_settings(runs: Sequence[Run], only: Mapping[str, Sequence[str]]) -> list[Run]:
    """The runs whose workload has these settings, compared by meaning: 16MiB is 16777216.

    @raises InputError that names the values there are when none has them"""
    found = [
        run
        for run in runs
        if all(
            name in run.parameters and meaning(run.parameters[name]) in map(meaning, values)
            for name, values in only.items()
        )
    ]
    if not found and runs:
        names = sorted({name for run in runs for name in run.parameters})
        if not names:
            raise InputError("These results state no settings to choose by; leave --only out.")
        for name, wanted in only.items():
            values = list(dict.fromkeys(run.parameters[name] for run in runs if name in run.parameters))
            if not values:
                raise InputError(f"No run has the setting '{name}' of --only. {allowed_sentence(name, names)}")
            for value in wanted:
                if meaning(value) not in map(meaning, values):
                    shown = list(map(str, values))
                    raise InputError(f"No run has {name}={value}, as --only wants. {allowed_sentence(value, shown)}")
        raise InputError("No run has all settings of --only together; leave one of them out.")
    return found


def chosen(runs: Sequence[Run], only: Mapping[str, Sequence[str]]) -> list[Run]:
    """The runs of one of several phases that `only` leaves: a setting chooses among the tests of phases that state it,
    and says nothing of the others.

    @raises InputError where the phase has the setting, with other values"""
    stated = {name for run in runs for name in run.parameters}
    own = {name: values for name, values in only.items() if name in stated}
    try:
        return with_settings(runs, own)
    except InputError as error:
        for name in own:
            values = list(dict.fromkeys(str(run.parameters[name]) for run in runs if name in run.parameters))
            if len(values) == 1 and meaning(values[0]) not in map(meaning, own[name]):
                raise InputError(
                    f"All results have {name}={values[0]}, which --only leaves out; add "
                    f"--only {shlex.quote(f'{name}={values[0]}')} to forecast from them, too."
                ) from error
        raise


def without(sources: Sequence[Path], left_out: Sequence[Path]) -> list[Path]:
    """The sources, a directory of runs as its runs where some of these are left out."""
    found: list[Path] = []
    for path in sources:
        inside = runs_in(path) if path not in left_out and any(one.parent == path for one in left_out) else [path]
        found += [one for one in inside if one not in left_out]
    return found


def phases_of(runs: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Phases with operations or a rate of their own, in order, each with what it has of each operation."""
    phases: list[dict[str, Any]] = []
    for path in runs:
        inside = (
            [path / "runs" / p["name"] for p in read_json(path / "campaign.json", "campaign")["points"]]
            if (path / "campaign.json").is_file()
            else []
        )
        for run in inside or ([path] if (path / "run.json").is_file() else runs_in(path)):
            if (run / "run.json").is_file():
                phases += [
                    p for p in read_json(run / "run.json", "run")["phases"] if p.get("operations") or p.get("rate")
                ]
    return operations_in(phases)

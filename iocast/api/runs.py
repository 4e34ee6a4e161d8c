# SPDX-License-Identifier: Apache-2.0
"""`iocast.import_results` and `iocast.open_runs`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from iocast.api.answer import Answer, Place, Row, as_paths
from iocast.api.chart import Axes
from iocast.ground.files import read_json
from iocast.importers import import_files
from iocast.importers.record import Stated
from iocast.importers.series import import_series, is_series
from iocast.records.run import Run, read_run
from iocast.runs.run_directory import run_directories, runs_in
from iocast.wording.text import quantity, table


class Runs(Answer, Sequence[Run]):
    """Run directories, each with its record (docs/run-directory.md): what other calls take as their sources."""

    axes = Axes("ranks", "rate", colour="phase")

    def __init__(self, directories: Sequence[Path], kept: TemporaryDirectory[str] | None = None) -> None:
        """@param kept the directory of imported runs that nobody named; it goes with this object"""
        self.directories = list(directories)
        self._kept = kept
        self._documents = [read_json(path / "run.json", "run") for path in directories]
        self._runs = [read_run(one) for one in self._documents]

    def __len__(self) -> int:
        return len(self._runs)

    def __getitem__(self, place: Any) -> Any:
        return self._runs[place]

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def document(self) -> dict[str, Any]:
        return {"runs": self._documents}

    def rows(self) -> list[Row]:
        return [
            {
                "run": path.name,
                "phase": phase.name,
                "repeat": phase.repeat,
                "nodes": run.placement.nodes,
                "ranks": run.placement.ranks,
                "seconds": phase.seconds,
                "rate": phase.rate,
                "bytes_per_second": phase.bytes_per_second,
            }
            for path, run in zip(self.directories, self._runs, strict=True)
            for phase in run.phases
        ]

    def text(self) -> str:
        rows = [
            [str(one["run"]), str(one["phase"]), str(one["nodes"] or "-"), str(one["ranks"] or "-")]
            + [quantity("rate", one["rate"]), quantity("bandwidth", one["bytes_per_second"])]  # type: ignore[arg-type]
            for one in self.rows()
        ]
        return table(["run", "phase", "nodes", "ranks", "rate", "bandwidth"], rows)


def import_results(
    paths: Place | Sequence[Place],
    *,
    ranks: int | None = None,
    nodes: int | None = None,
    label: str | None = None,
    format: str | None = None,
    out: Place | None = None,
) -> Runs:
    """Results of other tools as runs: in `out`, or in a temporary directory that goes with the answer.

    >>> import iocast
    >>> runs = iocast.import_results("examples/first-forecast/cirrus.csv")
    >>> [run.placement.ranks for run in runs]
    [36, 72, 144, 288]
    >>> [f"{run.phases[0].rate:.0f}" for run in runs]
    ['5420', '12978', '24672', '38696']

    @param ranks, nodes of results that don't say it
    @param format the tool, where its output isn't recognised by its content
    @raises InputError with file and line"""
    kept = None if out is not None else TemporaryDirectory(prefix="iocast-runs-")
    place = Path(out) if out is not None else Path(kept.name) / "runs" if kept is not None else Path()
    files = as_paths(paths)
    stated: Stated = {"ranks": ranks, "nodes": nodes, "label": label}
    if format is None and is_series(files):
        return Runs(import_series(files, place, stated), kept)
    return Runs(import_files(files, place, format, stated), kept)


def open_runs(paths: Place | Sequence[Place]) -> Runs:
    """Run directories, directories of them, and campaigns.

    @raises InputError for what holds no run"""
    return Runs([path for path, _, _ in run_directories(as_paths(paths))])


def sources_of(sources: Runs | Place | Sequence[Place]) -> list[Path]:
    """The directories of runs, or the named places. All runs of one directory are that directory, of whose runs a
    question takes those that have its phase."""
    if not isinstance(sources, Runs):
        return as_paths(sources)
    parents = {path.parent for path in sources.directories}
    whole = len(parents) == 1 and sorted(sources.directories) == runs_in(next(iter(parents)))
    return list(parents) if whole else sources.directories

# SPDX-License-Identifier: Apache-2.0
"""Imports everything below directories, globs and archives as one series: a directory of run directories that every
verb takes.

Beside the runs stands series.json: what was found, what was left out and why, whether a phase was scaled weakly or
strongly, and which placements contradict each other.
"""

from __future__ import annotations

import io
import math
import re
import tarfile
import tempfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from iocast.ground import strict
from iocast.errors import InputError
from iocast.ground.files import SCHEMA_VERSION
from iocast.importers import Importer, all_importers, darshan_log, dlio_ranks, io500, matching, read_sources
from iocast.importers.record import KEYS, Record, Stated, write_runs
from iocast.importers.source import DAMAGED, Source, require_shallow, unpacked
from iocast.ground.names import as_file_name
from iocast.runs.phases import BYTES
from iocast.runs.run_directory import runs_below
from iocast.ground.scratch import scratch_directory

SIZING = (
    "items",
    "iterations",
    "objects",
    "segments",
    "block_size",
    "repeats",
    "start_index",
    "phases",
    "stonewalling_time",
    "most_seconds",
    "files",
    "file_size",
    "num_files_train",
    "data_size_per_host_GB",
    "recordcount",
    "operationcount",
    "dirs",
)
"""Parameters that say how much a run does, not what."""
STEEPEST_RISE, STEEPEST_FALL = 1.1, 0.5
"""Exponents by which a rate may rise or fall with ranks or nodes before two placements contradict each other."""
SLACK = 1.5
"""Factor by which two runs of one placement may differ: repeats of imported runs do, on shared systems."""
ALARM = "ALARM: "
"""Begin of a note on results that contradict each other."""
MAX_MEMBERS = 20_000
"""Files of an archive; their bytes are bounded by strict.MAX_BYTES."""


@dataclass
class Series:
    runs: list[tuple[str, Record]] = field(default_factory=list)  # names of directories
    left_out: list[str] = field(default_factory=list)  # sentences
    no_results: int = 0  # files that are no tool's output
    named: list[str] = field(default_factory=list)  # those of them that the arguments name
    logs: int = 0  # Darshan logs among them


def is_series(paths: Sequence[Path]) -> bool:
    """Whether the arguments name more than one call: several files each with its own, a directory that is no package, a
    glob, or an archive."""
    if any(
        (path.is_dir() and not _is_package(path)) or not path.exists() and _is_glob(path) or _is_archive(path)
        for path in paths
    ):
        return True
    if len(paths) < 2 or not all(path.exists() for path in paths):
        return False
    importers = all_importers()
    together: dict[str, list[Source]] = defaultdict(list)
    for source in map(Source, paths):
        for importer in matching(source, importers):
            if importer.groups is not None:
                together[importer.name].append(source)
    groups = [group for name, sources in together.items() for group in _groups(importers[name], sources)]
    return len(groups) != 1 or sum(map(len, together.values())) < len(paths)


Report = Callable[[str, int, int], None]


def import_series(
    paths: Sequence[Path], out: Path, answer: Stated | None = None, report: Report = lambda *_: None
) -> list[Path]:
    """Writes what the paths hold as run directories `out/NAME`, or as `out` when it is one run; series.json stands in
    `out`. `report` is called before each file, with what is done, and how many files of how many found are read.

    @return the run directories
    @raises InputError when there is no result in any of them; nothing is written then"""
    if out.exists():
        raise InputError(f"The output directory '{out}' exists already; name a new one, nothing is overwritten.")
    with scratch_directory("import") as scratch:
        series = _collect(paths, scratch, answer or {}, report)
        if not series.runs:
            named = ", ".join(str(p) for p in paths)
            if series.left_out:
                more = f" And {len(series.left_out) - 1} more." if len(series.left_out) > 1 else ""
                raise InputError(f"No result in {named} can be imported: {series.left_out[0]}{more}")
            if series.logs:
                raise InputError(
                    f"{named} has {series.logs} Darshan log{'s' * (series.logs > 1)} and no result of a benchmark. "
                    f"{darshan_log.no_result('LOG')}."
                )
            raise InputError(
                f"There is no result of a known tool in {named} ({series.no_results} files); see: iocast list formats."
                + "".join(runs_below(path) for path in paths)
            )
        return write_runs(series.runs, out, describe(series))


# ---- finding


def _is_package(path: Path) -> bool:
    """Whether a directory is the output of one run, which is read as a whole."""
    return io500.is_package(path) or dlio_ranks.is_package(path)


def _is_glob(path: Path) -> bool:
    return any(c in str(path) for c in "*?[")


def _is_archive(path: Path) -> bool:
    return path.is_file() and (bool(re.search(r"\.(tar|tgz|tbz2?|txz|zip)$|\.tar\.\w+$", path.name)))


def _found(paths: Sequence[Path], scratch: Path, depth: int = 0) -> Iterator[tuple[Path, str]]:
    """Files and packages in order, with how they are called in messages. Links to directories are followed where they
    are named, and not below."""
    for path in paths:
        require_shallow(path, depth)
        if not path.exists() and _is_glob(path):
            hits = sorted(
                Path(path.anchor or ".").glob(str(path.relative_to(path.anchor)) if path.anchor else str(path))
            )
            if not hits:
                raise InputError(f"Nothing matches '{path}'.")
            yield from _found(hits, scratch)
        elif not path.exists():
            raise InputError(f"There is no file '{path}'.")
        elif _is_archive(path):
            inside = Path(tempfile.mkdtemp(dir=scratch))
            _unpack(path, inside)
            for own, _ in _found([inside], scratch):
                yield own, f"{path}:{own.relative_to(inside)}"
        elif path.is_dir():
            if io500.is_package(path):
                yield from ((package, str(package)) for package in io500.packages(path))
            elif dlio_ranks.is_package(path):
                yield path, str(path)
            else:
                below = (
                    p for p in path.iterdir() if not p.name.startswith(".") and not (p.is_symlink() and p.is_dir())
                )
                yield from _found(sorted(p for p in below if p.exists()), scratch, depth + 1)
        elif path.stat().st_size:
            yield path, str(path)


def _unpack(archive: Path, inside: Path) -> None:
    """Regular files of the archive, below `inside` whatever they are called.

    @raises InputError for one that is too large or damaged"""
    left = strict.MAX_BYTES
    way_out = "unpack it and name what is to be imported"
    try:
        for number, (name, size, content) in enumerate(_members(archive)):
            parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", "..", ".", "")]
            left -= size
            if left < 0:
                raise InputError(f"The archive '{archive}' holds more than {strict.MAX_BYTES} bytes; {way_out}.")
            if number >= MAX_MEMBERS:
                raise InputError(f"The archive '{archive}' holds more than {MAX_MEMBERS:,} files; {way_out}.")
            if not parts or any(part.startswith("._") for part in parts):
                continue
            require_shallow(target := inside.joinpath(*parts), len(parts))
            if not target.exists() and not any(
                parent.is_file() for parent in target.parents if parent != inside.parent
            ):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content())
    except InputError:
        raise
    except (
        *DAMAGED,
        tarfile.TarError,
        zipfile.BadZipFile,
        ValueError,
        NotImplementedError,  # of a compression that the library lacks
        RuntimeError,  # of an encrypted file
    ) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"The archive '{archive}' can't be unpacked ({why}); if it is whole, {way_out}.") from error


def _members(archive: Path) -> Iterator[tuple[str, int, Callable[[], bytes]]]:
    """Names, sizes and contents of the regular files."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as box:
            for entry in box.infolist():
                if not entry.is_dir():
                    yield entry.filename, entry.file_size, partial(_content, box, entry)
        return
    with tarfile.open(fileobj=io.BytesIO(unpacked(archive))) as tape:
        for member in tape:
            if member.isfile():
                content = tape.extractfile(member)
                assert content is not None  # as it is of every plain file
                yield member.name, member.size, content.read


def _content(box: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """In pieces: as a whole the library unpacks all that is there, however little the entry claims to have."""
    with box.open(entry) as file:
        return b"".join(iter(partial(file.read, 2**20), b""))


def _collect(paths: Sequence[Path], scratch: Path, answer: Stated, report: Report) -> Series:
    series = Series()
    importers = all_importers()
    seen: set[str] = set()
    together: dict[tuple[Path, str], list[tuple[Source, str]]] = defaultdict(list)
    files = list(_found(paths, scratch))
    for number, (path, shown) in enumerate(files):
        report(f"reading {Path(shown).name}", number, len(files))
        source = Source(path)
        found = matching(source, importers)
        if not found:
            if nearly := "".join(importer.nearly(source) for importer in importers.values()):
                series.left_out.append(f"{shown}:1: {nearly}")
                continue
            series.no_results += 1
            series.named += [shown] if path in paths else []
            series.logs += path.is_file() and darshan_log.recognises(path)
            continue
        print_of = ",".join(sorted(f["sha256"] for f in source.fingerprints()))
        if print_of in seen:
            continue  # the same file, in a package and beside it
        seen.add(print_of)
        for importer in found:
            if importer.groups is not None:
                together[path.parent, importer.name].append((source, shown))
            else:
                _add(series, importer, [source], shown, answer)
    for (_, name), sources in together.items():
        groups = _groups(importers[name], [source for source, _ in sources])
        names = {source.path: shown for source, shown in sources}
        for group in groups:
            _add(series, importers[name], group, names[group[0].path], answer)
        used = [source for group in groups for source in group]
        series.left_out += [
            f"{shown}: it could belong to any of {len(groups)} runs in this directory; import it with the output of "
            "its own run."
            for source, shown in sources
            if source not in used
        ]
    series.runs = _named(_without_doubles(series))
    return series


def _groups(importer: Importer, sources: Sequence[Source]) -> list[list[Source]]:
    """Sources of one run each."""
    return importer.groups(sources) if importer.groups is not None else [[source] for source in sources]


def _add(series: Series, importer: Importer, sources: list[Source], shown: str, answer: Stated) -> None:
    try:
        for record in read_sources(importer, sources):
            record.name = f"{_stem(sources[0].path)}-{record.name}"
            left = answer.copy()
            for key in KEYS:
                if (record.ranks if key == "ranks" else record.nodes) is not None:
                    left.pop(key, None)
            record.complete(importer.name, sources, left)
            inside = str(sources[0].path)  # of an archive where it was unpacked for the moment
            record.imported["origin"] = {k: v.replace(inside, shown) for k, v in record.imported["origin"].items()}
            record.warnings = [sentence.replace(inside, shown) for sentence in record.warnings]
            series.runs.append((record.name, record))
    except InputError as error:
        series.left_out.append(str(error).replace(str(sources[0].path), shown))


GENERIC = re.compile(r"results?|\d{4}\.\d\d\.\d\d-\d\d\.\d\d\.\d\d|[./]*")
"""Names of directories that say nothing of the run in them."""


def _stem(path: Path) -> str:
    """Name of a file without its suffix, or of a directory; IO500's results/TIME has the name of the directory
    above."""
    if path.is_dir():
        own = [part for part in path.parts if not GENERIC.fullmatch(part)]
        return own[-1] if own else path.name
    return path.stem


def _without_doubles(series: Series) -> list[Record]:
    """One record of each run: what one call wrote into several files (CSV, text, live) is imported from the one with
    most numbers."""
    best: dict[tuple[object, ...], Record] = {}
    for _, record in series.runs:
        key: tuple[object, ...] = (
            record.tool,
            " ".join(record.command or []),
            (record.started or "")[:19],
            tuple((p.name, p.repeat) for p in record.phases),
            record.ranks,
            record.nodes,
        )
        if record.tool == "elbencho" and not record.command:
            key = (
                record.tool,
                re.split(r"\.live|\.csv|\.out|\.txt", str(record.sources[0].path))[0] if record.sources else "",
                "live",
                key[3],
            )
        elif not record.command or not record.started:
            key = (*key, id(record))
        if key not in best or len(record.imported["origin"]) > len(best[key].imported["origin"]):
            best[key] = record
    records = list(best.values())
    whole = {
        re.split(r"\.live|\.csv|\.out|\.txt", str(s.path))[0]
        for r in records
        if r.tool == "elbencho" and r.command
        for s in r.sources
    }
    kept = []
    for record in records:
        stem = re.split(r"\.live|\.csv|\.out|\.txt", str(record.sources[0].path))[0] if record.sources else ""
        if record.tool == "elbencho" and not record.command and stem in whole:
            continue  # the live file of a run whose result is here
        kept.append(record)
    return kept


def _named(records: list[Record]) -> list[tuple[str, Record]]:
    """Each record with the name of its directory: that of its file, and a number where it is taken."""
    taken: set[str] = set()
    found = []
    for record in records:
        name = base = as_file_name(record.name)
        for number in range(2, len(records) + 2):
            if name.lower() not in taken:
                break
            name = f"{base}-{number}"
        taken.add(name.lower())
        found.append((name, record))
    return found


# ---- what is in it


def describe(series: Series) -> dict[str, Any]:
    """series.json: runs, scaling, contradictions, what was left out."""
    runs = [
        {
            "name": name,
            "tool": record.tool,
            "ranks": record.ranks,
            "nodes": record.nodes,
            "phases": sorted({phase.name for phase in record.phases}),
            "files": [f["name"] for f in record.imported["files"]],
        }
        for name, record in series.runs
    ]
    curves = _curves(series)
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "series",
        "runs": runs,
        "scaling": {key: scaling for key, points in curves.items() if (scaling := _scaling(points)) is not None},
        "contradictions": [one for key, points in curves.items() for one in contradictions(key, points)],
        "left_out": series.left_out,
        "files_without_results": series.no_results,
        "named_without_results": series.named,
    }


def series_alarms(described: Mapping[str, Any], phases: Collection[str] = ()) -> list[str]:
    """The largest contradiction of each curve in series.json, or of the curves of some phases; those of older files,
    which don't name their phase, are of any."""
    found = [one for one in described.get("contradictions", []) if not phases or one.get("phase") in (None, *phases)]
    notes = []
    for curve, number in Counter(one["curve"] for one in found).items():
        worst = max((one for one in found if one["curve"] == curve), key=lambda one: one["factor"])
        verb = "is" if number == 2 else "are"
        more = f" {number - 1} more of this phase {verb} in series.json." if number > 1 else ""
        notes.append(f"{ALARM}{worst['sentence']}{more}")
    return notes


def series_notes(
    described: Mapping[str, Any], phases: Collection[str] = (), directory: Path | None = None
) -> list[str]:
    """What a reader of a series must know, from series.json: its alarms, files that were left out, how many were no
    results, and which of its runs are no longer in its `directory`."""
    notes = series_alarms(described, phases)
    if notes:
        notes.append(
            "Look for other settings, hardware or load in runs that contradict each other, and leave some out."
        )
    names = [run["name"] for run in described.get("runs", [])]
    if directory is not None and not (directory / "run.json").is_file():
        absent = [name for name in names if not (directory / name / "run.json").is_file()]
        if absent:
            notes.append(
                f"'{directory}' is not whole: {len(absent)} of the {len(names)} runs that its series.json names are "
                f"not in it ('{absent[0]}'{' and others' * (len(absent) > 1)})."
            )
    notes += [f"left out: {sentence}" for sentence in described.get("left_out", [])]
    named = described.get("named_without_results", [])
    notes += [f"left out: '{name}' is no result of a known tool (iocast list formats names them)." for name in named]
    if (without := described.get("files_without_results", 0) - len(named)) > 0:
        notes.append(f"{without} file{' is no result' if without == 1 else 's are no results'} of a known tool.")
    return notes


@dataclass
class Placed:
    """A phase of a run at its placement. `work`: operations or bytes of each rank as requested, None when time ended
    the phase."""

    run: str
    phase: str
    nodes: int
    ranks: int
    rate: float
    work: float | None
    unit: str = ""  # "B" for bytes

    @property
    def shown(self) -> str:
        each = f"{self.ranks // self.nodes}" if self.ranks % self.nodes == 0 else f"{self.ranks / self.nodes:.4g}"
        return f"{self.nodes} x {each} at {_short(self.rate)}{self.unit}/s"


def _short(rate: float) -> str:
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= factor:
            return f"{rate / factor:.4g} {letter}"
    return f"{rate:.4g} "


def _curves(series: Series) -> dict[str, list[Placed]]:
    """Points of one tool, phase and set of parameters, by "TOOL PHASE [parameters]"."""
    found: dict[tuple[Any, ...], list[Placed]] = defaultdict(list)
    for name, record in series.runs:
        if record.nodes is None or record.ranks is None:
            continue
        kept = {k: str(v) for k, v in sorted(record.parameters.items()) if k not in SIZING}
        for phase in record.phases:
            counts_bytes = phase.more.get("rate_unit") == BYTES
            rate = phase.bytes_per_second or phase.rate if counts_bytes else phase.rate or phase.bytes_per_second
            unit = "B" if counts_bytes or rate != phase.rate else ""
            if rate:
                own = {"transfer_size": str(phase.more["transfer_size"])} if phase.more.get("transfer_size") else {}
                key = (record.tool, phase.name, *sorted((kept | own).items()))
                found[key].append(Placed(name, phase.name, record.nodes, record.ranks, rate, _work(record), unit))
    whole = {key: points for key, points in found.items() if len({(p.nodes, p.ranks) for p in points}) > 1}
    names = [f"{key[0]} {key[1]}" for key in whole]
    differ = {name for name in names if names.count(name) > 1}
    return {
        name if name not in differ else f"{name} ({', '.join(f'{k}={v}' for k, v in key[2:])})": points
        for name, (key, points) in zip(names, whole.items(), strict=True)
    }


def _work(record: Record) -> float | None:
    options = record.parameters
    if options.get("most_seconds") or options.get("stonewalling_time"):
        return None
    for key in ("items", "objects", "iterations"):
        if isinstance(options.get(key), int):
            return float(options[key])
    if (
        isinstance(options.get("block_size"), int)
        and isinstance(options.get("segments", 1), int)
        and record.tool == "IOR"
    ):
        return float(options["block_size"] * options.get("segments", 1))
    return None


def _scaling(points: Sequence[Placed]) -> str | None:
    """ "weak" when each rank has as much work everywhere, "strong" when all together have; None when neither, or time
    ended it."""
    work = [(p.ranks, p.work) for p in points if p.work is not None]
    if len(work) < len(points) or len({ranks for ranks, _ in work}) < 2:
        return None
    if _alike([w for _, w in work if w]):
        return "weak"
    return "strong" if _alike([ranks * w for ranks, w in work if w]) else None


def _alike(values: Sequence[float]) -> bool:
    return bool(values) and max(values) <= 1.2 * min(values)


# ---- contradictions


def contradictions(curve: str, points: Sequence[Placed]) -> list[dict[str, Any]]:
    """Pairs of placements that no law explains by which a rate changes at most with the power STEEPEST_RISE of nodes
    and ranks a node, and falls at most with their power -STEEPEST_FALL, each rate wrong by up to the square root of
    SLACK.

    Residuals are the smallest largest factors by which rates must be wrong for such a law to hold: a linear program
    over their logarithms."""
    pairs = []
    for i, a in enumerate(points):
        for b in points[i + 1 :]:
            low, high = _bounds(a, b)
            change = math.log(b.rate / a.rate)
            excess = max(change - high, low - change) - math.log(SLACK)
            if excess > 0:
                pairs.append((excess, a, b))
    if not pairs:
        return []
    residuals = _residuals(points)
    by_run = {id(p): r for p, r in zip(points, residuals, strict=True)}
    shown = []
    for excess, a, b in sorted(pairs, key=lambda p: -p[0])[:5]:
        factor = math.exp(excess + math.log(SLACK))
        shown.append(
            {
                "curve": curve,
                "phase": a.phase,
                "placements": [
                    {"run": p.run, "nodes": p.nodes, "ranks": p.ranks, "rate": p.rate, "residual": by_run[id(p)]}
                    for p in (a, b)
                ],
                "factor": factor,
                "sentence": f"{curve}: {a.shown} ({a.run}) and {b.shown} ({b.run}) contradict each other by a factor "
                f"{factor:.2g}; no law of nodes and ranks explains both. Residuals: {by_run[id(a)]:+.0%} and "
                f"{by_run[id(b)]:+.0%}.",
            }
        )
    return shown


def _bounds(a: Placed, b: Placed) -> tuple[float, float]:
    """Least and greatest logarithm of rate b / rate a that placements explain."""
    low = high = 0.0
    for ratio in (b.nodes / a.nodes, (b.ranks / b.nodes) / (a.ranks / a.nodes)):
        step = math.log(ratio)
        low += min(STEEPEST_RISE * step, -STEEPEST_FALL * step)
        high += max(STEEPEST_RISE * step, -STEEPEST_FALL * step)
    return low, high


def _residuals(points: Sequence[Placed]) -> list[float]:
    """By what share each rate lies above (+) or below (-) the nearest law, the largest of them as small as can be."""
    import numpy as np
    from scipy.optimize import linprog

    n = len(points)
    rows, limits = [], []
    for i, a in enumerate(points):
        for j in range(i + 1, n):
            b = points[j]
            low, high = _bounds(a, b)
            change = math.log(b.rate / a.rate)
            up, down = np.zeros(2 * n + 1), np.zeros(2 * n + 1)
            # (log b - r_b) - (log a - r_a) lies between low and high.
            up[j], up[i], down[j], down[i] = -1, 1, 1, -1
            rows += [up, down]
            limits += [high - change, change - low]
    for i in range(n):
        for sign in (1, -1):
            row = np.zeros(2 * n + 1)
            row[i], row[n + i] = sign, -1  # |r_i| <= s_i <= t
            rows.append(row)
            limits.append(0.0)
        row = np.zeros(2 * n + 1)
        row[n + i], row[2 * n] = 1, -1
        rows.append(row)
        limits.append(0.0)
    cost = np.concatenate([np.zeros(n), np.full(n, 1e-3), [1.0]])
    solved = linprog(
        cost, A_ub=np.array(rows), b_ub=np.array(limits), bounds=[(None, None)] * n + [(0, None)] * (n + 1)
    )
    found = solved.x if solved.success else None
    return [math.nan] * n if found is None else [math.exp(float(r)) - 1 for r in found[:n]]

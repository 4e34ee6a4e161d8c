# SPDX-License-Identifier: Apache-2.0
"""A run of the md-workbench pattern as the text that md-workbench prints.

Lines have the form that its script results-in-db.py takes apart ("... 3919.7 obj/s 29.2 Mib/s (0 errs)"), which the
last version of the program itself no longer prints; behind it stand that version's additions: op-max and the quantiles
of each operation.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

from iocast.errors import InputError
from iocast.export.table import histograms_by_phase
from iocast.ground.files import read_json, write_text
from iocast.records.simulated import PhaseOfRun, RunDocument
from iocast.runs.run_directory import require_run_directory

OPTIONS = {
    "offset": "offset",
    "iterations": "obj-per-proc",
    "objects": "precreate-per-set",
    "datasets": "data-sets",
    "object_size": "object-size",
    "repeats": "iterations",
}
NAMES = {"read": "read", "stat": "stat", "create": "create", "unlink": "delete"}
QUANTILES = ("min", "q25", "q50", "q75", "q90", "q99", "max")


def write_md_workbench(path: Path, out: Path) -> None:
    require_run_directory(path)
    run = cast(RunDocument, read_json(path / "run.json", "run"))
    if run["workload"]["pattern"] != "md-workbench":
        raise InputError(
            f"The run '{path}' is of the workload {run['workload']['name']}; md-workbench can say nothing of it."
        )
    write_text(out, "\n".join(lines_of(path, run)) + "\n")


def lines_of(path: Path, run: RunDocument) -> Iterator[str]:
    reported, ranks = run["workload"]["parameters"], run["placement"]["ranks"]
    total = (
        reported.get("datasets", 0)
        * (reported.get("iterations", 0) * reported.get("repeats", 1) + reported.get("objects", 0))
        * ranks
    )
    tool = run["tool"]
    when = str(run.get("started") or "1970-01-01T00:00:00").rstrip("Z").partition(".")[0].replace("T", " ")
    own = run.get("source") == "imported" and tool["name"] == "md-workbench"  # then it is that program's version
    version = tool.get("version") if own else f"{tool['name']}-{tool.get('version')}@iocast"
    yield f"MD-Workbench total objects: {total} (version: {version}) time: {when}"
    yield from (f"\t{theirs}={reported[ours]}" for ours, theirs in OPTIONS.items() if ours in reported)
    yield f"\twaiting-time={reported.get('waiting_factor', 0):f}"
    if reported.get("read_only"):
        yield "\tread-only"
    yield from (f"\trun-{name}" for name in dict.fromkeys(p["name"] for p in run["phases"]))
    backend = run.get("backend") or {}
    if any(phase.get("rank_seconds") for phase in run["phases"]):
        yield "\tprocess-reports"
    yield from ("", f"\troot-dir={(backend.get('options') or {}).get('root', '')}", "")
    histograms = histograms_by_phase(path, run)
    for number, phase in enumerate(run["phases"]):
        if phase["name"] in ("precreate", "benchmark", "cleanup"):
            yield _line(phase, reported, phase["seconds"], 1.0) + _quantiles(phase, histograms.get(number, {}))
            ends = phase.get("rank_seconds") or []
            # Operations by rank are not recorded; without errors every rank does the same number of them.
            for rank, seconds in enumerate(ends):
                yield f"{rank}: {_line(phase, reported, seconds, 1 / len(ends))}"
    yield f"Total runtime: {sum(p['seconds'] or 0 for p in run['phases']):.0f}s time: {when}"


def _line(phase: PhaseOfRun, answer: dict[str, Any], seconds: float, share: float) -> str:
    def count(op: str) -> int:
        return round(float(phase["latency"].get(op, {}).get("count", 0)) * share)

    name, size = phase["name"], answer.get("object_size", 0)
    objects = count({"precreate": "create", "benchmark": "read", "cleanup": "unlink"}[name])
    rate, moved = objects / seconds, (count("create") + count("read")) * size / seconds / 2**20
    operations = sum(count(op) for op in phase["latency"] if "." not in op) / seconds
    errors = f"({round((phase['errors'] or 0) * share)} errs)"
    if name == "benchmark":
        return (
            f"{name} {seconds:.6f}s {operations:.1f} iops/s {objects} obj {rate:.1f} obj/s {moved:.1f} Mib/s {errors}"
        )
    if name == "precreate":
        sets = count("mkdir")
        return (
            f"{name} {seconds:.6f}s {operations:.1f} iops/s {sets} dset {objects} obj {sets / seconds:.3f} dset/s "
            f"{rate:.1f} obj/s {moved:.1f} Mib/s {errors}"
        )
    sets = count("rmdir")
    return (
        f"{name} {seconds:.6f}s {operations:.1f} iops/s {objects} obj {sets} dset {rate:.1f} obj/s "
        f"{sets / seconds:.3f} dset/s {errors}"
    )


def _quantiles(phase: PhaseOfRun, histograms: dict[str, list[tuple[float, int]]]) -> str:
    """ " op-max:...s read(min, 25, 50, 75, 90, 99 %, max) ..." as far as they are known."""
    known = {op: dict(summary) for op, summary in phase["latency"].items() if op in NAMES}
    for op, summary in known.items():
        if summary.get("q90") is None and op in histograms:
            summary["q90"] = _quantile(histograms[op], 0.9)
    longest = max((summary["max"] for summary in known.values() if summary["max"] is not None), default=None)
    text = f" op-max:{longest:.4e}s" if longest is not None else ""
    for op in NAMES:
        values = [known[op].get(which) for which in QUANTILES] if op in known else [None]
        if None not in values:
            text += f" {NAMES[op]}({', '.join(f'{value:.4e}s' for value in values)})"
    return text


def _quantile(counts: list[tuple[float, int]], probability: float) -> float:
    sums = list(accumulate(count for _, count in counts))
    return counts[bisect_left(sums, probability * sums[-1] - 1e-9)][0]

# SPDX-License-Identifier: Apache-2.0
"""Latency files that md-workbench writes beside its report: every operation with its time."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field

import numpy as np

from iocast.importers.record import Phase, Record
from iocast.importers.source import Source

LATENCY_FILE = re.compile(
    r"^(?P<prefix>.*?)(?:-(?P<factor>\d+\.\d+))?(?:-(?P<iteration>\d+))?"
    r"-(?P<op>precreate|cleanup|create|read|stat|delete)(?P<all>-all)?(?:-(?P<rank>\d+))?\.csv$"
)
OPERATIONS = {
    "create": "create",
    "read": "read",
    "stat": "stat",
    "delete": "unlink",
    "precreate": "create",
    "cleanup": "unlink",
}


def is_latency_file(source: Source) -> bool:
    return not source.is_directory and source.head.split("\n", 1)[0].strip() == "time,runtime"


@dataclass
class _Traces:
    """The latency files of one operation in one phase: one file of all ranks, or files of single ranks."""

    of_all: Source | None = None
    of_rank: dict[int, Source] = field(default_factory=dict)

    def add(self, source: Source, of_all: bool, rank: int) -> None:
        before = self.of_all or (self.of_rank.get(rank) if not of_all else next(iter(self.of_rank.values()), None))
        if before is not None:
            raise source.refuse(1, f"'{before.path}' holds the latencies of the same operation and phase")
        if of_all:
            self.of_all = source
        else:
            self.of_rank[rank] = source

    def read(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Starts, latencies and ranks; files of all ranks do not name them."""
        if self.of_all is not None:
            return *_read_trace(self.of_all), None
        parts = [(rank, *_read_trace(source)) for rank, source in sorted(self.of_rank.items())]
        return (
            np.concatenate([start for _, start, _ in parts]),
            np.concatenate([seconds for _, _, seconds in parts]),
            np.concatenate([np.full(len(start), rank) for rank, start, _ in parts]),
        )


def add_traces(record: Record, sources: list[Source], whole: bool) -> None:
    """Latency files into the phases that they belong to; phases of their own when there is no text output."""
    grouped: dict[tuple[str, int, float], dict[str, _Traces]] = {}
    for source in sources:
        name = LATENCY_FILE.match(source.path.name)
        if name is None:
            raise source.refuse(
                1,
                "the name of a latency file says which operation it holds ('PREFIX-0.00-0-create-all.csv'), and this "
                "one does not",
            )
        kind = name["op"] if name["op"] in ("precreate", "cleanup") else "benchmark"
        key = (
            kind,
            int(name["iteration"] or 0) if kind == "benchmark" else 0,
            float(name["factor"] or 0) if kind == "benchmark" else 0.0,
        )
        grouped.setdefault(key, {}).setdefault(OPERATIONS[name["op"]], _Traces()).add(
            source, name["all"] is not None, int(name["rank"] or 0)
        )
    order = ["precreate", "benchmark", "cleanup"]
    for (kind, iteration, factor), files in sorted(grouped.items(), key=lambda g: (order.index(g[0][0]), g[0][1:])):
        traces = {op: trace.read() for op, trace in files.items()}
        if whole:
            phase = _phase_of(record, kind, iteration, factor)
            if phase is None:
                any_file = next(iter(files.values()))
                source = any_file.of_all or next(iter(any_file.of_rank.values()))
                raise source.refuse(
                    1,
                    f"the text output has no {kind} phase {iteration} with waiting factor {factor:g} that these "
                    "latencies could belong to",
                )
        else:
            phase = Phase(
                kind,
                repeat=iteration + 1 if kind == "benchmark" else 0,
                more={"waiting_factor": factor} if factor else {},
            )
            phase.seconds = max(float((start + seconds).max()) for start, seconds, _ in traces.values())
            phase.operations = sum(len(seconds) for _, seconds, _ in traces.values())
            phase.rate = phase.operations / phase.seconds
            record.phases.append(phase)
            record.missing["phases[].errors"] = "Latency files do not say which operations failed."
        of_all = {op: known.as_json() for op, known in phase.latency.items() if known.known}
        phase.add_trace(
            {op: (start, seconds) for op, (start, seconds, _) in traces.items()},
            {op: ranks for op, (_, _, ranks) in traces.items() if ranks is not None},
        )
        ranks = sorted({rank for trace in files.values() for rank in trace.of_rank})
        if ranks and len(ranks) < (record.ranks or len(ranks) + 1):
            phase.more["latency_of_ranks"] = ranks
            if of_all:
                phase.more["latency_of_all_ranks"] = of_all
            text = (
                "The latency files hold the operations of some ranks only (latency_of_ranks); distributions, time "
                "lines and slowest operations are theirs."
            )
            if text not in record.warnings:
                record.warnings.append(text)


def _phase_of(record: Record, kind: str, iteration: int, factor: float) -> Phase | None:
    """File names have two digits of the factor."""
    same = [p for p in record.phases if p.name == kind]
    if kind == "benchmark":
        default = record.parameters.get("waiting_factor", 0.0)
        same = [p for p in same if abs(float(p.more.get("waiting_factor", default)) - factor) < 0.006]
    return same[iteration] if iteration < len(same) else None


LONGEST = 1e10
"""Seconds that no operation takes; the clock of a trace may count since 1970."""


def _read_trace(source: Source) -> tuple[np.ndarray, np.ndarray]:
    """Starts and latencies in seconds; md-workbench writes latencies with five digits."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of no line at all, which is refused below
            rows = np.loadtxt(source.lines[1:], delimiter=",", ndmin=2)
        if (
            rows.shape[1:] == (2,)
            and len(rows)
            and np.isfinite(rows).all()
            and (rows >= 0).all()
            and (rows <= LONGEST).all()
            and source.text.endswith("\n")
        ):
            return rows[:, 0], rows[:, 1]
    except ValueError:
        pass
    for number, line in enumerate(source.lines[1:], start=2):
        cells = line.split(",")
        if len(cells) != 2:
            raise source.refuse(
                number,
                f"this line has {len(cells)} values instead of a time and a runtime; the file may have been cut off",
            )
        times = [source.number(cell, number, "a time") for cell in cells]
        if min(times) < 0:
            raise source.refuse(number, "a time is negative")
        if max(times) > LONGEST:
            raise source.refuse(number, f"a time is {max(times):g} s; at most {LONGEST:g} s are allowed")
    raise source.refuse_cut("the end of a line" if len(source.lines) > 1 else "the first operation")

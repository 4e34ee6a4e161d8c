# SPDX-License-Identifier: Apache-2.0
"""A run as one long table: every number of its phases and histograms is a row of its own. What is null has no row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeGuard, cast

from iocast.errors import InputError
from iocast.ground.files import read_json
from iocast.records.run import read_run
from iocast.records.simulated import PhaseOfRun, RunDocument, time_line
from iocast.runs.agreement import check_agreement
from iocast.runs.latency_log import NS, Latencies, read_log
from iocast.runs.run_directory import require_run_directory


@dataclass(frozen=True)
class Row:
    """`operation` may be a part ("create.open") or empty for values of the phase. `at` says where on its axis a value
    lies: a latency in seconds for `latency_count`, a bin's start for `timeline_...`, an operation's start for
    `slow_seconds`."""

    run: str
    source: str
    workload: str
    ranks: int | None
    nodes: int | None
    phase: str
    repeat: int
    operation: str
    quantity: str
    rank: int | None
    at: float | None
    value: float

    def cells(self) -> tuple[str | float | None, ...]:
        return (
            self.run, self.source, self.workload, self.ranks, self.nodes, self.phase, self.repeat, self.operation,
            self.quantity, self.rank, self.at, self.value,
        )  # fmt: skip


COLUMNS = tuple(field.name for field in fields(Row))


def rows_of(path: Path) -> Iterator[Row]:
    """@raises InputError when it is no run directory"""
    require_run_directory(path)
    content = read_json(path / "run.json", "run")
    check_agreement(read_run(content), path)
    run = cast(RunDocument, content)
    where = run["placement"]
    fixed = (str(run.get("label") or path.name), run["source"], run["workload"]["name"], where["ranks"], where["nodes"])
    histograms = histograms_by_phase(path, run)
    for number, phase in enumerate(run["phases"]):

        def row(
            operation: str,
            quantity: str,
            value: float,
            rank: int | None = None,
            at: float | None = None,
            phase: PhaseOfRun = phase,
        ) -> Row:
            return Row(*fixed, phase["name"], phase["repeat"], operation, quantity, rank, at, float(value))

        for key, value in phase.items():
            if key != "repeat" and _is_number(value):
                yield row("", key, value)
        for operation, summary in phase["latency"].items():
            yield from (
                row(operation, f"latency_{key}" if key != "count" else "count", value)
                for key, value in summary.items()
                if _is_number(value)
            )
        for operation, did in (phase.get("by_operation") or {}).items():
            yield from (
                row(operation, key, value) for key, value in did.items() if key != "count" and _is_number(value)
            )
        for operation, counts in histograms.get(number, {}).items():
            yield from (row(operation, "latency_count", count, at=seconds) for seconds, count in counts)
        for rank, seconds in enumerate(phase.get("rank_seconds") or []):
            yield row("", "rank_seconds", seconds, rank=rank)
        width, timeline = time_line(phase)
        for operation, series in timeline.items():
            for key, values in series.items():
                yield from (
                    row(operation, f"timeline_{key}", v, at=i * width)
                    for i, v in enumerate(values)
                    if series["count"][i] and v is not None
                )
        for operation, count in (phase.get("errors_by_operation") or {}).items():
            yield row(operation, "errors", count)
        for station, used in (phase.get("stations") or {}).items():
            for operation, numbers in {"": used, **(used.get("operations") or {})}.items():
                for key, value in numbers.items():
                    if _is_number(value):
                        yield row(operation, f"station_{station}_{key}", value)
        for slow in phase.get("slowest") or []:
            yield row(slow["op"], "slow_seconds", slow["seconds"], rank=slow["rank"], at=slow["start"])


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def histograms_by_phase(path: Path, run: RunDocument) -> dict[int, dict[str, list[tuple[float, int]]]]:
    """By number of the phase and operation: seconds and counts. Intervals of the log follow the phases, so the n-th
    with a tag belongs to the n-th phase that has this operation's latencies."""
    if not (path / "latency.hlog").is_file():
        return {}
    found: dict[int, dict[str, list[tuple[float, int]]]] = defaultdict(dict)
    places: dict[str, list[int]] = defaultdict(list)
    for number, phase in enumerate(run["phases"]):
        for operation in phase["latency"]:
            places[f"{phase['name']}.{operation}"].append(number)
    seen: dict[str, int] = defaultdict(int)
    for tag, start, histogram in read_log(path / "latency.hlog"):
        own = places.get(tag, [])
        # Imported phases may lack histograms; their start then tells which phase it is.
        same = (
            [n for n in own if abs((run["phases"][n].get("start_seconds") or 0) - start) < 1e-3]
            if len(own) > 1
            else own
        )
        if len(same) != 1 and seen[tag] >= len(own):
            raise InputError(
                f"The log '{path / 'latency.hlog'}' has more intervals of '{tag}' than run.json has such phases."
            )
        number = same[0] if len(same) == 1 else own[seen[tag]]
        seen[tag] += 1
        _, highest, counts = Latencies(histogram).recorded()
        found[number][tag.partition(".")[2]] = list(zip((highest * NS).tolist(), counts.tolist(), strict=True))
    return found

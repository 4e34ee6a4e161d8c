# SPDX-License-Identifier: Apache-2.0
"""The question of a report in the reader's words, and its answers as a small table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from iocast.knee import words as knee_words
from iocast.runs.phases import BYTES, main_phases, rate_of
from iocast.records.forecast import ForecastDocument, PhaseDocument
from iocast.report import evidence, feeding, servers, units
from iocast.report.sources import Run, Sources
from iocast.wording.text import NARROWED, roughly
from iocast.wording.forecast import rule_beside
from iocast.runs.total import are_bulk, bytes_per_second, moves_bulk, of_one_workload, range_of_seconds, total
from iocast.records.simulated import PhaseOfRun

MAX_ROWS = 20
MAX_NAMED = 3
"""Phases that a question names."""
PARTS = {
    "service": "being served at",
    "wait": "waiting for",
    "lock_wait": "waiting for a lock at",
    "stall": "in stalls of",
    "lost": "lost in failures of",
}
ELSEWHERE = "network, disks and clients' own limits"


@dataclass(frozen=True)
class Grid:
    """A small table of the first screen; cells are finished text."""

    title: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""


def answered(sources: Sources) -> list[ForecastDocument]:
    """Forecasts of the system as it is for the target scales: those that nothing was measured at, or else all; where
    there is none of it those of its one alternative. Phases in order, the smallest scale first."""
    as_it_is = [f for f in sources.forecasts if not evidence.is_alternative(f)]
    edits = [(f.get("platform") or {}).get("edits") for f in sources.forecasts]
    alternative = sources.forecasts if all(one == edits[0] for one in edits) else []
    found = evidence.targets(sources) or as_it_is or alternative
    order = evidence.forecast_phases(sources)
    return sorted(found, key=lambda f: (order.index(evidence.phase_of(f)), evidence.ranks_of(f["placement"])))


def names_of(forecasts: list[ForecastDocument], sources: Sources) -> list[str]:
    """The phase of each, with the platform where the sources have several; where another has the same phase and
    placement with the settings that tell them apart, or with the forecast's label."""
    same: dict[tuple[str, str], list[ForecastDocument]] = {}
    for f in forecasts:
        same.setdefault((evidence.phase_of(f), _placement(f)), []).append(f)
    names = []
    for one in forecasts:
        phase, system = evidence.phase_of(one), evidence.system_of(sources, one)
        others = same[phase, _placement(one)]
        beside = system or (_settings_apart(one, others) or one.get("label") if len(others) > 1 else "")
        names.append(f"{phase} ({beside})" if beside else phase)
    return names


def _settings_apart(forecast: ForecastDocument, others: list[ForecastDocument]) -> str:
    """Its settings that the others don't all have, as "read_only=true"; "" where they differ in none, or not all say
    theirs."""
    questions = [evidence.question_of(one) for one in others]
    own = evidence.question_of(forecast)
    known = [dict(one.settings) for one in questions if one is not None and one.settings is not None]
    if own is None or own.settings is None or len(known) < len(others):
        return ""
    return ", ".join(f"{name}={value}" for name, value in own.settings if any(one.get(name) != value for one in known))


def is_of_time(forecasts: list[ForecastDocument]) -> bool:
    """Whether times and bandwidths answer: where a phase moves bytes in bulk, and for the phases of an application."""
    several = len({evidence.phase_of(f) for f in forecasts}) > 1
    return any(moves_bulk(f) or (several and bandwidth(f)) for f in forecasts)


def question(sources: Sources) -> str:
    """What the report answers; "" where it is of a fitted platform or a validation alone."""
    forecasts = answered(sources)
    if forecasts:
        phases = list(dict.fromkeys(evidence.phase_of(f) for f in forecasts))
        named = _listed(
            [*phases[:MAX_NAMED], *([f"{len(phases) - MAX_NAMED} more"] if len(phases) > MAX_NAMED else [])]
        )
        where = _placements([f["placement"] for f in forecasts])
        if is_of_time(forecasts):
            does = "does" if len(phases) == 1 else "do"
            return f"How long {does} {named} take, and at what bandwidth, {where}?"
        return f"How fast {'is' if len(phases) == 1 else 'are'} {named} {where}?"
    if sources.feedings:
        return feeding.QUESTION
    if sources.knees:
        return " ".join(dict.fromkeys(knee_words.question(knee) for knee in sources.knees))
    runs = evidence.focus_runs(sources)
    if not runs:
        known = servers.loads(sources)
        return servers.question(known) if known else ""
    workloads = list(dict.fromkeys(run.subject for run in runs))
    where = _placements([run.document["placement"] for run in runs])
    verb = "is" if len(workloads) == 1 else "are"
    simulated = " in simulation" if all(run.simulated for run in runs) else ""
    return f"How fast {verb} {_listed(workloads)} {where}{simulated}?"


def grids(sources: Sources) -> list[Grid]:
    """The answers: forecasts, or without any the phases of the largest run."""
    forecasts = [f for f in answered(sources) if "rate" in f["quantities"]]
    if forecasts:
        return [_of_forecasts(forecasts, sources)]
    run = None if sources.knees or sources.feedings else next(iter(evidence.focus_runs(sources)), None)
    names = main_phases(run.phase_names) if run else []
    if run is None or not run_is_of_time(run):
        return []
    return [_of_run(run, names)]


def run_is_of_time(run: Run) -> bool:
    """The same of a run: whether it has several main phases, or one that moves bytes in bulk."""
    names = main_phases(run.phase_names)
    return len(names) > 1 or any(are_bulk(*data_of(run, name)) for name in names)


def data_of(run: Run, name: str) -> tuple[float, float]:
    """Bytes that all repeats of a phase moved, and the operations that moved them."""
    every = [one for phase in run.repeats(name) for one in (phase.get("by_operation") or {}).values()]
    moved = [one for one in every if one.get("bytes")]
    return sum(float(one["bytes"]) for one in moved), sum(float(one["count"]) for one in moved)


def _of_forecasts(forecasts: list[ForecastDocument], sources: Sources) -> Grid:
    """Rate, time and bandwidth of each phase, and what stands beside them; those first that answer. Further columns
    that no phase has anything for are left out."""
    by_time = is_of_time(forecasts)
    checks = evidence.checks(sources)
    heading = _between_heading(forecasts)
    cells = []
    for one, name in zip(forecasts[:MAX_ROWS], names_of(forecasts, sources), strict=False):
        rate, check = one["quantities"]["rate"], next((c for c in checks if c.row("rate") and c.speaks_of(one)), None)
        error = check.row("rate") if check else None
        ruled = evidence.with_best_rule(one, checks)
        cells.append(
            {
                "phase": name,
                "nodes × ranks": _placement(one),
                "time": time(one) or units.NOTHING,
                "bandwidth": bandwidth_text(one),
                "operations" if by_time else "forecast": _value(rate),
                heading: between(one, by_time),
                "simple rule": rule_beside(ruled, partial(units.rate, unit=rate.get("unit"))) or units.NOTHING,
                "error where checked": _checked(error["error"], check, sources) if check and error else "not checked",
                "where the time goes": pauses(evidence.in_operations(one))
                or largest_part(one.get("stations") or {}, evidence.mean_response(one))
                if by_time
                else units.NOTHING,
            }
        )
    cells += _together(forecasts, sources) if by_time else []
    header = ["phase", "nodes × ranks", *(["time", heading, "bandwidth"] if by_time else ["forecast", heading])]
    header += [name for name in cells[0] if name not in header]
    optional = {"time", "bandwidth", "where the time goes"} | (
        {"simple rule", "error where checked"} if by_time else set()
    )
    empty = {units.NOTHING, "not checked"}
    header = [h for h in header if h not in optional or any(row.get(h, units.NOTHING) not in empty for row in cells)]
    rows = [[row.get(name, units.NOTHING) for name in header] for row in cells]
    title = "Time and bandwidth by phase" if by_time else "Forecasts for the target scales"
    return Grid(
        title,
        header,
        rows,
        _note(any(evidence.is_wide(one["quantities"]["rate"]) for one in forecasts[:MAX_ROWS]), len(forecasts)),
    )


def _checked(error: float, check: evidence.Comparison, sources: Sources) -> str:
    return f"{units.error(error)} at {units.ranks(check.ranks)}{times_fitted(sources, check)}"


def times_fitted(sources: Sources, check: evidence.Comparison) -> str:
    """How far a comparison lies beyond what its forecast was fitted to: ", 1.2 times the fitted"."""
    times = evidence.distance(sources, check)
    return f", {units.factor(times)} times the fitted" if times else ""


def time(forecast: ForecastDocument) -> str | None:
    """The length of a phase and of all its repeats; None where it isn't known."""
    seconds = forecast.get("seconds")
    if not seconds or seconds.get("value") is None:
        return None
    return roughly(units.repeated(seconds["value"], repeats(forecast)), forecast["quantities"]["rate"])


def repeats(forecast: ForecastDocument) -> int:
    """How often the phase runs; forecasts of before lack it, and are of one time."""
    return int(forecast.get("repeats") or 1)


def bandwidth_text(forecast: ForecastDocument) -> str:
    found = bandwidth(forecast)
    return roughly(units.bandwidth(found), forecast["quantities"]["rate"]) if found else units.NOTHING


def _together(forecasts: list[ForecastDocument], sources: Sources) -> list[dict[str, str]]:
    """All phases together, for each placement of one system that has the length of them all."""
    rows = []
    for phases in of_one_workload(forecasts):
        found = total(phases)
        systems = {evidence.system_of(sources, one) for one in phases}
        if found is None or found["unknown"] or len(systems) > 1:
            continue
        rates = [one["quantities"]["rate"] for one in phases]
        wide: Mapping[str, Any] = next((rate for rate in rates if evidence.is_wide(rate)), {})
        rows.append(
            {
                "phase": "all phases" + (f" ({system})" if (system := systems.pop()) else ""),
                "nodes × ranks": _placement(phases[0]),
                "time": roughly(units.seconds(found["seconds"]["value"]), wide),
                "bandwidth": roughly(units.bandwidth(found["bytes_per_second"]), wide)
                if found["bytes"]
                else units.NOTHING,
                "operations": roughly(units.rate(found["rate"]), wide),
                _between_heading(forecasts): _ends(found["seconds"], found["range"], units.seconds),
            }
        )
    return rows


def _of_run(run: Run, names: list[str]) -> Grid:
    """Phases of a run, with the mean time of their repeats and the sum; the last row is of all of them together."""
    rows: list[list[str]] = []
    lengths: list[float] = []
    counts: list[float] = []
    volumes: list[float] = []
    for name in names:
        phases = run.repeats(name)
        seconds = sum(float(p.get("seconds") or 0) for p in phases)
        moved, _ = data_of(run, name)
        operations = sum(p.get("operations") or 0 for p in phases)
        lengths.append(seconds)
        counts.append(operations)
        volumes.append(moved)
        in_bytes = [p for p in phases if p.get("rate_unit") == BYTES]
        bandwidths = [rate for p in in_bytes if (rate := rate_of(p))]
        rates = [float(p["rate"]) for p in phases if p.get("rate") and not _is_of_bytes(p)]
        rate = operations / seconds if seconds and operations else _mean(rates)
        bandwidth = moved / seconds if moved and seconds else _mean(bandwidths)
        responding = sum(float(p.get("responding_seconds") or 0) for p in phases)
        where = pauses(evidence.in_operations_of_run(run, phases))
        where = where or largest_part(_time_at_stations(phases), responding)
        rows.append(
            [
                name,
                units.repeated(seconds / len(phases), len(phases)) if seconds else units.NOTHING,
                units.bandwidth(bandwidth),
                units.rate(rate),
                where,
            ]
        )
    whole = sum(lengths)
    known = whole and all(counts)  # rates of imported phases have no number of operations
    together = [
        "all phases",
        units.seconds(whole),
        units.bandwidth(sum(volumes) / whole if known and any(volumes) else None),
        units.rate(sum(counts) / whole if known else None),
        units.NOTHING,
    ]
    who = f"{run.name}: {_where(run.document['placement'])}"
    header = ["phase", "time", "bandwidth", "operations", "where the time goes"]
    every = [*rows[:MAX_ROWS], *([together] if len(rows) > 1 else [])]
    return Grid(f"Time and bandwidth by phase, {who}", header, every, _note(False, len(names)))


def _is_of_bytes(phase: PhaseOfRun | PhaseDocument) -> bool:
    """Whether `rate` counts bytes itself, since there are no operations that it could count."""
    return phase.get("rate_unit") == BYTES and phase.get("bytes_per_second") is None


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def pauses(share: str) -> str:
    """Where the time of ranks goes that are in an operation for this small share of it; "" without one."""
    return share and f"the ranks' own pauses, or waits for each other: in an operation {share} of the time"


def largest_part(stations: Mapping[str, Mapping[str, Any]], response: float) -> str:
    """The largest part of the response time: a station and what operations do there, or what lies outside of all
    stations. `stations`: seconds by station and part, in the unit of `response`; they are more together where stripes
    are served at the same time, and then no part has a share."""
    parts = {
        f"{words} {name}": float(at.get(part) or 0) for name, at in stations.items() for part, words in PARTS.items()
    }
    if response <= 0 or not any(at.get(part) is not None for at in stations.values() for part in PARTS):
        return units.NOTHING
    known = sum(parts.values())
    parts[ELSEWHERE] = max(0.0, response - known)
    largest = max(parts, key=lambda words: parts[words])
    if known > 1.01 * response:
        return f"most of it {largest}, several visits at once"
    return f"{units.share(min(1.0, parts[largest] / response))} {largest}"


def _time_at_stations(phases: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Seconds that all operations of the phases spent at each station, by part."""
    found: dict[str, dict[str, float]] = {}
    for phase in phases:
        for name, station in (phase.get("stations") or {}).items():
            at = found.setdefault(name, {})
            for operation, sums in station["operations"].items():
                if operation in ("others", "drain"):  # nobody waits for these
                    continue
                for part in PARTS:
                    at[part] = at.get(part, 0.0) + sums["visits"] * float(sums.get(part) or 0)
    return found


def bandwidth(forecast: ForecastDocument) -> float | None:
    """Bytes a second of all operations that move data."""
    return bytes_per_second(forecast) or None


def _value(rate: Mapping[str, Any]) -> str:
    return roughly(units.rate(rate["value"], rate.get("unit")), rate)


def between(forecast: ForecastDocument, by_time: bool) -> str:
    """The interval or the family's range: by time that of all repeats of the phase, or where no length is known of its
    bandwidth; else of the rate."""
    rate, seconds, moved = forecast["quantities"]["rate"], forecast.get("seconds"), bandwidth(forecast)
    around = family["range"].get("rate") if (family := forecast.get("family")) else None
    if by_time and seconds:
        return _ends(seconds, range_of_seconds(forecast), lambda value: units.seconds(repeats(forecast) * value))
    if by_time and moved and rate["value"]:
        return _ends(rate, around, lambda value: units.bandwidth(moved / rate["value"] * value))
    return _ends(rate, around, partial(units.rate, unit=rate.get("unit")))


def _ends(answer: Mapping[str, Any], around: Mapping[str, Any] | None, shown: Callable[[float], str]) -> str:
    """An interval, or without one the range of a family; shown: writes an end."""
    for ends, what in ((answer, ""), (around, " (a range)")):
        if ends and ends.get("low") is not None and ends.get("high") is not None:
            low, high = shown(ends["low"]), shown(ends["high"])
            return f"{low} (all alike)" if what and low == high else units.span(low, high) + what
    return "none"


def _between_heading(forecasts: list[ForecastDocument]) -> str:
    known = [f["quantities"]["rate"].get("low") is not None for f in forecasts]
    interval = f"{units.share(forecasts[0].get('level'))} interval"
    return interval if all(known) or not any(f.get("family") for f in forecasts) else "interval or range"


def _placement(forecast: ForecastDocument) -> str:
    factor = evidence.waiting_factor(forecast)
    return _where(forecast["placement"]) + (f", waiting factor {factor:g}" if factor else "")


def _where(placement: Mapping[str, Any]) -> str:
    ranks, nodes = evidence.ranks_of(dict(placement)), placement.get("nodes", 1)
    if nodes is None:
        return f"{units.ranks(ranks)} (nodes not stated)"
    return f"{nodes:,} × {placement.get('ranks_per_node') or ranks / nodes:g}"


def _placements(placements: list[Mapping[str, Any]]) -> str:
    """ "on 16 and 128 nodes with 36 ranks each"; of unequal or unknown nodes only the ranks."""
    ranks = [evidence.ranks_of(dict(p)) for p in placements]
    nodes = [p.get("nodes", 1) for p in placements]
    per_node = {count / on for count, on in zip(ranks, nodes, strict=True) if on is not None}
    if None in nodes or len(per_node) > 1:
        return f"with {_listed([f'{n:,}' for n in sorted(set(ranks))])} rank{'s' * (set(ranks) != {1})}"
    each, different = next(iter(per_node)), sorted({int(n) for n in nodes})
    number = _listed([f"{n:,}" for n in different])
    of_node = f"{each:g} rank{'s' if each != 1 else ''}"
    return f"on 1 node with {of_node}" if different == [1] else f"on {number} nodes with {of_node} each"


def reached(ranks: int, times: float | None) -> str:
    """How far a forecast for these ranks lies beyond the largest measured scale; "" where none is known.

    @param times ranks over those of that scale"""
    if not times:
        return ""
    if times <= 1:
        return "It lies within the measured scales."
    return f"It reaches {units.factor(times)} times the largest measured scale, {units.ranks(round(ranks / times))}."


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _note(is_wide: bool, count: int) -> str:
    left = count - MAX_ROWS
    more = [f"{left} more {'is' if left == 1 else 'are'} in the tables below."] if left > 0 else []
    wide = [f"Where a value is only about right, {NARROWED}."] if is_wide else []
    return " ".join([*wide, *more])

# SPDX-License-Identifier: Apache-2.0
"""Observations joined to a run: how busy each resource was in each phase, and what an operation took of it.

The utilisation law (P. Denning, J. Buzen, The Operational Analysis of Queueing Network Models, 1978): a resource that
was busy for B seconds while C operations were completed served each for D = B / C seconds on average, whatever the
distributions are; and no more than servers / D operations a second can pass it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from iocast.ground import strict
from iocast.errors import InputError
from iocast.ground.files import SCHEMA_VERSION, read_json, require_version, sha256, write_json
from iocast.importers.statistics import HANDLING, REQUESTS, TRIPS
from iocast.watching.counted import COUNTED, KINDS, PLACE, TIMED, WAITING, AtServer, Counters, at_targets, statistics_in
from iocast.records import note_of_measurements as note
from iocast.records.note import Note
from iocast.wording.notes import add
from iocast.records.run import Phase, Run, read_run
from iocast.records.utilisation import (
    Bound,
    Clock,
    ObservationHeader,
    ObservedSample,
    PhaseUse,
    ResourceUse,
    Series,
    UtilisationDocument,
)

FILE = "utilisation.json"
LEAST_SAMPLES = 3
"""Within a phase; with fewer, what lies before and after it weighs too much."""
CLOCK_STEP = 0.05  # seconds by which the wall clock may stray from the monotonic one before it counts as set
MAX_POINTS = 600
LEAST_WAIT = 0.01
"""Minimum share of processes' time for a sleeping place to be reported."""


class Start(Enum):
    """What says when a run began."""

    STATED = "the start that run.json states"
    WRITTEN = "the time at which latency.hlog was written, after the last phase"


SURE = 0.01  # seconds by which a run's start may be unknown without a note


@dataclass
class Resource:
    """A counter of one observation that only grows: seconds busy, or bytes for a network link of unknown speed."""

    name: str
    kind: str  # cpu, core, process, disk, link, or of a server's counters
    servers: float | None  # seconds of work it can do in a second; None when not known
    counter: list[float] = field(default_factory=list)
    unit: str = "seconds"
    bytes_each: float = 0.0
    """Bytes of a unit of a link's counter."""
    requests: list[float] | None = None
    """Number so far, where a server counts them itself."""
    times: NDArray[np.float64] | None = None
    """At which it is known; None: those of the observation."""


class Observation:
    """@raises InputError with the line that can't be read"""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = strict.read_text(path).splitlines()
        documents = []
        for number, line in enumerate(lines, start=1):
            try:
                documents.append(strict.parse_json(line, path, number))
            except InputError:
                if number == len(lines) and number > 1:
                    break  # the last line of an observer that was killed
                if number == 1 and not line.lstrip().startswith("{"):
                    raise InputError(
                        f"{path}:1: this is neither an observation that 'iocast observe' wrote, nor counters of a "
                        "server or client that are known; docs/observe.md has the commands that write these."
                    ) from None
                raise
        if (
            not documents
            or not isinstance(documents[0], dict)
            or documents[0].get("kind") != "observation"
            or "host" not in documents[0]
        ):
            raise InputError(f"{path}:1: this is no observation; write one with iocast observe.")
        require_version(documents[0], path)
        self.header = cast(ObservationHeader, documents[0])
        self.samples = cast(
            list[ObservedSample], [d for d in documents[1:] if isinstance(d, dict) and "monotonic" in d]
        )
        if len(self.samples) < 2:
            raise InputError(
                f"{path}:{len(lines)}: there are fewer than two samples in it; observe for longer, or more often with "
                "--every."
            )
        self.host = str(self.header["host"])
        self.every_seconds, self.count = self.header["every_seconds"], len(self.samples)

    @property
    def times(self) -> NDArray[np.float64]:
        """Wall-clock seconds of the samples, by the monotonic clock from the first one on."""
        first = self.samples[0]
        return np.array([first["wall"] + s["monotonic"] - first["monotonic"] for s in self.samples])

    @property
    def clock_was_set(self) -> bool:
        return bool(np.any(np.abs(self.times - np.array([s["wall"] for s in self.samples])) > CLOCK_STEP))

    def resources(self) -> Iterator[Resource]:
        cores = len(self.samples[0]["cpu"])
        yield Resource(f"{self.host} cpu", "cpu", cores, [sum(s["cpu"]) for s in self.samples])
        for i in range(cores):
            yield Resource(f"{self.host} core {i}", "core", 1, [s["cpu"][i] for s in self.samples])
        for name in self.header["processes"]:
            yield Resource(
                f"{self.host} process {name}", "process", cores, [s["processes"][name]["cpu"] for s in self.samples]
            )
        for name in sorted({name for s in self.samples for name in s["disks"]}):
            yield Resource(
                f"{self.host} disk {name}",
                "disk",
                1,
                _steady([s["disks"].get(name, {}).get("busy") for s in self.samples]),
            )
        for name in sorted({name for s in self.samples for name in s["links"]}):
            megabits = self.header["link_megabits"].get(name)
            # A link is full duplex; the busier direction counts.
            for way in ("sent", "received"):
                counted = _steady([s["links"].get(name, {}).get(way) for s in self.samples])
                if counted[-1] == counted[0]:
                    continue
                if megabits:
                    speed = megabits * 1e6 / 8
                    yield Resource(
                        f"{self.host} link {name} {way}", "link", 1, [c / speed for c in counted], bytes_each=speed
                    )
                else:
                    yield Resource(f"{self.host} link {name} {way}", "link", None, counted, "bytes", 1.0)


class Statistics(Counters):
    """Snapshots of a server's counters, as an observation."""

    clock_was_set = False

    def resources(self) -> Iterator[Resource]:
        for name, kind, times, seconds, counts in self.totals():
            unit = "requests" if kind == COUNTED else "seconds"
            yield Resource(name, kind, None, seconds, unit, requests=counts, times=times)


def _read(path: Path) -> Observation | Statistics:
    importer = statistics_in(path)
    return Observation(path) if importer is None else Statistics(path, importer)


def _steady(values: Sequence[float | None]) -> list[float]:
    """A counter without gaps: a device that came later or went keeps its nearest value."""
    known = [v for v in values if v is not None]
    result, last = [], float(known[0])
    for value in values:
        last = last if value is None else float(value)
        result.append(last)
    return result


def join(run: Path, observations: Sequence[Path]) -> UtilisationDocument:
    """Writes `utilisation.json` into the run directory, with these observations (of several hosts, perhaps), in place
    of an earlier one.

    @return its content
    @raises InputError when an observation and the run don't overlap"""
    record = read_run(read_json(run / "run.json", "run"))
    if not record.phases:
        raise InputError(f"The run '{run}' has no finished phase that an observation could be joined to.")
    clock = run_clock(run, record)
    read = [_read(path) for path in observations]
    for format_ in {one.host for one in read if isinstance(one, Statistics)}:
        alike = [one for one in read if isinstance(one, Statistics) and one.host == format_]
        for number, one in enumerate(alike if len(alike) > 1 else (), start=1):
            one.host = f"{format_}:{number}"  # servers and mounts of several files may have the same names
    spans = [_span(phase) for phase in record.phases]
    begin, end = clock["start"] + min(start for start, _ in spans), clock["start"] + max(end for _, end in spans)
    slack = clock["uncertainty_seconds"] if clock["how"] == Start.STATED.value else 0.0
    notes: list[Note] = []
    for observation in read:
        times = observation.times
        if times[-1] < begin - slack or times[0] > end + slack:
            raise InputError(
                f"The observation '{observation.path}' ({_clock_text(times[0])} to {_clock_text(times[-1])}) and the "
                f"run '{run}' ({_clock_text(begin)} to {_clock_text(end)}) don't overlap; they are not of the same "
                "time, or the clocks of their machines differ."
            )
        if observation.clock_was_set:
            notes.append(note.ClockSet(observation.host))
        if times[0] > begin + 1 or times[-1] < end - 1:
            notes.append(note.RunNotCovered(observation.host))
    notes += [note.OfCounters(text) for one in read if isinstance(one, Statistics) for text in one.notes]
    if slack > SURE:
        notes.append(note.StartUncertain(clock["uncertainty_seconds"]))
    content: UtilisationDocument = {
        "schema_version": SCHEMA_VERSION,
        "kind": "utilisation",
        "observations": [
            {
                "name": o.path.name,
                "sha256": sha256(o.path),
                "host": o.host,
                "every_seconds": o.every_seconds,
                "samples": o.count,
            }
            for o in read
        ],
        "clock": clock,
        "notes": [],
        "cautions": [],
        "phases": [_phase(phase, clock["start"], read) for phase in record.phases],
        "timeline": _timeline(read, clock["start"], begin, end),
    }
    add(content, notes)
    write_json(run / FILE, content)
    return content


def read_utilisation(run: Path) -> UtilisationDocument | None:
    """What was joined to a run; None when nothing was."""
    return cast(UtilisationDocument, read_json(run / FILE, "utilisation")) if (run / FILE).is_file() else None


def _span(phase: Phase) -> tuple[float, float]:
    """Begin and end in seconds since the start of the run; of an import without them all is at the start."""
    start = phase.start_seconds or 0.0
    return start, start + (phase.seconds or 0.0)


def run_clock(path: Path, run: Run) -> Clock:
    """When the run's second zero was, as seconds since 1970, and by how much it can be off.

    run.json says when the program started; to the millisecond when it is of iocast-bench, while what other programs
    wrote may be to the second only. The log was last written right after the last phase ended, which says it closer
    then, unless the directory was copied since."""
    try:
        started = datetime.fromisoformat(str(run.started).replace("Z", "+00:00"))
    except ValueError:
        raise InputError(
            f"The run '{path}' does not say when it started (started), so nothing can be joined to it."
        ) from None
    if started.tzinfo is None:
        started = started.astimezone()  # of an imported run: this machine's zone is the best guess
    low = started.astimezone(timezone.utc).timestamp()
    if "." in str(run.started):
        return {"start": low, "uncertainty_seconds": 0.001, "how": Start.STATED.value}
    high = low + 1.0
    last = max(end for _, end in map(_span, run.phases))
    written = (path / "latency.hlog").stat().st_mtime - last if (path / "latency.hlog").is_file() else high
    if low <= written < high:
        return {"start": written, "uncertainty_seconds": written - low, "how": Start.WRITTEN.value}
    return {"start": (low + high) / 2, "uncertainty_seconds": (high - low) / 2, "how": Start.STATED.value}


def _clock_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")


def _phase(phase: Phase, start: float, observations: Sequence[Observation | Statistics]) -> PhaseUse:
    begin, end = (start + moment for moment in _span(phase))
    seconds, operations = phase.seconds or 0.0, phase.operations or 0
    resources = {}
    for observation in observations:
        for resource in observation.resources():
            times = observation.times if resource.times is None else resource.times
            inside = int(np.sum((times >= begin) & (times <= end)))
            # Beyond its ends a counter is not known.
            covered = times[0] <= begin + 1e-9 and times[-1] >= end - 1e-9
            entry: ResourceUse = {
                "kind": resource.kind,
                "servers": resource.servers,
                "unit": resource.unit,
                "utilisation": None,
                "busy": None,
                "demand": None,
            }
            if inside >= LEAST_SAMPLES and covered and seconds > 0:
                busy = max(
                    0.0, float(np.interp(end, times, resource.counter) - np.interp(begin, times, resource.counter))
                )
                entry["busy"] = busy
                if resource.servers is not None:
                    entry["utilisation"] = busy / seconds / resource.servers
                if operations:
                    entry["demand"] = busy / operations
                    if resource.requests is not None:
                        many = float(
                            np.interp(end, times, resource.requests) - np.interp(begin, times, resource.requests)
                        )
                        entry["requests"] = max(0.0, many) / operations
                    if resource.bytes_each:
                        entry["bytes"] = resource.bytes_each * busy / operations
            resources[resource.name] = entry
    found: PhaseUse = {
        "name": phase.name,
        "repeat": phase.repeat,
        "seconds": seconds,
        "operations": operations,
        "resources": resources,
    }
    machines = [one for one in observations if isinstance(one, Observation)]
    if waits := {name: shares for observation in machines for name, shares in _waits(observation, begin, end)}:
        found["waits"] = waits
    if all(r["busy"] is None for r in resources.values()):
        found["note"] = (
            f"Fewer than {LEAST_SAMPLES} samples lie in this phase, or it was not observed whole; observe more often "
            "with --every."
        )
    return found


def _waits(observation: Observation, begin: float, end: float) -> Iterator[tuple[str, dict[str, float]]]:
    """By name of processes ("HOST process NAME"): the shares of their time between two moments that they slept, by
    where in the kernel."""
    times = observation.times
    inside = [sample["processes"] for sample, at in zip(observation.samples, times, strict=True) if begin <= at <= end]
    for name in observation.header["processes"]:
        looks = [processes[name] for processes in inside if "waits" in processes[name]]
        seen = sum(one["count"] for one in looks)
        if len(looks) < LEAST_SAMPLES or seen == 0:
            continue
        found: Counter[str] = Counter()
        for one in looks:
            found.update(one["waits"])
        yield (
            f"{observation.host} process {name}",
            {where: count / seen for where, count in found.most_common() if count >= LEAST_WAIT * seen},
        )


def waits_in(run: Path, phase: str = "benchmark") -> dict[str, dict[str, float]]:
    """By name of processes: the shares of their time in a phase, all repeats together, that they slept, by where in the
    kernel; nothing where nobody looked."""
    content = read_utilisation(run)
    repeats = [p for p in content["phases"] if p["name"] == phase and "waits" in p] if content else []
    seconds = sum(p["seconds"] for p in repeats)
    found: dict[str, Counter[str]] = {}
    for repeat in repeats:
        for name, shares in repeat["waits"].items():
            found.setdefault(name, Counter()).update(
                {where: share * repeat["seconds"] / seconds for where, share in shares.items()}
            )
    return {name: dict(shares.most_common()) for name, shares in found.items()}


def _timeline(
    observations: Sequence[Observation | Statistics], start: float, begin: float, end: float
) -> dict[str, Series]:
    """Utilisation between neighbouring samples, by the middle of the time between them, in seconds since the start of
    the run."""
    found: dict[str, Series] = {}
    for observation in observations:
        times = observation.times
        kept = np.flatnonzero((times >= begin - observation.every_seconds) & (times <= end + observation.every_seconds))
        kept = kept[:: max(1, -(-len(kept) // MAX_POINTS))]
        if len(kept) < 2:
            continue
        at = times[kept]
        middle = ((at[1:] + at[:-1]) / 2 - start).tolist()
        for resource in observation.resources():
            if resource.servers is None or resource.kind == "core":
                continue
            counter = np.array(resource.counter)[kept]
            used = np.maximum(np.diff(counter), 0) / np.diff(at) / resource.servers
            if used.max(initial=0.0) > 0:
                found[resource.name] = {"seconds": middle, "utilisation": used.tolist()}
    return found


def bytes_over_links(run: Path, phase: str = "benchmark") -> dict[tuple[str, str], float]:
    """By host and direction ("sent", "received"): bytes that a completed operation, of whichever node, moved over the
    host's links in the first repeat of a phase that was observed whole. The loopback is none."""
    content = read_utilisation(run)
    for one in [] if content is None else content["phases"]:
        links = {tuple(name.split(" ")): use["bytes"] for name, use in one["resources"].items() if "bytes" in use}
        if one["name"] != phase or not links:
            continue
        found: dict[tuple[str, str], float] = {}
        for (host, _, device, way), moved in links.items():
            if device != "lo":
                found[host, way] = found.get((host, way), 0.0) + moved
        return found
    return {}


def served(run: Path, phase: str = "benchmark", nodes: int = 1) -> AtServer | None:
    """Of a completed operation at the server that counts most seconds of them, over all repeats of a phase that it was
    observed in; None where no counters were joined, or those of threads' work without the waits for them. What
    counts under another name is another server: a database behind a pool, another brick, another daemon. Targets
    of a machine of Lustre are one. Trips of clients are added up, and taken where no server counts and all nodes
    were observed; several mounts of an export on a node may be one with the same counters, so that one counts."""
    content = read_utilisation(run)
    repeats = [p for p in content["phases"] if p["name"] == phase and p["operations"]] if content else []
    each: dict[str, dict[str, tuple[float, float]]] = {}
    """By server and kind, of an operation its seconds there and its requests."""
    for server in sorted({name.rpartition(" ")[0] for one in repeats for name in one["resources"]}):
        operations, known = 0, dict[str, list[tuple[float, float]]]()
        for one in repeats:
            own = [use for name, use in one["resources"].items() if name.rpartition(" ")[0] == server]
            if not any(use["kind"] in KINDS for use in own) or any(use["busy"] is None for use in own):
                continue  # it was not observed whole
            operations += one["operations"]
            for use in own:
                pair = use["busy"] or 0.0, use.get("requests", 0.0) * one["operations"]
                known.setdefault(use["kind"], []).append(pair)
        each[server] = {
            kind: (sum(busy for busy, _ in all_) / operations, sum(many for _, many in all_) / operations)
            for kind, all_ in known.items()
        }
    found: list[AtServer] = []
    trips: dict[str, dict[str, float]] = {}
    handling: dict[tuple[str, str], float] = {}
    waiting: dict[tuple[str, str], float] = {}
    for server, kinds in each.items():
        host, _, name = server.partition(" ")
        wait = kinds.get(WAITING)
        if REQUESTS in kinds:
            found.append(AtServer(kinds[REQUESTS][0], wait[0] if wait else None))
        elif HANDLING in kinds and wait:
            if kinds[HANDLING][1] >= TIMED * wait[1]:
                found.append(AtServer(kinds[HANDLING][0] + wait[0], wait[0]))
        elif HANDLING in kinds:
            handling[host, name] = kinds[HANDLING][0]
        elif TRIPS in kinds:
            of_node = trips.setdefault(PLACE.sub("", name), {})
            of_node[host] = max(of_node.get(host, 0.0), kinds[TRIPS][0])
        if wait:
            waiting[host, name] = wait[0]
    found += at_targets(handling, waiting)
    found = found or [AtServer(sum(all_.values()), None, True) for all_ in trips.values() if len(all_) >= nodes]
    return max((one for one in found if one.seconds > 0), key=lambda one: one.seconds, default=None)


def bounds(run: Path, phase: str = "benchmark") -> dict[str, Bound]:
    """By resource: utilisation, demand and what rate it allows at most, over all repeats of a phase; only resources
    that were observed whole."""
    content = read_utilisation(run)
    if content is None:
        return {}
    found: dict[str, Bound] = {}
    repeats = [p for p in content["phases"] if p["name"] == phase and p["operations"]]
    for name in repeats[0]["resources"] if repeats else {}:
        entries = [(p, p["resources"][name]) for p in repeats if p["resources"][name]["busy"] is not None]
        servers = entries[0][1]["servers"] if entries else None
        if servers is None or entries[0][1]["kind"] == "core":
            continue
        busy, operations = sum(e["busy"] or 0.0 for _, e in entries), sum(p["operations"] for p, _ in entries)
        if busy <= 0:
            continue
        found[name] = {
            "kind": entries[0][1]["kind"],
            "servers": servers,
            "utilisation": busy / sum(p["seconds"] for p, _ in entries) / servers,
            "demand": busy / operations,
            "rate_at_most": servers * operations / busy,
        }
    return found

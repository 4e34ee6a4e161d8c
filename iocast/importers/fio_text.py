# SPDX-License-Identifier: Apache-2.0
"""fio's normal text output, of 2 and 3: rates, extremes and percentiles of latencies. For the importer fio.

Jobs of one group run at the same time and are one phase, as in JSON. A log may hold several runs, each of which names
the version ("fio-3.41") before its results. Numbers are rounded by fio to three or four digits; counts are exact.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TypedDict, cast

from iocast.errors import InputError
from iocast.importers.record import Latency, Phase, Record, place_one_after_the_other
from iocast.importers.source import Source

JOB = re.compile(
    r"^(?:<(?P<host>\S+)> )?(?P<name>\S.*?): \(groupid=(?P<group>\d+), jobs=(?P<jobs>\d+)\): "
    r"err=\s*(?P<error>\d+).*?(?:: (?P<end>\w{3} \w{3} +\d+ [\d:]+ \d{4}))?$"
)
JOB_LINE = re.compile(
    r"^(?P<name>\S.*?): \(g=\d+\): rw=(?P<rw>\w+), bs=(?P<bs>.*?),? ioengine=(?P<ioengine>\S+), "
    r"iodepth=(?P<iodepth>\d+)"
)
VERSION = re.compile(r"^fio[- ](\d\S*)$")
WAY = re.compile(r"^\s+(read|write|trim)\s*: (.*)$", re.IGNORECASE)
BANDWIDTH = re.compile(r"\bbw=\s*([\d.]+)\s*([KMGT]?i?)B/s", re.IGNORECASE)
RUNTIME = re.compile(r"(?:/|runt=)\s*(\d+)\s*msec")
TIMES = re.compile(
    r"^\s+(slat|clat|lat|sync) \((nsec|usec|msec)\): min=\s*([\d.]+)([kKMG]?)\s*, max=\s*([\d.]+)([kKMG]?)\s*, "
    r"avg=\s*([\d.]+)([kKMG]?)"
)
PERCENTILES = re.compile(r"^\s+(clat|lat|sync) percentiles \((nsec|usec|msec)\)")
ISSUED = re.compile(r"^\s+issued\s*(?:rwts?|r/w/d)?\s*: total=(?:r=)?(\d+)[,/](?:w=)?(\d+)[,/](?:d=)?(\d+)(?:,(\d+))?")
ENDED_EARLY = re.compile(r"^fio: terminating on signal")
"""What fio prints before the results of a run that a signal ended. One that was killed has none."""
CLOSED = re.compile(r"^Run status group (\d+) \(")
TOGETHER = "All clients"
"""Name under which fio's client prints the sum over its servers."""
SYNC = re.compile(r"^\s+fsync/fdatasync/sync_file_range")
UNITS = {"nsec": 1e-9, "usec": 1e-6, "msec": 1e-3}
LETTERS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
SIZES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
OPERATIONS = {"read": "pread", "write": "pwrite", "trim": "trim"}
QUANTILES = {25.0: "q25", 50.0: "q50", 75.0: "q75", 90.0: "q90", 95.0: "q95", 99.0: "q99", 99.9: "q999"}


def recognises(source: Source) -> bool:
    return "(groupid=" in source.head and any(JOB.match(line) for line in source.lines)


def tag(title: str) -> str:
    """A name of which tags and file names can be made."""
    return "".join(c if c.isalnum() or c in "-_+" else "-" for c in title)


def read(source: Source) -> list[Record]:
    records: list[Record] = []
    ended = []
    for first, last in _runs(source):
        if why := _ended(source, first, last):
            ended.append(why)
        else:
            records += _resultsrun(source, first, last)
    if not records and ended:
        raise ended[0]
    if records:
        records[0].warnings += [f"{str(one).rstrip('.')}; this run is left out." for one in ended]
    if not records:
        raise source.refuse_cut("the first group's result with its 'issued' lines and 'Run status group'")
    return records


Way = TypedDict(
    "Way",
    {
        "line": int,
        "times": dict[str, list[float]],
        "times line": dict[str, int],
        "percentiles": dict[str, float],
        "quantile line": dict[str, int],
        "of": str,
        "unit": float,
        "seconds": float,
        "bytes/s": float,
    },
    total=False,
)
"""What a job's result says of reads, writes or trims; times are minimum, maximum and mean in seconds."""
Job = TypedDict(
    "Job",
    {
        "name": str,
        "group": str,
        "jobs": str,
        "error": str,
        "host": str | None,
        "line": int,
        "ways": dict[str, Way],
        "way": Way,
        "sync": Way,
        "issued": list[int],
        "issued line": int,
    },
    total=False,
)
"""A job's result; `way`: the one that following lines are of."""


def _ended(source: Source, first: int, last: int) -> InputError | None:
    """Why the run did not reach its end: by a signal, or by an error of a job."""
    if early := source.ended_early(first, last, ENDED_EARLY):
        return source.refuse(early[0], f"fio ended before its jobs had done their work ('{early[1]}')")
    lines = source.lines[first - 1 : last]
    if any(line.lstrip().startswith("errors ") and "total=" in line for line in lines):
        return None  # continue_on_error: fio goes on after errors, and counts them
    for number, line in enumerate(lines, start=first):
        if (found := JOB.match(line)) and int(found["error"]):
            error = int(found["error"])
            meaning = f" ({os.strerror(error)})" if error < 200 else ""
            return source.refuse(
                number, f"the job '{found['name']}' ended with error {error}{meaning}, before it had done its work"
            )
    return None


def _runs(source: Source) -> list[tuple[int, int]]:
    """First and last line of each run: the job is printed before the version, the results after it."""
    begins, before = [], 0
    for number, line in source.numbered:
        if JOB_LINE.match(line) and not before:
            before = number
        elif VERSION.match(line.strip()):
            begins.append(before or number)
            before = 0
    begins = [1, *begins[1:]]
    return list(zip(begins, [*(begin - 1 for begin in begins[1:]), len(source.lines)], strict=True))


def _resultsrun(source: Source, first: int, last: int) -> list[Record]:
    jobs: list[Job] = []
    request: dict[str, dict[str, str]] = {}
    version = None
    for number in range(first, last + 1):
        line = source.lines[number - 1]
        if found := VERSION.match(line.strip()):
            version = found[1]
        elif found := JOB_LINE.match(line):
            request.setdefault(found["name"], {k: v for k, v in found.groupdict().items() if k != "name"})
        elif found := JOB.match(line):
            jobs.append(cast(Job, {**found.groupdict(), "line": number, "ways": {}}))
        elif line.startswith("Run status"):
            continue
        elif jobs:
            _add_line(source, number, line, jobs[-1])
    closed = {found[1] for line in source.lines[first - 1 : last] if (found := CLOSED.match(line))}
    jobs = [job for job in jobs if job["name"] != TOGETHER]
    whole = [job for job in jobs if "issued" in job and job["ways"]]
    if not whole or {job["group"] for job in jobs} - closed:
        return []
    groups: dict[int, list[Job]] = {}
    for job in whole:
        groups.setdefault(int(job["group"]), []).append(job)
    results = [(group, _phase(source, group, request)) for _, group in sorted(groups.items())]
    place_one_after_the_other([phase for _, phase in results])
    numbers = [sum(int(job["jobs"]) for job in group) for group, _ in results]
    records = []
    for ranks in dict.fromkeys(numbers):
        own = [one for one, number in zip(results, numbers, strict=True) if number == ranks]
        name = "fio" if len(set(numbers)) == 1 else f"n{ranks}"
        record = Record(name, "fio", [phase for _, phase in own], version=version, ranks=ranks)
        record.nodes = len({job["host"] for group, _ in own for job in group if job["host"]}) or 1
        record.origin = dict.fromkeys(("ranks", "nodes", "parameters"), source.at(own[0][0][0]["line"]))
        default = next(iter(request.values()), {})
        put_options(record, [request.get(group[0]["name"]) or default for group, _ in own])
        _add_words(record, len(whole) < len(jobs))
        records.append(record)
    return records


def put_options(record: Record, options: list[Mapping[str, object]]) -> None:
    """Options that all phases of a run have are its parameters; each phase has those that differ, and a warning says
    how many requests were in flight."""
    first = options[0]
    alike = {k for k in first if all(k in own and own[k] == first[k] for own in options)}
    record.parameters = {str(k): v for k, v in first.items() if k in alike}
    for phase, own in zip(record.phases, options, strict=True):
        if differing := {str(k): v for k, v in own.items() if k not in alike}:
            phase.more["options"] = differing
    depth = max(int(str(own.get("iodepth", "1")) or 1) for own in options)
    if depth > 1:
        record.warnings.append(
            f"Each job kept up to {depth} requests in flight (iodepth), so there were more requests at a time than "
            "ranks."
        )


def _add_words(record: Record, cut: bool) -> None:
    if any(phase.more["latency_of"] == "completion" for phase in record.phases):
        record.warnings.append(
            "Latencies are fio's completion latencies: without the time to submit; lat_percentiles=1 would keep the "
            "total."
        )
    if cut:
        record.warnings.append("A job that did no operation is left out.")
    record.missing |= {
        "latency.hlog": "fio's text has percentiles; it writes its latency bins with --output-format=json+ only.",
        "started": "fio prints the time of its end only.",
        "command": "fio prints its options, not its command line.",
        "phases[].rank_seconds": "fio's text has the longest runtime of a group.",
        "phases[].start_seconds": "fio prints no start of a group; groups are placed one after the other.",
    }


def _add_line(source: Source, number: int, line: str, job: Job) -> None:
    """One line of a job's result."""
    if found := ISSUED.match(line):
        job["issued"], job["issued line"] = [int(text or 0) for text in found.groups()], number
    elif SYNC.match(line):
        job["way"] = job["sync"] = {"line": number, "times": {}, "percentiles": {}, "of": "sync"}
    elif found := WAY.match(line):
        runtime, bandwidth = RUNTIME.search(found[2]), BANDWIDTH.search(found[2])
        if runtime is None:
            return  # a line of the closing summary
        job["way"] = job["ways"].setdefault(
            found[1].lower(), {"line": number, "times": {}, "percentiles": {}, "of": ""}
        )
        job["way"]["seconds"] = int(runtime[1]) / 1000
        if bandwidth:
            # fio 2 writes KB for 1024 bytes; fio 3 writes KiB for 1024 and kB for 1000.
            base = 1024 if bandwidth[2].endswith("i") or "IOPS=" not in line else 1000
            job["way"]["bytes/s"] = float(bandwidth[1]) * base ** " KMGT".index(bandwidth[2].upper().rstrip("I") or " ")
    elif not job.get("way"):
        return
    elif found := TIMES.match(line):
        scale = UNITS[found[2]]
        job["way"].setdefault("times line", {})[found[1]] = number
        job["way"]["times"][found[1]] = [float(found[i]) * LETTERS[found[i + 1]] * scale for i in (3, 5, 7)]
    elif found := PERCENTILES.match(line):
        job["way"]["of"], job["way"]["unit"] = found[1], UNITS[found[2]]
    elif line.lstrip().startswith("|"):
        for share, value in re.findall(r"([\d.]+)th=\[\s*([\d.]+)\]", line):
            if name := QUANTILES.get(float(share)):
                job["way"].setdefault("quantile line", {})[name] = number
                job["way"]["percentiles"][name] = source.number(value, number, "a percentile") * job["way"].get(
                    "unit", 1e-6
                )


def _phase(source: Source, group: list[Job], request: dict[str, dict[str, str]]) -> Phase:
    phase = Phase(
        tag("+".join(dict.fromkeys(job["name"] for job in group))), errors=0, origin={"": source.at(group[0]["line"])}
    )
    issued = [sum(job["issued"][i] for job in group) for i in range(4)]
    phase.counts = {op: n for op, n in zip(("pread", "pwrite", "trim", "fsync"), issued, strict=True) if n}
    phase.operations = sum(phase.counts.values()) or None
    where = source.at(group[0]["issued line"])
    several = " (all jobs and kinds of operations together)" if len(phase.counts) + len(group) > 2 else ""
    phase.origin |= {"operations": where + several, "latency": where}
    ways = [way for job in group for way in job["ways"].values()]
    phase.seconds = max(way["seconds"] for way in ways) or None
    phase.origin["seconds"] = source.at(max(ways, key=lambda way: way["seconds"])["line"])
    phase.bytes_per_second = sum(way.get("bytes/s", 0.0) for way in ways) or None
    phase.origin["bytes_per_second"] = source.at(ways[0]["line"]) + several
    if phase.operations and phase.seconds:
        phase.rate = phase.operations / phase.seconds
        phase.origin["rate"] = f"{where} / {phase.origin['seconds']} (operations / runtime)"
    phase.errors = sum(1 for job in group if int(job["error"]))
    phase.more["latency_of"] = None
    for name, op in OPERATIONS.items():
        parts = [job["ways"][name] for job in group if name in job["ways"]]
        if parts and op in phase.counts:
            _add_latency(
                phase, op, parts, [job["issued"][list(OPERATIONS).index(name)] for job in group if name in job["ways"]]
            )
            _add_origins(source, phase, op, parts[0])
            phase.origin[f"latency.{op}.count"] = where
    synced = [job["sync"] for job in group if "sync" in job]
    if synced and "fsync" in phase.counts and len(synced) == 1 and "sync" in synced[0]["times"]:
        least, most, mean = synced[0]["times"]["sync"]
        phase.latency["fsync"] = Latency(
            phase.counts["fsync"], {"min": least, "max": most, "mean": mean} | synced[0]["percentiles"]
        )
        _add_origins(source, phase, "fsync", synced[0])
    size = _block_size(request.get(group[0]["name"], {}).get("bs", ""))
    if size and phase.operations:
        phase.bytes = size * (issued[0] + issued[1])
        phase.origin["bytes"] = f"{where} (operations x block size)"
    return phase


def _add_origins(source: Source, phase: Phase, op: str, part: Way) -> None:
    """The lines of an operation's latencies."""
    kind = "sync" if op == "fsync" else "lat" if phase.more["latency_of"] == "total" else "clat"
    phase.origin[f"latency.{op}"] = source.at(part.get("times line", {}).get(kind, part["line"]))
    phase.origin |= {f"latency.{op}.{name}": source.at(line) for name, line in part.get("quantile line", {}).items()}


def _add_latency(phase: Phase, op: str, parts: list[Way], counts: list[int]) -> None:
    """Completion latencies when the percentiles are theirs, else total ones; of several jobs mean and extremes."""
    kind = (
        parts[0]["of"]
        if len(parts) == 1 and parts[0]["of"]
        else "lat"
        if all("lat" in part["times"] for part in parts)
        else "clat"
    )
    if not all(kind in part["times"] for part in parts):
        return
    times = [part["times"][kind] for part in parts]
    known = {
        "min": min(t[0] for t in times), "max": max(t[1] for t in times),
        "mean": sum(n * t[2] for n, t in zip(counts, times, strict=True)) / max(sum(counts), 1),
    }  # fmt: skip
    if len(parts) == 1:
        known |= parts[0]["percentiles"]
    phase.latency[op] = Latency(sum(counts), known)
    phase.more["latency_of"] = "total" if kind == "lat" else "completion"


def _block_size(text: str) -> int | None:
    """Bytes of "(R) 4096B-4096B, (W) 4096B-4096B, (T) ..." or "4K-4K/4K-4K/4K-4K" when all are the same."""
    found = {(n, unit.upper()) for n, unit in re.findall(r"(\d[\d.]*)([KMG]?)i?B?", text, re.IGNORECASE)}
    return round(float(next(iter(found))[0])) * SIZES[next(iter(found))[1]] if len(found) == 1 else None

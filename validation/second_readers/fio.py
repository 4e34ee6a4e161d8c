# SPDX-License-Identifier: Apache-2.0
"""fio's JSON and normal text, of 2 and 3, read after the tool's own `stat.c`.

What the source says:

- Jobs of one group run together. An entry has a runtime for each direction, the longest of its jobs.
- `job_runtime` is the *sum* over the jobs that group_reporting has put into an entry, and its options are the first's.
- io_bytes are bytes since 2.99, KiB before; times are nanoseconds since then, microseconds before.
- Percentiles are of completion latencies, unless lat_percentiles was given; both kinds have mean and extremes.
- In text, "1013.3k" is decimal; the counts under "issued" are exact, all other numbers rounded.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from . import Printed, Quantity, Reading, figure

WAYS = {"read": "pread", "write": "pwrite", "trim": "trim"}
SHARES = {"25": "q25", "50": "q50", "75": "q75", "90": "q90", "95": "q95", "99": "q99", "99.9": "q999"}
JOB = re.compile(r"^(\S.*?): \(groupid=(\d+), jobs=(\d+)\): err=\s*(\d+)")
WAY3 = re.compile(r"^\s+(read|write|trim): IOPS=\S+, BW=([\d.]+)(\w*?i?)B/s \([^)]*\)\([^/]*/(\d+)msec\)")
WAY2 = re.compile(r"^\s+(read|write|trim)\s*: io=\S+, bw=([\d.]+)([KMG]?)B/s, iops=\s*\d+\s*, runt=\s*(\d+)msec")
NUMBER = r"=\s*([\d.]+)([kKMG]?)"
TIMES = re.compile(rf"^\s+(clat|lat) \((nsec|usec|msec)\): min{NUMBER}\s*, max{NUMBER}\s*, avg{NUMBER}")
SECONDS = {"nsec": 1e-9, "usec": 1e-6, "msec": 1e-3}
DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}


def read(path: Path, text: str) -> Reading | None:
    if '"fio version"' in text:
        return of_json(text)
    if "(groupid=" in text:
        return of_text(text)
    return None


# ---- JSON


def documents(text: str) -> list[dict[str, Any]]:
    """Documents between notes of other programs; the last one may be cut off."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while hit := re.compile(r"^\s*\{", re.M).search(text, at):
        try:
            value, at = decoder.raw_decode(text, hit.end() - 1)
        except json.JSONDecodeError:
            break
        if "fio version" in value:
            found.append(value)
    return found


def of_json(text: str) -> Reading:
    runs, version = [], ""
    for document in documents(text):
        version = version or document["fio version"].removeprefix("fio-")
        runs += [run for run in of_document(document, document["fio version"].removeprefix("fio-")) if run.phases]
    refusal = "" if runs else "no rate in it" if version else "truncated"
    if len(runs) == 1 and "fio: terminating on signal" in text:
        refusal = "ended by a signal"
    return Reading("fio", f"{version} JSON" if version else "JSON", runs, refusal)


def of_document(document: dict[str, Any], version: str) -> list[Printed]:
    """One for each number of jobs at a time."""
    jobs = document.get("jobs") or [job for job in document.get("client_stats", []) if job["jobname"] != "All clients"]
    old = int(version.split(".")[0]) < 3 and not version.startswith("2.99")
    groups = [
        [job for job in jobs if job.get("groupid", 0) == group] for group in sorted({j.get("groupid", 0) for j in jobs})
    ]
    sizes = [size_of(members, document.get("global options", {})) for members in groups]
    if None in sizes:
        sizes = [None] * len(sizes)
    runs = []
    for size in dict.fromkeys(sizes):
        own = [members for members, number in zip(groups, sizes, strict=True) if number == size]
        run = Printed(nodes=len({job["hostname"] for members in own for job in members if job.get("hostname")}) or 1)
        for members in own:
            put_group(run, members, old)
            put_ends(run, members, size)
        run.ranks = size
        if run.ranks is None or run.ranks % (run.nodes or 1):
            run.nodes = 1 if run.nodes == 1 else None
        runs.append(run)
    return runs


def size_of(members: list[dict[str, Any]], shared: dict[str, Any]) -> int | None:
    """Jobs of a group; None when an entry holds more than its options say."""
    hosts = {job.get("hostname") for job in members}
    if len(hosts) > 1:
        each = [size_of([job for job in members if job.get("hostname") == host], shared) for host in hosts]
        return None if None in each else sum(number or 0 for number in each)
    options = {**shared, **members[0].get("job options", {})}
    if len(members) > 1 or options.get("group_reporting", "0") == "0":
        return len(members)
    number = int(options.get("numjobs", 1))
    longest = sum(members[0][way]["runtime"] for way in WAYS if way in members[0])
    return None if members[0].get("job_runtime", 0) > 1.05 * number * longest + 100 else number


def put_group(run: Printed, members: list[dict[str, Any]], old: bool) -> None:
    done = {way: [job[way] for job in members if job.get(way, {}).get("iops")] for way in WAYS}
    parts = [part for several in done.values() for part in several]
    if not parts:
        return
    name = re.sub(r"[^\w+-]", "-", "+".join(dict.fromkeys(job["jobname"] for job in members)))
    seconds = max(part["runtime"] for part in parts) / 1000
    volume = sum(part["io_bytes"] for part in parts) * (1024 if old and "io_kbytes" not in parts[0] else 1)
    slack = 0.0 if "io_kbytes" in parts[0] else 512 * len(parts) / max(volume, 1)
    run.put(name, 0, seconds=seconds, bytes=Quantity(volume, 1e-9 + slack))
    run.put(name, 0, errors=sum(bool(job["error"]) for job in members))
    run.put(name, 0, bytes_per_second=Quantity(volume / seconds, 1e-6 + slack, derived=True))
    if all("total_ios" in part for part in parts):
        syncs = sum(job.get("sync", {}).get("total_ios", 0) for job in members)
        operations = sum(part["total_ios"] for part in parts) + syncs
        run.put(name, 0, operations=operations, rate=Quantity(operations / seconds, 1e-6, derived=True))
        if syncs:
            run.put(name, 0, latency__fsync__count=syncs)
    else:
        rates = [part["iops"] for part in parts]
        run.put(name, 0, rate=Quantity(sum(rates), 0.5 * len(rates) / min(rates)))
    for way, several in done.items():
        if several:
            put_latency(run, name, WAYS[way], several, old)


def put_ends(run: Printed, members: list[dict[str, Any]], number: int | None) -> None:
    """Runtimes of single jobs; the sum over several is none of them."""
    ends = [job["job_runtime"] / 1000 for job in members if job.get("job_runtime")]
    if run.phases and ends:
        alone = number == len(members) == len(ends)
        name = next(reversed(run.phases))[0]
        run.put(name, 0, rank_seconds__min=min(ends) if alone else None, rank_seconds__max=max(ends) if alone else None)


def put_latency(run: Printed, name: str, operation: str, parts: list[dict[str, Any]], old: bool) -> None:
    unit, end = (1e-6, "") if old and "clat_ns" not in parts[0] else (1e-9, "_ns")
    kinds = [kind for kind in ("lat", "clat") if all(part.get(kind + end, {}).get("max") for part in parts)]
    if not kinds:
        return
    with_shares = [kind for kind in kinds if all(part[kind + end].get("percentile") for part in parts)]
    kind = (with_shares or kinds)[0]
    known = [part[kind + end] for part in parts]
    counts = [part.get("total_ios") for part in parts]
    run.put(name, 0, **{f"latency__{operation}__min": min(one["min"] for one in known) * unit})
    run.put(name, 0, **{f"latency__{operation}__max": max(one["max"] for one in known) * unit})
    if all(counts):
        mean = sum(n * one["mean"] for n, one in zip(counts, known, strict=True)) / sum(counts)
        run.put(name, 0, **{f"latency__{operation}__count": sum(counts)})
        run.put(name, 0, **{f"latency__{operation}__mean": Quantity(mean * unit, 1e-6)})
    if len(parts) == 1:
        for share, value in known[0].get("percentile", {}).items():
            key = SHARES.get(f"{float(share.rstrip('%')):g}")
            if key and value:
                run.put(name, 0, **{f"latency__{operation}__{key}": Quantity(value * unit, 1e-3)})


# ---- text


def of_text(text: str) -> Reading | None:
    runs: list[Printed] = []
    version = ""
    for part in re.split(r"^(?=fio[- ]\d\S*\s*$)", text, flags=re.M):
        if hit := re.match(r"fio[- ](\S+)", part):
            version = version or hit[1]
        lines = part.splitlines()
        starts = [i for i, line in enumerate(lines) if JOB.match(line)]
        jobs = [job_of(lines[i:j]) for i, j in zip(starts, [*starts[1:], len(lines)], strict=False)]
        if jobs and "Run status group" in part:
            sizes = block_sizes(text)
            numbers: dict[int, list[dict[str, Any]]] = {}
            for group in sorted({job["group"] for job in jobs}):
                members = [job for job in jobs if job["group"] == group and job["name"] != "All clients"]
                numbers.setdefault(sum(job["jobs"] for job in members if job["issued"] and job["ways"]), []).extend(
                    members
                )
            runs += [of_jobs(own, sizes) for own in numbers.values()]
    if not runs and not any(JOB.match(line) for line in text.splitlines()):
        return None
    runs = [run for run in runs if run.phases]
    return Reading("fio", f"{version} text", runs, "" if runs else "truncated")


def block_sizes(text: str) -> dict[str, int]:
    """Of jobs whose reads and writes have one size."""
    found = {}
    for name, words in re.findall(r"^(\S.*?): \(g=\d+\): rw=\S+ bs=(.*?),? ioengine=", text, re.M):
        sizes = set(re.findall(r"([\d.]+)([KMG]?)i?B?\b", re.sub(r"\([RWT]\)", "", words)))
        if len(sizes) == 1:
            number, unit = sizes.pop()
            found[name] = round(float(number) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[unit])
    return found


def job_of(lines: list[str]) -> dict[str, Any]:
    name, group, number, error = JOB.match(lines[0]).groups()  # type: ignore[union-attr]
    job: dict[str, Any] = {"name": name, "group": int(group), "jobs": int(number), "error": int(error)}
    job |= {"ways": {}, "issued": None}
    way: dict[str, Any] | None = None
    unit = 1e-6
    for line in lines[1:]:
        if line.startswith("Run status"):
            break
        if hit := WAY3.match(line) or WAY2.match(line):
            base = 1024 if "i" in hit[3] or WAY2.match(line) else 1000
            bandwidth = figure(hit[2], base ** " KMGT".index((hit[3].strip("i") or " ").upper()))
            way = {"bw": bandwidth, "msec": int(hit[4]), "times": {}, "shares": {}}
            job["ways"][hit[1]] = way
        elif hit := re.match(r"^\s+issued.*?: total=(?:r=)?(\d+)[,/](?:w=)?(\d+)[,/](?:d=)?(\d+)(?:,(\d+))?", line):
            job["issued"] = [int(n or 0) for n in hit.groups()]
        elif "fsync/fdatasync" in line:
            way = None
        elif way is None:
            continue
        elif hit := TIMES.match(line):
            way["times"][hit[1]] = [figure(hit[i], DECIMAL[hit[i + 1]] * SECONDS[hit[2]]) for i in (3, 5, 7)]
        elif hit := re.match(r"^\s+(clat|lat) percentiles \((nsec|usec|msec)\)", line):
            way["of"], unit = hit[1], SECONDS[hit[2]]
        elif line.lstrip().startswith("|"):
            for share, value in re.findall(r"([\d.]+)th=\[\s*(\d+)\]", line):
                way["shares"][f"{float(share):g}"] = Quantity(int(value) * unit, 1e-9)
    return job


def of_jobs(jobs: list[dict[str, Any]], sizes: dict[str, int]) -> Printed:
    run = Printed(nodes=1)
    ranks = []
    for group in sorted({job["group"] for job in jobs}):
        members = [job for job in jobs if job["group"] == group and job["issued"] and job["ways"]]
        if not members:
            continue
        ranks.append(sum(job["jobs"] for job in members))
        name = re.sub(r"[^\w+-]", "-", "+".join(dict.fromkeys(job["name"] for job in members)))
        ways = [way for job in members for way in job["ways"].values()]
        operations = sum(sum(job["issued"]) for job in members)
        seconds = max(way["msec"] for way in ways) / 1000
        widths = [way["bw"].value * way["bw"].relative for way in ways]
        bandwidth = sum(way["bw"].value for way in ways)
        run.put(name, 0, operations=operations, seconds=seconds, errors=sum(bool(job["error"]) for job in members))
        run.put(name, 0, rate=Quantity(operations / seconds, 1e-6, derived=True))
        run.put(name, 0, bytes_per_second=Quantity(bandwidth, sum(widths) / bandwidth))
        if size := sizes.get(members[0]["name"]):
            run.put(name, 0, bytes=Quantity(size * sum(sum(job["issued"][:2]) for job in members), derived=True))
        for index, (way, operation) in enumerate(WAYS.items()):
            parts = [(job["issued"][index], job["ways"][way]) for job in members if way in job["ways"]]
            put_text_latency(run, name, operation, parts)
    run.ranks = max(ranks, default=None)
    return run


def put_text_latency(run: Printed, name: str, operation: str, parts: list[tuple[int, dict[str, Any]]]) -> None:
    if not parts or not all(count for count, _ in parts):
        return
    total = sum(count for count, _ in parts)
    both = "lat" if all("lat" in way["times"] for _, way in parts) else "clat"
    kind = parts[0][1].get("of", "clat") if len(parts) == 1 else both
    known = [way["times"].get(kind) for _, way in parts]
    run.put(name, 0, **{f"latency__{operation}__count": total})
    if all(known):
        least = min((t[0] for t in known), key=lambda q: q.value)
        most = max((t[1] for t in known), key=lambda q: q.value)
        mean = sum(count * t[2].value for (count, _), t in zip(parts, known, strict=True)) / total
        run.put(name, 0, **{f"latency__{operation}__min": least, f"latency__{operation}__max": most})
        run.put(name, 0, **{f"latency__{operation}__mean": Quantity(mean, max(t[2].relative for t in known))})
    if len(parts) == 1:
        for share, value in parts[0][1]["shares"].items():
            if key := SHARES.get(share):
                run.put(name, 0, **{f"latency__{operation}__{key}": value})

# SPDX-License-Identifier: Apache-2.0
"""fio: JSON of 2.x and 3.x (several documents in one file), and the normal text output."""

from __future__ import annotations

import json
import re
from pathlib import Path

from . import Printed, Quantity, Reading

OPS = {"read": "pread", "write": "pwrite", "trim": "trim"}
SECONDS = {"nsec": 1e-9, "usec": 1e-6, "msec": 1e-3, "sec": 1.0}
SIZES = {"": 1, "B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "kB": 10**3}
SUFFIX = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}


def read(path: Path, text: str) -> Reading | None:
    del path
    if '"fio version"' in text:
        return _documents(text)
    if re.search(r"\(groupid=\d+, jobs=\d+\): err=", text):
        return _text(text)
    if re.search(r"^fio-\d", text, re.M) and re.search(r"\(g=\d+\): rw=", text):
        return Reading("fio", "text", refusal="truncated")
    return None


def _documents(text: str) -> Reading:
    reading, at = Reading("fio"), 0
    while (found := re.search(r"^\s*\{", text[at:], re.M)) is not None:
        try:
            document, length = json.JSONDecoder().raw_decode(text[at + found.end() - 1 :])
        except json.JSONDecodeError:
            return Reading("fio", "JSON", refusal="truncated")
        at += found.end() - 1 + length
        if "fio version" not in document:
            continue
        reading.version = reading.version or document["fio version"].removeprefix("fio-") + " JSON"
        reading.runs.append(_document(document))
    if not any(run.phases for run in reading.runs):
        reading.refusal = "no rate in it"
    return reading


def _document(document: dict) -> Printed:
    run = Printed()
    groups: dict[int, list[dict]] = {}
    for job in document.get("jobs") or document.get("client_stats"):
        if job.get("jobname") != "All clients":
            groups.setdefault(job.get("groupid", 0), []).append(job)
    shared = document.get("global options", {})
    for jobs in groups.values():
        name = "+".join(dict.fromkeys(re.sub(r"[^\w+-]", "-", job["jobname"]) for job in jobs))
        options = shared | jobs[0].get("job options", {})
        engine = options.get("ioengine", "")
        count, longest, size = 0, 0.0, 0
        for way, op in OPS.items():
            parts = [job[way] for job in jobs if way in job and job[way].get("total_ios", job[way].get("iops"))]
            if not parts:
                continue
            number = sum(part.get("total_ios", round(part["iops"] * part["runtime"] / 1000)) for part in parts)
            rounded = any("total_ios" not in part and part["iops"] < 500 for part in parts)
            count += number
            longest = max(longest, *(part["runtime"] / 1000 for part in parts))
            # Before version 3 io_bytes is in KiB: bandwidth (KiB/s) times time tells.
            for part in parts:
                told = part["bw"] * 1024 * part["runtime"] / 1000
                size += part["io_bytes"] * (1024 if told and abs(1024 * part["io_bytes"] / told - 1) < 0.1 else 1)
            key = "lat_ns" if "lat_ns" in parts[0] else "lat"
            scale = 1e-9 if key == "lat_ns" else 1e-6
            if engine in ("filecreate", "filestat", "filedelete") or key not in parts[0]:
                continue
            run.put(name, 0, **{f"latency__{op}__count": None if rounded else float(number)})
            clat = parts[0].get("clat_ns") or parts[0].get("clat") or {}
            if len(parts) == 1 and "percentile" in clat:
                for ours, theirs in (("q50", "50.000000"), ("q75", None), ("q90", "90.000000"), ("q95", "95.000000"), ("q99", "99.000000"),
                                     ("q999", "99.900000")):  # fmt: skip
                    if theirs in clat["percentile"] and "percentile" not in parts[0][key]:
                        run.put(name, 0, **{f"latency__{op}__{ours}": Quantity(clat["percentile"][theirs] * scale, 0.02)})
                chosen = clat if "percentile" not in parts[0][key] else parts[0][key]
                run.put(name, 0, **{f"latency__{op}__mean": Quantity(chosen["mean"] * scale, 1e-6)})
                run.put(name, 0, **{f"latency__{op}__max": Quantity(chosen["max"] * scale, 1e-6)})
        syncs = sum(job["sync"].get("total_ios", 0) for job in jobs if isinstance(job.get("sync"), dict))
        if not count:
            continue
        run.put(name, 0, operations=None if rounded else float(count + syncs), seconds=longest, rate=Quantity((count + syncs) / longest, 1e-5))
        if size:
            run.put(name, 0, bytes=float(size), bytes_per_second=Quantity(size / longest, 1e-6))
    return run


def _text(text: str) -> Reading:
    version = re.findall(r"^fio-(\d\S*)$", text, re.M)
    reading = Reading("fio", f"{version[0] if version else ''} text".strip())
    for part in re.split(r"^(?=fio-\d\S*$)", text, flags=re.M):
        run = _text_run(part)
        if run.phases:
            reading.runs.append(run)
    if not reading.runs:
        reading.refusal = "truncated"
    return reading


def _text_run(text: str) -> Printed:
    """Jobs of a group are one phase: counts add up, the longest runtime counts; latencies only of a group of one
    job."""
    run, groups = Printed(), {}
    blocks = list(re.finditer(r"^(?:<\S+> )?(\S.*?): \(groupid=(\d+), jobs=(\d+)\): err=\s*(\d+).*$", text, re.M))
    for block, after in zip(blocks, [*blocks[1:], None], strict=False):
        body = text[block.end() : after.start() if after else len(text)]
        groups.setdefault(int(block[2]), []).append((block[1], int(block[3]), re.split(r"^Run status", body, maxsplit=1, flags=re.M)[0]))
    for jobs in groups.values():
        name = "+".join(dict.fromkeys(re.sub(r"[^\w+-]", "-", job[0]) for job in jobs))
        run.ranks = max(run.ranks or 0, sum(job[1] for job in jobs))
        total, longest, ways = 0, 0.0, dict.fromkeys(OPS, 0)
        for _, _, body in jobs:
            issued = re.search(r"^\s+issued.*?total=(\S+?),? short", body, re.M)
            if not issued:
                continue
            numbers = [int(n) for n in re.findall(r"\d+", issued[1])]
            total += sum(numbers)
            for way, number in zip(OPS, numbers, strict=False):
                ways[way] += number
            longest = max([longest, *(int(n) / 1000 for n in re.findall(r"(?:/|runtime=)\s*(\d+)\s*msec", body))])
        if not total or not longest:
            continue
        run.put(name, 0, operations=float(total), seconds=longest, rate=Quantity(total / longest, 1e-6))
        for way, number in ways.items():
            if number:
                run.put(name, 0, **{f"latency__{OPS[way]}__count": float(number)})
        if len(jobs) == 1:
            _text_latencies(run, name, jobs[0][2])
    return run


def _text_latencies(run: Printed, name: str, body: str) -> None:
    parts = re.split(r"^\s+(read|write|trim)\s*: ", body, flags=re.M | re.I)
    for way, part in zip(parts[1::2], parts[2::2], strict=True):
        op = OPS[way.lower()]
        quantiles = re.search(r"clat percentiles \((\w+)\):\s*\n((?:\s+\|.*\n)+)", part)
        clat = re.search(r"^\s+clat \((\w+)\): min=\s*[\d.]+[kMG]?, max=\s*([\d.]+)([kMG]?), avg=\s*([\d.]+)([kMG]?)", part, re.M)
        if not (clat and quantiles):
            continue
        unit = SECONDS[clat[1]]
        run.put(name, 0, **{f"latency__{op}__mean": Quantity(float(clat[4]) * SUFFIX[clat[5]] * unit, 1e-6),
                            f"latency__{op}__max": Quantity(float(clat[2]) * SUFFIX[clat[3]] * unit, 1e-6)})  # fmt: skip
        values = {float(k): int(v) for k, v in re.findall(r"([\d.]+)th=\[\s*(\d+)\]", quantiles[2])}
        for ours, theirs in (("q50", 50.0), ("q90", 90.0), ("q95", 95.0), ("q99", 99.0), ("q999", 99.9)):
            if theirs in values:
                run.put(name, 0, **{f"latency__{op}__{ours}": Quantity(values[theirs] * SECONDS[quantiles[1]], 1e-6)})

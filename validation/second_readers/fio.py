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
            parts = [job[way] for job in jobs if way in job and job[way].get("total_ios")]
            if not parts:
                continue
            number = sum(part["total_ios"] for part in parts)
            count += number
            longest = max(longest, *(part["runtime"] / 1000 for part in parts))
            size += sum(part["io_bytes"] for part in parts) if "iops_mean" in parts[0] or "bw_bytes" in parts[0] else 0
            key = "lat_ns" if "lat_ns" in parts[0] else "lat"
            scale = 1e-9 if key == "lat_ns" else 1e-6
            if engine in ("filecreate", "filestat", "filedelete") or key not in parts[0]:
                continue
            run.put(name, 0, **{f"latency__{op}__count": float(number)})
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
        run.put(name, 0, operations=float(count + syncs), seconds=longest, rate=Quantity((count + syncs) / longest, 1e-6))
        if size:
            run.put(name, 0, bytes=float(size), bytes_per_second=Quantity(size / longest, 1e-6))
    return run


def _text(text: str) -> Reading:
    version = re.findall(r"^fio-(\S+)", text, re.M)
    reading = Reading("fio", f"{version[0] if version else ''} text".strip())
    run, last, seen = Printed(), -1, 0
    blocks = list(re.finditer(r"^(?:<\S+> )?(\S.*?): \(groupid=(\d+), jobs=(\d+)\): err=\s*(\d+).*$", text, re.M))
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        body = text[block.end() : after.start() if after else len(text)]
        name, group = re.sub(r"[^\w+-]", "-", block[1]), int(block[2])
        if group < last or (name, 0) in run.phases:
            reading.runs.append(run)
            run, seen = Printed(), 0
        last = group
        seen = max(seen, int(block[3]))
        run.ranks = seen
        body = re.split(r"^Run status", body, maxsplit=1, flags=re.M)[0]
        issued = re.search(r"issued\s+(?:rwts?)?\s*:?\s*total=(?:r=)?(\d+)(?:/w=|,)(\d+)", body)
        longest = 0.0
        for way, number in (("read", issued[1] if issued else None), ("write", issued[2] if issued else None)):
            found = re.search(rf"^\s+{way}\s*:.*$", body, re.M | re.I)
            if not found:
                continue
            part = body[found.start() :]
            part = re.split(r"^\s+(?:read|write|trim)\s*:", part[len(found[0]) :], maxsplit=1, flags=re.M)[0]
            msec = re.search(r"(\d+)\s*msec", found[0])
            longest = max(longest, int(msec[1]) / 1000 if msec else 0)
            op = OPS[way]
            if number:
                run.put(name, 0, **{f"latency__{op}__count": float(number)})
            clat = re.search(r"^\s+clat \((\w+)\):\s*min=\s*([\d.]+)([kMG]?),\s*max=\s*([\d.]+)([kMG]?),\s*avg=\s*([\d.]+)([kMG]?)", part, re.M)
            quantiles = re.search(r"clat percentiles \((\w+)\):\s*\n((?:\s+\|.*\n)+)", part)
            if clat and quantiles:
                unit = SECONDS[clat[1]]
                run.put(name, 0, **{f"latency__{op}__mean": Quantity(float(clat[6]) * SUFFIX[clat[7]] * unit, 1e-6),
                                    f"latency__{op}__max": Quantity(float(clat[4]) * SUFFIX[clat[5]] * unit, 1e-6)})  # fmt: skip
                values = dict(re.findall(r"([\d.]+)th=\[\s*(\d+)\]", quantiles[2]))
                for ours, theirs in (("q50", "50.00"), ("q95", "95.00"), ("q99", "99.00"), ("q999", "99.90")):
                    if theirs in values:
                        run.put(name, 0, **{f"latency__{op}__{ours}": Quantity(int(values[theirs]) * SECONDS[quantiles[1]], 1e-6)})
        if issued and longest:
            total = int(issued[1]) + int(issued[2])
            run.put(name, 0, operations=float(total), seconds=longest, rate=Quantity(total / longest, 1e-6))
    if run.phases:
        reading.runs.append(run)
    if not reading.runs:
        reading.refusal = "truncated"
    return reading

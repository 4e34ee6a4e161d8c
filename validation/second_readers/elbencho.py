# SPDX-License-Identifier: Apache-2.0
"""elbencho: CSV of results, the same rows as JSON, result-file text, and the live CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

from . import Printed, Quantity, Reading

UNIT = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "ns": 1e-9}
NOT_MEASURED = ("SYNC", "DROPCACHE", "DROPCACHES")


def read(path: Path, text: str) -> Reading | None:
    del path
    first = text.lstrip("\ufeff").split("\n", 1)[0]
    if "time ms [last]" in first and "operation" in first:
        return _rows("CSV", list(csv.DictReader(io.StringIO(text))), text)
    if text.lstrip().startswith("[") and '"time ms [last]"' in text:
        return _rows("CSV as JSON", json.loads(text), text + "\n")
    if first.startswith("Label,Phase,RuntimeMS"):
        return _live(text)
    if re.search(r"^OPERATION\s+RESULT TYPE\s+FIRST DONE\s+LAST DONE", text, re.M):
        return _text(text)
    if text.lstrip().startswith("{") and '"phase_type"' in text and '"last_done"' in text:
        return _document(text)
    return None


def _document(text: str) -> Reading:
    reading, run, before = Reading("elbencho", "JSON"), None, None
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            return Reading("elbencho", "JSON", refusal="truncated")
        config, last = value["config"], value["last_done"]
        name, who = value["phase_type"].lower(), json.dumps(config)
        if name.upper() in NOT_MEASURED:
            continue
        if who != before or (run and (name, 0) in run.phases):
            run, before = Printed(int(config["threads"]) * int(config["hosts"]), int(config["hosts"])), who
            reading.runs.append(run)
        run.put(name, 0, seconds=float(last["elapsed_time_ms"]) / 1000, rate=float(last.get("entries/s") or last.get("iops")))
    return reading


def _rows(version: str, rows: list[dict[str, str]], text: str) -> Reading:
    if not text.endswith("\n"):
        return Reading("elbencho", version, refusal="truncated")
    numbers = sorted({str(row.get("version")) for row in rows if row.get("version")})
    reading = Reading("elbencho", f"{numbers[0] if numbers else ''} {version}".strip())
    before, run = None, None
    for row in rows:
        if row["operation"] in NOT_MEASURED or row["operation"] == "operation":
            continue
        row = {k: None if v in ("", None) else v for k, v in row.items()}
        who = tuple(str(row.get(k)) for k in ("path type", "paths", "hosts", "threads", "files", "file size", "block size", "random",
                                              "IO depth", "command", "label"))  # fmt: skip
        name = row["operation"].lower()
        if who != before or (name, 0) in run.phases:
            hosts = int(row["hosts"])
            run, before = Printed(int(row["threads"]) * hosts, hosts, row.get("command")), who
            reading.runs.append(run)
        rate = row["entries/s [last]"] if row["entries/s [last]"] is not None else row["IOPS [last]"]
        milliseconds = float(row["time ms [last]"])
        run.put(name, 0, rate=float(rate))
        if milliseconds >= 10:
            run.put(name, 0, seconds=milliseconds / 1000)
        if row["MiB/s [last]"] is not None:
            run.put(name, 0, bytes_per_second=float(row["MiB/s [last]"]) * 2**20)
        if row["entries/s [last]"] is not None:
            run.put(name, 0, operations=float(row["entries [last]"]))
        for kind, prefix in (("Ent", ""), ("IO", "p")):
            for ours, theirs in (("min", "min"), ("mean", "avg"), ("max", "max")):
                if row.get(f"{kind} lat us [{theirs}]") is not None and name in ("read", "write"):
                    op = {"": {"write": "create", "read": "read"}, "p": {"write": "pwrite", "read": "pread"}}[prefix][name]
                    if prefix and row["entries/s [last]"] is not None:
                        op = {"pwrite": "create.write", "pread": "read.read"}[op]
                    run.put(name, 0, **{f"latency__{op}__{ours}": float(row[f"{kind} lat us [{theirs}]"]) * 1e-6})
    if not reading.runs:
        reading.refusal = "no rate in it"
    return reading


def _duration(text: str) -> float:
    return sum(float(number) * UNIT[unit] for number, unit in re.findall(r"([\d.]+)(us|ms|ns|s|m|h)", text))


def _text(text: str) -> Reading:
    reading = Reading("elbencho", "text")
    calls = re.split(r"^(?=ISO DATE: )", text, flags=re.M)
    for call in calls:
        command = re.search(r"^COMMAND LINE: (.*)$", call, re.M)
        run = Printed(command=command[1] if command else None)
        if command:
            words = re.findall(r'"([^"]*)"', command[1])
            options = {}
            for word, following in zip(words, [*words[1:], ""], strict=True):
                name, equals, value = word.partition("=")
                options[name] = value if equals else following
            hosts = [h for h in re.split(r"[,\s]+", options.get("--hosts", "")) if h]
            run.nodes = max(1, len(hosts))
            run.ranks = run.nodes * int(options.get("--threads", options.get("-t", "1")))
        blocks = re.split(r"^---\s*$", call, flags=re.M)
        for block in blocks:
            heads = re.findall(r"^([A-Z]+)\s+Elapsed (?:ms|time)\s*:\s+(\S+)\s+(\S+)\s*$", block, re.M)
            if len(heads) > 1:
                return Reading("elbencho", "text of several processes", refusal="several processes print into it at once")
            if not heads or heads[0][0] in NOT_MEASURED:
                continue
            name, last = heads[0][0].lower(), heads[0][2]
            if (name, 0) in run.phases and command is None:
                return Reading("elbencho", "text of several processes", refusal="several processes print into it at once")
            seconds = _duration(last) if last[-1].isalpha() else float(last) / 1000
            entries = re.search(r"^\s+(?:Files|Dirs|Objects|Buckets|Entries)/s\s*:\s+\d+\s+(\d+)", block, re.M)
            totals = re.search(r"^\s+(?:Files|Dirs|Objects|Buckets|Entries) total\s*:\s+\d+\s+(\d+)", block, re.M)
            iops = re.search(r"^\s+IOPS\s*:\s+\d+\s+(\d+)", block, re.M)
            rate = entries or iops
            if not rate:
                continue
            run.put(name, 0, rate=float(rate[1]))
            if seconds >= 0.01:
                run.put(name, 0, seconds=Quantity(seconds, 1e-6))
            if totals:
                run.put(name, 0, operations=float(totals[1]))
            if found := re.search(r"Throughput MiB/s\s*:\s+\d+\s+(\d+)", block):
                run.put(name, 0, bytes_per_second=float(found[1]) * 2**20)
            if found := re.search(r"IO latency\s*:\s*\[ min=(\S+) avg=(\S+) max=(\S+) \]", block):
                op = {"write": "pwrite", "read": "pread"}[name]
                for key, value in zip(("min", "mean", "max"), found.groups(), strict=True):
                    run.put(name, 0, **{f"latency__{op}__{key}": _duration(value)})
        if run.phases:
            reading.runs.append(run)
    if not reading.runs:
        reading.refusal = "no rate in it"
    return reading


def _live(text: str) -> Reading:
    reading = Reading("elbencho", "live CSV")
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["Rank"] == "Total" and row["Phase"] != "Phase"]
    run = None
    for row in rows:
        name = row["Phase"].lower()
        if name.upper() in NOT_MEASURED:
            continue
        if run is None or (name, 0) in run.phases and float(row["RuntimeMS"]) <= run.last * 1000 and run.name == name:
            run = Printed(int(row["Active"]))
            reading.runs.append(run)
        if (name, 0) in run.phases and name != run.name:
            run = Printed(int(row["Active"]))
            reading.runs.append(run)
        seconds = float(row["RuntimeMS"]) / 1000
        run.last, run.name = seconds, name
        run.ranks = max(run.ranks, int(row["Active"]))
        run.put(name, 0, seconds=seconds)
        if float(row["DoneBytes"]):
            run.put(name, 0, bytes=float(row["DoneBytes"]), bytes_per_second=Quantity(float(row["DoneBytes"]) / seconds, 1e-6))
        if float(row["Entries"]):
            run.put(name, 0, operations=float(row["Entries"]), rate=Quantity(float(row["Entries"]) / seconds, 1e-6))
    if not rows:
        reading.refusal = "no rate in it"
    return reading

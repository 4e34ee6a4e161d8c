# SPDX-License-Identifier: Apache-2.0
"""IOR's standard output and JSON summary, run by run from "MPI Coordinated Test of Parallel I/O"."""

from __future__ import annotations

import json
import re
from pathlib import Path

from . import Printed, Quantity, Reading, half_digit, printed, unit_size

COLUMNS = {"bw(MiB/s)": "bw", "IOPS": "iops", "Latency(s)": "latency", "block(KiB)": "block", "xfer(KiB)": "xfer", "open(s)": "open",
           "wr/rd(s)": "move", "close(s)": "close", "total(s)": "total", "iter": "iter"}  # fmt: skip


def read(path: Path, text: str) -> Reading | None:
    del path
    if '"Command line"' in text and '"tests"' in text:
        return _document(text)
    begins = list(re.finditer(r"^.*?IOR-?(\S*?):? MPI Coordinated Test of Parallel I/O", text, re.M))
    if not begins:
        return None
    reading = Reading("ior", begins[0][1])
    for begin, after in zip(begins, [*begins[1:], None], strict=False):
        run = _run(text[begin.end() : after.start() if after else len(text)])
        if isinstance(run, str):
            reading.refusal = run
        elif run is not None:
            reading.runs.append(run)
    if reading.runs:
        reading.refusal = ""
    return reading


def _option(text: str, name: str) -> str | None:
    found = re.search(rf"^\s*{name}\s*[:=]\s*(.*\S)\s*$", text, re.M)
    return found[1] if found else None


def _run(text: str) -> Printed | str | None:
    header = re.search(r"^access\s+bw\(MiB/s\).*$", text, re.M)
    command = _option(text, "Command line(?: used)?")
    if header is None:
        return "no rate in it"
    tasks = _option(text, "tasks") or _option(text, "clients")
    run = Printed(int(tasks.split()[0]) if tasks else None, None, command)
    nodes = _option(text, "nodes")
    each = _option(text, "clients per node") or (re.search(r"\((\d+) per node", tasks or "") or [None, None])[1]
    if nodes:
        run.nodes = int(nodes)
    elif each and run.ranks and run.ranks % int(each) == 0:
        run.nodes = run.ranks // int(each)
    columns = [COLUMNS.get(word, word) for word in header[0].split()]
    transfer = unit_size(_option(text, "xfersize") or "")
    body = text[header.end() :]
    body = re.split(r"^Summary of all tests", body, maxsplit=1, flags=re.M)[0]
    seen: dict[str, int] = {}
    moved = None
    repetitions = int(_option(text, "repetitions") or 1)
    for line in body.splitlines():
        if found := re.search(r"Using actual aggregate bytes moved\s*= (\d+)", line):
            moved = int(found[1])
        words = line.split()
        if words[:1] not in (["write"], ["read"]) or len(words) < 2 or not re.match(r"[\d.]", words[1]):
            continue
        if len(words) != len(columns):
            return "truncated"
        cells = dict(zip(columns, words, strict=True))
        access = words[0]
        seen[access] = seen.get(access, 0) + 1
        repeat = seen[access] if repetitions > 1 else 0
        bandwidth = float(cells["bw"]) * 2**20
        size = transfer or float(cells["xfer"]) * 1024
        seconds = float(cells["total"])
        run.put(access, repeat, bytes_per_second=bandwidth, seconds=seconds, rate=Quantity(bandwidth / size, 1e-6))
        run.put(access, repeat, part_seconds__open=float(cells["open"]), part_seconds__close=float(cells["close"]),
                part_seconds__transfer=float(cells["move"]))  # fmt: skip
        for key in ("iops", "latency"):
            if key in cells and re.match(r"[\d.]", cells[key]):
                run.put(access, repeat, **{f"ior_{key}": printed(cells[key])})
        op = "pwrite" if access == "write" else "pread"
        run.put(access, repeat, **{f"latency__{op}__mean": None})
        slack = half_digit(cells["bw"]) + half_digit(cells["total"]) + 2e-3
        if moved is not None:
            run.put(access, repeat, bytes=float(moved), operations=Quantity(round(moved / size), 1e-6))
        else:
            run.put(access, repeat, bytes=Quantity(bandwidth * seconds, slack), operations=Quantity(bandwidth * seconds / size, slack))
        moved = None
    if not run.phases:
        return "no rate in it"
    if any(count < repetitions for count in seen.values()):
        return "truncated"
    return run


def _document(text: str) -> Reading:
    start = text.index("{")
    try:
        document, _ = json.JSONDecoder().raw_decode(text[start:])
    except json.JSONDecodeError:
        return Reading("ior", "JSON", refusal="truncated")
    reading = Reading("ior", f"{document.get('Version', '')} JSON")
    for test in document["tests"]:
        options = test.get("Options") or test["Parameters"]
        lower = {k.lower(): v for k, v in options.items()}
        run = Printed(int(lower["tasks"]), command=document["Command line"])
        if str(lower.get("nodes", "")).isdigit():
            run.nodes = int(lower["nodes"])
        elif lower.get("clients per node"):
            run.nodes = run.ranks // int(lower["clients per node"])
        results = test["Results"]
        results = [r for group in results for r in (group if isinstance(group, list) else [group])]
        many = max(sum(r["access"] == a for r in results) for a in ("write", "read")) > 1
        seen: dict[str, int] = {}
        for result in results:
            if result["access"] not in ("write", "read"):
                continue
            seen[result["access"]] = seen.get(result["access"], 0) + 1
            run.put(result["access"], seen[result["access"]] if many else 0, bytes_per_second=Quantity(result["bwMiB"] * 2**20, 1e-6),
                    seconds=Quantity(result["totalTime"], 1e-6), rate=Quantity(result["bwMiB"] * 1024 / result["xferKiB"], 1e-4))  # fmt: skip
        reading.runs.append(run)
    return reading

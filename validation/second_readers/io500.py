# SPDX-License-Identifier: Apache-2.0
"""IO500's results of 2018 to 2025, read after its own `main.c`, `phase_*.c` and, before mid-2020, its shell script.

What the sources say:

- Since mid-2020 a bandwidth is bytes over time / 2^30, and a rate is in thousands of operations a second. `procs` is
the size of MPI's world.
- The time behind a result is that of the whole phase with start and end of the tool; the rate is the tool's own.
- Before, "GB/s", later "GiB/s", is IOR's MiB/s divided by 1024: also 2^30 bytes. The packages' own IOR files confirm
it.
- find's rate is `total-files` over the runtime in find.csv.
- Phases with an empty bracket are not scored; `timestamp` measures nothing.
"""

from __future__ import annotations

import csv
import re
from datetime import datetime
from pathlib import Path

from . import Printed, Quantity, Reading, figure, ior, mdtest

END = r"\s+: time\s+(\S+) seconds(.*)$"
NEW = re.compile(rf"^\[(?:RESULT|\s+)(?:-invalid)?\]\s+([A-Za-z][\w-]*)\s+(\S+) (GiB/s|kIOPS){END}", re.M)
OLD = re.compile(rf"^\[RESULT(?:-invalid)?\] (?:BW|IOPS)\s+phase \d+\s+(\w+)\s+(\S+) (Gi?B/s|kiops){END}", re.M)
SECTION = re.compile(r"^\[([\w-]+)\]\s*$")
SCALE = {"GiB/s": 2.0**30, "GB/s": 2.0**30, "kIOPS": 1e3, "kiops": 1e3}
OPERATION = {"write": "file-create", "stat": "file-stat", "read": "file-read", "delete": "file-remove"}
COLUMN = {
    "write": "time-File creation",
    "stat": "time-File stat",
    "read": "time-File read",
    "delete": "time-File removal",
}


def read(path: Path, text: str) -> Reading | None:
    if NEW.search(text) or OLD.search(text):
        return of_summary(text)
    if path.suffix == ".ini" or "[ior-easy-write]" not in text or "t_start" not in text and "score " not in text:
        return None
    return of_result(text)


def of_summary(text: str) -> Reading:
    old = not NEW.search(text)
    run = Printed()
    for name, value, unit, seconds, end in (OLD if old else NEW).findall(text):
        if name == "timestamp" or not float(value):
            continue
        put_rate(run, name.replace("_", "-"), figure(value, SCALE[unit]), unit[0] == "G")
        run.put(name.replace("_", "-"), 0, seconds=figure(seconds))
        if "INVALID" in end:
            run.put(name.replace("_", "-"), 0, invalid=1.0)
    runs = [run] if run.phases else []
    return Reading("io500", "2018-2020" if old else "2020-", runs, "" if runs else "no rate in it")


def put_rate(run: Printed, name: str, value: Quantity, volume: bool) -> None:
    if volume:
        run.put(name, 0, bytes_per_second=value)
    else:
        run.put(name, 0, rate=value)


def of_result(text: str) -> Reading:
    sections = sections_of(text)
    run = Printed(started=first_start(sections))
    run.ranks = int(sections.get("run", sections.get("", {})).get("procs", 0)) or None
    for name, known in sections.items():
        if float(known.get("score", "0").split()[0]):
            put_rate(run, name, figure(known["score"].split()[0], 2.0**30 if name[0] == "i" else 1e3), name[0] == "i")
            if "t_delta" in known:
                run.put(name, 0, seconds=figure(known["t_delta"]))
            put_start(run, name, known, run.started)
            put_transfer(run, name, known.get("exe", ""))
            put_found(run, name, known)
            if "INVALID" in known:
                run.put(name, 0, invalid=1.0)
    return Reading("io500", "2020- result.txt", [run] if run.phases else [], "" if run.phases else "no rate in it")


def sections_of(text: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {"": {}}
    name = ""
    for line in text.splitlines():
        if hit := SECTION.match(line):
            name = hit[1]
            found.setdefault(name, {})
        elif line.startswith("; ERROR INVALID"):
            found[name]["INVALID"] = line
        elif "=" in line and not line.startswith(";"):
            key, _, value = line.partition("=")
            found[name].setdefault(key.strip(), value.strip())
    return found


def first_start(sections: dict[str, dict[str, str]]) -> str | None:
    starts = [known["t_start"] for name, known in sections.items() if known.get("t_start")]
    return starts[0].replace(" ", "T") if starts else None


def put_start(run: Printed, name: str, known: dict[str, str], first: str | None) -> None:
    if first and known.get("t_start"):
        after = datetime.fromisoformat(known["t_start"]) - datetime.fromisoformat(first)
        run.put(name, 0, start_seconds=after.total_seconds())


def put_transfer(run: Printed, name: str, command: str) -> None:
    if name.startswith("ior") and (hit := re.findall(r" -t[ =]?(\d+)([kmgKMG]?)", command)):
        number, unit = hit[-1]
        run.put(name, 0, transfer_size=float(number) * {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}[unit.lower()])
        bandwidth = run.phases[name, 0]["bytes_per_second"]
        run.put(name, 0, rate=ior.ratio(bandwidth, run.phases[name, 0]["transfer_size"]))


def put_found(run: Printed, name: str, known: dict[str, str]) -> None:
    if "total-files" in known:
        run.put(name, 0, counted__operations=float(known["total-files"]))


def read_directory(directory: Path) -> Reading | None:
    """A package: its summary, what result.txt adds, and the outputs of the phases beside them."""
    files = [p for p in directory.iterdir() if p.is_file() and not p.name.startswith("._")]
    texts = {p.name: p.read_text(errors="replace") for p in files}
    summary = of_summary(texts["result_summary.txt"]) if texts.get("result_summary.txt", "").strip() else None
    result = of_result(texts["result.txt"]) if texts.get("result.txt", "").strip() else None
    base = summary if summary and summary.runs else result
    if base is None or not base.runs:
        return base
    run = base.runs[0]
    if result and result.runs and base is not result:
        run.ranks, run.started = result.runs[0].ranks, result.runs[0].started
        for key, known in result.runs[0].phases.items():
            if key in run.phases:
                run.phases[key] = {**known, **run.phases[key]}
    for name, _ in list(run.phases):
        add_phase_files(run, name, texts)
    return Reading("io500", base.version.removesuffix(" result.txt"), base.runs)


def add_phase_files(run: Printed, name: str, texts: dict[str, str]) -> None:
    text = texts.get(f"{name}.txt") or texts.get(f"{name.replace('-', '_')}.txt") or ""
    tool, verb = name.split("-")[0], name.split("-")[-1]
    if tool in ("ior", "mdtest") and text:
        reading = (ior if tool == "ior" else mdtest).read(Path(name), text)
        if reading and reading.runs:
            add_output(run, name, reading.runs[0], verb if tool == "ior" else OPERATION[verb])
        elif run.ranks is None and tool == "mdtest" and (blocks := mdtest.blocks_of(text)):
            run.ranks, run.nodes = blocks[0].ranks, blocks[0].nodes  # its summary was cut off
    table = texts.get(f"{name}.csv", "")
    if tool == "find" and (hit := re.match(r"runtime: (\S+) rate: ", table)):
        run.put(name, 0, counted__seconds=figure(hit[1]))
    elif tool in ("ior", "mdtest") and table:
        column = "runtime-with-openclose" if tool == "ior" else COLUMN[verb]
        rows = [row for row in csv.DictReader(table.splitlines()) if row["rank"].isdigit() and row.get(column)]
        if len(rows) == run.ranks:
            times = sorted((row[column] for row in rows), key=float)
            run.put(name, 0, rank_seconds__min=figure(times[0]), rank_seconds__max=figure(times[-1]))


def add_output(run: Printed, name: str, part: Printed, phase: str) -> None:
    run.ranks = run.ranks or part.ranks
    run.nodes = run.nodes or part.nodes
    found = part.phases.get((phase, 0))
    if not found:
        return
    seconds, operations = found["seconds"], found["operations"]
    if seconds.value is not None and operations.value is not None:
        run.put(name, 0, counted__operations=operations, counted__seconds=seconds)
    if "bytes" in found:
        run.put(name, 0, counted__bytes=found["bytes"], operations=operations)
        if "transfer_size" not in run.phases[name, 0]:
            run.put(name, 0, transfer_size=found["transfer_size"])
            run.put(name, 0, rate=ior.ratio(run.phases[name, 0]["bytes_per_second"], found["transfer_size"]))

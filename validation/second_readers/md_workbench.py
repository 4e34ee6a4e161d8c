# SPDX-License-Identifier: Apache-2.0
"""md-workbench: the lines of phases (since late 2016) and the blocks of MD-REAL-IO before them."""

from __future__ import annotations

import re
from pathlib import Path

from . import Printed, Quantity, Reading, half_digit


def read(path: Path, text: str) -> Reading | None:
    del path
    if "MD-REAL-IO total files" in text:
        return _blocks(text)
    lines = re.findall(r"^(precreate|benchmark|cleanup) (process max:.*|\d.*)$", text, re.M)
    if lines:
        return _lines(text, lines)
    if re.match(r"(MD-Workbench|MD-REAL-IO) total objects", text):
        return Reading("md-workbench", refusal="truncated")
    return None


def _blocks(text: str) -> Reading:
    version = re.search(r"total files: \S+ \(version: ([^)]*)\)", text)[1].strip()
    reading = Reading("md-workbench", "MD-REAL-IO 2016")
    for block in re.split(r"^(?=MD-REAL-IO total files)", text, flags=re.M):
        total = re.search(r"precreate: ([\d.]+)s benchmark: ([\d.]+)s cleanup: ([\d.]+)s", block)
        counts = re.search(r"dir: (\d+) files: (\d+) /Bench create: (\d+) access: (\d+) /Clean files: (\d+) dirs: (\d+)", block)
        if not total:
            if "MD-REAL-IO" in block:
                return Reading("md-workbench", "MD-REAL-IO 2016", refusal="truncated")
            continue
        run = Printed()
        ranks = re.findall(r"^(\d+)\s+([\d.]+)s\s+([\d.]+)s\s+([\d.]+)s\s", block, re.M)
        run.ranks = len(ranks) or None
        dirs, files, created, accessed, cleaned, removed = map(int, counts.groups())
        for name, seconds, operations in (("precreate", total[1], dirs + files), ("cleanup", total[3], cleaned + removed)):
            run.put(name, 0, seconds=float(seconds), operations=float(operations), rate=Quantity(operations / float(seconds), 2e-3))
        run.put("benchmark", 1, seconds=float(total[2]), latency__create__count=float(created), latency__read__count=float(accessed))
        for i, name in enumerate(("precreate", "benchmark", "cleanup"), start=1):
            if ranks:
                run.put(name, name == "benchmark", rank_seconds__max=max(float(r[i]) for r in ranks),
                        rank_seconds__min=min(float(r[i]) for r in ranks))  # fmt: skip
        reading.runs.append(run)
    del version
    return reading


def _lines(text: str, lines: list[tuple[str, str]]) -> Reading:
    header = re.search(r"total objects: \d+.*\(version: ([^)]*)\)", text)
    newer = "process max:" in lines[0][1]
    reading = Reading("md-workbench", "2017-" if newer else "2016-17")
    if header and not re.search(r"^Total runtime:", text, re.M):
        reading.refusal = "truncated"
        return reading
    run, repeat = Printed(), 0
    ranks = {int(n) for n in re.findall(r"^(\d+): (?:precreate|benchmark|cleanup) ", text, re.M)}
    if ranks:
        run.ranks = len(ranks)
    read_only = bool(re.search(r"^\s+read-only", text, re.M)) or "--read-only" in text
    for name, rest in lines:
        repeat += name == "benchmark"
        seconds = re.search(r"([\d.]+)s", rest)[1]
        objects = int((re.search(r"objects: ?(\d+)", rest) or re.search(r"(\d+) obj\b(?!/s)", rest))[1])
        rate = re.search(r"([\d.]+) obj/s", rest)[1]
        errors = re.search(r"\((\d+) errs", rest)
        factor = 1
        if name == "benchmark":
            factor = 2 if read_only else 4
        sets = re.search(r"dsets: ?(\d+)|(\d+) dsets?\b(?!/s)", rest)
        directories = int(sets[1] or sets[2]) if sets and name != "benchmark" else 0
        slack = half_digit(seconds) + half_digit(rate)
        number = repeat if name == "benchmark" else 0
        run.put(name, number, operations=float(objects * factor + directories), seconds=Quantity(float(seconds), slack))
        if errors:
            run.put(name, number, errors=float(errors[1]))
        if float(rate):
            run.put(name, number, rate=Quantity((objects * factor + directories) * float(rate) / objects, slack))
        own = re.compile(rf"^(\d+): {name} .*$", re.M)
        del own
        for op, inside in re.findall(r"(read|stat|create|delete)\(([^)]*)\)", rest):
            ours = {"delete": "unlink"}.get(op, op)
            for key, value in zip(("min", "q25", "q50", "q75", "q90", "q99", "max"), inside.split(","), strict=False):
                run.put(name, number, **{f"latency__{ours}__{key}": float(value.strip().rstrip("s"))})
    reading.runs.append(run)
    return reading

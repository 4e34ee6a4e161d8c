# SPDX-License-Identifier: Apache-2.0
"""mdtest's standard output, block by block from "-- started at"."""

from __future__ import annotations

import re
from pathlib import Path

from . import Printed, Quantity, Reading

NAMES = {"creation": "create", "stat": "stat", "read": "read", "removal": "remove", "rename": "rename"}
ROW = r"^\s*(Directory|File|Tree) (creation|stat|read|removal|rename)\s*:?\s+(.*)$"


def read(path: Path, text: str) -> Reading | None:
    del path
    versions = re.findall(r"^.*?mdtest-(\S+) was launched with", text, re.M)
    if not versions:
        return None
    reading = Reading("mdtest", versions[0])
    starts = [m.start() for m in re.finditer(r"^.*mdtest-\S+ was launched with", text, re.M)]
    for begin, end in zip(starts, [*starts[1:], len(text)], strict=True):
        before = text[: begin].rsplit("-- started at ", 1)
        stamp = before[1][:19] if len(before) == 2 else ""
        _block(reading, text[begin:end], stamp)
    if not any(run.phases for run in reading.runs):
        reading.refusal = "no rate in it"
    return reading


def _block(reading: Reading, text: str, stamp: str) -> None:
    total, nodes = map(int, re.search(r"launched with (\d+) total task\(s\) on (\d+) node", text).groups())
    finished = re.search(r"-- finished at (\S+ \S+) --", text)
    if finished is None:
        reading.refusal = reading.refusal or "truncated"
        return
    command = re.search(r"^Command line used: (.*)$", text, re.M)
    parts = list(re.finditer(r"^(?:V-\d: )?(\d+) tasks, (\d+) (\w+)", text, re.M))
    for part, after in zip(parts, [*parts[1:], None], strict=False):
        body = text[part.end() : after.start() if after else len(text)]
        run = Printed(int(part[1]), nodes if int(part[1]) == total else None, command[1].strip() if command else None)
        if stamp:
            run.started = f"{stamp[6:10]}-{stamp[:2]}-{stamp[3:5]}T{stamp[11:19]}"
        _summary(run, body, int(part[1]), int(part[2]), part[3] == "file", command[1] if command else "")
        reading.runs.append(run)


def _rows(body: str, title: str) -> dict[tuple[str, str], list[str]]:
    found = re.search(rf"^SUMMARY{title}.*$\n((?:.*\n?)*)", body, re.M)
    if not found:
        return {}
    table = re.split(r"^\s*$|^SUMMARY|^--", found[1], maxsplit=1, flags=re.M)[0]
    return {(m[1], m[2]): m[3].split() for m in re.finditer(ROW, table, re.M)}


def _summary(run: Printed, body: str, tasks: int, files: int, shared: bool, command: str) -> None:
    iterations = int(re.search(r"\(of (\d+) iterations\)", body)[1]) if "iterations)" in body else 1
    rates = _rows(body, r" rate") or _rows(body, r"(?=:)")
    times = _rows(body, " time")
    longest = re.search(r"Continue stonewall hit min: \d+ max: (\d+)", body)
    singles: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for m in re.finditer(r"^(?:V-1: )?main:\s+(Directory|File|Tree) (\w+)\s*:\s+([\d.]+) sec,\s+([\d.]+) ops/sec", body, re.M):
        singles.setdefault((m[1], m[2]), []).append((float(m[3]), float(m[4])))
    walled = bool(re.search(r"['\"\s]-[WxY]*[Wx]\b|stonewall", command))
    for (what, op), values in rates.items():
        rate = float(values[-2])
        if not rate > 0:
            continue
        name = f"{what.lower()}-{NAMES[op]}"
        if len(singles.get((what, op), [])) == iterations:
            for number, (seconds, single) in enumerate(singles[what, op], start=1):
                run.put(name, number if iterations > 1 else 0, rate=single, seconds=Quantity(seconds, 0.0006 / seconds if seconds else 1))
                if not walled and what != "Tree" and not shared:
                    run.put(name, number if iterations > 1 else 0, operations=float(files))
            continue
        seconds, operations, slack = None, None, 1e-3
        if (what, op) in times:
            seconds = float(times[what, op][-2])
            operations = rate * seconds
            slack = 0.0005 / seconds if seconds else 1
        created = (what, op) == ("File", "creation")
        if longest and created:
            operations, slack = int(longest[1]) * tasks, 1e-9
            seconds = seconds or operations / rate
        elif seconds is None and iterations == 1 and not walled and what != "Tree" and not shared:
            operations, slack = files, 1e-9
            seconds = files / rate
        if iterations > 1:
            operations = None
            run.put(name, 0, rate_over_repeats__min=float(values[-3]), rate_over_repeats__max=float(values[-4]),
                    rate_over_repeats__standard_deviation=float(values[-1]))  # fmt: skip
        known = slack <= 1e-3 or (operations is not None and operations * slack < 0.5)
        run.put(name, 0, rate=rate, seconds=Quantity(seconds or None, 1e-6),
                operations=Quantity(round(operations) if operations and known else None, slack))  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""md-workbench's standard output, of MD-REAL-IO (2016) to the last version, read after its own `md-workbench.c`.

What the source says:

- A phase's time is the longest over the processes; rates are counts over it.
- A benchmark iteration makes four calls for each object (write, stat, read, delete), two when read-only; precreate and
  cleanup count objects and data sets.
- Total objects are processes x data sets x (objects x iterations + precreated ones).
- Latencies in parentheses are minimum, quartiles, 90 %, 99 % and maximum.
"""

from __future__ import annotations

import re
from pathlib import Path

from . import Printed, Quantity, Reading, figure

HEAD = re.compile(r"^(MD-\S+) total (files|objects): (\d+|zu)(?:.*?\(version: (\S+).*?\))?(?: time: (\S+ \S+))?", re.M)
PHASE = re.compile(r"^(?:(\d+): )?(precreate|benchmark|cleanup) ((?:process )?.*\(\d+ errs.*)$")
SPREAD = re.compile(r"\b(read|stat|create|delete)\(((?:[\d.e+-]+s(?:, )?){7})\)")
KINDS = {"read": "read", "stat": "stat", "create": "create", "delete": "unlink"}
SHARES = ("min", "q25", "q50", "q75", "q90", "q99", "max")
MIB = 2.0**20


def read(path: Path, text: str) -> Reading | None:
    heads = list(HEAD.finditer(text))
    if not heads or not re.search(r"^(?:MD-REAL-IO|MD-Workbench) total", text, re.M):
        return None
    runs, version = [], ""
    for head, after in zip(heads, [*heads[1:], None], strict=False):
        body = text[head.end() : after.start() if after else len(text)]
        if head[2] == "files":
            run, version = of_files(body), version or "MD-REAL-IO 2016"
        else:
            run, kind = of_objects(head, body)
            version = version or kind
            args = re.findall(r"^Args: (.*)$", text[: head.start()], re.M)
            run.command = args[-1] if args and kind == "2017-" else None
        if run.phases and "Total runtime" in body:
            runs.append(run)
    return Reading("md-workbench", version, runs, "" if runs else "truncated")


# ---- August 2016


def of_files(body: str) -> Printed:
    run = Printed()
    times = re.search(r"Total runtime: .*?precreate: ([\d.]+)s benchmark: ([\d.]+)s cleanup: ([\d.]+)s", body)
    counts = re.search(
        r"/Pre dir: (\d+) files: (\d+) /Bench create: (\d+) access: (\d+) /Clean files: (\d+) dirs: (\d+)", body
    )
    rates = re.search(
        r"^Precreate: ([\d.]+) elements/s.*? ([\d.]+) MiB/s.*\nBenchmark: ([\d.]+) iters/s ([\d.]+) MiB/s.*\n"
        r"Delete:\s+([\d.]+) elements/s", body, re.M,
    )  # fmt: skip
    if not (times and counts and rates):
        return run
    made, files, created, seen, deleted, removed = map(int, counts.groups())
    run.put("precreate", 0, seconds=figure(times[1]), operations=made + files, rate=figure(rates[1]))
    run.put("precreate", 0, bytes_per_second=figure(rates[2], MIB))
    run.put("precreate", 0, latency__mkdir__count=made, latency__create__count=files)
    run.put("benchmark", 1, seconds=figure(times[2]), operations=2 * created + 2 * seen, rate=figure(rates[3], 4))
    run.put("benchmark", 1, bytes_per_second=figure(rates[4], MIB))
    run.put("benchmark", 1, latency__create__count=created, latency__unlink__count=created)
    run.put("benchmark", 1, latency__stat__count=seen, latency__read__count=seen)
    run.put("cleanup", 0, seconds=figure(times[3]), operations=deleted + removed, rate=figure(rates[5]))
    run.put("cleanup", 0, latency__unlink__count=deleted, latency__rmdir__count=removed)
    ranks = re.findall(r"^(\d+)\t([\d.]+)s\s+([\d.]+)s\s+([\d.]+)s\s+(.*)$", body, re.M)
    if [int(row[0]) for row in ranks] == list(range(len(ranks))) and ranks:
        run.ranks = len(ranks)
        failed = [[int(n) for n in re.findall(r"\((\d+)\)", row[4])] for row in ranks]
        columns = (("precreate", 0, (0, 1)), ("benchmark", 1, (2, 3)), ("cleanup", 0, (4,)))
        for column, (phase, repeat, which) in enumerate(columns, start=1):
            ends = sorted((row[column] for row in ranks), key=float)
            run.put(phase, repeat, rank_seconds__min=figure(ends[0]), rank_seconds__max=figure(ends[-1]))
            if all(len(one) == 5 for one in failed):
                run.put(phase, repeat, errors=sum(one[i] for one in failed for i in which))
    return run


# ---- since then


def of_objects(head: re.Match[str], body: str) -> tuple[Printed, str]:
    options = dict(re.findall(r"^\t([\w-]+)=(\S*)", body, re.M))
    kind = "2017-" if "process max:" in body else "2016-17"
    run = Printed(started=head[5].replace(" ", "T") if head[5] else None)
    whole = [int(options.get(key, 0)) for key in ("data-sets", "obj-per-proc", "iterations", "precreate-per-set")]
    each = whole[0] * (whole[1] * whole[2] + whole[3])
    if each and int(head[3]) % each == 0:
        run.ranks = int(head[3]) // each
    calls = 2 if re.search(r"^\tread-only", body, re.M) else 4
    repeats, ends = 0, {}
    for line in body.splitlines():
        hit = PHASE.match(line)
        if not hit:
            continue
        if hit[1] is None:
            repeats += hit[2] == "benchmark"
            put_phase(run, hit[2], repeats if hit[2] == "benchmark" else 0, hit[3], calls)
        else:
            key = (hit[2], repeats if hit[2] == "benchmark" else 0)
            ends.setdefault(key, []).append(seconds_of(hit[3]))
    for key, seconds in ends.items():
        if len(seconds) == run.ranks and key in run.phases:
            least, most = min(seconds, key=lambda q: q.value), max(seconds, key=lambda q: q.value)
            run.put(*key, rank_seconds__min=least, rank_seconds__max=most)
    return run, kind


def number(pattern: str, text: str) -> str | None:
    hit = re.search(pattern, text)
    return hit[1] if hit else None


def objects_of(text: str) -> int:
    return int(number(r"objects:(\d+)", text) or number(r"(?<![\d.])(\d+) obj (?!/s)", text) or 0)


def seconds_of(text: str) -> Quantity:
    """The time as printed, or objects over their rate where that has more digits."""
    known = [figure(number(r"^(?:process max:)?([\d.]+)s", text) or "0")]
    rate = number(r"([\d.]+) obj/s", text)
    if rate and float(rate):
        known.append(Quantity(objects_of(text) / float(rate), figure(rate).relative))
    return min(known, key=lambda q: q.relative)


def put_phase(run: Printed, phase: str, repeat: int, text: str, calls: int) -> None:
    objects = objects_of(text)
    sets = int(number(r"dsets: (\d+)", text) or number(r"(\d+) dset\b", text) or 0)
    seconds, volume = seconds_of(text), number(r"([\d.]+) Mi[bB]/s", text)
    run.put(phase, repeat, errors=int(number(r"\((\d+) errs", text) or 0), seconds=seconds)
    if volume:
        run.put(phase, repeat, bytes_per_second=figure(volume, MIB))
    if phase == "benchmark":
        operations = calls * objects
        run.put(phase, repeat, latency__stat__count=objects, latency__read__count=objects)
        if calls == 4:
            run.put(phase, repeat, latency__create__count=objects, latency__unlink__count=objects)
    else:
        operations = objects + sets
        one, other = ("create", "mkdir") if phase == "precreate" else ("unlink", "rmdir")
        run.put(phase, repeat, **{f"latency__{one}__count": objects, f"latency__{other}__count": sets})
    calls_rate = number(r"([\d.]+) iops/s", text)
    derived = Quantity(operations / seconds.value, seconds.relative, derived=True) if seconds.value else Quantity(None)
    run.put(phase, repeat, operations=operations, rate=figure(calls_rate) if calls_rate else derived)
    if balance := number(r"balance:([\d.]+)", text):
        run.put(phase, repeat, balance=figure(balance, 0.01))
    for kind, values in SPREAD.findall(text):
        for share, value in zip(SHARES, values.replace("s", "").split(", "), strict=True):
            run.put(phase, repeat, **{f"latency__{KINDS[kind]}__{share}": figure(value)})

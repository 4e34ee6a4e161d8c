# SPDX-License-Identifier: Apache-2.0
"""IOR's standard output (3.1 to 4.1) and its JSON, read after the tool's own `ior-output.c` and `ior.c`.

What the source says:

- A row is one repetition. Its bandwidth is bytes moved over the total time, in MiB/s of 2^20 bytes.
- Columns have six digits below 1, two below 3600, none beyond; a negative time prints as "-".
- Bytes moved are tasks x segments x block size, unless "Using actual aggregate bytes moved" precedes the row.
- The closing summary is printed at verbosity 0 and above; IO500 switches it off, so its absence says nothing.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from . import Printed, Quantity, Reading, figure, rounding

LAUNCH = re.compile(r"^(?:.*?)IOR-(\S+): MPI Coordinated Test of Parallel I/O")
OPTION = re.compile(r"^\s*([A-Za-z][A-Za-z# ]*?)\s*[:=] ?\s*(.*?)\s*$")
TEST = re.compile(r"^(?:TestID\s*: |Test )(\d+)(?: started: (.*))?")
MOVED = re.compile(r"Using actual aggregate bytes moved = (\d+)")
ROW = re.compile(r"^(write|read) +(?=[\d.]+ )")
SIZES = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
MIB, KIB = 2.0**20, 2.0**10


def read(path: Path, text: str) -> Reading | None:
    if text.lstrip().startswith("{") and '"Command line"' in text:
        return read_json(text)
    tests, version = tests_of(text)
    if not version:
        return None
    runs, cut = [], False
    for test in tests:
        repetitions = int(test["options"].get("repetitions", "1"))
        rows = [op for op, _, _ in test["rows"]]
        if not rows or any(rows.count(op) < repetitions for op in set(rows)):
            cut = True
            continue
        runs.append(printed_run(test))
    return Reading("ior", version, runs, "" if runs else "truncated" if cut else "no rate in it")


def tests_of(text: str) -> tuple[list[dict[str, Any]], str]:
    """Tests in the order of the file: options, rows as (access, cells by column, bytes moved), lines of the summary."""
    tests: list[dict[str, Any]] = []
    version, columns, moved = "", [], None
    for line in text.splitlines():
        if hit := LAUNCH.match(line):
            version = version or hit[1]
            tests.append({"options": {}, "rows": [], "closing": {}, "seen": False})
        elif not tests:
            continue
        elif hit := TEST.match(line):
            if tests[-1]["seen"]:  # a script has several tests; each has options of its own
                kept = {k: v for k, v in tests[-1]["options"].items() if k.startswith(("Command line", "Began"))}
                tests.append({"options": kept, "rows": [], "closing": {}, "seen": False})
            tests[-1]["seen"] = True
        elif line.startswith("access    ") and "bw(MiB/s)" in line:
            columns = re.findall(r"\S+", line)
        elif line.startswith("Operation ") and "Mean(OPs)" in line:
            tests[-1]["closing columns"] = line.split()
        elif hit := MOVED.search(line):
            moved = int(hit[1])
        elif hit := ROW.match(line):
            cells = line.split()
            if len(cells) == len(columns):
                tests[-1]["rows"].append((hit[1], dict(zip(columns, cells, strict=True)), moved))
                moved = None
            elif len(cells) > 20:
                tests[-1]["closing"][hit[1]] = dict(zip(tests[-1].get("closing columns", []), cells, strict=False))
        elif (hit := OPTION.match(line)) and hit[1] not in tests[-1]["options"]:
            tests[-1]["options"][hit[1]] = hit[2]
    return tests, version


def size(text: str) -> Quantity | None:
    """Bytes of "4 MiB" or "47008 bytes"."""
    hit = re.fullmatch(r"([\d.]+) (bytes|[KMGT]iB)", text.strip())
    if not hit:
        return None
    whole = "." not in hit[1]
    return Quantity(float(hit[1]) * SIZES[hit[2]], 1e-12 if whole else rounding(hit[1]))


def printed_run(test: dict[str, Any]) -> Printed:
    options = test["options"]
    clients = re.match(r"(\d+)(?: \((\d+) per node\))?", options.get("tasks") or options.get("clients") or "")
    ranks = int(clients[1]) if clients else None
    each = (clients[2] if clients else None) or options.get("clients per node")
    nodes = int(options["nodes"]) if "nodes" in options else -(-ranks // int(each)) if ranks and each else None
    command = options.get("Command line") or options.get("Command line used")
    run = Printed(ranks, nodes, command, moment(options.get("StartTime") or options.get("Began")))
    transfer = size(options.get("xfersize", ""))
    seen: dict[str, int] = {}
    first = int(max((sum(row[0] == access for row in test["rows"]) for access in ("write", "read")), default=1) > 1)
    for access, cells, moved in test["rows"]:
        closing = test["closing"].get(access, {})
        volume = Quantity(moved) if moved is not None else expected_bytes(options, closing, ranks)
        repeat = seen.get(access, first)
        seen[access] = repeat + 1
        put_row(run, access, repeat, cells, transfer or figure(cells["xfer(KiB)"], KIB), volume)
    return run


def expected_bytes(options: dict[str, str], closing: dict[str, str], ranks: int | None) -> Quantity:
    block = size(options.get("blocksize", ""))
    if closing.get("blksiz"):
        block = Quantity(int(closing["blksiz"]))
    segments = options.get("segments") or closing.get("segcnt")
    candidates = []
    if block and segments and ranks:
        candidates.append(Quantity(block.value * int(segments) * ranks, block.relative))  # type: ignore[operator]
    if (whole := size(options.get("aggregate filesize", ""))) is not None:
        candidates.append(whole)
    if closing.get("aggsize"):
        candidates.append(Quantity(int(closing["aggsize"])))
    if closing.get("aggs(MiB)"):
        candidates.append(figure(closing["aggs(MiB)"], MIB))
    return min(candidates, key=lambda q: q.relative, default=Quantity(None))


def put_row(
    run: Printed, access: str, repeat: int, cells: dict[str, str], transfer: Quantity, volume: Quantity
) -> None:
    bandwidth = figure(cells["bw(MiB/s)"], MIB)
    run.put(access, repeat, bytes_per_second=bandwidth, transfer_size=transfer, bytes=volume)
    run.put(access, repeat, seconds=figure(cells["total(s)"]))
    run.put(access, repeat, rate=ratio(bandwidth, transfer), operations=ratio(volume, transfer))
    for key, column in (("open", "open(s)"), ("transfer", "wr/rd(s)"), ("close", "close(s)")):
        if cells[column] != "-":
            run.put(access, repeat, **{f"part_seconds__{key}": figure(cells[column])})
    if "IOPS" in cells:
        run.put(access, repeat, ior_iops=figure(cells["IOPS"]), ior_latency=figure(cells["Latency(s)"]))


def ratio(above: Quantity, below: Quantity) -> Quantity:
    if above.value is None or not below.value:
        return Quantity(None)
    return Quantity(above.value / below.value, above.relative + below.relative, derived=True)


def moment(text: str | None) -> str | None:
    try:
        return datetime.strptime(" ".join((text or "").split()), "%a %b %d %H:%M:%S %Y").isoformat()
    except ValueError:
        return None


def read_json(text: str) -> Reading | None:
    try:
        whole = json.loads(text)
    except ValueError:
        return Reading("ior", "JSON", refusal="truncated")
    runs = []
    for test in whole.get("tests", []):
        given = {**test.get("Parameters", {}), **test.get("Options", {})}
        ranks = int(given["tasks"])
        nodes = int(given.get("nodes") or 0) or -(-ranks // int(given["clients per node"]))
        run = Printed(ranks, nodes, whole["Command line"], moment(test.get("StartTime") or whole.get("Began")))
        rows = [row for part in test["Results"] for row in (part if isinstance(part, list) else [part])]
        seen: dict[str, int] = {}
        first = int(max(sum(row["access"] == access for row in rows) for access in ("write", "read")) > 1)
        for row in rows:
            access = row["access"]
            if access not in ("write", "read"):
                continue
            repeat = seen.get(access, first)
            seen[access] = repeat + 1
            transfer = Quantity(float(given["transferSize"])) if "transferSize" in given else near(row["xferKiB"], KIB)
            bandwidth = near(row["bwMiB"], MIB)
            run.put(access, repeat, bytes_per_second=bandwidth, transfer_size=transfer, rate=ratio(bandwidth, transfer))
            run.put(access, repeat, seconds=near(row["totalTime"]), part_seconds__open=near(row["openTime"]))
            run.put(access, repeat, part_seconds__transfer=near(row["wrRdTime"]))
            run.put(access, repeat, part_seconds__close=near(row["closeTime"]))
            if "iops" in row:
                run.put(access, repeat, ior_iops=near(row["iops"]), ior_latency=near(row["latency"]))
        runs.append(run)
    runs = [run for run in runs if run.phases]
    return Reading("ior", "JSON", runs, "" if runs else "no rate in it")


def near(value: float, scale: float = 1.0) -> Quantity:
    """A number of IOR's JSON, which has four decimals."""
    return Quantity(value * scale, 0.00005001 / value if value else 1.0)

# SPDX-License-Identifier: Apache-2.0
"""mdtest's standard output (1.9.3, and those of IOR 3 and 4), read after the tool's own `mdtest.c`.

What the source says and the labels do not:

- The table "SUMMARY time" holds seconds of a phase, between barriers, whatever unit stands in its title.
- A rate is items of a rank times ranks over that time. Items are those requested, unless a stonewall changed them:
  the ranks that were behind when it was hit go on to the count of the fastest ("Continue stonewall hit ... max").
- A call without the create phase and with a status file (`-x`) takes its items from that file and does not print them.
- 3.3 prints extremes and mean over the ranks, whose clocks are read after the barrier; they differ by less than a per
mille.
"""

from __future__ import annotations

import re
from pathlib import Path

from . import Printed, Quantity, Reading, rounding

FIGURE = r"[-+.\dea]+|nan|-nan|inf|NA"
LAUNCH = re.compile(r"mdtest-(\S+) was launched with (\d+) total task\(s\) on (\d+) node")
START = re.compile(r"-- started at (\d\d)/(\d\d)/(\d{4}) (\d\d:\d\d:\d\d) --")
COMMAND = re.compile(r"Command line used: (.*)")
COUNT = re.compile(r"(\d+) tasks?, (\d+) (?:files|directories)")
STONEWALL = re.compile(r"Continue stonewall hit min: \d+ max: (\d+)")
TITLE = re.compile(r"SUMMARY(?: (rate|time))?(?: \(in [^)]*\))?: \(of (\d+) iterations\)")
ROW = re.compile(rf"\s+((?:Directory|File|Tree) [a-z]+)\s*:?((?:\s+(?:{FIGURE}))+)\s*$")
SINGLE = re.compile(r"\s*(?:V-1:)?.*?((?:Directory|File|Tree) [a-z]+)\s*:\s*([\d.]+) sec, +([\d.]+) ops/sec")
VERBS = {"creation": "create", "stat": "stat", "read": "read", "removal": "remove", "rename": "rename"}


class Block:
    """One launch, or within it one number of tasks."""

    def __init__(self, version: str, ranks: int, nodes: int) -> None:
        self.version, self.ranks, self.nodes = version, ranks, nodes
        self.started: str | None = None
        self.command = ""
        self.requested: int | None = None
        self.longest: int | None = None
        self.no_status = False
        self.iterations = 1
        self.tables: dict[str, dict[str, list[str]]] = {}
        self.singles: list[tuple[str, str, str]] = []

    def options(self) -> list[str]:
        return [word.strip("'\"") for word in self.command.split()]

    def asks(self, letter: str) -> bool:
        short = [word for word in self.options()[1:] if not word.startswith("--")]
        return any(re.fullmatch(rf"-[A-Za-z]*{letter}.*", word) for word in short)

    def table_cut(self) -> bool:
        return not self.tables or any("Tree removal" not in table for table in self.tables.values())


def blocks_of(text: str) -> list[Block]:
    found: list[Block] = []
    started: str | None = None
    table: dict[str, list[str]] | None = None
    for line in text.splitlines():
        if hit := START.search(line):
            started = f"{hit[3]}-{hit[1]}-{hit[2]}T{hit[4]}"
        elif hit := LAUNCH.search(line):
            found.append(Block(hit[1], int(hit[2]), int(hit[3])))
            found[-1].started, started, table = started, None, None
        elif not found:
            continue
        elif hit := COMMAND.match(line):
            found[-1].command = hit[1]
        elif hit := COUNT.match(line):
            if found[-1].tables:  # the next number of tasks of -f, -l and -s
                before = found[-1]
                found.append(Block(before.version, int(hit[1]), before.nodes))
                found[-1].command, found[-1].started = before.command, before.started
            found[-1].ranks, found[-1].requested = int(hit[1]), int(hit[2])
        elif hit := STONEWALL.match(line):
            found[-1].longest = int(hit[1])
        elif "could not read stonewall status file" in line.lower():
            found[-1].no_status = True
        elif hit := TITLE.match(line):
            title = hit[1] or ("time" if found[-1].asks("Z") else "rate")
            table = found[-1].tables.setdefault(title, {})
            found[-1].iterations = int(hit[2])
        elif line.startswith("-- finished"):
            table = None
        elif table is not None and (hit := ROW.match(line)):
            table[hit[1]] = hit[2].split()[-4:]
        elif table is None and (hit := SINGLE.match(line)):
            found[-1].singles.append((hit[1], hit[2], hit[3]))
    return found


def read(path: Path, text: str) -> Reading | None:
    blocks = blocks_of(text)
    if not blocks:
        return None
    version = blocks[0].version
    whole = [block for block in blocks if not block.table_cut()]
    if not whole:
        return Reading("mdtest", version, refusal="truncated")
    runs = [run for block in whole if (run := printed_run(block)).phases]
    return Reading("mdtest", version, runs, "" if runs else "no rate in it")


def name_of(operation: str) -> str:
    what, verb = operation.split()
    return f"{what.lower()}-{VERBS[verb]}"


def printed_run(block: Block) -> Printed:
    run = Printed(block.ranks, block.nodes, block.command, block.started)
    rates, times = block.tables.get("rate", {}), block.tables.get("time", {})
    for operation in {**rates, **times}:
        rate, seconds = column(rates.get(operation)), column(times.get(operation))
        if not (rate.value if rate else seconds and seconds.value):
            continue  # not done, or slower than three digits show
        if seconds and not seconds.value:
            seconds = None  # shorter than three digits show
        if block.iterations > 1:
            several(run, block, operation, rates.get(operation), seconds)
            continue
        operations = count(block, operation, rate, seconds)
        rate = rate or quotient(operations, seconds)
        run.put(name_of(operation), 0, rate=rate, seconds=seconds or quotient(operations, rate), operations=operations)
    return run


def several(run: Printed, block: Block, operation: str, rates: list[str] | None, seconds: Quantity | None) -> None:
    """Several iterations: each of its own where -v prints them, else their mean."""
    singles = [one for one in block.singles if one[0] == operation and float(one[2])]
    if len(singles) == block.iterations:
        for repeat, (_, time, rate) in enumerate(singles, start=1):
            run.put(name_of(operation), repeat, rate=Quantity(float(rate), rounding(rate)))
            run.put(name_of(operation), repeat, seconds=Quantity(float(time), rounding(time)))
        return
    run.put(name_of(operation), 0, operations=Quantity(None), seconds=seconds or Quantity(None))
    if rates:
        most, least, mean, deviation = (Quantity(float(word), rounding(word)) for word in rates)
        spread = {"repeats": block.iterations, "mean": mean, "min": least, "max": most, "standard_deviation": deviation}
        run.put(name_of(operation), 0, rate=mean, **{f"rate_over_repeats__{key}": one for key, one in spread.items()})


def column(row: list[str] | None) -> Quantity | None:
    """The mean; the ranks' clocks differ by what lies between the extremes."""
    if row is None:
        return None
    most, least, mean = float(row[0]), float(row[1]), float(row[2])
    return Quantity(mean, rounding(row[2]) + ((most - least) / mean if mean else 0.0))


def count(block: Block, operation: str, rate: Quantity | None, seconds: Quantity | None) -> Quantity:
    product = None
    if rate and seconds and rate.value and seconds.value:
        product = Quantity(rate.value * seconds.value, rate.relative + seconds.relative, derived=True)
    if operation.startswith("Tree"):  # rank 0's directories: nowhere printed
        return product or Quantity(None)
    exact: float | None = block.requested
    if operation == "File creation" and block.longest is not None:
        exact = block.longest * block.ranks
    elif operation == "File creation" and re.search(r"\s['\"]?-W['\"]?[\s='\"]*[1-9]", block.command):
        exact = None  # versions before that line was printed
    elif operation.startswith("File") and operation != "File creation" and not block.asks("C"):
        if "-x" in block.options() and not block.no_status:
            exact = None if block.longest is None else block.longest * block.ranks
    if exact is None:
        return product or Quantity(None)
    if product and abs(exact / product.value - 1) > 1e-3 + product.relative:  # type: ignore[operator]
        return product
    return Quantity(exact)


def quotient(above: Quantity, below: Quantity | None) -> Quantity:
    if not above.value or below is None or not below.value:
        return Quantity(None)
    return Quantity(above.value / below.value, above.relative + below.relative, derived=True)

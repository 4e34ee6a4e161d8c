# SPDX-License-Identifier: Apache-2.0
"""smallfile's report: the lines of its threads and the totals. Threads of all hosts are ranks, an operation is one on a
file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iocast.importers import Importer
from iocast.importers.record import Phase, Record
from iocast.importers.source import Source
from iocast.ground.strict import is_whole

THREAD = re.compile(
    r"^host = (\S+?),\s*thr = (\d+),\s*elapsed = ([\d.]+),\s*files = (\d+),\s*records = (\d+),\s*status = (\S+)"
)
TOTAL = re.compile(r"^(total threads|total files|total IOPS|elapsed time|files/sec|IOPS|MiB/sec)\s*=\s*([\d.]+)\s*$")
OPTION = re.compile(
    r"^\s*(operation|files/thread|threads|file size \(KB\)|record size \(KB, 0 = maximum\)|fsync after modify\?)\s*: "
    r"(\S+)\s*$"
)
OPERATIONS = {
    "create": "create",
    "append": "append",
    "read": "read",
    "stat": "stat",
    "chmod": "chmod",
    "rename": "rename",
    "delete": "unlink",
    "mkdir": "mkdir",
    "rmdir": "rmdir",
    "readdir": "readdir",
    "delete-renamed": "unlink",
    "overwrite": "pwrite",
    "swift-get": "read",
    "swift-put": "create",
}


def recognises(source: Source) -> bool:
    return bool(re.search(r"^total threads = \d+", source.head, re.MULTILINE)) and bool(
        re.search(r"^files/sec = ", source.head, re.MULTILINE)
    )


def read(sources: Sequence[Source]) -> list[Record]:
    return [_read_one(source) for source in sources]


def _read_one(source: Source) -> Record:
    totals = source.values(TOTAL)
    options: dict[str, tuple[str, int]] = {}
    threads: list[tuple[str, float, str, int]] = []
    for number, line in source.numbered:
        if found := THREAD.match(line):
            threads.append((found[1], source.number(found[3], number, "elapsed"), found[6], number))
        elif found := OPTION.match(line):
            options[found[1]] = found[2], number
    data = totals.get("total IOPS", (0.0, 0))[0] > 0
    if not {"total threads", "total files", "elapsed time", "files/sec"} <= totals.keys() or (
        data and "MiB/sec" not in totals
    ):
        raise source.refuse_cut("the totals ('files/sec', 'MiB/sec')")
    source.require_last_line()
    (count, counted), (seconds, timed), (rate, rated) = (
        totals["total files"],
        totals["elapsed time"],
        totals["files/sec"],
    )
    name, named = options.get("operation", ("files", counted))
    phase = Phase(
        name,
        operations=int(count) or None,
        seconds=seconds or None,
        rate=rate,
        counts={OPERATIONS.get(name, name): int(count)},
    )
    phase.origin = {
        "": source.at(timed),
        "rate": source.at(rated),
        "operations": source.at(counted),
        "latency": source.at(counted),
    }
    if "MiB/sec" in totals:
        phase.bytes_per_second, phase.origin["bytes_per_second"] = (
            totals["MiB/sec"][0] * 2**20,
            source.at(totals["MiB/sec"][1]),
        )
    if threads and len(threads) == int(totals["total threads"][0]):
        phase.rank_seconds = [seconds for _, seconds, _, _ in threads]
        phase.balance = min(phase.rank_seconds) / max(phase.rank_seconds) if max(phase.rank_seconds) else None
        phase.origin["rank_seconds"] = source.at(threads[0][3])
    record = Record("smallfile", "smallfile", [phase], pattern="smallfile", ranks=int(totals["total threads"][0]))
    record.origin["ranks"] = source.at(totals["total threads"][1])
    if threads:
        record.nodes, record.origin["nodes"] = (
            len({host for host, *_ in threads}),
            f"{source.at(threads[0][3])} (hosts of the threads)",
        )
    if version := re.search(r"smallfile version (\S+)", source.text):
        record.version = version[1]
    for theirs, ours in (
        ("files/thread", "items"),
        ("file size (KB)", "file_size"),
        ("record size (KB, 0 = maximum)", "transfer_size"),
    ):
        if theirs in options and is_whole(options[theirs][0]):
            record.parameters[ours] = int(options[theirs][0]) * (1 if ours == "items" else 1024)
            record.origin[f"parameters.{ours}"] = source.at(options[theirs][1])
    for host, _, status, at in threads:
        if status != "ok":
            record.warnings.append(f"{source.at(at)}: a thread of {host} ended with '{status}'.")
    record.missing |= {
        "command": "smallfile prints its options, not its command line.",
        "phases[].latency.*": "smallfile writes response times into files of their own.",
    }
    return record


IMPORTER = Importer(
    "smallfile",
    "report of smallfile",
    "the standard output",
    recognises,
    read,
    begins=re.compile(r"smallfile version|^\s+(?:hosts in test|operation) +:|^host = "),
    ends=re.compile(r"^files/sec\s*="),
)

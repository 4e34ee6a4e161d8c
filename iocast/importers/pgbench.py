# SPDX-License-Identifier: Apache-2.0
"""pgbench's report. An operation is a transaction; clients are ranks. The rate is that without the time to connect."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iocast.importers import Importer
from iocast.importers.record import Latency, Phase, Record
from iocast.importers.source import Source
from iocast.ground.strict import is_whole

LINE = re.compile(r"^([a-z][\w ]*?)(?:: | = )(.*\S)\s*$")
TPS = re.compile(r"^tps = ([\d.]+) \((without initial connection time|excluding connections establishing)\)$")
PARAMETERS = {"transaction type": "transaction", "scaling factor": "scale", "query mode": "query_mode"}


def recognises(source: Source) -> bool:
    return bool(re.search(r"^number of transactions actually processed:", source.head, re.MULTILINE)) or (
        bool(re.search(r"^transaction type:", source.head, re.MULTILINE))
        and bool(re.search(r"^tps = ", source.head, re.MULTILINE))
    )


def read(sources: Sequence[Source]) -> list[Record]:
    return [_read_one(source) for source in sources]


def _read_one(source: Source) -> Record:
    values: dict[str, tuple[str, int]] = {}
    tps: tuple[float, int] | None = None
    for number, line in source.numbered:
        if found := TPS.match(line):
            tps = source.number(found[1], number, "tps"), number
        elif found := LINE.match(line):
            values.setdefault(found[1], (found[2], number))
    if tps is None or "number of transactions actually processed" not in values:
        raise source.refuse_cut("'tps = ... (without initial connection time)'")
    source.require_last_line()
    text, counted = values["number of transactions actually processed"]
    count = int(source.number(text.partition("/")[0], counted, "transactions"))
    rate, rated = tps
    phase = Phase(
        "benchmark",
        operations=count or None,
        rate=rate or None,
        seconds=count / rate if rate else None,
        counts={"transaction": count} if count else {},
    )
    phase.origin = {
        "": source.at(rated),
        "operations": source.at(counted),
        "latency.transaction.count": source.at(counted),
    }
    phase.origin["seconds"] = f"{source.at(counted)} / {source.at(rated)} (transactions / tps)"
    if mean := re.match(r"([\d.]+) ms", values.get("latency average", ("", 0))[0]):
        phase.latency["transaction"] = Latency(count, {"mean": float(mean[1]) * 1e-3})
        phase.origin["latency.transaction.mean"] = source.at(values["latency average"][1])
    if failed := re.match(r"(\d+)", values.get("number of failed transactions", ("", 0))[0]):
        phase.errors, phase.origin["errors"] = int(failed[1]), source.at(values["number of failed transactions"][1])
    version = re.search(r"^pgbench \(([^)]*)\)", source.text, re.MULTILINE)
    record = Record("pgbench", "pgbench", [phase], pattern="pgbench", version=version[1] if version else None, nodes=1)
    record.origin["nodes"] = f"{source.at(rated)} (pgbench is one process)"
    if "number of clients" in values:
        clients, at = values["number of clients"]
        record.ranks, record.origin["ranks"] = int(source.number(clients, at, "clients")), source.at(at)
    for theirs, ours in PARAMETERS.items():
        if theirs in values:
            reported, at = values[theirs]
            record.parameters[ours] = int(reported) if is_whole(reported) else reported
            record.origin[f"parameters.{ours}"] = source.at(at)
    if phase.errors is None:
        record.missing["phases[].errors"] = "This version of pgbench does not count failed transactions."
    record.missing |= {
        "phases[].latency.*.quantiles": "pgbench prints mean and deviation of latencies; single ones are in its log "
        "(--log)."
    }
    return record


IMPORTER = Importer(
    "pgbench",
    "report of pgbench",
    "the standard output",
    recognises,
    read,
    begins=re.compile(r"^pgbench \(|^starting vacuum|^transaction type:"),
    ends=re.compile(r"^tps = .*\((?:without|excluding)"),
)

# SPDX-License-Identifier: Apache-2.0
"""PostMark's report. Its clock counts whole seconds and never says less than one, so rates of short runs mean
nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iocast.importers import Importer
from iocast.importers.record import Phase, Record, place_one_after_the_other
from iocast.importers.source import Source

FIRST = re.compile(r"PostMark v([\d.]+)")
# What `show` prints, and iocast's parameters of the same pattern (workload/patterns/postmark.cpp).
PARAMETERS = {
    r"The base number of files is (\d+)": ("number",),
    r"Transactions: (\d+)": ("transactions",),
    r"Files range between (\d+) bytes and (\d+) bytes": ("size_low", "size_high"),
    r"Block sizes are: read=(\d+) bytes, write=(\d+) bytes": ("read", "write"),
    r"Biases are: read/append=(-?\d+), create/delete=(-?\d+)": ("bias_read", "bias_create"),
    r"Random number generator seed is (\d+)": ("seed",),
}


def recognises(source: Source) -> bool:
    return bool(FIRST.search(source.head)) or (
        "seconds of transactions" in source.head and "Creation alone" in source.head
    )


def read(sources: Sequence[Source]) -> list[Record]:
    return [_read_one(source) for source in sources]


def _read_one(source: Source) -> Record:
    lines: dict[str, int] = {}

    def count(pattern: str, what: str) -> tuple[int, float]:
        """The number and the rate in a line, which must be there."""
        for number, line in source.numbered:
            if found := re.search(pattern + r"\s*\(([\d.]+) per second\)", line):
                lines[what] = number
                return int(source.number(found[1], number, what)), source.number(
                    found[2], number, f"the rate of {what}"
                )
        raise source.refuse_cut(f"the number of {what}")

    transactions = re.search(r"^[ \t]*(\d+) seconds of transactions", source.text, re.MULTILINE)
    total = re.search(r"^[ \t]*(\d+) seconds total", source.text, re.MULTILINE)
    if transactions is None or total is None:
        raise source.refuse_cut("'seconds of transactions'")
    made, making = count(r"Creation alone: (\d+) files", "files created before the transactions")
    mixed, _ = count(r"Mixed with transactions: (\d+) files", "files created in transactions")
    read_, _ = count(r"^\s*(\d+) read", "files read")
    appended, _ = count(r"^\s*(\d+) appended", "files appended to")
    gone, removing = count(r"Deletion alone: (\d+) files", "files deleted after the transactions")
    deleted, _ = _second(source, r"Mixed with transactions: (\d+) files\s*\(([\d.]+) per second\)")
    if "Data:" not in source.text or not re.search(r"written \(", source.text):
        raise source.refuse_cut("the data written")
    seconds = float(transactions[1])
    phases = [
        Phase(
            "precreate",
            counts={"create": made},
            operations=made,
            rate=making,
            seconds=made / making if making else None,
        )
    ]
    counts = {"create": mixed, "read": read_, "append": appended, "unlink": deleted}
    operations = sum(counts.values())
    phases.append(
        Phase(
            "benchmark",
            counts=counts,
            operations=operations,
            rate=operations / seconds if seconds else None,
            seconds=seconds or None,
        )
    )
    phases.append(
        Phase(
            "cleanup",
            counts={"unlink": gone},
            operations=gone,
            rate=removing,
            seconds=gone / removing if removing else None,
        )
    )
    at = source.at(source.line_at(transactions.start()))
    phases[0].origin[""] = source.at(lines["files created before the transactions"])
    phases[1].origin |= {
        "": at,
        "operations": f"{source.at(lines['files read'])} (files created, read, appended to and deleted)",
    }
    phases[1].origin["rate"] = f"{at} (operations / seconds)"
    phases[2].origin[""] = source.at(lines["files deleted after the transactions"])
    phases[0].origin["seconds"], phases[2].origin["seconds"] = (
        f"{phases[i].origin['']} (files / rate)" for i in (0, 2)
    )
    version = FIRST.search(source.text)
    record = Record(
        "postmark", "PostMark", phases, pattern="postmark", version=version[1] if version else None, ranks=1, nodes=1
    )
    record.origin = dict.fromkeys(("ranks", "nodes", "parameters"), f"{source.at(1)} (PostMark is one process)")
    for pattern, names in PARAMETERS.items():
        if found := re.search(pattern, source.text):
            record.parameters |= {name: int(value) for name, value in zip(names, found.groups(), strict=True)}
    if not record.parameters:
        record.missing["workload.parameters"] = "PostMark prints its settings only on the command 'show'."
    record.missing |= {"command": "PostMark reads its commands and does not print them."}
    if float(total[1]) < 20:
        record.warnings.append(
            f"PostMark counts whole seconds, at least one; this run took {total[1]} in all, so its rates may be wrong "
            "by a multiple."
        )
    place_one_after_the_other(phases)
    return record


def _second(source: Source, pattern: str) -> tuple[int, float]:
    """Of files created and of files deleted PostMark says the same words; the second time it is those deleted."""
    found = re.findall(pattern, source.text)
    if len(found) < 2:
        raise source.refuse_cut("the number of files deleted in transactions")
    return int(found[1][0]), float(found[1][1])


IMPORTER = Importer(
    "postmark",
    "report of PostMark",
    "the standard output",
    recognises,
    read,
    begins=re.compile(r"PostMark v|Current configuration is|Creating files|^Time:"),
    ends=re.compile(r"^Data:"),
)

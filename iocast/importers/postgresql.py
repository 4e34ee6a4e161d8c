# SPDX-License-Identifier: Apache-2.0
"""Statistics of PostgreSQL, and of the pool PgBouncer before it, as `psql --csv` writes them.

Tables and columns: PostgreSQL's manual, "The Cumulative Statistics System" and "pg_stat_statements"; PgBouncer's
manual, "SHOW STATS". A table begins with the line of its columns. Its time is the column `now`, of the query's now(),
or a line `snapshot_time: SECONDS` above.

- pg_stat_statements: calls and execution times by the first word of the statement.
- pg_stat_database: transactions, and the time in which sessions executed statements (active_time, since release 14).
- SHOW STATS: statements, their time from arrival to answer, and the part of it in which they waited for a connection
  to the server. Of PgBouncer 1.18 with two connections of 4 ms and four clients these were 9.0 and 4.3 ms.
- pg_stat_activity: how many backends were active at each moment; beside one of the others, since it has no rate."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

from iocast.importers import Importer
from iocast.importers.record import Record
from iocast.importers.source import Source
from iocast.importers.statistics import Counted, Server, Snapshot, grouped, read, time_above

STATEMENTS, DATABASE = {"query", "calls"}, {"datname", "xact_commit"}
POOL, ACTIVITY = {"database", "total_query_count", "total_query_time", "total_wait_time"}, {"pid", "state"}
TABLES = (STATEMENTS, DATABASE, POOL, ACTIVITY)
EXECUTION = ("total_exec_time", "total_time")
"""Milliseconds; the second up to release 12."""
COMMENT = re.compile(r"\s+|/\*(?:[^*]|\*(?!/))*\*/|--[^\n]*")
WORD = re.compile(r"[A-Za-z]{1,30}")
NAME = re.compile(r"[a-z_]{1,60}")
"""Of a column."""
OWN = re.compile(r"\bpg_stat_")
"""Statements that ask for statistics."""
SERVER = Server(
    "postgresql",
    "PostgreSQL",
    "A statement's time is that of its execution, without the wait for a connection and without the network; that of a "
    "pool begins when the statement arrives there ('wait': its wait for a connection).",
    waits_for="a connection to the server",
    relief="more connections in the pool, as far as the server has processors and disks for them",
    helps="EXPLAIN ANALYZE of the statements with the largest total time shows whether they lack an index, memory or a "
    "lock.",
)
Row = dict[str, str]


def recognises(source: Source) -> bool:
    return any(_table(line.split(",")) for line in source.head.splitlines() if "," in line)


POOL_OF = "pool {}"
"""A pool has the name of its database, whose own statistics count other requests."""


def _table(cells: Sequence[str]) -> set[str] | None:
    """The kind of table whose columns these are."""
    columns = set(cells)
    return next((table for table in TABLES if table <= columns and not columns & {"rate", "ppn"}), None)


def snapshots(source: Source) -> list[Snapshot]:
    """@raises InputError with the line of a row with too few cells, or a number that is none"""
    found: list[Snapshot] = []
    for number, table, rows in _tables(source):
        if table is ACTIVITY:
            continue
        here: dict[str, Snapshot] = {}
        for line, row, time in rows:
            if table is POOL and row["database"] == "pgbouncer":
                continue  # a query of these statistics
            if table is STATEMENTS:
                name = "pg_stat_statements"
            else:
                name = row["datname"] if table is DATABASE else POOL_OF.format(row["database"])
            at = line if here else number
            one = here.setdefault(name, Snapshot(source, name or "shared", at, time, part=table is not STATEMENTS))
            _count(source, line, row, table, one)
        found += [one for one in here.values() if one.counts]
    return found


def _count(source: Source, line: int, row: Row, table: set[str], one: Snapshot) -> None:
    def value(key: str) -> float:
        if key not in row:
            raise source.refuse(line, f"the table has no column {key}, without which its times are not known")
        return source.number(row[key] or "0", line, key)

    one.line = line
    if table is STATEMENTS:
        if OWN.search(row["query"]):
            return
        total = next((key for key in EXECUTION if key in row), EXECUTION[0])
        extremes = [
            1e-3 * value(key) if key in row else None
            for key in (total.replace("total", "min"), total.replace("total", "max"))
        ]
        one.add(_word(row["query"]), Counted(round(value("calls")), 1e-3 * value(total), line, *extremes))
    elif table is DATABASE:
        count = round(value("xact_commit") + (value("xact_rollback") if "xact_rollback" in row else 0.0))
        one.add("transaction", Counted(count, 1e-3 * value("active_time"), line))
    else:
        count = round(value("total_query_count"))
        one.add("query", Counted(count, 1e-6 * value("total_query_time"), line))
        one.add("query.wait", Counted(count, 1e-6 * value("total_wait_time"), line))


def _word(query: str) -> str:
    """The first word of a statement, comments apart."""
    at = 0
    while (blank := COMMENT.match(query, at)) and blank.end() > at:
        at = blank.end()
    word = WORD.match(query, at)
    return word[0].lower() if word else "statement"


def _tables(source: Source) -> Iterator[tuple[int, set[str], list[tuple[int, Row, float | None]]]]:
    """Each table with the line of its columns, and its rows with their lines and times."""
    stated: float | None = None
    columns: list[str] = []
    table: set[str] | None = None
    begin, rows = 0, list[tuple[int, Row, float | None]]()
    reader = csv.reader([f"{line}\n" for line in source.lines], strict=True)
    before = 0
    try:
        for cells in reader:
            line, before = source.first + before, reader.line_num
            taken = time_above(source, line, cells[0]) if len(cells) == 1 else None
            if taken is not None or not any(cells) or (kind := _table(cells)) is not None:
                if table is not None:
                    yield begin, table, rows
                table, rows = None, []
                if taken is not None:
                    stated = taken
                elif any(cells):
                    table, columns, begin = kind, cells, line
            elif table is not None:
                if len(cells) != len(columns):
                    if len(cells) == 1 or all(NAME.fullmatch(cell) for cell in cells):  # a note, or another table
                        yield begin, table, rows
                        table, rows = None, []
                        continue
                    raise source.refuse(line, f"this row has {len(cells)} cells, and its table {len(columns)} columns")
                row = dict(zip(columns, cells, strict=True))
                rows.append((line, row, _moment(source, line, row, stated)))
    except csv.Error as error:
        raise source.refuse(source.first + before, f"this is no CSV as psql writes it ({error})") from None
    if table is not None:
        yield begin, table, rows


def _moment(source: Source, line: int, row: Row, stated: float | None) -> float | None:
    if "now" not in row:
        return stated
    found = re.fullmatch(
        r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d{1,9})?([+-]\d\d)(?::?(\d\d))?", row["now"].strip()
    )
    try:
        if found is None:
            raise ValueError
        whole = datetime.fromisoformat(f"{found[1]}T{found[2]}{found[4]}:{found[5] or '00'}").timestamp()
    except ValueError:
        raise source.refuse(
            line, f"now is '{row['now'][:40]}'; it must be a time with a zone, as 2026-11-27 10:20:30.5+00"
        ) from None
    return whole + float(found[3] or 0)


def busy_backends(source: Source) -> list[int]:
    """Backends that were active in each table of pg_stat_activity, without the one that looked."""
    return [
        sum(row["state"] == "active" and "pg_stat_activity" not in row.get("query", "") for _, row, _ in rows)
        for _, table, rows in _tables(source)
        if table is ACTIVITY
    ]


def read_all(sources: Sequence[Source]) -> list[Record]:
    looks = [busy for source in sources for busy in busy_backends(source)]
    seen = (
        f"In {len(looks)} looks at pg_stat_activity {sum(looks) / len(looks):.3g} backends were active on average, and "
        f"at most {max(looks)}."
        if looks
        else ""
    )
    if looks and not any(snapshots(source) for source in sources):
        raise sources[0].refuse(
            1,
            f"{seen} No rate follows from that; add pg_stat_statements or pg_stat_database before and after, in the "
            "same file or in further ones",
        )
    with_rates = [source for source in sources if snapshots(source)]
    records = read(with_rates, snapshots, SERVER)
    if seen:
        for record in records:
            record.warnings.append(seen)
            record.facts["active_backends"] = {
                "looks": len(looks), "mean": sum(looks) / len(looks), "most": max(looks)
            }  # fmt: skip
    return records


IMPORTER = Importer(
    "postgresql",
    "pg_stat_statements, pg_stat_database, pg_stat_activity, and SHOW STATS of PgBouncer, as observed load",
    "what psql --csv wrote of them, two snapshots at least, in one file or in a file each",
    recognises,
    read_all,
    partial(grouped, snapshots=snapshots, server=SERVER),
    snapshots=snapshots,
    server=SERVER,
)

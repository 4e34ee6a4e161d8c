# SPDX-License-Identifier: Apache-2.0
"""/proc/self/mountstats of an NFS client: the load of each mount, as counts, rates and times of requests.

Counts are since the file system was mounted, `age` seconds ago, in whole seconds; a line `snapshot_time: SECONDS` above
a copy of the file says it closer, and is needed to join it to a run. Of each request the kernel adds up milliseconds:
the wait in the client for a slot (`queue`), the time from its sending to the answer (`trip`), and both with what is
around them; mountstats(8) of nfs-utils names the columns.

`queue` is no wait at the server. `trip` holds the network, the wait for one of the server's threads, and the work. What
it grows by with more ranks is the wait; how long a request held a thread is at most the trip of a lone rank."""

from __future__ import annotations

import re
from functools import partial

from iocast.importers import Importer
from iocast.importers.source import Source
from iocast.importers.statistics import TRIP, TRIPS, Counted, Server, Snapshot, read, time_above

DEVICE = re.compile(r"^\s*device (\S+) mounted on (\S+) with fstype nfs4?(?= |$)")
AGE = re.compile(r"^\s*age:\s+(\d+)")
BYTES = re.compile(r"^\s*bytes:\s+((?:\d+\s+){7}\d+)\s*$")
REQUEST = re.compile(r"^\s*([A-Z0-9_]+):((?:\s+\d+){8,9})\s*$")
OPERATIONS = {
    "READ": "pread", "WRITE": "pwrite", "COMMIT": "fsync", "GETATTR": "stat", "REMOVE": "unlink",
    "READDIRPLUS": "readdir",
}  # fmt: skip
COLUMNS = {"": 7, ".queue": 5, TRIP: 6}
"""Of milliseconds: all of a request, of it in the client before it is sent, and from there to the answer."""
FROM_SERVER, TO_SERVER = 4, 5
"""Columns of `bytes`: what READ and WRITE requests moved."""
SERVER = Server(
    "nfs",
    "NFS client",
    "The mount is one client's: 'queue' is the wait for a slot in this client, 'trip' the network and the server.",
    {
        "phases[].errors": "Requests that failed are counted by kind of request alone.",
        "phases[].latency.*": "The kernel adds up the times of requests, in milliseconds; a distribution is not known.",
    },
    who="mount",
    waits_for="a slot in this client",
    relief="more connections or slots of this client (mount option nconnect)",
)


def _signed(count: int) -> int:
    """What the kernel has added up: differences of clocks, so that a sum may be below zero and is printed as 2^64
    more."""
    return count - (1 << 64) if count >= 1 << 63 else count


def recognises(source: Source) -> bool:
    return bool(re.search(r"^[ \t]*device \S+ mounted on \S+ with fstype nfs4?(?: |$)", source.head, re.MULTILINE))


def snapshots(source: Source) -> list[Snapshot]:
    """Of each mount.

    @raises InputError with the line of a mount without an age, or of a request without its counts"""
    found: list[Snapshot] = []
    here: Snapshot | None = None
    time: float | None = None
    counting = False  # below "per-op statistics"
    for number, line in source.numbered:
        if (taken := time_above(source, number, line)) is not None:
            time, here = taken, None
        elif line.lstrip().startswith("device "):
            mount = DEVICE.match(line)  # other file systems have no statistics
            here = Snapshot(source, f"{mount[1]} on {mount[2]}", number, time, holds=TRIPS) if mount else None
            found += [here] if here else []
            counting = False
        elif here is None or not line.strip():
            continue
        elif "per-op statistics" in line:
            counting = True
        elif age := AGE.match(line):
            here.elapsed = float(age[1])
        elif moved := BYTES.match(line):
            columns = [int(word) for word in moved[1].split()]
            here.moved = columns[FROM_SERVER] + columns[TO_SERVER], number
        elif request := REQUEST.match(line):
            columns = [_signed(int(word)) for word in request[2].split()]
            op = OPERATIONS.get(request[1], request[1].lower())
            for part, column in COLUMNS.items() if columns[0] else ():
                here.add(op + part, Counted(columns[0], 1e-3 * columns[column], number))
        elif counting:
            raise source.refuse(number, "this line below 'per-op statistics' has no request with eight or nine counts")
    for one in found:
        if one.elapsed is None:
            raise source.refuse(one.line, f"the mount {one.name} has no line 'age:'; the file was cut off")
    return found


IMPORTER = Importer(
    "nfs",
    "/proc/self/mountstats of an NFS client, as observed load",
    "a copy of the file, or several snapshots appended to one",
    recognises,
    partial(read, snapshots=snapshots, server=SERVER),
    snapshots=snapshots,
    server=SERVER,
)

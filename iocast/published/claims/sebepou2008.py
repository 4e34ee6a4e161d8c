# SPDX-License-Identifier: Apache-2.0
"""Lustre 1.6 against PVFS2 on 12 clients and 12 servers with Gigabit Ethernet: platforms lustre-gigabit and
pvfs2-gigabit.

Four numbers of the platforms are fitted to statements of this study, and those claims say "fitted": they show no more
than that the platforms can be made to agree. The others follow from the routes (who asks whom how often, who waits for
whom) and from these numbers. Left out is what the study says of overlapping tiles, since it doesn't say by how much
they overlap, and no cache of a server is modelled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from iocast.published.experiment import Claim, bandwidth, phase

SOURCE = "Sebepou, Magoutis, Marazakis & Bilas, Experimental evaluation of PVFS2 and Lustre, LASCO 2008"
LUSTRE, PVFS2 = "lustre-gigabit", "pvfs2-gigabit"
CLIENTS = 12
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
ANY = float("inf")
DOING = {"read": "reading", "write": "writing", "read-then-write": "reading and writing by turns"}


def iozone(platform: str, record: int, threads: int) -> float:
    """MB/s of one client that reads."""
    found = phase(platform, "iozone", f"read-{record}B", 1, threads, {"record_sizes": f"{record}B", "tests": "read-*"})
    return bandwidth(found, threads * GIB) / 1e6


def pio(platform: str, test: str, block: int, clients: int = CLIENTS) -> float:
    """MB/s of all clients: read and read-then-write of one file, write of a file each."""
    settings = {"block_size": f"{block}B", "tests": test, "sharing": "process" if test == "write" else "all"}
    moved = clients * GIB * (2 if test == "read-then-write" else 1)
    return bandwidth(phase(platform, "pio-sequential", test, clients, 1, settings), moved) / 1e6


def pio_growth(platform: str, test: str, small: int, large: int) -> float:
    return pio(platform, test, large) / pio(platform, test, small)


def tiles(platform: str, test: str) -> float:
    """MB/s of all clients, a request for each row of a tile."""
    found = phase(platform, "tile-io", test, CLIENTS, 1, {"rows": 1, "grid_rows": 2})
    return bandwidth(found, CLIENTS * 1254 * 1254 * 512) / 1e6


SMALL = {"transactions": 10000}  # and else as in the catalogue
LARGE = {"number": 6, "transactions": 40, "size_low": "8MB", "size_high": "16MB", "subdirectories": 0}


def postmark(platform: str, files: dict[str, Any], servers: int = 1) -> float:
    """Transactions a second of all clients."""
    edits = {"stations.mds.count": servers}
    found = phase(platform, "cluster-postmark", "benchmark", CLIENTS, 1, files | {"read": "0B", "write": "0B"}, edits)
    return CLIENTS * int(files["transactions"]) / float(found["seconds"])


def listing(platform: str, edits: dict[str, Any] | None = None) -> float:
    """Seconds of one ls -lR."""
    return float(phase(platform, "ls-lR", "list", 1, 1, {"phases": "make,list"}, edits)["seconds"])


def listing_to_local(platform: str) -> float:
    """On the local system, what ls does for a file takes what it takes on the platforms (list_work), its system call
    within."""
    return listing(platform) / listing("local", {"demands.stat": "35us", "demands.readdir": "35us"})


def lustre_to_pvfs2(measure: Callable[..., float], *arguments: Any) -> float:
    return measure(LUSTRE, *arguments) / measure(PVFS2, *arguments)


def pvfs2_to_lustre(measure: Callable[..., float], *arguments: Any) -> float:
    return 1 / lustre_to_pvfs2(measure, *arguments)


def size(block: int) -> str:
    return f"{block // MIB} MiB" if block >= MIB else f"{block // KIB} KiB"


NO_FILL = (
    "A client's cache takes in the first 384 MiB of its 1 GB whatever the block, and the network has the rest; what "
    "made large blocks profit more from it, be it the client's copy or how the study timed the writes, is not in the "
    "platform."
)
SERVERS_LOCKS = (
    "A block of 64 KiB needs the lock of one server and a larger one those of all twelve, one after the other. But "
    "clients that need different servers' locks don't hinder each other here, and a hand-over costs the same whatever "
    "is dirty; what makes small blocks as slow as large ones is not in the platform."
)
WHOLE_FILE = (
    "A server's lock is of all that it has of a file, so that each write takes it from another client, in the time "
    "that is fitted to reads and writes by turns, where the cache is emptied as well and read again. With locks on "
    "ranges that are handed over in 0.8 ms (two round trips, a request and a stripe on its way) it would be 1.5 times; "
    "but then reads and writes by turns, each client in its stretch of the file, would hardly ever meet."
)
NO_STRIDE = (
    "The platform's clients read ahead in strided accesses as they do in sequential ones; clients of Lustre 1.6 don't, "
    "which the model can't tell because its routes know no order of accesses."
)
CLAIMS = [
    *(
        Claim(
            f"One client with four threads reads about 110 MB/s in blocks of {size(block)} from {platform}.",
            "Fig. 2",
            100,
            120,
            partial(iozone, platform, block, 4),
            "MB/s",
        )
        for platform in (LUSTRE, PVFS2)
        for block in (MIB, 4 * MIB)
    ),
    Claim(
        "One thread reads 90 MB/s in blocks of 64 KiB from Lustre (fitted: the client's copy).",
        "Fig. 2",
        81,
        99,
        partial(iozone, LUSTRE, 64 * KIB, 1),
        "MB/s",
        role="fitted",
    ),
    Claim(
        "One thread reads 45 MB/s in blocks of 64 KiB from PVFS2 (fitted: a request's turn).",
        "Fig. 2",
        40,
        50,
        partial(iozone, PVFS2, 64 * KIB, 1),
        "MB/s",
        role="fitted",
    ),
    Claim(
        "With four threads there is no difference at 64 KiB (Lustre to PVFS2).",
        "section 5, IOzone",
        0.9,
        1.1,
        partial(lustre_to_pvfs2, iozone, 64 * KIB, 4),
    ),
    Claim(
        "Lustre gains by four threads, too (four to one at 64 KiB).",
        "section 5, IOzone",
        1.03,
        ANY,
        lambda: iozone(LUSTRE, 64 * KIB, 4) / iozone(LUSTRE, 64 * KIB, 1),
    ),
    *(
        Claim(
            f"PIO with one client reads about 90 MB/s in blocks of 4 MiB from {platform}.",
            "section 5, PIO",
            81,
            99,
            partial(pio, platform, "read", 4 * MIB, 1),
            "MB/s",
        )
        for platform in (LUSTRE, PVFS2)
    ),
    *(
        Claim(
            f"12 clients read one file at least 25 to 30 % faster from Lustre in blocks of {size(block)}.",
            "Fig. 3",
            1.2,
            ANY,
            partial(lustre_to_pvfs2, pio, "read", block),
        )
        for block in (64 * KIB, MIB)
    ),
    *(
        Claim(
            f"12 clients read about 25 % less from PVFS2 in blocks of {size(block)} (PVFS2 to Lustre{fitted}).",
            "section 5, PIO",
            0.7,
            0.8,
            partial(pvfs2_to_lustre, pio, "read", block),
            role="fitted" if fitted else "forecast",
        )
        for block, fitted in ((4 * MIB, "; fitted: PVFS2's servers"), (32 * MIB, ""))
    ),
    *(
        Claim(
            f"12 clients write files of their own at least 25 to 30 % faster to Lustre in blocks of {size(block)}.",
            "Fig. 3",
            1.2,
            ANY,
            partial(lustre_to_pvfs2, pio, "write", block),
        )
        for block in (64 * KIB, MIB, 4 * MIB, 32 * MIB)
    ),
    *(
        Claim(
            f"PVFS2's bandwidth of {DOING[test]} grows from 64 KiB to 4 MiB.",
            "Fig. 3",
            1.15,
            ANY,
            partial(pio_growth, PVFS2, test, 64 * KIB, 4 * MIB),
        )
        for test in DOING
    ),
    *(
        Claim(
            f"The bandwidth of {DOING[test]} levels from 4 MiB on with {platform} (32 to 4 MiB).",
            "Fig. 3",
            0.87,
            1.15,
            partial(pio_growth, platform, test, 4 * MIB, 32 * MIB),
        )
        for platform, test in ((PVFS2, "read"), (PVFS2, "write"), (PVFS2, "read-then-write"), (LUSTRE, "read"))
    ),
    Claim(
        "Lustre's write of own files goes on growing beyond 4 MiB (32 to 4 MiB).",
        "Fig. 3",
        1.15,
        ANY,
        partial(pio_growth, LUSTRE, "write", 4 * MIB, 32 * MIB),
        why_not=NO_FILL,
    ),
    *(
        Claim(
            f"12 clients that read and write one file by turns move a few MB/s in blocks of {size(block)} on Lustre.",
            "Fig. 3",
            1,
            10,
            partial(pio, LUSTRE, "read-then-write", block),
            "MB/s",
            SERVERS_LOCKS if block < MIB else "",
        )
        for block in (64 * KIB, MIB)
    ),
    Claim(
        "In blocks of 32 MiB it is about 100 MB/s (fitted: the lock's hand-over).",
        "Fig. 3",
        80,
        125,
        partial(pio, LUSTRE, "read-then-write", 32 * MIB),
        "MB/s",
        role="fitted",
    ),
    Claim(
        "A single client does not suffer so (one client to all twelve, 64 KiB).",
        "section 5, PIO",
        1.2,
        ANY,
        lambda: pio(LUSTRE, "read-then-write", 64 * KIB, 1) / pio(LUSTRE, "read-then-write", 64 * KIB),
    ),
    Claim(
        "PostMark with many small files: Lustre makes about 5 times as many transactions (a commit's time was settled "
        "in sight of this).",
        "Fig. 5",
        4,
        6,
        partial(lustre_to_pvfs2, postmark, SMALL),
        role="fitted",
    ),
    Claim(
        "PostMark with few large files: Lustre is ahead, too.",
        "Fig. 4",
        1.03,
        ANY,
        partial(lustre_to_pvfs2, postmark, LARGE),
    ),
    Claim(
        "More metadata servers make no measurable difference to PVFS2 (four to one, small files; commits in groups are "
        "assumed).",
        "section 5, PostMark",
        0.95,
        1.05,
        lambda: postmark(PVFS2, SMALL, 4) / postmark(PVFS2, SMALL),
    ),
    Claim(
        "Tile I/O: Lustre reads about 10 % more.",
        "Fig. 6a",
        1.05,
        1.15,
        partial(lustre_to_pvfs2, tiles, "read"),
        why_not=NO_STRIDE,
    ),
    Claim(
        "Tile I/O: PVFS2 writes about twice as much.",
        "Fig. 6b",
        1.7,
        2.3,
        partial(pvfs2_to_lustre, tiles, "write"),
        why_not=WHOLE_FILE,
    ),
    Claim(
        "ls -lR takes about 40 % longer on PVFS2 than on Lustre.",
        "Table 4",
        1.3,
        1.5,
        partial(pvfs2_to_lustre, listing),
    ),
    *(
        Claim(
            f"ls -lR takes about ten times as long on {platform} as on a local file system.",
            "Table 4",
            7,
            14,
            partial(listing_to_local, platform),
            role=role,
        )
        for platform, role in ((LUSTRE, "fitted"), (PVFS2, "forecast"))
    ),
]

# SPDX-License-Identifier: Apache-2.0
"""/proc/net/rpc/nfsd of a Linux NFS server: how many requests of each kind it served, of all clients together.

The kernel prints counts by number; their names are those of RFC 1813 (version 3) and of RFC 8881, 7862 and 8276
(version 4). A request of version 4 is a compound of operations: these are parts of it, "compound.stat". Times are not
counted. Bytes (`io`) are left out, since they begin anew at 4 GiB up to Linux 5.12. `th` is the number of threads."""

from __future__ import annotations

import re
from functools import partial

from iocast.importers import Importer
from iocast.importers.nfs import OPERATIONS
from iocast.importers.source import Source
from iocast.importers.statistics import Counted, Server, Snapshot, grouped, read, time_above

ROW = re.compile(r"^(rc|th|proc3|proc4|proc4ops)((?: +\S+)+) *$")
NAMES = {
    "proc3": (
        "null getattr setattr lookup access readlink read write create mkdir symlink mknod remove rmdir rename link "
        "readdir readdirplus fsstat fsinfo pathconf commit"
    ).split(),
    "proc4": ["null", "compound"],
    "proc4ops": (
        "op_0 op_1 op_2 access close commit create delegpurge delegreturn getattr getfh link lock lockt locku lookup "
        "lookupp nverify open openattr open_confirm open_downgrade putfh putpubfh putrootfh read readdir readlink "
        "remove rename renew restorefh savefh secinfo setattr setclientid setclientid_confirm verify write "
        "release_lockowner backchannel_ctl bind_conn_to_session exchange_id create_session destroy_session "
        "free_stateid get_dir_delegation getdeviceinfo getdevicelist layoutcommit layoutget layoutreturn "
        "secinfo_no_name sequence set_ssv test_stateid want_delegation destroy_clientid reclaim_complete allocate copy "
        "copy_notify deallocate io_advise layouterror layoutstats offload_cancel offload_status read_plus seek "
        "write_same clone getxattr setxattr listxattrs removexattr"
    ).split(),
}
SERVER = Server(
    "nfsd",
    "NFS server",
    "Requests are of all its clients.",
    {
        "phases[].latency.*": "The kernel of an NFS server counts requests, and none of their times.",
        "phases[].bytes": "The kernel's counters of bytes begin anew at 4 GiB up to Linux 5.12.",
    },
)


def recognises(source: Source) -> bool:
    return all(re.search(rf"^{key} +\d", source.head, re.MULTILINE) for key in ("rc", "th", "proc[34]"))


def snapshots(source: Source) -> list[Snapshot]:
    """@raises InputError with the line of a row that has more or fewer counts than it says"""
    found: list[Snapshot] = []
    time: float | None = None
    for number, line in source.numbered:
        if (taken := time_above(source, number, line)) is not None:
            time = taken
        elif not (row := ROW.match(line)):
            continue
        elif row[1] == "rc":  # the first row
            found.append(Snapshot(source, "nfsd", number, time))
            time = None
        elif not found:
            raise source.refuse(number, f"there is no row 'rc' above {row[1]}; the beginning of the file is missing")
        elif row[1] == "th":
            threads = row[2].split()[0]
            found[-1].threads["most"] = int(source.number(threads, number, "th"))
            found[-1].note = (
                f"The server has {threads} threads. Where neither its processors nor its disks are shorter, calibrate "
                f"with --known server.servers={threads}."
            )
        else:
            found[-1].rows.append(row[1])
            stated, *counts = (int(source.number(word, number, row[1])) for word in row[2].split())
            if stated != len(counts):
                raise source.refuse(number, f"{row[1]} has {len(counts)} counts, and says {stated}; it was cut off")
            names = NAMES[row[1]] + [f"op_{n}" for n in range(len(NAMES[row[1]]), stated)]
            for name, count in zip(names[:stated], counts, strict=True):
                op = OPERATIONS.get(name.upper(), name)
                if count:
                    found[-1].add("compound." * (row[1] == "proc4ops") + op, Counted(count, None, number))
    return found


IMPORTER = Importer(
    "nfsd",
    "/proc/net/rpc/nfsd of an NFS server, as observed load",
    "two copies of the file, each with a line snapshot_time above it, in one file or in a file each",
    recognises,
    partial(read, snapshots=snapshots, server=SERVER),
    partial(grouped, snapshots=snapshots, server=SERVER),
    snapshots=snapshots,
    server=SERVER,
)

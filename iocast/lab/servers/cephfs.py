# SPDX-License-Identifier: Apache-2.0
"""CephFS: a monitor, a metadata server, and one for objects, which keeps them in memory, on one server node. A
preloaded library (answer_delay.c) holds the answers of the metadata server. Clients are iocast-bench's own, through
libcephfs."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from iocast.ground.files import write_text
from iocast.lab.answer_delay import PROGRAMS, held
from iocast.lab.servers import Server

MONITOR, METADATA = 3300, 6900
"""Ports."""
SHORT = 200
"""Bytes below which what is sent to a client doesn't wait: acknowledgements have 44, notices that a change is safe 117
to 136, answers with attributes and messages on capabilities at least 342 (Ceph 16.2, md-workbench)."""
CONFIGURATION = """\
[global]
fsid = {identity}
mon host = v2:{address}:{monitor}
public addr = {address}
ms bind msgr1 = false
auth cluster required = none
auth service required = none
auth client required = none
mon data = {store}/mon
osd data = {store}/osd
mds data = {store}/mds
run dir = {store}
log file = {logs}/$type.log
mon cluster log file = {logs}/cluster.log
admin socket = {store}/$type.asok
pid file =
log to stderr = false
osd objectstore = memstore
memstore device bytes = 4294967296
osd pool default size = 1
mon allow pool size one = true
osd crush chooseleaf type = 0
osd pool default pg autoscale mode = off
mon osd initial require min compat client = luminous
paxos propose interval = 0.05
client mount timeout = 25
rados mon op timeout = 25
[mds]
ms bind port min = {metadata}
ms bind port max = {metadata}
ms async op threads = 24
"""
ASK = """\
import json, sys, time
import rados
with rados.Rados(conffile=sys.argv[1]) as cluster:
    for command in json.loads(sys.argv[2]):
        code, _, words = cluster.mon_command(json.dumps(command), b"")
        if code:
            sys.exit(f"{command['prefix']}: {words}")
    until = time.monotonic() + 25
    while sys.argv[3] not in (found := cluster.mon_command('{"prefix": "mds stat"}', b"")[1].decode()):
        if time.monotonic() > until:
            sys.exit(f"no metadata server is active: {found}")
        time.sleep(0.05)
"""
"""A client of the cluster: its configuration, commands for the monitor, and what its metadata servers must come to."""
PYTHON = "/usr/bin/python3"
"""Debian's own, which Ceph's package is for."""


class CephFs(Server):
    name = "cephfs"
    title = "CephFS of one metadata server"
    known = (
        "each answer of the metadata server to a client takes one of the threads of the setting for the service time "
        "(constant), and so does each message on capabilities. What is shorter than 200 bytes doesn't: "
        "acknowledgements, and notices that a change is safe."
    )
    unknown = (
        "how many answers and messages an operation takes (those that are ready at once go together, as one), what a "
        "client knows without a request, the server's own work of about 0.3 ms a request, and the order: 24 threads of "
        "its messenger serve the clients' connections. Contents go to the server for objects, whose answers aren't "
        "delayed."
    )
    defaults = {"threads": "2", "service": "4ms"}
    counts = {"threads": (1, 16)}
    programs = {
        "ceph-mon": "ceph-mon", "ceph-osd": "ceph-osd", "ceph-mds": "ceph-mds", PYTHON: "python3-rados", **PROGRAMS
    }  # fmt: skip

    def start(self) -> None:
        lab, (node,) = self.laboratory, self.record.servers
        store, conf = lab.directory / "store", str(lab.directory / "ceph.conf")
        store.mkdir()
        lab.do(node, "mount", "-t", "tmpfs", "-o", "size=4g,mode=0755", "iocast-lab", str(store))
        lab.do(node, "mkdir", *(str(store / name) for name in ("mon", "osd", "mds")))
        address, identity, objects = lab.address(node), str(uuid.uuid4()), str(uuid.uuid4())
        places = {"store": store, "logs": lab.directory, "monitor": MONITOR, "metadata": METADATA}
        write_text(Path(conf), CONFIGURATION.format(identity=identity, address=address, **places))
        monitors = str(store / "monitors")
        lab.do(node, "monmaptool", "--create", "--fsid", identity, "--addv", "a", f"[v2:{address}:{MONITOR}]", monitors)
        lab.do(node, "ceph-mon", "-c", conf, "--mkfs", "-i", "a", "--monmap", monitors)
        lab.serve(node, "mon", ["ceph-mon", "-c", conf, "-f", "-i", "a"])
        lab.wait(lambda: lab.answers(node, MONITOR), "mon")
        self._ask(
            [
                {"prefix": "osd new", "uuid": objects},
                {"prefix": "osd pool create", "pool": "names", "pg_num": 1},
                {"prefix": "osd pool create", "pool": "contents", "pg_num": 1},
                {"prefix": "fs new", "fs_name": "lab", "metadata": "names", "data": "contents"},
            ]
        )
        lab.do(node, "ceph-osd", "-c", conf, "--mkfs", "-i", "0", "--osd-uuid", objects)
        lab.serve(node, "osd", ["ceph-osd", "-c", conf, "-f", "-i", "0"])
        delayed = held(self, self.settings["threads"], port=METADATA, smallest=SHORT)
        lab.serve(node, "mds", [*delayed, "ceph-mds", "-c", conf, "-f", "-i", "a"])
        lab.wait(lambda: lab.answers(node, METADATA), "mds")
        self._ask([], until="up:active")
        options = [f"--backend-option=--cephfs.{name}={value}" for name, value in (("conf", conf), ("root", "/"))]
        self.record.arguments = ["--backend", "cephfs", *options]

    def _ask(self, commands: list[dict[str, object]], until: str = "") -> None:
        """@raises RunError with what the monitor has against a command"""
        conf = str(self.laboratory.directory / "ceph.conf")
        self.laboratory.do(self.record.servers[0], PYTHON, "-c", ASK, conf, json.dumps(commands), until)


SERVER = CephFs

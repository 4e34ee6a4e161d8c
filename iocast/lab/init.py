# SPDX-License-Identifier: Apache-2.0
"""Process 1 of a laboratory: it starts what holds each node's name spaces, and waits for all processes that end. When
it is killed the kernel kills every process of the laboratory, and with them go networks and mounts.

    python init.py NODE..."""

import os
import signal
import subprocess
import sys

NODE = "IOCAST_LAB_NODE"
"""Environment variable of the process that holds a node's name spaces: the node's name."""


def main() -> None:
    for node in sys.argv[1:]:
        subprocess.Popen(
            ["unshare", "--net", "--uts", "--mount", "sleep", "infinity"],
            env={**os.environ, NODE: node},
            stdin=subprocess.DEVNULL,
        )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        os.wait()


if __name__ == "__main__":
    main()

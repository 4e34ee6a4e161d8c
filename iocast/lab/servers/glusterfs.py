# SPDX-License-Identifier: Apache-2.0
"""GlusterFS without its manager: bricks from volume files, a FUSE client on every node. Below the threads of a brick
lies its own translator `debug/delay-gen`, which holds each thread for a known time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iocast.ground.files import write_text
from iocast.lab.nodes import wait_for
from iocast.lab.servers import Server

PORT = 24100
HELD = "lookup,stat,create,unlink,open"
"""Calls that a brick's delay is for."""


class GlusterFs(Server):
    name = "glusterfs"
    title = "GlusterFS"
    known = (
        "each brick has the threads of the setting (performance/io-threads), and each call of "
        f"{HELD} holds one for the service time (debug/delay-gen, constant). With several bricks a file lies on one of "
        "them by its name (cluster/distribute)."
    )
    unknown = (
        "how many calls an operation makes on which brick (a client looks names up first), the brick's own work of "
        "about 0.1 ms a call, and the order of io-threads, which has priorities."
    )
    defaults = {"threads": "2", "service": "4ms", "bricks": "1"}
    counts = {"threads": (1, 64), "bricks": (1, 8)}
    mounts = True
    programs = {"glusterfsd": "glusterfs-server", "glusterfs": "glusterfs-client"}

    @classmethod
    def nodes_of(cls, settings: Mapping[str, str]) -> int:
        return int(settings["bricks"])

    def start(self) -> None:
        lab = self.laboratory
        for node in self.record.servers:
            self._start_brick(node)
        clients: list[tuple[str, str, dict[str, Any], list[str]]] = [
            (
                node,
                "protocol/client",
                {
                    "transport-type": "tcp",
                    "remote-host": lab.address(node),
                    "remote-port": PORT,
                    "remote-subvolume": "brick",
                },
                [],
            )
            for node in self.record.servers
        ]
        layers = [*clients, ("all", "cluster/distribute", {}, list(self.record.servers))]
        write_text(lab.directory / "client.vol", volumes(layers if len(clients) > 1 else clients))
        client = ["glusterfs", "-N", "-f", str(lab.directory / "client.vol")]
        times = ["--entry-timeout=0", "--attribute-timeout=0"]
        self.connect(
            lambda directory, name: [*client, "-l", str(lab.directory / f"{name}.log"), *times, str(directory)]
        )
        for node in ("head", *self.record.clients):
            for directory in self.directories:
                wait_for(
                    lambda at=node, to=directory: self._answers(at, to),  # type: ignore[misc]
                    f"the bricks as {node} sees them",
                )

    def _start_brick(self, node: str) -> None:
        lab = self.laboratory
        store = lab.directory / f"brick-{node}"
        store.mkdir()
        lab.do(node, "mount", "-t", "tmpfs", "-o", "size=1g", "iocast-lab", str(store))
        delay = {"delay-duration": round(self.seconds("service") * 1e6), "delay-percentage": 100, "enable": HELD}
        listening = {
            "transport-type": "tcp",
            "transport.socket.bind-address": lab.address(node),
            "transport.socket.listen-port": PORT,
            "auth.addr.brick.allow": "*",
        }
        layers: list[tuple[str, str, dict[str, Any], list[str]]] = [
            ("posix", "storage/posix", {"directory": store}, []),
            ("locks", "features/locks", {}, ["posix"]),
            ("delay", "debug/delay-gen", delay, ["locks"]),
            ("threads", "performance/io-threads", {"thread-count": self.settings["threads"]}, ["delay"]),
            ("brick", "debug/io-stats", {"unique-id": store}, ["threads"]),
            ("server", "protocol/server", listening, ["brick"]),
        ]
        file, log = lab.directory / f"{node}.vol", str(lab.directory / f"{node}.log")
        write_text(file, volumes(layers))
        lab.serve(node, node, ["glusterfsd", "-N", "-f", str(file), "-l", log])
        lab.wait(lambda: lab.answers(node, PORT), node)

    def _answers(self, node: str, directory: Path) -> bool:
        probe = directory / f".{node}"
        return self.laboratory.succeeds(node, "sh", "-c", f"mkdir {probe} && rmdir {probe}")


def volumes(layers: list[tuple[str, str, dict[str, Any], list[str]]]) -> str:
    """A volume file of GlusterFS. Layers: name, type, options, and the layers below."""
    text = ""
    for name, kind, options, below in layers:
        lines = [f"volume {name}", f"  type {kind}", *(f"  option {key} {value}" for key, value in options.items())]
        lines += [f"  subvolumes {' '.join(below)}"] * bool(below) + ["end-volume", ""]
        text += "\n".join(lines)
    return text


SERVER = GlusterFs

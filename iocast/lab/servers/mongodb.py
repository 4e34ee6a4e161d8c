# SPDX-License-Identifier: Apache-2.0
"""A server of MongoDB's protocol that keeps everything in memory (mongo-java-server, which Maven fetches), as mongod
itself is in no registry. Our backend for it, mongodb_server/Server.java, holds each command for a known time."""

from __future__ import annotations

import subprocess
from pathlib import Path

from iocast.errors import RunError
from iocast.lab.servers import Server

PORT = 27017
SOURCES = Path(__file__).parents[1] / "mongodb_server"
CONNECTIONS = 128
"""Most of them that are served at once; further ones share the threads of these."""


class MongoDb(Server):
    name = "mongodb"
    title = "a server of MongoDB's protocol (mongo-java-server)"
    known = (
        "each command takes one of the threads of the setting for the service time (constant), in order of arrival. "
        "Each operation of a client is one command."
    )
    unknown = (
        "the own work of server, clients and network, about 0.5 ms a command. It is not mongod: storage engine, "
        "journal and replication are missing."
    )
    defaults = {"threads": "2", "service": "4ms"}
    counts = {"threads": (1, 64)}
    programs = {"java": "default-jdk-headless", "mvn": "maven"}

    def start(self) -> None:
        lab, (node,) = self.laboratory, self.record.servers
        jars = lab.directory / "jars"
        fetch(jars)
        address = lab.address(node)
        held = [self.settings["threads"], f"{self.seconds('service'):.9f}"]
        lab.serve(node, "mongodb", [*java(jars, CONNECTIONS), str(PORT), address, *held])
        lab.wait(lambda: lab.answers(node, PORT), "mongodb")
        self.record.arguments = ["--backend", "mongodb", f"--backend-option=--mongodb.uri=mongodb://{address}:{PORT}"]


def java(jars: Path, connections: int) -> list[str]:
    """The beginning of the server's command. connections: most of them that it serves at once."""
    loops = f"-Dio.netty.eventLoopThreads={connections}"
    quick = ["-Xmx256m", "-XX:TieredStopAtLevel=1"]
    return ["java", *quick, loops, "-cp", f"{jars}/*", str(SOURCES / "Server.java")]


def fetch(jars: Path) -> None:
    """Has Maven put the server's libraries into a directory; it keeps what it fetched once.

    @raises RunError with its last words"""
    maven = ["mvn", "-q", "-B", "-f", str(SOURCES / "pom.xml"), "dependency:copy-dependencies"]
    done = subprocess.run([*maven, f"-DoutputDirectory={jars}"], capture_output=True, text=True, check=False)
    if done.returncode:
        words = next((line for line in done.stdout.splitlines() if "ERROR" in line), "it gives no reason")
        raise RunError(
            f"Maven could not fetch the server: {words.removeprefix('[ERROR]').strip()[:300]} Look at its proxy and at "
            "Java's certificates (the package ca-certificates-java)."
        )


SERVER = MongoDb

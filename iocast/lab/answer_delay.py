# SPDX-License-Identifier: Apache-2.0
"""Delays in servers that have none of their own: a library that is preloaded into them, answer_delay.c."""

from __future__ import annotations

from pathlib import Path

from iocast.lab.servers import Server

PROGRAMS = {"cc": "gcc"}
"""What it needs, with the Debian package."""


def held(server: Server, threads: str = "0", port: int = 0, smallest: int = 2) -> list[str]:
    """The beginning of a command: each answer of the server that follows takes its setting `service`.

    threads: how many answers take their time at once, over all threads of one process; 0 for as many as are sent
    port: the server's, where it also sends to others than clients; 0 for all that is sent
    smallest: bytes of an answer; what is shorter doesn't wait

    @raises RunError where the library can't be compiled"""
    library = server.laboratory.directory / "answer_delay.so"
    source = Path(__file__).with_suffix(".c")
    server.laboratory.do("head", "cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl", "-lpthread")
    given = {"DELAY": f"{server.seconds('service'):.9f}", "THREADS": threads, "PORT": port, "SMALLEST": smallest}
    return ["env", f"LD_PRELOAD={library}", *(f"IOCAST_ANSWER_{name}={value}" for name, value in given.items())]

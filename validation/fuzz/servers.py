#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damages the answers of an S3 service at random and as somebody hostile would, under runs of iocast-bench.

    validation/fuzz/servers.py [--answers 10000] [--seed 0] [--seconds N] [--memory GiB]

Each run meets some damaged answers: wrong statuses, headers and lengths, bytes of others in a body, names of keys that
are somebody else's, no answer at all. It must end by itself within 30 seconds and in bounded memory, with an exit
status that is documented and sentences on standard error. It may write and remove keys below its own prefix only.
Anything else is a fault, is printed with the seed of the run, and makes the exit status 1. S3 is the one service whose
answers iocast reads itself; those of the others are read by the client libraries of the services. After
validation/sanitizers/run, IOCAST_BUILD=build-sanitizers tries the program with sanitizers (--memory 0 then)."""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "backends"), str(ROOT / "tests" / "mpi")]
from programs import find_program  # noqa: E402
from test_s3_answers import Handler, Service  # noqa: E402

STATUSES = (100, 200, 204, 206, 301, 304, 307, 400, 401, 403, 404, 409, 411, 412, 416, 429, 500, 501, 503, 599, 999)
PIECES = (
    b"<Key>mine/0_0/file-0</Key>", b"<Contents><Key>theirs</Key></Contents>",
    b"<Contents><Key>mine/../theirs</Key></Contents>",
    b"<Contents><Key>m</Key></Contents>", b"<Contents><Key></Key></Contents>", b"<Contents>", b"</Key>", b"<Key>",
    b"<NextContinuationToken>t</NextContinuationToken>", b"<IsTruncated>true</IsTruncated>", b"<Code>NoSuchKey</Code>",
    b"<Error><Code>\x1b[31mEvil</Code></Error>",
    b"<Name>given</Name>", b"&#0;", b"&amp", b"%00%2e%2e", b"\x00", b"\xff\xfe",
    b"<" * 1000, b"x" * 100_000, b"9" * 400, b"{", b"]", b"-1",
)  # fmt: skip
HEADERS = (
    ("Content-Length", "-1"), ("Content-Length", "9" * 30), ("Content-Length", "x"), ("Transfer-Encoding", "chunked"),
    ("Content-Encoding", "gzip"), ("ETag", '"' + "e" * 5000 + '"'), ("Location", "http://127.0.0.1:1/"),
    ("Connection", "close"), ("Date", "never"), ("x-amz-request-id", "\x1b[31m"), ("Retry-After", "99999999"),
)  # fmt: skip
SETTINGS = ["--set", "datasets=1", "--set", "objects=3", "--set", "iterations=3", "--quiet"]
DOCUMENTED = range(5)  # docs/exit-codes.md
SECONDS = 30
AT_ONCE = 8


class Hostile(Service):
    """A service of which a share of the answers is damaged."""

    def __init__(self, seed: str) -> None:
        super().__init__(buckets=("given",))
        self.RequestHandlerClass = Damage
        self.chance = random.Random(seed)
        self.share = self.chance.choice((0.0, 0.03, 0.1, 0.3, 1.0))
        self.damaged = 0
        self.buckets["given"]["theirs"] = b"stays"


class Damage(Handler):
    server: Hostile

    def answer(self, status: int, body: bytes = b"", length: int | None = None) -> None:
        chance = self.server.chance
        if chance.random() >= self.server.share:
            super().answer(status, body, length)
            return
        self.server.damaged += 1
        self.close_connection = True
        way = chance.randrange(6)
        if way == 0:  # nothing, or half a line
            self.wfile.write(
                chance.choice((b"", b"HTTP/1.1 ", b"HTTP/9.9 200 OK\r\n\r\n", b"\x00" * 100, b"HTTP/1.1 200\r\n"))
            )
            return
        if way == 1:
            status = chance.choice(STATUSES)
        if way in (2, 3):
            out = bytearray(body)
            for _ in range(chance.randint(1, 4)):
                place = chance.randrange(len(out) + 1)
                if chance.random() < 0.6:
                    out[place:place] = chance.choice(PIECES)
                else:
                    del out[place : place + chance.choice((1, 5, 50))]
            body, length = bytes(out), None
        if way == 4:
            length = chance.choice((0, max(len(body) - 1, 0), len(body) + 1, len(body) + 10**6))
        self.send_response(status)
        headers = {"Content-Length": str(len(body) if length is None else length)}
        if way == 5:
            headers.update([chance.choice(HEADERS)])
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (ConnectionError, ValueError):
            self.close_connection = True

    do_GET = do_PUT = do_DELETE = do_HEAD = Handler.serve


def faults_of(done: subprocess.CompletedProcess[str], log: list[tuple[str, str]], damaged: int) -> list[str]:
    found = []
    if done.returncode not in DOCUMENTED:
        found.append(f"exit status {done.returncode}")
    if not damaged and done.returncode:
        found.append("an undamaged run fails")
    if re.search(r"[^\n\t -\x7e\u2010-\u201f\u00a0-\u00ff…×≥≤µ]", done.stderr):
        found.append("odd characters on standard error")
    if done.returncode in (1, 2) and not done.stderr.rstrip().endswith((".", ")")):
        found.append("no sentence on standard error")
    if len(done.stderr) > 20_000:
        found.append(f"{len(done.stderr)} characters on standard error")
    if any(word in done.stderr for word in ("Sanitizer", "runtime error", "terminate called", "basic_string", "std::")):
        found.append("words of a library on standard error")
    keys = [(method, unquote(urlsplit(path).path)) for method, path in log if method in ("PUT", "DELETE")]
    foreign = [key for key in keys if not key[1].startswith("/given/mine/")]
    return found + ([f"writes at somebody else's: {foreign[:2]}"] if foreign else [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=10_000, help="damaged answers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no further run begins")
    parser.add_argument("--memory", type=float, default=4, help="GiB of address space of a run, 0 for any")
    given = parser.parse_args()
    bench = find_program("iocast-bench")
    assert bench is not None, "iocast-bench is not built; run ./check"
    environment = os.environ | {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    limit = int(given.memory * 2**30)

    def one(number: int) -> tuple[int, int | None, list[str], str]:
        """@return damaged answers, exit status, faults and standard error of a run"""
        with Hostile(f"{given.seed}-{number}") as service:
            place = [
                "--s3.endpoint",
                f"http://127.0.0.1:{service.server_port}",
                "--s3.bucket",
                "given",
                "--s3.prefix",
                "mine",
            ]
            try:
                done = subprocess.run(
                    [bench, "--backend", "s3", *place, *SETTINGS],
                    capture_output=True, text=True, errors="replace", env=environment, timeout=SECONDS, check=False,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)) if limit else None,
                )  # fmt: skip
                return service.damaged, done.returncode, faults_of(done, service.log, service.damaged), done.stderr
            except subprocess.TimeoutExpired as late:
                text = (late.stderr or b"").decode(errors="replace")
                return service.damaged, None, [f"no end within {SECONDS} s"], text
            finally:
                service.shutdown()

    ends: Counter[Any] = Counter()
    damaged = runs = bad = 0
    begun = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:  # they wait most of their time
        while damaged < given.answers and time.monotonic() - begun < given.seconds:
            for number, (answers, status, found, text) in enumerate(
                pool.map(one, range(runs, runs + 4 * AT_ONCE)), runs
            ):
                damaged += answers
                ends[status] += 1
                bad += bool(found)
                for fault in found:
                    print(f"{given.seed}-{number}: {fault}: {text[:1500]!r}", file=sys.stderr, flush=True)
            runs += 4 * AT_ONCE
    print(f"{damaged} damaged answers in {runs} runs, {bad} with a fault. Exit statuses: {dict(ends.most_common())}.")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

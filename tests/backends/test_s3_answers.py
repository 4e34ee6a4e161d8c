# SPDX-License-Identifier: Apache-2.0
"""What an S3 service may answer: conditions it knows or not, buckets that are somebody's, and answers that are wrong or
have no end."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from bench_runs import Done, expect_refusal

SMALL = ["--set", "datasets=1", "--set", "objects=3", "--set", "iterations=2", "--quiet"]
Listing = Callable[[int], str]


class Service(ThreadingHTTPServer):
    """Buckets in memory, path style. `hostile` answers first, when it has something to say."""

    daemon_threads = True

    def __init__(self, *, conditional: bool = True, buckets: tuple[str, ...] = ()) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.conditional = conditional
        self.buckets: dict[str, dict[str, bytes]] = {name: {} for name in buckets}
        self.log: list[tuple[str, str]] = []
        self.hostile: Callable[[Handler, str], bool] = lambda handler, method: False
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Service

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def error(self, status: int, code: str) -> None:
        self.answer(status, f"<Error><Code>{code}</Code></Error>".encode())

    def serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        bucket, _, key = unquote(url.path).lstrip("/").partition("/")
        service = self.server
        service.log.append((self.command, self.path))
        if service.hostile(self, self.command):
            return
        with service.lock:
            held = service.buckets.get(bucket)
            if not bucket:
                self.answer(200, "".join(f"<Name>{name}</Name>" for name in service.buckets).encode())
            elif self.command == "PUT" and not key:
                service.buckets.setdefault(bucket, {})
                self.answer(200)
            elif held is None:
                self.error(404, "NoSuchBucket")
            elif self.command == "PUT":
                if service.conditional and self.headers.get("If-None-Match") == "*" and key in held:
                    self.error(412, "PreconditionFailed")
                    return
                held[key] = body
                self.answer(200)
            elif self.command == "DELETE" and not key:
                if held:
                    self.error(409, "BucketNotEmpty")
                    return
                del service.buckets[bucket]
                self.answer(204)
            elif self.command == "DELETE":
                self.answer(204 if held.pop(key, None) is not None else 204)
            elif not key:
                prefix = parse_qs(url.query).get("prefix", [""])[0]
                self.answer(
                    200,
                    "".join(
                        f"<Contents><Key>{name}</Key></Contents>" for name in held if name.startswith(prefix)
                    ).encode(),
                )
            elif key in held:
                self.answer(200, held[key], len(held[key]))
            else:
                self.error(404, "NoSuchKey")

    do_GET = do_PUT = do_DELETE = do_HEAD = serve


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as one:
        yield one
        one.shutdown()


@pytest.fixture
def run(bench: Path, mpi_environment: dict[str, str]) -> Callable[..., Done]:
    def run_it(service: Service, *arguments: str, environment: dict[str, str] | None = None) -> Done:
        given = mpi_environment | {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"} | (environment or {})
        command = [
            str(bench),
            "--backend",
            "s3",
            "--s3.endpoint",
            f"http://127.0.0.1:{service.server_port}",
            "--s3.prefix",
            "mine",
            *arguments,
        ]
        done = subprocess.run(command, capture_output=True, text=True, env=given, timeout=120)
        assert "\x1b" not in done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    return run_it


@pytest.mark.parametrize(
    "endpoint", ["http://h/?sig=SECRET", "http://h/#SECRET", "http://me:SECRET@h", "ftp://me:SECRET@h"]
)
def test_an_endpoint_with_a_secret_is_refused_without_it(
    endpoint: str, bench: Path, mpi_environment: dict[str, str]
) -> None:
    command = [str(bench), "--backend", "s3", "--s3.endpoint", endpoint, *SMALL]
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    done = subprocess.run(command, capture_output=True, text=True, env=mpi_environment | keys)
    assert done.returncode == 2 and "--s3.endpoint" in done.stderr, done.stderr
    assert "SECRET" not in done.stderr + done.stdout


# ---- what is whose ---------------------------------------------------------------------------------------------------


def test_a_bucket_that_was_made_is_removed_and_one_that_was_there_stays(
    service: Service, run: Callable[..., Done]
) -> None:
    assert run(service, *SMALL).code == 0
    assert service.buckets == {}
    service.buckets["mine"] = {}
    service.log.clear()
    assert run(service, *SMALL).code == 0
    assert service.buckets == {"mine": {}}
    assert ("DELETE", "/mine") not in service.log
    service.buckets["mine"]["somebodys"] = b"x"
    expect_refusal(run(service, *SMALL), "not empty")
    assert service.buckets == {"mine": {"somebodys": b"x"}}


def test_the_last_run_on_a_data_set_removes_the_bucket_that_the_first_made(
    service: Service, run: Callable[..., Done]
) -> None:
    assert run(service, *SMALL, "--set", "phases=precreate").code == 0
    assert "iocast.claim.json" not in service.buckets["mine"]
    assert run(service, *SMALL, "--set", "phases=cleanup").code == 0
    assert service.buckets == {}


def test_two_runs_at_once_on_one_service(service: Service, run: Callable[..., Done]) -> None:
    claim = threading.Barrier(2, timeout=120)

    def together(handler: Handler, method: str) -> bool:
        if method == "PUT" and handler.path.endswith("iocast.claim.json"):
            claim.wait()
        return False

    service.buckets["given"] = {}
    service.hostile = together
    ends: list[Done] = []
    runs = [
        threading.Thread(target=lambda: ends.append(run(service, *SMALL, "--s3.bucket", "given"))) for _ in range(2)
    ]
    for one in runs:
        one.start()
    for one in runs:
        one.join()
    assert sorted(done.code for done in ends) == [0, 2], [done.err for done in ends]
    assert service.buckets["given"] == {}


def test_a_service_without_conditions_needs_a_sole_user(service: Service, run: Callable[..., Done]) -> None:
    service.conditional = False
    expect_refusal(run(service, *SMALL), "can't be claimed", "--sole-user")
    assert service.buckets == {}
    assert run(service, *SMALL, "--sole-user").code == 0
    assert service.buckets == {}


# ---- answers that are none -------------------------------------------------------------------------------------------


def sweep(service: Service, run: Callable[..., Done], hostile: Callable[[Handler, str], bool]) -> Done:
    """Run a sweep, which lists a dataset, over objects that a run without clean-up left."""
    assert run(service, *SMALL, "--s3.bucket", "given", "--set", "phases=precreate").code == 0
    service.hostile = hostile
    return run(service, *SMALL, "--s3.bucket", "given", "--sweep", "--set", "phases=cleanup")


def answer_without_end(handler: Handler, part: bytes) -> bool:
    """Send `part` over and over until the client hangs up."""
    handler.send_response(200)
    handler.end_headers()
    handler.close_connection = True
    try:
        while True:
            handler.wfile.write(part)
    except OSError:
        return True


def of_a_dataset(handler: Handler) -> bool:
    return handler.command == "GET" and "list-type" in handler.path and "0_0" in handler.path


@pytest.mark.parametrize(
    "kind", ["the same token", "new tokens and nothing else", "names outside the prefix", "an endless page"]
)
def test_listings(service: Service, run: Callable[..., Done], kind: str) -> None:
    service.buckets["given"] = {}
    pages = iter(range(10**9))

    def hostile(handler: Handler, method: str) -> bool:
        if not of_a_dataset(handler):
            return False
        if kind == "an endless page":
            return answer_without_end(handler, b"<Contents>" * 100_000)
        page = next(pages)
        name = "m" if kind.startswith("names") else "mine/0_0/file-0"
        content = "" if kind.startswith("new") else f"<Contents><Key>{name}</Key></Contents>"
        token = "t" if kind.startswith("the same") else f"t{page}"
        handler.answer(200, f"{content}<NextContinuationToken>{token}</NextContinuationToken>".encode())
        return True

    done = sweep(service, run, hostile)
    assert done.code == 1 and len(done.messages) == 1 and done.messages[0].endswith("."), done.err
    assert "basic_string" not in done.err


def test_an_endless_object(service: Service, run: Callable[..., Done]) -> None:
    def hostile(handler: Handler, method: str) -> bool:
        if method != "GET" or "file-" not in handler.path:
            return False
        return answer_without_end(handler, b"x" * 1_000_000)

    service.hostile = hostile
    done = run(service, *SMALL)
    assert done.code == 1 and "read operations failed" in done.err
    assert service.buckets == {}


def test_words_of_the_service_are_no_commands_to_a_terminal(service: Service, run: Callable[..., Done]) -> None:
    def hostile(handler: Handler, method: str) -> bool:
        handler.error(403, "\x1b[31m\x1b]0;title\x07Evil" + "x" * 10_000)
        return True

    service.hostile = hostile
    done = run(service, *SMALL)
    assert done.code == 2 and "Evil" in done.err and len(done.err) < 1000


def test_a_manifest_that_is_too_long(service: Service, run: Callable[..., Done]) -> None:
    service.buckets["mine"] = {"iocast.manifest.json": b"[" * (2 << 20)}
    expect_refusal(run(service, *SMALL), "2097152 bytes")


# ---- what is timed ---------------------------------------------------------------------------------------------------

SLOW_HASH = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>
int EVP_DigestUpdate(void* context, const void* data, size_t size)
{
  int (*real)(void*, const void*, size_t) = (int (*)(void*, const void*, size_t))dlsym(RTLD_NEXT, "EVP_DigestUpdate");
  if (size > 100000)
    usleep(400000);
  return real(context, data, size);
}
"""


@pytest.mark.not_sanitized("its run-time library has to come first")
@pytest.mark.parametrize("verify", [[], ["--verify"]])
def test_the_checksum_of_a_payload_is_not_in_the_latency(
    service: Service, run: Callable[..., Done], tmp_path: Path, verify: list[str]
) -> None:
    (tmp_path / "slow.c").write_text(SLOW_HASH)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "slow.so", tmp_path / "slow.c", "-ldl"], check=True)
    small = [
        "--set",
        "datasets=1",
        "--set",
        "objects=2",
        "--set",
        "iterations=1",
        "--set",
        "object_size=200kB",
        "--json",
        "--quiet",
    ]
    done = run(service, *small, *verify, environment={"LD_PRELOAD": str(tmp_path / "slow.so")})
    assert done.code == 0, done.err
    precreate = done.json["phases"][0]
    # Hashing takes at least 0.4 s, which the phase has and the operations have not.
    created = precreate["latency"]["create"]
    assert 0.4 <= precreate["seconds"] - created["count"] * created["mean"]
